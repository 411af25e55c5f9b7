//! Loadfiles of dbench, parsed into a [`Program`].
//!
//! A loadfile is a text with one operation per line, plain or compressed by gzip. Versions 3 and 4
//! of the format are supported, and the parts of version 5 that do not differ between clients. The
//! parser rejects invalid, truncated, and unknown lines, names that lead out of the directory of a
//! client, and implausible numbers, even if dbench would continue. The error contains the line, the
//! offending text, and a hint.
//!
//! Not included: checks that the operations make sense for a filesystem. Deviations from the
//! recorded status are counted during the replay.

mod grammar;
mod problem;
mod read;
mod text;
mod words;

use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

use flate2::read::MultiGzDecoder;
use model::{Environment, phase::Load};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use self::read::{Limits, Refusal};
use super::{
    office,
    program::{Builder, NameLimits, Program},
};
use crate::EngineError;

/// Paths of an installed dbench loadfile: that of the Debian package, and those of `make install`,
/// which uses the data directory of its prefix.
const INSTALLED: [&str; 3] =
    ["/usr/share/dbench/client.txt", "/usr/local/share/client.txt", "/usr/share/client.txt"];
/// Maximum size of an uncompressed loadfile in bytes. The loadfile of the package dbench has 25
/// MiB. The whole text is read into memory before it is parsed.
const LONGEST: u64 = 96 << 20;
/// First bytes of a gzip file (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads or generates a loadfile.
///
/// # Errors
/// [`EngineError::LoadFile`] and [`EngineError::Load`] for a file that cannot be read or is
/// invalid; [`EngineError::Memory`] if there is not enough memory for its operations.
pub(super) fn load(load: &Load) -> Result<Program, EngineError> {
    match load {
        Load::File { path } => {
            let path = path.as_ref().map_or_else(installed, |path| Ok(PathBuf::from(path)))?;
            let text = text_of(&path)?;
            let refused = |refusal| refused(&path, refusal);
            let (builder, lines) = read::read(&text, Limits::FULL).map_err(refused)?;
            let sum = sum(&text);
            drop(text);
            let mut facts = Environment::default();
            let label = format!("dbench-compatible (user's loadfile, sha256 {})", &sum[..12]);
            facts.set("loadfile.label", label);
            facts.set("loadfile.sha256", sum);
            facts.set("loadfile.path", path.display().to_string());
            finish(builder, lines, facts)
        }
        Load::Office { iterations, seed } => {
            let builder = office::office(*iterations, *seed)?;
            let lines = builder.ops().len() as u64;
            let mut sum = Sha256::new();
            text::write(builder.ops(), builder.names(), &mut Hashed(&mut sum))
                .expect("hashing does not fail");
            let mut facts = Environment::default();
            facts.set("loadfile.label", office::label(*iterations, *seed));
            facts.set("loadfile.sha256", hex::encode(sum.finalize()));
            finish(builder, lines, facts)
        }
    }
}

/// Facts about a loadfile, which are also stored with the results of its replay.
///
/// # Errors
/// As for a replay: a loadfile that cannot be read or is invalid.
pub fn inspect_load(of: &Load) -> Result<Environment, EngineError> {
    Ok(load(of)?.facts().clone())
}

/// Writes a loadfile that version 4 of dbench can replay as well. With the built-in loadfile, both
/// programs can be compared on the same operations.
///
/// If dbench would not replay a loadfile completely, nothing is written: dbench skips lines with
/// status `*`, and supports 200 open handles. Numbers without effect (levels, attributes) are
/// constant, and all expected failures of a type have the same status.
///
/// # Errors
/// As for a replay; [`EngineError::Load`] with the line that dbench would not replay;
/// [`EngineError::LoadFile`] with the path `into` if it cannot be written.
pub fn write_load(of: &Load, out: &mut dyn io::Write, into: &Path) -> Result<(), EngineError> {
    let program = load(of)?;
    let source = program.facts().get("loadfile.path").unwrap_or("-");
    text::check(program.ops()).map_err(|(op, problem)| {
        refused(Path::new(source), Refusal { line: Some(program.line(op)), problem })
    })?;
    text::write(program.ops(), program.names(), out)
        .map_err(|source| EngineError::LoadFile { path: into.to_path_buf(), source })
}

/// Checks a loadfile without replaying it; used by the fuzzer.
///
/// # Errors
/// [`EngineError::Load`], with `-` as its path.
pub fn check_load(text: &[u8]) -> Result<(), EngineError> {
    // Fewer operations and repetitions than in a replay, so that one text takes little time.
    let names = NameLimits { count: 100_000, bytes: 16 << 20 };
    let limits = Limits { ops: 100_000, work: 16 << 20, names };
    read::read(text, limits).map(drop).map_err(|refusal| refused(Path::new("-"), refusal))
}

fn refused(path: &Path, refusal: Refusal) -> EngineError {
    let Refusal { line, problem } = refusal;
    EngineError::Load { path: path.to_path_buf(), line, problem: problem.what, hint: problem.hint }
}

fn finish(builder: Builder, lines: u64, facts: Environment) -> Result<Program, EngineError> {
    let (what, bytes) = ("operations of the loadfile", builder.bytes());
    builder.finish(lines, facts).map_err(|errno: Errno| EngineError::Memory {
        what,
        bytes,
        source: errno.into(),
    })
}

/// Path of the loadfile that a dbench package installed, if there is one.
pub fn installed_load() -> Option<PathBuf> {
    INSTALLED.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// Loadfile installed by a dbench package.
fn installed() -> Result<PathBuf, EngineError> {
    installed_load().ok_or_else(|| EngineError::Load {
        path: PathBuf::from(INSTALLED[0]),
        line: None,
        problem: "not found, nor in the directories of other packages".to_owned(),
        hint: "install dbench (on Debian the package dbench), use the path of a loadfile, or \
                   use the built-in one (loadfile = \"office\")",
    })
}

/// Text of a loadfile, uncompressed.
pub(crate) fn text_of(path: &Path) -> Result<Vec<u8>, EngineError> {
    let unreadable = |source| EngineError::LoadFile { path: path.to_path_buf(), source };
    let mut file = sys::input::open(path).map_err(unreadable)?;
    let mut begin = Vec::with_capacity(GZIP.len());
    file.by_ref().take(GZIP.len() as u64).read_to_end(&mut begin).map_err(unreadable)?;
    let zipped = begin == GZIP;
    let all = io::Cursor::new(begin).chain(file);
    let mut text = Vec::new();
    let result = if zipped {
        MultiGzDecoder::new(io::BufReader::new(all)).take(LONGEST + 1).read_to_end(&mut text)
    } else {
        all.take(LONGEST + 1).read_to_end(&mut text)
    };
    let problem = match result {
        Ok(_) if text.len() as u64 <= LONGEST => return Ok(text),
        Ok(_) => ("the text is longer than 96MiB".to_owned(), "split it"),
        // The decoder returns these errors for an invalid, damaged, or truncated gzip stream.
        Err(error) if zipped && error.raw_os_error().is_none() => {
            (format!("cannot uncompress: {error}"), "check it with gzip -t")
        }
        Err(error) => return Err(unreadable(error)),
    };
    let (problem, hint) = problem;
    Err(EngineError::Load { path: path.to_path_buf(), line: None, problem, hint })
}

fn sum(text: &[u8]) -> String {
    hex::encode(Sha256::digest(text))
}

/// Writer that only updates a checksum.
struct Hashed<'a>(&'a mut Sha256);

impl io::Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
