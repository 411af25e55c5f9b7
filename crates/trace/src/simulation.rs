//! Simulation of the operations of a recording: names, sizes, and positions of its files.
#![expect(clippy::wildcard_enum_match_arm, reason = "the other calls change none of these")]

use std::collections::{BTreeMap, HashMap};

use model::phase::{FileCall, TraceOrder};

use crate::{NO_OFFSET, NONE, Op, Recording, effects::Compiler};

/// `O_APPEND` (include/uapi/asm-generic/fcntl.h).
const APPEND: u64 = 0o2000;

/// Modes of fallocate(2) (include/uapi/linux/falloc.h).
const KEEP_SIZE: u64 = 1;
const COLLAPSE: u64 = 8;
const INSERT: u64 = 0x20;

/// Open descriptor.
pub(crate) struct Held {
    pub(crate) inode: u32,
    /// Number of the descriptor that opened the file.
    pub(crate) position: u32,
    pub(crate) flags: u64,
    pub(crate) call: FileCall,
}

/// State after some operations.
pub(crate) struct Simulation<'a> {
    pub(crate) compiler: Compiler<'a>,
    /// Open descriptors by their numbers.
    pub(crate) open: BTreeMap<u32, Held>,
    /// Positions of open files, by the number of the descriptor that opened them.
    pub(crate) positions: HashMap<u32, u64>,
}

impl<'a> Simulation<'a> {
    /// State before the first operation.
    pub(crate) fn new(recording: &'a Recording) -> Self {
        Self {
            compiler: Compiler::new(recording, TraceOrder::Tasks),
            open: BTreeMap::new(),
            positions: HashMap::new(),
        }
    }

    /// Applies an operation. Operations have to be applied in the order in which they ended.
    pub(crate) fn apply(&mut self, op: &Op) {
        self.compiler.apply(op);
        if !op.succeeded() {
            return;
        }
        if let (true, Some(file)) = (op.opened != NONE, self.compiler.file(op.opened)) {
            let known = self.open.get(&op.fd).filter(|_| op.call == FileCall::Dup);
            let (flags, call) =
                known.map_or((op.flags, op.call), |original| (original.flags, original.call));
            let held = Held { inode: file.inode, position: file.position, flags, call };
            self.open.insert(op.opened, held);
        }
        match op.call {
            FileCall::Close | FileCall::Release => {
                self.open.remove(&op.fd);
            }
            _ => self.content(op),
        }
    }

    /// File and offset of the next read or write.
    pub(crate) fn transfer(&self, op: &Op) -> Option<(u32, u64)> {
        let held = self.open.get(&op.fd)?;
        let offset = match op.call {
            FileCall::Pread | FileCall::Pwrite => op.offset,
            FileCall::Write if held.flags & APPEND != 0 => {
                self.compiler.space.inode(held.inode).length
            }
            _ => self.positions.get(&held.position).copied().unwrap_or(0),
        };
        Some((held.inode, offset))
    }

    /// Applies an operation to the size of its file and to the position of its descriptor.
    fn content(&mut self, op: &Op) {
        let Self { compiler, open, positions } = self;
        let moved = op.result.unsigned_abs();
        let of = |descriptor: u32| open.get(&descriptor).filter(|_| descriptor != NONE);
        let Some(held) = of(op.fd) else { return };
        let position = positions.get(&held.position).copied().unwrap_or(0);
        let length = compiler.space.inode(held.inode).length;
        let mut extends = |inode: u32, end: u64| {
            let own = &mut compiler.space.inode_mut(inode).length;
            *own = (*own).max(end);
        };
        match op.call {
            FileCall::Read => {
                positions.insert(held.position, position.saturating_add(moved));
            }
            FileCall::Write => {
                let start = if held.flags & APPEND != 0 { length } else { position };
                let end = start.saturating_add(moved);
                positions.insert(held.position, end);
                extends(held.inode, end);
            }
            FileCall::Seek => {
                positions.insert(held.position, moved);
            }
            FileCall::Pwrite => extends(held.inode, op.offset.saturating_add(moved)),
            FileCall::Fallocate if op.flags & COLLAPSE != 0 => {
                compiler.space.inode_mut(held.inode).length = length.saturating_sub(op.size);
            }
            FileCall::Fallocate if op.flags & INSERT != 0 => {
                extends(held.inode, length.saturating_add(op.size));
            }
            FileCall::Fallocate if op.flags & KEEP_SIZE == 0 => {
                extends(held.inode, op.offset.saturating_add(op.size));
            }
            FileCall::Clone => {
                let Some(to) = of(op.fd2) else { return };
                let size = if op.size == 0 { length.saturating_sub(op.offset) } else { op.size };
                extends(to.inode, op.flags.saturating_add(size));
            }
            FileCall::CopyRange | FileCall::Sendfile => {
                if op.offset == NO_OFFSET {
                    positions.insert(held.position, position.saturating_add(moved));
                }
                let Some(to) = of(op.fd2) else { return };
                let start = match op.flags {
                    NO_OFFSET => positions.get(&to.position).copied().unwrap_or(0),
                    offset => offset,
                };
                let end = start.saturating_add(moved);
                if op.flags == NO_OFFSET {
                    positions.insert(to.position, end);
                }
                extends(to.inode, end);
            }
            _ => {}
        }
    }
}
