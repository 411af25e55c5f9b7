//! Memory limit of this process, including its page cache, set by a dedicated control group.
//!
//! With control groups of version 1 (Documentation/admin-guide/cgroup-v1/memory.rst), the new group
//! is a child of the group of this process. With version 2 (cgroup-v2.rst), a group that contains
//! processes cannot enable a controller for its children. The new group is therefore below the
//! nearest ancestor that enables the memory controller; if there is none, the controller is enabled
//! in the root group. The limits of all ancestors also apply. If the kernel accounts swap, swap is
//! disabled for the group, because pages above the limit would be swapped out.

use std::{io, path::PathBuf};

use model::Bytes;

use crate::{
    cgroup::{self, Version},
    host::Host,
    journaled_host::JournaledHost,
    mount::MountEntry,
    undo::PREFIX,
};

/// Control group into which this process was moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    path: PathBuf,
    version: Version,
}

const CONTROLLER: &str = "memory";

/// File that contains the limit of a group.
const fn limit_of(version: Version) -> &'static str {
    match version {
        Version::V1 => "memory.limit_in_bytes",
        Version::V2 => "memory.max",
    }
}

/// Limits of at least this value mean "unlimited". For a group of version 1 without a limit, the
/// kernel shows the largest number of whole pages whose size fits in 63 bits (`PAGE_COUNTER_MAX`,
/// `include/linux/page_counter.h`).
const UNLIMITED: u64 = 1 << 62;

/// Memory limit of this process: the lowest limit of its control group and of all ancestors, and
/// the version of the groups. `group` is the group into which fslab moved this process, if any.
/// `None` if there is no limit.
pub(crate) fn limit(host: &dyn Host, group: Option<&Group>) -> Option<(Bytes, &'static str)> {
    let (version, path) = match group {
        Some(group) => (group.version, group.path.clone()),
        None => cgroup::home(host, CONTROLLER).ok()?,
    };
    // The root group of version 2 has no limit file and is skipped. The text `max` is not a number
    // and is skipped, too. The search ends above the mount point, where there is no `cgroup.procs`.
    let limits = path.ancestors().map_while(|group| {
        let text = host.read(&group.join(limit_of(version)));
        text.ok().or_else(|| host.entry(&group.join("cgroup.procs")).ok().map(|_| String::new()))
    });
    let lowest = limits.filter_map(|text| text.trim().parse().ok()).min()?;
    (lowest < UNLIMITED).then(|| (Bytes(lowest), version.name()))
}

/// Versions of control groups that are mounted: `v1`, `v2`, `v1 and v2`, or `none`.
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
    /// Creates a group with this limit and moves this process into the group.
    ///
    /// # Errors
    /// The reason as text.
    pub(crate) fn enter(
        journaled: &mut JournaledHost,
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
            Version::V2 => cgroup::parent(journaled, host, &home, CONTROLLER)?,
        };
        let group = Self { path: parent.join(format!("{PREFIX}{run_id}")), version };
        journaled
            .group(&group.path, &home, |host| group.set(host, limit))
            .map_err(|error| format!("{}: {error}", group.path.display()))?;
        Ok(group)
    }

    /// Changes the limit.
    ///
    /// # Errors
    /// The reason as text.
    pub(crate) fn change(&self, journaled: &mut JournaledHost, limit: Bytes) -> Result<(), String> {
        let what = format!("limit {} to {limit}", self.path.display());
        journaled.execute(what, |host| self.set(host, limit)).0.map_err(|error| error.to_string())
    }

    fn set(&self, host: &dyn Host, limit: Bytes) -> io::Result<()> {
        let bytes = limit.0.to_string();
        let (swap, swap_limit) = match self.version {
            // With the same limit for the sum of memory and swap, no swap is used at the memory
            // limit.
            Version::V1 => ("memory.memsw.limit_in_bytes", bytes.as_str()),
            Version::V2 => ("memory.swap.max", "0"),
        };
        let memory = self.path.join(limit_of(self.version));
        let swap = self.path.join(swap);
        if host.entry(&swap).is_err() {
            return host.write(&memory, &bytes);
        }
        // In version 1, the limit of memory must never exceed the limit of memory and swap. To
        // lower both, memory is written first. If that write fails, the limits are being raised,
        // and swap is written first.
        if host.write(&memory, &bytes).is_ok() {
            return host.write(&swap, swap_limit);
        }
        host.write(&swap, swap_limit)?;
        host.write(&memory, &bytes)
    }
}

#[cfg(test)]
mod tests;
