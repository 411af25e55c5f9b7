//! Trials that come from guests.
//!
//! A run conducts them as it does trials on this machine. A guest is booted when the next trial
//! wants another kernel, when the plan wants a boot before each, and when the last one has died:
//! what kills a guest is the failure of the trial that it had, with what its console said.

use std::sync::{Arc, atomic::Ordering};

use model::{
    Cell, Environment, Factor, Isolation, Warning,
    matrix::Labelled,
    record::{CellRecord, TrialRecord},
};

use super::{
    kernel_of,
    lanes::{Common, Job, Lanes},
    machines::Machines,
    messages::{Begin, Begun},
};
use crate::conductor::{Ahead, Trials, Watch, events::Event};

/// The guests of a run.
#[derive(Debug)]
pub(crate) struct Guests {
    lanes: Lanes,
}

impl Guests {
    /// Guests for a run; none is booted yet.
    pub(super) fn new(machines: Machines, begin: Begin, isolation: Isolation) -> Self {
        let (machines, begin) = (Arc::new(machines), Arc::new(begin));
        Self { lanes: Lanes::new(Common { machines, begin, isolation }) }
    }

    /// What runs them.
    pub(super) fn machines(&self) -> &Machines {
        self.lanes.machines()
    }

    /// What the run knows of itself.
    pub(super) fn know(&mut self, environment: Environment) {
        self.lanes.know(environment);
    }

    /// Boots a guest with each kernel and has it look at what it can measure.
    pub(super) fn begin(&mut self) -> anyhow::Result<Vec<(String, Begun)>> {
        let kernels = self.machines().kernels();
        self.lanes.begin(&kernels)
    }
}

/// The guests of a run, watched.
pub(crate) struct InGuest<'a> {
    pub(crate) guests: Guests,
    pub(crate) watch: Watch<'a>,
}

impl Trials for InGuest<'_> {
    fn describe(&self) -> String {
        let count = self.side_by_side();
        let machines = self.guests.machines().describe();
        if count > 1 { format!("{machines}, {count} side by side") } else { machines }
    }

    fn side_by_side(&self) -> usize {
        self.guests.lanes.count()
    }

    fn ahead(&mut self, next: &mut dyn Iterator<Item = Ahead<'_>>) {
        let count = self.side_by_side();
        if count > 1 {
            let job =
                |Ahead { cell, index, repeat }| Job { cell: Cell::clone(cell), index, repeat };
            // As far as guests can get while one of them makes its trial.
            self.guests.lanes.want(next.take(2 * count).map(job));
        }
    }

    fn measure(&mut self, cell: &Cell, index: usize, repeat: u32) -> Option<TrialRecord> {
        let observer = self.watch.observer;
        observer(&Event::PhaseStarted { name: "boot", time: None });
        let mut heard = |text: &str| observer(&Event::PhaseStarted { name: text, time: None });
        let trial = self.guests.lanes.take(Job { cell: cell.clone(), index, repeat }, &mut heard);
        (!self.watch.interrupt.load(Ordering::Relaxed)).then_some(trial)
    }

    fn awaits_boot(&self) -> bool {
        false
    }

    fn close(mut self) -> anyhow::Result<()> {
        self.guests.lanes.end();
        Ok(())
    }
}

/// The cells of a run, as guests found them under each kernel. Without kernels as an axis there is
/// one, which its cells do not name.
pub(super) fn cells(
    all: &[Labelled],
    machines: &Machines,
    found: &[(String, Vec<CellRecord>)],
) -> Vec<CellRecord> {
    let of = |labelled: &Labelled| {
        let mut labelled = labelled.clone();
        machines.call(&mut labelled);
        let Labelled { cell, label, .. } = labelled;
        let kernel = kernel_of(&cell);
        let fits = |name: &String| kernel.as_ref().is_none_or(|kernel| kernel == name);
        let (_, known) = found.iter().find(|(name, _)| fits(name))?;
        let mut plain = cell.clone();
        plain.factors.remove(&Factor::Kernel);
        let known = known.iter().find(|known| known.cell == plain)?;
        Some(CellRecord { id: cell.id(), label, cell, ..known.clone() })
    };
    all.iter().filter_map(of).collect()
}

/// Whether a warning of a guest holds for the run: what its disks are made of is known.
pub(super) fn about_storage(warning: &Warning) -> bool {
    !matches!(warning, Warning::Backing { .. })
}
