//! Trials that run on several hosts: the conductor's side.
//!
//! All hosts run the same steps. When all have reached a step, they proceed. A measured phase
//! starts at an instant that all clocks reach together. If a host is lost, the trial is invalid,
//! and the next trial starts a new session.
#![expect(clippy::wildcard_enum_match_arm, reason = "messages of other steps are skipped")]

use std::{
    collections::BTreeMap,
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use model::{
    Cell, Environment, Nanos, Phase, RunRecord, Warning,
    phase::Role,
    record::{Outcome, TrialRecord},
};

use super::{
    Cluster,
    connection::{Lost, Session},
    messages::{Answer, Clocks, Request},
};
use crate::runner::{
    RunObserver, Trials,
    events::Event,
    hosts::{HostPhase, Merger, Origin, Place, hosts_of, on_all_hosts, reads_own},
    now_unix,
};

/// Time between the announcement of a start and the start. It is doubled when a host got the
/// announcement too late.
const LEAD: Nanos = Nanos(100_000_000);
/// Longest `LEAD`.
const LONGEST_LEAD: Nanos = Nanos(5_000_000_000);
/// Pauses between attempts to start a session.
const RELAUNCH: [Duration; 3] =
    [Duration::from_secs(2), Duration::from_secs(8), Duration::from_secs(20)];
/// Time before a deadline from which the relays exchange messages often. Until then, they sleep for
/// at most a second.
const BEFORE_DEADLINE: Nanos = Nanos(1_500_000_000);
/// Longest wait for the end of a canceled trial.
const CANCELED: Duration = Duration::from_secs(60);

/// Hosts of a run, with its observer.
pub(crate) struct OnHosts<'a> {
    cluster: Cluster,
    session: Option<Session>,
    observer: RunObserver<'a>,
    merger: Merger<'a>,
    seed: u64,
    number: u64,
    lead: Nanos,
}

/// Trial in progress.
#[derive(Default)]
struct Progress {
    /// Hosts that have reached each step.
    reached: BTreeMap<u64, usize>,
    /// Hosts whose workers are prepared, by step.
    prepared: BTreeMap<u64, usize>,
    /// Phases that have started, with the start and the clocks before it.
    started: Vec<(Nanos, Clocks)>,
    /// Instant before the deadline of the phase that is measured.
    deadline: Option<Nanos>,
    /// Numbers of operations at the deadline, by step.
    at_deadline: BTreeMap<u64, Vec<u64>>,
    /// Clocks after each phase.
    after: Vec<Clocks>,
    /// Results of the phases.
    results: Vec<(usize, HostPhase)>,
    /// Records of the hosts.
    ended: BTreeMap<usize, Option<TrialRecord>>,
    /// First failure.
    failure: Option<String>,
    /// Disturbance.
    missed: Option<String>,
    canceled: Option<Instant>,
}

impl<'a> OnHosts<'a> {
    /// Trials of a run; `record` is the current content of the store.
    pub(crate) fn new(
        mut cluster: Cluster,
        record: &RunRecord,
        memory_limited: bool,
        observer: RunObserver<'a>,
    ) -> Self {
        let session = cluster.session.take();
        cluster.begin.environment = record.environment.clone();
        let merger = Merger::new(record, memory_limited, observer);
        let seed = record.info.seed;
        Self { cluster, session, observer, merger, seed, number: 0, lead: LEAD }
    }

    /// Starts a new session. A host may need some time until it can be reached again.
    fn launch(&self) -> Result<Session, Lost> {
        let mut pauses = RELAUNCH.iter();
        loop {
            let launched = self.cluster.launch(self.observer.interrupt);
            let Err(lost) = launched else { return launched.map(|(session, _)| session) };
            let Some(pause) = pauses.next() else { return Err(lost) };
            let ends = Instant::now() + *pause;
            while Instant::now() < ends {
                if self.observer.interrupt.load(Relaxed) {
                    return Err(lost);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
        }
    }

    fn trial(
        &mut self,
        session: &mut Session,
        cell: &Cell,
        index: usize,
        repetition: u32,
    ) -> Result<Option<TrialRecord>, Lost> {
        let all = u32::try_from(session.agents.len()).unwrap_or(u32::MAX);
        let place = Place::of(cell, 0, all);
        let hosts = place.of as usize;
        self.number += 1;
        let (number, boxed) = (self.number, Box::new(cell.clone()));
        let request = Request::Trial { number, cell: boxed, index, repetition, hosts: place.of };
        session.send(&request)?;
        let mut progress = Progress::default();
        while progress.ended.len() < hosts {
            if self.observer.interrupt.load(Relaxed) {
                cancel(session, &mut progress)?;
            }
            if progress.canceled.is_some_and(|since| since.elapsed() > CANCELED) {
                return Err(Lost { host: None, why: "a canceled trial did not end".into() });
            }
            if progress.deadline.is_some_and(|deadline| engine::now() >= deadline) {
                progress.deadline = None;
                session.measuring(false)?;
            }
            if let Some((host, answer)) = session.receive(Duration::from_millis(50))? {
                self.answer(session, &mut progress, (host, answer), hosts)?;
            }
        }
        if self.observer.interrupt.load(Relaxed) {
            return Ok(None);
        }
        Ok(Some(self.record(session, cell, (index, repetition), place, progress)))
    }

    /// Handles a message of a host.
    fn answer(
        &mut self,
        session: &mut Session,
        progress: &mut Progress,
        (host, answer): (usize, Answer),
        hosts: usize,
    ) -> Result<(), Lost> {
        let name = &session.agents[host].name;
        match answer {
            Answer::Directory { path } if host == 0 => {
                session.send(&Request::Directory { path })?
            }
            Answer::Reached { step, name } => {
                let reached = progress.reached.entry(step).or_default();
                *reached += 1;
                if *reached == hosts {
                    if !name.contains(',') {
                        (self.observer.notify)(&Event::PhaseStarted { name: &name, time: None });
                    }
                    session.send(&Request::Proceed { step })?;
                }
            }
            Answer::Prepared { step, deadline } => {
                let prepared = progress.prepared.entry(step).or_default();
                *prepared += 1;
                if *prepared == hosts {
                    let clocks = session.clocks()?;
                    let start = engine::now() + self.lead;
                    session.send(&Request::Start {
                        step,
                        instants: instants(session, &clocks, start),
                    })?;
                    session.measuring(true)?;
                    progress.deadline =
                        deadline.map(|time| Nanos((start + time).0 - BEFORE_DEADLINE.0));
                    progress.started.push((start, clocks));
                }
            }
            Answer::AtDeadline { step, operations } => {
                at_deadline(session, progress, (step, operations), hosts)?;
            }
            Answer::Missed { by } => {
                self.lead = Nanos(self.lead.0.saturating_mul(2)).min(LONGEST_LEAD);
                let reason = format!("host {name} got the start {by} after the agreed instant");
                progress.missed.get_or_insert(reason);
            }
            Answer::Phase(result) => {
                progress.results.push((host, *result));
                if progress.results.len() == progress.started.len() * hosts {
                    session.measuring(false)?;
                    let clocks = session.clocks()?;
                    progress.after.push(clocks);
                }
            }
            Answer::TrialEnded(record) => {
                let reason = match record.as_ref() {
                    Some(TrialRecord { outcome: Outcome::Failed { reason }, .. }) => {
                        Some(format!("host {name}: {reason}"))
                    }
                    None if progress.canceled.is_none() => Some(format!(
                        "host {name} could not continue; check that it sees the files of the other \
                         hosts"
                    )),
                    Some(_) | None => None,
                };
                progress.ended.insert(host, *record);
                if let Some(reason) = reason {
                    progress.failure.get_or_insert(reason);
                    cancel(session, progress)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Record of a trial that has ended on all hosts.
    fn record(
        &self,
        session: &Session,
        cell: &Cell,
        (index, repetition): (usize, u32),
        place: Place,
        mut progress: Progress,
    ) -> TrialRecord {
        let mut trial =
            progress.ended.remove(&0).flatten().unwrap_or_else(|| empty(index, repetition));
        for other in progress.ended.values().flatten() {
            for warning in &other.warnings {
                if !trial.warnings.contains(warning) {
                    trial.warnings.push(warning.clone());
                }
            }
        }
        if let Some(reason) = progress.failure.take() {
            trial.outcome = Outcome::Failed { reason };
            return trial;
        }
        let workload = on_all_hosts(&cell.workload, place.of);
        let phases =
            suites::find(&workload.suite).map(|suite| (suite.phases)(&workload, self.seed));
        let measured = phases.into_iter().flatten().filter(|phase| phase.role == Role::Measure);
        for (at, phase) in measured.enumerate() {
            if let Err(reason) = self.phase(session, &phase, at, place, &progress, &mut trial) {
                trial.outcome = Outcome::Failed { reason };
                return trial;
            }
        }
        if let Some(reason) = progress.missed {
            trial.outcome = Outcome::Invalid { reason };
        }
        trial
    }

    /// Adds the results of a phase to a trial.
    fn phase(
        &self,
        session: &Session,
        phase: &Phase,
        at: usize,
        place: Place,
        progress: &Progress,
        trial: &mut TrialRecord,
    ) -> Result<(), String> {
        let missing = || format!("the results of {} are incomplete", phase.name);
        let (start, before) = progress.started.get(at).ok_or_else(missing)?;
        let after = progress.after.get(at).ok_or_else(missing)?;
        let own = progress.results.iter().filter(|(_, result)| result.phase == phase.name);
        let mut results: Vec<(Origin<'_>, HostPhase)> = Vec::new();
        for (host, result) in own {
            let (before, after) = before.get(host).zip(after.get(host)).ok_or_else(missing)?;
            let (offset, bound) = between(*before, *after);
            let index = u32::try_from(*host).unwrap_or(u32::MAX);
            let host = &session.agents[*host].name;
            results.push((Origin { index, host, offset, bound }, result.clone()));
        }
        results.sort_by_key(|(origin, _)| origin.index);
        if results.len() != place.of as usize {
            return Err(missing());
        }
        let merged = self.merger.merge(phase, &results, *start)?;
        trial.samples.extend(merged.samples);
        trial.histograms.extend(merged.histograms);
        trial.series.extend(merged.series);
        trial.activity.extend(merged.activity);
        trial.warnings.extend(merged.warnings);
        trial.environment.merge(merged.environment);
        trial.hosts.extend(merged.hosts);
        if reads_own(phase, place.of, place.shift) {
            trial.warnings.push((Some(phase.name.clone()), Warning::OwnDataRead));
        }
        Ok(())
    }
}

/// Offset in the middle between two measurements, and the largest error: the clocks may drift.
fn between((before, first): (i64, Nanos), (after, second): (i64, Nanos)) -> (i64, Nanos) {
    let drift = after - before;
    (before + drift / 2, first.max(second) + Nanos(drift.unsigned_abs() / 2))
}

/// Instant of the start in the time of each rank.
fn instants(session: &Session, clocks: &Clocks, start: Nanos) -> Vec<Nanos> {
    let ranks = session.agents.iter().map(|agent| agent.rank + 1).max().unwrap_or(0);
    let mut instants = vec![start; ranks];
    for (host, (offset, _)) in clocks {
        instants[session.agents[*host].rank] = Nanos(start.0.wrapping_add(offset.cast_unsigned()));
    }
    instants
}

/// Handles the number of operations of a host at the deadline of a phase. When all hosts have sent
/// theirs, they continue up to the largest one.
fn at_deadline(
    session: &mut Session,
    progress: &mut Progress,
    (step, operations): (u64, u64),
    hosts: usize,
) -> Result<(), Lost> {
    let counts = progress.at_deadline.entry(step).or_default();
    counts.push(operations);
    if counts.len() == hosts {
        let operations = counts.iter().copied().max().unwrap_or(0);
        session.send(&Request::Agreed { step, operations })?;
        session.measuring(true)?;
    }
    Ok(())
}

fn cancel(session: &mut Session, progress: &mut Progress) -> Result<(), Lost> {
    if progress.canceled.is_none() {
        progress.canceled = Some(Instant::now());
        session.send(&Request::Cancel)?;
    }
    Ok(())
}

/// Record of a trial without results.
fn empty(cell: usize, repetition: u32) -> TrialRecord {
    TrialRecord {
        cell,
        repetition,
        attempt: 0,
        started_unix: now_unix(),
        elapsed: Nanos(0),
        outcome: Outcome::Measured,
        samples: Vec::new(),
        histograms: Vec::new(),
        series: Vec::new(),
        activity: Vec::new(),
        warnings: Vec::new(),
        actions: Vec::new(),
        environment: Environment::default(),
        hosts: Vec::new(),
    }
}

impl Trials for OnHosts<'_> {
    fn describe(&self) -> String {
        self.cluster.describe()
    }

    fn measure(&mut self, cell: &Cell, index: usize, repetition: u32) -> Option<TrialRecord> {
        let (started, started_unix) = (Instant::now(), now_unix());
        let session = match self.session.take() {
            Some(session) => Ok(session),
            None => {
                (self.observer.notify)(&Event::PhaseStarted { name: "launch", time: None });
                self.launch()
            }
        };
        let measured = session.and_then(|mut session| {
            let trial = self.trial(&mut session, cell, index, repetition)?;
            self.session = Some(session);
            Ok(trial)
        });
        if self.observer.interrupt.load(Relaxed) {
            return None;
        }
        let mut trial = match measured {
            Ok(trial) => trial?,
            Err(lost) => TrialRecord {
                outcome: Outcome::Invalid { reason: lost.reason() },
                ..empty(index, repetition)
            },
        };
        (trial.started_unix, trial.elapsed) = (started_unix, started.elapsed().into());
        Some(trial)
    }

    fn reboot_required(&self) -> bool {
        false
    }

    fn close(self) -> anyhow::Result<()> {
        if let Some(session) = self.session {
            session.end();
        }
        Ok(())
    }
}

/// Number of hosts that a plan needs at most; `None` if it uses all.
pub(super) fn most_hosts<'a>(cells: impl Iterator<Item = &'a Cell>) -> Option<u32> {
    cells.filter_map(hosts_of).max()
}
