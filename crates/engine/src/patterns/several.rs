//! Several files of a worker: selection of the file of each operation, and positions per file.
//!
//! Offsets contain the number of the file ([`crate::file_offset`]).

use fastrand::Rng;
use model::phase::{AccessPattern, FileOrder, FileSharing, Stream, SyncInterval};

use super::{
    BlockSpan, DirectionSource, PlannedOp, Prepared, Skewed, Uniform, draw::below, linear::Forward,
    permutation::Permutation,
};
use crate::{
    file_offset::{FileChange, first_of},
    io::Kind,
};

/// Files of a worker in the order in which it accesses them.
#[derive(Debug)]
pub(super) struct Several<'a> {
    files: Vec<OneFile<'a>>,
    order: FileOrder,
    turn: u64,
    limit: usize,
    // Next file of a rotation.
    next: usize,
    current: Option<usize>,
    left_in_turn: u64,
    open: usize,
    done: usize,
    // Blocks, or operations of independent draws, until the end of the pass.
    left: u64,
    pass: u64,
    syncs: Option<SyncTurns>,
    changes: Vec<FileChange>,
    // Files without blocks that are still open.
    closing: Vec<usize>,
}

#[derive(Debug)]
struct OneFile<'a> {
    positions: Positions<'a>,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Open,
    Done,
}

/// Positions in one file.
#[derive(Debug)]
enum Positions<'a> {
    Forward(Forward),
    PerDirection { read: Forward, write: Forward },
    Permutation(Permutation),
    Uniform(Uniform),
    Skewed(Skewed<'a>),
}

/// Syncs before the next operation: in fio, each takes a turn of the selection of files.
#[derive(Clone, Copy, Debug)]
struct SyncTurns {
    every: u64,
    left: u64,
    file: usize,
}

impl<'a> Positions<'a> {
    fn new(access: AccessPattern, prepared: &'a Prepared, random: &mut Rng) -> Self {
        let n = prepared.blocks;
        match access {
            AccessPattern::Sequential => Self::Forward(Forward::new(0, n)),
            AccessPattern::SequentialPerDirection => {
                Self::PerDirection { read: Forward::new(0, n), write: Forward::new(0, n) }
            }
            AccessPattern::Permutation => {
                Self::Permutation(Permutation::new(n, prepared.lengths.is_some(), random))
            }
            AccessPattern::Random => Self::Uniform(Uniform::new(n)),
            AccessPattern::Zipf { .. }
            | AccessPattern::Pareto { .. }
            | AccessPattern::Hotspot { .. }
            | AccessPattern::Normal { .. }
            | AccessPattern::Zones => {
                let skew = prepared.skew.as_ref().expect("prepared from the same stream");
                Self::Skewed(Skewed::new(skew, n))
            }
            AccessPattern::Backward
            | AccessPattern::Skip { .. }
            | AccessPattern::Runs { .. }
            | AccessPattern::SameBlock
            | AccessPattern::Stride { .. }
            | AccessPattern::IozonePermutation
            | AccessPattern::Append
            | AccessPattern::Trace
            | AccessPattern::Tickets => unreachable!("rejected by `run::check`"),
        }
    }

    /// Next blocks of this direction; `None` if there are no more.
    fn next(&mut self, kind: Kind, random: &mut Rng, count: u64) -> Option<BlockSpan> {
        match self {
            Self::Forward(order) => order.next(count),
            Self::PerDirection { read, .. } if kind == Kind::Read => read.next(count),
            Self::PerDirection { write, .. } => write.next(count),
            Self::Permutation(order) => order.next(count),
            Self::Uniform(order) => order.next(random, count),
            Self::Skewed(order) => order.next(random, count),
        }
    }

    /// Starts over in this direction.
    fn restart(&mut self, kind: Kind, random: &mut Rng, prepared: &'a Prepared) {
        let n = prepared.blocks;
        match self {
            Self::Forward(order) => *order = Forward::new(0, n),
            Self::PerDirection { read, .. } if kind == Kind::Read => *read = Forward::new(0, n),
            Self::PerDirection { write, .. } => *write = Forward::new(0, n),
            Self::Permutation(order) => order.start_over(random),
            Self::Uniform(order) => *order = Uniform::new(n),
            Self::Skewed(order) => *order = Skewed::new(order.skew(), n),
        }
    }

    /// True if draws are independent, so that a file has no end.
    fn has_no_end(&self) -> bool {
        match self {
            Self::Uniform(_) | Self::Skewed(_) => true,
            Self::Forward(_) | Self::PerDirection { .. } | Self::Permutation(_) => false,
        }
    }
}

impl<'a> Several<'a> {
    /// Start of the first pass; `None` for streams of one file per worker.
    pub(super) fn new(
        stream: &Stream,
        prepared: &'a Prepared,
        random: &mut Rng,
    ) -> Option<Box<Self>> {
        let FileSharing::Several(files) = &stream.files else { return None };
        let own = |_: &String| OneFile {
            positions: Positions::new(stream.access_pattern, prepared, random),
            state: State::Closed,
        };
        let every = stream.sync_every.filter(|every| every.before_next);
        let syncs = every.and_then(|every| match every.after {
            SyncInterval::Ops(every) => Some(SyncTurns { every, left: every, file: 0 }),
            SyncInterval::Bytes(_) => None,
        });
        let mut several = Self {
            files: files.names.iter().map(own).collect(),
            order: files.order,
            turn: files.turn.max(1),
            limit: (files.open as usize).clamp(1, files.names.len().max(1)),
            next: 0,
            current: None,
            left_in_turn: 0,
            open: 0,
            done: 0,
            left: 0,
            pass: prepared.blocks.saturating_mul(files.names.len() as u64),
            syncs,
            changes: Vec::with_capacity(files.names.len().min(2) + 2),
            closing: Vec::with_capacity(files.names.len()),
        };
        several.start();
        Some(Box::new(several))
    }

    /// State at the start of a pass: the first files are open.
    fn start(&mut self) {
        for (number, file) in self.files.iter_mut().enumerate() {
            file.state = if number < self.limit { State::Open } else { State::Closed };
        }
        self.open = self.limit.min(self.files.len());
        (self.next, self.current, self.left_in_turn, self.done) = (0, None, 0, 0);
        self.left = self.pass;
        self.changes.clear();
        self.closing.clear();
    }

    /// Starts another pass.
    pub(super) fn start_over(&mut self, random: &mut Rng, prepared: &'a Prepared) {
        for file in &mut self.files {
            file.positions.restart(Kind::Read, random, prepared);
            if let Positions::PerDirection { .. } = file.positions {
                file.positions.restart(Kind::Write, random, prepared);
            }
        }
        self.start();
    }

    /// Next operation of the pass, at an offset with the number of its file.
    #[inline(never)]
    pub(super) fn next(
        &mut self,
        random: &mut Rng,
        direction: DirectionSource,
        count: u64,
        (prepared, block_size): (&'a Prepared, u64),
    ) -> Option<PlannedOp> {
        if self.left == 0 {
            return None;
        }
        if self.syncs.is_some_and(|syncs| syncs.left == 0) {
            let file = self.select(random)?;
            self.syncs = self.syncs.map(|own| SyncTurns { left: own.every, file, ..own });
        }
        let kind = match direction {
            DirectionSource::Always(kind) => kind,
            DirectionSource::Mixed(read) if read.happens(random) => Kind::Read,
            DirectionSource::Mixed(_) | DirectionSource::Scheduled | DirectionSource::Ticket => {
                Kind::Write
            }
        };
        loop {
            let number = self.select(random)?;
            let file = &mut self.files[number];
            let Some(place) = file.positions.next(kind, random, count) else {
                if file.positions.has_no_end() {
                    file.positions.restart(kind, random, prepared);
                    // The same file again.
                    self.left_in_turn += 1;
                    continue;
                }
                file.state = State::Done;
                self.done += 1;
                self.open -= 1;
                self.closing.push(number);
                continue;
            };
            let spent = if file.positions.has_no_end() { 1 } else { place.count };
            self.left = self.left.saturating_sub(spent);
            if let (Some(syncs), Kind::Write) = (&mut self.syncs, kind) {
                syncs.left = syncs.left.saturating_sub(1);
            }
            #[expect(clippy::cast_possible_truncation, reason = "the length of a buffer")]
            let len = (place.count * block_size) as usize;
            return Some(PlannedOp {
                offset: first_of(number) + place.first * block_size,
                len,
                kind,
            });
        }
    }

    /// File of the next operation; `None` if no file has blocks left.
    fn select(&mut self, random: &mut Rng) -> Option<usize> {
        if self.done == self.files.len() {
            return None;
        }
        if let Some(current) = self.current
            && self.files[current].state == State::Open
        {
            if self.order == FileOrder::Sequential {
                return Some(current);
            }
            if self.left_in_turn > 0 {
                self.left_in_turn -= 1;
                return Some(current);
            }
        }
        loop {
            let number = match self.order {
                #[expect(clippy::cast_possible_truncation, reason = "below the length")]
                FileOrder::Random => below(random.u64(..), self.files.len() as u64) as usize,
                FileOrder::RoundRobin | FileOrder::Sequential => {
                    let number = self.next;
                    self.next = if number + 1 == self.files.len() { 0 } else { number + 1 };
                    number
                }
            };
            match self.files[number].state {
                State::Done => continue,
                State::Closed if self.open == self.limit => continue,
                State::Closed => {
                    self.files[number].state = State::Open;
                    self.open += 1;
                    let close = self.closing.first().copied();
                    self.closing.drain(..self.closing.len().min(1));
                    self.changes.push(FileChange { open: number, close });
                }
                State::Open => {}
            }
            self.current = Some(number);
            self.left_in_turn = self.turn - 1;
            return Some(number);
        }
    }

    /// True if the next operation requires changes of files.
    #[inline]
    pub(super) fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// Next change of a file before the next operation.
    pub(super) fn take_change(&mut self) -> Option<FileChange> {
        if self.changes.is_empty() { None } else { Some(self.changes.remove(0)) }
    }

    /// Range of a sync before the next operation: its file, or all files if the length is 0.
    pub(super) fn sync_range(&self) -> (u64, u64) {
        self.syncs.map_or((0, 0), |syncs| (first_of(syncs.file), 1))
    }
}

#[cfg(test)]
mod tests;
