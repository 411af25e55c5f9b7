//! A machine that runs: booted, asked, and ended.
//!
//! A [`Kernel`], an archive, and image files enter as [`Wanted`], and what this host has for an
//! engine as [`Ready`]. A [`Machine`] leaves, whose first process answers what it is asked: bytes
//! go in, bytes come out, and what they mean is up to the binary. It runs in a
//! [`cage`](crate::cage), so that it ends when it is dropped, and when this process is killed.

mod engine;
mod files;
mod launch;
mod link;
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
    GuestError, Kernel,
    cage::{Cage, Isolation, Order},
    kvm,
    mailbox::Heartbeat,
};
use launch::Launch;
use link::Link;
pub use preflight::{Memory, Ready, memory_available};

/// What runs the guest's instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Engine {
    /// The processor itself, through `/dev/kvm`, with QEMU around it.
    Kvm,
    /// QEMU's emulator, one thread for each processor.
    Tcg,
    /// QEMU's emulator with one processor, whose clock counts instructions.
    Counted,
    /// User-mode Linux: the kernel as a program.
    Uml,
}

/// What a guest should be.
#[derive(Clone, Debug)]
pub struct Wanted<'a> {
    /// What runs it.
    pub engine: Engine,
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The first filesystem, an archive in the `newc` format.
    pub initramfs: &'a [u8],
    /// Its memory, of which full mebibytes count.
    pub memory: Bytes,
    /// Its processors; user-mode Linux and counted machines have one.
    pub processors: u32,
    /// Its disks, in order; the mailbox comes after them. Counted machines have none, since the
    /// time at which a file of the host answers is not counted: their devices are made inside.
    pub disks: Vec<Disk>,
    /// More for the kernel's command line.
    pub append: Vec<String>,
    /// A directory for the files that it needs while it runs. It is made if it is not there, for
    /// this user alone, and removed at the end unless something else is in it. Images of disks may
    /// be in it: they are the caller's, but are removed if this process is killed. If root boots,
    /// the guest runs as `nobody`, to whom images in the directory are given; images in other
    /// directories need to be readable and writable for that user.
    pub directory: PathBuf,
}

/// A disk of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// The image file.
    pub file: PathBuf,
    /// Whether each write is durable on the host before the guest hears of it.
    pub synced: bool,
    /// Whether the guest may give space back.
    pub discards: bool,
}

/// How long a guest may leave its host without news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest time without a heartbeat, which is due every second.
    pub silence: Duration,
    /// The longest time for which the text of the heartbeat, which says what is being done, stays
    /// the same: a mount that hangs does not keep the heart from beating.
    pub step: Duration,
}

impl Default for Limits {
    /// 60 s, since emulated guests beat late while others use the host, and 30 minutes.
    fn default() -> Self {
        Self { silence: Duration::from_secs(60), step: Duration::from_secs(30 * 60) }
    }
}

/// How long a guest that was asked to power off may take to.
const POWERING_OFF: Duration = Duration::from_secs(5);
/// How long a kernel that has panicked may take to end: it was told to do so at once (`panic=-1`),
/// and writes registers and the stack before.
const PANICKING: Duration = Duration::from_secs(2);
/// How often the mailbox is looked at: soon at first, then seldom, so that looking does not take
/// processor time from the guest.
const LOOK: Duration = Duration::from_millis(1);
const LOOK_AT_LEAST: Duration = Duration::from_millis(20);
/// What a guest is said to do before its first heartbeat.
const BOOTING: &str = "booting";

/// A guest that runs. Dropping it ends it.
#[derive(Debug)]
pub struct Machine {
    cage: Cage,
    link: Link,
    facts: Environment,
    interrupt: Arc<AtomicBool>,
    beat: Heartbeat,
    beaten: Instant,
    stepped: Instant,
    /// Where user-mode Linux has its control socket.
    control: Option<PathBuf>,
    booted_in: Duration,
}

impl Machine {
    /// Boots, and waits until the guest says that it is up, by its first heartbeat.
    ///
    /// # Errors
    /// [`GuestError::Unusable`] if the engine cannot be or have what is wanted,
    /// [`GuestError::Io`] if its files cannot be made, and what [`Self::ask`] fails with.
    pub fn boot(
        wanted: &Wanted<'_>,
        ready: &Ready,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Self, GuestError> {
        let mut launch = Launch::of(wanted, ready)?;
        let isolation = Isolation::here();
        launch.facts.set("guest.isolation", files::isolation(isolation));
        let group = if wanted.engine == Engine::Kvm { kvm::group()? } else { None };
        let mut order = Order {
            directory: wanted.directory.clone(),
            machine: files::arguments(wanted, isolation, launch.arguments),
            own: [INITRAMFS, MAILBOX, UML, KERNEL].map(PathBuf::from).to_vec(),
            identity: isolation.identity(group),
            // Only those in the directory: others were there before, and may be dear.
            orphans: wanted.disks.iter().map(|disk| disk.file.clone()).collect(),
            ..Order::default()
        };
        order.orphans.retain(|file| file.parent() == Some(&wanted.directory));
        ready.place_memory(&mut order, wanted.memory);
        // What is there is not ours, and the cage would remove it.
        let there = |file: &&PathBuf| fs::symlink_metadata(wanted.directory.join(file)).is_ok();
        if let Some(file) = order.own.iter().find(there) {
            let what = format!("a directory without `{}` in it", file.display());
            let cure = format!("remove it from {}, or name another", wanted.directory.display());
            return Err(GuestError::Missing { what, cure });
        }
        let mut cage = Cage::spawn(&order)?;
        let link = files::make(wanted, &order)?;
        let start = Instant::now();
        cage.start()?;
        let mut machine = Self {
            cage,
            link,
            facts: launch.facts,
            interrupt,
            beat: Heartbeat { count: 0, text: BOOTING.into() },
            beaten: start,
            stepped: start,
            control: (wanted.engine == Engine::Uml)
                .then(|| wanted.directory.join(UML).join(UML_NAME)),
            booted_in: Duration::ZERO,
        };
        let limits = Limits { silence: wanted.engine.boot_limit(), ..Limits::default() };
        machine.until(limits, &mut |_| {}, |machine| Ok((machine.beat.count > 0).then_some(())))?;
        machine.booted_in = start.elapsed();
        Ok(machine)
    }

    /// Sends a request and waits for its answer; `heard` is told each new text of the heartbeat.
    ///
    /// # Errors
    /// - [`GuestError::Ended`] if the guest ends or panics,
    /// - [`GuestError::Silent`] and [`GuestError::Stuck`] if it is beyond a limit; its kernel has
    ///   then been asked for the stacks of its tasks, which it may not survive, and it should be
    ///   dropped,
    /// - [`GuestError::Interrupted`] if the interrupt is set,
    /// - [`GuestError::Damaged`] if the request is too long, or the answer is not whole,
    /// - [`GuestError::Io`] if the file between the two cannot be read or written.
    pub fn ask(
        &mut self,
        request: &[u8],
        limits: Limits,
        heard: &mut dyn FnMut(&str),
    ) -> Result<Vec<u8>, GuestError> {
        self.link.send(request)?;
        self.beaten = Instant::now();
        self.stepped = self.beaten;
        self.until(limits, heard, |machine| machine.link.answer())
    }

    /// Looks until there is an outcome, or none is to be expected any more.
    fn until<T>(
        &mut self,
        limits: Limits,
        heard: &mut dyn FnMut(&str),
        outcome: impl Fn(&Self) -> Result<Option<T>, GuestError>,
    ) -> Result<T, GuestError> {
        let mut pause = LOOK;
        loop {
            if self.interrupt.load(Relaxed) {
                return Err(GuestError::Interrupted);
            }
            let ended = self.cage.ended_within(pause);
            self.listen(heard)?;
            // What was said before the end counts.
            if let Some(outcome) = outcome(self)? {
                return Ok(outcome);
            }
            let panicked = self.cage.console().panicked().is_some_and(|ago| ago > PANICKING);
            if ended.is_some() || panicked {
                return Err(self.ended(ended));
            }
            if let Some(error) = self.beyond(limits) {
                return Err(error);
            }
            pause = (pause * 2).min(LOOK_AT_LEAST);
        }
    }

    /// The error of a guest that is beyond a limit.
    fn beyond(&mut self, limits: Limits) -> Option<GuestError> {
        let (silent, stuck) = (self.beaten.elapsed(), self.stepped.elapsed());
        if silent <= limits.silence && stuck <= limits.step {
            return None;
        }
        let during = self.beat.text.clone();
        // Stacks are not the reason.
        let last = self.cage.console().telling();
        let control = self.control.as_ref();
        let stacks = control.map(|at| stacks::fetch(at, &mut self.cage)).unwrap_or_default();
        let nanos = |time: Duration| Nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        Some(if silent > limits.silence {
            GuestError::Silent { silent: nanos(silent), during, last, stacks }
        } else {
            GuestError::Stuck { stuck: nanos(stuck), during, last, stacks }
        })
    }

    fn listen(&mut self, heard: &mut dyn FnMut(&str)) -> Result<(), GuestError> {
        let Some(beat) = self.link.heartbeat()? else { return Ok(()) };
        if beat.count != self.beat.count {
            self.beaten = Instant::now();
        }
        if beat.text != self.beat.text {
            self.stepped = Instant::now();
            heard(&beat.text);
        }
        self.beat = beat;
        Ok(())
    }

    fn ended(&self, status: Option<String>) -> GuestError {
        let told = self.cage.console().telling();
        let last = status.map_or(told.clone(), |status| format!("{told} ({status})"));
        GuestError::Ended { during: self.beat.text.clone(), last }
    }

    /// From its start to the first heartbeat, 20 ms late at most.
    #[must_use]
    pub fn booted_in(&self) -> Duration {
        self.booted_in
    }

    /// The last 256 KiB of its console, without control characters but line feeds and tabs.
    #[must_use]
    pub fn console(&self) -> String {
        self.cage.console().text()
    }

    /// What it is, for every record of what it measures; the keys begin with `guest.`.
    #[must_use]
    pub fn facts(&self) -> Environment {
        self.facts.clone()
    }

    /// Asks it to power off by an empty request, waits for that, and ends what is left.
    ///
    /// # Errors
    /// [`GuestError::Io`] if it cannot be ended.
    pub fn halt(mut self) -> Result<(), GuestError> {
        self.link.send(&[])?;
        // One that does not is ended anyhow.
        let _ = self.cage.ended_within(POWERING_OFF);
        self.cage.end()
    }
}

/// The files of a machine in its directory, where it runs: so its arguments are the same each time,
/// and a socket of user-mode Linux has a name that is short enough (unix(7): 108 bytes).
const INITRAMFS: &str = "initramfs";
const MAILBOX: &str = "mailbox";
const UML: &str = "uml";
const KERNEL: &str = "kernel";
/// The name of a machine of user-mode Linux, by which its directory in [`UML`] is called.
const UML_NAME: &str = "guest";

/// Whether a path is a regular file, for what is wanted before it is opened by others.
fn is_file(path: &std::path::Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

#[cfg(test)]
mod tests;
