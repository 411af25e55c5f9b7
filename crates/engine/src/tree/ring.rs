//! Steps by io_uring(7): the steps of one entry are a chain of linked requests, and the chains of
//! several entries are in flight.
//!
//! An entry is loaded into a free slot: its names go to the memory of the slot, and its requests to
//! the submission queue. If no slot is free, one io_uring_enter(2) submits all loaded requests and
//! waits for a completion; then all available completions are processed. Each request has one
//! completion. A slot is free after all completions of its chain, when the kernel no longer uses
//! its memory.
//!
//! The fault of a chain is the fault of its first failed request. A failed open, close, read, or
//! write cancels the following requests (`ECANCELED`, io_uring_enter(2)). Since Linux 6.0, other
//! failed calls do not cancel the following requests (io_uring/fs.c, statx.c, sync.c, and xattr.c
//! have no `req_set_fail`). A short transfer or an interrupted call also cancels the following
//! requests; the chain is then resumed at this call.
//!
//! A file is opened as the direct descriptor of its slot, in a sparse table of registered files. A
//! linked request can name this descriptor before the file is open. The file is closed by the same
//! descriptor. Reads and writes use offsets.
//!
//! There are two differences from synchronous calls. A file is read only up to its expected size,
//! and a file that is written twice gets the same data. Otherwise the state on disk is the same.
#![expect(unsafe_code, reason = "the kernel gets addresses of names and buffers")]

mod call;
mod memory;

use std::{
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
};

use io_uring::{IoUring, Probe, opcode, squeue, types};
use model::{
    Nanos,
    phase::{Calls, Sizes, Tree, TreeOrder, TreeStep},
};
use rustix::io::Errno;

use self::{call::Call, memory::Memory};
use super::context::{TreeContext, short, uses};
use crate::{
    EngineError,
    clock::Clock,
    error::{Failure, Fault, Operation},
    io::{newest_ring, ring_fault},
    set::{Data, Lengths},
};

/// Maximum number of entries in flight.
const DEEPEST: u32 = 4096;

/// Maximum number of entries of a submission queue: `IORING_MAX_ENTRIES` (io_uring/io_uring.h).
const LONGEST: usize = 32_768;

/// Maximum bytes of one request (read(2)): `INT_MAX` rounded down to a whole page.
const MOST: u64 = 0x7fff_f000;

/// Number of a request that was added in Linux 5.19, and the missing feature without it. Linux 5.19
/// also added sparse tables of registered files. Earlier, a linked request looked up its file
/// before the file was open.
const LINKED_FILES: (u8, &str) = (opcode::GetXattr::CODE, "io_uring of Linux 5.19");

/// Problem and hint if a tree cannot be run by io_uring; `None` for synchronous calls.
pub(super) fn problem(tree: &Tree) -> Option<(&'static str, &'static str)> {
    let Calls::Ring { depth } = tree.calls else { return None };
    if !(1..=DEEPEST).contains(&depth) {
        return Some(("queue_depth is out of range", "use a number from 1 to 4096"));
    }
    if tree.steps.len().saturating_mul(depth as usize) > LONGEST {
        return Some((
            "the requests of all entries in flight exceed 32768",
            "use a smaller queue_depth, or io_engine syscall",
        ));
    }
    if tree.order == TreeOrder::Listed {
        return Some((
            "order listed is not supported with io_uring",
            "use order creation or random, or io_engine syscall",
        ));
    }
    if tree.steps.iter().any(|step| Call::of(*step).is_none()) {
        return Some(("io_uring does not support one of the steps", "use io_engine syscall"));
    }
    let moves = tree.steps.iter().any(|step| matches!(step, TreeStep::Write | TreeStep::Read));
    if moves && largest(tree) > tree.set.block_size.0.min(MOST) {
        return Some((
            "files are larger than block_size, but io_uring transfers each in one call",
            "set block_size to the largest file size, or use io_engine syscall",
        ));
    }
    None
}

fn largest(tree: &Tree) -> u64 {
    match tree.set.sizes {
        Sizes::Fixed(size) => size.0,
        Sizes::Uniform { max, .. } => max.0,
        Sizes::LogNormal { .. } => Lengths::new(&tree.set, 0).most(),
    }
}

/// Checks that the kernel supports every request of a tree (`IORING_REGISTER_PROBE`).
///
/// # Errors
/// [`EngineError::Unsupported`] for the first unsupported request; [`EngineError::Io`] if io_uring
/// is not available.
pub(super) fn supported(tree: &Tree, directory: &Path) -> Result<(), EngineError> {
    if !matches!(tree.calls, Calls::Ring { .. }) {
        return Ok(());
    }
    let refused = |fault| Failure { fault, path: directory.to_path_buf() };
    let uring = newest_ring(1, false, |_| {}).map_err(refused)?;
    let mut probe = Probe::new();
    uring
        .submitter()
        .register_probe(&mut probe)
        .map_err(|error| refused(ring_fault(Operation::Ring, &error)))?;
    let calls = tree.steps.iter().filter_map(|step| Call::of(*step));
    for (code, what) in calls.map(Call::opcode).chain([LINKED_FILES]) {
        if !probe.is_supported(code) {
            return Err(EngineError::Unsupported { what, source: Errno::OPNOTSUPP.into() });
        }
    }
    Ok(())
}

/// Creates a ring with this number of entries. With `SUBMIT_ALL` (Linux 5.18; [`supported`]
/// requires a later version), a request that fails immediately does not end the submission of the
/// requests after it. Otherwise the rest of its chain would become a separate chain.
fn build(entries: u32) -> Result<IoUring, Fault> {
    newest_ring(entries, false, |builder| {
        builder.setup_submit_all();
    })
}

/// Result of an entry.
pub(super) enum Over {
    /// Complete, with the time of its submission and the bytes moved.
    Done { begun: Nanos, read: u64, written: u64 },
    /// One of its steps failed.
    Failed { entry: u64, index: usize, fault: Fault },
}

/// State of an entry in flight.
struct Slot {
    entry: u64,
    // Bytes of the file.
    len: u32,
    begun: Nanos,
    // Outstanding completions.
    awaited: u32,
    // First request with an unexpected result, and that result.
    failed: Option<(u32, i32)>,
    canceled: usize,
    // Step that was resubmitted, and the bytes it had moved before.
    resumed: (u32, u32),
    data: Data,
    // Start of the data written to the file, a part of `data`.
    bytes: *const u8,
}

impl Slot {
    /// Bytes already moved by a transfer.
    #[inline]
    fn moved(&self, index: u32) -> u32 {
        if index == self.resumed.0 { self.resumed.1 } else { 0 }
    }

    /// Bytes left to move.
    #[inline]
    fn rest(&self, index: u32) -> u32 {
        self.len - self.moved(index)
    }

    /// True if there is nothing to do: an empty file is not written.
    #[inline]
    fn skips(&self, call: Call) -> bool {
        call == Call::Write && self.len == 0
    }

    /// Source address.
    #[inline]
    fn source(&self, index: u32) -> *const u8 {
        self.bytes.wrapping_add(self.moved(index) as usize)
    }

    /// Target address.
    #[inline]
    fn target(&mut self, index: u32) -> *mut u8 {
        let moved = self.moved(index) as usize;
        self.data.read()[moved..].as_mut_ptr()
    }
}

/// Ring of a worker, see the module. For use by the creating thread only.
pub(super) struct Chains {
    // Dropped, with nothing in flight, before the memory that the kernel uses is released.
    uring: IoUring,
    memory: Memory,
    slots: Box<[Slot]>,
    // Directory of the set.
    root: OwnedFd,
    calls: Box<[Call]>,
    // Free slots, and slots whose entry was not submitted yet.
    free: Vec<u32>,
    fresh: Vec<u32>,
    // Outstanding completions of all slots.
    awaited: u64,
    block_size: u64,
    // Calls per entry that read the file, and that write it.
    reads: u64,
    writes: u64,
    files: bool,
}

impl Chains {
    /// Prepares the ring of a worker before the clock starts; `None` for synchronous calls.
    pub(super) fn new(
        tree: &Tree,
        worker: u32,
        owner: u32,
        context: &TreeContext<'_>,
    ) -> Result<Option<Self>, Fault> {
        let Calls::Ring { depth } = tree.calls else { return Ok(None) };
        let calls: Box<[Call]> = tree.steps.iter().filter_map(|step| Call::of(*step)).collect();
        let count = |call: Call| calls.iter().filter(|other| **other == call).count() as u64;
        let (reads, writes) = (count(Call::Read), count(Call::Write));
        let lengths = Lengths::new(&tree.set, owner);
        let uses = uses(tree, &lengths);
        let slot = |number| {
            let data = Data::of_slot(&tree.set, worker, uses, number, depth)?;
            Some(Slot {
                entry: 0,
                len: 0,
                begun: Nanos(0),
                awaited: 0,
                failed: None,
                canceled: 0,
                resumed: (0, 0),
                data,
                bytes: std::ptr::null(),
            })
        };
        let slots: Option<Box<[Slot]>> = (0..depth).map(slot).collect();
        let slots = slots.ok_or(short(tree))?;
        let memory = Memory::new(&calls, &context.names, depth)?;
        let root = context.root.try_clone().map_err(|error| ring_fault(Operation::Open, &error))?;
        let entries = (calls.len() * slots.len()).min(LONGEST);
        let uring = build(u32::try_from(entries).unwrap_or(u32::MAX))?;
        let files = calls.iter().any(|call| matches!(call, Call::Open(_)));
        if files {
            let table = uring.submitter().register_files_sparse(depth);
            table.map_err(|error| ring_fault(Operation::Register, &error))?;
        }
        Ok(Some(Self {
            uring,
            memory,
            slots,
            root,
            calls,
            free: (0..depth).rev().collect(),
            fresh: Vec::with_capacity(depth as usize),
            awaited: 0,
            block_size: tree.set.block_size.0,
            reads,
            writes,
            files,
        }))
    }

    /// True if no slot is free.
    #[inline]
    pub(super) fn are_full(&self) -> bool {
        self.free.is_empty()
    }

    /// True if anything is in flight or queued.
    #[inline]
    pub(super) fn are_busy(&self) -> bool {
        self.awaited > 0
    }

    /// Queues the chain of the selected entry. There must be a free slot.
    #[inline]
    pub(super) fn load(&mut self, context: &mut TreeContext<'_>) {
        let number = self.free.pop().expect("the caller waited for a free slot");
        let slot = &mut self.slots[number as usize];
        debug_assert_eq!(slot.awaited, 0, "nothing of a free slot is in flight");
        self.memory.write(number, &mut context.names);
        slot.entry = context.names.number();
        // Files that are neither read nor written may have any size.
        let len = if self.reads + self.writes > 0 { context.size } else { 0 };
        slot.len = u32::try_from(len).expect("checked: it fits one call");
        slot.resumed = (0, 0);
        if self.writes > 0 {
            slot.bytes = slot.data.write(slot.len as usize).as_ptr();
        }
        self.fresh.push(number);
        self.push(number, 0);
    }

    /// Writes the requests of a slot starting with a step.
    fn push(&mut self, number: u32, from: u32) {
        let at = types::Fd(self.root.as_raw_fd());
        let slot = &mut self.slots[number as usize];
        let mut queue = self.uring.submission();
        let mut left = self.calls.len() - from as usize;
        slot.canceled = 0;
        for (index, call) in (from..).zip(&self.calls[from as usize..]) {
            left -= 1;
            // The last step is not skipped, because a file that is written is closed afterwards.
            if slot.skips(*call) {
                continue;
            }
            let flags = if left == 0 { squeue::Flags::empty() } else { call.link() };
            let request = call
                .request(at, (number, index), (&self.memory, slot), self.block_size)
                .flags(flags)
                .user_data(u64::from(index) << 32 | u64::from(number));
            // SAFETY: names and results are in the memory of the slot, and transfers use the data
            // of the slot. This memory is neither moved nor released before this ring. It is long
            // enough: for names by `Memory`, for transfers because `check` ensures one block. Other
            // pointers are to constants. The memory is not accessed before all completions of the
            // chain: `load` uses free slots only, and `drop` waits for all completions.
            let answer = unsafe { queue.push(&request) };
            answer.expect("the queue fits the whole chain of every slot");
            slot.awaited += 1;
            self.awaited += 1;
        }
    }

    /// Submits all queued requests, and waits for a completion or a signal. The time of new
    /// requests starts now, by the clock of the loop.
    pub(super) fn enter(&mut self, time: &mut Clock) -> Result<(), Fault> {
        if !self.fresh.is_empty() {
            let clock = time.now();
            for number in self.fresh.drain(..) {
                self.slots[number as usize].begun = clock;
            }
        }
        self.exchange()
    }

    fn exchange(&mut self) -> Result<(), Fault> {
        loop {
            match self.uring.submit_and_wait(1) {
                // A call that submits fewer entries than requested does not wait
                // (io_uring_enter(2)).
                Ok(_) if self.uring.submission().is_empty() => return Ok(()),
                Ok(_) => {}
                Err(error) => match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                    Errno::INTR | Errno::AGAIN | Errno::BUSY => {}
                    errno => return Err(Fault::whole(Operation::Reap, errno)),
                },
            }
        }
    }

    /// Next entry whose completions are all available.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Over> {
        loop {
            let answer = self.uring.completion().next()?;
            let (data, answer) = (answer.user_data(), answer.result());
            #[expect(clippy::cast_possible_truncation, reason = "two halves, see `push`")]
            let (number, index) = (data as u32, (data >> 32) as u32);
            let slot = &mut self.slots[number as usize];
            slot.awaited -= 1;
            self.awaited -= 1;
            slot.canceled += usize::from(answer == -libc::ECANCELED);
            if !self.calls[index as usize].succeeds(answer, slot.rest(index))
                && slot.failed.is_none_or(|(first, _)| index < first)
            {
                slot.failed = Some((index, answer));
            }
            if slot.awaited > 0 {
                continue;
            }
            if let Some((index, answer)) = slot.failed.take() {
                let calls = &self.calls[index as usize..];
                if let Err(fault) = slot.resume(calls, index, answer) {
                    let (entry, index) = (slot.entry, index as usize);
                    self.free.push(number);
                    return Some(Over::Failed { entry, index, fault });
                }
                self.push(number, index);
                continue;
            }
            let (begun, len) = (slot.begun, u64::from(slot.len));
            self.free.push(number);
            return Some(Over::Done { begun, read: self.reads * len, written: self.writes * len });
        }
    }
}

impl Slot {
    /// Prepares to resume a step with this result, if possible. The step is the first of `calls`.
    #[cold]
    fn resume(&mut self, calls: &[Call], index: u32, answer: i32) -> Result<(), Fault> {
        let call = calls[0];
        let (operation, moved) = (call.operation(), self.moved(index));
        let offset = u64::from(moved);
        // Executed calls cannot be repeated, so all calls after this step must have been canceled.
        let behind = calls[1..].iter().filter(|call| !self.skips(**call)).count();
        let stopped = self.canceled == behind;
        match u32::try_from(answer) {
            // A name that should be missing exists.
            Ok(_) if !call.transfers() => Err(Fault::whole(operation, Errno::EXIST)),
            Ok(more) if more == 0 || !stopped => Err(Fault::Nothing { operation, offset }),
            Ok(more) => {
                self.resumed = (index, moved + more);
                assert!(self.resumed.1 <= self.len, "no more is moved than was asked for");
                Ok(())
            }
            Err(_) => match Errno::from_raw_os_error(-answer) {
                Errno::INTR | Errno::AGAIN if stopped => {
                    self.resumed = (index, moved);
                    Ok(())
                }
                errno => Err(Fault::Os {
                    operation,
                    offset: call.transfers().then_some(offset),
                    errno: errno.raw_os_error(),
                }),
            },
        }
    }
}

impl Drop for Chains {
    fn drop(&mut self) {
        while self.awaited > 0 {
            while self.uring.completion().next().is_some() {
                self.awaited -= 1;
            }
            if self.awaited > 0 && self.exchange().is_err() {
                // The kernel may write to memory that is about to be released, and the end of these
                // writes cannot be detected.
                std::process::abort();
            }
        }
        if self.files {
            // Files left open by a failed chain are closed now, not some time later when the kernel
            // destroys the ring. Fails only if nothing is registered.
            let _ = self.uring.submitter().unregister_files();
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{
        Bytes,
        phase::{DataPattern, Naming, Set, Sharing, Spread},
    };

    use super::*;
    use crate::set::Uses;

    /// Slot of a file of `len` bytes with a number of canceled calls.
    fn slot(len: u32, canceled: usize) -> Slot {
        let set = Set {
            name: "t".into(),
            sharing: Sharing::Private,
            files: 1,
            spread: Spread::Flat,
            naming: Naming::Numbers,
            sizes: Sizes::Fixed(Bytes(0)),
            block_size: Bytes(1),
            data: DataPattern::default(),
            seed: 1,
        };
        let uses = Uses { block_size: 10, reads: true, writes: false, tag: 0 };
        let data = Data::of_slot(&set, 0, uses, 0, 1).unwrap();
        let (begun, bytes) = (Nanos(0), std::ptr::null());
        let (failed, resumed) = (None, (0, 0));
        Slot { entry: 7, len, begun, awaited: 0, failed, canceled, resumed, data, bytes }
    }

    #[test]
    fn a_short_transfer_is_resumed_at_its_end() {
        let calls = [Call::Read, Call::Write, Call::Close];
        let mut slot = slot(10, 2);
        assert_eq!((slot.moved(1), slot.rest(1)), (0, 10));
        assert_eq!(slot.resume(&calls, 1, 4), Ok(()));
        assert_eq!((slot.moved(1), slot.rest(1), slot.rest(2)), (4, 6, 10));
        let begin = slot.target(2);
        assert_eq!(slot.target(1), begin.wrapping_add(4));
        assert_eq!(slot.resume(&calls, 1, -libc::EINTR), Ok(()));
        assert_eq!(slot.resume(&calls, 1, 5), Ok(()));
        assert_eq!((slot.moved(1), slot.rest(1)), (9, 1));
        let end = Fault::Nothing { operation: Operation::Read, offset: 9 };
        assert_eq!(slot.resume(&calls, 1, 0), Err(end));
        let offset = Some(9);
        let full = Fault::Os { operation: Operation::Read, offset, errno: libc::ENOSPC };
        assert_eq!(slot.resume(&calls, 1, -libc::ENOSPC), Err(full));
    }

    #[test]
    fn an_interrupted_call_is_repeated_unless_later_calls_were_executed() {
        let calls = [Call::Open(0), Call::Write, Call::Close];
        let again = |len, canceled| slot(len, canceled).resume(&calls, 0, -libc::EAGAIN).is_ok();
        assert!(again(10, 2));
        assert!(again(0, 1), "an empty file is not written");
        assert!(!again(10, 1));
        assert!(slot(10, 0).resume(&[Call::Unlink(memory::Text::Entry)], 3, -libc::EINTR).is_ok());
        let there = Fault::whole(Operation::Examine, Errno::EXIST);
        assert_eq!(slot(10, 0).resume(&[Call::StatMissing], 0, 0), Err(there));
    }
}
