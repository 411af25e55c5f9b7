use std::sync::Arc;

use model::Nanos;

use super::{rest::LOOK, *};
use crate::{
    host::{FakeHost, Host},
    undo::Journal,
};

const STAT: &str = "/sys/class/block/sda/stat";

fn bench(folder: &Path, host: FakeHost) -> (Arc<FakeHost>, Bench) {
    let host = Arc::new(host);
    let journal = Journal::create(&*host, &folder.join("state"), "run").unwrap();
    (Arc::clone(&host), Bench::new(host, journal))
}

#[test]
fn an_idle_device_is_settled_after_three_looks() {
    let folder = tempfile::tempdir().unwrap();
    let host = FakeHost::new(folder.path()).file(STAT, "1 0 8 0 1 0 8 0 0 0 0");
    let rest = settle(&host, &["sda".into()], &[], Nanos(1_000_000_000));
    assert_eq!((rest.warning, rest.waited), (None, Nanos(3 * LOOK.0)));
    assert_eq!(host.now(), Nanos(3 * LOOK.0));
}

#[test]
fn a_busy_device_is_told_after_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let host = FakeHost::new(folder.path()).file(STAT, "1 0 8 0 1 0 8 0 5 0 0");
    let told = settle(&host, &["sda".into()], &[], Nanos(1_000_000_000)).warning;
    let Some(Warning::NotIdle { waited }) = told else { panic!("{told:?}") };
    assert!(waited > Nanos(1_000_000_000) && waited < Nanos(1_100_000_000), "{waited:?}");
}

#[test]
fn a_device_without_account_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let host = FakeHost::new(folder.path());
    assert_eq!(settle(&host, &[], &[], Nanos(1)).warning, None);
    assert_eq!(settle(&host, &["sda".into()], &[], Nanos(1)).warning, None);
    assert_eq!(host.now(), Nanos(0));
}

/// A kernel thread as /proc shows it.
fn thread(host: FakeHost, pid: u32, name: &str, parent: u32, nanos: u64, ticks: u64) -> FakeHost {
    let zeros = "0 ".repeat(9);
    let stat = format!("{pid} ({name}) S {parent} {zeros}0 {ticks} 20 0\n");
    host.file(&format!("/proc/{pid}/stat"), &stat)
        .file(&format!("/proc/{pid}/schedstat"), &format!("{nanos} 5 6\n"))
}

#[test]
fn a_kernel_thread_that_works_is_waited_for_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let host = FakeHost::new(folder.path());
    let host = thread(host, 40, "btrfs-cleaner", 2, 100, 1);
    let host = thread(host, 41, "kworker/u4:1-btrfs-discard", 2, 200, 1);
    // A program of that name, and a kernel thread of another filesystem.
    let host = thread(host, 42, "btrfs-cleaner", 1, 300, 1);
    let host = thread(host, 43, "jbd2/vda-8", 2, 400, 1);
    let host = host.working("/proc/40/schedstat", Nanos(5 * LOOK.0));
    let names = ["btrfs-cleaner".to_owned(), "btrfs-discard".to_owned()];
    let rest = settle(&host, &[], &names, Nanos(1_000_000_000));
    assert_eq!(rest.warning, None);
    assert_eq!(rest.restless.into_iter().collect::<Vec<_>>(), ["btrfs-cleaner"]);
    assert_eq!(rest.waited, Nanos((5 + 3) * LOOK.0));
    let host = host.working("/proc/41/schedstat", Nanos(u64::MAX));
    let told = settle(&host, &[], &names, Nanos(200_000_000)).warning;
    assert!(matches!(told, Some(Warning::NotIdle { .. })), "{told:?}");
}

#[test]
fn dropping_goes_from_the_device_to_the_kernel_and_looks_last() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(folder.path()).file(DROP_CACHES, "0");
    let (host, mut bench) = bench(folder.path(), fake);
    let kept = drop_devices(&mut bench, &["/dev/loop0".into()], &["/image".into()]).unwrap();
    assert_eq!(kept, None);
    assert_eq!(host.done(), ["flush /dev/loop0", "write /proc/sys/vm/drop_caches = 3"]);
    let actions: Vec<_> = bench.take_actions().into_iter().map(|action| action.what).collect();
    assert_eq!(actions.len(), 4);
    assert_eq!(actions[3], "look what memory holds of /image");
}

#[test]
fn a_kernel_without_the_order_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut bench) = bench(folder.path(), FakeHost::new(folder.path()));
    let error = drop_devices(&mut bench, &[], &[]).unwrap_err();
    assert!(error.to_string().contains(DROP_CACHES), "{error}");
}

#[test]
fn an_ordinary_user_is_told_what_stays_of_a_directory() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut root) = bench(&folder.path().join("root"), FakeHost::new(folder.path()));
    assert_eq!(evict(&mut root, folder.path()).unwrap(), None);
    let user = FakeHost::new(folder.path()).unprivileged();
    let (_, mut user) = bench(&folder.path().join("user"), user);
    let kept = evict(&mut user, folder.path()).unwrap();
    let reason = "not root, so names and inodes stay in memory".to_owned();
    assert_eq!(kept, Some(Warning::CacheKept { reason }));
}
