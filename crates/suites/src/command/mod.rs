//! Suite `command`: programs of the user, prepared, run, and checked in the directory under test.
//!
//! The parameters are lines of words ([`model::words`]), which module [`rows`] reads.

mod rows;
#[cfg(test)]
mod tests;

use model::{
    Bytes, Nanos, Phase, SuiteSpec, WorkloadParameters,
    phase::{
        Cache, Command, Compression, Method, Role, Task, TaskOperation, TaskPath, TaskRoot, Timed,
        Work,
        command::{Argv, Input, Judge, Temporary},
    },
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, parameter};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

const SPEC: SuiteSpec = SuiteSpec {
    name: "command",
    title: "Programs of the user: prepared, run, and checked in the directory under test.",
    source: "fslab; the programs are those of the user",
    notes: include_str!("notes.md"),
    clients: None,
    parameters: PARAMETERS,
};

const PROGRAMS: Kind = Kind::Lines {
    takes: "a program and its arguments as a list of words, a list of such lists, or a text",
    read: rows::read_programs,
};
const ONE: Kind = Kind::Lines {
    takes: "a program and its arguments as a list of words, or a text",
    read: rows::read_program,
};
const WORDS: Kind = Kind::Lines { takes: "a list of NAME=VALUE", read: rows::read_variables };
const NUMBERS: Kind = Kind::Lines {
    takes: "tables with name, is, pattern, and optionally from, unit, and which",
    read: rows::read_numbers,
};
const LATENCIES: Kind =
    Kind::Lines { takes: "a table with file, column, and unit", read: rows::read_latencies };
const NAME: Kind = Kind::Text { takes: "lower-case letters, digits, and dashes", read: read_name };
const TEXT: Kind = Kind::Text { takes: "a text", read: |text| Ok(text.trim().to_owned()) };
const PATH: Kind = Kind::Text { takes: "an absolute path", read: read_path };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("run", PROGRAMS, "true", "Programs that are measured, one after the other. There is no shell."),
    parameter("prepare", PROGRAMS, "", "Programs that run before the clock starts, after mkfs."),
    parameter("serve", ONE, "", "Server that runs during `run`; it is ended by SIGTERM."),
    parameter("ready", ONE, "", "Program that is repeated every 100 ms, for at most 60 s, until it succeeds; then `run` starts."),
    parameter("settle", PROGRAMS, "", "Programs that complete the work, such as a checkpoint, timed separately."),
    parameter("check", PROGRAMS, "", "Programs that must succeed afterwards; not timed."),
    parameter("name", NAME, "run", "Name of the test in reports."),
    parameter("input", PATH, "", "Existing file or directory, for the placeholder `{input}`."),
    parameter("input_files", Kind::Amount { min: 0, max: 1 << 24 }, "0", "Files of a generated source tree in the archive `{input}/source.tar`; 0: no archive."),
    parameter("amount", Kind::Amount { min: 1, max: 1 << 40 }, "1", "Amount of work, for the placeholder `{amount}`."),
    parameter("runtime", Kind::Time, "60s", "Time for which the programs work, for the placeholder `{runtime}` in whole seconds."),
    parameter("user", TEXT, "", "User of the programs, by name or number; by default the user who called sudo or, for root, the user nobody. `same` is the user who runs fslab."),
    parameter("network", Kind::Flag, "false", "Let the programs use the network of the host; otherwise they have only a loopback device, if the kernel allows it."),
    parameter("environment", WORDS, "", "Additional environment variables."),
    parameter("temporary", Kind::Word(&["target", "scratch"]), "target", "Directory for temporary files (`TMPDIR`)."),
    parameter("cache", Kind::Word(&["cold", "unchanged"]), "cold", "Cache state before `run` and `serve`."),
    parameter("expect", Kind::Count { min: 0, max: 255 }, "0", "Exit status that the last program of `run` must have."),
    parameter("timeout", Kind::Time, "30min", "Maximum time of each program."),
    parameter("footprint", Kind::Size { min: Bytes(0), scales: true }, "0", "Space that the programs use; 0: unknown."),
    parameter("numbers", NUMBERS, "", "Numbers in the output of `run`: rate, time, bytes, or count."),
    parameter("latencies", LATENCIES, "", "File in which a program writes one latency per line."),
    parameter("count_calls", Kind::Flag, "false", "Count the file calls of `run` in one additional trial of each cell, under the recorder."),
    parameter("judge", TEXT, "durable", "Primary metric: durable (until the final sync), elapsed, or the name of a number."),
];

fn read_name(text: &str) -> Result<String, ValueError> {
    match rows::is_name(text) && !["input", "prepare"].contains(&text) {
        true => Ok(text.to_owned()),
        false => Err(ValueError::new(format!(
            "`{text}` is not a name; use lower-case letters, digits, and dashes, but not input or prepare"
        ))),
    }
}

fn read_path(text: &str) -> Result<String, ValueError> {
    match text.trim() {
        path if path.is_empty() || path.starts_with('/') => Ok(path.to_owned()),
        path => Err(ValueError::new(format!("`{path}` is not an absolute path"))),
    }
}

fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    if point.text("run").is_empty() {
        return Err(ValueError::new("`run` is empty").hint("set it to a program and arguments"));
    }
    if !point.text("ready").is_empty() && point.text("serve").is_empty() {
        return Err(ValueError::new("`ready` is set, but `serve` is not").hint("remove `ready`"));
    }
    if point.flag("count_calls") && !point.text("serve").is_empty() {
        return Err(ValueError::new(
            "`count_calls` counts the calls of `run`, not those of `serve`",
        )
        .hint("remove `count_calls`, or record the server by `fslab record`"));
    }
    let generated = point.count("input_files") > 0;
    if generated && !point.text("input").is_empty() {
        return Err(
            ValueError::new("both `input` and `input_files` are set").hint("remove one of them")
        );
    }
    let programs =
        ["run", "prepare", "serve", "ready", "settle", "check", "environment", "latencies"];
    let uses_input = programs.iter().any(|key| point.text(key).contains("{input}"));
    if uses_input && !generated && point.text("input").is_empty() {
        return Err(ValueError::new("the programs use {input}, but there is no input")
            .hint("set `input` to a path, or `input_files` to a number of files"));
    }
    // Values of unused placeholders do not distinguish workloads.
    let unused: Vec<&str> = ["amount", "runtime"]
        .into_iter()
        .filter(|name| !programs.iter().any(|key| point.text(key).contains(&format!("{{{name}}}"))))
        .collect();
    point.reset(&SPEC.defaults(), &unused);
    let judge = point.text("judge");
    let numbers = rows::numbers(point.text("numbers"))?;
    let names: Vec<&str> = numbers.iter().map(|number| number.name.as_str()).collect();
    let chosen = numbers.iter().find(|number| number.name == judge);
    if !["durable", "elapsed"].contains(&judge) && chosen.is_none() {
        let known = ["durable", "elapsed"].iter().chain(&names).copied().collect::<Vec<_>>();
        return Err(ValueError::new(format!("`judge` is `{judge}`, but there is no such number"))
            .hint(format!("use {}", known.join(", "))));
    }
    let better = chosen.map(|number| number.kind.metric().spec().better);
    if better == Some(model::metric::Better::Neither) {
        return Err(ValueError::new(format!("`judge` is `{judge}`, which has no direction"))
            .hint("use a number with is = \"rate\" or \"time\""));
    }
    Ok(vec![point])
}

/// Programs with the conditions of the parameters.
fn command(point: &WorkloadParameters, seed: u64, run: Vec<Argv>) -> Command {
    Command {
        user: point.text("user").to_owned(),
        network: point.flag("network"),
        environment: programs(point, "environment").concat(),
        temporary: match point.word("temporary") {
            "scratch" => Temporary::Scratch,
            _ => Temporary::Target,
        },
        input: match (point.text("input"), point.count("input_files")) {
            ("", 0) => Input::None,
            ("", _) => Input::Generated,
            (path, _) => Input::Path(path.to_owned()),
        },
        timeout: match point.time("timeout") {
            Nanos(0) => Nanos(u64::MAX),
            time => time,
        },
        amount: point.count("amount"),
        runtime: point.time("runtime").0.div_ceil(1_000_000_000),
        seed,
        ..Command::plain(run)
    }
}

/// Programs of a parameter, which was checked when it was read.
fn programs(point: &WorkloadParameters, key: &str) -> Vec<Argv> {
    rows::programs(point.text(key)).unwrap_or_default()
}

/// Measured programs.
fn measured(point: &WorkloadParameters, seed: u64) -> Command {
    Command {
        serve: programs(point, "serve").pop(),
        ready: programs(point, "ready").pop(),
        settle: programs(point, "settle"),
        check: programs(point, "check"),
        expect: u8::try_from(point.count("expect")).unwrap_or(u8::MAX),
        numbers: rows::numbers(point.text("numbers")).unwrap_or_default(),
        latencies: rows::latencies(point.text("latencies")).unwrap_or_default(),
        calls: point.flag("count_calls"),
        judge: match point.text("judge") {
            "durable" => Judge::Durable,
            "elapsed" => Judge::Elapsed,
            name => Judge::Number(name.to_owned()),
        },
        ..command(point, seed, programs(point, "run"))
    }
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let phase = |name: &str, role, cache, work| Phase {
        name: name.to_owned(),
        group: "programs".into(),
        role,
        cache,
        work,
        timed: Timed::default(),
        directory: None,
        together: None,
    };
    let mut phases = Vec::new();
    if point.count("input_files") > 0 {
        let operation = TaskOperation::Archive {
            archive: TaskPath { root: TaskRoot::External, name: SOURCE.into() },
            files: point.count("input_files"),
            compression: Compression::None,
        };
        let block_size = Bytes::kib(128);
        let task = Task { operation, method: Method::Native, block_size, seed };
        phases.push(phase("input", Role::Prepare, Cache::Unchanged, Work::Task(task)));
    }
    let prepare = programs(point, "prepare");
    if !prepare.is_empty() {
        let work = Work::Command(Box::new(command(point, seed, prepare)));
        phases.push(phase("prepare", Role::Prepare, Cache::Unchanged, work));
    }
    let cache = match point.word("cache") {
        "cold" => Cache::Cold,
        _ => Cache::Unchanged,
    };
    let work = Work::Command(Box::new(measured(point, seed)));
    phases.push(phase(point.text("name"), Role::Measure, cache, work));
    phases
}

/// Name of the generated archive in the external directory.
const SOURCE: &str = "source.tar";

fn footprint(point: &WorkloadParameters) -> Bytes {
    point.size("footprint")
}
