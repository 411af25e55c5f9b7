//! The axes that say under which conditions a workload runs.

use super::{Result, Table, array, count, list, string, strings};
use crate::{
    cell::{Fullness, Isolation},
    plan::PlanError,
    storage::{Place, Storage},
};

/// The I/O schedulers.
pub(super) fn schedulers(axes: &Table<'_>, storage: &Storage) -> Result<Vec<String>> {
    match axes.get("scheduler") {
        None => Ok(Vec::new()),
        Some(item) if matches!(storage.place, Place::Directory { .. }) => {
            Err(PlanError::new("a directory has no device of its own to schedule", item.span())
                .cure("take `scheduler` out, or name an image or a device"))
        }
        Some(item) => strings(item),
    }
}

/// How full the filesystem is beforehand.
pub(super) fn fullness(axes: &Table<'_>, storage: &Storage) -> Result<Vec<Fullness>> {
    let Some(item) = axes.get("full") else { return Ok(Vec::new()) };
    if matches!(storage.place, Place::Directory { .. }) {
        return Err(PlanError::new("somebody else's filesystem is not filled up", item.span())
            .cure("take `full` out, or name an image or a device"));
    }
    let level = |item| {
        let percent = count(item, 0, Fullness::MOST.0.into())?;
        Ok(Fullness(u8::try_from(percent).unwrap_or(Fullness::MOST.0)))
    };
    let levels = array(item).and_then(|items| items.iter().map(level).collect());
    levels.map_err(|error: PlanError| error.cure("write whole percents: full = [0, 50, 90]"))
}

/// What separates one trial from the next.
pub(super) fn isolation(top: &Table<'_>, storage: &Storage) -> Result<Isolation> {
    let Some(item) = top.get("isolation") else { return Ok(Isolation::default()) };
    let name = string(item)?;
    let isolation = named(&name).ok_or_else(|| {
        PlanError::new(format!("there is no isolation `{name}`"), item.span())
            .cure(format!("use {}", list(Isolation::ALL.iter().map(|isolation| isolation.name()))))
    })?;
    match unfit(isolation, storage) {
        None => Ok(isolation),
        Some((message, cure)) => Err(PlanError::new(message, item.span()).cure(cure)),
    }
}

/// The isolation of that name.
pub(in crate::plan) fn named(name: &str) -> Option<Isolation> {
    Isolation::ALL.into_iter().find(|isolation| isolation.name() == name)
}

/// Why trials on a storage cannot be separated like that, and what can be done.
pub(in crate::plan) fn unfit(
    isolation: Isolation,
    storage: &Storage,
) -> Option<(&'static str, &'static str)> {
    match (isolation, &storage.place) {
        (Isolation::Reattach, Place::Devices { .. }) => {
            Some(("only images can be attached anew", "use remount or reboot, or name an image"))
        }
        (Isolation::Reattach, Place::Directory { .. }) => Some((
            "a directory has no image that could be attached anew",
            "use remount or reboot, or name an image",
        )),
        (Isolation::Remount | Isolation::Reboot, _)
        | (Isolation::Reattach, Place::Image { .. }) => None,
    }
}
