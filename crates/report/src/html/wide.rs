//! Sections over several points: scaling, system settings, and parameter sweeps, each with its
//! findings and tables.

use super::{
    budget::Budget,
    tables::{Points, table_html},
};
use crate::{
    figures::{self, Figure},
    view::{Finding, Table, View},
};

/// Charts over several points with their findings and tables.
pub(super) struct WideSection<'a> {
    pub(super) id: &'a str,
    pub(super) title: &'a str,
    pub(super) findings: &'a [Finding],
    pub(super) figures: Vec<Figure>,
    /// Number of charts omitted.
    pub(super) omitted: usize,
    pub(super) tables: Vec<String>,
}

/// Scaling, settings, and sweeps, in the order of the page.
pub(super) fn sections<'a>(
    view: &'a View,
    points: &Points,
    budget: &mut Budget,
) -> [Vec<WideSection<'a>>; 3] {
    let mut section = |(id, title, findings), figures: Vec<Figure>, tables: &[Table]| {
        let (figures, omitted) = budget.take(figures);
        let tables = tables.iter().map(|table| table_html(table, points)).collect();
        WideSection { id, title, findings, figures, omitted, tables }
    };
    let (mut scaling, mut conditions, mut sweeps) = (Vec::new(), Vec::new(), Vec::new());
    for (index, own) in view.scaling.iter().enumerate() {
        let head = (own.id.as_str(), own.title.as_str(), own.findings.findings.as_slice());
        scaling.push(section(head, figures::of_scaling(view, index), &own.tables));
    }
    for (index, own) in view.interactions.iter().enumerate() {
        let head = (own.id.as_str(), own.title.as_str(), own.findings.findings.as_slice());
        conditions.push(section(head, figures::of_interaction(view, index), &own.tables));
    }
    for (index, own) in view.sweeps.iter().enumerate() {
        let head = (own.id.as_str(), own.findings.label.as_str(), own.findings.findings.as_slice());
        sweeps.push(section(head, figures::of_sweep(view, index), &[]));
    }
    [scaling, conditions, sweeps]
}
