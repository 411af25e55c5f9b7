//! `fslab completions`: scripts for shells, and the candidates that they show.
//!
//! The scripts run `fslab complete -- WORD...` with the words up to the cursor. Candidates are
//! commands, options, and values of options: names of plans, workloads, filesystems, metrics, and
//! others.

use std::ffi::OsStr;

use analysis::conditions::Aspect;
use clap::{Arg, Command, CommandFactory};
use clap_complete::{
    ArgValueCompleter, CompletionCandidate, PathCompleter,
    engine::{ValueCompleter, complete},
};
use model::{
    GuestKind, metric,
    plan::{KEYS, OVERRIDES},
    workload::{Kind, ParameterSpec},
};
use rig::Catalog;

use crate::{
    cli::{Arguments, Complete, Completions, Shell},
    exit::{Exit, Failure},
    output,
    plans::BUILTIN_PLANS,
};

/// Name of a value and its meaning.
type Candidate = (String, String);

pub(super) fn run(completions: &Completions) -> Result<Exit, Failure> {
    let script = match completions.shell {
        Shell::Bash => include_str!("../../completions/fslab.bash"),
        Shell::Zsh => include_str!("../../completions/fslab.zsh"),
        Shell::Fish => include_str!("../../completions/fslab.fish"),
    };
    output::result(script)?;
    Ok(Exit::Success)
}

/// Prints the candidates of the last word.
pub(super) fn candidates(words: &Complete) -> Result<Exit, Failure> {
    let directory = std::env::current_dir().ok();
    let mut root = with_values(Arguments::command());
    let last = words.words.len().saturating_sub(1);
    let mut candidates = complete(&mut root, words.words.clone(), last, directory.as_deref())?;
    let option = |it: &CompletionCandidate| it.get_value().to_string_lossy().starts_with('-');
    if words.words.last().is_some_and(|word| word.is_empty()) && !candidates.iter().all(option) {
        // Options are offered only after a hyphen, unless there is no other candidate.
        candidates.retain(|candidate| !option(candidate));
    }
    let mut text = String::new();
    for candidate in candidates {
        let value = candidate.get_value().to_string_lossy();
        let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        let help = help.lines().next().unwrap_or_default().trim_end_matches('.');
        text.push_str(&format!("{}\t{help}\n", output::line(&value)));
    }
    output::bytes(text.as_bytes())?;
    Ok(Exit::Success)
}

/// Command line with a completer for each argument that has named values.
fn with_values(command: Command) -> Command {
    let runs = command.get_name() == "run" || command.get_name() == "show";
    command.mut_args(|argument| with_value(argument, runs)).mut_subcommands(with_values)
}

/// Argument with its completer. `plan_keys`: true if `--set` changes a plan.
fn with_value(argument: Arg, plan_keys: bool) -> Arg {
    let completer = match argument.get_id().as_str() {
        "plan" => with_files(|| [plans(), workloads()].concat(), "toml"),
        "workload" => one_of(workloads),
        "filesystem" => one_of(filesystems),
        "resume" => with_files(Vec::new, "fslab"),
        "run" | "runs" | "table" => with_files(published, "fslab"),
        "catalog" | "statements" => with_files(Vec::new, "toml"),
        "metric" => one_of(metrics),
        "guest" => one_of(guests),
        "allow_differences" => one_of(aspects),
        "set" if plan_keys => ArgValueCompleter::new(|text: &OsStr| assignments(text, true)),
        "set" => ArgValueCompleter::new(|text: &OsStr| assignments(text, false)),
        "directory" | "charts" | "state_directory" => ArgValueCompleter::new(PathCompleter::dir()),
        _ => return argument,
    };
    argument.add(completer)
}

fn one_of(values: fn() -> Vec<Candidate>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |text: &OsStr| starting_with(text, values()))
}

/// Completer of names, and of files with an extension.
fn with_files(values: fn() -> Vec<Candidate>, extension: &'static str) -> ArgValueCompleter {
    ArgValueCompleter::new(move |text: &OsStr| {
        let mut candidates = starting_with(text, values());
        let fits = move |path: &std::path::Path| path.extension() == Some(OsStr::new(extension));
        candidates.extend(PathCompleter::any().filter(fits).complete(text));
        candidates
    })
}

fn starting_with(text: &OsStr, values: Vec<Candidate>) -> Vec<CompletionCandidate> {
    let text = text.to_string_lossy();
    let fitting = values.into_iter().filter(|(name, _)| name.starts_with(&*text));
    fitting.map(|(name, help)| CompletionCandidate::new(name).help(Some(help.into()))).collect()
}

/// Candidates of `--set`: keys followed by `=`, then values of the key, which may be separated by
/// commas.
fn assignments(text: &OsStr, plan_keys: bool) -> Vec<CompletionCandidate> {
    let Some((key, value)) = text.to_str().and_then(|text| text.split_once('=')) else {
        let keys = keys(plan_keys).into_iter().map(|(key, help)| (format!("{key}="), help));
        return starting_with(text, keys.collect());
    };
    let start = value.rfind(',').map_or(0, |comma| comma + 1);
    let (others, value) = value.split_at(start);
    let named = values(key).into_iter().filter(|(name, _)| {
        name.starts_with(value) && !others.split(',').any(|other| other == name)
    });
    let named = named.map(|(name, help)| (format!("{key}={others}{name}"), help));
    starting_with(text, named.collect())
}

/// Keys that `--set` changes.
fn keys(plan_keys: bool) -> Vec<Candidate> {
    let meaning = |name: &str| KEYS.iter().find(|key| key.key == name).map_or("", |key| key.doc);
    let mut keys: Vec<Candidate> = Vec::new();
    if plan_keys {
        keys.extend(OVERRIDES.map(|key| (key.to_owned(), meaning(key).to_owned())));
        keys.extend(rig::settings().into_iter().map(|(key, _, doc)| named(key, doc)));
    }
    for ParameterSpec { name, doc, .. } in parameters() {
        if !keys.iter().any(|(key, _)| key == name) {
            keys.push(named(name, doc));
        }
    }
    keys
}

/// Named values of a key; none if its values are, for example, numbers or sizes.
fn values(key: &str) -> Vec<Candidate> {
    match key {
        "filesystem" => filesystems(),
        "guest" => guests(),
        "study" => report::views().map(|(name, holds)| named(name, holds)).collect(),
        "profile" => texts(&["quick", "standard", "rigorous"]),
        _ => {
            let mut values: Vec<Candidate> = Vec::new();
            for ParameterSpec { kind, .. } in parameters().filter(|it| it.name == key) {
                let own = match kind {
                    Kind::Word(own) | Kind::Words(own) | Kind::Sequence(own) => texts(own),
                    Kind::Flag => texts(&["false", "true"]),
                    Kind::Size { .. }
                    | Kind::Count { .. }
                    | Kind::Amount { .. }
                    | Kind::Fraction
                    | Kind::Number { .. }
                    | Kind::Time
                    | Kind::Text { .. }
                    | Kind::Lines { .. } => Vec::new(),
                };
                values.extend(own);
            }
            values.sort();
            values.dedup();
            values
        }
    }
}

fn parameters() -> impl Iterator<Item = &'static ParameterSpec> {
    suites::ALL.iter().flat_map(|suite| suite.spec.parameters)
}

fn plans() -> Vec<Candidate> {
    BUILTIN_PLANS.iter().map(|plan| named(plan.name, plan.title())).collect()
}

fn workloads() -> Vec<Candidate> {
    let presets = suites::presets().iter().map(|preset| named(&preset.name, &preset.title));
    presets
        .chain(suites::ALL.iter().map(|suite| named(suite.spec.name, suite.spec.title)))
        .collect()
}

fn published() -> Vec<Candidate> {
    report::PUBLISHED.iter().map(|set| named(&set.full_name(), &set.article)).collect()
}

fn metrics() -> Vec<Candidate> {
    metric::ALL.iter().map(|metric| named(metric.name, metric.meaning)).collect()
}

fn filesystems() -> Vec<Candidate> {
    Catalog::embedded().all().iter().map(|it| named(&it.name, &it.title)).collect()
}

fn guests() -> Vec<Candidate> {
    texts(&GuestKind::ALL.map(GuestKind::name))
}

fn aspects() -> Vec<Candidate> {
    texts(&Aspect::ALL.map(Aspect::name))
}

fn texts(texts: &[&str]) -> Vec<Candidate> {
    texts.iter().map(|text| named(text, "")).collect()
}

fn named(name: &str, meaning: &str) -> Candidate {
    (name.to_owned(), meaning.to_owned())
}
