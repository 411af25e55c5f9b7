//! The configuration: what is wanted, and whether it came out.
//!
//! A fragment of options enters, and after the kernel's own tools have worked with it the `.config`
//! that came out; what did not take, and what the source does not know at all, leaves.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::GuestError;

/// What is asked for, in the format of a `.config`.
const FRAGMENT: &str = include_str!("fragment.config");

/// Options and their values; `None` for one that is not to be set.
type Options = BTreeMap<String, Option<String>>;

/// How a kernel is to be configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    text: String,
}

/// What did not come out as it was wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Options that the source does not know, without `CONFIG_`: features it does not have.
    pub(super) unknown: Vec<String>,
    /// Options that it knows and has otherwise, each as it is wanted and as it is.
    pub(super) refused: Vec<String>,
}

impl Wanted {
    /// That of a kernel whose release ends in `suffix`.
    pub(super) fn new(suffix: &str) -> Self {
        Self { text: format!("{FRAGMENT}CONFIG_LOCALVERSION=\"{suffix}\"\n") }
    }

    /// As it is appended to a `.config`, where the last line of an option counts.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Compares with what came out; `known` are the options of the source.
    pub(super) fn compare(&self, config: &str, known: &BTreeSet<String>) -> Outcome {
        let (wanted, is) = (options(&self.text), options(config));
        let mut outcome = Outcome::default();
        for (name, value) in wanted {
            let came = is.get(&name).cloned().flatten();
            if came == value {
                continue;
            }
            if value.is_some() && !known.contains(&name) {
                outcome.unknown.push(name);
                continue;
            }
            let word = |value: &Option<String>| value.clone().unwrap_or_else(|| "n".to_owned());
            outcome.refused.push(format!("{name}={} (it is {})", word(&value), word(&came)));
        }
        outcome
    }
}

/// Reads a `.config`; of an option that comes again, the last counts.
fn options(text: &str) -> Options {
    let mut options = Options::new();
    for line in text.lines() {
        if let Some((name, value)) =
            line.strip_prefix("CONFIG_").and_then(|line| line.split_once('='))
        {
            options.insert(name.to_owned(), (value != "n").then(|| value.to_owned()));
        } else if let Some(name) =
            line.strip_prefix("# CONFIG_").and_then(|line| line.strip_suffix(" is not set"))
        {
            options.insert(name.to_owned(), None);
        }
    }
    options
}

/// The options that a source knows: those which its files `Kconfig*` define.
pub(super) fn known(tree: &Path) -> Result<BTreeSet<String>, GuestError> {
    let mut known = BTreeSet::new();
    let mut folders = vec![tree.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = || GuestError::io(format!("reading {}", folder.display()));
        for entry in fs::read_dir(&folder).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let kind = entry.file_type().map_err(failed())?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && entry.file_name().as_encoded_bytes().starts_with(b"Kconfig")
            {
                defined(&entry.path(), &mut known)?;
            }
        }
    }
    Ok(known)
}

fn defined(file: &PathBuf, known: &mut BTreeSet<String>) -> Result<(), GuestError> {
    let reading = GuestError::io(format!("reading {}", file.display()));
    let bytes = fs::read(file).map_err(reading)?;
    for line in String::from_utf8_lossy(&bytes).lines() {
        let mut words = line.split_whitespace();
        if let (Some("config" | "menuconfig"), Some(name), None) =
            (words.next(), words.next(), words.next())
        {
            known.insert(name.to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
