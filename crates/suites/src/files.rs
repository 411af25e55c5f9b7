//! Many files: the same steps done to each, by workers with directories of their own. One operation
//! is all steps of one file.
//!
//! A trial makes the files first if the steps do not begin by creating them, and measures one
//! phase, named by the steps' first word that says what it is about. Steps that cannot follow one
//! another, such as reading a file that is not open, are refused here.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Phase, Point, SuiteSpec, Value,
    phase::{
        Cache, Fill, IoPriority, Naming, Pin, Role, Set, Sharing, Sizes, Spread, Timed, Tree,
        TreeOrder, TreeStep, Work, WorkerKind, Workers,
    },
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, parameter};

/// The suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

/// Name of the tree in the directory under test.
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
    parameter("files", Kind::Amount { min: 1, max: 1 << 32 }, "10000", "Files of each worker."),
    parameter("per_directory", Kind::Count { min: 1, max: 1 << 32 }, "1000", "Files in one directory."),
    parameter("size", SIZE, "4KiB", "Size of each file; 0 makes empty files."),
    parameter("record", Kind::Size { min: Bytes(1), scales: false }, "64KiB", "Bytes of one call that reads or writes; files that are smaller take one call."),
    parameter("steps", Kind::Sequence(STEPS), "create,write,close", "What is done to each file, in order."),
    parameter("order", Kind::Word(&["created", "shuffled"]), "created", "The order of files: as they are numbered, or a permutation drawn from the seed."),
    parameter("workers", Kind::Count { min: 1, max: 1024 }, "1", "How many threads, each with files of its own."),
    parameter("pin", Kind::Flag, "false", "Each worker on a CPU of its own, round and round."),
    parameter("idle", Kind::Flag, "false", "Work in the idle class of ioprio_set."),
    parameter("cache", Kind::Word(&["cold", "as-left"]), "cold", "Empty the caches before the measured phase, or leave them as the creation did."),
    parameter("entropy", Kind::Share, "1.0", "Share of random bytes in the data; the rest is zero."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "files",
    title: "Many files: create, write, fsync, stat, rename, unlink, in any order that makes sense.",
    source: "fslab's own; each step as in its Linux manual page",
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

fn steps(point: &Point) -> Vec<TreeStep> {
    point.words("steps").iter().map(|word| step(word)).collect()
}

fn refine(mut point: Point) -> Result<Vec<Point>, ValueError> {
    let steps = steps(&point);
    let mut idle = Vec::new();
    let moves =
        |step: &TreeStep| matches!(step, TreeStep::Write | TreeStep::Append | TreeStep::Read);
    let creates = steps.first() == Some(&TreeStep::Create);
    // Files that are made beforehand have their size whatever the steps are.
    let empty = creates && !steps.iter().any(moves);
    if empty {
        idle.extend(["size", "record", "entropy"]);
    }
    if creates {
        // Nothing is there that could be in the caches but the directories.
        idle.push("cache");
    }
    point.settle(&SPEC.defaults(), &idle);
    if empty {
        point.parameters.insert("size".into(), Value::Size(Bytes(0)));
    }
    let (size, record) = (point.size("size"), point.size("record"));
    // A record larger than the file is the file, except to an append, which is one record.
    if record > size && size.0 > 0 && !steps.contains(&TreeStep::Append) {
        point.parameters.insert("record".into(), Value::Size(size));
    }
    let per_directory = point.count("per_directory").min(point.count("files"));
    point.parameters.insert("per_directory".into(), Value::Count(per_directory));
    sensible(&point, &steps)?;
    Ok(vec![point])
}

/// Where a file stands between two steps.
#[derive(Clone, Copy, Default)]
struct State {
    exists: bool,
    renamed: bool,
    linked: bool,
    open: Option<Session>,
}

/// What was done to an open file.
#[derive(Clone, Copy, Default)]
struct Session {
    /// Created, so for writing only.
    created: bool,
    written: bool,
    appended: bool,
}

/// What is wrong, as the end of a sentence, and what to change.
type Problem = (&'static str, &'static str);

/// Goes through the steps of one file as the kernel will.
fn sensible(point: &Point, steps: &[TreeStep]) -> Result<(), ValueError> {
    let exists = steps.first() != Some(&TreeStep::Create);
    let mut state = State { exists, ..State::default() };
    for (step, word) in steps.iter().zip(point.words("steps")) {
        state = after(state, *step).map_err(|(problem, cure)| {
            ValueError::new(format!("`{word}` comes where {problem}")).cure(cure)
        })?;
    }
    match state.open {
        Some(_) => Err(ValueError::new("the steps leave the file open").cure("end with `close`")),
        None => Ok(()),
    }
}

fn need(holds: bool, problem: &'static str, cure: &'static str) -> Result<(), Problem> {
    if holds { Ok(()) } else { Err((problem, cure)) }
}

fn after(state: State, step: TreeStep) -> Result<State, Problem> {
    let State { exists, renamed, linked, open } = state;
    let named =
        || need(exists && !renamed, "no file has the name", "create it, or rename it back, before");
    let closed = || need(open.is_none(), "a file is open", "`close` before");
    Ok(match step {
        TreeStep::Create => {
            need(!exists, "the file is there", "begin with `create`, or `unlink` before")?;
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
            need(open.is_some(), "no file is open", "`create` or `open` before")?;
            State { open: None, ..state }
        }
        TreeStep::FsyncDirectory | TreeStep::List => state,
        TreeStep::Stat | TreeStep::Chmod => {
            named()?;
            state
        }
        TreeStep::Rename => {
            named()?;
            State { renamed: true, ..state }
        }
        TreeStep::RenameBack => {
            need(exists && renamed, "the file was not renamed", "`rename` before")?;
            State { renamed: false, ..state }
        }
        TreeStep::Link => {
            named()?;
            need(!linked, "the link is there", "`unlink-link` before")?;
            State { linked: true, ..state }
        }
        TreeStep::UnlinkLink => {
            need(linked, "there is no link", "`link` before")?;
            State { linked: false, ..state }
        }
        TreeStep::Unlink => {
            named()?;
            State { exists: false, ..state }
        }
        TreeStep::MakeParent
        | TreeStep::OpenRead
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
        | TreeStep::Rmdir => unreachable!("no word of this suite"),
    })
}

/// What steps on an open file make of it.
fn moved(open: Option<Session>, step: TreeStep) -> Result<Session, Problem> {
    let session = open.ok_or(("no file is open", "`create` or `open` before"))?;
    let Session { created, written, appended } = session;
    if step == TreeStep::Read {
        need(!created, "the file is open for writing only", "`close` and `open` it before")?;
    }
    if step == TreeStep::Write {
        need(!appended, "the file is open for appending", "`close` and `open` it before")?;
    }
    if step == TreeStep::Append {
        let fresh = created || !written;
        need(fresh, "the file is open for overwriting", "`close` and `open` it before")?;
    }
    let written = written || step == TreeStep::Write;
    let appended = appended || step == TreeStep::Append;
    Ok(Session { written, appended, ..session })
}

fn phases(point: &Point, seed: u64) -> Vec<Phase> {
    let steps = steps(point);
    let creates = steps.first() == Some(&TreeStep::Create);
    let cold = point.word("cache") == "cold";
    let measured = Phase {
        name: name(&steps).into(),
        group: "files".into(),
        role: Role::Measure,
        cache: if cold { Cache::Cold } else { Cache::AsLeft },
        work: Work::Tree(tree(point, seed, steps)),
        timed: Timed::default(),
    };
    if creates {
        return vec![measured];
    }
    let mut make = vec![TreeStep::Create, TreeStep::Write, TreeStep::Close];
    if point.size("size") == Bytes(0) {
        make.remove(1);
    }
    let tree = Tree { order: TreeOrder::Created, ..tree(point, seed, make) };
    let layout = Phase {
        name: "layout".into(),
        role: Role::Prepare,
        cache: Cache::AsLeft,
        work: Work::Tree(tree),
        ..measured.clone()
    };
    vec![layout, measured]
}

/// What the steps are about: the first that is neither opening nor closing.
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
        | TreeStep::OpenRead
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

fn tree(point: &Point, seed: u64, steps: Vec<TreeStep>) -> Tree {
    let set = Set {
        name: TREE.into(),
        sharing: Sharing::Private,
        files: point.count("files"),
        spread: Spread::Directories { each: point.count("per_directory") },
        naming: Naming::Numbers,
        sizes: Sizes::Fixed(point.size("size")),
        record: point.size("record"),
        fill: Fill::Random { entropy: point.share("entropy"), duplicates: 0.0 },
        seed,
    };
    Tree {
        order: match point.word("order") {
            "shuffled" => TreeOrder::Shuffled,
            _ => TreeOrder::Created,
        },
        workers: Workers {
            count: u32::try_from(point.count("workers")).unwrap_or(u32::MAX),
            kind: WorkerKind::Thread,
            pin: if point.flag("pin") { Pin::Each } else { Pin::Free },
            io_priority: point.flag("idle").then_some(IoPriority::Idle),
            ..Workers::ONE
        },
        ..Tree::new(set, steps)
    }
}

/// Files take whole blocks; 4 KiB is the usual one. Inodes and directories are not counted.
fn footprint(point: &Point) -> Bytes {
    let appends = point.words("steps").iter().filter(|word| *word == "append").count();
    let appended = point.size("record").0.saturating_mul(appends as u64);
    let each = point.size("size").0.saturating_add(appended).next_multiple_of(4096);
    Bytes(each.saturating_mul(point.count("files")).saturating_mul(point.count("workers")))
}
