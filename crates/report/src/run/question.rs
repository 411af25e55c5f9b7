//! Question that a run answers: filesystems, tests, and varied parameters in one sentence.

use std::collections::BTreeSet;

use model::Value;

use crate::{
    units::{distinct, one_line},
    view::{AS_FOUND, Suite, View},
};

/// Maximum number of listed values of a parameter. Of more values, the first and the last are
/// listed.
const NAMED: usize = 6;

/// Question as text; empty if the run has no suites: `How do ext4 and xfs compare in 13 tests of
/// iozone (block_size 1MiB, 4MiB)?`
pub(super) fn question(view: &View) -> String {
    let names: Vec<&str> =
        view.filesystems.iter().map(|filesystem| filesystem.name.as_str()).collect();
    let suites: Vec<String> = view.suites.iter().map(of_suite).collect();
    if suites.is_empty() {
        return String::new();
    }
    let suites = suites.join("; ");
    match names.as_slice() {
        [] => String::new(),
        [one] => format!("How does {one} perform in {suites}?"),
        _ => format!("How do {} compare in {suites}?", list(&names)),
    }
}

/// Tests and varied parameters of a suite: `13 tests of iozone (block_size 1MiB, 4MiB)`.
fn of_suite(suite: &Suite) -> String {
    let tests = suite.points.iter().flat_map(|point| &point.tests);
    let tests = tests.map(|test| test.name.as_str()).collect::<BTreeSet<_>>().len();
    let tests = match tests {
        0 => String::new(),
        1 => "1 test of ".into(),
        many => format!("{many} tests of "),
    };
    let varied: Vec<String> = suite.swept.iter().map(|name| varied(suite, name)).collect();
    let varied = match varied.is_empty() {
        true => String::new(),
        false => format!(" ({})", varied.join("; ")),
    };
    format!("{tests}{}{varied}", suite.name)
}

/// Values of a varied parameter: `block_size 1MiB, 4MiB`.
fn varied(suite: &Suite, name: &str) -> String {
    let values = distinct(suite.points.iter().map(|point| {
        let value = point.parameters.get(name).map(Value::to_string);
        value.map_or_else(|| AS_FOUND.into(), |value| one_line(&value))
    }));
    match values.as_slice() {
        [first, .., last] if values.len() > NAMED => {
            format!("{name} {first} to {last}, {} values", values.len())
        }
        _ => format!("{name} {}", values.join(", ")),
    }
}

fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [one, other] => format!("{one} and {other}"),
        [others @ .., last] => format!("{}, and {last}", others.join(", ")),
    }
}
