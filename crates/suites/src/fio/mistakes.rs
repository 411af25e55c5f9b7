//! Mistakes in a job, each with its line.

use std::fmt;

/// Mistake in a job.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mistake {
    /// File, or description of the argument.
    pub file: String,
    /// Number of the line; 0 if the origin has no lines.
    pub line: u32,
    /// Problem and hint.
    pub message: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

/// All mistakes in a job, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistakes {
    /// Mistakes, at least one.
    pub all: Vec<Mistake>,
    /// Number of lines with an option or a section.
    pub lines: usize,
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for mistake in &self.all {
            writeln!(f, "{mistake}")?;
        }
        let bad = self.all.len();
        write!(f, "{bad} of {} lines cannot be done; nothing was started", self.lines.max(bad))
    }
}

impl std::error::Error for Mistakes {}

impl Mistakes {
    /// One mistake.
    pub fn one(file: &str, line: u32, message: impl Into<String>) -> Self {
        let mistake = Mistake { file: file.to_owned(), line, message: message.into() };
        Self { all: vec![mistake], lines: 1 }
    }
}
