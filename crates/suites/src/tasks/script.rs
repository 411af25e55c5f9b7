//! The phases of a trial, task by task, and how much space is taken meanwhile.
//!
//! What is on the filesystem is followed as tasks make and remove it: a task that needs a thing
//! which is not there gets it by a preparing phase, so that each subset of the tasks can be
//! measured. Names of phases begin with the number of the task they belong to.

use std::collections::BTreeMap;

use model::{
    Bytes, Phase, Point,
    phase::{At, Cache, Compression, Deed, Method, Role, Spot, Task, Timed, Work},
};

use super::GENERATED;

/// The tasks that read the large file: 1 GB in the study, on a machine with 768 MB of memory.
const LARGER_THAN_MEMORY: [u8; 2] = [14, 21];

/// Space of an empty file: its inode and its name.
const NAME: u64 = 1 << 10;
/// Space of an empty directory: a block more.
const DIRECTORY: u64 = 5 << 10;
/// Bytes in the archive of a generated tree for each of its files, directories included: 17,500
/// for a whole tree, less for a small one, which lacks the largest files.
const IN_ARCHIVE: u64 = 18_000;
/// Space of such a tree for each of its files, in blocks of 4 KiB: 19,300 for a whole tree.
const IN_TREE: u64 = 20_000;
/// By how much gzip makes such an archive smaller, at the least.
const GZIP: u64 = 5;

/// What a task may find.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Thing {
    Files,
    Directories,
    /// The archive on the filesystem under test.
    Archive,
    Tree,
    Large,
    /// The file that is cut into pieces.
    Whole,
}

/// The phases so far.
pub(super) struct Script<'a> {
    point: &'a Point,
    seed: u64,
    /// The phases.
    pub(super) phases: Vec<Phase>,
    /// What is there, and how much space it takes.
    there: BTreeMap<Thing, u64>,
    /// The most space that was taken at one time.
    pub(super) peak: Bytes,
}

fn target(name: &str) -> Spot {
    Spot { at: At::Target, name: name.into() }
}

fn elsewhere(name: &str) -> Spot {
    Spot { at: At::Elsewhere, name: name.into() }
}

impl<'a> Script<'a> {
    /// No phases yet.
    pub(super) fn new(point: &'a Point, seed: u64) -> Self {
        Self { point, seed, phases: Vec::new(), there: BTreeMap::new(), peak: Bytes(0) }
    }

    /// Adds a task, with what it needs before and removes after; tasks come in ascending order.
    pub(super) fn task(&mut self, number: u8) {
        match number {
            1..=6 => self.names(number),
            7..=12 | 20 => self.source(number),
            13 | 14 | 21 => self.large(number),
            _ => self.pieces(number),
        }
    }

    /// 001 to 006.
    fn names(&mut self, number: u8) {
        let (thing, name) = match number {
            1..=3 => (Thing::Files, "files"),
            _ => (Thing::Directories, "directories"),
        };
        let directory = target(name);
        match number {
            1 | 4 => {
                let verb = if number == 1 { "touch" } else { "make" };
                self.measure(number, &format!("{verb}-{name}"), self.made(thing));
                self.add(thing);
            }
            2 | 5 => {
                self.need(number, thing);
                self.measure(number, &format!("find-{name}"), Deed::Find { directory });
            }
            _ => {
                self.need(number, thing);
                self.measure(number, &format!("remove-{name}"), Deed::RemoveTree { directory });
                self.there.remove(&thing);
            }
        }
    }

    /// 007 to 012, and 020.
    fn source(&mut self, number: u8) {
        let (archive, tree) = (target("source.tar"), target("tree"));
        match number {
            7 => {
                let from = elsewhere("source.tar");
                self.prepare(number, "prepare-archive", self.archived(from.clone()));
                let copy = Deed::Copy { from: from.clone(), to: archive, times: 1 };
                self.measure(number, "copy-in", copy);
                self.add(Thing::Archive);
                self.tidy(number, from);
            }
            8 => {
                self.need(number, Thing::Archive);
                let to = elsewhere("copy.tar");
                let copy = Deed::Copy { from: archive, to: to.clone(), times: 1 };
                self.measure(number, "copy-out", copy);
                self.tidy(number, to);
            }
            9 => {
                self.need(number, Thing::Archive);
                self.measure(number, "unpack-tree", self.made(Thing::Tree));
                self.add(Thing::Tree);
            }
            10 => {
                self.need(number, Thing::Tree);
                let (packed, compression) = (target("packed.tar"), self.compression());
                let pack = Deed::Pack { directory: tree, archive: packed.clone(), compression };
                self.measure(number, "pack-tree", pack);
                self.beside(self.packed());
                self.tidy(number, packed);
            }
            11 => {
                self.need(number, Thing::Tree);
                self.measure(number, "remove-tree", Deed::RemoveTree { directory: tree });
                self.there.remove(&Thing::Tree);
            }
            12 => {
                self.need(number, Thing::Archive);
                let directory = target("copies");
                let made = Deed::MakeDirectories { directory: directory.clone(), count: 0 };
                self.prepare(number, "prepare-directory", made);
                let times = u32::try_from(self.point.count("copies")).unwrap_or(u32::MAX);
                let copy = Deed::Copy { from: archive, to: target("copies/source.tar"), times };
                self.measure(number, "copy-repeatedly", copy);
                self.beside(self.size(Thing::Archive).saturating_mul(u64::from(times)));
                self.tidy(number, directory);
            }
            _ => {
                self.need(number, Thing::Tree);
                let copy = Deed::CopyTree { from: tree, to: target("tree-copy") };
                self.measure(number, "copy-tree", copy);
                self.beside(self.size(Thing::Tree));
            }
        }
    }

    /// 013, 014, and 021.
    fn large(&mut self, number: u8) {
        let file = target("large");
        match number {
            13 => {
                self.measure(number, "write-zeros", self.made(Thing::Large));
                self.add(Thing::Large);
            }
            14 => {
                self.need(number, Thing::Large);
                let to = target("large-copy");
                let copy = Deed::Copy { from: file, to: to.clone(), times: 1 };
                self.measure(number, "copy-file", copy);
                self.beside(self.size(Thing::Large));
                self.tidy(number, to);
            }
            _ => {
                self.need(number, Thing::Large);
                self.measure(number, "read-file", Deed::Read { file });
            }
        }
    }

    /// 015 to 019.
    fn pieces(&mut self, number: u8) {
        self.need(number, Thing::Whole);
        let piece = match number {
            15 => 1000,
            16 => 1024,
            17 => 2048,
            18 => 4096,
            _ => 8192,
        };
        let into = target("pieces");
        let (file, piece) = (target("whole"), Bytes(piece));
        let split = Deed::Split { file, piece, into: into.clone() };
        self.measure(number, &format!("split-{}", piece.0), split);
        let pieces = self.point.size("split").0.div_ceil(piece.0);
        self.beside(pieces.saturating_mul(piece.0.next_multiple_of(4096) + NAME));
        self.tidy(number, into);
    }

    /// What makes a thing.
    fn made(&self, thing: Thing) -> Deed {
        match thing {
            Thing::Files => {
                Deed::Touch { directory: target("files"), count: self.point.count("files") }
            }
            Thing::Directories => {
                let directory = target("directories");
                Deed::MakeDirectories { directory, count: self.point.count("files") }
            }
            Thing::Archive => self.archived(target("source.tar")),
            Thing::Tree => Deed::Unpack { archive: target("source.tar"), into: target("tree") },
            Thing::Large => Deed::Zeros { file: target("large"), size: self.point.size("large") },
            Thing::Whole => Deed::Random { file: target("whole"), size: self.point.size("split") },
        }
    }

    fn archived(&self, archive: Spot) -> Deed {
        match self.point.text("archive") {
            GENERATED => {
                let files = self.point.count("source_files");
                Deed::Archive { archive, files, compression: self.compression() }
            }
            path => Deed::Fetch { path: path.into(), archive },
        }
    }

    fn compression(&self) -> Compression {
        match self.point.word("compression") {
            "gzip" => Compression::Gzip,
            _ => Compression::None,
        }
    }

    /// Makes a thing, untimed, if it is not there.
    fn need(&mut self, number: u8, thing: Thing) {
        if self.there.contains_key(&thing) {
            return;
        }
        let name = match thing {
            Thing::Files => "prepare-files",
            Thing::Directories => "prepare-directories",
            Thing::Archive => "prepare-archive",
            Thing::Tree => {
                self.need(number, Thing::Archive);
                "prepare-tree"
            }
            Thing::Large => "prepare-large",
            Thing::Whole => "prepare-whole",
        };
        self.prepare(number, name, self.made(thing));
        self.add(thing);
    }

    /// Removes what no later task needs, untimed.
    fn tidy(&mut self, number: u8, directory: Spot) {
        self.prepare(number, "tidy", Deed::RemoveTree { directory });
    }

    fn prepare(&mut self, number: u8, name: &str, deed: Deed) {
        self.phase(number, name, Role::Prepare, deed);
    }

    fn measure(&mut self, number: u8, name: &str, deed: Deed) {
        self.phase(number, name, Role::Measure, deed);
    }

    fn phase(&mut self, number: u8, name: &str, role: Role, deed: Deed) {
        let cold = match self.point.word("cache") {
            "study" => LARGER_THAN_MEMORY.contains(&number),
            word => word == "cold",
        };
        let cold = cold && role == Role::Measure;
        let method = match self.point.word("method") {
            "coreutils" => Method::Programs { each: false },
            "coreutils-each" => Method::Programs { each: true },
            _ => Method::Native,
        };
        let task = Task { deed, method, buffer: self.point.size("buffer"), seed: self.seed };
        self.phases.push(Phase {
            name: format!("{number:03}-{name}"),
            group: group(number).into(),
            role,
            cache: if cold { Cache::Cold } else { Cache::AsLeft },
            work: Work::Task(task),
            timed: Timed::default(),
        });
    }

    /// A thing is there from now on.
    fn add(&mut self, thing: Thing) {
        self.there.insert(thing, self.size(thing));
        self.beside(0);
    }

    /// Something is there beside the things, for a while.
    fn beside(&mut self, bytes: u64) {
        let sum = self.there.values().fold(bytes, |sum, size| sum.saturating_add(*size));
        self.peak = self.peak.max(Bytes(sum));
    }

    fn size(&self, thing: Thing) -> u64 {
        let entries = self.point.count("files");
        match thing {
            Thing::Files => entries.saturating_mul(NAME),
            Thing::Directories => entries.saturating_mul(DIRECTORY),
            Thing::Archive => self.packed(),
            Thing::Tree => self.files().saturating_mul(IN_TREE),
            Thing::Large => self.point.size("large").0,
            Thing::Whole => self.point.size("split").0,
        }
    }

    /// Files of the tree as far as they are known: nobody has looked into an archive of the user's
    /// yet, so it counts as nothing, and a filesystem that is too small for it says so itself.
    fn files(&self) -> u64 {
        match self.point.text("archive") == GENERATED {
            true => self.point.count("source_files"),
            false => 0,
        }
    }

    /// Size of the archive that 010 makes.
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

/// The heading of a task in tables.
fn group(number: u8) -> &'static str {
    match number {
        1..=6 => "files and directories",
        7 | 8 | 12 => "copying",
        9..=11 | 20 => "source tree",
        13 | 14 | 21 => "large file",
        _ => "splitting",
    }
}
