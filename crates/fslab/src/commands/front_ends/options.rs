//! Options of another program. Parser, help, and reference page use one table.

use std::path::PathBuf;

use model::suggest::nearest;

use crate::exit::Failure;

/// Argument of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Argument {
    /// Without argument. Single letters can share a word.
    None,
    /// Rest of the word, or else the next word.
    Required(&'static str),
    /// Rest of the word, if any.
    Attached(&'static str),
    /// Rest of the word and the words up to the next option.
    List(&'static str),
}

/// Handling of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Handling {
    /// Done, with this meaning.
    Done(&'static str),
    /// Accepted without effect, for this reason.
    NoEffect(&'static str),
    /// Not supported: reason and alternative.
    Refused(&'static str, &'static str),
}

/// Option of a program.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct ProgramOption {
    /// Names with their dashes; code uses the first one.
    pub(in crate::commands) names: &'static [&'static str],
    pub(in crate::commands) argument: Argument,
    pub(in crate::commands) handling: Handling,
}

/// Program with its options.
#[derive(Debug)]
pub(in crate::commands) struct Program {
    /// Name, which is also the name of a link and of the command of fslab.
    pub(in crate::commands) name: &'static str,
    /// Title of the help.
    pub(in crate::commands) title: &'static str,
    /// Arguments after the name, for the help.
    pub(in crate::commands) usage: &'static str,
    /// File name of the reference page, and name of the manual page.
    pub(in crate::commands) page: &'static str,
    pub(in crate::commands) manual: &'static str,
    /// First paragraphs of the reference page.
    pub(in crate::commands) introduction: &'static str,
    pub(in crate::commands) options: &'static [ProgramOption],
    /// Options of fslab for this program, in addition to [`OWN`].
    pub(in crate::commands) own: &'static [ProgramOption],
}

pub(in crate::commands) const fn done(
    names: &'static [&'static str],
    argument: Argument,
    meaning: &'static str,
) -> ProgramOption {
    ProgramOption { names, argument, handling: Handling::Done(meaning) }
}

pub(in crate::commands) const fn unused(
    names: &'static [&'static str],
    argument: Argument,
    reason: &'static str,
) -> ProgramOption {
    ProgramOption { names, argument, handling: Handling::NoEffect(reason) }
}

pub(in crate::commands) const fn refused(
    names: &'static [&'static str],
    reason: &'static str,
    hint: &'static str,
) -> ProgramOption {
    let handling = Handling::Refused(reason, hint);
    ProgramOption { names, argument: Argument::None, handling }
}

const RUN: &str = "--fslab-run";
const REPETITIONS: &str = "--fslab-repetitions";

/// Options of fslab for every program.
pub(in crate::commands) const OWN: &[ProgramOption] = &[
    done(&[RUN], Argument::Required("FILE"), "Keep the results in this run file."),
    done(
        &[REPETITIONS],
        Argument::Required("N"),
        "Number of repetitions, 1 to 1000; the output has the medians, that of dbench the repetition \
         with the median throughput. 6 or more give confidence intervals in the run file.",
    ),
];

/// Result of parsing.
#[derive(Debug)]
pub(in crate::commands) enum Parsed {
    /// Text to print.
    Print(String),
    /// Options to execute.
    Run(Given),
}

/// Parsed command line.
#[derive(Debug)]
pub(in crate::commands) struct Given {
    program: &'static Program,
    /// First name of each option with its argument, in the order of the command line.
    options: Vec<(&'static str, Option<String>)>,
    /// Words that are not options.
    pub(in crate::commands) operands: Vec<String>,
    /// Words of the command line, including the name of the program.
    pub(in crate::commands) words: Vec<String>,
    /// Number of repetitions.
    pub(in crate::commands) repetitions: u32,
    /// Run file to keep.
    pub(in crate::commands) run: Option<PathBuf>,
}

impl Given {
    /// Arguments of an option, in order.
    pub(in crate::commands) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        debug_assert!(self.program.find(name).is_some(), "{name} is in the table");
        self.options
            .iter()
            .filter(move |own| own.0 == name)
            .map(|own| own.1.as_deref().unwrap_or(""))
    }

    /// Last argument of an option. An option without argument has an empty one.
    pub(in crate::commands) fn last(&self, name: &str) -> Option<&str> {
        self.all(name).last()
    }

    pub(in crate::commands) fn has(&self, name: &str) -> bool {
        self.last(name).is_some()
    }

    /// First name and argument of each option, in the order of the command line.
    pub(in crate::commands) fn in_order(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.options.iter().map(|own| (own.0, own.1.as_deref().unwrap_or("")))
    }

    /// Options that are accepted without effect, with the reasons.
    pub(in crate::commands) fn without_effect(&self) -> Vec<(&'static str, &'static str)> {
        let reason = |name: &'static str| match self.program.find(name)?.handling {
            Handling::NoEffect(reason) => Some((name, reason)),
            Handling::Done(_) | Handling::Refused(..) => None,
        };
        self.options.iter().filter_map(|own| reason(own.0)).collect()
    }
}

/// Words of the command line that are not parsed yet.
type Words<'a> = std::iter::Peekable<std::slice::Iter<'a, String>>;

impl Program {
    /// All options, those of fslab last.
    pub(in crate::commands) fn all(&self) -> impl Iterator<Item = &'static ProgramOption> {
        self.options.iter().chain(self.own).chain(OWN)
    }

    fn find(&self, name: &str) -> Option<&'static ProgramOption> {
        self.all().find(|own| own.names.contains(&name))
    }

    /// Parses the arguments after the name of the program.
    ///
    /// # Errors
    /// If an option is unknown or not supported, or its argument is missing.
    pub(in crate::commands) fn parse(&'static self, words: &[String]) -> Result<Parsed, Failure> {
        let mut given = Given {
            program: self,
            options: Vec::new(),
            operands: Vec::new(),
            words: [self.name.to_owned()].iter().chain(words).cloned().collect(),
            repetitions: 1,
            run: None,
        };
        let mut words = words.iter().peekable();
        while let Some(word) = words.next() {
            match word.as_str() {
                "--help" => return Ok(Parsed::Print(self.help())),
                "--version" => {
                    return Ok(Parsed::Print(format!("fslab-{}\n", env!("CARGO_PKG_VERSION"))));
                }
                "-h" if self.find("-h").is_none() => return Ok(Parsed::Print(self.help())),
                "--" => given.operands.extend(words.by_ref().cloned()),
                word if word.starts_with("--") => self.long(word, &mut words, &mut given)?,
                word if word.starts_with("-+") => self.plus(word, &mut words, &mut given)?,
                word if word.starts_with('-') && word.len() > 1 => {
                    self.letters(word, &mut words, &mut given)?;
                }
                word => given.operands.push(word.to_owned()),
            }
        }
        given.complete().map(Parsed::Run)
    }

    /// Option of the form `--name`, `--name=ARGUMENT`, or `--name ARGUMENT`.
    fn long(&self, word: &str, words: &mut Words<'_>, given: &mut Given) -> Result<(), Failure> {
        let (name, rest) = match word.split_once('=') {
            Some((name, rest)) => (name, Some(rest)),
            None => (word, None),
        };
        let option = self.known(name)?;
        let refused = matches!(option.handling, Handling::Refused(..));
        if option.argument == Argument::None && rest.is_some() && !refused {
            return Err(wrong(format!("{name} has no argument; remove `{}`", &word[name.len()..])));
        }
        self.take(option, name, rest, words, given)
    }

    /// Option of the form `-+x`, with the argument in the same or the next word.
    fn plus(&self, word: &str, words: &mut Words<'_>, given: &mut Given) -> Result<(), Failure> {
        let end = word.char_indices().nth(3).map_or(word.len(), |(at, _)| at);
        let (name, rest) = word.split_at(end);
        let option = self.known(name)?;
        let rest = Some(rest).filter(|rest| !rest.is_empty());
        if option.argument == Argument::None && rest.is_some() {
            return Err(wrong(format!("unknown option `{word}`; {}", self.list())));
        }
        self.take(option, name, rest, words, given)
    }

    /// Single letters, the last of which may have an argument.
    fn letters(&self, word: &str, words: &mut Words<'_>, given: &mut Given) -> Result<(), Failure> {
        for (at, letter) in word.char_indices().skip(1) {
            let name = format!("-{letter}");
            let option = self.known(&name)?;
            let rest = &word[at + letter.len_utf8()..];
            let rest = Some(rest).filter(|rest| !rest.is_empty());
            if option.argument == Argument::None {
                self.take(option, &name, None, words, given)?;
            } else {
                return self.take(option, &name, rest, words, given);
            }
        }
        Ok(())
    }

    /// Option of this name.
    fn known(&self, name: &str) -> Result<&'static ProgramOption, Failure> {
        if let Some(option) = self.find(name) {
            return Ok(option);
        }
        let names = self.all().flat_map(|own| own.names.iter().copied());
        let near = nearest(name, names.filter(|own| own.len() > 2 && name.len() > 2));
        let near = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        Err(wrong(format!("unknown option `{name}`; {near}{}", self.list())))
    }

    fn list(&self) -> String {
        format!("`fslab {} --help` lists the options", self.name)
    }

    /// Adds an option. `name` is the name as given, and `rest` the rest of its word.
    fn take(
        &self,
        option: &'static ProgramOption,
        name: &str,
        rest: Option<&str>,
        words: &mut Words<'_>,
        given: &mut Given,
    ) -> Result<(), Failure> {
        if let Handling::Refused(reason, hint) = option.handling {
            return Err(wrong(format!("{name} is not supported: {reason}; {hint}")));
        }
        let value = match option.argument {
            Argument::None => None,
            Argument::Attached(_) => rest.map(str::to_owned),
            Argument::Required(what) => {
                let value = rest.map(str::to_owned).or_else(|| words.next().cloned());
                Some(value.ok_or_else(|| {
                    wrong(format!("{name} requires an argument, such as {name} {what}"))
                })?)
            }
            Argument::List(what) => {
                let mut values: Vec<String> = rest.map(str::to_owned).into_iter().collect();
                while let Some(word) = words.next_if(|word| !word.starts_with('-')) {
                    values.push(word.clone());
                }
                if values.is_empty() {
                    return Err(wrong(format!("{name} requires arguments, such as {name} {what}")));
                }
                let all = values.into_iter().map(|value| (option.names[0], Some(value)));
                given.options.extend(all);
                return Ok(());
            }
        };
        given.options.push((option.names[0], value));
        Ok(())
    }

    /// Help with the options that are done.
    fn help(&self) -> String {
        let mut text = format!(
            "{}\n\nUsage: fslab {} {}\n\nExit status: 0 success, 1 error, 130 interrupted. \
             Results are those of fslab, not of {}.\ndocs/reference/{} lists all options, with \
             those that are not supported.\n\nOptions of {}:\n",
            self.title, self.name, self.usage, self.name, self.page, self.name
        );
        let lines = |text: &mut String, options: &mut dyn Iterator<Item = &ProgramOption>| {
            for option in options {
                if let Handling::Done(meaning) = option.handling {
                    let form = forms(option).join(", ");
                    text.push_str(&entry(&form, meaning));
                }
            }
        };
        lines(&mut text, &mut self.options.iter());
        text.push_str("\nOptions of fslab:\n");
        lines(&mut text, &mut self.own.iter().chain(OWN));
        text.push_str(&entry("--help, --version", "Print this help, or the version of fslab."));
        text
    }

    /// Body of the reference page, in Markdown.
    pub(in crate::commands) fn reference(&self) -> String {
        let mut page = format!(
            "{}\n\nA link named `{}` to fslab is the same as `fslab {}`. Results are those of \
             fslab, and each output names it. Options that are not supported end the command \
             before anything starts.\n\n## Done\n\n| option | meaning |\n| --- | --- |\n",
            self.introduction, self.name, self.name
        );
        let shown = |option: &ProgramOption| -> String {
            let forms = forms(option);
            forms.iter().map(|form| format!("`{form}`")).collect::<Vec<_>>().join(", ")
        };
        let cell = |text: &str| text.replace('|', "\\|");
        for option in self.all() {
            if let Handling::Done(meaning) = option.handling {
                page.push_str(&format!("| {} | {} |\n", cell(&shown(option)), cell(meaning)));
            }
        }
        let mut none = String::new();
        let mut refused = String::new();
        for option in self.all() {
            match option.handling {
                Handling::Done(_) => {}
                Handling::NoEffect(reason) => {
                    none.push_str(&format!("| {} | {} |\n", cell(&shown(option)), cell(reason)));
                }
                Handling::Refused(reason, hint) => {
                    let names = cell(&shown(option));
                    refused.push_str(&format!("| {names} | {} | {} |\n", cell(reason), cell(hint)));
                }
            }
        }
        if !none.is_empty() {
            page.push_str("\n## No effect\n\n| option | reason |\n| --- | --- |\n");
            page.push_str(&none);
        }
        if !refused.is_empty() {
            let head = "| option | reason | instead |\n| --- | --- | --- |\n";
            page.push_str(&format!("\n## Not supported\n\n{head}{refused}"));
        }
        page
    }
}

impl Given {
    /// Reads the options of fslab.
    fn complete(mut self) -> Result<Self, Failure> {
        self.run = self.last(RUN).map(PathBuf::from);
        if let Some(text) = self.last(REPETITIONS) {
            let number = text.parse().ok().filter(|number| (1..=1000).contains(number));
            self.repetitions = number.ok_or_else(|| {
                wrong(format!("{REPETITIONS} {text}: use a number from 1 to 1000"))
            })?;
        }
        Ok(self)
    }
}

/// Names of an option with its argument.
fn forms(option: &ProgramOption) -> Vec<String> {
    let form = |name: &&str| match option.argument {
        Argument::None => (*name).to_owned(),
        Argument::Required(what) if name.starts_with("--") => format!("{name}={what}"),
        Argument::Required(what) | Argument::List(what) => format!("{name} {what}"),
        Argument::Attached(what) => format!("{name}[{what}]"),
    };
    option.names.iter().map(form).collect()
}

/// Columns of the meaning in the help, and of the text.
const MEANING: usize = 30;
const COLUMNS: usize = 98;

/// Lines of an option in the help.
fn entry(form: &str, meaning: &str) -> String {
    let mut text = format!("  {form}");
    let mut column = text.len();
    if column + 2 > MEANING {
        text.push('\n');
        column = 0;
    }
    text.push_str(&" ".repeat(MEANING - column));
    column = MEANING;
    for (at, word) in meaning.trim_end_matches('.').split_whitespace().enumerate() {
        if column + 1 + word.len() > COLUMNS {
            text.push('\n');
            text.push_str(&" ".repeat(MEANING));
            column = MEANING;
        } else if at > 0 {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += word.len();
    }
    text.push('\n');
    text
}

/// Usage error; the message contains a hint.
pub(in crate::commands) fn wrong(message: String) -> Failure {
    Failure::usage(anyhow::Error::msg(message))
}

#[cfg(test)]
mod tests;
