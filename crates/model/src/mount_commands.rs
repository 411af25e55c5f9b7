//! Commands of a plan that mount a filesystem, and the placeholders of all commands of a plan.

use serde::{Deserialize, Serialize};

/// Placeholders of `run_unmounted` and `run_mounted` on a filesystem that the kernel mounts.
pub const STEP_PLACEHOLDERS: [&str; 2] = ["device", "mount"];

/// Placeholders of a filesystem that is mounted by a command: first device, mount point, directory
/// for the data of the filesystem, generated name, source, and mount options.
pub const MOUNT_PLACEHOLDERS: [&str; 6] =
    ["device", "mount", "directory", "name", "source", "options"];

/// Mount of a filesystem by programs instead of mount(2). Empty fields have the values of the
/// catalog entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MountCommands {
    /// Program that mounts the filesystem, and its arguments, without a shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mount: Vec<String>,
    /// Program that unmounts the filesystem, and its arguments; empty for umount(2).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub umount: Vec<String>,
    /// Filesystem type that `/proc/self/mountinfo` must show after the mount.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mounted_type: String,
    /// Value of the placeholder `{source}`, such as `server:/export`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source: String,
}

impl MountCommands {
    /// True if no field is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Filesystem type of the catalog that a command mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedType {
    /// Name of the type.
    pub name: String,
    /// True if the filesystem has no device: its data is in a directory or on a server.
    pub in_directory: bool,
}

/// First placeholder in an argument that is not one of the known ones.
pub fn unknown_placeholder<'a>(argument: &'a str, known: &[&str]) -> Option<&'a str> {
    let braces = argument.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    braces.map(|(name, _)| name).find(|name| !known.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_found() {
        let unknown = |text| unknown_placeholder(text, &STEP_PLACEHOLDERS);
        assert_eq!(unknown("{device}{mount}:x"), None);
        assert_eq!(unknown("a{directory}"), Some("directory"));
        assert_eq!(unknown("{device}{"), None);
        assert_eq!(unknown_placeholder("{name},{options}", &MOUNT_PLACEHOLDERS), None);
    }

    #[test]
    fn empty_commands_are_not_part_of_a_cell() {
        assert!(MountCommands::default().is_empty());
        assert_eq!(serde_json::to_string(&MountCommands::default()).unwrap(), "{}");
    }
}
