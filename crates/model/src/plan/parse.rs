//! Parser of plans: TOML text to [`Plan`], with the position of each error.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a TOML value of any other type is the same error"
)]

pub(super) mod conditions;
mod filesystems;
mod layers;
mod mounting;
pub(super) mod options;
mod scales;
mod storage;
mod together;

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

pub(super) use self::{
    filesystems::check_filesystem,
    mounting::{is_mounted, misfit, needs_device},
};
use super::{KnownNames, Plan, PlanError, Profile, WorkloadEntry, keys, together as plan_together};
use crate::{
    setting::SystemSetting,
    storage::Storage,
    suggest::nearest,
    units::{Bytes, Nanos},
    words,
    workload::{Kind, SuiteSpec, Value, ValueError, WorkloadParameters},
};

type Item<'a> = &'a Spanned<DeValue<'a>>;
type Result<T> = std::result::Result<T, PlanError>;

impl Plan {
    /// Parses and checks a plan.
    ///
    /// # Errors
    /// [`PlanError`] for the first error found. Unknown keys of a table are reported before its
    /// values.
    pub fn parse(text: &str, vocabulary: KnownNames<'_>) -> Result<Self> {
        let document = DeTable::parse(text).map_err(|error| {
            PlanError::new(error.message().to_owned(), error.span().unwrap_or(0..0))
                .hint("a plan is TOML: `key = \"value\"`, `[table]`, lists in brackets")
        })?;
        let top = Table::open("", document.get_ref(), 0..0)?;
        let profile = match top.get("profile") {
            None => Profile::default(),
            Some(item) => profile(&string(item)?, item.span())?,
        };
        let axes = top.table("axes")?;
        let storage = storage::storage(&top, &axes)?;
        Ok(Self {
            title: top.get("title").map(string).transpose()?.unwrap_or_default(),
            profile,
            repetitions: top.get("repetitions").map(repetitions).transpose()?,
            aa_control: top.get("aa_control").map(conditions::aa_control).transpose()?,
            time_limit: top.get("time_limit").map(conditions::time_limit).transpose()?,
            invalid_trials: top
                .get("invalid_trials")
                .map(conditions::invalid_trials)
                .transpose()?,
            seed: top.get("seed").map(|item| count(item, 0, u64::MAX)).transpose()?,
            fsck: top.get("fsck").map(flag).transpose()?.unwrap_or(true),
            isolation: conditions::isolation(&top, &storage)?,
            guest: top.get("guest").map(conditions::guest).transpose()?,
            guest_disk: conditions::guest_disk(&top)?,
            cluster: storage::cluster(&top)?,
            study: top.get("study").map(conditions::study).transpose()?,
            filesystems: filesystems::levels(&axes, &storage, vocabulary)?,
            mounted_types: vocabulary.mounted.to_vec(),
            workloads: workloads(&axes, &storage, vocabulary)?,
            schedulers: conditions::schedulers(&axes, &storage)?,
            fill_levels: conditions::fill_levels(&axes, &storage)?,
            system_settings: conditions::system_settings(&axes, &storage)?,
            options: options::options(&axes, &storage)?,
            design: options::design(&top, &axes, &storage)?,
            scales: scales::scales(&top)?,
            storage,
        })
    }
}

/// TOML table with keys checked against [`keys::KEYS`].
struct Table<'a> {
    name: &'static str,
    table: &'a DeTable<'a>,
    span: Range<usize>,
}

impl<'a> Table<'a> {
    fn open(name: &'static str, table: &'a DeTable<'a>, span: Range<usize>) -> Result<Self> {
        let unknown = |key: &str| !keys::of_table(name).any(|known| known == key);
        let first =
            table.keys().filter(|key| unknown(key.get_ref())).min_by_key(|k| k.span().start);
        match first {
            None => Ok(Self { name, table, span }),
            Some(key) => Err(unknown_key(key.get_ref(), key.span(), name)),
        }
    }

    fn get(&self, key: &'static str) -> Option<Item<'a>> {
        debug_assert!(
            keys::of_table(self.name).any(|known| known == key),
            "{key} is in the key table"
        );
        self.table.get(key)
    }

    fn table(&self, key: &'static str) -> Result<Table<'a>> {
        let item = self.get(key).ok_or_else(|| {
            PlanError::new(format!("the plan has no `[{key}]`"), self.span.clone())
                .hint(format!("add a table `[{key}]`; valid keys: {}", list(keys::of_table(key))))
        })?;
        match item.get_ref() {
            DeValue::Table(table) => Table::open(key, table, item.span()),
            _ => Err(wrong(item, "a table")),
        }
    }
}

fn unknown_key(key: &str, span: Range<usize>, table: &'static str) -> PlanError {
    let owner = if table.is_empty() { "the plan".into() } else { format!("`{table}`") };
    let error = PlanError::new(format!("{owner} has no key `{key}`"), span);
    let other_table = keys::KEYS.iter().find(|spec| spec.key == key);
    match (nearest(key, keys::of_table(table)), other_table) {
        (Some(near), _) => error.hint(format!("did you mean `{near}`?")),
        (None, Some(spec)) if !spec.table.is_empty() => {
            error.hint(format!("`{key}` belongs to `[{}]`", spec.table))
        }
        _ => error.hint(format!("valid keys: {}", list(keys::of_table(table)))),
    }
}

fn list(names: impl Iterator<Item = &'static str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

fn wrong(item: Item<'_>, expected: &str) -> PlanError {
    let found = item.get_ref().type_str();
    PlanError::new(format!("expected {expected}, found {found}"), item.span())
}

fn string(item: Item<'_>) -> Result<String> {
    match item.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        _ => Err(wrong(item, "a string")),
    }
}

fn flag(item: Item<'_>) -> Result<bool> {
    item.get_ref().as_bool().ok_or_else(|| wrong(item, "true or false"))
}

fn count(item: Item<'_>, min: u64, max: u64) -> Result<u64> {
    let integer = item.get_ref().as_integer().ok_or_else(|| wrong(item, "an integer"))?;
    u64::from_str_radix(integer.as_str(), integer.radix())
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| {
            PlanError::new(
                format!("{} is out of range; use an integer from {min} to {max}", integer.as_str()),
                item.span(),
            )
        })
}

fn repetitions(item: Item<'_>) -> Result<u32> {
    let repetitions = count(item, 1, 1000)?;
    Ok(u32::try_from(repetitions).unwrap_or(1000))
}

fn size(item: Item<'_>) -> Result<Bytes> {
    match item.get_ref() {
        DeValue::String(text) => {
            Bytes::parse(text).map_err(|error| PlanError::new(error.to_string(), item.span()))
        }
        DeValue::Integer(_) => count(item, 0, u64::MAX).map(Bytes),
        _ => Err(wrong(item, "a size such as \"4GiB\"")),
    }
}

fn strings(item: Item<'_>) -> Result<Vec<String>> {
    match item.get_ref() {
        DeValue::Array(items) if items.is_empty() => {
            Err(PlanError::new("the list is empty", item.span()))
        }
        DeValue::Array(items) => items.iter().map(string).collect(),
        _ => Err(wrong(item, "a list of strings")),
    }
}

pub(super) fn profile(name: &str, span: Range<usize>) -> Result<Profile> {
    Profile::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| {
        PlanError::new(format!("unknown profile `{name}`"), span)
            .hint(format!("use {}", list(Profile::ALL.iter().map(|profile| profile.name()))))
    })
}

fn array<'a>(item: Item<'a>) -> Result<&'a [Spanned<DeValue<'a>>]> {
    match item.get_ref() {
        DeValue::Array(items) => Ok(items),
        _ => Err(wrong(item, "a list")),
    }
}

fn workloads(
    axes: &Table<'_>,
    storage: &Storage,
    vocabulary: KnownNames<'_>,
) -> Result<Vec<WorkloadEntry>> {
    let Some(item) = axes.get("workload") else {
        return Err(PlanError::new("`axes` has no `workload`", axes.span.clone()).hint(
            "add workload = [{ suite = \"iozone\", file_size = \"1GiB\", block_size = \"64KiB\" }]",
        ));
    };
    let items = array(item)?;
    if items.is_empty() {
        return Err(PlanError::new("the list is empty", item.span()));
    }
    let entries: Vec<_> =
        items.iter().map(|item| workload(item, vocabulary, None)).collect::<Result<_>>()?;
    conditions::check_own_conditions(&entries, storage)?;
    Ok(entries)
}

/// Parses a workload: a preset name, or a table with a preset or a suite and parameters. `member`
/// is set for a member of workloads that run together, to its suite if the table names none.
fn workload(
    item: Item<'_>,
    vocabulary: KnownNames<'_>,
    member: Option<Option<&'static str>>,
) -> Result<WorkloadEntry> {
    let table = match item.get_ref() {
        DeValue::Table(table) if member.is_none() && table.get(together::KEY).is_some() => {
            return together::entry(table, item, vocabulary);
        }
        DeValue::Table(table) => table,
        DeValue::String(name) => {
            let (preset, base) = preset(name, item.span(), vocabulary)?;
            let suite = suite(&base.suite, item.span(), vocabulary)?;
            return Ok(plain(suite, preset, base, item.span()));
        }
        _ => return Err(wrong(item, "a name, or a table with a preset or a suite")),
    };
    let (suite, preset, base) = match (table.get("suite"), table.get("preset")) {
        (Some(name), None) => {
            let suite = suite(&string(name)?, name.span(), vocabulary)?;
            if suite.name == plan_together::SUITE {
                let message = format!("`{}` is not a suite of a single workload", suite.name);
                return Err(PlanError::new(message, name.span())
                    .hint("write together = [{ name = \"…\", suite = \"…\" }, …]"));
            }
            (suite, None, suite.defaults())
        }
        (None, Some(name)) => {
            let (preset, base) = preset(&string(name)?, name.span(), vocabulary)?;
            (suite(&base.suite, name.span(), vocabulary)?, preset, base)
        }
        (Some(_), Some(both)) => {
            let message = "this workload has both `suite` and `preset`";
            return Err(PlanError::new(message, both.span())
                .hint("remove `suite`: a preset includes its suite"));
        }
        (None, None) if member.flatten().is_some() => {
            let suite = suite(member.flatten().unwrap_or_default(), item.span(), vocabulary)?;
            (suite, None, suite.defaults())
        }
        (None, None) => {
            let names = vocabulary.suites.iter().map(|suite| suite.name);
            return Err(PlanError::new("this workload has no `suite`", item.span())
                .hint(format!("add suite = \"…\" with one of: {}", list(names))));
        }
    };
    let taken = |key: &str| {
        matches!(key, "suite" | "preset" | "scheduler")
            || SystemSetting::from_name(key).is_some()
            || (member.is_some() && together::MEMBER_KEYS.contains(&key))
    };
    let mut parameters: Vec<_> = table.iter().filter(|(key, _)| !taken(key.get_ref())).collect();
    parameters.sort_by_key(|(key, _)| key.span().start);
    let values = parameters
        .into_iter()
        .map(|(key, value)| Ok((key.get_ref().to_string(), parameter(suite, key, value)?)))
        .collect::<Result<_>>()?;
    Ok(WorkloadEntry {
        suite,
        preset,
        base,
        values,
        schedulers: table.get("scheduler").map(strings).transpose()?,
        system_settings: conditions::settings_of(|key| table.get(key))?,
        together: None,
        span: item.span(),
    })
}

/// Workload without own parameters and settings.
fn plain(
    suite: &'static SuiteSpec,
    preset: Option<String>,
    base: WorkloadParameters,
    span: Range<usize>,
) -> WorkloadEntry {
    WorkloadEntry {
        suite,
        preset,
        base,
        values: Vec::new(),
        schedulers: None,
        system_settings: Vec::new(),
        together: None,
        span,
    }
}

fn suite(name: &str, span: Range<usize>, vocabulary: KnownNames<'_>) -> Result<&'static SuiteSpec> {
    let names = || vocabulary.suites.iter().map(|suite| suite.name);
    vocabulary.suites.iter().copied().find(|suite| suite.name == name).ok_or_else(|| {
        let error = PlanError::new(format!("unknown suite `{name}`"), span);
        match nearest(name, names()) {
            Some(near) => error.hint(format!("did you mean `{near}`?")),
            None => error.hint(format!("use one of: {}", list(names()))),
        }
    })
}

/// Name and parameters of a preset.
fn preset(
    name: &str,
    span: Range<usize>,
    vocabulary: KnownNames<'_>,
) -> Result<(Option<String>, WorkloadParameters)> {
    if let Some(preset) = vocabulary.presets.iter().find(|preset| preset.name == name) {
        return Ok((Some(preset.name.clone()), preset.workload.clone()));
    }
    let suites = || vocabulary.suites.iter().map(|suite| suite.name);
    if suites().any(|suite| suite == name) {
        let error = PlanError::new(format!("`{name}` is a suite, not a workload"), span);
        return Err(error.hint(format!("write {{ suite = \"{name}\" }} and add its parameters")));
    }
    let error = PlanError::new(format!("unknown workload `{name}`"), span);
    let presets = vocabulary.presets.iter().map(|preset| preset.name.as_str());
    Err(match (nearest(name, presets), nearest(name, suites())) {
        (Some(near), _) => error.hint(format!("did you mean `{near}`?")),
        (None, Some(near)) => error.hint(format!("did you mean {{ suite = \"{near}\" }}?")),
        (None, None) => error.hint(format!(
            "use a name of `fslab list workloads`, or {{ suite = \"…\" }} with one of: {}",
            list(suites())
        )),
    })
}

fn parameter(
    suite: &SuiteSpec,
    key: &Spanned<toml::de::DeString<'_>>,
    item: Item<'_>,
) -> Result<Vec<Value>> {
    let spec = suite.parameter(key.get_ref()).map_err(|error| at(error, key.span()))?;
    match item.get_ref() {
        DeValue::Array(items) if spec.kind.sweeps() => {
            if items.is_empty() {
                return Err(PlanError::new("the list is empty", item.span()));
            }
            items.iter().map(|item| value(spec.kind, item)).collect()
        }
        _ => Ok(vec![value(spec.kind, item)?]),
    }
}

pub(super) fn at(error: ValueError, span: Range<usize>) -> PlanError {
    PlanError { message: error.message, span, hint: error.hint }
}

/// Text of lines of words: a text, a list of words, a table, or a list of such lists or tables.
fn lines(item: Item<'_>) -> Result<String> {
    let several = |item: &Spanned<DeValue<'_>>| {
        matches!(item.get_ref(), DeValue::Array(_) | DeValue::Table(_))
    };
    match item.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Array(items) if items.iter().any(several) => {
            let lines: Vec<String> = items.iter().map(line).collect::<Result<_>>()?;
            Ok(lines.join("\n"))
        }
        _ => line(item),
    }
}

/// Text of one line of words. A table becomes words `key=value`.
fn line(item: Item<'_>) -> Result<String> {
    match item.get_ref() {
        DeValue::Array(_) => strings(item).map(words::join),
        DeValue::Table(table) => {
            let word = |(key, item): (&Spanned<toml::de::DeString<'_>>, Item<'_>)| {
                let value = match item.get_ref() {
                    DeValue::Integer(integer) => integer.as_str().to_owned(),
                    _ => string(item)?,
                };
                Ok(format!("{}={value}", key.get_ref()))
            };
            let words: Vec<String> = table.iter().map(word).collect::<Result<_>>()?;
            Ok(words::join(words))
        }
        _ => Err(wrong(item, "a text, a list of texts, or a table")),
    }
}

/// Parses a value of `kind`.
fn value(kind: Kind, item: Item<'_>) -> Result<Value> {
    let value = match (kind, item.get_ref()) {
        (Kind::Size { .. }, _) => Value::Size(size(item)?),
        (Kind::Count { min, max } | Kind::Amount { min, max }, _) => {
            Value::Count(count(item, min, max)?)
        }
        (Kind::Fraction, DeValue::Float(float)) => {
            Value::Fraction(float.as_str().parse().map_err(|_| wrong(item, "a number"))?)
        }
        (Kind::Fraction, DeValue::Integer(integer)) => {
            Value::Fraction(integer.as_str().parse().map_err(|_| wrong(item, "a number"))?)
        }
        (Kind::Number { .. }, DeValue::Float(float)) => {
            Value::Number(float.as_str().parse().map_err(|_| wrong(item, "a number"))?)
        }
        (Kind::Number { .. }, DeValue::Integer(integer)) => {
            Value::Number(integer.as_str().parse().map_err(|_| wrong(item, "a number"))?)
        }
        (Kind::Time, DeValue::String(text)) => Value::Time(
            Nanos::parse(text).map_err(|error| PlanError::new(error.to_string(), item.span()))?,
        ),
        (Kind::Text { .. }, DeValue::String(text)) => Value::Text(text.to_string()),
        (Kind::Text { .. }, DeValue::Integer(integer)) => Value::Text(integer.as_str().to_owned()),
        (Kind::Lines { .. }, _) => Value::Text(lines(item)?),
        (Kind::Flag, _) => Value::Flag(flag(item)?),
        (Kind::Word(_), DeValue::String(word)) => Value::Word(word.to_string()),
        (Kind::Words(_) | Kind::Sequence(_), DeValue::Array(_)) => Value::Words(strings(item)?),
        (Kind::Words(_) | Kind::Sequence(_), DeValue::String(word)) => {
            Value::Words(vec![word.to_string()])
        }
        (
            Kind::Fraction
            | Kind::Number { .. }
            | Kind::Time
            | Kind::Text { .. }
            | Kind::Word(_)
            | Kind::Words(_)
            | Kind::Sequence(_),
            _,
        ) => return Err(wrong(item, &kind.to_string())),
    };
    kind.check(value).map_err(|error| at(error, item.span()))
}
