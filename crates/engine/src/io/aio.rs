//! Linux AIO: io_submit(2) and io_getevents(2).
//!
//! The C library has no functions for these calls, so the structures of
//! include/uapi/linux/aio_abi.h are defined here. An operation is one control block, and an event
//! contains the number of its slot. The kernel runs buffered I/O inside of io_submit(2); only
//! direct I/O is asynchronous.
//!
//! Completions are never collected without waiting, because that is a separate call and most
//! programs wait for one completion.
#![expect(unsafe_code, reason = "system calls without safe form that get addresses of buffers")]

use std::{path::PathBuf, ptr};

use model::{
    Nanos,
    phase::{self, Completions, Stream, SyncCall},
};
use rustix::io::Errno;

use super::{
    AccessMode, Cause, Completion, IoEngine, IoFault, Kind, Op, PassCalls, PassPoint, Submitted,
    Wait, several::QueueFiles, sync,
};
use crate::{
    clock::now,
    error::{Fault, Operation},
    file_offset::FileChange,
};

/// Maximum number of bytes of one operation in Linux (read(2)).
const MOST: usize = 0x7fff_f000;

/// `IOCB_CMD_PREAD`.
const READ: u16 = 0;

/// `IOCB_CMD_PWRITE`.
const WRITE: u16 = 1;

/// `struct iocb`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct ControlBlock {
    data: u64,
    // The order of these two depends on the byte order; both are zero.
    key: u32,
    flags_of_call: u32,
    code: u16,
    priority: i16,
    descriptor: u32,
    buffer: u64,
    bytes: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_descriptor: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    control: u64,
    result: i64,
    second: i64,
}

const _: () = assert!(size_of::<ControlBlock>() == 64 && size_of::<Event>() == 32);

/// Operation in flight.
struct InFlight<'p> {
    op: Option<Op<'p>>,
    // Bytes transferred by earlier control blocks.
    moved: usize,
}

/// AIO context and files of a worker.
pub(crate) struct Aio<'p> {
    context: Context,
    files: QueueFiles,
    flights: Box<[InFlight<'p>]>,
    blocks: Box<[ControlBlock]>,
    // Addresses of `blocks` in one call.
    addresses: Vec<*mut ControlBlock>,
    // Slots submitted since the last commit.
    fresh: Vec<u32>,
    events: Box<[Event]>,
    // Events in `events` that were read, and their number.
    taken: usize,
    ready: usize,
    in_flight: usize,
    depth: usize,
    // Maximum number of operations per call.
    batch: usize,
    // Completions to wait for.
    least: usize,
}

/// `aio_context_t`. The kernel completes all operations before it destroys the context.
struct Context(libc::c_ulong);

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context was created by io_setup(2) and is destroyed once. io_destroy(2) waits
        // for all operations, so no buffer is in use afterwards.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

impl<'p> Aio<'p> {
    /// Opens the files of a worker and sets up a context for `slots` operations.
    ///
    /// # Errors
    /// [`Fault`] with [`Operation::Aio`] if the context cannot be set up, other faults if the
    /// file cannot be opened.
    pub(crate) fn open(
        stream: &Stream,
        aio: phase::Aio,
        paths: &[PathBuf],
        mode: AccessMode,
        slots: usize,
    ) -> Result<Self, Fault> {
        let files = QueueFiles::open(stream, paths, mode)?;
        let depth = aio.depth as usize;
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes the context to this variable.
        let answer = unsafe {
            libc::syscall(libc::SYS_io_setup, libc::c_long::from(aio.depth), &raw mut context)
        };
        if answer != 0 {
            return Err(Fault::whole(Operation::Aio, sync::last_errno()));
        }
        let batch = if aio.submit_batch == 0 { depth } else { aio.submit_batch as usize };
        let Completions { min, max, .. } = aio.completions;
        let most = if max == 0 { batch } else { max as usize };
        Ok(Self {
            context: Context(context),
            files,
            flights: (0..slots).map(|_| InFlight { op: None, moved: 0 }).collect(),
            blocks: vec![ControlBlock::default(); slots].into(),
            addresses: Vec::with_capacity(slots),
            fresh: Vec::with_capacity(slots),
            events: vec![Event::default(); most.max(min as usize).clamp(1, depth)].into(),
            taken: 0,
            ready: 0,
            in_flight: 0,
            depth,
            batch,
            least: min as usize,
        })
    }

    /// Fills the control block of a slot for the rest of its operation.
    fn fill(&mut self, slot: u32) {
        let flight = &mut self.flights[slot as usize];
        let op = flight.op.as_mut().expect("an operation is stored before its block is filled");
        let rest = &mut op.buffer[flight.moved..op.len];
        let (descriptor, first) = self.files.place(op.offset);
        self.blocks[slot as usize] = ControlBlock {
            data: u64::from(slot),
            code: if op.kind == Kind::Read { READ } else { WRITE },
            descriptor: descriptor.cast_unsigned(),
            bytes: rest.len().min(MOST) as u64,
            buffer: rest.as_mut_ptr() as u64,
            offset: (op.offset - first + flight.moved as u64).cast_signed(),
            ..ControlBlock::default()
        };
    }

    /// Submits all fresh operations.
    fn submit_fresh(&mut self) -> Result<(), IoFault> {
        for place in 0..self.fresh.len() {
            self.fill(self.fresh[place]);
        }
        self.addresses.clear();
        let blocks = self.blocks.as_mut_ptr();
        // SAFETY: slots are indices of `blocks`.
        self.addresses.extend(self.fresh.iter().map(|slot| unsafe { blocks.add(*slot as usize) }));
        let mut done = 0;
        while done < self.addresses.len() {
            let left = self.addresses.len() - done;
            // SAFETY: the addresses are of control blocks that live as long as `self`. Their
            // buffers belong to operations in the table, which no other code accesses until their
            // completion, and `Context` waits for all of them.
            let answer = unsafe {
                libc::syscall(
                    libc::SYS_io_submit,
                    self.context.0,
                    left as libc::c_long,
                    self.addresses.as_mut_ptr().add(done),
                )
            };
            match usize::try_from(answer) {
                Ok(taken) if taken > 0 => done += taken,
                Ok(_) => return Err(queue_fault(Operation::Aio, Errno::AGAIN)),
                Err(_) => match sync::last_errno() {
                    Errno::INTR | Errno::AGAIN => {}
                    // The call fails only for its first operation.
                    errno => {
                        let slot = self.fresh[done] as usize;
                        let op = self.flights[slot].op.as_ref();
                        let operation = op.map_or(Operation::Aio, |op| op.kind.operation());
                        return Err(queue_fault(operation, errno));
                    }
                },
            }
        }
        self.fresh.clear();
        Ok(())
    }

    /// Waits for at least `least` events, at most `timeout`.
    fn collect(&mut self, least: usize, timeout: Option<libc::timespec>) -> Result<(), IoFault> {
        (self.taken, self.ready) = (0, 0);
        let least = least.min(self.in_flight).min(self.events.len()).max(1);
        let mut timeout = timeout;
        loop {
            let time = timeout.as_mut().map_or(ptr::null_mut(), ptr::from_mut);
            // SAFETY: the kernel writes at most this number of events to the array, and reads the
            // time, which live during the call.
            let answer = unsafe {
                libc::syscall(
                    libc::SYS_io_getevents,
                    self.context.0,
                    least as libc::c_long,
                    self.events.len() as libc::c_long,
                    self.events.as_mut_ptr(),
                    time,
                )
            };
            match usize::try_from(answer) {
                Ok(ready) => {
                    self.ready = ready;
                    return Ok(());
                }
                Err(_) => match sync::last_errno() {
                    Errno::INTR => {}
                    errno => return Err(queue_fault(Operation::Aio, errno)),
                },
            }
        }
    }
}

fn queue_fault(operation: Operation, errno: Errno) -> IoFault {
    IoFault { operation, moved: 0, cause: Cause::Os(errno) }
}

impl<'p> IoEngine<'p> for Aio<'p> {
    const QUEUES: bool = true;

    #[inline]
    fn submit(&mut self, op: Op<'p>) -> Submitted<'p> {
        if self.in_flight >= self.depth || self.fresh.len() >= self.batch {
            return Submitted::Full(op);
        }
        let slot = op.slot;
        self.flights[slot as usize] = InFlight { op: Some(op), moved: 0 };
        self.fresh.push(slot);
        self.in_flight += 1;
        Submitted::Queued
    }

    fn commit(&mut self) -> Result<(), IoFault> {
        self.submit_fresh()
    }

    fn reap(&mut self, wait: Wait) -> Result<bool, IoFault> {
        if !self.fresh.is_empty() {
            self.submit_fresh()?;
        }
        match wait {
            Wait::No => return Ok(false),
            Wait::Some => self.collect(self.least, None)?,
            Wait::Until(instant) => {
                let left = Nanos(instant.0.saturating_sub(now().0));
                let seconds = libc::time_t::try_from(left.0 / 1_000_000_000);
                let part = libc::c_long::try_from(left.0 % 1_000_000_000);
                let left = libc::timespec {
                    tv_sec: seconds.unwrap_or(libc::time_t::MAX),
                    tv_nsec: part.unwrap_or_default(),
                };
                self.collect(1, Some(left))?;
            }
        }
        Ok(self.ready > 0)
    }

    fn next(&mut self) -> Option<Completion<'p>> {
        while self.taken < self.ready {
            let Event { data, result, .. } = self.events[self.taken];
            self.taken += 1;
            #[expect(clippy::cast_possible_truncation, reason = "the number of a slot")]
            let slot = data as u32;
            let flight = &mut self.flights[slot as usize];
            let op = flight.op.as_ref().expect("an event is of an operation in flight");
            let operation = op.kind.operation();
            let (moved, cause) = match usize::try_from(result) {
                Ok(0) => (flight.moved, Some(Cause::Nothing)),
                Ok(bytes) => (flight.moved + bytes, None),
                Err(_) => {
                    let errno = i32::try_from(-result).unwrap_or(libc::EIO);
                    (flight.moved, Some(Cause::Os(Errno::from_raw_os_error(errno))))
                }
            };
            flight.moved = moved;
            let again = match cause {
                None => moved < op.len,
                Some(Cause::Os(Errno::INTR | Errno::AGAIN)) => true,
                Some(_) => false,
            };
            if again {
                self.fresh.push(slot);
                continue;
            }
            self.in_flight -= 1;
            let op = flight.op.take().expect("checked above");
            let result = match cause {
                None => Ok(()),
                Some(cause) => Err(IoFault { operation, moved: moved as u64, cause }),
            };
            return Some(Completion { op, result });
        }
        None
    }

    fn begin_pass(&mut self, calls: &PassCalls, point: PassPoint) -> Result<(), Fault> {
        self.files.begin_pass(calls, point)
    }

    fn change_file(&mut self, calls: &PassCalls, change: FileChange) -> Result<(), Fault> {
        self.files.change(calls, change)
    }

    fn make_durable(&mut self, call: SyncCall, range: (u64, u64)) -> Result<(), Fault> {
        self.files.make_durable(call, range)
    }

    fn close(self) -> Result<(), Fault> {
        let Self { context, mut files, .. } = self;
        drop(context);
        files.close()
    }
}
