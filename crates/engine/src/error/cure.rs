//! What to do about the refusals of the kernel that a benchmark meets.

use std::io;

use super::Operation;

/// The cause and the cure of the refusals a benchmark meets, by errno(3); empty for others, whose
/// own text is the source of the error.
pub(super) fn cure(operation: Operation, source: &io::Error) -> &'static str {
    let errno = source.raw_os_error();
    let special = |errno| special_cure(operation, errno).or_else(|| tree_cure(operation, errno));
    if let Some(cure) = errno.and_then(special) {
        return cure;
    }
    match errno {
        Some(libc::ENOSPC) => {
            ": the filesystem is full; use a larger device or image, smaller files, or fewer \
             workers"
        }
        Some(libc::EDQUOT) => ": a quota is used up; raise it, or use smaller files",
        Some(libc::EIO) => {
            ": the device below the filesystem failed; look for its error in the kernel log (dmesg)"
        }
        Some(libc::EROFS) => {
            ": the filesystem is read-only; it was mounted so, or became so after an error that \
             the kernel log (dmesg) names"
        }
        Some(libc::EFBIG) => ": the file is larger than the filesystem or ulimit -f allows",
        Some(libc::EMLINK) => {
            ": the filesystem allows no more than so many links to one file (ext4 65000, xfs and \
             tmpfs 2^32, f2fs 2^31); use fewer files, or leave hard links out"
        }
        Some(libc::ENAMETOOLONG) => {
            ": the filesystem has no names so long (255 bytes is the most of nearly all, with the \
             worker's number and a suffix in it); use shorter names"
        }
        Some(libc::EMFILE | libc::ENFILE) => ": too many open files; raise ulimit -n",
        Some(libc::EACCES | libc::EPERM) => ": run as a user who may write to this directory",
        Some(libc::EEXIST) => {
            ": something of that name is there already; measure in an empty directory"
        }
        Some(libc::ENOENT) if operation == Operation::Open => {
            ": the file or its directory is missing; run the phase that writes it first"
        }
        Some(libc::ENOENT) => ": the file is missing; run the phase that writes it first",
        _ => "",
    }
}

/// The same for refusals that mean something else, or more, in one operation.
fn special_cure(operation: Operation, errno: i32) -> Option<&'static str> {
    Some(match (operation, errno) {
        (Operation::Ring, libc::ENOSYS) => {
            ": this kernel was built without io_uring; use the interface offset, or plain calls, \
             and more workers"
        }
        (Operation::Ring, libc::EPERM | libc::EACCES) => {
            ": io_uring is switched off here, by the sysctl kernel.io_uring_disabled or the \
             seccomp filter of a container; set the sysctl to 0, leave the container, or \
             use the interface offset, or plain calls, and more workers"
        }
        (Operation::Ring, libc::EINVAL) => {
            ": the queue is deeper than the kernel has (32768 entries, of which a linked sync \
             takes two each and a polling thread twice as many), or the kernel is too \
             old for sqpoll or iopoll; use a smaller depth, or turn them off"
        }
        (Operation::Ring | Operation::Register, libc::ENOMEM) => {
            ": this is more memory than may be locked; raise ulimit -l, use a smaller record or \
             depth, or set registered to false"
        }
        (Operation::Register, libc::E2BIG) => {
            ": the kernel registers buffers of at most 1 GiB; use a smaller record, or set \
             registered to false"
        }
        (Operation::PollThread, libc::EBUSY) => {
            ": it needs a CPU beside the worker's, and the process may use only one; give it \
             another, or set sqpoll to false"
        }
        (Operation::Poll, libc::EOPNOTSUPP) => {
            ": the device has no poll queues, or its filesystem does not poll; give the driver \
             some (nvme.poll_queues for NVMe), or set iopoll to false"
        }
        (Operation::CallFlags, libc::EOPNOTSUPP) => {
            ": the filesystem or the kernel does not know one of the flags (RWF_NOWAIT, RWF_HIPRI, \
             RWF_DSYNC, or RWF_DONTCACHE, which needs Linux 6.14); turn it off"
        }
        (Operation::Map, libc::ENODEV | libc::EACCES) => {
            ": this filesystem has no shared mappings that can be written; use another interface"
        }
        (Operation::Advise, libc::EINVAL) => {
            ": populating a mapping needs Linux 5.14; use another advice"
        }
        (Operation::Copy, libc::EXDEV | libc::EINVAL | libc::EOPNOTSUPP) => {
            ": this filesystem does not copy so; use another call"
        }
        _ => return None,
    })
}

/// The same for operations on names.
fn tree_cure(operation: Operation, errno: i32) -> Option<&'static str> {
    Some(match (operation, errno) {
        (
            Operation::Open
            | Operation::MakeNode
            | Operation::MakeDirectory
            | Operation::Link
            | Operation::SymbolicLink
            | Operation::Rename,
            libc::ENOSPC,
        ) => {
            ": the filesystem is full; use a larger device or image, more inodes if df -i shows \
             none left (mkfs.ext4 -N, mount -t tmpfs -o nr_inodes=), fewer files, or fewer workers"
        }
        (Operation::MakeDirectory, libc::EMLINK) => {
            ": the filesystem allows no more than so many directories in one (ext4 without \
             dir_nlink 65000); spread them over directories, or use fewer"
        }
        (Operation::SetAttribute, libc::ENOSPC) => {
            ": the filesystem is full, or has no more room for extended attributes of one file; \
             use a larger device or image, or larger inodes (mkfs.ext4 -I)"
        }
        (Operation::GetAttribute, libc::ENODATA) => {
            ": there is no such attribute; run the phase that sets it first"
        }
        (Operation::RemoveDirectory, libc::ENOTEMPTY | libc::EEXIST) => {
            ": something is still in it; run a phase that removes all of them before, and keep \
             other programs away from the directory under test"
        }
        _ => return None,
    })
}
