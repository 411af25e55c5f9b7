//! Catalog of filesystem types, defined in TOML.
//!
//! `filesystems.toml` is the built-in catalog. A user's file of the same format can add and replace
//! entries ([`Catalog::with_file`]). The catalog provides the command lines of mkfs, fsck, and
//! other programs. [`Catalog::availability`] reports whether this machine supports a filesystem
//! type. [`Catalog::with_levels`] adds the types that a plan defines by its own mount commands.

mod check;

use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
};

use model::{Bytes, FilesystemLevel, MountedType, suggest::nearest};
use serde::{Deserialize, Deserializer};
use thiserror::Error;
use toml::Spanned;

const EMBEDDED: &str = include_str!("../filesystems.toml");

/// Kind of storage that a filesystem type requires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Block devices.
    #[default]
    Block,
    /// Block devices without a filesystem.
    Device,
    /// Memory; the filesystem has no device.
    Memory,
    /// An existing directory; nothing is created.
    Directory,
    /// A directory of an existing filesystem, or a server; a command mounts the filesystem.
    Command,
}

impl Kind {
    /// True if the type uses block devices.
    pub fn is_on_devices(self) -> bool {
        matches!(self, Self::Block | Self::Device)
    }
}

/// Versions of the mainline kernel that contain a filesystem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRange {
    /// First version that contains the filesystem.
    pub since: Option<String>,
    /// First version that no longer contains the filesystem.
    pub until: Option<String>,
    /// Origin of a filesystem that was never in the mainline kernel.
    pub never: Option<String>,
}

impl KernelRange {
    /// Description, such as "in mainline since 2.4.1, removed in 6.13"; empty if no version is
    /// known.
    pub fn describe(&self) -> String {
        match (&self.never, &self.since, &self.until) {
            (Some(never), ..) => format!("never in mainline: {never}"),
            (None, Some(since), Some(until)) => {
                format!("in mainline since {since}, removed in {until}")
            }
            (None, Some(since), None) => format!("in mainline since {since}"),
            (None, None, Some(until)) => format!("removed from mainline in {until}"),
            (None, None, None) => String::new(),
        }
    }
}

/// Arguments of mkfs and mount for a filesystem on several devices.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultiDevice {
    /// Replaces [`Filesystem::mkfs`].
    pub mkfs: Vec<String>,
    /// Mount option that is added for each device except the first, with the placeholder
    /// `{device}`; empty for none.
    #[serde(default)]
    pub mount: String,
    /// Separator of the devices in the mount source; `None` if the mount source is the first
    /// device.
    pub separator: Option<String>,
}

/// Command that prints the parameters of a new filesystem, and the output lines that are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Features {
    /// Argument vector with placeholders; empty if there is no command.
    #[serde(default)]
    pub argv: Vec<String>,
    /// Prefixes of the recorded output lines. A line whose text differs between two runs of mkfs,
    /// such as a UUID, must not be recorded.
    #[serde(default)]
    pub lines: Vec<String>,
}

/// Filesystem type.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filesystem {
    /// Name in plans: lower case, unique.
    pub name: String,
    /// Description for lists.
    pub title: String,
    /// Kind of storage that the filesystem requires.
    #[serde(default)]
    pub kind: Kind,
    /// Name in `/proc/filesystems`; empty for directories.
    #[serde(default)]
    pub fstype: String,
    /// Magic number (`f_type` of `statfs(2)`); 0 if it is not checked.
    #[serde(default)]
    pub magic: u64,
    /// Smallest device that mkfs accepts.
    #[serde(default, deserialize_with = "size")]
    pub min_size: Bytes,
    /// mkfs argument vector with placeholders.
    #[serde(default)]
    pub mkfs: Vec<String>,
    /// Reciprocal of the fraction of the device that mkfs writes with the arguments of the catalog;
    /// 0 if the fraction is negligible.
    #[serde(default)]
    pub mkfs_writes: u64,
    /// True if mkfs also mounts the filesystem on `{mount}`. It is then unmounted before the first
    /// timed mount.
    #[serde(default)]
    pub mkfs_mounts: bool,
    /// Argument vector of the program that mounts the filesystem; empty for mount(2).
    #[serde(default)]
    pub mount_command: Vec<String>,
    /// Argument vector of the program that unmounts the filesystem; empty for umount(2).
    #[serde(default)]
    pub umount_command: Vec<String>,
    /// Programs that the commands start and that must be installed, such as `mount.nfs`.
    #[serde(default)]
    pub helpers: Vec<String>,
    /// Arguments of mkfs that set the label `fslab`. These arguments precede the arguments of the
    /// plan, and are omitted if the plan sets a label.
    #[serde(default)]
    pub label: Vec<String>,
    /// Fixed mount options, which precede those of the plan.
    #[serde(default)]
    pub mount: String,
    /// Argument vector of fsck, which must not write to the device; empty if there is no such
    /// program.
    #[serde(default)]
    pub fsck: Vec<String>,
    /// Exit statuses of fsck that mean "no damage".
    #[serde(default)]
    pub fsck_clean: Vec<i32>,
    /// Command that prints the version of the tools.
    #[serde(default)]
    pub version: Vec<String>,
    /// Description of the work that the filesystem defers to kernel threads, and of its handling by
    /// fslab; empty if the filesystem defers nothing.
    #[serde(default)]
    pub deferred_work: String,
    /// Names, or parts of names, of the kernel threads that do the deferred work. `{device}` stands
    /// for the kernel name of a device.
    #[serde(default)]
    pub threads: Vec<String>,
    /// Command that prints the parameters of a new filesystem; it runs before the mount.
    #[serde(default)]
    pub features: Features,
    /// Arguments for several devices, if supported.
    pub multi_device: Option<MultiDevice>,
    /// Package that contains the tools, by distribution family.
    #[serde(default)]
    pub package: BTreeMap<String, String>,
    /// Other programs of the package, which a plan may use in `setup`.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Versions of the mainline kernel that contain the filesystem.
    #[serde(default)]
    pub kernel: KernelRange,
    /// Reference to the documentation of the arguments.
    pub source: String,
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    Bytes::parse(&text).map_err(serde::de::Error::custom)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    filesystem: Vec<Spanned<Filesystem>>,
}

/// Error of a catalog file.
#[derive(Debug, Error)]
pub enum CatalogError {
    /// The file cannot be read.
    #[error("cannot read {path}; --catalog requires a file in the format of filesystems.toml")]
    Read {
        /// File.
        path: PathBuf,
        /// Cause.
        source: std::io::Error,
    },
    /// The file contains an invalid entry.
    #[error("{path}:{line}: {message}; {hint}")]
    Entry {
        /// File.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Description of the error.
        message: String,
        /// Hint.
        hint: String,
    },
    /// The filesystem is not in the catalog.
    #[error("unknown filesystem `{name}`; {hint}")]
    Unknown {
        /// Name as given.
        name: String,
        /// Most similar name, or all names.
        hint: String,
    },
}

/// Filesystem types. The types of the built-in catalog come first. The order is that of the files.
#[derive(Clone, Debug)]
pub struct Catalog {
    entries: Vec<Filesystem>,
}

impl Default for Catalog {
    fn default() -> Self {
        Self::embedded()
    }
}

impl Catalog {
    /// Built-in catalog.
    ///
    /// # Panics
    /// Never: a test parses the embedded file.
    pub fn embedded() -> Self {
        match parse(EMBEDDED, Path::new("filesystems.toml")) {
            Ok(entries) => Self { entries },
            Err(error) => unreachable!("the embedded catalog is invalid: {error}"),
        }
    }

    /// Built-in catalog with the entries of the user's file. An entry with the name of a built-in
    /// entry replaces the built-in entry; other entries are appended.
    ///
    /// # Errors
    /// [`CatalogError`] with file, line, and hint.
    pub fn with_file(path: &Path) -> Result<Self, CatalogError> {
        Self::embedded().merged(&Self::text_of(path)?, path)
    }

    /// Reads the user's file, of at most 1 MiB.
    ///
    /// # Errors
    /// [`CatalogError::Read`].
    pub fn text_of(path: &Path) -> Result<String, CatalogError> {
        let read = |source| CatalogError::Read { path: path.to_owned(), source };
        sys::input::text(path, 1 << 20).map_err(read)
    }

    pub(crate) fn merged(mut self, text: &str, path: &Path) -> Result<Self, CatalogError> {
        for entry in parse(text, path)? {
            match self.entries.iter_mut().find(|known| known.name == entry.name) {
                Some(known) => *known = entry,
                None => self.entries.push(entry),
            }
        }
        Ok(self)
    }

    /// This catalog with the types of the entries of a plan that have a `mount_command`. A type
    /// that the catalog does not contain is created in a directory or on devices, as the storage of
    /// the plan provides.
    #[must_use]
    pub fn with_levels(mut self, levels: &[FilesystemLevel], in_directory: bool) -> Self {
        for level in levels.iter().filter(|level| !level.commands.mount.is_empty()) {
            if self.get(&level.fs_type).is_err() {
                self.entries.push(Filesystem {
                    name: level.fs_type.clone(),
                    title: "Defined by the plan".into(),
                    kind: if in_directory { Kind::Command } else { Kind::Block },
                    fstype: level.fs_type.clone(),
                    source: "the plan".into(),
                    ..Filesystem::default()
                });
            }
        }
        self
    }

    /// Types that a command mounts, for the parser of plans.
    pub fn mounted_types(&self) -> Vec<MountedType> {
        let mounted = self.entries.iter().filter(|entry| entry.is_mounted_by_command());
        let named = |entry: &Filesystem| MountedType {
            name: entry.name.clone(),
            in_directory: entry.kind == Kind::Command,
        };
        mounted.map(named).collect()
    }

    /// All filesystem types.
    pub fn all(&self) -> &[Filesystem] {
        &self.entries
    }

    /// Finds a filesystem type by name.
    ///
    /// # Errors
    /// [`CatalogError::Unknown`] with the most similar name as a hint.
    pub fn get(&self, name: &str) -> Result<&Filesystem, CatalogError> {
        self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let names = || self.entries.iter().map(|entry| entry.name.as_str());
            let hint = match nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("use one of: {}", names().collect::<Vec<_>>().join(", ")),
            };
            CatalogError::Unknown { name: name.to_owned(), hint }
        })
    }
}

impl Filesystem {
    /// Argument vector of mkfs for at least one device, with the mkfs arguments of the level; empty
    /// if the filesystem has no mkfs.
    pub fn mkfs_argv(&self, devices: &[String], level: &FilesystemLevel) -> Vec<String> {
        let template = match &self.multi_device {
            Some(many) if devices.len() > 1 => &many.mkfs,
            _ => &self.mkfs,
        };
        // The label is omitted if the level sets one, because some programs reject an option that
        // is given twice.
        let flag = self.label.first().map_or("", |flag| flag.split('=').next().unwrap_or(flag));
        let labeled = level.mkfs.iter().any(|argument| argument.starts_with(flag));
        let label = self.label.iter().filter(|_| !labeled);
        let options: Vec<String> = label.chain(&level.mkfs).cloned().collect();
        fill(template, devices, &options)
    }

    /// Argument vector of fsck; `None` if there is no such program.
    pub fn fsck_argv(&self, devices: &[String]) -> Option<Vec<String>> {
        (!self.fsck.is_empty()).then(|| fill(&self.fsck, devices, &[]))
    }

    /// Argument vector of the command that prints the parameters of a new filesystem; `None` if
    /// there is no such command.
    pub fn features_argv(&self, devices: &[String]) -> Option<Vec<String>> {
        let argv = &self.features.argv;
        (!argv.is_empty()).then(|| fill(argv, devices, &[]))
    }

    /// Extracts the parameters of a new filesystem from the output of the command: the recorded
    /// lines, with white space collapsed. Device names differ between runs and are replaced by
    /// `{device}`.
    pub fn features_in(&self, text: &str, devices: &[String]) -> String {
        let kept = |line: &&str| self.features.lines.iter().any(|start| line.starts_with(start));
        let lines = text.lines().map(str::trim).filter(kept);
        let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let features = words.collect::<Vec<_>>().join("; ");
        devices.iter().fold(features, |features, device| features.replace(device, "{device}"))
    }

    /// Names of the kernel threads that do deferred work on devices with these kernel names.
    pub fn deferred_threads(&self, names: &[String]) -> Vec<String> {
        let threads = self.threads.iter();
        let each = threads.flat_map(|thread| match thread.contains("{device}") {
            true => names.iter().map(|name| thread.replace("{device}", name)).collect(),
            false => vec![thread.clone()],
        });
        each.collect()
    }

    /// Source argument of the mount.
    pub fn mount_source(&self, devices: &[String]) -> String {
        let separator = self.multi_device.as_ref().and_then(|many| many.separator.as_deref());
        match (separator, devices) {
            (_, []) => self.name.clone(),
            (Some(separator), _) => devices.join(separator),
            (None, [first, ..]) => first.clone(),
        }
    }

    /// Mount options: the fixed options, then the options for all devices except the first, then
    /// the options of the level.
    pub fn mount_options(
        &self,
        devices: &[String],
        size: Bytes,
        level: &FilesystemLevel,
    ) -> String {
        let mut options = vec![self.mount.replace("{size}", &size.0.to_string())];
        if let Some(many) = &self.multi_device {
            let further = devices.iter().skip(1);
            options.extend(further.map(|device| many.mount.replace("{device}", device)));
        }
        options.push(level.mount.clone());
        options.retain(|option| !option.is_empty());
        options.join(",")
    }

    /// Required programs, without duplicates: those of mkfs, fsck, and the mount, and helpers.
    pub fn programs(&self) -> Vec<&str> {
        let vectors = [&self.mkfs, &self.fsck, &self.mount_command, &self.umount_command];
        let first = vectors.into_iter().filter_map(|argv| argv.first());
        let mut programs: Vec<&str> = Vec::new();
        for program in first.chain(&self.helpers) {
            if !programs.contains(&program.as_str()) {
                programs.push(program);
            }
        }
        programs
    }

    /// True if the mount command requires the `source` of the plan.
    pub fn needs_source(&self) -> bool {
        self.mount_command.iter().any(|argument| argument.contains("{source}"))
    }

    /// True if a command mounts the filesystem.
    pub fn is_mounted_by_command(&self) -> bool {
        !self.mount_command.is_empty()
    }
}

/// Replaces the placeholders of devices and options in an argument vector.
pub(crate) fn fill(template: &[String], devices: &[String], options: &[String]) -> Vec<String> {
    let first = devices.first().map_or("", String::as_str);
    let mut argv = Vec::new();
    for argument in template {
        match argument.as_str() {
            "{options}" => argv.extend_from_slice(options),
            "{devices}" => argv.extend_from_slice(devices),
            _ => argv.push(argument.replace("{device}", first)),
        }
    }
    argv
}

fn parse(text: &str, path: &Path) -> Result<Vec<Filesystem>, CatalogError> {
    let entry = |span: Option<Range<usize>>, message: String, hint: String| {
        let start = span.map_or(0, |span| span.start).min(text.len());
        let line = text[..start].matches('\n').count() + 1;
        CatalogError::Entry { path: path.to_owned(), line, message, hint }
    };
    let document: Document = toml::from_str(text).map_err(|error| {
        let message = error.message().trim().replace('\n', ": ");
        entry(error.span(), message, hint_of(error.message()))
    })?;
    let mut entries: Vec<Filesystem> = Vec::new();
    for spanned in document.filesystem {
        let span = Some(spanned.span());
        let filesystem = spanned.into_inner();
        filesystem.check().map_err(|(message, hint)| entry(span.clone(), message, hint))?;
        if entries.iter().any(|known| known.name == filesystem.name) {
            let message = format!("`{}` is defined twice", filesystem.name);
            return Err(entry(span, message, "rename one of them".into()));
        }
        entries.push(filesystem);
    }
    Ok(entries)
}

/// Hint for an error message of the TOML parser. For an unknown key, the hint is the most similar
/// known key; the parser quotes the unknown key first, and then the known keys.
fn hint_of(message: &str) -> String {
    let mut words = message.split('`').skip(1).step_by(2);
    let given = words.next().unwrap_or_default();
    match nearest(given, words) {
        Some(near) if message.starts_with("unknown") => format!("did you mean `{near}`?"),
        _ => "see filesystems.toml for the format of an entry".to_owned(),
    }
}

#[cfg(test)]
mod tests;
