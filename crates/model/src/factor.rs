//! Settings of the machine that a plan may vary, each an axis of its own.
//!
//! A factor's values are read by the same rules as parameters of suites ([`Kind`]). What a value
//! does to the machine, how it is read back, and how it is undone, is the rig's.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    units::Bytes,
    workload::{Kind, Value, ValueError},
};

/// A setting of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Factor {
    /// How far the kernel reads ahead, on every device of the stack.
    ReadAhead,
    /// Requests that each queue of every device of the stack holds.
    QueueDepth,
    /// Whether the kernel takes the devices to have a volatile cache, which it then flushes.
    WriteCache,
    /// Speed of the processors, as a share of their highest.
    CpuSpeed,
    /// The governor of the processors' frequency.
    CpuGovernor,
    /// Processors that are online.
    Cpus,
    /// Dirty memory at which writers begin to write back themselves.
    Dirty,
    /// Dirty memory at which the kernel begins to write back.
    DirtyBackground,
    /// Transparent huge pages.
    HugePages,
    /// The kernel that a guest boots.
    Kernel,
}

/// Values of factors; a factor that is not there is left as it is.
pub type Factors = BTreeMap<Factor, Value>;

/// One row of the table of factors.
#[derive(Clone, Copy, Debug)]
pub struct FactorSpec {
    /// The factor.
    pub factor: Factor,
    /// Its key in a plan.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// What it does, one sentence.
    pub doc: &'static str,
}

const fn row(factor: Factor, name: &'static str, kind: Kind, doc: &'static str) -> FactorSpec {
    FactorSpec { factor, name, kind, doc }
}

/// The table, in the order of the enum.
#[rustfmt::skip]
pub const FACTORS: &[FactorSpec] = &[
    row(Factor::ReadAhead, "read_ahead", Kind::Size { min: Bytes(0), scales: false }, "How far the kernel reads ahead of sequential readers, on every device of the stack (read_ahead_kb)."),
    row(Factor::QueueDepth, "queue_depth", Kind::Count { min: 4, max: 1 << 16 }, "Requests that a queue of a device holds, on every device of the stack (nr_requests)."),
    row(Factor::WriteCache, "write_cache", Kind::Word(&["write back", "write through"]), "What the kernel takes the device's cache for: `write back` is flushed by fsync, `write through` is not (queue/write_cache). The device itself is left as it is, and so are disks below that others use."),
    row(Factor::CpuSpeed, "cpu_speed", Kind::Text { takes: "a share of the highest speed such as \"50%\"", read: percent }, "Speed of all processors: their highest and lowest frequency are set to this share of the highest there is; where the machine has no frequency to set, this process and its programs get this share of the time of as many processors as there are workers instead, which is told with every number."),
    row(Factor::CpuGovernor, "cpu_governor", Kind::Text { takes: "the name of a governor such as \"performance\"", read: word }, "The governor of the processors' frequency (scaling_governor)."),
    row(Factor::Cpus, "cpus", Kind::Count { min: 1, max: 8192 }, "Processors that are online; the others are taken offline, highest numbers first."),
    row(Factor::Dirty, "dirty", Kind::Text { takes: "a share of memory such as \"20%\" or a size such as \"256MiB\"", read: share_or_size }, "Dirty memory at which writers have to write back themselves (vm.dirty_ratio, vm.dirty_bytes)."),
    row(Factor::DirtyBackground, "dirty_background", Kind::Text { takes: "a share of memory such as \"10%\" or a size such as \"64MiB\"", read: share_or_size }, "Dirty memory at which the kernel begins to write back (vm.dirty_background_ratio, vm.dirty_background_bytes)."),
    row(Factor::HugePages, "huge_pages", Kind::Word(&["always", "madvise", "never"]), "Transparent huge pages (transparent_hugepage/enabled)."),
    row(Factor::Kernel, "kernel", Kind::Text { takes: "a kernel: the version of an installed one, a package, or an image", read: kernel }, "The kernel that a guest boots: the version of an installed one or its beginning, the file of a distribution's package, or an image (vmlinuz, vmlinux, a program of user-mode Linux), with `:FOLDER` behind it where its modules are elsewhere."),
];

impl Factor {
    /// Its row.
    ///
    /// # Panics
    /// Never: the table has every factor, which a test holds.
    pub fn spec(self) -> &'static FactorSpec {
        match FACTORS.iter().find(|spec| spec.factor == self) {
            Some(spec) => spec,
            None => unreachable!("the table has every factor"),
        }
    }

    /// Whether it is a setting of devices, and not of the machine as a whole.
    pub const fn of_devices(self) -> bool {
        match self {
            Self::ReadAhead | Self::QueueDepth | Self::WriteCache => true,
            Self::CpuSpeed
            | Self::CpuGovernor
            | Self::Cpus
            | Self::Dirty
            | Self::DirtyBackground
            | Self::HugePages
            | Self::Kernel => false,
        }
    }

    /// The factor of that name.
    pub fn named(name: &str) -> Option<Self> {
        FACTORS.iter().find(|spec| spec.name == name).map(|spec| spec.factor)
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec().name)
    }
}

/// A share of memory, or a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShareOrSize {
    /// Whole percent, 1 to 100.
    Percent(u8),
    /// Bytes.
    Size(Bytes),
}

impl ShareOrSize {
    /// Reads `20%` or a size.
    ///
    /// # Errors
    /// When it is neither.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        if text.trim_end().ends_with('%') {
            return parse_percent(text).map(Self::Percent);
        }
        Bytes::parse(text).map(Self::Size).map_err(|error| ValueError::new(error.to_string()))
    }
}

/// Whole percent, 1 to 100, from `50%`.
///
/// # Errors
/// When it is not that.
pub fn parse_percent(text: &str) -> Result<u8, ValueError> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok());
    number.filter(|percent| (1..=100).contains(percent)).ok_or_else(|| {
        ValueError::new(format!("`{text}` is no share")).cure("write whole percents: \"50%\"")
    })
}

fn percent(text: &str) -> Result<String, ValueError> {
    parse_percent(text).map(|percent| format!("{percent}%"))
}

fn share_or_size(text: &str) -> Result<String, ValueError> {
    Ok(match ShareOrSize::parse(text)? {
        ShareOrSize::Percent(percent) => format!("{percent}%"),
        ShareOrSize::Size(size) => size.to_string(),
    })
}

fn kernel(text: &str) -> Result<String, ValueError> {
    let error = || ValueError::new(format!("`{}` is no kernel", text.escape_debug()));
    if text.contains(',') {
        return Err(error().cure("a comma stands between kernels, so none is in a name or a path"));
    }
    match text.trim() {
        "" => Err(error()),
        _ if text.contains(char::is_control) => Err(error()),
        name => Ok(name.to_owned()),
    }
}

fn word(text: &str) -> Result<String, ValueError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !text.is_empty() && text.chars().all(fits) {
        return Ok(text.to_owned());
    }
    Err(ValueError::new(format!("`{text}` is not the name of a governor")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_factor_has_its_row_and_its_name() {
        for spec in FACTORS {
            assert_eq!(spec.factor.spec().name, spec.name);
            assert_eq!(Factor::named(spec.name), Some(spec.factor));
            let text = serde_json::to_value(spec.factor).unwrap();
            assert_eq!(text, spec.name, "its name in files is that in plans");
            assert!(spec.doc.ends_with('.'));
        }
    }

    #[test]
    fn values_have_one_spelling() {
        let read = |factor: Factor, text| factor.spec().kind.read(text).map(|v| v.to_string());
        assert_eq!(read(Factor::CpuSpeed, "50 %").unwrap(), "50%");
        assert_eq!(read(Factor::Dirty, "262144k").unwrap(), "256MiB");
        assert_eq!(read(Factor::Dirty, "20%").unwrap(), "20%");
        assert!(read(Factor::CpuSpeed, "0%").is_err());
        assert!(read(Factor::CpuSpeed, "101%").is_err());
        assert!(read(Factor::CpuGovernor, "../x").is_err());
        assert!(read(Factor::HugePages, "sometimes").is_err());
    }
}
