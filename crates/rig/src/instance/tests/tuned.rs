//! System settings, on a simulated host and on a real one.

use std::process::Command;

use model::{SystemSetting, SystemSettings};

use super::*;

fn settings(given: &[(SystemSetting, &str)]) -> SystemSettings {
    let value =
        |(factor, text): &(SystemSetting, &str)| (*factor, factor.spec().kind.read(text).unwrap());
    given.iter().map(value).collect()
}

#[test]
fn settings_are_applied_before_mkfs_and_undone_after_fsck() {
    let temp = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(temp.path()).unwrap();
    let (host, rig) = simulated(&root, "tuned", |fake| {
        fake.file("/sys/class/block/loop0/queue/read_ahead_kb", "128\n")
            .file("/sys/class/block/loop0/queue/discard_max_bytes", "0\n")
            .file("/proc/sys/vm/dirty_ratio", "20\n")
            .file("/proc/sys/vm/dirty_bytes", "0\n")
            .program("e2fsck", [])
    });
    let catalog = Catalog::embedded();
    let level = FilesystemLevel::plain("ext4");
    let both =
        settings(&[(SystemSetting::ReadAhead, "1MiB"), (SystemSetting::DirtyThreshold, "64MiB")]);
    let wanted = InstanceSpec {
        settings: &both,
        ..InstanceSpec::plain(catalog.get("ext4").unwrap(), &level)
    };
    host.done();
    let mounted = rig.instance(&wanted).unwrap();
    // The simulated image uses no space; there is no other warning.
    assert_eq!(mounted.warnings().len(), 1, "{:?}", mounted.warnings());
    assert_eq!(mounted.environment().get("setting.read_ahead.loop0"), Some("1024 KiB"));
    assert_eq!(mounted.environment().get("setting.dirty_threshold"), Some("67108864 bytes"));
    assert_eq!(mounted.expect_workers(8), None);
    mounted.finish(true).unwrap();
    let done = host.done();
    let order = ["dirty_bytes", "read_ahead_kb = 1024", "mkfs.ext4", "umount", "e2fsck"];
    let undone = ["read_ahead_kb = 128", "dirty_ratio = 20"];
    let places: Vec<_> = order
        .iter()
        .chain(&undone)
        .map(|what| done.iter().position(|line| line.contains(what)).unwrap())
        .collect();
    assert!(places.is_sorted(), "{done:#?}");
    assert_eq!(rig.close(), []);
}

/// An image in memory is not on a disk, so only the loop device is set.
fn in_memory(temp: &Path, run_id: &str) -> Option<(tempfile::TempDir, Rig)> {
    let memory = tempfile::Builder::new().prefix("fslab-test-").tempdir_in("/dev/shm").ok()?;
    let mut storage = image(Bytes::mib(64), 1);
    if let StorageKind::Image { directory, .. } = &mut storage.kind {
        *directory = Some(memory.path().display().to_string());
    }
    Some((memory, open(temp, run_id, &storage)?))
}

#[test]
fn loop_device_settings_are_restored() {
    let temp = place();
    let Some((_memory, rig)) = in_memory(temp.path(), "tuned-loop") else { return };
    let name = name_of(&rig.base.backing.devices()[0]);
    let queue = Path::new("/sys/class/block").join(&name).join("queue");
    let files = ["scheduler", "read_ahead_kb", "nr_requests", "write_cache", "wbt_lat_usec"];
    let read = || files.map(|file| fs::read_to_string(queue.join(file)).unwrap_or_default());
    let before = read();
    let Some(other) = before[0].split_whitespace().find(|word| !word.starts_with('[')) else {
        return skipped("needs a kernel with two schedulers");
    };
    let wished = settings(&[
        (SystemSetting::ReadAhead, "768KiB"),
        (SystemSetting::NrRequests, "48"),
        (SystemSetting::WriteCache, "write through"),
    ]);
    let catalog = Catalog::embedded();
    let level = FilesystemLevel::plain("ext4");
    let plain = InstanceSpec::plain(catalog.get("ext4").unwrap(), &level);
    let mounted =
        rig.instance(&InstanceSpec { scheduler: Some(other), settings: &wished, ..plain }).unwrap();
    let read_back = |warning: &Warning| matches!(warning, Warning::SettingNotApplied { .. });
    assert!(!mounted.warnings().iter().any(read_back), "{:?}", mounted.warnings());
    let now = read();
    assert!(now[0].contains(&format!("[{other}]")), "{now:?}");
    assert_eq!(now[1..4].concat(), "768\n48\nwrite through\n");
    let fact = |name: &str| {
        mounted
            .environment()
            .get(&format!("setting.{name}.{}", name_of(&rig.base.backing.devices()[0])))
            .map(str::to_owned)
    };
    assert_eq!(fact("read_ahead").as_deref(), Some("768 KiB"));
    assert_eq!(fact("scheduler").as_deref(), Some(other));
    mounted.finish(true).unwrap();
    assert_eq!(read(), before);
    assert_eq!(rig.close(), []);
    assert_nothing_left(temp.path());
}

#[test]
fn memory_settings_are_restored() {
    let temp = place();
    let Some((_memory, rig)) = in_memory(temp.path(), "tuned-memory") else { return };
    let files = [
        "/proc/sys/vm/dirty_ratio",
        "/proc/sys/vm/dirty_bytes",
        "/proc/sys/vm/dirty_background_ratio",
        "/proc/sys/vm/dirty_background_bytes",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ];
    let read = || files.map(|file| fs::read_to_string(file).unwrap_or_default());
    let before = read();
    let word = if before[4].contains("[madvise]") { "never" } else { "madvise" };
    if before[4].is_empty() {
        return skipped("needs transparent huge pages");
    }
    let wished = settings(&[
        (SystemSetting::DirtyThreshold, "512MiB"),
        (SystemSetting::DirtyBackgroundThreshold, "7%"),
        (SystemSetting::TransparentHugepage, word),
    ]);
    let catalog = Catalog::embedded();
    let level = FilesystemLevel::plain("ext4");
    let plain = InstanceSpec::plain(catalog.get("ext4").unwrap(), &level);
    let mounted = rig.instance(&InstanceSpec { settings: &wished, ..plain }).unwrap();
    let now = read();
    assert_eq!(now[..4].concat(), "0\n536870912\n7\n0\n");
    assert!(now[4].contains(&format!("[{word}]")), "{now:?}");
    mounted.finish(true).unwrap();
    assert_eq!(read(), before);
    assert_eq!(rig.close(), []);
}

/// Set in the process that the test below starts.
const CHILD: &str = "FSLAB_TEST_QUOTA";

/// In a separate process, because the quota would affect all tests of this one.
#[test]
fn a_quota_limits_a_cpu_bound_process() {
    if std::env::var_os(CHILD).is_some() {
        return compute_under_a_quota();
    }
    if !RealHost.is_root() {
        return skipped("needs root");
    }
    let name = "instance::tests::tuned::a_quota_limits_a_cpu_bound_process";
    let mut child = Command::new(std::env::current_exe().unwrap());
    let message = child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap();
    let text =
        [message.stdout, message.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(message.status.success(), "{}", text.concat());
    if let Some(why) = text[1].lines().find_map(|line| line.strip_prefix("skipped: ")) {
        skipped(why);
    }
}

fn compute_under_a_quota() {
    let temp = place();
    let Some((_memory, rig)) = in_memory(temp.path(), "tuned-quota") else { return };
    let catalog = Catalog::embedded();
    let level = FilesystemLevel::plain("ext4");
    let wished = settings(&[(SystemSetting::CpuSpeed, "10%")]);
    let plain = InstanceSpec::plain(catalog.get("ext4").unwrap(), &level);
    let mounted = rig.instance(&InstanceSpec { settings: &wished, ..plain }).unwrap();
    if mounted.environment().get("setting.cpu_speed.quota").is_none() {
        return skipped("needs a machine without cpufreq, with the quota of the cpu controller");
    }
    let stands_in = |warning: &Warning| matches!(warning, Warning::SettingEmulated { .. });
    assert!(mounted.warnings().iter().any(stands_in), "{:?}", mounted.warnings());
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    assert!(own.contains("fslab-tuned-quota"), "{own}");
    let stat = || {
        let done = mounted.take_actions();
        let made =
            done.iter().find_map(|action| action.description.strip_prefix("mkdir /sys/fs/cgroup"));
        made.map(|rest| format!("/sys/fs/cgroup{}/cpu.stat", rest.split(' ').next().unwrap()))
    };
    let stat = stat().unwrap();
    let value = |key: &str| -> u64 {
        let text = fs::read_to_string(&stat).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().parse().unwrap()
    };
    let used = || RealHost.usage().unwrap().process.0;
    let (periods, throttled, before) = (value("nr_periods "), value("nr_throttled "), used());
    let mut turns = 0_u64;
    while used() - before < 60_000_000 {
        turns = std::hint::black_box(turns + 1);
    }
    let (periods, throttled) = (value("nr_periods ") - periods, value("nr_throttled ") - throttled);
    let used = used() - before;
    // The kernel counts periods of 10 ms, regardless of other load. The process may use a tenth of
    // each period. It may also exceed the quota until the next timer tick, and the excess is
    // deducted from later periods.
    assert!(throttled > 0, "{throttled} of {periods}");
    assert!(used <= periods * 1_000_000 + 20_000_000, "{used} ns in {periods} periods");
    mounted.finish(true).unwrap();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    assert!(!own.contains("fslab-tuned-quota"), "{own}");
    assert_eq!(rig.close(), []);
}
