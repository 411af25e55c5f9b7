//! Settings of memory: how much of it may be dirty, and huge pages.
//!
//! A limit of dirty memory has two files, a share in percent and bytes. The one that is written
//! holds, and the kernel makes the other 0 (Documentation/admin-guide/sysctl/vm.rst; `dirty_*` in
//! mm/page-writeback.c); so what is put back is the one that held before.

use std::path::{Path, PathBuf};

use model::{Value, factor::ShareOrSize};

use super::{Intent, Write};
use crate::host::Host;

const VM: &str = "/proc/sys/vm";
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// A limit of dirty memory.
pub(super) fn dirty(host: &dyn Host, name: &str, value: &Value) -> Intent {
    let file = |face: &str| Path::new(VM).join(format!("{name}_{face}"));
    let limit = match ShareOrSize::parse(&value.to_string()) {
        Ok(limit) => limit,
        Err(error) => return Intent::refused(name, value.to_string(), &error.message),
    };
    let (path, unit, text) = match limit {
        ShareOrSize::Percent(percent) => (file("ratio"), "%", percent.to_string()),
        ShareOrSize::Size(size) => (file("bytes"), " bytes", size.0.to_string()),
    };
    let holds = |path: &PathBuf| host.read(path).is_ok_and(|text| text.trim() != "0");
    let from = [file("ratio"), file("bytes")].into_iter().find(holds);
    let bytes = matches!(limit, ShareOrSize::Size(_));
    if from.is_none() && bytes && host.entry(&path).is_ok() {
        let why = "neither a share nor a size holds now, so it could not be put back";
        return Intent::refused(name, value.to_string(), why);
    }
    let mut intent = Intent::default();
    intent.fact(name, path.clone(), unit);
    let setting = format!("{name} ({})", unit.trim());
    intent.writes.push(Write { setting, path, text, from, moves: false, basis: None });
    intent
}

/// Transparent huge pages (Documentation/admin-guide/mm/transhuge.rst).
pub(super) fn huge_pages(value: &Value) -> Intent {
    let mut intent = Intent::default();
    intent.write("huge_pages", PathBuf::from(HUGE_PAGES), value.to_string());
    intent.fact("huge_pages", PathBuf::from(HUGE_PAGES), "");
    intent
}
