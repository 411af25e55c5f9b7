//! Guest side of the mailbox: receives requests and sends replies.
//!
//! The guest's page cache would return stale requests, so the disk is opened with `O_DIRECT`.
//! Buffers are therefore aligned to sectors, and their lengths are whole sectors (open(2)). A
//! payload is durable before its header makes it valid. A dedicated thread sends heartbeats. A
//! missing heartbeat therefore means that the guest kernel hangs, not that a trial is slow.

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

/// Interval between heartbeats.
const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(1);
/// First and last interval between polls for a request. The first is short, because requests often
/// follow each other at once. The last is long enough to keep the CPU idle.
const POLL_INTERVALS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(20)];

/// Sector-aligned buffer of whole sectors.
struct Sectors {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

impl Sectors {
    /// A zeroed buffer that is large enough for `length` bytes.
    fn new(length: usize) -> Self {
        let length = length.next_multiple_of(SECTOR);
        let bytes = vec![0; length + SECTOR];
        // Safe code gets aligned memory by skipping the unaligned start of the buffer.
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

/// Disk of the mailbox.
pub(super) struct Disk {
    path: PathBuf,
    file: File,
}

impl Disk {
    /// Opens the disk with `O_DIRECT`.
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

    /// Reads the current heartbeat.
    pub(super) fn heartbeat(&self) -> Result<Option<Heartbeat>, GuestError> {
        Ok(Heartbeat::of_sector(&self.sector(HEARTBEAT)?))
    }

    /// Writes a heartbeat, without a flush, because the host reads the same file.
    pub(super) fn send_heartbeat(&self, heartbeat: &Heartbeat) -> Result<(), GuestError> {
        self.write(HEARTBEAT, &heartbeat.to_sector())
    }

    /// Reads the host's message if its number is greater than `after`.
    fn request(&self, after: u64) -> Result<Option<(u64, Vec<u8>)>, GuestError> {
        let header = Header::of_sector(&self.sector(From::Host.header())?);
        let Some(header) = header.filter(|header| header.number > after) else { return Ok(None) };
        let length = usize::try_from(header.length).unwrap_or(usize::MAX);
        let payload = self.read(From::Host.payload(), length)?.whole()[..length].to_vec();
        header.check(&payload)?;
        Ok(Some((header.number, payload)))
    }
}

/// State shared by the heartbeat thread and the worker.
struct HeartbeatState {
    disk: Disk,
    next: Mutex<Next>,
    stopped: Condvar,
}

struct Next {
    beat: Heartbeat,
    stop: bool,
}

impl HeartbeatState {
    /// Locks the next heartbeat, which stays valid if a thread panicked while it held the lock.
    fn next(&self) -> MutexGuard<'_, Next> {
        self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends one heartbeat. Failures are ignored, because the host detects a missing heartbeat.
    fn send_heartbeat(&self, next: &mut Next) {
        next.beat.count += 1;
        let _ = self.disk.send_heartbeat(&next.beat);
    }

    fn run(&self) {
        let mut next = self.next();
        while !next.stop {
            let waited = self.stopped.wait_timeout(next, HEARTBEAT_INTERVAL);
            next = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !next.stop {
                self.send_heartbeat(&mut next);
            }
        }
    }
}

/// Worker's side of the mailbox. Heartbeats are sent until it is dropped.
pub struct GuestChannel {
    heartbeat: Arc<HeartbeatState>,
    thread: Option<JoinHandle<()>>,
    last: u64,
    module_requests: PathBuf,
}

impl GuestChannel {
    /// Opens the channel and sends a first heartbeat, which reports that the guest is up.
    pub(super) fn open(disk: Disk, first: &str) -> Self {
        let next = Next { beat: Heartbeat { count: 0, text: first.to_owned() }, stop: false };
        let heartbeat = HeartbeatState { disk, next: Mutex::new(next), stopped: Condvar::new() };
        heartbeat.send_heartbeat(&mut heartbeat.next());
        let heartbeat = Arc::new(heartbeat);
        let thread = Arc::clone(&heartbeat);
        let thread = std::thread::spawn(move || thread.run());
        let module_requests = load::REQUESTS.into();
        Self { heartbeat, thread: Some(thread), last: 0, module_requests }
    }

    /// Waits for the next request. Returns `None` for an empty request, which ends the work.
    ///
    /// # Errors
    /// [`GuestError::Io`] if the disk cannot be read, [`GuestError::Damaged`] if a request does not
    /// match its header.
    pub fn wait(&mut self) -> Result<Option<Vec<u8>>, GuestError> {
        let mut interval = POLL_INTERVALS[0];
        loop {
            if let Some((number, payload)) = self.heartbeat.disk.request(self.last)? {
                self.last = number;
                return Ok((!payload.is_empty()).then_some(payload));
            }
            std::thread::sleep(interval);
            interval = (interval * 2).min(POLL_INTERVALS[1]);
        }
    }

    /// Sends the reply to the last request.
    ///
    /// # Errors
    /// [`GuestError::Damaged`] if the reply is too long for the disk (32 MiB less 8 KiB),
    /// [`GuestError::Io`] if the reply cannot be written.
    pub fn reply(&mut self, payload: &[u8]) -> Result<(), GuestError> {
        let header = Header::of(self.last, payload)?;
        let disk = &self.heartbeat.disk;
        disk.write(From::Guest.payload(), payload)?;
        disk.flush()?;
        disk.write(From::Guest.header(), &header.to_sector())?;
        disk.flush()
    }

    /// Sets the current step of the worker and sends it in a heartbeat at once, so that the host
    /// knows the step in which a guest died. The text is cut to 256 bytes.
    pub fn set_step(&self, text: &str) {
        let mut next = self.heartbeat.next();
        text.clone_into(&mut next.beat.text);
        self.heartbeat.send_heartbeat(&mut next);
    }

    /// Modules that the kernel requested since the worker was started, each once, in the order of
    /// the requests. The time to load these modules is part of the step in which they were
    /// requested, such as the first mount.
    pub fn requested_modules(&self) -> Vec<String> {
        self.requests().into_iter().map(|(name, _)| name).collect()
    }

    /// Requested modules that could not be loaded because they are not in the initramfs or the
    /// kernel rejected them.
    pub fn rejected_modules(&self) -> Vec<String> {
        let requests = self.requests().into_iter();
        requests.filter_map(|(name, loaded)| (!loaded).then_some(name)).collect()
    }

    fn requests(&self) -> Vec<(String, bool)> {
        load::requests(&fs::read_to_string(&self.module_requests).unwrap_or_default())
    }
}

impl std::fmt::Debug for GuestChannel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuestChannel").field("last", &self.last).finish_non_exhaustive()
    }
}

impl Drop for GuestChannel {
    fn drop(&mut self) {
        self.heartbeat.next().stop = true;
        self.heartbeat.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
