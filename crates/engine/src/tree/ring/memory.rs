//! Memory from which the kernel reads names, and to which it writes results, while entries are in
//! flight: a block per slot at a fixed address, allocated before the clock starts.
#![expect(unsafe_code, reason = "names are written to memory shared with the kernel")]

use std::{ffi::CStr, num::NonZeroUsize};

use io_uring::types;

use super::call::Call;
use crate::{
    error::{Fault, Memory as What},
    mapping::Pages,
    set::{Names, ROOM},
};

/// Name of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// Name of the entry, relative to the directory of the set.
    Entry,
    /// Name of the entry with the path of that directory.
    Path,
    /// Name with the suffix `.new`.
    New,
    /// Name with the suffix `.link`.
    Link,
    /// Name with the suffix `.none`.
    Missing,
    /// Name in the target directory of renames.
    Across,
}

/// Names derived from the name of the entry.
const OTHERS: [Text; 4] = [Text::New, Text::Link, Text::Missing, Text::Across];

/// Buffer size for the value of an attribute.
pub(super) const VALUE_ROOM: u32 = 64;

/// Alignment of blocks, and of data written by the kernel: a cache line.
const LINE: usize = 64;

/// Memory of all slots. The block of a slot contains the path, other names, the result of statx(2),
/// and the value of an attribute.
pub(super) struct Memory {
    base: *mut u8,
    // Mapping that `base` points to; keeps it alive.
    _pages: Pages,
    slots: usize,
    // Bytes of a block, and of a path.
    block: usize,
    room: usize,
    // Start of the name in a path.
    before: usize,
    others: [Option<usize>; 4],
    status: usize,
    value: usize,
}

impl Memory {
    /// Allocates memory for `slots` slots, for the names that these calls take from `names`.
    pub(super) fn new(calls: &[Call], names: &Names, slots: u32) -> Result<Self, Fault> {
        let before = names.path().count_bytes() - names.entry_name().count_bytes();
        let room = (before + ROOM).next_multiple_of(LINE);
        let mut end = room;
        let others = OTHERS.map(|text| {
            let used = calls.iter().any(|call| call.others().any(|other| other == text));
            used.then(|| {
                end += ROOM.next_multiple_of(LINE);
                end - ROOM.next_multiple_of(LINE)
            })
        });
        let status = end;
        let value = (status + size_of::<libc::statx>()).next_multiple_of(LINE);
        let block = value + VALUE_ROOM as usize;
        let slots = slots as usize;
        let len = NonZeroUsize::MIN.saturating_add(slots.saturating_mul(block) - 1);
        let mut pages = Pages::new(len).map_err(|errno| Fault::Memory {
            what: What::Buffers,
            bytes: len.get() as u64,
            errno: errno.raw_os_error(),
        })?;
        let base = pages.bytes_mut().as_mut_ptr();
        Ok(Self { base, _pages: pages, slots, block, room, before, others, status, value })
    }

    /// Address of byte `offset` of the block of a slot.
    fn at(&self, slot: u32, offset: usize) -> *mut u8 {
        let slot = slot as usize;
        assert!(slot < self.slots && offset < self.block, "slot or offset out of range");
        self.base.wrapping_add(slot * self.block + offset)
    }

    fn put(&self, slot: u32, offset: usize, room: usize, text: &CStr) {
        let bytes = text.to_bytes_with_nul();
        assert!(bytes.len() <= room, "a name fits in its buffer");
        let to = self.at(slot, offset);
        // SAFETY: the block has `room` bytes starting at `offset` (`new`) and is inside the
        // mapping, to which nothing in this program has a reference. A name is in separate memory.
        // Data is not overwritten while the kernel still reads it, because `Chains` loads a slot
        // only when nothing of the slot is in flight.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// Writes the names of the selected entry to the block of a slot that has nothing in flight.
    #[inline]
    pub(super) fn write(&self, slot: u32, names: &mut Names) {
        self.put(slot, 0, self.room, names.path());
        for (text, offset) in OTHERS.into_iter().zip(self.others) {
            let Some(offset) = offset else { continue };
            let other = match text {
                Text::New => names.with(b".new").1,
                Text::Link => names.with(b".link").1,
                Text::Missing => names.with(b".none").1,
                Text::Across => names.across().1,
                Text::Entry | Text::Path => continue,
            };
            self.put(slot, offset, ROOM, other);
        }
    }

    /// Address of a name.
    #[inline]
    pub(super) fn text(&self, slot: u32, text: Text) -> *const libc::c_char {
        let other = |index: usize| self.others[index].expect("allocated for every call");
        let offset = match text {
            Text::Path => 0,
            Text::Entry => self.before,
            Text::New => other(0),
            Text::Link => other(1),
            Text::Missing => other(2),
            Text::Across => other(3),
        };
        self.at(slot, offset).cast_const().cast()
    }

    /// Address of the result of statx(2).
    pub(super) fn status(&self, slot: u32) -> *mut types::statx {
        self.at(slot, self.status).cast()
    }

    /// Address of the value of an attribute, of [`VALUE_ROOM`] bytes.
    pub(super) fn value(&self, slot: u32) -> *mut libc::c_void {
        self.at(slot, self.value).cast()
    }
}
