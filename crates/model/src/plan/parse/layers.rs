//! Parser of the layers between devices and a filesystem.

use toml::{Spanned, de::DeValue};

use super::{Item, Result, Table, array, count, flag, list, size, string, wrong};
use crate::{
    cell::{BlockRange, Layer},
    plan::PlanError,
    units::{Bytes, Nanos},
};

/// Keys of the layer types. A layer has exactly one of them.
const KINDS: [&str; 8] = ["md", "crypt", "thin", "cache", "delay", "flakey", "dust", "log_writes"];

/// Keys that only some layer types have.
const FURTHER: [&str; 6] = ["chunk", "key_size", "block_size", "write_delay", "up", "down"];

/// RAID levels of md(4).
const LEVELS: [&str; 7] = ["raid0", "raid1", "raid4", "raid5", "raid6", "raid10", "linear"];

/// Write modes of dm-cache (Documentation/admin-guide/device-mapper/cache.rst).
const MODES: [&str; 3] = ["writeback", "writethrough", "passthrough"];

/// Faults of dm-flakey: its features without further arguments, and `error` for no feature
/// (Documentation/admin-guide/device-mapper/dm-flakey.rst).
const FAULTS: [&str; 3] = ["error", "drop_writes", "error_writes"];

/// Units of delays and intervals (dm-delay.rst, dm-flakey.rst), and their longest useful values.
const MILLISECOND: Nanos = Nanos(1_000_000);
const SECOND: Nanos = Nanos(1_000_000_000);
const LONGEST_DELAY: Nanos = Nanos(60 * SECOND.0);
const LONGEST_INTERVAL: Nanos = Nanos(3600 * SECOND.0);

/// Minimum block size of dm-dust (`dust_ctr` in drivers/md/dm-dust.c), and its default.
const DUST: Bytes = Bytes(512);
const DUST_BLOCK: Bytes = Bytes::kib(4);

/// Minimum block sizes of dm-thin and dm-cache. Every block size is a multiple of the minimum
/// (drivers/md/dm-thin.c, dm-cache-target.c).
const THIN: Bytes = Bytes::kib(64);
const CACHE: Bytes = Bytes::kib(32);

/// Parses the layers, lowest first.
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
        PlanError::new("this layer has no type", item.span())
            .hint(format!("set one of {}", list(KINDS.into_iter())))
    })?;
    if let Some((other, _)) = given.next() {
        let message = format!("this layer has both `{kind}` and `{other}`");
        return Err(PlanError::new(message, item.span()).hint("use two layers"));
    }
    let own: &[&str] = match kind {
        "md" => &["chunk"],
        "crypt" => &["key_size"],
        "cache" | "dust" => &["block_size"],
        "delay" => &["write_delay"],
        "flakey" => &["up", "down"],
        _ => &[],
    };
    for key in FURTHER {
        if let (Some(other), false) = (table.get(key), own.contains(&key)) {
            let message = format!("`{kind}` does not have the key `{key}`");
            return Err(PlanError::new(message, other.span()).hint("remove it from this layer"));
        }
    }
    Ok(match kind {
        "md" => Layer::Md { level: word(what, &LEVELS)?, chunk: chunk(&table)? },
        "crypt" => {
            let cipher = string(what)?;
            let bits = if cipher.contains("xts") { 512 } else { 256 };
            let key_size = table.get("key_size").map(|item| count(item, 128, 512)).transpose()?;
            Layer::Crypt {
                cipher,
                key_size: key_size.map_or(bits, |n| u32::try_from(n).unwrap_or(bits)),
            }
        }
        "thin" => Layer::Thin { block: block(what, THIN)? },
        "delay" => {
            let read = time(what, MILLISECOND, LONGEST_DELAY)?;
            let write = table.get("write_delay").map(|item| time(item, MILLISECOND, LONGEST_DELAY));
            Layer::Delay { read, write: write.transpose()?.unwrap_or(read) }
        }
        "flakey" => flakey(what, &table)?,
        "dust" => dust(what, table.get("block_size"))?,
        "log_writes" if flag(what)? => Layer::LogWrites,
        "log_writes" => {
            let error = PlanError::new("`log_writes` is false", what.span());
            return Err(error.hint("remove the layer, or set `log_writes = true`"));
        }
        _ => {
            let given = table.get("block_size").map(|item| block(item, CACHE)).transpose()?;
            Layer::Cache { mode: word(what, &MODES)?, block: given.unwrap_or(Bytes::kib(256)) }
        }
    })
}

fn word(item: Item<'_>, words: &[&'static str]) -> Result<String> {
    let word = string(item)?;
    if words.contains(&word.as_str()) {
        return Ok(word);
    }
    Err(PlanError::new(format!("unknown value `{word}`"), item.span())
        .hint(format!("use {}", list(words.iter().copied()))))
}

fn chunk(table: &Table<'_>) -> Result<Option<Bytes>> {
    let Some(item) = table.get("chunk") else { return Ok(None) };
    let chunk = size(item)?;
    if chunk.0.is_power_of_two() && chunk.0 >= 4096 {
        return Ok(Some(chunk));
    }
    Err(PlanError::new(format!("invalid chunk {chunk}"), item.span())
        .hint("use a power of two of at least 4KiB"))
}

fn block(item: &Spanned<DeValue<'_>>, least: Bytes) -> Result<Bytes> {
    let block = size(item)?;
    if block.0 > 0 && block.0.is_multiple_of(least.0) {
        return Ok(block);
    }
    Err(PlanError::new(format!("invalid block size {block}"), item.span())
        .hint(format!("use a multiple of {least}")))
}

/// Parses a duration that is a multiple of `unit` and at most `most`.
fn time(item: Item<'_>, unit: Nanos, most: Nanos) -> Result<Nanos> {
    let time = Nanos::parse(&string(item)?)
        .map_err(|error| PlanError::new(error.to_string(), item.span()))?;
    if time <= most && time.0.is_multiple_of(unit.0) {
        return Ok(time);
    }
    Err(PlanError::new(format!("invalid duration {time}"), item.span())
        .hint(format!("use a multiple of {unit}, at most {most}")))
}

fn flakey(what: Item<'_>, table: &Table<'_>) -> Result<Layer> {
    let interval = |key: &'static str, usual: Nanos| {
        table.get(key).map_or(Ok(usual), |item| time(item, SECOND, LONGEST_INTERVAL))
    };
    let (fault, up) = (word(what, &FAULTS)?, interval("up", Nanos(0))?);
    let down = interval("down", SECOND)?;
    if down == Nanos(0) {
        return Err(PlanError::new("`down` is 0", what.span())
            .hint("set `down` to at least 1s, or remove the layer"));
    }
    Ok(Layer::Flakey { fault, up, down })
}

fn dust(what: Item<'_>, block: Option<Item<'_>>) -> Result<Layer> {
    let size = block.map(size).transpose()?.unwrap_or(DUST_BLOCK);
    if !size.0.is_power_of_two() || size < DUST {
        let error =
            PlanError::new(format!("invalid block size {size}"), block.unwrap_or(what).span());
        return Err(error.hint("use a power of two of at least 512"));
    }
    let text = string(what)?;
    let mut bad: Vec<BlockRange> =
        text.split(',').map(|part| range(part, what)).collect::<Result<_>>()?;
    bad.sort_by_key(|range| range.first);
    if let Some(pair) = bad.windows(2).find(|pair| pair[1].first <= pair[0].last) {
        let message = format!("block ranges {} and {} overlap", pair[0], pair[1]);
        return Err(PlanError::new(message, what.span()).hint("list each block once"));
    }
    let blocks = bad.iter().fold(0_u64, |sum, range| sum.saturating_add(range.count()));
    if blocks > Layer::BAD_BLOCKS {
        let message = format!("{blocks} bad blocks; the maximum is {}", Layer::BAD_BLOCKS);
        let hint = "increase `block_size`, so that there are fewer blocks";
        return Err(PlanError::new(message, what.span()).hint(hint));
    }
    Ok(Layer::Dust { bad, block: size })
}

/// Parses a block number such as `7`, or a range such as `16-63`.
fn range(text: &str, item: Item<'_>) -> Result<BlockRange> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok(BlockRange { first, last }),
        _ => Err(PlanError::new(format!("invalid block numbers `{}`", text.trim()), item.span())
            .hint("use numbers and ranges such as \"7, 16-63\"")),
    }
}
