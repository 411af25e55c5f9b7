//! Errors in a line of a loadfile, with hints.

use super::super::program::NameProblem;

/// Maximum number of characters of the offending text in a message.
const SHOWN: usize = 48;

/// Problem of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Problem, with the offending text.
    pub(crate) what: String,
    /// Hint.
    pub(crate) hint: &'static str,
}

impl Problem {
    /// Creates a problem.
    pub(super) fn new(what: impl Into<String>, hint: &'static str) -> Self {
        Self { what: what.into(), hint }
    }

    /// Problem of a word that is not what the text `expected` describes. The text includes the
    /// article.
    pub(super) fn word(word: &[u8], expected: &str, hint: &'static str) -> Self {
        Self::new(format!("`{}` is not {expected}", shown(word)), hint)
    }

    /// Problem of a number above its limit.
    pub(super) fn large(what: &str, found: u64, limit: &str) -> Self {
        Self::new(
            format!("{what} is {found}, above the limit of {limit}"),
            "check that the line is not damaged; limit a random number with %, as in *%4096",
        )
    }

    /// Problem of an invalid name.
    pub(super) fn name(name: &[u8], problem: NameProblem) -> Self {
        let name = shown(name);
        let below = "use names below the directory of a client, such as \
                     \"\\clients\\client1\\file\"";
        match problem {
            NameProblem::Absolute => {
                Self::new(format!("the name `{name}` begins with two slashes"), below)
            }
            NameProblem::Escapes => {
                Self::new(format!("the name `{name}` contains the part .."), below)
            }
            NameProblem::Nul => Self::new(
                format!("the name `{name}` contains a NUL byte"),
                "check that the file is a loadfile and not damaged",
            ),
            NameProblem::Long => Self::new(
                format!(
                    "the name `{name}` is longer than 4095 bytes, or a part of it longer than 255, \
                     with the longest client number"
                ),
                "use a shorter name",
            ),
            NameProblem::Many { most } => Self::new(
                format!("the loadfile has more than {most} names"),
                "use fewer names; a replay repeats a loadfile that ends",
            ),
            NameProblem::Large { most } => Self::new(
                format!("the names of one client take more than {most}"),
                "use fewer or shorter names; each client keeps all of them in memory",
            ),
        }
    }
}

/// Start of a word for messages, with nonprintable characters escaped.
pub(super) fn shown(word: &[u8]) -> String {
    let text = String::from_utf8_lossy(word);
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().count() > SHOWN {
        shown.push('…');
    }
    shown.replace("\\\"", "\"").replace("\\'", "'")
}
