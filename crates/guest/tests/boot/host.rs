//! The tests, on the host's side.
#![expect(clippy::print_stdout, reason = "this is the harness")]

use std::{
    env,
    fs::{self, File, Permissions},
    os::unix::fs::PermissionsExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use guest::{
    Disk, Engine, GuestError, Kernel, Limits, Machine, Wanted,
    cage::Isolation,
    initramfs::{self, Contents, Initramfs},
    inside::{Device, Job},
    kernel::{Architecture, Cache, Named},
    modules::{Index, Presence},
};
use model::{Bytes, Nanos};

use crate::{
    packages::{NO_PACKAGE, packages},
    support::skipped,
    worker::FILESYSTEMS,
};

/// The memory of each guest.
const MEMORY: Bytes = Bytes::mib(768);
/// How long a guest may be silent, and at the same thing.
const LIMITS: Limits = Limits { silence: Duration::from_secs(120), step: Duration::from_secs(120) };

/// How many guests there are at a time.
const LANES: usize = 2;

type Test = fn(&Host<'_>);

/// What runs the guest of a test, and the test. Counted guests boot what emulated ones do.
const TESTS: [(&str, Engine, Test); 9] = [
    ("a_guest_of_root_has_no_rights_on_the_host", Engine::Tcg, no_rights),
    ("user_mode_linux_of_root_has_no_rights_on_the_host", Engine::Uml, no_rights),
    ("nine_filesystems_are_made_mounted_and_read", Engine::Tcg, nine_filesystems),
    ("nine_filesystems_in_user_mode_linux", Engine::Uml, nine_filesystems),
    ("a_panic_of_the_worker_is_told", Engine::Tcg, worker_panic),
    ("a_panic_of_the_worker_is_told_in_user_mode_linux", Engine::Uml, worker_panic),
    ("a_panic_of_the_kernel_is_told", Engine::Tcg, kernel_panic),
    ("a_panic_of_the_kernel_is_told_in_user_mode_linux", Engine::Uml, kernel_panic),
    ("a_device_is_as_late_as_it_was_asked_to_be", Engine::Counted, known_latencies),
];

/// Runs the tests whose names contain one of the words, or all.
pub(crate) fn run(names: &[String]) -> ExitCode {
    let chosen = |test: &str| names.is_empty() || names.iter().any(|name| test.contains(name));
    let chosen: Vec<_> = TESTS.into_iter().filter(|(name, ..)| chosen(name)).collect();
    if chosen.is_empty() {
        return ExitCode::SUCCESS;
    }
    let place = Place::prepare();
    let wanted = |architecture| chosen.iter().any(|(_, e, _)| e.architecture() == architecture);
    let pc = wanted(Architecture::Pc).then(|| place.kernel(Engine::Tcg));
    let uml = wanted(Architecture::Uml).then(|| place.kernel(Engine::Uml));
    let failed = AtomicU32::new(0);
    let left = Mutex::new(chosen.iter());
    let lane = || {
        loop {
            // Not held while the test runs.
            let next = left.lock().unwrap().next();
            let Some((name, engine, test)) = next else { break };
            let kernel = match engine.architecture() {
                Architecture::Pc => &pc,
                Architecture::Uml => &uml,
            };
            match kernel {
                Some(Ok(found)) => {
                    let host = Host { name, engine: *engine, place: &place, found };
                    let began = Instant::now();
                    // What failed has been told by the panic.
                    let passed = catch_unwind(AssertUnwindSafe(|| test(&host))).is_ok();
                    let (outcome, took) = (if passed { "ok" } else { "FAILED" }, began.elapsed());
                    println!("test {name} ... {outcome} in {:.1} s", took.as_secs_f64());
                    failed.fetch_add(u32::from(!passed), Relaxed);
                }
                Some(Err(needs)) => skipped(name, needs),
                None => {}
            }
        }
    };
    // An emulator takes one processor, and memory.
    thread::scope(|scope| (0..LANES).for_each(|_| drop(scope.spawn(lane))));
    let failed = failed.into_inner();
    println!("\ntest result: {} run, {failed} failed", chosen.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Where tests have their files.
struct Place {
    directory: tempfile::TempDir,
    cache: Cache,
    /// Whether the cache is the one that was named.
    named: bool,
    booted: AtomicU32,
}

impl Place {
    fn prepare() -> Self {
        let directory =
            ["/dev/shm", "/var/tmp"].into_iter().find_map(|at| tempfile::tempdir_in(at).ok());
        let directory = directory.expect("a temporary directory");
        // Guests of root are those of another user, who must have a way to the disks.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o711)).unwrap();
        // Whoever builds can keep what was unpacked; others unpack it each time.
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
        let keeps = std::fs::create_dir_all(&kept).is_ok() && tempfile::tempfile_in(&kept).is_ok();
        let named = env::var_os("FSLAB_CACHE").map(PathBuf::from);
        let is_named = named.is_some();
        let own = if keeps { kept } else { directory.path().join("kernels") };
        let cache = Cache::new(named.unwrap_or(own));
        Self { directory, cache, named: is_named, booted: AtomicU32::new(0) }
    }

    /// What an engine boots. An error is what is missing.
    fn kernel(&self, engine: Engine) -> Result<Found, String> {
        let architecture = engine.architecture();
        let package = match architecture {
            Architecture::Pc => Some(newest_package("linux-image-").ok_or(NO_PACKAGE)?),
            // What was built into the cache that was named is meant; else the package is.
            Architecture::Uml if self.named => None,
            Architecture::Uml => newest_package("user-mode-linux_"),
        };
        let text = package.map(|package| package.to_string_lossy().into_owned());
        let named = text.as_deref().map_or(Named::Newest, Named::Text);
        let interrupt = AtomicBool::new(false);
        let kernel = match Kernel::find(named, architecture, &self.cache, &interrupt) {
            Err(GuestError::Missing { what, cure }) => return Err(format!("{what}; {cure}")),
            kernel => kernel.unwrap_or_else(|error| panic!("{text:?}: {error}")),
        };
        let ready = engine.preflight(MEMORY, Some(self.cache.directory()));
        let fits = ready.and_then(|_| engine.check_kernel(&kernel));
        fits.map_err(|error| format!("{}: {error}", engine.name()))?;
        let index = match &kernel.modules {
            Some(folder) => Index::read(folder, Some(self.cache.directory())).unwrap(),
            None => Index::empty(),
        };
        println!("{}: kernel {} of {}", engine.name(), kernel.release, kernel.origin);
        Ok(Found { kernel, index })
    }
}

/// A kernel, and what it has.
struct Found {
    kernel: Kernel,
    index: Index,
}

/// What one test boots.
struct Host<'a> {
    /// The name of the test.
    name: &'a str,
    engine: Engine,
    place: &'a Place,
    found: &'a Found,
}

impl Host<'_> {
    /// The archive for some filesystems, and what could not be put into it.
    fn archive(&self, filesystems: &[&str], device: Device) -> Initramfs {
        let mut modules = match self.engine {
            Engine::Uml => Vec::new(),
            Engine::Kvm | Engine::Tcg | Engine::Counted => vec!["virtio_pci", "virtio_blk"],
        };
        let (mut if_there, mut programs, mut files) =
            (Vec::new(), vec!["sh".to_owned()], Vec::new());
        modules.extend(device.modules());
        for name in filesystems {
            let needs = initramfs::needs(name).unwrap();
            modules.extend(needs.modules);
            if_there.extend(needs.if_there);
            programs.extend(needs.programs.iter().map(ToString::to_string));
            files.extend(needs.files.iter().map(ToString::to_string));
            let (_, mkfs, _) = FILESYSTEMS.into_iter().find(|(n, ..)| n == name).unwrap();
            programs.push(mkfs.to_owned());
        }
        let order =
            self.found.index.order_with(&modules, &if_there).unwrap_or_else(|a| panic!("{a:?}"));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let job = Job {
            seed: std::array::from_fn(|_| fastrand::u8(..)),
            unix_time_ns: u64::try_from(now.as_nanos()).ok(),
            hostname: "guest".to_owned(),
            worker: vec!["guest-worker".to_owned(), "of the test".to_owned()],
            parameters: Vec::new(),
            device,
        };
        let contents = Contents {
            program: &env::current_exe().unwrap(),
            programs: &programs,
            files: &files,
            modules: &order,
            at_start: &order,
            on_demand: &self.found.index,
            job: &job.to_text(),
        };
        initramfs::build(&contents).unwrap()
    }

    fn boot(&self, archive: &Initramfs, disks: Vec<Disk>) -> Machine {
        let (engine, number) = (self.engine, self.place.booted.fetch_add(1, Relaxed));
        let wanted = Wanted {
            engine,
            kernel: &self.found.kernel,
            initramfs: &archive.bytes,
            memory: MEMORY,
            // With more, kernels die now and then in emulators before QEMU 8.1: one processor executes
            // what another one is patching.
            processors: 1,
            disks,
            append: Vec::new(),
            directory: self.place.directory.path().join(format!("guest{number}")),
        };
        let ready = engine.preflight(MEMORY, Some(self.place.cache.directory())).unwrap();
        let machine = Machine::boot(&wanted, &ready, Arc::new(AtomicBool::new(false)));
        let machine = machine.unwrap_or_else(|error| panic!("{error}"));
        println!("{} booted in {:.2} s", engine.name(), machine.booted_in().as_secs_f64());
        machine
    }

    /// A disk that takes no room until it is written to.
    fn disk(&self) -> Disk {
        let file = self.place.directory.path().join(format!("disk-{}", self.engine.name()));
        File::create(&file).unwrap().set_len(Bytes::GIB).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        // User-mode Linux gives space back in pieces of 32 KiB, which takes longer than the rest.
        Disk { file, synced: false, discards: self.engine != Engine::Uml }
    }

    /// What the first disk is called inside.
    fn device(&self) -> &'static str {
        match self.engine {
            Engine::Uml => "/dev/ubda",
            Engine::Kvm | Engine::Tcg | Engine::Counted => "/dev/vda",
        }
    }
}

/// The newest package whose name begins so, of those with all filesystems.
fn newest_package(begin: &str) -> Option<PathBuf> {
    let packages = packages().into_iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        let version = name.strip_prefix(begin)?;
        let whole =
            name.ends_with("amd64.deb") && !name.contains("cloud") && !name.contains("-rt-");
        let version = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().ok());
        whole.then(|| (version.map_while(|part| part).collect::<Vec<u32>>(), path.clone()))
    });
    packages.max().map(|(_, path)| path)
}

fn ask(machine: &mut Machine, request: &str) -> Result<String, GuestError> {
    let answer = machine.ask(request.as_bytes(), LIMITS, &mut |_| {})?;
    Ok(String::from_utf8(answer).unwrap())
}

fn asked(machine: &mut Machine, request: &str) -> String {
    ask(machine, request)
        .unwrap_or_else(|error| panic!("{request}: {error}\n{}", machine.console()))
}

/// What can be tried here: the program is on this host, and the kernel has the filesystem.
fn possible(host: &Host<'_>) -> Vec<&'static str> {
    let mut names = Vec::new();
    for (name, mkfs, _) in FILESYSTEMS {
        if Command::new(mkfs).arg("-V").output().is_err() {
            skipped(&format!("{}: {name}", host.name), mkfs);
        } else if host.found.index.has(&format!("fs-{name}")) == Presence::Absent {
            skipped(&format!("{}: {name}", host.name), "a kernel that has it");
        } else {
            names.push(name);
        }
    }
    names
}

fn nine_filesystems(host: &Host<'_>) {
    let names = possible(host);
    let archive = host.archive(&names, Device::None);
    println!(
        "the archive has {}; missing: {:?}",
        Bytes(archive.bytes.len() as u64).rough(),
        archive.missing
    );
    let mut machine = host.boot(&archive, vec![host.disk()]);
    let mut first = String::new();
    let echo = machine.ask(b"echo hello", LIMITS, &mut |text| first.push_str(text)).unwrap();
    assert_eq!(echo, b"hello");
    assert!(first.contains("echo hello"), "{first}");
    assert_eq!(asked(&mut machine, "long 5000000").len(), 5_000_000);
    let device = host.device();
    assert_eq!(asked(&mut machine, &format!("space {device}")), "1024 MiB, rotational 0");
    assert_eq!(asked(&mut machine, "orphans 3"), "3 are gone");
    for name in names {
        let answer = asked(&mut machine, &format!("try {name} {device}"));
        println!("{answer}");
        let size = answer.strip_prefix(&format!("{name} of ")).and_then(|t| t.strip_suffix(" MiB"));
        let size: u64 =
            size.unwrap_or_else(|| panic!("{answer}\n{}", machine.console())).parse().unwrap();
        assert!((900..=1024).contains(&size), "{answer}");
    }
    // The kernel asks for what it does not know, and what it asks for is known; one that was built
    // without modules does not ask.
    let refused = if host.found.index.is_empty() { "" } else { "fs-nosuchfs" };
    let said = asked(&mut machine, "try-unknown nosuchfs");
    assert_eq!(said, format!("nosuchfs: {refused} refused"));
    println!("{}", asked(&mut machine, "booted"));
    machine.halt().unwrap();
}

/// Reads from the host what the machine's processes may do: those in its directory that run another
/// program than this one.
fn no_rights(host: &Host<'_>) {
    let isolation = Isolation::here();
    if !isolation.identity {
        return skipped(host.name, "root");
    }
    let machine = host.boot(&host.archive(&[], Device::None), vec![]);
    let facts = machine.facts();
    let fact = facts.get("guest.isolation").unwrap_or_default();
    assert!(fact.starts_with("user nobody"), "{fact}");
    assert_eq!(fact.ends_with("pid namespace, network namespace"), isolation.network, "{fact}");
    let link = |process: &Path, name: &str| fs::read_link(process.join(name)).unwrap_or_default();
    let (this, mut seen) = (Path::new("/proc/self"), 0);
    for process in fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path()) {
        let own = link(&process, "exe") == link(this, "exe");
        let place = host.place.directory.path();
        if own || !link(&process, "cwd").starts_with(place) || link(&process, "exe") == *"" {
            continue;
        }
        let status = fs::read_to_string(process.join("status")).unwrap_or_default();
        seen += 1;
        for line in [
            "Uid:\t65534\t65534\t65534\t65534",
            "Groups:\t ",
            "NoNewPrivs:\t1",
            "CapInh:\t0000000000000000",
            "CapPrm:\t0000000000000000",
            "CapEff:\t0000000000000000",
            "CapBnd:\t0000000000000000",
            "CapAmb:\t0000000000000000",
        ] {
            assert!(status.lines().any(|other| other == line), "{line}\n{status}");
        }
        let differs = |name| link(&process, name) != link(this, name);
        assert_eq!(differs("ns/pid"), isolation.namespaces);
        assert_eq!(differs("ns/net"), isolation.network);
    }
    assert!(seen > 0, "no process of the machine was found");
    machine.halt().unwrap();
}

fn worker_panic(host: &Host<'_>) {
    let archive = host.archive(&[], Device::None);
    let mut machine = host.boot(&archive, vec![]);
    println!("{}", asked(&mut machine, "booted"));
    let error = ask(&mut machine, "panic now").unwrap_err();
    let GuestError::Ended { during, last } = &error else { panic!("{error}") };
    assert!(during.starts_with("panic now; the worker panicked"), "{error}");
    assert!(last.contains("the worker panicked at ") && last.contains("as asked: now"), "{error}");
}

fn kernel_panic(host: &Host<'_>) {
    let archive = host.archive(&[], Device::None);
    let mut machine = host.boot(&archive, vec![]);
    let error = ask(&mut machine, "crash").unwrap_err();
    println!("{error}");
    let GuestError::Ended { during, last } = &error else { panic!("{error}") };
    assert_eq!(during, "crash");
    assert!(last.contains("sysrq triggered crash"), "{error}\n{}", machine.console());
}

/// What a device is asked to add is what a clock in the guest finds: a known quantity for what
/// measures. Beside it a timer's interrupt and two changes of task are counted, since a device
/// without latency answers before it is waited for; between two latencies they cancel out.
fn known_latencies(host: &Host<'_>) {
    let mean = |latency: u64| {
        let (size, latency) = (Bytes::mib(384), Nanos(latency));
        let device = Device::NullBlk { size, latency, cache: Bytes(0), sector: Bytes(4096) };
        let filesystems: &[&str] = if latency == Nanos(100_000) { &["ext4"] } else { &[] };
        let archive = host.archive(filesystems, device);
        let mut machine = host.boot(&archive, vec![]);
        assert_eq!(asked(&mut machine, "space /dev/nullb0"), "384 MiB, rotational 0");
        let mean: f64 = asked(&mut machine, "latency /dev/nullb0").parse().unwrap();
        println!("at {latency} a read takes {mean:.1} ns of the guest's time on average");
        for name in filesystems {
            let answer = asked(&mut machine, &format!("try {name} /dev/nullb0"));
            assert!(answer.starts_with("ext4 of "), "{answer}\n{}", machine.console());
        }
        machine.halt().unwrap();
        mean
    };
    let [none, short, long] = [0, 100_000, 1_000_000].map(mean);
    for (asked, found) in
        [(100_000.0, short - none), (1_000_000.0, long - none), (900_000.0, long - short)]
    {
        let off = found / asked - 1.0;
        println!("asked for {asked} ns more, and found {found:.1}: {:+.2} % off", off * 100.0);
        assert!(off.abs() < 0.05, "asked for {asked} ns, and found {found}");
    }
}
