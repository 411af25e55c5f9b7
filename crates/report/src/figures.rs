//! Figures: charts with all that stands around them, the same ones for every output.
//!
//! A view enters; figures leave, each with a title, one SVG element, a caption, and a name that is
//! unique in the report. Outputs choose which they show and where ([`of_suite`], [`of_test`],
//! [`of_sweep`], [`of_scaling`], [`of_interaction`]) or take them all ([`all`]). What a figure
//! shows comes from the view; how its marks are drawn is in `charts`. To add one: a file here, a
//! [`Kind`], and its line in the function of the place where it stands.

mod capped;
mod course;
mod heatmap;
mod interaction;
mod latency;
mod normalized;
mod origins;
mod ranking;
mod scaling;
mod sweep;
mod totals;

use std::collections::BTreeSet;

use crate::{
    units::capital,
    view::{Claim, Part, View},
};

pub use kinds::Kind;

mod kinds;

/// A chart with all that stands around it. The conditions of the run belong to every one of them
/// and are put there by the output.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Unique within the report, fit for an anchor and for a file.
    pub(crate) id: String,
    pub(crate) kind: Kind,
    /// What is shown, or what was found.
    pub(crate) title: String,
    /// One SVG element in the classes of the page's style sheet.
    pub(crate) svg: String,
    /// What the marks mean, n, the kind of interval, and the warnings at the numbers.
    pub(crate) caption: String,
}

/// What stands in the overview of a suite.
pub(crate) fn of_suite(view: &View, suite: usize) -> Vec<Figure> {
    let bars = view.overviews[suite].totals.iter();
    let totals = bars.filter(|bars| !view.in_study(&bars.id)).map(totals::figure);
    placed(heatmap::figure(view, suite).into_iter().chain(totals).collect(), view)
}

/// Says below each figure of a run in a guest that it is one.
fn placed(mut figures: Vec<Figure>, view: &View) -> Vec<Figure> {
    if let Some(guest) = &view.facts.guest {
        let guest = capital(guest);
        figures.iter_mut().for_each(|figure| figure.caption += &format!(" {guest}."));
    }
    figures
}

/// The chart of a part of the study's view, if it is one.
pub(crate) fn of_part(part: &Part) -> Option<Figure> {
    match part {
        Part::Totals(bars) => Some(totals::figure(bars)),
        Part::Capped(bars) => Some(capped::figure(bars)),
        Part::Normalized(multiples) => Some(normalized::figure(multiples)),
        Part::Table(_) | Part::Links { .. } | Part::Absent { .. } => None,
    }
}

/// What shows one test: its ranking first.
pub(crate) fn of_test(view: &View, suite: usize, point: usize, test: usize) -> Vec<Figure> {
    let mut figures = vec![ranking::figure(view, suite, point, test)];
    figures.extend(latency::figures(view, suite, point, test));
    figures.extend(course::figure(view, suite, point, test));
    figures.extend(origins::figure(view, suite, point, test));
    placed(figures, view)
}

/// What shows behavior over a parameter.
pub(crate) fn of_sweep(view: &View, sweep: usize) -> Vec<Figure> {
    placed(vec![sweep::figure(&view.sweeps[sweep])], view)
}

/// What shows how tests scale.
pub(crate) fn of_scaling(view: &View, scaled: usize) -> Vec<Figure> {
    placed(vec![scaling::figure(&view.scaling[scaled])], view)
}

/// What shows tests under conditions that vary: one figure for each condition.
pub(crate) fn of_interaction(view: &View, interaction: usize) -> Vec<Figure> {
    let own = &view.interactions[interaction];
    placed(own.charts.iter().map(|across| interaction::figure(own, across, view)).collect(), view)
}

/// All figures of a report in its order, made one after the other.
pub(crate) fn all(view: &View) -> impl Iterator<Item = Figure> {
    let study = view.study.iter().flat_map(|study| &study.parts).filter_map(of_part);
    let suites = (0..view.suites.len()).flat_map(move |suite| {
        let points = view.suites[suite].points.iter().enumerate();
        let tests =
            points.flat_map(|(at, point)| (0..point.tests.len()).map(move |test| (at, test)));
        let tests = tests.flat_map(move |(point, test)| of_test(view, suite, point, test));
        of_suite(view, suite).into_iter().chain(tests)
    });
    let scaling = (0..view.scaling.len()).flat_map(move |scaled| of_scaling(view, scaled));
    let conditions = 0..view.interactions.len();
    let conditions = conditions.flat_map(move |interaction| of_interaction(view, interaction));
    let sweeps = (0..view.sweeps.len()).flat_map(move |sweep| of_sweep(view, sweep));
    study.chain(suites).chain(scaling).chain(conditions).chain(sweeps)
}

/// The warnings behind the numbers of a figure, as a sentence.
fn qualified(codes: &BTreeSet<&str>) -> String {
    if codes.is_empty() {
        return String::new();
    }
    let codes: Vec<&str> = codes.iter().copied().collect();
    format!(" Warnings at these numbers: {}.", codes.join(", "))
}

/// What a screen reader says of a chart: its sentences.
fn description(claims: &[Claim], otherwise: &str) -> String {
    let texts: Vec<&str> = claims.iter().map(|claim| claim.text.as_str()).collect();
    if texts.is_empty() { otherwise.to_owned() } else { texts.join(" ") }
}

/// Filesystems that a figure lacks, each with the first of its reasons: all of them, and what would
/// help, are told once where the report has what is missing.
fn absent(absent: &[(String, String)]) -> String {
    let first = |reason: &str| reason.split("; ").next().unwrap_or_default().to_owned();
    absent.iter().map(|(name, reason)| format!(" Absent: {name}, {}.", first(reason))).collect()
}
