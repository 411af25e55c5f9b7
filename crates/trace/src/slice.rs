//! Part of a recording.
//!
//! The operations before the part are simulated. The result starts with the files that exist then,
//! with their names, sizes, modes, and links. A task in front opens the files that were open, and
//! seeks to their positions. Files that were open but had no name are created, and removed at once.
//!
//! Not kept are extended attributes and locks from before the part, and the position in a listing.

use std::collections::{BTreeSet, HashMap};

use model::phase::FileCall;

use crate::{
    NONE, Node, NodeKind, Op, Recording, Task,
    check::{NAME, PATH},
    effects::{CREATE, DIRECTORY, EXCLUSIVE, TEMPORARY, TRUNCATE},
    paths::Paths,
    simulation::Simulation,
    space::ROOT,
};

/// Operations of a recording that begin at `from` or later, and before `to`, in nanoseconds since
/// the recording started. Operations on files whose opening was not recorded are left out.
pub fn slice(recording: &Recording, from: u64, to: u64) -> Recording {
    let scale = recording.think_scale();
    let within = |op: &Op| (from..to).contains(&op.begin);
    let before = simulate(recording, from);
    let mut part = Part { before: &before, paths: Paths::default(), numbers: HashMap::new() };
    let (nodes, names) = part.nodes();
    let mut own: Vec<&Op> =
        recording.tasks.iter().flat_map(|task| &task.ops).filter(|op| within(op)).collect();
    own.sort_by_key(|op| (op.end(), op.begin));
    let used = own.iter().flat_map(|op| [op.fd, op.fd2]).filter(|fd| *fd != NONE).collect();
    let mut opens = part.opens(recording, &used, &names);
    for (begin, op) in (0u64..).zip(&mut opens) {
        op.begin = begin;
    }
    own.into_iter().for_each(|op| part.number(op));
    let shift = opens.len() as u64;
    let mut tasks: Vec<Task> = Vec::with_capacity(recording.tasks.len() + 1);
    for task in &recording.tasks {
        let mut own = Task { ops: Vec::new(), ..task.clone() };
        own.begin = moved(task.begin, from, shift);
        for op in task.ops.iter().filter(|op| within(op)) {
            // The CPU times without the recorder are those of the whole program.
            let op = Op { think: scale.apply(op.think), ..*op };
            own.ops.extend(part.op(recording, &op, (from, shift)));
        }
        tasks.push(own);
    }
    if !opens.is_empty() {
        let process = u32::try_from(tasks.len() + 1).unwrap_or(u32::MAX);
        let name = "open files".to_owned();
        tasks.push(Task { parent: NONE, process, begin: 0, name, ops: opens });
    }
    let mut facts = recording.facts.clone();
    facts.retain(|key, _| !key.starts_with("baseline_") && key != "calls_cpu_ns");
    let whole = facts.get("elapsed_ns").and_then(|text| text.parse::<u64>().ok());
    let ends = tasks.iter().flat_map(|task| &task.ops).map(Op::end);
    let last =
        whole.map_or_else(|| ends.max().unwrap_or(0), |end| end.min(to).saturating_sub(from));
    facts.insert("elapsed_ns".into(), last.to_string());
    facts.insert("slice_from_ns".into(), from.to_string());
    facts.insert("slice_to_ns".into(), to.to_string());
    Recording { facts, paths: part.paths.all, nodes, tasks }
}

/// Instant in the part; 0 before it.
fn moved(instant: u64, from: u64, shift: u64) -> u64 {
    instant.checked_sub(from).map_or(0, |since| since.saturating_add(shift))
}

/// Applies all operations that begin before an instant, in the order in which they ended.
fn simulate(recording: &Recording, from: u64) -> Simulation<'_> {
    let mut simulation = Simulation::new(recording);
    let mut ops: Vec<&Op> =
        recording.tasks.iter().flat_map(|task| &task.ops).filter(|op| op.begin < from).collect();
    ops.sort_by_key(|op| (op.end(), op.begin));
    ops.into_iter().for_each(|op| simulation.apply(op));
    simulation
}

/// Part in progress.
struct Part<'a> {
    before: &'a Simulation<'a>,
    paths: Paths,
    /// Numbers of descriptors in the part.
    numbers: HashMap<u32, u32>,
}

impl Part<'_> {
    /// Files when the part begins, parents first, and the path of each file.
    fn nodes(&mut self) -> (Vec<Node>, HashMap<u32, Vec<u8>>) {
        let space = &self.before.compiler.space;
        let root =
            Node { kind: NodeKind::Directory, mode: space.inode(ROOT).mode, ..Node::default() };
        let mut nodes = vec![root];
        let mut names = HashMap::from([(ROOT, b".".to_vec())]);
        let mut first: HashMap<u32, u32> = HashMap::new();
        let mut directories = vec![(ROOT, 0u32, Vec::new())];
        while let Some((directory, parent, path)) = directories.pop() {
            for (name, number) in space.entries(directory) {
                let inode = space.inode(number);
                let target = space.target(number);
                let link = inode.kind == NodeKind::Symlink;
                if name.len() > NAME || link && target.is_empty() || path.len() > PATH - NAME {
                    continue;
                }
                let index = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
                let path: Vec<u8> = match path.is_empty() {
                    true => name.to_vec(),
                    false => [&path[..], b"/", name].concat(),
                };
                nodes.push(Node {
                    parent,
                    name: self.paths.number(name),
                    kind: inode.kind,
                    size: inode.length.min(i64::MAX.cast_unsigned()),
                    mode: inode.mode,
                    same: first.get(&number).copied().unwrap_or(NONE),
                    target: if target.is_empty() { NONE } else { self.paths.number(target) },
                });
                first.entry(number).or_insert(index + 1);
                names.entry(number).or_insert_with(|| path.clone());
                if inode.kind == NodeKind::Directory {
                    directories.push((number, index, path));
                }
            }
        }
        (nodes, names)
    }

    /// Operations that open the descriptors which the part uses.
    fn opens(
        &mut self,
        recording: &Recording,
        used: &BTreeSet<u32>,
        names: &HashMap<u32, Vec<u8>>,
    ) -> Vec<Op> {
        let mut ops = Vec::new();
        // Descriptors of the part by their positions.
        let mut opened: HashMap<u32, u32> = HashMap::new();
        for (number, held) in self.before.open.iter().filter(|(it, _)| used.contains(it)) {
            let own = u32::try_from(self.numbers.len() + 1).unwrap_or(u32::MAX);
            if let Some(original) = opened.get(&held.position) {
                ops.push(Op { fd: *original, opened: own, ..Op::new(FileCall::Dup) });
                self.numbers.insert(*number, own);
                continue;
            }
            let inode = self.before.compiler.space.inode(held.inode);
            let directory = inode.kind == NodeKind::Directory;
            let flags = held.flags & !(CREATE | EXCLUSIVE | TRUNCATE);
            let temporary = flags & TEMPORARY == TEMPORARY;
            match names.get(&held.inode) {
                Some(name) => {
                    let flags = if temporary { flags & !(TEMPORARY | DIRECTORY) } else { flags };
                    let path = self.paths.number(name);
                    let call = if directory { held.call } else { FileCall::Open };
                    let open = Op { path, opened: own, flags, ..Op::new(call) };
                    // A file may be open for calls that its mode does not allow any more.
                    let chmod =
                        |mode: u32| Op { path, offset: mode.into(), ..Op::new(FileCall::Chmod) };
                    let closed = !directory && inode.mode & 0o600 != 0o600;
                    ops.extend(closed.then(|| chmod(inode.mode | 0o600)));
                    ops.push(open);
                    ops.extend(closed.then(|| chmod(inode.mode)));
                }
                None if directory => continue,
                // Such a file can get a name later.
                None if temporary => {
                    let (path, offset) = (self.paths.number(b"."), inode.mode.into());
                    ops.push(Op { path, opened: own, flags, offset, ..Op::new(FileCall::Open) });
                    let size = inode.length;
                    let sized = Op { fd: own, size, ..Op::new(FileCall::Ftruncate) };
                    ops.extend((size > 0).then_some(sized));
                }
                None => {
                    let path = self.paths.number(&unused(recording));
                    let flags = flags | CREATE | EXCLUSIVE;
                    let mode = inode.mode.into();
                    ops.push(Op {
                        path,
                        opened: own,
                        flags,
                        offset: mode,
                        ..Op::new(FileCall::Open)
                    });
                    if inode.length > 0 {
                        let size = inode.length;
                        ops.push(Op { path, size, ..Op::new(FileCall::Truncate) });
                    }
                    ops.push(Op { path, ..Op::new(FileCall::Unlink) });
                }
            }
            self.numbers.insert(*number, own);
            opened.insert(held.position, own);
            let position = self.before.positions.get(&held.position).copied().unwrap_or(0);
            if position > 0 && !directory {
                let result = i64::try_from(position).unwrap_or(i64::MAX);
                let seek = Op { fd: own, offset: position, result, ..Op::new(FileCall::Seek) };
                ops.push(seek);
            }
        }
        ops
    }

    /// Number of a descriptor in the part; `None` if its opening is unknown.
    fn descriptor(&self, number: u32) -> Option<u32> {
        if number == NONE { Some(NONE) } else { self.numbers.get(&number).copied() }
    }

    /// Numbers the descriptor that an operation of the part opens.
    fn number(&mut self, op: &Op) {
        let known = self.descriptor(op.fd).and(self.descriptor(op.fd2)).is_some();
        if known && op.opened != NONE {
            let next = u32::try_from(self.numbers.len() + 1).unwrap_or(u32::MAX);
            self.numbers.entry(op.opened).or_insert(next);
        }
    }

    /// Operation with the numbers and times of the part; `None` if a descriptor of it is unknown.
    fn op(&mut self, recording: &Recording, op: &Op, (from, shift): (u64, u64)) -> Option<Op> {
        let (fd, fd2) = (self.descriptor(op.fd)?, self.descriptor(op.fd2)?);
        let opened = self.descriptor(op.opened)?;
        let mut path = |number: u32| match number {
            NONE => NONE,
            _ => self.paths.number(recording.path(number)),
        };
        let (path, path2) = (path(op.path), path(op.path2));
        let begin = moved(op.begin, from, shift);
        let think = op.think.min(op.begin - from);
        let mut offset = op.offset;
        if op.call == FileCall::Wait && offset != 0 {
            // 0 would be a wait for all operations.
            offset = moved(offset, from, shift).max(1);
        }
        Some(Op { fd, fd2, opened, path, path2, begin, think, offset, ..*op })
    }
}

/// Name that the recording does not use.
fn unused(recording: &Recording) -> Vec<u8> {
    let mut name = b"fslab-unnamed".to_vec();
    while recording.paths.contains(&name) {
        name.push(b'-');
    }
    name
}
