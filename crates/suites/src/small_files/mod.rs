//! Suite `small-files`: write, stat, read, rewrite, and unlink on sets of files, one set per
//! worker, as in a study of 2011. Each operation processes the whole set, in directory order by
//! default, with cold or warm caches.
//!
//! Each operation is a measured phase. Without the operation `write`, the set is created first.
//! With `cache = "warm"`, an untimed pass precedes each operation on existing files.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Phase, SuiteSpec, Value, WorkloadParameters,
    phase::{
        Cache, DataPattern, Item, Layout, Naming, Role, Set, Sharing, Sizes, Spread, Timed, Tree,
        TreeEnd, TreeOrder, TreeStep, Work,
    },
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{
    Suite, parameter,
    shared::{count, has, space, worker_type_parameter, workers, workers_parameter},
};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

/// Operations in execution order. Each operation leaves the set in the state that the next one
/// requires.
const OPERATIONS: &[&str] = &["write", "stat", "read", "rewrite", "unlink"];

const SIZE: Kind = Kind::Size { min: Bytes(1), scales: false };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("operations", Kind::Words(OPERATIONS), "write,stat,read,rewrite,unlink", "Operations to measure; they run in the order of the suite. Without write, the file set is created first."),
    parameter("files", Kind::Amount { min: 1, max: 1 << 32 }, "5000", "Number of files of each worker; 350,000 in the study."),
    parameter("files_per_directory", Kind::Count { min: 1, max: 1 << 32 }, "200", "Entries per directory."),
    parameter("file_size_mean", SIZE, "50000", "Mean of file sizes."),
    parameter("file_size_distribution", Kind::Word(&["fixed", "uniform", "log-normal"]), "uniform", "Distribution of file sizes: all equal to the mean, uniform from 0 to twice the mean, or log-normal."),
    parameter("file_size_sigma", Kind::Number { min: 0.0, max: 4.0 }, "1.0", "Log-standard deviation of file sizes (log-normal)."),
    parameter("block_size", SIZE, "64KiB", "Bytes per I/O call; smaller files take one call."),
    workers_parameter("Number of workers, each with its own file set."),
    worker_type_parameter("process", "Kind of worker."),
    parameter("order", Kind::Word(&["readdir", "name", "random"]), "readdir", "Order of files in all operations but write: directory order, creation order, or random."),
    parameter("cache", Kind::Word(&["cold", "warm"]), "cold", "Cache state before each measured phase on existing files; warm: by an untimed pass. Writing always starts cold."),
    parameter("sync_after", Kind::Flag, "false", "One sync(2) at the end of each phase that modifies, included in its time."),
    parameter("incompressible_fraction", Kind::Fraction, "1.0", "Fraction of random bytes (rest zero)."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "small-files",
    title: "Create, stat, read, rewrite, and unlink sets of small files.",
    source: "a study of small files on five filesystems, February 2011; unspecified details are \
             project defaults",
    notes: include_str!("notes.md"),
    clients: Some("workers"),
    parameters: PARAMETERS,
};

fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    let any = |words: &[&str]| words.iter().any(|word| has(&point, "operations", word));
    let mut unused = Vec::new();
    if !any(&OPERATIONS[1..]) {
        unused.extend(["order", "cache"]);
    }
    if !any(&["write", "rewrite", "unlink"]) {
        unused.push("sync_after");
    }
    if point.word("file_size_distribution") != "log-normal" {
        unused.push("file_size_sigma");
    }
    if point.count("workers") == 1 {
        unused.push("worker_type");
    }
    point.reset(&SPEC.defaults(), &unused);
    let largest = match sizes(&point) {
        Sizes::Fixed(size) | Sizes::Uniform { max: size, .. } => Some(size),
        Sizes::LogNormal { .. } => None,
    };
    // A block that is larger than every file is reduced to the size of the largest file.
    if let Some(largest) = largest.filter(|largest| *largest < point.size("block_size")) {
        point.parameters.insert("block_size".into(), Value::Size(largest));
    }
    let per_directory = point.count("files_per_directory").min(point.count("files"));
    point.parameters.insert("files_per_directory".into(), Value::Count(per_directory));
    Ok(vec![point])
}

fn sizes(point: &WorkloadParameters) -> Sizes {
    let mean = point.size("file_size_mean");
    match point.word("file_size_distribution") {
        "fixed" => Sizes::Fixed(mean),
        "log-normal" => Sizes::LogNormal { mean, sigma: point.number("file_size_sigma") },
        _ => Sizes::Uniform { min: Bytes(0), max: Bytes(mean.0.saturating_mul(2)) },
    }
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let set = set(point, seed);
    let mut phases = Vec::new();
    if !has(point, "operations", "write") {
        let owners = count(point, "workers");
        let layout = Layout { set: set.clone(), item: Item::File, owners };
        phases.push(prepared("layout".into(), Work::Layout(layout)));
    }
    let warm = point.word("cache") == "warm";
    for operation in OPERATIONS.iter().filter(|word| has(point, "operations", word)) {
        let there = *operation != "write";
        if there && warm {
            let pass = tree(point, &set, needed(operation), TreeEnd::default());
            phases.push(prepared(format!("warm-{operation}"), Work::Tree(pass)));
        }
        phases.push(measured(
            point,
            &set,
            operation,
            if there && warm { Cache::Warm } else { Cache::Cold },
        ));
    }
    phases
}

fn prepared(name: String, work: Work) -> Phase {
    Phase {
        name,
        group: GROUP.into(),
        role: Role::Prepare,
        cache: Cache::Unchanged,
        work,
        timed: Timed::default(),
        directory: None,
        together: None,
    }
}

fn measured(point: &WorkloadParameters, set: &Set, operation: &str, cache: Cache) -> Phase {
    let mut steps = steps(operation);
    if operation == "rewrite" && point.word("order") == "random" {
        // In random order, no worker is always the first one in a directory, so directories are not
        // created by the workers.
        steps.retain(|step| *step != TreeStep::MakeParent);
    }
    let changes = steps.iter().any(|step| step.changes());
    let end = TreeEnd { remove_directories: false, sync: changes && point.flag("sync_after") };
    let mut tree = tree(point, set, steps, end);
    if operation == "write" {
        // The directories are empty, so there is no directory order.
        tree.order = TreeOrder::Creation;
    }
    Phase {
        role: Role::Measure,
        cache,
        timed: Timed { sync: end.sync, ..Timed::default() },
        directory: None,
        together: None,
        ..prepared(operation.into(), Work::Tree(tree))
    }
}

fn tree(point: &WorkloadParameters, set: &Set, steps: Vec<TreeStep>, end: TreeEnd) -> Tree {
    let order = match point.word("order") {
        "name" => TreeOrder::Creation,
        "random" => TreeOrder::Random,
        _ => TreeOrder::Listed,
    };
    Tree { order, end, workers: workers(point), ..Tree::new(set.clone(), steps) }
}

/// Steps per file.
fn steps(operation: &str) -> Vec<TreeStep> {
    use TreeStep::{Chmod, Chown, Close, Create, MakeParent, OpenRead, Read, Stat, Unlink, Write};
    match operation {
        "write" => vec![MakeParent, Create, Write, Close, Chown, Chmod],
        "rewrite" => vec![MakeParent, Unlink, Create, Write, Close, Chown, Chmod],
        "read" => vec![OpenRead, Read, Close],
        "unlink" => vec![Unlink],
        _ => vec![Stat],
    }
}

/// Steps that cache all data that an operation reads. Only reads need the contents of files: a
/// rewrite writes new data.
fn needed(operation: &str) -> Vec<TreeStep> {
    match operation {
        "read" => steps("read"),
        _ => steps("stat"),
    }
}

fn set(point: &WorkloadParameters, seed: u64) -> Set {
    Set {
        name: "small-files".into(),
        sharing: Sharing::Private,
        files: point.count("files"),
        spread: Spread::Directories { each: point.count("files_per_directory") },
        naming: Naming::Numbers,
        sizes: sizes(point),
        block_size: point.size("block_size"),
        data: DataPattern::Random {
            incompressible_fraction: point.fraction("incompressible_fraction"),
            duplicate_fraction: 0.0,
        },
        seed,
    }
}

fn footprint(point: &WorkloadParameters) -> Bytes {
    let each = space(point.count("files"), sizes(point));
    Bytes(each.0.saturating_mul(point.count("workers")))
}

/// Table that contains the phases.
const GROUP: &str = "small files";
