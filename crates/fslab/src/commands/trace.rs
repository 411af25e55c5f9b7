//! `fslab trace`: summarizes, checks, prints, anonymizes, converts, or cuts a recording.

use std::{fs::File, io::Read, path::Path};

use anyhow::{Context, anyhow};
use model::{Bytes, Metric, Nanos, phase::TraceOrder, units::plural};
use serde_json::json;
use trace::{Recording, TraceError};

use super::record;
use crate::{
    cli::{Trace, TraceCommand},
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(arguments: &Trace) -> Result<Exit, Failure> {
    match &arguments.command {
        TraceCommand::Show { file } => show(file),
        TraceCommand::Check { file } => check(file),
        TraceCommand::Dump { file } => dump(file),
        TraceCommand::Anonymize { file, output } => anonymize(file, output),
        TraceCommand::Iolog { file, output } => iolog(file, output),
        TraceCommand::Slice { file, from, to, output } => slice(file, (*from, *to), output),
    }
}

fn read(path: &Path) -> Result<Recording, Failure> {
    trace::read(path).map_err(|error| {
        // Other errors do not name the file.
        let named = matches!(error, TraceError::File { .. });
        let error = anyhow::Error::from(error);
        Failure::usage(if named { error } else { error.context(path.display().to_string()) })
    })
}

fn show(path: &Path) -> Result<Exit, Failure> {
    let recording = read(path)?;
    let (_, digest) = trace::digest(path)?;
    let summary = trace::summary(&recording);
    let fact = |key: &str| recording.facts.get(key).map_or("unknown", String::as_str).to_owned();
    let bytes = |value: u64| report::bytes(Bytes(value));
    let elapsed = fact("elapsed_ns").parse().map_or("unknown".into(), time);
    let mut lines = vec![
        format!("program     {}", fact("program")),
        format!("exit status {}", fact("status")),
        format!("root        {}", fact("root")),
        format!("recorded    {elapsed} on Linux {} by {}", fact("kernel"), fact("recorder")),
        format!("sha256      {digest}"),
        format!(
            "files       {} before the program started, {}",
            summary.files.saturating_sub(1),
            bytes(summary.file_bytes)
        ),
        format!(
            "tasks       {}, replayed by {}",
            summary.tasks,
            plural(summary.workers as u64, "worker")
        ),
        format!("moved       {} read, {} written", bytes(summary.read), bytes(summary.written)),
        format!(
            "time        {} in calls, {} of CPU time between them",
            time(summary.in_calls),
            time(summary.think)
        ),
        format!("file calls  {}", share(&summary)),
    ];
    lines.extend(baseline(&recording));
    lines.extend([
        String::new(),
        format!("{:16} {:>10} {:>8} {:>10} {:>10}", "call", "number", "failed", "bytes", "time"),
    ]);
    for (call, total) in &summary.calls {
        lines.push(format!(
            "{:16} {:>10} {:>8} {:>10} {:>10}",
            call.name(),
            total.count,
            total.failed,
            bytes(total.bytes),
            time(total.time)
        ));
    }
    lines.extend(warnings(&recording).iter().map(|text| format!("warning: {text}")));
    output::lines(&lines)?;
    Ok(Exit::Success)
}

/// Median of the runs without the recorder, if there were any.
fn baseline(recording: &Recording) -> Option<String> {
    let fact = |key: &str| recording.facts.get(key)?.parse::<u64>().ok();
    let elapsed = fact("baseline_elapsed_ns")?;
    let cpu = fact("baseline_user_ns")?.saturating_add(fact("baseline_system_ns")?);
    Some(format!(
        "baseline    {} elapsed, {} of CPU time (runs without the recorder)",
        time(elapsed),
        time(cpu)
    ))
}

/// Properties of a recording that make its replay differ from the program.
pub(super) fn warnings(recording: &Recording) -> Vec<String> {
    let number = |key: &str| recording.facts.get(key).and_then(|text| text.parse::<u64>().ok());
    let mut warnings = Vec::new();
    if let Some(count) = number("processes_killed") {
        warnings.push(format!(
            "the recording was interrupted, and {count} processes were killed; it ends there"
        ));
    }
    if let Some(count) = number("rings_denied") {
        warnings.push(format!(
            "io_uring or Linux AIO was denied {count} times; the program used other calls"
        ));
    }
    if let Some(mapped) = number("mapped_writable_bytes") {
        warnings.push(format!(
            "{} were mapped for writing; writes to memory are not recorded",
            report::bytes(Bytes(mapped))
        ));
    }
    if let Some(mapped) = number("mapped_bytes") {
        warnings.push(format!(
            "{} were mapped for reading; mappings of more than 128 KiB are not read in a replay",
            report::bytes(Bytes(mapped))
        ));
    }
    for (key, count) in &recording.facts {
        if let Some(name) = key.strip_prefix("not_recorded.") {
            warnings.push(format!("not recorded: {name} ({count} times)"));
        }
    }
    warnings
}

fn check(path: &Path) -> Result<Exit, Failure> {
    let recording = read(path)?;
    let program = trace::compile(&recording, TraceOrder::Resources).map_err(Failure::usage)?;
    let count: usize = program.workers.iter().map(Vec::len).sum();
    let mut line = format!(
        "{}: {}, {}, {}",
        path.display(),
        plural(count as u64, "operation"),
        plural(program.workers.len() as u64, "worker"),
        plural(program.waits.len() as u64, "wait")
    );
    if program.left_out > 0 {
        line += &format!(
            "; not replayed, because they leave the root or change attributes of the system: {}",
            program.left_out
        );
    }
    output::lines(&[line])?;
    Ok(Exit::Success)
}

fn dump(path: &Path) -> Result<Exit, Failure> {
    let recording = read(path)?;
    let text = |number: u32| match number {
        trace::NONE => None,
        _ => Some(String::from_utf8_lossy(recording.path(number)).into_owned()),
    };
    let number = |value: u32| (value != trace::NONE).then_some(value);
    for (index, task) in recording.tasks.iter().enumerate() {
        let mut lines = String::new();
        for op in &task.ops {
            let line = json!({
                "task": index + 1,
                "program": task.name,
                "call": op.call.name(),
                "begin_ns": op.begin,
                "length_ns": op.length,
                "think_ns": op.think,
                "result": op.result,
                "fd": number(op.fd),
                "fd2": number(op.fd2),
                "opened": number(op.opened),
                "path": text(op.path),
                "path2": text(op.path2),
                "offset": op.offset,
                "size": op.size,
                "flags": op.flags,
            });
            lines += &line.to_string();
            lines.push('\n');
        }
        output::bytes(lines.as_bytes())?;
    }
    Ok(Exit::Success)
}

fn anonymize(path: &Path, output: &Path) -> Result<Exit, Failure> {
    record::check_new(output)?;
    let recording = read(path)?;
    let mut key = [0; 32];
    let random = File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut key));
    random.context("reading /dev/urandom")?;
    let recording = trace::anonymize(&recording, &key);
    let length = record::keep(&recording, output)?;
    output::message(&record::report("anonymized", &recording, output, length));
    output::message(
        "sizes, times, and the shape of the tree are unchanged; they may identify the program",
    );
    Ok(Exit::Success)
}

fn iolog(path: &Path, output: &Path) -> Result<Exit, Failure> {
    record::check_new(output)?;
    let log = trace::iolog(&read(path)?);
    if log.operations == 0 {
        return Err(Failure::usage(anyhow!(
            "the recording has no reads, writes, and syncs of files"
        )));
    }
    sys::whole::write(output, log.text.as_bytes())
        .with_context(|| format!("writing {}", output.display()))?;
    output::message(&format!("{} in {}", plural(log.operations, "operation"), output.display()));
    if !log.left_out.is_empty() {
        let calls = log.left_out.iter().map(|(name, count)| format!("{count} {name}"));
        output::message(&format!("left out: {}", calls.collect::<Vec<_>>().join(", ")));
    }
    Ok(Exit::Success)
}

fn slice(path: &Path, (from, to): (Nanos, Option<Nanos>), output: &Path) -> Result<Exit, Failure> {
    record::check_new(output)?;
    let recording = read(path)?;
    let part = trace::slice(&recording, from.0, to.map_or(u64::MAX, |to| to.0));
    if part.operations() == 0 {
        let elapsed = recording.facts.get("elapsed_ns").and_then(|text| text.parse().ok());
        let elapsed = elapsed.map_or("unknown".into(), time);
        return Err(Failure::usage(anyhow!(
            "no operation begins in this part of the recording, whose duration is {elapsed}; \
             change --from or --to"
        )));
    }
    let length = record::keep(&part, output)?;
    output::message(&record::report("kept", &part, output, length));
    Ok(Exit::Success)
}

/// Share of the time of the program that its file calls take.
pub(super) fn share(summary: &trace::Summary) -> String {
    let text = |share: f64| format!("{:.0} % of the time of the program", share * 100.0);
    let text = summary.share.map_or("unknown".to_owned(), text);
    match summary.share {
        Some(share) if share < 0.1 => format!("{text}; the filesystem hardly affects it"),
        _ => text,
    }
}

/// Time with three significant digits.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
fn time(nanoseconds: u64) -> String {
    report::quantity(Metric::Elapsed, nanoseconds as f64)
}
