//! Reasons why a filesystem is not compared in a test.

use analysis::summary::{LEVEL, needed};

use super::list;
use crate::{
    units::{count, grouped},
    view::{
        points::{Entry, Status, Test},
        raw::REFERENCE,
    },
};

/// Maximum number of reasons in [`obstacles`].
const REASONS_MAX: usize = 2;

/// Reason why a filesystem is not compared in a test. The first one that applies, in this order.
pub(crate) enum Obstacle<'a> {
    /// The cell has no results, for this reason.
    NotMeasured(&'a str),
    /// The block device without a filesystem.
    Reference,
    /// At least one repetition failed.
    Failed,
    /// Number of repetitions missing for a confidence interval.
    TooFew(u32),
    /// Blocking warnings, each with its hint. May be empty.
    Warnings(&'a [(&'static str, &'static str)]),
}

impl<'a> Obstacle<'a> {
    /// Reason why this entry is not compared; `None` if it is.
    pub(crate) fn of(entry: &'a Entry) -> Option<Self> {
        if let Status::Nothing(reason) = &entry.status {
            return Some(Self::NotMeasured(reason));
        }
        if entry.raw {
            return Some(Self::Reference);
        }
        if entry.failed.is_some() {
            return Some(Self::Failed);
        }
        if let Some(more) = too_few(entry) {
            return Some(Self::TooFew(more));
        }
        (!entry.ranked).then_some(Self::Warnings(&entry.barring))
    }

    /// Reason with its figures: `n = 2, 6 needed`.
    pub(super) fn reason(&self, entry: &Entry) -> String {
        match self {
            Self::NotMeasured(reason) => (*reason).to_owned(),
            Self::Reference => REFERENCE.into(),
            Self::Failed => entry.failed_repetitions(),
            Self::TooFew(_) => format!("n = {}, {} needed", entry.values.len(), needed(LEVEL)),
            Self::Warnings(own) => {
                let codes: Vec<&str> = own.iter().map(|(code, _)| *code).collect();
                format!("blocked by warnings ({})", codes.join(", "))
            }
        }
    }

    /// Measure that removes the obstacle. May be empty.
    pub(super) fn hint(&self) -> String {
        match self {
            Self::NotMeasured(_) | Self::Reference => String::new(),
            Self::Failed => "inspect the failed repetitions".into(),
            Self::TooFew(more) => {
                format!("run {}", count(*more as usize, "more repetition"))
            }
            Self::Warnings(own) => own.iter().map(|(_, hint)| *hint).collect::<Vec<_>>().join("; "),
        }
    }
}

/// Number of repetitions missing for a confidence interval; `None` if there are enough.
pub(super) fn too_few(entry: &Entry) -> Option<u32> {
    let summary = entry.summary.as_ref()?;
    needed(LEVEL).checked_sub(summary.n).filter(|more| *more > 0)
}

/// Reasons why the measured filesystems of these tests are not compared:
/// `ext4 has warning not-steady-state`, `fewer than 6 repetitions`. `None` if nothing prevents a
/// comparison. `name` returns the name of a filesystem.
pub(crate) fn obstacles<'a>(
    tests: impl Iterator<Item = &'a Test>,
    name: impl Fn(usize) -> String,
) -> Option<String> {
    let what = |entry: &'a Entry| -> Vec<String> {
        match Obstacle::of(entry) {
            None | Some(Obstacle::NotMeasured(_) | Obstacle::Reference) => Vec::new(),
            Some(Obstacle::Failed) => vec!["failed repetitions".into()],
            Some(Obstacle::TooFew(_)) => {
                vec![format!("fewer than {} repetitions", needed(LEVEL))]
            }
            Some(Obstacle::Warnings(own)) => {
                own.iter().map(|(code, _)| format!("warning {code}")).collect()
            }
        }
    };
    let own = tests.flat_map(|test| &test.entries);
    let all = grouped(
        own.flat_map(|entry| what(entry).into_iter().map(move |what| (what, entry.filesystem))),
    );
    let subject = |filesystems: &[usize]| match filesystems {
        [only] => format!("{} has", name(*only)),
        few @ ([_, _] | [_, _, _]) => {
            let names: Vec<String> = few.iter().map(|it| name(*it)).collect();
            format!("{} have", list(&names))
        }
        many => format!("{} have", count(many.len(), "filesystem")),
    };
    let mut parts: Vec<String> = all
        .into_iter()
        .map(|(what, mut filesystems)| {
            filesystems.sort_unstable();
            filesystems.dedup();
            match what.starts_with("fewer") {
                true => what,
                false => format!("{} {what}", subject(&filesystems)),
            }
        })
        .collect();
    if parts.len() > REASONS_MAX {
        let more = count(parts.len() - REASONS_MAX, "other reason");
        parts.truncate(REASONS_MAX);
        parts.push(more);
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}
