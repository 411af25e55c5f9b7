//! Suite `metadata`: create, open, stat, list, rename, link, unlink, and other operations on many
//! entries, to measure their cost and their scaling. Workers share nothing, a directory, or the
//! files. The suite also measures a mix of operations on a population of files.
//!
//! Each operation is a measured phase with separate entries, which are created before the phase and
//! removed after it. Operations therefore do not depend on each other. Module [`script`] creates
//! the phases. The table in [`operations`] lists the requirements of each operation.

mod operations;
mod script;
#[cfg(test)]
mod tests;
mod weights;

use model::{
    Bytes, SuiteSpec, Value, WorkloadParameters,
    phase::TreeStep,
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{
    Suite, parameter,
    shared::{has, worker_type_parameter, workers_parameter},
};
use operations::{Entries, OPERATIONS, Operation};

/// Definition of the suite.
pub(crate) const SUITE: Suite =
    Suite { spec: &SPEC, refine, phases: script::phases, footprint: script::footprint };

const ALL: &str = "all";

/// Values of the parameter `operations`, in execution order.
const WORDS: &[&str] = &[
    ALL,
    "create",
    "open",
    "read",
    "stat",
    "stat-missing",
    "readdir-small",
    "readdir-large",
    "find",
    "rename",
    "rename-across",
    "link",
    "unlink",
    "symlink",
    "mkdir",
    "rmdir",
    "chmod",
    "chown",
    "utimens",
    "setxattr",
    "getxattr",
    "truncate",
    "fallocate",
    "punch-hole",
    "fsync-create",
    "fsync-directory",
    "mix",
];

/// Weights of the mix, a project default: a file server with mostly read-only operations.
const WEIGHTS: &str = "stat=60,open=15,read=10,chmod=5,create=4,unlink=4,rename=2";

const AMOUNT: Kind = Kind::Amount { min: 1, max: 1 << 32 };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("operations", Kind::Words(WORDS), ALL, "Operations to measure; they run in the order of the suite. all: those that the other parameters permit."),
    parameter("sharing", Kind::Word(&["private", "directory", "file"]), "private", "Shared by the workers: nothing, the directory, or the files."),
    workers_parameter("Number of workers."),
    worker_type_parameter("thread", "Kind of worker."),
    parameter("pin", Kind::Flag, "false", "Pin each worker to a CPU, round-robin."),
    parameter("files", AMOUNT, "10000", "Number of entries of each worker; shared, the number of all entries."),
    parameter("passes", Kind::Count { min: 1, max: 1 << 20 }, "10", "Passes over the entries if the operation does not modify them; one if cold."),
    parameter("entries_per_directory", Kind::Count { min: 0, max: 1 << 32 }, "0", "Entries per directory; 0: all in one."),
    parameter("large_directory_entries", AMOUNT, "100000", "Entries of the large directory (readdir-large)."),
    parameter("fsync_files", AMOUNT, "1000", "Files of the fsync operations, per worker."),
    parameter("file_size", Kind::Size { min: Bytes(0), scales: false }, "0", "Size of each file."),
    parameter("extent_size", Kind::Size { min: Bytes(512), scales: false }, "4KiB", "Bytes per truncate, fallocate, punch-hole."),
    parameter("name_length", Kind::Count { min: 0, max: 1000 }, "0", "Name length in bytes; 0: shortest. Most filesystems support 255, and some operations append 5."),
    parameter("order", Kind::Word(&["creation", "random"]), "creation", "Order of entries: creation order, or a random permutation."),
    parameter("io_engine", Kind::Word(&["syscall", "io_uring"]), "syscall", "I/O interface: system calls one after another, or io_uring with several entries in flight."),
    parameter("queue_depth", Kind::Count { min: 1, max: 4096 }, "16", "Entries in flight per worker (io_uring)."),
    parameter("weights", Kind::Text { takes: "weighted operations such as \"stat=60,open=15\"", read: weights::read }, WEIGHTS, "Operations of the mix with their weights."),
    parameter("mix_operations", AMOUNT, "50000", "Operations of the mix, per worker."),
    parameter("cache", Kind::Word(&["warm", "cold"]), "warm", "Cache state before each measured phase on existing entries: warm from their creation, or cold."),
    parameter("sync_after", Kind::Flag, "false", "One sync(2) at the end of each phase that modifies, included in its time."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "metadata",
    title: "Metadata operations in private directories, a shared directory, or on shared files.",
    source: "degrees of sharing: FxMark (Min et al., USENIX ATC 2016); operations as in \
             the Linux manual pages",
    notes: include_str!("notes.md"),
    clients: Some("workers"),
    parameters: PARAMETERS,
};

/// Operations to measure, in execution order. `all` selects those that the other parameters permit.
fn chosen(point: &WorkloadParameters) -> Vec<&'static Operation> {
    let all = has(point, "operations", ALL);
    OPERATIONS
        .iter()
        .filter(|operation| match all {
            true => obstacle(point, operation).is_none(),
            false => has(point, "operations", operation.word),
        })
        .collect()
}

/// Reason why the other parameters exclude an operation, with a hint.
fn obstacle(
    point: &WorkloadParameters,
    operation: &Operation,
) -> Option<(&'static str, &'static str)> {
    if point.word("sharing") == "file" && !operation.shared {
        return Some((
            "cannot be performed by several workers on the same entries",
            "remove it from `operations`, or set `sharing` to \"private\" or \"directory\"",
        ));
    }
    let empty = point.size("file_size") == Bytes(0);
    if empty && operation.steps.contains(&TreeStep::Read) {
        return Some((
            "requires files that are not empty",
            "set `file_size`, or remove it from `operations`",
        ));
    }
    if point.word("io_engine") == "io_uring" && !operation.ring {
        return Some((
            "is not supported by io_uring",
            "remove it from `operations`, or set `io_engine` to \"syscall\"",
        ));
    }
    if point.word("worker_type") == "process"
        && point.count("workers") > 1
        && operation.word == "mix"
    {
        return Some((
            "requires threads",
            "remove it from `operations`, or set `worker_type` to \"thread\"",
        ));
    }
    let writes = operation.steps.contains(&TreeStep::Write);
    if point.word("io_engine") == "io_uring"
        && writes
        && point.size("file_size") > script::BLOCK_SIZE
    {
        return Some((
            "requires files of at most 64KiB with io_uring",
            "remove it from `operations`, or set `file_size` to at most 64KiB, or `io_engine` \
             to \"syscall\"",
        ));
    }
    None
}

fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    let named = point.words("operations");
    if named.iter().any(|word| word == ALL) || named.len() == OPERATIONS.len() {
        point.parameters.insert("operations".into(), Value::Words(vec![ALL.into()]));
    }
    let chosen = chosen(&point);
    for operation in &chosen {
        if let Some((problem, hint)) = obstacle(&point, operation) {
            let message = format!("`{}` {problem}", operation.word);
            return Err(ValueError::new(message).hint(hint));
        }
    }
    let unused = unused(&point, &chosen);
    point.reset(&SPEC.defaults(), &unused);
    if point.word("cache") == "cold" {
        point.parameters.insert("passes".into(), Value::Count(1));
    }
    // A single directory always has the value 0, so that equal workloads are identical.
    if point.count("entries_per_directory") >= point.count("files").max(point.count("fsync_files"))
    {
        point.parameters.insert("entries_per_directory".into(), Value::Count(0));
    }
    Ok(vec![point])
}

/// Parameters without effect.
fn unused(point: &WorkloadParameters, chosen: &[&Operation]) -> Vec<&'static str> {
    let of = |entries: &[Entries]| chosen.iter().any(|one| entries.contains(&one.entries));
    let any = |does: fn(&Operation) -> bool| chosen.iter().any(|one| does(one));
    let listed = |one: &Operation| matches!(one.entries, Entries::Small | Entries::Large);
    let mut unused = Vec::new();
    let mut unless = |effective: bool, names: &[&'static str]| {
        if !effective {
            unused.extend_from_slice(names);
        }
    };
    use Entries::{Bare, Durable, Extents, Files, Large, Population, Reserved, Small};
    unless(of(&[Files, Bare, Extents, Reserved, Small, Large, Population]), &["files"]);
    unless(chosen.iter().any(|one| !listed(one)), &["entries_per_directory"]);
    unless(of(&[Large]), &["large_directory_entries"]);
    unless(of(&[Durable]), &["fsync_files"]);
    unless(of(&[Files, Durable, Population]), &["file_size"]);
    unless(of(&[Extents, Reserved]), &["extent_size"]);
    unless(any(|one| one.repeatable), &["passes"]);
    unless(any(|one| one.item.is_some()), &["cache"]);
    unless(chosen.iter().any(|one| !listed(one) && one.entries != Population), &["order"]);
    unless(of(&[Population]), &["weights", "mix_operations"]);
    unless(point.word("io_engine") == "io_uring", &["queue_depth"]);
    unless(point.count("workers") > 1, &["worker_type"]);
    unless(chosen.iter().any(|one| script::changes(one)), &["sync_after"]);
    unused
}
