//! Rejects invalid tasks before anything is changed.

use model::phase::{Method, Task, TaskOperation, TaskPath, TaskRoot};

use crate::EngineError;

/// Checks that the task is valid.
pub(super) fn check(task: &Task, external: bool) -> Result<(), EngineError> {
    for task_path in paths(&task.operation).into_iter().flatten() {
        check_name(&task_path.name)?;
        if task_path.root == TaskRoot::External && !external {
            return refused(
                format!("`{}` needs an external directory, but there is none", task_path.name),
                "set external_directory of the storage to a directory on another filesystem",
            );
        }
    }
    let unbuffered = task.method == Method::Native && task.block_size.0 == 0;
    match empty(&task.operation).or_else(|| unbuffered.then_some("block_size")) {
        Some(what) => refused(format!("{what} is 0"), "use at least 1"),
        None => Ok(()),
    }
}

/// Count of an operation that must be at least 1, but is 0.
fn empty(operation: &TaskOperation) -> Option<&'static str> {
    let none = [
        (matches!(operation, TaskOperation::Copy { times: 0, .. }), "copies"),
        (matches!(operation, TaskOperation::Archive { files: 0, .. }), "files"),
        (
            matches!(operation, TaskOperation::Split { piece, .. } if piece.0 == 0),
            "split_file_size",
        ),
    ];
    none.into_iter().find_map(|(none, what)| none.then_some(what))
}

fn refused(problem: String, hint: &'static str) -> Result<(), EngineError> {
    Err(EngineError::Task { problem, hint })
}

/// Checks that a name stays below its root directory.
fn check_name(name: &str) -> Result<(), EngineError> {
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    if name.split('/').all(plain) {
        return Ok(());
    }
    refused(
        format!("`{}` is not a valid relative path", name.escape_debug()),
        "use components separated by single slashes, none of them `.` or `..`",
    )
}

/// Files and directories of an operation.
fn paths(operation: &TaskOperation) -> [Option<&TaskPath>; 2] {
    match operation {
        TaskOperation::Touch { directory, .. }
        | TaskOperation::MakeDirectories { directory, .. }
        | TaskOperation::Find { directory }
        | TaskOperation::RemoveTree { directory } => [Some(directory), None],
        TaskOperation::Copy { from, to, .. } | TaskOperation::CopyTree { from, to } => {
            [Some(from), Some(to)]
        }
        TaskOperation::Unpack { archive, into } => [Some(archive), Some(into)],
        TaskOperation::Pack { directory, archive, .. } => [Some(directory), Some(archive)],
        TaskOperation::Zeros { file, .. }
        | TaskOperation::Random { file, .. }
        | TaskOperation::Read { file } => [Some(file), None],
        TaskOperation::Split { file, into, .. } => [Some(file), Some(into)],
        TaskOperation::Archive { archive, .. } | TaskOperation::Fetch { archive, .. } => {
            [Some(archive), None]
        }
    }
}

/// File or directory that an operation creates or removes; `None` if it only reads.
pub(super) fn changed(operation: &TaskOperation) -> Option<&TaskPath> {
    match operation {
        TaskOperation::Find { .. } | TaskOperation::Read { .. } => None,
        TaskOperation::Touch { directory, .. }
        | TaskOperation::MakeDirectories { directory, .. }
        | TaskOperation::RemoveTree { directory } => Some(directory),
        TaskOperation::Copy { to, .. } | TaskOperation::CopyTree { to, .. } => Some(to),
        TaskOperation::Unpack { into, .. } | TaskOperation::Split { into, .. } => Some(into),
        TaskOperation::Pack { archive, .. }
        | TaskOperation::Archive { archive, .. }
        | TaskOperation::Fetch { archive, .. } => Some(archive),
        TaskOperation::Zeros { file, .. } | TaskOperation::Random { file, .. } => Some(file),
    }
}

/// True if an operation only prepares others; it is native with any method.
pub(super) fn is_preparation(operation: &TaskOperation) -> bool {
    matches!(
        operation,
        TaskOperation::Random { .. } | TaskOperation::Archive { .. } | TaskOperation::Fetch { .. }
    )
}
