//! Files below the root before the program starts.

use std::{
    collections::HashMap,
    fs, io,
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{FileTypeExt, MetadataExt},
    },
    path::Path,
};

use crate::{NONE, Node, NodeKind, paths::Paths};

/// Nodes of a directory and everything below it, on its filesystem only; parents first, names in
/// order.
///
/// # Errors
/// If a directory cannot be read.
pub(super) fn scan(root: &Path, paths: &mut Paths) -> io::Result<Vec<Node>> {
    let top = fs::metadata(root)?;
    let mut nodes =
        vec![Node { kind: NodeKind::Directory, mode: top.mode() & 0o7777, ..Node::default() }];
    let mut links: HashMap<u64, u32> = HashMap::new();
    let mut directories = vec![(root.to_owned(), 0u32)];
    while let Some((directory, parent)) = directories.pop() {
        let mut entries = fs::read_dir(&directory)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let status = path.symlink_metadata()?;
            if status.dev() != top.dev() {
                continue;
            }
            let kind = status.file_type();
            let number = u32::try_from(nodes.len() + 1).unwrap_or(u32::MAX);
            let mut node = Node {
                parent,
                name: paths.number(entry.file_name().as_bytes()),
                kind: NodeKind::File,
                size: status.len(),
                mode: status.mode() & 0o7777,
                same: NONE,
                target: NONE,
            };
            if kind.is_dir() {
                node.kind = NodeKind::Directory;
                directories.push((path, number - 1));
            } else if kind.is_symlink() {
                node.kind = NodeKind::Symlink;
                node.target = paths.number(&fs::read_link(&path)?.into_os_string().into_vec());
            } else if kind.is_fifo() {
                node.kind = NodeKind::Fifo;
            } else if kind.is_socket() {
                node.kind = NodeKind::Socket;
            } else if !kind.is_file() {
                node.kind = NodeKind::Other;
            }
            if !kind.is_dir() && status.nlink() > 1 {
                node.same = *links.entry(status.ino()).or_insert(NONE);
                if node.same == NONE {
                    links.insert(status.ino(), number);
                }
            }
            nodes.push(node);
        }
    }
    Ok(nodes)
}
