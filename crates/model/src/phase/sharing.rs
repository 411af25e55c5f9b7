//! Names of the files of a stream, and their sharing by its workers.

use serde::{Deserialize, Serialize};

/// Names of the files of a stream in the test directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileSharing {
    /// One file of this name; one worker.
    One(String),
    /// `PREFIX.0`, `PREFIX.1`, …, one per worker.
    PerWorker(String),
    /// One per worker, named by a template in which `{worker}` is replaced by the number of the
    /// worker.
    Template(String),
    /// One file, of which each worker accesses all blocks.
    Shared(String),
    /// One file with a segment per worker. The segment of worker w of n starts at block `w *
    /// floor(blocks / n)`.
    Segmented(String),
    /// One file in which the blocks of the workers alternate: block b of worker w of n is block
    /// `b * n + w` of the file. Each worker has `floor(blocks / n)` blocks.
    Interleaved(String),
    /// Several files per worker, all accessed as whole files.
    Several(SeveralFiles),
}

impl FileSharing {
    /// The file name of a worker, or that of its first file.
    pub fn name(&self, worker: u32) -> String {
        match self {
            Self::One(name)
            | Self::Shared(name)
            | Self::Segmented(name)
            | Self::Interleaved(name) => name.clone(),
            Self::PerWorker(prefix) => format!("{prefix}.{worker}"),
            Self::Template(text) => text.replace("{worker}", &worker.to_string()),
            Self::Several(files) => files.name(worker, 0),
        }
    }

    /// Names of all files of a worker.
    pub fn names(&self, worker: u32) -> Vec<String> {
        match self {
            Self::Several(files) => files.names(worker),
            Self::One(_)
            | Self::PerWorker(_)
            | Self::Template(_)
            | Self::Shared(_)
            | Self::Segmented(_)
            | Self::Interleaved(_) => vec![self.name(worker)],
        }
    }

    /// Number of files of each worker.
    pub fn per_worker(&self) -> u32 {
        self.several().map_or(1, SeveralFiles::per_worker)
    }

    /// Files of each worker if there may be several.
    pub fn several(&self) -> Option<&SeveralFiles> {
        match self {
            Self::Several(files) => Some(files),
            Self::One(_)
            | Self::PerWorker(_)
            | Self::Template(_)
            | Self::Shared(_)
            | Self::Segmented(_)
            | Self::Interleaved(_) => None,
        }
    }

    /// True if each worker accesses a part of one file that no other worker accesses.
    pub fn divides_file(&self) -> bool {
        matches!(self, Self::Segmented(_) | Self::Interleaved(_))
    }

    /// True if no two workers access the same file.
    pub fn are_separate(&self) -> bool {
        match self {
            Self::PerWorker(_) | Self::Template(_) => true,
            Self::Several(files) => files.are_separate(),
            Self::One(_) | Self::Shared(_) | Self::Segmented(_) | Self::Interleaved(_) => false,
        }
    }

    /// Number of files of this many workers.
    pub fn count(&self, workers: u32) -> u32 {
        match self {
            Self::One(_) | Self::Shared(_) | Self::Segmented(_) | Self::Interleaved(_) => 1,
            Self::PerWorker(_) | Self::Template(_) => workers,
            Self::Several(files) => files.count(workers),
        }
    }
}

/// Files of each worker, which it accesses in turn. All have the size of the stream.
///
/// Each file has its own position, permutation, and end. A worker selects the file before each
/// operation, as fio does:
///
/// ```text
/// round-robin, 1 operation    a0 b0 c0 a1 b1 c1 …
/// round-robin, 2 operations   a0 a1 b0 b1 c0 c1 …
/// sequential                  a0 a1 … b0 b1 … c0 c1 …
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeveralFiles {
    /// Names, at least 1. `{worker}` is replaced by the number of the worker; names without it are
    /// files that all workers share.
    pub names: Vec<String>,
    /// Directories of the names; worker w uses directory w modulo their number. Empty: the test
    /// directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<String>,
    /// Selection of the next file.
    pub order: FileOrder,
    /// Operations on a file before another one is selected, at least 1. [`FileOrder::Sequential`]
    /// does not use it.
    pub turn: u64,
    /// Maximum number of open files, at least 1. The first ones are opened before the clock starts.
    /// Each other file is opened when it is selected first, after a file without blocks was closed.
    /// Files that would exceed the number are not selected.
    pub open: u32,
}

/// Selection of the next file of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileOrder {
    /// The next file that has blocks left.
    #[default]
    RoundRobin,
    /// A random file that has blocks left.
    Random,
    /// The same file until it has no more blocks, then the next one.
    Sequential,
}

impl SeveralFiles {
    /// Number of files of each worker.
    pub fn per_worker(&self) -> u32 {
        u32::try_from(self.names.len()).unwrap_or(u32::MAX)
    }

    /// True if each worker has files that no other worker has.
    pub fn are_separate(&self) -> bool {
        self.names.iter().all(|name| name.contains("{worker}"))
    }

    /// Name of a file of a worker, with its directory.
    pub fn name(&self, worker: u32, file: usize) -> String {
        let name = self.names.get(file).map_or("", String::as_str);
        let name = name.replace("{worker}", &worker.to_string());
        match self.directories.len() {
            0 => name,
            count => format!("{}/{name}", self.directories[worker as usize % count]),
        }
    }

    /// Names of the files of a worker.
    pub fn names(&self, worker: u32) -> Vec<String> {
        (0..self.names.len()).map(|file| self.name(worker, file)).collect()
    }

    /// Number of files of this many workers, each counted once.
    pub fn count(&self, workers: u32) -> u32 {
        let places = u32::try_from(self.directories.len()).unwrap_or(u32::MAX).max(1);
        let owners = if self.are_separate() { workers } else { workers.min(places) };
        self.per_worker().saturating_mul(owners)
    }
}
