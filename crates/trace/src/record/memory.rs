//! Memory and links of recorded programs.

use std::{
    fs,
    os::unix::{ffi::OsStringExt, fs::PermissionsExt},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, StatxFlags, statx},
    net,
    process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open},
};
use sys::ptrace;

use super::{messages::Object, sockets::Addresses};

/// Size of a page. Reads end at such borders, because the next page may not be mapped.
const PAGE: u64 = 4096;

/// Longest path with its NUL byte (`PATH_MAX`).
const LONGEST: usize = 4096;

/// Memory and links of a thread.
pub(crate) trait Memory {
    /// Reads bytes at an address. Returns their number; 0 if they cannot be read.
    fn read(&self, address: u64, to: &mut [u8]) -> usize;

    /// Text that ends with a NUL byte; `None` if it cannot be read or is too long.
    fn string(&self, address: u64) -> Option<Vec<u8>>;

    /// Path of the file that a descriptor refers to.
    fn link(&self, descriptor: i32) -> Option<Vec<u8>>;

    /// Working directory.
    fn directory(&self) -> Option<Vec<u8>>;

    /// Object that a descriptor refers to, if data can be sent through it.
    fn channel(&self, descriptor: i32) -> Option<Object>;

    /// Addresses of a connected Internet socket.
    fn addresses(&self, descriptor: i32) -> Option<Addresses>;

    /// Permission bits of the object that a descriptor refers to.
    fn permissions(&self, descriptor: i32) -> Option<u32>;

    /// Number at an address.
    fn number(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (self.read(address, &mut bytes) == 8).then(|| u64::from_ne_bytes(bytes))
    }
}

/// Thread that is stopped by ptrace(2).
pub(super) struct Stopped {
    pub(super) tid: i32,
    pub(super) process: i32,
}

impl Memory for Stopped {
    fn read(&self, address: u64, to: &mut [u8]) -> usize {
        ptrace::read(self.tid, address, to).unwrap_or(0)
    }

    fn string(&self, address: u64) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let mut at = address;
        while text.len() < LONGEST {
            // Most names are shorter.
            let mut part = [0; 256];
            let border = PAGE - at % PAGE;
            let length = usize::try_from(border).map_or(part.len(), |it| it.min(part.len()));
            let read = self.read(at, &mut part[..length]);
            let part = &part[..read];
            if let Some(end) = part.iter().position(|byte| *byte == 0) {
                text.extend(&part[..end]);
                return (text.len() < LONGEST).then_some(text);
            }
            if read == 0 {
                return None;
            }
            text.extend(part);
            at = at.wrapping_add(read as u64);
        }
        None
    }

    fn link(&self, descriptor: i32) -> Option<Vec<u8>> {
        path(&format!("/proc/{}/fd/{descriptor}", self.process))
    }

    fn directory(&self) -> Option<Vec<u8>> {
        path(&format!("/proc/{}/cwd", self.tid))
    }

    fn permissions(&self, descriptor: i32) -> Option<u32> {
        let status = fs::metadata(format!("/proc/{}/fd/{descriptor}", self.tid)).ok()?;
        Some(status.permissions().mode() & 0o7777)
    }

    fn addresses(&self, descriptor: i32) -> Option<Addresses> {
        let process = pidfd_open(Pid::from_raw(self.process)?, PidfdFlags::empty()).ok()?;
        let socket = pidfd_getfd(process, descriptor, PidfdGetfdFlags::empty()).ok()?;
        let own = net::getsockname(&socket).ok()?.try_into().ok()?;
        let other = net::getpeername(&socket).ok()??.try_into().ok()?;
        Some((own, other))
    }

    fn channel(&self, descriptor: i32) -> Option<Object> {
        // Without a request to the server of a network filesystem, or to a recorded process.
        let path = format!("/proc/{}/fd/{descriptor}", self.tid);
        let (flags, mask) = (AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE | StatxFlags::INO);
        let status = statx(CWD, path, flags, mask).ok()?;
        let device = u64::from(status.stx_dev_major) << 32 | u64::from(status.stx_dev_minor);
        let kind = FileType::from_raw_mode(status.stx_mode.into());
        if kind == FileType::Fifo {
            return Some(Object::Pipe(device, status.stx_ino));
        }
        if kind == FileType::Socket {
            return Some(Object::Socket(status.stx_ino));
        }
        // Files without a separate inode, such as event counters, have no type.
        if kind != FileType::Unknown {
            return None;
        }
        let text = fs::read_to_string(format!("/proc/{}/fdinfo/{descriptor}", self.tid)).ok()?;
        let id = text.lines().find_map(|line| line.strip_prefix("eventfd-id:"))?;
        id.trim().parse().ok().map(Object::Event)
    }
}

/// Eight bytes at an offset; missing ones are 0.
pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes.iter().skip(at)) {
        *to = *from;
    }
    u64::from_ne_bytes(word)
}

fn path(link: &str) -> Option<Vec<u8>> {
    let target = fs::read_link(link).ok()?.into_os_string().into_vec();
    // Pipes and sockets have other names.
    (target.first() == Some(&b'/')).then_some(target)
}
