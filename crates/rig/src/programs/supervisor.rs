//! Supervisor process: creates the namespaces, makes the directories reachable, and starts the init
//! process.

use std::{
    collections::BTreeSet,
    fs, io,
    os::{
        fd::{AsRawFd as _, OwnedFd},
        unix::{ffi::OsStrExt as _, fs::MetadataExt as _},
    },
    path::{Path, PathBuf},
    process::Command,
};

use rustix::{
    fs::{Mode, OFlags, open},
    mount::{
        MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_change, unmount,
    },
    process::{Pid, Resource, Rlimit, getegid, geteuid, set_child_subreaper, setrlimit, setsid},
    thread::{
        CapabilitySet, capabilities, configure_capability_in_ambient_set, set_capabilities,
        set_no_new_privs,
    },
};
use sys::namespaces::{Additional, activate_loopback, enter};

use super::{COMMAND, INIT, ProgramSpec, THIS_PROGRAM, UserId, init};
use crate::undo::PREFIX;

/// Runs the init process until it ends, and undoes the mounts. Without `namespaces`, this process
/// is the parent of orphaned descendants.
///
/// # Errors
/// Errors of the system if the programs cannot be held together.
pub(super) fn run(spec: &ProgramSpec, namespaces: bool) -> io::Result<()> {
    // Signals of the terminal are for fslab, which then ends the programs.
    setsid()?;
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    set_no_new_privs(true)?;
    let entered = namespaces.then(|| enter_namespaces(spec)).flatten();
    let Some(network_isolated) = entered else {
        set_child_subreaper(Some(Pid::INIT))?;
        return init::run(spec, false, false);
    };
    let mounts = make_reachable(spec);
    let text = serde_json::to_string(spec)?;
    let network = if network_isolated { "own" } else { "host" };
    let mut command = Command::new(THIS_PROGRAM);
    command.args([COMMAND, INIT, network, &text]);
    let ended = command.status();
    for path in mounts.iter().rev() {
        // A failure has no effect after the end of this process.
        let _ = unmount(path, UnmountFlags::DETACH);
    }
    // The mount of the filesystem under test in this namespace would keep the filesystem in use
    // for a moment after the end of this process. A directory that is not a mount point fails.
    for path in &spec.reachable {
        let _ = unmount(path.as_str(), UnmountFlags::DETACH);
    }
    ended.map(|_| ())
}

/// Enters new namespaces. `Some(true)` with a network namespace, `None` if the kernel allows none.
fn enter_namespaces(spec: &ProgramSpec) -> Option<bool> {
    let user = !geteuid().is_root();
    let (id, group) = (geteuid().as_raw(), getegid().as_raw());
    let additional = Additional { user, mounts: true, network: !spec.network };
    let without = Additional { network: false, ..additional };
    let network = enter(additional).is_ok() && !spec.network;
    if !network && !spec.network {
        enter(without).ok()?;
    }
    if user {
        // Without privileges, a group may be mapped only if setgroups is denied
        // (user_namespaces(7)).
        fs::write("/proc/self/setgroups", "deny").ok()?;
        fs::write("/proc/self/uid_map", format!("{id} {id} 1")).ok()?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1")).ok()?;
        keep_capability().ok()?;
    }
    // Mounts in this namespace must not appear in the namespace of the host.
    mount_change("/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC).ok()?;
    release_others(spec);
    if network {
        // Programs that need the loopback device fail with their own message.
        let _ = activate_loopback();
    }
    Some(network)
}

/// Unmounts the filesystems of other runs in this namespace. If the mounts of the host are private,
/// an unmount there has no effect here, and the other run could not format its device.
fn release_others(spec: &ProgramSpec) {
    let of_a_run =
        |place: &Path| place.iter().any(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
    let ours = |place: &Path| spec.reachable.iter().any(|path| Path::new(path).starts_with(place));
    let places = crate::mount::table().unwrap_or_default().into_iter().map(|entry| entry.target);
    for place in places.filter(|place| of_a_run(place) && !ours(place)) {
        // A mount that a less privileged namespace cannot remove fails.
        let _ = unmount(&place, UnmountFlags::DETACH);
    }
}

/// Lets the init process keep the capability to mount /proc. Without it, a process that is not root
/// loses its capabilities when it executes a program (capabilities(7)).
fn keep_capability() -> io::Result<()> {
    let mut sets = capabilities(None)?;
    sets.inheritable |= CapabilitySet::SYS_ADMIN;
    set_capabilities(None, sets)?;
    Ok(configure_capability_in_ambient_set(CapabilitySet::SYS_ADMIN, true)?)
}

/// Makes the directories of a specification reachable for its user. The first parent that the user
/// cannot search is covered by an empty filesystem in memory, in which the directory is mounted at
/// the same path. Returns the mount points. An error is not returned, because the programs then
/// report a more specific error.
fn make_reachable(spec: &ProgramSpec) -> Vec<PathBuf> {
    let Some(user) = spec.user else { return Vec::new() };
    let wanted: Vec<(&Path, PathBuf, OwnedFd)> = spec
        .reachable
        .iter()
        .filter_map(|path| {
            let path = Path::new(path);
            let cover = obstacle(path, user)?;
            Some((path, cover, open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?))
        })
        .collect();
    let covers: BTreeSet<&PathBuf> = wanted.iter().map(|(_, cover, _)| cover).collect();
    let mut mounts = Vec::new();
    for cover in covers {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        if mount("tmpfs", cover, "tmpfs", flags, c"mode=0755,size=1m").is_ok() {
            mounts.push(cover.clone());
        }
    }
    for (path, _, directory) in &wanted {
        let from = format!("/proc/self/fd/{}", directory.as_raw_fd());
        if fs::create_dir_all(path).is_ok() && mount_bind(from.as_str(), *path).is_ok() {
            mounts.push(path.to_path_buf());
        }
    }
    mounts
}

/// First parent of a path that the user cannot search (path_resolution(7)).
fn obstacle(path: &Path, user: UserId) -> Option<PathBuf> {
    let mut parents: Vec<&Path> = path.ancestors().skip(1).collect();
    parents.reverse();
    let closed = |parent: &&Path| {
        fs::metadata(parent).is_ok_and(|meta| {
            let shift = match (meta.uid() == user.user, meta.gid() == user.group) {
                (true, _) => 6,
                (false, true) => 3,
                (false, false) => 0,
            };
            (meta.mode() >> shift) & 1 == 0
        })
    };
    parents.into_iter().find(closed).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_first_closed_parent_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        let mode = |path: &str, mode| {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(mode)).unwrap();
        };
        // No user or group of this test has these IDs.
        let user = UserId { user: 64_321, group: 64_321 };
        mode("", 0o711);
        mode("a", 0o755);
        mode("a/b", 0o755);
        assert_eq!(obstacle(&root.join("a/b/c"), user), None);
        mode("a", 0o700);
        assert_eq!(obstacle(&root.join("a/b/c"), user), Some(root.join("a")));
        let owner = fs::metadata(root.join("a")).unwrap();
        let owner = UserId { user: owner.uid(), group: owner.gid() };
        assert_eq!(obstacle(&root.join("a/b/c"), owner), None);
    }
}
