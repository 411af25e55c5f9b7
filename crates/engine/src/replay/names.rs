//! Path names of one client, prepared before the clock starts.

use std::{
    ffi::{CStr, OsStr},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::{Program, program::Name};
use crate::error::{Fault, Memory};

/// Paths below the root, in one piece of memory: hundreds of clients have hundreds of names each.
pub(super) struct Names {
    // Each ends with a NUL.
    text: Box<[u8]>,
    places: Box<[NameEntry]>,
}

#[derive(Clone, Copy)]
struct NameEntry {
    // Start of the path, and start of the part after its last slash.
    begin: u32,
    base: u32,
    parent: u32,
}

impl Names {
    /// Prepares the names of this client.
    ///
    /// # Errors
    /// [`Fault::Memory`] if there is not enough memory.
    pub(super) fn new(program: &Program, client: u32) -> Result<Self, Fault> {
        let names = program.names();
        let room = names.iter().map(Name::room).sum::<usize>();
        let (mut text, mut places) = (Vec::new(), Vec::new());
        text.try_reserve_exact(room).and_then(|()| places.try_reserve_exact(names.len())).map_err(
            |_| Fault::Memory {
                what: Memory::Program,
                bytes: (room + names.len() * size_of::<NameEntry>()) as u64,
                errno: libc::ENOMEM,
            },
        )?;
        for name in names.iter() {
            let begin = text.len();
            name.append(client, &mut text);
            text.push(0);
            let base =
                text[begin..].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
            let offset = |at: usize| u32::try_from(at).expect("limited to 256 MiB");
            let (begin, base) = (offset(begin), offset(begin + base));
            places.push(NameEntry { begin, base, parent: name.parent });
        }
        Ok(Self { text: text.into(), places: places.into() })
    }

    /// Path of a name, relative to the root.
    #[inline]
    pub(super) fn path(&self, name: u32) -> &CStr {
        self.from(self.places[name as usize].begin)
    }

    /// Name in its directory.
    #[inline]
    pub(super) fn base(&self, name: u32) -> &[u8] {
        self.from(self.places[name as usize].base).to_bytes()
    }

    /// Index of the name of its directory.
    #[inline]
    pub(super) fn parent(&self, name: u32) -> u32 {
        self.places[name as usize].parent
    }

    /// Full path, for errors.
    pub(super) fn joined(&self, root: &Path, name: u32) -> PathBuf {
        root.join(OsStr::from_bytes(self.path(name).to_bytes()))
    }

    #[inline]
    fn from(&self, begin: u32) -> &CStr {
        CStr::from_bytes_until_nul(&self.text[begin as usize..]).expect("each ends with a NUL")
    }
}
