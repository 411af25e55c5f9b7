//! Output of side-by-side comparisons.

use analysis::Interval;
use model::{Metric, metric::Unit};
use serde_json::{Value as Json, json};

use super::{Center, NOT_RECORDED, Pair, Side, SideBySide, Value};
use crate::{
    charts::editions::{Marks, Panel, Panels, three},
    document::{
        Block, Body, Column, Document, Figure, Item, Kind, Layout, Row, Section, Style, Table,
        TableCell, ValueCell,
        html::html,
        json::of_interval,
        markdown::markdown,
        terminal::{TerminalOptions, terminal},
    },
    published::edition_charts,
    units::{Scale, distinct, fixed, significant, slug},
    view::metric_label,
};

/// Schema version. Incremented if a field is removed or changes its meaning.
const SCHEMA: u32 = 1;

/// Names of both sides in tables.
const LETTERS: [&str; 2] = ["A", "B"];

impl SideBySide {
    /// Text for a terminal.
    pub fn terminal(&self, options: &TerminalOptions) -> String {
        terminal(&self.document(), options)
    }

    /// GitHub-flavored Markdown.
    pub fn markdown(&self) -> String {
        markdown(&self.document())
    }

    /// One HTML file without external resources.
    pub fn html(&self) -> String {
        html(&self.document())
    }

    fn document(&self) -> Document {
        let sides = LETTERS.iter().zip([&self.first, &self.second]);
        let sides = sides.map(|(letter, side)| Item::named(*letter, side.line()));
        let confounders = self.differing.iter().map(|own| {
            Row::texts(own.what, [own.first.as_str(), own.second.as_str(), own.prevents])
        });
        let confounders = Table::of_texts(
            "condition",
            &["A", "B", "prevents conclusions about"],
            confounders.collect(),
        );
        let confounders =
            vec![Block::Table(confounders, Layout::Records), Block::Paragraph(self.verdict())];
        let mut charts =
            self.editions.as_ref().map_or_else(Vec::new, |(one, other)| edition_charts(one, other));
        if charts.is_empty() {
            charts = self.charts();
        }
        let tables = self.tables().into_iter().map(|table| Block::Table(table, Layout::Full));
        let alone = Block::bullets(self.alone()).into_iter().collect();
        let sections = [
            Section::new("confounders", "Confounders", confounders),
            Section::new("charts", "Charts", charts.into_iter().map(Block::Figure).collect()),
            Section::new("tables", "Tables", tables.collect()),
            Section::new("alone", "Only in one of the two", alone),
        ];
        Document {
            kicker: "Side-by-side comparison (no statistical test)".into(),
            title: self.title(),
            lead: Block::list(Style::Facts, sides).into_iter().collect(),
            sections: sections.into_iter().filter_map(Section::some).collect(),
            ..Document::default()
        }
    }

    /// JSON with values in base units, and confounders.
    pub fn json(&self) -> String {
        let side = |side: &Side| {
            json!({
                "name": side.name,
                "about": side.about,
                "measured_by_fslab": side.measured_by_fslab,
            })
        };
        let differing = self.differing.iter().map(|own| {
            json!({
                "what": own.what,
                "first": own.first,
                "second": own.second,
                "prevents": own.prevents,
            })
        });
        let alone = self.alone.iter().map(|(name, own)| json!({"in": name, "filesystems": own}));
        let document = json!({
            "schema": SCHEMA,
            "first": side(&self.first),
            "second": side(&self.second),
            "verdict": Json::Null,
            "why_no_verdict": self.verdict(),
            "differing": differing.collect::<Vec<_>>(),
            "pairs": self.pairs.iter().map(pair_json).collect::<Vec<_>>(),
            "alone": alone.collect::<Vec<_>>(),
        });
        format!("{document:#}\n")
    }

    fn title(&self) -> String {
        format!("{} vs. {}", self.first.name, self.second.name)
    }

    /// Reason why there is no statistical test, and definition of the ratios.
    fn verdict(&self) -> String {
        let what: Vec<&str> = self.differing.iter().map(|own| own.what).collect();
        format!(
            "Side-by-side comparison (no statistical test): {} differ together, so a difference \
             between A and B has no single cause. Ratios are ratios of means, A over B, with a 95 \
             % confidence interval (Fieller), if both spreads are known. There is no ratio if the \
             file of only one side fits in memory.",
            what.join(", ")
        )
    }

    fn alone(&self) -> Vec<String> {
        let line = |(name, own): &(String, Vec<String>)| format!("{name}: {}", own.join(", "));
        self.alone.iter().map(line).collect()
    }

    /// Label of the test of a pair. Task names of a study contain its sizes ("Touch 10,000 Files"),
    /// so comparisons with a run use the names of the run.
    fn label<'a>(&self, pair: &'a Pair) -> &'a str {
        let (own, other) = match pair.second.workload.is_empty() {
            true => (&pair.second, &pair.first),
            false => (&pair.first, &pair.second),
        };
        let unlike = self.second.suite == "tasks" && !other.workload.is_empty();
        let named = if unlike { other } else { own };
        &named.key.label
    }

    /// Label of a metric. The times of writes in the 2009 IOzone study exclude the final sync, so
    /// they are compared with the accepted throughput.
    fn quantity_label(&self, metric: Metric) -> String {
        match (self.second.suite, metric) {
            ("iozone", Metric::Throughput) => format!("accepted {}", metric_label(metric)),
            _ => metric_label(metric),
        }
    }

    /// Sizes of the workload of a side.
    fn sizes(side: &Side) -> &str {
        let found = side.conditions.iter().find(|(name, _)| name == "sizes");
        found.map_or(NOT_RECORDED, |(_, text)| text.as_str())
    }

    /// Metrics and filesystems of the pairs, without duplicates.
    fn groups(&self) -> Vec<(Metric, &str)> {
        let keys = self.pairs.iter().map(|pair| &pair.second.key);
        distinct(keys.map(|key| (key.metric, key.filesystem.as_str())))
    }

    fn of(&self, group: (Metric, &str)) -> impl Iterator<Item = &Pair> + Clone {
        self.pairs.iter().filter(move |pair| {
            (pair.second.key.metric, pair.second.key.filesystem.as_str()) == group
        })
    }

    pub(super) fn tables(&self) -> Vec<Table> {
        self.groups().into_iter().map(|group| self.table(group)).collect()
    }

    fn table(&self, (metric, filesystem): (Metric, &str)) -> Table {
        let own = self.of((metric, filesystem));
        let values = own.clone().flat_map(|pair| [pair.first.value, pair.second.value]);
        let scale = Scale::of(metric.spec().unit, values);
        let several = own.clone().any(|pair| {
            let same = |other: &&Pair| other.second.key == pair.second.key;
            own.clone().filter(same).count() > 1
        });
        let row = |pair: &Pair| {
            let label = self.label(pair);
            let varied = [&pair.first.workload, &pair.second.workload].into_iter();
            let varied = varied.filter(|_| several).find(|text| !text.is_empty());
            let title = varied.map_or_else(|| label.to_owned(), |own| format!("{label} ({own})"));
            let divided = pair.ratio.is_ok();
            let of = |value| cell(value, scale, divided);
            let cells = vec![of(&pair.first), of(&pair.second), ratio(pair)];
            Row::of(title, None, Body::Cells(cells))
        };
        let direction = metric.spec().better.label();
        let center = |value: Option<&Value>| value.map_or("", |value| value.center.name());
        let first = own.clone().next();
        let about = |side: &Side, value: Option<&Value>| {
            let published = if side.measured_by_fslab { "" } else { ", not measured by fslab" };
            let (name, sizes) = (&side.name, Self::sizes(side));
            format!("{name} ({}{published}; sizes: {sizes})", center(value))
        };
        let divided = match own.clone().any(|pair| pair.ratio.is_ok()) {
            true => "A ÷ B: ratio of means; medians are shown with the mean",
            false => "A ÷ B: ratio of means, not available",
        };
        let what = self.quantity_label(metric);
        let accepted = match self.second.suite {
            "iozone" => "; writes are accepted, not durable (no final sync)",
            _ => "",
        };
        Table {
            id: format!("{}-{}", slug(metric.name()), slug(filesystem)),
            title: format!("{}: {}", own_names(own.clone(), filesystem), what),
            caption: vec![
                format!("{what}, {direction}{accepted}"),
                format!("A: {}", about(&self.first, first.map(|pair| &pair.first))),
                format!("B: {}", about(&self.second, first.map(|pair| &pair.second))),
                format!("95 % confidence intervals if the spread is known; {divided}"),
            ],
            corner: "test",
            columns: vec![
                Column::new("A", scale.name),
                Column::new("B", scale.name),
                Column::new("A ÷ B", "×"),
            ],
            rows: own.map(row).collect(),
        }
    }

    /// One chart per metric and block size: both sides in panels by filesystem.
    pub(super) fn charts(&self) -> Vec<Figure> {
        let keys = self.pairs.iter().map(|pair| &pair.second.key);
        let groups = distinct(keys.map(|key| (key.metric, key.block_size)));
        groups.into_iter().map(|group| self.chart(group)).collect()
    }

    fn chart(&self, group: (Metric, Option<u64>)) -> Figure {
        let (metric, block_size) = group;
        let own = || {
            self.pairs
                .iter()
                .filter(|pair| (pair.second.key.metric, pair.second.key.block_size) == group)
        };
        let tests = distinct(own().map(|pair| self.label(pair)));
        let names = distinct(own().map(|pair| pair.second.key.filesystem.as_str()));
        let values = own().flat_map(|pair| [pair.first.value, pair.second.value]);
        let scale = Scale::of(metric.spec().unit, values.collect::<Vec<_>>().into_iter());
        let panel = |(series, name): (usize, &&str)| {
            let mark = |test: &&str| {
                let found = own().find(|pair| {
                    self.label(pair) == *test && pair.second.key.filesystem == **name
                })?;
                let number = |value: &Value| Some(scale.number(value.value));
                let (first, second) = (number(&found.second), number(&found.first));
                Some(Marks { series, first, second })
            };
            let named = own().filter(|pair| pair.second.key.filesystem == **name);
            Panel { name: own_names(named, name), marks: tests.iter().map(mark).collect() }
        };
        let at = block_size.map_or_else(String::new, |size| {
            format!(", block size {}", crate::units::bytes(model::Bytes(size)))
        });
        let what = self.quantity_label(metric);
        let title = format!("{what}{at}: {}", self.title());
        let id = format!("side-by-side-{}-{}", slug(metric.name()), block_size.unwrap_or(0));
        let description = "Both values of each test; the numbers are in the tables.";
        let chart = Panels {
            axis: format!(
                "{what}, {} — {} · marker: A, ring: B",
                scale.name,
                metric.spec().better.label()
            ),
            apart: false,
            shown: three,
            logarithmic: metric.spec().unit != Unit::Fraction,
            rows: tests.iter().map(|test| (*test).to_owned()).collect(),
            panels: names.iter().enumerate().map(panel).collect(),
        };
        let (chart, caption) = (chart.render(), self.chart_caption());
        let text = (title, description);
        Figure { wide: true, ..Figure::new(Kind::Settings, id, chart, text, caption) }
    }

    fn chart_caption(&self) -> String {
        let about = |side: &Side| {
            let not = if side.measured_by_fslab { "" } else { "not " };
            format!("{}, {not}measured by fslab; sizes: {}", side.name, Self::sizes(side))
        };
        let accepted = match self.second.suite {
            "iozone" => " Writes are accepted, not durable (no final sync).",
            _ => "",
        };
        format!(
            "Marker: A ({}); ring: B ({}). The tables have the intervals. Machine, disk, and \
             kernel differ as well.{accepted}",
            about(&self.first),
            about(&self.second)
        )
    }
}

/// Filesystem, with both names if they differ: `ext4 (A) vs. ext3 (B)`.
fn own_names<'a>(mut own: impl Iterator<Item = &'a Pair>, filesystem: &str) -> String {
    match own.next() {
        Some(pair) if pair.first.named != pair.second.named => {
            format!("{} (A) vs. {} (B)", pair.first.named, pair.second.named)
        }
        Some(_) | None => filesystem.to_owned(),
    }
}

impl Side {
    fn line(&self) -> String {
        match self.measured_by_fslab {
            true => format!("{}: {}", self.name, self.about),
            false => format!("{}: {} · not measured by fslab", self.name, self.about),
        }
    }
}

/// Cell of a number in the unit of its table. The note of a mean is the standard deviation. The
/// note of a median is the mean, if there is a ratio.
fn cell(value: &Value, scale: Scale, divided: bool) -> TableCell {
    let mut cell = ValueCell::estimate(value.value, value.interval, value.n, scale);
    cell.n_stated = true;
    cell.note = match (value.center, value.moments) {
        (Center::Mean, Some(moments)) => {
            format!("s = {}", scale.rough(moments.deviation))
        }
        (Center::Median, Some(moments)) if divided => {
            let mean = scale.number(moments.mean);
            format!("mean = {}", fixed(mean, significant(mean, 4).clamp(0, 6)))
        }
        (Center::Mean | Center::Median | Center::Single, _) => String::new(),
    };
    cell.codes.clone_from(&value.marks);
    TableCell::Value(cell)
}

fn ratio(pair: &Pair) -> TableCell {
    let found = match &pair.ratio {
        Ok(found) => found,
        Err(why) => return TableCell::Text(why.clone()),
    };
    let Interval { low, high, .. } = found.interval;
    let places = if high - low < 0.1 { 3 } else { 2 };
    let n = pair.first.n.min(pair.second.n);
    let shown = fixed(found.ratio.0, places);
    let mut cell = ValueCell::printed(shown, found.ratio.0, Unit::Ratio, n);
    cell.shown.interval = Some((fixed(low, places), fixed(high, places)));
    cell.interval = Some(found.interval);
    TableCell::Value(cell)
}

fn pair_json(pair: &Pair) -> Json {
    let value = |value: &Value| {
        json!({
            "value": value.value,
            "is": value.center.name(),
            "interval": value.interval.map(of_interval),
            "filesystem": value.named,
            "mean": value.moments.map(|own| own.mean),
            "deviation": value.moments.map(|own| own.deviation),
            "n": value.n,
            "workload": value.workload,
            "marks": value.marks,
        })
    };
    let key = &pair.second.key;
    let mut object = json!({
        "test": key.test,
        "block_size": key.block_size,
        "filesystem": key.filesystem,
        "metric": key.metric.name(),
        "unit": key.metric.spec().unit.name(),
        "better": key.metric.spec().better.label(),
        "first": value(&pair.first),
        "second": value(&pair.second),
    });
    match &pair.ratio {
        Ok(found) => {
            object["ratio_of_means"] =
                json!({"ratio": found.ratio.0, "interval": of_interval(found.interval)});
        }
        Err(why) => object["no_ratio"] = json!(why),
    }
    object
}
