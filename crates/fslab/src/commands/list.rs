//! `fslab list`: lists everything that plans and commands can name. A word selects the entries that
//! contain it.

use clap::ValueEnum;
use comfy_table::{Cell, ColumnConstraint, ContentArrangement, Row, Table, Width, presets};
use model::{metric, suggest::nearest, warning::Warning, workload::ParameterSpec};
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
    let word = list.word.as_deref();
    let table = match list.kind {
        Listed::Filesystems => filesystems(&catalog),
        Listed::Suites => {
            output::result(&suites(word)?)?;
            return Ok(Exit::Success);
        }
        Listed::Workloads => workloads(),
        Listed::Plans => plans(),
        Listed::Settings => super::settings::table(&RealHost),
        Listed::Metrics => metrics(),
        Listed::Warnings => warnings(),
        Listed::Published => published(),
        Listed::Charts => charts(),
        Listed::Studies => views(),
    };
    let kind = list.kind.to_possible_value();
    let kind = kind.as_ref().map(|kind| kind.get_name()).unwrap_or_default();
    output::result(&text(&mut narrowed(table, word, kind)?))?;
    Ok(Exit::Success)
}

/// Rows of a table that contain a word. The sources of workloads are not searched, because they
/// cite many programs.
///
/// # Errors
/// If no row contains the word. The message suggests a similar word.
fn narrowed(table: Table, word: Option<&str>, kind: &str) -> Result<Table, Failure> {
    let Some(word) = word.map(str::to_lowercase) else { return Ok(table) };
    let columns = if kind == "workloads" { 3 } else { usize::MAX };
    let rows: Vec<Row> = table.row_iter().cloned().collect();
    let names: Vec<String> =
        rows.iter().filter_map(|row| row.cell_iter().next().map(Cell::content)).collect();
    let contains = |row: &Row| {
        let mut cells = row.cell_iter().take(columns).map(Cell::content);
        cells.any(|text| text.to_lowercase().contains(&word))
    };
    let found: Vec<Row> = rows.into_iter().filter(contains).collect();
    if found.is_empty() {
        return Err(unknown(&word, kind, names.iter().map(String::as_str)));
    }
    let mut narrowed = self::table(&[]);
    if let Some(header) = table.header() {
        narrowed.set_header(header.clone());
    }
    narrowed.add_rows(found);
    Ok(narrowed)
}

/// Error about a word that no entry contains, with the most similar name or part of a name.
fn unknown<'a>(word: &str, kind: &str, names: impl Iterator<Item = &'a str> + Clone) -> Failure {
    let parts = names.clone().flat_map(|name| name.split(['-', '_', '.', '@']));
    let near = nearest(word, names).or_else(|| nearest(word, parts.filter(|part| part.len() > 2)));
    let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    Failure::usage(anyhow::anyhow!(
        "no entry of `fslab list {kind}` contains `{word}`; {near}`fslab list {kind}` lists all"
    ))
}

/// Filesystems with their availability on this machine. Missing filesystems have a reason and a
/// hint.
pub(super) fn filesystems(catalog: &Catalog) -> Table {
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
    table
}

/// Parameters that most commands set, in the order in which they are listed. Other parameters
/// follow in the order of their suite.
const FIRST: [&str; 20] = [
    "direction",
    "access_pattern",
    "block_size",
    "file_size",
    "files",
    "operations",
    "tests",
    "tasks",
    "steps",
    "clients",
    "workers",
    "queue_depth",
    "io_engine",
    "direct",
    "runtime",
    "read_fraction",
    "fsync_every",
    "cache",
    "file_size_mean",
    "loadfile",
];

/// Suites with their parameters: all suites, the suite with this name, or all suites whose names
/// contain the word.
///
/// # Errors
/// If no suite matches. The message suggests a similar name.
fn suites(word: Option<&str>) -> Result<String, Failure> {
    let all = || suites::ALL.iter().map(|suite| suite.spec);
    let found: Vec<_> = match word {
        None => all().collect(),
        Some(word) if suites::find(word).is_some() => all().filter(|s| s.name == word).collect(),
        Some(word) => all().filter(|spec| spec.name.contains(&word.to_lowercase())).collect(),
    };
    if let (true, Some(word)) = (found.is_empty(), word) {
        return Err(match suites::preset(word) {
            Some(preset) => Failure::usage(anyhow::anyhow!(
                "`{word}` is a workload of suite {suite}; use `fslab list suites {suite}` for its \
                 parameters",
                suite = preset.workload.suite
            )),
            None => unknown(word, "suites", all().map(|spec| spec.name)),
        });
    }
    let mut text = String::new();
    for spec in &found {
        text.push_str(&wrapped(&format!("{}: {}", spec.name, spec.title)));
        text.push_str(&wrapped(&format!("source: {}", spec.source)));
        if word.is_some() {
            let of_suite = suites::presets().iter().filter(|p| p.workload.suite == spec.name);
            let names: Vec<&str> = of_suite.map(|preset| preset.name.as_str()).collect();
            if !names.is_empty() {
                text.push_str(&wrapped(&format!("workloads: {}", names.join(", "))));
            }
        }
        let mut table = table(&["parameter", "default", "takes", "meaning"]);
        for ParameterSpec { name, kind, default, doc } in by_use(spec.parameters) {
            // Lists are wrapped between their words.
            let default = default.replace(',', ", ");
            table.add_row([*name, &default, &kind.to_string(), *doc].map(Cell::new));
        }
        text.push_str(&self::text(&mut table));
        text.push('\n');
    }
    Ok(text)
}

/// Text wrapped to the width of the terminal. Continuation lines are indented.
fn wrapped(text: &str) -> String {
    report::wrap(text, output::width(), "", "  ").join("\n") + "\n"
}

/// Parameters, sorted so that those in [`FIRST`] come first.
fn by_use(parameters: &[ParameterSpec]) -> Vec<&ParameterSpec> {
    let place = |spec: &&ParameterSpec| {
        FIRST.iter().position(|name| *name == spec.name).unwrap_or(FIRST.len())
    };
    let mut sorted: Vec<&ParameterSpec> = parameters.iter().collect();
    sorted.sort_by_key(place);
    sorted
}

fn workloads() -> Table {
    let mut table = table(&["workload", "suite", "title", "source"]);
    for preset in suites::presets() {
        let (name, suite) = (preset.name.as_str(), preset.workload.suite.as_str());
        table.add_row([name, suite, &preset.title, &preset.source].map(Cell::new));
    }
    table
}

fn plans() -> Table {
    let mut table = table(&["plan", "question"]);
    for ready in BUILTIN_PLANS {
        table.add_row([ready.name, ready.title()].map(Cell::new));
    }
    table
}

fn metrics() -> Table {
    let mut table = table(&["metric", "unit", "direction", "meaning"]);
    for row in metric::ALL {
        table.add_row([row.name, row.unit.name(), row.better.label(), row.meaning].map(Cell::new));
    }
    table
}

fn warnings() -> Table {
    let mut table = table(&["code", "severity", "example", "hint"]);
    for warning in Warning::examples() {
        let (code, severity) = (warning.code(), warning.severity().name());
        table.add_row([code, severity, &warning.message(), warning.hint()].map(Cell::new));
    }
    table
}

/// Chart kinds with their descriptions.
fn charts() -> Table {
    let mut table = table(&["chart", "content"]);
    for kind in ChartKind::ALL {
        table.add_row([kind.name(), kind.description()].map(Cell::new));
    }
    table
}

/// Studies with the tables and charts that they add to a report.
fn views() -> Table {
    let mut table = table(&["study", "tables and charts that come first in the report"]);
    for (name, holds) in report::views() {
        table.add_row([name, holds].map(Cell::new));
    }
    table
}

fn published() -> Table {
    let mut table = table(&["name", "suite", "numbers", "article", "content", "for"]);
    for set in PUBLISHED.iter() {
        let article = format!("{}, {}", set.article, set.author);
        let (name, numbers, uses) = (set.full_name(), set.numbers().to_string(), set.uses());
        let cells = [name.as_str(), &set.suite, &numbers, &article, &set.summary, &uses];
        table.add_row(cells.map(Cell::new));
    }
    table
}

/// Table without borders, to be printed by [`text`].
pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(output::width()).unwrap_or(100))
        .set_header(header);
    table
}

/// Text of a table. Words of the columns before the last are not broken, so that names can be
/// copied to the command line. If this leaves less than [`LAST`] columns for the last one, each row
/// is a list of its cells instead.
pub(super) fn text(table: &mut Table) -> String {
    let row_widths = |row: &Row| row.cell_iter().map(widest_word).collect::<Vec<_>>();
    let rows: Vec<_> = table.header().into_iter().chain(table.row_iter()).map(row_widths).collect();
    let last = table.column_count().saturating_sub(1);
    let content = table.column_max_content_widths();
    let widest = |at: usize| rows.iter().filter_map(|row| row.get(at)).max().copied();
    let words: Vec<u16> = (0..last).map(|at| widest(at).unwrap_or_default()).collect();
    let used = content.first().copied().unwrap_or_default()
        + words.iter().skip(1).sum::<u16>()
        + PADDING * u16::try_from(last).unwrap_or_default();
    if usize::from(used + LAST) > output::width() {
        return rows_as_lists(table);
    }
    for (at, column) in table.column_iter_mut().enumerate() {
        match words.get(at) {
            _ if at == 0 => column.set_constraint(ColumnConstraint::ContentWidth),
            Some(word) => {
                let width = Width::Fixed(word + PADDING);
                column.set_constraint(ColumnConstraint::LowerBoundary(width))
            }
            None => continue,
        };
    }
    table.to_string()
}

/// Rows of a table as lists: the first cell, then a line or more for each other cell.
fn rows_as_lists(table: &Table) -> String {
    let titles: Vec<String> =
        table.header().into_iter().flat_map(Row::cell_iter).map(Cell::content).collect();
    let mut lines = Vec::new();
    for row in table.row_iter() {
        for (title, cell) in titles.iter().zip(row.cell_iter().map(Cell::content)) {
            match lines.is_empty() || title == &titles[0] {
                true => lines.push(cell),
                false if cell.is_empty() => {}
                false => {
                    let text = format!("{title}: {cell}");
                    lines.extend(report::wrap(&text, output::width(), "  ", "    "));
                }
            }
        }
    }
    lines.join("\n")
}

/// Columns between the texts of two columns.
const PADDING: u16 = 2;

/// Minimum width of the last column.
const LAST: u16 = 12;

/// Columns of the widest word of a cell, at most 24: longer words, such as paths, are broken.
fn widest_word(cell: &Cell) -> u16 {
    let content = cell.content();
    let words = content.split_whitespace().map(|word| word.chars().count());
    words.max().and_then(|most| u16::try_from(most).ok()).unwrap_or_default().min(24)
}
