use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Mutex,
};

use expect_test::{Expect, expect};
use model::Bytes;
use proptest::{collection::vec, prelude::*};
use tempfile::TempDir;

use super::{
    Disk, Engine, GuestSpec, Memory, Ready,
    channel::HostChannel,
    files::{isolation, isolation_for},
    launch::{Launch, has_safe_multithreaded_tcg},
    preflight::{
        available, check_architecture,
        uml::{checked, fits, is_suitable},
    },
    stacks::request,
};
use crate::{
    GuestError, Kernel,
    kernel::Architecture,
    mailbox::{From, HEARTBEAT, Header, Heartbeat, PAYLOAD_MAX, SIZE},
    supervisor::Isolation,
};

fn kernel(place: &Path, architecture: Architecture) -> Kernel {
    Kernel {
        release: "6.13.1-test".into(),
        architecture,
        origin: "test".into(),
        hash: "0123".into(),
        image: place.join("vmlinux"),
        modules: None,
    }
}

fn ready(engine: Engine) -> Ready {
    let memory = match engine {
        Engine::Uml => Memory::Tmpfs("/dev/shm".into()),
        Engine::Kvm | Engine::Tcg | Engine::Icount => Memory::Anonymous,
    };
    Ready { engine, program: "/usr/bin/qemu-system-x86_64".into(), version: "7.2".into(), memory }
}

/// Creates a directory with a kernel, a directory for a machine, and images in both.
fn place() -> TempDir {
    let place = TempDir::new().unwrap();
    fs::create_dir(place.path().join("machine")).unwrap();
    for file in ["vmlinux", "image", "machine/inner", "a, b"] {
        fs::write(place.path().join(file), "").unwrap();
    }
    place
}

fn guest<'a>(place: &Path, kernel: &'a Kernel, engine: Engine) -> GuestSpec<'a> {
    let disk = |file: &str, synced, discards| Disk { file: place.join(file), synced, discards };
    let disks = match engine {
        Engine::Icount => Vec::new(),
        Engine::Kvm => vec![disk("a, b", false, false)],
        Engine::Tcg | Engine::Uml => vec![
            disk("machine/inner", false, false),
            disk("image", true, true),
            disk("image", true, false),
            disk("image", false, true),
        ],
    };
    GuestSpec {
        engine,
        kernel,
        initramfs: &[],
        memory: Bytes(Bytes::MIB * 512 + 1),
        cpus: if engine == Engine::Tcg { 2 } else { 1 },
        disks,
        append: vec!["brd.rd_size=393216".into(), "fslab.test".into()],
        directory: place.join("machine"),
    }
}

fn launch(engine: Engine) -> String {
    let place = place();
    let kernel = kernel(place.path(), engine.architecture());
    let launch = Launch::of(&guest(place.path(), &kernel, engine), &ready(engine)).unwrap();
    let facts = launch.facts.0.iter().map(|(key, value)| format!("{key}: {value}\n"));
    let text: String = facts.collect();
    text.replace(&place.path().display().to_string(), "PLACE")
}

fn check(engine: Engine, expected: &Expect) {
    expected.assert_eq(&launch(engine));
}

#[test]
fn kvm_arguments_and_facts() {
    check(
        Engine::Kvm,
        &expect![[r#"
            guest.arguments: /usr/bin/qemu-system-x86_64 -nodefaults -no-user-config -display none -monitor none -no-reboot -serial stdio -M q35 -accel kvm -smp 1 -m 512 -cpu host -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny -initrd initramfs -kernel PLACE/vmlinux -drive 'file=PLACE/a,, b,if=none,id=fslab0,format=raw,cache=writeback,discard=ignore' -device virtio-blk-pci,drive=fslab0,serial=fslab0,discard=off,write-zeroes=off -drive file=mailbox,if=none,id=fslabbox,format=raw,cache=writeback,discard=ignore -device virtio-blk-pci,drive=fslabbox,serial=fslabbox,discard=off,write-zeroes=off -append 'console=ttyS0 quiet panic=-1 rdinit=/init nokaslr apparmor=0 audit=0 cryptomgr.notests fslab.mailbox=/dev/vdb brd.rd_size=393216 fslab.test'
            guest.disk: virtio-blk, cache=writeback, discard=ignore
            guest.engine: kvm
            guest.engine_version: 7.2
            guest.host_flush: yes
            guest.kernel: 6.13.1-test
            guest.kernel_hash: 0123
            guest.memory_backing: memory
            guest.memory_bytes: 536870912
            guest.processor: host
            guest.processors: 1
            guest.unit: ns
        "#]],
    );
}

#[test]
fn tcg_arguments_and_facts() {
    check(
        Engine::Tcg,
        &expect![[r#"
            guest.arguments: /usr/bin/qemu-system-x86_64 -nodefaults -no-user-config -display none -monitor none -no-reboot -serial stdio -M q35 -accel tcg,thread=single -smp 2 -m 512 -cpu max,la57=off,erms=off,fsrm=off -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny -initrd initramfs -kernel PLACE/vmlinux -drive file=inner,if=none,id=fslab0,format=raw,cache=writeback,discard=ignore -device virtio-blk-pci,drive=fslab0,serial=fslab0,discard=off,write-zeroes=off -drive file=PLACE/image,if=none,id=fslab1,format=raw,cache=writethrough,discard=unmap -device virtio-blk-pci,drive=fslab1,serial=fslab1 -drive file=PLACE/image,if=none,id=fslab2,format=raw,cache=writethrough,discard=ignore -device virtio-blk-pci,drive=fslab2,serial=fslab2,discard=off,write-zeroes=off -drive file=PLACE/image,if=none,id=fslab3,format=raw,cache=writeback,discard=unmap -device virtio-blk-pci,drive=fslab3,serial=fslab3 -drive file=mailbox,if=none,id=fslabbox,format=raw,cache=writeback,discard=ignore -device virtio-blk-pci,drive=fslabbox,serial=fslabbox,discard=off,write-zeroes=off -append 'console=ttyS0 quiet panic=-1 rdinit=/init nokaslr apparmor=0 audit=0 cryptomgr.notests mitigations=off tsc=reliable no_timer_check fslab.mailbox=/dev/vde brd.rd_size=393216 fslab.test'
            guest.disk: virtio-blk, cache=writeback, discard=ignore; virtio-blk, cache=writethrough, discard=unmap; virtio-blk, cache=writethrough, discard=ignore; virtio-blk, cache=writeback, discard=unmap
            guest.engine: tcg
            guest.engine_version: 7.2
            guest.host_flush: yes
            guest.kernel: 6.13.1-test
            guest.kernel_hash: 0123
            guest.memory_backing: memory
            guest.memory_bytes: 536870912
            guest.processor: max,la57=off,erms=off,fsrm=off
            guest.processors: 2
            guest.unit: emulated ns, not performance results
        "#]],
    );
}

#[test]
fn icount_arguments_and_facts() {
    check(
        Engine::Icount,
        &expect![[r#"
            guest.arguments: /usr/bin/qemu-system-x86_64 -nodefaults -no-user-config -display none -monitor none -no-reboot -serial stdio -M q35 -accel tcg,thread=single -smp 1 -icount shift=0,sleep=off -seed 42 -rtc base=2026-01-01T00:00:00,clock=vm -m 512 -cpu max,la57=off,erms=off,fsrm=off -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny -initrd initramfs -kernel PLACE/vmlinux -drive file=mailbox,if=none,id=fslabbox,format=raw,cache=writeback,discard=ignore -device virtio-blk-pci,drive=fslabbox,serial=fslabbox,discard=off,write-zeroes=off -append 'console=ttyS0 quiet panic=-1 rdinit=/init nokaslr apparmor=0 audit=0 cryptomgr.notests mitigations=off tsc=reliable no_timer_check norandmaps noapictimer tsc_early_khz=1000000 fslab.mailbox=/dev/vda brd.rd_size=393216 fslab.test'
            guest.engine: icount
            guest.engine_version: 7.2
            guest.host_flush: no
            guest.kernel: 6.13.1-test
            guest.kernel_hash: 0123
            guest.memory_backing: memory
            guest.memory_bytes: 536870912
            guest.processor: max,la57=off,erms=off,fsrm=off
            guest.processors: 1
            guest.unit: guest instructions
        "#]],
    );
}

#[test]
fn uml_arguments_and_facts() {
    check(
        Engine::Uml,
        &expect![[r#"
            guest.arguments: PLACE/vmlinux mem=512M initrd=initramfs con=null con0=fd:0,fd:1 ssl=null quiet panic=-1 noreboot uml_dir=uml/ umid=guest fslab.mailbox=/dev/ubde brd.rd_size=393216 fslab.test ubd0t=inner ubd1s=PLACE/image ubd2st=PLACE/image ubd3=PLACE/image ubd4=mailbox
            guest.disk: ubd, flags t; ubd, flags s; ubd, flags st; ubd, no flags
            guest.engine: uml
            guest.engine_version: 6.13.1-test
            guest.host_flush: no
            guest.kernel: 6.13.1-test
            guest.kernel_hash: 0123
            guest.memory_backing: tmpfs
            guest.memory_bytes: 536870912
            guest.processor: host CPU
            guest.processors: 1
            guest.unit: emulated ns, not performance results
        "#]],
    );
}

#[test]
fn unsupported_specifications_are_rejected_with_a_hint() {
    let place = place();
    let (pc, uml) =
        (kernel(place.path(), Architecture::Pc), kernel(place.path(), Architecture::Uml));
    let mut errors = String::new();
    let mut check_error = |engine, kernel, change: &dyn Fn(&mut GuestSpec<'_>)| {
        let mut guest = guest(place.path(), kernel, engine);
        change(&mut guest);
        let error = Launch::of(&guest, &ready(engine)).unwrap_err().to_string();
        errors += &error.replace(&place.path().display().to_string(), "PLACE");
        errors += "\n";
    };
    let image = |file: &str| Disk { file: file.into(), synced: false, discards: false };
    check_error(Engine::Tcg, &uml, &|_| {});
    check_error(Engine::Tcg, &pc, &|guest| guest.cpus = 0);
    check_error(Engine::Uml, &uml, &|guest| guest.cpus = 2);
    check_error(Engine::Icount, &pc, &|guest| guest.disks = vec![image("/image")]);
    check_error(Engine::Tcg, &pc, &|guest| guest.disks = vec![image("/image"); 16]);
    check_error(Engine::Tcg, &pc, &|guest| guest.disks = vec![image("/nowhere/image")]);
    check_error(Engine::Tcg, &pc, &|guest| guest.disks = vec![image("image")]);
    check_error(Engine::Uml, &uml, &|guest| {
        guest.disks = vec![image(place.path().join("a, b").to_str().unwrap())];
    });
    check_error(Engine::Tcg, &pc, &|guest| guest.memory = Bytes(1000));
    expect![[r#"
        tcg cannot run here: the kernel has another architecture; use a kernel that it can boot
        tcg cannot run here: the number of CPUs is 0; use at least 1
        uml cannot run here: it supports one CPU only; use 1 CPU
        icount cannot run here: the latency of host disks is not counted; use a disk in the guest
        tcg cannot run here: it supports at most 15 disks; use fewer disks
        /nowhere/image is not the absolute path of a file; use an existing file
        image is not the absolute path of a file; use an existing file
        uml cannot run here: PLACE/a, b contains a space, comma, or colon; use another path
        tcg cannot run here: it has less than 1 MiB of memory; use at least 256 MiB
    "#]]
    .assert_eq(&errors);
}

#[test]
fn large_registers_require_a_suitable_kernel() {
    // AVX, AVX-512, and AMX.
    for (release, bytes, expected) in [
        ("6.1.176", 832, true),
        ("6.1.176", 2696, true),
        ("6.1.176", 11008, false),
        ("6.12.9-custom", 11008, false),
        ("6.1.192-fslab", 11008, false),
        ("6.1.192-fslab-amx", 11008, true),
        ("6.1.192-fslab-amx", 12289, false),
        ("6.13.0", 11008, true),
        ("7.0", 11008, true),
        ("5", 11008, true),
        ("unknown", 11008, true),
        ("", 11008, true),
    ] {
        assert_eq!(fits(release, bytes), expected, "{release} {bytes}");
    }
}

#[test]
fn checks_of_user_mode_linux_are_parsed() {
    let tracing = "Checking that ptrace can change system call numbers...OK\n";
    assert_eq!(checked(tracing, false), None);
    let passed = format!("{tracing}Checking PROT_EXEC mmap in /dev/shm/x...OK\nAdding");
    assert_eq!(checked(&passed, false), Some(Ok(())));
    assert_eq!(checked(&passed, true), Some(Ok(())));
    let failed = format!(
        "{tracing}Checking PROT_EXEC mmap in /x...Operation not permitted\n\
         /x must be not mounted noexec\n\n"
    );
    let why = "it reports: /x must be not mounted noexec";
    assert_eq!(checked(&failed, true), Some(Err(why.into())));
    assert_eq!(checked("", true), Some(Err("it reports: nothing".into())));
}

#[test]
fn guests_require_an_x86_64_program() {
    check_architecture(Engine::Tcg, "x86_64").unwrap();
    let error = check_architecture(Engine::Tcg, "aarch64").unwrap_err();
    let text = "guests are x86-64, and this fslab is a program for aarch64";
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn available_memory_is_parsed() {
    let text = "MemTotal:       24683000 kB\nMemAvailable:   23375416 kB\n";
    assert_eq!(available(text), Some(Bytes::kib(23_375_416)));
    assert_eq!(available("MemTotal: 7 kB\n"), None);
    assert_eq!(available("MemAvailable: 18446744073709551615 kB\n"), None);
}

#[test]
fn only_memory_filesystems_with_space_are_suitable() {
    assert!(!is_suitable(Path::new("/proc"), Bytes(0)));
    assert!(!is_suitable(Path::new("/nowhere"), Bytes(0)));
    assert!(!is_suitable(Path::new("/dev/shm"), Bytes(u64::MAX)));
}

/// A mailbox and its file, through which the test acts as the guest.
fn mailbox() -> (HostChannel, File) {
    let file = tempfile::tempfile().unwrap();
    file.set_len(SIZE).unwrap();
    (HostChannel::new(file.try_clone().unwrap()), file)
}

/// Acts as the guest: reads the request and replies with its bytes in reverse order.
fn reverse(file: &File) {
    let mut sector = [0; crate::mailbox::SECTOR];
    file.read_exact_at(&mut sector, From::Host.header()).unwrap();
    let header = Header::of_sector(&sector).unwrap();
    let mut payload = vec![0; usize::try_from(header.length).unwrap()];
    file.read_exact_at(&mut payload, From::Host.payload()).unwrap();
    header.check(&payload).unwrap();
    payload.reverse();
    let header = Header::of(header.number, &payload).unwrap();
    file.write_all_at(&payload, From::Guest.payload()).unwrap();
    file.write_all_at(&header.to_sector(), From::Guest.header()).unwrap();
}

proptest! {
    #[test]
    fn each_request_has_its_own_reply(requests in vec(vec(any::<u8>(), 0..10_000), 1..5)) {
        let (mut channel, file) = mailbox();
        for request in requests {
            channel.send(&request).unwrap();
            // The reply to the previous request does not count.
            prop_assert!(channel.reply().unwrap().is_none());
            reverse(&file);
            let mut reply = channel.reply().unwrap().unwrap();
            reply.reverse();
            prop_assert_eq!(reply, request);
        }
    }

    #[test]
    fn a_damaged_mailbox_does_not_panic(
        bytes in vec(any::<u8>(), 1..200), at in 0..100_u64, good: bool,
    ) {
        let (mut channel, file) = mailbox();
        channel.send(b"request").unwrap();
        if good {
            reverse(&file);
        }
        file.write_all_at(&bytes, From::Guest.header() + at).unwrap();
        file.write_all_at(&bytes, HEARTBEAT + at).unwrap();
        let _ = (channel.reply(), channel.heartbeat());
    }
}

#[test]
fn a_payload_that_does_not_match_its_header_is_damaged() {
    let (mut channel, file) = mailbox();
    channel.send(b"request").unwrap();
    reverse(&file);
    file.write_all_at(b"x", From::Guest.payload()).unwrap();
    assert!(matches!(channel.reply(), Err(GuestError::Damaged(_))));
}

#[test]
fn a_too_long_request_is_not_sent() {
    let (mut channel, _file) = mailbox();
    let sent = channel.send(&vec![0; PAYLOAD_MAX + 1]);
    assert!(matches!(sent, Err(GuestError::Damaged(_))));
}

#[test]
fn heartbeats_are_received() {
    let (channel, file) = mailbox();
    assert_eq!(channel.heartbeat().unwrap(), None);
    let beat = Heartbeat { count: 7, text: "writing".into() };
    file.write_all_at(&beat.to_sector(), HEARTBEAT).unwrap();
    assert_eq!(channel.heartbeat().unwrap(), Some(beat));
}

#[test]
fn guest_memory_is_placed_in_memory_filesystems() {
    let mut spec = crate::supervisor::SupervisorSpec::default();
    let uml = |memory| Ready { memory, ..ready(Engine::Uml) };
    uml(Memory::Private).place_memory(&mut spec, Bytes::mib(100));
    assert_eq!(spec.temporary, Some(PathBuf::from("memory")));
    assert_eq!(spec.memory, Some(Bytes::mib(110)));
    spec = crate::supervisor::SupervisorSpec::default();
    uml(Memory::Tmpfs("/dev/shm".into())).place_memory(&mut spec, Bytes::mib(100));
    assert!(spec.temporary.unwrap().starts_with("/dev/shm"));
    assert_eq!(spec.memory, None);
}

#[test]
fn old_emulators_use_a_single_thread() {
    for (version, expected) in [
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)", false),
        ("QEMU emulator version 8.0.5", false),
        ("QEMU emulator version 8.1.0", true),
        ("QEMU emulator version 10.0.7 (Debian 1:10.0.7+ds-0+deb13u1)", true),
        ("QEMU emulator version", false),
        ("8", false),
        ("", false),
    ] {
        assert_eq!(has_safe_multithreaded_tcg(version), expected, "{version}");
    }
}

#[test]
fn control_requests_have_the_kernel_format() {
    let bytes = request("sysrq t");
    assert_eq!(bytes.len(), 524);
    assert_eq!(bytes[..4], 0xcafe_babe_u32.to_ne_bytes());
    assert_eq!(bytes[8..12], 7_u32.to_ne_bytes());
    assert_eq!(&bytes[12..20], b"sysrq t\0");
}

#[test]
fn missing_isolation_is_recorded_and_reported() {
    let all = Isolation { namespaces: true, network: true, identity: true };
    let fact = "user nobody, pid namespace, network namespace";
    assert_eq!(isolation_for(all, true), (fact.into(), None));
    let some = Isolation { network: false, identity: false, ..all };
    let (fact, warning) = isolation_for(some, true);
    assert_eq!(fact, "pid namespace");
    let warning = warning.unwrap();
    assert!(warning.contains("runs without user nobody, network namespace: "), "{warning}");
    let log = tempfile::tempfile().unwrap();
    let writer = Mutex::new(log.try_clone().unwrap());
    let subscriber = tracing_subscriber::fmt().with_writer(writer).finish();
    tracing::subscriber::with_default(subscriber, || isolation(some));
    let mut text = vec![0; usize::try_from(log.metadata().unwrap().len()).unwrap()];
    log.read_exact_at(&mut text, 0).unwrap();
    let logged = String::from_utf8(text).unwrap().contains("runs without user nobody");
    assert_eq!(logged, rustix::process::geteuid().is_root());
    // An ordinary user is not warned.
    assert_eq!(isolation_for(Isolation::default(), false), ("none".into(), None));
}
