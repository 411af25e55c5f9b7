//! Assignment of run conditions to aspects (kernel, machine, storage, …).
//!
//! If two runs differ in one aspect, differences between their numbers are due to that aspect. If
//! they differ in several aspects, differences cannot be attributed to one of them. Every condition
//! that can affect the numbers therefore belongs to exactly one [`Aspect`]. Other conditions belong
//! to no aspect and are only listed. Some conditions follow from others and belong to the aspect of
//! their cause. For example, if the CPU differs, CPU mitigations belong to the machine; if the
//! kernel differs, default mount options belong to the kernel.

use super::{SAME_MEMORY, Severity};

/// Category of differences between two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    /// Kernel: release, build, command line, and their consequences.
    Kernel,
    /// CPUs and memory.
    Machine,
    /// Devices and layers below the filesystems.
    Storage,
    /// Filesystem with its options and features.
    Filesystem,
    /// Machine settings that can be changed at run time, and the memory limit.
    Settings,
    /// Program that measured the run, and programs that it ran as a workload.
    Program,
    /// Plan: scale, isolation of trials, and handling of invalid trials. The measured workloads are
    /// not included, because only cells with equal workloads are paired. Settings that affect only
    /// the number of repetitions and the equivalence margin (profile, repetitions, time limit, A/A
    /// control) do not belong to an aspect. The handling of invalid trials counts only if the plan
    /// sets it, not if the profile determines it. Invalid trials that are kept have a warning.
    Plan,
    /// Conditions that an imported run does not record. Only the user can state that they do not
    /// differ in other aspects.
    Unknown,
}

impl Aspect {
    /// All aspects.
    pub const ALL: [Self; 8] = [
        Self::Kernel,
        Self::Machine,
        Self::Storage,
        Self::Filesystem,
        Self::Settings,
        Self::Program,
        Self::Plan,
        Self::Unknown,
    ];

    /// Name on command lines and in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::Machine => "machine",
            Self::Storage => "storage",
            Self::Filesystem => "filesystem",
            Self::Settings => "settings",
            Self::Program => "program",
            Self::Plan => "plan",
            Self::Unknown => "unknown",
        }
    }

    /// Aspect with the given name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|aspect| aspect.name() == name)
    }
}

/// Conditions that belong to an aspect even if only one run records them.
const EVEN_IF_MISSING: [(&str, Aspect); 8] = [
    // Guests of different kinds, or a guest and a host, are different machines.
    ("guest.engine", Aspect::Machine),
    ("kernel.release", Aspect::Kernel),
    ("cpu.model", Aspect::Machine),
    ("cpu.virtual", Aspect::Machine),
    ("memory.limit_bytes", Aspect::Settings),
    ("run.scale", Aspect::Plan),
    ("run.program", Aspect::Program),
    ("set.invalid_trials", Aspect::Plan),
];

/// Conditions that belong to an aspect only if both runs record them: a kernel may not provide a
/// value.
const IF_RECORDED: [(&str, Aspect); 28] = [
    ("guest.kernel_hash", Aspect::Kernel),
    ("guest.engine_version", Aspect::Machine),
    ("guest.processor", Aspect::Machine),
    ("host.cpu.model", Aspect::Machine),
    ("guest.disk", Aspect::Storage),
    ("guest.disk_latency_ns", Aspect::Storage),
    // An icount guest measures instructions, which cannot be compared with times.
    ("guest.clock", Aspect::Machine),
    ("kernel.version", Aspect::Kernel),
    ("kernel.config", Aspect::Kernel),
    ("kernel.preemption", Aspect::Kernel),
    ("cpu.microcode", Aspect::Machine),
    ("cpu.count", Aspect::Machine),
    ("memory.numa_nodes", Aspect::Machine),
    ("cpu.online", Aspect::Settings),
    ("cpu.governor", Aspect::Settings),
    ("cpu.turbo_off", Aspect::Settings),
    ("cpu.smt", Aspect::Settings),
    ("memory.transparent_hugepage", Aspect::Settings),
    ("vm.dirty_ratio", Aspect::Settings),
    ("vm.dirty_bytes", Aspect::Settings),
    ("vm.dirty_background_ratio", Aspect::Settings),
    ("vm.dirty_background_bytes", Aspect::Settings),
    ("vm.dirty_expire_centisecs", Aspect::Settings),
    ("vm.dirty_writeback_centisecs", Aspect::Settings),
    ("vm.swappiness", Aspect::Settings),
    ("vm.vfs_cache_pressure", Aspect::Settings),
    ("vm.overcommit_memory", Aspect::Settings),
    ("isolation", Aspect::Plan),
];

/// Facts of a device that count even if only one run has the device.
const OF_DEVICES: [&str; 2] = ["model", "queue.rotational"];

/// Device properties that count only if both runs have the device.
const BUILT: [&str; 5] = ["firmware", "vendor", "link_speed", "link_width", "loop.direct"];

/// Device settings that count only if both runs have the device
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

/// Kernel command line parameters that select the booted image or the console, and do not affect
/// results (Documentation/admin-guide/kernel-parameters.rst).
const NAMES: [&str; 9] =
    ["BOOT_IMAGE", "root", "initrd", "resume", "console", "ro", "rw", "quiet", "splash"];

/// Condition that differs between the runs.
pub(super) struct Condition<'a> {
    pub(super) name: &'a str,
    pub(super) first: Option<&'a str>,
    pub(super) second: Option<&'a str>,
    /// True if both runs measured directories. The filesystem that contains the directory is then
    /// the one under test.
    pub(super) directories: bool,
    /// True if one of the runs was imported.
    pub(super) imported: bool,
    /// Function that returns true if the named condition also differs.
    pub(super) changed: &'a dyn Fn(&str) -> bool,
}

impl Condition<'_> {
    /// Aspect of the condition; `None` if it cannot affect the numbers by itself.
    pub(super) fn aspect(&self) -> Option<Aspect> {
        let recorded = self.recorded_aspect();
        match self.both() {
            None if self.imported => recorded.map(|_| Aspect::Unknown),
            Some(_) | None => recorded,
        }
    }

    fn recorded_aspect(&self) -> Option<Aspect> {
        let listed = |list: &[(&str, Aspect)]| {
            list.iter().find(|(name, _)| *name == self.name).map(|(_, aspect)| *aspect)
        };
        listed(&EVEN_IF_MISSING)
            .or_else(|| self.first.and(self.second).and_then(|_| listed(&IF_RECORDED)))
            .or_else(|| match self.name {
                "run.storage" => self.storage(),
                "memory.total_bytes" => self.memory(),
                "kernel.command_line" => self.command_line(),
                "backing.fstype" if self.directories => Some(Aspect::Filesystem),
                "backing.fstype" => Some(Aspect::Storage),
                "backing.options" if self.directories => Some(Aspect::Filesystem),
                name => {
                    if let Some(rest) = name.strip_prefix("device.") {
                        self.device(rest)
                    } else if let Some(rest) = name.strip_prefix("filesystem.") {
                        self.filesystem(rest)
                    } else if name.starts_with("command.") {
                        self.both().map(|_| Aspect::Program)
                    } else if name.starts_with("cpu.mitigation.") {
                        self.mitigation()
                    } else {
                        None
                    }
                }
            })
    }

    fn both(&self) -> Option<(&str, &str)> {
        self.first.zip(self.second)
    }

    /// Aspect of the storage. Two directories of the same filesystem are the same storage.
    fn storage(&self) -> Option<Aspect> {
        if self.both().is_none() {
            return Some(Aspect::Storage);
        }
        (!self.directories || (self.changed)("backing.source")).then_some(Aspect::Storage)
    }

    fn memory(&self) -> Option<Aspect> {
        let size = |text: Option<&str>| text.and_then(|text| text.parse::<f64>().ok());
        let same = match (size(self.first), size(self.second)) {
            (Some(first), Some(second)) => {
                (first - second).abs() <= SAME_MEMORY * first.max(second)
            }
            (None, _) | (_, None) => false,
        };
        (!same).then_some(Aspect::Machine)
    }

    fn command_line(&self) -> Option<Aspect> {
        let (first, second) = self.both()?;
        let parts = |text: &str| {
            let key = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
            let result =
                text.split_whitespace().filter(|word| !NAMES.contains(&key(word).as_str()));
            let mut result: Vec<String> = result.map(str::to_owned).collect();
            result.sort();
            result
        };
        (parts(first) != parts(second)).then_some(Aspect::Kernel)
    }

    fn mitigation(&self) -> Option<Aspect> {
        self.both()?;
        let machine = (self.changed)("cpu.model") || (self.changed)("cpu.microcode");
        Some(if machine { Aspect::Machine } else { Aspect::Kernel })
    }

    /// Aspect of the device fact `rest`, given as `DEVICE.FACT`.
    fn device(&self, rest: &str) -> Option<Aspect> {
        let (_, fact) = rest.split_once('.')?;
        let both = self.both().is_some();
        match () {
            () if OF_DEVICES.contains(&fact) || both && BUILT.contains(&fact) => {
                Some(Aspect::Storage)
            }
            () if both && SET.contains(&fact) => Some(Aspect::Settings),
            () => None,
        }
    }

    /// Aspect of the filesystem fact `rest`, given as `NAME.FACT`. Names of filesystems can contain
    /// dots. If only effective mount options differ, and not the requested ones, they are defaults
    /// of the kernel.
    fn filesystem(&self, rest: &str) -> Option<Aspect> {
        let (name, fact) = rest.rsplit_once('.')?;
        let level_options = (self.changed)(&format!("filesystem.{name}.options"));
        let kernel = (self.changed)("kernel.release");
        let default = fact == "mounted" && kernel && !level_options;
        Some(if default { Aspect::Kernel } else { Aspect::Filesystem })
    }
}

impl From<Option<Aspect>> for Severity {
    fn from(aspect: Option<Aspect>) -> Self {
        if aspect.is_some() { Self::Severe } else { Self::Other }
    }
}
