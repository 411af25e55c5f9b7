//! Statements file: TOML with the layout of a table and the statements to check.

use std::collections::{BTreeMap, BTreeSet};

use analysis::audit::{By, ChangeKind, Claim, End, Filter, Layout, Need, Part, Statement, Who};
use model::metric::Better;
use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use super::{Columns, Table, check::Names};

/// Error in a statements file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {message}")]
pub struct FileError {
    /// Line, from 1.
    pub line: usize,
    /// Error and hint.
    pub message: String,
}

/// Parsed statements file.
#[derive(Clone, Debug, PartialEq)]
pub struct Statements {
    /// Title of the audited table.
    pub title: String,
    /// Source of the numbers, as keywords with texts.
    pub source: Vec<(String, String)>,
    /// Unit of the numbers; empty if not given.
    pub unit: String,
    /// Statements that are not checked, with the reason.
    pub skipped: Vec<(String, String)>,
    /// Meaning of the columns.
    pub columns: Columns,
    /// Statements.
    pub statements: Vec<Statement>,
    /// Columns, coordinates, and levels that the file names, for [`Statements::check`].
    pub(super) names: Names,
    raw: RawLayout,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawLayout {
    value: Option<String>,
    text: Option<String>,
    pub(super) ignore: Option<Spanned<Vec<String>>>,
    pub(super) location: Option<Spanned<Vec<String>>>,
    pub(super) statistic: Option<Spanned<String>>,
    pub(super) mean: Option<Spanned<String>>,
    pub(super) deviation: Option<Spanned<String>>,
    runs: Option<u32>,
    pub(super) repeats: Option<Spanned<Vec<Vec<String>>>>,
    better: Option<Direction>,
    unit: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Direction {
    Higher,
    Lower,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct RawFile {
    title: String,
    source: Source,
    layout: RawLayout,
    statement: Vec<Spanned<RawStatement>>,
    skipped: Vec<Skipped>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Source {
    article: Option<String>,
    author: Option<String>,
    published: Option<String>,
    machine: Option<String>,
    kernel: Option<String>,
    method: Option<String>,
    numbers: Option<String>,
    statements: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Skipped {
    text: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStatement {
    id: String,
    text: String,
    #[serde(rename = "where")]
    about: Option<Spanned<BTreeMap<String, Levels>>>,
    parts: Vec<Spanned<RawPart>>,
}

/// One or several levels. Integers are converted to text.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Levels {
    Number(i64),
    One(String),
    Several(Vec<Levels>),
}

impl Levels {
    fn names(&self) -> Vec<String> {
        match self {
            Self::Number(number) => vec![number.to_string()],
            Self::One(name) => vec![name.clone()],
            Self::Several(levels) => levels.iter().flat_map(Self::names).collect(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Best,
    Worst,
    Order,
    Factor,
    Change,
    Difference,
    Rises,
    Falls,
    Insensitive,
    Equal,
    Above,
    GainsMost,
    Quoted,
    Count,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawTrend {
    Rises,
    Falls,
    Improves,
    Worsens,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawNeed {
    #[default]
    All,
    Every,
    Most,
    Some,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RawBy {
    #[default]
    Mean,
    Sum,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPart {
    kind: Kind,
    #[serde(default, rename = "where")]
    about: BTreeMap<String, Levels>,
    #[serde(default)]
    each: Vec<String>,
    #[serde(default)]
    by: RawBy,
    #[serde(default)]
    need: RawNeed,
    #[serde(default)]
    not: bool,
    better: Option<Direction>,
    axis: Option<String>,
    #[serde(default)]
    axes: Vec<String>,
    levels: Option<Levels>,
    lower: Option<Levels>,
    from: Option<Levels>,
    to: Option<Levels>,
    among: Option<String>,
    trend: Option<RawTrend>,
    min: Option<f64>,
    max: Option<f64>,
    within: Option<f64>,
    margin: Option<f64>,
    value: Option<f64>,
    times: Option<u64>,
}

impl Statements {
    /// Reads a statements file.
    ///
    /// # Errors
    /// [`FileError`] with the line of the first error.
    pub fn read(text: &str) -> Result<Self, FileError> {
        let at = |offset: usize| {
            let before = text.get(..offset).unwrap_or(text);
            before.matches('\n').count() + 1
        };
        let raw: RawFile = toml::from_str(text).map_err(|error| FileError {
            line: at(error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
        })?;
        let mut names = Names::default();
        names.of_layout(&raw.layout, at);
        let mut statements = Vec::new();
        let mut ids = BTreeSet::new();
        for raw in raw.statement {
            let line = at(raw.span().start);
            let raw = raw.into_inner();
            if !ids.insert(raw.id.clone()) {
                let message = format!("duplicate id `{}`; rename one", raw.id);
                return Err(FileError { line, message });
            }
            let mut about = Filter::new();
            if let Some(raw) = &raw.about {
                about.extend(filter(raw.get_ref()));
                names.of_filter(&about, at(raw.span().start));
            }
            let mut parts = Vec::new();
            for part in &raw.parts {
                let line = at(part.span().start);
                let mistake = |message| FileError { line, message };
                names.of_filter(&filter(&part.get_ref().about), line);
                let part = part.get_ref().part(&about).map_err(mistake)?;
                names.of_part(&part, line);
                parts.push(part);
            }
            if parts.is_empty() {
                let message = "a statement needs `parts`".into();
                return Err(FileError { line, message });
            }
            statements.push(Statement { id: raw.id, text: raw.text, parts });
        }
        let layout = raw.layout;
        let columns = Columns {
            value: layout.value.clone().unwrap_or_else(|| "value".into()),
            text: layout.text.clone(),
            ignore: layout.ignore.clone().map_or_else(Vec::new, Spanned::into_inner),
        };
        Ok(Self {
            title: raw.title,
            source: raw.source.listed(),
            unit: layout.unit.clone(),
            skipped: raw.skipped.into_iter().map(|one| (one.text, one.reason)).collect(),
            columns,
            statements,
            names,
            raw: layout,
        })
    }

    /// Meaning of the coordinates of a table. By default, the column `table` is the location, and
    /// cells with a common level of any other coordinate are checked for duplicates.
    pub fn layout(&self, table: &Table) -> Layout {
        let raw = &self.raw;
        let has = |name: &str| table.columns.iter().any(|column| column == name);
        let default = || Vec::from_iter(has("table").then(|| "table".to_owned()));
        let own = |name: &Option<Spanned<String>>| name.clone().map(Spanned::into_inner);
        let statistic = own(&raw.statistic);
        let location = raw.location.clone().map_or_else(default, Spanned::into_inner);
        let repeats = raw.repeats.clone().map(Spanned::into_inner).unwrap_or_else(|| {
            let own =
                |name: &&String| !location.contains(name) && Some(*name) != statistic.as_ref();
            table.columns.iter().filter(own).map(|name| vec![name.clone()]).collect()
        });
        Layout {
            place: location,
            statistic,
            mean: own(&raw.mean),
            deviation: own(&raw.deviation),
            runs: raw.runs,
            repeats,
            better: raw.better.map_or(Better::Higher, direction),
        }
    }
}

fn filter(about: &BTreeMap<String, Levels>) -> Filter {
    about.iter().map(|(name, levels)| (name.clone(), levels.names())).collect()
}

fn direction(direction: Direction) -> Better {
    match direction {
        Direction::Higher => Better::Higher,
        Direction::Lower => Better::Lower,
    }
}

impl Source {
    fn listed(self) -> Vec<(String, String)> {
        let all = [
            ("article", self.article),
            ("author", self.author),
            ("published", self.published),
            ("machine", self.machine),
            ("kernel", self.kernel),
            ("method", self.method),
            ("numbers", self.numbers),
            ("statements", self.statements),
        ];
        let listed = |(name, text): (&str, Option<String>)| Some((name.to_owned(), text?));
        all.into_iter().filter_map(listed).collect()
    }
}

impl RawPart {
    fn part(&self, about: &Filter) -> Result<Part, String> {
        let mut about = about.clone();
        about.extend(filter(&self.about));
        Ok(Part {
            claim: self.claim()?,
            about,
            each: self.each.clone(),
            by: match self.by {
                RawBy::Mean => By::Mean,
                RawBy::Sum => By::Sum,
            },
            need: match self.need {
                RawNeed::All => Need::All,
                RawNeed::Every => Need::Every,
                RawNeed::Most => Need::Most,
                RawNeed::Some => Need::Some,
            },
            not: self.not,
            better: self.better.map(direction),
        })
    }

    fn claim(&self) -> Result<Claim, String> {
        let axis = || self.axis.clone().ok_or_else(|| self.needs("axis"));
        Ok(match self.kind {
            Kind::Best | Kind::Worst => Claim::Extreme {
                axis: axis()?,
                levels: self.names(&self.levels, "levels")?,
                end: if self.kind == Kind::Best { End::Best } else { End::Worst },
                margin: self.margin.unwrap_or(1.0),
            },
            Kind::Order => Claim::Order {
                axis: axis()?,
                levels: self.names(&self.levels, "levels")?,
                from: match &self.from {
                    None => None,
                    Some(from) => Some(end(from)?),
                },
            },
            Kind::Factor => Claim::Factor {
                axis: axis()?,
                from: who(self.name(&self.from, "from")?),
                to: who(self.name(&self.to, "to")?),
                range: self.range()?,
            },
            Kind::Change => Claim::Change {
                axis: axis()?,
                from: self.name(&self.from, "from")?,
                to: self.name(&self.to, "to")?,
                trend: self.trend()?,
            },
            Kind::Difference => Claim::Difference {
                axis: axis()?,
                from: self.name(&self.from, "from")?,
                to: self.name(&self.to, "to")?,
                range: self.range()?,
            },
            Kind::Rises | Kind::Falls => {
                Claim::Monotone { axis: axis()?, rises: self.kind == Kind::Rises }
            }
            Kind::Insensitive => Claim::Insensitive {
                axis: axis()?,
                within: self.within.ok_or_else(|| self.needs("within"))?,
            },
            Kind::Equal => Claim::Equal {
                axis: axis()?,
                levels: self.levels.as_ref().map_or_else(Vec::new, Levels::names),
                within: self.within.ok_or_else(|| self.needs("within"))?,
            },
            Kind::Above => Claim::Above {
                axis: axis()?,
                upper: self.names(&self.levels, "levels")?,
                lower: self.names(&self.lower, "lower")?,
            },
            Kind::GainsMost => Claim::GainsMost {
                among: self.among.clone().ok_or_else(|| self.needs("among"))?,
                level: self.name(&self.levels, "levels")?,
                axis: axis()?,
                from: self.name(&self.from, "from")?,
                to: self.name(&self.to, "to")?,
            },
            Kind::Quoted => Claim::Quoted {
                value: self.value.ok_or_else(|| self.needs("value"))?,
                within: self.within.unwrap_or(0.0),
            },
            Kind::Count => self.count()?,
        })
    }

    fn count(&self) -> Result<Claim, String> {
        let said = self.value.ok_or_else(|| self.needs("value"))?;
        let value = format!("{said:.0}").parse().ok().filter(|_| said.fract() == 0.0);
        let value = value.ok_or("`value` of a count is not an integer of at least 0")?;
        if self.axes.is_empty() {
            return Err(self.needs("axes"));
        }
        Ok(Claim::Count { axes: self.axes.clone(), times: self.times.unwrap_or(1), value })
    }

    fn needs(&self, key: &str) -> String {
        format!("a part of kind {:?} needs `{key}`", self.kind).to_lowercase()
    }

    fn names(&self, levels: &Option<Levels>, key: &str) -> Result<Vec<String>, String> {
        let names = levels.as_ref().map_or_else(Vec::new, Levels::names);
        if names.is_empty() { Err(self.needs(key)) } else { Ok(names) }
    }

    fn name(&self, levels: &Option<Levels>, key: &str) -> Result<String, String> {
        match &self.names(levels, key)?[..] {
            [one] => Ok(one.clone()),
            _ => Err(format!("`{key}` has several levels; use one")),
        }
    }

    /// Range from `min` to `max`, unlimited at an end that is not set. At least one end must be
    /// set.
    fn range(&self) -> Result<(f64, f64), String> {
        match (self.min, self.max) {
            (None, None) => Err(self.needs("min` or `max")),
            (Some(min), Some(max)) if min > max => {
                Err(format!("`min` = {min} is above `max` = {max}; swap them"))
            }
            (min, max) => Ok((min.unwrap_or(f64::NEG_INFINITY), max.unwrap_or(f64::INFINITY))),
        }
    }

    fn trend(&self) -> Result<ChangeKind, String> {
        Ok(match self.trend {
            Some(RawTrend::Rises) => ChangeKind::Rises,
            Some(RawTrend::Falls) => ChangeKind::Falls,
            Some(RawTrend::Improves) => ChangeKind::Improves,
            Some(RawTrend::Worsens) => ChangeKind::Worsens,
            None => {
                // `min` and `max` of a change are in percent.
                if (self.min, self.max) == (None, None) {
                    return Err(self.needs("trend` or `min"));
                }
                let (min, max) = self.range()?;
                ChangeKind::Between(min / 100.0, max / 100.0)
            }
        })
    }
}

fn end(from: &Levels) -> Result<End, String> {
    match from.names().first().map(String::as_str) {
        Some("best") => Ok(End::Best),
        Some("worst") => Ok(End::Worst),
        _ => Err("invalid `from` of an order; use \"best\" or \"worst\"".into()),
    }
}

fn who(name: String) -> Who {
    match name.as_str() {
        "best" => Who::Best,
        "worst" => Who::Worst,
        _ => Who::Level(name),
    }
}
