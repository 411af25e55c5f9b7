//! `fslab crosscheck`: the same operations by fslab and by an installed fio, in pairs.
//!
//! The measurement is that of `fslab bench` with both values of the parameter `load_generator`. The
//! trials of a repetition are a pair, whose order is random.

use std::path::Path;

use analysis::crosscheck::Verdict;
use model::record::Outcome;
use report::{Programs, TerminalOptions};

use super::{
    bench::{self, Workload},
    fio_loop,
};
use crate::{
    cli::{Bench, Comparison, Crosscheck},
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(arguments: &Crosscheck, state: &Path) -> Result<Exit, Failure> {
    fio_loop::version(&arguments.fio)?;
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
    let tests = analysis::crosscheck::crosscheck(&record, arguments.margin);
    let programs = Programs::of(&record);
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
