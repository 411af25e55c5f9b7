//! Bare loop over the calls of a loadfile.
#![expect(unsafe_code, reason = "range locks have no safe form")]

use std::{
    ffi::CStr,
    fs,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
    time::Duration,
};

use engine::now;
use model::Nanos;
use rustix::{
    fs::{
        AtFlags, Mode, OFlags, RawDir, Timespec, Timestamps, fstat, fstatvfs, fsync, mkdirat, open,
        openat, renameat, statat, unlinkat, utimensat,
    },
    io::{Errno, pread, pwrite},
    time::{ClockId, clock_gettime},
};

use super::load::{Line, Lines, Name, OnFile, OnName};
use crate::rate::Rate;

/// Operations between two clock reads.
const CLOCK_INTERVAL: u64 = 64;

struct Client<'a> {
    lines: &'a Lines,
    root: OwnedFd,
    files: Vec<Option<OwnedFd>>,
    zeros: Vec<u8>,
    buffer: Vec<u8>,
    listing: Vec<MaybeUninit<u8>>,
}

/// Runs one client for this time and returns its operations per second of CPU time.
pub(super) fn replay(lines: &Lines, directory: &Path, run: Duration) -> Rate {
    // CLOSE_RANGE_UNSHARE, as in fslab: threads that share a descriptor table contend for it.
    // SAFETY: integers only; this thread uses no open descriptor afterwards.
    unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, 2) };
    let path = directory.join("bare");
    fs::create_dir(&path).expect("the directory is created");
    let root = open(&path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).expect("just made");
    let mut client = Client {
        lines,
        root,
        files: (0..lines.slots).map(|_| None).collect(),
        zeros: vec![0; 1 << 20],
        buffer: vec![0; 1 << 20],
        listing: vec![MaybeUninit::uninit(); 32768],
    };
    let (begun, end) = (cpu_time(), now() + Nanos::from(run));
    let mut number = 0;
    'all: loop {
        for line in &lines.lines {
            client.line(line);
            number += 1;
            if number % CLOCK_INTERVAL == 0 && now() >= end {
                break 'all;
            }
        }
    }
    let time = cpu_time() - begun;
    drop(client);
    fs::remove_dir_all(&path).expect("it was made above");
    Rate::new(number, time)
}

/// CPU time of this thread.
fn cpu_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |part: i64| u64::try_from(part).expect("CPU times are not negative");
    Nanos(part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec))
}

impl Client<'_> {
    #[inline]
    fn line(&mut self, line: &Line) {
        match line {
            Line::File(slot, what) => self.on_file(*slot, *what),
            Line::Name(name, what) => self.on_name(&self.lines.names[*name], *what),
            Line::Space => drop(fstatvfs(&self.root)),
            Line::DeleteTree(name) => {
                let path = format!("/proc/self/fd/{}/", self.root.as_raw_fd());
                let name = self.lines.names[*name].path.to_str().expect("text");
                files_below(&Path::new(&path).join(name));
            }
        }
    }

    #[inline]
    fn on_file(&mut self, slot: usize, what: OnFile) {
        let Some(file) = &self.files[slot] else { return };
        match what {
            OnFile::Close => drop(self.files[slot].take()),
            OnFile::Read { size, offset } => {
                let _ = pread(file, &mut self.buffer[..size], offset);
            }
            OnFile::Write { size, offset } => {
                let _ = pwrite(file, &self.zeros[..size], offset);
            }
            OnFile::Flush => drop(fsync(file)),
            OnFile::Lock { take, size, offset } => {
                // SAFETY: zeros are valid, and the call reads one flock.
                let mut range: libc::flock = unsafe { std::mem::zeroed() };
                let kind = if take { libc::F_WRLCK } else { libc::F_UNLCK };
                range.l_type = libc::c_short::try_from(kind).expect("one digit");
                range.l_start = libc::off_t::try_from(offset).expect("an offset");
                range.l_len = libc::off_t::try_from(size).expect("a length");
                // SAFETY: as above.
                unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLKW, &raw const range) };
            }
            OnFile::Query => drop(fstat(file)),
            OnFile::SetTimes { name } => {
                let reported = fstat(file).expect("the file is open");
                let time = |tv_sec| Timespec { tv_sec, tv_nsec: 0 };
                let times = Timestamps {
                    last_access: time(reported.st_atime - 10),
                    last_modification: time(reported.st_mtime - 12),
                };
                let path = &self.lines.names[name].path;
                let _ = utimensat(&self.root, path.as_c_str(), &times, AtFlags::empty());
            }
        }
    }

    #[inline]
    fn on_name(&mut self, name: &Name, what: OnName) {
        let path = name.path.as_c_str();
        self.resolve(name);
        match what {
            OnName::Create { options, disposition, slot } => {
                let directory = OFlags::RDONLY | OFlags::DIRECTORY;
                let mut flags = match disposition {
                    2 => OFlags::RDWR | OFlags::CREATE,
                    4 | 5 => OFlags::RDWR | OFlags::CREATE | OFlags::TRUNC,
                    _ => OFlags::RDWR,
                };
                if options & 1 != 0 {
                    let _ = mkdirat(&self.root, path, Mode::RWXU);
                    flags = directory;
                }
                let mode = Mode::from_raw_mode(0o600);
                let mut opened = openat(&self.root, path, flags, mode);
                if matches!(opened, Err(Errno::ISDIR)) {
                    opened = openat(&self.root, path, directory, mode);
                }
                if let (Ok(file), Some(slot)) = (opened, slot) {
                    let _ = fstat(&file);
                    self.files[slot] = Some(file);
                }
            }
            OnName::Rename { to } => {
                let to = &self.lines.names[to];
                self.resolve(to);
                let _ = renameat(&self.root, path, &self.root, to.path.as_c_str());
            }
            OnName::Unlink => drop(unlinkat(&self.root, path, AtFlags::empty())),
            OnName::Rmdir => drop(unlinkat(&self.root, path, AtFlags::REMOVEDIR)),
            OnName::Mkdir => drop(mkdirat(&self.root, path, Mode::from_raw_mode(0o777))),
            OnName::Query => {}
            OnName::Find { most, lists } => {
                if lists {
                    let mut left = most;
                    self.list(&name.parent, |_| {
                        left = left.saturating_sub(1);
                        left == 0
                    });
                }
            }
        }
    }

    #[inline]
    fn resolve(&mut self, name: &Name) {
        if statat(&self.root, name.path.as_c_str(), AtFlags::empty()).is_err() {
            self.list(&name.parent, |entry| entry.to_bytes().eq_ignore_ascii_case(&name.base));
        }
    }

    fn list(&mut self, path: &CStr, mut is_last: impl FnMut(&CStr) -> bool) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(directory) = openat(&self.root, path, flags, Mode::empty()) else { return };
        let mut entries = RawDir::new(directory.as_fd(), &mut self.listing);
        while let Some(Ok(entry)) = entries.next() {
            if is_last(entry.file_name()) {
                break;
            }
        }
    }
}

fn files_below(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { files_below(&path) } else { drop(fs::remove_file(&path)) }
    }
}
