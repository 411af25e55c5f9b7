//! `fslab report`: renders a run file, or published results given by name.

pub(super) mod charts;
mod outputs;

use std::{cell::LazyCell, fs, path::Path};

use anyhow::Context;
use model::RunRecord;
use report::{FioFormat, PUBLISHED_SUFFIX, TerminalOptions, View};
use store::StoreError;

use super::{published, run_file::RunFilePath};
use crate::{
    cli::{Format, Report},
    exit::{Exit, Failure},
    output,
};
pub(super) use outputs::{Outputs, To};

pub(super) fn run(arguments: &Report) -> Result<Exit, Failure> {
    if let Some(name) = arguments.run.to_str().filter(|name| name.ends_with(PUBLISHED_SUFFIX)) {
        return published::run(name, arguments);
    }
    let outputs = Outputs::of(arguments)?;
    let record = read(&RunFilePath::find(&arguments.run))?;
    outputs.apart_from(&arguments.run)?;
    // Computed on first use, because formats that contain only samples need no statistics.
    let view = LazyCell::new(|| viewed(&arguments.run, &record));
    if let Some((format, to)) = &outputs.text {
        match format {
            None => {
                let (width, color) = (output::width(), output::color());
                let options = TerminalOptions { width, color, detail: arguments.detail };
                output::styled(&output::legible(report::terminal(&view, &options)))?;
            }
            Some(format) => hand_over(&made(*format, &record, &view)?, to)?,
        }
    }
    for path in &outputs.html {
        write(path, report::html(&view, &[]).as_bytes())?;
        output::message(&format!("report {}", path.display()));
    }
    if let Some(directory) = &outputs.charts {
        charts::write(view.run(), report::export::charts(&view), directory)?;
    }
    Ok(Exit::Success)
}

/// View of a run, compared with the previous run of its plan in the same directory.
pub(super) fn viewed(path: &Path, record: &RunRecord) -> View {
    let mut view = View::new(record);
    view.check_statements(record);
    if let Some(previous) = previous(path, record) {
        view.compare_with(&previous, record);
    }
    view
}

/// The last earlier run of the same plan among the files `PLAN-*.fslab` next to a run file. Only
/// the last four files by name are read. Files that cannot be read are ignored.
fn previous(path: &Path, record: &RunRecord) -> Option<RunRecord> {
    const READ_MAX: usize = 4;
    let directory = std::path::absolute(path).ok()?.parent()?.to_owned();
    let prefix = format!("{}-", record.info.plan_name);
    let earlier = |name: &String| name.starts_with(&prefix) && name.ends_with(".fslab");
    let names = fs::read_dir(&directory).ok()?.flatten();
    let mut names: Vec<String> =
        names.filter_map(|entry| entry.file_name().into_string().ok()).filter(earlier).collect();
    // Default names end with the start time, so the order of names is that of the runs.
    names.sort();
    let own = path.file_name()?.to_str()?;
    let before = names.iter().rev().filter(|name| name.as_str() != own).take(READ_MAX);
    let runs = before.filter_map(|name| read(&directory.join(name)).ok());
    let earlier = |run: &RunRecord| {
        run.info.plan_name == record.info.plan_name
            && run.info.started_unix < record.info.started_unix
    };
    runs.filter(earlier).max_by_key(|run| run.info.started_unix)
}

/// Renders a run in a format.
///
/// # Errors
/// If the format requires another suite, or the run cannot be written in it.
fn made<V: std::ops::Deref<Target = View>>(
    format: Format,
    record: &RunRecord,
    view: &V,
) -> Result<Vec<u8>, Failure> {
    let text = match format {
        Format::Csv => report::csv(record),
        Format::Json => report::json(view),
        Format::Md => report::markdown(view),
        Format::Prometheus => report::prometheus(view),
        Format::Iozone => report::iozone(record).map_err(Failure::usage)?,
        Format::Dbench => {
            report::dbench(record, report::DbenchForm::Text).map_err(Failure::usage)?
        }
        Format::Mdtest => {
            report::mdtest(record, &report::MdtestCommand::default()).map_err(Failure::usage)?
        }
        Format::FioJson => report::fio(record, FioFormat::Json).map_err(Failure::usage)?,
        Format::Fio => report::fio(record, FioFormat::Normal).map_err(Failure::usage)?,
        Format::FioTerse => report::fio(record, FioFormat::Terse).map_err(Failure::usage)?,
        Format::FioJsonPlus => report::fio(record, FioFormat::JsonPlus).map_err(Failure::usage)?,
        Format::Bonnie => bonnie(record, report::bonnie::Format::V198)?,
        Format::Bonnie196 => bonnie(record, report::bonnie::Format::V196)?,
        Format::Xlsx => return Ok(report::xlsx(view, record)?),
        Format::Parquet => return parquet(record),
    };
    Ok(text.into_bytes())
}

fn bonnie(record: &RunRecord, format: report::bonnie::Format) -> Result<String, Failure> {
    report::bonnie::export(record, format).map_err(Failure::usage)
}

#[cfg(feature = "parquet")]
fn parquet(record: &RunRecord) -> Result<Vec<u8>, Failure> {
    Ok(report::parquet(record)?)
}

#[cfg(not(feature = "parquet"))]
fn parquet(_record: &RunRecord) -> Result<Vec<u8>, Failure> {
    Err(Failure::usage(anyhow::anyhow!(
        "this build has no Parquet support; use --format csv for the same rows, or build with \
         cargo build --features parquet"
    )))
}

/// Writes an output to its target.
///
/// # Errors
/// If it cannot be written.
pub(super) fn hand_over(bytes: &[u8], to: &To) -> Result<(), Failure> {
    match to {
        To::Stdout => output::bytes(bytes)?,
        To::File(path) => {
            write(path, bytes)?;
            output::message(&format!("report {}", path.display()));
        }
    }
    Ok(())
}

/// Writes a report atomically, replacing an existing one.
///
/// # Errors
/// If it cannot be written.
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let written = sys::whole::write(path, bytes);
    Ok(written
        .with_context(|| format!("cannot write the report {}; use another path", path.display()))?)
}

/// Rejects a path at which a report cannot be written.
///
/// # Errors
/// If it is that of the run file, or its directory does not exist.
pub(super) fn apart(output: &Path, run_file: &Path) -> Result<(), Failure> {
    if same(output, run_file) {
        return Err(Failure::usage(anyhow::anyhow!(
            "{} is the run file itself; use another file for the report",
            output.display()
        )));
    }
    // A missing directory of the run file is reported as such.
    let directory = output.parent().filter(|own| Some(*own) != run_file.parent());
    let named = directory.filter(|directory| !directory.as_os_str().is_empty());
    match named.filter(|directory| !directory.is_dir()) {
        Some(directory) => Err(Failure::usage(anyhow::anyhow!(
            "the directory {} of the report does not exist; create it, or use another path",
            directory.display()
        ))),
        None => Ok(()),
    }
}

/// Reports whether two paths refer to the same file, which need not exist. Links are resolved.
fn same(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let file = |path| fs::metadata(path).ok().map(|own| (own.dev(), own.ino()));
    if file(a).is_some() && file(a) == file(b) {
        return true;
    }
    match (fs::canonicalize(a), fs::canonicalize(b)) {
        (Ok(a), Ok(b)) => a == b,
        (Err(_), _) | (_, Err(_)) => std::path::absolute(a).ok() == std::path::absolute(b).ok(),
    }
}

/// Reads a run for display, with control characters in its texts escaped.
///
/// # Errors
/// As [`stored`].
pub(super) fn read(path: &Path) -> Result<RunRecord, Failure> {
    let mut record = stored(path)?;
    report::plain(&mut record);
    Ok(record)
}

/// Reads a run unchanged. A file that is missing or is not a run is a usage error.
///
/// # Errors
/// As [`store::read`].
pub(super) fn stored(path: &Path) -> Result<RunRecord, Failure> {
    if let Some(refused) = published::no_run_file(path) {
        return Err(refused);
    }
    store::read(path).map_err(|error| match error {
        StoreError::Open { .. } | StoreError::NotARun(..) => Failure::usage(error),
        StoreError::Exists(_)
        | StoreError::Schema { .. }
        | StoreError::Altered { .. }
        | StoreError::Side { .. }
        | StoreError::Busy(_)
        | StoreError::Full { .. }
        | StoreError::Database { .. }
        | StoreError::Damaged { .. } => error.into(),
    })
}
