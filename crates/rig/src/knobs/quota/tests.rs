use std::sync::Arc;

use super::*;
use crate::{
    host::FakeHost,
    mount::MountRequest,
    undo::{Journal, clean},
};

/// A machine with two processors and control groups, and what it has done.
fn bench(folder: &Path, own: &str, mounts: &[(&str, &str, &str)]) -> (Arc<FakeHost>, Bench) {
    let host = FakeHost::new(folder)
        .file("/proc/self/cgroup", own)
        .file("/sys/devices/system/cpu/online", "0-1\n");
    for (fstype, target, options) in mounts {
        let request = MountRequest {
            source: (*fstype).into(),
            target: (*target).into(),
            fstype: (*fstype).into(),
            options: (*options).into(),
        };
        host.mount(&request).unwrap();
    }
    let host = Arc::new(host);
    let journal = Journal::create(&*host, &folder.join("state"), "run").unwrap();
    host.done();
    (Arc::clone(&host), Bench::new(host, journal))
}

fn write(host: FakeHost, path: &str, text: &str) {
    drop(host.file(path, text));
}

const V1: (&str, &str, &str) = ("cgroup", "/sys/fs/cgroup/cpu", "rw,cpu,cpuacct");
const V2: (&str, &str, &str) = ("cgroup2", "/sys/fs/cgroup", "rw");

#[test]
fn version_1_has_a_group_for_it_and_goes_home() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), "1:cpu,cpuacct:/\n0::/\n", &[V1]);
    write(FakeHost::new(folder.path()), "/sys/fs/cgroup/cpu/cgroup.procs", "");
    let (quota, step) = Quota::enter(&mut bench, &*host, "run", 50).unwrap().unwrap();
    assert_eq!(quota.in_words(), "5000 us of each 10000 us for each worker, on 2 processors");
    quota.share_among(&mut bench, 20).unwrap();
    quota.share_among(&mut bench, 2).unwrap();
    bench.undo(step, "quota").unwrap();
    let group = "/sys/fs/cgroup/cpu/fslab-run-cpu";
    assert_eq!(
        host.done(),
        [
            format!("mkdir {group}"),
            format!("write {group}/cpu.cfs_quota_us = -1"),
            format!("write {group}/cpu.cfs_period_us = 10000"),
            format!("write {group}/cpu.cfs_quota_us = 5000"),
            format!("write {group}/cgroup.procs = 4711"),
            format!("write {group}/cpu.cfs_quota_us = -1"),
            format!("write {group}/cpu.cfs_period_us = 10000"),
            format!("write {group}/cpu.cfs_quota_us = 10000"),
            "write /sys/fs/cgroup/cpu/cgroup.procs = 4711".into(),
            format!("rmdir {group}"),
        ]
    );
}

#[test]
fn version_2_switches_the_controller_on_and_makes_a_group() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), "0::/\n", &[V2]);
    for (file, text) in
        [("cgroup.procs", ""), ("cgroup.controllers", "cpu io"), ("cgroup.subtree_control", "io")]
    {
        write(FakeHost::new(folder.path()), &format!("/sys/fs/cgroup/{file}"), text);
    }
    Quota::enter(&mut bench, &*host, "run", 50).unwrap().unwrap();
    assert_eq!(bench.close(), []);
    let group = "/sys/fs/cgroup/fslab-run-cpu";
    assert_eq!(
        host.done(),
        [
            "write /sys/fs/cgroup/cgroup.subtree_control = +cpu".to_owned(),
            format!("mkdir {group}"),
            format!("write {group}/cpu.max = 5000 10000"),
            format!("write {group}/cgroup.procs = 4711"),
            "write /sys/fs/cgroup/cgroup.procs = 4711".into(),
            format!("rmdir {group}"),
            "write /sys/fs/cgroup/cgroup.subtree_control = -cpu".into(),
        ]
    );
}

#[test]
fn the_group_that_limits_memory_takes_the_quota_too() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), "0::/fslab-run\n", &[V2]);
    let max = Path::new("/sys/fs/cgroup/fslab-run/cpu.max");
    write(FakeHost::new(folder.path()), &max.display().to_string(), "max 100000\n");
    let (quota, step) = Quota::enter(&mut bench, &*host, "run", 25).unwrap().unwrap();
    assert_eq!(host.read(max).unwrap(), "2500 10000\n");
    quota.share_among(&mut bench, 2).unwrap();
    assert_eq!(host.read(max).unwrap(), "5000 10000\n");
    bench.undo(step, "quota").unwrap();
    assert_eq!(host.read(max).unwrap(), "max 100000\n");
    // The same after a kill.
    let (quota, _) = Quota::enter(&mut bench, &*host, "run", 25).unwrap().unwrap();
    quota.share_among(&mut bench, 2).unwrap();
    bench.abandon();
    assert_eq!(clean(&*host, &folder.path().join("state")).unwrap().stuck, []);
    assert_eq!(host.read(max).unwrap(), "max 100000\n");
}

/// `EINVAL`, which a group answers whose group above has less.
const INVALID: i32 = 22;

#[test]
fn version_1_keeps_its_quota_when_the_next_one_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), "1:cpu,cpuacct:/\n0::/\n", &[V1]);
    write(FakeHost::new(folder.path()), "/sys/fs/cgroup/cpu/cgroup.procs", "");
    let (quota, _) = Quota::enter(&mut bench, &*host, "run", 50).unwrap().unwrap();
    let file = Path::new("/sys/fs/cgroup/cpu/fslab-run-cpu/cpu.cfs_quota_us");
    host.decline(file, "10000", INVALID, 2);
    // Each call tries, and each that fails says so.
    for _ in 0..2 {
        let why = quota.share_among(&mut bench, 2).unwrap_err();
        assert!(why.contains("cpu.cfs_quota_us: Invalid argument"), "{why}");
        assert!(!why.contains("as it was"), "{why}");
        assert_eq!(host.read(file).unwrap(), "5000");
    }
    quota.share_among(&mut bench, 2).unwrap();
    assert_eq!(host.read(file).unwrap(), "10000");
    // Not even the old one: that is told, too.
    host.decline(file, "5000", INVALID, 2);
    let why = quota.share_among(&mut bench, 1).unwrap_err();
    assert!(!why.contains("as it was"), "{why}");
    assert_eq!(host.read(file).unwrap(), "10000");
    host.decline(file, "10000", INVALID, 1);
    let why = quota.share_among(&mut bench, 1).unwrap_err();
    assert!(why.contains("nor is the quota as it was: "), "{why}");
    // For as many workers as before, too: the group has none.
    assert_eq!(host.read(file).unwrap(), "-1");
    quota.share_among(&mut bench, 2).unwrap();
    assert_eq!(host.read(file).unwrap(), "10000");
}

#[test]
fn version_2_tells_each_time_that_a_quota_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), "0::/fslab-run\n", &[V2]);
    let max = Path::new("/sys/fs/cgroup/fslab-run/cpu.max");
    write(FakeHost::new(folder.path()), &max.display().to_string(), "max 100000\n");
    let (quota, step) = Quota::enter(&mut bench, &*host, "run", 25).unwrap().unwrap();
    host.decline(max, "5000 10000", INVALID, 2);
    for _ in 0..2 {
        let why = quota.share_among(&mut bench, 2).unwrap_err();
        assert!(why.contains("cpu.max: Invalid argument"), "{why}");
        assert_eq!(host.read(max).unwrap(), "2500 10000\n");
    }
    quota.share_among(&mut bench, 2).unwrap();
    assert_eq!(host.read(max).unwrap(), "5000 10000\n");
    bench.undo(step, "quota").unwrap();
    assert_eq!(host.read(max).unwrap(), "max 100000\n");
}

#[test]
fn why_there_is_none_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), "0::/\n", &[]);
    let mut enter = |host: &dyn Host| Quota::enter(&mut bench, host, "run", 50).unwrap();
    assert!(enter(&*host).unwrap_err().contains("no cpu controller"));
    let user = FakeHost::new(folder.path()).unprivileged();
    assert_eq!(enter(&user).unwrap_err(), "not root");
}

#[test]
fn a_small_share_has_a_longer_period() {
    let of = |share, processors| Quota {
        group: PathBuf::new(),
        version: Version::V2,
        share,
        processors,
        workers: AtomicU32::new(processors),
        lent: None,
    };
    assert_eq!(of(50, 1).amounts(), (5_000, 10_000));
    assert_eq!(of(50, 16).amounts(), (80_000, 10_000));
    assert_eq!(of(1, 1).amounts(), (1_000, 100_000));
    assert_eq!(of(3, 1).amounts(), (1_000, 33_333));
}
