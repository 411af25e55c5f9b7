//! Other runs on this machine that may affect results: active runs, and dead runs that left system
//! settings changed.

use std::{
    fs::{self, TryLockError},
    io,
    path::Path,
};

use super::{Change, ENDING, JOURNALS, Line, Step};
use crate::host::Host;

/// Another run with a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherRun {
    /// Run ID.
    pub run: String,
    /// True if the run is active.
    pub alive: bool,
    /// Descriptions of the system settings that the run changed and did not restore.
    pub settings: Vec<String>,
}

/// Lists runs that are active or that left system settings changed. Journals that cannot be read
/// are skipped; `fslab clean` reports them.
pub fn others(host: &dyn Host, state: &Path) -> Vec<OtherRun> {
    let Ok(entries) = fs::read_dir(state.join(JOURNALS)) else { return Vec::new() };
    let mut others: Vec<OtherRun> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let run = path.file_stem()?.to_string_lossy().into_owned();
            let journal = path.extension().is_some_and(|ending| ending == ENDING);
            let (alive, text) = journal.then(|| inspect(&path).ok()).flatten()?;
            let settings = settings(host, &text);
            (alive || !settings.is_empty()).then_some(OtherRun { run, alive, settings })
        })
        .collect();
    others.sort_by(|one, other| one.run.cmp(&other.run));
    others
}

/// Returns the text of a journal, and true if its run is active.
fn inspect(path: &Path) -> io::Result<(bool, String)> {
    let file = fs::File::open(path)?;
    let alive = match file.try_lock_shared() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => return Err(error),
    };
    Ok((alive, String::from_utf8_lossy(&fs::read(path)?).into_owned()))
}

/// Descriptions of the changes of system settings that are open according to a journal.
fn settings(host: &dyn Host, text: &str) -> Vec<String> {
    let mut open: Vec<(Step, Change)> = Vec::new();
    for line in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        match line {
            // A reboot restores settings.
            Line::Run { boot, .. } if boot.is_some() && boot != host.boot_id() => {
                return Vec::new();
            }
            Line::Planned { step, what } => open.push((step, what)),
            Line::Undone { step } => open.retain(|(other, _)| *other != step),
            Line::Run { .. } | Line::Known { .. } => {}
        }
    }
    // Settings of a control group affect only the processes in it.
    let setting = |change: &Change| match change {
        Change::Setting { path, .. } => !path.starts_with("/sys/fs/cgroup"),
        Change::Kept { .. } => true,
        Change::Directory { .. }
        | Change::Tree { .. }
        | Change::Image { .. }
        | Change::Loops { .. }
        | Change::Layer { .. }
        | Change::Fault { .. }
        | Change::Mount { .. }
        | Change::CommandMount { .. }
        | Change::Group { .. } => false,
    };
    open.iter().filter(|(_, change)| setting(change)).map(|(_, c)| c.describe()).collect()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::{
        host::{BOOT_ID, FakeHost},
        undo::Journal,
    };

    #[test]
    fn active_runs_and_settings_of_dead_runs_are_listed() {
        let state = TempDir::new().unwrap();
        let host = FakeHost::new(state.path().join("root")).file(BOOT_ID, "this-boot\n");
        let setting = |path: &str| Change::Setting {
            path: path.into(),
            before: "20".into(),
            after: Some("7".into()),
            moves: false,
            basis: None,
        };
        assert!(others(&host, state.path()).is_empty());
        let mut first = Journal::create(&host, state.path(), "a").unwrap();
        let run = |run: &str, alive, settings: &[&str]| OtherRun {
            run: run.into(),
            alive,
            settings: settings.iter().map(|&text| text.into()).collect(),
        };
        assert_eq!(others(&host, state.path()), [run("a", true, &[])]);
        first.plan(setting("/proc/sys/vm/dirty_ratio")).unwrap();
        first.plan(setting("/sys/fs/cgroup/fslab-a/memory.max")).unwrap();
        let restored = first.plan(setting("/proc/sys/vm/swappiness")).unwrap();
        first.cancel(restored);
        let words = ["setting /proc/sys/vm/dirty_ratio"];
        assert_eq!(others(&host, state.path()), [run("a", true, &words)]);
        let mut second = Journal::create(&host, state.path(), "b").unwrap();
        second.plan(Change::Directory { path: "/x".into(), identity: None }).unwrap();
        second.forget();
        assert_eq!(others(&host, state.path()).len(), 1, "directories do not affect other runs");
        first.forget();
        assert_eq!(others(&host, state.path()), [run("a", false, &words)]);
        host.write(Path::new(BOOT_ID), "next-boot\n").unwrap();
        assert_eq!(others(&host, state.path()), [], "a reboot restores settings");
    }
}
