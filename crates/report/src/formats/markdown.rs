//! The tables as GitHub-flavored Markdown, to be put into another document.

use std::fmt::Write;

use crate::{
    document::{
        Table,
        markdown::{escaped, write_table},
    },
    published,
    view::{Part, View},
};

/// All tables of the view with their captions, after a heading with the conditions.
pub fn markdown(view: &View) -> String {
    let facts = &view.facts;
    let mut text = format!("# {}\n\n", escaped(&facts.title));
    // Writing to a string cannot fail, here and below.
    if let Some(program) = &facts.imported {
        let _ = writeln!(text, "Imported from {}, not measured by fslab.\n", escaped(program));
    }
    let _ = writeln!(
        text,
        "Plan {} · profile {} · {} · run {} · {}\n\n{}\n",
        escaped(&facts.plan_name),
        facts.profile.name(),
        facts.when,
        escaped(&facts.run),
        escaped(&facts.program),
        escaped(&facts.conditions)
    );
    for line in &facts.run_conditions {
        let _ = writeln!(text, "- {}", escaped(line));
    }
    text.push_str(if facts.run_conditions.is_empty() { "" } else { "\n" });
    findings(&mut text, view);
    study(&mut text, view);
    let own = |table: &&Table| !view.in_study(&table.id);
    let overviews = view.overviews.iter().flat_map(|overview| overview.all()).filter(own);
    let ranked = view.ranked.iter().flatten();
    let scaling = view.scaling.iter().flat_map(|scaled| &scaled.tables);
    let conditions = view.interactions.iter().flat_map(|interaction| &interaction.tables);
    let operations = view.operations.iter().flatten().flatten();
    let first = overviews.chain(scaling).chain(conditions).chain(ranked);
    for table in
        first.chain(operations).chain(&view.latency).chain(view.lifecycle.iter().filter(own))
    {
        write_table(&mut text, table, "##");
    }
    if view.activity.iter().flatten().any(|tables| !tables.is_empty()) {
        text.push_str("## System activity: CPU and devices\n\n");
    }
    for table in view.activity.iter().flatten().flatten() {
        write_table(&mut text, table, "###");
    }
    if let Some(note) = published::note(&view.published) {
        let _ = writeln!(text, "\n{}", escaped(&note));
    }
    text
}

/// The view of the study: its tables in its order, and what is missing in its place.
fn study(text: &mut String, view: &View) {
    let Some(study) = &view.study else { return };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "## {}\n", study.title);
    for note in &study.notes {
        let _ = writeln!(text, "- {}.", escaped(note));
    }
    text.push('\n');
    for part in &study.parts {
        match part {
            Part::Table(table) => write_table(text, table, "###"),
            Part::Absent { title, reason } => {
                let _ = writeln!(text, "### {}\n\n{}.\n", escaped(title), escaped(reason));
            }
            Part::Totals(_) | Part::Capped(_) | Part::Normalized(_) | Part::Links { .. } => {}
        }
    }
}

/// Findings, inconclusive questions, run quality, and warnings.
fn findings(text: &mut String, view: &View) {
    let points = || view.findings.by_point.iter();
    for point in points().filter(|point| !point.findings.is_empty()) {
        // Writing to a string cannot fail, here and below.
        let heading = view.findings.heading();
        let _ = writeln!(text, "## {heading}: {}\n", escaped(&point.label));
        for finding in &point.findings {
            let _ = writeln!(text, "- {}", escaped(&finding.text));
        }
        text.push('\n');
    }
    let open: Vec<_> = points().flat_map(|point| &point.open).collect();
    if !open.is_empty() {
        text.push_str("## Inconclusive\n\n");
        for open in open {
            let _ = writeln!(text, "- {}", escaped(&open.text()));
        }
        text.push('\n');
    }
    if !view.quality.is_empty() {
        text.push_str("## Run quality\n\n");
        for line in &view.quality.lines {
            let _ = writeln!(text, "- {}", escaped(line));
        }
        text.push('\n');
    }
    for table in &view.quality.tables {
        write_table(text, table, "###");
    }
    if !view.warnings.is_empty() {
        text.push_str("## Warnings\n\n| code | severity | count | message | hint |\n");
        text.push_str("| --- | --- | ---: | --- | --- |\n");
        for row in &view.warnings {
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} |",
                row.code,
                row.severity.name(),
                row.count,
                escaped(&row.message),
                escaped(row.hint)
            );
        }
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use model::Bytes;

    use super::*;
    use crate::{fixture, published::PUBLISHED};

    /// Number of tables; checks that every row has as many fields as the header.
    #[track_caller]
    fn tables(name: &str, text: &str) -> usize {
        let fields = |line: &str| line.replace("\\|", "").matches('|').count();
        let mut expected = None;
        let mut tables = 0;
        for line in text.lines() {
            if !line.starts_with('|') {
                expected = None;
                continue;
            }
            tables += usize::from(expected.is_none());
            assert_eq!(fields(line), *expected.get_or_insert(fields(line)), "{name}: {line}");
        }
        tables
    }

    #[test]
    fn every_row_of_a_table_has_the_fields_of_its_header() {
        let tables = tables("a run", &markdown(&View::new(&fixture::record())));
        assert!(tables > 20, "{tables}");
    }

    #[test]
    fn every_row_of_a_published_table_has_the_fields_of_its_header() {
        for set in PUBLISHED {
            let text = set.markdown();
            assert!(tables(set.name, &text) > 0, "{}", set.name);
            // A note that ends its row would leave its rest at the start of a line.
            let rest = text.lines().find(|line| line.ends_with('|') && !line.starts_with('|'));
            assert_eq!(rest, None, "{}", set.name);
        }
    }

    #[test]
    fn names_from_outside_end_no_cell_and_no_row() {
        let hostile = "a|b\n| c\r\n\\| <d> `e` **f** [g](h) _i_";
        let mut record = fixture::with_records(&[Bytes::mib(1)], hostile);
        let expected = tables("a run", &markdown(&View::new(&record)));
        record.info.title = hostile.into();
        record.info.program = hostile.into();
        for cell in &mut record.cells {
            cell.label = format!("{hostile} {}", cell.label);
            if cell.cell.filesystem.name == "ext4" {
                cell.cell.filesystem.name = hostile.into();
                cell.id = cell.cell.id();
            }
        }
        for trial in &mut record.trials {
            if let model::record::Outcome::Failed { reason } = &mut trial.outcome {
                *reason = hostile.into();
            }
        }
        assert_eq!(tables("a hostile run", &markdown(&View::new(&record))), expected);
    }

    #[test]
    fn lines_of_a_note_stay_in_their_cell() {
        let set = PUBLISHED.iter().find(|set| set.name == "iozone-2009").unwrap();
        let text = set.markdown();
        let row = text.lines().find(|line| line.starts_with("| ext4 |")).unwrap();
        assert!(row.contains("s = ") && row.ends_with('|'), "{row}");
    }

    #[test]
    fn markup_in_names_is_text() {
        assert_eq!(escaped("a|b*c"), "a\\|b\\*c");
    }
}
