//! Parsers of text parameters: weighted block sizes, rates, and sync intervals.
//!
//! Functions `read_*` check a text and return its canonical form, which is the value of the
//! parameter. The other functions parse canonical text.

use model::{
    Bytes,
    phase::{Length, Rate, SyncInterval},
    workload::ValueError,
};

/// Parses weighted sizes. In canonical text, all sizes have a weight, and the weights have no
/// common divisor.
pub(super) fn read_block_sizes(text: &str) -> Result<String, ValueError> {
    if text.trim().is_empty() {
        return Ok(String::new());
    }
    let mut lengths: Vec<(Bytes, u32)> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (size, weight) = part.split_once(':').unwrap_or((part, "1"));
        let size = Bytes::parse(size).map_err(|error| ValueError::new(error.to_string()))?;
        let weight = weight.trim().parse().ok().filter(|weight| *weight > 0).ok_or_else(|| {
            ValueError::new(format!("invalid weight `{weight}`"))
                .hint("use a size, a colon, and an integer greater than 0: \"4KiB:3,64KiB:1\"")
        })?;
        if size.0 == 0 {
            return Err(ValueError::new("the block size is 0"));
        }
        if lengths.iter().any(|(other, _)| *other == size) {
            return Err(ValueError::new(format!("duplicate block size {size}"))
                .hint("list it once, with the sum of the weights"));
        }
        lengths.push((size, weight));
    }
    let common = lengths.iter().fold(0, |common, (_, weight)| divisor(common, *weight));
    let parts = lengths.iter().map(|(size, weight)| format!("{size}:{}", weight / common.max(1)));
    Ok(parts.collect::<Vec<_>>().join(","))
}

/// Greatest common divisor (Euclid).
fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Sizes and weights from canonical text.
pub(super) fn sizes(text: &str) -> impl Iterator<Item = (Bytes, u32)> {
    text.split(',').filter_map(|part| {
        let (size, weight) = part.split_once(':')?;
        Some((Bytes::parse(size).ok()?, weight.parse().ok()?))
    })
}

/// Weighted block sizes from canonical text, in multiples of `block`.
pub(super) fn block_sizes(text: &str, block: Bytes) -> Vec<Length> {
    let length = |(size, weight): (Bytes, u32)| Length {
        blocks: u32::try_from(size.0 / block.0).unwrap_or(u32::MAX),
        weight,
    };
    sizes(text).map(length).collect()
}

/// Parses `1000/s` or `10MiB/s`; `0` is unlimited.
pub(super) fn read_rate(text: &str) -> Result<String, ValueError> {
    let bad = || {
        ValueError::new(format!("`{text}` is not a rate")).hint(
            "use operations or a size per second: \"1000/s\", \"10MiB/s\"; \"0\" is unlimited",
        )
    };
    let trimmed = text.trim();
    let Some(amount) = trimmed.strip_suffix("/s") else {
        return if trimmed == "0" { Ok("0".into()) } else { Err(bad()) };
    };
    Ok(match read_interval(amount).map_err(|_| bad())?.as_str() {
        "0" => "0".into(),
        amount => format!("{amount}/s"),
    })
}

/// Rate from canonical text; `None` if unlimited.
pub(super) fn rate(text: &str) -> Option<Rate> {
    interval(text.trim_end_matches("/s")).map(|amount| match amount {
        SyncInterval::Ops(ops) => Rate::Ops(ops),
        SyncInterval::Bytes(bytes) => Rate::Bytes(bytes),
    })
}

/// Parses a number of operations such as `8`, or a size such as `1MiB`; `0` is off.
pub(super) fn read_interval(text: &str) -> Result<String, ValueError> {
    let trimmed = text.trim();
    if let Ok(ops) = trimmed.parse::<u64>() {
        return Ok(ops.to_string());
    }
    let size = Bytes::parse(trimmed).map_err(|error| {
        ValueError::new(error.to_string())
            .hint("a number without a unit is operations, with a unit bytes; \"0\" is off")
    })?;
    Ok(if size.0 == 0 { "0".into() } else { size.to_string() })
}

/// Sync interval from canonical text; `None` if off.
pub(super) fn interval(text: &str) -> Option<SyncInterval> {
    match text.parse::<u64>() {
        Ok(0) => None,
        Ok(ops) => Some(SyncInterval::Ops(ops)),
        Err(_) => Bytes::parse(text).ok().map(SyncInterval::Bytes),
    }
}

/// Accepts any text as a path.
#[expect(clippy::unnecessary_wraps, reason = "same signature as other readers")]
pub(super) fn read_path(text: &str) -> Result<String, ValueError> {
    Ok(text.to_owned())
}
