//! Rejects invalid replays before anything is changed.

use model::{
    Bytes, Nanos,
    phase::{Load, Replay, Stonewall, Until, WorkerKind},
};

use super::Program;
use crate::{Context, EngineError};

/// Checks the parameters of a replay, without its loadfile.
pub(super) fn check(replay: &Replay, context: &Context<'_>) -> Result<(), EngineError> {
    if replay.workers.count == 0 {
        return reject("clients is 0", "set it to at least 1");
    }
    if replay.workers.kind == WorkerKind::Process && context.worker_command.is_empty() {
        return reject("worker processes are not available", "use worker_type thread");
    }
    if replay.workers.stonewall != Stonewall::Off {
        return reject("replays do not support stonewall", "set stonewall to off");
    }
    match replay.until {
        Until::Replayed(0) => return reject("replay_count is 0", "use at least 1"),
        Until::Time { run: Nanos(0), .. } => {
            return reject("runtime is 0", "use a longer runtime");
        }
        Until::Replayed(_) | Until::Time { .. } => {}
    }
    if replay.rate == Some(Bytes(0)) {
        return reject("rate is 0", "use bytes per second and client, or no rate");
    }
    if replay.rate.is_some() && replay.use_timestamps {
        return reject("rate and use_timestamps are both set", "use only one of them");
    }
    if matches!(replay.loadfile, Load::Office { iterations: 0, .. }) {
        return reject("the built-in loadfile has no iterations", "use at least 1");
    }
    Ok(())
}

/// Checks the parameters of a replay with its loadfile.
pub(super) fn check_program(replay: &Replay, program: &Program) -> Result<(), EngineError> {
    if program.ops().is_empty() {
        return reject("the loadfile has no operations", "use another loadfile");
    }
    if replay.use_timestamps && !program.timestamped() {
        return reject(
            "the loadfile has no timestamps",
            "use a loadfile whose lines begin with seconds, or set use_timestamps to false",
        );
    }
    Ok(())
}

fn reject(problem: &'static str, hint: &'static str) -> Result<(), EngineError> {
    Err(EngineError::Replay { problem, hint })
}
