//! To which way of differing a condition belongs.
//!
//! Two runs that differ in one way can be compared: whatever their numbers differ by came from it.
//! Two that differ in two ways at once cannot say which of the two it came from. So every condition
//! that can by itself make the numbers differ belongs to exactly one [`Way`]; the others belong to
//! none and are merely told. A condition that follows from another belongs to the way of that
//! other: the mitigations of another processor to the machine, default mount options of another
//! kernel to the kernel.

use super::{SAME_MEMORY, Severity};

/// One way in which two runs can differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// The kernel: its release, build, command line, and what follows from them.
    Kernel,
    /// Processors and memory.
    Machine,
    /// What lies under the filesystems.
    Storage,
    /// The filesystem, or its options and features.
    Filesystem,
    /// Settings of the machine that can be changed while it runs, and the memory limit.
    Settings,
    /// The program that measured.
    Program,
    /// The plan: its scale, the isolation of trials, and whether spoiled trials count. What it
    /// measures shows in the cells, of which only equal ones are paired. What merely decides how
    /// many repeats are made and which differences matter (profile, repeats, budget, twins) is no
    /// way. The profile also sets whether spoiled trials count where the plan does not say; kept
    /// ones bear the warning of what spoiled them.
    Plan,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Kernel,
        Self::Machine,
        Self::Storage,
        Self::Filesystem,
        Self::Settings,
        Self::Program,
        Self::Plan,
    ];

    /// Its word on command lines and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Machine => "machine",
            Self::Storage => "storage",
            Self::Filesystem => "filesystem",
            Self::Settings => "settings",
            Self::Program => "program",
            Self::Plan => "plan",
        }
    }

    /// The way of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|way| way.name() == name)
    }
}

/// Conditions that matter even where one run does not tell them.
const ALWAYS: [(&str, Way); 8] = [
    // One guest is another machine than another kind of guest, or none.
    ("guest.engine", Way::Machine),
    ("kernel.release", Way::Kernel),
    ("cpu.model", Way::Machine),
    ("cpu.virtual", Way::Machine),
    ("memory.limit_bytes", Way::Settings),
    ("run.scale", Way::Plan),
    ("run.program", Way::Program),
    ("set.invalid", Way::Plan),
];

/// Conditions that matter where both runs tell them; what one kernel does not tell says nothing.
const TOLD: [(&str, Way); 28] = [
    ("guest.kernel_hash", Way::Kernel),
    ("guest.engine_version", Way::Machine),
    ("guest.processor", Way::Machine),
    ("host.cpu.model", Way::Machine),
    ("guest.disk", Way::Storage),
    ("guest.disk_latency_ns", Way::Storage),
    // Instructions are no times.
    ("guest.clock", Way::Machine),
    ("kernel.version", Way::Kernel),
    ("kernel.config", Way::Kernel),
    ("kernel.preemption", Way::Kernel),
    ("cpu.microcode", Way::Machine),
    ("cpu.count", Way::Machine),
    ("memory.numa_nodes", Way::Machine),
    ("cpu.online", Way::Settings),
    ("cpu.governor", Way::Settings),
    ("cpu.turbo_off", Way::Settings),
    ("cpu.smt", Way::Settings),
    ("memory.huge_pages", Way::Settings),
    ("vm.dirty_ratio", Way::Settings),
    ("vm.dirty_bytes", Way::Settings),
    ("vm.dirty_background_ratio", Way::Settings),
    ("vm.dirty_background_bytes", Way::Settings),
    ("vm.dirty_expire_centisecs", Way::Settings),
    ("vm.dirty_writeback_centisecs", Way::Settings),
    ("vm.swappiness", Way::Settings),
    ("vm.vfs_cache_pressure", Way::Settings),
    ("vm.overcommit_memory", Way::Settings),
    ("isolation", Way::Plan),
];

/// Facts of a device that matter even where one run has no such device.
const OF_DEVICES: [&str; 2] = ["model", "queue.rotational"];

/// Facts of a device that matter where both runs have it: what it is.
const BUILT: [&str; 5] = ["firmware", "vendor", "link_speed", "link_width", "loop.direct"];

/// Facts of a device that matter where both runs have it: how it is set
/// (Documentation/block/queue-sysfs.rst).
const SET: [&str; 8] = [
    "queue.scheduler",
    "queue.nr_requests",
    "queue.read_ahead_kb",
    "queue.write_cache",
    "queue.wbt_lat_usec",
    "queue.nomerges",
    "queue.rq_affinity",
    "queue_depth",
];

/// Words of the kernel's command line that name what is booted and where its words go, but change
/// nothing that is measured (Documentation/admin-guide/kernel-parameters.rst).
const NAMES: [&str; 9] =
    ["BOOT_IMAGE", "root", "initrd", "resume", "console", "ro", "rw", "quiet", "splash"];

/// A condition that is not the same in both runs.
pub(super) struct Condition<'a> {
    pub(super) name: &'a str,
    pub(super) first: Option<&'a str>,
    pub(super) second: Option<&'a str>,
    /// Whether both runs measured directories, so that the filesystem below is the one under test.
    pub(super) directories: bool,
    /// Whether another condition is not the same either.
    pub(super) changed: &'a dyn Fn(&str) -> bool,
}

impl Condition<'_> {
    /// The way it belongs to; `None` if it cannot by itself make the numbers differ.
    pub(super) fn way(&self) -> Option<Way> {
        let listed = |list: &[(&str, Way)]| {
            list.iter().find(|(name, _)| *name == self.name).map(|(_, way)| *way)
        };
        listed(&ALWAYS).or_else(|| self.first.and(self.second).and_then(|_| listed(&TOLD))).or_else(
            || match self.name {
                "run.storage" => self.storage(),
                "memory.total_bytes" => self.memory(),
                "kernel.command_line" => self.command_line(),
                "backing.fstype" if self.directories => Some(Way::Filesystem),
                "backing.fstype" => Some(Way::Storage),
                "backing.options" if self.directories => Some(Way::Filesystem),
                name => {
                    if let Some(rest) = name.strip_prefix("device.") {
                        self.device(rest)
                    } else if let Some(rest) = name.strip_prefix("filesystem.") {
                        self.filesystem(rest)
                    } else if name.starts_with("cpu.mitigation.") {
                        self.mitigation()
                    } else {
                        None
                    }
                }
            },
        )
    }

    fn both(&self) -> Option<(&str, &str)> {
        self.first.zip(self.second)
    }

    /// The text ends with the memory limit, which is no matter of the storage. Another directory of
    /// the same filesystem is the same storage.
    fn storage(&self) -> Option<Way> {
        let Some((first, second)) = self.both() else { return Some(Way::Storage) };
        let place = |text: &str| {
            text.split_once(", memory limited to ").map_or(text, |(place, _)| place).to_owned()
        };
        if place(first) == place(second) {
            return Some(Way::Settings);
        }
        (!self.directories || (self.changed)("backing.source")).then_some(Way::Storage)
    }

    fn memory(&self) -> Option<Way> {
        let size = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
        let same = match (size(self.first), size(self.second)) {
            (Some(first), Some(second)) => {
                (first - second).abs() <= SAME_MEMORY * first.max(second)
            }
            (None, _) | (_, None) => false,
        };
        (!same).then_some(Way::Machine)
    }

    fn command_line(&self) -> Option<Way> {
        let (first, second) = self.both()?;
        let words = |text: &str| {
            let key = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
            let told = text.split_whitespace().filter(|word| !NAMES.contains(&key(word).as_str()));
            let mut told: Vec<String> = told.map(str::to_owned).collect();
            told.sort();
            told
        };
        (words(first) != words(second)).then_some(Way::Kernel)
    }

    fn mitigation(&self) -> Option<Way> {
        self.both()?;
        let machine = (self.changed)("cpu.model") || (self.changed)("cpu.microcode");
        Some(if machine { Way::Machine } else { Way::Kernel })
    }

    /// `rest` is `DEVICE.FACT`.
    fn device(&self, rest: &str) -> Option<Way> {
        let (_, fact) = rest.split_once('.')?;
        let both = self.both().is_some();
        match () {
            () if OF_DEVICES.contains(&fact) || both && BUILT.contains(&fact) => Some(Way::Storage),
            () if both && SET.contains(&fact) => Some(Way::Settings),
            () => None,
        }
    }

    /// `rest` is `NAME.FACT`; names of filesystems may hold dots. Mount options in force that were
    /// not asked for are the kernel's defaults.
    fn filesystem(&self, rest: &str) -> Option<Way> {
        let (name, fact) = rest.rsplit_once('.')?;
        let asked = (self.changed)(&format!("filesystem.{name}.options"));
        let kernel = (self.changed)("kernel.release");
        let default = fact == "mounted" && kernel && !asked;
        Some(if default { Way::Kernel } else { Way::Filesystem })
    }
}

impl From<Option<Way>> for Severity {
    fn from(way: Option<Way>) -> Self {
        if way.is_some() { Self::Severe } else { Self::Other }
    }
}
