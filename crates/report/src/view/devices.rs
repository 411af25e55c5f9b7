//! Comparison of the levels of the axis `device`.
//!
//! A contest is one test of one workload on one filesystem, on every device of the plan. The
//! devices of a contest are ranked like the filesystems of a test, Holm-adjusted over all pairs.

use crate::view::FindingKind;
use std::collections::BTreeSet;

use analysis::{
    Ranking, Verdict,
    ranks::Pair,
    summary::{LEVEL, needed},
};
use model::{Metric, SystemSetting, Value, metric::Better, metric::Unit};

use crate::{
    units::{count, one_line, ratio_of},
    view::{
        equivalence_margin::EquivalenceMargin,
        facts::Filesystem,
        findings::{Answer, PointFindings, disagreement, list},
        points::{self, Entry, Ranker, Suite, Test, WorkPoint},
        quality::RunQuality,
        sample_index::SampleIndex,
        tables::slices,
    },
};

/// Method paragraph of the report.
pub(crate) const METHOD: &str = "\
    Devices: the levels of axis `device` share all rounds. The devices of one test on one \
    filesystem are compared like filesystems, Holm-adjusted over their pairs. A finding is about \
    the devices measured, not about devices of their kind.";

/// Devices in one test of one workload on one filesystem.
#[derive(Clone, Debug)]
pub(crate) struct Contest {
    /// ID of the test on the first device.
    pub(crate) test: String,
    /// IDs of the test on each device.
    tests: Vec<String>,
    /// Name of the test.
    pub(crate) name: String,
    /// Label of the workload without the device.
    pub(crate) label: String,
    pub(crate) filesystem: String,
    pub(crate) metric: Metric,
    /// Names of the compared devices, in the order of the plan.
    pub(crate) devices: Vec<String>,
    /// Repetitions of each compared device.
    n: Vec<usize>,
    /// Members are indices of `devices`; `None` if fewer than two devices are comparable.
    pub(crate) ranking: Option<Ranking>,
    /// Devices that are not compared, with their repetitions.
    absent: Vec<(String, usize)>,
}

/// Name of the condition.
fn key() -> &'static str {
    SystemSetting::Device.spec().name
}

/// All contests. Empty unless the plan has several devices.
pub(crate) fn contests(
    suites: &[Suite],
    filesystems: &[Filesystem],
    (sample_index, quality): (&SampleIndex, &RunQuality),
) -> Vec<Contest> {
    let mut ranker = Ranker::new(sample_index, quality);
    let mut contests = Vec::new();
    for points in suites.iter().flat_map(|suite| slices(suite, key())) {
        let names = points.iter().flat_map(|point| &point.tests).map(|test| test.name.as_str());
        let mut seen = BTreeSet::new();
        for name in names.filter(|name| seen.insert(*name)) {
            for index in 0..filesystems.len() {
                contests.extend(contest(&points, name, (index, filesystems), &mut ranker));
            }
        }
    }
    contests
}

fn device(point: &WorkPoint) -> String {
    point.conditions.get(key()).map(Value::to_string).as_deref().map(one_line).unwrap_or_default()
}

fn contest(
    points: &[&WorkPoint],
    name: &str,
    (index, filesystems): (usize, &[Filesystem]),
    ranker: &mut Ranker<'_>,
) -> Option<Contest> {
    let tests: Vec<(&WorkPoint, &Test)> =
        points.iter().filter_map(|point| Some((*point, point.test(name)?))).collect();
    let (point, test) = tests.first()?;
    if test.metric.spec().better == Better::Neither {
        return None;
    }
    let entry = |(point, test): &(&WorkPoint, &Test)| {
        Some((device(point), test.entry(index).filter(|entry| entry.summary.is_some())?.clone()))
    };
    let entries: Vec<(String, Entry)> = tests.iter().filter_map(entry).collect();
    if entries.is_empty() {
        return None;
    }
    let (members, absent): (Vec<_>, Vec<_>) =
        entries.into_iter().partition(|(_, entry)| entry.ranked);
    let compared: Vec<&Entry> = members.iter().map(|(_, entry)| entry).collect();
    let value = point.conditions.get(key())?;
    Some(Contest {
        test: test.id.clone(),
        tests: tests.iter().map(|(_, test)| test.id.clone()).collect(),
        name: name.to_owned(),
        label: points::without(&point.label, key(), value),
        filesystem: filesystems[index].name.clone(),
        metric: test.metric,
        ranking: ranker.ranking(&compared, test.metric),
        n: compared.iter().map(|entry| entry.values.len()).collect(),
        devices: members.into_iter().map(|(name, _)| name).collect(),
        absent: absent.into_iter().map(|(name, entry)| (name, entry.values.len())).collect(),
    })
}

impl Contest {
    /// Names of all devices with results, those that are not compared last.
    pub(crate) fn measured(&self) -> impl Iterator<Item = &str> {
        let absent = self.absent.iter().map(|(name, _)| name);
        self.devices.iter().chain(absent).map(String::as_str)
    }

    /// Fewest repetitions of a device, if they are too few for a finding.
    fn too_few(&self) -> Option<usize> {
        let all = self.n.iter().chain(self.absent.iter().map(|(_, n)| n));
        let least = all.copied().min()?;
        (u32::try_from(least).unwrap_or(u32::MAX) < needed(LEVEL)).then_some(least)
    }

    /// Ranking that findings may use: with enough repetitions, without contradictory pairs.
    pub(crate) fn sound(&self) -> Option<&Ranking> {
        let ranking = self.ranking.as_ref().filter(|_| self.too_few().is_none())?;
        (!ranking.pairs.iter().any(Pair::is_contradictory)).then_some(ranking)
    }

    /// True if the contest has a finding and includes this test.
    pub(crate) fn answers(&self, test: &str) -> bool {
        self.sound().is_some() && self.tests.iter().any(|own| own == test)
    }

    /// The only best device, its effect size, and the text of the effect: `3.12 × hdd [2.9, 3.3]`.
    pub(crate) fn winner(&self) -> Option<(&str, Option<(f64, String)>)> {
        let ranking = self.sound()?;
        let (&[best], Some(&next)) = (&ranking.top[..], ranking.order.get(1)) else {
            return None;
        };
        let comparison = &ranking.pair(best, next)?.comparison;
        let fewer = self.metric.spec().unit == Unit::Instructions;
        let effect = disagreement(comparison).is_none().then(|| {
            let other = &self.devices[next];
            let text = ratio_of(comparison.ratio.0, comparison.interval, fewer, other);
            (comparison.ratio.0.ln().abs(), text)
        });
        Some((&self.devices[best], effect))
    }

    /// True if all devices are in the top group.
    pub(crate) fn is_tied(&self) -> bool {
        self.sound().is_some_and(|ranking| ranking.top.len() == self.devices.len())
    }

    /// `write, iozone block_size=1MiB, ext4`.
    fn place(&self) -> String {
        format!("{}, {}, {}", self.name, self.label, self.filesystem)
    }

    fn answer(&self, margin: EquivalenceMargin) -> Answer {
        let withheld = |reason: String, hint: String| {
            let question = format!("fastest device on {}", self.place());
            Answer::withheld(FindingKind::C19, &self.test, question, reason, hint)
        };
        let found = |text| Answer::found(FindingKind::C19, &self.test, text);
        if let Some(least) = self.too_few() {
            let needed = needed(LEVEL);
            let hint = format!("run at least {needed} repetitions on each device");
            return withheld(format!("n = {least}, {needed} needed"), hint);
        }
        let Some(ranking) = &self.ranking else {
            let names: Vec<String> = self.absent.iter().map(|(name, _)| name.clone()).collect();
            let reason = match names.as_slice() {
                [] => "fewer than two devices were measured".to_owned(),
                names => format!("not comparable: {}", list(names)),
            };
            return withheld(reason, String::new());
        };
        if self.sound().is_none() {
            let reason = "a significant difference contradicts the order of the medians".to_owned();
            return withheld(reason, String::new());
        }
        let each: Vec<String> = self.n.iter().map(usize::to_string).collect();
        let n = format!("n = {}", list(&each));
        let family = match ranking.pairs.len() {
            1 => String::new(),
            pairs => format!(", Holm-adjusted over {}", count(pairs, "pair")),
        };
        if let Some((best, effect)) = self.winner() {
            let unit = self.metric.spec().unit;
            let verb = match () {
                () if unit == Unit::Instructions => "executed the fewest instructions",
                () if unit == Unit::Bytes => "had the most space",
                () => "was the fastest",
            };
            let effect = effect.map(|(_, text)| format!(": {text}")).unwrap_or_default();
            return found(format!(
                "Device {best} {verb} of {} on {}{effect} ({n}{family}).",
                count(self.devices.len(), "device"),
                self.place()
            ));
        }
        let names: Vec<String> =
            ranking.top.iter().map(|member| self.devices[*member].clone()).collect();
        let equivalent = |pair: &Pair| pair.comparison.verdict == Verdict::Equivalent;
        let margin = margin.percent();
        match self.is_tied() && ranking.pairs.iter().all(equivalent) {
            true => found(format!(
                "Devices {} were equivalent within ±{margin} on {} ({n}{family}).",
                list(&names),
                self.place()
            )),
            false => found(format!(
                "Devices {} do not differ significantly by more than {margin} on {} ({n}{family}).",
                list(&names),
                self.place()
            )),
        }
    }
}

/// Findings about devices, under one heading.
pub(crate) fn findings(contests: &[Contest], margin: EquivalenceMargin) -> Option<PointFindings> {
    let answers = contests.iter().map(|contest| contest.answer(margin)).collect();
    (!contests.is_empty()).then(|| PointFindings::new("Devices", answers))
}
