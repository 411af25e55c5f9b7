//! Access patterns: the sequence of a worker's operations.
//!
//! An [`Order`] is created from a stream before the clock starts, and returns one [`PlannedOp`]
//! after the other. Everything that takes time or memory is in [`Prepared`], which the threads of a
//! phase share. In the loop, an order adds, compares, multiplies, or loads: no allocation,
//! division, or floating-point arithmetic. All patterns have one type, with a branch inside. The
//! branch is predictable and costs about a nanosecond. With a type per pattern, the loop would be
//! compiled some hundred times, instead of once per I/O engine.
//!
//! # Blocks
//!
//! A worker has a part of its file: its segment with [`FileSharing::Segmented`], its blocks with
//! [`FileSharing::Interleaved`], otherwise the
//! whole file. Positions are blocks of that part, 0..n, and every worker traverses its part in the
//! same way: sequential workers of a shared file all begin at its start. Random draws use a
//! generator per worker, seeded for each pass ([`draw::generator`]). Workers and passes therefore
//! have different draws, but runs with the same seed have the same draws.
//!
//! # Passes
//!
//! A pass has n operations. With [`Bound::Once`] and [`Bound::Deadline`] there is one pass. With
//! other bounds, the pattern starts again after each pass. Random patterns then draw other
//! positions; other patterns repeat the same positions. [`AccessPattern::Append`] continues at the
//! end of the previous pass.
//!
//! # Lengths
//!
//! If the stream has lengths, the length of each operation is drawn, and no operation leaves the
//! part:
//!
//! - In sequential, backward, and append patterns, operations are adjacent, and the last operation
//!   is cut to the rest: a pass covers each block once, in fewer than n operations.
//! - In permutations ([`AccessPattern::Permutation`]), an operation is cut at the next accessed
//!   block, so that a pass covers each block once, in fewer than n operations.
//! - All other patterns have n operations per pass. Strides and the permutation of IOzone determine
//!   the start of an operation, which is cut at the end of the part. A random start is drawn from
//!   the starts at which the operation fits. In skewed patterns and for tickets
//!   ([`AccessPattern::Tickets`]), the start is moved back until the operation fits.
//! - A trace ([`AccessPattern::Trace`]) contains the lengths.
//! - An aligned start ([`Stream::offset_alignment`]) is moved back to the last one that fits.
//! - With other lengths of writes ([`Stream::write_sizes`]), the direction of an operation is drawn
//!   first, and with other lengths of jumps ([`Stream::jump_sizes`]), whether it jumps.
//!
//! # Several files
//!
//! A worker with several files has positions per file ([`several`]). A pass has the operations of
//! all of them.

pub(crate) mod alias;
mod aligned;
mod backlog;
mod bijection;
mod direction;
pub(crate) mod draw;
mod iozone_permutation;
mod lengths;
mod linear;
mod pass_order;
mod permutation;
mod prepared;
mod runs;
mod several;
mod skewed;
mod skip;
mod stride;
mod tickets;
mod trace;
mod uniform;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use fastrand::Rng;
use model::{
    Nanos,
    phase::{AccessPattern, Bound, FileSharing, Stream},
};

use crate::{error::Fault, file_offset::FileChange, io::Kind, pace::ByDirection};

use backlog::Backlog;
pub(crate) use bijection::Bijection;
use direction::{DirectionSource, scheduled};
use draw::generator;
use lengths::Lengths;
use linear::{Backward, Forward, PerDirection, SameBlock};
use pass_order::PassOrder;
pub(crate) use prepared::Prepared;
use several::Several;
pub(crate) use skewed::Skew;
use skewed::Skewed;
use skip::Skip;
use stride::Stride;
use tickets::Tickets;
use trace::Trace;
use uniform::Uniform;

/// Planned operation: offset, length, and direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PlannedOp {
    /// Offset in the file.
    pub(crate) offset: u64,
    /// Length in bytes.
    pub(crate) len: usize,
    /// Direction.
    pub(crate) kind: Kind,
}

/// Consecutive blocks in the part of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockSpan {
    /// First block.
    first: u64,
    /// Number of blocks, at least 1.
    count: u64,
}

/// Sequence of the operations of one worker.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    positions: PassOrder<'a>,
    random: Rng,
    lengths: Option<&'a Lengths>,
    write_lengths: Option<&'a Lengths>,
    direction: DirectionSource,
    // Schedules of reads and writes, which determine the direction.
    schedules: Option<Box<ByDirection>>,
    // Operations until the bound. With `taken`: operations of all workers together, a constant.
    left: u64,
    // Bytes until the bound.
    left_bytes: u64,
    // Reads of written blocks between the operations.
    backlog: Option<Box<Backlog>>,
    // True if a pass after the first one has begun since [`Order::take_pass_start`].
    begun_pass: bool,
    taken: Option<&'a AtomicU64>,
    block_size: u64,
    // Distance between two blocks of the part.
    step: u64,
    // Offset of the part in the file.
    base: u64,
    restart: RestartState<'a>,
}

/// State for starting over.
#[derive(Debug)]
struct RestartState<'a> {
    access: AccessPattern,
    prepared: &'a Prepared,
    seed: u64,
    worker: u32,
    // Current pass, and true if it is the only one.
    pass: u64,
    once: bool,
    // True if all passes have the draws of the first one.
    repeats: bool,
}

impl<'a> RestartState<'a> {
    /// Generator of the draws of the current pass.
    fn random(&self) -> Rng {
        generator(self.seed, self.worker, if self.repeats { 0 } else { self.pass })
    }

    /// Start of the current pass: the generator of its draws, and its positions.
    fn begin(&self) -> (Rng, PassOrder<'a>) {
        let mut random = self.random();
        let positions = PassOrder::new(self.access, self.prepared, self.pass, &mut random);
        (random, positions)
    }
}

impl<'a> Order<'a> {
    /// Sequence of a worker. `end` is the length of its file when it was opened, where
    /// [`AccessPattern::Append`] continues.
    ///
    /// # Errors
    /// [`Fault::Trace`] if a trace contains reads for a worker that only writes, or writes for one
    /// that only reads.
    pub(crate) fn new(
        stream: &Stream,
        worker: u32,
        end: u64,
        prepared: &'a Prepared,
    ) -> Result<Self, Fault> {
        let mut order = Self::whole(stream, worker, end, prepared)?;
        let Some(rule) = stream.rest_of else { return Ok(order) };
        let (before, last) = order.passes();
        order = Self::whole(stream, worker, end, prepared)?;
        for _ in 0..before + rule.reads_of(last) {
            let _ = order.planned();
        }
        order.begun_pass = false;
        Ok(order)
    }

    /// Sequence without omissions.
    fn whole(
        stream: &Stream,
        worker: u32,
        end: u64,
        prepared: &'a Prepared,
    ) -> Result<Self, Fault> {
        prepared.trace.check_direction(stream.direction, worker)?;
        let (left, once) = match stream.bound {
            Bound::Once | Bound::Deadline(_) => (u64::MAX, true),
            Bound::Ops(ops) => (ops, false),
            Bound::Amount(amount) => (amount.ops, false),
            // [`Order::together`] sets the limit that the workers share.
            Bound::Together(_) | Bound::Time { .. } => (u64::MAX, false),
        };
        let block_size = stream.block_size.0;
        let mut step = block_size;
        let base = match (stream.access_pattern, &stream.files) {
            (AccessPattern::Append, _) => end,
            (_, FileSharing::Segmented(_)) => u64::from(worker) * prepared.blocks * block_size,
            (_, FileSharing::Interleaved(_)) => {
                step *= u64::from(stream.workers.count.max(1));
                u64::from(worker) * block_size
            }
            (
                _,
                FileSharing::One(_)
                | FileSharing::PerWorker(_)
                | FileSharing::Template(_)
                | FileSharing::Several(_)
                | FileSharing::Shared(_),
            ) => stream.region().map_or(0, |region| region.start(worker)),
        };
        let Stream { access_pattern: access, seed, .. } = *stream;
        let left_bytes = match stream.bound {
            Bound::Amount(amount) => amount.bytes.0,
            Bound::Once
            | Bound::Ops(_)
            | Bound::Together(_)
            | Bound::Time { .. }
            | Bound::Deadline(_) => u64::MAX,
        };
        let repeats = stream.file_handling.is_some_and(|own| own.pass_start.reopens());
        let restart = RestartState { access, prepared, seed, worker, pass: 0, once, repeats };
        let (mut random, mut positions) = restart.begin();
        let mut own = restart.random();
        if let Some(several) = Several::new(stream, prepared, &mut own) {
            (random, positions) = (own, PassOrder::Several(several));
        }
        let direction = DirectionSource::of(stream, worker);
        let lengths = prepared.lengths.as_ref();
        let write_lengths = prepared.write_lengths.as_ref();
        let mut schedules = ByDirection::new(stream, worker).map(Box::new);
        if let Some(schedules) = &mut schedules {
            schedules.start(Nanos(0), worker, stream.workers.count);
        }
        Ok(Self {
            positions,
            random,
            lengths,
            write_lengths,
            direction,
            schedules,
            left,
            left_bytes,
            backlog: stream.verify_backlog.map(|rule| Box::new(Backlog::new(rule))),
            begun_pass: false,
            taken: None,
            block_size,
            step,
            base,
            restart,
        })
    }

    /// Number of operations before the last pass, and in it. The sequence is used up.
    fn passes(&mut self) -> (u64, u64) {
        let (mut before, mut last) = (0, 0);
        while self.planned().is_some() {
            if self.take_pass_start() {
                (before, last) = (before + last, 0);
            }
            last += 1;
        }
        (before, last)
    }

    /// The same sequence, which ends when the workers that share `taken` have started `ops`
    /// operations.
    pub(crate) fn together(self, taken: &'a AtomicU64, ops: u64) -> Self {
        Self { left: ops, taken: Some(taken), ..self }
    }

    /// Limits the rest of the sequence to a number of operations.
    pub(crate) fn limit(&mut self, ops: u64) {
        self.left = self.left.min(ops);
    }

    /// Next operation; `None` when the bound of the stream is reached. Time limits are not checked
    /// here.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<PlannedOp> {
        if self.backlog.is_some() { self.next_with_reads() } else { self.planned() }
    }

    /// Next operation, which may be a read of a written block.
    #[inline(never)]
    fn next_with_reads(&mut self) -> Option<PlannedOp> {
        if !self.backlog.as_ref()?.has_write() {
            let pass = self.restart.pass;
            let write = self.planned()?;
            self.backlog.as_mut()?.plan(write, self.restart.pass > pass);
        }
        self.backlog.as_mut()?.next()
    }

    /// Next operation of the pattern.
    #[inline]
    fn planned(&mut self) -> Option<PlannedOp> {
        let left = match self.taken {
            None => self.left.checked_sub(1)?,
            // Relaxed: nothing else depends on the assignment of operations to workers.
            Some(taken) if taken.fetch_add(1, Relaxed) < self.left => self.left,
            Some(_) => return None,
        };
        let next_in_pass = match self.next_in_pass() {
            Some(next_in_pass) => next_in_pass,
            None => self.start_over()?,
        };
        self.left = left;
        self.spend(next_in_pass)
    }

    /// Subtracts the operation from the bytes until the bound, or cuts it to the rest.
    #[inline]
    fn spend(&mut self, mut next: PlannedOp) -> Option<PlannedOp> {
        if self.left_bytes < next.len as u64 {
            #[expect(clippy::cast_possible_truncation, reason = "less than the length")]
            let rest = (self.left_bytes - self.left_bytes % self.block_size) as usize;
            if rest == 0 {
                return None;
            }
            next.len = rest;
        }
        self.left_bytes -= next.len as u64;
        Some(next)
    }

    /// True, once, if a pass after the first one has begun with the last operation.
    #[inline]
    pub(crate) fn take_pass_start(&mut self) -> bool {
        std::mem::take(&mut self.begun_pass)
    }

    /// True if the last planned operation begins a pass, or requires changes of files before it.
    #[inline]
    pub(crate) fn takes_calls(&self) -> bool {
        let changes = |several: &Several<'_>| several.has_changes();
        self.begun_pass || matches!(&self.positions, PassOrder::Several(own) if changes(own))
    }

    /// Next change of a file before the last planned operation.
    pub(crate) fn take_change(&mut self) -> Option<FileChange> {
        if let PassOrder::Several(several) = &mut self.positions {
            several.take_change()
        } else {
            None
        }
    }

    /// Range of a sync whose operations were in this range.
    pub(crate) fn sync_range(&self, range: (u64, u64)) -> (u64, u64) {
        if let PassOrder::Several(several) = &self.positions { several.sync_range() } else { range }
    }

    /// Next operation of this pass.
    #[inline]
    fn next_in_pass(&mut self) -> Option<PlannedOp> {
        let (count, direction) = self.draw_length();
        let random = &mut self.random;
        let mut back = false;
        let place = match &mut self.positions {
            PassOrder::Forward(order) => order.next(count),
            PassOrder::PerDirection(order) => {
                // The direction selects the position.
                let kind = match direction {
                    DirectionSource::Always(kind) => kind,
                    DirectionSource::Mixed(read) if read.happens(random) => Kind::Read,
                    DirectionSource::Scheduled => {
                        scheduled(&mut self.schedules, count * self.block_size)
                    }
                    DirectionSource::Mixed(_) | DirectionSource::Ticket => Kind::Write,
                };
                let place = order.next(kind, count)?;
                #[expect(clippy::cast_possible_truncation, reason = "the length of a buffer")]
                let len = (place.count * self.block_size) as usize;
                return Some(PlannedOp { offset: self.base + place.first * self.step, len, kind });
            }
            PassOrder::Backward(order) => order.next(count),
            PassOrder::Same(order) => order.next(count),
            PassOrder::Stride(order) => order.next(count),
            PassOrder::IozonePermutation(order) => order.next(count),
            PassOrder::Permutation(order) => order.next(count),
            PassOrder::Uniform(order) => order.next(random, count),
            PassOrder::Skewed(order) => order.next(random, count),
            PassOrder::Aligned(order) => order.next(random, count),
            PassOrder::AlignedPerDirection { read, write } => {
                let reads = matches!(direction, DirectionSource::Always(Kind::Read));
                if reads { read.next(random, count) } else { write.next(random, count) }
            }
            PassOrder::Skip(order) => order.next(count),
            PassOrder::Runs(order) => {
                let jumps = order.jumps(random);
                let lengths = self.restart.prepared.jump_lengths.as_ref().filter(|_| jumps);
                let count = lengths.map_or(count, |lengths| lengths.draw(random));
                order.next(random, count, jumps)
            }
            PassOrder::Tickets(order) => {
                let (place, ticket) = order.next(random, count)?;
                back = ticket;
                Some(place)
            }
            PassOrder::Listed(order) => {
                let next_in_pass = order.next()?;
                return Some(PlannedOp {
                    offset: self.base + next_in_pass.offset,
                    ..*next_in_pass
                });
            }
            PassOrder::Several(several) => {
                let units = (self.restart.prepared, self.block_size);
                let len = count * self.block_size;
                let direction = direction.fixed(&mut self.schedules, len);
                let next = several.next(random, direction, count, units)?;
                return Some(PlannedOp { offset: self.base + next.offset, ..next });
            }
        }?;
        #[expect(clippy::cast_possible_truncation, reason = "the length of a buffer in memory")]
        let len = (place.count * self.block_size) as usize;
        let kind = |reads| if reads { Kind::Read } else { Kind::Write };
        let kind = match direction {
            DirectionSource::Always(kind) => kind,
            DirectionSource::Mixed(read) => kind(read.happens(random)),
            DirectionSource::Scheduled => scheduled(&mut self.schedules, len as u64),
            DirectionSource::Ticket => kind(!back),
        };
        Some(PlannedOp { offset: self.base + place.first * self.step, len, kind })
    }

    /// Draws the length of the next operation in blocks, and its direction if the length depends on
    /// it.
    #[inline(always)]
    fn draw_length(&mut self) -> (u64, DirectionSource) {
        let (random, direction) = (&mut self.random, self.direction);
        match (self.lengths, self.write_lengths) {
            (None, None) => (1, direction),
            (Some(lengths), None) => (lengths.draw(random), direction),
            (reads, Some(writes)) => {
                let kind = direction.draw(random);
                let count = match kind {
                    Kind::Read => reads.map_or(1, |own| own.draw(random)),
                    Kind::Write => writes.draw(random),
                };
                (count, DirectionSource::Always(kind))
            }
        }
    }

    #[cold]
    fn start_over(&mut self) -> Option<PlannedOp> {
        if self.restart.once {
            return None;
        }
        self.restart.pass += 1;
        self.begun_pass = true;
        if let PassOrder::Several(several) = &mut self.positions {
            self.random = self.restart.random();
            several.start_over(&mut self.random, self.restart.prepared);
        } else if let PassOrder::Permutation(order) = &mut self.positions {
            self.random = self.restart.random();
            order.start_over(&mut self.random);
        } else {
            (self.random, self.positions) = self.restart.begin();
        }
        self.next_in_pass()
    }
}

/// Small number as an index, for tests.
#[cfg(test)]
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

#[cfg(test)]
mod tests;
