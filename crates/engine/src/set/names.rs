//! Names of entries, written into preallocated memory, and parsed back.
//!
//! In creation order, most names differ from the previous one in the last digit only, so only that
//! digit is written. The number of a directory is computed by a division only when the directory
//! changes. The path of the set's directory is stored directly before the name. A call without a
//! directory argument gets the address of the path, so the path needs no copy.
#![expect(unsafe_code, reason = "searching a NUL in each name takes longer than writing it")]

use std::{ffi::CStr, os::unix::ffi::OsStrExt, path::Path};

use model::phase::{Naming, Set, Sharing, Spread};

use super::{draw, stream};

/// Space for a directory, a slash, a worker, the longest name that a plan may request, the longest
/// suffix, and the NUL.
pub(crate) const ROOM: usize = 1152;

/// Longest name of [`Naming::Padded`], without the worker's prefix.
pub(crate) const LONGEST: u32 = 1024;

/// Directory into which entries are renamed, see [`Names::across`].
pub(crate) const ACROSS: &CStr = c"across";

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
    /// Empty text after `before`.
    fn new(before: &[u8]) -> Self {
        let base = before.len();
        let mut bytes = vec![0; base + ROOM].into_boxed_slice();
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
    // Stream from which letters are drawn.
    letters: u64,
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
        let each = match set.spread {
            Spread::Flat => 0,
            Spread::Directories { each } => each.max(1),
        };
        let mut before = root.as_os_str().as_bytes().to_vec();
        if !before.is_empty() {
            before.push(b'/');
        }
        let text = Text::new(&before);
        Self {
            naming: set.naming,
            each,
            owner,
            letters: stream(set.seed, owner, PURPOSE),
            has_prefix: set.sharing == Sharing::Directory,
            directory: text.len,
            text,
            first: 0,
            end: if each == 0 { u64::MAX } else { 0 },
            entry: 0,
            digit: 0,
            other: Text::new(b""),
        }
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
        }
    }

    /// Selects the directory of an entry, but no entry in it.
    pub(crate) fn enter(&mut self, entry: u64) {
        self.digit = 0;
        if self.each > 0 && !(self.first..self.end).contains(&entry) {
            let number = entry / self.each;
            let digits = match self.naming {
                Naming::Numbers | Naming::Padded { .. } => 1,
                Naming::Ordered | Naming::Scrambled => 5,
            };
            self.text.cut(self.text.base);
            self.text.push_decimal(number, digits);
            self.text.push(b"/");
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
        if self.each == 0 {
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
mod tests {
    use std::collections::BTreeSet;

    use model::{
        Bytes,
        phase::{DataPattern, Sizes},
    };

    use super::*;

    fn set(naming: Naming, spread: Spread, sharing: Sharing) -> Set {
        Set {
            name: "t".into(),
            sharing,
            files: 1000,
            spread,
            naming,
            sizes: Sizes::Fixed(Bytes(0)),
            block_size: Bytes(1),
            data: DataPattern::default(),
            seed: 5,
        }
    }

    #[test]
    fn names_have_the_documented_form_up_to_the_last_entry() {
        let each = Spread::Directories { each: 100 };
        let mut names = Names::new(&set(Naming::Numbers, each, Sharing::Private), 0);
        names.set(1234);
        assert_eq!(names.entry_name(), c"12/1234");
        assert_eq!(names.directory(), c"12");
        assert_eq!(names.with(b".link"), (c"12/1234", c"12/1234.link"));
        names.set(7);
        assert_eq!(names.entry_name(), c"0/7");
        assert_eq!(names.directory(), c"0");
        let one = Spread::Directories { each: 1 };
        let mut names = Names::new(&set(Naming::Numbers, one, Sharing::Directory), u32::MAX);
        names.set(u64::MAX);
        let longest = c"18446744073709551615/4294967295-18446744073709551615";
        assert_eq!(names.entry_name(), longest);
        let mut flat = Names::new(&set(Naming::Numbers, Spread::Flat, Sharing::Private), 0);
        flat.set(3);
        assert_eq!(flat.entry_name(), c"3");
        assert_eq!(flat.directory(), c".");
    }

    #[test]
    fn every_name_maps_back_to_its_entry() {
        let namings =
            [Naming::Numbers, Naming::Padded { length: 64 }, Naming::Ordered, Naming::Scrambled];
        for naming in namings {
            for sharing in [Sharing::Private, Sharing::Directory] {
                let set = set(naming, Spread::Directories { each: 7 }, sharing);
                let mut names = Names::new(&set, 3);
                for entry in (0..500).chain([u64::from(u32::MAX), 1 << 39]) {
                    names.set(entry);
                    let text = names.entry_name().to_bytes().to_vec();
                    let name = text.rsplit(|byte| *byte == b'/').next().unwrap();
                    assert_eq!(names.entry(name), Some(entry), "{naming:?} {sharing:?}");
                    names.enter(entry + 70);
                    names.set_found(entry, name);
                    assert_eq!(names.entry_name().to_bytes(), text);
                }
                if sharing == Sharing::Directory {
                    assert_eq!(names.entry(b"4-0"), None, "another worker's");
                }
            }
        }
        let plain = Names::new(&set(Naming::Numbers, Spread::Flat, Sharing::Private), 0);
        assert_eq!(plain.entry(b"lost+found"), None);
    }

    #[test]
    fn bonnie_names_have_ten_digits_and_up_to_twelve_letters() {
        let mut names = Names::new(&set(Naming::Ordered, Spread::Flat, Sharing::Private), 0);
        let mut lengths = BTreeSet::new();
        let mut letters = BTreeSet::new();
        let mut before = Vec::new();
        for entry in 0..5000 {
            names.set(entry);
            let name = names.entry_name().to_bytes().to_vec();
            assert!(name.starts_with(format!("{entry:010x}").as_bytes()));
            assert!(name > before, "they sort in creation order");
            lengths.insert(name.len());
            letters.extend(name[10..].iter().copied());
            before = name;
        }
        assert!(lengths.into_iter().eq(10..=22));
        assert_eq!(letters.len(), 62);
        let each = Spread::Directories { each: 513 };
        let mut names = Names::new(&set(Naming::Scrambled, each, Sharing::Private), 0);
        names.set(513);
        assert_eq!(names.directory(), c"00001");
        assert!(names.entry_name().to_bytes().ends_with(b"0000000201"));
    }

    #[test]
    fn padded_names_have_the_requested_length() {
        let naming = Naming::Padded { length: 200 };
        let mut names = Names::new(&set(naming, Spread::Flat, Sharing::Private), 0);
        names.set(12);
        assert_eq!(names.entry_name().to_bytes().len(), 200);
        assert!(names.entry_name().to_bytes().starts_with(b"12___"));
    }
}
