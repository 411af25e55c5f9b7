//! Names of a program: paths below the root of a client, each with its directory.
//!
//! The input is a name of a loadfile, the output the path of one client. Names that would lead out
//! of the root are rejected here.

use std::{collections::HashMap, mem::size_of};

use model::Bytes;

use super::NO_NAME;

/// Index of the root of the client, which always exists.
pub(crate) const ROOT: u32 = 0;
/// Placeholder in a template for `client` and the number of the client.
pub(crate) const MARK: u8 = 0;
/// Text in loadfiles that is replaced per client.
const CLIENT: &[u8] = b"client1";
/// Longest text for [`MARK`]: `client4294967295`.
const LONGEST_CLIENT: usize = 16;
/// Maximum bytes of a file name: `NAME_MAX` of linux/limits.h.
const LONGEST_NAME: usize = 255;
/// Maximum bytes of a path: `PATH_MAX` of linux/limits.h without its NUL.
const LONGEST_PATH: usize = 4095;

/// Bytes of names in all spellings that are cached for lookups.
const SPELLINGS: usize = 64 << 20;

/// Limits of the names of a program. Each client creates paths for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameLimits {
    /// Number of names, including the root and the directories of other names.
    pub(crate) count: u32,
    /// Bytes of the paths of the client with the longest number.
    pub(crate) bytes: u64,
}

impl NameLimits {
    /// Far more than the hundreds of names in recorded loadfiles. Two hundred clients with this
    /// maximum take 50 GiB, which a large server has.
    pub(crate) const FULL: Self = Self { count: 1_000_000, bytes: 256 << 20 };
}

/// Problem of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameProblem {
    /// The name begins with a second slash or backslash.
    Absolute,
    /// The name contains the part `..`.
    Escapes,
    /// The name contains a NUL byte.
    Nul,
    /// The name, or a part of it, is longer than Linux allows if `client1` is replaced by the
    /// longest client number.
    Long,
    /// The loadfile has more than this number of names.
    Many {
        /// [`NameLimits::count`].
        most: u32,
    },
    /// The paths of one client exceed this size.
    Large {
        /// [`NameLimits::bytes`].
        most: Bytes,
    },
}

/// Location of a name in the memory of a program.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Entry {
    begin: u32,
    len: u32,
    pub(super) parent: u32,
}

const _: () = assert!(size_of::<Entry>() == 12);

/// All names of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Names<'a> {
    entries: &'a [Entry],
    text: &'a [u8],
}

impl<'a> Names<'a> {
    pub(super) fn new(entries: &'a [Entry], text: &'a [u8]) -> Self {
        Self { entries, text }
    }

    /// Number of names; their indices are `0..len`.
    pub(crate) fn len(self) -> usize {
        self.entries.len()
    }

    /// Name by its index.
    pub(crate) fn get(self, index: u32) -> Name<'a> {
        let Entry { begin, len, parent } = self.entries[index as usize];
        Name { template: &self.text[begin as usize..][..len as usize], parent }
    }

    /// All names in the order of their indices.
    pub(crate) fn iter(self) -> impl ExactSizeIterator<Item = Name<'a>> {
        let len = u32::try_from(self.entries.len()).expect("counted in u32 when interned");
        (0..len).map(move |index| self.get(index))
    }
}

/// One name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'a> {
    /// Path below the root of the client, `.` for the root itself, with [`MARK`] for every
    /// `client1`.
    pub(crate) template: &'a [u8],
    /// Index of the name of its directory; the root is its own directory. [`NO_NAME`] for a name
    /// that occurs only as the directory of other names. No operation needs the directory of such a
    /// name, and each part of a long path would otherwise be stored.
    pub(crate) parent: u32,
}

impl Name<'_> {
    /// Path for the client with this number, relative to its root.
    #[cfg(test)]
    pub(crate) fn path(self, client: u32) -> std::ffi::CString {
        let mut path = Vec::with_capacity(self.room());
        self.append(client, &mut path);
        std::ffi::CString::new(path).expect("NUL bytes were marks, and are replaced")
    }

    /// Appends the path for this client, without a trailing NUL.
    pub(crate) fn append(self, client: u32, path: &mut Vec<u8>) {
        let client = format!("client{client}");
        for (index, part) in self.template.split(|byte| *byte == MARK).enumerate() {
            if index > 0 {
                path.extend_from_slice(client.as_bytes());
            }
            path.extend_from_slice(part);
        }
    }

    /// Maximum bytes of the path for any client, including the NUL.
    pub(crate) fn room(self) -> usize {
        room(self.template)
    }
}

fn room(template: &[u8]) -> usize {
    expanded(template) + 1
}

/// Bytes of a template with the longest client number.
fn expanded(template: &[u8]) -> usize {
    template.iter().map(|byte| if *byte == MARK { LONGEST_CLIENT } else { 1 }).sum()
}

/// Names that are being collected.
#[derive(Debug)]
pub(super) struct Interner {
    pub(super) entries: Vec<Entry>,
    pub(super) text: Vec<u8>,
    // By template.
    known: HashMap<Box<[u8]>, u32>,
    // By spelling in the loadfile, so that a known name takes one lookup; and bytes of all
    // spellings.
    written: HashMap<Box<[u8]>, u32>,
    spelled: usize,
    limits: NameLimits,
    // Counted for [`NameLimits::bytes`].
    bytes: u64,
}

impl Interner {
    pub(super) fn new(limits: NameLimits) -> Self {
        Self {
            limits,
            bytes: room(b".") as u64,
            spelled: 0,
            entries: vec![Entry { begin: 0, len: 1, parent: ROOT }],
            text: vec![b'.'],
            known: HashMap::new(),
            written: HashMap::new(),
        }
    }

    /// Index of a name of a loadfile: a leading slash, empty parts, and parts that are `.` are
    /// ignored.
    pub(super) fn index(&mut self, name: &[u8]) -> Result<u32, NameProblem> {
        if let Some(index) = self.written.get(name) {
            return Ok(*index);
        }
        let template = template(name)?;
        let index = self.intern(&template)?;
        if self.spelled + name.len() > SPELLINGS {
            self.written.clear();
            self.spelled = 0;
        }
        self.spelled += name.len();
        self.written.insert(name.into(), index);
        Ok(index)
    }

    /// Index of a template whose parts were checked.
    fn intern(&mut self, template: &[u8]) -> Result<u32, NameProblem> {
        if template.is_empty() {
            return Ok(ROOT);
        }
        let index = self.known.get(template).copied();
        if let Some(index) = index
            && self.entries[index as usize].parent != NO_NAME
        {
            return Ok(index);
        }
        let parent = match template.iter().rposition(|byte| *byte == b'/') {
            None => ROOT,
            Some(end) => match self.known.get(&template[..end]) {
                Some(index) => *index,
                None => self.add(&template[..end], NO_NAME)?,
            },
        };
        let Some(index) = index else { return self.add(template, parent) };
        // It was only the directory of others.
        self.entries[index as usize].parent = parent;
        Ok(index)
    }

    fn add(&mut self, template: &[u8], parent: u32) -> Result<u32, NameProblem> {
        let NameLimits { count, bytes } = self.limits;
        let many = NameProblem::Many { most: count };
        let index = u32::try_from(self.entries.len()).map_err(|_| many)?;
        if index >= count {
            return Err(many);
        }
        let large = NameProblem::Large { most: Bytes(bytes) };
        let after = self.bytes + room(template) as u64;
        if after > bytes {
            return Err(large);
        }
        let number = |count: usize| u32::try_from(count).map_err(|_| large);
        let (begin, len) = (number(self.text.len())?, number(template.len())?);
        self.bytes = after;
        self.text.extend_from_slice(template);
        self.entries.push(Entry { begin, len, parent });
        self.known.insert(template.into(), index);
        Ok(index)
    }
}

/// Name below the root, with [`MARK`] for `client1`; empty for the root.
fn template(name: &[u8]) -> Result<Vec<u8>, NameProblem> {
    if name.contains(&0) {
        return Err(NameProblem::Nul);
    }
    let name = name.strip_prefix(b"/").unwrap_or(name);
    if name.first() == Some(&b'/') {
        return Err(NameProblem::Absolute);
    }
    let (mut path, mut longest) = (Vec::with_capacity(name.len()), 0);
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => continue,
            b".." => return Err(NameProblem::Escapes),
            _ => {}
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        let begin = path.len();
        mark(part, &mut path);
        let len = expanded(&path[begin..]);
        longest += len + 1;
        if len > LONGEST_NAME || longest > LONGEST_PATH {
            return Err(NameProblem::Long);
        }
    }
    Ok(path)
}

/// Appends a part to a path, with [`MARK`] for every `client1`.
fn mark(mut part: &[u8], path: &mut Vec<u8>) {
    while let Some((first, rest)) = part.split_first() {
        if let Some(rest) = part.strip_prefix(CLIENT) {
            path.push(MARK);
            part = rest;
        } else {
            path.push(*first);
            part = rest;
        }
    }
}
