//! Layers: arrays and mapped devices between the storage and a filesystem.
//!
//! The input is a filesystem level, that is, an entry of `filesystem` in the plan, and the devices
//! of the storage. [`device_requirement`] returns the number of devices that the level uses and the
//! number of devices on which the filesystem is created. The result is an error if the storage does
//! not match. [`describe`] lists the devices that will be created. [`missing`] and
//! [`layer_support`] report missing kernel features and tools. `build` creates the layers of an
//! instance; each created device is a change in the undo journal.
//!
//! Arrays are created by mdadm(8). All other layers are created by dmsetup(8) with tables in the
//! format of the kernel (Documentation/admin-guide/device-mapper). For encryption, cryptsetup(8) is
//! not required: its plain mode loads the same table. The table contains the key, so it is passed
//! to dmsetup on standard input, and the recorded command contains `(key)` instead.
//!
//! Faults of `flakey` and `dust` layers are active from the first measured phase until the unmount.
//! The instance starts and ends the faults of each [`FaultTarget`].
//!
//! Not supported: LVM and LUKS metadata, because names and keys would remain on the devices after a
//! run; growing, degrading, and repairing arrays; external logs and realtime devices.

mod build;
mod fail;
mod missing;
mod table;

use std::fmt;

use model::{Bytes, FilesystemLevel, Layer};

pub(crate) use self::build::{BuildContext, BuildFacts, TopDevice, build};
pub(crate) use self::fail::FaultTarget;
pub(crate) use self::missing::missing;
pub use self::missing::{layer_support, versions};
use crate::catalog::Filesystem;
pub use crate::error::DeviceMismatch;

/// Devices used by a filesystem level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceRequirement {
    /// Number of devices used, starting with the first.
    pub devices: usize,
    /// Number of devices on which the filesystem is created. Without layers, these are the devices
    /// used. With layers, these are the devices on top of the layers.
    pub tops: usize,
}

/// Number of devices that a level uses if the storage has `have` devices. Without
/// [`FilesystemLevel::devices`], all devices are used. A filesystem that does not support several
/// devices is then rejected, unless layers combine the devices.
///
/// # Errors
/// [`DeviceMismatch`] if the level requires more devices than the storage has, or if a layer or the
/// filesystem does not support the number of its devices.
pub fn device_requirement(
    level: &FilesystemLevel,
    filesystem: &Filesystem,
    converted_to: Option<&Filesystem>,
    have: usize,
) -> Result<DeviceRequirement, DeviceMismatch> {
    let name = &level.name;
    if !filesystem.kind.is_on_devices() {
        if level.layers.is_empty() {
            return Ok(DeviceRequirement { devices: have, tops: 0 });
        }
        let why = format!("`{name}` has no device, so it cannot have layers");
        return Err(DeviceMismatch::new(why, "remove `layers`"));
    }
    let devices = match level.devices {
        None => have,
        Some(wanted) => wanted as usize,
    };
    if devices > have {
        let why = format!("`{name}` requires {}, but the storage has {have}", count(devices));
        return Err(DeviceMismatch::new(
            why,
            "add devices (`image_count`), or lower `device_count`",
        ));
    }
    let mut tops = devices;
    for layer in &level.layers {
        tops = above(layer, tops).map_err(|(needs, hint)| {
            let what = title(layer);
            DeviceMismatch::new(format!("{what} of `{name}` requires {needs}, found {tops}"), hint)
        })?;
    }
    let join = "set `device_count = 1`, or add `layers` that combine the devices";
    if tops > 1 && filesystem.multi_device.is_none() {
        let why = format!("`{name}` supports one device only, but there are {tops}");
        return Err(DeviceMismatch::new(why, join));
    }
    if tops > 1 && converted_to.is_some() {
        let why = format!("a converted filesystem supports one device only, but there are {tops}");
        return Err(DeviceMismatch::new(why, join));
    }
    Ok(DeviceRequirement { devices, tops })
}

/// Number of devices that a layer creates from `below` devices. The error is the requirement of the
/// layer, and a hint.
///
/// The minimum numbers for arrays are those of mdadm(8), which requires `--force` for an array of
/// one device.
fn above(layer: &Layer, below: usize) -> Result<usize, (&'static str, &'static str)> {
    const MORE: &str = "add devices, or remove the layer";
    const FEWER: &str = "combine them with an md layer below, or lower `device_count`";
    match layer {
        Layer::Md { level, .. } if level == "raid6" && below < 4 => {
            Err(("at least four devices", MORE))
        }
        Layer::Md { .. } if below < 2 => Err(("at least two devices", MORE)),
        Layer::Md { .. } => Ok(1),
        Layer::Crypt { key_size, .. } if key_size % 8 != 0 => {
            Err(("a key of whole bytes", "set `key_size` to a multiple of 8"))
        }
        Layer::Crypt { .. } => Ok(below),
        Layer::Thin { .. } if below > 2 => Err(("one or two devices", FEWER)),
        Layer::Thin { .. } => Ok(1),
        Layer::Cache { .. } if below < 2 => Err(("two devices", MORE)),
        Layer::Cache { .. } if below > 2 => Err(("two devices", FEWER)),
        Layer::Cache { .. } => Ok(1),
        Layer::Delay { .. } | Layer::Flakey { .. } | Layer::Dust { .. } => Ok(below),
        Layer::LogWrites if below < 2 => Err(("two devices", MORE)),
        Layer::LogWrites if below > 2 => Err(("two devices", FEWER)),
        Layer::LogWrites => Ok(1),
    }
}

/// Sizes of the devices on top of the layers. The space that an array reserves (md(4)) is not
/// subtracted.
pub fn capacity(layers: &[Layer], sizes: &[Bytes]) -> Vec<Bytes> {
    let mut sizes = sizes.to_vec();
    for layer in layers {
        let devices = sizes.len() as u64;
        let smallest = sizes.iter().copied().min().unwrap_or_default();
        let last = sizes.last().copied().unwrap_or_default();
        sizes = match layer {
            Layer::Md { level, .. } => vec![match level.as_str() {
                "raid1" => smallest,
                "raid4" | "raid5" => Bytes(smallest.0.saturating_mul(devices.saturating_sub(1))),
                "raid6" => Bytes(smallest.0.saturating_mul(devices.saturating_sub(2))),
                "raid10" => Bytes(smallest.0.saturating_mul(devices) / 2),
                _ => sizes.iter().copied().sum(),
            }],
            Layer::Crypt { .. }
            | Layer::Delay { .. }
            | Layer::Flakey { .. }
            | Layer::Dust { .. } => sizes,
            Layer::LogWrites => vec![sizes.first().copied().unwrap_or_default()],
            Layer::Thin { block } if devices == 1 => {
                let sectors = last.0 / table::SECTOR;
                let aside = table::pool_metadata(sectors, *block);
                let whole = table::whole(sectors.saturating_sub(aside), *block);
                vec![Bytes(whole.saturating_mul(table::SECTOR))]
            }
            Layer::Thin { .. } | Layer::Cache { .. } => vec![last],
        };
    }
    sizes
}

/// Short description of a layer, for messages and environment facts.
pub fn title(layer: &Layer) -> String {
    match layer {
        Layer::Md { level, chunk: None } => format!("md {level}"),
        Layer::Md { level, chunk: Some(chunk) } => format!("md {level} chunk {chunk}"),
        Layer::Crypt { cipher, key_size } => format!("crypt {cipher} {key_size} bits"),
        Layer::Thin { block } => format!("thin {block}"),
        Layer::Cache { mode, block } => format!("cache {mode} {block}"),
        Layer::Delay { read, write } => format!("delay read {read} write {write}"),
        Layer::Flakey { fault, up, down } => format!("flakey {fault} up {up} down {down}"),
        Layer::Dust { bad, block } => {
            let bad: Vec<String> = bad.iter().map(ToString::to_string).collect();
            format!("dust {} of {block}", bad.join(","))
        }
        Layer::LogWrites => "log-writes".into(),
    }
}

/// Describes the devices that the layers create from `devices`: one line per layer, and the device
/// nodes on which the filesystem is created. In names, a placeholder replaces the run ID.
pub fn describe(layers: &[Layer], devices: &[String]) -> (Vec<String>, Vec<String>) {
    let (mut lines, mut below) = (Vec::new(), devices.to_vec());
    for (index, layer) in layers.iter().enumerate() {
        let name = |part: &str| format!("fslab-·-{index}{part}");
        let mapped = |part: &str| format!("/dev/mapper/{}", name(part));
        let last = below.last().cloned().unwrap_or_default();
        let (line, tops) = match layer {
            Layer::Md { level, chunk } => {
                let argv = table::array(level, *chunk, &name(""), "·", &below);
                (format!("$ {}", argv.join(" ")), vec![table::node(&name(""))])
            }
            Layer::Crypt { cipher, key_size } => {
                let tops = (0..below.len()).map(|device| mapped(&format!("-crypt-{device}")));
                let text =
                    format!("crypt {cipher}, with a new random {key_size}-bit key per device");
                (format!("dmsetup: {text}, on {}", below.join(" ")), tops.collect())
            }
            Layer::Thin { block } => {
                let meta = match below.len() {
                    1 => format!("metadata at the start of {last}"),
                    _ => format!("metadata on {}", below[0]),
                };
                let text = format!("dmsetup: thin volume with {block} blocks on {last}, {meta}");
                (text, vec![mapped("-thin")])
            }
            Layer::Cache { mode, block } => {
                let fast = below.first().cloned().unwrap_or_default();
                let text = format!("{mode} cache with {block} blocks on {fast} for {last}");
                (format!("dmsetup: {text}"), vec![mapped("-cache")])
            }
            Layer::Delay { .. } | Layer::Flakey { .. } | Layer::Dust { .. } => {
                let when =
                    if layer.fails() { ", active from the first measured phase" } else { "" };
                let part = table::target(layer);
                let tops = (0..below.len()).map(|device| mapped(&format!("-{part}-{device}")));
                (format!("dmsetup: {} on {}{when}", title(layer), below.join(" ")), tops.collect())
            }
            Layer::LogWrites => {
                let first = below.first().cloned().unwrap_or_default();
                let text = format!("dmsetup: writes to {first} are logged on {last}");
                (text, vec![mapped("-log-writes")])
            }
        };
        lines.push(line);
        below = tops;
    }
    (lines, below)
}

fn count(devices: usize) -> impl fmt::Display {
    if devices == 1 { "1 device".to_owned() } else { format!("{devices} devices") }
}

#[cfg(test)]
mod tests;
