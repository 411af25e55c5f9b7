//! Which kernels there are to be named.
//!
//! What is installed, what was built here, and what of packages is kept enters; a list leaves, for
//! people and for those who want to look into each.

use std::{
    cmp::Reverse,
    fs,
    path::{Path, PathBuf},
};

use model::Bytes;

use super::{
    Architecture, boot, built,
    finder::{Finder, beside, examine},
    source::Source,
    version::newness,
};

/// Where a kernel comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is installed, and this is its image.
    Installed(PathBuf),
    /// It was built here; of what, says the text.
    Built(String),
    /// It is of a package that was unpacked before, of this name. Whoever names the package again
    /// does not wait.
    Package(String),
}

/// A kernel that can be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// What `uname -r` says in it.
    pub release: String,
    /// What it was built for.
    pub architecture: Architecture,
    /// Where it comes from.
    pub origin: Origin,
    /// Its modules, or lists of what is built in.
    pub modules: Option<PathBuf>,
    /// Bytes of the image, and of the modules.
    pub size: Bytes,
}

/// See [`super::Kernel::known`].
pub(super) fn all(finder: Finder<'_>) -> Vec<Known> {
    let mut all = installed(finder);
    all.extend(user_mode(finder));
    all.extend(kept(finder));
    all.sort_by(|one, other| {
        let key = |known: &Known| known.architecture == Architecture::Pc;
        let newest = Reverse(newness(&one.release)).cmp(&Reverse(newness(&other.release)));
        key(one).cmp(&key(other)).then(newest)
    });
    all
}

/// Kernels for PCs that are installed and may be read.
fn installed(finder: Finder<'_>) -> Vec<Known> {
    let known = |image: PathBuf| {
        let source = Source { path: &image, interrupt: finder.interrupt };
        let file = source.open().ok()?;
        let release = boot::Header::read(source, &file).ok()?.release;
        let real = fs::canonicalize(&image).ok()?;
        let modules = beside(&real, &release);
        let size = size(&real, modules.as_deref());
        let architecture = Architecture::Pc;
        Some(Known { release, architecture, origin: Origin::Installed(image), modules, size })
    };
    // Where folders are links to each other, an image is found twice.
    let mut seen = Vec::new();
    let first = |image: &PathBuf| {
        let real = fs::canonicalize(image).unwrap_or_else(|_| image.clone());
        let new = !seen.contains(&real);
        seen.push(real);
        new
    };
    finder.images().into_iter().filter(first).filter_map(known).collect()
}

/// User-mode Linux: what was built here, and what is installed.
fn user_mode(finder: Finder<'_>) -> Vec<Known> {
    let architecture = Architecture::Uml;
    let mut all: Vec<Known> = built::all(finder.cache)
        .into_iter()
        .map(|built| Known {
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
        let modules = beside(&real, &release);
        let size = size(&real, modules.as_deref());
        let origin = Origin::Installed(program);
        (found == architecture).then_some(Known { release, architecture, origin, modules, size })
    }));
    all
}

/// Kernels of packages that were unpacked before.
fn kept(finder: Finder<'_>) -> Vec<Known> {
    let known = |(folder, card): (PathBuf, super::cache::Card)| {
        let architecture = [Architecture::Pc, Architecture::Uml]
            .into_iter()
            .find(|architecture| architecture.name() == card.architecture)?;
        if !card.is_package() {
            return None;
        }
        let modules = (!card.modules.is_empty()).then(|| folder.join(&card.modules));
        Some(Known {
            size: size(&folder.join(&card.image), modules.as_deref()),
            release: card.release,
            architecture,
            origin: Origin::Package(card.origin),
            modules,
        })
    };
    finder.cache.cards().into_iter().filter_map(known).collect()
}

/// Bytes of an image, and of the files in a folder of modules.
fn size(image: &Path, modules: Option<&Path>) -> Bytes {
    let mut bytes = fs::metadata(image).map(|image| image.len()).unwrap_or_default();
    let mut folders: Vec<PathBuf> = modules.map(Path::to_owned).into_iter().collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            // Links lead to headers, and are not followed.
            let Ok(facts) = entry.metadata() else { continue };
            if facts.is_dir() {
                folders.push(entry.path());
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
            cache::Card,
            testing::{By, Place, RELEASE, boot_image, deb, files, packed, tar_of, uml, vmlinux},
        },
        *,
    };

    #[test]
    fn what_can_be_named_is_listed_newest_first() {
        let place = Place::new();
        assert_eq!(place.known(), []);
        place.write("usr/bin/linux.uml", &uml("6.1.176"));
        let installed = vmlinux("6.9.1", true);
        place.write("boot/vmlinuz-6.9.1", &boot_image("6.9.1", &installed, By::Xz));
        place.write("boot/vmlinuz-notes", b"no kernel");
        place.write("lib/modules/6.9.1/modules.builtin", b"12345");
        // A package is known once it was unpacked; the image of an installed kernel, which is
        // unpacked too, is not listed twice.
        let package = place.write("linux-image.deb", &deb(&packed(&tar_of(&files()), By::Xz)));
        place.pc(&package).unwrap();
        place.pc("6.9.1").unwrap();
        let built = place.cache.folder("key", |folder| {
            fs::write(folder.join("linux"), uml("6.12.9-fslab")).unwrap();
            let [release, image] = ["6.12.9-fslab", "linux"].map(str::to_owned);
            let architecture = Architecture::Uml.name().to_owned();
            let [origin, source, config] = ["x.deb", "aa", "bb"].map(str::to_owned);
            let modules = String::new();
            Ok(Card { release, architecture, image, modules, origin, source, config })
        });
        built.unwrap();
        let known = place.known();
        let of = |known: &Known| (known.release.clone(), known.origin.clone());
        let listed: Vec<_> = known.iter().map(of).collect();
        let path = |name: &str| Origin::Installed(place.path(name));
        assert_eq!(
            listed,
            [
                ("6.12.9-fslab".to_owned(), Origin::Built("built here from x.deb".to_owned())),
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
}
