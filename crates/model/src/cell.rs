//! One point of the matrix, and its name across hosts and runs.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::{
    factor::Factors,
    units::{Bytes, Nanos},
    workload::Point,
};

/// A filesystem as one level of its axis: a catalogue entry, perhaps with options of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FilesystemLevel {
    /// Name shown in the report; unique in the plan.
    pub name: String,
    /// The catalogue entry it is made from.
    pub base: String,
    /// Further arguments for mkfs, before the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mkfs: Vec<String>,
    /// Mount options, comma separated as mount(8) takes them; empty for the defaults.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mount: String,
    /// How many of the storage's devices it lies on, the first ones; `None`: all of them where it
    /// can span devices, else the only one there is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub devices: Option<u32>,
    /// What stands between the devices and the filesystem, the lowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<Layer>,
    /// What is done to it between mkfs and the workload, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub setup: Vec<SetupStep>,
    /// The catalogue entry that it is after `setup`, such as `btrfs` where an ext4 is converted;
    /// `None`: the one it was made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub becomes: Option<String>,
}

/// What is made of devices before a filesystem is made on it. Each takes all devices that the layer
/// below it leaves, and leaves one, unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Layer {
    /// An array of the md driver (md(4)).
    Md {
        /// `raid0`, `raid1`, `raid4`, `raid5`, `raid6`, `raid10`, or `linear`.
        level: String,
        /// The chunk, a power of two; `None`: the default of mdadm(8).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        chunk: Option<Bytes>,
    },
    /// Each device encrypted by the target `crypt` of the device mapper, with a key that is drawn
    /// anew and kept nowhere; it leaves as many devices as it takes.
    Crypt {
        /// The cipher as cryptsetup(8) has it, such as `aes-xts-plain64`.
        cipher: String,
        /// Bits of the key.
        key_bits: u32,
    },
    /// A volume of a thin pool (`thin-pool` and `thin` of the device mapper) on the last device,
    /// whose metadata lies on the first one, or at the start of it if there is only one.
    Thin {
        /// The block of the pool, a multiple of 64 KiB.
        block: Bytes,
    },
    /// The last device cached by the one before it (`cache` of the device mapper), with its
    /// metadata at the start of the caching one.
    Cache {
        /// `writeback`, `writethrough`, or `passthrough`.
        mode: String,
        /// The block of the cache, a multiple of 32 KiB.
        block: Bytes,
    },
    /// Each device answers so much later than it would (`delay` of the device mapper), from before
    /// mkfs on; it leaves as many as it takes. Whole milliseconds; the kernel keeps them by its
    /// tick.
    Delay {
        /// What reads wait.
        read: Nanos,
        /// What writes, discards, and flushes wait.
        write: Nanos,
    },
    /// Each device is sound for a while and then fails for a while, in turn (`flakey` of the device
    /// mapper), from the first measured phase until the filesystem is unmounted; it leaves as many
    /// as it takes.
    Flakey {
        /// What is the matter while it fails: `error`, `drop_writes`, or `error_writes`.
        fault: String,
        /// How long it is sound, whole seconds; 0 for never.
        up: Nanos,
        /// How long it fails, whole seconds, at least 1.
        down: Nanos,
    },
    /// Blocks of each device cannot be read (`dust` of the device mapper) until they are written,
    /// from the first measured phase until the filesystem is unmounted; it leaves as many as it
    /// takes.
    Dust {
        /// Which blocks, ascending, none in two ranges.
        bad: Vec<BlockRange>,
        /// The size of a block, a power of two from 512 bytes on.
        block: Bytes,
    },
    /// The first device, with a log of all that is written to it on the second
    /// (`log-writes` of the device mapper).
    LogWrites,
}

/// Blocks of a device, from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BlockRange {
    /// The first, counted from 0.
    pub first: u64,
    /// The last, not before the first.
    pub last: u64,
}

impl BlockRange {
    /// How many blocks that are, at least 1.
    pub fn count(self) -> u64 {
        self.last.saturating_sub(self.first).saturating_add(1)
    }
}

impl fmt::Display for BlockRange {
    /// As in a plan: `7` or `16-63`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

impl Layer {
    /// The most blocks of one [`Layer::Dust`]: the kernel is told of each by a call of its own.
    pub const BAD_BLOCKS: u64 = 1024;

    /// Whether it fails from the first measured phase on.
    pub const fn fails(&self) -> bool {
        matches!(self, Self::Flakey { .. } | Self::Dust { .. })
    }
}

/// One thing done to a filesystem between mkfs and the workload. It is mounted or unmounted as the
/// step needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SetupStep {
    /// A source tree of so many files is written into a directory of this name.
    Populate {
        /// The directory, a name without a slash.
        directory: String,
        /// Files of the tree, at least 1; shrinks with the plan's scale.
        files: u64,
    },
    /// The directory of this name is removed with all that is in it.
    Remove {
        /// The directory, a name without a slash.
        directory: String,
    },
    /// A program is run while the filesystem is not mounted. `{device}` stands for its first
    /// device.
    Unmounted {
        /// Program and arguments; no shell is involved.
        argv: Vec<String>,
    },
    /// A program is run while it is mounted; `{mount}` stands for where, `{device}` as above.
    Mounted {
        /// Program and arguments; no shell is involved.
        argv: Vec<String>,
    },
}

impl FilesystemLevel {
    /// The catalogue entry as it is.
    pub fn plain(name: impl Into<String>) -> Self {
        let name = name.into();
        Self {
            base: name.clone(),
            name,
            mkfs: Vec::new(),
            mount: String::new(),
            devices: None,
            layers: Vec::new(),
            setup: Vec::new(),
            becomes: None,
        }
    }
}

/// What separates one trial from the next, beyond the filesystem that each is given anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Isolation {
    /// Unmounted, made anew, mounted.
    #[default]
    Remount,
    /// Image files are also detached from their loop devices and attached again.
    Reattach,
    /// The machine is booted again.
    Reboot,
}

impl Isolation {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Remount, Self::Reattach, Self::Reboot];

    /// Its word in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Remount => "remount",
            Self::Reattach => "reattach",
            Self::Reboot => "reboot",
        }
    }
}

/// One point of the matrix: what a trial is a repeat of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The filesystem.
    pub filesystem: FilesystemLevel,
    /// The suite and all its parameters.
    pub workload: Point,
    /// The I/O scheduler of every device, if the plan sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<String>,
    /// How full the filesystem is before the workload starts.
    #[serde(default, skip_serializing_if = "Fullness::is_empty")]
    pub fullness: Fullness,
    /// Settings of the machine that the plan sets.
    #[serde(default, skip_serializing_if = "Factors::is_empty")]
    pub factors: Factors,
    /// Whether it is a second cell of the same, measured as if it were another one: what it and the
    /// first differ by is chance. It takes part in no table, ranking, or sum.
    #[serde(default, skip_serializing_if = "is_false")]
    pub twin: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// Which cells are measured twice, as if they were two: what the two differ by is chance, and shows
/// what the whole run may call a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Twins {
    /// None.
    None,
    /// One of the run.
    One,
    /// One of each workload.
    Each,
}

impl Twins {
    /// All of them, fewest first.
    pub const ALL: [Self; 3] = [Self::None, Self::One, Self::Each];

    /// Its word in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::One => "one",
            Self::Each => "each",
        }
    }
}

/// How much of the space that an ordinary user can have is taken, in whole percent.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Fullness(pub u8);

impl Fullness {
    /// The most a plan may ask for: above it, many filesystems refuse work as small as removing.
    pub const MOST: Self = Self(95);

    /// Nothing but what mkfs has put there.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Fullness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", self.0)
    }
}

/// The first 64 bits of the SHA-256 of a cell's canonical JSON (keys sorted, no white space): the
/// same cell has the same id on every host, so runs can be joined by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CellId(pub u64);

impl Cell {
    /// The cell's name across hosts and runs.
    pub fn id(&self) -> CellId {
        let digest = Sha256::digest(self.canonical().as_bytes());
        let mut head = [0; 8];
        head.copy_from_slice(&digest[..8]);
        CellId(u64::from_be_bytes(head))
    }

    /// The text that is hashed. Going through `serde_json::Value` sorts the keys.
    ///
    /// # Panics
    /// Never: a cell holds no map with keys that are not text and no non-finite number.
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
