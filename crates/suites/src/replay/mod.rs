//! Suite `replay`: the recorded file operations of a program (`fslab record`).
//!
//! A trial has two phases: the files that existed before the recording are created, and the
//! operations are replayed on cold caches.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Phase, SuiteSpec, WorkloadParameters,
    phase::{Cache, Role, Timed, TraceOrder, TraceReplay, TraceTiming, Work},
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, parameter};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

const SPEC: SuiteSpec = SuiteSpec {
    name: "replay",
    title: "Recorded file operations of any program.",
    source: "fslab; the operations are those of the recorded program",
    notes: include_str!("notes.md"),
    clients: None,
    parameters: PARAMETERS,
};

const TRACE: Kind = Kind::Text { takes: "the path of a recording", read: read_trace };
const DIGEST: Kind = Kind::Text { takes: "64 hexadecimal digits", read: read_digest };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("trace", TRACE, "", "Recording, written by `fslab record`."),
    parameter("sha256", DIGEST, "", "SHA-256 of the recording; by default that of the file when the plan is read. Another file is rejected."),
    parameter("timing", Kind::Word(&["asap", "think", "recorded"]), "asap", "Start of operations: as soon as their order allows, after the CPU time that the program used, or at the recorded times."),
    parameter("order", Kind::Word(&["resources", "recorded", "tasks"]), "resources", "Order of operations of different tasks: by the files, names, and descriptors that they use, as recorded, or none."),
    parameter("unexpected_max", Kind::Fraction, "0.01", "Maximum share of operations with another result than recorded. If there are more, the trial fails."),
    parameter("cache", Kind::Word(&["cold", "unchanged"]), "cold", "Cache state before the operations."),
    parameter("footprint", Kind::Size { min: Bytes(0), scales: false }, "0", "Space that the files use; 0: unknown."),
];

fn read_trace(text: &str) -> Result<String, ValueError> {
    Ok(text.trim().to_owned())
}

fn read_digest(text: &str) -> Result<String, ValueError> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.len() {
        0 => Ok(text),
        64 if digits => Ok(text),
        _ => Err(ValueError::new(format!("`{text}` is not a SHA-256"))
            .hint("use the 64 hexadecimal digits that sha256sum prints, or remove it")),
    }
}

fn refine(point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    Ok(vec![point])
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let timing = TraceTiming::ALL.into_iter().find(|it| it.name() == point.word("timing"));
    let order = TraceOrder::ALL.into_iter().find(|it| it.name() == point.word("order"));
    let work = |prepares| {
        Work::Trace(TraceReplay {
            trace: point.text("trace").to_owned(),
            sha256: point.text("sha256").to_owned(),
            order: order.unwrap_or(TraceOrder::Resources),
            timing: timing.unwrap_or(TraceTiming::Asap),
            unexpected_max: point.fraction("unexpected_max"),
            seed,
            prepares,
        })
    };
    let phase = |name: &str, role, cache, work| Phase {
        name: name.to_owned(),
        group: "replaying".into(),
        role,
        cache,
        work,
        timed: Timed::default(),
        directory: None,
        together: None,
    };
    let cache = match point.word("cache") {
        "cold" => Cache::Cold,
        _ => Cache::Unchanged,
    };
    vec![
        phase("files", Role::Prepare, Cache::Unchanged, work(true)),
        phase("replay", Role::Measure, cache, work(false)),
    ]
}

fn footprint(point: &WorkloadParameters) -> Bytes {
    point.size("footprint")
}
