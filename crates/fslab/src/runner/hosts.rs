//! Phases of a trial that runs on several hosts.
//!
//! Each host runs the same trial with its share of the workers ([`share`]). Between two steps, it
//! waits for the other hosts ([`HostGate`]). The results of a phase are not converted to samples
//! on a host: the conductor merges them ([`merge`]) and converts them once, like those of a phase
//! on one host.

mod merge;

use std::path::{Path, PathBuf};

use engine::Start;
use model::{
    Cell, Phase, PhaseResult, SystemActivity, SystemSetting, Warning, WorkloadParameters,
    cluster::{Network, READER_SHIFT},
    phase::{Direction, TreeStep, Work, WorkerShare, Workers},
    workload::Value,
};

pub(crate) use merge::{HostPhase, Merger, Origin};

/// Interrupted or failed step; the reason is that of this host.
pub(crate) type Waited<T> = Result<T, Canceled>;

/// The trial was canceled by the conductor, or its connection ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Canceled;

/// Connection of a trial on one host to those on the other hosts.
pub(crate) trait HostGate {
    /// Place of this host among the hosts of a cell.
    fn place(&self, cell: &Cell) -> Place;

    /// Directory of the trial, which the first host creates. `own` is the directory of this host.
    fn directory(&self, own: &Path) -> Waited<PathBuf>;

    /// Waits until all hosts have reached this step.
    fn fence(&self, step: &str) -> Waited<()>;

    /// Runs a measured phase that starts at the same instant on all hosts. `run` gets the start, or
    /// `None` if this host does not take part.
    fn measure(
        &self,
        phase: &Phase,
        takes_part: bool,
        run: &mut dyn FnMut(Option<Start<'_>>) -> bool,
    ) -> Waited<()>;

    /// Sends the result of a measured phase to the conductor.
    fn send(&self, phase: &Phase, result: &PhaseResult, known: PhaseData) -> Waited<()>;

    /// Reads the network counters of this host.
    fn network(&self) -> Option<Network>;
}

/// Data about a measured phase besides its result.
#[derive(Clone, Debug, Default)]
pub(crate) struct PhaseData {
    /// System activity of the host.
    pub(crate) activity: SystemActivity,
    /// Network traffic of the host.
    pub(crate) network: Option<Network>,
    /// Load generator overhead in nanoseconds per operation.
    pub(crate) generator: Option<f64>,
    /// Warnings of the preparation.
    pub(crate) warnings: Vec<Warning>,
}

/// Place of a host in a trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Index of the host.
    pub(crate) index: u32,
    /// Number of hosts.
    pub(crate) of: u32,
    /// Number of hosts by which reads are shifted.
    pub(crate) shift: u32,
}

impl Place {
    /// Place of a host in the trials of a cell; `all` is the number of hosts of the run.
    pub(crate) fn of(cell: &Cell, index: u32, all: u32) -> Self {
        let of = hosts_of(cell).unwrap_or(all);
        Self { index, of, shift: count(cell, SystemSetting::ReaderShift).unwrap_or(READER_SHIFT) }
    }
}

/// Number of hosts that a cell names.
pub(crate) fn hosts_of(cell: &Cell) -> Option<u32> {
    count(cell, SystemSetting::Hosts)
}

fn count(cell: &Cell, setting: SystemSetting) -> Option<u32> {
    let Some(Value::Count(count)) = cell.settings.get(&setting) else { return None };
    u32::try_from(*count).ok()
}

/// Workload with the workers of all hosts. In a plan, the number of workers is that of each host.
pub(crate) fn on_all_hosts(workload: &WorkloadParameters, hosts: u32) -> WorkloadParameters {
    let mut workload = workload.clone();
    if let Some(Value::Count(workers)) = workload.parameters.get_mut("workers") {
        *workers = workers.saturating_mul(hosts.into());
    }
    workload
}

/// Restricts a phase to the workers of a host. Returns false if the host has none. Work that one
/// worker does, and work that is not divided, belongs to the first host.
pub(crate) fn share(phase: &mut Phase, place: Place) -> bool {
    let Place { index, of, shift } = place;
    let reads = reads_only(&phase.work) && own_shift(&phase.work) == 0;
    let Some(workers) = workers_of(&mut phase.work) else { return index == 0 };
    if of == 1 {
        return true;
    }
    if workers.count < of {
        return index == 0;
    }
    let each = workers.count / of;
    let shift = if reads { (shift % of) * each } else { 0 };
    workers.share = Some(WorkerShare { first: index * each, count: each, shift });
    if let Work::Tree(tree) = &mut phase.work {
        tree.selection.shift = tree.selection.shift % of * each;
    }
    true
}

/// Workers by which the workload itself shifts the phase. On several hosts, the unit is all workers
/// of a host.
fn own_shift(work: &Work) -> u32 {
    if let Work::Tree(tree) = work { tree.selection.shift } else { 0 }
}

/// True if a phase with several hosts reads what its workers wrote, without a shift.
pub(crate) fn reads_own(phase: &Phase, hosts: u32, shift: u32) -> bool {
    let shift = match own_shift(&phase.work) {
        0 => shift,
        own => own,
    };
    reads_only(&phase.work) && hosts > 1 && shift.is_multiple_of(hosts)
}

fn workers_of(work: &mut Work) -> Option<&mut Workers> {
    match work {
        Work::Stream(stream) => Some(&mut stream.workers),
        Work::Tree(tree) => Some(&mut tree.workers),
        Work::Mix(mix) => Some(&mut mix.workers),
        Work::Coherence(coherence) => Some(&mut coherence.workers),
        Work::Layout(_)
        | Work::Replay(_)
        | Work::Task(_)
        | Work::Command(_)
        | Work::Sqlite(_)
        | Work::Mail(_)
        | Work::Trace(_)
        | Work::Maintenance(_)
        | Work::Remove { .. } => None,
    }
}

fn reads_only(work: &Work) -> bool {
    match work {
        Work::Stream(stream) => stream.direction == Direction::Read,
        Work::Tree(tree) => !tree.steps.iter().copied().any(TreeStep::changes),
        Work::Mix(_)
        | Work::Layout(_)
        | Work::Replay(_)
        | Work::Task(_)
        | Work::Command(_)
        | Work::Sqlite(_)
        | Work::Mail(_)
        | Work::Trace(_)
        | Work::Maintenance(_)
        | Work::Coherence(_)
        | Work::Remove { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(direction: &str, hosts: u32) -> Vec<Phase> {
        let suite = suites::find("stream").unwrap();
        let mut point = suite.spec.defaults();
        for (name, text) in [("workers", "2"), ("direction", direction)] {
            let kind = suite.spec.parameter(name).unwrap().kind;
            point.parameters.insert(name.into(), kind.read(text).unwrap());
        }
        let point = (suite.refine)(point).unwrap().remove(0);
        (suite.phases)(&on_all_hosts(&point, hosts), 1)
    }

    /// Indices of the workers of each host in the last phase.
    fn indices(direction: &str, hosts: u32, shift: u32) -> Vec<Vec<u32>> {
        let host = |index| {
            let mut phase = stream(direction, hosts).pop().unwrap();
            let takes_part = share(&mut phase, Place { index, of: hosts, shift });
            let workers = *workers_of(&mut phase.work).unwrap();
            let local = if takes_part { workers.local() } else { 0 };
            (0..local).map(|slot| workers.index(slot)).collect()
        };
        (0..hosts).map(host).collect()
    }

    #[test]
    fn all_workers_are_divided_among_the_hosts() {
        assert_eq!(indices("write", 3, 1), [[0, 1], [2, 3], [4, 5]]);
        assert_eq!(indices("write", 1, 1), [[0, 1]]);
    }

    #[test]
    fn reads_are_shifted_by_whole_hosts() {
        assert_eq!(indices("read", 3, 1), [[2, 3], [4, 5], [0, 1]]);
        assert_eq!(indices("read", 3, 3), indices("read", 3, 0), "modulo the hosts");
        let phase = stream("read", 3).pop().unwrap();
        assert!(reads_own(&phase, 3, 0) && reads_own(&phase, 3, 6));
        assert!(!reads_own(&phase, 3, 1) && !reads_own(&phase, 1, 0));
    }

    #[test]
    fn workers_of_mdtest_are_shifted_by_hosts() {
        let suite = suites::find("mdtest").unwrap();
        let mut point = suite.spec.defaults();
        for (name, text) in [("workers", "2"), ("worker_shift", "1")] {
            let kind = suite.spec.parameter(name).unwrap().kind;
            point.parameters.insert(name.into(), kind.read(text).unwrap());
        }
        let point = (suite.refine)(point).unwrap().remove(0);
        let phases = (suite.phases)(&on_all_hosts(&point, 3), 1);
        let owners = |name: &str| -> Vec<Vec<u32>> {
            let phase = phases.iter().find(|phase| phase.name == name).unwrap();
            let host = |index| {
                let mut phase = phase.clone();
                let takes_part = share(&mut phase, Place { index, of: 3, shift: 1 });
                let Work::Tree(tree) = &phase.work else { panic!("a tree") };
                let local = if takes_part { tree.workers.local() } else { 0 };
                (0..local).map(|slot| tree.owner(tree.workers.index(slot), 0)).collect()
            };
            (0..3).map(host).collect()
        };
        assert_eq!(owners("file-create"), [[0, 1], [2, 3], [4, 5]]);
        assert_eq!(owners("file-stat"), [[2, 3], [4, 5], [0, 1]], "not by reader_shift as well");
        assert_eq!(owners("file-read"), [[4, 5], [0, 1], [2, 3]]);
        assert_eq!(owners("file-remove"), [[0, 1], [2, 3], [4, 5]]);
        assert_eq!(owners("tree-create"), [vec![0], vec![], vec![]]);
        let stat = phases.iter().find(|phase| phase.name == "file-stat").unwrap();
        assert!(!reads_own(stat, 3, 0) && reads_own(stat, 1, 0) == reads_own(stat, 1, 1));
    }

    #[test]
    fn work_that_is_not_divided_belongs_to_the_first_host() {
        let place = |index| Place { index, of: 2, shift: 1 };
        let mut phase = stream("read", 2).pop().unwrap();
        phase.work = Work::Remove { files: model::phase::FileSharing::One("f".into()), workers: 1 };
        assert!(share(&mut phase.clone(), place(0)) && !share(&mut phase, place(1)));
    }
}
