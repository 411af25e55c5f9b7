use proptest::prelude::*;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::*;
use crate::clock::now;

/// Error bound of a clock, as documented in the module.
const BOUND: Nanos = Nanos(2000);

/// Exactly known moment of a counter with three ticks per nanosecond.
fn exact(nanos: u64) -> Moment {
    Moment { ticks: 3 * nanos, nanos: 1_000 + nanos, width: 0 }
}

/// Valid line that starts at 2 ms of such a counter.
fn drawn() -> Line {
    let mut line = Line::from(exact(0));
    assert!(line.draw(&exact(APART)) && line.draw(&exact(2_000_000)));
    line
}

#[test]
fn a_line_needs_two_rates_that_agree() {
    let mut line = Line::from(exact(0));
    assert_eq!(line.at(0), None, "nothing is known");
    assert!(!line.is_over(Nanos(1_000 + APART - 1)) && line.is_over(Nanos(1_000 + APART)));
    assert!(line.draw(&exact(APART)));
    assert_eq!(line.at(3 * APART), None, "one rate may be wrong");
    assert!(line.draw(&exact(2 * APART)));
    assert_eq!(line.at(6 * APART), Some(Nanos(1_000 + 2 * APART)));
}

#[test]
fn a_line_is_valid_for_a_millisecond_from_its_start() {
    let (line, start) = (drawn(), 6_000_000);
    assert_eq!(line.at(start - 1), None);
    assert_eq!(line.at(start), Some(Nanos(2_001_000)));
    let halfway = line.at(start + 1_500_000).unwrap();
    assert!((2_500_999..=2_501_000).contains(&halfway.0), "{halfway}");
    assert!(line.at(start + 3 * REACH - 3).is_some());
    assert_eq!(line.at(start + 3 * REACH + 1), None);
    // The counter may wrap after its largest value.
    let late = u64::MAX - 100;
    let mut line = drawn();
    line.start.ticks = late;
    assert_eq!(line.at(late.wrapping_add(3_000)), Some(Nanos(2_001_999)));
}

#[test]
fn a_line_starts_at_the_end_of_the_previous_one() {
    for late in [0, REACH / 10, REACH / 8] {
        // The kernel clock is 700 ns before or after the end of the line.
        for off in [-700, 700] {
            let mut line = drawn();
            let end = exact(2 * REACH + REACH + 1 + late);
            let nanos = end.nanos.checked_add_signed(off).unwrap();
            let arrived = line.soon_after(end.ticks);
            let jumps = late == REACH / 8;
            assert_eq!(arrived.is_none(), jumps, "{late}");
            assert!(line.draw(&Moment { nanos, ..end }));
            let reading = line.at(end.ticks).unwrap();
            assert_eq!(reading.0, if jumps { nanos } else { end.nanos - 1 }, "{late} {off}");
            // The measured time of an operation of 1 µs is exact to a nanosecond or two at any
            // position.
            for begin in [0, 1, REACH / 2, REACH - 2_000] {
                let at = |nanos| line.at(end.ticks + 3 * nanos).unwrap();
                let long = at(begin + 1_000) - at(begin);
                assert!((998..=1002).contains(&long.0), "{long} from {begin}");
            }
            // At the end, the line agrees with the kernel clock.
            let last = line.at(end.ticks + line.reach - 1).unwrap().0;
            assert!(last.abs_diff(nanos + REACH) <= 2, "{last}");
        }
    }
}

#[test]
fn a_change_of_rate_is_detected_at_the_next_moment() {
    let mut line = drawn();
    // The machine was suspended for a second, during which the counter continued.
    let suspended = |nanos: u64| Moment { ticks: 3 * nanos + 3_000_000_000, ..exact(nanos) };
    for (at, holds) in [(3_000_000, false), (4_000_000, false), (5_000_000, true)] {
        let moment = suspended(at);
        assert!(line.draw(&moment));
        assert_eq!(line.at(moment.ticks).is_some(), holds, "{at}");
    }
    // The counter went back.
    assert!(!line.draw(&Moment { ticks: 0, ..exact(6_000_000) }) || line.reach == 0);
    // Slewing within the limits of NTP keeps the line valid.
    let mut line = drawn();
    assert!(line.draw(&Moment { nanos: 3_001_000 + 500, ..exact(3_000_000) }));
    assert!(line.reach > 0);
}

#[test]
fn a_wide_moment_is_not_usable() {
    let mut line = drawn();
    let start = line.start.ticks;
    let wide = Moment { width: 3 * (WIDEST + 2), ..exact(3_000_000) };
    assert!(!line.draw(&wide));
    assert_eq!((line.start.ticks, line.at(wide.ticks)), (start, None));
    assert!(line.draw(&exact(3_000_100)));
    assert_eq!(line.at(9_000_300), Some(Nanos(3_001_100)));
    // A moment is not usable either if the counter or the clock has not advanced.
    assert!(!line.draw(&Moment { ticks: 9_000_300, ..exact(4_000_000) }));
    assert!(!line.draw(&Moment { nanos: line.start.nanos, ..exact(5_000_000) }));
}

#[test]
fn a_moment_is_between_the_readings_of_the_counter() {
    let moment = Moment::between(u64::MAX - 9, 7, 10);
    assert_eq!((moment.ticks, moment.nanos, moment.width), (0, 7, 20));
}

proptest! {
    /// With any slewing by NTP, and any position of the clock reading between those of the counter,
    /// the error of a line never exceeds the bound.
    #[test]
    fn lines_stay_within_the_bound(
        frequency in 500_u64..6_000,
        steps in prop::collection::vec(
            (APART..3 * REACH, -500_i32..=500, 0_u64..=WIDEST, 0_u64..=WIDEST), 3..40),
    ) {
        // Exact nanoseconds of the kernel clock, in units of 10^-12.
        const FINE: i128 = 1_000_000_000_000;
        let (mut ticks, mut fine) = (77_000_u64, 5_000 * FINE);
        let mut line = Line::from(Moment { ticks, nanos: 5_000, width: 0 });
        for (length, slewed, width, place) in steps {
            // The rate is constant from one moment to the next; `frequency` is in MHz.
            let rate = FINE * 1_000 / i128::from(frequency) * i128::from(1_000_000 + slewed)
                / 1_000_000;
            for part in 1..=16 {
                let passed = length * part / 16 * frequency / 1000;
                if let Some(reading) = line.at(ticks + passed) {
                    let off = i128::from(reading.0) * FINE - (fine + i128::from(passed) * rate);
                    prop_assert!(off.abs() <= i128::from(BOUND.0) * FINE, "{off} after {passed}");
                }
            }
            let passed = length * frequency / 1000;
            (ticks, fine) = (ticks + passed, fine + i128::from(passed) * rate);
            let width = width * frequency / 1000;
            let before = ticks - width * place / WIDEST;
            let nanos = u64::try_from(fine / FINE).unwrap();
            line.draw(&Moment::between(before, nanos, before + width));
        }
    }

    /// For any readings, a line does not exceed its reach, and nothing overflows.
    #[test]
    fn lines_do_not_exceed_their_reach(
        moments in prop::collection::vec(any::<(u64, u64, u64)>(), 4)
    ) {
        let mut line = Line::default();
        for (ticks, nanos, width) in moments {
            let nanos = nanos / 2;
            line.draw(&Moment { ticks, nanos, width: width % 1000 });
            for after in [0, 1, line.reach.saturating_sub(1), line.reach, u64::MAX] {
                let reading = line.at(line.start.ticks.wrapping_add(after));
                prop_assert_eq!(reading.is_some(), after < line.reach);
                prop_assert!(reading.is_none_or(|reading| reading.0 - line.start.nanos <= REACH));
            }
        }
    }
}

/// Reads a clock between two readings of the kernel clock: the result is between them, or off by at
/// most the bound, and never goes back. Returns true if a line was used.
fn read_between(clock: &mut Clock, bound: Nanos) -> bool {
    let (last, before) = (clock.last, now());
    let reading = clock.now();
    let after = now();
    assert!(reading >= last, "{reading} after {last}");
    assert!(reading + bound >= before && reading <= after + bound, "{before} {reading} {after}");
    clock.line.reach > 0
}

#[expect(clippy::print_stderr, reason = "reports that the test is skipped")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

#[test]
fn the_clock_agrees_with_the_kernel_over_many_lines() {
    let mut clock = Clock::new();
    if !clock.counts {
        let source = std::fs::read_to_string(SOURCE).unwrap_or_else(|error| error.to_string());
        skipped(&format!("clock source is {}", source.trim_end()));
        return;
    }
    let end = now() + Nanos(20 * REACH);
    let mut followed = false;
    // If the counter is dropped, the kernel clock is used.
    while now() < end || clock.counts && !followed {
        followed |= read_between(&mut clock, BOUND);
    }
    assert!(followed, "the kernel trusts the counter, and no line was drawn");
}

#[test]
fn the_clock_is_monotonic_on_a_thread_that_changes_cpus() {
    std::thread::spawn(|| {
        let all = sched_getaffinity(None).unwrap();
        let mut clock = Clock::new();
        for round in 0..400 {
            let cpus = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu));
            for cpu in cpus.take(8) {
                let mut one = CpuSet::new();
                one.set(cpu);
                sched_setaffinity(None, &one).unwrap();
                (0..=round % 50).for_each(|_| {
                    read_between(&mut clock, BOUND);
                });
            }
        }
    })
    .join()
    .unwrap();
}

#[test]
fn without_a_counter_the_kernel_clock_is_used() {
    let mut clock = Clock::by(false);
    for _ in 0..1000 {
        assert!(!read_between(&mut clock, Nanos(0)));
    }
    // The same holds after the counter was dropped.
    let mut clock = Clock::by(true);
    for _ in 1..PATIENCE {
        clock.assess(false);
    }
    assert!(clock.counts);
    clock.assess(true);
    assert_eq!(clock.patience, PATIENCE);
    (0..PATIENCE).for_each(|_| clock.assess(false));
    assert!(!clock.counts);
    for _ in 0..1000 {
        assert!(!read_between(&mut clock, Nanos(0)));
    }
}

#[test]
fn the_clock_never_returns_an_earlier_instant() {
    let mut clock = Clock::by(false);
    let ahead = now() + Nanos(1_000_000_000);
    clock.last = ahead;
    assert_eq!(clock.now(), ahead);
}
