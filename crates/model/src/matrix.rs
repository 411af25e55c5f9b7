//! From a plan to its cells: every combination of the axes, in the order written.

use std::collections::BTreeMap;

use crate::{
    cell::Cell,
    plan::{Plan, PlanError, WorkloadEntry},
    storage::{Place, Storage},
    units::{Bytes, Scale},
    workload::{Kind, Point, Value, ValueError},
};

/// An image never shrinks below this by scaling (unless the plan asks for less): the largest of the
/// catalogue's smallest filesystems is xfs with 300 MiB.
const LEAST_SCALED_IMAGE: Bytes = Bytes::mib(512);

/// Turns a point into the points it stands for, or says why it cannot be measured. A suite's own
/// rules (a record larger than its file, an automatic sweep) live there.
pub type Refine<'a> = &'a dyn Fn(Point) -> Result<Vec<Point>, ValueError>;

/// A cell with the short name of its workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelled {
    /// The cell.
    pub cell: Cell,
    /// Suite, and what tells it from the plan's other workloads: `iozone record=64KiB`.
    pub label: String,
}

impl Plan {
    /// Every cell of the plan at a scale. Filesystems vary slowest, then workloads, then
    /// schedulers; equal cells appear once.
    ///
    /// # Errors
    /// [`PlanError`] at the workload whose combination of parameters a suite refuses.
    pub fn cells(&self, scale: Scale, refine: Refine<'_>) -> Result<Vec<Labelled>, PlanError> {
        let mut points: Vec<Point> = Vec::new();
        for entry in &self.workloads {
            entry.survives(scale)?;
            for point in entry.points(scale) {
                let refined = refine(point).map_err(|error| PlanError {
                    message: error.message,
                    span: entry.span.clone(),
                    cure: error.cure,
                })?;
                for point in refined {
                    if !points.contains(&point) {
                        points.push(point);
                    }
                }
            }
        }
        let schedulers: Vec<Option<String>> = match self.schedulers.as_slice() {
            [] => vec![None],
            names => names.iter().cloned().map(Some).collect(),
        };
        let defaults: Vec<Point> = self.workloads.iter().map(|e| e.suite.defaults()).collect();
        let labels = labels(&points, &defaults);
        let mut cells = Vec::new();
        for filesystem in &self.filesystems {
            for (point, label) in points.iter().zip(&labels) {
                for scheduler in &schedulers {
                    let cell = Cell {
                        filesystem: filesystem.clone(),
                        workload: point.clone(),
                        scheduler: scheduler.clone(),
                    };
                    let label = match (scheduler, schedulers.len()) {
                        (Some(name), 2..) => format!("{label} scheduler={name}"),
                        _ => label.clone(),
                    };
                    let labelled = Labelled { cell, label };
                    if !cells.contains(&labelled) {
                        cells.push(labelled);
                    }
                }
            }
        }
        Ok(cells)
    }

    /// The plan's storage at a scale: memory shrinks with the work, an image at most to 512 MiB.
    pub fn storage_at(&self, scale: Scale) -> Storage {
        let mut storage = self.storage.clone();
        storage.memory = storage.memory.map(|memory| memory.scaled(scale));
        if let Place::Image { size, .. } = &mut storage.place {
            *size = Bytes(size.scaled(scale).0 / 4096 * 4096).max(LEAST_SCALED_IMAGE.min(*size));
        }
        storage
    }
}

impl WorkloadEntry {
    /// Whether every size the plan names keeps its ratio to the others at a scale.
    fn survives(&self, scale: Scale) -> Result<(), PlanError> {
        for (name, values) in &self.values {
            let Ok(spec) = self.suite.parameter(name) else { continue };
            for value in values {
                if let (Kind::Size { min, scales: true }, Value::Size(size)) = (spec.kind, value)
                    && size.scaled(scale) < min
                {
                    let scaled = size.scaled(scale);
                    return Err(PlanError {
                        message: format!(
                            "at scale {scale} `{name}` of {size} would be {scaled}; the least is {min}"
                        ),
                        span: self.span.clone(),
                        cure: Some("take a larger scale".into()),
                    });
                }
            }
        }
        Ok(())
    }

    /// Every combination of the values given, defaults elsewhere, at a scale.
    fn points(&self, scale: Scale) -> Vec<Point> {
        let kind =
            |name: &str| self.suite.parameters.iter().find(|p| p.name == name).map(|p| p.kind);
        let scaled = |name: &str, value: &Value| match kind(name) {
            Some(kind) => kind.scaled(value.clone(), scale),
            None => value.clone(),
        };
        let mut defaults = self.suite.defaults();
        for (name, value) in &mut defaults.parameters {
            *value = scaled(name, value);
        }
        let mut points = vec![defaults];
        for (name, values) in &self.values {
            let with = |point: &Point, value: &Value| {
                let mut point = point.clone();
                point.parameters.insert(name.clone(), scaled(name, value));
                point
            };
            points = points
                .iter()
                .flat_map(|point| values.iter().map(|value| with(point, value)).collect::<Vec<_>>())
                .collect();
        }
        points
    }
}

/// For each point its suite and the parameters that are not the same in all points of that suite.
/// Of these, sizes and counts are always told; words and flags only where they are not the default,
/// which tells the points apart as well and is shorter.
fn labels(points: &[Point], defaults: &[Point]) -> Vec<String> {
    let mut seen: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
    for point in points {
        for (name, value) in &point.parameters {
            let values = seen.entry((&point.suite, name)).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    let varies = |suite: &str, name: &str| seen[&(suite, name)].len() > 1;
    let default = |suite: &str, name: &str| {
        defaults.iter().find(|point| point.suite == suite)?.parameters.get(name)
    };
    let told = |point: &Point, name: &str, value: &Value| {
        let number = matches!(value, Value::Size(_) | Value::Count(_) | Value::Share(_));
        varies(&point.suite, name) && (number || default(&point.suite, name) != Some(value))
    };
    points
        .iter()
        .map(|point| {
            let told = point.parameters.iter().filter(|(name, value)| told(point, name, value));
            let told = told.map(|(name, value)| format!(" {name}={value}"));
            std::iter::once(point.suite.clone()).chain(told).collect()
        })
        .collect()
}
