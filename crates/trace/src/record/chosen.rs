//! System calls that stop a traced program.

use sys::ptrace::Chosen;

use super::names::FCHMODAT2;

/// Clone of a whole file (include/uapi/linux/fs.h).
pub(super) const FICLONE: u32 = 0x4004_9409;
/// `FICLONE` and `FICLONERANGE`.
const CLONE_CALLS: &[u32] = &[FICLONE, 0x4020_940d];

/// Commands of fcntl(2): duplicates, flags of a descriptor, and locks.
const FCNTL: &[u32] = &[0, 2, 5, 6, 7, 36, 37, 38, 1030];

/// Calls that always stop a program.
const ALWAYS: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_open,
    libc::SYS_close,
    libc::SYS_stat,
    libc::SYS_fstat,
    libc::SYS_lstat,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_access,
    libc::SYS_dup,
    libc::SYS_dup2,
    libc::SYS_sendfile,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendmmsg,
    libc::SYS_bind,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_socketpair,
    libc::SYS_flock,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_truncate,
    libc::SYS_ftruncate,
    libc::SYS_getdents,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_rename,
    libc::SYS_mkdir,
    libc::SYS_rmdir,
    libc::SYS_creat,
    libc::SYS_link,
    libc::SYS_unlink,
    libc::SYS_symlink,
    libc::SYS_readlink,
    libc::SYS_chmod,
    libc::SYS_fchmod,
    libc::SYS_chown,
    libc::SYS_fchown,
    libc::SYS_lchown,
    libc::SYS_umask,
    libc::SYS_utime,
    libc::SYS_mknod,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_sync,
    libc::SYS_readahead,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_getxattr,
    libc::SYS_lgetxattr,
    libc::SYS_fgetxattr,
    libc::SYS_listxattr,
    libc::SYS_llistxattr,
    libc::SYS_flistxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    libc::SYS_io_setup,
    libc::SYS_getdents64,
    libc::SYS_fadvise64,
    libc::SYS_utimes,
    libc::SYS_openat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_fchownat,
    libc::SYS_futimesat,
    libc::SYS_newfstatat,
    libc::SYS_unlinkat,
    libc::SYS_renameat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_readlinkat,
    libc::SYS_fchmodat,
    libc::SYS_faccessat,
    libc::SYS_unshare,
    libc::SYS_splice,
    libc::SYS_sync_file_range,
    libc::SYS_utimensat,
    libc::SYS_fallocate,
    libc::SYS_dup3,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_open_by_handle_at,
    libc::SYS_syncfs,
    libc::SYS_renameat2,
    libc::SYS_copy_file_range,
    libc::SYS_preadv2,
    libc::SYS_pwritev2,
    libc::SYS_statx,
    libc::SYS_io_uring_setup,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_close_range,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_openat2,
    libc::SYS_faccessat2,
    FCHMODAT2,
    // The recorder changes the CPUs of a thread for a time.
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getaffinity,
];

/// All chosen calls. Calls without a file below the root stop the program, too: the filter does not
/// know descriptors and names.
pub(super) fn calls() -> Vec<Chosen> {
    let mut chosen: Vec<Chosen> = ALWAYS.iter().copied().map(Chosen::Always).collect();
    chosen.push(Chosen::If(libc::SYS_fcntl, 1, FCNTL));
    chosen.push(Chosen::If(libc::SYS_ioctl, 1, CLONE_CALLS));
    // Mappings of files, not of memory.
    chosen.push(Chosen::Unless(libc::SYS_mmap, 4, u32::MAX));
    // Logs name its commands, not their numbers.
    chosen.push(Chosen::Always(libc::SYS_futex));
    chosen
}

/// True if a logged call with these arguments would stop a program.
pub(crate) fn stops(number: i64, args: &[u64; 6]) -> bool {
    let low = |at: usize| u32::try_from(args[at] & 0xffff_ffff).unwrap_or(0);
    match number {
        libc::SYS_fcntl => FCNTL.contains(&low(1)),
        libc::SYS_ioctl => CLONE_CALLS.contains(&low(1)),
        libc::SYS_mmap => low(4) != u32::MAX,
        _ => ALWAYS.contains(&number),
    }
}
