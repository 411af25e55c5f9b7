//! Manual pages. Pages of commands are generated from the definition of the command line, other
//! pages from the reference pages.

mod markdown;

use clap::{Command, CommandFactory};
use clap_mangen::{
    Man,
    roff::{Roff, bold, roman},
};

use crate::{cli::Arguments, exit::Exit};

/// Environment variables of fslab(1).
const ENVIRONMENT: &[(&str, &str)] = &[
    ("FSLAB_STATE", "Directory of the undo journals, unless --state-directory is given."),
    (
        "XDG_STATE_HOME, XDG_CACHE_HOME",
        "Directories of the undo journals and of built guest kernels, without root.",
    ),
    ("NO_COLOR", "Disables color."),
    ("CLICOLOR, CLICOLOR_FORCE", "CLICOLOR=0 disables color; CLICOLOR_FORCE enables it in pipes."),
];

/// Files of fslab(1).
const FILES: &[(&str, &str)] = &[
    ("/var/lib/fslab", "Undo journals of root."),
    ("~/.local/state/fslab", "Undo journals of other users."),
];

/// Examples of fslab(1).
const EXAMPLES: &[(&str, &str)] = &[
    ("fslab bench oltp-8k /srv", "Measure one workload in a directory."),
    ("fslab show demo --text > plan.toml", "Copy a built-in plan."),
    ("fslab run plan.toml -o run.fslab", "Run a plan."),
    ("fslab report run.fslab --html run.html", "Write a report."),
];

/// Reference page that is also a manual page.
pub(super) struct Reference {
    /// Name of the page, such as `fslab-plan`.
    pub(super) name: &'static str,
    /// Section: 5 for file formats, 7 for lists.
    pub(super) section: &'static str,
    /// Summary in one line.
    pub(super) summary: &'static str,
    /// Markdown text.
    pub(super) text: String,
}

/// All manual pages: file name and text.
pub(super) fn pages(references: &[Reference]) -> Vec<(String, String)> {
    let names = references.iter().map(|it| format!("{}({})", it.name, it.section));
    let mut root = Arguments::command().disable_help_subcommand(true);
    root.build();
    let mut pages = vec![("fslab.1".to_owned(), overview(&root, &names.collect::<Vec<_>>()))];
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        of_command(command, "fslab", &mut pages);
    }
    for reference in references {
        let name = format!("{}.{}", reference.name, reference.section);
        pages.push((name, of_reference(reference)));
    }
    pages
}

/// fslab(1). Its table of exit statuses replaces the notes of the help.
fn overview(root: &Command, others: &[String]) -> String {
    let mut page = Roff::new();
    page.control("SH", ["EXIT STATUS"]);
    for (_, status, meaning) in Exit::ALL {
        entry(&mut page, &status.to_string(), meaning);
    }
    for (title, entries) in [("ENVIRONMENT", ENVIRONMENT), ("FILES", FILES), ("EXAMPLES", EXAMPLES)]
    {
        page.control("SH", [title]);
        for (name, meaning) in entries {
            entry(&mut page, name, meaning);
        }
    }
    see_also(&mut page, others);
    command(root, "fslab") + &page.render()
}

/// Adds the page of a command, then the pages of its subcommands.
fn of_command(command: &Command, above: &str, pages: &mut Vec<(String, String)>) {
    let name = format!("{above}-{}", command.get_name());
    let mut page = Roff::new();
    if let Some(text) = command.get_after_long_help().or_else(|| command.get_after_help()) {
        notes(&mut page, &text.to_string());
    }
    let above = [format!("{above}(1)")];
    let related = related(command.get_name()).iter().map(|&page| page.to_owned());
    see_also(&mut page, &above.into_iter().chain(related).collect::<Vec<_>>());
    pages.push((format!("{name}.1"), self::command(command, &name) + &page.render()));
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        of_command(command, &name, pages);
    }
}

/// Title, name, synopsis, description, options, and subcommands of a command.
fn command(command: &Command, name: &str) -> String {
    let command = command.clone().display_name(name).subcommand_help_heading("COMMANDS");
    let has_commands = command.get_subcommands().any(|command| !command.is_hide_set());
    let man = Man::new(command);
    let mut sections = [
        Man::render_name_section,
        Man::render_synopsis_section,
        Man::render_description_section,
        Man::render_options_section,
    ]
    .to_vec();
    if has_commands {
        sections.push(Man::render_subcommands_section);
    }
    let mut text = title(name, "1").render().into_bytes();
    for render in sections {
        // Writing to a vector cannot fail.
        let _written = render(&man, &mut text);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Adds the paragraphs after the help of a command as sections. Short text before the first colon
/// is the heading of a section. Lines of examples are not joined.
fn notes(page: &mut Roff, text: &str) {
    for paragraph in text.split("\n\n") {
        let (heading, body) = match paragraph.split_once(':') {
            Some((heading, body)) if heading.len() <= 20 && !heading.contains('`') => {
                (heading.to_uppercase(), body.trim_matches('\n'))
            }
            _ => ("NOTES".to_owned(), paragraph),
        };
        page.control("SH", [heading.as_str()]);
        if body.starts_with("  ") {
            page.control("nf", []);
            for line in body.lines() {
                page.text([roman(line.trim())]);
            }
            page.control("fi", []);
        } else {
            page.text([roman(body.trim())]);
        }
    }
}

/// Page of a reference.
fn of_reference(reference: &Reference) -> String {
    let mut page = title(reference.name, reference.section);
    page.control("SH", ["NAME"]);
    page.text([roman(format!("{} - {}", reference.name, reference.summary))]);
    page.control("SH", ["DESCRIPTION"]);
    markdown::append(&mut page, &reference.text);
    see_also(&mut page, &["fslab(1)".to_owned()]);
    page.render()
}

/// New page with its title line. Hyphenation is disabled because it would break names.
fn title(name: &str, section: &str) -> Roff {
    let mut page = Roff::new();
    let source = concat!("fslab ", env!("CARGO_PKG_VERSION"));
    // No date: the pages of a version are the same on every day.
    page.control("TH", [name.to_uppercase().as_str(), section, "\"\"", source, "fslab manual"]);
    page.control("nh", []).control("ad", ["l"]);
    page
}

/// Manual pages about the files and names that a command uses.
fn related(command: &str) -> &'static [&'static str] {
    match command {
        "run" | "show" => &["fslab-plan(5)", "fslab-run-file(5)", "fslab-workloads(7)"],
        "bench" => &["fslab-metrics(7)", "fslab-workloads(7)"],
        "report" | "explain" | "compare" => {
            &["fslab-run-file(5)", "fslab-metrics(7)", "fslab-warnings(7)"]
        }
        _ => &[],
    }
}

fn entry(page: &mut Roff, name: &str, meaning: &str) {
    page.control("TP", []);
    page.text([bold(name)]);
    page.text([roman(meaning)]);
}

fn see_also(page: &mut Roff, pages: &[String]) {
    page.control("SH", ["SEE ALSO"]);
    page.text([roman(pages.join(", "))]);
}
