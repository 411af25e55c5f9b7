//! Options that kernels and tools no longer support. A plan that uses such an option runs without
//! it or with its replacement, and the report contains a warning.
//!
//! The input is a filesystem level, that is, an entry of `filesystem` in the plan. The output has
//! three parts: the level with the options in effect, the removed options, and the options that are
//! passed on with a note on their present meaning. `options.toml` lists these options. An entry
//! with a kernel version applies if the running kernel has this version or a newer one, or if its
//! version is unknown. Options that are not listed are passed on, and mkfs or the kernel rejects
//! unknown ones.

use std::path::Path;

use model::{FilesystemLevel, Warning};
use serde::Deserialize;

use crate::{catalog::Filesystem, host::Host, mount};

const EMBEDDED: &str = include_str!("../options.toml");

/// Entry of `options.toml`, where the keys are described.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    filesystems: Vec<String>,
    r#where: OptionKind,
    names: Vec<String>,
    value: Option<String>,
    #[serde(default)]
    takes: bool,
    kernel: Option<String>,
    action: Action,
    #[serde(default)]
    by: String,
    #[serde(default)]
    also: Vec<String>,
    instead: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "documentation of the entry"))]
    source: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OptionKind {
    Mount,
    Mkfs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    Drop,
    Replace,
    Keep,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    option: Vec<Entry>,
}

/// Filesystem level with the options in effect.
#[derive(Clone, Debug, PartialEq)]
pub struct ResolvedOptions {
    /// Filesystem level without the removed options.
    pub level: FilesystemLevel,
    /// One [`Warning::OptionRemoved`] for each removed option.
    pub removed: Vec<Warning>,
    /// Options that are passed on unchanged, each with a note on its current meaning.
    pub kept: Vec<String>,
}

/// Resolves the options of a filesystem level for this machine. Arguments of mkfs are searched in
/// the entries for the original type, and mount options in the entries for the type after a
/// conversion.
///
/// # Panics
/// Never: a test parses the embedded table.
pub fn resolve_options(
    level: &FilesystemLevel,
    filesystem: &Filesystem,
    converted_to: Option<&Filesystem>,
    host: &dyn Host,
) -> ResolvedOptions {
    let table = match toml::from_str::<Document>(EMBEDDED) {
        Ok(document) => document.option,
        Err(error) => unreachable!("the embedded options table is invalid: {error}"),
    };
    let release = host.read(Path::new("/proc/sys/kernel/osrelease")).ok();
    let kernel = release.as_deref().and_then(version);
    let of = |place: OptionKind, name: &str| {
        let fits = |entry: &&Entry| {
            let old = |since| kernel.is_some_and(|kernel| Some(kernel) < version(since));
            entry.r#where == place
                && entry.filesystems.iter().any(|known| known == name)
                && !entry.kernel.as_deref().is_some_and(old)
        };
        table.iter().filter(fits).collect::<Vec<_>>()
    };
    let mut resolved =
        ResolvedOptions { level: level.clone(), removed: Vec::new(), kept: Vec::new() };
    let (made, mounted) = (&filesystem.name, &converted_to.unwrap_or(filesystem).name);
    mkfs(&of(OptionKind::Mkfs, made), made, &mut resolved);
    mount_options(&of(OptionKind::Mount, mounted), mounted, &mut resolved);
    resolved
}

/// Major and minor version of a kernel release.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

impl ResolvedOptions {
    /// Records that an entry applies to an option. `by` is the replacement of the option, if any.
    fn add(&mut self, entry: &Entry, filesystem: &str, option: &str, by: Option<&str>) {
        let kind = match entry.r#where {
            OptionKind::Mount => "mount option",
            OptionKind::Mkfs => "mkfs argument",
        };
        let (option, instead) = (format!("{kind} {option} of {filesystem}"), &entry.instead);
        if entry.action == Action::Keep {
            return self.kept.push(format!("{option}: {instead}"));
        }
        let since = entry.kernel.as_ref().map(|kernel| format!("since Linux {kernel}, "));
        let done = by.map_or("omitted".to_owned(), |by| format!("replaced by {by}"));
        let instead = format!("{}{done}; {instead}", since.unwrap_or_default());
        self.removed.push(Warning::OptionRemoved { option, instead });
    }
}

fn mount_options(table: &[&Entry], filesystem: &str, resolved: &mut ResolvedOptions) {
    let mut left = Vec::new();
    let words = mount::split(&resolved.level.mount);
    for word in &words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let entry = table.iter().find(|entry| {
            entry.names.iter().any(|known| known == name)
                && entry.value.as_deref().is_none_or(|only| only == value)
        });
        if let Some(entry) = entry {
            resolved.add(entry, filesystem, word, None);
        }
        if entry.is_none_or(|entry| entry.action == Action::Keep) {
            // A value that contains a comma was quoted in the plan.
            left.push(if word.contains(',') { format!("\"{word}\"") } else { word.clone() });
        }
    }
    if left.len() < words.len() {
        resolved.level.mount = left.join(",");
    }
}

fn mkfs(table: &[&Entry], filesystem: &str, resolved: &mut ResolvedOptions) {
    let given = std::mem::take(&mut resolved.level.mkfs);
    let has = |name: &String| given.iter().any(|argument| attached_value(argument, name).is_some());
    let mut arguments = given.iter();
    while let Some(argument) = arguments.next() {
        let known =
            |entry: &&&Entry| entry.names.iter().any(|n| attached_value(argument, n).is_some());
        let Some(entry) = table.iter().find(known) else {
            resolved.level.mkfs.push(argument.clone());
            continue;
        };
        let mut value = entry.names.iter().find_map(|name| attached_value(argument, name));
        let mut shown = argument.clone();
        if entry.takes && value.is_some_and(str::is_empty) {
            value = arguments.next().map(String::as_str);
            shown = format!("{shown} {}", value.unwrap_or_default());
        }
        let same = has(&entry.by) || entry.also.iter().any(has);
        let replaced = value.filter(|_| entry.action == Action::Replace && !same);
        let by = replaced.map(|value| [entry.by.clone(), value.to_owned()]);
        resolved.add(
            entry,
            filesystem,
            shown.trim_end(),
            by.as_ref().map(|by| by.join(" ")).as_deref(),
        );
        resolved.level.mkfs.extend(by.into_iter().flatten());
    }
}

/// Value that is attached to the option `name` in an argument: the rest of a short option
/// (`-n16384`), or the text after the `=` of a long option. Empty if the argument is the option
/// alone; `None` if the argument is another option.
fn attached_value<'a>(argument: &'a str, name: &str) -> Option<&'a str> {
    let rest = argument.strip_prefix(name).filter(|_| !name.is_empty())?;
    match name.starts_with("--") {
        true if rest.is_empty() => Some(rest),
        true => rest.strip_prefix('='),
        false => Some(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Catalog, FakeHost};

    fn check(base: &str, mkfs: &[&str], mount: &str, kernel: &str) -> (String, String, String) {
        let directory = tempfile::tempdir().unwrap();
        let host = FakeHost::new(directory.path()).file("/proc/sys/kernel/osrelease", kernel);
        let catalog = Catalog::embedded();
        let mkfs = mkfs.iter().map(|argument| (*argument).to_owned()).collect();
        let level = FilesystemLevel { mkfs, mount: mount.into(), ..FilesystemLevel::plain(base) };
        let resolved = resolve_options(&level, catalog.get(base).unwrap(), None, &host);
        let removed = resolved.removed.iter().map(|warning| {
            let Warning::OptionRemoved { option, .. } = warning else { panic!("{warning:?}") };
            option.as_str()
        });
        let described: Vec<_> = removed.chain(resolved.kept.iter().map(String::as_str)).collect();
        (resolved.level.mkfs.join(" "), resolved.level.mount, described.join("; "))
    }

    #[test]
    fn the_table_is_valid() {
        let catalog = Catalog::embedded();
        let document: Document = toml::from_str(EMBEDDED).unwrap();
        for entry in document.option {
            assert!(!entry.instead.ends_with('.') && !entry.source.is_empty(), "{entry:?}");
            assert_eq!(entry.action == Action::Replace, !entry.by.is_empty(), "{entry:?}");
            assert!(entry.kernel.as_deref().is_none_or(|kernel| version(kernel).is_some()));
            assert!(entry.filesystems.iter().all(|name| catalog.get(name).is_ok()), "{entry:?}");
        }
    }

    #[test]
    fn options_removed_from_ext4_are_omitted() {
        let options = "rw,noatime,data=writeback,barrier=0,nobh,commit=60";
        let (_, mount, described) = check("ext4", &[], options, "6.18.44\n");
        assert_eq!(mount, "rw,noatime,data=writeback,barrier=0,commit=60");
        assert_eq!(described, "mount option nobh of ext4");
    }

    #[test]
    fn options_are_kept_on_kernels_that_have_them() {
        let options = "nobarrier,logbsize=262144,logbufs=8";
        let (_, mount, described) = check("xfs", &[], options, "4.19.0-rc1");
        assert_eq!(mount, "logbsize=262144,logbufs=8");
        assert_eq!(
            described,
            "mount option nobarrier of xfs; mount option logbufs=8 of xfs: it is the default"
        );
        let (_, mount, described) = check("xfs", &[], "nobarrier,logbufs=4", "4.18.20");
        assert_eq!((mount.as_str(), described.as_str()), ("nobarrier,logbufs=4", ""));
        assert_eq!(check("xfs", &[], "ikeep", "6.17.1").1, "ikeep");
        assert_eq!(check("xfs", &[], "ikeep", "6.18.0").1, "");
        assert_eq!(check("xfs", &[], "context=\"a,b\",delaylog", "6.1").1, "\"context=a,b\"");
    }

    #[test]
    fn leafsize_is_replaced_by_nodesize() {
        let check = |mkfs: &[&str]| {
            let (mkfs, _, described) = check("btrfs", mkfs, "", "6.18");
            (mkfs, described)
        };
        let both = check(&["-l", "16384", "-n", "16384"]);
        assert_eq!(both, ("-n 16384".into(), "mkfs argument -l 16384 of btrfs".into()));
        assert_eq!(check(&["-l16384", "-s", "4096"]).0, "-n 16384 -s 4096");
        assert_eq!(check(&["--leafsize=32k", "--nodesize=32k"]).0, "--nodesize=32k");
        assert_eq!(check(&["--leafsize", "32k"]).0, "-n 32k");
        assert_eq!(check(&["-L", "mine"]), ("-L mine".into(), String::new()));
    }

    #[test]
    fn mount_options_are_resolved_for_the_converted_type() {
        let directory = tempfile::tempdir().unwrap();
        let host = FakeHost::new(directory.path());
        let catalog = Catalog::embedded();
        let [ext4, btrfs] = ["ext4", "btrfs"].map(|name| catalog.get(name).unwrap());
        let mount = "nobh,subvolid=0".to_owned();
        let level = FilesystemLevel { mount, ..FilesystemLevel::plain("ext4") };
        let resolved = resolve_options(&level, ext4, Some(btrfs), &host);
        assert_eq!((resolved.level.mount.as_str(), resolved.removed.len()), ("nobh,subvolid=0", 0));
        assert!(resolved.kept[0].ends_with("reads back as subvolid=5"), "{:?}", resolved.kept);
        let resolved = resolve_options(&level, ext4, None, &host);
        assert_eq!((resolved.level.mount.as_str(), resolved.removed.len()), ("subvolid=0", 1));
    }
}
