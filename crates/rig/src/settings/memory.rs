//! Memory settings: limits of dirty memory (written data that is not on the device yet), and
//! transparent huge pages.
//!
//! Each limit of dirty memory has two files: one in percent (`dirty_ratio`) and one in bytes
//! (`dirty_bytes`). The file written last is in effect, and the kernel sets the other file to 0
//! (Documentation/admin-guide/sysctl/vm.rst; `dirty_*` in mm/page-writeback.c). Undo therefore
//! writes the file that was in effect before.

use std::path::{Path, PathBuf};

use model::{SystemSetting, Value, setting::PercentOrSize};

use super::{SettingChange, Write};
use crate::host::Host;

const VM: &str = "/proc/sys/vm";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Prefix of the names of the two files of a limit.
pub(super) fn dirty_prefix(setting: SystemSetting) -> &'static str {
    if setting == SystemSetting::DirtyThreshold { "dirty" } else { "dirty_background" }
}

/// Plans the change of a limit of dirty memory.
pub(super) fn dirty(host: &dyn Host, setting: SystemSetting, value: &Value) -> SettingChange {
    let (name, prefix) = (setting.spec().name, dirty_prefix(setting));
    let file = |unit: &str| Path::new(VM).join(format!("{prefix}_{unit}"));
    let limit = match PercentOrSize::parse(&value.to_string()) {
        Ok(limit) => limit,
        Err(error) => return SettingChange::refused(name, value.to_string(), &error.message),
    };
    let (path, unit, text) = match limit {
        PercentOrSize::Percent(percent) => (file("ratio"), "%", percent.to_string()),
        PercentOrSize::Size(size) => (file("bytes"), " bytes", size.0.to_string()),
    };
    let holds = |path: &PathBuf| host.read(path).is_ok_and(|text| text.trim() != "0");
    let from = [file("ratio"), file("bytes")].into_iter().find(holds);
    let bytes = matches!(limit, PercentOrSize::Size(_));
    if from.is_none() && bytes && host.entry(&path).is_ok() {
        let why = "neither ratio nor bytes is set now, so the change could not be undone";
        return SettingChange::refused(name, value.to_string(), why);
    }
    let mut change = SettingChange::default();
    change.fact(name, path.clone(), unit);
    let setting = format!("{name} ({})", unit.trim());
    change.writes.push(Write { setting, path, text, from, moves: false, basis: None });
    change
}

/// Plans the change of the mode of transparent huge pages
/// (Documentation/admin-guide/mm/transhuge.rst).
pub(super) fn transparent_hugepage(value: &Value) -> SettingChange {
    let mut change = SettingChange::default();
    let name = SystemSetting::TransparentHugepage.spec().name;
    change.write(name, PathBuf::from(HUGE_PAGES), value.to_string());
    change.fact(name, PathBuf::from(HUGE_PAGES), "");
    change
}
