//! Replays of recordings: the file operations of any program, recorded by `fslab record`.

use serde::{Deserialize, Serialize};

/// Replay of a recording in the directory under test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TraceReplay {
    /// Path of the recording.
    pub trace: String,
    /// SHA-256 of the recording as hexadecimal digits; empty if any file is accepted.
    pub sha256: String,
    /// Order of operations of different tasks.
    pub order: TraceOrder,
    /// Time between operations.
    pub timing: TraceTiming,
    /// Maximum share of operations with another result than recorded, from 0 to 1.
    pub unexpected_max: f64,
    /// Seed of the written data.
    pub seed: u64,
    /// True for the untimed phase that creates the files that existed before the recording.
    pub prepares: bool,
}

/// Order of operations of different tasks. The operations of one task always keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceOrder {
    /// An operation waits for each operation on the same file, name, directory, or descriptor that
    /// had ended before it began, if one of the two changes it.
    Resources,
    /// An operation waits for all operations that had ended before it began.
    Recorded,
    /// No order.
    Tasks,
}

impl TraceOrder {
    /// All orders.
    pub const ALL: [Self; 3] = [Self::Resources, Self::Recorded, Self::Tasks];

    /// Name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Recorded => "recorded",
            Self::Tasks => "tasks",
        }
    }
}

/// Time between the operations of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TraceTiming {
    /// Operations start as soon as their order allows.
    Asap,
    /// Before each operation, the worker pauses for the CPU time that the program used since its
    /// previous operation.
    Think,
    /// Operations start at their recorded times, or later. Delays count as latency.
    Recorded,
}

impl TraceTiming {
    /// All timings.
    pub const ALL: [Self; 3] = [Self::Asap, Self::Think, Self::Recorded];

    /// Name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Asap => "asap",
            Self::Think => "think",
            Self::Recorded => "recorded",
        }
    }
}

/// Defines the kinds of file calls with their names, and whether they modify the filesystem.
macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident $word:literal $changes:literal;)*) => {
        /// Kind of a recorded system call. Variants with other arguments, such as `openat`, count
        /// as the same kind.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(rename_all = "snake_case")]
        pub enum FileCall {
            $($(#[$doc])* $name,)*
        }

        impl FileCall {
            /// All kinds. The position of a kind is its number in recordings.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Name of the system call.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// Name of the histogram of its latencies, see [`crate::record::HistogramKind`].
            pub const fn word(self) -> &'static str {
                match self { $(Self::$name => concat!("call:", $word),)* }
            }

            /// True for calls that modify the filesystem. They count as writes, all others as
            /// reads.
            pub const fn changes(self) -> bool {
                match self { $(Self::$name => $changes,)* }
            }
        }
    };
}

calls! {
    /// open(2), openat(2), openat2(2), creat(2).
    Open "open" false;
    /// close(2).
    Close "close" false;
    /// Descriptor closed without a call: by exit(2), execve(2), dup2(2), or close_range(2).
    Release "release" false;
    /// dup(2), dup2(2), dup3(2), `F_DUPFD` of fcntl(2).
    Dup "dup" false;
    /// chdir(2) and fchdir(2); the replay opens the directory instead.
    Chdir "chdir" false;
    /// read(2), readv(2).
    Read "read" false;
    /// pread(2), preadv(2).
    Pread "pread" false;
    /// write(2), writev(2).
    Write "write" true;
    /// pwrite(2), pwritev(2).
    Pwrite "pwrite" true;
    /// lseek(2).
    Seek "lseek" false;
    /// copy_file_range(2).
    CopyRange "copy_file_range" true;
    /// truncate(2).
    Truncate "truncate" true;
    /// ftruncate(2).
    Ftruncate "ftruncate" true;
    /// fallocate(2).
    Fallocate "fallocate" true;
    /// fsync(2).
    Fsync "fsync" true;
    /// fdatasync(2).
    Fdatasync "fdatasync" true;
    /// syncfs(2), sync(2).
    Syncfs "syncfs" true;
    /// sync_file_range(2).
    SyncRange "sync_file_range" true;
    /// posix_fadvise(2), readahead(2).
    Advise "fadvise" false;
    /// stat(2), lstat(2), statx(2).
    Stat "stat" false;
    /// fstat(2).
    Fstat "fstat" false;
    /// access(2), faccessat(2).
    Access "access" false;
    /// statfs(2), fstatfs(2).
    Statfs "statfs" false;
    /// getdents64(2).
    List "getdents" false;
    /// mkdir(2).
    Mkdir "mkdir" true;
    /// rmdir(2).
    Rmdir "rmdir" true;
    /// unlink(2).
    Unlink "unlink" true;
    /// rename(2), renameat2(2).
    Rename "rename" true;
    /// link(2).
    Link "link" true;
    /// symlink(2).
    Symlink "symlink" true;
    /// readlink(2).
    Readlink "readlink" false;
    /// chmod(2).
    Chmod "chmod" true;
    /// fchmod(2).
    Fchmod "fchmod" true;
    /// chown(2), lchown(2), fchown(2); the replay sets its own user and group.
    Chown "chown" true;
    /// utimensat(2), utimes(2), utime(2).
    Utimens "utimens" true;
    /// getxattr(2) and its variants.
    Getxattr "getxattr" false;
    /// setxattr(2) and its variants.
    Setxattr "setxattr" true;
    /// listxattr(2) and its variants.
    Listxattr "listxattr" false;
    /// removexattr(2) and its variants.
    Removexattr "removexattr" true;
    /// flock(2).
    Flock "flock" false;
    /// Record locks of fcntl(2).
    Lock "fcntl_lock" false;
    /// mmap(2) of a file.
    Mmap "mmap" false;
    /// End of a wait for a child process by wait4(2) or waitid(2), or for another task that sent
    /// data through a pipe, a pair of sockets, an event counter, or a futex. The replay waits for
    /// the operations of the child, or of the other task until it sent.
    Wait "wait" false;
    /// `FICLONE` and `FICLONERANGE` of ioctl(2), if they succeeded. On a filesystem that cannot
    /// share blocks, the replay copies the data.
    Clone "ficlone" true;
    /// sendfile(2) between two files.
    Sendfile "sendfile" true;
    /// mknod(2) of a regular file, a FIFO, or a socket, and bind(2) of a socket to a name. Nodes of
    /// devices are neither recorded nor replayed.
    Mknod "mknod" true;
}

impl FileCall {
    /// Kind with this number.
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// Number in recordings.
    pub fn number(self) -> u8 {
        u8::try_from(self as usize).unwrap_or(u8::MAX)
    }

    /// True for calls that transfer data through a buffer of the caller.
    pub const fn moves_data(self) -> bool {
        matches!(
            self,
            Self::Read
                | Self::Pread
                | Self::Write
                | Self::Pwrite
                | Self::List
                | Self::Readlink
                | Self::Getxattr
                | Self::Setxattr
                | Self::Listxattr
        )
    }

    /// True for calls that use and change the position of an open file.
    pub const fn uses_position(self) -> bool {
        matches!(
            self,
            Self::Read | Self::Write | Self::Seek | Self::List | Self::CopyRange | Self::Sendfile
        )
    }
}
