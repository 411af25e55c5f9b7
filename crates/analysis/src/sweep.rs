//! Levels of a sweep and the repetitions of a cell.

use crate::Error;

/// Value of one trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Repetition {
    /// Block of the trial; trials of one block were measured close together. If it is `None` for
    /// any repetition of a sweep, all blocks of the sweep count as unknown.
    pub block: Option<u32>,
    /// Value above zero in the base unit of the metric.
    pub value: f64,
}

/// Level of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Position above zero: clients, bytes, or any other swept parameter.
    pub at: f64,
    /// Trials, at least one, in any order.
    pub repetitions: Vec<Repetition>,
}

impl Level {
    /// Values of the trials. They are ascending if the level is part of a [`Sweep`].
    pub fn values(&self) -> Vec<f64> {
        self.repetitions.iter().map(|repetition| repetition.value).collect()
    }
}

/// Checked levels, ascending and unique, with values that are finite and above zero.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    pub(crate) levels: Vec<Level>,
    blocked: bool,
}

impl Sweep {
    /// Checks and sorts levels and their repetitions, so that the input order is irrelevant. Levels
    /// at the same position are merged.
    ///
    /// # Errors
    /// [`Error::Empty`] without levels or with an empty level, [`Error::NotPositiveLevel`] for a
    /// level that is not above zero, [`Error::NotFinite`] and [`Error::NotPositive`] for values.
    /// The index in an error is that of the level, or that of the value within its level.
    pub fn new(levels: Vec<Level>) -> Result<Self, Error> {
        if levels.is_empty() {
            return Err(Error::Empty);
        }
        let mut own: Vec<Level> = Vec::new();
        for (index, level) in levels.into_iter().enumerate() {
            if !(level.at.is_finite() && level.at > 0.0) {
                return Err(Error::NotPositiveLevel { index, at: level.at });
            }
            positive(level.repetitions.iter().map(|repetition| repetition.value))?;
            match own.iter_mut().find(|other| other.at.total_cmp(&level.at).is_eq()) {
                Some(other) => other.repetitions.extend(level.repetitions),
                None => own.push(level),
            }
        }
        own.sort_by(|a, b| a.at.total_cmp(&b.at));
        for level in &mut own {
            level
                .repetitions
                .sort_by(|a, b| a.value.total_cmp(&b.value).then(a.block.cmp(&b.block)));
        }
        let mut repetitions = own.iter().flat_map(|level| &level.repetitions);
        let blocked = repetitions.all(|repetition| repetition.block.is_some());
        Ok(Self { levels: own, blocked })
    }

    /// Levels, ascending. The repetitions of each level are ascending by value.
    pub fn levels(&self) -> &[Level] {
        &self.levels
    }

    /// True if every repetition has a block.
    pub fn blocked(&self) -> bool {
        self.blocked
    }
}

/// Checks that there are values, and that all are finite and above zero.
pub(crate) fn positive(values: impl Iterator<Item = f64>) -> Result<(), Error> {
    let mut none = true;
    for (index, value) in values.enumerate() {
        none = false;
        if !value.is_finite() {
            return Err(Error::NotFinite { index, value });
        }
        if value <= 0.0 {
            return Err(Error::NotPositive { index, value });
        }
    }
    if none { Err(Error::Empty) } else { Ok(()) }
}
