//! The kernel's own filesystems, where programs look for them.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use rustix::mount::{MountFlags, mount};

use crate::GuestError;

/// A filesystem of the kernel's.
struct Own {
    kind: &'static str,
    at: &'static str,
    options: &'static str,
    /// Whether nothing can go on without it. The others a kernel may lack.
    needed: bool,
}

const fn own(kind: &'static str, at: &'static str, options: &'static str, needed: bool) -> Own {
    Own { kind, at, options, needed }
}

/// What is needed to load modules and to see devices.
const FIRST: &[Own] = &[
    own("proc", "/proc", "", true),
    own("sysfs", "/sys", "", true),
    own("devtmpfs", "/dev", "mode=0755", true),
    own("tmpfs", "/run", "mode=0755", true),
    own("tmpfs", "/tmp", "mode=1777", true),
    own("tmpfs", "/dev/shm", "mode=1777", true),
    own("devpts", "/dev/pts", "mode=0620", false),
    own("mqueue", "/dev/mqueue", "", false),
];

/// What may be a module itself, and what programs look into.
const LAST: &[Own] = &[
    own("configfs", "/sys/kernel/config", "", false),
    own("debugfs", "/sys/kernel/debug", "", false),
    own("tracefs", "/sys/kernel/tracing", "", false),
    own("cgroup2", "/sys/fs/cgroup", "", false),
];

/// Mounts what is needed before modules can be loaded. Answers what the kernel has, but does not
/// mount.
///
/// # Errors
/// [`GuestError::Io`] when one is missing without which nothing works.
pub(super) fn first() -> Result<Vec<String>, GuestError> {
    // The root is a tmpfs on most kernels, which anyone may write to (`shmem_init_fs_context`,
    // mm/shmem.c). Root runs no program below such a directory.
    fs::set_permissions("/", fs::Permissions::from_mode(0o755))
        .map_err(GuestError::io("setting the permissions of /"))?;
    all(FIRST)
}

/// Mounts the others, once modules are loaded.
///
/// # Errors
/// As [`first`].
pub(super) fn last() -> Result<Vec<String>, GuestError> {
    all(LAST)
}

fn all(those: &[Own]) -> Result<Vec<String>, GuestError> {
    let mut lacking = Vec::new();
    for own in those {
        // No loss, unless somebody needs it, and then it is missed by name.
        if !own.needed && !known(own.kind) {
            continue;
        }
        match put(own) {
            Ok(()) => {}
            Err(error) if own.needed => {
                return Err(GuestError::io(format!("cannot mount {} at {}", own.kind, own.at))(
                    error,
                ));
            }
            Err(error) => lacking.push(format!("{} ({error})", own.kind)),
        }
    }
    Ok(lacking)
}

/// Whether the kernel has a filesystem now, built in or loaded (proc_filesystems(5)).
fn known(kind: &str) -> bool {
    let all = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    all.lines().any(|line| line.split('\t').next_back() == Some(kind))
}

fn put(own: &Own) -> io::Result<()> {
    let at = Path::new(own.at);
    // Mount points under /sys are the kernel's affair and are there if the filesystem is.
    if !at.exists() {
        fs::create_dir_all(at)?;
    }
    let options = std::ffi::CString::new(own.options).map_err(io::Error::other)?;
    mount(own.kind, at, own.kind, MountFlags::NOSUID, options.as_c_str())?;
    check_mounted(at)
}

/// Looks whether a directory is on another device than the one it is in. A mount that did not come
/// about must not let work run on the filesystem below it.
pub(super) fn check_mounted(at: &Path) -> io::Result<()> {
    let above = at.parent().unwrap_or(at);
    if fs::metadata(at)?.dev() != fs::metadata(above)?.dev() {
        return Ok(());
    }
    Err(io::Error::other("nothing is mounted there"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_directory_is_nothing_mounted() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("inner");
        fs::create_dir(&inner).unwrap();
        assert!(check_mounted(&inner).is_err());
        assert!(check_mounted(Path::new("/proc")).is_ok());
        assert!(check_mounted(&directory.path().join("none")).is_err());
    }

    #[test]
    fn the_kernel_knows_proc_and_not_what_nobody_wrote() {
        assert!(known("proc") && !known("pro") && !known("nodev"));
    }

    #[test]
    fn what_others_are_mounted_under_comes_before_them() {
        let all: Vec<_> = FIRST.iter().chain(LAST).map(|own| own.at).collect();
        for (at, own) in all.iter().enumerate() {
            let inner = |other: &&str| other.starts_with(&format!("{own}/"));
            assert!(!all[..at].iter().any(inner), "{own}");
        }
    }
}
