//! Execution of commands: programs of the user, their times, and the numbers that they report.
//!
//! Input: a [`Command`] and the directories of the trial. Output: a [`PhaseResult`] with one
//! worker, which represents all programs. [`rig::programs`] holds the processes together.

use std::{
    fs, io,
    os::unix::fs::chown,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    thread,
    time::{Duration, Instant},
};

use model::{
    Bytes, Histogram, Nanos, Ops, PhaseResult, Ratio, SystemActivity, Warning,
    phase::{
        Command, FileCall, Latencies, Moved, Reported, WorkerResult,
        command::{Argv, Input, LatencyLog, Number, NumberKind, OutputStream, Temporary, fill},
    },
};
use rig::programs::{
    self, ProgramError, ProgramFailure, ProgramSpec, ProgramUsage, Programs, Ran, UserId,
};
use rustix::fs::{Mode, OFlags, open, statvfs, syncfs};

use super::Stop;

/// Interval in which `ready` is repeated, and the time after which it fails.
const READY_INTERVAL: Duration = Duration::from_millis(100);
const READY_LIMIT: Duration = Duration::from_secs(60);

/// Maximum relative difference between a reported rate and the log of latencies.
const RATE_TOLERANCE: f64 = 0.02;

/// Available fraction of a filesystem below which a failure is attributed to the lack of space. A
/// program that writes large blocks fails before all space is used.
const FULL: f64 = 0.05;

/// Maximum size of a file with latencies.
const LOG_LIMIT: u64 = 1 << 30;

/// Programs of a phase.
pub(super) struct Session<'a> {
    /// Name of the phase.
    name: &'a str,
    command: &'a Command,
    programs: Programs,
    values: Vec<(&'static str, String)>,
    target: &'a Path,
    /// User of the programs, if it is not the user of fslab.
    user: Option<UserId>,
    interrupt: &'a AtomicBool,
    usage: ProgramUsage,
    output: Ran,
    warnings: Vec<Warning>,
}

impl<'a> Session<'a> {
    /// Starts the server of the command, if any, and waits until it is ready.
    pub(super) fn begin(
        name: &'a str,
        command: &'a Command,
        target: &'a Path,
        external: &Path,
        interrupt: &'a AtomicBool,
    ) -> Result<Self, Stop> {
        let user = programs::user(&command.user).map_err(Stop::Failed)?;
        let scratch = external.join("scratch");
        let own = |path: &Path| match user {
            Some(UserId { user, group }) => chown(path, Some(user), Some(group)),
            None => Ok(()),
        };
        let made = match fs::create_dir(&scratch) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Err(_) | Ok(()) => own(&scratch).and_then(|()| own(target)),
        };
        made.map_err(|error| Stop::failed("preparing the directories of the programs", &error))?;
        let values = values(command, target, external, &scratch);
        let spec = ProgramSpec {
            user,
            network: command.network,
            directory: text(target),
            reachable: vec![text(target), text(external)],
            environment: environment(command, target, &scratch, &values)?,
        };
        let programs = Programs::start(&spec, interrupt).map_err(stop)?;
        let network = (!programs.network_isolated()).then_some(Warning::NetworkAccess);
        let mut session = Self {
            name,
            command,
            programs,
            values,
            target,
            user,
            interrupt,
            usage: ProgramUsage::default(),
            output: Ran::default(),
            warnings: network.into_iter().collect(),
        };
        session.serve()?;
        Ok(session)
    }

    fn serve(&mut self) -> Result<(), Stop> {
        if let Some(program) = &self.command.serve {
            let program = self.fill(program)?;
            let ran = self.programs.serve(program, self.interrupt).map_err(stop)?;
            self.check("serve", &ran)?;
        }
        let Some(program) = &self.command.ready else { return Ok(()) };
        let limit = Instant::now() + READY_LIMIT;
        loop {
            let program = self.fill(program)?;
            let ran = self.programs.run(vec![program], 0, self.command.timeout, self.interrupt);
            let ran = ran.map_err(stop)?;
            match (&ran.failure, &ran.server_ended) {
                (None, None) => return Ok(()),
                (_, Some(ended)) => return Err(self.failed("serve", ended)),
                (Some(failure), None) if Instant::now() > limit => {
                    return Err(self.failed("ready", failure));
                }
                (Some(_), None) => thread::sleep(READY_INTERVAL),
            }
        }
    }

    /// Runs the measured programs, those that complete the work, and the final sync.
    pub(super) fn measure(&mut self) -> Result<PhaseResult, Stop> {
        let Command { run, settle, expect, .. } = self.command;
        let ran = self.run(self.name, run, *expect)?;
        let settled = self.run("settle", settle, 0)?;
        let start = engine::now();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let synced = open(self.target, flags, Mode::empty()).and_then(syncfs);
        synced.map_err(|error| Stop::failed("syncing the filesystem", &error))?;
        let end_sync_time = engine::now() - start;
        let worker = WorkerResult {
            loop_time: ran.elapsed,
            uncounted_time: settled.elapsed,
            end_sync_time,
            user_time: self.usage.user,
            system_time: self.usage.system,
            voluntary_switches: self.usage.voluntary,
            involuntary_switches: self.usage.involuntary,
            ..WorkerResult::default()
        };
        let wall_time = ran.elapsed + settled.elapsed + end_sync_time;
        self.output = ran;
        Ok(PhaseResult::new(vec![worker], wall_time))
    }

    fn run(&mut self, step: &str, programs: &[Argv], expect: u8) -> Result<Ran, Stop> {
        if programs.is_empty() {
            return Ok(Ran::default());
        }
        let filled = programs.iter().map(|program| self.fill(program));
        let filled = filled.collect::<Result<_, _>>()?;
        let ran = self.programs.run(filled, expect, self.command.timeout, self.interrupt);
        let ran = ran.map_err(stop)?;
        self.check(step, &ran)?;
        if let Some(ended) = &ran.server_ended {
            return Err(self.failed("serve", ended));
        }
        if !ran.leftover.is_empty() {
            let who = ran.leftover.join(", ");
            self.warnings.push(Warning::LeftoverProcesses { who });
        }
        self.usage.user = self.usage.user + ran.usage.user;
        self.usage.system = self.usage.system + ran.usage.system;
        self.usage.faults.minor += ran.usage.faults.minor;
        self.usage.faults.major += ran.usage.faults.major;
        self.usage.voluntary += ran.usage.voluntary;
        self.usage.involuntary += ran.usage.involuntary;
        Ok(ran)
    }

    /// Ends the server, reads the reported numbers, and runs the checks. In `activity`, the usage
    /// of the programs replaces that of the children of fslab, which does not include programs that
    /// another process waited for.
    pub(super) fn complete(
        mut self,
        result: &mut PhaseResult,
        activity: &mut SystemActivity,
        warnings: &mut Vec<Warning>,
    ) -> Result<(), Stop> {
        if let Some(cpu) = &mut activity.cpu {
            cpu.workload = self.usage.user + self.usage.system;
        }
        activity.faults = Some(self.usage.faults);
        if self.command.serve.is_some() {
            let ran = self.programs.stop(self.interrupt).map_err(stop)?;
            if let Some(ended) = &ran.server_ended {
                return Err(self.failed("serve", ended));
            }
        }
        if let Some(log) = &self.command.latencies {
            let file = filled(&log.file, &self.values)?;
            let read = read_latencies(Path::new(&file), log);
            let times = read.map_err(|why| Stop::Failed(format!("{}: {why}", self.name)))?;
            for worker in &mut result.workers {
                worker.written = Moved { ops: Ops(times.count()), bytes: Bytes(0) };
                worker.latencies = Latencies { write: times.clone(), ..Latencies::default() };
            }
        }
        if let Some(fio) = &self.command.fio {
            let file = filled(&fio.file, &self.values)?;
            let read = read_fio(Path::new(&file), result);
            read.map_err(|why| Stop::Failed(format!("{}: {file}: {why}", self.name)))?;
        }
        for number in &self.command.numbers {
            let value = value(number, &self.output)
                .map_err(|why| Stop::Failed(format!("{}: {why}", self.name)))?;
            self.warnings.extend(differs(number, value, result));
            let metric = number.kind.metric();
            let other = self.command.other_numbers().any(|other| other.name == number.name);
            let name = other.then(|| number.name.clone());
            result.reported.push(Reported { name, metric, value });
        }
        if !self.command.recordings.is_empty() {
            let files = self.command.recordings.iter().map(|file| filled(file, &self.values));
            let files: Vec<String> = files.collect::<Result<_, _>>()?;
            self.warnings.push(file_calls(&files).map_err(Stop::Failed)?);
        }
        let check = self.command.check.clone();
        self.run("check", &check, 0)?;
        warnings.append(&mut self.warnings);
        Ok(())
    }

    fn fill(&self, program: &Argv) -> Result<Vec<String>, Stop> {
        program.iter().map(|word| filled(word, &self.values)).collect()
    }

    fn check(&self, step: &str, ran: &Ran) -> Result<(), Stop> {
        ran.failure.as_ref().map_or(Ok(()), |failure| Err(self.failed(step, failure)))
    }

    fn failed(&self, step: &str, failure: &ProgramFailure) -> Stop {
        let ProgramFailure { command, verdict, output } = failure;
        let mut text = format!("{step}: `{command}` {verdict}");
        if !output.is_empty() {
            text += &format!(": {output}");
        }
        if let Ok(space) = statvfs(self.target)
            && (space.f_bavail as f64) < FULL * space.f_blocks as f64
        {
            let left = Bytes(space.f_bavail.saturating_mul(space.f_frsize)).rough();
            text += &format!("; the filesystem has {left} left, so use a larger one");
        }
        if let Some(user) = self.user
            // Messages of EACCES and EPERM, in either case of the first letter.
            && ["ermission denied", "not permitted"].iter().any(|why| output.contains(why))
        {
            text += &format!(
                "; the program ran as user {user}; set `user` to another name, or to `same` for the \
                 user of fslab"
            );
        }
        Stop::Failed(text)
    }
}

/// File calls in recordings.
fn file_calls(files: &[String]) -> Result<Warning, String> {
    let (mut calls, mut syncs, mut read, mut written, mut mapped) = (0, 0, 0, 0, 0);
    let (mut in_calls, mut between) = (0.0, 0.0);
    for file in files {
        let recording = trace::read(Path::new(file)).map_err(|error| error.to_string())?;
        let summary = trace::summary(&recording);
        calls += recording.operations() as u64;
        let of_syncs = |(call, total): (&FileCall, &trace::Total)| {
            let syncs = [FileCall::Fsync, FileCall::Fdatasync, FileCall::Syncfs];
            if syncs.contains(call) { total.count } else { 0 }
        };
        syncs += summary.calls.iter().map(of_syncs).sum::<u64>();
        (read, written) = (read + summary.read, written + summary.written);
        let facts = ["mapped_bytes", "mapped_writable_bytes"];
        let values = facts.iter().filter_map(|key| recording.facts.get(*key)?.parse::<u64>().ok());
        mapped += values.sum::<u64>();
        in_calls += summary.in_calls_net as f64;
        between += summary.think as f64;
    }
    let share = Ratio(if in_calls > 0.0 { in_calls / (in_calls + between) } else { 0.0 });
    let (read, written, mapped) = (Bytes(read), Bytes(written), Bytes(mapped));
    Ok(Warning::FileCalls { share, calls, syncs, read, written, mapped })
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Values of the placeholders.
fn values(
    command: &Command,
    target: &Path,
    external: &Path,
    scratch: &Path,
) -> Vec<(&'static str, String)> {
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let input = match &command.input {
        Input::None => None,
        Input::Path(path) => Some(path.clone()),
        Input::Generated => Some(text(external)),
    };
    let known = [
        ("target", text(target)),
        ("scratch", text(scratch)),
        ("amount", command.amount.to_string()),
        ("runtime", command.runtime.to_string()),
        ("cpus", cpus.to_string()),
        ("seed", command.seed.to_string()),
    ];
    known.into_iter().chain(input.map(|input| ("input", input))).collect()
}

/// Environment of the programs, without `PATH`.
fn environment(
    command: &Command,
    target: &Path,
    scratch: &Path,
    values: &[(&'static str, String)],
) -> Result<Vec<(String, String)>, Stop> {
    let temporary = match command.temporary {
        Temporary::Target => target,
        Temporary::Scratch => scratch,
    };
    let own = [
        ("HOME", text(scratch)),
        ("LANG", "C.UTF-8".into()),
        ("TZ", "UTC".into()),
        ("TMPDIR", text(temporary)),
    ];
    let mut environment: Vec<_> = own.map(|(name, value)| (name.to_owned(), value)).into();
    for variable in &command.environment {
        let variable = filled(variable, values)?;
        let (name, value) = variable.split_once('=').unwrap_or((&variable, ""));
        environment.push((name.to_owned(), value.to_owned()));
    }
    Ok(environment)
}

fn stop(error: ProgramError) -> Stop {
    match error {
        ProgramError::Interrupted => Stop::Interrupted,
        error @ (ProgramError::Start(_) | ProgramError::Ended(_)) => {
            Stop::failed("running the programs", &error)
        }
    }
}

fn filled(word: &str, values: &[(&'static str, String)]) -> Result<String, Stop> {
    let value = |name: &str| values.iter().find(|(own, _)| *own == name).map(|(_, it)| it.clone());
    fill(word, value).map_err(|error| Stop::Failed(error.to_string()))
}

/// Warning about a reported rate that differs from the number of logged operations over the time.
fn differs(number: &Number, reported: f64, result: &PhaseResult) -> Option<Warning> {
    let time = result.workers.first().map(|worker| worker.loop_time.seconds())?;
    let logged = result.ops().0 as f64 / time;
    let apart = (reported / logged - 1.0).abs() > RATE_TOLERANCE;
    (number.kind == NumberKind::Rate && logged > 0.0 && time > 0.0 && apart)
        .then_some(Warning::ReportedRateDiffers { reported, logged })
}

/// Value of a number in base units.
fn value(number: &Number, output: &Ran) -> Result<f64, String> {
    let text = match number.from {
        OutputStream::Stdout => &output.stdout,
        OutputStream::Stderr => &output.stderr,
    };
    let found: Vec<f64> = text.lines().filter_map(|line| number.pattern.number_in(line)).collect();
    match &found[..] {
        [value] => Ok(*value),
        [.., last] if number.last => Ok(*last),
        [] => {
            let lines: Vec<&str> = text.lines().collect();
            let end = lines[lines.len().saturating_sub(3)..].join(" / ");
            Err(format!("no line of the output matches `{}`: {end}", number.pattern.text()))
        }
        several => Err(format!(
            "{} lines of the output match `{}`; use a longer pattern, or which = \"last\"",
            several.len(),
            number.pattern.text()
        )),
    }
    .map(|value| value * number.kind.scale() as f64)
}

/// Replaces the results of the programs by those that fio wrote.
fn read_fio(file: &Path, result: &mut PhaseResult) -> Result<(), String> {
    let document = sys::input::bytes(file, LOG_LIMIT).map_err(|error| error.to_string())?;
    let totals = report::imports::fio_totals(&document).map_err(|error| error.to_string())?;
    if totals.error != 0 {
        return Err(format!("fio reports error {}", totals.error));
    }
    for worker in &mut result.workers {
        worker.loop_time = totals.runtime;
        worker.read = totals.read;
        worker.written = totals.written;
        worker.latencies = Latencies {
            read: totals.read_latency.clone(),
            write: totals.write_latency.clone(),
            flush: totals.sync_latency.clone(),
            ..Latencies::default()
        };
    }
    Ok(())
}

/// Histogram of the latencies in a file, or in all files that match its name.
fn read_latencies(file: &Path, log: &LatencyLog) -> Result<Histogram, String> {
    let mut times = Histogram::default();
    let files = matching(file).map_err(|error| format!("{}: {error}", file.display()))?;
    if files.is_empty() {
        return Err(format!("there is no file {} with latencies", file.display()));
    }
    for file in files {
        let shown = file.display();
        let text =
            sys::input::bytes(&file, LOG_LIMIT).map_err(|error| format!("{shown}: {error}"))?;
        for (number, line) in String::from_utf8_lossy(&text).lines().enumerate() {
            let mut columns = line.split([' ', '\t', ',']).filter(|column| !column.is_empty());
            let column = columns.nth(log.column.saturating_sub(1) as usize);
            let time = column.and_then(|column| column.parse::<f64>().ok());
            let Some(time) = time.filter(|time| time.is_finite() && *time >= 0.0) else {
                let line = number + 1;
                return Err(format!("{shown}:{line}: column {} is not a time", log.column));
            };
            times.record(Nanos(whole(time * log.unit as f64)).0);
        }
    }
    Ok(times)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative; a time beyond 500 years is cut"
)]
fn whole(number: f64) -> u64 {
    number as u64
}

/// Files whose name matches the last component of a path, in which `*` is any text.
fn matching(path: &Path) -> io::Result<Vec<PathBuf>> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|it| it.to_str()))
    else {
        return Ok(Vec::new());
    };
    let Some((start, end)) = name.split_once('*') else { return Ok(vec![path.to_owned()]) };
    let matches = |entry: &fs::DirEntry| {
        entry.file_name().to_str().is_some_and(|name| {
            name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end)
        })
    };
    let entries = fs::read_dir(parent)?.collect::<io::Result<Vec<_>>>()?;
    Ok(entries.into_iter().filter(matches).map(|entry| entry.path()).collect())
}

#[cfg(test)]
mod tests {
    use model::phase::command::Pattern;

    use super::*;

    #[test]
    fn latencies_of_all_matching_files_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("log.1"), "0 1 250 0\n1 2 750 0\n").unwrap();
        fs::write(at("log.2"), "0,1,1000\n").unwrap();
        fs::write(at("other"), "x\n").unwrap();
        let log = LatencyLog { file: String::new(), column: 3, unit: 1000 };
        let times = read_latencies(&at("log.*"), &log).unwrap();
        assert_eq!((times.count(), times.max()), (3, Some(Nanos(1_000_000))));
        assert!(read_latencies(&at("none.*"), &log).is_err());
        let error = read_latencies(&at("other"), &log).unwrap_err();
        assert!(error.ends_with(":1: column 3 is not a time"), "{error}");
    }

    #[test]
    fn a_number_is_in_exactly_one_line() {
        let number = |last| Number {
            name: "tps".into(),
            kind: NumberKind::Time(1_000_000),
            from: OutputStream::Stdout,
            pattern: Pattern::parse("took {} ms").unwrap(),
            last,
        };
        let output = |text: &str| Ran { stdout: text.into(), ..Ran::default() };
        assert_eq!(value(&number(false), &output("a\ntook 1.5 ms\n")), Ok(1_500_000.0));
        let twice = output("took 1 ms\ntook 2 ms\n");
        assert_eq!(value(&number(true), &twice), Ok(2_000_000.0));
        assert!(value(&number(false), &twice).unwrap_err().starts_with("2 lines"));
        assert!(value(&number(false), &output("took ms")).unwrap_err().contains("took ms"));
    }
}
