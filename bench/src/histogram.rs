//! Latencies, counted in buckets whose width grows with the value: 128 to each power of two, so that a percentile is
//! exact to less than one percent from a nanosecond to a minute, in 30 KB.

const PRECISION_BITS: u32 = 7;
const SUB_BUCKETS: usize = 1 << PRECISION_BITS;
/// Values from 2^36 ns, more than a minute, share the last bucket.
const VALUE_BITS: u32 = 36;
const BUCKETS: usize = ((VALUE_BITS - PRECISION_BITS + 1) as usize) << PRECISION_BITS;

/// How often each latency was seen, in nanoseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    sum: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], count: 0, sum: 0, max: 0 }
    }
}

impl Histogram {
    /// Counts a value.
    pub fn record(&mut self, nanoseconds: u64) {
        self.counts[bucket(nanoseconds)] += 1;
        self.count += 1;
        self.sum += nanoseconds;
        self.max = self.max.max(nanoseconds);
    }

    /// Adds what another has counted.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean of all values.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.count.max(1) as f64
    }

    /// The largest value.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The smallest value that this share of all values does not exceed; rounded up to the end of its bucket.
    pub fn percentile(&self, percent: f64) -> u64 {
        let rank = (self.count as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return last_of(bucket).min(self.max);
            }
        }
        self.max
    }
}

fn bucket(value: u64) -> usize {
    let value = value.min((1 << VALUE_BITS) - 1);
    let shift = (u64::BITS - value.leading_zeros()).saturating_sub(PRECISION_BITS + 1);
    shift as usize * SUB_BUCKETS + (value >> shift) as usize
}

/// The largest value of a bucket.
fn last_of(bucket: usize) -> u64 {
    let shift = (bucket / SUB_BUCKETS).saturating_sub(1);
    let first = ((bucket - shift * SUB_BUCKETS) as u64) << shift;
    first + (1 << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_tile_all_values() {
        let mut previous = 0;
        for value in 1..100_000u64 {
            let (this, last) = (bucket(value), bucket(value - 1));
            assert!(this == last || this == last + 1, "{value}");
            previous = previous.max(this);
        }
        for value in [0, 1, 127, 128, 129, 255, 256, 1_000, 123_456, 1 << 35, (1 << 36) - 1] {
            let last = last_of(bucket(value));
            assert!(last >= value && last - value <= value / 100, "{value} in a bucket that ends at {last}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles() {
        let mut histogram = Histogram::default();
        for value in 1..=10_000 {
            histogram.record(value * 1000);
        }
        for (percent, exact) in [(0.0, 1000), (50.0, 5_000_000), (99.0, 9_900_000), (99.9, 9_990_000)] {
            let found = histogram.percentile(percent);
            assert!(found >= exact && found <= exact + exact / 100, "{percent}: {found}");
        }
        assert_eq!(histogram.percentile(100.0), 10_000_000);
        assert_eq!((histogram.count(), histogram.max()), (10_000, 10_000_000));
    }

    #[test]
    fn merged_is_as_if_counted_together() {
        let (mut one, mut two) = (Histogram::default(), Histogram::default());
        (0..99).for_each(|_| one.record(10));
        two.record(1_000_000);
        one.merge(&two);
        assert_eq!((one.percentile(50.0), one.percentile(99.0), one.percentile(99.1)), (10, 10, 1_000_000));
        assert_eq!(one.mean(), 10_009.9);
        assert_eq!((Histogram::default().percentile(50.0), Histogram::default().mean()), (0, 0.0));
    }
}
