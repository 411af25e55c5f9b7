//! Phases of a job.

use std::collections::{HashMap, HashSet};

use model::{
    Bytes, Nanos, Phase,
    phase::{
        AccessPattern, Advice, Aio, Allocation, Bound, Cache, CallFlags, Completions, Direction,
        EndSync, FileAdvice, FileCreation, FileHandling, FileOrder, FileSharing, IoEngineKind,
        IoPriority, Length, NameCall, Open, Part, PassStart, Region, Ring, Role, SeveralFiles,
        Stonewall, Stream, TimeLimit, Timed, Together, Work, WorkLimit, WorkerKind, Workers,
    },
    sample::lifecycle,
};

use super::job::{Job, Section};

/// Runtime of a section with a ramp time and without a time limit.
const WITHOUT_END: Nanos = Nanos(1 << 58);

/// Phases of a job: files of all sections, then the groups of sections in order.
pub(super) fn phases(job: &Job, seed: u64) -> Vec<Phase> {
    let names = phase_names(job);
    let mut phases = Vec::new();
    for (section, name) in job.sections.iter().zip(&names).filter(|(own, _)| own.touches()) {
        if !section.flag("create_only") {
            phases.extend(layout(section, name, seed));
        }
        if section.flag("pre_read") {
            phases.push(pre_read(section, name, seed));
        }
    }
    let mut first_worker = Vec::new();
    let mut workers = 0u32;
    for section in &job.sections {
        first_worker.push(workers);
        workers = workers.saturating_add(section.workers());
    }
    for (number, group) in (0..).zip(job.groups()) {
        let several = group.len() > 1;
        let place = |name: &str| group.clone().position(|at| job.sections[at].name == name);
        let after: Vec<Option<u32>> = group
            .clone()
            .map(|at| place(job.sections[at].text("wait_for")))
            .map(|place| place.and_then(|place| u32::try_from(place).ok()))
            .collect();
        for (at, after) in group.clone().zip(after) {
            let section = &job.sections[at];
            let start_delay = section.time("startdelay");
            let of_trial = number > 0 && start_delay > Nanos(0);
            let (part, end) = (Part::Measured, job.end(at));
            let together = Together { group: number, start_delay, of_trial, after, part, end };
            let grouped = several || start_delay > Nanos(0);
            phases.push(Phase {
                together: grouped.then_some(together),
                ..phase(
                    &names[at],
                    Role::Measure,
                    Work::Stream(measured(job, at, seed, first_worker[at])),
                )
            });
        }
        for at in group {
            let Some(reads) = job.sections[at].verification(seed) else { continue };
            let mut name = format!("{}-verify", names[at]);
            while names.contains(&name) {
                name.push_str("-job");
            }
            phases.push(phase(&name, Role::Measure, Work::Stream(reads)));
        }
    }
    let mut removed = HashSet::new();
    for (section, name) in job.sections.iter().zip(&names) {
        let (files, workers) = (section.sharing(), section.workers());
        if !section.flag("unlink") || !section.touches() {
            continue;
        }
        let known = removed.len();
        removed.extend((0..workers).flat_map(|worker| files.names(worker)));
        if removed.len() > known {
            let work = Work::Remove { files, workers };
            phases.push(phase(&format!("{name}.unlink"), Role::Prepare, work));
        }
    }
    phases
}

/// Work of the section at this place, whose workers have numbers from `first` among those of the
/// job.
fn measured(job: &Job, at: usize, seed: u64, first: u32) -> Stream {
    let section = &job.sections[at];
    let own = stream(section, seed);
    let mut stream = match creation(section, seed).filter(|_| section.flag("create_only")) {
        Some(mut creation) => {
            creation.workers.io_priority = own.workers.io_priority;
            creation.workers.nice = own.workers.nice;
            creation
        }
        None if section.only_verifies() => section.as_reads(&own),
        None => Stream { flow: job.flow(at), ..own },
    };
    let logs = section.logs(first.saturating_add(1)).filter(|_| section.touches());
    stream.operation_log = logs.map(Box::new);
    stream.workers.pin = section.pin(first);
    stream
}

fn phase(name: &str, role: Role, work: Work) -> Phase {
    let group = match (&work, role) {
        (_, Role::Prepare) => "preparing",
        (Work::Stream(stream), Role::Measure) if stream.verify_backlog.is_some() => "mixed",
        (Work::Stream(stream), Role::Measure) => match stream.direction {
            Direction::Read => "reading",
            Direction::Write => "writing",
            Direction::Alternate
            | Direction::FirstRead(_)
            | Direction::Mixed(_)
            | Direction::Update(_) => "mixed",
        },
        _ => "mixed",
    };
    Phase {
        name: name.to_owned(),
        group: group.to_owned(),
        role,
        cache: Cache::Unchanged,
        work,
        timed: Timed::default(),
        directory: None,
        together: None,
    }
}

/// Unique names of phases: letters, digits, and hyphens of the name of the section.
fn phase_names(job: &Job) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let (mut used, mut taken_by) = (HashSet::new(), HashMap::new());
    for section in &job.sections {
        let mut name = String::new();
        for c in section.name.chars() {
            match c {
                c if c.is_ascii_alphanumeric() => name.push(c.to_ascii_lowercase()),
                _ if name.ends_with('-') || name.is_empty() => {}
                _ => name.push('-'),
            }
        }
        let name = name.trim_end_matches('-');
        let own = [lifecycle::SPACE, lifecycle::TRIAL, model::phase::GROUP];
        let taken = |name: &str| lifecycle::ALL.iter().chain(&own).any(|step| *step == name);
        let base = match name {
            "" => "job".to_owned(),
            name if taken(name) => format!("{name}-job"),
            name => name.to_owned(),
        };
        let count = taken_by.entry(base.clone()).or_insert(0u32);
        let mut candidate = base.clone();
        while !used.insert(candidate.clone()) {
            *count += 1;
            candidate = format!("{base}-{}", *count + 1);
        }
        names.push(candidate);
    }
    names
}

/// Fraction of a percentage.
#[expect(clippy::cast_precision_loss, reason = "at most 100")]
pub(super) fn share(percent: u64) -> f64 {
    percent.min(100) as f64 / 100.0
}

fn seed_of(section: &Section, seed: u64) -> u64 {
    seed ^ section.number("randseed").wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Phase that creates the files of a section.
fn layout(section: &Section, name: &str, seed: u64) -> Option<Phase> {
    let stream = creation(section, seed)?;
    Some(phase(&format!("{name}.layout"), Role::Prepare, Work::Stream(stream)))
}

/// Writes that create the files of a section that reads, or overwrites, unless they are complete.
pub(super) fn creation(section: &Section, seed: u64) -> Option<Stream> {
    if section.only_verifies()
        || section.creates()
        || !section.flag("allow_file_create")
        || (!section.reads() && !section.flag("overwrite"))
    {
        return None;
    }
    let largest = section.largest_size();
    let size = section.file_size();
    let (files, workers) = once(section);
    if section.uses_directories() {
        let io_engine = IoEngineKind::Name(NameCall::CreateDirectory);
        let workers = Workers::threads(workers);
        let own = Stream::new(files, Bytes(size), Bytes(largest.min(size)));
        return Some(Stream { io_engine, workers, ..own });
    }
    Some(Stream {
        direction: Direction::Write,
        open: Open { creation: FileCreation::Complete, ..Open::default() },
        data: section.data(),
        pattern: section.content(),
        seed: seed_of(section, seed),
        header_seed: section.header_seed(),
        end_sync: if section.flag("create_fsync") { EndSync::Fsync } else { EndSync::None },
        workers: Workers::threads(workers),
        file_handling: Some(FileHandling {
            allocate: allocation(section),
            drop_after: true,
            ..FileHandling::default()
        }),
        ..Stream::new(files, Bytes(size), Bytes(largest.min(size)))
    })
}

/// Files of a section for a phase that accesses each of them once, and its workers.
fn once(section: &Section) -> (FileSharing, u32) {
    let files = section.sharing();
    let workers = if files.are_separate() { section.workers() } else { 1 };
    let files = match files {
        FileSharing::Shared(name) => FileSharing::One(name),
        FileSharing::Several(files) => {
            let order = FileOrder::Sequential;
            FileSharing::Several(SeveralFiles { order, turn: 1, open: 1, ..files })
        }
        own @ (FileSharing::One(_)
        | FileSharing::PerWorker(_)
        | FileSharing::Template(_)
        | FileSharing::Segmented(_)
        | FileSharing::Interleaved(_)) => own,
    };
    (files, workers)
}

fn pre_read(section: &Section, name: &str, seed: u64) -> Phase {
    let measured = stream(section, seed);
    let (files, workers) = once(section);
    let read = Stream {
        workers: Workers::threads(workers),
        ..Stream::new(files, measured.size, measured.block_size)
    };
    phase(&format!("{name}.pre-read"), Role::Prepare, Work::Stream(read))
}

fn allocation(section: &Section) -> Allocation {
    match section.text("fallocate") {
        "none" => Allocation::None,
        "posix" => Allocation::Posix,
        "keep" => Allocation::Keep,
        "truncate" => Allocation::Truncate,
        _ => Allocation::Native,
    }
}

/// Stream with the files of a section and the sizes of its operations.
fn sized(section: &Section) -> Stream {
    let (block, sizes) = section.block_sizes();
    let lengths = |sizes: &[(u64, u32)]| -> Vec<Length> {
        let blocks = |size: u64| u32::try_from(size / block).unwrap_or(u32::MAX);
        let length =
            |(size, weight): &(u64, u32)| Length { blocks: blocks(*size), weight: *weight };
        sizes.iter().map(length).collect()
    };
    let mut stream = Stream::new(section.sharing(), Bytes(section.file_size()), Bytes(block));
    match section.sizes_by_direction() {
        Some([reads, writes]) => {
            (stream.block_sizes, stream.write_sizes) = (lengths(&reads), lengths(&writes));
        }
        None => stream.block_sizes = lengths(&sizes),
    }
    if let Some(jumps) = section.jump_sizes() {
        stream.jump_sizes = lengths(&jumps);
    }
    if let Some(alignment) = section.alignment() {
        stream.offset_alignment = u32::try_from(alignment / block).unwrap_or(u32::MAX);
    }
    stream
}

/// Work of a section.
pub(super) fn stream(section: &Section, seed: u64) -> Stream {
    let writes = section.writes() && section.touches();
    let mut stream = sized(section);
    stream.direction = match section.kind() {
        "read" | "randread" => Direction::Read,
        "write" | "randwrite" => Direction::Write,
        _ => match section.read_percent() {
            0 => Direction::Write,
            100 => Direction::Read,
            percent => Direction::Mixed(share(percent)),
        },
    };
    stream.access_pattern = section.pattern();
    if stream.access_pattern == AccessPattern::Zones {
        stream.zones = section.zones();
    }
    stream.io_engine = engine(section);
    stream.open = Open {
        creation: match section.reads() || section.flag("overwrite") {
            true if section.text("ioengine") == "falloc" => FileCreation::Any,
            true if section.touches() && !writes => FileCreation::Existing,
            _ if !section.flag("allow_file_create") => FileCreation::Existing,
            _ => FileCreation::Any,
        },
        direct: section.is_direct(),
        sync: section.text("sync") == "sync",
        dsync: section.text("sync") == "dsync",
        ..Open::default()
    };
    stream.data = section.data();
    stream.pattern = section.content();
    stream.minimum_rate = section.minimum_rate();
    stream.seed = seed_of(section, seed);
    stream.header_seed = section.header_seed();
    stream.verify = section.verifies() && stream.direction == Direction::Read;
    stream.verify_backlog = section.verify_backlog();
    stream.sync_every = section.sync_every().filter(|_| writes);
    stream.end_sync = match section.flag("end_fsync") || section.flag("fsync_on_close") {
        true if writes => EndSync::Fsync,
        false if writes && section.flag("end_syncfs") => EndSync::Syncfs,
        _ => EndSync::None,
    };
    stream.pace = section.pace();
    stream.bound = bound(section);
    stream.steady_state = section.steady_state();
    stream.workers = Workers {
        kind: if section.flag("thread") { WorkerKind::Thread } else { WorkerKind::Process },
        stonewall: if section.flag("exitall") { Stonewall::Stop } else { Stonewall::Off },
        io_priority: priority(section),
        nice: section.text("nice").parse().unwrap_or(0),
        ..Workers::threads(section.workers())
    };
    if section.touches() {
        stream.file_handling = Some(handling(section));
    }
    stream
}

fn handling(section: &Section) -> FileHandling {
    let (offset, size) = (section.offset(), section.region_size());
    let step = section.number("offset_increment");
    let whole = offset == 0 && step == 0 && size == section.file_size();
    let region = Region { offset: Bytes(offset), worker_step: Bytes(step), size: Bytes(size) };
    FileHandling {
        region: (!whole).then_some(region),
        allocate: allocation(section),
        invalidate: section.flag("invalidate") && !section.flag("pre_read"),
        advice: match section.text("fadvise_hint") {
            "0" => None,
            "sequential" => Some(FileAdvice::Sequential),
            "random" => Some(FileAdvice::Random),
            _ if section.is_random() => Some(FileAdvice::Random),
            _ => Some(FileAdvice::Sequential),
        },
        pass_start: match section.reopens() {
            true if section.flag("unlink_each_loop") => PassStart::Recreate,
            true => PassStart::Reopen,
            false if section.flag("time_based") && section.has_passes() => PassStart::Invalidate,
            false => PassStart::Continue,
        },
        drop_after: false,
    }
}

fn engine(section: &Section) -> IoEngineKind {
    if let Some(call) = section.call() {
        return call;
    }
    let depth = u32::try_from(section.number("iodepth")).unwrap_or(1);
    let batch = u32::try_from(section.number("iodepth_batch")).unwrap_or(1).min(depth);
    match section.text("ioengine") {
        "sync" => IoEngineKind::Position,
        "pvsync" => IoEngineKind::Vector(CallFlags::default()),
        "pvsync2" => IoEngineKind::Vector(CallFlags {
            nowait: section.flag("nowait"),
            hipri: section.flag("hipri"),
            dsync: false,
            uncached: section.flag("uncached"),
        }),
        "libaio" => IoEngineKind::Aio(Aio {
            depth,
            submit_batch: batch,
            completions: completions(section, depth, |max| max == batch),
        }),
        "io_uring" => IoEngineKind::Ring(Ring {
            submit_batch: batch,
            fixed_buffers: section.flag("fixedbufs"),
            sqpoll: section.flag("sqthread_poll"),
            iopoll: section.flag("hipri"),
            completions: completions(section, depth, |max| max == 1 || max >= depth),
            ..Ring::of(depth)
        }),
        "mmap" => IoEngineKind::Mmap(Advice::Normal),
        "null" => IoEngineKind::Null,
        _ => IoEngineKind::Offset,
    }
}

/// Collection of completions. `is_default`: the engine collects this number by default.
fn completions(section: &Section, depth: u32, is_default: impl Fn(u32) -> bool) -> Completions {
    let number = |name: &str| u32::try_from(section.number(name)).unwrap_or(u32::MAX);
    let min = number("iodepth_batch_complete_min").clamp(1, depth);
    let max = number("iodepth_batch_complete_max").max(min);
    let low = number("iodepth_low");
    Completions {
        min,
        max: if is_default(max) { 0 } else { max },
        refill_at: (low > 0 && low < depth).then_some(low),
    }
}

fn bound(section: &Section) -> Bound {
    let (runtime, ramp) = (section.time("runtime"), section.time("ramp_time"));
    if section.flag("time_based") {
        return Bound::Time { ramp, run: runtime };
    }
    let time = match (runtime, ramp) {
        (Nanos(0), Nanos(0)) => None,
        (Nanos(0), ramp) => Some(TimeLimit { ramp, run: WITHOUT_END }),
        (run, ramp) => Some(TimeLimit { ramp, run }),
    };
    let (block, sizes) = section.block_sizes();
    let (pass, loops) = (section.pass(), section.number("loops").max(1));
    // The last operation of io_size is whole.
    let bytes = match (section.number("io_size"), section.number("size")) {
        (0, size) if size > section.all_regions() || section.ends_early() => size - size % block,
        (0, _) => pass,
        (bytes, _) => bytes,
    };
    let bytes = bytes.saturating_mul(loops).div_ceil(block).saturating_mul(block);
    let most = match section.number("number_ios") {
        0 => u64::MAX,
        most => most,
    };
    if sizes.is_empty() {
        let ops = (bytes / block).min(most);
        if ops == pass / block && time.is_none() && !section.reopens() {
            return Bound::Once;
        }
        return Bound::Amount(WorkLimit { ops, time, ..WorkLimit::UNLIMITED });
    }
    Bound::Amount(WorkLimit { ops: most, bytes: Bytes(bytes), time })
}

fn priority(section: &Section) -> Option<IoPriority> {
    let given = (section.text("prio"), section.text("prioclass"));
    let level = u8::try_from(section.number("prio")).unwrap_or(0);
    match given {
        ("", "" | "0") => None,
        (_, "1") => Some(IoPriority::RealTime(level)),
        (_, "3") => Some(IoPriority::Idle),
        _ => Some(IoPriority::BestEffort(level)),
    }
}
