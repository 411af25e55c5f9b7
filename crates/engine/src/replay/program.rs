//! The program of a replay: what a load file asks for, in a form that clients run without reading
//! text.
//!
//! A [`Builder`] takes operations in their order, from the reader of load files or from our own
//! load. [`Builder::finish`] puts them into one piece of memory, a file without a name
//! (memfd_create(2)) that is sealed, so that nobody can change it any more. All clients map it for
//! reading: threads use one mapping, and a process adopts the descriptor that it inherits.
//!
//! ```text
//! header | operations, 32 bytes each | numbers of lines | names | text of the names
//! ```
//!
//! Names are relative to the root of a client, never lead out of it, and stand in the text with a
//! NUL byte where the load file has `client1`, which the number of the client replaces. Handles are
//! slots: small numbers without gaps, of which a slot is used again after it was closed.
//!
//! Deliberately not here: text of load files (`load`), and doing anything (`client`).
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

/// Slot of an operation that has no handle.
pub(super) const NO_SLOT: u16 = u16::MAX;
/// Name of an operation that has none.
pub(super) const NO_NAME: u32 = u32::MAX;
/// Stamp of an operation that has none.
const NO_STAMP: u64 = u64::MAX;
/// First word of a program; its last digit is the version of the layout.
const MAGIC: u64 = 0x6673_6c61_625f_7031;
/// Nothing may change a program, nor allow it again.
const SEALS: SealFlags =
    SealFlags::WRITE.union(SealFlags::GROW).union(SealFlags::SHRINK).union(SealFlags::SEAL);

/// How an operation went when the load file was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    /// It succeeded.
    Success,
    /// It failed.
    Failure,
    /// The load file does not say.
    Any,
}

impl Expected {
    /// Whether an outcome is the one expected.
    pub(super) const fn allows(self, success: bool) -> bool {
        match self {
            Self::Success => success,
            Self::Failure => !success,
            Self::Any => true,
        }
    }
}

/// One operation. What the numbers mean depends on its kind:
///
/// | kind | slot | name | second | size | offset |
/// |---|---|---|---|---|---|
/// | NTCreateX | takes it; none if failure is expected | path | create options | disposition | |
/// | Close, Flush, Qfileinfo, Sfileinfo | handle | path it was opened by | | | |
/// | ReadX, WriteX | handle | the same | bytes that were moved | bytes asked for | offset |
/// | LockX, UnlockX | handle | the same | | bytes | offset |
/// | Rename | | old path | new path | | |
/// | Unlink, Mkdir, Rmdir, Deltree, Qpathinfo | | path | | | |
/// | Find | | pattern | directory to list; none without wildcards | entries at most | |
/// | Qfsinfo | | | | | |
/// | Sleep | | | | | microseconds |
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Op {
    /// Number of its kind in [`ReplayOp::ALL`], told by [`Self::kind`]: a byte instead of an enum,
    /// as are the others, so that every bit pattern of the mapped memory is an operation.
    pub(super) kind: u8,
    /// Number of what is expected, told by [`Self::expected`].
    pub(super) expected: u8,
    /// Slot of the handle, or [`NO_SLOT`].
    pub(super) slot: u16,
    /// Index into [`Program::names`], or [`NO_NAME`].
    pub(super) name: u32,
    /// A second name, the options of an open, or the bytes that were moved, by kind.
    pub(super) second: u32,
    /// Bytes, entries, or the disposition of an open, by kind.
    pub(super) size: u32,
    /// Offset in bytes, or microseconds to sleep, by kind.
    pub(super) offset: u64,
    /// Microseconds, told by [`Self::due`].
    pub(super) due: u64,
}

// Its bytes go to the file and come back from it, so there must be no padding.
const _: () = assert!(size_of::<Op>() == 32 && align_of::<Op>() == 8);

impl Op {
    /// An operation without slot, names, numbers, and stamp, which the caller adds.
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

    /// The same operation, to be begun so many microseconds after the load file begins.
    pub(super) const fn at(mut self, due: Option<u64>) -> Self {
        self.due = match due {
            Some(due) => due,
            None => NO_STAMP,
        };
        self
    }

    /// What it does.
    pub(super) const fn kind(&self) -> ReplayOp {
        ReplayOp::ALL[self.kind as usize]
    }

    /// How it is expected to go.
    pub(super) const fn expected(&self) -> Expected {
        match self.expected {
            0 => Expected::Success,
            1 => Expected::Failure,
            _ => Expected::Any,
        }
    }

    /// When it begins, in microseconds after the load file begins; `None` if it has no stamp.
    pub(super) const fn due(&self) -> Option<u64> {
        if self.due == NO_STAMP { None } else { Some(self.due) }
    }
}

/// What the memory begins with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
struct Header {
    magic: u64,
    ops: u64,
    names: u64,
    text: u64,
    slots: u64,
    largest: u64,
    stamped: u64,
}

const _: () = assert!(size_of::<Header>() == 56 && align_of::<Header>() == 8);

/// Where the parts of the memory begin, in bytes.
#[derive(Clone, Copy, Debug)]
struct Layout {
    lines: usize,
    names: usize,
    text: usize,
    end: usize,
}

impl Layout {
    /// `None` if it does not fit into the address space.
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

/// The operations of a load file, ready to be run by any number of clients.
#[derive(Debug)]
pub(crate) struct Program {
    mapping: Mapping,
    file: OwnedFd,
    header: Header,
    layout: Layout,
    facts: Environment,
}

impl Program {
    /// Maps the program that another process made, whose descriptor this one inherited.
    ///
    /// What it holds is trusted. Its seals prove that nothing can change it, its header is checked
    /// against its length, and whatever else its bytes say is used through checked indices: a
    /// wrong one ends the worker, and never reaches other memory. Its names were checked by the
    /// parent, which is the same program under the same user and could do what a name asks for
    /// anyway.
    ///
    /// # Errors
    /// [`Fault::Memory`] when it cannot be mapped, or is no program.
    pub(crate) fn adopt(file: OwnedFd) -> Result<Self, Fault> {
        let bytes = fstat(&file).map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0));
        Self::map(file, Environment::default()).map_err(|errno| Fault::Memory {
            what: Memory::Program,
            bytes,
            errno: errno.raw_os_error(),
        })
    }

    /// `EPERM` without its seals, `EINVAL` if it is no program.
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
        // against change; every bit pattern is a header.
        let header = unsafe { mapping.base().cast::<Header>().read() };
        let layout = Layout::of(&header).ok_or(Errno::INVAL)?;
        if header.magic != MAGIC || layout.end != len || header.slots > u64::from(NO_SLOT) {
            return Err(Errno::INVAL);
        }
        Ok(Self { mapping, file, header, layout, facts })
    }

    /// The sealed file, for workers that are processes: [`Self::adopt`] in the child.
    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The operations in their order.
    pub(super) fn ops(&self) -> &[Op] {
        self.part(size_of::<Header>(), self.header.ops)
    }

    /// Number of the line of the load file that the operation with this index is from, from 1.
    pub(super) fn line(&self, op: usize) -> u64 {
        u64::from(self.part::<u32>(self.layout.lines, self.header.ops)[op])
    }

    /// The names, templates for those of a client.
    pub(super) fn names(&self) -> Names<'_> {
        let entries = self.part(self.layout.names, self.header.names);
        Names::new(entries, self.part(self.layout.text, self.header.text))
    }

    /// One more than the highest slot: how many handles are open at most.
    ///
    /// What is open at the end is for the client to close before it begins anew.
    pub(super) fn slots(&self) -> usize {
        index(self.header.slots)
    }

    /// Bytes of the largest read or write.
    pub(super) fn largest(&self) -> usize {
        index(self.header.largest)
    }

    /// Whether an operation has a stamp.
    pub(super) fn stamped(&self) -> bool {
        self.header.stamped != 0
    }

    /// What results say about the load file: `load.label`, `load.sha256` (of its text),
    /// `load.lines`, `load.operations`, `load.mix`, and `load.path` if it is a file. Only the
    /// process that read it has them.
    pub(super) fn facts(&self) -> &Environment {
        &self.facts
    }

    fn part<T: Plain>(&self, begin: usize, count: u64) -> &[T] {
        // SAFETY: `Layout::of` placed `count` values of type T at `begin`, within the length of
        // the mapping, which `map` compared with its end. The parts follow one another in falling
        // alignment from a page boundary, and each is a multiple of the alignment of the next, so
        // that it is aligned. `Plain` allows every bit pattern. Nobody writes: the file is sealed
        // and the mapping is read-only; it lives as long as `self`.
        unsafe {
            slice::from_raw_parts(self.mapping.base().add(begin).cast().as_ptr(), index(count))
        }
    }
}

/// Counts of a mapped program fit into the address space, as `Layout::of` found.
fn index(count: u64) -> usize {
    usize::try_from(count).expect("checked by Layout::of")
}

/// Values without padding for which every bit pattern is one.
///
/// # Safety
/// As the first sentence says; the alignment is at most 8.
unsafe trait Plain: Copy {}

// SAFETY: integers only, without padding (asserted above), aligned to 8.
unsafe impl Plain for Op {}
// SAFETY: integers only, without padding, aligned to 8.
unsafe impl Plain for Header {}
// SAFETY: an integer.
unsafe impl Plain for u32 {}
// SAFETY: an integer.
unsafe impl Plain for u8 {}
// SAFETY: integers only, without padding (asserted beside it), aligned to 4.
unsafe impl Plain for names::Entry {}

/// The bytes of plain values.
fn bytes_of<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: `Plain` has no padding, so every byte is initialized; a byte needs no alignment.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

#[cfg(test)]
mod tests;
