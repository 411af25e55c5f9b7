use analysis::runs::{self, GateRule, Pairs, Way};
use model::{Ratio, Warning, record::Outcome};

use super::*;
use crate::{TerminalOptions, fixture};

/// The made-up run, and one of another kernel in which xfs writes at random 12 % slower.
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

fn gated(how: Pairs) -> Pairs {
    let rule = GateRule { threshold: Ratio(0.05), strict: false };
    Pairs { gate: Some(rule), ..how }
}

/// All three forms.
fn forms(runs: &[RunRecord], how: &Pairs) -> [String; 3] {
    let runs: Vec<&RunRecord> = runs.iter().collect();
    let chain = runs::chain(&runs, how).unwrap();
    let options = TerminalOptions { width: 100, color: false, detail: false };
    [terminal(&runs, &chain, &options), markdown(&runs, &chain), json(&runs, &chain)]
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_regression_is_told_with_everything_it_takes() {
    let [text, markdown, json] = forms(&two(), &gated(Pairs::default()));
    let until = text.find("xfs · iozone record=1MiB · durable").unwrap();
    expect_test::expect![[r#"
        A  2026-11-21-203100-k3x9 (Five filesystems & one that is <not> here)
        B  2026-11-22-101500-b7q2 (Five filesystems & one that is <not> here)

        Worse than the gate allows
        ▼ B against A: xfs, iozone record=1MiB, random-write, durable throughput
        ▼ B against A: xfs, iozone record=4MiB, random-write, durable throughput

        B against A: kernel 6.18.2 -> 6.19.1

        Findings
        ▼ Durable throughput of xfs, iozone record=1MiB, random-write regressed by 12.0
          % [9.7, 14.3] from A to B (kernel 6.18.2 -> 6.19.1); n = 8 and 8, Holm over
          117 tests.
        ▼ Durable throughput of xfs, iozone record=4MiB, random-write regressed by 12.0
          % [9.8, 14.1] from A to B (kernel 6.18.2 -> 6.19.1); n = 8 and 8, Holm over
          117 tests.
        Intervals of listed tests are at 99.91 %, so that of all that are listed 95 %
        hold.

        115 of 117 tests were the same within 5 %.
        All 117 tests together: ×0.9978 [0.9961, 0.9996] (geometric mean, above 1 is
          better, these tests); 0 better, 2 worse, 115 the same, 0 small, 0 open; from
          ×0.880 (xfs · iozone record=1MiB · random-write) to ×1.000 (ext4 · iozone
          record=1MiB · write).
        Differences count from δ = 5 % on; no twins were measured to tell what chance
          makes of them.

        ext4 · iozone record=1MiB · durable throughput, higher is better ↑
         test            A, GiB/s  B, GiB/s  change [interval]    n             gate
         write           0.4049    0.4049    +0.0 % [-0.3, +0.3]  8, 8  = same  ok
         rewrite         0.4415    0.4415    +0.0 % [-0.9, +1.0]  8, 8  = same  ok
         random-write    0.3568    0.3568    +0.0 % [-0.9, +0.9]  8, 8  = same  ok
         record-rewrite  2.783     2.783     +0.0 % [-0.8, +0.8]  8, 8  = same  ok
         fwrite          0.3957    0.3957    +0.0 % [-0.9, +0.9]  8, 8  = same  ok
         frewrite        0.4380    0.4380    +0.0 % [-0.8, +0.8]  8, 8  = same  ok

        ext4 · iozone record=1MiB · throughput, higher is better ↑
         test           A, GiB/s  B, GiB/s  change [interval]    n             gate
         read           2.033     2.033     +0.0 % [-0.9, +0.9]  8, 8  = same  ok
         reread         1.936     1.936     +0.0 % [-0.9, +0.9]  8, 8  = same  ok
         random-read    1.2933    1.2933    +0.0 % [-0.5, +0.5]  8, 8  = same  ok
         backward-read  0.9922    0.9922    +0.0 % [-0.7, +0.7]  8, 8  = same  ok
         strided-read   1.0613    1.0613    +0.0 % [-0.9, +0.9]  8, 8  = same  ok
         fread          1.744     1.744     +0.0 % [-0.8, +0.8]  8, 8  = same  ok
         freread        1.852     1.852     +0.0 % [-0.8, +0.8]  8, 8  = same  ok

    "#]]
    .assert_eq(&text[..until]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let sentence = "of xfs, iozone record=1MiB, random-write regressed by 12.0 % [";
    assert!(joined(&text).contains(sentence) && markdown.contains(&sentence.replace('[', "\\[")));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["schema"], &json["gate"]["verdict"]), (&1.into(), &"failed".into()));
    assert_eq!(json["steps"][0]["ways"][0]["way"], "kernel");
    let tests = json["steps"][0]["tests"].as_array().unwrap();
    let worse = tests.iter().filter(|test| test["gate"] == "worse").count();
    assert_eq!(worse, 2);
    assert_eq!(tests[0]["unit"], "bytes_per_second");
}

#[test]
fn two_ways_make_no_sentence_unless_allowed() {
    let mut runs = two();
    runs[1].environment.set("cpu.model", "Another CPU");
    let [text, markdown, _] = forms(&runs, &gated(Pairs::default()));
    for text in [joined(&text), joined(&markdown)] {
        assert!(!text.contains("regressed") && !text.contains("▼"), "{text}");
        assert!(
            text.contains("No claims: they differ in 2 ways at once (kernel,machine)"),
            "{text}"
        );
        assert!(text.contains("--allow kernel,machine"), "{text}");
        assert!(text.contains("all together"), "{text}");
        assert!(text.contains("gate 5 %: the runs cannot be compared"), "{text}");
    }
    let how = gated(Pairs { allow: vec![Way::Kernel, Way::Machine], ..Pairs::default() });
    let [text, ..] = forms(&runs, &how);
    let both = "(kernel 6.18.2 -> 6.19.1 and machine: cpu.model Example CPU 8-Core -> Another CPU, \
                all together)";
    assert!(joined(&text).contains(both), "{text}");
}

#[test]
fn imports_are_never_claimed() {
    let mut runs = two();
    runs[0].warnings.push(Warning::Imported { program: "bonnie++ 1.98".into() });
    let [text, ..] = forms(&runs, &gated(Pairs::default()));
    let text = joined(&text);
    assert!(text.contains("the first run was imported from bonnie++ 1.98"), "{text}");
    assert!(!text.contains("regressed") && text.contains("cannot be compared"), "{text}");
}

#[test]
fn what_fails_or_is_gone_is_named_in_the_closing_line() {
    let mut runs = two();
    let kept = runs[1].cells.iter().position(|cell| cell.cell.filesystem.name == "ext4").unwrap();
    runs[1].trials.iter_mut().filter(|trial| trial.cell == kept).for_each(|trial| {
        trial.outcome = Outcome::Failed { reason: "no space".into() };
        trial.samples.clear();
    });
    let last = runs[1].cells.len() - 1;
    let gone = runs[1].cells.pop().unwrap();
    runs[1].trials.retain(|trial| trial.cell < last);
    let [text, markdown, json] = forms(&runs, &gated(Pairs::default()));
    let (text, markdown) = (joined(&text), joined(&markdown));
    assert!(text.contains("tests fail now and did not before (ext4 · iozone"), "{text}");
    assert!(markdown.contains("fail now and did not before"), "{markdown}");
    let name = format!("second ({} · ", gone.cell.filesystem.name);
    assert!(text.contains(&name), "{name} {text}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["gate"]["verdict"], "failed");
    assert_eq!(json["gate"]["vanished"][0]["tests"], json["gate"]["failed"][0]["tests"]);
}

#[test]
fn a_disagreement_is_named_and_has_no_cure() {
    let mut runs = two();
    // The second run has two modes, so that the mean of its logarithms is none of its values.
    for trial in runs[1].trials.iter_mut().filter(|trial| trial.repeat % 2 == 1) {
        for sample in trial.samples.iter_mut().filter(|sample| sample.phase == "read") {
            sample.value *= if trial.repeat % 4 == 1 { 0.2 } else { 0.85 };
        }
    }
    let [text, ..] = forms(&runs, &Pairs::default());
    let text = joined(&text);
    let at =
        text.find("iozone record=1MiB, read, throughput: ").unwrap_or_else(|| panic!("{text}"));
    let said = &text[at..text[at..].find(" ? ").map_or(text.len(), |end| at + end)];
    assert!(said.contains("says 0.") && !said.contains("would decide"), "{said}");
}

#[test]
fn hostile_names_stay_text() {
    let mut runs = two();
    for run in &mut runs {
        run.info.title = "a\u{1b}[31m|b\n# c".into();
        for cell in &mut run.cells {
            cell.label = "x\u{1b}[2J|<b>".into();
        }
    }
    let [text, markdown, _] = forms(&runs, &Pairs::default());
    assert!(!text.contains('\u{1b}') && !markdown.contains('\u{1b}'));
    assert!(!markdown.contains("\n# c") && !markdown.contains("|<b>"));
}

#[test]
fn forbidden_words_are_not_used() {
    for text in forms(&two(), &gated(Pairs::default())) {
        for word in ["significant", "real-world", "up to ×", "no difference between"] {
            assert!(!text.contains(word), "{word}");
        }
    }
}

#[test]
fn runs_have_letters_and_then_numbers() {
    assert_eq!([0, 25, 26].map(name), ["A", "Z", "R27"]);
    assert_eq!([0.05, 0.025, 0.1].map(words::limit), ["5 %", "2.5 %", "10 %"]);
}

#[test]
fn the_json_is_what_its_schema_says_and_nothing_else() {
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
        for how in [Pairs::default(), gated(Pairs::default())] {
            let [.., json] = forms(runs, &how);
            let wrong = fixture::schema::wrong(schema, &json);
            assert!(wrong.is_empty(), "{wrong:#?}");
        }
    }
}
