//! Data of the script: workload points, and comparisons of filesystems.

use std::{collections::BTreeMap, fmt::Write};

use analysis::{Side, Size, Verdict, ranks::Pair};
use serde_json::{Value, json};

use crate::{
    units::one_line,
    view::{Test, View, WorkPoint, disagreement},
};

/// Points, and comparisons of every test, as JSON that is safe inside a `script` element:
///
/// * `points`: label, and values of all parameters as texts;
/// * `filesystems`: their names, to which indexes refer, and `measured`: indexes of those with
///   results;
/// * `delta` and `margin`: the equivalence margin as a fraction, and as text;
/// * `tests`: in the order of [`Test::number`], each an array of its id, the compared
///   filesystems, and the pairs; a pair is an array of the better by median, the other, the ratio
///   in favor of the better, both ends of its 95 % interval (`null` if there is none), and a letter
///   for the test result (see [`letter`]).
///
/// The ratios are those of the rankings (`analysis::ranks`): the script shows them, and inverts
/// them if the better one is the baseline, but does not divide medians.
pub(super) fn script(view: &View) -> String {
    let names: Vec<&str> =
        view.filesystems.iter().map(|filesystem| filesystem.name.as_str()).collect();
    let points = view.suites.iter().flat_map(|suite| &suite.points);
    let tests = points.clone().flat_map(|point| &point.tests);
    let is_measured = |filesystem: &usize| {
        let mut entries = tests.clone().filter_map(|test| test.entry(*filesystem));
        entries.any(|entry| entry.summary.is_some())
    };
    let measured: Vec<usize> = (0..names.len()).filter(is_measured).collect();
    let tests: Vec<Value> = tests.clone().map(of_test).collect();
    let data = json!({
        "points": points.map(of_point).collect::<Vec<_>>(),
        "filesystems": names,
        "measured": measured,
        "delta": view.facts.margin.ratio().0,
        "margin": view.facts.margin.label(),
        "within": view.facts.margin.percent(),
        "tests": tests,
    });
    in_script(&data.to_string())
}

fn of_point(point: &WorkPoint) -> Value {
    let values = point.parameters.iter();
    let values = values.map(|(name, value)| (name, one_line(&value.to_string())));
    json!([point.label, values.collect::<BTreeMap<_, _>>()])
}

fn of_test(test: &Test) -> Value {
    let Some(family) = &test.family else {
        return json!([test.id, [], []]);
    };
    let of = |member: usize| test.entries[family.members[member]].filesystem;
    let members: Vec<usize> = (0..family.members.len()).map(of).collect();
    let pairs: Vec<Value> = family.ranking.pairs.iter().map(|pair| of_pair(pair, &of)).collect();
    json!([test.id, members, pairs])
}

fn of_pair(pair: &Pair, of: &impl Fn(usize) -> usize) -> Value {
    let interval = pair.comparison.interval;
    let [low, high] = [interval.map(|ends| ends.low), interval.map(|ends| ends.high)];
    json!([
        of(pair.better),
        of(pair.other),
        short(pair.comparison.ratio.0),
        low.map(short),
        high.map(short),
        letter(pair),
    ])
}

/// Verdict on a pair: `a` at least δ, `u` size uncertain, `n` less than δ (all three in favor
/// of the better by median), `e` equivalent, `c` not significant after adjustment, `r` median and
/// test disagree, `d` methods disagree, `i` inconclusive.
fn letter(pair: &Pair) -> &'static str {
    match pair.comparison.verdict {
        Verdict::Equivalent => "e",
        Verdict::Inconclusive { .. } if disagreement(&pair.comparison).is_some() => "d",
        Verdict::Inconclusive { .. } => "i",
        Verdict::Differs { side: Side::Worse, .. } => "r",
        Verdict::Differs { .. } if !pair.is_significant() => "c",
        Verdict::Differs { size: Size::AtLeast, .. } => "a",
        Verdict::Differs { size: Size::Uncertain, .. } => "u",
        Verdict::Differs { size: Size::Negligible, .. } => "n",
    }
}

/// Ratio with six significant digits, more than shown.
fn short(ratio: f64) -> f64 {
    // A printed number can be parsed.
    format!("{ratio:.5e}").parse().unwrap_or(ratio)
}

/// Escapes JSON so that it cannot end its `script` element nor break a line: `<`, `>`, and
/// `&` (HTML, "Restrictions for contents of script elements"), and the line separators that JSON
/// allows in strings and older JavaScript does not (ECMA-262, 10th edition, annex B).
fn in_script(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            _ => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_cannot_leave_its_element() {
        let json = json!({ "name": "</script><!--\u{2028}&" }).to_string();
        let text = in_script(&json);
        assert_eq!(text, r#"{"name":"\u003c/script\u003e\u003c!--\u2028\u0026"}"#);
        assert_eq!(
            serde_json::from_str::<Value>(&text).unwrap(),
            serde_json::from_str::<Value>(&json).unwrap()
        );
    }

    #[test]
    fn ratios_are_short() {
        assert_eq!([1.0, 1.234_567_89, 123.456_789].map(short), [1.0, 1.23457, 123.457]);
    }
}
