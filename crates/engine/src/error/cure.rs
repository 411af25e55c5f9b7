//! What to do about the refusals of the kernel that a benchmark meets.

use std::io;

use super::Operation;

/// The cause and the cure of the refusals a benchmark meets, by errno(3); empty for others, whose
/// own text is the source of the error.
pub(super) fn cure(operation: Operation, source: &io::Error) -> &'static str {
    let errno = source.raw_os_error();
    if let Some(cure) = errno.and_then(|errno| special_cure(operation, errno)) {
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
            ": this kernel was built without io_uring; use the interface offset and more workers"
        }
        (Operation::Ring, libc::EPERM | libc::EACCES) => {
            ": io_uring is switched off here, by the sysctl kernel.io_uring_disabled or the \
             seccomp filter of a container; set the sysctl to 0, leave the container, or \
             use the interface offset and more workers"
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
