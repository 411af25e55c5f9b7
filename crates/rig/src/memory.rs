//! Limiting the memory of this very process, page cache included, by a control group of its own.
//!
//! Version 1 (Documentation/admin-guide/cgroup-v1/memory.rst): a child of the group the process is
//! in. Version 2 (cgroup-v2.rst): a group below the nearest ancestor that hands the memory
//! controller down, since a group with processes of its own cannot; at the root it is switched on
//! if it is not. Limits of the ancestors stay in force in both. Swap is denied to the group where
//! the kernel accounts it, so that the limit is one of memory.

use std::{io, path::PathBuf};

use model::Bytes;

use crate::{
    bench::Bench,
    cgroup::{self, Version},
    host::Host,
    mount::MountEntry,
    undo::PREFIX,
};

/// A group that this process was moved into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    path: PathBuf,
    version: Version,
}

/// The controller.
const CONTROLLER: &str = "memory";

/// The file of the limit.
const fn limit_of(version: Version) -> &'static str {
    match version {
        Version::V1 => "memory.limit_in_bytes",
        Version::V2 => "memory.max",
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
        None => cgroup::home(host, CONTROLLER).ok()?,
    };
    // The root of version 2, and whatever lies above the hierarchy, has no such file. `max` is no
    // number.
    let limits = path.ancestors().map_while(|group| {
        let text = host.read(&group.join(limit_of(version)));
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
        let (version, home) = cgroup::home(host, CONTROLLER)?;
        let parent = match version {
            Version::V1 => home.clone(),
            Version::V2 => cgroup::parent(bench, host, &home, CONTROLLER)?,
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
        let memory = self.path.join(limit_of(self.version));
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

#[cfg(test)]
mod tests;
