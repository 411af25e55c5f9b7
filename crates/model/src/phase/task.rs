//! Everyday tasks: common file operations of a user, each timed as a whole.

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// Task that one worker performs once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// Operation.
    pub operation: TaskOperation,
    /// Method.
    pub method: Method,
    /// Bytes per I/O call, at least 1; only for [`Method::Native`].
    pub block_size: Bytes,
    /// Seed of random data.
    pub seed: u64,
}

/// Method of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// System calls of fslab.
    Native,
    /// Standard programs (touch, mkdir, find, rm, cp, tar, dd, split, cat), one process per
    /// command. The start of a process is part of the time.
    Programs {
        /// True to start one process per entry, for tasks that create many entries.
        per_file: bool,
    },
}

/// Path of a file or directory that a task uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPath {
    /// Root directory.
    pub root: TaskRoot,
    /// Relative path without `.` and `..`.
    pub name: String,
}

/// Root directories of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TaskRoot {
    /// Test directory.
    Target,
    /// Directory on another filesystem, source and target of copy tasks.
    External,
}

/// Operation of a task. The paths that it creates must not exist; their parents must exist.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOperation {
    /// Creates a directory with empty files, as with touch(1). The names of the files are numbers
    /// from 0.
    Touch {
        /// Directory.
        directory: TaskPath,
        /// Number of files.
        count: u64,
    },
    /// Creates a directory with subdirectories, whose names are numbers from 0. With 0
    /// subdirectories, only the directory.
    MakeDirectories {
        /// Directory.
        directory: TaskPath,
        /// Number of subdirectories.
        count: u64,
    },
    /// Visits all names below a directory, as find(1) does. Inodes are read only if the directory
    /// does not contain the types of its entries.
    Find {
        /// Directory.
        directory: TaskPath,
    },
    /// Removes a directory with its contents, or a file.
    RemoveTree {
        /// Directory.
        directory: TaskPath,
    },
    /// Copies a file. If `times` is greater than 1, the copies are `to.1`, `to.2`, and so on.
    Copy {
        /// Source.
        from: TaskPath,
        /// Target, which is created.
        to: TaskPath,
        /// Number of copies, at least 1.
        times: u32,
    },
    /// Unpacks an archive into a new directory.
    Unpack {
        /// Archive.
        archive: TaskPath,
        /// Directory.
        into: TaskPath,
    },
    /// Packs a directory with its contents.
    Pack {
        /// Directory.
        directory: TaskPath,
        /// Archive, which is created.
        archive: TaskPath,
        /// Compression.
        compression: Compression,
    },
    /// Copies a directory with its contents, modes, and times.
    CopyTree {
        /// Source.
        from: TaskPath,
        /// Target, which is created.
        to: TaskPath,
    },
    /// Writes a file of zeros, as from /dev/zero.
    Zeros {
        /// File, which is created.
        file: TaskPath,
        /// File size.
        size: Bytes,
    },
    /// Splits a file into pieces `into/000`, `into/001`, and so on. All names have as many digits
    /// as that of the last piece.
    Split {
        /// File.
        file: TaskPath,
        /// Size of a piece, at least 1; the last piece may be shorter.
        piece: Bytes,
        /// Directory, which is created.
        into: TaskPath,
    },
    /// Reads a file to its end and discards the data.
    Read {
        /// File.
        file: TaskPath,
    },
    /// Creates a file of incompressible data.
    Random {
        /// File, which is created.
        file: TaskPath,
        /// File size.
        size: Bytes,
    },
    /// Creates an archive of a generated source tree, which depends on the seed.
    Archive {
        /// Archive, which is created.
        archive: TaskPath,
        /// Number of files of the tree, at least 1.
        files: u64,
        /// Compression.
        compression: Compression,
    },
    /// Checks and copies an archive that the user provides.
    Fetch {
        /// Path on the host.
        path: String,
        /// Target, which is created.
        archive: TaskPath,
    },
}

/// Compression of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// Not compressed.
    None,
    /// gzip (RFC 1952), level 6.
    Gzip,
}
