//! Descriptions of writes that change a system setting.

use std::path::PathBuf;

/// Write of one kernel file, by which a setting is changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Description of the setting, such as `read_ahead of sda (KiB)`.
    pub setting: String,
    /// File.
    pub path: PathBuf,
    /// Text to write. The file is expected to contain the same text when it is read back.
    pub text: String,
    /// File that contains the current value and that the kernel clears when `path` is written, such
    /// as `dirty_ratio` when `dirty_bytes` is written. `None`: `path` itself contains the value.
    pub from: Option<PathBuf>,
    /// True if the kernel may change the value by itself. Undo then restores the old value even if
    /// the file no longer contains the value of the run.
    pub moves: bool,
    /// File of the setting on which this setting depends, such as `scheduler` for `nr_requests`.
    /// Undo restores this setting only if that file has the value that it had at the time of this
    /// write.
    pub basis: Option<PathBuf>,
}

/// Settings that a write to another setting may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedSettings {
    /// Files of the settings.
    pub files: Vec<PathBuf>,
    /// File of the setting on which these settings depend. Undo restores these settings only if
    /// that file has the value that it had when they were saved.
    pub basis: Option<PathBuf>,
}
