//! Suite `coherence`: the time until a change by one worker is visible to workers on other hosts.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Nanos, Phase, SuiteSpec, WorkloadParameters,
    phase::{Cache, Change, Coherence, Role, Timed, Work, Workers},
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, parameter, shared::has};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("changes", Kind::Words(&["create", "append", "overwrite", "rename", "unlink"]), "create,append,overwrite,rename,unlink", "Changes to measure; they run in the order of the suite."),
    parameter("workers", Kind::Count { min: 2, max: 1024 }, "2", "Number of workers; worker 0 makes the changes."),
    parameter("count", Kind::Count { min: 20, max: 1 << 20 }, "20", "Number of changes of each kind; a median needs 20."),
    parameter("interval", Kind::Time, "100ms", "Time between the starts of two changes."),
    parameter("poll_interval", Kind::Time, "1ms", "Pause of a waiting worker between two checks."),
    parameter("timeout", Kind::Time, "2min", "Time after which a change that was not seen fails the trial."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: "coherence",
    title: "Time until a change is visible on other hosts: new files, sizes, data, names.",
    source: "fslab; close-to-open consistency and attribute caching: nfs(5)",
    notes: include_str!("notes.md"),
    clients: None,
    parameters: PARAMETERS,
};

fn refine(point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    if point.time("interval") == Nanos(0) {
        return Err(ValueError::new("`interval` is 0").hint("use a duration such as \"100ms\""));
    }
    if point.time("timeout") <= point.time("poll_interval") {
        return Err(ValueError::new("`timeout` is not longer than `poll_interval`")
            .hint("use a longer `timeout`"));
    }
    Ok(vec![point])
}

fn phases(point: &WorkloadParameters, _seed: u64) -> Vec<Phase> {
    let chosen = Change::ALL.into_iter().filter(|change| has(point, "changes", change.name()));
    let phase = |change: Change| Phase {
        name: change.name().to_owned(),
        group: "coherence".into(),
        role: Role::Measure,
        cache: Cache::Unchanged,
        work: Work::Coherence(Coherence {
            change,
            changes: point.count("count"),
            interval: point.time("interval"),
            poll_interval: point.time("poll_interval"),
            timeout: point.time("timeout"),
            workers: Workers::threads(u32::try_from(point.count("workers")).unwrap_or(u32::MAX)),
        }),
        timed: Timed::default(),
        directory: None,
        together: None,
    };
    chosen.map(phase).collect()
}

/// Two blocks per file, and its inode.
fn footprint(point: &WorkloadParameters) -> Bytes {
    Bytes(3 * 4096 * 5 * point.count("count"))
}
