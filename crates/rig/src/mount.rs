//! Mounts: options in the syntax of mount(8), the mount table, and the new mount API of Linux 5.2.
//!
//! [`attach`] is the only function that mounts. It uses `fsopen`, `fsconfig`, `fsmount`, and
//! `move_mount`, because these system calls return the messages of the filesystem, which mount(2)
//! writes to the kernel log only. Not supported: remounts, bind mounts, propagation, mount
//! namespaces.
//!
//! [`MountCommand`] describes a mount by a program.

mod command;

use std::{
    fmt, fs, io,
    os::fd::{AsFd, BorrowedFd},
    path::{Path, PathBuf},
};

use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount,
};

pub use self::command::{MountCommand, Mounting};

/// Error of a mount, with the kernel's message if there is one.
#[derive(Debug)]
pub struct MountRefusal {
    /// Failed step: `fsopen TYPE`, `source`, `option NAME`, `create`, `fsmount`, or `move_mount`.
    pub step: String,
    /// Messages of the filesystem; empty if there are none.
    pub words: String,
    /// Error of the system call.
    pub source: io::Error,
}

impl fmt::Display for MountRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.step, self.source)?;
        if self.words.is_empty() { Ok(()) } else { write!(f, "; kernel message: {}", self.words) }
    }
}

impl std::error::Error for MountRefusal {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Parameters of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountRequest {
    /// Device, or any name for a filesystem without a device.
    pub source: String,
    /// Mount point.
    pub target: PathBuf,
    /// Name in `/proc/filesystems`.
    pub fstype: String,
    /// Comma-separated options, as for mount(8).
    pub options: String,
}

impl MountRequest {
    /// Equivalent mount(8) command, for the record of actions.
    pub fn describe(&self) -> String {
        let options = match self.options.as_str() {
            "" => String::new(),
            options => format!(" -o {options}"),
        };
        format!("mount -t {}{options} {} {}", self.fstype, self.source, self.target.display())
    }
}

/// Mount options by kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Options of the mount point.
    pub attributes: MountAttrFlags,
    /// Keys of the options of the filesystem in order, each with its value if there is one.
    pub parameters: Vec<(String, Option<String>)>,
}

/// Attributes of a mount point and their names in mount(8) (`include/uapi/linux/mount.h`).
const ATTRIBUTES: [(&str, MountAttrFlags); 8] = [
    ("noatime", MountAttrFlags::MOUNT_ATTR_NOATIME),
    ("strictatime", MountAttrFlags::MOUNT_ATTR_STRICTATIME),
    ("nodiratime", MountAttrFlags::MOUNT_ATTR_NODIRATIME),
    ("nosuid", MountAttrFlags::MOUNT_ATTR_NOSUID),
    ("nodev", MountAttrFlags::MOUNT_ATTR_NODEV),
    ("noexec", MountAttrFlags::MOUNT_ATTR_NOEXEC),
    ("nosymfollow", MountAttrFlags::MOUNT_ATTR_NOSYMFOLLOW),
    ("ro", MountAttrFlags::MOUNT_ATTR_RDONLY),
];

/// Options of mount(8) that are the default of the kernel and therefore ignored.
const DEFAULTS: [&str; 8] =
    ["defaults", "relatime", "atime", "diratime", "suid", "dev", "exec", "symfollow"];

impl Options {
    /// Splits options by kind. A comma within double quotes does not separate options; the quotes
    /// are removed. Unknown options are passed to the filesystem, which rejects unsupported ones.
    pub fn parse(text: &str) -> Self {
        let mut options = Self { attributes: MountAttrFlags::empty(), parameters: Vec::new() };
        for option in split(text) {
            if DEFAULTS.contains(&option.as_str()) {
                continue;
            }
            let attribute = ATTRIBUTES.into_iter().find(|(name, _)| *name == option);
            if let Some((_, attribute)) = attribute {
                options.attributes |= attribute;
                if option != "ro" {
                    continue; // `ro` also applies to the superblock
                }
            }
            options.parameters.push(match option.split_once('=') {
                Some((key, value)) => (key.to_owned(), Some(value.to_owned())),
                None => (option, None),
            });
        }
        options
    }
}

/// Splits a comma-separated list of options, and removes double quotes.
pub(crate) fn split(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => words.push(std::mem::take(&mut word)),
            _ => word.push(c),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Mounts with the new mount API. The kernel loads the module of the filesystem if necessary.
///
/// # Errors
/// [`MountRefusal`] with the failed step, the error of the system call, and the messages of the
/// filesystem.
pub fn attach(request: &MountRequest) -> Result<(), MountRefusal> {
    let options = Options::parse(&request.options);
    let refusal = |step: &str, words: String, errno: rustix::io::Errno| MountRefusal {
        step: step.to_owned(),
        words,
        source: errno.into(),
    };
    let context = fsopen(request.fstype.as_str(), FsOpenFlags::FSOPEN_CLOEXEC)
        .map_err(|errno| refusal(&format!("fsopen {}", request.fstype), String::new(), errno))?;
    let context = context.as_fd();
    let failed = |step: &str, errno| refusal(step, messages(context), errno);
    fsconfig_set_string(context, "source", request.source.as_str())
        .map_err(|errno| failed("source", errno))?;
    for (key, value) in &options.parameters {
        let set = match value {
            Some(value) => fsconfig_set_string(context, key.as_str(), value.as_str()),
            None => fsconfig_set_flag(context, key.as_str()),
        };
        set.map_err(|errno| failed(&format!("option {key}"), errno))?;
    }
    fsconfig_create(context).map_err(|errno| failed("create", errno))?;
    let mount = fsmount(context, FsMountFlags::FSMOUNT_CLOEXEC, options.attributes)
        .map_err(|errno| failed("fsmount", errno))?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(&mount, "", rustix::fs::CWD, &request.target, flags)
        .map_err(|errno| failed("move_mount", errno))
}

/// Errors and warnings of the filesystem context, oldest first. Each read returns one message as `e
/// TEXT` (error), `w TEXT` (warning), or `i TEXT` (information); the last read fails with `ENODATA`
/// (`fs/fsopen.c`).
fn messages(context: BorrowedFd<'_>) -> String {
    let mut messages = Vec::new();
    let mut buffer = [0u8; 4096];
    while let Ok(length) = rustix::io::read(context, &mut buffer) {
        let text = String::from_utf8_lossy(&buffer[..length]);
        let text = text.trim();
        match text.split_once(' ') {
            Some(("e" | "w", message)) => messages.push(message.to_owned()),
            Some(("i", _)) => {}
            _ => messages.push(text.to_owned()),
        }
    }
    messages.join("; ")
}

/// Line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountEntry {
    /// Mount ID, unique on the machine while the mount exists.
    pub id: u64,
    /// Device number of the filesystem, as `major:minor`.
    pub device: String,
    /// Directory in the filesystem that is the root of this mount.
    pub root: PathBuf,
    /// Mount point.
    pub target: PathBuf,
    /// Options of the mount point.
    pub options: String,
    /// Filesystem type.
    pub fstype: String,
    /// Source of the mount.
    pub source: String,
    /// Options of the superblock.
    pub super_options: String,
}

impl MountEntry {
    /// Parses a mount table; malformed lines are skipped.
    pub fn parse_table(text: &str) -> Vec<Self> {
        text.lines().filter_map(Self::parse).collect()
    }

    fn parse(line: &str) -> Option<Self> {
        let (mount, filesystem) = line.split_once(" - ")?;
        let mut mount = mount.split(' ');
        let id = mount.next()?.parse().ok()?;
        let mut mount = mount.skip(1);
        let mut filesystem = filesystem.split(' ');
        Some(Self {
            id,
            device: mount.next()?.to_owned(),
            root: unescape(mount.next()?).into(),
            target: unescape(mount.next()?).into(),
            options: mount.next()?.to_owned(),
            fstype: filesystem.next()?.to_owned(),
            source: unescape(filesystem.next()?),
            super_options: filesystem.next().unwrap_or_default().to_owned(),
        })
    }

    /// Options of the mount point and of the superblock in one list without duplicates, as shown by
    /// mount(8).
    pub fn resolved_options(&self) -> String {
        let mut options: Vec<&str> = self.options.split(',').collect();
        for option in self.super_options.split(',').filter(|option| !option.is_empty()) {
            if !options.contains(&option) {
                options.push(option);
            }
        }
        options.join(",")
    }
}

/// Mount that contains a path: the mount with the longest matching mount point. If there are
/// several, the one that was mounted last.
pub fn holder<'a>(mounts: &'a [MountEntry], path: &Path) -> Option<&'a MountEntry> {
    let holding = mounts.iter().filter(|mount| path.starts_with(&mount.target));
    holding.max_by_key(|mount| mount.target.components().count())
}

/// Decodes the octal escapes of the mount table (`\040` is a blank).
pub(crate) fn unescape(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let code = tail.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.filter(|_| byte == b'\\').and_then(|code| u8::from_str_radix(code, 8).ok());
        bytes.push(code.unwrap_or(byte));
        rest = if code.is_some() { &tail[3..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Mount table of this process.
///
/// # Errors
/// If `/proc` is not mounted.
pub fn table() -> io::Result<Vec<MountEntry>> {
    Ok(MountEntry::parse_table(&fs::read_to_string("/proc/self/mountinfo")?))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&format!("{:?}", Options::parse(text)));
    }

    #[test]
    fn options_are_split_by_kind() {
        check("", expect!["Options { attributes: MountAttrFlags(0x0), parameters: [] }"]);
        check(
            "defaults,noatime,data=writeback,nobarrier",
            expect![[
                r#"Options { attributes: MountAttrFlags(MOUNT_ATTR_NOATIME), parameters: [("data", Some("writeback")), ("nobarrier", None)] }"#
            ]],
        );
        check(
            "ro,nodiratime",
            expect![[
                r#"Options { attributes: MountAttrFlags(MOUNT_ATTR_RDONLY | MOUNT_ATTR_NODIRATIME), parameters: [("ro", None)] }"#
            ]],
        );
        check(
            "relatime,context=\"a,b\",size=1g",
            expect![[
                r#"Options { attributes: MountAttrFlags(0x0), parameters: [("context", Some("a,b")), ("size", Some("1g"))] }"#
            ]],
        );
    }

    const TABLE: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
30 27 7:3 / /mnt/with\\040blank rw,noatime - xfs /dev/loop3 rw,noquota
31 27 7:4 / /mnt rw - xfs /dev/loop4 rw
not a line";

    #[test]
    fn the_mount_table_is_parsed() {
        let mounts = MountEntry::parse_table(TABLE);
        assert_eq!(mounts.len(), 4);
        assert_eq!(mounts[2].target, Path::new("/mnt/with blank"));
        assert_eq!(mounts[2].resolved_options(), "rw,noatime,noquota");
        assert_eq!((mounts[1].fstype.as_str(), mounts[1].device.as_str()), ("ext4", "254:0"));
    }

    #[test]
    fn the_holder_is_the_longest_match_by_component() {
        let mounts = MountEntry::parse_table(TABLE);
        let source = |path: &str| holder(&mounts, Path::new(path)).unwrap().source.clone();
        assert_eq!(source("/mnt/with blank/file"), "/dev/loop3");
        assert_eq!(source("/mnt/with"), "/dev/loop4");
        assert_eq!(source("/mntx"), "/dev/vda");
    }

    #[test]
    fn a_failed_mount_reports_the_step() {
        let request = MountRequest {
            source: "none".into(),
            target: "/".into(),
            fstype: "no-such-filesystem".into(),
            options: String::new(),
        };
        let refusal = attach(&request).unwrap_err();
        assert!(refusal.to_string().starts_with("fsopen no-such-filesystem: "), "{refusal}");
    }
}
