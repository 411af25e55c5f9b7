//! A file server's work for its clients: each replays a load file, which tells line after line what
//! a client asked for. The load file is the one that the classic tool of the suite's name installs,
//! one of the user's, or our own, an office that is generated and never stored. Results are "fslab,
//! dbench load" or "fslab, office load", never results of that tool.
//!
//! There is one phase. What the replay finds it has made itself, and it starts on an empty
//! filesystem with nothing of it in memory; `notes.md`, which is part of the reference page, lists
//! what differs from the original.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Nanos, Phase, Point, SuiteSpec,
    phase::{Cache, Durability, Load, Replay, Role, Timed, Until, Work, Workers},
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{
    Suite, parameter,
    shared::{self, worker_parameter},
};

/// The suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

/// The words of the parameter `load` beside paths: our own load, and that of the classic tool's
/// package.
const OFFICE: &str = "office";
const INSTALLED: &str = "dbench";

/// The word of the parameter `warmup` beside durations: what the classic tool has.
const FIFTH: &str = "fifth";

/// Space of one client. Its load file leaves 24 MB there, most of it written within the first
/// seconds, and makes up to 2 MB more meanwhile, which takes some 30 MB in blocks; as much again is
/// for what journals and copies on write keep of what was removed a moment ago.
const CLIENT: Bytes = Bytes::mib(64);

const AMOUNT: Kind = Kind::Amount { min: 1, max: 1 << 20 };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("load", Kind::Text { takes: "\"office\", \"dbench\", or the absolute path of a load file", read: read_load }, OFFICE, "What is replayed: an office, which fslab makes; the load file that the Debian package dbench installs; or one you have, plain or in gzip."),
    parameter("iterations", AMOUNT, "129", "How often the office's day goes by before its load begins anew; the classic load has 129 such parts."),
    parameter("clients", Kind::Count { min: 1, max: 1000 }, "1", "How many clients replay it at the same time, each in a directory of its own."),
    worker_parameter("process", "What a client is."),
    parameter("time", Kind::Time, "60s", "How long clients replay what counts."),
    parameter("warmup", Kind::Text { takes: "\"fifth\" or a duration such as \"5s\"", read: read_warmup }, FIFTH, "How long they do so before: a fifth of `time`, as the classic tool, or a time."),
    parameter("replays", Kind::Count { min: 0, max: 1 << 20 }, "0", "Replay the load file so many times, from the first line to the last, and count all of it; 0: by time."),
    parameter("resolve", Kind::Flag, "true", "Read a directory to its end for a name that is not there, as a server does whose clients know no case of letters."),
    parameter("sync_files", Kind::Flag, "false", "Open files with O_SYNC."),
    parameter("sync_directories", Kind::Flag, "false", "Flush a directory after a name in it was renamed or removed."),
    parameter("sync_writes", Kind::Flag, "false", "Call fsync(2) after every write."),
    parameter("attributes", Kind::Flag, "false", "Give new files an extended attribute, and read it at every look."),
    parameter("rate", Kind::Size { min: Bytes(0), scales: false }, "0", "Bytes that each client reads and writes in a second at most; 0: as fast as it can."),
    parameter("paced", Kind::Flag, "false", "Begin operations at the times that the load file has for them; being late counts as latency."),
    parameter("line_call", Kind::Flag, "false", "One cheap system call before each operation, as the classic tool makes to see whether its parent is alive: only for comparing with that tool."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "dbench",
    title: "Clients of a file server, each of which replays a load file.",
    source: "dbench 4.0, its file backend: calls as its traces show them, written anew; the office \
             after published counts of the operations of its load file",
    notes: include_str!("notes.md"),
    clients: Some("clients"),
    parameters: PARAMETERS,
};

fn read_load(text: &str) -> Result<String, ValueError> {
    let text = text.trim();
    if text == OFFICE || text == INSTALLED || text.starts_with('/') {
        return Ok(text.to_owned());
    }
    Err(ValueError::new(format!("`{text}` is no absolute path")).cure(
        "write the whole path of a load file, beginning with `/`, or \"office\", or \"dbench\"",
    ))
}

fn read_warmup(text: &str) -> Result<String, ValueError> {
    let text = text.trim();
    if text == FIFTH {
        return Ok(text.to_owned());
    }
    let time = Nanos::parse(text).map_err(|error| {
        ValueError::new(format!("{error}, or \"fifth\", which is a fifth of `time`"))
    })?;
    Ok(time.to_string())
}

/// What is replayed before counting. A duration was read once, so it reads again.
fn warmup(point: &Point) -> Nanos {
    let fifth = Nanos(point.time("time").0 / 5);
    Nanos::parse(point.text("warmup")).unwrap_or(fifth)
}

fn refine(mut point: Point) -> Result<Vec<Point>, ValueError> {
    let by_time = point.count("replays") == 0;
    if by_time && point.time("time") == Nanos(0) {
        return Err(ValueError::new("`time` is zero, so nothing counts")
            .cure("give a time such as \"60s\", or set `replays` to 1 or more"));
    }
    let office = point.text("load") == OFFICE;
    let paced = point.flag("paced");
    if office && paced {
        return Err(ValueError::new("the office has no times at which operations begin")
            .cure("set `paced` to false, or `load` to a file whose lines begin with seconds"));
    }
    if paced && point.size("rate") > Bytes(0) {
        return Err(ValueError::new("`paced` and `rate` both say when operations begin")
            .cure("set `paced` to false, or `rate` to 0"));
    }
    let mut idle = Vec::new();
    if !office {
        idle.push("iterations");
    }
    if !by_time {
        idle.extend(["time", "warmup"]);
    }
    point.settle(&SPEC.defaults(), &idle);
    Ok(vec![point])
}

fn phases(point: &Point, seed: u64) -> Vec<Phase> {
    vec![Phase {
        name: "replay".into(),
        group: "replaying".into(),
        role: Role::Measure,
        cache: Cache::Cold,
        work: Work::Replay(replay(point, seed)),
        timed: Timed::default(),
    }]
}

fn replay(point: &Point, seed: u64) -> Replay {
    let load = match point.text("load") {
        OFFICE => Load::Office { iterations: point.count("iterations"), seed },
        INSTALLED => Load::File { path: None },
        path => Load::File { path: Some(path.into()) },
    };
    let until = match point.count("replays") {
        0 => Until::Time { ramp: warmup(point), run: point.time("time") },
        times => Until::Replayed(times),
    };
    let kind = shared::kind(point);
    Replay {
        load,
        until,
        resolve: point.flag("resolve"),
        durability: Durability {
            files: point.flag("sync_files"),
            directories: point.flag("sync_directories"),
            writes: point.flag("sync_writes"),
        },
        attributes: point.flag("attributes"),
        rate: Some(point.size("rate")).filter(|rate| *rate > Bytes(0)),
        paced: point.flag("paced"),
        line_call: point.flag("line_call"),
        workers: Workers { kind, ..Workers::threads(shared::count(point, "clients")) },
    }
}

/// What clients have there together at most. A load file of the user's is taken to be like the
/// classic one.
fn footprint(point: &Point) -> Bytes {
    Bytes(point.count("clients").saturating_mul(CLIENT.0))
}
