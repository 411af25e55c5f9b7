//! `fslab iozone`: suite `iozone` with the command line and the output of IOzone 3.471.

mod matrix;
mod table;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use report::{IozoneCommand, IozoneUnit};

use self::matrix::{Matrix, kib};
pub(in crate::commands) use self::table::PROGRAM;
use super::{
    super::bench::writable,
    measure::{self, Measured, Order},
    options::{Given, wrong},
};
use crate::{
    exit::{Exit, Failure},
    output,
};

const RECORD_REWRITE: usize = 4;
const STDIO: [usize; 2] = [6, 7];
const MIXED: usize = 8;
const POSITIONED: [usize; 2] = [9, 10];

/// Runs the command.
pub(in crate::commands) fn run(arguments: &[String], state: &Path) -> Result<Exit, Failure> {
    measure::run(&PROGRAM, arguments, |given| execute(given, state))
}

/// Work that a command line requests.
#[derive(Debug)]
struct Work {
    /// Keys and values of each workload.
    workloads: Vec<String>,
    /// Directory that contains the files.
    directory: PathBuf,
    command: IozoneCommand,
    /// Workbook to write.
    workbook: Option<PathBuf>,
}

impl Work {
    fn new(given: &Given) -> Result<Self, Failure> {
        check(given)?;
        let matrix = Matrix::new(given)?;
        let directory = directory(given)?;
        let compat = if is_cold(given, &directory)? { "iozone-cold" } else { "iozone" };
        let mut common = vec![format!("suite = \"iozone\", compat = \"{compat}\"")];
        for (option, key) in [
            ("-e", "include_fsync = true"),
            ("-c", "include_close = true"),
            ("-I", "direct = true"),
            ("-o", "o_sync = true"),
            ("-+D", "o_dsync = true"),
            ("-x", "stonewall = false"),
            ("-+n", "second_pass = false"),
        ] {
            common.extend(given.has(option).then(|| key.to_owned()));
        }
        let common = common.join(", ");
        let mut workloads = Vec::new();
        for workers in workers(given)? {
            let (tests, readers) = (tests(given, workers)?, readers(given, workers)?);
            let tests: Vec<String> = tests.iter().map(|test| format!("\"{test}\"")).collect();
            let mut keys = format!("{common}, tests = [{}]", tests.join(", "));
            if workers > 0 {
                keys.push_str(&format!(", workers = {workers}"));
                let kind = if given.has("-T") { "thread" } else { "process" };
                keys.push_str(&format!(", worker_type = \"{kind}\""));
            }
            if let Some(readers) = readers {
                keys.push_str(&format!(", mixed_readers = {readers}"));
            }
            for (file, block) in matrix.points() {
                workloads.push(format!(
                    "{keys}, file_size = \"{file}KiB\", block_size = \"{block}KiB\""
                ));
            }
        }
        Ok(Self {
            workloads,
            directory,
            command: command(given)?,
            workbook: given.last("-b").map(PathBuf::from),
        })
    }
}

/// Checks combinations of options.
fn check(given: &Given) -> Result<(), Failure> {
    if let Some(operand) = given.operands.iter().find(|operand| !operand.starts_with('#')) {
        return Err(wrong(format!("unknown argument `{operand}`; use -f PATH for a file")));
    }
    let threads = ["-t", "-l", "-u"].iter().any(|name| given.has(name));
    for name in ["-x", "-C", "-T", "-F", "-+p"] {
        if given.has(name) && !threads {
            return Err(wrong(format!("{name} requires the throughput mode; use -t N")));
        }
    }
    if given.has("-O") && given.has("-N") {
        return Err(wrong("-O and -N exclude each other; use one of them".into()));
    }
    if given.has("-N") && threads {
        return Err(wrong("-N does not apply to the throughput mode; use -O, or remove -t".into()));
    }
    if let Some(stride) = given.last("-j").filter(|stride| *stride != "17") {
        return Err(wrong(format!("-j {stride}: only a stride of 17 is supported; remove -j")));
    }
    if let Some(factor) = given.last("-+x").filter(|factor| *factor != "2") {
        return Err(wrong(format!("-+x {factor}: only a factor of 2 is supported; remove -+x")));
    }
    Ok(())
}

/// Numbers of workers: 0 for the single-stream mode, otherwise one cell for each number.
fn workers(given: &Given) -> Result<Vec<u64>, Failure> {
    let number = |name: &str, text: &str| {
        let number = text.parse().ok().filter(|number| (1..=1024).contains(number));
        number.ok_or_else(|| wrong(format!("{name} {text}: use a number from 1 to 1024")))
    };
    let mut numbers: Vec<u64> =
        given.all("-t").map(|text| number("-t", text)).collect::<Result<_, _>>()?;
    match (given.last("-l"), given.last("-u")) {
        (None, None) => {}
        (Some(least), Some(most)) => {
            let (least, most) = (number("-l", least)?, number("-u", most)?);
            if least > most {
                return Err(wrong(format!("-l {least} is greater than -u {most}; swap them")));
            }
            numbers.extend(least..=most);
        }
        (Some(_), None) => return Err(wrong("-l requires -u; use -l MIN -u MAX".into())),
        (None, Some(_)) => return Err(wrong("-u requires -l; use -l MIN -u MAX".into())),
    }
    numbers.sort_unstable();
    numbers.dedup();
    let paths = given.all("-F").count() as u64;
    if let Some(most) = numbers.last().filter(|most| paths > 0 && paths < **most) {
        return Err(wrong(format!("-F has {paths} paths for {most} workers; use one for each")));
    }
    Ok(if numbers.is_empty() { vec![0] } else { numbers })
}

/// Tests of a cell, by name.
fn tests(given: &Given, workers: u64) -> Result<Vec<&'static str>, Failure> {
    let mut numbers = Vec::new();
    for text in given.all("-i") {
        let number = text.parse().ok().filter(|number| *number < suites::IOZONE_TESTS.len());
        numbers.push(number.ok_or_else(|| wrong(format!("-i {text}: use a number from 0 to 10")))?);
    }
    if numbers.is_empty() && given.has("-A") {
        numbers = vec![0, 1];
    }
    let chosen = !numbers.is_empty();
    if !chosen {
        numbers = (0..=7).collect();
        match workers {
            0 if given.has("-E") => numbers.extend(POSITIONED),
            0 => {}
            1 => numbers.extend(POSITIONED),
            _ => numbers.extend([MIXED].into_iter().chain(POSITIONED)),
        }
    }
    if workers == 0 {
        let missing = numbers
            .iter()
            .find(|number| **number == MIXED || POSITIONED.contains(number) && !given.has("-E"));
        if let Some(number) = missing {
            let option = if *number == MIXED { "-t N" } else { "-E or -t N" };
            return Err(wrong(format!("-i {number} requires {option}; add it")));
        }
    } else {
        // IOzone has no such test in its throughput mode.
        numbers.retain(|number| *number != RECORD_REWRITE);
        if numbers.is_empty() {
            return Err(wrong("-i 4 is not a test of the throughput mode; remove -t".into()));
        }
        if workers == 1 && numbers.contains(&MIXED) {
            return Err(wrong("-i 8 requires readers and writers; use -t 2 or more".into()));
        }
    }
    if given.has("-I") && numbers.iter().any(|number| STDIO.contains(number)) {
        let rest = numbers.iter().filter(|number| !STDIO.contains(number));
        let rest: Vec<String> = rest.map(|number| format!("-i {number}")).collect();
        return Err(wrong(format!(
            "-I does not apply to fwrite and fread (-i 6 and -i 7), which are buffered; leave them \
             out: {}",
            if rest.is_empty() { "-i 0 -i 1".to_owned() } else { rest.join(" ") }
        )));
    }
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers.into_iter().map(|number| suites::IOZONE_TESTS[number]).collect())
}

/// Readers of the mixed test.
fn readers(given: &Given, workers: u64) -> Result<Option<u64>, Failure> {
    let Some(text) = given.last("-+p") else { return Ok(None) };
    let percent = text.parse().ok().filter(|percent| (1..=99).contains(percent));
    let percent: u64 =
        percent.ok_or_else(|| wrong(format!("-+p {text}: use a percentage from 1 to 99")))?;
    match percent * workers / 100 {
        0 => Err(wrong(format!(
            "-+p {percent}: {percent} % of {workers} workers are less than one reader; use at least \
             {}",
            100_u64.div_ceil(workers.max(1)).min(99)
        ))),
        readers => Ok(Some(readers)),
    }
}

/// Directory of the files of `-f` and `-F`.
fn directory(given: &Given) -> Result<PathBuf, Failure> {
    let mut found: Option<PathBuf> = None;
    for path in given.all("-f").chain(given.all("-F")) {
        let path = Path::new(path);
        if path.is_dir() {
            let shown = path.display();
            return Err(wrong(format!(
                "{shown} is a directory; use a file in it, such as {shown}/f"
            )));
        }
        let parent = match path.parent() {
            Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
            Some(parent) => parent,
            None => Path::new("."),
        };
        let parent = existing(parent)?;
        if found.as_ref().is_some_and(|known| *known != parent) {
            return Err(wrong(format!(
                "{} is not in the directory of the other files; use one directory, or a plan",
                path.display()
            )));
        }
        found = Some(parent);
    }
    found.map_or_else(|| existing(Path::new(".")), Ok)
}

/// True if the caches are emptied before each test, by option -U.
fn is_cold(given: &Given, directory: &Path) -> Result<bool, Failure> {
    let Some(mount) = given.last("-U") else { return Ok(false) };
    let threads = ["-t", "-l"].iter().any(|name| given.has(name));
    if threads {
        return Err(wrong("-U does not apply to the throughput mode; remove -U or -t".into()));
    }
    match directory.starts_with(existing(Path::new(mount))?) {
        true => Ok(true),
        false => Err(wrong(format!(
            "-U {mount}: the files are in {}, which is not below it; use -f {mount}/FILE",
            directory.display()
        ))),
    }
}

/// Absolute path of a directory.
fn existing(path: &Path) -> Result<PathBuf, Failure> {
    std::fs::canonicalize(path).map_err(|error| {
        wrong(format!("cannot measure {}: {error}; use an existing directory", path.display()))
    })
}

/// Command line with the line that IOzone prints for each option.
fn command(given: &Given) -> Result<IozoneCommand, Failure> {
    let mut lines = Vec::new();
    for (name, value) in given.in_order() {
        let size = || kib(name, value);
        lines.extend(match name {
            "-a" | "-A" => Some("Auto Mode".to_owned()),
            "-z" => Some("Cross over of record size disabled.".into()),
            "-s" => Some(format!("File size set to {} kB", size()?)),
            "-r" => Some(format!("Record Size {} kB", size()?)),
            "-n" => Some(format!("Using minimum file size of {} kilobytes.", size()?)),
            "-g" => Some(format!("Using maximum file size of {} kilobytes.", size()?)),
            "-y" => Some(format!("Using Minimum Record Size {} kB", size()?)),
            "-q" => Some(format!("Using Maximum Record Size {} kB", size()?)),
            "-e" => Some("Include fsync in write timing".into()),
            "-c" => Some("Include close in write timing".into()),
            "-I" => Some("O_DIRECT feature enabled".into()),
            "-o" => Some("SYNC Mode. ".into()),
            "-+D" => Some("DSYNC Mode. ".into()),
            "-+n" => Some("No retest option selected".into()),
            "-x" => Some("Stonewall disabled".into()),
            "-R" => Some("Excel chart generation enabled".into()),
            "-O" => Some("OPS Mode. Output is in operations per second.".into()),
            "-N" => Some("Microseconds/op Mode. Output is in microseconds per operation.".into()),
            _ => None,
        });
    }
    let unit = match (given.has("-O"), given.has("-N")) {
        (true, _) => IozoneUnit::Operations,
        (_, true) => IozoneUnit::Micros,
        (false, false) => IozoneUnit::KiloBytes,
    };
    Ok(IozoneCommand {
        words: format!("fslab {}", given.words.join(" ")),
        options: lines,
        unit,
        tables: given.has("-R") || given.has("-b"),
        workers: given.has("-C"),
    })
}

fn execute(given: &Given, state: &Path) -> Result<Exit, Failure> {
    let work = Work::new(given)?;
    if let Some(path) = work.workbook.as_ref().filter(|path| path.symlink_metadata().is_ok()) {
        let shown = path.display();
        return Err(wrong(format!("the file {shown} already exists; use another file for -b")));
    }
    let directory = writable(&work.directory)?;
    let order = Order {
        program: PROGRAM.name,
        title: &given.words.join(" "),
        repetitions: given.repetitions,
        seed: None,
        directory: directory.to_str().unwrap_or_default(),
        workloads: work.workloads,
        run: given.run.as_deref(),
    };
    let record = match order.measure(state)? {
        Measured::Complete(record) => *record,
        Measured::Ended(exit) => return Ok(exit),
    };
    if let Some(path) = &work.workbook {
        let bytes = report::iozone_workbook(&record, &work.command).map_err(Failure::usage)?;
        sys::whole::write(path, &bytes)
            .map_err(|error| wrong(format!("cannot write {}: {error}", path.display())))?;
    }
    output::result(&report::iozone_output(&record, &work.command).map_err(Failure::usage)?)?;
    Ok(Exit::Success)
}
