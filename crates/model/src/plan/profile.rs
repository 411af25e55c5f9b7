//! How sure a run wants to be.

use serde::{Deserialize, Serialize};

use crate::units::Ratio;

/// How sure a run wants to be: one practical threshold drives the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// A first look: differences of 10 % matter.
    Quick,
    /// The default: differences of 5 % matter.
    #[default]
    Standard,
    /// For publication: differences of 2 % matter.
    Rigorous,
}

impl Profile {
    /// Every profile, least sure first.
    pub const ALL: [Self; 3] = [Self::Quick, Self::Standard, Self::Rigorous];

    /// Its name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Rigorous => "rigorous",
        }
    }

    /// The practical threshold δ: differences below it do not matter.
    pub const fn threshold(self) -> Ratio {
        match self {
            Self::Quick => Ratio(0.10),
            Self::Standard => Ratio(0.05),
            Self::Rigorous => Ratio(0.02),
        }
    }

    /// The target half-width of a cell's interval relative to its median: 0.6 δ, since the ratio of
    /// two cells known to ±x is known to about ±1.41 x, and 1.41 · 0.6 δ < δ.
    pub const fn half_width_target(self) -> Ratio {
        Ratio(0.6 * self.threshold().0)
    }

    /// Numbers of repeats after which a cell is looked at, ascending; the last is the cap.
    ///
    /// 6 is the least at which an order-statistic interval of 95 % exists; 8 keeps the coverage of
    /// the sequential rule above 92 % (simulated; `docs/method/statistics.md`).
    pub const fn looks(self) -> &'static [u32] {
        match self {
            Self::Quick => &[6, 8, 10],
            Self::Standard => &[8, 10, 12, 15, 20, 25, 30],
            Self::Rigorous => &[10, 12, 15, 20, 25, 30, 40, 50],
        }
    }
    /// At how many looks in a row every interval has to be within the target before a cell is
    /// closed ahead of the cap.
    ///
    /// With one, a cell is closed where its values happen to lie close together, and its interval
    /// is a little too narrow. Many looks at a narrow target make that worse: under the rigorous
    /// profile, 93.0 % of the intervals of left-tailed values held the median with one look and
    /// 94.5 % with two; 93.5 and 94.5 % of normal ones that scatter by 2 % (20,000 simulated runs
    /// each, with the shapes of `docs/method/calibration.md`).
    pub const fn looks_in_a_row(self) -> usize {
        match self {
            Self::Quick | Self::Standard => 1,
            Self::Rigorous => 2,
        }
    }
}
