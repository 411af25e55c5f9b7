//! Running guest machine: boot, requests, and shutdown.
//!
//! The inputs are a [`GuestSpec`] (kernel, initramfs, image files) and a [`Ready`] (engine that was
//! checked on this host). The result is a [`Machine`], whose init process replies to requests.
//! Requests and replies are bytes, whose meaning this crate does not define. The guest runs under a
//! [`supervisor`](crate::supervisor), so that it ends when the [`Machine`] is dropped and when this
//! process is killed.

mod channel;
mod engine;
mod files;
mod launch;
mod preflight;
mod stacks;

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use model::{Bytes, Environment, Nanos};

use crate::{
    GuestError, Kernel, kvm,
    mailbox::Heartbeat,
    supervisor::{Isolation, Supervisor, SupervisorSpec},
};
use channel::HostChannel;
use launch::Launch;
pub use preflight::{Memory, Ready, memory_available};

/// Engine that runs the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// Hardware virtualization through `/dev/kvm`, in QEMU.
    Kvm,
    /// QEMU's emulator (TCG), one thread per CPU.
    Tcg,
    /// QEMU's emulator with one CPU whose clock counts instructions (`-icount`).
    Icount,
    /// User-mode Linux: the kernel as a process.
    Uml,
}

/// Specification of a guest.
#[derive(Clone, Debug)]
pub struct GuestSpec<'a> {
    /// Engine that runs the guest.
    pub engine: Engine,
    /// Kernel to boot.
    pub kernel: &'a Kernel,
    /// Initramfs, an archive in the `newc` format.
    pub initramfs: &'a [u8],
    /// Memory, rounded down to whole mebibytes.
    pub memory: Bytes,
    /// Number of CPUs; user-mode Linux and icount guests have one.
    pub cpus: u32,
    /// Disks, in order. Each guest has one more disk, the mailbox, through which it exchanges
    /// messages with the host. The list is empty for icount guests. They create their devices in
    /// memory, because their clock does not advance while the host reads or writes a file.
    pub disks: Vec<Disk>,
    /// Additional words of the kernel command line.
    pub append: Vec<String>,
    /// Directory for the files of the running guest. If it does not exist, it is created for this
    /// user only. The directory is removed at the end unless it contains other files.
    ///
    /// The caller removes disk images in the directory. If this process is killed, the supervisor
    /// removes them. If root boots the guest, the guest runs as `nobody`. `nobody` becomes the
    /// owner of images in the directory, and must be able to read and write all other images.
    pub directory: PathBuf,
}

/// Disk of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Image file.
    pub file: PathBuf,
    /// True if each write is durable on the host before the guest sees its completion.
    pub synced: bool,
    /// True if the guest may discard space.
    pub discards: bool,
}

/// Time limits for signs of life of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum time without a heartbeat, which is sent every second.
    pub silence: Duration,
    /// Maximum time without a change of the heartbeat text, which names the current step. A mount
    /// that hangs does not stop the heartbeat.
    pub step: Duration,
}

impl Default for Limits {
    /// 60 s without a heartbeat, and 30 minutes per step. The first limit is long, because emulated
    /// guests send heartbeats late on a busy host.
    fn default() -> Self {
        Self { silence: Duration::from_secs(60), step: Duration::from_secs(30 * 60) }
    }
}

/// Time limit for a guest to power off on request.
const POWERING_OFF: Duration = Duration::from_secs(5);
/// Time limit for a kernel to end after a panic. It reboots at once (`panic=-1`) after it has
/// printed registers and the stack.
const PANICKING: Duration = Duration::from_secs(2);
/// First interval between polls of the mailbox. The interval doubles up to a maximum, so that
/// polling takes little CPU time from the guest.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
const POLL_INTERVAL_MAX: Duration = Duration::from_millis(20);
/// Step reported before the first heartbeat.
const BOOTING: &str = "booting";

/// A running guest. Dropping the value ends the guest.
#[derive(Debug)]
pub struct Machine {
    supervisor: Supervisor,
    channel: HostChannel,
    facts: Environment,
    interrupt: Arc<AtomicBool>,
    heartbeat: Heartbeat,
    last_heartbeat: Instant,
    last_step: Instant,
    /// Control socket of user-mode Linux.
    control: Option<PathBuf>,
    boot_time: Duration,
}

impl Machine {
    /// Boots the guest and waits for its first heartbeat.
    ///
    /// # Errors
    /// [`GuestError::Unusable`] if the engine does not support the specification,
    /// [`GuestError::Io`] if the guest's files cannot be created, and the errors of
    /// [`Self::request`].
    pub fn boot(
        guest: &GuestSpec<'_>,
        ready: &Ready,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Self, GuestError> {
        let mut launch = Launch::of(guest, ready)?;
        let isolation = Isolation::here();
        launch.facts.set("guest.isolation", files::isolation(isolation));
        let group = if guest.engine == Engine::Kvm { kvm::group()? } else { None };
        let mut spec = SupervisorSpec {
            directory: guest.directory.clone(),
            machine: files::arguments(guest, isolation, launch.arguments),
            own: [INITRAMFS, MAILBOX, UML, KERNEL].map(PathBuf::from).to_vec(),
            identity: isolation.identity(group),
            // Only images in the directory are removed: images in other directories may be
            // valuable.
            orphans: guest.disks.iter().map(|disk| disk.file.clone()).collect(),
            ..SupervisorSpec::default()
        };
        spec.orphans.retain(|file| file.parent() == Some(&guest.directory));
        ready.place_memory(&mut spec, guest.memory);
        // Existing files belong to another user or run, and the supervisor would remove them.
        let there = |file: &&PathBuf| fs::symlink_metadata(guest.directory.join(file)).is_ok();
        if let Some(file) = spec.own.iter().find(there) {
            let what =
                format!("{} contains `{}` already", guest.directory.display(), file.display());
            let hint = "remove it, or use another directory".to_owned();
            return Err(GuestError::Missing { what, hint });
        }
        let mut supervisor = Supervisor::spawn(&spec)?;
        let channel = files::make(guest, &spec)?;
        let start = Instant::now();
        supervisor.start()?;
        let mut machine = Self {
            supervisor,
            channel,
            facts: launch.facts,
            interrupt,
            heartbeat: Heartbeat { count: 0, text: BOOTING.into() },
            last_heartbeat: start,
            last_step: start,
            control: (guest.engine == Engine::Uml)
                .then(|| guest.directory.join(UML).join(UML_NAME)),
            boot_time: Duration::ZERO,
        };
        let limits = Limits { silence: guest.engine.boot_limit(), ..Limits::default() };
        machine
            .poll(limits, &mut |_| {}, |machine| Ok((machine.heartbeat.count > 0).then_some(())))?;
        machine.boot_time = start.elapsed();
        Ok(machine)
    }

    /// Sends a request and waits for its reply. `on_step` is called with each new text of the
    /// heartbeat.
    ///
    /// # Errors
    /// - [`GuestError::Ended`] if the guest ends or its kernel panics,
    /// - [`GuestError::Silent`] and [`GuestError::Stuck`] if a limit is exceeded. The
    ///   machine cannot be used afterwards, because fslab requests the task stacks of its kernel,
    ///   and user-mode Linux may crash when it prints them,
    /// - [`GuestError::Interrupted`] if the interrupt flag is set,
    /// - [`GuestError::Damaged`] if the request is too long or the reply is incomplete,
    /// - [`GuestError::Io`] if the mailbox cannot be read or written.
    pub fn request(
        &mut self,
        request: &[u8],
        limits: Limits,
        on_step: &mut dyn FnMut(&str),
    ) -> Result<Vec<u8>, GuestError> {
        self.channel.send(request)?;
        self.last_heartbeat = Instant::now();
        self.last_step = self.last_heartbeat;
        self.poll(limits, on_step, |machine| machine.channel.reply())
    }

    /// Polls until `outcome` returns a value, the guest ends, a limit is exceeded, or the interrupt
    /// flag is set.
    fn poll<T>(
        &mut self,
        limits: Limits,
        on_step: &mut dyn FnMut(&str),
        outcome: impl Fn(&Self) -> Result<Option<T>, GuestError>,
    ) -> Result<T, GuestError> {
        let mut pause = POLL_INTERVAL;
        loop {
            if self.interrupt.load(Relaxed) {
                return Err(GuestError::Interrupted);
            }
            let ended = self.supervisor.ended_within(pause);
            self.read_heartbeat(on_step)?;
            // A reply sent before the end is valid.
            if let Some(outcome) = outcome(self)? {
                return Ok(outcome);
            }
            let panicked = self.supervisor.console().panicked().is_some_and(|ago| ago > PANICKING);
            if ended.is_some() || panicked {
                return Err(self.ended(ended));
            }
            if let Some(error) = self.limit_error(limits) {
                return Err(error);
            }
            pause = (pause * 2).min(POLL_INTERVAL_MAX);
        }
    }

    /// Error of a guest that exceeds a limit.
    fn limit_error(&mut self, limits: Limits) -> Option<GuestError> {
        let (silent, stuck) = (self.last_heartbeat.elapsed(), self.last_step.elapsed());
        if silent <= limits.silence && stuck <= limits.step {
            return None;
        }
        let during = self.heartbeat.text.clone();
        // The console is read first, because the stacks become its last lines.
        let last = self.supervisor.console().error_line();
        let control = self.control.as_ref();
        let stacks = control.map(|at| stacks::fetch(at, &mut self.supervisor)).unwrap_or_default();
        let nanos = |time: Duration| Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        Some(if silent > limits.silence {
            GuestError::Silent { silent: nanos(silent), during, last, stacks }
        } else {
            GuestError::Stuck { stuck: nanos(stuck), during, last, stacks }
        })
    }

    fn read_heartbeat(&mut self, on_step: &mut dyn FnMut(&str)) -> Result<(), GuestError> {
        let Some(heartbeat) = self.channel.heartbeat()? else { return Ok(()) };
        if heartbeat.count != self.heartbeat.count {
            self.last_heartbeat = Instant::now();
        }
        if heartbeat.text != self.heartbeat.text {
            self.last_step = Instant::now();
            on_step(&heartbeat.text);
        }
        self.heartbeat = heartbeat;
        Ok(())
    }

    fn ended(&self, status: Option<String>) -> GuestError {
        let line = self.supervisor.console().error_line();
        let last = status.map_or(line.clone(), |status| format!("{line} ({status})"));
        GuestError::Ended { during: self.heartbeat.text.clone(), last }
    }

    /// Time from the start to the first heartbeat. The polling interval makes it up to 20 ms too
    /// long.
    #[must_use]
    pub fn boot_time(&self) -> Duration {
        self.boot_time
    }

    /// The last 256 KiB of the console, without control characters other than line feeds and tabs.
    #[must_use]
    pub fn console(&self) -> String {
        self.supervisor.console().text()
    }

    /// Environment facts of the guest; the keys begin with `guest.`.
    #[must_use]
    pub fn facts(&self) -> Environment {
        self.facts.clone()
    }

    /// Sends an empty request and waits until the guest powers off. If the guest is still running
    /// after the time limit, it is ended.
    ///
    /// # Errors
    /// [`GuestError::Io`] if the guest cannot be ended.
    pub fn halt(mut self) -> Result<(), GuestError> {
        self.channel.send(&[])?;
        // A guest that does not power off is ended below.
        let _ = self.supervisor.ended_within(POWERING_OFF);
        self.supervisor.end()
    }
}

/// Names of a machine's files in its directory, which is also its working directory. With relative
/// paths, the arguments are the same in each run, and the path of the control socket of user-mode
/// Linux is short enough (unix(7): 108 bytes).
const INITRAMFS: &str = "initramfs";
const MAILBOX: &str = "mailbox";
const UML: &str = "uml";
const KERNEL: &str = "kernel";
/// Name of a user-mode Linux machine and of its directory in [`UML`].
const UML_NAME: &str = "guest";

/// True if a path is a regular file.
fn is_file(path: &std::path::Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

#[cfg(test)]
mod tests;
