//! Arguments of a machine and the resulting environment facts.

use std::{ffi::OsString, os::unix::ffi::OsStrExt as _, path::Path};

use model::{Bytes, Environment};

use super::{Disk, Engine, GuestSpec, INITRAMFS, MAILBOX, Memory, Ready, UML, UML_NAME, is_file};
use crate::GuestError;

/// Maximum number of disks: user-mode Linux has sixteen (`MAX_DEV` in arch/um/drivers/ubd_kern.c),
/// one of which is the mailbox.
const DISKS_MAX: usize = 15;
/// Kernel parameters of all PC kernels: console device, little output, end on panic, path of the
/// init program, no address randomization, and no features that are slow and not needed
/// (admin-guide/kernel-parameters.rst).
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
/// Additional parameters for emulated machines: no mitigations of CPU flaws that an emulator does
/// not have, and no checks of the clocks.
const EMULATED: [&str; 3] = ["mitigations=off", "tsc=reliable", "no_timer_check"];
/// Sandbox options of QEMU (qemu(1)): it must not use obsolete system calls, gain privileges, start
/// programs, or change its priority and CPU affinity.
const SANDBOX: &str = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny";

/// Command line of a machine and the resulting environment facts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Launch {
    /// Program and arguments.
    pub(super) arguments: Vec<OsString>,
    /// Environment facts to record.
    pub(super) facts: Environment,
}

impl Launch {
    /// Creates the arguments and facts of a guest on this host.
    ///
    /// # Errors
    /// [`GuestError::Unusable`] and [`GuestError::Missing`] if the host cannot run the guest.
    pub(super) fn of(guest: &GuestSpec<'_>, ready: &Ready) -> Result<Self, GuestError> {
        check(guest, ready)?;
        let uml = guest.engine == Engine::Uml;
        let program = if uml { &guest.kernel.image } else { &ready.program };
        let mut arguments = vec![program.clone().into_os_string()];
        if uml {
            uml_arguments(guest, &mut arguments);
        } else {
            qemu_arguments(guest, &ready.version, &mut arguments);
        }
        let facts = facts(guest, ready, &arguments);
        Ok(Self { arguments, facts })
    }
}

/// Checks that the engine supports the specification.
fn check(guest: &GuestSpec<'_>, ready: &Ready) -> Result<(), GuestError> {
    let engine = guest.engine;
    let unusable = |why: &str, hint: &str| {
        Err(GuestError::Unusable { engine: engine.name(), why: why.into(), hint: hint.into() })
    };
    if ready.engine != engine {
        return unusable("the preflight check was for another engine", "run it for this one");
    }
    if guest.kernel.architecture != engine.architecture() {
        return unusable("the kernel has another architecture", "use a kernel that it can boot");
    }
    if guest.cpus == 0 {
        return unusable("the number of CPUs is 0", "use at least 1");
    }
    if engine.is_single() && guest.cpus > 1 {
        return unusable("it supports one CPU only", "use 1 CPU");
    }
    if engine == Engine::Icount && !guest.disks.is_empty() {
        return unusable("the latency of host disks is not counted", "use a disk in the guest");
    }
    if guest.disks.len() > DISKS_MAX {
        return unusable("it supports at most 15 disks", "use fewer disks");
    }
    if guest.memory.0 < Bytes::MIB {
        return unusable("it has less than 1 MiB of memory", "use at least 256 MiB");
    }
    let images = guest.disks.iter().map(|disk| &disk.file);
    for file in images.chain([&guest.kernel.image]) {
        if !file.is_absolute() || !is_file(file) {
            let what = format!("{} is not the absolute path of a file", file.display());
            return Err(GuestError::Missing { what, hint: "use an existing file".into() });
        }
        // White space separates words of the command line of user-mode Linux; commas and colons
        // separate parts of a disk parameter (`ubd0=`).
        let separators = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b',' | b':');
        if engine == Engine::Uml && file.as_os_str().as_bytes().iter().any(separators) {
            return unusable(
                &format!("{} contains a space, comma, or colon", file.display()),
                "use another path",
            );
        }
    }
    super::preflight::check_registers(engine, &guest.kernel.release)
}

/// Additional parameters for icount guests: the same memory addresses in all runs of a program
/// (`norandmaps`) and no clock calibration. The time stamp counter counts nanoseconds, so its
/// frequency is 1,000,000 kHz. To calibrate the APIC timer, the kernel waits in a loop of `pause`
/// (`calibrate_APIC_clock`, arch/x86/kernel/apic/apic.c), and each `pause` ends a block of
/// translated code. The calibration took two thirds of a boot (10.6 s of CPU time, 3.9 s without
/// it). Guests without the APIC timer use the timer of the chipset
/// (Documentation/admin-guide/kernel-parameters.txt).
const ICOUNT: [&str; 3] = ["norandmaps", "noapictimer", "tsc_early_khz=1000000"];

/// Path of a file in the machine's arguments: relative if the file is in the working directory.
fn relative_path<'a>(guest: &GuestSpec<'_>, file: &'a Path) -> &'a Path {
    file.strip_prefix(&guest.directory).unwrap_or(file)
}

fn mebibytes(guest: &GuestSpec<'_>) -> u64 {
    guest.memory.0 / Bytes::MIB
}

/// Kernel parameter with the guest's device of the mailbox, which is the disk after all others.
fn mailbox(guest: &GuestSpec<'_>) -> String {
    let letter = (b'a'..=b'z').nth(guest.disks.len()).map_or('z', char::from);
    let kind = if guest.engine == Engine::Uml { "ubd" } else { "vd" };
    format!("fslab.mailbox=/dev/{kind}{letter}")
}

/// Flags after the number of a user-mode Linux disk (`ubd_setup_common` in
/// arch/um/drivers/ubd_kern.c). `s` opens the file with `O_SYNC`. `t` disables discards: the driver
/// splits them into pieces of 32 KiB, which makes mkfs 10 times slower.
fn ubd_flags(disk: &Disk) -> &'static str {
    match (disk.synced, disk.discards) {
        (true, true) => "s",
        (true, false) => "st",
        (false, true) => "",
        (false, false) => "t",
    }
}

/// Arguments of user-mode Linux (virt/uml/user_mode_linux_howto_v2.rst, and `--help`).
fn uml_arguments(guest: &GuestSpec<'_>, arguments: &mut Vec<OsString>) {
    let mut add = |text: String| arguments.push(text.into());
    add(format!("mem={}M", mebibytes(guest)));
    add(format!("initrd={INITRAMFS}"));
    for fixed in ["con=null", "con0=fd:0,fd:1", "ssl=null", "quiet", "panic=-1", "noreboot"] {
        add(fixed.into());
    }
    add(format!("uml_dir={UML}/"));
    add(format!("umid={UML_NAME}"));
    add(mailbox(guest));
    guest.append.iter().cloned().for_each(&mut add);
    for (number, disk) in guest.disks.iter().enumerate() {
        let mut text = OsString::from(format!("ubd{number}{}=", ubd_flags(disk)));
        text.push(relative_path(guest, &disk.file));
        arguments.push(text);
    }
    arguments.push(format!("ubd{}={MAILBOX}", guest.disks.len()).into());
}

/// Arguments of QEMU (qemu(1)). The machine type is q35, whose firmware starts an uncompressed
/// kernel directly (PVH). The machine has only the devices specified here.
fn qemu_arguments(guest: &GuestSpec<'_>, version: &str, arguments: &mut Vec<OsString>) {
    let engine = guest.engine;
    let mut add = |text: &str| arguments.extend(text.split(' ').map(OsString::from));
    add("-nodefaults -no-user-config -display none -monitor none -no-reboot -serial stdio -M q35");
    let cpus = guest.cpus;
    match engine {
        Engine::Kvm => add(&format!("-accel kvm -smp {cpus}")),
        Engine::Tcg => {
            let thread = if has_safe_multithreaded_tcg(version) { "multi" } else { "single" };
            add(&format!("-accel tcg,thread={thread} -smp {cpus}"));
        }
        // One instruction takes one nanosecond, and idle time is skipped. Other sources of
        // variation are fixed: random numbers and the date.
        Engine::Icount => add("-accel tcg,thread=single -smp 1 -icount shift=0,sleep=off \
                                -seed 42 -rtc base=2026-01-01T00:00:00,clock=vm"),
        Engine::Uml => {}
    }
    add(&format!("-m {} -cpu {}", mebibytes(guest), engine.cpu_model()));
    add(&format!("-sandbox {SANDBOX} -initrd {INITRAMFS} -kernel"));
    arguments.push(guest.kernel.image.clone().into_os_string());
    for (number, disk) in guest.disks.iter().enumerate() {
        drive(relative_path(guest, &disk.file), disk, &format!("fslab{number}"), arguments);
    }
    let own = Disk { file: MAILBOX.into(), synced: false, discards: false };
    drive(&own.file, &own, "fslabbox", arguments);
    let mut line: Vec<&str> = PC.to_vec();
    match engine {
        Engine::Icount => line.extend(EMULATED.iter().chain(&ICOUNT)),
        Engine::Tcg => line.extend(EMULATED),
        Engine::Kvm | Engine::Uml => {}
    }
    let mailbox = mailbox(guest);
    line.push(&mailbox);
    line.extend(guest.append.iter().map(String::as_str));
    arguments.extend(["-append".into(), line.join(" ").into()]);
}

/// True if this QEMU can use one thread per CPU. Before 8.1, one thread could translate code while
/// another thread was writing it (fixed by “accel/tcg: Always lock pages before translation”).
/// Kernels patch their own code (jump labels) and therefore crashed during boot: 6.12 once in 30
/// boots. An unknown version is treated as old.
pub(super) fn has_safe_multithreaded_tcg(version: &str) -> bool {
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

/// Arguments of a QEMU disk.
fn drive(file: &Path, disk: &Disk, serial: &str, arguments: &mut Vec<OsString>) {
    let mut backend = b"file=".to_vec();
    for byte in file.as_os_str().as_bytes() {
        backend.push(*byte);
        // Commas are separators and are escaped by doubling (qemu(1), -drive).
        if *byte == b',' {
            backend.push(*byte);
        }
    }
    let (cache, discard) = disk_modes(disk);
    backend
        .extend(format!(",if=none,id={serial},format=raw,cache={cache},discard={discard}").bytes());
    let no_discards = if disk.discards { "" } else { ",discard=off,write-zeroes=off" };
    let front = format!("virtio-blk-pci,drive={serial},serial={serial}{no_discards}");
    arguments.push("-drive".into());
    arguments.push(std::ffi::OsStr::from_bytes(&backend).to_owned());
    arguments.extend(["-device".into(), front.into()]);
}

/// Cache and discard modes of a disk, as QEMU names them. In both cache modes, a flush of the guest
/// causes an fdatasync(2) on the host; with `writethrough`, each write also causes one.
fn disk_modes(disk: &Disk) -> (&'static str, &'static str) {
    let cache = if disk.synced { "writethrough" } else { "writeback" };
    (cache, if disk.discards { "unmap" } else { "ignore" })
}

/// Describes a disk as seen by the guest.
fn disk_model(engine: Engine, disk: &Disk) -> String {
    if engine == Engine::Uml {
        let flags = ubd_flags(disk);
        let flags = if flags.is_empty() { "no flags".into() } else { format!("flags {flags}") };
        return format!("ubd, {flags}");
    }
    let (cache, discard) = disk_modes(disk);
    format!("virtio-blk, cache={cache}, discard={discard}")
}

/// True if a flush of the guest reaches the host. The I/O thread of user-mode Linux ignores
/// requests without data, such as flushes (arch/um/drivers/ubd_kern.c), so only synchronous writes
/// are durable.
fn flushes(engine: Engine, disks: &[Disk]) -> bool {
    match engine {
        Engine::Kvm | Engine::Tcg => !disks.is_empty(),
        Engine::Uml => !disks.is_empty() && disks.iter().all(|disk| disk.synced),
        Engine::Icount => false,
    }
}

fn facts(guest: &GuestSpec<'_>, ready: &Ready, arguments: &[OsString]) -> Environment {
    let mut facts = Environment::default();
    let engine = guest.engine;
    facts.set("guest.engine", engine.name());
    let version = if engine == Engine::Uml { &guest.kernel.release } else { &ready.version };
    facts.set("guest.engine_version", version);
    facts.set("guest.kernel", &guest.kernel.release);
    facts.set("guest.kernel_hash", &guest.kernel.hash);
    facts.set("guest.arguments", line(arguments));
    facts.set("guest.processor", engine.cpu_model());
    facts.set("guest.processors", guest.cpus.to_string());
    facts.set("guest.memory_bytes", (mebibytes(guest) * Bytes::MIB).to_string());
    facts.set(
        "guest.memory_backing",
        match &ready.memory {
            Memory::Anonymous => "memory",
            Memory::Tmpfs(_) | Memory::Private => "tmpfs",
            Memory::Disk => "disk",
        },
    );
    let mut models: Vec<String> = guest.disks.iter().map(|disk| disk_model(engine, disk)).collect();
    models.dedup();
    if !models.is_empty() {
        facts.set("guest.disk", models.join("; "));
    }
    let flush = if flushes(engine, &guest.disks) { "yes" } else { "no" };
    facts.set("guest.host_flush", flush);
    facts.set("guest.unit", engine.unit());
    facts
}

/// Formats arguments as a shell command line.
fn line(arguments: &[OsString]) -> String {
    let quoted = arguments.iter().map(|argument| {
        let text = argument.to_string_lossy();
        let unquoted = |c: char| c.is_ascii_alphanumeric() || "-_=+./,:@%".contains(c);
        if !text.is_empty() && text.chars().all(unquoted) {
            text.into_owned()
        } else {
            format!("'{}'", text.replace('\'', "'\\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}
