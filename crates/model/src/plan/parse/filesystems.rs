//! The axis of filesystems: names and tables, what is done to a filesystem before the workload, and
//! what it becomes by that.

use std::{ops::Range, path::Path};

use toml::{Spanned, de::DeValue};

use super::{Item, Result, Table, array, count, layers, list, string, strings, wrong};
use crate::{
    cell::{FilesystemLevel, SetupStep},
    plan::{PlanError, Vocabulary},
    storage::{Place, Storage},
    suggest::nearest,
};

/// What a setup step is one of.
const STEPS: [&str; 4] = ["populate", "remove", "unmounted", "mounted"];

/// Every level of the axis, at least one.
pub(super) fn levels(
    axes: &Table<'_>,
    storage: &Storage,
    vocabulary: Vocabulary<'_>,
) -> Result<Vec<FilesystemLevel>> {
    let directory = matches!(storage.place, Place::Directory { .. });
    let items = match axes.get("filesystem") {
        None if directory => return Ok(vec![FilesystemLevel::plain("directory")]),
        None => {
            return Err(PlanError::new("`axes` has no `filesystem`", axes.span.clone())
                .cure("add filesystem = [\"ext4\", \"xfs\"]"));
        }
        Some(item) => (item, array(item)?),
    };
    let mut levels: Vec<FilesystemLevel> = Vec::new();
    for item in items.1 {
        let level = filesystem(item, vocabulary)?;
        if levels.iter().any(|other| other.name == level.name) {
            let message = format!("the filesystem name `{}` is there twice", level.name);
            return Err(PlanError::new(message, item.span()).cure("give each its own name"));
        }
        if directory != (level.base == "directory") {
            let message = match directory {
                true => format!("`{}` cannot be made in a directory", level.base),
                false => "`directory` needs a directory to measure".into(),
            };
            return Err(PlanError::new(message, item.span()).cure(
                "a plan either formats (storage.image, storage.device) or measures a directory \
                 (storage.directory, without axes.filesystem)",
            ));
        }
        if directory && (!level.setup.is_empty() || level.becomes.is_some()) {
            let message = "nothing is done to somebody else's filesystem beforehand";
            return Err(PlanError::new(message, item.span())
                .cure("take `setup` and `becomes` out, or name an image or a device"));
        }
        levels.push(level);
    }
    if levels.is_empty() {
        return Err(PlanError::new("the list is empty", items.0.span()));
    }
    Ok(levels)
}

fn filesystem(item: Item<'_>, vocabulary: Vocabulary<'_>) -> Result<FilesystemLevel> {
    let (level, span) = match item.get_ref() {
        DeValue::String(name) => (FilesystemLevel::plain(name.as_ref()), item.span()),
        DeValue::Table(table) => {
            let table = Table::open("filesystem", table, item.span())?;
            let name = table
                .get("name")
                .ok_or_else(|| PlanError::new("this filesystem has no `name`", item.span()))?;
            let base = table.get("base").unwrap_or(name);
            let setup = table.get("setup").map(setup).transpose()?.unwrap_or_default();
            let level = FilesystemLevel {
                name: string(name)?,
                base: string(base)?,
                mkfs: table.get("mkfs").map(strings).transpose()?.unwrap_or_default(),
                mount: table.get("mount").map(string).transpose()?.unwrap_or_default(),
                devices: table.get("devices").map(devices).transpose()?,
                layers: table.get("layers").map(layers::layers).transpose()?.unwrap_or_default(),
                becomes: becomes(&table, &setup, vocabulary)?,
                setup,
            };
            (level, base.span())
        }
        _ => return Err(wrong(item, "a name, or a table with a name")),
    };
    check_filesystem(&level.base, span, vocabulary)?;
    Ok(level)
}

fn devices(item: Item<'_>) -> Result<u32> {
    Ok(u32::try_from(count(item, 1, 16)?).unwrap_or(16))
}

/// Whether a catalogue entry has that name.
pub(in crate::plan) fn check_filesystem(
    base: &str,
    span: Range<usize>,
    vocabulary: Vocabulary<'_>,
) -> Result<()> {
    if vocabulary.filesystems.contains(&base) {
        return Ok(());
    }
    let error = PlanError::new(format!("there is no filesystem `{base}`"), span);
    Err(match nearest(base, vocabulary.filesystems.iter().copied()) {
        Some(near) => error.cure(format!("did you mean `{near}`?")),
        None => error.cure("`fslab list filesystems` shows those known; --filesystems adds others"),
    })
}

/// What it is after `setup`. Only a program that has the device to itself can make another
/// filesystem of one.
fn becomes(
    table: &Table<'_>,
    setup: &[SetupStep],
    vocabulary: Vocabulary<'_>,
) -> Result<Option<String>> {
    let Some(item) = table.get("becomes") else { return Ok(None) };
    let name = string(item)?;
    check_filesystem(&name, item.span(), vocabulary)?;
    if name == "directory" {
        return Err(PlanError::new("no filesystem becomes a directory", item.span())
            .cure("name the filesystem that the device holds after `setup`"));
    }
    if !setup.iter().any(|step| matches!(step, SetupStep::Unmounted { .. })) {
        let message = format!("nothing in `setup` makes it `{name}`");
        return Err(PlanError::new(message, item.span())
            .cure("add the program: { unmounted = [\"btrfs-convert\", \"{device}\"] }"));
    }
    Ok(Some(name))
}

fn setup(item: Item<'_>) -> Result<Vec<SetupStep>> {
    array(item)?.iter().map(step).collect()
}

fn step(item: Item<'_>) -> Result<SetupStep> {
    let DeValue::Table(table) = item.get_ref() else {
        let error = wrong(item, "a table with one step");
        return Err(error.cure(
            "write one of { populate = \"linux\", files = 39000 }, \
                               { remove = \"linux\" }, { unmounted = [\"tune2fs\", …] }, \
                               { mounted = [\"btrfs\", …] }",
        ));
    };
    let table = Table::open("setup", table, item.span())?;
    let mut given = STEPS.into_iter().filter_map(|key| Some((key, table.get(key)?)));
    let (key, what) = given.next().ok_or_else(|| {
        PlanError::new("this step does nothing", item.span())
            .cure(format!("give it one of {}", list(STEPS.into_iter())))
    })?;
    if let Some((other, _)) = given.next() {
        let message = format!("this step has both `{key}` and `{other}`");
        return Err(PlanError::new(message, item.span()).cure("make two steps of it"));
    }
    if let (Some(files), false) = (table.get("files"), key == "populate") {
        let message = "`files` says how many `populate` writes";
        return Err(PlanError::new(message, files.span()).cure("take it out of this step"));
    }
    match key {
        "populate" => {
            let files = table.get("files").ok_or_else(|| {
                PlanError::new("`populate` does not say how many files", item.span())
                    .cure("add files = 39000, about what the source of Linux 3.4 has")
            })?;
            Ok(SetupStep::Populate { directory: name(what)?, files: count(files, 1, 100_000_000)? })
        }
        "remove" => Ok(SetupStep::Remove { directory: name(what)? }),
        "unmounted" => {
            let argv = argv(what)?;
            if argv.iter().any(|argument| argument.contains("{mount}")) {
                let message = "`{mount}` is nowhere while the filesystem is not mounted";
                return Err(PlanError::new(message, what.span())
                    .cure("make it a `mounted` step, or write {device}"));
            }
            Ok(SetupStep::Unmounted { argv })
        }
        _ => Ok(SetupStep::Mounted { argv: argv(what)? }),
    }
}

/// The name of a directory in the root of the filesystem.
fn name(item: Item<'_>) -> Result<String> {
    let name = string(item)?;
    let plain = !name.is_empty() && !name.contains(['/', '\0']) && name != "." && name != "..";
    if plain && Path::new(&name).components().count() == 1 {
        return Ok(name);
    }
    Err(PlanError::new(format!("`{name}` is not the name of a directory"), item.span())
        .cure("write a plain name such as \"linux\"; it stands in the root of the filesystem"))
}

/// Program and arguments.
fn argv(item: Item<'_>) -> Result<Vec<String>> {
    let words = match item.get_ref() {
        DeValue::String(_) => {
            return Err(wrong(item, "a list of program and arguments")
                .cure("no shell is involved; write [\"tune2fs\", \"-o\", \"…\", \"{device}\"]"));
        }
        DeValue::Array(words) if words.is_empty() => {
            return Err(PlanError::new("the step names no program", item.span())
                .cure("write the program and its arguments: [\"e2fsck\", \"-f\", \"{device}\"]"));
        }
        _ => strings(item)?,
    };
    let unknown = |word: &String| {
        let rest = word.replace("{device}", "").replace("{mount}", "");
        rest.find('{').is_some_and(|at| rest[at..].contains('}'))
    };
    if let Some(word) = words.iter().find(|word| unknown(word)) {
        return Err(PlanError::new(format!("nothing is put into `{word}`"), item.span())
            .cure("what stands for something is {device} and {mount}"));
    }
    match words.first() {
        Some(program) if program.is_empty() => {
            Err(PlanError::new("the name of the program is empty", span_of_first(item))
                .cure("write the program first, then its arguments"))
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
    fn every_step_is_a_key_of_its_table() {
        let known: Vec<_> = keys::of("setup").collect();
        assert!(STEPS.iter().all(|step| known.contains(step)), "{known:?}");
    }
}
