//! Confidence intervals of means for which only a standard deviation and a number of runs are
//! printed.
//!
//! The values of the runs are not available. The intervals therefore need assumptions: the
//! deviation is that of a sample (divisor n - 1), the runs are independent, and their mean is
//! approximately normal. Reports that show such an interval state these assumptions. If the values
//! are available, [`crate::summary`] and [`crate::compare`] need fewer assumptions.

use model::Ratio;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::{Interval, NotEstimable};

/// Mean with the standard deviation of its runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Mean, in any unit.
    pub mean: f64,
    /// Standard deviation of the runs (divisor n - 1), in the same unit.
    pub deviation: f64,
    /// Number of runs.
    pub n: u32,
}

/// Ratio of two means.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanRatio {
    /// Second mean over the first.
    pub ratio: Ratio,
    /// Confidence interval.
    pub interval: Interval,
}

impl Moments {
    /// Moments of values; `None` for fewer than two values.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = u32::try_from(values.len()).ok().filter(|n| *n >= 2)?;
        let mean = values.iter().sum::<f64>() / f64::from(n);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self { mean, deviation: (squares / f64::from(n - 1)).sqrt(), n })
    }

    /// Squared standard error of the mean.
    fn error(&self) -> f64 {
        self.deviation.powi(2) / f64::from(self.n)
    }

    /// Checks that there are two runs, and that mean and deviation are valid.
    fn checked(&self) -> Result<(), NotEstimable> {
        if self.n < 2 {
            return Err(NotEstimable::Repetitions { least: self.n, needed: 2 });
        }
        if !(self.mean.is_finite() && self.deviation.is_finite() && self.deviation >= 0.0) {
            return Err(NotEstimable::Unsound);
        }
        Ok(())
    }

    /// Interval of the mean at a level between 0 and 1: mean ± t(1 - (1 - level) / 2; n - 1) ·
    /// deviation / √n (Student, "The probable error of a mean", Biometrika 6, 1908).
    ///
    /// # Errors
    /// [`NotEstimable::Repetitions`] below two runs, [`NotEstimable::Unsound`] if the mean, the
    /// deviation, or the level is invalid.
    pub fn interval(&self, level: f64) -> Result<Interval, NotEstimable> {
        self.checked()?;
        let half = quantile(level, f64::from(self.n - 1))? * self.error().sqrt();
        Ok(Interval { low: self.mean - half, high: self.mean + half, level })
    }

    /// Ratio of the mean of `self` to that of `base`, with the interval of Fieller ("Some problems
    /// in interval estimation", Journal of the Royal Statistical Society B 16, 1954) for two
    /// independent means of unequal variances. The interval contains all θ with (m₂ - θ m₁)² ≤ t²
    /// (v₂ + θ² v₁), where m₁ is the mean of `base` and v is the variance of a mean. t has the
    /// degrees of freedom of Satterthwaite ("An approximate distribution of estimates of variance
    /// components", Biometrics Bulletin 2, 1946) at the observed ratio.
    ///
    /// # Errors
    /// As [`Moments::interval`]. Also [`NotEstimable::Unsound`] if a mean is not above zero.
    /// [`NotEstimable::Inconclusive`] if neither side has any scatter. The same error is returned
    /// if a mean does not differ significantly from zero: the ratio is then unbounded, or its
    /// interval extends below zero.
    pub fn over(&self, base: &Self, level: f64) -> Result<MeanRatio, NotEstimable> {
        self.checked()?;
        base.checked()?;
        if self.mean <= 0.0 || base.mean <= 0.0 {
            return Err(NotEstimable::Unsound);
        }
        let ratio = self.mean / base.mean;
        let (own, other) = (self.error(), ratio * ratio * base.error());
        let parts = own * own / f64::from(self.n - 1) + other * other / f64::from(base.n - 1);
        // If all runs are equal after rounding, their scatter is unknown.
        if parts == 0.0 {
            return Err(NotEstimable::Inconclusive);
        }
        let squared = quantile(level, (own + other).powi(2) / parts)?.powi(2);
        // θ² (m₁² - t² v₁) - 2 θ m₁ m₂ + (m₂² - t² v₂) = 0.
        let square = base.mean * base.mean - squared * base.error();
        let rest = self.mean * self.mean - squared * self.error();
        let middle = self.mean * base.mean;
        let root = middle * middle - square * rest;
        if square <= 0.0 || rest <= 0.0 || root < 0.0 {
            return Err(NotEstimable::Inconclusive);
        }
        let (low, high) = ((middle - root.sqrt()) / square, (middle + root.sqrt()) / square);
        Ok(MeanRatio { ratio: Ratio(ratio), interval: Interval { low, high, level } })
    }
}

/// Quantile of Student's t distribution that is exceeded with probability (1 - level) / 2.
pub(crate) fn quantile(level: f64, freedom: f64) -> Result<f64, NotEstimable> {
    let student = StudentsT::new(0.0, 1.0, freedom).map_err(|_| NotEstimable::Unsound)?;
    match 0.0 < level && level < 1.0 {
        true => Ok(student.inverse_cdf(0.5 + level / 2.0)),
        false => Err(NotEstimable::Unsound),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::reference::{lines, near};

    fn moments(mean: f64, deviation: f64, n: u32) -> Moments {
        Moments { mean, deviation, n }
    }

    #[test]
    fn intervals_are_those_of_scipy() {
        let mut seen = 0;
        for line in lines("mean_interval") {
            let [mean, deviation, n, level, low, high] = line[..] else { panic!("{line:?}") };
            let n = format!("{n}").parse().unwrap();
            let found = moments(mean, deviation, n).interval(level).unwrap();
            near(found.low, low, 1e-9);
            near(found.high, high, 1e-9);
            seen += 1;
        }
        assert!(seen >= 4, "{seen}");
    }

    #[test]
    fn ratios_bound_the_set_that_scipy_finds_by_testing() {
        let mut seen = 0;
        for line in lines("mean_ratio") {
            let [m1, s1, n1, m2, s2, n2, level, low, high] = line[..] else { panic!("{line:?}") };
            let count = |n: f64| format!("{n}").parse().unwrap();
            let found =
                moments(m2, s2, count(n2)).over(&moments(m1, s1, count(n1)), level).unwrap();
            near(found.interval.low, low, 1e-7);
            near(found.interval.high, high, 1e-7);
            seen += 1;
        }
        assert!(seen >= 3, "{seen}");
    }

    #[test]
    fn without_a_spread_there_is_no_interval() {
        let one = moments(5.0, 0.0, 1);
        assert_eq!(one.interval(0.95), Err(NotEstimable::Repetitions { least: 1, needed: 2 }));
        let sound = moments(5.0, 0.1, 10);
        assert_eq!(sound.over(&one, 0.95), Err(NotEstimable::Repetitions { least: 1, needed: 2 }));
        assert_eq!(moments(f64::NAN, 1.0, 9).interval(0.95), Err(NotEstimable::Unsound));
        assert_eq!(sound.interval(1.0), Err(NotEstimable::Unsound));
        // A base that may be zero does not bound the ratio.
        assert_eq!(sound.over(&moments(1.0, 9.0, 4), 0.95), Err(NotEstimable::Inconclusive));
        // A ratio that may be zero is rejected: the interval would end below zero.
        assert_eq!(moments(1.0, 9.0, 4).over(&sound, 0.95), Err(NotEstimable::Inconclusive));
        let still = moments(3.0, 0.0, 10).over(&moments(2.0, 0.0, 10), 0.95);
        assert_eq!(still, Err(NotEstimable::Inconclusive), "how they scatter is not known");
        assert_eq!(Moments::of(&[1.0]), None);
        assert_eq!(Moments::of(&[1.0, 3.0]).map(|own| own.mean), Some(2.0));
    }

    proptest! {
        #[test]
        fn a_ratio_holds_its_estimate_and_turns_around(
            (m1, s1, n1) in (1.0..1e6, 0.0..1.5, 2u32..40),
            (m2, s2, n2) in (1.0..1e6, 0.001..1.5, 2u32..40),
        ) {
            let (one, other) = (moments(m1, s1 * m1, n1), moments(m2, s2 * m2, n2));
            if let (Ok(over), Ok(under)) = (other.over(&one, 0.95), one.over(&other, 0.95)) {
                prop_assert!(over.interval.contains(over.ratio.0));
                prop_assert!(over.interval.low > 0.0 && under.interval.low > 0.0);
                near(over.interval.low, 1.0 / under.interval.high, 1e-6);
                near(over.interval.high, 1.0 / under.interval.low, 1e-6);
            }
        }
    }
}
