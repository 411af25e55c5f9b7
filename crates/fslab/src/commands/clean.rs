//! `fslab clean`: undo what a killed run left behind.

use std::path::Path;

use rig::{RealHost, undo};

use crate::{
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(state: &Path) -> Result<Exit, Failure> {
    let report = undo::clean(&RealHost, state)?;
    let mut lines = Vec::new();
    lines.extend(report.undone.iter().map(|what| format!("undone: {what}")));
    lines.extend(report.left.iter().map(|it| format!("left alone: {}: {}", it.what, it.why)));
    lines.extend(report.live.iter().map(|run| format!("left alone, still running: {run}")));
    lines.extend(report.stuck.iter().map(|it| format!("could not undo {}: {}", it.what, it.why)));
    if rig::resume::disarm(&RealHost, None)? {
        lines.push("removed: the unit that would have gone on with a run after a boot".into());
    }
    lines.extend(super::keeping::clean(state));
    if lines.is_empty() {
        lines.push("nothing to undo".into());
    }
    output::lines(&lines)?;
    match report.stuck.is_empty() {
        true => Ok(Exit::Done),
        false => Err(anyhow::anyhow!(
            "some of it is still there; end the processes that use it and run `fslab clean` again"
        )
        .into()),
    }
}
