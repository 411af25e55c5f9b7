//! Tasks done by the everyday programs of the GNU project: what is called how, and what their
//! results tell of what they did.
//!
//! | deed | commands |
//! | --- | --- |
//! | touch | `mkdir DIRECTORY`, `touch 0 1 2 …` |
//! | make directories | `mkdir DIRECTORY`, `mkdir 0 1 2 …` |
//! | find | `find DIRECTORY` |
//! | remove tree | `rm -r DIRECTORY` |
//! | copy | `cp --reflink=never --sparse=never FROM TO`, once for each copy |
//! | unpack | `mkdir INTO`, `tar -x -p --no-same-owner -f ARCHIVE -C INTO` |
//! | pack | `tar -c [-z] -f ARCHIVE -C DIRECTORY .` |
//! | copy tree | `cp -a --reflink=never --sparse=never FROM TO` |
//! | zeros | `dd if=/dev/zero of=FILE bs=1M count=SIZE iflag=count_bytes status=none` |
//! | split | `mkdir INTO`, `split -d -a DIGITS -b PIECE FILE INTO/` |
//! | read | `cat FILE` |
//!
//! Names are as many in a command as xargs(1) would give it. What find(1) and cat(1) print goes to
//! /dev/null.

use std::{ffi::OsString, path::Path};

use model::phase::{At, Compression, Deed, Spot, Task};
use rustix::{
    fs::{AtFlags, CWD, statat},
    io::Errno,
};

use super::{
    Places,
    child::{Program, run},
    data::digits,
    entries,
    hand::{Hand, failed},
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

/// Bytes of names in a command: what xargs(1) takes if not told otherwise.
const NAMES: usize = 128 << 10;

/// Makes sure that programs that would overwrite what is there find nothing. This looks up a name,
/// and so brings the directory it would be in into the caches; those that refuse by themselves are
/// left to it.
pub(super) fn absent(deed: &Deed, places: Places<'_>) -> Result<(), EngineError> {
    let made: Vec<Spot> = match deed {
        Deed::Copy { to, times, .. } => (1..=*times).map(|n| copy_of(to, n, *times)).collect(),
        Deed::Pack { archive, .. } => vec![archive.clone()],
        Deed::CopyTree { to, .. } => vec![to.clone()],
        Deed::Zeros { file, .. } => vec![file.clone()],
        Deed::Touch { .. }
        | Deed::MakeDirectories { .. }
        | Deed::Find { .. }
        | Deed::RemoveTree { .. }
        | Deed::Unpack { .. }
        | Deed::Split { .. }
        | Deed::Read { .. }
        | Deed::Random { .. }
        | Deed::Archive { .. }
        | Deed::Fetch { .. } => Vec::new(),
    };
    for spot in made {
        let path = places.path(&spot);
        match statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => {}
            Ok(_) => return Err(failed(Operation::Open, &path, Errno::EXIST)),
            Err(errno) => return Err(failed(Operation::Examine, &path, errno)),
        }
    }
    Ok(())
}

/// Does the deed; what programs used is in the hand afterwards.
pub(super) fn perform(
    task: &Task,
    each: bool,
    places: Places<'_>,
    hand: &mut Hand<'_>,
) -> Result<(), EngineError> {
    // Programs are started where they can do no harm to names that are relative by mistake.
    let root = places.target;
    let word = |spot: &Spot| places.path(spot).into_os_string();
    let mut command = |program, arguments: Vec<OsString>| run(program, &arguments, root, hand);
    match &task.deed {
        Deed::Touch { directory, count } => {
            command(MKDIR, vec![word(directory)])?;
            names(TOUCH, *count, each, &places.path(directory), hand)
        }
        Deed::MakeDirectories { directory, count } => {
            command(MKDIR, vec![word(directory)])?;
            names(MKDIR, *count, each, &places.path(directory), hand)
        }
        Deed::Find { directory } => command(FIND, vec![word(directory)]),
        Deed::RemoveTree { directory } => command(RM, vec!["-r".into(), word(directory)]),
        Deed::Copy { from, to, times } => (1..=*times).try_for_each(|number| {
            let to = copy_of(to, number, *times);
            command(CP, with(&["--reflink=never", "--sparse=never"], [word(from), word(&to)]))
        }),
        Deed::Unpack { archive, into } => {
            command(MKDIR, vec![word(into)])?;
            let end = [word(archive), "-C".into(), word(into)];
            command(TAR, with(&["-x", "-p", "--no-same-owner", "-f"], end))
        }
        Deed::Pack { directory, archive, compression } => {
            let start: &[&str] = match compression {
                Compression::None => &["-c", "-f"],
                Compression::Gzip => &["-c", "-z", "-f"],
            };
            command(TAR, with(start, [word(archive), "-C".into(), word(directory), ".".into()]))
        }
        Deed::CopyTree { from, to } => {
            let start = ["-a", "--reflink=never", "--sparse=never"];
            command(CP, with(&start, [word(from), word(to)]))
        }
        Deed::Zeros { file, size } => {
            let mut target = OsString::from("of=");
            target.push(word(file));
            let count = format!("count={}", size.0);
            let end = [target, count.into(), "iflag=count_bytes".into(), "status=none".into()];
            command(DD, with(&["if=/dev/zero", "bs=1M"], end))
        }
        Deed::Split { file, piece, into } => {
            let digits = digits(size(file, places)?.div_ceil(piece.0)).to_string();
            command(MKDIR, vec![word(into)])?;
            let mut prefix = word(into);
            prefix.push("/");
            let piece = piece.0.to_string();
            let start = ["-d", "-a", digits.as_str(), "-b", piece.as_str()];
            command(SPLIT, with(&start, [word(file), prefix]))
        }
        Deed::Read { file } => command(CAT, vec![word(file)]),
        Deed::Random { .. } | Deed::Archive { .. } | Deed::Fetch { .. } => {
            unreachable!("what prepares is done natively")
        }
    }
}

fn with<const N: usize>(start: &[&str], end: [OsString; N]) -> Vec<OsString> {
    start.iter().map(OsString::from).chain(end).collect()
}

/// Gives a program the names 0, 1, 2 and so on, in as few commands as may be, or in one for each.
fn names(
    program: Program,
    count: u64,
    each: bool,
    directory: &Path,
    hand: &mut Hand<'_>,
) -> Result<(), EngineError> {
    let mut words: Vec<OsString> = Vec::new();
    let mut room = NAMES;
    for number in 0..count {
        let word = number.to_string();
        let len = word.len() + 1;
        if !words.is_empty() && (each || len > room) {
            run(program, &words, directory, hand)?;
            hand.done(words.len() as u64)?;
            words.clear();
            room = NAMES;
        }
        room -= len;
        words.push(word.into());
    }
    if words.is_empty() {
        return Ok(());
    }
    run(program, &words, directory, hand)?;
    hand.done(words.len() as u64)
}

/// Length of a file.
fn size(file: &Spot, places: Places<'_>) -> Result<u64, EngineError> {
    let path = places.path(file);
    let status = statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW)
        .map_err(|errno| failed(Operation::Examine, &path, errno))?;
    Ok(u64::try_from(status.st_size).unwrap_or(0))
}

/// Counts what programs did, when the clocks have stopped: entries by listing what they made or
/// read, which is in the caches then, and bytes by the sizes of files.
pub(super) fn count(
    deed: &Deed,
    places: Places<'_>,
    hand: &mut Hand<'_>,
) -> Result<(), EngineError> {
    let below = |spot: &Spot, hand: &mut Hand<'_>| entries::sizes(&places.path(spot), hand);
    match deed {
        // Counted as they were done.
        Deed::Touch { .. } | Deed::MakeDirectories { .. } => Ok(()),
        Deed::Find { directory } => entries::find(&places.path(directory), hand),
        Deed::RemoveTree { .. } => hand.done(1),
        Deed::Copy { from, to, times } => {
            let bytes = size(from, places)?.saturating_mul(u64::from(*times));
            moved(hand, (from.at, bytes), (to.at, bytes))?;
            hand.done(u64::from(*times))
        }
        Deed::Unpack { archive, into } => {
            let bytes = below(into, hand)?;
            moved(hand, (archive.at, size(archive, places)?), (into.at, bytes))
        }
        Deed::Pack { directory, archive, .. } => {
            let bytes = below(directory, hand)?;
            moved(hand, (directory.at, bytes), (archive.at, size(archive, places)?))
        }
        Deed::CopyTree { from, to } => {
            let bytes = below(to, hand)?;
            moved(hand, (from.at, bytes), (to.at, bytes))
        }
        Deed::Zeros { file, size } => {
            moved(hand, (file.at, 0), (file.at, size.0))?;
            hand.done(1)
        }
        Deed::Split { file, piece, into } => {
            let bytes = size(file, places)?;
            moved(hand, (file.at, bytes), (into.at, bytes))?;
            hand.done(bytes.div_ceil(piece.0))
        }
        Deed::Read { file } => {
            moved(hand, (file.at, size(file, places)?), (file.at, 0))?;
            hand.done(1)
        }
        Deed::Random { .. } | Deed::Archive { .. } | Deed::Fetch { .. } => Ok(()),
    }
}

fn moved(hand: &mut Hand<'_>, read: (At, u64), written: (At, u64)) -> Result<(), EngineError> {
    hand.has_read(read.0, read.1)?;
    hand.has_written(written.0, written.1)
}
