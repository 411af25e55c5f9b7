//! `fslab list`: what there is.

use comfy_table::{Cell, ColumnConstraint, ContentArrangement, Table, presets};
use model::{metric, warning::Warning, workload::ParameterSpec};
use report::{ChartKind, PUBLISHED};
use rig::{Availability, Catalogue, RealHost};

use crate::{
    cli::{List, Listed},
    exit::{Exit, Failure},
    output,
    plans::READY,
};

pub(super) fn run(list: &List) -> Result<Exit, Failure> {
    let catalogue = super::catalogue(list.filesystems.as_deref())?;
    let text = match list.what {
        Listed::Filesystems => filesystems(&catalogue),
        Listed::Suites => suites(),
        Listed::Workloads => workloads(),
        Listed::Plans => plans(),
        Listed::Factors => super::factors::table(&RealHost),
        Listed::Metrics => metrics(),
        Listed::Warnings => warnings(),
        Listed::Published => published(),
        Listed::Charts => charts(),
        Listed::Views => views(),
    };
    output::result(&text)?;
    Ok(Exit::Done)
}

/// Each filesystem: usable here, or why not and what would help.
pub(super) fn filesystems(catalogue: &Catalogue) -> String {
    let host = RealHost;
    let mut table = table(&["filesystem", "here", "least size", "what it is, or what would help"]);
    for filesystem in catalogue.all() {
        let (here, words) = match catalogue.availability(filesystem, &host) {
            Availability::Usable { version } => {
                let version = version.map(|version| format!(" ({version})")).unwrap_or_default();
                ("yes", format!("{}{version}", filesystem.title))
            }
            Availability::Missing { reason, cure } => ("no", format!("{reason}; {cure}")),
        };
        let least = filesystem.min.to_string();
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
    let mut table = table(&["workload", "suite", "what it stands for", "source"]);
    for recipe in suites::recipes() {
        let (name, suite) = (recipe.name.as_str(), recipe.point.suite.as_str());
        table.add_row([name, suite, &recipe.title, &recipe.source].map(Cell::new));
    }
    table.to_string()
}

fn plans() -> String {
    let mut table = table(&["plan", "what it asks"]);
    for ready in READY {
        let title = ready.text.lines().find_map(|line| line.strip_prefix("title = "));
        let title = title.unwrap_or_default().trim_matches('"');
        table.add_row([ready.name, title].map(Cell::new));
    }
    table.to_string()
}

fn metrics() -> String {
    let mut table = table(&["metric", "unit", "direction", "meaning"]);
    for row in metric::ALL {
        table.add_row([row.name, row.unit.name(), row.better.words(), row.meaning].map(Cell::new));
    }
    table.to_string()
}

fn warnings() -> String {
    let mut table = table(&["code", "effect", "for instance", "cure"]);
    for warning in Warning::examples() {
        let (code, level) = (warning.code(), warning.level().name());
        table.add_row([code, level, &warning.message(), warning.cure()].map(Cell::new));
    }
    table.to_string()
}

/// Each kind of chart with the question it answers.
fn charts() -> String {
    let mut table = table(&["chart", "the question it answers, and how"]);
    for kind in ChartKind::ALL {
        table.add_row([kind.name(), kind.what()].map(Cell::new));
    }
    table.to_string()
}

/// Each view with what it shows; ready plans have the names of their views.
fn views() -> String {
    let mut table =
        table(&["view", "what the report then shows first, from the numbers of the run"]);
    for (name, holds) in report::views() {
        table.add_row([name, holds].map(Cell::new));
    }
    table.to_string()
}

fn published() -> String {
    let mut table = table(&["name", "suite", "numbers", "article", "what each number is", "for"]);
    for set in PUBLISHED {
        let article = format!("{}, {}", set.article, set.author);
        let (name, numbers, uses) = (set.full_name(), set.numbers().to_string(), set.uses());
        let cells = [name.as_str(), set.suite, &numbers, &article, set.summary, &uses];
        table.add_row(cells.map(Cell::new));
    }
    // Names are there to be copied.
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.to_string()
}

pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(output::width()).unwrap_or(100))
        .set_header(header);
    table
}
