//! Parsers of argument values.

use analysis::conditions::Aspect;
use model::{GuestKind, Ratio};

pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| {
        format!("`{text}` has no `=`; use KEY=VALUE, such as filesystem=ext4,xfs")
    })?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
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
        "use a percentage greater than 0 and at most 100, such as 5% or 2.5%".to_owned()
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
