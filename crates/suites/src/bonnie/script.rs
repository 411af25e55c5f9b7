//! Phases of a trial: the large file, its removal, and the small files.

use model::{
    Phase, WorkloadParameters,
    phase::{
        AccessPattern, Bound, Cache, DataPattern, Direction, EndSync, FileCreation, FileSharing,
        IoEngineKind, Naming, Role, Set, Sharing, Spread, Stream, SyncCall, SyncEvery,
        SyncInterval, Timed, Tree, TreeEnd, TreeOrder, TreeStep, Work, Workers,
    },
};

use super::{ENTRY_TESTS, FILE_TESTS};
use crate::shared::{count, has, workers};

/// Fraction of seeks that read a block, change it, and write it back, as in bonnie++.
const UPDATES: f64 = 0.1;

pub(super) fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let script = Script { point, seed };
    let mut phases = script.of_the_file();
    phases.extend(script.of_entries("seq", Naming::Ordered, TreeOrder::Listed));
    phases.extend(script.of_entries("ran", Naming::Scrambled, TreeOrder::Random));
    phases
}

struct Script<'a> {
    point: &'a WorkloadParameters,
    seed: u64,
}

impl Script<'_> {
    fn has(&self, test: &str) -> bool {
        has(self.point, "tests", test)
    }

    /// Phase that is measured if the plan selects it. Otherwise it only prepares later phases.
    fn phase(&self, name: &str, group: &str, work: Work, timed: Timed) -> Phase {
        let measured = self.has(name);
        let cold = measured && self.point.word("cache") == "cold";
        Phase {
            name: name.into(),
            group: group.into(),
            role: if measured { Role::Measure } else { Role::Prepare },
            cache: if cold { Cache::Cold } else { Cache::Unchanged },
            work,
            timed,
            directory: None,
            together: None,
        }
    }

    fn workers(&self) -> Workers {
        match self.point.count("workers") {
            1 => Workers::ONE,
            _ => workers(self.point),
        }
    }

    fn files(&self) -> FileSharing {
        match self.point.count("workers") {
            1 => FileSharing::One("bonnie.tmp".into()),
            _ => FileSharing::PerWorker("bonnie.tmp".into()),
        }
    }

    fn fill(&self) -> DataPattern {
        match self.point.word("content") {
            "random" => DataPattern::Random {
                incompressible_fraction: self.point.fraction("incompressible_fraction"),
                duplicate_fraction: 0.0,
            },
            _ => DataPattern::Marks,
        }
    }

    fn of_the_file(&self) -> Vec<Phase> {
        if !FILE_TESTS.iter().any(|test| self.has(test)) {
            return Vec::new();
        }
        // All phases after putc require the complete file.
        let whole = FILE_TESTS[1..].iter().any(|test| self.has(test));
        let runs = |test: &&&str| self.has(test) || **test == "put-block" && whole;
        let mut phases: Vec<_> =
            FILE_TESTS.iter().filter(runs).map(|test| self.of_file(test)).collect();
        let workers = self.workers().count;
        phases.push(Phase {
            name: "remove-file".into(),
            role: Role::Prepare,
            cache: Cache::Unchanged,
            work: Work::Remove { files: self.files(), workers },
            timed: Timed::default(),
            directory: None,
            together: None,
            ..phases[0].clone()
        });
        phases
    }

    fn of_file(&self, test: &str) -> Phase {
        let (file, block) = (self.point.size("file_size"), self.point.size("block_size"));
        let mut stream = Stream {
            io_engine: IoEngineKind::Position,
            data: self.fill(),
            seed: self.seed,
            // After reading, bonnie++ also calls fsync before close.
            end_sync: EndSync::Fsync,
            workers: self.workers(),
            ..Stream::new(self.files(), file, block)
        };
        stream.open.direct =
            self.point.flag("direct") || test == "put-block" && self.point.flag("direct_create");
        stream.open.exclusive = true;
        if matches!(test, "putc" | "put-block") {
            stream.direction = Direction::Write;
            stream.open.creation = FileCreation::Fresh;
        }
        let group = match test {
            "putc" | "getc" => {
                stream.size = self.point.size("char_io_size");
                stream.io_engine = IoEngineKind::Bytewise;
                // O_DIRECT does not support single bytes.
                stream.open.direct = false;
                if test == "putc" { OUTPUT } else { INPUT }
            }
            "rewrite" => {
                stream.direction = Direction::Update(1.0);
                // A rewrite changes one byte of the block that it read.
                stream.data = DataPattern::Marks;
                OUTPUT
            }
            "seeks" => {
                self.make_seeks(&mut stream);
                "random seeks"
            }
            "put-block" => OUTPUT,
            _ => INPUT,
        };
        let timed = Timed { sync: true, close: true, tick_subtracted: false };
        self.phase(test, group, Work::Stream(stream), timed)
    }

    fn make_seeks(&self, stream: &mut Stream) {
        let seeks = self.point.count("seeks");
        stream.access_pattern = AccessPattern::Tickets;
        stream.direction = Direction::Update(UPDATES);
        stream.data = DataPattern::Marks;
        stream.sync_every = self.point.flag("fsync_each").then_some(SyncEvery {
            after: SyncInterval::Ops(1),
            call: SyncCall::Fsync,
            before_next: false,
        });
        if let FileSharing::One(name) = &stream.files {
            stream.files = FileSharing::Shared(name.clone());
            stream.workers = Workers::threads(count(self.point, "seekers"));
            stream.bound = Bound::Together(seeks);
        } else {
            stream.bound = Bound::Ops(seeks);
        }
    }

    /// Phases `seq-*` or `ran-*` of small files. Files are always removed at the end, because both
    /// groups use the same directory.
    fn of_entries(&self, half: &str, naming: Naming, order: TreeOrder) -> Vec<Phase> {
        if !ENTRY_TESTS.iter().any(|test| test.starts_with(half) && self.has(test)) {
            return Vec::new();
        }
        let group = if half == "seq" { "sequential create" } else { "random create" };
        let phase = |does: &str, order: TreeOrder, steps: Vec<TreeStep>, end: TreeEnd| {
            let workers = self.workers();
            let tree = Tree { order, end, workers, ..Tree::new(self.set(naming), steps) };
            let timed = Timed { sync: end.sync, ..Timed::default() };
            self.phase(&format!("{half}-{does}"), group, Work::Tree(tree), timed)
        };
        let created = TreeEnd { remove_directories: false, sync: true };
        let removed = TreeEnd { remove_directories: true, sync: true };
        let mut phases = vec![phase("create", TreeOrder::Creation, self.creation(), created)];
        if self.has(&format!("{half}-stat")) {
            phases.push(phase("stat", order, self.stat_steps(), TreeEnd::default()));
        }
        phases.push(phase("delete", order, self.synced(vec![TreeStep::Unlink]), removed));
        phases
    }

    fn set(&self, naming: Naming) -> Set {
        let point = self.point;
        let (files, directories) = (point.count("files"), point.count("directories"));
        Set {
            name: "bonnie".into(),
            sharing: Sharing::Private,
            files,
            spread: match directories {
                1 => Spread::Flat,
                _ => Spread::Directories { each: files / directories + 1 },
            },
            naming,
            sizes: super::sizes(point),
            block_size: point.size("small_file_block_size"),
            data: self.fill(),
            seed: self.seed,
        }
    }

    fn creation(&self) -> Vec<TreeStep> {
        match self.point.word("links") {
            "hard" => return self.synced(vec![TreeStep::LinkFirst]),
            "symbolic" => return self.synced(vec![TreeStep::SymlinkFirst]),
            _ => {}
        }
        let mut steps = vec![TreeStep::Create];
        if self.point.size("small_file_size_max").0 > 0 {
            steps.push(TreeStep::Write);
        }
        if self.point.flag("fsync_each") {
            steps.push(TreeStep::Fsync);
        }
        // The file is closed only after the fsync of the file and of the directory.
        steps = self.synced(steps);
        steps.push(TreeStep::Close);
        steps
    }

    /// Steps of the stat phases: stat, followed by a read if files have data, as in bonnie++.
    fn stat_steps(&self) -> Vec<TreeStep> {
        match self.point.size("small_file_size_max").0 {
            0 => vec![TreeStep::Stat],
            _ => vec![TreeStep::Stat, TreeStep::Fetch],
        }
    }

    fn synced(&self, mut steps: Vec<TreeStep>) -> Vec<TreeStep> {
        if self.point.flag("fsync_each") {
            steps.push(TreeStep::FsyncDirectory);
        }
        steps
    }
}

const OUTPUT: &str = "sequential output";
const INPUT: &str = "sequential input";
