//! Load files: what the classic tool replays, read once into a [`Program`].
//!
//! A load file is a text with one operation in each line, plain or compressed by gzip; versions 3
//! and 4 of the format, and of version 5 what does not differ between clients. Where a tool that
//! only counts would go on, this one refuses: a line that is damaged, cut off, or not known, a name
//! that leads out of the directory of a client, and a number that no recording has. The error tells
//! the line, what was found there, and what to do.
//!
//! Deliberately not here: whether the operations make sense for a filesystem; what goes otherwise
//! than a line says is counted when it is replayed.

mod grammar;
mod problem;
mod read;
mod text;
mod words;

use std::{
    fmt::Write as _,
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

/// Where the classic tool's load file is installed: by Debian's package, and by the tool's own
/// `make install`, which puts it into the data directory of its prefix.
const INSTALLED: [&str; 3] =
    ["/usr/share/dbench/client.txt", "/usr/local/share/client.txt", "/usr/share/client.txt"];
/// Bytes of the longest text, uncompressed; that of the package dbench has 25 MiB. A text is in
/// memory as a whole, also one that turns out to be no load file.
const LONGEST: u64 = 96 << 20;
/// What a gzip file begins with (RFC 1952, section 2.3.1).
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Reads or makes a load.
///
/// # Errors
/// [`EngineError::LoadFile`] and [`EngineError::Load`] for a file that cannot be read or replayed;
/// [`EngineError::Memory`] when there is no room for its operations.
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
            let label = format!("dbench-compatible (user's load file, sha256 {})", &sum[..12]);
            facts.set("load.label", label);
            facts.set("load.sha256", sum);
            facts.set("load.path", path.display().to_string());
            finish(builder, lines, facts)
        }
        Load::Office { iterations, seed } => {
            let builder = office::office(*iterations, *seed)?;
            let lines = builder.ops().len() as u64;
            let mut sum = Sha256::new();
            text::write(builder.ops(), builder.names(), &mut Hashed(&mut sum))
                .expect("hashing does not fail");
            let mut facts = Environment::default();
            facts.set("load.label", office::label(*iterations, *seed));
            facts.set("load.sha256", hexadecimal(&sum.finalize()));
            finish(builder, lines, facts)
        }
    }
}

/// What a load is: the facts that results of its replay carry, and others can be told before.
///
/// # Errors
/// As when it is replayed: a load file that cannot be read or replayed.
pub fn inspect_load(of: &Load) -> Result<Environment, EngineError> {
    Ok(load(of)?.facts().clone())
}

/// Writes a load as a load file that version 4 of the classic tool can replay too: with our own
/// load, both tools can be compared on the same operations.
///
/// Nothing is written of a load that it would not replay as a whole: it passes over lines whose
/// status is `*`, and has room for 200 open handles. Numbers that make no difference (levels,
/// attributes) are the same everywhere, and what is expected to fail has one status for its kind.
///
/// # Errors
/// As when it is replayed; [`EngineError::Load`] with the line of the load file that the classic
/// tool would not replay; [`EngineError::LoadFile`], with the path `into`, when it cannot be
/// written.
pub fn write_load(of: &Load, out: &mut dyn io::Write, into: &Path) -> Result<(), EngineError> {
    let program = load(of)?;
    let source = program.facts().get("load.path").unwrap_or("-");
    text::check(program.ops()).map_err(|(op, problem)| {
        refused(Path::new(source), Refusal { line: Some(program.line(op)), problem })
    })?;
    text::write(program.ops(), program.names(), out)
        .map_err(|source| EngineError::LoadFile { path: into.to_path_buf(), source })
}

/// Whether a text would be replayed, without doing so: what a fuzzer calls.
///
/// # Errors
/// [`EngineError::Load`], with `-` as its path.
pub fn check_load(text: &[u8]) -> Result<(), EngineError> {
    // Fewer operations and less unrolling than a replay allows, so that one text takes little time.
    let names = NameLimits { count: 100_000, bytes: 16 << 20 };
    let limits = Limits { ops: 100_000, work: 16 << 20, names };
    read::read(text, limits).map(drop).map_err(|refusal| refused(Path::new("-"), refusal))
}

fn refused(path: &Path, refusal: Refusal) -> EngineError {
    let Refusal { line, problem } = refusal;
    EngineError::Load { path: path.to_path_buf(), line, problem: problem.what, cure: problem.cure }
}

fn finish(builder: Builder, lines: u64, facts: Environment) -> Result<Program, EngineError> {
    let (what, bytes) = ("the operations of a load file", builder.bytes());
    builder.finish(lines, facts).map_err(|errno: Errno| EngineError::Memory {
        what,
        bytes,
        source: errno.into(),
    })
}

/// The load file of the classic tool, where a package installed it.
fn installed() -> Result<PathBuf, EngineError> {
    INSTALLED.iter().map(PathBuf::from).find(|path| path.is_file()).ok_or_else(|| {
        EngineError::Load {
            path: PathBuf::from(INSTALLED[0]),
            line: None,
            problem: "it is not there, nor where other packages put it".to_owned(),
            cure: "install dbench (on Debian the package dbench), give the path of a load file, or \
                   use our own load (load = \"office\")",
        }
    })
}

/// The text of a load file, uncompressed.
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
        Ok(_) => ("its text is longer than 96MiB".to_owned(), "split it"),
        // The decoder answers so for what is no gzip stream, is damaged, or is cut off.
        Err(error) if zipped && error.raw_os_error().is_none() => {
            (format!("it cannot be uncompressed: {error}"), "check it by gzip -t")
        }
        Err(error) => return Err(unreadable(error)),
    };
    let (problem, cure) = problem;
    Err(EngineError::Load { path: path.to_path_buf(), line: None, problem, cure })
}

fn sum(text: &[u8]) -> String {
    hexadecimal(&Sha256::digest(text))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes everything");
        text
    })
}

/// A writer that only adds to a checksum.
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
