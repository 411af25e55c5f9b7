//! `fslab compare`: compares runs test by test.
//!
//! Input: run files. [`analysis::runs`] compares them, [`report::comparison`] renders the result,
//! and the gate sets the exit status. Published results are shown next to a run, or next to each
//! other, without a test ([`comparison::side_by_side`]).

use std::path::Path;

use analysis::runs::{self, Chain, CompareOptions, GateRule, GateVerdict, Metrics};
use model::RunRecord;
use report::{
    PUBLISHED_SUFFIX, TerminalOptions,
    comparison::{self, side_by_side::Source},
};

use super::{
    published,
    report::{apart, read, write},
    run_file::RunFilePath,
};
use crate::{
    cli::{Compare, ComparisonFormat},
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(compare: &Compare) -> Result<Exit, Failure> {
    if compare.runs.len() < 2 {
        return Err(Failure::usage(runs::CompareError::One));
    }
    if compare.runs.iter().any(|path| is_published(path)) {
        return beside(compare);
    }
    let record = |path: &Path| read(&RunFilePath::find(path));
    let records = compare.runs.iter().map(|path| record(path));
    let records = records.collect::<Result<Vec<RunRecord>, _>>()?;
    let records: Vec<&RunRecord> = records.iter().collect();
    let chain = runs::chain(&records, &pairs(compare)).map_err(|refused| {
        let paths = compare.runs.iter().map(|path| path.display().to_string());
        let paths = paths.collect::<Vec<_>>().join(" and ");
        Failure::usage(anyhow::anyhow!("{paths}: {refused}"))
    })?;
    if let Some(path) = &compare.html {
        page(compare, path, &comparison::html(&records, &chain))?;
        return Ok(exit(&chain));
    }
    let terminal = |options: &_| comparison::terminal(&records, &chain, options);
    match compare.format {
        None => show(terminal)?,
        Some(ComparisonFormat::Md) => output::result(&comparison::markdown(&records, &chain))?,
        Some(ComparisonFormat::Json) => output::json(&comparison::json(&records, &chain))?,
    }
    Ok(exit(&chain))
}

/// Reports whether this is the name of published results.
fn is_published(path: &Path) -> bool {
    path.to_str().is_some_and(|name| name.ends_with(PUBLISHED_SUFFIX))
}

/// Side-by-side comparison of a run and published results, or of two published results. The exit
/// status is success, because nothing is tested.
///
/// # Errors
/// If there are not exactly two arguments, an option requires a test, or no results can be paired.
fn beside(compare: &Compare) -> Result<Exit, Failure> {
    let [first, second] = &compare.runs[..] else {
        let text = "a side-by-side comparison needs exactly two arguments";
        return Err(Failure::usage(anyhow::anyhow!(text)));
    };
    let judging = compare.gate.is_some() || compare.margin.is_some() || compare.all;
    if judging || compare.metric.is_some() || !compare.allow_differences.is_empty() {
        return Err(Failure::usage(anyhow::anyhow!(
            "published results are compared by their printed metrics, without significance tests; \
             remove --gate, --margin, --metric, --all, and --allow-differences"
        )));
    }
    let run = |path: &Path| match is_published(path) {
        true => Ok(None),
        false => read(&RunFilePath::find(path)).map(Some),
    };
    let records = [run(first)?, run(second)?];
    let source = |path: &Path, record: &'_ Option<RunRecord>| match record {
        Some(_) => Ok(None),
        None => {
            let name = path.to_str().unwrap_or_default();
            report::published(name).map(Some).ok_or_else(|| published::unknown(name))
        }
    };
    let sets = [source(first, &records[0])?, source(second, &records[1])?];
    let side = |at: usize| match (&records[at], sets[at]) {
        (Some(record), _) => Ok(Source::Run(record)),
        (None, Some(set)) => Ok(Source::Published(set)),
        (None, None) => Err(Failure::usage(runs::CompareError::One)),
    };
    let found = comparison::side_by_side::side_by_side(side(0)?, side(1)?, &compare.pair);
    let found = found.map_err(Failure::usage)?;
    if let Some(path) = &compare.html {
        page(compare, path, &found.html())?;
        return Ok(Exit::Success);
    }
    match compare.format {
        Some(ComparisonFormat::Md) => output::result(&found.markdown())?,
        Some(ComparisonFormat::Json) => output::json(&found.json())?,
        None => show(|options| found.terminal(options))?,
    }
    Ok(Exit::Success)
}

/// Writes the HTML page of a comparison, but not over a run file.
///
/// # Errors
/// If the path is that of a run file, or the page cannot be written.
fn page(compare: &Compare, path: &Path, html: &str) -> Result<(), Failure> {
    for run in compare.runs.iter().filter(|path| !is_published(path)) {
        apart(path, &RunFilePath::find(run))?;
    }
    write(path, html.as_bytes())?;
    output::message(&format!("comparison {}", path.display()));
    Ok(())
}

/// Prints tables for the terminal.
fn show(tables: impl Fn(&TerminalOptions) -> String) -> std::io::Result<()> {
    let (width, color) = (output::width(), output::color());
    output::styled(&output::legible(tables(&TerminalOptions { width, color, detail: false })))
}

/// Options of the comparison.
fn pairs(compare: &Compare) -> CompareOptions {
    let metrics = match compare.metric {
        Some(metric) => Metrics::One(metric),
        None if compare.all => Metrics::All,
        None => Metrics::Primary,
    };
    let rule = |margin| GateRule { margin, strict: compare.strict };
    CompareOptions {
        rename: compare.pair.clone(),
        metrics,
        margin: compare.margin,
        allow: compare.allow_differences.clone(),
        gate: compare.gate.map(rule),
    }
}

/// Exit status of the gate; success without a gate.
fn exit(chain: &Chain) -> Exit {
    match chain.gate.as_ref().map(|gate| gate.verdict) {
        None | Some(GateVerdict::Passed) => Exit::Success,
        Some(GateVerdict::Failed) => Exit::DifferenceFound,
        Some(GateVerdict::Inconclusive) => Exit::Inconclusive,
        Some(GateVerdict::NotComparable) => Exit::Usage,
    }
}
