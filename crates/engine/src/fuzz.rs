//! Readers of untrusted input as fuzz targets: each takes any bytes, and must neither panic nor
//! take unbounded time or memory.

use crate::replay::text_of;

/// A load file.
pub fn load_file(bytes: &[u8]) {
    let _refused = crate::check_load(bytes);
}

/// A load file as it is on disk, which may be compressed by gzip.
pub fn load_file_on_disk(bytes: &[u8]) {
    let Ok((_file, path)) = sys::input::in_memory(bytes) else { return };
    if let Ok(text) = text_of(&path) {
        load_file(&text);
    }
}

/// The state that a crash left of a phase.
pub fn crash_state(bytes: &[u8]) {
    let Ok((_file, path)) = sys::input::in_memory(bytes) else { return };
    let _refused = crate::survival(&path);
}
