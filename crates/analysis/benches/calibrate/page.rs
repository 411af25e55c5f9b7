//! Markdown page of the results.

use std::fmt::Write;

/// Section of the page.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    /// Description of the simulation and of the table.
    pub(crate) intro: String,
    pub(crate) tables: Vec<Table>,
}

/// Table; the first column names the case.
pub(crate) struct Table {
    /// Text above the table; may be empty.
    pub(crate) intro: &'static str,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// Bounds and whether they hold; empty without bounds.
    pub(crate) held: String,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        let header = header.iter().map(|cell| (*cell).to_owned()).collect();
        Self { intro: "", header, rows: Vec::new(), held: String::new() }
    }

    /// Sets the text above the table.
    pub(crate) fn with_intro(self, intro: &'static str) -> Self {
        Self { intro, ..self }
    }
}

/// Fraction in percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Smallest and largest of some fractions, compared with bounds.
pub(crate) fn held(what: &str, shares: &[f64], least: f64, most: f64) -> String {
    let low = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let high = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let inside = shares.iter().filter(|share| (least..=most).contains(*share)).count();
    let asked = match (least > 0.0, most < 1.0) {
        (true, true) => format!("{:.0} to {}", least * 100.0, percent(most)),
        (true, false) => format!("at least {}", percent(least)),
        (false, _) => format!("at most {}", percent(most)),
    };
    format!(
        "{what}: {} to {}. The requirement, {asked}, is met by {inside} of {} values.",
        percent(low),
        percent(high),
        shares.len()
    )
}

/// Page with the sections in order.
pub(crate) fn page(runs: u32, sections: &[Section]) -> String {
    let intro = format!(
        "Written by `make calibrate`; do not edit. This page shows how often the statistics of \
         fslab are wrong. Cells with known rates and distributions are simulated, and go through \
         the same rounds, stopping rule, intervals, and tests as measured cells. All seeds are \
         fixed, so every machine reproduces the page exactly. Each rate comes from {runs} \
         simulated runs unless stated otherwise. The standard error of a rate is {:.1} points at \
         5 % and at 95 %, and {:.1} points at 50 %.\n\n\
         The simulated values have one of these distributions: normal or log-normal, with the \
         stated standard deviation; *bimodal*, where one trial in five is 15 % below the others; \
         *left tail*, where an exponential variable of mean 4 % is subtracted; *heavy tail*, \
         Student's t with 3 degrees of freedom times 2 %. The machine is *stable*, *drifts* by 6 % \
         in ten rounds, or performs a *random walk* of 3 % in ten rounds.",
        error(0.05, runs),
        error(0.5, runs)
    );
    let mut text = format!("# Error rates of the statistics\n\n{}\n", wrapped(&intro));
    for section in sections {
        // Writing to a string cannot fail, here and below.
        let _ = write!(text, "\n## {}\n\n{}\n", section.title, wrapped(&section.intro));
        for table in &section.tables {
            text.push('\n');
            if !table.intro.is_empty() {
                let _ = write!(text, "{}\n\n", wrapped(table.intro));
            }
            let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
            text.push_str(&line(&table.header));
            let rule = |at: usize| if at == 0 { "---".to_owned() } else { "---:".to_owned() };
            text.push_str(&line(&(0..table.header.len()).map(rule).collect::<Vec<_>>()));
            table.rows.iter().for_each(|row| text.push_str(&line(row)));
            if !table.held.is_empty() {
                let _ = write!(text, "\n{}\n", wrapped(&table.held));
            }
        }
    }
    text
}

/// Standard error of a fraction, in points.
fn error(share: f64, runs: u32) -> f64 {
    (share * (1.0 - share) / f64::from(runs)).sqrt() * 100.0
}

/// Text wrapped at 100 characters.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    for paragraph in text.split("\n\n") {
        if !lines.is_empty() {
            lines.push_str("\n\n");
        }
        let mut length = 0;
        for word in paragraph.split_whitespace() {
            let more = word.chars().count() + 1;
            if length > 0 && length + more > 101 {
                lines.push('\n');
                length = 0;
            } else if length > 0 {
                lines.push(' ');
            }
            length += more;
            lines.push_str(word);
        }
    }
    lines
}
