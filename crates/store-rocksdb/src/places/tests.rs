use super::*;
use proptest::prelude::*;

fn place(number: u32) -> Place {
    Place { file: number % 3, offset: number, length: 8, checksum: number }
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, u32),
    Remove(u64),
    Forget(FileNumber),
}

fn step() -> impl Strategy<Value = Step> {
    // Few hashes, many of which want the same cell: the first, the last, or one between.
    let hash = (0_u64..40, prop::sample::select(vec![0_u64, 0x8000_0000, 0xFFFF_FFFF]))
        .prop_map(|(upper, lower)| upper << 32 | lower);
    prop_oneof![
        8 => (hash.clone(), any::<u32>()).prop_map(|(hash, number)| Step::Insert(hash, number)),
        6 => hash.prop_map(Step::Remove),
        1 => (0_u32..3).prop_map(Step::Forget),
    ]
}

proptest! {
    #[test]
    fn a_table_is_a_map(steps in prop::collection::vec(step(), 0..400)) {
        let (mut table, mut map) = (PlaceTable::default(), HashMap::new());
        for step in steps {
            match step {
                Step::Insert(hash, number) => {
                    prop_assert!(table.insert(hash, place(number), usize::MAX));
                    map.insert(hash, place(number));
                }
                Step::Remove(hash) => {
                    table.remove(hash);
                    map.remove(&hash);
                }
                Step::Forget(file) => {
                    table.forget(&[file].into());
                    map.retain(|_, place| place.file != file);
                }
            }
            prop_assert_eq!(table.len(), map.len());
            for upper in 0..40 {
                for lower in [0, 0x8000_0000, 0xFFFF_FFFF, 7] {
                    let hash = upper << 32 | lower;
                    prop_assert_eq!(table.get(hash), map.get(&hash).copied());
                }
            }
        }
    }
}

#[test]
fn memory_is_bounded_and_used() {
    let bytes_max = 100_000;
    let mut table = PlaceTable::default();
    let hash = |number: u32| u64::from(number.wrapping_mul(2_654_435_761));
    let count = (0..).take_while(|number| table.insert(hash(*number), place(*number), bytes_max)).count();
    assert_eq!(table.len(), count);
    assert!(table.bytes() <= bytes_max && count * 50 > bytes_max, "{count} places in {} bytes", table.bytes());
    assert!(table.insert(hash(0), place(7), bytes_max), "instead of another there is room");
    assert_eq!(table.get(hash(0)), Some(place(7)));
}

#[test]
fn only_the_row_of_the_key_is_read() {
    let mut file = tempfile::tempfile().unwrap();
    let stored = [9_u64.to_be_bytes().as_slice(), b"value"].concat();
    std::io::Write::write_all(&mut file, &[b"before", stored.as_slice()].concat()).unwrap();
    let files = PlacedFiles::default();
    let place = Place::of(7, 6, b"key", &stored).unwrap();
    assert!(files.read(b"key", place).is_none(), "the file is not known");
    files.insert(7, Arc::new(file));
    let row = files.read(b"key", place).expect("it stands there");
    assert_eq!((row.version, row.value.as_ref()), (9, b"value".as_slice()));
    assert!(files.read(b"yek", place).is_none());
    assert!(files.read(b"key", Place { offset: 5, ..place }).is_none());
    assert!(files.read(b"key", Place { offset: 60, ..place }).is_none(), "behind the end");
}
