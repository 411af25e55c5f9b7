//! HTML report of a run: the first screen ([`answer`]), the document of the run, and the data of a
//! script ([`data`]) that adds filters, ratios to a baseline, and sorting.

mod answer;
mod data;
#[cfg(test)]
mod tests;

use crate::{
    document::html::page as rendered,
    run::{self, budget::Budget},
    view::View,
};

pub use answer::Part;

/// Renders the view as one self-contained HTML file. Its first screen also has the results of the
/// other parts.
pub fn html(view: &View, parts: &[Part<'_>]) -> String {
    page(view, parts, Budget::page())
}

/// Page with the charts that fit into the budget.
fn page(view: &View, parts: &[Part<'_>], mut budget: Budget) -> String {
    let data = data::script(view);
    budget.spend(data.len() + view.samples.csv.as_ref().map_or(0, String::len));
    let mut document = run::document(view, &mut budget);
    // The first screen has the conditions.
    document.lead.clear();
    document.footer.push_str(" · this page loads no external resources.");
    let names = answer::filesystems(view, parts);
    rendered(&document, &names, &answer::answer(view, parts), Some(&data))
}
