//! Run file of `fslab bench`.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::super::{run_file, scratch::Scratch};
use crate::output;

/// Run file: the given path, or a temporary file that is removed when the value is dropped.
pub(in super::super) enum Kept {
    Asked(PathBuf),
    Scratch(Scratch),
}

impl Kept {
    pub(in super::super) fn new(
        asked: Option<&Path>,
        state: &Path,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        if let Some(path) = asked {
            return Ok(Self::Asked(path.into()));
        }
        run_file::scratch(state, directory).map(Self::Scratch)
    }

    pub(in super::super) fn path(&self) -> PathBuf {
        match self {
            Self::Asked(path) => path.clone(),
            Self::Scratch(scratch) => scratch.run_file(),
        }
    }

    /// Message after an interruption.
    pub(in super::super) fn interrupted(&self) -> String {
        match self {
            Self::Asked(path) => format!(
                "interrupted; changes were undone. Continue with: fslab run --resume {}",
                path.display()
            ),
            Self::Scratch(..) => "interrupted; changes were undone".into(),
        }
    }

    /// Prints a report with the path of the run file, unless it is temporary.
    pub(in super::super) fn print(&self, sheet: String) -> io::Result<()> {
        let sheet = output::legible(sheet);
        output::styled(&match self {
            Self::Asked(path) => {
                let path = output::line(&path.display().to_string());
                format!("{sheet}\nrun file  {path}")
            }
            Self::Scratch(..) => sheet,
        })
    }
}
