//! Which throw-away machine a plan is measured in.

use std::fmt;

use serde::{Deserialize, Serialize};

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
    /// Those that plans may name. Of [`Self::Counted`] no report tells instructions yet, and they
    /// must not be read as time.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Kvm, Self::Uml, Self::Tcg];

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

impl fmt::Display for GuestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
