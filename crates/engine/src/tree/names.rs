//! Names of files, written into memory that is there already.

use std::ffi::CStr;

/// Room for two numbers of 20 digits, a slash, the longest suffix, and the end.
const ROOM: usize = 64;

/// The text of a path relative to the worker's directory.
#[derive(Clone, Copy)]
struct Text {
    bytes: [u8; ROOM],
    len: usize,
}

impl Text {
    const EMPTY: Self = Self { bytes: [0; ROOM], len: 0 };

    fn push(&mut self, part: &[u8]) {
        self.bytes[self.len..][..part.len()].copy_from_slice(part);
        self.len += part.len();
        self.bytes[self.len] = 0;
    }

    fn push_number(&mut self, mut number: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            let digit = (number % 10) as u8;
            digits[at] = b'0' + digit;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.push(&digits[at..]);
    }

    fn get(&self) -> &CStr {
        CStr::from_bytes_with_nul(&self.bytes[..=self.len]).expect("digits and letters, then a NUL")
    }
}

/// The names of one file.
pub(super) struct Names {
    directory: Text,
    file: Text,
    renamed: Text,
    link: Text,
}

impl Names {
    /// No file's yet.
    pub(super) fn new() -> Self {
        let empty = Text::EMPTY;
        Self { directory: empty, file: empty, renamed: empty, link: empty }
    }

    /// Turns to a file.
    pub(super) fn set(&mut self, file: u64, per_directory: u64) {
        self.directory.len = 0;
        self.directory.push_number(file / per_directory);
        self.file = self.directory;
        self.file.push(b"/");
        self.file.push_number(file);
        self.renamed = self.file;
        self.renamed.push(b".new");
        self.link = self.file;
        self.link.push(b".link");
    }

    /// `D`.
    pub(super) fn directory(&self) -> &CStr {
        self.directory.get()
    }

    /// `D/I`.
    pub(super) fn file(&self) -> &CStr {
        self.file.get()
    }

    /// `D/I.new`.
    pub(super) fn renamed(&self) -> &CStr {
        self.renamed.get()
    }

    /// `D/I.link`.
    pub(super) fn link(&self) -> &CStr {
        self.link.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_contract_of_a_tree_up_to_the_last_file() {
        let mut names = Names::new();
        names.set(1234, 100);
        assert_eq!((names.directory(), names.file()), (c"12", c"12/1234"));
        assert_eq!((names.renamed(), names.link()), (c"12/1234.new", c"12/1234.link"));
        names.set(7, 100);
        assert_eq!((names.directory(), names.file()), (c"0", c"0/7"));
        names.set(u64::MAX, 1);
        let longest = c"18446744073709551615/18446744073709551615.link";
        assert_eq!(names.link(), longest);
    }
}
