//! From what a user named to a kernel.
//!
//! A text enters ([`Finder::find`]), a [`Kernel`] leaves. What to call a kernel is looked up here,
//! what files are is asked of the other modules.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Seek as _},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use super::{
    Architecture, Cache, Kernel, Named, archive, boot, built,
    cache::{self, Card},
    elf, package,
    source::{Packing, Source},
    version::{is_meant, newness},
};
use crate::GuestError;

/// Bytes by which kinds of files are told apart.
const FIRST: usize = 0x400;
/// What names a kernel.
const CURE: &str = "name a version that is installed, or the path of a kernel package (.deb), vmlinuz, \
                    or vmlinux";
/// What gets a kernel.
const DOWNLOAD: &str = "`apt-get download linux-image-VERSION-amd64-unsigned` downloads a package \
                        without root";
/// What names a user-mode Linux.
const UML_CURE: &str = "install the package user-mode-linux, build one (fslab guest kernel build), or \
                        name the path of the package or of the program linux.uml in it";

/// Finds one kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finder<'a> {
    /// The root of what is installed.
    pub(crate) root: &'a Path,
    /// Where programs are, as in `PATH`.
    pub(crate) path: &'a OsStr,
    /// What the kernel has to be for.
    pub(crate) architecture: Architecture,
    /// Where to unpack.
    pub(crate) cache: &'a Cache,
    /// Set by whoever wants to stop.
    pub(crate) interrupt: &'a AtomicBool,
}

/// What a file is.
enum Kind {
    /// A Debian package, or a tar archive.
    Package,
    /// A boot image.
    Boot,
    /// An ELF file.
    Elf,
}

impl Finder<'_> {
    pub(crate) fn find(self, named: Named<'_>) -> Result<Kernel, GuestError> {
        let wanted = match named {
            Named::Newest => None,
            Named::Text(text) => {
                let number = text.starts_with(|first: char| first.is_ascii_digit());
                if !number || !elf::is_release(text) || Path::new(text).exists() {
                    return self.at(text);
                }
                Some(text)
            }
        };
        match self.architecture {
            Architecture::Pc => self.installed(wanted),
            Architecture::Uml => match built::newest(self.cache, wanted) {
                Some(built) => self.image(&built.image, built.modules.as_deref(), &built.origin),
                None => self.on_path(wanted),
            },
        }
    }

    /// The newest kernel that is meant, of those that are installed and of packages that were
    /// unpacked before.
    fn installed(self, wanted: Option<&str>) -> Result<Kernel, GuestError> {
        let mut unreadable = Vec::new();
        let mut found: Vec<(String, PathBuf)> = Vec::new();
        for image in self.images() {
            let source = Source { path: &image, interrupt: self.interrupt };
            match source.open().and_then(|file| boot::Header::read(source, &file)) {
                Ok(header) if wanted.is_none_or(|wanted| is_meant(wanted, &header.release)) => {
                    found.push((header.release, image));
                }
                Err(GuestError::Io { source, .. })
                    if source.kind() == io::ErrorKind::PermissionDenied =>
                {
                    unreadable.push(image.display().to_string());
                }
                Err(GuestError::Interrupted) => return Err(GuestError::Interrupted),
                // Something else lies there, or another version.
                Ok(_) | Err(_) => {}
            }
        }
        let exact = |release: &str| wanted == Some(release);
        let newest = |one: &str, other: &str| {
            (exact(one), newness(one)).cmp(&(exact(other), newness(other)))
        };
        let installed = found.iter().max_by(|one, other| newest(&one.0, &other.0));
        let kept = self.cache.cards().into_iter().filter(|(_, card)| {
            card.is_package()
                && card.architecture == self.architecture.name()
                && wanted.is_none_or(|wanted| is_meant(wanted, &card.release))
        });
        let kept = kept.max_by(|one, other| newest(&one.1.release, &other.1.release));
        match (installed, kept) {
            (Some((release, image)), kept)
                if kept.as_ref().is_none_or(|(_, card)| newest(release, &card.release).is_ge()) =>
            {
                return self.image(image, None, &image.display().to_string());
            }
            // Directories of the cache are named by the hash of the package.
            (_, Some((folder, card))) => {
                let hash = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
                return Ok(self.unpacked(hash, &folder, card));
            }
            (_, None) => {}
        }
        let which = wanted.map_or_else(String::new, |wanted| format!(" {wanted}"));
        let mut what = format!("no kernel{which} is installed that can be read");
        let mut cure = format!("{CURE}; {DOWNLOAD}");
        if !unreadable.is_empty() {
            let unreadable = unreadable.join(", ");
            what = format!("{what} ({unreadable}: only root may)");
            cure = format!("{cure}; `chmod a+r` makes an installed kernel readable");
        }
        Err(GuestError::Missing { what, cure })
    }

    /// Where images of installed kernels may be.
    pub(super) fn images(self) -> Vec<PathBuf> {
        let list = |folder: &str| -> Vec<PathBuf> {
            let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
            entries.map(|entry| entry.path()).collect()
        };
        let named = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz"))
        };
        let mut images: Vec<_> = list("boot").into_iter().filter(named).collect();
        for folder in ["usr/lib/modules", "lib/modules"] {
            images.extend(list(folder).iter().map(|release| release.join("vmlinuz")));
        }
        images.retain(|image| image.exists());
        images.sort();
        images
    }

    /// The program of user-mode Linux that is on `PATH`.
    pub(super) fn program(self) -> Option<PathBuf> {
        let mut folders = std::env::split_paths(self.path);
        folders.find_map(|folder| {
            let program = folder.join("linux.uml");
            (folder.is_absolute() && program.is_file()).then_some(program)
        })
    }

    /// The installed user-mode Linux.
    fn on_path(self, wanted: Option<&str>) -> Result<Kernel, GuestError> {
        let missing = |what| GuestError::Missing { what, cure: UML_CURE.to_owned() };
        let program =
            self.program().ok_or_else(|| missing("there is no linux.uml on PATH".to_owned()))?;
        let kernel = self.image(&program, None, &program.display().to_string())?;
        match wanted {
            Some(wanted) if !is_meant(wanted, &kernel.release) => {
                let (program, release) = (program.display(), kernel.release);
                Err(missing(format!("{program} is a user-mode Linux {release}, not {wanted}")))
            }
            Some(_) | None => Ok(kernel),
        }
    }

    /// What lies at a path, with `:MODULES` or not.
    fn at(self, text: &str) -> Result<Kernel, GuestError> {
        let (path, modules) = match text.rsplit_once(':') {
            Some((path, modules)) if !Path::new(text).exists() => (path, Some(Path::new(modules))),
            Some(_) | None => (text, None),
        };
        let path = Path::new(path);
        if !path.exists() {
            let what = format!("there is no {}", path.display());
            let cure = match self.architecture {
                Architecture::Pc => CURE,
                Architecture::Uml => UML_CURE,
            };
            return Err(GuestError::Missing { what, cure: cure.to_owned() });
        }
        let source = Source { path, interrupt: self.interrupt };
        match kind(source, &source.open()?)? {
            Kind::Boot | Kind::Elf => self.image(path, modules, text),
            Kind::Package => {
                let (hash, folder, card) = self.package(path)?;
                if card.architecture.is_empty() {
                    return Err(source.malformed(
                        "holds no kernel; of a package that only names others, get the one it \
                         names (linux-image-VERSION), and name one of modules behind a kernel: \
                         KERNEL:MODULES",
                    ));
                }
                if card.architecture != self.architecture.name() {
                    let wanted = self.architecture.phrase();
                    return Err(
                        source.malformed(format!("holds another kind of kernel than {wanted}"))
                    );
                }
                let named = modules.map(|modules| self.modules(modules, &card.release));
                let kernel = self.unpacked(hash, &folder, card);
                let modules = named.transpose()?.or(kernel.modules);
                Ok(Kernel { origin: text.to_owned(), modules, ..kernel })
            }
        }
    }

    /// The kernel of a package, from the directory into which it was unpacked.
    fn unpacked(self, hash: String, folder: &Path, card: Card) -> Kernel {
        Kernel {
            architecture: self.architecture,
            origin: card.origin,
            hash,
            image: folder.join(&card.image),
            modules: (!card.modules.is_empty()).then(|| folder.join(&card.modules)),
            release: card.release,
        }
    }

    /// A kernel from its image.
    fn image(
        self,
        path: &Path,
        modules: Option<&Path>,
        origin: &str,
    ) -> Result<Kernel, GuestError> {
        // Links are followed first: modules are looked for beside the image itself.
        let reading = || GuestError::io(format!("reading {}", path.display()));
        let path = fs::canonicalize(path).map_err(reading())?;
        let source = Source { path: &path, interrupt: self.interrupt };
        let file = source.open()?;
        let hash = cache::hash(source, &file)?;
        let (found, release, image) = match kind(source, &file)? {
            Kind::Elf => {
                let (found, release) = examine(source, &file)?;
                (found, release, path.clone())
            }
            Kind::Boot => {
                let (folder, card) = self.cache.folder(&hash, |folder| {
                    tracing::info!("unpacking {}", path.display());
                    let (release, image) = extract(source, &file, folder)?;
                    let architecture = Architecture::Pc.name().to_owned();
                    let image = image.unwrap_or_default().to_owned();
                    Ok(Card { release, architecture, image, ..Card::default() })
                })?;
                let image =
                    if card.image.is_empty() { path.clone() } else { folder.join(card.image) };
                (Architecture::Pc, card.release, image)
            }
            Kind::Package => return Err(source.malformed("is a package now; it was an image")),
        };
        if found != self.architecture {
            let (is, wanted) = (found.phrase(), self.architecture.phrase());
            return Err(source.malformed(format!("is {is}, and {wanted} is needed")));
        }
        let modules = match modules {
            Some(modules) => Some(self.modules(modules, &release)?),
            None => beside(&path, &release),
        };
        let (architecture, origin) = (found, origin.to_owned());
        Ok(Kernel { release, architecture, origin, hash, image, modules })
    }

    /// The modules of a release that a user named: a folder, or a package.
    fn modules(self, path: &Path, release: &str) -> Result<PathBuf, GuestError> {
        let source = Source { path, interrupt: self.interrupt };
        if path.is_file() {
            let (_, folder, card) = self.package(path)?;
            if card.modules.is_empty() || card.release != release {
                return Err(source.malformed(format!("holds no modules of {release}")));
            }
            return Ok(folder.join(card.modules));
        }
        let path = std::path::absolute(path)
            .map_err(GuestError::io(format!("reading {}", path.display())))?;
        let folders = [path.clone(), path.join(release), path.join("lib/modules").join(release)];
        let found = folders.into_iter().find(|folder| {
            ["kernel", "modules.builtin", "modules.order", "modules.dep"]
                .iter()
                .any(|name| folder.join(name).exists())
        });
        found.ok_or_else(|| {
            source.malformed(format!("is no folder of modules; name lib/modules/{release}"))
        })
    }

    /// Unpacks a package, or finds it unpacked. Its hash, folder, and card.
    fn package(self, path: &Path) -> Result<(String, PathBuf, Card), GuestError> {
        let source = Source { path, interrupt: self.interrupt };
        let mut file = source.open()?;
        let Kind::Package = kind(source, &file)? else {
            return Err(source.malformed("is no package"));
        };
        let hash = cache::hash(source, &file)?;
        let (folder, card) = self.cache.folder(&hash, |folder| {
            tracing::info!("unpacking {}; this takes a few seconds, and only once", path.display());
            file.rewind().map_err(|error| source.failed(error))?;
            let contents = package::unpack(source, &mut file, folder)?;
            tracing::info!("unpacked {} files, {} bytes", contents.files, contents.bytes);
            let origin = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok(Card { origin, ..card(source, &contents, folder)? })
        })?;
        Ok((hash, folder, card))
    }
}

/// What a file is, by its first bytes.
fn kind(source: Source<'_>, file: &File) -> Result<Kind, GuestError> {
    let mut first = [0; FIRST];
    let read = file.read_at(&mut first, 0).map_err(|error| source.failed(error))?;
    let first = &first[..read];
    if first.starts_with(archive::RPM) {
        return Err(source.malformed(
            "is an RPM package, which is not read; unpack it (rpm2cpio PACKAGE | cpio -idm) and \
             name the vmlinuz in it, in lib/modules/RELEASE or in boot",
        ));
    }
    if first.starts_with(&elf::MAGIC) {
        return Ok(Kind::Elf);
    }
    if boot::Header::is_at(first) {
        return Ok(Kind::Boot);
    }
    let packed = Packing::of(first) != Packing::None;
    if first.starts_with(archive::AR) || archive::is_tar(first) || packed {
        return Ok(Kind::Package);
    }
    Err(source.malformed(format!("is nothing that a kernel for x86-64 comes in; {CURE}")))
}

/// What an ELF file was built for, and its release.
pub(crate) fn examine(
    source: Source<'_>,
    file: &File,
) -> Result<(Architecture, String), GuestError> {
    let architecture = match elf::examine(file).map_err(|why| source.malformed(why))? {
        elf::Built::Uml => Architecture::Uml,
        elf::Built::Pc { pvh: true } => Architecture::Pc,
        elf::Built::Pc { pvh: false } => {
            return Err(source.malformed(
                "has no entry for virtual machines; name its bzImage, or build it with CONFIG_PVH",
            ));
        }
    };
    let mut stream = file;
    stream.rewind().map_err(|error| source.failed(error))?;
    let mut stream = source.watched(stream, u64::MAX);
    let release = elf::release(&mut stream).map_err(|error| source.failed(error))?;
    let release = release.ok_or_else(|| {
        source.malformed("does not say which release it is; was it stripped of its data?")
    })?;
    Ok((architecture, release))
}

/// Unpacks a boot image into a folder. Its release, and the name of what a machine can enter; none
/// if that is the boot image alone.
fn extract(
    source: Source<'_>,
    file: &File,
    folder: &Path,
) -> Result<(String, Option<&'static str>), GuestError> {
    const NAME: &str = "vmlinux";
    let header = boot::Header::read(source, file)?;
    let to = folder.join(NAME);
    header.extract(source, file, &to)?;
    let vmlinux = Source { path: &to, ..source }.open()?;
    match elf::examine(&vmlinux) {
        Ok(elf::Built::Pc { pvh: true }) => Ok((header.release, Some(NAME))),
        Ok(elf::Built::Pc { pvh: false }) => {
            tracing::info!("{} will be unpacked by each guest: no CONFIG_PVH", header.release);
            fs::remove_file(&to).map_err(GuestError::io(format!("removing {}", to.display())))?;
            Ok((header.release, None))
        }
        Ok(elf::Built::Uml) => Err(source.malformed("holds a program instead of a kernel")),
        Err(why) => Err(source.malformed(format!("holds a kernel that {why}"))),
    }
}

/// Decides what of an unpacked package is booted, and removes what is not.
fn card(
    source: Source<'_>,
    contents: &package::Contents,
    folder: &Path,
) -> Result<Card, GuestError> {
    let name = |path: &Path| {
        path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    };
    let remove = |path: &PathBuf| {
        fs::remove_file(path).map_err(GuestError::io(format!("removing {}", path.display())))
    };
    let mut card = Card::default();
    for program in &contents.programs {
        let own = Source { path: program, ..source };
        match elf::examine(&own.open()?) {
            Ok(elf::Built::Uml) if card.image.is_empty() => {
                let (architecture, release) = examine(own, &own.open()?).map_err(within(source))?;
                card.architecture = architecture.name().to_owned();
                card.release = release;
                card.image = name(program);
            }
            Ok(_) | Err(_) => remove(program)?,
        }
    }
    for (at, image) in contents.images.iter().enumerate() {
        if at > 0 || !card.image.is_empty() {
            remove(image)?;
            continue;
        }
        let own = Source { path: image, ..source };
        let file = own.open()?;
        card.architecture = Architecture::Pc.name().to_owned();
        card.image = name(image);
        card.release = match kind(own, &file).map_err(within(source))? {
            Kind::Elf => examine(own, &file).map_err(within(source))?.1,
            Kind::Boot => {
                let (release, vmlinux) = extract(own, &file, folder).map_err(within(source))?;
                if let Some(vmlinux) = vmlinux {
                    remove(image)?;
                    card.image = vmlinux.to_owned();
                }
                release
            }
            Kind::Package => return Err(source.malformed("holds a package instead of a kernel")),
        };
    }
    if card.image.is_empty()
        && let [release] = &contents.releases[..]
    {
        card.release.clone_from(release);
    }
    if contents.releases.contains(&card.release) {
        card.modules = format!("lib/modules/{}", card.release);
    }
    Ok(card)
}

/// What is wrong with a file that was unpacked is wrong with the package.
fn within(source: Source<'_>) -> impl Fn(GuestError) -> GuestError + Copy {
    move |error| {
        if let GuestError::Malformed { why, .. } = error {
            source.malformed(format!("holds a kernel that {why}"))
        } else {
            error
        }
    }
}

/// The modules that belong to an image by where it lies.
pub(super) fn beside(image: &Path, release: &str) -> Option<PathBuf> {
    let folder = image.parent()?;
    let above = folder.parent()?;
    if folder.ends_with(Path::new("modules").join(release)) {
        return Some(folder.to_owned());
    }
    let places: &[&str] = match folder.file_name()?.to_str()? {
        "boot" => &["lib/modules", "usr/lib/modules"],
        "bin" => &["lib/uml/modules"],
        _ => &[],
    };
    places.iter().map(|place| above.join(place).join(release)).find(|modules| modules.is_dir())
}

#[cfg(test)]
mod tests;
