//! Missing kernel features and programs, with hints for the distribution.
//!
//! The checks change nothing. In particular, they do not load modules; the kernel loads the module
//! of a filesystem when it is mounted.

use std::path::Path;

use crate::host::Host;

/// Availability of a filesystem on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// Available.
    Usable {
        /// Version that the tools of the filesystem print; `None` if there are no tools, or if they
        /// print no version.
        version: Option<String>,
    },
    /// Not available.
    Missing {
        /// Description of everything that is missing.
        reason: String,
        /// Hint.
        hint: String,
        /// True if the kernel supports the filesystem type and its tools are installed, so that
        /// only root privileges are missing.
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

/// Reason and hint; `None` if nothing is missing.
pub(crate) type Missing = Option<(String, String)>;

/// Package names, each with its distribution family.
pub(crate) type Packages = &'static [(&'static str, &'static str)];

/// True if the running kernel can load the module with this alias. `modprobe -n` is a dry run.
/// Without modprobe, `module` is searched in `modules.dep`.
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

/// Command that installs the package on this distribution. If `packages` has no name for this
/// distribution, `otherwise` followed by the names on other distributions.
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

/// Distribution family and install command, by the first known ID of `ID` and `ID_LIKE` in
/// os-release(5).
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
