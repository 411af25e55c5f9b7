use std::{path::Path, sync::Arc};

use super::*;
use crate::{host::FakeHost, mount::MountRequest, undo::Journal};

fn mounted(host: &FakeHost, fstype: &str, target: &str, options: &str) {
    let request = MountRequest {
        source: fstype.into(),
        target: target.into(),
        fstype: fstype.into(),
        options: options.into(),
    };
    host.mount(&request).unwrap();
}

fn journaled(temp: &Path, host: FakeHost) -> (Arc<FakeHost>, JournaledHost) {
    let host = Arc::new(host);
    let journal = Journal::create(&*host, &temp.join("state"), "run").unwrap();
    host.done();
    (Arc::clone(&host), JournaledHost::new(host, journal))
}

#[test]
fn version_1_creates_a_child_of_the_own_group_and_moves_back() {
    let temp = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(temp.path())
        .file("/proc/self/cgroup", "8:pids:/\n4:memory:/user/me\n0::/\n")
        .file("/sys/fs/cgroup/memory/user/me/cgroup.procs", "");
    mounted(&fake, "cgroup", "/sys/fs/cgroup/pids", "rw,pids");
    mounted(&fake, "cgroup", "/sys/fs/cgroup/memory", "rw,memory");
    mounted(&fake, "cgroup2", "/sys/fs/cgroup/unified", "rw");
    let (host, mut journaled) = journaled(temp.path(), fake);
    let group = Group::enter(&mut journaled, &*host, "run", Bytes::mib(64)).unwrap();
    group.change(&mut journaled, Bytes::mib(32)).unwrap();
    assert_eq!(journaled.close(), []);
    assert_eq!(
        host.done(),
        [
            "mkdir /sys/fs/cgroup/memory/user/me/fslab-run",
            "write /sys/fs/cgroup/memory/user/me/fslab-run/memory.limit_in_bytes = 67108864",
            "write /sys/fs/cgroup/memory/user/me/fslab-run/cgroup.procs = 4711",
            "write /sys/fs/cgroup/memory/user/me/fslab-run/memory.limit_in_bytes = 33554432",
            "write /sys/fs/cgroup/memory/user/me/cgroup.procs = 4711",
            "rmdir /sys/fs/cgroup/memory/user/me/fslab-run",
        ]
    );
    assert_eq!(versions(&host.mounts().unwrap()), "v1 and v2");
}

#[test]
fn version_2_uses_the_nearest_group_that_enables_memory() {
    let temp = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(temp.path())
        .file("/proc/self/cgroup", "0::/user.slice/session.scope\n")
        .file("/sys/fs/cgroup/cgroup.procs", "")
        .file("/sys/fs/cgroup/cgroup.subtree_control", "cpu memory\n")
        .file("/sys/fs/cgroup/user.slice/cgroup.procs", "")
        .file("/sys/fs/cgroup/user.slice/cgroup.subtree_control", "memory pids\n")
        .file("/sys/fs/cgroup/user.slice/session.scope/cgroup.procs", "4711")
        .file("/sys/fs/cgroup/user.slice/session.scope/cgroup.subtree_control", "\n");
    mounted(&fake, "cgroup2", "/sys/fs/cgroup", "rw");
    let (host, mut journaled) = journaled(temp.path(), fake);
    Group::enter(&mut journaled, &*host, "run", Bytes::mib(64)).unwrap();
    assert_eq!(journaled.close(), []);
    let done = host.done();
    assert_eq!(done[0], "mkdir /sys/fs/cgroup/user.slice/fslab-run");
    assert!(
        done.contains(&"write /sys/fs/cgroup/user.slice/fslab-run/memory.max = 67108864".into())
    );
    let home = "write /sys/fs/cgroup/user.slice/session.scope/cgroup.procs = 4711";
    assert!(done.contains(&home.into()), "{done:#?}");
}

#[test]
fn version_2_enables_the_controller_at_the_root_temporarily() {
    let temp = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(temp.path())
        .file("/proc/self/cgroup", "0::/\n")
        .file("/sys/fs/cgroup/cgroup.procs", "4711")
        .file("/sys/fs/cgroup/cgroup.controllers", "cpu memory\n")
        .file("/sys/fs/cgroup/cgroup.subtree_control", "cpu\n");
    mounted(&fake, "cgroup2", "/sys/fs/cgroup", "rw");
    let (host, mut journaled) = journaled(temp.path(), fake);
    Group::enter(&mut journaled, &*host, "run", Bytes::mib(64)).unwrap();
    assert_eq!(journaled.close(), []);
    let done = host.done();
    assert_eq!(done[0], "write /sys/fs/cgroup/cgroup.subtree_control = +memory");
    assert_eq!(done[done.len() - 1], "write /sys/fs/cgroup/cgroup.subtree_control = -memory");
}

#[test]
fn missing_limits_are_explained() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), FakeHost::new(temp.path()).unprivileged());
    let mut enter =
        |host: &FakeHost| Group::enter(&mut journaled, host, "run", Bytes(1)).unwrap_err();
    assert_eq!(enter(&host), "not root");
    let none = FakeHost::new(temp.path()).file("/proc/self/cgroup", "1:cpu:/\n");
    assert!(enter(&none).contains("no memory controller"));
    let elsewhere = FakeHost::new(temp.path())
        .file("/proc/self/cgroup", "0::/\n")
        .file("/sys/fs/cgroup/cgroup.procs", "")
        .file("/sys/fs/cgroup/cgroup.controllers", "cpu\n");
    mounted(&elsewhere, "cgroup2", "/sys/fs/cgroup", "rw");
    assert!(enter(&elsewhere).contains("neither in version 2"));
}

#[test]
fn the_effective_limit_is_the_lowest_of_all_ancestors() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path())
        .file("/proc/self/cgroup", "0::/outer/inner\n")
        .file("/sys/fs/cgroup/cgroup.procs", "")
        .file("/sys/fs/cgroup/outer/cgroup.procs", "")
        .file("/sys/fs/cgroup/outer/memory.max", "67108864\n")
        .file("/sys/fs/cgroup/outer/inner/cgroup.procs", "4711")
        .file("/sys/fs/cgroup/outer/inner/memory.max", "max\n");
    mounted(&host, "cgroup2", "/sys/fs/cgroup", "rw");
    assert_eq!(limit(&host, None), Some((Bytes::mib(64), "v2")));
    let path = PathBuf::from("/sys/fs/cgroup/outer/fslab-run");
    let group = Group { path, version: Version::V2 };
    let host = host.file("/sys/fs/cgroup/outer/fslab-run/memory.max", "33554432\n");
    assert_eq!(limit(&host, Some(&group)), Some((Bytes::mib(32), "v2")));
    let host = host.file("/sys/fs/cgroup/outer/memory.max", "max\n");
    assert_eq!(limit(&host, None), None);
}

#[test]
fn version_1_shows_unlimited_as_a_huge_number() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path())
        .file("/proc/self/cgroup", "4:memory:/me\n")
        .file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
        .file("/sys/fs/cgroup/memory/me/memory.limit_in_bytes", "9223372036854771712\n");
    mounted(&host, "cgroup", "/sys/fs/cgroup/memory", "rw,memory");
    assert_eq!(limit(&host, None), None);
    let host = host.file("/sys/fs/cgroup/memory/me/memory.limit_in_bytes", "1048576\n");
    assert_eq!(limit(&host, None), Some((Bytes::mib(1), "v1")));
    assert_eq!(limit(&FakeHost::new(temp.path().join("none")), None), None);
}

#[test]
fn version_2_limits_disable_swap_and_are_read_back() {
    let temp = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(temp.path())
        .file("/proc/self/cgroup", "0::/\n")
        .file("/sys/fs/cgroup/cgroup.procs", "4711")
        .file("/sys/fs/cgroup/cgroup.subtree_control", "memory\n");
    mounted(&fake, "cgroup2", "/sys/fs/cgroup", "rw");
    let (host, mut journaled) = journaled(temp.path(), fake);
    let group = Group::enter(&mut journaled, &*host, "run", Bytes::mib(64)).unwrap();
    assert_eq!(limit(&*host, Some(&group)), Some((Bytes::mib(64), "v2")));
    host.done();
    let swap = Path::new("/sys/fs/cgroup/fslab-run/memory.swap.max");
    host.create(swap, "max").unwrap();
    group.change(&mut journaled, Bytes::mib(32)).unwrap();
    assert_eq!(limit(&*host, Some(&group)), Some((Bytes::mib(32), "v2")));
    assert_eq!(host.read(swap).unwrap(), "0");
    assert_eq!(journaled.close(), []);
}
