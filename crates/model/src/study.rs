//! Published studies whose tables and charts a report can show from a run of its own.
//!
//! A plan names one ([`crate::Plan::view`]); its report then puts the tables and charts that answer
//! the study's questions first, under the study's titles and numbers. What such a view holds is in
//! crate `report`; what the study itself found is among the published results. Nothing here says
//! that a run reproduces a study: that is for its conditions to tell.

use serde::{Deserialize, Serialize};

/// A published study, as the view of a report.
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
    /// All of them, the oldest plan first.
    pub const ALL: [Self; 5] = [
        Self::Iozone2009,
        Self::Tasks2006,
        Self::Bonnie2012,
        Self::Dbench2012,
        Self::Smallfiles2011,
    ];

    /// Its word in plans and run files; the ready plan that asks its questions has the same name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iozone2009 => "iozone-2009",
            Self::Tasks2006 => "tasks-2006",
            Self::Bonnie2012 => "bonnie-2012",
            Self::Dbench2012 => "dbench-2012",
            Self::Smallfiles2011 => "smallfiles-2011",
        }
    }

    /// The study of that name. Ready plans have the names of their studies, so it also tells which
    /// study a run made by a version without views belongs to.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|study| study.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_has_one_name_everywhere() {
        for study in Study::ALL {
            assert_eq!(Study::named(study.name()), Some(study));
            let stored = serde_json::to_string(&study).unwrap();
            assert_eq!(stored, format!("\"{}\"", study.name()));
            assert_eq!(serde_json::from_str::<Study>(&stored).unwrap(), study);
        }
        assert_eq!(Study::named("demo"), None);
    }
}
