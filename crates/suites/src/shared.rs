//! Helpers for several suites: workers, and space of files.

use model::{
    Bytes, WorkloadParameters,
    phase::{Sizes, WorkerKind, Workers},
    workload::{Kind, ParameterSpec},
};

use crate::parameter;

/// Parameter `workers`.
pub(crate) const fn workers_parameter(doc: &'static str) -> ParameterSpec {
    parameter("workers", Kind::Count { min: 1, max: 1024 }, "1", doc)
}

/// Parameter `worker_type`.
pub(crate) const fn worker_type_parameter(
    default: &'static str,
    doc: &'static str,
) -> ParameterSpec {
    parameter("worker_type", Kind::Word(&["thread", "process"]), default, doc)
}

/// Workers defined by the parameters `workers` and `worker_type`.
pub(crate) fn workers(point: &WorkloadParameters) -> Workers {
    Workers { kind: kind(point), ..Workers::threads(count(point, "workers")) }
}

/// Value of the parameter `worker_type`.
pub(crate) fn kind(point: &WorkloadParameters) -> WorkerKind {
    match point.word("worker_type") {
        "process" => WorkerKind::Process,
        _ => WorkerKind::Thread,
    }
}

/// Value of a count parameter as a 32-bit number.
pub(crate) fn count(point: &WorkloadParameters, name: &str) -> u32 {
    u32::try_from(point.count(name)).unwrap_or(u32::MAX)
}

/// True if the value of a list parameter contains the word.
pub(crate) fn has(point: &WorkloadParameters, list: &str, word: &str) -> bool {
    point.words(list).iter().any(|given| given == word)
}

/// Upper estimate of the space of an inode (256 to 512 bytes) and its directory entry (30 to 300
/// bytes).
const INODE: u64 = 1 << 10;

/// Assumed filesystem block size.
const BLOCK: u64 = 4 << 10;

/// Space of `files` files of these sizes. For random sizes, each file counts as the mean plus one
/// block. On average, half of this block is for the unused part of the last block of the file.
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
