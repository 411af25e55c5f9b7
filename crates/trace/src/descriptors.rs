//! Descriptors, working directories, and masks of the processes of a recorded program, with their
//! sharing.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use crate::NONE;

/// Descriptor of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    /// Number of the descriptor in the recording.
    pub(crate) slot: u32,
    /// True if execve(2) closes it.
    pub(crate) cloexec: bool,
}

/// Descriptors of a process that refer to files below the root.
pub(crate) type Table = Rc<RefCell<BTreeMap<i32, Held>>>;

/// Working directory and mask of a process (`fs_struct` of the kernel).
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Absolute path.
    pub(crate) path: Vec<u8>,
    /// Descriptor of the recording for the directory; [`NONE`] for the root, and outside.
    pub(crate) slot: u32,
    /// File mode creation mask.
    pub(crate) umask: u32,
}

/// References to descriptors of the recording.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    references: HashMap<u32, u32>,
    /// Absolute paths of the descriptors when they were opened.
    paths: HashMap<u32, Vec<u8>>,
    last: u32,
}

impl Slots {
    /// New descriptor.
    pub(crate) fn open(&mut self, path: Vec<u8>) -> u32 {
        self.last += 1;
        self.references.insert(self.last, 1);
        self.paths.insert(self.last, path);
        self.last
    }

    /// Adds a reference, such as that of a child process.
    pub(crate) fn hold(&mut self, slot: u32) {
        if let Some(count) = self.references.get_mut(&slot) {
            *count += 1;
        }
    }

    /// Removes a reference. Returns true if it was the last.
    pub(crate) fn drop(&mut self, slot: u32) -> bool {
        let Some(count) = self.references.get_mut(&slot) else { return false };
        *count -= 1;
        if *count > 0 {
            return false;
        }
        self.references.remove(&slot);
        self.paths.remove(&slot);
        true
    }

    pub(crate) fn path(&self, slot: u32) -> Option<&[u8]> {
        self.paths.get(&slot).map(Vec::as_slice)
    }

    /// Copy of a table and a place for a child process.
    pub(crate) fn copy(&mut self, table: &Table) -> Table {
        let copy = table.borrow().clone();
        copy.values().for_each(|held| self.hold(held.slot));
        Rc::new(RefCell::new(copy))
    }

    pub(crate) fn copy_place(&mut self, place: &RefCell<Place>) -> Rc<RefCell<Place>> {
        let copy = place.borrow().clone();
        if copy.slot != NONE {
            self.hold(copy.slot);
        }
        Rc::new(RefCell::new(copy))
    }
}
