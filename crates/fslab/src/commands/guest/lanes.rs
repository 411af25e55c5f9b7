//! Guests side by side, each making one trial at a time on a thread of its own.
//!
//! What is wanted enters as a queue of trials ([`Lanes::want`]); trials leave in the order in which
//! they are asked for ([`Lanes::take`]), whichever was made first. Where time is measured there is
//! one lane: two guests would disturb each other. Where instructions are counted nothing does, and
//! there are as many lanes as processors that have the memory for them.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use guest::{GuestError, Limits, Machine};
use model::{
    Cell, Clock, Environment, Evidence, Factor, Isolation,
    evidence::LogLine,
    record::{Outcome, TrialRecord},
};

use super::{
    kernel_of,
    machines::Machines,
    messages::{Answer, Begin, Begun, Request},
    warnings,
};
use crate::{conductor::now_unix, exit::chain};

/// Lines of the console that are kept of a guest that died.
const KEPT_LINES: usize = 80;
/// The step that the console of a guest that died stands under.
const CONSOLE: &str = "guest";

/// After so long without a word it is looked whether all lanes still work.
const PATIENCE: Duration = Duration::from_secs(1);

/// A trial that is wanted.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub(super) cell: Cell,
    pub(super) index: usize,
    pub(super) repeat: u32,
}

impl Job {
    fn key(&self) -> (usize, u32) {
        (self.index, self.repeat)
    }
}

/// What all guests of a run have in common.
#[derive(Clone, Debug)]
pub(super) struct Common {
    pub(super) machines: Arc<Machines>,
    pub(super) begin: Arc<Begin>,
    pub(super) isolation: Isolation,
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

/// A place for one guest.
#[derive(Debug)]
enum Lane {
    /// It makes nothing; a guest may wait in it.
    Free(Option<Box<Alive>>),
    /// It boots a guest or makes a trial.
    Busy {
        /// Which trial.
        key: Option<(usize, u32)>,
        /// The kernel of its guest.
        kernel: Option<String>,
        thread: JoinHandle<()>,
    },
}

impl Lane {
    /// Whether it is at work on this.
    fn makes(&self, wanted: (usize, u32)) -> bool {
        matches!(self, Self::Busy { key, .. } if *key == Some(wanted))
    }
}

/// What is heard from a lane.
enum Said {
    /// What it does now.
    Doing(String),
    /// A guest has come up, and what it found; or why not.
    Up(anyhow::Result<Box<(Alive, Begun)>>),
    /// A trial, and the guest that made it, if that still lives.
    Made(Box<TrialRecord>, Option<Box<Alive>>),
}

/// The guests of a run.
#[derive(Debug)]
pub(super) struct Lanes {
    common: Common,
    lanes: Vec<Lane>,
    queue: VecDeque<Job>,
    /// What was made before it was asked for.
    made: BTreeMap<(usize, u32), TrialRecord>,
    /// What is said from the lanes, with the number of each.
    said: mpsc::Receiver<(usize, Said)>,
    saying: mpsc::Sender<(usize, Said)>,
}

impl Lanes {
    /// So many lanes, without guests.
    pub(super) fn new(common: Common) -> Self {
        let (saying, said) = mpsc::channel();
        let lanes = (0..common.machines.side_by_side()).map(|_| Lane::Free(None)).collect();
        let (queue, made) = (VecDeque::new(), BTreeMap::new());
        Self { common, lanes, queue, made, said, saying }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// What runs the guests.
    pub(super) fn machines(&self) -> &Machines {
        &self.common.machines
    }

    /// What the run knows of itself, from now on.
    pub(super) fn know(&mut self, environment: Environment) {
        Arc::make_mut(&mut self.common.begin).environment = environment;
    }

    /// Boots a guest with each kernel and has it look at what it can measure. Lanes that would be
    /// left without a guest get one too.
    ///
    /// # Errors
    /// When one does not come up, or cannot measure.
    pub(super) fn begin(&mut self, kernels: &[String]) -> anyhow::Result<Vec<(String, Begun)>> {
        let mut found: Vec<Option<Begun>> = vec![None; kernels.len()];
        let mut next = self.lanes.len();
        for at in 0..self.lanes.len() {
            self.boot(at, &kernels[at % kernels.len()]);
        }
        while found.iter().any(Option::is_none) {
            let Some((at, said)) = self.listen() else { continue };
            let Said::Up(up) = said else { continue };
            let (alive, begun) = *up?;
            let kernel = kernels.iter().position(|kernel| Some(kernel) == alive.kernel.as_ref());
            if let Some(found) = kernel.and_then(|kernel| found.get_mut(kernel)) {
                *found = Some(begun);
            }
            self.settle(at, Some(Box::new(alive)));
            if let Some(kernel) = kernels.get(next) {
                self.empty(at);
                self.boot(at, kernel);
                next += 1;
            }
        }
        Ok(kernels.iter().cloned().zip(found.into_iter().flatten()).collect())
    }

    /// Boots a guest in a lane that has none.
    fn boot(&mut self, at: usize, kernel: &str) {
        let (common, saying) = (self.common.clone(), self.saying.clone());
        let named = Some(kernel.to_owned());
        let own = named.clone();
        let thread = std::thread::spawn(move || {
            let up = common.boot(at, own.as_deref()).map(Box::new);
            let _gone = saying.send((at, Said::Up(up)));
        });
        self.lanes[at] = Lane::Busy { key: None, kernel: named, thread };
    }

    /// What a lane says; `None` if none does for a while.
    fn listen(&mut self) -> Option<(usize, Said)> {
        let said = self.said.recv_timeout(PATIENCE).ok();
        if said.is_none() {
            self.panicked();
        }
        said
    }

    /// Ends the work of a lane, in which a guest may stay.
    fn settle(&mut self, at: usize, alive: Option<Box<Alive>>) {
        let lane = std::mem::replace(&mut self.lanes[at], Lane::Free(alive));
        if let Lane::Busy { thread, .. } = lane {
            let _panicked = thread.join();
        }
    }

    /// Ends the guest of a lane that makes nothing.
    fn empty(&mut self, at: usize) {
        if let Lane::Free(alive) = &mut self.lanes[at] {
            alive.take().into_iter().for_each(|alive| alive.end());
        }
    }

    /// Says which trials are wanted after those that are being made, in this order.
    pub(super) fn want(&mut self, jobs: impl Iterator<Item = Job>) {
        let known = |job: &Job| self.made.contains_key(&job.key()) || self.makes(job.key());
        self.queue = jobs.filter(|job| !known(job)).collect();
    }

    /// Takes a trial that is wanted, when it is there; meanwhile the lanes go on with the others.
    pub(super) fn take(&mut self, job: Job, heard: &mut dyn FnMut(&str)) -> TrialRecord {
        let key = job.key();
        if !self.made.contains_key(&key) && !self.makes(key) {
            self.queue.retain(|other| other.key() != key);
            self.queue.push_front(job);
        }
        loop {
            self.fill();
            if let Some(trial) = self.made.remove(&key) {
                return trial;
            }
            let Some((at, said)) = self.listen() else { continue };
            match said {
                Said::Doing(text) => {
                    if self.lanes[at].makes(key) {
                        heard(&text);
                    }
                }
                // The trial that comes next finds out why there is no guest.
                Said::Up(up) => self.settle(at, up.ok().map(|up| Box::new(up.0))),
                Said::Made(trial, alive) => {
                    self.made.insert((trial.cell, trial.repeat), *trial);
                    self.settle(at, alive);
                }
            }
        }
    }

    /// Goes on with the panic of a lane that had one: it will never say anything.
    fn panicked(&mut self) {
        let ended =
            |lane: &mut Lane| matches!(lane, Lane::Busy { thread, .. } if thread.is_finished());
        for lane in self.lanes.iter_mut().filter_map(|lane| ended(lane).then_some(lane)) {
            if let Lane::Busy { thread, .. } = std::mem::replace(lane, Lane::Free(None))
                && let Err(panic) = thread.join()
            {
                std::panic::resume_unwind(panic);
            }
        }
    }

    /// Whether a lane is at work on this.
    fn makes(&self, wanted: (usize, u32)) -> bool {
        self.lanes.iter().any(|lane| lane.makes(wanted))
    }

    /// Gives free lanes something to do.
    fn fill(&mut self) {
        for at in 0..self.lanes.len() {
            let Lane::Free(alive) = &self.lanes[at] else { continue };
            let Some(place) = self.fitting(alive.as_deref()) else { continue };
            let Some(job) = self.queue.remove(place) else { continue };
            self.start(at, job);
        }
    }

    /// Which of the trials in the queue a lane takes: the first that wants its kernel; else the
    /// first whose kernel no other lane has booted, as a boot takes longer than many a trial.
    fn fitting(&self, alive: Option<&Alive>) -> Option<usize> {
        let own = alive.map(|alive| &alive.kernel);
        let fits = |job: &Job| {
            let kernel = kernel_of(&job.cell);
            own.is_some_and(|own| kernel.is_none() || *own == kernel)
        };
        let elsewhere = |job: &Job| {
            let wanted = kernel_of(&job.cell);
            wanted.is_some()
                && self.lanes.iter().any(|lane| match lane {
                    Lane::Free(alive) => alive.as_ref().is_some_and(|alive| alive.kernel == wanted),
                    Lane::Busy { kernel, .. } => *kernel == wanted,
                })
        };
        let first = self.queue.iter().position(fits);
        first.or_else(|| self.queue.iter().position(|job| !elsewhere(job)))
    }

    fn start(&mut self, at: usize, job: Job) {
        let lane = std::mem::replace(&mut self.lanes[at], Lane::Free(None));
        let Lane::Free(alive) = lane else { return };
        let key = job.key();
        let own = alive.as_ref().and_then(|alive| alive.kernel.clone());
        let kernel = kernel_of(&job.cell).or(own);
        let (common, saying) = (self.common.clone(), self.saying.clone());
        let thread = std::thread::spawn(move || {
            let mut alive = alive;
            let mut doing = |text: &str| {
                let _gone = saying.send((at, Said::Doing(text.to_owned())));
            };
            let trial = common.trial(at, &mut alive, &job, &mut doing);
            let _gone = saying.send((at, Said::Made(Box::new(trial), alive)));
        });
        self.lanes[at] = Lane::Busy { key: Some(key), kernel, thread };
    }

    /// Ends all guests, once the trials that are being made have ended: at once, if the run was
    /// interrupted.
    pub(super) fn end(&mut self) {
        for lane in self.lanes.drain(..) {
            match lane {
                Lane::Free(Some(alive)) => alive.end(),
                Lane::Free(None) => {}
                Lane::Busy { thread, .. } => {
                    let _panicked = thread.join();
                }
            }
        }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        self.end();
    }
}

impl Alive {
    /// Switches it off.
    fn end(self) {
        // What it could not end itself, its cage does.
        let _ended = self.machine.halt();
    }
}

impl Common {
    /// Boots a guest for a lane.
    fn boot(&self, lane: usize, kernel: Option<&str>) -> anyhow::Result<(Alive, Begun)> {
        let (mut machine, facts) = self.machines.boot(lane, kernel)?;
        let request = Request::Begin(Box::new((*self.begin).clone()));
        let mut begun = match ask(&mut machine, &request, &mut |_| {})? {
            Answer::Begun(begun) => *begun,
            Answer::Failed(why) => anyhow::bail!("in the guest: {why}"),
            Answer::Trial(_) => anyhow::bail!("the guest answered out of turn"),
        };
        begun.environment.merge(facts);
        let facts = begun.environment.clone();
        let kernel = kernel.map(str::to_owned);
        Ok((Alive { machine, kernel, facts, used: false }, begun))
    }

    /// Makes a trial, in the guest that is there if it fits, else in a new one. A guest that dies
    /// is the failure of its trial, with what its console said.
    fn trial(
        &self,
        lane: usize,
        alive: &mut Option<Box<Alive>>,
        job: &Job,
        heard: &mut dyn FnMut(&str),
    ) -> TrialRecord {
        let (started, started_unix) = (Instant::now(), now_unix());
        let mut trial = match self.made(lane, alive, job, heard) {
            Ok(trial) => trial,
            Err(error) => {
                let (reason, evidence) = died(alive.take(), &error);
                TrialRecord {
                    cell: job.index,
                    repeat: job.repeat,
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
        let machines = &self.machines;
        if machines.clock() != Clock::Wall {
            // What the run takes is told by the clock of the host, whatever the guest's counts.
            (trial.elapsed, trial.started_unix) = (started.elapsed().into(), started_unix);
        }
        let (engine, latency) = (machines.engine(), machines.latency());
        let phases: Vec<String> = trial.samples.iter().map(|sample| sample.phase.clone()).collect();
        trial.warnings.extend(warnings(engine, latency, &phases));
        if let Some(alive) = alive {
            let mut facts = beyond(&alive.facts, &self.begin.environment);
            facts.merge(trial.environment);
            trial.environment = facts;
        }
        trial
    }

    fn made(
        &self,
        lane: usize,
        alive: &mut Option<Box<Alive>>,
        job: &Job,
        heard: &mut dyn FnMut(&str),
    ) -> anyhow::Result<TrialRecord> {
        let kernel = kernel_of(&job.cell);
        let fits = |alive: &Alive| {
            let fresh = self.isolation == Isolation::Remount || !alive.used;
            (kernel.is_none() || alive.kernel == kernel) && fresh
        };
        let own = match alive.take() {
            Some(own) if fits(&own) => own,
            other => {
                // Before the next one boots, which is to have its disks.
                other.into_iter().for_each(|other| other.end());
                Box::new(self.boot(lane, kernel.as_deref())?.0)
            }
        };
        let own = alive.insert(own);
        own.used = true;
        let mut cell = job.cell.clone();
        cell.factors.remove(&Factor::Kernel);
        let (index, repeat) = (job.index, job.repeat);
        let request = Request::Trial { cell: Box::new(cell), index, repeat };
        match ask(&mut own.machine, &request, heard)? {
            Answer::Trial(trial) => Ok(*trial),
            Answer::Failed(why) => anyhow::bail!("in the guest: {why}"),
            Answer::Begun(_) => anyhow::bail!("the guest answered out of turn"),
        }
    }
}

/// What a guest that died leaves: why, and the end of its console.
fn died(alive: Option<Box<Alive>>, error: &anyhow::Error) -> (String, Vec<(String, Evidence)>) {
    let console = alive.map(|alive| alive.machine.console()).unwrap_or_default();
    let lines: Vec<&str> = console.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = &lines[lines.len().saturating_sub(KEPT_LINES)..];
    let line = |text: &&str| LogLine { level: 6, fatal: false, text: (*text).to_owned() };
    let log: Vec<LogLine> = last.iter().map(line).collect();
    let evidence =
        (!log.is_empty()).then(|| (CONSOLE.to_owned(), Evidence { log, ..Evidence::default() }));
    (chain(error.as_ref()), evidence.into_iter().collect())
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
