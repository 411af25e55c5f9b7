//! Results that others have published, by their names in place of a run file: `fslab report`, and
//! what other commands say of them.

use std::path::Path;

use report::{
    PUBLISHED, Published, TerminalOptions,
    audit::{AUDITED, Audited},
};

use super::report::{Outputs, charts, hand_over, write};
use crate::{
    cli::{Format, Report},
    exit::{Exit, Failure},
    output,
};

/// Shows results that others have published.
///
/// # Errors
/// When none have this name, or the report cannot be written.
pub(super) fn run(name: &str, arguments: &Report) -> Result<Exit, Failure> {
    let Some(set) = report::published(name) else {
        return Err(unknown(name));
    };
    let outputs = Outputs::of(arguments)?;
    for path in &outputs.html {
        write(path, set.html().as_bytes())?;
        output::message(&format!("report {}", path.display()));
    }
    if let Some((format, to)) = &outputs.text {
        hand_over(text(set, *format, arguments.detail)?.as_bytes(), to)?;
    }
    if let Some(directory) = &outputs.charts {
        charts::write(name, report::export::published(set), directory)?;
    }
    Ok(Exit::Done)
}

/// Published results in a format; for a terminal without one.
///
/// # Errors
/// When they are not there in it, with what is.
fn text(set: &'static Published, format: Option<Format>, detail: bool) -> Result<String, Failure> {
    let name = set.full_name();
    let records = |layout| {
        set.bonnie(layout).ok_or_else(|| {
            Failure::usage(anyhow::anyhow!(
                "{name} is no study of bonnie++, so there are no records of it; --format csv gives \
                 its numbers, and bonnie-2012@published has records"
            ))
        })
    };
    let refused = |why: &str| {
        Failure::usage(anyhow::anyhow!(
            "{name} is not there in this format: {why}; --format csv gives every number as rows \
             that spreadsheets and data frames read, json and md its tables, --html a page, and \
             --charts its charts"
        ))
    };
    Ok(match format {
        Some(Format::Csv) => set.csv(),
        Some(Format::Json) => set.json(),
        Some(Format::Md) => set.markdown(),
        Some(Format::Bonnie) => records(report::bonnie::Format::V198)?,
        Some(Format::Bonnie196) => records(report::bonnie::Format::V196)?,
        Some(Format::Xlsx) => return Err(refused("workbooks are made of the repeats of a run")),
        Some(Format::Parquet) => {
            return Err(refused("its rows are the samples of a run, and none were published"));
        }
        Some(Format::Prometheus) => {
            return Err(refused("it is for runs that are watched, and old numbers would alarm"));
        }
        Some(Format::Iozone) => {
            return Err(refused("a listing of IOzone is of single runs, and means were published"));
        }
        None => {
            let (width, color) = (output::width(), output::color());
            output::legible(set.terminal(&TerminalOptions { width, color, detail }))
        }
    })
}

/// That there is no such set, with the name that may have been meant.
pub(super) fn unknown(name: &str) -> Failure {
    let known: Vec<String> = PUBLISHED.iter().map(Published::full_name).collect();
    let near = model::suggest::nearest(name, known.iter().map(String::as_str));
    let near = near.map_or_else(String::new, |near| format!(" Did you mean {near}?"));
    Failure::usage(anyhow::anyhow!(
        "no published results are called `{name}`; there are {}.{near}",
        known.join(", ")
    ))
}

/// Whether published results of this name can be audited.
fn audited(name: &str) -> bool {
    AUDITED.iter().map(Audited::full_name).any(|known| known == name)
}

/// The refusal of a command that wants a run file and was given the name of published results;
/// `None` for everything else.
pub(super) fn no_run_file(path: &Path) -> Option<Failure> {
    let name = path.to_str().filter(|name| !path.exists() && name.contains('@'))?;
    let shown = PUBLISHED.iter().any(|set| set.full_name() == name);
    let commands: Vec<String> = [("report", shown), ("audit", audited(name))]
        .into_iter()
        .filter(|(_, known)| *known)
        .map(|(command, _)| format!("`fslab {command}`"))
        .collect();
    (!commands.is_empty()).then(|| {
        Failure::usage(anyhow::anyhow!(
            "{name} are published results and no run file; they are there for `fslab compare`, {} only",
            commands.join(", and ")
        ))
    })
}
