//! Program of a replay: the operations of a loadfile in a binary form that clients run without
//! parsing.
//!
//! A [`Builder`] takes operations in their order, from the loadfile parser or from the built-in
//! loadfile. [`Builder::finish`] writes them to one piece of memory, an unnamed file
//! (memfd_create(2)) that is sealed against changes. All clients map it for reading: threads share
//! one mapping, and a process attaches the inherited descriptor.
//!
//! ```text
//! header | operations, 32 bytes each | line numbers | names | text of the names
//! ```
//!
//! Names are relative to the root of a client and never lead out of it. The text contains a NUL
//! byte in place of `client1`, which the number of the client replaces. Handles are slots: small
//! numbers without gaps, reused after a close.
//!
//! Not included: parsing of loadfiles (`load`), and execution (`client`).
#![expect(unsafe_code, reason = "operations are a view of mapped memory")]

mod build;
mod names;

use std::{
    mem::{align_of, size_of},
    num::NonZeroUsize,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    slice,
};

use model::{Environment, phase::ReplayOp};
use rustix::{
    fs::{SealFlags, fcntl_get_seals, fstat},
    io::Errno,
};

use crate::{
    error::{Fault, Memory},
    mapping::Mapping,
};

pub(super) use build::Builder;
pub(super) use names::{MARK, Name, NameLimits, NameProblem, Names};

/// Slot of an operation without a handle.
pub(super) const NO_SLOT: u16 = u16::MAX;
/// Name of an operation without a name.
pub(super) const NO_NAME: u32 = u32::MAX;
/// Timestamp of an operation without a timestamp.
const NO_STAMP: u64 = u64::MAX;
/// First word of a program; its last digit is the version of the layout.
const MAGIC: u64 = 0x6673_6c61_625f_7031;
/// Seals against changes and against further seals.
const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::GROW).union(SealFlags::SHRINK).union(SealFlags::SEAL);

/// Expected result of an operation, as recorded in the loadfile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// Success.
    Success,
    /// Failure.
    Failure,
    /// Not recorded.
    Any,
}

impl Expected {
    /// True if a result is the expected one.
    pub(super) const fn allows(self, success: bool) -> bool {
        match self {
            Self::Success => success,
            Self::Failure => !success,
            Self::Any => true,
        }
    }
}

/// Operation. The meaning of the numbers depends on its type:
///
/// | type | slot | name | second | size | offset |
/// |---|---|---|---|---|---|
/// | NTCreateX | new slot; none if failure is expected | path | create options | disposition | |
/// | Close, Flush, Qfileinfo, Sfileinfo | handle | path it was opened by | | | |
/// | ReadX, WriteX | handle | path it was opened by | bytes moved | bytes requested | offset |
/// | LockX, UnlockX | handle | path it was opened by | | bytes | offset |
/// | Rename | | old path | new path | | |
/// | Unlink, Mkdir, Rmdir, Deltree, Qpathinfo | | path | | | |
/// | Find | | pattern | directory to list; none without wildcards | maximum entries | |
/// | Qfsinfo | | | | | |
/// | Sleep | | | | | microseconds |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Op {
    /// Index of its type in [`ReplayOp::ALL`], decoded by [`Self::kind`]. The field is a byte
    /// instead of an enum, so that every bit pattern of the mapped memory is a valid `Op`.
    pub(super) kind: u8,
    /// Index of the expected result, decoded by [`Self::expected`].
    pub(super) expected: u8,
    /// Slot of the handle, or [`NO_SLOT`].
    pub(super) slot: u16,
    /// Index into [`Program::names`], or [`NO_NAME`].
    pub(super) name: u32,
    /// Second name, create options, or bytes moved, by type.
    pub(super) second: u32,
    /// Bytes, entries, or create disposition, by type.
    pub(super) size: u32,
    /// Offset in bytes, or microseconds to sleep, by type.
    pub(super) offset: u64,
    /// Timestamp in microseconds, decoded by [`Self::due`].
    pub(super) due: u64,
}

// The bytes are written to the file and read from it, so there must be no padding.
const _: () = assert!(size_of::<Op>() == 32 && align_of::<Op>() == 8);

impl Op {
    /// Operation without slot, names, numbers, and timestamp, which the caller adds.
    pub(super) const fn new(kind: ReplayOp, expected: Expected) -> Self {
        Self {
            kind: kind as u8,
            expected: expected as u8,
            slot: NO_SLOT,
            name: NO_NAME,
            second: NO_NAME,
            size: 0,
            offset: 0,
            due: NO_STAMP,
        }
    }

    /// The same operation with this timestamp in microseconds after the start of the loadfile.
    pub(super) const fn at(mut self, due: Option<u64>) -> Self {
        self.due = match due {
            Some(due) => due,
            None => NO_STAMP,
        };
        self
    }

    /// Type of the operation.
    pub(super) const fn kind(&self) -> ReplayOp {
        ReplayOp::ALL[self.kind as usize]
    }

    /// Expected result.
    pub(super) const fn expected(&self) -> Expected {
        match self.expected {
            0 => Expected::Success,
            1 => Expected::Failure,
            _ => Expected::Any,
        }
    }

    /// Timestamp in microseconds after the start of the loadfile; `None` if it has none.
    pub(super) const fn due(&self) -> Option<u64> {
        if self.due == NO_STAMP { None } else { Some(self.due) }
    }
}

/// Header of the memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
struct Header {
    magic: u64,
    ops: u64,
    names: u64,
    text: u64,
    slots: u64,
    largest: u64,
    timestamped: u64,
}

const _: () = assert!(size_of::<Header>() == 56 && align_of::<Header>() == 8);

/// Offsets of the parts of the memory in bytes.
#[derive(Clone, Copy, Debug)]
struct Layout {
    lines: usize,
    names: usize,
    text: usize,
    end: usize,
}

impl Layout {
    /// Layout; `None` if it does not fit in the address space.
    fn of(header: &Header) -> Option<Self> {
        let part = |begin: usize, count: u64, size: usize| {
            begin.checked_add(usize::try_from(count).ok()?.checked_mul(size)?)
        };
        let lines = part(size_of::<Header>(), header.ops, size_of::<Op>())?;
        let names = part(lines, header.ops, size_of::<u32>())?;
        let text = part(names, header.names, size_of::<names::Entry>())?;
        Some(Self { lines, names, text, end: part(text, header.text, 1)? })
    }
}

/// Operations of a loadfile, ready to be run by any number of clients.
#[derive(Debug)]
pub(crate) struct Program {
    mapping: Mapping,
    file: OwnedFd,
    header: Header,
    layout: Layout,
    facts: Environment,
}

impl Program {
    /// Maps the program that another process created, whose descriptor this process inherited.
    ///
    /// The content is trusted. The seals guarantee that it cannot change, and the header is checked
    /// against the length. All other data is used through checked indices: an invalid index
    /// terminates the worker, but never leads to other memory. The names were checked by the
    /// parent, which is the same program under the same user and could do the same operations
    /// itself.
    ///
    /// # Errors
    /// [`Fault::Memory`] if it cannot be mapped, or is not a program.
    pub(crate) fn attach(file: OwnedFd) -> Result<Self, Fault> {
        let bytes = fstat(&file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        Self::map(file, Environment::default()).map_err(|errno| Fault::Memory {
            what: Memory::Program,
            bytes,
            errno: errno.raw_os_error(),
        })
    }

    /// Maps a program. Fails with `EPERM` without the seals, `EINVAL` if the file is not a program.
    fn map(file: OwnedFd, facts: Environment) -> Result<Self, Errno> {
        if !fcntl_get_seals(&file)?.contains(SEALS) {
            return Err(Errno::PERM);
        }
        let len = usize::try_from(fstat(&file)?.st_size).map_err(|_| Errno::INVAL)?;
        let size = NonZeroUsize::new(len).ok_or(Errno::INVAL)?;
        if len < size_of::<Header>() {
            return Err(Errno::INVAL);
        }
        let mapping = Mapping::sealed(file.as_fd(), size)?;
        // SAFETY: the mapping is at least as long as a header, aligned to a page, and sealed
        // against changes; every bit pattern is a header.
        let header = unsafe { mapping.base().cast::<Header>().read() };
        let layout = Layout::of(&header).ok_or(Errno::INVAL)?;
        if header.magic != MAGIC || layout.end != len || header.slots > u64::from(NO_SLOT) {
            return Err(Errno::INVAL);
        }
        Ok(Self { mapping, file, header, layout, facts })
    }

    /// Sealed file for worker processes, to be passed to [`Self::attach`] in the child.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Operations in their order.
    pub(super) fn ops(&self) -> &[Op] {
        self.part(size_of::<Header>(), self.header.ops)
    }

    /// Line number in the loadfile of the operation with this index, from 1.
    pub(super) fn line(&self, op: usize) -> u64 {
        u64::from(self.part::<u32>(self.layout.lines, self.header.ops)[op])
    }

    /// Templates for the names of a client.
    pub(super) fn names(&self) -> Names<'_> {
        let entries = self.part(self.layout.names, self.header.names);
        Names::new(entries, self.part(self.layout.text, self.header.text))
    }

    /// Highest slot plus one: the maximum number of open handles.
    ///
    /// Before a client repeats the loadfile, it closes the handles that are still open.
    pub(super) fn slots(&self) -> usize {
        index(self.header.slots)
    }

    /// Bytes of the largest read or write.
    pub(super) fn largest(&self) -> usize {
        index(self.header.largest)
    }

    /// True if an operation has a timestamp.
    pub(super) fn timestamped(&self) -> bool {
        self.header.timestamped != 0
    }

    /// Facts about the loadfile: `loadfile.label`, `loadfile.sha256` (of its text),
    /// `loadfile.lines`, `loadfile.operations`, `loadfile.mix`, and `loadfile.path` for files. Only
    /// the process that parsed the loadfile has these facts.
    pub(super) fn facts(&self) -> &Environment {
        &self.facts
    }

    fn part<T: Plain>(&self, begin: usize, count: u64) -> &[T] {
        // SAFETY: `Layout::of` placed `count` values of type T at `begin`, within the length of the
        // mapping, which `map` compared with its end. The parts follow one another in descending
        // alignment from a page boundary, and each size is a multiple of the alignment of the next
        // part, so the values are aligned. `Plain` allows every bit pattern. No write is possible:
        // the file is sealed and the mapping is read-only; it lives as long as `self`.
        unsafe {
            slice::from_raw_parts(self.mapping.base().add(begin).cast().as_ptr(), index(count))
        }
    }
}

/// Counts of a mapped program fit in the address space, as `Layout::of` checked.
fn index(count: u64) -> usize {
    usize::try_from(count).expect("checked by Layout::of")
}

/// Values without padding for which every bit pattern is valid.
///
/// # Safety
/// The type has no padding, every bit pattern is valid, and the alignment is at most 8.
unsafe trait Plain: Copy {}

// SAFETY: integers only, without padding (asserted above), aligned to 8.
unsafe impl Plain for Op {}
// SAFETY: integers only, without padding, aligned to 8.
unsafe impl Plain for Header {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for u8 {}
// SAFETY: integers only, without padding (asserted next to the type), aligned to 4.
unsafe impl Plain for names::Entry {}

/// Bytes of plain values.
fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: `Plain` has no padding, so every byte is initialized; a byte needs no alignment.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

#[cfg(test)]
mod tests;
