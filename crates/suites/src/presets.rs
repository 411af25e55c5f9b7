//! Presets: named workloads of `workloads.toml`.
//!
//! The file is embedded in the program and parsed once. Parameters that a preset does not set have
//! the default of the suite.

use std::sync::LazyLock;

use model::{WorkloadParameters, workload::Preset};
use serde::Deserialize;

const TEXT: &str = include_str!("../workloads.toml");

static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| match read(TEXT) {
    Ok(presets) => presets,
    Err(error) => unreachable!("workloads.toml is embedded in the program: {error}"),
});

/// All presets, in the order of the file.
///
/// # Panics
/// If `workloads.toml` is invalid; a test parses it.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// Preset with this name.
///
/// # Panics
/// As [`presets`].
pub fn preset(name: &str) -> Option<&'static Preset> {
    presets().iter().find(|preset| preset.name == name)
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

fn read(text: &str) -> Result<Vec<Preset>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    file.workload.into_iter().map(made).collect()
}

fn made(entry: Entry) -> Result<Preset, String> {
    let Entry { name, title, source, suite, parameters } = entry;
    let point = point(&suite, &parameters).map_err(|error| format!("{name}: {error}"))?;
    Ok(Preset { name, title, source, workload: point })
}

fn point(suite: &str, parameters: &toml::Table) -> Result<WorkloadParameters, String> {
    let suite = crate::find(suite).ok_or_else(|| format!("unknown suite `{suite}`"))?;
    let mut point = suite.spec.defaults();
    for (name, value) in parameters {
        let parameter = suite.spec.parameter(name).map_err(|error| error.to_string())?;
        let value = parameter.kind.read(&text(value)).map_err(|error| error.to_string())?;
        point.parameters.insert(name.clone(), value);
    }
    Ok(point)
}

/// Text of a value as it is written on the command line.
fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join(","),
        toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_)
        | toml::Value::Table(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests;
