use super::*;
use crate::trace::Record;
use proptest::prelude::*;

const ROOT: &str = "/disk";

/// A trace that is written record by record.
#[derive(Default)]
struct Trace(Vec<u8>);

impl Trace {
    fn add(&mut self, record: Record<'_>) -> &mut Trace {
        record.encode(&mut self.0);
        self
    }

    fn create(&mut self, fd: u64, name: &str) -> &mut Trace {
        let path = format!("{ROOT}/{name}").into_bytes().into();
        self.add(Record::Open { fd, path, created: true, truncated: false })
    }

    /// Opens the root, to sync it.
    fn open_root(&mut self, fd: u64) -> &mut Trace {
        self.add(Record::Open { fd, path: ROOT.as_bytes().into(), created: false, truncated: false })
    }

    fn write(&mut self, fd: u64, offset: u64, data: &[u8]) -> &mut Trace {
        self.add(Record::Write { fd, offset, data: data.into() })
    }

    fn sync(&mut self, fd: u64) -> &mut Trace {
        let began = self.0.len() as u64;
        self.add(Record::Sync { fd, began })
    }

    fn rename(&mut self, from: &str, to: &str) -> &mut Trace {
        let path = |name| format!("{ROOT}/{name}").into_bytes().into();
        self.add(Record::Rename { from: path(from), to: path(to) })
    }

    fn image(&self, survival: Survival, seed: u64) -> Image {
        let mut model = Model::new(Path::new(ROOT), &Image::default());
        model.follow(&self.0, u64::MAX);
        model.image(survival, &mut Random::new(seed))
    }
}

fn contents<'a>(image: &'a Image, name: &str) -> Option<&'a [u8]> {
    image.nodes.get(Path::new(name)).map(|contents| contents.as_deref().expect("a file"))
}

#[test]
fn a_name_needs_a_sync_of_its_folder() {
    let mut trace = Trace::default();
    trace.open_root(3).create(4, "a").write(4, 0, b"one").sync(4);
    assert_eq!(trace.image(Survival::Nothing, 0), Image::default());
    trace.sync(3);
    assert_eq!(contents(&trace.image(Survival::Nothing, 0), "a"), Some(&b"one"[..]));
}

#[test]
fn contents_need_a_sync_of_their_own() {
    let mut trace = Trace::default();
    trace.open_root(3).create(4, "a").sync(3).write(4, 0, b"one");
    assert_eq!(contents(&trace.image(Survival::Nothing, 0), "a"), Some(&b""[..]));
    assert_eq!(contents(&trace.image(Survival::Everything, 0), "a"), Some(&b"one"[..]));
}

/// What is written while a sync runs is not covered by it.
#[test]
fn a_sync_covers_what_was_there_when_it_began() {
    let mut trace = Trace::default();
    trace.open_root(3).create(4, "a").sync(3).write(4, 0, b"one");
    let began = trace.0.len() as u64;
    trace.write(4, 3, b"two").add(Record::Sync { fd: 4, began });
    assert_eq!(contents(&trace.image(Survival::Nothing, 0), "a"), Some(&b"one"[..]));
}

#[test]
fn a_rename_replaces_as_a_whole_or_not_at_all() {
    let mut trace = Trace::default();
    trace.open_root(3).create(4, "a").write(4, 0, b"old").sync(4).sync(3);
    trace.create(5, "new").write(5, 0, b"new").sync(5).rename("new", "a");
    let mut found = std::collections::BTreeSet::new();
    for seed in 0..50 {
        let image = trace.image(Survival::Part, seed);
        found.insert(contents(&image, "a").expect("there is always one of the two").to_vec());
        assert!(contents(&image, "new").is_none() || contents(&image, "a") == Some(b"old"));
    }
    assert_eq!(found.len(), 2);
}

#[test]
fn a_file_that_was_removed_comes_back_until_its_folder_is_synced() {
    let mut trace = Trace::default();
    trace.open_root(3).create(4, "a").write(4, 0, b"one").sync(4).sync(3);
    trace.add(Record::Unlink { path: format!("{ROOT}/a").into_bytes().into() });
    assert_eq!(contents(&trace.image(Survival::Nothing, 0), "a"), Some(&b"one"[..]));
    trace.sync(3);
    assert_eq!(trace.image(Survival::Nothing, 0), Image::default());
}

#[test]
fn a_base_is_there_for_good() {
    let mut base = Image::default();
    base.nodes.insert("folder".into(), None);
    base.nodes.insert("folder/a".into(), Some(b"one".to_vec()));
    let model = Model::new(Path::new(ROOT), &base);
    assert_eq!(model.image(Survival::Nothing, &mut Random::new(0)), base);
}

#[test]
fn a_new_process_has_new_descriptors() {
    let mut trace = Trace::default();
    trace.open_root(3).create(4, "a").sync(3).write(4, 0, b"one").add(Record::Start);
    trace.add(Record::Write { fd: 4, offset: 0, data: b"two".into() }).sync(4);
    assert_eq!(contents(&trace.image(Survival::Everything, 0), "a"), Some(&b"one"[..]));
    assert_eq!(contents(&trace.image(Survival::Nothing, 0), "a"), Some(&b""[..]));
}

/// What may be done to a file.
#[derive(Clone, Debug)]
enum Step {
    Write(u64, Vec<u8>),
    Resize(u64),
    Sync,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let data = (any::<u8>(), 1..1500_usize).prop_map(|(byte, length)| vec![byte.max(1); length]);
    let step = prop_oneof![
        6 => (0..4000_u64, data).prop_map(|(offset, data)| Step::Write(offset, data)),
        1 => (0..4000_u64).prop_map(Step::Resize),
        2 => Just(Step::Sync),
    ];
    prop::collection::vec(step, 0..20)
}

/// The contents after each step, and which of them was synced last.
fn moments(steps: &[Step]) -> (Vec<Vec<u8>>, usize) {
    let mut moments = vec![Vec::new()];
    let mut synced = 0;
    for step in steps {
        let mut contents: Vec<u8> = moments[moments.len() - 1].clone();
        match step {
            Step::Write(offset, data) => {
                let end = *offset as usize + data.len();
                contents.resize(contents.len().max(end), 0);
                contents[*offset as usize..end].copy_from_slice(data);
            }
            Step::Resize(length) => contents.resize(*length as usize, 0),
            Step::Sync => synced = moments.len(),
        }
        moments.push(contents);
    }
    (moments, synced)
}

proptest! {
    /// Against the plainest statement of the model: the file as it was after each step.
    #[test]
    fn sectors_and_length_stand_at_moments_since_the_sync(steps in steps(), seed in any::<u64>()) {
        let mut trace = Trace::default();
        trace.open_root(3).create(4, "a").sync(3);
        for step in &steps {
            match step {
                Step::Write(offset, data) => trace.write(4, *offset, data),
                Step::Resize(length) => trace.add(Record::Resize { fd: 4, length: *length }),
                Step::Sync => trace.sync(4),
            };
        }
        let (moments, synced) = moments(&steps);
        let whole = trace.image(Survival::Everything, seed);
        prop_assert_eq!(contents(&whole, "a"), moments.last().map(Vec::as_slice));
        let nothing = trace.image(Survival::Nothing, seed);
        prop_assert_eq!(contents(&nothing, "a"), Some(moments[synced].as_slice()));

        let part = trace.image(Survival::Part, seed);
        let part = contents(&part, "a").expect("its name is durable");
        prop_assert!(moments[synced..].iter().any(|moment| moment.len() == part.len()));
        for (index, sector) in part.chunks(SECTOR_BYTES as usize).enumerate() {
            let stood = |moment: &Vec<u8>| {
                let start = index * SECTOR_BYTES as usize;
                // Beyond the end of a file there are zeros.
                sector.iter().enumerate().all(|(at, byte)| moment.get(start + at).copied().unwrap_or(0) == *byte)
            };
            prop_assert!(moments[synced..].iter().any(stood), "sector {index} never stood like this");
        }
    }

    #[test]
    fn records_are_read_as_they_were_written(fd in any::<u64>(), offset in any::<u64>(), data in prop::collection::vec(any::<u8>(), 0..100), cut in any::<prop::sample::Index>()) {
        let records = [
            Record::Start,
            Record::Open { fd, path: data.as_slice().into(), created: true, truncated: false },
            Record::Write { fd, offset, data: data.as_slice().into() },
            Record::Resize { fd, length: offset },
            Record::Sync { fd, began: offset },
            Record::Rename { from: data.as_slice().into(), to: b"b".into() },
            Record::Link { from: data.as_slice().into(), to: b"b".into() },
            Record::Unlink { path: data.as_slice().into() },
            Record::MakeFolder { path: data.as_slice().into() },
            Record::RemoveFolder { path: data.as_slice().into() },
            Record::Close { fd },
        ];
        let mut bytes = Vec::new();
        records.iter().for_each(|record| record.encode(&mut bytes));
        let mut rest = bytes.as_slice();
        for record in &records {
            let found = trace::decode(&mut rest);
            prop_assert_eq!(found.as_ref(), Some(record));
        }
        prop_assert!(rest.is_empty());
        // A trace that ends in the middle of a record ends before it.
        let mut cut = &bytes[..cut.index(bytes.len())];
        while trace::decode(&mut cut).is_some() {}
    }
}
