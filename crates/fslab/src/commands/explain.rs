//! `fslab explain`: lists findings of a run and the reasons for withheld findings.
//!
//! Input: a run file and filter words; [`report::explain()`] selects and renders the questions.
//! Unfinished runs are supported.

use report::{TerminalOptions, View};

use super::{report::read, run_file::RunFilePath};
use crate::{
    cli::{Explain, ExplanationFormat},
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(arguments: &Explain) -> Result<Exit, Failure> {
    let record = read(&RunFilePath::find(&arguments.run))?;
    let view = View::new(&record);
    let explanation = report::explain(&view, &arguments.words).map_err(Failure::usage)?;
    match arguments.format {
        Some(ExplanationFormat::Json) => output::json(&explanation.json())?,
        None => {
            let (width, color) = (output::width(), output::color());
            let options = TerminalOptions { width, color, detail: false };
            output::styled(&output::legible(explanation.terminal(&options)))?;
        }
    }
    Ok(Exit::Success)
}
