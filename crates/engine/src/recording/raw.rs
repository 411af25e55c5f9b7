//! Raw system calls with recorded arguments. A result is a count or a negative error number.
#![expect(unsafe_code, reason = "raw system calls with recorded arguments")]
#![expect(clippy::wildcard_enum_match_arm, reason = "the other calls need no special handling")]
#![expect(clippy::cast_possible_truncation, reason = "arguments are registers of 64 bits")]

use std::{
    ffi::CStr,
    sync::atomic::{AtomicI32, Ordering::Relaxed},
};

use model::phase::FileCall;
use trace::{NO_OFFSET, Op};

use super::{calls::BUFFER, files::MODES};

/// Attempts to get a lock, 100 µs apart.
const ATTEMPTS: u32 = 1000;

/// Largest mapping whose pages are read.
const MAPPED: u64 = 128 << 10;

const MADV_POPULATE_READ: usize = 22;

/// Makes a system call.
pub(super) fn call(number: i64, args: [usize; 6]) -> i64 {
    let [a, b, c, d, e, f] = args;
    // SAFETY: the callers of this function pass integers, and pointers to live memory of the size
    // that the call reads or writes. The calls do not change memory otherwise, except for mappings,
    // which `map` makes and removes.
    let answer = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    if answer == -1 {
        // SAFETY: the location is that of this thread.
        return -i64::from(unsafe { *libc::__errno_location() });
    }
    answer
}

pub(super) fn fd(number: i32) -> usize {
    (number as isize).cast_unsigned()
}

pub(super) fn text(path: &CStr) -> usize {
    path.as_ptr() as usize
}

/// Argument that is as large as a register.
pub(super) fn word(value: u64) -> usize {
    value as usize
}

pub(super) fn close_number(number: i32) -> i64 {
    call(libc::SYS_close, [fd(number), 0, 0, 0, 0, 0])
}

/// Closes a descriptor, if it is open.
pub(super) fn close(slot: &AtomicI32) -> Option<i64> {
    let number = slot.swap(-1, Relaxed);
    (number >= 0).then(|| close_number(number))
}

/// Changes the root and working directory of this thread to a directory, and its file mode
/// creation mask to 0.
pub(super) fn enter(root: i32, confined: bool) -> Result<(), i32> {
    const CLONE_FS: usize = 0x200;
    let steps: &[(i64, [usize; 6])] = &[
        // The directories and the mask are then those of this thread only.
        (libc::SYS_unshare, [CLONE_FS, 0, 0, 0, 0, 0]),
        (libc::SYS_fchdir, [fd(root), 0, 0, 0, 0, 0]),
        (libc::SYS_chroot, [text(c"."), 0, 0, 0, 0, 0]),
    ];
    let count = if confined { 3 } else { 2 };
    for (number, args) in &steps[..count] {
        let result = call(*number, *args);
        if result < 0 {
            return Err(i32::try_from(-result).unwrap_or(libc::EINVAL));
        }
    }
    call(libc::SYS_umask, [0; 6]);
    Ok(())
}

/// Decimal digits of a descriptor number.
pub(super) fn digits(number: i32, to: &mut [u8; 12]) -> &CStr {
    let mut at = to.len() - 1;
    to[at] = 0;
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        to[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    CStr::from_bytes_with_nul(&to[at..]).unwrap_or(c"")
}

/// Times of utimensat(2) as pairs of seconds and nanoseconds.
pub(super) fn times(op: &Op) -> [u64; 4] {
    const NOW: u64 = 0x3fff_ffff;
    const OMIT: u64 = 0x3fff_fffe;
    let nanoseconds = |kind: u64| match kind & 3 {
        0 => op.size % 1_000_000_000,
        1 => NOW,
        _ => OMIT,
    };
    [op.offset, nanoseconds(op.flags >> 4), op.offset, nanoseconds(op.flags >> 8)]
}

/// Calls that get, set, list, and remove extended attributes: of the target of a link, of a link,
/// and of a descriptor.
pub(super) const XATTR_CALLS: [[i64; 4]; 3] = [
    [libc::SYS_getxattr, libc::SYS_setxattr, libc::SYS_listxattr, libc::SYS_removexattr],
    [libc::SYS_lgetxattr, libc::SYS_lsetxattr, libc::SYS_llistxattr, libc::SYS_lremovexattr],
    [libc::SYS_fgetxattr, libc::SYS_fsetxattr, libc::SYS_flistxattr, libc::SYS_fremovexattr],
];

/// Gets, sets, lists, or removes extended attributes of a path or descriptor.
pub(super) fn xattr(
    op: &Op,
    calls: &[i64; 4],
    file: usize,
    name: &CStr,
    (buffer, length): (usize, usize),
) -> i64 {
    let (name, size) = (text(name), word(op.size).min(length));
    match op.call {
        FileCall::Getxattr => call(calls[0], [file, name, buffer, size, 0, 0]),
        FileCall::Setxattr => {
            let size = size.min(64 << 10);
            call(calls[1], [file, name, buffer, size, word(op.flags >> 8 & 3), 0])
        }
        FileCall::Listxattr => call(calls[2], [file, buffer, size, 0, 0, 0]),
        _ => call(calls[3], [file, name, 0, 0, 0, 0]),
    }
}

/// Gets or releases a lock of a whole file. It waits for a limited time.
pub(super) fn flock(op: &Op, file: usize) -> i64 {
    let how = word(op.flags & 0xf) | libc::LOCK_NB as usize;
    let mut result = 0;
    for _ in 0..ATTEMPTS {
        result = call(libc::SYS_flock, [file, how, 0, 0, 0, 0]);
        if result != -i64::from(libc::EAGAIN) || op.result < 0 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_micros(100));
    }
    result
}

/// Gets, tests, or releases a record lock. Workers share a process, so that such a lock never
/// waits for another worker.
pub(super) fn lock(op: &Op, file: usize) -> i64 {
    let narrow = |value: u64| (value & 0xff) as libc::c_short;
    let lock = libc::flock {
        l_type: narrow(op.flags),
        l_whence: narrow(op.flags >> 8),
        l_start: op.offset.cast_signed(),
        l_len: op.size.cast_signed(),
        l_pid: 0,
    };
    let tests = [libc::F_GETLK, libc::F_OFD_GETLK].contains(&((op.flags >> 16 & 0xff) as i32));
    let command = if tests { libc::F_GETLK } else { libc::F_SETLK };
    call(libc::SYS_fcntl, [file, fd(command), &raw const lock as usize, 0, 0, 0])
}

/// Maps a part of a file, reads its pages unless it is large, and removes the mapping.
///
/// `MADV_POPULATE_READ` reads the pages in the kernel: an access to a page behind the end of the
/// file would end this process.
pub(super) fn map(op: &Op, file: usize) -> i64 {
    let size = word(op.size);
    if size == 0 || op.size > 1 << 40 {
        return -i64::from(libc::EINVAL);
    }
    let (read, private) = (libc::PROT_READ as usize, libc::MAP_PRIVATE as usize);
    let base = call(libc::SYS_mmap, [0, size, read, private, file, word(op.offset)]);
    // Addresses of errors are the last page.
    if (-4095..0).contains(&base) {
        return base;
    }
    let base = word(base.cast_unsigned());
    if op.size <= MAPPED {
        call(libc::SYS_madvise, [base, size, MADV_POPULATE_READ, 0, 0, 0]);
    }
    call(libc::SYS_munmap, [base, size, 0, 0, 0, 0]);
    0
}

/// Address of an offset for a call; 0 if it uses the position of the file.
fn pointer(offset: &mut u64) -> usize {
    if *offset == NO_OFFSET { 0 } else { &raw mut *offset as usize }
}

/// Adds or removes a name. `None` for other calls.
pub(super) fn one_name(op: &Op, directory: usize, path: usize) -> Option<i64> {
    let mode = word(op.offset & u64::from(MODES));
    Some(match op.call {
        FileCall::Mkdir => call(libc::SYS_mkdirat, [directory, path, mode, 0, 0, 0]),
        // The type was checked with the recording.
        FileCall::Mknod => {
            call(libc::SYS_mknodat, [directory, path, mode | word(op.flags), 0, 0, 0])
        }
        FileCall::Rmdir => {
            let removes = libc::AT_REMOVEDIR as usize;
            call(libc::SYS_unlinkat, [directory, path, removes, 0, 0, 0])
        }
        FileCall::Unlink => call(libc::SYS_unlinkat, [directory, path, 0, 0, 0, 0]),
        _ => return None,
    })
}

/// Copies data to another file.
pub(super) fn copy_range(op: &Op, file: usize, to: usize) -> i64 {
    let (mut offset, mut start) = (op.offset, op.flags);
    let (from, into) = (pointer(&mut offset), pointer(&mut start));
    call(libc::SYS_copy_file_range, [file, from, to, into, word(op.size), 0])
}

/// Copies data to the position of another file.
pub(super) fn sendfile(op: &Op, file: usize, to: usize) -> i64 {
    let mut offset = op.offset;
    call(libc::SYS_sendfile, [to, file, pointer(&mut offset), word(op.size), 0, 0])
}

/// Shares the data of a file with another one. Returns 0 or a negative error number, and true if
/// the filesystem cannot share blocks and the data was copied.
///
/// The data is also copied if the filesystem refuses the range, for example because its blocks are
/// larger; the result is then the error.
pub(super) fn clone(op: &Op, file: usize, to: usize) -> (i64, bool) {
    /// `FICLONERANGE` (include/uapi/linux/fs.h). Its size 0 means up to the end, as for `FICLONE`.
    const FICLONERANGE: usize = 0x4020_940d;
    let range = [file as u64, op.offset, op.size, op.flags];
    let done = call(libc::SYS_ioctl, [to, FICLONERANGE, range.as_ptr() as usize, 0, 0, 0]);
    let is = |errnos: &[i32]| errnos.iter().any(|errno| done == -i64::from(*errno));
    let lacks = is(&[libc::EOPNOTSUPP, libc::ENOTTY]);
    if !lacks && !is(&[libc::EINVAL]) {
        return (done, false);
    }
    // The size of the source before the copy, which may extend it.
    // SAFETY: all bytes of the structure may be zero.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    let known = call(libc::SYS_fstat, [file, &raw mut status as usize, 0, 0, 0, 0]);
    let length = u64::try_from(status.st_size).unwrap_or(0);
    let end = if op.size == 0 { length } else { op.offset.saturating_add(op.size) };
    if known < 0 || end > length {
        return (-i64::from(libc::EINVAL), false);
    }
    let (mut offset, mut start) = (op.offset, op.flags);
    while offset < end {
        let (from, into) = (&raw mut offset as usize, &raw mut start as usize);
        let most = word(end - offset).min(BUFFER);
        let copied = call(libc::SYS_copy_file_range, [file, from, to, into, most, 0]);
        if copied <= 0 {
            return (if copied < 0 { copied } else { -i64::from(libc::EIO) }, lacks);
        }
    }
    (if lacks { 0 } else { done }, lacks)
}
