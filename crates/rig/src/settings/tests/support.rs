//! Support and planned changes, without applying anything.

use super::*;

#[test]
fn supported_settings_are_listed_with_reasons_for_others() {
    let temp = tempfile::tempdir().unwrap();
    let report = |host: &FakeHost| {
        let line = |support: super::super::support::Support| match support.support {
            Ok(here) => format!("{}: {here}\n", support.name),
            Err(why) => format!("{}: NO, {why}\n", support.name),
        };
        super::super::support::setting_support(host).into_iter().map(line).collect::<String>()
    };
    let host = machine(temp.path()).file("/sys/block/sda/size", "8").file("/sys/block/loop0/x", "");
    expect![[r#"
        scheduler: sda: none mq-deadline bfq kyber
        device: devices and image files
        size: image files
        read_ahead: sda: now 128 KiB
        nr_requests: sda: now 64
        write_cache: sda: now write back
        cpu_speed: 2 frequency policies
        cpu_governor: policy0 policy2: performance powersave
        online_cpus: 1 to 4
        dirty_threshold: now 20%
        dirty_background_threshold: now 8388608 bytes
        transparent_hugepage: always [madvise] never
        kernel: NO, requires a guest; use --guest auto
        hosts: in runs on several hosts
        reader_shift: in runs on several hosts
    "#]]
    .assert_eq(&report(&host));
    let none = FakeHost::new(temp.path().join("none"));
    expect![[r#"
        scheduler: NO, no device has a scheduler
        device: devices and image files
        size: image files
        read_ahead: NO, no device has queue/read_ahead_kb
        nr_requests: NO, no device has queue/nr_requests
        write_cache: NO, no device has queue/write_cache
        cpu_speed: NO, /proc/self/cgroup: No such file or directory (os error 2)
        cpu_governor: NO, no frequency governor (no cpufreq)
        online_cpus: NO, the kernel does not list the online CPUs
        dirty_threshold: NO, /proc/sys/vm/dirty_ratio: No such file or directory (os error 2)
        dirty_background_threshold: NO, /proc/sys/vm/dirty_background_ratio: No such file or directory (os error 2)
        transparent_hugepage: NO, the kernel is built without transparent huge pages
        kernel: NO, requires a guest; use --guest auto
        hosts: in runs on several hosts
        reader_shift: in runs on several hosts
    "#]]
    .assert_eq(&report(&none));
    let user = machine(temp.path()).unprivileged();
    let hosts = |line: &&str| line.ends_with(": in runs on several hosts");
    let report = report(&user);
    assert!(report.lines().filter(|it| !hosts(it)).all(|it| it.contains(": NO, ")), "{report}");
}

#[test]
fn planned_changes_are_listed_and_not_applied() {
    let temp = tempfile::tempdir().unwrap();
    let host = machine(temp.path());
    let host = host.file("/dev/sda", "");
    let request = MountRequest {
        source: "/dev/sda".into(),
        target: "/".into(),
        fstype: "ext4".into(),
        options: String::new(),
    };
    host.mount(&request).unwrap();
    host.done();
    let place = model::StorageKind::Image {
        size: model::Bytes::mib(64),
        count: 1,
        directory: None,
        file: None,
        allocation: model::Allocation::Preallocated,
    };
    let storage = model::Storage { kind: place, memory_limit: None, external_directory: None };
    let factors = vec![(SystemSetting::ReadAhead, vec![value(SystemSetting::ReadAhead, "1MiB")])];
    let schedulers = ["cfq".to_owned(), "wishful".to_owned()];
    let planned_values = super::super::support::planned_values(
        &host,
        &storage,
        Path::new("/var/tmp"),
        &schedulers,
        &factors,
    );
    let lines =
        planned_values.iter().flat_map(|super::super::support::PlannedValue { what, change }| {
            let writes = change.writes.iter().map(|w| format!("{} {}", w.path.display(), w.text));
            let warnings = change.warnings.iter().map(|warning| warning.code().to_owned());
            std::iter::once(what.clone())
                .chain(writes)
                .chain(change.notes.iter().cloned())
                .chain(warnings)
                .collect::<Vec<_>>()
        });
    expect![[r#"
        scheduler=cfq
        /sys/class/block/loop·0/queue/scheduler bfq
        /sys/class/block/sda/queue/scheduler bfq
        setting-emulated
        scheduler=wishful
        /sys/class/block/loop·0/queue/scheduler wishful
        /sys/class/block/sda/queue/scheduler wishful
        the kernel lists none, mq-deadline, bfq, kyber for loop·0; trials fail unless there is a module for `wishful`
        the kernel lists none, mq-deadline, bfq, kyber for sda; trials fail unless there is a module for `wishful`
        read_ahead=1MiB
        /sys/class/block/loop·0/queue/read_ahead_kb 1024
        /sys/class/block/sda/queue/read_ahead_kb 1024"#]]
    .assert_eq(&lines.collect::<Vec<_>>().join("\n"));
    assert_eq!(host.done(), [""; 0]);
}
