use analysis::runs::{self, Aspect, CompareOptions, GateRule};
use model::{Ratio, Warning, record::Outcome};

use super::*;
use crate::{TerminalOptions, fixture};

/// The fixture, and a run on another kernel in which random writes on xfs are 12 % slower.
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

/// All three formats.
fn forms(runs: &[RunRecord], how: &CompareOptions) -> [String; 3] {
    let runs: Vec<&RunRecord> = runs.iter().collect();
    let chain = runs::chain(&runs, how).unwrap();
    let options = TerminalOptions { width: 100, color: false, detail: false };
    [terminal(&runs, &chain, &options), markdown(&runs, &chain), json(&runs, &chain)]
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_regression_is_reported_with_effect_size_n_and_adjustment() {
    let [text, markdown, json] = forms(&two(), &gated(CompareOptions::default()));
    let until = text.find("xfs · iozone block_size=1MiB · durable").unwrap();
    expect_test::expect![[r#"
        A  2026-11-21-203100-k3x9 (Five filesystems & one that is <not> here)
        B  2026-11-22-101500-b7q2 (Five filesystems & one that is <not> here)

        Gate failures
        ▼ B vs. A: xfs, iozone block_size=1MiB, random-write, durable throughput
        ▼ B vs. A: xfs, iozone block_size=4MiB, random-write, durable throughput

        B vs. A: kernel 6.18.2 -> 6.19.1

        Findings
        ▼ Durable throughput of xfs, iozone block_size=1MiB, random-write regressed by
          12.0 % [9.7, 14.3] from A to B (kernel 6.18.2 -> 6.19.1); n = 8 and 8,
          Holm-adjusted over 117 tests.
        ▼ Durable throughput of xfs, iozone block_size=4MiB, random-write regressed by
          12.0 % [9.8, 14.1] from A to B (kernel 6.18.2 -> 6.19.1); n = 8 and 8,
          Holm-adjusted over 117 tests.
        Confidence level of the intervals: 99.91 %, for a false coverage rate of 5 %.

        115 of 117 tests are equivalent within 5 %.
        All 117 tests: ×0.9978 [0.9961, 0.9996] (geometric mean, above 1 is better); 0
          better, 2 worse, 115 equivalent, 0 negligible, 0 inconclusive; range ×0.880
          (xfs · iozone block_size=1MiB · random-write) to ×1.000 (ext4 · iozone
          block_size=1MiB · write).
        Equivalence margin δ = 5 %; no A/A control in these runs.

        ext4 · iozone block_size=1MiB · durable throughput, higher is better ↑
         test          A, GiB/s  B, GiB/s  change        n                  gate
                                           [interval]
         write         0.4049    0.4049    +0.0 %        8, 8  =            non-inferio
                                           [-0.3, +0.3]        equivalent   r
         rewrite       0.4415    0.4415    +0.0 %        8, 8  =            non-inferio
                                           [-0.9, +1.0]        equivalent   r
         random-write  0.3568    0.3568    +0.0 %        8, 8  =            non-inferio
                                           [-0.9, +0.9]        equivalent   r
         record-rewri  2.783     2.783     +0.0 %        8, 8  =            non-inferio
         te                                [-0.8, +0.8]        equivalent   r
         fwrite        0.3957    0.3957    +0.0 %        8, 8  =            non-inferio
                                           [-0.9, +0.9]        equivalent   r
         frewrite      0.4380    0.4380    +0.0 %        8, 8  =            non-inferio
                                           [-0.8, +0.8]        equivalent   r

        ext4 · iozone block_size=1MiB · throughput, higher is better ↑
         test          A, GiB/s  B, GiB/s  change        n                  gate
                                           [interval]
         read          2.033     2.033     +0.0 %        8, 8  =            non-inferio
                                           [-0.9, +0.9]        equivalent   r
         reread        1.936     1.936     +0.0 %        8, 8  =            non-inferio
                                           [-0.9, +0.9]        equivalent   r
         random-read   1.2933    1.2933    +0.0 %        8, 8  =            non-inferio
                                           [-0.5, +0.5]        equivalent   r
         backward-rea  0.9922    0.9922    +0.0 %        8, 8  =            non-inferio
         d                                 [-0.7, +0.7]        equivalent   r
         strided-read  1.0613    1.0613    +0.0 %        8, 8  =            non-inferio
                                           [-0.9, +0.9]        equivalent   r
         fread         1.744     1.744     +0.0 %        8, 8  =            non-inferio
                                           [-0.8, +0.8]        equivalent   r
         freread       1.852     1.852     +0.0 %        8, 8  =            non-inferio
                                           [-0.8, +0.8]        equivalent   r

    "#]]
    .assert_eq(&text[..until]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let finding = " random-write regressed by 12.0 % [";
    assert!(joined(&text).contains(finding) && markdown.contains(&finding.replace('[', "\\[")));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["schema"], &json["gate"]["verdict"]), (&1.into(), &"failed".into()));
    assert_eq!(json["steps"][0]["aspects"][0]["aspect"], "kernel");
    let tests = json["steps"][0]["tests"].as_array().unwrap();
    let worse = tests.iter().filter(|test| test["gate"] == "worse").count();
    assert_eq!(worse, 2);
    assert_eq!(tests[0]["unit"], "bytes_per_second");
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
    assert!(!text.contains("regressed") && text.contains("not comparable"), "{text}");
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

#[test]
fn a_disagreement_has_no_hint_to_run_more_repetitions() {
    let mut runs = two();
    // The second run is bimodal, so the mean of its logarithms is not near any value.
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
