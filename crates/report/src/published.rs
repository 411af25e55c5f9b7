//! Published results, built into the program: what others have measured and printed, to be read
//! beside a run of the same suite.
//!
//! The numbers are facts of the articles named in [`PUBLISHED`], kept as CSV in `published/` with
//! the digits they were printed with. They leave as tables and charts of their own, each labelled
//! as published and not measured by fslab. Beside measured numbers, and on one axis with them, they
//! stand only in [`crate::comparison::beside()`], labelled, which tells first what else differs and
//! gives no verdict, since neither machine, nor kernel, nor the exact work is the same. To add a
//! set of data: the CSV, its row in [`PUBLISHED`], and, for another layout, functions that make its
//! tables and charts.

pub(crate) mod audit;
pub(crate) mod beside;
mod bonnie;
mod csv;
mod figures;
mod iozone;
mod sets;
mod tasks;
mod trends;

use std::fmt::Write;

use askama::Template;
use serde_json::json;

use crate::{
    TerminalOptions,
    bonnie::{Format, Record, write},
    formats::{
        json::tables,
        markdown::{escaped, write_table},
    },
    html::{rendered, table_under},
    terminal::Page,
    view::Table,
};

pub use sets::PUBLISHED;

pub(crate) use figures::Drawn;
use figures::Group;

/// What ends the name of every published set of data on the command line, so that none can be taken
/// for a run file.
pub const SUFFIX: &str = "@published";

/// Heading of how what was measured was made.
const CONFIGURATIONS: &str = "Configurations";

/// Heading of what the numbers support.
const SAID: &str = "What the numbers support";

/// Heading of what they do not.
const OPEN: &str = "Not told";

/// What stands at every table.
const LABEL: &str = "Published, not measured by fslab";

/// A set of published results and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Its name without [`SUFFIX`].
    pub name: &'static str,
    /// The suite whose runs it may be read beside.
    pub suite: &'static str,
    /// The article.
    pub article: &'static str,
    /// Who wrote it.
    pub author: &'static str,
    /// Where and when it was published, and where the numbers were taken from.
    pub source: &'static str,
    /// The machine and its disk.
    pub machine: &'static str,
    /// The kernel and its distribution.
    pub kernel: &'static str,
    /// How it was measured, as far as the article says.
    pub method: &'static str,
    /// What each number is a summary of.
    pub summary: &'static str,
    /// What is doubtful about the numbers.
    pub doubts: &'static [&'static str],
    /// What differs from other measurements, each thing by a word that all sets have.
    conditions: &'static [(&'static str, &'static str)],
    /// The data, with a header line.
    data: &'static str,
    /// Makes the tables.
    tables: fn(&Published) -> Vec<Table>,
    /// What was measured and how it was made, by name; none where the method says it all.
    configurations: fn(&Published) -> Vec<(String, String)>,
    /// Charts, sentences, and marks at numbers.
    extras: fn(&Published) -> Extras,
}

/// What a set has beside its tables.
#[derive(Clone, Debug, Default)]
struct Extras {
    /// What the numbers support.
    claims: Vec<String>,
    /// What they do not, and why.
    withheld: Vec<String>,
    /// What the marks at numbers mean, in the order of the audit.
    doubtful: Vec<Doubtful>,
    /// Charts by heading.
    groups: Vec<Group>,
    /// Where to read on about the marks; empty without any.
    note: String,
}

impl Extras {
    /// Charts alone.
    fn of(groups: Vec<Group>) -> Self {
        Self { groups, ..Self::default() }
    }

    /// The doubts with their marks in lines; the first of each mark may be linked to.
    fn lines(&self) -> Vec<Line<'_>> {
        let mut seen: Vec<&str> = Vec::new();
        let line = |doubtful: &Doubtful| {
            let first = !seen.contains(&doubtful.code);
            seen.push(doubtful.code);
            let anchor = if first { doubtful.code } else { "" };
            (anchor, doubtful.code, doubtful.text.clone())
        };
        let mut lines = Vec::new();
        lines.extend(self.doubtful.iter().map(line));
        lines.into_iter().map(|(anchor, code, text)| Line { anchor, code, text }).collect()
    }
}

/// A doubt in a list.
struct Line<'a> {
    /// An anchor, or empty.
    anchor: &'a str,
    code: &'a str,
    text: String,
}

/// A doubt about a number.
#[derive(Clone, Debug, PartialEq)]
struct Doubtful {
    /// What stands at the number.
    code: &'static str,
    text: String,
}

/// A set of data by its name, with or without [`SUFFIX`].
pub fn published(name: &str) -> Option<&'static Published> {
    let name = name.strip_suffix(SUFFIX).unwrap_or(name);
    PUBLISHED.iter().find(|set| set.name == name)
}

/// Charts of two editions of the study of everyday tasks.
pub(crate) fn edition_charts(one: &Published, other: &Published) -> Vec<Drawn> {
    vec![figures::editions(one, other), figures::totals(one, Some(other))]
}

/// Names, with their suffix, of all that may be read beside runs of a suite.
pub(crate) fn of_suite(suite: &str) -> Vec<String> {
    let sets = PUBLISHED.iter().filter(|set| set.suite == suite);
    sets.map(Published::full_name).collect()
}

/// Where to find the published results of these names; `None` if there are none.
pub(crate) fn note(names: &[String]) -> Option<String> {
    let commands: Vec<String> = names.iter().map(|name| format!("fslab report {name}")).collect();
    (!commands.is_empty()).then(|| {
        format!(
            "Published results of the same work, from other machines and kernels, so that they \
             share no table and no axis with these: {}. Only fslab compare sets them beside a run, \
             labelled, to be read and not to be judged.",
            commands.join(", ")
        )
    })
}

#[derive(Template)]
#[template(path = "published.html")]
struct PublishedPage<'a> {
    set: &'a Published,
    label: &'static str,
    facts: Vec<(&'static str, String)>,
    tables: Vec<String>,
    configurations: Vec<(String, String)>,
    extras: &'a Extras,
    said: &'static str,
    open: &'static str,
    marks: Vec<Line<'a>>,
    style: &'static str,
}

impl Published {
    /// What may be done with it, for a list.
    pub fn uses(&self) -> String {
        let audited = audit::AUDITED.iter().any(|set| set.name == self.name);
        let audit = if audited { ", audit" } else { "" };
        format!("report, compare{audit}")
    }

    /// How many numbers it has.
    pub fn numbers(&self) -> usize {
        match self.suite {
            "bonnie" => bonnie::measured(self.data).len() * crate::bonnie::PHASES.len() * 3,
            _ => self.data.lines().count().saturating_sub(1),
        }
    }

    /// Its name on the command line.
    pub fn full_name(&self) -> String {
        format!("{}{SUFFIX}", self.name)
    }

    /// What stands at every table: that it was not measured here, and what its numbers are.
    fn label(&self) -> String {
        format!("{LABEL}; {}", self.summary)
    }

    /// Where it comes from, under what names it is told.
    fn provenance(&self) -> Vec<(&'static str, String)> {
        vec![
            ("article", format!("{}, {}", self.article, self.author)),
            ("source", self.source.into()),
            ("machine", self.machine.into()),
            ("kernel", self.kernel.into()),
            ("method", self.method.into()),
        ]
    }

    /// Its tables, each with its label.
    fn labelled(&self) -> Vec<Table> {
        let mut tables = (self.tables)(self);
        tables.iter_mut().for_each(|table| table.caption.push(self.label()));
        tables
    }

    /// For a terminal.
    pub fn terminal(&self, options: &TerminalOptions) -> String {
        let mut page = Page::new(options);
        let title = format!("{} ({})", self.article, self.name);
        match title.chars().count() <= options.width.max(60) {
            true => {
                let title = page.styled("1", &title);
                page.line(&title);
            }
            false => page.wrapped("", "  ", &title),
        }
        page.wrapped("", "  ", &format!("{}.", self.label()));
        for (name, value) in self.provenance() {
            page.wrapped(&format!("{name}: "), "  ", &value);
        }
        for table in self.labelled() {
            // Tables without intervals need but one line for each number.
            match table.values().any(|value| value.interval.is_some() || !value.codes.is_empty()) {
                true => page.table(&table),
                false => page.plain(&table),
            }
        }
        let extras = (self.extras)(self);
        for (heading, lines) in [(SAID, &extras.claims), (OPEN, &extras.withheld)] {
            if !lines.is_empty() {
                page.heading(heading);
            }
            lines.iter().for_each(|line| page.wrapped("- ", "  ", line));
        }
        let configurations = (self.configurations)(self);
        if !configurations.is_empty() {
            page.heading(CONFIGURATIONS);
        }
        for (name, commands) in configurations {
            page.wrapped("- ", "  ", &format!("{name}: {commands}"));
        }
        page.heading("Doubtful");
        for doubt in self.doubts {
            page.wrapped("- ", "  ", doubt);
        }
        for Doubtful { code, text } in &extras.doubtful {
            page.wrapped(&format!("- {code} "), "  ", text);
        }
        page.wrapped("", "", &extras.note);
        page.text
    }

    /// As GitHub-flavored Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {} ({})\n\n{}.\n\n", self.article, self.name, self.label());
        for (name, value) in self.provenance() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- {name}: {}", escaped(&value));
        }
        text.push('\n');
        for table in self.labelled() {
            write_table(&mut text, &table, "##");
        }
        let extras = (self.extras)(self);
        for (heading, lines) in [(SAID, &extras.claims), (OPEN, &extras.withheld)] {
            if !lines.is_empty() {
                let _ = writeln!(text, "## {heading}\n");
                lines.iter().for_each(|line| text.push_str(&format!("- {}\n", escaped(line))));
                text.push('\n');
            }
        }
        let configurations = (self.configurations)(self);
        if !configurations.is_empty() {
            let _ = writeln!(text, "## {CONFIGURATIONS}\n");
        }
        for (name, commands) in &configurations {
            let _ = writeln!(text, "- {}: {}", escaped(name), escaped(commands));
        }
        text.push_str(if configurations.is_empty() { "" } else { "\n" });
        text.push_str("## Doubtful\n\n");
        for doubt in self.doubts {
            let _ = writeln!(text, "- {}", escaped(doubt));
        }
        for Doubtful { code, text: doubt } in &extras.doubtful {
            let _ = writeln!(text, "- {code} {}", escaped(doubt));
        }
        if !extras.note.is_empty() {
            let _ = writeln!(text, "\n{}", escaped(&extras.note));
        }
        text
    }

    /// As one HTML file that loads nothing.
    pub fn html(&self) -> String {
        let label = self.label();
        let table = |table: &Table| table_under(table, &label, false);
        let extras = (self.extras)(self);
        let page = PublishedPage {
            set: self,
            label: LABEL,
            facts: self.provenance(),
            tables: (self.tables)(self).iter().map(table).collect(),
            configurations: (self.configurations)(self),
            extras: &extras,
            said: SAID,
            open: OPEN,
            marks: extras.lines(),
            style: include_str!("../templates/style.css"),
        };
        rendered(&page) + "\n"
    }

    /// As JSON: values in base units, and where they come from.
    pub fn json(&self) -> String {
        let provenance: serde_json::Map<String, serde_json::Value> = self
            .provenance()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let extras = (self.extras)(self);
        let doubtful =
            extras.doubtful.iter().map(|own| json!({"code": own.code, "text": own.text}));
        let doubtful: serde_json::Value = doubtful.collect();
        let document = json!({
            "published": self.name,
            "measured_by_fslab": false,
            "suite": self.suite,
            "summary": self.summary,
            "provenance": provenance,
            "configurations": (self.configurations)(self),
            "doubts": self.doubts,
            "claims": extras.claims,
            "withheld": extras.withheld,
            "doubtful": doubtful,
            "tables": tables(self.labelled().iter()),
        });
        format!("{document:#}\n")
    }

    /// All numbers in the schema that all sets share: one row for each, in the base units of a
    /// run's metrics, with n, deviation, and the text that was printed.
    pub fn csv(&self) -> String {
        csv::csv(self)
    }

    /// Its records of bonnie++ in a layout, in the order of the study; as they were printed where
    /// they were printed in it. `None` for a set of another suite.
    pub fn bonnie(&self, format: Format) -> Option<String> {
        let line = |own: bonnie::Measured| match own.record.format == format {
            true => own.printed + "\n",
            false => write(&Record { format, ..own.record }) + "\n",
        };
        let measured = || bonnie::measured(self.data).into_iter();
        (self.suite == "bonnie").then(|| measured().map(line).collect())
    }

    /// All its charts, in the order of its page.
    pub(crate) fn charts(&self) -> Vec<Drawn> {
        let groups = (self.extras)(self).groups.into_iter();
        groups.flat_map(|group| group.first.into_iter().chain(group.rest)).collect()
    }
}

#[cfg(test)]
mod tests;
