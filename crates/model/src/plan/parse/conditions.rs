//! The axes that say under which conditions a workload runs.

use super::{Result, Table, array, count, strings};
use crate::{
    cell::Fullness,
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
