//! What a run that drifted did to all of its cells, taken out of those of one test.
//!
//! The cells of one test are compared with each other, so what a block did is told by the other
//! cells of the run alone: each of them gives one value for a trial, the geometric mean over its
//! measured phases. All cells of the test are cut to the blocks that all of them have and corrected
//! by the same cells, so that the medians that order them are of the values that are compared, and
//! what the machine did between the blocks of one cell and those of another is in none of them.

use analysis::{Repeat, blocks};
use model::{RunRecord, metric::Better, phase::Role};

use crate::view::pool::Pool;

/// What each cell tells of the blocks: by cell, above the others is better.
pub(super) struct Scores(Vec<Vec<Repeat>>);

impl Scores {
    /// Of all cells of a run, twins among them.
    pub(super) fn new(record: &RunRecord, pool: &Pool) -> Self {
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
                    Some((sign, pool.repeats(cell, &phase.name, phase.primary)))
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
                Some(Repeat { block: Some(block), value: mean.exp() })
            };
            first.iter().filter_map(|(block, _)| score(*block)).collect()
        };
        Self((0..record.cells.len()).map(of_cell).collect())
    }

    /// The repeats of some cells in the blocks that all of them have, with what the others say of
    /// these taken out; `None` where there are too few others or blocks, or one of the cells cannot
    /// be aligned.
    pub(super) fn align(
        &self,
        cells: &[usize],
        repeats: &[&[Repeat]],
        better: Better,
    ) -> Option<Vec<Vec<Repeat>>> {
        let turned = |repeat: &Repeat| Repeat { value: repeat.value.recip(), ..*repeat };
        let others = self.0.iter().enumerate().filter(|(cell, _)| !cells.contains(cell));
        let others = others.map(|(_, scores)| match better {
            Better::Lower => scores.iter().map(turned).collect(),
            Better::Higher | Better::Neither => scores.clone(),
        });
        let others: Vec<Vec<Repeat>> = others.collect();
        blocks::align_family(repeats, &others)
    }
}
