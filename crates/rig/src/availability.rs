//! Whether this machine can make and mount a filesystem, and what would help if not.
//!
//! Looking changes nothing: a module that could be loaded is not loaded here; the kernel loads it
//! when the filesystem is mounted.

use std::path::Path;

use model::{FilesystemLevel, SetupStep};

use crate::{
    catalogue::{Catalogue, CatalogueError, Filesystem, Kind},
    host::Host,
    layers,
};

/// Whether a filesystem can be measured here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It can.
    Usable {
        /// What its tools say of their version; `None` where there are none, or they do not tell.
        version: Option<String>,
    },
    /// It cannot.
    Missing {
        /// All that is missing.
        reason: String,
        /// What would help.
        cure: String,
    },
}

/// Families of distributions: name in the catalogue, ids in os-release(5), command that installs.
const FAMILIES: [(&str, &[&str], &str); 5] = [
    ("debian", &["debian", "ubuntu"], "apt-get install"),
    ("fedora", &["fedora", "rhel", "centos"], "dnf install"),
    ("arch", &["arch"], "pacman -S"),
    ("suse", &["suse", "opensuse", "sles"], "zypper install"),
    ("alpine", &["alpine"], "apk add"),
];

impl Catalogue {
    /// Whether the kernel has the filesystem, its tools are installed, and this user may mount.
    pub fn availability(&self, filesystem: &Filesystem, host: &dyn Host) -> Availability {
        if filesystem.kind == Kind::Directory {
            return Availability::Usable { version: None };
        }
        let lacks: Vec<_> = [kernel(filesystem, host), tools(filesystem, host), privilege(host)]
            .into_iter()
            .flatten()
            .collect();
        if lacks.is_empty() {
            return Availability::Usable { version: version(filesystem, host) };
        }
        let (reasons, cures): (Vec<_>, Vec<_>) = lacks.into_iter().unzip();
        Availability::Missing { reason: reasons.join("; "), cure: cures.join("; ") }
    }

    /// The programs of a filesystem that are missing here, and what installs them; `None` if there
    /// are all. Whether the kernel has it is another question, which a guest has its own answer to.
    pub fn missing_tools(
        &self,
        filesystem: &Filesystem,
        host: &dyn Host,
    ) -> Option<(String, String)> {
        tools(filesystem, host)
    }

    /// [`Self::availability`] of a level of a plan: besides the filesystem it is made from, what it
    /// becomes, the layers it lies on, and the programs of its `setup`. The version told is that
    /// of the tools it is made with.
    ///
    /// # Errors
    /// [`CatalogueError::Unknown`] for a name that no entry has.
    pub fn level(
        &self,
        level: &FilesystemLevel,
        host: &dyn Host,
    ) -> Result<Availability, CatalogueError> {
        let becomes = level.becomes.as_deref().map(|name| self.get(name)).transpose()?;
        let answer = self.availability(self.get(&level.base)?, host);
        let (mut reasons, mut cures) = (Vec::new(), Vec::new());
        let version = match answer {
            Availability::Usable { version } => version,
            Availability::Missing { reason, cure } => {
                reasons.push(reason);
                cures.push(cure);
                None
            }
        };
        let kernel = becomes.and_then(|filesystem| kernel(filesystem, host));
        let lacks = [kernel, becomes.and_then(|it| tools(it, host)), self.programs(level, host)];
        let below = level.layers.iter().flat_map(|layer| layers::lacks(layer, host));
        for (reason, cure) in lacks.into_iter().flatten().chain(below) {
            if reasons.contains(&reason) {
                continue;
            }
            reasons.push(reason);
            cures.push(cure);
        }
        if reasons.is_empty() {
            return Ok(Availability::Usable { version });
        }
        Ok(Availability::Missing { reason: reasons.join("; "), cure: once(&cures).join("; ") })
    }

    /// Programs of a level's `setup` that are missing, with the packages that have them.
    fn programs(&self, level: &FilesystemLevel, host: &dyn Host) -> Lack {
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
        let cures: Vec<String> = missing
            .iter()
            .map(|name| match owner(name) {
                Some(filesystem) => install_tools(filesystem, host),
                None => format!("install {name}, or take it out of `setup`"),
            })
            .collect();
        Some((format!("{} not found", missing.join(" and ")), once(&cures).join("; ")))
    }
}

/// A reason and its cure.
pub(crate) type Lack = Option<(String, String)>;

/// Families of distributions and the package that has something there.
pub(crate) type Packages = &'static [(&'static str, &'static str)];

fn kernel(filesystem: &Filesystem, host: &dyn Host) -> Lack {
    let fstype = &filesystem.fstype;
    let table = host.read(Path::new("/proc/filesystems")).unwrap_or_default();
    let known = table.lines().any(|line| line.split_whitespace().next_back() == Some(fstype));
    // The alias that the kernel asks for (`get_fs_type` in fs/filesystems.c).
    if known || loadable(&format!("fs-{fstype}"), fstype, host) {
        return None;
    }
    let release = host.read(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
    let range = match filesystem.kernel.describe() {
        range if range.is_empty() => range,
        range => format!(" ({range})"),
    };
    let reason = format!("the running kernel {} has no {fstype}", release.trim());
    Some((reason.replace("  ", " "), format!("it needs a kernel that has it{range}")))
}

/// Whether a module would be loaded when the kernel asks for it by an alias. `modprobe -n` only
/// tells; without it, the file of the module is looked for.
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

fn tools(filesystem: &Filesystem, host: &dyn Host) -> Lack {
    let programs = filesystem.programs();
    let missing: Vec<_> = programs.into_iter().filter(|name| host.find(name).is_none()).collect();
    if missing.is_empty() {
        return None;
    }
    let reason = format!("{} not found", missing.join(" and "));
    Some((reason, install_tools(filesystem, host)))
}

/// Each part of some cures once, in their order.
fn once(cures: &[String]) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in cures.iter().flat_map(|cure| cure.split("; ")) {
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// What installs the tools of a filesystem here.
fn install_tools(filesystem: &Filesystem, host: &dyn Host) -> String {
    let packages = filesystem.package.iter().map(|(family, name)| (&**family, &**name));
    let packages: Vec<(&str, &str)> = packages.collect();
    match packages.as_slice() {
        [] => format!("install what {} describes", filesystem.source),
        packages => install(packages, host, "install its tools"),
    }
}

/// What installs the package of this family of distributions; where that is not known, `otherwise`
/// with the names that the package has elsewhere.
pub(crate) fn install(packages: &[(&str, &str)], host: &dyn Host, otherwise: &str) -> String {
    let release = host.read(Path::new("/etc/os-release")).unwrap_or_default();
    let install = family(&release).and_then(|(name, command)| {
        let (_, package) = packages.iter().find(|(family, _)| *family == name)?;
        Some(format!("{command} {package}"))
    });
    install.unwrap_or_else(|| {
        let mut names: Vec<_> = packages.iter().map(|(_, package)| *package).collect();
        names.dedup();
        format!("{otherwise} (elsewhere the package is {})", names.join(" or "))
    })
}

/// The family of a distribution and its command: by `ID`, else by the first of `ID_LIKE` that is
/// known.
fn family(release: &str) -> Option<(&'static str, &'static str)> {
    let value = |key: &str| {
        let line = release.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim().trim_matches('"').to_owned())
    };
    let ids =
        format!("{} {}", value("ID=").unwrap_or_default(), value("ID_LIKE=").unwrap_or_default());
    ids.split_whitespace().find_map(|id| {
        // openSUSE has an id for each edition, as in opensuse-leap.
        let stem = id.split('-').next().unwrap_or(id);
        let known = FAMILIES.iter().find(|(_, names, _)| names.contains(&stem));
        known.map(|(family, _, command)| (*family, *command))
    })
}

fn privilege(host: &dyn Host) -> Lack {
    (!host.is_root()).then(|| ("not root".to_owned(), "run as root".to_owned()))
}

/// The first line with a digit that the tools print: some begin with an empty one.
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
