//! Reports in a browser: `tests/browser/check.mjs` checks the pages in Chromium. Screenshots and
//! PDF files are saved in `target/browser`.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use model::record::Outcome;
use serde_json::{Value, json};

use crate::{
    hostile, made,
    support::{Bench, root, skipped},
};

/// Paths of the browser on Debian and other distributions.
const BROWSERS: [&str; 4] = [
    "/usr/bin/chromium",
    "/usr/bin/chromium-browser",
    "/usr/bin/google-chrome",
    "/snap/bin/chromium",
];

/// Path of the browser, or the missing requirement of the check.
fn browser() -> Result<PathBuf, String> {
    let chosen = env::var_os("FSLAB_CHROMIUM").map(PathBuf::from);
    let found =
        chosen.or_else(|| BROWSERS.map(PathBuf::from).into_iter().find(|path| path.exists()));
    let chromium = found.ok_or("chromium")?;
    let node = Command::new("node").arg("--version").output().map_err(|_| "node")?;
    let version = String::from_utf8_lossy(&node.stdout).trim().to_owned();
    let major = version.trim_start_matches('v').split('.').next();
    if major.and_then(|major| major.parse::<u32>().ok()).is_none_or(|major| major < 20) {
        return Err(format!("node 20 or newer (there is {version})"));
    }
    for module in ["playwright-core", "axe-core"] {
        if !root().join("tests/browser/node_modules").join(module).exists() {
            return Err(format!("{module} (scripts/prepare installs it)"));
        }
    }
    Ok(chromium)
}

/// Checks pages. `controls` means that a page has the controls of a report, and values without a
/// ratio.
#[track_caller]
fn check(name: &str, bench: &Bench, pages: &[(&str, PathBuf, bool)]) {
    let chromium = match browser() {
        Ok(chromium) => chromium,
        Err(missing) => return skipped(&format!("browser::{name}"), &missing),
    };
    let artefacts = artefacts();
    fs::create_dir_all(&artefacts).unwrap();
    let page = |(name, file, controls): &(&str, PathBuf, bool)| json!({ "name": name, "file": file, "controls": controls });
    let pages: Vec<Value> = pages.iter().map(page).collect();
    let job = json!({ "chromium": chromium, "artefacts": artefacts, "pages": pages });
    let file = bench.path(&format!("{name}.json"));
    fs::write(&file, job.to_string()).unwrap();
    let output = Command::new("node")
        .arg(root().join("tests/browser/check.mjs"))
        .arg(&file)
        .env("HOME", bench.path("."))
        .env("TMPDIR", bench.path("."))
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    let output: Value =
        serde_json::from_str(&stdout).unwrap_or_else(|_| panic!("{stdout}\n{stderr}"));
    let problems: Vec<&str> =
        output["problems"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(problems.is_empty(), "{} problems:\n{}", problems.len(), problems.join("\n"));
    let looked = |what: &str| output["looked"][what].as_u64().unwrap();
    assert_eq!(looked("pages"), pages.len() as u64);
    // Each page is checked with two color schemes and three widths.
    assert_eq!(looked("views"), 6 * pages.len() as u64);
    assert!(looked("rules") > 10 && looked("values") > 0, "{output}");
}

/// Directory for screenshots, next to that of the binaries.
fn artefacts() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_fslab"));
    binary.parent().and_then(Path::parent).unwrap().join("browser")
}

#[test]
fn reports_of_runs_work_in_a_browser() {
    let bench = Bench::new();
    let record = made::measured(&bench);
    let names = ["ext4", "xfs", "btrfs", "jfs"].map(String::from);
    let mut grown = made::grown(&record, &names, 6);
    // A cell with a failed repetition has values but is not ranked.
    let btrfs = |cell: usize| grown.cells[cell].cell.filesystem.name == "btrfs";
    let failing = grown.trials.iter().position(|trial| btrfs(trial.cell)).unwrap();
    grown.trials[failing].outcome = Outcome::Failed { reason: "no space left".into() };
    made::keep(&grown, &bench.path("grown.fslab"));
    bench.ends(0, &["report", "grown.fslab", "--html", "grown.html"]);
    let page = |name: &'static str, controls| (name, bench.path(&format!("{name}.html")), controls);
    check(
        "reports_of_runs_work_in_a_browser",
        &bench,
        &[page("measured", false), page("grown", true)],
    );
}

#[test]
fn published_results_work_in_a_browser() {
    let bench = Bench::new();
    let mut pages = Vec::new();
    for name in ["tasks-2006", "bonnie-2012", "iozone-2009"] {
        let file = bench.path(&format!("{name}.html"));
        let path = file.display().to_string();
        bench.ends(0, &["report", &format!("{name}@published"), "--html", &path]);
        pages.push((name, file, false));
    }
    check("published_results_work_in_a_browser", &bench, &pages);
}

#[test]
fn hostile_text_is_inert_in_a_browser() {
    let bench = Bench::new();
    made::keep(&hostile::run(&bench), &bench.path("hostile.fslab"));
    bench.ends(0, &["report", "hostile.fslab", "--html", "hostile.html"]);
    let page = ("hostile", bench.path("hostile.html"), false);
    check("hostile_text_is_inert_in_a_browser", &bench, &[page]);
}
