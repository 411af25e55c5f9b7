//! The parameters of a stream that are texts with a form of their own: lengths, rates, and amounts.
//!
//! Each has a reader that answers the canonical spelling, which is what a point holds, and a
//! function that makes the value out of that.

use model::{
    Bytes,
    phase::{Amount, Length, Rate},
    workload::ValueError,
};

/// Sizes with weights; canonical with every weight written and no common divisor.
pub(super) fn read_lengths(text: &str) -> Result<String, ValueError> {
    if text.trim().is_empty() {
        return Ok(String::new());
    }
    let mut lengths: Vec<(Bytes, u32)> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (size, weight) = part.split_once(':').unwrap_or((part, "1"));
        let size = Bytes::parse(size).map_err(|error| ValueError::new(error.to_string()))?;
        let weight = weight.trim().parse().ok().filter(|weight| *weight > 0).ok_or_else(|| {
            ValueError::new(format!("`{weight}` is no weight"))
                .cure("write a size, a colon, and a whole number above 0: \"4KiB:3,64KiB:1\"")
        })?;
        if size.0 == 0 {
            return Err(ValueError::new("an operation of no length moves nothing"));
        }
        if lengths.iter().any(|(other, _)| *other == size) {
            return Err(ValueError::new(format!("the length {size} is listed twice"))
                .cure("give it once, with the sum of the weights"));
        }
        lengths.push((size, weight));
    }
    let common = lengths.iter().fold(0, |common, (_, weight)| divisor(common, *weight));
    let parts = lengths.iter().map(|(size, weight)| format!("{size}:{}", weight / common.max(1)));
    Ok(parts.collect::<Vec<_>>().join(","))
}

/// The greatest common divisor (Euclid).
fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// Sizes and weights of a canonical text.
pub(super) fn sizes(text: &str) -> impl Iterator<Item = (Bytes, u32)> {
    text.split(',').filter_map(|part| {
        let (size, weight) = part.split_once(':')?;
        Some((Bytes::parse(size).ok()?, weight.parse().ok()?))
    })
}

/// The lengths of a canonical text, in records.
pub(super) fn lengths(text: &str, record: Bytes) -> Vec<Length> {
    let length = |(size, weight): (Bytes, u32)| Length {
        records: u32::try_from(size.0 / record.0).unwrap_or(u32::MAX),
        weight,
    };
    sizes(text).map(length).collect()
}

/// `1000/s` or `10MiB/s`; `0` is off.
pub(super) fn read_rate(text: &str) -> Result<String, ValueError> {
    let bad = || {
        ValueError::new(format!("`{text}` is not a rate"))
            .cure("write operations or a size per second: \"1000/s\", \"10MiB/s\"; \"0\" is off")
    };
    let trimmed = text.trim();
    let Some(amount) = trimmed.strip_suffix("/s") else {
        return if trimmed == "0" { Ok("0".into()) } else { Err(bad()) };
    };
    Ok(match read_amount(amount).map_err(|_| bad())?.as_str() {
        "0" => "0".into(),
        amount => format!("{amount}/s"),
    })
}

/// The rate of a canonical text.
pub(super) fn rate(text: &str) -> Option<Rate> {
    amount(text.trim_end_matches("/s")).map(|amount| match amount {
        Amount::Ops(ops) => Rate::Ops(ops),
        Amount::Bytes(bytes) => Rate::Bytes(bytes),
    })
}

/// `8` operations or a size such as `1MiB`; `0` is off.
pub(super) fn read_amount(text: &str) -> Result<String, ValueError> {
    let trimmed = text.trim();
    if let Ok(ops) = trimmed.parse::<u64>() {
        return Ok(ops.to_string());
    }
    let size = Bytes::parse(trimmed).map_err(|error| {
        ValueError::new(error.to_string())
            .cure("a number alone is operations, a number with a unit is bytes; \"0\" is off")
    })?;
    Ok(if size.0 == 0 { "0".into() } else { size.to_string() })
}

/// The amount of a canonical text; `None` when it is off.
pub(super) fn amount(text: &str) -> Option<Amount> {
    match text.parse::<u64>() {
        Ok(0) => None,
        Ok(ops) => Some(Amount::Ops(ops)),
        Err(_) => Bytes::parse(text).ok().map(Amount::Bytes),
    }
}

/// Any text: a path.
#[expect(clippy::unnecessary_wraps, reason = "one form for all readers of texts")]
pub(super) fn read_path(text: &str) -> Result<String, ValueError> {
    Ok(text.to_owned())
}
