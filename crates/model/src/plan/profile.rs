//! Precision profiles.

use serde::{Deserialize, Serialize};

use crate::units::Ratio;

/// Precision target. The equivalence margin determines all other values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// Quick run: equivalence margin of 10 %.
    Quick,
    /// Default: equivalence margin of 5 %.
    #[default]
    Standard,
    /// For publication: equivalence margin of 2 %.
    Rigorous,
}

impl Profile {
    /// All profiles, least precise first.
    pub const ALL: [Self; 3] = [Self::Quick, Self::Standard, Self::Rigorous];

    /// Name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Standard => "standard",
            Self::Rigorous => "rigorous",
        }
    }

    /// Equivalence margin δ: smallest difference of practical importance.
    pub const fn equivalence_margin(self) -> Ratio {
        match self {
            Self::Quick => Ratio(0.10),
            Self::Standard => Ratio(0.05),
            Self::Rigorous => Ratio(0.02),
        }
    }

    /// Target half-width of the confidence interval of a cell, relative to its median: 0.6 δ. If
    /// two cells are known to ±x each, their ratio is known to about ±1.41 x, and 1.41 · 0.6 δ < δ.
    pub const fn half_width_target(self) -> Ratio {
        Ratio(0.6 * self.equivalence_margin().0)
    }

    /// Numbers of repetitions at which the stopping rule is evaluated, ascending. The last one is
    /// the maximum number of repetitions.
    ///
    /// A 95 % interval of order statistics needs at least 6 repetitions. Profile standard starts at
    /// 8, which keeps the coverage of the stopping rule above 92 % (simulated;
    /// `docs/method/statistics.md`).
    pub const fn interim_analyses(self) -> &'static [u32] {
        match self {
            Self::Quick => &[6, 8, 10],
            Self::Standard => &[8, 10, 12, 15, 20, 25, 30],
            Self::Rigorous => &[10, 12, 15, 20, 25, 30, 40, 50],
        }
    }

    /// Number of consecutive interim analyses at which the intervals of all phases must meet the
    /// target before a cell is closed with fewer than the maximum number of repetitions.
    ///
    /// If a single analysis is enough, cells tend to be closed when their values happen to be close
    /// together, and their intervals are then slightly too narrow. Many analyses and a narrow
    /// target increase this bias. In profile rigorous, one analysis gave a coverage of 93.0 % for
    /// left-tailed values, and of 93.5 % for normal values with a deviation of 2 %. With two
    /// analyses, both were 94.5 % (20,000 simulated runs each, with the distributions of
    /// `docs/method/calibration.md`).
    pub const fn consecutive_analyses(self) -> usize {
        match self {
            Self::Quick | Self::Standard => 1,
            Self::Rigorous => 2,
        }
    }
}
