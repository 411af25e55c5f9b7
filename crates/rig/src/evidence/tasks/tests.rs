use expect_test::expect;

use super::*;
use crate::host::FakeHost;

const KTHREAD: u32 = 0x0020_0040;

/// A process as `/proc` shows it.
fn process(host: FakeHost, pid: u32, name: &str, parent: u32, flags: u32) -> FakeHost {
    let stat = format!("{pid} ({name}) S {parent} 1 1 0 -1 {flags} 0 0 0\n");
    host.file(&format!("/proc/{pid}/stat"), &stat).file(&format!("/proc/{pid}/comm"), name)
}

fn ms(n: u64) -> Option<Nanos> {
    Some(Nanos(n * 1_000_000))
}

fn machine(root: &Path) -> FakeHost {
    let host = FakeHost::new(root);
    let host = process(host, 2, "kthreadd", 0, KTHREAD);
    let host = process(host, 30, "kworker/u8:3-ext4-rsv-conversion", 2, KTHREAD);
    let host = process(host, 40, "a (strange) name", 1, 0);
    let host = process(host, 4711, "fslab", 1, 0);
    let host = process(host, 4712, "tar", 4711, 0);
    for pid in [2, 30, 40, 4711, 4712] {
        host.set_process_time(pid, ms(1000));
    }
    host
}

fn told(tasks: &Tasks, host: &FakeHost) -> String {
    let (others, total) = tasks.others(host);
    format!("{:?}\n{others:?} {total:?}\n", tasks.kernel())
}

#[test]
fn a_worker_is_booked_under_what_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(folder.path());
    let mut tasks = Tasks::find(&host, Stack::default());
    assert!(tasks.sees_kernel());
    tasks.begin(&host);
    host.set_process_time(30, ms(1010));
    tasks.look(&host, false);
    let host = process(host, 30, "kworker/u8:3+btrfs-endio", 2, KTHREAD);
    host.set_process_time(30, ms(1015));
    tasks.look(&host, false);
    host.set_process_time(30, ms(1016));
    host.set_process_time(2, ms(1001));
    tasks.look(&host, false);
    expect![[r#"
        [KernelThread { origin: Filesystem, name: "kworker ext4-rsv-conversion", time: Nanos(10000000) }, KernelThread { origin: Filesystem, name: "kworker btrfs-endio", time: Nanos(6000000) }, KernelThread { origin: Other, name: "kthreadd", time: Nanos(1000000) }]
        [] Nanos(0)
    "#]].assert_eq(&told(&tasks, &host));
}

#[test]
fn others_that_came_and_ended_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(folder.path()).file("/proc/loadavg", "0.1 0.1 0.1 1/9 49\n");
    let mut tasks = Tasks::find(&host, Stack::default());
    tasks.begin(&host);
    // One comes, works, and ends; its number goes to another one.
    let host = process(host, 50, "sh", 40, 0)
        .file("/proc/50/cgroup", "4:memory:/a/b\n1:name=systemd:/system.slice/x.service\n0::/\n")
        .file("/proc/loadavg", "0.1 0.1 0.1 1/9 50\n");
    host.set_process_time(50, ms(5));
    tasks.look(&host, false);
    let host = process(host, 50, "cc", 40, 0);
    host.set_process_time(50, ms(30));
    host.set_process_time(40, ms(1001));
    tasks.look(&host, false);
    host.set_process_time(50, None);
    tasks.look(&host, false);
    let host = process(host, 50, "ld", 1, 0).file("/proc/loadavg", "0.1 0.1 0.1 1/9 49\n");
    host.set_process_time(50, ms(2));
    tasks.look(&host, false);
    expect![[r#"
        []
        [OtherProcess { name: "cc", group: Some("/system.slice/x.service"), time: Nanos(30000000) }, OtherProcess { name: "ld", group: Some("/system.slice/x.service"), time: Nanos(2000000) }, OtherProcess { name: "a (strange) name", group: None, time: Nanos(1000000) }] Nanos(33000000)
    "#]].assert_eq(&told(&tasks, &host));
}

#[test]
fn a_task_that_could_not_be_found_at_first_is_found_later() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(folder.path()).file("/proc/loadavg", "0.1 0.1 0.1 1/9 49\n");
    let mut tasks = Tasks::find(&host, Stack::default());
    tasks.begin(&host);
    // Its number was given away, and it is not there yet.
    let host = host.file("/proc/loadavg", "0.1 0.1 0.1 1/9 50\n");
    tasks.look(&host, false);
    let host = process(host, 50, "cc", 40, 0);
    host.set_process_time(50, ms(5));
    tasks.look(&host, false);
    assert_eq!(tasks.others(&host).1, Nanos(0));
    for _ in 0..LISTED {
        tasks.look(&host, false);
    }
    assert_eq!(tasks.others(&host).1, Nanos(5_000_000));
}

#[test]
fn another_namespace_of_numbers_tells_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(folder.path());
    assert!(Tasks::find(&host, Stack::default()).sees_kernel());
    let link = host.at(Path::new("/proc/self"));
    std::os::unix::fs::symlink(host.at(Path::new("/proc/40")), link).unwrap();
    assert!(!Tasks::find(&host, Stack::default()).sees_kernel());
}

#[test]
fn children_are_ours_whether_they_live_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(folder.path());
    let mut tasks = Tasks::find(&host, Stack::default());
    tasks.begin(&host);
    let host = process(host, 4713, "sh", 4711, 0);
    let host = process(host, 4720, "cp", 4713, 0);
    host.set_process_time(4713, ms(10));
    host.set_process_time(4720, ms(20));
    host.set_process_time(4712, ms(1003));
    tasks.look(&host, false);
    assert_eq!(tasks.children(Nanos(0)), Nanos(33_000_000));
    // The one from before ends and is waited for: what it used before the window is not ours now.
    host.set_process_time(4712, None);
    tasks.look(&host, false);
    assert_eq!(tasks.children(Nanos(1_007_000_000)), Nanos(37_000_000));
    assert_eq!(tasks.others(&host), (vec![], Nanos(0)));
}

#[test]
fn a_container_shows_no_kernel() {
    let folder = tempfile::tempdir().unwrap();
    let host = process(FakeHost::new(folder.path()), 4711, "fslab", 1, 0);
    assert!(!Tasks::find(&host, Stack::default()).sees_kernel());
}

#[test]
fn lines_of_stat_and_cgroup() {
    let status = Status::parse("7 (a) b (c)) R 5 0 0 0 -1 4194304 1 2").unwrap();
    assert_eq!(status, Status { name: "a) b (c)".into(), parent: 5, flags: 4_194_304 });
    assert_eq!(Status::parse("7 (a) R 5 0"), None);
    assert_eq!(Status::parse(""), None);
    let group = |text: &str| deepest(text).unwrap_or_default();
    assert_eq!(group("0::/\n"), "");
    assert_eq!(group("0::/user.slice/user-0.slice\n"), "/user.slice/user-0.slice");
    assert_eq!(group("9:name=systemd:/a\n4:memory:/b\n0::/\n"), "/a");
    assert_eq!(group("9:name=systemd:/\n4:cpu,cpuacct:/b\n3:pids:/c/d:e\n"), "/c/d:e");
}

#[test]
fn a_second_window_takes_over_who_is_there_and_counts_anew() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(folder.path()).file("/proc/loadavg", "0.1 0.1 0.1 1/9 4712\n");
    let host = process(host, 20, "jbd2/sda1-8", 2, KTHREAD);
    host.set_process_time(20, ms(5));
    let mut tasks = Tasks::find(&host, Stack::default());
    tasks.begin(&host);
    host.set_process_time(20, ms(8));
    tasks.look(&host, true);
    let used = |tasks: &Tasks| tasks.kernel().iter().map(|thread| thread.time).sum::<Nanos>();
    assert_eq!(Some(used(&tasks)), ms(3));
    // Between the windows it works on, another comes, and one goes.
    host.set_process_time(20, ms(50));
    host.set_process_time(30, None);
    let host = process(host, 4713, "xfsaild/sda1", 2, KTHREAD);
    let host = host.file("/proc/loadavg", "0.1 0.1 0.1 1/9 4713\n");
    host.set_process_time(4713, ms(1));
    let mut tasks = tasks.again(&host, Stack::default());
    tasks.begin(&host);
    assert_eq!(used(&tasks), Nanos(0));
    host.set_process_time(20, ms(51));
    host.set_process_time(4713, ms(3));
    tasks.look(&host, true);
    assert_eq!(Some(used(&tasks)), ms(3), "1 ms and 2 ms");
}
