//! Results of a crosscheck: speeds of two load generators that performed the same operations. They
//! are the output of `fslab crosscheck`, and a section in the report of a run.

use analysis::{
    crosscheck::{self, Compared, Crosschecked, Difference, Verdict},
    paired,
};
use model::{Metric, RunRecord, metric::Unit};
use serde_json::json;

use crate::{
    document::{
        Block, Document, Layout, Row, Section, Table,
        terminal::{TerminalOptions, terminal},
    },
    units::{alone, metric_label, one_line, percent},
};

/// Programs of a crosscheck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Programs {
    /// fslab with its version.
    pub fslab: String,
    /// Version of fio, such as `fio-3.33`.
    pub fio: String,
}

impl Programs {
    /// Programs of a run.
    pub fn of(record: &RunRecord) -> Self {
        let fslab = record.info.program.split(" (").next().unwrap_or_default().to_owned();
        let fio = record.environment.get(crosscheck::FIO_VERSION).unwrap_or("fio").to_owned();
        Self { fslab, fio }
    }
}

/// Section of the report of a run in which fslab and fio performed the same operations, and its
/// result in one sentence.
pub(crate) fn of_run(record: &RunRecord) -> Option<(String, Section)> {
    let tests = crosscheck::crosscheck(record, crosscheck::MARGIN);
    if tests.is_empty() {
        return None;
    }
    let Programs { fslab, fio } = Programs::of(record);
    let mut section = Section::new("crosscheck", format!("{fslab} and {fio}"), Vec::new());
    section.blocks.extend(summary(record, &tests).into_iter().flat_map(|own| own.blocks));
    section
        .sections
        .extend(tests.iter().enumerate().map(|(at, own)| self::section(record, at, own)));
    Some((format!("{fslab} and {fio}: {}", results(&tests)), section))
}

/// Formats the results for a terminal.
pub fn crosscheck(
    record: &RunRecord,
    tests: &[Crosschecked],
    programs: &Programs,
    options: &TerminalOptions,
) -> String {
    let details = tests.iter().enumerate().map(|(at, test)| section(record, at, test));
    let sections = summary(record, tests).into_iter().chain(details);
    terminal(
        &Document {
            title: one_line(&format!(
                "{}, {} and {}",
                record.info.title, programs.fslab, programs.fio
            )),
            headline: headline(tests),
            sections: sections.collect(),
            ..Document::default()
        },
        options,
    )
}

/// Results as one JSON object.
pub fn crosscheck_json(record: &RunRecord, tests: &[Crosschecked], programs: &Programs) -> String {
    let all = tests.iter().map(|test| {
        let compared = test.comparisons.iter().map(|compared| {
            let interval = compared.agreement.interval;
            json!({
                "metric": compared.metric.name(),
                "ratio": compared.agreement.ratio.0,
                "interval": interval.map(|own| json!([own.low, own.high])),
                "level": paired::LEVEL,
                "margin": compared.margin.0,
                "verdict": speed(compared.agreement.verdict),
                "pairs_needed": needed(compared.agreement.verdict),
            })
        });
        let differences = test.differences.iter().map(|difference| {
            let [fslab, fio] = difference.values;
            let quantity = difference.quantity;
            json!({
                "repetition": difference.repetition,
                "quantity": quantity,
                "fslab": fslab,
                "fio": fio,
            })
        });
        let medians = test.medians.iter().map(|(metric, [fslab, fio])| {
            (metric.name().to_owned(), json!({ "fslab": fslab, "fio": fio }))
        });
        json!({
            "workload": record.cells[test.cells[0]].label,
            "pairs": test.pairs,
            "verdict": word(test.verdict()),
            "comparisons": compared.collect::<Vec<_>>(),
            "different_work": differences.collect::<Vec<_>>(),
            "loop_bound": test.loop_bound.map(|[operation, loop_alone]| json!({
                "operation_ns": operation,
                "loop_ns": loop_alone,
            })),
            "medians": medians.collect::<serde_json::Map<_, _>>(),
        })
    });
    let object = json!({
        "schema": "fslab-crosscheck-1",
        "fslab": programs.fslab,
        "fio": programs.fio,
        "tests": all.collect::<Vec<_>>(),
    });
    format!("{object:#}")
}

fn headline(tests: &[Crosschecked]) -> String {
    match tests.len() {
        1 => format!("Result: {}.", results(tests)),
        all => format!("Results of {all} tests: {}.", results(tests)),
    }
}

/// Numbers of tests by verdict, or the verdict of all tests.
fn results(tests: &[Crosschecked]) -> String {
    let of = |verdict: Verdict| tests.iter().filter(|test| test.verdict() == verdict).count();
    let counts = [
        (of(Verdict::Equivalent), "equivalent"),
        (of(Verdict::Different), "different"),
        (of(Verdict::DifferentWork), "not the same work"),
        (of(Verdict::Inconclusive), "inconclusive"),
        (of(Verdict::LoopBound), "bound by the load generators"),
    ];
    let mut found = counts.iter().filter(|(count, _)| *count > 0);
    match (found.next(), found.next()) {
        (Some((_, verdict)), None) => (*verdict).to_owned(),
        _ => {
            let texts = counts.iter().filter(|(count, _)| *count > 0);
            let texts: Vec<String> =
                texts.map(|(count, verdict)| format!("{count} {verdict}")).collect();
            texts.join(", ")
        }
    }
}

/// Ratios of all tests, if there are several.
fn summary(record: &RunRecord, tests: &[Crosschecked]) -> Option<Section> {
    if tests.len() < 2 {
        return None;
    }
    let ratio = |compared: &Compared| format!("{:.3}", compared.agreement.ratio.0);
    let rows = tests.iter().map(|test| {
        let of = |metric| test.comparisons.iter().find(|compared| compared.metric == metric);
        let percentile = |metric| of(metric).map_or_else(|| "–".to_owned(), ratio);
        let rate = test.comparisons.first();
        let interval = rate.and_then(|compared| compared.agreement.interval);
        let texts = [
            rate.map_or_else(|| "–".to_owned(), ratio),
            interval
                .map_or_else(|| "–".to_owned(), |own| format!("{:.3} to {:.3}", own.low, own.high)),
            percentile(Metric::LatencyP50),
            percentile(Metric::LatencyP99),
            word(test.verdict()).to_owned(),
        ];
        Row::texts(one_line(&record.cells[test.cells[0]].label), texts)
    });
    let columns = ["rate", "90 % interval", "p50", "p99", "verdict"];
    let table = Table::of_texts("fslab ÷ fio", &columns, rows.collect());
    let blocks = vec![Block::Table(table, Layout::Bare)];
    Some(Section::new("crosscheck", format!("{} tests", tests.len()), blocks))
}

fn section(record: &RunRecord, at: usize, test: &Crosschecked) -> Section {
    let title = format!("{}  {} pairs", record.cells[test.cells[0]].label, test.pairs);
    let mut blocks = vec![Block::Paragraph(work(test))];
    if let Some([operation, loop_alone]) = test.loop_bound {
        let [operation, loop_alone] =
            [operation, loop_alone].map(|time| alone(Unit::Nanoseconds, time));
        blocks.push(Block::Paragraph(format!(
            "Bound by the load generators: an operation takes {operation}, the slower loop alone \
             {loop_alone}. The rates compare programs, not filesystems. Use larger operations, or \
             direct I/O."
        )));
    }
    if !test.comparisons.is_empty() {
        let rows = test.comparisons.iter().map(|compared| comparison(test, compared));
        let columns = ["fslab ÷ fio", "90 % interval", "margin", "verdict"];
        let table = Table::of_texts("", &columns, rows.collect());
        blocks.push(Block::Table(table, Layout::Bare));
    }
    if !test.medians.is_empty() {
        let row = |(metric, values): &(Metric, [f64; 2])| {
            Row::texts(metric_label(*metric), values.map(|value| alone(metric.spec().unit, value)))
        };
        let rows = test.medians.iter().map(row).collect();
        let table = Table::of_texts("median", &["fslab", "fio"], rows);
        blocks.push(Block::Table(table, Layout::Bare));
    }
    Section::new(format!("crosscheck-{at}"), one_line(&title), blocks)
}

/// Statement about the work of both programs.
fn work(test: &Crosschecked) -> String {
    let Some(Difference { repetition, quantity, values: [fslab, fio] }) = test.differences.first()
    else {
        return "Work: the same in all pairs (operations, bytes per operation, sync calls).".into();
    };
    let others = match test.differences.len() {
        1 => String::new(),
        all => format!("; {} more differences", all - 1),
    };
    format!(
        "Not the same work: in repetition {}, {quantity}: fslab {fslab:.0}, fio {fio:.0}{others}. \
         Speeds are not compared.",
        repetition + 1
    )
}

fn comparison(test: &Crosschecked, compared: &Compared) -> Row {
    let Compared { metric, margin, agreement } = compared;
    let verdict = match test.verdict() {
        Verdict::DifferentWork => "not compared".to_owned(),
        Verdict::LoopBound => "withheld".to_owned(),
        Verdict::Equivalent | Verdict::Different | Verdict::Inconclusive => {
            let needed = needed(agreement.verdict);
            let needed = needed.map(|pairs| format!(" (about {pairs} pairs needed)"));
            format!("{}{}", speed(agreement.verdict), needed.unwrap_or_default())
        }
    };
    let interval = agreement.interval.map_or_else(
        || "at least 5 pairs needed".to_owned(),
        |own| format!("{:.3} to {:.3}", own.low, own.high),
    );
    Row::texts(
        metric_label(*metric),
        [format!("{:.3}", agreement.ratio.0), interval, percent(margin.0), verdict],
    )
}

fn needed(verdict: paired::Verdict) -> Option<u32> {
    match verdict {
        paired::Verdict::Inconclusive { needed } => needed,
        paired::Verdict::Equivalent | paired::Verdict::Different => None,
    }
}

fn speed(verdict: paired::Verdict) -> &'static str {
    match verdict {
        paired::Verdict::Equivalent => "equivalent",
        paired::Verdict::Different => "different",
        paired::Verdict::Inconclusive { .. } => "inconclusive",
    }
}

/// Name of a verdict in JSON.
fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Equivalent => "equivalent",
        Verdict::Different => "different",
        Verdict::DifferentWork => "different-work",
        Verdict::Inconclusive => "inconclusive",
        Verdict::LoopBound => "loop-bound",
    }
}
