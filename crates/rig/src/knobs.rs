//! Settings of the kernel that a plan may change; each is read back, and put back at the end.
//!
//! A setting that the kernel refuses or rounds is a [`Warning::ReadBack`], not an error: the trial
//! goes on with what the kernel says, and the report shows it.

use std::path::{Path, PathBuf};

use model::Warning;

use crate::{bench::Bench, error::RigError, host::Host, undo::Step};

/// The queue directory of a block device in sysfs; for a partition that of its disk.
pub(crate) fn queue(host: &dyn Host, name: &str) -> PathBuf {
    let node = Path::new("/sys/class/block").join(name);
    if host.entry(&node.join("queue")).is_ok() {
        return node.join("queue");
    }
    // A partition's directory lies in that of its disk (Documentation/ABI/testing/sysfs-block).
    match host.follow(&node) {
        Ok(path) if path.join("partition").exists() => path.parent().unwrap_or(&path).join("queue"),
        _ => node.join("queue"),
    }
}

/// Sets the I/O scheduler of a device. The kernel loads its module if need be
/// (`block/elevator.c`).
///
/// # Errors
/// [`RigError::Journal`].
pub(crate) fn set_scheduler(
    bench: &mut Bench,
    host: &dyn Host,
    name: &str,
    scheduler: &str,
) -> Result<(Option<Step>, Option<Warning>), RigError> {
    let path = queue(host, name).join("scheduler");
    bench.set(&format!("scheduler of {name}"), &path, scheduler)
}

/// Makes a loop device of our own offer no discard, so that neither mkfs nor mount gives back the
/// reserved space of an image.
///
/// This is not journaled, since it cannot be undone: with a limit of 0 the kernel forgets the
/// granularity and takes no other limit any more (`queue_max_discard_sectors_store` in
/// `block/blk-sysfs.c`). It goes with the device, and is therefore done only to one that is
/// removed.
pub(crate) fn switch_discard_off(
    bench: &mut Bench,
    host: &dyn Host,
    name: &str,
) -> Option<Warning> {
    let path = queue(host, name).join("discard_max_bytes");
    let what = format!("write 0 to {}", path.display());
    let (written, _) = bench.act(what, |host| host.write(&path, "0"));
    let found = match written.and_then(|()| host.read(&path)) {
        Ok(found) => found.trim().to_owned(),
        Err(error) => error.to_string(),
    };
    (found != "0").then(|| Warning::ReadBack {
        setting: format!("discard_max_bytes of {name}"),
        wanted: "0".into(),
        found,
    })
}

#[cfg(test)]
mod tests;
