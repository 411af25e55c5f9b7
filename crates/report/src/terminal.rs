//! Terminal output of a report: the first page ([`answer()`]) and, with `detail`, the document of
//! the run.

mod answer;
mod running;

use crate::{
    document::terminal::{TerminalOptions, sections},
    run::{self, budget::Budget},
    view::View,
};

pub use answer::answer;
pub use running::{RunningTest, running};

/// Text of a view for a terminal: the first page and, with `detail`, all other sections.
pub fn terminal(view: &View, options: &TerminalOptions) -> String {
    let mut text = answer(&[view], options);
    if options.detail {
        text.push_str(&sections(&run::document(view, &mut Budget::text()), options));
    }
    text
}

#[cfg(test)]
mod tests;
