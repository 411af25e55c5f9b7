use model::Histogram;

use super::*;

const MS: u64 = 1_000_000;

fn control() -> ControlBlock {
    ControlBlock::new(1).unwrap()
}

fn histograms() -> Latencies {
    Latencies { read: Histogram::new(), write: Histogram::new(), ..Latencies::default() }
}

/// Limits of a client of a replay in milliseconds.
fn time(ramp: u64, run: u64) -> Limits {
    let time = Some((Nanos(ramp * MS), Nanos(run * MS)));
    Limits { time, ticks: true, ..Limits::default() }
}

fn started(control: &ControlBlock, limits: Limits) -> Counter<'_> {
    let mut counter = Counter::new(control, 0, limits, histograms());
    counter.start(Nanos(0));
    counter
}

/// Counts an operation that ends at this instant. Returns true if the loop continues.
fn write(counter: &mut Counter<'_>, clock: u64, bytes: u64) -> bool {
    let begun = counter.clock;
    counter.one(Nanos(clock), Kind::Write, bytes, begun).unwrap();
    !counter.over
}

/// One operation per 100 ms, whose bytes are its number. Returns the number of operations.
fn fill(counter: &mut Counter<'_>, until: u64) -> u64 {
    let last = (1..).find(|number| !write(counter, number * 100 * MS, *number)).unwrap();
    assert_eq!(counter.clock, Nanos(until * MS));
    last
}

fn finished(counter: Counter<'_>) -> WorkerResult {
    counter.finish(3, Usage::default())
}

#[test]
fn operations_after_the_stop_do_not_count() {
    for finish in [false, true] {
        let control = control();
        let limits = Limits { finish, ..Limits::default() };
        let mut counter = Counter::new(&control, 0, limits, histograms());
        counter.start(Nanos(100));
        counter.one(Nanos(130), Kind::Read, 7, Nanos(100)).unwrap();
        counter.one(Nanos(200), Kind::Write, 5, Nanos(130)).unwrap();
        control.stop();
        counter.one(Nanos(210), Kind::Write, 4, Nanos(200)).unwrap();
        assert_eq!((counter.over, counter.complete), (!finish, false));
        counter.one(Nanos(250), Kind::Write, 9, Nanos(210)).unwrap();
        assert_eq!((control.done(), control.bytes()), (Ops(4), Bytes(25)));
        let result = finished(counter);
        assert_eq!((result.read.ops, result.read.bytes), (Ops(1), Bytes(7)));
        assert_eq!((result.written.ops, result.written.bytes), (Ops(1), Bytes(5)));
        assert_eq!((result.uncounted, result.worker), (Bytes(13), 3));
        assert_eq!((result.loop_time, result.uncounted_time), (Nanos(110), Nanos(40)));
        let longest = (result.latencies.read.max(), result.latencies.write.max());
        assert_eq!(longest, (Some(Nanos(30)), Some(Nanos(70))));
        assert_eq!(result.series.ops, [2]);
    }
}

#[test]
fn an_abort_is_a_fault() {
    let control = control();
    let mut counter = started(&control, Limits::default());
    control.abort();
    assert_eq!(counter.one(Nanos(1), Kind::Read, 0, Nanos(0)), Err(Fault::Aborted));
    assert_eq!((counter.check(), counter.nap(NEVER)), (Err(Fault::Aborted), Err(Fault::Aborted)));
}

#[test]
fn operations_without_times_are_only_counted() {
    let control = control();
    let mut counter = started(&control, Limits::default());
    counter.at(Nanos(1000)).unwrap();
    assert!(counter.tally(Kind::Write, 64, 640));
    let result = finished(counter);
    assert_eq!((result.ops(), result.bytes()), (Ops(64), Bytes(640)));
    assert_eq!(result.latencies.write.count(), 0);
}

#[test]
fn a_write_may_read() {
    let control = control();
    let mut counter = started(&control, Limits::default());
    counter.also_read(3);
    assert!(write(&mut counter, 9, 5));
    control.stop();
    counter.at(Nanos(10)).unwrap();
    counter.also_read(100);
    counter.count(Kind::Write, 1, 7, Nanos(9));
    let result = finished(counter);
    assert_eq!(
        (result.read, result.written.bytes),
        (Moved { ops: Ops(0), bytes: Bytes(3) }, Bytes(5))
    );
    assert_eq!((result.written.ops, result.uncounted), (Ops(1), Bytes(7)));
}

#[test]
fn the_ramp_time_does_not_count() {
    let control = control();
    let mut counter = started(&control, time(500, 2000));
    assert_eq!(fill(&mut counter, 2500), 25);
    let result = finished(counter);
    assert_eq!((result.started, result.loop_time), (Nanos(500 * MS), Nanos(2000 * MS)));
    assert_eq!((result.written.ops, result.written.bytes), (Ops(20), Bytes((6..=25).sum())));
    assert_eq!(result.read, Moved::default());
    assert_eq!((result.latencies.write.count(), result.latencies.read.count()), (20, 0));
    assert_eq!(result.series.bytes.iter().sum::<u64>(), result.written.bytes.0);
}

#[test]
fn the_tick_is_the_last_full_second_before_the_end() {
    let control = control();
    for (run, second, bytes) in [(2000, 1, 1..=9), (2500, 2, 1..=19), (3000, 2, 1..=19)] {
        let mut counter = started(&control, time(0, run));
        fill(&mut counter, run);
        let bytes = Bytes(bytes.sum());
        let ticked = Ticked { elapsed: Nanos(second * SECOND), bytes };
        assert_eq!(finished(counter).ticked, Some(ticked), "{run} ms");
    }
    let mut counter = started(&control, time(0, 1000));
    fill(&mut counter, 1000);
    assert_eq!(finished(counter).ticked, None);
    let mut counter = started(&control, Limits { ticks: false, ..time(0, 2000) });
    fill(&mut counter, 2000);
    assert_eq!(finished(counter).ticked, None);
}

#[test]
fn a_worker_that_is_slow_at_the_end_of_the_ramp_has_the_common_tick() {
    let control = control();
    // The ramp ends at 500 ms, the tick is at 1500 ms, and the end at 2500 ms.
    for (slow_until, bytes) in [(600, 7), (1400, 7), (1501, 0), (2499, 0), (2600, 0)] {
        let mut counter = started(&control, time(500, 2000));
        if write(&mut counter, slow_until * MS, 100) {
            let before = (slow_until + 10).min(1450).max(slow_until);
            assert!(write(&mut counter, before * MS, 7));
            write(&mut counter, 2700 * MS, 9);
        }
        let ticked = Ticked { elapsed: Nanos(SECOND), bytes: Bytes(bytes) };
        assert_eq!(finished(counter).ticked, Some(ticked), "{slow_until} ms");
    }
    // The tick is also reported if it was never passed.
    let mut counter = started(&control, time(500, 2000));
    assert!(write(&mut counter, 500 * MS, 100));
    assert!(write(&mut counter, 700 * MS, 5));
    let ticked = Ticked { elapsed: Nanos(SECOND), bytes: Bytes(5) };
    assert_eq!(finished(counter).ticked, Some(ticked));
}

#[test]
fn a_loop_without_a_time_limit_counts_all_operations() {
    let control = control();
    let mut counter = started(&control, Limits { ticks: true, ..Limits::default() });
    counter.start(Nanos(7));
    counter.one(Nanos(9), Kind::Read, 0, Nanos(7)).unwrap();
    assert!(write(&mut counter, 20, 0));
    let result = finished(counter);
    assert_eq!((result.read.ops, result.written.ops), (Ops(1), Ops(1)));
    assert_eq!((result.loop_time, result.ticked), (Nanos(13), None));
}
