//! Scales with names: what `--scale NAME` sets.

use toml::{Spanned, de::DeValue};

use super::{Result, Table, wrong};
use crate::{
    plan::{NamedScale, PlanError},
    units::Scale,
};

/// Every table below `[scales]`.
pub(super) fn scales(top: &Table<'_>) -> Result<Vec<NamedScale>> {
    let Some(item) = top.get("scales") else { return Ok(Vec::new()) };
    let DeValue::Table(table) = item.get_ref() else { return Err(wrong(item, "a table")) };
    let mut scales = Vec::new();
    for (name, settings) in table {
        if Scale::parse(name.get_ref()).is_ok() {
            let message = format!("`{}` is a scale already", name.get_ref());
            return Err(PlanError::new(message, name.span()).cure("take a name that is no number"));
        }
        let DeValue::Table(keys) = settings.get_ref() else {
            return Err(wrong(settings, "a table of settings"));
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

/// A value as the command line would have it.
fn text(item: &Spanned<DeValue<'_>>) -> Result<String> {
    Ok(match item.get_ref() {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(integer) => integer.as_str().to_owned(),
        DeValue::Float(float) => float.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Array(items) => items.iter().map(text).collect::<Result<Vec<_>>>()?.join(","),
        DeValue::Datetime(_) | DeValue::Table(_) => {
            return Err(wrong(item, "a value as `--set` takes it, or a list of them"));
        }
    })
}
