//! List of the kernels that can be selected by version: installed, built by fslab, and from
//! unpacked packages.

use std::{
    cmp::Reverse,
    fs,
    path::{Path, PathBuf},
};

use model::Bytes;

use super::{
    Architecture, boot, built,
    finder::{Finder, examine, modules_next_to},
    source::Source,
    version::{matches_release, release_order},
};

/// Origin of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Installed, with the path of its image.
    Installed(PathBuf),
    /// Built by fslab, with a description of its source.
    Built(String),
    /// Unpacked from a package with this file name.
    Package(String),
}

/// Kernel that can be selected by version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownKernel {
    /// Release (`uname -r`).
    pub release: String,
    /// Architecture.
    pub architecture: Architecture,
    /// Origin.
    pub origin: Origin,
    /// Directory of the kernel's modules, or of its lists of built-in modules.
    pub modules: Option<PathBuf>,
    /// Size of the image and the modules.
    pub size: Bytes,
}

impl KnownKernel {
    /// True if a version or its prefix, as in [`super::KernelQuery::Text`], selects this kernel.
    pub fn matches(&self, version: &str) -> bool {
        matches_release(version, &self.release)
    }
}

/// See [`super::Kernel::known`].
pub(super) fn all(finder: Finder<'_>) -> Vec<KnownKernel> {
    let mut all = installed(finder);
    all.extend(user_mode_linux(finder));
    all.extend(packaged(finder));
    all.sort_by(|one, other| {
        let key = |known: &KnownKernel| known.architecture == Architecture::Pc;
        let newest =
            Reverse(release_order(&one.release)).cmp(&Reverse(release_order(&other.release)));
        key(one).cmp(&key(other)).then(newest)
    });
    all
}

/// Readable installed kernels for PCs.
fn installed(finder: Finder<'_>) -> Vec<KnownKernel> {
    let known = |image: PathBuf| {
        let source = Source { path: &image, interrupt: finder.interrupt };
        let file = source.open().ok()?;
        let header = boot::Header::read(source, &file).ok()?;
        let release = header.is_complete(&file).then_some(header.release)?;
        let real = fs::canonicalize(&image).ok()?;
        let modules = modules_next_to(&real, &release);
        let size = size(&real, modules.as_deref());
        let architecture = Architecture::Pc;
        Some(KnownKernel { release, architecture, origin: Origin::Installed(image), modules, size })
    };
    // An image is found twice if, for example, `/lib` is a link to `/usr/lib`.
    let mut seen = Vec::new();
    let first = |image: &PathBuf| {
        let real = fs::canonicalize(image).unwrap_or_else(|_| image.clone());
        let new = !seen.contains(&real);
        seen.push(real);
        new
    };
    finder.images().into_iter().filter(first).filter_map(known).collect()
}

/// User-mode Linux kernels that are built by fslab or installed.
fn user_mode_linux(finder: Finder<'_>) -> Vec<KnownKernel> {
    let architecture = Architecture::Uml;
    let mut all: Vec<KnownKernel> = built::all(finder.cache)
        .into_iter()
        .map(|built| KnownKernel {
            size: size(&built.image, built.modules.as_deref()),
            release: built.release,
            architecture,
            origin: Origin::Built(built.origin),
            modules: built.modules,
        })
        .collect();
    all.extend(finder.program().and_then(|program| {
        let real = fs::canonicalize(&program).ok()?;
        let source = Source { path: &real, interrupt: finder.interrupt };
        let (found, release) = examine(source, &source.open().ok()?).ok()?;
        let modules = modules_next_to(&real, &release);
        let size = size(&real, modules.as_deref());
        let origin = Origin::Installed(program);
        (found == architecture).then_some(KnownKernel {
            release,
            architecture,
            origin,
            modules,
            size,
        })
    }));
    all
}

/// Kernels of unpacked packages.
fn packaged(finder: Finder<'_>) -> Vec<KnownKernel> {
    let known = |(directory, manifest): (PathBuf, super::cache::CacheManifest)| {
        let architecture = [Architecture::Pc, Architecture::Uml]
            .into_iter()
            .find(|architecture| architecture.name() == manifest.architecture)?;
        if !manifest.is_package() {
            return None;
        }
        let modules = (!manifest.modules.is_empty()).then(|| directory.join(&manifest.modules));
        Some(KnownKernel {
            size: size(&directory.join(&manifest.image), modules.as_deref()),
            release: manifest.release,
            architecture,
            origin: Origin::Package(manifest.origin),
            modules,
        })
    };
    finder.cache.manifests().into_iter().filter_map(known).collect()
}

/// Size of an image and of the files in a modules directory.
fn size(image: &Path, modules: Option<&Path>) -> Bytes {
    let mut bytes = fs::metadata(image).map(|image| image.len()).unwrap_or_default();
    let mut directories: Vec<PathBuf> = modules.map(Path::to_owned).into_iter().collect();
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            // Links are not followed: `build` and `source` point to the kernel headers.
            let Ok(facts) = entry.metadata() else { continue };
            if facts.is_dir() {
                directories.push(entry.path());
            } else if facts.is_file() {
                bytes = bytes.saturating_add(facts.len());
            }
        }
    }
    Bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            KernelQuery,
            cache::CacheManifest,
            testing::{
                By, RELEASE, TestRoot, boot_image, deb, files, packed, tar, tar_of, uml, vmlinux,
            },
        },
        *,
    };

    #[test]
    fn known_kernels_are_listed_newest_first() {
        let place = TestRoot::new();
        assert_eq!(place.known(), []);
        place.write("usr/bin/linux.uml", &uml("6.1.176"));
        let installed = vmlinux("6.9.1", true);
        place.write("boot/vmlinuz-6.9.1", &boot_image("6.9.1", &installed, By::Xz));
        place.write("boot/vmlinuz-notes", b"no kernel");
        place.write("lib/modules/6.9.1/modules.builtin", b"12345");
        // A package is listed after it was unpacked. The extracted image of an installed kernel is
        // not listed twice.
        let package = place.write("linux-image.deb", &deb(&packed(&tar_of(&files()), By::Xz)));
        place.pc(&package).unwrap();
        place.pc("6.9.1").unwrap();
        let built = place.cache.get_or_create("key", |directory| {
            fs::write(directory.join("linux"), uml("6.12.9-fslab")).unwrap();
            let [release, image] = ["6.12.9-fslab", "linux"].map(str::to_owned);
            let architecture = Architecture::Uml.name().to_owned();
            let [origin, source, config] = ["x.deb", "aa", "bb"].map(str::to_owned);
            let modules = String::new();
            Ok(CacheManifest {
                release,
                architecture,
                image,
                modules,
                origin,
                source,
                config,
                changes: String::new(),
            })
        });
        built.unwrap();
        let known = place.known();
        let of = |known: &KnownKernel| (known.release.clone(), known.origin.clone());
        let listed: Vec<_> = known.iter().map(of).collect();
        let path = |name: &str| Origin::Installed(place.path(name));
        assert_eq!(
            listed,
            [
                ("6.12.9-fslab".to_owned(), Origin::Built("built from x.deb".to_owned())),
                ("6.1.176".to_owned(), path("usr/bin/linux.uml")),
                ("6.9.1".to_owned(), path("boot/vmlinuz-6.9.1")),
                (RELEASE.to_owned(), Origin::Package("linux-image.deb".to_owned())),
            ]
        );
        let image = fs::metadata(place.path("boot/vmlinuz-6.9.1")).unwrap().len();
        assert_eq!(known[2].size, Bytes(image + 5));
        assert_eq!(known[0].modules, None);
        assert!(known[3].modules.as_ref().unwrap().ends_with(format!("lib/modules/{RELEASE}")));
    }

    #[test]
    fn listed_kernels_can_be_selected() {
        let place = TestRoot::new();
        let archive = tar(&[("./usr/bin/linux.uml", &uml("6.1.176"))]);
        let package = place.write("user-mode-linux.deb", &deb(&packed(&archive, By::Xz)));
        place.find(KernelQuery::Text(&package), Architecture::Uml).unwrap();
        let bytes = |release, by| boot_image(release, &vmlinux(release, true), by);
        place.write("boot/vmlinuz-6.9.1", &bytes("6.9.1", By::Gzip));
        // Neither a kernel in an unsupported compression nor a truncated one is listed.
        place.write("boot/vmlinuz-6.9.2", &bytes("6.9.2", By::Bzip2));
        place.write("boot/vmlinuz-6.9.3", &bytes("6.9.3", By::Xz)[..1600]);
        let known = place.known();
        let releases: Vec<&str> = known.iter().map(|known| known.release.as_str()).collect();
        assert_eq!(releases, ["6.1.176", "6.9.1"]);
        for known in &known {
            let query = KernelQuery::Text(&known.release);
            let kernel = place.find(query, known.architecture).unwrap();
            assert_eq!(kernel.release, known.release);
            assert!(known.matches("6") && !known.matches("6.12"));
        }
    }
}
