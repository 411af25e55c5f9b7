//! What is found, as sections of a page of Markdown.

use std::fmt::Write;

/// A part of the page.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    /// What was simulated, and how to read the table.
    pub(crate) intro: String,
    pub(crate) tables: Vec<Table>,
}

/// A table; the first column names what the row is about.
pub(crate) struct Table {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
    /// What was asked for and whether it held; empty where nothing was.
    pub(crate) held: String,
}

impl Table {
    pub(crate) fn new(header: &[&str]) -> Self {
        let header = header.iter().map(|cell| (*cell).to_owned()).collect();
        Self { header, rows: Vec::new(), held: String::new() }
    }
}

/// A share in percent.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The least and the most of some shares, against bounds that were asked for.
pub(crate) fn held(what: &str, shares: &[f64], least: f64, most: f64) -> String {
    let low = shares.iter().copied().fold(f64::INFINITY, f64::min);
    let high = shares.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let inside = shares.iter().filter(|share| (least..=most).contains(*share)).count();
    let asked = match (least > 0.0, most < 1.0) {
        (true, true) => format!("{:.0} to {}", least * 100.0, percent(most)),
        (true, false) => format!("{} or more", percent(least)),
        (false, _) => format!("{} or less", percent(most)),
    };
    format!(
        "{what}: {} to {}; {asked} was asked for, and {inside} of {} have it.",
        percent(low),
        percent(high),
        shares.len()
    )
}

/// The page; `sections` in their order.
pub(crate) fn page(runs: u32, sections: &[Section]) -> String {
    let mut text = format!(
        "# How often the statistics are right\n\n\
         Simulated runs with known truth: cells whose rates and scatter are given go through the \
         same blocks,\nstop rule, intervals, and verdicts as measured ones. Everything is drawn \
         from fixed seeds, so\n`make calibrate` writes this page anew, digit for digit, on any \
         machine. Each rate stands on {runs}\nsimulated runs unless it says otherwise: its \
         standard error is {:.1} points at 5 % and at 95 %, and\n{:.1} points at 50 %.\n\n\
         Shapes of scatter: normal; log-normal; *bimodal*, one trial in five 15 % below the \
         others; *left\ntail*, an exponential of mean 4 % taken off; *heavy tail*, Student's t \
         with 3 degrees of freedom\ntimes 2 %. The machine stands *still*, *drifts* by 6 % in ten \
         blocks, or *wanders* at random, 3 % in\nten blocks.\n",
        error(0.05, runs),
        error(0.5, runs)
    );
    for section in sections {
        // Writing to a string cannot fail, here and below.
        let _ = write!(text, "\n## {}\n\n{}\n", section.title, wrapped(&section.intro));
        for table in &section.tables {
            text.push('\n');
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

/// The standard error of a share, in points.
fn error(share: f64, runs: u32) -> f64 {
    (share * (1.0 - share) / f64::from(runs)).sqrt() * 100.0
}

/// Lines of at most 100 characters.
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
