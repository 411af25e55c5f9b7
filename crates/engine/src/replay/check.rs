//! Refuses replays that contradict themselves, before anything is touched.

use model::{
    Bytes, Nanos,
    phase::{Load, Replay, Stonewall, Until, WorkerKind},
};

use super::Program;
use crate::{Context, EngineError};

/// Makes sure that the replay can be run, whatever its load file holds.
pub(super) fn check(replay: &Replay, context: &Context<'_>) -> Result<(), EngineError> {
    if replay.workers.count == 0 {
        return refuse("it has no clients", "use at least one");
    }
    if replay.workers.kind == WorkerKind::Process && context.worker_command.is_empty() {
        return refuse("it wants processes and has no command for them", "use threads");
    }
    if replay.workers.stonewall != Stonewall::Off {
        return refuse(
            "its clients end by the first of them",
            "let them end by time, or each at the end of the load file",
        );
    }
    match replay.until {
        Until::Replayed(0) => return refuse("it is never replayed", "replay it at least once"),
        Until::Time { run: Nanos(0), .. } => {
            return refuse("nothing of it counts", "give a time for what counts");
        }
        Until::Replayed(_) | Until::Time { .. } => {}
    }
    if replay.rate == Some(Bytes(0)) {
        return refuse("its rate is zero", "give the bytes a second of each client, or no rate");
    }
    if replay.rate.is_some() && replay.paced {
        return refuse(
            "its clients have a rate, and begin at the times of the load file",
            "leave one of both out",
        );
    }
    if matches!(replay.load, Load::Office { iterations: 0, .. }) {
        return refuse("its load is empty", "use at least one iteration");
    }
    Ok(())
}

/// The same with what its load file holds.
pub(super) fn check_program(replay: &Replay, program: &Program) -> Result<(), EngineError> {
    if program.ops().is_empty() {
        return refuse("its load file has no operations", "use another load file");
    }
    if replay.paced && !program.stamped() {
        return refuse(
            "its load file has no times at which operations begin",
            "use one whose lines begin with seconds, or leave the pace out",
        );
    }
    Ok(())
}

fn refuse(problem: &'static str, cure: &'static str) -> Result<(), EngineError> {
    Err(EngineError::Replay { problem, cure })
}
