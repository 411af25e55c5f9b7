//! Figures: charts with titles and captions, the same for every output.
//!
//! A figure is created from the view and has a title, one SVG element, a caption, and an ID that is
//! unique in the report. Outputs select figures by section ([`of_suite`], [`of_test`],
//! [`of_sweep`], [`of_scaling`], [`of_interaction`]) or take [`all`]. The data come from the view;
//! `charts` draws the marks. To add a figure: a file here, a [`Kind`], and a line in the function
//! of its section.

mod bars;
mod heatmap;
mod latency;
mod origins;
mod ranking;
mod rate;
mod wide;

use std::collections::BTreeSet;

use model::units::plural;

pub(crate) use crate::document::{Figure, Kind};
use crate::{
    units::capital,
    view::{Finding, Part, View},
};

/// Figures in the overview of a suite.
pub(crate) fn of_suite(view: &View, suite: usize) -> Vec<Figure> {
    let bars = view.overviews[suite].totals.iter();
    let totals = bars.filter(|bars| !view.in_study(&bars.id)).map(bars::totals);
    placed(heatmap::figure(view, suite).into_iter().chain(totals).collect(), view)
}

/// Adds a note to the captions of a run in a guest.
fn placed(mut figures: Vec<Figure>, view: &View) -> Vec<Figure> {
    if let Some(guest) = &view.facts.guest {
        let guest = capital(guest);
        figures.iter_mut().for_each(|figure| figure.caption += &format!(" {guest}."));
    }
    figures
}

/// Chart of a part of the study, if it is a chart.
pub(crate) fn of_part(part: &Part) -> Option<Figure> {
    match part {
        Part::Totals(bars) => Some(bars::totals(bars)),
        Part::Capped(bars) => Some(bars::capped(bars)),
        Part::Normalized(multiples) => Some(bars::normalized(multiples)),
        Part::Table(_) | Part::Links { .. } | Part::Absent { .. } => None,
    }
}

/// Figures of one test, its ranking first.
pub(crate) fn of_test(view: &View, suite: usize, point: usize, test: usize) -> Vec<Figure> {
    let mut figures = vec![ranking::figure(view, suite, point, test)];
    figures.extend(latency::figures(view, suite, point, test));
    figures.extend(rate::figure(view, suite, point, test));
    placed(figures, view)
}

/// CPU time of one test by consumer, if available.
pub(crate) fn cpu_time(view: &View, suite: usize, point: usize, test: usize) -> Option<Figure> {
    placed(origins::figure(view, suite, point, test).into_iter().collect(), view).pop()
}

/// Figures of a parameter sweep.
pub(crate) fn of_sweep(view: &View, sweep: usize) -> Vec<Figure> {
    placed(vec![wide::sweep(&view.sweeps[sweep])], view)
}

/// Figures of the lifecycle steps and of space over the size of the filesystem.
pub(crate) fn of_sizes(view: &View) -> Vec<Figure> {
    placed(view.sizes.iter().map(wide::by_size).collect(), view)
}

/// Figures of scaling.
pub(crate) fn of_scaling(view: &View, scaled: usize) -> Vec<Figure> {
    placed(vec![wide::scaling(&view.scaling[scaled])], view)
}

/// Figures of system settings: one per setting.
pub(crate) fn of_interaction(view: &View, interaction: usize) -> Vec<Figure> {
    let own = &view.interactions[interaction];
    let across = own.charts.iter().map(|across| wide::settings(own, across, view));
    placed(wide::effects(own, view).into_iter().chain(across).collect(), view)
}

/// All figures of a report in order, created lazily.
pub(crate) fn all(view: &View) -> impl Iterator<Item = Figure> {
    let study = view.study.iter().flat_map(|study| &study.parts).filter_map(of_part);
    let suites = (0..view.suites.len()).flat_map(move |suite| {
        let points = view.suites[suite].points.iter().enumerate();
        let tests =
            points.flat_map(|(at, point)| (0..point.tests.len()).map(move |test| (at, test)));
        let tests = tests.flat_map(move |(point, test)| {
            let charts = of_test(view, suite, point, test).into_iter();
            charts.chain(cpu_time(view, suite, point, test))
        });
        of_suite(view, suite).into_iter().chain(tests)
    });
    let scaling = (0..view.scaling.len()).flat_map(move |scaled| of_scaling(view, scaled));
    let conditions = 0..view.interactions.len();
    let conditions = conditions.flat_map(move |interaction| of_interaction(view, interaction));
    let sweeps = (0..view.sweeps.len()).flat_map(move |sweep| of_sweep(view, sweep));
    let sizes = std::iter::once_with(move || of_sizes(view)).flatten();
    study.chain(suites).chain(sizes).chain(scaling).chain(conditions).chain(sweeps)
}

/// `n = 8 repetitions`, or `n = 6 to 8 repetitions`.
fn repetitions(counts: impl Iterator<Item = u32>) -> String {
    let counts: BTreeSet<u32> = counts.collect();
    match (counts.first(), counts.last()) {
        (Some(least), Some(most)) if least != most => format!("n = {least} to {most} repetitions"),
        (n, _) => format!("n = {}", plural(n.copied().unwrap_or(0), "repetition")),
    }
}

/// Sentence with the warnings of a figure.
fn qualified(codes: &BTreeSet<&str>) -> String {
    if codes.is_empty() {
        return String::new();
    }
    let codes: Vec<&str> = codes.iter().copied().collect();
    format!(" Warnings: {}.", codes.join(", "))
}

/// Description of a chart for screen readers: its findings.
fn description(findings: &[Finding], otherwise: &str) -> String {
    let texts: Vec<&str> = findings.iter().map(|finding| finding.text.as_str()).collect();
    if texts.is_empty() { otherwise.to_owned() } else { texts.join(" ") }
}

/// Reason of a filesystem that was skipped. Charts have no rows or columns for it.
fn is_skip(reason: &str) -> bool {
    reason.starts_with("skipped")
}

/// Like [`absent`], for filesystems given by index.
fn absent_of(view: &View, all: &[(usize, String)]) -> String {
    let name =
        |(at, reason): &(usize, String)| (view.filesystems[*at].name.clone(), reason.clone());
    absent(&all.iter().map(name).collect::<Vec<_>>())
}

/// Filesystems missing in a figure: names of skipped ones, and the others with the first reason.
/// The section of missing results has all reasons and hints.
fn absent(absent: &[(String, String)]) -> String {
    let first = |reason: &str| reason.split("; ").next().unwrap_or_default().to_owned();
    let (skipped, others): (Vec<_>, Vec<_>) =
        absent.iter().partition(|(_, reason)| is_skip(reason));
    let missing =
        others.iter().map(|(name, reason)| format!(" Missing: {name}, {}.", first(reason)));
    let names: Vec<&str> = skipped.iter().map(|(name, _)| name.as_str()).collect();
    let skipped =
        if names.is_empty() { String::new() } else { format!(" Skipped: {}.", names.join(", ")) };
    missing.chain([skipped]).collect()
}
