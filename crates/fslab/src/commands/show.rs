//! `fslab show`: prints what a plan would do, without changing anything.

mod design;
mod storage;
mod workloads;

use std::{collections::BTreeSet, path::Path};

use model::{
    Bytes, FilesystemLevel, Isolation, Nanos, WorkloadParameters,
    phase::{Phase, Role, TreeStep, Work},
    plan::InvalidTrials,
    record::{CellRecord, CellState},
    storage::StorageKind,
    units::plural,
};
use rig::{
    Availability, Catalog, Filesystem, RealHost, ResolvedOptions,
    catalog::Kind,
    layers::{self, DeviceRequirement},
    mount::{MountRequest, Mounting},
    resolve_options,
    setup::{self, SetupTarget, Stage},
};

use super::{
    guest::{self, PlannedGuests},
    settings,
};
use crate::{
    cells,
    cli::Show,
    exit::{Exit, Failure},
    output,
    plans::ResolvedPlan,
    runner::{task_files::needs_external_directory, time_of},
};

pub(super) fn run(show: &Show) -> Result<Exit, Failure> {
    let catalog = super::catalog(show.changes.catalog.as_deref())?;
    let chosen = ResolvedPlan::new(&show.plan, &show.changes, &catalog)?;
    let catalog = chosen.catalog.clone();
    if show.text {
        output::result(&chosen.text)?;
        return Ok(Exit::Success);
    }
    cells::check_space(&chosen, &catalog)?;
    let guests = guest::planned(&chosen);
    let cells = match &guests {
        None => cells::of(&chosen, &catalog, &RealHost, 0),
        Some(_) => cells::in_guests(&chosen, &catalog, &RealHost, 0),
    };
    let mut lines = Vec::new();
    if chosen.from_options {
        lines.push("plan, printed alone by --text".to_owned());
        lines.extend(chosen.text.lines().map(|line| format!("  {line}").trim_end().to_owned()));
        lines.push(String::new());
    }
    let stand = match &guests {
        None => format!("{}{}", chosen.storage, memory_limit(&chosen)),
        Some(Ok(guests)) => guests.storage.clone(),
        Some(Err(_)) => "image files as the disks of a guest".into(),
    };
    lines.extend(head(&chosen, &stand));
    lines.extend(external_directory(&chosen, &cells));
    lines.extend(loads(&chosen)?);
    match &guests {
        None => {
            storage::storage(&chosen, &mut lines);
            lines.extend(settings::writes(&RealHost, &chosen.storage, &cells));
        }
        Some(guests) => lines.extend(kernels(guests)),
    }
    let guests = guests.as_ref().map(|guests| guests.as_ref().ok());
    filesystems(&Place { chosen: &chosen, catalog: &catalog, guests }, &cells, &mut lines);
    workloads::workloads(&cells, &mut lines);
    let in_memory = guests.flatten().is_some_and(|guests| guests.in_memory);
    forecast(&chosen, &cells, in_memory, &mut lines);
    output::lines(&lines)?;
    Ok(Exit::Success)
}

fn memory_limit(chosen: &ResolvedPlan) -> String {
    let limit = chosen.storage.memory_limit;
    limit.map(|bytes| format!(", memory limited to {}", bytes.rough())).unwrap_or_default()
}

/// Kernels of the guests, or the reason why none can run.
fn kernels(guests: &Result<PlannedGuests, Failure>) -> Vec<String> {
    let mut lines = match guests {
        Ok(guests) => {
            let name = |kernel: &Option<String>| {
                kernel.clone().unwrap_or_else(|| "the newest one available".into())
            };
            let names: Vec<String> = guests.kernels.iter().map(name).collect();
            vec![
                format!("kernel      {}", names.join(", ")),
                "            Filesystems that a guest does not support are skipped at the start of \
                 the run."
                    .into(),
            ]
        }
        Err(failure) => vec![format!("REJECTED    {}", failure.message())],
    };
    lines.push(String::new());
    lines
}

fn head(chosen: &ResolvedPlan, storage: &str) -> Vec<String> {
    let plan = &chosen.plan;
    let mut lines = vec![
        plan.title.clone(),
        format!("storage     {storage}"),
        format!("repetitions {} (profile {})", plan.repetitions_in_words(), plan.profile.name()),
        format!("scale       {}", chosen.scale),
    ];
    if let Some(limit) = plan.time_limit {
        lines.push(format!("time limit  {}", report::duration(limit)));
    }
    if plan.invalid_trials() == InvalidTrials::Rerun {
        lines.push("invalid     trials are rerun".into());
    }
    if plan.isolation != Isolation::default() {
        lines.push(format!("isolation   {}", plan.isolation.name()));
    }
    lines.extend(design::options(plan));
    if !plan.fill_levels.is_empty() {
        let levels: Vec<_> = plan.fill_levels.iter().map(ToString::to_string).collect();
        lines.push(format!("fill        {} before each workload", levels.join(", ")));
    }
    lines
}

/// Loadfiles of the plan.
fn loads(chosen: &ResolvedPlan) -> Result<Vec<String>, Failure> {
    let line = |facts: &model::Environment| {
        let fact = |name| facts.get(name).unwrap_or_default();
        let (label, operations) = (fact("loadfile.label"), fact("loadfile.operations"));
        format!("loadfile    {label}: {operations} operations, {}", fact("loadfile.mix"))
    };
    Ok(super::loadfile::of(chosen)?.iter().map(line).collect())
}

/// External directory, if a task needs one.
fn external_directory(chosen: &ResolvedPlan, cells: &[CellRecord]) -> Option<String> {
    let needs = |record: &CellRecord| {
        let suite = suites::find(&record.cell.workload.suite);
        let phases = suite.map(|suite| (suite.phases)(&record.cell.workload, 0));
        phases.is_some_and(|phases| phases.iter().any(needs_external_directory))
    };
    let place = chosen.storage.external_directory.as_deref().unwrap_or("in memory");
    cells.iter().any(needs).then(|| format!("external    {place}, source and target of copies"))
}

/// Plan with the devices on which it will be measured.
struct Place<'a> {
    chosen: &'a ResolvedPlan,
    catalog: &'a Catalog,
    /// Guests of the plan, if it has any and they can run here.
    guests: Option<Option<&'a PlannedGuests>>,
}

impl Place<'_> {
    /// Devices, and the size of each if it is in the plan; those of the first level of the axis
    /// `device`. `None` for a directory.
    fn devices(&self) -> Option<(Vec<String>, Bytes)> {
        match self.chosen.storage.kind.each().first()?.1 {
            StorageKind::Image { count, size, .. } => {
                let disks = match self.guests {
                    None => (0..*count).map(|index| format!("/dev/loop·{index}")).collect(),
                    Some(Some(guests)) => guests.disks.clone(),
                    Some(None) => (1..=*count).map(|number| format!("{{disk {number}}}")).collect(),
                };
                Some((disks, *size))
            }
            StorageKind::Devices { paths } => Some((paths.clone(), Bytes(0))),
            StorageKind::Directory { .. } | StorageKind::Levels { .. } => None,
        }
    }
}

/// Commands of each filesystem as they will be run, or the reason why it is skipped.
fn filesystems(place: &Place<'_>, cells: &[CellRecord], lines: &mut Vec<String>) {
    let Place { chosen, catalog, .. } = place;
    if let [(Some(first), _), _, ..] = chosen.storage.kind.each()[..] {
        lines.push(format!("commands for device {first}; those for the others differ in the path"));
    }
    for level in &chosen.plan.filesystems_at(chosen.scale) {
        let cell = cells.iter().find(|record| record.cell.filesystem.name == level.name);
        match cell.map(|record| &record.state) {
            Some(CellState::Skipped { reason }) => {
                lines.push(format!("{}  skipped: {reason}", level.name));
                // Commands need root, but `show` prints them for every user.
                let availability = catalog.level(level, &RealHost);
                if matches!(availability, Ok(Availability::Missing { available_to_root: true, .. }))
                {
                    commands(place, level, lines);
                }
            }
            Some(CellState::Open | CellState::Done { .. } | CellState::Failed { .. }) | None => {
                lines.push(level.name.clone());
                commands(place, level, lines);
                lines.extend(skipped(cells, &level.name));
            }
        }
    }
    lines.push(String::new());
}

/// Reasons why single cells of a filesystem are skipped, each with the first such cell.
fn skipped(cells: &[CellRecord], name: &str) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let own = cells.iter().filter(|record| record.cell.filesystem.name == name);
    let line = |record: &CellRecord| match &record.state {
        CellState::Skipped { reason } if seen.insert(reason.clone()) => {
            Some(format!("  {} skipped: {reason}", record.label))
        }
        CellState::Skipped { .. }
        | CellState::Open
        | CellState::Done { .. }
        | CellState::Failed { .. } => None,
    };
    own.filter_map(line).collect()
}

fn commands(place: &Place<'_>, level: &FilesystemLevel, lines: &mut Vec<String>) {
    let Place { chosen, catalog, .. } = place;
    let Ok(filesystem) = catalog.get(&level.fs_type) else { return };
    if filesystem.kind == Kind::Directory {
        return;
    }
    let (mut devices, image) = place.devices().unwrap_or_default();
    let becomes = level.converted_to.as_deref().and_then(|name| catalog.get(name).ok());
    let Ok(requirement) = layers::device_requirement(level, filesystem, becomes, devices.len())
    else {
        return;
    };
    let size = Bytes(image.0.saturating_mul(requirement.devices as u64));
    lines.extend(stand(level, filesystem, &mut devices, requirement));
    if filesystem.kind == Kind::Device {
        lines.push(format!("  open(2) of {}, without a filesystem", devices.join(" ")));
        return;
    }
    let ResolvedOptions { level, removed, kept } = match place.guests {
        None => resolve_options(level, filesystem, becomes, &RealHost),
        // The kernel of the guest determines the options that it supports.
        Some(_) => ResolvedOptions { level: level.clone(), removed: Vec::new(), kept: Vec::new() },
    };
    lines.extend(removed.iter().map(|warning| format!("  {}", warning.message())));
    lines.extend(kept.iter().map(|what| format!("  {what}")));
    // The directories get their names at the start of the run.
    let target = SetupTarget {
        devices: &devices,
        size,
        mount_point: Path::new("{mount}"),
        directory: Path::new("{directory}"),
        name: "{name}",
    };
    let mkfs = target.mkfs(filesystem, &level);
    if !mkfs.is_empty() {
        lines.push(format!("  $ {}", mkfs.join(" ")));
    }
    let mut mounted = None;
    for stage in &setup::stages(&level, filesystem, becomes, target) {
        if let Stage::Mount { mounting, .. } = stage {
            mounted = Some(mounting.clone());
        }
        lines.push(format!("  {}", stage_in_words(stage, mounted.as_ref())));
    }
    let last = becomes.unwrap_or(filesystem);
    let mounting = target.mounting(last, &level);
    lines.push(format!("  {}", mount_in_words(&mounting)));
    if let Some(command) = umount_command(&mounting) {
        lines.push(format!("  {command}"));
    }
    if let (true, Some(fsck)) = (chosen.plan.fsck, last.fsck_argv(&devices)) {
        lines.push(format!("  $ {}", fsck.join(" ")));
    }
}

/// Lines about the devices of an entry of `filesystem`, if the storage has several, and about the
/// layers on them. `devices` is replaced by the devices directly below the filesystem.
fn stand(
    level: &FilesystemLevel,
    filesystem: &Filesystem,
    devices: &mut Vec<String>,
    requirement: DeviceRequirement,
) -> Vec<String> {
    let mut lines = Vec::new();
    if !filesystem.kind.is_on_devices() {
        return lines;
    }
    let all = devices.len();
    devices.truncate(requirement.devices);
    if all > 1 {
        let share = format!("{} of {all} devices", requirement.devices);
        lines.push(format!("  on {share}: {}", devices.join(" ")));
    }
    let (built, tops) = layers::describe(&level.layers, devices);
    lines.extend(built.into_iter().map(|line| format!("  {line}")));
    *devices = tops;
    lines
}

fn mount_in_words(mounting: &Mounting) -> String {
    let MountRequest { source, fstype, options, .. } = match mounting {
        Mounting::Call(request) => request,
        Mounting::Command(command) => {
            return format!("$ {}  (type {})", command.argv.join(" "), command.fstype);
        }
    };
    let options = if options.is_empty() { String::new() } else { format!(" -o {options}") };
    format!("mount(2), as: mount -t {fstype}{options} {source}")
}

/// Line with the command that unmounts a filesystem; `None` for umount(2).
fn umount_command(mounting: &Mounting) -> Option<String> {
    match mounting {
        Mounting::Command(command) if !command.umount.is_empty() => {
            Some(format!("$ {}", command.umount.join(" ")))
        }
        Mounting::Command(_) | Mounting::Call(_) => None,
    }
}

/// Line about a step of the setup; `mounted` is the mount of this or the last step.
fn stage_in_words(stage: &Stage<'_>, mounted: Option<&Mounting>) -> String {
    match stage {
        Stage::Mount { mounting, .. } => mount_in_words(mounting),
        Stage::Unmount => mounted.and_then(umount_command).unwrap_or_else(|| "umount(2)".into()),
        Stage::Populate { directory, files } => {
            format!("writes a source tree of {files} files to {}", directory.display())
        }
        Stage::Remove { directory } => format!("removes {}", directory.display()),
        Stage::Run { argv } => format!("$ {}", argv.join(" ")),
    }
}

/// Estimate without a pilot: number of trials and their minimum duration.
fn forecast(chosen: &ResolvedPlan, cells: &[CellRecord], in_memory: bool, lines: &mut Vec<String>) {
    let open: Vec<_> = cells.iter().filter(|record| record.state == CellState::Open).collect();
    let looks = chosen.plan.profile.interim_analyses();
    let repetitions = chosen.plan.repetitions;
    let least = repetitions.or(looks.first().copied()).unwrap_or(1);
    let most = repetitions.or(looks.last().copied()).unwrap_or(1);
    let own = || open.iter().filter(|record| !record.cell.aa_duplicate);
    let measured = |record: &&&CellRecord| {
        record.phases.iter().filter(|phase| phase.role == Role::Measure).count()
    };
    let results: usize = own().map(|record| measured(&record)).sum();
    let aa_duplicates = open.len() - own().count();
    let and_aa_duplicates = match aa_duplicates {
        0 => String::new(),
        1 => ", and 1 A/A duplicate".into(),
        many => format!(", and {many} A/A duplicates"),
    };
    let all = cells.iter().filter(|record| !record.cell.aa_duplicate).count();
    lines.push(format!(
        "{}, {} of them available here, {}{and_aa_duplicates}",
        plural(all as u64, "cell"),
        own().count(),
        plural(results as u64, "result")
    ));
    let trials = |repetitions: u32| open.len() * repetitions as usize;
    let time_limit = match chosen.plan.time_limit {
        Some(_) => ", fewer if the time limit expires",
        None => "",
    };
    lines.push(match (trials(least), trials(most)) {
        (least, most) if least == most => {
            format!("{}{time_limit}", plural(least as u64, "trial"))
        }
        (least, most) => format!("{least} to {most} trials{time_limit}"),
    });
    let bound: Nanos = open.iter().map(|record| time(&record.cell.workload)).sum();
    if bound.0 > 0 {
        let all = report::duration(Nanos(bound.0.saturating_mul(u64::from(least))));
        lines.push(format!("time: at least {all}, in phases limited by time"));
    }
    let moved = open.iter().map(|record| moved(&record.cell.workload)).sum::<Bytes>();
    let space = space(chosen, in_memory);
    let all = Bytes(moved.0.saturating_mul(u64::from(least)));
    let all = match all.0 {
        // The bytes of the everyday tasks are known only afterwards.
        0 => String::new(),
        _ => format!("; at least {} read and written", report::bytes(all)),
    };
    lines.push(format!("space: {space}{all}."));
    lines.push("fslab run --pilot estimates the duration and the detectable difference.".into());
}

/// Space that the storage of the plan uses.
fn space(chosen: &ResolvedPlan, in_memory: bool) -> String {
    let images = |kind: &StorageKind| match kind {
        StorageKind::Image { size, count, .. } => {
            (size.0.saturating_mul(u64::from(*count)), *count)
        }
        StorageKind::Devices { .. }
        | StorageKind::Directory { .. }
        | StorageKind::Levels { .. } => (0, 0),
    };
    match &chosen.storage.kind {
        StorageKind::Image { size, count, .. } => {
            let total = Bytes(size.0.saturating_mul(u64::from(*count))).rough();
            match count {
                _ if in_memory => format!("{total} in the memory of each guest"),
                1 => format!("{total} on disk"),
                count => format!("{total} on disk, {count} images of {}", size.rough()),
            }
        }
        StorageKind::Devices { .. } => "the given devices".into(),
        StorageKind::Directory { .. } => format!("{} in the directory", chosen.footprint().rough()),
        StorageKind::Levels { levels } => {
            let all = levels.iter().map(|level| images(&level.kind));
            let (total, count) = all.fold((0, 0), |(size, n), (own, one)| (size + own, n + one));
            match count {
                0 => "the given devices".into(),
                _ => format!(
                    "{} on disk, {}, and the given devices",
                    Bytes(total).rough(),
                    plural(count, "image")
                ),
            }
        }
    }
}

/// Runtime of the phases of one trial that are limited by time, including the ramp time.
fn time(point: &WorkloadParameters) -> Nanos {
    let phases: Vec<Phase> =
        suites::find(&point.suite).map(|suite| (suite.phases)(point, 0)).unwrap_or_default();
    let alone = phases.iter().filter(|phase| phase.together.is_none());
    let group = phases.iter().filter(|phase| phase.together.is_some());
    alone.filter_map(time_of).sum::<Nanos>() + group.filter_map(time_of).max().unwrap_or_default()
}

/// Bytes that one trial reads and writes, as far as they are known in advance.
fn moved(point: &WorkloadParameters) -> Bytes {
    let phases: Vec<Phase> =
        suites::find(&point.suite).map(|suite| (suite.phases)(point, 0)).unwrap_or_default();
    let bytes = phases.iter().map(|phase| match &phase.work {
        Work::Stream(stream) => {
            Bytes(stream.size.0.saturating_mul(u64::from(stream.workers.count)))
        }
        Work::Tree(tree) => {
            let times = |step| tree.steps.iter().filter(|other| **other == step).count() as u64;
            use TreeStep::{Fetch, Read, ReadBlock, Write, WriteBlock};
            let whole = [Write, WriteBlock, Read, ReadBlock, Fetch].map(times).iter().sum();
            let set = &tree.set;
            let each = set.sizes.mean().0.saturating_mul(whole)
                + set.block_size.0 * times(TreeStep::Append);
            let owners = tree.workers.count.saturating_mul(tree.selection.owners);
            let files = set.files.saturating_mul(u64::from(owners));
            Bytes(each.saturating_mul(files).saturating_mul(tree.passes))
        }
        Work::Layout(layout) => Bytes(
            layout.set.sizes.mean().0.saturating_mul(layout.set.files * u64::from(layout.owners)),
        ),
        // The bytes of these kinds of work are not known in advance.
        Work::Mix(_)
        | Work::Replay(_)
        | Work::Task(_)
        | Work::Command(_)
        | Work::Sqlite(_)
        | Work::Mail(_)
        | Work::Trace(_)
        | Work::Maintenance(_)
        | Work::Coherence(_)
        | Work::Remove { .. } => Bytes(0),
    });
    bytes.sum()
}
