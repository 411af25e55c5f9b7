//! Schedulers, and what the kernel resets with them.

use super::*;

#[test]
fn a_scheduler_is_set_and_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(folder.path()).file(SCHEDULER, "none [mq-deadline] bfq\n");
    let (host, mut bench) = bench(folder.path(), fake);
    let tuning = tune(&mut bench, &*host, "sda", Some("bfq"), &Factors::new());
    assert_eq!(tuning.warnings, []);
    undo(&mut bench, tuning);
    let wrote = |value: &str| format!("write {SCHEDULER} = {value}");
    assert_eq!(host.done(), [wrote("bfq"), wrote("mq-deadline")]);
}

#[test]
fn names_of_old_kernels_stand_for_what_followed_them() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), machine(folder.path()));
    for (old, today) in [("cfq", "bfq"), ("noop", "none"), ("deadline", "mq-deadline")] {
        let tuning = tune(&mut bench, &*host, "dm-0", Some(old), &Factors::new());
        assert_eq!(tuning.facts.get("factor.scheduler.sda"), Some(today));
        assert!(matches!(&tuning.warnings[..], [Warning::StandIn { wanted, .. }]
            if wanted.ends_with(old)));
        undo(&mut bench, tuning);
    }
    // A kernel that has them is left its own.
    let host = FakeHost::new(folder.path().join("old")).file(SCHEDULER, "noop deadline [cfq]\n");
    let device = Device { name: "sda".into(), shared: false };
    let intent = queue::scheduler(&host, &[device], "noop");
    assert_eq!((intent.writes[0].text.as_str(), intent.warnings), ("noop", vec![]));
}

#[test]
fn a_scheduler_that_the_kernel_has_not_is_told_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), machine(folder.path()));
    let before = hardware(folder.path());
    let tuning = tune(&mut bench, &*host, "dm-0", Some("wishful"), &Factors::new());
    assert_eq!(
        messages(&tuning),
        [
            "scheduler of sda was set to `wishful` but reads `mq-deadline (Invalid argument (os error 22))`"
        ]
    );
    undo(&mut bench, tuning);
    assert_eq!(hardware(folder.path()), before);
}

#[test]
fn a_scheduler_that_is_there_already_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(folder.path()).file(SCHEDULER, "none [bfq]\n");
    let (host, mut bench) = bench(folder.path(), fake);
    let tuning = tune(&mut bench, &*host, "sda", Some("bfq"), &Factors::new());
    assert_eq!((tuning.steps, tuning.warnings), (vec![], vec![]));
    assert_eq!(host.done(), [""; 0]);
}

#[test]
fn a_scheduler_that_somebody_else_changed_since_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(folder.path()).file(SCHEDULER, "[none] bfq kyber\n");
    let (host, mut bench) = bench(folder.path(), fake);
    let tuning = tune(&mut bench, &*host, "sda", Some("bfq"), &Factors::new());
    host.write(Path::new(SCHEDULER), "kyber").unwrap();
    host.done();
    undo(&mut bench, tuning);
    assert_eq!(host.done(), [""; 0]);
}

#[test]
fn what_belongs_to_a_scheduler_that_somebody_else_set_is_theirs() {
    let depth = Path::new("/sys/class/block/sda/queue/nr_requests");
    for factors in [Factors::new(), factors(&[(Factor::QueueDepth, "32")])] {
        let folder = tempfile::tempdir().unwrap();
        let (host, mut bench) = bench(folder.path(), machine(folder.path()));
        let tuning = tune(&mut bench, &*host, "dm-0", Some("bfq"), &factors);
        let made = tuning.steps.len();
        bench.abandon();
        host.write(Path::new(SCHEDULER), "kyber").unwrap();
        host.write(depth, "48").unwrap();
        host.done();
        let report = clean(&*host, &folder.path().join("state")).unwrap();
        assert_eq!((report.left.len(), report.undone, report.stuck), (made, vec![], vec![]));
        let belongs = format!("belongs to {SCHEDULER}, which reads `kyber`, not");
        let told = report.left.iter().filter(|left| left.why.contains(&belongs));
        assert_eq!(told.count(), made - 1, "{:?}", report.left);
        assert_eq!(host.done(), [""; 0]);
        assert_eq!(host.read(depth).unwrap(), "48\n");
    }
}

#[test]
fn what_belongs_to_a_scheduler_waits_until_that_is_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), machine(folder.path()));
    let before = hardware(folder.path());
    tune(&mut bench, &*host, "dm-0", Some("bfq"), &Factors::new());
    bench.abandon();
    host.decline(Path::new(SCHEDULER), "mq-deadline", 22, 1);
    let report = clean(&*host, &folder.path().join("state")).unwrap();
    assert_eq!((report.stuck.len(), report.left, report.undone), (2, vec![], vec![]));
    let report = clean(&*host, &folder.path().join("state")).unwrap();
    assert_eq!((report.stuck, report.left, report.undone.len()), (vec![], vec![], 2));
    assert_eq!(hardware(folder.path()), before);
}
