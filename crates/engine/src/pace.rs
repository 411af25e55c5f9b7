//! Start times of operations: closed loops with and without pauses, rate limits, the open loop, and
//! the timestamps of a loadfile, which form an open loop as well.
//!
//! # Open loop
//!
//! Operations are scheduled independently of the completion of earlier operations, and the latency
//! of each begins at its scheduled start. Example: the device stalls for 500 ms while 50 operations
//! are due. The latencies of all 50 include their wait. A loop that measures from the actual start
//! records one slow operation and 49 fast ones (coordinated omission). The latency also includes
//! the time that an operation waits for a free slot of the queue.
//!
//! # Exponential intervals without floating point
//!
//! The intervals of a Poisson process have density `exp(-x)`, in units of their mean. Half of all
//! intervals are below ln 2, half of the others below 2 ln 2, and so on. Hence x = k ln 2 + y,
//! where k counts the leading zeros of a random word (probability `2^-(k+1)`), and y is exponential
//! from 0 to ln 2. Example: the word `0b001…` has k = 2, so x is from 1.39 to 2.08. y is one of
//! [`STEPS`] equally likely values. Each of them is the mean of one part of the distribution of y,
//! so the mean of the intervals is exact. The largest k is 64.

use model::{
    Bytes, Nanos,
    phase::{Arrivals, Pace, Rate, Stream},
};

use crate::io::Kind;

const STEPS: usize = 1024;
/// The number 1 with 32 fraction bits.
const ONE: f64 = 4_294_967_296.0;

/// Schedule of a worker's operations.
#[derive(Debug)]
pub(crate) enum Pacer {
    /// Operations start immediately.
    Free,
    /// The worker pauses between operations. All other operations start immediately.
    Think(Think),
    /// Operations start at scheduled times.
    Schedule(Box<Schedule>),
    /// Operations start at the scheduled times of their direction.
    ByDirection(Box<ByDirection>),
    /// Operations start at the timestamps of a loadfile.
    Timestamps {
        /// Start of the current repetition.
        base: Nanos,
        /// Last timestamp.
        last: Nanos,
    },
}

/// Pauses between operations.
#[derive(Debug)]
pub(crate) struct Think {
    // Number of operations between two pauses, and the number at which the next one begins.
    ops: u64,
    next: u64,
    issued: u64,
    // Operations are counted when they complete.
    completed: bool,
    // Time between two pauses, 0 if unlimited, and the instant of the next one.
    every: Nanos,
    at: Nanos,
    pause: Nanos,
    spin: Nanos,
}

/// Scheduled start times of operations.
#[derive(Debug)]
pub(crate) struct Schedule {
    // Scheduled start of the next operation in nanoseconds with 32 fraction bits.
    due: u128,
    // Time between two operations, or between two bytes, in the same unit.
    gap: u128,
    per_byte: bool,
    // True if operations are scheduled independently of earlier ones.
    open: bool,
    // True if reads start immediately: those of a backlog, as in fio 3.33 (traced).
    writes_only: bool,
    poisson: Option<Poisson>,
}

#[derive(Debug)]
struct Poisson {
    random: fastrand::Rng,
    // Exponential variates below ln 2 as fractions of the mean with 32 fraction bits.
    table: Box<[u64]>,
}

impl Pacer {
    /// Schedule for a worker of a stream. Rates are divided evenly among the workers.
    pub(crate) fn new(stream: &Stream, worker: u32) -> Self {
        let (rate, open, arrivals) = match stream.pace {
            Pace::Free => return Self::Free,
            Pace::Think { ops, pause, spin, completed, every } => {
                let (next, at) = (ops, Nanos(0));
                let spin = spin.min(pause);
                let think = Think { ops, next, issued: 0, completed, every, at, pause, spin };
                return Self::Think(think);
            }
            Pace::OpenByDirection { .. } => {
                return ByDirection::new(stream, worker)
                    .map_or(Self::Free, |own| Self::ByDirection(Box::new(own)));
            }
            Pace::Limit(rate) => (rate, false, Arrivals::Constant),
            Pace::Open { rate, arrivals } => (rate, true, arrivals),
        };
        Self::Schedule(Box::new(Schedule::new(stream, worker, rate, arrivals, open)))
    }

    /// Schedule for a worker with this number of bytes per second, which is not zero.
    pub(crate) fn limit(Bytes(rate): Bytes) -> Self {
        let gap = (1_000_000_000u128 << 32) / u128::from(rate);
        Self::Schedule(Box::new(Schedule {
            due: 0,
            gap,
            per_byte: true,
            open: false,
            writes_only: false,
            poisson: None,
        }))
    }

    /// Schedule of timestamps. They are relative to the start, and the last one is `last`.
    pub(crate) fn timestamps(last: Nanos) -> Self {
        Self::Timestamps { base: Nanos(0), last }
    }

    /// Starts the timestamps again. The next repetition begins at the last timestamp of the current
    /// one, even if the worker is behind that schedule.
    pub(crate) fn rewind(&mut self) {
        if let Self::Timestamps { base, last } = self {
            *base = *base + *last;
        }
    }

    /// Starts the schedule. With a constant rate of operations, the first operations of the workers
    /// are spread evenly over one interval of a worker.
    pub(crate) fn start(&mut self, now: Nanos, worker: u32, workers: u32) {
        match self {
            Self::Schedule(schedule) => schedule.start(now, worker, workers),
            Self::ByDirection(schedules) => schedules.start(now, worker, workers),
            Self::Timestamps { base, .. } => *base = now,
            // In fio, the first pause also begins at the time of a pause and of I/O.
            Self::Think(think) => think.at = now + think.pause + think.every,
            Self::Free => {}
        }
    }

    /// True if latency is measured from the instants that [`Self::due`] returns.
    pub(crate) fn open(&self) -> bool {
        match self {
            Self::Schedule(schedule) => schedule.open,
            Self::Timestamps { .. } | Self::ByDirection(_) => true,
            Self::Free | Self::Think(_) => false,
        }
    }

    /// True if operations may start whenever a slot is free.
    #[inline]
    pub(crate) fn free(&self) -> bool {
        matches!(self, Self::Free)
    }

    /// Pause before the next operation, if the start of that operation is after a pause.
    #[inline]
    pub(crate) fn pause(&self) -> Option<(Nanos, Nanos)> {
        match self {
            Self::Think(think) => Some((think.pause, think.spin)),
            Self::Free | Self::Schedule(_) | Self::ByDirection(_) | Self::Timestamps { .. } => None,
        }
    }

    /// Records that a pause begins at this instant.
    pub(crate) fn begin_pause(&mut self, now: Nanos) {
        if let Self::Think(think) = self {
            think.at = now + think.pause + think.every;
        }
    }

    /// Scheduled start of the next operation of `len` bytes; `now` or earlier means immediately.
    /// `done` operations are complete. Call it once per operation.
    #[inline(always)]
    pub(crate) fn due(&mut self, now: Nanos, len: usize, kind: Kind, done: u64) -> Nanos {
        if self.free() { now } else { self.paced(now, len, kind, done) }
    }

    #[inline(never)]
    fn paced(&mut self, now: Nanos, len: usize, kind: Kind, done: u64) -> Nanos {
        match self {
            Self::Free => now,
            Self::Think(think) => think.due(now, done),
            Self::Schedule(schedule) if schedule.writes_only && kind == Kind::Read => now,
            Self::Schedule(schedule) => schedule.due(now, len),
            Self::ByDirection(schedules) => schedules.of(kind).due(now, len),
            Self::Timestamps { .. } => now,
        }
    }

    /// Like [`Self::due`], for an operation that may have a timestamp.
    pub(crate) fn due_stamped(&mut self, now: Nanos, len: usize, stamp: Option<Nanos>) -> Nanos {
        match (&*self, stamp) {
            (Self::Timestamps { base, .. }, Some(stamp)) => *base + stamp,
            _ => self.due(now, len, Kind::Read, 0),
        }
    }
}

impl Think {
    fn due(&mut self, now: Nanos, done: u64) -> Nanos {
        let count = if self.completed { done } else { self.issued };
        self.issued += 1;
        let over = self.every > Nanos(0) && now >= self.at;
        if count < self.next && !over {
            return now;
        }
        self.next = count.saturating_add(self.ops);
        now + self.pause
    }
}

/// Schedules of reads and writes.
#[derive(Debug)]
pub(crate) struct ByDirection([Schedule; 2]);

impl ByDirection {
    /// Schedules of a worker; `None` if the directions of the stream have a common schedule.
    pub(crate) fn new(stream: &Stream, worker: u32) -> Option<Self> {
        let Pace::OpenByDirection { reads, writes, arrivals } = stream.pace else { return None };
        let other = Stream { seed: stream.seed ^ 0x5743_1DE5, ..stream.clone() };
        Some(Self([
            Schedule::new(stream, worker, reads, arrivals, true),
            Schedule::new(&other, worker, writes, arrivals, true),
        ]))
    }

    /// Starts both schedules.
    pub(crate) fn start(&mut self, now: Nanos, worker: u32, workers: u32) {
        self.0.iter_mut().for_each(|own| own.start(now, worker, workers));
    }

    fn of(&mut self, kind: Kind) -> &mut Schedule {
        match kind {
            Kind::Read => &mut self.0[0],
            Kind::Write => &mut self.0[1],
        }
    }

    /// Takes the operation of `len` bytes that is due first, and returns its direction.
    pub(crate) fn take(&mut self, len: u64) -> Kind {
        let kind = if self.0[0].due <= self.0[1].due { Kind::Read } else { Kind::Write };
        self.of(kind).due(Nanos(0), usize::try_from(len).unwrap_or(usize::MAX));
        kind
    }
}

impl Schedule {
    fn new(stream: &Stream, worker: u32, rate: Rate, arrivals: Arrivals, open: bool) -> Self {
        let (per_second, per_byte) = match rate {
            Rate::Ops(ops) => (ops, false),
            Rate::Bytes(bytes) => (bytes.0, true),
        };
        let workers = u128::from(stream.workers.count);
        let gap = ((1_000_000_000u128 << 32) * workers) / u128::from(per_second.max(1));
        let poisson = (arrivals == Arrivals::Poisson).then(|| Poisson {
            random: fastrand::Rng::with_seed(stream.seed ^ (u64::from(worker) << 32) ^ 0x9015_5011),
            table: exponential(),
        });
        let writes_only = stream.verify_backlog.is_some();
        Self { due: 0, gap, per_byte, open, writes_only, poisson }
    }

    fn start(&mut self, now: Nanos, worker: u32, workers: u32) {
        self.due = u128::from(now.0) << 32;
        if !self.per_byte && self.poisson.is_none() {
            self.due += self.gap * u128::from(worker) / u128::from(workers.max(1));
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "nanoseconds since boot, below 2^64")]
    fn due(&mut self, now: Nanos, len: usize) -> Nanos {
        let mut due = self.due;
        if !self.open {
            // Unused time is not accumulated.
            due = due.max(u128::from(now.0) << 32);
        }
        let amount = if self.per_byte { self.gap * len as u128 } else { self.gap };
        self.due = due + self.poisson.as_mut().map_or(amount, |poisson| poisson.times(amount));
        Nanos((due >> 32) as u64)
    }
}

impl Poisson {
    /// Exponential variate with the given mean.
    fn times(&mut self, mean: u128) -> u128 {
        let (word, index) = (self.random.u64(..), self.random.usize(..STEPS));
        let x = u128::from(word.leading_zeros()) * u128::from(LN_2) + u128::from(self.table[index]);
        (mean * x) >> 32
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "ln 2, below 1")]
const LN_2: u64 = (std::f64::consts::LN_2 * ONE) as u64;

/// Means of equally likely parts of the exponential distribution from 0 to ln 2.
fn exponential() -> Box<[u64]> {
    // The p-quantile of y is -ln(1 - p/2). The mean over a part is the integral of the quantile
    // over the part, divided by the width of the part. With u = p/2, the antiderivative is
    // F(u) = 2 ((1 - u) ln(1 - u) - (1 - u)). The integral is F at the end minus F at the start.
    let integral = |step: usize| {
        #[expect(clippy::cast_precision_loss, reason = "up to 1024")]
        let rest = 1.0 - step as f64 / STEPS as f64 / 2.0;
        2.0 * (rest * rest.ln() - rest)
    };
    #[expect(clippy::cast_precision_loss, reason = "1024")]
    let steps = STEPS as f64;
    let mean = |step: usize| (integral(step + 1) - integral(step)) * steps;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within 0..ln 2")]
    let fixed = |step: usize| (mean(step) * ONE) as u64;
    (0..STEPS).map(fixed).collect()
}

#[cfg(test)]
mod tests {
    use model::phase::{Direction, IoEngineKind, Workers};

    use super::*;
    use crate::io::conformance::stream;

    fn pacer(pace: Pace, workers: u32) -> Pacer {
        let mut plan = stream(IoEngineKind::Null, Direction::Read, 1);
        (plan.pace, plan.workers) = (pace, Workers::threads(workers));
        Pacer::new(&plan, 0)
    }

    fn due(pacer: &mut Pacer, now: u64, len: usize) -> Nanos {
        pacer.due(Nanos(now), len, Kind::Read, 0)
    }

    fn think(ops: u64, completed: bool, every: Nanos) -> Pace {
        Pace::Think { ops, pause: Nanos(7), spin: Nanos(0), completed, every }
    }

    fn open(rate: Rate, arrivals: Arrivals) -> Pace {
        Pace::Open { rate, arrivals }
    }

    #[test]
    fn a_constant_schedule_does_not_drift() {
        // Three per second: a third of a nanosecond would be lost per operation.
        let mut pacer = pacer(open(Rate::Ops(3), Arrivals::Constant), 1);
        pacer.start(Nanos(1000), 0, 1);
        let dues: Vec<u64> = (0..7).map(|_| due(&mut pacer, 0, 1).0).collect();
        let third = 333_333_333;
        assert_eq!(dues[..3], [1000, 1000 + third, 1000 + 2 * third]);
        assert!((1000 + 1_999_999_999..=1000 + 2_000_000_000).contains(&dues[6]));
        assert!(pacer.open());
    }

    #[test]
    fn workers_divide_the_rate_and_start_evenly_spread() {
        let mut pacer = pacer(open(Rate::Ops(1000), Arrivals::Constant), 4);
        pacer.start(Nanos(0), 3, 4);
        assert_eq!(due(&mut pacer, 0, 1), Nanos(3_000_000));
        assert_eq!(due(&mut pacer, 0, 1), Nanos(7_000_000));
    }

    #[test]
    fn a_byte_rate_limit_does_not_accumulate_unused_time() {
        let mut pacer = pacer(Pace::Limit(Rate::Bytes(Bytes(1000))), 1);
        pacer.start(Nanos(0), 0, 1);
        assert_eq!(due(&mut pacer, 5, 500), Nanos(5));
        assert_eq!(due(&mut pacer, 5, 1000), Nanos(500_000_005));
        // If the worker is late, the next operation is due now. The one after it is due one
        // interval later.
        assert_eq!(due(&mut pacer, 9_000_000_000, 1000), Nanos(9_000_000_000));
        assert_eq!(due(&mut pacer, 9_000_000_000, 1), Nanos(10_000_000_000));
        assert!(!pacer.open());
    }

    #[test]
    fn pauses_follow_the_given_number_of_operations() {
        let mut pacer = pacer(think(2, false, Nanos(0)), 1);
        let waits: Vec<u64> = (0..6).map(|_| due(&mut pacer, 100, 1).0 - 100).collect();
        assert_eq!(waits, [0, 0, 7, 0, 7, 0]);
        assert_eq!(pacer.pause(), Some((Nanos(7), Nanos(0))));
    }

    #[test]
    fn pauses_follow_completed_operations_or_a_time() {
        let mut own = pacer(think(2, true, Nanos(0)), 1);
        let waits = [0, 1, 2, 2, 5, 5].map(|done| own.due(Nanos(100), 1, Kind::Read, done).0 - 100);
        assert_eq!(waits, [0, 0, 7, 0, 7, 0]);
        let mut own = pacer(think(u64::MAX, false, Nanos(50)), 1);
        own.start(Nanos(100), 0, 1);
        let mut waits = Vec::new();
        for now in [100, 156, 157, 164, 213, 214] {
            let due = own.due(Nanos(now), 1, Kind::Read, 0);
            if due.0 > now {
                own.begin_pause(Nanos(now));
            }
            waits.push(due.0 - now);
        }
        assert_eq!(waits, [0, 0, 7, 0, 0, 7]);
    }

    #[test]
    fn each_direction_has_its_own_schedule() {
        let (reads, writes) = (Rate::Ops(1000), Rate::Bytes(Bytes(4_096_000)));
        let pace = Pace::OpenByDirection { reads, writes, arrivals: Arrivals::Constant };
        let mut own = pacer(pace, 2);
        own.start(Nanos(0), 1, 2);
        let at = |own: &mut Pacer, kind| own.due(Nanos(0), 4096, kind, 0).0 / 1000;
        // Rates are of both workers, and only those of operations are spread.
        assert_eq!([Kind::Read, Kind::Read].map(|kind| at(&mut own, kind)), [1000, 3000]);
        assert_eq!([Kind::Write, Kind::Write].map(|kind| at(&mut own, kind)), [0, 2000]);
        assert!(own.open());
    }

    #[test]
    fn reads_of_a_backlog_start_immediately() {
        let mut plan = stream(IoEngineKind::Null, Direction::Write, 1);
        plan.pace = open(Rate::Ops(1000), Arrivals::Constant);
        plan.verify_backlog = Some(model::phase::VerifyBacklog { writes: 1, reads: 1 });
        let mut own = Pacer::new(&plan, 0);
        own.start(Nanos(0), 0, 1);
        let kinds = [Kind::Write, Kind::Read, Kind::Write, Kind::Read];
        let due = kinds.map(|kind| own.due(Nanos(7), 4096, kind, 0).0);
        assert_eq!(due, [0, 7, 1_000_000, 7]);
    }

    #[test]
    fn poisson_distances_have_mean_variance_and_tail_of_the_exponential() {
        let mut pacer = pacer(open(Rate::Ops(1_000_000), Arrivals::Poisson), 1);
        pacer.start(Nanos(0), 0, 1);
        let n = 200_000u32;
        let mut last = due(&mut pacer, 0, 1);
        let gaps: Vec<f64> = (0..n)
            .map(|_| {
                let due = due(&mut pacer, 0, 1);
                let gap = (due.0 - last.0) as f64 / 1000.0;
                last = due;
                gap
            })
            .collect();
        let mean = gaps.iter().sum::<f64>() / f64::from(n);
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / f64::from(n);
        // Standard errors: 1/sqrt(n) = 0.0022 for the mean, sqrt(20/n) = 0.01 for the square.
        assert!((mean - 1.0).abs() < 0.01, "mean {mean}");
        assert!((square - 2.0).abs() < 0.05, "second moment {square}");
        for limit in [0.5, 1.0, 3.0, 7.0] {
            let beyond = gaps.iter().filter(|gap| **gap > limit).count() as f64 / f64::from(n);
            let expected = f64::exp(-limit);
            let error = 5.0 * (expected / f64::from(n)).sqrt() + 0.001;
            assert!((beyond - expected).abs() < error, "beyond {limit}: {beyond}");
        }
    }
}
