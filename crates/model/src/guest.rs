//! Which throw-away machine a plan is measured in.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// What runs a guest, as a plan names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuestKind {
    /// The first of KVM, user-mode Linux, and QEMU's emulator that can run here.
    Auto,
    /// The processor itself, through `/dev/kvm`.
    Kvm,
    /// QEMU's emulator, whose clock counts instructions.
    Counted,
    /// User-mode Linux: the kernel as a program.
    Uml,
    /// QEMU's emulator.
    Tcg,
}

impl GuestKind {
    /// Those that plans may name.
    pub const ALL: [Self; 5] = [Self::Auto, Self::Kvm, Self::Counted, Self::Uml, Self::Tcg];

    /// Its name in plans and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Kvm => "kvm",
            Self::Counted => "counted",
            Self::Uml => "uml",
            Self::Tcg => "tcg",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The device in the memory of a guest that counts instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuestDevice {
    /// `null_blk` with memory behind it: it counts requests, bytes, and flushes, and can take a
    /// time for each request.
    #[default]
    NullBlk,
    /// The kernel's RAM disk: it counts nothing, and has no cache to flush.
    Brd,
}

impl GuestDevice {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::NullBlk, Self::Brd];

    /// Its name in plans: that of the kernel's module.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NullBlk => "null_blk",
            Self::Brd => "brd",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|device| device.name() == name)
    }
}

/// What a plan says of the disk of a guest that counts instructions, beside its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuestDisk {
    /// What it is; `None` for the usual one.
    pub device: Option<GuestDevice>,
    /// What each request takes, in virtual time; `None` for none.
    pub latency: Option<Nanos>,
}

impl GuestDisk {
    /// What each request takes at most. Longer ones are taken for a mistake: spinning disks answer
    /// within some 20 ms.
    pub const LATENCY_MAX: Nanos = Nanos(1_000_000_000);

    /// What each request takes.
    pub fn latency(self) -> Nanos {
        self.latency.unwrap_or_default()
    }
}

impl fmt::Display for GuestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
