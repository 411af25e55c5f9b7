//! `fslab list`: lists everything that plans and commands can name.

use comfy_table::{Cell, ColumnConstraint, ContentArrangement, Table, presets};
use model::{metric, warning::Warning, workload::ParameterSpec};
use report::{ChartKind, PUBLISHED};
use rig::{Availability, Catalog, RealHost};

use crate::{
    cli::{List, Listed},
    exit::{Exit, Failure},
    output,
    plans::BUILTIN_PLANS,
};

pub(super) fn run(list: &List) -> Result<Exit, Failure> {
    let catalog = super::catalog(list.catalog.as_deref())?;
    let text = match list.kind {
        Listed::Filesystems => filesystems(&catalog),
        Listed::Suites => suites(),
        Listed::Workloads => workloads(),
        Listed::Plans => plans(),
        Listed::Settings => super::settings::table(&RealHost),
        Listed::Metrics => metrics(),
        Listed::Warnings => warnings(),
        Listed::Published => published(),
        Listed::Charts => charts(),
        Listed::Studies => views(),
    };
    output::result(&text)?;
    Ok(Exit::Success)
}

/// Filesystems: available here, or the reason and a hint.
pub(super) fn filesystems(catalog: &Catalog) -> String {
    let host = RealHost;
    let mut table = table(&["filesystem", "here", "minimum size", "title, or hint"]);
    for filesystem in catalog.all() {
        let (here, words) = match catalog.availability(filesystem, &host) {
            Availability::Usable { version } => {
                let version = version.map(|version| format!(" ({version})")).unwrap_or_default();
                ("yes", format!("{}{version}", filesystem.title))
            }
            Availability::Missing { reason, hint, .. } => ("no", format!("{reason}; {hint}")),
        };
        let least = filesystem.min_size.to_string();
        table.add_row([filesystem.name.as_str(), here, &least, &words].map(Cell::new));
    }
    table.to_string()
}

fn suites() -> String {
    let mut text = String::new();
    for suite in suites::ALL {
        let spec = suite.spec;
        text.push_str(&format!("{}: {}\nsource: {}\n", spec.name, spec.title, spec.source));
        let mut table = table(&["parameter", "default", "takes", "meaning"]);
        for ParameterSpec { name, kind, default, doc } in spec.parameters {
            table.add_row([*name, *default, &kind.to_string(), *doc].map(Cell::new));
        }
        text.push_str(&format!("{table}\n"));
    }
    text
}

fn workloads() -> String {
    let mut table = table(&["workload", "suite", "title", "source"]);
    for preset in suites::presets() {
        let (name, suite) = (preset.name.as_str(), preset.workload.suite.as_str());
        table.add_row([name, suite, &preset.title, &preset.source].map(Cell::new));
    }
    table.to_string()
}

fn plans() -> String {
    let mut table = table(&["plan", "question"]);
    for ready in BUILTIN_PLANS {
        table.add_row([ready.name, ready.title()].map(Cell::new));
    }
    table.to_string()
}

fn metrics() -> String {
    let mut table = table(&["metric", "unit", "direction", "meaning"]);
    for row in metric::ALL {
        table.add_row([row.name, row.unit.name(), row.better.label(), row.meaning].map(Cell::new));
    }
    table.to_string()
}

fn warnings() -> String {
    let mut table = table(&["code", "severity", "example", "hint"]);
    for warning in Warning::examples() {
        let (code, severity) = (warning.code(), warning.severity().name());
        table.add_row([code, severity, &warning.message(), warning.hint()].map(Cell::new));
    }
    table.to_string()
}

/// Chart kinds with the question that each answers.
fn charts() -> String {
    let mut table = table(&["chart", "content"]);
    for kind in ChartKind::ALL {
        table.add_row([kind.name(), kind.description()].map(Cell::new));
    }
    table.to_string()
}

/// Studies with their content; built-in plans have the names of their studies.
fn views() -> String {
    let mut table = table(&["study", "tables and charts that come first in the report"]);
    for (name, holds) in report::views() {
        table.add_row([name, holds].map(Cell::new));
    }
    table.to_string()
}

fn published() -> String {
    let mut table = table(&["name", "suite", "numbers", "article", "content", "for"]);
    for set in PUBLISHED {
        let article = format!("{}, {}", set.article, set.author);
        let (name, numbers, uses) = (set.full_name(), set.numbers().to_string(), set.uses());
        let cells = [name.as_str(), set.suite, &numbers, &article, set.summary, &uses];
        table.add_row(cells.map(Cell::new));
    }
    table.to_string()
}

/// Table without borders. Its first column contains names, which are not wrapped so that they can
/// be copied to the command line.
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(output::width()).unwrap_or(100))
        .set_header(header);
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    table
}
