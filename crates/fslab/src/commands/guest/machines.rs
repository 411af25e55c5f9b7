//! How the guests of a run are made: which kernels, what goes into their first filesystem, which
//! disks.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context;
use guest::{
    Architecture, Cache, Disk, Engine, Kernel, Machine, Named, Ready, Wanted,
    initramfs::{self, Contents},
    inside::{Device, Job},
    modules::Index,
};
use model::{
    Bytes, Clock, Environment, Factor, GuestDevice, GuestDisk, GuestKind, Nanos, Place, Value,
    matrix::Labelled,
};
use rig::Catalogue;

use super::wants::Wants;
use crate::{conductor::now_unix, exit::Failure, output, plans::Chosen};

/// The argument with which this binary becomes the worker of a guest.
const WORKER: &str = "guest-worker";
/// The memory of a guest whose plan does not say: it holds this binary, and leaves room for caches.
pub(super) const MEMORY: Bytes = Bytes::gib(1);
/// What a guest that counts instructions needs beside its disk, which is in its memory.
const BESIDE_DISK: Bytes = Bytes::mib(768);
/// The volatile cache of that disk: with one it is flushed, as most disks are.
const CACHE: Bytes = Bytes::mib(16);
/// Its sectors. The device works sector by sector, which is counted: in those of 512 bytes giving
/// back 320 MiB took 120 M instructions instead of 20, and mkfs a third more. And on so small a
/// disk mkfs makes ext2, ext3, and ext4 of blocks of 1 KiB if it can, as nobody has them.
const SECTOR: Bytes = Bytes(4096);

/// All that guests of one run have in common.
#[derive(Debug)]
pub(crate) struct Machines {
    engine: Engine,
    ready: Ready,
    kernels: Vec<Booted>,
    programs: Vec<String>,
    files: Vec<String>,
    /// Modules for the disks that it is given, which it needs from the start.
    disks_take: Vec<String>,
    /// Modules for what is measured.
    modules: Vec<String>,
    memory: Bytes,
    /// Size and number of the disks.
    disks: (Bytes, u32),
    /// What the disk is of a guest that counts.
    disk: GuestDisk,
    /// What its clock counts.
    clock: Clock,
    /// Where images and all that a machine needs while it runs are.
    directory: PathBuf,
    interrupt: Arc<AtomicBool>,
}

/// A kernel that the plan names, and what is to be put beside it.
#[derive(Debug)]
struct Booted {
    /// As the plan has it; `None` for the newest.
    named: Option<String>,
    /// What it is called in the run: what it says of itself, with the beginning of its hash where
    /// several say the same.
    name: String,
    kernel: Kernel,
    index: Index,
}

impl Machines {
    /// Finds everything; boots nothing.
    ///
    /// # Errors
    /// When the plan cannot be measured in a guest, or something that it takes is missing.
    pub(crate) fn new(
        chosen: &Chosen,
        kind: GuestKind,
        catalogue: &Catalogue,
        run: &str,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let Place::Image { size, count, ref directory, .. } = chosen.storage.place else {
            return Err(Failure::usage(anyhow::anyhow!(
                "a guest's disks are image files, and the plan names other storage; take \
                 storage.image, or leave --guest out"
            )));
        };
        let cache = Cache::new(Cache::default_directory());
        let chosen_guest = choose(kind, &cache, |engine| memory(engine, chosen, size, count))?;
        let ChosenGuest { engine, ready, memory, instead_of } = chosen_guest;
        if let Some(reason) = instead_of {
            output::message(&format!("taking a guest of kind {}: {reason}", engine.name()));
        }
        let names = kernels(chosen);
        let architecture = engine.architecture();
        let mut found = Vec::new();
        for named in names {
            found.push(Booted::find(named, architecture, &cache, interrupt)?);
        }
        tell_apart(&mut found);
        let Wants { programs, files, modules } = Wants::of_plan(&chosen.plan, catalogue);
        let directory = place(directory.as_deref(), Bytes(size.0 * u64::from(count)))
            .join(format!("fslab-guest-{run}"));
        Ok(Self {
            engine,
            ready,
            kernels: found,
            programs: programs.into_iter().collect(),
            files: files.into_iter().collect(),
            disks_take: Wants::of_disks(engine).modules.into_iter().collect(),
            modules: modules.into_iter().collect(),
            memory,
            disks: (size, count),
            disk: chosen.plan.guest_disk,
            clock: chosen.plan.clock(),
            directory,
            interrupt: Arc::clone(interrupt),
        })
    }

    /// What runs them.
    pub(crate) fn engine(&self) -> Engine {
        self.engine
    }

    /// What their clock counts.
    pub(crate) fn clock(&self) -> Clock {
        self.clock
    }

    /// What each request takes on the disk of a guest that counts, if that is anything.
    pub(crate) fn latency(&self) -> Option<Nanos> {
        (self.clock == Clock::Virtual).then(|| self.disk.latency())
    }

    /// How many guests run side by side. Those that count do not notice each other, so there may be
    /// one for each processor, if half of the memory that is free holds them all. Others do, or
    /// have one set of disks.
    pub(crate) fn side_by_side(&self) -> usize {
        if self.engine != Engine::Counted {
            return 1;
        }
        let fit = guest::memory_available().map_or(1, |free| free.0 / 2 / self.memory.0.max(1));
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        processors.min(usize::try_from(fit).unwrap_or(usize::MAX)).max(1)
    }

    /// What the kernels are called.
    pub(crate) fn kernels(&self) -> Vec<String> {
        self.kernels.iter().map(|booted| booted.name.clone()).collect()
    }

    /// Calls the kernel of a cell of the plan what it is called in the run, in its label too. Where
    /// there is but one it is a fact of the run, and does not set its cells apart.
    pub(crate) fn call(&self, labelled: &mut Labelled) {
        let factors = &mut labelled.cell.factors;
        let named = factors.remove(&Factor::Kernel).map(|value| value.to_string());
        if self.kernels.len() > 1
            && let Some(booted) = self.kernels.iter().find(|booted| booted.named == named)
        {
            factors.insert(Factor::Kernel, Value::Word(booted.name.clone()));
            let named = named.unwrap_or_default();
            labelled.label = labelled.label.replace(&named, &booted.name);
        }
    }

    /// What lies under the filesystems, in words.
    pub(crate) fn describe(&self) -> String {
        let (size, count) = self.disks;
        let engine = self.engine.name();
        let what = match (self.engine, count) {
            (Engine::Counted, _) => {
                let answers = match self.latency() {
                    Some(latency) => format!("that takes {latency} for each request"),
                    None => "that answers at once".to_owned(),
                };
                let device = self.disk.device.unwrap_or_default().name();
                format!("a disk of {} ({device}, {answers}) in the memory", size.rough())
            }
            (Engine::Kvm | Engine::Tcg | Engine::Uml, 1) => {
                format!("an image file of {} as the disk", size.rough())
            }
            (Engine::Kvm | Engine::Tcg | Engine::Uml, count) => {
                format!("{count} image files of {} as the disks", size.rough())
            }
        };
        format!("{what} of a guest ({engine}) with memory of {}", self.memory.rough())
    }

    /// The disks, as a guest has them.
    pub(crate) fn place(&self) -> Place {
        let prefix = match self.engine {
            Engine::Uml => "/dev/ubd",
            Engine::Kvm | Engine::Tcg => "/dev/vd",
            Engine::Counted => {
                let path = self.device().path().unwrap_or_default().to_owned();
                return Place::Devices { paths: vec![path] };
            }
        };
        let letters = ('a'..='z').take(self.disks.1 as usize);
        Place::Devices { paths: letters.map(|letter| format!("{prefix}{letter}")).collect() }
    }

    fn device(&self) -> Device {
        match self.engine {
            Engine::Counted => match self.disk.device.unwrap_or_default() {
                GuestDevice::Brd => Device::RamDisk { size: self.disks.0 },
                GuestDevice::NullBlk => Device::NullBlk {
                    size: self.disks.0,
                    latency: self.disk.latency(),
                    cache: CACHE,
                    sector: SECTOR,
                },
            },
            Engine::Kvm | Engine::Tcg | Engine::Uml => Device::None,
        }
    }

    /// Boots a guest with the kernel that is called so, or the only one, on empty disks. What it is
    /// comes with it. Each of those that run side by side has its lane.
    ///
    /// # Errors
    /// When something cannot be read, or the guest does not come up.
    pub(crate) fn boot(
        &self,
        lane: usize,
        called: Option<&str>,
    ) -> anyhow::Result<(Machine, Environment)> {
        let fits = |booted: &&Booted| called.is_none_or(|name| booted.name == name);
        let booted = self.kernels.iter().find(fits).with_context(|| {
            let (called, known) = (called.unwrap_or_default(), self.kernels().join(", "));
            format!("the run began with kernel {called}, and the plan's are now {known}")
        })?;
        let device = self.device();
        let order = |if_there: &[&str]| {
            booted.index.order_with(device.modules(), if_there).map_err(|absent| {
                let absent = absent.join(", ");
                anyhow::anyhow!("kernel {} has no {absent}", booted.kernel.release)
            })
        };
        let all: Vec<&str> = self.disks_take.iter().chain(&self.modules).map(|it| &**it).collect();
        let modules = order(&all)?;
        let at_start = match self.engine {
            // What a trial costs is not to depend on which filesystems were loaded before.
            Engine::Counted => modules.clone(),
            Engine::Kvm | Engine::Tcg | Engine::Uml => order(&all[..self.disks_take.len()])?,
        };
        let job = Job {
            seed: seed()?,
            unix_time_ns: Some(now_unix().0),
            hostname: "guest".into(),
            worker: vec![WORKER.into()],
            parameters: Vec::new(),
            device,
        };
        let program = std::env::current_exe().context("looking for this program")?;
        let archive = initramfs::build(&Contents {
            program: &program,
            programs: &self.programs,
            files: &self.files,
            modules: &modules,
            at_start: &at_start,
            on_demand: &booted.index,
            job: &job.to_text(),
        })?;
        let disks = self.images()?;
        let wanted = Wanted {
            engine: self.engine,
            kernel: &booted.kernel,
            initramfs: &archive.bytes,
            memory: self.memory,
            processors: 1,
            disks,
            append: Vec::new(),
            directory: match lane {
                0 => self.directory.clone(),
                lane => self.directory.with_added_extension(lane.to_string()),
            },
        };
        let machine = Machine::boot(&wanted, &self.ready, Arc::clone(&self.interrupt))?;
        let mut facts = machine.facts();
        if self.engine == Engine::Counted {
            self.tell_disk(&mut facts);
        }
        let took = machine.booted_in().as_millis();
        facts.set("guest.booted_in_ms", took.to_string());
        facts.set("guest.kernel_origin", booted.kernel.origin.clone());
        let names: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
        facts.set("guest.modules", names.join(" "));
        output::message(&format!(
            "guest ({}) with kernel {} is up after {:.1} s",
            self.engine.name(),
            booted.kernel.release,
            machine.booted_in().as_secs_f64()
        ));
        Ok((machine, facts))
    }

    /// What the disk is that counts, and what is counted.
    fn tell_disk(&self, facts: &mut Environment) {
        facts.set(Clock::FACT, self.clock.name());
        facts.set("guest.disk", self.disk.device.unwrap_or_default().name());
        facts.set("guest.disk_latency_ns", self.disk.latency().0.to_string());
        if let Some(latency) = self.latency() {
            facts.set("guest.unit", format!("virtual ns on a device of {latency}"));
        }
    }

    /// The disks, made anew: a guest finds nothing on them.
    fn images(&self) -> anyhow::Result<Vec<Disk>> {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt};
        if self.engine == Engine::Counted {
            return Ok(Vec::new());
        }
        let directory = &self.directory;
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.with_context(|| format!("making {}", directory.display()))?;
        // Every user can make directories in `/dev/shm`, and links to others.
        let facts = fs::symlink_metadata(directory)?;
        anyhow::ensure!(
            facts.is_dir() && facts.uid() == rustix::process::geteuid().as_raw(),
            "{} is not a directory of this user; use another one (storage.image_directory)",
            directory.display()
        );
        let image = |number: u32| {
            let file = directory.join(format!("disk{number}.img"));
            // That of the boot before, or a link that was planted.
            let _gone = fs::remove_file(&file);
            let made = fs::File::create_new(&file).and_then(|image| image.set_len(self.disks.0.0));
            made.with_context(|| format!("making {}", file.display()))?;
            // What user-mode Linux gives back goes in pieces of 32 KiB, which takes it longer than
            // to make a filesystem.
            let discards = self.engine != Engine::Uml;
            Ok(Disk { file, synced: false, discards })
        };
        (0..self.disks.1).map(image).collect()
    }
}

impl Drop for Machines {
    fn drop(&mut self) {
        for number in 0..self.disks.1 {
            let _gone = fs::remove_file(self.directory.join(format!("disk{number}.img")));
        }
        let _gone = fs::remove_dir(&self.directory);
    }
}

impl Booted {
    fn find(
        named: Option<String>,
        architecture: Architecture,
        cache: &Cache,
        interrupt: &AtomicBool,
    ) -> Result<Self, Failure> {
        let asked = named.as_deref().map_or(Named::Newest, Named::Text);
        let kernel = Kernel::find(asked, architecture, cache, interrupt);
        let kernel = kernel.map_err(Failure::usage)?;
        let index = match &kernel.modules {
            Some(folder) => Index::read(folder, Some(cache.directory()))?,
            None => Index::empty(),
        };
        Ok(Self { named, name: kernel.release.clone(), kernel, index })
    }
}

/// Whether a guest of a kind can be had with what this machine has installed.
///
/// # Errors
/// What is missing, and how to get it.
pub(super) fn possible(
    kind: GuestKind,
    kernel: Option<&str>,
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    let cache = Cache::new(Cache::default_directory());
    let engine = choose(kind, &cache, |_| MEMORY)?.engine;
    let kernel = kernel.map(str::to_owned);
    Booted::find(kernel, engine.architecture(), &cache, interrupt).map(drop)
}

/// Gives kernels that call themselves the same names of their own.
fn tell_apart(kernels: &mut [Booted]) {
    let releases: Vec<String> =
        kernels.iter().map(|booted| booted.kernel.release.clone()).collect();
    for booted in kernels {
        let release = &booted.kernel.release;
        if releases.iter().filter(|other| *other == release).count() > 1 {
            booted.name = format!("{release}-{:.8}", booted.kernel.hash);
        }
    }
}

/// The kernels of the cells, each once; without any, the newest.
fn kernels(chosen: &Chosen) -> Vec<Option<String>> {
    let mut kernels = Vec::new();
    for labelled in &chosen.cells {
        let named = super::kernel_of(&labelled.cell);
        if !kernels.contains(&named) {
            kernels.push(named);
        }
    }
    kernels
}

/// What runs guests.
struct ChosenGuest {
    engine: Engine,
    ready: Ready,
    memory: Bytes,
    /// Why none of the kinds before it, of which the last is told.
    instead_of: Option<String>,
}

/// What runs the guests of a kind, and with how much memory.
fn choose(
    kind: GuestKind,
    cache: &Cache,
    memory: impl Fn(Engine) -> Bytes,
) -> Result<ChosenGuest, Failure> {
    let wanted: &[Engine] = match kind {
        GuestKind::Auto => &[Engine::Kvm, Engine::Uml, Engine::Tcg],
        GuestKind::Kvm => &[Engine::Kvm],
        GuestKind::Counted => &[Engine::Counted],
        GuestKind::Uml => &[Engine::Uml],
        GuestKind::Tcg => &[Engine::Tcg],
    };
    let mut reasons = Vec::new();
    for engine in wanted {
        let memory = memory(*engine);
        match engine.preflight(memory, Some(cache.directory())) {
            Ok(ready) => {
                let (engine, instead_of) = (*engine, reasons.pop());
                return Ok(ChosenGuest { engine, ready, memory, instead_of });
            }
            Err(error) => reasons.push(crate::exit::chain(&error)),
        }
    }
    Err(Failure::usage(anyhow::anyhow!("{}", reasons.join("\n  "))))
}

/// The memory of a guest.
fn memory(engine: Engine, chosen: &Chosen, size: Bytes, count: u32) -> Bytes {
    let own = chosen.storage.memory;
    match engine {
        Engine::Counted => {
            Bytes(own.unwrap_or(BESIDE_DISK).0.saturating_add(size.0 * u64::from(count)))
        }
        Engine::Kvm | Engine::Tcg | Engine::Uml => own.unwrap_or(MEMORY),
    }
}

/// Where the images go: where the plan says, else into memory if they fit in twice, else where
/// temporary files are.
fn place(named: Option<&str>, total: Bytes) -> PathBuf {
    const IN_MEMORY: &str = "/dev/shm";
    if let Some(named) = named {
        return named.into();
    }
    let free = rustix::fs::statvfs(IN_MEMORY).map(|told| told.f_bavail * told.f_frsize);
    match free {
        Ok(free) if free / 2 > total.0 => IN_MEMORY.into(),
        Ok(_) | Err(_) => std::env::temp_dir(),
    }
}

/// Randomness of the host, for a guest that has none.
fn seed() -> anyhow::Result<[u8; 64]> {
    use std::io::Read;
    let mut seed = [0; 64];
    let read = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut seed));
    read.context("reading /dev/urandom")?;
    Ok(seed)
}
