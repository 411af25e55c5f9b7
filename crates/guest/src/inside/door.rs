//! The guest's side of the mailbox.
//!
//! Requests leave the disk here and answers enter it. Nothing is read from the guest's page cache,
//! which would go on answering what it read first: the disk is opened with `O_DIRECT`, and memory
//! and lengths are whole sectors (open(2)). A payload is durable before its header makes it valid.
//! A thread of its own beats the heart, so that a long silence means that the kernel is dead, not
//! that the work is long.

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{FileExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use super::load;
use crate::{
    GuestError,
    mailbox::{From, HEARTBEAT, Header, Heartbeat, SECTOR},
};

/// The time between two beats.
const BEAT: Duration = Duration::from_secs(1);
/// The time between two looks for a request, at first and at last: short while requests follow
/// each other, long enough not to keep a processor busy.
const LOOKS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// Whole sectors in memory that begin where a sector may.
struct Sectors {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Sectors {
    /// Zeros, as many as there are sectors for `length` bytes.
    fn new(length: usize) -> Self {
        let length = length.next_multiple_of(SECTOR);
        let bytes = vec![0; length + SECTOR];
        // Safe code gets aligned memory by leaving out the beginning of what is not.
        let start = bytes.as_ptr().align_offset(SECTOR).min(SECTOR);
        Self { bytes, start, length }
    }

    fn of(payload: &[u8]) -> Self {
        let mut sectors = Self::new(payload.len());
        sectors.whole_mut()[..payload.len()].copy_from_slice(payload);
        sectors
    }

    fn whole(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }

    fn whole_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

/// The disk.
pub(super) struct Disk {
    path: PathBuf,
    file: File,
}

impl Disk {
    /// Opens the disk past the guest's page cache.
    pub(super) fn open(path: &Path) -> Result<Self, GuestError> {
        let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
        let file = File::options().read(true).write(true).custom_flags(flags).open(path);
        let file = file.map_err(GuestError::io(format!("cannot open {}", path.display())))?;
        Ok(Self { path: path.to_owned(), file })
    }

    fn context(&self, what: &str) -> impl FnOnce(io::Error) -> GuestError {
        GuestError::io(format!("cannot {what} the mailbox {}", self.path.display()))
    }

    fn read(&self, at: u64, length: usize) -> Result<Sectors, GuestError> {
        let mut sectors = Sectors::new(length);
        self.file.read_exact_at(sectors.whole_mut(), at).map_err(self.context("read"))?;
        Ok(sectors)
    }

    fn sector(&self, at: u64) -> Result<[u8; SECTOR], GuestError> {
        let mut sector = [0; SECTOR];
        sector.copy_from_slice(self.read(at, SECTOR)?.whole());
        Ok(sector)
    }

    fn write(&self, at: u64, payload: &[u8]) -> Result<(), GuestError> {
        let sectors = Sectors::of(payload);
        self.file.write_all_at(sectors.whole(), at).map_err(self.context("write"))
    }

    fn flush(&self) -> Result<(), GuestError> {
        self.file.sync_data().map_err(self.context("flush"))
    }

    /// The heartbeat that is there.
    pub(super) fn heartbeat(&self) -> Result<Option<Heartbeat>, GuestError> {
        Ok(Heartbeat::of_sector(&self.sector(HEARTBEAT)?))
    }

    /// Puts a heartbeat there. It needs no flush: the host sees what the disk has taken.
    pub(super) fn beat(&self, heartbeat: &Heartbeat) -> Result<(), GuestError> {
        self.write(HEARTBEAT, &heartbeat.to_sector())
    }

    /// The host's message, if it is newer than the last one.
    fn request(&self, after: u64) -> Result<Option<(u64, Vec<u8>)>, GuestError> {
        let header = Header::of_sector(&self.sector(From::Host.header())?);
        let Some(header) = header.filter(|header| header.number > after) else { return Ok(None) };
        let length = usize::try_from(header.length).unwrap_or(usize::MAX);
        let payload = self.read(From::Host.payload(), length)?.whole()[..length].to_vec();
        header.check(&payload)?;
        Ok(Some((header.number, payload)))
    }
}

/// What the thread that beats and those that say what they do have in common.
struct Heart {
    disk: Disk,
    next: Mutex<Next>,
    stopped: Condvar,
}

struct Next {
    beat: Heartbeat,
    stop: bool,
}

impl Heart {
    /// What is next stays usable if somebody panicked with it in hand.
    fn next(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Beats once. That it failed the host learns from its not having come.
    fn beat(&self, next: &mut Next) {
        next.beat.count += 1;
        let _ = self.disk.beat(&next.beat);
    }

    fn go_on(&self) {
        let mut next = self.next();
        while !next.stop {
            let waited = self.stopped.wait_timeout(next, BEAT);
            next = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !next.stop {
                self.beat(&mut next);
            }
        }
    }
}

/// The worker's end of the mailbox. The heart beats as long as it exists.
pub struct Door {
    heart: Arc<Heart>,
    beating: Option<JoinHandle<()>>,
    last: u64,
    requests_of_modules: PathBuf,
}

impl Door {
    /// Opens the door, and says by a first beat that the guest is up.
    pub(super) fn open(disk: Disk, first: &str) -> Self {
        let next = Next { beat: Heartbeat { count: 0, text: first.to_owned() }, stop: false };
        let heart = Heart { disk, next: Mutex::new(next), stopped: Condvar::new() };
        heart.beat(&mut heart.next());
        let heart = Arc::new(heart);
        let beating = Arc::clone(&heart);
        let beating = std::thread::spawn(move || beating.go_on());
        let requests_of_modules = load::REQUESTS.into();
        Self { heart, beating: Some(beating), last: 0, requests_of_modules }
    }

    /// Waits for the next request. `None`, an empty one, means that the work is over.
    ///
    /// # Errors
    /// [`GuestError::Io`] when the disk cannot be read, [`GuestError::Damaged`] when a request is
    /// not what its header says.
    pub fn wait(&mut self) -> Result<Option<Vec<u8>>, GuestError> {
        let mut look = LOOKS[0];
        loop {
            if let Some((number, payload)) = self.heart.disk.request(self.last)? {
                self.last = number;
                return Ok((!payload.is_empty()).then_some(payload));
            }
            std::thread::sleep(look);
            look = (look * 2).min(LOOKS[1]);
        }
    }

    /// Answers the last request.
    ///
    /// # Errors
    /// [`GuestError::Damaged`] when the answer is too long for the disk (32 MiB less 8 KiB),
    /// [`GuestError::Io`] when it cannot be written.
    pub fn answer(&mut self, payload: &[u8]) -> Result<(), GuestError> {
        let header = Header::of(self.last, payload)?;
        let disk = &self.heart.disk;
        disk.write(From::Guest.payload(), payload)?;
        disk.flush()?;
        disk.write(From::Guest.header(), &header.to_sector())?;
        disk.flush()
    }

    /// Says what the worker does now. It is on the disk when this returns, so that the host knows
    /// in which step a guest died. The first 256 bytes count.
    pub fn doing(&self, text: &str) {
        let mut next = self.heart.next();
        text.clone_into(&mut next.beat.text);
        self.heart.beat(&mut next);
    }

    /// What the kernel asked to have loaded since the worker was started, each once, in the order
    /// of asking. It was not among what was loaded beforehand, so the first mount paid for it.
    pub fn modules_asked_for(&self) -> Vec<String> {
        self.requests().into_iter().map(|(name, _)| name).collect()
    }

    /// What of it could not be loaded, since it is not in the archive or was refused by the kernel.
    pub fn refused(&self) -> Vec<String> {
        let requests = self.requests().into_iter();
        requests.filter_map(|(name, loaded)| (!loaded).then_some(name)).collect()
    }

    fn requests(&self) -> Vec<(String, bool)> {
        load::requests(&fs::read_to_string(&self.requests_of_modules).unwrap_or_default())
    }
}

impl std::fmt::Debug for Door {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Door").field("last", &self.last).finish_non_exhaustive()
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        self.heart.next().stop = true;
        self.heart.stopped.notify_all();
        if let Some(beating) = self.beating.take() {
            let _ = beating.join();
        }
    }
}

#[cfg(test)]
mod tests;
