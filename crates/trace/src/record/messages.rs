//! Order between tasks that exchange data without files below the root: through pipes, connected
//! sockets, event counters, and futexes.
//!
//! What a task does after it received data may depend on what the sender did before. A receive is
//! therefore recorded as a wait for the operations of the sender that had ended when it sent. The
//! recorder does not know which data arrives: a task waits for all tasks that sent through the same
//! object before. The end of the data of a pipe is a wait for all that its senders have done,
//! because it is noticed before their ends are.

use std::collections::{BTreeMap, HashMap};

use model::phase::FileCall;

use super::{
    Recorder,
    entry::{Call, Pending, Then, fd},
    memory::Memory,
    process::Tracee,
    sockets::Sockets,
    tasks::Tasks,
};
use crate::Op;

/// Object through which tasks exchange data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Object {
    /// Pipe or FIFO: device and inode.
    Pipe(u64, u64),
    /// Socket that sends data, or receives data of its peers, by its inode.
    Socket(u64),
    /// Event counter of eventfd(2).
    Event(u64),
    /// Futex of a process, by its address.
    Futex(i32, u64),
}

/// Data that was sent through all objects.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// Last send of each task: the number of operations that it had done, and the time.
    sent: HashMap<Object, BTreeMap<usize, (usize, u64)>>,
    /// Number of operations of another task that a task waits for, by both.
    awaited: HashMap<(usize, usize), usize>,
    sockets: Sockets,
    /// Threads by their process and the address where the kernel clears their ID when they end.
    ends: HashMap<(i32, u64), usize>,
}

/// Commands of futex(2) (include/uapi/linux/futex.h).
mod futex {
    pub(super) const WAIT: u64 = 0;
    pub(super) const WAKE: u64 = 1;
    pub(super) const REQUEUE: u64 = 3;
    pub(super) const CMP_REQUEUE: u64 = 4;
    pub(super) const WAKE_OP: u64 = 5;
    pub(super) const LOCK_PI: u64 = 6;
    pub(super) const UNLOCK_PI: u64 = 7;
    pub(super) const WAIT_BITSET: u64 = 9;
    pub(super) const WAKE_BITSET: u64 = 10;
    pub(super) const WAIT_REQUEUE_PI: u64 = 11;
    pub(super) const CMP_REQUEUE_PI: u64 = 12;
    pub(super) const LOCK_PI2: u64 = 13;
    /// Command without its flags.
    pub(super) const COMMAND: u64 = 0x7f;
}

impl Call<'_> {
    /// Read from a descriptor that is not recorded.
    pub(super) fn receive(&mut self, from: i32) -> Option<Pending> {
        self.source(from).map(|object| wait(Then::Receive(object)))
    }

    /// Object that data is received from.
    pub(super) fn source(&mut self, from: i32) -> Option<Object> {
        self.recorder.channel(self.memory, from)
    }

    /// Write to a descriptor that is not recorded.
    pub(super) fn send(&mut self, to: i32) {
        if let Some(object) = self.recorder.channel(self.memory, to) {
            self.recorder.send(self.tracee.task, object);
        }
    }
}

fn wait(then: Then) -> Pending {
    Pending { op: Some(Op::new(FileCall::Wait)), then }
}

impl Recorder {
    /// Object that a descriptor refers to. The peer of a socket is looked for.
    pub(super) fn channel(&mut self, memory: &dyn Memory, descriptor: i32) -> Option<Object> {
        let object = memory.channel(descriptor);
        if let Some(Object::Socket(socket)) = object {
            self.messages.sockets.find(socket, || memory.addresses(descriptor));
        }
        object
    }

    /// Last sends of all tasks whose data may have been received from an object: the number of
    /// operations that each had done, and the time.
    fn sends_to(&mut self, object: Object) -> BTreeMap<usize, (usize, u64)> {
        let Messages { sent, sockets, .. } = &mut self.messages;
        let Object::Socket(socket) = object else {
            return sent.get(&object).cloned().unwrap_or_default();
        };
        // A server may have accepted the connection while this task waited.
        sockets.find(socket, || None);
        let mut all = BTreeMap::<usize, (usize, u64)>::new();
        for (task, one) in
            sockets.peers(socket).filter_map(|it| sent.get(&Object::Socket(it))).flatten()
        {
            let last = all.entry(*task).or_insert(*one);
            *last = (*last).max(*one);
        }
        all
    }

    fn send(&mut self, task: usize, object: Object) {
        let now = self.now();
        let Messages { sent, awaited, .. } = &mut self.messages;
        let sent = sent.entry(object).or_default();
        // A wait for this task includes the waits of this task.
        sent.retain(|other, (count, _)| awaited.get(&(task, *other)).is_none_or(|it| it < count));
        let (mut sender, mut count, mut time) = (task, self.operations(task), now);
        loop {
            let sent = self.messages.sent.entry(object).or_default();
            let last = sent.entry(sender).or_insert((count, time));
            if count > last.0 {
                *last = (count, time);
            }
            // A task without operations has those of its creator before it.
            let Some(creator) = self.tasks[sender].created_after.filter(|_| count == 0) else {
                break;
            };
            time = self.tasks[sender].begin;
            (sender, count) = creator;
        }
    }

    /// Two sockets were connected to each other.
    pub(super) fn add_pair(&mut self, memory: &dyn Memory, address: u64) {
        let Some(both) = memory.number(address) else { return };
        let socket = |number| match memory.channel(fd(number)) {
            Some(Object::Socket(inode)) => Some(inode),
            _ => None,
        };
        if let (Some(first), Some(second)) = (socket(both), socket(both >> 32)) {
            self.messages.sockets.connect(first, second);
        }
    }

    /// A thread was created. The kernel clears its ID at an address when it ends.
    pub(super) fn add_thread(&mut self, process: i32, address: u64, task: usize) {
        self.messages.ends.insert((process, address), task);
    }

    /// Notes that a task waits for all operations of another one.
    pub(super) fn add_wait(&mut self, task: usize, other: usize) {
        let count = self.operations(other);
        self.messages.awaited.insert((task, other), count);
    }
}

impl Tasks {
    /// Call of futex(2).
    pub(super) fn futex(&mut self, tracee: &Tracee, args: [u64; 6]) -> Option<Pending> {
        let object = |address| Object::Futex(tracee.process, address);
        match args[1] & futex::COMMAND {
            futex::WAIT
            | futex::WAIT_BITSET
            | futex::WAIT_REQUEUE_PI
            | futex::LOCK_PI
            | futex::LOCK_PI2 => {
                // pthread_join(3) waits until the kernel clears the ID of the thread.
                let thread = self.recorder.messages.ends.get(&(tracee.process, args[0]));
                Some(wait(match thread {
                    Some(thread) => Then::Join(*thread),
                    None => Then::Receive(object(args[0])),
                }))
            }
            futex::WAKE | futex::UNLOCK_PI | futex::WAKE_BITSET => {
                self.recorder.send(tracee.task, object(args[0]));
                None
            }
            futex::REQUEUE | futex::CMP_REQUEUE | futex::WAKE_OP | futex::CMP_REQUEUE_PI => {
                self.recorder.send(tracee.task, object(args[0]));
                self.recorder.send(tracee.task, object(args[4]));
                None
            }
            _ => None,
        }
    }

    /// Records the waits of a task that received data.
    pub(super) fn received(
        &mut self,
        tracee: &Tracee,
        object: Object,
        result: i64,
        op: Option<Op>,
    ) {
        let ended = match object {
            Object::Pipe(..) | Object::Socket(_) | Object::Event(_) if result < 0 => return,
            // The value had changed already (EAGAIN): the task does not wait, but continues.
            Object::Futex(..) if result < 0 && result != -i64::from(libc::EAGAIN) => return,
            Object::Pipe(..) | Object::Socket(_) => result == 0,
            Object::Event(_) | Object::Futex(..) => false,
        };
        let senders = self.recorder.sends_to(object);
        let Some(mut op) = op else { return };
        for (sender, (count, time)) in senders {
            let (count, until) = match ended {
                true => (self.recorder.operations(sender), self.recorder.now()),
                false => (count, time),
            };
            if self.follow(tracee.task, sender, count, Op { offset: until, ..op }) {
                // The pause was before the first wait.
                op.think = 0;
            }
        }
    }

    /// Records the wait of a task that joined a thread.
    pub(super) fn joined(&mut self, tracee: &Tracee, thread: usize, result: i64, op: Option<Op>) {
        let returned = result == 0 || result == -i64::from(libc::EAGAIN);
        if let Some(op) = op.filter(|_| returned) {
            self.follow(tracee.task, thread, self.recorder.operations(thread), op);
        }
    }

    /// Records a wait for the first operations of another task, unless the task waited for them
    /// before. Returns true if it was recorded.
    fn follow(&mut self, task: usize, other: usize, count: usize, op: Op) -> bool {
        let awaited = self.recorder.messages.awaited.entry((task, other)).or_default();
        if task == other || count <= *awaited {
            return false;
        }
        *awaited = count;
        let (begin, size) = (self.recorder.now(), other as u64 + 1);
        self.recorder.push(task, Op { begin, length: 0, size, result: 0, ..op });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: Object = Object::Event(1);

    fn operations(recorder: &mut Recorder, task: usize, count: usize) {
        (0..count).for_each(|_| recorder.push(task, Op::new(FileCall::Fsync)));
    }

    /// Creator with three operations, then its child, then two more operations.
    fn family() -> (Recorder, usize, usize) {
        let mut recorder = Recorder::of_log(Vec::new());
        let creator = recorder.add_task(None, None, "creator".into());
        operations(&mut recorder, creator, 3);
        let child = recorder.add_task(Some(creator), None, "child".into());
        operations(&mut recorder, creator, 2);
        (recorder, creator, child)
    }

    fn count(recorder: &Recorder, task: usize) -> Option<usize> {
        recorder.messages.sent[&OBJECT].get(&task).map(|(count, _)| *count)
    }

    #[test]
    fn a_child_without_operations_sends_those_of_its_creator_before_it() {
        let (mut recorder, creator, child) = family();
        recorder.send(child, OBJECT);
        assert_eq!((count(&recorder, child), count(&recorder, creator)), (Some(0), Some(3)));
        // A later send of the creator itself is not replaced.
        recorder.send(creator, OBJECT);
        recorder.send(child, OBJECT);
        assert_eq!(count(&recorder, creator), Some(5));
        // With its own operations, it begins after those of its creator.
        let (mut recorder, creator, child) = family();
        operations(&mut recorder, child, 1);
        recorder.send(child, OBJECT);
        assert_eq!((count(&recorder, child), count(&recorder, creator)), (Some(1), None));
    }

    #[test]
    fn a_sender_stands_for_the_senders_that_it_waits_for() {
        let (mut recorder, creator, child) = family();
        let other = recorder.add_task(None, None, "other".into());
        operations(&mut recorder, other, 4);
        recorder.send(other, OBJECT);
        recorder.add_wait(creator, other);
        // The wait was after the creation of the child.
        recorder.send(child, OBJECT);
        assert_eq!(count(&recorder, other), Some(4));
        recorder.send(creator, OBJECT);
        assert_eq!(count(&recorder, other), None);
        operations(&mut recorder, other, 1);
        recorder.send(other, OBJECT);
        recorder.send(creator, OBJECT);
        assert_eq!(count(&recorder, other), Some(5));
    }
}
