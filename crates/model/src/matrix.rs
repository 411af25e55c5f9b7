//! From a plan to its cells: every combination of the axes, in the order written.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    cell::{Cell, FilesystemLevel, Fullness, SetupStep},
    factor::{FACTORS, Factor, FactorSpec, Factors},
    plan::{Plan, PlanError, WorkloadEntry},
    storage::{Place, Storage},
    units::{Bytes, Scale},
    workload::{Kind, Point, Value, ValueError},
};

/// An image never shrinks below this by scaling (unless the plan asks for less): the largest of the
/// catalogue's smallest filesystems is xfs with 300 MiB.
const LEAST_SCALED_IMAGE: Bytes = Bytes::mib(512);

/// Cells of a plan at most. Reports of so many are tested, and with the fewest trials of a second
/// each they take 17 hours.
pub const CELLS_MAX: usize = 10_000;

/// Turns a point into the points it stands for, or says why it cannot be measured. A suite's own
/// rules (a record larger than its file, an automatic sweep) live there.
pub type Refine<'a> = &'a dyn Fn(Point) -> Result<Vec<Point>, ValueError>;

/// Each once, in the order of their first appearance.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

/// What a workload runs under beside its filesystem.
#[derive(Clone)]
struct Condition {
    scheduler: Option<String>,
    fullness: Fullness,
    factors: Factors,
    suffix: String,
}

/// What differs between cells beside filesystem and workload, and is therefore in labels.
struct Varied {
    schedulers: bool,
    factors: Vec<Factor>,
}

/// A cell with the short name of its workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelled {
    /// The cell.
    pub cell: Cell,
    /// Recipe or suite, and what tells it from the recipe as it is known, and from the plan's other
    /// workloads: `iozone record=64KiB`.
    pub label: String,
}

impl Plan {
    /// Every cell of the plan at a scale. Filesystems vary slowest, then workloads, then
    /// schedulers, how full, and settings of the machine; equal cells appear once.
    ///
    /// # Errors
    /// [`PlanError`] at the workload whose combination of parameters a suite refuses, and for more
    /// than [`CELLS_MAX`] cells, at the workload with the most of them.
    pub fn cells(&self, scale: Scale, refine: Refine<'_>) -> Result<Vec<Labelled>, PlanError> {
        self.countable()?;
        let mut named: Vec<Named<'_>> = Vec::new();
        let mut cells = 0;
        for entry in &self.workloads {
            entry.survives(scale)?;
            let reference = entry.reference(scale, refine);
            let each = product(&self.outer_sizes(entry));
            for point in entry.points(scale) {
                let refined = refine(point).map_err(|error| PlanError {
                    message: error.message,
                    span: entry.span.clone(),
                    cure: error.cure,
                })?;
                // A suite may make several points of one.
                cells += each.saturating_mul(refined.len());
                if cells > CELLS_MAX {
                    return Err(self.too_many(cells, entry));
                }
                for point in refined {
                    named.push(Named { entry, reference: reference.clone(), point });
                }
            }
        }
        let labels = labels(&named);
        let varied = |spec: &&FactorSpec| self.all_values(spec.factor).len() > 1;
        let varied = Varied {
            schedulers: self.all_schedulers().len() > 1,
            factors: FACTORS.iter().filter(varied).map(|spec| spec.factor).collect(),
        };
        let (mut cells, mut seen) = (Vec::new(), BTreeSet::new());
        for filesystem in self.filesystems_at(scale) {
            for (Named { entry, point, .. }, label) in named.iter().zip(&labels) {
                for Condition { scheduler, fullness, factors, suffix } in
                    self.conditions(entry, &varied)
                {
                    let cell = Cell {
                        filesystem: filesystem.clone(),
                        workload: point.clone(),
                        scheduler,
                        fullness,
                        factors,
                        twin: false,
                    };
                    if seen.insert(cell.id()) {
                        cells.push(Labelled { cell, label: format!("{label}{suffix}") });
                    }
                }
            }
        }
        Ok(cells)
    }

    /// Refuses more than [`CELLS_MAX`] cells before any is made.
    fn countable(&self) -> Result<(), PlanError> {
        let cells = |entry: &WorkloadEntry| {
            product(&self.outer_sizes(entry)).saturating_mul(product(&entry.sizes()))
        };
        let all =
            self.workloads.iter().fold(0_usize, |all, entry| all.saturating_add(cells(entry)));
        match self.workloads.iter().max_by_key(|entry| cells(entry)) {
            Some(largest) if all > CELLS_MAX => Err(self.too_many(all, largest)),
            Some(_) | None => Ok(()),
        }
    }

    fn too_many(&self, cells: usize, largest: &WorkloadEntry) -> PlanError {
        let cells = match cells {
            usize::MAX => "more cells than can be counted".to_owned(),
            cells => format!("at least {cells} cells"),
        };
        let sizes = [self.outer_sizes(largest), largest.sizes()].concat();
        let sizes: Vec<String> = sizes
            .iter()
            .filter(|(_, size)| *size > 1)
            .map(|(name, size)| format!("{name} {size}"))
            .collect();
        let sizes = if sizes.is_empty() { "1".to_owned() } else { sizes.join(" × ") };
        let entries = match self.workloads.len() {
            1 => String::new(),
            entries => format!(" in the largest of {entries} workloads"),
        };
        let message = format!("the plan has {cells}, the limit is {CELLS_MAX}: {sizes}{entries}");
        PlanError::new(message, largest.span.clone()).cure("shorten its lists, or split the plan")
    }

    /// The sizes of the axes that each point of a workload is combined with.
    fn outer_sizes(&self, entry: &WorkloadEntry) -> Vec<(String, usize)> {
        let mut sizes = vec![
            ("filesystem".to_owned(), self.filesystems.len()),
            ("scheduler".to_owned(), self.schedulers(entry).len()),
            ("full".to_owned(), self.fullness.len().max(1)),
        ];
        sizes.extend(FACTORS.iter().filter_map(|spec| {
            Some((spec.name.to_owned(), self.values_of(entry, spec.factor)?.len()))
        }));
        sizes
    }

    /// Every combination of scheduler, fullness, and factors of a workload, with what a label says
    /// of it: what is the same in all cells of the plan is not told.
    fn conditions(&self, entry: &WorkloadEntry, varied: &Varied) -> Vec<Condition> {
        let levels = match self.fullness.as_slice() {
            [] => &[Fullness(0)],
            levels => levels,
        };
        let mut conditions = Vec::new();
        for scheduler in self.schedulers(entry) {
            for fullness in levels {
                let mut suffix = String::new();
                if let (Some(name), true) = (&scheduler, varied.schedulers) {
                    suffix += &format!(" scheduler={name}");
                }
                if levels.len() > 1 {
                    suffix += &format!(" full={}%", fullness.0);
                }
                conditions.push(Condition {
                    scheduler: scheduler.clone(),
                    fullness: *fullness,
                    factors: Factors::new(),
                    suffix,
                });
            }
        }
        for spec in FACTORS {
            let Some(values) = self.values_of(entry, spec.factor) else { continue };
            let told = varied.factors.contains(&spec.factor);
            let with = |condition: &Condition, value: &Value| {
                let mut condition = condition.clone();
                condition.factors.insert(spec.factor, value.clone());
                if told {
                    condition.suffix += &format!(" {}={value}", spec.name);
                }
                condition
            };
            conditions = conditions
                .iter()
                .flat_map(|condition| values.iter().map(|value| with(condition, value)))
                .collect();
        }
        conditions
    }

    /// The schedulers of a workload: its own, else the plan's; `None` leaves it alone.
    fn schedulers(&self, entry: &WorkloadEntry) -> Vec<Option<String>> {
        match entry.schedulers.as_ref().unwrap_or(&self.schedulers).as_slice() {
            [] => vec![None],
            names => names.iter().cloned().map(Some).collect(),
        }
    }

    fn all_schedulers(&self) -> Vec<Option<String>> {
        distinct(self.workloads.iter().flat_map(|entry| self.schedulers(entry)))
    }

    /// The values of a setting for a workload: its own, else the plan's; `None` leaves it alone.
    fn values_of<'a>(&'a self, entry: &'a WorkloadEntry, factor: Factor) -> Option<&'a [Value]> {
        let mut all = entry.factors.iter().chain(&self.factors);
        all.find(|(other, _)| *other == factor).map(|(_, values)| values.as_slice())
    }

    fn all_values(&self, factor: Factor) -> Vec<Option<&Value>> {
        distinct(self.workloads.iter().flat_map(|entry| match self.values_of(entry, factor) {
            Some(values) => values.iter().map(Some).collect(),
            None => vec![None],
        }))
    }

    /// The filesystems at a scale: trees that `setup` writes shrink with the work, to one file at
    /// least.
    pub fn filesystems_at(&self, scale: Scale) -> Vec<FilesystemLevel> {
        let mut levels = self.filesystems.clone();
        for step in levels.iter_mut().flat_map(|level| &mut level.setup) {
            if let SetupStep::Populate { files, .. } = step {
                *files = Bytes(*files).scaled(scale).0.max(1);
            }
        }
        levels
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
    /// Whether every size the plan or its recipe names keeps its ratio to the others at a scale.
    fn survives(&self, scale: Scale) -> Result<(), PlanError> {
        let named = |name: &str| self.values.iter().any(|(own, _)| own == name);
        let recipe = self.base.parameters.iter().filter(|(name, _)| !named(name));
        let recipe = recipe.filter(|_| self.recipe.is_some());
        let recipe = recipe.map(|(name, value)| (name, std::slice::from_ref(value)));
        let plan = self.values.iter().map(|(name, values)| (name, values.as_slice()));
        for (name, values) in plan.chain(recipe) {
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

    /// The sizes of its own axes.
    fn sizes(&self) -> Vec<(String, usize)> {
        self.values.iter().map(|(name, values)| (name.clone(), values.len())).collect()
    }

    /// What the entry is called in labels.
    fn family(&self) -> &str {
        self.recipe.as_deref().unwrap_or(self.suite.name)
    }

    /// The point that labels compare with: a suite's defaults as its table has them, a recipe as it
    /// would be without the plan's own parameters.
    fn reference(&self, scale: Scale, refine: Refine<'_>) -> Point {
        if self.recipe.is_none() {
            return self.base.clone();
        }
        let scaled = self.base_at(scale);
        let refined = refine(scaled.clone()).ok().and_then(|points| points.into_iter().next());
        refined.unwrap_or(scaled)
    }

    fn scaled(&self, name: &str, value: &Value, scale: Scale) -> Value {
        match self.suite.parameters.iter().find(|parameter| parameter.name == name) {
            Some(parameter) => parameter.kind.scaled(value.clone(), scale),
            None => value.clone(),
        }
    }

    fn base_at(&self, scale: Scale) -> Point {
        let mut base = self.base.clone();
        for (name, value) in &mut base.parameters {
            *value = self.scaled(name, value, scale);
        }
        base
    }

    /// Every combination of the values given, at a scale.
    fn points(&self, scale: Scale) -> Vec<Point> {
        let mut points = vec![self.base_at(scale)];
        for (name, values) in &self.values {
            let with = |point: &Point, value: &Value| {
                let mut point = point.clone();
                point.parameters.insert(name.clone(), self.scaled(name, value, scale));
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

fn product(sizes: &[(String, usize)]) -> usize {
    sizes.iter().fold(1, |all, (_, size)| all.saturating_mul(*size))
}

/// A point and what labels need to know of it.
struct Named<'a> {
    entry: &'a WorkloadEntry,
    reference: Point,
    point: Point,
}

/// For each point its recipe or suite and the parameters that are not the same in all points of
/// that name. Of these, numbers are always told; words, texts, and flags only where they are not
/// the default, which tells the points apart as well and is shorter. A recipe is known by its
/// name, so whatever differs from it is told, too.
fn labels(named: &[Named<'_>]) -> Vec<String> {
    let mut seen: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
    for Named { entry, point, .. } in named {
        for (name, value) in &point.parameters {
            let values = seen.entry((entry.family(), name)).or_default();
            if !values.contains(&value) {
                values.push(value);
            }
        }
    }
    let told = |Named { entry, reference, .. }: &Named<'_>, name: &str, value: &Value| {
        let number = match value {
            Value::Size(_)
            | Value::Count(_)
            | Value::Share(_)
            | Value::Number(_)
            | Value::Time(_) => true,
            Value::Flag(_) | Value::Text(_) | Value::Word(_) | Value::Words(_) => false,
        };
        let varies = seen[&(entry.family(), name)].len() > 1;
        let differs = reference.parameters.get(name) != Some(value);
        (varies && number) || (differs && (varies || entry.recipe.is_some()))
    };
    named
        .iter()
        .map(|one| {
            let told = one.point.parameters.iter().filter(|(name, value)| told(one, name, value));
            let told = told.map(|(name, value)| format!(" {name}={value}"));
            std::iter::once(one.entry.family().to_owned()).chain(told).collect()
        })
        .collect()
}
