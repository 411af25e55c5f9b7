//! Published numbers as one side of a comparison.

use analysis::moments::Moments;
use model::Metric;

use super::{Center, Key, Side, Value};
use crate::{
    bonnie::{Figure, PHASES},
    published::{
        Published, bonnie,
        iozone::{KIB, RUNS, length, study, test_name},
        tasks,
    },
};

/// Numbers of a published set, with the test and filesystem names of the source.
pub(super) fn side(set: &Published) -> Side {
    let values = match set.suite {
        "iozone" => iozone(),
        "tasks" => of_tasks(set),
        _ => of_bonnie(set),
    };
    Side {
        name: set.full_name(),
        about: format!("{}, {}: {}", set.article, set.author, set.summary),
        measured_by_fslab: false,
        suite: set.suite,
        conditions: set
            .conditions
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect(),
        values,
    }
}

fn iozone() -> Vec<Value> {
    let own = study().originals();
    own.map(|number| {
        let moments = number.moments().map(|own| Moments {
            mean: own.mean * KIB,
            deviation: own.deviation * KIB,
            n: own.n,
        });
        Value {
            key: Key {
                test: number.test.clone(),
                label: format!("{}, {}", test_name(&number.test), length(number.record)),
                block_size: Some(u64::from(number.record) * 1024),
                filesystem: number.filesystem.clone(),
                metric: Metric::Throughput,
            },
            named: number.filesystem.clone(),
            workload: String::new(),
            at: Vec::new(),
            center: Center::Mean,
            value: number.mean * KIB,
            interval: moments.and_then(|own| own.interval(0.95).ok()),
            n: RUNS,
            moments,
            // The study used a file of 16 GiB and 8 GB of memory.
            fits: Some(false),
            marks: number.codes(),
        }
    })
    .collect()
}

fn of_tasks(set: &Published) -> Vec<Value> {
    let names = tasks::ids(&tasks::seconds(set));
    let metrics =
        [("seconds", Metric::Elapsed, 1e9), ("cpu_percent", Metric::CpuUtilization, 0.01)];
    let of = |(column, metric, factor): (&str, Metric, f64)| {
        let own = tasks::printed_of(set, column).into_iter();
        let value = |(id, filesystem, printed): (String, String, f64)| {
            let task = names.iter().find(|(own, _)| *own == id).map_or("", |(_, task)| task);
            Value {
                named: filesystem.clone(),
                key: Key {
                    label: format!("{id} {task}"),
                    test: id,
                    block_size: None,
                    filesystem,
                    metric,
                },
                workload: String::new(),
                at: Vec::new(),
                center: Center::Mean,
                value: printed * factor,
                interval: None,
                n: tasks::RUNS,
                moments: None,
                fits: None,
                marks: Vec::new(),
            }
        };
        own.map(value).collect::<Vec<_>>()
    };
    metrics.into_iter().flat_map(of).collect()
}

fn of_bonnie(set: &Published) -> Vec<Value> {
    let mut values = Vec::new();
    for measured in bonnie::measured(set.data) {
        for (at, (phase, figures)) in PHASES.iter().zip(&measured.record.phases).enumerate() {
            let known = |figure| match figure {
                Figure::Known(value) => Some(value),
                Figure::Empty | Figure::Short => None,
            };
            let (rate, factor) =
                if at < 5 { (Metric::Throughput, KIB) } else { (Metric::OpsRate, 1.0) };
            let latency = figures.latency.map(|time| time.seconds() * 1e9);
            let all = [
                (rate, known(figures.rate).map(|value| value * factor)),
                (Metric::CpuUtilization, known(figures.cpu).map(|value| value * 0.01)),
                (Metric::LatencyMax, latency),
            ];
            let value = |(metric, value): (Metric, Option<f64>)| {
                Some(Value {
                    named: measured.configuration.clone(),
                    key: Key {
                        test: (*phase).to_owned(),
                        label: (*phase).to_owned(),
                        block_size: None,
                        filesystem: measured.configuration.clone(),
                        metric,
                    },
                    workload: String::new(),
                    at: Vec::new(),
                    center: Center::Single,
                    value: value?,
                    interval: None,
                    n: 1,
                    moments: None,
                    fits: None,
                    marks: Vec::new(),
                })
            };
            values.extend(all.into_iter().filter_map(value));
        }
    }
    values
}

/// Name that the published source uses for a filesystem of the built-in plan of its study.
pub(crate) fn alias<'a>(suite: &str, name: &'a str) -> &'a str {
    match (suite, name) {
        ("bonnie", "ext4") => "ext4 defaults",
        ("bonnie", "btrfs from ext4") => "btrfs from ext4 conversion",
        ("bonnie", "btrfs with a snapshot of removed files") => {
            "btrfs after deleting, snapshot kept"
        }
        // The plan names the RAID level, the study has this btrfs only.
        ("dbench", "btrfs raid0") => "btrfs",
        (_, name) => name,
    }
}
