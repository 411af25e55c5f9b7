//! Many files: what is done to each of them, by workers with directories of their own.

use serde::{Deserialize, Serialize};

use super::{stream::Fill, workers::Workers};
use crate::units::Bytes;

/// The same steps for each of many files. One operation is all steps of one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    /// Name of the tree in the directory under test; worker w has the directory `NAME.w` in it, and
    /// file i is `NAME.w/D/I` with `D = floor(i / per_directory)`.
    pub name: String,
    /// Files of each worker, at least 1.
    pub files: u64,
    /// Files in one directory, at least 1. Directories are made before the clock starts.
    pub per_directory: u64,
    /// Size of each file; 0 makes empty files.
    pub size: Bytes,
    /// Bytes of one read or write call, at least 1 if files are not empty.
    pub record: Bytes,
    /// The order of files.
    pub order: TreeOrder,
    /// What is done to each file, in order; at least one step.
    pub steps: Vec<TreeStep>,
    /// What is written.
    pub fill: Fill,
    /// Seed of the data and the order.
    pub seed: u64,
    /// Who does the work.
    pub workers: Workers,
}

/// The order in which a worker goes through its files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeOrder {
    /// As they are numbered.
    Created,
    /// In a permutation drawn from the seed.
    Shuffled,
}

/// One thing done to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreeStep {
    /// open(2) with `O_CREAT | O_EXCL`, for writing.
    Create,
    /// open(2) for reading and writing.
    Open,
    /// write(2) until the file has its size.
    Write,
    /// One record at the end of the file, opened with `O_APPEND`, to an open file.
    Append,
    /// read(2) to the end of the file.
    Read,
    /// fsync(2) of the open file.
    Fsync,
    /// fsync(2) of the directory of the file.
    FsyncDirectory,
    /// close(2).
    Close,
    /// stat(2) by name.
    Stat,
    /// chmod(2) by name, to 0600.
    Chmod,
    /// rename(2) to the name with `.new` behind it.
    Rename,
    /// rename(2) back from that name.
    RenameBack,
    /// link(2) to the name with `.link` behind it.
    Link,
    /// unlink(2) of that link.
    UnlinkLink,
    /// unlink(2) of the file.
    Unlink,
    /// Read all names of the directory of the file.
    List,
}
