//! Archive writer for an initramfs: entries in the `newc` format.
//!
//! Format: `Documentation/driver-api/early-userspace/buffer-format.rst` of the kernel. Owners are
//! root and times are 0, so that the same entries produce the same bytes.

use std::collections::BTreeMap;
use std::fmt::Write;

/// File types of `st_mode`; inode(7).
const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;
const CHARACTER: u32 = 0o020_000;
/// Maximum length of a name, including its NUL (`PATH_MAX`, `init/initramfs.c`).
const NAME_MAX: usize = 4096;

/// Archive under construction. Names have no leading slash.
#[derive(Debug, Default)]
pub(super) struct Archive {
    bytes: Vec<u8>,
    /// Types of the entries by name.
    entries: BTreeMap<String, u32>,
}

impl Archive {
    /// True if an entry of this name exists.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Adds a directory and its parents.
    pub(super) fn directory(&mut self, name: &str, mode: u32) -> Result<(), String> {
        if self.entries.get(name) == Some(&DIRECTORY) {
            return Ok(());
        }
        self.add(name, DIRECTORY, mode, &[], (0, 0))
    }

    /// Adds a file and its parents.
    pub(super) fn file(&mut self, name: &str, mode: u32, content: &[u8]) -> Result<(), String> {
        self.add(name, FILE, mode, content, (0, 0))
    }

    /// Adds a symbolic link and its parents.
    pub(super) fn link(&mut self, name: &str, target: &str) -> Result<(), String> {
        self.add(name, LINK, 0o777, target.as_bytes(), (0, 0))
    }

    /// Adds a character device.
    pub(super) fn character(
        &mut self,
        name: &str,
        mode: u32,
        device: (u32, u32),
    ) -> Result<(), String> {
        self.add(name, CHARACTER, mode, &[], device)
    }

    /// Finishes the archive and returns its bytes.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.write_header("TRAILER!!!", 0, 0, 0, (0, 0));
        self.bytes
    }

    /// Adds an entry after its parents, as the kernel requires. A duplicate or invalid name is an
    /// error, because the kernel would use the last entry of that name, or none.
    fn add(
        &mut self,
        name: &str,
        kind: u32,
        mode: u32,
        content: &[u8],
        device: (u32, u32),
    ) -> Result<(), String> {
        let invalid = |part: &str| part.is_empty() || part == "." || part == "..";
        if name.split('/').any(invalid) || name.contains('\0') || name.len() >= NAME_MAX {
            return Err(format!("{name:?} is not a valid file name in an archive"));
        }
        if self.has(name) {
            return Err(format!("/{name} exists already"));
        }
        let length = u32::try_from(content.len())
            .map_err(|_| format!("/{name} exceeds the maximum size of 4 GiB"))?;
        if let Some((above, _)) = name.rsplit_once('/') {
            self.directory(above, 0o755)?;
        }
        self.entries.insert(name.to_owned(), kind);
        self.write_header(name, kind | mode, self.entries.len(), length, device);
        self.bytes.extend_from_slice(content);
        self.align();
        Ok(())
    }

    /// Writes the header and the name, together padded to four bytes.
    fn write_header(
        &mut self,
        name: &str,
        mode: u32,
        number: usize,
        length: u32,
        device: (u32, u32),
    ) {
        let links = if mode & DIRECTORY == 0 { 1 } else { 2 };
        let mut header = String::from("070701");
        let (major, minor) = device;
        let fields = [mode, 0, 0, links, 0, length, 0, 0, major, minor];
        // Writing to a string cannot fail.
        let _written = write!(header, "{number:08x}");
        for field in fields {
            let _written = write!(header, "{field:08x}");
        }
        let _written = write!(header, "{:08x}{:08x}", name.len() + 1, 0);
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.push(0);
        self.align();
    }

    fn align(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

/// Archive entry for tests: name, `st_mode`, device, content.
#[cfg(test)]
pub(super) type Entry = (String, u32, (u32, u32), Vec<u8>);

/// Parses an archive for tests, according to the format's documentation.
#[cfg(test)]
pub(super) fn entries(mut bytes: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    loop {
        let text = std::str::from_utf8(&bytes[..110]).unwrap();
        let (magic, fields) = text.split_at(6);
        assert_eq!(magic, "070701");
        let field = |at: usize| u32::from_str_radix(&fields[8 * at..8 * at + 8], 16).unwrap();
        let name_end = 110 + field(11) as usize;
        let content_at = name_end.next_multiple_of(4);
        let content_end = content_at + field(6) as usize;
        assert_eq!(bytes[name_end - 1], 0);
        let name = String::from_utf8(bytes[110..name_end - 1].to_vec()).unwrap();
        if name == "TRAILER!!!" {
            return entries;
        }
        let content = bytes[content_at..content_end].to_vec();
        entries.push((name, field(1), (field(9), field(10)), content));
        bytes = &bytes[content_end.next_multiple_of(4)..];
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_format_is_as_documented() {
        let mut archive = Archive::default();
        archive.file("etc/x", 0o644, b"hello").unwrap();
        archive.character("dev/console", 0o600, (5, 1)).unwrap();
        let text = String::from_utf8(archive.finish()).unwrap().replace('\0', "~");
        expect!["07070100000001000041ed0000000000000000000000020000000000000000000000000000000000000000000000000000000400000000etc~~~07070100000002000081a40000000000000000000000010000000000000005000000000000000000000000000000000000000600000000etc/x~hello~~~07070100000003000041ed0000000000000000000000020000000000000000000000000000000000000000000000000000000400000000dev~~~07070100000004000021800000000000000000000000010000000000000000000000000000000000000005000000010000000c00000000dev/console~~~07070100000000000000000000000000000000000000010000000000000000000000000000000000000000000000000000000b00000000TRAILER!!!~~~~"].assert_eq(&text);
    }

    #[test]
    fn names_are_unique_and_valid() {
        let mut archive = Archive::default();
        archive.link("a", "b").unwrap();
        assert_eq!(archive.file("a", 0o644, b""), Err("/a exists already".to_owned()));
        assert_eq!(archive.file("a/b", 0o644, b""), Err("/a exists already".to_owned()));
        for odd in ["", "/a", "a//b", "a/", "..", "a/../b", "./a", "a\0b", &"a".repeat(4096)] {
            assert!(archive.file(odd, 0o644, b"").is_err(), "{odd:?}");
        }
        archive.directory("d", 0o755).unwrap();
        archive.directory("d", 0o755).unwrap();
        assert_eq!(entries(&archive.finish()).len(), 2);
    }

    proptest! {
        #[test]
        fn archives_round_trip(files: BTreeMap<u8, Vec<u8>>) {
            let mut archive = Archive::default();
            for (number, content) in &files {
                let directory = "d".repeat(1 + usize::from(number % 5));
                archive.file(&format!("{directory}/{number}"), 0o600, content).unwrap();
            }
            let bytes = archive.finish();
            prop_assert_eq!(bytes.len() % 4, 0);
            let read = entries(&bytes);
            let read: Vec<_> = read.into_iter().filter(|entry| entry.1 & FILE == FILE).collect();
            prop_assert_eq!(read.len(), files.len());
            for ((name, mode, _, content), (number, expected)) in read.into_iter().zip(files) {
                let end = format!("/{number}");
                prop_assert!(name.ends_with(&end));
                prop_assert_eq!(mode, FILE | 0o600);
                prop_assert_eq!(content, expected);
            }
        }
    }
}
