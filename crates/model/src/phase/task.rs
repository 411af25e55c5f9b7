//! Everyday tasks: what people do with files at the prompt, each timed as a whole.

use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// One task, done once by one worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// What is done.
    pub deed: Deed,
    /// By what.
    pub method: Method,
    /// Bytes of one call that reads or writes, at least 1; only of [`Method::Native`].
    pub buffer: Bytes,
    /// Seed of everything drawn.
    pub seed: u64,
}

/// Who does a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// This program, by system calls.
    Native,
    /// The everyday programs (touch, mkdir, find, rm, cp, tar, dd, split, cat), one process for
    /// each command; starting them is part of the time.
    Programs {
        /// For tasks that make many entries: one process for each of them instead of one for all.
        each: bool,
    },
}

/// Where a file or directory of a task is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spot {
    /// Which of the two places.
    pub at: At,
    /// Name below it: components separated by `/`, none of them `.` or `..`.
    pub name: String,
}

/// The two places of a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum At {
    /// The directory under test.
    Target,
    /// A directory on another filesystem, for copying from and to it.
    Elsewhere,
}

/// What a task does. A name that is to be made must not exist; its parent does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Deed {
    /// Makes a directory and so many empty files in it, as touch(1) does; their names are numbers
    /// from 0.
    Touch {
        /// The directory.
        directory: Spot,
        /// How many.
        count: u64,
    },
    /// Makes a directory and so many directories in it, likewise; 0 makes the directory only.
    MakeDirectories {
        /// The directory.
        directory: Spot,
        /// How many.
        count: u64,
    },
    /// Visits all names below a directory without their inodes where the directory tells the type,
    /// as find(1) does.
    Find {
        /// The directory.
        directory: Spot,
    },
    /// Removes a directory and all below it, or a file.
    RemoveTree {
        /// The directory.
        directory: Spot,
    },
    /// Copies a file, so many times if `times` > 1: to `to.1`, `to.2` and so on.
    Copy {
        /// From where.
        from: Spot,
        /// To where; made anew.
        to: Spot,
        /// How many copies, at least 1.
        times: u32,
    },
    /// Unpacks an archive into a directory that is made for it.
    Unpack {
        /// The archive.
        archive: Spot,
        /// The directory.
        into: Spot,
    },
    /// Packs a directory with all below it.
    Pack {
        /// The directory.
        directory: Spot,
        /// The archive, made anew.
        archive: Spot,
        /// How it is compressed.
        compression: Compression,
    },
    /// Copies a directory with all below it, with modes and times.
    CopyTree {
        /// From where.
        from: Spot,
        /// To where; made anew.
        to: Spot,
    },
    /// Writes zeros, as from /dev/zero.
    Zeros {
        /// The file, made anew.
        file: Spot,
        /// Its size.
        size: Bytes,
    },
    /// Cuts a file into pieces `into/000`, `into/001` and so on, with as many digits as the last of
    /// them needs.
    Split {
        /// The file.
        file: Spot,
        /// Size of a piece, at least 1; the last may be shorter.
        piece: Bytes,
        /// The directory, made anew.
        into: Spot,
    },
    /// Reads a file to its end and forgets what it reads.
    Read {
        /// The file.
        file: Spot,
    },
    /// Makes a file of bytes that cannot be compressed.
    Random {
        /// The file, made anew.
        file: Spot,
        /// Its size.
        size: Bytes,
    },
    /// Makes an archive of a tree of source code that is drawn from the seed.
    Archive {
        /// The archive, made anew.
        archive: Spot,
        /// How many files the tree has, at least 1.
        files: u64,
        /// How it is compressed.
        compression: Compression,
    },
    /// Takes an archive that the user has: checked, and copied.
    Fetch {
        /// Its path on this machine.
        path: String,
        /// To where; made anew.
        archive: Spot,
    },
}

/// How an archive is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip (RFC 1952), level 6.
    Gzip,
}
