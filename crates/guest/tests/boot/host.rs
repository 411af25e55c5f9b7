//! Host side of the boot tests.
#![expect(clippy::print_stdout, reason = "this is the test harness")]

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
    Disk, Engine, GuestError, GuestSpec, Kernel, Limits, Machine,
    in_guest::{Device, GuestConfig},
    initramfs::{self, Contents, Initramfs},
    kernel::{Architecture, Cache, KernelQuery},
    modules::{Index, ModuleState},
    supervisor::Isolation,
};
use model::{Bytes, Nanos};

use crate::{
    packages::{NO_PACKAGE, packages},
    support::skipped,
    worker::FILESYSTEMS,
};

/// Memory of each guest.
const MEMORY: Bytes = Bytes::mib(768);
/// Time limits for heartbeats and for progress.
const LIMITS: Limits = Limits { silence: Duration::from_secs(120), step: Duration::from_secs(120) };

/// Number of concurrent guests.
const CONCURRENT_GUESTS: usize = 2;

type Test = fn(&Host<'_>);

/// Name, engine, and function of the tests. Icount guests boot the same kernel as TCG guests.
const TESTS: [(&str, Engine, Test); 9] = [
    ("a_guest_of_root_has_no_rights_on_the_host", Engine::Tcg, no_rights),
    ("user_mode_linux_of_root_has_no_rights_on_the_host", Engine::Uml, no_rights),
    ("nine_filesystems_are_created_mounted_and_read", Engine::Tcg, nine_filesystems),
    ("nine_filesystems_in_user_mode_linux", Engine::Uml, nine_filesystems),
    ("a_panic_of_the_worker_is_reported", Engine::Tcg, worker_panic),
    ("a_panic_of_the_worker_is_reported_in_user_mode_linux", Engine::Uml, worker_panic),
    ("a_panic_of_the_kernel_is_reported", Engine::Tcg, kernel_panic),
    ("a_panic_of_the_kernel_is_reported_in_user_mode_linux", Engine::Uml, kernel_panic),
    ("a_device_has_the_configured_latency", Engine::Icount, known_latencies),
];

/// Runs the tests whose names contain one of the words, or all.
pub(crate) fn run(names: &[String]) -> ExitCode {
    let chosen = |test: &str| names.is_empty() || names.iter().any(|name| test.contains(name));
    let chosen: Vec<_> = TESTS.into_iter().filter(|(name, ..)| chosen(name)).collect();
    if chosen.is_empty() {
        return ExitCode::SUCCESS;
    }
    let place = TestRoot::prepare();
    let wanted = |architecture| chosen.iter().any(|(_, e, _)| e.architecture() == architecture);
    let pc = wanted(Architecture::Pc).then(|| place.kernel(Engine::Tcg));
    let uml = wanted(Architecture::Uml).then(|| place.kernel(Engine::Uml));
    let failed = AtomicU32::new(0);
    let left = Mutex::new(chosen.iter());
    let run_tests = || {
        loop {
            // The lock is not held while the test runs.
            let next = left.lock().unwrap().next();
            let Some((name, engine, test)) = next else { break };
            let kernel = match engine.architecture() {
                Architecture::Pc => &pc,
                Architecture::Uml => &uml,
            };
            match kernel {
                Some(Ok(found)) => {
                    let host = Host { name, engine: *engine, place: &place, found };
                    let start = Instant::now();
                    // The panic has reported the failure.
                    let passed = catch_unwind(AssertUnwindSafe(|| test(&host))).is_ok();
                    let (outcome, duration) =
                        (if passed { "ok" } else { "FAILED" }, start.elapsed());
                    println!("test {name} ... {outcome} in {:.1} s", duration.as_secs_f64());
                    failed.fetch_add(u32::from(!passed), Relaxed);
                }
                Some(Err(needs)) => skipped(name, needs),
                None => {}
            }
        }
    };
    // An emulator uses one CPU, and memory.
    thread::scope(|scope| (0..CONCURRENT_GUESTS).for_each(|_| drop(scope.spawn(run_tests))));
    let failed = failed.into_inner();
    println!("\ntest result: {} run, {failed} failed", chosen.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Files of the tests.
struct TestRoot {
    directory: tempfile::TempDir,
    cache: Cache,
    /// True if `$FSLAB_CACHE` specifies the cache.
    specified: bool,
    booted: AtomicU32,
}

impl TestRoot {
    fn prepare() -> Self {
        let directory =
            ["/dev/shm", "/var/tmp"].into_iter().find_map(|at| tempfile::tempdir_in(at).ok());
        let directory = directory.expect("a temporary directory");
        // Guests of root run as another user, who must be able to reach the disks.
        fs::set_permissions(directory.path(), Permissions::from_mode(0o711)).unwrap();
        // Users who can write to the target directory keep the unpacked files; others unpack them
        // each time.
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
        let is_writable =
            std::fs::create_dir_all(&kept).is_ok() && tempfile::tempfile_in(&kept).is_ok();
        let specified = env::var_os("FSLAB_CACHE").map(PathBuf::from);
        let is_specified = specified.is_some();
        let default = if is_writable { kept } else { directory.path().join("kernels") };
        let cache = Cache::new(specified.unwrap_or(default));
        Self { directory, cache, specified: is_specified, booted: AtomicU32::new(0) }
    }

    /// Kernel for an engine. The error describes what is missing.
    fn kernel(&self, engine: Engine) -> Result<Found, String> {
        let architecture = engine.architecture();
        let package = match architecture {
            Architecture::Pc => Some(newest_package("linux-image-").ok_or(NO_PACKAGE)?),
            // A kernel built into the specified cache is preferred to the package.
            Architecture::Uml if self.specified => None,
            Architecture::Uml => newest_package("user-mode-linux_"),
        };
        let text = package.map(|package| package.to_string_lossy().into_owned());
        let named = text.as_deref().map_or(KernelQuery::Newest, KernelQuery::Text);
        let interrupt = AtomicBool::new(false);
        let kernel = match Kernel::find(named, architecture, &self.cache, &interrupt) {
            Err(GuestError::Missing { what, hint }) => return Err(format!("{what}; {hint}")),
            kernel => kernel.unwrap_or_else(|error| panic!("{text:?}: {error}")),
        };
        let ready = engine.preflight(MEMORY, Some(self.cache.directory()));
        let supported = ready.and_then(|_| engine.check_kernel(&kernel));
        supported.map_err(|error| format!("{}: {error}", engine.name()))?;
        let index = match &kernel.modules {
            Some(directory) => Index::read(directory, Some(self.cache.directory())).unwrap(),
            None => Index::empty(),
        };
        println!("{}: kernel {} of {}", engine.name(), kernel.release, kernel.origin);
        Ok(Found { kernel, index })
    }
}

/// Kernel and the index of its modules.
struct Found {
    kernel: Kernel,
    index: Index,
}

/// Environment of one test.
struct Host<'a> {
    /// Name of the test.
    name: &'a str,
    engine: Engine,
    place: &'a TestRoot,
    found: &'a Found,
}

impl Host<'_> {
    /// Initramfs for some filesystems.
    fn archive(&self, filesystems: &[&str], device: Device) -> Initramfs {
        let mut modules = match self.engine {
            Engine::Uml => Vec::new(),
            Engine::Kvm | Engine::Tcg | Engine::Icount => vec!["virtio_pci", "virtio_blk"],
        };
        let (mut optional, mut programs, mut files) =
            (Vec::new(), vec!["sh".to_owned()], Vec::new());
        modules.extend(device.modules());
        for name in filesystems {
            let needs = initramfs::needs(name).unwrap();
            modules.extend(needs.modules);
            optional.extend(needs.optional);
            programs.extend(needs.programs.iter().map(ToString::to_string));
            files.extend(needs.files.iter().map(ToString::to_string));
            let (_, mkfs, _) = FILESYSTEMS.into_iter().find(|(n, ..)| n == name).unwrap();
            programs.push(mkfs.to_owned());
        }
        let order =
            self.found.index.order_with(&modules, &optional).unwrap_or_else(|a| panic!("{a:?}"));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let config = GuestConfig {
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
            config: &config.to_text(),
        };
        initramfs::build(&contents).unwrap()
    }

    fn boot(&self, archive: &Initramfs, disks: Vec<Disk>) -> Machine {
        let (engine, number) = (self.engine, self.place.booted.fetch_add(1, Relaxed));
        let spec = GuestSpec {
            engine,
            kernel: &self.found.kernel,
            initramfs: &archive.bytes,
            memory: MEMORY,
            // With more CPUs, kernels occasionally crash in emulators before QEMU 8.1: one CPU
            // executes code that another one is patching.
            cpus: 1,
            disks,
            append: Vec::new(),
            directory: self.place.directory.path().join(format!("guest{number}")),
        };
        let ready = engine.preflight(MEMORY, Some(self.place.cache.directory())).unwrap();
        let machine = Machine::boot(&spec, &ready, Arc::new(AtomicBool::new(false)));
        let machine = machine.unwrap_or_else(|error| panic!("{error}"));
        println!("{} booted in {:.2} s", engine.name(), machine.boot_time().as_secs_f64());
        machine
    }

    /// A sparse disk.
    fn disk(&self) -> Disk {
        let file = self.place.directory.path().join(format!("disk-{}", self.engine.name()));
        File::create(&file).unwrap().set_len(Bytes::GIB).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o666)).unwrap();
        // User-mode Linux discards in pieces of 32 KiB, which takes longer than the rest of the
        // test.
        Disk { file, synced: false, discards: self.engine != Engine::Uml }
    }

    /// Device of the first disk in the guest.
    fn device(&self) -> &'static str {
        match self.engine {
            Engine::Uml => "/dev/ubda",
            Engine::Kvm | Engine::Tcg | Engine::Icount => "/dev/vda",
        }
    }
}

/// The newest package with this prefix, of those with all filesystems.
fn newest_package(begin: &str) -> Option<PathBuf> {
    let packages = packages().into_iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        let version = name.strip_prefix(begin)?;
        let is_complete =
            name.ends_with("amd64.deb") && !name.contains("cloud") && !name.contains("-rt-");
        let version = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().ok());
        is_complete.then(|| (version.map_while(|part| part).collect::<Vec<u32>>(), path.clone()))
    });
    packages.max().map(|(_, path)| path)
}

fn try_request(machine: &mut Machine, request: &str) -> Result<String, GuestError> {
    let reply = machine.request(request.as_bytes(), LIMITS, &mut |_| {})?;
    Ok(String::from_utf8(reply).unwrap())
}

fn request(machine: &mut Machine, request: &str) -> String {
    try_request(machine, request)
        .unwrap_or_else(|error| panic!("{request}: {error}\n{}", machine.console()))
}

/// Filesystems that can be tested: the host has the mkfs program and the kernel has the filesystem.
fn supported_filesystems(host: &Host<'_>) -> Vec<&'static str> {
    let mut names = Vec::new();
    for (name, mkfs, _) in FILESYSTEMS {
        if Command::new(mkfs).arg("-V").output().is_err() {
            skipped(&format!("{}: {name}", host.name), mkfs);
        } else if host.found.index.has(&format!("fs-{name}")) == ModuleState::Missing {
            skipped(&format!("{}: {name}", host.name), "a kernel with this filesystem");
        } else {
            names.push(name);
        }
    }
    names
}

fn nine_filesystems(host: &Host<'_>) {
    let names = supported_filesystems(host);
    let archive = host.archive(&names, Device::None);
    println!(
        "initramfs: {}; missing: {:?}",
        Bytes(archive.bytes.len() as u64).rough(),
        archive.missing
    );
    let mut machine = host.boot(&archive, vec![host.disk()]);
    let mut first = String::new();
    let echo = machine.request(b"echo hello", LIMITS, &mut |text| first.push_str(text)).unwrap();
    assert_eq!(echo, b"hello");
    assert!(first.contains("echo hello"), "{first}");
    assert_eq!(request(&mut machine, "long 5000000").len(), 5_000_000);
    let device = host.device();
    assert_eq!(request(&mut machine, &format!("space {device}")), "1024 MiB, rotational 0");
    assert_eq!(request(&mut machine, "orphans 3"), "3 reaped");
    for name in names {
        let reply = request(&mut machine, &format!("try {name} {device}"));
        println!("{reply}");
        let size = reply.strip_prefix(&format!("{name} of ")).and_then(|t| t.strip_suffix(" MiB"));
        let size: u64 =
            size.unwrap_or_else(|| panic!("{reply}\n{}", machine.console())).parse().unwrap();
        assert!((900..=1024).contains(&size), "{reply}");
    }
    // The kernel requests a module for an unknown filesystem, and the request is recorded. A kernel
    // without modules makes no request.
    let rejected = if host.found.index.is_empty() { "" } else { "fs-nosuchfs" };
    let reply = request(&mut machine, "try-unknown nosuchfs");
    assert_eq!(reply, format!("nosuchfs: {rejected} rejected"));
    println!("{}", request(&mut machine, "booted"));
    machine.halt().unwrap();
}

/// Checks on the host the privileges of the machine's processes: those in its directory that run
/// another program than this one.
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
    println!("{}", request(&mut machine, "booted"));
    let error = try_request(&mut machine, "panic now").unwrap_err();
    let GuestError::Ended { during, last } = &error else { panic!("{error}") };
    assert!(during.starts_with("panic now; the worker panicked"), "{error}");
    assert!(
        last.contains("the worker panicked at ") && last.contains("as requested: now"),
        "{error}"
    );
}

fn kernel_panic(host: &Host<'_>) {
    let archive = host.archive(&[], Device::None);
    let mut machine = host.boot(&archive, vec![]);
    let error = try_request(&mut machine, "crash").unwrap_err();
    println!("{error}");
    let GuestError::Ended { during, last } = &error else { panic!("{error}") };
    assert_eq!(during, "crash");
    assert!(last.contains("sysrq triggered crash"), "{error}\n{}", machine.console());
}

/// The configured latency of a device is measured by the guest's clock: a known value for the
/// measurement. The measured time also includes a timer interrupt and two context switches, because
/// a device without latency replies before the wait. Differences between two latencies exclude
/// them.
fn known_latencies(host: &Host<'_>) {
    let mean = |latency: u64| {
        let (size, latency) = (Bytes::mib(384), Nanos(latency));
        let device = Device::NullBlk { size, latency, cache: Bytes(0), sector: Bytes(4096) };
        let filesystems: &[&str] = if latency == Nanos(100_000) { &["ext4"] } else { &[] };
        let archive = host.archive(filesystems, device);
        let mut machine = host.boot(&archive, vec![]);
        assert_eq!(request(&mut machine, "space /dev/nullb0"), "384 MiB, rotational 0");
        let mean: f64 = request(&mut machine, "latency /dev/nullb0").parse().unwrap();
        println!("latency {latency}: mean read time {mean:.1} ns in the guest");
        for name in filesystems {
            let reply = request(&mut machine, &format!("try {name} /dev/nullb0"));
            assert!(reply.starts_with("ext4 of "), "{reply}\n{}", machine.console());
        }
        machine.halt().unwrap();
        mean
    };
    let [none, short, long] = [0, 100_000, 1_000_000].map(mean);
    for (expected, found) in
        [(100_000.0, short - none), (1_000_000.0, long - none), (900_000.0, long - short)]
    {
        let off = found / expected - 1.0;
        println!("expected {expected} ns more, found {found:.1}: {:+.2} %", off * 100.0);
        assert!(off.abs() < 0.05, "expected {expected} ns, found {found}");
    }
}
