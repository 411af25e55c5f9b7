//! Search for a kernel source by path or version: an archive, a package, or a directory
//! ([`Found`]). By default, the newest installed source is used.

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
        version::{matches_release, release_order},
    },
};

/// Prefix of source archives: `linux-source-6.1.tar.xz` (packages `linux-source-VERSION` of Debian
/// and Ubuntu).
const NAME: &str = "linux-source-";
/// Extension of source archives, before that of the compression.
const TAR: &str = ".tar";
/// Hint for a missing source.
const HINT: &str = "download one without root (apt-get download linux-source-6.1) and use the \
                    file (fslab guest kernel build --source linux-source-6.1_*.deb), install one \
                    (apt-get install linux-source), or use a directory with an unpacked source";

/// Source that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Tar archive with any supported compression.
    Archive(PathBuf),
    /// Debian package that contains such an archive.
    Package(PathBuf),
    /// Directory with an unpacked source.
    Directory(PathBuf),
}

impl Found {
    /// Path of the source.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Archive(path) | Self::Package(path) | Self::Directory(path) => path,
        }
    }

    /// Name for messages: the last component of the path.
    pub(super) fn name(&self) -> String {
        self.path().file_name().unwrap_or(self.path().as_os_str()).to_string_lossy().into_owned()
    }
}

/// Finds a source by path or installed version; without `named`, the newest source installed below
/// `root`.
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
                    let what = format!("{} does not exist", path.display());
                    Err(GuestError::Missing { what, hint: HINT.to_owned() })
                }
            };
        }
        Err(error) => return Err(GuestError::io(format!("cannot read {}", path.display()))(error)),
    };
    let path = fs::canonicalize(path)
        .map_err(GuestError::io(format!("cannot read {}", path.display())))?;
    if metadata.is_dir() {
        return Ok(Found::Directory(path));
    }
    let never = AtomicBool::new(false);
    let source = Source { path: &path, interrupt: &never };
    let mut first = [0; AR.len()];
    let read = source.open()?.read_at(&mut first, 0).map_err(|error| source.failed(error))?;
    if first[..read].starts_with(RPM) {
        return Err(source.malformed(
            "is an RPM package, which is not supported; unpack it (rpm2cpio PACKAGE | cpio -idm) \
             and use the archive linux-VERSION.tar.xz in it",
        ));
    }
    Ok(if first[..read] == *AR { Found::Package(path) } else { Found::Archive(path) })
}

/// Newest installed source that matches the requested version.
fn installed(wanted: Option<&str>, root: &Path) -> Result<Found, GuestError> {
    let directory = root.join("usr/src");
    let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
    let archives = entries.map(|entry| entry.path()).filter_map(|path| {
        let version = version(&path)?.to_owned();
        (path.is_file() && wanted.is_none_or(|wanted| matches_release(wanted, &version)))
            .then_some((version, path))
    });
    let newest = archives.max_by(|one, other| release_order(&one.0).cmp(&release_order(&other.0)));
    newest.map(|(_, path)| Found::Archive(path)).ok_or_else(|| {
        let which = wanted.map_or_else(String::new, |wanted| format!(" {wanted}"));
        let what = format!(
            "no kernel source{which} is installed ({}/{NAME}*.tar.xz)",
            directory.display()
        );
        GuestError::Missing { what, hint: HINT.to_owned() }
    })
}

/// Version of a source archive, from its name.
pub(super) fn version(path: &Path) -> Option<&str> {
    let name = path.file_name()?.to_str()?.strip_prefix(NAME)?;
    let (version, rest) = name.split_at(name.find(TAR)?);
    // Excludes other files next to archives, such as signatures.
    (rest == TAR || rest[TAR.len()..].starts_with('.') && !rest.ends_with(".sign"))
        .then_some(version)
}

#[cfg(test)]
mod tests;
