//! Overhead of fio, when it is the load generator of a run.

use std::process::Stdio;

use analysis::crosscheck;
use model::{
    Environment,
    phase::{Command, Work},
    record::{CellRecord, CellState},
};
use report::imports::fio_totals;

/// Number of measurements of the loop of fio, and the time of each.
const LOOP_RUNS: usize = 5;
const LOOP_TIME: &str = "200ms";

/// Environment facts for the open cells of which fio is the load generator: its version, and the
/// time per operation of its loop without system calls. A trial reports it if fio cannot run.
pub(super) fn facts(cells: &[CellRecord]) -> Environment {
    let mut facts = Environment::default();
    let open = cells.iter().filter(|cell| cell.state == CellState::Open);
    for cell in open.filter(|cell| crosscheck::is_fio(&cell.cell)) {
        let Some(command) = command(cell) else { continue };
        if let Some(Ok(version)) =
            command.run.first().and_then(|run| run.first()).map(|fio| version(fio))
        {
            facts.set(crosscheck::FIO_VERSION, version);
        }
        if let Some(time) = loop_time(&command) {
            facts.set(crosscheck::loop_time_fact(cell.id), format!("{time:.1}"));
        }
    }
    facts
}

/// Command line of fio for a cell.
fn command(cell: &CellRecord) -> Option<Box<Command>> {
    let suite = suites::find(&cell.cell.workload.suite)?;
    let phases = (suite.phases)(&cell.cell.workload, 0);
    phases.into_iter().find_map(|phase| {
        let Work::Command(command) = phase.work else { return None };
        Some(command)
    })
}

/// Nanoseconds per operation of the loop of fio, on its null engine.
fn loop_time(command: &Command) -> Option<f64> {
    let mut times: Vec<f64> = (0..LOOP_RUNS).filter_map(|_| null_run(command)).collect();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

/// Options of fio that affect the loop without system calls.
const OF_LOOP: [&str; 13] = [
    "--name=",
    "--rw=",
    "--rwmixread=",
    "--norandommap=",
    "--random_distribution=",
    "--bs=",
    "--bssplit=",
    "--blockalign=",
    "--filesize=",
    "--size=",
    "--refill_buffers=",
    "--buffer_compress",
    "--dedupe_percentage=",
];

fn null_run(command: &Command) -> Option<f64> {
    let (program, options) = command.run.first()?.split_first()?;
    let of_loop = |option: &&String| OF_LOOP.iter().any(|own| option.starts_with(own));
    let ran = sys::program::command(program)
        .ok()?
        .args(options.iter().filter(of_loop))
        .args(["--ioengine=null", "--time_based=1", "--thread=1", "--output-format=json"])
        .arg(format!("--runtime={LOOP_TIME}"))
        .stdin(Stdio::null())
        .output()
        .ok()?;
    let totals = fio_totals(&ran.stdout).ok()?;
    let operations = totals.read.ops.0 + totals.written.ops.0;
    (operations > 0).then(|| totals.runtime.seconds() * 1e9 / count(operations))
}

#[expect(clippy::cast_precision_loss, reason = "a number of operations below 2^53")]
fn count(operations: u64) -> f64 {
    operations as f64
}

/// Version of fio.
///
/// # Errors
/// If fio is not installed, or cannot run.
pub(super) fn version(fio: &str) -> anyhow::Result<String> {
    let ran = sys::program::command(fio).and_then(|mut command| command.arg("--version").output());
    let why = match ran {
        Ok(ran) if ran.status.success() => {
            let version = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
            if version.starts_with("fio-") {
                return Ok(version);
            }
            format!("`{fio} --version` prints {version:?}, which is not a version of fio")
        }
        Ok(ran) => format!("`{fio} --version` ended with {}", ran.status),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => match fio.contains('/') {
            true => format!("{fio} does not exist"),
            false => format!("{fio} is not installed; install the package fio"),
        },
        Err(error) => format!("{fio}: {error}"),
    };
    Err(anyhow::Error::msg(why))
}
