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
    /// The levels lie too close together.
    #[error("the levels span only {span:.3}-fold; sweep at least {needed:.0}-fold")]
    Span {
        /// The largest level over the smallest.
        span: f64,
        /// How large that has to be.
        needed: f64,
    },
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
