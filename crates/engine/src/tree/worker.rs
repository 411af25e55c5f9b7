//! One worker of a tree: directories, barrier, and the loop over its files.

use std::{
    ffi::{CStr, OsStr},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::atomic::Ordering::Relaxed,
};

use model::{
    Bytes, Histogram, Nanos, Ops,
    phase::{Latencies, Moved, Stonewall, Tree, TreeOrder, TreeStep, WorkerResult},
};
use rustix::{
    fs::{AtFlags, Mode, OFlags, RawDir, fsync, mkdir, mkdirat, open, openat},
    io::{Errno, pread, pwrite},
};

use super::{data::Data, names::Names};
use crate::{
    EngineError,
    barrier::{ABORT, Board},
    clock::{Usage, now},
    error::{Fault, Operation},
    io::close,
    seat,
    series::Recorder,
};

/// Room for the names that one getdents64(2) answers: what the C library takes for readdir(3).
const LISTING: usize = 32 << 10;

/// Does the work of one worker in the calling thread.
pub(super) fn perform(
    tree: &Tree,
    worker: u32,
    directory: &Path,
    board: &Board,
) -> Result<WorkerResult, EngineError> {
    let root = directory.join(format!("{}.{worker}", tree.name));
    seat::sit(tree.workers, worker).map_err(|fault| error(fault, root.clone()))?;
    let mut hand = Hand::new(tree, worker, &root)?;
    let order = order(tree, worker)?;
    let mut count = Count::new(tree);
    board.arrive().map_err(|fault| error(fault, root.clone()))?;

    let before = Usage::of_this_thread();
    count.start(now());
    let complete = run(tree, worker, &mut hand, &order, &mut count, board)?;
    if complete && tree.workers.stonewall != Stonewall::Off {
        board.stop();
    }
    let usage = Usage::of_this_thread().since(before);
    board.lane(worker).end(count.clock);
    Ok(count.finish(worker, usage))
}

/// The loop; whether all of it counted.
fn run(
    tree: &Tree,
    worker: u32,
    hand: &mut Hand<'_>,
    order: &[u64],
    count: &mut Count,
    board: &Board,
) -> Result<bool, EngineError> {
    let (lane, signal) = (board.lane(worker), board.signal());
    let (mut moved, mut done) = (0, 0);
    for place in 0..tree.files {
        let file = match usize::try_from(place).ok().and_then(|place| order.get(place)) {
            Some(file) => *file,
            None => place,
        };
        hand.turn_to(file, tree.per_directory);
        for (index, step) in tree.steps.iter().enumerate() {
            if let Err(fault) = hand.step(*step, index) {
                return Err(error(fault, hand.path(*step)));
            }
        }
        let (read, written) = hand.take_moved();
        let clock = now();
        moved += read + written;
        done += 1;
        lane.bytes.store(moved, Relaxed);
        lane.done.store(done, Relaxed);
        let signal = signal.load(Relaxed);
        if signal & ABORT != 0 {
            return Err(EngineError::Interrupted);
        }
        if signal != 0 {
            count.stop(clock);
        }
        count.add(clock, read, written);
        if count.stopped && tree.workers.stonewall != Stonewall::Finish {
            break;
        }
    }
    Ok(!count.stopped)
}

/// The order of files; empty for that of their numbers.
fn order(tree: &Tree, worker: u32) -> Result<Vec<u64>, EngineError> {
    if tree.order == TreeOrder::Created {
        return Ok(Vec::new());
    }
    let mut order = Vec::new();
    let room = usize::try_from(tree.files).map(|files| order.try_reserve_exact(files));
    if !matches!(room, Ok(Ok(()))) {
        return Err(memory("file order", tree.files.saturating_mul(8)));
    }
    order.extend(0..tree.files);
    let seed = tree.seed ^ (u64::from(worker) << 32) ^ 0x7265_6530;
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    Ok(order)
}

/// Counters and clock of the loop.
struct Count {
    changes: bool,
    stopped: bool,
    started: Nanos,
    clock: Nanos,
    counted_until: Nanos,
    ops: u64,
    read: u64,
    written: u64,
    uncounted: u64,
    latency: Histogram,
    recorder: Recorder,
    border: Nanos,
}

impl Count {
    /// Allocates everything.
    fn new(tree: &Tree) -> Self {
        let zero = Nanos(0);
        Self {
            changes: tree.steps.iter().any(|step| changes(*step)),
            stopped: false,
            started: zero,
            clock: zero,
            counted_until: zero,
            ops: 0,
            read: 0,
            written: 0,
            uncounted: 0,
            latency: Histogram::new(),
            recorder: Recorder::new(),
            border: zero,
        }
    }

    fn start(&mut self, clock: Nanos) {
        (self.started, self.clock, self.counted_until) = (clock, clock, clock);
        self.border = self.recorder.start(clock);
    }

    /// Counting ends with what was done before this instant.
    fn stop(&mut self, clock: Nanos) {
        if !self.stopped {
            self.stopped = true;
            self.counted_until = clock;
        }
    }

    /// One file was done between the last such instant and this one.
    fn add(&mut self, clock: Nanos, read: u64, written: u64) {
        let begun = std::mem::replace(&mut self.clock, clock);
        if self.stopped {
            self.uncounted += written;
            return;
        }
        if clock >= self.border {
            self.border = self.recorder.roll(clock, self.ops, self.read + self.written);
        }
        self.ops += 1;
        self.read += read;
        self.written += written;
        self.latency.record(clock.0 - begun.0);
        self.counted_until = clock;
    }

    fn finish(self, worker: u32, usage: Usage) -> WorkerResult {
        let ops = |counts: bool| Ops(if counts { self.ops } else { 0 });
        let mut latencies = Latencies::default();
        *(if self.changes { &mut latencies.write } else { &mut latencies.read }) = self.latency;
        WorkerResult {
            worker,
            started: self.started,
            loop_time: self.counted_until - self.started,
            uncounted_time: self.clock - self.counted_until,
            flush_time: Nanos(0),
            close_time: Nanos(0),
            read: Moved { ops: ops(!self.changes), bytes: Bytes(self.read) },
            written: Moved { ops: ops(self.changes), bytes: Bytes(self.written) },
            uncounted: Bytes(self.uncounted),
            would_block: Ops(0),
            user_time: usage.user,
            system_time: usage.system,
            voluntary_switches: usage.voluntary,
            involuntary_switches: usage.involuntary,
            latencies,
            series: self.recorder.finish(self.ops, self.read + self.written),
        }
    }
}

/// Whether a step changes what the filesystem holds.
fn changes(step: TreeStep) -> bool {
    match step {
        TreeStep::Open | TreeStep::Read | TreeStep::Close | TreeStep::Stat | TreeStep::List => {
            false
        }
        TreeStep::Create
        | TreeStep::Write
        | TreeStep::Append
        | TreeStep::Fsync
        | TreeStep::FsyncDirectory
        | TreeStep::Chmod
        | TreeStep::Rename
        | TreeStep::RenameBack
        | TreeStep::Link
        | TreeStep::UnlinkLink
        | TreeStep::Unlink => true,
    }
}

/// What does the steps: the worker's directory, the file at hand, and memory for all of them.
struct Hand<'a> {
    path: &'a Path,
    root: OwnedFd,
    size: u64,
    // For each step that opens a file, whether it is opened for appending.
    appends: Vec<bool>,
    names: Names,
    data: Data,
    open: Option<OwnedFd>,
    listing: Box<[MaybeUninit<u8>]>,
    read: u64,
    written: u64,
}

impl<'a> Hand<'a> {
    /// Makes the directories that are not there yet.
    fn new(tree: &Tree, worker: u32, path: &'a Path) -> Result<Self, EngineError> {
        let at = |operation| move |errno| error(Fault::whole(operation, errno), path.to_path_buf());
        let mode = Mode::from_raw_mode(0o750);
        made(mkdir(path, mode)).map_err(at(Operation::MakeDirectory))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = open(path, flags, Mode::empty()).map_err(at(Operation::Open))?;
        let mut names = Names::new();
        for directory in 0..tree.files.div_ceil(tree.per_directory) {
            names.set(directory.saturating_mul(tree.per_directory), tree.per_directory);
            made(mkdirat(&root, names.directory(), mode)).map_err(|errno| {
                let fault = Fault::whole(Operation::MakeDirectory, errno);
                error(fault, joined(path, names.directory()))
            })?;
        }
        let data = Data::new(tree, worker).ok_or_else(|| memory("buffers", tree.record.0))?;
        let lists = tree.steps.contains(&TreeStep::List);
        let listing = vec![MaybeUninit::uninit(); if lists { LISTING } else { 0 }];
        Ok(Self {
            path,
            root,
            size: tree.size.0,
            appends: appends(&tree.steps),
            names,
            data,
            open: None,
            listing: listing.into_boxed_slice(),
            read: 0,
            written: 0,
        })
    }

    fn turn_to(&mut self, file: u64, per_directory: u64) {
        self.names.set(file, per_directory);
    }

    /// Bytes read and written since the last call.
    fn take_moved(&mut self) -> (u64, u64) {
        (std::mem::take(&mut self.read), std::mem::take(&mut self.written))
    }

    /// What a step was about, for errors.
    fn path(&self, step: TreeStep) -> PathBuf {
        let name = match step {
            TreeStep::FsyncDirectory | TreeStep::List => self.names.directory(),
            TreeStep::RenameBack => self.names.renamed(),
            TreeStep::UnlinkLink => self.names.link(),
            TreeStep::Create
            | TreeStep::Open
            | TreeStep::Write
            | TreeStep::Append
            | TreeStep::Read
            | TreeStep::Fsync
            | TreeStep::Close
            | TreeStep::Stat
            | TreeStep::Chmod
            | TreeStep::Rename
            | TreeStep::Link
            | TreeStep::Unlink => self.names.file(),
        };
        joined(self.path, name)
    }

    /// One step of the file at hand; `index` is its place among the steps.
    fn step(&mut self, step: TreeStep, index: usize) -> Result<(), Fault> {
        let (root, names) = (self.root.as_fd(), &self.names);
        let whole = |operation| move |errno| Fault::whole(operation, errno);
        match step {
            TreeStep::Create => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
                self.open_file(flags, index)
            }
            TreeStep::Open => self.open_file(OFlags::RDWR, index),
            TreeStep::Write => self.write(),
            TreeStep::Append => self.append(),
            TreeStep::Read => self.read(),
            TreeStep::Fsync => again(|| fsync(opened(&self.open))).map_err(whole(Operation::Flush)),
            TreeStep::FsyncDirectory => {
                let directory = self.open_directory()?;
                again(|| fsync(&directory)).map_err(whole(Operation::Flush))?;
                close(directory)
            }
            TreeStep::Close => close(self.open.take().expect("checked: a file is open")),
            TreeStep::Stat => rustix::fs::statat(root, names.file(), AtFlags::empty())
                .map(drop)
                .map_err(whole(Operation::Examine)),
            TreeStep::Chmod => {
                let mode = Mode::from_raw_mode(0o600);
                rustix::fs::chmodat(root, names.file(), mode, AtFlags::empty())
                    .map_err(whole(Operation::ChangeMode))
            }
            TreeStep::Rename => rustix::fs::renameat(root, names.file(), root, names.renamed())
                .map_err(whole(Operation::Rename)),
            TreeStep::RenameBack => rustix::fs::renameat(root, names.renamed(), root, names.file())
                .map_err(whole(Operation::Rename)),
            TreeStep::Link => {
                rustix::fs::linkat(root, names.file(), root, names.link(), AtFlags::empty())
                    .map_err(whole(Operation::Link))
            }
            TreeStep::UnlinkLink => rustix::fs::unlinkat(root, names.link(), AtFlags::empty())
                .map_err(whole(Operation::Unlink)),
            TreeStep::Unlink => rustix::fs::unlinkat(root, names.file(), AtFlags::empty())
                .map_err(whole(Operation::Unlink)),
            TreeStep::List => self.list(),
        }
    }

    fn open_file(&mut self, mut flags: OFlags, index: usize) -> Result<(), Fault> {
        flags.set(OFlags::APPEND, self.appends[index]);
        let mode = Mode::from_raw_mode(0o640);
        let file = openat(&self.root, self.names.file(), flags | OFlags::CLOEXEC, mode)
            .map_err(|errno| Fault::whole(Operation::Open, errno))?;
        self.open = Some(file);
        Ok(())
    }

    fn open_directory(&self) -> Result<OwnedFd, Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(&self.root, self.names.directory(), flags, Mode::empty())
            .map_err(|errno| Fault::whole(Operation::Open, errno))
    }

    /// The whole file, record by record.
    fn write(&mut self) -> Result<(), Fault> {
        let mut offset = 0;
        while offset < self.size {
            let left = usize::try_from(self.size - offset).unwrap_or(usize::MAX);
            offset += self.put(offset, left.min(self.data.record()))?;
        }
        Ok(())
    }

    /// One record; the kernel puts it to the end whatever offset it is given.
    fn append(&mut self) -> Result<(), Fault> {
        let mut left = self.data.record();
        while left > 0 {
            let done = self.put(self.size, left)?;
            left -= usize::try_from(done).unwrap_or(left);
        }
        Ok(())
    }

    fn put(&mut self, offset: u64, len: usize) -> Result<u64, Fault> {
        let file = opened(&self.open);
        let bytes = self.data.write(len);
        let operation = Operation::Write;
        match again(|| pwrite(file, bytes, offset)) {
            Ok(0) => Err(Fault::Nothing { operation, offset }),
            Ok(done) => {
                self.written += done as u64;
                Ok(done as u64)
            }
            Err(errno) => Err(failed(operation, offset, errno)),
        }
    }

    /// To the end of the file, which a read tells that answers less than it was asked for.
    fn read(&mut self) -> Result<(), Fault> {
        let file = opened(&self.open);
        let operation = Operation::Read;
        let record = self.data.record();
        let mut offset = 0;
        loop {
            let done = again(|| pread(file, &mut *self.data.read(), offset))
                .map_err(|errno| failed(operation, offset, errno))?;
            offset += done as u64;
            if done < record || record == 0 {
                break;
            }
        }
        self.read += offset;
        if offset < self.size {
            return Err(Fault::Nothing { operation, offset });
        }
        Ok(())
    }

    /// All names of the directory of the file.
    fn list(&mut self) -> Result<(), Fault> {
        let directory = self.open_directory()?;
        let mut entries = RawDir::new(&directory, &mut self.listing);
        while let Some(entry) = entries.next() {
            entry.map_err(|errno| Fault::whole(Operation::List, errno))?;
        }
        close(directory)
    }
}

fn opened(file: &Option<OwnedFd>) -> &OwnedFd {
    file.as_ref().expect("checked: a file is open")
}

/// For each step, whether it opens a file that is appended to before it is closed.
fn appends(steps: &[TreeStep]) -> Vec<bool> {
    let opens = |step: TreeStep| matches!(step, TreeStep::Create | TreeStep::Open);
    let appended = |rest: &[TreeStep]| {
        rest.iter().take_while(|step| **step != TreeStep::Close).any(|s| *s == TreeStep::Append)
    };
    (0..steps.len()).map(|i| opens(steps[i]) && appended(&steps[i..])).collect()
}

/// Makes an interrupted call again.
fn again<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            answer => return answer,
        }
    }
}

/// A directory that an earlier phase has made is as good as a new one.
fn made(answer: Result<(), Errno>) -> Result<(), Errno> {
    if answer == Err(Errno::EXIST) { Ok(()) } else { answer }
}

fn joined(root: &Path, name: &CStr) -> PathBuf {
    root.join(OsStr::from_bytes(name.to_bytes()))
}

fn failed(operation: Operation, offset: u64, errno: Errno) -> Fault {
    Fault::Os { operation, offset: Some(offset), errno: errno.raw_os_error() }
}

fn memory(what: &'static str, bytes: u64) -> EngineError {
    let source = std::io::ErrorKind::OutOfMemory.into();
    EngineError::Memory { what, bytes: Bytes(bytes), source }
}

/// The public error of a fault about `path`.
pub(super) fn error(fault: Fault, path: PathBuf) -> EngineError {
    // No file of a tree is opened for direct I/O, which is all that a stream adds to an error.
    fault.into_error(&super::stand_in(), &path)
}
