//! Which filesystems there are: data, not code.
//!
//! `filesystems.toml` is embedded; a user's file of the same form is merged on top
//! ([`Catalogue::with_file`]). Out come argument vectors. Whether this machine can run them,
//! [`Catalogue::availability`] says.

use std::{
    collections::BTreeMap,
    ops::Range,
    path::{Path, PathBuf},
};

use model::{Bytes, FilesystemLevel, suggest::nearest};
use serde::{Deserialize, Deserializer};
use thiserror::Error;
use toml::Spanned;

const EMBEDDED: &str = include_str!("../filesystems.toml");

/// Every placeholder an argument or option may hold.
const PLACEHOLDERS: [&str; 4] = ["device", "devices", "options", "size"];

/// What a filesystem is made on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Block devices.
    #[default]
    Block,
    /// Nothing: it lives in memory.
    Memory,
    /// A directory that is there already; nothing is made.
    Directory,
}

/// When the mainline kernel had a filesystem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KernelRange {
    /// First version that had it.
    pub since: Option<String>,
    /// First version that had it no more.
    pub until: Option<String>,
    /// What it is instead, if the mainline kernel never had it.
    pub never: Option<String>,
}

impl KernelRange {
    /// The range in words: "in mainline since 2.4.1, removed in 6.13"; empty when nothing is known.
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

/// How a filesystem spans several devices.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Many {
    /// Instead of [`Filesystem::mkfs`].
    pub mkfs: Vec<String>,
    /// A mount option for each device but the first, with `{device}` in it; empty for none.
    #[serde(default)]
    pub mount: String,
    /// What joins the devices to the source of mount; without it the source is the first device.
    pub separator: Option<String>,
}

/// How to ask a filesystem what it was made with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Features {
    /// The argument vector, with placeholders; empty where there is none.
    #[serde(default)]
    pub argv: Vec<String>,
    /// What the lines to keep begin with; what differs from one mkfs to the next is left out.
    #[serde(default)]
    pub lines: Vec<String>,
}

/// One filesystem.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filesystem {
    /// Its name in plans: lower case, unique.
    pub name: String,
    /// What it is, for lists.
    pub title: String,
    /// What it is made on.
    #[serde(default)]
    pub kind: Kind,
    /// Its name in `/proc/filesystems`; empty for directories.
    #[serde(default)]
    pub fstype: String,
    /// What `statfs(2)` answers as `f_type`; 0 when it is not checked.
    #[serde(default)]
    pub magic: u64,
    /// The smallest device its mkfs accepts.
    #[serde(default, deserialize_with = "size")]
    pub min: Bytes,
    /// Makes it: argument vector with placeholders.
    #[serde(default)]
    pub mkfs: Vec<String>,
    /// Arguments that give it the label `fslab`, put before those of the plan.
    #[serde(default)]
    pub label: Vec<String>,
    /// Mount options it always has, before those of the plan.
    #[serde(default)]
    pub mount: String,
    /// Checks it without changing it; empty where there is no such program.
    #[serde(default)]
    pub fsck: Vec<String>,
    /// Exit statuses of the check that mean: no damage.
    #[serde(default)]
    pub fsck_clean: Vec<i32>,
    /// Prints the version of its tools.
    #[serde(default)]
    pub version: Vec<String>,
    /// What it puts off, and what is done about that, in words; empty where it puts off nothing.
    #[serde(default)]
    pub background: String,
    /// Names, or parts of names, of the kernel threads that do what it puts off, with `{device}`
    /// for the kernel's name of a device.
    #[serde(default)]
    pub threads: Vec<String>,
    /// How to ask what it was made with, before it is mounted.
    #[serde(default)]
    pub features: Features,
    /// How it spans several devices, if it can.
    pub many: Option<Many>,
    /// Distribution family to the package that has its tools.
    #[serde(default)]
    pub package: BTreeMap<String, String>,
    /// Further programs of its package, which a plan may name in `setup`.
    #[serde(default)]
    pub tools: Vec<String>,
    /// When the mainline kernel had it.
    #[serde(default)]
    pub kernel: KernelRange,
    /// Where its arguments are documented.
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

/// Why a catalogue cannot be used.
#[derive(Debug, Error)]
pub enum CatalogueError {
    /// The file cannot be read.
    #[error("cannot read {path}; --filesystems takes a file of the form of filesystems.toml")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// The file says something that has no meaning.
    #[error("{path}:{line}: {message}; {cure}")]
    Entry {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
        /// What to write instead.
        cure: String,
    },
    /// No filesystem has that name.
    #[error("no filesystem is called `{name}`; {cure}")]
    Unknown {
        /// The name as given.
        name: String,
        /// The nearest name, or all of them.
        cure: String,
    },
}

/// All filesystems, in the order of the files.
#[derive(Clone, Debug)]
pub struct Catalogue {
    entries: Vec<Filesystem>,
}

impl Default for Catalogue {
    fn default() -> Self {
        Self::embedded()
    }
}

impl Catalogue {
    /// The catalogue that comes with the program.
    ///
    /// # Panics
    /// Never: a test reads the embedded file.
    pub fn embedded() -> Self {
        match parse(EMBEDDED, Path::new("filesystems.toml")) {
            Ok(entries) => Self { entries },
            Err(error) => unreachable!("the embedded catalogue is broken: {error}"),
        }
    }

    /// The catalogue that comes with the program, and the user's file on top: an entry of the same
    /// name replaces the embedded one as a whole, others are added at the end.
    ///
    /// # Errors
    /// [`CatalogueError`] with file, line and cure.
    pub fn with_file(path: &Path) -> Result<Self, CatalogueError> {
        Self::embedded().merged(&Self::text_of(path)?, path)
    }

    /// The text of the user's file, which has at most 1 MiB.
    ///
    /// # Errors
    /// [`CatalogueError::Read`].
    pub fn text_of(path: &Path) -> Result<String, CatalogueError> {
        let read = |source| CatalogueError::Read { path: path.to_owned(), source };
        sys::input::text(path, 1 << 20).map_err(read)
    }

    pub(crate) fn merged(mut self, text: &str, path: &Path) -> Result<Self, CatalogueError> {
        for entry in parse(text, path)? {
            match self.entries.iter_mut().find(|known| known.name == entry.name) {
                Some(known) => *known = entry,
                None => self.entries.push(entry),
            }
        }
        Ok(self)
    }

    /// Every filesystem.
    pub fn all(&self) -> &[Filesystem] {
        &self.entries
    }

    /// The filesystem of that name.
    ///
    /// # Errors
    /// [`CatalogueError::Unknown`] with the nearest name.
    pub fn get(&self, name: &str) -> Result<&Filesystem, CatalogueError> {
        self.entries.iter().find(|entry| entry.name == name).ok_or_else(|| {
            let names = || self.entries.iter().map(|entry| entry.name.as_str());
            let cure = match nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are: {}", names().collect::<Vec<_>>().join(", ")),
            };
            CatalogueError::Unknown { name: name.to_owned(), cure }
        })
    }
}

impl Filesystem {
    /// The argument vector that makes it on these devices (at least one), with the level's own
    /// arguments; empty for a filesystem that is not made.
    pub fn mkfs_argv(&self, devices: &[String], level: &FilesystemLevel) -> Vec<String> {
        let template = match &self.many {
            Some(many) if devices.len() > 1 => &many.mkfs,
            _ => &self.mkfs,
        };
        // Some programs refuse an option that is given twice.
        let flag = self.label.first().map_or("", |flag| flag.split('=').next().unwrap_or(flag));
        let labelled = level.mkfs.iter().any(|argument| argument.starts_with(flag));
        let label = self.label.iter().filter(|_| !labelled);
        let options: Vec<String> = label.chain(&level.mkfs).cloned().collect();
        fill(template, devices, &options)
    }

    /// The argument vector that checks it without changing it; `None` where there is no such
    /// program.
    pub fn fsck_argv(&self, devices: &[String]) -> Option<Vec<String>> {
        (!self.fsck.is_empty()).then(|| fill(&self.fsck, devices, &[]))
    }

    /// The argument vector that asks what it was made with; `None` where there is none.
    pub fn features_argv(&self, devices: &[String]) -> Option<Vec<String>> {
        let argv = &self.features.argv;
        (!argv.is_empty()).then(|| fill(argv, devices, &[]))
    }

    /// What an answer to that says: the lines to keep, their white space closed up, and devices
    /// without their names, which are others in the next run.
    pub fn features_in(&self, text: &str, devices: &[String]) -> String {
        let kept = |line: &&str| self.features.lines.iter().any(|start| line.starts_with(start));
        let lines = text.lines().map(str::trim).filter(kept);
        let words = lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        let told = words.collect::<Vec<_>>().join("; ");
        devices.iter().fold(told, |told, device| told.replace(device, "{device}"))
    }

    /// The kernel threads that do what it puts off, on devices of these names.
    pub fn background_threads(&self, names: &[String]) -> Vec<String> {
        let threads = self.threads.iter();
        let each = threads.flat_map(|thread| match thread.contains("{device}") {
            true => names.iter().map(|name| thread.replace("{device}", name)).collect(),
            false => vec![thread.clone()],
        });
        each.collect()
    }

    /// What mount is told as the source.
    pub fn mount_source(&self, devices: &[String]) -> String {
        let separator = self.many.as_ref().and_then(|many| many.separator.as_deref());
        match (separator, devices) {
            (_, []) => self.name.clone(),
            (Some(separator), _) => devices.join(separator),
            (None, [first, ..]) => first.clone(),
        }
    }

    /// Its mount options: its own, those that name further devices, those of the level.
    pub fn mount_options(
        &self,
        devices: &[String],
        size: Bytes,
        level: &FilesystemLevel,
    ) -> String {
        let mut options = vec![self.mount.replace("{size}", &size.0.to_string())];
        if let Some(many) = &self.many {
            let further = devices.iter().skip(1);
            options.extend(further.map(|device| many.mount.replace("{device}", device)));
        }
        options.push(level.mount.clone());
        options.retain(|option| !option.is_empty());
        options.join(",")
    }

    /// The programs it needs, each once: mkfs and fsck.
    pub fn programs(&self) -> Vec<&str> {
        let vectors = [&self.mkfs, &self.fsck];
        let mut programs: Vec<&str> =
            vectors.into_iter().filter_map(|argv| argv.first()).map(String::as_str).collect();
        programs.dedup();
        programs
    }

    /// What is wrong with the entry and what cures it.
    fn check(&self) -> Result<(), (String, String)> {
        let bad = |message: String, cure: &str| Err((message, cure.to_owned()));
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(letters) {
            let message = format!("`{}` is not a name for a filesystem", self.name);
            return bad(message, "use lower-case letters, digits and dashes");
        }
        if self.kind == Kind::Block && (self.mkfs.is_empty() || self.fstype.is_empty()) {
            let message = format!("`{}` lacks `mkfs` or `fstype`", self.name);
            return bad(message, "write both, or kind = \"memory\" or \"directory\"");
        }
        let many = self.many.iter().flat_map(|many| many.mkfs.iter().chain([&many.mount]));
        let own = self.mkfs.iter().chain(&self.fsck).chain([&self.mount]).chain(many);
        let texts = own.chain(&self.features.argv).chain(&self.threads);
        for name in texts.flat_map(|text| placeholders(text)) {
            if !PLACEHOLDERS.contains(&name) {
                let cure = match nearest(name, PLACEHOLDERS) {
                    Some(near) => format!("did you mean `{{{near}}}`?"),
                    None => "there are {device}, {devices}, {options} and {size}".to_owned(),
                };
                return Err((format!("`{{{name}}}` stands for nothing"), cure));
            }
        }
        let has = |argv: &[String], word: &str| argv.iter().any(|argument| argument == word);
        if self.kind == Kind::Block && !has(&self.mkfs, "{device}") {
            let message = format!("mkfs of `{}` does not name its device", self.name);
            return bad(message, "put \"{device}\" where the device goes");
        }
        if self.many.as_ref().is_some_and(|many| !has(&many.mkfs, "{devices}")) {
            let message = format!("many.mkfs of `{}` does not name its devices", self.name);
            return bad(message, "put \"{devices}\" where the devices go");
        }
        Ok(())
    }
}

fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

fn fill(template: &[String], devices: &[String], options: &[String]) -> Vec<String> {
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

fn parse(text: &str, path: &Path) -> Result<Vec<Filesystem>, CatalogueError> {
    let entry = |span: Option<Range<usize>>, message: String, cure: String| {
        let start = span.map_or(0, |span| span.start).min(text.len());
        let line = text[..start].matches('\n').count() + 1;
        CatalogueError::Entry { path: path.to_owned(), line, message, cure }
    };
    let document: Document = toml::from_str(text).map_err(|error| {
        let message = error.message().trim().replace('\n', ": ");
        entry(error.span(), message, cure_of(error.message()))
    })?;
    let mut entries: Vec<Filesystem> = Vec::new();
    for spanned in document.filesystem {
        let span = Some(spanned.span());
        let filesystem = spanned.into_inner();
        filesystem.check().map_err(|(message, cure)| entry(span.clone(), message, cure))?;
        if entries.iter().any(|known| known.name == filesystem.name) {
            let message = format!("`{}` is there twice", filesystem.name);
            return Err(entry(span, message, "give one of them another name".into()));
        }
        entries.push(filesystem);
    }
    Ok(entries)
}

/// What helps against a message of the reader: for a key or word that is unknown, the nearest one
/// that is known. The reader quotes the word first and the known ones after.
fn cure_of(message: &str) -> String {
    let mut words = message.split('`').skip(1).step_by(2);
    let given = words.next().unwrap_or_default();
    match nearest(given, words) {
        Some(near) if message.starts_with("unknown") => format!("did you mean `{near}`?"),
        _ => "see filesystems.toml for the form of an entry".to_owned(),
    }
}

#[cfg(test)]
mod tests;
