//! Terminal output of a report: the first page with the result ([`answer()`]) and, with `detail`,
//! the whole document of the run.

mod answer;
mod running;

use crate::{
    document::terminal::{TerminalOptions, sections},
    run::{self, budget::Budget},
    view::View,
};

pub use answer::answer;
pub use running::{RunningTest, running};

/// Terminal text of a view: the first page and, with `detail`, everything else.
pub fn terminal(view: &View, options: &TerminalOptions) -> String {
    let mut text = answer(&[view], options);
    if options.detail {
        text.push_str(&sections(&run::document(view, &mut Budget::text()), options));
    }
    text
}

#[cfg(test)]
mod tests;
