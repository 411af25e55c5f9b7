//! Events for programs: one JSON object for each, in base units.

use model::Nanos;
use serde_json::json;

use crate::conductor::events::Event;

/// An event as one JSON object; its kind is under `event`.
pub(super) fn line(event: &Event<'_>) -> serde_json::Value {
    match event {
        Event::RunStarted { run_file, storage, done } => json!({
            "event": "run_started", "run_file": run_file, "storage": storage, "done": done,
        }),
        Event::Planned { trials } => json!({ "event": "planned", "trials_least": trials }),
        Event::Skipped { filesystem, reason } => json!({
            "event": "skipped", "filesystem": filesystem, "reason": reason,
        }),
        Event::TrialStarted { filesystem, label, repeat } => json!({
            "event": "trial_started", "filesystem": filesystem, "workload": label,
            "repeat": repeat,
        }),
        Event::PhaseStarted { name, time } => json!({
            "event": "phase_started", "phase": name, "time_ns": time,
        }),
        Event::PhaseEnded { name, metric, value } => json!({
            "event": "phase_ended", "phase": name, "metric": metric.name(),
            "unit": metric.spec().unit.name(), "value": value,
        }),
        Event::TrialEnded { filesystem, label, repeat, elapsed, outcome } => json!({
            "event": "trial_ended", "filesystem": filesystem, "workload": label,
            "repeat": repeat, "elapsed_ns": elapsed, "outcome": outcome,
        }),
        Event::CellDone { filesystem, label, rule } => json!({
            "event": "cell_done", "filesystem": filesystem, "workload": label, "rule": rule,
        }),
        Event::RunEnded { tally, elapsed } => json!({
            "event": "run_ended", "done": tally.done, "skipped": tally.skipped,
            "failed": tally.failed, "interrupted": tally.interrupted,
            "elapsed_ns": Nanos::from(*elapsed),
        }),
    }
}
