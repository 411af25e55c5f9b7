//! Guests of a run: kernels, initramfs, and disks.

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context;
use guest::{
    Architecture, Cache, Disk, Engine, GuestSpec, Kernel, KernelQuery, Machine, Ready,
    in_guest::GuestConfig,
    initramfs::{self, Contents},
    kernel::KnownKernel,
    modules::Index,
};
use model::{
    Bytes, Clock, Environment, GuestKind, Nanos, StorageKind, SystemSetting, Value,
    matrix::LabeledCell,
};
use rig::Catalog;

use super::{
    disks::{GuestDisks, MEMORY},
    requirements::GuestRequirements,
};
use crate::{exit::Failure, output, plans::ResolvedPlan, runner::now_unix};

/// Argument that makes this program the worker of a guest.
const WORKER: &str = "guest-worker";
/// Common configuration of all guests of a run.
#[derive(Debug)]
pub(crate) struct GuestFactory {
    engine: Engine,
    ready: Ready,
    kernels: Vec<Booted>,
    programs: Vec<String>,
    files: Vec<String>,
    /// Modules for the disks, required at boot.
    disks_take: Vec<String>,
    /// Modules for the filesystems under test.
    modules: Vec<String>,
    memory: Bytes,
    disks: GuestDisks,
    /// Directory of the images and other files of the guests.
    directory: PathBuf,
    interrupt: Arc<AtomicBool>,
}

/// Kernel of the plan with its modules.
#[derive(Debug)]
struct Booted {
    /// Name in the plan; `None` for the newest kernel.
    named: Option<String>,
    /// Name in the run: the release, with the start of the hash if several kernels have the same
    /// release.
    name: String,
    kernel: Kernel,
    index: Index,
}

impl GuestFactory {
    /// Locates everything that the guests need. No guest is booted.
    ///
    /// # Errors
    /// If the plan cannot be measured in a guest, or a requirement is missing.
    pub(crate) fn new(
        chosen: &ResolvedPlan,
        kind: GuestKind,
        catalog: &Catalog,
        run: &str,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<Self, Failure> {
        let disks = GuestDisks::of_plan(chosen)?;
        let cache = Cache::new(Cache::default_directory());
        let names = kernels(chosen);
        let engines = engines(kind, &names, || Kernel::known(&cache, interrupt));
        let chosen_guest = choose(&engines, &cache, |engine| disks.memory(engine))?;
        let SelectedGuest { engine, ready, memory, instead_of } = chosen_guest;
        if let Some(reason) = instead_of {
            output::message(&format!("using {} guests: {reason}", engine.name()));
        }
        let architecture = engine.architecture();
        let mut found = Vec::new();
        for named in names {
            found.push(Booted::find(named, architecture, &cache, interrupt)?);
        }
        disambiguate(&mut found);
        let GuestRequirements { programs, files, modules } =
            GuestRequirements::of_plan(&chosen.plan, catalog);
        let directory =
            place(disks.directory.as_deref(), disks.total()).join(format!("fslab-guest-{run}"));
        Ok(Self {
            engine,
            ready,
            kernels: found,
            programs: programs.into_iter().collect(),
            files: files.into_iter().collect(),
            disks_take: GuestRequirements::of_disks(engine).modules.into_iter().collect(),
            modules: modules.into_iter().collect(),
            memory,
            disks,
            directory,
            interrupt: Arc::clone(interrupt),
        })
    }

    /// Kind of virtual machine.
    pub(crate) fn engine(&self) -> Engine {
        self.engine
    }

    /// Unit of the guest clock.
    pub(crate) fn clock(&self) -> Clock {
        self.disks.clock
    }

    /// Latency per request of the disk of an icount guest, if any.
    pub(crate) fn latency(&self) -> Option<Nanos> {
        self.disks.latency()
    }

    /// Number of concurrent guests. Icount guests do not affect each other, so there is one per
    /// CPU, or fewer if half of the available memory is not sufficient. Other guests run one at a
    /// time, because they share CPUs and disks.
    pub(crate) fn concurrency(&self) -> usize {
        if self.engine != Engine::Icount {
            return 1;
        }
        let fit = guest::memory_available().map_or(1, |free| free.0 / 2 / self.memory.0.max(1));
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        processors.min(usize::try_from(fit).unwrap_or(usize::MAX)).max(1)
    }

    /// Names of the kernels in the run.
    pub(crate) fn kernels(&self) -> Vec<String> {
        self.kernels.iter().map(|booted| booted.name.clone()).collect()
    }

    /// Replaces the kernel name of the plan in a cell and its label by the name in the run. A
    /// single kernel is a fact of the run and does not distinguish its cells.
    pub(crate) fn rename_kernel(&self, labelled: &mut LabeledCell) {
        let settings = &mut labelled.cell.settings;
        let named = settings.remove(&SystemSetting::Kernel).map(|value| value.to_string());
        if self.kernels.len() > 1
            && let Some(booted) = self.kernels.iter().find(|booted| booted.named == named)
        {
            settings.insert(SystemSetting::Kernel, Value::Word(booted.name.clone()));
            let named = named.unwrap_or_default();
            labelled.label = labelled.label.replace(&named, &booted.name);
        }
    }

    /// Description of the storage.
    pub(crate) fn describe(&self) -> String {
        self.disks.describe(self.engine)
    }

    /// Disks as seen inside a guest.
    pub(crate) fn place(&self) -> StorageKind {
        StorageKind::Devices { paths: self.disks.paths(self.engine) }
    }

    /// Boots a guest with a kernel on empty disks. `called` is the name of the kernel, `None` if
    /// the run has only one. `slot` distinguishes concurrent guests. Returns the machine with its
    /// environment facts.
    ///
    /// # Errors
    /// If a file cannot be read, or the guest does not boot.
    pub(crate) fn boot(
        &self,
        slot: usize,
        called: Option<&str>,
    ) -> anyhow::Result<(Machine, Environment)> {
        let fits = |booted: &&Booted| called.is_none_or(|name| booted.name == name);
        let booted = self.kernels.iter().find(fits).with_context(|| {
            let (called, known) = (called.unwrap_or_default(), self.kernels().join(", "));
            format!("the run started with kernel {called}, but the plan now has {known}")
        })?;
        let device = self.disks.device(self.engine);
        let order = |if_there: &[&str]| {
            booted.index.order_with(device.modules(), if_there).map_err(|absent| {
                let absent = absent.join(", ");
                anyhow::anyhow!("kernel {} has no {absent}", booted.kernel.release)
            })
        };
        let all: Vec<&str> = self.disks_take.iter().chain(&self.modules).map(|it| &**it).collect();
        let modules = order(&all)?;
        let at_start = match self.engine {
            // All modules are loaded at the start, so that the cost of a trial does not depend on
            // the filesystems of earlier trials.
            Engine::Icount => modules.clone(),
            Engine::Kvm | Engine::Tcg | Engine::Uml => order(&all[..self.disks_take.len()])?,
        };
        let config = GuestConfig {
            seed: seed()?,
            unix_time_ns: Some(now_unix().0),
            hostname: "guest".into(),
            worker: vec![WORKER.into()],
            parameters: Vec::new(),
            device,
        };
        let program = std::env::current_exe().context("locating the program")?;
        let archive = initramfs::build(&Contents {
            program: &program,
            programs: &self.programs,
            files: &self.files,
            modules: &modules,
            at_start: &at_start,
            on_demand: &booted.index,
            config: &config.to_text(),
        })?;
        let disks = self.images()?;
        let wanted = GuestSpec {
            engine: self.engine,
            kernel: &booted.kernel,
            initramfs: &archive.bytes,
            memory: self.memory,
            cpus: 1,
            disks,
            append: Vec::new(),
            directory: match slot {
                0 => self.directory.clone(),
                slot => self.directory.with_added_extension(slot.to_string()),
            },
        };
        let machine = Machine::boot(&wanted, &self.ready, Arc::clone(&self.interrupt))?;
        let mut facts = machine.facts();
        if self.engine == Engine::Icount {
            self.describe_disk(&mut facts);
        }
        let took = machine.boot_time().as_millis();
        facts.set("guest.boot_time_ms", took.to_string());
        facts.set("guest.kernel_origin", booted.kernel.origin.clone());
        let names: Vec<&str> = modules.iter().map(|module| module.name.as_str()).collect();
        facts.set("guest.modules", names.join(" "));
        output::message(&format!(
            "guest ({}) with kernel {} booted in {:.1} s",
            self.engine.name(),
            booted.kernel.release,
            machine.boot_time().as_secs_f64()
        ));
        Ok((machine, facts))
    }

    /// Environment facts about the disk and the clock of an icount guest.
    fn describe_disk(&self, facts: &mut Environment) {
        facts.set(Clock::FACT, self.disks.clock.name());
        facts.set("guest.disk", self.disks.icount.device.unwrap_or_default().name());
        facts.set("guest.disk_latency_ns", self.disks.icount.latency().0.to_string());
        if let Some(latency) = self.latency() {
            facts.set("guest.unit", format!("virtual ns on a device of {latency}"));
        }
    }

    /// Creates new, empty disk images.
    fn images(&self) -> anyhow::Result<Vec<Disk>> {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt};
        if self.engine == Engine::Icount {
            return Ok(Vec::new());
        }
        let directory = &self.directory;
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.with_context(|| format!("creating {}", directory.display()))?;
        // Every user can create directories and links in `/dev/shm`.
        let facts = fs::symlink_metadata(directory)?;
        anyhow::ensure!(
            facts.is_dir() && facts.uid() == rustix::process::geteuid().as_raw(),
            "{} is not a directory of this user; use another one (storage.image_directory)",
            directory.display()
        );
        let image = |number: u32| {
            let file = directory.join(format!("disk{number}.img"));
            // The file may be an image of the previous boot, or a link created by another user.
            let _gone = fs::remove_file(&file);
            let made =
                fs::File::create_new(&file).and_then(|image| image.set_len(self.disks.size.0));
            made.with_context(|| format!("creating {}", file.display()))?;
            // User-mode Linux discards in pieces of 32 KiB, which takes longer than creating a
            // filesystem.
            let discards = self.engine != Engine::Uml;
            Ok(Disk { file, synced: false, discards })
        };
        (0..self.disks.count).map(image).collect()
    }
}

impl Drop for GuestFactory {
    fn drop(&mut self) {
        for number in 0..self.disks.count {
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
        let asked = named.as_deref().map_or(KernelQuery::Newest, KernelQuery::Text);
        let kernel = Kernel::find(asked, architecture, cache, interrupt);
        let kernel = kernel.map_err(Failure::usage)?;
        let index = match &kernel.modules {
            Some(folder) => Index::read(folder, Some(cache.directory()))?,
            None => Index::empty(),
        };
        Ok(Self { named, name: kernel.release.clone(), kernel, index })
    }
}

/// Checks that a kind of guest can run on this host with a kernel.
///
/// # Errors
/// The missing component, with a hint.
pub(super) fn check_available(
    kind: GuestKind,
    kernel: Option<&str>,
    interrupt: &AtomicBool,
) -> Result<(), Failure> {
    let cache = Cache::new(Cache::default_directory());
    let kernel = kernel.map(str::to_owned);
    let engines = engines(kind, std::slice::from_ref(&kernel), || Kernel::known(&cache, interrupt));
    let engine = choose(&engines, &cache, |_| MEMORY)?.engine;
    Booted::find(kernel, engine.architecture(), &cache, interrupt).map(drop)
}

/// Makes the names of kernels with the same release unique.
fn disambiguate(kernels: &mut [Booted]) {
    let releases: Vec<String> =
        kernels.iter().map(|booted| booted.kernel.release.clone()).collect();
    for booted in kernels {
        let release = &booted.kernel.release;
        if releases.iter().filter(|other| *other == release).count() > 1 {
            booted.name = format!("{release}-{:.8}", booted.kernel.hash);
        }
    }
}

/// Distinct kernels of the cells. Cells without a kernel use the newest, `None`.
fn kernels(chosen: &ResolvedPlan) -> Vec<Option<String>> {
    let mut kernels = Vec::new();
    for labelled in &chosen.cells {
        let named = super::kernel_of(&labelled.cell);
        if !kernels.contains(&named) {
            kernels.push(named);
        }
    }
    kernels
}

/// Selected kind of virtual machine.
struct SelectedGuest {
    engine: Engine,
    ready: Ready,
    memory: Bytes,
    /// Reason why the preceding kind in the order of preference was not selected.
    instead_of: Option<String>,
}

/// Guests of a plan, for `fslab show`.
pub(crate) struct PlannedGuests {
    /// Description of the storage.
    pub(crate) storage: String,
    /// Kernels as in the plan; `None` for the newest.
    pub(crate) kernels: Vec<Option<String>>,
    /// Paths of the disks inside a guest.
    pub(crate) disks: Vec<String>,
    /// True if the disks are in the memory of the guest.
    pub(crate) in_memory: bool,
}

/// Guests that a plan would use. Nothing is unpacked or booted.
///
/// # Errors
/// If the plan cannot be measured in a guest, or a requirement is missing.
pub(super) fn planned(
    chosen: &ResolvedPlan,
    kind: GuestKind,
    interrupt: &AtomicBool,
) -> Result<PlannedGuests, Failure> {
    let disks = GuestDisks::of_plan(chosen)?;
    let cache = Cache::new(Cache::default_directory());
    let kernels = kernels(chosen);
    let engines = engines(kind, &kernels, || Kernel::known(&cache, interrupt));
    let engine = choose(&engines, &cache, |engine| disks.memory(engine))?.engine;
    Ok(PlannedGuests {
        storage: disks.describe(engine),
        kernels,
        disks: disks.paths(engine),
        in_memory: engine == Engine::Icount,
    })
}

/// Virtual machines of a kind of guest, in the order of preference. If only some of them can boot
/// all these versions, the others are omitted.
fn engines(
    kind: GuestKind,
    versions: &[Option<String>],
    known: impl Fn() -> Vec<KnownKernel>,
) -> Vec<Engine> {
    let engines = match kind {
        GuestKind::Auto => vec![Engine::Kvm, Engine::Uml, Engine::Tcg],
        GuestKind::Kvm => vec![Engine::Kvm],
        GuestKind::Icount => vec![Engine::Icount],
        GuestKind::Uml => vec![Engine::Uml],
        GuestKind::Tcg => vec![Engine::Tcg],
    };
    let versions: Vec<&String> = versions.iter().flatten().collect();
    if engines.len() == 1 || versions.is_empty() {
        return engines;
    }
    let known = known();
    let boots = |engine: &Engine| {
        let own = known.iter().filter(|it| it.architecture == engine.architecture());
        versions.iter().all(|version| own.clone().any(|kernel| kernel.matches(version)))
    };
    let able: Vec<Engine> = engines.iter().copied().filter(boots).collect();
    if able.is_empty() { engines } else { able }
}

/// Selects the first virtual machine that can run here, with its memory.
fn choose(
    wanted: &[Engine],
    cache: &Cache,
    memory: impl Fn(Engine) -> Bytes,
) -> Result<SelectedGuest, Failure> {
    let mut reasons = Vec::new();
    for engine in wanted {
        let memory = memory(*engine);
        match engine.preflight(memory, Some(cache.directory())) {
            Ok(ready) => {
                let (engine, instead_of) = (*engine, reasons.pop());
                return Ok(SelectedGuest { engine, ready, memory, instead_of });
            }
            Err(error) => reasons.push(crate::exit::chain(&error)),
        }
    }
    Err(Failure::usage(anyhow::anyhow!("{}", reasons.join("\n  "))))
}

/// Directory of the images: that of the plan. Without one, it is a directory in memory if more than
/// twice the total size is free there, and otherwise the directory of temporary files.
fn place(named: Option<&str>, total: Bytes) -> PathBuf {
    const IN_MEMORY: &str = "/dev/shm";
    if let Some(named) = named {
        return named.into();
    }
    let free = rustix::fs::statvfs(IN_MEMORY).map(|space| space.f_bavail * space.f_frsize);
    match free {
        Ok(free) if free / 2 > total.0 => IN_MEMORY.into(),
        Ok(_) | Err(_) => std::env::temp_dir(),
    }
}

/// Random bytes of the host, for a guest without an entropy source.
fn seed() -> anyhow::Result<[u8; 64]> {
    use std::io::Read;
    let mut seed = [0; 64];
    let read = fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut seed));
    read.context("reading /dev/urandom")?;
    Ok(seed)
}

#[cfg(test)]
mod tests {
    use guest::kernel::Origin;

    use super::*;

    #[test]
    fn the_kind_of_guest_fits_the_listed_kernel() {
        let known = |release: &str, architecture| KnownKernel {
            release: release.into(),
            architecture,
            origin: Origin::Package("package".into()),
            modules: None,
            size: Bytes(0),
        };
        let known =
            || vec![known("6.12.9-fslab", Architecture::Uml), known("6.1.0", Architecture::Pc)];
        let of = |kind, versions: &[&str]| {
            let versions: Vec<_> = versions.iter().map(|it| Some((*it).to_owned())).collect();
            engines(kind, &versions, known)
        };
        let pc = [Engine::Kvm, Engine::Tcg];
        assert_eq!(of(GuestKind::Auto, &["6.12.9-fslab"]), [Engine::Uml]);
        assert_eq!(of(GuestKind::Auto, &["6.1"]), pc);
        assert_eq!(of(GuestKind::Tcg, &["6.12"]), [Engine::Tcg], "as requested");
        let all = [Engine::Kvm, Engine::Uml, Engine::Tcg];
        for versions in [&[][..], &["6.12", "6.1"], &["linux.deb"]] {
            assert_eq!(of(GuestKind::Auto, versions), all);
        }
    }
}
