use std::{collections::BTreeMap, fs, sync::Arc};

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::{
    host::FakeHost,
    mount::MountRequest,
    undo::{CleanReport, Journal, clean},
};

mod schedulers;
mod told;

const SCHEDULER: &str = "/sys/class/block/sda/queue/scheduler";

fn bench(folder: &Path, host: FakeHost) -> (Arc<FakeHost>, Bench) {
    let host = Arc::new(host);
    let journal = Journal::create(&*host, &folder.join("state"), "run").unwrap();
    (Arc::clone(&host), Bench::new(host, journal))
}

/// A volume on a disk, four processors with two policies of frequency, and memory.
fn machine(folder: &Path) -> FakeHost {
    let queue = |name: &str, file: &str| format!("/sys/class/block/{name}/queue/{file}");
    let policy = |n: u32, file: &str| format!("/sys/devices/system/cpu/cpufreq/policy{n}/{file}");
    let mut host = FakeHost::new(folder)
        .file("/sys/class/block/dm-0/slaves/sda", "")
        .file(&queue("dm-0", "read_ahead_kb"), "256\n")
        .file(&queue("dm-0", "write_cache"), "write back\n")
        .file(SCHEDULER, "none [mq-deadline] bfq kyber\n")
        .file(&queue("sda", "iosched/read_expire"), "777\n")
        .file(&queue("sda", "read_ahead_kb"), "128\n")
        .file(&queue("sda", "nr_requests"), "64\n")
        .file(&queue("sda", "write_cache"), "write back\n")
        .file("/sys/devices/system/cpu/online", "0,1,2,3\n")
        .file("/sys/devices/system/cpu/present", "0-3\n")
        .file("/proc/sys/vm/dirty_ratio", "20\n")
        .file("/proc/sys/vm/dirty_bytes", "0\n")
        .file("/proc/sys/vm/dirty_background_ratio", "0\n")
        .file("/proc/sys/vm/dirty_background_bytes", "8388608\n")
        .file("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    for cpu in 1..4 {
        host = host.file(&format!("/sys/devices/system/cpu/cpu{cpu}/online"), "1\n");
    }
    for n in [0, 2] {
        host = host
            .file(&policy(n, "cpuinfo_min_freq"), "400000\n")
            .file(&policy(n, "cpuinfo_max_freq"), "2400000\n")
            .file(&policy(n, "scaling_min_freq"), "800000\n")
            .file(&policy(n, "scaling_max_freq"), "2000000\n")
            .file(&policy(n, "scaling_governor"), "powersave\n")
            .file(&policy(n, "scaling_available_governors"), "performance powersave\n");
    }
    host
}

fn value(factor: Factor, text: &str) -> Value {
    factor.spec().kind.read(text).unwrap()
}

fn factors(given: &[(Factor, &str)]) -> Factors {
    given.iter().map(|(factor, text)| (*factor, value(*factor, text))).collect()
}

/// Sets a scheduler and factors on the stack of a device of the run's own.
fn tune(
    bench: &mut Bench,
    host: &dyn Host,
    own: &str,
    scheduler: Option<&str>,
    factors: &Factors,
) -> Tuning {
    let own = [own.to_owned()];
    let devices = queue::stack(host, &own, &own);
    let mut tuning = Tuning::default();
    tuning.machine(bench, host, "run", factors).unwrap();
    tuning.devices(bench, host, &devices, (scheduler, factors)).unwrap();
    tuning
}

fn undo(bench: &mut Bench, tuning: Tuning) {
    for (step, what) in tuning.steps.into_iter().rev() {
        bench.undo(step, what).unwrap();
    }
}

fn facts(tuning: &Tuning) -> String {
    tuning.facts.0.iter().map(|(name, value)| format!("{name} = {value}\n")).collect()
}

fn messages(tuning: &Tuning) -> Vec<String> {
    tuning.warnings.iter().map(Warning::message).collect()
}

/// Every file of the machine, with what it holds.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(self::files(&path));
        } else {
            let text = fs::read_to_string(&path).unwrap();
            files.insert(path, text);
        }
    }
    files
}

fn hardware(folder: &Path) -> BTreeMap<PathBuf, String> {
    ["sys", "proc"].iter().flat_map(|part| files(&folder.join(part))).collect()
}

/// What a factor writes on the machine above, what it reads as, and that it is undone.
fn check(factor: Factor, text: &str, expected: expect_test::Expect) {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), machine(folder.path()));
    let before = hardware(folder.path());
    host.done();
    let tuning = tune(&mut bench, &*host, "dm-0", None, &factors(&[(factor, text)]));
    let said = [host.done(), vec![facts(&tuning)], messages(&tuning)].concat().join("\n");
    expected.assert_eq(&said);
    undo(&mut bench, tuning);
    assert_eq!(hardware(folder.path()), before);
    // The same after a kill, by `clean`.
    let tuning = tune(&mut bench, &*host, "dm-0", None, &factors(&[(factor, text)]));
    assert!(!tuning.steps.is_empty());
    bench.abandon();
    let CleanReport { stuck, undone, .. } = clean(&*host, &folder.path().join("state")).unwrap();
    assert_eq!((stuck, undone.len()), (vec![], tuning.steps.len()));
    assert_eq!(hardware(folder.path()), before);
}

#[test]
fn reading_ahead_is_set_on_every_device_of_the_stack() {
    check(
        Factor::ReadAhead,
        "512KiB",
        expect![[r#"
        write /sys/class/block/dm-0/queue/read_ahead_kb = 512
        write /sys/class/block/sda/queue/read_ahead_kb = 512
        factor.read_ahead.dm-0 = 512 KiB
        factor.read_ahead.sda = 512 KiB
    "#]],
    );
}

#[test]
fn what_the_kernel_rounds_is_told_and_undone() {
    check(
        Factor::ReadAhead,
        "6KiB",
        expect![[r#"
        write /sys/class/block/dm-0/queue/read_ahead_kb = 6
        write /sys/class/block/sda/queue/read_ahead_kb = 6
        factor.read_ahead.dm-0 = 4 KiB
        factor.read_ahead.sda = 4 KiB

        read_ahead of dm-0 (KiB) was set to `6` but reads `4`
        read_ahead of sda (KiB) was set to `6` but reads `4`"#]],
    );
}

#[test]
fn a_device_without_a_queue_is_left_to_the_one_below() {
    check(
        Factor::QueueDepth,
        "32",
        expect![[r#"
        write /sys/class/block/sda/queue/nr_requests = 32
        factor.queue_depth.dm-0 = none: it hands requests down without a queue of its own
        factor.queue_depth.sda = 32
    "#]],
    );
}

#[test]
fn flushes_of_a_shared_disk_are_left_alone() {
    check(
        Factor::WriteCache,
        "write through",
        expect![[r#"
        write /sys/class/block/dm-0/queue/write_cache = write through
        factor.write_cache.dm-0 = write through
        factor.write_cache.sda = left alone: others use it, and need their flushes
    "#]],
    );
}

#[test]
fn processors_go_offline_from_the_last_on() {
    check(
        Factor::Cpus,
        "2",
        expect![[r#"
        write /sys/devices/system/cpu/cpu3/online = 0
        write /sys/devices/system/cpu/cpu2/online = 0
        factor.cpus = 0,1
    "#]],
    );
}

#[test]
fn speed_is_fixed_without_the_least_above_the_highest() {
    // Within the limits there are: the highest comes down first.
    check(
        Factor::CpuSpeed,
        "50%",
        expect![[r#"
        write /sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq = 1200000
        write /sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq = 1200000
        write /sys/devices/system/cpu/cpufreq/policy2/scaling_max_freq = 1200000
        write /sys/devices/system/cpu/cpufreq/policy2/scaling_min_freq = 1200000
        factor.cpu_speed.policy0 = 1200000 kHz
        factor.cpu_speed.policy2 = 1200000 kHz
    "#]],
    );
    // Below them: the least goes first. Less than the machine can do is told.
    check(
        Factor::CpuSpeed,
        "10%",
        expect![[r#"
        write /sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq = 400000
        write /sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq = 400000
        write /sys/devices/system/cpu/cpufreq/policy2/scaling_min_freq = 400000
        write /sys/devices/system/cpu/cpufreq/policy2/scaling_max_freq = 400000
        factor.cpu_speed.policy0 = 400000 kHz
        factor.cpu_speed.policy2 = 400000 kHz

        cpu_speed of policy0 (kHz) was set to `240000` but reads `400000, the nearest it has`
        cpu_speed of policy2 (kHz) was set to `240000` but reads `400000, the nearest it has`"#]],
    );
    // Above them.
    check(
        Factor::CpuSpeed,
        "100%",
        expect![[r#"
        write /sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq = 2400000
        write /sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq = 2400000
        write /sys/devices/system/cpu/cpufreq/policy2/scaling_max_freq = 2400000
        write /sys/devices/system/cpu/cpufreq/policy2/scaling_min_freq = 2400000
        factor.cpu_speed.policy0 = 2400000 kHz
        factor.cpu_speed.policy2 = 2400000 kHz
    "#]],
    );
}

#[test]
fn the_governor_of_every_policy_is_set() {
    check(
        Factor::CpuGovernor,
        "performance",
        expect![[r#"
        write /sys/devices/system/cpu/cpufreq/policy0/scaling_governor = performance
        write /sys/devices/system/cpu/cpufreq/policy2/scaling_governor = performance
        factor.cpu_governor.policy0 = performance
        factor.cpu_governor.policy2 = performance
    "#]],
    );
}

#[test]
fn the_limit_of_dirty_memory_that_held_is_put_back() {
    check(
        Factor::Dirty,
        "256MiB",
        expect![[r#"
        write /proc/sys/vm/dirty_bytes = 268435456
        factor.dirty = 268435456 bytes
    "#]],
    );
    check(
        Factor::Dirty,
        "5%",
        expect![[r#"
        write /proc/sys/vm/dirty_ratio = 5
        factor.dirty = 5%
    "#]],
    );
    check(
        Factor::DirtyBackground,
        "3%",
        expect![[r#"
        write /proc/sys/vm/dirty_background_ratio = 3
        factor.dirty_background = 3%
    "#]],
    );
    check(
        Factor::DirtyBackground,
        "1MiB",
        expect![[r#"
        write /proc/sys/vm/dirty_background_bytes = 1048576
        factor.dirty_background = 1048576 bytes
    "#]],
    );
}

#[test]
fn huge_pages_are_one_word_of_several() {
    check(
        Factor::HugePages,
        "never",
        expect![[r#"
        write /sys/kernel/mm/transparent_hugepage/enabled = never
        factor.huge_pages = never
    "#]],
    );
}

#[test]
fn a_machine_that_has_nothing_says_so_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), FakeHost::new(folder.path()));
    let all = factors(&[
        (Factor::ReadAhead, "1MiB"),
        (Factor::QueueDepth, "32"),
        (Factor::WriteCache, "write back"),
        (Factor::CpuSpeed, "50%"),
        (Factor::CpuGovernor, "performance"),
        (Factor::Cpus, "1"),
        (Factor::Dirty, "1MiB"),
        (Factor::DirtyBackground, "1%"),
        (Factor::HugePages, "never"),
    ]);
    let tuning = tune(&mut bench, &*host, "sda", Some("bfq"), &all);
    assert_eq!((tuning.steps.len(), host.done()), (0, vec![]));
    expect![[r#"
        cpus was set to `1` but reads `the kernel tells of no processors`
        cpu_governor was set to `performance` but reads `the machine has no frequency to set (no cpufreq)`
        cpu_speed was set to `50%` but reads `no frequency to set, and no quota instead: /proc/self/cgroup: No such file or directory (os error 2)`
        dirty (bytes) was set to `1048576` but reads `No such file or directory (os error 2)`
        dirty_background (%) was set to `1` but reads `No such file or directory (os error 2)`
        huge_pages was set to `never` but reads `No such file or directory (os error 2)`
        scheduler of sda was set to `bfq` but reads `No such file or directory (os error 2)`
        read_ahead of sda (KiB) was set to `1024` but reads `No such file or directory (os error 2)`
        queue_depth of sda was set to `32` but reads `No such file or directory (os error 2)`
        write_cache of sda was set to `write back` but reads `No such file or directory (os error 2)`"#]]
    .assert_eq(&messages(&tuning).join("\n"));
    let none = queue::scheduler(&*host, &[], "bfq");
    assert!(matches!(&none.warnings[..], [Warning::ReadBack { found, .. }]
        if found == "no device of its own"));
}

#[test]
fn more_processors_than_there_are_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), machine(folder.path()));
    host.write(Path::new("/sys/devices/system/cpu/cpu2/online"), "0").unwrap();
    let tuning = tune(&mut bench, &*host, "dm-0", None, &factors(&[(Factor::Cpus, "8")]));
    assert_eq!(
        messages(&tuning),
        ["cpus was set to `8` but reads `4: there are no others that can be switched`"]
    );
    assert_eq!(tuning.facts.get("factor.cpus"), Some("0,1,2,3"));
    undo(&mut bench, tuning);
    assert_eq!(cpu::online_now(&*host), [0, 1, 3]);
}

#[test]
fn sets_of_processors_of_version_1_are_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let set = "/sys/fs/cgroup/cpuset/box/cpuset.cpus";
    let host = machine(folder.path()).file(set, "2-3\n");
    let request = MountRequest {
        source: "cgroup".into(),
        target: "/sys/fs/cgroup/cpuset".into(),
        fstype: "cgroup".into(),
        options: "rw,cpuset".into(),
    };
    host.mount(&request).unwrap();
    let (host, mut bench) = bench(folder.path(), host);
    let tuning = tune(&mut bench, &*host, "dm-0", None, &factors(&[(Factor::Cpus, "3")]));
    // As the kernel does it.
    host.write(Path::new(set), "2").unwrap();
    undo(&mut bench, tuning);
    assert_eq!(host.read(Path::new(set)).unwrap(), "2-3\n");
}

#[test]
fn a_frequency_that_there_is_not_becomes_the_nearest() {
    let folder = tempfile::tempdir().unwrap();
    let steps = "/sys/devices/system/cpu/cpufreq/policy0/scaling_available_frequencies";
    let host = machine(folder.path()).file(steps, "2400000 1500000 1000000 800000 \n");
    let intent = cpu::speed(&host, &value(Factor::CpuSpeed, "50%"));
    let texts: Vec<_> = intent.writes.iter().map(|write| write.text.as_str()).collect();
    assert_eq!(texts, ["1000000", "1000000", "1200000", "1200000"]);
    assert!(matches!(&intent.warnings[..], [Warning::ReadBack { wanted, .. }]
        if wanted == "1200000"));
}

#[test]
fn lists_of_processors_are_read() {
    assert_eq!(cpu::numbers("0-2,5\n"), [0, 1, 2, 5]);
    assert_eq!(cpu::numbers("\n"), [0; 0]);
}

#[test]
fn two_settings_are_undone_newest_first() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), machine(folder.path()));
    let before = hardware(folder.path());
    let both = factors(&[(Factor::QueueDepth, "32"), (Factor::Dirty, "1MiB")]);
    let tuning = tune(&mut bench, &*host, "dm-0", Some("bfq"), &both);
    assert_eq!(tuning.warnings, []);
    undo(&mut bench, tuning);
    expect![[r#"
        write /proc/sys/vm/dirty_bytes = 1048576
        write /sys/class/block/sda/queue/scheduler = bfq
        write /sys/class/block/sda/queue/nr_requests = 32
        write /sys/class/block/sda/queue/nr_requests = 256
        write /sys/class/block/sda/queue/scheduler = mq-deadline
        write /sys/class/block/sda/queue/nr_requests = 64
        write /proc/sys/vm/dirty_ratio = 20"#]]
    .assert_eq(&host.done().join("\n"));
    assert_eq!(hardware(folder.path()), before);
}

#[test]
fn the_limit_that_the_machine_lowered_by_itself_is_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let (host, mut bench) = bench(folder.path(), machine(folder.path()));
    let before = hardware(folder.path());
    let both = factors(&[(Factor::CpuSpeed, "100%"), (Factor::QueueDepth, "32")]);
    let tuning = tune(&mut bench, &*host, "dm-0", None, &both);
    let policy = "/sys/devices/system/cpu/cpufreq/policy0";
    // It gets hot, and the driver offers fewer requests.
    for (file, text) in [
        (format!("{policy}/scaling_min_freq"), "1000000"),
        (format!("{policy}/scaling_max_freq"), "1000000"),
        ("/sys/class/block/sda/queue/nr_requests".into(), "31"),
    ] {
        host.write(Path::new(&file), text).unwrap();
    }
    undo(&mut bench, tuning);
    assert_eq!(hardware(folder.path()), before);
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
    // The disk has other parts, whose flushes are theirs.
    let own = ["sda1".to_owned()];
    let devices = queue::stack(&host, &own, &own);
    assert_eq!(devices, [Device { name: "sda".into(), shared: true }]);
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

/// One value of one factor, some of which the machine refuses.
fn setting() -> impl Strategy<Value = (Factor, String)> {
    let of = |factor: Factor, values: &[&str]| {
        let values: Vec<_> = values.iter().map(|text| (factor, (*text).to_owned())).collect();
        proptest::sample::select(values)
    };
    prop_oneof![
        of(Factor::ReadAhead, &["0B", "6KiB", "1MiB"]),
        of(Factor::QueueDepth, &["4", "64", "65536"]),
        of(Factor::WriteCache, &["write back", "write through"]),
        of(Factor::CpuSpeed, &["1%", "40%", "100%"]),
        of(Factor::CpuGovernor, &["performance", "powersave"]),
        of(Factor::Cpus, &["1", "3", "4", "16"]),
        of(Factor::Dirty, &["1%", "20%", "0B", "1GiB"]),
        of(Factor::DirtyBackground, &["1%", "8MiB", "1GiB"]),
        of(Factor::HugePages, &["always", "madvise", "never"]),
    ]
}

proptest! {
    // Each case writes and syncs a journal.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is set, one thing or several and one on top of the other: undone in reverse, or by
    /// `clean` after a kill, it leaves the machine as it was, byte for byte.
    #[test]
    fn any_settings_are_undone_byte_for_byte(
        rounds in proptest::collection::vec(
            (
                proptest::collection::vec(setting(), 0..5),
                proptest::option::of(proptest::sample::select(vec!["none", "cfq", "kyber", "no"])),
            ),
            1..4,
        ),
        killed in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let (host, mut bench) = bench(folder.path(), machine(folder.path()));
        let before = hardware(folder.path());
        let mut made = Vec::new();
        for (given, scheduler) in &rounds {
            let factors = given.iter().map(|(f, text)| (*f, value(*f, text))).collect();
            made.push(tune(&mut bench, &*host, "dm-0", *scheduler, &factors));
        }
        if killed {
            bench.abandon();
            prop_assert_eq!(clean(&*host, &folder.path().join("state")).unwrap().stuck, vec![]);
        } else {
            made.into_iter().rev().for_each(|tuning| undo(&mut bench, tuning));
        }
        prop_assert_eq!(hardware(folder.path()), before);
    }
}
