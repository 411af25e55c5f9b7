//! Last sections of a run: run, environment, plan, method, and raw data.

use super::{budget::Budget, question::question};
use crate::{
    document::{Block, Item, Layout, Row, Section, Style, Table},
    published,
    units::count,
    view::{EquivalenceMargin, View},
};

/// Sections in order. `budget` has the numbers of omitted charts and tables.
pub(super) fn sections(view: &View, budget: &Budget) -> Vec<Section> {
    let all = [Some(run(view)), environment(view), Some(plan(view)), Some(method(view))];
    all.into_iter().flatten().chain([data(view, budget)]).collect()
}

/// Question, plan, program, conditions, and filesystems.
fn run(view: &View) -> Section {
    let facts = &view.facts;
    let plan = match facts.imported {
        // Imported runs have no plan or profile.
        Some(_) => vec![("Records", facts.plan_name.clone())],
        None => {
            let margin = EquivalenceMargin::of(facts.profile).label();
            let profile = format!("{}, {margin}", facts.profile.name());
            vec![("Plan", facts.plan_name.clone()), ("Profile", profile)]
        }
    };
    let rest = [
        ("Measured", facts.when.clone()),
        ("Run", facts.run.clone()),
        ("Program", facts.program.clone()),
        ("Conditions", facts.conditions.clone()),
    ];
    let named = plan.into_iter().chain(rest).map(|(name, text)| Item::named(name, text));
    let items = named.chain(facts.run_conditions.iter().map(Item::of));
    let legend = view.filesystems.iter().map(|own| Item::named(&own.name, &own.options));
    let question = Some(question(view)).filter(|text| !text.is_empty()).map(Block::Paragraph);
    let lists = [Block::list(Style::Facts, items), Block::list(Style::Legend, legend)];
    let blocks = question.into_iter().chain(lists.into_iter().flatten());
    Section::new("run", "Run", blocks.collect())
}

fn environment(view: &View) -> Option<Section> {
    let facts = &view.facts.environment;
    let rows = facts.iter().map(|(name, value)| Row::texts(name, [value])).collect();
    let table = Table::of_texts("fact", &["value"], rows);
    let blocks = vec![Block::Table(table, Layout::Records)];
    (!facts.is_empty()).then(|| Section::new("environment", "Environment", blocks))
}

fn plan(view: &View) -> Section {
    let facts = &view.facts;
    let overrides = facts.overrides.iter();
    let overrides = overrides.map(|(key, value)| Item::of(format!("overridden: {key} = {value}")));
    let before = match &facts.imported {
        Some(program) => {
            Some(Block::Paragraph(format!("None: the results were imported from {program}.")))
        }
        None => Block::list(Style::Bullets, overrides),
    };
    let text = facts.plan_text.clone();
    let code = (!text.is_empty()).then_some(Block::Code("Plan file", text));
    Section::new("plan", "Plan", before.into_iter().chain(code).collect())
}

fn method(view: &View) -> Section {
    let blocks = view.facts.method.iter().cloned().map(Block::Paragraph).collect();
    Section::new("method", "Method", blocks)
}

/// Run file, samples, and references to published results.
fn data(view: &View, budget: &Budget) -> Section {
    let (run, samples) = (&view.facts.run, count(view.samples.rows, "sample"));
    let file = "All results are computed from the run file (SQLite). It contains the plan, the \
                environment, every sample, the latency histograms, the warnings, and all actions. \
                sqlite3, DuckDB, and pandas can read it.";
    let commands = "sqlite3 RUN.fslab .schema\n\
                    fslab report RUN.fslab --format csv > samples.csv\n\
                    fslab report RUN.fslab --format json > summaries.json";
    let mut blocks =
        vec![Block::Paragraph(file.to_owned()), Block::Code("Commands", commands.to_owned())];
    if budget.has_charts() {
        blocks.push(match &view.samples.csv {
            Some(csv) => {
                let label = format!("Download all {samples} as CSV, one row per sample");
                Block::Download(format!("{run}.csv"), csv.clone(), label)
            }
            None => {
                Block::Paragraph(format!("The {samples} are not embedded, to limit the file size."))
            }
        });
    }
    let (charts, tables) = budget.omitted();
    if charts + tables > 0 {
        blocks.push(Block::Paragraph(format!(
            "{charts} charts and {tables} tables omitted to limit the file size. The data of \
             every test are included; fslab report {run}.fslab --charts DIR writes all charts, \
             and --format json has all tables."
        )));
    }
    let note = published::note(view.suites.iter().map(|suite| suite.name.as_str()));
    blocks.extend(note.map(Block::Paragraph));
    Section::new("data", "Raw data", blocks)
}
