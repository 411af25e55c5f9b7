//! Settings of the machine that a plan may vary: whether this machine has them, and what a plan
//! would write. Reads, and changes nothing.

use std::path::Path;

use comfy_table::Cell;
use model::{Factor, Storage, Value, Warning, record::CellRecord};
use rig::{Ability, Host, Intended, Write};

/// Where images are if a plan names no directory.
const IMAGES: &str = "/var/tmp";

/// Every setting: what it takes, what it does, and what there is here.
pub(super) fn table(host: &dyn Host) -> String {
    let mut table = super::list::table(&["factor", "takes", "what it does", "here"]);
    for Ability { name, takes, doc, here } in rig::abilities(host) {
        let here = here.unwrap_or_else(|why| format!("no: {why}"));
        table.add_row([name, &takes, doc, &here].map(Cell::new));
    }
    table.to_string()
}

/// A line on those that this machine has not.
pub(super) fn missing(host: &dyn Host) -> Option<String> {
    let lacks = |ability: Ability| Some(format!("{} ({})", ability.name, ability.here.err()?));
    let missing: Vec<_> = if host.is_root() {
        rig::abilities(host).into_iter().filter_map(lacks).collect()
    } else {
        // What all have in common is told where the user is.
        return None;
    };
    Some(match missing.as_slice() {
        [] => "factors     all can be set".to_owned(),
        missing => format!("factors     cannot be set: {}", missing.join("; ")),
    })
}

/// What each scheduler and each value of a setting would write, in the order of the cells.
pub(super) fn writes(host: &dyn Host, storage: &Storage, cells: &[CellRecord]) -> Vec<String> {
    let mut schedulers: Vec<String> = Vec::new();
    let mut factors: Vec<(Factor, Vec<Value>)> = Vec::new();
    for cell in cells.iter().map(|record| &record.cell) {
        let new = cell.scheduler.iter().filter(|name| !schedulers.contains(name)).cloned();
        schedulers.extend(new.collect::<Vec<_>>());
        for (factor, value) in &cell.factors {
            match factors.iter_mut().find(|(known, _)| known == factor) {
                Some((_, values)) if values.contains(value) => {}
                Some((_, values)) => values.push(value.clone()),
                None => factors.push((*factor, vec![value.clone()])),
            }
        }
    }
    if schedulers.is_empty() && factors.is_empty() {
        return Vec::new();
    }
    let intended = rig::intended(host, storage, Path::new(IMAGES), &schedulers, &factors);
    let mut lines = vec!["for each trial, before mkfs, undone at its end:".to_owned()];
    lines.extend(intended.iter().flat_map(in_words));
    lines.push(String::new());
    lines
}

fn in_words(Intended { what, intent }: &Intended) -> Vec<String> {
    let mut lines = vec![format!("  {what}")];
    let write =
        |Write { path, text, .. }: &Write| format!("    write {text} to {}", path.display());
    lines.extend(intent.writes.iter().map(write));
    if let Some(share) = intent.share {
        lines.push(format!(
            "    this process and its programs get {share}% of the time of as many processors as \
             they have workers, by a control group; there is no frequency to set"
        ));
    }
    lines.extend(intent.left.iter().map(|(name, why)| format!("    {name}: {why}")));
    let warning = |warning: &Warning| {
        // It has not been set yet.
        if let Warning::ReadBack { setting, found, .. } = warning {
            return format!("    {setting}: {found}");
        }
        format!("    {}", warning.message())
    };
    lines.extend(intent.warnings.iter().map(warning));
    lines.extend(intent.notes.iter().map(|note| format!("    {note}")));
    if lines.len() == 1 {
        lines.push("    nothing to write: it is so already".into());
    }
    lines
}
