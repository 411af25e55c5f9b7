//! Guest kinds and disks of icount guests.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// Kind of guest in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestKind {
    /// First available of KVM, user-mode Linux, and QEMU TCG.
    Auto,
    /// KVM through `/dev/kvm`.
    Kvm,
    /// QEMU TCG with a clock that counts instructions (`-icount`).
    Icount,
    /// User-mode Linux.
    Uml,
    /// QEMU TCG.
    Tcg,
}

impl GuestKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Kvm, Self::Icount, Self::Uml, Self::Tcg];

    /// Name in plans and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Kvm => "kvm",
            Self::Icount => "icount",
            Self::Uml => "uml",
            Self::Tcg => "tcg",
        }
    }

    /// Kind of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// RAM-backed disk of an icount guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestDevice {
    /// `null_blk` backed by memory. Counts requests, bytes, and flushes, and can simulate a latency
    /// per request.
    #[default]
    NullBlk,
    /// RAM disk of the kernel. Has neither counters nor a cache to flush.
    Brd,
}

impl GuestDevice {
    /// All devices.
    pub const ALL: [Self; 2] = [Self::NullBlk, Self::Brd];

    /// Name in plans, which is that of the kernel module.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NullBlk => "null_blk",
            Self::Brd => "brd",
        }
    }

    /// Device of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|device| device.name() == name)
    }
}

/// Disk of an icount guest in a plan, apart from its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestDisk {
    /// Device; `None` for the default.
    pub device: Option<GuestDevice>,
    /// Latency per request in virtual time; `None` for none.
    pub latency: Option<Nanos>,
}

impl GuestDisk {
    /// Maximum latency per request. Hard disks have about 20 ms; values above this maximum are
    /// treated as mistakes.
    pub const LATENCY_MAX: Nanos = Nanos(1_000_000_000);

    /// Latency per request.
    pub fn latency(self) -> Nanos {
        self.latency.unwrap_or_default()
    }
}

impl fmt::Display for GuestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
