//! Messages for arguments that the parser rejects: the argument as typed, the reason, and a hint.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "clap adds kinds of errors and of contexts; it describes the others itself"
)]

use std::ffi::OsString;

use clap::{
    ArgMatches, Command, CommandFactory, FromArgMatches,
    error::{ContextKind, ContextValue, Error, ErrorKind},
};
use model::{
    OptionOf, Plan,
    suggest::{familiar, nearest},
    workload::Kind,
};

use super::Arguments;

/// Options of fio that define names and files of a job. fslab has no equivalent options.
const JOB_OPTIONS: [&str; 5] = ["name", "filename", "directory", "group_reporting", "time_based"];

/// Parses the command line.
///
/// # Errors
/// The error of clap. Missing arguments of `fslab bench` are not errors here, because the command
/// reports them with an example.
pub(crate) fn parse(arguments: &[OsString]) -> Result<Arguments, Error> {
    let matches = matches(Arguments::command(), arguments).or_else(|error| match error.kind() {
        ErrorKind::MissingRequiredArgument => {
            let optional = |arg: clap::Arg| arg.required(false);
            let command = Arguments::command().mut_subcommand("bench", |bench| {
                bench.mut_arg("workload", optional).mut_arg("directory", optional)
            });
            matches(command, arguments).map_err(|_| error)
        }
        _ => Err(error),
    })?;
    Arguments::from_arg_matches(&matches)
}

fn matches(command: Command, arguments: &[OsString]) -> Result<ArgMatches, Error> {
    command.try_get_matches_from(arguments)
}

/// Message for a parser error: `error: ARGUMENT: REASON; HINT`. `None` for help, the version, and
/// errors that clap describes sufficiently.
pub(crate) fn message(error: &Error, arguments: &[OsString]) -> Option<String> {
    let words: Vec<String> =
        arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let root = Arguments::command();
    let (name, command) = subcommand(&root, &words);
    let text = match error.kind() {
        ErrorKind::UnknownArgument => unknown(error, &root, command, &name, &words)?,
        ErrorKind::InvalidSubcommand => {
            let typed = context(error, ContextKind::InvalidSubcommand)?;
            let known = command.get_subcommands().filter(|known| !known.is_hide_set());
            let near = nearest(&typed, known.map(Command::get_name));
            let near = near.map(|near| format!("did you mean `{name} {near}`? "));
            let near = near.unwrap_or_default();
            format!("{name} has no command `{typed}`; {near}`{name} --help` lists all commands")
        }
        ErrorKind::ValueValidation => {
            let (option, value) = value(error)?;
            format!("{option} {value}: {}", reason(&std::error::Error::source(error)?.to_string()))
        }
        ErrorKind::InvalidValue => invalid(error)?,
        ErrorKind::ArgumentConflict => conflict(error)?,
        ErrorKind::MissingRequiredArgument => {
            let missing = list(error, ContextKind::InvalidArg);
            let missing: Vec<String> = missing.iter().map(|shown| bare(shown)).collect();
            format!("{name}: {} is missing; see `{name} --help`", missing.join(" and "))
        }
        _ => return None,
    };
    Some(format!("error: {text}"))
}

/// Subcommand of the arguments, and its full name.
fn subcommand<'a>(root: &'a Command, words: &[String]) -> (String, &'a Command) {
    let (mut name, mut command) = ("fslab".to_owned(), root);
    let mut after_option = false;
    for word in words {
        if let Some(found) = command.find_subcommand(word) {
            name = format!("{name} {word}");
            command = found;
        } else if !word.starts_with('-') && !after_option {
            break;
        }
        after_option = word.starts_with("--") && !word.contains('=');
    }
    (name, command)
}

/// Reason why a value was rejected. Messages of clap about numbers are replaced, because they
/// contain Rust syntax.
fn reason(text: &str) -> String {
    let range = text.split_once(" is not in ").and_then(|(_, range)| range.split_once(".."));
    match range {
        Some((min, max)) => {
            format!("must be an integer from {min} to {}", max.trim_start_matches('='))
        }
        None if text == "invalid digit found in string" => "must be an integer".to_owned(),
        None => text.to_owned(),
    }
}

fn context(error: &Error, kind: ContextKind) -> Option<String> {
    list(error, kind).into_iter().next()
}

fn list(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Name of the option or argument, without its value, and the value as typed.
fn value(error: &Error) -> Option<(String, String)> {
    let option = context(error, ContextKind::InvalidArg)?;
    let value = context(error, ContextKind::InvalidValue).unwrap_or_default();
    Some((bare(&option), value))
}

/// `--gate <PERCENT>` to `--gate`, `[PLAN]` and `<PLAN>...` to `PLAN`.
fn bare(shown: &str) -> String {
    let name = shown.split(' ').next().unwrap_or(shown);
    name.trim_end_matches("...").trim_matches(['<', '>', '[', ']']).to_owned()
}

fn invalid(error: &Error) -> Option<String> {
    let (option, value) = value(error)?;
    let known = list(error, ContextKind::ValidValue);
    if value.is_empty() {
        let shown = context(error, ContextKind::InvalidArg)?;
        return Some(match known.is_empty() {
            true => format!("{option} has no value; use {}", shown.replace(['<', '>'], "")),
            false => format!("{option} has no value; use {}", known.join(", ")),
        });
    }
    let near = match nearest(&value, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use {}", known.join(", ")),
    };
    Some(match option.starts_with('-') {
        true => format!("{option} {value}: unknown value; {near}"),
        false => format!("unknown {option} `{value}`; {near}"),
    })
}

fn conflict(error: &Error) -> Option<String> {
    let one = context(error, ContextKind::InvalidArg).map(|shown| bare(&shown))?;
    let other = context(error, ContextKind::PriorArg).map(|shown| bare(&shown))?;
    if one == other {
        return Some(format!("{one} is given twice; remove one of them"));
    }
    if [&one, &other].iter().any(|name| *name == "--resume") {
        let removed = if one == "--resume" { other } else { one };
        return Some(format!(
            "--resume continues with the plan and the options stored in the run file; remove \
             {removed}"
        ));
    }
    Some(format!("{one} and {other} exclude each other; remove one of them"))
}

/// Message for an unknown option or an unexpected argument.
fn unknown(
    error: &Error,
    root: &Command,
    command: &Command,
    name: &str,
    words: &[String],
) -> Option<String> {
    let typed = context(error, ContextKind::InvalidArg)?;
    let Some(option) = typed.strip_prefix("--") else {
        return Some(match typed.starts_with('-') {
            true => format!("{name} has no option {typed}; `{name} --help` lists all options"),
            false => format!("{name}: unexpected argument `{typed}`; see `{name} --help`"),
        });
    };
    let value = typed_value(&typed, words).unwrap_or_else(|| "VALUE".to_owned());
    let hint = hint(root, command, name, option, &value);
    Some(format!("{name} has no option {typed}; {hint}"))
}

/// Value typed after an option, as `--option VALUE` or `--option=VALUE`.
fn typed_value(option: &str, words: &[String]) -> Option<String> {
    let at = words.iter().position(|word| word.split('=').next() == Some(option))?;
    match words[at].split_once('=') {
        Some((_, value)) => Some(value.to_owned()),
        None => words.get(at + 1).filter(|value| !value.starts_with('-')).cloned(),
    }
}

fn hint(root: &Command, command: &Command, name: &str, option: &str, value: &str) -> String {
    let key = option.replace('-', "_");
    if JOB_OPTIONS.contains(&&*key) && name == "fslab bench" {
        return "the job is the workload, and its files are created in DIRECTORY; `fslab list \
                workloads` lists all workloads"
            .to_owned();
    }
    if name == "fslab bench" && ["filesystem", "image", "device"].contains(&&*key) {
        return "it measures a mounted filesystem; `fslab run` creates and compares filesystems"
            .to_owned();
    }
    if let Some(preset) = preset(&key, value).filter(|_| name == "fslab bench") {
        return format!(
            "the workload determines the access pattern; use for example {preset} (`fslab list \
             workloads`)"
        );
    }
    if let Some(of_value) = of_value(command, option) {
        return format!("use {of_value}");
    }
    if ["fslab run", "fslab show"].contains(&name) && key == "command" {
        let program = quoted(value);
        return format!("use the workload: `{name} command --set run={program}`");
    }
    let settable = command.get_arguments().any(|known| known.get_long() == Some("set"));
    let options = || command.get_arguments().filter(|known| !known.is_hide_set());
    let longs = || options().filter_map(clap::Arg::get_long);
    let own =
        |command: &Command| command.get_arguments().any(|known| known.get_long() == Some(option));
    let of_run = root.find_subcommand("run").filter(|_| name == "fslab bench").is_some_and(own);
    let creates = command.get_arguments().any(|known| known.get_long() == Some("filesystem"));
    if creates && let Some(of) = options_of(&key) {
        let (of, example) = (of.key(), of.example());
        return format!("use --set {of}.OPTION=VALUE, such as --set {example}");
    }
    if !of_run && let Some(parameter) = parameter(&key).filter(|_| settable) {
        let own = parameter.replace('_', "-");
        return match longs().find(|long| **long == own) {
            Some(long) => format!("use --{long} {value}"),
            None => format!("use --set {parameter}={}", renamed(parameter, value)),
        };
    }
    if let Some(other) = root.get_subcommands().find(|other| !other.is_hide_set() && own(other)) {
        return format!("--{option} is an option of `fslab {}`", other.get_name());
    }
    match nearest(option, longs()) {
        Some(near) => format!("did you mean --{near}?"),
        None => format!("`{name} --help` lists all options"),
    }
}

/// Program whose options an option such as `--mount` or `--mkfs-options` would set.
fn options_of(key: &str) -> Option<OptionOf> {
    let program = key.trim_end_matches("_options");
    OptionOf::ALL.into_iter().find(|of| of.key() == program)
}

/// Word of a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Option of the command that has the name of an unknown option as a value, such as `--format json`
/// for `--json`.
fn of_value(command: &Command, name: &str) -> Option<String> {
    let has = |arg: &&clap::Arg| {
        arg.get_action().takes_values()
            && arg.get_possible_values().iter().any(|value| value.get_name() == name)
    };
    let long = command.get_arguments().filter(has).find_map(clap::Arg::get_long)?;
    Some(format!("--{long} {name}"))
}

/// Plan key or suite parameter with the name of an option, or the equivalent of an option of fio.
fn parameter(key: &str) -> Option<&'static str> {
    let specs = suites::specs();
    let all = specs.iter().flat_map(|suite| suite.parameters).map(|parameter| parameter.name);
    // `size` of fio is that of files, and not the axis of the same name.
    let keys = model::plan::KEYS.iter().map(|spec| spec.key);
    let keys = keys.filter(|key| Plan::is_key(key) && *key != "size");
    let known: Vec<&'static str> = all.chain(keys).collect();
    match known.iter().find(|known| **known == key) {
        Some(known) => Some(known),
        None => familiar(key, &known),
    }
}

/// Workload for a value of fio's `rw`.
fn preset(key: &str, value: &str) -> Option<&'static str> {
    let name = match value {
        _ if !matches!(key, "rw" | "readwrite") => return None,
        "read" => "seqread-1m",
        "write" => "seqwrite-1m",
        "randwrite" => "randwrite-4k",
        "randrw" => "randrw-4k-70-30",
        _ => "randread-4k",
    };
    suites::preset(name).map(|preset| preset.name.as_str())
}

/// Value of a parameter that is equivalent to a value of fio, such as an I/O engine.
fn renamed(parameter: &str, value: &str) -> String {
    let number = value.trim_end_matches(['k', 'm', 'g', 'K', 'M', 'G']);
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && value.len() == number.len() + 1 {
        return format!("{}iB", value.to_ascii_uppercase());
    }
    let specs = suites::specs();
    let mut own =
        specs.iter().flat_map(|suite| suite.parameters).filter_map(|spec| match spec.kind {
            Kind::Word(words) if spec.name == parameter => familiar(value, words),
            _ => None,
        });
    own.next().unwrap_or(value).to_owned()
}
