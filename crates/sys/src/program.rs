//! Programs of the machine: the directories in which they are searched, and their environment.
//!
//! Only absolute directories are searched. Root runs a program only if no other user can change it:
//! neither the file nor any directory or link on the way to it ([`crate::trust`]). The environment
//! is built here; nothing of the caller's is inherited but `PATH`, filtered.

use std::{
    env,
    ffi::OsString,
    fs, io,
    os::unix::{fs::MetadataExt as _, process::CommandExt as _},
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use crate::trust::{Sticky, replaceable};

/// Directories searched after those of `PATH`: an ordinary user's path often lacks them.
const SYSTEM: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];
/// `PATH` if there is none (`_PATH_DEFPATH`, paths.h).
const DEFAULT: &str = "/usr/bin:/bin";

/// Directories that are searched, and those of `PATH` that are not since others can change them.
struct Directories {
    searched: Vec<PathBuf>,
    refused: Vec<PathBuf>,
}

/// The directories of this process, determined once: a search may be part of a measurement.
fn directories() -> &'static Directories {
    static DIRECTORIES: OnceLock<Directories> = OnceLock::new();
    DIRECTORIES.get_or_init(|| divide(env::var_os("PATH"), &changed_by_others))
}

fn divide(path: Option<OsString>, is_unsafe: &dyn Fn(&Path) -> bool) -> Directories {
    let path = path.unwrap_or_else(|| DEFAULT.into());
    let mut all: Vec<PathBuf> = Vec::new();
    for directory in env::split_paths(&path).chain(SYSTEM.map(PathBuf::from)) {
        if directory.is_absolute() && !all.contains(&directory) {
            all.push(directory);
        }
    }
    let (refused, searched) = all.into_iter().partition(|directory| is_unsafe(directory));
    Directories { searched, refused }
}

/// Whether this process is root and other users can change what the path leads to. What cannot be
/// checked counts as changed.
fn changed_by_others(path: &Path) -> bool {
    let checked = rustix::process::geteuid().is_root();
    checked && !matches!(replaceable(path, Sticky::Refused), Ok(None))
}

/// The value of `PATH` for programs.
pub fn search_path() -> OsString {
    // Directories come out of a `PATH`, so none holds its separator.
    env::join_paths(&directories().searched).unwrap_or_else(|_| DEFAULT.into())
}

/// The program of that name, or at that absolute path.
///
/// # Errors
/// `NotFound` if there is none, `InvalidInput` for a relative path, and `PermissionDenied` if root
/// would run what another user can change.
pub fn find(name: &str) -> io::Result<PathBuf> {
    search(name, directories(), &changed_by_others)
}

fn search(
    name: &str,
    directories: &Directories,
    is_unsafe: &dyn Fn(&Path) -> bool,
) -> io::Result<PathBuf> {
    let refused = |path: &Path| {
        let what = format!(
            "{} is not run as root: other users can change it; install it in a directory that \
             only root can write to",
            path.display()
        );
        io::Error::new(io::ErrorKind::PermissionDenied, what)
    };
    if name.contains('/') {
        let path = PathBuf::from(name);
        if !path.is_absolute() {
            let what = format!("{name} is a relative path; use a name or an absolute path");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        return match executable(&path) {
            true if is_unsafe(&path) => Err(refused(&path)),
            true => Ok(path),
            false => Err(io::Error::new(io::ErrorKind::NotFound, "no such program")),
        };
    }
    let within = |all: &[PathBuf]| -> Vec<PathBuf> {
        all.iter().map(|directory| directory.join(name)).filter(|path| executable(path)).collect()
    };
    let (safe, unsafe_files): (Vec<_>, Vec<_>) =
        within(&directories.searched).into_iter().partition(|path| !is_unsafe(path));
    let unsafe_files = unsafe_files.into_iter().chain(within(&directories.refused));
    match (safe.into_iter().next(), unsafe_files.into_iter().next()) {
        (Some(path), _) => Ok(path),
        (None, Some(path)) => Err(refused(&path)),
        (None, None) => Err(io::Error::new(io::ErrorKind::NotFound, "no such program")),
    }
}

/// The environment of programs.
pub fn environment() -> [(&'static str, OsString); 5] {
    [
        ("PATH", search_path()),
        ("LC_ALL", "C".into()),
        ("TZ", "UTC0".into()),
        ("HOME", "/".into()),
        ("TMPDIR", "/tmp".into()),
    ]
}

/// A command that runs a program in that environment. In its messages the program calls itself by
/// the name.
///
/// # Errors
/// As [`find`].
pub fn command(name: &str) -> io::Result<Command> {
    let mut command = Command::new(find(name)?);
    command.arg0(name).env_clear().envs(environment());
    Ok(command)
}

fn executable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn empty_and_relative_entries_of_path_are_not_searched() {
        let directories = divide(Some(":bin:./sbin::/usr/bin:/usr/bin:".into()), &|_| false);
        let wanted = ["/usr/bin", "/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from);
        assert_eq!(directories.searched, wanted);
        assert!(directories.refused.is_empty());
        assert_eq!(divide(None, &|_| false).searched[0], Path::new("/usr/bin"));
    }

    #[test]
    fn root_runs_no_program_that_another_user_can_change() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let [ours, theirs] = ["ours", "theirs"].map(|name| folder.path().join(name));
        program(&ours.join("both"));
        program(&theirs.join("both"));
        program(&theirs.join("one"));
        fs::write(ours.join("text"), "").unwrap();
        let is_unsafe = |path: &Path| path.starts_with(&theirs);
        let path = env::join_paths([&theirs, &ours]).unwrap();
        let directories = divide(Some(path), &is_unsafe);
        assert_eq!(directories.refused, std::slice::from_ref(&theirs));
        let find = |name: &str| search(name, &directories, &is_unsafe);
        assert_eq!(find("both").unwrap(), ours.join("both"));
        let kind = |name: &str| find(name).unwrap_err().kind();
        assert_eq!(kind("one"), io::ErrorKind::PermissionDenied);
        assert_eq!(kind(theirs.join("one").to_str().unwrap()), io::ErrorKind::PermissionDenied);
        assert_eq!(kind("text"), io::ErrorKind::NotFound);
        assert_eq!(kind("./both"), io::ErrorKind::InvalidInput);
        let message = find("one").unwrap_err().to_string();
        assert!(message.contains("other users can change it; install"), "{message}");
    }

    /// /var/tmp is everyone's directory, so nothing in it is run by root.
    #[test]
    fn a_sticky_directory_does_not_help() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = folder.path().join("tool");
        program(&path);
        let found = super::find(path.to_str().unwrap());
        match rustix::process::geteuid().is_root() {
            true => assert_eq!(found.unwrap_err().kind(), io::ErrorKind::PermissionDenied),
            false => assert_eq!(found.unwrap(), path),
        }
    }

    #[test]
    fn programs_inherit_no_variable() {
        let output = command("env").unwrap().output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let mut names: Vec<_> = text.lines().map(|line| line.split('=').next().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["HOME", "LC_ALL", "PATH", "TMPDIR", "TZ"]);
        let path = text.lines().find_map(|line| line.strip_prefix("PATH=")).unwrap();
        assert!(path.split(':').all(|directory| directory.starts_with('/')), "{path}");
    }
}
