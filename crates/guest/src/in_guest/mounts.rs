//! Mounts of kernel filesystems at their usual paths.

use std::{
    fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
};

use rustix::mount::{MountFlags, mount};

use crate::GuestError;

/// Kernel filesystem.
struct KernelFilesystem {
    kind: &'static str,
    at: &'static str,
    options: &'static str,
    /// True if the guest cannot run without this filesystem. Other filesystems are skipped if the
    /// kernel lacks them.
    required: bool,
}

const fn mount_at(
    kind: &'static str,
    at: &'static str,
    options: &'static str,
    required: bool,
) -> KernelFilesystem {
    KernelFilesystem { kind, at, options, required }
}

/// Filesystems required to load modules and to detect devices.
const EARLY: &[KernelFilesystem] = &[
    mount_at("proc", "/proc", "", true),
    mount_at("sysfs", "/sys", "", true),
    mount_at("devtmpfs", "/dev", "mode=0755", true),
    mount_at("tmpfs", "/run", "mode=0755", true),
    mount_at("tmpfs", "/tmp", "mode=1777", true),
    mount_at("tmpfs", "/dev/shm", "mode=1777", true),
    mount_at("devpts", "/dev/pts", "mode=0620", false),
    mount_at("mqueue", "/dev/mqueue", "", false),
];

/// Filesystems that may be modules themselves and that programs use.
const LATE: &[KernelFilesystem] = &[
    mount_at("configfs", "/sys/kernel/config", "", false),
    mount_at("debugfs", "/sys/kernel/debug", "", false),
    mount_at("tracefs", "/sys/kernel/tracing", "", false),
    mount_at("cgroup2", "/sys/fs/cgroup", "", false),
];

/// Mounts the filesystems required to load modules. Returns the optional filesystems that the
/// kernel supports but failed to mount.
///
/// # Errors
/// [`GuestError::Io`] if a required filesystem cannot be mounted.
pub(super) fn mount_early() -> Result<Vec<String>, GuestError> {
    // On most kernels, the root is a tmpfs to which every user can write (`shmem_init_fs_context`,
    // mm/shmem.c). As root, fslab does not run programs below such a directory.
    fs::set_permissions("/", fs::Permissions::from_mode(0o755))
        .map_err(GuestError::io("cannot set the permissions of /"))?;
    mount_all(EARLY)
}

/// Mounts the other filesystems after modules were loaded.
///
/// # Errors
/// Like [`mount_early`].
pub(super) fn mount_late() -> Result<Vec<String>, GuestError> {
    mount_all(LATE)
}

fn mount_all(filesystems: &[KernelFilesystem]) -> Result<Vec<String>, GuestError> {
    let mut failed = Vec::new();
    for filesystem in filesystems {
        // A program that needs a missing filesystem reports an error.
        if !filesystem.required && !is_supported(filesystem.kind) {
            continue;
        }
        match mount_one(filesystem) {
            Ok(()) => {}
            Err(error) if filesystem.required => {
                return Err(GuestError::io(format!(
                    "cannot mount {} at {}",
                    filesystem.kind, filesystem.at
                ))(error));
            }
            Err(error) => failed.push(format!("{} ({error})", filesystem.kind)),
        }
    }
    Ok(failed)
}

/// True if the kernel currently supports a filesystem, built in or as a loaded module
/// (proc_filesystems(5)).
fn is_supported(kind: &str) -> bool {
    let all = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    all.lines().any(|line| line.split('\t').next_back() == Some(kind))
}

fn mount_one(filesystem: &KernelFilesystem) -> io::Result<()> {
    let at = Path::new(filesystem.at);
    // The kernel creates mount points under /sys if it supports the filesystem.
    if !at.exists() {
        fs::create_dir_all(at)?;
    }
    let options = std::ffi::CString::new(filesystem.options).map_err(io::Error::other)?;
    mount(filesystem.kind, at, filesystem.kind, MountFlags::NOSUID, options.as_c_str())?;
    check_mounted(at)
}

/// Checks that a directory is on another device than its parent. If a mount had no effect, files
/// must not be written to the filesystem below the mount point.
pub(super) fn check_mounted(at: &Path) -> io::Result<()> {
    let above = at.parent().unwrap_or(at);
    if fs::metadata(at)?.dev() != fs::metadata(above)?.dev() {
        return Ok(());
    }
    Err(io::Error::other("it is not a mount point"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_directory_is_not_a_mount_point() {
        let directory = tempfile::tempdir().unwrap();
        let inner = directory.path().join("inner");
        fs::create_dir(&inner).unwrap();
        assert!(check_mounted(&inner).is_err());
        assert!(check_mounted(Path::new("/proc")).is_ok());
        assert!(check_mounted(&directory.path().join("none")).is_err());
    }

    #[test]
    fn the_kernel_supports_proc_but_no_prefix_of_it() {
        assert!(is_supported("proc") && !is_supported("pro") && !is_supported("nodev"));
    }

    #[test]
    fn parents_are_mounted_before_their_children() {
        let all: Vec<_> = EARLY.iter().chain(LATE).map(|filesystem| filesystem.at).collect();
        for (at, own) in all.iter().enumerate() {
            let inner = |other: &&str| other.starts_with(&format!("{own}/"));
            assert!(!all[..at].iter().any(inner), "{own}");
        }
    }
}
