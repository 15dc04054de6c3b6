//! Numbers that look random and follow from a seed.

/// A small generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// A generator that starts at a seed.
    pub fn new(seed: u64) -> Rng {
        Rng(seed)
    }

    /// The next number, from 0 to below 1.
    pub fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.0) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Turns a number into one that looks random; different numbers stay different.
pub fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Ranks of which the first has the largest share, the second half of it, the third a third of it, and so on.
#[derive(Clone, Debug)]
pub struct Zipf(Vec<f64>);

impl Zipf {
    /// So many ranks.
    pub fn new(ranks: u64) -> Zipf {
        let mut sum = 0.0;
        let mut sums: Vec<f64> = (1..=ranks)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        sums.iter_mut().for_each(|value| *value /= sum);
        Zipf(sums)
    }

    /// The rank at a place from 0 to below 1.
    pub fn rank(&self, place: f64) -> u64 {
        self.0.partition_point(|sum| *sum <= place) as u64
    }

    /// The share of a rank.
    pub fn share(&self, rank: usize) -> f64 {
        self.0[rank] - if rank == 0 { 0.0 } else { self.0[rank - 1] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rank_has_twice_the_second() {
        let zipf = Zipf::new(100);
        assert!((zipf.share(0) / zipf.share(1) - 2.0).abs() < 1e-9);
        assert_eq!((zipf.rank(0.0), zipf.rank(zipf.share(0)), zipf.rank(0.999_999)), (0, 1, 99));
    }

    #[test]
    fn a_seed_gives_the_same_numbers() {
        let draw = |seed| {
            let mut rng = Rng::new(seed);
            [(); 3].map(|()| rng.share())
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!((0..1000).flat_map(draw).all(|share| (0.0..1.0).contains(&share)));
    }
}
