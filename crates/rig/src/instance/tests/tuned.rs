//! Settings of the machine, on paper and on a real one.

use std::process::Command;

use model::{Factor, Factors};

use super::*;

fn factors(given: &[(Factor, &str)]) -> Factors {
    let value = |(factor, text): &(Factor, &str)| (*factor, factor.spec().kind.read(text).unwrap());
    given.iter().map(value).collect()
}

#[test]
fn settings_are_made_before_mkfs_and_undone_after_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    let (host, rig) = paper(&root, "tuned", |fake| {
        fake.file("/sys/class/block/loop0/queue/read_ahead_kb", "128\n")
            .file("/sys/class/block/loop0/queue/discard_max_bytes", "0\n")
            .file("/proc/sys/vm/dirty_ratio", "20\n")
            .file("/proc/sys/vm/dirty_bytes", "0\n")
            .program("e2fsck", [])
    });
    let catalogue = Catalogue::embedded();
    let level = FilesystemLevel::plain("ext4");
    let both = factors(&[(Factor::ReadAhead, "1MiB"), (Factor::Dirty, "64MiB")]);
    let wanted = Wanted { factors: &both, ..Wanted::plain(catalogue.get("ext4").unwrap(), &level) };
    host.done();
    let mounted = rig.instance(&wanted).unwrap();
    // The image of paper takes no space; nothing else is to be said.
    assert_eq!(mounted.warnings().len(), 1, "{:?}", mounted.warnings());
    assert_eq!(mounted.environment().get("factor.read_ahead.loop0"), Some("1024 KiB"));
    assert_eq!(mounted.environment().get("factor.dirty"), Some("67108864 bytes"));
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

/// An image in memory lies on no disk, so nothing but the loop device is set.
fn in_memory(folder: &Path, run_id: &str) -> Option<(tempfile::TempDir, Rig)> {
    let memory = tempfile::Builder::new().prefix("fslab-test-").tempdir_in("/dev/shm").ok()?;
    let mut storage = image(Bytes::mib(64), 1);
    if let Place::Image { directory, .. } = &mut storage.place {
        *directory = Some(memory.path().display().to_string());
    }
    Some((memory, open(folder, run_id, &storage)?))
}

#[test]
fn a_loop_device_is_set_and_put_back() {
    let folder = place();
    let Some((_memory, rig)) = in_memory(folder.path(), "tuned-loop") else { return };
    let name = name_of(&rig.backing.devices()[0]);
    let queue = Path::new("/sys/class/block").join(&name).join("queue");
    let files = ["scheduler", "read_ahead_kb", "nr_requests", "write_cache", "wbt_lat_usec"];
    let read = || files.map(|file| fs::read_to_string(queue.join(file)).unwrap_or_default());
    let before = read();
    let Some(other) = before[0].split_whitespace().find(|word| !word.starts_with('[')) else {
        return skipped("needs a kernel with two schedulers");
    };
    let wished = factors(&[
        (Factor::ReadAhead, "768KiB"),
        (Factor::QueueDepth, "48"),
        (Factor::WriteCache, "write through"),
    ]);
    let catalogue = Catalogue::embedded();
    let level = FilesystemLevel::plain("ext4");
    let plain = Wanted::plain(catalogue.get("ext4").unwrap(), &level);
    let mounted =
        rig.instance(&Wanted { scheduler: Some(other), factors: &wished, ..plain }).unwrap();
    let read_back = |warning: &Warning| matches!(warning, Warning::ReadBack { .. });
    assert!(!mounted.warnings().iter().any(read_back), "{:?}", mounted.warnings());
    let now = read();
    assert!(now[0].contains(&format!("[{other}]")), "{now:?}");
    assert_eq!(now[1..4].concat(), "768\n48\nwrite through\n");
    let fact = |name: &str| {
        mounted
            .environment()
            .get(&format!("factor.{name}.{}", name_of(&rig.backing.devices()[0])))
            .map(str::to_owned)
    };
    assert_eq!(fact("read_ahead").as_deref(), Some("768 KiB"));
    assert_eq!(fact("scheduler").as_deref(), Some(other));
    mounted.finish(true).unwrap();
    assert_eq!(read(), before);
    assert_eq!(rig.close(), []);
    assert_nothing_left(folder.path());
}

#[test]
fn memory_settings_of_this_machine_are_put_back() {
    let folder = place();
    let Some((_memory, rig)) = in_memory(folder.path(), "tuned-memory") else { return };
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
    let wished = factors(&[
        (Factor::Dirty, "512MiB"),
        (Factor::DirtyBackground, "7%"),
        (Factor::HugePages, word),
    ]);
    let catalogue = Catalogue::embedded();
    let level = FilesystemLevel::plain("ext4");
    let plain = Wanted::plain(catalogue.get("ext4").unwrap(), &level);
    let mounted = rig.instance(&Wanted { factors: &wished, ..plain }).unwrap();
    let now = read();
    assert_eq!(now[..4].concat(), "0\n536870912\n7\n0\n");
    assert!(now[4].contains(&format!("[{word}]")), "{now:?}");
    mounted.finish(true).unwrap();
    assert_eq!(read(), before);
    assert_eq!(rig.close(), []);
}

/// Set in the process that the test below starts.
const CHILD: &str = "FSLAB_TEST_QUOTA";

/// In a process of its own: the quota would hold for all tests of this one.
#[test]
fn a_quota_holds_back_who_does_nothing_but_compute() {
    if std::env::var_os(CHILD).is_some() {
        return compute_under_a_quota();
    }
    if !RealHost.is_root() {
        return skipped("needs root");
    }
    let name = "instance::tests::tuned::a_quota_holds_back_who_does_nothing_but_compute";
    let mut child = Command::new(std::env::current_exe().unwrap());
    let said = child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap();
    let text = [said.stdout, said.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(said.status.success(), "{}", text.concat());
    if let Some(why) = text[1].lines().find_map(|line| line.strip_prefix("skipped: ")) {
        skipped(why);
    }
}

fn compute_under_a_quota() {
    let folder = place();
    let Some((_memory, rig)) = in_memory(folder.path(), "tuned-quota") else { return };
    let catalogue = Catalogue::embedded();
    let level = FilesystemLevel::plain("ext4");
    let wished = factors(&[(Factor::CpuSpeed, "10%")]);
    let plain = Wanted::plain(catalogue.get("ext4").unwrap(), &level);
    let mounted = rig.instance(&Wanted { factors: &wished, ..plain }).unwrap();
    if mounted.environment().get("factor.cpu_speed.quota").is_none() {
        return skipped("needs a machine without cpufreq, with the quota of the cpu controller");
    }
    let stands_in = |warning: &Warning| matches!(warning, Warning::StandIn { .. });
    assert!(mounted.warnings().iter().any(stands_in), "{:?}", mounted.warnings());
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    assert!(own.contains("fslab-tuned-quota"), "{own}");
    let stat = || {
        let done = mounted.take_actions();
        let made = done.iter().find_map(|action| action.what.strip_prefix("mkdir /sys/fs/cgroup"));
        made.map(|rest| format!("/sys/fs/cgroup{}/cpu.stat", rest.split(' ').next().unwrap()))
    };
    let stat = stat().unwrap();
    let told = |key: &str| -> u64 {
        let text = fs::read_to_string(&stat).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().parse().unwrap()
    };
    let used = || RealHost.usage().unwrap().process.0;
    let (periods, throttled, before) = (told("nr_periods "), told("nr_throttled "), used());
    let mut turns = 0_u64;
    while used() - before < 60_000_000 {
        turns = std::hint::black_box(turns + 1);
    }
    let (periods, throttled) = (told("nr_periods ") - periods, told("nr_throttled ") - throttled);
    let used = used() - before;
    // Counted by the kernel in periods of 10 ms, however busy the machine was otherwise: a tenth of
    // each, and what it ran over until a tick of the timer noticed, which later periods pay.
    assert!(throttled > 0, "{throttled} of {periods}");
    assert!(used <= periods * 1_000_000 + 20_000_000, "{used} ns in {periods} periods");
    mounted.finish(true).unwrap();
    let own = fs::read_to_string("/proc/self/cgroup").unwrap();
    assert!(!own.contains("fslab-tuned-quota"), "{own}");
    assert_eq!(rig.close(), []);
}
