//! Which calls fail, and how. A rule is a line of the control file; counting begins anew whenever the file changes.
//!
//! ```text
//!   CALL PATTERN COUNT ERROR     of the calls on files of that name COUNT succeed, all after them fail
//!   space PATTERN BYTES ENOSPC   so many bytes can still be written; the write that reaches the end is short
//!   sync-micros N                a sync takes so long
//!   clock SECONDS                the clock of the machine is off by so much
//! ```
//!
//! CALL is open, create, write, resize, sync, read or rename; PATTERN a name of a file with one `*` in it; ERROR a name of
//! `errno`. A line that is no rule ends the process: a test with a rule that does nothing would prove nothing.

use libc::c_int;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// For reading.
    Open,
    /// For writing, and making folders.
    Create,
    Write,
    Resize,
    Sync,
    Read,
    /// And removing.
    Rename,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Effect {
    Fail(c_int),
    /// So many bytes are taken; what is written after them fails.
    Short(usize, c_int),
}

impl Effect {
    pub(crate) fn errno(self) -> c_int {
        match self {
            Effect::Fail(errno) | Effect::Short(_, errno) => errno,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Rules {
    rules: Vec<Rule>,
    pub(crate) sync_micros: u64,
    pub(crate) clock_seconds: i64,
}

#[derive(Debug)]
struct Rule {
    /// `None` for the space that is left.
    call: Option<Call>,
    before: Vec<u8>,
    after: Vec<u8>,
    left: usize,
    errno: c_int,
}

impl Rules {
    pub(crate) fn parse(text: &str) -> Rules {
        let mut rules = Rules::default();
        for line in text.lines().filter(|line| !line.is_empty()) {
            let known = match line.split(' ').collect::<Vec<_>>()[..] {
                ["sync-micros", micros] => micros.parse().map(|micros| rules.sync_micros = micros).is_ok(),
                ["clock", seconds] => seconds.parse().map(|seconds| rules.clock_seconds = seconds).is_ok(),
                [call, pattern, count, error] => match Rule::parse(call, pattern, count, error) {
                    Some(rule) => {
                        rules.rules.push(rule);
                        true
                    }
                    None => false,
                },
                _ => false,
            };
            assert!(known, "no such rule: {line}");
        }
        rules
    }

    /// What becomes of a call, which counts. `bytes` is how much it wants to write.
    pub(crate) fn effect(&mut self, call: Call, path: &[u8], bytes: usize) -> Option<Effect> {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        let mut effect = None;
        for rule in self.rules.iter_mut().filter(|rule| rule.matches(name)) {
            match rule.call {
                Some(of) if of == call && rule.left == 0 => effect = Some(Effect::Fail(rule.errno)),
                Some(of) if of == call => rule.left -= 1,
                None if call == Call::Write && bytes > rule.left => {
                    effect = Some(Effect::Short(rule.left, rule.errno));
                    rule.left = 0;
                }
                None if call == Call::Write => rule.left -= bytes,
                None if call == Call::Create && rule.left == 0 => effect = Some(Effect::Fail(rule.errno)),
                _ => {}
            }
        }
        effect
    }
}

impl Rule {
    fn parse(call: &str, pattern: &str, count: &str, error: &str) -> Option<Rule> {
        let call = match call {
            "open" => Some(Call::Open),
            "create" => Some(Call::Create),
            "write" => Some(Call::Write),
            "resize" => Some(Call::Resize),
            "sync" => Some(Call::Sync),
            "read" => Some(Call::Read),
            "rename" => Some(Call::Rename),
            "space" => None,
            _ => return None,
        };
        let errno = match error {
            "EACCES" => libc::EACCES,
            "EIO" => libc::EIO,
            "ENOSPC" => libc::ENOSPC,
            "EROFS" => libc::EROFS,
            _ => return None,
        };
        let (before, after) = pattern.split_once('*')?;
        let (before, after) = (before.as_bytes().to_vec(), after.as_bytes().to_vec());
        Some(Rule { call, before, after, left: count.parse().ok()?, errno })
    }

    fn matches(&self, name: &[u8]) -> bool {
        name.len() >= self.before.len() + self.after.len()
            && name.starts_with(&self.before)
            && name.ends_with(&self.after)
    }
}
