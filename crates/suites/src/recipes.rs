//! Workloads with names: points of the suites that people ask for, from `workloads.toml`.
//!
//! The text is part of the program, read once. A parameter that a recipe does not give has its
//! suite's default.

use std::sync::LazyLock;

use model::{Point, workload::Recipe};
use serde::Deserialize;

const TEXT: &str = include_str!("../workloads.toml");

static RECIPES: LazyLock<Vec<Recipe>> = LazyLock::new(|| match read(TEXT) {
    Ok(recipes) => recipes,
    Err(error) => unreachable!("workloads.toml is part of the program: {error}"),
});

/// Every recipe, in the order of the file.
///
/// # Panics
/// If the program's own `workloads.toml` is wrong; a test reads it.
pub fn recipes() -> &'static [Recipe] {
    &RECIPES
}

/// The recipe of that name.
///
/// # Panics
/// As [`recipes`].
pub fn recipe(name: &str) -> Option<&'static Recipe> {
    recipes().iter().find(|recipe| recipe.name == name)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    workload: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    title: String,
    source: String,
    suite: String,
    #[serde(default)]
    parameters: toml::Table,
}

fn read(text: &str) -> Result<Vec<Recipe>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    file.workload.into_iter().map(made).collect()
}

fn made(entry: Entry) -> Result<Recipe, String> {
    let Entry { name, title, source, suite, parameters } = entry;
    let point = point(&suite, &parameters).map_err(|error| format!("{name}: {error}"))?;
    Ok(Recipe { name, title, source, point })
}

fn point(suite: &str, parameters: &toml::Table) -> Result<Point, String> {
    let suite = crate::find(suite).ok_or_else(|| format!("there is no suite `{suite}`"))?;
    let mut point = suite.spec.defaults();
    for (name, value) in parameters {
        let parameter = suite.spec.parameter(name).map_err(|error| error.to_string())?;
        let value = parameter.kind.read(&words(value)).map_err(|error| error.to_string())?;
        point.parameters.insert(name.clone(), value);
    }
    Ok(point)
}

/// A value as it would be written on the command line.
fn words(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(","),
        toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_)
        | toml::Value::Table(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests;
