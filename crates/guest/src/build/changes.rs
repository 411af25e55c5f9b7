//! Changes of a kernel source and its configuration that the user requests: patches and options.
//!
//! Patches are applied by patch(1), as distributions do, without fuzz: context lines must match, as
//! for git-apply(1). A patch is trusted like the source: its code runs in the guest.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Read as _,
    path::{Component, Path, PathBuf},
};

use super::make::{self, Make};
use crate::{GuestError, kernel::source::Source, modules::hash::sha256};

/// Maximum size of a decompressed patch in bytes, which is read into memory.
const PATCH_MAX: u64 = 256 << 20;
/// Parts of the messages of patch(1) about a hunk or file that cannot be applied.
const FAILURES: [&str; 6] = [
    "FAILED at",
    "can't find file",
    "malformed patch",
    "previously applied",
    "not supported",
    "****",
];
/// Maximum number of lines of each kind in an error.
const LINES_MAX: usize = 20;
/// Length of the hash in the release of a changed kernel, in characters.
const TAG_LENGTH: usize = 8;

/// Change of a kernel option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelOption {
    /// Name without `CONFIG_`.
    name: String,
    /// Value as in a `.config`; `n` for an option that must not be set.
    value: String,
}

impl KernelOption {
    /// Parses `OPTION=VALUE`. The prefix `CONFIG_` is optional.
    ///
    /// # Errors
    /// Describes the expected form.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (name, value) =
            text.split_once('=').ok_or("expected OPTION=VALUE, such as XFS_RT=y")?;
        let name = name.strip_prefix("CONFIG_").unwrap_or(name);
        let valid = |one: char| one.is_ascii_alphanumeric() || one == '_';
        if name.is_empty() || !name.chars().all(valid) {
            return Err(format!("{name:?} is not the name of a kernel option"));
        }
        if value.is_empty() || value.contains(char::is_control) {
            return Err("the value must be y, n, a number, or a string in double quotes".to_owned());
        }
        match name {
            "LOCALVERSION" => Err("fslab sets LOCALVERSION, by which it recognizes its kernels; \
                                   patch EXTRAVERSION in Makefile instead"
                .to_owned()),
            "MODULES" => Err("kernels built by fslab have no modules".to_owned()),
            _ => Ok(Self { name: name.to_owned(), value: value.to_owned() }),
        }
    }

    /// Name without `CONFIG_`.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Line of a `.config`.
    pub(super) fn line(&self) -> String {
        let Self { name, value } = self;
        match value.as_str() {
            "n" => format!("# CONFIG_{name} is not set\n"),
            value => format!("CONFIG_{name}={value}\n"),
        }
    }
}

impl std::fmt::Display for KernelOption {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "{}={}", self.name, self.value)
    }
}

/// Patch that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Patch {
    /// Name of its file.
    pub(super) name: String,
    /// SHA-256 of the decompressed text, in hexadecimal.
    pub(super) hash: String,
    text: Vec<u8>,
}

impl Patch {
    /// Reads a patch, which may be compressed.
    pub(super) fn read(source: Source<'_>) -> Result<Self, GuestError> {
        let mut text = Vec::new();
        let mut stream = source.unpacked(source.open()?, PATCH_MAX)?;
        stream.read_to_end(&mut text).map_err(|error| source.failed(error))?;
        let name = source.path.file_name().unwrap_or(source.path.as_os_str());
        let name = name.to_string_lossy().replace(char::is_control, "?");
        let patch = Self { name, hash: sha256(&text), text };
        if patch.files().is_empty() {
            return Err(source.malformed(
                "is not a unified diff: it names no file after the first directory (--- a/FILE)",
            ));
        }
        Ok(patch)
    }

    /// Files that the patch changes or adds, without the first directory of their paths (`-p1`).
    pub(super) fn files(&self) -> BTreeSet<PathBuf> {
        let path = |line: &str| {
            // A time may follow the name, after a tab.
            let name = ["--- ", "+++ ", "rename from ", "copy from "]
                .into_iter()
                .find_map(|prefix| Some((prefix, line.strip_prefix(prefix)?)))?;
            let (prefix, name) = (name.0, name.1.split('\t').next().unwrap_or_default().trim_end());
            let first = usize::from(prefix.len() == 4);
            let mut parts = Path::new(name).components();
            let inside = parts.clone().all(|part| matches!(part, Component::Normal(_)));
            let path: PathBuf = parts.by_ref().skip(first).collect();
            (inside && !path.as_os_str().is_empty()).then_some(path)
        };
        String::from_utf8_lossy(&self.text).lines().filter_map(path).collect()
    }

    /// Applies the patch to the source `source` in the tree of `make`. `directory` is for temporary
    /// files.
    ///
    /// # Errors
    /// [`GuestError::Patch`] with the first hunks that failed.
    pub(super) fn apply(
        &self,
        make: Make<'_>,
        source: &str,
        directory: &Path,
    ) -> Result<(), GuestError> {
        let (file, rejects) = (directory.join("patch"), directory.join("rejects"));
        fs::write(&file, &self.text)
            .map_err(GuestError::io(format!("cannot write {}", file.display())))?;
        let input = format!("--input={}", file.display());
        let reject = format!("--reject-file={}", rejects.display());
        let fixed = ["--strip=1", "--fuzz=0", "--forward", "--batch", "--no-backup-if-mismatch"];
        let outcome =
            make.command("patch", &[&fixed[..], &[&input, &reject]].concat(), &mut |_| {});
        let outcome = match outcome {
            Err(GuestError::Build { .. }) => {
                let read = |path: &Path| fs::read(path).unwrap_or_default();
                let (log, hunks) = (read(make.log), read(&rejects));
                let why = failure(&String::from_utf8_lossy(&log), &String::from_utf8_lossy(&hunks));
                Err(GuestError::Patch { patch: self.name.clone(), origin: source.to_owned(), why })
            }
            outcome => outcome,
        };
        fs::remove_file(&file)
            .map_err(GuestError::io(format!("cannot remove {}", file.display())))?;
        outcome
    }
}

/// Lines of patch(1) about the hunks that failed, each with its file, and the first hunks.
fn failure(log: &str, rejects: &str) -> String {
    let (mut file, mut lines) = ("", Vec::new());
    for line in make::last_run(log) {
        if let Some(name) = line.strip_prefix("patching file ") {
            file = name;
        } else if FAILURES.iter().any(|part| line.contains(part)) {
            let place = if file.is_empty() { String::new() } else { format!("{file}: ") };
            lines.push(format!("{place}{}", line.trim()));
        }
    }
    lines.truncate(LINES_MAX);
    lines.extend(rejects.lines().take(LINES_MAX).map(str::to_owned));
    // Characters of the patch could control the terminal.
    let printable = |line: String| line.replace('\t', "    ").replace(char::is_control, "?");
    lines.into_iter().map(printable).collect::<Vec<_>>().join("\n  ")
}

/// Changes of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Patches, in the order in which they are applied.
    pub(super) patches: Vec<Patch>,
    /// Options, of which the last one of a name counts.
    pub(super) options: Vec<KernelOption>,
}

impl Changes {
    /// Text that differs between kernels with other changes; empty without changes.
    pub(super) fn key(&self) -> String {
        let patches = self.patches.iter().map(|patch| format!("patch {}\n", patch.hash));
        let options = self.options.iter().map(KernelOption::line);
        patches.chain(options).collect()
    }

    /// Part of the release that identifies the changes; empty without changes.
    pub(super) fn tag(&self) -> String {
        match self.key() {
            key if key.is_empty() => String::new(),
            key => format!("-{:.TAG_LENGTH$}", sha256(key.as_bytes())),
        }
    }

    /// Description for messages and run files; empty without changes.
    pub(super) fn description(&self) -> String {
        let patches =
            self.patches.iter().map(|Patch { name, hash, .. }| format!("{name} (SHA-256 {hash})"));
        let options = self.options.iter().map(KernelOption::to_string);
        patches.chain(options).collect::<Vec<String>>().join(", ")
    }

    /// Files of all patches, which must be unpacked.
    pub(super) fn files(&self) -> BTreeSet<PathBuf> {
        self.patches.iter().flat_map(Patch::files).collect()
    }
}

/// Reasons that Kconfig states for the value of an option: its warnings about the option, and the
/// dependencies of its definition that are not met. `defined` is the result of
/// [`super::config::known`].
pub(super) fn reason(
    option: &str,
    config: &str,
    output: &str,
    defined: &BTreeMap<String, Vec<String>>,
) -> String {
    let Some(dependencies) = defined.get(option) else {
        return "the source has no such option".to_owned();
    };
    let warnings = output.lines().filter_map(|line| line.split_once("warning: "));
    // `override:` only says that the option replaces one of fslab.
    let about =
        |text: &&str| !text.starts_with("override:") && names_in(text).any(|it| it == option);
    let mut reasons: Vec<String> =
        warnings.map(|(_, text)| text).filter(about).map(str::to_owned).collect();
    let set = |name: &str| {
        config.lines().any(|line| {
            let rest = line.strip_prefix("CONFIG_").and_then(|line| line.strip_prefix(name));
            rest.is_some_and(|rest| rest.starts_with('='))
        })
    };
    for expression in dependencies {
        let known = |name: &&str| defined.contains_key(*name);
        let unset: BTreeSet<&str> =
            names_in(expression).filter(known).filter(|name| !set(name)).collect();
        if !unset.is_empty() {
            let unset = Vec::from_iter(unset).join(", ");
            reasons.push(format!("it depends on {expression}; not set: {unset}"));
        }
    }
    reasons.dedup();
    match (reasons.as_slice(), dependencies.as_slice()) {
        ([], []) => "Kconfig states no reason".to_owned(),
        ([], dependencies) => format!("it depends on {}", dependencies.join(", and on ")),
        (reasons, _) => reasons.join("; "),
    }
}

/// Names in a Kconfig expression or message.
fn names_in(text: &str) -> impl Iterator<Item = &str> {
    text.split(|one: char| !(one.is_ascii_alphanumeric() || one == '_'))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests;
