//! A cheaper reading of the monotonic clock, for loops whose operations are system calls.
//!
//! [`Clock`] tells CLOCK_MONOTONIC as [`super::now`] does, but counts ticks of the processor from a
//! moment at which it has read both: an instruction, a multiplication, and two comparisons instead
//! of a call through the vDSO. Nothing enters but readings, and nothing leaves but instants, of the
//! same timeline; each worker has a clock of its own.
//!
//! **Where.** On x86-64, if the kernel itself keeps its time by that counter: the clock source is
//! `tsc`, for which it has to tick at one rate whatever the processor does and to agree among all
//! CPUs, which the kernel watches (Intel SDM vol. 3, "Invariant TSC"; clocksource watchdog,
//! kernel/time/clocksource.c). Anywhere else, `kvm-clock` and other processors included, each
//! reading is [`super::now`], and the counter is never touched.
//!
//! **How far it may be off.** A [`Line`] is drawn from the last two moments at which both clocks
//! were read, half a millisecond apart or more, and is followed for a millisecond; what comes after
//! that is read from the kernel, and is the next moment. So an operation that takes longer than
//! that is timed by the kernel's clock alone. Each moment is known to ±125 ns ([`WIDEST`]), so
//! the end of a line is off by at most 625 ns as long as the kernel's clock keeps its rate. NTP may
//! slew it by 500 ppm in either direction ([`adjtimex(2)`]); from one limit to the other that adds
//! 1 µs, until the next moment. Both together stay below 2 µs, the bound that the tests hold it to,
//! and it does not grow with the length of a phase, as every line starts anew. Faster slewing (up
//! to 11 %, by changing the length of a tick: `clocksource_max_adjustment` in
//! kernel/time/clocksource.c),
//! being suspended, and counters that jump are noticed at the next moment: two rates in sequence
//! that differ by more than one in 1024 draw no line, and the kernel's clock is told until two
//! agree.
//!
//! **From line to line.** A line begins with the instant at which the one before it arrives, and
//! what that is off by is taken back evenly over its millisecond, so no operation is shortened or
//! lengthened by a jump. What an operation takes is off by a part of itself: that by which the rate
//! is (two moments of ±125 ns, a millisecond apart: 0.025 %) and that which is taken back (as much
//! again from either line: 0.05 %); with moments half a millisecond apart and the fastest slewing
//! together less than 0.3 %, so an operation of 1 µs by less than 3 ns. A jump of up to 2 µs,
//! which leaves an operation no length if it is a backward one, remains where a line does not
//! follow on one: at the first line, where rates did not agree, and where two moments in sequence
//! were of no use. It also remains where an operation ends more than an eighth of the reach after a
//! line does, but that operation is longer than 125 µs.
//!
//! **Tails.** Drawing a line delays one operation each millisecond by one reading of the kernel's
//! clock, two of the counter, and two divisions: by about twice what a reading of the kernel's
//! clock costs (the run's fact `clock.cost_ns`). That is part of its time. It meets one in 1000 / t
//! of the operations that take t µs: 0.01 % of those of 0.1 µs, 0.1 % of those of 1 µs, 1 % of
//! those of 10 µs. So the 99.9th percentile of operations below 1 µs and the 99th of those below 10
//! µs hardly move, while percentiles further out are up to that cost too high.
//!
//! **A kernel that gives the counter up** while a clock is in use (it says so in its log, and
//! changes the file that is read here once, when a clock is made) is not noticed as such, but by
//! moments that are of no use and rates that do not agree. Each line still begins at the kernel's
//! clock, but until the next one the bound does not hold if the counter jumps, as it does for a
//! thread that moves to a CPU whose counter differs.
//!
//! **Order.** A clock never goes back: it tells the latest instant that it has told rather than an
//! earlier one, whatever the counters do. All instants that are subtracted in a loop must come from
//! one clock; others may be off against each other by the bound.
//!
//! **Fences.** RDTSC waits for nothing, so it may be executed before earlier instructions are over
//! (Intel SDM vol. 2, RDTSC), for which the vDSO has a fence. Between two readings lies a system
//! call here, and instructions after SYSCALL and SYSRET do not execute, not even speculatively,
//! before all those ahead of them have completed; IRET serializes (SDM vol. 2, "Instruction
//! ordering" of SYSCALL and SYSRET; vol. 3, "Serializing Instructions"). On a processor without
//! that promise what could overtake is a window of some hundred instructions of the loop's own, and
//! what one operation gains its neighbor loses. So is what lies between two readings of a ring's
//! loop, which tells the time for each of several answers of one call. A loop that copies memory
//! instead (a mapping, a buffer of stdio) has no such border and is to use [`super::now`]: with a
//! fence, this costs about as much as that.
//!
//! [`adjtimex(2)`]: https://man7.org/linux/man-pages/man2/adjtimex.2.html
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "instructions of the processor have no safe form")
)]

use model::Nanos;

/// How long a line is followed.
const REACH: u64 = 1_000_000;

/// The shortest distance of two moments that tell a rate.
const APART: u64 = REACH / 2;

/// A moment is of use if the reading of the kernel's clock is known to so many nanoseconds: it lies
/// somewhere between two readings of the counter.
const WIDEST: u64 = 250;

/// After so many moments in sequence that were of no use the counter is given up: it is slow to
/// read (an instruction that a hypervisor emulates), or the kernel's clock is.
const PATIENCE: u32 = 64;

/// Binary digits of a rate after the point.
const SHIFT: u32 = 32;

/// Where the kernel names what it keeps its time by.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Tells CLOCK_MONOTONIC to one thread.
#[derive(Debug)]
pub(crate) struct Clock {
    // Whether the counter is used at all.
    counts: bool,
    line: Line,
    patience: u32,
    // The last instant told.
    last: Nanos,
}

impl Clock {
    /// By the counter if the kernel trusts it, else by the kernel. Reads a file; the counter is
    /// used from about a millisecond later on.
    pub(crate) fn new() -> Self {
        let source = std::fs::read_to_string(SOURCE).unwrap_or_default();
        Self::by(cfg!(target_arch = "x86_64") && source.trim_end() == "tsc")
    }

    fn by(counts: bool) -> Self {
        let line = if counts { Line::from(Moment::read()) } else { Line::default() };
        Self { counts, line, patience: PATIENCE, last: Nanos(0) }
    }

    /// CLOCK_MONOTONIC, within the bound of the module; never less than it told before. To be
    /// called after a system call.
    #[inline]
    pub(crate) fn now(&mut self) -> Nanos {
        let told = if self.counts {
            let ticks = ticks();
            match self.line.at(ticks) {
                Some(told) => told,
                None => self.look(ticks),
            }
        } else {
            super::now()
        };
        self.last = self.last.max(told);
        self.last
    }

    /// Asks the kernel, and draws the next line if it is time to.
    #[cold]
    #[inline(never)]
    fn look(&mut self, ticks: u64) -> Nanos {
        if let Some(told) = self.line.soon_after(ticks) {
            let ended = self.line;
            let mut useful = self.line.draw(&Moment::read());
            if !useful {
                // The thread was interrupted amid the readings, most likely.
                self.line = ended;
                useful = self.line.draw(&Moment::read());
            }
            self.judge(useful);
            return told;
        }
        let told = super::now();
        if !self.line.is_over(told) {
            return told;
        }
        let moment = Moment::read();
        let useful = self.line.draw(&moment);
        self.judge(useful);
        told
    }

    /// Gives the counter up if this moment and all of a long time before were of no use.
    fn judge(&mut self, useful: bool) {
        self.patience = if useful { PATIENCE } else { self.patience.saturating_sub(1) };
        self.counts = self.patience > 0;
    }
}

/// The counter and the kernel's clock at one time.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    ticks: u64,
    nanos: u64,
    // Ticks between the readings of the counter before and after that of the clock.
    width: u64,
}

impl Moment {
    fn read() -> Self {
        let before = ticks();
        let nanos = super::now().0;
        // The kernel's own reading waits for what is before it, and this one waits for that.
        fence();
        Self::between(before, nanos, ticks())
    }

    fn between(before: u64, nanos: u64, after: u64) -> Self {
        let width = after.wrapping_sub(before);
        Self { ticks: before.wrapping_add(width / 2), nanos, width }
    }
}

/// Instants by ticks, from a moment on.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    start: Moment,
    // Nanoseconds of a tick, as a fixed-point number; zero while nothing is known.
    rate: u64,
    // The instant that is told at its start, and nanoseconds of a tick from there on: such that the
    // end of the reach is where the rate leads from the start.
    told: u64,
    slope: u64,
    // For so many ticks it holds.
    reach: u64,
}

impl Line {
    /// One that holds for nothing yet.
    fn from(start: Moment) -> Self {
        Self { start, ..Self::default() }
    }

    /// The instant of a count, if the line holds for it.
    #[inline]
    fn at(&self, ticks: u64) -> Option<Nanos> {
        // A count from before the start is a very large number of ticks after it.
        let since = ticks.wrapping_sub(self.start.ticks);
        // No overflow: reach times slope is at most twice REACH << SHIFT, which is less than 2^54.
        (since < self.reach).then(|| Nanos(self.told + ((since * self.slope) >> SHIFT)))
    }

    /// The instant of a count that lies up to an eighth of its reach after its end: where the rate
    /// leads.
    fn soon_after(&self, ticks: u64) -> Option<Nanos> {
        let since = ticks.wrapping_sub(self.start.ticks);
        let soon = since >= self.reach && since <= self.reach + self.reach / 8;
        (soon && self.reach > 0).then(|| Nanos(self.start.nanos + ((since * self.rate) >> SHIFT)))
    }

    /// Whether enough time has passed since its start for the next.
    fn is_over(&self, told: Nanos) -> bool {
        told.0.saturating_sub(self.start.nanos) >= APART
    }

    /// Goes on from a moment, at the rate since the start: for a while if that is about the rate
    /// that was known before, and else for nothing. If the moment is soon after the end of a line
    /// that held, it begins with what that one tells. Whether the moment was of use; if not, the
    /// start remains, and nothing is told by it.
    fn draw(&mut self, moment: &Moment) -> bool {
        let arrived = self.soon_after(moment.ticks);
        self.reach = 0;
        let rate = self.rate_until(moment);
        if rate == 0 || (u128::from(moment.width) * u128::from(rate)) >> SHIFT > u128::from(WIDEST)
        {
            return false;
        }
        if rate.abs_diff(self.rate) <= rate >> 10 {
            self.reach = (REACH << SHIFT) / rate;
            self.told = arrived.map_or(moment.nanos, |told| told.0);
            // Both rates are within one in 1024, and the moment less than 9/8 of the reach after
            // the last one, so what is to be taken back is less than REACH.
            let left = (moment.nanos + REACH).saturating_sub(self.told);
            self.slope = (left << SHIFT) / self.reach;
        }
        (self.start, self.rate) = (*moment, rate);
        true
    }

    /// Nanoseconds of a tick between the start and a moment; zero if that has no sense.
    fn rate_until(&self, moment: &Moment) -> u64 {
        let ticks = moment.ticks.wrapping_sub(self.start.ticks);
        let nanos = moment.nanos.saturating_sub(self.start.nanos);
        let rate = (u128::from(nanos) << SHIFT).checked_div(u128::from(ticks)).unwrap_or(0);
        u64::try_from(rate).unwrap_or(0)
    }
}

/// The processor's counter.
#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: the instruction reads a counter and touches nothing else. Where a process may not
    // execute it (PR_SET_TSC, prctl(2)) it is ended by a signal, as it is in clock_gettime(2),
    // which executes the same one where the clock source is `tsc`.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Lets what follows wait for what is before it.
#[cfg(target_arch = "x86_64")]
fn fence() {
    // SAFETY: the instruction is part of SSE2, which every x86-64 processor has.
    unsafe { std::arch::x86_64::_mm_lfence() };
}

/// No counter is used here ([`Clock::new`]).
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn ticks() -> u64 {
    0
}

#[cfg(not(target_arch = "x86_64"))]
fn fence() {}

#[cfg(test)]
mod tests;
