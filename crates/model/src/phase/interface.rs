//! I/O interfaces of streams.

use serde::{Deserialize, Serialize};

/// I/O interface of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IoEngineKind {
    /// pread(2) and pwrite(2).
    Offset,
    /// read(2) and write(2), with lseek(2) in the loop if the order requires it.
    Position,
    /// read(2) and write(2) of single bytes. One operation consists of all calls for one block.
    Bytewise,
    /// fread(3) and fwrite(3) with a buffer of one block.
    Stdio,
    /// preadv2(2) and pwritev2(2) with flags for each call.
    Vector(CallFlags),
    /// Loads and stores on a shared mapping, mmap(2); syncs are msync(2) and fsync(2).
    Mmap(Advice),
    /// io_uring(7).
    Ring(Ring),
    /// Linux AIO: io_submit(2) and io_getevents(2).
    Aio(Aio),
    /// In-kernel copy from the file of the same name with the suffix `.source`.
    Copy(CopyCall),
    /// One call on the space of the open file per operation, without data.
    Space(SpaceCall),
    /// One call by the name of the file per operation, without data. The number of operations per
    /// file is that of its blocks.
    Name(NameCall),
    /// No calls: the overhead of the load generator.
    Null,
}

/// Call on the space of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpaceCall {
    /// fallocate(2) of the block; for reads, with `FALLOC_FL_KEEP_SIZE`.
    Allocate,
    /// ftruncate(2) to the offset of the block.
    Truncate,
}

/// Call by the name of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameCall {
    /// open(2) with `O_CREAT`. Files that exceed the limit of open files are closed at once.
    Create,
    /// stat(2).
    Stat,
    /// unlink(2).
    Unlink,
    /// mkdir(2).
    CreateDirectory,
    /// rmdir(2).
    RemoveDirectory,
}

/// Properties of an I/O engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineProperties {
    /// Names of the calls that read and write, such as `pread` and `pwrite`.
    pub calls: [&'static str; 2],
    /// Operations in flight, of engines with a queue.
    pub queue_depth: Option<u32>,
    /// True if operations transfer data. The null engine, NOPs of io_uring, and calls on metadata
    /// do not.
    pub moves: bool,
    /// True if written data comes from a buffer of the worker.
    pub own_data: bool,
    /// True if each write is durable before it completes.
    pub durable_writes: bool,
    /// Files that a worker can have.
    pub files: EngineFiles,
}

/// Files that a worker can have with an I/O engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineFiles {
    /// One file, without calls at the start of a pass.
    One,
    /// Several files, with one engine for each.
    Each,
    /// Several files, with one engine for all.
    All,
}

impl IoEngineKind {
    /// Collection of completions, of engines with a queue.
    pub fn completions(self) -> Completions {
        if let Self::Ring(ring) = self {
            ring.completions
        } else if let Self::Aio(aio) = self {
            aio.completions
        } else {
            Completions::ANY
        }
    }

    /// Properties of the engine.
    pub fn properties(self) -> EngineProperties {
        let calls = |read, write| EngineProperties {
            calls: [read, write],
            queue_depth: None,
            moves: true,
            own_data: true,
            durable_writes: false,
            files: EngineFiles::Each,
        };
        let one = |read, write| EngineProperties { files: EngineFiles::One, ..calls(read, write) };
        let all = |name| EngineProperties { files: EngineFiles::All, ..calls(name, name) };
        match self {
            Self::Offset => calls("pread", "pwrite"),
            Self::Position => calls("read", "write"),
            Self::Bytewise => one("1-byte read", "1-byte write"),
            Self::Stdio => one("fread", "fwrite"),
            Self::Vector(flags) => {
                EngineProperties { durable_writes: flags.dsync, ..calls("preadv2", "pwritev2") }
            }
            Self::Mmap(_) => calls("mmap", "mmap"),
            Self::Ring(ring) => EngineProperties {
                queue_depth: Some(ring.depth),
                moves: !ring.nop,
                durable_writes: ring.linked_fdatasync,
                ..all("io_uring")
            },
            Self::Aio(aio) => EngineProperties { queue_depth: Some(aio.depth), ..all("io_submit") },
            Self::Copy(call) => {
                let name = match call {
                    CopyCall::CopyFileRange => "copy_file_range",
                    CopyCall::Sendfile => "sendfile",
                    CopyCall::Splice => "splice",
                };
                EngineProperties { own_data: false, ..one(name, name) }
            }
            Self::Space(call) => {
                let name = match call {
                    SpaceCall::Allocate => "fallocate",
                    SpaceCall::Truncate => "ftruncate",
                };
                EngineProperties { moves: false, own_data: false, ..calls(name, name) }
            }
            Self::Name(call) => {
                let name = match call {
                    NameCall::Create => "open",
                    NameCall::Stat => "stat",
                    NameCall::Unlink => "unlink",
                    NameCall::CreateDirectory => "mkdir",
                    NameCall::RemoveDirectory => "rmdir",
                };
                EngineProperties { moves: false, own_data: false, ..all(name) }
            }
            Self::Null => EngineProperties { moves: false, ..all("null") },
        }
    }
}

/// Flags of preadv2(2) and pwritev2(2), for all calls of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFlags {
    /// `RWF_NOWAIT`. Calls that return EAGAIN are counted and retried without the flag.
    pub nowait: bool,
    /// `RWF_HIPRI`: poll for the completion of direct I/O.
    pub hipri: bool,
    /// `RWF_DSYNC`: each write is durable before it returns.
    pub dsync: bool,
    /// `RWF_DONTCACHE`: the pages are removed from the page cache after the transfer.
    pub uncached: bool,
}

/// Advice of madvise(2) for a mapping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// No advice.
    #[default]
    Normal,
    /// `MADV_SEQUENTIAL`.
    Sequential,
    /// `MADV_RANDOM`.
    Random,
    /// `MADV_WILLNEED`, before the clock starts.
    WillNeed,
    /// `MADV_POPULATE_READ` or `MADV_POPULATE_WRITE`, before the clock starts, which fills the page
    /// tables.
    Populate,
}

/// Options of io_uring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ring {
    /// Operations in flight, at least 1.
    pub depth: u32,
    /// Operations per submission, at most `depth`; 0: all free slots.
    pub submit_batch: u32,
    /// Buffers and file are registered.
    pub fixed_buffers: bool,
    /// A kernel thread polls the submission queue (`IORING_SETUP_SQPOLL`).
    pub sqpoll: bool,
    /// Polls for completions of direct I/O (`IORING_SETUP_IOPOLL`).
    pub iopoll: bool,
    /// Each write is linked to an fdatasync(2); both form one operation (`IOSQE_IO_LINK`).
    pub linked_fdatasync: bool,
    /// `IORING_OP_NOP` instead of transfers, which measures the overhead of io_uring.
    pub nop: bool,
    /// Collection of completions.
    #[serde(default, skip_serializing_if = "Completions::is_default")]
    pub completions: Completions,
}

impl Ring {
    /// Ring of this depth with registered buffers and file, without other options.
    pub const fn of(depth: u32) -> Self {
        Self {
            depth,
            submit_batch: 0,
            fixed_buffers: true,
            sqpoll: false,
            iopoll: false,
            linked_fdatasync: false,
            nop: false,
            completions: Completions::ANY,
        }
    }
}

/// Options of Linux AIO.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aio {
    /// Operations in flight, at least 1.
    pub depth: u32,
    /// Operations per io_submit(2), at most `depth`; 0: as many as possible.
    pub submit_batch: u32,
    /// Collection of completions.
    #[serde(default, skip_serializing_if = "Completions::is_default")]
    pub completions: Completions,
}

impl Aio {
    /// Queue of this depth, with this number of operations per submission.
    pub const fn of(depth: u32, submit_batch: u32) -> Self {
        Self { depth, submit_batch, completions: Completions::ANY }
    }
}

/// Collection of the completions of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completions {
    /// Completions to wait for, at least 1 and at most the depth of the queue. Fewer operations in
    /// flight are waited for together.
    pub min: u32,
    /// Maximum number of completions that are collected together; 0: as many as operations per
    /// submission (AIO), or all (io_uring).
    pub max: u32,
    /// A full queue gets no operations until this number is in flight, less than the depth. `None`:
    /// each completion is followed by an operation.
    pub refill_at: Option<u32>,
}

impl Completions {
    /// Waits for one completion and collects those that are available.
    pub const ANY: Self = Self { min: 1, max: 0, refill_at: None };

    fn is_default(&self) -> bool {
        *self == Self::ANY
    }
}

impl Default for Completions {
    fn default() -> Self {
        Self::ANY
    }
}

/// In-kernel copy call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyCall {
    /// copy_file_range(2), which may share blocks instead of copying.
    CopyFileRange,
    /// sendfile(2).
    Sendfile,
    /// splice(2) through a pipe.
    Splice,
}
