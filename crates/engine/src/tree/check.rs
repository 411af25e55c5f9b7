//! Rejects invalid trees before anything is changed.

use model::phase::{
    Calls, DataPattern, DirectoryTree, EntryCount, Naming, Sharing, Sizes, Spread, Stonewall, Tree,
    TreeOrder, TreeStep, WorkerKind,
};

use super::{ring, walk};
use crate::{Context, EngineError};

/// Problem and hint.
type Problem = (&'static str, &'static str);

/// Checks that the tree can be run.
pub(super) fn check(tree: &Tree, context: &Context<'_>) -> Result<(), EngineError> {
    let problem = numbers(tree)
        .or_else(|| workers(tree, context))
        .or_else(|| content(tree))
        .or_else(|| order(tree))
        .or_else(|| shared(tree))
        .or_else(|| end(tree))
        .or_else(|| hierarchy(tree))
        .or_else(|| selection(tree))
        .or_else(|| steps(&tree.steps))
        .or_else(|| ring::problem(tree));
    match problem {
        None => Ok(()),
        Some((problem, hint)) => Err(EngineError::Tree { problem, hint }),
    }
}

fn has(tree: &Tree, steps: &[TreeStep]) -> bool {
    tree.steps.iter().any(|step| steps.contains(step))
}

fn numbers(tree: &Tree) -> Option<Problem> {
    let set = &tree.set;
    if set.files == 0 || set.spread == (Spread::Directories { each: 0 }) {
        return Some(("files or files_per_directory is 0", "use at least 1"));
    }
    if tree.passes == 0 {
        return Some(("passes is 0", "set it to at least 1"));
    }
    if tree.steps.is_empty() {
        return Some(("steps is empty", "use at least one step"));
    }
    let whole = [
        TreeStep::Append,
        TreeStep::Allocate,
        TreeStep::PunchHole,
        TreeStep::WriteBlock,
        TreeStep::ReadBlock,
    ];
    if set.block_size.0 == 0 && (!set.sizes.are_empty() || has(tree, &whole)) {
        return Some(("block_size is 0", "set it to at least 1"));
    }
    match set.sizes {
        Sizes::Uniform { min, max } if min > max => {
            return Some(("the minimum file size exceeds the maximum", "swap them"));
        }
        Sizes::LogNormal { mean, sigma } if mean.0 == 0 || !(0.0..=4.0).contains(&sigma) => {
            return Some((
                "the file size distribution is invalid",
                "use file_size_mean of at least 1 and file_size_sigma from 0 to 4",
            ));
        }
        Sizes::Fixed(_) | Sizes::Uniform { .. } | Sizes::LogNormal { .. } => {}
    }
    if set.name.is_empty() || set.name.contains('/') {
        return Some(("the name of the file set is invalid", "use letters, digits, and dashes"));
    }
    None
}

fn workers(tree: &Tree, context: &Context<'_>) -> Option<Problem> {
    if tree.workers.count == 0 {
        return Some(("workers is 0", "set it to at least 1"));
    }
    if tree.workers.kind == WorkerKind::Process && context.worker_command.is_empty() {
        return Some(("worker processes are not available", "use worker_type thread"));
    }
    None
}

fn content(tree: &Tree) -> Option<Problem> {
    let DataPattern::Random { incompressible_fraction: entropy, duplicate_fraction: duplicates } =
        tree.set.data
    else {
        return None;
    };
    if !(0.0..=1.0).contains(&entropy) {
        return Some(("incompressible_fraction is out of range", "use a number from 0 to 1"));
    }
    if duplicates != 0.0 {
        return Some(("file sets do not support duplicates", "set duplicate_fraction to 0"));
    }
    None
}

fn order(tree: &Tree) -> Option<Problem> {
    let first = [TreeStep::LinkFirst, TreeStep::SymlinkFirst];
    if has(tree, &first) && tree.order != TreeOrder::Creation {
        return Some(("entry 0 may not come first", "use order creation"));
    }
    if has(tree, &[TreeStep::MakeParent]) && tree.order == TreeOrder::Random {
        return Some((
            "the first entry of a directory may not come first",
            "use order creation or listed, or omit make-parent",
        ));
    }
    let bytes = walk::most_entries(tree).saturating_mul(8);
    if walk::lists_whole(tree) && bytes > walk::MOST {
        return Some((
            "entries are created in directories too large to be listed first",
            "use at most 8388608 entries per directory, or another order",
        ));
    }
    None
}

/// Entries shared by the workers can be created, moved, or removed by one worker only.
fn shared(tree: &Tree) -> Option<Problem> {
    let alone = [
        TreeStep::Create,
        TreeStep::Rename,
        TreeStep::RenameBack,
        TreeStep::RenameRing,
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
            "several workers create, move, or remove the same entries",
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
        return Some(("the target directory of renames would be removed", "keep the directories"));
    }
    if tree.workers.stonewall == Stonewall::Stop {
        return Some((
            "workers stopped by stonewall leave entries in directories to be removed",
            "let them finish, or keep the directories",
        ));
    }
    None
}

/// Trees of directories, and names that only they have.
fn hierarchy(tree: &Tree) -> Option<Problem> {
    let set = &tree.set;
    let Spread::Tree(directories) = set.spread else {
        return (set.naming == Naming::TreeDirectories)
            .then_some(("the entries are directories of a tree, but there is no tree", "use one"));
    };
    let DirectoryTree { depth, branching, each, leaves_only: _ } = directories;
    if each == 0 || branching == 0 {
        return Some(("entries per directory or branching is 0", "use at least 1"));
    }
    if depth > DirectoryTree::DEEPEST || directories.directories() > DirectoryTree::MOST {
        return Some(("the tree of directories is too large", "use a smaller depth or branching"));
    }
    if tree.order == TreeOrder::Listed || tree.end.remove_directories {
        return Some((
            "directories of a tree cannot be listed or removed by a phase on their entries",
            "use order creation or random, and keep the directories",
        ));
    }
    None
}

/// Selected entries, and renames in a ring, which depend on their number.
fn selection(tree: &Tree) -> Option<Problem> {
    if has(tree, &[TreeStep::RenameRing])
        && (tree.order != TreeOrder::Creation || tree.selection.owners != 1)
    {
        return Some((
            "a ring of renames requires all entries of one worker in creation order",
            "use order creation",
        ));
    }
    let single = tree.passes == 1 && tree.selection.owners == 1;
    match tree.selection.count {
        EntryCount::Until(_)
            if tree.order != TreeOrder::Creation
                || tree.calls != Calls::Syscall
                || tree.workers.stonewall != Stonewall::Off
                || !single =>
        {
            return Some((
                "a time limit requires one pass in creation order by system calls",
                "remove the time limit",
            ));
        }
        EntryCount::Until(_) | EntryCount::All | EntryCount::Stored => {}
    }
    if tree.selection.owners == 0 {
        return Some(("owners is 0", "set it to at least 1"));
    }
    if tree.selection.owners > 1 && tree.set.sharing != Sharing::Directory {
        return Some((
            "a worker can visit the entries of others only in a shared directory",
            "use sharing directory",
        ));
    }
    None
}

/// Checks the order of the steps: steps on an open file need a suitable one, and no file stays
/// open.
fn steps(steps: &[TreeStep]) -> Option<Problem> {
    use TreeStep::{
        Allocate, Append, Close, Create, Fetch, Fsync, Open, OpenCreate, OpenRead, PunchHole, Read,
        ReadBlock, Stat, VerifyBlock, Write, WriteBlock,
    };
    // Mode of the open file, if any, and the operations on it.
    let mut open = None;
    let (mut written, mut appended, mut stat_size, mut read) = (false, false, false, false);
    for step in steps {
        let step = *step;
        let block = matches!(step, WriteBlock | ReadBlock);
        if (block || matches!(step, Write | Append | Read | Fsync | Allocate | PunchHole | Close))
            && open.is_none()
        {
            return Some(("a step uses a file that is not open", "create or open it first"));
        }
        if matches!(step, Write | WriteBlock | Append | Allocate | PunchHole)
            && open == Some(OpenRead)
        {
            return Some(("a step changes a file opened for reading", "use the step open"));
        }
        let created = open == Some(Create);
        let opens = matches!(step, Create | OpenCreate | Open | OpenRead);
        if opens && open.is_some() {
            return Some(("a step opens a second file", "close the first one"));
        }
        if matches!(step, Read | ReadBlock) && created {
            return Some(("a step reads a file opened for writing", "close and reopen it"));
        }
        // The file is open with O_APPEND, so this write would extend it.
        if step == Write && appended {
            return Some(("the steps append to and overwrite a file", "close and reopen it"));
        }
        if step == Append && written && !created {
            return Some(("the steps overwrite and append to a file", "close and reopen it"));
        }
        if step == VerifyBlock && !read {
            return Some(("a step verifies a block that was not read", "read it first"));
        }
        if step == Fetch && !stat_size {
            return Some(("fetch has no preceding stat", "add the step stat before it"));
        }
        if opens {
            (open, written, appended) = (Some(step), false, false);
        } else if step == Close {
            open = None;
        }
        stat_size |= step == Stat;
        read |= step == ReadBlock;
        written |= step == Write;
        appended |= step == Append;
    }
    open.is_some().then_some(("the file is open after the last step", "end with close"))
}
