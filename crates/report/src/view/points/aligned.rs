//! Alignment by round: removes the drift of a run from the values of one test.
//!
//! The effect of a round is estimated from the cells outside the test, because those of the test
//! are compared with each other. Each cell has one score per trial: the geometric mean over its
//! measured phases. All cells of a test are reduced to common rounds and corrected by the same
//! other cells. Medians and comparisons then use the same values.

use analysis::{Repetition, blocks};
use model::{RunRecord, metric::Better, phase::Role};

use crate::view::sample_index::SampleIndex;

/// Scores of each cell per round; higher is better.
pub(super) struct Scores(Vec<Vec<Repetition>>);

impl Scores {
    /// Scores of all cells of a run, A/A duplicates included.
    pub(super) fn new(record: &RunRecord, sample_index: &SampleIndex) -> Self {
        let of_cell = |cell: usize| {
            let phases: Vec<_> = record.cells[cell]
                .phases
                .iter()
                .filter(|phase| phase.role == Role::Measure)
                .filter_map(|phase| {
                    let sign = match phase.primary.spec().better {
                        Better::Higher => 1.0,
                        Better::Lower => -1.0,
                        Better::Neither => return None,
                    };
                    Some((sign, sample_index.repetitions(cell, &phase.name, phase.primary)))
                })
                .collect();
            let Some((_, first)) = phases.first() else { return Vec::new() };
            let score = |block: u32| {
                let logs = phases.iter().map(|(sign, values)| {
                    let (_, value) = values.iter().find(|(own, _)| *own == block)?;
                    (*value > 0.0).then(|| sign * value.ln())
                });
                let logs: Option<Vec<f64>> = logs.collect();
                let logs = logs?;
                let mean = logs.iter().sum::<f64>() / logs.len() as f64;
                Some(Repetition { block: Some(block), value: mean.exp() })
            };
            first.iter().filter_map(|(block, _)| score(*block)).collect()
        };
        Self((0..record.cells.len()).map(of_cell).collect())
    }

    /// Repetitions of some cells in their common rounds, aligned by the scores of the other cells.
    /// `None` if there are too few other cells or rounds, or if one of the cells cannot be aligned.
    pub(super) fn align(
        &self,
        cells: &[usize],
        repetitions: &[&[Repetition]],
        better: Better,
    ) -> Option<Vec<Vec<Repetition>>> {
        let turned =
            |repetition: &Repetition| Repetition { value: repetition.value.recip(), ..*repetition };
        let others = self.0.iter().enumerate().filter(|(cell, _)| !cells.contains(cell));
        let others = others.map(|(_, scores)| match better {
            Better::Lower => scores.iter().map(turned).collect(),
            Better::Higher | Better::Neither => scores.clone(),
        });
        let others: Vec<Vec<Repetition>> = others.collect();
        blocks::align_family(repetitions, &others)
    }
}
