//! Undo of mounts by commands.

use std::{io, path::Path};

use super::{PAUSE, PREFIX, TRIES};
use crate::{host::Host, mount::MountEntry};

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
    loop {
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
}

/// Unmounts one mount: by the command, and if this fails, by umount(2).
fn remove(host: &dyn Host, mount: &MountEntry, command: Option<&[String]>) -> Result<(), String> {
    let target = &mount.target;
    let has_gone = |host: &dyn Host| {
        let mounts = host.mounts().map_err(|error| error.to_string())?;
        Ok::<bool, String>(!mounts.contains(mount))
    };
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
    use super::*;

    const TARGET: &str = "/var/lib/fslab/fslab-a";

    fn entry(target: &str, source: &str) -> MountEntry {
        MountEntry {
            device: "0:1".into(),
            root: "/".into(),
            target: target.into(),
            options: "rw".into(),
            fstype: "fuse".into(),
            source: source.into(),
            super_options: "rw".into(),
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
