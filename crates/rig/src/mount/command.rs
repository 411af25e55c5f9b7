//! Mounts by commands: checks of the mount table before and after the command.
//!
//! A command may mount another filesystem than the plan names, mount it in another place, or mount
//! nothing. The checks here compare two mount tables; they change nothing.

use std::path::PathBuf;

use super::{MountEntry, MountRequest};

/// Mount of a filesystem by a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountCommand {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Program that unmounts the filesystem, and its arguments; empty for umount(2).
    pub umount: Vec<String>,
    /// Mount point, an empty directory of fslab whose name is unique.
    pub target: PathBuf,
    /// Filesystem type that mountinfo must show.
    pub fstype: String,
    /// True if the kernel may use one superblock for several mounts, as for mounts of one file
    /// server.
    pub shares_superblock: bool,
}

/// Mount of a filesystem by mount(2) or by a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mounting {
    /// The kernel mounts the filesystem.
    Call(MountRequest),
    /// A program mounts the filesystem.
    Command(MountCommand),
}

impl MountCommand {
    /// Checks the mount table before the command.
    ///
    /// # Errors
    /// The reason why the command must not be run.
    pub(crate) fn check_before(&self, mounts: &[MountEntry]) -> Result<(), String> {
        match mounts.iter().rfind(|mount| mount.target == self.target) {
            Some(mount) => {
                Err(format!("{} is already mounted on {}", mount.fstype, self.target.display()))
            }
            None => Ok(()),
        }
    }

    /// Finds the mount that the command made, and checks three conditions: its filesystem type is
    /// the named one, it is the only mount on the mount point, and its filesystem was not mounted
    /// before (as that of a bind mount is). `None` if nothing is mounted on the mount point.
    ///
    /// # Errors
    /// The difference from the filesystem that the plan names.
    pub(crate) fn check_after<'a>(
        &self,
        before: &[MountEntry],
        after: &'a [MountEntry],
    ) -> Result<Option<&'a MountEntry>, String> {
        let target = self.target.display();
        let mut on_target = after.iter().filter(|mount| mount.target == self.target);
        let Some(mount) = on_target.next() else { return Ok(None) };
        if let Some(other) = on_target.next() {
            return Err(format!(
                "it mounted both {} and {} on {target}",
                mount.fstype, other.fstype
            ));
        }
        if mount.fstype != self.fstype {
            return Err(format!(
                "{target} has filesystem type {}, but the plan names {}",
                mount.fstype, self.fstype
            ));
        }
        // The kernel reuses the device numbers of filesystems that were unmounted during the
        // command.
        let original = before.iter().find(|it| it.device == mount.device && after.contains(it));
        match original.filter(|_| !self.shares_superblock) {
            Some(known) => Err(format!(
                "{target} is a directory of the {} that is mounted on {}, not a separate \
                 filesystem",
                known.fstype,
                known.target.display()
            )),
            None => Ok(Some(mount)),
        }
    }

    /// Reason if nothing is mounted on the mount point, with the mounts that were made in other
    /// places during the command.
    pub(crate) fn nothing_mounted(&self, before: &[MountEntry], after: &[MountEntry]) -> String {
        let target = self.target.display();
        let is_new = |mount: &&MountEntry| !before.contains(mount);
        let others: Vec<String> = after
            .iter()
            .filter(is_new)
            .map(|mount| format!("{} on {}", mount.fstype, mount.target.display()))
            .collect();
        match others.as_slice() {
            [] => format!("it succeeded, but nothing is mounted on {target}"),
            all => format!(
                "nothing is mounted on {target}; mounts made during the command, possibly by other \
                 processes: {}",
                all.join(", ")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: &str = "/var/lib/fslab/fslab-a";

    fn entry(fstype: &str, device: &str, target: &str) -> MountEntry {
        MountEntry {
            id: 1,
            device: device.into(),
            root: "/".into(),
            target: target.into(),
            options: "rw".into(),
            fstype: fstype.into(),
            source: "any".into(),
            super_options: "rw".into(),
        }
    }

    fn command() -> MountCommand {
        MountCommand {
            argv: vec!["mounter".into(), TARGET.into()],
            umount: Vec::new(),
            target: TARGET.into(),
            fstype: "overlay".into(),
            shares_superblock: false,
        }
    }

    fn why(after: &[MountEntry]) -> String {
        let before = [entry("ext4", "8:1", "/")];
        let all: Vec<_> = before.iter().chain(after).cloned().collect();
        match command().check_after(&before, &all) {
            Ok(Some(mount)) => format!("{} {}", mount.fstype, mount.device),
            Ok(None) => command().nothing_mounted(&before, &all),
            Err(why) => why,
        }
    }

    #[test]
    fn only_the_named_filesystem_is_accepted() {
        assert_eq!(why(&[entry("overlay", "0:40", TARGET)]), "overlay 0:40");
        assert_eq!(why(&[]), format!("it succeeded, but nothing is mounted on {TARGET}"));
        assert_eq!(
            why(&[entry("overlay", "0:40", "/mnt")]),
            format!(
                "nothing is mounted on {TARGET}; mounts made during the command, possibly by \
                 other processes: overlay on /mnt"
            )
        );
        assert_eq!(
            why(&[entry("tmpfs", "0:40", TARGET)]),
            format!("{TARGET} has filesystem type tmpfs, but the plan names overlay")
        );
        let two = [entry("overlay", "0:40", TARGET), entry("tmpfs", "0:41", TARGET)];
        assert_eq!(why(&two), format!("it mounted both overlay and tmpfs on {TARGET}"));
    }

    #[test]
    fn a_bind_mount_is_not_a_separate_filesystem() {
        let bind = entry("overlay", "8:1", TARGET);
        assert_eq!(
            why(std::slice::from_ref(&bind)),
            format!(
                "{TARGET} is a directory of the ext4 that is mounted on /, not a separate \
                 filesystem"
            )
        );
        let before = [entry("overlay", "8:1", "/")];
        let after = [before[0].clone(), bind];
        assert!(command().check_after(&before, &after).is_err());
        let server = MountCommand { shares_superblock: true, ..command() };
        assert!(server.check_after(&before, &after).unwrap().is_some());
        let reused = command().check_after(&before, &after[1..]).unwrap();
        assert!(reused.is_some(), "the other filesystem was unmounted during the command");
        assert!(command().check_before(&before).is_ok());
        let used = command().check_before(&[entry("tmpfs", "0:9", TARGET)]).unwrap_err();
        assert_eq!(used, format!("tmpfs is already mounted on {TARGET}"));
    }
}
