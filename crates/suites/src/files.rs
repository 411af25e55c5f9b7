//! Suite `files`: a sequence of system calls on each of many files, by workers with separate
//! directories. One operation consists of all steps on one file.
//!
//! A trial measures one phase, named after the first step other than opening and closing. If the
//! steps do not start with `create`, the trial creates the files first. Invalid sequences, such as
//! reading a file that is not open, are rejected by `refine`.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Phase, SuiteSpec, Value, WorkloadParameters,
    phase::{
        Cache, DataPattern, IoPriority, Naming, Pin, Role, Set, Sharing, Sizes, Spread, Timed,
        Tree, TreeOrder, TreeStep, Work, WorkerKind, Workers,
    },
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, parameter};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

/// Name of the tree in the test directory.
const TREE: &str = "tree";

const STEPS: &[&str] = &[
    "create",
    "open",
    "write",
    "append",
    "read",
    "fsync",
    "fsync-directory",
    "close",
    "stat",
    "chmod",
    "rename",
    "rename-back",
    "link",
    "unlink-link",
    "unlink",
    "list",
];

const SIZE: Kind = Kind::Size { min: Bytes(0), scales: false };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("files", Kind::Amount { min: 1, max: 1 << 32 }, "10000", "Number of files of each worker."),
    parameter("files_per_directory", Kind::Count { min: 1, max: 1 << 32 }, "1000", "Entries per directory."),
    parameter("file_size", SIZE, "4KiB", "Size of each file."),
    parameter("block_size", Kind::Size { min: Bytes(1), scales: false }, "64KiB", "Bytes per I/O call; smaller files take one call."),
    parameter("steps", Kind::Sequence(STEPS), "create,write,close", "System calls per file, in order."),
    parameter("order", Kind::Word(&["creation", "random"]), "creation", "Order of files: creation order, or a random permutation."),
    parameter("workers", Kind::Count { min: 1, max: 1024 }, "1", "Number of threads, each with its own files."),
    parameter("pin", Kind::Flag, "false", "Pin each worker to a CPU, round-robin."),
    parameter("idle_io_priority", Kind::Flag, "false", "Use the idle I/O class (ioprio_set(2))."),
    parameter("cache", Kind::Word(&["cold", "unchanged"]), "cold", "Cache state before each measured phase: cold, or unchanged since the files were created."),
    parameter("incompressible_fraction", Kind::Fraction, "1.0", "Fraction of random bytes (rest zero)."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "files",
    title: "A sequence of system calls on each of many files.",
    source: "fslab; steps as in the Linux manual pages",
    notes: include_str!("files/notes.md"),
    clients: Some("workers"),
    parameters: PARAMETERS,
};

fn step(word: &str) -> TreeStep {
    match word {
        "open" => TreeStep::Open,
        "write" => TreeStep::Write,
        "append" => TreeStep::Append,
        "read" => TreeStep::Read,
        "fsync" => TreeStep::Fsync,
        "fsync-directory" => TreeStep::FsyncDirectory,
        "close" => TreeStep::Close,
        "stat" => TreeStep::Stat,
        "chmod" => TreeStep::Chmod,
        "rename" => TreeStep::Rename,
        "rename-back" => TreeStep::RenameBack,
        "link" => TreeStep::Link,
        "unlink-link" => TreeStep::UnlinkLink,
        "unlink" => TreeStep::Unlink,
        "list" => TreeStep::List,
        _ => TreeStep::Create,
    }
}

fn steps(point: &WorkloadParameters) -> Vec<TreeStep> {
    point.words("steps").iter().map(|word| step(word)).collect()
}

fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    let steps = steps(&point);
    let mut idle = Vec::new();
    let moves =
        |step: &TreeStep| matches!(step, TreeStep::Write | TreeStep::Append | TreeStep::Read);
    let creates = steps.first() == Some(&TreeStep::Create);
    // Files that are not created by the steps have their size before the first step.
    let empty = creates && !steps.iter().any(moves);
    if empty {
        idle.extend(["file_size", "block_size", "incompressible_fraction"]);
    }
    if creates {
        // Only directories exist before the phase, so the cache state has no effect.
        idle.push("cache");
    }
    point.reset(&SPEC.defaults(), &idle);
    if empty {
        point.parameters.insert("file_size".into(), Value::Size(Bytes(0)));
    }
    let (size, block) = (point.size("file_size"), point.size("block_size"));
    // A block larger than the file is reduced to the size of the file. An append always writes a
    // whole block.
    if block > size && size.0 > 0 && !steps.contains(&TreeStep::Append) {
        point.parameters.insert("block_size".into(), Value::Size(size));
    }
    let per_directory = point.count("files_per_directory").min(point.count("files"));
    point.parameters.insert("files_per_directory".into(), Value::Count(per_directory));
    check_steps(&point, &steps)?;
    Ok(vec![point])
}

/// State of a file between two steps.
#[derive(Clone, Copy, Default)]
struct State {
    exists: bool,
    renamed: bool,
    linked: bool,
    open: Option<Session>,
}

/// State of an open file.
#[derive(Clone, Copy, Default)]
struct Session {
    /// Created in this session, and therefore open for writing only.
    created: bool,
    written: bool,
    appended: bool,
}

/// End of a message that describes the problem, and hint.
type Problem = (&'static str, &'static str);

/// Checks the steps of one file in order.
fn check_steps(point: &WorkloadParameters, steps: &[TreeStep]) -> Result<(), ValueError> {
    let exists = steps.first() != Some(&TreeStep::Create);
    let mut state = State { exists, ..State::default() };
    for (step, word) in steps.iter().zip(point.words("steps")) {
        state = after(state, *step).map_err(|(problem, hint)| {
            ValueError::new(format!("invalid step `{word}`: {problem}")).hint(hint)
        })?;
    }
    match state.open {
        Some(_) => {
            Err(ValueError::new("the last step leaves the file open").hint("end with `close`"))
        }
        None => Ok(()),
    }
}

fn need(holds: bool, problem: &'static str, hint: &'static str) -> Result<(), Problem> {
    if holds { Ok(()) } else { Err((problem, hint)) }
}

const NO_SUCH_NAME: &str = "the file does not exist under this name";

/// State after a step.
fn after(state: State, step: TreeStep) -> Result<State, Problem> {
    let State { exists, renamed, linked, open } = state;
    let named = || need(exists && !renamed, NO_SUCH_NAME, "create it or rename it back first");
    let closed = || need(open.is_none(), "a file is open", "add `close` before it");
    Ok(match step {
        TreeStep::Create => {
            need(!exists, "the file exists", "start with `create`, or add `unlink` before it")?;
            closed()?;
            let session = Session { created: true, ..Session::default() };
            State { exists: true, renamed: false, open: Some(session), ..state }
        }
        TreeStep::Open => {
            named()?;
            closed()?;
            State { open: Some(Session::default()), ..state }
        }
        TreeStep::Write | TreeStep::Append | TreeStep::Read | TreeStep::Fsync => {
            State { open: Some(moved(open, step)?), ..state }
        }
        TreeStep::Close => {
            need(open.is_some(), "no file is open", "add `create` or `open` before it")?;
            State { open: None, ..state }
        }
        TreeStep::FsyncDirectory | TreeStep::List => state,
        TreeStep::Stat | TreeStep::Chmod => named().map(|()| state)?,
        TreeStep::Rename => {
            named()?;
            State { renamed: true, ..state }
        }
        TreeStep::RenameBack => {
            need(exists && renamed, "the file was not renamed", "add `rename` before it")?;
            State { renamed: false, ..state }
        }
        TreeStep::Link => {
            named()?;
            need(!linked, "the link exists", "add `unlink-link` before it")?;
            State { linked: true, ..state }
        }
        TreeStep::UnlinkLink => {
            need(linked, "there is no link", "add `link` before it")?;
            State { linked: false, ..state }
        }
        TreeStep::Unlink => {
            named()?;
            State { exists: false, ..state }
        }
        TreeStep::MakeParent
        | TreeStep::OpenCreate
        | TreeStep::OpenRead
        | TreeStep::WriteBlock
        | TreeStep::ReadBlock
        | TreeStep::VerifyBlock
        | TreeStep::RenameRing
        | TreeStep::Fetch
        | TreeStep::StatMissing
        | TreeStep::Chown
        | TreeStep::SetTimes
        | TreeStep::SetXattr
        | TreeStep::GetXattr
        | TreeStep::Truncate
        | TreeStep::Allocate
        | TreeStep::PunchHole
        | TreeStep::RenameAcross
        | TreeStep::LinkFirst
        | TreeStep::SymlinkFirst
        | TreeStep::Symlink
        | TreeStep::Mknod
        | TreeStep::Mkdir
        | TreeStep::Rmdir => unreachable!("not a step of this suite"),
    })
}

/// State of an open file after a step.
fn moved(open: Option<Session>, step: TreeStep) -> Result<Session, Problem> {
    let session = open.ok_or(("no file is open", "add `create` or `open` before it"))?;
    let Session { created, written, appended } = session;
    if step == TreeStep::Read {
        need(!created, "the file is open for writing only", "add `close` and `open` before it")?;
    }
    if step == TreeStep::Write {
        need(!appended, "the file is open for appending", "add `close` and `open` before it")?;
    }
    if step == TreeStep::Append {
        let fresh = created || !written;
        need(fresh, "the file is open for overwriting", "add `close` and `open` before it")?;
    }
    let written = written || step == TreeStep::Write;
    let appended = appended || step == TreeStep::Append;
    Ok(Session { written, appended, ..session })
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let steps = steps(point);
    let creates = steps.first() == Some(&TreeStep::Create);
    let cold = point.word("cache") == "cold";
    let measured = Phase {
        name: name(&steps).into(),
        group: "files".into(),
        role: Role::Measure,
        cache: if cold { Cache::Cold } else { Cache::Unchanged },
        work: Work::Tree(tree(point, seed, steps)),
        timed: Timed::default(),
        directory: None,
        together: None,
    };
    if creates {
        return vec![measured];
    }
    let mut make = vec![TreeStep::Create, TreeStep::Write, TreeStep::Close];
    if point.size("file_size") == Bytes(0) {
        make.remove(1);
    }
    let tree = Tree { order: TreeOrder::Creation, ..tree(point, seed, make) };
    let layout = Phase {
        name: "layout".into(),
        role: Role::Prepare,
        cache: Cache::Unchanged,
        work: Work::Tree(tree),
        ..measured.clone()
    };
    vec![layout, measured]
}

/// Name of the phase: the first step other than opening and closing, or `open`.
fn name(steps: &[TreeStep]) -> &'static str {
    let named = |step: &TreeStep| match step {
        TreeStep::Create => Some("create"),
        TreeStep::Write => Some("write"),
        TreeStep::Append => Some("append"),
        TreeStep::Read => Some("read"),
        TreeStep::Fsync => Some("fsync"),
        TreeStep::FsyncDirectory => Some("fsync-directory"),
        TreeStep::Stat => Some("stat"),
        TreeStep::Chmod => Some("chmod"),
        TreeStep::Rename => Some("rename"),
        TreeStep::RenameBack => Some("rename-back"),
        TreeStep::Link => Some("link"),
        TreeStep::UnlinkLink => Some("unlink-link"),
        TreeStep::Unlink => Some("unlink"),
        TreeStep::List => Some("list"),
        TreeStep::Open | TreeStep::Close => None,
        TreeStep::MakeParent
        | TreeStep::OpenCreate
        | TreeStep::OpenRead
        | TreeStep::WriteBlock
        | TreeStep::ReadBlock
        | TreeStep::VerifyBlock
        | TreeStep::RenameRing
        | TreeStep::Fetch
        | TreeStep::StatMissing
        | TreeStep::Chown
        | TreeStep::SetTimes
        | TreeStep::SetXattr
        | TreeStep::GetXattr
        | TreeStep::Truncate
        | TreeStep::Allocate
        | TreeStep::PunchHole
        | TreeStep::RenameAcross
        | TreeStep::LinkFirst
        | TreeStep::SymlinkFirst
        | TreeStep::Symlink
        | TreeStep::Mknod
        | TreeStep::Mkdir
        | TreeStep::Rmdir => None,
    };
    steps.iter().find_map(named).unwrap_or("open")
}

fn tree(point: &WorkloadParameters, seed: u64, steps: Vec<TreeStep>) -> Tree {
    let set = Set {
        name: TREE.into(),
        sharing: Sharing::Private,
        files: point.count("files"),
        spread: Spread::Directories { each: point.count("files_per_directory") },
        naming: Naming::Numbers,
        sizes: Sizes::Fixed(point.size("file_size")),
        block_size: point.size("block_size"),
        data: DataPattern::Random {
            incompressible_fraction: point.fraction("incompressible_fraction"),
            duplicate_fraction: 0.0,
        },
        seed,
    };
    Tree {
        order: match point.word("order") {
            "random" => TreeOrder::Random,
            _ => TreeOrder::Creation,
        },
        workers: Workers {
            count: u32::try_from(point.count("workers")).unwrap_or(u32::MAX),
            kind: WorkerKind::Thread,
            pin: if point.flag("pin") { Pin::Each } else { Pin::Free },
            io_priority: point.flag("idle_io_priority").then_some(IoPriority::Idle),
            ..Workers::ONE
        },
        ..Tree::new(set, steps)
    }
}

/// Maximum space of a trial in blocks of 4 KiB, without inodes and directories.
fn footprint(point: &WorkloadParameters) -> Bytes {
    let appends = point.words("steps").iter().filter(|word| *word == "append").count();
    let appended = point.size("block_size").0.saturating_mul(appends as u64);
    let each = point.size("file_size").0.saturating_add(appended).next_multiple_of(4096);
    Bytes(each.saturating_mul(point.count("files")).saturating_mul(point.count("workers")))
}
