//! Charts over many points: how tests scale, how they depend on conditions, how they change over a
//! parameter; each with the sentences it shows and its tables.

use super::{
    budget::Budget,
    suites::{Plot, plots},
    tables::{Points, table_html},
};
use crate::{
    figures::{self, Figure},
    view::{Claim, Table, View},
};

/// Charts over many points, the sentences they show, and their tables.
pub(super) struct WideSection<'a> {
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) claims: &'a [Claim],
    pub(super) figures: Vec<Plot<'a>>,
    /// Charts that the page has no room for.
    pub(super) left_out: usize,
    pub(super) tables: Vec<String>,
}

/// Scaling, conditions, and sweeps, in the order of the page.
pub(super) fn sections<'a>(
    view: &'a View,
    points: &Points,
    budget: &mut Budget,
) -> [Vec<WideSection<'a>>; 3] {
    let mut section = |(id, title, claims), figures: Vec<Figure>, tables: &[Table]| {
        let (figures, left_out) = budget.take(figures);
        let figures = plots(figures, view);
        let tables = tables.iter().map(|table| table_html(table, view, points)).collect();
        WideSection { id, title, claims, figures, left_out, tables }
    };
    let (mut scaling, mut conditions, mut sweeps) = (Vec::new(), Vec::new(), Vec::new());
    for (index, own) in view.scaling.iter().enumerate() {
        let head = (own.id.as_str(), own.title.as_str(), own.claims.claims.as_slice());
        scaling.push(section(head, figures::of_scaling(view, index), &own.tables));
    }
    for (index, own) in view.interactions.iter().enumerate() {
        let head = (own.id.as_str(), own.title.as_str(), own.claims.claims.as_slice());
        conditions.push(section(head, figures::of_interaction(view, index), &own.tables));
    }
    for (index, own) in view.sweeps.iter().enumerate() {
        let head = (own.id.as_str(), own.claims.label.as_str(), own.claims.claims.as_slice());
        sweeps.push(section(head, figures::of_sweep(view, index), &[]));
    }
    [scaling, conditions, sweeps]
}
