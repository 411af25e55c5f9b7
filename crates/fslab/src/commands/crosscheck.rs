//! `fslab crosscheck`: the same operations by fslab and by an installed fio, in pairs.
//!
//! The measurement is that of `fslab bench` with both values of the parameter `load_generator`. The
//! trials of a repetition are a pair, whose order is random.

use std::{path::Path, process::Stdio};

use analysis::crosscheck::Verdict;
use model::{
    phase::{Command, Work},
    record::{CellRecord, Outcome},
};
use report::{Programs, TerminalOptions, imports::fio_totals};

use super::bench::{self, Workload};
use crate::{
    cli::{Bench, Comparison, Crosscheck},
    exit::{Exit, Failure},
    output,
};

/// Number of measurements of the loop of fio, and the time of each.
const LOOP_RUNS: usize = 5;
const LOOP_TIME: &str = "200ms";

pub(super) fn run(arguments: &Crosscheck, state: &Path) -> Result<Exit, Failure> {
    let fio = version(&arguments.fio)?;
    let mut own = bench::of_command(&as_bench(arguments))?;
    let found = own.clone();
    let workload = Workload::find(&found)?;
    if !["stream", suites::fio::NAME].contains(&workload.parameters().suite.as_str()) {
        return Err(Failure::usage(anyhow::anyhow!(
            "fio cannot perform workload {}; use a job file, or a workload of suite stream, such as \
             randread-4k",
            arguments.workload
        )));
    }
    if let Some(setting) = without_end_sync(arguments, &workload) {
        output::message(
            "end_fsync = none: fio only measures the time that includes the final sync, which \
             fslab does not measure for this workload",
        );
        own.set.push(setting);
    }
    let (ended, place) = bench::measure(&own, &workload, state)?;
    if ended.tally.interrupted {
        output::message(&place.interrupted());
        return Ok(Exit::Interrupted);
    }
    let record = super::report::read(&place.path())?;
    let failed = record.trials.iter().find_map(|trial| match &trial.outcome {
        Outcome::Failed { reason } => Some(reason),
        Outcome::Measured | Outcome::Invalid { .. } => None,
    });
    if let Some(reason) = failed {
        return Err(anyhow::anyhow!("{reason}").into());
    }
    let tests = analysis::crosscheck::crosscheck(&record, arguments.margin, loop_cost);
    let programs = Programs { fslab: format!("fslab {}", env!("CARGO_PKG_VERSION")), fio };
    match arguments.json {
        true => output::json(&report::crosscheck_json(&record, &tests, &programs))?,
        false => {
            let (width, color) = (output::width(), output::color());
            let options = TerminalOptions { width, color, detail: false };
            let sheet = report::crosscheck(&record, &tests, &programs, &options);
            place.print(sheet)?;
        }
    }
    let any = |verdicts: &[Verdict]| tests.iter().any(|test| verdicts.contains(&test.verdict()));
    Ok(match () {
        () if any(&[Verdict::Different, Verdict::DifferentWork]) => Exit::DifferenceFound,
        () if any(&[Verdict::Inconclusive, Verdict::LoopBound]) => Exit::Inconclusive,
        () if tests.is_empty() => Exit::Environment,
        () => Exit::Success,
    })
}

/// Arguments of `fslab bench` for both load generators.
fn as_bench(arguments: &Crosscheck) -> Bench {
    let mut set = arguments.set.clone();
    set.push(("load_generator".into(), "fslab,fio".into()));
    if arguments.fio != "fio" {
        set.push(("fio_program".into(), arguments.fio.clone()));
    }
    Bench {
        workload: Some(arguments.workload.clone()),
        directory: Some(arguments.directory.clone()),
        command: None,
        runtime: arguments.runtime.clone(),
        file_size: arguments.file_size.clone(),
        set,
        repetitions: arguments.pairs,
        crash_state: None,
        output: arguments.output.clone(),
        quiet: arguments.quiet,
        json: arguments.json,
        comparison: Comparison::default(),
    }
}

/// Setting that removes the final sync, unless the user sets it, or both programs measure the time
/// until the data is durable.
fn without_end_sync(arguments: &Crosscheck, workload: &Workload<'_>) -> Option<(String, String)> {
    let of_stream = workload.parameters().suite == "stream";
    if !of_stream || arguments.set.iter().any(|(key, _)| key == "end_fsync") {
        return None;
    }
    let mut point = workload.parameters().clone();
    let spec = suites::find(&point.suite)?.spec;
    let runtime = arguments.runtime.as_ref().map(|time| ("runtime".to_owned(), time.clone()));
    for (key, value) in arguments.set.iter().cloned().chain(runtime) {
        // Invalid values are reported with the plan. Of a list, any value may need the setting.
        let mut values =
            value.split(',').filter_map(|value| spec.parameter(&key).ok()?.kind.read(value).ok());
        if let Some(value) = values.next_back() {
            point.parameters.insert(key, value);
        }
    }
    let phases = (suites::find(&point.suite)?.phases)(&point, 0);
    suites::fio_incomparable(phases.last()?)?;
    Some(("end_fsync".into(), "none".into()))
}

/// Version of fio.
///
/// # Errors
/// If fio is not installed, or cannot run.
fn version(fio: &str) -> Result<String, Failure> {
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
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            format!("{fio} is not installed; install the package fio")
        }
        Err(error) => format!("{fio}: {error}"),
    };
    Err(Failure::usage(anyhow::Error::msg(why)))
}

/// Nanoseconds per operation of the loop of fio for the job of a cell, on its null engine.
fn loop_cost(cell: &CellRecord) -> Option<f64> {
    let suite = suites::find(&cell.cell.workload.suite)?;
    let phases = (suite.phases)(&cell.cell.workload, 0);
    let command = phases.iter().find_map(|phase| {
        let Work::Command(command) = &phase.work else { return None };
        Some(command)
    })?;
    let mut costs: Vec<f64> = (0..LOOP_RUNS).filter_map(|_| null_run(command)).collect();
    costs.sort_by(f64::total_cmp);
    costs.get(costs.len() / 2).copied()
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
