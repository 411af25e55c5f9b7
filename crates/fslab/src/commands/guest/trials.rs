//! Trials that run in guests.
//!
//! A new guest is booted if the next trial uses another kernel, if the plan sets isolation to
//! `reattach` or `reboot`, or if the previous guest died. If a guest dies, its trial fails, and the
//! end of the console is stored.

use std::sync::{Arc, atomic::Ordering};

use model::{
    Cell, Environment, Isolation, SystemSetting, Warning,
    matrix::LabeledCell,
    record::{CellRecord, TrialRecord},
};

use super::{
    factory::GuestFactory,
    kernel_of,
    messages::{RunStarted, StartRun},
    pool::{GuestPool, Job, PoolConfig},
};
use crate::runner::{RunObserver, Trials, UpcomingTrial, events::Event};

/// Guests of a run.
#[derive(Debug)]
pub(crate) struct Guests {
    pool: GuestPool,
}

impl Guests {
    /// Creates the pool of guests. No guest is booted yet.
    pub(super) fn new(factory: GuestFactory, begin: StartRun, isolation: Isolation) -> Self {
        let (factory, begin) = (Arc::new(factory), Arc::new(begin));
        Self { pool: GuestPool::new(PoolConfig { factory, begin, isolation }) }
    }

    /// Factory of the guests.
    pub(super) fn factory(&self) -> &GuestFactory {
        self.pool.factory()
    }

    /// Sets the environment facts of the run.
    pub(super) fn set_facts(&mut self, environment: Environment) {
        self.pool.set_facts(environment);
    }

    /// Boots a guest with each kernel and detects what it can measure.
    pub(super) fn begin(&mut self) -> anyhow::Result<Vec<(String, RunStarted)>> {
        let kernels = self.factory().kernels();
        self.pool.begin(&kernels)
    }
}

/// Guests of a run, with its observer.
pub(crate) struct InGuest<'a> {
    pub(crate) guests: Guests,
    pub(crate) observer: RunObserver<'a>,
}

impl Trials for InGuest<'_> {
    fn describe(&self) -> String {
        let count = self.concurrency();
        let factory = self.guests.factory().describe();
        if count > 1 { format!("{factory}, {count} concurrent") } else { factory }
    }

    fn concurrency(&self) -> usize {
        self.guests.pool.count()
    }

    fn ahead(&mut self, next: &mut dyn Iterator<Item = UpcomingTrial<'_>>) {
        let count = self.concurrency();
        if count > 1 {
            let job = |UpcomingTrial { cell, index, repetition }| Job {
                cell: Cell::clone(cell),
                index,
                repetition,
            };
            // Enough trials to keep all guests busy until the next call.
            self.guests.pool.enqueue(next.take(2 * count).map(job));
        }
    }

    fn measure(&mut self, cell: &Cell, index: usize, repetition: u32) -> Option<TrialRecord> {
        let observer = self.observer.notify;
        observer(&Event::PhaseStarted { name: "boot", time: None });
        let mut heard = |text: &str| observer(&Event::PhaseStarted { name: text, time: None });
        let trial =
            self.guests.pool.wait_for(Job { cell: cell.clone(), index, repetition }, &mut heard);
        (!self.observer.interrupt.load(Ordering::Relaxed)).then_some(trial)
    }

    fn reboot_required(&self) -> bool {
        false
    }

    fn close(mut self) -> anyhow::Result<()> {
        self.guests.pool.end();
        Ok(())
    }
}

/// Cells of a run, with the availability that the guest of their kernel has reported. If kernels
/// are not an axis, there is a single kernel, and the cells do not contain its name.
pub(super) fn cells(
    all: &[LabeledCell],
    factory: &GuestFactory,
    found: &[(String, Vec<CellRecord>)],
) -> Vec<CellRecord> {
    let of = |labelled: &LabeledCell| {
        let mut labelled = labelled.clone();
        factory.rename_kernel(&mut labelled);
        let LabeledCell { cell, label, .. } = labelled;
        let kernel = kernel_of(&cell);
        let fits = |name: &String| kernel.as_ref().is_none_or(|kernel| kernel == name);
        let (_, known) = found.iter().find(|(name, _)| fits(name))?;
        let mut plain = cell.clone();
        plain.settings.remove(&SystemSetting::Kernel);
        let known = known.iter().find(|known| known.cell == plain)?;
        Some(CellRecord { id: cell.id(), label, cell, ..known.clone() })
    };
    all.iter().filter_map(of).collect()
}

/// Reports whether a warning of a guest applies to the run. Warning `shared-storage` does not
/// apply, because the host knows the storage behind the guest's disks.
pub(super) fn about_storage(warning: &Warning) -> bool {
    !matches!(warning, Warning::SharedStorage { .. })
}
