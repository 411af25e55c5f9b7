//! The tests, on the host's side.
#![expect(clippy::print_stdout, reason = "this is the harness")]

use std::{
    env,
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, Ordering::Relaxed},
    },
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use guest::{
    Disk, Engine, GuestError, Kernel, Limits, Machine, Wanted,
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

type Test = fn(&Host);

const TESTS: [(&str, Test); 4] = [
    ("nine_filesystems_are_made_mounted_and_read", nine_filesystems),
    ("a_panic_of_the_worker_is_told", worker_panic),
    ("a_panic_of_the_kernel_is_told", kernel_panic),
    ("a_device_of_chosen_latency_is_made_inside", device_inside),
];

/// Runs the tests whose names contain one of the words, or all.
pub(crate) fn run(names: &[String]) -> ExitCode {
    let chosen = |test: &str| names.is_empty() || names.iter().any(|name| test.contains(name));
    let chosen: Vec<_> = TESTS.into_iter().filter(|(name, _)| chosen(name)).collect();
    if chosen.is_empty() {
        return ExitCode::SUCCESS;
    }
    let host = match Host::prepare() {
        Ok(host) => host,
        Err(needs) => {
            chosen.iter().for_each(|(name, _)| skipped(name, &needs));
            return ExitCode::SUCCESS;
        }
    };
    let failed = AtomicU32::new(0);
    let left = Mutex::new(chosen.iter());
    let lane = || {
        loop {
            // Not held while the test runs.
            let next = left.lock().unwrap().next();
            let Some((name, test)) = next else { break };
            // What failed has been told by the panic.
            let passed = catch_unwind(AssertUnwindSafe(|| test(&host))).is_ok();
            println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
            failed.fetch_add(u32::from(!passed), Relaxed);
        }
    };
    // An emulator takes one processor, and memory.
    thread::scope(|scope| (0..LANES).for_each(|_| drop(scope.spawn(lane))));
    let failed = failed.into_inner();
    println!("\ntest result: {} run, {failed} failed", chosen.len());
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What all tests boot.
struct Host {
    directory: tempfile::TempDir,
    kernel: Kernel,
    index: Index,
    booted: AtomicU32,
}

impl Host {
    /// Finds a kernel. An error is what is missing.
    fn prepare() -> Result<Self, String> {
        Engine::Tcg.preflight(MEMORY, None).map_err(|error| format!("an emulator: {error}"))?;
        let package = newest_package().ok_or(NO_PACKAGE)?;
        let directory =
            ["/dev/shm", "/var/tmp"].into_iter().find_map(|at| tempfile::tempdir_in(at).ok());
        let directory = directory.ok_or("a temporary directory")?;
        // Whoever builds can keep what was unpacked; others unpack it each time.
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kernels");
        let keeps = std::fs::create_dir_all(&kept).is_ok() && tempfile::tempfile_in(&kept).is_ok();
        let cache = Cache::new(if keeps { kept } else { directory.path().join("kernels") });
        let text = package.to_string_lossy().into_owned();
        let interrupt = AtomicBool::new(false);
        let kernel = Kernel::find(Named::Text(&text), Architecture::Pc, &cache, &interrupt);
        let kernel = kernel.unwrap_or_else(|error| panic!("{text}: {error}"));
        let index = match &kernel.modules {
            Some(folder) => Index::read(folder, Some(cache.directory())).unwrap(),
            None => Index::empty(),
        };
        println!("kernel {} of {text}", kernel.release);
        Ok(Self { directory, kernel, index, booted: AtomicU32::new(0) })
    }

    /// The archive for some filesystems, and what could not be put into it.
    fn archive(&self, filesystems: &[&str], device: Device) -> Initramfs {
        let mut modules = vec!["virtio_pci", "virtio_blk"];
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
        let order = self.index.order_with(&modules, &if_there).unwrap_or_else(|a| panic!("{a:?}"));
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
            on_demand: &self.index,
            job: &job.to_text(),
        };
        initramfs::build(&contents).unwrap()
    }

    fn boot(&self, engine: Engine, archive: &Initramfs, disks: Vec<Disk>) -> Machine {
        let number = self.booted.fetch_add(1, Relaxed);
        let wanted = Wanted {
            engine,
            kernel: &self.kernel,
            initramfs: &archive.bytes,
            memory: MEMORY,
            // With more, kernels die now and then in emulators before QEMU 8.1: one processor executes
            // what another one is patching.
            processors: 1,
            disks,
            append: Vec::new(),
            directory: self.directory.path().join(format!("guest{number}")),
        };
        let ready = engine.preflight(MEMORY, None).unwrap();
        let machine = Machine::boot(&wanted, &ready, Arc::new(AtomicBool::new(false)));
        let machine = machine.unwrap_or_else(|error| panic!("{error}"));
        println!("{} booted in {:.2} s", engine.name(), machine.booted_in().as_secs_f64());
        machine
    }

    /// A disk that takes no room until it is written to.
    fn disk(&self) -> Disk {
        let file = self.directory.path().join("disk");
        File::create(&file).unwrap().set_len(Bytes::GIB).unwrap();
        Disk { file, synced: false, discards: true }
    }
}

/// The newest package of a kernel for PCs, that has all filesystems.
fn newest_package() -> Option<PathBuf> {
    let packages = packages().into_iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        let version = name.strip_prefix("linux-image-")?;
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
fn possible(host: &Host) -> Vec<&'static str> {
    let mut names = Vec::new();
    for (name, mkfs, _) in FILESYSTEMS {
        if Command::new(mkfs).arg("-V").output().is_err() {
            skipped(&format!("nine_filesystems: {name}"), mkfs);
        } else if host.index.has(&format!("fs-{name}")) == Presence::Absent {
            skipped(&format!("nine_filesystems: {name}"), "a kernel that has it");
        } else {
            names.push(name);
        }
    }
    names
}

fn nine_filesystems(host: &Host) {
    let names = possible(host);
    let archive = host.archive(&names, Device::None);
    println!(
        "the archive has {}; missing: {:?}",
        Bytes(archive.bytes.len() as u64).rough(),
        archive.missing
    );
    let mut machine = host.boot(Engine::Tcg, &archive, vec![host.disk()]);
    let mut first = String::new();
    let echo = machine.ask(b"echo hello", LIMITS, &mut |text| first.push_str(text)).unwrap();
    assert_eq!(echo, b"hello");
    assert!(first.contains("echo hello"), "{first}");
    assert_eq!(asked(&mut machine, "long 5000000").len(), 5_000_000);
    assert_eq!(asked(&mut machine, "space /dev/vda"), "1024 MiB, rotational 0");
    assert_eq!(asked(&mut machine, "orphans 3"), "3 are gone");
    for name in names {
        let answer = asked(&mut machine, &format!("try {name} /dev/vda"));
        println!("{answer}");
        let size = answer.strip_prefix(&format!("{name} of ")).and_then(|t| t.strip_suffix(" MiB"));
        let size: u64 =
            size.unwrap_or_else(|| panic!("{answer}\n{}", machine.console())).parse().unwrap();
        assert!((900..=1024).contains(&size), "{answer}");
    }
    // The kernel asks for what it does not know, and what it asks for is known.
    assert_eq!(asked(&mut machine, "try-unknown nosuchfs"), "nosuchfs: fs-nosuchfs refused");
    println!("{}", asked(&mut machine, "booted"));
    machine.halt().unwrap();
}

fn worker_panic(host: &Host) {
    let archive = host.archive(&[], Device::None);
    let mut machine = host.boot(Engine::Tcg, &archive, vec![]);
    println!("{}", asked(&mut machine, "booted"));
    let error = ask(&mut machine, "panic now").unwrap_err();
    let GuestError::Ended { during, last } = &error else { panic!("{error}") };
    assert!(during.starts_with("panic now; the worker panicked"), "{error}");
    assert!(last.contains("the worker panicked at ") && last.contains("as asked: now"), "{error}");
}

fn kernel_panic(host: &Host) {
    let archive = host.archive(&[], Device::None);
    let mut machine = host.boot(Engine::Tcg, &archive, vec![]);
    let error = ask(&mut machine, "crash").unwrap_err();
    println!("{error}");
    let GuestError::Ended { during, last } = &error else { panic!("{error}") };
    assert_eq!(during, "crash");
    assert!(last.contains("sysrq triggered crash"), "{error}\n{}", machine.console());
}

fn device_inside(host: &Host) {
    let latency = Nanos(100_000);
    let size = Bytes::mib(384);
    let device = Device::NullBlk { size, latency, cache: Bytes(0), sector: Bytes(4096) };
    let archive = host.archive(&["ext4"], device);
    let mut machine = host.boot(Engine::Counted, &archive, vec![]);
    assert_eq!(asked(&mut machine, "space /dev/nullb0"), "384 MiB, rotational 0");
    let answer = asked(&mut machine, "try ext4 /dev/nullb0");
    assert!(answer.starts_with("ext4 of "), "{answer}\n{}", machine.console());
    // By the guest's clock each read takes the latency, and little else.
    let each: u64 = asked(&mut machine, "latency /dev/nullb0").parse().unwrap();
    println!("a read takes {each} ns of the guest's time");
    assert!((100_000..200_000).contains(&each), "{each}");
    machine.halt().unwrap();
}
