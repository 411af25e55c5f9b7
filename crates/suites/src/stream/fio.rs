//! Jobs of fio that perform the operations of a stream.
//!
//! Sources: fio(1), and system call traces of fio 3.33.

mod queues;
#[cfg(test)]
mod tests;

use model::{
    Nanos, Phase,
    phase::{
        AccessPattern, Advice, Aio, Arrivals, Bound, Cache, CallFlags, CpuList, DataPattern,
        Direction, EndSync, FileCreation, FileSharing, IoEngineKind, IoPriority, NameCall, Pace,
        Pin, Rate, SpaceCall, Stonewall, Stream, SyncCall, SyncInterval, Work, WorkerKind,
    },
};

use crate::load_generator::incomparable;

/// Job of fio, without its name and directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FioJob {
    /// Options with their values.
    pub options: Vec<(&'static str, String)>,
    /// Properties of the stream that fio does not have and that do not change the operations.
    pub differences: Vec<&'static str>,
}

impl FioJob {
    fn set(&mut self, option: &'static str, value: impl ToString) {
        self.options.push((option, value.to_string()));
    }

    fn flag(&mut self, option: &'static str, set: bool) {
        if set {
            self.set(option, 1);
        }
    }
}

/// Text of a job file whose jobs perform the operations of these phases one after the other, in the
/// current directory.
///
/// # Errors
/// The reason why fio cannot perform the operations.
pub fn fio_jobs(phases: &[Phase]) -> Result<String, String> {
    let mut text = String::new();
    for (index, phase) in phases.iter().enumerate() {
        let name = &phase.name;
        let Work::Stream(stream) = &phase.work else {
            return Err(format!("phase {name} is not block I/O on files by fslab"));
        };
        let job = fio_job(stream).map_err(|reasons| format!("{name}: {}", reasons.join("; ")))?;
        text += &format!("\n[{name}]\n");
        for difference in &job.differences {
            text += &format!("; {difference}\n");
        }
        if index > 0 {
            text += "stonewall\n";
        }
        let cold = phase.cache == Cache::Cold;
        // The jobs run without pauses, so the cache can only be dropped by advice, and only before
        // the first pass.
        if cold {
            text += "; cold cache: fslab remounts the filesystem or drops all caches\n";
        }
        for (option, value) in &job.options {
            let value = if (cold, *option) == (true, "invalidate") { "1" } else { value };
            text += &format!("{option}={value}\n");
        }
    }
    Ok(text)
}

/// Reason why fio cannot perform the operations of a phase.
pub(super) fn refusal(phase: &Phase) -> Option<String> {
    let Work::Stream(stream) = &phase.work else { return None };
    if let Some(reason) = incomparable(phase) {
        return Some(reason.into());
    }
    fio_job(stream).err().map(|reasons| reasons.join("; "))
}

/// Job that performs the operations of a stream on its files. Files that the stream expects must
/// exist.
///
/// # Errors
/// Properties of the stream that fio cannot reproduce.
pub(crate) fn fio_job(stream: &Stream) -> Result<FioJob, Vec<&'static str>> {
    let mut job = FioJob::default();
    let mut impossible = Vec::new();
    if stream.file_handling.is_some() {
        impossible.push("allocation, region, and cached pages of suite fio");
    }
    if stream.verify {
        impossible.push("verify: fio does not know the block headers of fslab");
    }
    direction(&mut job, &mut impossible, stream);
    sizes(&mut job, &mut impossible, stream);
    engine(&mut job, &mut impossible, stream);
    files(&mut job, stream);
    syncs(&mut job, &mut impossible, stream);
    pace(&mut job, &mut impossible, stream);
    bound(&mut job, &mut impossible, stream);
    workers(&mut job, &mut impossible, stream);
    data(&mut job, &mut impossible, stream);
    // fslab gives no advice about the page cache. The cache state is established before the job.
    job.set("invalidate", 0);
    job.set("fadvise_hint", 0);
    // fio reads a signed number. One of 31 bits is the same in all versions.
    job.set("randseed", stream.seed >> 33);
    job.flag("group_reporting", stream.workers.count > 1);
    match impossible.is_empty() {
        true => Ok(job),
        false => Err(impossible),
    }
}

fn direction(job: &mut FioJob, impossible: &mut Vec<&'static str>, stream: &Stream) {
    let per_direction = stream.access_pattern == AccessPattern::SequentialPerDirection;
    let ordered = per_direction || stream.access_pattern == AccessPattern::Sequential;
    let random = !ordered;
    let words = match stream.direction {
        Direction::Read => ["read", "randread"],
        Direction::Write => ["write", "randwrite"],
        Direction::Mixed(_) => ["rw", "randrw"],
        Direction::Alternate | Direction::FirstRead(_) | Direction::Update(_) => {
            impossible.push("direction: all workers of a fio job perform the same operations");
            return;
        }
    };
    job.set("rw", words[usize::from(random)]);
    if let Direction::Mixed(reads) = stream.direction {
        if ordered && !per_direction {
            impossible.push(
                "direction mixed, access_pattern sequential: fio has a position per direction",
            );
        }
        let percent = reads * 100.0;
        if (percent - percent.round()).abs() > 1e-9 {
            impossible.push("read_fraction: fio has whole percentages");
        }
        job.set("rwmixread", percent.round());
    }
    let independent = |job: &mut FioJob, distribution: String| {
        job.set("random_distribution", distribution);
        job.set("norandommap", 1);
    };
    match stream.access_pattern {
        AccessPattern::Sequential
        | AccessPattern::SequentialPerDirection
        | AccessPattern::Permutation => {}
        AccessPattern::Random => job.set("norandommap", 1),
        AccessPattern::Zipf { theta } => independent(job, format!("zipf:{theta}")),
        AccessPattern::Pareto { share } => independent(job, format!("pareto:{share}")),
        AccessPattern::Hotspot { space, visits } => {
            let percents = [visits, space, 1.0 - visits, 1.0 - space].map(|part| part * 100.0);
            if percents.iter().any(|percent| (percent - percent.round()).abs() > 1e-9) {
                impossible.push("hotspot: fio has whole percentages");
            }
            let [visits, space, other_visits, rest] = percents.map(f64::round);
            independent(job, format!("zoned:{visits}/{space}:{other_visits}/{rest}"));
        }
        AccessPattern::Backward
        | AccessPattern::SameBlock
        | AccessPattern::Stride { .. }
        | AccessPattern::IozonePermutation
        | AccessPattern::Append
        | AccessPattern::Trace
        | AccessPattern::Tickets => impossible.push("access_pattern: fio has no such order"),
        AccessPattern::Normal { .. }
        | AccessPattern::Zones
        | AccessPattern::Skip { .. }
        | AccessPattern::Runs { .. } => {
            impossible.push("access_pattern: only jobs of fio have this order");
        }
    }
}

fn sizes(job: &mut FioJob, impossible: &mut Vec<&'static str>, stream: &Stream) {
    let block = stream.block_size.0;
    if !stream.write_sizes.is_empty() {
        impossible.push("write_sizes: only jobs of fio have other sizes of writes");
    }
    if stream.block_sizes.is_empty() {
        job.set("bs", size(block));
    } else {
        let total: u64 = stream.block_sizes.iter().map(|length| u64::from(length.weight)).sum();
        let mut parts = Vec::new();
        for length in &stream.block_sizes {
            let percent = u64::from(length.weight) * 100;
            if !percent.is_multiple_of(total) {
                impossible.push("block_size_split: fio has whole percentages");
                return;
            }
            parts.push(format!("{}/{}", size(u64::from(length.blocks) * block), percent / total));
        }
        job.set("bssplit", parts.join(":"));
        if matches!(stream.access_pattern, AccessPattern::Sequential | AccessPattern::Permutation) {
            impossible.push("block_size_split: only for independent random offsets");
        }
        // Otherwise operations are aligned to their own size.
        job.set("blockalign", size(block));
    }
    let whole = stream.size.0 - stream.size.0 % block;
    job.set("filesize", size(whole));
    match &stream.files {
        FileSharing::Segmented(_) => {
            let segment = whole / block / u64::from(stream.workers.count) * block;
            job.set("size", size(segment));
            job.set("offset_increment", size(segment));
        }
        FileSharing::Interleaved(_) => {
            impossible.push("sharing = interleaved: fio divides a file into segments only");
        }
        FileSharing::One(_)
        | FileSharing::PerWorker(_)
        | FileSharing::Template(_)
        | FileSharing::Shared(_) => {
            job.set("size", size(whole));
        }
        FileSharing::Several(files) => {
            job.set("size", size(whole.saturating_mul(u64::from(files.per_worker()))));
        }
    }
}

fn engine(job: &mut FioJob, impossible: &mut Vec<&'static str>, stream: &Stream) {
    match stream.io_engine {
        IoEngineKind::Offset => job.set("ioengine", "psync"),
        IoEngineKind::Position => job.set("ioengine", "sync"),
        IoEngineKind::Vector(CallFlags { nowait, hipri, dsync, uncached }) => {
            job.set("ioengine", "pvsync2");
            job.flag("hipri", hipri);
            job.flag("uncached", uncached);
            if nowait || dsync {
                impossible.push("nowait, o_dsync of preadv2: fio does not repeat calls");
            }
        }
        IoEngineKind::Mmap(Advice::Normal) => job.set("ioengine", "mmap"),
        IoEngineKind::Ring(ring) => queues::ring(job, impossible, ring),
        IoEngineKind::Aio(Aio { depth, submit_batch, completions }) => {
            job.set("ioengine", "libaio");
            let batch = queues::queue(job, depth, submit_batch);
            // io_getevents(2) collects at most as many operations as are submitted at once.
            queues::collection(job, completions, batch);
        }
        IoEngineKind::Null => job.set("ioengine", "null"),
        IoEngineKind::Mmap(_) => impossible.push("madvise: fio has no option for this advice"),
        IoEngineKind::Space(SpaceCall::Allocate) => job.set("ioengine", "falloc"),
        IoEngineKind::Space(SpaceCall::Truncate) => job.set("ioengine", "ftruncate"),
        IoEngineKind::Name(NameCall::Create) => job.set("ioengine", "filecreate"),
        IoEngineKind::Name(NameCall::Stat) => job.set("ioengine", "filestat"),
        IoEngineKind::Name(NameCall::Unlink) => job.set("ioengine", "filedelete"),
        IoEngineKind::Name(NameCall::CreateDirectory) => job.set("ioengine", "dircreate"),
        IoEngineKind::Name(NameCall::RemoveDirectory) => job.set("ioengine", "dirdelete"),
        IoEngineKind::Bytewise | IoEngineKind::Stdio | IoEngineKind::Copy(_) => {
            impossible.push("io_engine: fio has no such engine");
        }
    }
    job.set("direct", u8::from(stream.open.direct));
    match (stream.open.sync, stream.open.dsync) {
        (true, _) => job.set("sync", "sync"),
        (false, true) => job.set("sync", "dsync"),
        (false, false) => {}
    }
}

/// Option with the names of the files.
pub(crate) fn file_names(files: &FileSharing) -> (&'static str, String) {
    match files {
        FileSharing::One(name)
        | FileSharing::Shared(name)
        | FileSharing::Segmented(name)
        | FileSharing::Interleaved(name) => ("filename", name.clone()),
        FileSharing::Template(text) => ("filename_format", text.replace("{worker}", "$jobnum")),
        FileSharing::PerWorker(prefix) => ("filename_format", format!("{prefix}.$jobnum")),
        FileSharing::Several(files) => ("filename", files.names(0).join(":")),
    }
}

fn files(job: &mut FioJob, stream: &Stream) {
    job.options.push(file_names(&stream.files));
    match stream.open.creation {
        FileCreation::Existing | FileCreation::Complete => {
            job.flag("overwrite", stream.direction.writes(0))
        }
        FileCreation::Any | FileCreation::Fresh => job.set("fallocate", "none"),
    }
    if stream.open.fsync {
        job.differences.push("fsync_after_open: fio has no untimed fsync");
    }
    if stream.open.read_first_block {
        job.differences.push("read_first_block: fio has no untimed read");
    }
}

fn syncs(job: &mut FioJob, impossible: &mut Vec<&'static str>, stream: &Stream) {
    if let Some(every) = stream.sync_every {
        let operations = match every.after {
            SyncInterval::Ops(operations) => Some(operations),
            SyncInterval::Bytes(bytes) => {
                let whole = bytes.0.is_multiple_of(stream.block_size.0);
                (whole && stream.block_sizes.is_empty()).then_some(bytes.0 / stream.block_size.0)
            }
        };
        match (operations, every.call) {
            (None, _) => impossible.push("fsync_every: fio counts operations"),
            (Some(operations), SyncCall::Fsync) => job.set("fsync", operations),
            (Some(operations), SyncCall::Fdatasync) => job.set("fdatasync", operations),
            (Some(_), SyncCall::Syncfs) => impossible.push("fsync_every: fio has no syncfs"),
            (Some(operations), SyncCall::Range(flags)) => {
                job.set("sync_file_range", format!("{}:{operations}", flags.names()));
            }
        }
        if !every.before_next {
            let difference = "fsync_every: fio does not sync after the last write of a worker";
            job.differences.push(difference);
        }
    }
    match stream.end_sync {
        EndSync::None => {}
        EndSync::Fsync => job.set("end_fsync", 1),
        EndSync::Syncfs => job.set("end_syncfs", 1),
        EndSync::Fdatasync => {
            job.set("end_fsync", 1);
            job.differences.push("end_fsync: fio has fsync, not fdatasync");
        }
    }
}

fn pace(job: &mut FioJob, impossible: &mut Vec<&'static str>, stream: &Stream) {
    let mut limit = |job: &mut FioJob, rate: Rate| {
        let (option, all) = match rate {
            Rate::Ops(operations) => ("rate_iops", operations),
            Rate::Bytes(bytes) => ("rate", bytes.0),
        };
        let workers = u64::from(stream.workers.count);
        if !all.is_multiple_of(workers) {
            impossible.push("rate: not a multiple of the number of workers");
        }
        job.set(option, all / workers);
    };
    match stream.pace {
        Pace::Free => {}
        Pace::OpenByDirection { .. } => {
            impossible.push("rates by direction: only jobs of fio have them");
        }
        Pace::Think { ops, pause, .. } => {
            job.set("thinktime", time(pause));
            job.set("thinktime_blocks", ops);
        }
        Pace::Limit(rate) => limit(job, rate),
        Pace::Open { rate, arrivals } => {
            limit(job, rate);
            job.set(
                "rate_process",
                match arrivals {
                    Arrivals::Constant => "linear",
                    Arrivals::Poisson => "poisson",
                },
            );
            job.differences.push("arrivals: fio measures latency from the start of service");
        }
    }
}

fn bound(job: &mut FioJob, impossible: &mut Vec<&'static str>, stream: &Stream) {
    match stream.bound {
        Bound::Once if stream.block_sizes.is_empty() => {}
        Bound::Once => operations(job, stream, stream.size.0 / stream.block_size.0),
        Bound::Ops(count) => operations(job, stream, count),
        Bound::Amount(_) => impossible.push("an amount of work with a time limit"),
        Bound::Together(_) => impossible.push("fio has no common number of operations"),
        Bound::Deadline(_) => {
            impossible.push("stonewall_time: fio has no common number of operations")
        }
        Bound::Time { ramp, run } => {
            job.set("time_based", 1);
            job.set("runtime", time(run));
            if ramp > Nanos(0) {
                job.set("ramp_time", time(ramp));
            }
        }
    }
}

/// Limits each worker to a number of operations. fio ends a worker by bytes as well.
fn operations(job: &mut FioJob, stream: &Stream, count: u64) {
    job.set("number_ios", count);
    job.set("io_size", size(count.saturating_mul(stream.longest_operation().0)));
}

/// Time with a unit that fio reads.
fn time(time: Nanos) -> String {
    match time.0 {
        nanos if nanos.is_multiple_of(1_000_000_000) => format!("{}s", nanos / 1_000_000_000),
        nanos if nanos.is_multiple_of(1_000_000) => format!("{}ms", nanos / 1_000_000),
        nanos => format!("{}us", nanos.div_ceil(1000)),
    }
}

/// Size with a unit of fio, which are powers of 1024.
fn size(bytes: u64) -> String {
    let units = [(1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")];
    let unit = units.iter().find(|(unit, _)| bytes > 0 && bytes.is_multiple_of(*unit));
    unit.map_or_else(|| bytes.to_string(), |(unit, name)| format!("{}{name}", bytes / unit))
}

fn workers(job: &mut FioJob, impossible: &mut Vec<&'static str>, stream: &Stream) {
    let workers = stream.workers;
    job.set("numjobs", workers.count);
    job.flag("thread", workers.kind == WorkerKind::Thread);
    match workers.stonewall {
        Stonewall::Off => {}
        Stonewall::Stop => job.set("exitall", 1),
        Stonewall::Finish => impossible.push("stonewall finish: fio measures all operations"),
    }
    let list = |cpus: CpuList| cpus.cpus().map(|cpu| cpu.to_string()).collect::<Vec<_>>().join(",");
    match workers.pin {
        Pin::Free => {}
        Pin::Each => impossible.push("pin: the CPUs of the process are not known"),
        Pin::Nodes(nodes) => job.set("numa_cpu_nodes", list(nodes)),
        Pin::Shared(cpus) => job.set("cpus_allowed", list(cpus)),
        Pin::Split { cpus, .. } => {
            job.set("cpus_allowed", list(cpus));
            job.set("cpus_allowed_policy", "split");
        }
    }
    let class = workers.io_priority.map(|priority| match priority {
        IoPriority::RealTime(level) => (1, level),
        IoPriority::BestEffort(level) => (2, level),
        IoPriority::Idle => (3, 0),
    });
    if let Some((class, level)) = class {
        job.set("prioclass", class);
        job.set("prio", level);
    }
}

fn data(job: &mut FioJob, impossible: &mut Vec<&'static str>, stream: &Stream) {
    if stream.direction == Direction::Read || !stream.moves() {
        return;
    }
    let DataPattern::Random { incompressible_fraction, duplicate_fraction } = stream.data else {
        impossible.push("data: fio has no such pattern");
        return;
    };
    let percents = [1.0 - incompressible_fraction, duplicate_fraction].map(|part| part * 100.0);
    if percents.iter().any(|percent| (percent - percent.round()).abs() > 1e-9) {
        impossible.push("incompressible_fraction, duplicate_fraction: fio has whole percentages");
    }
    let [zeros, duplicates] = percents.map(f64::round);
    // By default, fio fills its buffers with random data once, and changes parts of it before each
    // write.
    job.flag("refill_buffers", zeros > 0.0 || duplicates > 0.0);
    if zeros > 0.0 {
        job.set("buffer_compress_percentage", zeros);
        job.set("buffer_compress_chunk", 4096);
    }
    if duplicates > 0.0 {
        job.set("dedupe_percentage", duplicates);
    }
}
