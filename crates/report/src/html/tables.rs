//! Tables as markup, with what the script needs to know of them: which filesystem a row or a column
//! is about, which test a number is of, and which workload a whole table belongs to.

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
    /// Warnings that stand once below it.
    shared: &'a [&'static str],
    conditions: &'a str,
    /// Whether rows and columns about a filesystem show its marker.
    marked: bool,
    /// The workload point that the whole table is about.
    point: Option<&'a PointFacts>,
    /// Markers and names of the filesystems.
    names: &'a [(String, String)],
}

/// A workload point as attributes of the page.
#[derive(Debug)]
pub(super) struct PointFacts {
    pub(super) label: String,
    /// All parameters with their values, as a JSON object of texts.
    pub(super) parameters: String,
}

/// What sections and tables say of the points they are about, and of the filesystems.
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

    /// The point with an anchor.
    pub(super) fn get(&self, id: &str) -> Option<&PointFacts> {
        self.by_id.get(id)
    }
}

impl TableTemplate<'_> {
    /// Takes a reference because the template gives one.
    fn is_words(&self, column: &usize) -> bool {
        self.table.is_words(*column)
    }

    /// Takes a reference because the template gives one.
    fn marker(&self, filesystem: &Option<usize>) -> Cow<'_, str> {
        let of = |index: usize| match self.names.get(index) {
            Some((marker, _)) => Cow::Borrowed(marker.as_str()),
            None => Cow::Owned(marker(index)),
        };
        filesystem.filter(|_| self.marked).map(of).unwrap_or_default()
    }

    /// A number to sort by, with seven significant digits. Takes a reference because the template
    /// gives one.
    fn sort(&self, value: &f64) -> f64 {
        format!("{value:.6e}").parse().unwrap_or(*value)
    }

    /// The name of the filesystem that something is about. Takes a reference because the template
    /// gives one.
    fn name(&self, filesystem: &Option<usize>) -> Option<&str> {
        let of = |index: usize| self.names.get(index).map(|(_, name)| name.as_str());
        filesystem.filter(|_| self.marked).and_then(of)
    }

    /// The filesystem that all numbers of the table are about, where neither rows nor columns say
    /// it.
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

/// A table under the conditions of the run.
pub(super) fn table_html(table: &Table, view: &View, points: &Points) -> String {
    of_page(table, view, points, None)
}

/// The same of a table about one point, whose id begins with the anchor of the point.
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

/// A table under its conditions, with the markers of filesystems or without, outside the report of
/// a run.
pub(crate) fn table_under(table: &Table, conditions: &str, marked: bool) -> String {
    let (table, shared) = table.with_shared_codes();
    let (table, shared) = (&*table, shared.as_slice());
    rendered(&TableTemplate { table, shared, conditions, marked, point: None, names: &[] })
}
