//! What is told before anything is set.

use super::*;

#[test]
fn what_a_machine_can_is_told_with_the_reason_where_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let told = |host: &FakeHost| {
        let line = |ability: ability::Ability| match ability.here {
            Ok(here) => format!("{}: {here}\n", ability.name),
            Err(why) => format!("{}: NO, {why}\n", ability.name),
        };
        ability::abilities(host).into_iter().map(line).collect::<String>()
    };
    let host =
        machine(folder.path()).file("/sys/block/sda/size", "8").file("/sys/block/loop0/x", "");
    expect![[r#"
        scheduler: sda: none mq-deadline bfq kyber
        read_ahead: sda: now 128 KiB
        queue_depth: sda: now 64
        write_cache: sda: now write back
        cpu_speed: 2 policies of frequency
        cpu_governor: policy0 policy2: performance powersave
        cpus: 1 to 4
        dirty: now 20%
        dirty_background: now 8388608 bytes
        huge_pages: always [madvise] never
        kernel: NO, only a guest boots a kernel of choice; add --guest auto
    "#]]
    .assert_eq(&told(&host));
    let none = FakeHost::new(folder.path().join("none"));
    expect![[r#"
        scheduler: NO, no device has a scheduler
        read_ahead: NO, no device has queue/read_ahead_kb
        queue_depth: NO, no device has queue/nr_requests
        write_cache: NO, no device has queue/write_cache
        cpu_speed: NO, /proc/self/cgroup: No such file or directory (os error 2)
        cpu_governor: NO, the machine has no frequency to govern (no cpufreq)
        cpus: NO, the kernel tells of no processors
        dirty: NO, /proc/sys/vm/dirty_ratio: No such file or directory (os error 2)
        dirty_background: NO, /proc/sys/vm/dirty_background_ratio: No such file or directory (os error 2)
        huge_pages: NO, the kernel is built without them
        kernel: NO, only a guest boots a kernel of choice; add --guest auto
    "#]]
    .assert_eq(&told(&none));
    let user = machine(folder.path()).unprivileged();
    assert!(told(&user).lines().all(|line| line.contains(": NO, ")), "{}", told(&user));
}

#[test]
fn what_a_plan_would_do_is_told_and_not_done() {
    let folder = tempfile::tempdir().unwrap();
    let host = machine(folder.path());
    let host = host.file("/dev/sda", "");
    let request = MountRequest {
        source: "/dev/sda".into(),
        target: "/".into(),
        fstype: "ext4".into(),
        options: String::new(),
    };
    host.mount(&request).unwrap();
    host.done();
    let place = model::Place::Image {
        size: model::Bytes::mib(64),
        count: 1,
        directory: None,
        file: None,
        allocation: model::Allocation::Full,
    };
    let storage = model::Storage { place, memory: None, elsewhere: None };
    let factors = vec![(Factor::ReadAhead, vec![value(Factor::ReadAhead, "1MiB")])];
    let schedulers = ["cfq".to_owned(), "wishful".to_owned()];
    let intended = ability::intended(&host, &storage, Path::new("/var/tmp"), &schedulers, &factors);
    let lines = intended.iter().flat_map(|ability::Intended { what, intent }| {
        let writes = intent.writes.iter().map(|w| format!("{} {}", w.path.display(), w.text));
        let warnings = intent.warnings.iter().map(|warning| warning.code().to_owned());
        std::iter::once(what.clone())
            .chain(writes)
            .chain(intent.notes.iter().cloned())
            .chain(warnings)
            .collect::<Vec<_>>()
    });
    expect![[r#"
        scheduler=cfq
        /sys/class/block/loop·0/queue/scheduler bfq
        /sys/class/block/sda/queue/scheduler bfq
        W-STANDIN
        scheduler=wishful
        /sys/class/block/loop·0/queue/scheduler wishful
        /sys/class/block/sda/queue/scheduler wishful
        the kernel lists none, mq-deadline, bfq, kyber for loop·0; unless it has a module for `wishful`, trials fail
        the kernel lists none, mq-deadline, bfq, kyber for sda; unless it has a module for `wishful`, trials fail
        read_ahead=1MiB
        /sys/class/block/loop·0/queue/read_ahead_kb 1024
        /sys/class/block/sda/queue/read_ahead_kb 1024"#]]
    .assert_eq(&lines.collect::<Vec<_>>().join("\n"));
    assert_eq!(host.done(), [""; 0]);
}
