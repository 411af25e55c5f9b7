//! `fslab bench`: one workload on one directory, now.
//!
//! The arguments become the text of a plan and settings on top of it, which run as any plan does;
//! what is shown in the end is the sheet of [`report::bench`]. Nothing is formatted. A run that
//! the user does not keep is a scratch run ([`super::scratch`]).

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::Context;
use engine::{CrashState, EngineError, Progress};
use model::{Point, RunRecord, SuiteSpec, suggest::nearest};
use report::{Subject, TerminalOptions, View};
use rig::{Catalogue, Host, RealHost};

use super::{
    keeping,
    scratch::Scratch,
    session::{self, Conducting, Ended, Surroundings},
};
use crate::{
    cli::{Bench, View as Shown},
    exit::{Exit, Failure},
    output,
    plans::Chosen,
    screen::Screen,
};

pub(super) fn run(arguments: &Bench, state: &Path) -> Result<Exit, Failure> {
    let workload = Workload::find(arguments)?;
    let directory = directory(arguments)?;
    if let Some(state) = &arguments.crash_state {
        if state.symlink_metadata().is_ok() {
            return Err(Failure::usage(EngineError::StateExists { path: state.clone() }));
        }
        outside(state, &directory)?;
    }
    let catalogue = Catalogue::embedded();
    let chosen = chosen(arguments, &workload, &directory, &catalogue)?;
    let place = Kept::new(arguments.output.as_deref(), state, &directory)?;
    session::free(&place.path())?;
    let host: Arc<dyn Host> = Arc::new(RealHost);
    let interrupt = session::listen()?;
    let (catalogue, host, interrupt) = (&catalogue, &host, &interrupt);
    let surroundings = Surroundings { catalogue, host, state, destroy: &[], interrupt };
    // What was asked for is the plan: nothing about it is amended.
    let prepared = session::begin(&chosen, &place.path(), Vec::new(), &surroundings)?;
    let state = arguments.crash_state.as_deref().map(CrashState::create).transpose();
    let state = state.map_err(Failure::usage)?.map(Arc::new);
    let progress = Progress::default();
    let view = Shown { html: None, quiet: arguments.quiet, json: arguments.json };
    let screen = Screen::of_one(&view, &progress, workload.name);
    let conducting = Conducting {
        catalogue,
        screen: &screen,
        progress: &progress,
        interrupt,
        fail_fast: false,
        crash_state: state.as_ref(),
        without_reboot: false,
        pilot: false,
    };
    let ended = session::conduct(prepared, &conducting)?;
    if let Some(state) = &state {
        // The files that it describes are removed by now: there was no crash.
        state.remove().context("removing it after the run")?;
    }
    drop(screen);
    end(arguments, &workload, &ended, &place)
}

/// A workload that was found.
struct Workload<'a> {
    name: &'a str,
    title: &'static str,
    source: &'static str,
    suite: &'static SuiteSpec,
    /// The point that the name stands for.
    point: Point,
    /// Whether the name is a recipe's, not a suite's.
    recipe: bool,
}

impl<'a> Workload<'a> {
    /// The workload that is asked for.
    ///
    /// # Errors
    /// When none is named, or there is none of that name; the nearest ones are told.
    fn find(arguments: &'a Bench) -> Result<Self, Failure> {
        let cure = "`fslab list workloads` shows them all";
        let Some(name) = arguments.workload.as_deref() else {
            return Err(wrong(format!(
                "name a workload and a directory, as in `fslab bench {} /srv`; {cure}",
                names().next().unwrap_or_default()
            )));
        };
        if let Some(found) = named(name) {
            return Ok(found);
        }
        if arguments.directory.is_none() && Path::new(name).is_dir() {
            return Err(wrong(format!(
                "name a workload before the directory, as in `fslab bench {} {name}`; {cure}",
                names().next().unwrap_or_default()
            )));
        }
        let near = near(name);
        let near = match &near[..] {
            [] => String::new(),
            _ => format!("did you mean {}? ", near.join(" or ")),
        };
        Err(wrong(format!("there is no workload `{name}`; {near}{cure}")))
    }

    /// A setting that every workload of this kind has, under the name its suite gives it.
    ///
    /// # Errors
    /// When this one has none.
    fn has(&self, parameter: &str, option: &str) -> Result<(), Failure> {
        match self.suite.parameter(parameter) {
            Ok(_) => Ok(()),
            Err(_) => Err(wrong(format!(
                "{} takes no {option}, since its suite {} has no parameter `{parameter}`; \
                 `fslab list suites` shows what --set can set",
                self.name, self.suite.name,
            ))),
        }
    }

    /// A workload that ends after so many operations has to be told otherwise first.
    ///
    /// # Errors
    /// When it does, and was not.
    fn is_bound_by_time(&self, arguments: &Bench) -> Result<(), Failure> {
        let Some(model::Value::Count(operations @ 1..)) = self.point.parameters.get("operations")
        else {
            return Ok(());
        };
        if arguments.set.iter().any(|(key, _)| key == "operations") {
            return Ok(());
        }
        Err(wrong(format!(
            "{} takes no --time, since it ends after {operations} operations; say how many with \
             --set operations=N",
            self.name
        )))
    }

    /// The entry of the workload axis.
    fn entry(&self) -> String {
        let key = if self.recipe { "recipe" } else { "suite" };
        format!("{{ {key} = {} }}", quoted(self.name))
    }

    /// The words for the sheet; parameters that differ from those the name stands for are told,
    /// unless they are swept.
    fn subject(&self, record: &RunRecord) -> Subject {
        let points: Vec<_> =
            record.cells.iter().map(|cell| &cell.cell.workload.parameters).collect();
        // Parameters without effect are settled in the cells, and have to be here.
        let settled = suites::refine(self.point.clone()).ok();
        let settled = settled.as_ref().and_then(|points| points.first()).unwrap_or(&self.point);
        let parameters = settled.parameters.iter().filter_map(|(name, default)| {
            let (first, others) = points.split_first()?;
            let value = first.get(name)?;
            let same = others.iter().all(|other| other.get(name) == Some(value));
            (same && value != default).then(|| (name.clone(), value.to_string()))
        });
        Subject {
            name: self.name.to_owned(),
            title: self.title.to_owned(),
            source: self.source.to_owned(),
            parameters: parameters.collect(),
        }
    }
}

/// The workload of that name: a recipe, or a suite with its defaults.
fn named(name: &str) -> Option<Workload<'_>> {
    if let Some(recipe) = suites::recipe(name) {
        let suite = suites::find(&recipe.point.suite)?.spec;
        let (title, source) = (recipe.title.as_str(), recipe.source.as_str());
        return Some(Workload {
            name,
            title,
            source,
            suite,
            point: recipe.point.clone(),
            recipe: true,
        });
    }
    let suite = suites::find(name)?.spec;
    let (title, source, point) = (suite.title, suite.source, suite.defaults());
    Some(Workload { name, title, source, suite, point, recipe: false })
}

/// Every name that a workload has.
fn names() -> impl Iterator<Item = &'static str> + Clone {
    let recipes = suites::recipes().iter().map(|recipe| recipe.name.as_str());
    recipes.chain(suites::ALL.iter().map(|suite| suite.spec.name))
}

/// Names that may have been meant: the nearest, and those that have the word in them or are part of
/// it, five at most.
fn near(name: &str) -> Vec<String> {
    let alike =
        names().filter(|known| !name.is_empty() && (known.contains(name) || name.contains(known)));
    let mut near: Vec<&str> = nearest(name, names()).into_iter().collect();
    for known in alike {
        if !near.contains(&known) {
            near.push(known);
        }
    }
    near.into_iter().take(5).map(|known| format!("`{known}`")).collect()
}

/// The directory, as an absolute path.
///
/// # Errors
/// When none is named, or it is not there, or is something else, or cannot be written to.
fn directory(arguments: &Bench) -> Result<PathBuf, Failure> {
    let Some(path) = &arguments.directory else {
        return Err(wrong("name the directory to measure after the workload".into()));
    };
    let shown = path.display();
    let metadata = fs::metadata(path).map_err(|source| {
        wrong(format!("cannot measure {shown}: {source}; name a directory that is there"))
    })?;
    if !metadata.is_dir() {
        return Err(wrong(format!("{shown} is not a directory; name the one to measure in")));
    }
    // Rights do not tell of a filesystem that is mounted read-only, or takes no directories.
    let probe = path.join(format!(".fslab-probe-{}", std::process::id()));
    let written = fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe));
    written.map_err(|source| {
        wrong(format!("cannot write to {shown}: {source}; name a directory that can be written to"))
    })?;
    let absolute = fs::canonicalize(path)?;
    match absolute.to_str() {
        Some(_) => Ok(absolute),
        None => Err(wrong(format!("the path {shown} is not UTF-8, which plans are; rename it"))),
    }
}

/// Makes sure that a crash of the filesystem under test leaves the state alone.
///
/// # Errors
/// When it lies there, or that cannot be told.
fn outside(state: &Path, directory: &Path) -> Result<(), Failure> {
    let shown = state.display();
    rig::guard::store_outside(state, directory).map_err(|refusal| {
        if matches!(refusal, rig::guard::Refusal::StoreOnTarget { .. }) {
            return wrong(format!(
                "--crash-state {shown} is on the filesystem under test, and would not survive its \
                 crash; name a file on another one"
            ));
        }
        Failure::usage(refusal)
    })
}

/// The plan: its text says what and where, and the rest is set on top of it. It compares nothing,
/// and needs no twin.
fn chosen(
    arguments: &Bench,
    workload: &Workload<'_>,
    directory: &Path,
    catalogue: &Catalogue,
) -> Result<Chosen, Failure> {
    let mut settings = Vec::new();
    if let Some(time) = &arguments.time {
        workload.has("time", "--time")?;
        workload.is_bound_by_time(arguments)?;
        settings.push(("time".to_owned(), time.clone()));
    }
    if let Some(size) = &arguments.size {
        workload.has("file", "--size")?;
        settings.push(("file".to_owned(), size.clone()));
    }
    settings.extend(arguments.set.iter().cloned());
    let text = format!(
        "title = {}\nrepeats = {}\ntwins = \"none\"\n\n[storage]\ndirectory = {}\n\n[axes]\nworkload = [{}]\n",
        quoted(&format!("{} on {}", workload.name, directory.display())),
        arguments.repeats,
        quoted(&directory.display().to_string()),
        workload.entry(),
    );
    let name = format!("bench-{}", workload.name);
    let asked = settings.clone();
    let origin = "the plan of this bench";
    let chosen = Chosen::read(name, origin, text, settings, model::Scale::ONE, catalogue)?;
    asked.iter().try_for_each(|(key, value)| heeded(&chosen, workload.suite, key, value))?;
    Ok(chosen)
}

/// Makes sure that a parameter that was asked for has an effect beside the others: one that has
/// none is given its default, and whoever set it would believe otherwise.
///
/// # Errors
/// When no cell has it as it was asked for.
fn heeded(chosen: &Chosen, suite: &SuiteSpec, key: &str, value: &str) -> Result<(), Failure> {
    let Ok(parameter) = suite.parameter(key) else { return Ok(()) };
    // Several values have cells of their own, and were read once already.
    let Ok(asked) = parameter.kind.read(value) else { return Ok(()) };
    let cells = || chosen.cells.iter().map(|cell| &cell.cell.workload.parameters);
    let found = cells().find_map(|parameters| parameters.get(key));
    match found {
        Some(found) if cells().all(|parameters| parameters.get(key) != Some(&asked)) => {
            Err(wrong(format!(
                "{key}={value} has no effect beside the other settings, which make it {found}; \
                 `fslab list suites` says what it goes with"
            )))
        }
        _ => Ok(()),
    }
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
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

/// The run file: where it was asked for, or a scratch run that is removed when this is dropped.
enum Kept {
    Asked(PathBuf),
    Scratch(Scratch),
}

impl Kept {
    fn new(asked: Option<&Path>, state: &Path, directory: &Path) -> anyhow::Result<Self> {
        if let Some(path) = asked {
            return Ok(Self::Asked(path.into()));
        }
        keeping::scratch(state, directory).map(Self::Scratch)
    }

    fn path(&self) -> PathBuf {
        match self {
            Self::Asked(path) => path.clone(),
            Self::Scratch(scratch) => scratch.run_file(),
        }
    }
}

/// The sheet, and the ending it leads to.
fn end(
    arguments: &Bench,
    workload: &Workload<'_>,
    ended: &Ended,
    place: &Kept,
) -> Result<Exit, Failure> {
    let Ended { tally, .. } = ended;
    if tally.interrupted {
        output::message(&match place {
            Kept::Asked(path) => format!(
                "interrupted, and undone. Go on with: fslab run --resume {}",
                path.display()
            ),
            Kept::Scratch(..) => "interrupted, and undone".into(),
        });
        return Ok(Exit::Interrupted);
    }
    let record = super::report::read(&place.path())?;
    match arguments.json {
        true => output::json(&report::json(&View::new(&record)))?,
        false => {
            let (width, color) = (output::width(), output::color());
            let options = TerminalOptions { width, color, detail: false };
            let sheet = report::bench(&record, &workload.subject(&record), &options);
            let sheet = output::legible(sheet);
            output::styled(&match place {
                Kept::Asked(path) => {
                    let path = output::line(&path.display().to_string());
                    format!("{sheet}\nrun file  {path}")
                }
                Kept::Scratch(..) => sheet,
            })?;
        }
    }
    match (tally.measured, tally.failed) {
        (0, _) => Ok(Exit::Rig),
        (_, 0) => Ok(Exit::Done),
        _ => Ok(Exit::Incomplete),
    }
}

fn wrong(message: String) -> Failure {
    Failure::usage(anyhow::Error::msg(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_quoted_so_that_toml_reads_it_back() {
        let suites = suites::specs();
        let vocabulary =
            model::Vocabulary { suites: &suites, recipes: &[], filesystems: &["directory"] };
        for text in ["/srv/data", "a \"quoted\" \\ path", "line\nbreak\u{7f}", "größe"] {
            let plan = format!(
                "title = {}\n[storage]\ndirectory = \".\"\n[axes]\nworkload = [{{ suite = {} }}]",
                quoted(text),
                quoted("iozone")
            );
            assert_eq!(model::Plan::parse(&plan, vocabulary).unwrap().title, text);
        }
    }

    #[test]
    fn a_slip_and_a_part_of_a_name_are_recognized() {
        assert_eq!(near("iozon"), ["`iozone`"]);
        assert_eq!(near("oltp"), ["`oltp-8k`", "`oltp-log`"]);
        assert_eq!(near(""), Vec::<String>::new());
    }
}
