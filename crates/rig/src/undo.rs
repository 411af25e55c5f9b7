//! The undo journal: what was changed on the machine, written down before it is changed.
//!
//! A [`Journal`] is a file of JSON lines in the state directory, one file a run. A change goes
//! through three steps: the line `planned` is written and fsynced; the change is made; where only
//! the making tells what is needed to undo it safely (the inode of a new file, what a setting reads
//! back as), a line `known` follows. Undoing writes `undone`. The lines of a run that ends well are
//! removed with their file.
//!
//! A run holds an flock(2) on its journal, so a journal that can be locked belongs to a dead run:
//! [`clean`] undoes its open changes in reverse. Undoing is idempotent and checks identity first: a
//! name or number that means another thing by now is left alone. So is a setting that reads
//! otherwise than the run left it, since somebody else has changed it; that is told. Settings that
//! the kernel moves by itself are put back whatever they read as. Mounts, loop devices, mapped
//! devices, settings and control groups do not outlive a reboot; a journal of another boot id
//! undoes files, directories, and the superblocks of arrays only.
//!
//! A line that is not understood was written by a newer version, or is damaged. The changes after
//! it are undone, those before it are not, since they may carry what it is about; the journal is
//! kept and the line reported. Only a last line without its end counts as torn.
//!
//! Deliberately not here: killing what keeps a mount busy. It is reported, and the journal kept.

mod change;
mod layer;
mod others;
mod place;
mod revert;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

pub(crate) use self::revert::{Outcome, revert, selected};
pub use self::{
    change::{Basis, Built, Change},
    others::{Other, others},
    place::{check_state_directory, default_state_directory, make_state_directory},
};
use crate::{error::RigError, host::Host};

/// Begins every name that is made up here, so that a stranger's file is never taken for ours.
pub const PREFIX: &str = "fslab-";

/// File in a directory tree of ours that holds the id of the run it belongs to.
pub const MARKER: &str = ".fslab-run";

const JOURNALS: &str = "journal";
const ENDING: &str = "jsonl";

/// Number of a change within its journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Step(u64);

/// A line of a journal.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
enum Line {
    /// The first line.
    Run { run_id: String, pid: u32, boot: Option<String> },
    /// The change is about to be made.
    Planned { step: Step, what: Change },
    /// It was made, and this is what undoing it needs.
    Known { step: Step, what: Change },
    /// It was undone, or never came to be.
    Undone { step: Step },
}

/// A change that was not undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The change, in words.
    pub what: String,
    /// Why not, and where it ought to be, what to do about it.
    pub why: String,
}

/// What [`clean`] did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanReport {
    /// Runs that are alive and were left alone.
    pub live: Vec<String>,
    /// Changes undone, in words, newest first within a run.
    pub undone: Vec<String>,
    /// Settings left alone, since somebody else has changed them; nothing is left to do.
    pub left: Vec<Stuck>,
    /// Changes that could not be undone; their journals are kept.
    pub stuck: Vec<Stuck>,
}

/// The journal of a live run; see the module.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    next: u64,
    open: Vec<(Step, Change)>,
    /// What was closed without being undone.
    left: Vec<Stuck>,
    /// The last line that this version does not understand.
    foreign: Option<Foreign>,
}

/// A line of a journal that this version does not understand, such as one of a newer version.
#[derive(Clone, Copy, Debug)]
struct Foreign {
    /// Its number, from 1.
    line: usize,
    /// Changes before this step were made before it. They may carry what it is about, so they are
    /// not undone; later changes are.
    before: Step,
}

impl Journal {
    /// Starts the journal of a run and locks it.
    ///
    /// # Errors
    /// [`RigError::State`] when others can change the state directory, and [`RigError::Journal`]
    /// when the journal cannot be written, or when one of that id exists.
    pub fn create(host: &dyn Host, state: &Path, run_id: &str) -> Result<Self, RigError> {
        let folder = state.join(JOURNALS);
        let path = folder.join(format!("{run_id}.{ENDING}"));
        let failed = |source| RigError::Journal { path: path.clone(), source };
        check_state_directory(state)?;
        place::make_durable(&folder, &mut place::sync).map_err(failed)?;
        let file = loop {
            let mut options = OpenOptions::new();
            let file =
                options.append(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
            flock(&file, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
            // Between the two calls a `clean` may have taken the empty file for a dead run's.
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
            left: Vec::new(),
            foreign: None,
        };
        let boot = host.boot_id();
        journal.append(&Line::Run { run_id: run_id.to_owned(), pid: host.pid(), boot })?;
        place::sync(&folder).map_err(failed)?;
        Ok(journal)
    }

    /// Writes down a change that is about to be made; when this returns, the line is on disk.
    ///
    /// # Errors
    /// [`RigError::Journal`]; the change must not be made then.
    pub fn plan(&mut self, change: Change) -> Result<Step, RigError> {
        let step = Step(self.next);
        // Whatever comes of the line: no two changes have one number.
        self.next += 1;
        self.append(&Line::Planned { step, what: change.clone() })?;
        self.open.push((step, change));
        Ok(step)
    }

    /// Replaces what is known of a change that was made.
    ///
    /// # Errors
    /// [`RigError::Journal`].
    pub fn know(&mut self, step: Step, change: Change) -> Result<(), RigError> {
        self.append(&Line::Known { step, what: change.clone() })?;
        if let Some(entry) = self.open.iter_mut().find(|(open, _)| *open == step) {
            entry.1 = change;
        }
        Ok(())
    }

    /// A change that is still open.
    pub(crate) fn open_change(&self, step: Step) -> Option<&Change> {
        self.open.iter().find(|(open, _)| *open == step).map(|(_, change)| change)
    }

    /// Undoes one change, if it is still open, or leaves it alone for good.
    ///
    /// # Errors
    /// [`Stuck`] when it cannot be undone; it stays open.
    pub(crate) fn undo(&mut self, host: &dyn Host, step: Step) -> Result<Outcome, Stuck> {
        let Some(index) = self.open.iter().position(|(open, _)| *open == step) else {
            return Ok(Outcome::Undone);
        };
        let change = &self.open[index].1;
        let stuck = |what: &Change, why: String| Stuck { what: what.describe(), why };
        // Putting that one back, later, would disturb this again.
        let newer = self.open[index + 1..].iter().find(|(_, newer)| change.belongs_to(newer));
        if let Some((_, newer)) = newer {
            return Err(stuck(
                change,
                format!("it goes with {}, which comes first", newer.describe()),
            ));
        }
        let outcome = revert(host, change).map_err(|why| stuck(change, why))?;
        if let Outcome::Left(why) = &outcome {
            let left = stuck(change, why.clone());
            tracing::warn!(what = left.what, why, "left alone");
            self.left.push(left);
        }
        self.open.remove(index);
        self.write_undone(step);
        Ok(outcome)
    }

    /// Closes a change that was not made.
    pub(crate) fn never(&mut self, step: Step) {
        self.open.retain(|(open, _)| *open != step);
        self.write_undone(step);
    }

    fn write_undone(&mut self, step: Step) {
        // A lost `undone` is harmless, since undoing twice is. Stopping here would not be: it may
        // be the image that fills the disk of the journal, and it is undone after this.
        if let Err(error) = self.append(&Line::Undone { step }) {
            tracing::warn!(path = %self.path.display(), %error, "undone, but not written down");
        }
    }

    /// Undoes everything that is open, newest first, and removes the journal if nothing is stuck.
    /// Calling it again tries again what was stuck.
    pub fn close(&mut self, host: &dyn Host) -> Vec<Stuck> {
        let mut stuck: Vec<Stuck> = Vec::new();
        let mut held = false;
        if let Some(Foreign { line, .. }) = self.foreign {
            let what = format!("line {line} of the journal {}", self.path.display());
            let why = "this version does not understand it; run `fslab clean` of the version that \
                       wrote it, or undo the changes manually and remove the journal";
            stuck.push(Stuck { what, why: why.to_owned() });
        }
        for (step, change) in self.open.clone().into_iter().rev() {
            if let Some(Foreign { line, .. }) = self.foreign.filter(|it| step < it.before) {
                let why = format!("it was made before line {line}, which is not understood");
                stuck.push(Stuck { what: change.describe(), why });
            } else if held && change.carries() {
                let why = "something still stands on it".to_owned();
                stuck.push(Stuck { what: change.describe(), why });
            } else if let Err(trouble) = self.undo(host, step) {
                stuck.push(trouble);
                held |= matches!(
                    change,
                    Change::Mount { .. } | Change::Loops { .. } | Change::Layer { .. }
                );
            }
        }
        if stuck.is_empty()
            && let Err(error) = fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path.display(), %error, "journal not removed");
        }
        stuck
    }

    /// Forgets all changes and gives the lock back, as a kill would.
    #[cfg(test)]
    pub(crate) fn abandon(&mut self) {
        self.open.clear();
        self.path = PathBuf::new();
        flock(&self.file, FlockOperation::Unlock).unwrap();
    }

    fn append(&mut self, line: &Line) -> Result<(), RigError> {
        let failed = |source| RigError::Journal { path: self.path.clone(), source };
        let mut text = serde_json::to_string(line).map_err(|error| failed(error.into()))?;
        text.push('\n');
        let whole = self.file.metadata().map_err(failed)?.len();
        if let Err(source) = self.file.write_all(text.as_bytes()) {
            // What a full disk took of the line would swallow the next one.
            if let Err(error) = self.file.set_len(whole) {
                tracing::warn!(path = %self.path.display(), %error, "a torn line stays");
            }
            return Err(failed(source));
        }
        // Read on another start of the machine, too: so not only for the eyes of this kernel.
        self.file.sync_data().map_err(failed)
    }
}

/// Undoes what dead runs left: every journal in the state directory that no live run holds.
///
/// # Errors
/// [`RigError::State`] when others can change the state directory, and [`RigError::Journal`] when
/// the journals cannot be listed; what cannot be undone, and a journal
/// that cannot be read, is in the report instead.
pub fn clean(host: &dyn Host, state: &Path) -> Result<CleanReport, RigError> {
    check_state_directory(state)?;
    let mut report = CleanReport::default();
    let folder = state.join(JOURNALS);
    let failed = |path: &Path, source| RigError::Journal { path: path.to_owned(), source };
    let mut paths = match folder.read_dir() {
        Ok(entries) => entries
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<Vec<_>>>()
            .map_err(|error| failed(&folder, error))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(report),
        Err(error) => return Err(failed(&folder, error)),
    };
    paths.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    paths.sort();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (file, text) = match take(&path) {
            Ok(Taken::Dead(file, text)) => (file, text),
            Ok(Taken::Live) => {
                report.live.push(name);
                continue;
            }
            Ok(Taken::Gone) => continue,
            // One journal that cannot be read keeps no other run from being undone.
            Err(error) => {
                let why = format!("{error}; look into it, and remove it once all is undone");
                report.stuck.push(Stuck { what: format!("journal {}", path.display()), why });
                continue;
            }
        };
        let mut journal = replay(host, &text, file, &path);
        let before: Vec<_> = journal.open.iter().map(|(_, change)| change.describe()).collect();
        let stuck = journal.close(host);
        // Closing alone would not do while a child of this process is about to become a program.
        if let Err(error) = flock(&journal.file, FlockOperation::Unlock) {
            tracing::debug!(path = %path.display(), %error, "journal not unlocked");
        }
        let left = std::mem::take(&mut journal.left);
        let kept = |what: &String| stuck.iter().chain(&left).any(|other| other.what == *what);
        report.undone.extend(before.into_iter().rev().filter(|what| !kept(what)));
        report.stuck.extend(stuck);
        report.left.extend(left);
    }
    Ok(report)
}

/// A journal that was found.
enum Taken {
    /// Its run is over: the file, now locked, and its text.
    Dead(File, Vec<u8>),
    /// Its run is alive.
    Live,
    /// Its run has ended since the journals were listed, and put the machine back itself.
    Gone,
}

/// Locks and reads a journal unless a live run holds it.
fn take(path: &Path) -> io::Result<Taken> {
    let mut file = match OpenOptions::new().append(true).read(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Taken::Gone),
        file => file?,
    };
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(errno) if errno == rustix::io::Errno::WOULDBLOCK => return Ok(Taken::Live),
        answer => answer?,
    }
    let ours = file.metadata()?.ino();
    if !fs::metadata(path).is_ok_and(|there| there.ino() == ours) {
        return Ok(Taken::Gone);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(Taken::Dead(file, bytes))
}

/// Rebuilds the state of a dead run's journal. A last line without its end is what a kill leaves:
/// its change had not begun, or what it adds is missing, which undoing allows for. It is cut off.
/// Any other line that is not understood is kept in mind, and the journal with it.
fn replay(host: &dyn Host, text: &[u8], file: File, path: &Path) -> Journal {
    let mut journal = Journal {
        file,
        path: path.to_owned(),
        next: 0,
        open: Vec::new(),
        left: Vec::new(),
        foreign: None,
    };
    let mut same_boot = true;
    let mut whole = 0;
    for (index, text) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
        let Ok(line) = serde_json::from_slice::<Line>(text) else {
            if text.ends_with(b"\n") {
                journal.foreign = Some(Foreign { line: index + 1, before: Step(journal.next) });
                whole += text.len();
            }
            continue;
        };
        whole += text.len();
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
        journal.open.retain(|(_, change)| !change.volatile());
        journal.open.iter_mut().for_each(|(_, change)| change.renumber(host));
    }
    // What is appended now must not be glued to a line without an end.
    let end = match (whole == text.len(), text.ends_with(b"\n") || text.is_empty()) {
        (false, _) => journal.file.set_len(whole as u64),
        (true, false) => journal.file.write_all(b"\n"),
        (true, true) => Ok(()),
    };
    if let Err(error) = end {
        tracing::warn!(path = %path.display(), %error, "a torn line stays");
    }
    journal
}

#[cfg(test)]
mod tests;
