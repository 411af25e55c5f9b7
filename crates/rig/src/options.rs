//! Options that kernels and tools have given up: plans written before are run with what is left of
//! them, and it is said.
//!
//! A level of the plan enters; out comes the level as it is put into force, what of it is gone, and
//! what is kept though it says less than it seems. The table is `options.toml`. Whether an option
//! is gone is decided by the version of the running kernel where the table has one; a kernel that
//! does not tell its version counts as new. Not here: options that nobody knows, which mkfs and the
//! kernel refuse with their own words.

use std::path::Path;

use model::{FilesystemLevel, Warning};
use serde::Deserialize;

use crate::{catalogue::Filesystem, host::Host, mount};

const EMBEDDED: &str = include_str!("../options.toml");

/// One entry of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    filesystems: Vec<String>,
    r#where: Where,
    names: Vec<String>,
    value: Option<String>,
    #[serde(default)]
    takes: bool,
    kernel: Option<String>,
    action: Act,
    #[serde(default)]
    by: String,
    #[serde(default)]
    also: Vec<String>,
    instead: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "for whoever reads the table"))]
    source: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Where {
    Mount,
    Mkfs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Act {
    Drop,
    Replace,
    Keep,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    option: Vec<Entry>,
}

/// A level as it is put into force here.
#[derive(Clone, Debug, PartialEq)]
pub struct InForce {
    /// The level without what is gone.
    pub level: FilesystemLevel,
    /// What is gone: [`Warning::OptionGone`] for each option.
    pub gone: Vec<Warning>,
    /// What is given as the plan has it, and what it means: a sentence without a full stop each.
    pub kept: Vec<String>,
}

/// What of a level's options this machine still has. Arguments of mkfs are looked up for the entry
/// that it is made from, mount options for the one that it becomes.
///
/// # Panics
/// Never: a test reads the embedded table.
pub fn in_force(
    level: &FilesystemLevel,
    filesystem: &Filesystem,
    becomes: Option<&Filesystem>,
    host: &dyn Host,
) -> InForce {
    let table = match toml::from_str::<Document>(EMBEDDED) {
        Ok(document) => document.option,
        Err(error) => unreachable!("the embedded table of options is broken: {error}"),
    };
    let release = host.read(Path::new("/proc/sys/kernel/osrelease")).ok();
    let kernel = release.as_deref().and_then(version);
    let of = |place: Where, name: &str| {
        let fits = |entry: &&Entry| {
            let old = |since| kernel.is_some_and(|kernel| Some(kernel) < version(since));
            entry.r#where == place
                && entry.filesystems.iter().any(|known| known == name)
                && !entry.kernel.as_deref().is_some_and(old)
        };
        table.iter().filter(fits).collect::<Vec<_>>()
    };
    let mut answer = InForce { level: level.clone(), gone: Vec::new(), kept: Vec::new() };
    let (made, mounted) = (&filesystem.name, &becomes.unwrap_or(filesystem).name);
    mkfs(&of(Where::Mkfs, made), made, &mut answer);
    mount_options(&of(Where::Mount, mounted), mounted, &mut answer);
    answer
}

/// Major and minor number of a kernel's release.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().split(|c: char| !c.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

impl InForce {
    /// Takes down what the entry says of an option, and what was put in its place.
    fn say(&mut self, entry: &Entry, filesystem: &str, option: &str, by: Option<&str>) {
        let kind = match entry.r#where {
            Where::Mount => "mount option",
            Where::Mkfs => "mkfs argument",
        };
        let (option, instead) = (format!("{kind} {option} of {filesystem}"), &entry.instead);
        if entry.action == Act::Keep {
            return self.kept.push(format!("{option}: {instead}"));
        }
        let since = entry.kernel.as_ref().map(|kernel| format!("since Linux {kernel}, "));
        let done = by.map_or("left out".to_owned(), |by| format!("replaced by {by}"));
        let instead = format!("{}{done}; {instead}", since.unwrap_or_default());
        self.gone.push(Warning::OptionGone { option, instead });
    }
}

fn mount_options(table: &[&Entry], filesystem: &str, answer: &mut InForce) {
    let mut left = Vec::new();
    let words = mount::split(&answer.level.mount);
    for word in &words {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let entry = table.iter().find(|entry| {
            entry.names.iter().any(|known| known == name)
                && entry.value.as_deref().is_none_or(|only| only == value)
        });
        if let Some(entry) = entry {
            answer.say(entry, filesystem, word, None);
        }
        if entry.is_none_or(|entry| entry.action == Act::Keep) {
            // A comma within a value was quoted.
            left.push(if word.contains(',') { format!("\"{word}\"") } else { word.clone() });
        }
    }
    if left.len() < words.len() {
        answer.level.mount = left.join(",");
    }
}

fn mkfs(table: &[&Entry], filesystem: &str, answer: &mut InForce) {
    let given = std::mem::take(&mut answer.level.mkfs);
    let has = |name: &String| given.iter().any(|argument| glued(argument, name).is_some());
    let mut arguments = given.iter();
    while let Some(argument) = arguments.next() {
        let known = |entry: &&&Entry| entry.names.iter().any(|n| glued(argument, n).is_some());
        let Some(entry) = table.iter().find(known) else {
            answer.level.mkfs.push(argument.clone());
            continue;
        };
        let mut value = entry.names.iter().find_map(|name| glued(argument, name));
        let mut told = argument.clone();
        if entry.takes && value.is_some_and(str::is_empty) {
            value = arguments.next().map(String::as_str);
            told = format!("{told} {}", value.unwrap_or_default());
        }
        let same = has(&entry.by) || entry.also.iter().any(has);
        let replaced = value.filter(|_| entry.action == Act::Replace && !same);
        let by = replaced.map(|value| [entry.by.clone(), value.to_owned()]);
        answer.say(
            entry,
            filesystem,
            told.trim_end(),
            by.as_ref().map(|by| by.join(" ")).as_deref(),
        );
        answer.level.mkfs.extend(by.into_iter().flatten());
    }
}

/// What follows the name of an option within the same argument: nothing, the rest of a short one,
/// or what stands after the `=` of a long one. `None` if it is another option.
fn glued<'a>(argument: &'a str, name: &str) -> Option<&'a str> {
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
    use crate::{Catalogue, FakeHost};

    fn check(base: &str, mkfs: &[&str], mount: &str, kernel: &str) -> (String, String, String) {
        let folder = tempfile::tempdir().unwrap();
        let host = FakeHost::new(folder.path()).file("/proc/sys/kernel/osrelease", kernel);
        let catalogue = Catalogue::embedded();
        let mkfs = mkfs.iter().map(|argument| (*argument).to_owned()).collect();
        let level = FilesystemLevel { mkfs, mount: mount.into(), ..FilesystemLevel::plain(base) };
        let answer = in_force(&level, catalogue.get(base).unwrap(), None, &host);
        let gone = answer.gone.iter().map(|warning| {
            let Warning::OptionGone { option, .. } = warning else { panic!("{warning:?}") };
            option.as_str()
        });
        let said: Vec<_> = gone.chain(answer.kept.iter().map(String::as_str)).collect();
        (answer.level.mkfs.join(" "), answer.level.mount, said.join("; "))
    }

    #[test]
    fn the_table_is_sound() {
        let catalogue = Catalogue::embedded();
        let document: Document = toml::from_str(EMBEDDED).unwrap();
        for entry in document.option {
            assert!(!entry.instead.ends_with('.') && !entry.source.is_empty(), "{entry:?}");
            assert_eq!(entry.action == Act::Replace, !entry.by.is_empty(), "{entry:?}");
            assert!(entry.kernel.as_deref().is_none_or(|kernel| version(kernel).is_some()));
            assert!(entry.filesystems.iter().all(|name| catalogue.get(name).is_ok()), "{entry:?}");
        }
    }

    #[test]
    fn what_ext4_ignores_is_left_out_and_what_it_takes_stays() {
        let options = "rw,noatime,data=writeback,barrier=0,nobh,commit=60";
        let (_, mount, said) = check("ext4", &[], options, "6.18.44\n");
        assert_eq!(mount, "rw,noatime,data=writeback,barrier=0,commit=60");
        assert_eq!(said, "mount option nobh of ext4");
    }

    #[test]
    fn a_kernel_that_still_has_an_option_is_given_it() {
        let options = "nobarrier,logbsize=262144,logbufs=8";
        let (_, mount, said) = check("xfs", &[], options, "4.19.0-rc1");
        assert_eq!(mount, "logbsize=262144,logbufs=8");
        assert_eq!(
            said,
            "mount option nobarrier of xfs; mount option logbufs=8 of xfs: it is the default"
        );
        let (_, mount, said) = check("xfs", &[], "nobarrier,logbufs=4", "4.18.20");
        assert_eq!((mount.as_str(), said.as_str()), ("nobarrier,logbufs=4", ""));
        assert_eq!(check("xfs", &[], "ikeep", "6.17.1").1, "ikeep");
        assert_eq!(check("xfs", &[], "ikeep", "6.18.0").1, "");
        assert_eq!(check("xfs", &[], "context=\"a,b\",delaylog", "6.1").1, "\"context=a,b\"");
    }

    #[test]
    fn the_size_of_leaves_is_that_of_nodes() {
        let check = |mkfs: &[&str]| {
            let (mkfs, _, said) = check("btrfs", mkfs, "", "6.18");
            (mkfs, said)
        };
        let both = check(&["-l", "16384", "-n", "16384"]);
        assert_eq!(both, ("-n 16384".into(), "mkfs argument -l 16384 of btrfs".into()));
        assert_eq!(check(&["-l16384", "-s", "4096"]).0, "-n 16384 -s 4096");
        assert_eq!(check(&["--leafsize=32k", "--nodesize=32k"]).0, "--nodesize=32k");
        assert_eq!(check(&["--leafsize", "32k"]).0, "-n 32k");
        assert_eq!(check(&["-L", "mine"]), ("-L mine".into(), String::new()));
    }

    #[test]
    fn what_it_becomes_decides_about_mount_options() {
        let folder = tempfile::tempdir().unwrap();
        let host = FakeHost::new(folder.path());
        let catalogue = Catalogue::embedded();
        let [ext4, btrfs] = ["ext4", "btrfs"].map(|name| catalogue.get(name).unwrap());
        let mount = "nobh,subvolid=0".to_owned();
        let level = FilesystemLevel { mount, ..FilesystemLevel::plain("ext4") };
        let answer = in_force(&level, ext4, Some(btrfs), &host);
        assert_eq!((answer.level.mount.as_str(), answer.gone.len()), ("nobh,subvolid=0", 0));
        assert!(answer.kept[0].ends_with("reads back as subvolid=5"), "{:?}", answer.kept);
        let answer = in_force(&level, ext4, None, &host);
        assert_eq!((answer.level.mount.as_str(), answer.gone.len()), ("subvolid=0", 1));
    }
}
