//! Writes of settings.

use std::path::PathBuf;

/// Write of one file for a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Description of the setting, such as `read_ahead of sda (KiB)`.
    pub setting: String,
    /// File.
    pub path: PathBuf,
    /// Text to write, and expected text when read back.
    pub text: String,
    /// File that holds the setting now and that the kernel clears when this one is written.
    pub from: Option<PathBuf>,
    /// True if the kernel may change the value by itself; undo then restores it regardless of the
    /// value read.
    pub moves: bool,
    /// File of the parent setting, with which this one is restored.
    pub basis: Option<PathBuf>,
}

/// Settings that a write may disturb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedSettings {
    /// Files of the settings.
    pub files: Vec<PathBuf>,
    /// File of the parent setting, with which these are restored.
    pub basis: Option<PathBuf>,
}
