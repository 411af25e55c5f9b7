//! Parser of the filesystem axis: names, tables, and setup steps.

use std::{ops::Range, path::Path};

use toml::{Spanned, de::DeValue};

use super::{Item, Result, Table, array, count, layers, list, mounting, string, strings, wrong};
use crate::{
    cell::{FilesystemLevel, SetupStep},
    mount_commands::{MOUNT_PLACEHOLDERS, STEP_PLACEHOLDERS, unknown_placeholder},
    plan::{KnownNames, PlanError},
    storage::{Storage, StorageKind},
    suggest::nearest,
};

/// Keys of the types of setup steps. A step has exactly one of them.
const STEPS: [&str; 4] = ["populate", "remove", "run_unmounted", "run_mounted"];

/// Parses all levels of the filesystem axis, at least one.
pub(super) fn levels(
    axes: &Table<'_>,
    storage: &Storage,
    vocabulary: KnownNames<'_>,
) -> Result<Vec<FilesystemLevel>> {
    let directory = matches!(storage.kind, StorageKind::Directory { .. });
    let items = match axes.get("filesystem") {
        None if directory => return Ok(vec![FilesystemLevel::plain("directory")]),
        None => {
            return Err(PlanError::new("`axes` has no `filesystem`", axes.span.clone())
                .hint("add filesystem = [\"ext4\", \"xfs\"]"));
        }
        Some(item) => (item, array(item)?),
    };
    let mut levels: Vec<FilesystemLevel> = Vec::new();
    for item in items.1 {
        let level = filesystem(item, vocabulary)?;
        if levels.iter().any(|other| other.name == level.name) {
            let message = format!("duplicate filesystem name `{}`", level.name);
            return Err(
                PlanError::new(message, item.span()).hint("give each filesystem its own name")
            );
        }
        if mounting::misfit(&level, directory, vocabulary.mounted) {
            let message = match directory {
                true => format!("`{}` cannot be created in a directory", level.fs_type),
                false => format!("filesystem `{}` requires `storage.directory`", level.fs_type),
            };
            return Err(PlanError::new(message, item.span()).hint(
                "a plan either formats (storage.image_size, storage.device) or measures a \
                 directory \
                 (storage.directory, without axes.filesystem)",
            ));
        }
        if directory && mounting::needs_device(&level, vocabulary.mounted) {
            let message =
                "storage is a directory: `setup` and `converted_to` require a new filesystem";
            return Err(PlanError::new(message, item.span())
                .hint("remove them, or set `image_size` or `device`"));
        }
        levels.push(level);
    }
    if levels.is_empty() {
        return Err(PlanError::new("the list is empty", items.0.span()));
    }
    Ok(levels)
}

fn filesystem(item: Item<'_>, vocabulary: KnownNames<'_>) -> Result<FilesystemLevel> {
    let (level, span) = match item.get_ref() {
        DeValue::String(name) => (FilesystemLevel::plain(name.as_ref()), item.span()),
        DeValue::Table(table) => {
            let table = Table::open("filesystem", table, item.span())?;
            let name = table
                .get("name")
                .ok_or_else(|| PlanError::new("this filesystem has no `name`", item.span()))?;
            let base = table.get("type").unwrap_or(name);
            let fs_type = string(base)?;
            let is_mounted = table.get("mount_command").is_some()
                || vocabulary.mounted.iter().any(|known| known.name == fs_type);
            let setup = table.get("setup").map(|item| setup(item, is_mounted)).transpose()?;
            let setup = setup.unwrap_or_default();
            let level = FilesystemLevel {
                name: string(name)?,
                commands: mounting::commands(&table, &fs_type, vocabulary)?,
                fs_type,
                mkfs: table.get("mkfs_options").map(strings).transpose()?.unwrap_or_default(),
                mount: table.get("mount_options").map(string).transpose()?.unwrap_or_default(),
                devices: table.get("device_count").map(devices).transpose()?,
                layers: table.get("layers").map(layers::layers).transpose()?.unwrap_or_default(),
                converted_to: converted_to(&table, &setup, vocabulary)?,
                setup,
            };
            (level, base.span())
        }
        _ => return Err(wrong(item, "a name, or a table with a name")),
    };
    if level.commands.mount.is_empty() {
        check_filesystem(&level.fs_type, span.clone(), vocabulary)?;
    }
    let has_options = !(level.mkfs.is_empty() && level.mount.is_empty() && level.setup.is_empty());
    if level.is_raw() && (has_options || level.converted_to.is_some()) {
        let message = "`none` is the block device itself: it has no mkfs, mount, and setup";
        return Err(PlanError::new(message, span)
            .hint("keep only `name`, `type`, `device_count`, and `layers`"));
    }
    Ok(level)
}

fn devices(item: Item<'_>) -> Result<u32> {
    Ok(u32::try_from(count(item, 1, 16)?).unwrap_or(16))
}

/// Checks that the catalog has a filesystem type of this name.
pub(in crate::plan) fn check_filesystem(
    base: &str,
    span: Range<usize>,
    vocabulary: KnownNames<'_>,
) -> Result<()> {
    if vocabulary.filesystems.contains(&base) {
        return Ok(());
    }
    let error = PlanError::new(format!("unknown filesystem type `{base}`"), span);
    Err(match nearest(base, vocabulary.filesystems.iter().copied()) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => {
            error.hint("use a name of `fslab list filesystems`, or add a definition with --catalog")
        }
    })
}

/// Parses the type after `setup`. Requires a program that is run while unmounted, because only such
/// a program can convert a filesystem.
fn converted_to(
    table: &Table<'_>,
    setup: &[SetupStep],
    vocabulary: KnownNames<'_>,
) -> Result<Option<String>> {
    let Some(item) = table.get("converted_to") else { return Ok(None) };
    let name = string(item)?;
    check_filesystem(&name, item.span(), vocabulary)?;
    if name == "directory" {
        return Err(PlanError::new("a filesystem cannot be converted to `directory`", item.span())
            .hint("use the type of the filesystem on the device after `setup`"));
    }
    if !setup.iter().any(|step| matches!(step, SetupStep::Unmounted { .. })) {
        let message = format!("`setup` has no step that converts it to `{name}`");
        return Err(PlanError::new(message, item.span())
            .hint("add the program: { run_unmounted = [\"btrfs-convert\", \"{device}\"] }"));
    }
    Ok(Some(name))
}

fn setup(item: Item<'_>, is_mounted: bool) -> Result<Vec<SetupStep>> {
    let placeholders =
        if is_mounted { MOUNT_PLACEHOLDERS.as_slice() } else { STEP_PLACEHOLDERS.as_slice() };
    array(item)?.iter().map(|item| step(item, placeholders)).collect()
}

fn step(item: Item<'_>, placeholders: &[&str]) -> Result<SetupStep> {
    let DeValue::Table(table) = item.get_ref() else {
        let error = wrong(item, "a table with one step");
        return Err(error.hint(
            "write one of { populate = \"linux\", populate_files = 39000 }, \
                               { remove = \"linux\" }, { run_unmounted = [\"tune2fs\", …] }, \
                               { run_mounted = [\"btrfs\", …] }",
        ));
    };
    let table = Table::open("setup", table, item.span())?;
    let mut given = STEPS.into_iter().filter_map(|key| Some((key, table.get(key)?)));
    let (key, what) = given.next().ok_or_else(|| {
        PlanError::new("this step has no operation", item.span())
            .hint(format!("set one of {}", list(STEPS.into_iter())))
    })?;
    if let Some((other, _)) = given.next() {
        let message = format!("this step has both `{key}` and `{other}`");
        return Err(PlanError::new(message, item.span()).hint("use two steps"));
    }
    if let (Some(files), false) = (table.get("populate_files"), key == "populate") {
        let message = "`populate_files` requires `populate`";
        return Err(PlanError::new(message, files.span()).hint("remove it from this step"));
    }
    match key {
        "populate" => {
            let files = table.get("populate_files").ok_or_else(|| {
                PlanError::new("`populate` requires `populate_files`", item.span())
                    .hint("add populate_files = 39000, about the size of the source of Linux 3.4")
            })?;
            Ok(SetupStep::Populate { directory: name(what)?, files: count(files, 1, 100_000_000)? })
        }
        "remove" => Ok(SetupStep::Remove { directory: name(what)? }),
        "run_unmounted" => {
            let argv = argv(what, placeholders)?;
            if argv.iter().any(|argument| argument.contains("{mount}")) {
                let message = "`{mount}` is not available while the filesystem is unmounted";
                return Err(
                    PlanError::new(message, what.span()).hint("use `run_mounted`, or {device}")
                );
            }
            Ok(SetupStep::Unmounted { argv })
        }
        _ => Ok(SetupStep::Mounted { argv: argv(what, placeholders)? }),
    }
}

/// Parses the name of a directory in the root of the filesystem.
fn name(item: Item<'_>) -> Result<String> {
    let name = string(item)?;
    let plain = !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != "..";
    if plain && Path::new(&name).components().count() == 1 {
        return Ok(name);
    }
    Err(PlanError::new(format!("`{name}` is not the name of a directory"), item.span()).hint(
        "use a name without slashes, such as \"linux\"; the directory is in the root of \
               the filesystem",
    ))
}

/// Parses a program and its arguments, which may contain these placeholders.
pub(super) fn argv(item: Item<'_>, placeholders: &[&str]) -> Result<Vec<String>> {
    let words = match item.get_ref() {
        DeValue::String(_) => {
            return Err(wrong(item, "a list of program and arguments").hint(
                "commands are run without a shell; write [\"tune2fs\", \"-o\", \"…\", \
                       \"{device}\"]",
            ));
        }
        DeValue::Array(words) if words.is_empty() => {
            return Err(PlanError::new("the command is empty", item.span())
                .hint("write the program and its arguments: [\"e2fsck\", \"-f\", \"{device}\"]"));
        }
        _ => strings(item)?,
    };
    let unknown = |word: &&String| unknown_placeholder(word, placeholders).is_some();
    if let Some(word) = words.iter().find(unknown) {
        let names: Vec<String> = placeholders.iter().map(|name| format!("{{{name}}}")).collect();
        let (last, first) = names.split_last().map_or(("", &[][..]), |(last, all)| (last, all));
        let hint = format!("the placeholders are {} and {last}", first.join(", "));
        return Err(
            PlanError::new(format!("unknown placeholder in `{word}`"), item.span()).hint(hint)
        );
    }
    match words.first() {
        Some(program) if program.is_empty() => {
            Err(PlanError::new("the program name is empty", span_of_first(item))
                .hint("write the program first, then its arguments"))
        }
        _ => Ok(words),
    }
}

fn span_of_first(item: Item<'_>) -> Range<usize> {
    match item.get_ref() {
        DeValue::Array(words) => words.first().map_or_else(|| item.span(), Spanned::span),
        _ => item.span(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::keys;

    #[test]
    fn every_setup_step_is_a_plan_key() {
        let known: Vec<_> = keys::of_table("setup").collect();
        assert!(STEPS.iter().all(|step| known.contains(step)), "{known:?}");
    }
}
