//! `fslab explain`: which questions a run answers, and what is missing for the others.
//!
//! A run file and words enter; [`report::explain()`] finds and lays out the questions. A run that
//! is still going on is read as it stands.

use report::{TerminalOptions, View};

use super::{keeping::Keeping, report::read};
use crate::{
    cli::{Explain, ExplanationFormat},
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(arguments: &Explain) -> Result<Exit, Failure> {
    let record = read(&Keeping::find(&arguments.run))?;
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
    Ok(Exit::Done)
}
