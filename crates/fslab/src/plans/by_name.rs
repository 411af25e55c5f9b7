//! Plans of workloads named on the command line, such as
//! `fslab run oltp-8k --filesystem ext4,xfs --image 4GiB`.
//!
//! The options are converted to the text of a plan. The run file contains this text, and
//! `fslab show --text` prints it, so that it can be saved as a plan file and edited.

use std::{ops::Range, path::Path};

use model::{OptionOf, PlanError, SuiteSpec, SystemSetting, Value, plan, suggest::nearest};
use rig::Catalog;

use super::{BUILTIN_PLANS, ResolvedPlan, known_scale, set as option};
use crate::{cli::Changes, exit::Failure};

/// Maximum length of a line with workloads in a generated plan, in characters.
const COLUMNS: usize = 100;

/// True for the path of a job file of fio.
pub(crate) fn is_job(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "fio")
}

/// True if a plan has this name: a built-in plan, a path, or an existing file.
pub(super) fn is_plan(name: &str) -> bool {
    let path = Path::new(name);
    if is_job(path) {
        return false;
    }
    let built_in = BUILTIN_PLANS.iter().any(|plan| plan.name == name);
    built_in || path.extension().is_some() || name.contains('/') || path.is_file()
}

/// Workloads with these names; `None` for a single name that is a plan or unknown.
///
/// # Errors
/// If there are several names and one is not a workload.
pub(super) fn workloads(names: &[String]) -> Result<Option<Vec<Workload>>, Failure> {
    if let [name] = names {
        let workload = Workload::find(name).filter(|_| !is_plan(name));
        return Ok(workload.map(|workload| vec![workload]));
    }
    let find = |name: &String| Workload::find(name).ok_or_else(|| not_a_workload(name));
    names.iter().map(find).collect::<Result<_, _>>().map(Some)
}

fn not_a_workload(name: &str) -> Failure {
    let near = near(name);
    wrong(if Path::new(name).is_dir() {
        format!("`{name}` is a directory; to measure it, use --directory {name}")
    } else if is_plan(name) {
        format!("`{name}` is a plan, and a plan runs alone; remove the other names")
    } else if let Some(filesystem) = filesystem(name) {
        filesystem
    } else if near.is_empty() {
        format!("unknown workload `{name}`; `fslab list workloads` lists all workloads")
    } else {
        format!("unknown workload `{name}`; did you mean {}?", near.join(" or "))
    })
}

/// Message for the name of a filesystem in the place of a workload.
pub(super) fn filesystem(name: &str) -> Option<String> {
    Catalog::embedded().get(&name.to_lowercase()).ok()?;
    Some(format!(
        "`{name}` is a filesystem, not a workload; names of filesystems follow --filesystem and \
         are separated by commas, such as --filesystem ext4,xfs"
    ))
}

/// Plan of these workloads with the options.
///
/// # Errors
/// If an option is missing or invalid. The message contains the option.
pub(super) fn resolve(
    workloads: Vec<Workload>,
    changes: &Changes,
    catalog: &Catalog,
) -> Result<ResolvedPlan, Failure> {
    let scale = known_scale(&changes.scale)?;
    let names: Vec<String> = workloads.iter().map(|workload| workload.name.clone()).collect();
    let file = match &names[..] {
        [first, _, _, _, ..] => format!("{first}+{}", names.len() - 1),
        names => names.join("+"),
    };
    let (draft, set) = Draft::new(workloads, changes)?;
    let (text, spans) = draft.text();
    let own = |error: PlanError| error_of_option(&error, &spans);
    let chosen =
        ResolvedPlan::parse(file.clone(), text, set.clone(), scale, catalog, &own, &option)?;
    // The text also contains the values of --set, unless a plan cannot express them.
    let Some(whole) = draft.with(&set).filter(|_| !set.is_empty()) else { return Ok(chosen) };
    let whole =
        ResolvedPlan::parse(file, whole.text().0, Vec::new(), scale, catalog, &own, &option);
    match whole {
        Ok(whole) if whole.cells == chosen.cells && whole.storage == chosen.storage => Ok(whole),
        Ok(_) | Err(_) => Ok(chosen),
    }
}

fn error_of_option(error: &PlanError, spans: &[(Range<usize>, String)]) -> Failure {
    let at = error.span.start;
    let option = spans.iter().find(|(span, _)| span.contains(&at)).map(|(_, option)| option);
    let option = option.map(|option| format!("{option}: ")).unwrap_or_default();
    let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    wrong(format!("{option}{error}{hint}"))
}

/// Workload of the plan, with the parameters that the options set.
#[derive(Clone)]
pub(super) struct Workload {
    name: String,
    /// True for a preset, false for a suite.
    preset: bool,
    suite: &'static SuiteSpec,
    /// Parameters that the options set, with values as TOML.
    parameters: Vec<(String, String)>,
}

impl Workload {
    fn find(name: &str) -> Option<Self> {
        if is_job(Path::new(name)) {
            let suite = suites::find(suites::fio::NAME)?.spec;
            let parameters = vec![(suites::fio::JOB.to_owned(), quoted(name))];
            return Some(Self { name: suite.name.into(), preset: false, suite, parameters });
        }
        let preset = suites::preset(name);
        let suite = preset.map_or(name, |preset| preset.workload.suite.as_str());
        let suite = suites::find(suite)?.spec;
        let (name, parameters) = (name.to_owned(), Vec::new());
        Some(Self { name, preset: preset.is_some(), suite, parameters })
    }

    /// Entry of the workload axis.
    fn entry(&self) -> String {
        let name = quoted(&self.name);
        if self.preset && self.parameters.is_empty() {
            return name;
        }
        let key = if self.preset { "preset" } else { "suite" };
        let parameters = self.parameters.iter().map(|(key, value)| format!(", {key} = {value}"));
        format!("{{ {key} = {name}{} }}", parameters.collect::<String>())
    }
}

/// Key of the plan.
#[derive(Clone)]
struct Line {
    /// Table; empty for the top level.
    table: &'static str,
    key: String,
    /// Value as TOML.
    value: String,
    /// Option that sets the key.
    option: String,
}

/// Plan before it is converted to text.
#[derive(Clone)]
struct Draft {
    lines: Vec<Line>,
    workloads: Vec<Workload>,
}

impl Draft {
    /// Creates a plan from the options. Also returns the values of --set that are not axes.
    fn new(
        workloads: Vec<Workload>,
        changes: &Changes,
    ) -> Result<(Self, Vec<(String, String)>), Failure> {
        let mut options = changes.axes.overrides();
        // --set also accepts these keys, and replaces the value of the option.
        let (axes, set): (Vec<_>, Vec<_>) =
            changes.set.iter().cloned().partition(|(key, _)| is_axis(key));
        for (key, value) in axes {
            let typed = option(&key, &value);
            options.retain(|(other, ..)| *other != key);
            options.push((key, value, typed));
        }
        check(&options, &workloads)?;
        let title = title(&workloads, &options);
        let mut draft = Self { lines: Vec::new(), workloads };
        draft.put("", "title", quoted(&title), String::new());
        if let Some(profile) = changes.profile {
            let name = profile.profile().name();
            draft.put("", "profile", quoted(name), format!("--profile {name}"));
        }
        if let Some(kind) = changes.guest {
            let name = kind.name();
            draft.put("", "guest", quoted(name), format!("--guest {name}"));
        }
        if !changes.kernel.is_empty() {
            let option = format!("--kernel {}", changes.kernel.join(" --kernel "));
            draft.put("axes", "kernel", list(changes.kernel.iter().map(|k| quoted(k))), option);
        }
        for (key, value, option) in options {
            draft.option(&key, &value, option)?;
        }
        Ok((draft, set))
    }

    fn put(&mut self, table: &'static str, key: &str, value: String, option: String) {
        self.lines.retain(|line| (line.table, line.key.as_str()) != (table, key));
        self.lines.push(Line { table, key: key.to_owned(), value, option });
    }

    /// Adds the key of an option: filesystems, storage, or repetitions.
    fn option(&mut self, key: &str, value: &str, option: String) -> Result<(), Failure> {
        let words = || value.split(',').map(|word| quoted(word.trim()));
        match (key, value.contains(',')) {
            ("filesystem", _) => self.put("axes", key, list(words()), option),
            ("repetitions", _) => self.put("", key, value.to_owned(), option),
            ("device", true) => self.put("storage", "devices", list(words()), option),
            ("directory", _) => {
                // Absolute, because the plan may be used in another directory.
                let path = std::path::absolute(value)?.display().to_string();
                self.put("storage", key, quoted(&path), option);
            }
            _ => self.put("storage", key, quoted(value), option),
        }
        Ok(())
    }

    /// Plan with the values of --set added; `None` if a plan cannot express a value.
    fn with(&self, set: &[(String, String)]) -> Option<Self> {
        let mut draft = self.clone();
        set.iter().try_for_each(|(key, value)| draft.set(key, value))?;
        Some(draft)
    }

    fn set(&mut self, key: &str, text: &str) -> Option<()> {
        let typed = option(key, text);
        let of_plan = |spec: &&plan::KeySpec| ["", "storage", "axes"].contains(&spec.table);
        // Without a plan, `device` is the storage.
        let setting = SystemSetting::from_name(key).filter(|it| *it != SystemSetting::Device);
        if let Some(setting) = setting {
            let values = setting.spec().kind.read_sweep(text).ok()?;
            self.put("axes", key, list(values.iter().map(toml)), typed);
        } else if let Some(spec) = plan::KEYS.iter().filter(of_plan).find(|spec| spec.key == key) {
            let item = |text: &str| match spec.takes {
                takes if takes.contains("integer") || takes == "boolean" => text.to_owned(),
                _ => quoted(text),
            };
            let value = match spec.takes.starts_with("list of") {
                true => list(text.split(',').map(|word| item(word.trim()))),
                false => item(text),
            };
            self.put(spec.table, key, value, typed);
        } else if let Some((of, name)) = OptionOf::parse(key) {
            let item = |word: &str| match word {
                "true" | "false" => word.to_owned(),
                word => quoted(word),
            };
            let values = list(text.split(',').map(|word| item(word.trim())));
            let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            let name = if name.chars().all(bare) { name.to_owned() } else { quoted(name) };
            self.put("axes", &format!("{}.{name}", of.key()), values, typed);
        } else {
            for workload in &mut self.workloads {
                let Ok(parameter) = workload.suite.parameter(key) else { continue };
                let values = parameter.kind.read_sweep(text).ok()?;
                let value = match &values[..] {
                    [value] => toml(value),
                    values => list(values.iter().map(toml)),
                };
                workload.parameters.retain(|(other, _)| other != key);
                workload.parameters.push((key.to_owned(), value));
            }
        }
        Some(())
    }

    /// Text of the plan, and byte ranges of the text with the options that set them.
    fn text(&self) -> (String, Vec<(Range<usize>, String)>) {
        let (mut text, mut spans) = (String::new(), Vec::new());
        for table in ["", "storage", "axes"] {
            if !table.is_empty() {
                text.push_str(&format!("\n[{table}]\n"));
            }
            for Line { key, value, option, .. } in
                self.lines.iter().filter(|line| line.table == table)
            {
                let start = text.len();
                text.push_str(&format!("{key} = {value}\n"));
                spans.push((start..text.len(), option.clone()));
            }
        }
        let entries: Vec<String> = self.workloads.iter().map(Workload::entry).collect();
        let line = entries.join(", ");
        let long = line.chars().count() + "workload = []".len() > COLUMNS;
        text.push_str(if long { "workload = [\n" } else { "workload = [" });
        for (at, (entry, workload)) in entries.iter().zip(&self.workloads).enumerate() {
            let start = text.len();
            text.push_str(&match (long, at) {
                (true, _) => format!("    {entry},\n"),
                (false, 0) => entry.clone(),
                (false, _) => format!(", {entry}"),
            });
            spans.push((start..text.len(), workload.name.clone()));
        }
        text.push_str("]\n");
        spans.retain(|(_, option)| !option.is_empty());
        (text, spans)
    }
}

/// Reports whether a key of --set also has its own option.
fn is_axis(key: &str) -> bool {
    ["filesystem", "image_size", "device", "directory"].contains(&key)
}

fn title(workloads: &[Workload], options: &[(String, String, String)]) -> String {
    let names: Vec<&str> = workloads.iter().map(|workload| workload.name.as_str()).collect();
    let names = match &names[..] {
        [_, _, _, _, ..] => format!("{} workloads", names.len()),
        names => names.join(", "),
    };
    let value = |key| options.iter().find(|(other, ..)| other == key).map(|(_, value, _)| value);
    let subject = value("filesystem").or(value("directory")).map(|text| text.replace(',', ", "));
    format!("{names} on {}", subject.unwrap_or_default())
}

/// Checks that the options set exactly one storage and, unless it is a directory, the filesystems.
fn check(options: &[(String, String, String)], workloads: &[Workload]) -> Result<(), Failure> {
    let typed = |wanted: &str| options.iter().find(|(key, ..)| key == wanted);
    let name = workloads.first().map(|workload| workload.name.as_str()).unwrap_or_default();
    let storage: Vec<_> =
        ["image_size", "device", "directory"].into_iter().filter_map(typed).collect();
    match (&storage[..], typed("filesystem")) {
        ([], _) => Err(wrong(format!(
            "workload `{name}` has no storage to be measured on; add --image SIZE (a new image \
             file, such as 4GiB), --device PATH (a disk; all data on it is lost), or --directory \
             PATH (a mounted filesystem; nothing is formatted)"
        ))),
        ([(_, _, one), (_, _, other), ..], _) => {
            Err(wrong(format!("both {one} and {other} set the storage; remove one of them")))
        }
        ([(key, _, one)], Some((_, _, other))) if key == "directory" => Err(wrong(format!(
            "{one} measures a mounted filesystem, but {other} requires new ones; remove one of \
             them, or use --image SIZE or --device PATH"
        ))),
        ([(key, _, one)], None) if key != "directory" => Err(wrong(format!(
            "{one} requires filesystems to create; add --filesystem ext4,xfs or other names of \
             `fslab list filesystems`"
        ))),
        _ => Ok(()),
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// Value as TOML.
fn toml(value: &Value) -> String {
    match value {
        Value::Size(_) | Value::Time(_) | Value::Text(_) | Value::Word(_) => {
            quoted(&value.to_string())
        }
        Value::Count(_) | Value::Fraction(_) | Value::Number(_) | Value::Flag(_) => {
            value.to_string()
        }
        Value::Words(words) => list(words.iter().map(|word| quoted(word))),
    }
}

/// Text as a TOML string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Names of all presets and suites.
pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
    let presets = suites::presets().iter().map(|preset| preset.name.as_str());
    presets.chain(suites::ALL.iter().map(|suite| suite.spec.name))
}

/// At most three similar names: the nearest name, then names that contain the word or are contained
/// in it.
pub(crate) fn near(name: &str) -> Vec<String> {
    let alike =
        names().filter(|known| !name.is_empty() && (known.contains(name) || name.contains(known)));
    let mut near: Vec<&str> = nearest(name, names()).into_iter().collect();
    for known in alike {
        if !near.contains(&known) {
            near.push(known);
        }
    }
    near.into_iter().take(3).map(|known| format!("`{known}`")).collect()
}

fn wrong(message: String) -> Failure {
    Failure::usage(anyhow::Error::msg(message))
}

#[cfg(test)]
mod tests;
