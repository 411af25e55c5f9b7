//! Locks of a claimed disk, which prevent its use by other runs, formatting programs, and udev.
//!
//! There are two flock(2) locks for each disk. The lock of the device node of the whole disk is the
//! one defined by systemd (Locking Block Device Access), which udev, sfdisk, and other programs
//! check. Some mkfs programs take this lock themselves, so fslab releases it while a program runs
//! ([`DiskLock::lend`]). The lock of the sysfs directory of the disk is used by fslab only. This
//! lock is held until the end of the run, so that another run cannot claim the disk while a program
//! runs.

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

/// Pause between two attempts to take a lock.
const PAUSE: Duration = Duration::from_millis(50);
/// Number of attempts for the lock of the sysfs directory. The number is small, because another run
/// holds this lock until it ends.
const RUN: u32 = 3;
/// Number of attempts for the lock of the device node, 3 s in total, because udev holds this lock
/// while it probes a disk.
const CLAIM: u32 = 60;
/// Number of attempts for the lock of the device node after a program has ended, 30 s in total.
/// udev then probes the written data, which takes long on a slow disk with many partitions.
const RETURN: u32 = 600;

/// Locks of a whole disk; released when dropped.
#[derive(Debug)]
pub(crate) struct DiskLock {
    pub(super) number: Number,
    name: String,
    node: File,
    run: File,
    roots: Roots,
}

impl DiskLock {
    /// Locks the whole disk of `block`. If the disk has no device node, as in some containers, the
    /// node `claimed` of the claimed device is locked instead.
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

    /// Releases the lock of the device node, so that a program can take this lock.
    pub(crate) fn lend(&self) {
        if let Err(error) = flock(&self.node, FlockOperation::Unlock) {
            tracing::debug!(disk = self.name, %error, "not unlocked");
        }
    }

    /// Takes the lock of the device node again, after a program has ended.
    ///
    /// # Errors
    /// [`Refusal::Locked`] if another process holds the lock for 30 s.
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
    /// Unlocks explicitly. Closing the files would not release the locks while a process between
    /// fork and exec shares the open files.
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

/// Name and ID of the process that took a lock of an open file, from `/proc/locks` (proc(5)).
/// "another process" if the process is unknown. The kernel shows neither processes of other PID
/// namespaces nor the owners of open file description locks. The process may also have ended after
/// passing the lock to another process.
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
