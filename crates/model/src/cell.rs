//! Cells: combinations of levels, and their IDs.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    mount_commands::MountCommands,
    options::{OptionOf, VariedOptions},
    setting::SystemSettings,
    units::{Bytes, Nanos},
    workload::{Value, WorkloadParameters},
};

/// Level of the filesystem axis: a filesystem type with options.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FilesystemLevel {
    /// Name shown in the report; unique in the plan.
    pub name: String,
    /// Filesystem type of the catalog.
    pub fs_type: String,
    /// Additional mkfs arguments, before the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mkfs: Vec<String>,
    /// Mount options, comma-separated; empty for the defaults.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mount: String,
    /// Programs that mount the filesystem, if the kernel does not mount it alone.
    #[serde(default, skip_serializing_if = "MountCommands::is_empty")]
    pub commands: MountCommands,
    /// Number of storage devices used, starting with the first. `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<u32>,
    /// Layers between devices and filesystem, lowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
    /// Steps between mkfs and the workload, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<SetupStep>,
    /// Type after `setup`, for example, `btrfs` for a converted ext4; `None`: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub converted_to: Option<String>,
}

/// Stacked block device. Each layer uses all devices of the layer below it, or of the storage, and
/// provides one device unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// md array (md(4)).
    Md {
        /// `raid0`, `raid1`, `raid4`, `raid5`, `raid6`, `raid10`, or `linear`.
        level: String,
        /// Chunk size, a power of two; `None`: the default of mdadm(8).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chunk: Option<Bytes>,
    },
    /// dm-crypt on each device, with a random key that is not stored. Provides as many devices as
    /// it uses.
    Crypt {
        /// Cipher in the notation of cryptsetup(8), such as `aes-xts-plain64`.
        cipher: String,
        /// Key size in bits.
        key_size: u32,
    },
    /// dm-thin volume. The data is on the last device. The metadata is on the first device. With a
    /// single device, the metadata is at the start of the device.
    Thin {
        /// Block size of the pool, a multiple of 64 KiB.
        block: Bytes,
    },
    /// dm-cache: the device before the last one caches the last device. The metadata is at the
    /// start of the caching device.
    Cache {
        /// `writeback`, `writethrough`, or `passthrough`.
        mode: String,
        /// Block size of the cache, a multiple of 32 KiB.
        block: Bytes,
    },
    /// dm-delay on each device, active from mkfs on. Provides as many devices as it uses. Delays
    /// are whole milliseconds, which the kernel rounds to its tick.
    Delay {
        /// Delay of reads.
        read: Nanos,
        /// Delay of writes, discards, and flushes.
        write: Nanos,
    },
    /// dm-flakey on each device, which alternately works and fails from the first measured phase
    /// until unmount. Provides as many devices as it uses.
    Flakey {
        /// Fault: `error`, `drop_writes`, or `error_writes`.
        fault: String,
        /// Duration of working intervals in whole seconds; 0 for none.
        up: Nanos,
        /// Duration of failing intervals in whole seconds, at least 1.
        down: Nanos,
    },
    /// dm-dust on each device: bad blocks are unreadable until rewritten, from the first measured
    /// phase until unmount. Provides as many devices as it uses.
    Dust {
        /// Bad blocks, ascending, without overlaps.
        bad: Vec<BlockRange>,
        /// Block size, a power of two of at least 512 bytes.
        block: Bytes,
    },
    /// dm-log-writes: writes to the first device are logged on the second.
    LogWrites,
}

/// Range of blocks of a device, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockRange {
    /// First block, counted from 0.
    pub first: u64,
    /// Last block, at least the first.
    pub last: u64,
}

impl BlockRange {
    /// Number of blocks, at least 1.
    pub fn count(self) -> u64 {
        self.last.saturating_sub(self.first).saturating_add(1)
    }
}

impl fmt::Display for BlockRange {
    /// Writes `7` or `16-63`, as in a plan.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

impl Layer {
    /// Maximum number of bad blocks of a [`Layer::Dust`]. Each block requires a separate call.
    pub const BAD_BLOCKS: u64 = 1024;

    /// True if the layer injects faults from the first measured phase on.
    pub const fn fails(&self) -> bool {
        matches!(self, Self::Flakey { .. } | Self::Dust { .. })
    }
}

/// Step between mkfs and the workload. The filesystem is mounted or unmounted as required.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetupStep {
    /// Generates a source tree.
    Populate {
        /// Directory, a name without slashes.
        directory: String,
        /// Files in the tree, at least 1; multiplied by the scale.
        files: u64,
    },
    /// Removes a directory with its contents.
    Remove {
        /// Directory, a name without slashes.
        directory: String,
    },
    /// Runs a program while the filesystem is unmounted. `{device}` is its first device.
    Unmounted {
        /// Program and arguments, without a shell.
        argv: Vec<String>,
    },
    /// Runs a program while the filesystem is mounted. `{mount}` is its mount point, `{device}` its
    /// first device.
    Mounted {
        /// Program and arguments, without a shell.
        argv: Vec<String>,
    },
}

impl FilesystemLevel {
    /// Type of a level without a filesystem: its workloads access the block device.
    pub const RAW: &str = "none";

    /// True if the workloads of the level access the block device instead of files.
    pub fn is_raw(&self) -> bool {
        self.fs_type == Self::RAW
    }

    /// Filesystem type without options.
    pub fn plain(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            fs_type: name.clone(),
            name,
            mkfs: Vec::new(),
            mount: String::new(),
            commands: MountCommands::default(),
            devices: None,
            layers: Vec::new(),
            setup: Vec::new(),
            converted_to: None,
        }
    }

    /// The level with options added after its own. The value `true` adds the option alone, `false`
    /// adds nothing, and a text adds `NAME=TEXT` to the mount options, or the arguments `NAME` and
    /// `TEXT` to mkfs. A name of mkfs with spaces is several arguments.
    #[must_use]
    pub fn with_options(&self, options: &VariedOptions) -> Self {
        let mut level = self.clone();
        for (key, value) in options {
            let Some((of, name)) = OptionOf::parse(key) else { continue };
            if *value == Value::Flag(false) {
                continue;
            }
            let text = (*value != Value::Flag(true)).then(|| value.to_string());
            match of {
                OptionOf::Mkfs => {
                    level.mkfs.extend(name.split_whitespace().map(str::to_owned));
                    level.mkfs.extend(text);
                }
                OptionOf::Mount => {
                    let separator = if level.mount.is_empty() { "" } else { "," };
                    let text = text.map(|text| format!("={text}")).unwrap_or_default();
                    level.mount += &format!("{separator}{name}{text}");
                }
            }
        }
        level
    }
}

/// Isolation between trials besides the new filesystem.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// No isolation besides the new filesystem.
    #[default]
    Remount,
    /// Image files are detached from their loop devices and reattached.
    Reattach,
    /// The machine is rebooted.
    Reboot,
}

impl Isolation {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Remount, Self::Reattach, Self::Reboot];

    /// Name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Remount => "remount",
            Self::Reattach => "reattach",
            Self::Reboot => "reboot",
        }
    }
}

/// Combination of levels. A trial is a repetition of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Filesystem.
    pub filesystem: FilesystemLevel,
    /// Suite and all its parameters.
    pub workload: WorkloadParameters,
    /// I/O scheduler of all devices; `None`: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// Fill level of the filesystem before the workload.
    #[serde(default, skip_serializing_if = "FillLevel::is_empty")]
    pub fill_level: FillLevel,
    /// System settings of the plan.
    #[serde(default, skip_serializing_if = "SystemSettings::is_empty")]
    pub settings: SystemSettings,
    /// Varied options of mkfs and mount.
    #[serde(default, skip_serializing_if = "VariedOptions::is_empty")]
    pub options: VariedOptions,
    /// True for an A/A duplicate: a second, identical cell. Any difference from the original is
    /// noise. The duplicate is not part of tables, rankings, and sums.
    #[serde(default, skip_serializing_if = "is_false")]
    pub aa_duplicate: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Cells that are measured twice as A/A control. The differences between the two cells are noise. A
/// run cannot establish differences that are smaller than this noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AaControl {
    /// No cell.
    None,
    /// One cell per run.
    One,
    /// One cell per workload.
    PerWorkload,
}

impl AaControl {
    /// All values, fewest cells first.
    pub const ALL: [Self; 3] = [Self::None, Self::One, Self::PerWorkload];

    /// Name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::One => "one",
            Self::PerWorkload => "per-workload",
        }
    }
}

/// Percentage of the available space that is filled before the workload.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct FillLevel(pub u8);

impl FillLevel {
    /// Maximum in a plan. Above it, many filesystems reject even removals of files.
    pub const MAX: Self = Self(95);

    /// True if the filesystem is not filled.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for FillLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

/// ID of a cell: the first 64 bits of the SHA-256 of its canonical JSON (keys sorted, no white
/// space). Equal cells have the same ID on every host, so cells of different runs can be matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CellId(pub u64);

impl Cell {
    /// Filesystem with the varied options.
    pub fn level(&self) -> FilesystemLevel {
        self.filesystem.with_options(&self.options)
    }

    /// ID of the cell.
    pub fn id(&self) -> CellId {
        let digest = Sha256::digest(self.canonical().as_bytes());
        let mut head = [0; 8];
        head.copy_from_slice(&digest[..8]);
        CellId(u64::from_be_bytes(head))
    }

    /// Canonical JSON. `serde_json::Value` sorts the keys.
    ///
    /// # Panics
    /// Never: all map keys of a cell are strings, and all numbers are finite.
    pub fn canonical(&self) -> String {
        match serde_json::to_value(self) {
            Ok(value) => value.to_string(),
            Err(error) => unreachable!("a cell is plain data: {error}"),
        }
    }
}

impl fmt::Display for CellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl From<CellId> for String {
    fn from(id: CellId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for CellId {
    type Error = std::num::ParseIntError;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        u64::from_str_radix(&text, 16).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_follow_those_of_the_level() {
        let level = FilesystemLevel {
            mkfs: vec!["-q".into()],
            mount: "noatime".into(),
            ..FilesystemLevel::plain("ext4")
        };
        let text = |text: &str| Value::Text(text.into());
        let options = VariedOptions::from([
            ("mkfs.-I".to_owned(), text("512")),
            ("mkfs.-O ^has_journal".to_owned(), Value::Flag(true)),
            ("mkfs.-E absent".to_owned(), Value::Flag(false)),
            ("mount.data".to_owned(), text("writeback")),
            ("mount.sync".to_owned(), Value::Flag(true)),
        ]);
        let level = level.with_options(&options);
        assert_eq!(level.mkfs, ["-q", "-I", "512", "-O", "^has_journal"]);
        assert_eq!(level.mount, "noatime,data=writeback,sync");
        assert_eq!(level.name, "ext4");
        let plain = FilesystemLevel::plain("ext4").with_options(&options);
        assert_eq!(plain.mount, "data=writeback,sync");
    }
}
