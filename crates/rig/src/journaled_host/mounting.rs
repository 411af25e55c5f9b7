//! Mounts and unmounts by commands.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
};

use model::Nanos;

use super::JournaledHost;
use crate::{
    error::RigError,
    host::{Host, Output, ProgramTime},
    mount::{MountCommand, MountEntry},
    undo::{Change, PAUSE, Step, TRIES},
};

/// Number of checks until a mount must exist, [`PAUSE`] apart: some daemons mount after the command
/// has exited.
const MOUNT_TRIES: u32 = 20;

/// Number of pauses of [`PAUSE`] for children that a command left to create their sessions, which
/// are 0.5 s in total. A child that remains in this session is not a daemon of the mount.
const SESSION_TRIES: u32 = 5;

/// Interval at which daemons that ended are removed from the process table.
const REAP_INTERVAL: Nanos = Nanos(5_000_000);

/// Mount that a command made.
#[derive(Clone, Debug)]
pub(crate) struct CommandMount {
    /// Journaled step.
    pub(crate) step: Step,
    /// Duration and CPU time of the command.
    pub(crate) output: Output,
    /// Daemons that the command started: FUSE daemons, which write their data when they exit, which
    /// is after the unmount, and programs that accompany a mount, such as the cleaner of NILFS2.
    pub(crate) daemons: Vec<u32>,
}

impl JournaledHost {
    /// Runs a mount command and checks what it mounted.
    ///
    /// # Errors
    /// [`RigError::MountCommand`] if the command fails, mounts nothing, or mounts another
    /// filesystem than the plan names. All mounts that the command made are undone then.
    pub(crate) fn mount_by(&mut self, command: &MountCommand) -> Result<CommandMount, RigError> {
        let text = command.argv.join(" ");
        let failed = |why| RigError::MountCommand { command: text.clone(), why };
        let before = self.host.mounts();
        let before =
            before.map_err(|error| failed(format!("cannot read the mount table: {error}")))?;
        command.check_before(&before).map_err(failed)?;
        let earlier = Processes::of(&*self.host);
        if let Err(error) = self.host.adopt_orphans() {
            tracing::debug!(%error, "daemons count as other processes");
        }
        let change = |device| Change::CommandMount {
            target: command.target.clone(),
            fstype: command.fstype.clone(),
            device,
            umount: command.umount.clone(),
        };
        let step = self.journal.plan(change(None))?;
        let done = match self.run(&command.argv) {
            Ok(output) if output.success() => {
                self.find_mount(command, &before).map_err(failed).and_then(|(device, waited)| {
                    self.journal.update(step, change(Some(device)))?;
                    Ok(Output { elapsed: output.elapsed + waited, ..output })
                })
            }
            Ok(output) => Err(failed(output.verdict())),
            Err(error) => Err(error),
        };
        let started = earlier.daemons_since(&*self.host);
        match done {
            Ok(output) => Ok(CommandMount { step, output, daemons: started }),
            Err(error) => {
                // Also undoes mounts that the command made in other places.
                if let Err(error) = self.undo(step, format!("`{text}`")) {
                    tracing::warn!(%error, "a refused mount was not undone");
                }
                self.wait_for_exit(&started);
                Err(error)
            }
        }
    }

    /// Waits for the mount that a command made, and checks it. Returns its device number and the
    /// time until it appeared.
    fn find_mount(
        &self,
        command: &MountCommand,
        before: &[MountEntry],
    ) -> Result<(String, Nanos), String> {
        let mut waited = Nanos(0);
        for check in 0.. {
            let after = self.host.mounts();
            let after = after.map_err(|error| format!("cannot read the mount table: {error}"))?;
            match command.check_after(before, &after)? {
                Some(mount) => return Ok((mount.device.clone(), waited)),
                None if check == MOUNT_TRIES => {
                    return Err(command.nothing_mounted(before, &after));
                }
                None => self.host.sleep(PAUSE),
            }
            waited = waited + PAUSE;
        }
        unreachable!("the loop ends after {MOUNT_TRIES} checks")
    }

    /// Journals the mount of a command that was not checked, as a kill leaves it.
    #[cfg(test)]
    pub(crate) fn plan_mount(&mut self, fstype: &str, target: &Path) -> Result<Step, RigError> {
        self.journal.plan(Change::CommandMount {
            target: target.to_owned(),
            fstype: fstype.to_owned(),
            device: None,
            umount: Vec::new(),
        })
    }

    /// Runs an unmount command, with retries while the mount point is busy, and waits until the
    /// daemons have exited. Returns the duration of the last call and its CPU time.
    pub(crate) fn unmount_by(
        &mut self,
        step: Step,
        argv: &[String],
        target: &Path,
        daemons: &[u32],
    ) -> Result<(Nanos, Option<ProgramTime>), RigError> {
        // As in `unmount`.
        let _ = self.host.thaw(target);
        let mut tries = 0;
        let output = loop {
            let output = self.run_and_reap(argv, daemons)?;
            if output.success() {
                break output;
            }
            if tries == TRIES || !self.is_mounted(target) {
                let (command, why) = (argv.join(" "), output.verdict());
                return Err(RigError::UmountCommand { command, why });
            }
            tries += 1;
            self.host.sleep(PAUSE);
        };
        if self.is_mounted(target) {
            let why = format!("it succeeded, but {} is still mounted", target.display());
            return Err(RigError::UmountCommand { command: argv.join(" "), why });
        }
        self.undo(step, format!("mount on {}", target.display()))?;
        let waited = self.wait_for_exit(daemons);
        Ok((output.elapsed + waited, output.cpu))
    }

    /// Runs a program. While it runs, daemons that end are removed from the process table: they are
    /// children of this process, and umount.nilfs2(8) waits until the cleaner no longer exists.
    fn run_and_reap(&mut self, argv: &[String], daemons: &[u32]) -> Result<Output, RigError> {
        if daemons.is_empty() {
            return self.run(argv);
        }
        let (host, done) = (Arc::clone(&self.host), AtomicBool::new(false));
        thread::scope(|scope| {
            let reap = || {
                while !done.load(Relaxed) {
                    daemons.iter().for_each(|process| host.reap(*process));
                    host.sleep(REAP_INTERVAL);
                }
            };
            scope.spawn(reap);
            let output = self.run(argv);
            done.store(true, Relaxed);
            output
        })
    }

    /// Waits until processes have exited, at most 5 s. Returns the time.
    pub(crate) fn wait_for_exit(&mut self, processes: &[u32]) -> Nanos {
        let (start, poll) = (self.host.now(), Nanos(PAUSE.0 / 100));
        let alive = |host: &dyn Host| processes.iter().any(|process| serves(host, *process));
        while alive(&*self.host) && (self.host.now() - start).0 < PAUSE.0 * u64::from(TRIES) {
            self.host.sleep(poll);
        }
        processes.iter().for_each(|process| self.host.reap(*process));
        let waited = self.host.now() - start;
        if !processes.is_empty() {
            self.note("wait for the daemon to exit", waited);
        }
        waited
    }

    fn is_mounted(&self, target: &Path) -> bool {
        let mounts = self.host.mounts().unwrap_or_default();
        mounts.iter().any(|mount| mount.target == target)
    }
}

/// Processes that are or may become daemons, in ascending order. Processes of other users are not
/// visible without root.
struct Processes {
    /// Processes that have `/dev/fuse` open, and children of this process in another session, which
    /// daemons create (daemon(7)).
    daemons: Vec<u32>,
    /// Children of this process in its session.
    children: Vec<u32>,
}

impl Processes {
    /// Processes that exist now.
    fn of(host: &dyn Host) -> Self {
        let own = family(host, Path::new("/proc/self")).map(|(_, session)| session);
        let names = host.list(Path::new("/proc")).unwrap_or_default();
        let mut processes: Vec<u32> = names.iter().filter_map(|name| name.parse().ok()).collect();
        processes.sort_unstable();
        let mut found = Self { daemons: Vec::new(), children: Vec::new() };
        for process in processes {
            let directory = Path::new("/proc").join(process.to_string());
            let family = family(host, &directory);
            let child = family.filter(|(parent, _)| *parent == host.pid());
            // A program that another thread waits for is in this session, and is never reaped here.
            if child.is_some_and(|(_, session)| Some(session) == own) {
                if serves(host, process) {
                    found.children.push(process);
                }
            } else if child.is_some() || has_fuse(host, &directory) {
                found.daemons.push(process);
            }
        }
        found
    }

    /// Daemons that were started since then. A child that a command left may not have created its
    /// session yet, so new children in this session are waited for.
    fn daemons_since(&self, host: &dyn Host) -> Vec<u32> {
        let mut tries = 0;
        loop {
            let Self { mut daemons, children } = Self::of(host);
            if tries == SESSION_TRIES || children.iter().all(|child| self.children.contains(child))
            {
                daemons.retain(|process| !self.daemons.contains(process));
                return daemons;
            }
            tries += 1;
            host.sleep(PAUSE);
        }
    }
}

/// True if the process with this directory in `/proc` has `/dev/fuse` open.
fn has_fuse(host: &dyn Host, directory: &Path) -> bool {
    let files = directory.join("fd");
    let fuse = |name| host.follow(&files.join(name)).is_ok_and(|path| path.ends_with("dev/fuse"));
    host.list(&files).unwrap_or_default().iter().any(fuse)
}

/// Parent and session of a process, from its directory in `/proc` (proc_pid_stat(5)).
fn family(host: &dyn Host, directory: &Path) -> Option<(u32, u32)> {
    let text = host.read(&directory.join("stat")).ok()?;
    // State, parent, process group, and session follow the name, which is in parentheses.
    let mut numbers = text.rsplit_once(") ")?.1.split(' ').skip(1).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.nth(1)?.ok()?))
}

/// True if the process exists and is not a zombie, whose files are closed.
fn serves(host: &dyn Host, process: u32) -> bool {
    let stat = host.read(&Path::new("/proc").join(process.to_string()).join("stat"));
    // The state follows the name, which is in parentheses (proc_pid_stat(5)).
    let state = stat.ok().and_then(|text| text.rsplit_once(") ").map(|(_, rest)| rest.to_owned()));
    state.is_some_and(|rest| !rest.starts_with(['Z', 'X']))
}
