//! How long operations took: percentiles over the repeats, and distributions side by side.

use std::collections::BTreeSet;

use model::{Profile, metric::Unit, record::TimesOf};

use super::{Figure, Kind, absent, qualified};
use crate::{
    charts::{
        ecdf::Ecdf,
        percentiles::{Ladder, Percentiles},
    },
    units::{alone, capital},
    view::{
        Test, View,
        curves::{CUT, Curve, Curves, LADDER},
    },
};

/// The figures of the times of one test: for each kind of operations the ladder, and the
/// distributions where there are two filesystems.
pub(super) fn figures(view: &View, suite: usize, point: usize, test: usize) -> Vec<Figure> {
    let flat = view.flat(suite, point, test);
    let own = &view.suites[suite].points[point].tests[test];
    let title = &view.ranked[suite][flat].title;
    let both = |curves: &Curves| {
        let sheet = Sheet { view, test: own, title, curves };
        std::iter::once(sheet.ladder()).chain(sheet.distribution()).collect::<Vec<_>>()
    };
    view.curves[suite][flat].iter().flat_map(both).collect()
}

struct Sheet<'a> {
    view: &'a View,
    test: &'a Test,
    /// Of the test.
    title: &'a str,
    curves: &'a Curves,
}

impl Sheet<'_> {
    /// Percentiles over the repeats.
    fn ladder(&self) -> Figure {
        let lines: Vec<&Curve> = self.lines().collect();
        let rungs = || lines.iter().flat_map(|line| &line.rungs);
        let certain = rungs().all(|rung| rung.interval.is_some());
        let steps = lines.iter().map(|line| line.rungs.len()).max().unwrap_or(0);
        let ladder = |line: &&Curve| Ladder {
            name: self.name(line.filesystem).to_owned(),
            series: line.filesystem,
            points: line
                .rungs
                .iter()
                .map(|rung| (rung.median, rung.interval.filter(|_| certain).unwrap_or(rung.range)))
                .collect(),
        };
        let title = format!("{}: {}", self.title, self.finding(&lines));
        let band = if certain {
            "95 % interval of the median"
        } else {
            "least to most of the repeats, too few for an interval"
        };
        let id = format!("{}--{}-ladder", self.test.id, self.curves.of.name());
        let chart = Percentiles {
            id: format!("{id}-chart"),
            description: format!("{title}. The numbers are in the table of latencies."),
            title: title.clone(),
            y_axis: format!("time of {}, logarithmic — lower is better ↓", self.what()),
            steps: LADDER[..steps].iter().map(|(name, _)| *name).collect(),
            lines: lines.iter().map(ladder).collect(),
        };
        let withheld = match LADDER.get(steps) {
            Some((name, _)) => format!(" {name} and above: fewer than ten operations lie beyond."),
            None => String::new(),
        };
        Figure {
            id,
            kind: Kind::Latency,
            title,
            svg: chart.render(),
            caption: format!(
                "{} Marker: the median over {} of the percentile of each repeat; band: {band}. A \
                 percentile is shown if in every repeat at least ten operations lie beyond \
                 it.{withheld}{}",
                self.meaning(),
                self.repeats(&lines),
                self.qualifications()
            ),
        }
    }

    /// All operations of all repeats; `None` where there are not two filesystems.
    fn distribution(&self) -> Option<Figure> {
        let lines: Vec<&Curve> = self.lines().filter(|line| line.cumulated.len() > 1).collect();
        if lines.len() < 2 {
            return None;
        }
        let title = format!("{}: distribution of the times of {}", self.title, self.what());
        let id = format!("{}--{}-distribution", self.test.id, self.curves.of.name());
        let (low, high) = self.curves.range;
        let chart = Ecdf {
            id: format!("{id}-chart"),
            description: format!("{title}. {}", capital(&self.finding(&lines))),
            title: title.clone(),
            x_axis: format!("time of {}, logarithmic — farther left is better ←", self.what()),
            range: (f64::from(low), f64::from(high)),
            lines: lines
                .iter()
                .map(|line| {
                    (self.name(line.filesystem), line.filesystem, line.cumulated.as_slice())
                })
                .collect(),
        };
        let least = lines.iter().map(|line| line.operations).min().unwrap_or(0);
        Some(Figure {
            id,
            kind: Kind::Distribution,
            title,
            svg: chart.render(),
            caption: format!(
                "{} A line says which part of the operations took at most so long; markers stand \
                 at a quarter, half, and three quarters. All operations of all repeats together \
                 (at least {least} each, {}), so there is no interval: operations of one repeat \
                 wait for each other. The axis leaves out the fastest and slowest {} %, which the \
                 percentiles show.{}",
                self.meaning(),
                self.repeats(&lines),
                CUT * 100.0,
                self.qualifications()
            ),
        })
    }

    /// Filesystems that have anything to show.
    fn lines(&self) -> impl Iterator<Item = &Curve> {
        self.curves.lines.iter().filter(|line| !line.rungs.is_empty())
    }

    fn name(&self, filesystem: usize) -> &str {
        &self.view.filesystems[filesystem].name
    }

    const fn what(&self) -> &'static str {
        match self.curves.of {
            TimesOf::Read => "a read",
            TimesOf::Write => "a write",
            TimesOf::All
            | TimesOf::Service
            | TimesOf::Submit
            | TimesOf::Complete
            | TimesOf::Flush
            | TimesOf::Op(_) => "an operation",
        }
    }

    /// From when times count.
    const fn meaning(&self) -> &'static str {
        if self.curves.scheduled {
            "Times count from the instant the operation was due by its schedule."
        } else {
            "Times count from when the worker turned to the operation: each worker waits for the \
             one before, so a stall is felt by one operation only."
        }
    }

    /// The highest percentile that all have: least and most.
    fn finding(&self, lines: &[&Curve]) -> String {
        let shared = lines.iter().map(|line| line.rungs.len()).min().unwrap_or(0);
        let Some(at) = shared.checked_sub(1) else { return "percentiles".into() };
        let median = |line: &&&Curve| line.rungs[at].median;
        let by = |a: &&&Curve, b: &&&Curve| median(a).total_cmp(&median(b));
        let (least, most) = (lines.iter().min_by(by), lines.iter().max_by(by));
        let words = |line: &&Curve| {
            let time = alone(Unit::Nanoseconds, line.rungs[at].median);
            let ends = line.rungs[at].interval.map_or(String::new(), |(low, high)| {
                let [low, high] = [low, high].map(|end| alone(Unit::Nanoseconds, end));
                format!(" [{low}, {high}]")
            });
            format!("{time}{ends} ({})", self.name(line.filesystem))
        };
        let name = LADDER[at].0;
        let neutral = || format!("percentiles of {}, {}", self.what(), self.repeats(lines));
        // No order is named that the bands do not show: the first and the last stand apart from
        // all others. Nor after a first look.
        let apart = |ends: &Curve, first: bool| {
            let own = ends.rungs[at].interval;
            let beyond = |other: &&Curve| match (own, other.rungs[at].interval) {
                (Some(own), Some(other)) if first => own.1 < other.0,
                (Some(own), Some(other)) => own.0 > other.1,
                (None, _) | (_, None) => false,
            };
            lines.iter().filter(|other| other.filesystem != ends.filesystem).all(beyond)
        };
        if let (Some(least), Some(most)) = (least, most)
            && lines.len() > 1
            && (self.view.facts.profile == Profile::Quick
                || !(apart(least, true) && apart(most, false)))
        {
            return neutral();
        }
        match (least, most) {
            (Some(least), Some(most)) if lines.len() > 1 => {
                format!("{name} of {} from {} to {}", self.what(), words(least), words(most))
            }
            (Some(only), _) => format!("{name} of {} {}", self.what(), words(only)),
            (None, _) => "percentiles".into(),
        }
    }

    fn repeats(&self, lines: &[&Curve]) -> String {
        let all: BTreeSet<u32> = lines.iter().map(|line| line.n).collect();
        match (all.first(), all.last()) {
            (Some(least), Some(most)) if least != most => format!("n = {least} to {most} repeats"),
            (Some(n), _) => format!("n = {n} repeats"),
            (None, _) => "no repeats".into(),
        }
    }

    /// Warnings earned while measuring, and filesystems that are missing.
    fn qualifications(&self) -> String {
        let codes = self.test.entries.iter().flat_map(|entry| entry.measured_codes.iter().copied());
        let missing = self.curves.absent.iter();
        let missing: Vec<(String, String)> = missing
            .map(|(filesystem, reason)| (self.name(*filesystem).to_owned(), reason.clone()))
            .collect();
        format!("{}{}", qualified(&codes.collect()), absent(&missing))
    }
}

#[cfg(test)]
mod tests;
