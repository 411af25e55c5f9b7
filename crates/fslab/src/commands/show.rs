//! `fslab show`: what a plan would do. Touches nothing.

use std::collections::BTreeSet;

use model::{
    Bytes,
    phase::{Phase, Work},
    storage::Place,
};
use rig::{Availability, Catalogue, RealHost};

use crate::{
    cli::Show,
    exit::{Exit, Failure},
    output,
    plans::{Chosen, sweep},
};

pub(super) fn run(show: &Show) -> Result<Exit, Failure> {
    let catalogue = super::catalogue(show.changes.filesystems.as_deref())?;
    let chosen = Chosen::new(&show.plan, &show.changes, &catalogue)?;
    output::result(&text(&chosen, &catalogue))?;
    Ok(Exit::Done)
}

fn text(chosen: &Chosen, catalogue: &Catalogue) -> String {
    let plan = &chosen.plan;
    let mut lines = vec![
        plan.title.clone(),
        format!("storage   {}", chosen.storage),
        format!("repeats   {} (profile {})", plan.repeats_in_words(), plan.profile.name()),
        format!("scale     {}", chosen.scale),
    ];
    for entry in &plan.workloads {
        lines.push(format!("workload  {} {}", entry.suite.name, sweep(entry)));
    }
    lines.push(String::new());
    filesystems(chosen, catalogue, &mut lines);
    workloads(chosen, &mut lines);
    forecast(chosen, catalogue, &mut lines);
    lines.join("\n")
}

/// For each filesystem the commands as they will be run, or why it is skipped.
fn filesystems(chosen: &Chosen, catalogue: &Catalogue, lines: &mut Vec<String>) {
    let host = RealHost;
    let devices: Vec<String> = match &chosen.storage.place {
        Place::Image { count, .. } => (0..*count).map(|i| format!("LOOP{i}")).collect(),
        Place::Devices { paths } => paths.clone(),
        Place::Directory { .. } => Vec::new(),
    };
    for level in &chosen.plan.filesystems {
        let Ok(filesystem) = catalogue.get(&level.base) else { continue };
        match catalogue.availability(filesystem, &host) {
            Availability::Missing { reason, cure } => {
                lines.push(format!("{}  skipped: {reason}; {cure}", level.name));
                continue;
            }
            Availability::Usable { .. } => lines.push(level.name.clone()),
        }
        if devices.is_empty() {
            lines.push("  measured as it is mounted; nothing is made".into());
            continue;
        }
        lines.push(format!("  $ {}", filesystem.mkfs_argv(&devices, level).join(" ")));
        let size = match &chosen.storage.place {
            Place::Image { size, .. } => *size,
            Place::Devices { .. } | Place::Directory { .. } => Bytes(0),
        };
        let options = filesystem.mount_options(&devices, size, level);
        let options = if options.is_empty() { "defaults".into() } else { options };
        lines.push(format!("  mount -t {} -o {options}", filesystem.fstype));
        if let (true, Some(fsck)) = (chosen.plan.fsck, filesystem.fsck_argv(&devices)) {
            lines.push(format!("  $ {}", fsck.join(" ")));
        }
    }
    lines.push(String::new());
}

/// For each workload the phases of one trial.
fn workloads(chosen: &Chosen, lines: &mut Vec<String>) {
    let mut seen = BTreeSet::new();
    for labelled in &chosen.cells {
        if !seen.insert(&labelled.label) {
            continue;
        }
        let phases = phases(&labelled.cell.workload);
        let names: Vec<_> = phases.iter().map(|phase| phase.name.as_str()).collect();
        lines.push(format!("{}\n  {}", labelled.label, names.join(", ")));
    }
    lines.push(String::new());
}

fn forecast(chosen: &Chosen, catalogue: &Catalogue, lines: &mut Vec<String>) {
    let host = RealHost;
    let usable = |base: &str| {
        catalogue.get(base).is_ok_and(|filesystem| {
            matches!(catalogue.availability(filesystem, &host), Availability::Usable { .. })
        })
    };
    let cells: Vec<_> = chosen.cells.iter().filter(|l| usable(&l.cell.filesystem.base)).collect();
    let least = chosen.plan.repeats.or(chosen.plan.profile.looks().first().copied()).unwrap_or(1);
    let moved = cells.iter().map(|l| moved(&phases(&l.cell.workload))).sum::<Bytes>();
    let moved = Bytes(moved.0.saturating_mul(u64::from(least)));
    let results: usize = cells
        .iter()
        .map(|l| {
            let measured = |phase: &&Phase| phase.role == model::phase::Role::Measure;
            phases(&l.cell.workload).iter().filter(measured).count()
        })
        .sum();
    lines.push(format!(
        "{} cells, {} of them usable here, {results} results; at least {} trials",
        chosen.cells.len(),
        cells.len(),
        cells.len() * least as usize,
    ));
    let space = match &chosen.storage.place {
        Place::Image { size, count, .. } => {
            format!("{} on disk", Bytes(size.0 * u64::from(*count)))
        }
        Place::Devices { .. } => "the devices named".into(),
        Place::Directory { .. } => format!("{} in the directory", chosen.footprint()),
    };
    #[expect(clippy::cast_precision_loss, reason = "a forecast")]
    let minutes = moved.0 as f64 / 1e9 / 60.0;
    lines.push(format!(
        "space {space}; at least {} moved, {minutes:.0} minutes of I/O at 1 GB/s",
        report::bytes(moved)
    ));
}

fn phases(point: &model::Point) -> Vec<Phase> {
    suites::find(&point.suite).map(|suite| (suite.phases)(point, 0)).unwrap_or_default()
}

fn moved(phases: &[Phase]) -> Bytes {
    let bytes = phases.iter().map(|phase| match &phase.work {
        Work::Stream(stream) => {
            Bytes(stream.size.0.saturating_mul(u64::from(stream.workers.count)))
        }
        Work::Remove { .. } => Bytes(0),
    });
    bytes.sum()
}
