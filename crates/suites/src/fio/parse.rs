//! Parser of job files and command lines of fio. All mistakes are collected, each with its line.

use std::collections::{BTreeMap, HashMap};

use super::{
    files::LOGS,
    job::{Job, Section},
    mistakes::{Mistake, Mistakes},
    names::check_name,
    options::{FioOption, Handling, OPTIONS, near},
    values::Base,
};

/// Maximum length of a job with all included files, in bytes.
pub const MOST_BYTES: usize = 4 << 20;

/// Maximum length of a line, in bytes.
const MOST_IN_LINE: usize = 64 << 10;

/// Maximum number of sections.
const MOST_SECTIONS: usize = 1000;

/// Maximum depth of included files.
const DEPTH: usize = 16;

/// Keywords in values of job files: bytes of a page, MiB of memory, and number of CPUs. Their
/// values are variables with these names.
pub const KEYWORDS: [&str; 3] = ["$pagesize", "$mb_memory", "$ncpus"];

/// Maximum number of mistakes that are reported.
const MOST_MISTAKES: usize = 100;

/// Line of a job, with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// File, or description of the argument.
    pub file: String,
    /// Number of the line, from 1; 0 if the origin has no lines.
    pub number: u32,
    /// Text.
    pub text: String,
}

/// Changes to a job, and values from outside of it.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Values of `${NAME}`, and of [`KEYWORDS`].
    pub variables: BTreeMap<String, String>,
    /// Options that replace those of all sections, such as `bs=8k`.
    pub set: Vec<String>,
    /// Names of options to leave out.
    pub drop: Vec<String>,
    /// Files in the place of devices, such as `/dev/sdb=FILE:SIZE`.
    pub map: Vec<String>,
    /// Names of the sections to run; empty: all.
    pub section: Vec<String>,
    /// Absolute directory to which relative names refer. Empty: files are in the directory of the
    /// trial, and only the last component of their names is used.
    pub directory: String,
    /// Size of an existing file by its path, for percentages. `None`: no file exists.
    pub size_of: Option<fn(&str) -> Option<u64>>,
}

/// File that another file includes: its name, unique for each file, and its text.
pub type Included = Result<(String, String), String>;

/// Lines of a job with those of included files. `include` gets the name of the including file and
/// the path as written.
///
/// # Errors
/// [`Mistakes`] if a file cannot be included or a limit is exceeded.
pub fn expand(
    name: &str,
    text: &str,
    include: &mut dyn FnMut(&str, &str) -> Included,
) -> Result<Vec<Line>, Mistakes> {
    let mut lines = Vec::new();
    let mut left = MOST_BYTES;
    insert(name, text, include, &mut vec![name.to_owned()], &mut left, &mut lines)?;
    Ok(lines)
}

fn insert(
    name: &str,
    text: &str,
    include: &mut dyn FnMut(&str, &str) -> Included,
    above: &mut Vec<String>,
    left: &mut usize,
    lines: &mut Vec<Line>,
) -> Result<(), Mistakes> {
    *left = left.checked_sub(text.len()).ok_or_else(|| {
        Mistakes::one(name, 0, "the job is larger than 4 MiB; use fewer or shorter sections")
    })?;
    for (own, number) in text.lines().zip(1..) {
        if own.len() > MOST_IN_LINE {
            return Err(Mistakes::one(name, number, "the line is longer than 64 KiB; shorten it"));
        }
        let content = content(own);
        let path = content.strip_prefix("include").filter(|rest| rest.starts_with([' ', '\t']));
        let Some(path) = path else {
            let text = own.to_owned();
            lines.push(Line { file: name.to_owned(), number, text });
            continue;
        };
        if above.len() >= DEPTH {
            return Err(Mistakes::one(name, number, "files include each other more than 16 deep"));
        }
        let (inner, text) = include(name, path.trim()).map_err(|reason| {
            Mistakes::one(name, number, format!("cannot include {}: {reason}", path.trim()))
        })?;
        if above.contains(&inner) {
            let path = format!("{} → {inner}", above.join(" → "));
            let message = format!("files include each other: {path}; remove one of the lines");
            return Err(Mistakes::one(name, number, message));
        }
        above.push(inner.clone());
        insert(&inner, &text, include, above, left, lines)?;
        above.pop();
    }
    Ok(())
}

/// Part of a line before a comment, without blanks around it.
fn content(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or_default().trim()
}

/// Lines of a command line of fio: `--name=NAME` begins a section, and options before it are
/// global. Arguments of the program itself are not accepted here.
///
/// # Errors
/// [`Mistakes`] if an argument is not an option.
pub fn of_arguments(arguments: &[String]) -> Result<Vec<Line>, Mistakes> {
    let mut lines: Vec<Line> = Vec::new();
    let mut add = |place: usize, text: String| {
        let file = format!("argument {}", place + 1);
        lines.push(Line { file, number: 0, text });
    };
    let mut begun = false;
    let mut place = 0;
    while let Some(argument) = arguments.get(place) {
        let Some(option) = argument.strip_prefix("--") else {
            let message = format!("`{argument}` is not an option; write --{argument}");
            return Err(Mistakes::one(&format!("argument {}", place + 1), 0, message));
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => {
                let next = arguments.get(place + 1).filter(|next| !next.starts_with("--"));
                (option, next.cloned())
            }
        };
        let first = place;
        if value.is_some() && !option.contains('=') {
            place += 1;
        }
        place += 1;
        if name == "name" {
            begun = true;
            add(first, format!("[{}]", value.unwrap_or_default()));
            continue;
        }
        if !begun {
            begun = true;
            add(first, "[global]".into());
        }
        // Comments do not exist on a command line.
        match value {
            None => add(first, name.to_owned()),
            Some(value) => add(first, format!("{name}={value}")),
        }
    }
    Ok(lines)
}

/// Option as written.
#[derive(Clone, Debug)]
struct Raw<'a> {
    option: &'static FioOption,
    value: String,
    // Origin: its line, or the text of a change.
    origin: Origin<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Origin<'a> {
    Line(&'a Line),
    Set(&'a str),
}

impl Origin<'_> {
    fn mistake(self, message: String) -> Mistake {
        match self {
            Self::Line(line) => Mistake { file: line.file.clone(), line: line.number, message },
            Self::Set(text) => Mistake { file: format!("set {text}"), line: 0, message },
        }
    }
}

struct Open<'a> {
    name: String,
    begun: &'a Line,
    options: Vec<Raw<'a>>,
}

/// Parses the lines of a job.
///
/// # Errors
/// [`Mistakes`] with all lines that cannot be done.
pub fn parse(lines: &[Line], changes: &Changes) -> Result<Job, Mistakes> {
    let mut parser = Parser {
        index: index(),
        changes,
        global: Vec::new(),
        current: None,
        sections: Vec::new(),
        mistakes: Vec::new(),
        unused: BTreeMap::new(),
        counted: 0,
    };
    for line in lines {
        if let Err(message) = parser.line(line) {
            parser.mistakes.push(Origin::Line(line).mistake(message));
        }
        if parser.mistakes.len() >= MOST_MISTAKES {
            break;
        }
    }
    parser.end()
}

fn index() -> HashMap<&'static str, &'static FioOption> {
    let names = |own: &'static FioOption| {
        own.aliases.iter().copied().chain([own.name]).map(move |name| (name, own))
    };
    OPTIONS.iter().flat_map(names).collect()
}

struct Parser<'a> {
    index: HashMap<&'static str, &'static FioOption>,
    changes: &'a Changes,
    global: Vec<Raw<'a>>,
    // `None`: before the first section. The name of [global] is not a section.
    current: Option<Current<'a>>,
    sections: Vec<Open<'a>>,
    mistakes: Vec<Mistake>,
    unused: BTreeMap<&'static str, &'static str>,
    counted: usize,
}

enum Current<'a> {
    Global,
    Section(Open<'a>),
}

impl<'a> Parser<'a> {
    fn line(&mut self, line: &'a Line) -> Result<(), String> {
        // Arguments have no comments.
        let content = if line.number == 0 { line.text.trim() } else { content(&line.text) };
        if content.is_empty() {
            return Ok(());
        }
        self.counted += 1;
        let replaced;
        let content = if content.contains("${") {
            replaced = self.replaced(content)?;
            replaced.trim()
        } else {
            content
        };
        if let Some(rest) = content.strip_prefix('[') {
            let name = rest.strip_suffix(']').ok_or("the bracket `]` is missing")?;
            return self.begin(name, line);
        }
        let (name, value) = match content.split_once('=') {
            Some((name, value)) => (name.trim(), value.trim()),
            None => (content, ""),
        };
        // As in fio, command lines have no keywords.
        let value = if line.number == 0 { value.to_owned() } else { self.with_keywords(value)? };
        let found = self.index.get(name).copied();
        let dropped = |own: &String| {
            let own = own.trim();
            own == name || found.is_some_and(|option| option.is(own))
        };
        if self.changes.drop.iter().any(dropped) {
            return Ok(());
        }
        let Some(option) = found else { return Err(unknown(name)) };
        let raw = Raw { option, value, origin: Origin::Line(line) };
        match &mut self.current {
            None => return Err("the option is before the first section; add [global]".into()),
            Some(Current::Global) => self.global.push(raw),
            Some(Current::Section(open)) => open.options.push(raw),
        }
        Ok(())
    }

    /// Replaces keywords of the machine.
    fn with_keywords(&self, value: &str) -> Result<String, String> {
        let mut value = value.to_owned();
        for keyword in KEYWORDS {
            if value.contains(keyword) {
                let own = self.changes.variables.get(keyword).ok_or_else(|| {
                    format!("{keyword} depends on the machine; use a number, or a job file")
                })?;
                value = value.replace(keyword, own);
            }
        }
        Ok(value)
    }

    /// Replaces variables.
    fn replaced(&self, text: &str) -> Result<String, String> {
        let (mut result, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once("${") {
            result.push_str(before);
            let (name, after) = after.split_once('}').ok_or("the brace `}` is missing")?;
            let value =
                self.changes.variables.get(name).ok_or_else(|| {
                    format!("variable {name} is not set; set it in the environment")
                })?;
            if result.len() + value.len() > MOST_IN_LINE {
                return Err("the line with its variables is longer than 64 KiB".into());
            }
            result.push_str(value);
            rest = after;
        }
        result.push_str(rest);
        Ok(result)
    }

    fn begin(&mut self, name: &str, line: &'a Line) -> Result<(), String> {
        self.close();
        if name == "global" {
            self.current = Some(Current::Global);
            return Ok(());
        }
        let open = Open { name: name.to_owned(), begun: line, options: self.global.clone() };
        self.current = Some(Current::Section(open));
        check_name(name)?;
        if self.sections.len() >= MOST_SECTIONS {
            self.current = Some(Current::Global);
            return Err("more than 1000 sections; split the job".into());
        }
        Ok(())
    }

    fn close(&mut self) {
        if let Some(Current::Section(open)) = self.current.take() {
            self.sections.push(open);
        }
    }

    fn end(mut self) -> Result<Job, Mistakes> {
        self.close();
        let changes = self.changes;
        for name in &changes.section {
            if !self.sections.iter().any(|open| open.name == *name) {
                let message = match model::suggest::nearest(
                    name,
                    self.sections.iter().map(|open| open.name.as_str()),
                ) {
                    Some(near) => format!("the job has no such section; did you mean `{near}`?"),
                    None => "the job has no such section".to_owned(),
                };
                let file = format!("section {name}");
                self.mistakes.push(Mistake { file, line: 0, message });
            }
        }
        let mut set = Vec::new();
        for text in &changes.set {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            match self.index.get(name.trim()) {
                Some(option) => {
                    let value = value.trim().to_owned();
                    set.push(Raw { option, value, origin: Origin::Set(text) });
                }
                None => self.mistakes.push(Origin::Set(text).mistake(unknown(name.trim()))),
            }
        }
        let selected =
            |open: &Open<'_>| changes.section.is_empty() || changes.section.contains(&open.name);
        let sections: Vec<Open<'_>> =
            std::mem::take(&mut self.sections).into_iter().filter(selected).collect();
        let mut done = Vec::new();
        for mut open in sections {
            open.options.extend(set.iter().cloned());
            done.push(self.section(open));
        }
        let job = Job::new(done, changes, &mut self.mistakes);
        if job.sections.is_empty() && self.mistakes.is_empty() {
            let message = "the job has no section; add for example [read] and rw=read";
            self.mistakes.push(Mistake { file: "job".into(), line: 0, message: message.into() });
        }
        if self.mistakes.is_empty() {
            let own = self.unused.into_iter().map(|(name, why)| (name.to_owned(), why.to_owned()));
            return Ok(Job { unused: own.chain(job.unused).collect(), ..job });
        }
        // A mistake in [global] concerns all sections, but is one line.
        let mut all: Vec<Mistake> = Vec::new();
        for mistake in self.mistakes {
            if !all.contains(&mistake) {
                all.push(mistake);
            }
        }
        Err(Mistakes { all, lines: self.counted })
    }

    /// Reads the values of a section.
    fn section(&mut self, open: Open<'_>) -> Section {
        let base = open.options.iter().rev().find(|raw| raw.option.name == "kb_base");
        let base = match base.map(|raw| raw.value.as_str()) {
            Some("1000") => Base::Decimal,
            _ => Base::Binary,
        };
        let mut section = Section::new(&open.name, open.begun);
        for raw in open.options {
            match raw.option.handling {
                Handling::Title => {
                    if raw.option.name == "name" {
                        section.name.clone_from(&raw.value);
                    }
                }
                Handling::NoEffect(reason) => {
                    self.unused.insert(raw.option.name, reason);
                }
                Handling::Refused { reason, hint, harmless } => {
                    if !harmless.contains(&raw.value.as_str()) {
                        let name = raw.option.name;
                        let message = format!(
                            "{name} is not supported: {reason}; {hint}, or leave it out with \
                             `drop`"
                        );
                        self.mistakes.push(raw.origin.mistake(message));
                    }
                }
                Handling::Done { read, .. } => match read(&raw.value, base) {
                    Ok(value) => {
                        if self.changes.directory.is_empty() && LOGS.contains(&raw.option.name) {
                            self.unused.insert(raw.option.name, "only `fslab fio` writes logs");
                        }
                        section.set(raw.option, value, raw.origin.mistake(String::new()));
                    }
                    Err(reason) => {
                        let message = format!("{}: {reason}", raw.option.name);
                        self.mistakes.push(raw.origin.mistake(message));
                    }
                },
            }
            if self.mistakes.len() >= MOST_MISTAKES {
                break;
            }
        }
        section
    }
}

fn unknown(name: &str) -> String {
    let name: String = name.chars().take(60).collect();
    match near(&name) {
        Some(near) => format!("unknown option `{name}`; did you mean `{near}`?"),
        None => format!("unknown option `{name}`; docs/reference/fio-options.md lists all options"),
    }
}
