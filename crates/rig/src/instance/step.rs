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
    /// CPU time of the program that did it, or of all of them; `None` for system calls.
    pub program: Option<ProgramTime>,
    /// What the machine did meanwhile. Its window is longer than `elapsed`: it begins earlier, and
    /// for mkfs and setup it ends when the devices have all that was written; for setup it covers
    /// the mounts between the parts as well.
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

/// What the parts of a step took together.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) elapsed: Nanos,
    /// CPU time of the programs among them; `None` where there was none, or nobody told.
    pub(super) program: Option<ProgramTime>,
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

    /// Ends a step that was several things.
    pub(super) fn spent(self, spent: Spent) -> Step {
        Step { program: spent.program, ..self.called(spent.elapsed) }
    }

    /// Ends a step that was a program.
    pub(super) fn ran(self, output: &Output) -> Step {
        Step { program: output.cpu, ..self.called(output.elapsed) }
    }
}
