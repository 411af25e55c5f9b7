//! What was true of the host, as read back from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Facts by dotted name, such as `kernel.release` or `device.loop3.queue.scheduler`. A fact the
/// host does not tell is absent, never empty or zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Environment(pub BTreeMap<String, String>);

impl Environment {
    /// Records a fact; the latest value of a name stands.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// A fact, if the host told it.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Adds the facts of `other`, which win over equal names here.
    pub fn merge(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// The facts here that `base` lacks or has otherwise: what a trial adds to its run.
    #[must_use]
    pub fn beyond(&self, base: &Self) -> Self {
        let new = self.0.iter().filter(|(name, value)| base.0.get(*name) != Some(value));
        Self(new.map(|(name, value)| (name.clone(), value.clone())).collect())
    }
}
