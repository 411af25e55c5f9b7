//! The steps of entries through io_uring(7): those of one entry are a chain of linked requests, and
//! the chains of several entries are in flight.
//!
//! An entry is loaded into a free slot: its names go to the memory of the slot, and its requests to
//! the submission queue. When no slot is free, one io_uring_enter(2) submits all that was loaded
//! and waits for an answer; all answers that have come are taken then. Each request has one answer,
//! and a slot is free when those of its whole chain have come, as the kernel has done with its
//! memory then. The fault of a chain is that of its first link that failed. Those behind it are
//! canceled (`ECANCELED`, io_uring_enter(2)) if it was to open, close, read, or write; since Linux
//! 6.0 the other calls do not fail a link whatever they answer (io_uring/fs.c, statx.c, sync.c, and
//! xattr.c have no `req_set_fail`), so what is behind them is still done. A transfer that fell
//! short, or a call that was interrupted, has canceled what is behind it, and the chain goes on
//! from there.
//!
//! A file is opened as the direct descriptor of its slot, in a sparse table of registered files,
//! since a linked request has to name its file before that is open; it is closed there. What is
//! read and written goes by offset.
//!
//! A file is read for as long as it should be, and one that is written twice is written the same.
//! Beyond that what is left on disk is what
//! plain calls leave.
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
use super::{
    Failure,
    hand::{Hand, short, uses},
};
use crate::{
    EngineError,
    clock::Clock,
    error::{Fault, Operation},
    io::{newest_ring, ring_fault},
    set::{Data, Lengths},
};

/// The most entries in flight.
const DEEPEST: u32 = 4096;

/// The most entries of a submission queue: `IORING_MAX_ENTRIES` (io_uring/io_uring.h).
const LONGEST: usize = 32_768;

/// The most bytes that one request moves (read(2)): `INT_MAX` cut to a whole page.
const MOST: u64 = 0x7fff_f000;

/// A request that came with Linux 5.19, as did tables of files that are registered empty; and what
/// is missed before that, when a linked request looked for its file before that was open.
const LINKED_FILES: (u8, &str) = (opcode::GetXattr::CODE, "io_uring of Linux 5.19");

/// Why a tree cannot be done in a ring, and what to change; none if it makes plain calls.
pub(super) fn problem(tree: &Tree) -> Option<(&'static str, &'static str)> {
    let Calls::Ring { depth } = tree.calls else { return None };
    if !(1..=DEEPEST).contains(&depth) {
        return Some(("its ring has no depth, or too much", "use a depth within 1..=4096"));
    }
    if tree.steps.len().saturating_mul(depth as usize) > LONGEST {
        return Some((
            "its chains are more than a ring has entries, 32768",
            "use a smaller depth, or calls = plain",
        ));
    }
    if tree.order == TreeOrder::Listed {
        return Some((
            "it lists directories between the calls of a ring",
            "use the order created or shuffled, or calls = plain",
        ));
    }
    if tree.steps.iter().any(|step| Call::of(*step).is_none()) {
        return Some(("io_uring has no request for one of its steps", "use calls = plain"));
    }
    let moves = tree.steps.iter().any(|step| matches!(step, TreeStep::Write | TreeStep::Read));
    if moves && largest(tree) > tree.set.record.0.min(MOST) {
        return Some((
            "its files have more than one record, and a ring moves each in one call",
            "use a record as large as the largest file, or calls = plain",
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

/// Makes sure that the kernel has every request of a tree (`IORING_REGISTER_PROBE`).
///
/// # Errors
/// [`EngineError::Unsupported`] for the first that it lacks; [`EngineError::Io`] if there is no
/// io_uring here.
pub(super) fn supported(tree: &Tree, directory: &Path) -> Result<(), EngineError> {
    if !matches!(tree.calls, Calls::Ring { .. }) {
        return Ok(());
    }
    let refused = |fault| Failure { fault, path: directory.to_path_buf() }.into_error();
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

/// A ring with so many entries. A request that is refused at once must not end the submission of
/// those behind it, or the rest of its chain would be a chain of its own (`SUBMIT_ALL`, Linux
/// 5.18; [`supported`] asked for more).
fn build(entries: u32) -> Result<IoUring, Fault> {
    newest_ring(entries, false, |builder| {
        builder.setup_submit_all();
    })
}

/// What an entry came to.
pub(super) enum Over {
    /// All is done; when it was submitted, and what was moved.
    Done { begun: Nanos, read: u64, written: u64 },
    /// A step of it failed.
    Failed { entry: u64, index: usize, fault: Fault },
}

/// The place of an entry in flight.
struct Slot {
    entry: u64,
    // Bytes of the file.
    len: u32,
    begun: Nanos,
    // Answers that have yet to come.
    awaited: u32,
    // The first link that did not go as it should, and its answer; and how many were canceled.
    failed: Option<(u32, i32)>,
    canceled: usize,
    // The step that was submitted anew, and what it had moved before.
    resumed: (u32, u32),
    data: Data,
    // What is written to the file, in `data`.
    bytes: *const u8,
}

impl Slot {
    /// What a transfer has moved already.
    #[inline]
    fn moved(&self, index: u32) -> u32 {
        if index == self.resumed.0 { self.resumed.1 } else { 0 }
    }

    /// What is left to be moved.
    #[inline]
    fn rest(&self, index: u32) -> u32 {
        self.len - self.moved(index)
    }

    /// Whether there is nothing to be done: an empty file is not written.
    #[inline]
    fn skips(&self, call: Call) -> bool {
        call == Call::Write && self.len == 0
    }

    /// From where.
    #[inline]
    fn source(&self, index: u32) -> *const u8 {
        self.bytes.wrapping_add(self.moved(index) as usize)
    }

    /// To where.
    #[inline]
    fn target(&mut self, index: u32) -> *mut u8 {
        let moved = self.moved(index) as usize;
        self.data.read()[moved..].as_mut_ptr()
    }
}

/// The ring of a worker, see the module. To be used by the thread that made it alone.
pub(super) struct Chains {
    // Dropped, with nothing in flight, before the memory that the kernel uses is given up.
    uring: IoUring,
    memory: Memory,
    slots: Box<[Slot]>,
    // The directory of the set.
    root: OwnedFd,
    calls: Box<[Call]>,
    // Slots without an entry, and those whose entry the kernel has not got yet.
    free: Vec<u32>,
    fresh: Vec<u32>,
    // Answers that have yet to come to all slots.
    awaited: u64,
    record: u64,
    // Calls of an entry that read the file, and that write it.
    reads: u64,
    writes: u64,
    files: bool,
}

impl Chains {
    /// For a worker, before the clock starts; `None` if it makes plain calls.
    pub(super) fn new(
        tree: &Tree,
        worker: u32,
        owner: u32,
        hand: &Hand<'_>,
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
        let memory = Memory::new(&calls, &hand.names, depth)?;
        let root = hand.root.try_clone().map_err(|error| ring_fault(Operation::Open, &error))?;
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
            record: tree.set.record.0,
            reads,
            writes,
            files,
        }))
    }

    /// Whether no slot is free.
    #[inline]
    pub(super) fn are_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Whether anything is in flight or to be submitted.
    #[inline]
    pub(super) fn are_busy(&self) -> bool {
        self.awaited > 0
    }

    /// Puts the chain of the entry that the hand was turned to into the queue. There must be a
    /// free slot.
    #[inline]
    pub(super) fn load(&mut self, hand: &mut Hand<'_>) {
        let number = self.free.pop().expect("who loads has waited for a free slot");
        let slot = &mut self.slots[number as usize];
        debug_assert_eq!(slot.awaited, 0, "nothing of a free slot is in flight");
        self.memory.write(number, &mut hand.names);
        slot.entry = hand.names.number();
        // Files that are neither read nor written may be of any size.
        let len = if self.reads + self.writes > 0 { hand.size } else { 0 };
        slot.len = u32::try_from(len).expect("checked: it fits one call");
        slot.resumed = (0, 0);
        if self.writes > 0 {
            slot.bytes = slot.data.write(slot.len as usize).as_ptr();
        }
        self.fresh.push(number);
        self.push(number, 0);
    }

    /// Writes the requests of a slot from a step on.
    fn push(&mut self, number: u32, from: u32) {
        let at = types::Fd(self.root.as_raw_fd());
        let slot = &mut self.slots[number as usize];
        let mut queue = self.uring.submission();
        let mut left = self.calls.len() - from as usize;
        slot.canceled = 0;
        for (index, call) in (from..).zip(&self.calls[from as usize..]) {
            left -= 1;
            // The last step is none of these, as a file that is written is closed after that.
            if slot.skips(*call) {
                continue;
            }
            let flags = if left == 0 { squeue::Flags::empty() } else { call.link() };
            let request = call
                .request(at, (number, index), (&self.memory, slot), self.record)
                .flags(flags)
                .user_data(u64::from(index) << 32 | u64::from(number));
            // SAFETY: names and answers lie in the memory of the slot and transfers in its data,
            // which are neither moved nor given up before this ring, and are long enough: names as
            // `Memory` says, transfers as `check` made sure of one record. The rest is constant.
            // They are not touched again before all answers of the chain have come: `load` takes
            // free slots only, and `drop` waits for all.
            let answer = unsafe { queue.push(&request) };
            answer.expect("the queue has room for the whole chain of every slot");
            slot.awaited += 1;
            self.awaited += 1;
        }
    }

    /// Submits all that is queued, and waits until there is an answer, or a signal has come. What
    /// is submitted for the first time begins now by the clock of the loop.
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
                // Who submits less than asked does not wait either (io_uring_enter(2)).
                Ok(_) if self.uring.submission().is_empty() => return Ok(()),
                Ok(_) => {}
                Err(error) => match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                    Errno::INTR | Errno::AGAIN | Errno::BUSY => {}
                    errno => return Err(Fault::whole(Operation::Reap, errno)),
                },
            }
        }
    }

    /// The next entry that is over, of those whose answers have come.
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
    /// Makes ready to go on with a step that was answered so, the first of `calls`, if that can be.
    #[cold]
    fn resume(&mut self, calls: &[Call], index: u32, answer: i32) -> Result<(), Fault> {
        let call = calls[0];
        let (operation, moved) = (call.operation(), self.moved(index));
        let offset = u64::from(moved);
        // What has been done once cannot be done again.
        let behind = calls[1..].iter().filter(|call| !self.skips(**call)).count();
        let stopped = self.canceled == behind;
        match u32::try_from(answer) {
            // The name that should be missing is there.
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
                // The kernel may write to memory that is about to be given up, and there is no way
                // to find out when it is through.
                std::process::abort();
            }
        }
        if self.files {
            // What a chain left open when it failed is closed now and not when the kernel tears
            // the ring down, some time later. Refused only where nothing is registered.
            let _ = self.uring.submitter().unregister_files();
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{
        Bytes,
        phase::{Fill, Naming, Set, Sharing, Spread},
    };

    use super::*;
    use crate::set::Uses;

    /// A file of so many bytes in a slot, and how many calls behind were canceled.
    fn slot(len: u32, canceled: usize) -> Slot {
        let set = Set {
            name: "t".into(),
            sharing: Sharing::Private,
            files: 1,
            spread: Spread::Flat,
            naming: Naming::Numbers,
            sizes: Sizes::Fixed(Bytes(0)),
            record: Bytes(1),
            fill: Fill::default(),
            seed: 1,
        };
        let uses = Uses { record: 10, reads: true, writes: false, tag: 0 };
        let data = Data::of_slot(&set, 0, uses, 0, 1).unwrap();
        let (begun, bytes) = (Nanos(0), std::ptr::null());
        let (failed, resumed) = (None, (0, 0));
        Slot { entry: 7, len, begun, awaited: 0, failed, canceled, resumed, data, bytes }
    }

    #[test]
    fn a_short_transfer_goes_on_where_it_ended() {
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
    fn what_was_interrupted_is_done_again_unless_what_follows_was_done() {
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
