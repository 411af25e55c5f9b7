//! Control groups: the group in which a controller accounts this process, and the group below which
//! a new group can be created.
//!
//! Version 1 (Documentation/admin-guide/cgroup-v1/cgroups.rst) has one hierarchy per controller or
//! per set of controllers. Version 2 (cgroup-v2.rst) has one hierarchy for all controllers. If both
//! versions are mounted, each controller belongs to only one of them. This module sets no limits.

use std::path::{Path, PathBuf};

use crate::{
    host::Host,
    journaled_host::JournaledHost,
    mount::{MountEntry, unescape},
};

/// Version of the hierarchy of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    V1,
    V2,
}

impl Version {
    /// Name in environment facts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }
}

/// Directory of the group in which a controller accounts this process.
///
/// # Errors
/// The reason as text.
pub(crate) fn home(host: &dyn Host, controller: &str) -> Result<(Version, PathBuf), String> {
    let mounts = host.mounts().map_err(|error| error.to_string())?;
    let text = host.read(Path::new("/proc/self/cgroup"));
    let text = text.map_err(|error| format!("/proc/self/cgroup: {error}"))?;
    // Format of the lines (cgroups(7)): hierarchy-ID:controllers:path.
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.splitn(3, ':').collect()).collect();
    let path_of = |wanted: &dyn Fn(&str) -> bool| {
        lines.iter().find(|line| line.len() == 3 && wanted(line[1])).map(|line| line[2])
    };
    let listed = |options: &str| options.split(',').any(|option| option == controller);
    if let Some(path) = path_of(&listed) {
        let mount = mounts.iter().find(|m| m.fstype == "cgroup" && listed(&m.super_options));
        let mount =
            mount.ok_or_else(|| format!("the {controller} controller of version 1 is not mounted"));
        return Ok((Version::V1, below(mount?, path)));
    }
    let path = path_of(&|controllers: &str| controllers.is_empty());
    let mount = mounts.iter().find(|mount| mount.fstype == "cgroup2");
    match (path, mount) {
        (Some(path), Some(mount)) => Ok((Version::V2, below(mount, path))),
        _ => Err(format!("the kernel has no {controller} controller, or it is not mounted")),
    }
}

fn below(mount: &MountEntry, path: &str) -> PathBuf {
    let path = unescape(path);
    let inside = Path::new(&path).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    // Joining an empty path would append a slash.
    if inside.as_os_str().is_empty() { mount.target.clone() } else { mount.target.join(inside) }
}

/// Nearest group of version 2 that enables the controller for its children: `home` or one of its
/// ancestors. If there is none, the controller is enabled in the root group. Other groups cannot
/// enable the controller if they contain processes.
///
/// # Errors
/// The reason as text.
pub(crate) fn parent(
    journaled: &mut JournaledHost,
    host: &dyn Host,
    home: &Path,
    controller: &str,
) -> Result<PathBuf, String> {
    let lists = |group: &Path, file: &str| {
        let text = host.read(&group.join(file)).unwrap_or_default();
        text.split_whitespace().any(|listed| listed == controller)
    };
    // The search ends above the mount point, where there is no `cgroup.procs`.
    let groups = || home.ancestors().take_while(|g| host.entry(&g.join("cgroup.procs")).is_ok());
    if let Some(group) = groups().find(|group| lists(group, "cgroup.subtree_control")) {
        return Ok(group.to_owned());
    }
    let root = groups()
        .last()
        .ok_or("control groups of version 2 are not at the mount point in mountinfo")?;
    if !lists(root, "cgroup.controllers") {
        return Err(format!(
            "the {controller} controller is available neither in version 2 nor in version 1"
        ));
    }
    let (on, off) = (format!("+{controller}"), format!("-{controller}"));
    journaled
        .write_command(&root.join("cgroup.subtree_control"), &on, &off)
        .map_err(|error| format!("the {controller} controller cannot be enabled: {error}"))?;
    Ok(root.to_owned())
}
