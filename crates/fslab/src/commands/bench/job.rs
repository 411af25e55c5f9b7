//! Description of a job in one line, printed before the measurement:
//! `io_uring depth=32 block=4KiB direct random read, 1 worker, 10 s`.

use model::{
    Nanos, Phase, WorkloadParameters,
    phase::{
        AccessPattern, Arrivals, Bound, Direction, EngineProperties, IoEngineKind, Load, Pace,
        Rate, Replay, Role, Set, Stream, SyncCall, SyncInterval, Tree, Until, Work, WorkLimit,
    },
};

/// Maximum number of jobs that are printed, because a sweep can have many jobs.
const JOBS: usize = 4;

/// Lines of the distinct jobs of a bench, one line per job.
pub(super) fn lines<'a>(points: impl Iterator<Item = &'a WorkloadParameters>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in points.map(line) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let others = lines.len().saturating_sub(JOBS);
    lines.truncate(JOBS);
    if others > 0 {
        lines.push(format!("and {others} more"));
    }
    lines.join("\n")
}

/// Job with these parameters.
fn line(point: &WorkloadParameters) -> String {
    let phases = suites::find(&point.suite).map(|suite| (suite.phases)(point, 0));
    let phases: Vec<Phase> =
        phases.unwrap_or_default().into_iter().filter(|p| p.role == Role::Measure).collect();
    match &phases[..] {
        [] => point.suite.clone(),
        [phase] => single(phase),
        phases => several(&point.suite, phases),
    }
}

/// Job of one measured phase.
fn single(phase: &Phase) -> String {
    let parts = match &phase.work {
        Work::Stream(stream) => of_stream(stream),
        Work::Tree(tree) => of_tree(tree),
        Work::Mix(mix) => vec![
            format!("mix of {} on {}", counted(mix.ops, "operation"), files(&mix.set)),
            counted(mix.workers.count.into(), "worker"),
        ],
        Work::Replay(replay) => of_replay(replay),
        Work::Command(command) => command.run.iter().map(model::words::join).collect(),
        Work::Sqlite(sqlite) => vec![
            match sqlite.time {
                Some(limit) => format!("SQLite transactions for {}", limit.run),
                None => counted(sqlite.updates, "SQLite transaction"),
            },
            format!("journal {}", sqlite.journal.name()),
            format!("synchronous {}", sqlite.synchronous.name()),
            counted(sqlite.rows, "row"),
            counted(sqlite.workers.into(), "worker"),
        ],
        Work::Mail(mail) => vec![
            match mail.time {
                Some(limit) => format!("deliveries to a {} for {}", mail.format.name(), limit.run),
                None => {
                    format!("{} to a {}", counted(mail.messages, "message"), mail.format.name())
                }
            },
            counted(mail.deliverers.into(), "deliverer"),
            counted(mail.readers.into(), "reader"),
        ],
        Work::Trace(replay) => vec![
            format!("replay of {}", replay.trace),
            format!("timing {}", replay.timing.name()),
            format!("order {}", replay.order.name()),
        ],
        Work::Maintenance(maintenance) => {
            vec![format!("maintenance {}", maintenance.action.name())]
        }
        Work::Coherence(coherence) => vec![
            counted(coherence.changes, "change"),
            phase.name.clone(),
            counted(coherence.workers.count.into(), "worker"),
        ],
        Work::Layout(_) | Work::Task(_) | Work::Remove { .. } => vec![phase.name.clone()],
    };
    parts.join(", ")
}

/// Job of several measured phases: their names, and the settings that all phases have in common.
fn several(suite: &str, phases: &[Phase]) -> String {
    let mut names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
    let others = names.len().saturating_sub(6);
    names.truncate(6);
    let others = if others > 0 { format!(" and {others} more") } else { String::new() };
    let common = |part: &dyn Fn(&Stream) -> String| {
        let mut parts = phases.iter().map(|phase| phase.work.stream().map(part));
        let first = parts.next().flatten()?;
        parts.all(|part| part.as_ref() == Some(&first)).then_some(first)
    };
    let block = common(&block);
    let cache = common(&|stream| caching(stream).to_owned());
    let blocks: Vec<String> = block.into_iter().chain(cache).filter(|it| !it.is_empty()).collect();
    let mut parts = Vec::new();
    parts.extend((!blocks.is_empty()).then(|| blocks.join(" ")));
    let workers: Vec<u32> = phases.iter().map(|phase| phase.work.workers()).collect();
    let same = workers.iter().all(|count| *count == workers[0]) && workers[0] != u32::MAX;
    parts.extend(same.then(|| counted(workers[0].into(), "worker")));
    parts.extend(common(&extent));
    let names = format!("{suite}: {}{others}", names.join(", "));
    if parts.is_empty() { names } else { format!("{names}; {}", parts.join(", ")) }
}

fn of_stream(stream: &Stream) -> Vec<String> {
    let words = [
        engine(stream),
        block(stream),
        caching(stream).to_owned(),
        flags(stream).to_owned(),
        pattern(stream.access_pattern).to_owned(),
        direction(stream.direction),
    ];
    let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let mut parts = vec![words.join(" ")];
    parts.extend(sync(stream));
    parts.extend(pace(stream.pace));
    parts.push(counted(stream.workers.count.into(), "worker"));
    parts.push(extent(stream));
    parts
}

fn engine(stream: &Stream) -> String {
    let EngineProperties { calls: [read, write], queue_depth, .. } = stream.io_engine.properties();
    let calls = match stream.direction {
        _ if read == write => read.to_owned(),
        Direction::Read => read.to_owned(),
        Direction::Write => write.to_owned(),
        Direction::Alternate
        | Direction::FirstRead(_)
        | Direction::Mixed(_)
        | Direction::Update(_) => format!("{read}/{write}"),
    };
    match queue_depth {
        Some(depth) => format!("{calls} depth={depth}"),
        None => calls,
    }
}

fn block(stream: &Stream) -> String {
    let blocks = || stream.block_sizes.iter().map(|length| u64::from(length.blocks));
    let size = |blocks: u64| model::Bytes(stream.block_size.0.saturating_mul(blocks));
    match (blocks().min(), blocks().max()) {
        (Some(least), Some(most)) if least < most => {
            format!("block={} to {}", size(least), size(most))
        }
        (Some(blocks), _) => format!("block={}", size(blocks)),
        (None, _) => format!("block={}", stream.block_size),
    }
}

fn caching(stream: &Stream) -> &'static str {
    match (stream.open.direct, stream.io_engine) {
        _ if !stream.moves() => "",
        (true, _) => "direct",
        (false, IoEngineKind::Mmap(_)) => "",
        (false, _) => "buffered",
    }
}

fn flags(stream: &Stream) -> &'static str {
    match (stream.open.sync, stream.open.dsync) {
        (true, _) => "O_SYNC",
        (false, true) => "O_DSYNC",
        (false, false) => "",
    }
}

fn pattern(pattern: AccessPattern) -> &'static str {
    match pattern {
        AccessPattern::Sequential | AccessPattern::SequentialPerDirection => "sequential",
        AccessPattern::Backward => "backward",
        AccessPattern::SameBlock => "same-block",
        AccessPattern::Stride { .. } => "strided",
        AccessPattern::IozonePermutation | AccessPattern::Permutation => "permuted",
        AccessPattern::Random => "random",
        AccessPattern::Zipf { .. } => "zipf",
        AccessPattern::Pareto { .. } => "pareto",
        AccessPattern::Hotspot { .. } => "hotspot",
        AccessPattern::Normal { .. } => "normal",
        AccessPattern::Zones => "zoned",
        AccessPattern::Skip { .. } => "skipping",
        AccessPattern::Runs { .. } => "runs",
        AccessPattern::Append => "appending",
        AccessPattern::Trace => "trace",
        AccessPattern::Tickets => "ticket",
    }
}

fn direction(direction: Direction) -> String {
    let percent = |fraction: f64| format!("{:.0} %", fraction * 100.0);
    match direction {
        Direction::Read => "read".into(),
        Direction::Write => "write".into(),
        Direction::Alternate | Direction::FirstRead(_) => "read and write".into(),
        Direction::Mixed(reads) => format!("read and write ({} reads)", percent(reads)),
        Direction::Update(writes) => format!("read, then write {} of the blocks", percent(writes)),
    }
}

fn sync(stream: &Stream) -> Option<String> {
    let every = stream.sync_every?;
    let call = match every.call {
        SyncCall::Fsync => "fsync",
        SyncCall::Fdatasync => "fdatasync",
        SyncCall::Range(_) => "sync_file_range",
        SyncCall::Syncfs => "syncfs",
    };
    Some(match every.after {
        SyncInterval::Ops(1) => format!("{call} after each write"),
        SyncInterval::Ops(writes) => format!("{call} every {writes} writes"),
        SyncInterval::Bytes(bytes) => format!("{call} every {bytes}"),
    })
}

fn pace(pace: Pace) -> Option<String> {
    let rate = |rate: Rate| match rate {
        Rate::Ops(ops) => format!("{ops} ops/s"),
        Rate::Bytes(bytes) => format!("{bytes}/s"),
    };
    let kind = |arrivals| match arrivals {
        Arrivals::Constant => "constant",
        Arrivals::Poisson => "Poisson",
    };
    match pace {
        Pace::Free => None,
        Pace::Think { pause, .. } => Some(format!("think time {pause}")),
        Pace::Limit(limit) => Some(format!("at most {}", rate(limit))),
        Pace::Open { rate: open, arrivals } => {
            Some(format!("{} ({} arrivals)", rate(open), kind(arrivals)))
        }
        Pace::OpenByDirection { reads, writes, arrivals } => {
            let (reads, writes, kind) = (rate(reads), rate(writes), kind(arrivals));
            Some(format!("reads {reads}, writes {writes} ({kind} arrivals)"))
        }
    }
}

fn extent(stream: &Stream) -> String {
    match stream.bound {
        Bound::Once => format!("{} per worker", stream.size),
        Bound::Ops(ops) => format!("{} per worker", counted(ops, "operation")),
        Bound::Together(ops) => counted(ops, "operation"),
        Bound::Amount(amount) => amount_of(stream, amount),
        Bound::Deadline(time) => {
            format!("{} per worker, stonewall after {}", stream.size, timed(Nanos(0), time))
        }
        Bound::Time { ramp, run } => timed(ramp, run),
    }
}

fn amount_of(stream: &Stream, amount: WorkLimit) -> String {
    let mut parts = Vec::new();
    match amount {
        WorkLimit { bytes: model::Bytes(u64::MAX), ops: u64::MAX, .. } => {
            parts.push(format!("{} per worker", stream.region_size()));
        }
        WorkLimit { ops, bytes: model::Bytes(u64::MAX), .. } => {
            parts.push(format!("{} per worker", counted(ops, "operation")));
        }
        WorkLimit { bytes, .. } => parts.push(format!("{bytes} per worker")),
    }
    parts.extend(amount.time.map(|limit| format!("at most {}", timed(limit.ramp, limit.run))));
    parts.join(", ")
}

fn timed(ramp: Nanos, run: Nanos) -> String {
    let time = |time: Nanos| match time {
        Nanos(..1_000_000_000) => time.to_string(),
        time => report::duration(time).replace(".0 s", " s").replace(" min 00 s", " min"),
    };
    match ramp {
        Nanos(0) => time(run),
        ramp => format!("{} + {} ramp", time(run), time(ramp)),
    }
}

fn of_tree(tree: &Tree) -> Vec<String> {
    let steps: Vec<String> = tree.steps.iter().map(step).collect();
    vec![
        format!("{} of {}", steps.join(" + "), files(&tree.set)),
        counted(tree.workers.count.into(), "worker"),
    ]
}

/// Name of a step as in a plan.
fn step(step: &model::phase::TreeStep) -> String {
    let name = serde_json::to_value(step).ok();
    name.as_ref().and_then(|name| name.as_str()).unwrap_or_default().to_owned()
}

fn files(set: &Set) -> String {
    let size = match set.sizes.are_empty() {
        true => String::new(),
        false => format!(" of {}", set.sizes.mean()),
    };
    format!("{}{size}", counted(set.files, "file"))
}

fn of_replay(replay: &Replay) -> Vec<String> {
    let loadfile = match &replay.loadfile {
        Load::File { path: Some(path) } => format!("loadfile {path}"),
        Load::File { path: None } => "the dbench loadfile".into(),
        Load::Office { .. } => "the built-in loadfile".into(),
    };
    let extent = match replay.until {
        Until::Replayed(1) => "once".into(),
        Until::Replayed(times) => format!("{times} times"),
        Until::Time { ramp, run } => timed(ramp, run),
    };
    let clients = counted(replay.workers.count.into(), "client");
    vec![format!("replay of {loadfile}"), clients, extent]
}

fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;

    use super::*;

    #[test]
    fn presets_are_described_in_one_line() {
        let names = [
            "randread-4k-qd32",
            "oltp-8k",
            "oltp-log",
            "open-loop-4k-poisson",
            "mail-spool",
            "mmap-random-read",
            "video-stream",
            "maildir-delivery",
            "metadata-mix",
            "dbench-5",
            "bonnie-files",
        ];
        let lines: Vec<String> = names
            .iter()
            .map(|name| {
                let preset = suites::preset(name).expect("a preset");
                let points = suites::refine(preset.workload.clone()).expect("valid parameters");
                format!("{name}: {}", super::lines(points.iter()))
            })
            .collect();
        expect_file!["job/presets.txt"].assert_eq(&lines.join("\n"));
    }

    #[test]
    fn every_preset_and_suite_has_a_line() {
        let presets = suites::presets().iter().map(|preset| preset.workload.clone());
        let defaults = suites::ALL.iter().map(|suite| suite.spec.defaults());
        for point in presets.chain(defaults) {
            for point in suites::refine(point).expect("valid parameters") {
                let line = line(&point);
                assert!(line.len() > 3 && !line.contains('\n') && !line.contains("  "), "{line}");
            }
        }
    }

    #[test]
    fn jobs_of_a_long_sweep_are_counted() {
        let points: Vec<WorkloadParameters> = (1..=6)
            .map(|workers| {
                let preset = suites::preset("randread-4k").expect("a preset");
                let mut point = preset.workload.clone();
                point.parameters.insert("workers".into(), model::Value::Count(workers));
                point
            })
            .collect();
        let text = lines(points.iter().chain(&points));
        assert_eq!(text.lines().count(), JOBS + 1, "{text}");
        assert!(text.ends_with("\nand 2 more"), "{text}");
    }
}
