//! Words of strace: names of calls, flags, and errors, and texts with escapes.

/// System calls that are recorded.
const CALLS: &[(&str, i64)] = &[
    ("read", libc::SYS_read),
    ("write", libc::SYS_write),
    ("open", libc::SYS_open),
    ("close", libc::SYS_close),
    ("stat", libc::SYS_stat),
    ("fstat", libc::SYS_fstat),
    ("lstat", libc::SYS_lstat),
    ("lseek", libc::SYS_lseek),
    ("pread64", libc::SYS_pread64),
    ("pwrite64", libc::SYS_pwrite64),
    ("readv", libc::SYS_readv),
    ("writev", libc::SYS_writev),
    ("access", libc::SYS_access),
    ("dup", libc::SYS_dup),
    ("dup2", libc::SYS_dup2),
    ("sendfile", libc::SYS_sendfile),
    ("flock", libc::SYS_flock),
    ("fsync", libc::SYS_fsync),
    ("fdatasync", libc::SYS_fdatasync),
    ("truncate", libc::SYS_truncate),
    ("ftruncate", libc::SYS_ftruncate),
    ("getdents", libc::SYS_getdents),
    ("chdir", libc::SYS_chdir),
    ("fchdir", libc::SYS_fchdir),
    ("rename", libc::SYS_rename),
    ("mkdir", libc::SYS_mkdir),
    ("rmdir", libc::SYS_rmdir),
    ("creat", libc::SYS_creat),
    ("link", libc::SYS_link),
    ("unlink", libc::SYS_unlink),
    ("symlink", libc::SYS_symlink),
    ("readlink", libc::SYS_readlink),
    ("chmod", libc::SYS_chmod),
    ("fchmod", libc::SYS_fchmod),
    ("chown", libc::SYS_chown),
    ("fchown", libc::SYS_fchown),
    ("lchown", libc::SYS_lchown),
    ("umask", libc::SYS_umask),
    ("utime", libc::SYS_utime),
    ("mknod", libc::SYS_mknod),
    ("statfs", libc::SYS_statfs),
    ("fstatfs", libc::SYS_fstatfs),
    ("sync", libc::SYS_sync),
    ("readahead", libc::SYS_readahead),
    ("setxattr", libc::SYS_setxattr),
    ("lsetxattr", libc::SYS_lsetxattr),
    ("fsetxattr", libc::SYS_fsetxattr),
    ("getxattr", libc::SYS_getxattr),
    ("lgetxattr", libc::SYS_lgetxattr),
    ("fgetxattr", libc::SYS_fgetxattr),
    ("listxattr", libc::SYS_listxattr),
    ("llistxattr", libc::SYS_llistxattr),
    ("flistxattr", libc::SYS_flistxattr),
    ("removexattr", libc::SYS_removexattr),
    ("lremovexattr", libc::SYS_lremovexattr),
    ("fremovexattr", libc::SYS_fremovexattr),
    ("getdents64", libc::SYS_getdents64),
    ("fadvise64", libc::SYS_fadvise64),
    ("utimes", libc::SYS_utimes),
    ("openat", libc::SYS_openat),
    ("mkdirat", libc::SYS_mkdirat),
    ("mknodat", libc::SYS_mknodat),
    ("fchownat", libc::SYS_fchownat),
    ("futimesat", libc::SYS_futimesat),
    ("newfstatat", libc::SYS_newfstatat),
    ("unlinkat", libc::SYS_unlinkat),
    ("renameat", libc::SYS_renameat),
    ("linkat", libc::SYS_linkat),
    ("symlinkat", libc::SYS_symlinkat),
    ("readlinkat", libc::SYS_readlinkat),
    ("fchmodat", libc::SYS_fchmodat),
    ("faccessat", libc::SYS_faccessat),
    ("unshare", libc::SYS_unshare),
    ("splice", libc::SYS_splice),
    ("sync_file_range", libc::SYS_sync_file_range),
    ("utimensat", libc::SYS_utimensat),
    ("fallocate", libc::SYS_fallocate),
    ("dup3", libc::SYS_dup3),
    ("preadv", libc::SYS_preadv),
    ("pwritev", libc::SYS_pwritev),
    ("open_by_handle_at", libc::SYS_open_by_handle_at),
    ("syncfs", libc::SYS_syncfs),
    ("renameat2", libc::SYS_renameat2),
    ("copy_file_range", libc::SYS_copy_file_range),
    ("preadv2", libc::SYS_preadv2),
    ("pwritev2", libc::SYS_pwritev2),
    ("statx", libc::SYS_statx),
    ("clone", libc::SYS_clone),
    ("clone3", libc::SYS_clone3),
    ("close_range", libc::SYS_close_range),
    ("wait4", libc::SYS_wait4),
    ("waitid", libc::SYS_waitid),
    ("openat2", libc::SYS_openat2),
    ("faccessat2", libc::SYS_faccessat2),
    ("fcntl", libc::SYS_fcntl),
    ("ioctl", libc::SYS_ioctl),
    ("mmap", libc::SYS_mmap),
    ("fchmodat2", crate::record::names::FCHMODAT2),
];

/// Flags (include/uapi/asm-generic/fcntl.h, include/uapi/linux/{fcntl,fs,falloc,stat,sched}.h).
const FLAGS: &[(&str, u64)] = &[
    ("AT_EACCESS", 0x200),
    ("AT_EMPTY_PATH", 0x1000),
    ("AT_FDCWD", 0xffff_ffff_ffff_ff9c),
    ("AT_NO_AUTOMOUNT", 0x800),
    ("AT_REMOVEDIR", 0x200),
    ("AT_SYMLINK_FOLLOW", 0x400),
    ("AT_SYMLINK_NOFOLLOW", 0x100),
    ("CLONE_FILES", 0x400),
    ("CLONE_FS", 0x200),
    ("CLONE_THREAD", 0x1_0000),
    ("CLONE_VM", 0x100),
    ("CLOSE_RANGE_CLOEXEC", 4),
    ("CLOSE_RANGE_UNSHARE", 2),
    ("FALLOC_FL_COLLAPSE_RANGE", 8),
    ("FALLOC_FL_INSERT_RANGE", 0x20),
    ("FALLOC_FL_KEEP_SIZE", 1),
    ("FALLOC_FL_PUNCH_HOLE", 2),
    ("FALLOC_FL_UNSHARE_RANGE", 0x40),
    ("FALLOC_FL_ZERO_RANGE", 0x10),
    ("FD_CLOEXEC", 1),
    ("FICLONE", 0x4004_9409),
    ("FICLONERANGE", 0x4020_940d),
    ("F_DUPFD", 0),
    ("F_DUPFD_CLOEXEC", 0x406),
    ("F_GETLK", 5),
    ("F_OFD_GETLK", 0x24),
    ("F_OFD_SETLK", 0x25),
    ("F_OFD_SETLKW", 0x26),
    ("F_OK", 0),
    ("F_RDLCK", 0),
    ("F_SETFD", 2),
    ("F_SETLK", 6),
    ("F_SETLKW", 7),
    ("F_UNLCK", 2),
    ("F_WRLCK", 1),
    ("LOCK_EX", 2),
    ("LOCK_NB", 4),
    ("LOCK_SH", 1),
    ("LOCK_UN", 8),
    ("MAP_PRIVATE", 2),
    ("MAP_SHARED", 1),
    ("MAP_SHARED_VALIDATE", 3),
    ("O_APPEND", 0o2000),
    ("O_ASYNC", 0o20_000),
    ("O_CLOEXEC", 0o2_000_000),
    ("O_CREAT", 0o100),
    ("O_DIRECT", 0o40_000),
    ("O_DIRECTORY", 0o200_000),
    ("O_DSYNC", 0o10_000),
    ("O_EXCL", 0o200),
    ("O_LARGEFILE", 0o100_000),
    ("O_NOATIME", 0o1_000_000),
    ("O_NOCTTY", 0o400),
    ("O_NOFOLLOW", 0o400_000),
    ("O_NONBLOCK", 0o4000),
    ("O_PATH", 0o10_000_000),
    ("O_RDONLY", 0o0),
    ("O_RDWR", 0o2),
    ("O_SYNC", 0o4_010_000),
    ("O_TMPFILE", 0o20_200_000),
    ("O_TRUNC", 0o1000),
    ("O_WRONLY", 0o1),
    ("POSIX_FADV_DONTNEED", 4),
    ("POSIX_FADV_NOREUSE", 5),
    ("POSIX_FADV_NORMAL", 0),
    ("POSIX_FADV_RANDOM", 1),
    ("POSIX_FADV_SEQUENTIAL", 2),
    ("POSIX_FADV_WILLNEED", 3),
    ("PROT_EXEC", 4),
    ("PROT_NONE", 0),
    ("PROT_READ", 1),
    ("PROT_WRITE", 2),
    ("RENAME_EXCHANGE", 2),
    ("RENAME_NOREPLACE", 1),
    ("RENAME_WHITEOUT", 4),
    ("R_OK", 4),
    ("SEEK_CUR", 1),
    ("SEEK_DATA", 3),
    ("SEEK_END", 2),
    ("SEEK_HOLE", 4),
    ("SEEK_SET", 0),
    ("SYNC_FILE_RANGE_WAIT_AFTER", 4),
    ("SYNC_FILE_RANGE_WAIT_BEFORE", 1),
    ("SYNC_FILE_RANGE_WRITE", 2),
    ("S_IFBLK", 0o60_000),
    ("S_IFCHR", 0o20_000),
    ("S_IFDIR", 0o40_000),
    ("S_IFIFO", 0o10_000),
    ("S_IFLNK", 0o120_000),
    ("S_IFREG", 0o100_000),
    ("S_IFSOCK", 0o140_000),
    ("S_ISGID", 0o2000),
    ("S_ISUID", 0o4000),
    ("S_ISVTX", 0o1000),
    ("UTIME_NOW", 0x3fff_ffff),
    ("UTIME_OMIT", 0x3fff_fffe),
    ("W_OK", 2),
    ("XATTR_CREATE", 1),
    ("XATTR_REPLACE", 2),
    ("X_OK", 1),
];

/// Error numbers of calls on files.
const ERRORS: &[(&str, i32)] = &[
    ("EACCES", libc::EACCES),
    ("EAGAIN", libc::EAGAIN),
    ("EBADF", libc::EBADF),
    ("EBUSY", libc::EBUSY),
    ("ECANCELED", libc::ECANCELED),
    ("ECHILD", libc::ECHILD),
    ("EDEADLK", libc::EDEADLK),
    ("EDQUOT", libc::EDQUOT),
    ("EEXIST", libc::EEXIST),
    ("EFAULT", libc::EFAULT),
    ("EFBIG", libc::EFBIG),
    ("EINTR", libc::EINTR),
    ("EINVAL", libc::EINVAL),
    ("EIO", libc::EIO),
    ("EISDIR", libc::EISDIR),
    ("ELOOP", libc::ELOOP),
    ("EMFILE", libc::EMFILE),
    ("EMLINK", libc::EMLINK),
    ("ENAMETOOLONG", libc::ENAMETOOLONG),
    ("ENFILE", libc::ENFILE),
    ("ENODATA", libc::ENODATA),
    ("ENODEV", libc::ENODEV),
    ("ENOENT", libc::ENOENT),
    ("ENOLCK", libc::ENOLCK),
    ("ENOMEM", libc::ENOMEM),
    ("ENOSPC", libc::ENOSPC),
    ("ENOSYS", libc::ENOSYS),
    ("ENOTDIR", libc::ENOTDIR),
    ("ENOTEMPTY", libc::ENOTEMPTY),
    ("ENOTTY", libc::ENOTTY),
    ("ENXIO", libc::ENXIO),
    ("EOPNOTSUPP", libc::EOPNOTSUPP),
    ("EOVERFLOW", libc::EOVERFLOW),
    ("EPERM", libc::EPERM),
    ("EPIPE", libc::EPIPE),
    ("ERANGE", libc::ERANGE),
    ("EROFS", libc::EROFS),
    ("ESPIPE", libc::ESPIPE),
    ("ESTALE", libc::ESTALE),
    ("ETIMEDOUT", libc::ETIMEDOUT),
    ("ETXTBSY", libc::ETXTBSY),
    ("EXDEV", libc::EXDEV),
];

fn find<T: Copy>(table: &[(&str, T)], name: &str) -> Option<T> {
    table.iter().find(|(own, _)| *own == name).map(|(_, value)| *value)
}

/// Number of a system call that is recorded.
pub(super) fn call_number(name: &str) -> Option<i64> {
    find(CALLS, name)
}

/// Error number.
pub(super) fn error(name: &str) -> Option<i32> {
    find(ERRORS, name)
}

/// Number: decimal, hexadecimal, octal, or negative.
pub(super) fn number(text: &str) -> Option<u64> {
    if let Some(positive) = text.strip_prefix('-') {
        return number(positive).map(u64::wrapping_neg);
    }
    if let Some(digits) = text.strip_prefix("0x") {
        return u64::from_str_radix(digits, 16).ok();
    }
    match text.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u64::from_str_radix(digits, 8).ok(),
        _ => text.parse().ok(),
    }
}

/// Numbers and flags that are joined by `|`. Unknown flags are 0.
pub(super) fn flags(text: &str) -> u64 {
    let words = text.split('|').map(|word| word.split_whitespace().next().unwrap_or_default());
    words.fold(0, |all, word| all | number(word).or(find(FLAGS, word)).unwrap_or(0))
}

/// Bytes of a quoted text, and of the name of a descriptor: escapes are octal or hexadecimal
/// numbers, or letters.
pub(super) fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let (mut out, mut at) = (Vec::with_capacity(bytes.len()), 0);
    while at < bytes.len() {
        if bytes[at] != b'\\' || at + 1 == bytes.len() {
            out.push(bytes[at]);
            at += 1;
            continue;
        }
        at += 1;
        let radix = if bytes[at] == b'x' { 16 } else { 8 };
        let start = at + usize::from(radix == 16);
        let most = if radix == 16 { 2 } else { 3 };
        let digit = |byte: &&u8| char::from(**byte).is_digit(radix);
        let count = bytes[start..].iter().take(most).take_while(digit).count();
        let value = u32::from_str_radix(text.get(start..start + count).unwrap_or_default(), radix);
        match value {
            Ok(value) => {
                out.push(u8::try_from(value & 0xff).unwrap_or(0));
                at = start + count;
            }
            Err(_) => {
                out.push(match bytes[at] {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    b'v' => 0x0b,
                    b'f' => 0x0c,
                    byte => byte,
                });
                at += 1;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_flags_and_texts_are_read() {
        assert_eq!(flags("O_WRONLY|O_CREAT|O_TRUNC"), 0o1101);
        assert_eq!(flags("S_IFREG|0644"), 0o100_644);
        assert_eq!((flags("0x10 /* F_??? */"), flags("-1")), (16, u64::MAX));
        assert_eq!((number("0666"), number("0"), number("?")), (Some(0o666), Some(0), None));
        assert_eq!(unescape(r"a\n\1\12\0123\x41\\"), *b"a\n\x01\n\n3A\\");
        assert_eq!(call_number("newfstatat"), Some(libc::SYS_newfstatat));
        assert_eq!((call_number("futex"), error("ENOTEMPTY")), (None, Some(libc::ENOTEMPTY)));
    }
}
