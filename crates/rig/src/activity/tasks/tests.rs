use expect_test::expect;

use super::*;
use crate::host::FakeHost;

const KTHREAD: u32 = 0x0020_0040;

/// A process as shown by `/proc`.
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

fn report(tasks: &Tasks, host: &FakeHost) -> String {
    let (others, total) = tasks.others(host);
    format!("{:?}\n{others:?} {total:?}\n", tasks.kernel())
}

#[test]
fn worker_time_is_attributed_to_its_current_name() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    let mut tasks = Tasks::find(&host, Stack::default());
    assert!(tasks.kernel_threads_visible());
    tasks.begin(&host);
    host.set_process_time(30, ms(1010));
    tasks.sample(&host, false);
    let host = process(host, 30, "kworker/u8:3+btrfs-endio", 2, KTHREAD);
    host.set_process_time(30, ms(1015));
    tasks.sample(&host, false);
    host.set_process_time(30, ms(1016));
    host.set_process_time(2, ms(1001));
    tasks.sample(&host, false);
    expect![[r#"
        [KernelThread { origin: Filesystem, name: "kworker ext4-rsv-conversion", time: Nanos(10000000) }, KernelThread { origin: Filesystem, name: "kworker btrfs-endio", time: Nanos(6000000) }, KernelThread { origin: Other, name: "kthreadd", time: Nanos(1000000) }]
        [] Nanos(0)
    "#]].assert_eq(&report(&tasks, &host));
}

#[test]
fn short_lived_processes_are_named() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path()).file("/proc/loadavg", "0.1 0.1 0.1 1/9 49\n");
    let mut tasks = Tasks::find(&host, Stack::default());
    tasks.begin(&host);
    // A process starts, works, and ends; its ID is reused.
    let host = process(host, 50, "sh", 40, 0)
        .file("/proc/50/cgroup", "4:memory:/a/b\n1:name=systemd:/system.slice/x.service\n0::/\n")
        .file("/proc/loadavg", "0.1 0.1 0.1 1/9 50\n");
    host.set_process_time(50, ms(5));
    tasks.sample(&host, false);
    let host = process(host, 50, "cc", 40, 0);
    host.set_process_time(50, ms(30));
    host.set_process_time(40, ms(1001));
    tasks.sample(&host, false);
    host.set_process_time(50, None);
    tasks.sample(&host, false);
    let host = process(host, 50, "ld", 1, 0).file("/proc/loadavg", "0.1 0.1 0.1 1/9 49\n");
    host.set_process_time(50, ms(2));
    tasks.sample(&host, false);
    expect![[r#"
        []
        [OtherProcess { name: "cc", group: Some("/system.slice/x.service"), time: Nanos(30000000) }, OtherProcess { name: "ld", group: Some("/system.slice/x.service"), time: Nanos(2000000) }, OtherProcess { name: "a (strange) name", group: None, time: Nanos(1000000) }] Nanos(33000000)
    "#]].assert_eq(&report(&tasks, &host));
}

#[test]
fn tasks_missed_at_first_are_found_later() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path()).file("/proc/loadavg", "0.1 0.1 0.1 1/9 49\n");
    let mut tasks = Tasks::find(&host, Stack::default());
    tasks.begin(&host);
    // Its ID was assigned, but the process does not exist yet.
    let host = host.file("/proc/loadavg", "0.1 0.1 0.1 1/9 50\n");
    tasks.sample(&host, false);
    let host = process(host, 50, "cc", 40, 0);
    host.set_process_time(50, ms(5));
    tasks.sample(&host, false);
    assert_eq!(tasks.others(&host).1, Nanos(0));
    for _ in 0..LIST_INTERVAL {
        tasks.sample(&host, false);
    }
    assert_eq!(tasks.others(&host).1, Nanos(5_000_000));
}

#[test]
fn a_foreign_pid_namespace_yields_no_data() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    assert!(Tasks::find(&host, Stack::default()).kernel_threads_visible());
    let link = host.at(Path::new("/proc/self"));
    std::os::unix::fs::symlink(host.at(Path::new("/proc/40")), link).unwrap();
    assert!(!Tasks::find(&host, Stack::default()).kernel_threads_visible());
}

#[test]
fn running_and_ended_children_count_as_workload() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    let mut tasks = Tasks::find(&host, Stack::default());
    tasks.begin(&host);
    let host = process(host, 4713, "sh", 4711, 0);
    let host = process(host, 4720, "cp", 4713, 0);
    host.set_process_time(4713, ms(10));
    host.set_process_time(4720, ms(20));
    host.set_process_time(4712, ms(1003));
    tasks.sample(&host, false);
    assert_eq!(tasks.children(Nanos(0)), Nanos(33_000_000));
    // A child from before the window ends and is waited for: its earlier CPU time does not count.
    host.set_process_time(4712, None);
    tasks.sample(&host, false);
    assert_eq!(tasks.children(Nanos(1_007_000_000)), Nanos(37_000_000));
    assert_eq!(tasks.others(&host), (vec![], Nanos(0)));
}

#[test]
fn kernel_threads_are_invisible_in_a_container() {
    let temp = tempfile::tempdir().unwrap();
    let host = process(FakeHost::new(temp.path()), 4711, "fslab", 1, 0);
    assert!(!Tasks::find(&host, Stack::default()).kernel_threads_visible());
}

#[test]
fn stat_and_cgroup_are_parsed() {
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
fn a_second_window_keeps_the_tasks_and_resets_the_times() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path()).file("/proc/loadavg", "0.1 0.1 0.1 1/9 4712\n");
    let host = process(host, 20, "jbd2/sda1-8", 2, KTHREAD);
    host.set_process_time(20, ms(5));
    let mut tasks = Tasks::find(&host, Stack::default());
    tasks.begin(&host);
    host.set_process_time(20, ms(8));
    tasks.sample(&host, true);
    let used = |tasks: &Tasks| tasks.kernel().iter().map(|thread| thread.time).sum::<Nanos>();
    assert_eq!(Some(used(&tasks)), ms(3));
    // Between the windows it continues to work, another task starts, and one ends.
    host.set_process_time(20, ms(50));
    host.set_process_time(30, None);
    let host = process(host, 4713, "xfsaild/sda1", 2, KTHREAD);
    let host = host.file("/proc/loadavg", "0.1 0.1 0.1 1/9 4713\n");
    host.set_process_time(4713, ms(1));
    let mut tasks = tasks.next_window(&host, Stack::default());
    tasks.begin(&host);
    assert_eq!(used(&tasks), Nanos(0));
    host.set_process_time(20, ms(51));
    host.set_process_time(4713, ms(3));
    tasks.sample(&host, true);
    assert_eq!(Some(used(&tasks)), ms(3), "1 ms and 2 ms");
}
