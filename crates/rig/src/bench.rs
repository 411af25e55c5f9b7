//! The workbench: every change of the machine, journaled before it is made and recorded after.
//!
//! This is the only way in which the rest of the crate changes anything. Each method writes the
//! journal, acts through the host, and appends a [`model::record::Action`].

mod input;

use std::{
    fmt::Display,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use input::Input;
use model::{Allocation, Bytes, Nanos, Warning, record::Action};

use crate::{
    error::RigError,
    guard::{ClaimedDevice, DiskLock},
    host::{Erased, Host, Identity, Loop, Output},
    knobs::{Keep, Write},
    mount::MountRequest,
    undo::{Basis, Change, Journal, MARKER, Outcome, Step, Stuck, selected},
};

/// How often and how long a busy unmount is tried again.
const TRIES: u32 = 50;
const PAUSE: Nanos = Nanos(100_000_000);

/// The machine with the run's journal and record.
#[derive(Debug)]
pub(crate) struct Bench {
    host: Arc<dyn Host>,
    journal: Journal,
    actions: Vec<Action>,
    locks: Vec<Arc<DiskLock>>,
}

impl Bench {
    pub(crate) fn new(host: Arc<dyn Host>, journal: Journal) -> Self {
        Self { host, journal, actions: Vec::new(), locks: Vec::new() }
    }

    /// Takes note of the lock of a disk, which is released while a program runs.
    pub(crate) fn lock(&mut self, lock: &Arc<DiskLock>) {
        self.locks.push(Arc::clone(lock));
    }

    /// The record since the last call.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Does something that leaves nothing to undo, and records it.
    pub(crate) fn act<T, E: Display>(
        &mut self,
        what: impl Into<String>,
        deed: impl FnOnce(&dyn Host) -> Result<T, E>,
    ) -> (Result<T, E>, Nanos) {
        let what = what.into();
        let start = self.host.now();
        let answer = deed(&*self.host);
        let elapsed = self.host.now() - start;
        let trouble = answer.as_ref().err().map(ToString::to_string).unwrap_or_default();
        tracing::debug!(what, ns = elapsed.0, trouble, "action");
        self.actions.push(Action { what, elapsed, trouble });
        (answer, elapsed)
    }

    /// Records something that took its time and changed nothing.
    pub(crate) fn note(&mut self, what: impl Into<String>, elapsed: Nanos) {
        self.actions.push(Action { what: what.into(), elapsed, trouble: String::new() });
    }

    /// As [`Bench::act`] for a program that may lock the devices itself.
    fn program<T, E: Display>(
        &mut self,
        what: impl Into<String>,
        run: impl FnOnce(&dyn Host) -> Result<T, E>,
    ) -> Result<Result<T, E>, RigError> {
        self.locks.iter().for_each(|lock| lock.lend());
        let (answer, _) = self.act(what, run);
        self.locks.iter().try_for_each(|lock| lock.take_back())?;
        Ok(answer)
    }

    /// Runs a program to its end and records the command line.
    pub(crate) fn run(&mut self, argv: &[String]) -> Result<Output, RigError> {
        let program = argv.first().cloned().unwrap_or_default();
        let answer = self.program(argv.join(" "), |host| host.run(argv))?;
        let output = answer.map_err(|source| RigError::Program { program, source })?;
        if let Some(action) = self.actions.last_mut() {
            action.elapsed = output.elapsed;
            if !output.success() {
                action.trouble = output.verdict();
            }
        }
        Ok(output)
    }

    /// Makes a device of a layer by a program. What is recorded is its command line and what it is
    /// told, without the secret.
    pub(crate) fn layer(
        &mut self,
        change: Change,
        argv: &[String],
        input: Input<'_>,
    ) -> Result<Step, RigError> {
        let layer = change.describe();
        // What makes an array is also what undoes it: without it nothing is begun.
        if let Some(program) = argv.first().filter(|program| self.host.find(program).is_none()) {
            let (why, cure) = (format!("{program} not found"), "`fslab doctor` names its package");
            return Err(RigError::Layer { layer, why, cure });
        }
        let step = self.journal.plan(change)?;
        let what = match input.text {
            "" => argv.join(" "),
            text => format!("{} <<< '{}'", argv.join(" "), input.veiled(text)),
        };
        let done = self.program(what, |host| {
            let output = host.run_told(argv, input.text).map_err(|error| error.to_string())?;
            if output.success() { Ok(()) } else { Err(input.veiled(&output.verdict())) }
        })?;
        let done = self.settle(step, done);
        let cure = "see the kernel log, or take the layer out of the plan";
        done.map_err(|why| RigError::Layer { layer, why, cure })?;
        Ok(step)
    }

    /// Makes a mapped device fail by commands, each told a text on its standard input. They are
    /// journaled as one change, and recorded one by one.
    pub(crate) fn fault(
        &mut self,
        change: Change,
        layer: &str,
        commands: &[(Vec<String>, &str)],
    ) -> Result<Step, RigError> {
        let step = self.journal.plan(change)?;
        for (argv, input) in commands {
            let what = match *input {
                "" => argv.join(" "),
                text => format!("{} <<< '{text}'", argv.join(" ")),
            };
            let done = self.program(what, |host| {
                let output = host.run_told(argv, input).map_err(|error| error.to_string())?;
                if output.success() { Ok(()) } else { Err(output.verdict()) }
            })?;
            let cure = "see the kernel log, or take the layer out of the plan";
            let layer = layer.to_owned();
            self.settle(step, done).map_err(|why| RigError::Layer { layer, why, cure })?;
        }
        Ok(step)
    }

    /// Undoes one change; `None` stands for nothing to undo.
    pub(crate) fn undo(&mut self, step: Step, what: impl Display) -> Result<(), RigError> {
        let journal = &mut self.journal;
        let start = self.host.now();
        let answer = journal.undo(&*self.host, step);
        let elapsed = self.host.now() - start;
        let trouble = match &answer {
            Ok(Outcome::Undone) => String::new(),
            Ok(Outcome::Left(why)) => format!("left alone: {why}"),
            Err(stuck) => stuck.why.clone(),
        };
        self.actions.push(Action { what: format!("undo: {what}"), elapsed, trouble });
        answer.map(drop).map_err(RigError::Undo)
    }

    /// Lets go of the journal as a kill would: nothing is undone, and the lock is free.
    #[cfg(test)]
    pub(crate) fn abandon(&mut self) {
        self.journal.abandon();
    }

    /// Undoes all that is open, newest first.
    pub(crate) fn close(&mut self) -> Vec<Stuck> {
        self.journal.close(&*self.host)
    }

    pub(crate) fn directory(&mut self, path: &Path) -> Result<Step, RigError> {
        let change = |identity| Change::Directory { path: path.to_owned(), identity };
        self.vacant(path).map_err(failed_directory(path))?;
        let step = self.journal.plan(change(None))?;
        let (made, _) =
            self.act(format!("mkdir {}", path.display()), |host| host.make_directory(path));
        self.settle(step, made).map_err(failed_directory(path))?;
        self.identify(step, path, change)?;
        Ok(step)
    }

    /// Makes a directory that is removed with all that a workload puts into it.
    pub(crate) fn tree(&mut self, path: &Path, token: &str) -> Result<Step, RigError> {
        let (place, token) = (path.to_owned(), token.to_owned());
        let change =
            |identity| Change::Tree { path: place.clone(), token: token.clone(), identity };
        self.vacant(path).map_err(failed_directory(path))?;
        let step = self.journal.plan(change(None))?;
        let (made, _) = self.act(format!("mkdir {}", path.display()), |host| {
            host.make_directory(path)?;
            host.create(&path.join(MARKER), &token)
        });
        self.settle(step, made).map_err(failed_directory(path))?;
        self.identify(step, path, change)?;
        Ok(step)
    }

    /// Makes an empty image file that is removed at the end.
    pub(crate) fn image(&mut self, path: &Path) -> Result<Identity, RigError> {
        let change = |identity| Change::Image { path: path.to_owned(), identity };
        let failed = |source| RigError::Image { path: path.to_owned(), source };
        self.vacant(path).map_err(failed)?;
        let step = self.journal.plan(change(None))?;
        let identity = self.kept_image(path);
        let identity = self.settle(step, identity)?;
        self.journal.know(step, change(Some(identity)))?;
        Ok(identity)
    }

    /// Makes an empty image file that stays.
    pub(crate) fn kept_image(&mut self, path: &Path) -> Result<Identity, RigError> {
        let what = format!("create image {}", path.display());
        let (made, _) = self.act(what, |host| host.create_image(path));
        made.map_err(|source| RigError::Image { path: path.to_owned(), source })
    }

    pub(crate) fn renew_image(
        &mut self,
        path: &Path,
        identity: Identity,
        size: Bytes,
        allocation: Allocation,
    ) -> Result<(), RigError> {
        let what = format!("zero {} ({size}, {} allocation)", path.display(), allocation.name());
        let (done, _) = self.act(what, |host| host.renew_image(path, identity, size, allocation));
        done.map_err(|source| RigError::Image { path: path.to_owned(), source })
    }

    pub(crate) fn attach(
        &mut self,
        image: &Path,
        identity: Identity,
    ) -> Result<(Step, Loop), RigError> {
        let change = |made| Change::Loops { image: image.to_owned(), identity, made };
        let step = self.journal.plan(change(None))?;
        let what = format!("attach {} to a loop device", image.display());
        let (attached, _) = self.act(what, |host| host.attach_loop(image, identity));
        let failed = |source| RigError::Loop { path: image.to_owned(), source };
        let attached = self.settle(step, attached).map_err(failed)?;
        if attached.made.is_some() {
            self.journal.know(step, change(attached.made))?;
        }
        Ok((step, attached))
    }

    /// The loop devices a file is attached to; only asks.
    pub(crate) fn loops_of(&self, identity: Identity) -> io::Result<Vec<PathBuf>> {
        self.host.loops_of(identity)
    }

    pub(crate) fn erase(&mut self, device: &ClaimedDevice) -> Result<Erased, RigError> {
        let path = device.path();
        let what = format!("discard {}", path.display());
        let (done, _) = self.act(what, |host| host.erase_device(path, device.medium()));
        done.map_err(|source| RigError::Erase { device: path.to_owned(), source })
    }

    /// Mounts and tells how long that took.
    pub(crate) fn mount(&mut self, request: &MountRequest) -> Result<(Step, Nanos), RigError> {
        let (target, fstype) = (request.target.clone(), request.fstype.clone());
        let change = |device| Change::Mount { target, fstype, device };
        let step = self.journal.plan(change.clone()(None))?;
        let command = request.describe();
        let (mounted, elapsed) = self.act(command.clone(), |host| host.mount(request));
        // Attaching is the last step of a mount, so after an error there is nothing to undo, and
        // what is mounted there is another's.
        mounted.map_err(|source| {
            self.journal.never(step);
            RigError::Mount { command, source }
        })?;
        let mounts = self.host.mounts().unwrap_or_default();
        if let Some(ours) = mounts.into_iter().rfind(|mount| mount.target == request.target) {
            self.journal.know(step, change(Some(ours.device)))?;
        }
        Ok((step, elapsed))
    }

    /// Unmounts, waiting while it is busy; the time told is that of the call that came through.
    pub(crate) fn unmount(&mut self, step: Step, target: &Path) -> Result<Nanos, RigError> {
        let mut tries = 0;
        let elapsed = loop {
            let what = format!("umount {}", target.display());
            match self.act(what, |host| host.unmount(target)) {
                (Ok(()), elapsed) => break elapsed,
                (Err(error), _) if error.kind() == io::ErrorKind::ResourceBusy && tries < TRIES => {
                    tries += 1;
                    self.host.sleep(PAUSE);
                }
                (Err(source), _) => {
                    return Err(RigError::Unmount { target: target.to_owned(), source });
                }
            }
        };
        // Nothing is mounted there any more, so this only closes the entry.
        self.undo(step, format!("mount on {}", target.display()))?;
        Ok(elapsed)
    }

    /// Changes a setting and reads it back; a value that the kernel refuses, or rounds, is a
    /// warning. `None` as step: nothing was changed.
    pub(crate) fn set(
        &mut self,
        name: &str,
        path: &Path,
        value: &str,
    ) -> Result<(Option<Step>, Option<Warning>), RigError> {
        self.switch(&Write {
            setting: name.to_owned(),
            path: path.to_owned(),
            text: value.to_owned(),
            from: None,
            moves: false,
            basis: None,
        })
    }

    /// As [`Bench::set`] for a setting that is more than one file that stays as it was written.
    pub(crate) fn switch(
        &mut self,
        write: &Write,
    ) -> Result<(Option<Step>, Option<Warning>), RigError> {
        let Write { setting, path, text: value, from, moves, basis } = write;
        // Where the kernel empties a file when another is written, that one is written to undo it.
        let from = from.as_ref().unwrap_or(path);
        let read = |host: &dyn Host, path: &Path| host.read(path).map(|t| selected(&t).to_owned());
        let differs = |found: String| Warning::ReadBack {
            setting: setting.clone(),
            wanted: value.clone(),
            found,
        };
        let before = match read(&*self.host, from) {
            Ok(before) if from == path && before == *value => return Ok((None, None)),
            Ok(before) => before,
            Err(error) => return Ok((None, Some(differs(error.to_string())))),
        };
        let basis = basis.as_ref().and_then(|path| {
            Some(Basis { path: path.clone(), value: read(&*self.host, path).ok()? })
        });
        let change = |after| Change::Setting {
            path: from.clone(),
            before: before.clone(),
            after,
            moves: *moves,
            basis: basis.clone(),
        };
        let step = self.journal.plan(change(None))?;
        let what = format!("write {value} to {}", path.display());
        let (written, _) = self.act(what, |host| host.write(path, value));
        if let Err(error) = self.settle(step, written) {
            let now = read(&*self.host, path).unwrap_or_default();
            return Ok((None, Some(differs(format!("{now} ({error})")))));
        }
        // What cannot be read is not known: undoing must not take it for somebody else's.
        if let Ok(after) = read(&*self.host, from) {
            self.journal.know(step, change(Some(after)))?;
        }
        let found = read(&*self.host, path).unwrap_or_else(|error| error.to_string());
        Ok((Some(step), (found != *value).then(|| differs(found))))
    }

    /// Changes a setting again that is changed already; undoing it stays the same. The inner error
    /// says why it could not be written.
    pub(crate) fn adjust(&mut self, step: Step, value: &str) -> Result<io::Result<()>, RigError> {
        let Some(change) = self.journal.open_change(step).cloned() else { return Ok(Ok(())) };
        let Some((path, change)) = change.reading(None) else { return Ok(Ok(())) };
        self.journal.know(step, change)?;
        let what = format!("write {value} to {}", path.display());
        let (written, _) = self.act(what, |host| host.write(&path, value));
        self.reread(step)?;
        Ok(written)
    }

    /// Takes down anew what a changed setting reads as, after another change that may have moved
    /// it: undoing would take it for somebody else's otherwise.
    pub(crate) fn reread(&mut self, step: Step) -> Result<(), RigError> {
        let Some(change @ Change::Setting { path, .. }) = self.journal.open_change(step) else {
            return Ok(());
        };
        let now = self.host.read(path).ok().map(|text| selected(&text).to_owned());
        match change.clone().reading(now) {
            Some((_, known)) if known != *change => self.journal.know(step, known),
            _ => Ok(()),
        }
    }

    /// Takes down settings that a later change may disturb, to be written back when that is undone.
    /// Those that cannot be read are left out.
    pub(crate) fn keep(&mut self, keep: &Keep) -> Result<Option<Step>, RigError> {
        let told = |path: &PathBuf| {
            let text = self.host.read(path).ok()?;
            Some((path.clone(), selected(&text).to_owned()))
        };
        let values: Vec<_> = keep.files.iter().filter_map(told).collect();
        if values.is_empty() {
            return Ok(None);
        }
        let basis = keep.basis.as_ref().and_then(told);
        let basis = basis.map(|(path, value)| Basis { path, value });
        self.journal.plan(Change::Kept { values, basis }).map(Some)
    }

    /// Writes an order to a kernel file whose undoing is another order, not the text before.
    pub(crate) fn order(&mut self, path: &Path, order: &str, undo: &str) -> io::Result<()> {
        let change = |after| Change::Setting {
            path: path.to_owned(),
            before: undo.to_owned(),
            after,
            moves: false,
            basis: None,
        };
        let step = self.journal.plan(change(None)).map_err(io::Error::other)?;
        let what = format!("write {order} to {}", path.display());
        let (written, _) = self.act(what, |host| host.write(path, order));
        self.settle(step, written)?;
        let after = self.host.read(path)?;
        let known = change(Some(selected(&after).to_owned()));
        self.journal.know(step, known).map_err(io::Error::other)
    }

    /// Makes a control group, calls `prepare` to give it its limits, and moves this process into
    /// it.
    pub(crate) fn group(
        &mut self,
        path: &Path,
        home: &Path,
        prepare: impl FnOnce(&dyn Host) -> io::Result<()>,
    ) -> io::Result<Step> {
        let change =
            |identity| Change::Group { path: path.to_owned(), home: home.to_owned(), identity };
        self.vacant(path)?;
        let step = self.journal.plan(change(None)).map_err(io::Error::other)?;
        let what = format!("mkdir {} and move this process there", path.display());
        let (done, _) = self.act(what, |host| {
            host.make_directory(path)?;
            prepare(host)?;
            host.write(&path.join("cgroup.procs"), &host.pid().to_string())
        });
        self.settle(step, done)?;
        self.identify(step, path, change).map_err(io::Error::other)?;
        Ok(step)
    }

    /// Refuses a name that exists: undoing the making of what is there already would remove it.
    fn vacant(&self, path: &Path) -> io::Result<()> {
        match self.host.entry(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    /// Records which directory was made. One that cannot be identified is undone by its path, and
    /// only if it is empty or holds the marker.
    fn identify(
        &mut self,
        step: Step,
        path: &Path,
        change: impl Fn(Option<Identity>) -> Change,
    ) -> Result<(), RigError> {
        match self.host.entry(path) {
            Ok(entry) => self.journal.know(step, change(Some(entry.identity))),
            Err(_) => Ok(()),
        }
    }

    /// After a change that failed, undoes what there may be of it.
    fn settle<T, E: Display>(&mut self, step: Step, answer: Result<T, E>) -> Result<T, E> {
        if answer.is_err()
            && let Err(stuck) = self.journal.undo(&*self.host, step)
        {
            tracing::warn!(what = stuck.what, why = stuck.why, "left half made");
        }
        answer
    }
}

fn failed_directory(path: &Path) -> impl FnOnce(io::Error) -> RigError {
    let path = PathBuf::from(path);
    move |source| RigError::Directory { path, source }
}
