//! Tables of scaling: medians by number of clients, efficiency, what the curves tell, and how
//! filesystems differ.

use analysis::{
    Absent, Interval, Summary,
    scaling::{Curve, Difference, Efficiency, Law, Laws, Scaling},
    trend::Trend,
};
use model::{Metric, metric::Unit};

use super::{Analyzed, Clients, clients, sentences};
use crate::{
    units::{Scale, capital, fixed, percent},
    view::{
        facts::Filesystem,
        points::{Test, WorkPoint},
        sweeps,
        tables::{
            Body, Column, Row, Table, TableCell, ValueCell, caches, directions, value_cell, words,
        },
        threshold::Threshold,
    },
};

/// What sentences and tables are made from.
pub(super) struct Input<'a> {
    pub(super) id: String,
    pub(super) title: &'a str,
    /// Ascending by clients.
    pub(super) points: &'a [&'a WorkPoint],
    /// The test at each point.
    pub(super) tests: &'a [Option<&'a Test>],
    /// Not empty.
    pub(super) lines: &'a [Analyzed],
    pub(super) clients: Clients,
    pub(super) metric: Metric,
    pub(super) scale: Scale,
    /// The clients that efficiency refers to.
    pub(super) base: u32,
    pub(super) seed: u64,
    /// The practical threshold.
    pub(super) threshold: Threshold,
    pub(super) filesystems: &'a [Filesystem],
    /// Filesystems without a line, and why.
    pub(super) absent: &'a [(String, String)],
}

impl Input<'_> {
    /// The test in a sentence: `replay, dbench`.
    pub(super) fn what(&self) -> String {
        let test = self.tests.iter().flatten().next().map_or("", |test| test.name.as_str());
        let place = self.points.first().map(|point| super::place(point, self.clients.0));
        format!("{test}, {}", place.unwrap_or_default())
    }

    fn column(&self, line: &Analyzed, unit: &'static str) -> Column {
        Column { title: line.name.clone(), unit, filesystem: Some(line.filesystem) }
    }

    fn rows(&self, cell: impl Fn(usize, u32, &Analyzed) -> TableCell) -> Vec<Row> {
        let row = |(index, point): (usize, &&WorkPoint)| {
            let level = clients(point, self.clients.0)?;
            let cells = self.lines.iter().map(|line| cell(index, level, line)).collect();
            Some(Row::of(level.to_string(), None, Body::Cells(cells)))
        };
        self.points.iter().enumerate().filter_map(row).collect()
    }

    fn absent(&self) -> Vec<String> {
        let words = |(name, reason): &(String, String)| format!("absent: {name}, {reason}");
        self.absent.iter().map(words).collect()
    }
}

/// Medians, efficiency where the metric is a rate, what the curves tell, differences.
pub(super) fn tables(view: &Input) -> Vec<Table> {
    let tables = [Some(medians(view)), efficiency(view), Some(curves(view)), differences(view)];
    tables.into_iter().flatten().collect()
}

fn medians(view: &Input) -> Table {
    let cell = |index: usize, _, line: &Analyzed| {
        let entry = view.tests[index].and_then(|test| test.entry(line.filesystem));
        match entry {
            Some(entry) => match value_cell(entry, entry.summary.as_ref(), view.scale, true) {
                TableCell::Value(value) => {
                    TableCell::Value(ValueCell { note: entry.failed_repeats(), ..value })
                }
                text @ TableCell::Text(_) => text,
            },
            None => TableCell::Text("not in the plan".into()),
        }
    };
    let mut table = Table {
        id: format!("{}--medians", view.id),
        title: view.title.to_owned(),
        caption: vec![capital(&directions(std::iter::once(view.metric)))],
        corner: view.clients.0,
        columns: view.lines.iter().map(|line| view.column(line, view.scale.name)).collect(),
        rows: view.rows(cell),
    };
    let first = view.points.first();
    table.caption.extend(first.map(|point| point.sizes()).filter(|sizes| !sizes.is_empty()));
    table.caption.extend(first.and_then(|point| point.load.first().cloned()));
    table.caption.extend(caches(&view.tests.iter().flatten().copied().collect::<Vec<_>>()));
    table.state_n();
    if table.has_top() {
        table.caption.push(format!(
            "▲ top group of its row: all pairs, Holm at 5 %, {}",
            view.threshold.words()
        ));
    }
    table.caption.extend(sentences::withheld(view));
    table.caption.extend(view.absent());
    table
}

/// A share with its interval as a cell.
fn share(value: f64, interval: Option<Interval>, n: u32) -> ValueCell {
    let warnings = Vec::new();
    let summary = Summary { n, median: value, interval, min: value, max: value, warnings };
    ValueCell::plain(&summary, Scale::of(Unit::Share, std::iter::once(value)))
}

fn efficiency(view: &Input) -> Option<Table> {
    let told = |line: &Analyzed| line.scaling.points.iter().any(|point| point.efficiency.is_ok());
    if !view.lines.iter().any(told) {
        return None;
    }
    let cell = |_, level: u32, line: &Analyzed| {
        let point = line.scaling.points.iter().find(|point| point.clients == level);
        match point.map(|point| (&point.efficiency, point.summary.n)) {
            Some((Ok(Efficiency { value, interval }), n)) => {
                TableCell::Value(share(value.0, interval.as_ref().ok().copied(), n))
            }
            Some((Err(absent), _)) => TableCell::Text(absent.to_string()),
            None => TableCell::Text("no result".into()),
        }
    };
    let rows = view.rows(cell);
    let unit = Scale::of(Unit::Share, std::iter::once(1.0)).name;
    Some(Table {
        id: format!("{}--efficiency", view.id),
        title: format!("Efficiency: {}", view.what()),
        caption: vec![
            format!(
                "Which part of N times the {} of {} is reached with N, higher is better ↑",
                words(view.metric),
                view.clients.count(view.base)
            ),
            format!(
                "n = {} repeats; estimate from medians [95 % interval by resampling \
                blocks]",
                repeats(view)
            ),
        ],
        corner: view.clients.0,
        columns: view.lines.iter().map(|line| view.column(line, unit)).collect(),
        rows,
    })
}

fn repeats(view: &Input) -> String {
    let points = view.lines.iter().flat_map(|line| &line.scaling.points);
    sweeps::repeats(points.map(|point| &point.summary))
}

/// What each curve tells, in words.
fn curves(view: &Input) -> Table {
    let row = |line: &Analyzed| {
        let scaling = &line.scaling;
        let best = match scaling.points.get(scaling.peak) {
            Some(point) => TableCell::Value(ValueCell::plain(&point.summary, view.scale)),
            None => TableCell::Text("no result".into()),
        };
        let at = scaling.points.get(scaling.peak);
        let at = at.map_or_else(|| "no result".into(), |point| view.clients.count(point.clients));
        let cells = vec![
            TableCell::Text(enough(view, scaling)),
            best,
            TableCell::Text(at),
            TableCell::Text(scaling.fall.as_ref().map_or("is the last".into(), |fall| {
                let interval = fall.interval;
                crate::units::ratio(fall.ratio.0, interval)
            })),
            TableCell::Text(trend(&scaling.trend)),
            TableCell::Text(law(&scaling.laws)),
        ];
        Row::of(line.name.clone(), Some(line.filesystem), Body::Cells(cells))
    };
    let mut rows: Vec<Row> = view.lines.iter().map(row).collect();
    let missing = view.filesystems.iter().enumerate().filter_map(|(index, filesystem)| {
        let (_, reason) = view.absent.iter().find(|(name, _)| *name == filesystem.name)?;
        Some(Row::of(filesystem.name.clone(), Some(index), Body::Missing(reason.clone())))
    });
    rows.extend(missing);
    let mut table = Table {
        id: format!("{}--curves", view.id),
        title: format!("What the curves tell: {}", view.what()),
        caption: vec![
            capital(&directions(std::iter::once(view.metric))),
            "enough: the fewest that reach 95 % of the best median [95 % range by resampling \
             blocks]"
                .into(),
            "last against best: Hodges–Lehmann ratio with the interval of the inverted test; for \
             each doubling: Theil–Sen, p of Jonckheere and Terpstra's test by permutation within \
             blocks"
                .into(),
            "law: linear, Amdahl's, or the universal scalability law by AICc, not shown where it \
             misses a median by more than 10 %"
                .into(),
        ],
        corner: "filesystem",
        columns: vec![
            Column::new("enough", ""),
            Column::new("best", view.scale.name),
            Column::new("best at", ""),
            Column::new("last against best", ""),
            Column::new("for each doubling", ""),
            Column::new("law", ""),
        ],
        rows,
    };
    table.state_n();
    table
}

fn enough(view: &Input, scaling: &Scaling) -> String {
    let point = scaling.points.get(scaling.saturation);
    match (point, &scaling.course) {
        (Some(point), Ok(_)) => {
            format!("{}{}", view.clients.count(point.clients), sentences::range(scaling))
        }
        (Some(_), Err(absent)) => absent.to_string(),
        (None, _) => "no result".into(),
    }
}

fn trend(trend: &Result<Trend, Absent>) -> String {
    let trend = match trend {
        Ok(trend) => trend,
        Err(absent) => return absent.to_string(),
    };
    let change = |ratio: f64| format!("{:+.1}", (ratio - 1.0) * 100.0);
    let ends = match &trend.per_doubling_interval {
        Ok(ends) => format!(" [{}, {}]", change(ends.low), change(ends.high)),
        Err(_) => String::new(),
    };
    format!("{} %{ends}, p {}", change(trend.per_doubling.0), probability(trend.p))
}

/// `= 0.012`, `< 0.001`.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 { "< 0.001".into() } else { format!("= {}", fixed(p, 3)) }
}

fn law(laws: &Result<Laws, Absent>) -> String {
    let laws = match laws {
        Ok(laws) => laws,
        Err(absent) => return absent.to_string(),
    };
    if let Some(misfit) = &laws.misfit {
        return misfit.to_string();
    }
    let name = match laws.chosen.law {
        Law::Linear => "linear".to_owned(),
        Law::Amdahl => format!("Amdahl's, contention {}", coefficient(laws.chosen.sigma)),
        Law::Universal => format!(
            "universal, contention {}, coherency {}",
            coefficient(laws.chosen.sigma),
            coefficient(laws.chosen.kappa)
        ),
    };
    let peak = match &laws.peak {
        Ok(peak) => format!(
            "; peak at {} [{}, {}]",
            fixed(peak.clients, 0),
            fixed(peak.clients_interval.low, 0),
            fixed(peak.clients_interval.high, 0)
        ),
        Err(absent) => format!("; {absent}"),
    };
    format!("{name}{peak} (off by {} at most)", percent(laws.residual.0))
}

/// A coefficient to two significant digits.
fn coefficient(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "a decimal exponent is within ±324")]
    let exponent = if value > 0.0 { value.log10().floor() as i32 } else { 0 };
    match value > 0.0 && exponent < -5 {
        true => format!("{value:.1e}"),
        false => fixed(value, 1 - exponent),
    }
}

/// How much more or less efficient each filesystem is than the first, at the same number of
/// clients.
fn differences(view: &Input) -> Option<Table> {
    let (first, others) = view.lines.split_first()?;
    let of = |line: &Analyzed| Curve::efficiency_differences(&first.curve, &line.curve, view.seed);
    let all: Vec<Vec<Difference>> = others.iter().map(of).collect();
    let told =
        |difference: &Difference| difference.difference.is_ok() && difference.interval.is_ok();
    if !all.iter().flatten().any(told) {
        return None;
    }
    let row = |point: &&WorkPoint| {
        let level = clients(point, view.clients.0).filter(|level| *level != view.base)?;
        let cell = |differences: &Vec<Difference>| {
            let found = differences.iter().find(|difference| difference.clients == level);
            TableCell::Text(found.map_or_else(|| "no result".into(), points_of))
        };
        let cells = all.iter().map(cell).collect();
        Some(Row::of(level.to_string(), None, Body::Cells(cells)))
    };
    Some(Table {
        id: format!("{}--differences", view.id),
        title: format!("Efficiency beside {}: {}", first.name, view.what()),
        caption: vec![
            format!(
                "Efficiency less that of {} at the same number, in percentage points, higher is \
                 better ↑",
                first.name
            ),
            format!(
                "n = {} repeats; 95 % interval by resampling blocks, which are the same for both; \
                 two are told apart where it excludes 0, each for itself",
                repeats(view)
            ),
        ],
        corner: view.clients.0,
        columns: others.iter().map(|line| view.column(line, "")).collect(),
        rows: view.points.iter().filter_map(row).collect(),
    })
}

/// `+3.1 [+1.0, +5.2]`.
fn points_of(difference: &Difference) -> String {
    let shown = |value: f64| format!("{:+.1}", value * 100.0);
    match (&difference.difference, &difference.interval) {
        (Ok(value), Ok(ends)) => {
            format!("{} [{}, {}]", shown(*value), shown(ends.low), shown(ends.high))
        }
        (Ok(_), Err(absent)) | (Err(absent), _) => absent.to_string(),
    }
}
