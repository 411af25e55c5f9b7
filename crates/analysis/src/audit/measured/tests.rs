use model::metric::Better;

use super::*;
use crate::audit::{By, ChangeKind, End, Need};

fn layout() -> Layout {
    Layout {
        place: vec!["table".into()],
        statistic: Some("metric".into()),
        mean: Some("mean".into()),
        deviation: Some("deviation".into()),
        runs: Some(10),
        repeats: Vec::new(),
        better: Better::Higher,
    }
}

fn cell(filesystem: &str, size: u32, mean: f64, deviation: f64, n: u32) -> Measured {
    let at = [("filesystem", filesystem), ("size", &size.to_string()), ("metric", "mean")];
    Measured {
        at: at.iter().map(|(name, level)| ((*name).into(), (*level).into())).collect(),
        moments: Moments { mean, deviation, n },
    }
}

fn statement(claim: Claim) -> Statement {
    let part = Part {
        claim,
        about: Filter::new(),
        each: Vec::new(),
        by: By::Mean,
        need: Need::All,
        not: false,
        better: None,
    };
    Statement { id: "one".into(), text: "one".into(), parts: vec![part] }
}

fn best(level: &str) -> Statement {
    let axis = "filesystem".into();
    statement(Claim::Extreme { axis, levels: vec![level.into()], end: End::Best, margin: 1.0 })
}

fn change(least: f64, most: f64) -> Statement {
    let trend = ChangeKind::Between(least, most);
    let (from, to) = ("1".into(), "4".into());
    statement(Claim::Change { axis: "size".into(), from, to, trend })
}

fn verdict(cells: &[Measured], statement: &Statement) -> Verdict {
    measured(cells, &layout(), std::slice::from_ref(statement))[0].verdict
}

#[test]
fn a_statement_is_decided_only_if_the_difference_exceeds_the_noise() {
    let cells = |mean| [cell("xfs", 1, mean, 5.0, 6), cell("ext4", 1, 100.0, 5.0, 6)];
    assert_eq!(verdict(&cells(150.0), &best("xfs")), Verdict::Holds);
    assert_eq!(verdict(&cells(60.0), &best("xfs")), Verdict::DoesNotHold);
    assert_eq!(verdict(&cells(102.0), &best("xfs")), Verdict::Undecided);
}

#[test]
fn a_range_holds_only_if_the_whole_uncertainty_is_inside() {
    let cells =
        |deviation| [cell("xfs", 1, 100.0, deviation, 10), cell("xfs", 4, 140.0, deviation, 10)];
    assert_eq!(verdict(&cells(1.0), &change(0.3, 0.5)), Verdict::Holds);
    assert_eq!(verdict(&cells(1.0), &change(0.0, 0.3)), Verdict::DoesNotHold);
    assert_eq!(verdict(&cells(30.0), &change(0.3, 0.5)), Verdict::Undecided);
}

#[test]
fn levels_that_were_not_measured_are_left_out_and_named() {
    let cells = [
        cell("xfs", 1, 100.0, 1.0, 6),
        cell("xfs", 4, 150.0, 1.0, 6),
        cell("jfs", 1, 100.0, 1.0, 6),
        cell("jfs", 4, 120.0, 1.0, 6),
    ];
    let mut rises = statement(Claim::Monotone { axis: "size".into(), rises: true });
    rises.parts[0].each = vec!["filesystem".into()];
    let of = |names: &[&str]| names.iter().map(|name| (*name).into()).collect::<Vec<String>>();
    rises.parts[0].about.insert("filesystem".into(), of(&["xfs", "reiser4", "jfs"]));
    let decision = &measured(&cells, &layout(), &[rises.clone()])[0];
    assert_eq!(decision.verdict, Verdict::Holds);
    assert_eq!(decision.missing["filesystem"], "reiser4");
    assert_eq!(decision.judgment.parts[0].places.len(), 2, "one result per filesystem");
    // Nothing is left of a statement about reiser4 alone.
    rises.parts[0].about.insert("filesystem".into(), of(&["reiser4"]));
    assert_eq!(verdict(&cells, &rises), Verdict::NotTestable);
    assert_eq!(verdict(&cells, &best("reiser4")), Verdict::NotTestable);
}

#[test]
fn quoted_numbers_and_single_repetitions_are_not_testable() {
    let quoted = statement(Claim::Quoted { value: 100.0, within: 0.5 });
    let cells = [cell("xfs", 1, 100.0, 1.0, 6), cell("ext4", 1, 50.0, 1.0, 6)];
    assert_eq!(verdict(&cells, &quoted), Verdict::NotTestable);
    let few = [cell("xfs", 1, 100.0, 1.0, 2), cell("ext4", 1, 50.0, 1.0, 6)];
    let decision = &measured(&few, &layout(), &[best("xfs")])[0];
    assert_eq!(decision.verdict, Verdict::NotTestable);
    let reason = decision.judgment.parts[0].absent.as_deref();
    assert_eq!(reason, Some("3 repetitions are required, a test has 2"));
}

#[test]
fn more_statements_require_stronger_evidence() {
    let cells = [cell("xfs", 1, 109.0, 5.0, 6), cell("ext4", 1, 100.0, 5.0, 6)];
    let one = measured(&cells, &layout(), &[best("xfs")]);
    assert_eq!(one[0].verdict, Verdict::Holds);
    let many = measured(&cells, &layout(), &vec![best("xfs"); 40]);
    assert!(many.iter().all(|decision| decision.verdict == Verdict::Undecided), "{many:?}");
    // Not testable statements do not count.
    let mut mixed = vec![best("reiser4"); 40];
    mixed.push(best("xfs"));
    assert_eq!(measured(&cells, &layout(), &mixed)[40].verdict, Verdict::Holds);
}

#[test]
fn equal_filesystems_are_rarely_decided() {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut normal = || {
        let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
        100.0 + 5.0 * radius * (std::f64::consts::TAU * rng.f64()).cos()
    };
    let mut wrong = 0;
    for _ in 0..400 {
        let mut sample = |name: &str| {
            let values: Vec<f64> = (0..6).map(|_| normal()).collect();
            let moments = Moments::of(&values).unwrap();
            Measured { moments, ..cell(name, 1, 0.0, 0.0, 6) }
        };
        let cells = [sample("xfs"), sample("ext4")];
        // Holds and DoesNotHold are both wrong: each has an error rate of at most 5 %.
        wrong += u32::from(verdict(&cells, &best("xfs")) != Verdict::Undecided);
    }
    assert!((8..=56).contains(&wrong), "{wrong} of 400 decided, about 10 % are expected");
}
