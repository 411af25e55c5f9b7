//! Orders: where the operations of a worker go, one after the other.
//!
//! An [`Order`] is made from a stream before the clock starts, with everything that takes time or
//! memory ([`Prepared`], which the threads of a phase share), and answers one [`Visit`] after the
//! other. In the loop it adds, compares, multiplies, or loads: no allocation, no division, no
//! floating point. An order is a value with a branch inside, not a type for each kind: the branch
//! goes the same way every time and costs about a nanosecond, and the loop is compiled once for
//! each I/O engine instead of some hundred times.
//!
//! # Places
//!
//! A worker has a part of its file: its own share with [`Files::Split`], else the whole. Places are
//! records of that part, 0..n, and every worker goes over its part in the same way: those that
//! share a file sequentially all begin at its start. What is drawn comes from a generator of the
//! worker's own, seeded anew for each pass ([`draw::generator`]), so workers and passes differ and
//! runs do not.
//!
//! # Passes
//!
//! A pass is n visits, and with [`Bound::Once`] there is one. With the other bounds the order
//! starts over as often as needed: with other draws, or the same places again if nothing is drawn.
//! [`Access::Append`] goes on where the pass before ended.
//!
//! # Lengths
//!
//! Where the stream has lengths, the length of each operation is drawn, and no operation leaves the
//! part:
//!
//! - Sequential, backward, and appending orders join their operations end to end, the last being
//!   cut to what is left: a pass covers each record once, in fewer operations than n.
//! - All others make n visits in a pass. A stride, a shuffled, or a permuted order tells where an
//!   operation begins, and it is cut at the end of the part. A random place is drawn from those
//!   where the operation fits. A place of a skewed order is moved back until the operation fits.
//! - The place of a ticket is moved back until the operation fits.
//! - A list ([`Access::Replay`]) has lengths of its own.

pub(crate) mod alias;
mod bijection;
pub(crate) mod draw;
mod lengths;
mod linear;
mod permuted;
mod replay;
mod shuffled;
mod skewed;
mod stride;
mod tickets;
mod uniform;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use fastrand::Rng;
use model::phase::{Access, Bound, Direction, Files, Stream};

use crate::{error::Fault, io::Kind};

pub(crate) use bijection::Bijection;
use draw::{Chance, generator};
use lengths::Lengths;
use linear::{Backward, Forward, SameRecord};
use permuted::Permuted;
use replay::List;
use shuffled::{Shuffled, permutation};
use skewed::{Skew, Skewed};
use stride::Stride;
use tickets::Tickets;
use uniform::Uniform;

/// One operation to be: where, how much, which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Visit {
    /// Offset in the file.
    pub(crate) offset: u64,
    /// Length in bytes.
    pub(crate) len: usize,
    /// Which way.
    pub(crate) kind: Kind,
}

/// Records next to each other, within the part of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    /// The first one.
    first: u64,
    /// How many, at least 1.
    count: u64,
}

/// What the orders of all workers of a phase share; made once for each process.
#[derive(Debug)]
pub(crate) struct Prepared {
    // Records in the part of each worker.
    records: u64,
    permutation: Vec<u64>,
    skew: Option<Skew>,
    list: List,
    lengths: Option<Lengths>,
}

impl Prepared {
    /// Whatever the access of this stream needs: a permutation (8 bytes for each record), a table
    /// (below 100 KiB), or a list that is read here (24 bytes for each operation).
    ///
    /// # Errors
    /// [`Fault::Memory`] when it does not fit into memory; [`Fault::ListFile`] when the list cannot
    /// be read; [`Fault::List`] when one of its lines is no operation of this stream.
    pub(crate) fn new(stream: &Stream) -> Result<Self, Fault> {
        let records = part(stream);
        let replays = stream.access == Access::Replay;
        Ok(Self {
            records,
            permutation: permutation(stream.access, records)?,
            skew: Skew::new(stream, records),
            list: if replays { List::read(stream, records)? } else { List::default() },
            lengths: if replays { None } else { Lengths::new(&stream.lengths, records) },
        })
    }
}

/// Records in the part of each worker.
fn part(stream: &Stream) -> u64 {
    let records = stream.size.0 / stream.record.0;
    match stream.files {
        Files::Split(_) => records / u64::from(stream.workers.count.max(1)),
        Files::One(_) | Files::PerWorker(_) | Files::Shared(_) => records,
    }
}

/// The operations of one worker, one after the other.
#[derive(Debug)]
pub(crate) struct Order<'a> {
    places: Places<'a>,
    random: Rng,
    lengths: Option<&'a Lengths>,
    way: Way,
    // Operations until the bound; with `taken` that of all workers, and it stays as it is.
    left: u64,
    taken: Option<&'a AtomicU64>,
    record: u64,
    // Offset of the part in the file.
    base: u64,
    again: Again<'a>,
}

/// What it takes to start over.
#[derive(Debug)]
struct Again<'a> {
    access: Access,
    prepared: &'a Prepared,
    seed: u64,
    worker: u32,
    // The pass that is under way, and whether it is the only one.
    pass: u64,
    once: bool,
}

impl<'a> Again<'a> {
    /// The pass under way, from its start: the generator of its draws, and its places.
    fn begin(&self) -> (Rng, Places<'a>) {
        let mut random = generator(self.seed, self.worker, self.pass);
        let places = Places::new(self.access, self.prepared, self.pass, &mut random);
        (random, places)
    }
}

/// The places of one pass.
#[derive(Debug)]
enum Places<'a> {
    Forward(Forward),
    Backward(Backward),
    Same(SameRecord),
    Stride(Stride),
    Shuffled(Shuffled<'a>),
    Permuted(Permuted),
    Uniform(Uniform),
    Tickets(Tickets),
    Skewed(Skewed<'a>),
    Listed(std::slice::Iter<'a, Visit>),
}

impl<'a> Places<'a> {
    fn new(access: Access, prepared: &'a Prepared, pass: u64, random: &mut Rng) -> Self {
        let n = prepared.records;
        match access {
            Access::Sequential => Self::Forward(Forward::new(0, n)),
            Access::Append => Self::Forward(Forward::new(n * pass, n)),
            Access::Backward => Self::Backward(Backward::new(n)),
            Access::SameRecord => Self::Same(SameRecord::new(n)),
            Access::Stride { records } => Self::Stride(Stride::new(n, records)),
            Access::Shuffled => Self::Shuffled(Shuffled::new(&prepared.permutation)),
            Access::Permuted => Self::Permuted(Permuted::new(n, random)),
            Access::Random => Self::Uniform(Uniform::new(n)),
            Access::Tickets => Self::Tickets(Tickets::new(n)),
            Access::Zipf { .. } | Access::Pareto { .. } | Access::Hot { .. } => {
                let skew = prepared.skew.as_ref().expect("prepared from the same stream");
                Self::Skewed(Skewed::new(skew, n))
            }
            Access::Replay => Self::Listed(prepared.list.visits()),
        }
    }
}

/// Which way operations go.
#[derive(Clone, Copy, Debug)]
enum Way {
    Always(Kind),
    /// A read by this chance, else a write.
    Mixed(Chance),
    /// As the ticket says: a write if it is a multiple of ten, else a read.
    Ticket,
}

impl Way {
    fn of(stream: &Stream, worker: u32) -> Self {
        match stream.direction {
            Direction::Update(_) if stream.access == Access::Tickets => Self::Ticket,
            Direction::Mixed(share) => Self::Mixed(Chance::new(share)),
            Direction::Update(share) => Self::Mixed(Chance::new(1.0 - share)),
            Direction::Read | Direction::Write | Direction::Alternate | Direction::FirstRead(_) => {
                let reads = stream.direction.reads(worker);
                Self::Always(if reads { Kind::Read } else { Kind::Write })
            }
        }
    }
}

impl<'a> Order<'a> {
    /// The order of a worker. `end` is the length of its file when it was opened, from where
    /// [`Access::Append`] goes on.
    ///
    /// # Errors
    /// [`Fault::List`] when a list has reads for a worker that only writes, or the other way round.
    pub(crate) fn new(
        stream: &Stream,
        worker: u32,
        end: u64,
        prepared: &'a Prepared,
    ) -> Result<Self, Fault> {
        prepared.list.suits(stream.direction, worker)?;
        let (left, once) = match stream.bound {
            Bound::Once => (u64::MAX, true),
            Bound::Ops(ops) => (ops, false),
            // Of the others' operations an order knows nothing but by `together`.
            Bound::Together(_) | Bound::Time { .. } => (u64::MAX, false),
        };
        let record = stream.record.0;
        let base = match (stream.access, &stream.files) {
            (Access::Append, _) => end,
            (_, Files::Split(_)) => u64::from(worker) * prepared.records * record,
            (_, Files::One(_) | Files::PerWorker(_) | Files::Shared(_)) => 0,
        };
        let Stream { access, seed, .. } = *stream;
        let again = Again { access, prepared, seed, worker, pass: 0, once };
        let (random, places) = again.begin();
        let (lengths, way) = (prepared.lengths.as_ref(), Way::of(stream, worker));
        Ok(Self { places, random, lengths, way, left, taken: None, record, base, again })
    }

    /// The same order, but over when the workers that share `taken` had `ops` operations together.
    pub(crate) fn together(self, taken: &'a AtomicU64, ops: u64) -> Self {
        Self { left: ops, taken: Some(taken), ..self }
    }

    /// The next operation; `None` when the bound of the stream is reached, which never happens
    /// where that is a time.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Visit> {
        let left = match self.taken {
            None => self.left.checked_sub(1)?,
            // Nothing else depends on who takes which.
            Some(taken) if taken.fetch_add(1, Relaxed) < self.left => self.left,
            Some(_) => return None,
        };
        let visit = match self.visit() {
            Some(visit) => visit,
            None => self.start_over()?,
        };
        self.left = left;
        Some(visit)
    }

    /// The next operation of this pass.
    #[inline]
    fn visit(&mut self) -> Option<Visit> {
        let random = &mut self.random;
        let mut back = false;
        let count = match self.lengths {
            None => 1,
            Some(lengths) => lengths.draw(random),
        };
        let place = match &mut self.places {
            Places::Forward(order) => order.next(count),
            Places::Backward(order) => order.next(count),
            Places::Same(order) => order.next(count),
            Places::Stride(order) => order.next(count),
            Places::Shuffled(order) => order.next(count),
            Places::Permuted(order) => order.next(count),
            Places::Uniform(order) => order.next(random, count),
            Places::Skewed(order) => order.next(random, count),
            Places::Tickets(order) => {
                let (place, ticket) = order.next(random, count)?;
                back = ticket;
                Some(place)
            }
            Places::Listed(order) => {
                let visit = order.next()?;
                return Some(Visit { offset: self.base + visit.offset, ..*visit });
            }
        }?;
        let kind = |reads| if reads { Kind::Read } else { Kind::Write };
        let kind = match self.way {
            Way::Always(kind) => kind,
            Way::Mixed(read) => kind(read.happens(random)),
            Way::Ticket => kind(!back),
        };
        #[expect(clippy::cast_possible_truncation, reason = "the length of a buffer in memory")]
        let len = (place.count * self.record) as usize;
        Some(Visit { offset: self.base + place.first * self.record, len, kind })
    }

    #[cold]
    fn start_over(&mut self) -> Option<Visit> {
        if self.again.once {
            return None;
        }
        self.again.pass += 1;
        (self.random, self.places) = self.again.begin();
        self.visit()
    }
}

/// A small number as an index, for tests.
#[cfg(test)]
fn index(number: u64) -> usize {
    usize::try_from(number).unwrap()
}

#[cfg(test)]
mod tests;
