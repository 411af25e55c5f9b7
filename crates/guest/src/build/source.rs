//! The source of a kernel: where it is, and how it is told from others.
//!
//! What a user named enters, or nothing; an archive, a package, or a folder leaves ([`Found`]).

use std::{
    ffi::OsStr,
    fs,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use crate::{
    GuestError,
    kernel::{
        archive::{AR, RPM},
        source::Source,
        version::{is_meant, newness},
    },
};

/// How such files begin: `linux-source-6.1.tar.xz` (packages `linux-source-VERSION` of Debian and
/// Ubuntu).
const NAME: &str = "linux-source-";
/// What they contain in their name.
const TAR: &str = ".tar";
/// How to get one.
const CURE: &str = "get one, which needs no rights (apt-get download linux-source-6.1), and name the \
                    file (fslab guest kernel build --source linux-source-6.1_*.deb), or install it \
                    (apt-get install linux-source); a folder with an unpacked source will do as well";

/// A source that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// A tar archive, however it is packed.
    Archive(PathBuf),
    /// A Debian package with such an archive in it.
    Package(PathBuf),
    /// An unpacked source.
    Folder(PathBuf),
}

impl Found {
    /// The path.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Archive(path) | Self::Package(path) | Self::Folder(path) => path,
        }
    }

    /// What to call it, for people: the last part of its path.
    pub(super) fn name(&self) -> String {
        self.path().file_name().unwrap_or(self.path().as_os_str()).to_string_lossy().into_owned()
    }
}

/// Finds a source: what was named, by its path or the version of an installed one, or the newest
/// that is installed below `root`.
pub(super) fn find(named: Option<&OsStr>, root: &Path) -> Result<Found, GuestError> {
    let Some(named) = named else { return installed(None, root) };
    let path = Path::new(named);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let version = named.to_str().filter(|text| {
                text.starts_with(|first: char| first.is_ascii_digit()) && !text.contains('/')
            });
            return match version {
                Some(version) => installed(Some(version), root),
                None => {
                    let what = format!("there is no {}", path.display());
                    Err(GuestError::Missing { what, cure: CURE.to_owned() })
                }
            };
        }
        Err(error) => return Err(GuestError::io(format!("reading {}", path.display()))(error)),
    };
    let path =
        fs::canonicalize(path).map_err(GuestError::io(format!("reading {}", path.display())))?;
    if metadata.is_dir() {
        return Ok(Found::Folder(path));
    }
    let never = AtomicBool::new(false);
    let source = Source { path: &path, interrupt: &never };
    let mut first = [0; AR.len()];
    let read = source.open()?.read_at(&mut first, 0).map_err(|error| source.failed(error))?;
    if first[..read].starts_with(RPM) {
        return Err(source.malformed(
            "is an RPM package, which is not read; unpack it (rpm2cpio PACKAGE | cpio -idm) and \
             name the archive linux-VERSION.tar.xz in it",
        ));
    }
    Ok(if first[..read] == *AR { Found::Package(path) } else { Found::Archive(path) })
}

/// The newest that is installed, of those that are meant.
fn installed(wanted: Option<&str>, root: &Path) -> Result<Found, GuestError> {
    let folder = root.join("usr/src");
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let archives = entries.map(|entry| entry.path()).filter_map(|path| {
        let version = version(&path)?.to_owned();
        (path.is_file() && wanted.is_none_or(|wanted| is_meant(wanted, &version)))
            .then_some((version, path))
    });
    let newest = archives.max_by(|one, other| newness(&one.0).cmp(&newness(&other.0)));
    newest.map(|(_, path)| Found::Archive(path)).ok_or_else(|| {
        let which = wanted.map_or_else(String::new, |wanted| format!(" {wanted}"));
        let what = format!(
            "no source of a kernel{which} is installed ({}/{NAME}*.tar.xz)",
            folder.display()
        );
        GuestError::Missing { what, cure: CURE.to_owned() }
    })
}

/// The version of an archive of a source, by its name.
pub(super) fn version(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?.strip_prefix(NAME)?;
    let (version, rest) = name.split_at(name.find(TAR)?);
    // Not one of the files that stand beside archives, such as signatures.
    (rest == TAR || rest[TAR.len()..].starts_with('.') && !rest.ends_with(".sign"))
        .then_some(version)
}

#[cfg(test)]
mod tests;
