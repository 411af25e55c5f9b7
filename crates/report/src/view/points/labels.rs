//! Labels of parameters and conditions of a point, for captions and the page of the point.

use model::Value;

use super::WorkPoint;
use crate::units::one_line;

/// Names of parameters that are amounts of work, in addition to sizes.
const AMOUNTS: [&str; 3] = ["files", "source_files", "copies"];

impl WorkPoint {
    /// All parameters and the loadfile, for the page of the point.
    pub(crate) fn all_parameters(&self) -> String {
        let load = self.load.iter().map(|fact| format!(", {fact}"));
        label(self.parameters.iter()) + &load.collect::<String>()
    }

    /// Sizes, amounts of work, conditions, and, unless recorded per test, the cache state, for
    /// captions. Bounds (`_min`, `_max`) are omitted.
    pub(crate) fn sizes(&self) -> String {
        self.filtered_label(|name| self.conditions.contains_key(name))
    }

    /// Like [`Self::sizes`], without the conditions.
    pub(crate) fn amounts(&self) -> String {
        self.filtered_label(|_| false)
    }

    /// The conditions; `None` if there are none.
    pub(crate) fn under(&self) -> Option<String> {
        Some(label(self.conditions.iter())).filter(|label| !label.is_empty())
    }

    fn filtered_label(&self, further: impl Fn(&str) -> bool) -> String {
        let bound = |name: &str| name.ends_with("_min") || name.ends_with("_max");
        let recorded = self.tests.iter().any(|test| test.cache.is_some());
        label(self.parameters.iter().filter(|(name, value)| {
            let condition = self.conditions.contains_key(name.as_str());
            name.as_str() == "cache" && !recorded
                || matches!(value, Value::Size(_)) && !bound(name) && !condition
                || AMOUNTS.contains(&name.as_str())
                || further(name.as_str())
        }))
    }
}

/// `file_size 16 GiB, workers 4`.
fn label<'a>(parameters: impl Iterator<Item = (&'a String, &'a Value)>) -> String {
    let text = |value: &Value| {
        if let Value::Size(size) = value { size.rough() } else { one_line(&value.to_string()) }
    };
    let each = parameters.map(|(name, value)| format!("{name} {}", text(value)));
    each.collect::<Vec<_>>().join(", ")
}
