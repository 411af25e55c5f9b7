use std::sync::Arc;

use super::*;
use crate::{host::FakeHost, undo::Journal};

const SCHEDULER: &str = "/sys/class/block/sda/queue/scheduler";

fn bench(folder: &Path, host: FakeHost) -> (Arc<FakeHost>, Bench) {
    let host = Arc::new(host);
    let journal = Journal::create(&*host, &folder.join("state"), "run").unwrap();
    (Arc::clone(&host), Bench::new(host, journal))
}

#[test]
fn a_scheduler_is_set_and_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(folder.path()).file(SCHEDULER, "none [mq-deadline] bfq\n");
    let (host, mut bench) = bench(folder.path(), fake);
    let (step, warning) = set_scheduler(&mut bench, &*host, "sda", "bfq").unwrap();
    assert_eq!(warning, None);
    bench.undo(step.unwrap(), "scheduler").unwrap();
    let wrote = |value: &str| format!("write {SCHEDULER} = {value}");
    assert_eq!(host.done(), [wrote("bfq"), wrote("mq-deadline")]);
}

#[test]
fn a_scheduler_that_is_there_already_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(folder.path()).file(SCHEDULER, "none [bfq]\n");
    let (host, mut bench) = bench(folder.path(), fake);
    assert_eq!(set_scheduler(&mut bench, &*host, "sda", "bfq").unwrap(), (None, None));
    assert_eq!(host.done(), [""; 0]);
}

#[test]
fn a_scheduler_that_somebody_else_changed_since_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(folder.path()).file(SCHEDULER, "[none] bfq kyber\n");
    let (host, mut bench) = bench(folder.path(), fake);
    let (step, _) = set_scheduler(&mut bench, &*host, "sda", "bfq").unwrap();
    host.write(Path::new(SCHEDULER), "kyber").unwrap();
    host.done();
    bench.undo(step.unwrap(), "scheduler").unwrap();
    assert_eq!(host.done(), [""; 0]);
}

#[test]
fn a_device_without_schedulers_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), FakeHost::new(folder.path()));
    let (step, warning) = set_scheduler(&mut bench, &*host, "sda", "bfq").unwrap();
    assert_eq!(step, None);
    assert!(matches!(warning, Some(Warning::ReadBack { wanted, .. }) if wanted == "bfq"));
}

#[test]
fn a_partition_has_the_queue_of_its_disk() {
    let folder = tempfile::tempdir().unwrap();
    let host = FakeHost::new(folder.path())
        .file("/sys/block/sda/queue/scheduler", "[none]")
        .file("/sys/block/sda/sda1/partition", "1")
        .file("/sys/class/block/.keep", "");
    let class = folder.path().join("sys/class/block");
    std::os::unix::fs::symlink("../../block/sda/sda1", class.join("sda1")).unwrap();
    std::os::unix::fs::symlink("../../block/sda", class.join("sda")).unwrap();
    assert!(queue(&host, "sda1").ends_with("sys/block/sda/queue"));
    assert_eq!(host.read(&queue(&host, "sda").join("scheduler")).unwrap(), "[none]");
}

#[test]
fn discards_are_switched_off_and_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(folder.path())
        .file("/sys/class/block/loop9/queue/discard_max_bytes", "4294966784\n");
    let (host, mut bench) = bench(folder.path(), fake);
    assert_eq!(switch_discard_off(&mut bench, &*host, "loop9"), None);
    let told = switch_discard_off(&mut bench, &*host, "loop10");
    assert!(matches!(told, Some(Warning::ReadBack { .. })), "{told:?}");
}
