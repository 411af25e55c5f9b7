//! Suites: programs that map workload parameters to the phases of a trial.
//!
//! Input is a [`WorkloadParameters`] with a value for each parameter. Output is a list of
//! [`Phase`]s, plain data that the engine runs. A suite determines order, sizes, access patterns,
//! and timed regions, but accesses neither the host nor files. To add a suite, write its module and
//! add it to [`ALL`]. Named workloads are [`presets()`]. To add a named workload, add an entry to
//! `workloads.toml`.
#![forbid(unsafe_code)]

mod bonnie;
mod coherence;
mod command;
mod dbench;
mod files;
pub mod fio;
#[doc(hidden)]
pub mod fuzz;
mod iozone;
mod load_generator;
mod mail;
mod maintenance;
mod mdtest;
mod metadata;
mod overview;
mod presets;
mod replay;
mod shared;
mod small_files;
mod sqlite;
mod stream;
mod suite;
mod tasks;
pub mod together;

#[cfg(test)]
use model::Bytes;
use model::{Phase, SuiteSpec, WorkloadParameters, workload::ValueError};

pub use iozone::TESTS as IOZONE_TESTS;
pub use load_generator::incomparable as fio_incomparable;
pub use mdtest::PHASES as MDTEST_PHASES;
pub use model::workload::Preset;
pub use presets::{preset, presets};
pub use stream::fio_jobs;
pub use suite::Suite;
pub(crate) use suite::parameter;

/// All suites.
pub const ALL: &[Suite] = &[
    bonnie::SUITE,
    coherence::SUITE,
    command::SUITE,
    dbench::SUITE,
    files::SUITE,
    fio::SUITE,
    iozone::SUITE,
    mail::SUITE,
    maintenance::SUITE,
    mdtest::SUITE,
    metadata::SUITE,
    overview::SUITE,
    replay::SUITE,
    small_files::SUITE,
    sqlite::SUITE,
    stream::SUITE,
    tasks::SUITE,
    together::SUITE,
];

/// Suite with this name.
pub fn find(name: &str) -> Option<&'static Suite> {
    ALL.iter().find(|suite| suite.spec.name == name)
}

/// Tables of all suites, for the plan parser.
pub fn specs() -> Vec<&'static SuiteSpec> {
    ALL.iter().map(|suite| suite.spec).collect()
}

/// Checks and expands parameters by the rules of their suite, see [`Suite::refine`].
///
/// # Errors
/// [`ValueError`] if the suite rejects the combination.
///
/// # Panics
/// If the suite is unknown. This does not happen for parameters from the tables of [`specs`].
pub fn refine(point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    match find(&point.suite) {
        Some(suite) => (suite.refine)(point),
        None => unreachable!("parameters of the unknown suite `{}`", point.suite),
    }
}

/// Phases of a workload on the block device with this path instead of files.
///
/// # Errors
/// The reason why the workload requires a filesystem.
pub fn on_device(
    workload: &WorkloadParameters,
    seed: u64,
    device: &str,
) -> Result<Vec<Phase>, String> {
    let name = &workload.suite;
    match find(name).filter(|suite| suite.spec.name == stream::SUITE.spec.name) {
        Some(suite) => stream::device::on_device((suite.phases)(workload, seed), device)
            .map_err(|reason| format!("suite `{name}` cannot run on a block device: {reason}")),
        None => Err(format!("suite `{name}` requires a filesystem; use suite `stream`")),
    }
}

/// One-line description of a phase for golden files. It lists the differences from a phase with one
/// worker that reads a file once.
#[cfg(test)]
fn described(phase: &Phase) -> String {
    use model::phase::{Layout, Mix, Stream, Timed, Work};
    let mut line = format!("{} {:?} {:?}", phase.name, phase.role, phase.cache);
    match &phase.work {
        Work::Stream(stream) => {
            let Stream { files, size, block_size: record, .. } = stream.clone();
            line += &format!(" {files:?} {size}/{record}");
            let mut plain = Stream::new(files, size, record);
            plain.seed = stream.seed;
            let fields = |stream: &Stream| {
                serde_json::to_value(stream).expect("plain data").as_object().cloned()
            };
            let (own, plain) = (fields(stream), fields(&plain));
            for (name, value) in own.unwrap_or_default() {
                let default = plain.as_ref().and_then(|plain| plain.get(&name));
                if default != Some(&value) {
                    line += &format!(" {name}={}", inner(&value, default));
                }
            }
        }
        Work::Tree(tree) => line += &tree_described(tree),
        Work::Task(task) => line += &format!(" {:?} {:?}", task.method, task.operation),
        Work::Mix(Mix { set, ops, time: _, weights, workers }) => {
            line += &format!("{} {ops} {weights:?} workers={}", set_described(set), workers.count);
        }
        Work::Layout(Layout { set, item, owners }) => {
            line += &format!("{} {item:?} owners={owners}", set_described(set));
        }
        Work::Replay(replay) => line += &replay_described(replay),
        Work::Command(command) => {
            let programs: Vec<String> = command.programs().map(model::words::join).collect();
            line += &format!(" {}", programs.join("; "));
        }
        Work::Sqlite(sqlite) => line += &format!(" {sqlite:?}"),
        Work::Mail(mail) => line += &format!(" {mail:?}"),
        Work::Trace(replay) => line += &format!(" {replay:?}"),
        Work::Coherence(coherence) => line += &format!(" {coherence:?}"),
        Work::Maintenance(maintenance) => line += &format!(" {maintenance:?}"),
        Work::Remove { files, workers } => line += &format!(" remove {files:?} {workers}"),
    }
    let Timed { sync: flush, close, tick_subtracted } = phase.timed;
    for (on, word) in [(flush, "flush"), (close, "close"), (tick_subtracted, "tick")] {
        if on && !matches!(phase.work, Work::Stream(_)) {
            line += &format!(" timed-{word}");
        }
    }
    line + "\n"
}

/// Differences of a replay from one process that resolves names and replays without pacing.
#[cfg(test)]
fn replay_described(replay: &model::phase::Replay) -> String {
    use model::phase::{Durability, Replay, WorkerKind};
    let Replay {
        loadfile: load,
        until,
        resolve,
        durability,
        xattr: attributes,
        rate,
        use_timestamps: paced,
        parent_check: line_call,
        workers,
    } = replay;
    let mut line = format!(" {load:?} {until:?}");
    let Durability { files, directories, writes } = *durability;
    let words = [
        (!resolve, "unresolved".into()),
        (files, "sync-files".into()),
        (directories, "sync-directories".into()),
        (writes, "sync-writes".into()),
        (*attributes, "attributes".into()),
        (rate.is_some(), format!("{rate:?}")),
        (*paced, "paced".into()),
        (*line_call, "line-call".into()),
        (workers.count != 1, format!("workers={}", workers.count)),
        (workers.kind != WorkerKind::Process, format!("{:?}", workers.kind)),
    ];
    for (_, word) in words.iter().filter(|(differs, _)| *differs) {
        line += &format!(" {word}");
    }
    line
}

/// Differences of a tree from one thread that makes one pass in creation order.
#[cfg(test)]
fn tree_described(tree: &model::phase::Tree) -> String {
    use model::phase::{Calls, EntryCount, Pin, Tree, TreeEnd, TreeOrder, WorkerKind};
    let Tree { set, passes, order, steps, end, calls, workers, selection } = tree;
    let mut line = format!("{} {steps:?}", set_described(set));
    let TreeEnd { remove_directories, sync } = *end;
    let words = [
        (*order != TreeOrder::Creation, format!("{order:?}")),
        (*passes != 1, format!("passes={passes}")),
        (remove_directories, "rmdir".into()),
        (sync, "sync".into()),
        (*calls != Calls::Syscall, format!("{calls:?}")),
        (workers.count != 1, format!("workers={}", workers.count)),
        (workers.kind != WorkerKind::Thread, format!("{:?}", workers.kind)),
        (workers.pin != Pin::Free, "pinned".into()),
        (workers.io_priority.is_some(), format!("{:?}", workers.io_priority)),
        (selection.shift != 0, format!("shift={}", selection.shift)),
        (selection.owners != 1, format!("owners={}", selection.owners)),
        (selection.count != EntryCount::All, format!("{:?}", selection.count)),
    ];
    for (_, word) in words.iter().filter(|(differs, _)| *differs) {
        line += &format!(" {word}");
    }
    line
}

/// Name and number of entries of a set, and its differences from empty files with numbers as names
/// in one directory.
#[cfg(test)]
fn set_described(set: &model::phase::Set) -> String {
    use model::phase::{DataPattern, DirectoryTree, Naming, Set, Sharing, Sizes, Spread};
    let Set { name, sharing, files, spread, naming, sizes, block_size: record, data: fill, .. } =
        set;
    let mut line = format!(" {name} {files}");
    match spread {
        Spread::Flat => {}
        Spread::Directories { each } => line += &format!("/{each}"),
        Spread::Tree(DirectoryTree { depth, branching, each, leaves_only }) => {
            let leaves = if *leaves_only { " leaves" } else { "" };
            line += &format!("/{each} z{depth} b{branching}{leaves}");
        }
    }
    match sizes {
        Sizes::Fixed(size) if *size == Bytes(0) => {}
        Sizes::Fixed(size) => line += &format!(" {size}/{record}"),
        Sizes::Uniform { .. } | Sizes::LogNormal { .. } => {
            line += &format!(" {sizes:?}/{record}");
        }
    }
    if *sharing != Sharing::Private {
        line += &format!(" {sharing:?}");
    }
    if *naming != Naming::Numbers {
        line += &format!(" {naming:?}");
    }
    if !sizes.are_empty() && *fill != DataPattern::default() {
        line += &format!(" {fill:?}");
    }
    line
}

/// Fields of a table that differ from a default table.
#[cfg(test)]
fn inner(value: &serde_json::Value, default: Option<&serde_json::Value>) -> String {
    let (Some(own), Some(default)) =
        (value.as_object(), default.and_then(serde_json::Value::as_object))
    else {
        return value.to_string();
    };
    let differs = own.iter().filter(|(name, value)| default.get(*name) != Some(value));
    let parts: Vec<_> = differs.map(|(name, value)| format!("{name}:{value}")).collect();
    format!("{{{}}}", parts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sound() {
        for suite in ALL {
            let spec = suite.spec;
            assert!(spec.name.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", spec.name);
            assert!(!spec.source.is_empty());
            let mut names: Vec<_> = spec.parameters.iter().map(|p| p.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), spec.parameters.len(), "{}: a parameter twice", spec.name);
            for parameter in spec.parameters {
                assert!(parameter.doc.ends_with('.'), "{} {}", spec.name, parameter.name);
            }
            for point in (suite.refine)(spec.defaults()).expect("the defaults are a valid point") {
                let phases = (suite.phases)(&point, 1);
                let mut names: Vec<_> = phases.iter().map(|phase| &phase.name).collect();
                names.sort_unstable();
                names.dedup();
                assert_eq!(names.len(), phases.len(), "{}: a phase twice", spec.name);
            }
        }
    }
}
