//! Published studies whose tables and charts a report can reproduce from the data of a run.
//!
//! A plan names a study ([`crate::Plan::study`]). The report of a run starts with the tables and
//! charts of its study, with their original titles and numbers. Crate `report` defines these tables
//! and contains the published results. A run under other conditions than those of the study does
//! not reproduce the results of the study.

use serde::{Deserialize, Serialize};

/// Published study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Study {
    /// "IOzone Performance Exploration", 2009: eight filesystems, 13 tests, four record sizes.
    #[serde(rename = "iozone-2009")]
    Iozone2009,
    /// "Benchmarking Filesystems Part II", 2006: 21 everyday tasks.
    #[serde(rename = "tasks-2006")]
    Tasks2006,
    /// bonnie++ on eleven configurations of ext4, xfs, and btrfs, 2012.
    #[serde(rename = "bonnie-2012")]
    Bonnie2012,
    /// "Finding the Fastest Filesystem", 2012: dbench by clients, schedulers, and speeds.
    #[serde(rename = "dbench-2012")]
    Dbench2012,
    /// Five operations on sets of small files, cold and warm, 2011.
    #[serde(rename = "smallfiles-2011")]
    Smallfiles2011,
}

impl Study {
    /// All studies, in the order of their plans.
    pub const ALL: [Self; 5] = [
        Self::Iozone2009,
        Self::Tasks2006,
        Self::Bonnie2012,
        Self::Dbench2012,
        Self::Smallfiles2011,
    ];

    /// Name in plans and run files, and name of the built-in plan of the study.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iozone2009 => "iozone-2009",
            Self::Tasks2006 => "tasks-2006",
            Self::Bonnie2012 => "bonnie-2012",
            Self::Dbench2012 => "dbench-2012",
            Self::Smallfiles2011 => "smallfiles-2011",
        }
    }

    /// Study with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|study| study.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_names_of_studies_match_their_names() {
        for study in Study::ALL {
            assert_eq!(Study::from_name(study.name()), Some(study));
            let stored = serde_json::to_string(&study).unwrap();
            assert_eq!(stored, format!("\"{}\"", study.name()));
            assert_eq!(serde_json::from_str::<Study>(&stored).unwrap(), study);
        }
        assert_eq!(Study::from_name("demo"), None);
    }
}
