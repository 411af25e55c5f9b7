//! The phases of a trial: first the large file, which is then removed, then the small ones.

use model::{
    Phase, Point,
    phase::{
        Access, Amount, Bound, Cache, Direction, Files, Fill, Flush, FlushCall, FlushEvery,
        Interface, Naming, Presence, Role, Set, Sharing, Spread, Stream, Timed, Tree, TreeEnd,
        TreeOrder, TreeStep, Work, Workers,
    },
};

use super::{ENTRY_TESTS, FILE_TESTS};
use crate::shared::{count, has, workers};

/// Of all seeks one in ten writes back what it read, as the original's numbers have it.
const UPDATES: f64 = 0.1;

pub(super) fn phases(point: &Point, seed: u64) -> Vec<Phase> {
    let script = Script { point, seed };
    let mut phases = script.of_the_file();
    phases.extend(script.of_entries("seq", Naming::Ordered, TreeOrder::Listed));
    phases.extend(script.of_entries("ran", Naming::Scrambled, TreeOrder::Shuffled));
    phases
}

struct Script<'a> {
    point: &'a Point,
    seed: u64,
}

impl Script<'_> {
    fn has(&self, test: &str) -> bool {
        has(self.point, "tests", test)
    }

    /// A phase that is measured if the plan asks for it, and only prepares otherwise.
    fn phase(&self, name: &str, group: &str, work: Work, timed: Timed) -> Phase {
        let measured = self.has(name);
        let cold = measured && self.point.word("cache") == "cold";
        Phase {
            name: name.into(),
            group: group.into(),
            role: if measured { Role::Measure } else { Role::Prepare },
            cache: if cold { Cache::Cold } else { Cache::AsLeft },
            work,
            timed,
        }
    }

    fn workers(&self) -> Workers {
        match self.point.count("workers") {
            1 => Workers::ONE,
            _ => workers(self.point),
        }
    }

    fn files(&self) -> Files {
        match self.point.count("workers") {
            1 => Files::One("bonnie.tmp".into()),
            _ => Files::PerWorker("bonnie.tmp".into()),
        }
    }

    fn fill(&self) -> Fill {
        match self.point.word("content") {
            "random" => Fill::Random { entropy: self.point.share("entropy"), duplicates: 0.0 },
            _ => Fill::Marks,
        }
    }

    fn of_the_file(&self) -> Vec<Phase> {
        if !FILE_TESTS.iter().any(|test| self.has(test)) {
            return Vec::new();
        }
        // Whatever comes after the byte phase needs the whole file.
        let whole = FILE_TESTS[1..].iter().any(|test| self.has(test));
        let runs = |test: &&&str| self.has(test) || **test == "put-block" && whole;
        let mut phases: Vec<_> =
            FILE_TESTS.iter().filter(runs).map(|test| self.of_file(test)).collect();
        let workers = self.workers().count;
        phases.push(Phase {
            name: "remove-file".into(),
            role: Role::Prepare,
            cache: Cache::AsLeft,
            work: Work::Remove { files: self.files(), workers },
            timed: Timed::default(),
            ..phases[0].clone()
        });
        phases
    }

    fn of_file(&self, test: &str) -> Phase {
        let (file, chunk) = (self.point.size("file"), self.point.size("chunk"));
        let mut stream = Stream {
            interface: Interface::Position,
            fill: self.fill(),
            seed: self.seed,
            // The original flushes what it closes, after reading as well.
            flush: Flush::Fsync,
            workers: self.workers(),
            ..Stream::new(self.files(), file, chunk)
        };
        stream.open.direct = self.point.flag("direct");
        stream.open.own = true;
        if matches!(test, "putc" | "put-block") {
            stream.direction = Direction::Write;
            stream.open.presence = Presence::Fresh;
        }
        let group = match test {
            "putc" | "getc" => {
                stream.size = self.point.size("byte_part");
                stream.interface = Interface::Bytewise;
                // O_DIRECT takes no single bytes.
                stream.open.direct = false;
                if test == "putc" { OUTPUT } else { INPUT }
            }
            "rewrite" => {
                stream.direction = Direction::Update(1.0);
                // What is written is what was read, but for one byte.
                stream.fill = Fill::Marks;
                OUTPUT
            }
            "seeks" => {
                self.make_seeks(&mut stream);
                "random seeks"
            }
            "put-block" => OUTPUT,
            _ => INPUT,
        };
        let timed = Timed { flush: true, close: true, tick_subtracted: false };
        self.phase(test, group, Work::Stream(stream), timed)
    }

    fn make_seeks(&self, stream: &mut Stream) {
        let seeks = self.point.count("seeks");
        stream.access = Access::Tickets;
        stream.direction = Direction::Update(UPDATES);
        stream.fill = Fill::Marks;
        stream.flush_every = self
            .point
            .flag("sync")
            .then_some(FlushEvery { after: Amount::Ops(1), call: FlushCall::Fsync });
        if let Files::One(name) = &stream.files {
            stream.files = Files::Shared(name.clone());
            stream.workers = Workers::threads(count(self.point, "seekers"));
            stream.bound = Bound::Together(seeks);
        } else {
            stream.bound = Bound::Ops(seeks);
        }
    }

    /// One half of the phases of small files. What is created is looked at and removed again, since
    /// the other half has files of the same directory.
    fn of_entries(&self, half: &str, naming: Naming, order: TreeOrder) -> Vec<Phase> {
        if !ENTRY_TESTS.iter().any(|test| test.starts_with(half) && self.has(test)) {
            return Vec::new();
        }
        let group = if half == "seq" { "sequential create" } else { "random create" };
        let phase = |does: &str, order: TreeOrder, steps: Vec<TreeStep>, end: TreeEnd| {
            let workers = self.workers();
            let tree = Tree { order, end, workers, ..Tree::new(self.set(naming), steps) };
            let timed = Timed { flush: end.sync, ..Timed::default() };
            self.phase(&format!("{half}-{does}"), group, Work::Tree(tree), timed)
        };
        let created = TreeEnd { remove_directories: false, sync: true };
        let removed = TreeEnd { remove_directories: true, sync: true };
        let mut phases = vec![phase("create", TreeOrder::Created, self.creation(), created)];
        if self.has(&format!("{half}-stat")) {
            phases.push(phase("stat", order, self.look(), TreeEnd::default()));
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
            record: point.size("file_chunk"),
            fill: self.fill(),
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
        if self.point.size("max_size").0 > 0 {
            steps.push(TreeStep::Write);
        }
        if self.point.flag("sync") {
            steps.push(TreeStep::Fsync);
        }
        // The file is closed after both flushes.
        steps = self.synced(steps);
        steps.push(TreeStep::Close);
        steps
    }

    /// What the original calls reading: files without data are only looked at.
    fn look(&self) -> Vec<TreeStep> {
        match self.point.size("max_size").0 {
            0 => vec![TreeStep::Stat],
            _ => vec![TreeStep::Stat, TreeStep::Fetch],
        }
    }

    fn synced(&self, mut steps: Vec<TreeStep>) -> Vec<TreeStep> {
        if self.point.flag("sync") {
            steps.push(TreeStep::FsyncDirectory);
        }
        steps
    }
}

const OUTPUT: &str = "sequential output";
const INPUT: &str = "sequential input";
