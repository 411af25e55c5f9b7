//! Suite `dbench`: concurrent clients that replay a file server loadfile. The loadfile is that of
//! the package dbench, a file of the user, or the built-in loadfile `office`, which is generated
//! and not stored. Results are labeled "fslab, dbench load" or "fslab, office load", because they
//! are not results of dbench.
//!
//! A trial has one phase, on an empty filesystem with cold caches. The replay creates all files
//! that it uses. The reference page, which includes `notes.md`, lists the differences from dbench.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Nanos, Phase, SuiteSpec, WorkloadParameters,
    phase::{Cache, Durability, Load, Replay, Role, Timed, Until, Work, Workers},
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{
    Suite, parameter,
    shared::{self, worker_type_parameter},
};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

/// Values of the parameter `loadfile` that are not paths: the built-in loadfile, and the loadfile
/// of the package dbench.
const OFFICE: &str = "office";
const INSTALLED: &str = "dbench";

/// Value of the parameter `ramp_time` that is not a duration: a fifth of `runtime`, as in dbench.
const FIFTH: &str = "fifth";

/// Space of one client. The files of a client take 21 MiB on ext4 with the built-in loadfile, and
/// the loadfile of dbench leaves 24 MB; there are also up to 2 MB of temporary files. The rest is
/// for copy-on-write filesystems, which free removed data later.
const CLIENT: Bytes = Bytes::mib(32);

const AMOUNT: Kind = Kind::Amount { min: 1, max: 1 << 20 };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("loadfile", Kind::Text { takes: "\"office\", \"dbench\", or the absolute path of a loadfile", read: read_loadfile }, OFFICE, "Loadfile to replay: office (built-in), dbench (installed package), or a path, plain or gzip."),
    parameter("iterations", AMOUNT, "129", "Iterations of the built-in loadfile before it starts again; the loadfile of dbench has 129."),
    parameter("clients", Kind::Count { min: 1, max: 1000 }, "1", "Number of concurrent clients, each in its own directory."),
    worker_type_parameter("process", "Kind of client."),
    parameter("runtime", Kind::Time, "60s", "Measured time."),
    parameter("ramp_time", Kind::Text { takes: "\"fifth\" or a duration such as \"5s\"", read: read_ramp_time }, FIFTH, "Time before the measurement starts (dbench `--warmup`): a fifth of `runtime`, as in dbench, or a duration."),
    parameter("replay_count", Kind::Count { min: 0, max: 1 << 20 }, "0", "Number of complete replays, all measured; 0: by time."),
    parameter("resolve", Kind::Flag, "true", "Read the whole directory for a name that does not exist, as a server of case-insensitive clients does."),
    parameter("o_sync", Kind::Flag, "false", "Open with O_SYNC."),
    parameter("sync_directories", Kind::Flag, "false", "fsync of the directory after a rename or removal."),
    parameter("fsync_writes", Kind::Flag, "false", "fsync after each write (`-F`)."),
    parameter("xattr", Kind::Flag, "false", "Extended attributes (`-x`): set on new files, read by each query."),
    parameter("rate", Kind::Size { min: Bytes(0), scales: false }, "0", "Maximum bytes per second of each client; 0: unlimited."),
    parameter("use_timestamps", Kind::Flag, "false", "Start operations at the times recorded in the loadfile; delays count as latency."),
    parameter("parent_check", Kind::Flag, "false", "Extra system call per operation, as in dbench; only for comparisons with dbench."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "dbench",
    title: "Concurrent clients that replay a file server loadfile.",
    source: "dbench 4.0, file backend: calls as its traces show them; the built-in loadfile \
             follows published operation counts of the loadfile of dbench",
    notes: include_str!("notes.md"),
    clients: Some("clients"),
    parameters: PARAMETERS,
};

fn read_loadfile(text: &str) -> Result<String, ValueError> {
    let text = text.trim();
    if text == OFFICE || text == INSTALLED || text.starts_with('/') {
        return Ok(text.to_owned());
    }
    Err(ValueError::new(format!("`{text}` is not an absolute path"))
        .hint("use the absolute path of a loadfile, or \"office\", or \"dbench\""))
}

fn read_ramp_time(text: &str) -> Result<String, ValueError> {
    let text = text.trim();
    if text == FIFTH {
        return Ok(text.to_owned());
    }
    let time = Nanos::parse(text).map_err(|error| {
        ValueError::new(format!("{error}, or \"fifth\", which is a fifth of `runtime`"))
    })?;
    Ok(time.to_string())
}

/// Ramp time. `refine` has already checked the text of a duration.
fn ramp_time(point: &WorkloadParameters) -> Nanos {
    let fifth = Nanos(point.time("runtime").0 / 5);
    Nanos::parse(point.text("ramp_time")).unwrap_or(fifth)
}

fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    let by_time = point.count("replay_count") == 0;
    if by_time && point.time("runtime") == Nanos(0) {
        return Err(ValueError::new("`runtime` is 0")
            .hint("use a duration such as \"60s\", or set `replay_count` to at least 1"));
    }
    let office = point.text("loadfile") == OFFICE;
    let use_timestamps = point.flag("use_timestamps");
    if office && use_timestamps {
        return Err(ValueError::new("the built-in loadfile has no timestamps")
            .hint("set `use_timestamps` to false, or `loadfile` to a file with timestamps"));
    }
    if use_timestamps && point.size("rate") > Bytes(0) {
        return Err(ValueError::new("`use_timestamps` and `rate` exclude each other")
            .hint("set `use_timestamps` to false, or `rate` to 0"));
    }
    let mut unused = Vec::new();
    if !office {
        unused.push("iterations");
    }
    if !by_time {
        unused.extend(["runtime", "ramp_time"]);
    }
    point.reset(&SPEC.defaults(), &unused);
    Ok(vec![point])
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    vec![Phase {
        name: "replay".into(),
        group: "replaying".into(),
        role: Role::Measure,
        cache: Cache::Cold,
        work: Work::Replay(replay(point, seed)),
        timed: Timed::default(),
        directory: None,
        together: None,
    }]
}

fn replay(point: &WorkloadParameters, seed: u64) -> Replay {
    let load = match point.text("loadfile") {
        OFFICE => Load::Office { iterations: point.count("iterations"), seed },
        INSTALLED => Load::File { path: None },
        path => Load::File { path: Some(path.into()) },
    };
    let until = match point.count("replay_count") {
        0 => Until::Time { ramp: ramp_time(point), run: point.time("runtime") },
        times => Until::Replayed(times),
    };
    let kind = shared::kind(point);
    Replay {
        loadfile: load,
        until,
        resolve: point.flag("resolve"),
        durability: Durability {
            files: point.flag("o_sync"),
            directories: point.flag("sync_directories"),
            writes: point.flag("fsync_writes"),
        },
        xattr: point.flag("xattr"),
        rate: Some(point.size("rate")).filter(|rate| *rate > Bytes(0)),
        use_timestamps: point.flag("use_timestamps"),
        parent_check: point.flag("parent_check"),
        workers: Workers { kind, ..Workers::threads(shared::count(point, "clients")) },
    }
}

/// Maximum space of all clients. A loadfile of the user is assumed to need as much space as that of
/// dbench.
fn footprint(point: &WorkloadParameters) -> Bytes {
    Bytes(point.count("clients").saturating_mul(CLIENT.0))
}
