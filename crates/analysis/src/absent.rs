//! Why a figure is not estimable, as a value.
//!
//! Data that are sound in themselves may still not carry a figure: too few repeats for an interval,
//! too few levels for a curve. Such a figure is `Err(Absent)` beside those that are there, so that
//! a view can say what is missing. Data that are *not* sound are an [`crate::Error`] instead.

use model::Ratio;

/// Why one figure is not estimable. Its text says what is missing, and what would help.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum Absent {
    /// Too few repeats.
    #[error("only {least} repeats; measure at least {needed}")]
    Repeats {
        /// The fewest repeats of what enters the figure.
        least: u32,
        /// How many it takes.
        needed: u32,
    },
    /// Too few levels.
    #[error("only {levels} levels; sweep at least {needed}")]
    Levels {
        /// How many there are.
        levels: u32,
        /// How many it takes.
        needed: u32,
    },
    /// Too few values in a row.
    #[error("only {points} values in a row; give at least {needed}")]
    Points {
        /// How many there are.
        points: u32,
        /// How many it takes.
        needed: u32,
    },
    /// Too few intervals of a phase that each have enough operations.
    #[error(
        "only {intervals} intervals with enough operations; {needed} tell, so run the phase longer"
    )]
    Intervals {
        /// How many there are.
        intervals: u32,
        /// How many it takes.
        needed: u32,
    },
    /// Too few operations lie beyond a percentile.
    #[error("only {least} operations in a run; the percentile takes {needed}")]
    Operations {
        /// The fewest operations of a run.
        least: u64,
        /// How many it takes.
        needed: u64,
    },
    /// Not every part was repeated as often as the others of its level.
    #[error(
        "repeats are not equal in number; give each run as many windows, each instance as many runs"
    )]
    Unbalanced,
    /// A value is not a number, or infinite.
    #[error("value {index} is not a finite number; leave failed trials out")]
    NotFinite {
        /// Its index in the slice.
        index: usize,
    },
    /// The levels lie too close together.
    #[error("the levels span only {span:.3}-fold; sweep at least {needed:.0}-fold")]
    Span {
        /// The largest level over the smallest.
        span: f64,
        /// How large that has to be.
        needed: f64,
    },
    /// There is no workload that both contenders were measured with.
    #[error("no workload was measured with both; measure one with each")]
    Workloads,
    /// A value has no logarithm, so it has no place in a ratio.
    #[error("a value is not a finite number above zero; ratios need such, so take another metric")]
    Unsound,
    /// The figure is one of rates, and more of this metric is not better.
    #[error("the metric is no rate; look at one of which more is better")]
    NotARate,
    /// Trials do not say which block they belong to.
    #[error("the blocks of the repeats are unknown; measure in blocks")]
    Blocks,
    /// All values are the same, so there is nothing to explain.
    #[error("all values are equal; measure something that varies")]
    Constant,
    /// The chosen curve misses a level by more than it may.
    #[error("no curve fits: at {clients} clients it is {:.0} % off; read the points", residual.0 * 100.0)]
    Misfit {
        /// The level it misses most.
        clients: u32,
        /// How far the median is from the curve, as a share of the curve, without sign.
        residual: Ratio,
    },
    /// The chosen curve has no peak, or its peak may be infinitely far.
    #[error("no peak within the tested range; test more clients to look for one")]
    NoPeak,
    /// The data do not tell the possible shapes apart.
    #[error("the differences are not decided; measure more repeats")]
    Undecided,
    /// The two curves do not have this level, or their smallest level, in common.
    #[error("the levels are not the same in both; measure both at the same levels")]
    NotShared,
}
