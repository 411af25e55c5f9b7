//! Account of all tests of a run. Each test has a finding, is inconclusive, or is not compared for
//! a stated reason.

use model::metric::Better;

use super::titles;
use crate::view::FindingKind;
use crate::{
    charts::intervals::shortened,
    units::count,
    view::{
        View,
        findings::{PointFindings, obstacles},
        points::Test,
    },
};

/// Maximum number of reasons in [`Accounts::text`].
const REASONS_MAX: usize = 2;
/// Maximum length of a reason on the first page in characters.
pub(super) const REASON_MAX: usize = 160;

/// Number of tests by outcome. The sum is the number of tests of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Accounts {
    /// Tests with a finding that compares their filesystems, or their devices if the filesystems
    /// are not compared.
    pub(crate) findings: usize,
    /// Tests without such a finding for which the report lists an inconclusive question.
    pub(crate) inconclusive: usize,
    /// Reasons why tests are not compared, with the titles of the tests; most frequent reason
    /// first.
    pub(crate) not_compared: Vec<(String, Vec<String>)>,
}

impl Accounts {
    pub(crate) fn new(view: &View) -> Self {
        let points = || view.suites.iter().flat_map(|suite| &suite.points);
        let tests: Vec<(&str, &Test)> = points()
            .flat_map(|point| point.tests.iter().map(|test| (point.label.as_str(), test)))
            .collect();
        let names: Vec<(&str, &str)> =
            tests.iter().map(|(label, test)| (*label, test.name.as_str())).collect();
        let mut accounts = Self::default();
        for ((_, test), title) in tests.iter().zip(titles(&names)) {
            let all = || view.findings.by_point.iter();
            if all().any(|point| found(point, test)) {
                accounts.findings += 1;
            } else if all().any(|point| point.open.iter().any(|open| open.test == test.id)) {
                accounts.inconclusive += 1;
            } else if view.devices.iter().any(|contest| contest.answers(&test.id)) {
                accounts.findings += 1;
            } else {
                let reason = match &view.facts.imported {
                    Some(_) => "imported results are not compared".to_owned(),
                    None => own_obstacles(view, test)
                        .or_else(|| all().find_map(|point| withheld(point, test)))
                        .unwrap_or_default(),
                };
                match accounts.not_compared.iter_mut().find(|(known, _)| *known == reason) {
                    Some((_, titles)) => titles.push(title),
                    None => accounts.not_compared.push((reason, vec![title])),
                }
            }
        }
        accounts.not_compared.sort_by_key(|(_, titles)| std::cmp::Reverse(titles.len()));
        accounts
    }

    /// Number of tests that are not compared.
    fn without(&self) -> usize {
        self.not_compared.iter().map(|(_, titles)| titles.len()).sum()
    }

    /// Number of tests.
    pub(crate) fn all(&self) -> usize {
        self.findings + self.inconclusive + self.without()
    }

    /// True if at least one test is compared.
    pub(crate) fn compared(&self) -> bool {
        self.findings + self.inconclusive > 0
    }

    /// `8 tests: 5 with findings, 2 inconclusive, 1 not compared (smallest is informational)`, or
    /// `8 tests not compared (the plan has one filesystem, ext4)`; `None` if all tests have
    /// findings.
    pub(crate) fn text(&self) -> Option<String> {
        let without = self.without();
        if self.inconclusive + without == 0 {
            return None;
        }
        let all = count(self.all(), "test");
        let mut parts = vec![format!("{} with findings", self.findings)];
        if self.inconclusive > 0 {
            parts.push(format!("{} inconclusive", self.inconclusive));
        }
        if without > 0 {
            let shown = self.not_compared.iter().take(REASONS_MAX);
            let mut reasons: Vec<String> =
                shown.map(|(reason, _)| shortened(reason, REASON_MAX)).collect();
            let more = self.not_compared.len().saturating_sub(REASONS_MAX);
            if more > 0 {
                reasons.push(format!("{}, see fslab explain", count(more, "other reason")));
            }
            let reasons = reasons.join("; ");
            if !self.compared() {
                return Some(format!("{all} not compared ({reasons})"));
            }
            parts.push(format!("{without} not compared ({reasons})"));
        }
        Some(format!("{all}: {}", parts.join(", ")))
    }
}

fn found(point: &PointFindings, test: &Test) -> bool {
    let mut own = point.findings.iter().filter(|finding| finding.test == test.id);
    own.any(|finding| finding.kind.ranks())
}

/// Reason why the measured filesystems of a test are not compared; `None` if there are fewer than
/// two, or if nothing prevents it.
fn own_obstacles(view: &View, test: &Test) -> Option<String> {
    let measured = test.entries.iter().filter(|entry| entry.summary.is_some() && !entry.raw);
    if measured.count() < 2 || test.metric.spec().better == Better::Neither {
        return None;
    }
    obstacles(std::iter::once(test), |it| view.filesystems[it].name.clone())
}

/// Reason why the finding about the fastest filesystem of a test is withheld.
fn withheld(point: &PointFindings, test: &Test) -> Option<String> {
    let mut own = point.on_request.iter().filter(|withheld| withheld.test == test.id);
    Some(own.find(|withheld| withheld.kind == FindingKind::C1)?.reason.clone())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use model::{Ratio, RunRecord, Warning, record::Outcome};

    use super::*;
    use crate::{TerminalOptions, explain, fixture, html, terminal::answer};

    const UNSTEADY: Warning = Warning::NotSteadyState { range: Ratio(0.5), slope: Ratio(0.2) };

    /// Runs of several suites, and the same runs with one filesystem, few or no repetitions, failed
    /// trials, or warnings.
    fn records() -> Vec<RunRecord> {
        let mut all = vec![
            fixture::record(),
            fixture::tasks::record(),
            fixture::dbench::record(),
            fixture::bonnie::record(),
            fixture::smallfile::record(),
        ];
        for base in all.clone() {
            let change = |with: &dyn Fn(&mut RunRecord)| {
                let mut record = base.clone();
                with(&mut record);
                record
            };
            all.push(change(&|record| {
                let first = record.cells[0].cell.filesystem.name.clone();
                let own = |at: usize| record.cells[at].cell.filesystem.name == first;
                let kept: Vec<usize> = (0..record.cells.len()).filter(|at| own(*at)).collect();
                record.cells = kept.iter().map(|at| record.cells[*at].clone()).collect();
                record.trials.retain_mut(|trial| {
                    let at = kept.iter().position(|at| *at == trial.cell);
                    trial.cell = at.unwrap_or_default();
                    at.is_some()
                });
            }));
            all.push(change(&|record| record.trials.retain(|trial| trial.repetition < 3)));
            all.push(change(&|record| record.trials.clear()));
            all.push(change(&|record| {
                for trial in record.trials.iter_mut().filter(|trial| trial.cell < 2) {
                    trial.outcome = Outcome::Failed { reason: "no space".into() };
                }
            }));
            all.push(change(&|record| {
                for trial in &mut record.trials {
                    let phases: BTreeSet<String> =
                        trial.samples.iter().map(|sample| sample.phase.clone()).collect();
                    let own = phases.into_iter().step_by(2);
                    trial.warnings.extend(own.map(|phase| (Some(phase), UNSTEADY)));
                }
            }));
        }
        all
    }

    #[test]
    fn a_run_of_one_filesystem_says_that_nothing_is_compared() {
        let one = |view: &View| view.filesystems.len() == 1;
        let views: Vec<View> = records().iter().map(View::new).filter(one).collect();
        assert!(!views.is_empty());
        for view in &views {
            let name = &view.filesystems[0].name;
            let reason = format!(" not compared (the plan has one filesystem, {name})");
            let text = Accounts::new(view).text().unwrap();
            assert!(text.contains(&reason) && !text.contains("0 with"), "{text}");
            let page = html(view, &[]);
            assert!(
                page.contains(&format!("Only {name} was measured, so nothing is compared.")),
                "{page}"
            );
            assert!(!page.contains("No difference is significant"), "{page}");
            let findings = view.findings.by_point.iter().flat_map(|point| &point.findings);
            let own = findings.filter(|own| own.kind != FindingKind::C20).count();
            let shown = crate::view::answer::Answer::new(view).findings.len();
            assert_eq!(shown, own.min(crate::view::answer::FINDINGS_MAX));
        }
    }

    #[test]
    fn every_test_is_accounted_for() {
        for (at, record) in records().iter().enumerate() {
            let view = View::new(record);
            let points = view.suites.iter().flat_map(|suite| &suite.points);
            let tests: usize = points.map(|point| point.tests.len()).sum();
            let accounts = Accounts::new(&view);
            assert_eq!(accounts.all(), tests, "record {at}: {accounts:?}");
            for (reason, titles) in &accounts.not_compared {
                assert!(!reason.is_empty(), "record {at}: no reason for {titles:?}");
            }
            let options = TerminalOptions { width: 80, color: false, detail: false };
            let page = answer(&[&view], &options);
            let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
            match accounts.text() {
                Some(text) if page.contains("No filesystem was measured.") => {
                    assert!(!page.contains(&text), "record {at}: {text}\n{page}");
                }
                Some(text) => assert!(page.contains(&text), "record {at}: {text}\n{page}"),
                None => {}
            }
            if view.facts.imported.is_none() {
                let explained = explain(&view, &[]).unwrap().json();
                // `fslab explain` has the figures of each filesystem.
                let detailed = "fewer than two filesystems are comparable (";
                let mut detailed = explained.matches(detailed).count();
                for (reason, titles) in &accounts.not_compared {
                    let quoted = serde_json::to_string(reason).unwrap();
                    if !explained.contains(&quoted) {
                        let rest = detailed.checked_sub(titles.len());
                        detailed = rest.unwrap_or_else(|| panic!("record {at}: {quoted}"));
                    }
                }
            }
        }
    }
}
