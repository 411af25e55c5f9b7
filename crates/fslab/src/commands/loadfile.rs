//! `fslab loadfile`: summarizes or writes a loadfile. Also checks the loadfiles of a plan before
//! anything is formatted.

use std::{
    io::{self, BufWriter, IsTerminal, Write},
    path::Path,
};

use anyhow::Context;
use model::{
    Environment,
    phase::{Load, Work},
};
use sys::whole::Fresh;

use crate::{
    cli::Loadfile,
    exit::{Exit, Failure},
    output,
    plans::ResolvedPlan,
};

/// Environment facts about the distinct loadfiles of a plan. The built-in loadfile is generated
/// with seed 0.
///
/// # Errors
/// If a loadfile cannot be read or replayed.
pub(super) fn of(chosen: &ResolvedPlan) -> Result<Vec<Environment>, Failure> {
    let mut loads = Vec::new();
    for labelled in &chosen.cells {
        let point = &labelled.cell.workload;
        let phases = suites::find(&point.suite).map(|suite| (suite.phases)(point, 0));
        for phase in phases.unwrap_or_default() {
            if let Work::Replay(replay) = phase.work
                && !loads.contains(&replay.loadfile)
            {
                loads.push(replay.loadfile);
            }
        }
    }
    let inspect = |load: &Load| {
        engine::inspect_load(load).map_err(|error| Failure::usage(anyhow::Error::from(error)))
    };
    loads.iter().map(inspect).collect()
}

/// File name for stdout.
const STDOUT: &str = "-";

pub(super) fn run(arguments: &Loadfile) -> Result<Exit, Failure> {
    summarize(arguments).map_err(Failure::usage)
}

fn summarize(arguments: &Loadfile) -> anyhow::Result<Exit> {
    let load = match arguments.load.as_str() {
        "office" => Load::Office { iterations: arguments.iterations, seed: arguments.seed },
        "dbench" => Load::File { path: None },
        path => Load::File { path: Some(path.to_owned()) },
    };
    let Some(path) = &arguments.output else {
        let facts = engine::inspect_load(&load)?;
        let width = facts.0.keys().map(String::len).max().unwrap_or_default();
        let lines: Vec<_> =
            facts.0.iter().map(|(name, value)| format!("{name:width$}  {value}")).collect();
        output::lines(&lines)?;
        return Ok(Exit::Success);
    };
    if path.as_os_str() == STDOUT && io::stdout().is_terminal() {
        let mut text = Vec::new();
        engine::write_load(&load, &mut text, path)?;
        output::result(&String::from_utf8_lossy(&text))?;
        return Ok(Exit::Success);
    }
    if path.as_os_str() == STDOUT {
        let mut out = BufWriter::new(io::stdout().lock());
        engine::write_load(&load, &mut out, path)?;
        out.flush().context("stdout")?;
        return Ok(Exit::Success);
    }
    write(&load, path)?;
    output::message(&format!("wrote the loadfile {}", path.display()));
    Ok(Exit::Success)
}

/// Writes a new file; an existing file is not changed.
fn write(load: &Load, path: &Path) -> anyhow::Result<()> {
    let there = || anyhow::anyhow!("{} already exists; use another file", path.display());
    // Checked before the loadfile is generated, which can take seconds.
    if path.symlink_metadata().is_ok() {
        return Err(there());
    }
    let making = || format!("creating {}", path.display());
    let fresh = Fresh::beside(path, 0o666).with_context(making)?;
    let mut out = BufWriter::new(fresh.file());
    let written = engine::write_load(load, &mut out, path).map_err(anyhow::Error::from);
    written
        .and_then(|()| Ok(out.flush()?))
        .with_context(|| format!("writing {}", path.display()))?;
    drop(out);
    match fresh.place_new() {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(there()),
        placed => placed.map(drop).with_context(making),
    }
}
