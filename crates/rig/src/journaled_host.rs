//! Host access that journals each change before it is made, and records each operation.
//!
//! All other modules of the crate change the machine through [`JournaledHost`] only.

mod directories;
mod input;
pub(crate) mod mounting;
mod write;

use std::{
    fmt::Display,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) use input::Input;
use model::{Allocation, Bytes, Nanos, Warning, record::Action};
pub(crate) use write::SavedSettings;
pub use write::Write;

use crate::{
    error::RigError,
    guard::{ClaimedDevice, DiskLock},
    host::{Host, Identity, Loop, Output, WipeMethod},
    mount::MountRequest,
    sysfs::selected,
    undo::{Change, Journal, NotUndone, Outcome, PAUSE, ParentSetting, Step, TRIES},
};

/// Host access with an undo journal, a list of actions, and the locks of the claimed disks.
#[derive(Debug)]
pub(crate) struct JournaledHost {
    host: Arc<dyn Host>,
    journal: Journal,
    actions: Vec<Action>,
    locks: Vec<Arc<DiskLock>>,
}

impl JournaledHost {
    pub(crate) fn new(host: Arc<dyn Host>, journal: Journal) -> Self {
        Self { host, journal, actions: Vec::new(), locks: Vec::new() }
    }

    /// Registers the lock of a disk, which is released while a program runs.
    pub(crate) fn lock(&mut self, lock: &Arc<DiskLock>) {
        self.locks.push(Arc::clone(lock));
    }

    /// Actions since the last call.
    pub(crate) fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Executes an operation that needs no undo, and records it as an action.
    pub(crate) fn execute<T, E: Display>(
        &mut self,
        what: impl Into<String>,
        operation: impl FnOnce(&dyn Host) -> Result<T, E>,
    ) -> (Result<T, E>, Nanos) {
        let what = what.into();
        let start = self.host.now();
        let answer = operation(&*self.host);
        let elapsed = self.host.now() - start;
        let error = answer.as_ref().err().map(ToString::to_string).unwrap_or_default();
        tracing::debug!(what, ns = elapsed.0, error, "action");
        self.actions.push(Action { description: what, elapsed, error });
        (answer, elapsed)
    }

    /// Records a step that took time but changed nothing.
    pub(crate) fn note(&mut self, what: impl Into<String>, elapsed: Nanos) {
        self.actions.push(Action { description: what.into(), elapsed, error: String::new() });
    }

    /// Runs a program as [`JournaledHost::execute`] does. The locks of the disks are released while
    /// the program runs, because it may lock the devices itself.
    fn program<T, E: Display>(
        &mut self,
        what: impl Into<String>,
        run: impl FnOnce(&dyn Host) -> Result<T, E>,
    ) -> Result<Result<T, E>, RigError> {
        self.locks.iter().for_each(|lock| lock.lend());
        let (answer, _) = self.execute(what, run);
        self.locks.iter().try_for_each(|lock| lock.take_back())?;
        Ok(answer)
    }

    /// Runs a program until it exits and records its command line.
    pub(crate) fn run(&mut self, argv: &[String]) -> Result<Output, RigError> {
        let program = argv.first().cloned().unwrap_or_default();
        let answer = self.program(argv.join(" "), |host| host.run(argv))?;
        let output = answer.map_err(|source| RigError::Program { program, source })?;
        if let Some(action) = self.actions.last_mut() {
            action.elapsed = output.elapsed;
            if !output.success() {
                action.error = output.verdict();
            }
        }
        Ok(output)
    }

    /// Creates a device of a layer with a program. Its command line and input are recorded without
    /// the secret part of the input.
    pub(crate) fn layer(
        &mut self,
        change: Change,
        argv: &[String],
        input: Input<'_>,
    ) -> Result<Step, RigError> {
        let layer = change.describe();
        // Undo requires the same program, so nothing is changed if the program is missing.
        if let Some(program) = argv.first().filter(|program| self.host.find(program).is_none()) {
            let (why, hint) = (format!("{program} not found"), "`fslab doctor` shows its package");
            return Err(RigError::Layer { layer, why, hint });
        }
        let step = self.journal.plan(change)?;
        let what = match input.text {
            "" => argv.join(" "),
            text => format!("{} <<< '{}'", argv.join(" "), input.redacted(text)),
        };
        let done = self.program(what, |host| {
            let output =
                host.run_with_input(argv, input.text).map_err(|error| error.to_string())?;
            if output.success() { Ok(()) } else { Err(input.redacted(&output.verdict())) }
        })?;
        let done = self.undo_on_error(step, done);
        let hint = "see the kernel log, or remove the layer from the plan";
        done.map_err(|why| RigError::Layer { layer, why, hint })?;
        Ok(step)
    }

    /// Activates the faults of a mapped device with commands, each with its standard input. The
    /// journal has one change for all commands; each command is recorded as an action.
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
                let output = host.run_with_input(argv, input).map_err(|error| error.to_string())?;
                if output.success() { Ok(()) } else { Err(output.verdict()) }
            })?;
            let hint = "see the kernel log, or remove the layer from the plan";
            let layer = layer.to_owned();
            self.undo_on_error(step, done).map_err(|why| RigError::Layer { layer, why, hint })?;
        }
        Ok(step)
    }

    pub(crate) fn undo(&mut self, step: Step, what: impl Display) -> Result<(), RigError> {
        let journal = &mut self.journal;
        let start = self.host.now();
        let answer = journal.undo(&*self.host, step);
        let elapsed = self.host.now() - start;
        let error = match &answer {
            Ok(Outcome::Undone) => String::new(),
            Ok(Outcome::Skipped(why)) => format!("skipped: {why}"),
            Err(not_undone) => not_undone.why.clone(),
        };
        self.actions.push(Action { description: format!("undo: {what}"), elapsed, error });
        answer.map(drop).map_err(RigError::Undo)
    }

    /// Drops the journal as a kill would: nothing is undone, and the lock is released.
    #[cfg(test)]
    pub(crate) fn forget(&mut self) {
        self.journal.forget();
    }

    /// Undoes all open changes, newest first.
    pub(crate) fn close(&mut self) -> Vec<NotUndone> {
        self.journal.close(&*self.host)
    }

    /// Creates an empty image file that undo removes.
    pub(crate) fn image(&mut self, path: &Path) -> Result<Identity, RigError> {
        let change = |identity| Change::Image { path: path.to_owned(), identity };
        let failed = |source| RigError::Image { path: path.to_owned(), source };
        self.vacant(path).map_err(failed)?;
        let step = self.journal.plan(change(None))?;
        let identity = self.kept_image(path);
        let identity = self.undo_on_error(step, identity)?;
        self.journal.update(step, change(Some(identity)))?;
        Ok(identity)
    }

    /// Creates an empty image file that is kept after the run.
    pub(crate) fn kept_image(&mut self, path: &Path) -> Result<Identity, RigError> {
        let what = format!("create image {}", path.display());
        let (made, _) = self.execute(what, |host| host.create_image(path));
        made.map_err(|source| RigError::Image { path: path.to_owned(), source })
    }

    pub(crate) fn renew_image(
        &mut self,
        path: &Path,
        identity: Identity,
        size: Bytes,
        allocation: Allocation,
    ) -> Result<(), RigError> {
        let what = format!("zero {} ({size}, {})", path.display(), allocation.name());
        let (done, _) =
            self.execute(what, |host| host.renew_image(path, identity, size, allocation));
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
        let (attached, _) = self.execute(what, |host| host.attach_loop(image, identity));
        let failed = |source| RigError::Loop { path: image.to_owned(), source };
        let attached = self.undo_on_error(step, attached).map_err(failed)?;
        if attached.made.is_some() {
            self.journal.update(step, change(attached.made))?;
        }
        Ok((step, attached))
    }

    /// Loop devices to which a file is attached.
    pub(crate) fn loops_of(&self, identity: Identity) -> io::Result<Vec<PathBuf>> {
        self.host.loops_of(identity)
    }

    pub(crate) fn erase(&mut self, device: &ClaimedDevice) -> Result<WipeMethod, RigError> {
        let path = device.path();
        let what = format!("discard {}", path.display());
        let (done, _) = self.execute(what, |host| host.erase_device(path, device.medium()));
        done.map_err(|source| RigError::Erase { device: path.to_owned(), source })
    }

    /// Mounts a filesystem; returns the duration of the system calls.
    pub(crate) fn mount(&mut self, request: &MountRequest) -> Result<(Step, Nanos), RigError> {
        let (target, fstype) = (request.target.clone(), request.fstype.clone());
        let change = |device| Change::Mount { target, fstype, device };
        let step = self.journal.plan(change.clone()(None))?;
        let command = request.describe();
        let (mounted, elapsed) = self.execute(command.clone(), |host| host.mount(request));
        // A mount is attached in the last step, so after an error there is nothing to undo. A
        // filesystem that is mounted there belongs to another process.
        mounted.map_err(|source| {
            self.journal.cancel(step);
            RigError::Mount { command, source }
        })?;
        let mounts = self.host.mounts().unwrap_or_default();
        if let Some(ours) = mounts.into_iter().rfind(|mount| mount.target == request.target) {
            self.journal.update(step, change(Some(ours.device)))?;
        }
        Ok((step, elapsed))
    }

    /// Thaws and unmounts a filesystem, with retries; returns the duration of the last call.
    pub(crate) fn unmount(&mut self, step: Step, target: &Path) -> Result<Nanos, RigError> {
        let _ = self.host.thaw(target); // most are not frozen
        let mut tries = 0;
        let elapsed = loop {
            let what = format!("umount {}", target.display());
            match self.execute(what, |host| host.unmount(target)) {
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
        // Nothing is mounted there anymore; this only closes the journal entry.
        self.undo(step, format!("mount on {}", target.display())).map(|()| elapsed)
    }

    /// Changes a setting and reads it back. A value that the kernel rejects or rounds yields a
    /// warning. The step is `None` if nothing was changed.
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

    /// Changes a setting as [`JournaledHost::set`] does, possibly with several files.
    pub(crate) fn switch(
        &mut self,
        write: &Write,
    ) -> Result<(Option<Step>, Option<Warning>), RigError> {
        let Write { setting, path, text: value, from, moves, basis } = write;
        // Undo writes the file with the current value, which the kernel may clear now.
        let from = from.as_ref().unwrap_or(path);
        let read = |host: &dyn Host, path: &Path| host.read(path).map(|t| selected(&t).to_owned());
        let differs = |found: String| Warning::SettingNotApplied {
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
            Some(ParentSetting { path: path.clone(), value: read(&*self.host, path).ok()? })
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
        let (written, _) = self.execute(what, |host| host.write(path, value));
        if let Err(error) = self.undo_on_error(step, written) {
            let now = read(&*self.host, path).unwrap_or_default();
            return Ok((None, Some(differs(format!("{now} ({error})")))));
        }
        // If the value cannot be read, `after` stays `None`, and undo does not compare the value.
        if let Ok(after) = read(&*self.host, from) {
            self.journal.update(step, change(Some(after)))?;
        }
        let found = read(&*self.host, path).unwrap_or_else(|error| error.to_string());
        Ok((Some(step), (found != *value).then(|| differs(found))))
    }

    /// Changes a setting again. Undo still restores the value before the first change. The inner
    /// error is that of the write.
    pub(crate) fn adjust(&mut self, step: Step, value: &str) -> Result<io::Result<()>, RigError> {
        let Some(change) = self.journal.open_change(step).cloned() else { return Ok(Ok(())) };
        let Some((path, change)) = change.with_value_read(None) else { return Ok(Ok(())) };
        self.journal.update(step, change)?;
        let what = format!("write {value} to {}", path.display());
        let (written, _) = self.execute(what, |host| host.write(&path, value));
        self.reread(step)?;
        Ok(written)
    }

    /// Updates the recorded value of a setting after another change that may have altered it.
    /// Otherwise undo would treat the setting as changed by another process.
    pub(crate) fn reread(&mut self, step: Step) -> Result<(), RigError> {
        let Some(change @ Change::Setting { path, .. }) = self.journal.open_change(step) else {
            return Ok(());
        };
        let now = self.host.read(path).ok().map(|text| selected(&text).to_owned());
        match change.clone().with_value_read(now) {
            Some((_, known)) if known != *change => self.journal.update(step, known),
            _ => Ok(()),
        }
    }

    /// Journals settings that a later change may alter. Undo restores these settings after it has
    /// undone the later change. Settings that cannot be read are omitted.
    pub(crate) fn save(&mut self, saved: &SavedSettings) -> Result<Option<Step>, RigError> {
        let read = |path: &PathBuf| {
            let text = self.host.read(path).ok()?;
            Some((path.clone(), selected(&text).to_owned()))
        };
        let values: Vec<_> = saved.files.iter().filter_map(read).collect();
        if values.is_empty() {
            return Ok(None);
        }
        let basis = saved.basis.as_ref().and_then(read);
        let basis = basis.map(|(path, value)| ParentSetting { path, value });
        self.journal.plan(Change::Kept { values, basis }).map(Some)
    }

    /// Writes a command to a kernel file. Undo writes the command `undo`, not the previous text.
    pub(crate) fn write_command(
        &mut self,
        path: &Path,
        command: &str,
        undo: &str,
    ) -> io::Result<()> {
        let change = |after| Change::Setting {
            path: path.to_owned(),
            before: undo.to_owned(),
            after,
            moves: false,
            basis: None,
        };
        let step = self.journal.plan(change(None)).map_err(io::Error::other)?;
        let what = format!("write {command} to {}", path.display());
        let (written, _) = self.execute(what, |host| host.write(path, command));
        self.undo_on_error(step, written)?;
        let after = self.host.read(path)?;
        let known = change(Some(selected(&after).to_owned()));
        self.journal.update(step, known).map_err(io::Error::other)
    }

    /// Creates a control group, calls `prepare` to set its limits, and moves this process into it.
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
        let (done, _) = self.execute(what, |host| {
            host.make_directory(path)?;
            prepare(host)?;
            host.write(&path.join("cgroup.procs"), &host.pid().to_string())
        });
        self.undo_on_error(step, done)?;
        self.identify(step, path, change).map_err(io::Error::other)?;
        Ok(step)
    }

    /// Fails if the path exists, because undo would remove the existing file.
    fn vacant(&self, path: &Path) -> io::Result<()> {
        match self.host.entry(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        }
    }

    /// Records the identity of a new directory. Without the identity, undo removes a directory at
    /// this path only if it is empty or contains the marker.
    fn identify(
        &mut self,
        step: Step,
        path: &Path,
        change: impl Fn(Option<Identity>) -> Change,
    ) -> Result<(), RigError> {
        match self.host.entry(path) {
            Ok(entry) => self.journal.update(step, change(Some(entry.identity))),
            Err(_) => Ok(()),
        }
    }

    /// Undoes the partial effects of a failed change.
    fn undo_on_error<T, E: Display>(&mut self, step: Step, answer: Result<T, E>) -> Result<T, E> {
        if answer.is_err()
            && let Err(not_undone) = self.journal.undo(&*self.host, step)
        {
            tracing::warn!(
                what = not_undone.what,
                why = not_undone.why,
                "a failed change was not undone"
            );
        }
        answer
    }
}
