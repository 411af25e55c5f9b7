//! Checks whether this machine supports a filesystem, with hints if something is missing.
//!
//! The checks change nothing. In particular, they do not load modules; the kernel loads the module
//! of a filesystem when it is mounted.

use std::path::Path;

use model::{FilesystemLevel, SetupStep};

use crate::{
    catalog::{Catalog, CatalogError, Filesystem, Kind},
    host::Host,
    layers,
    missing::{Availability, Missing, install, loadable},
};

impl Catalog {
    /// Checks that the kernel supports the filesystem, that its tools are installed, and that the
    /// user is root. A filesystem of kind [`Kind::Directory`] is always available, and one of kind
    /// [`Kind::Device`] requires root only.
    pub fn availability(&self, filesystem: &Filesystem, host: &dyn Host) -> Availability {
        if filesystem.kind == Kind::Directory {
            return Availability::Usable { version: None };
        }
        let kernel = kernel(filesystem, host).filter(|_| filesystem.kind != Kind::Device);
        let missing: Vec<_> = [kernel, tools(filesystem, host)].into_iter().flatten().collect();
        let available_to_root = missing.is_empty();
        // Every user may mount FUSE filesystems (fusermount3(1)).
        let user_mounts = filesystem.kind == Kind::Command && is_fuse(&filesystem.fstype);
        let missing: Vec<_> =
            missing.into_iter().chain(privilege(host).filter(|_| !user_mounts)).collect();
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

    /// Missing programs of a filesystem, and the command that installs them; `None` if all are
    /// installed. The support of the kernel is not checked: this method is for guests, which have
    /// their own kernel.
    pub fn missing_tools(
        &self,
        filesystem: &Filesystem,
        host: &dyn Host,
    ) -> Option<(String, String)> {
        tools(filesystem, host)
    }

    /// Availability of a filesystem level, that is, of an entry of `filesystem` in a plan. In
    /// addition to [`Self::availability`] of its type, this checks the type after a conversion, the
    /// layers, and the programs of `setup`. The result contains the version of the tools of the
    /// original type.
    ///
    /// # Errors
    /// [`CatalogError::Unknown`] for an unknown filesystem type.
    pub fn level(
        &self,
        level: &FilesystemLevel,
        host: &dyn Host,
    ) -> Result<Availability, CatalogError> {
        let converted = level.converted_to.as_deref().map(|name| self.get(name)).transpose()?;
        let answer = self.availability(&mounted_as(self.get(&level.fs_type)?, level), host);
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

    /// [`Self::level`] for a guest, which has the programs of this host but its own kernel: only
    /// programs are checked.
    ///
    /// # Errors
    /// [`CatalogError::Unknown`] for an unknown filesystem type.
    pub fn level_in_guest(
        &self,
        level: &FilesystemLevel,
        host: &dyn Host,
    ) -> Result<Availability, CatalogError> {
        let converted = level.converted_to.as_deref().map(|name| self.get(name)).transpose()?;
        let types = [Some(self.get(&level.fs_type)?), converted].into_iter().flatten();
        let missing = types.map(|filesystem| tools(filesystem, host));
        let missing: Vec<_> = missing.chain([self.programs(level, host)]).flatten().collect();
        if missing.is_empty() {
            return Ok(Availability::Usable { version: None });
        }
        let (reasons, hints): (Vec<_>, Vec<_>) = missing.into_iter().unzip();
        Ok(Availability::Missing {
            reason: once(&reasons).join("; "),
            hint: once(&hints).join("; "),
            available_to_root: false,
        })
    }

    /// Missing programs of `setup`, and the commands that install them.
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

/// Filesystem type with the mount command and the mounted type of a level.
fn mounted_as(filesystem: &Filesystem, level: &FilesystemLevel) -> Filesystem {
    let commands = &level.commands;
    let mut mounted = filesystem.clone();
    if !commands.mount.is_empty() {
        mounted.mount_command.clone_from(&commands.mount);
        mounted.helpers.clear();
    }
    if !commands.umount.is_empty() {
        mounted.umount_command.clone_from(&commands.umount);
    }
    if !commands.mounted_type.is_empty() {
        mounted.fstype.clone_from(&commands.mounted_type);
    }
    mounted
}

/// True for the types of FUSE filesystems in mountinfo: `fuse`, `fuse.sshfs`, `fuseblk`.
fn is_fuse(fstype: &str) -> bool {
    fstype == "fuseblk" || fstype.split('.').next() == Some("fuse")
}

fn kernel(filesystem: &Filesystem, host: &dyn Host) -> Missing {
    // A FUSE filesystem has its name after a dot.
    let fstype = filesystem.fstype.split('.').next().unwrap_or_default();
    let table = host.read(Path::new("/proc/filesystems")).unwrap_or_default();
    let known = table.lines().any(|line| line.split_whitespace().next_back() == Some(fstype));
    // The kernel requests a filesystem module by this alias (`get_fs_type` in fs/filesystems.c).
    if known || loadable(&format!("fs-{fstype}"), fstype, host) {
        return None;
    }
    let release = host.read(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
    let range = match filesystem.kernel.describe() {
        range if range.is_empty() => range,
        range => format!(" ({range})"),
    };
    let reason = format!("the running kernel {} does not support {fstype}", release.trim());
    // Guests measure filesystems on image files.
    let guest = match filesystem.kernel.since.is_some() && !filesystem.mkfs.is_empty() {
        true => ", or a guest with one (--guest auto)",
        false => "",
    };
    Some((reason.replace("  ", " "), format!("use a kernel that supports it{range}{guest}")))
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

/// Parts of the hints, separated at `; `, without duplicates and in order.
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

fn privilege(host: &dyn Host) -> Missing {
    (!host.is_root()).then(|| ("not root".to_owned(), "run as root".to_owned()))
}

/// Version of the tools: the first line of the output that contains a digit, because some tools
/// print an empty line first.
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
