//! Undo journal: a write-ahead list of the changes to the machine.
//!
//! Each run has a [`Journal`], a file of JSON lines in the state directory. Before a change, the
//! line `planned` is written and synced. After the change, the line `known` adds facts that undo
//! requires, such as the inode of a new file or the value of a setting as read back. After an undo,
//! the line `undone` is written. When a run ends and all its changes are undone, its journal is
//! removed.
//!
//! A run holds an flock(2) lock on its journal. A journal that can be locked therefore belongs to a
//! dead run, and [`clean`] undoes its open changes in reverse order. A change is open if there is
//! no line `undone` for it. Undo is idempotent. Before an undo, the identity of the target is
//! checked: if a path or number now leads to another file or device, nothing is changed. A setting
//! that no longer has the value of the run was changed by another process; it is skipped and
//! reported. Settings that the kernel changes by itself are always restored. A reboot removes
//! mounts, loop devices, mapped devices, and control groups, and resets settings. If the boot ID of
//! a journal differs from that of the machine, only files, directories, and arrays are undone.
//!
//! A line that cannot be parsed was written by a newer version or is damaged. Changes after this
//! line are undone. Changes before it are not undone, because the unknown change may depend on
//! them. The line is reported, and the journal is kept. An incomplete last line is different: it
//! was being written when the run was killed, and it is removed.
//!
//! Processes that keep a mount busy are not killed. The mount is reported, and the journal is kept.

mod change;
mod command;
mod layer;
mod others;
mod place;
mod revert;

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

pub(crate) use self::revert::{Outcome, PAUSE, TRIES, revert};
pub use self::{
    change::{Built, Change, ParentSetting},
    others::{OtherRun, others},
    place::{check_state_directory, default_state_directory, make_state_directory},
};
pub use crate::error::NotUndone;
pub use crate::host::MARKER;
use crate::{error::RigError, host::Host};

/// Prefix of all names that fslab generates. Undo removes an image file or a directory tree only if
/// its name has this prefix.
pub const PREFIX: &str = "fslab-";

const JOURNALS: &str = "journal";
const ENDING: &str = "jsonl";

/// Number of a change within its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Step(u64);

/// Line of a journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
enum Line {
    /// First line.
    Run { run_id: String, pid: u32, boot: Option<String> },
    /// A change that is about to be made.
    Planned { step: Step, what: Change },
    /// A change that was made, with the facts that undo requires.
    Known { step: Step, what: Change },
    /// The change was undone or never made.
    Undone { step: Step },
}

/// Result of [`clean`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanReport {
    /// Names of active runs, whose journals were skipped.
    pub live: Vec<String>,
    /// Descriptions of the undone changes, ordered by run and then from newest to oldest.
    pub undone: Vec<String>,
    /// Settings that were skipped because another process has changed them. The user does not have
    /// to do anything.
    pub skipped: Vec<NotUndone>,
    /// Changes that could not be undone. Their journals are kept.
    pub failed: Vec<NotUndone>,
}

/// Locked journal of one run.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    next: u64,
    open: Vec<(Step, Change)>,
    /// Changes that were closed without being undone.
    skipped: Vec<NotUndone>,
    /// Last line that this version cannot parse, if any.
    unknown_line: Option<UnknownLine>,
}

/// Line that this version cannot parse, for example because a newer version wrote it.
#[derive(Clone, Copy, Debug)]
struct UnknownLine {
    /// Line number, from 1.
    line: usize,
    /// Lowest step after the line. Changes with lower steps are not undone, because the unknown
    /// change may depend on them.
    before: Step,
}

impl Journal {
    /// Creates and locks the journal of a run.
    ///
    /// # Errors
    /// [`RigError::State`] if other users can modify the state directory, and [`RigError::Journal`]
    /// if the journal cannot be written or already exists.
    pub fn create(host: &dyn Host, state: &Path, run_id: &str) -> Result<Self, RigError> {
        let directory = state.join(JOURNALS);
        let path = directory.join(format!("{run_id}.{ENDING}"));
        let failed = |source| RigError::Journal { path: path.clone(), source };
        check_state_directory(state)?;
        place::make_durable(&directory, &mut place::sync).map_err(failed)?;
        let file = loop {
            let mut options = OpenOptions::new();
            let file =
                options.append(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
            flock(&file, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
            // Between the creation and the lock, `clean` may have removed the empty file as the
            // journal of a dead run.
            let ours = file.metadata().map_err(failed)?.ino();
            if fs::metadata(&path).is_ok_and(|there| there.ino() == ours) {
                break file;
            }
        };
        let mut journal = Self {
            file,
            path: path.clone(),
            next: 0,
            open: Vec::new(),
            skipped: Vec::new(),
            unknown_line: None,
        };
        let boot = host.boot_id();
        journal.append(&Line::Run { run_id: run_id.to_owned(), pid: host.pid(), boot })?;
        place::sync(&directory).map_err(failed)?;
        Ok(journal)
    }

    /// Records a change that is about to be made. When this returns, the line is on disk.
    ///
    /// # Errors
    /// [`RigError::Journal`] if the line cannot be written. The change must not be made then.
    pub fn plan(&mut self, change: Change) -> Result<Step, RigError> {
        let step = Step(self.next);
        // The number is used up even if the write fails, because two changes must not have the same
        // number.
        self.next += 1;
        self.append(&Line::Planned { step, what: change.clone() })?;
        self.open.push((step, change));
        Ok(step)
    }

    /// Updates the journal entry of a change that was made.
    ///
    /// # Errors
    /// [`RigError::Journal`].
    pub fn update(&mut self, step: Step, change: Change) -> Result<(), RigError> {
        self.append(&Line::Known { step, what: change.clone() })?;
        if let Some(entry) = self.open.iter_mut().find(|(open, _)| *open == step) {
            entry.1 = change;
        }
        Ok(())
    }

    /// Returns a change if it is open, that is, neither undone nor skipped.
    pub(crate) fn open_change(&self, step: Step) -> Option<&Change> {
        self.open.iter().find(|(open, _)| *open == step).map(|(_, change)| change)
    }

    /// Undoes an open change, or closes it without an undo if its target was changed by another
    /// process. Does nothing if the change is already closed.
    ///
    /// # Errors
    /// [`NotUndone`] if the change cannot be undone; it remains open.
    pub(crate) fn undo(&mut self, host: &dyn Host, step: Step) -> Result<Outcome, NotUndone> {
        let Some(index) = self.open.iter().position(|(open, _)| *open == step) else {
            return Ok(Outcome::Undone);
        };
        let change = &self.open[index].1;
        let failed = |what: &Change, why: String| NotUndone { what: what.describe(), why };
        // Undoing the newer change afterwards would alter the value that this undo restores.
        let newer = self.open[index..].iter().find(|(_, newer)| change.depends_on(newer));
        if let Some((_, newer)) = newer {
            return Err(failed(
                change,
                format!("it depends on {}, which must be undone first", newer.describe()),
            ));
        }
        let outcome = revert(host, change).map_err(|why| failed(change, why))?;
        if let Outcome::Skipped(why) = &outcome {
            let skipped = failed(change, why.clone());
            tracing::warn!(what = skipped.what, why, "skipped");
            self.skipped.push(skipped);
        }
        self.open.remove(index);
        self.write_undone(step);
        Ok(outcome)
    }

    /// Closes a change that was not made.
    pub(crate) fn cancel(&mut self, step: Step) {
        self.open.retain(|(open, _)| *open != step);
        self.write_undone(step);
    }

    fn write_undone(&mut self, step: Step) {
        // A missing `undone` line is harmless, because undo is idempotent. An error here must not
        // stop the undo of other changes: if the disk of the journal is full, the next undo may
        // remove the image that fills it.
        if let Err(error) = self.append(&Line::Undone { step }) {
            tracing::warn!(path = %self.path.display(), %error, "undone, but not recorded");
        }
    }

    /// Undoes all open changes, newest first, and returns those that could not be undone. The
    /// journal is removed if there are none. Another call retries the failed changes.
    pub fn close(&mut self, host: &dyn Host) -> Vec<NotUndone> {
        let mut failed: Vec<NotUndone> = Vec::new();
        let mut held = false;
        if let Some(UnknownLine { line, .. }) = self.unknown_line {
            let what = format!("line {line} of the journal {}", self.path.display());
            let why = "this version cannot parse it; run `fslab clean` of the version that \
                       wrote it, or undo the changes manually and remove the journal";
            failed.push(NotUndone { what, why: why.to_owned() });
        }
        for (step, change) in self.open.clone().into_iter().rev() {
            if let Some(UnknownLine { line, .. }) = self.unknown_line.filter(|it| step < it.before)
            {
                let why = format!("it was made before line {line}, which cannot be parsed");
                failed.push(NotUndone { what: change.describe(), why });
            } else if held && change.may_be_mounted() {
                let why = "it is still in use".to_owned();
                failed.push(NotUndone { what: change.describe(), why });
            } else if let Err(failure) = self.undo(host, step) {
                failed.push(failure);
                if change.may_be_in_use() {
                    held = true;
                }
            }
        }
        if failed.is_empty()
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path.display(), %error, "journal not removed");
        }
        failed
    }

    /// Discards all changes without undo and releases the lock, as if the run were killed.
    #[cfg(test)]
    pub(crate) fn forget(&mut self) {
        self.open.clear();
        self.path = PathBuf::new();
        flock(&self.file, FlockOperation::Unlock).unwrap();
    }

    fn append(&mut self, line: &Line) -> Result<(), RigError> {
        let failed = |source| RigError::Journal { path: self.path.clone(), source };
        let mut text = serde_json::to_string(line).map_err(|error| failed(error.into()))?;
        text.push('\n');
        let complete = self.file.metadata().map_err(failed)?.len();
        if let Err(source) = self.file.write_all(text.as_bytes()) {
            // If the disk is full, a part of the line may have been written. The next line must not
            // be appended to this part.
            if let Err(error) = self.file.set_len(complete) {
                tracing::warn!(path = %self.path.display(), %error, "cannot remove a torn line");
            }
            return Err(failed(source));
        }
        // The line must survive a crash of the machine.
        self.file.sync_data().map_err(failed)
    }
}

/// Undoes the changes of dead runs. A run is dead if its journal in the state directory is not
/// locked.
///
/// # Errors
/// [`RigError::State`] if other users can modify the state directory, and [`RigError::Journal`] if
/// the journals cannot be listed. Changes that cannot be undone and journals that cannot be read
/// are not errors; the report lists them.
pub fn clean(host: &dyn Host, state: &Path) -> Result<CleanReport, RigError> {
    clean_runs(host, state, "")
}

/// Undoes the changes of dead runs whose IDs start with `prefix`, as [`clean`].
///
/// # Errors
/// As [`clean`].
pub fn clean_runs(host: &dyn Host, state: &Path, prefix: &str) -> Result<CleanReport, RigError> {
    check_state_directory(state)?;
    let mut report = CleanReport::default();
    let directory = state.join(JOURNALS);
    let failed = |path: &Path, source| RigError::Journal { path: path.to_owned(), source };
    let mut paths = match directory.read_dir() {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<_>>>()
            .map_err(|error| failed(&directory, error))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(report),
        Err(error) => return Err(failed(&directory, error)),
    };
    paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    paths.sort();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with(prefix) {
            continue;
        }
        let (file, text) = match take(&path) {
            Ok(FoundJournal::Dead(file, text)) => (file, text),
            Ok(FoundJournal::Live) => {
                report.live.push(name);
                continue;
            }
            Ok(FoundJournal::Gone) => continue,
            // An unreadable journal does not prevent the undo of other runs.
            Err(error) => {
                let why =
                    format!("{error}; inspect it, and remove it when all its changes are undone");
                report.failed.push(NotUndone { what: format!("journal {}", path.display()), why });
                continue;
            }
        };
        let mut journal = replay(host, &text, file, &path);
        let before: Vec<_> = journal.open.iter().map(|(_, change)| change.describe()).collect();
        let failed = journal.close(host);
        // Closing the file would not release the lock while a child process between fork and exec
        // shares the open file.
        if let Err(error) = flock(&journal.file, FlockOperation::Unlock) {
            tracing::debug!(path = %path.display(), %error, "journal not unlocked");
        }
        let skipped = std::mem::take(&mut journal.skipped);
        let kept = |what: &String| failed.iter().chain(&skipped).any(|other| other.what == *what);
        report.undone.extend(before.into_iter().rev().filter(|what| !kept(what)));
        report.failed.extend(failed);
        report.skipped.extend(skipped);
    }
    Ok(report)
}

/// Journal found in the state directory.
enum FoundJournal {
    /// The run is dead. Contains the file, which is now locked, and its text.
    Dead(File, Vec<u8>),
    /// The run is active.
    Live,
    /// The run has ended and removed its journal since the journals were listed.
    Gone,
}

/// Locks and reads a journal unless an active run holds it.
fn take(path: &Path) -> io::Result<FoundJournal> {
    let mut file = match OpenOptions::new().append(true).read(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(FoundJournal::Gone),
        file => file?,
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(FoundJournal::Live),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let ours = file.metadata()?.ino();
    if !fs::metadata(path).is_ok_and(|there| there.ino() == ours) {
        return Ok(FoundJournal::Gone);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(FoundJournal::Dead(file, bytes))
}

/// Rebuilds the journal of a dead run from its text. A kill may leave an incomplete last line,
/// which is removed: if the line is `planned`, the change was not made; if it is `known`, undo
/// works without its facts; if it is `undone`, the undo is repeated. For any other line that cannot
/// be parsed, see [`UnknownLine`].
fn replay(host: &dyn Host, text: &[u8], file: File, path: &Path) -> Journal {
    let mut journal = Journal {
        file,
        path: path.to_owned(),
        next: 0,
        open: Vec::new(),
        skipped: Vec::new(),
        unknown_line: None,
    };
    let mut same_boot = true;
    let mut complete = 0;
    for (index, text) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let Ok(line) = serde_json::from_slice::<Line>(text) else {
            if text.ends_with(b"\n") {
                journal.unknown_line =
                    Some(UnknownLine { line: index + 1, before: Step(journal.next) });
                complete += text.len();
            }
            continue;
        };
        complete += text.len();
        match line {
            Line::Run { boot, .. } => same_boot = boot.is_none() || boot == host.boot_id(),
            Line::Planned { step, what } => {
                journal.next = journal.next.max(step.0 + 1);
                journal.open.push((step, what));
            }
            Line::Known { step, what } => {
                if let Some(entry) = journal.open.iter_mut().find(|(open, _)| *open == step) {
                    entry.1 = what;
                }
            }
            Line::Undone { step } => journal.open.retain(|(open, _)| *open != step),
        }
    }
    if !same_boot {
        journal.open.retain(|(_, change)| !change.undone_by_reboot());
        journal.open.iter_mut().for_each(|(_, change)| change.renumber(host));
    }
    // New lines must not be appended to an incomplete line.
    let end = match (complete == text.len(), text.ends_with(b"\n") || text.is_empty()) {
        (false, _) => journal.file.set_len(complete as u64),
        (true, false) => journal.file.write_all(b"\n"),
        (true, true) => Ok(()),
    };
    if let Err(error) = end {
        tracing::warn!(path = %path.display(), %error, "cannot remove a torn line");
    }
    journal
}

#[cfg(test)]
mod tests;
