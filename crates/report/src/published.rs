//! Built-in published results, for comparison with a run of the same suite.
//!
//! The numbers come from the articles named in [`PUBLISHED`]. They are stored as CSV in
//! `published/` with the printed digits, their sources in `published/sets.toml`. Their tables and
//! charts are separate and labeled as published, not measured by fslab. Only
//! [`crate::comparison::side_by_side()`] shows them next to measured numbers and on a common axis.
//! It lists the confounders first and makes no statistical test, because machine, kernel, and
//! workload differ. A new layout needs functions that create its numbers, tables, and charts.

pub(crate) mod audit;
pub(crate) mod bonnie;
mod figures;
pub(crate) mod iozone;
pub(crate) mod numbers;
pub(crate) mod tasks;
mod trends;

use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::json;

use crate::{
    bonnie::{Format, Record, write},
    document::{
        Block, Document, Figure, Item, Layout, Section, Style, Table, ValueCell,
        html::html,
        json::tables,
        markdown::markdown,
        terminal::{TerminalOptions, terminal},
    },
};

use figures::Group;

/// Suffix of published data sets on the command line, which distinguishes them from run files.
pub const SUFFIX: &str = "@published";

/// Label of every table.
const LABEL: &str = "Published, not measured by fslab";

/// Published data sets, oldest first.
pub static PUBLISHED: LazyLock<Vec<Published>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct Sets {
        set: Vec<Published>,
    }
    let sets = toml::from_str(include_str!("../published/sets.toml"));
    let Sets { set } = sets.unwrap_or_else(|error| unreachable!("built-in data: {error}"));
    set
});

/// Published data set with its source.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Name without [`SUFFIX`].
    pub name: String,
    /// Suite whose runs the data set can be compared with.
    pub suite: String,
    /// Title of the article.
    pub article: String,
    /// Author.
    pub author: String,
    /// Publication, date, and source of the numbers.
    pub source: String,
    /// Machine and disk.
    pub machine: String,
    /// Kernel and distribution.
    pub kernel: String,
    /// Method, as far as the article describes it.
    pub method: String,
    /// Statistic behind each number.
    pub summary: String,
    /// Notes on the quality of the data.
    pub quality_notes: Vec<String>,
    /// Conditions, by names that all sets share.
    pub(crate) conditions: Vec<(String, String)>,
}

/// Parts of a data set besides its tables.
#[derive(Clone, Debug, Default)]
struct Extras {
    /// Supported findings.
    findings: Vec<String>,
    /// Withheld findings with the reason.
    withheld: Vec<String>,
    /// Marked numbers, in the order of the audit.
    marked: Vec<MarkedNumber>,
    /// Charts by heading.
    groups: Vec<Group>,
    /// Text that explains the marks; empty if there are none.
    note: String,
}

impl Extras {
    /// Extras with charts only.
    fn of(groups: Vec<Group>) -> Self {
        Self { groups, ..Self::default() }
    }

    /// Marked numbers. The first one of each mark gets the anchor.
    fn marks(&self) -> impl Iterator<Item = Item> {
        let first = |at: usize, code: &str| self.marked[..at].iter().all(|own| own.code != code);
        self.marked.iter().enumerate().map(move |(at, MarkedNumber { code, text })| Item {
            id: if first(at, code) { format!("warning-{code}") } else { String::new() },
            ..Item::named(*code, text)
        })
    }
}

/// Marked number.
#[derive(Clone, Debug, PartialEq)]
struct MarkedNumber {
    /// Mark shown at the number.
    code: &'static str,
    text: String,
}

/// Data set with the given name, with or without [`SUFFIX`].
pub fn published(name: &str) -> Option<&'static Published> {
    let name = name.strip_suffix(SUFFIX).unwrap_or(name);
    PUBLISHED.iter().find(|set| set.name == name)
}

/// Charts of two editions of the study of everyday tasks.
pub(crate) fn edition_charts(one: &Published, other: &Published) -> Vec<Figure> {
    vec![figures::editions(one, other), figures::totals(one, Some(other))]
}

/// Names, with suffix, of the data sets for some suites.
pub(crate) fn of_suites<'a>(suites: impl Iterator<Item = &'a str>) -> Vec<String> {
    let of = |suite| PUBLISHED.iter().filter(move |set| set.suite == suite);
    suites.flat_map(of).map(Published::full_name).collect()
}

/// Reference to the published results of some suites; `None` if there are none.
pub(crate) fn note<'a>(suites: impl Iterator<Item = &'a str>) -> Option<String> {
    let names = of_suites(suites);
    let commands: Vec<String> = names.iter().map(|name| format!("fslab report {name}")).collect();
    (!commands.is_empty()).then(|| {
        format!(
            "Published results of the same work, from other machines and kernels, so that they \
             share no table and no axis with these: {}. Only fslab compare shows them \
             next to a run, labeled and without a statistical test.",
            commands.join(", ")
        )
    })
}

impl Published {
    /// Commands that accept the data set, for `fslab list`.
    pub fn uses(&self) -> String {
        let audited = audit::AUDITED.iter().any(|set| set.name == self.name);
        let audit = if audited { ", audit" } else { "" };
        format!("report, compare{audit}")
    }

    /// Number of values.
    pub fn numbers(&self) -> usize {
        match self.suite.as_str() {
            "bonnie" => numbers::numbers(self).len(),
            _ => self.data().lines().count().saturating_sub(1),
        }
    }

    /// CSV data with a header line.
    pub(crate) fn data(&self) -> &'static str {
        match self.name.as_str() {
            "tasks-2004" => include_str!("../published/tasks-2004.csv"),
            "tasks-2006" => include_str!("../published/tasks-2006.csv"),
            "iozone-2009" => include_str!("../published/iozone-2009.csv"),
            _ => include_str!("../published/bonnie-2012.csv"),
        }
    }

    fn tables(&self) -> Vec<Table> {
        match self.suite.as_str() {
            "tasks" => tasks::tables(self),
            "iozone" => iozone::tables(self),
            _ => bonnie::tables(self),
        }
    }

    /// Configurations by name; empty if the method describes them.
    fn configurations(&self) -> Vec<(String, String)> {
        if self.suite == "bonnie" { bonnie::configurations(self) } else { Vec::new() }
    }

    /// Charts, findings, and marked numbers.
    fn extras(&self) -> Extras {
        match self.suite.as_str() {
            "tasks" => Extras::of(figures::tasks(self)),
            "iozone" => iozone::extras(),
            _ => Extras::of(figures::bonnie(self)),
        }
    }

    /// Name on the command line, with [`SUFFIX`].
    pub fn full_name(&self) -> String {
        format!("{}{SUFFIX}", self.name)
    }

    /// Label of every table: published, not measured by fslab, and the statistic.
    fn label(&self) -> String {
        format!("{LABEL}; {}", self.summary)
    }

    /// Source of the data, by keyword.
    fn provenance(&self) -> Vec<(&'static str, String)> {
        vec![
            ("article", format!("{}, {}", self.article, self.author)),
            ("source", self.source.clone()),
            ("machine", self.machine.clone()),
            ("kernel", self.kernel.clone()),
            ("method", self.method.clone()),
        ]
    }

    /// Tables with their label.
    fn labeled(&self) -> Vec<Table> {
        let mut tables = self.tables();
        tables.iter_mut().for_each(|table| table.caption.push(self.label()));
        tables
    }

    /// Formats the data set for a terminal.
    pub fn terminal(&self, options: &TerminalOptions) -> String {
        terminal(&self.document(), options)
    }

    /// Formats the data set as GitHub-flavored Markdown.
    pub fn markdown(&self) -> String {
        markdown(&self.document())
    }

    /// Formats the data set as one HTML file that loads no other files.
    pub fn html(&self) -> String {
        html(&self.document())
    }

    fn document(&self) -> Document {
        let extras = self.extras();
        let provenance = self.provenance().into_iter();
        let facts = provenance.map(|(name, value)| Item::named(name, value));
        let table = |table: Table| {
            // Tables without intervals and marks need only one line per number.
            let noted = |value: &ValueCell| value.interval.is_some() || !value.codes.is_empty();
            let layout = if table.values().any(noted) { Layout::Full } else { Layout::Bare };
            Block::Table(table, layout)
        };
        let commands = self.configurations().into_iter();
        let commands = commands.map(|(name, commands)| Item::named(name, commands));
        let notes = self.quality_notes.iter().map(Item::of).chain(extras.marks());
        let note = (!extras.note.is_empty()).then(|| Block::Paragraph(extras.note.clone()));
        let quality = Block::list(Style::Bullets, notes).into_iter().chain(note).collect();
        let charts = Section {
            sections: extras.groups.into_iter().map(Group::section).collect(),
            ..Section::new("charts", "Charts", Vec::new())
        };
        let section = |id: &str, title, block: Option<Block>| {
            Section::new(id, title, block.into_iter().collect()).some()
        };
        let sections = [
            charts.some(),
            section("findings", "Supported findings", Block::bullets(extras.findings)),
            section("withheld", "Withheld findings", Block::bullets(extras.withheld)),
            Some(Section::new("tables", "Tables", self.labeled().into_iter().map(table).collect())),
            section("configurations", "Configurations", Block::list(Style::Commands, commands)),
            Some(Section::new("data-quality", "Data quality", quality)),
        ];
        Document {
            kicker: format!("{}.", self.label()),
            title: format!("{} ({})", self.article, self.name),
            lead: Block::list(Style::Facts, facts).into_iter().collect(),
            sections: sections.into_iter().flatten().collect(),
            ..Document::default()
        }
    }

    /// Formats the data set as JSON: values in base units, and their source.
    pub fn json(&self) -> String {
        let provenance: serde_json::Map<String, serde_json::Value> = self
            .provenance()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let extras = self.extras();
        let marked = extras.marked.iter().map(|own| json!({"code": own.code, "text": own.text}));
        let marked: serde_json::Value = marked.collect();
        let document = json!({
            "published": self.name,
            "measured_by_fslab": false,
            "suite": self.suite,
            "summary": self.summary,
            "provenance": provenance,
            "configurations": self.configurations(),
            "quality_notes": self.quality_notes,
            "findings": extras.findings,
            "withheld": extras.withheld,
            "marked_numbers": marked,
            "tables": tables(self.labeled().iter()),
        });
        format!("{document:#}\n")
    }

    /// Formats all numbers as CSV in a schema that all sets share: one row per number, in the base
    /// units of a run's metrics, with n, deviation, and the printed text.
    pub fn csv(&self) -> String {
        numbers::csv(self)
    }

    /// bonnie++ records in a given layout, in the order of the study. Records printed in that
    /// layout are unchanged. `None` for a set of another suite.
    pub fn bonnie(&self, format: Format) -> Option<String> {
        let line = |own: bonnie::Measured| match own.record.format == format {
            true => own.printed + "\n",
            false => write(&Record { format, ..own.record }) + "\n",
        };
        let measured = || bonnie::measured(self.data()).into_iter();
        (self.suite == "bonnie").then(|| measured().map(line).collect())
    }

    /// All charts, in the order of the page.
    pub(crate) fn charts(&self) -> Vec<Figure> {
        let groups = self.extras().groups.into_iter();
        groups.flat_map(|group| group.first.into_iter().chain(group.rest)).collect()
    }
}

#[cfg(test)]
mod tests;
