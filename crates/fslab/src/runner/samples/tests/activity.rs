use model::activity::{
    CpuActivity, DeviceWithoutCounters, Faults, GaugeSeries, HostCpu, KernelThread, Origin,
    OtherProcess, Overhead, Pressure, Unavailable,
};
use rig::{ProgramTime, Space, SpaceUsage, Step};

use super::*;
use crate::runner::samples::warnings::logged;

const SECOND: u64 = 1_000_000_000;

/// 10 s on two CPUs.
pub(super) fn cpu() -> CpuActivity {
    let thread = |origin, name: &str, millis: u64| KernelThread {
        origin,
        name: name.into(),
        time: Nanos(millis * 1_000_000),
    };
    CpuActivity {
        workload: Nanos(2 * SECOND),
        monitoring: Nanos(SECOND / 100),
        kernel: vec![
            thread(Origin::Journal, "jbd2/vda", 400),
            thread(Origin::Writeback, "kworker flush", 100),
            thread(Origin::Other, "rcu_preempt", 50),
        ],
        others: vec![OtherProcess {
            name: "updatedb".into(),
            group: Some("/system.slice".into()),
            time: Nanos(SECOND / 10),
        }],
        others_total: Nanos(SECOND / 5),
        host: HostCpu {
            processors: 2,
            busy: Nanos(3 * SECOND),
            iowait: Nanos(4 * SECOND),
            interrupts: None,
            steal: Nanos(SECOND / 20),
            resolution: Nanos(10_000_000),
        },
    }
}

/// Everything that is recorded in 10 s.
pub(super) fn everything() -> PhaseContext {
    let device = |name: &str, depth, factor: u64| DeviceActivity {
        name: name.into(),
        depth,
        read: Bytes(1000 * factor),
        written: Bytes(3000 * factor),
        reads: 10 * factor,
        writes: 20 * factor,
        discarded: Some(Bytes(500)),
        flushes: Some(3),
        queue_time: Nanos(5 * SECOND),
        busy: Nanos(factor * SECOND),
        ..DeviceActivity::default()
    };
    let seconds = |seconds: u64| Nanos(seconds * SECOND);
    let activity = SystemActivity {
        window: Nanos(10 * SECOND),
        devices: vec![device("dm-0", 0, 1), device("sda", 1, 9), device("dm-1", 0, 2)],
        cpu: Some(cpu()),
        faults: Some(Faults { minor: 70, major: 3 }),
        pressure: Some(Pressure {
            cpu_some: seconds(1),
            memory_some: seconds(0),
            memory_full: seconds(0),
            io_some: seconds(11),
            io_full: seconds(2),
        }),
        gauges: GaugeSeries {
            times: vec![seconds(1), seconds(2)],
            dirty: vec![900, 400],
            writeback: vec![0, 0],
            frequency: vec![2_000_000_000, 3_000_000_000],
        },
        overhead: Some(Overhead { cpu: Nanos(SECOND / 100), memory: Bytes::mib(20), samples: 100 }),
        ..SystemActivity::default()
    };
    PhaseContext { activity, ..nothing() }
}

#[test]
fn activity_becomes_samples_of_the_same_window() {
    let phase = phase(Direction::Write, Timed::default());
    let named = of_phase(&phase, &result(), &everything());
    for (metric, expected) in [
        (Metric::KernelThreadTime, 5e8),
        (Metric::AttributedCpuTime, 2.5e9),
        (Metric::AttributedCpuTimePerOp, 2.5e9 / 512.0),
        (Metric::AttributedCpuUtilization, 0.25),
        (Metric::HostCpuUtilization, 0.15),
        (Metric::OtherCpuUtilization, 0.01),
        (Metric::IowaitFraction, 0.2),
        (Metric::StealFraction, 0.0025),
        (Metric::UnattributedFraction, 0.24 / 3.0),
        (Metric::MinorFaults, 70.0),
        (Metric::MajorFaults, 3.0),
        (Metric::PsiCpuSome, 0.1),
        (Metric::PsiMemorySome, 0.0),
        (Metric::PsiIoSome, 1.0),
        (Metric::PsiIoFull, 0.2),
        (Metric::DirtyMemoryPeak, 900.0),
        (Metric::DirtyMemoryEnd, 400.0),
        (Metric::CpuFrequency, 2.5e9),
        (Metric::MonitoringCpuUtilization, 0.001),
        (Metric::MonitoringMemory, 20.0 * 1_048_576.0),
        (Metric::DeviceBytesRead, 3000.0),
        (Metric::DeviceBytesWritten, 9000.0),
        (Metric::DeviceReadRequests, 30.0),
        (Metric::DeviceWriteRequests, 60.0),
        (Metric::DeviceFlushRequests, 6.0),
        (Metric::DeviceBytesDiscarded, 1000.0),
        (Metric::DeviceUtilization, 0.2),
        (Metric::DeviceQueueLength, 1.0),
        (Metric::WriteAmplification, 9000.0 / 2_097_152.0),
    ] {
        let found = value(&named, metric);
        let near = found.is_some_and(|found| (found / expected - 1.0).abs() < 1e-9);
        assert!(near || found == Some(expected), "{}: {found:?}, not {expected}", metric.name());
    }
    assert_eq!(value(&named, Metric::ReadAmplification), None);
    assert!(named.iter().all(|sample| sample.value.is_finite()));
}

#[test]
fn missing_counters_give_no_sample() {
    let phase = phase(Direction::Write, Timed::default());
    let of = |known: &PhaseContext| {
        let metrics: Vec<_> = of_phase(&phase, &result(), known).iter().map(|s| s.metric).collect();
        metrics
    };
    let mut window = nothing();
    window.activity.window = Nanos(10 * SECOND);
    window.activity.unavailable = vec![Unavailable { what: "all".into(), why: "a test".into() }];
    assert_eq!(of(&nothing()), of(&window));
    let mut old = everything();
    old.activity.devices[2].flushes = None;
    old.activity.devices[0].discarded = None;
    let lacking: Vec<_> =
        of(&everything()).into_iter().filter(|metric| !of(&old).contains(metric)).collect();
    assert_eq!(lacking, [Metric::DeviceFlushRequests, Metric::DeviceBytesDiscarded]);
    // An empty window has no fractions.
    let mut empty = everything();
    empty.activity.window = Nanos(0);
    assert!(of_phase(&phase, &result(), &empty).iter().all(|sample| sample.value.is_finite()));
}

#[test]
fn cpu_utilization_follows_bonnie_and_iozone() {
    let mut result = result();
    result.workers.iter_mut().for_each(|worker| worker.user_time = Nanos(5 * SECOND));
    let named = of_phase(&phase(Direction::Write, Timed::default()), &result, &nothing());
    assert_eq!(value(&named, Metric::CpuUtilization), Some(2.0), "two CPUs of 5 s in 5 s");
    assert_eq!(value(&named, Metric::UserCpuUtilization), Some(1.0));
}

#[test]
fn written_bytes_include_the_ramp_time_and_the_stonewall() {
    let mut phase = phase(Direction::Write, Timed::default());
    let mut known = device(Bytes(0));
    known.activity.devices[0].written = Bytes::mib(9);
    let amplification = |phase: &Phase, result: &PhaseResult| {
        value(&of_phase(phase, result, &known), Metric::WriteAmplification)
    };
    assert_eq!(amplification(&phase, &result()), Some(4.5));
    let mut stonewalled = result();
    stonewalled.workers[0].uncounted = Bytes::mib(1);
    assert_eq!(amplification(&phase, &stonewalled), Some(3.0));
    // 3 s are counted, 2 · 0.75 s are ramp time.
    stream(&mut phase).bound = Bound::Time { ramp: Nanos(750_000_000), run: Nanos(1) };
    assert_eq!(amplification(&phase, &result()), Some(3.0));
    stream(&mut phase).end_sync = EndSync::None;
    assert_eq!(amplification(&phase, &result()), None, "it may still be in memory");
    stream(&mut phase).open.dsync = true;
    assert_eq!(amplification(&phase, &result()), Some(3.0));
    stream(&mut phase).io_engine = IoEngineKind::Null;
    assert_eq!(amplification(&phase, &result()), None);
}

/// The device counters of a directory include other processes.
#[test]
fn amplification_is_omitted_if_devices_are_shared() {
    let of = |direction, cache, shared_devices| {
        let mut phase = phase(direction, Timed::default());
        phase.cache = cache;
        stream(&mut phase).end_sync = EndSync::Fsync;
        let mut result = result();
        if direction == Direction::Read {
            as_reads(&mut result);
        }
        let mut known = device(Bytes::mib(3));
        known.activity.devices[0].written = Bytes::gib(1);
        known.always.shared_devices = shared_devices;
        let named = of_phase(&phase, &result, &known);
        let amplification = [Metric::ReadAmplification, Metric::WriteAmplification];
        (amplification.map(|metric| value(&named, metric)), named.len())
    };
    assert_eq!(of(Direction::Write, Cache::Unchanged, false).0, [None, Some(512.0)]);
    assert_eq!(of(Direction::Write, Cache::Unchanged, true).0, [None, None]);
    assert_eq!(of(Direction::Read, Cache::Cold, false).0, [Some(1.5), None]);
    assert_eq!(of(Direction::Read, Cache::Cold, true).0, [None, None]);
    let others = |shared| of(Direction::Read, Cache::Cold, shared).1;
    assert_eq!(others(true) + 1, others(false), "the other samples remain");
}

#[test]
fn read_amplification_requires_a_cold_cache() {
    let mut phase = phase(Direction::Read, Timed::default());
    let mut result = result();
    as_reads(&mut result);
    let known = device(Bytes::mib(3));
    let of = |phase: &Phase, metric| value(&of_phase(phase, &result, &known), metric);
    assert_eq!(of(&phase, Metric::ReadAmplification), Some(1.5));
    assert_eq!(of(&phase, Metric::CacheHitRatio), Some(0.0));
    phase.cache = Cache::Warm;
    assert_eq!(of(&phase, Metric::ReadAmplification), None);
    assert_eq!(of(&phase, Metric::CacheHitRatio), Some(0.0));
    stream(&mut phase).open.direct = true;
    assert_eq!(of(&phase, Metric::CacheHitRatio), None);
}

/// One worker with a task of 2 s and 1 s of sync.
pub(super) fn task(deed: TaskOperation) -> (Phase, PhaseResult) {
    let mut phase = phase(Direction::Read, Timed::default());
    let task =
        Task { operation: deed, method: Method::Native, block_size: Bytes::kib(128), seed: 0 };
    phase.work = Work::Task(task);
    let mut result = result();
    result.workers.remove(0);
    // The engine counts operations on one side and bytes on both.
    let worker = &mut result.workers[0];
    worker.read = Moved { ops: Ops(0), bytes: worker.written.bytes };
    (phase, result)
}

#[test]
fn a_task_ends_with_its_loop_and_is_durable_after_its_sync() {
    let spot = |at| TaskPath { root: at, name: "x".into() };
    let copy = |from, to| TaskOperation::Copy { from: spot(from), to: spot(to), times: 1 };
    let mut known = device(Bytes::kib(512));
    known.activity.devices[0].written = Bytes::mib(2);
    let of = |(phase, result): &(Phase, PhaseResult), metric| {
        value(&of_phase(phase, result, &known), metric)
    };
    let mut inward = task(copy(TaskRoot::External, TaskRoot::Target));
    assert_eq!(inward.0.primary(), Metric::Elapsed);
    assert_eq!(of(&inward, Metric::Elapsed), Some(2e9));
    assert_eq!(of(&inward, Metric::DurableElapsed), Some(3e9));
    assert_eq!(of(&inward, Metric::WriteAmplification), Some(2.0));
    assert_eq!(of(&inward, Metric::CacheHitRatio), None, "it reads from another filesystem");
    assert_eq!(of(&inward, Metric::Throughput), None, "the same bytes twice");
    assert_eq!(of(&inward, Metric::WriteThroughput), Some(524_288.0));
    assert_eq!(of(&inward, Metric::ReadOpsRate), None, "a copy is one operation");
    let used = inward.1.workers[0].user_time + inward.1.workers[0].system_time;
    assert_eq!(of(&inward, Metric::CpuUtilization), Some(nanos(used) / 2e9), "without the sync");
    let outward = task(copy(TaskRoot::Target, TaskRoot::External));
    assert_eq!(of(&outward, Metric::CacheHitRatio), Some(0.5));
    assert_eq!(of(&outward, Metric::ReadAmplification), Some(0.5));
    assert_eq!(of(&outward, Metric::WriteAmplification), None);
    inward.1.workers[0].end_sync_time = Nanos(0);
    assert_eq!(of(&inward, Metric::DurableElapsed), None);
    assert_eq!(of(&inward, Metric::WriteAmplification), None);
}

#[test]
fn a_sum_over_some_of_the_devices_is_not_available() {
    let phase = phase(Direction::Write, Timed::default());
    let mut known = device(Bytes::mib(1));
    let of = |known: &PhaseContext, metric| value(&of_phase(&phase, &result(), known), metric);
    assert!(of(&known, Metric::DeviceBytesRead).is_some());
    known.activity.without_counters.push(DeviceWithoutCounters { name: "sdc".into(), depth: 1 });
    assert!(of(&known, Metric::DeviceBytesRead).is_some(), "layers below are not part of the sum");
    known.activity.without_counters.push(DeviceWithoutCounters { name: "sdb".into(), depth: 0 });
    for metric in [Metric::DeviceBytesRead, Metric::DeviceBytesWritten, Metric::WriteAmplification]
    {
        assert_eq!(of(&known, metric), None, "{}", metric.name());
    }
}

#[test]
fn coarse_counters_are_reported_for_long_windows_only() {
    let phase = phase(Direction::Write, Timed::default());
    let mut known = everything();
    let of = |known: &PhaseContext, metric| value(&of_phase(&phase, &result(), known), metric);
    assert!(of(&known, Metric::HostCpuUtilization).is_some());
    known.activity.cpu.as_mut().unwrap().host.resolution = Nanos(known.activity.window.0 / 9);
    for metric in [Metric::HostCpuUtilization, Metric::UnattributedFraction, Metric::StealFraction]
    {
        assert_eq!(of(&known, metric), None, "{}", metric.name());
    }
    assert!(of(&known, Metric::OtherCpuUtilization).is_some());
}

#[test]
fn steps_and_space_have_separate_samples() {
    let mut known = everything();
    known.activity.log = Vec::new();
    let whole = Step {
        name: "mkfs",
        elapsed: Nanos(4_000),
        program: Some(ProgramTime { user: Nanos(1_000), system: Nanos(2_000) }),
        activity: Some(known.activity),
    };
    let values = |samples: Vec<Sample>| {
        let values: Vec<_> =
            samples.iter().map(|s| (s.phase.clone(), s.metric.name(), s.value)).collect();
        values
    };
    let mkfs = |metric, value| ("mkfs".to_owned(), metric, value);
    assert_eq!(
        values(step(&whole, Clock::Wall)),
        [
            mkfs("elapsed", 4000.0),
            mkfs("user_time", 1000.0),
            mkfs("system_time", 2000.0),
            mkfs("cpu_utilization", 0.75),
            mkfs("kernel_thread_time", 5e8),
            mkfs("device_bytes_read", 3000.0),
            mkfs("device_bytes_written", 9000.0),
            mkfs("device_flush_requests", 6.0),
        ]
    );
    let bare = Step { program: None, activity: None, ..whole };
    assert_eq!(values(step(&bare, Clock::Wall)), [mkfs("elapsed", 4000.0)]);
    let space =
        Space { available: Bytes(5), device_size: Bytes(9), inodes: None, ..Space::default() };
    assert_eq!(
        values(available_space(space)),
        [mkfs("space_available", 5.0), mkfs("device_size", 9.0)]
    );
    let at = |metric, value| ("space".to_owned(), metric, value);
    assert_eq!(
        values(used_space(SpaceUsage { used: Bytes(6), data: Bytes(4) })),
        [at("space_used", 6.0), at("apparent_size", 4.0), at("space_amplification", 1.5)]
    );
    let empty = values(used_space(SpaceUsage { used: Bytes(6), data: Bytes(0) }));
    assert_eq!(empty.len(), 2, "nothing to divide by");
    assert_eq!(logged(&SystemActivity::default()), None);
}
