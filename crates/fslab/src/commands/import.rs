//! `fslab import`: converts results of another benchmark to a run file.
//!
//! [`report::bonnie`] parses the records; this module reads and writes files.

use std::{
    io,
    path::{Path, PathBuf},
};

use anyhow::Context;
use model::{Nanos, RunRecord};
use report::bonnie::{self, Importing, ReadError, Record};
use store::Store;
use sys::whole::Fresh;

use crate::{
    cli::Import,
    exit::{Exit, Failure},
    output,
    runner::now_unix,
};

/// Maximum file size in bytes, sufficient for 3,000 records.
const LONGEST: u64 = 1 << 20;

/// File name for stdin.
const STDIN: &str = "-";

pub(super) fn run(arguments: &Import) -> Result<Exit, Failure> {
    let mut records = Vec::new();
    for file in &arguments.files {
        let text = text(file)?;
        let read = bonnie::read(&text).map_err(|error| refused(file, error))?;
        records.extend(read);
    }
    name(&mut records, &arguments.names)?;
    let now = now_unix();
    let sources: Vec<String> = arguments.files.iter().map(|file| shown(file)).collect();
    let importing = Importing {
        id: format!("imported-{}-{:04x}", report::stamp(now), fastrand::u16(..)),
        source: &sources.join(", "),
        now,
    };
    let run = bonnie::import(&records, importing);
    let path = place(arguments);
    keep(&path, &run, now)?;
    let count = match records.len() {
        1 => "one record".to_owned(),
        several => format!("{several} records"),
    };
    output::message(&format!(
        "{count} of {} in {}; show with: fslab report {}",
        run.info.program,
        path.display(),
        path.display()
    ));
    Ok(Exit::Success)
}

/// Text of a file, or of stdin, in any encoding that extends ASCII. Other bytes may be replaced,
/// because the parser ignores them.
fn text(file: &Path) -> Result<String, Failure> {
    let bytes = match file.to_str() {
        Some(STDIN) => sys::input::of(io::stdin().lock(), LONGEST),
        Some(_) | None => sys::input::bytes(file, LONGEST),
    };
    let bytes = bytes.with_context(|| {
        format!("cannot read the records in {}; check the path and its permissions", shown(file))
    });
    Ok(String::from_utf8_lossy(&bytes.map_err(Failure::usage)?).into_owned())
}

fn shown(file: &Path) -> String {
    if file == Path::new(STDIN) { "stdin".into() } else { file.display().to_string() }
}

/// Parse error of a file, with the supported formats.
fn refused(file: &Path, error: ReadError) -> Failure {
    let whole = matches!(error, ReadError::Line { .. } | ReadError::Empty);
    let hint = match whole {
        true => {
            "; fslab imports CSV of bonnie++ 1.03, 1.96, 1.97, 1.98, and 2.00, one record per line"
        }
        false => "",
    };
    Failure::usage(anyhow::anyhow!("{}: {error}{hint}", shown(file)))
}

/// Assigns the given names to the records.
fn name(records: &mut [Record], names: &[String]) -> Result<(), Failure> {
    if names.is_empty() {
        return Ok(());
    }
    if names.len() != records.len() {
        return Err(Failure::usage(anyhow::anyhow!(
            "there are {} records, but {} names; use --names with one name per record, in the \
             order of the records",
            records.len(),
            names.len()
        )));
    }
    for (record, name) in records.iter_mut().zip(names) {
        record.name.clone_from(name);
    }
    Ok(())
}

/// Path of the run file: the given path, or a path next to the first file.
fn place(arguments: &Import) -> PathBuf {
    match (&arguments.output, arguments.files.first()) {
        (Some(path), _) => path.clone(),
        (None, Some(file)) if file != Path::new(STDIN) => file.with_extension("fslab"),
        (None, _) => PathBuf::from("imported.fslab"),
    }
}

/// Writes the run under a temporary name and renames it when it is complete.
fn keep(path: &Path, run: &RunRecord, now: Nanos) -> Result<(), Failure> {
    let there = || {
        Failure::usage(anyhow::anyhow!(
            "{} already exists; use another file with -o",
            path.display()
        ))
    };
    if path.symlink_metadata().is_ok() {
        return Err(there());
    }
    let making = || format!("creating {}", path.display());
    let part = Fresh::name(path).with_context(making)?;
    let mut store = Store::create(&part, &run.info, &run.cells, &run.environment, &run.warnings)?;
    let made = Fresh::adopt(part, path).with_context(making)?;
    for trial in &run.trials {
        store.trial(trial, None)?;
    }
    store.finish(now)?;
    match made.place_new() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(there()),
        placed => Ok(placed.map(drop).with_context(making)?),
    }
}
