//! `fslab dbench`: suite `dbench` with the command line and the output of dbench 4.0 and 5.0.

#[cfg(test)]
mod tests;

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use model::Bytes;
use report::DbenchForm;

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

const OFFICE: &str = "--fslab-office";

/// Default of dbench in seconds.
const RUNTIME: u64 = 600;

/// Maximum time in seconds.
const LONGEST: u64 = 30 * 24 * 3600;

const COUNT: Argument = Argument::Required("N");
const NONE: Argument = Argument::None;
const OTHER: &str = "only files are measured, without a server";
const FILES: &str = "use -B fileio, or remove the option";
const CALLS: &str = "all calls of the loadfile are made as recorded";
const REMOVE: &str = "remove it";

#[rustfmt::skip]
const OPTIONS: &[ProgramOption] = &[
    done(&["-t", "--timelimit"], Argument::Required("SECONDS"), "Measured time; default is 600 seconds. A warm-up of a fifth of it comes first."),
    done(&["-c", "--loadfile"], Argument::Required("FILE"), "Loadfile, plain or gzip; default is that of the installed package dbench. Timestamps in a plain file set the times of its operations, unless -R is given."),
    done(&["-D", "--directory"], Argument::Required("DIR"), "Directory to measure; default is the current directory. Files are created in a subdirectory and removed."),
    done(&["-R", "--target-rate"], Argument::Required("MB/S"), "Maximum rate of each client in units of 10^6 bytes per second."),
    done(&["-s", "--sync"], NONE, "O_SYNC."),
    done(&["-S", "--sync-dir"], NONE, "fsync of the directory after a rename or removal."),
    done(&["-F", "--fsync"], NONE, "fsync after each write."),
    done(&["-x", "--xattr"], NONE, "Extended attributes."),
    done(&["--no-resolve"], NONE, "Do not read the whole directory for a name that does not exist."),
    done(&["--clients-per-process"], COUNT, "Clients per process; only 1 is supported."),
    done(&["-B", "--backend"], Argument::Required("NAME"), "Backend of dbench 5.0; only fileio is supported."),
    done(&["--warmup"], Argument::Required("SECONDS"), "Warm-up instead of a fifth of the time."),
    done(&["--run-once"], NONE, "Replay the loadfile once; -t and --warmup then have no effect."),
    done(&["--machine-readable"], NONE, "Print fields separated by `@`, `:`, and `;`, as dbench 5.0 does, with the names of operations of dbench 4.0."),
    unused(&["--skip-cleanup"], NONE, "files are always removed"),
    refused(&["--per-client-results"], "operations are not recorded per client", "use `fslab report --format csv` on the run file of --fslab-run, which has the throughput of each client"),
    refused(&["-T", "--tcp-options"], OTHER, REMOVE),
    refused(&["--one-byte-write-fix"], CALLS, REMOVE),
    refused(&["--stat-check"], CALLS, REMOVE),
    refused(&["--fake-io"], CALLS, "use another loadfile"),
    refused(&["--trunc-io"], CALLS, "use another loadfile"),
    refused(&["--server"], OTHER, FILES),
    refused(&["--export"], OTHER, FILES),
    refused(&["--protocol"], OTHER, FILES),
    refused(&["--smb-share"], OTHER, FILES),
    refused(&["--smb-user"], OTHER, FILES),
    refused(&["--iscsi-lun"], OTHER, FILES),
    refused(&["--iscsi-initiatorname"], OTHER, FILES),
    refused(&["--nfs"], OTHER, FILES),
    refused(&["--scsi"], OTHER, FILES),
    refused(&["--allow-scsi-writes"], OTHER, FILES),
    refused(&["--global-size"], OTHER, FILES),
];

/// Command line of dbench.
pub(in crate::commands) const PROGRAM: Program = Program {
    name: "dbench",
    title: "Replay loadfiles of dbench, with its command line and its output",
    usage: "[OPTIONS] CLIENTS",
    page: "dbench-options.md",
    manual: "fslab-dbench-options",
    introduction: "Options of dbench 4.0 and 5.0 in `fslab dbench`, which runs suite `dbench` once \
                   with this number of clients. The output has a line per second, a table of \
                   operations, and a summary. The first line has the SHA-256 of the loadfile. \
                   [Guide](../guides/file-server.md).",
    options: OPTIONS,
    own: &[done(
        &[OFFICE],
        Argument::None,
        "Replay the loadfile `office` of fslab, whose results are not comparable with those of \
         dbench.",
    )],
};

/// Runs the command.
pub(in crate::commands) fn run(arguments: &[String], state: &Path) -> Result<Exit, Failure> {
    measure::run(&PROGRAM, arguments, |given| execute(given, state))
}

/// Keys and values of the workload.
///
/// # Errors
/// If the clients or the loadfile are missing, or an option has an invalid value.
fn workload(given: &Given) -> Result<String, Failure> {
    let clients = match &given.operands[..] {
        [clients] => number("CLIENTS", clients, 1, 1000)?,
        [] => {
            return Err(wrong(
                "the number of clients is missing; use for example `fslab dbench -t 60 4`".into(),
            ));
        }
        [_, other, ..] => {
            return Err(wrong(format!("unknown argument `{other}`; use one number of clients")));
        }
    };
    if let Some(backend) = given.last("-B").filter(|backend| *backend != "fileio") {
        return Err(wrong(format!("-B {backend} is not supported: {OTHER}; use -B fileio")));
    }
    if let Some(clients) = given.last("--clients-per-process").filter(|clients| *clients != "1") {
        return Err(wrong(format!(
            "--clients-per-process {clients} is not supported: each client is a process; use 1"
        )));
    }
    let (load, timed) = loadfile(given)?;
    let mut keys = vec![
        "suite = \"dbench\"".to_owned(),
        format!("clients = {clients}"),
        format!("loadfile = {}", quoted(&load)),
    ];
    match given.has("--run-once") {
        true => keys.push("replay_count = 1".into()),
        false => {
            let seconds =
                given.last("-t").map(|text| number("-t", text, 1, LONGEST)).transpose()?;
            keys.push(format!("runtime = \"{}s\"", seconds.unwrap_or(RUNTIME)));
            let ramp = given.last("--warmup").map(|text| number("--warmup", text, 0, LONGEST));
            keys.extend(ramp.transpose()?.map(|ramp| format!("ramp_time = \"{ramp}s\"")));
        }
    }
    for (option, key) in [
        ("-s", "o_sync = true"),
        ("-S", "sync_directories = true"),
        ("-F", "fsync_writes = true"),
        ("-x", "xattr = true"),
        ("--no-resolve", "resolve = false"),
    ] {
        keys.extend(given.has(option).then(|| key.to_owned()));
    }
    match given.last("-R") {
        Some(text) => keys.push(format!("rate = \"{}\"", rate(text)?)),
        None if timed => keys.push("use_timestamps = true".into()),
        None => {}
    }
    Ok(keys.join(", "))
}

fn execute(given: &Given, state: &Path) -> Result<Exit, Failure> {
    let workload = workload(given)?;
    let directory = writable(Path::new(given.last("-D").unwrap_or(".")))?;
    let order = Order {
        program: PROGRAM.name,
        title: &given.words.join(" "),
        repetitions: given.repetitions,
        seed: None,
        directory: directory.to_str().unwrap_or_default(),
        workloads: vec![workload],
        run: given.run.as_deref(),
    };
    let record = match order.measure(state)? {
        Measured::Complete(record) => record,
        Measured::Ended(exit) => return Ok(exit),
    };
    let form = match given.has("--machine-readable") {
        true => DbenchForm::Fields,
        false => DbenchForm::Text,
    };
    output::result(&report::dbench(&record, form).map_err(Failure::usage)?)?;
    Ok(Exit::Success)
}

/// Loadfile for the suite. True if its operations have timestamps.
fn loadfile(given: &Given) -> Result<(String, bool), Failure> {
    match (given.last("-c"), given.has(OFFICE)) {
        (Some(_), true) => {
            Err(wrong(format!("-c and {OFFICE} exclude each other; use one of them")))
        }
        (None, true) => Ok(("office".into(), false)),
        (None, false) if engine::installed_load().is_none() => Err(wrong(format!(
            "there is no loadfile; install dbench, use -c FILE, or use {OFFICE} for that of fslab, \
             whose results are not comparable with those of dbench"
        ))),
        (None, false) => Ok(("dbench".into(), false)),
        (Some(path), false) => {
            let unread =
                |error| wrong(format!("cannot read the loadfile {path}: {error}; use -c FILE"));
            let absolute: PathBuf = fs::canonicalize(path).map_err(unread)?;
            let file = File::open(&absolute).map_err(unread)?;
            let mut start = Vec::new();
            file.take(1 << 16).read_to_end(&mut start).map_err(unread)?;
            match absolute.to_str() {
                Some(text) => Ok((text.to_owned(), is_timed(&String::from_utf8_lossy(&start)))),
                None => Err(wrong(format!("the path {path} is not UTF-8; rename the loadfile"))),
            }
        }
    }
}

/// True if the first operation begins with a time.
fn is_timed(text: &str) -> bool {
    let operation = text.lines().find(|line| {
        let line = line.trim_start();
        !line.starts_with('#') && line.split_whitespace().count() > 1
    });
    operation
        .is_some_and(|line| line.trim_start().starts_with(|first: char| first.is_ascii_digit()))
}

/// Bytes per second of a rate in MB/s, at least 1.
fn rate(text: &str) -> Result<Bytes, Failure> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= 1e9);
    let rate = rate.ok_or_else(|| wrong(format!("-R {text}: use a number of MB/s above 0")))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive and at most 10^15"
    )]
    Ok(Bytes(((rate * 1e6) as u64).max(1)))
}

fn number(option: &str, text: &str, least: u64, most: u64) -> Result<u64, Failure> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| wrong(format!("{option} {text}: use a number from {least} to {most}")))
}
