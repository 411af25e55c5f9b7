//! Environment facts: recorded properties of the host or guest.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Facts by dotted name, such as `kernel.release` or `device.loop3.queue.scheduler`. A fact that is
/// not available is absent, never empty or zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environment(pub BTreeMap<String, String>);

impl Environment {
    /// Records a fact; replaces an earlier value.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Value of a fact, if available.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Adds the facts of `other`, which replace facts of the same name.
    pub fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Facts that are missing in `base` or have another value in `base`, such as the facts of a
    /// trial that differ from those of its run.
    #[must_use]
    pub fn beyond(&self, base: &Self) -> Self {
        let new = self.0.iter().filter(|(name, value)| base.0.get(*name) != Some(value));
        Self(new.map(|(name, value)| (name.clone(), value.clone())).collect())
    }
}
