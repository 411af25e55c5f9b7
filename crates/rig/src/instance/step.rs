//! Lifecycle steps: duration, CPU time of the program, and system activity.

use model::{Nanos, SystemActivity};

use crate::{
    activity::ActivityMonitor,
    host::{Output, ProgramTime},
};

/// Lifecycle step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Name, one of [`model::sample::lifecycle`].
    pub name: &'static str,
    /// Duration of the programs or of the system call.
    pub elapsed: Nanos,
    /// CPU time of the programs; `None` for a system call, or if it is not available.
    pub program: Option<ProgramTime>,
    /// System activity during the step. The recorded period is longer than `elapsed`: it starts
    /// earlier, and for mkfs and `setup` it ends when the written data is on the devices. For
    /// `setup` it includes the mounts between the stages.
    pub activity: Option<SystemActivity>,
}

/// Total duration and CPU time of the stages of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StepCost {
    pub(super) elapsed: Nanos,
    /// CPU time of the programs; `None` if no program ran, or if it is not available.
    pub(super) program: Option<ProgramTime>,
}

/// Step in progress, with its activity monitor.
#[derive(Debug)]
pub(super) struct RunningStep {
    name: &'static str,
    monitor: ActivityMonitor,
}

impl RunningStep {
    pub(super) fn begin(name: &'static str, monitor: ActivityMonitor) -> Self {
        Self { name, monitor }
    }

    /// Ends a step that was a system call.
    pub(super) fn finish_call(self, elapsed: Nanos) -> Step {
        Step { name: self.name, elapsed, program: None, activity: Some(self.monitor.end()) }
    }

    /// Ends a step that consisted of several stages.
    pub(super) fn finish_stages(self, cost: StepCost) -> Step {
        Step { program: cost.program, ..self.finish_call(cost.elapsed) }
    }

    /// Ends a step that ran a program.
    pub(super) fn finish_program(self, output: &Output) -> Step {
        Step { program: output.cpu, ..self.finish_call(output.elapsed) }
    }
}
