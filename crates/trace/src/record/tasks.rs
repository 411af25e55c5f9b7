//! Tasks of a recorded program: their calls, their creation, the programs that they execute, and
//! their ends. The source of these events is ptrace(2), or a log.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use model::phase::FileCall;
use sys::ptrace::Syscall;

use super::{
    Recorder,
    entry::{self, Pending, Then},
    memory::Memory,
    messages::Object,
    process::{Clock, Tracee},
};
use crate::{
    NONE, Op,
    check::TRANSFER,
    descriptors::{Held, Place},
};

/// Most bytes that the kernel transfers in a call (`MAX_RW_COUNT`, include/linux/fs.h). A log may
/// have any number.
const TRANSFERRED: i64 = 0x7fff_f000;

/// Flags of clone(2).
const CLONE_FS: u64 = 0x200;
const CLONE_FILES: u64 = 0x400;
const CLONE_THREAD: u64 = 0x1_0000;
const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;

/// Tasks that run, and what was recorded of all tasks.
pub(crate) struct Tasks {
    pub(crate) recorder: Recorder,
    /// Threads by their IDs.
    pub(crate) tracees: HashMap<i32, Box<Tracee>>,
    /// Tasks of processes that ended, by their IDs, until their parents have waited for them.
    pub(crate) ended: HashMap<i32, usize>,
}

impl Tasks {
    /// Registers the first task, with its working directory and its mask.
    pub(crate) fn first(
        &mut self,
        tid: i32,
        name: String,
        (directory, umask): (Vec<u8>, u32),
        clock: Clock,
    ) {
        let task = self.recorder.add_task(None, None, name);
        let below = self.recorder.root.below(&directory).filter(|rest| rest != b".");
        let mut slot = NONE;
        if let Some(rest) = below {
            let path = self.recorder.paths.number(&rest);
            slot = self.recorder.slots.open(directory.clone());
            self.recorder.push(task, Op { path, opened: slot, ..Op::new(FileCall::Chdir) });
        }
        let place = Rc::new(RefCell::new(Place { path: directory, slot, umask }));
        let tracee = Tracee::new(task, tid, Rc::default(), place, clock);
        self.tracees.insert(tid, Box::new(tracee));
    }

    /// Begins a call. Returns `None` if its end does not matter.
    pub(crate) fn entry(
        &mut self,
        tracee: &mut Tracee,
        memory: &dyn Memory,
        syscall: &Syscall,
    ) -> Option<Pending> {
        self.special(tracee, memory, syscall)
            .unwrap_or_else(|| entry::decode(&mut self.recorder, tracee, memory, syscall))
    }

    /// Handles calls that close descriptors, create tasks, or are not recorded. Returns `None` for
    /// all other calls.
    fn special(
        &mut self,
        tracee: &mut Tracee,
        memory: &dyn Memory,
        syscall: &Syscall,
    ) -> Option<Option<Pending>> {
        let Syscall { args, .. } = *syscall;
        let slot = |number: u64| {
            let number = (number & 0xffff_ffff) as u32 as i32;
            tracee.table.borrow().get(&number).copied()
        };
        match syscall.number.cast_signed() {
            libc::SYS_close => {
                let number = (args[0] & 0xffff_ffff) as u32 as i32;
                let held = tracee.table.borrow_mut().remove(&number);
                let Some(held) = held else { return Some(None) };
                if self.recorder.slots.drop(held.slot) {
                    let op = Op { fd: held.slot, ..Op::new(FileCall::Close) };
                    return Some(Some(Pending { op: Some(op), then: Then::Nothing }));
                }
                self.recorder.leave_out("close of a descriptor that another process has open");
            }
            libc::SYS_close_range => {
                const CLOEXEC: u64 = 4;
                let range = args[0]..=args[1];
                let numbers: Vec<i32> = tracee.table.borrow().keys().copied().collect();
                for number in numbers {
                    if !range.contains(&u64::from(number.cast_unsigned())) {
                        continue;
                    }
                    if args[2] & CLOEXEC != 0 {
                        if let Some(held) = tracee.table.borrow_mut().get_mut(&number) {
                            held.cloexec = true;
                        }
                        continue;
                    }
                    let held = tracee.table.borrow_mut().remove(&number);
                    if let Some(held) = held {
                        self.release(tracee, held.slot);
                    }
                }
            }
            libc::SYS_io_uring_setup
            | libc::SYS_io_setup
            | libc::SYS_sched_getaffinity
            | libc::SYS_sched_setaffinity => {}
            libc::SYS_futex => return Some(self.futex(tracee, args)),
            // The order of the arguments is that of x86-64.
            libc::SYS_clone => (tracee.clone_flags, tracee.clone_tid) = (args[0], args[3]),
            libc::SYS_clone3 => {
                // Offset of child_tid in struct clone_args (include/uapi/linux/sched.h).
                const TID: u64 = 16;
                let field = |at| memory.number(args[0].wrapping_add(at)).unwrap_or(0);
                (tracee.clone_flags, tracee.clone_tid) = (field(0), field(TID));
            }
            libc::SYS_unshare => {
                if args[0] & CLONE_FILES != 0 {
                    tracee.table = self.recorder.slots.copy(&tracee.table);
                }
                if args[0] & CLONE_FS != 0 {
                    tracee.place = self.recorder.slots.copy_place(&tracee.place);
                }
            }
            libc::SYS_getdents if slot(args[0]).is_some() => self.recorder.leave_out("getdents"),
            libc::SYS_open_by_handle_at => self.recorder.leave_out("open_by_handle_at"),
            libc::SYS_getdents => {}
            _ => return None,
        }
        Some(None)
    }

    /// Records a call that returned.
    pub(crate) fn complete(
        &mut self,
        tracee: &Tracee,
        memory: &dyn Memory,
        pending: Pending,
        (result, end): (i64, u64),
    ) {
        let Pending { op, then } = pending;
        // A clone that was refused has no effect. The copy that the program makes instead is
        // recorded.
        let op = op.filter(|op| op.call != FileCall::Clone || result >= 0);
        let mut op = op.map(|op| Op { result, length: end.saturating_sub(op.begin), ..op });
        let number = i32::try_from(result).unwrap_or(-1);
        match then {
            Then::Nothing => {}
            // A failure may be due to the other file.
            Then::Transfer(source) => {
                op = op.filter(|op| (0..=TRANSFERRED).contains(&op.result));
                let count = self.recorder.operations(tracee.task);
                if let (Some(op), Some(object)) = (&mut op, source) {
                    let wait = Op { think: op.think, ..Op::new(FileCall::Wait) };
                    self.received(tracee, object, result, Some(wait));
                    if self.recorder.operations(tracee.task) > count {
                        // The data arrived during the call.
                        (op.begin, op.length, op.think) = (self.recorder.now(), 0, 0);
                    }
                }
                op = op.map(|op| self.transferred(tracee.task, op));
            }
            Then::Pair(address) if result == 0 => self.recorder.add_pair(memory, address),
            Then::Pair(_) => {}
            Then::Accept => {
                self.recorder.channel(memory, number);
            }
            // Another file has the name: the error of mknod(2). Other errors may have other causes.
            Then::Name if number == -libc::EADDRINUSE => {
                op = op.map(|op| Op { result: -i64::from(libc::EEXIST), ..op });
            }
            Then::Name => op = op.filter(|op| op.succeeded()),
            // FIFOs are channels between tasks, as pipes are.
            Then::Bind { .. } if self.opens_fifo(memory, op.as_ref(), number) => op = None,
            Then::Bind { cloexec, path } => {
                if let (Some(op), true) = (&mut op, number >= 0) {
                    op.opened = self.recorder.slots.open(path);
                    let held = Held { slot: op.opened, cloexec };
                    self.bind(tracee, number, held);
                }
            }
            Then::Duplicate { recorded, cloexec } if number >= 0 => {
                let replaced = tracee.table.borrow_mut().remove(&number);
                if let Some(held) = replaced {
                    self.release(tracee, held.slot);
                    // The release ended later than the call.
                    if let Some(op) = &mut op {
                        (op.begin, op.length) = (self.recorder.now(), 0);
                    }
                }
                if let (Some(op), true) = (&mut op, recorded) {
                    let path = self.recorder.slots.path(op.fd).map(<[u8]>::to_vec);
                    op.opened = self.recorder.slots.open(path.unwrap_or_default());
                    tracee.table.borrow_mut().insert(number, Held { slot: op.opened, cloexec });
                }
            }
            Then::Duplicate { .. } => {}
            Then::Chdir => op = self.chdir(memory, tracee, op, result),
            Then::Wait(status) => op = self.waited(memory, tracee, op, status, result),
            Then::Receive(object) => return self.received(tracee, object, result, op),
            Then::Join(thread) => return self.joined(tracee, thread, result, op),
            Then::Umask(mask) => tracee.place.borrow_mut().umask = mask,
        }
        if let Some(op) = op {
            self.recorder.push(tracee.task, op);
        }
    }

    fn opens_fifo(&self, memory: &dyn Memory, op: Option<&Op>, number: i32) -> bool {
        let path_only = op.is_some_and(|op| op.flags & libc::O_PATH as u64 != 0);
        let may_be = self.recorder.fifos && number >= 0 && !path_only;
        may_be && matches!(memory.channel(number), Some(Object::Pipe(..)))
    }

    /// Operation with the size that was transferred. More than [`TRANSFER`] bytes become several
    /// operations, of which the last one is returned.
    fn transferred(&mut self, task: usize, op: Op) -> Op {
        let mut op = Op { size: op.bytes(), ..op };
        while op.size > TRANSFER {
            let part = Op { size: TRANSFER, result: TRANSFER.cast_signed(), length: 0, ..op };
            self.recorder.push(task, part);
            op.size -= TRANSFER;
            op.result = op.size.cast_signed();
            op.think = 0;
            if matches!(op.call, FileCall::Pread | FileCall::Pwrite) {
                op.offset = op.offset.saturating_add(TRANSFER);
            }
        }
        op
    }

    /// Binds a descriptor number. A number that is still bound was closed by a call that is not
    /// recorded.
    fn bind(&mut self, tracee: &Tracee, number: i32, held: Held) {
        let old = tracee.table.borrow_mut().insert(number, held);
        if let Some(old) = old {
            self.recorder.slots.drop(old.slot);
        }
    }

    /// Wait for the end of a process. It begins and ends now, because the process has ended before.
    /// `None` if nothing was recorded of the process.
    fn waited(
        &mut self,
        memory: &dyn Memory,
        tracee: &Tracee,
        op: Option<Op>,
        status: Option<u64>,
        result: i64,
    ) -> Option<Op> {
        /// Offset of `si_pid` in `siginfo_t` (include/uapi/asm-generic/siginfo.h).
        const PID: u64 = 16;
        let process = match status {
            None => i32::try_from(result).ok()?,
            Some(address) if result == 0 && address != 0 => {
                let mut bytes = [0; 4];
                memory.read(address.wrapping_add(PID), &mut bytes);
                i32::from_ne_bytes(bytes)
            }
            Some(_) => return None,
        };
        let task = self.ended.remove(&process)?;
        if self.recorder.operations(task) == 0 {
            return None;
        }
        self.recorder.add_wait(tracee.task, task);
        let begin = self.recorder.now();
        let size = task as u64 + 1;
        op.map(|op| Op { begin, length: 0, size, result: 0, ..op })
    }

    /// Changes the working directory after a successful call.
    fn chdir(
        &mut self,
        memory: &dyn Memory,
        tracee: &Tracee,
        op: Option<Op>,
        result: i64,
    ) -> Option<Op> {
        if result < 0 {
            return op;
        }
        let path = memory.directory()?;
        let old = tracee.place.borrow().slot;
        let below = self.recorder.root.below(&path);
        let inside = below.as_ref().is_some_and(|rest| rest != b".");
        let mut op = op;
        let slot = match (&mut op, inside) {
            (Some(op), true) => {
                op.opened = self.recorder.slots.open(path.clone());
                op.opened
            }
            _ => NONE,
        };
        {
            let mut place = tracee.place.borrow_mut();
            (place.path, place.slot) = (path, slot);
        }
        if old != NONE && self.recorder.slots.drop(old) {
            // Recorded after the change itself.
            if let Some(op) = op {
                self.recorder.push(tracee.task, op);
            }
            self.release_now(tracee.task, old);
            return None;
        }
        op
    }

    /// Removes a reference to a descriptor that is closed without a call.
    fn release(&mut self, tracee: &Tracee, slot: u32) {
        if self.recorder.slots.drop(slot) {
            self.release_now(tracee.task, slot);
        }
    }

    fn release_now(&mut self, task: usize, slot: u32) {
        let begin = self.recorder.now();
        self.recorder.push(task, Op { fd: slot, begin, ..Op::new(FileCall::Release) });
    }

    /// A thread created another one. `name` is the name of the program of a process, and `clock`
    /// the source of the CPU time of a process and thread.
    pub(crate) fn created(
        &mut self,
        parent: i32,
        child: i32,
        name: impl Fn(i32) -> String,
        clock: impl Fn(i32, i32) -> Clock,
    ) {
        let Some(from) = self.tracees.get_mut(&parent) else { return };
        let (flags, address) = (std::mem::take(&mut from.clone_flags), from.clone_tid);
        let thread = flags & CLONE_THREAD != 0;
        let (of, from_task) = (from.process, from.task);
        let table = match flags & CLONE_FILES {
            0 => self.recorder.slots.copy(&from.table),
            _ => from.table.clone(),
        };
        let place = match flags & CLONE_FS {
            0 => self.recorder.slots.copy_place(&from.place),
            _ => from.place.clone(),
        };
        if thread {
            from.split();
        }
        let process = if thread { of } else { child };
        let leader = self.tracees.get(&of).map(|leader| leader.task);
        let leader = if thread { leader.or(Some(from_task)) } else { None };
        let task = self.recorder.add_task(Some(from_task), leader, name(process));
        if thread && flags & CLONE_CHILD_CLEARTID != 0 {
            self.recorder.add_thread(process, address, task);
        }
        let clock = clock(process, child);
        let tracee = Tracee::new(task, process, table, place, clock);
        self.tracees.insert(child, Box::new(tracee));
    }

    /// A process executed a program: descriptors are closed, and other threads have ended.
    pub(crate) fn executed(&mut self, tid: i32, former: i32, name: String) {
        if former != tid && former != 0 {
            self.ended(tid);
            if let Some(tracee) = self.tracees.remove(&former) {
                self.tracees.insert(tid, Box::new(tracee.renumbered(tid)));
            }
        }
        let Some(mut tracee) = self.tracees.remove(&tid) else { return };
        tracee.pending = None;
        // execve(2) unshares the table.
        if Rc::strong_count(&tracee.table) > 1 {
            tracee.table = self.recorder.slots.copy(&tracee.table);
        }
        let closed: Vec<(i32, u32)> = {
            let table = tracee.table.borrow();
            let closed = table.iter().filter(|(_, held)| held.cloexec);
            closed.map(|(number, held)| (*number, held.slot)).collect()
        };
        for (number, slot) in closed {
            tracee.table.borrow_mut().remove(&number);
            self.release(&tracee, slot);
        }
        self.recorder.tasks[tracee.task].name = name;
        self.tracees.insert(tid, tracee);
    }

    /// A thread ended. Its descriptors are closed unless others share them.
    pub(crate) fn ended(&mut self, tid: i32) {
        let Some(tracee) = self.tracees.remove(&tid) else { return };
        if tracee.process == tid {
            self.ended.insert(tid, tracee.task);
        }
        if Rc::strong_count(&tracee.table) == 1 {
            let slots: Vec<u32> = tracee.table.borrow().values().map(|held| held.slot).collect();
            for slot in slots {
                self.release(&tracee, slot);
            }
        }
        if Rc::strong_count(&tracee.place) == 1 {
            let slot = tracee.place.borrow().slot;
            if slot != NONE {
                self.release(&tracee, slot);
            }
        }
    }
}
