//! The arguments of a machine, and what they mean for what is measured in it.

use std::{ffi::OsString, os::unix::ffi::OsStrExt as _, path::Path};

use model::{Bytes, Environment};

use super::{Disk, Engine, INITRAMFS, MAILBOX, Memory, Ready, UML, UML_NAME, Wanted, is_file};
use crate::GuestError;

/// The most disks: user-mode Linux has sixteen (`MAX_DEV` in arch/um/drivers/ubd_kern.c), and the
/// mailbox is one of them.
const DISKS_MAX: usize = 15;
/// What every kernel of a PC is told: where its console is, to be short, to end when it panics,
/// where its first program is, not to move itself, and to leave out what costs time and is not for
/// a machine that lives for minutes (admin-guide/kernel-parameters.rst).
const PC: [&str; 8] = [
    "console=ttyS0",
    "quiet",
    "panic=-1",
    "rdinit=/init",
    "nokaslr",
    "apparmor=0",
    "audit=0",
    "cryptomgr.notests",
];
/// What is for emulated ones only: no work-arounds for flaws that an emulator does not have, and no
/// doubts about clocks that it makes.
const EMULATED: [&str; 3] = ["mitigations=off", "tsc=reliable", "no_timer_check"];
/// QEMU may not start programs, gain rights, or use old system calls (qemu(1)).
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// A machine ready to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Launch {
    /// Program and arguments.
    pub(super) arguments: Vec<OsString>,
    /// What is to be recorded.
    pub(super) facts: Environment,
}

impl Launch {
    /// That of what is wanted, on what is there.
    ///
    /// # Errors
    /// [`GuestError::Unusable`] and [`GuestError::Missing`], if that cannot be.
    pub(super) fn of(wanted: &Wanted<'_>, ready: &Ready) -> Result<Self, GuestError> {
        check(wanted, ready)?;
        let uml = wanted.engine == Engine::Uml;
        let program = if uml { &wanted.kernel.image } else { &ready.program };
        let mut arguments = vec![program.clone().into_os_string()];
        if uml {
            user_mode(wanted, &mut arguments);
        } else {
            emulated(wanted, &ready.version, &mut arguments);
        }
        let facts = facts(wanted, ready, &arguments);
        Ok(Self { arguments, facts })
    }
}

/// Whether the engine can be what is wanted.
fn check(wanted: &Wanted<'_>, ready: &Ready) -> Result<(), GuestError> {
    let engine = wanted.engine;
    let unusable = |why: &str, cure: &str| {
        Err(GuestError::Unusable { engine: engine.name(), why: why.into(), cure: cure.into() })
    };
    if ready.engine != engine {
        return unusable("another engine was made ready", "make this one ready");
    }
    if wanted.kernel.architecture != engine.architecture() {
        return unusable("the kernel is for another machine", "name a kernel that it can boot");
    }
    if wanted.processors == 0 {
        return unusable("it was asked to have no processor", "ask for one or more");
    }
    if engine.is_single() && wanted.processors > 1 {
        return unusable("it has exactly one processor", "ask for one");
    }
    if engine == Engine::Counted && !wanted.disks.is_empty() {
        return unusable("disks of the host answer at uncounted times", "make the disk inside");
    }
    if wanted.disks.len() > DISKS_MAX {
        return unusable("it has at most 15 disks", "take fewer");
    }
    if wanted.memory.0 < Bytes::MIB {
        return unusable("it has no memory", "give it 256 MiB or more");
    }
    let images = wanted.disks.iter().map(|disk| &disk.file);
    for file in images.chain([&wanted.kernel.image]) {
        if !file.is_absolute() || !is_file(file) {
            let what = format!("{} is not the absolute path of a file", file.display());
            return Err(GuestError::Missing { what, cure: "name one that is".into() });
        }
        // These divide a kernel's command line, and the parts of a disk's name in it.
        let parts = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b',' | b':');
        if engine == Engine::Uml && file.as_os_str().as_bytes().iter().any(parts) {
            return unusable(
                &format!("a blank, comma, or colon is in {}", file.display()),
                "take a path without",
            );
        }
    }
    super::preflight::check_registers(engine, &wanted.kernel.release)
}

/// What a kernel is told besides where instructions are counted: to give all programs the same
/// addresses, and not to find out how fast its clocks go. The counter of the processor goes by the
/// nanosecond, and to time that of its interrupts the kernel waits in a loop of `pause`
/// (`calibrate_APIC_clock`, arch/x86/kernel/apic/apic.c), each of which ends a block of translated
/// code: that took two thirds of a boot (10.6 s of processor time, and 3.9 s without). The chipset
/// has another timer (Documentation/admin-guide/kernel-parameters.txt).
const COUNTED: [&str; 3] = ["norandmaps", "noapictimer", "tsc_early_khz=1000000"];

/// A path as the machine is told it: short if it is in the directory in which it runs.
fn shown<'a>(wanted: &Wanted<'_>, file: &'a Path) -> &'a Path {
    file.strip_prefix(&wanted.directory).unwrap_or(file)
}

fn mebibytes(wanted: &Wanted<'_>) -> u64 {
    wanted.memory.0 / Bytes::MIB
}

/// The name of the mailbox in the guest, which comes after the disks.
fn mailbox(wanted: &Wanted<'_>) -> String {
    let letter = (b'a'..=b'z').nth(wanted.disks.len()).map_or('z', char::from);
    let kind = if wanted.engine == Engine::Uml { "ubd" } else { "vd" };
    format!("fslab.mailbox=/dev/{kind}{letter}")
}

/// The letters behind the number of a disk of user-mode Linux (`ubd_setup_common` in
/// arch/um/drivers/ubd_kern.c): `s` opens it with `O_SYNC`, `t` takes discards away, which it does
/// in pieces of 32 KiB, 10 times slower than a mkfs without.
fn letters(disk: &Disk) -> &'static str {
    match (disk.synced, disk.discards) {
        (true, true) => "s",
        (true, false) => "st",
        (false, true) => "",
        (false, false) => "t",
    }
}

/// Those of user-mode Linux (virt/uml/user_mode_linux_howto_v2.rst, and `--help`).
fn user_mode(wanted: &Wanted<'_>, arguments: &mut Vec<OsString>) {
    let mut add = |text: String| arguments.push(text.into());
    add(format!("mem={}M", mebibytes(wanted)));
    add(format!("initrd={INITRAMFS}"));
    for fixed in ["con=null", "con0=fd:0,fd:1", "ssl=null", "quiet", "panic=-1", "noreboot"] {
        add(fixed.into());
    }
    add(format!("uml_dir={UML}/"));
    add(format!("umid={UML_NAME}"));
    add(mailbox(wanted));
    wanted.append.iter().cloned().for_each(&mut add);
    for (number, disk) in wanted.disks.iter().enumerate() {
        let mut text = OsString::from(format!("ubd{number}{}=", letters(disk)));
        text.push(shown(wanted, &disk.file));
        arguments.push(text);
    }
    arguments.push(format!("ubd{}={MAILBOX}", wanted.disks.len()).into());
}

/// Those of QEMU (qemu(1)). The machine is a q35, whose firmware enters an uncompressed kernel at
/// once (PVH), and has no device but what is named.
fn emulated(wanted: &Wanted<'_>, version: &str, arguments: &mut Vec<OsString>) {
    let engine = wanted.engine;
    let mut add = |text: &str| arguments.extend(text.split(' ').map(OsString::from));
    add("-nodefaults -no-user-config -display none -monitor none -no-reboot -serial stdio -M q35");
    let processors = wanted.processors;
    match engine {
        Engine::Kvm => add(&format!("-accel kvm -smp {processors}")),
        Engine::Tcg => {
            let thread = if keeps_code_whole(version) { "multi" } else { "single" };
            add(&format!("-accel tcg,thread={thread} -smp {processors}"));
        }
        // One instruction is one nanosecond, and waiting takes none; what else could differ from
        // run to run is fixed: random numbers, and the date.
        Engine::Counted => add("-accel tcg,thread=single -smp 1 -icount shift=0,sleep=off \
                                -seed 42 -rtc base=2026-01-01T00:00:00,clock=vm"),
        Engine::Uml => {}
    }
    add(&format!("-m {} -cpu {}", mebibytes(wanted), engine.processor()));
    add(&format!("-sandbox {SANDBOX} -initrd {INITRAMFS} -kernel"));
    arguments.push(wanted.kernel.image.clone().into_os_string());
    for (number, disk) in wanted.disks.iter().enumerate() {
        drive(shown(wanted, &disk.file), disk, &format!("fslab{number}"), arguments);
    }
    let own = Disk { file: MAILBOX.into(), synced: false, discards: false };
    drive(&own.file, &own, "fslabbox", arguments);
    let mut line: Vec<&str> = PC.to_vec();
    match engine {
        Engine::Counted => line.extend(EMULATED.iter().chain(&COUNTED)),
        Engine::Tcg => line.extend(EMULATED),
        Engine::Kvm | Engine::Uml => {}
    }
    let mailbox = mailbox(wanted);
    line.push(&mailbox);
    line.extend(wanted.append.iter().map(String::as_str));
    arguments.extend(["-append".into(), line.join(" ").into()]);
}

/// Whether this QEMU may have a thread for each processor. Before 8.1 one could translate code
/// while another one was writing it, and kernels, which rewrite their own (jump labels), died of
/// that while they booted, once in 30 times with 6.12 (“accel/tcg: Always lock pages before
/// translation”). One whose version cannot be told is taken for old.
pub(super) fn keeps_code_whole(version: &str) -> bool {
    let mut numbers = version
        .split_ascii_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .into_iter()
        .flat_map(|word| word.split('.'))
        .map(str::parse::<u32>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= (8, 1),
        _ => false,
    }
}

/// A disk of QEMU.
fn drive(file: &Path, disk: &Disk, serial: &str, arguments: &mut Vec<OsString>) {
    let mut backend = b"file=".to_vec();
    for byte in file.as_os_str().as_bytes() {
        backend.push(*byte);
        // Commas divide, and are written twice (qemu(1), -drive).
        if *byte == b',' {
            backend.push(*byte);
        }
    }
    let (cache, discard) = modes(disk);
    backend
        .extend(format!(",if=none,id={serial},format=raw,cache={cache},discard={discard}").bytes());
    let no_discards = if disk.discards { "" } else { ",discard=off,write-zeroes=off" };
    let front = format!("virtio-blk-pci,drive={serial},serial={serial}{no_discards}");
    arguments.push("-drive".into());
    arguments.push(std::ffi::OsStr::from_bytes(&backend).to_owned());
    arguments.extend(["-device".into(), front.into()]);
}

/// The modes of a disk's cache and discards, in QEMU's words. A guest's flush is a fdatasync(2) of
/// the host in both; with `writethrough` each write has one.
fn modes(disk: &Disk) -> (&'static str, &'static str) {
    let cache = if disk.synced { "writethrough" } else { "writeback" };
    (cache, if disk.discards { "unmap" } else { "ignore" })
}

/// What a disk is to the guest, in words.
fn model(engine: Engine, disk: &Disk) -> String {
    if engine == Engine::Uml {
        let letters = letters(disk);
        let flags = if letters.is_empty() { "no flags".into() } else { format!("flags {letters}") };
        return format!("ubd, {flags}");
    }
    let (cache, discard) = modes(disk);
    format!("virtio-blk, cache={cache}, discard={discard}")
}

/// Whether a flush of the guest is one of the host. User-mode Linux drops it (its I/O thread gets a
/// request without data, and does nothing; arch/um/drivers/ubd_kern.c), so that only writes that
/// are synchronous themselves are durable.
fn flushes(engine: Engine, disks: &[Disk]) -> bool {
    match engine {
        Engine::Kvm | Engine::Tcg => !disks.is_empty(),
        Engine::Uml => !disks.is_empty() && disks.iter().all(|disk| disk.synced),
        Engine::Counted => false,
    }
}

fn facts(wanted: &Wanted<'_>, ready: &Ready, arguments: &[OsString]) -> Environment {
    let mut facts = Environment::default();
    let engine = wanted.engine;
    facts.set("guest.engine", engine.name());
    let version = if engine == Engine::Uml { &wanted.kernel.release } else { &ready.version };
    facts.set("guest.engine_version", version);
    facts.set("guest.kernel", &wanted.kernel.release);
    facts.set("guest.kernel_hash", &wanted.kernel.hash);
    facts.set("guest.arguments", line(arguments));
    facts.set("guest.processor", engine.processor());
    facts.set("guest.processors", wanted.processors.to_string());
    facts.set("guest.memory_bytes", (mebibytes(wanted) * Bytes::MIB).to_string());
    facts.set(
        "guest.memory_on",
        match &ready.memory {
            Memory::Anonymous => "memory",
            Memory::Tmpfs(_) | Memory::Private => "tmpfs",
            Memory::Disk => "disk",
        },
    );
    let mut models: Vec<String> = wanted.disks.iter().map(|disk| model(engine, disk)).collect();
    models.dedup();
    if !models.is_empty() {
        facts.set("guest.disk", models.join("; "));
    }
    let flush = if flushes(engine, &wanted.disks) { "yes" } else { "no" };
    facts.set("guest.host_flush", flush);
    facts.set("guest.unit", engine.unit());
    facts
}

/// Arguments as a line that a shell would divide the same way.
fn line(arguments: &[OsString]) -> String {
    let quoted = arguments.iter().map(|argument| {
        let text = argument.to_string_lossy();
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./,:@%".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            text.into_owned()
        } else {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}
