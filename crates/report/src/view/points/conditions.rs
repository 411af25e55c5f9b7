//! Parameters and conditions of a point: suite parameters, and the scheduler, fill level, and
//! system settings that the plan varies.

use std::collections::{BTreeMap, BTreeSet};

use model::{Bytes, Cell, Nanos, Value};

use super::CLIENT_LEVELS;
use crate::{
    units::{distinct, one_line},
    view::sample_index::SampleIndex,
};

/// Level of a condition at points where the plan does not set it.
pub(crate) const AS_FOUND: &str = "unchanged";

/// Key of the fill level.
pub(super) const FULL: &str = "full";

/// Suffix of a system setting with the same name as a suite parameter.
const OF_MACHINE: &str = " (system setting)";

/// Key of the I/O scheduler.
const SCHEDULER: &str = "scheduler";

/// Names of the parameter that is the number of clients (`SuiteSpec::clients`, which is not stored
/// in run files).
const CLIENTS: [&str; 4] = ["hosts", "clients", "workers", "deliverers"];

/// Facts about a loadfile: name of the fact, prefix, and suffix.
const LOAD: [(&str, &str, &str); 4] = [
    ("loadfile.label", "load ", ""),
    ("loadfile.sha256", "sha256 ", ""),
    ("loadfile.lines", "", " lines"),
    ("loadfile.mix", "", ""),
];

/// Key of a cell without its filesystem: equal for cells that differ only in the filesystem.
pub(super) fn work(cell: &Cell) -> String {
    let Cell { workload, scheduler, fill_level, settings, options, .. } = cell;
    format!("{:?}", (workload, scheduler, fill_level, settings, options))
}

/// Conditions of a cell. The fill level is included if any filesystem of the run was filled. A
/// system setting with the name of a suite parameter gets a suffix.
pub(super) fn conditions(cell: &Cell, filled: bool) -> BTreeMap<String, Value> {
    let mut conditions = BTreeMap::new();
    if let Some(scheduler) = &cell.scheduler {
        conditions.insert(SCHEDULER.into(), Value::Word(scheduler.clone()));
    }
    if filled {
        conditions.insert(FULL.into(), Value::Word(cell.fill_level.to_string()));
    }
    for (factor, value) in &cell.settings {
        let taken = cell.workload.parameters.contains_key(factor.spec().name);
        let key = if taken { format!("{factor}{OF_MACHINE}") } else { factor.to_string() };
        conditions.insert(key, value.clone());
    }
    conditions.extend(cell.options.clone());
    conditions
}

/// Suite parameters and conditions of a cell.
pub(super) fn parameters(cell: &Cell, filled: bool) -> BTreeMap<String, Value> {
    let mut parameters = cell.workload.parameters.clone();
    parameters.extend(conditions(cell, filled));
    parameters
}

/// Label of a point. Conditions that are constant in the plan are missing in `label` and appended.
pub(super) fn label(label: &str, conditions: &BTreeMap<String, Value>) -> String {
    let constant = conditions.iter().filter(|(name, value)| match name.as_str() {
        // The fill level is in the label if it varies, otherwise in the run conditions.
        FULL => false,
        _ => !label.contains(&written(name, value)),
    });
    let constant =
        constant.map(|(name, value)| format!(", {name} {}", one_line(&value.to_string())));
    std::iter::once(label.to_owned()).chain(constant).collect()
}

/// Condition as in labels, with a leading space.
fn written(name: &str, value: &Value) -> String {
    let value = match name {
        FULL => value.to_string().replace(' ', ""),
        _ => value.to_string(),
    };
    format!(" {}={value}", name.trim_end_matches(OF_MACHINE))
}

/// Label without the last occurrence of a condition.
pub(crate) fn without(label: &str, name: &str, value: &Value) -> String {
    let written = written(name, value);
    match label.rfind(&written) {
        Some(at) => format!("{}{}", &label[..at], &label[at + written.len()..]),
        None => label.to_owned(),
    }
}

/// Names of parameters with several values. A point that does not set a parameter counts as a
/// value.
pub(super) fn swept(points: &[BTreeMap<String, Value>]) -> Vec<String> {
    let names: BTreeSet<&String> = points.iter().flat_map(BTreeMap::keys).collect();
    let varies = |name: &&String| {
        points.windows(2).any(|two| two[0].get(name.as_str()) != two[1].get(name.as_str()))
    };
    names.into_iter().filter(varies).cloned().collect()
}

/// Parameter that is the number of clients, if it has at least [`CLIENT_LEVELS`] values at points
/// that do not differ otherwise.
pub(super) fn clients(
    points: &[BTreeMap<String, Value>],
    swept: &[String],
) -> Option<&'static str> {
    let scales = |name: &&&'static str| {
        let others = |point: &BTreeMap<String, Value>| {
            let others = point.iter().filter(|(other, _)| other.as_str() != **name);
            others.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
        };
        let mut levels: BTreeMap<Vec<String>, BTreeSet<u64>> = BTreeMap::new();
        for point in points {
            if let Some(Value::Count(clients)) = point.get(**name) {
                levels.entry(others(point)).or_default().insert(*clients);
            }
        }
        levels.values().any(|levels| levels.len() >= CLIENT_LEVELS)
    };
    let named = CLIENTS.iter().filter(|name| swept.iter().any(|own| own == **name));
    named.filter(scales).copied().next()
}

/// Facts about the loadfile of some cells, without duplicates.
pub(super) fn load(sample_index: &SampleIndex, cells: &[usize]) -> Vec<String> {
    let trials = || cells.iter().flat_map(|cell| sample_index.measured(*cell));
    distinct(LOAD.into_iter().flat_map(|(fact, before, after)| {
        let answers = trials().filter_map(move |trial| trial.environment.get(fact)).map(one_line);
        answers.map(move |answer| format!("{before}{answer}{after}"))
    }))
}

/// Sort key of a size, count, or time. `None` for other values, which keep the order of the plan.
pub(super) fn magnitude(value: &Value) -> Option<u64> {
    match value {
        Value::Size(Bytes(number)) | Value::Count(number) | Value::Time(Nanos(number)) => {
            Some(*number)
        }
        Value::Fraction(_)
        | Value::Number(_)
        | Value::Flag(_)
        | Value::Text(_)
        | Value::Word(_)
        | Value::Words(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use model::{FilesystemLevel, FillLevel, SystemSetting, WorkloadParameters};

    use super::*;

    fn cell(parameters: &[(&str, u64)], factors: &[(SystemSetting, u64)]) -> Cell {
        let parameters = parameters.iter();
        let parameters =
            parameters.map(|(name, value)| ((*name).to_owned(), Value::Count(*value))).collect();
        Cell {
            filesystem: FilesystemLevel::plain("ext4"),
            workload: WorkloadParameters { suite: "toy".into(), parameters },
            scheduler: Some("none".into()),
            fill_level: FillLevel(0),
            settings: factors.iter().map(|(factor, n)| (*factor, Value::Count(*n))).collect(),
            options: Default::default(),
            aa_duplicate: false,
        }
    }

    #[test]
    fn a_setting_with_the_name_of_a_parameter_hides_neither() {
        let cell = cell(
            &[("nr_requests", 16)],
            &[(SystemSetting::NrRequests, 64), (SystemSetting::OnlineCpus, 2)],
        );
        let parameters = parameters(&cell, false);
        let labels = parameters.iter().map(|(name, value)| format!("{name}={value}"));
        let expected = [
            "nr_requests=16",
            "nr_requests (system setting)=64",
            "online_cpus=2",
            "scheduler=none",
        ];
        assert_eq!(labels.collect::<Vec<_>>(), expected);
        let own = conditions(&cell, false);
        let label = label("toy nr_requests=16 nr_requests=64", &own);
        assert_eq!(label, "toy nr_requests=16 nr_requests=64, online_cpus 2, scheduler none");
        let value = &own["nr_requests (system setting)"];
        assert_eq!(
            without(
                "toy nr_requests=64 nr_requests=64 cpus=2",
                "nr_requests (system setting)",
                value
            ),
            "toy nr_requests=64 cpus=2"
        );
    }

    #[test]
    fn cells_with_different_settings_are_different_points() {
        let slow = cell(&[("files", 1)], &[(SystemSetting::OnlineCpus, 1)]);
        let fast = cell(&[("files", 1)], &[(SystemSetting::OnlineCpus, 2)]);
        assert_ne!(work(&slow), work(&fast));
        assert_eq!(work(&slow), work(&slow.clone()));
    }

    #[test]
    fn a_parameter_that_only_some_points_set_is_swept() {
        let all = [
            parameters(&cell(&[("clients", 1)], &[]), false),
            parameters(&cell(&[("clients", 1)], &[(SystemSetting::OnlineCpus, 2)]), false),
        ];
        assert_eq!(swept(&all), ["online_cpus"]);
    }

    #[test]
    fn clients_scale_over_three_numbers_under_one_condition() {
        let point = |clients, cpus| {
            parameters(&cell(&[("clients", clients)], &[(SystemSetting::OnlineCpus, cpus)]), false)
        };
        let names = ["clients".to_owned(), "cpus".to_owned()];
        let apart = [point(1, 1), point(2, 1), point(4, 2)];
        assert_eq!(clients(&apart, &names), None);
        let together = [point(1, 1), point(2, 1), point(4, 1)];
        assert_eq!(clients(&together, &names), Some("clients"));
        assert_eq!(clients(&together, &["cpus".to_owned()]), None, "it does not vary");
    }
}
