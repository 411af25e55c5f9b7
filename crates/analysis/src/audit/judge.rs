//! Checks of statements against the cells.

use std::collections::{BTreeMap, BTreeSet};

use model::metric::Better;

use super::{
    By, ChangeKind, Claim, Fact, Finding, Judged, Judgment, Location, LocationResult, Need, Part,
    Ruling, Statement, Who, estimate::Estimate, printed::Printed, ranks::Ranks,
};

/// Level of an axis with its number.
#[derive(Clone)]
pub(super) struct Level {
    pub(super) name: String,
    pub(super) estimate: Estimate,
    /// True if all cells of the level duplicate those of another quantity.
    doubtful: bool,
}

/// Result of a claim at one location.
pub(super) struct Answer {
    pub(super) holds: bool,
    pub(super) fact: Fact,
    /// Pairs of levels whose difference decides the result.
    pub(super) deciding: Vec<(Level, Level)>,
}

/// Reason that a claim cannot be tested at a location.
pub(super) type Untestable = String;

pub(super) struct Judge<'a> {
    pub(super) printed: &'a Printed<'a>,
    /// Assumed value of each cell.
    pub(super) values: Vec<Option<f64>>,
    /// Cells whose quantity duplicates another quantity in all statistics.
    doubtful: BTreeSet<usize>,
    /// Deviation of each mean, by cell.
    deviations: BTreeMap<usize, f64>,
    /// Cells that statements refer to: the first cell of each quantity.
    firsts: Vec<usize>,
}

/// Ruling over several parts: the ruling that all parts have, else [`Ruling::InPart`]. Parts that
/// cannot be tested do not count.
pub(super) fn together(rulings: impl Iterator<Item = Ruling>) -> Ruling {
    let tested = rulings.filter(|ruling| *ruling != Ruling::NotTestable);
    tested
        .reduce(|one, other| if one == other { one } else { Ruling::InPart })
        .unwrap_or(Ruling::NotTestable)
}

impl<'a> Judge<'a> {
    pub(super) fn new(printed: &'a Printed<'a>, repeats: &[Finding]) -> Self {
        let mut doubtful = BTreeSet::new();
        for repeat in repeats {
            if let Finding::Duplicated { first, second, whole: true, .. } = repeat {
                doubtful.extend([*first, *second]);
            }
        }
        let firsts = printed.firsts();
        let mut deviations = BTreeMap::new();
        if let (Some(mean), Some(deviation)) = (&printed.layout.mean, &printed.layout.deviation) {
            let of = |level: &str| -> BTreeMap<_, usize> {
                let cells = firsts.iter().filter(|cell| printed.statistic(**cell) == level);
                cells.map(|cell| (printed.thing(*cell), *cell)).collect()
            };
            let spreads = of(deviation);
            for (thing, cell) in of(mean) {
                if let Some(value) = spreads.get(&thing).and_then(|cell| printed.values[*cell]) {
                    deviations.insert(cell, value);
                }
            }
        }
        Self { printed, values: printed.values.clone(), doubtful, deviations, firsts }
    }

    pub(super) fn all(&mut self, statements: &[Statement]) -> Vec<Judgment> {
        let judgment = |statement: &Statement| {
            let parts = statement.parts.iter().map(|part| self.under_each_reading(part));
            let parts: Vec<Judged> = parts.collect();
            let ruling = together(parts.iter().map(|part| part.ruling));
            Judgment { id: statement.id.clone(), ruling, parts }
        };
        statements.iter().map(judgment).collect()
    }

    /// Checks a part with the currently assumed values.
    pub(super) fn part(&self, part: &Part) -> Judged {
        let absent = |reason| Judged {
            ruling: Ruling::NotTestable,
            places: Vec::new(),
            absent: Some(reason),
        };
        let cells = match self.about(part) {
            Ok(cells) => cells,
            Err(reason) => return absent(reason),
        };
        if let Claim::Count { axes, times, value } = &part.claim {
            return self.count(part, &cells, axes, *times, *value);
        }
        let mut groups: Vec<(Vec<&str>, Vec<usize>)> = Vec::new();
        let mut known: BTreeMap<Vec<&str>, usize> = BTreeMap::new();
        for cell in cells {
            let levels = self.printed.levels(cell, &part.each);
            let next = groups.len();
            let at = *known.entry(levels.clone()).or_insert(next);
            match groups.get_mut(at) {
                Some((_, group)) => group.push(cell),
                None => groups.push((levels, vec![cell])),
            }
        }
        let mut places = Vec::new();
        let mut reason = None;
        for (levels, cells) in groups {
            let names = part.each.iter().cloned();
            let at: Location = names.zip(levels.into_iter().map(str::to_owned)).collect();
            match self.answer(part, &cells) {
                Ok(answer) => places.push(place(at, part.not, answer)),
                Err(absent) => reason = Some(absent),
            }
        }
        match places.is_empty() {
            true => absent(reason.unwrap_or_else(|| "no cells".into())),
            false => Judged { ruling: ruling(part.need, &places), places, absent: reason },
        }
    }

    /// Cells that a part refers to.
    pub(super) fn about(&self, part: &Part) -> Result<Vec<usize>, Untestable> {
        let cells = &self.printed.cells;
        let mut levels: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for cell in *cells {
            for (name, level) in &cell.at {
                levels.entry(name).or_default().insert(level);
            }
        }
        for (name, wanted) in &part.about {
            let Some(known) = levels.get(name.as_str()) else {
                return Err(format!("no cell has the coordinate {name}"));
            };
            if let Some(level) = wanted.iter().find(|level| !known.contains(level.as_str())) {
                return Err(format!("no cell has {name} = {level}"));
            }
        }
        if let Some(name) = part.each.iter().find(|name| !levels.contains_key(name.as_str())) {
            return Err(format!("no cell has the coordinate {name}"));
        }
        let layout = self.printed.layout;
        let statistic = layout.statistic.as_ref().filter(|name| !part.about.contains_key(*name));
        let mean = statistic.and(layout.mean.as_deref());
        // A part that names a table refers to all cells of that table. Other parts refer to the
        // first cell of each quantity.
        let named = layout.place.iter().any(|name| part.about.contains_key(name));
        let every: Vec<usize> = match named {
            true => (0..cells.len()).filter(|at| self.printed.values[*at].is_some()).collect(),
            false => self.firsts.clone(),
        };
        let fits = |cell: &usize| {
            let at = &cells[*cell].at;
            let meant = mean.is_none_or(|mean| self.printed.statistic(*cell) == mean);
            meant
                && part
                    .about
                    .iter()
                    .all(|(name, levels)| at.get(name).is_some_and(|level| levels.contains(level)))
        };
        let found: Vec<usize> = every.into_iter().filter(fits).collect();
        if found.is_empty() { Err("no cell has all these coordinates".into()) } else { Ok(found) }
    }

    /// Levels of an axis with their numbers, in numerical order or else in input order. If a level
    /// lacks cells that other levels have, its number would be a mean over different cells. Such a
    /// level is excluded. A claim that names an excluded level, or no level, cannot be tested.
    fn levels(
        &self,
        part: &Part,
        axis: &str,
        cells: &[usize],
        named: &[&str],
    ) -> Result<Vec<Level>, Untestable> {
        let mut levels: Vec<(String, Vec<usize>)> = Vec::new();
        for cell in cells {
            let level = self.printed.cells[*cell].at.get(axis);
            let level = level.ok_or_else(|| format!("a cell has no coordinate {axis}"))?;
            match levels.iter_mut().find(|(name, _)| name == level) {
                Some((_, cells)) => cells.push(*cell),
                None => levels.push((level.clone(), vec![*cell])),
            }
        }
        let most = levels.iter().map(|(_, cells)| cells.len()).max().unwrap_or(0);
        let spoken = |name: &str| named.is_empty() || named.contains(&name);
        let lacks = |(name, cells): &&(String, Vec<usize>)| spoken(name) && cells.len() < most;
        let one = levels.iter().find(|(name, _)| spoken(name));
        let same = |(_, cells): &(String, Vec<usize>)| {
            one.is_some_and(|(_, own)| self.apart_from(axis, cells) == self.apart_from(axis, own))
        };
        if let Some((name, cells)) = levels.iter().find(lacks) {
            // If all named levels lack the same cells, they are comparable.
            if !levels.iter().filter(|(name, _)| spoken(name)).all(same) {
                let plural = if cells.len() == 1 { "" } else { "s" };
                let few = cells.len();
                return Err(format!("{axis} = {name} has {few} cell{plural}, others {most}"));
            }
        }
        let count = one.map_or(most, |(_, cells)| cells.len());
        levels.retain(|(_, cells)| cells.len() == count);
        if levels.iter().all(|(name, _)| name.trim().parse::<f64>().is_ok()) {
            let at = |name: &str| name.trim().parse::<f64>().unwrap_or(0.0);
            levels.sort_by(|(one, _), (other, _)| at(one).total_cmp(&at(other)));
        }
        let level = |(name, cells): (String, Vec<usize>)| Level {
            name,
            estimate: self.estimate(part, &cells),
            doubtful: cells.iter().all(|cell| self.doubtful.contains(cell)),
        };
        Ok(levels.into_iter().map(level).collect())
    }

    /// Coordinates of cells, sorted, without an axis and without the coordinates of the location.
    fn apart_from(&self, axis: &str, cells: &[usize]) -> Vec<Vec<(&'a str, &'a str)>> {
        let of = |cell: &usize| {
            let mut thing = self.printed.thing(*cell);
            thing.retain(|(name, _)| *name != axis);
            thing
        };
        let mut all: Vec<_> = cells.iter().map(of).collect();
        all.sort();
        all
    }

    fn estimate(&self, part: &Part, cells: &[usize]) -> Estimate {
        let of = |cell: &usize| {
            let value = self.values[*cell].unwrap_or(f64::NAN);
            (value, self.deviations.get(cell).copied())
        };
        let numbers: Vec<_> = cells.iter().map(of).collect();
        Estimate::of(&numbers, self.printed.layout.runs, part.by == By::Sum)
    }

    fn answer(&self, part: &Part, cells: &[usize]) -> Result<Answer, Untestable> {
        let better = part.better.unwrap_or(self.printed.layout.better);
        let sort = |axis: &str, named: &[&str]| -> Result<Ranks, Untestable> {
            Ok(Ranks::of(self.levels(part, axis, cells, named)?, better))
        };
        let all = |axis: &str| self.levels(part, axis, cells, &[]);
        match &part.claim {
            Claim::Extreme { axis, levels, end, margin } => {
                sort(axis, &[])?.extreme(levels, *end, *margin)
            }
            Claim::Order { axis, levels, from } => {
                let named = if from.is_some() { Vec::new() } else { strs(levels) };
                sort(axis, &named)?.order(levels, *from)
            }
            Claim::Factor { axis, from, to, range } => {
                let named = match (from, to) {
                    (Who::Level(from), Who::Level(to)) => vec![from.as_str(), to],
                    (Who::Best | Who::Worst, _) | (_, Who::Best | Who::Worst) => Vec::new(),
                };
                sort(axis, &named)?.factor(from, to, *range)
            }
            Claim::Equal { axis, levels, within } => {
                sort(axis, &strs(levels))?.equal(levels, *within)
            }
            Claim::Above { axis, upper, lower } => {
                let named = [strs(upper), strs(lower)].concat();
                sort(axis, &named)?.above(upper, lower)
            }
            Claim::Difference { axis, from, to, range } => {
                sort(axis, &[from, to])?.difference(from, to, *range)
            }
            Claim::Change { axis, from, to, trend } => {
                let levels = self.levels(part, axis, cells, &[from, to])?;
                change(named(&levels, from)?, named(&levels, to)?, *trend, better)
            }
            Claim::Monotone { axis, rises } => monotone(&all(axis)?, *rises),
            Claim::Insensitive { axis, within } => insensitive(&all(axis)?, *within),
            Claim::GainsMost { among, level, axis, from, to } => {
                self.gains(part, cells, (among, level), (axis, from, to))
            }
            Claim::Quoted { value, within } => Ok(self.quoted(part, cells, *value, *within)),
            Claim::Count { .. } => Err("a count covers whole sets of cells".into()),
        }
    }

    fn gains(
        &self,
        part: &Part,
        cells: &[usize],
        (among, level): (&str, &str),
        (axis, from, to): (&str, &str, &str),
    ) -> Result<Answer, Untestable> {
        let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for cell in cells {
            let name = self.printed.cells[*cell].at.get(among);
            let name = name.ok_or_else(|| format!("a cell has no coordinate {among}"))?;
            groups.entry(name).or_default().push(*cell);
        }
        let mut gains = Vec::new();
        for (name, cells) in groups {
            let levels = self.levels(part, axis, &cells, &[from, to])?;
            let (from, to) = (named(&levels, from)?, named(&levels, to)?);
            gains.push((name.to_owned(), to.estimate.value / from.estimate.value - 1.0));
        }
        gains.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        if gains.iter().all(|(name, _)| name != level) {
            return Err(format!("no cell has {among} = {level}"));
        }
        let holds = gains[0].0 == level && gains.get(1).is_none_or(|next| next.1 < gains[0].1);
        Ok(Answer { holds, fact: Fact::Gains(gains), deciding: Vec::new() })
    }

    fn quoted(&self, part: &Part, cells: &[usize], value: f64, within: f64) -> Answer {
        let own = self.estimate(part, cells).value;
        // The tolerance covers rounding of sums if the number is quoted exactly.
        let holds = (own - value).abs() <= value.abs() * within.max(1e-9);
        let prints = |cell: &&usize| self.values[**cell] == Some(value);
        let elsewhere = self.firsts.iter().find(prints).copied().filter(|_| !holds);
        Answer { holds, fact: Fact::Number(own, elsewhere), deciding: Vec::new() }
    }

    fn count(
        &self,
        part: &Part,
        cells: &[usize],
        axes: &[String],
        times: u64,
        said: u64,
    ) -> Judged {
        let distinct = |axis: &String| -> u64 {
            let levels = cells.iter().filter_map(|cell| self.printed.cells[*cell].at.get(axis));
            levels.collect::<BTreeSet<_>>().len() as u64
        };
        let found = axes.iter().map(distinct).fold(times, u64::saturating_mul);
        let answer =
            Answer { holds: found == said, fact: Fact::Count(found), deciding: Vec::new() };
        let places = vec![place(Location::new(), part.not, answer)];
        Judged { ruling: ruling(part.need, &places), places, absent: None }
    }
}

fn strs(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// Result of a claim at a location, negated if `not`.
fn place(at: Location, not: bool, answer: Answer) -> LocationResult {
    let holds = answer.holds != not;
    let ps = answer.deciding.iter().filter_map(|(one, other)| one.estimate.p(&other.estimate));
    let p = if holds { ps.reduce(f64::max) } else { ps.reduce(f64::min) };
    let mut deciding = answer.deciding.iter();
    let doubt =
        !answer.deciding.is_empty() && deciding.all(|(one, other)| one.doubtful || other.doubtful);
    let holds = if !holds && doubt { None } else { Some(holds) };
    LocationResult { at, holds, fact: answer.fact, p }
}

fn ruling(need: Need, places: &[LocationResult]) -> Ruling {
    let count = |held| places.iter().filter(|place| place.holds == Some(held)).count();
    let (yes, no) = (count(true), count(false));
    match need {
        _ if yes + no == 0 => Ruling::NotTestable,
        Need::All | Need::Every if no == 0 => Ruling::Holds,
        Need::All if yes > 0 => Ruling::InPart,
        Need::Most if yes > no => Ruling::Holds,
        Need::Some if yes > 0 => Ruling::Holds,
        Need::All | Need::Every | Need::Most | Need::Some => Ruling::Contradicted,
    }
}

pub(super) fn named<'a>(levels: &'a [Level], name: &str) -> Result<&'a Level, Untestable> {
    let found = levels.iter().find(|level| level.name == name);
    found.ok_or_else(|| format!("no cell for {name} at this location"))
}

pub(super) fn listed(levels: &[Level]) -> Vec<(String, f64)> {
    levels.iter().map(|level| (level.name.clone(), level.estimate.value)).collect()
}

/// Relative spread, (largest - smallest) / smallest, with the smallest and the largest level.
pub(super) fn spread(levels: &[Level]) -> Result<(f64, (Level, Level)), Untestable> {
    let by = |one: &&Level, other: &&Level| one.estimate.value.total_cmp(&other.estimate.value);
    match (levels.iter().min_by(by), levels.iter().max_by(by)) {
        (Some(low), Some(high)) if levels.len() > 1 && low.estimate.value > 0.0 => {
            let spread = high.estimate.value / low.estimate.value - 1.0;
            Ok((spread, (low.clone(), high.clone())))
        }
        _ => Err("fewer than two levels are above zero".into()),
    }
}

fn change(
    from: &Level,
    to: &Level,
    trend: ChangeKind,
    better: Better,
) -> Result<Answer, Untestable> {
    let (a, b) = (from.estimate.value, to.estimate.value);
    let up = match better {
        Better::Higher | Better::Neither => b > a,
        Better::Lower => b < a,
    };
    let holds = match trend {
        ChangeKind::Between(least, most) => (least..=most).contains(&((b - a) / a)),
        ChangeKind::Rises => b > a,
        ChangeKind::Falls => b < a,
        ChangeKind::Improves => up,
        ChangeKind::Worsens => a != b && !up,
    };
    // A claim about the size of a change has no deciding difference, so it has no p-value.
    let deciding = match trend {
        ChangeKind::Between(..) => Vec::new(),
        ChangeKind::Rises | ChangeKind::Falls | ChangeKind::Improves | ChangeKind::Worsens => {
            vec![(from.clone(), to.clone())]
        }
    };
    Ok(Answer { holds, fact: Fact::Change(a, b), deciding })
}

fn monotone(levels: &[Level], rises: bool) -> Result<Answer, Untestable> {
    if levels.len() < 2 {
        return Err("fewer than two levels".into());
    }
    let steps = levels.windows(2).map(|pair| (&pair[0], &pair[1]));
    let along = |(one, next): &(&Level, &Level)| match rises {
        true => one.estimate.value < next.estimate.value,
        false => one.estimate.value > next.estimate.value,
    };
    let holds = steps.clone().all(|step| along(&step));
    let deciding = steps.filter(|step| along(step) == holds);
    let deciding = deciding.map(|(one, next)| (one.clone(), next.clone())).collect();
    Ok(Answer { holds, fact: Fact::Steps(listed(levels)), deciding })
}

fn insensitive(levels: &[Level], within: f64) -> Result<Answer, Untestable> {
    let (spread, ends) = spread(levels)?;
    let holds = spread <= within;
    // Only inequality requires a significant difference.
    let deciding = if holds { Vec::new() } else { vec![ends] };
    Ok(Answer { holds, fact: Fact::Steps(listed(levels)), deciding })
}
