//! `fslab mdtest`: suite `mdtest` with the command line and the output of mdtest 4.1.

mod table;
#[cfg(test)]
mod tests;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use report::{MdtestCommand, MdtestTables};

pub(in crate::commands) use self::table::PROGRAM;
use self::table::WORKERS;
use super::{
    super::bench::writable,
    measure::{self, Measured, Order},
    options::{Given, wrong},
};
use crate::{
    exit::{Exit, Failure},
    output,
};

/// Maximum number of entries.
const MOST: u64 = 1 << 32;

/// Maximum size of a file in bytes.
const LARGEST: u64 = 1 << 40;

/// Variables in which MPI launchers pass the number of processes.
const LAUNCHERS: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE"];

/// Options that restrict the phases, with the end of the names of the phases.
const RESTRICTIONS: [(&str, &str); 5] =
    [("-C", "-create"), ("-T", "-stat"), ("-U", "-rename"), ("-E", "-read"), ("-r", "-remove")];

/// Runs the command.
pub(in crate::commands) fn run(arguments: &[String], state: &Path) -> Result<Exit, Failure> {
    measure::run(&PROGRAM, arguments, |given| execute(given, state))
}

/// Work that a command line requests.
#[derive(Debug)]
struct Work {
    /// Keys and values of the workload.
    workload: String,
    repetitions: u32,
    seed: Option<u64>,
    command: MdtestCommand,
    /// File for the number of files that a stonewall permitted.
    status: Option<PathBuf>,
    /// True if the files are created before the measurement, as many as the status file states.
    uses_status: bool,
}

impl Work {
    fn new(given: &Given) -> Result<Self, Failure> {
        check(given)?;
        let phases = phases(given)?;
        let creates = phases.contains(&"file-create");
        let status = given.last("-x").map(PathBuf::from);
        let uses_status = status.is_some() && !creates;
        let mut keys = vec!["suite = \"mdtest\"".to_owned()];
        let names: Vec<String> = phases.iter().map(|phase| format!("\"{phase}\"")).collect();
        keys.push(format!("operations = [{}]", names.join(", ")));
        let workers = given.last(WORKERS).map(|text| number(WORKERS, text, 1, 1024)).transpose()?;
        keys.extend(workers.map(|workers| format!("workers = {workers}")));
        entries(given, status.as_deref().filter(|_| uses_status), &mut keys)?;
        tree(given, &mut keys)?;
        contents(given, &mut keys)?;
        if let Some(text) = given.last("-W") {
            let seconds = number("-W", text, 0, 7 * 24 * 3600)?;
            keys.push(format!("stonewall_time = \"{seconds}s\""));
        }
        for (option, key) in [
            ("-c", "first_worker_creates = true"),
            ("-R", "order = \"random\""),
            ("-Y", "sync_after = true"),
        ] {
            keys.extend(given.has(option).then(|| key.to_owned()));
        }
        if let Some(text) = given.last("-N") {
            keys.push(format!("worker_shift = {}", number("-N", text, 0, 1 << 20)?));
        }
        let seed = given
            .last("--random-seed")
            .map(|text| number("--random-seed", text, 0, u64::MAX >> 1))
            .transpose()?;
        Ok(Self {
            workload: keys.join(", "),
            repetitions: repetitions(given)?,
            seed,
            command: command(given),
            status,
            uses_status,
        })
    }
}

/// Checks combinations of options.
fn check(given: &Given) -> Result<(), Failure> {
    if let Some(operand) = given.operands.first() {
        return Err(wrong(format!(
            "unknown argument `{operand}`; use -d {operand} for a directory"
        )));
    }
    if let Some(api) = given.last("-a").map(plain).filter(|api| *api != "POSIX") {
        return Err(wrong(format!("-a {api}: only POSIX is supported; remove -a")));
    }
    if given.last("-d").is_some_and(|path| path.contains('@')) {
        return Err(wrong(
            "-d: several directories are not supported; use one, or a plan with several".into(),
        ));
    }
    for (one, other, hint) in [
        ("-u", "-S", "files are shared only in a shared tree"),
        ("-S", "-D", "workers cannot create the same directories"),
        ("-n", "-I", "separate test directories are not supported"),
    ] {
        if given.has(one) && given.has(other) {
            return Err(wrong(format!("{one} and {other} exclude each other: {hint}; use one")));
        }
    }
    if given.has("-S") && !given.has("-F") {
        return Err(wrong(
            "-S requires -F: workers cannot create the same directories; add -F".into(),
        ));
    }
    Ok(())
}

/// Measured phases, in execution order.
fn phases(given: &Given) -> Result<Vec<&'static str>, Failure> {
    let restricted = RESTRICTIONS.iter().any(|(option, _)| given.has(option));
    let both = given.has("-F") == given.has("-D");
    let mut phases = suites::MDTEST_PHASES.to_vec();
    phases.retain(|phase| {
        let kind = match phase.split_once('-') {
            Some(("file", _)) => both || given.has("-F"),
            Some(("directory", _)) => both || given.has("-D"),
            Some(_) | None => true,
        };
        let mut named = RESTRICTIONS.iter();
        kind && (!restricted
            || named.any(|(option, end)| given.has(option) && phase.ends_with(end)))
    });
    if phases.is_empty() {
        return Err(wrong(
            "these options leave no phase; mdtest reads files only: remove -D".into(),
        ));
    }
    Ok(phases)
}

/// Keys of the number of entries. A status file replaces the number.
fn entries(given: &Given, status: Option<&Path>, keys: &mut Vec<String>) -> Result<(), Failure> {
    let found = status.map(count_of).transpose()?.flatten();
    match (found, given.last("-n"), given.last("-I")) {
        (Some(count), ..) => keys.push(format!("entries = {count}")),
        (None, Some(text), _) => keys.push(format!("entries = {}", number("-n", text, 1, MOST)?)),
        (None, None, Some(text)) => {
            keys.push(format!("entries_per_directory = {}", number("-I", text, 1, MOST)?));
        }
        (None, None, None) => {
            return Err(wrong("the number of files is missing; use for example -n 1000".into()));
        }
    }
    Ok(())
}

/// Number of files in a status file; `None` if the file does not exist.
fn count_of(path: &Path) -> Result<Option<u64>, Failure> {
    let shown = path.display();
    match fs::read_to_string(path) {
        Ok(text) => {
            let count = text.trim().parse().ok().filter(|count| (1..=MOST).contains(count));
            count.map(Some).ok_or_else(|| {
                wrong(format!("-x {shown}: the file contains no number; use another file"))
            })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(wrong(format!("-x {shown}: {error}; use another file"))),
    }
}

fn tree(given: &Given, keys: &mut Vec<String>) -> Result<(), Failure> {
    for (option, key, least, most) in
        [("-z", "tree_depth", 0, 64), ("-b", "tree_branching", 1, 1 << 20)]
    {
        if let Some(text) = given.last(option) {
            keys.push(format!("{key} = {}", number(option, text, least, most)?));
        }
    }
    for (option, key) in [
        ("-L", "leaves_only = true"),
        ("-u", "sharing = \"private\""),
        ("-S", "sharing = \"file\""),
    ] {
        keys.extend(given.has(option).then(|| key.to_owned()));
    }
    Ok(())
}

/// Keys of the data of files.
fn contents(given: &Given, keys: &mut Vec<String>) -> Result<(), Failure> {
    for (option, key) in [("-w", "file_size"), ("-e", "read_size")] {
        if let Some(text) = given.last(option) {
            keys.push(format!("{key} = \"{}B\"", number(option, text, 0, LARGEST)?));
        }
    }
    for (option, key) in [("-y", "fsync_each = true"), ("-X", "verify = true")] {
        keys.extend(given.has(option).then(|| key.to_owned()));
    }
    Ok(())
}

fn repetitions(given: &Given) -> Result<u32, Failure> {
    match given.last("-i") {
        Some(_) if given.repetitions > 1 => Err(wrong(
            "-i and --fslab-repetitions exclude each other; both set the number of repetitions"
                .into(),
        )),
        Some(text) => Ok(u32::try_from(number("-i", text, 1, 1000)?)?),
        None => Ok(given.repetitions),
    }
}

fn command(given: &Given) -> MdtestCommand {
    MdtestCommand {
        words: format!("fslab {}", given.words.join(" ")),
        tables: match (given.has("-Z"), given.has("-P")) {
            (true, _) => MdtestTables::Times,
            (false, true) => MdtestTables::Both,
            (false, false) => MdtestTables::Rates,
        },
    }
}

/// Argument without the equals sign of the form `-n=1000`.
fn plain(text: &str) -> &str {
    text.strip_prefix('=').unwrap_or(text)
}

/// Whole number of an option, with a suffix k, m, g, or t for powers of 1024.
fn number(option: &str, text: &str, least: u64, most: u64) -> Result<u64, Failure> {
    let text = plain(text);
    let last = text.chars().last().map(|last| last.to_ascii_lowercase());
    let shift = last.and_then(|last| "kmgt".find(last)).map(|at| 10 * (at + 1));
    let digits = if shift.is_some() { &text[..text.len() - 1] } else { text };
    let number = digits.parse::<u64>().ok();
    let number = number.and_then(|number| number.checked_mul(1 << shift.unwrap_or(0)));
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| wrong(format!("{option} {text}: use a number from {least} to {most}")))
}

/// Fails if an MPI launcher started several processes, each of which would run the command.
fn check_launcher() -> Result<(), Failure> {
    let count = |name: &&str| env::var(name).ok()?.parse::<u32>().ok();
    match LAUNCHERS.iter().find_map(count).filter(|count| *count > 1) {
        None => Ok(()),
        Some(count) => Err(wrong(format!(
            "an MPI launcher started {count} processes; start one, with {WORKERS} {count}, or use \
             `fslab run --hosts` with suite mdtest"
        ))),
    }
}

fn execute(given: &Given, state: &Path) -> Result<Exit, Failure> {
    check_launcher()?;
    let work = Work::new(given)?;
    let directory = writable(Path::new(given.last("-d").map_or(".", plain)))?;
    let order = Order {
        program: PROGRAM.name,
        title: &given.words.join(" "),
        repetitions: work.repetitions,
        seed: work.seed,
        directory: directory.to_str().unwrap_or_default(),
        workloads: vec![work.workload],
        run: given.run.as_deref(),
    };
    let record = match order.measure(state)? {
        Measured::Complete(record) => *record,
        Measured::Ended(exit) => return Ok(exit),
    };
    if let Some(path) = work.status.filter(|_| !work.uses_status)
        && let Some(count) = report::mdtest_files(&record)
    {
        sys::whole::write(&path, format!("{count}\n").as_bytes())
            .map_err(|error| wrong(format!("cannot write {}: {error}", path.display())))?;
    }
    output::result(&report::mdtest(&record, &work.command).map_err(Failure::usage)?)?;
    Ok(Exit::Success)
}
