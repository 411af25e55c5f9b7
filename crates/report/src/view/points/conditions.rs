//! What a point is under beside its filesystem: parameters of the suite, and settings that the plan
//! varies beside the workload.

use std::collections::{BTreeMap, BTreeSet};

use model::{Bytes, Cell, Nanos, Value};

use super::CLIENT_LEVELS;
use crate::{units::one_line, view::pool::Pool};

/// What stands for a condition that the plan leaves alone where it sets it elsewhere.
pub(crate) const AS_FOUND: &str = "as found";

/// The key of how full the filesystem was.
pub(super) const FULL: &str = "full";

/// What tells a setting of the machine from a parameter of the same name.
const OF_MACHINE: &str = " of the machine";

/// The key of the I/O scheduler.
const SCHEDULER: &str = "scheduler";

/// Names that suites have for how many clients work at the same time (`SuiteSpec::clients`, which a
/// run file does not hold).
const CLIENTS: [&str; 3] = ["clients", "workers", "processes"];

/// Facts about a load file, and how they are told.
const LOAD: [(&str, &str, &str); 4] = [
    ("load.label", "load ", ""),
    ("load.sha256", "sha256 ", ""),
    ("load.lines", "", " lines"),
    ("load.mix", "", ""),
];

/// What a cell is but for its filesystem, as a key: equal for cells that differ in nothing else.
pub(super) fn work(cell: &Cell) -> String {
    format!("{:?}", (&cell.workload, &cell.scheduler, &cell.fullness, &cell.factors))
}

/// What the plan sets beside the workload. How full the filesystem was stands among it where any of
/// the run was filled. A setting of the machine that is called as a parameter of the suite is told
/// apart from it.
pub(super) fn conditions(cell: &Cell, filled: bool) -> BTreeMap<String, Value> {
    let mut conditions = BTreeMap::new();
    if let Some(scheduler) = &cell.scheduler {
        conditions.insert(SCHEDULER.into(), Value::Word(scheduler.clone()));
    }
    if filled {
        conditions.insert(FULL.into(), Value::Word(cell.fullness.to_string()));
    }
    for (factor, value) in &cell.factors {
        let taken = cell.workload.parameters.contains_key(factor.spec().name);
        let key = if taken { format!("{factor}{OF_MACHINE}") } else { factor.to_string() };
        conditions.insert(key, value.clone());
    }
    conditions
}

/// The parameters of the suite and the conditions.
pub(super) fn parameters(cell: &Cell, filled: bool) -> BTreeMap<String, Value> {
    let mut parameters = cell.workload.parameters.clone();
    parameters.extend(conditions(cell, filled));
    parameters
}

/// The label of a point with the conditions that it does not tell, because they are the same in the
/// whole plan.
pub(super) fn label(label: &str, conditions: &BTreeMap<String, Value>) -> String {
    let untold = conditions.iter().filter(|(name, value)| match name.as_str() {
        // It is told by all points or, with the conditions of the run, by none.
        FULL => false,
        _ => !label.contains(&written(name, value)),
    });
    let untold = untold.map(|(name, value)| format!(", {name} {}", one_line(&value.to_string())));
    std::iter::once(label.to_owned()).chain(untold).collect()
}

/// A condition as labels have it, with the space before it.
fn written(name: &str, value: &Value) -> String {
    let value = match name {
        FULL => value.to_string().replace(' ', ""),
        _ => value.to_string(),
    };
    format!(" {}={value}", name.trim_end_matches(OF_MACHINE))
}

/// A label without one of its conditions, which stand at its end.
pub(crate) fn without(label: &str, name: &str, value: &Value) -> String {
    let written = written(name, value);
    match label.rfind(&written) {
        Some(at) => format!("{}{}", &label[..at], &label[at + written.len()..]),
        None => label.to_owned(),
    }
}

/// Names of the parameters with more than one value; being left as it was is a value.
pub(super) fn swept(points: &[BTreeMap<String, Value>]) -> Vec<String> {
    let names: BTreeSet<&String> = points.iter().flat_map(BTreeMap::keys).collect();
    let varies = |name: &&String| {
        points.windows(2).any(|two| two[0].get(name.as_str()) != two[1].get(name.as_str()))
    };
    names.into_iter().filter(varies).cloned().collect()
}

/// The parameter that says how many clients there are, where a sweep of it shows scaling.
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

/// What the trials of some cells replayed, each fact once.
pub(super) fn load(pool: &Pool, cells: &[usize]) -> Vec<String> {
    let trials = || cells.iter().flat_map(|cell| pool.measured(*cell));
    let mut told: Vec<String> = Vec::new();
    for (fact, before, after) in LOAD {
        let answers = trials().filter_map(|trial| trial.environment.get(fact)).map(one_line);
        for answer in answers.map(|answer| format!("{before}{answer}{after}")) {
            if !told.contains(&answer) {
                told.push(answer);
            }
        }
    }
    told
}

/// The size of a numeric value, for sorting; words keep the order of the plan.
pub(super) fn magnitude(value: &Value) -> Option<u64> {
    match value {
        Value::Size(Bytes(number)) | Value::Count(number) | Value::Time(Nanos(number)) => {
            Some(*number)
        }
        Value::Share(_)
        | Value::Number(_)
        | Value::Flag(_)
        | Value::Text(_)
        | Value::Word(_)
        | Value::Words(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use model::{Factor, FilesystemLevel, Fullness, Point};

    use super::*;

    fn cell(parameters: &[(&str, u64)], factors: &[(Factor, u64)]) -> Cell {
        let parameters = parameters.iter();
        let parameters =
            parameters.map(|(name, value)| ((*name).to_owned(), Value::Count(*value))).collect();
        Cell {
            filesystem: FilesystemLevel::plain("ext4"),
            workload: Point { suite: "toy".into(), parameters },
            scheduler: Some("none".into()),
            fullness: Fullness(0),
            factors: factors.iter().map(|(factor, n)| (*factor, Value::Count(*n))).collect(),
            twin: false,
        }
    }

    #[test]
    fn a_setting_that_is_called_as_a_parameter_hides_neither() {
        let cell = cell(&[("queue_depth", 16)], &[(Factor::QueueDepth, 64), (Factor::Cpus, 2)]);
        let parameters = parameters(&cell, false);
        let told = parameters.iter().map(|(name, value)| format!("{name}={value}"));
        let expected =
            ["cpus=2", "queue_depth=16", "queue_depth of the machine=64", "scheduler=none"];
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let own = conditions(&cell, false);
        let label = label("toy queue_depth=16 queue_depth=64", &own);
        assert_eq!(label, "toy queue_depth=16 queue_depth=64, cpus 2, scheduler none");
        let value = &own["queue_depth of the machine"];
        assert_eq!(
            without(
                "toy queue_depth=64 queue_depth=64 cpus=2",
                "queue_depth of the machine",
                value
            ),
            "toy queue_depth=64 cpus=2"
        );
    }

    #[test]
    fn cells_with_other_settings_are_other_work() {
        let slow = cell(&[("file", 1)], &[(Factor::Cpus, 1)]);
        let fast = cell(&[("file", 1)], &[(Factor::Cpus, 2)]);
        assert_ne!(work(&slow), work(&fast));
        assert_eq!(work(&slow), work(&slow.clone()));
    }

    #[test]
    fn what_only_some_points_set_is_swept() {
        let all = [
            parameters(&cell(&[("clients", 1)], &[]), false),
            parameters(&cell(&[("clients", 1)], &[(Factor::Cpus, 2)]), false),
        ];
        assert_eq!(swept(&all), ["cpus"]);
    }

    #[test]
    fn clients_scale_over_three_numbers_under_one_condition() {
        let point = |clients, cpus| {
            parameters(&cell(&[("clients", clients)], &[(Factor::Cpus, cpus)]), false)
        };
        let names = ["clients".to_owned(), "cpus".to_owned()];
        let apart = [point(1, 1), point(2, 1), point(4, 2)];
        assert_eq!(clients(&apart, &names), None);
        let together = [point(1, 1), point(2, 1), point(4, 1)];
        assert_eq!(clients(&together, &names), Some("clients"));
        assert_eq!(clients(&together, &["cpus".to_owned()]), None, "it does not vary");
    }
}
