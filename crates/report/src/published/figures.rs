//! Charts of published results, labeled as not measured by fslab.

use model::Metric;

use super::{
    LABEL, Published,
    iozone::{KIB, Number, Study, length, test_name},
    numbers::{self, numbers},
    published, tasks,
};
use crate::{
    charts::{
        data::{Level, Series, SweepValue},
        editions::{Marks, Panel, Panels, sums, three},
        intervals::{IntervalRow, intervals},
        lines,
    },
    document::{Block, Figure, Kind, Section},
    units::{capital, distinct, fixed, slug},
};

/// Charts under one heading: the first ones visible, the others collapsed.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) first: Vec<Figure>,
    pub(crate) rest: Vec<Figure>,
}

impl Group {
    pub(super) fn section(self) -> Section {
        let rest: Vec<Block> = self.rest.into_iter().map(Block::Figure).collect();
        let rest = (!rest.is_empty()).then(|| Block::Fold("By level".into(), rest));
        let blocks = self.first.into_iter().map(Block::Figure).chain(rest).collect();
        Section::new(self.id, self.title, blocks)
    }
}

/// Label of every axis.
const MARK: &str = "published, not measured by fslab";
const MIB: f64 = 1024.0;

/// Charts of each test: a sweep over the record length, and a ranking at each length.
pub(super) fn iozone(study: &Study) -> Vec<Group> {
    let group = |test: &str| Group {
        id: format!("iozone-2009-{}", slug(test)),
        title: capital(&test_name(test)),
        first: vec![sweep(study, test)],
        rest: study.records().into_iter().map(|record| ranking(study, test, record)).collect(),
    };
    study.tests().into_iter().map(group).collect()
}

/// Sentence for a caption that lists marked numbers.
fn marked<'a>(numbers: impl Iterator<Item = &'a Number>) -> String {
    let one = |number: &Number| {
        let own = number.quality_notes.iter().map(|(_, note)| note.short.clone());
        let own: Vec<String> = own.collect();
        let name = format!("{} at {}", number.filesystem, length(number.record));
        (!own.is_empty())
            .then(|| format!("{name} {} ({})", number.codes().join(" "), own.join(", ")))
    };
    let all: Vec<String> = numbers.filter_map(one).collect();
    if all.is_empty() { String::new() } else { format!(" Marked: {}.", all.join("; ")) }
}

const MEANS: &str = "mean of n = 10 runs with 95 % confidence interval (Student's t, assuming that \
                     the printed deviation is that of the runs)";

fn sweep(study: &Study, test: &str) -> Figure {
    let id = format!("iozone-2009-sweep-{}", slug(test));
    let records = study.records();
    let levels: Vec<Level> = records
        .iter()
        .map(|record| Level { number: f64::from(*record), label: length(*record) })
        .collect();
    let line = |(filesystem, name): (usize, &str)| {
        let value = |record: &u32| {
            let number = study.of(test, name, *record)?;
            let ends = number.interval().map(|ends| (ends.low / MIB, ends.high / MIB));
            Some(SweepValue { median: number.mean / MIB, ends })
        };
        let values = records.iter().map(value).collect();
        Series { filesystem, name: name.to_owned(), values }
    };
    let series: Vec<Series> = study.filesystems().into_iter().enumerate().map(line).collect();
    let title = format!("{} over the record length, {MARK}", capital(&test_name(test)));
    let description = format!(
        "Throughput of {} filesystems at {} record lengths. The data are in tables 1 to 8.",
        series.len(),
        levels.len()
    );
    let y_axis = format!("throughput, MiB/s — higher is better ↑ · {MARK}");
    let x_axis = "record length (tested lengths, logarithmic)";
    let chart = lines::sweep(&y_axis, x_axis, &levels, &series);
    let own = study.originals().filter(|number| number.test == test);
    let caption = format!(
        "{}. Line and band: {MEANS}; lines connect tested lengths only.{}",
        capital(MARK),
        marked(own)
    );
    Figure::new(Kind::ParameterSweep, id, chart, (title, &description), caption)
}

fn ranking(study: &Study, test: &str, record: u32) -> Figure {
    let id = format!("iozone-2009-{}-{record}", slug(test));
    let row = |(series, name): (usize, &str)| {
        let number = study.of(test, name, record)?;
        let own = number.mean / KIB;
        let interval = number.interval().map(|ends| (ends.low / KIB, ends.high / KIB));
        Some(IntervalRow {
            name: name.to_owned(),
            series,
            values: Vec::new(),
            median: Some(own),
            interval,
            shown: fixed(own, 1),
            letters: String::new(),
            top: false,
            note: number.codes().first().copied().unwrap_or_default().to_owned(),
        })
    };
    let mut rows: Vec<IntervalRow> =
        study.filesystems().into_iter().enumerate().filter_map(row).collect();
    rows.sort_by(|one, other| other.median.unwrap_or(0.0).total_cmp(&one.median.unwrap_or(0.0)));
    let title = format!("{}, records of {}, {MARK}", capital(&test_name(test)), length(record));
    let description = "Means with intervals, best first; not tested for significance.";
    let axis = format!("throughput, MiB/s — higher is better ↑ · {MARK}");
    let chart = intervals(&axis, &rows);
    let own = study.originals().filter(|own| own.test == test && own.record == record);
    let caption =
        format!("{}. Marker and line: {MEANS}; best mean first.{}", capital(MARK), marked(own));
    Figure::new(Kind::Ranking, id, chart, (title, description), caption)
}

/// Charts of the study of everyday tasks: totals, and for the edition of 2006 also a comparison
/// with the edition of 2004.
pub(super) fn tasks(set: &Published) -> Vec<Group> {
    let Some((old, new)) = published("tasks-2004").zip(published("tasks-2006")) else {
        return Vec::new();
    };
    let charts = match set.name == new.name {
        true => vec![editions(old, new), totals(old, Some(new))],
        false => vec![totals(old, None)],
    };
    vec![Group {
        id: format!("{}-charts", set.name),
        title: if set.name == new.name { "Both editions" } else { "Total" }.into(),
        first: charts,
        rest: Vec::new(),
    }]
}

/// Confounders of the editions.
const UNLIKE: &str = "Disk, controller, kernel, distribution, and tools differ between the \
                      editions, and so does the tarball of tasks 007 to 012 and 020; changes \
                      cannot be attributed to one of them";

/// Seconds of two editions, by task and filesystem.
pub(crate) fn editions(old: &Published, new: &Published) -> Figure {
    let (before, after) = (tasks::seconds(old), tasks::seconds(new));
    let ids = distinct(after.iter().map(|number| number.test.as_str()));
    let value = |of: &[numbers::Number], id: &str, name: &str| {
        let found = of.iter().find(|one| one.test == id && one.filesystem == name);
        found.map(numbers::Number::number)
    };
    let panel = |(series, name): (usize, &str)| {
        let marks = |id: &&str| {
            let (first, second) = (value(&before, id, name), value(&after, id, name));
            (first.is_some() || second.is_some()).then_some(Marks { series, first, second })
        };
        Panel { name: name.to_owned(), marks: ids.iter().map(marks).collect() }
    };
    let label = |id: &&str| {
        after.iter().find(|one| one.test == *id).map_or(String::new(), |one| one.label.clone())
    };
    let names = distinct(after.iter().map(|number| number.filesystem.as_str()));
    let (first, second) = (&old.name, &new.name);
    let title = format!("{first} and {second} side by side, {MARK}");
    let description = format!("Seconds of {} tasks in two editions, without intervals.", ids.len());
    let chart = Panels {
        axis: format!("seconds — lower is better ↓ · ring: {first}, marker: {second} · {MARK}"),
        logarithmic: true,
        apart: false,
        shown: three,
        rows: ids.iter().map(label).collect(),
        panels: names.into_iter().enumerate().map(panel).collect(),
    };
    let caption = format!(
        "{LABEL}. Ring: {first}; marker: {second}; each a mean of 3 runs, without intervals and \
         not tested for significance. {UNLIKE}. A filesystem of one edition only has one mark."
    );
    let (id, text) = (format!("{first}-{second}"), (title, description.as_str()));
    Figure { wide: true, ..Figure::new(Kind::Settings, id, chart.render(), text, caption) }
}

/// Sums of the seconds of one or two editions.
pub(crate) fn totals(old: &Published, new: Option<&Published>) -> Figure {
    let last = new.unwrap_or(old);
    let (before, after) = (tasks::seconds(old), tasks::seconds(last));
    let sum = |of: &[numbers::Number], name: &str| {
        let own = of.iter().filter(|one| one.filesystem == name).map(numbers::Number::number);
        own.reduce(|one, other| one + other)
    };
    let row = |(series, name): (usize, &str)| {
        let first = new.and_then(|_| sum(&before, name));
        (name.to_owned(), Marks { series, first, second: sum(&after, name) })
    };
    let names = distinct(after.iter().map(|number| number.filesystem.as_str()));
    let mut rows: Vec<(String, Marks)> = names.into_iter().enumerate().map(row).collect();
    let by = |marks: &Marks| marks.second.unwrap_or(f64::INFINITY);
    rows.sort_by(|one, other| by(&one.1).total_cmp(&by(&other.1)));
    let names = new.map_or(["", ""], |new| [old.name.as_str(), new.name.as_str()]);
    let axis = format!("sum of seconds — lower is better ↓ · {MARK}");
    let unlike = if new.is_some() { format!(" {UNLIKE}.") } else { String::new() };
    let caption = format!(
        "{LABEL}. Sums of means of 3 runs, without intervals and not tested for significance; \
         long tasks dominate a sum of seconds.{unlike}"
    );
    let (id, title) = (format!("{}-total-bars", last.name), format!("Total of all tasks, {MARK}"));
    let description = "Sums of the printed seconds, smallest first.";
    Figure::new(Kind::Totals, id, sums(&axis, &rows, names), (title, description), caption)
}

/// Charts of the study of 2012: part of the anchor, title, axis, and size of its unit in base
/// units; if the axis is logarithmic; and the tests by metric, which are all unless listed.
type Shown = (&'static str, &'static str, &'static str, f64, bool, Metric, &'static [&'static str]);

const SHOWN: [Shown; 6] = [
    (
        "blocks",
        "Throughput by block",
        "throughput, MiB/s — higher is better ↑",
        KIB * KIB,
        false,
        Metric::Throughput,
        &["put-block", "rewrite", "get-block"],
    ),
    (
        "characters",
        "Throughput by character",
        "throughput, KiB/s — higher is better ↑",
        KIB,
        false,
        Metric::Throughput,
        &["putc", "getc"],
    ),
    (
        "files",
        "Files",
        "files/s — higher is better ↑",
        1.0,
        true,
        Metric::OpsRate,
        &["seq-create", "seq-stat", "seq-delete", "ran-create", "ran-stat", "ran-delete"],
    ),
    ("seeks", "Seeks", "seeks/s — higher is better ↑", 1.0, false, Metric::OpsRate, &["seeks"]),
    (
        "cpu",
        "CPU %",
        "CPU time over elapsed time, % — informational",
        0.01,
        false,
        Metric::CpuUtilization,
        &[],
    ),
    (
        "latency",
        "Longest operation",
        "longest single operation, ms — lower is better ↓",
        1e6,
        true,
        Metric::LatencyMax,
        &[],
    ),
];

/// Throughput, files, CPU %, and longest operations by configuration.
pub(super) fn bonnie(set: &Published) -> Vec<Group> {
    let numbers = numbers(set);
    let draw = |shown: &Shown| Group {
        id: format!("{}-charts-{}", set.name, shown.0),
        title: shown.1.into(),
        first: vec![by_configuration(set, shown, &numbers)],
        rest: Vec::new(),
    };
    SHOWN.iter().map(draw).collect()
}

fn by_configuration(set: &Published, shown: &Shown, numbers: &[numbers::Number]) -> Figure {
    let (id, title, axis, unit, logarithmic, metric, tests) = *shown;
    let configurations = distinct(numbers.iter().map(|number| number.filesystem.as_str()));
    let own = numbers.iter().filter(|number| number.metric == metric);
    let own: Vec<&numbers::Number> =
        own.filter(|own| tests.is_empty() || tests.contains(&own.test.as_str())).collect();
    let panel = |test: &str| {
        let mark = |(series, configuration): (usize, &&str)| {
            let same = own.iter().find(|own| own.test == test && own.filesystem == *configuration);
            let second = Some(same?.value? / unit);
            Some(Marks { series, first: None, second })
        };
        let marks = configurations.iter().enumerate().map(mark).collect();
        Panel { name: test.into(), marks }
    };
    let chart = Panels {
        axis: format!("{axis} · {MARK}"),
        logarithmic,
        apart: true,
        shown: three,
        rows: configurations.iter().map(|name| (*name).to_owned()).collect(),
        panels: distinct(own.iter().map(|own| own.test.as_str())).into_iter().map(panel).collect(),
    };
    let title = format!("{title} by configuration, {MARK}");
    let description =
        format!("{} configurations, one record each, no intervals.", configurations.len());
    let caption = format!(
        "{LABEL}. Dots: one run per configuration (n = 1), without intervals; differences of a few \
         percent may be noise. The value is next to the dot; each phase has a separate axis."
    );
    let id = format!("{}-{id}-dots", set.name);
    let text = (title, description.as_str());
    Figure { wide: true, ..Figure::new(Kind::Settings, id, chart.render(), text, caption) }
}
