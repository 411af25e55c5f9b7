//! Limiting the memory of this very process, page cache included, by a control group of its own.
//!
//! Version 1 (Documentation/admin-guide/cgroup-v1/memory.rst): a child of the group the process is
//! in. Version 2 (cgroup-v2.rst): a group below the nearest ancestor that hands the memory
//! controller down, since a group with processes of its own cannot; at the root it is switched on
//! if it is not. Limits of the ancestors stay in force in both. Swap is denied to the group where
//! the kernel accounts it, so that the limit is one of memory.

use std::{
    io,
    path::{Path, PathBuf},
};

use model::Bytes;

use crate::{
    bench::Bench,
    host::Host,
    mount::{MountEntry, unescape},
    undo::PREFIX,
};

/// A group that this process was moved into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    path: PathBuf,
    version: Version,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

impl Version {
    /// Its name in facts.
    const fn name(self) -> &'static str {
        match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        }
    }

    /// The file of the limit.
    const fn limit(self) -> &'static str {
        match self {
            Self::V1 => "memory.limit_in_bytes",
            Self::V2 => "memory.max",
        }
    }
}

/// From here on a limit of version 1 is none: it reads as the largest number of whole pages that
/// fits into 63 bits (`PAGE_COUNTER_MAX`, `include/linux/page_counter.h`).
const UNLIMITED: u64 = 1 << 62;

/// The memory that this process may use, read back from its control group, or from the one it was
/// put into: the least of the group's own limit and those above it. With the version of the groups;
/// `None` where there is no limit.
pub(crate) fn limit(host: &dyn Host, group: Option<&Group>) -> Option<(Bytes, &'static str)> {
    let (version, path) = match group {
        Some(group) => (group.version, group.path.clone()),
        None => home(host).ok()?,
    };
    // The root of version 2, and whatever lies above the hierarchy, has no such file. `max` is no
    // number.
    let limits = path.ancestors().map_while(|group| {
        let text = host.read(&group.join(version.limit()));
        text.ok().or_else(|| host.entry(&group.join("cgroup.procs")).ok().map(|_| String::new()))
    });
    let least = limits.filter_map(|text| text.trim().parse().ok()).min()?;
    (least < UNLIMITED).then(|| (Bytes(least), version.name()))
}

/// Which versions of control groups the machine has mounted: `v1`, `v2`, `v1 and v2`, or `none`.
pub(crate) fn versions(mounts: &[MountEntry]) -> &'static str {
    let has = |fstype: &str| mounts.iter().any(|mount| mount.fstype == fstype);
    match (has("cgroup"), has("cgroup2")) {
        (true, true) => "v1 and v2",
        (true, false) => "v1",
        (false, true) => "v2",
        (false, false) => "none",
    }
}

impl Group {
    /// Makes a group with this limit and moves the process into it.
    ///
    /// # Errors
    /// Why it cannot be limited, in words.
    pub(crate) fn enter(
        bench: &mut Bench,
        host: &dyn Host,
        run_id: &str,
        limit: Bytes,
    ) -> Result<Self, String> {
        if !host.is_root() {
            return Err("not root".into());
        }
        let (version, home) = home(host)?;
        let parent = match version {
            Version::V1 => home.clone(),
            Version::V2 => parent(bench, host, &home)?,
        };
        let group = Self { path: parent.join(format!("{PREFIX}{run_id}")), version };
        bench
            .group(&group.path, &home, |host| group.set(host, limit))
            .map_err(|error| format!("{}: {error}", group.path.display()))?;
        Ok(group)
    }

    /// Changes the limit.
    ///
    /// # Errors
    /// Why not, in words.
    pub(crate) fn change(&self, bench: &mut Bench, limit: Bytes) -> Result<(), String> {
        let what = format!("limit {} to {limit}", self.path.display());
        bench.act(what, |host| self.set(host, limit)).0.map_err(|error| error.to_string())
    }

    fn set(&self, host: &dyn Host, limit: Bytes) -> io::Result<()> {
        let bytes = limit.0.to_string();
        let (swap, most) = match self.version {
            // Memory and swap together are limited to the same amount.
            Version::V1 => ("memory.memsw.limit_in_bytes", bytes.as_str()),
            Version::V2 => ("memory.swap.max", "0"),
        };
        let memory = self.path.join(self.version.limit());
        let swap = self.path.join(swap);
        if host.entry(&swap).is_err() {
            return host.write(&memory, &bytes);
        }
        // Version 1 wants memory <= memory and swap at every moment: lower the one first, raise the
        // other.
        if host.write(&memory, &bytes).is_ok() {
            return host.write(&swap, most);
        }
        host.write(&swap, most)?;
        host.write(&memory, &bytes)
    }
}

/// The group of this process that the memory controller counts, as a directory.
fn home(host: &dyn Host) -> Result<(Version, PathBuf), String> {
    let mounts = host.mounts().map_err(|error| error.to_string())?;
    let text = host.read(Path::new("/proc/self/cgroup")).map_err(|error| error.to_string())?;
    // Lines of cgroups(7): hierarchy-ID:controllers:path.
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.splitn(3, ':').collect()).collect();
    let path_of = |wanted: &dyn Fn(&str) -> bool| {
        lines.iter().find(|line| line.len() == 3 && wanted(line[1])).map(|line| line[2])
    };
    let listed = |options: &str| options.split(',').any(|option| option == "memory");
    if let Some(path) = path_of(&listed) {
        let mount = mounts.iter().find(|m| m.fstype == "cgroup" && listed(&m.super_options));
        let mount = mount.ok_or("the memory controller of version 1 is not mounted")?;
        return Ok((Version::V1, below(mount, path)));
    }
    let path = path_of(&|controllers: &str| controllers.is_empty());
    let mount = mounts.iter().find(|mount| mount.fstype == "cgroup2");
    match (path, mount) {
        (Some(path), Some(mount)) => Ok((Version::V2, below(mount, path))),
        _ => Err("the kernel has no memory controller, or it is not mounted".into()),
    }
}

fn below(mount: &MountEntry, path: &str) -> PathBuf {
    let path = unescape(path);
    let inside = Path::new(&path).strip_prefix(&mount.root).unwrap_or(Path::new(""));
    // Joining an empty path would end in a slash.
    if inside.as_os_str().is_empty() { mount.target.clone() } else { mount.target.join(inside) }
}

/// The nearest group above `home` whose children have the memory controller.
fn parent(bench: &mut Bench, host: &dyn Host, home: &Path) -> Result<PathBuf, String> {
    let lists = |group: &Path, file: &str| {
        let text = host.read(&group.join(file)).unwrap_or_default();
        text.split_whitespace().any(|controller| controller == "memory")
    };
    // The directory above the hierarchy has no such file; that ends the search.
    let groups = || home.ancestors().take_while(|g| host.entry(&g.join("cgroup.procs")).is_ok());
    if let Some(group) = groups().find(|group| lists(group, "cgroup.subtree_control")) {
        return Ok(group.to_owned());
    }
    let root = groups().last().ok_or("control groups of version 2 are not where mountinfo says")?;
    if !lists(root, "cgroup.controllers") {
        return Err("the memory controller is not in version 2 here, nor in version 1".into());
    }
    bench
        .order(&root.join("cgroup.subtree_control"), "+memory", "-memory")
        .map_err(|error| format!("the memory controller cannot be switched on: {error}"))?;
    Ok(root.to_owned())
}

#[cfg(test)]
mod tests;
