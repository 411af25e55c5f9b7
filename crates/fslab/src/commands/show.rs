//! `fslab show`: what a plan would do. Reads, and changes nothing.

use std::{collections::BTreeSet, path::Path};

use model::{
    Bytes, FilesystemLevel, Isolation, Nanos, Point,
    phase::{Phase, Role, TreeStep, Work},
    plan::Spoiled,
    record::{CellRecord, CellState},
    storage::Place,
};
use rig::{
    Catalogue, Filesystem, InForce, RealHost,
    catalogue::Kind,
    guard::{self, Permission, Roots},
    in_force,
    layers::{self, Footing},
    mount::MountRequest,
    setup::{self, Ground, Stage},
};

use super::factors;
use crate::{
    cells,
    cli::Show,
    conductor::{deeds::needs_elsewhere, time_of},
    exit::{Exit, Failure, chain},
    output,
    plans::Chosen,
};

pub(super) fn run(show: &Show) -> Result<Exit, Failure> {
    let catalogue = super::catalogue(show.changes.filesystems.as_deref())?;
    let chosen = Chosen::new(&show.plan, &show.changes, &catalogue)?;
    if show.text {
        output::result(&chosen.text)?;
        return Ok(Exit::Done);
    }
    cells::roomy(&chosen, &catalogue)?;
    let cells = cells::of(&chosen, &catalogue, &RealHost, 0);
    let mut lines = head(&chosen);
    lines.extend(elsewhere(&chosen, &cells));
    lines.extend(loads(&chosen)?);
    storage(&chosen, &mut lines);
    lines.extend(factors::writes(&RealHost, &chosen.storage, &cells));
    filesystems(&chosen, &catalogue, &cells, &mut lines);
    workloads(&cells, &mut lines);
    forecast(&chosen, &cells, &mut lines);
    output::lines(&lines)?;
    Ok(Exit::Done)
}

fn head(chosen: &Chosen) -> Vec<String> {
    let plan = &chosen.plan;
    let mut lines = vec![
        plan.title.clone(),
        format!("storage   {}", chosen.storage),
        format!("repeats   {} (profile {})", plan.repeats_in_words(), plan.profile.name()),
        format!("scale     {}", chosen.scale),
    ];
    if let Some(budget) = plan.budget {
        lines.push(format!("budget    {}", report::duration(budget)));
    }
    if plan.spoiled() == Spoiled::Repeat {
        lines.push("invalid   trials that the machine spoils are made again".into());
    }
    if plan.isolation != Isolation::default() {
        lines.push(format!("isolation {}", plan.isolation.name()));
    }
    if !plan.fullness.is_empty() {
        let levels: Vec<_> = plan.fullness.iter().map(ToString::to_string).collect();
        lines.push(format!("full      {} before each workload", levels.join(", ")));
    }
    lines
}

/// What is replayed.
fn loads(chosen: &Chosen) -> Result<Vec<String>, Failure> {
    let line = |facts: &model::Environment| {
        let fact = |name| facts.get(name).unwrap_or_default();
        let (label, operations) = (fact("load.label"), fact("load.operations"));
        format!("load      {label}: {operations} operations, {}", fact("load.mix"))
    };
    Ok(super::loadfile::of(chosen)?.iter().map(line).collect())
}

/// The second place, if a task needs one.
fn elsewhere(chosen: &Chosen, cells: &[CellRecord]) -> Option<String> {
    let needs = |record: &CellRecord| {
        let suite = suites::find(&record.cell.workload.suite);
        let phases = suite.map(|suite| (suite.phases)(&record.cell.workload, 0));
        phases.is_some_and(|phases| phases.iter().any(needs_elsewhere))
    };
    let place = chosen.storage.elsewhere.as_deref().unwrap_or("in memory");
    cells.iter().any(needs).then(|| format!("elsewhere {place}, for copies from and to it"))
}

/// What the guard says of the storage as it is now.
fn storage(chosen: &Chosen, lines: &mut Vec<String>) {
    match &chosen.storage.place {
        Place::Devices { paths } => {
            for path in paths {
                let (permission, roots) = (Permission::default(), Roots::default());
                let claimed = guard::claim_device(Path::new(path), &permission, &roots, &[]);
                lines.push(match claimed {
                    Ok(device) => format!("device    {}", device.describe()),
                    Err(refusal) => format!("REFUSED   {}", chain(&refusal)),
                });
            }
        }
        Place::Image { size, count, directory, allocation, .. } => {
            let directory = directory.as_deref().unwrap_or("/var/tmp");
            let total = Bytes(size.0.saturating_mul(u64::from(*count)));
            let place = Path::new(directory);
            let space = guard::space_for_images(place, total, Bytes(0), *allocation);
            let space = space.and_then(|()| match chosen.storage.memory {
                Some(limit) => guard::images_within_limit(place, total, *allocation, limit),
                None => Ok(()),
            });
            lines.push(match space {
                Ok(()) => format!("images    in {directory}, which has room for them"),
                Err(refusal) => format!("REFUSED   {}", chain(&refusal)),
            });
        }
        Place::Directory { path } => lines.push(match Path::new(path).is_dir() {
            true => {
                "directory as it is mounted; a directory of fslab's own in it is removed".into()
            }
            false => format!("REFUSED   {path} is no directory"),
        }),
    }
    lines.push(String::new());
}

/// For each filesystem the commands as they will be run, or why it is skipped.
fn filesystems(
    chosen: &Chosen,
    catalogue: &Catalogue,
    cells: &[CellRecord],
    lines: &mut Vec<String>,
) {
    for level in &chosen.plan.filesystems_at(chosen.scale) {
        let cell = cells.iter().find(|record| record.cell.filesystem.name == level.name);
        match cell.map(|record| &record.state) {
            Some(CellState::Skipped { reason }) => {
                lines.push(format!("{}  skipped: {reason}", level.name));
                // Root would run them; whoever plans may still want to read them.
                if reason.starts_with("not root") {
                    commands(chosen, catalogue, level, lines);
                }
            }
            Some(CellState::Open | CellState::Done { .. } | CellState::Failed { .. }) | None => {
                lines.push(level.name.clone());
                commands(chosen, catalogue, level, lines);
            }
        }
    }
    lines.push(String::new());
}

fn commands(
    chosen: &Chosen,
    catalogue: &Catalogue,
    level: &FilesystemLevel,
    lines: &mut Vec<String>,
) {
    let (mut devices, image): (Vec<String>, Bytes) = match &chosen.storage.place {
        Place::Image { count, size, .. } => {
            ((0..*count).map(|index| format!("/dev/loop·{index}")).collect(), *size)
        }
        Place::Devices { paths } => (paths.clone(), Bytes(0)),
        Place::Directory { .. } => return,
    };
    let Ok(filesystem) = catalogue.get(&level.base) else { return };
    let becomes = level.becomes.as_deref().and_then(|name| catalogue.get(name).ok());
    let Ok(footing) = layers::footing(level, filesystem, becomes, devices.len()) else { return };
    let size = Bytes(image.0.saturating_mul(footing.devices as u64));
    lines.extend(stand(level, filesystem, &mut devices, footing));
    let InForce { level, gone, kept } = in_force(level, filesystem, becomes, &RealHost);
    lines.extend(gone.iter().map(|warning| format!("  {}", warning.message())));
    lines.extend(kept.iter().map(|what| format!("  {what}")));
    let mkfs = filesystem.mkfs_argv(&devices, &level);
    if !mkfs.is_empty() {
        lines.push(format!("  $ {}", mkfs.join(" ")));
    }
    // The directory gets its name when the run begins.
    let ground = Ground { devices: &devices, size, target: Path::new("{mount}") };
    let stages = setup::stages(&level, filesystem, becomes, ground);
    lines.extend(stages.iter().map(|stage| format!("  {}", stage_in_words(stage))));
    let last = becomes.unwrap_or(filesystem);
    lines.push(format!("  {}", mount_in_words(&ground.request(last, &level))));
    if let (true, Some(fsck)) = (chosen.plan.fsck, last.fsck_argv(&devices)) {
        lines.push(format!("  $ {}", fsck.join(" ")));
    }
}

/// The devices that a level lies on, where there are several, and what is built on them; `devices`
/// are those that its filesystem finds from here on.
fn stand(
    level: &FilesystemLevel,
    filesystem: &Filesystem,
    devices: &mut Vec<String>,
    footing: Footing,
) -> Vec<String> {
    let mut lines = Vec::new();
    if filesystem.kind != Kind::Block {
        return lines;
    }
    let all = devices.len();
    devices.truncate(footing.devices);
    if all > 1 {
        let share = format!("{} of {all} devices", footing.devices);
        lines.push(format!("  on {share}: {}", devices.join(" ")));
    }
    let (built, tops) = layers::in_words(&level.layers, devices);
    lines.extend(built.into_iter().map(|line| format!("  {line}")));
    *devices = tops;
    lines
}

fn mount_in_words(request: &MountRequest) -> String {
    let MountRequest { source, fstype, options, .. } = request;
    let options = if options.is_empty() { String::new() } else { format!(" -o {options}") };
    format!("mount(2), as: mount -t {fstype}{options} {source}")
}

fn stage_in_words(stage: &Stage<'_>) -> String {
    match stage {
        Stage::Mount { request, .. } => mount_in_words(request),
        Stage::Unmount => "umount(2)".into(),
        Stage::Populate { directory, files } => {
            format!("a source tree of {files} files is written into {}", directory.display())
        }
        Stage::Remove { directory } => format!("{} is removed", directory.display()),
        Stage::Run { argv } => format!("$ {}", argv.join(" ")),
    }
}

/// For each workload its sizes as scaled, and the phases of one trial.
fn workloads(cells: &[CellRecord], lines: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for record in cells {
        let point = &record.cell.workload;
        let defaults = suites::find(&point.suite).map(|suite| suite.spec.defaults());
        let own = point.parameters.iter().filter(|(name, value)| {
            defaults.as_ref().is_none_or(|point| point.parameters.get(*name) != Some(value))
        });
        let own: Vec<_> = own.map(|(name, value)| format!("{name}={value}")).collect();
        let phases: Vec<_> = record.phases.iter().map(|phase| phase.name.as_str()).collect();
        let mut told = wrapped(&format!("{} {}", point.suite, own.join(" ")), 0);
        told.extend(wrapped(&phases.join(", "), 2));
        // The same under another filesystem, scheduler, or setting is told once.
        if seen.insert(told.clone()) {
            lines.extend(told);
        }
    }
    lines.push(String::new());
}

/// A text in lines of 98 columns, further lines indented by two more.
fn wrapped(text: &str, indent: usize) -> Vec<String> {
    let mut lines = vec![" ".repeat(indent)];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a first line");
        if line.trim().is_empty() || line.chars().count() + 1 + word.chars().count() <= 98 {
            let gap = if line.trim().is_empty() { "" } else { " " };
            *line = format!("{line}{gap}{word}");
        } else {
            lines.push(format!("{}{word}", " ".repeat(indent + 2)));
        }
    }
    lines
}

/// What can be said without a pilot: how many trials, and what they take at the least.
fn forecast(chosen: &Chosen, cells: &[CellRecord], lines: &mut Vec<String>) {
    let open: Vec<_> = cells.iter().filter(|record| record.state == CellState::Open).collect();
    let looks = chosen.plan.profile.looks();
    let repeats = chosen.plan.repeats;
    let least = repeats.or(looks.first().copied()).unwrap_or(1);
    let most = repeats.or(looks.last().copied()).unwrap_or(1);
    let own = || open.iter().filter(|record| !record.cell.twin);
    let measured = |record: &&&CellRecord| {
        record.phases.iter().filter(|phase| phase.role == Role::Measure).count()
    };
    let results: usize = own().map(|record| measured(&record)).sum();
    let twins = open.len() - own().count();
    let and_twins = match twins {
        0 => String::new(),
        1 => ", and 1 twin that shows what chance does".into(),
        many => format!(", and {many} twins that show what chance does"),
    };
    let all = cells.iter().filter(|record| !record.cell.twin).count();
    lines.push(format!(
        "{all} cells, {} of them usable here, {results} results{and_twins}",
        own().count()
    ));
    let trials = |repeats: u32| open.len() * repeats as usize;
    let budget = match chosen.plan.budget {
        Some(_) => ", fewer where the budget ends the run",
        None => "",
    };
    lines.push(match (trials(least), trials(most)) {
        (least, most) if least == most => format!("{least} trials{budget}"),
        (least, most) => format!("{least} to {most} trials{budget}"),
    });
    let bound: Nanos = open.iter().map(|record| time(&record.cell.workload)).sum();
    if bound.0 > 0 {
        let all = report::duration(Nanos(bound.0.saturating_mul(u64::from(least))));
        lines.push(format!("time: {all} at the least, in phases that are bound by time"));
    }
    let moved = open.iter().map(|record| moved(&record.cell.workload)).sum::<Bytes>();
    let space = match &chosen.storage.place {
        Place::Image { size, count, .. } => {
            let total = Bytes(size.0.saturating_mul(u64::from(*count))).rough();
            match count {
                1 => format!("{total} on disk"),
                count => format!("{total} on disk, {count} images of {}", size.rough()),
            }
        }
        Place::Devices { .. } => "the devices named".into(),
        Place::Directory { .. } => format!("{} in the directory", chosen.footprint().rough()),
    };
    let all = Bytes(moved.0.saturating_mul(u64::from(least)));
    let all = match all.0 {
        // What everyday tasks move is known when they are done.
        0 => String::new(),
        _ => format!("; at least {} read and written", report::bytes(all)),
    };
    lines.push(format!("space: {space}{all}."));
    lines.push(
        "fslab run --pilot tells how long all takes, and which differences it will tell.".into(),
    );
}

/// How long the phases of one trial work that are bound by time, ramp-up included.
fn time(point: &Point) -> Nanos {
    let phases: Vec<Phase> =
        suites::find(&point.suite).map(|suite| (suite.phases)(point, 0)).unwrap_or_default();
    phases.iter().filter_map(time_of).sum()
}

/// Bytes that one trial reads and writes.
fn moved(point: &Point) -> Bytes {
    let phases: Vec<Phase> =
        suites::find(&point.suite).map(|suite| (suite.phases)(point, 0)).unwrap_or_default();
    let bytes = phases.iter().map(|phase| match &phase.work {
        Work::Stream(stream) => {
            Bytes(stream.size.0.saturating_mul(u64::from(stream.workers.count)))
        }
        Work::Tree(tree) => {
            let times = |step| tree.steps.iter().filter(|other| **other == step).count() as u64;
            let whole = times(TreeStep::Write) + times(TreeStep::Read) + times(TreeStep::Fetch);
            let set = &tree.set;
            let each =
                set.sizes.mean().0.saturating_mul(whole) + set.record.0 * times(TreeStep::Append);
            let files = set.files.saturating_mul(u64::from(tree.workers.count));
            Bytes(each.saturating_mul(files).saturating_mul(tree.passes))
        }
        Work::Layout(layout) => Bytes(
            layout.set.sizes.mean().0.saturating_mul(layout.set.files * u64::from(layout.owners)),
        ),
        // What a load file moves is known when it is read.
        Work::Mix(_) | Work::Replay(_) | Work::Task(_) | Work::Remove { .. } => Bytes(0),
    });
    bytes.sum()
}
