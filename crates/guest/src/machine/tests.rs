use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
};

use expect_test::{Expect, expect};
use model::Bytes;
use proptest::{collection::vec, prelude::*};
use tempfile::TempDir;

use super::{
    Disk, Engine, Memory, Ready, Wanted,
    launch::{Launch, keeps_code_whole},
    link::Link,
    preflight::{
        available,
        uml::{checked, fits, is_fit},
    },
    stacks::request,
};
use crate::{
    GuestError, Kernel,
    kernel::Architecture,
    mailbox::{From, HEARTBEAT, Header, Heartbeat, PAYLOAD_MAX, SIZE},
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
        Engine::Kvm | Engine::Tcg | Engine::Counted => Memory::Anonymous,
    };
    Ready { engine, program: "/usr/bin/qemu-system-x86_64".into(), version: "7.2".into(), memory }
}

/// A place with a kernel, a directory for a machine, and images in both.
fn place() -> TempDir {
    let place = TempDir::new().unwrap();
    fs::create_dir(place.path().join("machine")).unwrap();
    for file in ["vmlinux", "image", "machine/inner", "a, b"] {
        fs::write(place.path().join(file), "").unwrap();
    }
    place
}

fn wanted<'a>(place: &Path, kernel: &'a Kernel, engine: Engine) -> Wanted<'a> {
    let disk = |file: &str, synced, discards| Disk { file: place.join(file), synced, discards };
    let disks = match engine {
        Engine::Counted => Vec::new(),
        Engine::Kvm => vec![disk("a, b", false, false)],
        Engine::Tcg | Engine::Uml => vec![
            disk("machine/inner", false, false),
            disk("image", true, true),
            disk("image", true, false),
            disk("image", false, true),
        ],
    };
    Wanted {
        engine,
        kernel,
        initramfs: &[],
        memory: Bytes(Bytes::MIB * 512 + 1),
        processors: if engine == Engine::Tcg { 2 } else { 1 },
        disks,
        append: vec!["brd.rd_size=393216".into(), "fslab.test".into()],
        directory: place.join("machine"),
    }
}

fn launch(engine: Engine) -> String {
    let place = place();
    let kernel = kernel(place.path(), engine.architecture());
    let launch = Launch::of(&wanted(place.path(), &kernel, engine), &ready(engine)).unwrap();
    let facts = launch.facts.0.iter().map(|(key, value)| format!("{key}: {value}\n"));
    let text: String = facts.collect();
    text.replace(&place.path().display().to_string(), "PLACE")
}

fn check(engine: Engine, expected: &Expect) {
    expected.assert_eq(&launch(engine));
}

#[test]
fn kvm_is_started_like_this() {
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
        guest.memory_bytes: 536870912
        guest.memory_on: memory
        guest.processor: host
        guest.processors: 1
        guest.unit: ns
    "#]],
    );
}

#[test]
fn tcg_is_started_like_this() {
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
            guest.memory_bytes: 536870912
            guest.memory_on: memory
            guest.processor: max,la57=off,erms=off,fsrm=off
            guest.processors: 2
            guest.unit: emulated ns, not performance
        "#]],
    );
}

#[test]
fn counted_is_started_like_this() {
    check(
        Engine::Counted,
        &expect![[r#"
        guest.arguments: /usr/bin/qemu-system-x86_64 -nodefaults -no-user-config -display none -monitor none -no-reboot -serial stdio -M q35 -accel tcg,thread=single -smp 1 -icount shift=0,sleep=off -seed 42 -rtc base=2026-01-01T00:00:00,clock=vm -m 512 -cpu max,la57=off,erms=off,fsrm=off -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny -initrd initramfs -kernel PLACE/vmlinux -drive file=mailbox,if=none,id=fslabbox,format=raw,cache=writeback,discard=ignore -device virtio-blk-pci,drive=fslabbox,serial=fslabbox,discard=off,write-zeroes=off -append 'console=ttyS0 quiet panic=-1 rdinit=/init nokaslr apparmor=0 audit=0 cryptomgr.notests mitigations=off tsc=reliable no_timer_check norandmaps noapictimer tsc_early_khz=1000000 fslab.mailbox=/dev/vda brd.rd_size=393216 fslab.test'
        guest.engine: counted
        guest.engine_version: 7.2
        guest.host_flush: no
        guest.kernel: 6.13.1-test
        guest.kernel_hash: 0123
        guest.memory_bytes: 536870912
        guest.memory_on: memory
        guest.processor: max,la57=off,erms=off,fsrm=off
        guest.processors: 1
        guest.unit: guest instructions
    "#]],
    );
}

#[test]
fn uml_is_started_like_this() {
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
            guest.memory_bytes: 536870912
            guest.memory_on: tmpfs
            guest.processor: the host's
            guest.processors: 1
            guest.unit: emulated ns, not performance
        "#]],
    );
}

#[test]
fn what_an_engine_cannot_be_is_refused_with_a_cure() {
    let place = place();
    let (pc, uml) =
        (kernel(place.path(), Architecture::Pc), kernel(place.path(), Architecture::Uml));
    let mut told = String::new();
    let mut refused = |engine, kernel, change: &dyn Fn(&mut Wanted<'_>)| {
        let mut wanted = wanted(place.path(), kernel, engine);
        change(&mut wanted);
        let error = Launch::of(&wanted, &ready(engine)).unwrap_err().to_string();
        told += &error.replace(&place.path().display().to_string(), "PLACE");
        told += "\n";
    };
    let image = |file: &str| Disk { file: file.into(), synced: false, discards: false };
    refused(Engine::Tcg, &uml, &|_| {});
    refused(Engine::Tcg, &pc, &|wanted| wanted.processors = 0);
    refused(Engine::Uml, &uml, &|wanted| wanted.processors = 2);
    refused(Engine::Counted, &pc, &|wanted| wanted.disks = vec![image("/image")]);
    refused(Engine::Tcg, &pc, &|wanted| wanted.disks = vec![image("/image"); 16]);
    refused(Engine::Tcg, &pc, &|wanted| wanted.disks = vec![image("/nowhere/image")]);
    refused(Engine::Tcg, &pc, &|wanted| wanted.disks = vec![image("image")]);
    refused(Engine::Uml, &uml, &|wanted| {
        wanted.disks = vec![image(place.path().join("a, b").to_str().unwrap())];
    });
    refused(Engine::Tcg, &pc, &|wanted| wanted.memory = Bytes(1000));
    expect![[r#"
        tcg cannot run here: the kernel is for another machine; name a kernel that it can boot
        tcg cannot run here: it was asked to have no processor; ask for one or more
        uml cannot run here: it has exactly one processor; ask for one
        counted cannot run here: disks of the host answer at uncounted times; make the disk inside
        tcg cannot run here: it has at most 15 disks; take fewer
        /nowhere/image is not the absolute path of a file; name one that is
        image is not the absolute path of a file; name one that is
        uml cannot run here: a blank, comma, or colon is in PLACE/a, b; take a path without
        tcg cannot run here: it has no memory; give it 256 MiB or more
    "#]]
    .assert_eq(&told);
}

#[test]
fn registers_that_do_not_fit_are_known() {
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
fn checks_of_user_mode_linux_are_understood() {
    let tracing = "Checking that ptrace can change system call numbers...OK\n";
    assert_eq!(checked(tracing, false), None);
    let passed = format!("{tracing}Checking PROT_EXEC mmap in /dev/shm/x...OK\nAdding");
    assert_eq!(checked(&passed, false), Some(Ok(())));
    assert_eq!(checked(&passed, true), Some(Ok(())));
    let failed = format!(
        "{tracing}Checking PROT_EXEC mmap in /x...Operation not permitted\n\
         /x must be not mounted noexec\n\n"
    );
    let why = "it says: /x must be not mounted noexec";
    assert_eq!(checked(&failed, true), Some(Err(why.into())));
    assert_eq!(checked("", true), Some(Err("it says: nothing".into())));
}

#[test]
fn available_memory_is_read() {
    let text = "MemTotal:       24683000 kB\nMemAvailable:   23375416 kB\n";
    assert_eq!(available(text), Some(Bytes::kib(23_375_416)));
    assert_eq!(available("MemTotal: 7 kB\n"), None);
    assert_eq!(available("MemAvailable: 18446744073709551615 kB\n"), None);
}

#[test]
fn only_memory_file_systems_with_room_are_fit() {
    assert!(!is_fit(Path::new("/proc"), Bytes(0)));
    assert!(!is_fit(Path::new("/nowhere"), Bytes(0)));
    assert!(!is_fit(Path::new("/dev/shm"), Bytes(u64::MAX)));
}

/// A mailbox and its file, to play the guest.
fn mailbox() -> (Link, File) {
    let file = tempfile::tempfile().unwrap();
    file.set_len(SIZE).unwrap();
    (Link::new(file.try_clone().unwrap()), file)
}

/// What the guest does: reads the request, and answers it with its own bytes reversed.
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
    fn each_request_has_its_own_answer(requests in vec(vec(any::<u8>(), 0..10_000), 1..5)) {
        let (mut link, file) = mailbox();
        for request in requests {
            link.send(&request).unwrap();
            // That of the request before is none.
            prop_assert!(link.answer().unwrap().is_none());
            reverse(&file);
            let mut answer = link.answer().unwrap().unwrap();
            answer.reverse();
            prop_assert_eq!(answer, request);
        }
    }

    #[test]
    fn whatever_a_guest_writes_is_no_surprise(
        bytes in vec(any::<u8>(), 1..200), at in 0..100_u64, good: bool,
    ) {
        let (mut link, file) = mailbox();
        link.send(b"request").unwrap();
        if good {
            reverse(&file);
        }
        file.write_all_at(&bytes, From::Guest.header() + at).unwrap();
        file.write_all_at(&bytes, HEARTBEAT + at).unwrap();
        let _ = (link.answer(), link.heartbeat());
    }
}

#[test]
fn a_payload_that_is_not_what_its_header_says_is_damaged() {
    let (mut link, file) = mailbox();
    link.send(b"request").unwrap();
    reverse(&file);
    file.write_all_at(b"x", From::Guest.payload()).unwrap();
    assert!(matches!(link.answer(), Err(GuestError::Damaged(_))));
}

#[test]
fn too_long_a_request_is_not_sent() {
    let (mut link, _file) = mailbox();
    let sent = link.send(&vec![0; PAYLOAD_MAX + 1]);
    assert!(matches!(sent, Err(GuestError::Damaged(_))));
}

#[test]
fn heartbeats_are_heard() {
    let (link, file) = mailbox();
    assert_eq!(link.heartbeat().unwrap(), None);
    let beat = Heartbeat { count: 7, text: "writing".into() };
    file.write_all_at(&beat.to_sector(), HEARTBEAT).unwrap();
    assert_eq!(link.heartbeat().unwrap(), Some(beat));
}

#[test]
fn memory_goes_where_there_is_room() {
    let mut order = crate::cage::Order::default();
    let uml = |memory| Ready { memory, ..ready(Engine::Uml) };
    uml(Memory::Private).place_memory(&mut order, Bytes::mib(100));
    assert_eq!(order.temporary, Some(PathBuf::from("memory")));
    assert_eq!(order.memory, Some(Bytes::mib(110)));
    order = crate::cage::Order::default();
    uml(Memory::Tmpfs("/dev/shm".into())).place_memory(&mut order, Bytes::mib(100));
    assert!(order.temporary.unwrap().starts_with("/dev/shm"));
    assert_eq!(order.memory, None);
}

#[test]
fn old_emulators_run_processors_in_turn() {
    for (version, whole) in [
        ("QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)", false),
        ("QEMU emulator version 8.0.5", false),
        ("QEMU emulator version 8.1.0", true),
        ("QEMU emulator version 10.0.7 (Debian 1:10.0.7+ds-0+deb13u1)", true),
        ("QEMU emulator version", false),
        ("8", false),
        ("", false),
    ] {
        assert_eq!(keeps_code_whole(version), whole, "{version}");
    }
}

#[test]
fn requests_to_the_control_socket_have_their_form() {
    let bytes = request("sysrq t");
    assert_eq!(bytes.len(), 524);
    assert_eq!(bytes[..4], 0xcafe_babe_u32.to_ne_bytes());
    assert_eq!(bytes[8..12], 7_u32.to_ne_bytes());
    assert_eq!(&bytes[12..20], b"sysrq t\0");
}
