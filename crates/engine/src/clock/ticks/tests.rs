use proptest::prelude::*;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::*;
use crate::clock::now;

/// How far a clock may be off, as the module says.
const BOUND: Nanos = Nanos(2000);

/// A moment of a counter with three ticks a nanosecond that is known exactly.
fn exact(nanos: u64) -> Moment {
    Moment { ticks: 3 * nanos, nanos: 1_000 + nanos, width: 0 }
}

/// A line that holds, from 2 ms of such a counter on.
fn drawn() -> Line {
    let mut line = Line::from(exact(0));
    assert!(line.draw(&exact(APART)) && line.draw(&exact(2_000_000)));
    line
}

#[test]
fn a_line_takes_two_rates_that_agree() {
    let mut line = Line::from(exact(0));
    assert_eq!(line.at(0), None, "nothing is known");
    assert!(!line.is_over(Nanos(1_000 + APART - 1)) && line.is_over(Nanos(1_000 + APART)));
    assert!(line.draw(&exact(APART)));
    assert_eq!(line.at(3 * APART), None, "one rate may be wrong");
    assert!(line.draw(&exact(2 * APART)));
    assert_eq!(line.at(6 * APART), Some(Nanos(1_000 + 2 * APART)));
}

#[test]
fn a_line_is_followed_for_a_millisecond_and_not_before_its_start() {
    let (line, start) = (drawn(), 6_000_000);
    assert_eq!(line.at(start - 1), None);
    assert_eq!(line.at(start), Some(Nanos(2_001_000)));
    let halfway = line.at(start + 1_500_000).unwrap();
    assert!((2_500_999..=2_501_000).contains(&halfway.0), "{halfway}");
    assert!(line.at(start + 3 * REACH - 3).is_some());
    assert_eq!(line.at(start + 3 * REACH + 1), None);
    // The counter may begin anew after its largest value.
    let late = u64::MAX - 100;
    let mut line = drawn();
    line.start.ticks = late;
    assert_eq!(line.at(late.wrapping_add(3_000)), Some(Nanos(2_001_999)));
}

#[test]
fn a_line_goes_on_where_the_one_before_it_arrives() {
    for late in [0, REACH / 10, REACH / 8] {
        // The kernel's clock is 700 ns behind or before what the line arrives at.
        for off in [-700, 700] {
            let mut line = drawn();
            let end = exact(2 * REACH + REACH + 1 + late);
            let nanos = end.nanos.checked_add_signed(off).unwrap();
            let arrived = line.soon_after(end.ticks);
            let jumps = late == REACH / 8;
            assert_eq!(arrived.is_none(), jumps, "{late}");
            assert!(line.draw(&Moment { nanos, ..end }));
            let told = line.at(end.ticks).unwrap();
            assert_eq!(told.0, if jumps { nanos } else { end.nanos - 1 }, "{late} {off}");
            // An operation of 1 µs is told within a nanosecond or two, wherever it lies.
            for begin in [0, 1, REACH / 2, REACH - 2_000] {
                let at = |nanos| line.at(end.ticks + 3 * nanos).unwrap();
                let long = at(begin + 1_000) - at(begin);
                assert!((998..=1002).contains(&long.0), "{long} from {begin}");
            }
            // At its end it is where the kernel's clock leads.
            let last = line.at(end.ticks + line.reach - 1).unwrap().0;
            assert!(last.abs_diff(nanos + REACH) <= 2, "{last}");
        }
    }
}

#[test]
fn a_change_of_rate_is_noticed_at_the_next_moment() {
    let mut line = drawn();
    // The machine was suspended for a second, in which the counter went on, and goes on as before.
    let suspended = |nanos: u64| Moment { ticks: 3 * nanos + 3_000_000_000, ..exact(nanos) };
    for (at, holds) in [(3_000_000, false), (4_000_000, false), (5_000_000, true)] {
        let moment = suspended(at);
        assert!(line.draw(&moment));
        assert_eq!(line.at(moment.ticks).is_some(), holds, "{at}");
    }
    // The counter went back.
    assert!(!line.draw(&Moment { ticks: 0, ..exact(6_000_000) }) || line.reach == 0);
    // Slewed within the limits of NTP, it holds.
    let mut line = drawn();
    assert!(line.draw(&Moment { nanos: 3_001_000 + 500, ..exact(3_000_000) }));
    assert!(line.reach > 0);
}

#[test]
fn a_wide_moment_is_of_no_use() {
    let mut line = drawn();
    let start = line.start.ticks;
    let wide = Moment { width: 3 * (WIDEST + 2), ..exact(3_000_000) };
    assert!(!line.draw(&wide));
    assert_eq!((line.start.ticks, line.at(wide.ticks)), (start, None));
    assert!(line.draw(&exact(3_000_100)));
    assert_eq!(line.at(9_000_300), Some(Nanos(3_001_100)));
    // Nor is one of a counter that stands still, or of a clock that does.
    assert!(!line.draw(&Moment { ticks: 9_000_300, ..exact(4_000_000) }));
    assert!(!line.draw(&Moment { nanos: line.start.nanos, ..exact(5_000_000) }));
}

#[test]
fn a_moment_lies_amid_the_readings_of_the_counter() {
    let moment = Moment::between(u64::MAX - 9, 7, 10);
    assert_eq!((moment.ticks, moment.nanos, moment.width), (0, 7, 20));
}

proptest! {
    /// A world in which NTP slews as it may, and each reading of the clock lies anywhere between
    /// those of the counter: at no time is a line further off than the bound.
    #[test]
    fn lines_stay_within_the_bound(
        frequency in 500_u64..6_000,
        steps in prop::collection::vec(
            (APART..3 * REACH, -500_i32..=500, 0_u64..=WIDEST, 0_u64..=WIDEST), 3..40),
    ) {
        // True nanoseconds of the kernel's clock, in millionths of millionths: exact.
        const FINE: i128 = 1_000_000_000_000;
        let (mut ticks, mut fine) = (77_000_u64, 5_000 * FINE);
        let mut line = Line::from(Moment { ticks, nanos: 5_000, width: 0 });
        for (length, slewed, width, place) in steps {
            // At a rate that is steady from one moment to the next; `frequency` is in MHz.
            let rate = FINE * 1_000 / i128::from(frequency) * i128::from(1_000_000 + slewed)
                / 1_000_000;
            for part in 1..=16 {
                let passed = length * part / 16 * frequency / 1000;
                if let Some(told) = line.at(ticks + passed) {
                    let off = i128::from(told.0) * FINE - (fine + i128::from(passed) * rate);
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

    /// Whatever is read, a line is no longer than it may be, and nothing overflows.
    #[test]
    fn no_reading_leads_beyond_a_line(moments in prop::collection::vec(any::<(u64, u64, u64)>(), 4)) {
        let mut line = Line::default();
        for (ticks, nanos, width) in moments {
            let nanos = nanos / 2;
            line.draw(&Moment { ticks, nanos, width: width % 1000 });
            for after in [0, 1, line.reach.saturating_sub(1), line.reach, u64::MAX] {
                let told = line.at(line.start.ticks.wrapping_add(after));
                prop_assert_eq!(told.is_some(), after < line.reach);
                prop_assert!(told.is_none_or(|told| told.0 - line.start.nanos <= REACH));
            }
        }
    }
}

/// Reads a clock between two readings of the kernel's: it tells a time between them, or is off by
/// no more than a bound, and does not go back. Answers whether a line was followed.
fn read_between(clock: &mut Clock, bound: Nanos) -> bool {
    let (last, before) = (clock.last, now());
    let told = clock.now();
    let after = now();
    assert!(told >= last, "{told} after {last}");
    assert!(told + bound >= before && told <= after + bound, "{before} {told} {after}");
    clock.line.reach > 0
}

#[expect(clippy::print_stderr, reason = "a test that cannot run says why")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
}

#[test]
fn it_agrees_with_the_kernel_over_many_lines() {
    let mut clock = Clock::new();
    if !clock.counts {
        let source = std::fs::read_to_string(SOURCE).unwrap_or_else(|error| error.to_string());
        skipped(&format!("clock source is {}", source.trim_end()));
        return;
    }
    let end = now() + Nanos(20 * REACH);
    let mut followed = false;
    // Where the counter is given up, the kernel is asked.
    while now() < end || clock.counts && !followed {
        followed |= read_between(&mut clock, BOUND);
    }
    assert!(followed, "the kernel trusts the counter, and no line was drawn");
}

#[test]
fn it_never_goes_back_on_a_thread_that_moves() {
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
fn without_a_counter_it_is_the_clock_of_the_kernel() {
    let mut clock = Clock::by(false);
    for _ in 0..1000 {
        assert!(!read_between(&mut clock, Nanos(0)));
    }
    // So it is with one that was given up.
    let mut clock = Clock::by(true);
    for _ in 1..PATIENCE {
        clock.judge(false);
    }
    assert!(clock.counts);
    clock.judge(true);
    assert_eq!(clock.patience, PATIENCE);
    (0..PATIENCE).for_each(|_| clock.judge(false));
    assert!(!clock.counts);
    for _ in 0..1000 {
        assert!(!read_between(&mut clock, Nanos(0)));
    }
}

#[test]
fn an_instant_told_is_not_taken_back() {
    let mut clock = Clock::by(false);
    let ahead = now() + Nanos(1_000_000_000);
    clock.last = ahead;
    assert_eq!(clock.now(), ahead);
}
