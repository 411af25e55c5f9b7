//! Tables of scaling: medians by number of clients, efficiency, summary, and differences between
//! filesystems.

use analysis::{
    NotEstimable,
    scaling::{Curve, Difference, Efficiency, Law, Laws, Scaling},
    trend::Trend,
};
use model::metric::Unit;

use super::{Analyzed, Clients, clients, findings};
use crate::{
    units::{Scale, capital, fixed, percent, probability},
    view::{
        equivalence_margin::EquivalenceMargin,
        facts::Filesystem,
        points::WorkPoint,
        series::{self, TestSeries},
        tables::{Body, Column, Row, Table, TableCell, ValueCell, directions, metric_label},
    },
};

/// Input of findings and tables.
pub(super) struct Input<'a> {
    pub(super) id: String,
    pub(super) title: &'a str,
    /// The test, in ascending order of the number of clients.
    pub(super) all: &'a TestSeries<'a>,
    /// Not empty.
    pub(super) lines: &'a [Analyzed],
    pub(super) clients: Clients,
    pub(super) scale: Scale,
    /// Smallest level, to which efficiency refers.
    pub(super) base: u32,
    pub(super) seed: u64,
    pub(super) margin: EquivalenceMargin,
    pub(super) filesystems: &'a [Filesystem],
    /// Filesystems without a line, with the reason.
    pub(super) absent: &'a [(String, String)],
}

impl Input<'_> {
    /// Test and point: `replay, dbench`.
    pub(super) fn what(&self) -> String {
        let test = self.all.tests.iter().flatten().next().map_or("", |test| test.name.as_str());
        let place = self.all.points.first().map(|point| super::place(point, self.clients.0));
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
        self.all.points.iter().enumerate().filter_map(row).collect()
    }
}

/// Medians, efficiency if it can be estimated, summary, and differences.
pub(super) fn tables(view: &Input) -> Vec<Table> {
    let tables = [Some(medians(view)), efficiency(view), Some(summary(view)), differences(view)];
    tables.into_iter().flatten().collect()
}

fn medians(view: &Input) -> Table {
    let cell = |at: usize, _, line: &Analyzed| view.all.cell(at, line.filesystem, view.scale);
    let table = Table {
        id: format!("{}--medians", view.id),
        title: view.title.to_owned(),
        caption: Vec::new(),
        corner: view.clients.0,
        columns: view.lines.iter().map(|line| view.column(line, view.scale.name)).collect(),
        rows: view.rows(cell),
    };
    let sizes = view.all.points.first().map(|point| point.sizes());
    view.all.medians(table, view.margin, (sizes, findings::withheld(view)), view.absent)
}

fn efficiency(view: &Input) -> Option<Table> {
    let known = |line: &Analyzed| line.scaling.points.iter().any(|point| point.efficiency.is_ok());
    if !view.lines.iter().any(known) {
        return None;
    }
    let fraction = Scale::of(Unit::Fraction, std::iter::once(1.0));
    let cell = |_, level: u32, line: &Analyzed| {
        let point = line.scaling.points.iter().find(|point| point.clients == level);
        match point.map(|point| (&point.efficiency, point.summary.n)) {
            Some((Ok(Efficiency { value, interval }), n)) => {
                let interval = interval.as_ref().ok().copied();
                TableCell::Value(ValueCell::estimate(value.0, interval, n, fraction))
            }
            Some((Err(absent), _)) => TableCell::Text(absent.to_string()),
            None => TableCell::Text("no result".into()),
        }
    };
    let rows = view.rows(cell);
    Some(Table {
        id: format!("{}--efficiency", view.id),
        title: format!("Efficiency: {}", view.what()),
        caption: vec![
            format!(
                "Fraction of N times the {} of {} that is reached with N, higher is better ↑",
                metric_label(view.all.metric),
                view.clients.count(view.base)
            ),
            format!(
                "n = {} repetitions; estimated from medians [95 % bootstrap interval over rounds]",
                repetitions(view)
            ),
        ],
        corner: view.clients.0,
        columns: view.lines.iter().map(|line| view.column(line, fraction.name)).collect(),
        rows,
    })
}

fn repetitions(view: &Input) -> String {
    let points = view.lines.iter().flat_map(|line| &line.scaling.points);
    series::repetitions(points.map(|point| &point.summary))
}

/// Scaling summary: one row per filesystem.
fn summary(view: &Input) -> Table {
    let row = |line: &Analyzed| {
        let scaling = &line.scaling;
        let best = match scaling.points.get(scaling.peak) {
            Some(point) => TableCell::Value(ValueCell::plain(&point.summary, view.scale)),
            None => TableCell::Text("no result".into()),
        };
        let at = scaling.points.get(scaling.peak);
        let at = at.map_or_else(|| "no result".into(), |point| view.clients.count(point.clients));
        let cells = vec![
            TableCell::Text(saturation(view, scaling)),
            best,
            TableCell::Text(at),
            TableCell::Text(scaling.fall.as_ref().map_or("last is maximum".into(), |fall| {
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
        title: format!("Scaling summary: {}", view.what()),
        caption: vec![
            capital(&directions(std::iter::once(view.all.metric))),
            "saturation: smallest level with 95 % of the maximum median [95 % bootstrap range over \
             rounds]"
                .into(),
            "last vs. maximum: Hodges–Lehmann ratio with the interval of the inverted test; change \
             per doubling: Theil–Sen slope, p of the Jonckheere–Terpstra test by permutation \
             within rounds"
                .into(),
            "fitted law: linear, Amdahl, or universal scalability law, selected by AICc; not shown \
             if it misses a median by more than 10 %"
                .into(),
        ],
        corner: "filesystem",
        columns: vec![
            Column::new("saturation", ""),
            Column::new("maximum", view.scale.name),
            Column::new("maximum at", ""),
            Column::new("last vs. maximum", ""),
            Column::new("change per doubling", ""),
            Column::new("fitted law", ""),
        ],
        rows,
    };
    table.state_n();
    table
}

fn saturation(view: &Input, scaling: &Scaling) -> String {
    let point = scaling.points.get(scaling.saturation);
    match (point, &scaling.shape) {
        (Some(point), Ok(_)) => {
            format!("{}{}", view.clients.count(point.clients), findings::range(scaling))
        }
        (Some(_), Err(absent)) => absent.to_string(),
        (None, _) => "no result".into(),
    }
}

fn trend(trend: &Result<Trend, NotEstimable>) -> String {
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

fn law(laws: &Result<Laws, NotEstimable>) -> String {
    let laws = match laws {
        Ok(laws) => laws,
        Err(absent) => return absent.to_string(),
    };
    if let Some(misfit) = &laws.misfit {
        return misfit.to_string();
    }
    let name = match laws.chosen.law {
        Law::Linear => "linear".to_owned(),
        Law::Amdahl => format!("Amdahl, contention {}", coefficient(laws.chosen.sigma)),
        Law::Universal => format!(
            "universal, contention {}, coherency {}",
            coefficient(laws.chosen.sigma),
            coefficient(laws.chosen.kappa)
        ),
    };
    let peak = match &laws.peak {
        Ok(peak) => format!(
            "; maximum at {} [{}, {}]",
            fixed(peak.clients, 0),
            fixed(peak.clients_interval.low, 0),
            fixed(peak.clients_interval.high, 0)
        ),
        Err(absent) => format!("; {absent}"),
    };
    format!("{name}{peak} (deviation at most {})", percent(laws.residual.0))
}

/// Coefficient with two significant digits.
fn coefficient(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "a decimal exponent is within ±324")]
    let exponent = if value > 0.0 { value.log10().floor() as i32 } else { 0 };
    match value > 0.0 && exponent < -5 {
        true => format!("{value:.1e}"),
        false => fixed(value, 1 - exponent),
    }
}

/// Differences in efficiency to the first filesystem at the same number of clients; `None` if no
/// difference has an interval.
fn differences(view: &Input) -> Option<Table> {
    let (first, others) = view.lines.split_first()?;
    let of = |line: &Analyzed| Curve::efficiency_differences(&first.curve, &line.curve, view.seed);
    let all: Vec<Vec<Difference>> = others.iter().map(of).collect();
    let known =
        |difference: &Difference| difference.difference.is_ok() && difference.interval.is_ok();
    if !all.iter().flatten().any(known) {
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
        title: format!("Difference in efficiency to {}: {}", first.name, view.what()),
        caption: vec![
            format!(
                "Efficiency minus that of {} at the same level, in percentage points, higher is \
                 better ↑",
                first.name
            ),
            format!(
                "n = {} repetitions; 95 % bootstrap interval over common rounds; a difference is \
                 significant if it excludes 0 (not adjusted)",
                repetitions(view)
            ),
        ],
        corner: view.clients.0,
        columns: others.iter().map(|line| view.column(line, "")).collect(),
        rows: view.all.points.iter().filter_map(row).collect(),
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
