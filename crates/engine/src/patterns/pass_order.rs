//! Positions of one pass: a variant for each access pattern.

use fastrand::Rng;
use model::phase::AccessPattern;

use super::{
    Backward, Forward, Lengths, PerDirection, PlannedOp, Prepared, SameBlock, Several, Skewed,
    Skip, Stride, Tickets, Uniform,
    aligned::{Aligned, Draws},
    bijection::Bijection,
    iozone_permutation::IozonePermutation,
    permutation::Permutation,
    runs::Runs,
};

/// Positions of one pass.
#[derive(Debug)]
pub(super) enum PassOrder<'a> {
    Forward(Forward),
    PerDirection(PerDirection),
    Backward(Backward),
    Same(SameBlock),
    Stride(Stride),
    IozonePermutation(IozonePermutation<'a>),
    Permutation(Permutation),
    Uniform(Uniform),
    Tickets(Tickets),
    Skewed(Skewed<'a>),
    Aligned(Aligned<'a>),
    AlignedPerDirection { read: Aligned<'a>, write: Aligned<'a> },
    Skip(Skip),
    Runs(Runs),
    Listed(std::slice::Iter<'a, PlannedOp>),
    Several(Box<Several<'a>>),
}

impl<'a> PassOrder<'a> {
    /// Start of a pass.
    pub(super) fn new(
        access: AccessPattern,
        prepared: &'a Prepared,
        pass: u64,
        random: &mut Rng,
    ) -> Self {
        let n = prepared.blocks;
        let places = n / prepared.alignment;
        let aligned = |order| Self::Aligned(Aligned::new(order, prepared.alignment, n));
        match access {
            AccessPattern::Sequential => Self::Forward(Forward::new(0, n)),
            AccessPattern::SequentialPerDirection => Self::PerDirection(PerDirection::new(n)),
            AccessPattern::Append => Self::Forward(Forward::new(n * pass, n)),
            AccessPattern::Backward => Self::Backward(Backward::new(n)),
            AccessPattern::SameBlock => Self::Same(SameBlock::new(n)),
            AccessPattern::Stride { blocks } => Self::Stride(Stride::new(n, blocks)),
            AccessPattern::IozonePermutation => {
                Self::IozonePermutation(IozonePermutation::new(&prepared.permutation))
            }
            AccessPattern::Permutation => {
                Self::Permutation(Permutation::new(n, prepared.lengths.is_some(), random))
            }
            AccessPattern::Random if prepared.write_lengths.is_some() => {
                let own = |lengths: &Option<Lengths>| {
                    let alignment = lengths.as_ref().map_or(1, Lengths::smallest);
                    Aligned::new(Draws::Uniform(Uniform::new(n / alignment)), alignment, n)
                };
                let (read, write) = (own(&prepared.lengths), own(&prepared.write_lengths));
                Self::AlignedPerDirection { read, write }
            }
            AccessPattern::Random if places < n => aligned(Draws::Uniform(Uniform::new(places))),
            AccessPattern::Random => Self::Uniform(Uniform::new(n)),
            AccessPattern::Tickets => Self::Tickets(Tickets::new(n)),
            AccessPattern::Zipf { .. }
            | AccessPattern::Pareto { .. }
            | AccessPattern::Hotspot { .. }
            | AccessPattern::Normal { .. }
            | AccessPattern::Zones => {
                let skew = prepared.skew.as_ref().expect("prepared from the same stream");
                let order = Skewed::new(skew, places);
                if places < n { aligned(Draws::Skewed(order)) } else { Self::Skewed(order) }
            }
            AccessPattern::Skip { blocks } => Self::Skip(Skip::new(n, blocks)),
            AccessPattern::Runs { jump, unique } => {
                let unique = unique.then(|| Bijection::new(n, random));
                Self::Runs(Runs::new(n, prepared.alignment, jump, unique))
            }
            AccessPattern::Trace => Self::Listed(prepared.trace.operations()),
        }
    }
}
