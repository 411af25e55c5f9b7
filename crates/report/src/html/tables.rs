//! Tables of a run, with attributes for the script: filesystem of a row or column, test of a
//! number, and workload of a table.

use std::collections::BTreeMap;

use super::reference;
use crate::{
    document::{
        Table,
        html::{PointFacts, TableTemplate, rendered},
    },
    units::one_line,
    view::View,
};

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

/// Renders a table with the conditions of the run.
pub(super) fn table_html(table: &Table, points: &Points) -> String {
    of_page(table, points, None)
}

/// Renders a table of one point, whose id begins with the anchor of the point.
pub(super) fn of_point(table: &Table, points: &Points) -> String {
    let point = table.id.split("--").next().and_then(|id| points.get(id));
    of_page(table, points, point)
}

fn of_page(table: &Table, points: &Points, point: Option<&PointFacts>) -> String {
    let names = points.names.as_slice();
    let (table, shared) = table.with_shared_codes();
    let (table, shared) = (&*table, shared.as_slice());
    rendered(&TableTemplate { table, shared, marked: true, point, names })
}
