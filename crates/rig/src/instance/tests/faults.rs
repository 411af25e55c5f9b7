//! A complete trial on a simulated host on which each call fails once, in each of four ways.

use model::Layer;

use super::*;
use crate::host::FailingHost;

const QUEUE: &str = "/sys/class/block/loop0/queue";
/// `EIO`, `ENOSPC`, `EINTR`, and `ENOMEM`.
const ERRORS: [i32; 4] = [5, 28, 4, 12];

/// Attempts to clean if another process seems to hold the journal.
const RETRIES: u32 = 10_000;

/// In memory if possible, because each line of a journal is synced.
fn temp() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

fn machine(root: &Path) -> Arc<FailingHost> {
    let fake = FakeHost::new(root)
        .file("/proc/misc", "236 device-mapper\n")
        .file("/proc/sys/vm/drop_caches", "0")
        .file("/dev/loop0", "")
        .file("/dev/loop1", "")
        .file("/dev/shm/.keep", "")
        .file("/srv/.keep", "")
        .mounter("bindfs", Some("fuse.bindfs"))
        .mounter("fusermount3", None)
        .file(&format!("{QUEUE}/scheduler"), "[none] bfq\n")
        .file(&format!("{QUEUE}/discard_max_bytes"), "4096\n")
        .magic("ext4", 0xef53);
    let programs = ["mkfs.ext4", "e2fsck", "dmsetup", "mdadm"];
    let fake = programs.into_iter().fold(fake, |fake, name| fake.program(name, []));
    Arc::new(FailingHost::new(fake))
}

/// Opens a rig and creates an instance with a setting and layers; each array has two images.
fn begin(
    host: &Arc<FailingHost>,
    root: &Path,
    layers: &[Layer],
) -> Result<(Rig, MountedFilesystem), RigError> {
    let shared = Arc::clone(host) as Arc<dyn Host>;
    // On another filesystem than that of the test.
    let options = RigOptions { store_file: "/proc/run.fslab".into(), ..options(root, "faults") };
    let images = u32::try_from(layers.len()).unwrap();
    let mut rig = Rig::open(shared, &image(Bytes::mib(64), images), options)?;
    rig.external_directory()?;
    let catalog = Catalog::embedded();
    let ext4 = catalog.get("ext4").unwrap();
    let level = FilesystemLevel { layers: layers.to_vec(), ..FilesystemLevel::plain("ext4") };
    let wanted = InstanceSpec { scheduler: Some("bfq"), ..InstanceSpec::plain(ext4, &level) };
    let mounted = rig.instance(&wanted)?;
    Ok((rig, mounted))
}

fn crypt() -> Layer {
    Layer::Crypt { cipher: "aes-xts-plain64".into(), key_size: 128 }
}

/// Creates, mounts, cools, unmounts, checks, and releases.
fn trial(host: &Arc<FailingHost>, root: &Path) -> Result<(), RigError> {
    let (rig, mut mounted) = begin(host, root, &[crypt()])?;
    mounted.drop_caches()?;
    mounted.space_usage()?;
    mounted.finish(true)?;
    match rig.close().into_iter().next() {
        Some(not_undone) => Err(RigError::Undo(not_undone)),
        None => Ok(()),
    }
}

/// Without faults, `clean` undoes the rest, and nothing is left of the trial.
fn assert_clean(host: &FailingHost, root: &Path, what: &str) {
    host.fail(None, 0);
    // A program started by another test holds the lock of the journal until its exec.
    let mut reports = (0..RETRIES).map(|_| clean(host, &root.join("state")).unwrap());
    let report = reports.find(|report| report.live.is_empty()).expect(what);
    assert_eq!((report.failed, report.skipped), (vec![], vec![]), "{what}");
    let list = |path: &str| host.list(Path::new(path)).unwrap_or_default();
    assert_eq!(list("/state"), ["journal"], "{what}");
    assert_eq!(list("/state/journal"), [""; 0], "{what}");
    assert_eq!(list("/images"), [""; 0], "{what}");
    assert_eq!(list("/dev/shm"), [".keep"], "{what}");
    assert_eq!(list("/srv"), [".keep"], "{what}");
    assert_eq!(list("/dev/mapper"), [""; 0], "{what}");
    assert_eq!(list("/dev/md"), [""; 0], "{what}");
    assert_eq!(host.mounts().unwrap(), [], "{what}");
    let scheduler = host.read(Path::new(&format!("{QUEUE}/scheduler"))).unwrap();
    assert_eq!(scheduler.trim(), "[none] bfq", "{what}");
}

/// Number of calls of an operation that does not fail.
fn calls(operation: impl Fn(&Arc<FailingHost>, &Path)) -> u64 {
    let temp = temp();
    let root = fs::canonicalize(temp.path()).unwrap();
    let host = machine(&root);
    operation(&host, &root);
    host.fail(None, 0)
}

#[test]
fn a_trial_survives_a_fault_of_each_call_and_leaves_nothing() {
    let count = calls(|host, root| trial(host, root).unwrap());
    assert!(count > 50, "{count}");
    let mut failed = 0;
    for call in 0..count {
        for errno in ERRORS {
            let temp = temp();
            let root = fs::canonicalize(temp.path()).unwrap();
            let host = machine(&root);
            host.fail(Some(call), errno);
            let ended = trial(&host, &root);
            failed += u32::from(ended.is_err());
            assert_clean(&host, &root, &format!("call {call}, errno {errno}: {ended:?}"));
        }
    }
    assert!(failed > 50, "{failed}");
}

/// Cleans up after a killed run, with a fault of each call in turn. Nothing remains.
fn assert_clean_survives_faults(killed: impl Fn(&Arc<FailingHost>, &Path)) {
    let count = calls(|host, root| {
        killed(host, root);
        host.fail(None, 0);
        clean(&**host, &root.join("state")).unwrap();
    });
    for call in 0..count {
        for errno in ERRORS {
            let temp = temp();
            let root = fs::canonicalize(temp.path()).unwrap();
            let host = machine(&root);
            killed(&host, &root);
            host.fail(Some(call), errno);
            let report = clean(&*host, &root.join("state"));
            assert_clean(&host, &root, &format!("call {call}, errno {errno}: {report:?}"));
        }
    }
}

#[test]
fn a_clean_survives_a_fault_of_each_call_and_the_next_one_leaves_nothing() {
    let killed = |host: &Arc<FailingHost>, root: &Path| {
        let array = Layer::Md { level: "raid1".into(), chunk: None };
        let (rig, _mounted) = begin(host, root, &[array, crypt()]).unwrap();
        rig.base.shared.journaled().forget();
    };
    assert_clean_survives_faults(killed);
}

/// Opens a rig and creates an instance that a command mounts: in its data directory, or on a
/// directory with other files.
fn begin_command(
    host: &Arc<FailingHost>,
    root: &Path,
    source: &str,
) -> Result<(Rig, MountedFilesystem), RigError> {
    let shared = Arc::clone(host) as Arc<dyn Host>;
    let options = RigOptions { store_file: "/proc/run.fslab".into(), ..options(root, "faults") };
    let rig = Rig::open(shared, &directory(Path::new("/srv")), options)?;
    let catalog = Catalog::embedded();
    let mut level = FilesystemLevel::plain("bindfs");
    level.commands.mount = ["bindfs", source, "{mount}"].map(str::to_owned).into();
    let bindfs = catalog.get("bindfs").unwrap();
    let mounted = rig.instance(&InstanceSpec::plain(bindfs, &level))?;
    Ok((rig, mounted))
}

fn command_trial(host: &Arc<FailingHost>, root: &Path, source: &str) -> Result<(), RigError> {
    let (rig, mut mounted) = begin_command(host, root, source)?;
    mounted.drop_caches()?;
    mounted.finish(true)?;
    match rig.close().into_iter().next() {
        Some(not_undone) => Err(RigError::Undo(not_undone)),
        None => Ok(()),
    }
}

#[test]
fn a_mount_by_a_command_survives_a_fault_of_each_call_and_leaves_nothing() {
    for source in ["{directory}", "/server"] {
        let count = calls(|host, root| command_trial(host, root, source).unwrap());
        assert!(count > 20, "{count}");
        let mut failed = 0;
        for call in 0..count {
            for errno in ERRORS {
                let temp = temp();
                let root = fs::canonicalize(temp.path()).unwrap();
                let host = machine(&root);
                host.fail(Some(call), errno);
                let ended = command_trial(&host, &root, source);
                failed += u32::from(ended.is_err());
                assert_clean(&host, &root, &format!("call {call}, errno {errno}: {ended:?}"));
            }
        }
        assert!(failed > 20, "{failed}");
    }
}

#[test]
fn a_clean_after_a_mount_by_a_command_survives_a_fault_of_each_call() {
    let killed = |host: &Arc<FailingHost>, root: &Path| {
        let (rig, _mounted) = begin_command(host, root, "/server").unwrap();
        rig.base.shared.journaled().forget();
    };
    assert_clean_survives_faults(killed);
}
