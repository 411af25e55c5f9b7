//! Named scales: sets of overrides for `--scale NAME`.

use toml::{Spanned, de::DeValue};

use super::{Result, Table, wrong};
use crate::{
    plan::{NamedScale, PlanError},
    units::Scale,
};

/// Parses all tables in `[scales]`.
pub(super) fn scales(top: &Table<'_>) -> Result<Vec<NamedScale>> {
    let Some(item) = top.get("scales") else { return Ok(Vec::new()) };
    let DeValue::Table(table) = item.get_ref() else { return Err(wrong(item, "a table")) };
    let mut scales = Vec::new();
    for (name, settings) in table {
        if Scale::parse(name.get_ref()).is_ok() {
            let message = format!("invalid scale name `{}`: it is a number", name.get_ref());
            return Err(
                PlanError::new(message, name.span()).hint("use a name that is not a number")
            );
        }
        let DeValue::Table(keys) = settings.get_ref() else {
            return Err(wrong(settings, "a table of overrides"));
        };
        let mut keys: Vec<_> = keys.iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        let setting = |(key, value): (&Spanned<toml::de::DeString<'_>>, &Spanned<DeValue<'_>>)| {
            Ok((key.get_ref().to_string(), text(value)?))
        };
        let settings = keys.into_iter().map(setting).collect::<Result<_>>()?;
        scales.push(NamedScale { name: name.get_ref().to_string(), settings, span: name.span() });
    }
    Ok(scales)
}

/// Text of a value as it is written on the command line.
fn text(item: &Spanned<DeValue<'_>>) -> Result<String> {
    Ok(match item.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(integer) => integer.as_str().to_owned(),
        DeValue::Float(float) => float.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Array(items) => items.iter().map(text).collect::<Result<Vec<_>>>()?.join(","),
        DeValue::Datetime(_) | DeValue::Table(_) => {
            return Err(wrong(item, "a value as for `--set`, or a list of values"));
        }
    })
}
