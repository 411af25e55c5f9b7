//! What the first process is told before it does anything: one text file in the archive.
//!
//! Lines of `key=value`; in a value `\\` stands for a backslash and `\n` for a new line. Values
//! enter as a [`Job`] and leave as its text on the host, and the other way round in the guest.
//! A kernel's command line and the environment of its first process are short and can be cut, so
//! what matters is not there.

use std::fmt::Write as _;

use model::{Bytes, Nanos};

use crate::GuestError;

/// Where the job is in the guest.
pub(crate) const FILE: &str = "/etc/fslab/job";

/// What the first process is to do, and with what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Random bytes of the host, for a guest that has no source of its own.
    pub seed: [u8; 64],
    /// The wall clock to set, in nanoseconds since 1970-01-01 UTC; `None` keeps the machine's.
    pub unix_time_ns: Option<u64>,
    /// The name of the guest.
    pub hostname: String,
    /// The arguments with which this binary is started as the worker.
    pub worker: Vec<String>,
    /// Parameters of modules, `module.name=value`, as on the kernel's command line. They come after
    /// those that are there.
    pub parameters: Vec<String>,
    /// A device to make in the guest.
    pub device: Device,
}

/// A block device that is in the guest's own memory, so that the host has no part in its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// None.
    None,
    /// A RAM disk (brd): no statistics, no flushes.
    RamDisk {
        /// Its size, whole KiB.
        size: Bytes,
    },
    /// `null_blk` with memory behind it: statistics, flushes, discards, and a latency of choice
    /// (kernel document `Documentation/block/null_blk.rst`).
    NullBlk {
        /// Its size, whole MiB.
        size: Bytes,
        /// The time between the start and the end of each request; 0 ends it at once.
        latency: Nanos,
        /// The size of its volatile write cache, whole MiB; 0 for none, and then nothing flushes.
        cache: Bytes,
        /// The size of its sectors: 512, 1024, 2048 or 4096 bytes.
        sector: Bytes,
    },
}

impl Device {
    /// Where it is in the guest.
    pub const fn path(&self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::RamDisk { .. } => Some("/dev/ram0"),
            Self::NullBlk { .. } => Some("/dev/nullb0"),
        }
    }

    /// The modules that make it.
    pub const fn modules(&self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::RamDisk { .. } => &["brd"],
            Self::NullBlk { .. } => &["configfs", "null_blk"],
        }
    }

    /// Parameters for its modules, so that they make nothing of their own accord.
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

impl Job {
    /// The text of the file.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |key: &str, value: &str| {
            let value = value.replace('\\', "\\\\").replace('\n', "\\n");
            let _ = writeln!(text, "{key}={value}");
        };
        line("seed", &hexadecimal(&self.seed));
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

    /// Reads the text of the file.
    ///
    /// # Errors
    /// [`GuestError::Malformed`] names the line that is not understood: the binary in the archive
    /// is then another one than that which wrote the file.
    pub fn of_text(text: &str) -> Result<Self, GuestError> {
        let mut job = Self {
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
                why: format!("{line:?} is not understood"),
            };
            let (key, value) = line.split_once('=').ok_or_else(malformed)?;
            let value = unescaped(value).ok_or_else(malformed)?;
            match key {
                "seed" => {
                    job.seed = of_hexadecimal(&value).ok_or_else(malformed)?;
                    seeded = true;
                }
                "unix-time-ns" => {
                    job.unix_time_ns = Some(value.parse().map_err(|_| malformed())?);
                }
                "hostname" => job.hostname = value,
                "worker" => job.worker.push(value),
                "parameter" => job.parameters.push(value),
                "ramdisk" | "null-blk" => {
                    job.device = device(key, &value).ok_or_else(malformed)?;
                }
                _ => return Err(malformed()),
            }
        }
        if !seeded {
            let why = "it has no seed: it was cut, or never written whole".to_owned();
            return Err(GuestError::Malformed { path: FILE.into(), why });
        }
        Ok(job)
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

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn of_hexadecimal(text: &str) -> Option<[u8; 64]> {
    let mut bytes = [0; 64];
    if text.len() != 2 * bytes.len() || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
