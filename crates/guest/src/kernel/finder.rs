//! Selection of a kernel by a query ([`Finder::find`]). File formats are handled by other modules.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Seek as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use super::{
    Architecture, Cache, Kernel, KernelQuery, archive, boot, built,
    cache::{self, CacheManifest},
    elf, package,
    source::{Compression, Source},
    version::{ReleaseOrder, matches_release, release_order},
};
use crate::GuestError;

/// Size of the beginning of a file that identifies its type.
const BEGINNING: usize = 0x400;
/// Hint for selecting a kernel.
const HINT: &str =
    "use an installed version, or the path of a kernel package (.deb), vmlinuz, or vmlinux";
/// Hint for obtaining a kernel.
const DOWNLOAD: &str = "`apt-get download linux-image-VERSION-amd64-unsigned` downloads a package \
                        without root";
/// Hint for selecting a user-mode Linux kernel.
const UML_HINT: &str = "install the package user-mode-linux, build a kernel (fslab guest kernel \
                        build), or use the path of the package or of its program linux.uml";

/// Search for a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finder<'a> {
    /// Root directory of installed files.
    pub(crate) root: &'a Path,
    /// Search path of programs, as in `PATH`.
    pub(crate) path: &'a OsStr,
    /// Required architecture.
    pub(crate) architecture: Architecture,
    /// Cache for unpacked kernels.
    pub(crate) cache: &'a Cache,
    /// Flag that interrupts the search.
    pub(crate) interrupt: &'a AtomicBool,
}

/// Type of a file.
enum Kind {
    /// Debian package or tar archive.
    Package,
    /// Boot image.
    Boot,
    /// ELF file.
    Elf,
}

impl Finder<'_> {
    pub(crate) fn find(self, query: KernelQuery<'_>) -> Result<Kernel, GuestError> {
        let wanted = match query {
            KernelQuery::Newest => None,
            KernelQuery::Text(text) => {
                let number = text.starts_with(|first: char| first.is_ascii_digit());
                if !number || !elf::is_release(text) || Path::new(text).exists() {
                    return self.at_path(text);
                }
                Some(text)
            }
        };
        match self.architecture {
            Architecture::Pc => self.installed(wanted),
            Architecture::Uml => match built::newest(self.cache, wanted) {
                Some(built) => self.image(&built.image, built.modules.as_deref(), &built.origin),
                None => self.on_path(wanted).or_else(|error| match self.newest_unpacked(wanted) {
                    Some((directory, manifest)) => Ok(self.unpacked(&directory, manifest)),
                    None => Err(error),
                }),
            },
        }
    }

    /// The newest matching kernel of the unpacked packages. An exact match comes first.
    fn newest_unpacked(self, wanted: Option<&str>) -> Option<(PathBuf, CacheManifest)> {
        let packages = self.cache.manifests().into_iter().filter(|(_, manifest)| {
            manifest.is_package()
                && manifest.architecture == self.architecture.name()
                && wanted.is_none_or(|wanted| matches_release(wanted, &manifest.release))
        });
        packages.max_by(|(_, one), (_, other)| {
            by_age(wanted, &one.release).cmp(&by_age(wanted, &other.release))
        })
    }

    /// The newest matching kernel of those that are installed and of unpacked packages.
    fn installed(self, wanted: Option<&str>) -> Result<Kernel, GuestError> {
        let mut unreadable = Vec::new();
        let mut found: Vec<(String, PathBuf)> = Vec::new();
        for image in self.images() {
            let source = Source { path: &image, interrupt: self.interrupt };
            match source.open().and_then(|file| boot::Header::read(source, &file)) {
                Ok(header)
                    if wanted.is_none_or(|wanted| matches_release(wanted, &header.release)) =>
                {
                    found.push((header.release, image));
                }
                Err(GuestError::Io { source, .. })
                    if source.kind() == io::ErrorKind::PermissionDenied =>
                {
                    unreadable.push(image.display().to_string());
                }
                Err(GuestError::Interrupted) => return Err(GuestError::Interrupted),
                // Not a boot image, or another version.
                Ok(_) | Err(_) => {}
            }
        }
        let newest = |one: &str, other: &str| by_age(wanted, one).cmp(&by_age(wanted, other));
        let installed = found.iter().max_by(|one, other| newest(&one.0, &other.0));
        let cached = self.newest_unpacked(wanted);
        match (installed, cached) {
            (Some((release, image)), cached)
                if cached
                    .as_ref()
                    .is_none_or(|(_, manifest)| newest(release, &manifest.release).is_ge()) =>
            {
                return self.image(image, None, &image.display().to_string());
            }
            (_, Some((directory, manifest))) => return Ok(self.unpacked(&directory, manifest)),
            (_, None) => {}
        }
        let which = wanted.map_or_else(String::new, |wanted| format!(" {wanted}"));
        let mut what = format!("no readable kernel{which} is installed");
        let mut hint = format!("{HINT}; {DOWNLOAD}");
        if !unreadable.is_empty() {
            let unreadable = unreadable.join(", ");
            what = format!("{what} (only root can read {unreadable})");
            hint = format!("{hint}; `chmod a+r` makes an installed kernel readable");
        }
        Err(GuestError::Missing { what, hint })
    }

    /// Images of installed kernels.
    pub(super) fn images(self) -> Vec<PathBuf> {
        let list = |directory: &str| -> Vec<PathBuf> {
            let entries = fs::read_dir(self.root.join(directory)).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect()
        };
        let named = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
        };
        let mut images: Vec<_> = list("boot").into_iter().filter(named).collect();
        for directory in ["usr/lib/modules", "lib/modules"] {
            images.extend(list(directory).iter().map(|release| release.join("vmlinuz")));
        }
        images.retain(|image| image.exists());
        images.sort();
        images
    }

    /// User-mode Linux program on `PATH`.
    pub(super) fn program(self) -> Option<PathBuf> {
        let mut directories = std::env::split_paths(self.path);
        directories.find_map(|directory| {
            let program = directory.join("linux.uml");
            (directory.is_absolute() && program.is_file()).then_some(program)
        })
    }

    /// Installed user-mode Linux.
    fn on_path(self, wanted: Option<&str>) -> Result<Kernel, GuestError> {
        let missing = |what| GuestError::Missing { what, hint: UML_HINT.to_owned() };
        let program =
            self.program().ok_or_else(|| missing("linux.uml is not on PATH".to_owned()))?;
        let kernel = self.image(&program, None, &program.display().to_string())?;
        match wanted {
            Some(wanted) if !matches_release(wanted, &kernel.release) => {
                let (program, release) = (program.display(), kernel.release);
                Err(missing(format!("{program} is a user-mode Linux {release}, not {wanted}")))
            }
            Some(_) | None => Ok(kernel),
        }
    }

    /// Kernel at a path with an optional `:MODULES`.
    fn at_path(self, text: &str) -> Result<Kernel, GuestError> {
        let (path, modules) = match text.rsplit_once(':') {
            Some((path, modules)) if !Path::new(text).exists() => (path, Some(Path::new(modules))),
            Some(_) | None => (text, None),
        };
        let path = Path::new(path);
        if !path.exists() {
            let what = format!("{} does not exist", path.display());
            let hint = match self.architecture {
                Architecture::Pc => HINT,
                Architecture::Uml => UML_HINT,
            };
            return Err(GuestError::Missing { what, hint: hint.to_owned() });
        }
        let source = Source { path, interrupt: self.interrupt };
        match kind(source, &source.open()?)? {
            Kind::Boot | Kind::Elf => self.image(path, modules, text),
            Kind::Package => {
                let (directory, manifest) = self.package(path)?;
                if manifest.architecture.is_empty() {
                    return Err(source.malformed(
                        "contains no kernel; for a metapackage, use the package that it depends on \
                         (linux-image-VERSION); for a package of modules, use KERNEL:MODULES",
                    ));
                }
                if manifest.architecture != self.architecture.name() {
                    let wanted = self.architecture.description();
                    return Err(source
                        .malformed(format!("contains a kernel of another kind than {wanted}")));
                }
                let named = modules.map(|modules| self.modules(modules, &manifest.release));
                let kernel = self.unpacked(&directory, manifest);
                let modules = named.transpose()?.or(kernel.modules);
                Ok(Kernel { origin: text.to_owned(), modules, ..kernel })
            }
        }
    }

    /// Kernel of a package, from the directory with the unpacked files, which is named by the hash
    /// of the package.
    fn unpacked(self, directory: &Path, manifest: CacheManifest) -> Kernel {
        let hash = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Kernel {
            architecture: self.architecture,
            origin: manifest.origin,
            hash,
            image: directory.join(&manifest.image),
            modules: (!manifest.modules.is_empty()).then(|| directory.join(&manifest.modules)),
            release: manifest.release,
        }
    }

    /// Kernel of an image.
    fn image(
        self,
        path: &Path,
        modules: Option<&Path>,
        origin: &str,
    ) -> Result<Kernel, GuestError> {
        // Links are resolved first, because modules are searched relative to the image itself.
        let context = || GuestError::io(format!("cannot read {}", path.display()));
        let path = fs::canonicalize(path).map_err(context())?;
        let source = Source { path: &path, interrupt: self.interrupt };
        let file = source.open()?;
        let hash = cache::hash(source, &file)?;
        let (found, release, image) = match kind(source, &file)? {
            Kind::Elf => {
                let (found, release) = examine(source, &file)?;
                (found, release, path.clone())
            }
            Kind::Boot => {
                let (directory, manifest) = self.cache.get_or_create(&hash, |directory| {
                    tracing::info!("unpacking {}", path.display());
                    let (release, image) = extract(source, &file, directory)?;
                    let architecture = Architecture::Pc.name().to_owned();
                    let image = image.unwrap_or_default().to_owned();
                    Ok(CacheManifest { release, architecture, image, ..CacheManifest::default() })
                })?;
                let image = if manifest.image.is_empty() {
                    path.clone()
                } else {
                    directory.join(manifest.image)
                };
                (Architecture::Pc, manifest.release, image)
            }
            Kind::Package => return Err(source.malformed("changed from an image to a package")),
        };
        if found != self.architecture {
            let (is, wanted) = (found.description(), self.architecture.description());
            return Err(source.malformed(format!("is {is}, but {wanted} is required")));
        }
        let modules = match modules {
            Some(modules) => Some(self.modules(modules, &release)?),
            None => modules_next_to(&path, &release),
        };
        let (architecture, origin) = (found, origin.to_owned());
        Ok(Kernel { release, architecture, origin, hash, image, modules })
    }

    /// Modules of a release at a path: a directory or a package.
    fn modules(self, path: &Path, release: &str) -> Result<PathBuf, GuestError> {
        let source = Source { path, interrupt: self.interrupt };
        if path.is_file() {
            let (directory, manifest) = self.package(path)?;
            if manifest.modules.is_empty() || manifest.release != release {
                return Err(source.malformed(format!("contains no modules of {release}")));
            }
            return Ok(directory.join(manifest.modules));
        }
        let path = std::path::absolute(path)
            .map_err(GuestError::io(format!("cannot read {}", path.display())))?;
        let directories =
            [path.clone(), path.join(release), path.join("lib/modules").join(release)];
        let found = directories.into_iter().find(|directory| {
            ["kernel", "modules.builtin", "modules.order", "modules.dep"]
                .iter()
                .any(|name| directory.join(name).exists())
        });
        found.ok_or_else(|| {
            source.malformed(format!("is not a directory of modules; use lib/modules/{release}"))
        })
    }

    /// Unpacks a package, unless it is cached. Returns its directory and manifest.
    fn package(self, path: &Path) -> Result<(PathBuf, CacheManifest), GuestError> {
        let source = Source { path, interrupt: self.interrupt };
        let mut file = source.open()?;
        let Kind::Package = kind(source, &file)? else {
            return Err(source.malformed("is not a package"));
        };
        let hash = cache::hash(source, &file)?;
        self.cache.get_or_create(&hash, |directory| {
            tracing::info!("unpacking {}; this takes a few seconds, and only once", path.display());
            file.rewind().map_err(|error| source.failed(error))?;
            let contents = package::unpack(source, &mut file, directory)?;
            tracing::info!("unpacked {} files, {} bytes", contents.files, contents.bytes);
            let origin = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(CacheManifest { origin, ..manifest(source, &contents, directory)? })
        })
    }
}

/// Sort key of a release. An exact match of the query sorts last; other releases sort from oldest
/// to newest.
fn by_age<'a>(wanted: Option<&str>, release: &'a str) -> (bool, ReleaseOrder<'a>) {
    (wanted == Some(release), release_order(release))
}

/// Determines the type of a file from its beginning.
fn kind(source: Source<'_>, file: &File) -> Result<Kind, GuestError> {
    let mut first = [0; BEGINNING];
    let read = file.read_at(&mut first, 0).map_err(|error| source.failed(error))?;
    let first = &first[..read];
    if first.starts_with(archive::RPM) {
        return Err(source.malformed(
            "is an RPM package, which is not supported; unpack it (rpm2cpio PACKAGE | cpio -idm) \
             and use the vmlinuz in lib/modules/RELEASE or boot",
        ));
    }
    if first.starts_with(&elf::MAGIC) {
        return Ok(Kind::Elf);
    }
    if boot::Header::is_at(first) {
        return Ok(Kind::Boot);
    }
    let packed = Compression::of(first) != Compression::None;
    if first.starts_with(archive::AR) || archive::is_tar(first) || packed {
        return Ok(Kind::Package);
    }
    Err(source.malformed(format!("is not a kernel or kernel package for x86-64; {HINT}")))
}

/// Architecture and release of an ELF file.
pub(crate) fn examine(
    source: Source<'_>,
    file: &File,
) -> Result<(Architecture, String), GuestError> {
    let architecture = match elf::examine(file).map_err(|why| source.malformed(why))? {
        elf::ElfKind::Uml => Architecture::Uml,
        elf::ElfKind::Pc { pvh: true } => Architecture::Pc,
        elf::ElfKind::Pc { pvh: false } => {
            return Err(source.malformed(
                "has no entry for virtual machines; use its bzImage, or build it with CONFIG_PVH",
            ));
        }
    };
    let mut stream = file;
    stream.rewind().map_err(|error| source.failed(error))?;
    let mut stream = source.watched(stream, u64::MAX);
    let release = elf::release(&mut stream).map_err(|error| source.failed(error))?;
    let release = release.ok_or_else(|| {
        source.malformed("contains no release; it may have been stripped of its data")
    })?;
    Ok((architecture, release))
}

/// Extracts a boot image into a directory. Returns its release and the name of the extracted file.
/// The name is `None` if only the boot image itself can be booted.
fn extract(
    source: Source<'_>,
    file: &File,
    directory: &Path,
) -> Result<(String, Option<&'static str>), GuestError> {
    const NAME: &str = "vmlinux";
    let header = boot::Header::read(source, file)?;
    let to = directory.join(NAME);
    header.extract(source, file, &to)?;
    let vmlinux = Source { path: &to, ..source }.open()?;
    match elf::examine(&vmlinux) {
        Ok(elf::ElfKind::Pc { pvh: true }) => Ok((header.release, Some(NAME))),
        Ok(elf::ElfKind::Pc { pvh: false }) => {
            tracing::info!("each guest decompresses {} itself: no CONFIG_PVH", header.release);
            fs::remove_file(&to)
                .map_err(GuestError::io(format!("cannot remove {}", to.display())))?;
            Ok((header.release, None))
        }
        Ok(elf::ElfKind::Uml) => Err(source.malformed("contains a program instead of a kernel")),
        Err(why) => Err(source.malformed(format!("contains a kernel that {why}"))),
    }
}

/// Selects the image or program of an unpacked package to boot, and removes the others.
fn manifest(
    source: Source<'_>,
    contents: &package::Contents,
    directory: &Path,
) -> Result<CacheManifest, GuestError> {
    let name = |path: &Path| {
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let remove = |path: &PathBuf| {
        fs::remove_file(path).map_err(GuestError::io(format!("cannot remove {}", path.display())))
    };
    let mut manifest = CacheManifest::default();
    for program in &contents.programs {
        let own = Source { path: program, ..source };
        match elf::examine(&own.open()?) {
            Ok(elf::ElfKind::Uml) if manifest.image.is_empty() => {
                let (architecture, release) = examine(own, &own.open()?).map_err(within(source))?;
                manifest.architecture = architecture.name().to_owned();
                manifest.release = release;
                manifest.image = name(program);
            }
            Ok(_) | Err(_) => remove(program)?,
        }
    }
    for (at, image) in contents.images.iter().enumerate() {
        if at > 0 || !manifest.image.is_empty() {
            remove(image)?;
            continue;
        }
        let own = Source { path: image, ..source };
        let file = own.open()?;
        manifest.architecture = Architecture::Pc.name().to_owned();
        manifest.image = name(image);
        manifest.release = match kind(own, &file).map_err(within(source))? {
            Kind::Elf => examine(own, &file).map_err(within(source))?.1,
            Kind::Boot => {
                let (release, vmlinux) = extract(own, &file, directory).map_err(within(source))?;
                if let Some(vmlinux) = vmlinux {
                    remove(image)?;
                    manifest.image = vmlinux.to_owned();
                }
                release
            }
            Kind::Package => return Err(source.malformed("contains a package instead of a kernel")),
        };
    }
    if manifest.image.is_empty()
        && let [release] = &contents.releases[..]
    {
        manifest.release.clone_from(release);
    }
    if contents.releases.contains(&manifest.release) {
        manifest.modules = format!("lib/modules/{}", manifest.release);
    }
    Ok(manifest)
}

/// Reports a defect of an unpacked file as a defect of the package.
fn within(source: Source<'_>) -> impl Fn(GuestError) -> GuestError + Copy {
    move |error| {
        if let GuestError::Malformed { why, .. } = error {
            source.malformed(format!("contains a kernel that {why}"))
        } else {
            error
        }
    }
}

/// Directory of the modules of an image, derived from the path of the image.
pub(super) fn modules_next_to(image: &Path, release: &str) -> Option<PathBuf> {
    let directory = image.parent()?;
    let above = directory.parent()?;
    if directory.ends_with(Path::new("modules").join(release)) {
        return Some(directory.to_owned());
    }
    let places: &[&str] = match directory.file_name()?.to_str()? {
        "boot" => &["lib/modules", "usr/lib/modules"],
        "bin" => &["lib/uml/modules"],
        _ => &[],
    };
    places.iter().map(|place| above.join(place).join(release)).find(|modules| modules.is_dir())
}

#[cfg(test)]
mod tests;
