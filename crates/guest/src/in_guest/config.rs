//! Configuration of a guest for its init process: one text file in the initramfs.
//!
//! The file has lines of `key=value`. In a value, `\\` represents a backslash and `\n` a line feed.
//! The host writes a [`GuestConfig`] as text and the guest parses it. The kernel command line and
//! the environment of the init process are not used, because they are short and can be truncated.

use std::fmt::Write as _;

use model::{Bytes, Nanos};

use crate::GuestError;

/// Path of the configuration in the guest.
pub(crate) const FILE: &str = "/etc/fslab/config";

/// Configuration of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestConfig {
    /// Random bytes of the host for the guest's random number generator.
    pub seed: [u8; 64],
    /// Wall-clock time to set, in nanoseconds since 1970-01-01 UTC; `None` keeps the machine's
    /// time.
    pub unix_time_ns: Option<u64>,
    /// Host name of the guest.
    pub hostname: String,
    /// Arguments with which this binary is started as the worker.
    pub worker: Vec<String>,
    /// Module parameters, `module.name=value`, as on the kernel command line. They are appended to
    /// the module's parameters on the command line.
    pub parameters: Vec<String>,
    /// Device to create in the guest.
    pub device: Device,
}

/// Block device in the guest's own memory, so that the host does not affect its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// No device.
    None,
    /// RAM disk (brd): no statistics, no flushes.
    RamDisk {
        /// Size, whole KiB.
        size: Bytes,
    },
    /// Memory-backed `null_blk`: statistics, flushes, discards, and a configurable latency (kernel
    /// documentation: `Documentation/block/null_blk.rst`).
    NullBlk {
        /// Size, whole MiB.
        size: Bytes,
        /// Latency of each request; 0 completes requests inline.
        latency: Nanos,
        /// Size of the volatile write cache, whole MiB; 0 for no cache and no flushes.
        cache: Bytes,
        /// Sector size: 512, 1024, 2048, or 4096 bytes.
        sector: Bytes,
    },
}

impl Device {
    /// Path of the device in the guest.
    pub const fn path(&self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::RamDisk { .. } => Some("/dev/ram0"),
            Self::NullBlk { .. } => Some("/dev/nullb0"),
        }
    }

    /// Modules that provide the device.
    pub const fn modules(&self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::RamDisk { .. } => &["brd"],
            Self::NullBlk { .. } => &["configfs", "null_blk"],
        }
    }

    /// Module parameters. They create one RAM disk of the configured size, or prevent `null_blk`
    /// from creating a device when it is loaded.
    pub(super) fn parameters(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::RamDisk { size } => {
                Some(format!("brd.rd_nr=1 brd.rd_size={}", size.0 / Bytes::KIB))
            }
            Self::NullBlk { .. } => Some("null_blk.nr_devices=0".to_owned()),
        }
    }
}

impl GuestConfig {
    /// Formats the configuration as the text of the file.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: &str| {
            let value = value.replace('\\', "\\\\").replace('\n', "\\n");
            let _ = writeln!(text, "{key}={value}");
        };
        line("seed", &hex::encode(self.seed));
        if let Some(time) = self.unix_time_ns {
            line("unix-time-ns", &time.to_string());
        }
        line("hostname", &self.hostname);
        for argument in &self.worker {
            line("worker", argument);
        }
        for parameter in &self.parameters {
            line("parameter", parameter);
        }
        match self.device {
            Device::None => {}
            Device::RamDisk { size } => line("ramdisk", &size.0.to_string()),
            Device::NullBlk { size, latency, cache, sector } => {
                let values = [size.0, latency.0, cache.0, sector.0].map(|n| n.to_string());
                line("null-blk", &values.join(" "));
            }
        }
        text
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    /// [`GuestError::Malformed`] with the line that cannot be parsed. This happens if another build
    /// of this binary wrote the file.
    pub fn of_text(text: &str) -> Result<Self, GuestError> {
        let mut config = Self {
            seed: [0; 64],
            unix_time_ns: None,
            hostname: String::new(),
            worker: Vec::new(),
            parameters: Vec::new(),
            device: Device::None,
        };
        let mut seeded = false;
        for line in text.lines() {
            let malformed = || GuestError::Malformed {
                path: FILE.into(),
                why: format!("unknown line {line:?}"),
            };
            let (key, value) = line.split_once('=').ok_or_else(malformed)?;
            let value = unescaped(value).ok_or_else(malformed)?;
            match key {
                "seed" => {
                    hex::decode_to_slice(&value, &mut config.seed).map_err(|_| malformed())?;
                    seeded = true;
                }
                "unix-time-ns" => {
                    config.unix_time_ns = Some(value.parse().map_err(|_| malformed())?);
                }
                "hostname" => config.hostname = value,
                "worker" => config.worker.push(value),
                "parameter" => config.parameters.push(value),
                "ramdisk" | "null-blk" => {
                    config.device = device(key, &value).ok_or_else(malformed)?;
                }
                _ => return Err(malformed()),
            }
        }
        if !seeded {
            let why = "it has no seed and is therefore incomplete".to_owned();
            return Err(GuestError::Malformed { path: FILE.into(), why });
        }
        Ok(config)
    }
}

fn device(key: &str, value: &str) -> Option<Device> {
    let numbers: Result<Vec<u64>, _> = value.split(' ').map(str::parse).collect();
    match (key, numbers.ok()?.as_slice()) {
        ("ramdisk", &[size]) => Some(Device::RamDisk { size: Bytes(size) }),
        ("null-blk", &[size, latency, cache, sector]) => Some(Device::NullBlk {
            size: Bytes(size),
            latency: Nanos(latency),
            cache: Bytes(cache),
            sector: Bytes(sector),
        }),
        _ => None,
    }
}

fn unescaped(value: &str) -> Option<String> {
    let mut text = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        text.push(match character {
            '\\' => match characters.next()? {
                'n' => '\n',
                '\\' => '\\',
                _ => return None,
            },
            other => other,
        });
    }
    Some(text)
}

#[cfg(test)]
mod tests;
