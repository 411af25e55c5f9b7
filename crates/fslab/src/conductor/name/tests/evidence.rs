use model::evidence::{
    Absent, CpuWork, Faults, Gauges, HostCpu, KernelThread, Origin, OtherProcess, Overhead,
    Pressure, Uncounted,
};
use rig::{Occupancy, ProgramTime, Space, Step};

use super::*;
use crate::conductor::name::warnings::logged;

const SECOND: u64 = 1_000_000_000;

/// 10 s on two processors.
pub(super) fn cpu() -> CpuWork {
    let thread = |origin, name: &str, millis: u64| KernelThread {
        origin,
        name: name.into(),
        time: Nanos(millis * 1_000_000),
    };
    CpuWork {
        workload: Nanos(2 * SECOND),
        watching: Nanos(SECOND / 100),
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

/// All there is to see in 10 s.
pub(super) fn everything() -> Known {
    let device = |name: &str, depth, factor: u64| DeviceWork {
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
        ..DeviceWork::default()
    };
    let seconds = |seconds: u64| Nanos(seconds * SECOND);
    let evidence = Evidence {
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
        gauges: Gauges {
            at: vec![seconds(1), seconds(2)],
            dirty: vec![900, 400],
            writeback: vec![0, 0],
            frequency: vec![2_000_000_000, 3_000_000_000],
        },
        overhead: Some(Overhead { cpu: Nanos(SECOND / 100), memory: Bytes::mib(20), looks: 100 }),
        ..Evidence::default()
    };
    Known { evidence, ..nothing() }
}

#[test]
fn evidence_becomes_samples_of_the_same_window() {
    let phase = phase(Direction::Write, Timed::default());
    let named = samples(&phase, &result(), &everything());
    for (metric, expected) in [
        (Metric::KernelTime, 5e8),
        (Metric::CausedTime, 2.5e9),
        (Metric::CausedTimePerOp, 2.5e9 / 512.0),
        (Metric::CausedShare, 0.25),
        (Metric::HostShare, 0.15),
        (Metric::OtherShare, 0.01),
        (Metric::IowaitShare, 0.2),
        (Metric::StealShare, 0.0025),
        (Metric::UnattributedShare, 0.24 / 3.0),
        (Metric::MinorFaults, 70.0),
        (Metric::MajorFaults, 3.0),
        (Metric::PressureCpu, 0.1),
        (Metric::PressureMemory, 0.0),
        (Metric::PressureIo, 1.0),
        (Metric::PressureIoFull, 0.2),
        (Metric::DirtyPeak, 900.0),
        (Metric::DirtyEnd, 400.0),
        (Metric::Frequency, 2.5e9),
        (Metric::OverheadShare, 0.001),
        (Metric::OverheadMemory, 20.0 * 1_048_576.0),
        (Metric::DeviceRead, 3000.0),
        (Metric::DeviceWritten, 9000.0),
        (Metric::DeviceReads, 30.0),
        (Metric::DeviceWrites, 60.0),
        (Metric::DeviceFlushes, 6.0),
        (Metric::DeviceDiscarded, 1000.0),
        (Metric::DeviceBusy, 0.2),
        (Metric::DeviceQueue, 1.0),
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
fn what_was_not_seen_gives_no_sample() {
    let phase = phase(Direction::Write, Timed::default());
    let of = |known: &Known| {
        let metrics: Vec<_> = samples(&phase, &result(), known).iter().map(|s| s.metric).collect();
        metrics
    };
    let mut window = nothing();
    window.evidence.window = Nanos(10 * SECOND);
    window.evidence.absent = vec![Absent { what: "all".into(), why: "a test".into() }];
    assert_eq!(of(&nothing()), of(&window));
    let mut old = everything();
    old.evidence.devices[2].flushes = None;
    old.evidence.devices[0].discarded = None;
    let lacking: Vec<_> =
        of(&everything()).into_iter().filter(|metric| !of(&old).contains(metric)).collect();
    assert_eq!(lacking, [Metric::DeviceFlushes, Metric::DeviceDiscarded]);
    // A window of nothing has no shares of it.
    let mut empty = everything();
    empty.evidence.window = Nanos(0);
    assert!(samples(&phase, &result(), &empty).iter().all(|sample| sample.value.is_finite()));
}

#[test]
fn processors_are_told_as_the_classic_tools_have_it() {
    let mut result = result();
    result.workers.iter_mut().for_each(|worker| worker.user_time = Nanos(5 * SECOND));
    let named = samples(&phase(Direction::Write, Timed::default()), &result, &nothing());
    assert_eq!(value(&named, Metric::CpuShare), Some(2.0), "two processors of 5 s in 5 s");
    assert_eq!(value(&named, Metric::UserShare), Some(1.0));
}

#[test]
fn written_bytes_count_the_ramp_up_and_what_followed_the_stonewall() {
    let mut phase = phase(Direction::Write, Timed::default());
    let mut known = device(Bytes(0));
    known.evidence.devices[0].written = Bytes::mib(9);
    let amplification = |phase: &Phase, result: &PhaseResult| {
        value(&samples(phase, result, &known), Metric::WriteAmplification)
    };
    assert_eq!(amplification(&phase, &result()), Some(4.5));
    let mut stonewalled = result();
    stonewalled.workers[0].uncounted = Bytes::mib(1);
    assert_eq!(amplification(&phase, &stonewalled), Some(3.0));
    // 3 s counted, 2 · 0.75 s of ramp-up.
    stream(&mut phase).bound = Bound::Time { ramp: Nanos(750_000_000), run: Nanos(1) };
    assert_eq!(amplification(&phase, &result()), Some(3.0));
    stream(&mut phase).flush = Flush::None;
    assert_eq!(amplification(&phase, &result()), None, "it may still be in memory");
    stream(&mut phase).open.dsync = true;
    assert_eq!(amplification(&phase, &result()), Some(3.0));
    stream(&mut phase).interface = Interface::Null;
    assert_eq!(amplification(&phase, &result()), None);
}

#[test]
fn reads_are_amplified_only_where_they_start_cold() {
    let mut phase = phase(Direction::Read, Timed::default());
    let mut result = result();
    as_reads(&mut result);
    let known = device(Bytes::mib(3));
    let of = |phase: &Phase, metric| value(&samples(phase, &result, &known), metric);
    assert_eq!(of(&phase, Metric::ReadAmplification), Some(1.5));
    assert_eq!(of(&phase, Metric::CachedShare), Some(0.0));
    phase.cache = Cache::Warm;
    assert_eq!(of(&phase, Metric::ReadAmplification), None);
    assert_eq!(of(&phase, Metric::CachedShare), Some(0.0));
    stream(&mut phase).open.direct = true;
    assert_eq!(of(&phase, Metric::CachedShare), None);
}

/// One worker that did a task in 2 s with 1 s of flush.
pub(super) fn task(deed: Deed) -> (Phase, PhaseResult) {
    let mut phase = phase(Direction::Read, Timed::default());
    let task = Task { deed, method: Method::Native, buffer: Bytes::kib(128), seed: 0 };
    phase.work = Work::Task(task);
    let mut result = result();
    result.workers.remove(0);
    // As the engine tells it: operations on one side, bytes on both.
    let worker = &mut result.workers[0];
    worker.read = Moved { ops: Ops(0), bytes: worker.written.bytes };
    (phase, result)
}

#[test]
fn a_task_is_over_with_its_loop_and_durable_with_its_flush() {
    let spot = |at| Spot { at, name: "x".into() };
    let copy = |from, to| Deed::Copy { from: spot(from), to: spot(to), times: 1 };
    let mut known = device(Bytes::kib(512));
    known.evidence.devices[0].written = Bytes::mib(2);
    let of = |(phase, result): &(Phase, PhaseResult), metric| {
        value(&samples(phase, result, &known), metric)
    };
    let mut inward = task(copy(At::Elsewhere, At::Target));
    assert_eq!(inward.0.primary(), Metric::Elapsed);
    assert_eq!(of(&inward, Metric::Elapsed), Some(2e9));
    assert_eq!(of(&inward, Metric::DurableElapsed), Some(3e9));
    assert_eq!(of(&inward, Metric::WriteAmplification), Some(2.0));
    assert_eq!(of(&inward, Metric::CachedShare), None, "it reads elsewhere");
    assert_eq!(of(&inward, Metric::Throughput), None, "the same bytes twice");
    assert_eq!(of(&inward, Metric::WriteThroughput), Some(524_288.0));
    assert_eq!(of(&inward, Metric::ReadOpsRate), None, "a copy is one operation");
    let used = inward.1.workers[0].user_time + inward.1.workers[0].system_time;
    assert_eq!(of(&inward, Metric::CpuShare), Some(nanos(used) / 2e9), "without the flush");
    let outward = task(copy(At::Target, At::Elsewhere));
    assert_eq!(of(&outward, Metric::CachedShare), Some(0.5));
    assert_eq!(of(&outward, Metric::ReadAmplification), Some(0.5));
    assert_eq!(of(&outward, Metric::WriteAmplification), None);
    inward.1.workers[0].flush_time = Nanos(0);
    assert_eq!(of(&inward, Metric::DurableElapsed), None);
    assert_eq!(of(&inward, Metric::WriteAmplification), None);
}

#[test]
fn a_sum_without_one_of_the_devices_is_not_told() {
    let phase = phase(Direction::Write, Timed::default());
    let mut known = device(Bytes::mib(1));
    let of = |known: &Known, metric| value(&samples(&phase, &result(), known), metric);
    assert!(of(&known, Metric::DeviceRead).is_some());
    known.evidence.uncounted.push(Uncounted { name: "sdc".into(), depth: 1 });
    assert!(of(&known, Metric::DeviceRead).is_some(), "what lies below is no part of the sum");
    known.evidence.uncounted.push(Uncounted { name: "sdb".into(), depth: 0 });
    for metric in [Metric::DeviceRead, Metric::DeviceWritten, Metric::WriteAmplification] {
        assert_eq!(of(&known, metric), None, "{}", metric.name());
    }
}

#[test]
fn what_the_machine_counts_in_steps_is_told_of_long_windows_only() {
    let phase = phase(Direction::Write, Timed::default());
    let mut known = everything();
    let of = |known: &Known, metric| value(&samples(&phase, &result(), known), metric);
    assert!(of(&known, Metric::HostShare).is_some());
    known.evidence.cpu.as_mut().unwrap().host.resolution = Nanos(known.evidence.window.0 / 9);
    for metric in [Metric::HostShare, Metric::UnattributedShare, Metric::StealShare] {
        assert_eq!(of(&known, metric), None, "{}", metric.name());
    }
    assert!(of(&known, Metric::OtherShare).is_some());
}

#[test]
fn steps_and_space_have_samples_of_their_own() {
    let mut known = everything();
    known.evidence.log = Vec::new();
    let whole = Step {
        name: "mkfs",
        elapsed: Nanos(4_000),
        program: Some(ProgramTime { user: Nanos(1_000), system: Nanos(2_000) }),
        evidence: Some(known.evidence),
    };
    let told = |samples: Vec<Sample>| {
        let told: Vec<_> =
            samples.iter().map(|s| (s.phase.clone(), s.metric.name(), s.value)).collect();
        told
    };
    let mkfs = |metric, value| ("mkfs".to_owned(), metric, value);
    assert_eq!(
        told(step(&whole, Clock::Wall)),
        [
            mkfs("elapsed", 4000.0),
            mkfs("user_time", 1000.0),
            mkfs("system_time", 2000.0),
            mkfs("cpu_share", 0.75),
            mkfs("kernel_time", 5e8),
            mkfs("device_read", 3000.0),
            mkfs("device_written", 9000.0),
            mkfs("device_flushes", 6.0),
        ]
    );
    let bare = Step { program: None, evidence: None, ..whole };
    assert_eq!(told(step(&bare, Clock::Wall)), [mkfs("elapsed", 4000.0)]);
    let space = Space { usable: Bytes(5), total: Bytes(9), inodes: None, ..Space::default() };
    assert_eq!(told(offered(space)), [mkfs("space_usable", 5.0), mkfs("space_total", 9.0)]);
    let at = |metric, value| ("space".to_owned(), metric, value);
    assert_eq!(
        told(occupied(Occupancy { used: Bytes(6), data: Bytes(4) })),
        [at("space_used", 6.0), at("space_data", 4.0), at("space_overhead", 1.5)]
    );
    let empty = told(occupied(Occupancy { used: Bytes(6), data: Bytes(0) }));
    assert_eq!(empty.len(), 2, "nothing to divide by");
    assert_eq!(logged(&Evidence::default()), None);
}
