//! Parser of the options of mkfs and mount that a plan varies, and of their design.

use toml::de::DeValue;

use super::{Item, Result, Table, array, list, string, wrong};
use crate::{
    design::{Design, OptionAxis},
    options::OptionOf,
    plan::PlanError,
    storage::{Storage, StorageKind},
    workload::{Value, ValueError},
};

/// Parses the options of `axes.mkfs` and `axes.mount`, in text order.
pub(super) fn options(axes: &Table<'_>, storage: &Storage) -> Result<Vec<OptionAxis>> {
    let mut options = Vec::new();
    for of in OptionOf::ALL {
        let Some(item) = axes.get(of.key()) else { continue };
        if matches!(storage.kind, StorageKind::Directory { .. }) {
            let (message, hint) = no_filesystem(of.key());
            return Err(PlanError::new(message, item.span()).hint(hint));
        }
        let DeValue::Table(table) = item.get_ref() else {
            let error = wrong(item, "a table of options");
            let key = of.key();
            return Err(error.hint(format!("write {key}.OPTION = [\"VALUE\", \"OTHER\"]")));
        };
        for (name, values) in table.iter() {
            let key = format!("{}.{}", of.key(), name.get_ref());
            let key = checked(&key).map_err(|error| super::at(error, name.span()))?;
            options.push((name.span().start, OptionAxis { key, values: self::values(values)? }));
        }
    }
    options.sort_by_key(|(start, _)| *start);
    Ok(options.into_iter().map(|(_, option)| option).collect())
}

/// Parses the design, and checks that the options fit it.
pub(super) fn design(
    top: &Table<'_>,
    axes: &Table<'_>,
    storage: &Storage,
) -> Result<Option<Design>> {
    let item = top.get("design");
    let design = item.map(|item| {
        let name = string(item)?;
        Design::from_name(&name).ok_or_else(|| {
            PlanError::new(format!("unknown design `{name}`"), item.span())
                .hint(format!("use {}", list(Design::ALL.iter().map(|it| it.name()))))
        })
    });
    let design = design.transpose()?;
    let options = options(axes, storage)?;
    let span = item.map_or_else(|| axes.span.clone(), toml::Spanned::span);
    Design::combinations(design, &options).map_err(|error| super::at(error, span.clone()))?;
    match (item, options.is_empty()) {
        (Some(item), true) => Err(PlanError::new("`design` requires options", item.span())
            .hint("add `mkfs` or `mount` to `axes`, or remove `design`")),
        _ => Ok(design),
    }
}

/// Error message and hint for options of a plan whose storage is a directory.
pub(in crate::plan) fn no_filesystem(key: &str) -> (String, &'static str) {
    let message = format!("storage is a directory: `{key}` requires a new filesystem");
    (message, "remove it, or set `image_size` or `device`")
}

/// Plan key of an option, with a valid name.
pub(in crate::plan) fn checked(key: &str) -> std::result::Result<String, ValueError> {
    let fits = |c: char| !c.is_control() && !matches!(c, '{' | '}');
    let one_word = |name: &str| !name.contains([' ', '=', ',']);
    match OptionOf::parse(key) {
        Some((of, name))
            if name.chars().all(fits)
                && name.trim() == name
                && (of == OptionOf::Mkfs || one_word(name)) =>
        {
            Ok(key.to_owned())
        }
        _ => Err(ValueError::new(format!("`{key}` is not an option"))
            .hint("write the name of one option; its values are in the list")),
    }
}

fn values(item: Item<'_>) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    for item in array(item)? {
        let value = match item.get_ref() {
            DeValue::Boolean(flag) => Value::Flag(*flag),
            DeValue::Integer(number) => Value::Text(number.as_str().to_owned()),
            DeValue::String(text) => text_value(text).map_err(|it| super::at(it, item.span()))?,
            _ => return Err(wrong(item, "true, false, an integer, or a string")),
        };
        if values.contains(&value) {
            return Err(PlanError::new(format!("duplicate value `{value}`"), item.span()));
        }
        values.push(value);
    }
    match values.is_empty() {
        true => Err(PlanError::new("the list is empty", item.span())),
        false => Ok(values),
    }
}

/// Value of an option as a text.
pub(in crate::plan) fn text_value(text: &str) -> std::result::Result<Value, ValueError> {
    match text {
        "" => Err(ValueError::new("the value is empty").hint("use false to omit the option")),
        "true" => Ok(Value::Flag(true)),
        "false" => Ok(Value::Flag(false)),
        text if text.contains([' ', ',', '{', '}']) || text.contains(char::is_control) => {
            Err(ValueError::new(format!("`{}` is not one value", text.escape_debug()))
                .hint("use a value without spaces and commas"))
        }
        text => Ok(Value::Text(text.to_owned())),
    }
}
