//! Other runs of this machine: those that measure now, and those that were killed and have left
//! settings behind. Settings of the machine hold for everyone on it.

use std::{fs, io, path::Path};

use super::{Change, ENDING, JOURNALS, Line, Step};
use crate::host::Host;

/// Another run that has a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// Its id.
    pub run: String,
    /// Whether it is alive.
    pub alive: bool,
    /// The settings of the machine that it has changed and not put back, in words.
    pub settings: Vec<String>,
}

/// Every other run that is alive, or has left settings of the machine changed. What cannot be read
/// is left out: `fslab clean` tells it.
pub fn others(host: &dyn Host, state: &Path) -> Vec<Other> {
    let Ok(entries) = fs::read_dir(state.join(JOURNALS)) else { return Vec::new() };
    let mut others: Vec<Other> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let run = path.file_stem()?.to_string_lossy().into_owned();
            let journal = path.extension().is_some_and(|ending| ending == ENDING);
            let (alive, text) = journal.then(|| look(&path).ok()).flatten()?;
            let settings = settings(host, &text);
            (alive || !settings.is_empty()).then_some(Other { run, alive, settings })
        })
        .collect();
    others.sort_by(|one, other| one.run.cmp(&other.run));
    others
}

/// Whether the run of a journal is alive, and its text.
fn look(path: &Path) -> io::Result<(bool, String)> {
    let file = fs::File::open(path)?;
    let alive = match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockShared) {
        Err(errno) if errno == rustix::io::Errno::WOULDBLOCK => true,
        answer => {
            answer?;
            false
        }
    };
    Ok((alive, String::from_utf8_lossy(&fs::read(path)?).into_owned()))
}

/// Settings of the machine that are changed by what a journal says.
fn settings(host: &dyn Host, text: &str) -> Vec<String> {
    let mut open: Vec<(Step, Change)> = Vec::new();
    for line in text.lines().filter_map(|line| serde_json::from_str(line).ok()) {
        match line {
            // A boot puts settings back.
            Line::Run { boot, .. } if boot.is_some() && boot != host.boot_id() => {
                return Vec::new();
            }
            Line::Planned { step, what } => open.push((step, what)),
            Line::Undone { step } => open.retain(|(other, _)| *other != step),
            Line::Run { .. } | Line::Known { .. } => {}
        }
    }
    // What is set in a control group holds for the processes in it.
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
        | Change::Group { .. } => false,
    };
    open.iter().filter(|(_, change)| setting(change)).map(|(_, c)| c.describe()).collect()
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::{host::FakeHost, undo::Journal};

    #[test]
    fn the_living_and_what_the_dead_have_left_are_told() {
        let state = TempDir::new().unwrap();
        let host = FakeHost::new(state.path().join("root"));
        let setting = || Change::Setting {
            path: "/proc/sys/vm/dirty_ratio".into(),
            before: "20".into(),
            after: Some("7".into()),
            moves: false,
            basis: None,
        };
        assert!(others(&host, state.path()).is_empty());
        let mut first = Journal::create(&host, state.path(), "a").unwrap();
        let told = |run: &str, alive, settings: &[&str]| Other {
            run: run.into(),
            alive,
            settings: settings.iter().map(|&text| text.into()).collect(),
        };
        assert_eq!(others(&host, state.path()), [told("a", true, &[])]);
        let step = first.plan(setting()).unwrap();
        let words = ["setting /proc/sys/vm/dirty_ratio"];
        assert_eq!(others(&host, state.path()), [told("a", true, &words)]);
        let mut second = Journal::create(&host, state.path(), "b").unwrap();
        second.plan(Change::Directory { path: "/x".into(), identity: None }).unwrap();
        second.abandon();
        assert_eq!(others(&host, state.path()).len(), 1, "directories hold nobody up");
        let _ = step;
        first.abandon();
        assert_eq!(others(&host, state.path()), [told("a", false, &words)]);
    }
}
