//! Search for programs, and their environment.
//!
//! Only absolute directories are searched. Root runs a program only if no other user can change it:
//! neither the file nor any directory or link of its path ([`crate::trust`]). The environment is
//! constructed here; only `PATH` is inherited, filtered.

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

/// Directories searched after those of `PATH`, which often lacks them for ordinary users.
const SYSTEM: [&str; 3] = ["/usr/sbin", "/sbin", "/usr/local/sbin"];
/// Directories that are searched if `PATH` is not set (`_PATH_DEFPATH`, paths.h).
const DEFAULT: &str = "/usr/bin:/bin";

/// Directories to search. Directories that other users can change are listed separately, for the
/// error message if a program exists only there.
struct Directories {
    searched: Vec<PathBuf>,
    unsafe_directories: Vec<PathBuf>,
}

/// Directories of this process. They are determined once, because a search may be part of a
/// measurement.
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
    let (unsafe_directories, searched) =
        all.into_iter().partition(|directory| is_unsafe(directory));
    Directories { searched, unsafe_directories }
}

/// True if this process is root and other users can change the file of the path. A path that cannot
/// be checked counts as changeable.
fn changed_by_others(path: &Path) -> bool {
    let checked = rustix::process::geteuid().is_root();
    checked && !matches!(replaceable(path, Sticky::Refused), Ok(None))
}

/// The value of `PATH` for programs.
pub fn search_path() -> OsString {
    // Directories split from `PATH` contain no colon, so they can be joined.
    env::join_paths(&directories().searched).unwrap_or_else(|_| DEFAULT.into())
}

/// Path of a program, by name or absolute path.
///
/// # Errors
/// `NotFound` if there is no such program, `InvalidInput` for a relative path, and
/// `PermissionDenied` if root would run a program that another user can change.
pub fn find(name: &str) -> io::Result<PathBuf> {
    search(name, directories(), &changed_by_others)
}

/// Path of a program that an ordinary user runs, by name or absolute path: also in directories that
/// users can change, and in those of [`FURTHER`].
///
/// # Errors
/// `NotFound` if there is no such program, and `InvalidInput` for a relative path.
pub fn find_for_user(name: &str) -> io::Result<PathBuf> {
    let own = directories();
    let searched = own.searched.iter().chain(&own.unsafe_directories).cloned().chain(further());
    let all = Directories { searched: searched.collect(), unsafe_directories: Vec::new() };
    search(name, &all, &|_| false)
}

/// The value of `PATH` for programs of an ordinary user: the directories of [`find_for_user`].
pub fn search_path_for_user() -> OsString {
    let own = directories();
    let all = own.searched.iter().chain(&own.unsafe_directories).cloned().chain(further());
    env::join_paths(all).unwrap_or_else(|_| DEFAULT.into())
}

/// Parent of directories with programs outside of `PATH`, and the name within each: Debian installs
/// the programs of each version of PostgreSQL in `/usr/lib/postgresql/VERSION/bin`.
const FURTHER: (&str, &str) = ("/usr/lib/postgresql", "bin");

/// Directories of [`FURTHER`], the highest version first.
fn further() -> Vec<PathBuf> {
    let (parent, name) = FURTHER;
    let versions = fs::read_dir(parent).into_iter().flatten().flatten();
    let number = |entry: &fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let mut versions: Vec<_> =
        versions.filter_map(|entry| Some((number(&entry)?, entry.path().join(name)))).collect();
    versions.sort_by(|one, other| other.cmp(one));
    versions.into_iter().map(|(_, path)| path).collect()
}

fn search(
    name: &str,
    directories: &Directories,
    is_unsafe: &dyn Fn(&Path) -> bool,
) -> io::Result<PathBuf> {
    let denied = |path: &Path| {
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
            true if is_unsafe(&path) => Err(denied(&path)),
            true => Ok(path),
            false => Err(io::Error::new(io::ErrorKind::NotFound, "no such program")),
        };
    }
    let within = |all: &[PathBuf]| -> Vec<PathBuf> {
        all.iter().map(|directory| directory.join(name)).filter(|path| executable(path)).collect()
    };
    let (safe, unsafe_files): (Vec<_>, Vec<_>) =
        within(&directories.searched).into_iter().partition(|path| !is_unsafe(path));
    let unsafe_files = unsafe_files.into_iter().chain(within(&directories.unsafe_directories));
    match (safe.into_iter().next(), unsafe_files.into_iter().next()) {
        (Some(path), _) => Ok(path),
        (None, Some(path)) => Err(denied(&path)),
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

/// Command that runs a program in this environment. Messages of the program begin with `name`
/// instead of its path.
///
/// # Errors
/// Errors of [`find`].
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
        let expected = ["/usr/bin", "/usr/sbin", "/sbin", "/usr/local/sbin"].map(PathBuf::from);
        assert_eq!(directories.searched, expected);
        assert!(directories.unsafe_directories.is_empty());
        assert_eq!(divide(None, &|_| false).searched[0], Path::new("/usr/bin"));
    }

    #[test]
    fn root_does_not_run_programs_that_others_can_change() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let [ours, theirs] = ["ours", "theirs"].map(|name| directory.path().join(name));
        program(&ours.join("both"));
        program(&theirs.join("both"));
        program(&theirs.join("one"));
        fs::write(ours.join("text"), "").unwrap();
        let is_unsafe = |path: &Path| path.starts_with(&theirs);
        let path = env::join_paths([&theirs, &ours]).unwrap();
        let directories = divide(Some(path), &is_unsafe);
        assert_eq!(directories.unsafe_directories, std::slice::from_ref(&theirs));
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

    /// All users can write to /var/tmp, so root runs no program in it.
    #[test]
    fn sticky_directories_are_not_trusted() {
        let directory = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = directory.path().join("tool");
        program(&path);
        let found = super::find(path.to_str().unwrap());
        match rustix::process::geteuid().is_root() {
            true => assert_eq!(found.unwrap_err().kind(), io::ErrorKind::PermissionDenied),
            false => assert_eq!(found.unwrap(), path),
        }
    }

    #[test]
    fn programs_inherit_no_variables() {
        let output = command("env").unwrap().output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (path, mut others): (Vec<_>, Vec<_>) =
            text.lines().partition(|line| line.starts_with("PATH="));
        others.sort_unstable();
        assert_eq!(others, ["HOME=/", "LC_ALL=C", "TMPDIR=/tmp", "TZ=UTC0"]);
        let [path] = path[..] else { panic!("{path:?}") };
        let path = path.trim_start_matches("PATH=");
        assert!(path.split(':').all(|directory| directory.starts_with('/')), "{path}");
    }
}
