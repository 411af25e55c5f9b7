//! Workloads that run together: members of an entry of the workload axis.
//!
//! An entry with members becomes one cell in which all members run, and cells in which one of them
//! runs alone. All of these cells have the suite [`SUITE`] and the same text of members, so that
//! their files are equal. They differ in the parameter [`ONLY`].

use std::ops::Range;

use super::WorkloadEntry;
use crate::{phase::Part, units::Nanos, words, workload::WorkloadParameters};

/// Name of the suite of these cells.
pub const SUITE: &str = "together";
/// Parameter with the members, one line of words each.
pub const MEMBERS: &str = "members";
/// Parameter with the member that runs alone; empty if all members run.
pub const ONLY: &str = "only";
/// Suite of members with `action`.
pub const ACTIONS: &str = "maintenance";

/// Members of an entry of the workload axis.
#[derive(Clone, Debug)]
pub struct TogetherEntry {
    /// Members, at least two.
    pub members: Vec<MemberEntry>,
    /// Members that are also measured alone.
    pub alone: Alone,
}

/// Member of an entry.
#[derive(Clone, Debug)]
pub struct MemberEntry {
    /// Name, unique in the entry.
    pub name: String,
    /// Role.
    pub part: Part,
    /// Time between the common start and the start of the member.
    pub start_delay: Nanos,
    /// Workload of the member, without conditions.
    pub entry: WorkloadEntry,
    /// Position of the name in the text.
    pub span: Range<usize>,
}

/// Members that are also measured alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Alone {
    /// Members with role `measured`.
    #[default]
    Measured,
    /// No member.
    None,
    /// All members.
    All,
}

impl Alone {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Measured, Self::None, Self::All];

    /// Name in a plan.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::None => "none",
            Self::All => "all",
        }
    }
}

/// Line of a member in the parameter [`MEMBERS`].
pub fn line(
    name: &str,
    part: Part,
    start_delay: Nanos,
    workload: &WorkloadParameters,
) -> Vec<String> {
    let mut line = vec![
        format!("name={name}"),
        format!("role={}", part.name()),
        format!("start_delay={start_delay}"),
        format!("suite={}", workload.suite),
    ];
    line.extend(workload.parameters.iter().map(|(key, value)| format!("{key}={value}")));
    line
}

/// Name, role, and suite of a member in the text of parameter [`MEMBERS`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Name.
    pub name: String,
    /// Role.
    pub part: Part,
    /// Name of its suite; empty if the text has none.
    pub suite: String,
}

/// Heads of the members in the text of parameter [`MEMBERS`], as [`line`] writes them. Blanks may
/// replace the line breaks, as in a run that is read for a report.
pub fn heads(text: &str) -> Vec<Head> {
    let words = words::split(text).unwrap_or_default().concat();
    let head = |at: usize| {
        let name = words[at].strip_prefix("name=")?;
        let role = words.get(at + 1)?.strip_prefix("role=")?;
        let part = Part::ALL.into_iter().find(|part| part.name() == role)?;
        // The delay precedes the suite.
        let suite = words[at + 2..].iter().take(2).find_map(|word| word.strip_prefix("suite="));
        Some(Head { name: name.to_owned(), part, suite: suite.unwrap_or_default().to_owned() })
    };
    (0..words.len()).filter_map(head).collect()
}
