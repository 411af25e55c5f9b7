//! Headline and findings of the first page about the levels of the axis `device`.

use super::{
    Finding,
    standings::{about, comparative, superlatives, tied},
    titles,
};
use crate::{
    units::{count, distinct},
    view::Contest,
};

/// Names of the measured devices.
pub(super) fn names(contests: &[Contest]) -> Vec<&str> {
    distinct(contests.iter().flat_map(Contest::measured))
}

/// Short titles of the contests: the test, its workload if several have the test, and the
/// filesystem if there are several.
fn contest_titles(contests: &[Contest]) -> Vec<String> {
    let tests = contests.iter().map(|contest| (contest.label.as_str(), contest.name.as_str()));
    let tests = distinct(tests);
    let short = titles(&tests);
    let first = contests.first().map(|contest| contest.filesystem.as_str());
    let several = contests.iter().any(|contest| Some(contest.filesystem.as_str()) != first);
    let title = |contest: &Contest| {
        let own = (contest.label.as_str(), contest.name.as_str());
        let at = tests.iter().position(|test| *test == own);
        let test = at.map(|at| short[at].clone()).unwrap_or_default();
        if several { format!("{test} on {}", contest.filesystem) } else { test }
    };
    contests.iter().map(title).collect()
}

/// `device ssd is fastest, or not significantly slower, in 4 of 4 comparisons`; `None` without a
/// comparison.
pub(super) fn headline(contests: &[Contest], margin: &str) -> Option<String> {
    let sound: Vec<&Contest> = contests.iter().filter(|it| it.sound().is_some()).collect();
    let first = sound.first()?;
    let m = count(sound.len(), "comparison");
    if sound.iter().all(|contest| contest.is_tied()) {
        return Some(format!(
            "no significant difference of more than {margin} between devices in {m}"
        ));
    }
    let names = names(contests);
    let times = |name: &str| {
        let top = |contest: &&&Contest| {
            let top = contest.sound().map(|ranking| ranking.top.as_slice()).unwrap_or_default();
            top.iter().any(|member| contest.devices[*member] == name)
        };
        sound.iter().filter(top).count()
    };
    let best = names.iter().rev().max_by_key(|name| times(name))?;
    let (fastest, _) = superlatives(first.metric, "fastest", "slowest");
    let slower = comparative(first.metric);
    Some(format!(
        "device {best} {fastest}, or not significantly {slower}, in {} of {m}",
        times(best)
    ))
}

/// Findings: the tests in which a device is the only fastest one, and the tests without one.
pub(super) fn findings(contests: &[Contest], margin: &str) -> Vec<Finding> {
    let titles = contest_titles(contests);
    let mut findings = Vec::new();
    for name in names(contests) {
        let won = contests.iter().zip(&titles).filter_map(|(contest, title)| {
            let (winner, effect) = contest.winner()?;
            (winner == name).then_some((contest.metric, title.as_str(), effect))
        });
        let won: Vec<_> = won.collect();
        let Some((metric, ..)) = won.first() else { continue };
        let (best, _) = superlatives(*metric, "the fastest", "the slowest");
        let tests = won.iter().map(|(_, title, effect)| (*title, effect.as_ref()));
        findings.push(about(&format!("Device {name} {best}"), tests.collect()));
    }
    let ties = contests.iter().zip(&titles).filter(|(contest, _)| contest.is_tied());
    findings.extend(tied("device", margin, ties.map(|(_, title)| title.as_str()).collect()));
    findings
}
