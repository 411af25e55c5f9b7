//! Events for programs: one JSON object for each, in base units.

use model::Nanos;
use serde_json::json;

use crate::conductor::events::{Event, Forecast};

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
        Event::TrialStarted { filesystem, label, twin, repeat } => json!({
            "event": "trial_started", "filesystem": filesystem, "workload": label,
            "twin": twin, "repeat": repeat,
        }),
        Event::PhaseStarted { name, time } => json!({
            "event": "phase_started", "phase": name, "time_ns": time,
        }),
        Event::PhaseEnded { name, metric, value } => json!({
            "event": "phase_ended", "phase": name, "metric": metric.name(),
            "unit": metric.spec().unit.name(), "value": value,
        }),
        Event::TrialEnded { filesystem, label, twin, repeat, elapsed, outcome } => json!({
            "event": "trial_ended", "filesystem": filesystem, "workload": label,
            "twin": twin, "repeat": repeat, "elapsed_ns": elapsed, "outcome": outcome,
        }),
        Event::CellDone { filesystem, label, twin, rule } => json!({
            "event": "cell_done", "filesystem": filesystem, "workload": label,
            "twin": twin, "rule": rule,
        }),
        Event::Forecast(forecast) => self::forecast(forecast),
        Event::RunEnded { tally, elapsed } => json!({
            "event": "run_ended", "done": tally.done, "skipped": tally.skipped,
            "failed": tally.failed, "invalid_trials": tally.invalid, "interrupted": tally.interrupted,
            "pilot": tally.pilot,
            "elapsed_ns": Nanos::from(*elapsed),
        }),
    }
}

fn forecast(forecast: &Forecast) -> serde_json::Value {
    let detectable = forecast
        .detectable
        .as_ref()
        .map(|told| json!({ "median": told.median, "worst": told.worst, "at": told.at }));
    let cells = forecast.cells.iter().map(|(filesystem, label, repeats)| {
        json!({ "filesystem": filesystem, "workload": label, "repeats_expected": repeats })
    });
    json!({
        "event": "forecast", "trials_least": forecast.least,
        "trials_expected": forecast.expected, "trials_most": forecast.most,
        "time_ns": forecast.time, "over_budget": forecast.over_budget,
        "detectable": detectable, "cells": cells.collect::<Vec<_>>(),
    })
}
