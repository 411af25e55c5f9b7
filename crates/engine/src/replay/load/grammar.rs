//! Arguments of the operations of a loadfile.
//!
//! | operation | arguments before the status |
//! |---|---|
//! | NTCreateX | name, create options, disposition, handle |
//! | Close, Flush | handle |
//! | ReadX, WriteX | handle, offset, bytes requested, bytes moved |
//! | LockX, UnlockX | handle, offset, bytes |
//! | Rename | old name, new name |
//! | Unlink | name, attribute |
//! | Mkdir, Rmdir, Deltree | name |
//! | FIND_FIRST | pattern, level, maximum number of entries, entries found |
//! | QUERY_PATH_INFORMATION | name, level |
//! | QUERY_FILE_INFORMATION, SET_FILE_INFORMATION | handle, level |
//! | QUERY_FS_INFORMATION | level |
//! | Sleep, SLEEP | microseconds; the status is optional |
//!
//! Attributes, levels, and numbers of entries found are parsed and ignored.

use std::collections::HashMap;

use model::phase::ReplayOp;

use super::{
    super::program::{Expected, NO_NAME, Op},
    problem::Problem,
    read::State,
    words::{decimal, number, value},
};

/// Maximum bytes of a read or write.
pub(crate) const LARGEST: u64 = 1 << 30;
/// Maximum offset in bytes.
pub(crate) const FARTHEST: u64 = 1 << 40;
/// Maximum number of open handles.
pub(crate) const HANDLES: usize = 10_000;
/// Maximum sleep time, an hour, in microseconds.
pub(crate) const SLEEP: u64 = 3_600_000_000;
/// Wildcard characters. The fifth wildcard of the protocol, the quote, cannot occur within a word.
pub(crate) const WILD: &[u8] = b"<>*?";

/// Numbers of an operation by position in the line.
pub(super) type Numbers = [Option<u64>; 4];

/// Operations by name, and their arguments.
const FORMS: [(&[u8], ReplayOp, usize, &str); 18] = [
    (b"ReadX", ReplayOp::ReadX, 4, "handle, offset, bytes, bytes read, status"),
    (b"NTCreateX", ReplayOp::NTCreateX, 4, "name, options, disposition, handle, status"),
    (b"QUERY_PATH_INFORMATION", ReplayOp::Qpathinfo, 2, "name, level, status"),
    (b"Close", ReplayOp::Close, 1, "handle, status"),
    (b"WriteX", ReplayOp::WriteX, 4, "handle, offset, bytes, bytes written, status"),
    (b"FIND_FIRST", ReplayOp::Find, 4, "pattern, level, maximum entries, found, status"),
    (b"Unlink", ReplayOp::Unlink, 2, "name, attribute, status"),
    (b"QUERY_FS_INFORMATION", ReplayOp::Qfsinfo, 1, "level, status"),
    (b"QUERY_FILE_INFORMATION", ReplayOp::Qfileinfo, 2, "handle, level, status"),
    (b"SET_FILE_INFORMATION", ReplayOp::Sfileinfo, 2, "handle, level, status"),
    (b"Flush", ReplayOp::Flush, 1, "handle, status"),
    (b"Rename", ReplayOp::Rename, 2, "old name, new name, status"),
    (b"LockX", ReplayOp::LockX, 3, "handle, offset, bytes, status"),
    (b"UnlockX", ReplayOp::UnlockX, 3, "handle, offset, bytes, status"),
    (b"Mkdir", ReplayOp::Mkdir, 1, "name, status"),
    (b"Rmdir", ReplayOp::Rmdir, 1, "name, status"),
    (b"Deltree", ReplayOp::Deltree, 1, "name, status"),
    (b"Sleep", ReplayOp::Sleep, 1, "microseconds, status"),
];

/// Parses the words of a line as an operation.
pub(super) fn operation(words: &[&[u8]], state: &mut State) -> Result<Op, Problem> {
    let (first, rest) = words.split_first().expect("at least one word");
    let Some((_, kind, takes, form)) = FORMS.iter().find(|(name, ..)| name == first) else {
        if *first == b"SLEEP" {
            return operation(&[&[&b"Sleep"[..]], rest].concat(), state);
        }
        return Err(Problem::word(
            first,
            "an operation",
            "a line is an operation such as NTCreateX, or a comment after #; quote names \
             with blanks",
        ));
    };
    let bare = *kind == ReplayOp::Sleep && rest.len() == *takes;
    let (expected, arguments) = match rest.split_last() {
        _ if bare => (Expected::Success, rest),
        Some((status, arguments)) if arguments.len() == *takes => (expected(status)?, arguments),
        _ => {
            let (first, takes) = (String::from_utf8_lossy(first), takes + 1);
            let found = rest.len();
            return Err(Problem::new(
                format!("{first} takes {takes} arguments ({form}), found {found}"),
                "check that the line is complete; quote names with blanks",
            ));
        }
    };
    let mut line = Line { arguments, state, numbers: Numbers::default() };
    let op = line.operation(Op::new(*kind, expected))?;
    let numbers = line.numbers;
    state.before = numbers;
    Ok(op)
}

/// Parses the status, the last word of a line.
fn expected(status: &[u8]) -> Result<Expected, Problem> {
    match status {
        b"NT_STATUS_OK" | b"SUCCESS" => return Ok(Expected::Success),
        b"ERROR" => return Ok(Expected::Failure),
        b"*" => return Ok(Expected::Any),
        _ => {}
    }
    if status.len() > b"NT_STATUS_".len() && status.starts_with(b"NT_STATUS_") {
        return Ok(Expected::Failure);
    }
    let code = Some(status).filter(|status| status.starts_with(b"0x")).and_then(number);
    match code {
        Some(0) => Ok(Expected::Success),
        Some(_) => Ok(Expected::Failure),
        None => Err(Problem::word(
            status,
            "a status",
            "end the line with NT_STATUS_OK, another NT_STATUS_ name, or its number (0x...); \
             version 5 also has SUCCESS, ERROR, and * for either",
        )),
    }
}

/// Line with a known operation.
struct Line<'a> {
    arguments: &'a [&'a [u8]],
    state: &'a mut State,
    numbers: Numbers,
}

impl Line<'_> {
    fn operation(&mut self, op: Op) -> Result<Op, Problem> {
        match op.kind() {
            ReplayOp::NTCreateX => self.open(op),
            ReplayOp::Close => {
                let handle = self.number(0)?;
                let op = self.on_handle(op, handle)?;
                self.state.handles.remove(&handle);
                self.state.builder.give_slot(op.slot);
                Ok(op)
            }
            ReplayOp::Flush => {
                let handle = self.number(0)?;
                self.on_handle(op, handle)
            }
            ReplayOp::Qfileinfo | ReplayOp::Sfileinfo => {
                let handle = self.number(0)?;
                self.number(1)?;
                self.on_handle(op, handle)
            }
            ReplayOp::ReadX | ReplayOp::WriteX => {
                let op = self.range(op)?;
                self.check("the number of bytes", op.size.into(), LARGEST, "1GiB")?;
                Ok(Op { second: self.small(3, "the number of bytes moved")?, ..op })
            }
            ReplayOp::LockX | ReplayOp::UnlockX => self.range(op),
            ReplayOp::Rename => Ok(Op { second: self.name(1)?, ..self.on_name(op)? }),
            ReplayOp::Unlink | ReplayOp::Qpathinfo => {
                self.number(1)?;
                self.on_name(op)
            }
            ReplayOp::Deltree | ReplayOp::Rmdir | ReplayOp::Mkdir => self.on_name(op),
            ReplayOp::Find => self.search(op),
            ReplayOp::Qfsinfo => {
                self.number(0)?;
                Ok(op)
            }
            ReplayOp::Sleep => {
                let offset = self.number(0)?;
                self.check("the time to sleep in microseconds", offset, SLEEP, "an hour")?;
                Ok(Op { offset, ..op })
            }
        }
    }

    fn open(&mut self, op: Op) -> Result<Op, Problem> {
        let op = self.on_name(op)?;
        let second = self.small(1, "the create options")?;
        let size = self.small(2, "the disposition")?;
        let handle = self.number(3)?;
        let op = Op { second, size, ..op };
        if op.expected() == Expected::Failure {
            return Ok(op);
        }
        if self.state.handles.contains_key(&handle) {
            return Err(Problem::new(
                format!("the handle {handle} is already open"),
                "close it first, or use another handle",
            ));
        }
        if self.state.handles.len() >= HANDLES {
            return Err(Problem::new(
                format!("more than {HANDLES} handles are open"),
                "close unused handles",
            ));
        }
        let slot = self.state.builder.take_slot().expect("there are more slots than handles");
        self.state.handles.insert(handle, (slot, op.name));
        Ok(Op { slot, ..op })
    }

    fn search(&mut self, op: Op) -> Result<Op, Problem> {
        let op = self.on_name(op)?;
        self.number(1)?;
        let size = self.small(2, "the number of entries")?;
        self.number(3)?;
        let builder = &self.state.builder;
        let pattern = builder.names().get(op.name).template;
        let wild = pattern.iter().any(|byte| WILD.contains(byte));
        let second = if wild { builder.parent(op.name) } else { NO_NAME };
        Ok(Op { second, size, ..op })
    }

    /// Operation on a range of an open file. All such operations have the same first three
    /// arguments.
    fn range(&mut self, op: Op) -> Result<Op, Problem> {
        let handle = self.number(0)?;
        let offset = self.number(1)?;
        self.check("the offset", offset, FARTHEST, "1TiB")?;
        let size = self.small(2, "the number of bytes")?;
        Ok(Op { offset, size, ..self.on_handle(op, handle)? })
    }

    fn on_handle(&self, op: Op, handle: u64) -> Result<Op, Problem> {
        match self.state.handles.get(&handle) {
            Some((slot, name)) => Ok(Op { slot: *slot, name: *name, ..op }),
            None => Err(Problem::new(
                format!("the handle {handle} is not open"),
                "open it with NTCreateX and a status of success; a handle can be closed \
                 only once",
            )),
        }
    }

    fn on_name(&mut self, op: Op) -> Result<Op, Problem> {
        Ok(Op { name: self.name(0)?, ..op })
    }

    /// Parses the name at this position, in which `$n` is replaced by a random text.
    fn name(&mut self, place: usize) -> Result<u32, Problem> {
        let State { builder, texts, .. } = &mut *self.state;
        let word = self.arguments[place];
        let result = if texts.is_empty() || !word.contains(&b'$') {
            builder.name(word)
        } else {
            builder.name(&substitute(word, texts)?)
        };
        result.map_err(|problem| Problem::name(word, problem))
    }

    fn number(&mut self, place: usize) -> Result<u64, Problem> {
        let State { before, random, .. } = &mut *self.state;
        let number = value(self.arguments[place], before[place], random)?;
        self.numbers[place] = Some(number);
        Ok(number)
    }

    fn small(&mut self, place: usize, what: &str) -> Result<u32, Problem> {
        let number = self.number(place)?;
        u32::try_from(number).map_err(|_| Problem::large(what, number, "4294967295"))
    }

    fn check(&self, what: &str, found: u64, limit: u64, shown: &str) -> Result<(), Problem> {
        if found > limit { Err(Problem::large(what, found, shown)) } else { Ok(()) }
    }
}

/// Replaces the references to random texts in a name.
fn substitute(word: &[u8], texts: &HashMap<u64, Vec<u8>>) -> Result<Vec<u8>, Problem> {
    let mut parts = word.split(|byte| *byte == b'$');
    let mut name = parts.next().unwrap_or_default().to_vec();
    for part in parts {
        let digits = part.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (index, rest) = part.split_at(digits);
        let text = decimal(index).and_then(|index| texts.get(&index)).ok_or_else(|| {
            Problem::word(
                word,
                "a name in which every $n is a defined text",
                "define it first with RANDOMSTRING n \"text[characters]\"",
            )
        })?;
        name.extend_from_slice(text);
        name.extend_from_slice(rest);
    }
    Ok(name)
}
