//! Data of access patterns that is prepared before the clock starts.

use model::phase::{AccessPattern, Stream};

use super::{Lengths, Skew, Trace, iozone_permutation::permutation, permutation::Permutation};
use crate::error::Fault;

/// Data that the access patterns of all workers share; created once per process.
#[derive(Debug)]
pub(crate) struct Prepared {
    // Blocks in the part of each worker.
    pub(super) blocks: u64,
    // Alignment of random positions in blocks.
    pub(super) alignment: u64,
    pub(super) permutation: Vec<u64>,
    pub(super) skew: Option<Skew>,
    pub(super) trace: Trace,
    pub(super) lengths: Option<Lengths>,
    pub(super) write_lengths: Option<Lengths>,
    pub(super) jump_lengths: Option<Lengths>,
}

impl Prepared {
    /// Prepares the access pattern of this stream: a permutation (8 bytes per block), a table
    /// (below 100 KiB), or a trace that is read here (24 bytes per operation).
    ///
    /// # Errors
    /// [`Fault::Memory`] if there is not enough memory; [`Fault::TraceFile`] if the trace cannot be
    /// read; [`Fault::Trace`] if one of its lines is not an operation of this stream.
    pub(crate) fn new(stream: &Stream) -> Result<Self, Fault> {
        let blocks = part(stream);
        let alignment = u64::from(stream.offset_alignment).max(1);
        let replays = stream.access_pattern == AccessPattern::Trace;
        if stream.access_pattern == AccessPattern::Permutation && !stream.block_sizes.is_empty() {
            Permutation::check_memory(blocks)?;
        }
        Ok(Self {
            blocks,
            alignment,
            permutation: permutation(stream.access_pattern, blocks)?,
            skew: Skew::new(stream, blocks / alignment),
            trace: if replays { Trace::read(stream, blocks)? } else { Trace::default() },
            lengths: if replays { None } else { Lengths::new(&stream.block_sizes, blocks) },
            write_lengths: Lengths::new(&stream.write_sizes, blocks),
            jump_lengths: Lengths::new(&stream.jump_sizes, blocks),
        })
    }
}

/// Blocks in the part of each worker.
fn part(stream: &Stream) -> u64 {
    let blocks = stream.region_size().0 / stream.block_size.0;
    let workers = if stream.files.divides_file() { stream.workers.count } else { 1 };
    blocks / u64::from(workers.max(1))
}
