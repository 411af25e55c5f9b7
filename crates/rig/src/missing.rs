//! Missing kernel features and programs, with hints for the distribution.
//!
//! The checks change nothing. In particular, they do not load modules; the kernel does so on mount.

use std::path::Path;

use crate::host::Host;

/// Availability of a filesystem on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Available.
    Usable {
        /// Version printed by the tools; `None` without tools, or if none is printed.
        version: Option<String>,
    },
    /// Not available.
    Missing {
        /// Everything that is missing.
        reason: String,
        /// Hint.
        hint: String,
        /// True if the kernel and the tools support the filesystem type, and only root privileges
        /// are missing for it.
        available_to_root: bool,
    },
}

/// Distribution families: name in the catalog, IDs in os-release(5), install command.
const FAMILIES: [(&str, &[&str], &str); 5] = [
    ("debian", &["debian", "ubuntu"], "apt-get install"),
    ("fedora", &["fedora", "rhel", "centos"], "dnf install"),
    ("arch", &["arch"], "pacman -S"),
    ("suse", &["suse", "opensuse", "sles"], "zypper install"),
    ("alpine", &["alpine"], "apk add"),
];

/// Reason and hint.
pub(crate) type Missing = Option<(String, String)>;

/// Distribution families and their package names.
pub(crate) type Packages = &'static [(&'static str, &'static str)];

/// True if the kernel can load a module by this alias. `modprobe -n` is a dry run; without
/// modprobe, the module is searched in `modules.dep`.
pub(crate) fn loadable(alias: &str, module: &str, host: &dyn Host) -> bool {
    let argv = ["modprobe", "-n", "-q", alias].map(str::to_owned);
    if host.find(&argv[0]).is_some() {
        return host.run(&argv).is_ok_and(|output| output.success());
    }
    let release = host.read(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
    let modules = Path::new("/lib/modules").join(release.trim()).join("modules.dep");
    let modules = host.read(&modules).unwrap_or_default();
    modules.lines().any(|line| line.contains(&format!("/{module}.ko")))
}

/// Command that installs the package on this distribution; if the family is unknown, `otherwise`
/// with the package names of other distributions.
pub(crate) fn install(packages: &[(&str, &str)], host: &dyn Host, otherwise: &str) -> String {
    let release = host.read(Path::new("/etc/os-release")).unwrap_or_default();
    let install = family(&release).and_then(|(name, command)| {
        let (_, package) = packages.iter().find(|(family, _)| *family == name)?;
        Some(format!("{command} {package}"))
    });
    install.unwrap_or_else(|| {
        let mut names: Vec<_> = packages.iter().map(|(_, package)| *package).collect();
        names.dedup();
        format!("{otherwise} (package name on other distributions: {})", names.join(" or "))
    })
}

/// Distribution family and install command: by `ID`, else by the first known ID of `ID_LIKE`.
fn family(release: &str) -> Option<(&'static str, &'static str)> {
    let value = |key: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim().trim_matches('"').to_owned())
    };
    let ids =
        format!("{} {}", value("ID=").unwrap_or_default(), value("ID_LIKE=").unwrap_or_default());
    ids.split_whitespace().find_map(|id| {
        // openSUSE has an ID per edition, such as opensuse-leap.
        let stem = id.split('-').next().unwrap_or(id);
        let known = FAMILIES.iter().find(|(_, names, _)| names.contains(&stem));
        known.map(|(family, _, command)| (*family, *command))
    })
}
