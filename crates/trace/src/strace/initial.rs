//! Files that existed before a logged program started, derived from its operations.
//!
//! A file existed if an operation found its name, and no earlier operation created the name,
//! removed it, or missed it. Its kind and size are those of the first status, or its size is the
//! furthest byte that was read before a write.
#![expect(clippy::wildcard_enum_match_arm, reason = "the other calls need no special handling")]

use std::collections::{HashMap, HashSet};

use model::phase::{FileCall, TraceOrder};

use super::arguments::Status;
use crate::{
    NO_OFFSET, NONE, Node, NodeKind, Op, Recording,
    effects::{CREATE, Compiler, DIRECTORY, TRUNCATE, follows},
    paths::Paths,
    space::ROOT,
};

/// Type of a file in a mode, and its values (include/uapi/linux/stat.h).
const KIND: u64 = 0o170_000;
const IS_DIRECTORY: u64 = 0o040_000;
const IS_LINK: u64 = 0o120_000;

/// Place of an operation: task, and index in the task.
type Place = (usize, usize);

/// Adds the files to a recording without nodes.
pub(super) fn files(
    recording: &mut Recording,
    statuses: &HashMap<Place, Status>,
    targets: &HashMap<Place, Vec<u8>>,
) {
    let mut places: Vec<Place> = Vec::with_capacity(recording.operations());
    for (task, own) in recording.tasks.iter().enumerate() {
        places.extend((0..own.ops.len()).map(|at| (task, at)));
    }
    let op = |(task, at): Place| &recording.tasks[task].ops[at];
    places.sort_by_key(|place| (op(*place).end(), op(*place).begin));
    let root = Node { kind: NodeKind::Directory, mode: 0o755, ..Node::default() };
    let mut files = Files {
        compiler: Compiler::new(recording, TraceOrder::Tasks),
        directories: directories(recording),
        names: Paths::default(),
        nodes: vec![root],
        node_of: HashMap::from([(ROOT, 0)]),
        missed: HashSet::new(),
        added: HashSet::new(),
        written: HashSet::new(),
        positions: HashMap::new(),
    };
    for place in places {
        files.apply(op(place), statuses.get(&place), targets.get(&place));
    }
    let Files { nodes, names, .. } = files;
    // Names of the nodes follow the paths of the operations.
    let known = u32::try_from(recording.paths.len()).unwrap_or(u32::MAX);
    let number = |own: u32| if own == NONE { NONE } else { own.saturating_add(known) };
    recording.paths.extend(names.all);
    let renumbered = nodes.into_iter().map(|node| Node {
        name: number(node.name),
        target: number(node.target),
        ..node
    });
    recording.nodes = renumbered.collect();
}

/// Descriptors that are used as directories.
fn directories(recording: &Recording) -> HashSet<u32> {
    let ops = recording.tasks.iter().flat_map(|task| &task.ops);
    let uses = |op: &&Op| op.call == FileCall::List || op.path != NONE;
    let first = ops.clone().filter(uses).map(|op| op.fd);
    let two = |op: &&Op| matches!(op.call, FileCall::Rename | FileCall::Link);
    first.chain(ops.filter(two).map(|op| op.fd2)).collect()
}

struct Files<'a> {
    compiler: Compiler<'a>,
    directories: HashSet<u32>,
    /// Names and targets of the nodes.
    names: Paths,
    nodes: Vec<Node>,
    /// Nodes of files of the simulation.
    node_of: HashMap<u32, usize>,
    /// Names that did not exist, as directory and component.
    missed: HashSet<(u32, u32)>,
    /// Directories and names of the nodes.
    added: HashSet<(u32, u32)>,
    /// Files that were changed.
    written: HashSet<u32>,
    positions: HashMap<u32, u64>,
}

impl Files<'_> {
    fn apply(&mut self, op: &Op, status: Option<&Status>, target: Option<&Vec<u8>>) {
        let two = matches!(op.call, FileCall::Rename | FileCall::Link);
        if op.path != NONE {
            self.find(op, (op.fd, op.path), status, target);
        }
        if two && op.path2 != NONE {
            // The second name is created, as that of a symbolic link.
            let second = Op { result: op.result, ..Op::new(FileCall::Symlink) };
            self.find(&second, (op.fd2, op.path2), None, None);
        }
        self.compiler.apply(op);
        let inode = match op.path {
            NONE => self.compiler.file(op.fd).map(|file| file.inode),
            _ => None,
        };
        if let Some(inode) = inode {
            self.content(op, inode, status);
        }
        if op.call == FileCall::Open && op.flags & TRUNCATE != 0 && op.succeeded() {
            self.written.extend(self.compiler.file(op.opened).map(|file| file.inode));
        }
    }

    /// Finds the file that an operation names, and adds it if it must have existed.
    fn find(
        &mut self,
        op: &Op,
        (fd, path): (u32, u32),
        status: Option<&Status>,
        target: Option<&Vec<u8>>,
    ) {
        let from = match fd {
            NONE => ROOT,
            _ => match self.compiler.file(fd) {
                Some(file) => file.inode,
                None => return,
            },
        };
        let path = self.compiler.path(path);
        if path.first() == Some(&b'/') {
            return;
        }
        let exists = op.result == -i64::from(libc::EEXIST);
        let creates = match op.call {
            FileCall::Open => op.flags & CREATE != 0,
            FileCall::Mkdir | FileCall::Symlink | FileCall::Mknod => true,
            _ => false,
        };
        // Each round adds one directory or the file itself.
        for _ in 0..path.len() + 1 {
            let walk = self.compiler.space.walk(from, &path, follows(op));
            if walk.leaves {
                return;
            }
            if let Some(inode) = walk.found {
                self.status(inode, status);
                return;
            }
            let Some(missing) = walk.seen.last().copied() else { return };
            let last = walk.last.is_some();
            if !op.succeeded() && !exists {
                if op.result == -i64::from(libc::ENOENT) {
                    self.missed.insert(missing);
                }
                return;
            }
            if self.missed.contains(&missing) || last && creates && !exists {
                return;
            }
            let kind = if last { self.kind(op, status, target) } else { NodeKind::Directory };
            self.add(missing, kind, status.filter(|_| last), target.filter(|_| last));
        }
    }

    fn kind(&self, op: &Op, status: Option<&Status>, target: Option<&Vec<u8>>) -> NodeKind {
        match status.map(|status| status.mode & KIND) {
            Some(IS_DIRECTORY) => return NodeKind::Directory,
            Some(IS_LINK) => return NodeKind::Symlink,
            Some(_) => return NodeKind::File,
            None => {}
        }
        let directory = match op.call {
            FileCall::Open => op.flags & DIRECTORY != 0 || self.directories.contains(&op.opened),
            FileCall::Chdir | FileCall::Rmdir | FileCall::Mkdir => true,
            _ => false,
        };
        match (directory, target) {
            (true, _) => NodeKind::Directory,
            (false, Some(_)) => NodeKind::Symlink,
            (false, None) => NodeKind::File,
        }
    }

    fn add(
        &mut self,
        (directory, component): (u32, u32),
        kind: NodeKind,
        status: Option<&Status>,
        target: Option<&Vec<u8>>,
    ) {
        // A link whose target is unknown.
        let unknown = b"unknown".to_vec();
        let target = (kind == NodeKind::Symlink).then(|| target.unwrap_or(&unknown));
        let space = &mut self.compiler.space;
        let inode = match target {
            Some(target) => space.add_link(target),
            None => space.add(kind),
        };
        space.enter(directory, component, inode);
        let Some(parent) = self.node_of.get(&directory).copied() else { return };
        // The former file of this name was removed, and the creation of this one is not in the log.
        if !self.added.insert((directory, component)) {
            return;
        }
        let mode = if kind == NodeKind::Directory { 0o755 } else { 0o644 };
        let mode = status.map_or(mode, |status| u32::try_from(status.mode & 0o777).unwrap_or(0));
        let name = space.name(component).to_vec();
        self.node_of.insert(inode, self.nodes.len());
        self.nodes.push(Node {
            parent: u32::try_from(parent).unwrap_or(u32::MAX),
            name: self.names.number(&name),
            kind,
            size: 0,
            mode,
            same: NONE,
            target: target.map_or(NONE, |target| self.names.number(target)),
        });
        self.status(inode, status);
    }

    /// Size of a file that was not changed.
    fn status(&mut self, inode: u32, status: Option<&Status>) {
        if let Some(status) = status {
            self.size(inode, status.size);
        }
    }

    fn size(&mut self, inode: u32, size: u64) {
        let node = self.node_of.get(&inode).map(|at| &mut self.nodes[*at]);
        let node = node.filter(|node| node.kind == NodeKind::File);
        if let Some(node) = node.filter(|_| !self.written.contains(&inode)) {
            node.size = node.size.max(size.min(i64::MAX.cast_unsigned()));
        }
    }

    /// Operation on a descriptor.
    fn content(&mut self, op: &Op, inode: u32, status: Option<&Status>) {
        if !op.succeeded() {
            return;
        }
        self.status(inode, status);
        let moved = op.result.unsigned_abs();
        let position = self.compiler.file(op.fd).map_or(op.fd, |file| file.position);
        match op.call {
            FileCall::Read => {
                let at = self.positions.entry(position).or_default();
                *at = at.saturating_add(moved);
                let end = *at;
                self.size(inode, end);
            }
            FileCall::Seek => {
                self.positions.insert(position, moved);
            }
            FileCall::Pread if moved > 0 => self.size(inode, op.offset.saturating_add(moved)),
            FileCall::Write | FileCall::Pwrite | FileCall::Ftruncate | FileCall::Fallocate => {
                self.written.insert(inode);
            }
            FileCall::CopyRange | FileCall::Clone | FileCall::Sendfile => {
                let read = if op.call == FileCall::Clone { op.size } else { moved };
                if op.call != FileCall::Clone && op.offset == NO_OFFSET {
                    let at = self.positions.entry(position).or_default();
                    *at = at.saturating_add(read);
                    let end = *at;
                    self.size(inode, end);
                } else if read > 0 {
                    self.size(inode, op.offset.saturating_add(read));
                }
                self.written.extend(self.compiler.file(op.fd2).map(|file| file.inode));
            }
            _ => {}
        }
    }
}
