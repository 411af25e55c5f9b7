//! Mount of the cluster directory, on one host.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use super::messages::Mount;

/// Longest wait until a file of another host is visible. Network filesystems cache that a name does
/// not exist, NFS for up to a minute (nfs(5), acdirmax).
pub(super) const VISIBLE: Duration = Duration::from_secs(70);
/// Interval between two attempts.
const POLL: Duration = Duration::from_millis(50);

/// Mount that contains a directory.
///
/// # Errors
/// The reason, as text.
pub(super) fn of(path: &str) -> Result<Mount, String> {
    let real = fs::canonicalize(path).map_err(|error| format!("{path}: {error}"))?;
    if !real.is_dir() {
        return Err(format!("{path} is not a directory"));
    }
    let id = rustix::fs::statvfs(&real).map_err(|error| format!("{path}: {error}"))?.f_fsid;
    let table = rig::mount::table().map_err(|error| format!("/proc/self/mountinfo: {error}"))?;
    let mount = rig::mount::holder(&table, &real);
    let mount = mount.ok_or_else(|| format!("{path} is not on a mounted filesystem"))?;
    Ok(Mount {
        kind: mount.fstype.clone(),
        source: mount.source.clone(),
        mount_point: mount.target.display().to_string(),
        id: format!("{id:x}"),
    })
}

/// Writes a new file.
///
/// # Errors
/// The reason, as text.
pub(super) fn write(file: &str, token: &str) -> Result<String, String> {
    use std::io::Write;
    let written = fs::File::create_new(file)
        .and_then(|mut file| file.write_all(token.as_bytes()).and_then(|()| file.sync_all()));
    written.map(|()| String::new()).map_err(|error| format!("cannot write {file}: {error}"))
}

/// Reads a file that another host has written, as soon as it is visible. `limit` is the longest
/// wait.
///
/// # Errors
/// The reason, as text.
pub(super) fn read(file: &str, limit: Duration) -> Result<String, String> {
    let started = Instant::now();
    loop {
        let read = fs::read_to_string(file).map_err(|error| error.to_string());
        match read {
            Ok(text) if !text.is_empty() => return Ok(text),
            _ if started.elapsed() < limit => std::thread::sleep(POLL),
            Ok(text) => return Ok(text),
            Err(error) => return Err(format!("cannot read {file}: {error}")),
        }
    }
}

/// Waits until a directory of another host is visible. Returns false after `limit`.
pub(super) fn is_visible(directory: &Path, limit: Duration) -> bool {
    let started = Instant::now();
    while !directory.is_dir() {
        if started.elapsed() > limit {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_a_directory_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().display().to_string();
        let mount = of(&path).unwrap();
        assert!(path.starts_with(&mount.mount_point) && !mount.kind.is_empty(), "{mount:?}");
        assert!(of("/proc/self/status").unwrap_err().contains("not a directory"));
        assert!(of("/nonexistent").is_err());
    }

    #[test]
    fn a_token_is_written_once_and_read_when_visible() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token").display().to_string();
        assert!(read(&file, Duration::from_millis(1)).is_err());
        write(&file, "abc").unwrap();
        assert_eq!(read(&file, Duration::ZERO).unwrap(), "abc");
        assert!(write(&file, "other").is_err(), "an existing file is not replaced");
    }
}
