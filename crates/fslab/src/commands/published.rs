//! Published results as arguments in place of a run file: their output by `fslab report`, and
//! errors of commands that require a run file.

use std::path::Path;

use report::{AUDITED, Audited, PUBLISHED, Published, TerminalOptions};

use super::report::{Outputs, charts, hand_over, write};
use crate::{
    cli::{Format, Report},
    exit::{Exit, Failure},
    output,
};

/// Prints or exports published results.
///
/// # Errors
/// If the name is unknown, or the report cannot be written.
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
    Ok(Exit::Success)
}

/// Published results in a format, or for the terminal.
///
/// # Errors
/// If the format is not available for published results. The message lists available formats.
fn text(set: &'static Published, format: Option<Format>, detail: bool) -> Result<String, Failure> {
    let name = set.full_name();
    let records = |layout| {
        set.bonnie(layout).ok_or_else(|| {
            Failure::usage(anyhow::anyhow!(
                "{name} does not contain bonnie++ results; use --format csv for its numbers \
                 (bonnie-2012@published has records)"
            ))
        })
    };
    let refused = |why: &str| {
        Failure::usage(anyhow::anyhow!(
            "{name} is not available in this format: {why}; use --format csv for all numbers as \
             rows, json or md for tables, --html for a page, or --charts for charts"
        ))
    };
    Ok(match format {
        Some(Format::Csv) => set.csv(),
        Some(Format::Json) => set.json(),
        Some(Format::Md) => set.markdown(),
        Some(Format::Bonnie) => records(report::bonnie::Format::V198)?,
        Some(Format::Bonnie196) => records(report::bonnie::Format::V196)?,
        Some(Format::Xlsx) => return Err(refused("workbooks contain the repetitions of a run")),
        Some(Format::Parquet) => {
            return Err(refused("its rows are samples of a run, and none were published"));
        }
        Some(Format::Prometheus) => {
            return Err(refused("it is for monitoring, and old results would raise alarms"));
        }
        Some(Format::Iozone) => {
            return Err(refused(
                "an IOzone listing contains single runs, but means were published",
            ));
        }
        Some(Format::Dbench) => {
            return Err(refused("an output of dbench is a repetition, and none were published"));
        }
        Some(Format::Mdtest) => {
            return Err(refused("tables of mdtest summarize repetitions, and none were published"));
        }
        Some(Format::Fio | Format::FioTerse | Format::FioJson | Format::FioJsonPlus) => {
            return Err(refused("a document of fio contains repetitions, and none were published"));
        }
        None => {
            let (width, color) = (output::width(), output::color());
            output::legible(set.terminal(&TerminalOptions { width, color, detail }))
        }
    })
}

/// Error about an unknown name, with a suggestion.
pub(super) fn unknown(name: &str) -> Failure {
    let known: Vec<String> = PUBLISHED.iter().map(Published::full_name).collect();
    let near = model::suggest::nearest(name, known.iter().map(String::as_str));
    let near = near.map_or_else(String::new, |near| format!(" Did you mean {near}?"));
    Failure::usage(anyhow::anyhow!(
        "there are no published results `{name}`; available: {}.{near}",
        known.join(", ")
    ))
}

/// Reports whether published results of this name can be audited.
fn audited(name: &str) -> bool {
    AUDITED.iter().filter(|set| set.is_printed()).map(Audited::full_name).any(|known| known == name)
}

/// Error of a command that requires a run file but got the name of published results; `None` for
/// all other arguments.
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
            "{name} are published results, not a run file; they can be used with `fslab compare`, \
             {} only",
            commands.join(", and ")
        ))
    })
}
