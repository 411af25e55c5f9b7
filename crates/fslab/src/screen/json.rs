//! Events as JSON: one object per event, in base units.

use model::Nanos;
use serde_json::json;

use crate::runner::events::{Event, Forecast, RunProgress};

/// Event as a JSON object; key `event` is its type.
pub(super) fn line(event: &Event<'_>) -> serde_json::Value {
    match event {
        Event::RunStarted { run_file, storage, done } => json!({
            "event": "run_started", "run_file": run_file, "storage": storage, "done": done,
        }),
        Event::Progress(RunProgress { done, remaining, .. }) => json!({
            "event": "progress", "trials": done, "trials_min": remaining.least.trials,
            "trials_expected": remaining.expected.map(|expected| expected.trials),
            "trials_max": remaining.most.trials, "time_left_min_ns": remaining.least.time,
            "time_left_expected_ns": remaining.expected.map(|expected| expected.time),
            "time_left_max_ns": remaining.most.time,
        }),
        Event::Skipped { filesystem, reason } => json!({
            "event": "skipped", "filesystem": filesystem, "reason": reason,
        }),
        Event::TrialStarted { filesystem, label, aa_duplicate, repetition } => json!({
            "event": "trial_started", "filesystem": filesystem, "workload": label,
            "aa_duplicate": aa_duplicate, "repetition": repetition,
        }),
        Event::PhaseStarted { name, time } => json!({
            "event": "phase_started", "phase": name, "time_ns": time,
        }),
        Event::PhaseEnded { name, metric, value } => json!({
            "event": "phase_ended", "phase": name, "metric": metric.name(),
            "unit": metric.spec().unit.name(), "value": value,
        }),
        Event::TrialEnded { filesystem, label, aa_duplicate, repetition, elapsed, outcome } => {
            json!({
                "event": "trial_ended", "filesystem": filesystem, "workload": label,
                "aa_duplicate": aa_duplicate, "repetition": repetition, "elapsed_ns": elapsed, "outcome": outcome,
            })
        }
        Event::CellDone { filesystem, label, aa_duplicate, reason } => json!({
            "event": "cell_done", "filesystem": filesystem, "workload": label,
            "aa_duplicate": aa_duplicate, "reason": reason,
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
        .map(|detectable| json!({ "median": detectable.median, "worst": detectable.worst, "at": detectable.at }));
    let cells = forecast.cells.iter().map(|(filesystem, label, repetitions)| {
        json!({ "filesystem": filesystem, "workload": label, "repetitions_expected": repetitions })
    });
    json!({
        "event": "forecast", "trials_min": forecast.least,
        "trials_expected": forecast.expected, "trials_max": forecast.most,
        "time_ns": forecast.time, "over_time_limit": forecast.over_time_limit,
        "detectable": detectable, "cells": cells.collect::<Vec<_>>(),
    })
}
