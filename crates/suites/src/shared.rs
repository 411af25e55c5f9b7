//! What several suites do alike: who works, and how much space entries take.

use model::{
    Bytes, Point,
    phase::{Sizes, WorkerKind, Workers},
    workload::{Kind, ParameterSpec},
};

use crate::parameter;

/// How many workers.
pub(crate) const fn workers_parameter(doc: &'static str) -> ParameterSpec {
    parameter("workers", Kind::Count { min: 1, max: 1024 }, "1", doc)
}

/// What a worker is.
pub(crate) const fn worker_parameter(default: &'static str, doc: &'static str) -> ParameterSpec {
    parameter("worker", Kind::Word(&["thread", "process"]), default, doc)
}

/// The workers that the parameters `workers` and `worker` ask for.
pub(crate) fn workers(point: &Point) -> Workers {
    Workers { kind: kind(point), ..Workers::threads(count(point, "workers")) }
}

/// What the parameter `worker` asks for.
pub(crate) fn kind(point: &Point) -> WorkerKind {
    match point.word("worker") {
        "process" => WorkerKind::Process,
        _ => WorkerKind::Thread,
    }
}

/// A count parameter that is a number of workers.
pub(crate) fn count(point: &Point, name: &str) -> u32 {
    u32::try_from(point.count(name)).unwrap_or(u32::MAX)
}

/// Whether a list parameter holds a word.
pub(crate) fn has(point: &Point, list: &str, word: &str) -> bool {
    point.words(list).iter().any(|given| given == word)
}

/// Space that an inode and the name that leads to it take, rounded up generously: 256 to 512 bytes
/// and some 30 to 300.
const INODE: u64 = 1 << 10;

/// Data of a file take whole blocks; 4 KiB is the usual one.
const BLOCK: u64 = 4 << 10;

/// Space of so many files of these sizes. Where sizes are drawn this is the mean, and a block more
/// for each file, of which half goes into what its last block leaves empty.
pub(crate) fn space(files: u64, sizes: Sizes) -> Bytes {
    let data = match sizes {
        Sizes::Fixed(size) => size.0.next_multiple_of(BLOCK),
        Sizes::Uniform { .. } | Sizes::LogNormal { .. } if sizes.are_empty() => 0,
        Sizes::Uniform { .. } | Sizes::LogNormal { .. } => {
            sizes.mean().0.next_multiple_of(BLOCK).saturating_add(BLOCK)
        }
    };
    Bytes(files.saturating_mul(data.saturating_add(INODE)))
}
