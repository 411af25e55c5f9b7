use std::{process::Command, thread};

use expect_test::expect;
use model::evidence::Gauges;

use super::*;
use crate::host::{FakeHost, RealHost};

fn watch(host: &Arc<FakeHost>, devices: &[&str]) -> Watch {
    let devices: Vec<String> = devices.iter().map(|&name| name.to_owned()).collect();
    Watch::start(Arc::clone(host) as Arc<dyn Host>, &devices, &Roster::default())
}

fn told(absent: &[Absent]) -> String {
    absent.iter().map(|absent| format!("{}: {}\n", absent.what, absent.why)).collect()
}

#[test]
fn a_bare_container_tells_what_it_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let host =
        FakeHost::new(folder.path()).file("/sys/class/block/sda/stat", "1 0 8 0 2 0 8 0 0 1 1");
    let host = Arc::new(host);
    let watch = watch(&host, &["sda"]);
    host.sleep(Nanos(5));
    let evidence = watch.end();
    expect![[r#"
        CPU time: kernel threads are not shown here; run it outside of containers with process ids of their own, and with /proc mounted without hidepid
        discarded bytes of sda: needs Linux 4.18
        flush counts of sda: needs Linux 5.5
        frequency: the kernel offers no cpufreq, as in most virtual machines
        memory that waits to be written: /proc/meminfo does not tell Dirty and Writeback
        pressure: needs Linux 4.20 or newer, built with CONFIG_PSI
        the cost of looking: /proc/self/statm cannot be read
        the kernel's log: there is no /dev/kmsg here
        throttling: the kernel counts them on Intel processors only, and not in virtual machines
    "#]].assert_eq(&told(&evidence.absent));
    assert_eq!(evidence.window, Nanos(5));
    assert_eq!((evidence.cpu, evidence.pressure, evidence.throttled), (None, None, None));
    assert_eq!((evidence.overhead, evidence.log), (None, vec![]));
    let gauges = Gauges { at: evidence.gauges.at.clone(), ..Gauges::default() };
    assert_eq!(evidence.gauges, gauges);
    assert_eq!((evidence.devices[0].flushes, evidence.devices[0].discarded), (None, None));
}

#[test]
fn nothing_is_absent_where_the_kernel_tells_all() {
    let folder = tempfile::tempdir().unwrap();
    let pressure = "some avg10=0.00 total=7\nfull avg10=0.00 total=3\n";
    let host = FakeHost::new(folder.path())
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
    let watch = watch(&host, &["sda"]);
    let log = host.read(Path::new("/dev/kmsg")).unwrap();
    let log = log + "6,2,1,-;sda: a line\n SUBSYSTEM=block\n4,3,1,-;sdb: no device of ours\n";
    std::fs::write(host.at(Path::new("/dev/kmsg")), log).unwrap();
    host.set_process_time(2, Some(Nanos(9)));
    host.set_usage(Usage {
        process: Nanos(100),
        watching: Nanos(20),
        children: Nanos(1000),
        minor_faults: 5,
        major_faults: 1,
    });
    host.sleep(Nanos(500_000_000));
    let evidence = watch.end();
    assert_eq!(told(&evidence.absent), "");
    let cpu = evidence.cpu.unwrap();
    assert_eq!((cpu.workload, cpu.watching), (Nanos(1080), Nanos(20)));
    assert_eq!((cpu.kernel_other(), cpu.host.busy), (Nanos(2), Nanos(500_000_000)));
    assert_eq!(evidence.faults, Some(Faults { minor: 5, major: 1 }));
    assert_eq!((evidence.throttled, evidence.pressure), (Some(0), Some(Pressure::default())));
    assert_eq!(evidence.gauges.at.last(), Some(&Nanos(500_000_000)));
    assert_eq!(evidence.gauges.frequency[0], 2_000_000_000);
    let texts: Vec<&str> = evidence.log.iter().map(|line| line.text.as_str()).collect();
    assert_eq!(texts, ["sda: a line"]);
    let overhead = evidence.overhead.unwrap();
    assert_eq!(overhead.cpu, Nanos(20));
    assert_eq!(overhead.memory.0 % 3, 0);
    assert!(overhead.looks >= 2);
}

#[test]
fn a_log_that_may_not_be_read_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let host = FakeHost::new(folder.path());
    host.refuse(Path::new("/dev/kmsg"), 1); // EPERM
    let evidence = watch(&Arc::new(host), &[]).end();
    let why = evidence.absent.iter().find(|absent| absent.what == "the kernel's log").unwrap();
    assert!(why.why.contains("dmesg_restrict"), "{}", why.why);
}

#[test]
fn a_dropped_watch_stops_its_thread() {
    let folder = tempfile::tempdir().unwrap();
    let host = Arc::new(FakeHost::new(folder.path()));
    drop(watch(&host, &[]));
    // The thread held the host, too.
    assert_eq!(Arc::strong_count(&host), 1);
}

/// Works until this thread has used so much more.
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
fn work_is_told_from_watching_and_from_others() {
    // Other tests run in this process at the same time, with children of theirs.
    let own = || RealHost.usage().map(|usage| usage.process + usage.children).unwrap();
    // A process that is nobody's child: its parent ends at once. It works until it is ended.
    let script = "(while [ -e $0 ]; do :; done) >/dev/null 2>&1 & echo $!";
    let flag = tempfile::NamedTempFile::new().unwrap();
    let started = Command::new("sh").args(["-c", script]).arg(flag.path()).output().unwrap();
    let foreign: u32 = String::from_utf8(started.stdout).unwrap().trim().parse().unwrap();
    let foreign_before = RealHost.process_time(foreign).unwrap();

    let before = own();
    let watch = Watch::start(Arc::new(RealHost), &[], &Roster::default());
    let half = Nanos(700_000_000);
    thread::scope(|scope| {
        scope.spawn(|| burn(half));
        scope.spawn(|| burn(half));
    });
    let evidence = watch.end();
    let used = own() - before;
    let foreign_used = RealHost.process_time(foreign).unwrap() - foreign_before;
    drop(flag);

    let Some(cpu) = evidence.cpu else {
        show(&format!("skipped: no kernel threads are shown here\n{}", told(&evidence.absent)));
        return;
    };
    let overhead = evidence.overhead.unwrap();
    show(&format!(
        "window {} s, busy {} s, workload {} s, unattributed {:.1} %, watching {:.3} % of a \
         processor in {} looks, resident {} MiB; {:?}",
        evidence.window.seconds(),
        cpu.host.busy.seconds(),
        cpu.workload.seconds(),
        cpu.unattributed() as f64 / cpu.host.busy.0 as f64 * 100.0,
        overhead.cpu.0 as f64 / evidence.window.0 as f64 * 100.0,
        overhead.looks,
        overhead.memory.0 >> 20,
        cpu.others,
    ));
    assert!(cpu.workload >= half + half, "both threads worked");
    assert!(cpu.workload + cpu.watching <= used + Nanos(50_000_000), "{cpu:?} {used:?}");
    assert!(cpu.watching.0 > 0 && overhead.looks >= 3);
    // Other tests' children end meanwhile, and other programs come and go: a wide bound.
    assert!(cpu.known() <= cpu.host.busy + cpu.host.busy, "{cpu:?}");
    let name = |process: &&model::evidence::OtherProcess| process.name == "sh";
    let sh: Nanos = cpu.others.iter().filter(name).map(|process| process.time).sum();
    assert!(sh.0 > 0 && sh <= foreign_used + foreign_used + Nanos(5_000_000_000), "{cpu:?}");
}

#[test]
fn programs_that_were_run_are_work() {
    let watch = Watch::start(Arc::new(RealHost), &[], &Roster::default());
    let script = "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done";
    let before = RealHost.usage().unwrap().children;
    assert!(Command::new("sh").args(["-c", script]).status().unwrap().success());
    let child = RealHost.usage().unwrap().children - before;
    let evidence = watch.end();
    assert!(child.0 > 0 && evidence.faults.unwrap().minor > 0);
    if let Some(cpu) = evidence.cpu {
        assert!(cpu.workload >= child, "{cpu:?} {child:?}");
    }
}
