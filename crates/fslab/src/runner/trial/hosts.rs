//! Phases of a trial on one of several hosts: the same steps as on one host, each after the other
//! hosts have completed the previous one.

use engine::Context;
use model::{Phase, PhaseResult, Warning, phase::Role};
use rig::MountedFilesystem;

use super::{
    Stop, TrialData,
    phases::{Workload, directory_of, ready, run_work, time_of},
    verdict, writable,
};
use crate::runner::{
    events::Event,
    hosts::{Canceled, HostGate, PhaseData},
};

impl From<Canceled> for Stop {
    fn from(_: Canceled) -> Self {
        Self::Interrupted
    }
}

impl Workload<'_> {
    /// Runs a phase on this host. `takes_part` is false if the host has no workers in it.
    pub(super) fn on_host(
        &self,
        hosts: &dyn HostGate,
        (phase, takes_part, generator): (&Phase, bool, Option<f64>),
        mounted: &mut MountedFilesystem,
        other_io_seen: &mut bool,
        data: &mut TrialData,
    ) -> Result<(), Stop> {
        (self.observer.notify)(&Event::PhaseStarted { name: &phase.name, time: time_of(phase) });
        hosts.fence(&phase.name)?;
        let mut warnings = Vec::new();
        if takes_part {
            warnings.extend(ready(phase, self.always.clock, mounted, other_io_seen)?);
        }
        let directory = directory_of(phase, mounted.directory())?;
        let context = Context {
            directory: &directory,
            progress: self.observer.progress,
            interrupt: self.observer.interrupt,
            state: None,
            worker_command: self.worker_command,
            start: None,
        };
        let failed = |why: String| Stop::Failed(format!("{}: {why}", phase.name));
        if phase.role == Role::Prepare {
            if takes_part {
                let listener = mounted.listen();
                let result = run_work(phase, &context, None).map_err(fails);
                verdict::check_log(&listener.end()).map_err(failed)?;
                result?;
            }
            return writable(&phase.name, mounted.directory());
        }
        hosts.fence(&format!("{}, all prepared", phase.name))?;
        let (monitor, before) = (mounted.monitor(), hosts.network());
        let mut result = Ok(PhaseResult::default());
        let waited = hosts.measure(phase, takes_part, &mut |start| {
            result = run_work(phase, &Context { start, ..context }, None).map_err(fails);
            result.is_ok()
        });
        let network = hosts.network().zip(before).map(|(after, before)| after.since(before));
        let activity = monitor.end();
        verdict::check_log(&activity.log).map_err(failed)?;
        let result = match (result, waited) {
            (Err(Stop::Failed(why)), _) => return Err(Stop::Failed(why)),
            (_, Err(canceled)) => return Err(canceled.into()),
            (result, Ok(())) => result?,
        };
        data.actions.extend(super::phases::events(phase, &result));
        hosts.send(phase, &result, PhaseData { activity, network, generator, warnings })?;
        writable(&phase.name, mounted.directory())
    }
}

/// An unsupported phase fails the trial, because the other hosts would wait for this one.
fn fails(stop: Stop) -> Stop {
    match stop {
        Stop::Unsupported(warning) => Stop::Failed(described(&warning)),
        Stop::Interrupted | Stop::Failed(_) => stop,
    }
}

fn described(warning: &Warning) -> String {
    format!("{}; {}", warning.message(), warning.hint())
}
