//! Lifecycle steps: duration, CPU time of the program, and system activity.

use model::{Nanos, SystemActivity};

use crate::{
    activity::ActivityMonitor,
    host::{Output, ProgramTime},
};

/// Lifecycle step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Name in [`model::sample::lifecycle`].
    pub name: &'static str,
    /// Duration.
    pub elapsed: Nanos,
    /// CPU time of the program or programs; `None` for system calls.
    pub program: Option<ProgramTime>,
    /// System activity. Its window is longer than `elapsed`: it starts earlier, and for mkfs and
    /// `setup` it ends when the data is on the devices. For `setup` it includes the mounts between
    /// the parts.
    pub activity: Option<SystemActivity>,
}

/// Total cost of the parts of a step.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StepCost {
    pub(super) elapsed: Nanos,
    /// CPU time of the programs; `None` if there were none, or it is not available.
    pub(super) program: Option<ProgramTime>,
}

/// A step in progress, with its activity monitor.
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

    /// Ends a step that consisted of several parts.
    pub(super) fn finish_stages(self, cost: StepCost) -> Step {
        Step { program: cost.program, ..self.finish_call(cost.elapsed) }
    }

    /// Ends a step that ran a program.
    pub(super) fn finish_program(self, output: &Output) -> Step {
        Step { program: output.cpu, ..self.finish_call(output.elapsed) }
    }
}
