//! System settings that a plan can vary as axes.
//!
//! Values are parsed by the same rules as suite parameters ([`Kind`]). The rig applies, verifies,
//! and restores the settings.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    units::Bytes,
    workload::{Kind, Value, ValueError},
};

/// Kernel or hardware setting that a plan varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SystemSetting {
    /// Device under the filesystem: a level of the axis `device`.
    Device,
    /// Size of the image files under the filesystem.
    Size,
    /// Read-ahead of the storage devices and of the devices below them, without layers.
    ReadAhead,
    /// Request-queue size of the storage devices and of the devices below them, without layers.
    NrRequests,
    /// Cache mode that the kernel assumes for the devices.
    WriteCache,
    /// CPU frequency in percent of the maximum.
    CpuSpeed,
    /// Frequency governor.
    CpuGovernor,
    /// Number of online CPUs.
    OnlineCpus,
    /// Dirty memory at which writers must write back.
    DirtyThreshold,
    /// Dirty memory at which background writeback starts.
    DirtyBackgroundThreshold,
    /// Transparent huge pages.
    TransparentHugepage,
    /// Kernel of the guest.
    Kernel,
    /// Number of hosts that take part.
    Hosts,
    /// Number of hosts by which reads are shifted.
    ReaderShift,
}

/// Values of system settings. A setting that is missing is unchanged.
pub type SystemSettings = BTreeMap<SystemSetting, Value>;

/// Row of the table of system settings.
#[derive(Clone, Copy, Debug)]
pub struct SettingSpec {
    /// Setting.
    pub setting: SystemSetting,
    /// Plan key.
    pub name: &'static str,
    /// Accepted values.
    pub kind: Kind,
    /// Meaning, for the reference page.
    pub doc: &'static str,
}

const fn row(
    factor: SystemSetting,
    name: &'static str,
    kind: Kind,
    doc: &'static str,
) -> SettingSpec {
    SettingSpec { setting: factor, name, kind, doc }
}

/// All system settings, in the order of the enum.
#[rustfmt::skip]
pub const SETTINGS: &[SettingSpec] = &[
    row(SystemSetting::Device, "device", Kind::Text { takes: "a name in the list `axes.device`", read: level_name }, "Device or image files under the filesystem: an entry of `axes.device`."),
    row(SystemSetting::Size, "size", Kind::Size { min: Bytes::mib(1), scales: false }, "Size of each image file under the filesystem."),
    row(SystemSetting::ReadAhead, "read_ahead", Kind::Size { min: Bytes(0), scales: false }, "Read-ahead (`read_ahead_kb`) of the storage devices and of the devices below them, without layers."),
    row(SystemSetting::NrRequests, "nr_requests", Kind::Count { min: 4, max: 1 << 16 }, "Request-queue size (`queue/nr_requests`) of the storage devices and of the devices below them, without layers."),
    row(SystemSetting::WriteCache, "write_cache", Kind::Word(&["write back", "write through"]), "Cache mode the kernel assumes (`queue/write_cache`): fsync flushes `write back` devices only. The device's own cache is unchanged, and so are disks of the stack that others use."),
    row(SystemSetting::CpuSpeed, "cpu_speed", Kind::Text { takes: "a percentage of the maximum frequency such as \"50%\"", read: percent }, "CPU frequency in percent of the maximum; without cpufreq emulated by a CPU quota (`setting-emulated`)."),
    row(SystemSetting::CpuGovernor, "cpu_governor", Kind::Text { takes: "the name of a governor such as \"performance\"", read: word }, "Frequency governor (`scaling_governor`)."),
    row(SystemSetting::OnlineCpus, "online_cpus", Kind::Count { min: 1, max: 8192 }, "Number of online CPUs; highest numbers go offline first."),
    row(SystemSetting::DirtyThreshold, "dirty_threshold", Kind::Text { takes: "a percentage of memory such as \"20%\" or a size such as \"256MiB\"", read: percent_or_size }, "Dirty memory at which writers must write back (`vm.dirty_ratio`, `vm.dirty_bytes`)."),
    row(SystemSetting::DirtyBackgroundThreshold, "dirty_background_threshold", Kind::Text { takes: "a percentage of memory such as \"10%\" or a size such as \"64MiB\"", read: percent_or_size }, "Dirty memory at which background writeback starts (`vm.dirty_background_ratio`, `vm.dirty_background_bytes`)."),
    row(SystemSetting::TransparentHugepage, "transparent_hugepage", Kind::Word(&["always", "madvise", "never"]), "Transparent huge pages (`transparent_hugepage/enabled`)."),
    row(SystemSetting::Kernel, "kernel", Kind::Text { takes: "a kernel: the version of an installed kernel, a package, or an image", read: kernel }, "Kernel of the guest: version (or prefix) of an installed kernel, a package, or an image; append `:DIRECTORY` for its modules."),
    row(SystemSetting::Hosts, "hosts", Kind::Count { min: 1, max: 4096 }, "Number of hosts that take part, from the first on; each has the workers of the workload. Requires `storage.cluster`."),
    row(SystemSetting::ReaderShift, "reader_shift", Kind::Count { min: 0, max: 4096 }, "Number of hosts by which reads are shifted: with 1, a host reads the files of the next host; with 0, its own files, which its cache may contain. Requires `storage.cluster`."),
];

impl SystemSetting {
    /// Row of the setting.
    ///
    /// # Panics
    /// Never: a test checks that the table is complete.
    pub fn spec(self) -> &'static SettingSpec {
        match SETTINGS.iter().find(|spec| spec.setting == self) {
            Some(spec) => spec,
            None => unreachable!("the table has every setting"),
        }
    }

    /// True for a setting of devices, false for a setting of the whole machine.
    pub const fn of_devices(self) -> bool {
        match self {
            Self::Device | Self::Size | Self::ReadAhead | Self::NrRequests | Self::WriteCache => {
                true
            }
            Self::CpuSpeed
            | Self::CpuGovernor
            | Self::OnlineCpus
            | Self::DirtyThreshold
            | Self::DirtyBackgroundThreshold
            | Self::TransparentHugepage
            | Self::Kernel
            | Self::Hosts
            | Self::ReaderShift => false,
        }
    }

    /// True for a setting that selects the storage or the hosts instead of changing the machine.
    pub const fn is_storage(self) -> bool {
        matches!(self, Self::Device | Self::Size) || self.is_cluster()
    }

    /// True for a setting of a run on several hosts.
    pub const fn is_cluster(self) -> bool {
        matches!(self, Self::Hosts | Self::ReaderShift)
    }

    /// Setting with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        SETTINGS.iter().find(|spec| spec.name == name).map(|spec| spec.setting)
    }
}

impl fmt::Display for SystemSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.spec().name)
    }
}

/// Percentage of memory, or size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PercentOrSize {
    /// Percentage, 1 to 100.
    Percent(u8),
    /// Bytes.
    Size(Bytes),
}

impl PercentOrSize {
    /// Parses `20%` or a size.
    ///
    /// # Errors
    /// [`ValueError`] if the text is neither.
    pub fn parse(text: &str) -> Result<Self, ValueError> {
        if text.trim_end().ends_with('%') {
            return parse_percent(text).map(Self::Percent);
        }
        Bytes::parse(text).map(Self::Size).map_err(|error| ValueError::new(error.to_string()))
    }
}

/// Parses a whole percentage such as `50%`, 1 to 100.
///
/// # Errors
/// [`ValueError`] if the text is not a percentage in this range.
pub fn parse_percent(text: &str) -> Result<u8, ValueError> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok());
    number.filter(|percent| (1..=100).contains(percent)).ok_or_else(|| {
        ValueError::new(format!("`{text}` is not a percentage"))
            .hint("use a whole percentage such as \"50%\"")
    })
}

fn percent(text: &str) -> Result<String, ValueError> {
    parse_percent(text).map(|percent| format!("{percent}%"))
}

fn percent_or_size(text: &str) -> Result<String, ValueError> {
    Ok(match PercentOrSize::parse(text)? {
        PercentOrSize::Percent(percent) => format!("{percent}%"),
        PercentOrSize::Size(size) => size.to_string(),
    })
}

fn kernel(text: &str) -> Result<String, ValueError> {
    let error = || ValueError::new(format!("`{}` is not a kernel", text.escape_debug()));
    if text.contains(',') {
        return Err(
            error().hint("commas separate kernels; names and paths must not contain commas")
        );
    }
    match text.trim() {
        "" => Err(error()),
        _ if text.contains(char::is_control) => Err(error()),
        name => Ok(name.to_owned()),
    }
}

/// Parses the name of a level of the axis `device`. Names are part of labels, facts, and lists on
/// the command line.
///
/// # Errors
/// [`ValueError`] if the text is empty or has other characters than letters, digits, `-`, and `_`.
pub(crate) fn level_name(text: &str) -> Result<String, ValueError> {
    word(text).map_err(|_| {
        ValueError::new(format!("`{}` is not the name of a device", text.escape_debug()))
            .hint("use letters, digits, `-`, and `_`")
    })
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
    fn every_setting_has_a_row_and_a_name() {
        for spec in SETTINGS {
            assert_eq!(spec.setting.spec().name, spec.name);
            assert_eq!(SystemSetting::from_name(spec.name), Some(spec.setting));
            let text = serde_json::to_value(spec.setting).unwrap();
            assert_eq!(text, spec.name, "same name in files and in plans");
            assert!(spec.doc.ends_with('.'));
        }
    }

    #[test]
    fn values_have_one_canonical_text() {
        let read =
            |factor: SystemSetting, text| factor.spec().kind.read(text).map(|v| v.to_string());
        assert_eq!(read(SystemSetting::CpuSpeed, "50 %").unwrap(), "50%");
        assert_eq!(read(SystemSetting::DirtyThreshold, "262144k").unwrap(), "256MiB");
        assert_eq!(read(SystemSetting::DirtyThreshold, "20%").unwrap(), "20%");
        assert!(read(SystemSetting::CpuSpeed, "0%").is_err());
        assert!(read(SystemSetting::CpuSpeed, "101%").is_err());
        assert!(read(SystemSetting::CpuGovernor, "../x").is_err());
        assert!(read(SystemSetting::TransparentHugepage, "sometimes").is_err());
    }
}
