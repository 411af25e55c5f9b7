//! Memory and links of traced programs.

use std::{fs, os::unix::ffi::OsStringExt};

use sys::ptrace;

/// Size of a page. Reads end at such borders, because the next page may not be mapped.
const PAGE: u64 = 4096;

/// Longest path with its NUL byte (`PATH_MAX`).
const LONGEST: usize = 4096;

/// Text that ends with a NUL byte; `None` if it cannot be read or is too long.
pub(super) fn string(tid: i32, address: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut at = address;
    // Most names are short: one read of a part of the page.
    let mut step = 128;
    while text.len() < LONGEST {
        let mut part = [0; LONGEST];
        let border = PAGE - at % PAGE;
        let length = usize::try_from(border).unwrap_or(LONGEST).min(step);
        let read = ptrace::read(tid, at, &mut part[..length]).ok()?;
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
        step = LONGEST;
    }
    None
}

/// Number at an address.
pub(super) fn number(tid: i32, address: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    ptrace::read(tid, address, &mut bytes).ok()?;
    Some(u64::from_ne_bytes(bytes))
}

/// Eight bytes at an offset; missing ones are 0.
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    for (to, from) in word.iter_mut().zip(bytes.iter().skip(at)) {
        *to = *from;
    }
    u64::from_ne_bytes(word)
}

/// Path of the file that a descriptor of a process refers to.
pub(super) fn link(process: i32, number: i32) -> Option<Vec<u8>> {
    path(&format!("/proc/{process}/fd/{number}"))
}

/// Working directory of a process.
pub(super) fn directory(tid: i32) -> Option<Vec<u8>> {
    path(&format!("/proc/{tid}/cwd"))
}

fn path(link: &str) -> Option<Vec<u8>> {
    let target = fs::read_link(link).ok()?.into_os_string().into_vec();
    // Pipes and sockets have other names.
    (target.first() == Some(&b'/')).then_some(target)
}
