//! Headline of a run of workloads that run together, and its findings for the first page.

use model::{
    metric::Unit,
    phase::Part,
    plan::together::{Head, MEMBERS, SUITE, heads},
};

use super::{MemberSlowdown, MetricSlowdown};
use crate::{
    units::{capital, distinct, grouped, times},
    view::{
        Entry, View,
        findings::{disagreement, list},
        tables::metric_label,
    },
};

/// Member and other members, each with its suite: `database (sqlite)` and `bulk (stream)`.
pub(super) fn described(member: &str, members: &[Head]) -> (String, String) {
    let of = |own: bool| {
        let own = members.iter().filter(|head| (head.name == member) == own);
        list(&own.map(with_suite).collect::<Vec<_>>())
    };
    (of(true), of(false))
}

/// `database (sqlite)`; only the name if it contains the suite.
fn with_suite(head: &Head) -> String {
    if head.name.contains(&head.suite) {
        head.name.clone()
    } else {
        format!("{} ({})", head.name, head.suite)
    }
}

/// Result of the run: its largest slowdown; or the workloads that had none; or the workloads that
/// cannot be compared, with the reason. `all` is not empty.
pub(crate) fn headline(all: &[MemberSlowdown]) -> String {
    let lines = all.iter().flat_map(MemberSlowdown::rows_shown);
    let largest = lines.max_by(|one, other| {
        let ratio = |(_, row): &(&MemberSlowdown, &MetricSlowdown)| row.slowdown.ratio.0;
        ratio(one).total_cmp(&ratio(other))
    });
    if let Some((own, row)) = largest {
        return own.sentence(row);
    }
    let judged: Vec<&MemberSlowdown> = all.iter().filter(|own| own.is_judged()).collect();
    if judged.is_empty() {
        return format!("no comparison of {}: {}", subjects(all.iter(), "with"), all[0].obstacle());
    }
    let ratio = match judged[..] {
        [only] => {
            let rows = only.judged().filter(|row| only.blocked(row.metric).is_empty());
            let each = rows.map(|row| format!("{} {}", metric_label(row.metric), row.text()));
            format!(": {}", each.collect::<Vec<_>>().join(", "))
        }
        _ => String::new(),
    };
    format!("no significant slowdown of {}{ratio}", subjects(judged.into_iter(), "by"))
}

/// `database (sqlite) by bulk (stream) on ext4 and xfs`. Several groups are separated by
/// semicolons.
fn subjects<'a>(all: impl Iterator<Item = &'a MemberSlowdown>, by: &str) -> String {
    let of = |own: &MemberSlowdown| {
        let (member, others) = &own.described;
        (format!("{member} {by} {others}"), own.filesystem_name.clone())
    };
    let groups = grouped(all.map(of)).into_iter();
    let text = |(subject, on): (String, Vec<String>)| format!("{subject} on {}", list(&on));
    groups.map(text).collect::<Vec<_>>().join("; ")
}

/// Headline of a run on one filesystem in which no member was also measured alone: the result of
/// the first measured member. `None` for other runs.
pub(crate) fn unpaired(view: &View) -> Option<String> {
    let points = view.suites.iter().filter(|suite| suite.name == SUITE);
    let mut texts = points.flat_map(|suite| &suite.points).filter_map(|point| {
        let members = heads(&point.parameters.get(MEMBERS)?.to_string());
        let measured = |name: &str| {
            members.iter().any(|head| head.name == name && head.part == Part::Measured)
        };
        let test = point.tests.iter().find(|test| measured(&test.name))?;
        let summary = |entry| Some((entry, Entry::metric(entry, test.metric)?));
        let (entry, summary) = test.entries.iter().find_map(summary)?;
        let shown = test.scale.shown(summary);
        let interval =
            shown.interval.map_or(String::new(), |(low, high)| format!(" [{low}, {high}]"));
        let (member, others) = described(&test.name, &members);
        Some(format!(
            "on {}, the {} of {member} with {others} was {} {}{interval}; {} was not measured \
             alone",
            view.filesystems[entry.filesystem].name,
            metric_label(test.metric),
            shown.value,
            test.scale.name,
            test.name
        ))
    });
    texts.next()
}

impl MemberSlowdown {
    /// Metrics with a significant slowdown, without blocking warnings.
    fn rows_shown(&self) -> impl Iterator<Item = (&Self, &MetricSlowdown)> {
        let enough = self.is_complete();
        let shown = move |row: &&MetricSlowdown| {
            enough
                && row.is_significant()
                && disagreement(&row.slowdown.comparison).is_none()
                && self.blocked(row.metric).is_empty()
        };
        self.judged().filter(shown).map(move |row| (self, row))
    }

    /// Significant slowdowns for the first page: the logarithm of the ratio, and a sentence.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (f64, String)> {
        self.rows_shown().map(|(own, row)| {
            let text = capital(&own.sentence(row));
            (row.slowdown.ratio.0.ln().abs(), format!("{text}."))
        })
    }

    /// `on ext4, the latency p99 of database (sqlite) was 3.1 times as long with bulk (stream) as
    /// alone [2.8, 3.4]`.
    fn sentence(&self, row: &MetricSlowdown) -> String {
        let (member, others) = &self.described;
        let compared = match row.metric.spec().unit == Unit::Nanoseconds {
            true => format!("as long with {others} as alone"),
            false => format!("as high alone as with {others}"),
        };
        format!(
            "on {}, the {} of {member} was {}",
            self.filesystem_name,
            metric_label(row.metric),
            times(row.slowdown.ratio.0, row.slowdown.interval, &compared)
        )
    }

    /// Reason why no metric can be compared.
    fn obstacle(&self) -> String {
        if !self.is_complete() {
            let needed = super::needed(super::LEVEL);
            return format!("n = {}, {needed} needed", self.n());
        }
        let blocked = self.judged().flat_map(|row| self.blocked(row.metric));
        let codes = distinct(blocked.map(|(code, _)| code));
        format!("blocked by warnings ({})", codes.join(", "))
    }
}
