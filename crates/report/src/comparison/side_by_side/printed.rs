//! Published numbers as one side of a comparison.

use analysis::moments::Moments;
use model::Metric;

use super::{Center, Key, Side, Value};
use crate::published::{
    Published,
    numbers::{Number, numbers},
};

/// Numbers of a published set, with the test and filesystem names of the source. Of numbers that
/// another table repeats, the first one is used.
pub(super) fn side(set: &'static Published) -> Side {
    let mut numbers = numbers(set);
    if set.suite == "iozone" {
        numbers.retain(|number| number.deviation.is_some());
    }
    // Times of all tasks come first.
    numbers.sort_by_key(|own| set.suite == "tasks" && own.metric == Metric::CpuUtilization);
    Side {
        name: set.full_name(),
        about: format!("{}, {}: {}", set.article, set.author, set.summary),
        measured_by_fslab: false,
        suite: &set.suite,
        conditions: set.conditions.clone(),
        values: numbers.into_iter().filter_map(|number| value(set, number)).collect(),
    }
}

fn value(set: &Published, number: Number) -> Option<Value> {
    let (value, n) = (number.value?, number.n);
    let moments = number.deviation.map(|deviation| Moments { mean: value, deviation, n });
    Some(Value {
        named: number.filesystem.clone(),
        key: Key {
            test: number.test,
            label: number.label,
            block_size: number.record,
            filesystem: number.filesystem,
            metric: number.metric,
        },
        workload: String::new(),
        at: Vec::new(),
        center: if n > 1 { Center::Mean } else { Center::Single },
        value,
        interval: moments.and_then(|own| own.interval(0.95).ok()),
        n,
        moments,
        // The study used a file of 16 GiB and 8 GB of memory.
        fits: (set.suite == "iozone").then_some(false),
        marks: number.marks,
    })
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
