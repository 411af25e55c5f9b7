//! Construction of a program: operations are collected, then sealed.

use std::{cmp::Reverse, collections::BinaryHeap, mem::size_of};

use model::{Bytes, Environment, phase::ReplayOp};
use rustix::{
    fs::{MemfdFlags, fcntl_add_seals, memfd_create},
    io::{Errno, write},
};

use super::{
    Header, MAGIC, NO_SLOT, NameLimits, NameProblem, Names, Op, Program, SEALS, bytes_of,
    names::Interner,
};

/// Program that is being collected.
#[derive(Debug)]
pub(crate) struct Builder {
    ops: Vec<Op>,
    lines: Vec<u32>,
    names: Interner,
    // Free slots below the highest one, the smallest on top.
    free: BinaryHeap<Reverse<u16>>,
    slots: u16,
    largest: u32,
    timestamped: bool,
}

impl Builder {
    /// Empty program with the limits of a replay.
    pub(crate) fn new() -> Self {
        Self::limited(NameLimits::FULL)
    }

    /// Empty program with other limits.
    pub(crate) fn limited(limits: NameLimits) -> Self {
        Self {
            ops: Vec::new(),
            lines: Vec::new(),
            names: Interner::new(limits),
            free: BinaryHeap::new(),
            slots: 0,
            largest: 0,
            timestamped: false,
        }
    }

    /// Index of a name of a loadfile, with slashes: relative to the root of the client, with or
    /// without a leading slash.
    ///
    /// # Errors
    /// [`NameProblem`] for a name that leads out of the root, is longer than Linux allows, or
    /// exceeds the number of names.
    pub(crate) fn name(&mut self, name: &[u8]) -> Result<u32, NameProblem> {
        self.names.index(name)
    }

    /// Directory of a name.
    pub(crate) fn parent(&self, name: u32) -> u32 {
        self.names.entries[name as usize].parent
    }

    /// Takes the smallest free slot; `None` if all are in use.
    pub(crate) fn take_slot(&mut self) -> Option<u16> {
        if let Some(Reverse(slot)) = self.free.pop() {
            return Some(slot);
        }
        let slot = self.slots;
        if slot == NO_SLOT {
            return None;
        }
        self.slots += 1;
        Some(slot)
    }

    /// Returns a slot after its last operation.
    pub(crate) fn give_slot(&mut self, slot: u16) {
        self.free.push(Reverse(slot));
    }

    /// Adds an operation of this line of the loadfile.
    pub(crate) fn push(&mut self, op: Op, line: u32) {
        if matches!(op.kind(), ReplayOp::ReadX | ReplayOp::WriteX) {
            self.largest = self.largest.max(op.size);
        }
        self.timestamped |= op.due().is_some();
        self.ops.push(op);
        self.lines.push(line);
    }

    /// Operations so far.
    pub(crate) fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// Names so far.
    pub(crate) fn names(&self) -> Names<'_> {
        Names::new(&self.names.entries, &self.names.text)
    }

    /// Approximate length of the memory of the program.
    pub(crate) fn bytes(&self) -> Bytes {
        let ops = self.ops.len() * (size_of::<Op>() + size_of::<u32>());
        let names = size_of_val(&*self.names.entries) + self.names.text.len();
        Bytes((ops + names) as u64)
    }

    /// Adds the facts `loadfile.operations` and `loadfile.mix`, which begins with the most frequent
    /// type.
    fn mix(&self, facts: &mut Environment) {
        let mut counts = ReplayOp::ALL.map(|kind| (0_u64, kind));
        for op in &self.ops {
            counts[usize::from(op.kind)].0 += 1;
        }
        counts.sort_by_key(|(count, _)| Reverse(*count));
        let total = self.ops.len() as u64;
        let share = |(count, kind): &(u64, ReplayOp)| {
            // In hundredths of a percent, so that rare operations are not zero.
            let share = (count * 10_000 + total / 2) / total.max(1);
            format!("{} {}.{:02} %", kind.name(), share / 100, share % 100)
        };
        let mix: Vec<_> = counts.iter().filter(|(count, _)| *count > 0).map(share).collect();
        facts.set("loadfile.operations", total.to_string());
        facts.set("loadfile.mix", mix.join(", "));
    }

    /// Creates the program of a loadfile with this number of lines. `facts` describes the loadfile;
    /// facts on its operations are added here.
    ///
    /// # Errors
    /// The errno of the kernel if the memory is not available.
    pub(crate) fn finish(self, lines: u64, mut facts: Environment) -> Result<Program, Errno> {
        facts.set("loadfile.lines", lines.to_string());
        self.mix(&mut facts);
        let header = [Header {
            magic: MAGIC,
            ops: self.ops.len() as u64,
            names: self.names.entries.len() as u64,
            text: self.names.text.len() as u64,
            slots: u64::from(self.slots),
            largest: u64::from(self.largest),
            timestamped: u64::from(self.timestamped),
        }];
        let file = memfd_create("fslab-program", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        let names = bytes_of(&self.names.entries);
        let parts = [
            bytes_of(&header),
            bytes_of(&self.ops),
            bytes_of(&self.lines),
            names,
            &self.names.text,
        ];
        for mut part in parts {
            while !part.is_empty() {
                let written = write(&file, part)?;
                part = &part[written..];
            }
        }
        fcntl_add_seals(&file, SEALS)?;
        Program::map(file, facts)
    }
}
