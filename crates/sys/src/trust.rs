//! Check for paths that only root can change.
//!
//! The result is the first component of a path that another user could change. Links are resolved
//! one by one, so that a link in another user's directory is found. Access control lists need no
//! additional check, because their mask, the maximum that they grant, appears as the permissions of
//! the group (acl(5)).

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
};

/// Maximum number of links, as in path_resolution(7).
const LINKS: u32 = 40;
/// The sticky bit, and write permission of group and others (inode(7)).
const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o022;

/// Treatment of sticky directories, in which all users can create entries but not change those of
/// others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sticky {
    /// Sticky directories count as directories that others can change.
    Refused,
    /// Sticky directories are accepted as parents, because their entries are checked as well.
    Parents,
}

/// First component of `path` that a user other than root owns or can write to. All components are
/// checked, up to the last one or to the first one that is missing. `None` if there is no such
/// component.
///
/// # Errors
/// Errors of the kernel if a component cannot be read; `ELOOP` after 40 links.
pub fn replaceable(path: &Path, sticky: Sticky) -> io::Result<Option<PathBuf>> {
    let mut at = PathBuf::from("/");
    let mut left: Vec<OsString> = Vec::new();
    push(&mut left, &std::path::absolute(path)?);
    let mut links = 0;
    if let Some(place) = change(&at, &fs::symlink_metadata(&at)?, sticky, left.is_empty()) {
        return Ok(Some(place));
    }
    while let Some(name) = left.pop() {
        if name == ".." {
            at.pop();
            continue;
        }
        let next = at.join(name);
        let meta = match fs::symlink_metadata(&next) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            meta => meta?,
        };
        if let Some(place) = change(&next, &meta, sticky, left.is_empty()) {
            return Ok(Some(place));
        }
        if meta.is_symlink() {
            links += 1;
            if links > LINKS {
                return Err(rustix::io::Errno::LOOP.into());
            }
            let target = fs::read_link(&next)?;
            if target.is_absolute() {
                at = PathBuf::from("/");
            }
            push(&mut left, &target);
        } else {
            at = next;
        }
    }
    Ok(None)
}

/// The path, if a user other than root owns it or can write to it. Permissions of links are
/// ignored. `end` is true for the last component.
fn change(path: &Path, meta: &fs::Metadata, sticky: Sticky, end: bool) -> Option<PathBuf> {
    let shared = meta.mode() & OTHERS_WRITE != 0 && !meta.is_symlink();
    let accepted = sticky == Sticky::Parents && !end && meta.mode() & STICKY != 0;
    (meta.uid() != 0 || shared && !accepted).then(|| path.to_owned())
}

/// Pushes the components of a path onto a stack, the first on top.
fn push(left: &mut Vec<OsString>, path: &Path) {
    let parts = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    });
    left.extend(parts);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    fn is_root() -> bool {
        rustix::process::geteuid().is_root()
    }

    #[test]
    fn all_components_are_checked() {
        assert_eq!(replaceable(Path::new("/"), Sticky::Refused).unwrap(), None);
        assert_eq!(replaceable(Path::new("/proc/version"), Sticky::Refused).unwrap(), None);
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |name: &str| directory.path().join(name);
        let first = |name: &str, sticky| replaceable(&at(name), sticky).unwrap();
        assert_eq!(first("none", Sticky::Refused), Some("/var/tmp".into()));
        if !is_root() {
            assert_eq!(first("none", Sticky::Parents), Some(directory.path().into()));
            return;
        }
        assert_eq!(first("none", Sticky::Parents), None);
        fs::create_dir_all(at("ours/sub")).unwrap();
        fs::create_dir(at("theirs")).unwrap();
        chown(at("theirs"), Some(65534), Some(65534)).unwrap();
        symlink("../ours/sub", at("theirs/link")).unwrap();
        symlink("theirs/../ours", at("link")).unwrap();
        assert_eq!(first("ours/sub", Sticky::Parents), None);
        // The owner of the link is irrelevant, because its directory belongs to another user.
        assert_eq!(first("theirs/link", Sticky::Parents), Some(at("theirs")));
        assert_eq!(first("link", Sticky::Parents), Some(at("theirs")));
        fs::set_permissions(at("ours"), fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(first("ours/sub", Sticky::Parents), None);
        assert_eq!(first("ours", Sticky::Parents), Some(at("ours")), "any user can add entries");
        fs::set_permissions(at("ours"), fs::Permissions::from_mode(0o775)).unwrap();
        assert_eq!(first("ours/sub", Sticky::Parents), Some(at("ours")));
        symlink("loop", at("loop")).unwrap();
        assert!(replaceable(&at("loop"), Sticky::Parents).is_err());
    }
}
