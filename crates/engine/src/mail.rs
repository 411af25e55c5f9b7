//! Mail: workers deliver messages to one mailbox, and other workers read them at the same time.
//!
//! The input is a [`Mail`], the output a [`PhaseResult`]. A delivery is a write, and durable when
//! it ends. A read message is a read; for an mbox, it is all messages that were new. Readers end
//! when all messages are delivered and no new one is left, or at the time limit.
//!
//! A maildir has a file per message. It is written in `tmp`, gets its name in `new` by link(2), so
//! that readers see whole messages only, and the directory is synced
//! (cr.yp.to/proto/maildir.html; fsync(2) for the directory). A reader moves it to `cur`, reads
//! it, and removes every second one. An mbox is one file: writers have an exclusive lock, and
//! readers a shared one (flock(2)).

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering::SeqCst},
};

use fastrand::Rng;
use model::{
    Bytes, Histogram, Nanos, PhaseResult,
    phase::{Latencies, Mail, MailFormat, WorkerResult, Workers},
};
use rustix::fs::{FlockOperation, flock};

use crate::{
    Context, EngineError,
    calls::again,
    clock::now,
    counter::{Counter, Limits},
    driver::{self, Ended, Phase, Seat, WorkerLoop},
    error::Operation,
    io::Kind,
    patterns::draw::generator,
    set::Lengths,
};

/// Name of the mailbox in the directory under test.
const NAME: &str = "mail";

/// Seed constant that separates the messages from the data of other phases with the same seed.
const PURPOSE: u64 = 0x006d_6169_6c00_0000;

/// Additional bytes from which a message is taken at a random offset.
const SPARE: usize = 1 << 16;

/// Bytes of a read.
const BLOCK: usize = 1 << 16;

/// Delivers and reads messages in `context.directory`.
///
/// # Errors
/// [`EngineError::Io`] if a call fails, [`EngineError::Memory`] if there is no memory for a
/// message, and [`EngineError::Interrupted`].
pub fn run_mail(mail: &Mail, context: &Context<'_>) -> Result<PhaseResult, EngineError> {
    let path = context.directory.join(NAME);
    match mail.format {
        MailFormat::Maildir => {
            for name in ["tmp", "new", "cur"] {
                let path = path.join(name);
                fs::create_dir_all(&path).map_err(at(Operation::MakeDirectory, &path))?;
            }
        }
        MailFormat::Mbox => {
            File::create(&path).map_err(at(Operation::Open, &path))?;
        }
    }
    // The names of the mailbox, without which a message is not durable.
    let directories = [&path, context.directory].map(Path::to_owned);
    for directory in directories.iter().filter(|path| path.is_dir()) {
        let synced = File::open(directory).and_then(|file| file.sync_all());
        synced.map_err(at(Operation::Sync, directory))?;
    }
    let active = AtomicU32::new(mail.deliverers);
    driver::run(&MailPhase { mail, path, active }, context)
}

/// Error of a call on a file.
fn at(operation: Operation, path: &Path) -> impl FnOnce(io::Error) -> EngineError {
    move |source| EngineError::Io { operation, path: path.to_owned(), offset: None, source }
}

struct MailPhase<'a> {
    mail: &'a Mail,
    path: PathBuf,
    /// Deliverers that have not ended.
    active: AtomicU32,
}

impl Phase for MailPhase<'_> {
    type Error = EngineError;

    fn workers(&self) -> Workers {
        Workers::threads(self.mail.deliverers + self.mail.readers)
    }

    fn total(&self) -> Bytes {
        Bytes(0)
    }

    fn path(&self, _worker: u32) -> PathBuf {
        self.path.clone()
    }

    fn perform(&self, seat: &Seat<'_>) -> Result<WorkerResult, EngineError> {
        let latencies =
            Latencies { read: Histogram::new(), write: Histogram::new(), ..Latencies::default() };
        let time = self.mail.time.map(|limit| (limit.ramp, limit.run));
        let limits = Limits { time, ..Limits::default() };
        let counter = Counter::new(seat.control, seat.slot, limits, latencies);
        match seat.worker < self.mail.deliverers {
            true => seat.run(Deliverer::new(self, seat)?, counter),
            false => seat.run(Reader::new(self, seat)?, counter),
        }
    }
}

/// Opened part of a mailbox.
enum Mailbox {
    /// Maildir, with the directory of new messages.
    Maildir(File),
    Mbox(File),
}

impl MailPhase<'_> {
    fn open(&self) -> Result<Mailbox, EngineError> {
        let new = self.path.join("new");
        match self.mail.format {
            MailFormat::Maildir => File::open(&new).map(Mailbox::Maildir),
            MailFormat::Mbox => {
                OpenOptions::new().read(true).append(true).open(&self.path).map(Mailbox::Mbox)
            }
        }
        .map_err(at(Operation::Open, &self.path))
    }

    fn lock(&self, file: &File, operation: FlockOperation) -> Result<(), EngineError> {
        again(|| flock(file, operation))
            .map_err(|errno| at(Operation::Lock, &self.path)(errno.into()))
    }
}

/// Worker that delivers messages.
struct Deliverer<'a> {
    phase: &'a MailPhase<'a>,
    seat: &'a Seat<'a>,
    mailbox: Mailbox,
    lengths: Lengths,
    random: Rng,
    bytes: Vec<u8>,
    /// Number of messages so far.
    delivered: u64,
}

impl<'a> Deliverer<'a> {
    fn new(phase: &'a MailPhase<'a>, seat: &'a Seat<'a>) -> Result<Self, EngineError> {
        let mut random = generator(phase.mail.seed, seat.worker, PURPOSE);
        let lengths = Lengths::of_sizes(phase.mail.sizes, phase.mail.seed, seat.worker);
        let length = usize::try_from(lengths.most()).unwrap_or(usize::MAX);
        let length = length.saturating_add(SPARE);
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| EngineError::Memory {
            what: "messages",
            bytes: Bytes(length as u64),
            source: io::ErrorKind::OutOfMemory.into(),
        })?;
        bytes.resize(length, 0);
        random.fill(&mut bytes);
        Ok(Self { phase, seat, mailbox: phase.open()?, lengths, random, bytes, delivered: 0 })
    }

    fn deliver(&self, message: &[u8]) -> Result<(), EngineError> {
        let path = &self.phase.path;
        match &self.mailbox {
            Mailbox::Maildir(directory) => {
                let name = format!("{}.{}", self.seat.worker, self.delivered);
                let (written, new) = (path.join("tmp").join(&name), path.join("new").join(&name));
                let mut file = File::create_new(&written).map_err(at(Operation::Open, &written))?;
                file.write_all(message).map_err(at(Operation::Write, &written))?;
                file.sync_all().map_err(at(Operation::Sync, &written))?;
                drop(file);
                fs::hard_link(&written, &new).map_err(at(Operation::Link, &new))?;
                fs::remove_file(&written).map_err(at(Operation::Unlink, &written))?;
                directory.sync_all().map_err(at(Operation::Sync, &path.join("new")))
            }
            Mailbox::Mbox(file) => {
                self.phase.lock(file, FlockOperation::LockExclusive)?;
                let mut to = file;
                to.write_all(message).map_err(at(Operation::Write, path))?;
                file.sync_all().map_err(at(Operation::Sync, path))?;
                self.phase.lock(file, FlockOperation::Unlock)
            }
        }
    }
}

impl WorkerLoop for Deliverer<'_> {
    type Error = EngineError;

    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, EngineError> {
        let size = self.lengths.of(self.delivered);
        let start = self.random.usize(0..=SPARE);
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        self.deliver(&self.bytes[start..][..length])?;
        let counted = counter.one(now(), Kind::Write, size, counter.clock);
        counted.map_err(|fault| self.seat.failure(fault))?;
        self.delivered += 1;
        let Mail { time, messages, .. } = *self.phase.mail;
        Ok(!counter.over && (time.is_some() || self.delivered < messages))
    }

    fn finish(&mut self, ended: Nanos) -> Result<Ended, EngineError> {
        self.phase.active.fetch_sub(1, SeqCst);
        Ok(Ended { synced: ended, closed: ended })
    }
}

/// Worker that reads messages.
struct Reader<'a> {
    phase: &'a MailPhase<'a>,
    seat: &'a Seat<'a>,
    mailbox: Mailbox,
    buffer: Vec<u8>,
    /// Bytes of an mbox that were read.
    position: u64,
    /// Number of messages that were read.
    read: u64,
}

impl<'a> Reader<'a> {
    fn new(phase: &'a MailPhase<'a>, seat: &'a Seat<'a>) -> Result<Self, EngineError> {
        let (mailbox, buffer) = (phase.open()?, vec![0; BLOCK]);
        Ok(Self { phase, seat, mailbox, buffer, position: 0, read: 0 })
    }

    /// Reads the new messages. Returns their number.
    fn new_messages(&mut self, counter: &mut Counter<'_>) -> Result<u64, EngineError> {
        match self.mailbox {
            Mailbox::Maildir(_) => self.new_files(counter),
            Mailbox::Mbox(_) => self.new_part(counter),
        }
    }

    fn new_files(&mut self, counter: &mut Counter<'_>) -> Result<u64, EngineError> {
        let new = self.phase.path.join("new");
        let before = self.read;
        for entry in fs::read_dir(&new).map_err(at(Operation::List, &new))? {
            let from = entry.map_err(at(Operation::List, &new))?.path();
            let begun = now();
            let name = from.file_name().unwrap_or_default();
            let path = self.phase.path.join("cur").join(name);
            match fs::rename(&from, &path) {
                // Another reader has it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other.map_err(at(Operation::Rename, &from))?,
            }
            let mut file = File::open(&path).map_err(at(Operation::Open, &path))?;
            let mut bytes = 0;
            loop {
                let read = file.read(&mut self.buffer).map_err(at(Operation::Read, &path))?;
                if read == 0 {
                    break;
                }
                bytes += read as u64;
            }
            drop(file);
            if self.read % 2 == 1 {
                fs::remove_file(&path).map_err(at(Operation::Unlink, &path))?;
            }
            self.count(counter, bytes, begun)?;
            if counter.over {
                break;
            }
        }
        Ok(self.read - before)
    }

    fn new_part(&mut self, counter: &mut Counter<'_>) -> Result<u64, EngineError> {
        let Mailbox::Mbox(file) = &self.mailbox else { return Ok(0) };
        let path = &self.phase.path;
        let (begun, before) = (now(), self.position);
        // Many readers with shared locks could exclude the deliverers.
        if file.metadata().map_err(at(Operation::Examine, path))?.len() == before {
            return Ok(0);
        }
        self.phase.lock(file, FlockOperation::LockShared)?;
        loop {
            let read = file.read_at(&mut self.buffer, self.position);
            let read = read.map_err(at(Operation::Read, path))?;
            if read == 0 {
                break;
            }
            self.position += read as u64;
        }
        self.phase.lock(file, FlockOperation::Unlock)?;
        let bytes = self.position - before;
        if bytes == 0 {
            return Ok(0);
        }
        self.count(counter, bytes, begun).map(|()| 1)
    }

    fn count(
        &mut self,
        counter: &mut Counter<'_>,
        bytes: u64,
        begun: Nanos,
    ) -> Result<(), EngineError> {
        self.read += 1;
        let counted = counter.one(now(), Kind::Read, bytes, begun);
        counted.map_err(|fault| self.seat.failure(fault).into())
    }
}

impl WorkerLoop for Reader<'_> {
    type Error = EngineError;

    fn advance(&mut self, counter: &mut Counter<'_>) -> Result<bool, EngineError> {
        // Messages that are delivered after this are found by another round.
        let active = self.phase.active.load(SeqCst);
        if self.new_messages(counter)? > 0 {
            return Ok(!counter.over);
        }
        if active == 0 {
            return Ok(false);
        }
        let due = now() + self.phase.mail.poll_interval;
        counter.wait(due).map_err(|fault| self.seat.failure(fault).into())
    }
}
