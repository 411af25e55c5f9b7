//! Reasons that a statistic cannot be estimated.
//!
//! A statistic may need more data than there are: too few repetitions for an interval, too few
//! levels for a curve. Such a statistic is `Err(NotEstimable)`, next to other statistics that could
//! be computed, so that a report can state the reason. Invalid data are a [`crate::Error`] instead.

use model::Ratio;

/// Reason that one statistic cannot be estimated. The message includes a hint.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum NotEstimable {
    /// Too few repetitions.
    #[error("only {least} repetitions; measure at least {needed}")]
    Repetitions {
        /// Fewest repetitions of any cell that the statistic uses.
        least: u32,
        /// Number of repetitions needed.
        needed: u32,
    },
    /// The measured combinations do not separate the effects.
    #[error("confounded with other effects; measure more combinations")]
    Confounded,
    /// Too few levels.
    #[error("only {levels} levels; sweep at least {needed}")]
    Levels {
        /// Number of levels.
        levels: u32,
        /// Number of levels needed.
        needed: u32,
    },
    /// The series has too few values.
    #[error("only {points} values in the series; use at least {needed}")]
    Points {
        /// Number of values.
        points: u32,
        /// Number of values needed.
        needed: u32,
    },
    /// Too few intervals of a phase have enough operations.
    #[error(
        "only {intervals} intervals with enough operations, {needed} needed; run the phase longer"
    )]
    Intervals {
        /// Number of intervals with enough operations.
        intervals: u32,
        /// Number of intervals needed.
        needed: u32,
    },
    /// Too few operations exceed a percentile.
    #[error("only {least} operations in a run, {needed} needed for the percentile")]
    Operations {
        /// Fewest operations of any run.
        least: u64,
        /// Number of operations needed.
        needed: u64,
    },
    /// The parts of a level have different numbers of repetitions.
    #[error(
        "unequal numbers of repetitions; measure the same number of windows per run and runs per instance"
    )]
    Unbalanced,
    /// A value is not a number, or infinite.
    #[error("value {index} is not a finite number; exclude failed trials")]
    NotFinite {
        /// Index of the value in the slice.
        index: usize,
    },
    /// The range of levels is too small.
    #[error("the levels span only {span:.3}-fold; sweep at least {needed:.0}-fold")]
    Span {
        /// Largest level over the smallest level.
        span: f64,
        /// Minimum ratio.
        needed: f64,
    },
    /// No workload was measured for both contenders.
    #[error("no workload was measured for both; measure one for both")]
    Workloads,
    /// A value has no logarithm, so no ratio can be formed.
    #[error("a value is not a finite number above zero; use another metric")]
    Unsound,
    /// The statistic applies only to rates, metrics of which higher is better.
    #[error("the metric is not a rate; use one for which higher is better")]
    NotARate,
    /// The trials do not record their block.
    #[error("the rounds of the repetitions are unknown; measure in rounds")]
    Blocks,
    /// All values are equal, so there is no variance to explain.
    #[error("all values are equal; use a metric that varies")]
    Constant,
    /// The fitted curve is too far from a level.
    #[error("no curve fits: at {clients} clients the best is {:.0} % off; use the points instead", residual.0 * 100.0)]
    Misfit {
        /// Level with the largest residual.
        clients: u32,
        /// Relative distance of the median from the curve, unsigned.
        residual: Ratio,
    },
    /// The fitted curve has no peak, or the interval of its peak is unbounded.
    #[error("no peak in the tested range; test more clients")]
    NoPeak,
    /// The data do not distinguish between the possible shapes.
    #[error("inconclusive differences; measure more repetitions")]
    Inconclusive,
    /// The two curves have different smallest levels, or only one curve has the requested level.
    #[error("the levels differ; measure both at the same levels")]
    NotShared,
}
