//! What stands between devices and a filesystem.

use toml::{Spanned, de::DeValue};

use super::{Item, Result, Table, array, count, list, size, string, wrong};
use crate::{cell::Layer, plan::PlanError, units::Bytes};

/// What a layer is one of.
const KINDS: [&str; 4] = ["md", "crypt", "thin", "cache"];

/// Levels of md(4).
const LEVELS: [&str; 7] = ["raid0", "raid1", "raid4", "raid5", "raid6", "raid10", "linear"];

/// How a cache of the device mapper treats writes (Documentation/admin-guide/device-mapper/
/// cache.rst).
const MODES: [&str; 3] = ["writeback", "writethrough", "passthrough"];

/// The least blocks, and what they are multiples of (drivers/md/dm-thin.c, dm-cache-target.c).
const THIN: Bytes = Bytes::kib(64);
const CACHE: Bytes = Bytes::kib(32);

/// Every layer, the lowest first.
pub(super) fn layers(item: Item<'_>) -> Result<Vec<Layer>> {
    array(item)?.iter().map(layer).collect()
}

fn layer(item: Item<'_>) -> Result<Layer> {
    let DeValue::Table(table) = item.get_ref() else {
        return Err(wrong(item, "a table such as { md = \"raid0\" }"));
    };
    let table = Table::open("layer", table, item.span())?;
    let mut given = KINDS.into_iter().filter_map(|key| Some((key, table.get(key)?)));
    let (kind, what) = given.next().ok_or_else(|| {
        PlanError::new("this layer is nothing", item.span())
            .cure(format!("give it one of {}", list(KINDS.into_iter())))
    })?;
    if let Some((other, _)) = given.next() {
        let message = format!("this layer has both `{kind}` and `{other}`");
        return Err(PlanError::new(message, item.span()).cure("make two layers of it"));
    }
    let own: &[&str] = match kind {
        "md" => &["chunk"],
        "crypt" => &["key_bits"],
        "cache" => &["block"],
        _ => &[],
    };
    for key in ["chunk", "key_bits", "block"] {
        if let (Some(other), false) = (table.get(key), own.contains(&key)) {
            let message = format!("`{kind}` has no `{key}`");
            return Err(PlanError::new(message, other.span()).cure("take it out of this layer"));
        }
    }
    Ok(match kind {
        "md" => Layer::Md { level: word(what, &LEVELS)?, chunk: chunk(&table)? },
        "crypt" => {
            let cipher = string(what)?;
            let bits = if cipher.contains("xts") { 512 } else { 256 };
            let key_bits = table.get("key_bits").map(|item| count(item, 128, 512)).transpose()?;
            Layer::Crypt {
                cipher,
                key_bits: key_bits.map_or(bits, |n| u32::try_from(n).unwrap_or(bits)),
            }
        }
        "thin" => Layer::Thin { block: block(what, THIN)? },
        _ => {
            let given = table.get("block").map(|item| block(item, CACHE)).transpose()?;
            Layer::Cache { mode: word(what, &MODES)?, block: given.unwrap_or(Bytes::kib(256)) }
        }
    })
}

fn word(item: Item<'_>, words: &[&'static str]) -> Result<String> {
    let word = string(item)?;
    if words.contains(&word.as_str()) {
        return Ok(word);
    }
    Err(PlanError::new(format!("there is no `{word}` here"), item.span())
        .cure(format!("use {}", list(words.iter().copied()))))
}

fn chunk(table: &Table<'_>) -> Result<Option<Bytes>> {
    let Some(item) = table.get("chunk") else { return Ok(None) };
    let chunk = size(item)?;
    if chunk.0.is_power_of_two() && chunk.0 >= 4096 {
        return Ok(Some(chunk));
    }
    Err(PlanError::new(format!("a chunk of {chunk}"), item.span())
        .cure("take a power of two from 4KiB on"))
}

fn block(item: &Spanned<DeValue<'_>>, least: Bytes) -> Result<Bytes> {
    let block = size(item)?;
    if block.0 > 0 && block.0.is_multiple_of(least.0) {
        return Ok(block);
    }
    Err(PlanError::new(format!("a block of {block}"), item.span())
        .cure(format!("take a multiple of {least}")))
}
