//! Trials that come from guests.
//!
//! A run conducts them as it does trials on this machine. A guest is booted when the next trial
//! wants another kernel, when the plan wants a boot before each, and when the last one has died:
//! what kills a guest is the failure of the trial that it had, with what its console said.

use std::{sync::atomic::Ordering, time::Instant};

use guest::{GuestError, Limits, Machine};
use model::{
    Cell, Clock, Environment, Evidence, Factor, Isolation, Warning,
    evidence::LogLine,
    matrix::Labelled,
    record::{CellRecord, Outcome, TrialRecord},
};

use super::{
    kernel_of,
    machines::Machines,
    messages::{Answer, Begin, Begun, Request},
    warnings,
};
use crate::{
    conductor::{Trials, Watch, events::Event, now_unix},
    exit::chain,
};

/// Lines of the console that are kept of a guest that died.
const KEPT_LINES: usize = 80;
/// The step that the console of a guest that died stands under.
const CONSOLE: &str = "guest";

/// The guests of a run.
#[derive(Debug)]
pub(crate) struct Guests {
    machines: Machines,
    begin: Begin,
    isolation: Isolation,
    alive: Option<Alive>,
}

/// A guest that runs.
#[derive(Debug)]
struct Alive {
    machine: Machine,
    kernel: Option<String>,
    /// What it is.
    facts: Environment,
    /// A trial was made in it.
    used: bool,
}

impl Guests {
    /// Guests for a run; none is booted yet.
    pub(super) fn new(machines: Machines, begin: Begin, isolation: Isolation) -> Self {
        Self { machines, begin, isolation, alive: None }
    }

    /// What lies under the filesystems, in words.
    pub(crate) fn describe(&self) -> String {
        self.machines.describe()
    }

    /// What runs them.
    pub(super) fn machines(&self) -> &Machines {
        &self.machines
    }

    /// What the run knows of itself.
    pub(super) fn know(&mut self, environment: Environment) {
        self.begin.environment = environment;
    }

    /// Boots a guest with a kernel and has it look at what it can measure.
    pub(super) fn begin(&mut self, kernel: Option<&str>) -> Result<Begun, anyhow::Error> {
        // One machine at a time: they share their disks.
        self.end();
        let (mut machine, facts) = self.machines.boot(kernel)?;
        let request = Request::Begin(Box::new(self.begin.clone()));
        let mut begun = match ask(&mut machine, &request, &mut |_| {})? {
            Answer::Begun(begun) => *begun,
            Answer::Failed(why) => anyhow::bail!("in the guest: {why}"),
            Answer::Trial(_) => anyhow::bail!("the guest answered out of turn"),
        };
        begun.environment.merge(facts);
        let facts = begun.environment.clone();
        let kernel = kernel.map(str::to_owned);
        self.alive = Some(Alive { machine, kernel, facts, used: false });
        Ok(begun)
    }

    /// Switches the guest off, if there is one.
    fn end(&mut self) {
        if let Some(alive) = self.alive.take() {
            // What it could not end itself, its cage does.
            let _ended = alive.machine.halt();
        }
    }

    /// The guest for a trial of a cell.
    fn for_cell(&mut self, cell: &Cell) -> anyhow::Result<&mut Alive> {
        let kernel = kernel_of(cell);
        let fits = |alive: &Alive| {
            let fresh = self.isolation == Isolation::Remount || !alive.used;
            (kernel.is_none() || alive.kernel == kernel) && fresh
        };
        if !self.alive.as_ref().is_some_and(fits) {
            self.begin(kernel.as_deref())?;
        }
        self.alive.as_mut().ok_or_else(|| anyhow::anyhow!("the guest is gone"))
    }
}

/// The guests of a run, watched.
pub(crate) struct InGuest<'a> {
    pub(crate) guests: Guests,
    pub(crate) watch: Watch<'a>,
}

impl InGuest<'_> {
    fn interrupted(&self) -> bool {
        self.watch.interrupt.load(Ordering::Relaxed)
    }

    fn trial(&mut self, cell: &Cell, index: usize, repeat: u32) -> anyhow::Result<TrialRecord> {
        let observer = self.watch.observer;
        observer(&Event::PhaseStarted { name: "boot", time: None });
        let alive = self.guests.for_cell(cell)?;
        alive.used = true;
        let mut plain = cell.clone();
        plain.factors.remove(&Factor::Kernel);
        let request = Request::Trial { cell: Box::new(plain), index, repeat };
        let mut heard = |text: &str| observer(&Event::PhaseStarted { name: text, time: None });
        match ask(&mut alive.machine, &request, &mut heard)? {
            Answer::Trial(trial) => Ok(*trial),
            Answer::Failed(why) => anyhow::bail!("in the guest: {why}"),
            Answer::Begun(_) => anyhow::bail!("the guest answered out of turn"),
        }
    }

    /// What a guest that died leaves: why, and the end of its console.
    fn died(&mut self, error: &anyhow::Error) -> (String, Vec<(String, Evidence)>) {
        let console = self.guests.alive.take().map(|alive| alive.machine.console());
        let console = console.unwrap_or_default();
        let lines: Vec<&str> = console.lines().filter(|line| !line.trim().is_empty()).collect();
        let last = &lines[lines.len().saturating_sub(KEPT_LINES)..];
        let line = |text: &&str| LogLine { level: 6, fatal: false, text: (*text).to_owned() };
        let log: Vec<LogLine> = last.iter().map(line).collect();
        let evidence = (!log.is_empty())
            .then(|| (CONSOLE.to_owned(), Evidence { log, ..Evidence::default() }));
        (chain(error.as_ref()), evidence.into_iter().collect())
    }
}

impl Trials for InGuest<'_> {
    fn describe(&self) -> String {
        self.guests.describe()
    }

    fn measure(&mut self, cell: &Cell, index: usize, repeat: u32) -> Option<TrialRecord> {
        let (started, started_unix) = (Instant::now(), now_unix());
        let made = self.trial(cell, index, repeat);
        if self.interrupted() {
            self.guests.alive = None;
            return None;
        }
        let mut trial = match made {
            Ok(trial) => trial,
            Err(error) => {
                let (reason, evidence) = self.died(&error);
                TrialRecord {
                    cell: index,
                    repeat,
                    attempt: 0,
                    started_unix,
                    elapsed: started.elapsed().into(),
                    outcome: Outcome::Failed { reason },
                    samples: Vec::new(),
                    histograms: Vec::new(),
                    series: Vec::new(),
                    evidence,
                    warnings: Vec::new(),
                    actions: Vec::new(),
                    environment: Environment::default(),
                }
            }
        };
        let machines = &self.guests.machines;
        if machines.clock() != Clock::Wall {
            // What the run takes is told by the clock of the host, whatever the guest's counts.
            (trial.elapsed, trial.started_unix) = (started.elapsed().into(), started_unix);
        }
        let (engine, latency) = (machines.engine(), machines.latency());
        let phases: Vec<String> = trial.samples.iter().map(|sample| sample.phase.clone()).collect();
        trial.warnings.extend(warnings(engine, latency, &phases));
        if let Some(alive) = &self.guests.alive {
            let mut facts = beyond(&alive.facts, &self.guests.begin.environment);
            facts.merge(trial.environment);
            trial.environment = facts;
        }
        Some(trial)
    }

    fn awaits_boot(&self) -> bool {
        false
    }

    fn close(mut self) -> anyhow::Result<()> {
        self.guests.end();
        Ok(())
    }
}

/// What is true of a guest and not of its run. What is measured anew at each boot differs always.
fn beyond(facts: &Environment, run: &Environment) -> Environment {
    let mut own = facts.beyond(run);
    let measured = ["generator.", "clock.", "boot."];
    own.0.retain(|name, _| !measured.iter().any(|prefix| name.starts_with(prefix)));
    own
}

/// Asks a guest and reads its answer.
fn ask(
    machine: &mut Machine,
    request: &Request,
    heard: &mut dyn FnMut(&str),
) -> anyhow::Result<Answer> {
    let payload = serde_json::to_vec(request)?;
    let answer = machine.ask(&payload, Limits::default(), heard)?;
    let answer = serde_json::from_slice(&answer);
    answer.map_err(|error| GuestError::Damaged(error.to_string()).into())
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
