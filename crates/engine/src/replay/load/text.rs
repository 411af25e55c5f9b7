//! Operations as the text of a version 4 loadfile, which the parser reads back as the same
//! operations, and which dbench replays.

use std::io::{self, Write};

use model::phase::ReplayOp;

use super::{
    super::program::{Expected, MARK, Names, Op},
    problem::Problem,
};

/// Number that is added to a slot to get the handle in the text. Recorded loadfiles have large
/// handles, and dbench treats handle 0 as none.
const HANDLE: u32 = 1000;

/// Maximum number of open files in dbench 4: the size of its table.
pub(super) const HANDLES: usize = 200;

/// Checks that dbench 4 would replay these operations unchanged.
///
/// # Errors
/// The index of the first operation that dbench 4 would not replay, and the problem.
pub(super) fn check(ops: &[Op]) -> Result<(), (usize, Problem)> {
    let mut open: usize = 0;
    for (index, op) in ops.iter().enumerate() {
        if op.expected() == Expected::Any {
            let problem = Problem::new(
                "the status is * (any), and dbench 4 skips such lines",
                "use the status that the operation has on a filesystem",
            );
            return Err((index, problem));
        }
        if op.kind() == ReplayOp::NTCreateX && op.expected() == Expected::Success {
            open += 1;
        } else if op.kind() == ReplayOp::Close {
            open = open.saturating_sub(1);
        }
        if open > HANDLES {
            let problem = Problem::new(
                format!(
                    "more than {HANDLES} handles are open, which is the limit of \
                     dbench 4"
                ),
                "close unused handles",
            );
            return Err((index, problem));
        }
    }
    Ok(())
}

/// Writes one line per operation.
///
/// # Errors
/// Errors of `out`.
pub(super) fn write(ops: &[Op], names: Names<'_>, out: &mut dyn Write) -> io::Result<()> {
    let mut text = Vec::with_capacity(1 << 16);
    for op in ops {
        line(op, names, &mut text)?;
        if text.len() > (1 << 16) - 5000 {
            out.write_all(&text)?;
            text.clear();
        }
    }
    out.write_all(&text)
}

fn line(op: &Op, names: Names<'_>, out: &mut Vec<u8>) -> io::Result<()> {
    if let Some(due) = op.due() {
        write!(out, "{}.{:06} ", due / 1_000_000, due % 1_000_000)?;
    }
    let handle = HANDLE + u32::from(op.slot);
    let (offset, size, second) = (op.offset, op.size, op.second);
    match op.kind() {
        ReplayOp::NTCreateX => {
            named("NTCreateX", op.name, names, out);
            // A failed operation leaves no handle, so the number is arbitrary.
            let handle = if op.expected() == Expected::Failure { HANDLE } else { handle };
            write!(out, " {second:#x} {size:#x} {handle}")?;
        }
        ReplayOp::Close => write!(out, "Close {handle}")?,
        ReplayOp::Flush => write!(out, "Flush {handle}")?,
        ReplayOp::Qfileinfo => write!(out, "QUERY_FILE_INFORMATION {handle} 258")?,
        ReplayOp::Sfileinfo => write!(out, "SET_FILE_INFORMATION {handle} 258")?,
        ReplayOp::ReadX => write!(out, "ReadX {handle} {offset} {size} {second}")?,
        ReplayOp::WriteX => write!(out, "WriteX {handle} {offset} {size} {second}")?,
        ReplayOp::LockX => write!(out, "LockX {handle} {offset} {size}")?,
        ReplayOp::UnlockX => write!(out, "UnlockX {handle} {offset} {size}")?,
        ReplayOp::Rename => {
            named("Rename", op.name, names, out);
            name(second, names, out);
        }
        ReplayOp::Unlink => {
            named("Unlink", op.name, names, out);
            out.extend_from_slice(b" 0x6");
        }
        ReplayOp::Deltree => named("Deltree", op.name, names, out),
        ReplayOp::Rmdir => named("Rmdir", op.name, names, out),
        ReplayOp::Mkdir => named("Mkdir", op.name, names, out),
        ReplayOp::Qpathinfo => {
            named("QUERY_PATH_INFORMATION", op.name, names, out);
            out.extend_from_slice(b" 258");
        }
        ReplayOp::Find => {
            named("FIND_FIRST", op.name, names, out);
            write!(out, " 260 {size} 0")?;
        }
        ReplayOp::Qfsinfo => out.extend_from_slice(b"QUERY_FS_INFORMATION 259"),
        ReplayOp::Sleep => write!(out, "Sleep {offset}")?,
    }
    writeln!(out, " {}", status(op))
}

/// Status of an expected result; for failures, the status of a missing name.
fn status(op: &Op) -> &'static str {
    match (op.expected(), op.kind()) {
        (Expected::Success, _) => "NT_STATUS_OK",
        (Expected::Any, _) => "*",
        (Expected::Failure, ReplayOp::Find) => "NT_STATUS_NO_SUCH_FILE",
        (Expected::Failure, _) => "NT_STATUS_OBJECT_NAME_NOT_FOUND",
    }
}

fn named(word: &str, index: u32, names: Names<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(word.as_bytes());
    name(index, names, out);
}

/// Blank, and a name below the root in double quotes with backslashes.
fn name(index: u32, names: Names<'_>, out: &mut Vec<u8>) {
    let template = names.get(index).template;
    out.extend_from_slice(b" \"\\");
    // The root is only this backslash.
    for byte in template.iter().filter(|_| template != b".") {
        match *byte {
            MARK => out.extend_from_slice(b"client1"),
            // The parser drops a slash that follows a blank, so two slashes are written.
            b'/' if out.last() == Some(&b' ') => out.extend_from_slice(b"\\\\"),
            b'/' => out.push(b'\\'),
            byte => out.push(byte),
        }
    }
    out.push(b'"');
}
