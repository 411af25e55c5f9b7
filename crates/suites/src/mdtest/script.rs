//! Phases of a trial, in the order of mdtest.

use model::{
    Bytes, Phase, WorkloadParameters,
    phase::{
        Cache, DataPattern, EntryCount, Naming, Role, Selection, Set, Sharing, Sizes, Spread,
        Timed, Tree, TreeEnd, TreeOrder, TreeStep, Work, Workers,
    },
};

use super::{PHASES, chosen, directory_tree};
use crate::shared::{count, space, workers};

/// Name of the file set. Its directory is that of all workers, or the start of those of each.
const NAME: &str = "mdtest";

/// Kind of entries of a phase.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Entries {
    Tree,
    Directories,
    Files,
}

impl Entries {
    fn of(phase: &str) -> Self {
        match phase.split_once('-') {
            Some(("tree", _)) => Self::Tree,
            Some(("directory", _)) => Self::Directories,
            Some(_) | None => Self::Files,
        }
    }

    /// Table that contains the phases.
    fn group(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Directories => "directories",
            Self::Files => "files",
        }
    }
}

pub(super) fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let chosen = chosen(point);
    let script = Script { point, seed, measured: &chosen };
    let wanted = |phase: &&&str| {
        let measured = chosen.contains(*phase);
        measured || script.prepares(phase)
    };
    PHASES.iter().filter(wanted).map(|phase| script.phase(phase)).collect()
}

struct Script<'a> {
    point: &'a WorkloadParameters,
    seed: u64,
    measured: &'a [&'static str],
}

impl Script<'_> {
    /// True if a phase that is not measured prepares another one: it creates what later phases use,
    /// or removes what a removal of the tree would find.
    fn prepares(&self, phase: &str) -> bool {
        let uses = |kind: &str| self.measured.iter().any(|other| other.starts_with(kind));
        match phase {
            "tree-create" => true,
            "directory-create" => uses("directory-"),
            "file-create" => uses("file-"),
            "directory-remove" => uses("directory-") && uses("tree-remove"),
            "file-remove" => uses("file-") && uses("tree-remove"),
            _ => false,
        }
    }

    fn phase(&self, phase: &str) -> Phase {
        let measured = self.measured.contains(&phase);
        let entries = Entries::of(phase);
        let creates = phase.ends_with("-create");
        let cold = measured && !creates && self.point.word("cache") == "cold";
        let sync = measured && self.point.flag("sync_after");
        Phase {
            name: match measured {
                true => phase.to_owned(),
                false => format!("prepare-{phase}"),
            },
            group: entries.group().into(),
            role: if measured { Role::Measure } else { Role::Prepare },
            cache: if cold { Cache::Cold } else { Cache::Unchanged },
            work: Work::Tree(self.tree(phase, entries, sync)),
            timed: Timed { sync, ..Timed::default() },
            directory: None,
            together: None,
        }
    }

    fn tree(&self, phase: &str, entries: Entries, sync: bool) -> Tree {
        let random = self.point.word("order") == "random";
        let order = match phase {
            "directory-stat" | "file-stat" | "file-read" if random => TreeOrder::Random,
            "tree-remove" => TreeOrder::Descending,
            _ => TreeOrder::Creation,
        };
        let (workers, owners) = self.workers(phase, entries);
        let selection =
            Selection { shift: self.shift(phase), owners, count: self.entry_count(phase) };
        let end = TreeEnd { remove_directories: false, sync };
        let tree = Tree::new(self.set(phase, entries), self.steps(phase));
        Tree { order, end, workers, selection, ..tree }
    }

    /// Workers of a phase, and the number of workers whose entries each of them visits.
    fn workers(&self, phase: &str, entries: Entries) -> (Workers, u32) {
        let all = workers(self.point);
        let sharing = self.point.word("sharing");
        let changes = phase.ends_with("-create") || phase.ends_with("-remove");
        let first = self.point.flag("first_worker_creates") && changes;
        let one = Workers { count: 1, ..all };
        match entries {
            Entries::Tree if sharing == "private" => (all, 1),
            Entries::Tree => (one, 1),
            // A file can be removed once.
            Entries::Files if sharing == "file" && (first || phase == "file-remove") => (one, 1),
            Entries::Files | Entries::Directories if first => (one, all.count),
            Entries::Files | Entries::Directories => (all, 1),
        }
    }

    fn shift(&self, phase: &str) -> u32 {
        let times = match phase {
            "directory-stat" | "file-stat" => 1,
            "file-read" => 2,
            "directory-remove" | "file-remove" => 3,
            _ => 0,
        };
        times * count(self.point, "worker_shift") % count(self.point, "workers").max(1)
    }

    fn entry_count(&self, phase: &str) -> EntryCount {
        let limit = self.point.time("stonewall_time");
        match phase {
            "file-create" if limit.0 > 0 => EntryCount::Until(limit),
            "file-stat" | "file-read" | "file-remove" if limit.0 > 0 => EntryCount::Stored,
            _ => EntryCount::All,
        }
    }

    fn steps(&self, phase: &str) -> Vec<TreeStep> {
        use TreeStep::{
            Close, Fsync, Mkdir, Open, OpenCreate, ReadBlock, RenameRing, Rmdir, Stat, Unlink,
            VerifyBlock, WriteBlock,
        };
        let with = |condition: bool, step| condition.then_some(step);
        let (writes, reads) = (self.size("file-create").0 > 0, self.size("file-read").0 > 0);
        let steps: Vec<Option<TreeStep>> = match phase {
            "tree-create" | "directory-create" => vec![Some(Mkdir)],
            "tree-remove" | "directory-remove" => vec![Some(Rmdir)],
            "directory-rename" => vec![Some(RenameRing)],
            "file-create" => vec![
                Some(OpenCreate),
                with(writes, WriteBlock),
                with(writes && self.point.flag("fsync_each"), Fsync),
                Some(Close),
            ],
            "file-read" => vec![
                Some(Open),
                with(reads, ReadBlock),
                with(reads && self.point.flag("verify"), VerifyBlock),
                Some(Close),
            ],
            "file-remove" => vec![Some(Unlink)],
            _ => vec![Some(Stat)],
        };
        steps.into_iter().flatten().collect()
    }

    /// Bytes per file that a phase moves.
    fn size(&self, phase: &str) -> Bytes {
        match phase {
            "file-create" => self.point.size("file_size"),
            "file-read" => self.point.size("read_size"),
            _ => Bytes(0),
        }
    }

    fn set(&self, phase: &str, entries: Entries) -> Set {
        let tree = directory_tree(self.point);
        let size = self.size(phase);
        Set {
            name: NAME.into(),
            sharing: match self.point.word("sharing") {
                "private" => Sharing::Private,
                "file" => Sharing::File,
                _ => Sharing::Directory,
            },
            files: match entries {
                Entries::Tree => tree.directories(),
                Entries::Directories | Entries::Files => self.point.count("entries"),
            },
            spread: Spread::Tree(tree),
            naming: match entries {
                Entries::Tree => Naming::TreeDirectories,
                Entries::Directories => Naming::Mdtest { directories: true },
                Entries::Files => Naming::Mdtest { directories: false },
            },
            sizes: Sizes::Fixed(size),
            block_size: size,
            data: DataPattern::default(),
            seed: self.seed,
        }
    }
}

/// Maximum space of a trial. A directory takes a block.
pub(super) fn footprint(point: &WorkloadParameters) -> Bytes {
    let workers = point.count("workers");
    let owners = if point.word("sharing") == "file" { 1 } else { workers };
    let trees = if point.word("sharing") == "private" { workers } else { 1 };
    let chosen = chosen(point);
    let has = |kind: &str| chosen.iter().any(|phase| phase.starts_with(kind));
    let of = |condition: bool, files: u64, size: Bytes| match condition {
        true => space(files, Sizes::Fixed(size)).0,
        false => 0,
    };
    let block = Bytes::kib(4);
    let entries = point.count("entries");
    let each = of(has("file-"), entries, point.size("file_size")).saturating_add(of(
        has("directory-"),
        entries,
        block,
    ));
    let tree = of(true, directory_tree(point).directories(), block);
    Bytes(each.saturating_mul(owners).saturating_add(tree.saturating_mul(trees)))
}
