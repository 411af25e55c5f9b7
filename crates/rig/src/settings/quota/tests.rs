use std::sync::Arc;

use super::*;
use crate::{
    host::FakeHost,
    mount::MountRequest,
    undo::{Journal, clean},
};

/// Host with two CPUs and control groups, and its operations.
fn journaled(
    temp: &Path,
    own: &str,
    mounts: &[(&str, &str, &str)],
) -> (Arc<FakeHost>, JournaledHost) {
    let host = FakeHost::new(temp)
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
    let journal = Journal::create(&*host, &temp.join("state"), "run").unwrap();
    host.done();
    (Arc::clone(&host), JournaledHost::new(host, journal))
}

fn write(host: FakeHost, path: &str, text: &str) {
    drop(host.file(path, text));
}

const V1: (&str, &str, &str) = ("cgroup", "/sys/fs/cgroup/cpu", "rw,cpu,cpuacct");
const V2: (&str, &str, &str) = ("cgroup2", "/sys/fs/cgroup", "rw");

#[test]
fn version_1_creates_a_group_and_moves_back() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), "1:cpu,cpuacct:/\n0::/\n", &[V1]);
    write(FakeHost::new(temp.path()), "/sys/fs/cgroup/cpu/cgroup.procs", "");
    let (quota, step) = Quota::enter(&mut journaled, &*host, "run", 50).unwrap().unwrap();
    assert_eq!(quota.describe(), "5000 us per 10000 us and worker, on 2 CPUs");
    quota.set_workers(&mut journaled, 20).unwrap();
    quota.set_workers(&mut journaled, 2).unwrap();
    journaled.undo(step, "quota").unwrap();
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
fn version_2_enables_the_controller_and_creates_a_group() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), "0::/\n", &[V2]);
    for (file, text) in
        [("cgroup.procs", ""), ("cgroup.controllers", "cpu io"), ("cgroup.subtree_control", "io")]
    {
        write(FakeHost::new(temp.path()), &format!("/sys/fs/cgroup/{file}"), text);
    }
    Quota::enter(&mut journaled, &*host, "run", 50).unwrap().unwrap();
    assert_eq!(journaled.close(), []);
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
fn the_memory_group_also_gets_the_quota() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), "0::/fslab-run\n", &[V2]);
    let max = Path::new("/sys/fs/cgroup/fslab-run/cpu.max");
    write(FakeHost::new(temp.path()), &max.display().to_string(), "max 100000\n");
    let (quota, step) = Quota::enter(&mut journaled, &*host, "run", 25).unwrap().unwrap();
    assert_eq!(host.read(max).unwrap(), "2500 10000\n");
    quota.set_workers(&mut journaled, 2).unwrap();
    assert_eq!(host.read(max).unwrap(), "5000 10000\n");
    journaled.undo(step, "quota").unwrap();
    assert_eq!(host.read(max).unwrap(), "max 100000\n");
    // The same after a kill.
    let (quota, _) = Quota::enter(&mut journaled, &*host, "run", 25).unwrap().unwrap();
    quota.set_workers(&mut journaled, 2).unwrap();
    journaled.forget();
    assert_eq!(clean(&*host, &temp.path().join("state")).unwrap().failed, []);
    assert_eq!(host.read(max).unwrap(), "max 100000\n");
}

/// `EINVAL`, returned by a group whose parent has a lower quota.
const INVALID: i32 = 22;

#[test]
fn version_1_keeps_its_quota_if_the_next_one_is_rejected() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), "1:cpu,cpuacct:/\n0::/\n", &[V1]);
    write(FakeHost::new(temp.path()), "/sys/fs/cgroup/cpu/cgroup.procs", "");
    let (quota, _) = Quota::enter(&mut journaled, &*host, "run", 50).unwrap().unwrap();
    let file = Path::new("/sys/fs/cgroup/cpu/fslab-run-cpu/cpu.cfs_quota_us");
    host.fail_write(file, "10000", INVALID, 2);
    // Each call retries and reports the failure.
    for _ in 0..2 {
        let why = quota.set_workers(&mut journaled, 2).unwrap_err();
        assert!(why.contains("cpu.cfs_quota_us: Invalid argument"), "{why}");
        assert!(!why.contains("as it was"), "{why}");
        assert_eq!(host.read(file).unwrap(), "5000");
    }
    quota.set_workers(&mut journaled, 2).unwrap();
    assert_eq!(host.read(file).unwrap(), "10000");
    // Even the old quota is rejected, which is reported, too.
    host.fail_write(file, "5000", INVALID, 2);
    let why = quota.set_workers(&mut journaled, 1).unwrap_err();
    assert!(!why.contains("as it was"), "{why}");
    assert_eq!(host.read(file).unwrap(), "10000");
    host.fail_write(file, "10000", INVALID, 1);
    let why = quota.set_workers(&mut journaled, 1).unwrap_err();
    assert!(why.contains("the old quota was not restored: "), "{why}");
    // Also for the previous number of workers, because the group has no quota.
    assert_eq!(host.read(file).unwrap(), "-1");
    quota.set_workers(&mut journaled, 2).unwrap();
    assert_eq!(host.read(file).unwrap(), "10000");
}

#[test]
fn version_2_reports_each_rejected_quota() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), "0::/fslab-run\n", &[V2]);
    let max = Path::new("/sys/fs/cgroup/fslab-run/cpu.max");
    write(FakeHost::new(temp.path()), &max.display().to_string(), "max 100000\n");
    let (quota, step) = Quota::enter(&mut journaled, &*host, "run", 25).unwrap().unwrap();
    host.fail_write(max, "5000 10000", INVALID, 2);
    for _ in 0..2 {
        let why = quota.set_workers(&mut journaled, 2).unwrap_err();
        assert!(why.contains("cpu.max: Invalid argument"), "{why}");
        assert_eq!(host.read(max).unwrap(), "2500 10000\n");
    }
    quota.set_workers(&mut journaled, 2).unwrap();
    assert_eq!(host.read(max).unwrap(), "5000 10000\n");
    journaled.undo(step, "quota").unwrap();
    assert_eq!(host.read(max).unwrap(), "max 100000\n");
}

#[test]
fn missing_quotas_are_explained() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), "0::/\n", &[]);
    let mut enter = |host: &dyn Host| Quota::enter(&mut journaled, host, "run", 50).unwrap();
    assert!(enter(&*host).unwrap_err().contains("no cpu controller"));
    let user = FakeHost::new(temp.path()).unprivileged();
    assert_eq!(enter(&user).unwrap_err(), "not root");
}

#[test]
fn a_low_percentage_has_a_longer_period() {
    let of = |share, processors| Quota {
        group: PathBuf::new(),
        version: Version::V2,
        percent: share,
        processors,
        workers: AtomicU32::new(processors),
        borrowed: None,
    };
    assert_eq!(of(50, 1).amounts(), (5_000, 10_000));
    assert_eq!(of(50, 16).amounts(), (80_000, 10_000));
    assert_eq!(of(1, 1).amounts(), (1_000, 100_000));
    assert_eq!(of(3, 1).amounts(), (1_000, 33_333));
}
