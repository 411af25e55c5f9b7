//! Origins of kernel threads, derived from their names.
//!
//! Input: the name of a thread in `/proc/PID/stat`, and the monitored devices. Output: an
//! [`Origin`], that is, the kernel subsystem for which the thread works, and the name without the
//! number that distinguishes threads of one kind. A thread that matches no row of the table has
//! [`Origin::Other`].
//!
//! A kernel worker is named after the workqueue that it serves or has served last (`wq_worker_comm`
//! in kernel/workqueue.c, Linux 4.18). While it works, its name is
//! `kworker/u8:3+ext4-rsv-conversion`, and afterwards `kworker/u8:3-ext4-rsv-conversion`. The
//! rescuer of a queue is named `kworker/R-NAME`.

use model::activity::Origin;

use super::devices::Stack;

/// Position of the device name in a thread name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DevicePosition {
    /// The name contains no device.
    Nowhere,
    /// After the last slash: `xfsaild/sda1`, `jbd2/sda1-8`.
    Slash,
    /// After the first dash: `flush-8:0`, `f2fs_gc-8:0`.
    Dash,
    /// The whole name: `loop0`.
    Whole,
}

/// Name prefix, origin, and position of the device name. The first matching row is used.
///
/// Kernel sources that name the threads and queues: `fs/jbd2/journal.c`; `xfs_trans_ail.c`,
/// `xfs_log.c`, `xfs_log_cil.c`, `xfs_super.c`, and `xfs_mru_cache.c` of `fs/xfs`;
/// `fs/btrfs/disk-io.c`; `jfs_logmgr.c` and `jfs_txnmgr.c` of `fs/jfs`; `segment.c`,
/// `checkpoint.c`, and `gc.c` of `fs/f2fs`; `fs/gfs2/ops_fstype.c`; `fs/reiserfs/journal.c`;
/// `super.c` and `journal.c` of `fs/bcachefs`; `fs/nilfs2/segment.c`; `fs/ext4/super.c`;
/// `fs/fs-writeback.c` (`wb_workfn` names workers after the device) and `mm/backing-dev.c`;
/// `fs/direct-io.c` (`sb_init_dio_done_wq`); `drivers/block/loop.c`; `drivers/md`; `blk-core.c`,
/// `blk-throttle.c`, and `blk-cgroup.c` of `block`; `kernel/softirq.c`; `drivers/nvme`;
/// `drivers/scsi`; `vmscan.c`, `compaction.c`, `khugepaged.c`, and `oom_kill.c` of `mm`. Names of
/// ZFS threads are from `module/zfs` of OpenZFS. The shared queues are the `system_*wq` of
/// `kernel/workqueue.c`, all named `events…`.
///
/// `f2fs_flush` sends the cache flushes for which fsync waits, so its origin is the journal. The
/// cleaner of btrfs and the garbage collectors of XFS (`inodegc`, `blockgc`) do deferred work.
const TABLE: [(&str, Origin, DevicePosition); 83] = {
    use DevicePosition::{Dash, Nowhere, Slash, Whole};
    use Origin::{Block, Deferred, Filesystem, Journal, Loop, Reclaim, Shared, Stack, Writeback};
    [
        ("jbd2/", Journal, Slash),
        ("xfsaild/", Journal, Slash),
        ("xfs-cil/", Journal, Slash),
        ("xfs-log/", Journal, Slash),
        ("xfs_log", Journal, Nowhere),
        ("btrfs-transacti", Journal, Nowhere),
        ("jfsCommit", Journal, Nowhere),
        ("jfsIO", Journal, Nowhere),
        ("jfsSync", Journal, Nowhere),
        ("f2fs_ckpt", Journal, Dash),
        ("f2fs_flush", Journal, Dash),
        ("gfs2_logd", Journal, Slash),
        ("reiserfs/", Journal, Slash),
        ("bcachefs_journal", Journal, Nowhere),
        ("bch-reclaim/", Journal, Slash),
        ("flush-", Writeback, Dash),
        ("writeback", Writeback, Nowhere),
        ("inode_switch_wbs", Writeback, Nowhere),
        ("cgwb_release", Writeback, Nowhere),
        ("btrfs-cleaner", Deferred, Nowhere),
        ("btrfs-discard", Deferred, Nowhere),
        ("ext4lazyinit", Deferred, Nowhere),
        ("xfs-inodegc/", Deferred, Slash),
        ("xfs-blockgc/", Deferred, Slash),
        ("xfs-gc/", Deferred, Slash),
        ("xfs-discard", Deferred, Slash),
        ("xfs_discard", Deferred, Nowhere),
        ("f2fs_gc", Deferred, Dash),
        ("f2fs_discard", Deferred, Dash),
        ("bch-copygc", Deferred, Slash),
        ("bch-rebalance", Deferred, Slash),
        ("bch-reconcile", Deferred, Slash),
        ("bcachefs_copygc", Deferred, Nowhere),
        ("btrfs", Filesystem, Nowhere),
        ("xfs-", Filesystem, Slash),
        ("xfs", Filesystem, Nowhere),
        ("ext4-", Filesystem, Nowhere),
        ("jfs", Filesystem, Nowhere),
        ("nilfs", Filesystem, Nowhere),
        ("segctord", Filesystem, Nowhere),
        ("f2fs", Filesystem, Dash),
        ("gfs2", Filesystem, Slash),
        ("ocfs2", Filesystem, Nowhere),
        ("bcachefs", Filesystem, Nowhere),
        ("bch-", Filesystem, Slash),
        ("erofs", Filesystem, Nowhere),
        ("ntfs", Filesystem, Nowhere),
        ("txg_", Filesystem, Nowhere),
        ("z_", Filesystem, Nowhere),
        ("dp_", Filesystem, Nowhere),
        ("arc_", Filesystem, Nowhere),
        ("dbu_", Filesystem, Nowhere),
        ("zvol", Filesystem, Nowhere),
        ("fsverity", Filesystem, Nowhere),
        ("fscrypt", Filesystem, Nowhere),
        ("loop", Loop, Whole),
        ("kcryptd", Stack, Nowhere),
        ("dmcrypt_write", Stack, Slash),
        ("kdmflush", Stack, Slash),
        ("dm-", Stack, Nowhere),
        ("dm_", Stack, Nowhere),
        ("kcopyd", Stack, Nowhere),
        ("kverityd", Stack, Nowhere),
        ("ksnaphd", Stack, Nowhere),
        ("raid5wq", Stack, Nowhere),
        ("bcache", Stack, Nowhere),
        ("bch_", Stack, Nowhere),
        ("drbd", Stack, Nowhere),
        ("nbd", Stack, Nowhere),
        ("kblockd", Block, Nowhere),
        ("ksoftirqd/", Block, Nowhere),
        ("dio/", Block, Slash),
        ("blk", Block, Nowhere),
        ("kthrotld", Block, Nowhere),
        ("kintegrityd", Block, Nowhere),
        ("nvme", Block, Nowhere),
        ("scsi_", Block, Nowhere),
        ("virt", Block, Nowhere),
        ("kswapd", Reclaim, Nowhere),
        ("kcompactd", Reclaim, Nowhere),
        ("khugepaged", Reclaim, Nowhere),
        ("oom_reaper", Reclaim, Nowhere),
        ("events", Shared, Nowhere),
    ]
};

/// True if the name is that of a kernel worker, whose name changes with its work.
pub(super) fn is_worker(name: &str) -> bool {
    name.starts_with("kworker/")
}

/// Origin and shown name of a kernel thread. A thread that works for a device that is not monitored
/// has [`Origin::Other`].
pub(super) fn of(name: &str, stack: &Stack) -> (Origin, String) {
    let work = match name.strip_prefix("kworker/") {
        Some(worker) => match queue(worker) {
            Some(queue) => queue,
            None => return (Origin::Other, "kworker".into()),
        },
        None => name,
    };
    let prefix = if work.len() == name.len() { "" } else { "kworker " };
    let (origin, position) = origin(work);
    let Some(device) = device(work, position) else {
        return (origin, format!("{prefix}{}", kind(work)));
    };
    let bare = bare(device);
    let ours = stack.contains(device) || stack.contains(bare) || !is_device(bare);
    let shown = format!("{prefix}{}{bare}", &work[..work.len() - device.len()]);
    (if ours { origin } else { Origin::Other }, shown)
}

/// Workqueue of a kernel worker, from the text after `kworker/`; `None` if the name contains none.
fn queue(worker: &str) -> Option<&str> {
    let rest = worker.split_once(['-', '+'])?.1;
    Some(rest).filter(|rest| !rest.is_empty())
}

fn origin(work: &str) -> (Origin, DevicePosition) {
    if is_raid(work) {
        return (Origin::Stack, DevicePosition::Nowhere);
    }
    let row = TABLE.into_iter().find(|(begin, _, position)| match position {
        // Matches `loop0`, but not `loopback`.
        DevicePosition::Whole => work.strip_prefix(begin).is_some_and(is_number),
        DevicePosition::Nowhere | DevicePosition::Slash | DevicePosition::Dash => {
            work.starts_with(begin)
        }
    });
    row.map_or((Origin::Other, DevicePosition::Nowhere), |(_, origin, position)| (origin, position))
}

/// Threads of software RAID: `md0_raid6`, `md127_resync`, and the queues `md`, `md_misc`, and
/// `md_bitmap` (`drivers/md/md.c`).
fn is_raid(work: &str) -> bool {
    let Some(rest) = work.strip_prefix("md") else { return false };
    let end = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    end.is_empty() || end.starts_with('_')
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn device(work: &str, position: DevicePosition) -> Option<&str> {
    let device = match position {
        DevicePosition::Nowhere => None,
        DevicePosition::Slash => work.rsplit_once('/').map(|(_, device)| device),
        DevicePosition::Dash => work.split_once('-').map(|(_, device)| device),
        DevicePosition::Whole => Some(work),
    };
    device.filter(|device| !device.is_empty())
}

/// Name of a device without the inode number of its journal (`jbd2/sda1-8`). Old kernels limit
/// thread names to 15 bytes, so that only the dash may remain.
fn bare(device: &str) -> &str {
    match device.rsplit_once('-') {
        // `dm-0` is the complete name of a device.
        Some((device, number)) if device != "dm" && (number.is_empty() || is_number(number)) => {
            device
        }
        _ => device,
    }
}

/// True if a text identifies a device. Names such as `btrfs-1` in `flush-btrfs-1` contain the
/// number of a mount, not of a device.
fn is_device(text: &str) -> bool {
    let number = |text: &str| {
        text.split_once(':').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
    };
    let other = ["btrfs", "bcachefs", "zfs", "nfs", "fuse", "overlay", "ubifs", "ceph", "cifs"];
    number(text) || !other.iter().any(|name| text.starts_with(name))
}

/// Name without the number of the thread: `ksoftirqd` for `ksoftirqd/1`, `kswapd` for `kswapd0`.
/// `md0_raid6` is unchanged.
fn kind(work: &str) -> &str {
    let end = work.trim_end_matches(|c: char| c.is_ascii_digit());
    match end.strip_suffix(['/', ':']) {
        Some(end) if !end.is_empty() => end,
        _ if end.len() < work.len() && ["kswapd", "kcompactd", "scsi_eh_"].contains(&end) => {
            end.trim_end_matches('_')
        }
        _ => work,
    }
}

#[cfg(test)]
mod tests;
