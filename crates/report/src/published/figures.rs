//! Charts of published results, labeled as not measured by fslab.

use super::{
    LABEL, Published,
    bonnie::{self, Measured},
    iozone::{KIB, Number, Study, length, test_name},
    published, tasks,
};
use crate::{
    bonnie::{Figure as PrintedFigure, PHASES, PhaseFigures},
    charts::{
        data::{Level, Series, SweepValue},
        editions::{Marks, Panel, Panels, Totals, three},
        intervals::{IntervalRow, Intervals},
        sweep::SweepChart,
    },
    document::{Block, Figure, Kind, Section},
    units::{capital, fixed, slug},
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
    let chart = SweepChart {
        y_axis: format!("throughput, MiB/s — higher is better ↑ · {MARK}"),
        x_axis: "record length (tested lengths, logarithmic)".into(),
        levels: &levels,
        series: &series,
    };
    let svg = chart.render().finish(&title, &description);
    let own = study.originals().filter(|number| number.test == test);
    Figure {
        kind: Kind::ParameterSweep,
        wide: false,
        svg,
        caption: format!(
            "{}. Line and band: {MEANS}; lines connect tested lengths only.{}",
            capital(MARK),
            marked(own)
        ),
        id,
        title,
    }
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
    let chart =
        Intervals { axis: format!("throughput, MiB/s — higher is better ↑ · {MARK}"), rows };
    let svg = chart.render().finish(&title, description);
    let own = study.originals().filter(|own| own.test == test && own.record == record);
    Figure {
        kind: Kind::Ranking,
        wide: false,
        svg,
        caption: format!(
            "{}. Marker and line: {MEANS}; best mean first.{}",
            capital(MARK),
            marked(own)
        ),
        id,
        title,
    }
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
    let ids = tasks::ids(&after);
    let names = tasks::filesystems(&after);
    let value = |of: &[tasks::Second], id: &str, name: &str| {
        let found = of.iter().find(|one| one.id == id && one.filesystem == name);
        found.map(|one| one.seconds)
    };
    let panel = |(series, name): (usize, &String)| {
        let marks = |(id, _): &(String, String)| {
            let (first, second) = (value(&before, id, name), value(&after, id, name));
            (first.is_some() || second.is_some()).then_some(Marks { series, first, second })
        };
        Panel { name: name.clone(), marks: ids.iter().map(marks).collect() }
    };
    let (first, second) = (old.name, new.name);
    let title = format!("{first} and {second} side by side, {MARK}");
    let description = format!("Seconds of {} tasks in two editions, without intervals.", ids.len());
    let chart = Panels {
        axis: format!("seconds — lower is better ↓ · ring: {first}, marker: {second} · {MARK}"),
        logarithmic: true,
        apart: false,
        shown: three,
        rows: ids.iter().map(|(id, task)| format!("{id} {task}")).collect(),
        panels: names.iter().enumerate().map(panel).collect(),
    };
    let svg = chart.render().finish(&title, &description);
    Figure {
        kind: Kind::Settings,
        wide: true,
        id: format!("{first}-{second}"),
        title,
        svg,
        caption: format!(
            "{LABEL}. Ring: {first}; marker: {second}; each a mean of 3 runs, without intervals \
             and not tested for significance. {UNLIKE}. A filesystem of one edition only has one \
             mark."
        ),
    }
}

/// Sums of the seconds of one or two editions.
pub(crate) fn totals(old: &Published, new: Option<&Published>) -> Figure {
    let last = new.unwrap_or(old);
    let (before, after) = (tasks::seconds(old), tasks::seconds(last));
    let sum = |of: &[tasks::Second], name: &str| {
        let own = of.iter().filter(|one| one.filesystem == name).map(|one| one.seconds);
        own.reduce(|one, other| one + other)
    };
    let names = tasks::filesystems(&after);
    let row = |(series, name): (usize, &String)| {
        let first = new.and_then(|_| sum(&before, name));
        (name.clone(), Marks { series, first, second: sum(&after, name) })
    };
    let mut rows: Vec<(String, Marks)> = names.iter().enumerate().map(row).collect();
    let by = |marks: &Marks| marks.second.unwrap_or(f64::INFINITY);
    rows.sort_by(|one, other| by(&one.1).total_cmp(&by(&other.1)));
    let title = format!("Total of all tasks, {MARK}");
    let (first, second) = match new {
        Some(new) => (old.name, new.name),
        None => ("", ""),
    };
    let description = "Sums of the printed seconds, smallest first.";
    let chart = Totals {
        axis: format!("sum of seconds — lower is better ↓ · {MARK}"),
        rows,
        names: (first.into(), second.into()),
    };
    let svg = chart.render().finish(&title, description);
    let unlike = if new.is_some() { format!(" {UNLIKE}.") } else { String::new() };
    Figure {
        kind: Kind::Totals,
        wide: false,
        id: format!("{}-total-bars", last.name),
        title,
        svg,
        caption: format!(
            "{LABEL}. Sums of means of 3 runs, without intervals and not tested for significance; \
             long tasks dominate a sum of seconds.{unlike}"
        ),
    }
}

/// Chart of the study of 2012.
struct Shown {
    id: &'static str,
    title: &'static str,
    axis: &'static str,
    logarithmic: bool,
    /// Positions in [`PHASES`].
    phases: &'static [usize],
    value: fn(&PhaseFigures) -> Option<f64>,
}

fn known(figure: PrintedFigure) -> Option<f64> {
    match figure {
        PrintedFigure::Known(value) => Some(value),
        PrintedFigure::Empty | PrintedFigure::Short => None,
    }
}

const SHOWN: [Shown; 6] = [
    Shown {
        id: "blocks",
        title: "Throughput by block",
        axis: "throughput, MiB/s — higher is better ↑",
        logarithmic: false,
        phases: &[1, 2, 4],
        value: |phase| known(phase.rate).map(|rate| rate / KIB),
    },
    Shown {
        id: "characters",
        title: "Throughput by character",
        axis: "throughput, KiB/s — higher is better ↑",
        logarithmic: false,
        phases: &[0, 3],
        value: |phase| known(phase.rate),
    },
    Shown {
        id: "files",
        title: "Files",
        axis: "files/s — higher is better ↑",
        logarithmic: true,
        phases: &[6, 7, 8, 9, 10, 11],
        value: |phase| known(phase.rate),
    },
    Shown {
        id: "seeks",
        title: "Seeks",
        axis: "seeks/s — higher is better ↑",
        logarithmic: false,
        phases: &[5],
        value: |phase| known(phase.rate),
    },
    Shown {
        id: "cpu",
        title: "CPU %",
        axis: "CPU time over elapsed time, % — informational",
        logarithmic: false,
        phases: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        value: |phase| known(phase.cpu),
    },
    Shown {
        id: "latency",
        title: "Longest operation",
        axis: "longest single operation, ms — lower is better ↓",
        logarithmic: true,
        phases: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        value: |phase| phase.latency.map(|time| time.seconds() * 1e3),
    },
];

/// Throughput, files, CPU %, and longest operations by configuration.
pub(super) fn bonnie(set: &Published) -> Vec<Group> {
    let measured = bonnie::measured(set.data);
    let draw = |shown: &Shown| Group {
        id: format!("{}-charts-{}", set.name, shown.id),
        title: shown.title.into(),
        first: vec![by_configuration(set, shown, &measured)],
        rest: Vec::new(),
    };
    SHOWN.iter().map(draw).collect()
}

fn by_configuration(set: &Published, shown: &Shown, measured: &[Measured]) -> Figure {
    let panel = |at: &usize| {
        let mark = |(series, own): (usize, &Measured)| {
            let second = Some((shown.value)(&own.record.phases[*at])?);
            Some(Marks { series, first: None, second })
        };
        let marks = measured.iter().enumerate().map(mark).collect();
        Panel { name: PHASES[*at].into(), marks }
    };
    let title = format!("{} by configuration, {MARK}", shown.title);
    let id = format!("{}-{}-dots", set.name, shown.id);
    let description = format!("{} configurations, one record each, no intervals.", measured.len());
    let chart = Panels {
        axis: format!("{} · {MARK}", shown.axis),
        logarithmic: shown.logarithmic,
        apart: true,
        shown: three,
        rows: measured.iter().map(|own| own.configuration.clone()).collect(),
        panels: shown.phases.iter().map(panel).collect(),
    };
    let svg = chart.render().finish(&title, &description);
    Figure {
        kind: Kind::Settings,
        wide: true,
        svg,
        caption: format!(
            "{LABEL}. Dots: one run per configuration (n = 1), without intervals; differences of a \
             few percent may be noise. The value is next to the dot; each phase has a separate \
             axis."
        ),
        id,
        title,
    }
}
