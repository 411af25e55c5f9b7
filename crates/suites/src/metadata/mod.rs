//! One operation on many entries at a time: create, open, stat, list, rename, link, unlink, and so
//! on, by workers that share nothing, a directory, or the entries themselves, to see what each
//! costs and where a filesystem stops scaling; and a mix of some of them on a population of files.
//!
//! Each operation is a measured phase with entries of its own, which are laid out before it and
//! removed after it, so that operations do not depend on one another: [`script`]. What an operation
//! needs and leaves is a row in [`operations`].

mod operations;
mod script;
#[cfg(test)]
mod tests;
mod weights;

use model::{
    Bytes, Point, SuiteSpec, Value,
    phase::TreeStep,
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{
    Suite, parameter,
    shared::{has, worker_parameter, workers_parameter},
};
use operations::{Entries, OPERATIONS, Operation};

/// The suite.
pub(crate) const SUITE: Suite =
    Suite { spec: &SPEC, refine, phases: script::phases, footprint: script::footprint };

const ALL: &str = "all";

/// The words of the parameter `operations`, in the order they run.
const WORDS: &[&str] = &[
    ALL,
    "create",
    "open",
    "read",
    "stat",
    "stat-missing",
    "readdir-small",
    "readdir-large",
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

/// Own choice: a file server whose users mostly look.
const WEIGHTS: &str = "stat=60,open=15,read=10,chmod=5,create=4,unlink=4,rename=2";

const AMOUNT: Kind = Kind::Amount { min: 1, max: 1 << 32 };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("operations", Kind::Words(WORDS), ALL, "Which operations; all means those that the other parameters allow. They run in the suite's order."),
    parameter("sharing", Kind::Word(&["private", "directory", "file"]), "private", "What workers share: nothing, each has a directory; a directory, in which each has entries of its own; or the entries."),
    workers_parameter("How many work at the same time."),
    worker_parameter("thread", "What they are."),
    parameter("pin", Kind::Flag, "false", "Each worker on a CPU of its own, round and round."),
    parameter("files", AMOUNT, "10000", "Entries of each worker, and how often it lists a small directory."),
    parameter("passes", Kind::Count { min: 1, max: 1 << 20 }, "10", "How often a worker goes over its entries where an operation leaves them as they are. With cold caches once: after that they are not."),
    parameter("per_directory", Kind::Count { min: 0, max: 1 << 32 }, "0", "Entries in one directory; 0: all in one."),
    parameter("large_directory", AMOUNT, "100000", "Entries of the directory of readdir-large."),
    parameter("durable_files", AMOUNT, "1000", "Files of each worker in fsync-create and fsync-directory."),
    parameter("size", Kind::Size { min: Bytes(0), scales: false }, "0", "Size of files; 0 makes empty files."),
    parameter("extent", Kind::Size { min: Bytes(512), scales: false }, "4KiB", "What truncate halves, fallocate reserves, and punch-hole gives back, in each file."),
    parameter("name_length", Kind::Count { min: 0, max: 1000 }, "0", "Length of names in bytes; 0: as short as their numbers. Most filesystems take 255, some operations add 5, and longer ones fail."),
    parameter("order", Kind::Word(&["created", "shuffled"]), "created", "The order of entries: as they are numbered, or a permutation drawn from the seed."),
    parameter("calls", Kind::Word(&["plain", "ring"]), "plain", "One system call after the other, or io_uring with several entries in flight."),
    parameter("depth", Kind::Count { min: 1, max: 4096 }, "16", "Entries in flight for each worker in a ring."),
    parameter("weights", Kind::Text { takes: "operations with weights such as \"stat=60,open=15\"", read: weights::read }, WEIGHTS, "What the mix draws, and how often."),
    parameter("mix_operations", AMOUNT, "50000", "Operations of each worker in the mix."),
    parameter("cache", Kind::Word(&["warm", "cold"]), "warm", "Before each operation on what is there: leave it in memory as its creation did, or empty the caches."),
    parameter("sync", Kind::Flag, "false", "sync(2) after each operation that changes anything, counted into its time."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "metadata",
    title: "One metadata operation at a time on many entries, by workers that share nothing, a \
            directory, or files; and a mix.",
    source: "degrees of sharing: FxMark (Min et al., USENIX ATC 2016); each operation as in its \
             Linux manual page",
    notes: include_str!("notes.md"),
    clients: Some("workers"),
    parameters: PARAMETERS,
};

/// The operations that are measured, in order. `all` stands for those that can be.
fn chosen(point: &Point) -> Vec<&'static Operation> {
    let all = has(point, "operations", ALL);
    OPERATIONS
        .iter()
        .filter(|operation| match all {
            true => obstacle(point, operation).is_none(),
            false => has(point, "operations", operation.word),
        })
        .collect()
}

/// Why an operation cannot be done as the other parameters have it, and what to change.
fn obstacle(point: &Point, operation: &Operation) -> Option<(&'static str, &'static str)> {
    if point.word("sharing") == "file" && !operation.shared {
        return Some((
            "cannot be done by several workers to the same entries",
            "leave it out of `operations`, or set `sharing` to \"private\" or \"directory\"",
        ));
    }
    let empty = point.size("size") == Bytes(0);
    if empty && operation.steps.contains(&TreeStep::Read) {
        return Some((
            "finds nothing in empty files",
            "set `size`, or leave it out of `operations`",
        ));
    }
    if point.word("calls") == "ring" && !operation.ring {
        return Some((
            "has no calls in a ring",
            "leave it out of `operations`, or set `calls` to \"plain\"",
        ));
    }
    if point.word("worker") == "process" && point.count("workers") > 1 && operation.word == "mix" {
        return Some((
            "is done by threads",
            "leave it out of `operations`, or set `worker` to \"thread\"",
        ));
    }
    let writes = operation.steps.contains(&TreeStep::Write);
    if point.word("calls") == "ring" && writes && point.size("size") > script::RECORD {
        return Some((
            "writes a file in one call of at most 64KiB in a ring",
            "leave it out of `operations`, or set `size` to 64KiB or less, or `calls` to \"plain\"",
        ));
    }
    None
}

fn refine(mut point: Point) -> Result<Vec<Point>, ValueError> {
    let named = point.words("operations");
    if named.iter().any(|word| word == ALL) || named.len() == OPERATIONS.len() {
        point.parameters.insert("operations".into(), Value::Words(vec![ALL.into()]));
    }
    let chosen = chosen(&point);
    for operation in &chosen {
        if let Some((problem, cure)) = obstacle(&point, operation) {
            let message = format!("`{}` {problem}", operation.word);
            return Err(ValueError::new(message).cure(cure));
        }
    }
    let idle = idle(&point, &chosen);
    point.settle(&SPEC.defaults(), &idle);
    if point.word("cache") == "cold" {
        point.parameters.insert("passes".into(), Value::Count(1));
    }
    // All in one directory is said in one way.
    if point.count("per_directory") >= point.count("files").max(point.count("durable_files")) {
        point.parameters.insert("per_directory".into(), Value::Count(0));
    }
    Ok(vec![point])
}

/// Parameters without effect.
fn idle(point: &Point, chosen: &[&Operation]) -> Vec<&'static str> {
    let of = |entries: &[Entries]| chosen.iter().any(|one| entries.contains(&one.entries));
    let any = |does: fn(&Operation) -> bool| chosen.iter().any(|one| does(one));
    let listed = |one: &Operation| matches!(one.entries, Entries::Small | Entries::Large);
    let mut idle = Vec::new();
    let mut unless = |effective: bool, names: &[&'static str]| {
        if !effective {
            idle.extend_from_slice(names);
        }
    };
    use Entries::{Bare, Durable, Extents, Files, Large, Population, Reserved, Small};
    unless(of(&[Files, Bare, Extents, Reserved, Small, Large, Population]), &["files"]);
    unless(chosen.iter().any(|one| !listed(one)), &["per_directory"]);
    unless(of(&[Large]), &["large_directory"]);
    unless(of(&[Durable]), &["durable_files"]);
    unless(of(&[Files, Durable, Population]), &["size"]);
    unless(of(&[Extents, Reserved]), &["extent"]);
    unless(any(|one| one.again), &["passes"]);
    unless(any(|one| one.item.is_some()), &["cache"]);
    unless(chosen.iter().any(|one| !listed(one) && one.entries != Population), &["order"]);
    unless(of(&[Population]), &["weights", "mix_operations"]);
    unless(point.word("calls") == "ring", &["depth"]);
    unless(point.count("workers") > 1, &["worker"]);
    unless(chosen.iter().any(|one| script::changes(one)), &["sync"]);
    idle
}
