//! `fslab compare`: what changed from one run to the next, and whether that may be said.
//!
//! Run files enter; [`analysis::runs`] compares them, [`report::comparison`] tells it, and the gate
//! becomes the exit status. Published results stand beside a run, or beside each other, without a
//! verdict ([`comparison::beside`]).

use std::path::Path;

use analysis::runs::{self, Chain, GateRule, GateVerdict, Metrics, Pairs};
use model::RunRecord;
use report::{
    PUBLISHED_SUFFIX, TerminalOptions,
    comparison::{self, beside::Source},
};

use super::{
    keeping::Keeping,
    published,
    report::{apart, read, write},
};
use crate::{
    cli::{Compare, ComparisonFormat},
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(compare: &Compare) -> Result<Exit, Failure> {
    if compare.runs.len() < 2 {
        return Err(Failure::usage(runs::Refused::One));
    }
    if compare.runs.iter().any(|path| is_published(path)) {
        return beside(compare);
    }
    if compare.html.is_some() {
        return Err(Failure::usage(anyhow::anyhow!(
            "--html is there where one side is published, such as tasks-2006@published; runs alone \
             have --format md"
        )));
    }
    let record = |path: &Path| read(&Keeping::find(path));
    let records = compare.runs.iter().map(|path| record(path));
    let records = records.collect::<Result<Vec<RunRecord>, _>>()?;
    let records: Vec<&RunRecord> = records.iter().collect();
    let chain = runs::chain(&records, &pairs(compare)).map_err(|refused| {
        let paths = compare.runs.iter().map(|path| path.display().to_string());
        let paths = paths.collect::<Vec<_>>().join(" and ");
        Failure::usage(anyhow::anyhow!("{paths}: {refused}"))
    })?;
    let terminal = |options: &_| comparison::terminal(&records, &chain, options);
    match compare.format {
        None => show(terminal)?,
        Some(ComparisonFormat::Md) => output::result(&comparison::markdown(&records, &chain))?,
        Some(ComparisonFormat::Json) => output::json(&comparison::json(&records, &chain))?,
    }
    Ok(exit(&chain))
}

/// Whether this names published results.
fn is_published(path: &Path) -> bool {
    path.to_str().is_some_and(|name| name.ends_with(PUBLISHED_SUFFIX))
}

/// A run beside published results, or two of these. Nothing decides, so the ending is that all is
/// well.
///
/// # Errors
/// When there are not two, something is asked for that needs a verdict, or nothing pairs.
fn beside(compare: &Compare) -> Result<Exit, Failure> {
    let [first, second] = &compare.runs[..] else {
        let text = "published results stand beside one other; give exactly two";
        return Err(Failure::usage(anyhow::anyhow!(text)));
    };
    let judging = compare.gate.is_some() || compare.threshold.is_some() || compare.all;
    if judging || compare.metric.is_some() || !compare.allow.is_empty() {
        return Err(Failure::usage(anyhow::anyhow!(
            "beside published results nothing is judged and the metrics are those that were \
             printed; leave out --gate, --threshold, --metric, --all, and --allow"
        )));
    }
    let run = |path: &Path| match is_published(path) {
        true => Ok(None),
        false => read(&Keeping::find(path)).map(Some),
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
        (None, None) => Err(Failure::usage(runs::Refused::One)),
    };
    let found = comparison::beside::beside(side(0)?, side(1)?, &compare.pair);
    let found = found.map_err(Failure::usage)?;
    if let Some(path) = &compare.html {
        for run in compare.runs.iter().filter(|path| !is_published(path)) {
            apart(path, &Keeping::find(run))?;
        }
        write(path, found.html().as_bytes())?;
        output::message(&format!("comparison {}", path.display()));
        return Ok(Exit::Done);
    }
    match compare.format {
        Some(ComparisonFormat::Md) => output::result(&found.markdown())?,
        Some(ComparisonFormat::Json) => output::json(&found.json())?,
        None => show(|options| found.terminal(options))?,
    }
    Ok(Exit::Done)
}

/// Prints tables for the terminal.
fn show(tables: impl Fn(&TerminalOptions) -> String) -> std::io::Result<()> {
    let (width, color) = (output::width(), output::color());
    output::styled(&output::legible(tables(&TerminalOptions { width, color, detail: false })))
}

/// What was asked for.
fn pairs(compare: &Compare) -> Pairs {
    let metrics = match compare.metric {
        Some(metric) => Metrics::One(metric),
        None if compare.all => Metrics::All,
        None => Metrics::Primary,
    };
    let rule = |threshold| GateRule { threshold, strict: compare.strict };
    Pairs {
        rename: compare.pair.clone(),
        metrics,
        threshold: compare.threshold,
        allow: compare.allow.clone(),
        gate: compare.gate.map(rule),
    }
}

/// The ending that the gate leads to; without one all is well.
fn exit(chain: &Chain) -> Exit {
    match chain.gate.as_ref().map(|gate| gate.verdict) {
        None | Some(GateVerdict::Passed) => Exit::Done,
        Some(GateVerdict::Failed) => Exit::No,
        Some(GateVerdict::Undecided) => Exit::Undecided,
        Some(GateVerdict::Refused) => Exit::Usage,
    }
}
