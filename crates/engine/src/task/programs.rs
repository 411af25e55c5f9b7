//! Tasks done by GNU programs: command lines, and counts of their operations.
//!
//! | operation | commands |
//! | --- | --- |
//! | touch | `mkdir DIRECTORY`, `touch 0 1 2 …` |
//! | make directories | `mkdir DIRECTORY`, `mkdir 0 1 2 …` |
//! | find | `find DIRECTORY` |
//! | remove tree | `rm -r DIRECTORY` |
//! | copy | `cp --reflink=never --sparse=never FROM TO`, once per copy |
//! | unpack | `mkdir INTO`, `tar -x -p --no-same-owner -f ARCHIVE -C INTO` |
//! | pack | `tar -c [-z] -f ARCHIVE -C DIRECTORY .` |
//! | copy tree | `cp -a --reflink=never --sparse=never FROM TO` |
//! | zeros | `dd if=/dev/zero of=FILE bs=1M count=SIZE iflag=count_bytes status=none` |
//! | split | `mkdir INTO`, `split -d -a DIGITS -b PIECE FILE INTO/` |
//! | read | `cat FILE` |
//!
//! The number of names per command is that of xargs(1). The output of find(1) and cat(1) goes to
//! /dev/null.

use std::{ffi::OsString, path::Path};

use model::phase::{Compression, Task, TaskOperation, TaskPath, TaskRoot};
use rustix::{
    fs::{AtFlags, CWD, statat},
    io::Errno,
};

use super::{
    TaskDirectories,
    child::{Program, run},
    context::{TaskContext, failed},
    data::digits,
    entries,
    native::copy_of,
};
use crate::{EngineError, error::Operation};

const fn coreutils(name: &'static str) -> Program {
    Program { name, package: "coreutils" }
}

const TOUCH: Program = coreutils("touch");
const MKDIR: Program = coreutils("mkdir");
const RM: Program = coreutils("rm");
const CP: Program = coreutils("cp");
const DD: Program = coreutils("dd");
const SPLIT: Program = coreutils("split");
const CAT: Program = coreutils("cat");
const FIND: Program = Program { name: "find", package: "findutils" };
const TAR: Program = Program { name: "tar", package: "tar" };

/// Bytes of names per command: the default of xargs(1).
const NAMES: usize = 128 << 10;

/// Checks that no file exists that a program would overwrite. This looks up a name and therefore
/// caches its directory. There is no check for programs that reject existing files on their own.
pub(super) fn check_absent(
    operation: &TaskOperation,
    directories: TaskDirectories<'_>,
) -> Result<(), EngineError> {
    let made: Vec<TaskPath> = match operation {
        TaskOperation::Copy { to, times, .. } => {
            (1..=*times).map(|n| copy_of(to, n, *times)).collect()
        }
        TaskOperation::Pack { archive, .. } => vec![archive.clone()],
        TaskOperation::CopyTree { to, .. } => vec![to.clone()],
        TaskOperation::Zeros { file, .. } => vec![file.clone()],
        TaskOperation::Touch { .. }
        | TaskOperation::MakeDirectories { .. }
        | TaskOperation::Find { .. }
        | TaskOperation::RemoveTree { .. }
        | TaskOperation::Unpack { .. }
        | TaskOperation::Split { .. }
        | TaskOperation::Read { .. }
        | TaskOperation::Random { .. }
        | TaskOperation::Archive { .. }
        | TaskOperation::Fetch { .. } => Vec::new(),
    };
    for task_path in made {
        let path = directories.path(&task_path);
        match statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Ok(_) => return Err(failed(Operation::Open, &path, Errno::EXIST)),
            Err(errno) => return Err(failed(Operation::Examine, &path, errno)),
        }
    }
    Ok(())
}

/// Runs the operation; the resource usage of programs is added to the context.
pub(super) fn perform(
    task: &Task,
    each: bool,
    directories: TaskDirectories<'_>,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    // Programs run in a directory where erroneous relative names do no harm.
    let root = directories.target;
    let word = |task_path: &TaskPath| directories.path(task_path).into_os_string();
    let mut command = |program, arguments: Vec<OsString>| run(program, &arguments, root, context);
    match &task.operation {
        TaskOperation::Touch { directory, count } => {
            command(MKDIR, vec![word(directory)])?;
            names(TOUCH, *count, each, &directories.path(directory), context)
        }
        TaskOperation::MakeDirectories { directory, count } => {
            command(MKDIR, vec![word(directory)])?;
            names(MKDIR, *count, each, &directories.path(directory), context)
        }
        TaskOperation::Find { directory } => command(FIND, vec![word(directory)]),
        TaskOperation::RemoveTree { directory } => command(RM, vec!["-r".into(), word(directory)]),
        TaskOperation::Copy { from, to, times } => (1..=*times).try_for_each(|number| {
            let to = copy_of(to, number, *times);
            command(CP, with(&["--reflink=never", "--sparse=never"], [word(from), word(&to)]))
        }),
        TaskOperation::Unpack { archive, into } => {
            command(MKDIR, vec![word(into)])?;
            let end = [word(archive), "-C".into(), word(into)];
            command(TAR, with(&["-x", "-p", "--no-same-owner", "-f"], end))
        }
        TaskOperation::Pack { directory, archive, compression } => {
            let start: &[&str] = match compression {
                Compression::None => &["-c", "-f"],
                Compression::Gzip => &["-c", "-z", "-f"],
            };
            command(TAR, with(start, [word(archive), "-C".into(), word(directory), ".".into()]))
        }
        TaskOperation::CopyTree { from, to } => {
            let start = ["-a", "--reflink=never", "--sparse=never"];
            command(CP, with(&start, [word(from), word(to)]))
        }
        TaskOperation::Zeros { file, size } => {
            let mut target = OsString::from("of=");
            target.push(word(file));
            let count = format!("count={}", size.0);
            let end = [target, count.into(), "iflag=count_bytes".into(), "status=none".into()];
            command(DD, with(&["if=/dev/zero", "bs=1M"], end))
        }
        TaskOperation::Split { file, piece, into } => {
            let digits = digits(size(file, directories)?.div_ceil(piece.0)).to_string();
            command(MKDIR, vec![word(into)])?;
            let mut prefix = word(into);
            prefix.push("/");
            let piece = piece.0.to_string();
            let start = ["-d", "-a", digits.as_str(), "-b", piece.as_str()];
            command(SPLIT, with(&start, [word(file), prefix]))
        }
        TaskOperation::Read { file } => command(CAT, vec![word(file)]),
        TaskOperation::Random { .. }
        | TaskOperation::Archive { .. }
        | TaskOperation::Fetch { .. } => {
            unreachable!("preparing operations are native")
        }
    }
}

fn with<const N: usize>(start: &[&str], end: [OsString; N]) -> Vec<OsString> {
    start.iter().map(OsString::from).chain(end).collect()
}

/// Passes the names 0, 1, 2, … to a program, in as few commands as possible, or in one per name.
fn names(
    program: Program,
    count: u64,
    each: bool,
    directory: &Path,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let mut words: Vec<OsString> = Vec::new();
    let mut room = NAMES;
    for number in 0..count {
        let word = number.to_string();
        let len = word.len() + 1;
        if !words.is_empty() && (each || len > room) {
            run(program, &words, directory, context)?;
            context.done(words.len() as u64)?;
            words.clear();
            room = NAMES;
        }
        room -= len;
        words.push(word.into());
    }
    if words.is_empty() {
        return Ok(());
    }
    run(program, &words, directory, context)?;
    context.done(words.len() as u64)
}

/// Length of a file.
fn size(file: &TaskPath, directories: TaskDirectories<'_>) -> Result<u64, EngineError> {
    let path = directories.path(file);
    let status = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|errno| failed(Operation::Examine, &path, errno))?;
    Ok(u64::try_from(status.st_size).unwrap_or(0))
}

/// Counts the operations of programs, untimed. Entries are counted by listing what the programs
/// created or read, which is cached by then. Bytes follow from the sizes of files.
pub(super) fn count(
    operation: &TaskOperation,
    directories: TaskDirectories<'_>,
    context: &mut TaskContext<'_>,
) -> Result<(), EngineError> {
    let below = |task_path: &TaskPath, context: &mut TaskContext<'_>| {
        entries::sizes(&directories.path(task_path), context)
    };
    match operation {
        // Counted when executed.
        TaskOperation::Touch { .. } | TaskOperation::MakeDirectories { .. } => Ok(()),
        TaskOperation::Find { directory } => entries::find(&directories.path(directory), context),
        TaskOperation::RemoveTree { .. } => context.done(1),
        TaskOperation::Copy { from, to, times } => {
            let bytes = size(from, directories)?.saturating_mul(u64::from(*times));
            moved(context, (from.root, bytes), (to.root, bytes))?;
            context.done(u64::from(*times))
        }
        TaskOperation::Unpack { archive, into } => {
            let bytes = below(into, context)?;
            moved(context, (archive.root, size(archive, directories)?), (into.root, bytes))
        }
        TaskOperation::Pack { directory, archive, .. } => {
            let bytes = below(directory, context)?;
            moved(context, (directory.root, bytes), (archive.root, size(archive, directories)?))
        }
        TaskOperation::CopyTree { from, to } => {
            let bytes = below(to, context)?;
            moved(context, (from.root, bytes), (to.root, bytes))
        }
        TaskOperation::Zeros { file, size } => {
            moved(context, (file.root, 0), (file.root, size.0))?;
            context.done(1)
        }
        TaskOperation::Split { file, piece, into } => {
            let bytes = size(file, directories)?;
            moved(context, (file.root, bytes), (into.root, bytes))?;
            context.done(bytes.div_ceil(piece.0))
        }
        TaskOperation::Read { file } => {
            moved(context, (file.root, size(file, directories)?), (file.root, 0))?;
            context.done(1)
        }
        TaskOperation::Random { .. }
        | TaskOperation::Archive { .. }
        | TaskOperation::Fetch { .. } => Ok(()),
    }
}

fn moved(
    context: &mut TaskContext<'_>,
    read: (TaskRoot, u64),
    written: (TaskRoot, u64),
) -> Result<(), EngineError> {
    context.has_read(read.0, read.1)?;
    context.has_written(written.0, written.1)
}
