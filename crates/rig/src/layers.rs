//! What stands between the devices of a storage and a filesystem: how many devices a level lies on,
//! and the arrays and mapped devices that are built on them.
//!
//! A level and the number of devices enter. [`footing`] says how many of them are used and how many
//! devices the filesystem then finds, or why it does not fit; [`in_words`] tells what will be
//! built; [`lacks`] and [`abilities`] tell what kernel and tools lack for it. Building is an
//! instance's affair (`build`), and each device that is built is a change of the undo journal.
//!
//! Arrays are made by mdadm(8), everything else by dmsetup(8) from tables as the kernel documents
//! them (Documentation/admin-guide/device-mapper). For encryption that is one program less than
//! with cryptsetup(8), and the same mapping: its plain mode loads the very same table. The key
//! stands in the table, the table is told on the standard input of dmsetup, and what is written
//! down of it has `(key)` in its place.
//!
//! What fails does so from the first measured phase on and until the filesystem is unmounted:
//! [`Weakness`] is a device that is to fail, and beginning and ending that is the instance's affair
//! too.
//!
//! Deliberately not here: LVM's and LUKS's metadata, which hold names and keys that outlive a run;
//! growing, degrading, and repairing arrays; external logs and realtime devices.

mod build;
mod fail;
mod lacks;
mod table;

use std::fmt;

use model::{Bytes, FilesystemLevel, Layer};
use thiserror::Error;

pub(crate) use self::build::{Ground, Told, Top, build};
pub(crate) use self::fail::Weakness;
pub(crate) use self::lacks::lacks;
pub use self::lacks::{abilities, versions};
use crate::catalogue::{Filesystem, Kind};

/// How a level stands on the devices of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footing {
    /// How many devices are used, the first ones.
    pub devices: usize,
    /// On how many devices the filesystem is made: those, or what the layers leave of them.
    pub tops: usize,
}

/// A level does not fit the number of devices there are.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{why}; {cure}")]
pub struct Unfit {
    /// What does not fit.
    pub why: String,
    /// What would.
    pub cure: String,
}

impl Unfit {
    fn new(why: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { why: why.into(), cure: cure.into() }
    }
}

/// How a level stands on so many devices. Without [`FilesystemLevel::devices`] it takes all of
/// them: a filesystem that cannot span several is then refused unless layers leave it one.
///
/// # Errors
/// [`Unfit`]: more devices than there are, fewer than a layer needs, more than the filesystem
/// spans.
pub fn footing(
    level: &FilesystemLevel,
    filesystem: &Filesystem,
    becomes: Option<&Filesystem>,
    have: usize,
) -> Result<Footing, Unfit> {
    let name = &level.name;
    if filesystem.kind != Kind::Block {
        if level.layers.is_empty() {
            return Ok(Footing { devices: have, tops: 0 });
        }
        let why = format!("`{name}` lies on no device, so nothing can stand below it");
        return Err(Unfit::new(why, "take `layers` out"));
    }
    let devices = match level.devices {
        None => have,
        Some(wanted) => wanted as usize,
    };
    if devices > have {
        let why = format!("`{name}` wants {} and the storage has {have}", counted(devices));
        return Err(Unfit::new(why, "name more devices (`images`), or want fewer (`devices`)"));
    }
    let mut tops = devices;
    for layer in &level.layers {
        tops = above(layer, tops).map_err(|(needs, cure)| {
            let what = title(layer);
            Unfit::new(format!("{what} of `{name}` needs {needs} and finds {tops}"), cure)
        })?;
    }
    let join = "add `devices = 1` to it, or `layers` that join them";
    if tops > 1 && filesystem.many.is_none() {
        let why = format!("`{name}` lies on one device and finds {tops}");
        return Err(Unfit::new(why, join));
    }
    if tops > 1 && becomes.is_some() {
        let why = format!("what becomes another filesystem lies on one device and finds {tops}");
        return Err(Unfit::new(why, join));
    }
    Ok(Footing { devices, tops })
}

/// How many devices a layer leaves of so many, or what it needs and what helps.
///
/// The least numbers are those of mdadm(8), which makes arrays of one device only by force.
fn above(layer: &Layer, below: usize) -> Result<usize, (&'static str, &'static str)> {
    const MORE: &str = "name more devices, or take the layer out";
    const FEWER: &str = "join them by a layer of md below it, or want fewer (`devices`)";
    match layer {
        Layer::Md { level, .. } if level == "raid6" && below < 4 => {
            Err(("four devices at least", MORE))
        }
        Layer::Md { .. } if below < 2 => Err(("two devices at least", MORE)),
        Layer::Md { .. } => Ok(1),
        Layer::Crypt { key_bits, .. } if key_bits % 8 != 0 => {
            Err(("a key of whole bytes", "make `key_bits` a multiple of 8"))
        }
        Layer::Crypt { .. } => Ok(below),
        Layer::Thin { .. } if below > 2 => Err(("one device or two", FEWER)),
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

/// The sizes of what layers leave of devices of these sizes, but for what an array keeps for itself
/// (md(4)).
pub fn room(layers: &[Layer], sizes: &[Bytes]) -> Vec<Bytes> {
    let mut sizes = sizes.to_vec();
    for layer in layers {
        let devices = sizes.len() as u64;
        let least = sizes.iter().copied().min().unwrap_or_default();
        let last = sizes.last().copied().unwrap_or_default();
        sizes = match layer {
            Layer::Md { level, .. } => vec![match level.as_str() {
                "raid1" => least,
                "raid4" | "raid5" => Bytes(least.0.saturating_mul(devices.saturating_sub(1))),
                "raid6" => Bytes(least.0.saturating_mul(devices.saturating_sub(2))),
                "raid10" => Bytes(least.0.saturating_mul(devices) / 2),
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

/// A layer in a few words, for messages and as a fact of the run.
pub fn title(layer: &Layer) -> String {
    match layer {
        Layer::Md { level, chunk: None } => format!("md {level}"),
        Layer::Md { level, chunk: Some(chunk) } => format!("md {level} chunk {chunk}"),
        Layer::Crypt { cipher, key_bits } => format!("crypt {cipher} {key_bits} bits"),
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

/// What is built on these devices, a line each, and the devices that the filesystem then finds. As
/// names hold the run's, and mapped devices their lengths, both are told by what stands for them.
pub fn in_words(layers: &[Layer], devices: &[String]) -> (Vec<String>, Vec<String>) {
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
            Layer::Crypt { cipher, key_bits } => {
                let tops = (0..below.len()).map(|device| mapped(&format!("-crypt-{device}")));
                let text = format!("crypt {cipher}, a key of {key_bits} bits drawn anew for each");
                (format!("dmsetup: {text}, on {}", below.join(" ")), tops.collect())
            }
            Layer::Thin { block } => {
                let meta = match below.len() {
                    1 => format!("its metadata at the start of {last}"),
                    _ => format!("its metadata on {}", below[0]),
                };
                let text = format!("dmsetup: a thin volume of blocks of {block} on {last}, {meta}");
                (text, vec![mapped("-thin")])
            }
            Layer::Cache { mode, block } => {
                let fast = below.first().cloned().unwrap_or_default();
                let text = format!("{mode} cache of blocks of {block} on {fast} before {last}");
                (format!("dmsetup: {text}"), vec![mapped("-cache")])
            }
            Layer::Delay { .. } | Layer::Flakey { .. } | Layer::Dust { .. } => {
                let when = if layer.fails() { ", from the first measured phase on" } else { "" };
                let part = table::target(layer);
                let tops = (0..below.len()).map(|device| mapped(&format!("-{part}-{device}")));
                (format!("dmsetup: {} on {}{when}", title(layer), below.join(" ")), tops.collect())
            }
            Layer::LogWrites => {
                let first = below.first().cloned().unwrap_or_default();
                let text = format!("dmsetup: all that is written to {first} is logged on {last}");
                (text, vec![mapped("-log-writes")])
            }
        };
        lines.push(line);
        below = tops;
    }
    (lines, below)
}

fn counted(devices: usize) -> impl fmt::Display {
    if devices == 1 { "1 device".to_owned() } else { format!("{devices} devices") }
}

#[cfg(test)]
mod tests;
