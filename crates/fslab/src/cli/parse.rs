//! Values of arguments that are more than a word or a number.

use analysis::conditions::Way;
use model::{GuestKind, Ratio};

pub(super) fn setting(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| {
        format!("`{text}` has no `=`; write KEY=VALUE, as in filesystem=ext4,xfs")
    })?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(one, other)| (one.trim(), other.trim()));
    match pair.filter(|(one, other)| !one.is_empty() && !other.is_empty()) {
        Some((one, other)) => Ok((one.to_owned(), other.to_owned())),
        None => Err("write FILESYSTEM=FILESYSTEM, as in ext4=xfs".to_owned()),
    }
}

/// A share from percents above 0 and up to 100.
pub(super) fn percent(text: &str) -> Result<Ratio, String> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok());
    let share = number.map(|number: f64| number / 100.0);
    share
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .map(Ratio)
        .ok_or_else(|| "write percents above 0 and up to 100, as in 5% or 2.5%".to_owned())
}

pub(super) fn way(text: &str) -> Result<Way, String> {
    Way::named(text.trim()).ok_or_else(|| {
        let known: Vec<&str> = Way::ALL.into_iter().map(Way::name).collect();
        format!("runs do not differ in a way of that name; there are {}", known.join(", "))
    })
}

pub(super) fn guest(text: &str) -> Result<GuestKind, String> {
    GuestKind::named(text.trim()).ok_or_else(|| {
        let known: Vec<&str> = GuestKind::ALL.into_iter().map(GuestKind::name).collect();
        format!("there is no guest of that kind; there are {}", known.join(", "))
    })
}
