//! What can be said of a mean of which only a standard deviation and a number of runs are printed.
//!
//! [`Moments`] enter; intervals leave. Nothing here sees the runs themselves, so all of it rests on
//! what their author did not print: that the deviation is the one of a sample (divisor n - 1), that
//! the runs are independent, and that their mean is close to normal. Whoever shows such an interval
//! says so. For runs that are at hand, [`crate::summary`] and [`crate::compare`] assume less.

use model::Ratio;
use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::{Absent, Interval};

/// A mean with the spread of what it is the mean of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// The mean, in any unit.
    pub mean: f64,
    /// Standard deviation of the runs (divisor n - 1), in the same unit.
    pub deviation: f64,
    /// How many runs.
    pub n: u32,
}

/// One mean over another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanRatio {
    /// The second mean over the first.
    pub ratio: Ratio,
    /// Its interval.
    pub interval: Interval,
}

impl Moments {
    /// Of values that are at hand; `None` below two.
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = u32::try_from(values.len()).ok().filter(|n| *n >= 2)?;
        let mean = values.iter().sum::<f64>() / f64::from(n);
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Some(Self { mean, deviation: (squares / f64::from(n - 1)).sqrt(), n })
    }

    /// Variance of the mean.
    fn error(&self) -> f64 {
        self.deviation.powi(2) / f64::from(self.n)
    }

    /// Whether there is a spread to work with.
    fn checked(&self) -> Result<(), Absent> {
        if self.n < 2 {
            return Err(Absent::Repeats { least: self.n, needed: 2 });
        }
        if !(self.mean.is_finite() && self.deviation.is_finite() && self.deviation >= 0.0) {
            return Err(Absent::Unsound);
        }
        Ok(())
    }

    /// The interval of the mean at a level within 0..1: mean ± t(1 - (1 - level) / 2; n - 1) times
    /// deviation over √n (Student, "The probable error of a mean", Biometrika 6, 1908).
    ///
    /// # Errors
    /// [`Absent::Repeats`] below two runs, [`Absent::Unsound`] if a number is none.
    pub fn interval(&self, level: f64) -> Result<Interval, Absent> {
        self.checked()?;
        let half = quantile(level, f64::from(self.n - 1))? * self.error().sqrt();
        Ok(Interval { low: self.mean - half, high: self.mean + half, level })
    }

    /// The mean of `self` over that of `base`, with the interval of Fieller ("Some problems in
    /// interval estimation", Journal of the Royal Statistical Society B 16, 1954) for two
    /// independent means of unequal variances: all θ with (m₂ - θ m₁)² ≤ t² (v₂ + θ² v₁), v being
    /// the variance of a mean, and t with the degrees of freedom of Satterthwaite ("An approximate
    /// distribution of estimates of variance components", Biometrics Bulletin 2, 1946) at the ratio
    /// found.
    ///
    /// # Errors
    /// As [`Moments::interval`]; [`Absent::Unsound`] also where a mean is not above zero, and
    /// [`Absent::Undecided`] where one of them is not told from zero, so that the ratio has no
    /// bound or reaches below what it can be, or where neither scatters at all.
    pub fn over(&self, base: &Self, level: f64) -> Result<MeanRatio, Absent> {
        self.checked()?;
        base.checked()?;
        if self.mean <= 0.0 || base.mean <= 0.0 {
            return Err(Absent::Unsound);
        }
        let ratio = self.mean / base.mean;
        let (own, other) = (self.error(), ratio * ratio * base.error());
        let parts = own * own / f64::from(self.n - 1) + other * other / f64::from(base.n - 1);
        // Few runs that are equal by rounding tell nothing of how they scatter.
        if parts == 0.0 {
            return Err(Absent::Undecided);
        }
        let squared = quantile(level, (own + other).powi(2) / parts)?.powi(2);
        // θ² (m₁² - t² v₁) - 2 θ m₁ m₂ + (m₂² - t² v₂) = 0.
        let square = base.mean * base.mean - squared * base.error();
        let rest = self.mean * self.mean - squared * self.error();
        let middle = self.mean * base.mean;
        let root = middle * middle - square * rest;
        if square <= 0.0 || rest <= 0.0 || root < 0.0 {
            return Err(Absent::Undecided);
        }
        let (low, high) = ((middle - root.sqrt()) / square, (middle + root.sqrt()) / square);
        Ok(MeanRatio { ratio: Ratio(ratio), interval: Interval { low, high, level } })
    }
}

/// The quantile of Student's t that leaves (1 - level) / 2 above it.
fn quantile(level: f64, freedom: f64) -> Result<f64, Absent> {
    let student = StudentsT::new(0.0, 1.0, freedom).map_err(|_| Absent::Unsound)?;
    match 0.0 < level && level < 1.0 {
        true => Ok(student.inverse_cdf(0.5 + level / 2.0)),
        false => Err(Absent::Unsound),
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
        assert_eq!(one.interval(0.95), Err(Absent::Repeats { least: 1, needed: 2 }));
        let sound = moments(5.0, 0.1, 10);
        assert_eq!(sound.over(&one, 0.95), Err(Absent::Repeats { least: 1, needed: 2 }));
        assert_eq!(moments(f64::NAN, 1.0, 9).interval(0.95), Err(Absent::Unsound));
        assert_eq!(sound.interval(1.0), Err(Absent::Unsound));
        // A base that may be zero bounds no ratio.
        assert_eq!(sound.over(&moments(1.0, 9.0, 4), 0.95), Err(Absent::Undecided));
        // Nor does one of which the other may be zero: the interval would end below it.
        assert_eq!(moments(1.0, 9.0, 4).over(&sound, 0.95), Err(Absent::Undecided));
        let still = moments(3.0, 0.0, 10).over(&moments(2.0, 0.0, 10), 0.95);
        assert_eq!(still, Err(Absent::Undecided), "how they scatter is not known");
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
