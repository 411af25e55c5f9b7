use analysis::runs::{self, Aspect, CompareOptions, GateRule};
use model::{Ratio, Warning, record::Outcome};

use super::*;
use crate::{TerminalOptions, fixture};

/// Fixture, and a run on another kernel in which random writes on xfs are 12 % slower.
fn two() -> [RunRecord; 2] {
    let first = fixture::record();
    let mut second = fixture::record();
    second.info.id = "2026-11-22-101500-b7q2".into();
    second.environment.set("kernel.release", "6.19.1");
    let xfs = |cell: usize| second.cells[cell].cell.filesystem.name == "xfs";
    let cells: Vec<bool> = (0..second.cells.len()).map(xfs).collect();
    let own = second.trials.iter_mut().filter(|trial| cells[trial.cell]);
    for sample in own.flat_map(|trial| &mut trial.samples) {
        if sample.phase == "random-write" {
            sample.value *= 0.88;
        }
    }
    [first, second]
}

fn gated(how: CompareOptions) -> CompareOptions {
    let rule = GateRule { margin: Ratio(0.05), strict: false };
    CompareOptions { gate: Some(rule), ..how }
}

/// Terminal text, Markdown, and JSON of a comparison.
fn forms(runs: &[RunRecord], how: &CompareOptions) -> [String; 3] {
    let runs: Vec<&RunRecord> = runs.iter().collect();
    let chain = runs::chain(&runs, how).unwrap();
    let options = TerminalOptions { width: 100, color: false, detail: false };
    [terminal(&runs, &chain, &options), markdown(&runs, &chain), json(&runs, &chain)]
}

fn chain(runs: &[RunRecord; 2], how: &CompareOptions) -> Chain {
    runs::chain(&[&runs[0], &runs[1]], how).unwrap()
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_regression_is_reported_with_effect_size_n_and_adjustment() {
    let [text, markdown, json] = forms(&two(), &gated(CompareOptions::default()));
    let until = text.find(" read on ext4").unwrap();
    expect_test::expect![[r#"
        B vs. A: kernel 6.18.2 -> 6.19.1
        FAIL gate 5 %: random-write on xfs -12.0 % [-14.1, -9.8], and 1 more.
        A: 2026-11-21-203100-k3x9 (Five filesystems & one that is <not> here)
        B: 2026-11-22-101500-b7q2 (Five filesystems & one that is <not> here)
        gate 5 %: failed; 2 of 130 tests significantly worse by more than 5 %; 102 of
        130 tests non-inferior, 26 inconclusive (accepted if any test of the step is
        conclusive)
        ────────────────────────────────────────────────────────────────────────────
         test                          A       B   change            result
        ────────────────────────────────────────────────────────────────────────────
         random-write on xfs,      429.2   377.7   -12.0 % [-14.3,   ▼ worse
         1MiB, MiB/s                               -9.7]
         random-write on xfs,      496.9   437.3   -12.0 % [-14.1,   ▼ worse
         4MiB, MiB/s                               -9.8]
         write on ext4, 1MiB,      414.6   414.6   +0.0 % [-0.3,     = non-inferior
         MiB/s                                     +0.3]
         rewrite on ext4, 1MiB,    452.1   452.1   +0.0 % [-0.9,     = non-inferior
         MiB/s                                     +1.0]
    "#]]
    .assert_eq(&text[..until]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let finding = " random-write regressed by 12.0 % [";
    assert!(joined(&text).contains(finding), "{text}");
    assert!(markdown.contains("FAIL gate 5 %: random-write on xfs -12.0 % \\[-14."), "{markdown}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["schema"], &json["gate"]["verdict"]), (&1.into(), &"failed".into()));
    assert_eq!(json["steps"][0]["aspects"][0]["aspect"], "kernel");
    let tests = json["steps"][0]["tests"].as_array().unwrap();
    let worse = tests.iter().filter(|test| test["gate"] == "worse").count();
    assert_eq!(worse, 2);
    assert_eq!(tests[0]["unit"], "bytes_per_second");
}

/// Two runs of twenty tests.
fn twenty() -> [RunRecord; 2] {
    two().map(|mut run| {
        let xfs = |cell: &model::record::CellRecord| cell.cell.filesystem.name == "xfs";
        let kept: Vec<usize> = (0..run.cells.len()).filter(|at| xfs(&run.cells[*at])).collect();
        run.cells.retain(xfs);
        run.cells.iter_mut().for_each(|cell| drop(cell.phases.drain(..3)));
        run.trials.retain(|trial| kept.contains(&trial.cell));
        for trial in &mut run.trials {
            trial.cell = kept.iter().position(|cell| *cell == trial.cell).unwrap();
        }
        run
    })
}

#[test]
fn a_mail_about_twenty_tests_has_forty_lines() {
    let [text, mail, _] = forms(&twenty(), &gated(CompareOptions::default()));
    assert_eq!(mail.lines().filter(|line| line.contains(" on xfs, ")).count(), 20, "{mail}");
    assert!(mail.lines().count() <= 40, "{mail}");
    let verdict = mail.lines().position(|line| line.starts_with("FAIL gate 5 %")).unwrap();
    let table = mail.lines().position(|line| line.starts_with("| test |")).unwrap();
    let condition = mail.lines().position(|line| line.starts_with("- kernel.release")).unwrap();
    assert!(verdict < table && table < condition, "{mail}");
    // There is one table, although one of its rows has more than 80 columns.
    assert_eq!(text.matches("\n test ").count(), 1, "{text}");
}

#[test]
fn undecided_tests_are_not_reported_as_no_difference() {
    let mut runs = twenty();
    runs[0].trials.retain(|trial| trial.repetition < 8);
    runs[1].trials.retain(|trial| trial.repetition < 4);
    for sample in runs[1].trials.iter_mut().flat_map(|trial| &mut trial.samples) {
        sample.value *= 0.5;
    }
    let page = html(&[&runs[0], &runs[1]], &chain(&runs, &CompareOptions::default()));
    let [text, mail, _] = forms(&runs, &CompareOptions::default());
    for text in [text, mail, page] {
        assert!(text.contains("Inconclusive in 20 of 20 tests: random-write on xfs -5"), "{text}");
        assert!(joined(&text).contains("n = 8 and 4"), "{text}");
        for wrong in ["o significant difference", "o difference", "quivalent within"] {
            assert!(!text.contains(wrong), "{wrong}: {text}");
        }
    }
}

#[test]
fn a_page_has_the_verdict_the_chart_and_a_row_for_each_test() {
    let mut runs = two();
    runs[1].info.title = "<img src=x onerror=alert(1)>\u{1b}".into();
    let chain = chain(&runs, &gated(CompareOptions::default()));
    let page = html(&[&runs[0], &runs[1]], &chain);
    assert_eq!(page, html(&[&runs[0], &runs[1]], &chain), "the same bytes");
    let headline = page.find("<p class=\"headline\">FAIL gate 5 %: random-write on xfs").unwrap();
    let chart = page.find("<svg class=\"chart\"").unwrap();
    let table = page.find("<table").unwrap();
    let findings = page.find("<h2 id=\"step-0-findings-h\">").unwrap();
    assert!(headline < chart && chart < table && table < findings);
    assert_eq!(page.matches("<th scope=\"row\">random-write on ").count(), 10);
    assert!(page.contains("▼ worse") && page.contains("shaded: within ±5 %"));
    assert!(!page.contains("<img") && !page.contains('\u{1b}') && !page.contains("<script"));
    assert!(!page.contains("href=\"http") && !page.contains(" src=\""), "no network");
}

#[test]
fn a_report_has_what_changed_since_the_previous_run() {
    let [previous, run] = two();
    let mut view = crate::View::new(&run);
    let options = TerminalOptions { width: 80, color: false, detail: true };
    let texts = |view: &crate::View| {
        [crate::html(view, &[]), crate::markdown(view), crate::terminal(view, &options)]
    };
    assert!(texts(&view).iter().all(|text| !text.contains("Since the last run")));
    view.compare_with(&previous, &run);
    for text in texts(&view) {
        let text = joined(&text);
        let section = text.find("Since the last run of this plan").unwrap_or_else(|| panic!());
        let verdict = "2 of 117 tests worse (random-write on xfs -12.0 % ";
        let said = text.find(verdict).unwrap_or_else(|| panic!("{}", &text[section..][..500]));
        assert!(section < said);
        assert!(text.contains("kernel.release (severe): 6.18.2 -"), "the condition that differs");
    }
}

#[test]
fn cpu_time_and_amplification_are_next_to_the_change() {
    let mut runs = twenty();
    for (run, factor) in runs.iter_mut().zip([1.0, 2.0]) {
        for trial in &mut run.trials {
            let own = trial.samples.iter().filter(|sample| sample.phase == "random-write");
            let mut own: Vec<_> = own.take(1).cloned().collect();
            own[0].metric = model::Metric::WriteAmplification;
            own[0].value = 1.5 * factor;
            trial.samples.extend(own);
        }
    }
    let page = html(&[&runs[0], &runs[1]], &chain(&runs, &CompareOptions::default()));
    assert!(page.contains(">write amplification</th>"));
    let row = page.split("<th scope=\"row\">random-write").nth(1).unwrap();
    let row = row.split("</tr>").next().unwrap();
    assert!(row.contains("3.00 × (+100 %)"), "{row}");
    assert!(!page.contains(">CPU time per operation</th>"), "not measured");
}

#[test]
fn two_aspects_withhold_findings_unless_allowed() {
    let mut runs = two();
    runs[1].environment.set("cpu.model", "Another CPU");
    let [text, markdown, _] = forms(&runs, &gated(CompareOptions::default()));
    for text in [joined(&text), joined(&markdown)] {
        assert!(!text.contains("regressed") && !text.contains("▼"), "{text}");
        assert!(text.contains("No findings: ") && text.contains("(kernel,machine)"), "{text}");
        assert!(text.contains("--allow-differences kernel,machine"), "{text}");
        assert!(text.contains("combined"), "{text}");
        assert!(text.contains("gate 5 %: the runs are not comparable"), "{text}");
    }
    let how = gated(CompareOptions {
        allow: vec![Aspect::Kernel, Aspect::Machine],
        ..CompareOptions::default()
    });
    let [text, ..] = forms(&runs, &how);
    let both = "(kernel 6.18.2 -> 6.19.1 and machine: cpu.model Example CPU 8-Core -> Another CPU, \
                combined)";
    assert!(joined(&text).contains(both), "{text}");
}

#[test]
fn imported_runs_have_no_findings() {
    let mut runs = two();
    runs[0].warnings.push(Warning::Imported { program: "bonnie++ 1.98".into() });
    let [text, ..] = forms(&runs, &gated(CompareOptions::default()));
    let text = joined(&text);
    assert!(text.contains("the first run was imported from bonnie++ 1.98"), "{text}");
    assert!(!text.contains("regressed") && text.contains("gate 5 %: inconclusive"), "{text}");
    assert!(text.contains("use --allow-differences unknown"), "{text}");
    let allow = vec![Aspect::Unknown];
    let [text, ..] = forms(&runs, &gated(CompareOptions { allow, ..CompareOptions::default() }));
    let text = joined(&text);
    let findings = text.matches("regressed").count() + text.matches("improved").count();
    assert!(findings > 0, "{text}");
    let ends = text.matches("; other conditions are not recorded.").count();
    assert!(ends >= findings && !text.contains("No findings"), "{text}");
}

#[test]
fn the_gate_names_failing_and_missing_tests() {
    let mut runs = two();
    let kept = runs[1].cells.iter().position(|cell| cell.cell.filesystem.name == "ext4").unwrap();
    runs[1].trials.iter_mut().filter(|trial| trial.cell == kept).for_each(|trial| {
        trial.outcome = Outcome::Failed { reason: "no space".into() };
        trial.samples.clear();
    });
    let last = runs[1].cells.len() - 1;
    let missing = runs[1].cells.pop().unwrap();
    runs[1].trials.retain(|trial| trial.cell < last);
    let [text, markdown, json] = forms(&runs, &gated(CompareOptions::default()));
    let (text, markdown) = (joined(&text), joined(&markdown));
    assert!(text.contains(" newly failing (ext4 · iozone"), "{text}");
    assert!(markdown.contains(" newly failing "), "{markdown}");
    let name = format!("missing ({} · ", missing.cell.filesystem.name);
    assert!(text.contains(&name), "{name} {text}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["gate"]["verdict"], "failed");
    assert_eq!(json["gate"]["missing"][0]["tests"], json["gate"]["failed"][0]["tests"]);
}

/// A warning blocks a test on xfs, then also tests on other filesystems, with other values.
#[test]
fn reasons_of_tests_that_are_not_compared_are_below_the_table() {
    let mut runs = two();
    let mut warn = |trials: &dyn Fn(usize) -> bool| {
        let run = &mut runs[0];
        for trial in run.trials.iter_mut().filter(|trial| trials(trial.cell)) {
            let range = Ratio(0.9 + trial.cell as f64 / 100.0);
            let warning = Warning::NotSteadyState { range, slope: Ratio(0.4) };
            trial.warnings.push((Some("random-write".into()), warning));
        }
        joined(&forms(&runs, &CompareOptions::default())[0])
    };
    let one = warn(&|cell| cell == 1);
    let reason = "is not compared: the first run has the warning not-steady-state: no steady state";
    assert!(one.contains(reason), "{one}");
    let all = warn(&|cell| cell != 1);
    assert!(all.contains(" tests are not compared: not-steady-state"), "{all}");
    assert!(!all.contains(reason), "{all}");
}

#[test]
fn a_limit_of_one_run_is_not_set_in_the_other() {
    let mut runs = two();
    let limit = "memory.limit_bytes";
    runs.iter_mut().for_each(|run| run.environment.0.retain(|name, _| name != limit));
    runs[1].environment.set(limit, "1073741824");
    let [text, ..] = forms(&runs, &CompareOptions::default());
    assert!(joined(&text).contains("A not set; B 1073741824"), "{text}");
}

#[test]
fn a_disagreement_has_no_hint_to_run_more_repetitions() {
    let mut runs = two();
    // The values of the second run are in several clusters, so the mean of their logarithms is not
    // near any value.
    for trial in runs[1].trials.iter_mut().filter(|trial| trial.repetition % 2 == 1) {
        for sample in trial.samples.iter_mut().filter(|sample| sample.phase == "read") {
            sample.value *= if trial.repetition % 4 == 1 { 0.2 } else { 0.85 };
        }
    }
    let [text, ..] = forms(&runs, &CompareOptions::default());
    let text = joined(&text);
    let at =
        text.find("iozone block_size=1MiB, read, throughput: ").unwrap_or_else(|| panic!("{text}"));
    let said = &text[at..text[at..].find(" ? ").map_or(text.len(), |end| at + end)];
    assert!(said.contains("disagrees") && !said.contains("would detect"), "{said}");
}

#[test]
fn hostile_names_are_escaped() {
    let mut runs = two();
    for run in &mut runs {
        run.info.title = "a\u{1b}[31m|b\n# c".into();
        for cell in &mut run.cells {
            cell.label = "x\u{1b}[2J|<b>".into();
        }
    }
    let [text, markdown, _] = forms(&runs, &CompareOptions::default());
    assert!(!text.contains('\u{1b}') && !markdown.contains('\u{1b}'));
    assert!(!markdown.contains("\n# c") && !markdown.contains("|<b>"));
}

#[test]
fn forbidden_words_are_not_used() {
    for text in forms(&two(), &gated(CompareOptions::default())) {
        for word in ["real-world", "up to ×", "no difference between"] {
            assert!(!text.contains(word), "{word}");
        }
    }
}

#[test]
fn runs_have_letters_and_then_numbers() {
    assert_eq!([0, 25, 26].map(name), ["A", "Z", "R27"]);
    assert_eq!([0.05, 0.025, 0.1].map(phrases::limit), ["5 %", "2.5 %", "10 %"]);
}

#[test]
fn the_json_matches_its_schema() {
    let schema = include_str!("../../../../docs/schemas/comparison-1.json");
    let mut lost = two();
    let last = lost[1].cells.len() - 1;
    lost[1].cells.pop();
    lost[1].trials.retain(|trial| trial.cell < last);
    let mut imported = two();
    imported[0].warnings.push(Warning::Imported { program: "bonnie++ 1.98".into() });
    let [first, second] = two();
    let mut third = first.clone();
    third.info.id = "2026-11-22-111500-c8r3".into();
    for runs in [&two()[..], &lost, &imported, &[first, second, third]] {
        for how in [CompareOptions::default(), gated(CompareOptions::default())] {
            let [.., json] = forms(runs, &how);
            let wrong = fixture::schema::wrong(schema, &json);
            assert!(wrong.is_empty(), "{wrong:#?}");
        }
    }
}
