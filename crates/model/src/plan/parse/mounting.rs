//! Parser of the keys of a filesystem that is mounted by a command.

use super::{Result, Table, filesystems::argv, string};
use crate::{
    cell::{FilesystemLevel, SetupStep},
    mount_commands::{MOUNT_PLACEHOLDERS, MountCommands, MountedType},
    plan::{KnownNames, PlanError},
};

/// Keys of the commands other than `mount_command`.
const OTHER_KEYS: [&str; 3] = ["umount_command", "mounted_type", "source"];

/// Parses the commands of an entry of `filesystem`.
pub(super) fn commands(
    table: &Table<'_>,
    fs_type: &str,
    vocabulary: KnownNames<'_>,
) -> Result<MountCommands> {
    let mount = table.get("mount_command");
    if mount.is_none() && !vocabulary.mounted.iter().any(|known| known.name == fs_type) {
        return match OTHER_KEYS.into_iter().find_map(|key| Some((key, table.get(key)?))) {
            None => Ok(MountCommands::default()),
            Some((key, item)) => {
                let message = format!("`{key}` requires `mount_command`");
                Err(PlanError::new(message, item.span())
                    .hint(format!("add `mount_command`, or remove `{key}`")))
            }
        };
    }
    let command = |key| table.get(key).map(|item| argv(item, &MOUNT_PLACEHOLDERS)).transpose();
    let text = |key| table.get(key).map(string).transpose();
    let commands = MountCommands {
        mount: command("mount_command")?.unwrap_or_default(),
        umount: command("umount_command")?.unwrap_or_default(),
        mounted_type: text("mounted_type")?.unwrap_or_default(),
        source: text("source")?.unwrap_or_default(),
    };
    if let Some(item) = mount {
        check(table, fs_type, vocabulary, &commands)
            .map_err(|(message, hint)| PlanError::new(message, item.span()).hint(hint))?;
    }
    Ok(commands)
}

/// Checks that the other keys of the entry agree with its `mount_command`. The error consists of a
/// message and a hint.
fn check(
    table: &Table<'_>,
    fs_type: &str,
    vocabulary: KnownNames<'_>,
    commands: &MountCommands,
) -> std::result::Result<(), (String, &'static str)> {
    let uses = |name| commands.mount.iter().any(|argument| argument.contains(name));
    let has = |key| table.get(key).is_some();
    let message = |text: &str| text.to_owned();
    if fs_type == "directory" {
        let text = "filesystem `directory` is not mounted, so it has no `mount_command`";
        return Err((message(text), "set `type` to the type that is mounted"));
    }
    if !uses("{mount}") && !uses("{name}") {
        return Err((
            message("`mount_command` has no {mount}"),
            "add \"{mount}\", the directory on which the filesystem is mounted",
        ));
    }
    if uses("{source}") && commands.source.is_empty() {
        return Err((
            message("`mount_command` has {source}, but the entry has no `source`"),
            "add source = \"server:/export\"",
        ));
    }
    if has("mount_options") && !uses("{options}") {
        return Err((
            message("`mount_options` has no effect: `mount_command` has no {options}"),
            "add {options} to an argument, or write the options into `mount_command`",
        ));
    }
    if has("mkfs_options") && !vocabulary.filesystems.contains(&fs_type) {
        let text = format!("`mkfs_options` has no effect: there is no mkfs for `{fs_type}`");
        return Err((text, "create the filesystem with a `run_unmounted` step of `setup`"));
    }
    if has("converted_to") {
        return Err((
            message("an entry has `mount_command` or `converted_to`, not both"),
            "convert with a `run_unmounted` step of `setup`",
        ));
    }
    Ok(())
}

/// Placement of a filesystem that is mounted by a command: true if its data is in a directory or on
/// a server, false if it is on devices, and `None` if the storage decides. For other filesystems,
/// the outer option is `None`.
fn in_directory(level: &FilesystemLevel, mounted: &[MountedType]) -> Option<Option<bool>> {
    match mounted.iter().find(|known| known.name == level.fs_type) {
        Some(known) => Some(Some(known.in_directory)),
        None => (!level.commands.mount.is_empty()).then_some(None),
    }
}

/// True if a command mounts the filesystem.
pub(in crate::plan) fn is_mounted(level: &FilesystemLevel, mounted: &[MountedType]) -> bool {
    in_directory(level, mounted).is_some()
}

/// True if the filesystem cannot be measured on this storage, which is a directory or devices.
pub(in crate::plan) fn misfit(
    level: &FilesystemLevel,
    directory: bool,
    mounted: &[MountedType],
) -> bool {
    match in_directory(level, mounted) {
        Some(placement) => placement.is_some_and(|placement| placement != directory),
        None => (level.fs_type == "directory") != directory,
    }
}

/// True if the entry, whose storage is a directory, requires a new filesystem on a device. On a
/// filesystem that is mounted by a command, programs may run, but the contents of the root of, for
/// example, a file server are not changed.
pub(in crate::plan) fn needs_device(level: &FilesystemLevel, mounted: &[MountedType]) -> bool {
    let runs =
        |step: &SetupStep| matches!(step, SetupStep::Unmounted { .. } | SetupStep::Mounted { .. });
    match in_directory(level, mounted) {
        Some(_) => !level.setup.iter().all(runs),
        None => !level.setup.is_empty() || level.converted_to.is_some(),
    }
}
