//! Properties of the engines.

use std::time::Duration;

use super::Engine;
use crate::kernel::Architecture;

impl Engine {
    /// All engines, most suitable for measurements first.
    pub const ALL: [Self; 4] = [Self::Kvm, Self::Icount, Self::Uml, Self::Tcg];

    /// Name in `--guest` and plans.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Tcg => "tcg",
            Self::Icount => "icount",
            Self::Uml => "uml",
        }
    }

    /// Architecture of the kernels that the engine boots.
    #[must_use]
    pub const fn architecture(self) -> Architecture {
        match self {
            Self::Kvm | Self::Tcg | Self::Icount => Architecture::Pc,
            Self::Uml => Architecture::Uml,
        }
    }

    /// Unit of the guest's clock. Only KVM guests measure time.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Kvm => "ns",
            Self::Icount => "guest instructions",
            Self::Uml | Self::Tcg => "emulated ns, not performance results",
        }
    }

    /// True if the engine supports only one CPU: Debian's user-mode Linux is built for one
    /// (`NR_CPUS`), and QEMU counts the instructions of one CPU only.
    pub(super) const fn is_single(self) -> bool {
        match self {
            Self::Icount | Self::Uml => true,
            Self::Kvm | Self::Tcg => false,
        }
    }

    /// Time limit for the first heartbeat. Measured on an overcommitted machine with two CPUs:
    /// user-mode Linux 1.7 s; `tcg` 3 to 4 s, and 9 s for a self-extracting kernel; `icount` 9 to
    /// 18 s; 6 s more with all modules loaded. The limits are several times these values.
    pub(super) const fn boot_limit(self) -> Duration {
        match self {
            Self::Uml => Duration::from_secs(15),
            Self::Kvm => Duration::from_secs(20),
            Self::Tcg => Duration::from_secs(60),
            Self::Icount => Duration::from_secs(120),
        }
    }

    /// QEMU's name of the CPU model. `max` has all features of the emulator. Features that slow
    /// down guests are excluded: fast string operations (`erms`, `fsrm`), because the emulator
    /// executes them byte by byte, and five-level page tables (`la57`), which add a level to each
    /// page table walk.
    pub(super) const fn cpu_model(self) -> &'static str {
        match self {
            Self::Kvm => "host",
            Self::Tcg | Self::Icount => "max,la57=off,erms=off,fsrm=off",
            Self::Uml => "host CPU",
        }
    }
}
