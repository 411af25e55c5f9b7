//! Simulated effects of operations: the names and files that they change, and the resources that
//! they use.
#![expect(clippy::wildcard_enum_match_arm, reason = "the other calls need no special handling")]

use std::collections::HashMap;

use model::phase::{FileCall, TraceOrder};

use crate::{
    NO_FOLLOW, NONE, NodeKind, Op, Recording,
    order::Use,
    space::{ROOT, Space, Walk},
};

/// Resources that operations use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Resource {
    /// Name in a directory.
    Name(u32, u32),
    /// Names of a directory.
    Names(u32),
    /// Size of a file.
    Size(u32),
    /// Written data of a file that is not synced.
    Dirty(u32),
    /// Mode, owner, and extended attributes of a file.
    Attributes(u32),
    /// Locks of a file.
    Locks(u32),
    /// Descriptor.
    Descriptor(u32),
    /// Position of an open file.
    Position(u32),
    /// Everything ([`TraceOrder::Recorded`]).
    World,
}

/// Open file of the simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) inode: u32,
    /// Number of the descriptor that opened it; duplicates share the position.
    pub(crate) position: u32,
}

/// Effect of an operation: its uses of resources, and its paths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Effect {
    first: usize,
    count: usize,
    /// See [`crate::Step::straight`].
    pub(crate) straight: u32,
    pub(crate) straight2: u32,
    /// True if the operation is not replayed.
    pub(crate) leaves: bool,
}

/// Simulation of the operations.
pub(crate) struct Compiler<'a> {
    recording: &'a Recording,
    order: TraceOrder,
    pub(crate) space: Space,
    open: HashMap<u32, Open>,
    resources: HashMap<Resource, u32>,
    uses: Vec<(u32, Use)>,
    /// Paths of the recording, and paths that were added.
    pub(crate) paths: Vec<Vec<u8>>,
    straight: HashMap<Vec<u8>, u32>,
}

/// `O_*` flags (include/uapi/asm-generic/fcntl.h), which are equal on all supported machines.
pub(crate) const CREATE: u64 = 0o100;
pub(crate) const EXCLUSIVE: u64 = 0o200;
pub(crate) const TRUNCATE: u64 = 0o1000;
pub(crate) const DIRECTORY: u64 = 0o200_000;
const OPEN_NO_FOLLOW: u64 = 0o400_000;
pub(crate) const TEMPORARY: u64 = 0o20_000_000;
/// `RENAME_EXCHANGE`.
const EXCHANGE: u64 = 2;

impl<'a> Compiler<'a> {
    pub(crate) fn new(recording: &'a Recording, order: TraceOrder) -> Self {
        Self {
            recording,
            order,
            space: Space::new(recording),
            open: HashMap::new(),
            resources: HashMap::new(),
            uses: Vec::new(),
            paths: recording.paths.clone(),
            straight: HashMap::new(),
        }
    }

    /// Path with this number.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn path(&self, number: u32) -> Vec<u8> {
        self.recording.path(number).to_vec()
    }

    /// Open file of a descriptor. A descriptor that was closed keeps its file.
    pub(crate) fn file(&self, descriptor: u32) -> Option<Open> {
        self.open.get(&descriptor).copied()
    }

    /// Number of resources.
    pub(crate) fn resources(&self) -> usize {
        self.resources.len()
    }

    /// Resources that an operation uses.
    pub(crate) fn uses_of(&self, effect: Effect) -> &[(u32, Use)] {
        &self.uses[effect.first..effect.first + effect.count]
    }
}

impl Compiler<'_> {
    fn uses(&mut self, resource: Resource, how: Use) {
        let resource = match self.order {
            TraceOrder::Resources => resource,
            TraceOrder::Recorded => Resource::World,
            TraceOrder::Tasks => return,
        };
        let how = if resource == Resource::World { Use::Change } else { how };
        let next = u32::try_from(self.resources.len()).unwrap_or(u32::MAX);
        let number = *self.resources.entry(resource).or_insert(next);
        self.uses.push((number, how));
    }

    /// File of a descriptor, whose use is noted.
    fn descriptor(&mut self, number: u32, how: Use) -> Option<Open> {
        if number == NONE {
            return None;
        }
        self.uses(Resource::Descriptor(number), how);
        self.open.get(&number).copied()
    }

    /// Resolves a path of an operation and notes the names that it uses.
    fn walk(&mut self, directory: u32, path: u32, follow: bool, trim: bool) -> Option<Walk> {
        if path == NONE {
            return None;
        }
        let from = match directory {
            NONE => ROOT,
            _ => self.descriptor(directory, Use::Read)?.inode,
        };
        let mut path = self.recording.path(path).to_vec();
        while trim && path.len() > 1 && path.last() == Some(&b'/') {
            path.pop();
        }
        let mut walk = self.space.walk(from, &path, follow);
        walk.leaves |= path.first() == Some(&b'/');
        for (directory, component) in walk.seen.clone() {
            self.uses(Resource::Name(directory, component), Use::Read);
        }
        Some(walk)
    }

    /// Number of the path without links, if the walk needs one; `None` if there is no such path.
    fn straight(&mut self, walk: &Walk) -> Option<u32> {
        if !walk.turns {
            return Some(NONE);
        }
        let path = self.space.straight(walk)?;
        if let Some(number) = self.straight.get(&path) {
            return Some(*number);
        }
        self.paths.push(path.clone());
        let number = u32::try_from(self.paths.len()).unwrap_or(u32::MAX);
        self.straight.insert(path, number);
        Some(number)
    }

    /// Notes a change of the name that a walk ended at.
    fn changes_name(&mut self, walk: &Walk) {
        if let Some(last) = walk.last {
            self.uses(Resource::Name(walk.directory, last), Use::Change);
            self.uses(Resource::Names(walk.directory), Use::Commute);
        }
    }

    /// Applies an operation to the name space, and returns the resources that it uses.
    pub(crate) fn apply(&mut self, op: &Op) -> Effect {
        let first = self.uses.len();
        let mut effect = Effect { first, ..Effect::default() };
        let trim = matches!(op.call, FileCall::Mkdir | FileCall::Rmdir | FileCall::Rename);
        let walk = self.walk(op.fd, op.path, follows(op), trim);
        let two = matches!(op.call, FileCall::Rename | FileCall::Link);
        let second = if two { self.walk(op.fd2, op.path2, false, trim) } else { None };
        if let Some(walk) = &walk {
            let straight = self.straight(walk);
            effect.leaves |= walk.leaves || straight.is_none();
            effect.straight = straight.unwrap_or(NONE);
        }
        if let Some(walk) = &second {
            let straight = self.straight(walk);
            effect.leaves |= walk.leaves || straight.is_none();
            effect.straight2 = straight.unwrap_or(NONE);
        }
        match op.call {
            FileCall::Symlink => self.symlink(op, walk.as_ref()),
            FileCall::Mkdir => self.creates(op, walk.as_ref(), NodeKind::Directory),
            FileCall::Mknod => self.creates(op, walk.as_ref(), NodeKind::of_type(op.flags)),
            FileCall::Unlink | FileCall::Rmdir => self.unlink(op, walk.as_ref()),
            FileCall::Rename => self.rename(op, walk.as_ref(), second.as_ref()),
            FileCall::Link => self.link(op, walk.as_ref(), second.as_ref()),
            FileCall::Open | FileCall::Chdir => self.opens(op, walk.as_ref()),
            FileCall::Close | FileCall::Release => {
                self.descriptor(op.fd, Use::Change);
            }
            FileCall::Dup => {
                if let Some(open) = self.descriptor(op.fd, Use::Read) {
                    self.bind(op, open.inode, Some(open.position));
                }
            }
            _ => {
                let found = walk.as_ref().and_then(|walk| walk.found);
                let inode = match op.path {
                    NONE => self.descriptor(op.fd, Use::Read).map(|open| open.inode),
                    _ => found,
                };
                if let Some(inode) = inode {
                    self.content(op, inode);
                }
            }
        }
        // Attributes of the system have a meaning that random data does not have.
        let sets = matches!(op.call, FileCall::Setxattr | FileCall::Removexattr);
        effect.leaves |= sets && !self.recording.path(op.path2).starts_with(b"user.");
        effect.count = self.uses.len() - first;
        effect
    }

    fn bind(&mut self, op: &Op, inode: u32, position: Option<u32>) {
        if op.opened != NONE {
            self.uses(Resource::Descriptor(op.opened), Use::Change);
            self.open.insert(op.opened, Open { inode, position: position.unwrap_or(op.opened) });
        }
    }

    fn opens(&mut self, op: &Op, walk: Option<&Walk>) {
        let Some(walk) = walk else {
            // A descriptor: fchdir(2), or an open of /proc/self/fd.
            if let Some(open) = self.descriptor(op.fd, Use::Read) {
                let inode = open.inode;
                self.uses(Resource::Attributes(inode), Use::Read);
                self.bind(op, inode, None);
            }
            return;
        };
        let opens = op.call == FileCall::Open;
        if opens && op.flags & TEMPORARY == TEMPORARY {
            let inode = self.space.add(NodeKind::File);
            self.space.inode_mut(inode).mode = permissions(op);
            self.bind(op, inode, None);
            return;
        }
        let inode = match walk.found {
            Some(inode) => inode,
            None if op.succeeded() => {
                let directory = !opens || op.flags & DIRECTORY != 0;
                let kind = if directory { NodeKind::Directory } else { NodeKind::File };
                let inode = self.space.add(kind);
                self.space.inode_mut(inode).mode = if directory { 0o755 } else { permissions(op) };
                if let Some(last) = walk.last {
                    self.space.enter(walk.directory, last, inode);
                }
                self.changes_name(walk);
                inode
            }
            None => {
                if opens && op.flags & CREATE != 0 {
                    self.changes_name(walk);
                }
                return;
            }
        };
        self.uses(Resource::Attributes(inode), Use::Read);
        if opens && op.flags & TRUNCATE != 0 && op.succeeded() {
            let own = self.space.inode_mut(inode);
            (own.size, own.length) = (0, 0);
            self.uses(Resource::Size(inode), Use::Change);
        }
        if op.succeeded() {
            self.bind(op, inode, None);
        }
    }

    fn symlink(&mut self, op: &Op, walk: Option<&Walk>) {
        let Some(walk) = walk else { return };
        self.changes_name(walk);
        if let (true, Some(last)) = (op.succeeded(), walk.last) {
            let target = self.recording.path(op.path2).to_vec();
            let inode = self.space.add_link(&target);
            self.space.enter(walk.directory, last, inode);
        }
    }

    fn creates(&mut self, op: &Op, walk: Option<&Walk>, kind: NodeKind) {
        let Some(walk) = walk else { return };
        self.changes_name(walk);
        if let (true, Some(last)) = (op.succeeded(), walk.last) {
            let inode = self.space.add(kind);
            self.space.inode_mut(inode).mode = permissions(op);
            self.space.enter(walk.directory, last, inode);
        }
    }

    fn unlink(&mut self, op: &Op, walk: Option<&Walk>) {
        let Some(walk) = walk else { return };
        self.changes_name(walk);
        if let Some(inode) = walk.found {
            if op.call == FileCall::Rmdir {
                self.uses(Resource::Names(inode), Use::Change);
            }
            self.uses(Resource::Attributes(inode), Use::Read);
        }
        if let (true, Some(last)) = (op.succeeded(), walk.last) {
            self.space.remove(walk.directory, last);
        }
    }

    fn rename(&mut self, op: &Op, from: Option<&Walk>, to: Option<&Walk>) {
        let (Some(from), Some(to)) = (from, to) else { return };
        self.changes_name(from);
        self.changes_name(to);
        if let Some(replaced) = to.found {
            self.uses(Resource::Names(replaced), Use::Change);
        }
        let (Some(old), Some(new), Some(inode)) = (from.last, to.last, from.found) else { return };
        if !op.succeeded() || to.found == Some(inode) {
            return;
        }
        self.space.remove(from.directory, old);
        self.space.enter(to.directory, new, inode);
        if let (Some(other), true) = (to.found, op.flags & EXCHANGE != 0) {
            self.space.enter(from.directory, old, other);
        }
    }

    fn link(&mut self, op: &Op, from: Option<&Walk>, to: Option<&Walk>) {
        let Some(to) = to else { return };
        let inode = match from {
            Some(walk) => walk.found,
            None => self.descriptor(op.fd, Use::Read).map(|open| open.inode),
        };
        self.changes_name(to);
        if let (true, Some(inode), Some(last)) = (op.succeeded(), inode, to.last) {
            self.uses(Resource::Attributes(inode), Use::Read);
            self.space.enter(to.directory, last, inode);
        }
    }

    /// Uses of the content and attributes of a file.
    fn content(&mut self, op: &Op, inode: u32) {
        let moved = u64::try_from(op.result).unwrap_or(0);
        let position = self.open.get(&op.fd).map(|open| open.position);
        if let (Some(position), true) = (position, op.call.uses_position() && op.path == NONE) {
            self.uses(Resource::Position(position), Use::Change);
        }
        match op.call {
            FileCall::Read
            | FileCall::Pread
            | FileCall::Stat
            | FileCall::Fstat
            | FileCall::Seek
            | FileCall::Mmap => self.uses(Resource::Size(inode), Use::Read),
            FileCall::Write => self.writes(inode, None),
            FileCall::Pwrite => self.writes(inode, Some(op.offset.saturating_add(moved))),
            FileCall::CopyRange | FileCall::Sendfile | FileCall::Clone => {
                self.uses(Resource::Size(inode), Use::Read);
                if let Some(to) = self.descriptor(op.fd2, Use::Read) {
                    if op.call != FileCall::Clone {
                        self.uses(Resource::Position(to.position), Use::Change);
                    }
                    self.writes(to.inode, None);
                }
            }
            FileCall::Truncate | FileCall::Ftruncate => {
                if op.succeeded() {
                    let own = self.space.inode_mut(inode);
                    (own.size, own.length) = (op.size, op.size);
                }
                self.uses(Resource::Size(inode), Use::Change);
                self.uses(Resource::Dirty(inode), Use::Commute);
            }
            FileCall::Fallocate => {
                self.uses(Resource::Size(inode), Use::Change);
                self.uses(Resource::Dirty(inode), Use::Commute);
            }
            FileCall::Fsync | FileCall::Fdatasync | FileCall::SyncRange => {
                self.uses(Resource::Dirty(inode), Use::Read);
            }
            FileCall::List => self.uses(Resource::Names(inode), Use::Read),
            FileCall::Chmod
            | FileCall::Fchmod
            | FileCall::Chown
            | FileCall::Utimens
            | FileCall::Setxattr
            | FileCall::Removexattr => {
                let sets = matches!(op.call, FileCall::Chmod | FileCall::Fchmod);
                if sets && op.succeeded() {
                    self.space.inode_mut(inode).mode = permissions(op);
                }
                self.uses(Resource::Attributes(inode), Use::Change);
            }
            FileCall::Access | FileCall::Getxattr | FileCall::Listxattr => {
                self.uses(Resource::Attributes(inode), Use::Read);
            }
            FileCall::Flock | FileCall::Lock => self.uses(Resource::Locks(inode), Use::Change),
            _ => {}
        }
    }

    /// Uses of a write that ends at this offset; `None`: unknown.
    fn writes(&mut self, inode: u32, end: Option<u64>) {
        let size = &mut self.space.inode_mut(inode).size;
        let extends = end.is_none_or(|end| end > *size);
        *size = (*size).max(end.unwrap_or(0));
        // The result of an append, and of a write at the position, depends on earlier writes.
        let how = if end.is_none() { Use::Change } else { Use::Commute };
        if extends {
            self.uses(Resource::Size(inode), how);
        }
        self.uses(Resource::Dirty(inode), Use::Commute);
    }
}

/// Permission bits that a call sets.
fn permissions(op: &Op) -> u32 {
    u32::try_from(op.offset & 0o7777).unwrap_or(0)
}

/// True if an operation follows a symbolic link as the last component of its path.
pub(crate) fn follows(op: &Op) -> bool {
    match op.call {
        FileCall::Open => {
            let exclusive = CREATE | EXCLUSIVE;
            op.flags & OPEN_NO_FOLLOW == 0 && op.flags & exclusive != exclusive
        }
        FileCall::Unlink
        | FileCall::Rmdir
        | FileCall::Rename
        | FileCall::Symlink
        | FileCall::Readlink
        | FileCall::Mkdir
        | FileCall::Mknod => false,
        // AT_SYMLINK_FOLLOW is the exception here.
        FileCall::Link => op.flags & NO_FOLLOW == 0,
        FileCall::Chdir => true,
        _ => op.flags & NO_FOLLOW == 0,
    }
}
