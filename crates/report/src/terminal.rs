//! Terminal output of a report: the first page with the result ([`answer()`]) and, with `detail`,
//! the whole document of the run.

mod answer;
mod running;

use crate::{
    document::terminal::{TerminalOptions, terminal as render},
    run,
    view::View,
};

pub use answer::answer;
pub use running::{RunningTest, running};

/// Terminal text of a view: the first page and, with `detail`, everything else.
pub fn terminal(view: &View, options: &TerminalOptions) -> String {
    let mut text = answer(&[view], options);
    if options.detail {
        text.push('\n');
        text.push_str(&render(&run::document(view), options));
    }
    text
}

#[cfg(test)]
mod tests;
