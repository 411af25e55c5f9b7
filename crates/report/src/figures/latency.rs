//! Charts of latency: percentiles and distributions.

use model::{Profile, metric::Unit, record::HistogramKind};

use super::{Figure, Kind, absent_of, qualified, repetitions};
use crate::{
    charts::{
        self,
        data::{Series, SweepValue},
        ecdf::ecdf,
    },
    units::{alone, capital},
    view::{
        Test, View,
        curves::{CUT, Curve, Curves, LADDER},
    },
};

/// Latency charts of one test: for each type of operation the percentiles, and the distributions if
/// there are two filesystems.
pub(super) fn figures(view: &View, suite: usize, point: usize, test: usize) -> Vec<Figure> {
    let details = view.details(suite, point, test);
    let own = &view.suites[suite].points[point].tests[test];
    let title = &details.ranked.title;
    let both = |curves: &Curves| {
        let sheet = Sheet { view, test: own, title, curves };
        std::iter::once(sheet.ladder()).chain(sheet.distribution()).collect::<Vec<_>>()
    };
    details.curves.iter().flat_map(both).collect()
}

struct Sheet<'a> {
    view: &'a View,
    test: &'a Test,
    /// Title of the test.
    title: &'a str,
    curves: &'a Curves,
}

impl Sheet<'_> {
    /// Chart of the percentiles.
    fn ladder(&self) -> Figure {
        let lines: Vec<&Curve> = self.lines().collect();
        let percentiles = || lines.iter().flat_map(|line| &line.percentiles);
        let certain = percentiles().all(|rung| rung.interval.is_some());
        let steps = lines.iter().map(|line| line.percentiles.len()).max().unwrap_or(0);
        let ladder = |line: &&Curve| Series {
            filesystem: line.filesystem,
            name: self.name(line.filesystem).to_owned(),
            values: line
                .percentiles
                .iter()
                .map(|rung| (rung.median, rung.interval.filter(|_| certain).unwrap_or(rung.range)))
                .map(|(median, ends)| Some(SweepValue { median, ends: Some(ends) }))
                .collect(),
        };
        let title = format!("{}: {}", self.title, self.finding(&lines));
        let band = if certain {
            "95 % confidence interval"
        } else {
            "minimum to maximum (too few repetitions for an interval)"
        };
        let y_axis = format!("latency of {}, logarithmic — lower is better ↓", self.what());
        let steps: Vec<&str> = LADDER[..steps].iter().map(|(name, _)| *name).collect();
        let series: Vec<Series> = lines.iter().map(ladder).collect();
        let chart = charts::lines::percentiles(&y_axis, &steps, &series);
        let withheld = match LADDER.get(steps.len()) {
            Some((name, _)) => {
                format!(" {name} and above: fewer than 10 operations exceed the percentile.")
            }
            None => String::new(),
        };
        let caption = format!(
            "{} Marker: median of the per-repetition percentiles, {}; band: {band}. Shown only if \
             at least 10 operations of every repetition exceed it.{withheld}{}",
            self.meaning(),
            self.repetitions(&lines),
            self.qualifications()
        );
        let id = format!("{}--{}-latency-percentiles", self.test.id, self.curves.of.name());
        let description = format!("{title}. The data are in the latency table.");
        Figure::new(Kind::LatencyPercentiles, id, chart, (title, &description), caption)
    }

    /// Chart of the distribution over all repetitions; `None` without two filesystems.
    fn distribution(&self) -> Option<Figure> {
        let lines: Vec<&Curve> = self.lines().filter(|line| line.cumulated.len() > 1).collect();
        if lines.len() < 2 {
            return None;
        }
        let title = format!("{}: latency distribution of {}", self.title, self.what());
        let (low, high) = self.curves.range;
        let x_axis = format!("latency of {}, logarithmic — lower is better ←", self.what());
        let drawn = lines
            .iter()
            .map(|line| (self.name(line.filesystem), line.filesystem, line.cumulated.as_slice()));
        let range = (f64::from(low), f64::from(high));
        let chart = ecdf(&x_axis, range, &drawn.collect::<Vec<_>>());
        let least = lines.iter().map(|line| line.operations).min().unwrap_or(0);
        let caption = format!(
            "{} Fraction of operations at or below each time, all repetitions pooled (at least \
             {least} operations each, {}); no 95 % confidence interval, because operations within \
             a repetition are not independent. Markers: quartiles. The axis omits the fastest and \
             slowest {} %.{}",
            self.meaning(),
            self.repetitions(&lines),
            CUT * 100.0,
            self.qualifications()
        );
        let id = format!("{}--{}-latency-distribution", self.test.id, self.curves.of.name());
        let description = format!("{title}. {}", capital(&self.finding(&lines)));
        Some(Figure::new(Kind::LatencyDistribution, id, chart, (title, &description), caption))
    }

    /// Filesystems with data.
    fn lines(&self) -> impl Iterator<Item = &Curve> {
        self.curves.lines.iter().filter(|line| !line.percentiles.is_empty())
    }

    fn name(&self, filesystem: usize) -> &str {
        &self.view.filesystems[filesystem].name
    }

    const fn what(&self) -> &'static str {
        match self.curves.of {
            HistogramKind::Read => "a read",
            HistogramKind::Write => "a write",
            HistogramKind::All
            | HistogramKind::ServiceTime
            | HistogramKind::ServiceTimeOfReads
            | HistogramKind::ServiceTimeOfWrites
            | HistogramKind::Submission
            | HistogramKind::Completion
            | HistogramKind::Sync
            | HistogramKind::Op(_)
            | HistogramKind::Call(_) => "an operation",
        }
    }

    /// Start of the measured time.
    const fn meaning(&self) -> &'static str {
        if self.curves.scheduled {
            "Latency from the scheduled start of the operation."
        } else {
            "Latency from the start of the operation; each worker waits for the previous one, so a \
             stall affects one operation only."
        }
    }

    /// Smallest and largest value of the highest percentile common to all.
    fn finding(&self, lines: &[&Curve]) -> String {
        let shared = lines.iter().map(|line| line.percentiles.len()).min().unwrap_or(0);
        let Some(at) = shared.checked_sub(1) else { return "percentiles".into() };
        let median = |line: &&&Curve| line.percentiles[at].median;
        let by = |a: &&&Curve, b: &&&Curve| median(a).total_cmp(&median(b));
        let (least, most) = (lines.iter().min_by(by), lines.iter().max_by(by));
        let words = |line: &&Curve| {
            let time = alone(Unit::Nanoseconds, line.percentiles[at].median);
            let ends = line.percentiles[at].interval.map_or(String::new(), |(low, high)| {
                let [low, high] = [low, high].map(|end| alone(Unit::Nanoseconds, end));
                format!(" [{low}, {high}]")
            });
            format!("{time}{ends} ({})", self.name(line.filesystem))
        };
        let name = LADDER[at].0;
        let neutral = || format!("percentiles of {}, {}", self.what(), self.repetitions(lines));
        // An order is named only if the bands of the first and the last do not overlap with others,
        // and not with profile quick.
        let apart = |ends: &Curve, first: bool| {
            let own = ends.percentiles[at].interval;
            let beyond = |other: &&Curve| match (own, other.percentiles[at].interval) {
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

    fn repetitions(&self, lines: &[&Curve]) -> String {
        repetitions(lines.iter().map(|line| line.n))
    }

    /// Measurement warnings, and missing filesystems.
    fn qualifications(&self) -> String {
        let absent = absent_of(self.view, &self.curves.absent);
        qualified(&self.test.measured_codes()) + &absent
    }
}

#[cfg(test)]
mod tests;
