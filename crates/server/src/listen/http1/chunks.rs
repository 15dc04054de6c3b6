//! Bodies that come in chunks.
//!
//! ```text
//! body   = *chunk "0" [ext] CRLF *(line CRLF) CRLF
//! chunk  = size [ext] CRLF bytes CRLF
//! ```

/// Most bytes of a body for extensions of chunks and for lines behind the last one, none of which anybody reads.
const OVERHEAD_BYTES_MAX: usize = 16 << 10;
/// Most bytes a chunk may announce. No body is that long.
const SIZE_MAX: u64 = 1 << 32;

/// Takes a body out of its chunks, in whatever pieces it comes.
#[derive(Debug)]
pub(crate) struct Chunks {
    state: State,
    overhead: usize,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The first digit of a size.
    Size,
    /// More of a size, or its end.
    MoreSize(u64),
    /// An extension of a chunk of that size.
    Extension(u64),
    /// The second half of the end of its line.
    SizeLineFeed(u64),
    /// So many bytes of a chunk.
    Bytes(u64),
    /// The end of a chunk.
    Return,
    LineFeed,
    /// A line behind the last chunk, or the end of all.
    Trailer,
    TrailerLine,
    TrailerLineFeed,
    LastLineFeed,
    Done,
}

/// What came has not the form of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

impl Chunks {
    pub(crate) fn new() -> Chunks {
        Chunks { state: State::Size, overhead: 0 }
    }

    /// Whether the end has come.
    pub(crate) fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Takes as much of `input` as belongs to the body, appends what was in it, and says how much that was of the input.
    pub(crate) fn decode(&mut self, input: &[u8], bytes: &mut Vec<u8>) -> Result<usize, Malformed> {
        let mut at = 0;
        while let (Some(&byte), false) = (input.get(at), self.is_done()) {
            if let State::Bytes(left) = self.state {
                let taken = usize::try_from(left).unwrap_or(usize::MAX).min(input.len() - at);
                bytes.extend_from_slice(&input[at..at + taken]);
                at += taken;
                self.state = match left - taken as u64 {
                    0 => State::Return,
                    left => State::Bytes(left),
                };
                continue;
            }
            self.state = self.next(byte)?;
            at += 1;
        }
        Ok(at)
    }

    fn next(&mut self, byte: u8) -> Result<State, Malformed> {
        let digit = char::from(byte).to_digit(16).map(u64::from);
        Ok(match (self.state, byte) {
            (State::Size, _) => State::MoreSize(digit.ok_or(Malformed)?),
            (State::MoreSize(size) | State::Extension(size), b'\r') => State::SizeLineFeed(size),
            (State::MoreSize(size), b';' | b' ' | b'\t') => self.extra(State::Extension(size))?,
            (State::MoreSize(size), _) => match size * 16 + digit.ok_or(Malformed)? {
                size @ ..SIZE_MAX => State::MoreSize(size),
                _ => return Err(Malformed),
            },
            (State::Extension(_), b'\n') => return Err(Malformed),
            (State::Extension(size), _) => self.extra(State::Extension(size))?,
            (State::SizeLineFeed(0), b'\n') => State::Trailer,
            (State::SizeLineFeed(size), b'\n') => State::Bytes(size),
            (State::Return, b'\r') => State::LineFeed,
            (State::LineFeed, b'\n') => State::Size,
            (State::Trailer, b'\r') => State::LastLineFeed,
            (State::TrailerLine, b'\r') => State::TrailerLineFeed,
            (State::Trailer | State::TrailerLine, b'\n') => return Err(Malformed),
            (State::Trailer | State::TrailerLine, _) => self.extra(State::TrailerLine)?,
            (State::TrailerLineFeed, b'\n') => State::Trailer,
            (State::LastLineFeed, b'\n') => State::Done,
            _ => return Err(Malformed),
        })
    }

    /// Goes on to a state in which nothing is read that matters, a bounded number of times.
    fn extra(&mut self, state: State) -> Result<State, Malformed> {
        self.overhead += 1;
        if self.overhead > OVERHEAD_BYTES_MAX { Err(Malformed) } else { Ok(state) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The body and how much of the input it was, for any two pieces in which the input may come.
    fn decode(input: &[u8]) -> Result<Option<(String, usize)>, Malformed> {
        let whole = in_pieces(&[input]);
        for cut in 0..input.len() {
            assert_eq!(in_pieces(&[&input[..cut], &input[cut..]]), whole, "cut at {cut}");
        }
        whole
    }

    fn in_pieces(pieces: &[&[u8]]) -> Result<Option<(String, usize)>, Malformed> {
        let (mut chunks, mut bytes, mut taken) = (Chunks::new(), Vec::new(), 0);
        for piece in pieces {
            taken += chunks.decode(piece, &mut bytes)?;
        }
        Ok(chunks.is_done().then(|| (String::from_utf8(bytes).expect("text"), taken)))
    }

    #[test]
    fn bodies() {
        for (input, body, rest) in [
            ("0\r\n\r\n", "", ""),
            ("3\r\nabc\r\n0\r\n\r\nGET /", "abc", "GET /"),
            ("3\r\nabc\r\nA;x=y\r\n0123456789\r\n000\r\n\r\n", "abc0123456789", ""),
            ("1 \r\na\r\n0\r\nX: y\r\nZ: \r\n\r\n0", "a", "0"),
        ] {
            assert_eq!(decode(input.as_bytes()), Ok(Some((body.into(), input.len() - rest.len()))), "{input:?}");
        }
        assert_eq!(decode(b"3\r\nab"), Ok(None));
    }

    #[test]
    fn what_is_none() {
        for input in [
            "\r\n",
            "x\r\n",
            "+1\r\na",
            "-1\r\na",
            "0x1\r\na",
            "1_0\r\n",
            "1\na",
            "1\r\rab",
            "1\r\nab",
            "1\r\na\n",
            "1;a=\nb\r\na",
            "fffffffff\r\n",
            "ffffffffffffffffffffffff\r\n",
            "0\r\n\n",
            "0\r\nA: b\n\r\n",
        ] {
            assert_eq!(decode(input.as_bytes()), Err(Malformed), "{input:?}");
        }
        let long = |bytes: usize| format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(bytes - 1));
        let decode = |text: String| in_pieces(&[text.as_bytes()]).map(|_| ());
        assert_eq!(decode(long(OVERHEAD_BYTES_MAX)), Ok(()));
        assert_eq!(decode(long(OVERHEAD_BYTES_MAX + 1)), Err(Malformed));
    }
}
