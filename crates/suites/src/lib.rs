//! What is measured: each suite turns its parameters into the phases of a trial.
//!
//! Data enters as a [`Point`] (every parameter has a value) and leaves as [`Phase`]s, plain data
//! that the engine carries out. A suite decides order, sizes, access and what is timed; it never
//! looks at the host and never touches a file. To add one, write its file and its line in [`ALL`].
//! Points that people ask for have names, see [`recipes()`]; to add one, write its entry in
//! `workloads.toml`.
#![forbid(unsafe_code)]

mod bonnie;
mod dbench;
mod files;
#[doc(hidden)]
pub mod fuzz;
mod iozone;
mod metadata;
mod overview;
mod recipes;
mod shared;
mod smallfile;
mod stream;
mod tasks;

use model::{
    Bytes, Phase, Point, SuiteSpec,
    workload::{Kind, ParameterSpec, ValueError},
};

pub use model::workload::Recipe;
pub use recipes::{recipe, recipes};

/// A suite: its table of parameters and its three pure functions.
#[derive(Clone, Copy, Debug)]
pub struct Suite {
    /// Name, source and parameters.
    pub spec: &'static SuiteSpec,
    /// Checks a point, and multiplies it where a parameter asks for a sweep of the suite's own.
    pub refine: fn(Point) -> Result<Vec<Point>, ValueError>,
    /// The phases of one trial at a refined point; the seed is that of the data written.
    pub phases: fn(&Point, u64) -> Vec<Phase>,
    /// The most space the files of a trial take.
    pub footprint: fn(&Point) -> Bytes,
}

/// Every suite.
pub const ALL: &[Suite] = &[
    bonnie::SUITE,
    dbench::SUITE,
    files::SUITE,
    iozone::SUITE,
    metadata::SUITE,
    overview::SUITE,
    smallfile::SUITE,
    stream::SUITE,
    tasks::SUITE,
];

/// The suite of that name.
pub fn find(name: &str) -> Option<&'static Suite> {
    ALL.iter().find(|suite| suite.spec.name == name)
}

/// The tables of all suites, for reading plans.
pub fn specs() -> Vec<&'static SuiteSpec> {
    ALL.iter().map(|suite| suite.spec).collect()
}

/// A row of a suite's table.
const fn parameter(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    doc: &'static str,
) -> ParameterSpec {
    ParameterSpec { name, kind, default, doc }
}

/// Checks a point by its own suite's rules; see [`Suite::refine`].
///
/// # Errors
/// When the suite refuses the combination.
///
/// # Panics
/// If no suite has the point's name: points are made from the tables of [`specs`].
pub fn refine(point: Point) -> Result<Vec<Point>, ValueError> {
    match find(&point.suite) {
        Some(suite) => (suite.refine)(point),
        None => unreachable!("a point of the unknown suite `{}`", point.suite),
    }
}

/// A phase in one line, for goldens: what differs from a measured phase with cold caches, and from
/// one worker that reads a file once.
#[cfg(test)]
fn described(phase: &Phase) -> String {
    use model::phase::{Layout, Mix, Stream, Timed, Work};
    let mut line = format!("{} {:?} {:?}", phase.name, phase.role, phase.cache);
    match &phase.work {
        Work::Stream(stream) => {
            let Stream { files, size, record, .. } = stream.clone();
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
        Work::Task(task) => line += &format!(" {:?} {:?}", task.method, task.deed),
        Work::Mix(Mix { set, ops, weights, workers }) => {
            line += &format!("{} {ops} {weights:?} workers={}", set_described(set), workers.count);
        }
        Work::Layout(Layout { set, item, owners }) => {
            line += &format!("{} {item:?} owners={owners}", set_described(set));
        }
        Work::Replay(replay) => line += &replay_described(replay),
        Work::Remove { files, workers } => line += &format!(" remove {files:?} {workers}"),
    }
    let Timed { flush, close, tick_subtracted } = phase.timed;
    for (on, word) in [(flush, "flush"), (close, "close"), (tick_subtracted, "tick")] {
        if on && !matches!(phase.work, Work::Stream(_)) {
            line += &format!(" timed-{word}");
        }
    }
    line + "\n"
}

/// What differs from one process that resolves names and replays as fast as it can.
#[cfg(test)]
fn replay_described(replay: &model::phase::Replay) -> String {
    use model::phase::{Durability, Replay, WorkerKind};
    let Replay { load, until, resolve, durability, attributes, rate, paced, line_call, workers } =
        replay;
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

/// What differs from one thread that goes over the entries once, in their order.
#[cfg(test)]
fn tree_described(tree: &model::phase::Tree) -> String {
    use model::phase::{Calls, Pin, Tree, TreeEnd, TreeOrder, WorkerKind};
    let Tree { set, passes, order, steps, end, calls, workers } = tree;
    let mut line = format!("{} {steps:?}", set_described(set));
    let TreeEnd { remove_directories, sync } = *end;
    let words = [
        (*order != TreeOrder::Created, format!("{order:?}")),
        (*passes != 1, format!("passes={passes}")),
        (remove_directories, "rmdir".into()),
        (sync, "sync".into()),
        (*calls != Calls::Plain, format!("{calls:?}")),
        (workers.count != 1, format!("workers={}", workers.count)),
        (workers.kind != WorkerKind::Thread, format!("{:?}", workers.kind)),
        (workers.pin != Pin::Free, "pinned".into()),
        (workers.io_priority.is_some(), format!("{:?}", workers.io_priority)),
    ];
    for (_, word) in words.iter().filter(|(differs, _)| *differs) {
        line += &format!(" {word}");
    }
    line
}

/// Name, entries, and what differs from empty files called by their numbers in one directory.
#[cfg(test)]
fn set_described(set: &model::phase::Set) -> String {
    use model::phase::{Fill, Naming, Set, Sharing, Sizes, Spread};
    let Set { name, sharing, files, spread, naming, sizes, record, fill, .. } = set;
    let mut line = format!(" {name} {files}");
    if let Spread::Directories { each } = spread {
        line += &format!("/{each}");
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
    if !sizes.are_empty() && *fill != Fill::default() {
        line += &format!(" {fill:?}");
    }
    line
}

/// Of a table only what differs.
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
