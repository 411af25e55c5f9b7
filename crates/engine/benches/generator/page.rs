//! Page on the load generator overhead, written from one run.

use analysis::Summary;

/// Comparison with another program.
pub(crate) struct Row {
    /// Operation.
    pub(crate) item: String,
    /// Other program.
    pub(crate) other: String,
    /// Ratio per round: operations per second of fslab over those of the other program.
    pub(crate) ratios: Vec<f64>,
    /// Median nanoseconds per operation of fslab and of the other program.
    pub(crate) nanos: (f64, f64),
    /// Required ratio, if any.
    pub(crate) least: Option<f64>,
}

/// Facts of the page besides ratios.
pub(crate) struct Facts {
    /// Conditions, one per line.
    pub(crate) conditions: Vec<String>,
    /// Median cost of a clock read in nanoseconds.
    pub(crate) clock: f64,
    /// Median nanoseconds per operation on the null engine.
    pub(crate) null: f64,
    /// Paragraphs on memory and processes.
    pub(crate) findings: Vec<String>,
    /// Comparisons with many files.
    pub(crate) metadata: Section,
    /// Comparisons of replays.
    pub(crate) replays: Section,
    /// Time that recording adds.
    pub(crate) recordings: Section,
}

/// Comparisons of one kind, with paragraphs on them.
pub(crate) struct Section {
    /// Comparisons.
    pub(crate) rows: Vec<Row>,
    /// Setup, then other results.
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

/// Renders the page.
pub(crate) fn render(rows: &[Row], facts: &Facts) -> String {
    let mut page = String::from(HEAD);
    for line in &facts.conditions {
        page += &format!("- {line}\n");
    }
    page += RATIOS;
    page += &table(rows);
    let bound = 2.0 * facts.clock + 20.0;
    let held = if facts.null <= bound { "is met" } else { "is **not** met" };
    page += &format!(
        "\n## Null engine\n\nThe null engine makes no system calls. An operation takes {:.1} ns \
         on it, including all counters.\nA clock read takes {:.1} ns. The requirement, at most \
         two clock reads and 20 ns ({bound:.1} ns), {held}.\n",
        facts.null, facts.clock,
    );
    for finding in &facts.findings {
        page += &format!("\n{}\n", wrapped(finding));
    }
    page += &section("Metadata", &facts.metadata);
    page += &section("Replays", &facts.replays);
    page += &section("Recordings", &facts.recordings);
    page += TAIL;
    page
}

/// Renders a section.
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
            row.item,
            row.other,
            row.least.map(|least| format!("{least:.2}")).unwrap_or_default(),
        );
    }
    table
}

/// Wraps lines at 100 columns; a paragraph with line breaks is unchanged.
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
# Load generator overhead

Written by `make bench`; do not edit. A load generator that is slower than the measured operations
measures itself. This page shows how much time fslab itself needs per operation. fslab is compared
with a *bare loop*, the minimal code that makes the same calls, and with fio with its usual options.
Each of them uses one thread. They were measured on the same machine in turn (A B C, A B C …), so
that disturbances affect all of them. Times and ratios depend on the CPU.

Conditions:

";

const RATIOS: &str = "
## Ratios

The ratio is the operations per second of fslab divided by those of the other program. Above 1,
fslab is faster. The table shows the median of the rounds with its 95 % confidence interval
(Hettmansperger and Sheather). \"yes\" means that the whole interval is at or above the required
ratio. \"yes, within the noise\" means that only the median is at or above this ratio.

";

const COLUMNS: &str = "\
| operation | compared with | fslab, ns | other, ns | ratio | required | met |
|---|---|---|---|---|---|---|
";

const TAIL: &str = "
## Implementation

- All decisions are made before the measurement starts. The loop is compiled once per I/O engine,
  and the remaining branches are predictable.
- A synchronous operation needs one clock read, because the end of an operation is the start of the
  next. A queue needs two clock reads per batch.
- Recording a latency is one addition in an array of 7424 counters, with an error of at most 0.4 %.
  The time series is updated once per millisecond.
- Written data is generated before the measurement starts. During the measurement, each 4 KiB get a
  header of 32 bytes, whose checksum takes two multiplications (`crates/engine/src/payload.rs`).
- The loop contains no allocation, lock, division, or floating-point arithmetic. A test with a
  counting allocator verifies that it does not allocate (`crates/engine/tests/allocations.rs`).

Before a trial, fslab measures the remaining overhead by running the loop of each phase on the null
engine. The result contains the overhead as a fraction of the time of an operation. If it exceeds
5 %, the result has the warning `generator-bound`.
";
