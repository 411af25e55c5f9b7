//! Expansion of a plan into cells: all combinations of the levels of its axes, in text order.

mod together;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    cell::{Cell, FilesystemLevel, FillLevel, SetupStep},
    design::Design,
    options::VariedOptions,
    plan::{Plan, PlanError, WorkloadEntry, together::TogetherEntry},
    setting::{SETTINGS, SettingSpec, SystemSetting, SystemSettings},
    storage::{Storage, StorageKind},
    units::{Bytes, Scale},
    workload::{Kind, Value, ValueError, WorkloadParameters},
};

/// Minimum size of a scaled image, unless the image is smaller in the plan. The largest minimum
/// size in the catalog is 300 MiB (xfs).
const LEAST_SCALED_IMAGE: Bytes = Bytes::mib(512);

/// Maximum number of cells of a plan. Reports of this size are tested. A run of this size takes 17
/// hours, with the fewest trials and one second per trial.
pub const CELLS_MAX: usize = 10_000;

/// Function that checks the parameters of a workload by the rules of its suite, and expands an
/// automatic sweep. It rejects, for example, a block larger than its file.
pub type Refine<'a> = &'a dyn Fn(WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError>;

/// Distinct items, in the order of their first appearance.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}

/// Run conditions of a workload besides the filesystem.
#[derive(Clone)]
struct Condition {
    scheduler: Option<String>,
    fullness: FillLevel,
    factors: SystemSettings,
    suffix: String,
}

/// Conditions that differ between cells, and are therefore part of their labels.
struct Varied {
    schedulers: bool,
    factors: Vec<SystemSetting>,
}

/// Cell with the label of its workload.
#[derive(Clone, Debug, PartialEq)]
pub struct LabeledCell {
    /// Cell.
    pub cell: Cell,
    /// Name of the preset or suite, and the parameters that differ from the preset or between
    /// workloads of the plan: `iozone block_size=64KiB`.
    pub label: String,
}

impl Plan {
    /// All cells of the plan at a scale. Filesystems vary slowest, then workloads, schedulers, fill
    /// levels, system settings, and options. Equal cells appear once.
    ///
    /// # Errors
    /// [`PlanError`] at a workload with an invalid combination of parameters. For more than
    /// [`CELLS_MAX`] cells, [`PlanError`] at the workload with the most cells, or at the workload
    /// whose automatic sweep exceeds the limit.
    pub fn cells(&self, scale: Scale, refine: Refine<'_>) -> Result<Vec<LabeledCell>, PlanError> {
        self.check_cell_count()?;
        let mut named: Vec<Named<'_>> = Vec::new();
        let mut cells = 0;
        for entry in &self.workloads {
            entry.check_scale(scale)?;
            let reference = entry.reference(scale, refine);
            let each = product(&self.outer_sizes(entry));
            let points = match &entry.together {
                Some(together) => together.points(&entry.points(scale), scale, refine)?,
                None => entry.points(scale).into_iter().map(|it| (it, String::new())).collect(),
            };
            for (point, label) in points {
                let refined = refine(point).map_err(|error| PlanError {
                    message: error.message,
                    span: entry.span.clone(),
                    hint: error.hint,
                })?;
                // A suite may expand parameters into several combinations.
                cells += each.saturating_mul(refined.len());
                if cells > CELLS_MAX {
                    return Err(self.too_many(cells, entry));
                }
                for point in refined {
                    let (reference, label) = (reference.clone(), label.clone());
                    named.push(Named { entry, reference, point, label });
                }
            }
        }
        let labels = labels(&named);
        let varied = |spec: &&SettingSpec| self.all_values(spec.setting).len() > 1;
        let varied = Varied {
            schedulers: self.all_schedulers().len() > 1,
            factors: SETTINGS.iter().filter(varied).map(|spec| spec.setting).collect(),
        };
        let (mut cells, mut seen) = (Vec::new(), BTreeSet::new());
        let options = self.options_of_cells();
        let none = [(VariedOptions::new(), String::new())];
        for filesystem in self.filesystems_at(scale) {
            // A block device has no options.
            let options = if filesystem.is_raw() { none.as_slice() } else { options.as_slice() };
            for (Named { entry, point, .. }, label) in named.iter().zip(&labels) {
                let conditions = self.conditions(entry, &varied);
                let all = conditions.iter().flat_map(|one| options.iter().map(move |it| (one, it)));
                for (condition, (options, chosen)) in all {
                    let Condition { scheduler, fullness, factors, suffix } = condition.clone();
                    let cell = Cell {
                        filesystem: filesystem.clone(),
                        workload: point.clone(),
                        scheduler,
                        fill_level: fullness,
                        settings: factors,
                        options: options.clone(),
                        aa_duplicate: false,
                    };
                    if seen.insert(cell.id()) {
                        cells.push(LabeledCell { cell, label: format!("{label}{suffix}{chosen}") });
                    }
                }
            }
        }
        Ok(cells)
    }

    /// Combinations of the varied options, with suffixes for labels.
    fn options_of_cells(&self) -> Vec<(VariedOptions, String)> {
        let combinations = Design::combinations(self.design, &self.options).unwrap_or_default();
        let named = |combination: Vec<usize>| {
            let values = self.options.iter().zip(combination);
            let mut suffix = String::new();
            let mut options = VariedOptions::new();
            for (option, value) in values {
                let value = &option.values[value];
                if option.values.len() > 1 {
                    suffix += &format!(" {}={value}", option.key);
                }
                options.insert(option.key.clone(), value.clone());
            }
            (options, suffix)
        };
        combinations.into_iter().map(named).collect()
    }

    /// Rejects plans with more than [`CELLS_MAX`] cells before any cell is created.
    fn check_cell_count(&self) -> Result<(), PlanError> {
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
            usize::MAX => "more than 2^64 cells".to_owned(),
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
        let message = format!("the plan has {cells}; the maximum is {CELLS_MAX}: {sizes}{entries}");
        PlanError::new(message, largest.span.clone()).hint("shorten the lists, or split the plan")
    }

    /// Numbers of levels of the axes that are combined with the parameters of a workload.
    fn outer_sizes(&self, entry: &WorkloadEntry) -> Vec<(String, usize)> {
        let mut sizes = vec![
            ("filesystem".to_owned(), self.filesystems.len()),
            ("scheduler".to_owned(), self.schedulers(entry).len()),
            ("fill_percent".to_owned(), self.fill_levels.len().max(1)),
            ("options".to_owned(), self.options_of_cells().len()),
        ];
        sizes.extend(SETTINGS.iter().filter_map(|spec| {
            Some((spec.name.to_owned(), self.values_of(entry, spec.setting)?.len()))
        }));
        sizes
    }

    /// All combinations of scheduler, fill level, and system settings of a workload, with suffixes
    /// for labels. Values that all cells have are not part of labels.
    fn conditions(&self, entry: &WorkloadEntry, varied: &Varied) -> Vec<Condition> {
        let levels = match self.fill_levels.as_slice() {
            [] => &[FillLevel(0)],
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
                    suffix += &format!(" fill_percent={}", fullness.0);
                }
                conditions.push(Condition {
                    scheduler: scheduler.clone(),
                    fullness: *fullness,
                    factors: SystemSettings::new(),
                    suffix,
                });
            }
        }
        for spec in SETTINGS {
            let Some(values) = self.values_of(entry, spec.setting) else { continue };
            let shown = varied.factors.contains(&spec.setting);
            let with = |condition: &Condition, value: &Value| {
                let mut condition = condition.clone();
                condition.factors.insert(spec.setting, value.clone());
                if shown {
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

    /// Schedulers of a workload: its own, else those of the plan. `None` stands for unchanged.
    fn schedulers(&self, entry: &WorkloadEntry) -> Vec<Option<String>> {
        match entry.schedulers.as_ref().unwrap_or(&self.schedulers).as_slice() {
            [] => vec![None],
            names => names.iter().cloned().map(Some).collect(),
        }
    }

    fn all_schedulers(&self) -> Vec<Option<String>> {
        distinct(self.workloads.iter().flat_map(|entry| self.schedulers(entry)))
    }

    /// Values of a setting for a workload: its own, else those of the plan. `None` if the setting
    /// is unchanged.
    fn values_of<'a>(
        &'a self,
        entry: &'a WorkloadEntry,
        factor: SystemSetting,
    ) -> Option<&'a [Value]> {
        let mut all = entry.system_settings.iter().chain(&self.system_settings);
        all.find(|(other, _)| *other == factor).map(|(_, values)| values.as_slice())
    }

    fn all_values(&self, factor: SystemSetting) -> Vec<Option<&Value>> {
        distinct(self.workloads.iter().flat_map(|entry| match self.values_of(entry, factor) {
            Some(values) => values.iter().map(Some).collect(),
            None => vec![None],
        }))
    }

    /// Filesystems at a scale. The number of files in trees that `setup` generates is scaled, but
    /// at least one.
    pub fn filesystems_at(&self, scale: Scale) -> Vec<FilesystemLevel> {
        let mut levels = self.filesystems.clone();
        for step in levels.iter_mut().flat_map(|level| &mut level.setup) {
            if let SetupStep::Populate { files, .. } = step {
                *files = Bytes(*files).scaled(scale).0.max(1);
            }
        }
        levels
    }

    /// Storage at a scale. The memory limit and image sizes are scaled. Images have at least 512
    /// MiB and together at least `needed`, unless they are smaller in the plan. Sizes that are an
    /// axis are not scaled.
    pub fn storage_at(&self, scale: Scale, needed: Bytes) -> Storage {
        let mut storage = self.storage.clone();
        storage.memory_limit = storage.memory_limit.map(|memory| memory.scaled(scale));
        if self.has_sizes() {
            return storage;
        }
        for kind in storage.kind.each_mut() {
            let StorageKind::Image { size, count, .. } = kind else { continue };
            let share = needed.0.div_ceil(u64::from(*count).max(1) << 20);
            let least = LEAST_SCALED_IMAGE.max(Bytes::mib(share));
            *size = Bytes(size.scaled(scale).0 / 4096 * 4096).max(least.min(*size));
        }
        storage
    }
}

impl WorkloadEntry {
    /// Rejects scales at which a size of the plan or preset would be below its minimum. If only
    /// this size were raised to its minimum, the ratios of sizes would change.
    fn check_scale(&self, scale: Scale) -> Result<(), PlanError> {
        let members = self.together.iter().flat_map(|together| &together.members);
        members.map(|member| &member.entry).try_for_each(|entry| entry.check_scale(scale))?;
        let named = |name: &str| self.values.iter().any(|(own, _)| own == name);
        let preset = self.base.parameters.iter().filter(|(name, _)| !named(name));
        let preset = preset.filter(|_| self.preset.is_some());
        let preset = preset.map(|(name, value)| (name, std::slice::from_ref(value)));
        let plan = self.values.iter().map(|(name, values)| (name, values.as_slice()));
        for (name, values) in plan.chain(preset) {
            let Ok(spec) = self.suite.parameter(name) else { continue };
            for value in values {
                if let (Kind::Size { min, scales: true }, Value::Size(size)) = (spec.kind, value)
                    && size.scaled(scale) < min
                {
                    let scaled = size.scaled(scale);
                    return Err(PlanError {
                        message: format!(
                            "at scale {scale} `{name}` of {size} would be {scaled}; the minimum \
                             is {min}"
                        ),
                        span: self.span.clone(),
                        hint: Some("use a larger scale".into()),
                    });
                }
            }
        }
        Ok(())
    }

    /// Numbers of values of the parameters.
    fn sizes(&self) -> Vec<(String, usize)> {
        let own = self.values.iter().map(|(name, values)| (name.clone(), values.len()));
        own.chain(self.together.iter().flat_map(TogetherEntry::sizes)).collect()
    }

    /// Name in labels.
    fn family(&self) -> &str {
        self.preset.as_deref().unwrap_or(self.suite.name)
    }

    /// Parameters that a label is compared with: the defaults of the suite, or the scaled preset.
    fn reference(&self, scale: Scale, refine: Refine<'_>) -> WorkloadParameters {
        if self.preset.is_none() {
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

    fn base_at(&self, scale: Scale) -> WorkloadParameters {
        let mut base = self.base.clone();
        for (name, value) in &mut base.parameters {
            *value = self.scaled(name, value, scale);
        }
        base
    }

    /// All combinations of the parameter values, scaled.
    pub(crate) fn points(&self, scale: Scale) -> Vec<WorkloadParameters> {
        let mut points = vec![self.base_at(scale)];
        for (name, values) in &self.values {
            let with = |point: &WorkloadParameters, value: &Value| {
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

/// Workload parameters, with the parameters that their label is compared with.
struct Named<'a> {
    entry: &'a WorkloadEntry,
    reference: WorkloadParameters,
    point: WorkloadParameters,
    /// Label of workloads that run together; empty for a single workload.
    label: String,
}

/// Name of the file of an absolute path, if no other value has the same.
fn file_name(value: &Value, all: &[&Value]) -> Option<String> {
    let name = |value: &Value| {
        let Value::Text(text) = value else { return None };
        text.starts_with('/').then(|| text.rsplit('/').next().map(str::to_owned)).flatten()
    };
    let own = name(value).filter(|own| !own.is_empty())?;
    let same = all.iter().filter(|other| name(other).as_ref() == Some(&own)).count();
    (same <= 1).then_some(own)
}

/// Labels: the name of the preset or suite, and the parameters that differ between workloads of the
/// same name. A differing number is always part of the label. A keyword, a text, or a boolean is
/// part of the label only if its value differs from the default, which keeps labels short.
/// Parameters that differ from a preset are always part of the label. A path is shortened to the
/// name of the file if that is unique.
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
    let shown = |Named { entry, reference, .. }: &Named<'_>, name: &str, value: &Value| {
        let number = match value {
            Value::Size(_)
            | Value::Count(_)
            | Value::Fraction(_)
            | Value::Number(_)
            | Value::Time(_) => true,
            Value::Flag(_) | Value::Text(_) | Value::Word(_) | Value::Words(_) => false,
        };
        let values = |name| seen.get(&(entry.family(), name)).map_or(0, Vec::len);
        let varies = values(name) > 1;
        // The names of commands are shorter than their programs, and those of recordings shorter
        // than their hashes.
        let long = matches!(value, Value::Text(text) if text.contains(char::is_whitespace));
        let shorter = if name == "sha256" { "trace" } else { "name" };
        if (long || name == "sha256") && values(shorter) > 1 && values(shorter) >= values(name) {
            return false;
        }
        let differs = reference.parameters.get(name) != Some(value);
        (varies && number) || (differs && (varies || entry.preset.is_some()))
    };
    named
        .iter()
        .map(|one| {
            if !one.label.is_empty() {
                return one.label.clone();
            }
            let shown = one.point.parameters.iter().filter(|(name, value)| shown(one, name, value));
            let text = |name: &str, value: &Value| {
                let all = seen.get(&(one.entry.family(), name)).map_or(&[][..], Vec::as_slice);
                file_name(value, all).unwrap_or_else(|| value.to_string().replace('\n', "; "))
            };
            let shown = shown.map(|(name, value)| format!(" {name}={}", text(name, value)));
            std::iter::once(one.entry.family().to_owned()).chain(shown).collect()
        })
        .collect()
}
