//! Two sources beside each other, laid out.

use std::fmt::Write;

use analysis::{Interval, Summary};
use askama::Template;
use model::{Metric, metric::Unit};
use serde_json::{Value as Json, json};

use super::{Beside, Center, Pair, Side, Value};
use crate::{
    charts::editions::{Marks, Panel, Panels, three},
    figures::Kind,
    formats::markdown::{escaped, write_table},
    html::{rendered, table_under},
    published::{Drawn, edition_charts},
    terminal::{Page, TerminalOptions},
    units::{Scale, Shown, fixed, significant},
    view::{Body, Column, Row, Table, TableCell, ValueCell, slug, words},
};

/// Version of the JSON. It changes when a field goes or means something else.
const SCHEMA: u32 = 1;

/// Names of both sides in tables.
const LETTERS: [&str; 2] = ["A", "B"];

#[derive(Template)]
#[template(path = "comparison.html")]
struct ComparisonPage<'a> {
    title: String,
    sides: Vec<(&'static str, &'a Side)>,
    differing: Vec<[&'a str; 4]>,
    verdict: String,
    charts: Vec<Drawn>,
    tables: Vec<String>,
    alone: Vec<String>,
    style: &'static str,
}

impl Beside {
    /// For a terminal.
    pub fn terminal(&self, options: &TerminalOptions) -> String {
        let mut page = Page::new(options);
        for (letter, side) in LETTERS.iter().zip([&self.first, &self.second]) {
            page.wrapped(&format!("{letter}  "), "   ", &side.line());
        }
        page.heading("What else differs, and what that forbids to conclude");
        for own in &self.differing {
            let text = format!("A {}; B {}; forbids: {}", own.first, own.second, own.forbids);
            page.wrapped(&format!("- {}: ", own.what), "  ", &text);
        }
        page.line("");
        page.wrapped("", "", &self.verdict());
        self.tables().iter().for_each(|table| page.table(table));
        let alone = self.alone();
        if !alone.is_empty() {
            page.heading("In one of them alone");
        }
        alone.iter().for_each(|line| page.wrapped("- ", "  ", line));
        page.text
    }

    /// As GitHub-flavored Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n\n", escaped(&self.title()));
        for (letter, side) in LETTERS.iter().zip([&self.first, &self.second]) {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- {letter}: {}", escaped(&side.line()));
        }
        text.push_str(
            "\n## What else differs\n\n| condition | A | B | forbids to conclude |\n\
             | --- | --- | --- | --- |\n",
        );
        for own in &self.differing {
            let fields = [own.what, &own.first, &own.second, own.forbids].map(escaped);
            let _ = writeln!(text, "| {} |", fields.join(" | "));
        }
        let _ = writeln!(text, "\n{}\n", escaped(&self.verdict()));
        self.tables().iter().for_each(|table| write_table(&mut text, table, "##"));
        self.alone().iter().for_each(|line| text.push_str(&format!("- {}\n", escaped(line))));
        text
    }

    /// As JSON: base units, and what else differs.
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
                "forbids": own.forbids,
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

    /// As one HTML file that loads nothing.
    pub fn html(&self) -> String {
        let conditions = "Published numbers were not measured by fslab; no verdict";
        let table = |table: &Table| table_under(table, conditions, false);
        let mut charts =
            self.editions.as_ref().map_or_else(Vec::new, |(one, other)| edition_charts(one, other));
        if charts.is_empty() {
            charts = self.charts();
        }
        let page = ComparisonPage {
            title: self.title(),
            sides: LETTERS.into_iter().zip([&self.first, &self.second]).collect(),
            differing: self
                .differing
                .iter()
                .map(|own| [own.what, &own.first, &own.second, own.forbids])
                .collect(),
            verdict: self.verdict(),
            charts,
            tables: self.tables().iter().map(table).collect(),
            alone: self.alone(),
            style: include_str!("../../../templates/style.css"),
        };
        rendered(&page) + "\n"
    }

    fn title(&self) -> String {
        format!("{} beside {}", self.first.name, self.second.name)
    }

    /// That there is none, and why.
    fn verdict(&self) -> String {
        let what: Vec<&str> = self.differing.iter().map(|own| own.what).collect();
        format!(
            "No verdict: {} differ together, so a difference between A and B is one of all of them \
             and of no filesystem by itself. A ratio is that of means, A over B, with its 95 % \
             interval (Fieller), and stands only where the spread of both is known; it tells how \
             far the two sets of numbers lie apart, not why. There is none where the file of one \
             side fits into its memory and that of the other does not, since the work is of \
             another kind.",
            what.join(", ")
        )
    }

    fn alone(&self) -> Vec<String> {
        let line = |(name, own): &(String, Vec<String>)| format!("{name}: {}", own.join(", "));
        self.alone.iter().map(line).collect()
    }

    /// What both sides' number of a pair is of. The words of a study tell its own sizes ("Touch
    /// 10,000 Files"), so that beside a run its tasks go by the names that tell none.
    fn label<'a>(&self, pair: &'a Pair) -> &'a str {
        let (told, other) = match pair.second.workload.is_empty() {
            true => (&pair.second, &pair.first),
            false => (&pair.first, &pair.second),
        };
        let unlike = self.second.suite == "tasks" && !other.workload.is_empty();
        let named = if unlike { other } else { told };
        &named.key.label
    }

    /// A metric in words. The writes of IOzone of 2009 are timed without flush, so that what stands
    /// beside them is what was accepted as well.
    fn words(&self, metric: Metric) -> String {
        match (self.second.suite, metric) {
            ("iozone", Metric::Throughput) => format!("accepted {}", words(metric)),
            _ => words(metric),
        }
    }

    /// Sizes of a side's work, in its words.
    fn sizes(side: &Side) -> &str {
        let found = side.conditions.iter().find(|(name, _)| name == "sizes");
        found.map_or("sizes not told", |(_, text)| text.as_str())
    }

    /// Metrics and filesystems that are paired, each once.
    fn groups(&self) -> Vec<(Metric, &str)> {
        let mut groups: Vec<(Metric, &str)> = Vec::new();
        for pair in &self.pairs {
            let group = (pair.second.key.metric, pair.second.key.filesystem.as_str());
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
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
            let varied = match several {
                true => [&pair.first.workload, &pair.second.workload],
                false => [""; 2].map(|_| EMPTY),
            };
            let varied = varied.into_iter().find(|text| !text.is_empty());
            let title = varied.map_or_else(|| label.to_owned(), |own| format!("{label} ({own})"));
            let divided = pair.ratio.is_ok();
            let of = |value| cell(value, scale, divided);
            let cells = vec![of(&pair.first), of(&pair.second), ratio(pair)];
            Row::of(title, None, Body::Cells(cells))
        };
        let direction = metric.spec().better.words();
        let center = |value: Option<&Value>| value.map_or("", |value| value.center.name());
        let first = own.clone().next();
        let about = |side: &Side, value: Option<&Value>| {
            let published = if side.measured_by_fslab { "" } else { ", not measured by fslab" };
            let (name, sizes) = (&side.name, Self::sizes(side));
            format!("{name} ({}{published}; sizes: {sizes})", center(value))
        };
        let divided = match own.clone().any(|pair| pair.ratio.is_ok()) {
            true => "A ÷ B of means; beside a median stands the mean that is divided",
            false => "A ÷ B of means, none here",
        };
        let what = self.words(metric);
        let accepted = match self.second.suite {
            "iozone" => "; writes count as accepted, without flush, and are not durable",
            _ => "",
        };
        Table {
            id: format!("{}-{}", slug(metric.name()), slug(filesystem)),
            title: format!("{}: {}", own_names(own.clone(), filesystem), what),
            caption: vec![
                format!("{what}, {direction}{accepted}"),
                format!("A: {}", about(&self.first, first.map(|pair| &pair.first))),
                format!("B: {}", about(&self.second, first.map(|pair| &pair.second))),
                format!("95 % intervals where a spread is known; {divided}; no verdict"),
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

    /// One chart for each metric and record length: both sides in panels by filesystem.
    pub(super) fn charts(&self) -> Vec<Drawn> {
        let mut groups: Vec<(Metric, Option<u64>)> = Vec::new();
        for pair in &self.pairs {
            let group = (pair.second.key.metric, pair.second.key.record);
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups.into_iter().map(|group| self.chart(group)).collect()
    }

    fn chart(&self, group: (Metric, Option<u64>)) -> Drawn {
        let (metric, record) = group;
        let own = || {
            self.pairs
                .iter()
                .filter(|pair| (pair.second.key.metric, pair.second.key.record) == group)
        };
        let mut tests: Vec<&str> = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        for pair in own() {
            let key = &pair.second.key;
            if !tests.contains(&self.label(pair)) {
                tests.push(self.label(pair));
            }
            if !names.contains(&key.filesystem.as_str()) {
                names.push(&key.filesystem);
            }
        }
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
        let at = record.map_or_else(String::new, |record| {
            format!(", records of {}", crate::units::bytes(model::Bytes(record)))
        });
        let what = self.words(metric);
        let title = format!("{what}{at}: {}", self.title());
        let id = format!("beside-{}-{}", slug(metric.name()), record.unwrap_or(0));
        let chart = Panels {
            id: format!("{id}-chart"),
            title: title.clone(),
            description: "Both values of each test; the numbers are in the tables.".into(),
            axis: format!(
                "{what}, {} — {} · marker: A, ring: B",
                scale.name,
                metric.spec().better.words()
            ),
            apart: false,
            shown: three,
            logarithmic: metric.spec().unit != Unit::Share,
            rows: tests.iter().map(|test| (*test).to_owned()).collect(),
            panels: names.iter().enumerate().map(panel).collect(),
        };
        Drawn {
            kind: Kind::Conditions,
            wide: true,
            svg: chart.render(),
            caption: self.chart_caption(),
            id,
            title,
        }
    }

    fn chart_caption(&self) -> String {
        let about = |side: &Side| {
            let not = if side.measured_by_fslab { "" } else { "not " };
            format!("{}, {not}measured by fslab; sizes: {}", side.name, Self::sizes(side))
        };
        let accepted = match self.second.suite {
            "iozone" => " Writes count as accepted, without flush, and are not durable.",
            _ => "",
        };
        format!(
            "Marker: A ({}); ring: B ({}). Intervals stand in the tables. They are on one axis to \
             be read, not to be judged: machine, disk, and kernel differ as well.{accepted}",
            about(&self.first),
            about(&self.second)
        )
    }
}

/// The filesystem; where the sides call it otherwise, by both names: `ext4 (A) beside ext3 (B)`.
fn own_names<'a>(mut own: impl Iterator<Item = &'a Pair>, filesystem: &str) -> String {
    match own.next() {
        Some(pair) if pair.first.named != pair.second.named => {
            format!("{} (A) beside {} (B)", pair.first.named, pair.second.named)
        }
        Some(_) | None => filesystem.to_owned(),
    }
}

/// In place of a workload.
const EMPTY: &String = &String::new();

impl Side {
    fn line(&self) -> String {
        match self.measured_by_fslab {
            true => format!("{}: {}", self.name, self.about),
            false => format!("{}: {} · not measured by fslab", self.name, self.about),
        }
    }
}

/// A number in the unit of its table, with what it is a summary of; where it is divided, with the
/// mean that is.
fn cell(value: &Value, scale: Scale, divided: bool) -> TableCell {
    let summary = Summary {
        n: value.n,
        median: value.value,
        interval: value.interval,
        min: value.value,
        max: value.value,
        warnings: Vec::new(),
    };
    let mut cell = ValueCell::plain(&summary, scale);
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
    TableCell::Value(ValueCell {
        of: None,
        shown: Shown {
            value: fixed(found.ratio.0, places),
            interval: Some((fixed(low, places), fixed(high, places))),
            relative: None,
        },
        n: pair.first.n.min(pair.second.n),
        n_stated: false,
        top: false,
        codes: Vec::new(),
        sort: found.ratio.0,
        interval: Some(found.interval),
        unit: Unit::Ratio,
        note: String::new(),
    })
}

fn pair_json(pair: &Pair) -> Json {
    let interval = |own: Interval| json!({"low": own.low, "high": own.high, "level": own.level});
    let value = |value: &Value| {
        json!({
            "value": value.value,
            "is": value.center.name(),
            "interval": value.interval.map(interval),
            "filesystem": value.named,
            "mean": value.moments.map(|own| own.mean),
            "deviation": value.moments.map(|own| own.deviation),
            "n": value.n,
            "workload": value.workload,
            "marks": value.marks,
        })
    };
    let key = &pair.second.key;
    let mut told = json!({
        "test": key.test,
        "record_bytes": key.record,
        "filesystem": key.filesystem,
        "metric": key.metric.name(),
        "unit": key.metric.spec().unit.name(),
        "better": key.metric.spec().better.words(),
        "first": value(&pair.first),
        "second": value(&pair.second),
    });
    match &pair.ratio {
        Ok(found) => {
            told["ratio_of_means"] =
                json!({"ratio": found.ratio.0, "interval": interval(found.interval)});
        }
        Err(why) => told["no_ratio"] = json!(why),
    }
    told
}
