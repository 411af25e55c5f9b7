//! Parser of the storage: table `storage`, or the levels of the axis `device`.

use toml::{Spanned, de::DeValue};

use super::{Item, Result, Table, array, count, keys, size, string, strings, wrong};
use crate::{
    cluster::ClusterHosts,
    plan::PlanError,
    setting::{SystemSetting, level_name},
    storage::{Allocation, Storage, StorageKind, StorageLevel},
    units::Bytes,
    workload::Value,
};

/// Keys that select the storage. `image_size` and `image_file` belong together.
const PLACES: [&str; 6] = ["image_size", "image_file", "device", "devices", "directory", "cluster"];

/// Keys that `image_size` requires.
const OF_IMAGES: [&str; 3] = ["image_count", "image_directory", "image_allocation"];

/// Maximum number of levels of the axis `device`.
const LEVELS_MAX: usize = 16;

/// Parses the storage of a plan: the levels of the axis `device`, or the table `storage`. With the
/// axis `size`, images have its largest size.
pub(super) fn storage(top: &Table<'_>, axes: &Table<'_>) -> Result<Storage> {
    let largest = axes.get("size").map(largest).transpose()?;
    let Some(item) = axes.get("device") else {
        let table = top.table("storage")?;
        let hint = "set one of image_size = \"4GiB\", device = \"/dev/…\", directory = \"/…\"";
        return of_kind(kind(&table, hint, largest)?, Some(&table));
    };
    let levels = levels(item, largest)?;
    let table = top.get("storage").map(|_| top.table("storage")).transpose()?;
    let own = table.iter().flat_map(|table| given(table, &PLACES).chain(given(table, &OF_IMAGES)));
    if let Some((key, item)) = own.into_iter().next() {
        let message = format!("the plan has both `axes.device` and `storage.{key}`");
        return Err(PlanError::new(message, item.span())
            .hint(format!("move `{key}` to the entries of `axes.device`, or remove one of them")));
    }
    of_kind(StorageKind::Levels { levels }, table.as_ref())
}

/// Parses the hosts of a plan; `None` if it runs on this host.
pub(super) fn cluster(top: &Table<'_>) -> Result<Option<ClusterHosts>> {
    let Some(table) = top.get("storage").map(|_| top.table("storage")).transpose()? else {
        return Ok(None);
    };
    if table.get("cluster").is_none() {
        let own = ["hosts", "launcher"].into_iter().find_map(|key| Some((key, table.get(key)?)));
        return match own {
            None => Ok(None),
            Some((key, item)) => {
                let message = format!("`{key}` requires `cluster`");
                Err(PlanError::new(message, item.span())
                    .hint("add cluster = \"/mnt/…\", a directory that all hosts mount"))
            }
        };
    }
    let hosts = table.get("hosts").map(strings).transpose()?.unwrap_or_default();
    let launcher = table.get("launcher").map(string).transpose()?;
    Ok(Some(ClusterHosts { hosts, launcher }))
}

/// Largest value of the axis `size`, whose values are checked with the other settings.
fn largest(item: Item<'_>) -> Result<Bytes> {
    let sizes: Vec<Bytes> = array(item)?.iter().map(size).collect::<Result<_>>()?;
    sizes.into_iter().max().ok_or_else(|| PlanError::new("the list is empty", item.span()))
}

fn of_kind(kind: StorageKind, table: Option<&Table<'_>>) -> Result<Storage> {
    let get = |key| table.and_then(|table| table.get(key));
    Ok(Storage {
        kind,
        memory_limit: get("memory_limit").map(size).transpose()?,
        external_directory: get("external_directory").map(string).transpose()?,
    })
}

/// Values of the axis `device`: the names of its levels. `None` if the storage is not an axis.
pub(super) fn axis(storage: &Storage) -> Option<(SystemSetting, Vec<Value>)> {
    let StorageKind::Levels { levels } = &storage.kind else { return None };
    let names = levels.iter().map(|level| Value::Text(level.name.clone()));
    Some((SystemSetting::Device, names.collect()))
}

/// Parses the levels of the axis `device`. Links and partitions, by which two levels may be the
/// same disk, are resolved when the devices are claimed.
fn levels(item: Item<'_>, largest: Option<Bytes>) -> Result<Vec<StorageLevel>> {
    let mut levels: Vec<StorageLevel> = Vec::new();
    for item in array(item)? {
        let level = level(item, largest)?;
        if levels.iter().any(|other| other.name == level.name) {
            let message = format!("duplicate device name `{}`", level.name);
            return Err(PlanError::new(message, item.span()).hint("give each device its own name"));
        }
        if let Some((path, other)) = shared(&levels, &level) {
            let message = format!("devices `{other}` and `{}` both use {path}", level.name);
            return Err(PlanError::new(message, item.span()).hint("list each device once"));
        }
        levels.push(level);
    }
    match levels.len() {
        0 => Err(PlanError::new("the list is empty", item.span())),
        1..=LEVELS_MAX => Ok(levels),
        many => {
            let message = format!("the list has {many} devices; the maximum is {LEVELS_MAX}");
            Err(PlanError::new(message, item.span()).hint("split the plan"))
        }
    }
}

fn level(item: Item<'_>, largest: Option<Bytes>) -> Result<StorageLevel> {
    let DeValue::Table(table) = item.get_ref() else {
        let error = wrong(item, "a table with a name and a device");
        return Err(error.hint("write { name = \"hdd\", device = \"/dev/…\" }"));
    };
    let table = Table::open("device", table, item.span())?;
    let name = table.get("name").ok_or_else(|| {
        PlanError::new("this device has no `name`", item.span()).hint("add name = \"hdd\"")
    })?;
    let text = string(name)?;
    let text = level_name(&text).map_err(|error| PlanError {
        hint: error.hint,
        ..PlanError::new(error.message, name.span())
    })?;
    let hint = "set one of device = \"/dev/…\", devices = [\"/dev/…\"], image_size = \"4GiB\"";
    Ok(StorageLevel { name: text, kind: kind(&table, hint, largest)? })
}

/// Path that another level also uses, and the name of that level.
fn shared<'a>(levels: &'a [StorageLevel], own: &'a StorageLevel) -> Option<(&'a str, &'a str)> {
    fn paths(level: &StorageLevel) -> Vec<&str> {
        match &level.kind {
            StorageKind::Devices { paths } => paths.iter().map(String::as_str).collect(),
            StorageKind::Image { file, .. } => file.iter().map(String::as_str).collect(),
            StorageKind::Directory { .. } | StorageKind::Levels { .. } => Vec::new(),
        }
    }
    let own = paths(own);
    levels.iter().find_map(|other| {
        let path = paths(other).into_iter().find(|path| own.contains(path))?;
        Some((path, other.name.as_str()))
    })
}

/// Keys of the list that a table has, with their values.
fn given<'a, 'b>(
    table: &'b Table<'a>,
    keys: &'static [&'static str],
) -> impl Iterator<Item = (&'static str, Item<'a>)> + 'b {
    // Entries of `axes.device` have no `directory`.
    let known = |key: &&str| keys::of_table(table.name).any(|own| own == *key);
    keys.iter().copied().filter(known).filter_map(|key| Some((key, table.get(key)?)))
}

/// Parses the kind of storage of table `storage`, or of an entry of `axes.device`. `hint` lists
/// the keys that select a kind. `largest` is the largest value of the axis `size`, if the plan has
/// this axis.
fn kind(table: &Table<'_>, hint: &str, largest: Option<Bytes>) -> Result<StorageKind> {
    let mut places = given(table, &PLACES);
    if let Some(size) = largest {
        return match places.next() {
            None => image(table, Some(size)),
            Some((key, item)) => {
                let message = format!("the plan has both `axes.size` and `{key}`");
                Err(PlanError::new(message, item.span())
                    .hint("`size` is that of image files; remove one of them"))
            }
        };
    }
    let none = || {
        let message = match table.name {
            "storage" => "`storage` has no device, image, or directory",
            _ => "this entry of `axes.device` has no device or image",
        };
        PlanError::new(message, table.span.clone()).hint(hint)
    };
    let (key, item) = places.next().ok_or_else(none)?;
    if let Some((other, item)) =
        places.find(|(other, _)| (key, *other) != ("image_size", "image_file"))
    {
        let message = format!("`{}` has both `{key}` and `{other}`", table.name);
        return Err(PlanError::new(message, item.span()).hint("remove one of them"));
    }
    let kind = match key {
        "image_size" | "image_file" => image(table, None)?,
        "device" => StorageKind::Devices { paths: vec![string(item)?] },
        "devices" => StorageKind::Devices { paths: strings(item)? },
        _ => StorageKind::Directory { path: string(item)? },
    };
    for key in OF_IMAGES {
        if let (Some(item), false) = (table.get(key), matches!(kind, StorageKind::Image { .. })) {
            let message = format!("`{key}` requires `image_size`");
            let hint = format!("remove `{key}`, or set `image_size`");
            return Err(PlanError::new(message, item.span()).hint(hint));
        }
    }
    Ok(kind)
}

fn image_size(table: &Table<'_>) -> Result<Bytes> {
    let Some(item) = table.get("image_size") else {
        let span = table.get("image_file").map_or(0..0, Spanned::span);
        return Err(PlanError::new("`image_file` requires `image_size`", span)
            .hint("add image_size = \"4GiB\" or another size"));
    };
    let size = size(item)?;
    if size < Bytes::mib(1) {
        let message = format!("image_size is {size}; the minimum is 1MiB");
        return Err(PlanError::new(message, item.span()));
    }
    Ok(size)
}

fn image(table: &Table<'_>, largest: Option<Bytes>) -> Result<StorageKind> {
    let size = largest.map_or_else(|| image_size(table), Ok)?;
    let images = table.get("image_count").map(|item| count(item, 1, 16)).transpose()?.unwrap_or(1);
    let file = table.get("image_file").map(string).transpose()?;
    if let (true, Some(item)) = (images > 1, table.get("image_file")) {
        return Err(PlanError::new("`image_file` requires `image_count` = 1", item.span())
            .hint("remove `image_file` or `image_count`"));
    }
    let allocation = match table.get("image_allocation") {
        None => Allocation::default(),
        Some(item) => {
            let name = string(item)?;
            [Allocation::Preallocated, Allocation::Sparse]
                .into_iter()
                .find(|allocation| allocation.name() == name)
                .ok_or_else(|| {
                    PlanError::new(format!("unknown image_allocation `{name}`"), item.span())
                        .hint("use preallocated or sparse")
                })?
        }
    };
    Ok(StorageKind::Image {
        size,
        count: u32::try_from(images).unwrap_or(1),
        directory: table.get("image_directory").map(string).transpose()?,
        file,
        allocation,
    })
}
