//! `fslab compare`: what changed from one run to the next, and whether that may be said.
//!
//! Run files enter; [`analysis::runs`] compares them, [`report::comparison`] tells it, and the gate
//! becomes the exit status.

use std::path::Path;

use analysis::runs::{self, Chain, GateRule, GateVerdict, Metrics, Pairs};
use model::RunRecord;
use report::{TerminalOptions, comparison};

use super::{keeping::Keeping, report::read};
use crate::{
    cli::{Compare, ComparisonFormat},
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(compare: &Compare) -> Result<Exit, Failure> {
    if compare.runs.len() < 2 {
        return Err(Failure::usage(runs::Refused::One));
    }
    let record = |path: &Path| read(&Keeping::find(path));
    let records = compare.runs.iter().map(|path| record(path));
    let records = records.collect::<Result<Vec<RunRecord>, _>>()?;
    let records: Vec<&RunRecord> = records.iter().collect();
    let chain = runs::chain(&records, &pairs(compare)).map_err(Failure::usage)?;
    let text = match compare.format {
        None => {
            let (width, color) = (output::width(), output::color());
            let options = TerminalOptions { width, color, detail: false };
            comparison::terminal(&records, &chain, &options)
        }
        Some(ComparisonFormat::Md) => comparison::markdown(&records, &chain),
        Some(ComparisonFormat::Json) => comparison::json(&records, &chain),
    };
    output::result(&text)?;
    Ok(exit(&chain))
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
