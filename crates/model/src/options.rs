//! Options of mkfs and mount that a plan varies: `axes.mkfs` and `axes.mount`.

use std::collections::BTreeMap;

use crate::workload::Value;

/// Values of the varied options by plan key, such as `mount.data` and `mkfs.-I`.
pub type VariedOptions = BTreeMap<String, Value>;

/// Program that an option belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionOf {
    /// mkfs of the filesystem.
    Mkfs,
    /// mount(2), or the mount command.
    Mount,
}

impl OptionOf {
    /// Both programs.
    pub const ALL: [Self; 2] = [Self::Mkfs, Self::Mount];

    /// Key of the table in `axes`.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Mkfs => "mkfs",
            Self::Mount => "mount",
        }
    }

    /// Example of an option with a value.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Mkfs => "mkfs.-b=4096",
            Self::Mount => "mount.noatime=true",
        }
    }

    /// Program and name of an option with this plan key, such as `mount.data`.
    pub fn parse(key: &str) -> Option<(Self, &str)> {
        let (table, name) = key.split_once('.')?;
        let of = Self::ALL.into_iter().find(|of| of.key() == table)?;
        (!name.is_empty()).then_some((of, name))
    }
}
