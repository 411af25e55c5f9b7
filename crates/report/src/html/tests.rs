//! Tests of the HTML page: data for the script, content without script, and untrusted text.

use model::Bytes;
use serde_json::Value;

use super::{Budget, html, page};
use crate::{View, csv, fixture};

/// Text that would be interpreted as markup in every context if it were not escaped.
const HOSTILE: &str = "</script><img src=x onerror=\"alert('1')\">&\u{2028}<!--";

/// Text between `before` and `after`.
fn between<'a>(page: &'a str, before: &str, after: &str) -> &'a str {
    let start = page.find(before).unwrap() + before.len();
    &page[start..start + page[start..].find(after).unwrap()]
}

fn ratios(page: &str) -> Value {
    let json = between(page, "<script type=\"application/json\" id=\"ratios\">", "</script>");
    serde_json::from_str(json).unwrap()
}

/// Fixture with a single block size.
fn small() -> View {
    View::new(&fixture::with_records(&[Bytes::mib(1)], "own"))
}

#[test]
fn page_has_the_data_for_the_script() {
    let view = small();
    let text = html(&view, &[]);
    let policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                  img-src data:";
    assert!(text.contains(&format!("Content-Security-Policy\" content=\"{policy}\"")));
    for id in ["controls", "filter-filesystems", "filter-workload", "baseline", "reset", "shown"] {
        assert!(text.contains(&format!("id: \"{id}\"")), "the script makes {id}");
        assert!(!text.contains(&format!(" id=\"{id}\"")), "without script there is no {id}");
    }
    assert!(text.contains(" class=\"point\" data-point=\"0\""));
    let point = &ratios(&text)["points"][0];
    assert_eq!(
        (&point[0], &point[1]["block_size"]),
        (&"iozone block_size=1MiB".into(), &"1MiB".into())
    );
    for name in ["ext4", "bcachefs"] {
        assert!(text.contains(&format!("<tr data-filesystem=\"{name}\">")), "{name}");
    }
    assert!(!text.contains("<tr data-filesystem=\"jfs\">"), "skipped filesystems have no rows");
    assert!(text.contains("<g data-filesystem=\"ext4\">"));
    // Each ratio of the page refers to a test and a filesystem of the data.
    let data = ratios(&text);
    let tests = data["tests"].as_array().unwrap();
    for of in text.split("data-of=\"").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        let (test, filesystem) = of.split_once('.').unwrap();
        assert!(test.parse::<usize>().unwrap() < tests.len());
        assert!(filesystem.parse::<usize>().unwrap() < view.filesystems.len());
    }
}

#[test]
fn ratios_equal_those_of_the_rankings() {
    let view = small();
    let data = ratios(&html(&view, &[]));
    let tests = view.suites[0].points.iter().flat_map(|point| &point.tests);
    let mut letters = String::new();
    for (test, row) in tests.zip(data["tests"].as_array().unwrap()) {
        assert_eq!(row[0], test.id);
        let family = test.family.as_ref().unwrap();
        assert_eq!(row[2].as_array().unwrap().len(), family.ranking.pairs.len());
        for (pair, row) in family.ranking.pairs.iter().zip(row[2].as_array().unwrap()) {
            let of = |member: usize| test.entries[family.members[member]].filesystem;
            assert_eq!(row[0], of(pair.better));
            assert_eq!(row[1], of(pair.other));
            let ratio = row[2].as_f64().unwrap() / pair.comparison.ratio.0;
            assert!((ratio - 1.0).abs() < 1e-5, "{ratio}");
            let apart = "aun".contains(row[5].as_str().unwrap());
            assert_eq!(apart, pair.is_significant() && !pair.is_contradictory());
            letters.push_str(row[5].as_str().unwrap());
        }
    }
    assert!(letters.contains('a') && letters.contains('n'), "{letters}");
}

#[test]
fn untrusted_text_is_escaped() {
    let mut record = fixture::with_records(&[Bytes::mib(1)], HOSTILE);
    record.info.title = HOSTILE.into();
    record.info.plan_text = HOSTILE.into();
    record.info.id = HOSTILE.into();
    record.environment.set("kernel.release", HOSTILE);
    for cell in &mut record.cells {
        cell.label = HOSTILE.into();
        let word = model::Value::Word(HOSTILE.into());
        cell.cell.workload.parameters.insert("cache".into(), word);
        if cell.cell.filesystem.name == "ext4" {
            cell.cell.filesystem.name = HOSTILE.into();
        }
    }
    let text = html(&View::new(&record), &[]);
    // The end tags of the data and of the script.
    assert_eq!(text.matches("</script>").count(), 2);
    assert!(!text.contains("<img") && !text.contains("onerror=\""));
    let name = ratios(&text)["filesystems"][0].as_str().unwrap().to_owned();
    assert_eq!(name, HOSTILE);
    for place in ["<tr data-filesystem=\"", "data-name=\"", "<g data-filesystem=\"&lt;"] {
        let value = between(&text, place, "\"");
        assert!(!value.contains(['<', '>']), "{value}");
    }
}

#[test]
fn samples_are_embedded_in_small_pages_only() {
    let record = fixture::with_records(&[Bytes::mib(1)], "own");
    let mut view = View::new(&record);
    let text = html(&view, &[]);
    let url = between(&text, "<a download=\"2026-11-21-203100-k3x9.csv\" href=\"", "\"");
    let (head, body) = url.split_once(',').unwrap();
    assert_eq!(head, "data:text/csv;charset=utf-8");
    let mut bytes = Vec::new();
    let mut rest = body.as_bytes();
    while let [first, others @ ..] = rest {
        (bytes, rest) = match first {
            b'%' => {
                let code = std::str::from_utf8(&others[..2]).unwrap();
                bytes.push(u8::from_str_radix(code, 16).unwrap());
                (bytes, &others[2..])
            }
            other => {
                bytes.push(*other);
                (bytes, others)
            }
        };
    }
    assert_eq!(String::from_utf8(bytes).unwrap(), csv(&record));
    assert!(text.len() < 1 << 20, "{}", text.len());
    view.samples.csv = None;
    let text = html(&view, &[]);
    assert!(!text.contains("<a download") && text.contains("samples are not embedded"));
}

#[test]
fn omitted_charts_are_listed_in_place() {
    let view = small();
    let (few, all) = (page(&view, &[], Budget::of(200)), html(&view, &[]));
    let charts = |text: &str| text.matches("<svg class=\"chart").count();
    let missing = charts(&all) - charts(&few);
    assert!(missing > 0 && charts(&few) > 0);
    assert!(few.contains(&format!("<p>{missing} charts and 0 tables omitted")));
    assert!(few.contains(".fslab --charts DIR"));
    let note = "1 chart omitted to limit the file size: <a href=\"#data\">Raw data</a>.";
    assert!(few.contains(note));
    // The tables of omitted charts are kept.
    assert_eq!(few.matches("<table").count(), all.matches("<table").count());
    assert!(!all.contains(" omitted "));
}

#[test]
fn question_names_filesystems_tests_and_parameters() {
    let text = html(&View::new(&fixture::record()), &[]);
    let question = format!("How {}", between(&text, "<p>How ", "</p>"));
    assert_eq!(
        question,
        "How do ext4, xfs, btrfs, f2fs, jfs, and bcachefs compare in 13 tests of iozone \
         (block_size 1MiB, 4MiB)?"
    );
}

/// Limits the size of a page as large as that of the demo, without its samples.
#[test]
fn a_page_like_that_of_the_demo_is_small() {
    let mut view = View::new(&fixture::demo::record());
    view.samples.csv = None;
    let text = html(&view, &[]);
    let charts: Vec<&str> = text.split("<svg class=\"chart").skip(1).collect();
    let bytes = |svg: &&str| svg.find("\n</div>").unwrap();
    let drawn: usize = charts.iter().map(bytes).sum();
    assert!(drawn < 6_000 * charts.len(), "{drawn} bytes of {} charts", charts.len());
    assert!(text.len() < 600_000, "{} bytes", text.len());
}
