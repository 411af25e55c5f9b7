//! Document of a comparison: verdict, table of tests, findings, controls, and conditions.

use analysis::{
    Summary,
    conditions::Difference,
    runs::{Chain, GateVerdict, Paired, TestPair, Unpaired, UnpairedReason, Withheld},
};
use model::{Metric, RunRecord, units::plural};

use super::{
    ComparisonFinding, Mark, RenderedComparison, headline, histories, name, named, phrases,
    regressions, rendered, verdict,
};
use crate::{
    charts::changes::{ChangeRow, changes},
    document::{
        self, Block, Body, Column, Document, Figure, Item, Kind, Layout, Row, Section, Style,
        Table, TableCell, ValueCell, terminal::TerminalOptions,
    },
    units::{Scale, grouped},
    view::{directions, sample_index::SampleIndex},
};

/// Maximum number of reasons below the table of tests.
const REASONS_MAX: usize = 3;

/// Maximum width of the terminal text in columns, so that it fits into mails and issues.
const WIDTH_MAX: usize = 80;

/// Maximum number of findings of one kind on a terminal. The table has all tests.
const FINDINGS_MAX: usize = 12;

/// Maximum number of rows of the chart.
const ROWS_MAX: usize = 60;

/// Maximum number of conditions in the Markdown text.
const CONDITIONS_MAX: usize = 5;

/// Extent of a document.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Verdict, table, and conditions.
    Mail,
    Terminal,
    /// All sections, with charts, CPU time, and write amplification.
    Page,
}

/// Terminal text of a comparison.
pub fn terminal(runs: &[&RunRecord], chain: &Chain, options: &TerminalOptions) -> String {
    let width = options.width.min(WIDTH_MAX);
    let document = document(runs, chain, Extent::Terminal);
    document::terminal::terminal(&document, &TerminalOptions { width, ..*options })
}

/// Markdown of a comparison, short enough for a mailing list.
pub fn markdown(runs: &[&RunRecord], chain: &Chain) -> String {
    document::markdown::markdown(&mail(runs, chain))
}

/// Verdict, table, and conditions.
pub(crate) fn mail(runs: &[&RunRecord], chain: &Chain) -> Document {
    document(runs, chain, Extent::Mail)
}

/// One HTML file without external resources.
pub fn html(runs: &[&RunRecord], chain: &Chain) -> String {
    document::html::html(&document(runs, chain, Extent::Page))
}

fn document(runs: &[&RunRecord], chain: &Chain, extent: Extent) -> Document {
    let names = runs.iter().enumerate().map(|(at, run)| Item::named(name(at), named(run)));
    let mut lead: Vec<Block> = Block::list(Style::Facts, names).into_iter().collect();
    lead.extend(chain.gate.iter().map(|gate| Block::Paragraph(verdict(gate))));
    let failed = |gate: &analysis::runs::Gate| gate.verdict == GateVerdict::Failed;
    let worse = match chain.gate.as_ref().is_some_and(failed) && extent != Extent::Mail {
        true => regressions(chain),
        false => Vec::new(),
    };
    let worse = worse.into_iter().map(|text| Item { mark: "▼", ..Item::of(text) });
    let section = |id: &str, title: &str, block: Option<Block>| {
        Section::new(id, title, block.into_iter().collect()).some()
    };
    let mut sections: Vec<Section> = [
        section("gate", "Gate failures", Block::list(Style::Bullets, worse)),
        section("change-points", "Change points", Block::bullets(histories(chain))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let all = rendered(chain);
    let single = all.len() == 1;
    for (at, rendered) in all.iter().enumerate() {
        let gate = chain.gate.as_ref().map(|gate| gate.rule.margin.0);
        let margin = gate.unwrap_or(rendered.step.effective_margin.0);
        let step = Step { rendered, extent, prefix: format!("step-{at}"), at, margin };
        let (blocks, own) = step.content(runs);
        match single {
            true => {
                lead.extend(blocks);
                sections.extend(own);
            }
            false => {
                let summary = Block::Paragraph(format!("{}.", headline::of_step(rendered)));
                let blocks = std::iter::once(summary).chain(blocks).collect();
                sections.push(Section::new(&step.prefix, &rendered.title, blocks));
                sections.extend(own);
            }
        }
    }
    let title = match &all[..] {
        [only] => only.title.clone(),
        _ => format!("Comparison of {} runs", runs.len()),
    };
    let headline = format!("{}.", headline::headline(chain, &all));
    Document { title, headline, lead, sections, ..Document::default() }
}

/// Comparison of two runs in a document.
struct Step<'a> {
    rendered: &'a RenderedComparison<'a>,
    extent: Extent,
    /// Prefix of the anchors.
    prefix: String,
    /// Index of the first of the two runs.
    at: usize,
    /// Margin of the gate; without a gate, the effective equivalence margin; a fraction.
    margin: f64,
}

impl Step<'_> {
    /// Blocks of the first page, and the sections after it.
    fn content(&self, runs: &[&RunRecord]) -> (Vec<Block>, Vec<Section>) {
        let rendered = self.rendered;
        let step = rendered.step;
        let mut blocks: Vec<Block> = Vec::new();
        let mut say = |text: String| blocks.push(Block::Paragraph(text));
        rendered.obstacles.iter().for_each(|why| say(format!("No findings: {why}")));
        if !rendered.obstacles.is_empty() && !rendered.aspects.is_empty() {
            say(format!("The results below compare {}.", rendered.aspects));
        }
        if self.extent == Extent::Page {
            blocks.extend(self.figure().map(Block::Figure));
        }
        blocks.extend(self.table(runs).map(|table| Block::Table(table, Layout::Bare)));
        let conditions = self.conditions();
        if self.extent == Extent::Mail {
            blocks.extend(conditions);
            return (blocks, Vec::new());
        }
        let list = |findings: &[ComparisonFinding]| {
            let item = |finding: &ComparisonFinding| Item {
                mark: finding.mark.sign(),
                ..Item::of(&finding.text)
            };
            let mut list = Block::list(Style::Bullets, findings.iter().map(item));
            if let Some(Block::List(list)) = &mut list {
                list.limit = FINDINGS_MAX;
            }
            list
        };
        let paragraph = |text: String| Some(Block::Paragraph(text));
        let listed = (!rendered.listed.is_empty()).then(|| Block::Paragraph(rendered.listing()));
        let level = (step.family.found > 0 && rendered.obstacles.is_empty())
            .then(|| Block::Paragraph(rendered.level()));
        let findings = [list(&rendered.headlines), listed, list(&rendered.listed), level];
        let lonely = [("first", &step.only_first), ("second", &step.only_second)];
        let lonely = lonely.map(|(which, cells)| {
            let title = format!("Cells only in the {which} run");
            self.section(&format!("only-{which}"), &title, unpaired(cells))
        });
        let common = Block::bullets(&step.conditions.shared);
        let mut sections = vec![
            self.section("findings", "Findings", findings.into_iter().flatten()),
            self.section("inconclusive", "Inconclusive", list(&rendered.open)),
            self.section("controls", "Totals and controls", Block::bullets(&rendered.notes)),
        ];
        sections.extend(lonely);
        let conditions = match conditions.is_empty() {
            true => {
                let further = if step.aspects.is_empty() { "" } else { "further " };
                paragraph(format!("No {further}condition is known to differ."))
                    .into_iter()
                    .collect()
            }
            false => conditions,
        };
        sections.push(self.section("conditions", "Conditions that differ", conditions));
        sections.push(self.section("common", "Common cells", common));
        (blocks, sections.into_iter().filter_map(Section::some).collect())
    }

    fn section(&self, id: &str, title: &str, blocks: impl IntoIterator<Item = Block>) -> Section {
        let id = format!("{}-{id}", self.prefix);
        Section::new(id, title, blocks.into_iter().collect())
    }

    /// Tests with values in one of the runs, with titles and marks, in the order of [`Mark`].
    fn tests(&self) -> Vec<(String, &TestPair, Mark)> {
        let step = self.rendered.step;
        let titles = phrases::titles(&step.tests);
        let tests = step.tests.iter().zip(titles);
        let valued = |test: &TestPair| test.before.is_some() || test.after.is_some();
        let tests = tests.filter(|(test, _)| valued(test));
        let mut tests: Vec<_> =
            tests.map(|(test, title)| (title, test, Mark::of(test, step))).collect();
        // The sort is stable: tests with equal marks keep their order.
        tests.sort_by_key(|(_, _, mark)| *mark);
        tests
    }

    fn table(&self, runs: &[&RunRecord]) -> Option<Table> {
        let tests = self.tests();
        let step = self.rendered.step;
        let counts =
            |test: &TestPair| test.comparison.as_ref().ok().map(|own| (own.n_first, own.n_second));
        let common = grouped(tests.iter().filter_map(|(_, test, _)| Some((counts(test)?, ()))));
        let common = common.into_iter().max_by_key(|(_, times)| times.len()).map(|(n, _)| n);
        let costs = (self.extent == Extent::Page).then(|| Costs::new(runs, self.at, &step.tests));
        let rows = tests.iter().map(|(title, test, mark)| {
            let medians = [&test.before, &test.after].into_iter().flatten();
            let scale = Scale::of(test.metric.spec().unit, medians.map(|own| own.median));
            let value = |summary: &Option<Summary>| match summary {
                Some(summary) => {
                    let mut cell = ValueCell::plain(summary, scale);
                    if self.extent == Extent::Mail {
                        cell.shown.interval = None;
                    }
                    TableCell::Value(cell)
                }
                None => TableCell::Text(String::new()),
            };
            let text = TableCell::Text;
            let result = match test.comparison.is_ok() {
                true => mark.result(test),
                false => Mark::NotCompared.label().into(),
            };
            let change = phrases::change(test).map(phrases::signed);
            let mut cells = vec![value(&test.before), value(&test.after)];
            cells.push(text(change.unwrap_or_default()));
            cells.push(text(result));
            cells.extend(costs.iter().flat_map(|costs| costs.of(test)));
            let n = counts(test).filter(|n| Some(*n) != common);
            let note = n.map_or_else(String::new, |(one, other)| format!("n = {one} and {other}"));
            Row { unit: scale.name, note, ..Row::of(title, None, Body::Cells(cells)) }
        });
        let rows: Vec<Row> = rows.collect();
        let empty = omitted(step.tests.len() - rows.len());
        let (first, second) = &self.rendered.names;
        let mut columns: Vec<Column> =
            [first, second, "change", "result"].map(|title| Column::new(title, "")).into();
        columns.extend(costs.iter().flat_map(Costs::columns));
        let n = common.map_or_else(String::new, |(one, other)| {
            let also =
                if rows.iter().any(|row| !row.note.is_empty()) { " unless stated" } else { "" };
            match one == other {
                true => format!(" of {} each{also}", plural(one, "repetition")),
                false => format!(" of {one} and {}{also}", plural(other, "repetition")),
            }
        });
        // The Hodges–Lehmann estimate (1963) is not the ratio of the two medians.
        let mut caption = vec![
            format!(
                "{first} and {second}: medians{n}; {}{empty}",
                directions(tests.iter().map(|(_, test, _)| test.metric))
            ),
            format!(
                "change: {second} relative to {first}, Hodges–Lehmann estimate [{} % confidence interval]",
                level(step)
            ),
        ];
        caption.extend(not_compared(&tests));
        (!rows.is_empty()).then(|| Table {
            id: format!("{}-tests", self.prefix),
            title: String::new(),
            caption,
            corner: "test",
            columns,
            rows,
        })
    }

    fn figure(&self) -> Option<Figure> {
        let (first, second) = &self.rendered.names;
        let row = |(name, test, mark): (String, &TestPair, Mark)| {
            let (change, interval) = phrases::change(test)?;
            let interval = interval.map(|own| (own.low * 100.0, own.high * 100.0));
            let shown = phrases::signed(phrases::change(test)?);
            let shown = shown.split(" [").next().unwrap_or_default();
            let shown = format!("{shown}  {}", mark.result(test));
            let class = mark.class();
            Some(ChangeRow { name, change: change * 100.0, interval, shown, class })
        };
        let rows: Vec<ChangeRow> =
            self.tests().into_iter().filter_map(row).take(ROWS_MAX).collect();
        let step = self.rendered.step;
        let title = format!("Change from {first} to {second}");
        let id = format!("{}-changes", self.prefix);
        let description = "Change of each test in percent; the numbers are in the table.";
        let chart = changes("change, %", self.margin * 100.0, &rows);
        let hidden = step.tests.len().saturating_sub(ROWS_MAX);
        let more = if hidden > 0 { format!(" {hidden} more in the table.") } else { String::new() };
        let caption = format!(
            "Marker: change; line: confidence interval; shaded: within ±{}.{more}",
            phrases::limit(self.margin)
        );
        let text = (title, description);
        let figure = Figure::new(Kind::Settings, id, chart, text, caption);
        (!rows.is_empty()).then_some(Figure { wide: true, ..figure })
    }

    /// Conditions that differ.
    fn conditions(&self) -> Vec<Block> {
        let differences = &self.rendered.step.conditions.differences;
        if self.extent == Extent::Mail {
            let line = |own: &Difference| {
                let change = phrases::values(own).join(" -> ");
                Item::named(format!("{} ({})", own.what, own.severity.name()), change)
            };
            let more = differences.len().saturating_sub(CONDITIONS_MAX);
            let more = (more > 0).then(|| Item::of(format!("and {more} more conditions")));
            let lines = differences.iter().take(CONDITIONS_MAX).map(line).chain(more);
            return Block::list(Style::Bullets, lines).into_iter().collect();
        }
        let row = |own: &Difference| {
            let aspect = own.aspect.map_or("", |aspect| aspect.name());
            let texts = std::iter::once(own.severity.name().to_owned());
            let texts = texts.chain(phrases::values(own));
            Row::texts(&own.what, texts.chain([aspect.to_owned()]))
        };
        let (first, second) = &self.rendered.names;
        let columns = ["severity", first, second, "aspect"];
        let table = Table::of_texts("condition", &columns, differences.iter().map(row).collect());
        (!differences.is_empty())
            .then_some(Block::Table(table, Layout::Records))
            .into_iter()
            .collect()
    }
}

/// Confidence level of the intervals of a comparison in percent, at least 95.
fn level(step: &Paired) -> String {
    let percent = crate::units::fixed(step.family.level.max(0.95) * 100.0, 2);
    percent.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Cells of one run only, with a hint if filesystems can be paired. A/A duplicates have no
/// counterpart and are not listed.
fn unpaired(cells: &[Unpaired]) -> Vec<Block> {
    let listed = cells.iter().filter(|own| own.reason != UnpairedReason::AaDuplicate);
    let item = |own: &Unpaired| Item::named(&own.name, own.reason.to_string());
    let renamed = |own: &Unpaired| matches!(own.reason, UnpairedReason::Filesystem(_));
    let hint = "hint: --pair A=B compares filesystem A of the first run with B of the second";
    let hint = cells.iter().any(renamed).then(|| Block::Paragraph(hint.into()));
    Block::list(Style::Bullets, listed.map(item)).into_iter().chain(hint).collect()
}

/// CPU time and write amplification of the tests of two runs.
struct Costs<'a> {
    runs: [SampleIndex<'a>; 2],
    /// Columns of [`COSTS`] with values of both runs in at least one test.
    shown: Vec<&'static (&'static str, &'static [Metric])>,
}

/// Titles of the further columns, each with its metrics in order of preference.
const COSTS: [(&str, &[Metric]); 2] = [
    ("CPU time per operation", &[Metric::AttributedCpuTimePerOp, Metric::SystemTimePerOp]),
    ("write amplification", &[Metric::WriteAmplification]),
];

impl<'a> Costs<'a> {
    fn new(runs: &[&'a RunRecord], at: usize, tests: &[TestPair]) -> Self {
        let runs = [SampleIndex::new(runs[at]), SampleIndex::new(runs[at + 1])];
        let mut costs = Self { runs, shown: Vec::new() };
        let known = |metrics: &[Metric]| tests.iter().any(|it| costs.cell(it, metrics).is_some());
        costs.shown = COSTS.iter().filter(|(_, metrics)| known(metrics)).collect();
        costs
    }

    fn columns(&self) -> impl Iterator<Item = Column> {
        self.shown.iter().map(|(title, _)| Column::new(*title, ""))
    }

    fn of(&self, test: &TestPair) -> impl Iterator<Item = TableCell> {
        let text = |metrics| self.cell(test, metrics).unwrap_or_else(|| "not measured".into());
        self.shown.iter().map(move |(_, metrics)| TableCell::Text(text(metrics)))
    }

    /// `3.31 -> 3.50 µs (+5.7 %)`.
    fn cell(&self, test: &TestPair, metrics: &[Metric]) -> Option<String> {
        metrics.iter().find_map(|metric| {
            let median = |cell, run: &SampleIndex| {
                Some(Summary::new(run.values(cell, &test.phase, *metric)).ok()?.median)
            };
            let one = median(test.first, &self.runs[0])?;
            let other = median(test.second, &self.runs[1])?;
            let scale = Scale::of(metric.spec().unit, [one, other].into_iter());
            let (before, after) = (scale.rough(one), scale.rough(other));
            let change = phrases::signed((other / one - 1.0, None));
            Some(format!("{before} -> {after} {} ({change})", scale.name))
        })
    }
}

/// Number of tests without values; empty without any.
fn omitted(tests: usize) -> String {
    match tests {
        0 => String::new(),
        1 => "; 1 test without values in both runs is omitted".into(),
        _ => format!("; {tests} tests without values in both runs are omitted"),
    }
}

/// Tests that are not compared by reason, the most frequent reason first.
fn not_compared(tests: &[(String, &TestPair, Mark)]) -> Vec<String> {
    // Messages of a warning have different values, so the code is the reason of several tests.
    let code = |withheld: &Withheld| match withheld {
        Withheld::Blocked { warning, .. } => warning.code().to_owned(),
        Withheld::NoValues { .. }
        | Withheld::Failed { .. }
        | Withheld::Differs { .. }
        | Withheld::Numbers(_) => withheld.to_string(),
    };
    let reasons = tests.iter().filter_map(|(title, test, _)| {
        let withheld = test.comparison.as_ref().err()?;
        Some((code(withheld), (title.as_str(), withheld)))
    });
    let mut reasons = grouped(reasons);
    reasons.sort_by_key(|(_, tests)| std::cmp::Reverse(tests.len()));
    let hidden = reasons.len().saturating_sub(REASONS_MAX);
    let text = |(code, tests): &(String, Vec<(&str, &Withheld)>)| match &tests[..] {
        [(title, withheld)] => format!("{title} is not compared: {withheld}"),
        tests => format!("{} tests are not compared: {code}", tests.len()),
    };
    let more =
        (hidden > 0).then(|| format!("{} (see --json)", plural(hidden as u64, "other reason")));
    reasons.iter().take(REASONS_MAX).map(text).chain(more).collect()
}
