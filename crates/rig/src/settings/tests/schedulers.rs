//! Schedulers, and the settings that the kernel resets with them.

use super::*;

#[test]
fn a_scheduler_is_set_and_restored() {
    let temp = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(temp.path()).file(SCHEDULER, "none [mq-deadline] bfq\n");
    let (host, mut journaled) = journaled(temp.path(), fake);
    let tuning = tune(&mut journaled, &*host, "sda", Some("bfq"), &SystemSettings::new());
    assert_eq!(tuning.warnings, []);
    undo(&mut journaled, tuning);
    let wrote = |value: &str| format!("write {SCHEDULER} = {value}");
    assert_eq!(host.done(), [wrote("bfq"), wrote("mq-deadline")]);
}

#[test]
fn old_scheduler_names_select_their_successors() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), machine(temp.path()));
    for (old, today) in [("cfq", "bfq"), ("noop", "none"), ("deadline", "mq-deadline")] {
        let tuning = tune(&mut journaled, &*host, "dm-0", Some(old), &SystemSettings::new());
        assert_eq!(tuning.facts.get("setting.scheduler.sda"), Some(today));
        assert!(matches!(&tuning.warnings[..], [Warning::SettingEmulated { wanted, .. }]
            if wanted.ends_with(old)));
        undo(&mut journaled, tuning);
    }
    // A kernel with the old schedulers keeps them.
    let host = FakeHost::new(temp.path().join("old")).file(SCHEDULER, "noop deadline [cfq]\n");
    let device = Device { name: "sda".into(), shared: false };
    let intent = queue::scheduler(&host, &[device], "noop");
    assert_eq!((intent.writes[0].text.as_str(), intent.warnings), ("noop", vec![]));
}

#[test]
fn a_missing_scheduler_is_reported_with_the_reason() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), machine(temp.path()));
    let before = hardware(temp.path());
    let tuning = tune(&mut journaled, &*host, "dm-0", Some("wishful"), &SystemSettings::new());
    assert_eq!(
        messages(&tuning),
        [
            "scheduler of sda: set to `wishful`, reads back `mq-deadline (Invalid argument (os error 22))`"
        ]
    );
    undo(&mut journaled, tuning);
    assert_eq!(hardware(temp.path()), before);
}

#[test]
fn the_current_scheduler_is_unchanged() {
    let temp = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(temp.path()).file(SCHEDULER, "none [bfq]\n");
    let (host, mut journaled) = journaled(temp.path(), fake);
    let tuning = tune(&mut journaled, &*host, "sda", Some("bfq"), &SystemSettings::new());
    assert_eq!((tuning.steps, tuning.warnings), (vec![], vec![]));
    assert_eq!(host.done(), [""; 0]);
}

#[test]
fn a_scheduler_changed_by_another_process_is_skipped() {
    let temp = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(temp.path()).file(SCHEDULER, "[none] bfq kyber\n");
    let (host, mut journaled) = journaled(temp.path(), fake);
    let tuning = tune(&mut journaled, &*host, "sda", Some("bfq"), &SystemSettings::new());
    host.write(Path::new(SCHEDULER), "kyber").unwrap();
    host.done();
    undo(&mut journaled, tuning);
    assert_eq!(host.done(), [""; 0]);
}

#[test]
fn settings_of_a_foreign_scheduler_are_skipped() {
    let depth = Path::new("/sys/class/block/sda/queue/nr_requests");
    for factors in [SystemSettings::new(), factors(&[(SystemSetting::NrRequests, "32")])] {
        let temp = tempfile::tempdir().unwrap();
        let (host, mut journaled) = journaled(temp.path(), machine(temp.path()));
        let tuning = tune(&mut journaled, &*host, "dm-0", Some("bfq"), &factors);
        let made = tuning.steps.len();
        journaled.forget();
        host.write(Path::new(SCHEDULER), "kyber").unwrap();
        host.write(depth, "48").unwrap();
        host.done();
        let report = clean(&*host, &temp.path().join("state")).unwrap();
        assert_eq!((report.skipped.len(), report.undone, report.failed), (made, vec![], vec![]));
        let belongs = format!("depends on {SCHEDULER}, which is `kyber`, not");
        let skipped = report.skipped.iter().filter(|left| left.why.contains(&belongs));
        assert_eq!(skipped.count(), made - 1, "{:?}", report.skipped);
        assert_eq!(host.done(), [""; 0]);
        assert_eq!(host.read(depth).unwrap(), "48\n");
    }
}

#[test]
fn dependent_settings_wait_for_their_scheduler() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), machine(temp.path()));
    let before = hardware(temp.path());
    tune(&mut journaled, &*host, "dm-0", Some("bfq"), &SystemSettings::new());
    journaled.forget();
    host.fail_write(Path::new(SCHEDULER), "mq-deadline", 22, 1);
    let report = clean(&*host, &temp.path().join("state")).unwrap();
    assert_eq!((report.failed.len(), report.skipped, report.undone), (2, vec![], vec![]));
    let report = clean(&*host, &temp.path().join("state")).unwrap();
    assert_eq!((report.failed, report.skipped, report.undone.len()), (vec![], vec![], 2));
    assert_eq!(hardware(temp.path()), before);
}
