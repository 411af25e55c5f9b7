//! The axes that say under which conditions a workload runs.

use super::{Item, Result, Table, array, count, list, string, strings, value};
use crate::{
    cell::{Fullness, Isolation, Twins},
    factor::{FACTORS, Factor},
    guest::{GuestDevice, GuestDisk, GuestKind},
    plan::{PlanError, Spoiled, WorkloadEntry},
    storage::{Place, Storage},
    study::Study,
    suggest::nearest,
    units::Nanos,
    workload::{Value, ValueError},
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

/// The settings of the machine, in the order written.
pub(super) fn factors(axes: &Table<'_>, storage: &Storage) -> Result<Vec<(Factor, Vec<Value>)>> {
    if matches!(storage.place, Place::Directory { .. }) {
        let mut specs = FACTORS.iter().filter(|spec| spec.factor.of_devices());
        if let Some(item) = specs.find_map(|spec| Some((spec.name, axes.get(spec.name)?))) {
            let (message, cure) = no_device(item.0);
            return Err(PlanError::new(message, item.1.span()).cure(cure));
        }
    }
    factors_of(|key| axes.get(key))
}

/// Why workloads cannot have conditions of their own on a storage: a directory has no device to
/// set.
pub(super) fn own(workloads: &[WorkloadEntry], storage: &Storage) -> Result<()> {
    if !matches!(storage.place, Place::Directory { .. }) {
        return Ok(());
    }
    let error = |(message, cure): (String, String), entry: &WorkloadEntry| {
        Err(PlanError::new(message, entry.span.clone()).cure(cure))
    };
    for entry in workloads {
        if entry.schedulers.is_some() {
            return error(no_device("scheduler"), entry);
        }
        if let Some((factor, _)) = entry.factors.iter().find(|(factor, _)| factor.of_devices()) {
            return error(no_device(factor.spec().name), entry);
        }
    }
    Ok(())
}

/// That a directory has no device for a setting, and what to do.
pub(in crate::plan) fn no_device(setting: &str) -> (String, String) {
    let message = format!("a directory has no device of its own for `{setting}`");
    (message, format!("take `{setting}` out, or name an image or a device"))
}

/// Those among some keys.
pub(super) fn factors_of<'a>(
    get: impl Fn(&'static str) -> Option<Item<'a>>,
) -> Result<Vec<(Factor, Vec<Value>)>> {
    let mut factors = Vec::new();
    for spec in FACTORS {
        let Some(item) = get(spec.name) else { continue };
        let values = array(item)?;
        if values.is_empty() {
            return Err(PlanError::new("the list is empty", item.span()));
        }
        let values = values.iter().map(|item| value(spec.kind, item)).collect::<Result<_>>()?;
        factors.push((item.span().start, spec.factor, values));
    }
    factors.sort_by_key(|(start, _, _)| *start);
    Ok(factors.into_iter().map(|(_, factor, values)| (factor, values)).collect())
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

/// Which cells are measured twice.
pub(super) fn twins(item: Item<'_>) -> Result<Twins> {
    let name = string(item)?;
    named_twins(&name).ok_or_else(|| {
        PlanError::new(format!("`twins` cannot be `{name}`"), item.span())
            .cure(format!("use {}", list(Twins::ALL.iter().map(|twins| twins.name()))))
    })
}

/// What becomes of trials that the machine spoiled.
pub(super) fn spoiled(item: Item<'_>) -> Result<Spoiled> {
    let name = string(item)?;
    Spoiled::named(&name).ok_or_else(|| {
        PlanError::new(format!("`invalid` cannot be `{name}`"), item.span())
            .cure(format!("use {}", list(Spoiled::ALL.iter().map(|spoiled| spoiled.name()))))
    })
}

/// What kind of guest the plan is measured in.
pub(super) fn guest(item: Item<'_>) -> Result<GuestKind> {
    let name = string(item)?;
    GuestKind::named(&name).ok_or_else(|| {
        PlanError::new(format!("there is no guest `{name}`"), item.span())
            .cure(format!("use {}", list(GuestKind::ALL.iter().map(|kind| kind.name()))))
    })
}

/// The disk of a guest that counts instructions.
pub(super) fn guest_disk(storage: &Table<'_>) -> Result<GuestDisk> {
    let at = |item: Item<'_>, error: ValueError| PlanError {
        cure: error.cure,
        ..PlanError::new(error.message, item.span())
    };
    let device = storage
        .get("guest_device")
        .map(|item| named_device(&string(item)?).map_err(|error| at(item, error)));
    let latency = storage
        .get("guest_latency")
        .map(|item| named_latency(&string(item)?).map_err(|error| at(item, error)));
    Ok(GuestDisk { device: device.transpose()?, latency: latency.transpose()? })
}

/// The device of that name.
pub(in crate::plan) fn named_device(name: &str) -> std::result::Result<GuestDevice, ValueError> {
    GuestDevice::named(name).ok_or_else(|| {
        ValueError::new(format!("there is no guest device `{name}`"))
            .cure(format!("use {}", list(GuestDevice::ALL.into_iter().map(GuestDevice::name))))
    })
}

/// What a request is to take.
pub(in crate::plan) fn named_latency(text: &str) -> std::result::Result<Nanos, ValueError> {
    let time = Nanos::parse(text).map_err(|error| ValueError::new(error.to_string()))?;
    if time > GuestDisk::LATENCY_MAX {
        let message = format!("a guest latency of {time} is too long");
        return Err(
            ValueError::new(message).cure(format!("the most is {}", GuestDisk::LATENCY_MAX))
        );
    }
    Ok(time)
}

/// Why a plan cannot have the guest's disk that it asks for, and what can be done.
pub(in crate::plan) fn unfit_disk(
    guest: Option<GuestKind>,
    disk: GuestDisk,
    storage: &Storage,
) -> Option<(String, &'static str)> {
    let named =
        [("guest_device", disk.device.is_some()), ("guest_latency", disk.latency.is_some())];
    if guest != Some(GuestKind::Counted) {
        let (key, _) = named.into_iter().find(|(_, named)| *named)?;
        let message =
            format!("`{key}` is of guests that count instructions, and the plan's is not");
        return Some((message, "set guest to counted, or take the key out of `storage`"));
    }
    if disk.device == Some(GuestDevice::Brd) && disk.latency() > Nanos(0) {
        let message = "brd answers at once and has no `guest_latency`".to_owned();
        return Some((message, "take null_blk for `guest_device`, or the latency out"));
    }
    match storage.place {
        Place::Image { count: 2.., .. } => Some((
            "a guest that counts instructions has one disk, and the plan has several images".into(),
            "take `images` out, or another kind of guest",
        )),
        Place::Image { .. } | Place::Devices { .. } | Place::Directory { .. } => None,
    }
}

/// The study whose tables and charts the report shows first.
pub(super) fn view(item: Item<'_>) -> Result<Study> {
    let name = string(item)?;
    named_view(&name).map_err(|error| PlanError {
        cure: error.cure,
        ..PlanError::new(error.message, item.span())
    })
}

/// The study of that name, or what it may have been meant to be.
pub(in crate::plan) fn named_view(name: &str) -> std::result::Result<Study, ValueError> {
    Study::named(name).ok_or_else(|| {
        let error = ValueError::new(format!("there is no view `{name}`"));
        error.cure(match nearest(name, Study::ALL.map(Study::name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use {}", list(Study::ALL.into_iter().map(Study::name))),
        })
    })
}

/// The twins of that name.
pub(in crate::plan) fn named_twins(name: &str) -> Option<Twins> {
    Twins::ALL.into_iter().find(|twins| twins.name() == name)
}

/// How long all trials may take together; more than nothing.
pub(super) fn budget(item: Item<'_>) -> Result<Nanos> {
    let time = Nanos::parse(&string(item)?)
        .map_err(|error| PlanError::new(error.to_string(), item.span()))?;
    match time {
        Nanos(0) => Err(PlanError::new("a budget of no time measures nothing", item.span())),
        time => Ok(time),
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
