//! Pool of concurrent guests, each with a thread that runs one trial at a time.
//!
//! Input: a queue of trials ([`GuestPool::enqueue`]). Output: trials in the order in which they are
//! requested ([`GuestPool::wait_for`]), regardless of the order in which they finish. If time is
//! measured, the pool has one slot, because concurrent guests would affect each other. Icount
//! guests do not affect each other, so their pool has as many slots as CPUs, or fewer if memory is
//! insufficient.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use guest::{GuestError, Limits, Machine};
use model::{
    Cell, Clock, Environment, Isolation, SystemActivity, SystemSetting,
    activity::LogLine,
    record::{Outcome, TrialRecord},
};

use super::{
    factory::GuestFactory,
    kernel_of,
    messages::{Answer, Request, RunStarted, StartRun},
    warnings,
};
use crate::{exit::chain, runner::now_unix};

/// Number of console lines stored for a guest that died.
const CONSOLE_LINES: usize = 80;
/// Name of the step that contains the console of a guest that died.
const CONSOLE: &str = "guest";

/// Interval between checks for slots whose thread ended without a message.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Requested trial.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) cell: Cell,
    pub(super) index: usize,
    pub(super) repetition: u32,
}

impl Job {
    fn key(&self) -> (usize, u32) {
        (self.index, self.repetition)
    }
}

/// Common configuration of all guests of a run.
#[derive(Clone, Debug)]
pub(super) struct PoolConfig {
    pub(super) factory: Arc<GuestFactory>,
    pub(super) begin: Arc<StartRun>,
    pub(super) isolation: Isolation,
}

/// Running guest.
#[derive(Debug)]
struct RunningGuest {
    machine: Machine,
    kernel: Option<String>,
    /// Environment facts of the guest.
    facts: Environment,
    /// True if a trial ran in this guest.
    used: bool,
}

/// Slot for one guest.
#[derive(Debug)]
enum GuestSlot {
    /// No trial is in progress; a guest may be idle in the slot.
    Free(Option<Box<RunningGuest>>),
    /// A guest is being booted, or a trial is in progress.
    Busy {
        /// Cell index and repetition of the trial; `None` during the first boot.
        key: Option<(usize, u32)>,
        /// Kernel of the guest in the slot.
        kernel: Option<String>,
        thread: JoinHandle<()>,
    },
}

impl GuestSlot {
    /// Reports whether this trial is in progress.
    fn runs(&self, wanted: (usize, u32)) -> bool {
        matches!(self, Self::Busy { key, .. } if *key == Some(wanted))
    }
}

/// Message from the thread of a slot.
enum SlotMessage {
    /// Current phase.
    Phase(String),
    /// A guest booted and started the run, or failed to.
    Booted(anyhow::Result<Box<(RunningGuest, RunStarted)>>),
    /// A trial finished. Its guest stays in the slot unless the guest died.
    Finished(Box<TrialRecord>, Option<Box<RunningGuest>>),
}

/// All guests of a run.
#[derive(Debug)]
pub(super) struct GuestPool {
    common: PoolConfig,
    slots: Vec<GuestSlot>,
    queue: VecDeque<Job>,
    /// Trials that finished before they were requested.
    made: BTreeMap<(usize, u32), TrialRecord>,
    /// Messages from the slots, with their indices.
    messages: mpsc::Receiver<(usize, SlotMessage)>,
    sender: mpsc::Sender<(usize, SlotMessage)>,
}

impl GuestPool {
    /// Pool without running guests.
    pub(super) fn new(common: PoolConfig) -> Self {
        let (sender, messages) = mpsc::channel();
        let slots = (0..common.factory.concurrency()).map(|_| GuestSlot::Free(None)).collect();
        let (queue, made) = (VecDeque::new(), BTreeMap::new());
        Self { common, slots, queue, made, messages, sender }
    }

    /// Number of slots.
    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// Factory of the guests.
    pub(super) fn factory(&self) -> &GuestFactory {
        &self.common.factory
    }

    /// Sets the environment facts of the run.
    pub(super) fn set_facts(&mut self, environment: Environment) {
        Arc::make_mut(&mut self.common.begin).environment = environment;
    }

    /// Boots a guest with each kernel and detects what it can measure. If there are more slots than
    /// kernels, the other slots also boot guests.
    ///
    /// # Errors
    /// If a guest does not boot or cannot start the run.
    pub(super) fn begin(
        &mut self,
        kernels: &[String],
    ) -> anyhow::Result<Vec<(String, RunStarted)>> {
        let mut found: Vec<Option<RunStarted>> = vec![None; kernels.len()];
        let mut next = self.slots.len();
        for at in 0..self.slots.len() {
            self.boot(at, &kernels[at % kernels.len()]);
        }
        while found.iter().any(Option::is_none) {
            let Some((at, message)) = self.receive() else { continue };
            let SlotMessage::Booted(up) = message else { continue };
            let (guest, begun) = *up?;
            let kernel = kernels.iter().position(|kernel| Some(kernel) == guest.kernel.as_ref());
            if let Some(found) = kernel.and_then(|kernel| found.get_mut(kernel)) {
                *found = Some(begun);
            }
            self.release(at, Some(Box::new(guest)));
            if let Some(kernel) = kernels.get(next) {
                self.stop_guest(at);
                self.boot(at, kernel);
                next += 1;
            }
        }
        Ok(kernels.iter().cloned().zip(found.into_iter().flatten()).collect())
    }

    /// Boots a guest in an empty slot.
    fn boot(&mut self, at: usize, kernel: &str) {
        let (common, sender) = (self.common.clone(), self.sender.clone());
        let named = Some(kernel.to_owned());
        let own = named.clone();
        let thread = std::thread::spawn(move || {
            let up = common.boot(at, own.as_deref()).map(Box::new);
            let _gone = sender.send((at, SlotMessage::Booted(up)));
        });
        self.slots[at] = GuestSlot::Busy { key: None, kernel: named, thread };
    }

    /// Receives the next message; `None` after a timeout.
    fn receive(&mut self) -> Option<(usize, SlotMessage)> {
        let message = self.messages.recv_timeout(POLL_INTERVAL).ok();
        if message.is_none() {
            self.propagate_panic();
        }
        message
    }

    /// Marks a slot as free. `guest` stays in the slot.
    fn release(&mut self, at: usize, guest: Option<Box<RunningGuest>>) {
        let slot = std::mem::replace(&mut self.slots[at], GuestSlot::Free(guest));
        if let GuestSlot::Busy { thread, .. } = slot {
            let _panicked = thread.join();
        }
    }

    /// Stops the guest of an idle slot.
    fn stop_guest(&mut self, at: usize) {
        if let GuestSlot::Free(guest) = &mut self.slots[at] {
            guest.take().into_iter().for_each(|guest| guest.end());
        }
    }

    /// Replaces the queue by these trials. Trials that are in progress or finished are omitted.
    pub(super) fn enqueue(&mut self, jobs: impl Iterator<Item = Job>) {
        let known = |job: &Job| self.made.contains_key(&job.key()) || self.runs(job.key());
        self.queue = jobs.filter(|job| !known(job)).collect();
    }

    /// Waits for a requested trial. Other slots continue during that time.
    pub(super) fn wait_for(&mut self, job: Job, report: &mut dyn FnMut(&str)) -> TrialRecord {
        let key = job.key();
        if !self.made.contains_key(&key) && !self.runs(key) {
            self.queue.retain(|other| other.key() != key);
            self.queue.push_front(job);
        }
        loop {
            self.fill();
            if let Some(trial) = self.made.remove(&key) {
                return trial;
            }
            let Some((at, message)) = self.receive() else { continue };
            match message {
                SlotMessage::Phase(text) => {
                    if self.slots[at].runs(key) {
                        report(&text);
                    }
                }
                // If the boot failed, the next trial in this slot boots again and reports the
                // error.
                SlotMessage::Booted(up) => self.release(at, up.ok().map(|up| Box::new(up.0))),
                SlotMessage::Finished(trial, guest) => {
                    self.made.insert((trial.cell, trial.repetition), *trial);
                    self.release(at, guest);
                }
            }
        }
    }

    /// Propagates the panic of a slot's thread, which cannot send a message.
    fn propagate_panic(&mut self) {
        let ended = |slot: &mut GuestSlot| match slot {
            GuestSlot::Busy { thread, .. } => thread.is_finished(),
            GuestSlot::Free(_) => false,
        };
        for slot in self.slots.iter_mut().filter_map(|slot| ended(slot).then_some(slot)) {
            if let GuestSlot::Busy { thread, .. } = std::mem::replace(slot, GuestSlot::Free(None))
                && let Err(panic) = thread.join()
            {
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// Reports whether a trial is in progress.
    fn runs(&self, wanted: (usize, u32)) -> bool {
        self.slots.iter().any(|slot| slot.runs(wanted))
    }

    /// Assigns queued trials to idle slots.
    fn fill(&mut self) {
        for at in 0..self.slots.len() {
            let GuestSlot::Free(guest) = &self.slots[at] else { continue };
            let Some(place) = self.next_for(guest.as_deref()) else { continue };
            let Some(job) = self.queue.remove(place) else { continue };
            self.start(at, job);
        }
    }

    /// Queue position of the next trial for a slot: the first trial that uses the kernel of its
    /// guest, otherwise the first trial whose kernel no other slot has booted. Booting takes longer
    /// than many trials.
    fn next_for(&self, guest: Option<&RunningGuest>) -> Option<usize> {
        let own = guest.map(|guest| &guest.kernel);
        let fits = |job: &Job| {
            let kernel = kernel_of(&job.cell);
            own.is_some_and(|own| kernel.is_none() || *own == kernel)
        };
        let booted_by_another = |job: &Job| {
            let wanted = kernel_of(&job.cell);
            wanted.is_some()
                && self.slots.iter().any(|slot| match slot {
                    GuestSlot::Free(guest) => {
                        guest.as_ref().is_some_and(|guest| guest.kernel == wanted)
                    }
                    GuestSlot::Busy { kernel, .. } => *kernel == wanted,
                })
        };
        let first = self.queue.iter().position(fits);
        first.or_else(|| self.queue.iter().position(|job| !booted_by_another(job)))
    }

    fn start(&mut self, at: usize, job: Job) {
        let slot = std::mem::replace(&mut self.slots[at], GuestSlot::Free(None));
        let GuestSlot::Free(guest) = slot else { return };
        let key = job.key();
        let own = guest.as_ref().and_then(|guest| guest.kernel.clone());
        let kernel = kernel_of(&job.cell).or(own);
        let (common, sender) = (self.common.clone(), self.sender.clone());
        let thread = std::thread::spawn(move || {
            let mut guest = guest;
            let mut doing = |text: &str| {
                let _gone = sender.send((at, SlotMessage::Phase(text.to_owned())));
            };
            let trial = common.trial(at, &mut guest, &job, &mut doing);
            let _gone = sender.send((at, SlotMessage::Finished(Box::new(trial), guest)));
        });
        self.slots[at] = GuestSlot::Busy { key: Some(key), kernel, thread };
    }

    /// Stops all guests after the trials in progress. If the run was interrupted, these trials end
    /// at once.
    pub(super) fn end(&mut self) {
        for slot in self.slots.drain(..) {
            match slot {
                GuestSlot::Free(Some(guest)) => guest.end(),
                GuestSlot::Free(None) => {}
                GuestSlot::Busy { thread, .. } => {
                    let _panicked = thread.join();
                }
            }
        }
    }
}

impl Drop for GuestPool {
    fn drop(&mut self) {
        self.end();
    }
}

impl RunningGuest {
    /// Shuts the guest down.
    fn end(self) {
        // The supervisor ends a guest that does not shut down.
        let _ended = self.machine.halt();
    }
}

impl PoolConfig {
    /// Boots a guest for a slot.
    fn boot(
        &self,
        slot: usize,
        kernel: Option<&str>,
    ) -> anyhow::Result<(RunningGuest, RunStarted)> {
        let (mut machine, facts) = self.factory.boot(slot, kernel)?;
        let request = Request::StartRun(Box::new((*self.begin).clone()));
        let mut begun = match ask(&mut machine, &request, &mut |_| {})? {
            Answer::RunStarted(begun) => *begun,
            Answer::Failed(why) => anyhow::bail!("in the guest: {why}"),
            Answer::Trial(_) => anyhow::bail!("the guest sent an unexpected reply"),
        };
        begun.environment.merge(facts);
        let facts = begun.environment.clone();
        let kernel = kernel.map(str::to_owned);
        Ok((RunningGuest { machine, kernel, facts, used: false }, begun))
    }

    /// Runs a trial in the current guest if its kernel and the isolation permit it, otherwise in a
    /// new guest. If the guest dies, the trial fails, and the end of the console is stored.
    fn trial(
        &self,
        slot: usize,
        guest: &mut Option<Box<RunningGuest>>,
        job: &Job,
        report: &mut dyn FnMut(&str),
    ) -> TrialRecord {
        let (started, started_unix) = (Instant::now(), now_unix());
        let mut trial = match self.made(slot, guest, job, report) {
            Ok(trial) => trial,
            Err(error) => {
                let (reason, activity) = died(guest.take(), &error);
                TrialRecord {
                    cell: job.index,
                    repetition: job.repetition,
                    attempt: 0,
                    started_unix,
                    elapsed: started.elapsed().into(),
                    outcome: Outcome::Failed { reason },
                    samples: Vec::new(),
                    histograms: Vec::new(),
                    series: Vec::new(),
                    activity,
                    warnings: Vec::new(),
                    actions: Vec::new(),
                    environment: Environment::default(),
                    hosts: Vec::new(),
                }
            }
        };
        let factory = &self.factory;
        if factory.clock() != Clock::Wall {
            // The duration of a trial is host time, regardless of the clock of the guest.
            (trial.elapsed, trial.started_unix) = (started.elapsed().into(), started_unix);
        }
        let (engine, latency) = (factory.engine(), factory.latency());
        let phases: Vec<String> = trial.samples.iter().map(|sample| sample.phase.clone()).collect();
        trial.warnings.extend(warnings(engine, latency, &phases));
        if let Some(guest) = guest {
            let mut facts = beyond(&guest.facts, &self.begin.environment);
            facts.merge(trial.environment);
            trial.environment = facts;
        }
        trial
    }

    fn made(
        &self,
        slot: usize,
        guest: &mut Option<Box<RunningGuest>>,
        job: &Job,
        report: &mut dyn FnMut(&str),
    ) -> anyhow::Result<TrialRecord> {
        let kernel = kernel_of(&job.cell);
        let fits = |guest: &RunningGuest| {
            let fresh = self.isolation == Isolation::Remount || !guest.used;
            (kernel.is_none() || guest.kernel == kernel) && fresh
        };
        let own = match guest.take() {
            Some(own) if fits(&own) => own,
            other => {
                // The old guest must end before the next guest boots, because both use the same
                // disks.
                other.into_iter().for_each(|other| other.end());
                Box::new(self.boot(slot, kernel.as_deref())?.0)
            }
        };
        let own = guest.insert(own);
        own.used = true;
        let mut cell = job.cell.clone();
        cell.settings.remove(&SystemSetting::Kernel);
        let (index, repetition) = (job.index, job.repetition);
        let request = Request::Trial { cell: Box::new(cell), index, repetition };
        match ask(&mut own.machine, &request, report)? {
            Answer::Trial(trial) => Ok(*trial),
            Answer::Failed(why) => anyhow::bail!("in the guest: {why}"),
            Answer::RunStarted(_) => anyhow::bail!("the guest sent an unexpected reply"),
        }
    }
}

/// Reason of the failure of a guest, and the end of its console.
fn died(
    guest: Option<Box<RunningGuest>>,
    error: &anyhow::Error,
) -> (String, Vec<(String, SystemActivity)>) {
    let console = guest.map(|guest| guest.machine.console()).unwrap_or_default();
    let lines: Vec<&str> = console.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(CONSOLE_LINES)..];
    let line = |text: &&str| LogLine { level: 6, fatal: false, text: (*text).to_owned() };
    let log: Vec<LogLine> = last.iter().map(line).collect();
    let activity = (!log.is_empty())
        .then(|| (CONSOLE.to_owned(), SystemActivity { log, ..SystemActivity::default() }));
    (chain(error.as_ref()), activity.into_iter().collect())
}

/// Facts of a guest that differ from those of the run, except facts that are measured at each boot.
fn beyond(facts: &Environment, run: &Environment) -> Environment {
    let mut own = facts.beyond(run);
    let measured = ["generator.", "clock.", "boot."];
    own.0.retain(|name, _| !measured.iter().any(|prefix| name.starts_with(prefix)));
    own
}

/// Sends a request to a guest and reads its reply.
fn ask(
    machine: &mut Machine,
    request: &Request,
    report: &mut dyn FnMut(&str),
) -> anyhow::Result<Answer> {
    let payload = serde_json::to_vec(request)?;
    let answer = machine.request(&payload, Limits::default(), report)?;
    let answer = serde_json::from_slice(&answer);
    answer.map_err(|error| GuestError::Damaged(error.to_string()).into())
}
