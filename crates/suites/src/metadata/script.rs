//! Phases of a trial: for each operation, the creation of its entries, the operation, and the
//! removal of the entries.

use model::{
    Bytes, Phase, WorkloadParameters,
    phase::{
        Cache, Calls, DataPattern, Item, Layout, Mix, MixOp, Naming, Pin, Role, Set, Sharing,
        Sizes, Spread, Timed, Tree, TreeEnd, TreeOrder, TreeStep, Work, Workers,
    },
};

use super::{
    chosen,
    operations::{Entries, FIND, Operation, SMALL},
    weights::weights,
};
use crate::shared::{count, space, workers};

/// Block size of writes.
pub(super) const BLOCK_SIZE: Bytes = Bytes::kib(64);

pub(super) fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let chosen = chosen(point);
    let mut phases = Vec::new();
    for (place, operation) in chosen.iter().enumerate() {
        let script = Script { point, seed, operation };
        phases.extend(script.made());
        phases.push(script.measured());
        // The entries of the last operation cannot affect another operation.
        if place + 1 < chosen.len() {
            phases.extend(script.removed());
        }
    }
    phases
}

/// True if an operation modifies the filesystem.
pub(super) fn changes(operation: &Operation) -> bool {
    operation.entries == Entries::Population || operation.steps.iter().any(|step| step.changes())
}

/// Maximum space at one time: the entries of one operation, plus entries of earlier operations that
/// cannot be removed.
pub(super) fn footprint(point: &WorkloadParameters) -> Bytes {
    let (mut left, mut peak) = (0_u64, 0_u64);
    for operation in chosen(point) {
        let script = Script { point, seed: 0, operation };
        let taken = left.saturating_add(script.taken());
        peak = peak.max(taken);
        if operation.word == "rename-across" {
            left = taken;
        }
    }
    Bytes(peak)
}

struct Script<'a> {
    point: &'a WorkloadParameters,
    seed: u64,
    operation: &'a Operation,
}

impl Script<'_> {
    fn phase(&self, name: String, work: Work) -> Phase {
        Phase {
            name,
            group: self.operation.group.into(),
            role: Role::Prepare,
            cache: Cache::Unchanged,
            work,
            timed: Timed::default(),
            directory: None,
            together: None,
        }
    }

    /// Creates the entries of the operation.
    fn made(&self) -> Vec<Phase> {
        let Operation { word, item, before, .. } = *self.operation;
        let Some(item) = item else { return Vec::new() };
        let layout = Layout { set: self.set(), item, owners: self.workers().count };
        let mut phases = vec![self.phase(format!("{word}-layout"), Work::Layout(layout))];
        if !before.is_empty() {
            phases.push(self.phase(format!("{word}-before"), self.once(before)));
        }
        phases
    }

    fn measured(&self) -> Phase {
        let sync = self.point.flag("sync_after") && changes(self.operation);
        let cache = match (self.point.word("cache"), self.operation.item) {
            ("cold", _) => Cache::Cold,
            (_, Some(_)) => Cache::Warm,
            // The entries do not exist yet, so they cannot be cached.
            (_, None) => Cache::Unchanged,
        };
        let (work, sync) = match self.operation.entries {
            // A mix has no final step that could sync.
            Entries::Population => (self.mix(), false),
            Entries::Files
            | Entries::Bare
            | Entries::Extents
            | Entries::Reserved
            | Entries::Durable
            | Entries::Small
            | Entries::Large => (self.tree(sync), sync),
        };
        Phase {
            role: Role::Measure,
            cache,
            timed: Timed { sync, ..Timed::default() },
            directory: None,
            together: None,
            ..self.phase(self.operation.word.into(), work)
        }
    }

    fn removed(&self) -> Option<Phase> {
        let Operation { word, after, .. } = *self.operation;
        (!after.is_empty()).then(|| self.phase(format!("{word}-removal"), self.once(after)))
    }

    /// Work that performs steps once per entry. If the workers share the entries, only one worker
    /// performs them.
    fn once(&self, steps: &[TreeStep]) -> Work {
        let set = self.set();
        let workers = match set.sharing {
            Sharing::File => Workers::ONE,
            Sharing::Private | Sharing::Directory => self.workers(),
        };
        Work::Tree(Tree { workers, ..Tree::new(set, steps.to_vec()) })
    }

    fn tree(&self, sync: bool) -> Work {
        let point = self.point;
        let mut set = self.set();
        let passes = if self.lists() {
            // The step is one listing of the directory, so the set has one entry and many passes.
            let names = set.files;
            set.files = 1;
            self.listings(names)
        } else if self.operation.repeatable {
            point.count("passes")
        } else {
            1
        };
        let written = |step: &&TreeStep| **step != TreeStep::Write || !set.sizes.are_empty();
        let steps = self.operation.steps.iter().filter(written).copied().collect();
        let order = match point.word("order") {
            _ if self.operation.word == FIND => TreeOrder::Listed,
            "random" if set.files > 1 => TreeOrder::Random,
            _ => TreeOrder::Creation,
        };
        let calls = match point.word("io_engine") {
            "io_uring" => Calls::Ring { depth: count(point, "queue_depth") },
            _ => Calls::Syscall,
        };
        let end = TreeEnd { remove_directories: false, sync };
        let workers = self.workers();
        Work::Tree(Tree { passes, order, end, calls, workers, ..Tree::new(set, steps) })
    }

    fn lists(&self) -> bool {
        matches!(self.operation.entries, Entries::Small | Entries::Large)
    }

    /// Number of listings of a directory with `names` entries. In total, as many names are read as
    /// by `files` listings of a small directory; with a cold cache, the directory is listed only
    /// once.
    fn listings(&self, names: u64) -> u64 {
        match self.point.word("cache") {
            "cold" => 1,
            _ => (self.point.count("files").saturating_mul(SMALL) / names).max(1),
        }
    }

    fn mix(&self) -> Work {
        Work::Mix(Mix {
            set: self.set(),
            ops: self.point.count("mix_operations"),
            time: None,
            weights: weights(self.point.text("weights")),
            workers: self.workers(),
        })
    }

    fn workers(&self) -> Workers {
        let pin = if self.point.flag("pin") { Pin::Each } else { Pin::Free };
        Workers { pin, ..workers(self.point) }
    }

    fn set(&self) -> Set {
        let point = self.point;
        let listed = self.lists();
        let (sizes, record) = self.sizes();
        Set {
            name: self.operation.word.into(),
            sharing: match point.word("sharing") {
                // Workers that list a shared directory list the same entries.
                "directory" if listed => Sharing::File,
                "directory" => Sharing::Directory,
                "file" => Sharing::File,
                _ => Sharing::Private,
            },
            files: self.files(),
            spread: match point.count("entries_per_directory") {
                each if each > 0 && !listed => Spread::Directories { each },
                _ => Spread::Flat,
            },
            naming: match point.count("name_length") {
                0 => Naming::Numbers,
                _ => Naming::Padded { length: count(point, "name_length") },
            },
            sizes,
            block_size: record,
            data: DataPattern::default(),
            seed: self.seed,
        }
    }

    fn files(&self) -> u64 {
        match self.operation.entries {
            Entries::Small => SMALL,
            Entries::Large => self.point.count("large_directory_entries"),
            Entries::Durable => self.point.count("fsync_files"),
            Entries::Files
            | Entries::Bare
            | Entries::Extents
            | Entries::Reserved
            | Entries::Population => self.point.count("files"),
        }
    }

    /// Sizes of the files, and bytes per I/O call.
    fn sizes(&self) -> (Sizes, Bytes) {
        let (size, extent) = (self.point.size("file_size"), self.point.size("extent_size"));
        match self.operation.entries {
            Entries::Files | Entries::Durable | Entries::Population => {
                (Sizes::Fixed(size), size.min(BLOCK_SIZE).max(Bytes(1)))
            }
            Entries::Extents => (Sizes::Fixed(extent), extent),
            Entries::Reserved => (Sizes::Fixed(Bytes(0)), extent),
            Entries::Bare | Entries::Small | Entries::Large => (Sizes::Fixed(Bytes(0)), Bytes(1)),
        }
    }

    /// Space of the entries of all workers, including entries that the operation adds.
    fn taken(&self) -> u64 {
        let set = self.set();
        let owners = match set.sharing {
            Sharing::File => 1,
            Sharing::Private | Sharing::Directory => self.point.count("workers"),
        };
        let sizes = match self.operation.entries {
            Entries::Reserved => Sizes::Fixed(self.point.size("extent_size")),
            // An empty directory occupies a block.
            Entries::Bare
                if self.operation.item == Some(Item::Directory) || self.makes_directories() =>
            {
                Sizes::Fixed(Bytes(1))
            }
            Entries::Files
            | Entries::Bare
            | Entries::Extents
            | Entries::Durable
            | Entries::Small
            | Entries::Large
            | Entries::Population => set.sizes,
        };
        let added = match self.operation.entries {
            Entries::Population => self.added(),
            Entries::Files
            | Entries::Bare
            | Entries::Extents
            | Entries::Reserved
            | Entries::Durable
            | Entries::Small
            | Entries::Large => 0,
        };
        space(set.files.saturating_add(added), sizes).0.saturating_mul(owners)
    }

    fn makes_directories(&self) -> bool {
        self.operation.steps.contains(&TreeStep::Mkdir)
    }

    /// Maximum number of files that a mix creates. The mix may remove none of them.
    fn added(&self) -> u64 {
        let weights = weights(self.point.text("weights"));
        let all: u64 = weights.iter().map(|(_, weight)| u64::from(*weight)).sum();
        let creates = weights.iter().find(|(op, _)| *op == MixOp::Create);
        let creates = creates.map_or(0, |(_, weight)| u64::from(*weight));
        // Rounded up, because the operations are drawn at random.
        (self.point.count("mix_operations") / all.max(1) + 1).saturating_mul(creates)
    }
}
