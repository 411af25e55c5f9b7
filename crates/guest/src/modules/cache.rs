//! Cache of module indexes: reading thousands of compressed modules takes seconds, and kernels
//! rarely change.
//!
//! A cache file has one line with the format version, the fingerprint of the directory, and the
//! hash of the rest, which is JSON. If the file is invalid, the directory is read again.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use sys::whole::Fresh;

use super::Index;
use super::hash::sha256;

const FORMAT: &str = "fslab-modules-1";
/// Maximum size of a cache file in bytes; 6,000 modules take 2 MiB.
const FILE_MAX: u64 = 64 << 20;

/// Path of the cache file, derived from the path of the modules.
fn place(cache: &Path, modules: &Path) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    let path = fs::canonicalize(modules).unwrap_or_else(|_| modules.to_owned());
    let hash = sha256(path.as_os_str().as_bytes());
    cache.join(format!("modules-{}", &hash[..32]))
}

/// Loads the index if it is valid and matches the fingerprint.
pub(super) fn load(cache: &Path, modules: &Path, fingerprint: &str) -> Option<Index> {
    let path = place(cache, modules);
    if fs::metadata(&path).ok()?.len() > FILE_MAX {
        return None;
    }
    let text = fs::read_to_string(&path).ok()?;
    let (head, json) = text.split_once('\n')?;
    if head != line(fingerprint, json) {
        return None;
    }
    let mut index: Index = serde_json::from_str(json).ok()?;
    index.directory = modules.to_owned();
    Some(index)
}

/// Stores an index. A failure is only logged, because the next call then reads the modules again.
pub(super) fn store(cache: &Path, modules: &Path, fingerprint: &str, index: &Index) {
    if let Err(error) = try_store(cache, &place(cache, modules), fingerprint, index) {
        tracing::debug!("cannot cache the index of {}: {error}", modules.display());
    }
}

fn try_store(cache: &Path, path: &Path, fingerprint: &str, index: &Index) -> std::io::Result<()> {
    let json = serde_json::to_string(index)?;
    fs::create_dir_all(cache)?;
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
