//! Output of programs: beginning and end, in bounded memory.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, Read as _},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// Number of bytes that are kept of the beginning, and of the end.
const KEPT: usize = 64 << 10;

/// First and last bytes of an output.
#[derive(Debug, Default)]
pub(super) struct HeadAndTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    omitted: bool,
}

impl HeadAndTail {
    fn add(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(rest);
        let surplus = self.tail.len().saturating_sub(KEPT);
        self.omitted |= surplus > 0;
        self.tail.drain(..surplus);
    }

    /// Text of the kept bytes. Omitted bytes are a line break.
    pub(super) fn text(&self) -> String {
        let mut all = self.head.clone();
        if self.omitted {
            all.push(b'\n');
        }
        all.extend(&self.tail);
        String::from_utf8_lossy(&all).into_owned()
    }
}

/// Pipe from a program.
#[derive(Debug)]
pub(super) struct Pipe {
    file: File,
    pub(super) kept: HeadAndTail,
    open: bool,
}

impl Pipe {
    /// Takes the read end of a pipe, which is read without blocking.
    pub(super) fn new(pipe: impl Into<OwnedFd>) -> io::Result<Self> {
        let pipe = pipe.into();
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? | OFlags::NONBLOCK)?;
        Ok(Self { file: pipe.into(), kept: HeadAndTail::default(), open: true })
    }

    /// Descriptor to wait for, unless all writers have closed the pipe.
    pub(super) fn waits(&self) -> Option<BorrowedFd<'_>> {
        self.open.then(|| self.file.as_fd())
    }

    /// Reads the bytes that are in the pipe.
    pub(super) fn drain(&mut self) {
        let mut buffer = [0; 16 << 10];
        while self.open {
            match self.file.read(&mut buffer) {
                Ok(0) => self.open = false,
                Ok(length) => self.kept.add(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.open = error.kind() == io::ErrorKind::WouldBlock;
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beginning_and_end_of_a_long_output_are_kept() {
        let mut kept = HeadAndTail::default();
        kept.add(b"first\n");
        assert_eq!(kept.text(), "first\n");
        for _ in 0..40 {
            kept.add(&[b'x'; 10_000]);
        }
        kept.add(b"last");
        let text = kept.text();
        assert!(text.starts_with("first\nx") && text.ends_with("xlast"));
        assert_eq!(text.len(), 2 * KEPT + 1);
    }
}
