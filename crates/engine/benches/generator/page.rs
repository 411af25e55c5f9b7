//! The page that says what the generator costs, written from one run.

use analysis::Summary;

/// One comparison.
pub(crate) struct Row {
    /// What is done.
    pub(crate) what: String,
    /// With whom we are compared.
    pub(crate) other: String,
    /// The same quotient for each round: our operations per second over theirs.
    pub(crate) ratios: Vec<f64>,
    /// Nanoseconds for one operation: ours and theirs, medians.
    pub(crate) nanos: (f64, f64),
    /// The least ratio that we ask of ourselves, if any.
    pub(crate) least: Option<f64>,
}

/// What the page tells besides ratios.
pub(crate) struct Facts {
    /// Lines about the conditions.
    pub(crate) conditions: Vec<String>,
    /// Median cost of a clock read, in nanoseconds.
    pub(crate) clock: f64,
    /// Nanoseconds for one operation on the null engine, median.
    pub(crate) null: f64,
    /// Paragraphs about memory and processes.
    pub(crate) findings: Vec<String>,
    /// Many files.
    pub(crate) metadata: Section,
    /// Load files.
    pub(crate) replays: Section,
}

/// Comparisons of one kind, with what is to be said about them.
pub(crate) struct Section {
    /// The comparisons.
    pub(crate) rows: Vec<Row>,
    /// What was compared how, and what else was found.
    pub(crate) paragraphs: Vec<String>,
}

/// Median and interval of positive values.
pub(crate) fn summary(values: &[f64]) -> Summary {
    Summary::new(values).expect("rates are positive numbers")
}

fn ratio(row: &Row) -> (String, &'static str) {
    let summary = summary(&row.ratios);
    let Some(interval) = summary.interval else {
        return (format!("{:.3}", summary.median), "no interval");
    };
    let verdict = match row.least {
        None => "",
        Some(least) if interval.low >= least => "yes",
        Some(least) if summary.median >= least => "yes, within the noise",
        Some(_) => "**no**",
    };
    (format!("{:.3} ({:.3} to {:.3})", summary.median, interval.low, interval.high), verdict)
}

/// The page.
pub(crate) fn render(rows: &[Row], facts: &Facts) -> String {
    let mut page = String::from(HEAD);
    for line in &facts.conditions {
        page += &format!("- {line}\n");
    }
    page += RATIOS;
    page += &table(rows);
    let bound = 2.0 * facts.clock + 20.0;
    let held = if facts.null <= bound { "holds" } else { "does **not** hold" };
    page += &format!(
        "\n## The loop alone\n\nOn the null engine one operation takes {:.1} ns, everything \
         counted; one read of the clock\ntakes {:.1} ns. Two reads and 20 ns would be {bound:.1} \
         ns: the bound {held}.\n",
        facts.null, facts.clock,
    );
    for finding in &facts.findings {
        page += &format!("\n{}\n", wrapped(finding));
    }
    page += &section("Metadata", &facts.metadata);
    page += &section("Replays", &facts.replays);
    page += TAIL;
    page
}

/// A section.
pub(crate) fn section(title: &str, section: &Section) -> String {
    let mut text = format!("\n## {title}\n");
    let mut paragraphs = section.paragraphs.iter();
    text.extend(paragraphs.next().map(|first| format!("\n{}\n", wrapped(first))));
    text += "\n";
    text += &table(&section.rows);
    text.extend(paragraphs.map(|paragraph| format!("\n{}\n", wrapped(paragraph))));
    text
}

fn table(rows: &[Row]) -> String {
    let mut table = String::from(COLUMNS);
    for row in rows {
        let (text, verdict) = ratio(row);
        let (ours, theirs) = row.nanos;
        table += &format!(
            "| {} | {} | {ours:.0} | {theirs:.0} | {text} | {} | {verdict} |\n",
            row.what,
            row.other,
            row.least.map(|least| format!("{least:.2}")).unwrap_or_default(),
        );
    }
    table
}

/// The same with lines of at most 100 columns; a paragraph of its own stays one.
fn wrapped(text: &str) -> String {
    let mut lines = Vec::new();
    for paragraph in text.split("\n\n") {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && line.len() + 1 + word.len() > 100 {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
        lines.extend([line, String::new()]);
    }
    lines.pop();
    lines.join("\n")
}

const HEAD: &str = "\
# What the generator costs

Written by `make bench`; do not edit. A load generator that is slower than what it measures measures
itself. This page compares ours with a *bare loop*, the least code that makes the same calls, and
with fio as its users run it, each in a thread, all in one run on one machine, in turn (A B C, A B
C …), so that what disturbs one disturbs all. Absolute times are this machine's; the ratios travel
better.

Conditions:

";

const RATIOS: &str = "
## Ratios

Our operations per second over theirs; above 1 we are faster. Median of the rounds with its 95 %
interval (Hettmansperger and Sheather). \"Held\" means that the whole interval is at or above what
we ask of ourselves; \"within the noise\", that its median is.

";

const COLUMNS: &str = "\
| operation | compared with | ours, ns | theirs, ns | ratio | asked | held |
|---|---|---|---|---|---|---|
";

const TAIL: &str = "
## How it stays cheap

- Everything is decided before the clock starts; the loop is compiled once for each I/O engine, and
  the branches that are left go the same way every time.
- A synchronous operation costs one read of the clock: where one ends, the next begins. A queue
  needs two for a whole batch.
- A histogram is one addition in an array of 7424 counters, with at most 0.4 % error; the series
  over time is touched once a millisecond.
- What is written is filled once, before the clock; each 4 KiB gets a header of 32 bytes whose
  checksum is two multiplications (`crates/engine/src/payload.rs`).
- No allocation, lock, division, or floating point inside; a test with a counting allocator holds
  the first (`crates/engine/tests/allocations.rs`).

What is left is measured before each phase: the same loop on the null engine. A result says which
share of the time of an operation the generator takes, and warns (W-GENBOUND) above 5 %.
";
