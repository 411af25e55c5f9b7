//! Tables as HTML, with attributes for the script: filesystem of a row or column, test of a number,
//! and workload of a table.

use std::{borrow::Cow, collections::BTreeMap};

use askama::Template;

use super::{marker, reference, rendered};
use crate::{
    units::one_line,
    view::{Body, Table, TableCell, View},
};

#[derive(Template)]
#[template(path = "table.html")]
struct TableTemplate<'a> {
    table: &'a Table,
    /// Warnings listed once below the table.
    shared: &'a [&'static str],
    conditions: &'a str,
    /// True if rows and columns of a filesystem show its marker.
    marked: bool,
    /// Workload point of the whole table.
    point: Option<&'a PointFacts>,
    /// Markers and names of the filesystems.
    names: &'a [(String, String)],
}

/// Workload point as HTML attributes.
#[derive(Debug)]
pub(super) struct PointFacts {
    pub(super) label: String,
    /// JSON object of all parameters with their values as strings.
    pub(super) parameters: String,
}

/// Attributes of points and filesystems.
#[derive(Debug)]
pub(super) struct Points {
    by_id: BTreeMap<String, PointFacts>,
    names: Vec<(String, String)>,
}

impl Points {
    /// All points of a view.
    pub(super) fn new(view: &View) -> Self {
        let points = view.suites.iter().flat_map(|suite| &suite.points);
        let facts = points.map(|point| {
            let values = point.parameters.iter();
            let values = values.map(|(name, value)| (name, one_line(&value.to_string())));
            let values: BTreeMap<_, _> = values.collect();
            let parameters = serde_json::json!(values).to_string();
            (point.id.clone(), PointFacts { label: point.label.clone(), parameters })
        });
        let names = view.filesystems.iter().enumerate();
        Self {
            by_id: facts.collect(),
            names: names.map(|(index, own)| (reference(index), own.name.clone())).collect(),
        }
    }

    /// Point with the given anchor.
    pub(super) fn get(&self, id: &str) -> Option<&PointFacts> {
        self.by_id.get(id)
    }
}

impl TableTemplate<'_> {
    /// True for columns of text. The template passes a reference.
    fn is_text(&self, column: &usize) -> bool {
        self.table.is_text(*column)
    }

    /// Marker of a filesystem. The template passes a reference.
    fn marker(&self, filesystem: &Option<usize>) -> Cow<'_, str> {
        let of = |index: usize| match self.names.get(index) {
            Some((marker, _)) => Cow::Borrowed(marker.as_str()),
            None => Cow::Owned(marker(index)),
        };
        filesystem.filter(|_| self.marked).map(of).unwrap_or_default()
    }

    /// Sort key with seven significant digits. The template passes a reference.
    fn sort(&self, value: &f64) -> f64 {
        format!("{value:.6e}").parse().unwrap_or(*value)
    }

    /// Name of a filesystem. The template passes a reference.
    fn name(&self, filesystem: &Option<usize>) -> Option<&str> {
        let of = |index: usize| self.names.get(index).map(|(_, name)| name.as_str());
        filesystem.filter(|_| self.marked).and_then(of)
    }

    /// Common filesystem of all numbers in the table, unless rows or columns name one.
    fn about(&self) -> Option<&str> {
        let columns = self.table.columns.iter().map(|column| column.filesystem);
        let rows = self.table.rows.iter().map(|row| row.filesystem);
        if columns.chain(rows).any(|filesystem| filesystem.is_some()) {
            return None;
        }
        let mut all = self.table.values().map(|value| value.of.map(|of| of.filesystem));
        let first = all.next().flatten()?;
        all.all(|other| other == Some(first)).then(|| self.name(&Some(first))).flatten()
    }
}

/// Renders a table with the conditions of the run.
pub(super) fn table_html(table: &Table, view: &View, points: &Points) -> String {
    of_page(table, view, points, None)
}

/// Renders a table of one point, whose id begins with the anchor of the point.
pub(super) fn of_point(table: &Table, view: &View, points: &Points) -> String {
    let point = table.id.split("--").next().and_then(|id| points.get(id));
    of_page(table, view, points, point)
}

fn of_page(table: &Table, view: &View, points: &Points, point: Option<&PointFacts>) -> String {
    let (conditions, names) = (view.facts.conditions.as_str(), points.names.as_slice());
    let (table, shared) = table.with_shared_codes();
    let (table, shared) = (&*table, shared.as_slice());
    rendered(&TableTemplate { table, shared, conditions, marked: true, point, names })
}

/// Renders a table outside of the report of a run, with or without markers.
pub(crate) fn table_under(table: &Table, conditions: &str, marked: bool) -> String {
    let (table, shared) = table.with_shared_codes();
    let (table, shared) = (&*table, shared.as_slice());
    rendered(&TableTemplate { table, shared, conditions, marked, point: None, names: &[] })
}
