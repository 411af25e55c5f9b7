//! Machines whose emulator is this binary again: it plays the guest on the other side of the
//! mailbox, good and bad ones, so that what the host makes of each is seen in milliseconds.
//!
//! Without arguments it runs the tests below, one after the other; a failing one panics.
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "a test without the harness, which clippy does not see"
)]

use std::{
    env,
    ffi::OsString,
    fs::{self, File},
    io::{BufRead as _, BufReader, Write as _},
    os::unix::{
        fs::{FileExt as _, PermissionsExt as _},
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
    Disk, Engine, GuestError, Kernel, Limits, Machine, Memory, Ready, Wanted, cage,
    kernel::Architecture,
};
use model::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tempfile::TempDir;

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
const LIMITS: Limits = Limits { silence: PATIENCE, step: PATIENCE };

fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().collect();
    match arguments.get(1).and_then(|role| role.to_str()) {
        Some(cage::COMMAND) => return cage::main(arguments.into_iter().skip(2)),
        // The first arguments of QEMU, and of user-mode Linux.
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
    requests_are_answered_and_the_end_is_tidy();
    a_guest_that_beats_may_take_its_time();
    a_guest_that_ends_is_told_with_the_reason();
    a_guest_that_says_nothing_is_given_up();
    a_guest_that_does_not_get_on_is_given_up();
    stacks_of_user_mode_linux_are_fetched();
    an_answer_that_is_not_whole_is_damaged();
    an_interrupt_is_heard();
    what_is_there_is_not_ours();
    a_killed_parent_leaves_nothing();
    println!("machines: ok");
}

/// A place with a kernel, and an image in the directory of a machine and out of it.
fn place() -> (TempDir, Kernel) {
    let place = TempDir::new_in("/var/tmp").unwrap();
    fs::create_dir(place.path().join("machine")).unwrap();
    for file in ["vmlinux", "dear", "machine/cheap"] {
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
    deed: &str,
    interrupt: &Arc<AtomicBool>,
) -> Result<Machine, GuestError> {
    Machine::boot(&wanted(place, kernel, deed), &ready(), Arc::clone(interrupt))
}

fn wanted<'a>(place: &Path, kernel: &'a Kernel, deed: &str) -> Wanted<'a> {
    let disk = |file: &str| Disk { file: place.join(file), synced: false, discards: false };
    Wanted {
        engine: Engine::Tcg,
        kernel,
        initramfs: b"archive",
        memory: Bytes::mib(64),
        processors: 1,
        disks: vec![disk("machine/cheap"), disk("dear")],
        append: vec![format!("deed={deed}")],
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

/// Boots, and asks once.
fn outcome(deed: &str, limits: Limits) -> Result<Vec<u8>, GuestError> {
    let (place, kernel) = place();
    let mut machine = boot(place.path(), &kernel, deed, &Arc::default())?;
    machine.ask(b"request", limits, &mut |_| {})
}

fn names(directory: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    names
}

fn requests_are_answered_and_the_end_is_tidy() {
    let (place, kernel) = place();
    let directory = place.path().join("machine");
    let mut machine = boot(place.path(), &kernel, "answer", &Arc::default()).unwrap();
    assert!(machine.booted_in() > Duration::ZERO);
    assert_eq!(names(&directory), ["cheap", "initramfs", "mailbox"]);
    assert_eq!(fs::read(directory.join("initramfs")).unwrap(), b"archive");
    for name in ["initramfs", "mailbox"] {
        let mode = fs::metadata(directory.join(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    for length in [1, 4096, 3_000_000] {
        let request: Vec<u8> = (0..=255).cycle().take(length).collect();
        let mut heard = Vec::new();
        let mut answer =
            machine.ask(&request, LIMITS, &mut |text| heard.push(text.to_owned())).unwrap();
        answer.reverse();
        assert!(answer == request);
        assert_eq!(heard.last(), Some(&format!("turning {length} bytes")));
    }
    assert_eq!(machine.console(), "Linux version 6.1.0-test\n");
    assert_eq!(machine.facts().get("guest.engine"), Some("tcg"));
    machine.halt().unwrap();
    assert_eq!(names(&directory), ["cheap"]);
}

fn a_guest_that_beats_may_take_its_time() {
    // Its answer comes after three seconds, and it beats fifty times in the patience for one beat.
    assert_eq!(
        outcome("beat", Limits { silence: Duration::from_secs(2), step: Duration::from_secs(2) })
            .unwrap(),
        b"late"
    );
}

fn a_guest_that_ends_is_told_with_the_reason() {
    let told = |deed| match outcome(deed, LIMITS) {
        Err(error @ GuestError::Ended { .. }) => error.to_string(),
        other => panic!("{deed}: {other:?}"),
    };
    let mut all = String::new();
    for deed in ["refuse", "end", "panic", "hang in panic", "killed"] {
        all += &format!("{}\n", told(deed));
    }
    expect_test::expect![[r#"
        the guest ended while booting: “qemu-system-x86_64: there is no such machine” (its exit status is 1)
        the guest ended while working: “Linux version 6.1.0-test” (its exit status is 0)
        the guest ended while working: “BUG: unable to handle page fault for address: 0000000000000007”; “Kernel panic - not syncing: Fatal exception” (its exit status is 0)
        the guest ended while working: “BUG: unable to handle page fault for address: 0000000000000007”; “Kernel panic - not syncing: Fatal exception”
        the guest ended while up: “Linux version 6.1.0-test” (it was killed by signal 9)
    "#]].assert_eq(&all);
}

fn a_guest_that_says_nothing_is_given_up() {
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

/// A thing that hangs does not keep the heart from beating.
fn a_guest_that_does_not_get_on_is_given_up() {
    let limits = Limits { step: Duration::from_millis(200), ..LIMITS };
    let error = outcome("hang", limits).unwrap_err();
    let GuestError::Stuck { stuck, during, stacks, .. } = &error else { panic!("{error:?}") };
    assert!(stuck.0 > 200_000_000);
    assert_eq!((during.as_str(), stacks.as_str()), ("mounting", ""));
    assert_eq!(
        error.to_string(),
        "the guest did not get on for 0 s while mounting: \u{201c}Linux version 6.1.0-test\u{201d}"
    );
}

/// The kernel of user-mode Linux has a socket on which it can be asked.
fn stacks_of_user_mode_linux_are_fetched() {
    let limits = Limits { step: Duration::from_millis(200), ..LIMITS };
    let (place, kernel) = place();
    let kernel = Kernel {
        architecture: Architecture::Uml,
        release: "6.13.0-test".into(),
        image: env::current_exe().unwrap(),
        ..kernel
    };
    let ready = Ready { engine: Engine::Uml, memory: Memory::Disk, ..ready() };
    let wanted = Wanted { engine: Engine::Uml, ..wanted(place.path(), &kernel, "hang") };
    let mut machine = Machine::boot(&wanted, &ready, Arc::default()).unwrap();
    let error = machine.ask(b"request", limits, &mut |_| {}).unwrap_err();
    let GuestError::Stuck { last, stacks, .. } = &error else { panic!("{error:?}") };
    assert_eq!(last, "\u{201c}Linux version 6.1.0-test\u{201d}");
    assert_eq!(stacks, "asked for: sysrq 9\nsysrq p\nsysrq w\nsysrq t\n");
    assert!(machine.console().ends_with(stacks));
}

fn an_answer_that_is_not_whole_is_damaged() {
    assert!(matches!(outcome("damage", LIMITS), Err(GuestError::Damaged(_))));
}

fn an_interrupt_is_heard() {
    let (place, kernel) = place();
    let interrupt = Arc::new(AtomicBool::new(false));
    let mut machine = boot(place.path(), &kernel, "beat", &interrupt).unwrap();
    let answer = machine.ask(b"request", LIMITS, &mut |_| interrupt.store(true, Relaxed));
    assert!(matches!(answer, Err(GuestError::Interrupted)));
}

fn what_is_there_is_not_ours() {
    let (place, kernel) = place();
    let mailbox = place.path().join("machine/mailbox");
    fs::write(&mailbox, "dear").unwrap();
    let machine = boot(place.path(), &kernel, "answer", &Arc::default());
    assert!(matches!(machine, Err(GuestError::Missing { .. })));
    assert_eq!(fs::read(&mailbox).unwrap(), b"dear");
}

fn a_killed_parent_leaves_nothing() {
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
    poll(&mut files, Some(&Timespec::try_from(PATIENCE).unwrap())).unwrap();
    assert!(files[0].revents().contains(PollFlags::HUP), "processes are left");
    assert_eq!(names(place.path()), ["dear", "vmlinux"]);
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

/// The guest's side of the mailbox, as the format says.
struct Guest {
    mailbox: File,
    beats: u64,
    heard: u64,
}

const HALF: u64 = 32 << 20;

impl Guest {
    fn beat(&mut self, text: &str) {
        self.beats += 1;
        let mut sector = [0; 4096];
        sector[..8].copy_from_slice(b"fslabalv");
        sector[8..16].copy_from_slice(&self.beats.to_le_bytes());
        sector[16..16 + text.len()].copy_from_slice(text.as_bytes());
        self.mailbox.write_all_at(&sector, 4096).unwrap();
    }

    fn wait(&mut self) -> Vec<u8> {
        let mut sector = [0; 32];
        loop {
            self.mailbox.read_exact_at(&mut sector, 0).unwrap();
            let number = u64::from_le_bytes(sector[8..16].try_into().unwrap());
            if number > self.heard {
                self.heard = number;
                let length = u64::from_le_bytes(sector[16..24].try_into().unwrap());
                let mut payload = vec![0; usize::try_from(length).unwrap()];
                self.mailbox.read_exact_at(&mut payload, 8192).unwrap();
                return payload;
            }
            thread::yield_now();
        }
    }

    fn answer(&mut self, payload: &[u8], crc: u32) {
        let mut header = b"fslabbox".to_vec();
        header.extend(self.heard.to_le_bytes());
        header.extend((payload.len() as u64).to_le_bytes());
        header.extend(crc.to_le_bytes());
        header.extend(crc32fast::hash(&header).to_le_bytes());
        self.mailbox.write_all_at(payload, HALF + 8192).unwrap();
        self.mailbox.write_all_at(&header, HALF).unwrap();
    }
}

/// Does a deed on the other side.
fn guest(arguments: &[OsString]) -> ExitCode {
    let mut deeds = arguments.iter().filter_map(|text| text.to_str()?.split_once("deed="));
    let deed = deeds.next().unwrap().1;
    println!("Linux version 6.1.0-test");
    if deed == "refuse" {
        eprintln!("qemu-system-x86_64: there is no such machine");
        return ExitCode::from(1);
    }
    let mailbox = PathBuf::from("mailbox");
    let mailbox = File::options().read(true).write(true).open(mailbox).unwrap();
    let mut guest = Guest { mailbox, beats: 0, heard: 0 };
    guest.beat("up");
    loop {
        let mut request = guest.wait();
        match deed {
            _ if request.is_empty() => return ExitCode::SUCCESS,
            "answer" => {
                guest.beat(&format!("turning {} bytes", request.len()));
                request.reverse();
                guest.answer(&request, crc32fast::hash(&request));
            }
            "beat" => {
                for beat in 0..75 {
                    guest.beat(&format!("beat {beat}"));
                    thread::sleep(Duration::from_millis(40));
                }
                guest.answer(b"late", crc32fast::hash(b"late"));
            }
            "hang" => loop {
                guest.beat("mounting");
                thread::sleep(Duration::from_millis(10));
            },
            "damage" => guest.answer(b"answer", 7),
            "nothing" => forever(),
            "killed" => {
                Command::new("kill")
                    .args(["-KILL", &std::process::id().to_string()])
                    .status()
                    .unwrap();
            }
            _ => return ends(&mut guest, deed),
        }
    }
}

/// Answers on the control socket of user-mode Linux, by what its kernel has to be asked.
fn listen() {
    fs::create_dir_all("uml/guest").unwrap();
    let socket = UnixDatagram::bind("uml/guest/mconsole").unwrap();
    thread::spawn(move || {
        let mut all = "asked for: ".to_owned();
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

fn ends(guest: &mut Guest, deed: &str) -> ExitCode {
    guest.beat("working");
    if deed.contains("panic") {
        println!("[    1.234567] BUG: unable to handle page fault for address: 0000000000000007");
        println!("[    1.234568] Oops: 0000 [#1] PREEMPT SMP NOPTI");
        println!("[    1.234569] Kernel panic - not syncing: Fatal exception");
    }
    if deed == "hang in panic" {
        forever();
    }
    ExitCode::SUCCESS
}
