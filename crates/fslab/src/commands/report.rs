//! `fslab report`: everything from the run file alone; or, by their names, results that others have
//! published.

use std::{fs, path::Path};

use anyhow::Context;
use model::RunRecord;
use report::{
    PUBLISHED, PUBLISHED_SUFFIX, Published, TerminalOptions, View,
    audit::{AUDITED, Audited},
};
use store::StoreError;

use super::keeping::Keeping;
use crate::{
    cli::{Format, Report},
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(arguments: &Report) -> Result<Exit, Failure> {
    if let Some(name) = arguments.run.to_str().filter(|name| name.ends_with(PUBLISHED_SUFFIX)) {
        return published(name, arguments);
    }
    let record = read(&Keeping::find(&arguments.run))?;
    if let Some(Format::Csv) = arguments.format {
        output::result(&report::csv(&record))?;
        return Ok(Exit::Done);
    }
    if let Some(format) = arguments.format.and_then(of_bonnie) {
        let records = report::bonnie::export(&record, format).map_err(Failure::usage)?;
        output::result(&records)?;
        return Ok(Exit::Done);
    }
    let view = View::new(&record);
    if let Some(path) = &arguments.html {
        apart(path, &arguments.run)?;
        let written = fs::write(path, report::html(&view));
        written.with_context(|| format!("writing the report {}", path.display()))?;
        output::message(&format!("report {}", path.display()));
        return Ok(Exit::Done);
    }
    let text = match arguments.format {
        Some(Format::Json) => report::json(&view),
        Some(Format::Md) => report::markdown(&view),
        Some(Format::Csv | Format::Bonnie | Format::Bonnie196) | None => {
            let (width, color) = (output::width(), output::color());
            report::terminal(&view, &TerminalOptions { width, color, detail: arguments.detail })
        }
    };
    output::result(&text)?;
    Ok(Exit::Done)
}

/// The format of records of bonnie++, if it is one.
fn of_bonnie(format: Format) -> Option<report::bonnie::Format> {
    match format {
        Format::Bonnie => Some(report::bonnie::Format::V198),
        Format::Bonnie196 => Some(report::bonnie::Format::V196),
        Format::Csv | Format::Json | Format::Md => None,
    }
}

/// Shows results that others have published.
///
/// # Errors
/// When none have this name, or the report cannot be written.
fn published(name: &str, arguments: &Report) -> Result<Exit, Failure> {
    let Some(set) = report::published(name) else {
        if audited(name) {
            return Err(Failure::usage(anyhow::anyhow!(
                "{name} is there for `fslab audit` only: fslab audit {name}"
            )));
        }
        let known: Vec<String> = PUBLISHED.iter().map(Published::full_name).collect();
        return Err(Failure::usage(anyhow::anyhow!(
            "no published results are called `{name}`; there are {}",
            known.join(", ")
        )));
    };
    if let Some(path) = &arguments.html {
        let written = fs::write(path, set.html());
        written.with_context(|| format!("writing the report {}", path.display()))?;
        output::message(&format!("report {}", path.display()));
        return Ok(Exit::Done);
    }
    let text = match arguments.format {
        Some(Format::Csv) => set.csv(),
        Some(Format::Json) => set.json(),
        Some(Format::Md) => set.markdown(),
        Some(Format::Bonnie | Format::Bonnie196) => {
            return Err(Failure::usage(anyhow::anyhow!(
                "published results are printed as they were published; --format csv gives the \
                 data of {name} as they are kept"
            )));
        }
        None => {
            let (width, color) = (output::width(), output::color());
            set.terminal(&TerminalOptions { width, color, detail: arguments.detail })
        }
    };
    output::result(&text)?;
    Ok(Exit::Done)
}

/// Refuses to write a report over the run it is made from.
///
/// # Errors
/// When both paths are one file.
pub(super) fn apart(html: &Path, run_file: &Path) -> Result<(), Failure> {
    let same = match (fs::canonicalize(html), fs::canonicalize(run_file)) {
        (Ok(html), Ok(run_file)) => html == run_file,
        (Err(_), _) | (_, Err(_)) => {
            std::path::absolute(html).ok() == std::path::absolute(run_file).ok()
        }
    };
    match same {
        false => Ok(()),
        true => Err(Failure::usage(anyhow::anyhow!(
            "{} is the run file itself; name another file with --html",
            html.display()
        ))),
    }
}

/// Whether published results of this name can be audited.
fn audited(name: &str) -> bool {
    AUDITED.iter().map(Audited::full_name).any(|known| known == name)
}

/// Reads a run; a file that is none, or not there, is wrong usage.
///
/// # Errors
/// As [`store::read`].
pub(super) fn read(path: &Path) -> Result<RunRecord, Failure> {
    if let Some(name) = path.to_str().filter(|name| !path.exists() && name.contains('@')) {
        let shown = PUBLISHED.iter().any(|set| set.full_name() == name);
        let commands: Vec<String> = [("report", shown), ("audit", audited(name))]
            .into_iter()
            .filter(|(_, known)| *known)
            .map(|(command, _)| format!("`fslab {command}`"))
            .collect();
        if !commands.is_empty() {
            return Err(Failure::usage(anyhow::anyhow!(
                "{name} are published results and no run file; they are there for {} only",
                commands.join(" and ")
            )));
        }
    }
    store::read(path).map_err(|error| match error {
        StoreError::Open { .. } | StoreError::NotARun(_) => Failure::usage(error),
        StoreError::Exists(_)
        | StoreError::Newer { .. }
        | StoreError::Busy(_)
        | StoreError::Full { .. }
        | StoreError::Database { .. }
        | StoreError::Damaged { .. } => error.into(),
    })
}
