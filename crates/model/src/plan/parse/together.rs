//! Parser of workloads that run together.

use toml::de::{DeTable, DeValue};

use super::{
    Item, KnownNames, Result, array, at, conditions, list, string, strings, suite, value, workload,
    wrong,
};
use crate::{
    phase::Part,
    plan::{
        PlanError, WorkloadEntry,
        together::{ACTIONS, Alone, MemberEntry, SUITE, TogetherEntry},
    },
    setting::SystemSetting,
    suggest::nearest,
    units::Nanos,
    workload::Kind,
};

/// Key of the list of members.
pub(super) const KEY: &str = "together";

/// Keys of an entry besides the settings of its cells.
const KEYS: [&str; 5] = [KEY, "runtime", "ramp_time", "alone", "scheduler"];

/// Keys of a member that are not parameters of its suite.
pub(super) const MEMBER_KEYS: [&str; 3] = ["name", "role", "start_delay"];

/// Parses an entry with members.
pub(super) fn entry(
    table: &DeTable<'_>,
    item: Item<'_>,
    vocabulary: KnownNames<'_>,
) -> Result<WorkloadEntry> {
    let known = |key: &str| KEYS.contains(&key) || SystemSetting::from_name(key).is_some();
    let unknown = table.keys().filter(|key| !known(key.get_ref())).min_by_key(|k| k.span().start);
    if let Some(key) = unknown {
        let message = format!("workloads that run together have no key `{}`", key.get_ref());
        let hint = match nearest(key.get_ref(), KEYS) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!("write parameters of a suite in a member; valid keys: {}", KEYS.join(", "))
            }
        };
        return Err(PlanError::new(message, key.span()).hint(hint));
    }
    let spec = suite(SUITE, item.span(), vocabulary)?;
    let members = table.get(KEY).ok_or_else(|| wrong(item, "a list of members"))?;
    let together = TogetherEntry {
        members: parse_members(members, vocabulary)?,
        alone: table.get("alone").map(alone).transpose()?.unwrap_or_default(),
    };
    let mut values = Vec::new();
    for key in ["runtime", "ramp_time"] {
        let Some(item) = table.get(key) else { continue };
        let parameter = spec.parameter(key).map_err(|error| at(error, item.span()))?;
        let all = match item.get_ref() {
            DeValue::Array(items) => {
                items.iter().map(|item| value(parameter.kind, item)).collect::<Result<_>>()?
            }
            _ => vec![value(parameter.kind, item)?],
        };
        values.push((key.to_owned(), all));
    }
    Ok(WorkloadEntry {
        suite: spec,
        preset: None,
        base: spec.defaults(),
        values,
        schedulers: table.get("scheduler").map(strings).transpose()?,
        system_settings: conditions::settings_of(|key| table.get(key))?,
        together: Some(together),
        span: item.span(),
    })
}

fn alone(item: Item<'_>) -> Result<Alone> {
    let text = string(item)?;
    Alone::ALL.into_iter().find(|alone| alone.name() == text).ok_or_else(|| {
        PlanError::new(format!("unknown value `{text}` of `alone`"), item.span())
            .hint(format!("use {}", list(Alone::ALL.iter().map(|alone| alone.name()))))
    })
}

fn parse_members(item: Item<'_>, vocabulary: KnownNames<'_>) -> Result<Vec<MemberEntry>> {
    let items = array(item)?;
    if items.len() < 2 {
        let message = match items.len() {
            0 => "`together` has no members",
            _ => "`together` has only one member",
        };
        return Err(PlanError::new(message, item.span())
            .hint("add a second member, or write the member as a workload without `together`"));
    }
    let mut members: Vec<MemberEntry> = Vec::new();
    for item in items {
        let member = member(item, vocabulary)?;
        if members.iter().any(|other| other.name == member.name) {
            let message = format!("two members have the name `{}`", member.name);
            return Err(PlanError::new(message, member.span).hint("use another name"));
        }
        members.push(member);
    }
    if members.iter().all(|member| member.part == Part::Background) {
        return Err(PlanError::new("no member has the role `measured`", item.span())
            .hint("remove `role` from the member to measure"));
    }
    Ok(members)
}

fn member(item: Item<'_>, vocabulary: KnownNames<'_>) -> Result<MemberEntry> {
    let DeValue::Table(table) = item.get_ref() else {
        return Err(wrong(item, "a table with name, and suite, preset, or action"));
    };
    let Some(name) = table.get("name") else {
        return Err(PlanError::new("this member has no `name`", item.span())
            .hint("add name = \"log\", or another name"));
    };
    let span = name.span();
    let name = string(name)?;
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.is_empty() || !name.chars().all(valid) {
        let message = format!("`{name}` is not a name of a member");
        return Err(PlanError::new(message, span).hint("use letters, digits, `-`, and `_`"));
    }
    if table.get(KEY).is_some() {
        return Err(PlanError::new("a member cannot have members", item.span())
            .hint("write its members in this list"));
    }
    let of_machine = |key: &str| key == "scheduler" || SystemSetting::from_name(key).is_some();
    if let Some(key) = table.keys().find(|key| of_machine(key.get_ref())) {
        let message = format!("all members share `{}`, a setting of the machine", key.get_ref());
        return Err(PlanError::new(message, key.span()).hint("write it next to `together`"));
    }
    let acts = table.get("action").is_some();
    let part = match table.get("role") {
        None if acts => Part::Background,
        None => Part::Measured,
        Some(role) => {
            let text = string(role)?;
            Part::ALL.into_iter().find(|part| part.name() == text).ok_or_else(|| {
                PlanError::new(format!("unknown role `{text}`"), role.span())
                    .hint(format!("use {}", list(Part::ALL.iter().map(|part| part.name()))))
            })?
        }
    };
    let start_delay = table.get("start_delay").map(delay).transpose()?.unwrap_or_default();
    let named = table.get("suite").is_some() || table.get("preset").is_some();
    let default = (acts && !named).then_some(ACTIONS);
    let entry = workload(item, vocabulary, Some(default))?;
    Ok(MemberEntry { name, part, start_delay, entry, span })
}

fn delay(item: Item<'_>) -> Result<Nanos> {
    match value(Kind::Time, item)? {
        crate::workload::Value::Time(time) => Ok(time),
        _ => Err(wrong(item, "a duration such as \"5s\"")),
    }
}
