//! Suite `mdtest`: the phases of mdtest: create, stat, rename, and remove directories; create,
//! stat, read, and remove files; create and remove the tree of directories that contains both.
//!
//! A rank of mdtest is a worker. Phases run in the order of mdtest. Module [`script`] creates them.
//! A phase that is not measured but is required by another one runs as preparation.

mod script;
#[cfg(test)]
mod tests;

use model::{
    Bytes, Nanos, SuiteSpec, Value, WorkloadParameters,
    phase::DirectoryTree,
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{
    Suite, parameter,
    shared::{has, worker_type_parameter, workers_parameter},
};

/// Definition of the suite.
pub(crate) const SUITE: Suite =
    Suite { spec: &SPEC, refine, phases: script::phases, footprint: script::footprint };

const ALL: &str = "all";

/// Values of the parameter `operations`, in execution order; also the names of the phases.
const WORDS: &[&str] = &[
    ALL,
    "tree-create",
    "directory-create",
    "directory-stat",
    "directory-rename",
    "directory-remove",
    "file-create",
    "file-stat",
    "file-read",
    "file-remove",
    "tree-remove",
];

/// Phases of the suite, in execution order.
pub const PHASES: &[&str] = WORDS.split_at(1).1;

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("operations", Kind::Words(WORDS), ALL, "Phases to measure; they run in the order of the suite. all: those that the other parameters permit."),
    workers_parameter("Number of workers (ranks of mdtest)."),
    worker_type_parameter("process", "Kind of worker."),
    parameter("entries", Kind::Amount { min: 1, max: 1 << 32 }, "1000", "Number of directories and of files of each worker (`-n`), rounded down to a multiple of the number of directories that contain them."),
    parameter("entries_per_directory", Kind::Count { min: 0, max: 1 << 32 }, "0", "Entries of each worker per directory, instead of `entries` (`-I`); 0: `entries` over the number of directories."),
    parameter("tree_depth", Kind::Count { min: 0, max: DirectoryTree::DEEPEST as u64 }, "0", "Levels of directories below the root of the tree (`-z`)."),
    parameter("tree_branching", Kind::Count { min: 1, max: 1 << 20 }, "1", "Subdirectories of each directory of the tree (`-b`)."),
    parameter("leaves_only", Kind::Flag, "false", "Entries only in directories of the lowest level (`-L`)."),
    parameter("sharing", Kind::Word(&["directory", "private", "file"]), "directory", "Shared by the workers: the directories, nothing (`-u`: a tree per worker), or the files (`-S`)."),
    parameter("first_worker_creates", Kind::Flag, "false", "The first worker creates and removes the entries of all workers (`-c`)."),
    parameter("worker_shift", Kind::Count { min: 0, max: 1 << 20 }, "0", "Workers by which stat, read, and removal are shifted, times 1, 2, and 3: worker w uses the entries of worker w + shift (`-N`). On several hosts, the unit is all workers of a host."),
    parameter("order", Kind::Word(&["creation", "random"]), "creation", "Order of stat and read (`-R`)."),
    parameter("file_size", Kind::Size { min: Bytes(0), scales: false }, "0", "Bytes written to each new file, in one call (`-w`)."),
    parameter("read_size", Kind::Size { min: Bytes(0), scales: false }, "0", "Bytes read from each file, in one call (`-e`); 0: files are only opened and closed."),
    parameter("fsync_each", Kind::Flag, "false", "fsync after each write (`-y`)."),
    parameter("verify", Kind::Flag, "false", "Check the bytes read (`-X`)."),
    parameter("stonewall_time", Kind::Time, "0s", "File creation: after this time, each worker continues up to the largest number of files that any worker had created by then (`-W`). 0: off."),
    parameter("sync_after", Kind::Flag, "false", "sync(2) by each worker at the end of each phase, included in its time (`-Y`)."),
    parameter("cache", Kind::Word(&["unchanged", "cold"]), "unchanged", "Cache state before each measured phase on existing entries."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "mdtest",
    title: "mdtest phases: create, stat, rename, read, and remove directories, files, and their tree.",
    source: "mdtest 4.1 of the IOR repository, observed and reimplemented",
    notes: include_str!("notes.md"),
    clients: Some("workers"),
    parameters: PARAMETERS,
};

/// Directories of each tree, with the entries per directory.
fn directory_tree(point: &WorkloadParameters) -> DirectoryTree {
    let number = |name| u32::try_from(point.count(name)).unwrap_or(u32::MAX);
    let tree = DirectoryTree {
        depth: number("tree_depth"),
        branching: number("tree_branching"),
        each: 1,
        leaves_only: point.flag("leaves_only"),
    };
    DirectoryTree { each: point.count("entries") / tree.holders().max(1), ..tree }
}

/// Measured phases, in execution order.
fn chosen(point: &WorkloadParameters) -> Vec<&'static str> {
    let all = has(point, "operations", ALL);
    let mut chosen = PHASES.to_vec();
    chosen.retain(|phase| match all {
        true => obstacle(point, phase).is_none(),
        false => has(point, "operations", phase),
    });
    chosen
}

/// Reason why the other parameters exclude a phase, with a hint.
fn obstacle(point: &WorkloadParameters, phase: &str) -> Option<(&'static str, &'static str)> {
    (point.word("sharing") == "file" && phase.starts_with("directory-")).then_some((
        "cannot be performed by several workers on the same entries",
        "remove it from `operations`, or set `sharing` to \"directory\" or \"private\"",
    ))
}

fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    let named = point.words("operations");
    if named.iter().any(|word| word == ALL) || named.len() == PHASES.len() {
        point.parameters.insert("operations".into(), Value::Words(vec![ALL.into()]));
    }
    let chosen = chosen(&point);
    for phase in &chosen {
        if let Some((problem, hint)) = obstacle(&point, phase) {
            return Err(ValueError::new(format!("`{phase}` {problem}")).hint(hint));
        }
    }
    let unused = unused(&point, &chosen);
    point.reset(&SPEC.defaults(), &unused);
    count_entries(&mut point)?;
    combinations(&point)?;
    Ok(vec![point])
}

/// Replaces the number of entries by the one that exists.
fn count_entries(point: &mut WorkloadParameters) -> Result<(), ValueError> {
    let tree = directory_tree(point);
    if tree.directories() > DirectoryTree::MOST {
        let message = "the tree has more than 4294967296 directories";
        return Err(ValueError::new(message)
            .hint("set `tree_depth` or `tree_branching` to a smaller number"));
    }
    let (holders, given) = (tree.holders(), point.count("entries"));
    let each = match point.count("entries_per_directory") {
        0 => given / holders,
        each => each,
    };
    if each == 0 {
        let message = format!("{given} entries are fewer than the {holders} directories of a tree");
        return Err(ValueError::new(message)
            .hint("set `entries` to a larger number, or use `entries_per_directory`"));
    }
    let entries = each.checked_mul(holders).filter(|entries| *entries <= 1 << 32);
    let Some(entries) = entries else {
        return Err(ValueError::new("a worker has more than 4294967296 entries")
            .hint("set `entries_per_directory` to a smaller number"));
    };
    point.parameters.insert("entries".into(), Value::Count(entries));
    point.parameters.insert("entries_per_directory".into(), Value::Count(0));
    Ok(())
}

/// Checks parameters that exclude each other.
fn combinations(point: &WorkloadParameters) -> Result<(), ValueError> {
    let first = point.flag("first_worker_creates");
    if first && point.word("sharing") == "private" {
        return Err(ValueError::new("the first worker has no access to the trees of the others")
            .hint("remove `first_worker_creates`, or set `sharing` to \"directory\""));
    }
    if first && point.time("stonewall_time") > Nanos(0) {
        let message = "`first_worker_creates` and `stonewall_time` exclude each other";
        return Err(ValueError::new(message).hint("remove one of them"));
    }
    let (written, read) = (point.size("file_size"), point.size("read_size"));
    if read > written {
        return Err(ValueError::new(format!("{read} cannot be read from files of {written}"))
            .hint("set `file_size` to at least `read_size`"));
    }
    Ok(())
}

/// Parameters without effect.
fn unused(point: &WorkloadParameters, chosen: &[&str]) -> Vec<&'static str> {
    let any = |phases: &[&str]| phases.iter().any(|phase| chosen.contains(phase));
    let mut unused = Vec::new();
    let mut unless = |effective: bool, name: &'static str| {
        if !effective {
            unused.push(name);
        }
    };
    let files = any(&["file-create", "file-stat", "file-read", "file-remove"]);
    unless(point.count("workers") > 1, "worker_type");
    unless(point.count("tree_depth") > 0, "tree_branching");
    unless(point.count("tree_depth") > 0, "leaves_only");
    unless(files, "file_size");
    unless(any(&["file-read"]), "read_size");
    unless(any(&["file-read"]) && point.size("read_size") > Bytes(0), "verify");
    unless(any(&["file-create"]) && point.size("file_size") > Bytes(0), "fsync_each");
    unless(any(&["file-create"]), "stonewall_time");
    let looks = ["directory-stat", "file-stat", "file-read"];
    unless(any(&looks), "order");
    let shifted = any(&looks) || any(&["directory-remove", "file-remove"]);
    unless(shifted && point.word("sharing") != "file", "worker_shift");
    unused
}
