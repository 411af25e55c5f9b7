//! Rules for the content of a recording.
//!
//! - A path is not empty, has no NUL byte, and has at most 4095 bytes.
//! - The name of a node is one component. Its directory is an earlier node. No directory has a name
//!   twice.
//! - The operations of a task are in order and do not overlap.
//! - Descriptors are numbered from 1 without gaps larger than the number of operations.
//! - Transfers have at most 1 GiB.
//! - rename(2), link(2), and symlink(2) have a second path, and rename(2) has a first one.
//! - mknod(2) creates regular files, FIFOs, and sockets, no devices.

use std::collections::HashSet;

use model::phase::FileCall;

use crate::{NODE_TYPES, NONE, Node, NodeKind, Op, Recording, TraceError};

/// Maximum length of a path: `PATH_MAX` without the NUL byte.
pub(crate) const PATH: usize = 4095;

/// Maximum length of a component.
pub(crate) const NAME: usize = 255;

/// Maximum bytes of a transfer.
pub(crate) const TRANSFER: u64 = 1 << 30;

/// Maximum size of a file: 8 EiB - 1.
const SIZE: u64 = i64::MAX.cast_unsigned();

/// Largest time: 146 years.
const TIME: u64 = 1 << 62;

/// Smallest result: error numbers are at most 4095.
const ERRORS: i64 = -4095;

/// Checks a recording.
///
/// # Errors
/// [`TraceError::Damaged`] with the first violated rule.
pub(crate) fn check(recording: &Recording) -> Result<(), TraceError> {
    for (index, path) in recording.paths.iter().enumerate() {
        if path.is_empty() || path.len() > PATH || path.contains(&0) {
            return Err(damaged(format!("path {} is not a path", index + 1)));
        }
    }
    nodes(recording)?;
    let tasks = recording.tasks.len() as u64;
    let most = recording.operations() as u64;
    for (index, task) in recording.tasks.iter().enumerate() {
        if u64::from(task.parent) > index as u64 || u64::from(task.process) > tasks {
            return Err(damaged(format!("task {} has an invalid parent", index + 1)));
        }
        let mut ended = 0;
        for (place, op) in task.ops.iter().enumerate() {
            let wrong =
                |what| damaged(format!("operation {} of task {}: {what}", place + 1, index + 1));
            if op.begin < ended || op.begin > TIME || op.length > TIME || op.think > TIME {
                return Err(wrong("its time is invalid"));
            }
            ended = op.end();
            numbers(op, recording.paths.len() as u64, most).map_err(wrong)?;
        }
    }
    Ok(())
}

/// Checks the numbers of an operation.
fn numbers(op: &Op, paths: u64, descriptors: u64) -> Result<(), &'static str> {
    if u64::from(op.path.max(op.path2)) > paths {
        return Err("it has an unknown path");
    }
    if u64::from(op.fd.max(op.fd2).max(op.opened)) > descriptors {
        return Err("it has an unknown descriptor");
    }
    if op.result < ERRORS {
        return Err("its result is invalid");
    }
    let two = matches!(op.call, FileCall::Rename | FileCall::Link | FileCall::Symlink);
    if two && op.path2 == NONE {
        return Err("it has no second path");
    }
    if op.call == FileCall::Rename && op.path == NONE {
        return Err("it has no first path");
    }
    if op.call == FileCall::Mknod && !NODE_TYPES.contains(&op.flags) {
        return Err("it creates neither a regular file nor a FIFO nor a socket");
    }
    let transfers = matches!(
        op.call,
        FileCall::Read
            | FileCall::Pread
            | FileCall::Write
            | FileCall::Pwrite
            | FileCall::Setxattr
            | FileCall::Getxattr
            | FileCall::Listxattr
            | FileCall::Readlink
            | FileCall::List
    );
    if transfers && op.size > TRANSFER {
        return Err("it transfers more than 1 GiB");
    }
    Ok(())
}

fn nodes(recording: &Recording) -> Result<(), TraceError> {
    let mut names = HashSet::new();
    for (index, node) in recording.nodes.iter().enumerate() {
        let wrong = |what| Err(damaged(format!("file {}: {what}", index + 1)));
        let Node { parent, name, kind, size, mode, same, target } = *node;
        if index == 0 {
            match (kind, name) {
                (NodeKind::Directory, NONE) => continue,
                _ => return wrong("the root is not a directory"),
            }
        }
        let directory = usize::try_from(parent).ok().filter(|parent| *parent < index);
        let directory = directory.and_then(|parent| recording.nodes.get(parent));
        if directory.is_none_or(|node| node.kind != NodeKind::Directory) {
            return wrong("its parent is not an earlier directory");
        }
        let component = recording.path(name);
        let dots = component == b"." || component == b"..";
        if component.is_empty() || component.len() > NAME || component.contains(&b'/') || dots {
            return wrong("its name is not a component of a path");
        }
        if !names.insert((parent, component)) {
            return wrong("its name occurs twice");
        }
        if size > SIZE || mode > 0o7777 {
            return wrong("its size or mode is out of range");
        }
        let first = usize::try_from(same).unwrap_or(usize::MAX);
        if same != NONE && (first > index || recording.nodes[first - 1].kind != kind) {
            return wrong("its hard link is not an earlier file");
        }
        if (kind == NodeKind::Symlink) != (target != NONE) || recording.path(target).len() > PATH {
            return wrong("its target is invalid");
        }
        if u64::from(target) > recording.paths.len() as u64 {
            return wrong("its target is unknown");
        }
    }
    Ok(())
}

fn damaged(what: String) -> TraceError {
    TraceError::Damaged(what)
}
