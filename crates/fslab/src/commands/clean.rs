//! `fslab clean`: undoes the changes of a killed run.

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
    lines.extend(report.skipped.iter().map(|it| format!("skipped: {}: {}", it.what, it.why)));
    lines.extend(report.live.iter().map(|run| format!("skipped, still running: {run}")));
    lines.extend(report.failed.iter().map(|it| format!("cannot undo {}: {}", it.what, it.why)));
    if rig::resume::remove_unit(&RealHost, None)? {
        lines.push("removed: the systemd unit that would have resumed a run after a reboot".into());
    }
    lines.extend(super::run_file::clean(state));
    if lines.is_empty() {
        lines.push("nothing to undo".into());
    }
    output::lines(&lines)?;
    match report.failed.is_empty() {
        true => Ok(Exit::Success),
        false => Err(anyhow::anyhow!(
            "some changes remain; end the processes that use them and run `fslab clean` again"
        )
        .into()),
    }
}
