//! Steps on blocks that the seed, the owner, and the number of an entry determine.

use model::phase::{Tree, TreeStep};
use rustix::io::{pread, pwrite};

use super::context::{TreeContext, opened, short};
use crate::{
    calls::{again, failed},
    error::{Fault, Operation},
    set::EntryData,
};

impl TreeContext<'_> {
    /// Writes the block that the entry determines.
    pub(super) fn write_block(&mut self) -> Result<(), Fault> {
        let file = opened(&self.open);
        let block = self.blocks.block(self.names.owner(), self.names.number());
        let operation = Operation::Write;
        let mut done = 0;
        while done < block.len() {
            let offset = done as u64;
            match again(|| pwrite(file, &block[done..], offset)) {
                Ok(0) => return Err(Fault::Nothing { operation, offset }),
                Ok(count) => done += count,
                Err(errno) => return Err(failed(operation, offset, errno)),
            }
        }
        self.written += done as u64;
        Ok(())
    }

    /// Reads one block.
    pub(super) fn read_block(&mut self) -> Result<(), Fault> {
        let file = opened(&self.open);
        let buffer = self.blocks.buffer();
        let operation = Operation::Read;
        let mut done = 0;
        while done < buffer.len() {
            let offset = done as u64;
            match again(|| pread(file, &mut buffer[done..], offset)) {
                Ok(0) => return Err(Fault::Nothing { operation, offset }),
                Ok(count) => done += count,
                Err(errno) => return Err(failed(operation, offset, errno)),
            }
        }
        self.read += done as u64;
        Ok(())
    }

    /// Compares the block that was read with the one that was written.
    pub(super) fn verify_block(&mut self) -> Result<(), Fault> {
        self.blocks.verify(self.names.owner(), self.names.number())
    }
}

/// Allocates the memory for blocks that the entries determine.
pub(super) fn blocks(tree: &Tree) -> Result<EntryData, Fault> {
    let has = |step| tree.steps.contains(&step);
    let makes = has(TreeStep::WriteBlock) || has(TreeStep::VerifyBlock);
    EntryData::new(&tree.set, makes, has(TreeStep::ReadBlock)).ok_or(short(tree))
}
