//! Fuzz targets of parsers of untrusted input. Each accepts any bytes, and must neither panic nor
//! take unbounded time or memory.

use crate::replay::text_of;

/// Loadfile.
pub fn load_file(bytes: &[u8]) {
    let _refused = crate::check_load(bytes);
}

/// Loadfile as stored on disk, possibly compressed by gzip.
pub fn load_file_on_disk(bytes: &[u8]) {
    let Ok((_file, path)) = sys::input::in_memory(bytes) else { return };
    if let Ok(text) = text_of(&path) {
        load_file(&text);
    }
}

/// Crash state of a phase.
pub fn crash_state(bytes: &[u8]) {
    let Ok((_file, path)) = sys::input::in_memory(bytes) else { return };
    let limits = crate::crash_report::Limits { blocks: 1 << 12, ops: 1 << 12 };
    let _refused = crate::crash_report::crash_report_within(&path, limits);
}
