//! What can be wrong with a line of a load file, and what to do about it.

use super::super::program::NameProblem;

/// How much of what was found a message shows, in characters.
const SHOWN: usize = 48;

/// Why a line is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// What is wrong, with what was found.
    pub(crate) what: String,
    /// What to do.
    pub(crate) cure: &'static str,
}

impl Problem {
    /// A problem with what was found in the line.
    pub(super) fn new(what: impl Into<String>, cure: &'static str) -> Self {
        Self { what: what.into(), cure }
    }

    /// A word that is not what belongs there.
    pub(super) fn word(word: &[u8], not: &str, cure: &'static str) -> Self {
        Self::new(format!("`{}` is no {not}", shown(word)), cure)
    }

    /// A number above its limit, which is told in a form of its own.
    pub(super) fn large(what: &str, found: u64, limit: &str) -> Self {
        Self::new(
            format!("{what} is {found}, more than {limit}"),
            "check that the line was not damaged; a random number is kept small by %, as in *%4096",
        )
    }

    /// A name that must not or cannot be used.
    pub(super) fn name(name: &[u8], problem: NameProblem) -> Self {
        let name = shown(name);
        let below = "load files name everything below the directory of a client, as in \
                     \"\\clients\\client1\\file\"; write it so";
        match problem {
            NameProblem::Absolute => {
                Self::new(format!("the name `{name}` begins with two slashes"), below)
            }
            NameProblem::Escapes => Self::new(format!("a part of the name `{name}` is .."), below),
            NameProblem::Nul => Self::new(
                format!("the name `{name}` has a NUL byte"),
                "check that it is a load file, and not damaged",
            ),
            NameProblem::Long => Self::new(
                format!(
                    "the name `{name}` is longer than 4095 bytes, or a part of it than 255, with \
                     the longest number of a client in it"
                ),
                "shorten it; Linux has no longer names",
            ),
            NameProblem::Many { most } => Self::new(
                format!("the load file comes to more than {most} names"),
                "use fewer names; a replay that gets to the end begins anew",
            ),
            NameProblem::Large { most } => Self::new(
                format!("the names of one client come to more than {most}"),
                "use fewer or shorter names; each client has all of them in memory",
            ),
        }
    }
}

/// A word as messages show it: its beginning, with what is no printable text escaped.
pub(super) fn shown(word: &[u8]) -> String {
    let text = String::from_utf8_lossy(word);
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().count() > SHOWN {
        shown.push('…');
    }
    shown.replace("\\\"", "\"").replace("\\'", "'")
}
