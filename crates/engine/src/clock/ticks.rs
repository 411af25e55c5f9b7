//! Faster reading of the monotonic clock, for loops whose operations are system calls.
//!
//! [`Clock`] returns CLOCK_MONOTONIC like [`super::now`], but usually reads only the time stamp
//! counter of the CPU and converts its ticks to nanoseconds. This takes an instruction, a
//! multiplication, and two comparisons instead of a call through the vDSO. About once per
//! millisecond, it reads the counter and the kernel clock together (a [`Moment`]) and derives the
//! next conversion (a [`Line`]). Each worker has its own clock.
//!
//! **Availability.** The counter is used on x86-64 if the clock source of the kernel is `tsc`. The
//! kernel then monitors that the counter ticks at a constant rate and agrees among all CPUs (Intel
//! SDM vol. 3, "Invariant TSC"; clocksource watchdog, kernel/time/clocksource.c). In all other
//! cases, including `kvm-clock` and other architectures, each reading is [`super::now`].
//!
//! **Error.** A line uses the rate between the last two moments, which are at least half a
//! millisecond apart, and is valid for a millisecond. A reading up to 125 µs after the end of a
//! line still uses the rate of the line; a later reading uses the kernel clock. In both cases, the
//! next moment is taken. The end of an operation of more than 1.125 ms is therefore always read
//! from the kernel clock.
//!
//! Each moment has an uncertainty of ±125 ns ([`WIDEST`]), so the error at the end of a line is at
//! most 625 ns while the kernel clock keeps its rate. NTP may slew the clock by 500 ppm in either
//! direction ([`adjtimex(2)`]); a change from one limit to the other adds 1 µs until the next
//! moment. Both errors together are below 2 µs, the bound that the tests check. The error does not
//! grow with the length of a phase, because every line starts from a new reading.
//!
//! Faster slewing (up to 11 %, by changing the length of a tick: `clocksource_max_adjustment` in
//! kernel/time/clocksource.c), suspension, and jumps of the counter are detected at the next
//! moment. If two consecutive rates differ by more than 1/1024, the kernel clock is used until two
//! rates agree.
//!
//! **Transition between lines.** A line begins with the instant at which the previous line ended.
//! The error of that instant is removed evenly over the millisecond of the new line, so no
//! operation is shortened or lengthened by a jump. The time of an operation has two relative
//! errors. The rate has an error of 0.025 %, from two moments of ±125 ns that are a millisecond
//! apart. The correction has an error of 0.05 %, 0.025 % from each of the two lines. With moments
//! half a millisecond apart and the fastest slewing, the sum is below 0.3 %: less than 3 ns for an
//! operation of 1 µs.
//!
//! A line that does not follow another line starts with a jump of up to 2 µs: the first line, a
//! line after rates that did not agree, and a line after two consecutive unusable moments. If the
//! jump is backward, the length of the operation becomes zero. A jump also remains if an operation
//! ends more than 125 µs after the end of a line, but such an operation is longer than 125 µs.
//!
//! **Tails.** A new line takes one reading of the kernel clock, two of the counter, and two
//! divisions. Together they take about twice as long as a reading of the kernel clock (environment
//! fact `clock.cost_ns`). Once per millisecond, this time is added to an operation. If operations
//! take t µs, one in 1000 / t is affected: 0.01 % for 0.1 µs, 0.1 % for 1 µs, 1 % for 10 µs. The
//! 99.9th percentile of operations below 1 µs and the 99th percentile of operations below 10 µs are
//! therefore almost unchanged. Higher percentiles are too high by up to the time that a new line
//! takes.
//!
//! **Loss of the counter.** The kernel may stop using the counter while a clock is in use. It then
//! changes the file that names the clock source, but [`Clock::new`] reads this file only once. The
//! clock detects the change only by unusable moments and rates that do not agree. If the counter
//! then jumps, for example because the thread moves to a CPU with another counter, the error
//! exceeds the bound until the next line starts.
//!
//! **Order.** A clock never goes back: it repeats its latest instant instead of returning an
//! earlier one. Instants that are subtracted from each other must come from the same clock, because
//! the instants of two clocks may differ by up to the bound.
//!
//! **Fences.** RDTSC may execute before earlier instructions complete (Intel SDM vol. 2, RDTSC);
//! the vDSO uses a fence. Here, a system call separates two readings. Instructions after SYSCALL
//! and SYSRET do not execute, not even speculatively, before all earlier instructions have
//! completed; IRET serializes (SDM vol. 2, "Instruction ordering" of SYSCALL and SYSRET; vol. 3,
//! "Serializing Instructions"). On a CPU without this guarantee, a reading may move by some hundred
//! instructions of the loop: one operation becomes shorter, and its neighbor longer by the same
//! time. The same is true of an io_uring loop, which reads the clock for each of several
//! completions of one call. A loop that copies memory instead (a mapping, a buffer of stdio) has no
//! such boundary and must use [`super::now`]: with a fence, this clock has about the same overhead.
//!
//! [`adjtimex(2)`]: https://man7.org/linux/man-pages/man2/adjtimex.2.html
#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "CPU instructions have no safe form")
)]

use model::Nanos;

/// Time for which a line is valid, in nanoseconds.
const REACH: u64 = 1_000_000;

/// Minimum distance of two moments that determine a rate, in nanoseconds.
const APART: u64 = REACH / 2;

/// Maximum time between the two counter readings of a usable moment, in nanoseconds. The kernel
/// clock was read between them.
const WIDEST: u64 = 250;

/// Number of consecutive unusable moments after which the counter is no longer used. Moments are
/// unusable if reading the counter or the kernel clock is slow, for example because a hypervisor
/// emulates the counter.
const PATIENCE: u32 = 64;

/// Fraction bits of a rate.
const SHIFT: u32 = 32;

/// File with the name of the kernel's clock source.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Reader of CLOCK_MONOTONIC for one thread.
#[derive(Debug)]
pub(crate) struct Clock {
    // True if the counter is used.
    counts: bool,
    line: Line,
    patience: u32,
    // Last instant returned.
    last: Nanos,
}

impl Clock {
    /// Uses the counter if the kernel trusts it, otherwise the kernel clock. Reads a file. The
    /// counter is used after about a millisecond.
    pub(crate) fn new() -> Self {
        let source = std::fs::read_to_string(SOURCE).unwrap_or_default();
        Self::by(cfg!(target_arch = "x86_64") && source.trim_end() == "tsc")
    }

    fn by(counts: bool) -> Self {
        let line = if counts { Line::from(Moment::read()) } else { Line::default() };
        Self { counts, line, patience: PATIENCE, last: Nanos(0) }
    }

    /// CLOCK_MONOTONIC, within the error bound of the module. Never less than an instant returned
    /// before. Call it after a system call.
    #[inline]
    pub(crate) fn now(&mut self) -> Nanos {
        let base = if self.counts {
            let ticks = ticks();
            match self.line.at(ticks) {
                Some(base) => base,
                None => self.poll(ticks),
            }
        } else {
            super::now()
        };
        self.last = self.last.max(base);
        self.last
    }

    /// Time at a count for which the line is not valid. Draws the next line if due.
    #[cold]
    #[inline(never)]
    fn poll(&mut self, ticks: u64) -> Nanos {
        if let Some(base) = self.line.soon_after(ticks) {
            let ended = self.line;
            let mut useful = self.line.draw(&Moment::read());
            if !useful {
                // The thread was probably interrupted between the readings.
                self.line = ended;
                useful = self.line.draw(&Moment::read());
            }
            self.assess(useful);
            return base;
        }
        let base = super::now();
        if !self.line.is_over(base) {
            return base;
        }
        let moment = Moment::read();
        let useful = self.line.draw(&moment);
        self.assess(useful);
        base
    }

    /// Stops using the counter after [`PATIENCE`] consecutive unusable moments.
    fn assess(&mut self, useful: bool) {
        self.patience = if useful { PATIENCE } else { self.patience.saturating_sub(1) };
        self.counts = self.patience > 0;
    }
}

/// Counter and kernel clock at one time.
#[derive(Clone, Copy, Debug, Default)]
struct Moment {
    ticks: u64,
    nanos: u64,
    // Ticks between the counter readings before and after the clock reading.
    width: u64,
}

impl Moment {
    fn read() -> Self {
        let before = ticks();
        let nanos = super::now().0;
        // The kernel's own reading waits for earlier instructions. The fence makes the second
        // reading of the counter wait for the kernel's reading.
        fence();
        Self::between(before, nanos, ticks())
    }

    fn between(before: u64, nanos: u64, after: u64) -> Self {
        let width = after.wrapping_sub(before);
        Self { ticks: before.wrapping_add(width / 2), nanos, width }
    }
}

/// Conversion of ticks to instants, starting at a moment.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    start: Moment,
    // Nanoseconds per tick as a fixed-point number; zero while unknown.
    rate: u64,
    // Instant returned at the start, and nanoseconds per tick after it, as a fixed-point number.
    // The slope removes the error of `base`: at the end of the reach, the line meets the instant
    // that `rate` predicts.
    base: u64,
    slope: u64,
    // Ticks for which the line is valid.
    reach: u64,
}

impl Line {
    /// Line that is not valid for any count.
    fn from(start: Moment) -> Self {
        Self { start, ..Self::default() }
    }

    /// Instant of a count, if the line is valid for it.
    #[inline]
    fn at(&self, ticks: u64) -> Option<Nanos> {
        // A count before the start is a very large number of ticks after it.
        let since = ticks.wrapping_sub(self.start.ticks);
        // No overflow: reach times slope is at most twice REACH << SHIFT, which is less than 2^54.
        (since < self.reach).then(|| Nanos(self.base + ((since * self.slope) >> SHIFT)))
    }

    /// Instant predicted by the rate for a count after the end of the line, up to an eighth of the
    /// reach later.
    fn soon_after(&self, ticks: u64) -> Option<Nanos> {
        let since = ticks.wrapping_sub(self.start.ticks);
        let soon = since >= self.reach && since <= self.reach + self.reach / 8;
        (soon && self.reach > 0).then(|| Nanos(self.start.nanos + ((since * self.rate) >> SHIFT)))
    }

    /// True if enough time has passed since the start to draw the next line.
    fn is_over(&self, base: Nanos) -> bool {
        base.0.saturating_sub(self.start.nanos) >= APART
    }

    /// Starts the next line at a moment, with the rate since the previous start. The new line is
    /// valid only if this rate agrees with the previous rate. If the moment is soon after the end
    /// of a valid line, the new line begins with the instant of the old line. Returns true if the
    /// moment was usable. If not, the start is unchanged and the line is not valid.
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
            self.base = arrived.map_or(moment.nanos, |base| base.0);
            // Both rates agree to 1/1024, and the moment is at most 9/8 of REACH after the previous
            // moment. The correction is therefore less than REACH.
            let left = (moment.nanos + REACH).saturating_sub(self.base);
            self.slope = (left << SHIFT) / self.reach;
        }
        (self.start, self.rate) = (*moment, rate);
        true
    }

    /// Nanoseconds per tick between the start and a moment; zero if not meaningful.
    fn rate_until(&self, moment: &Moment) -> u64 {
        let ticks = moment.ticks.wrapping_sub(self.start.ticks);
        let nanos = moment.nanos.saturating_sub(self.start.nanos);
        let rate = (u128::from(nanos) << SHIFT).checked_div(u128::from(ticks)).unwrap_or(0);
        u64::try_from(rate).unwrap_or(0)
    }
}

/// CPU counter.
#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: the instruction reads a counter and has no other effect. In a process that may not
    // execute it (PR_SET_TSC, prctl(2)) it raises a signal, as does clock_gettime(2), which
    // executes the same instruction with clock source `tsc`.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Makes later instructions wait for earlier ones.
#[cfg(target_arch = "x86_64")]
fn fence() {
    // SAFETY: the instruction is part of SSE2, which every x86-64 CPU has.
    unsafe { std::arch::x86_64::_mm_lfence() };
}

/// Zero, because the counter is not used on this architecture ([`Clock::new`]).
#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn ticks() -> u64 {
    0
}

#[cfg(not(target_arch = "x86_64"))]
fn fence() {}

#[cfg(test)]
mod tests;
