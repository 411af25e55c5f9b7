//! Refuses trees that contradict themselves, before anything is touched.

use model::phase::{
    Fill, Sharing, Sizes, Spread, Stonewall, Tree, TreeOrder, TreeStep, WorkerKind,
};

use super::{ring, walk};
use crate::{Context, EngineError};

/// What contradicts what, and what to change.
type Problem = (&'static str, &'static str);

/// Makes sure that the tree can be run.
pub(super) fn check(tree: &Tree, context: &Context<'_>) -> Result<(), EngineError> {
    let problem = numbers(tree)
        .or_else(|| workers(tree, context))
        .or_else(|| content(tree))
        .or_else(|| order(tree))
        .or_else(|| shared(tree))
        .or_else(|| end(tree))
        .or_else(|| steps(&tree.steps))
        .or_else(|| ring::problem(tree));
    match problem {
        None => Ok(()),
        Some((problem, cure)) => Err(EngineError::Tree { problem, cure }),
    }
}

fn has(tree: &Tree, steps: &[TreeStep]) -> bool {
    tree.steps.iter().any(|step| steps.contains(step))
}

fn numbers(tree: &Tree) -> Option<Problem> {
    let set = &tree.set;
    if set.files == 0 || set.spread == (Spread::Directories { each: 0 }) {
        return Some(("it has no files, or directories without", "use at least one"));
    }
    if tree.passes == 0 {
        return Some(("its workers never go over its files", "use at least one pass"));
    }
    if tree.steps.is_empty() {
        return Some(("nothing is done to its files", "give at least one step"));
    }
    let whole = [TreeStep::Append, TreeStep::Allocate, TreeStep::PunchHole];
    if set.record.0 == 0 && (!set.sizes.are_empty() || has(tree, &whole)) {
        return Some(("its record is empty", "give the size of a record"));
    }
    match set.sizes {
        Sizes::Uniform { min, max } if min > max => {
            return Some(("its least size is above its most", "exchange them"));
        }
        Sizes::LogNormal { mean, sigma } if mean.0 == 0 || !(0.0..=4.0).contains(&sigma) => {
            return Some((
                "its sizes have no such distribution",
                "use a mean of at least 1 and a sigma within 0..=4",
            ));
        }
        Sizes::Fixed(_) | Sizes::Uniform { .. } | Sizes::LogNormal { .. } => {}
    }
    if set.name.is_empty() || set.name.contains('/') {
        return Some(("its name is no file name", "use letters, digits, and dashes"));
    }
    None
}

fn workers(tree: &Tree, context: &Context<'_>) -> Option<Problem> {
    if tree.workers.count == 0 {
        return Some(("it has no workers", "use at least one"));
    }
    if tree.workers.kind == WorkerKind::Process && context.worker_command.is_empty() {
        return Some(("it wants processes and has no command for them", "use threads"));
    }
    None
}

fn content(tree: &Tree) -> Option<Problem> {
    let Fill::Random { entropy, duplicates } = tree.set.fill else { return None };
    if !(0.0..=1.0).contains(&entropy) {
        return Some(("its share of random bytes is not a share", "use a number within 0..=1"));
    }
    if duplicates != 0.0 {
        return Some(("its files have no duplicates", "set duplicates to 0"));
    }
    None
}

fn order(tree: &Tree) -> Option<Problem> {
    let first = [TreeStep::LinkFirst, TreeStep::SymlinkFirst];
    if has(tree, &first) && tree.order != TreeOrder::Created {
        return Some(("entry 0 may come late in its order", "use the order created"));
    }
    if has(tree, &[TreeStep::MakeParent]) && tree.order == TreeOrder::Shuffled {
        return Some((
            "the first entry of a directory may come late in its order",
            "use the order created or listed, or leave make-parent out",
        ));
    }
    let bytes = walk::most_entries(tree).saturating_mul(8);
    if walk::lists_whole(tree) && bytes > walk::MOST {
        return Some((
            "it makes entries in directories too large to be listed before",
            "use at most 8388608 entries for each directory, or another order",
        ));
    }
    None
}

/// Where workers have the same entries, only one of them can make, move, or remove one.
fn shared(tree: &Tree) -> Option<Problem> {
    let alone = [
        TreeStep::Create,
        TreeStep::Rename,
        TreeStep::RenameBack,
        TreeStep::RenameAcross,
        TreeStep::Link,
        TreeStep::UnlinkLink,
        TreeStep::LinkFirst,
        TreeStep::SymlinkFirst,
        TreeStep::Symlink,
        TreeStep::Unlink,
        TreeStep::Mknod,
        TreeStep::Mkdir,
        TreeStep::Rmdir,
    ];
    if tree.set.sharing == Sharing::File && tree.workers.count > 1 && has(tree, &alone) {
        return Some((
            "its workers make, move, or remove the same entries",
            "use one worker, or sharing = directory",
        ));
    }
    None
}

fn end(tree: &Tree) -> Option<Problem> {
    if !tree.end.remove_directories {
        return None;
    }
    if has(tree, &[TreeStep::RenameAcross]) {
        return Some((
            "it removes the directory that it renames entries into",
            "leave the directories",
        ));
    }
    if tree.workers.stonewall == Stonewall::Stop {
        return Some((
            "it removes directories in which workers that stop leave entries",
            "let them finish, or leave the directories",
        ));
    }
    None
}

/// Goes through the steps that need an open file, or none.
fn steps(steps: &[TreeStep]) -> Option<Problem> {
    use TreeStep::{
        Allocate, Append, Close, Create, Fetch, Fsync, Open, OpenRead, PunchHole, Read, Stat, Write,
    };
    // Of the open file, if any: how it was opened, and what was done to it.
    let mut open = None;
    let (mut written, mut appended, mut told) = (false, false, false);
    for step in steps {
        let step = *step;
        if matches!(step, Write | Append | Read | Fsync | Allocate | PunchHole | Close)
            && open.is_none()
        {
            return Some(("it uses a file that is not open", "create or open it before"));
        }
        if matches!(step, Write | Append | Allocate | PunchHole) && open == Some(OpenRead) {
            return Some(("it changes a file that is open for reading", "use the step open"));
        }
        let created = open == Some(Create);
        let opens = matches!(step, Create | Open | OpenRead);
        if opens && open.is_some() {
            return Some(("it opens a second file", "close the first one before"));
        }
        if step == Read && created {
            return Some(("it reads a file that is open for writing", "open the file anew"));
        }
        // With O_APPEND, which holds for as long as a file is open, this would lengthen it.
        if step == Write && appended {
            return Some(("it overwrites a file that it appends to", "open the file anew"));
        }
        if step == Append && written && !created {
            return Some(("it appends to a file that it overwrites", "open the file anew"));
        }
        if step == Fetch && !told {
            return Some(("it fetches what no stat told it of", "put the step stat before"));
        }
        if opens {
            (open, written, appended) = (Some(step), false, false);
        } else if step == Close {
            open = None;
        }
        told |= step == Stat;
        written |= step == Write;
        appended |= step == Append;
    }
    open.is_some().then_some(("its steps leave the file open", "end with close"))
}
