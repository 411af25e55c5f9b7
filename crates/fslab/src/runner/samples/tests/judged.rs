use model::activity::{GaugeSeries, KernelThread, LogLine, Origin};

use super::{
    activity::{everything, task},
    *,
};

const SECOND: u64 = 1_000_000_000;

/// Reads with this many bytes from memory out of 2 MiB.
fn reads(cache: Cache) -> (Phase, PhaseResult) {
    let mut phase = phase(Direction::Read, Timed::default());
    phase.cache = cache;
    let mut result = result();
    as_reads(&mut result);
    (phase, result)
}

/// Warnings of a phase with changed system activity.
#[track_caller]
fn judged(
    (phase, result): &(Phase, PhaseResult),
    change: impl FnOnce(&mut PhaseContext),
) -> Vec<&'static str> {
    let mut known = everything();
    known.activity.devices.truncate(1);
    known.activity.devices[0].read = Bytes::mib(2);
    known.activity.devices[0].written = Bytes::mib(2);
    change(&mut known);
    codes(phase, result, &known)
}

fn writes() -> (Phase, PhaseResult) {
    (phase(Direction::Write, Timed::default()), result())
}

const NONE: [&str; 0] = [];

#[test]
fn a_quiet_machine_earns_no_warning() {
    assert_eq!(judged(&reads(Cache::Cold), |_| ()), NONE);
    assert_eq!(judged(&writes(), |_| ()), NONE);
    assert_eq!(judged(&reads(Cache::Unchanged), |_| ()), NONE);
}

#[test]
fn warm_reads_must_come_from_memory() {
    let warm = reads(Cache::Warm);
    let read = |bytes| move |known: &mut PhaseContext| known.activity.devices[0].read = bytes;
    assert_eq!(judged(&warm, read(Bytes(0))), NONE);
    assert_eq!(judged(&warm, read(Bytes(20_000))), NONE, "less than 1 %");
    assert_eq!(judged(&warm, read(Bytes(22_000))), ["cache-not-warm"]);
    assert_eq!(codes(&warm.0, &warm.1, &nothing()), NONE, "unknown");
}

#[test]
fn partly_cached_reads_are_reported() {
    let left = reads(Cache::Unchanged);
    let read = |bytes| move |known: &mut PhaseContext| known.activity.devices[0].read = bytes;
    assert_eq!(judged(&left, read(Bytes::mib(1))), ["partly-cached"]);
    assert_eq!(judged(&left, read(Bytes::kib(10))), NONE, "all but 0.5 % from memory");
    assert_eq!(judged(&left, read(Bytes::kib(2000))), NONE, "2 % from memory");
    assert_eq!(judged(&reads(Cache::Cold), read(Bytes::mib(1))), ["cache-not-cold"], "not twice");
    let mut direct = left;
    stream(&mut direct.0).open.direct = true;
    assert_eq!(judged(&direct, read(Bytes::mib(1))), NONE);
}

#[test]
fn cpu_bound_threads_are_named() {
    let mut busy = reads(Cache::Unchanged);
    busy.1.workers.iter_mut().for_each(|worker| worker.system_time = Nanos(4_800_000_000));
    assert_eq!(judged(&busy, |_| ()), ["cpu-bound"]);
    // Four workers on two CPUs need not use all of their time.
    busy.1.workers.iter_mut().for_each(|worker| worker.system_time = Nanos(2_400_000_000));
    assert_eq!(judged(&busy, |_| ()), NONE);
    busy.1.workers = [busy.1.workers.clone(), busy.1.workers].concat();
    assert_eq!(
        judged(&busy, |known| known.activity.devices[0].read = Bytes::mib(4)),
        ["cpu-bound"]
    );
    busy.0.cache = Cache::Warm;
    assert!(!judged(&busy, |_| ()).contains(&"cpu-bound"), "intended");
    let thread = |origin, name: &'static str, tenths: u64| {
        move |known: &mut PhaseContext| {
            let cpu = known.activity.cpu.as_mut().unwrap();
            let (name, time) = (name.into(), Nanos(tenths * SECOND / 10));
            cpu.kernel.push(KernelThread { origin, name, time });
        }
    };
    assert_eq!(judged(&writes(), thread(Origin::Journal, "jbd2/sda", 96)), ["cpu-bound"]);
    assert_eq!(judged(&writes(), thread(Origin::Journal, "jbd2/sda", 94)), NONE);
    assert_eq!(
        judged(&writes(), thread(Origin::Other, "rcu_preempt", 96)),
        NONE,
        "not the workload"
    );
    // Queue workers are several threads and use both CPUs.
    let workers = |tenths| thread(Origin::Filesystem, "kworker btrfs-endio", tenths);
    assert_eq!(judged(&writes(), workers(96)), NONE);
    assert_eq!(judged(&writes(), workers(192)), ["cpu-bound"]);
}

#[test]
fn other_cpu_load_is_reported() {
    let others = |millis: u64| {
        move |known: &mut PhaseContext| {
            known.activity.cpu.as_mut().unwrap().others_total = Nanos(millis * 1_000_000);
        }
    };
    assert_eq!(judged(&writes(), others(390)), NONE);
    assert_eq!(judged(&writes(), others(410)), ["other-cpu-load"], "2.05 % of two CPUs");
    let (phase, result) = writes();
    let mut known = everything();
    others(4000)(&mut known);
    let samples = of_phase(&phase, &result, &known);
    let found = warnings(&phase, &result, &known, &samples);
    let who = found.iter().find(|warning| warning.code() == "other-cpu-load").unwrap().message();
    assert!(who.contains("20.0 %") && who.contains("updatedb (/system.slice)"), "{who}");
}

#[test]
fn other_io_load_is_reported() {
    let below = |written: Bytes, flushes: Option<u64>| {
        move |known: &mut PhaseContext| {
            let devices = &mut known.activity.devices;
            devices[0].written = Bytes::mib(100);
            devices[0].flushes = flushes;
            let disk = DeviceActivity { name: "sda".into(), depth: 1, ..devices[0].clone() };
            devices.push(DeviceActivity { written, ..disk });
        }
    };
    // The limit is 102 MiB plus 5 %, 1 MiB, and 32 KiB per flush.
    assert_eq!(judged(&writes(), below(Bytes::mib(106), Some(0))), NONE);
    assert_eq!(judged(&writes(), below(Bytes::mib(107), Some(0))), ["other-io-load"]);
    assert_eq!(judged(&writes(), below(Bytes::mib(107), Some(64))), NONE, "a journal below");
    assert_eq!(judged(&writes(), below(Bytes::mib(110), Some(64))), ["other-io-load"]);
    // Two images on one disk, which is reported after each.
    let two = |known: &mut PhaseContext| {
        below(Bytes::mib(201), Some(0))(known);
        let devices = &mut known.activity.devices;
        devices.push(DeviceActivity { name: "loop1".into(), ..devices[0].clone() });
        devices.push(devices[1].clone());
    };
    assert_eq!(judged(&writes(), two), NONE);
}

#[test]
fn pressure_is_reported_by_resource() {
    let waited = |cpu: u64, memory: u64| {
        move |known: &mut PhaseContext| {
            let pressure = known.activity.pressure.as_mut().unwrap();
            pressure.cpu_some = Nanos(cpu * SECOND / 100);
            pressure.memory_some = Nanos(memory * SECOND / 100);
        }
    };
    assert_eq!(judged(&writes(), waited(200, 10)), NONE);
    assert_eq!(judged(&writes(), waited(210, 10)), ["resource-pressure"]);
    assert_eq!(judged(&writes(), waited(0, 11)), ["resource-pressure"]);
    let limited = |known: &mut PhaseContext| {
        waited(0, 500)(known);
        known.always.memory_limited = true;
    };
    assert_eq!(judged(&writes(), limited), NONE, "intended by the limit");
}

#[test]
fn steal_and_throttling_are_reported() {
    let steal = |millis: u64| {
        move |known: &mut PhaseContext| {
            known.activity.cpu.as_mut().unwrap().host.steal = Nanos(millis * 1_000_000);
        }
    };
    assert_eq!(judged(&writes(), steal(100)), NONE);
    assert_eq!(judged(&writes(), steal(110)), ["cpu-steal"]);
    assert_eq!(judged(&writes(), |known| known.activity.throttled = Some(0)), NONE);
    assert_eq!(judged(&writes(), |known| known.activity.throttled = Some(1)), ["cpu-throttled"]);
}

#[test]
fn a_rate_that_falls_is_not_steady() {
    let mut falling = reads(Cache::Cold);
    let series = |ops: fn(u64) -> u64| Series {
        start: Nanos(0),
        interval: Nanos(10_000_000),
        ops: (0..201).map(ops).collect(),
        bytes: vec![0; 201],
    };
    falling.1.workers[0].series = series(|at| 1000 - at);
    assert_eq!(judged(&falling, |_| ()), NONE, "not limited by time");
    stream(&mut falling.0).bound = Bound::Time { ramp: Nanos(0), run: Nanos(2 * SECOND) };
    assert_eq!(judged(&falling, |_| ()), ["not-steady-state"]);
    falling.1.workers[0].series = series(|at| 1000 + at % 7);
    assert_eq!(judged(&falling, |_| ()), NONE);
    // A drift of 8 % matters to profile rigorous only.
    falling.1.workers[0].series = series(|at| 1000 - at / 2);
    assert_eq!(judged(&falling, |_| ()), NONE);
    let rigorous = |known: &mut PhaseContext| known.always.profile = Profile::Rigorous;
    assert_eq!(judged(&falling, rigorous), ["not-steady-state"]);
}

#[test]
fn unwritten_data_is_reported_unless_it_was_synced() {
    let dirty = |kib: u64| {
        move |known: &mut PhaseContext| {
            known.activity.gauges = GaugeSeries {
                dirty: vec![5_000_000, 5_000_000 + (kib << 10)],
                ..GaugeSeries::default()
            };
        }
    };
    let mut accepted = writes();
    stream(&mut accepted.0).end_sync = EndSync::None;
    assert_eq!(judged(&accepted, dirty(100)), ["not-durable"], "below 5 % of 2 MiB");
    assert_eq!(judged(&accepted, dirty(110)), ["not-durable", "unwritten-data"]);
    assert_eq!(judged(&writes(), dirty(1000)), NONE);
    let mut direct = accepted;
    stream(&mut direct.0).open.direct = true;
    assert_eq!(judged(&direct, dirty(1000)), ["not-durable"]);
    let mut zeros = task(TaskOperation::Zeros {
        file: TaskPath { root: TaskRoot::Target, name: "x".into() },
        size: Bytes::mib(1),
    });
    assert_eq!(judged(&zeros, dirty(1000)), NONE);
    zeros.1.workers[0].end_sync_time = Nanos(0);
    assert_eq!(judged(&zeros, dirty(1000)), ["unwritten-data"]);
}

#[test]
fn reduced_writes_are_reported() {
    let written =
        |kib| move |known: &mut PhaseContext| known.activity.devices[0].written = Bytes::kib(kib);
    assert_eq!(judged(&writes(), written(1850)), NONE);
    assert_eq!(judged(&writes(), written(1840)), ["reduced-writes"]);
    let mut again = writes();
    stream(&mut again.0).access_pattern = AccessPattern::Random;
    assert_eq!(judged(&again, written(1000)), NONE, "blocks written twice are synced once");
    stream(&mut again.0).access_pattern = AccessPattern::SameBlock;
    assert_eq!(judged(&again, written(4)), NONE);
    let mut little = writes();
    little.1.workers.iter_mut().for_each(|worker| worker.written.bytes = Bytes::kib(500));
    assert_eq!(judged(&little, written(4)), NONE);
}

#[test]
fn rates_above_the_memory_rate_are_implausible() {
    let mut large = reads(Cache::Unchanged);
    large.1.workers.iter_mut().for_each(|worker| worker.read.bytes = Bytes::gib(4));
    stream(&mut large.0).size = Bytes::gib(4);
    // 8 GiB in 2.5 s: 3.4 GB/s; two processors copy 2 · 1.1 GB/s or 2 · 1.2 GB/s.
    let memory = |rate| {
        move |known: &mut PhaseContext| {
            known.activity.devices[0].read = Bytes(0);
            known.always.memory_rate = Some(rate);
        }
    };
    assert_eq!(judged(&large, memory(1.1e9)), ["implausible-result"]);
    assert_eq!(judged(&large, memory(1.2e9)), NONE);
    assert_eq!(judged(&large, |known| known.activity.devices[0].read = Bytes(0)), NONE);
    let mut copied = large.clone();
    stream(&mut copied.0).io_engine = IoEngineKind::Copy(CopyCall::CopyFileRange);
    assert_eq!(judged(&copied, memory(1.1e9)), NONE, "blocks may be shared");
    let mut again = large.clone();
    stream(&mut again.0).access_pattern = AccessPattern::SameBlock;
    assert_eq!(judged(&again, memory(1.1e9)), NONE, "so do copies of one block");
    stream(&mut large.0).size = Bytes::mib(32);
    assert_eq!(judged(&large, memory(1.1e9)), NONE, "the CPU caches may contain it");
}

#[test]
fn direct_reads_come_from_the_devices() {
    let mut direct = reads(Cache::Unchanged);
    stream(&mut direct.0).open.direct = true;
    direct.1.workers.iter_mut().for_each(|worker| worker.read.bytes = Bytes::mib(10));
    let read =
        |mib| move |known: &mut PhaseContext| known.activity.devices[0].read = Bytes::mib(mib);
    assert_eq!(judged(&direct, read(10)), NONE);
    assert_eq!(judged(&direct, read(9)), ["implausible-result"]);
    direct.1.workers.iter_mut().for_each(|worker| worker.read.bytes = Bytes::mib(7));
    assert_eq!(judged(&direct, read(1)), NONE, "less than 16 MiB");
}

#[test]
fn random_reads_do_not_beat_sequential_ones() {
    let named = |name: &str, access| {
        let (mut phase, _) = reads(Cache::Cold);
        phase.name = name.into();
        stream(&mut phase).access_pattern = access;
        phase
    };
    let phases =
        [named("read", AccessPattern::Sequential), named("random-read", AccessPattern::Random)];
    let sample =
        |phase: &str, metric, value| Sample { phase: phase.into(), metric, worker: None, value };
    let found = |random: f64, cached: f64| {
        let samples = [
            sample("read", Metric::Throughput, 100.0),
            sample("read", Metric::CacheHitRatio, 0.0),
            sample("random-read", Metric::Throughput, random),
            sample("random-read", Metric::CacheHitRatio, cached),
        ];
        across(&phases, &samples)
    };
    assert_eq!(found(125.0, 0.04), []);
    assert_eq!(found(200.0, 0.05), [], "some came from memory");
    let [(Some(at), Warning::ImplausibleResult { what })] = &found(126.0, 0.04)[..] else {
        panic!("126 of 100");
    };
    assert_eq!(at, "random-read");
    assert_eq!(
        what,
        "random-read was 1.26 times as fast as read, although both were read from the \
                      devices"
    );
}

#[test]
fn deferred_work_is_reported_with_its_thread() {
    let lazy = |millis: u64, window: u64| {
        move |known: &mut PhaseContext| {
            known.activity.window = Nanos(window * SECOND);
            let cpu = known.activity.cpu.as_mut().unwrap();
            let (origin, name) = (Origin::Deferred, "ext4lazyinit".into());
            cpu.kernel.push(KernelThread { origin, name, time: Nanos(millis * 1_000_000) });
        }
    };
    assert_eq!(judged(&writes(), lazy(9, 10)), NONE);
    assert_eq!(judged(&writes(), lazy(11, 10)), ["deferred-work"], "more than 10 ms");
    let short = |millis| {
        move |known: &mut PhaseContext| {
            lazy(millis, 1)(known);
            // Nothing else is as quiet in a tenth of the time.
            known.activity.window = Nanos(SECOND / 2);
            known.activity.pressure = None;
            let cpu = known.activity.cpu.as_mut().unwrap();
            cpu.others_total = Nanos(0);
            cpu.host.steal = Nanos(0);
        }
    };
    assert_eq!(judged(&writes(), short(4)), NONE);
    assert_eq!(judged(&writes(), short(6)), ["deferred-work"], "more than 1 %");
}

#[test]
fn kernel_messages_are_reported_except_notices() {
    let line = |level, text: &str| LogLine { level, fatal: false, text: text.into() };
    let notice = |known: &mut PhaseContext| known.activity.log = vec![line(5, "mounted")];
    assert_eq!(judged(&writes(), notice), NONE);
    let (phase, result) = writes();
    let mut known = nothing();
    let zeros = "operation not supported error, dev loop3, sector 8 op 0x9:(WRITE_ZEROES)";
    known.activity.log = vec![line(6, "mounted"), line(4, "slow"), line(3, zeros), line(3, "hung")];
    let samples = of_phase(&phase, &result, &known);
    let found = warnings(&phase, &result, &known, &samples);
    assert_eq!(found, [Warning::KernelMessage { line: "slow".into(), lines: 2 }]);
}
