//! The result of a run in one sentence.

use model::metric::Better;

use super::{
    Named, Place, board, columns, devices, filesystems, is_contest,
    standings::{Standing, comparative, superlative_of_several, superlatives},
};
use crate::{
    imports::UNNAMED,
    units::{capital, count},
    view::{
        FindingKind, View,
        findings::{list, obstacles},
        points::Test,
        slowdown,
    },
};

/// The result in one sentence: of the filesystems, and of the devices if the plan has several. With
/// one filesystem, of the devices or options only.
pub(super) fn headline(
    view: &View,
    tests: &[Named<'_>],
    first: &[Standing<'_>],
    last: &[Standing<'_>],
) -> String {
    let of_filesystems = || of_filesystems(view, tests, first, last);
    match devices::headline(&view.devices, &view.facts.margin.percent()) {
        Some(devices) if filesystems(view, tests) < 2 => sentence(view, devices),
        Some(devices) => format!("{}; {devices}", of_filesystems()),
        None if !view.slowdowns.is_empty() => sentence(view, slowdown::headline(&view.slowdowns)),
        None if filesystems(view, tests) < 2 => match of_one_filesystem(view).next() {
            // Without the test statistics in parentheses at the end.
            Some(text) => {
                let effect = text.split(" (").next().unwrap_or(text).trim_end_matches('.');
                if view.facts.ended { effect.into() } else { format!("Provisional: {effect}") }
            }
            None => match slowdown::unpaired(view) {
                Some(text) => sentence(view, text),
                None => of_filesystems(),
            },
        },
        None => of_filesystems(),
    }
}

/// Results that need no second filesystem: a crosscheck, and effects of options.
fn of_one_filesystem(view: &View) -> impl Iterator<Item = &str> {
    let crosscheck = view.crosscheck.iter().map(|(text, _)| text.as_str());
    crosscheck.chain(of_options(view))
}

/// Findings about options of mkfs and mount.
pub(super) fn of_options(view: &View) -> impl Iterator<Item = &str> {
    let findings = view.findings.by_point.iter().flat_map(|point| &point.findings);
    findings.filter(|finding| finding.kind == FindingKind::C24).map(|finding| finding.text.as_str())
}

/// A sentence that does not start with a name, marked as provisional if the run has not ended.
fn sentence(view: &View, text: String) -> String {
    if view.facts.ended { capital(&text) } else { format!("Provisional: {text}") }
}

/// Number of filesystems that this one beats in a test, less the number of those that beat it.
fn wins_less_losses(test: &Test, filesystem: usize) -> i64 {
    let Some(family) = &test.family else { return 0 };
    let is = |member: usize| test.entries[family.members[member]].filesystem == filesystem;
    let decided = family.ranking.pairs.iter().filter(|pair| pair.beats());
    decided.map(|pair| i64::from(is(pair.better)) - i64::from(is(pair.other))).sum()
}

/// Best and worst filesystems of a run with one test, in which some differ:
/// `xfs is fastest (1.34 × ext4 [1.16, 1.41]); btrfs is slowest`, or
/// `xfs is fastest, or not significantly slower (ext4 is inconclusive); btrfs is slowest`.
fn of_one_test(
    view: &View,
    named: &Named<'_>,
    (first, last): (&[Standing<'_>], &[Standing<'_>]),
) -> String {
    let name = |filesystem: usize| view.filesystems[filesystem].name.clone();
    let metric = named.test.metric;
    let (fastest, slowest) = superlatives(metric, "fastest", "slowest");
    let Some(family) = &named.test.family else { return String::new() };
    let order = family.ranking.order.iter().map(|member| {
        let filesystem = named.test.entries[family.members[*member]].filesystem;
        (filesystem, board::place(named, filesystem))
    });
    let of = |as_: Place| -> Vec<String> {
        let own = order.clone().filter(|(_, place)| *place == Some(as_));
        own.map(|(filesystem, _)| name(filesystem)).collect()
    };
    let (best, inconclusive) = (of(Place::Top), of(Place::Inconclusive));
    let several = best.len() > 1;
    let fastest = if several { superlative_of_several(metric) } else { &fastest };
    let mut text = format!("{} {fastest}", list(&best));
    // Those that are not compared may have a better median.
    let measured = filesystems(view, std::slice::from_ref(named));
    let compared = family.members.len();
    if compared < measured {
        text.push_str(&format!(" of the {compared} compared filesystems"));
    }
    match first.first().and_then(Standing::against) {
        Some((_, ratio)) if !several && inconclusive.is_empty() => {
            text.push_str(&format!(" ({ratio})"));
        }
        _ => text.push_str(&format!(", or not significantly {}", comparative(metric))),
    }
    if !inconclusive.is_empty() {
        let are = if inconclusive.len() == 1 { "is" } else { "are" };
        text.push_str(&format!(" ({} {are} inconclusive)", list(&inconclusive)));
    }
    if let Some(worst) = last.first() {
        text.push_str(&format!("; {} {slowest}", name(worst.filesystem)));
    }
    text
}

/// Statement that the only filesystem with results, if any, is not compared.
fn nothing_compared(view: &View, tests: &[Named<'_>]) -> String {
    let mut measured = columns(view, tests).into_iter().map(|column| &view.filesystems[column]);
    match measured.find(|own| !own.is_raw) {
        Some(only) if view.facts.imported.is_some() && only.name == UNNAMED => {
            "the imported results have no name of a filesystem, so nothing is compared".into()
        }
        Some(only) => format!("only {} was measured, so nothing is compared", only.name),
        None => "no filesystem was measured".into(),
    }
}

fn of_filesystems(
    view: &View,
    tests: &[Named<'_>],
    first: &[Standing<'_>],
    last: &[Standing<'_>],
) -> String {
    let contests: Vec<&Named<'_>> = tests.iter().filter(|named| is_contest(named)).collect();
    let m = contests.len();
    let sentence = |text: String| sentence(view, text);
    let measured = filesystems(view, tests);
    let over_device = tests.iter().any(|named| !named.test.over_device.is_empty());
    if measured < 2 && over_device {
        let text = "one filesystem was measured, and the block device without a filesystem";
        return sentence(text.into());
    }
    if measured < 2 {
        return sentence(nothing_compared(view, tests));
    }
    if m == 0 {
        let why = match view.facts.imported {
            Some(_) => "imported results are not compared".to_owned(),
            None => {
                let name = |it: usize| view.filesystems[it].name.clone();
                let directed =
                    |named: &Named<'_>| named.test.metric.spec().better != Better::Neither;
                let otherwise = match tests.iter().any(directed) {
                    true => "no test has valid results of two filesystems",
                    false => "no metric has a better and a worse direction",
                };
                obstacles(tests.iter().map(|named| named.test), name)
                    .unwrap_or_else(|| otherwise.into())
            }
        };
        return match view.facts.ended {
            true => format!("No comparison: {why}"),
            false => format!("Provisional, no comparison: {why}"),
        };
    }
    let all_tied = |named: &&Named<'_>| {
        let mut ranked = named.test.entries.iter().filter(|entry| entry.ranked && !entry.raw);
        ranked.all(|entry| entry.top)
    };
    if let ([only], false) = (tests, contests.iter().all(all_tied)) {
        let text = of_one_test(view, only, (first, last));
        return if view.facts.ended { text } else { sentence(text) };
    }
    if contests.iter().all(all_tied) {
        let margin = view.facts.margin.percent();
        let tests = count(m, "test");
        return sentence(format!(
            "no significant difference of more than {margin} between {measured} filesystems in \
             {tests}"
        ));
    }
    let text = of_several_tests(view, &contests, (first, last));
    // A name keeps its case.
    if view.facts.ended { text } else { sentence(text) }
}

/// Filesystem that is best in most of several tests, and the one that is worst in most:
/// `xfs is fastest, or not significantly slower, in 35 of 42 tests; btrfs is slowest in 28`.
fn of_several_tests(
    view: &View,
    contests: &[&Named<'_>],
    (first, last): (&[Standing<'_>], &[Standing<'_>]),
) -> String {
    let m = contests.len();
    let times = |filesystem: usize, as_: Place| {
        contests.iter().filter(|named| board::place(named, filesystem) == Some(as_)).count()
    };
    let count = |standings: &[Standing<'_>], filesystem: usize| {
        standings.iter().filter(|it| it.filesystem == filesystem).count()
    };
    let indices = || 0..view.filesystems.len();
    let wins = |it| -> i64 { contests.iter().map(|named| wins_less_losses(named.test, it)).sum() };
    let best = indices()
        .max_by_key(|it| (times(*it, Place::Top), wins(*it), count(first, *it), usize::MAX - it));
    let best = best.unwrap_or_default();
    let worst = indices().max_by_key(|it| (count(last, *it), usize::MAX - it));
    let worst = worst.filter(|worst| count(last, *worst) > 1);
    let metric = contests[0].test.metric;
    let (fastest, slowest) = superlatives(metric, "fastest", "slowest");
    let most = times(best, Place::Top);
    let equals: Vec<usize> = indices().filter(|it| times(*it, Place::Top) == most).collect();
    let several = (2..=3).contains(&equals.len());
    let best = if several { equals } else { vec![best] };
    let names: Vec<String> = best.iter().map(|it| view.filesystems[*it].name.clone()).collect();
    let fastest = if several { superlative_of_several(metric) } else { &fastest };
    let mut text = format!(
        "{} {fastest}, or not significantly {}, in {most} of {m} tests{}",
        list(&names),
        comparative(metric),
        if several { " each" } else { "" },
    );
    let inconclusive = times(best[0], Place::Inconclusive);
    if inconclusive > 0 && !several {
        text.push_str(&format!(" (inconclusive in {inconclusive})"));
    }
    let worst = worst.filter(|worst| !best.contains(worst));
    if let Some(worst) = worst {
        let (name, count) = (&view.filesystems[worst].name, count(last, worst));
        text.push_str(&format!("; {name} {slowest} in {count}"));
    }
    text
}
