//! From TOML text to a [`Plan`], with the place of every mistake.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a TOML value of whatever other kind is the same mistake"
)]

pub(super) mod conditions;
mod filesystems;
mod layers;
mod scales;

use std::ops::Range;

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

pub(super) use self::filesystems::check_filesystem;
use super::{Plan, PlanError, Profile, Vocabulary, WorkloadEntry, keys};
use crate::{
    factor::Factor,
    storage::{Allocation, Place, Storage},
    suggest::nearest,
    units::{Bytes, Nanos},
    workload::{Kind, Point, SuiteSpec, Value, ValueError},
};

type Item<'a> = &'a Spanned<DeValue<'a>>;
type Result<T> = std::result::Result<T, PlanError>;

impl Plan {
    /// Reads and checks a plan.
    ///
    /// # Errors
    /// The first [`PlanError`] met, in the order of the text within each table.
    pub fn parse(text: &str, vocabulary: Vocabulary<'_>) -> Result<Self> {
        let document = DeTable::parse(text).map_err(|error| {
            PlanError::new(error.message().to_owned(), error.span().unwrap_or(0..0))
                .cure("a plan is TOML: `key = \"value\"`, `[table]`, lists in brackets")
        })?;
        let top = Table::open("", document.get_ref(), 0..0)?;
        let profile = match top.get("profile") {
            None => Profile::default(),
            Some(item) => profile(&string(item)?, item.span())?,
        };
        let storage = storage(&top.table("storage")?)?;
        let axes = top.table("axes")?;
        Ok(Self {
            title: top.get("title").map(string).transpose()?.unwrap_or_default(),
            profile,
            repeats: top.get("repeats").map(repeats).transpose()?,
            twins: top.get("twins").map(conditions::twins).transpose()?,
            budget: top.get("budget").map(conditions::budget).transpose()?,
            spoiled: top.get("invalid").map(conditions::spoiled).transpose()?,
            seed: top.get("seed").map(|item| count(item, 0, u64::MAX)).transpose()?,
            fsck: top.get("fsck").map(flag).transpose()?.unwrap_or(true),
            isolation: conditions::isolation(&top, &storage)?,
            guest: top.get("guest").map(conditions::guest).transpose()?,
            guest_disk: conditions::guest_disk(&top.table("storage")?)?,
            view: top.get("view").map(conditions::view).transpose()?,
            filesystems: filesystems::levels(&axes, &storage, vocabulary)?,
            workloads: workloads(&axes, &storage, vocabulary)?,
            schedulers: conditions::schedulers(&axes, &storage)?,
            fullness: conditions::fullness(&axes, &storage)?,
            factors: conditions::factors(&axes, &storage)?,
            scales: scales::scales(&top)?,
            storage,
        })
    }
}

/// A TOML table whose keys have all been checked against [`keys::KEYS`].
struct Table<'a> {
    name: &'static str,
    table: &'a DeTable<'a>,
    span: Range<usize>,
}

impl<'a> Table<'a> {
    fn open(name: &'static str, table: &'a DeTable<'a>, span: Range<usize>) -> Result<Self> {
        let unknown = |key: &str| !keys::of(name).any(|known| known == key);
        let first =
            table.keys().filter(|key| unknown(key.get_ref())).min_by_key(|k| k.span().start);
        match first {
            None => Ok(Self { name, table, span }),
            Some(key) => Err(unknown_key(key.get_ref(), key.span(), name)),
        }
    }

    fn get(&self, key: &'static str) -> Option<Item<'a>> {
        debug_assert!(keys::of(self.name).any(|known| known == key), "{key} is in the key table");
        self.table.get(key)
    }

    fn table(&self, key: &'static str) -> Result<Table<'a>> {
        let item = self.get(key).ok_or_else(|| {
            PlanError::new(format!("the plan has no `[{key}]`"), self.span.clone())
                .cure(format!("add a table `[{key}]`; it may have {}", list(keys::of(key))))
        })?;
        match item.get_ref() {
            DeValue::Table(table) => Table::open(key, table, item.span()),
            _ => Err(wrong(item, "a table")),
        }
    }
}

fn unknown_key(key: &str, span: Range<usize>, table: &'static str) -> PlanError {
    let place = if table.is_empty() { "a plan".into() } else { format!("`{table}`") };
    let error = PlanError::new(format!("{place} has no key `{key}`"), span);
    let elsewhere = keys::KEYS.iter().find(|spec| spec.key == key);
    match (nearest(key, keys::of(table)), elsewhere) {
        (Some(near), _) => error.cure(format!("did you mean `{near}`?")),
        (None, Some(spec)) if !spec.table.is_empty() => {
            error.cure(format!("`{key}` belongs into `[{}]`", spec.table))
        }
        _ => error.cure(format!("it may have {}", list(keys::of(table)))),
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
        _ => Err(wrong(item, "text in quotes")),
    }
}

fn flag(item: Item<'_>) -> Result<bool> {
    item.get_ref().as_bool().ok_or_else(|| wrong(item, "true or false"))
}

fn count(item: Item<'_>, min: u64, max: u64) -> Result<u64> {
    let integer = item.get_ref().as_integer().ok_or_else(|| wrong(item, "a whole number"))?;
    u64::from_str_radix(integer.as_str(), integer.radix())
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| {
            PlanError::new(format!("{} is not within {min}..={max}", integer.as_str()), item.span())
        })
}

fn repeats(item: Item<'_>) -> Result<u32> {
    let repeats = count(item, 1, 1000)?;
    Ok(u32::try_from(repeats).unwrap_or(1000))
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
        _ => Err(wrong(item, "a list of texts")),
    }
}

pub(super) fn profile(name: &str, span: Range<usize>) -> Result<Profile> {
    Profile::ALL.into_iter().find(|profile| profile.name() == name).ok_or_else(|| {
        PlanError::new(format!("there is no profile `{name}`"), span)
            .cure(format!("use {}", list(Profile::ALL.iter().map(|profile| profile.name()))))
    })
}

fn storage(table: &Table<'_>) -> Result<Storage> {
    let places = ["image", "image_file", "device", "devices", "directory"];
    let mut given = places.into_iter().filter_map(|key| Some((key, table.get(key)?)));
    let none = || {
        PlanError::new("`storage` names nothing to measure on", table.span.clone())
            .cure("give one of image = \"4GiB\", device = \"/dev/…\", directory = \"/…\"")
    };
    let (key, item) = given.next().ok_or_else(none)?;
    if let Some((other, item)) = given.find(|(other, _)| (key, *other) != ("image", "image_file")) {
        let message = format!("`storage` has both `{key}` and `{other}`");
        return Err(PlanError::new(message, item.span()).cure("keep one of them"));
    }
    let place = match key {
        "image" | "image_file" => image(table)?,
        "device" => Place::Devices { paths: vec![string(item)?] },
        "devices" => Place::Devices { paths: strings(item)? },
        _ => Place::Directory { path: string(item)? },
    };
    for key in ["images", "image_directory", "allocation"] {
        if let (Some(item), false) = (table.get(key), matches!(place, Place::Image { .. })) {
            let message = format!("`{key}` says something of images, and `storage` has no `image`");
            return Err(PlanError::new(message, item.span()).cure("take one of them out"));
        }
    }
    Ok(Storage {
        place,
        memory: table.get("memory").map(size).transpose()?,
        elsewhere: table.get("elsewhere").map(string).transpose()?,
    })
}

fn image(table: &Table<'_>) -> Result<Place> {
    let Some(item) = table.get("image") else {
        let span = table.get("image_file").map_or(0..0, Spanned::span);
        return Err(PlanError::new("`image_file` comes without a size", span)
            .cure("add image = \"4GiB\" or another size"));
    };
    let size = size(item)?;
    if size < Bytes::mib(1) {
        let message = format!("an image of {size} holds no filesystem; the least is 1MiB");
        return Err(PlanError::new(message, item.span()));
    }
    let images = table.get("images").map(|item| count(item, 1, 16)).transpose()?.unwrap_or(1);
    let file = table.get("image_file").map(string).transpose()?;
    if let (true, Some(item)) = (images > 1, table.get("image_file")) {
        return Err(PlanError::new(
            "`image_file` names one file, `images` asks for more",
            item.span(),
        )
        .cure("leave `image_file` out, or `images`"));
    }
    let allocation = match table.get("allocation") {
        None => Allocation::default(),
        Some(item) => {
            let name = string(item)?;
            [Allocation::Full, Allocation::Sparse]
                .into_iter()
                .find(|allocation| allocation.name() == name)
                .ok_or_else(|| {
                    PlanError::new(format!("`{name}` is no allocation"), item.span())
                        .cure("use full or sparse")
                })?
        }
    };
    Ok(Place::Image {
        size,
        count: u32::try_from(images).unwrap_or(1),
        directory: table.get("image_directory").map(string).transpose()?,
        file,
        allocation,
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
    vocabulary: Vocabulary<'_>,
) -> Result<Vec<WorkloadEntry>> {
    let Some(item) = axes.get("workload") else {
        return Err(PlanError::new("`axes` has no `workload`", axes.span.clone())
            .cure("add workload = [{ suite = \"iozone\", file = \"1GiB\", record = \"64KiB\" }]"));
    };
    let items = array(item)?;
    if items.is_empty() {
        return Err(PlanError::new("the list is empty", item.span()));
    }
    let entries: Vec<_> =
        items.iter().map(|item| workload(item, vocabulary)).collect::<Result<_>>()?;
    conditions::own(&entries, storage)?;
    Ok(entries)
}

/// A workload as text is a recipe; as a table it has a recipe or a suite, and parameters.
fn workload(item: Item<'_>, vocabulary: Vocabulary<'_>) -> Result<WorkloadEntry> {
    let table = match item.get_ref() {
        DeValue::Table(table) => table,
        DeValue::String(name) => {
            let (recipe, base) = recipe(name, item.span(), vocabulary)?;
            let suite = suite(&base.suite, item.span(), vocabulary)?;
            return Ok(WorkloadEntry {
                suite,
                recipe,
                base,
                values: Vec::new(),
                schedulers: None,
                factors: Vec::new(),
                span: item.span(),
            });
        }
        _ => return Err(wrong(item, "a name, or a table with a recipe or a suite")),
    };
    let (suite, recipe, base) = match (table.get("suite"), table.get("recipe")) {
        (Some(name), None) => {
            let suite = suite(&string(name)?, name.span(), vocabulary)?;
            (suite, None, suite.defaults())
        }
        (None, Some(name)) => {
            let (recipe, base) = recipe(&string(name)?, name.span(), vocabulary)?;
            (suite(&base.suite, name.span(), vocabulary)?, recipe, base)
        }
        (Some(_), Some(both)) => {
            let message = "this workload has both `suite` and `recipe`";
            return Err(PlanError::new(message, both.span())
                .cure("keep one of them: a recipe names its suite itself"));
        }
        (None, None) => {
            let names = vocabulary.suites.iter().map(|suite| suite.name);
            return Err(PlanError::new("this workload has no `suite`", item.span())
                .cure(format!("add suite = \"…\" with one of: {}", list(names))));
        }
    };
    let taken =
        |key: &str| matches!(key, "suite" | "recipe" | "scheduler") || Factor::named(key).is_some();
    let mut parameters: Vec<_> = table.iter().filter(|(key, _)| !taken(key.get_ref())).collect();
    parameters.sort_by_key(|(key, _)| key.span().start);
    let values = parameters
        .into_iter()
        .map(|(key, value)| Ok((key.get_ref().to_string(), parameter(suite, key, value)?)))
        .collect::<Result<_>>()?;
    Ok(WorkloadEntry {
        suite,
        recipe,
        base,
        values,
        schedulers: table.get("scheduler").map(strings).transpose()?,
        factors: conditions::factors_of(|key| table.get(key))?,
        span: item.span(),
    })
}

fn suite(name: &str, span: Range<usize>, vocabulary: Vocabulary<'_>) -> Result<&'static SuiteSpec> {
    let names = || vocabulary.suites.iter().map(|suite| suite.name);
    vocabulary.suites.iter().copied().find(|suite| suite.name == name).ok_or_else(|| {
        let error = PlanError::new(format!("there is no suite `{name}`"), span);
        match nearest(name, names()) {
            Some(near) => error.cure(format!("did you mean `{near}`?")),
            None => error.cure(format!("those known: {}", list(names()))),
        }
    })
}

/// The name and the point of a recipe.
fn recipe(
    name: &str,
    span: Range<usize>,
    vocabulary: Vocabulary<'_>,
) -> Result<(Option<String>, Point)> {
    if let Some(recipe) = vocabulary.recipes.iter().find(|recipe| recipe.name == name) {
        return Ok((Some(recipe.name.clone()), recipe.point.clone()));
    }
    let suites = || vocabulary.suites.iter().map(|suite| suite.name);
    if suites().any(|suite| suite == name) {
        let error = PlanError::new(format!("`{name}` is a suite, not a workload"), span);
        return Err(error.cure(format!("write {{ suite = \"{name}\" }} and add its parameters")));
    }
    let error = PlanError::new(format!("there is no workload `{name}`"), span);
    let recipes = vocabulary.recipes.iter().map(|recipe| recipe.name.as_str());
    Err(match (nearest(name, recipes), nearest(name, suites())) {
        (Some(near), _) => error.cure(format!("did you mean `{near}`?")),
        (None, Some(near)) => error.cure(format!("did you mean {{ suite = \"{near}\" }}?")),
        (None, None) => error.cure(format!(
            "`fslab list workloads` shows those known; or write {{ suite = \"…\" }} with one of: {}",
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
    PlanError { message: error.message, span, cure: error.cure }
}

/// A value of that kind.
fn value(kind: Kind, item: Item<'_>) -> Result<Value> {
    let value = match (kind, item.get_ref()) {
        (Kind::Size { .. }, _) => Value::Size(size(item)?),
        (Kind::Count { min, max } | Kind::Amount { min, max }, _) => {
            Value::Count(count(item, min, max)?)
        }
        (Kind::Share, DeValue::Float(float)) => {
            Value::Share(float.as_str().parse().map_err(|_| wrong(item, "a number"))?)
        }
        (Kind::Share, DeValue::Integer(integer)) => {
            Value::Share(integer.as_str().parse().map_err(|_| wrong(item, "a number"))?)
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
        (Kind::Flag, _) => Value::Flag(flag(item)?),
        (Kind::Word(_), DeValue::String(word)) => Value::Word(word.to_string()),
        (Kind::Words(_) | Kind::Sequence(_), DeValue::Array(_)) => Value::Words(strings(item)?),
        (Kind::Words(_) | Kind::Sequence(_), DeValue::String(word)) => {
            Value::Words(vec![word.to_string()])
        }
        (
            Kind::Share
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
