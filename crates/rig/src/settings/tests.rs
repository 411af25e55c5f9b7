use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::{
    host::FakeHost,
    mount::MountRequest,
    undo::{CleanReport, Journal, clean},
};

mod schedulers;
mod support;

const SCHEDULER: &str = "/sys/class/block/sda/queue/scheduler";

fn journaled(temp: &Path, host: FakeHost) -> (Arc<FakeHost>, JournaledHost) {
    let host = Arc::new(host);
    let journal = Journal::create(&*host, &temp.join("state"), "run").unwrap();
    (Arc::clone(&host), JournaledHost::new(host, journal))
}

/// A volume on a disk, four CPUs with two frequency policies, and memory.
fn machine(temp: &Path) -> FakeHost {
    let queue = |name: &str, file: &str| format!("/sys/class/block/{name}/queue/{file}");
    let policy = |n: u32, file: &str| format!("/sys/devices/system/cpu/cpufreq/policy{n}/{file}");
    let mut host = FakeHost::new(temp)
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

fn value(factor: SystemSetting, text: &str) -> Value {
    factor.spec().kind.read(text).unwrap()
}

fn factors(given: &[(SystemSetting, &str)]) -> SystemSettings {
    given.iter().map(|(factor, text)| (*factor, value(*factor, text))).collect()
}

/// Applies a scheduler and settings to the stack of a device of the run.
fn tune(
    journaled: &mut JournaledHost,
    host: &dyn Host,
    own: &str,
    scheduler: Option<&str>,
    factors: &SystemSettings,
) -> AppliedSettings {
    let own = [own.to_owned()];
    let devices = queue::stack(host, &own, &own);
    let mut tuning = AppliedSettings::default();
    tuning.machine(journaled, host, "run", factors).unwrap();
    tuning.devices(journaled, host, &devices, (scheduler, factors)).unwrap();
    tuning
}

fn undo(journaled: &mut JournaledHost, tuning: AppliedSettings) {
    for (step, what) in tuning.steps.into_iter().rev() {
        journaled.undo(step, what).unwrap();
    }
}

fn facts(tuning: &AppliedSettings) -> String {
    tuning.facts.0.iter().map(|(name, value)| format!("{name} = {value}\n")).collect()
}

fn messages(tuning: &AppliedSettings) -> Vec<String> {
    tuning.warnings.iter().map(Warning::message).collect()
}

/// All files of the host with their contents.
fn files(temp: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(temp).unwrap() {
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

fn hardware(temp: &Path) -> BTreeMap<PathBuf, String> {
    ["sys", "proc"].iter().flat_map(|part| files(&temp.join(part))).collect()
}

/// Writes of a setting on the host above, the value read back, and its undo.
fn check(factor: SystemSetting, text: &str, expected: expect_test::Expect) {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), machine(temp.path()));
    let before = hardware(temp.path());
    host.done();
    let tuning = tune(&mut journaled, &*host, "dm-0", None, &factors(&[(factor, text)]));
    let text_shown = [host.done(), vec![facts(&tuning)], messages(&tuning)].concat().join("\n");
    expected.assert_eq(&text_shown);
    undo(&mut journaled, tuning);
    assert_eq!(hardware(temp.path()), before);
    // The same after a kill, by `clean`.
    let tuning = tune(&mut journaled, &*host, "dm-0", None, &factors(&[(factor, text)]));
    assert!(!tuning.steps.is_empty());
    journaled.forget();
    let CleanReport { failed: not_undone, undone, .. } =
        clean(&*host, &temp.path().join("state")).unwrap();
    assert_eq!((not_undone, undone.len()), (vec![], tuning.steps.len()));
    assert_eq!(hardware(temp.path()), before);
}

#[test]
fn read_ahead_is_set_on_every_device_of_the_stack() {
    check(
        SystemSetting::ReadAhead,
        "512KiB",
        expect![[r#"
        write /sys/class/block/dm-0/queue/read_ahead_kb = 512
        write /sys/class/block/sda/queue/read_ahead_kb = 512
        setting.read_ahead.dm-0 = 512 KiB
        setting.read_ahead.sda = 512 KiB
    "#]],
    );
}

#[test]
fn rounded_values_are_reported_and_undone() {
    check(
        SystemSetting::ReadAhead,
        "6KiB",
        expect![[r#"
            write /sys/class/block/dm-0/queue/read_ahead_kb = 6
            write /sys/class/block/sda/queue/read_ahead_kb = 6
            setting.read_ahead.dm-0 = 4 KiB
            setting.read_ahead.sda = 4 KiB

            read_ahead of dm-0 (KiB): set to `6`, reads back `4`
            read_ahead of sda (KiB): set to `6`, reads back `4`"#]],
    );
}

#[test]
fn devices_without_a_queue_are_skipped() {
    check(
        SystemSetting::NrRequests,
        "32",
        expect![[r#"
            write /sys/class/block/sda/queue/nr_requests = 32
            setting.nr_requests.dm-0 = not applicable: the device has no request queue
            setting.nr_requests.sda = 32
        "#]],
    );
}

#[test]
fn the_write_cache_of_a_shared_disk_is_unchanged() {
    check(
        SystemSetting::WriteCache,
        "write through",
        expect![[r#"
            write /sys/class/block/dm-0/queue/write_cache = write through
            setting.write_cache.dm-0 = write through
            setting.write_cache.sda = skipped: the device is shared, and others depend on its flushes
        "#]],
    );
}

#[test]
fn cpus_go_offline_from_the_highest_number() {
    check(
        SystemSetting::OnlineCpus,
        "2",
        expect![[r#"
            write /sys/devices/system/cpu/cpu3/online = 0
            write /sys/devices/system/cpu/cpu2/online = 0
            setting.online_cpus = 0,1
        "#]],
    );
}

#[test]
fn the_minimum_frequency_never_exceeds_the_maximum() {
    // Within the current limits: the maximum is lowered first.
    check(
        SystemSetting::CpuSpeed,
        "50%",
        expect![[r#"
        write /sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq = 1200000
        write /sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq = 1200000
        write /sys/devices/system/cpu/cpufreq/policy2/scaling_max_freq = 1200000
        write /sys/devices/system/cpu/cpufreq/policy2/scaling_min_freq = 1200000
        setting.cpu_speed.policy0 = 1200000 kHz
        setting.cpu_speed.policy2 = 1200000 kHz
    "#]],
    );
    // Below them: the minimum is lowered first. A value below the hardware minimum is reported.
    check(
        SystemSetting::CpuSpeed,
        "10%",
        expect![[r#"
            write /sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq = 400000
            write /sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq = 400000
            write /sys/devices/system/cpu/cpufreq/policy2/scaling_min_freq = 400000
            write /sys/devices/system/cpu/cpufreq/policy2/scaling_max_freq = 400000
            setting.cpu_speed.policy0 = 400000 kHz
            setting.cpu_speed.policy2 = 400000 kHz

            cpu_speed of policy0 (kHz): set to `240000`, reads back `400000, the nearest available`
            cpu_speed of policy2 (kHz): set to `240000`, reads back `400000, the nearest available`"#]],
    );
    // Above them.
    check(
        SystemSetting::CpuSpeed,
        "100%",
        expect![[r#"
        write /sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq = 2400000
        write /sys/devices/system/cpu/cpufreq/policy0/scaling_min_freq = 2400000
        write /sys/devices/system/cpu/cpufreq/policy2/scaling_max_freq = 2400000
        write /sys/devices/system/cpu/cpufreq/policy2/scaling_min_freq = 2400000
        setting.cpu_speed.policy0 = 2400000 kHz
        setting.cpu_speed.policy2 = 2400000 kHz
    "#]],
    );
}

#[test]
fn the_governor_of_every_policy_is_set() {
    check(
        SystemSetting::CpuGovernor,
        "performance",
        expect![[r#"
        write /sys/devices/system/cpu/cpufreq/policy0/scaling_governor = performance
        write /sys/devices/system/cpu/cpufreq/policy2/scaling_governor = performance
        setting.cpu_governor.policy0 = performance
        setting.cpu_governor.policy2 = performance
    "#]],
    );
}

#[test]
fn the_effective_dirty_limit_is_restored() {
    check(
        SystemSetting::DirtyThreshold,
        "256MiB",
        expect![[r#"
            write /proc/sys/vm/dirty_bytes = 268435456
            setting.dirty_threshold = 268435456 bytes
        "#]],
    );
    check(
        SystemSetting::DirtyThreshold,
        "5%",
        expect![[r#"
            write /proc/sys/vm/dirty_ratio = 5
            setting.dirty_threshold = 5%
        "#]],
    );
    check(
        SystemSetting::DirtyBackgroundThreshold,
        "3%",
        expect![[r#"
            write /proc/sys/vm/dirty_background_ratio = 3
            setting.dirty_background_threshold = 3%
        "#]],
    );
    check(
        SystemSetting::DirtyBackgroundThreshold,
        "1MiB",
        expect![[r#"
            write /proc/sys/vm/dirty_background_bytes = 1048576
            setting.dirty_background_threshold = 1048576 bytes
        "#]],
    );
}

#[test]
fn huge_pages_are_one_of_several_words() {
    check(
        SystemSetting::TransparentHugepage,
        "never",
        expect![[r#"
            write /sys/kernel/mm/transparent_hugepage/enabled = never
            setting.transparent_hugepage = never
        "#]],
    );
}

#[test]
fn each_unsupported_setting_is_reported() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), FakeHost::new(temp.path()));
    let all = factors(&[
        (SystemSetting::ReadAhead, "1MiB"),
        (SystemSetting::NrRequests, "32"),
        (SystemSetting::WriteCache, "write back"),
        (SystemSetting::CpuSpeed, "50%"),
        (SystemSetting::CpuGovernor, "performance"),
        (SystemSetting::OnlineCpus, "1"),
        (SystemSetting::DirtyThreshold, "1MiB"),
        (SystemSetting::DirtyBackgroundThreshold, "1%"),
        (SystemSetting::TransparentHugepage, "never"),
    ]);
    let tuning = tune(&mut journaled, &*host, "sda", Some("bfq"), &all);
    assert_eq!((tuning.steps.len(), host.done()), (0, vec![]));
    expect![[r#"
        online_cpus: set to `1`, reads back `the kernel does not list the online CPUs`
        cpu_governor: set to `performance`, reads back `no frequency to set (no cpufreq)`
        cpu_speed: set to `50%`, reads back `no frequency to set, and no CPU quota: /proc/self/cgroup: No such file or directory (os error 2)`
        dirty_threshold (bytes): set to `1048576`, reads back `No such file or directory (os error 2)`
        dirty_background_threshold (%): set to `1`, reads back `No such file or directory (os error 2)`
        transparent_hugepage: set to `never`, reads back `No such file or directory (os error 2)`
        scheduler of sda: set to `bfq`, reads back `No such file or directory (os error 2)`
        read_ahead of sda (KiB): set to `1024`, reads back `No such file or directory (os error 2)`
        nr_requests of sda: set to `32`, reads back `No such file or directory (os error 2)`
        write_cache of sda: set to `write back`, reads back `No such file or directory (os error 2)`"#]]
    .assert_eq(&messages(&tuning).join("\n"));
    let none = queue::scheduler(&*host, &[], "bfq");
    assert!(matches!(&none.warnings[..], [Warning::SettingNotApplied { found, .. }]
        if found == "no dedicated device"));
}

#[test]
fn too_many_cpus_are_reported() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), machine(temp.path()));
    host.write(Path::new("/sys/devices/system/cpu/cpu2/online"), "0").unwrap();
    let tuning =
        tune(&mut journaled, &*host, "dm-0", None, &factors(&[(SystemSetting::OnlineCpus, "8")]));
    assert_eq!(
        messages(&tuning),
        ["online_cpus: set to `8`, reads back `4: no other CPU can be switched`"]
    );
    assert_eq!(tuning.facts.get("setting.online_cpus"), Some("0,1,2,3"));
    undo(&mut journaled, tuning);
    assert_eq!(cpu::online_now(&*host), [0, 1, 3]);
}

#[test]
fn cpusets_of_version_1_are_restored() {
    let temp = tempfile::tempdir().unwrap();
    let set = "/sys/fs/cgroup/cpuset/box/cpuset.cpus";
    let host = machine(temp.path()).file(set, "2-3\n");
    let request = MountRequest {
        source: "cgroup".into(),
        target: "/sys/fs/cgroup/cpuset".into(),
        fstype: "cgroup".into(),
        options: "rw,cpuset".into(),
    };
    host.mount(&request).unwrap();
    let (host, mut journaled) = journaled(temp.path(), host);
    let tuning =
        tune(&mut journaled, &*host, "dm-0", None, &factors(&[(SystemSetting::OnlineCpus, "3")]));
    // As the kernel does.
    host.write(Path::new(set), "2").unwrap();
    undo(&mut journaled, tuning);
    assert_eq!(host.read(Path::new(set)).unwrap(), "2-3\n");
}

#[test]
fn the_nearest_available_frequency_is_used() {
    let temp = tempfile::tempdir().unwrap();
    let steps = "/sys/devices/system/cpu/cpufreq/policy0/scaling_available_frequencies";
    let host = machine(temp.path()).file(steps, "2400000 1500000 1000000 800000 \n");
    let intent = cpu::frequency_change(&host, &value(SystemSetting::CpuSpeed, "50%"));
    let texts: Vec<_> = intent.writes.iter().map(|write| write.text.as_str()).collect();
    assert_eq!(texts, ["1000000", "1000000", "1200000", "1200000"]);
    assert!(matches!(&intent.warnings[..], [Warning::SettingNotApplied { wanted, .. }]
        if wanted == "1200000"));
}

#[test]
fn cpu_lists_are_parsed() {
    assert_eq!(cpu::numbers("0-2,5\n"), [0, 1, 2, 5]);
    assert_eq!(cpu::numbers("\n"), [0; 0]);
}

#[test]
fn two_settings_are_undone_newest_first() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), machine(temp.path()));
    let before = hardware(temp.path());
    let both =
        factors(&[(SystemSetting::NrRequests, "32"), (SystemSetting::DirtyThreshold, "1MiB")]);
    let tuning = tune(&mut journaled, &*host, "dm-0", Some("bfq"), &both);
    assert_eq!(tuning.warnings, []);
    undo(&mut journaled, tuning);
    expect![[r#"
        write /proc/sys/vm/dirty_bytes = 1048576
        write /sys/class/block/sda/queue/scheduler = bfq
        write /sys/class/block/sda/queue/nr_requests = 32
        write /sys/class/block/sda/queue/nr_requests = 256
        write /sys/class/block/sda/queue/scheduler = mq-deadline
        write /sys/class/block/sda/queue/nr_requests = 64
        write /proc/sys/vm/dirty_ratio = 20"#]]
    .assert_eq(&host.done().join("\n"));
    assert_eq!(hardware(temp.path()), before);
}

#[test]
fn a_limit_lowered_by_the_machine_is_restored() {
    let temp = tempfile::tempdir().unwrap();
    let (host, mut journaled) = journaled(temp.path(), machine(temp.path()));
    let before = hardware(temp.path());
    let both = factors(&[(SystemSetting::CpuSpeed, "100%"), (SystemSetting::NrRequests, "32")]);
    let tuning = tune(&mut journaled, &*host, "dm-0", None, &both);
    let policy = "/sys/devices/system/cpu/cpufreq/policy0";
    // Thermal limits apply, and the driver offers fewer requests.
    for (file, text) in [
        (format!("{policy}/scaling_min_freq"), "1000000"),
        (format!("{policy}/scaling_max_freq"), "1000000"),
        ("/sys/class/block/sda/queue/nr_requests".into(), "31"),
    ] {
        host.write(Path::new(&file), text).unwrap();
    }
    undo(&mut journaled, tuning);
    assert_eq!(hardware(temp.path()), before);
}

#[test]
fn a_partition_has_the_queue_of_its_disk() {
    let temp = tempfile::tempdir().unwrap();
    let host = FakeHost::new(temp.path())
        .file("/sys/block/sda/queue/scheduler", "[none]")
        .file("/sys/block/sda/sda1/partition", "1")
        .file("/sys/class/block/.keep", "");
    let class = temp.path().join("sys/class/block");
    std::os::unix::fs::symlink("../../block/sda/sda1", class.join("sda1")).unwrap();
    std::os::unix::fs::symlink("../../block/sda", class.join("sda")).unwrap();
    assert!(queue(&host, "sda1").ends_with("sys/block/sda/queue"));
    assert_eq!(host.read(&queue(&host, "sda").join("scheduler")).unwrap(), "[none]");
    // The disk has other partitions, which depend on its flushes.
    let own = ["sda1".to_owned()];
    let devices = queue::stack(&host, &own, &own);
    assert_eq!(devices, [Device { name: "sda".into(), shared: true }]);
}

#[test]
fn discard_is_disabled_and_read_back() {
    let temp = tempfile::tempdir().unwrap();
    let fake = FakeHost::new(temp.path())
        .file("/sys/class/block/loop9/queue/discard_max_bytes", "4294966784\n");
    let (host, mut journaled) = journaled(temp.path(), fake);
    assert_eq!(disable_discard(&mut journaled, &*host, "loop9"), None);
    let values = disable_discard(&mut journaled, &*host, "loop10");
    assert!(matches!(values, Some(Warning::SettingNotApplied { .. })), "{values:?}");
}

/// A setting and one of its values. The host rejects some of the values.
fn setting() -> impl Strategy<Value = (SystemSetting, String)> {
    let of = |factor: SystemSetting, values: &[&str]| {
        let values: Vec<_> = values.iter().map(|text| (factor, (*text).to_owned())).collect();
        proptest::sample::select(values)
    };
    prop_oneof![
        of(SystemSetting::ReadAhead, &["0B", "6KiB", "1MiB"]),
        of(SystemSetting::NrRequests, &["4", "64", "65536"]),
        of(SystemSetting::WriteCache, &["write back", "write through"]),
        of(SystemSetting::CpuSpeed, &["1%", "40%", "100%"]),
        of(SystemSetting::CpuGovernor, &["performance", "powersave"]),
        of(SystemSetting::OnlineCpus, &["1", "3", "4", "16"]),
        of(SystemSetting::DirtyThreshold, &["1%", "20%", "0B", "1GiB"]),
        of(SystemSetting::DirtyBackgroundThreshold, &["1%", "8MiB", "1GiB"]),
        of(SystemSetting::TransparentHugepage, &["always", "madvise", "never"]),
    ]
}

proptest! {
    // Each case writes and syncs a journal.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Any settings, one or several, undone in reverse order or by `clean` after a kill, leave the
    /// files of the host unchanged, byte for byte.
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
        let temp = tempfile::tempdir().unwrap();
        let (host, mut journaled) = journaled(temp.path(), machine(temp.path()));
        let before = hardware(temp.path());
        let mut made = Vec::new();
        for (given, scheduler) in &rounds {
            let factors = given.iter().map(|(f, text)| (*f, value(*f, text))).collect();
            made.push(tune(&mut journaled, &*host, "dm-0", *scheduler, &factors));
        }
        if killed {
            journaled.forget();
            prop_assert_eq!(clean(&*host, &temp.path().join("state")).unwrap().failed, vec![]);
        } else {
            made.into_iter().rev().for_each(|tuning| undo(&mut journaled, tuning));
        }
        prop_assert_eq!(hardware(temp.path()), before);
    }
}
