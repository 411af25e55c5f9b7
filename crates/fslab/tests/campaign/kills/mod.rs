//! Commands killed at random times: no stored trial is lost, and no change remains.

mod attempt;
mod blow;
mod ground;
mod subject;

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    panic::{AssertUnwindSafe, catch_unwind},
    process::Stdio,
};

use self::{
    attempt::{Attempt, Ended, Reference},
    blow::{Blow, Part},
    ground::{Range, Settings},
    subject::Subject,
};
use super::{Section, selected, tries};
use crate::support::{Bench, needs_root};

/// Command, signal or failure, and number of tries in `make test` and in the campaign.
type Row = (Subject, Blow, usize, usize);

const ROWS: [Row; 94] = [
    (Subject::Image, Blow::Kill, 2, 20),
    (Subject::Image, Blow::Terminate, 1, 5),
    (Subject::Image, Blow::Interrupt, 0, 2),
    (Subject::Image, Blow::HangUp, 0, 1),
    (Subject::Image, Blow::Twice, 0, 2),
    (Subject::Image, Blow::Closed, 0, 2),
    (Subject::Image, Blow::Full, 0, 3),
    (Subject::Device, Blow::Kill, 0, 10),
    (Subject::Device, Blow::Terminate, 0, 4),
    (Subject::Device, Blow::Interrupt, 0, 1),
    (Subject::Device, Blow::HangUp, 0, 1),
    (Subject::Device, Blow::Twice, 0, 1),
    (Subject::Device, Blow::Full, 0, 1),
    (Subject::Directory, Blow::Kill, 0, 10),
    (Subject::Directory, Blow::Terminate, 0, 3),
    (Subject::Directory, Blow::Interrupt, 0, 2),
    (Subject::Directory, Blow::HangUp, 0, 1),
    (Subject::Directory, Blow::Twice, 0, 1),
    (Subject::Directory, Blow::Closed, 0, 2),
    (Subject::Directory, Blow::Full, 0, 1),
    (Subject::Settings, Blow::Kill, 1, 10),
    (Subject::Settings, Blow::Terminate, 0, 3),
    (Subject::Settings, Blow::Interrupt, 0, 1),
    (Subject::Settings, Blow::HangUp, 0, 1),
    (Subject::Settings, Blow::Twice, 0, 1),
    (Subject::Settings, Blow::Closed, 0, 1),
    (Subject::Layers, Blow::Kill, 0, 10),
    (Subject::Layers, Blow::Terminate, 0, 3),
    (Subject::Uml, Blow::Kill, 0, 8),
    (Subject::Uml, Blow::Terminate, 0, 2),
    (Subject::Uml, Blow::Interrupt, 0, 2),
    (Subject::Uml, Blow::HangUp, 0, 1),
    (Subject::Uml, Blow::Closed, 0, 1),
    (Subject::Uml, Blow::Full, 0, 1),
    (Subject::Tcg, Blow::Kill, 0, 4),
    (Subject::Tcg, Blow::Terminate, 0, 2),
    (Subject::Tcg, Blow::HangUp, 0, 1),
    (Subject::Icount, Blow::Kill, 0, 3),
    (Subject::Icount, Blow::Terminate, 0, 1),
    (Subject::Icount, Blow::Interrupt, 0, 1),
    (Subject::Resume, Blow::Kill, 0, 6),
    (Subject::Resume, Blow::Terminate, 0, 3),
    (Subject::Resume, Blow::Closed, 0, 1),
    (Subject::Reboot, Blow::Kill, 0, 4),
    (Subject::Reboot, Blow::Terminate, 0, 2),
    (Subject::Reboot, Blow::Full, 0, 1),
    (Subject::Replay, Blow::Kill, 0, 7),
    (Subject::Replay, Blow::Terminate, 0, 2),
    (Subject::Replay, Blow::Interrupt, 0, 1),
    (Subject::Program, Blow::Kill, 1, 7),
    (Subject::Program, Blow::Terminate, 0, 2),
    (Subject::Program, Blow::HangUp, 0, 1),
    (Subject::Server, Blow::Kill, 0, 7),
    (Subject::Server, Blow::Terminate, 0, 2),
    (Subject::Server, Blow::Interrupt, 0, 1),
    (Subject::Freeze, Blow::Kill, 1, 8),
    (Subject::Freeze, Blow::Terminate, 0, 2),
    (Subject::Threads, Blow::Kill, 0, 5),
    (Subject::Threads, Blow::Terminate, 0, 2),
    (Subject::Threads, Blow::Interrupt, 0, 2),
    (Subject::Threads, Blow::Closed, 0, 1),
    (Subject::Threads, Blow::Full, 0, 1),
    (Subject::Processes, Blow::Kill, 1, 4),
    (Subject::Processes, Blow::Terminate, 0, 1),
    (Subject::Processes, Blow::HangUp, 0, 1),
    (Subject::CrashState, Blow::Kill, 0, 4),
    (Subject::CrashState, Blow::Terminate, 0, 1),
    (Subject::CrashState, Blow::Interrupt, 0, 1),
    (Subject::Demo, Blow::Kill, 0, 2),
    (Subject::Demo, Blow::Terminate, 0, 1),
    (Subject::Demo, Blow::Interrupt, 0, 1),
    (Subject::Clean, Blow::Kill, 0, 10),
    (Subject::Clean, Blow::Terminate, 0, 3),
    (Subject::Clean, Blow::Closed, 0, 1),
    (Subject::Html, Blow::Kill, 0, 2),
    (Subject::Html, Blow::Terminate, 0, 1),
    (Subject::Xlsx, Blow::Kill, 0, 1),
    (Subject::Charts, Blow::Kill, 0, 2),
    (Subject::Charts, Blow::Terminate, 0, 1),
    (Subject::Import, Blow::Kill, 0, 2),
    (Subject::Import, Blow::Terminate, 0, 1),
    (Subject::Loadfile, Blow::Kill, 1, 3),
    (Subject::Loadfile, Blow::Terminate, 0, 1),
    (Subject::Loadfile, Blow::Full, 0, 1),
    (Subject::Record, Blow::Kill, 1, 6),
    (Subject::Record, Blow::Terminate, 0, 2),
    (Subject::Record, Blow::Interrupt, 0, 1),
    (Subject::Record, Blow::Closed, 0, 1),
    (Subject::Uml, Blow::Part(Part::Supervisor), 0, 3),
    (Subject::Uml, Blow::Part(Part::First), 0, 2),
    (Subject::Uml, Blow::Part(Part::Machine), 0, 1),
    (Subject::Tcg, Blow::Part(Part::Supervisor), 0, 1),
    (Subject::Tcg, Blow::Part(Part::First), 0, 1),
    (Subject::Tcg, Blow::Part(Part::Machine), 0, 2),
];

const INTRO: &str = "\
Each try runs a command with a new state directory, ends the command at a uniformly random time
within its usual duration, and then runs `fslab clean`. A try fails in each of these cases:

- A mount, loop device, mapped device, array, control group, image, journal, file in `/dev/shm`, or
  process of fslab remains.
- The value of a setting is not exactly the value before the try.
- The run file cannot be opened, or lacks a stored trial.
- An output file is incomplete.
- `--resume` does not complete the run, or a trial is missing or occurs twice.
- The command handled the signal and ended normally, but left something before `fslab clean` ran.

*hit* is the number of tries in which the command was still running. The other tries came too late.
`FSLAB_CAMPAIGN_SEED=SEED` repeats a row.";

/// Seed of the times of the kills: `FSLAB_CAMPAIGN_SEED`, otherwise random in the campaign and
/// fixed in `make test`.
fn seed() -> u64 {
    let named = std::env::var("FSLAB_CAMPAIGN_SEED").ok();
    let digits = named.map(|text| text.trim_start_matches("0x").to_owned());
    let named = digits.map(|text| u64::from_str_radix(&text, 16).unwrap());
    named.unwrap_or_else(|| if whole() { fastrand::u64(..) >> 32 } else { 0x5eed })
}

fn whole() -> bool {
    tries(0, 1) == 1
}

fn wanted(subject: Subject, blow: Blow) -> bool {
    selected(&format!("{}: {}", subject.name(), blow.name()))
}

/// Results of some rows.
#[derive(Default)]
struct Results {
    rows: BTreeMap<usize, Vec<String>>,
    skipped: BTreeMap<(&'static str, &'static str), usize>,
    tries: usize,
    hits: usize,
    failures: Vec<String>,
}

/// Runs the rows of a group sequentially.
fn lane(seed: u64, lane: usize) -> Results {
    let mut results = Results::default();
    let of_lane = |(_, row): &(usize, Row)| row.0.lane() == lane && wanted(row.0, row.1);
    let rows: Vec<(usize, Row)> = ROWS.into_iter().enumerate().filter(of_lane).collect();
    if rows.iter().all(|(_, (_, _, short, whole))| tries(*short, *whole) == 0) {
        return results;
    }
    let range = Range::new();
    let mut references: BTreeMap<&str, Reference> = BTreeMap::new();
    for (index, (subject, blow, short, whole)) in rows {
        let count = tries(short, whole);
        if let Some(missing) = subject.missing() {
            *results.skipped.entry((subject.name(), missing)).or_default() += count;
            continue;
        }
        if count == 0 {
            continue;
        }
        let reference =
            references.entry(subject.name()).or_insert_with(|| Reference::measure(&range, subject));
        let (mut hit, mut failed) = (0, 0);
        for number in 0..count {
            let random = fastrand::Rng::with_seed(seed ^ (index as u64 * 1000 + number as u64));
            let attempt = || Attempt::new(&range, subject, blow, reference, random).run();
            let ended = catch_unwind(AssertUnwindSafe(attempt)).unwrap_or_else(|_| Ended::broken());
            hit += usize::from(ended.hit);
            failed += usize::from(!ended.problems.is_empty());
            let line = result(subject, blow, number, reference, &ended);
            let _ = writeln!(std::io::stderr(), "seed {seed:#x}: {line}");
            if !ended.problems.is_empty() {
                results.failures.push(line);
            }
        }
        results.tries += count;
        results.hits += hit;
        let numbers = [count, hit, failed].map(|number| number.to_string());
        let names = [subject.name().to_owned(), blow.name().to_owned()];
        let row = names.into_iter().chain(numbers).chain([format!("{seed:#x}")]);
        results.rows.insert(index, row.collect());
    }
    results
}

/// Result of a try: one line, and its problems.
fn result(subject: Subject, blow: Blow, number: usize, of: &Reference, ended: &Ended) -> String {
    let (length, state) = (of.length.as_secs_f64(), if ended.hit { "hit" } else { "over" });
    let line = format!(
        "{}: {}: try {number}: at {:.3} of {length:.2} s, {state}, {}",
        subject.name(),
        blow.name(),
        ended.fraction,
        ended.status,
    );
    let problems = ended.problems.iter().map(|problem| format!("\n    {problem}"));
    line + &problems.collect::<String>()
}

#[test]
fn a_killed_command_loses_nothing_and_leaves_nothing() {
    if !needs_root("campaign::kills::a_killed_command_loses_nothing_and_leaves_nothing") {
        return;
    }
    let seed = seed();
    let columns = ["command", "ended by", "tries", "hit", "failures", "seed"];
    let mut section = Section::new(1, "kills", "Killed commands", INTRO, &columns);
    let lanes = std::thread::scope(|scope| {
        let threads = [0, 1, 2].map(|number| scope.spawn(move || lane(seed, number)));
        threads.map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    });
    let mut all = Results::default();
    for results in lanes {
        all.rows.extend(results.rows);
        all.skipped.extend(results.skipped);
        all.failures.extend(results.failures);
        all.tries += results.tries;
        all.hits += results.hits;
    }
    let (tries, hits) = (all.tries, all.hits);
    all.rows.into_values().for_each(|row| section.row(row));
    for ((subject, missing), count) in all.skipped {
        if count > 0 {
            section.skipped(&format!("{subject} ({count} tries)"), missing);
        }
    }
    if whole() {
        section.skipped("guest kernel build (1 try)", "a kernel source");
    }
    let failed = all.failures.len();
    section.note(format!("Total: {tries} tries, {hits} hit a running program, {failed} failed."));
    section.write();
    assert!(failed == 0, "{failed} of {tries} tries failed:\n{}", all.failures.join("\n"));
    let enough = if whole() { tries.div_ceil(4) * 3 } else { 1 };
    assert!(hits >= enough, "only {hits} of {tries} tries hit a running program");
}

#[test]
fn clean_restores_settings_of_a_killed_run() {
    if !needs_root("campaign::kills::clean_restores_settings_of_a_killed_run") {
        return;
    }
    let bench = Bench::new();
    let disk = bench.disk("disk.img", 64 << 20);
    // Only settings of the device are compared. A scheduler would also be set on the disk below,
    // which does not belong to the test.
    let before = Settings::read(Some(disk.path()), false);
    let knob = format!("/sys/block/{}/queue/write_cache", disk.path().trim_start_matches("/dev/"));
    let (back, through) = ("write back", "write through");
    let now = std::fs::read_to_string(knob).unwrap();
    let other = if now.trim() == back { through } else { back };
    let plan = bench.plan(&format!(
        "repetitions = 50\n[storage]\ndevice = \"{}\"\n[axes]\nfilesystem = [\"ext2\"]\n\
         write_cache = [\"{other}\"]\n\
         workload = [{{ suite = \"iozone\", file_size = \"2MiB\", tests = [\"write\"] }}]\n",
        disk.path()
    ));
    let mut command = bench.command(&["run", &plan, "-o", "run.fslab", "--json"]);
    let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("phase_started") && line.contains("write")));
    let changed = Settings::read(Some(disk.path()), false).changed(&before);
    assert!(changed.iter().any(|line| line.contains(&format!("/queue/write_cache: {other}, was"))));
    child.kill().unwrap();
    child.wait().unwrap();
    let output = bench.ends(0, &["clean"]);
    let changed = Settings::read(Some(disk.path()), false).changed(&before);
    assert!(changed.is_empty(), "{changed:?}\n{}", output.stdout);
    let left: Vec<_> =
        bench.left_behind().into_iter().filter(|line| !line.contains("disk.img")).collect();
    assert_eq!(left, Vec::<String>::new());
}
