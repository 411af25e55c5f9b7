//! Tests of machines whose emulator is this binary again. It acts as a valid or faulty guest on the
//! other side of the mailbox, so that the host's reactions are tested within milliseconds.
//!
//! Without arguments it runs the tests below, one after the other; a failing test panics.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test without a harness, which clippy does not detect"
)]

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{
        fs::{FileExt as _, MetadataExt as _, PermissionsExt as _},
        net::UnixDatagram,
    },
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

use guest::{
    Disk, Engine, GuestError, GuestSpec, Kernel, Limits, Machine, Memory, Ready,
    kernel::Architecture,
    supervisor::{self, Isolation},
};
use model::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

/// Longer than any test takes.
const TIME_LIMIT: Duration = Duration::from_secs(60);
const LIMITS: Limits = Limits { silence: TIME_LIMIT, step: TIME_LIMIT };

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    match arguments.get(1).and_then(|role| role.to_str()) {
        Some(supervisor::COMMAND) => return supervisor::main(arguments.into_iter().skip(2)),
        // First arguments of QEMU, and of user-mode Linux.
        Some("-nodefaults") => return guest(&arguments),
        Some("mem=64M") => {
            listen();
            return guest(&arguments);
        }
        Some("--role-parent") => parent(Path::new(&arguments[2])),
        _ => tests(),
    }
    ExitCode::SUCCESS
}

fn tests() {
    requests_get_replies_and_all_files_are_removed();
    a_guest_with_heartbeats_may_be_slow();
    the_end_of_a_guest_is_reported_with_the_reason();
    a_guest_without_heartbeats_exceeds_the_limit();
    a_guest_without_progress_exceeds_the_limit();
    stacks_of_user_mode_linux_are_reported();
    an_incomplete_reply_is_damaged();
    an_interrupt_ends_a_request();
    existing_files_are_not_overwritten();
    a_killed_parent_leaves_no_processes_or_files();
    println!("machines: ok");
}

/// Creates a directory with a kernel, and images inside and outside of the machine's directory.
fn place() -> (TempDir, Kernel) {
    let place = TempDir::new_in("/var/tmp").unwrap();
    fs::create_dir(place.path().join("machine")).unwrap();
    for file in ["vmlinux", "external", "machine/internal"] {
        fs::write(place.path().join(file), "").unwrap();
    }
    let kernel = kernel(place.path());
    (place, kernel)
}

fn kernel(place: &Path) -> Kernel {
    Kernel {
        release: "6.1.0-test".into(),
        architecture: Architecture::Pc,
        origin: "test".into(),
        hash: "0123".into(),
        image: place.join("vmlinux"),
        modules: None,
    }
}

fn boot(
    place: &Path,
    kernel: &Kernel,
    behavior: &str,
    interrupt: &Arc<AtomicBool>,
) -> Result<Machine, GuestError> {
    Machine::boot(&guest_spec(place, kernel, behavior), &ready(), Arc::clone(interrupt))
}

fn guest_spec<'a>(place: &Path, kernel: &'a Kernel, behavior: &str) -> GuestSpec<'a> {
    let disk = |file: &str| Disk { file: place.join(file), synced: false, discards: false };
    GuestSpec {
        engine: Engine::Tcg,
        kernel,
        initramfs: b"archive",
        memory: Bytes::mib(64),
        cpus: 1,
        disks: vec![disk("machine/internal"), disk("external")],
        append: vec![format!("behavior={behavior}")],
        directory: place.join("machine"),
    }
}

fn ready() -> Ready {
    Ready {
        engine: Engine::Tcg,
        program: env::current_exe().unwrap(),
        version: "a test".into(),
        memory: Memory::Anonymous,
    }
}

/// Boots a guest and sends one request.
fn outcome(behavior: &str, limits: Limits) -> Result<Vec<u8>, GuestError> {
    let (place, kernel) = place();
    let mut machine = boot(place.path(), &kernel, behavior, &Arc::default())?;
    machine.request(b"request", limits, &mut |_| {})
}

fn names(directory: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

fn requests_get_replies_and_all_files_are_removed() {
    let (place, kernel) = place();
    let directory = place.path().join("machine");
    let mut machine = boot(place.path(), &kernel, "answer", &Arc::default()).unwrap();
    assert!(machine.boot_time() > Duration::ZERO);
    assert_eq!(names(&directory), ["initramfs", "internal", "mailbox"]);
    assert_eq!(fs::read(directory.join("initramfs")).unwrap(), b"archive");
    for name in ["initramfs", "mailbox"] {
        let mode = fs::metadata(directory.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let owner = |path: &Path| fs::metadata(path).unwrap().uid();
    if Isolation::here().identity {
        for name in ["initramfs", "internal", "mailbox"] {
            assert_eq!(owner(&directory.join(name)), 65534, "{name} belongs to `nobody`");
        }
        assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o777, 0o710);
    }
    for path in [&directory, &place.path().join("external")] {
        assert_eq!(owner(path), rustix::process::geteuid().as_raw(), "{}", path.display());
    }
    for length in [1, 4096, 3_000_000] {
        let request: Vec<u8> = (0..=255).cycle().take(length).collect();
        let mut steps = Vec::new();
        let mut reply =
            machine.request(&request, LIMITS, &mut |text| steps.push(text.to_owned())).unwrap();
        reply.reverse();
        assert!(reply == request);
        assert_eq!(steps.last(), Some(&format!("reversing {length} bytes")));
    }
    assert_eq!(machine.console(), "Linux version 6.1.0-test\n");
    assert_eq!(machine.facts().get("guest.engine"), Some("tcg"));
    machine.halt().unwrap();
    assert_eq!(names(&directory), ["internal"]);
}

fn a_guest_with_heartbeats_may_be_slow() {
    // The reply takes three seconds, with many heartbeats within each limit.
    assert_eq!(
        outcome("beat", Limits { silence: Duration::from_secs(2), step: Duration::from_secs(2) })
            .unwrap(),
        b"late"
    );
}

fn the_end_of_a_guest_is_reported_with_the_reason() {
    let error = |behavior| match outcome(behavior, LIMITS) {
        Err(error @ GuestError::Ended { .. }) => error.to_string(),
        other => panic!("{behavior}: {other:?}"),
    };
    let mut all = String::new();
    for behavior in ["refuse", "end", "panic", "hang in panic", "killed"] {
        all += &format!("{}\n", error(behavior));
    }
    expect_test::expect![[r#"
        the guest ended while booting: “qemu-system-x86_64: there is no such machine” (exit status 1)
        the guest ended while working: “Linux version 6.1.0-test” (exit status 0)
        the guest ended while working: “BUG: unable to handle page fault for address: 0000000000000007”; “Kernel panic - not syncing: Fatal exception” (exit status 0)
        the guest ended while working: “BUG: unable to handle page fault for address: 0000000000000007”; “Kernel panic - not syncing: Fatal exception”
        the guest ended while up: “Linux version 6.1.0-test” (killed by signal 9)
    "#]].assert_eq(&all);
}

fn a_guest_without_heartbeats_exceeds_the_limit() {
    let limits = Limits { silence: Duration::from_millis(200), ..LIMITS };
    match outcome("nothing", limits) {
        Err(GuestError::Silent { silent, during, last, stacks }) => {
            assert!(silent.0 > 200_000_000);
            assert_eq!(during, "up");
            assert_eq!(last, "\u{201c}Linux version 6.1.0-test\u{201d}");
            assert_eq!(stacks, "");
        }
        other => panic!("{other:?}"),
    }
}

/// A step that hangs does not stop the heartbeat.
fn a_guest_without_progress_exceeds_the_limit() {
    let limits = Limits { step: Duration::from_millis(200), ..LIMITS };
    let error = outcome("hang", limits).unwrap_err();
    let GuestError::Stuck { stuck, during, stacks, .. } = &error else { panic!("{error:?}") };
    assert!(stuck.0 > 200_000_000);
    assert_eq!((during.as_str(), stacks.as_str()), ("mounting", ""));
    assert_eq!(
        error.to_string(),
        "the guest made no progress for 0 s while mounting: \
         \u{201c}Linux version 6.1.0-test\u{201d}"
    );
}

/// User-mode Linux has a control socket for requests to its kernel.
fn stacks_of_user_mode_linux_are_reported() {
    let limits = Limits { step: Duration::from_millis(200), ..LIMITS };
    let (place, kernel) = place();
    let kernel = Kernel {
        architecture: Architecture::Uml,
        release: "6.13.0-test".into(),
        image: env::current_exe().unwrap(),
        ..kernel
    };
    let ready = Ready { engine: Engine::Uml, memory: Memory::Disk, ..ready() };
    let spec = GuestSpec { engine: Engine::Uml, ..guest_spec(place.path(), &kernel, "hang") };
    let mut machine = Machine::boot(&spec, &ready, Arc::default()).unwrap();
    let error = machine.request(b"request", limits, &mut |_| {}).unwrap_err();
    let GuestError::Stuck { last, stacks, .. } = &error else { panic!("{error:?}") };
    assert_eq!(last, "\u{201c}Linux version 6.1.0-test\u{201d}");
    assert_eq!(stacks, "requested: sysrq 9\nsysrq p\nsysrq w\nsysrq t\n");
    assert!(machine.console().ends_with(stacks));
}

fn an_incomplete_reply_is_damaged() {
    assert!(matches!(outcome("damage", LIMITS), Err(GuestError::Damaged(_))));
}

fn an_interrupt_ends_a_request() {
    let (place, kernel) = place();
    let interrupt = Arc::new(AtomicBool::new(false));
    let mut machine = boot(place.path(), &kernel, "beat", &interrupt).unwrap();
    let reply = machine.request(b"request", LIMITS, &mut |_| interrupt.store(true, Relaxed));
    assert!(matches!(reply, Err(GuestError::Interrupted)));
}

fn existing_files_are_not_overwritten() {
    let (place, kernel) = place();
    let mailbox = place.path().join("machine/mailbox");
    fs::write(&mailbox, "external").unwrap();
    let machine = boot(place.path(), &kernel, "answer", &Arc::default());
    assert!(matches!(machine, Err(GuestError::Missing { .. })));
    assert_eq!(fs::read(&mailbox).unwrap(), b"external");
}

fn a_killed_parent_leaves_no_processes_or_files() {
    let (place, _) = place();
    let (read, write) = rustix::pipe::pipe().unwrap();
    rustix::io::fcntl_setfd(&read, rustix::io::FdFlags::CLOEXEC).unwrap();
    let mut parent = Command::new(env::current_exe().unwrap())
        .arg("--role-parent")
        .arg(place.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(write);
    let mut line = String::new();
    BufReader::new(parent.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "up\n");
    parent.kill().unwrap();
    parent.wait().unwrap();
    let mut files = [PollFd::new(&read, PollFlags::IN)];
    poll(&mut files, Some(&Timespec::try_from(TIME_LIMIT).unwrap())).unwrap();
    assert!(files[0].revents().contains(PollFlags::HUP), "processes are left");
    assert_eq!(names(place.path()), ["external", "vmlinux"]);
}

fn parent(place: &Path) {
    let _machine = boot(place, &kernel(place), "nothing", &Arc::default()).unwrap();
    println!("up");
    std::io::stdout().flush().unwrap();
    forever();
}

fn forever() {
    loop {
        thread::park();
    }
}

/// Guest side of the mailbox, according to the format.
struct Guest {
    mailbox: File,
    heartbeats: u64,
    last: u64,
}

const HALF: u64 = 32 << 20;

impl Guest {
    fn send_heartbeat(&mut self, text: &str) {
        self.heartbeats += 1;
        let mut sector = [0; 4096];
        sector[..8].copy_from_slice(b"fslabalv");
        sector[8..16].copy_from_slice(&self.heartbeats.to_le_bytes());
        sector[16..16 + text.len()].copy_from_slice(text.as_bytes());
        self.mailbox.write_all_at(&sector, 4096).unwrap();
    }

    fn wait(&mut self) -> Vec<u8> {
        let mut sector = [0; 32];
        loop {
            self.mailbox.read_exact_at(&mut sector, 0).unwrap();
            let number = u64::from_le_bytes(sector[8..16].try_into().unwrap());
            if number > self.last {
                self.last = number;
                let length = u64::from_le_bytes(sector[16..24].try_into().unwrap());
                let mut payload = vec![0; usize::try_from(length).unwrap()];
                self.mailbox.read_exact_at(&mut payload, 8192).unwrap();
                return payload;
            }
            thread::yield_now();
        }
    }

    fn reply(&mut self, payload: &[u8], crc: u32) {
        let mut header = b"fslabbox".to_vec();
        header.extend(self.last.to_le_bytes());
        header.extend((payload.len() as u64).to_le_bytes());
        header.extend(crc.to_le_bytes());
        header.extend(crc32fast::hash(&header).to_le_bytes());
        self.mailbox.write_all_at(payload, HALF + 8192).unwrap();
        self.mailbox.write_all_at(&header, HALF).unwrap();
    }
}

/// Acts as a guest with the specified behavior.
fn guest(arguments: &[OsString]) -> ExitCode {
    let mut behaviors = arguments.iter().filter_map(|text| text.to_str()?.split_once("behavior="));
    let behavior = behaviors.next().unwrap().1;
    println!("Linux version 6.1.0-test");
    if behavior == "refuse" {
        eprintln!("qemu-system-x86_64: there is no such machine");
        return ExitCode::from(1);
    }
    let mailbox = PathBuf::from("mailbox");
    let mailbox = File::options().read(true).write(true).open(mailbox).unwrap();
    let mut guest = Guest { mailbox, heartbeats: 0, last: 0 };
    guest.send_heartbeat("up");
    loop {
        let mut request = guest.wait();
        match behavior {
            _ if request.is_empty() => return ExitCode::SUCCESS,
            "answer" => {
                guest.send_heartbeat(&format!("reversing {} bytes", request.len()));
                request.reverse();
                guest.reply(&request, crc32fast::hash(&request));
            }
            "beat" => {
                for beat in 0..75 {
                    guest.send_heartbeat(&format!("beat {beat}"));
                    thread::sleep(Duration::from_millis(40));
                }
                guest.reply(b"late", crc32fast::hash(b"late"));
            }
            "hang" => loop {
                guest.send_heartbeat("mounting");
                thread::sleep(Duration::from_millis(10));
            },
            "damage" => guest.reply(b"answer", 7),
            "nothing" => forever(),
            "killed" => {
                Command::new("kill")
                    .args(["-KILL", &std::process::id().to_string()])
                    .status()
                    .unwrap();
            }
            _ => return ends(&mut guest, behavior),
        }
    }
}

/// Replies on the control socket of user-mode Linux and checks the requests.
fn listen() {
    fs::create_dir_all("uml/guest").unwrap();
    let socket = UnixDatagram::bind("uml/guest/mconsole").unwrap();
    thread::spawn(move || {
        let mut all = "requested: ".to_owned();
        loop {
            let mut request = [0; 1000];
            let length = socket.recv(&mut request).unwrap();
            let number = |at: usize| u32::from_ne_bytes(request[at..at + 4].try_into().unwrap());
            assert_eq!((length, number(0), number(4)), (524, 0xcafe_babe, 2));
            let text = &request[12..12 + usize::try_from(number(8)).unwrap()];
            all += &format!("{}\n", str::from_utf8(text).unwrap());
            if text.ends_with(b"t") {
                print!("{all}");
                std::io::stdout().flush().unwrap();
            }
        }
    });
}

fn ends(guest: &mut Guest, behavior: &str) -> ExitCode {
    guest.send_heartbeat("working");
    if behavior.contains("panic") {
        println!("[    1.234567] BUG: unable to handle page fault for address: 0000000000000007");
        println!("[    1.234568] Oops: 0000 [#1] PREEMPT SMP NOPTI");
        println!("[    1.234569] Kernel panic - not syncing: Fatal exception");
    }
    if behavior == "hang in panic" {
        forever();
    }
    ExitCode::SUCCESS
}
