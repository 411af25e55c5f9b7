//! `fslab import`: records of another program become a run file.
//!
//! What the records mean is decided in [`report::bonnie`]; here files are read and written.

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
    conductor::now_unix,
    exit::{Exit, Failure},
    output,
};

/// Bytes of the longest file, which has 3,000 records.
const LONGEST: u64 = 1 << 20;

/// In place of a file: stdin.
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
    Ok(Exit::Done)
}

/// The text of a file, or of stdin. Records are text in any of the encodings that agree with ASCII;
/// what is none of it is kept out of the run by the reader.
fn text(file: &Path) -> Result<String, Failure> {
    let bytes = match file.to_str() {
        Some(STDIN) => sys::input::of(io::stdin().lock(), LONGEST),
        Some(_) | None => sys::input::bytes(file, LONGEST),
    };
    let bytes = bytes.with_context(|| {
        format!("reading the records in {}; check the path and its permissions", shown(file))
    });
    Ok(String::from_utf8_lossy(&bytes.map_err(Failure::usage)?).into_owned())
}

fn shown(file: &Path) -> String {
    if file == Path::new(STDIN) { "stdin".into() } else { file.display().to_string() }
}

/// A mistake in a file, and what can be read.
fn refused(file: &Path, error: ReadError) -> Failure {
    let whole = matches!(error, ReadError::Line { .. } | ReadError::Empty);
    let cure = match whole {
        true => {
            "; fslab imports CSV of bonnie++ 1.03, 1.96, 1.97, 1.98, and 2.00, one record a line"
        }
        false => "",
    };
    Failure::usage(anyhow::anyhow!("{}: {error}{cure}", shown(file)))
}

/// Gives records the names that were asked for.
fn name(records: &mut [Record], names: &[String]) -> Result<(), Failure> {
    if names.is_empty() {
        return Ok(());
    }
    if names.len() != records.len() {
        return Err(Failure::usage(anyhow::anyhow!(
            "there are {} records and {} names; give --names one for each, in their order",
            records.len(),
            names.len()
        )));
    }
    for (record, name) in records.iter_mut().zip(names) {
        record.name.clone_from(name);
    }
    Ok(())
}

/// The run file: as asked for, or beside the first file.
fn place(arguments: &Import) -> PathBuf {
    match (&arguments.output, arguments.files.first()) {
        (Some(path), _) => path.clone(),
        (None, Some(file)) if file != Path::new(STDIN) => file.with_extension("fslab"),
        (None, _) => PathBuf::from("imported.fslab"),
    }
}

/// Writes the run, which gets its name when it is complete.
fn keep(path: &Path, run: &RunRecord, now: Nanos) -> Result<(), Failure> {
    let there = || {
        Failure::usage(anyhow::anyhow!(
            "{} exists already; name another file with -o",
            path.display()
        ))
    };
    if path.symlink_metadata().is_ok() {
        return Err(there());
    }
    let making = || format!("making {}", path.display());
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
