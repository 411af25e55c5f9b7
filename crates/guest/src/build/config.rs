//! Configuration of a kernel build: required options and their check.
//!
//! The kernel's own tools merge a fragment of required options into a `.config`. Options with
//! another value, and options that the source does not have, are then reported.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use crate::GuestError;

/// Required options in the format of a `.config`.
const FRAGMENT: &str = include_str!("fragment.config");

/// Options and their values; `None` for an option that must not be set.
type Options = BTreeMap<String, Option<String>>;

/// Required options of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequiredOptions {
    text: String,
}

/// Differences from the required options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConfigCheck {
    /// Options that the source does not have, without `CONFIG_`.
    pub(super) unknown: Vec<String>,
    /// Options with another value, each with the required and the actual value.
    pub(super) rejected: Vec<String>,
}

impl RequiredOptions {
    /// Options of a kernel whose release ends in `suffix`.
    pub(super) fn new(suffix: &str) -> Self {
        Self { text: format!("{FRAGMENT}CONFIG_LOCALVERSION=\"{suffix}\"\n") }
    }

    /// Text to append to a `.config`, in which the last line of an option counts.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Compares the required options with a resulting `.config`. `known` contains the options that
    /// the source has.
    pub(super) fn compare(&self, config: &str, known: &BTreeSet<String>) -> ConfigCheck {
        let (required, actual) = (options(&self.text), options(config));
        let mut outcome = ConfigCheck::default();
        for (name, value) in required {
            let result = actual.get(&name).cloned().flatten();
            if result == value {
                continue;
            }
            if value.is_some() && !known.contains(&name) {
                outcome.unknown.push(name);
                continue;
            }
            let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "n".to_owned());
            outcome.rejected.push(format!("{name}={} (it is {})", text(&value), text(&result)));
        }
        outcome
    }
}

/// Parses a `.config`; the last value of an option counts.
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

/// Options of a source, as defined in its `Kconfig*` files.
pub(super) fn known(tree: &Path) -> Result<BTreeSet<String>, GuestError> {
    let mut known = BTreeSet::new();
    let mut directories = vec![tree.to_owned()];
    while let Some(directory) = directories.pop() {
        let failed = || GuestError::io(format!("cannot read {}", directory.display()));
        for entry in fs::read_dir(&directory).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            let kind = entry.file_type().map_err(failed())?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() && entry.file_name().as_encoded_bytes().starts_with(b"Kconfig")
            {
                add_defined(&entry.path(), &mut known)?;
            }
        }
    }
    Ok(known)
}

fn add_defined(file: &PathBuf, known: &mut BTreeSet<String>) -> Result<(), GuestError> {
    let context = GuestError::io(format!("cannot read {}", file.display()));
    let bytes = fs::read(file).map_err(context)?;
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
