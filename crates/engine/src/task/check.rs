//! Refuses tasks that contradict themselves, before anything is touched.

use model::phase::{At, Deed, Method, Spot, Task};

use crate::EngineError;

/// Makes sure that the task can be done.
pub(super) fn check(task: &Task, elsewhere: bool) -> Result<(), EngineError> {
    for spot in spots(&task.deed).into_iter().flatten() {
        named(&spot.name)?;
        if spot.at == At::Elsewhere && !elsewhere {
            return refused(
                format!("it uses `{}` in a second place, and there is none", spot.name),
                "give the storage of the plan a directory on another filesystem (elsewhere)",
            );
        }
    }
    let unbuffered = task.method == Method::Native && task.buffer.0 == 0;
    match empty(&task.deed).or_else(|| unbuffered.then_some("bytes in its buffer")) {
        Some(what) => refused(format!("it has no {what}"), "give at least 1"),
        None => Ok(()),
    }
}

/// What a deed needs at least one of, and has none.
fn empty(deed: &Deed) -> Option<&'static str> {
    let none = [
        (matches!(deed, Deed::Copy { times: 0, .. }), "copies"),
        (matches!(deed, Deed::Archive { files: 0, .. }), "files"),
        (matches!(deed, Deed::Split { piece, .. } if piece.0 == 0), "bytes in a piece"),
    ];
    none.into_iter().find_map(|(none, what)| none.then_some(what))
}

fn refused(problem: String, cure: &'static str) -> Result<(), EngineError> {
    Err(EngineError::Task { problem, cure })
}

/// Names lead down from their place, and nowhere else.
fn named(name: &str) -> Result<(), EngineError> {
    let plain = |part: &str| !matches!(part, "" | "." | "..") && !part.contains('\0');
    if name.split('/').all(plain) {
        return Ok(());
    }
    refused(
        format!("`{}` is no name below a directory", name.escape_debug()),
        "use components separated by single slashes, none of them `.` or `..`",
    )
}

/// The files and directories a deed names.
fn spots(deed: &Deed) -> [Option<&Spot>; 2] {
    match deed {
        Deed::Touch { directory, .. }
        | Deed::MakeDirectories { directory, .. }
        | Deed::Find { directory }
        | Deed::RemoveTree { directory } => [Some(directory), None],
        Deed::Copy { from, to, .. } | Deed::CopyTree { from, to } => [Some(from), Some(to)],
        Deed::Unpack { archive, into } => [Some(archive), Some(into)],
        Deed::Pack { directory, archive, .. } => [Some(directory), Some(archive)],
        Deed::Zeros { file, .. } | Deed::Random { file, .. } | Deed::Read { file } => {
            [Some(file), None]
        }
        Deed::Split { file, into, .. } => [Some(file), Some(into)],
        Deed::Archive { archive, .. } | Deed::Fetch { archive, .. } => [Some(archive), None],
    }
}

/// What a deed makes or removes; `None` if it only reads.
pub(super) fn changed(deed: &Deed) -> Option<&Spot> {
    match deed {
        Deed::Find { .. } | Deed::Read { .. } => None,
        Deed::Touch { directory, .. }
        | Deed::MakeDirectories { directory, .. }
        | Deed::RemoveTree { directory } => Some(directory),
        Deed::Copy { to, .. } | Deed::CopyTree { to, .. } => Some(to),
        Deed::Unpack { into, .. } | Deed::Split { into, .. } => Some(into),
        Deed::Pack { archive, .. }
        | Deed::Archive { archive, .. }
        | Deed::Fetch { archive, .. } => Some(archive),
        Deed::Zeros { file, .. } | Deed::Random { file, .. } => Some(file),
    }
}

/// Whether a deed is only there to prepare others; it is done here whatever the method.
pub(super) fn prepares(deed: &Deed) -> bool {
    matches!(deed, Deed::Random { .. } | Deed::Archive { .. } | Deed::Fetch { .. })
}
