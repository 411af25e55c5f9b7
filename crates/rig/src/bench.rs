//! The workbench: every change of the machine, journaled before it is made and recorded after.
//!
//! This is the only way in which the rest of the crate changes anything. Each method writes the
//! journal, acts through the host, and appends a [`model::record::Action`].

use std::{
    fmt::Display,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use model::{Allocation, Bytes, Nanos, Warning, record::Action};

use crate::{
    error::RigError,
    host::{Erased, Host, Identity, Loop, Output},
    mount::MountRequest,
    undo::{Change, Journal, MARKER, Step, Stuck, selected},
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
}

impl Bench {
    pub(crate) fn new(host: Arc<dyn Host>, journal: Journal) -> Self {
        Self { host, journal, actions: Vec::new() }
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

    /// Runs a program to its end and records the command line.
    pub(crate) fn run(&mut self, argv: &[String]) -> Result<Output, RigError> {
        let program = argv.first().cloned().unwrap_or_default();
        let (answer, _) = self.act(argv.join(" "), |host| host.run(argv));
        let output = answer.map_err(|source| RigError::Program { program, source })?;
        if let Some(action) = self.actions.last_mut() {
            action.elapsed = output.elapsed;
            if !output.success() {
                action.trouble = output.verdict();
            }
        }
        Ok(output)
    }

    /// Undoes one change; `None` stands for nothing to undo.
    pub(crate) fn undo(&mut self, step: Step, what: impl Display) -> Result<(), RigError> {
        let journal = &mut self.journal;
        let start = self.host.now();
        let answer = journal.undo(&*self.host, step);
        let elapsed = self.host.now() - start;
        let trouble = answer.as_ref().err().map(|stuck| stuck.why.clone()).unwrap_or_default();
        self.actions.push(Action { what: format!("undo: {what}"), elapsed, trouble });
        answer.map_err(RigError::Undo)
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
        let step = self.journal.plan(Change::Directory { path: path.to_owned() })?;
        let (made, _) =
            self.act(format!("mkdir {}", path.display()), |host| host.make_directory(path));
        self.settle(step, made).map_err(failed_directory(path))?;
        Ok(step)
    }

    /// Makes a directory that is removed with all that a workload puts into it.
    pub(crate) fn tree(&mut self, path: &Path, token: &str) -> Result<Step, RigError> {
        let change = Change::Tree { path: path.to_owned(), token: token.to_owned() };
        let step = self.journal.plan(change)?;
        let (made, _) = self.act(format!("mkdir {}", path.display()), |host| {
            host.make_directory(path)?;
            host.create(&path.join(MARKER), token)
        });
        self.settle(step, made).map_err(failed_directory(path))?;
        Ok(step)
    }

    /// Makes an empty image file that is removed at the end.
    pub(crate) fn image(&mut self, path: &Path) -> Result<Identity, RigError> {
        let change = |identity| Change::Image { path: path.to_owned(), identity };
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

    pub(crate) fn erase(&mut self, device: &Path) -> Result<Erased, RigError> {
        let what = format!("discard {}", device.display());
        let (done, _) = self.act(what, |host| host.erase_device(device));
        done.map_err(|source| RigError::Erase { device: device.to_owned(), source })
    }

    /// Mounts and tells how long that took.
    pub(crate) fn mount(&mut self, request: &MountRequest) -> Result<(Step, Nanos), RigError> {
        let (target, fstype) = (request.target.clone(), request.fstype.clone());
        let step = self.journal.plan(Change::Mount { target, fstype })?;
        let command = request.describe();
        let (mounted, elapsed) = self.act(command.clone(), |host| host.mount(request));
        let failed = |source| RigError::Mount { command, source };
        self.settle(step, mounted).map_err(failed)?;
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
        let read = |host: &dyn Host| host.read(path).map(|text| selected(&text).to_owned());
        let differs = |found: String| Warning::ReadBack {
            setting: name.to_owned(),
            wanted: value.to_owned(),
            found,
        };
        let before = match read(&*self.host) {
            Ok(before) if before == value => return Ok((None, None)),
            Ok(before) => before,
            Err(error) => return Ok((None, Some(differs(error.to_string())))),
        };
        let change =
            |after| Change::Setting { path: path.to_owned(), before: before.clone(), after };
        let step = self.journal.plan(change(None))?;
        let what = format!("write {value} to {}", path.display());
        let (written, _) = self.act(what, |host| host.write(path, value));
        if self.settle(step, written).is_err() {
            return Ok((None, Some(differs(before))));
        }
        let after = read(&*self.host).unwrap_or_default();
        self.journal.know(step, change(Some(after.clone())))?;
        Ok((Some(step), (after != value).then(|| differs(after))))
    }

    /// Writes an order to a kernel file whose undoing is another order, not the text before.
    pub(crate) fn order(&mut self, path: &Path, order: &str, undo: &str) -> io::Result<()> {
        let change =
            |after| Change::Setting { path: path.to_owned(), before: undo.to_owned(), after };
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
        let change = Change::Group { path: path.to_owned(), home: home.to_owned() };
        let step = self.journal.plan(change).map_err(io::Error::other)?;
        let what = format!("mkdir {} and move this process there", path.display());
        let (done, _) = self.act(what, |host| {
            host.make_directory(path)?;
            prepare(host)?;
            host.write(&path.join("cgroup.procs"), &host.pid().to_string())
        });
        self.settle(step, done)?;
        Ok(step)
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
