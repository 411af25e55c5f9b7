//! Single try: command, time of the kill, and checks after it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    os::unix::process::ExitStatusExt as _,
    path::Path,
    process::{Child, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use super::{
    blow::Blow,
    ground::{Range, Settings, remaining, shared, stacked, tree},
    subject::{Ground, Kind, Subject, patience},
    whole,
};
use crate::support::finished;

/// Cell, repetition, and attempt of a stored trial.
type Trial = (usize, u32, u32);

/// Results of a command that was not killed.
pub(super) struct Reference {
    pub(super) length: Duration,
    /// All trials of the run.
    trials: BTreeSet<Trial>,
    /// Size of the run file or of the output.
    size: u64,
    /// Files of the output, by path.
    output: BTreeMap<String, Vec<u8>>,
}

/// Result of a try.
pub(super) struct Ended {
    pub(super) hit: bool,
    /// Time of the kill as a fraction of the duration. For a full filesystem, free space as a
    /// fraction of the size.
    pub(super) fraction: f64,
    pub(super) status: String,
    pub(super) problems: Vec<String>,
}

/// Maximum time to wait for the trials of a run.
const GIVEN_UP: Duration = Duration::from_secs(60);
/// Tested duration of a demo, which takes minutes.
const DEMO: Duration = Duration::from_secs(4);
/// Maximum time for which processes of a killed command may remain.
const SWEEP: Duration = Duration::from_secs(20);

impl Ended {
    /// Try that the test could not run or check.
    pub(super) fn broken() -> Self {
        let problems = vec!["the test panicked, see above".to_owned()];
        Self { hit: false, fraction: 0.0, status: "no status".to_owned(), problems }
    }
}

impl Reference {
    pub(super) fn measure(range: &Range, subject: Subject) -> Self {
        if matches!(subject, Subject::Html | Subject::Xlsx | Subject::Charts) {
            sample(range);
        }
        if subject == Subject::Replay {
            recording(range);
        }
        let none = Self { length: DEMO, trials: BTreeSet::new(), size: 0, output: BTreeMap::new() };
        if subject.kind() == Kind::LongRun {
            return none;
        }
        let random = fastrand::Rng::with_seed(0);
        let attempt = Attempt::new(range, subject, Blow::Kill, &none, random);
        attempt.before();
        let start = Instant::now();
        let (status, errors) = attempt.to_end(&attempt.ground.arguments());
        let length = start.elapsed();
        assert_eq!(status.code(), Some(subject.status()), "{}: {errors}", subject.name());
        if subject == Subject::Reboot {
            attempt.complete().unwrap();
        }
        let trials = attempt.kept().unwrap_or_default().into_iter().collect();
        let output = contents(&attempt.ground.output());
        let written: usize = output.values().map(Vec::len).sum();
        let size = fs::metadata(attempt.ground.run_file()).map_or(written as u64, |it| it.len());
        Self { length, trials, size, output }
    }
}

/// Creates the run file for reports.
fn sample(range: &Range) {
    let place = range.path("sample.fslab");
    if place.exists() {
        return;
    }
    let ground = Ground::new(range, Subject::Directory, Blow::Kill, false);
    let ended = ground.command(&ground.begin(), None).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    fs::copy(ground.run_file(), place).unwrap();
}

/// Creates the recording for replays.
fn recording(range: &Range) {
    let place = range.path("sample.fstrace");
    if place.exists() {
        return;
    }
    let ground = Ground::new(range, Subject::Record, Blow::Kill, false);
    let arguments = ground.record(&place.display().to_string());
    let ended = ground.command(&arguments, None).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
}

/// Contents of a file, or of the files of a directory.
fn contents(path: &Path) -> BTreeMap<String, Vec<u8>> {
    if path.is_file() {
        return BTreeMap::from([(String::new(), fs::read(path).unwrap())]);
    }
    let names = tree(path).into_iter();
    names.filter_map(|name| Some((name.clone(), fs::read(path.join(name)).ok()?))).collect()
}

pub(super) struct Attempt<'a> {
    ground: Ground<'a>,
    reference: &'a Reference,
    random: fastrand::Rng,
    settings: Settings,
    stacked: BTreeSet<String>,
    problems: Vec<String>,
    /// True if a signal ended the command.
    killed: bool,
    /// IDs of the runs of this try, and names derived from its process.
    words: BTreeSet<String>,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(
        range: &'a Range,
        subject: Subject,
        blow: Blow,
        reference: &'a Reference,
        random: fastrand::Rng,
    ) -> Self {
        let ground = Ground::new(range, subject, blow, whole());
        let settings = settings(&ground);
        let words = BTreeSet::from([ground.stem.clone()]);
        let (stacked, problems, killed) = (stacked(), Vec::new(), false);
        Self { ground, reference, random, settings, stacked, problems, killed, words }
    }

    pub(super) fn run(mut self) -> Ended {
        self.before();
        let (subject, blow) = (self.ground.subject, self.ground.blow);
        // Short tries kill the command early, because other tests run at the same time and make
        // durations vary.
        let mut fraction = self.random.f64() * if whole() { 1.0 } else { 0.5 };
        let mut before = Vec::new();
        if blow == Blow::Full {
            let size = self.reference.size.max(100 << 10);
            let free = self.random.u64(0..=size * 11 / 10);
            fraction = free as f64 / size as f64;
            self.ground.range.fill(self.ground.full(), free);
            before = self.kept().unwrap_or_default();
        }
        let mut child = self.spawn();
        let pid = child.id();
        let instant = if blow == Blow::Full { 0.0 } else { fraction };
        std::thread::sleep(self.reference.length.mul_f64(instant));
        self.journals();
        if before.is_empty() {
            before = self.kept().unwrap_or_default();
        }
        let mut hit = blow.strike(&mut child, &mut self.random);
        let status = self.ended(&mut child, patience(subject, blow));
        if blow == Blow::Full {
            hit = status.code() != Some(subject.status());
            self.ground.range.make_room(self.ground.full());
        }
        self.words.extend([format!("bench-{pid}-"), format!("fslab-{pid}-")]);
        self.journals();
        self.judge_status(status);
        let state = self.ground.bench.state().display().to_string();
        self.problems.extend(remaining(pid, &state, SWEEP));
        self.killed = status.signal().is_some();
        self.judge(&before);
        let Self { problems, .. } = self;
        Ended { hit, fraction, status: status.to_string(), problems }
    }

    /// Prepares the command that is killed.
    fn before(&self) {
        let ground = &self.ground;
        if matches!(ground.subject, Subject::Resume | Subject::Clean) {
            self.killed_run();
        }
        if ground.subject == Subject::Resume {
            let (status, errors) = self.to_end(&["clean".to_owned()]);
            assert!(status.success(), "{errors}");
        }
        if ground.subject == Subject::Reboot {
            let (status, errors) = self.to_end(&ground.begin());
            assert_eq!(status.code(), Some(5), "{errors}");
        }
        if ground.subject.kind() == Kind::Writer && self.may_be_there() {
            fs::write(ground.output(), OLD).unwrap();
        }
    }

    /// Starts a run, and kills it during its third trial.
    fn killed_run(&self) {
        let mut child = self.quiet(&self.ground.begin());
        let start = Instant::now();
        let few = || self.kept().is_none_or(|trials| trials.len() < 2);
        while few() && child.try_wait().unwrap().is_none() && start.elapsed() < GIVEN_UP {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(30));
        child.kill().unwrap();
        child.wait().unwrap();
        let state = self.ground.bench.state().display().to_string();
        let left = remaining(child.id(), &state, SWEEP);
        assert!(left.is_empty(), "{left:?}");
    }

    /// True if a report replaces an existing file, which is the case in half of the tries.
    fn may_be_there(&self) -> bool {
        let replaces = matches!(self.ground.subject, Subject::Html | Subject::Xlsx);
        replaces && self.ground.stem.bytes().map(u32::from).sum::<u32>() % 2 == 0
    }

    fn quiet(&self, arguments: &[String]) -> Child {
        let mut command = self.ground.command(arguments, self.boot().as_deref());
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Boot ID for a resumed run that requires a reboot before each trial.
    fn boot(&self) -> Option<String> {
        let going_on = self.ground.subject == Subject::Reboot && self.ground.working().exists();
        going_on.then(|| format!("boot-{}", self.kept().unwrap_or_default().len()))
    }

    fn spawn(&self) -> Child {
        let mut command = self.ground.command(&self.ground.arguments(), self.boot().as_deref());
        if self.ground.blow == Blow::Closed {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        } else {
            command.stdout(Stdio::null());
            command.stderr(File::create(self.ground.range.path("stderr")).unwrap());
        }
        command.spawn().unwrap()
    }

    /// Runs a command until it ends, and returns its status and its stderr.
    fn to_end(&self, arguments: &[String]) -> (ExitStatus, String) {
        let mut command = self.ground.command(arguments, self.boot().as_deref());
        let output = command.output().unwrap();
        (output.status, finished(output).stderr)
    }

    fn ended(&mut self, child: &mut Child, patience: Duration) -> ExitStatus {
        let start = Instant::now();
        while start.elapsed() < patience {
            if let Some(status) = child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        self.problems.push(format!("still running after {patience:?}"));
        child.kill().unwrap();
        child.wait().unwrap()
    }

    /// Records the IDs of runs that have a journal.
    fn journals(&mut self) {
        let journals = tree(&self.ground.bench.state().join("journal"));
        let ids = journals.iter().filter_map(|name| name.strip_suffix(".jsonl"));
        self.words.extend(ids.map(str::to_owned));
    }

    /// Trials of the run file; `None` if there is no run file.
    ///
    /// # Panics
    /// If the run file cannot be read.
    fn kept(&self) -> Option<Vec<Trial>> {
        let path = self.ground.working();
        if !path.exists() {
            return None;
        }
        match store::read(&path) {
            Ok(record) => {
                let trials = record.trials.iter();
                Some(trials.map(|trial| (trial.cell, trial.repetition, trial.attempt)).collect())
            }
            // The file was moved after the check.
            Err(store::StoreError::Open { .. }) if !path.exists() => self.kept(),
            Err(error) => panic!("the run file cannot be read: {error}"),
        }
    }

    fn judge_status(&mut self, status: ExitStatus) {
        let (subject, blow) = (self.ground.subject, self.ground.blow);
        let normal = Some(subject.status());
        let signaled = status.signal().is_some() && status.signal() == blow.signal();
        let fits = match blow {
            Blow::Kill => signaled || status.code() == normal,
            Blow::Terminate | Blow::Interrupt | Blow::HangUp | Blow::Twice => {
                // `fslab record` has the status of the program, which it ends by SIGKILL.
                let ended = subject == Subject::Record && status.code() == Some(137);
                signaled || ended || status.code() == normal || status.code() == Some(130)
            }
            Blow::Closed => status.code() == normal,
            Blow::Full | Blow::Part(_) => matches!(status.code(), Some(0 | 2 | 3 | 4 | 5)),
        };
        let errors = fs::read(self.ground.range.path("stderr")).unwrap_or_default();
        let errors = String::from_utf8_lossy(&errors).into_owned();
        if !fits {
            self.problems.push(format!("ended with {status}: {}", errors.trim()));
        }
        if errors.contains("panicked at") {
            self.problems.push(errors);
        }
    }

    fn judge(&mut self, before: &[Trial]) {
        if !self.killed && self.ground.subject != Subject::Clean {
            self.judge_left("before clean", false);
        }
        if self.ground.subject == Subject::CrashState {
            self.judge_crash_state();
        }
        let (status, errors) = self.to_end(&["clean".to_owned()]);
        if !status.success() {
            self.problems.push(format!("clean ended with {status}: {errors}"));
        }
        self.judge_left("after clean", false);
        match self.ground.subject.kind() {
            Kind::Run => self.judge_run(before),
            Kind::LongRun | Kind::Clean => drop(self.judge_kept(before)),
            Kind::Bench => {}
            Kind::Writer => self.judge_output(),
        }
    }

    /// Checks that the command left nothing on the machine.
    fn judge_left(&mut self, when: &str, ended: bool) {
        let ground = &self.ground;
        let mut left = ground.bench.left_behind();
        left.retain(|line| !line.contains("disk.img"));
        left.extend(stacked().difference(&self.stacked).cloned());
        let working = |path: &String| !ended && path.contains(&format!("/{}-", ground.stem));
        left.extend(shared(&self.words).into_iter().filter(|path| !working(path)));
        let settings = settings(ground);
        left.extend(settings.changed(&self.settings));
        for (name, place) in [
            ("", ground.bench.path(".")),
            ("target/", ground.range.path("target")),
            ("small/", ground.range.path("small")),
        ] {
            let names =
                tree(&place).into_iter().filter(|it| !ground.may_stay(it, ended, self.killed));
            left.extend(names.map(|it| format!("{name}{it}")));
        }
        if !left.is_empty() {
            self.problems.push(format!("left {when}: {}", left.join(", ")));
        }
    }

    /// Checks that the run file still has its trials, and no trial twice.
    fn judge_kept(&mut self, before: &[Trial]) -> Vec<Trial> {
        let now = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.kept())) {
            Ok(now) => now.unwrap_or_default(),
            Err(_) => {
                self.problems.push("the run file cannot be read".into());
                return Vec::new();
            }
        };
        let once: BTreeSet<Trial> = now.iter().copied().collect();
        if !before.iter().all(|trial| once.contains(trial)) {
            self.problems.push(format!("had {before:?}, has {now:?}"));
        }
        if once.len() != now.len() {
            self.problems.push(format!("trials are stored twice: {now:?}"));
        }
        now
    }

    fn judge_run(&mut self, before: &[Trial]) {
        let kept = self.judge_kept(before);
        self.ground.wipe();
        if let Err(problem) = self.complete() {
            self.problems.push(problem);
        }
        let now: BTreeSet<Trial> = self.judge_kept(&kept).into_iter().collect();
        let killed_part = matches!(self.ground.blow, Blow::Part(_));
        if now != self.reference.trials && !killed_part {
            self.problems.push(format!("completed with {now:?}"));
        }
        let page = fs::read_to_string(self.ground.run_file().with_extension("html"));
        if page.is_ok_and(|page| !page.trim_end().ends_with("</html>")) {
            self.problems.push("the report is incomplete".into());
        }
        self.judge_left("after completion", true);
    }

    /// Resumes the run until it ends.
    fn complete(&self) -> Result<(), String> {
        // Cells may fail because a guest process was killed or the target became full.
        let failed = matches!(self.ground.blow, Blow::Part(_) | Blow::Full);
        for _ in 0..4 {
            let (status, errors) = self.to_end(&self.ground.resume());
            match status.code() {
                Some(0) => return Ok(()),
                Some(4 | 3) if failed => return Ok(()),
                Some(5) if self.ground.subject == Subject::Reboot => {}
                _ => return Err(format!("completion ended with {status}: {errors}")),
            }
        }
        Err("the run does not end".into())
    }

    /// Verifies the files of the workload while they exist. Synced data must be intact.
    fn judge_crash_state(&mut self) {
        let state = self.ground.crash_state();
        if !state.exists() {
            return;
        }
        let (status, errors) = self.to_end(&["verify".into(), state.display().to_string()]);
        // Status 1 is lost data. 2: the state file is incomplete; 4: no data was synced yet.
        if !matches!(status.code(), Some(0 | 2 | 4)) {
            self.problems.push(format!("verify ended with {status}: {errors}"));
        }
    }

    /// Checks that the output is complete, missing, or unchanged, and that the command can write it
    /// again.
    fn judge_output(&mut self) {
        let output = self.ground.output();
        let whole = |problems: &mut Vec<String>, found: &BTreeMap<String, Vec<u8>>| {
            for (name, bytes) in found {
                let expected = self.reference.output.get(name);
                let imported = || {
                    store::read(&output)
                        .is_ok_and(|run| run.trials.len() == 120 && run.info.ended_unix.is_some())
                };
                let recorded = || {
                    let check = ["trace", "check"].map(str::to_owned);
                    let output = output.display().to_string();
                    self.to_end(&[&check[..], &[output]].concat()).0.success()
                };
                // While it is incomplete, the list of charts contains a mark.
                let list = self.ground.subject == Subject::Charts && name.ends_with(".md");
                let equal = list || expected == Some(bytes) || bytes == OLD;
                let subject = self.ground.subject;
                let whole = match (subject == Subject::Import, subject == Subject::Record) {
                    (true, _) => imported(),
                    (_, true) => recorded(),
                    (false, false) => equal,
                };
                if !whole {
                    let (has, of) = (bytes.len(), expected.map(Vec::len));
                    problems.push(format!("{}/{name}: {has} of {of:?} bytes", output.display()));
                }
            }
        };
        let mut problems = Vec::new();
        whole(&mut problems, &contents(&output));
        let new_only =
            matches!(self.ground.subject, Subject::Import | Subject::Loadfile | Subject::Record);
        if !(new_only && output.exists()) {
            let (status, errors) = self.to_end(&self.ground.arguments());
            if !status.success() {
                problems.push(format!("once more: {status}: {errors}"));
            }
            let now = contents(&output);
            whole(&mut problems, &now);
            if !now.keys().eq(self.reference.output.keys()) {
                problems.push("once more: other files".into());
            }
        }
        self.problems.extend(problems);
        self.judge_left("after once more", true);
    }
}

/// Previous content of a file that a report replaces.
const OLD: &[u8] = b"old";

/// Settings that only this command may change. Other commands run at the same time.
fn settings(ground: &Ground<'_>) -> Settings {
    let device = ground.disk.as_ref().map(|disk| disk.path());
    Settings::read(device, ground.subject == Subject::Settings)
}
