use std::{process::Command, thread};

use expect_test::expect;
use model::activity::GaugeSeries;

use super::*;
use crate::host::{FakeHost, RealHost};

fn monitor(host: &Arc<FakeHost>, devices: &[&str]) -> ActivityMonitor {
    let devices: Vec<String> = devices.iter().map(|&name| name.to_owned()).collect();
    ActivityMonitor::start(Arc::clone(host) as Arc<dyn Host>, &devices, &MonitorCache::default())
}

fn reasons(absent: &[Unavailable]) -> String {
    absent.iter().map(|absent| format!("{}: {}\n", absent.what, absent.why)).collect()
}

#[test]
fn a_minimal_container_reports_unavailable_values() {
    let temp = tempfile::tempdir().unwrap();
    let host =
        FakeHost::new(temp.path()).file("/sys/class/block/sda/stat", "1 0 8 0 2 0 8 0 0 1 1");
    let host = Arc::new(host);
    let monitor = monitor(&host, &["sda"]);
    host.sleep(Nanos(5));
    let activity = monitor.end();
    expect![[r#"
        CPU frequency: the kernel has no cpufreq, as in most virtual machines
        CPU throttling: the kernel counts it on Intel CPUs only, and not in virtual machines
        CPU time: kernel threads are not visible; run fslab outside of containers with a PID namespace, and with /proc mounted without hidepid
        PSI: needs Linux 4.20 or newer, built with CONFIG_PSI
        dirty memory: /proc/meminfo has no Dirty or no Writeback
        discarded bytes of sda: needs Linux 4.18
        flush counts of sda: needs Linux 5.5
        kernel log: there is no /dev/kmsg
        monitoring overhead: /proc/self/statm cannot be read
    "#]].assert_eq(&reasons(&activity.unavailable));
    assert_eq!(activity.window, Nanos(5));
    assert_eq!((activity.cpu, activity.pressure, activity.throttled), (None, None, None));
    assert_eq!((activity.overhead, activity.log), (None, vec![]));
    let gauges = GaugeSeries { times: activity.gauges.times.clone(), ..GaugeSeries::default() };
    assert_eq!(activity.gauges, gauges);
    assert_eq!((activity.devices[0].flushes, activity.devices[0].discarded), (None, None));
}

#[test]
fn nothing_is_unavailable_on_a_complete_kernel() {
    let temp = tempfile::tempdir().unwrap();
    let pressure = "some avg10=0.00 total=7\nfull avg10=0.00 total=3\n";
    let host = FakeHost::new(temp.path())
        .file("/proc/stat", "cpu  1 1 1 100 1 1 1 1\ncpu0 1\n")
        .file("/proc/meminfo", "Dirty: 4 kB\nWriteback: 0 kB\n")
        .file("/proc/self/statm", "9 3 1\n")
        .file("/proc/pressure/cpu", pressure)
        .file("/proc/pressure/memory", pressure)
        .file("/proc/pressure/io", pressure)
        .file("/proc/2/stat", "2 (kthreadd) S 0 0 0 0 -1 2097152 0\n")
        .file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000\n")
        .file("/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n")
        .file("/sys/class/block/sda/stat", "1 0 8 0 2 0 8 0 0 1 1 0 0 0 0 0 0")
        .file("/dev/kmsg", "3,1,1,-;I/O error, dev sda, sector 1\n");
    host.set_process_time(2, Some(Nanos(7)));
    let host = Arc::new(host);
    let monitor = monitor(&host, &["sda"]);
    let log = host.read(Path::new("/dev/kmsg")).unwrap();
    let log = log + "6,2,1,-;sda: a line\n SUBSYSTEM=block\n4,3,1,-;sdb: no device of ours\n";
    std::fs::write(host.at(Path::new("/dev/kmsg")), log).unwrap();
    host.set_process_time(2, Some(Nanos(9)));
    host.set_usage(Usage {
        process: Nanos(100),
        monitoring: Nanos(20),
        children: Nanos(1000),
        minor_faults: 5,
        major_faults: 1,
    });
    host.sleep(Nanos(500_000_000));
    let activity = monitor.end();
    assert_eq!(reasons(&activity.unavailable), "");
    let cpu = activity.cpu.unwrap();
    assert_eq!((cpu.workload, cpu.monitoring), (Nanos(1080), Nanos(20)));
    assert_eq!((cpu.kernel_other(), cpu.host.busy), (Nanos(2), Nanos(500_000_000)));
    assert_eq!(activity.faults, Some(Faults { minor: 5, major: 1 }));
    assert_eq!((activity.throttled, activity.pressure), (Some(0), Some(Pressure::default())));
    assert_eq!(activity.gauges.times.last(), Some(&Nanos(500_000_000)));
    assert_eq!(activity.gauges.frequency[0], 2_000_000_000);
    let texts: Vec<&str> = activity.log.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts, ["sda: a line"]);
    let overhead = activity.overhead.unwrap();
    assert_eq!(overhead.cpu, Nanos(20));
    assert_eq!(overhead.memory.0 % 3, 0);
    assert!(overhead.samples >= 2);
}

#[test]
fn an_unreadable_log_is_reported() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path());
    host.fail_read(Path::new("/dev/kmsg"), 1); // EPERM
    let activity = monitor(&Arc::new(host), &[]).end();
    let why = activity.unavailable.iter().find(|absent| absent.what == "kernel log").unwrap();
    assert!(why.why.contains("dmesg_restrict"), "{}", why.why);
}

#[test]
fn a_dropped_monitor_stops_its_thread() {
    let temp = tempfile::tempdir().unwrap();
    let host = Arc::new(FakeHost::new(temp.path()));
    drop(monitor(&host, &[]));
    // The thread also held the host.
    assert_eq!(Arc::strong_count(&host), 1);
}

/// Uses this much CPU time.
fn burn(time: Nanos) {
    let end = RealHost.thread_time() + time;
    while RealHost.thread_time() < end {
        std::hint::black_box(0);
    }
}

#[expect(clippy::print_stderr, reason = "shares differ by machine and are read, not asserted")]
fn show(text: &str) {
    eprintln!("{text}");
}

#[test]
fn workload_monitoring_and_others_are_separated() {
    // Other tests run in this process at the same time, with their children.
    let own = || RealHost.usage().map(|usage| usage.process + usage.children).unwrap();
    // An orphan process: its parent ends at once. It works until it is killed.
    let script = "(while [ -e $0 ]; do :; done) >/dev/null 2>&1 & echo $!";
    let flag = tempfile::NamedTempFile::new().unwrap();
    let started = Command::new("sh").args(["-c", script]).arg(flag.path()).output().unwrap();
    let foreign: u32 = String::from_utf8(started.stdout).unwrap().trim().parse().unwrap();
    let foreign_before = RealHost.process_time(foreign).unwrap();

    let before = own();
    let monitor = ActivityMonitor::start(Arc::new(RealHost), &[], &MonitorCache::default());
    let half = Nanos(700_000_000);
    thread::scope(|scope| {
        scope.spawn(|| burn(half));
        scope.spawn(|| burn(half));
    });
    let activity = monitor.end();
    let used = own() - before;
    let foreign_used = RealHost.process_time(foreign).unwrap() - foreign_before;
    drop(flag);

    let Some(cpu) = activity.cpu else {
        show(&format!(
            "skipped: no kernel threads are shown here\n{}",
            reasons(&activity.unavailable)
        ));
        return;
    };
    let overhead = activity.overhead.unwrap();
    show(&format!(
        "window {} s, busy {} s, workload {} s, unattributed {:.1} %, monitoring {:.3} % of a \
         processor in {} looks, resident {} MiB; {:?}",
        activity.window.seconds(),
        cpu.host.busy.seconds(),
        cpu.workload.seconds(),
        cpu.unattributed() as f64 / cpu.host.busy.0 as f64 * 100.0,
        overhead.cpu.0 as f64 / activity.window.0 as f64 * 100.0,
        overhead.samples,
        overhead.memory.0 >> 20,
        cpu.others,
    ));
    assert!(cpu.workload >= half + half, "both threads worked");
    assert!(cpu.workload + cpu.monitoring <= used + Nanos(50_000_000), "{cpu:?} {used:?}");
    assert!(cpu.monitoring.0 > 0 && overhead.samples >= 3);
    // Children of other tests end and other programs start during the window, so the bound is wide.
    assert!(cpu.accounted() <= cpu.host.busy + cpu.host.busy, "{cpu:?}");
    let name = |process: &&model::activity::OtherProcess| process.name == "sh";
    let sh: Nanos = cpu.others.iter().filter(name).map(|process| process.time).sum();
    assert!(sh.0 > 0 && sh <= foreign_used + foreign_used + Nanos(5_000_000_000), "{cpu:?}");
}

#[test]
fn child_programs_count_as_workload() {
    let monitor = ActivityMonitor::start(Arc::new(RealHost), &[], &MonitorCache::default());
    let script = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";
    let before = RealHost.usage().unwrap().children;
    assert!(Command::new("sh").args(["-c", script]).status().unwrap().success());
    let child = RealHost.usage().unwrap().children - before;
    let activity = monitor.end();
    assert!(child.0 > 0 && activity.faults.unwrap().minor > 0);
    if let Some(cpu) = activity.cpu {
        assert!(cpu.workload >= child, "{cpu:?} {child:?}");
    }
}
