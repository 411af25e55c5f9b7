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
    let text = match arguments.format {
        Some(ExplanationFormat::Json) => explanation.json(),
        None => {
            let (width, color) = (output::width(), output::color());
            output::shown(explanation.terminal(&TerminalOptions { width, color, detail: false }))
        }
    };
    output::result(&text)?;
    Ok(Exit::Done)
}
