//! Configuration of a kernel build: required options and their check.
//!
//! The kernel's own tools merge a fragment of required options into a `.config`. Options with
//! another value, and options that the source does not have, are then reported.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use super::changes::KernelOption;
use crate::GuestError;

/// Required options in the format of a `.config`.
const FRAGMENT: &str = include_str!("fragment.config");

/// Options and their values; `None` for an option that must not be set.
type Options = BTreeMap<String, Option<String>>;

/// Options of a source by name, and the expressions on which their definitions depend.
pub(super) type Defined = BTreeMap<String, Vec<String>>;

/// Required options of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequiredOptions<'a> {
    text: String,
    /// Options of the user, which the source must have.
    requested: &'a [KernelOption],
}

/// Differences from the required options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConfigCheck {
    /// Options that the source does not have, without `CONFIG_`.
    pub(super) unknown: Vec<String>,
    /// Options with another value: the name, and the required and the actual value.
    pub(super) rejected: Vec<(String, String)>,
}

impl<'a> RequiredOptions<'a> {
    /// Options of a kernel whose release ends in `suffix`. Options in `requested` replace those of
    /// fslab.
    pub(super) fn new(suffix: &str, requested: &'a [KernelOption]) -> Self {
        let own: String = requested.iter().map(KernelOption::line).collect();
        Self { text: format!("{FRAGMENT}{own}CONFIG_LOCALVERSION=\"{suffix}\"\n"), requested }
    }

    /// Text to append to a `.config`, in which the last line of an option counts.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Compares the required options with a resulting `.config`. `known` contains the options that
    /// the source has.
    pub(super) fn compare(&self, config: &str, known: &Defined) -> ConfigCheck {
        let (required, actual) = (options(&self.text), options(config));
        let mut outcome = ConfigCheck::default();
        for (name, value) in required {
            let result = actual.get(&name).cloned().flatten();
            if result == value {
                continue;
            }
            let requested = self.requested.iter().any(|option| option.name() == name);
            if value.is_some() && !requested && !known.contains_key(&name) {
                outcome.unknown.push(name);
                continue;
            }
            let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "n".to_owned());
            let values = format!("{name}={} (it is {}", text(&value), text(&result));
            outcome.rejected.push((name, values));
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
pub(super) fn known(tree: &Path) -> Result<Defined, GuestError> {
    let mut known = Defined::new();
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

/// Adds the options of one file. Dependencies of enclosing blocks (`if`, `menu`) are not included.
fn add_defined(file: &PathBuf, known: &mut Defined) -> Result<(), GuestError> {
    let context = GuestError::io(format!("cannot read {}", file.display()));
    let bytes = fs::read(file).map_err(context)?;
    let text = String::from_utf8_lossy(&bytes).replace("\\\n", " ");
    let mut entry = None;
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["config" | "menuconfig", name] => {
                entry = Some(known.entry(name.to_owned()).or_default());
            }
            ["help" | "---help---" | "choice" | "menu" | "comment" | "if", ..] => entry = None,
            ["depends", "on", ..] => {
                if let Some(dependencies) = &mut entry {
                    dependencies.push(words[2..].join(" "));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
