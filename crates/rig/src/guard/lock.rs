//! The lock that keeps other runs, formatting programs, and udev off a disk while it is claimed.
//!
//! Two flock(2) locks are taken, each for a different kind of program. The node of the whole disk
//! is locked by the rule of systemd (Locking Block Device Access), which udev, sfdisk, and others
//! follow. Since some mkfs programs lock the device themselves, that lock is released while a
//! program runs ([`DiskLock::lend`]). The directory of the disk in sysfs is locked by fslab alone
//! and stays locked, so that another run cannot claim the disk in that time.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
};

use super::{Number, Refusal, Roots, block::Block};

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);
/// Attempts at the lock of other runs, which hold it to their end.
const RUN: u32 = 3;
/// Attempts at the lock of the node, three seconds together: udev holds it while it probes a disk.
const CLAIM: u32 = 60;
/// Attempts after a program has ended. udev then probes what was written, which takes long on a
/// slow disk with many partitions.
const RETURN: u32 = 600;

/// The locks of a whole disk; released when the value is dropped.
#[derive(Debug)]
pub(crate) struct DiskLock {
    /// The disk.
    pub(super) number: Number,
    name: String,
    node: File,
    run: File,
    roots: Roots,
}

impl DiskLock {
    /// Locks the disk that `block` is or is a partition of. If the disk has no node, as in some
    /// containers, the node of the claimed device is locked, `claimed`.
    pub(super) fn take(block: &Block, claimed: &Path, roots: &Roots) -> Result<Self, Refusal> {
        let disk = block.disk().unwrap_or_else(|| block.clone());
        let usual = roots.dev.join(disk.name());
        let path = match Number::at(&usual) == Some(disk.number) {
            true => usual,
            false => claimed.to_owned(),
        };
        let directory = roots.sys.join("dev/block").join(disk.number.to_string());
        let lock = Self {
            number: disk.number,
            name: disk.name(),
            node: open(path)?,
            run: open(directory)?,
            roots: roots.clone(),
        };
        lock.wait_for(&lock.run, RUN)?;
        lock.wait_for(&lock.node, CLAIM)?;
        Ok(lock)
    }

    /// Releases the lock of the node, for a program that may take it itself.
    pub(crate) fn lend(&self) {
        if let Err(error) = flock(&self.node, FlockOperation::Unlock) {
            tracing::debug!(disk = self.name, %error, "not unlocked");
        }
    }

    /// Takes the lock of the node again.
    ///
    pub(crate) fn take_back(&self) -> Result<(), Refusal> {
        self.wait_for(&self.node, RETURN)
    }

    fn wait_for(&self, file: &File, attempts: u32) -> Result<(), Refusal> {
        for attempt in 1.. {
            match flock(file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::WOULDBLOCK | Errno::INTR) if attempt < attempts => thread::sleep(PAUSE),
                Err(Errno::WOULDBLOCK) => break,
                Err(error) => {
                    let source = error.into();
                    return Err(Refusal::Open { path: self.roots.dev.join(&self.name), source });
                }
            }
        }
        let by = holder(file, &self.roots);
        Err(Refusal::Locked { device: self.name.clone(), by })
    }
}

impl Drop for DiskLock {
    /// Closing alone releases nothing while a process that is being started shares the files.
    fn drop(&mut self) {
        for file in [&self.node, &self.run] {
            if let Err(error) = flock(file, FlockOperation::Unlock) {
                tracing::debug!(disk = self.name, %error, "not unlocked");
            }
        }
    }
}

fn open(path: PathBuf) -> Result<File, Refusal> {
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(&path);
    file.map_err(|source| Refusal::Open { path, source })
}

/// Name of the process that took a lock of an open file, by `/proc/locks` (proc(5)). The kernel
/// hides processes of other PID namespaces there, and those of locks by open file description; a
/// process may also have ended and left the lock to another one.
pub(super) fn holder(file: &File, roots: &Roots) -> String {
    let text = fs::read_to_string(roots.proc.join("locks")).unwrap_or_default();
    let inode = file.metadata().map_or(0, |file| file.ino());
    let process = text.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, kind, _, _, process, place, ..] = words[..] else { return None };
        let same = kind != "->" && place.rsplit(':').next()?.parse() == Ok(inode);
        same.then(|| process.parse::<u32>().ok()).flatten().filter(|process| *process > 0)
    });
    let named = process.and_then(|process| {
        let name = fs::read_to_string(roots.proc.join(process.to_string()).join("comm")).ok()?;
        Some(format!("{} (process {process})", name.trim()))
    });
    named.unwrap_or_else(|| "another process".into())
}
