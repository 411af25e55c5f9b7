//! Phases of a trial by task, and the space used.
//!
//! The script tracks the files that exist. A task that requires a missing file gets an untimed
//! phase that creates it, so that any subset of the tasks can be measured. Names of phases start
//! with the number of their task.

use std::collections::BTreeMap;

use model::{
    Bytes, Phase, WorkloadParameters,
    phase::{
        Cache, Compression, Method, Role, Task, TaskOperation, TaskPath, TaskRoot, Timed, Work,
    },
};

use super::GENERATED;

/// Tasks that read the large file. In the study, it was 1 GB on a machine with 768 MB of memory.
const LARGER_THAN_MEMORY: [u8; 2] = [14, 21];

/// Space of an empty file: inode and directory entry.
const NAME: u64 = 1 << 10;
/// Space of an empty directory: inode, directory entry, and one block.
const DIRECTORY: u64 = 5 << 10;
/// Bytes in an archive per file of a generated tree, including directories: 17,500 for a complete
/// tree. A small tree has fewer, because it does not contain the largest files.
const IN_ARCHIVE: u64 = 18_000;
/// Space per file of a generated tree in blocks of 4 KiB: 19,300 for a complete tree.
const IN_TREE: u64 = 20_000;
/// Minimum compression ratio of gzip for the archive of a generated tree.
const GZIP: u64 = 5;

/// File or directory that some tasks create and others require.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Item {
    Files,
    Directories,
    /// Archive on the filesystem under test.
    Archive,
    Tree,
    Large,
    /// File that is split.
    Whole,
}

/// Phases of a trial, and the space that they need.
pub(super) struct Script<'a> {
    point: &'a WorkloadParameters,
    seed: u64,
    /// Phases so far.
    pub(super) phases: Vec<Phase>,
    /// Existing items with the space that they need.
    existing: BTreeMap<Item, u64>,
    /// Maximum space at one time.
    pub(super) peak: Bytes,
}

fn target(name: &str) -> TaskPath {
    TaskPath { root: TaskRoot::Target, name: name.into() }
}

fn external(name: &str) -> TaskPath {
    TaskPath { root: TaskRoot::External, name: name.into() }
}

impl<'a> Script<'a> {
    /// Creates a script without phases.
    pub(super) fn new(point: &'a WorkloadParameters, seed: u64) -> Self {
        Self { point, seed, phases: Vec::new(), existing: BTreeMap::new(), peak: Bytes(0) }
    }

    /// Adds a task with its preparation and cleanup. Tasks must be added in ascending order.
    pub(super) fn task(&mut self, number: u8) {
        match number {
            1..=6 => self.names(number),
            7..=12 | 20 => self.source(number),
            13 | 14 | 21 => self.large(number),
            _ => self.pieces(number),
        }
    }

    /// Adds tasks 001 to 006.
    fn names(&mut self, number: u8) {
        let (item, name) = match number {
            1..=3 => (Item::Files, "files"),
            _ => (Item::Directories, "directories"),
        };
        let directory = target(name);
        match number {
            1 | 4 => {
                let verb = if number == 1 { "touch" } else { "make" };
                self.measure(number, &format!("{verb}-{name}"), self.creation(item));
                self.add(item);
            }
            2 | 5 => {
                self.need(number, item);
                self.measure(number, &format!("find-{name}"), TaskOperation::Find { directory });
            }
            _ => {
                self.need(number, item);
                self.measure(
                    number,
                    &format!("remove-{name}"),
                    TaskOperation::RemoveTree { directory },
                );
                self.existing.remove(&item);
            }
        }
    }

    /// Adds tasks 007 to 012, and 020.
    fn source(&mut self, number: u8) {
        let (archive, tree) = (target("source.tar"), target("tree"));
        match number {
            7 => {
                let from = external("source.tar");
                self.prepare(number, "prepare-archive", self.archived(from.clone()));
                let copy = TaskOperation::Copy { from: from.clone(), to: archive, times: 1 };
                self.measure(number, "copy-in", copy);
                self.add(Item::Archive);
                self.tidy(number, from);
            }
            8 => {
                self.need(number, Item::Archive);
                let to = external("copy.tar");
                let copy = TaskOperation::Copy { from: archive, to: to.clone(), times: 1 };
                self.measure(number, "copy-out", copy);
                self.tidy(number, to);
            }
            9 => {
                self.need(number, Item::Archive);
                self.measure(number, "unpack-tree", self.creation(Item::Tree));
                self.add(Item::Tree);
            }
            10 => {
                self.need(number, Item::Tree);
                let (packed, compression) = (target("packed.tar"), self.compression());
                let pack =
                    TaskOperation::Pack { directory: tree, archive: packed.clone(), compression };
                self.measure(number, "pack-tree", pack);
                self.update_peak(self.packed());
                self.tidy(number, packed);
            }
            11 => {
                self.need(number, Item::Tree);
                self.measure(number, "remove-tree", TaskOperation::RemoveTree { directory: tree });
                self.existing.remove(&Item::Tree);
            }
            12 => {
                self.need(number, Item::Archive);
                let directory = target("copies");
                let made =
                    TaskOperation::MakeDirectories { directory: directory.clone(), count: 0 };
                self.prepare(number, "prepare-directory", made);
                let times = u32::try_from(self.point.count("copies")).unwrap_or(u32::MAX);
                let copy =
                    TaskOperation::Copy { from: archive, to: target("copies/source.tar"), times };
                self.measure(number, "copy-repeatedly", copy);
                self.update_peak(self.size(Item::Archive).saturating_mul(u64::from(times)));
                self.tidy(number, directory);
            }
            _ => {
                self.need(number, Item::Tree);
                let copy = TaskOperation::CopyTree { from: tree, to: target("tree-copy") };
                self.measure(number, "copy-tree", copy);
                self.update_peak(self.size(Item::Tree));
            }
        }
    }

    /// Adds tasks 013, 014, and 021.
    fn large(&mut self, number: u8) {
        let file = target("large");
        match number {
            13 => {
                self.measure(number, "write-zeros", self.creation(Item::Large));
                self.add(Item::Large);
            }
            14 => {
                self.need(number, Item::Large);
                let to = target("large-copy");
                let copy = TaskOperation::Copy { from: file, to: to.clone(), times: 1 };
                self.measure(number, "copy-file", copy);
                self.update_peak(self.size(Item::Large));
                self.tidy(number, to);
            }
            _ => {
                self.need(number, Item::Large);
                self.measure(number, "read-file", TaskOperation::Read { file });
            }
        }
    }

    /// Adds tasks 015 to 019.
    fn pieces(&mut self, number: u8) {
        self.need(number, Item::Whole);
        let piece = match number {
            15 => 1000,
            16 => 1024,
            17 => 2048,
            18 => 4096,
            _ => 8192,
        };
        let into = target("pieces");
        let (file, piece) = (target("whole"), Bytes(piece));
        let split = TaskOperation::Split { file, piece, into: into.clone() };
        self.measure(number, &format!("split-{}", piece.0), split);
        let pieces = self.point.size("split_file_size").0.div_ceil(piece.0);
        self.update_peak(pieces.saturating_mul(piece.0.next_multiple_of(4096) + NAME));
        self.tidy(number, into);
    }

    /// Operation that creates an item.
    fn creation(&self, item: Item) -> TaskOperation {
        match item {
            Item::Files => TaskOperation::Touch {
                directory: target("files"),
                count: self.point.count("files"),
            },
            Item::Directories => {
                let directory = target("directories");
                TaskOperation::MakeDirectories { directory, count: self.point.count("files") }
            }
            Item::Archive => self.archived(target("source.tar")),
            Item::Tree => {
                TaskOperation::Unpack { archive: target("source.tar"), into: target("tree") }
            }
            Item::Large => TaskOperation::Zeros {
                file: target("large"),
                size: self.point.size("large_file_size"),
            },
            Item::Whole => TaskOperation::Random {
                file: target("whole"),
                size: self.point.size("split_file_size"),
            },
        }
    }

    fn archived(&self, archive: TaskPath) -> TaskOperation {
        match self.point.text("archive") {
            GENERATED => {
                let files = self.point.count("source_files");
                TaskOperation::Archive { archive, files, compression: self.compression() }
            }
            path => TaskOperation::Fetch { path: path.into(), archive },
        }
    }

    fn compression(&self) -> Compression {
        match self.point.word("compression") {
            "gzip" => Compression::Gzip,
            _ => Compression::None,
        }
    }

    /// Adds an untimed phase that creates an item if it does not exist.
    fn need(&mut self, number: u8, item: Item) {
        if self.existing.contains_key(&item) {
            return;
        }
        let name = match item {
            Item::Files => "prepare-files",
            Item::Directories => "prepare-directories",
            Item::Archive => "prepare-archive",
            Item::Tree => {
                self.need(number, Item::Archive);
                "prepare-tree"
            }
            Item::Large => "prepare-large",
            Item::Whole => "prepare-whole",
        };
        self.prepare(number, name, self.creation(item));
        self.add(item);
    }

    /// Adds an untimed phase that removes a file or directory of the task.
    fn tidy(&mut self, number: u8, directory: TaskPath) {
        self.prepare(number, "tidy", TaskOperation::RemoveTree { directory });
    }

    fn prepare(&mut self, number: u8, name: &str, operation: TaskOperation) {
        self.phase(number, name, Role::Prepare, operation);
    }

    fn measure(&mut self, number: u8, name: &str, operation: TaskOperation) {
        self.phase(number, name, Role::Measure, operation);
    }

    fn phase(&mut self, number: u8, name: &str, role: Role, operation: TaskOperation) {
        let cold = match self.point.word("cache") {
            "study" => LARGER_THAN_MEMORY.contains(&number),
            word => word == "cold",
        };
        let cold = cold && role == Role::Measure;
        let method = match self.point.word("method") {
            "coreutils" => Method::Programs { per_file: false },
            "coreutils-per-file" => Method::Programs { per_file: true },
            _ => Method::Native,
        };
        let task =
            Task { operation, method, block_size: self.point.size("block_size"), seed: self.seed };
        self.phases.push(Phase {
            name: format!("{number:03}-{name}"),
            group: group(number).into(),
            role,
            cache: if cold { Cache::Cold } else { Cache::Unchanged },
            work: Work::Task(task),
            timed: Timed::default(),
            directory: None,
            together: None,
        });
    }

    /// Marks an item as existing.
    fn add(&mut self, item: Item) {
        self.existing.insert(item, self.size(item));
        self.update_peak(0);
    }

    /// Updates the maximum space, with `bytes` of temporary files in addition to the existing
    /// items.
    fn update_peak(&mut self, bytes: u64) {
        let sum = self.existing.values().fold(bytes, |sum, size| sum.saturating_add(*size));
        self.peak = self.peak.max(Bytes(sum));
    }

    fn size(&self, item: Item) -> u64 {
        let entries = self.point.count("files");
        match item {
            Item::Files => entries.saturating_mul(NAME),
            Item::Directories => entries.saturating_mul(DIRECTORY),
            Item::Archive => self.packed(),
            Item::Tree => self.files().saturating_mul(IN_TREE),
            Item::Large => self.point.size("large_file_size").0,
            Item::Whole => self.point.size("split_file_size").0,
        }
    }

    /// Number of files of the generated tree. 0 for an archive of the user, whose size is unknown
    /// here; if the filesystem is too small for it, the task fails.
    fn files(&self) -> u64 {
        match self.point.text("archive") == GENERATED {
            true => self.point.count("source_files"),
            false => 0,
        }
    }

    /// Size of the generated archive, which is also that of the archive of task 010.
    fn packed(&self) -> u64 {
        if self.files() == 0 {
            return 0;
        }
        let plain = self.files().saturating_mul(IN_ARCHIVE).saturating_add(10 << 10);
        match self.compression() {
            Compression::None => plain,
            Compression::Gzip => plain / GZIP,
        }
    }
}

/// Table group of a task.
fn group(number: u8) -> &'static str {
    match number {
        1..=6 => "files and directories",
        7 | 8 | 12 => "copying",
        9..=11 | 20 => "source tree",
        13 | 14 | 21 => "large file",
        _ => "splitting",
    }
}
