//! Fuzz target for plans. It accepts any bytes, and must neither panic nor use unbounded time or
//! memory.

use model::{KnownNames, Plan, Scale};

/// Separator between a plan and settings of `--set`, one per line.
pub const SETTINGS: &str = "\n---\n";

/// Parses a plan, applies the settings, expands the cells, and creates the phases of the first 20.
pub fn plan(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (text, settings) = text.split_once(SETTINGS).unwrap_or((&text, ""));
    let suites = crate::specs();
    let filesystems = ["btrfs", "directory", "ext2", "ext4", "f2fs", "tmpfs", "xfs"];
    let presets = crate::presets();
    let vocabulary =
        KnownNames { suites: &suites, presets, filesystems: &filesystems, mounted: &[] };
    let Ok(mut plan) = Plan::parse(text, vocabulary) else { return };
    for (key, value) in settings.lines().filter_map(|line| line.split_once('=')) {
        let _refused = plan.set(key, value, vocabulary);
    }
    if plan.consistent().is_err() {
        return;
    }
    let scales = plan.scales.iter().flat_map(|scale| &scale.settings);
    let scales =
        scales.filter_map(|(key, value)| Scale::parse(value).ok().filter(|_| key == "scale"));
    for scale in scales.chain([Scale::ONE]).take(3) {
        let _storage = plan.storage_at(scale, model::Bytes(0));
        let Ok(cells) = plan.cells(scale, &crate::refine) else { continue };
        for labelled in cells.iter().take(20) {
            let point = &labelled.cell.workload;
            if let Some(suite) = crate::find(&point.suite) {
                let _bytes = (suite.footprint)(point);
                let _phases = (suite.phases)(point, 1);
            }
        }
    }
}
