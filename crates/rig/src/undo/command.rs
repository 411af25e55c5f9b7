//! Undo of mounts by commands.

use std::{io, path::Path};

use super::{PAUSE, PREFIX, TRIES};
use crate::{host::Host, mount::MountEntry};

/// Maximum number of unmounts. Without it, a program that mounts again would keep the undo busy.
const MOUNTS_MAX: u32 = 1000;

/// Unmounts what a command mounted, newest first: the filesystem on the mount point, and mounts in
/// other places that belong to the run. If the filesystem has been unmounted and another one was
/// mounted on the mount point since, nothing is unmounted.
pub(super) fn unmount(
    host: &dyn Host,
    target: &Path,
    fstype: &str,
    device: Option<&str>,
    umount: &[String],
) -> Result<(), String> {
    let named = |mount: &MountEntry| {
        mount.target == target
            && mount.fstype == fstype
            && device.is_none_or(|device| device == mount.device)
    };
    for _ in 0..=MOUNTS_MAX {
        let mounts = host.mounts().map_err(|error| error.to_string())?;
        let mut ours = mounts.iter().filter(|mount| is_of_run(mount, target));
        let Some(newest) = ours.next_back() else { return Ok(()) };
        // After the check of the mount, only the named filesystem is on the mount point.
        if device.is_some() && newest.target == target && !named(newest) {
            return match ours.any(named) {
                true => Err(format!(
                    "{} was mounted there by another process; unmount it",
                    newest.fstype
                )),
                false => Ok(()),
            };
        }
        let command = Some(umount).filter(|argv| !argv.is_empty() && named(newest));
        remove(host, newest, command)?;
    }
    Err(format!(
        "{} or below it is mounted repeatedly; find the program that mounts it",
        target.display()
    ))
}

/// Unmounts one mount: by the command, and if this fails, by umount(2).
fn remove(host: &dyn Host, mount: &MountEntry, command: Option<&[String]>) -> Result<(), String> {
    let target = &mount.target;
    let has_gone = |host: &dyn Host| {
        let mounts = host.mounts().map_err(|error| error.to_string())?;
        Ok::<bool, String>(!mounts.contains(mount))
    };
    // The device of a frozen filesystem remains in use after umount(2). A server of FUSE may not
    // answer.
    if !mount.fstype.starts_with("fuse") {
        let _ = host.thaw(target);
    }
    let mut tries = 0;
    loop {
        let mut failure = String::new();
        if let Some(argv) = command {
            failure = match host.run(argv) {
                Ok(output) if output.success() => "it succeeded".to_owned(),
                Ok(output) => output.verdict(),
                Err(error) => error.to_string(),
            };
            failure = format!("`{}`: {failure}; ", argv.join(" "));
            if has_gone(host)? {
                return Ok(());
            }
        }
        match host.unmount(target) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && tries < TRIES => {
                tries += 1;
                host.sleep(PAUSE);
            }
            Err(_) if has_gone(host)? => return Ok(()),
            Err(error) => {
                let list =
                    format!("`fuser -vm {}` lists the processes that use it", target.display());
                return Err(format!("{failure}{error}; {list}; stop them, then run `fslab clean`"));
            }
        }
    }
}

/// True if a mount was made by a command of the run whose mount point is `target`: it is mounted on
/// this directory or below it, or its root, source, or options contain a path with the generated
/// name of this directory.
fn is_of_run(mount: &MountEntry, target: &Path) -> bool {
    if mount.target.starts_with(target) {
        return true;
    }
    let Some(name) = target.file_name().and_then(|name| name.to_str()) else { return false };
    let parts = [mount.target.as_os_str(), mount.root.as_os_str()];
    let paths = parts.into_iter().filter_map(|path| path.to_str());
    name.starts_with(PREFIX)
        && paths
            .chain([mount.source.as_str(), mount.super_options.as_str()])
            .any(|text| contains_name(text, name))
}

/// True if the text contains the name as a component of a path. The name of another run may begin
/// with this name.
fn contains_name(text: &str, name: &str) -> bool {
    text.match_indices(name).any(|(at, _)| {
        let end = text[at + name.len()..].chars().next();
        let begins = at == 0 || text[..at].ends_with('/');
        begins && end.is_none_or(|next| matches!(next, '/' | ',' | ':'))
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use model::Nanos;

    use super::*;
    use crate::{
        host::{FakeHost, Output},
        mount::MountRequest,
    };

    const TARGET: &str = "/var/lib/fslab/fslab-a";

    fn entry(target: &str, source: &str) -> MountEntry {
        MountEntry {
            id: 1,
            device: "0:1".into(),
            root: "/".into(),
            target: target.into(),
            options: "rw".into(),
            fstype: "fuse".into(),
            source: source.into(),
            super_options: "rw".into(),
        }
    }

    fn argv(words: &[&str]) -> Vec<String> {
        words.iter().map(ToString::to_string).collect()
    }

    /// Host with a command that mounts and one that unmounts, and a filesystem at [`TARGET`].
    fn mounted(root: &Path) -> FakeHost {
        let host = FakeHost::new(root).mounter("mount.a", Some("a")).mounter("umount.a", None);
        let host = host.program("broken", [Output { status: Some(1), ..Output::default() }]);
        host.run(&argv(&["mount.a", "source", TARGET])).unwrap();
        host.done();
        host
    }

    /// Undoes the mount of [`mounted`] by this command.
    fn undo(host: &FakeHost, device: Option<&str>, umount: &[&str]) -> Result<(), String> {
        unmount(host, Path::new(TARGET), "a", device, &argv(umount))
    }

    fn targets(host: &FakeHost) -> Vec<PathBuf> {
        host.mounts().unwrap().into_iter().map(|mount| mount.target).collect()
    }

    const UMOUNT: [&str; 2] = ["umount.a", TARGET];

    #[test]
    fn mounts_of_the_run_are_unmounted_newest_first() {
        let temp = tempfile::tempdir().unwrap();
        let host = mounted(temp.path());
        host.run(&argv(&["mount.a", "source", "/other"])).unwrap();
        host.run(&argv(&["mount.a", &format!("{TARGET}/x"), "/mnt/lower"])).unwrap();
        host.run(&argv(&["mount.a", "source", &format!("{TARGET}/below")])).unwrap();
        host.done();
        assert_eq!(undo(&host, Some("0:40"), &UMOUNT), Ok(()));
        // Only the named filesystem is unmounted by the command.
        let umounts = [format!("umount {TARGET}/below"), "umount /mnt/lower".into()];
        assert_eq!(host.done(), [&umounts[..], &[UMOUNT.join(" ")]].concat());
        assert_eq!(targets(&host), [Path::new("/other")]);
    }

    #[test]
    fn a_filesystem_that_is_mounted_repeatedly_is_reported() {
        let temp = tempfile::tempdir().unwrap();
        let host = mounted(temp.path());
        let why = undo(&host, None, &["mount.a", "source", TARGET]).unwrap_err();
        assert!(why.starts_with(&format!("{TARGET} or below it is mounted repeatedly")), "{why}");
    }

    #[test]
    fn a_filesystem_of_another_process_stays_mounted() {
        let temp = tempfile::tempdir().unwrap();
        let host = mounted(temp.path());
        let other = |fstype: &str| MountRequest {
            source: "/dev/loop0".into(),
            target: TARGET.into(),
            fstype: fstype.into(),
            options: String::new(),
        };
        host.mount(&other("ext4")).unwrap();
        let error = undo(&host, Some("0:40"), &UMOUNT).unwrap_err();
        assert!(error.contains("ext4 was mounted there by another process"), "{error}");
        assert_eq!(targets(&host).len(), 2);
        // The filesystem of the run is gone; another device, or another type on the same device.
        for (fstype, device) in [("a", "0:40"), ("ext4", "7:0")] {
            let host = FakeHost::new(temp.path()).mounter("umount.a", None);
            host.mount(&other(fstype)).unwrap();
            assert_eq!(undo(&host, Some(device), &UMOUNT), Ok(()), "{fstype}");
            assert_eq!(targets(&host).len(), 1, "{fstype} on {device}");
        }
        // If the run was killed before it recorded the device, the mount point is unmounted.
        let host = mounted(temp.path());
        host.mount(&other("ext4")).unwrap();
        host.freeze(Path::new(TARGET));
        host.done();
        assert_eq!(undo(&host, None, &UMOUNT), Ok(()));
        let thaw = format!("thaw {TARGET}");
        assert_eq!(host.done(), [thaw, format!("umount {TARGET}"), UMOUNT.join(" ")]);
    }

    #[test]
    fn umount_follows_a_command_that_does_not_unmount() {
        let temp = tempfile::tempdir().unwrap();
        for (command, verdict) in
            [("broken", "exit 1"), ("missing", "not found"), ("idle", "it succeeded")]
        {
            let host = mounted(temp.path()).program("idle", []);
            assert_eq!(undo(&host, Some("0:40"), &[command]), Ok(()));
            assert_eq!(host.done().last().unwrap(), &format!("umount {TARGET}"));
            let host = mounted(temp.path()).program("idle", []);
            host.keep_busy(Path::new(TARGET), TRIES + 1);
            let error = undo(&host, Some("0:40"), &[command]).unwrap_err();
            assert!(error.starts_with(&format!("`{command}`: ")), "{error}");
            assert!(error.contains(verdict) && error.contains("fuser -vm"), "{error}");
        }
    }

    #[test]
    fn a_busy_mount_is_unmounted_after_a_limited_number_of_tries() {
        let temp = tempfile::tempdir().unwrap();
        for (busy, undone) in [(3, true), (TRIES, true), (TRIES + 1, false)] {
            let host = mounted(temp.path());
            host.keep_busy(Path::new(TARGET), busy);
            let start = host.now();
            assert_eq!(undo(&host, Some("0:40"), &[]).is_ok(), undone, "{busy}");
            let pauses = u64::from(busy.min(TRIES));
            assert_eq!(host.now() - start, Nanos(PAUSE.0 * pauses), "{busy}");
        }
    }

    #[test]
    fn mounts_of_a_run_are_found_by_its_generated_name() {
        let target = Path::new(TARGET);
        let of = |mount: MountEntry| is_of_run(&mount, target);
        let from = |source: &str| entry("/m", source);
        assert!(of(entry(TARGET, "any")) && of(entry(&format!("{TARGET}/below"), "any")));
        assert!(of(from("/srv/fslab-a/data")) && of(from("fslab-a")));
        let options = "rw,lowerdir=/srv/fslab-a/data/lower,upperdir=/u".to_owned();
        assert!(of(MountEntry { super_options: options, ..from("overlay") }));
        assert!(of(MountEntry { root: TARGET.into(), ..from("/dev/vda") }));
        for other in ["/srv/fslab-a-1/data", "/srv/fslab-ab", "/srv/xfslab-a", "server:/srv"] {
            assert!(!of(from(other)), "{other}");
        }
        assert!(!is_of_run(&from("/x/mnt/y"), Path::new("/mnt")), "the name was not generated");
    }
}
