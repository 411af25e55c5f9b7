//! The memory that the kernel reads names from, and writes answers to, while entries are in flight:
//! a block for each slot, at an address that stays, made before the clock starts.
#![expect(unsafe_code, reason = "names are put where the kernel is told that they are")]

use std::{ffi::CStr, num::NonZeroUsize};

use io_uring::types;

use super::call::Call;
use crate::{
    error::{Fault, Memory as What},
    mapping::Pages,
    set::{Names, ROOM},
};

/// A name of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// Its own, in the directory of the set.
    Entry,
    /// The same with the path of that directory.
    Path,
    /// With `.new` behind it.
    New,
    /// With `.link` behind it.
    Link,
    /// With `.none` behind it.
    Missing,
    /// In the directory that entries are renamed into.
    Across,
}

/// Those that are made of the name of the entry.
const OTHERS: [Text; 4] = [Text::New, Text::Link, Text::Missing, Text::Across];

/// Bytes for the value of an attribute.
pub(super) const VALUE_ROOM: u32 = 64;

/// Blocks begin on a cache line, and so does what the kernel writes.
const LINE: usize = 64;

/// See the module. A block has the path, other names, the answer of statx(2), and a value.
pub(super) struct Memory {
    base: *mut u8,
    // The mapping that `base` points to; not looked at.
    _pages: Pages,
    slots: usize,
    // Bytes of a block, and of a path.
    block: usize,
    room: usize,
    // Where the name begins in a path.
    before: usize,
    others: [Option<usize>; 4],
    status: usize,
    value: usize,
}

impl Memory {
    /// For so many slots, whose entries are called as `names` tells and get these calls.
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

    /// The byte `offset` of the block of a slot.
    fn at(&self, slot: u32, offset: usize) -> *mut u8 {
        let slot = slot as usize;
        assert!(slot < self.slots && offset < self.block, "a block exists for each slot");
        self.base.wrapping_add(slot * self.block + offset)
    }

    fn put(&self, slot: u32, offset: usize, room: usize, text: &CStr) {
        let bytes = text.to_bytes_with_nul();
        assert!(bytes.len() <= room, "a name fits into its room");
        let to = self.at(slot, offset);
        // SAFETY: the block has `room` bytes from `offset` on (`new`) and lies in the mapping,
        // which nothing in this program has a reference to; a name lies in memory of its own. What
        // the kernel still reads of a block is not overwritten, as `Chains` loads a slot only when
        // nothing of it is in flight.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// Puts the names of the entry that `names` is turned to into the block of a slot that has
    /// nothing in flight.
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

    /// Where a name is.
    #[inline]
    pub(super) fn text(&self, slot: u32, text: Text) -> *const libc::c_char {
        let other = |index: usize| self.others[index].expect("room was made for every call");
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

    /// Where statx(2) puts its answer.
    pub(super) fn status(&self, slot: u32) -> *mut types::statx {
        self.at(slot, self.status).cast()
    }

    /// Where the value of an attribute goes, of [`VALUE_ROOM`] bytes.
    pub(super) fn value(&self, slot: u32) -> *mut libc::c_void {
        self.at(slot, self.value).cast()
    }
}
