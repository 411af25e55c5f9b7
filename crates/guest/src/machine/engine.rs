//! What there is to say of each engine.

use std::time::Duration;

use super::Engine;
use crate::kernel::Architecture;

impl Engine {
    /// All of them, best for measuring first.
    pub const ALL: [Self; 4] = [Self::Kvm, Self::Counted, Self::Uml, Self::Tcg];

    /// Its name, as users write it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
            Self::Counted => "counted",
            Self::Uml => "uml",
        }
    }

    /// The kernels that it boots.
    #[must_use]
    pub const fn architecture(self) -> Architecture {
        match self {
            Self::Kvm | Self::Tcg | Self::Counted => Architecture::Pc,
            Self::Uml => Architecture::Uml,
        }
    }

    /// The unit of what a clock shows in it. Only with KVM is that time.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Kvm => "ns",
            Self::Counted => "guest instructions",
            Self::Uml | Self::Tcg => "emulated ns, not performance",
        }
    }

    /// Whether it has more than one processor to give: Debian's user-mode Linux is built for one
    /// (`NR_CPUS`), and QEMU counts those of one.
    pub(super) const fn is_single(self) -> bool {
        match self {
            Self::Counted | Self::Uml => true,
            Self::Kvm | Self::Tcg => false,
        }
    }

    /// How long its kernel may take to the first heartbeat. Measured on a machine with two
    /// processors and twice as much to do: user-mode Linux 1.7 s, `tcg` 3 to 4 s, and 9 s for a
    /// kernel that unpacks itself; `counted` 9 to 18 s, of which half is the calibration of timers;
    /// with all modules loaded 6 s more. So these are several times what is ever seen.
    pub(super) const fn boot_limit(self) -> Duration {
        match self {
            Self::Uml => Duration::from_secs(15),
            Self::Kvm => Duration::from_secs(20),
            Self::Tcg => Duration::from_secs(60),
            Self::Counted => Duration::from_secs(120),
        }
    }

    /// QEMU's name of the processor. `max` has all that the emulator can do, but for what makes
    /// guests slow: fast string operations (`erms`, `fsrm`) are those it does byte by byte, and
    /// page tables of five levels (`la57`) are one level more to walk.
    pub(super) const fn processor(self) -> &'static str {
        match self {
            Self::Kvm => "host",
            Self::Tcg | Self::Counted => "max,la57=off,erms=off,fsrm=off",
            Self::Uml => "the host's",
        }
    }
}
