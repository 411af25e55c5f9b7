//! Options of engines with a queue.

use model::phase::{Completions, Ring};

use super::FioJob;

/// Options of io_uring.
pub(super) fn ring(job: &mut FioJob, impossible: &mut Vec<&'static str>, ring: Ring) {
    let Ring {
        depth,
        submit_batch,
        fixed_buffers,
        sqpoll,
        iopoll,
        linked_fdatasync,
        nop,
        completions,
    } = ring;
    if nop || linked_fdatasync {
        impossible.push("nop, linked_fdatasync: fio has no such operations");
    }
    job.set("ioengine", "io_uring");
    queue(job, depth, submit_batch);
    // All completions in the ring are collected.
    collection(job, completions, depth);
    job.flag("fixedbufs", fixed_buffers);
    job.flag("registerfiles", fixed_buffers);
    job.flag("nonvectored", !fixed_buffers);
    job.flag("sqthread_poll", sqpoll);
    job.flag("hipri", iopoll);
}

/// Options of a queue. Returns the number of operations that are submitted at once.
pub(super) fn queue(job: &mut FioJob, depth: u32, submit_batch: u32) -> u32 {
    let batch = if submit_batch == 0 { depth } else { submit_batch.min(depth) };
    job.set("iodepth", depth);
    job.set("iodepth_batch_submit", batch);
    batch
}

/// Options of the collection of completions, of which `most` are collected together unless the
/// stream has another number.
pub(super) fn collection(job: &mut FioJob, completions: Completions, most: u32) {
    let Completions { min, max, refill_at } = completions;
    job.set("iodepth_batch_complete_min", min);
    job.set("iodepth_batch_complete_max", if max == 0 { most.max(min) } else { max });
    if let Some(refill_at) = refill_at {
        job.set("iodepth_low", refill_at);
    }
}
