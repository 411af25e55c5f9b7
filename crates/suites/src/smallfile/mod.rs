//! Five operations on sets of small files, a set for each process, as in a study of 2011: write,
//! stat, read, rewrite, and unlink, each over the whole set, in the order in which directories list
//! their entries, with caches that are empty or hold what the operation needs.
//!
//! Each operation is a measured phase. A set that no operation writes is laid out first, and with
//! `cache = "warm"` a pass that is not measured goes before each operation on what is there.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Phase, Point, SuiteSpec, Value,
    phase::{
        Cache, Fill, Item, Layout, Naming, Role, Set, Sharing, Sizes, Spread, Timed, Tree, TreeEnd,
        TreeOrder, TreeStep, Work,
    },
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{
    Suite, parameter,
    shared::{count, has, space, worker_parameter, workers, workers_parameter},
};

/// The suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

/// In the order they run: each leaves the set as the next one needs it.
const OPERATIONS: &[&str] = &["write", "stat", "read", "rewrite", "unlink"];

const SIZE: Kind = Kind::Size { min: Bytes(1), scales: false };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("operations", Kind::Words(OPERATIONS), "write,stat,read,rewrite,unlink", "Which operations; they run in the suite's order, and a set that none of them writes is laid out."),
    parameter("files", Kind::Amount { min: 1, max: 1 << 32 }, "5000", "Files of each worker; the study had 350,000."),
    parameter("per_directory", Kind::Count { min: 1, max: 1 << 32 }, "200", "Files in one directory."),
    parameter("mean_size", SIZE, "50000", "Mean size of a file."),
    parameter("distribution", Kind::Word(&["fixed", "uniform", "log-normal"]), "uniform", "All of the mean size; every size from 0 to twice the mean equally often; or many small and few large."),
    parameter("sigma", Kind::Number { min: 0.0, max: 4.0 }, "1.0", "Standard deviation of the natural logarithm of a size, where sizes are log-normal."),
    parameter("record", SIZE, "64KiB", "Bytes of one call that reads or writes; files that are smaller take one call."),
    workers_parameter("How many work at the same time, each with a set of its own."),
    worker_parameter("process", "What they are."),
    parameter("order", Kind::Word(&["readdir", "name", "random"]), "readdir", "The order of all operations but write: as directories list their entries, as they were written, or at random."),
    parameter("cache", Kind::Word(&["cold", "warm"]), "cold", "Before each operation on what is there: empty the caches, or go over the set once so that they hold what it needs. Writing always starts cold."),
    parameter("sync", Kind::Flag, "false", "sync(2) after each operation that changes the set, counted into its time."),
    parameter("entropy", Kind::Share, "1.0", "Share of random bytes in the data; the rest is zero."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "smallfile",
    title: "Sets of small files, one for each process: written, looked at, read, rewritten, and \
            removed; cold or warm.",
    source: "a study of small files on five filesystems, February 2011; what it leaves open is own \
             choice",
    notes: include_str!("notes.md"),
    clients: Some("workers"),
    parameters: PARAMETERS,
};

fn refine(mut point: Point) -> Result<Vec<Point>, ValueError> {
    let any = |words: &[&str]| words.iter().any(|word| has(&point, "operations", word));
    let mut idle = Vec::new();
    if !any(&OPERATIONS[1..]) {
        idle.extend(["order", "cache"]);
    }
    if !any(&["write", "rewrite", "unlink"]) {
        idle.push("sync");
    }
    if point.word("distribution") != "log-normal" {
        idle.push("sigma");
    }
    if point.count("workers") == 1 {
        idle.push("worker");
    }
    point.settle(&SPEC.defaults(), &idle);
    let largest = match sizes(&point) {
        Sizes::Fixed(size) | Sizes::Uniform { max: size, .. } => Some(size),
        Sizes::LogNormal { .. } => None,
    };
    // A record larger than every file is the file.
    if let Some(largest) = largest.filter(|largest| *largest < point.size("record")) {
        point.parameters.insert("record".into(), Value::Size(largest));
    }
    let per_directory = point.count("per_directory").min(point.count("files"));
    point.parameters.insert("per_directory".into(), Value::Count(per_directory));
    Ok(vec![point])
}

fn sizes(point: &Point) -> Sizes {
    let mean = point.size("mean_size");
    match point.word("distribution") {
        "fixed" => Sizes::Fixed(mean),
        "log-normal" => Sizes::LogNormal { mean, sigma: point.number("sigma") },
        _ => Sizes::Uniform { min: Bytes(0), max: Bytes(mean.0.saturating_mul(2)) },
    }
}

fn phases(point: &Point, seed: u64) -> Vec<Phase> {
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
        cache: Cache::AsLeft,
        work,
        timed: Timed::default(),
    }
}

fn measured(point: &Point, set: &Set, operation: &str, cache: Cache) -> Phase {
    let mut steps = steps(operation);
    if operation == "rewrite" && point.word("order") == "random" {
        // At random nobody comes to a directory first.
        steps.retain(|step| *step != TreeStep::MakeParent);
    }
    let changes = steps.iter().any(|step| step.changes());
    let end = TreeEnd { remove_directories: false, sync: changes && point.flag("sync") };
    let mut tree = tree(point, set, steps, end);
    if operation == "write" {
        // There is nothing that could be listed, and no order but that of writing.
        tree.order = TreeOrder::Created;
    }
    Phase {
        role: Role::Measure,
        cache,
        timed: Timed { flush: end.sync, ..Timed::default() },
        ..prepared(operation.into(), Work::Tree(tree))
    }
}

fn tree(point: &Point, set: &Set, steps: Vec<TreeStep>, end: TreeEnd) -> Tree {
    let order = match point.word("order") {
        "name" => TreeOrder::Created,
        "random" => TreeOrder::Shuffled,
        _ => TreeOrder::Listed,
    };
    Tree { order, end, workers: workers(point), ..Tree::new(set.clone(), steps) }
}

/// What is done to each file.
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

/// What brings into memory all that an operation looks at: rewriting makes new data, and removing
/// looks at none.
fn needed(operation: &str) -> Vec<TreeStep> {
    match operation {
        "read" => steps("read"),
        _ => steps("stat"),
    }
}

fn set(point: &Point, seed: u64) -> Set {
    Set {
        name: "smallfile".into(),
        sharing: Sharing::Private,
        files: point.count("files"),
        spread: Spread::Directories { each: point.count("per_directory") },
        naming: Naming::Numbers,
        sizes: sizes(point),
        record: point.size("record"),
        fill: Fill::Random { entropy: point.share("entropy"), duplicates: 0.0 },
        seed,
    }
}

fn footprint(point: &Point) -> Bytes {
    let each = space(point.count("files"), sizes(point));
    Bytes(each.0.saturating_mul(point.count("workers")))
}

/// The heading of the tables.
const GROUP: &str = "small files";
