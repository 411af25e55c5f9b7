//! House rules that a machine can hold.

use std::fs;

use crate::support::{files, root};

/// What each crate may depend on within the workspace; ARCHITECTURE.md draws the same arrows.
const ARROWS: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("suites", &["model"]),
    ("sys", &[]),
    ("rig", &["model", "sys"]),
    ("engine", &["model", "sys"]),
    ("store", &["model", "sys"]),
    ("analysis", &["model"]),
    ("report", &["model", "analysis"]),
    ("guest", &["model", "sys"]),
    ("fslab", &["model", "suites", "sys", "rig", "engine", "store", "analysis", "report", "guest"]),
];

/// Longest file, tests apart.
const LINES: usize = 500;
/// Longest line, in characters.
const COLUMNS: usize = 100;

fn sources() -> Vec<(String, String)> {
    let crates = root().join("crates");
    files(&crates)
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| {
            let name = path.strip_prefix(&crates).unwrap().display().to_string();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect()
}

fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("tests.rs") || name.contains("conformance")
}

#[test]
fn arrows_between_crates_are_those_drawn() {
    for (name, allowed) in ARROWS {
        let manifest =
            fs::read_to_string(root().join("crates").join(name).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap();
        let dependencies = dependencies.split("\n[").next().unwrap();
        for (other, _) in ARROWS {
            let depends = dependencies.lines().any(|line| line.starts_with(&format!("{other}.")));
            assert!(!depends || allowed.contains(other), "{name} must not depend on {other}");
        }
    }
}

#[test]
fn unsafe_is_walled_in() {
    for (name, text) in sources() {
        if name.ends_with("src/lib.rs") || name.ends_with("src/main.rs") {
            let walled = text.contains("#![forbid(unsafe_code)]");
            let may = name.starts_with("sys/") || name.starts_with("engine/");
            assert!(walled || may, "{name} must forbid unsafe code");
        }
    }
}

#[test]
fn pure_crates_share_the_list_of_banned_calls() {
    let list = fs::read_to_string(root().join("clippy-pure.toml")).unwrap();
    for name in ["model", "suites", "analysis", "report"] {
        let own = fs::read_to_string(root().join("crates").join(name).join("clippy.toml")).unwrap();
        assert_eq!(own, list, "{name}/clippy.toml links to clippy-pure.toml");
    }
}

#[test]
fn files_and_lines_have_an_end() {
    let mut over = Vec::new();
    for (name, text) in sources().into_iter().filter(|(name, _)| !is_test(name)) {
        let body = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        let lines = body.lines().count();
        if lines > LINES {
            over.push(format!("{name}: {lines} lines; is it one thing?"));
        }
        for (number, line) in text.lines().enumerate() {
            // Texts for people and tables are broken where they are shown, not here.
            let kept = line.contains('"') || line.contains("//! |") || line.contains("/// |");
            if line.chars().count() > COLUMNS && !kept {
                over.push(format!("{name}:{}: more than {COLUMNS} columns", number + 1));
            }
        }
    }
    assert!(over.is_empty(), "{}", over.join("\n"));
}

#[test]
fn text_leaves_by_one_door() {
    // Where hostile text is made harmless. A load file is data for another program.
    let doors = ["fslab/src/output.rs", "fslab/src/commands/loadfile.rs"];
    for (name, text) in sources().into_iter().filter(|(name, _)| name.starts_with("fslab/src")) {
        let writes = ["stdout().lock", "stderr().lock", "stdout().write", "stderr().write"];
        let writes = writes.iter().any(|call| text.contains(call));
        assert!(!writes || doors.contains(&name.as_str()), "{name} writes past output.rs");
    }
}

#[test]
fn nothing_is_left_for_later() {
    let words = [["to", "do!"].concat(), ["FIX", "ME"].concat(), ["#[ign", "ore]"].concat()];
    for (name, text) in sources() {
        for word in &words {
            assert!(!text.contains(word.as_str()), "{name} has {word}");
        }
    }
}

#[test]
fn every_module_says_what_it_is_for() {
    for (name, text) in sources() {
        let first = text.lines().find(|line| !line.is_empty()).unwrap_or_default();
        let tests = name.ends_with("tests.rs") || name.contains("/tests/");
        assert!(tests || first.starts_with("//!"), "{name} opens without a word");
    }
}

#[test]
fn the_changelog_keeps_its_headings() {
    let text = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    let allowed = ["Added", "Changed", "Fixed", "Removed", "Measured"];
    for heading in text.lines().filter_map(|line| line.strip_prefix("### ")) {
        assert!(allowed.contains(&heading), "`{heading}` is none of {allowed:?}");
    }
    assert!(text.contains("## Unreleased"));
}

#[test]
fn links_of_the_pages_lead_somewhere() {
    let pages = files(root());
    for page in pages.iter().filter(|path| path.extension().is_some_and(|e| e == "md")) {
        let text = fs::read_to_string(page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = page.parent().unwrap().join(target);
            assert!(path.exists(), "{}: {link} leads nowhere", page.display());
        }
    }
}
