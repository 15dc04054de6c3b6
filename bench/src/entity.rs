//! The rows everybody stores: about 1 KB of JSON in ten properties, and the keys they have.
//!
//! All rows are equally long, so that a request needs no new `Content-Length` and an answer can be checked by its
//! length. The texts are made of random syllables: a compressor gains something, as with real texts, but not all.
//! Everything follows from a seed.

use std::fmt::Write;

/// How many rows share a partition, unless all share one.
pub const PARTITION_ROWS: usize = 100;
/// How many different contents there are. More than fit into a compressed block by far.
const CONTENTS: usize = 4096;
/// The length of all properties of a row as JSON.
const PROPERTIES_BYTES: usize = 950;
/// `Number` is this and the number of the row; it has ten digits and fits an Int32.
pub const FIRST_NUMBER: u32 = 1_000_000_000;

/// What all contents of a run follow from.
pub const SEED: u64 = 20_260_101;

/// A small generator of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that starts at a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.draw()) * bound as u128) >> 64) as usize
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// How rows are spread over partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spread {
    /// [`PARTITION_ROWS`] rows in each.
    Partitions,
    /// All in one.
    Hot,
}

impl Spread {
    /// Appends the PartitionKey of a row that is loaded before the measurement.
    pub fn partition(self, row: usize, out: &mut Vec<u8>) {
        match self {
            Spread::Partitions => {
                out.push(b'p');
                digits(row / PARTITION_ROWS, 8, out);
            }
            Spread::Hot => out.extend_from_slice(b"hot000000"),
        }
    }

    /// Appends the PartitionKey of a row that is inserted while it is measured: one of 100,000, in no order.
    pub fn new_partition(self, row: NewRow, out: &mut Vec<u8>) {
        match self {
            Spread::Partitions => {
                out.push(b'n');
                let place = mix((row.writer as u64) << 40 ^ row.sequence as u64);
                digits((place % 100_000) as usize, 8, out);
            }
            Spread::Hot => out.extend_from_slice(b"hot000000"),
        }
    }
}

/// Appends the RowKey of a row that is loaded before the measurement.
pub fn row_key(row: usize, out: &mut Vec<u8>) {
    out.push(b'r');
    digits(row, 10, out);
}

/// A row that nobody has written before.
#[derive(Clone, Copy, Debug)]
pub struct NewRow {
    /// Who writes it; unique within the life of a data folder.
    pub writer: usize,
    /// How many the writer wrote before.
    pub sequence: usize,
}

impl NewRow {
    /// Appends its RowKey.
    pub fn row_key(self, out: &mut Vec<u8>) {
        out.push(b'w');
        digits(self.writer, 6, out);
        out.push(b's');
        digits(self.sequence, 10, out);
    }
}

/// Appends a number with leading zeros.
pub fn digits(mut number: usize, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + width, b'0');
    for place in (start..start + width).rev() {
        out[place] = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The contents of rows.
#[derive(Debug)]
pub struct Entities {
    contents: Vec<u8>,
    /// Where the digits of `Number` are in each content.
    number_at: usize,
}

impl Entities {
    /// Makes all contents.
    pub fn new(seed: u64) -> Entities {
        let mut rng = Rng::new(seed);
        let mut contents = Vec::with_capacity(CONTENTS * PROPERTIES_BYTES);
        for _ in 0..CONTENTS {
            let content = content(&mut rng);
            assert_eq!(content.len(), PROPERTIES_BYTES);
            contents.extend_from_slice(content.as_bytes());
        }
        Entities { contents, number_at: "\"Number\":".len() }
    }

    /// Appends the properties of a row without braces. A later `revision` of a row has another content.
    pub fn properties(&self, row: usize, revision: usize, out: &mut Vec<u8>) {
        let content = (row.wrapping_mul(31) + revision) % CONTENTS * PROPERTIES_BYTES;
        let start = out.len();
        out.extend_from_slice(&self.contents[content..content + PROPERTIES_BYTES]);
        self.put_number(row, &mut out[start..]);
    }

    /// Writes the number of a row into properties.
    pub fn put_number(&self, row: usize, properties: &mut [u8]) {
        let mut number = FIRST_NUMBER as usize + row % FIRST_NUMBER as usize;
        for digit in properties[self.number_at..][..10].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
    }
}

fn content(rng: &mut Rng) -> String {
    let mut json = format!("\"Number\":{FIRST_NUMBER}");
    let mut add = |text: std::fmt::Arguments<'_>| json.write_fmt(text).expect("a String takes everything");
    add(format_args!(",\"Name\":\"{}\"", text(rng, 24)));
    add(format_args!(",\"Email\":\"{}@{}.example\"", letters(rng, 14), letters(rng, 12)));
    add(format_args!(",\"Address\":\"{} {}\"", 100 + rng.below(900), text(rng, 90)));
    add(format_args!(
        ",\"Views\":\"{}\",\"Views@odata.type\":\"Edm.Int64\"",
        10u64.pow(17) + rng.draw() % (9 * 10u64.pow(17))
    ));
    // The last digit is not zero, so that nobody writes it shorter.
    add(format_args!(",\"Score\":0.{}{}", 1_000_000 + rng.below(9_000_000), 1 + rng.below(9)));
    add(format_args!(",\"Active\":{}", rng.below(2) == 0));
    add(format_args!(
        ",\"Created\":\"2024-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}{}Z\",\"Created@odata.type\":\"Edm.DateTime\"",
        1 + rng.below(12),
        1 + rng.below(28),
        rng.below(24),
        rng.below(60),
        rng.below(60),
        rng.below(1_000_000),
        1 + rng.below(9)
    ));
    let (high, low) = (rng.draw(), rng.draw());
    add(format_args!(
        ",\"Session\":\"{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}\",\"Session@odata.type\":\"Edm.Guid\"",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0xfff,
        low & 0xffff_ffff_ffff
    ));
    let rest = PROPERTIES_BYTES - json.len() - ",\"Comment\":\"\"".len();
    let comment = text(rng, rest);
    write!(json, ",\"Comment\":\"{comment}\"").expect("a String takes everything");
    json
}

/// Words of this many letters in all.
fn text(rng: &mut Rng, length: usize) -> String {
    let mut text = String::with_capacity(length + 8);
    while text.len() < length {
        let letters_of_word = 2 + rng.below(9);
        text.push_str(&letters(rng, letters_of_word));
        text.push(' ');
    }
    text.truncate(length - 1);
    text.push('.');
    text
}

fn letters(rng: &mut Rng, length: usize) -> String {
    const CONSONANTS: &[u8] = b"bcdfghjklmnprstvwz";
    const VOWELS: &[u8] = b"aeiouy";
    let mut pick = |place: usize| {
        let of = if place.is_multiple_of(2) { CONSONANTS } else { VOWELS };
        char::from(of[rng.below(of.len())])
    };
    (0..length).map(&mut pick).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_slice};
    use std::collections::HashSet;

    fn row(entities: &Entities, row: usize, revision: usize) -> Vec<u8> {
        let mut json = b"{".to_vec();
        entities.properties(row, revision, &mut json);
        json.push(b'}');
        json
    }

    #[test]
    fn rows_are_json_of_ten_properties_and_of_one_length() {
        let entities = Entities::new(1);
        for number in [0, 1, 7, 99_999, 1_000_000] {
            let json = row(&entities, number, 0);
            assert_eq!(json.len(), PROPERTIES_BYTES + 2);
            let value: Value = from_slice(&json).unwrap();
            let names: Vec<_> = value.as_object().unwrap().keys().filter(|name| !name.contains('@')).collect();
            assert_eq!(names.len(), 10, "{names:?}");
            assert_eq!(value["Number"], u64::from(FIRST_NUMBER) + number as u64);
            let views: i64 = value["Views"].as_str().unwrap().parse().unwrap();
            assert!(views > 0);
            assert!(partita_model::Ticks::parse_iso(value["Created"].as_str().unwrap()).is_some());
            assert_eq!(value["Session"].as_str().unwrap().len(), 36);
        }
    }

    #[test]
    fn a_seed_tells_all_and_revisions_differ() {
        let (one, same, other) = (Entities::new(1), Entities::new(1), Entities::new(2));
        assert_eq!(row(&one, 5, 0), row(&same, 5, 0));
        assert_ne!(row(&one, 5, 0), row(&other, 5, 0));
        assert_ne!(row(&one, 5, 0), row(&one, 5, 1));
    }

    #[test]
    fn keys_are_unique_and_of_one_length() {
        let key = |spread: Spread, row| {
            let mut key = Vec::new();
            spread.partition(row, &mut key);
            row_key(row, &mut key);
            key
        };
        for spread in [Spread::Partitions, Spread::Hot] {
            let keys: HashSet<_> = (0..1000).map(|row| key(spread, row)).collect();
            assert_eq!(keys.len(), 1000);
            assert!(keys.iter().all(|key| key.len() == 20));
        }
        assert_eq!(key(Spread::Partitions, 1234), b"p00000012r0000001234");
    }

    #[test]
    fn numbers_below_a_bound_reach_all_of_them() {
        let mut rng = Rng::new(7);
        let seen: HashSet<_> = (0..1000).map(|_| rng.below(10)).collect();
        assert_eq!(seen.len(), 10);
    }
}
