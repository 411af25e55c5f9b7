//! Sizes of the files of a set, by number.

use model::{
    Bytes,
    phase::{Set, Sizes},
};

use super::drawn;

/// Purpose of the stream from which sizes are drawn, see [`drawn`].
const PURPOSE: u64 = 0x7369_7A65;

/// Steps of the table of a log-normal distribution. The steps have equal probability, and each size
/// is the quantile at the middle of a step. The sizes are scaled to the requested mean.
const STEPS: usize = 4096;

/// Sizes of the files of one owner. A file has the same size in every phase.
#[derive(Debug)]
pub(crate) struct Lengths {
    kind: Kind,
    seed: u64,
    owner: u32,
}

#[derive(Debug)]
enum Kind {
    Fixed(u64),
    /// Minimum, and number of different sizes.
    Uniform(u64, u64),
    /// Quantiles of equal probability.
    Table(Box<[u64]>),
}

impl Lengths {
    /// Sizes of the files of one owner.
    pub(crate) fn new(set: &Set, owner: u32) -> Self {
        Self::of_sizes(set.sizes, set.seed, owner)
    }

    pub(crate) fn of_sizes(sizes: Sizes, seed: u64, owner: u32) -> Self {
        let kind = match sizes {
            Sizes::Fixed(size) => Kind::Fixed(size.0),
            Sizes::Uniform { min, max } => {
                Kind::Uniform(min.0, (max.0.saturating_sub(min.0)).saturating_add(1))
            }
            Sizes::LogNormal { mean, sigma } => Kind::Table(log_normal(mean, sigma)),
        };
        Self { kind, seed, owner }
    }

    /// Selects another owner.
    pub(crate) fn select(&mut self, owner: u32) {
        self.owner = owner;
    }

    /// Size of a file.
    #[inline]
    pub(crate) fn of(&self, entry: u64) -> u64 {
        let random = || drawn(self.seed, self.owner, entry, PURPOSE);
        match &self.kind {
            Kind::Fixed(size) => *size,
            // Multiplication instead of division: the bias is below 2^-32 for sizes below 4 GiB.
            Kind::Uniform(min, sizes) => {
                min + ((u128::from(random()) * u128::from(*sizes)) >> 64) as u64
            }
            Kind::Table(table) => table[(random() >> 52) as usize],
        }
    }

    /// Largest size.
    pub(crate) fn most(&self) -> u64 {
        match &self.kind {
            Kind::Fixed(size) => *size,
            Kind::Uniform(min, sizes) => min + (sizes - 1),
            Kind::Table(table) => table[STEPS - 1],
        }
    }
}

/// Sizes at the middles of [`STEPS`] steps of equal probability, in ascending order.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "sizes are positive, and rounded to bytes"
)]
fn log_normal(mean: Bytes, sigma: f64) -> Box<[u64]> {
    let sigma = sigma.clamp(0.0, 4.0);
    let middle = |step: usize| (step as f64 + 0.5) / STEPS as f64;
    let relative: Vec<f64> = (0..STEPS).map(|step| (sigma * normal(middle(step))).exp()).collect();
    let scale = mean.0 as f64 * STEPS as f64 / relative.iter().sum::<f64>();
    relative.into_iter().map(|size| (size * scale).round().max(1.0) as u64).collect()
}

/// Quantile of the standard normal distribution: Newton's method on its distribution function,
/// approximated by Abramowitz and Stegun's formula 26.2.17 (error below 7.5e-8).
fn normal(probability: f64) -> f64 {
    let density = |x: f64| (-x * x / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let below = |x: f64| {
        let t = 1.0 / (1.0 + 0.231_641_9 * x.abs());
        let terms = [0.319_381_530, -0.356_563_782, 1.781_477_937, -1.821_255_978, 1.330_274_429];
        let tail = density(x) * terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
        if x >= 0.0 { 1.0 - tail } else { tail }
    };
    let mut x: f64 = 0.0;
    for _ in 0..60 {
        let step = (below(x) - probability) / density(x);
        x -= step.clamp(-0.5, 0.5);
    }
    x
}

#[cfg(test)]
mod tests {
    use model::phase::{DataPattern, Naming, Sharing, Spread};

    use super::*;

    fn lengths(sizes: Sizes) -> Lengths {
        let set = Set {
            name: "t".into(),
            sharing: Sharing::Private,
            files: 1,
            spread: Spread::Flat,
            naming: Naming::Numbers,
            sizes,
            block_size: Bytes(1),
            data: DataPattern::default(),
            seed: 9,
        };
        Lengths::new(&set, 0)
    }

    fn mean(lengths: &Lengths) -> f64 {
        (0..100_000).map(|entry| lengths.of(entry) as f64).sum::<f64>() / 1e5
    }

    #[test]
    fn sizes_have_the_requested_mean_and_bounds() {
        let fixed = lengths(Sizes::Fixed(Bytes(7)));
        assert_eq!((fixed.of(1), fixed.most()), (7, 7));
        let uniform = lengths(Sizes::Uniform { min: Bytes(100), max: Bytes(300) });
        assert!((0..10_000).all(|entry| (100..=300).contains(&uniform.of(entry))));
        assert!((0..10_000).any(|entry| uniform.of(entry) == 100));
        assert!((0..10_000).any(|entry| uniform.of(entry) == 300));
        assert!((mean(&uniform) - 200.0).abs() < 1.0);
        let log = lengths(Sizes::LogNormal { mean: Bytes(50_000), sigma: 1.5 });
        assert!((mean(&log) / 50_000.0 - 1.0).abs() < 0.03, "{}", mean(&log));
        assert!(log.most() > 1_000_000);
    }

    #[test]
    fn log_normal_sizes_have_the_median_and_the_quartiles_of_the_distribution() {
        let sigma = 1.0_f64;
        let mut sizes: Vec<u64> = {
            let log = lengths(Sizes::LogNormal { mean: Bytes(100_000), sigma });
            (0..100_001).map(|entry| log.of(entry)).collect()
        };
        sizes.sort_unstable();
        let median = 100_000.0 * (-sigma * sigma / 2.0).exp();
        for (percent, deviation) in [(50, 0.0), (25, -0.6745), (75, 0.6745)] {
            let found = sizes[percent * 1000] as f64;
            let wanted = median * (sigma * deviation).exp();
            assert!((found / wanted - 1.0).abs() < 0.03, "{percent}: {found} of {wanted}");
        }
    }

    #[test]
    fn a_file_keeps_its_size_and_workers_differ() {
        let log = lengths(Sizes::LogNormal { mean: Bytes(1000), sigma: 1.0 });
        assert_eq!(log.of(5), log.of(5));
        assert!((0..50).any(|entry| log.of(entry) != log.of(entry + 1)));
    }
}
