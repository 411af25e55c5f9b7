//! Parser of the axes that define run conditions, and of the top-level keys that control a run.

use super::{Item, Result, Table, array, count, list, storage::axis, string, strings, value};
use crate::{
    cell::{AaControl, FillLevel, Isolation},
    guest::{GuestDevice, GuestDisk, GuestKind},
    plan::{InvalidTrials, PlanError, WorkloadEntry},
    setting::{SETTINGS, SystemSetting},
    storage::{Storage, StorageKind},
    study::Study,
    suggest::nearest,
    units::Nanos,
    workload::{Value, ValueError},
};

/// Parses the I/O schedulers.
pub(super) fn schedulers(axes: &Table<'_>, storage: &Storage) -> Result<Vec<String>> {
    match axes.get("scheduler") {
        None => Ok(Vec::new()),
        Some(item) if matches!(storage.kind, StorageKind::Directory { .. }) => Err(PlanError::new(
            "storage is a directory: `scheduler` requires a device",
            item.span(),
        )
        .hint("remove `scheduler`, or set `image_size` or `device`")),
        Some(item) => strings(item),
    }
}

/// Parses the fill levels.
pub(super) fn fill_levels(axes: &Table<'_>, storage: &Storage) -> Result<Vec<FillLevel>> {
    let Some(item) = axes.get("fill_percent") else { return Ok(Vec::new()) };
    if matches!(storage.kind, StorageKind::Directory { .. }) {
        return Err(PlanError::new(
            "storage is a directory: `fill_percent` requires a new filesystem",
            item.span(),
        )
        .hint("remove `fill_percent`, or set `image_size` or `device`"));
    }
    let level = |item| {
        let percent = count(item, 0, FillLevel::MAX.0.into())?;
        Ok(FillLevel(u8::try_from(percent).unwrap_or(FillLevel::MAX.0)))
    };
    let levels = array(item).and_then(|items| items.iter().map(level).collect());
    levels
        .map_err(|error: PlanError| error.hint("use whole percentages: fill_percent = [0, 50, 90]"))
}

/// Parses the axes of system settings, in text order.
pub(super) fn system_settings(
    axes: &Table<'_>,
    storage: &Storage,
) -> Result<Vec<(SystemSetting, Vec<Value>)>> {
    if matches!(storage.kind, StorageKind::Directory { .. }) {
        let mut specs = SETTINGS.iter().filter(|spec| spec.setting.of_devices());
        if let Some(item) = specs.find_map(|spec| Some((spec.name, axes.get(spec.name)?))) {
            let (message, hint) = no_device(item.0);
            return Err(PlanError::new(message, item.1.span()).hint(hint));
        }
    }
    // The axis `device` lists tables, which are part of the storage.
    let device = SystemSetting::Device.spec().name;
    let mut settings = settings_of(|key| if key == device { None } else { axes.get(key) })?;
    settings.extend(axis(storage));
    Ok(settings)
}

/// Rejects schedulers and device settings of single workloads if the storage is a directory, and
/// names of devices that `axes.device` does not have.
pub(super) fn check_own_conditions(workloads: &[WorkloadEntry], storage: &Storage) -> Result<()> {
    for entry in workloads {
        if let Some((message, hint)) = unknown_level(entry, storage) {
            return Err(PlanError::new(message, entry.span.clone()).hint(hint));
        }
    }
    if !matches!(storage.kind, StorageKind::Directory { .. }) {
        return Ok(());
    }
    let error = |(message, hint): (String, String), entry: &WorkloadEntry| {
        Err(PlanError::new(message, entry.span.clone()).hint(hint))
    };
    for entry in workloads {
        if entry.schedulers.is_some() {
            return error(no_device("scheduler"), entry);
        }
        if let Some((factor, _)) =
            entry.system_settings.iter().find(|(factor, _)| factor.of_devices())
        {
            return error(no_device(factor.spec().name), entry);
        }
    }
    Ok(())
}

/// Error message and hint if a workload names a device that `axes.device` does not have, or a size
/// above those of the images.
pub(in crate::plan) fn unknown_level(
    entry: &WorkloadEntry,
    storage: &Storage,
) -> Option<(String, String)> {
    entry
        .system_settings
        .iter()
        .find_map(|own| unfit_size(own, storage))
        .or_else(|| unknown_device(entry, storage))
}

/// Error message and hint if sizes of filesystems do not fit the storage.
pub(in crate::plan) fn unfit_size(
    (setting, sizes): &(SystemSetting, Vec<Value>),
    storage: &Storage,
) -> Option<(String, String)> {
    if *setting != SystemSetting::Size {
        return None;
    }
    let room = storage.kind.each().into_iter().map(|(_, kind)| match kind {
        StorageKind::Image { size, .. } => Some(*size),
        _ => None,
    });
    let Some(room) = room.collect::<Option<Vec<_>>>() else {
        let hint = "remove `size`, or set `image_directory` instead of devices and directories";
        return Some(("`size` requires image files".into(), hint.into()));
    };
    let exceeds =
        |size: &&Value| matches!(size, Value::Size(size) if room.iter().any(|it| it < size));
    let size = sizes.iter().find(exceeds)?;
    Some((
        format!("`size` {size} is larger than the images of the plan"),
        "add the size to `axes.size`".into(),
    ))
}

fn unknown_device(entry: &WorkloadEntry, storage: &Storage) -> Option<(String, String)> {
    let device = |(setting, _): &&(SystemSetting, Vec<Value>)| *setting == SystemSetting::Device;
    let (_, named) = entry.system_settings.iter().find(device)?;
    let known: Vec<&str> = storage.kind.each().into_iter().filter_map(|(name, _)| name).collect();
    let mut named = named.iter().map(ToString::to_string);
    let unknown = named.find(|name| !known.contains(&name.as_str()))?;
    let hint = match known.as_slice() {
        [] => "add `device` to `axes`".to_owned(),
        known => format!("use {}", known.join(", ")),
    };
    Some((format!("`axes.device` has no device `{unknown}`"), hint))
}

/// Error message and hint for a device setting of a plan whose storage is a directory.
pub(in crate::plan) fn no_device(setting: &str) -> (String, String) {
    let message = format!("storage is a directory: `{setting}` requires a device");
    (message, format!("remove `{setting}`, or set `image_size` or `device`"))
}

/// Parses the system settings among the keys of a table.
pub(super) fn settings_of<'a>(
    get: impl Fn(&'static str) -> Option<Item<'a>>,
) -> Result<Vec<(SystemSetting, Vec<Value>)>> {
    let mut factors = Vec::new();
    for spec in SETTINGS {
        let Some(item) = get(spec.name) else { continue };
        let values = array(item)?;
        if values.is_empty() {
            return Err(PlanError::new("the list is empty", item.span()));
        }
        let values = values.iter().map(|item| value(spec.kind, item)).collect::<Result<_>>()?;
        factors.push((item.span().start, spec.setting, values));
    }
    factors.sort_by_key(|(start, _, _)| *start);
    Ok(factors.into_iter().map(|(_, factor, values)| (factor, values)).collect())
}

/// Parses the isolation between trials.
pub(super) fn isolation(top: &Table<'_>, storage: &Storage) -> Result<Isolation> {
    let Some(item) = top.get("isolation") else { return Ok(Isolation::default()) };
    let name = string(item)?;
    let isolation = isolation_from_name(&name).ok_or_else(|| {
        PlanError::new(format!("unknown isolation `{name}`"), item.span())
            .hint(format!("use {}", list(Isolation::ALL.iter().map(|isolation| isolation.name()))))
    })?;
    match unfit(isolation, storage) {
        None => Ok(isolation),
        Some((message, hint)) => Err(PlanError::new(message, item.span()).hint(hint)),
    }
}

/// Parses the A/A control.
pub(super) fn aa_control(item: Item<'_>) -> Result<AaControl> {
    let name = string(item)?;
    aa_control_from_name(&name).ok_or_else(|| {
        PlanError::new(format!("unknown aa_control `{name}`"), item.span()).hint(format!(
            "use {}",
            list(AaControl::ALL.iter().map(|aa_control| aa_control.name()))
        ))
    })
}

/// Parses the handling of invalid trials.
pub(super) fn invalid_trials(item: Item<'_>) -> Result<InvalidTrials> {
    let name = string(item)?;
    InvalidTrials::from_name(&name).ok_or_else(|| {
        PlanError::new(format!("unknown invalid_trials `{name}`"), item.span())
            .hint(format!("use {}", list(InvalidTrials::ALL.iter().map(|value| value.name()))))
    })
}

/// Parses the guest kind.
pub(super) fn guest(item: Item<'_>) -> Result<GuestKind> {
    let name = string(item)?;
    GuestKind::from_name(&name).ok_or_else(|| {
        PlanError::new(format!("unknown guest `{name}`"), item.span())
            .hint(format!("use {}", list(GuestKind::ALL.iter().map(|kind| kind.name()))))
    })
}

/// Parses the disk of an icount guest.
pub(super) fn guest_disk(top: &Table<'_>) -> Result<GuestDisk> {
    // The storage may be the axis `device`.
    let Some(storage) = top.get("storage").map(|_| top.table("storage")).transpose()? else {
        return Ok(GuestDisk::default());
    };
    let at = |item: Item<'_>, error: ValueError| PlanError {
        hint: error.hint,
        ..PlanError::new(error.message, item.span())
    };
    let device = storage
        .get("guest_device")
        .map(|item| device_from_name(&string(item)?).map_err(|error| at(item, error)));
    let latency = storage
        .get("guest_device_latency")
        .map(|item| parse_latency(&string(item)?).map_err(|error| at(item, error)));
    Ok(GuestDisk { device: device.transpose()?, latency: latency.transpose()? })
}

/// Guest device with this name.
pub(in crate::plan) fn device_from_name(
    name: &str,
) -> std::result::Result<GuestDevice, ValueError> {
    GuestDevice::from_name(name).ok_or_else(|| {
        ValueError::new(format!("unknown guest_device `{name}`"))
            .hint(format!("use {}", list(GuestDevice::ALL.into_iter().map(GuestDevice::name))))
    })
}

/// Parses the latency of a guest device.
pub(in crate::plan) fn parse_latency(text: &str) -> std::result::Result<Nanos, ValueError> {
    let time = Nanos::parse(text).map_err(|error| ValueError::new(error.to_string()))?;
    if time > GuestDisk::LATENCY_MAX {
        let message = format!("guest_device_latency is {time}");
        return Err(
            ValueError::new(message).hint(format!("the maximum is {}", GuestDisk::LATENCY_MAX))
        );
    }
    Ok(time)
}

/// Error message and hint if the guest or the storage does not support the keys of the guest disk.
pub(in crate::plan) fn unfit_disk(
    guest: Option<GuestKind>,
    disk: GuestDisk,
    storage: &Storage,
) -> Option<(String, &'static str)> {
    let given =
        [("guest_device", disk.device.is_some()), ("guest_device_latency", disk.latency.is_some())];
    if guest != Some(GuestKind::Icount) {
        let (key, _) = given.into_iter().find(|(_, given)| *given)?;
        let message = format!("`{key}` applies to icount guests only");
        return Some((message, "set guest to icount, or take the key out of `storage`"));
    }
    if disk.device == Some(GuestDevice::Brd) && disk.latency() > Nanos(0) {
        let message = "brd does not support `guest_device_latency`".to_owned();
        return Some((message, "set `guest_device` to null_blk, or remove `guest_device_latency`"));
    }
    match storage.kind {
        StorageKind::Image { count: 2.., .. } => Some((
            "icount guests have one disk; image_count is greater than 1".into(),
            "remove `image_count`, or use another guest kind",
        )),
        StorageKind::Image { .. }
        | StorageKind::Devices { .. }
        | StorageKind::Directory { .. }
        | StorageKind::Levels { .. } => None,
    }
}

/// Parses the study of the report.
pub(super) fn study(item: Item<'_>) -> Result<Study> {
    let name = string(item)?;
    study_from_name(&name).map_err(|error| PlanError {
        hint: error.hint,
        ..PlanError::new(error.message, item.span())
    })
}

/// Study with this name.
pub(in crate::plan) fn study_from_name(name: &str) -> std::result::Result<Study, ValueError> {
    Study::from_name(name).ok_or_else(|| {
        let error = ValueError::new(format!("unknown study `{name}`"));
        error.hint(match nearest(name, Study::ALL.map(Study::name)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("use {}", list(Study::ALL.into_iter().map(Study::name))),
        })
    })
}

/// A/A control with this name.
pub(in crate::plan) fn aa_control_from_name(name: &str) -> Option<AaControl> {
    AaControl::ALL.into_iter().find(|aa_control| aa_control.name() == name)
}

/// Parses the time limit, which must be greater than 0.
pub(super) fn time_limit(item: Item<'_>) -> Result<Nanos> {
    let time = Nanos::parse(&string(item)?)
        .map_err(|error| PlanError::new(error.to_string(), item.span()))?;
    match time {
        Nanos(0) => Err(PlanError::new("`time_limit` is 0", item.span())
            .hint("use a duration such as \"2h\", or remove the key")),
        time => Ok(time),
    }
}

/// Isolation with this name.
pub(in crate::plan) fn isolation_from_name(name: &str) -> Option<Isolation> {
    Isolation::ALL.into_iter().find(|isolation| isolation.name() == name)
}

/// Error message and hint for an isolation that the storage does not support.
pub(in crate::plan) fn unfit(
    isolation: Isolation,
    storage: &Storage,
) -> Option<(&'static str, &'static str)> {
    let images = |kind: &StorageKind| matches!(kind, StorageKind::Image { .. });
    match isolation {
        Isolation::Reattach if !storage.kind.each().iter().all(|(_, kind)| images(kind)) => Some((
            "isolation `reattach` requires an image",
            "use remount or reboot, or set `image_size`",
        )),
        Isolation::Remount | Isolation::Reattach | Isolation::Reboot => None,
    }
}
