//! Hostile text: markup, formulas, and terminal commands, in titles, names, environment facts,
//! reasons, and imported records, in every output.

mod streams;

use std::{collections::BTreeSet, fs, path::Path};

use model::{RunRecord, Warning, record::Outcome};

use crate::{made, support::Bench};

/// Hostile texts of all tests.
pub(crate) const TEXTS: [&str; 14] = [
    "<script>alert(1)</script>",
    "\"onmouseover=\"alert(1)",
    "'><img src=x onerror=alert(1)>",
    "</script></style></title></svg><style>*{display:none}</style> url(data:text/html,x)",
    "{{ 7 * 7 }} {% raw %} ]]> --> <!--",
    "=cmd|' /C calc'!A0",
    "+1",
    "-1",
    "@SUM(A1:A9)",
    "\x1b[31mred\x1b[2J\x1b]8;;http://example.org\x07link\x1b]8;;\x07",
    "line\r\nbreak\u{2028}and\u{2029}more\0\u{85}\u{9b}31m",
    "\u{202e}dekcart\u{2066}\u{200f} \u{200b}\u{feff}",
    "`code` **bold** [a](javascript:alert(1)) | pipe \\ &amp; %s ${x} $(x)",
    "'; DROP TABLE run; --",
];

/// All hostile texts in one.
pub(crate) fn all() -> String {
    TEXTS.join(" ")
}

/// Run in which all texts are hostile.
pub(crate) fn run(bench: &Bench) -> RunRecord {
    let measured = made::measured(bench);
    let mut names: Vec<String> = TEXTS.map(String::from).into();
    names.push("x".repeat(10_000));
    names.push("skipped\x1b[31m".into());
    let mut record = made::grown(&measured, &names, 3);
    let info = &mut record.info;
    (info.title, info.plan_name, info.plan_text) = (all(), all(), format!("{}\n{}", all(), all()));
    (info.storage, info.program) = (all(), all());
    info.overrides = TEXTS.map(|text| (text.to_owned(), text.to_owned())).into();
    for (at, text) in TEXTS.into_iter().enumerate() {
        record.environment.set(text, text);
        record.environment.set(format!("host.name.{at}"), text);
        record.environment.set("kernel.release", all());
        record.warnings.push(Warning::SharedStorage { storage: text.into(), directory: false });
    }
    record.environment.set("cpu.model", "x".repeat(10_000));
    for (at, cell) in record.cells.iter_mut().enumerate() {
        let text = TEXTS[at % TEXTS.len()];
        cell.label = format!("{} {text}", cell.label);
        cell.cell.filesystem.mkfs = vec![text.into(), all()];
        cell.cell.filesystem.mount = all();
        cell.id = cell.cell.id();
        if let model::record::CellState::Skipped { reason } = &mut cell.state {
            *reason = all();
        }
    }
    for (at, trial) in record.trials.iter_mut().enumerate() {
        trial.environment.set(TEXTS[at % TEXTS.len()], all());
        if at % 17 == 3 {
            trial.outcome = Outcome::Failed { reason: all() };
        }
        trial.warnings.push((None, Warning::SharedStorage { storage: all(), directory: false }));
    }
    record
}

/// Occurrences of characters that no output may contain unescaped: terminal commands, characters
/// that reorder or hide text (unicode.org/reports/tr9, explicit formatting; CVE-2021-42574), and
/// characters without width.
fn commands(text: &str) -> Vec<String> {
    let bad = |c: char| {
        let turns = matches!(c, '\u{200b}'..='\u{200f}' | '\u{61c}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{ad}');
        (c.is_control() && c != '\n') || turns
    };
    let lines = text.lines().filter(|line| line.chars().any(bad));
    lines.map(|line| line.escape_debug().take(300).collect()).collect()
}

/// Formats of `fslab report`.
fn formats(bench: &Bench) -> Vec<String> {
    let help = bench.ends(0, &["report", "--help"]).stdout;
    let words = ["csv", "json", "md", "xlsx", "parquet", "prometheus", "iozone", "bonnie-1.96"];
    let offered: BTreeSet<&str> =
        help.split(|c: char| !c.is_alphanumeric() && c != '-' && c != '.').collect();
    words.into_iter().filter(|word| offered.contains(word)).map(String::from).collect()
}

#[test]
fn hostile_text_is_escaped_in_all_outputs() {
    let bench = Bench::new();
    let record = run(&bench);
    made::keep(&record, &bench.path("a.fslab"));
    let mut other = record.clone();
    other.info.id = format!("{} again", record.info.id);
    other.environment.set("kernel.release", TEXTS[9]);
    made::keep(&other, &bench.path("b.fslab"));
    let mut outputs: Vec<(String, String)> = Vec::new();
    let mut say = |arguments: &[&str]| {
        let output = bench.ends(0, arguments);
        outputs.push((arguments.join(" "), output.stdout));
        outputs.push((format!("{} (messages)", arguments.join(" ")), output.stderr));
    };
    say(&["report", "a.fslab"]);
    say(&["report", "a.fslab", "--detail"]);
    say(&["explain", "a.fslab"]);
    say(&["explain", "a.fslab", "--format", "json"]);
    say(&["compare", "a.fslab", "b.fslab"]);
    say(&["compare", "a.fslab", "b.fslab", "--format", "md"]);
    say(&["compare", "a.fslab", "b.fslab", "--format", "json"]);
    say(&["report", "a.fslab", "--html", "a.html"]);
    for format in formats(&bench) {
        match format.as_str() {
            "xlsx" | "parquet" => {
                let file = format!("a.{format}");
                bench.ends(0, &["report", "a.fslab", "--format", &format, "-o", &file]);
                assert!(fs::metadata(bench.path(&file)).unwrap().len() > 1000, "{file}");
            }
            // Only runs of suite `bonnie` have this format; imported records are tested below.
            "bonnie-1.96" => {}
            _ => say(&["report", "a.fslab", "--format", &format]),
        }
    }
    for (what, text) in &outputs {
        let plain = match what.rsplit("--format ").next() {
            Some("csv") => text.replace("\r\n", "\n"),
            // The header of that layout contains tabs.
            Some("iozone") => text.replace('\t', " "),
            Some(_) | None => text.clone(),
        };
        let found = commands(&plain);
        assert!(found.is_empty(), "fslab {what}: {} lines, first {}", found.len(), found[0]);
        if what.ends_with("--format json") {
            let json: Result<serde_json::Value, _> = serde_json::from_str(text);
            assert!(json.is_ok_and(|json| json.is_object()), "fslab {what}");
        }
        if what.ends_with("--format csv") {
            table(text);
        }
    }
    page(&fs::read_to_string(bench.path("a.html")).unwrap());
    charts(&bench);
}

/// Checks a CSV table (RFC 4180): every row has the fields of the header, and no field is a
/// formula.
fn table(text: &str) {
    let mut rows = Vec::new();
    let (mut row, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => field.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field).trim_end_matches('\r').to_owned());
                rows.push(std::mem::take(&mut row));
            }
            other => field.push(other),
        }
    }
    assert!(!quoted && row.is_empty() && field.is_empty(), "the table ends within a row");
    let wide = rows[0].len();
    assert!(rows.len() > 100, "{} rows", rows.len());
    for row in &rows {
        assert_eq!(row.len(), wide, "{row:?}");
        for field in row {
            let formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert!(!formula || field.parse::<f64>().is_ok(), "{field} in {row:?}");
        }
    }
}

/// Checks a page: hostile markup is escaped, and there are no event handlers.
fn page(html: &str) {
    assert_eq!(commands(html), Vec::<String>::new());
    for markup in ["<script>alert", "<img", "<!-- ", "</script></style>", "<style>*"] {
        assert!(!html.contains(markup), "{markup}");
    }
    assert!(html.contains("&lt;script&gt;") || html.contains("&#60;script&#62;"));
    // `data:text/csv` is allowed for downloads.
    for scheme in ["javascript:", "data:text/html"] {
        for attribute in ["href", "src", "action", "style"] {
            assert!(!html.contains(&format!("{attribute}=\"{scheme}")), "{attribute} {scheme}");
        }
    }
    assert!(html.contains("Content-Security-Policy\" content=\"default-src 'none'"));
    // Tags have no event handlers.
    let markup = html.split("<script").next().unwrap();
    for tag in markup.split('<').skip(1).filter_map(|rest| rest.split_once('>')) {
        // Quoted text is an attribute value.
        let names: String = tag.0.split('"').step_by(2).collect();
        let handler = |word: &str| word.starts_with("on") && word.contains('=');
        assert!(!names.split_whitespace().any(handler), "{}", tag.0);
    }
    // Nested elements have no class.
    let charts = html.split("<svg class=").skip(1);
    for svg in charts.filter_map(|rest| rest.rsplit_once("</svg>")) {
        well_formed(&format!("<svg class={}</svg>", svg.0));
    }
}

/// Checks XML without a parser: tags nest, and text contains no markup.
fn well_formed(xml: &str) {
    let mut open = Vec::new();
    for piece in xml.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').expect("a tag ends");
        let shown: String = piece.chars().take(200).collect();
        assert!(!text.contains('>'), "markup in text: {shown}");
        for entity in text.split('&').skip(1) {
            let name = entity.split(';').next().unwrap();
            let known =
                ["amp", "lt", "gt", "quot", "apos"].contains(&name) || name.starts_with('#');
            assert!(known, "an ampersand in text: {shown}");
        }
        assert_eq!(tag.matches('"').count() % 2, 0, "quotes of {shown}");
        let name: String = tag.chars().take_while(|c| !c.is_whitespace() && *c != '/').collect();
        match tag.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop().as_deref(), Some(closed.trim()), "{shown}"),
            None if tag.ends_with('/') || tag.starts_with('?') => {}
            None => open.push(name),
        }
    }
    assert_eq!(open, Vec::<String>::new());
}

/// Checks chart files: they are in their directory, and their content is XML.
fn charts(bench: &Bench) {
    if !bench.ends(0, &["report", "--help"]).stdout.contains("--charts") {
        return;
    }
    bench.ends(0, &["report", "a.fslab", "--charts", "charts"]);
    let files: Vec<_> = fs::read_dir(bench.path("charts")).unwrap().map(Result::unwrap).collect();
    assert!(!files.is_empty());
    for file in files {
        let name = file.file_name().into_string().unwrap();
        let safe = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        assert!(name.chars().all(safe) && name.len() <= 255 && !name.starts_with(['-', '.']));
        if Path::new(&name).extension().is_some_and(|end| end == "svg") {
            let svg = fs::read_to_string(file.path()).unwrap();
            assert_eq!(commands(&svg), Vec::<String>::new(), "{name}");
            well_formed(
                svg.split_once("<svg").map(|(_, rest)| format!("<svg{rest}")).unwrap().trim(),
            );
        }
    }
}

#[test]
fn imported_records_and_plans_are_escaped() {
    let bench = Bench::new();
    let record = |name: &str| {
        format!(
            "1.96,1.96,{name},1,1337657098,8G,,582,98,59268,6,30754,3,3515,99,104817,4,306.1,1,512,\
             ,,,,35092,55,520637,91,1054,1,35182,54,791080,100,1664,2,15867us,1456ms,340ms,8997us,\
             50112us,323ms,1232ms,541us,14112ms,1189ms,41us,11701ms\n"
        )
    };
    let names = TEXTS.iter().filter(|text| !text.contains([',', '\n', '\r']));
    let records: String = names.map(|name| record(name)).collect();
    fs::write(bench.path("old.csv"), &records).unwrap();
    let imported = bench.run(&["import", "old.csv"]);
    assert_eq!(commands(&imported.stderr), Vec::<String>::new());
    if imported.status == Some(0) {
        for arguments in [
            &["report", "old.fslab"][..],
            &["report", "old.fslab", "--format", "md"],
            &["report", "old.fslab", "--format", "bonnie-1.96"],
            &["explain", "old.fslab"],
        ] {
            let output = bench.ends(0, arguments);
            assert_eq!(commands(&output.stdout), Vec::<String>::new(), "{arguments:?}");
        }
        bench.ends(0, &["report", "old.fslab", "--html", "old.html"]);
        page(&fs::read_to_string(bench.path("old.html")).unwrap());
    } else {
        assert_eq!(imported.status, Some(2), "{}", imported.stderr);
    }
    // Messages about invalid file names and plans are escaped.
    for text in TEXTS.iter().filter(|text| !text.contains(['\0', '/'])) {
        for command in ["report", "explain", "audit", "import"] {
            let output = bench.run(&[command, "--", text]);
            let (status, stderr) = (output.status, output.stderr);
            assert!(status == Some(2), "{command} {text:?}: {status:?} {stderr}");
            assert_eq!(commands(&stderr), Vec::<String>::new(), "{command} {text:?}");
        }
        fs::write(bench.path("plan.toml"), format!("title = '''{text}'''\n[axes]\nx = 1\n"))
            .unwrap();
        let output = bench.run(&["show", "plan.toml"]);
        assert_eq!(output.status, Some(2), "{text:?}: {}", output.stderr);
        assert_eq!(commands(&output.stderr), Vec::<String>::new(), "{text:?}");
    }
    // Table of a user.
    let cells: String =
        TEXTS.iter().map(|text| format!("\"{}\",1.5\n", text.replace('"', "\"\""))).collect();
    fs::write(bench.path("table.csv"), format!("filesystem,value\n{cells}")).unwrap();
    let output = bench.run(&["audit", "table.csv"]);
    assert!(matches!(output.status, Some(0..=2)), "{}", output.stderr);
    assert_eq!(commands(&output.stdout), Vec::<String>::new());
    assert_eq!(commands(&output.stderr), Vec::<String>::new());
    bench.ends(0, &["list", "filesystems"]);
}
