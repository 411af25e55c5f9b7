//! What a kernel thread works for, told from its name: the one table of them.
//!
//! Enters: the name as in `/proc/PID/stat`, and the watched devices. Leaves: an [`Origin`] and the
//! name without the number that tells a thread from its like. A worker of a work queue is named
//! after what it works on or worked on last (`wq_worker_comm` in kernel/workqueue.c, Linux 4.18):
//! `kworker/u8:3-ext4-rsv-conversion`, `+` for `-` while it works, `kworker/R-NAME` for the
//! rescuer of a queue. Where no table row matches, the thread is [`Origin::Other`].

use model::evidence::Origin;

use super::devices::Stack;

/// Where in a name the device is that a thread works for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere.
    Nowhere,
    /// After the last slash: `xfsaild/sda1`, `jbd2/sda1-8`.
    Slash,
    /// After the first dash: `flush-8:0`, `f2fs_gc-8:0`.
    Dash,
    /// The whole name: `loop0`.
    Whole,
}

/// How names begin, what such threads do, and where the device stands; the first match counts.
///
/// Sources in the kernel, where the threads and queues get their names: `fs/jbd2/journal.c`;
/// `xfs_trans_ail.c`, `xfs_log.c`, `xfs_log_cil.c`, `xfs_super.c`, and `xfs_mru_cache.c` of
/// `fs/xfs`; `fs/btrfs/disk-io.c`; `jfs_logmgr.c` and `jfs_txnmgr.c` of `fs/jfs`; `segment.c`,
/// `checkpoint.c`, and `gc.c` of `fs/f2fs`; `fs/gfs2/ops_fstype.c`; `fs/reiserfs/journal.c`;
/// `super.c` and `journal.c` of `fs/bcachefs`; `fs/nilfs2/segment.c`; `fs/ext4/super.c`;
/// `fs/fs-writeback.c` (`wb_workfn` names workers after the device) and `mm/backing-dev.c`;
/// `fs/direct-io.c` (`sb_init_dio_done_wq`); `drivers/block/loop.c`; `drivers/md`; `blk-core.c`,
/// `blk-throttle.c`, and `blk-cgroup.c` of `block`; `kernel/softirq.c`; `drivers/nvme`;
/// `drivers/scsi`; `vmscan.c`, `compaction.c`, `khugepaged.c`, and `oom_kill.c` of `mm`. Those of
/// ZFS come from `module/zfs` of OpenZFS. The shared queues are the `system_*wq` of
/// `kernel/workqueue.c`, all of them named `events…`.
///
/// `f2fs_flush` sends the cache flushes that fsync waits for, so it counts as journal. The cleaner
/// of btrfs and the collectors of XFS (`inodegc`, `blockgc`) do what was put off.
const TABLE: [(&str, Origin, Place); 83] = {
    use Origin::{Background, Block, Filesystem, Journal, Loop, Reclaim, Shared, Stack, Writeback};
    use Place::{Dash, Nowhere, Slash, Whole};
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
        ("btrfs-cleaner", Background, Nowhere),
        ("btrfs-discard", Background, Nowhere),
        ("ext4lazyinit", Background, Nowhere),
        ("xfs-inodegc/", Background, Slash),
        ("xfs-blockgc/", Background, Slash),
        ("xfs-gc/", Background, Slash),
        ("xfs-discard", Background, Slash),
        ("xfs_discard", Background, Nowhere),
        ("f2fs_gc", Background, Dash),
        ("f2fs_discard", Background, Dash),
        ("bch-copygc", Background, Slash),
        ("bch-rebalance", Background, Slash),
        ("bch-reconcile", Background, Slash),
        ("bcachefs_copygc", Background, Nowhere),
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

/// Whether the name tells more than that it is a worker; if not, it may tell more the next time.
pub(super) fn changes(name: &str) -> bool {
    name.starts_with("kworker/")
}

/// Origin and kind of a kernel thread. A thread that works for a device that is not in the stack
/// works for others.
pub(super) fn of(name: &str, stack: &Stack) -> (Origin, String) {
    let work = match name.strip_prefix("kworker/") {
        Some(worker) => match queue(worker) {
            Some(queue) => queue,
            None => return (Origin::Other, "kworker".into()),
        },
        None => name,
    };
    let prefix = if work.len() == name.len() { "" } else { "kworker " };
    let (origin, place) = origin(work);
    let Some(device) = device(work, place) else {
        return (origin, format!("{prefix}{}", kind(work)));
    };
    let bare = bare(device);
    let ours = stack.holds(device) || stack.holds(bare) || !is_device(bare);
    let shown = format!("{prefix}{}{bare}", &work[..work.len() - device.len()]);
    (if ours { origin } else { Origin::Other }, shown)
}

/// What a worker works on, from what follows `kworker/`.
fn queue(worker: &str) -> Option<&str> {
    let rest = worker.split_once(['-', '+'])?.1;
    Some(rest).filter(|rest| !rest.is_empty())
}

fn origin(work: &str) -> (Origin, Place) {
    if is_raid(work) {
        return (Origin::Stack, Place::Nowhere);
    }
    let row = TABLE.into_iter().find(|(begin, _, place)| match place {
        // `loop0`, but not `loopback`.
        Place::Whole => work.strip_prefix(begin).is_some_and(is_number),
        Place::Nowhere | Place::Slash | Place::Dash => work.starts_with(begin),
    });
    row.map_or((Origin::Other, Place::Nowhere), |(_, origin, place)| (origin, place))
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

fn device(work: &str, place: Place) -> Option<&str> {
    let device = match place {
        Place::Nowhere => None,
        Place::Slash => work.rsplit_once('/').map(|(_, device)| device),
        Place::Dash => work.split_once('-').map(|(_, device)| device),
        Place::Whole => Some(work),
    };
    device.filter(|device| !device.is_empty())
}

/// The device without the inode number of its journal (`jbd2/sda1-8`), of which old kernels, whose
/// names have 15 letters, may show the dash alone.
fn bare(device: &str) -> &str {
    match device.rsplit_once('-') {
        // `dm-0` is a name of its own.
        Some((device, number)) if device != "dm" && (number.is_empty() || is_number(number)) => {
            device
        }
        _ => device,
    }
}

/// Names that are no device's say nothing of whose they are: `flush-btrfs-1` is numbered by mounts.
fn is_device(text: &str) -> bool {
    let number = |text: &str| {
        text.split_once(':').is_some_and(|(major, minor)| is_number(major) && is_number(minor))
    };
    let other = ["btrfs", "bcachefs", "zfs", "nfs", "fuse", "overlay", "ubifs", "ceph", "cifs"];
    number(text) || !other.iter().any(|name| text.starts_with(name))
}

/// The name without what numbers it: `ksoftirqd/1`, `kswapd0`, `md0_raid6` stays.
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
