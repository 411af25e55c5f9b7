//! Cells with their readings, grouped by quantity.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    Cell, Finding, Layout, Location, digits,
    number::{self, Reading, Style},
};

/// Maximum number of combinations of levels up to which missing cells are searched.
const GRID: usize = 1_000_000;

/// Cells with their readings.
pub(super) struct Printed<'a> {
    pub(super) cells: &'a [Cell],
    pub(super) layout: &'a Layout,
    /// Assumed value of each cell.
    pub(super) values: Vec<Option<f64>>,
    /// Cells of the same quantity in input order; quantities in the order of their first cell.
    pub(super) things: Vec<Vec<usize>>,
    pub(super) malformed: Vec<Finding>,
    /// Malformed cells with several possible values, with all values but the assumed one. No value
    /// was given for these cells, and no well-formed cell of the same quantity confirms one of the
    /// readings.
    pub(super) ambiguous: BTreeMap<usize, Vec<f64>>,
    /// Style of each statistic, by its level.
    pub(super) styles: BTreeMap<&'a str, Style>,
    /// Decimal places of each statistic, and the step between neighboring numbers, by its level.
    pub(super) scales: BTreeMap<&'a str, (usize, f64)>,
}

impl<'a> Printed<'a> {
    pub(super) fn new(cells: &'a [Cell], layout: &'a Layout) -> Self {
        let mut texts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for cell in cells {
            texts.entry(statistic(layout, cell)).or_default().push(&cell.printed);
        }
        let style = |texts: Vec<&str>| number::style(texts.into_iter());
        let styles: BTreeMap<_, _> = texts.into_iter().map(|(key, t)| (key, style(t))).collect();
        let mut places: BTreeMap<Vec<(&str, &str)>, usize> = BTreeMap::new();
        let mut things: Vec<Vec<usize>> = Vec::new();
        for (index, cell) in cells.iter().enumerate() {
            let next = things.len();
            let at = *places.entry(identity(layout, cell)).or_insert(next);
            match things.get_mut(at) {
                Some(thing) => thing.push(index),
                None => things.push(vec![index]),
            }
        }
        let (values, malformed, scales) = (Vec::new(), Vec::new(), BTreeMap::new());
        let ambiguous = BTreeMap::new();
        let mut printed =
            Self { cells, layout, values, things, malformed, ambiguous, styles, scales };
        printed.read();
        printed.scales = digits::scales(&printed);
        printed
    }

    /// Reads all texts and reports malformed ones, in the order of the cells.
    fn read(&mut self) {
        let reading = |cell: &Cell| {
            let style = self.styles[statistic(self.layout, cell)];
            number::read(&cell.printed, &style)
        };
        let readings: Vec<Reading> = self.cells.iter().map(reading).collect();
        let mut fellow = vec![None; self.cells.len()];
        for thing in &self.things {
            for cell in thing {
                let well = |other: &&usize| *other != cell && readings[**other].faults.is_empty();
                let confirms = |other: &&usize| {
                    let value = readings[**other].candidates.first();
                    value.is_some_and(|value| readings[*cell].candidates.contains(value))
                };
                fellow[*cell] = thing.iter().filter(well).find(confirms).copied();
            }
        }
        for (index, (cell, reading)) in self.cells.iter().zip(&readings).enumerate() {
            let confirmed = fellow[index].filter(|_| !reading.faults.is_empty());
            let own = confirmed.and_then(|other| readings[other].candidates.first());
            let best = cell.value.or(own.or(reading.candidates.first()).copied());
            self.values.push(best);
            if !reading.faults.is_empty() {
                let others = reading.candidates.iter().copied();
                let others: Vec<f64> = others.filter(|other| Some(*other) != best).collect();
                if cell.value.is_none() && confirmed.is_none() && !others.is_empty() {
                    self.ambiguous.insert(index, others.clone());
                }
                self.malformed.push(Finding::Malformed {
                    cell: index,
                    faults: reading.faults.clone(),
                    reading: best,
                    others,
                    confirmed,
                });
            }
        }
    }

    /// Statistic of a cell; empty if the layout has none.
    pub(super) fn statistic(&self, cell: usize) -> &'a str {
        statistic(self.layout, &self.cells[cell])
    }

    /// Step between a number and its neighbors: that of the statistic if almost all of its numbers
    /// have the same number of decimal places, else a unit of the last place of this number.
    pub(super) fn step(&self, cell: usize) -> f64 {
        let statistic = self.statistic(cell);
        match self.styles[statistic].decimals {
            Some(_) => self.scales[statistic].1,
            None => {
                let places = number::places(&self.cells[cell].printed);
                10_f64.powi(-i32::try_from(places).unwrap_or(i32::MAX))
            }
        }
    }

    /// First cell of each quantity, if it has a value.
    pub(super) fn firsts(&self) -> Vec<usize> {
        let first = self.things.iter().map(|thing| thing[0]);
        first.filter(|cell| self.values[*cell].is_some()).collect()
    }

    /// Levels of a cell at these coordinates. The level of a missing coordinate is empty.
    pub(super) fn levels(&self, cell: usize, coordinates: &[String]) -> Vec<&'a str> {
        let at = &self.cells[cell].at;
        coordinates.iter().map(|name| at.get(name).map_or("", String::as_str)).collect()
    }

    /// Coordinates of the quantity of a cell without its statistic.
    pub(super) fn thing(&self, cell: usize) -> Vec<(&'a str, &'a str)> {
        let statistic = self.layout.statistic.as_deref();
        let mut identity = identity(self.layout, &self.cells[cell]);
        identity.retain(|(name, _)| Some(*name) != statistic);
        identity
    }

    /// Combinations of levels that no cell has. If two levels never occur together, for example
    /// because a filesystem was not measured in one edition, the pair is reported once instead of
    /// all its combinations. If more than a quarter of the combinations are missing, the table is
    /// not a grid, and nothing is reported. The same applies if there are more than a million
    /// combinations.
    pub(super) fn missing_cells(&self) -> Vec<Location> {
        let mut axes: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut seen: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        let mut present = BTreeSet::new();
        for thing in &self.things {
            let identity = identity(self.layout, &self.cells[thing[0]]);
            for (name, level) in &identity {
                if seen.entry(name).or_default().insert(level) {
                    axes.entry(name).or_default().push(level);
                }
            }
            present.insert(identity);
        }
        let sizes = axes.values().map(Vec::len);
        let all = sizes.fold(1_usize, usize::saturating_mul);
        let missing = all.saturating_sub(present.len());
        if all > GRID || missing == 0 || missing * 4 > all {
            return Vec::new();
        }
        let mut grid: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
        for (name, levels) in &axes {
            let longer = |at: Vec<(&'a str, &'a str)>| {
                levels.iter().map(move |level| {
                    let mut at = at.clone();
                    at.push((*name, *level));
                    at
                })
            };
            grid = grid.into_iter().flat_map(longer).collect();
        }
        let meeting: BTreeSet<_> = present.iter().flat_map(|at| meetings(at)).collect();
        let mut missing_cells: Vec<Vec<(&str, &str)>> = Vec::new();
        let mut strangers = BTreeSet::new();
        for at in grid.into_iter().filter(|at| !present.contains(at)) {
            let apart: Vec<_> = meetings(&at).filter(|pair| !meeting.contains(pair)).collect();
            if apart.is_empty() {
                missing_cells.push(at);
            }
            for pair in apart {
                if strangers.insert(pair) {
                    missing_cells.push(vec![pair.0, pair.1]);
                }
            }
        }
        let owned = |(name, level): (&str, &str)| (name.to_owned(), level.to_owned());
        missing_cells.into_iter().map(|at| at.into_iter().map(owned).collect()).collect()
    }
}

/// All pairs of levels of different coordinates.
fn meetings<'b>(
    at: &[(&'b str, &'b str)],
) -> impl Iterator<Item = ((&'b str, &'b str), (&'b str, &'b str))> {
    let pairs = |(index, one): (usize, &(&'b str, &'b str))| {
        let one = *one;
        at[index + 1..].iter().map(move |other| (one, *other)).collect::<Vec<_>>()
    };
    at.iter().enumerate().flat_map(pairs).collect::<Vec<_>>().into_iter()
}

/// Level of the statistic of a cell; empty if the layout has none.
fn statistic<'a>(layout: &Layout, cell: &'a Cell) -> &'a str {
    let name = layout.statistic.as_ref();
    name.and_then(|name| cell.at.get(name)).map_or("", String::as_str)
}

/// Coordinates that identify the quantity of a cell, in the order of their names.
fn identity<'a>(layout: &Layout, cell: &'a Cell) -> Vec<(&'a str, &'a str)> {
    let own = cell.at.iter().filter(|(name, _)| !layout.place.contains(name));
    own.map(|(name, level)| (name.as_str(), level.as_str())).collect()
}
