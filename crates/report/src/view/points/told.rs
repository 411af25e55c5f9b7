//! Parameters and conditions of a point in words, for captions and the page of the point.

use model::Value;

use super::WorkPoint;
use crate::units::one_line;

/// Parameters that say how much work there is without being sizes.
const AMOUNTS: [&str; 3] = ["files", "source_files", "copies"];

impl WorkPoint {
    /// Every parameter in words, and what was replayed, for the page of the point.
    pub(crate) fn all_parameters(&self) -> String {
        let load = self.load.iter().map(|fact| format!(", {fact}"));
        words_of(self.parameters.iter()) + &load.collect::<String>()
    }

    /// The actual sizes, the conditions that the plan sets, and the cache regime where the tests do
    /// not tell it, for captions. Bounds of a sweep are no sizes of work.
    pub(crate) fn sizes(&self) -> String {
        self.told(|name| self.conditions.contains_key(name))
    }

    /// The same without the conditions.
    pub(crate) fn amounts(&self) -> String {
        self.told(|_| false)
    }

    /// The conditions alone, if there are any.
    pub(crate) fn under(&self) -> Option<String> {
        let told = words_of(self.conditions.iter());
        Some(told).filter(|told| !told.is_empty())
    }

    fn told(&self, further: impl Fn(&str) -> bool) -> String {
        let bound = |name: &str| name.ends_with("_min") || name.ends_with("_max");
        let told = self.tests.iter().any(|test| test.cache.is_some());
        words_of(self.parameters.iter().filter(|(name, value)| {
            let condition = self.conditions.contains_key(name.as_str());
            name.as_str() == "cache" && !told
                || matches!(value, Value::Size(_)) && !bound(name) && !condition
                || AMOUNTS.contains(&name.as_str())
                || further(name.as_str())
        }))
    }
}

fn words_of<'a>(parameters: impl Iterator<Item = (&'a String, &'a Value)>) -> String {
    let words = |value: &Value| {
        if let Value::Size(size) = value { size.rough() } else { one_line(&value.to_string()) }
    };
    let each = parameters.map(|(name, value)| format!("{name} {}", words(value)));
    each.collect::<Vec<_>>().join(", ")
}
