//! Tests of the contents of the workbook.

use std::io::{Cursor, Read};

use model::{Bytes, Value};

use super::*;
use crate::{fixture, units::Scale, view::Body, view::TableCell};

/// Names and contents of the parts of a workbook.
fn parts(bytes: &[u8]) -> Vec<(String, String)> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut parts = Vec::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        parts.push((file.name().unwrap().into_owned(), text));
    }
    parts
}

fn of(record: &RunRecord) -> Vec<(String, String)> {
    parts(&xlsx(&View::new(record), record).unwrap())
}

fn part<'p>(parts: &'p [(String, String)], name: &str) -> &'p str {
    &parts.iter().find(|(own, _)| own == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// Names of the sheets in their order.
fn sheets(parts: &[(String, String)]) -> Vec<String> {
    let workbook = part(parts, "xl/workbook.xml");
    let names = workbook.split("<sheet name=\"").skip(1);
    names.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

/// XML of a sheet with this name.
fn sheet<'p>(parts: &'p [(String, String)], name: &str) -> &'p str {
    let index = sheets(parts).iter().position(|own| own == name).unwrap();
    part(parts, &format!("xl/worksheets/sheet{}.xml", index + 1))
}

/// Run with two file sizes and two block sizes.
fn plane() -> RunRecord {
    let sizes = [64, 64, 128, 128].map(Bytes::kib);
    let mut record = fixture::with_records(&sizes, "plane");
    for (index, cell) in record.cells.iter_mut().enumerate() {
        let file = Bytes::mib(if (index / 6).is_multiple_of(2) { 128 } else { 256 });
        let parameters = &mut cell.cell.workload.parameters;
        parameters.insert("file_size".into(), Value::Size(file));
        cell.label = format!("iozone file_size={file} block_size={}", parameters["block_size"]);
        cell.id = cell.cell.id();
    }
    record
}

#[test]
fn the_first_sheet_leads_to_all_others() {
    let parts = of(&fixture::record());
    let sheets = sheets(&parts);
    assert_eq!(sheets[..3], ["Run", "Results", "Writing iozone block_size=1MiB"]);
    assert_eq!(sheets.last().unwrap(), "Samples");
    let front = sheet(&parts, "Run");
    for name in &sheets[1..] {
        assert!(front.contains(&format!("location=\"'{name}'!A1\"")), "{name}");
    }
    let strings = part(&parts, "xl/sharedStrings.xml");
    for words in [
        "kernel 6.18.2",
        "xfs was the fastest of 4 filesystems on write",
        "median, MiB/s",
        "wide-interval",
    ] {
        assert!(strings.contains(words), "{words}");
    }
}

#[test]
fn the_same_run_gives_the_same_bytes_and_no_day_of_today() {
    let record = fixture::record();
    let view = View::new(&record);
    let bytes = xlsx(&view, &record).unwrap();
    assert_eq!(bytes, xlsx(&view, &record).unwrap());
    let parts = parts(&bytes);
    let core = part(&parts, "docProps/core.xml");
    assert_eq!(core.matches("2026-11-21T20:31:00Z").count(), 2, "{core}");
}

#[test]
fn numbers_are_numbers_in_the_unit_of_their_header() {
    let record = fixture::record();
    let view = View::new(&record);
    let parts = parts(&xlsx(&view, &record).unwrap());
    let entry = &view.suites[0].points[0].tests[0].entries[0];
    let test = &view.suites[0].points[0].tests[0];
    let median = test.scale.number(entry.summary.as_ref().unwrap().median);
    assert!(sheet(&parts, "Results").contains(&format!("<v>{median}</v>")), "{median}");
    assert!(sheet(&parts, "Writing iozone block_size=1MiB").contains(&format!("<v>{median}</v>")));
    let samples = sheet(&parts, "Samples");
    let first = record.trials[0].samples[0].value;
    assert!(samples.contains(&format!("<v>{first}</v>")), "{first}");
}

#[test]
fn the_unit_of_every_number_of_every_table_is_known() {
    let records = [
        fixture::record(),
        fixture::bonnie::record(),
        fixture::dbench::record(),
        fixture::tasks::record(),
    ];
    for record in records {
        let view = View::new(&record);
        let document = run::document(&view, &mut Budget::text());
        for table in document.sections.iter().flat_map(Section::tables) {
            for row in &table.rows {
                let Body::Cells(cells) = &row.body else { continue };
                for (cell, column) in cells.iter().zip(&table.columns) {
                    let TableCell::Value(value) = cell else { continue };
                    let printed = if row.unit.is_empty() { column.unit } else { row.unit };
                    let known = Scale::named(value.unit, printed).is_some();
                    assert!(known, "{}: {} {}: `{printed}`", table.title, row.title, column.title);
                }
            }
        }
    }
}

#[test]
fn no_text_from_outside_becomes_a_formula_or_a_broken_file() {
    for hostile in [
        "=cmd|' /C calc'!A0",
        "+1+1",
        "-2",
        "@SUM(A1:A9)",
        "\t=1",
        "_x003D_1",
        "</t></si>&\u{0}\u{b}\u{fffe}\u{ffff}",
        "'[*]:?/\\'",
        "ﬁ\u{202e}\u{1f409}",
    ] {
        let mut record = fixture::with_records(&[64, 128, 256].map(Bytes::kib), hostile);
        record.trials.retain(|trial| trial.repetition < 2);
        record.info.title = hostile.into();
        record.info.program = hostile.into();
        for cell in &mut record.cells {
            if cell.cell.filesystem.name == "ext4" {
                cell.cell.filesystem.name = hostile.into();
                cell.id = cell.cell.id();
            }
            cell.label = format!("{hostile} {}", cell.label);
        }
        let parts = of(&record);
        for (name, text) in &parts {
            let wrong = text.contains("<f>") && name.starts_with("xl/worksheets");
            assert!(!wrong, "a formula in {name} for {hostile:?}");
            let bare = |c: char| c.is_control() && !"\n\r\t".contains(c);
            assert!(!text.contains(bare) && !text.contains(['\u{fffe}', '\u{ffff}']), "{name}");
        }
    }
}

#[test]
fn two_swept_parameters_make_colored_matrices_and_lines() {
    let parts = of(&plane());
    let sheets = sheets(&parts);
    let matrix = sheets.iter().filter(|name| name.ends_with(" matrix")).count();
    assert_eq!(matrix, fixture::TESTS.len(), "{sheets:?}");
    let write = sheet(&parts, "write matrix");
    // Five filesystems were measured.
    assert_eq!(write.matches("<colorScale>").count(), 5, "{write}");
    let scale = write.split("<colorScale>").nth(1).unwrap();
    assert!(scale.contains("type=\"num\""), "all filesystems have one scale: {scale:.300}");
    let charts = parts.iter().filter(|(name, _)| name.starts_with("xl/charts/chart"));
    assert_eq!(charts.clone().count(), 5 * fixture::TESTS.len());
    for (name, chart) in charts {
        assert!(chart.contains("<c:lineChart>") && chart.contains("is better"), "{name}");
        assert!(!chart.contains("#REF"), "{name}");
    }
}

#[test]
fn a_sweep_is_a_sheet_with_a_line_and_intervals_for_each_filesystem() {
    let record = fixture::with_records(&[64, 128, 256, 512].map(Bytes::kib), "sweep");
    let parts = of(&record);
    let charts: Vec<&(String, String)> =
        parts.iter().filter(|(name, _)| name.starts_with("xl/charts/chart")).collect();
    assert_eq!(charts.len(), fixture::TESTS.len());
    let first = &charts[0].1;
    assert_eq!(first.matches("<c:ser>").count(), 5);
    assert_eq!(first.matches("<c:errBars>").count(), 5);
    let drawing = part(&parts, "xl/drawings/drawing1.xml");
    assert!(drawing.contains(" descr=\""), "{drawing}");
    assert!(sheet(&parts, "write by block_size").contains("<drawing "));
}

#[test]
fn more_tables_than_sheets_are_listed() {
    let sizes: Vec<Bytes> = (0..12).map(|power| Bytes::kib(1 << power)).collect();
    let mut record = fixture::with_records(&sizes, "many");
    record.trials.retain(|trial| trial.repetition < 1);
    let parts = of(&record);
    assert!(sheets(&parts).len() <= SHEETS_MAX + 2, "{}", sheets(&parts).len());
    assert!(part(&parts, "xl/sharedStrings.xml").contains("more tables have no separate sheet"));
}
