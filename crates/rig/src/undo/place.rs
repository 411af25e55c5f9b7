//! Directory of the journals: default path, ownership check, and creation.
//!
//! Undo executes the lines of a journal. If another user could write a journal, this user would
//! gain the rights of the user who runs fslab.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::{DirBuilderExt as _, MetadataExt as _},
    path::{Path, PathBuf},
};

use sys::trust::{Sticky, replaceable};

use crate::{error::RigError, host::Host};

/// Default state directory: `/var/lib/fslab` for root, else `$XDG_STATE_HOME/fslab` or
/// `$HOME/.local/state/fslab` (XDG Base Directory Specification 0.8).
///
/// # Errors
/// [`RigError::NoHome`] if neither variable is set and the user is not root.
pub fn default_state_directory(host: &dyn Host) -> Result<PathBuf, RigError> {
    if host.is_root() {
        return Ok("/var/lib/fslab".into());
    }
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let absolute = |path: &PathBuf| path.is_absolute();
    let home = || variable("HOME").filter(absolute).map(|home| home.join(".local/state"));
    let state = variable("XDG_STATE_HOME").filter(absolute).or_else(home);
    state.map(|state| state.join("fslab")).ok_or(RigError::NoHome)
}

/// Checks that the state directory belongs to the effective user. For root, also checks that no
/// other user can write to the directory or replace it, for example as the owner of a parent
/// directory. A directory that does not exist passes if its existing parents meet these conditions.
///
/// # Errors
/// [`RigError::State`] with the reason.
pub fn check_state_directory(state: &Path) -> Result<(), RigError> {
    let user = rustix::process::geteuid();
    let refused = |why| Err(RigError::State { path: state.to_owned(), why });
    // Without metadata there is no directory yet, or it cannot be used.
    if let Ok(meta) = fs::metadata(state) {
        if !meta.is_dir() {
            return refused("it is not a directory".into());
        }
        if meta.uid() != user.as_raw() {
            return refused(format!("it belongs to user {}", meta.uid()));
        }
    }
    if !user.is_root() {
        return Ok(());
    }
    match replaceable(state, Sticky::Parents) {
        Ok(None) => Ok(()),
        Ok(Some(place)) => refused(format!("users other than root can modify {}", place.display())),
        Err(error) => refused(error.to_string()),
    }
}

/// Checks the state directory. A missing directory is created and synced.
///
/// # Errors
/// [`RigError::State`] if the check fails, and [`RigError::Journal`] if the directory cannot be
/// created.
pub fn make_state_directory(state: &Path) -> Result<(), RigError> {
    check_state_directory(state)?;
    make_durable(state, &mut sync)
        .map_err(|source| RigError::Journal { path: state.to_owned(), source })
}

pub(super) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Creates a directory and its parents with mode 0700. Each new directory is synced, and then its
/// parent, which contains the name of the directory.
pub(super) fn make_durable(
    path: &Path,
    sync: &mut dyn FnMut(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let path = std::path::absolute(path)?;
    let missing: Vec<&Path> = path.ancestors().take_while(|above| !above.exists()).collect();
    for directory in missing.into_iter().rev() {
        // Recursive, because another run may have created the directory since the check.
        DirBuilder::new().mode(0o700).recursive(true).create(directory)?;
        sync(directory)?;
        directory.parent().map_or(Ok(()), &mut *sync)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    use super::*;

    #[test]
    fn new_directories_and_their_parents_are_synced() {
        let directory = tempfile::tempdir().unwrap();
        let mut synced = Vec::new();
        let state = directory.path().join("a/state");
        make_durable(&state.join("journal"), &mut |path| {
            assert!(path.is_dir());
            synced.push(path.to_owned());
            Ok(())
        })
        .unwrap();
        let above = directory.path().to_owned();
        let a = above.join("a");
        let journal = state.join("journal");
        assert_eq!(synced, [a.clone(), above, state.clone(), a, journal, state.clone()]);
        assert_eq!(fs::metadata(&state).unwrap().mode() & 0o777, 0o700);
        make_durable(&state, &mut |_| panic!("nothing is new")).unwrap();
    }

    #[test]
    fn the_default_state_directory_of_root_is_in_var() {
        let host = crate::FakeHost::new("/none");
        assert_eq!(default_state_directory(&host).unwrap(), Path::new("/var/lib/fslab"));
        // Without a home directory, this is an error.
        let home = default_state_directory(&host.unprivileged()).ok();
        assert!(home.is_none_or(|path| path.is_absolute() && !path.starts_with("/var/lib")));
    }

    fn why(path: &Path) -> String {
        match check_state_directory(path) {
            Err(RigError::State { why, .. }) => why,
            Err(error) => error.to_string(),
            Ok(()) => String::new(),
        }
    }

    #[test]
    fn state_directories_writable_by_other_users_are_rejected() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let at = |name: &str| directory.path().join(name);
        assert_eq!(why(&at("none/state")), "");
        fs::write(at("file"), "").unwrap();
        assert_eq!(why(&at("file")), "it is not a directory");
        if !rustix::process::geteuid().is_root() {
            assert_eq!(why(Path::new("/usr")), "it belongs to user 0");
            return;
        }
        fs::create_dir_all(at("theirs/ours")).unwrap();
        fs::create_dir(at("open")).unwrap();
        fs::set_permissions(at("open"), fs::Permissions::from_mode(0o1777)).unwrap();
        fs::create_dir(at("open/state")).unwrap();
        symlink(at("theirs/ours"), at("link")).unwrap();
        chown(at("theirs"), Some(65534), Some(65534)).unwrap();
        assert_eq!(why(&at("theirs")), "it belongs to user 65534");
        let replaced = format!("users other than root can modify {}", at("theirs").display());
        for path in ["theirs/ours", "theirs/none", "link"] {
            assert_eq!(why(&at(path)), replaced, "{path}");
        }
        assert!(why(&at("open")).ends_with("open"), "{}", why(&at("open")));
        assert_eq!(why(&at("open/state")), "", "no one else can rename it there");
        let error = make_state_directory(&at("theirs/none")).unwrap_err().to_string();
        assert!(error.contains("--state-directory"), "{error}");
        assert!(!at("theirs/none").exists());
    }
}
