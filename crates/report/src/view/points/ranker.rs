//! Ranking of entries of several points, such as the devices of a test.

use analysis::{Comparer, Ranking};
use model::Metric;

use super::{Entry, aligned::Scores, families};
use crate::view::{quality::RunQuality, sample_index::SampleIndex};

/// Ranks entries of several points by the rules of the run.
pub(crate) struct Ranker<'a> {
    scores: Option<Scores>,
    quality: &'a RunQuality,
    comparer: Comparer,
}

impl<'a> Ranker<'a> {
    pub(crate) fn new(sample_index: &SampleIndex, quality: &'a RunQuality) -> Self {
        let scores = quality.drifts.then(|| Scores::new(sample_index.record, sample_index));
        Self { scores, quality, comparer: Comparer::new() }
    }

    /// Ranking of entries of one metric; `None` if fewer than two are given.
    pub(crate) fn ranking(&mut self, entries: &[&Entry], metric: Metric) -> Option<Ranking> {
        let rules = families::Rules {
            margin: self.quality.margin.ratio(),
            scores: self.scores.as_ref(),
            suspected: self.quality.suspected,
        };
        let better = metric.spec().better;
        families::ranking(&mut self.comparer, entries, better, &rules).map(|it| it.ranking)
    }
}
