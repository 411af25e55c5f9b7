//! Checks that the coordinates and levels named in a statements file exist in the table.

use std::collections::{BTreeMap, BTreeSet};

use analysis::audit::{Claim, Filter, Part, Who};
use model::suggest;

use super::{FileError, Statements, Table, file::RawLayout};

/// Maximum number of names listed if none is similar.
const LISTED: usize = 12;

/// Names in a statements file with their lines, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Names(Vec<(usize, Name)>);

#[derive(Clone, Debug, PartialEq)]
enum Name {
    /// Column in `ignore`.
    Column(String),
    /// Coordinate.
    Coordinate(String),
    /// Coordinate and one of its levels.
    Level(String, String),
    /// Key that names a level of the statistic, although `statistic` is not set.
    NoStatistic(&'static str),
}

impl Names {
    /// Adds the names in a layout; `at` returns the line of an offset.
    pub(super) fn of_layout(&mut self, layout: &RawLayout, at: impl Fn(usize) -> usize) {
        let mut add = |offset: usize, name| self.0.push((at(offset), name));
        if let Some(names) = &layout.ignore {
            let name = |name: &String| add(names.span().start, Name::Column(name.clone()));
            names.get_ref().iter().for_each(name);
        }
        if let Some(names) = &layout.location {
            let name = |name: &String| add(names.span().start, Name::Coordinate(name.clone()));
            names.get_ref().iter().for_each(name);
        }
        if let Some(names) = &layout.repeats {
            let name = |name: &String| add(names.span().start, Name::Coordinate(name.clone()));
            names.get_ref().iter().flatten().for_each(name);
        }
        if let Some(name) = &layout.statistic {
            add(name.span().start, Name::Coordinate(name.get_ref().clone()));
        }
        for (key, level) in [("mean", &layout.mean), ("deviation", &layout.deviation)] {
            if let Some(level) = level {
                let name = match &layout.statistic {
                    Some(axis) => Name::Level(axis.get_ref().clone(), level.get_ref().clone()),
                    None => Name::NoStatistic(key),
                };
                add(level.span().start, name);
            }
        }
    }

    /// Adds the names in a filter.
    pub(super) fn of_filter(&mut self, about: &Filter, line: usize) {
        for (axis, levels) in about {
            self.of_axis(line, axis, levels.iter());
        }
    }

    fn of_axis<'a>(
        &mut self,
        line: usize,
        axis: &str,
        levels: impl IntoIterator<Item = &'a String>,
    ) {
        self.0.push((line, Name::Coordinate(axis.to_owned())));
        let level = |level: &String| (line, Name::Level(axis.to_owned(), level.clone()));
        self.0.extend(levels.into_iter().map(level));
    }

    /// Adds the names in a part: in its claim and in `each`.
    pub(super) fn of_part(&mut self, part: &Part, line: usize) {
        for axis in &part.each {
            self.of_axis(line, axis, []);
        }
        match &part.claim {
            Claim::Extreme { axis, levels, .. }
            | Claim::Order { axis, levels, .. }
            | Claim::Equal { axis, levels, .. } => self.of_axis(line, axis, levels),
            Claim::Factor { axis, from, to, .. } => {
                let level = |who| match who {
                    Who::Level(level) => Some(level),
                    Who::Best | Who::Worst => None,
                };
                let levels: Vec<String> =
                    [from.clone(), to.clone()].into_iter().filter_map(level).collect();
                self.of_axis(line, axis, &levels);
            }
            Claim::Change { axis, from, to, .. } | Claim::Difference { axis, from, to, .. } => {
                self.of_axis(line, axis, [from, to]);
            }
            Claim::Monotone { axis, .. } | Claim::Insensitive { axis, .. } => {
                self.of_axis(line, axis, []);
            }
            Claim::Above { axis, upper, lower } => {
                self.of_axis(line, axis, upper.iter().chain(lower));
            }
            Claim::GainsMost { among, level, axis, from, to } => {
                self.of_axis(line, among, [level]);
                self.of_axis(line, axis, [from, to]);
            }
            Claim::Quoted { .. } => {}
            Claim::Count { axes, .. } => axes.iter().for_each(|axis| self.of_axis(line, axis, [])),
        }
    }
}

impl Statements {
    /// Checks that every named coordinate and level exists in the table.
    ///
    /// # Errors
    /// [`FileError`] with the line of the first unknown name.
    pub(super) fn check(&self, table: &Table) -> Result<(), FileError> {
        let mut levels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for cell in &table.cells {
            for (axis, level) in &cell.at {
                levels.entry(axis).or_default().insert(level);
            }
        }
        let columns = || table.columns.iter().map(String::as_str);
        let ignored = || table.ignored.iter().map(String::as_str);
        for (line, name) in &self.names.0 {
            let message = match name {
                Name::Column(name) if ignored().any(|known| known == name) => continue,
                Name::Column(name) => {
                    let known = columns().chain(ignored());
                    format!("unknown column `{name}`; {}", hint(name, known))
                }
                Name::Coordinate(name) if columns().any(|known| known == name) => continue,
                Name::Coordinate(name) => {
                    format!("unknown coordinate `{name}`; {}", hint(name, columns()))
                }
                Name::NoStatistic(key) => {
                    format!("`{key}` requires `statistic`; set both or none")
                }
                Name::Level(axis, level) => match levels.get(axis.as_str()) {
                    Some(known) if known.contains(level.as_str()) => continue,
                    Some(known) => {
                        let hint = hint(level, known.iter().copied());
                        format!("no cell has {axis} = `{level}`; {hint}")
                    }
                    // An unknown coordinate is reported for its own name.
                    None => continue,
                },
            };
            return Err(FileError { line: *line, message });
        }
        Ok(())
    }
}

/// Suggests a similar name, or lists the known ones.
fn hint<'a>(wrong: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    match suggest::nearest(wrong, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let all: Vec<&str> = known.clone().take(LISTED).collect();
            let more = if known.count() > LISTED { ", …" } else { "" };
            format!("use one of {}{more}", all.join(", "))
        }
    }
}
