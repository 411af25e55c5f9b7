//! Hints for common errno values.

use std::io;

use super::Operation;

/// Cause and hint for common errno(3) values. Empty for other values, which the `source` of the
/// error describes.
pub(super) fn hint(operation: Operation, source: &io::Error) -> &'static str {
    let errno = source.raw_os_error();
    let special = |errno| special_hint(operation, errno).or_else(|| tree_hint(operation, errno));
    if let Some(hint) = errno.and_then(special) {
        return hint;
    }
    match errno {
        Some(libc::ENOSPC) => {
            ": the filesystem is full; use a larger device or image, smaller files, or fewer \
             workers"
        }
        Some(libc::EDQUOT) => ": the quota is exhausted; raise it, or use smaller files",
        Some(libc::EIO) => ": the device below the filesystem failed; check the kernel log (dmesg)",
        Some(libc::EROFS) => {
            ": the filesystem is read-only; it was mounted read-only, or became read-only after \
             an error in the kernel log (dmesg)"
        }
        Some(libc::EFBIG) => ": the file is larger than the filesystem or ulimit -f allows",
        Some(libc::EMLINK) => {
            ": the filesystem limits the number of links to one file (ext4 65000, xfs and \
             tmpfs 2^32, f2fs 2^31); use fewer files, or omit hard links"
        }
        Some(libc::ENAMETOOLONG) => {
            ": the name is too long (most filesystems allow 255 bytes, including the worker's \
             number and a suffix); use shorter names"
        }
        Some(libc::EMFILE | libc::ENFILE) => ": too many open files; raise ulimit -n",
        Some(libc::EACCES | libc::EPERM) => {
            ": permission denied; run as a user with write permission"
        }
        Some(libc::EEXIST) => ": the name already exists; use an empty directory",
        Some(libc::ENOENT) if operation == Operation::Open => {
            ": the file or its directory is missing; run the phase that writes it first"
        }
        Some(libc::ENOENT) => ": the file is missing; run the phase that writes it first",
        _ => "",
    }
}

/// Like [`hint`] for operations in which an errno has a special meaning.
fn special_hint(operation: Operation, errno: i32) -> Option<&'static str> {
    Some(match (operation, errno) {
        (Operation::Aio, libc::EAGAIN) => {
            ": the sysctl fs.aio-max-nr limits the number of operations of all processes; raise it, \
             or use a smaller queue_depth or fewer workers"
        }
        (Operation::Aio, libc::ENOSYS) => {
            ": this kernel was built without Linux AIO; use io_engine io_uring"
        }
        (Operation::Ring, libc::ENOSYS) => {
            ": this kernel was built without io_uring; use io_engine pread or syscall \
             and more workers"
        }
        (Operation::Ring, libc::EPERM | libc::EACCES) => {
            ": io_uring is disabled by the sysctl kernel.io_uring_disabled or the \
             seccomp filter of a container; set the sysctl to 0, leave the container, or \
             use io_engine pread or syscall and more workers"
        }
        (Operation::Ring, libc::EINVAL) => {
            ": the queue depth exceeds the kernel limit (32768 entries; a linked sync \
             takes two entries, a polling thread doubles the number), or the kernel is too \
             old for sqpoll or iopoll; use a smaller queue_depth, or disable them"
        }
        (Operation::Ring | Operation::Register, libc::ENOMEM) => {
            ": more memory than may be locked; raise ulimit -l, use a smaller block_size or \
             queue_depth, or set fixed_buffers to false"
        }
        (Operation::Register, libc::E2BIG) => {
            ": the kernel registers buffers of at most 1 GiB; use a smaller block_size, or \
             set fixed_buffers to false"
        }
        (Operation::PollThread, libc::EBUSY) => {
            ": the polling thread needs another CPU than the worker, but the process has only one; \
             use more CPUs, or set sqpoll to false"
        }
        (Operation::Poll, libc::EOPNOTSUPP) => {
            ": the device has no poll queues, or its filesystem does not support polling; enable \
             them (nvme.poll_queues for NVMe), or set iopoll to false"
        }
        (Operation::CallFlags, libc::EOPNOTSUPP) => {
            ": the filesystem or the kernel does not support one of the flags (RWF_NOWAIT, \
             RWF_HIPRI, RWF_DSYNC, or RWF_DONTCACHE, which needs Linux 6.14); disable it"
        }
        (Operation::Map, libc::ENODEV | libc::EACCES) => {
            ": the filesystem does not support writable shared mappings; use another io_engine"
        }
        (Operation::Advise, libc::EINVAL) => {
            ": populating a mapping needs Linux 5.14; use another madvise value"
        }
        (Operation::Copy, libc::EXDEV | libc::EINVAL | libc::EOPNOTSUPP) => {
            ": the filesystem does not support this copy call; use another call"
        }
        _ => return None,
    })
}

/// Like [`hint`] for operations on names.
fn tree_hint(operation: Operation, errno: i32) -> Option<&'static str> {
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
            ": the filesystem limits the number of directories in one directory (ext4 without \
             dir_nlink 65000); spread them over more directories, or use fewer"
        }
        (Operation::SetAttribute, libc::ENOSPC) => {
            ": the filesystem is full, or the space of extended attributes of one file is \
             exhausted; use a larger device or image, or larger inodes (mkfs.ext4 -I)"
        }
        (Operation::GetAttribute, libc::ENODATA) => {
            ": the attribute does not exist; run the phase that sets it first"
        }
        (Operation::RemoveDirectory, libc::ENOTEMPTY | libc::EEXIST) => {
            ": the directory is not empty; run a phase that removes all entries first, and keep \
             other programs away from the directory under test"
        }
        _ => return None,
    })
}
