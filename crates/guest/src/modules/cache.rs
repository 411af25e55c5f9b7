//! What was read of a folder, kept in a file: to read thousands of compressed modules takes
//! seconds, and kernels change seldom.
//!
//! The file has one line with the version of the format, the fingerprint of the folder, and the
//! hash of the rest, which is JSON. Whatever is wrong with it, the folder is read again.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use sys::whole::Fresh;

use super::Index;
use super::hash::sha256;

const FORMAT: &str = "fslab-modules-1";
/// The longest file that is believed, in bytes; 6,000 modules take 2 MiB.
const FILE_MAX: u64 = 64 << 20;

/// Where the index of a folder is kept: the name follows from the folder's path.
fn place(directory: &Path, folder: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let path = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let hash = sha256(path.as_os_str().as_bytes());
    directory.join(format!("modules-{}", &hash[..32]))
}

/// The index that was kept, if it is whole and of this folder as it is.
pub(super) fn load(directory: &Path, folder: &Path, fingerprint: &str) -> Option<Index> {
    let path = place(directory, folder);
    if fs::metadata(&path).ok()?.len() > FILE_MAX {
        return None;
    }
    let text = fs::read_to_string(&path).ok()?;
    let (head, json) = text.split_once('\n')?;
    if head != line(fingerprint, json) {
        return None;
    }
    let mut index: Index = serde_json::from_str(json).ok()?;
    index.folder = folder.to_owned();
    Some(index)
}

/// Keeps an index. What keeps it from being kept costs time and nothing else, so it is only logged.
pub(super) fn store(directory: &Path, folder: &Path, fingerprint: &str, index: &Index) {
    if let Err(error) = try_store(directory, &place(directory, folder), fingerprint, index) {
        tracing::debug!("the index of {} is not kept: {error}", folder.display());
    }
}

fn try_store(
    directory: &Path,
    path: &Path,
    fingerprint: &str,
    index: &Index,
) -> std::io::Result<()> {
    let json = serde_json::to_string(index)?;
    fs::create_dir_all(directory)?;
    let fresh = Fresh::beside(path, 0o666)?;
    let mut file = fresh.file();
    file.write_all(line(fingerprint, &json).as_bytes())?;
    file.write_all(b"\n")?;
    file.write_all(json.as_bytes())?;
    fresh.replace().map(drop)
}

fn line(fingerprint: &str, json: &str) -> String {
    format!("{FORMAT} {fingerprint} {}", sha256(json.as_bytes()))
}
