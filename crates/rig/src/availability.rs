//! Support of this machine for a filesystem, and hints if something is missing.
//!
//! The check changes nothing. In particular, it does not load modules; the kernel does so on mount.

use std::path::Path;

use model::{FilesystemLevel, SetupStep};

use crate::{
    catalog::{Catalog, CatalogError, Filesystem, Kind},
    host::Host,
    layers,
};

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

impl Catalog {
    /// Checks that the kernel supports the filesystem, its tools are installed, and the user may
    /// mount.
    pub fn availability(&self, filesystem: &Filesystem, host: &dyn Host) -> Availability {
        if filesystem.kind == Kind::Directory {
            return Availability::Usable { version: None };
        }
        let missing: Vec<_> =
            [kernel(filesystem, host), tools(filesystem, host)].into_iter().flatten().collect();
        let available_to_root = missing.is_empty();
        let missing: Vec<_> = missing.into_iter().chain(privilege(host)).collect();
        if missing.is_empty() {
            return Availability::Usable { version: version(filesystem, host) };
        }
        let (reasons, hints): (Vec<_>, Vec<_>) = missing.into_iter().unzip();
        Availability::Missing {
            reason: reasons.join("; "),
            hint: hints.join("; "),
            available_to_root,
        }
    }

    /// Missing programs of a filesystem and the command that installs them; `None` if there are
    /// none. Kernel support is not checked, because a guest has its own kernel.
    pub fn missing_tools(
        &self,
        filesystem: &Filesystem,
        host: &dyn Host,
    ) -> Option<(String, String)> {
        tools(filesystem, host)
    }

    /// [`Self::availability`] of a filesystem level of a plan: also checks the type it is converted
    /// to, its layers, and the programs of its `setup`. The version is that of the mkfs tools.
    ///
    /// # Errors
    /// [`CatalogError::Unknown`] for an unknown filesystem type.
    pub fn level(
        &self,
        level: &FilesystemLevel,
        host: &dyn Host,
    ) -> Result<Availability, CatalogError> {
        let converted = level.converted_to.as_deref().map(|name| self.get(name)).transpose()?;
        let answer = self.availability(self.get(&level.fs_type)?, host);
        let (mut reasons, mut hints) = (Vec::new(), Vec::new());
        let (version, available_to_root) = match answer {
            Availability::Usable { version } => (version, false),
            Availability::Missing { reason, hint, available_to_root } => {
                reasons.push(reason);
                hints.push(hint);
                (None, available_to_root)
            }
        };
        let kernel = converted.and_then(|filesystem| kernel(filesystem, host));
        let missing =
            [kernel, converted.and_then(|it| tools(it, host)), self.programs(level, host)];
        let below = level.layers.iter().flat_map(|layer| layers::missing(layer, host));
        for (reason, hint) in missing.into_iter().flatten().chain(below) {
            if reasons.contains(&reason) {
                continue;
            }
            reasons.push(reason);
            hints.push(hint);
        }
        if reasons.is_empty() {
            return Ok(Availability::Usable { version });
        }
        Ok(Availability::Missing {
            reason: reasons.join("; "),
            hint: once(&hints).join("; "),
            available_to_root,
        })
    }

    /// Missing programs of `setup`, with the packages that contain them.
    fn programs(&self, level: &FilesystemLevel, host: &dyn Host) -> Missing {
        let program = |step: &SetupStep| match step {
            SetupStep::Unmounted { argv } | SetupStep::Mounted { argv } => argv.first().cloned(),
            SetupStep::Populate { .. } | SetupStep::Remove { .. } => None,
        };
        let mut missing: Vec<String> = Vec::new();
        for name in level.setup.iter().filter_map(program) {
            if host.find(&name).is_none() && !missing.contains(&name) {
                missing.push(name);
            }
        }
        if missing.is_empty() {
            return None;
        }
        let owner = |name: &String| {
            self.all()
                .iter()
                .find(|it| it.programs().contains(&name.as_str()) || it.tools.contains(name))
        };
        let hints: Vec<String> = missing
            .iter()
            .map(|name| match owner(name) {
                Some(filesystem) => install_tools(filesystem, host),
                None => format!("install {name}, or remove it from `setup`"),
            })
            .collect();
        Some((format!("{} not found", missing.join(" and ")), once(&hints).join("; ")))
    }
}

/// Reason and hint.
pub(crate) type Missing = Option<(String, String)>;

/// Distribution families and their package names.
pub(crate) type Packages = &'static [(&'static str, &'static str)];

fn kernel(filesystem: &Filesystem, host: &dyn Host) -> Missing {
    let fstype = &filesystem.fstype;
    let table = host.read(Path::new("/proc/filesystems")).unwrap_or_default();
    let known = table.lines().any(|line| line.split_whitespace().next_back() == Some(fstype));
    // Module alias requested by the kernel (`get_fs_type` in fs/filesystems.c).
    if known || loadable(&format!("fs-{fstype}"), fstype, host) {
        return None;
    }
    let release = host.read(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
    let range = match filesystem.kernel.describe() {
        range if range.is_empty() => range,
        range => format!(" ({range})"),
    };
    let reason = format!("the running kernel {} does not support {fstype}", release.trim());
    Some((reason.replace("  ", " "), format!("use a kernel that supports it{range}")))
}

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

fn tools(filesystem: &Filesystem, host: &dyn Host) -> Missing {
    let programs = filesystem.programs();
    let missing: Vec<_> = programs.into_iter().filter(|name| host.find(name).is_none()).collect();
    if missing.is_empty() {
        return None;
    }
    let reason = format!("{} not found", missing.join(" and "));
    Some((reason, install_tools(filesystem, host)))
}

/// Parts of the hints without duplicates, in order.
fn once(hints: &[String]) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in hints.iter().flat_map(|hint| hint.split("; ")) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// Command that installs the tools of a filesystem.
fn install_tools(filesystem: &Filesystem, host: &dyn Host) -> String {
    let packages = filesystem.package.iter().map(|(family, name)| (&**family, &**name));
    let packages: Vec<(&str, &str)> = packages.collect();
    match packages.as_slice() {
        [] => format!("install the tools described in {}", filesystem.source),
        packages => install(packages, host, "install its tools"),
    }
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

fn privilege(host: &dyn Host) -> Missing {
    (!host.is_root()).then(|| ("not root".to_owned(), "run as root".to_owned()))
}

/// First line with a digit in the output; some tools print an empty line first.
fn version(filesystem: &Filesystem, host: &dyn Host) -> Option<String> {
    if filesystem.version.is_empty() {
        return None;
    }
    let output = host.run(&filesystem.version).ok()?;
    let lines = output.stdout.lines().chain(output.stderr.lines()).map(str::trim);
    lines.filter(|line| line.contains(|c: char| c.is_ascii_digit())).map(str::to_owned).next()
}

#[cfg(test)]
mod tests;
