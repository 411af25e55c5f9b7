//! Refuses trees that contradict themselves, before anything is touched.

use model::phase::{Fill, Tree, TreeStep, WorkerKind};

use crate::EngineError;

/// What contradicts what, and what to change.
type Problem = (&'static str, &'static str);

/// Makes sure that the tree can be run.
pub(super) fn check(tree: &Tree) -> Result<(), EngineError> {
    match numbers(tree).or_else(|| content(tree)).or_else(|| steps(&tree.steps)) {
        None => Ok(()),
        Some((problem, cure)) => Err(EngineError::Tree { problem, cure }),
    }
}

fn numbers(tree: &Tree) -> Option<Problem> {
    if tree.workers.count == 0 {
        return Some(("it has no workers", "use at least one"));
    }
    if tree.workers.kind == WorkerKind::Process {
        return Some(("its workers are processes", "use threads"));
    }
    if tree.files == 0 || tree.per_directory == 0 {
        return Some(("it has no files, or directories without", "use at least one"));
    }
    if tree.steps.is_empty() {
        return Some(("nothing is done to its files", "give at least one step"));
    }
    if tree.record.0 == 0 && (tree.size.0 > 0 || tree.steps.contains(&TreeStep::Append)) {
        return Some(("its record is empty", "give the size of a record"));
    }
    if tree.name.is_empty() || tree.name.contains('/') {
        return Some(("its name is no file name", "use letters, digits, and dashes"));
    }
    None
}

fn content(tree: &Tree) -> Option<Problem> {
    let Fill::Random { entropy, duplicates } = tree.fill else { return None };
    if !(0.0..=1.0).contains(&entropy) {
        return Some(("its share of random bytes is not a share", "use a number within 0..=1"));
    }
    if duplicates != 0.0 {
        return Some(("its files have no duplicates", "set duplicates to 0"));
    }
    None
}

/// Goes through the steps that need an open file, or none.
fn steps(steps: &[TreeStep]) -> Option<Problem> {
    // Of the open file, if any: whether it was created, and what was done to it.
    let mut open = false;
    let (mut created, mut written, mut appended) = (false, false, false);
    for step in steps {
        match step {
            TreeStep::Create | TreeStep::Open if open => {
                return Some(("it opens a second file", "close the first one before"));
            }
            TreeStep::Create | TreeStep::Open => {
                (open, written, appended) = (true, false, false);
                created = *step == TreeStep::Create;
            }
            TreeStep::Write
            | TreeStep::Append
            | TreeStep::Read
            | TreeStep::Fsync
            | TreeStep::Close
                if !open =>
            {
                return Some(("it uses a file that is not open", "create or open it before"));
            }
            TreeStep::Read if created => {
                return Some(("it reads a file that is open for writing", "open the file anew"));
            }
            // With O_APPEND, which holds for as long as a file is open, this would lengthen it.
            TreeStep::Write if appended => {
                return Some(("it overwrites a file that it appends to", "open the file anew"));
            }
            TreeStep::Append if written && !created => {
                return Some(("it appends to a file that it overwrites", "open the file anew"));
            }
            TreeStep::Write => written = true,
            TreeStep::Append => appended = true,
            TreeStep::Close => open = false,
            TreeStep::Read
            | TreeStep::Fsync
            | TreeStep::FsyncDirectory
            | TreeStep::Stat
            | TreeStep::Chmod
            | TreeStep::Rename
            | TreeStep::RenameBack
            | TreeStep::Link
            | TreeStep::UnlinkLink
            | TreeStep::Unlink
            | TreeStep::List => {}
        }
    }
    open.then_some(("its steps leave the file open", "end with close"))
}
