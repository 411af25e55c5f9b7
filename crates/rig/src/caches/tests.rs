use std::sync::Arc;

use model::Nanos;

use super::{idle::INTERVAL, *};
use crate::{
    host::{FakeHost, Host},
    undo::Journal,
};

const STAT: &str = "/sys/class/block/sda/stat";

fn journaled(temp: &Path, host: FakeHost) -> (Arc<FakeHost>, JournaledHost) {
    let host = Arc::new(host);
    let journal = Journal::create(&*host, &temp.join("state"), "run").unwrap();
    (Arc::clone(&host), JournaledHost::new(host, journal))
}

#[test]
fn a_device_is_idle_after_three_samples() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path()).file(STAT, "1 0 8 0 1 0 8 0 0 0 0");
    let rest = wait_idle(&host, &["sda".into()], &[], Nanos(1_000_000_000));
    assert_eq!((rest.warning, rest.waited), (None, Nanos(3 * INTERVAL.0)));
    assert_eq!(host.now(), Nanos(3 * INTERVAL.0));
}

#[test]
fn a_busy_device_is_reported_after_the_limit() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path()).file(STAT, "1 0 8 0 1 0 8 0 5 0 0");
    let reported = wait_idle(&host, &["sda".into()], &[], Nanos(1_000_000_000)).warning;
    let Some(Warning::DeviceNotIdle { waited }) = reported else { panic!("{reported:?}") };
    assert!(waited > Nanos(1_000_000_000) && waited < Nanos(1_100_000_000), "{waited:?}");
}

#[test]
fn a_device_without_counters_is_not_waited_for() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path());
    assert_eq!(wait_idle(&host, &[], &[], Nanos(1)).warning, None);
    assert_eq!(wait_idle(&host, &["sda".into()], &[], Nanos(1)).warning, None);
    assert_eq!(host.now(), Nanos(0));
}

/// Kernel thread as shown by /proc.
fn thread(host: FakeHost, pid: u32, name: &str, parent: u32, nanos: u64, ticks: u64) -> FakeHost {
    let zeros = "0 ".repeat(9);
    let stat = format!("{pid} ({name}) S {parent} {zeros}0 {ticks} 20 0\n");
    host.file(&format!("/proc/{pid}/stat"), &stat)
        .file(&format!("/proc/{pid}/schedstat"), &format!("{nanos} 5 6\n"))
}

#[test]
fn a_working_kernel_thread_is_waited_for_and_named() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path());
    let host = thread(host, 40, "btrfs-cleaner", 2, 100, 1);
    let host = thread(host, 41, "kworker/u4:1-btrfs-discard", 2, 200, 1);
    // A program with this name, and a kernel thread of another filesystem.
    let host = thread(host, 42, "btrfs-cleaner", 1, 300, 1);
    let host = thread(host, 43, "jbd2/vda-8", 2, 400, 1);
    let host = host.working("/proc/40/schedstat", Nanos(5 * INTERVAL.0));
    let names = ["btrfs-cleaner".to_owned(), "btrfs-discard".to_owned()];
    let rest = wait_idle(&host, &[], &names, Nanos(1_000_000_000));
    assert_eq!(rest.warning, None);
    assert_eq!(rest.active.into_iter().collect::<Vec<_>>(), ["btrfs-cleaner"]);
    assert_eq!(rest.waited, Nanos((5 + 3) * INTERVAL.0));
    let host = host.working("/proc/41/schedstat", Nanos(u64::MAX));
    let reported = wait_idle(&host, &[], &names, Nanos(200_000_000)).warning;
    assert!(matches!(reported, Some(Warning::DeviceNotIdle { .. })), "{reported:?}");
}

#[test]
fn caches_are_dropped_from_device_to_kernel_and_then_checked() {
    let temp = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(temp.path()).file(DROP_CACHES, "0");
    let (host, mut journaled) = journaled(temp.path(), fake);
    let kept = drop_devices(&mut journaled, &["/dev/loop0".into()], &["/image".into()]).unwrap();
    assert_eq!(kept, None);
    assert_eq!(host.done(), ["flush /dev/loop0", "write /proc/sys/vm/drop_caches = 3"]);
    let actions: Vec<_> =
        journaled.take_actions().into_iter().map(|action| action.description).collect();
    assert_eq!(actions.len(), 4);
    assert_eq!(actions[3], "count the cached pages of /image");
}

#[test]
fn a_kernel_without_drop_caches_is_an_error() {
    let temp = tempfile::tempdir().unwrap();
    let (_, mut journaled) = journaled(temp.path(), FakeHost::new(temp.path()));
    let error = drop_devices(&mut journaled, &[], &[]).unwrap_err();
    assert!(error.to_string().contains(DROP_CACHES), "{error}");
}

#[test]
fn data_that_stays_cached_is_reported_without_root() {
    let temp = tempfile::tempdir().unwrap();
    let (_, mut root) = journaled(&temp.path().join("root"), FakeHost::new(temp.path()));
    assert_eq!(evict(&mut root, temp.path()).unwrap(), None);
    let user = FakeHost::new(temp.path()).unprivileged();
    let (_, mut user) = journaled(&temp.path().join("user"), user);
    let kept = evict(&mut user, temp.path()).unwrap();
    let reason = "not root, so dentries and inodes stay cached".to_owned();
    assert_eq!(kept, Some(Warning::CacheNotDropped { reason, needs_root: true }));
}
