//! Warnings about a plan that are known before its first trial.

use std::collections::BTreeSet;

use model::{
    Bytes, Cell, Phase, SetupStep, SystemSetting, Warning,
    phase::{Cache, Part, Role, Stream, Work},
};

use crate::plans::ResolvedPlan;

/// Warning about files smaller than twice the memory, because reads and writes may then access
/// memory only. Workloads with direct I/O or warm phases only are excluded.
pub(super) fn fits_memory(
    chosen: &ResolvedPlan,
    environment: &model::Environment,
) -> Option<Warning> {
    let total = environment.get("memory.total_bytes").and_then(|text| text.parse::<u64>().ok());
    let whole_mib = |bytes: u64| Bytes(bytes / Bytes::MIB * Bytes::MIB);
    let memory = chosen.storage.memory_limit.or(total.map(whole_mib))?;
    let points = chosen.cells.iter().map(|labelled| &labelled.cell.workload);
    let concerned = points.filter_map(|point| {
        let suite = suites::find(&point.suite)?;
        let phases = (suite.phases)(point, 0);
        phases.iter().any(depends_on_memory).then(|| (suite.footprint)(point))
    });
    let working_set = concerned.max()?;
    (working_set.0 > 0 && working_set.0 < memory.0.saturating_mul(2))
        .then_some(Warning::FitsInMemory { working_set, memory })
}

/// Warning about sizes that are compared on empty filesystems: the times of mount and fsck depend
/// more on the content than on the size.
pub(super) fn empty_filesystems(chosen: &ResolvedPlan) -> Option<Warning> {
    let is_empty = |cell: &Cell| {
        let populates = |step: &SetupStep| matches!(step, SetupStep::Populate { .. });
        cell.fill_level.is_empty() && !cell.filesystem.setup.iter().any(populates)
    };
    let cells = || chosen.cells.iter().map(|labeled| &labeled.cell);
    let sizes: BTreeSet<String> = cells()
        .filter_map(|cell| cell.settings.get(&SystemSetting::Size).map(ToString::to_string))
        .collect();
    (sizes.len() > 1 && cells().any(is_empty)).then_some(Warning::EmptyFilesystems)
}

/// Warnings about measured members of workloads that run together, if they are streams without an
/// arrival process. A closed loop issues fewer operations while it is disturbed.
pub(super) fn closed_loops(chosen: &ResolvedPlan) -> Vec<Warning> {
    let points = chosen.cells.iter().map(|labeled| &labeled.cell.workload);
    let phases = points.filter_map(|point| {
        let only = suites::together::only(point).is_some();
        let suite = suites::find(&point.suite).filter(|_| !only)?;
        Some((suite.phases)(point, 0))
    });
    let closed = phases.flatten().filter(|phase| {
        let measured = phase.together.is_some_and(|it| it.part == Part::Measured);
        let closed = |stream: &Stream| !stream.pace.is_open();
        measured && matches!(&phase.work, Work::Stream(stream) if closed(stream))
    });
    let members: BTreeSet<String> = closed.map(|phase| phase.name).collect();
    members.into_iter().map(|member| Warning::ClosedLoop { member }).collect()
}

/// Reports whether the memory size affects a result of this phase.
fn depends_on_memory(phase: &Phase) -> bool {
    let around = phase.work.stream().is_some_and(|stream| stream.open.direct || !stream.moves());
    phase.role == Role::Measure && phase.cache != Cache::Warm && !around
}

#[cfg(test)]
mod tests {
    use model::phase::{FileSharing, Open, Timed};

    use super::*;

    #[test]
    fn memory_size_affects_buffered_phases_that_are_not_warm() {
        let stream = Stream::new(FileSharing::One("f".into()), Bytes::mib(1), Bytes::kib(4));
        let mut phase = Phase {
            name: "read".into(),
            group: "reading".into(),
            role: Role::Measure,
            cache: Cache::Cold,
            work: Work::Stream(stream.clone()),
            timed: Timed::default(),
            directory: None,
            together: None,
        };
        assert!(depends_on_memory(&phase));
        phase.cache = Cache::Warm;
        assert!(!depends_on_memory(&phase));
        let open = Open { direct: true, ..Open::default() };
        let direct = Work::Stream(Stream { open, ..stream });
        assert!(!depends_on_memory(&Phase { cache: Cache::Cold, work: direct, ..phase }));
    }
}
