//! `fslab bonnie++`: suite `bonnie` with the command line and the output of bonnie++ 2.00.

mod sizes;
#[cfg(test)]
mod tests;
mod user;

use std::{fs, path::Path};

use report::bonnie::{Format, Record, header, median, records, text, write};

use self::sizes::{FilePart, Memory, SmallFiles};
pub(in crate::commands) use self::user::change as change_user;
use super::{
    super::bench::writable,
    measure::{self, Measured, Order},
    options::{Argument, Given, Program, ProgramOption, done, refused, unused, wrong},
};
use crate::{
    exit::{Exit, Failure},
    output,
    plans::quoted,
};

const WORKERS: &str = "--fslab-workers";

#[rustfmt::skip]
const OPTIONS: &[ProgramOption] = &[
    done(&["-d"], Argument::Required("DIR"), "Directory to measure; default is the current directory. Files are created in a subdirectory and removed."),
    done(&["-s"], Argument::Required("SIZE[:CHUNK[:SEEKS[:SEEKERS]]]"), "Size of the large file in MiB, or with `g` or `t`; default is twice the memory. Bytes per I/O call, or with `k`, a power of two from 256 to 1048576; number of seeks; threads that seek. 0 leaves out the large file."),
    done(&["-r"], Argument::Required("MIB"), "Memory in MiB, instead of that of the machine. 0 disables the check that the large file has at least twice that size."),
    done(&["-n"], Argument::Required("NUM[:MAX[:MIN[:DIRS[:CHUNK]]]]"), "Number of small files in units of 1024, or with `m` of 1048576; default is 16. Maximum size, with -1 for hard links and -2 for symbolic links; minimum size; directories; bytes per I/O call. 0 leaves out the small files."),
    done(&["-f"], Argument::Attached("MIB"), "Size of the tests by character, by default 3 MiB; without a size, these tests are left out."),
    done(&["-b"], Argument::None, "fsync after each change: block modified by a seek, created file, and directory."),
    done(&["-D"], Argument::None, "Open the file of the block write with O_DIRECT, as bonnie++ does. Requires -f without a size, because single bytes cannot be written with O_DIRECT."),
    done(&["-x"], Argument::Required("N"), "Number of repetitions. Prints CSV only, with a header if there are several."),
    done(&["-m"], Argument::Required("NAME"), "Name in the output; default is the host name."),
    done(&["-q"], Argument::None, "Print CSV on stdout, and the tables on stderr."),
    done(&["-z"], Argument::Required("SEED"), "Random seed. The numbers are not those of bonnie++ with the same seed."),
    done(&["-u"], Argument::Required("USER[:GROUP]"), "User and group that access the files; required as root. `-u root` keeps root."),
    done(&["-g"], Argument::Required("GROUP"), "Group that accesses the files, with -u."),
    unused(&["-c"], Argument::Required("N"), "bonnie++ only copies the number to its output and multiplies the file size by it in the memory check, and so does fslab; `--fslab-workers N` runs N workers at the same time"),
    refused(&["-p"], "phases of several processes are not synchronized", "use `--fslab-workers N`, whose workers start each phase together"),
    refused(&["-y"], "phases of several processes are not synchronized", "use `--fslab-workers N`, whose workers start each phase together"),
    refused(&["-Z"], "random numbers are not read from a file", "use `-z SEED`"),
];

/// Command line of bonnie++.
pub(in crate::commands) const PROGRAM: Program = Program {
    name: "bonnie++",
    title: "Run the phases of bonnie++, with its command line and its output",
    usage: "[OPTIONS]",
    page: "bonnie-options.md",
    manual: "fslab-bonnie-options",
    introduction: "Options of bonnie++ 2.00 in `fslab bonnie++`, which runs suite `bonnie` once. The \
                   output consists of the tables of bonnie++ and a CSV line of format 1.98, whose \
                   version is that of fslab. [Guide](../guides/bonnie.md).",
    options: OPTIONS,
    own: &[done(
        &[WORKERS],
        Argument::Required("N"),
        "Number of workers that run each phase at the same time, each with its own files; default \
         is 1.",
    )],
};

/// Runs the command.
pub(in crate::commands) fn run(arguments: &[String], state: &Path) -> Result<Exit, Failure> {
    measure::run(&PROGRAM, arguments, |given| execute(given, state))
}

/// Work that a command line requests.
#[derive(Debug, PartialEq, Eq)]
struct Work {
    /// Keys and values of the workload.
    workload: String,
    repetitions: u32,
    seed: Option<u64>,
    /// Number of `-c`.
    concurrency: Option<u64>,
    /// True if only CSV is printed.
    csv: bool,
}

impl Work {
    fn new(given: &Given, memory: Memory) -> Result<Self, Failure> {
        if let Some(operand) = given.operands.first() {
            return Err(wrong(format!(
                "unknown argument `{operand}`; use -d {operand} for a directory"
            )));
        }
        let concurrency = given.last("-c").map(|text| count("-c", text, 1, 200)).transpose()?;
        let workers = given.last(WORKERS).map(|text| count(WORKERS, text, 1, 1024)).transpose()?;
        let workers = workers.unwrap_or(1);
        let part = FilePart::new(given, memory, concurrency.unwrap_or(1).max(workers))?;
        let small = SmallFiles::new(given)?;
        if part.is_none() && small.is_none() {
            return Err(wrong("-s 0 and -n 0 leave nothing to measure; remove one of them".into()));
        }
        let mut tests = Vec::new();
        let mut keys = Vec::new();
        if let Some(part) = &part {
            tests.extend(part.tests());
            keys.extend(part.keys());
        }
        if let Some(small) = &small {
            tests.extend(SmallFiles::TESTS);
            keys.extend(small.keys());
        }
        let tests: Vec<String> = tests.into_iter().map(quoted).collect();
        keys.push(format!("tests = [{}]", tests.join(", ")));
        if given.has("-b") {
            keys.push("fsync_each = true".into());
        }
        if workers > 1 {
            keys.push(format!("workers = {workers}"));
        }
        let repetitions = match given.last("-x") {
            Some(_) if given.repetitions > 1 => {
                let message = "-x and --fslab-repetitions exclude each other; -x prints each \
                               repetition, --fslab-repetitions prints medians";
                return Err(wrong(message.into()));
            }
            Some(text) => u32::try_from(count("-x", text, 1, 1000)?)?,
            None => given.repetitions,
        };
        let seed = given.last("-z").map(|text| count("-z", text, 0, u64::MAX >> 1)).transpose()?;
        Ok(Self {
            workload: format!("suite = \"bonnie\", {}", keys.join(", ")),
            repetitions,
            seed,
            concurrency,
            csv: given.has("-x"),
        })
    }
}

fn execute(given: &Given, state: &Path) -> Result<Exit, Failure> {
    user::check(given)?;
    let work = Work::new(given, Memory::of_machine())?;
    let directory = writable(Path::new(given.last("-d").unwrap_or(".")))?;
    let order = Order {
        program: PROGRAM.name,
        title: "bonnie workload",
        repetitions: work.repetitions,
        seed: work.seed,
        directory: directory.to_str().unwrap_or_default(),
        workloads: vec![work.workload.clone()],
        run: given.run.as_deref(),
    };
    let mut record = match order.measure(state)? {
        Measured::Complete(record) => *record,
        Measured::Ended(exit) => return Ok(exit),
    };
    let name = given.last("-m").map(str::to_owned).or_else(host_name);
    let concurrency = work.concurrency.map(|number| number.to_string());
    let facts = [("bonnie.name", name), ("bonnie.concurrency", concurrency)];
    for (fact, value) in facts {
        if let Some(value) = value {
            record.environment.set(fact, value.as_str());
        }
    }
    let records = records(&record, Format::V198).map_err(Failure::usage)?;
    print(&records, &work, given.has("-q"))?;
    Ok(Exit::Success)
}

fn print(records: &[Record], work: &Work, quiet: bool) -> Result<(), Failure> {
    if work.csv {
        let head = (records.len() > 1).then(header);
        let lines: Vec<String> = head.into_iter().chain(records.iter().map(write)).collect();
        return Ok(output::lines(&lines)?);
    }
    let Some(record) = median(records) else { return Ok(()) };
    match quiet {
        true => output::message(text(&record).trim_end()),
        false => output::result(&text(&record))?,
    }
    Ok(output::lines(&[write(&record)])?)
}

fn host_name() -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Whole number of an option.
fn count(option: &str, text: &str, least: u64, most: u64) -> Result<u64, Failure> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| wrong(format!("{option} {text}: use a number from {least} to {most}")))
}
