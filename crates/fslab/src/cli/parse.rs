//! Parsers of argument values.

use analysis::conditions::Aspect;
use model::{GuestKind, Nanos, Ratio};

pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text
        .split_once('=')
        .ok_or_else(|| format!("no `=` in `{text}`; use KEY=VALUE, such as block_size=64KiB"))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Parses a number of repetitions.
pub(super) fn repetitions(text: &str) -> Result<u32, String> {
    let number = text.trim().parse().ok().filter(|number| (1..=1000).contains(number));
    number.ok_or_else(|| "must be an integer from 1 to 1000".to_owned())
}

/// Parses a duration.
pub(super) fn duration(text: &str) -> Result<Nanos, String> {
    Nanos::parse(text).map_err(|error| error.to_string())
}

/// Parses a number of parallel jobs.
pub(super) fn jobs(text: &str) -> Result<u16, String> {
    let number = text.trim().parse().ok().filter(|number| (1..=1024).contains(number));
    number.ok_or_else(|| "must be an integer from 1 to 1024".to_owned())
}

/// Parses a whole number.
pub(super) fn whole(text: &str) -> Result<u64, String> {
    text.trim().parse().map_err(|_| "must be an integer of at least 0".to_owned())
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(one, other)| (one.trim(), other.trim()));
    match pair.filter(|(one, other)| !one.is_empty() && !other.is_empty()) {
        Some((one, other)) => Ok((one.to_owned(), other.to_owned())),
        None => Err("use FILESYSTEM=FILESYSTEM, such as ext4=xfs".to_owned()),
    }
}

/// Parses a percentage greater than 0 and at most 100.
pub(super) fn percent(text: &str) -> Result<Ratio, String> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok());
    let fraction = number.map(|number: f64| number / 100.0);
    fraction.filter(|fraction| *fraction > 0.0 && *fraction <= 1.0).map(Ratio).ok_or_else(|| {
        "must be a percentage with its sign, greater than 0% and at most 100%, such as 5% or 2.5%"
            .to_owned()
    })
}

pub(super) fn aspect(text: &str) -> Result<Aspect, String> {
    Aspect::from_name(text.trim()).ok_or_else(|| {
        let known: Vec<&str> = Aspect::ALL.into_iter().map(Aspect::name).collect();
        format!("unknown aspect; use {}", known.join(", "))
    })
}

pub(super) fn guest(text: &str) -> Result<GuestKind, String> {
    GuestKind::from_name(text.trim()).ok_or_else(|| {
        let known: Vec<&str> = GuestKind::ALL.into_iter().map(GuestKind::name).collect();
        format!("unknown guest kind; use {}", known.join(", "))
    })
}
