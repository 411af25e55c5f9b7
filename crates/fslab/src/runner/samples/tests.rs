//! Samples and warnings from constructed results and system activity.

mod activity;
mod icount;
mod judged;

use model::{
    Bytes, Histogram, Ops, Warning, activity::DeviceActivity, phase::*, record::HistogramKind,
};

use super::*;

fn phase(direction: Direction, timed: Timed) -> Phase {
    Phase {
        name: "p".into(),
        group: "writing".into(),
        role: Role::Measure,
        cache: Cache::Cold,
        timed,
        directory: None,
        together: None,
        work: Work::Stream(Stream {
            direction,
            end_sync: if direction == Direction::Read { EndSync::None } else { EndSync::Fsync },
            workers: Workers::threads(2),
            ..Stream::new(FileSharing::PerWorker("f".into()), Bytes::mib(1), Bytes::kib(4))
        }),
    }
}

/// Two workers that start 0.5 s apart. Their loops take 1 s and 2 s; each sync and each close takes
/// 1 s.
fn result() -> PhaseResult {
    let worker = |worker: u32, started: u64, seconds: u64| WorkerResult {
        worker,
        started: Nanos(started),
        loop_time: Nanos(seconds * 1_000_000_000),
        end_sync_time: Nanos(1_000_000_000),
        close_time: Nanos(1_000_000_000),
        written: Moved { ops: Ops(256), bytes: Bytes::mib(1) },
        ..WorkerResult::default()
    };
    let workers = vec![worker(0, 0, 1), worker(1, 500_000_000, 2)];
    PhaseResult::new(workers, Nanos(5_000_000_000))
}

/// Turns the written bytes into read ones.
fn as_reads(result: &mut PhaseResult) {
    result.workers.iter_mut().for_each(|worker| worker.read = std::mem::take(&mut worker.written));
}

/// No device, no generator cost, and a clock of negligible cost.
fn nothing() -> PhaseContext {
    let always = RunContext {
        clock: Clock::Wall,
        clock_cost: Nanos(20),
        memory_rate: None,
        memory_limited: false,
        shared_devices: false,
        profile: Profile::Standard,
    };
    PhaseContext { always, activity: SystemActivity::default(), generator: None }
}

/// One device of the filesystem, which read this many bytes.
fn device(read: Bytes) -> PhaseContext {
    let device = DeviceActivity { name: "vda".into(), read, ..DeviceActivity::default() };
    let mut known = nothing();
    known.activity.devices.push(device);
    known
}

/// This many operations of this many nanoseconds each.
fn times(count: u64, nanos: u64) -> Histogram {
    let mut histogram = Histogram::new();
    histogram.record_n(nanos, count);
    histogram
}

fn stream(phase: &mut Phase) -> &mut Stream {
    let Work::Stream(stream) = &mut phase.work else { panic!("a stream") };
    stream
}

fn codes(phase: &Phase, result: &PhaseResult, known: &PhaseContext) -> Vec<&'static str> {
    let samples = of_phase(phase, result, known);
    warnings(phase, result, known, &samples).iter().map(Warning::code).collect()
}

#[test]
fn rates_are_over_first_start_to_last_end() {
    let mib = float(Bytes::MIB);
    let named = of_phase(&phase(Direction::Write, Timed::default()), &result(), &nothing());
    assert_eq!(value(&named, Metric::Throughput), Some(2.0 * mib / 2.5));
    assert_eq!(value(&named, Metric::DurableThroughput), Some(2.0 * mib / 3.5));
    assert_eq!(value(&named, Metric::ThroughputWorkerSum), Some(mib + mib / 2.0));
    assert_eq!(value(&named, Metric::OpsRate), Some(512.0 / 2.5));
    assert_eq!(value(&named, Metric::StartSkew), Some(5e8));
    assert_eq!(value(&named, Metric::DeviceBytesRead), None, "absent, not zero");
    let timed = Timed { sync: true, close: true, tick_subtracted: false };
    let named = of_phase(&phase(Direction::Write, timed), &result(), &nothing());
    assert_eq!(value(&named, Metric::Throughput), Some(2.0 * mib / 4.5));
}

#[test]
fn bytes_after_the_stonewall_count_with_their_time_or_not_at_all() {
    let mut result = result();
    result.workers[1].uncounted = Bytes::mib(1);
    result.workers[1].uncounted_time = Nanos(500_000_000);
    let named = of_phase(&phase(Direction::Write, Timed::default()), &result, &nothing());
    let mib = float(Bytes::MIB);
    assert_eq!(value(&named, Metric::Throughput), Some(2.0 * mib / 2.5));
    assert_eq!(value(&named, Metric::DurableThroughput), Some(3.0 * mib / 4.0));
}

#[test]
fn the_clock_tick_is_subtracted_like_iozone_does() {
    let timed = Timed { tick_subtracted: true, ..Timed::default() };
    let mut result = result();
    result.workers.truncate(1);
    let named = of_phase(&phase(Direction::Write, timed), &result, &nothing());
    assert_eq!(value(&named, Metric::Throughput), Some(float(Bytes::MIB) / 0.999_999));
    result.workers[0].loop_time = Nanos(900);
    let named = of_phase(&phase(Direction::Write, timed), &result, &nothing());
    assert_eq!(value(&named, Metric::Throughput), Some(float(Bytes::MIB) / 1e-6));
}

#[test]
fn a_cold_read_must_reach_the_device() {
    let phase = phase(Direction::Read, Timed::default());
    let mut result = result();
    as_reads(&mut result);
    assert_eq!(codes(&phase, &result, &device(Bytes::mib(2))), Vec::<&str>::new());
    assert_eq!(codes(&phase, &result, &device(Bytes::mib(1))), ["cache-not-cold"]);
    assert_eq!(codes(&phase, &result, &nothing()), Vec::<&str>::new());
}

#[test]
fn an_update_reads_all_bytes_that_it_writes() {
    let mut phase = phase(Direction::Update(1.0), Timed::default());
    let result = result();
    let known = |read| {
        let mut known = device(read);
        known.activity.devices[0].written = Bytes::mib(2);
        known
    };
    assert_eq!(codes(&phase, &result, &known(Bytes::mib(2))), Vec::<&str>::new());
    assert_eq!(codes(&phase, &result, &known(Bytes::mib(1))), ["cache-not-cold"]);
    phase.cache = Cache::Unchanged;
    assert_eq!(codes(&phase, &result, &known(Bytes::mib(1))), ["partly-cached"]);
    let named = of_phase(&phase, &result, &known(Bytes::kib(1536)));
    assert_eq!(value(&named, Metric::CacheHitRatio), Some(0.25));
    assert_eq!(value(&named, Metric::WriteAmplification), Some(1.0), "bytes count once");
    assert_eq!(value(&named, Metric::ReadThroughput), None);
    // Tickets overwrite blocks: bytes that the devices did not write were not lost.
    stream(&mut phase).access_pattern = AccessPattern::Tickets;
    phase.cache = Cache::Warm;
    assert_eq!(codes(&phase, &result, &device(Bytes(0))), Vec::<&str>::new());
    let named = of_phase(&phase, &result, &device(Bytes(0)));
    assert_eq!(value(&named, Metric::DurableThroughput), None);
}

#[test]
fn repeated_reads_request_at_most_the_file_size() {
    let mut phase = phase(Direction::Read, Timed::default());
    let mut result = result();
    as_reads(&mut result);
    // 20 MiB from two files of 1 MiB each: most reads are expected to be cache hits.
    result.workers.iter_mut().for_each(|worker| worker.read.bytes = Bytes::mib(10));
    stream(&mut phase).bound = Bound::Time { ramp: Nanos(0), run: Nanos(1_000_000_000) };
    assert_eq!(codes(&phase, &result, &device(Bytes::mib(2))), ["partly-cached"]);
    assert_eq!(codes(&phase, &result, &device(Bytes::mib(1))), ["cache-not-cold"]);
    stream(&mut phase).access_pattern = AccessPattern::Random;
    result.workers.iter_mut().for_each(|worker| worker.read.bytes = Bytes::mib(1));
    // There are as many draws as blocks, so 1 - 1/e of the 2 MiB is expected: 1.26 MiB.
    assert_eq!(codes(&phase, &result, &device(Bytes::kib(1260))), ["partly-cached"]);
    assert_eq!(codes(&phase, &result, &device(Bytes::kib(1200))), ["cache-not-cold"]);
}

#[test]
fn mixed_phases_report_reads_and_writes_separately() {
    let mut result = result();
    let worker = &mut result.workers[0];
    worker.read = std::mem::take(&mut worker.written);
    worker.latencies.read = times(256, 100);
    result.workers[1].latencies.write = times(256, 1000);
    let named = of_phase(&phase(Direction::Alternate, Timed::default()), &result, &nothing());
    let mib = float(Bytes::MIB);
    assert_eq!(value(&named, Metric::ReadThroughput), Some(mib / 2.5));
    assert_eq!(value(&named, Metric::WriteThroughput), Some(mib / 2.5));
    assert_eq!(value(&named, Metric::ReadOpsRate), Some(256.0 / 2.5));
    assert_eq!(value(&named, Metric::WriteOpsRate), Some(256.0 / 2.5));
    assert_eq!(value(&named, Metric::ReadLatencyP50), Some(100.0));
    assert_eq!(value(&named, Metric::WriteLatencyP50), Some(1000.0));
    assert_eq!(value(&named, Metric::WriteLatencyP99), None, "2.56 operations lie beyond");
    assert_eq!(value(&named, Metric::LatencyP50), Some(100.0));
    assert_eq!(value(&named, Metric::EndSkew), Some(1.5e9));
    let named = of_phase(&phase(Direction::Write, Timed::default()), &self::result(), &nothing());
    assert_eq!(value(&named, Metric::ReadThroughput), None);
}

#[test]
fn percentiles_need_ten_operations_beyond() {
    let mut result = result();
    result.workers.truncate(1);
    for (count, p99, p9999) in
        [(999, None, None), (1000, Some(50.0), None), (100_000, Some(50.0), Some(50.0))]
    {
        result.workers[0].latencies.write = times(count, 50);
        result.workers[0].latencies.flush = times(count, 50);
        let named = of_phase(&phase(Direction::Write, Timed::default()), &result, &nothing());
        assert_eq!(value(&named, Metric::LatencyP99), p99, "{count}");
        assert_eq!(value(&named, Metric::SyncLatencyP99), p99, "{count}");
        assert_eq!(value(&named, Metric::LatencyP9999), p9999, "{count}");
        assert_eq!(value(&named, Metric::SyncCalls), Some(float(count)));
        assert_eq!(value(&named, Metric::SyncLatencyMax), Some(50.0));
    }
    assert_eq!(
        value(
            &of_phase(&phase(Direction::Write, Timed::default()), &self::result(), &nothing()),
            Metric::SyncCalls
        ),
        None
    );
}

#[test]
fn only_histograms_with_values_are_kept_under_their_names() {
    let mut result = result();
    result.workers[0].latencies.write = times(3, 50);
    result.workers[1].latencies.write = times(4, 50);
    result.workers[1].latencies.submit = times(4, 5);
    let kept = histograms("p", &result);
    let named: Vec<_> = kept.iter().map(|times| (times.kind, times.histogram.count())).collect();
    assert_eq!(
        named,
        [(HistogramKind::All, 7), (HistogramKind::Write, 7), (HistogramKind::Submission, 4)]
    );
}

#[test]
fn costs_cover_the_ramp_up_and_are_spread_over_it() {
    let mut phase = phase(Direction::Read, Timed::default());
    // 3 s are counted. The ramp times of the two workers, 1.5 s each, are 3 s more.
    stream(&mut phase).bound = Bound::Time { ramp: Nanos(1_500_000_000), run: Nanos(1) };
    let mut result = result();
    for worker in &mut result.workers {
        worker.read = std::mem::take(&mut worker.written);
        worker.user_time = Nanos(1_024_000);
        worker.system_time = Nanos(2_048_000);
        worker.voluntary_switches = 500;
        worker.involuntary_switches = 12;
        worker.eagain_reads = Ops(128);
    }
    let named = of_phase(&phase, &result, &device(Bytes::mib(3)));
    assert_eq!(value(&named, Metric::UserTimePerOp), Some(2000.0));
    assert_eq!(value(&named, Metric::SystemTimePerOp), Some(4000.0));
    assert_eq!(value(&named, Metric::ContextSwitchesPerOp), Some(1.0));
    assert_eq!(value(&named, Metric::UserCpuUtilization), Some(2_048_000.0 / 1e10));
    assert_eq!(value(&named, Metric::VoluntaryContextSwitches), Some(1000.0));
    assert_eq!(value(&named, Metric::EagainReads), Some(256.0));
    assert_eq!(value(&named, Metric::EagainFraction), Some(0.25));
    assert_eq!(value(&named, Metric::CacheHitRatio), Some(0.25), "3 of 4 MiB");
}

#[test]
fn the_generator_warning_uses_its_fraction_of_the_worker_time() {
    let mut phase = phase(Direction::Write, Timed::default());
    let mut result = result();
    // 512 operations in 3 s of two workers: 5.86 ms each.
    let of = |nanos| PhaseContext { generator: Some(nanos), ..nothing() };
    let share = |phase: &Phase, nanos| {
        value(&of_phase(phase, &self::result(), &of(nanos)), Metric::GeneratorOverhead)
    };
    assert_eq!(share(&phase, 3e9 / 512.0 / 10.0), Some(0.1));
    assert_eq!(codes(&phase, &result, &of(3e9 / 512.0 / 10.0)), ["generator-bound"]);
    assert_eq!(codes(&phase, &result, &of(3e9 / 512.0 / 25.0)), Vec::<&str>::new());
    assert_eq!(share(&phase, 0.0), Some(0.0));
    let rate = Rate::Ops(100);
    stream(&mut phase).pace = Pace::Open { rate, arrivals: Arrivals::Poisson };
    assert_eq!(share(&phase, 1e6), None, "paced workers have idle time");
    result.workers.clear();
    assert_eq!(codes(&phase, &result, &of(1e9)), Vec::<&str>::new());
}

#[test]
fn a_tree_counts_files_and_moves_nothing_when_they_are_empty() {
    let mut phase = phase(Direction::Write, Timed::default());
    let set = Set {
        name: "t".into(),
        sharing: Sharing::Private,
        files: 256,
        spread: Spread::Directories { each: 16 },
        naming: Naming::Numbers,
        sizes: Sizes::Fixed(Bytes(0)),
        block_size: Bytes(0),
        data: DataPattern::default(),
        seed: 0,
    };
    phase.work = Work::Tree(Tree {
        workers: Workers::threads(2),
        ..Tree::new(set, vec![TreeStep::Create, TreeStep::Close])
    });
    let mut result = result();
    result.workers.iter_mut().for_each(|worker| worker.written.bytes = Bytes(0));
    let named = of_phase(&phase, &result, &nothing());
    assert_eq!(value(&named, phase.primary()), Some(512.0 / 2.5));
    assert_eq!(value(&named, Metric::Throughput), None);
    assert_eq!(named.iter().filter(|sample| sample.worker.is_some()).count(), 2);
}
