//! Names of entries, written into preallocated memory, and parsed back.
//!
//! In creation order, most names differ from the previous one in the last digit only, so only that
//! digit is written. The number of a directory is computed by a division only when the directory
//! changes. The path of the set's directory is stored directly before the name. A call without a
//! directory argument gets the address of the path, so the path needs no copy.
#![expect(unsafe_code, reason = "searching a NUL in each name takes longer than writing it")]

use std::{ffi::CStr, os::unix::ffi::OsStrExt, path::Path};

use model::phase::{DirectoryTree, Naming, Set, Sharing, Spread};

use super::{draw, stream};

/// Space for a directory, a slash, a worker, the longest name that a plan may request, the longest
/// suffix, and the NUL.
pub(crate) const ROOM: usize = 1152;

/// Longest name of [`Naming::Padded`], without the worker's prefix.
pub(crate) const LONGEST: u32 = 1024;

/// Directory into which entries are renamed, see [`Names::across`].
pub(crate) const ACROSS: &CStr = c"across";

/// Space for a directory of a tree: its prefix, a worker, a number, and a slash.
const LEVEL: usize = 48;

/// Purpose of the stream from which random parts of names are drawn, see [`drawn`].
const PURPOSE: u64 = 0x6E61_6D65;

/// Characters of random parts of names.
const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Text that ends with a NUL, written after a constant prefix.
struct Text {
    bytes: Box<[u8]>,
    // Start of the part that changes.
    base: usize,
    len: usize,
}

impl Text {
    /// Empty text after `before`, with space for `levels` directories of a tree.
    fn new(before: &[u8], levels: usize) -> Self {
        let base = before.len();
        let mut bytes = vec![0; base + ROOM + levels * LEVEL].into_boxed_slice();
        bytes[..base].copy_from_slice(before);
        Self { bytes, base, len: base }
    }

    #[inline]
    fn cut(&mut self, len: usize) {
        self.len = len;
        self.bytes[len] = 0;
    }

    #[inline]
    fn push(&mut self, part: &[u8]) {
        self.bytes[self.len..][..part.len()].copy_from_slice(part);
        self.len += part.len();
        self.bytes[self.len] = 0;
    }

    /// Appends a decimal number with at least `least` digits.
    #[inline]
    fn push_decimal(&mut self, number: u64, least: usize) {
        let mut digits = [b'0'; 20];
        let (mut at, mut rest) = (digits.len(), number);
        while rest > 0 || digits.len() - at < least {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.push(&digits[at..]);
    }

    /// Appends the first `count` bytes of a part. The whole part is copied, which is faster.
    #[inline]
    fn push_part(&mut self, part: &[u8; 12], count: usize) {
        self.bytes[self.len..][..part.len()].copy_from_slice(part);
        self.len += count;
        self.bytes[self.len] = 0;
    }

    /// Appends a number as at least ten hexadecimal digits.
    #[inline]
    fn push_hexadecimal(&mut self, number: u64) {
        let digit =
            |place: u32| b"0123456789abcdef"[usize::from((number >> (4 * place) & 15) as u8)];
        let more = (64 - number.leading_zeros()).div_ceil(4).max(10);
        for place in (10..more).rev() {
            self.push(&[digit(place)]);
        }
        let mut digits = [0; 10];
        for (place, byte) in (0..10).rev().zip(&mut digits) {
            *byte = digit(place);
        }
        self.push(&digits);
    }

    /// Text starting at `from`.
    #[inline]
    fn get(&self, from: usize) -> &CStr {
        let text = &self.bytes[from..=self.len];
        debug_assert!(CStr::from_bytes_with_nul(text).is_ok(), "no NUL before the end");
        // SAFETY: all code that changes `len` writes a NUL there, and appended text contains none:
        // digits, letters, suffixes, names of directory entries, and a path.
        unsafe { CStr::from_bytes_with_nul_unchecked(text) }
    }
}

/// Names of the entries of one owner, relative to the directory of the set.
pub(crate) struct Names {
    naming: Naming,
    // Entries per directory; 0 if they are in the directory of the set.
    each: u64,
    owner: u32,
    // Seed of the set, and stream from which letters are drawn.
    seed: u64,
    letters: u64,
    // Directories of the entries, and true if the owner is part of their names.
    tree: Option<DirectoryTree>,
    owned: bool,
    // True if names begin with the owner.
    has_prefix: bool,
    // Path of the set's directory with a slash, directory with a slash, name.
    text: Text,
    // Start of the name.
    directory: usize,
    // Entries whose directory is in the text: first one, and end.
    first: u64,
    end: u64,
    // Current entry, and the position of its last decimal digit: 0 if it has none.
    entry: u64,
    digit: usize,
    other: Text,
}

impl Names {
    /// Names without a current entry.
    pub(crate) fn new(set: &Set, owner: u32) -> Self {
        Self::within(set, owner, Path::new(""))
    }

    /// Like [`Self::new`], with the path of the set's directory for [`Self::path`].
    pub(crate) fn within(set: &Set, owner: u32, root: &Path) -> Self {
        let (each, tree) = match set.spread {
            Spread::Flat => (0, None),
            Spread::Directories { each } => (each.max(1), None),
            Spread::Tree(tree) => (tree.each.max(1), Some(tree)),
        };
        let levels = tree.map_or(0, |tree| tree.depth.min(DirectoryTree::DEEPEST) as usize + 1);
        let mut before = root.as_os_str().as_bytes().to_vec();
        if !before.is_empty() {
            before.push(b'/');
        }
        let text = Text::new(&before, levels);
        Self {
            naming: set.naming,
            each,
            owner,
            seed: set.seed,
            letters: stream(set.seed, owner, PURPOSE),
            tree,
            owned: set.sharing == Sharing::Private,
            has_prefix: set.sharing == Sharing::Directory
                && !matches!(set.naming, Naming::Mdtest { .. } | Naming::TreeDirectories),
            directory: text.len,
            text,
            first: 0,
            end: if each == 0 { u64::MAX } else { 0 },
            entry: 0,
            digit: 0,
            other: Text::new(b"", levels),
        }
    }

    /// Selects another owner, and no entry. The directory of the set must be the same.
    pub(crate) fn select_owner(&mut self, owner: u32) {
        self.owner = owner;
        self.letters = stream(self.seed, owner, PURPOSE);
        self.digit = 0;
        if self.each > 0 {
            (self.first, self.end) = (0, 0);
        }
    }

    /// Owner of the entries.
    pub(crate) fn owner(&self) -> u32 {
        self.owner
    }

    /// Selects an entry.
    #[inline]
    pub(crate) fn set(&mut self, entry: u64) {
        if self.digit > 0 && entry == self.entry.wrapping_add(1) && entry < self.end {
            let last = &mut self.text.bytes[self.digit];
            if *last < b'9' {
                *last += 1;
                self.entry = entry;
                return;
            }
        }
        self.write(entry);
    }

    fn write(&mut self, entry: u64) {
        if self.naming == Naming::TreeDirectories {
            self.write_directory(entry);
            return;
        }
        self.enter(entry);
        self.entry = entry;
        self.push_prefix();
        match self.naming {
            Naming::Numbers => {
                self.text.push_decimal(entry, 1);
                self.digit = self.text.len - 1;
            }
            Naming::Padded { length } => {
                let begun = self.text.len;
                self.text.push_decimal(entry, 1);
                self.digit = self.text.len - 1;
                let end = (begun + length.min(LONGEST) as usize).max(self.text.len);
                self.text.bytes[self.text.len..end].fill(b'_');
                self.text.cut(end);
            }
            Naming::Ordered => {
                self.text.push_hexadecimal(entry);
                self.push_letters(entry);
            }
            Naming::Scrambled => {
                self.push_letters(entry);
                self.text.push_hexadecimal(entry);
            }
            Naming::Mdtest { directories } => {
                self.text.push(if directories { b"dir.mdtest." } else { b"file.mdtest." });
                self.text.push_decimal(u64::from(self.owner), 1);
                self.text.push(b".");
                self.text.push_decimal(entry, 1);
                self.digit = self.text.len - 1;
            }
            Naming::TreeDirectories => unreachable!("written above"),
        }
    }

    /// Selects a directory of the tree as entry.
    fn write_directory(&mut self, number: u64) {
        (self.entry, self.digit) = (number, 0);
        self.push_directory(number);
        self.text.cut(self.text.len - 1);
        self.directory = self.text.base;
        (self.first, self.end) = (0, 0);
    }

    /// Replaces the text by a directory of the tree, with a slash.
    fn push_directory(&mut self, number: u64) {
        let Some(tree) = self.tree else { return };
        let branching = u64::from(tree.branching.max(1));
        let mut path = [0; DirectoryTree::DEEPEST as usize + 1];
        let (mut levels, mut rest) = (0, number);
        loop {
            path[levels] = rest;
            levels += 1;
            if rest == 0 || levels == path.len() {
                break;
            }
            rest = (rest - 1) / branching;
        }
        self.text.cut(self.text.base);
        for directory in path[..levels].iter().rev() {
            self.text.push(b"mdtest_tree.");
            if self.owned {
                self.text.push_decimal(u64::from(self.owner), 1);
                self.text.push(b".");
            }
            self.text.push_decimal(*directory, 1);
            self.text.push(b"/");
        }
    }

    /// Selects the directory of an entry, but no entry in it.
    pub(crate) fn enter(&mut self, entry: u64) {
        self.digit = 0;
        if self.each > 0 && !(self.first..self.end).contains(&entry) {
            let number = entry / self.each;
            let digits = match self.naming {
                Naming::Numbers
                | Naming::Padded { .. }
                | Naming::Mdtest { .. }
                | Naming::TreeDirectories => 1,
                Naming::Ordered | Naming::Scrambled => 5,
            };
            match self.tree {
                Some(tree) => self.push_directory(tree.first() + number),
                None => {
                    self.text.cut(self.text.base);
                    self.text.push_decimal(number, digits);
                    self.text.push(b"/");
                }
            }
            self.directory = self.text.len;
            self.first = number * self.each;
            self.end = self.first.saturating_add(self.each);
        }
        self.text.cut(self.directory);
    }

    /// Selects an entry whose name in its directory is known.
    pub(crate) fn set_found(&mut self, entry: u64, name: &[u8]) {
        self.enter(entry);
        self.entry = entry;
        self.text.push(name);
    }

    /// Number of the entry.
    pub(crate) fn number(&self) -> u64 {
        self.entry
    }

    /// True if the entry is the first one of its directory.
    pub(crate) fn begins(&self) -> bool {
        self.entry == self.first
    }

    #[inline]
    fn push_prefix(&mut self) {
        if self.has_prefix {
            self.text.push_decimal(u64::from(self.owner), 1);
            self.text.push(b"-");
        }
    }

    /// 0 to 12 letters, each length with the same probability. All twelve are drawn, which is
    /// faster than a loop with an unpredictable end.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "halves of a product are what is wanted")]
    fn push_letters(&mut self, entry: u64) {
        let mut first = draw(self.letters, entry);
        let mut last = draw(self.letters, first);
        // Multiplication instead of division: the lower half of the product is the input of the
        // next draw. 13 * 62^6 < 2^40, so the bias is below 2^-24.
        let below = |random: &mut u64, limit: u64| {
            let product = u128::from(*random) * u128::from(limit);
            *random = product as u64;
            (product >> 64) as usize
        };
        let count = below(&mut first, 13);
        let mut letters = [0; 12];
        for place in 0..6 {
            letters[place] = LETTERS[below(&mut first, 62)];
            letters[place + 6] = LETTERS[below(&mut last, 62)];
        }
        self.text.push_part(&letters, count);
    }

    /// Number of the entry with this name in its directory; `None` if no entry of this owner has
    /// the name, or if the name was created by [`Self::with`].
    pub(crate) fn entry(&self, name: &[u8]) -> Option<u64> {
        let name = if self.has_prefix {
            let (owner, rest) = name.split_at(name.iter().position(|byte| *byte == b'-')?);
            if number(owner)? != u64::from(self.owner) {
                return None;
            }
            &rest[1..]
        } else {
            name
        };
        match self.naming {
            Naming::Numbers => number(name),
            Naming::Padded { .. } => {
                let end = name.iter().position(|byte| *byte == b'_').unwrap_or(name.len());
                // A suffix follows the underscores and begins with a dot.
                number(&name[..end]).filter(|_| !name[end..].contains(&b'.'))
            }
            Naming::Mdtest { directories } => {
                let name = name.strip_prefix(match directories {
                    true => &b"dir.mdtest."[..],
                    false => b"file.mdtest.",
                })?;
                let dot = name.iter().position(|byte| *byte == b'.')?;
                let owner = number(&name[..dot])?;
                number(&name[dot + 1..]).filter(|_| owner == u64::from(self.owner))
            }
            Naming::TreeDirectories => None,
            // Suffixes begin with a dot, which names do not contain.
            Naming::Ordered => hexadecimal(name.get(..10)?)
                .filter(|_| name[10..].iter().all(u8::is_ascii_alphanumeric)),
            Naming::Scrambled => hexadecimal(name.get(name.len().checked_sub(10)?..)?)
                .filter(|_| name.iter().all(u8::is_ascii_alphanumeric)),
        }
    }

    /// Directory of the entry; `.` if the entry is in the directory of the set.
    pub(crate) fn directory(&mut self) -> &CStr {
        self.other.cut(0);
        if self.each == 0 || self.directory == self.text.base {
            self.other.push(b".");
        } else {
            self.other.push(&self.text.bytes[self.text.base..self.directory - 1]);
        }
        self.other.get(0)
    }

    /// Directory of the entry; `None` if the entry is in the directory of the set.
    pub(crate) fn parent(&mut self) -> Option<&CStr> {
        (self.each > 0).then(|| self.directory())
    }

    /// Name of the entry.
    #[inline]
    pub(crate) fn entry_name(&self) -> &CStr {
        self.text.get(self.text.base)
    }

    /// Name of the entry with the path of the set's directory.
    #[inline]
    pub(crate) fn path(&self) -> &CStr {
        self.text.get(0)
    }

    /// Name of the entry, and the same name with `suffix` of at most 8 bytes.
    pub(crate) fn with(&mut self, suffix: &[u8]) -> (&CStr, &CStr) {
        self.other.cut(0);
        self.other.push(&self.text.bytes[self.text.base..self.text.len]);
        self.other.push(suffix);
        (self.text.get(self.text.base), self.other.get(0))
    }

    /// Name of the entry, and its number in [`ACROSS`], with the owner as prefix if names have one.
    pub(crate) fn across(&mut self) -> (&CStr, &CStr) {
        self.other.cut(0);
        self.other.push(ACROSS.to_bytes());
        self.other.push(b"/");
        if self.has_prefix {
            self.other.push_decimal(u64::from(self.owner), 1);
            self.other.push(b"-");
        }
        self.other.push_decimal(self.entry, 1);
        (self.text.get(self.text.base), self.other.get(0))
    }
}

/// Number in decimal digits.
fn number(text: &[u8]) -> Option<u64> {
    let add = |sum: Option<u64>, byte: &u8| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 { None } else { sum?.checked_mul(10)?.checked_add(u64::from(digit)) }
    };
    if text.is_empty() { None } else { text.iter().fold(Some(0), add) }
}

/// Number in ten lower-case hexadecimal digits.
fn hexadecimal(text: &[u8]) -> Option<u64> {
    let mut sum = 0;
    for byte in text {
        let digit = match byte {
            b'0'..=b'9' => byte - b'0',
            b'a'..=b'f' => byte - b'a' + 10,
            _ => return None,
        };
        sum = sum << 4 | u64::from(digit);
    }
    Some(sum)
}

#[cfg(test)]
mod tests;
