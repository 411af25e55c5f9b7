//! Replay: the operations of a list, which is read before the clock starts.
//!
//! One operation in each line, `read OFFSET LENGTH` or `write OFFSET LENGTH`, in bytes. Blank lines
//! and what follows a `#` do not count. Offsets are those of the worker's part, and operations lie
//! within its whole records: what was laid out with the same size and record is there to be read.
//! None is longer than the longest operation of the stream, for which buffers are made.

use std::io::{self, BufRead, BufReader};

use model::phase::{Direction, Stream};

use super::Visit;
use crate::{
    error::{Fault, ListProblem, Memory},
    io::Kind,
};

/// A list of operations.
#[derive(Debug, Default)]
pub(super) struct List {
    visits: Vec<Visit>,
    // Number of the line where the first of a kind stands.
    first_read: Option<u64>,
    first_write: Option<u64>,
}

impl List {
    /// Reads [`Stream::list`], for parts of so many records.
    ///
    /// # Errors
    /// [`Fault::ListFile`] when it cannot be read; [`Fault::List`] for its first line that is not
    /// as the module says; [`Fault::Memory`] when it does not fit into memory.
    pub(super) fn read(stream: &Stream, records: u64) -> Result<Self, Fault> {
        // Only a file that is not a regular one has no number of its own.
        let unreadable = |error: io::Error| Fault::ListFile {
            errno: error.raw_os_error().unwrap_or(libc::EINVAL),
        };
        let file = sys::input::open(stream.list.as_ref()).map_err(unreadable)?;
        Self::parse(BufReader::new(file), Limits::of(stream, records), unreadable)
    }

    fn parse(
        mut text: impl BufRead,
        limits: Limits,
        unreadable: impl Fn(io::Error) -> Fault,
    ) -> Result<Self, Fault> {
        let mut list = Self::default();
        let mut bytes = Vec::new();
        let mut line = 0;
        loop {
            bytes.clear();
            if text.read_until(b'\n', &mut bytes).map_err(&unreadable)? == 0 {
                break;
            }
            line += 1;
            let visit =
                limits.operation(&bytes).map_err(|problem| Fault::List { line, problem })?;
            if let Some(visit) = visit {
                list.add(visit, line)?;
            }
        }
        if list.visits.is_empty() {
            return Err(Fault::List { line, problem: ListProblem::Empty });
        }
        Ok(list)
    }

    fn add(&mut self, visit: Visit, line: u64) -> Result<(), Fault> {
        let bytes = (self.visits.len() as u64 + 1) * size_of::<Visit>() as u64;
        self.visits.try_reserve(1).map_err(|_| Fault::Memory {
            what: Memory::Permutation,
            bytes,
            errno: libc::ENOMEM,
        })?;
        self.visits.push(visit);
        match visit.kind {
            Kind::Read => self.first_read.get_or_insert(line),
            Kind::Write => self.first_write.get_or_insert(line),
        };
        Ok(())
    }

    /// Makes sure that this worker may do all that is listed: its file is open and its buffers are
    /// made for the direction of the stream.
    ///
    /// # Errors
    /// [`Fault::List`] for the first line that goes another way.
    pub(super) fn suits(&self, direction: Direction, worker: u32) -> Result<(), Fault> {
        let refuse = |line: Option<u64>, problem| {
            line.map_or(Ok(()), |line| Err(Fault::List { line, problem }))
        };
        if !direction.reads(worker) {
            refuse(self.first_read, ListProblem::Reads)?;
        }
        if !direction.writes(worker) {
            refuse(self.first_write, ListProblem::Writes)?;
        }
        Ok(())
    }

    /// The operations in their order.
    pub(super) fn visits(&self) -> std::slice::Iter<'_, Visit> {
        self.visits.iter()
    }
}

/// What operations must keep to, in bytes.
#[derive(Clone, Copy)]
struct Limits {
    end: u64,
    longest: u64,
}

impl Limits {
    fn of(stream: &Stream, records: u64) -> Self {
        Self { end: records * stream.record.0, longest: stream.longest().0 }
    }

    /// The operation in a line; `None` where there is nothing.
    fn operation(self, line: &[u8]) -> Result<Option<Visit>, ListProblem> {
        let line = line.split(|byte| *byte == b'#').next().unwrap_or(line);
        let line = std::str::from_utf8(line).map_err(|_| ListProblem::Syntax)?;
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let [way, offset, len] = words[..] else {
            return if words.is_empty() { Ok(None) } else { Err(ListProblem::Syntax) };
        };
        let kind = match way {
            "read" => Kind::Read,
            "write" => Kind::Write,
            _ => return Err(ListProblem::Syntax),
        };
        let number = |word: &str| word.parse::<u64>().map_err(|_| ListProblem::Syntax);
        let (offset, len) = (number(offset)?, number(len)?);
        if len == 0 {
            return Err(ListProblem::Nothing);
        }
        if len > self.longest {
            return Err(ListProblem::Long { longest: self.longest });
        }
        if offset.checked_add(len).is_none_or(|end| end > self.end) {
            return Err(ListProblem::Beyond { end: self.end });
        }
        let longest = ListProblem::Long { longest: usize::MAX as u64 };
        Ok(Some(Visit { offset, len: usize::try_from(len).map_err(|_| longest)?, kind }))
    }
}

#[cfg(test)]
mod tests;
