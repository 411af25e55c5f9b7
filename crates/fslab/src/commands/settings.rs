//! System settings that a plan may vary: support on this machine, and the writes of a plan. This
//! module changes nothing.

use std::path::Path;

use comfy_table::{Cell, Table};
use model::{Storage, SystemSetting, Value, Warning, record::CellRecord};
use rig::{Host, PlannedValue, Support, Write};

/// Default directory of images.
const IMAGES: &str = "/var/tmp";

/// All settings: values, effect, and support on this machine.
pub(super) fn table(host: &dyn Host) -> Table {
    let mut table = super::list::table(&["setting", "takes", "effect", "here"]);
    for Support { name, takes, doc, support } in rig::setting_support(host) {
        let here = support.unwrap_or_else(|why| format!("no: {why}"));
        table.add_row([name, &takes, doc, &here].map(Cell::new));
    }
    table
}

/// Line about unsupported settings; `None` without root, which all settings require.
pub(super) fn missing(host: &dyn Host) -> Option<String> {
    let lacks = |support: Support| Some(format!("{} ({})", support.name, support.support.err()?));
    let missing: Vec<_> = if host.is_root() {
        rig::setting_support(host).into_iter().filter_map(lacks).collect()
    } else {
        // The line about the user shows that root is missing.
        return None;
    };
    Some(match missing.as_slice() {
        [] => "settings    all supported".to_owned(),
        missing => format!("settings    not supported: {}", missing.join("; ")),
    })
}

/// Lines with the file writes for each scheduler and each value of a setting, in the order of the
/// cells.
pub(super) fn writes(host: &dyn Host, storage: &Storage, cells: &[CellRecord]) -> Vec<String> {
    let mut schedulers: Vec<String> = Vec::new();
    let mut settings: Vec<(SystemSetting, Vec<Value>)> = Vec::new();
    for cell in cells.iter().map(|record| &record.cell) {
        let new = cell.scheduler.iter().filter(|name| !schedulers.contains(name)).cloned();
        schedulers.extend(new.collect::<Vec<_>>());
        // The storage is not a setting that is written.
        let written = cell.settings.iter().filter(|(it, _)| !it.is_storage());
        for (setting, value) in written {
            match settings.iter_mut().find(|(known, _)| known == setting) {
                Some((_, values)) if values.contains(value) => {}
                Some((_, values)) => values.push(value.clone()),
                None => settings.push((*setting, vec![value.clone()])),
            }
        }
    }
    if schedulers.is_empty() && settings.is_empty() {
        return Vec::new();
    }
    let planned = rig::planned_values(host, storage, Path::new(IMAGES), &schedulers, &settings);
    let mut lines =
        vec!["written before mkfs of each trial, undone at the end of the trial:".to_owned()];
    lines.extend(planned.iter().flat_map(describe));
    lines.push(String::new());
    lines
}

fn describe(PlannedValue { what, change }: &PlannedValue) -> Vec<String> {
    let mut lines = vec![format!("  {what}")];
    let write =
        |Write { path, text, .. }: &Write| format!("    write {text} to {}", path.display());
    lines.extend(change.writes.iter().map(write));
    if let Some(percent) = change.percent {
        lines.push(format!(
            "    CPU quota: this process and its programs get {percent}% of one CPU per worker, \
             because the frequency cannot be set"
        ));
    }
    lines.extend(change.skipped.iter().map(|(name, why)| format!("    {name}: {why}")));
    let warning = |warning: &Warning| {
        // The message would state that the setting was not applied, but `fslab show` does not apply
        // settings.
        if let Warning::SettingNotApplied { setting, found, .. } = warning {
            return format!("    {setting}: {found}");
        }
        format!("    {}", warning.message())
    };
    lines.extend(change.warnings.iter().map(warning));
    lines.extend(change.notes.iter().map(|note| format!("    {note}")));
    if lines.len() == 1 {
        lines.push("    no write: already set".into());
    }
    lines
}
