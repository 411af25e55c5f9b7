//! The steps around the phases: how long each took, what its program used, and what the machine did
//! meanwhile.

use model::{Evidence, Nanos};

use crate::{evidence::Watch, host::Output};

/// One step around the phases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// Its name in [`model::sample::lifecycle`].
    pub name: &'static str,
    /// How long it took.
    pub elapsed: Nanos,
    /// CPU time of the program that did it; `None` for a system call.
    pub program: Option<ProgramTime>,
    /// What the machine did meanwhile. Its window is longer than `elapsed`: it begins earlier, and
    /// for mkfs it ends when the devices have all that it wrote.
    pub evidence: Option<Evidence>,
}

/// CPU time of a program (wait4(2)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProgramTime {
    /// In user mode.
    pub user: Nanos,
    /// In the kernel.
    pub system: Nanos,
}

/// A step that is going on, with somebody watching.
#[derive(Debug)]
pub(super) struct Running {
    name: &'static str,
    watch: Watch,
}

impl Running {
    pub(super) fn begin(name: &'static str, watch: Watch) -> Self {
        Self { name, watch }
    }

    /// Ends a step that was a system call.
    pub(super) fn called(self, elapsed: Nanos) -> Step {
        Step { name: self.name, elapsed, program: None, evidence: Some(self.watch.end()) }
    }

    /// Ends a step that was a program.
    pub(super) fn ran(self, output: &Output) -> Step {
        Step { program: output.cpu, ..self.called(output.elapsed) }
    }
}
