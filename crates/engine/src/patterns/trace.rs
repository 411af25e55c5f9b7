//! Trace: a list of operations, read before the clock starts.
//!
//! Each line is one operation, `read OFFSET LENGTH` or `write OFFSET LENGTH`, in bytes. Blank lines
//! and text after `#` are ignored. Offsets are relative to the worker's part. Operations must be
//! inside the whole blocks of the part, so that files created with the same file size and block
//! size can be read. No operation is longer than the longest operation of the stream, which
//! determines the size of buffers.

use std::io::{self, BufRead, BufReader};

use model::phase::{Direction, Stream};

use super::PlannedOp;
use crate::{
    error::{Fault, Memory, TraceProblem},
    io::Kind,
};

/// Operations of a trace.
#[derive(Debug, Default)]
pub(super) struct Trace {
    operations: Vec<PlannedOp>,
    // Line number of the first operation of each direction.
    first_read: Option<u64>,
    first_write: Option<u64>,
}

impl Trace {
    /// Reads the trace of the stream, for parts of `blocks` blocks.
    ///
    /// # Errors
    /// [`Fault::TraceFile`] if it cannot be read; [`Fault::Trace`] for its first invalid line;
    /// [`Fault::Memory`] if there is not enough memory.
    pub(super) fn read(stream: &Stream, blocks: u64) -> Result<Self, Fault> {
        // Only the error for a path that is not a regular file has no errno.
        let unreadable = |error: io::Error| Fault::TraceFile {
            errno: error.raw_os_error().unwrap_or(libc::EINVAL),
        };
        let file = sys::input::open(stream.trace_file.as_ref()).map_err(unreadable)?;
        Self::parse(BufReader::new(file), Limits::of(stream, blocks), unreadable)
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
                limits.operation(&bytes).map_err(|problem| Fault::Trace { line, problem })?;
            if let Some(visit) = visit {
                list.add(visit, line)?;
            }
        }
        if list.operations.is_empty() {
            return Err(Fault::Trace { line, problem: TraceProblem::Empty });
        }
        Ok(list)
    }

    fn add(&mut self, visit: PlannedOp, line: u64) -> Result<(), Fault> {
        let bytes = (self.operations.len() as u64 + 1) * size_of::<PlannedOp>() as u64;
        self.operations.try_reserve(1).map_err(|_| Fault::Memory {
            what: Memory::Permutation,
            bytes,
            errno: libc::ENOMEM,
        })?;
        self.operations.push(visit);
        match visit.kind {
            Kind::Read => self.first_read.get_or_insert(line),
            Kind::Write => self.first_write.get_or_insert(line),
        };
        Ok(())
    }

    /// Checks that this worker may run all operations. Its file is open, and its buffers are
    /// allocated, only for the direction of the stream.
    ///
    /// # Errors
    /// [`Fault::Trace`] for the first line with another direction.
    pub(super) fn check_direction(&self, direction: Direction, worker: u32) -> Result<(), Fault> {
        let refuse = |line: Option<u64>, problem| {
            line.map_or(Ok(()), |line| Err(Fault::Trace { line, problem }))
        };
        if !direction.reads(worker) {
            refuse(self.first_read, TraceProblem::Reads)?;
        }
        if !direction.writes(worker) {
            refuse(self.first_write, TraceProblem::Writes)?;
        }
        Ok(())
    }

    /// Operations in their order.
    pub(super) fn operations(&self) -> std::slice::Iter<'_, PlannedOp> {
        self.operations.iter()
    }
}

/// Limits of operations in bytes.
#[derive(Clone, Copy)]
struct Limits {
    end: u64,
    longest: u64,
}

impl Limits {
    fn of(stream: &Stream, blocks: u64) -> Self {
        Self { end: blocks * stream.block_size.0, longest: stream.longest_operation().0 }
    }

    /// Operation of a line; `None` for an empty line.
    fn operation(self, line: &[u8]) -> Result<Option<PlannedOp>, TraceProblem> {
        let line = line.split(|byte| *byte == b'#').next().unwrap_or(line);
        let line = std::str::from_utf8(line).map_err(|_| TraceProblem::Syntax)?;
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let [way, offset, len] = words[..] else {
            return if words.is_empty() { Ok(None) } else { Err(TraceProblem::Syntax) };
        };
        let kind = match way {
            "read" => Kind::Read,
            "write" => Kind::Write,
            _ => return Err(TraceProblem::Syntax),
        };
        let number = |word: &str| word.parse::<u64>().map_err(|_| TraceProblem::Syntax);
        let (offset, len) = (number(offset)?, number(len)?);
        if len == 0 {
            return Err(TraceProblem::Nothing);
        }
        if len > self.longest {
            return Err(TraceProblem::Long { longest: self.longest });
        }
        if offset.checked_add(len).is_none_or(|end| end > self.end) {
            return Err(TraceProblem::Beyond { end: self.end });
        }
        let longest = TraceProblem::Long { longest: usize::MAX as u64 };
        Ok(Some(PlannedOp { offset, len: usize::try_from(len).map_err(|_| longest)?, kind }))
    }
}

#[cfg(test)]
mod tests;
