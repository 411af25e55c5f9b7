//! The calls that move the data of a stream.

use serde::{Deserialize, Serialize};

/// The calls that move the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Interface {
    /// pread(2) and pwrite(2).
    Offset,
    /// read(2) and write(2), with lseek(2) where the order needs it, inside the loop.
    Position,
    /// read(2) and write(2) of one byte each; an operation is all calls of one record.
    Bytewise,
    /// fread(3) and fwrite(3) of the C library, its buffer one record long.
    Stdio,
    /// preadv2(2) and pwritev2(2) with flags for each call.
    Vector(CallFlags),
    /// Loads and stores on a shared mapping, mmap(2); flushes are msync(2) and fsync(2).
    Mmap(Advice),
    /// io_uring(7).
    Ring(Ring),
    /// A copy from the file of the same name with `.source` behind it, inside the kernel.
    Copy(CopyCall),
    /// No call at all: what the loop itself costs.
    Null,
}

/// Flags of preadv2(2) and pwritev2(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallFlags {
    /// `RWF_NOWAIT` first; what would have blocked is counted and done again without it.
    pub nowait: bool,
    /// `RWF_HIPRI`: poll for the completion of direct I/O.
    pub hipri: bool,
    /// `RWF_DSYNC`: each write durable before it returns.
    pub dsync: bool,
    /// `RWF_DONTCACHE`: through the page cache, and out of it at once.
    pub uncached: bool,
}

/// What the kernel is told about a mapping, madvise(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Advice {
    /// Nothing.
    #[default]
    Normal,
    /// `MADV_SEQUENTIAL`.
    Sequential,
    /// `MADV_RANDOM`.
    Random,
    /// `MADV_WILLNEED`, before the clock starts.
    WillNeed,
    /// `MADV_POPULATE_READ` or `MADV_POPULATE_WRITE`, before the clock starts: page tables filled.
    Populate,
}

/// How an io_uring is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ring {
    /// Operations in flight, at least 1.
    pub depth: u32,
    /// Operations handed to the kernel at once, within 1..=depth; 0: as many as there is room for.
    pub batch: u32,
    /// Buffers and file registered beforehand.
    pub registered: bool,
    /// A kernel thread polls the submission queue (`IORING_SETUP_SQPOLL`).
    pub sqpoll: bool,
    /// Completions of direct I/O are polled for (`IORING_SETUP_IOPOLL`).
    pub iopoll: bool,
    /// Each write is linked with an fdatasync(2), and done when both are (`IOSQE_IO_LINK`).
    pub linked_sync: bool,
    /// `IORING_OP_NOP` in place of every transfer: what the ring itself costs.
    pub nop: bool,
}

impl Ring {
    /// A ring of this depth with registered buffers and file, everything else off.
    pub const fn of(depth: u32) -> Self {
        Self {
            depth,
            batch: 0,
            registered: true,
            sqpoll: false,
            iopoll: false,
            linked_sync: false,
            nop: false,
        }
    }
}

/// A call that copies inside the kernel.
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
