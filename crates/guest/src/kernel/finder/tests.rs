use std::{
    fs, os::unix::fs::PermissionsExt as _, path::Path, sync::atomic::AtomicBool, time::Instant,
};

use expect_test::expect;

use super::super::{
    Architecture, Cache, Kernel, KernelQuery,
    testing::{
        By, NEVER, RELEASE, TestRoot, boot_image, deb, files, packed, tar, tar_of, uml, vmlinux,
    },
};
use crate::{
    GuestError,
    packages::{NO_PACKAGE, packages},
    support::skipped,
};

fn package() -> Vec<u8> {
    deb(&packed(&tar_of(&files()), By::Xz))
}

#[test]
fn a_package_need_not_be_installed() {
    let place = TestRoot::new();
    let path = place.write("linux-image.deb", &package());
    let kernel = place.pc(&path).unwrap();
    assert_eq!(kernel.release, RELEASE);
    assert_eq!(kernel.architecture, Architecture::Pc);
    assert_eq!(kernel.origin, path);
    assert_eq!(kernel.hash.len(), 64);
    assert_eq!(fs::read(&kernel.image).unwrap(), vmlinux(RELEASE, true));
    let modules = kernel.modules.clone().unwrap();
    assert!(modules.ends_with(format!("modules/{RELEASE}")));
    assert_eq!(place.list(&modules), ["kernel/fs/xfs/xfs.ko", "modules.builtin"]);
    // The second call writes no files.
    let before = fs::metadata(&kernel.image).unwrap().modified().unwrap();
    assert_eq!(place.pc(&path).unwrap(), kernel);
    assert_eq!(fs::metadata(&kernel.image).unwrap().modified().unwrap(), before);
    let directories = fs::read_dir(place.cache.directory().join("kernels-1")).unwrap();
    assert_eq!(directories.count(), 1);
}

#[test]
fn all_supported_compressions_are_read() {
    for by in [By::Gzip, By::Xz, By::Zstd, By::Lz4] {
        let place = TestRoot::new();
        let image = boot_image(RELEASE, &vmlinux(RELEASE, true), by);
        let archive = tar(&[("usr/lib/modules/6.1.0-50-amd64/vmlinuz", &image)]);
        for (name, bytes) in [
            ("arch.pkg.tar", packed(&archive, by)),
            ("plain.tar", archive.clone()),
            ("debian.deb", deb(&packed(&archive, by))),
            ("plain.deb", deb(&archive)),
            ("vmlinuz", image.clone()),
        ] {
            let kernel = place.pc(&place.write(name, &bytes)).unwrap();
            assert_eq!(kernel.release, RELEASE, "{by:?} {name}");
            assert_eq!(fs::read(&kernel.image).unwrap(), vmlinux(RELEASE, true));
            assert_eq!(kernel.modules, None);
        }
    }
}

#[test]
fn the_newest_installed_kernel_is_the_default() {
    let place = TestRoot::new();
    for release in ["6.1.0-9-amd64", "6.1.0-50-amd64", "6.1.0-50-cloud-amd64", "5.10.0-30-amd64"] {
        let image = boot_image(release, &vmlinux(release, true), By::Gzip);
        place.write(&format!("boot/vmlinuz-{release}"), &image);
        place.write(&format!("lib/modules/{release}/modules.builtin"), b"");
    }
    place.write("boot/vmlinuz-6.9-broken", b"no kernel");
    let of = |named| place.find(named, Architecture::Pc).unwrap();
    let newest = of(KernelQuery::Newest);
    assert_eq!(newest.release, "6.1.0-50-amd64");
    assert_eq!(newest.origin, place.path("boot/vmlinuz-6.1.0-50-amd64").to_str().unwrap());
    assert_eq!(newest.modules, Some(place.path("lib/modules/6.1.0-50-amd64")));
    assert_eq!(of(KernelQuery::Text("5.10")).release, "5.10.0-30-amd64");
    assert_eq!(of(KernelQuery::Text("6.1.0-9")).release, "6.1.0-9-amd64");
    assert_eq!(of(KernelQuery::Text("6.1.0-50-cloud-amd64")).release, "6.1.0-50-cloud-amd64");
    let error = place.find(KernelQuery::Text("6.12"), Architecture::Pc).unwrap_err();
    expect!["no readable kernel 6.12 is installed; use an installed version, or the path of a kernel package (.deb), vmlinuz, or vmlinux; `apt-get download linux-image-VERSION-amd64-unsigned` downloads a package without root"]
        .assert_eq(&place.describe(&error));
    // Some distributions store the image next to its modules.
    let image = boot_image("6.17.1-arch1-1", &vmlinux("6.17.1-arch1-1", true), By::Zstd);
    place.write("usr/lib/modules/6.17.1-arch1-1/vmlinuz", &image);
    let newest = of(KernelQuery::Newest);
    assert_eq!(newest.modules, Some(place.path("usr/lib/modules/6.17.1-arch1-1")));
}

#[test]
fn an_unpacked_package_is_found_by_version() {
    let place = TestRoot::new();
    let path = place.write("linux-image.deb", &package());
    assert!(place.find(KernelQuery::Newest, Architecture::Pc).is_err(), "not yet unpacked");
    let named = place.pc(&path).unwrap();
    for text in [KernelQuery::Newest, KernelQuery::Text(RELEASE), KernelQuery::Text("6.1")] {
        let found = place.find(text, Architecture::Pc).unwrap();
        assert_eq!((found.origin.as_str(), &found.hash), ("linux-image.deb", &named.hash));
        assert_eq!((found.image, found.modules), (named.image.clone(), named.modules.clone()));
    }
    // The newest kernel is used, whether installed or from a package.
    let image = boot_image("6.9.1", &vmlinux("6.9.1", true), By::Gzip);
    place.write("boot/vmlinuz-6.9.1", &image);
    assert_eq!(place.find(KernelQuery::Newest, Architecture::Pc).unwrap().release, "6.9.1");
    assert_eq!(place.find(KernelQuery::Text("6.1"), Architecture::Pc).unwrap().release, RELEASE);
}

#[test]
fn kernels_that_only_root_can_read_are_reported() {
    let place = TestRoot::new();
    let image = boot_image(RELEASE, &vmlinux(RELEASE, true), By::Gzip);
    let path = place.write("boot/vmlinuz-6.1.0-50-amd64", &image);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::File::open(&path).is_ok() {
        skipped("kernels_that_only_root_can_read_are_reported", "a user other than root");
        return;
    }
    let error = place.find(KernelQuery::Newest, Architecture::Pc).unwrap_err();
    expect!["no readable kernel is installed (only root can read /boot/vmlinuz-6.1.0-50-amd64); use an installed version, or the path of a kernel package (.deb), vmlinuz, or vmlinux; `apt-get download linux-image-VERSION-amd64-unsigned` downloads a package without root; `chmod a+r` makes an installed kernel readable"]
        .assert_eq(&place.describe(&error));
}

#[test]
fn without_a_kernel_the_error_has_a_hint() {
    let place = TestRoot::new();
    let mut errors = String::new();
    for (named, architecture) in [
        (KernelQuery::Newest, Architecture::Pc),
        (KernelQuery::Text("/nowhere/linux.deb"), Architecture::Pc),
        (KernelQuery::Newest, Architecture::Uml),
        (KernelQuery::Text("/nowhere/linux.uml"), Architecture::Uml),
    ] {
        let error = place.find(named, architecture).unwrap_err();
        errors += &place.describe(&error);
        errors.push('\n');
    }
    expect![[r#"
        no readable kernel is installed; use an installed version, or the path of a kernel package (.deb), vmlinuz, or vmlinux; `apt-get download linux-image-VERSION-amd64-unsigned` downloads a package without root
        /nowhere/linux.deb does not exist; use an installed version, or the path of a kernel package (.deb), vmlinuz, or vmlinux
        linux.uml is not on PATH; install the package user-mode-linux, build a kernel (fslab guest kernel build), or use the path of the package or of its program linux.uml
        /nowhere/linux.uml does not exist; install the package user-mode-linux, build a kernel (fslab guest kernel build), or use the path of the package or of its program linux.uml
    "#]]
    .assert_eq(&errors);
}

#[test]
fn user_mode_linux_is_found_installed_and_in_a_package() {
    let place = TestRoot::new();
    let program = place.write("usr/bin/linux.uml", &uml("6.1.176"));
    place.write("usr/lib/uml/modules/6.1.176/modules.builtin", b"");
    for named in [KernelQuery::Newest, KernelQuery::Text("6.1"), KernelQuery::Text(&program)] {
        let kernel = place.find(named, Architecture::Uml).unwrap();
        assert_eq!((&kernel.release[..], kernel.architecture), ("6.1.176", Architecture::Uml));
        assert_eq!(kernel.image.to_str(), Some(&program[..]));
        assert_eq!(kernel.modules, Some(place.path("usr/lib/uml/modules/6.1.176")));
    }
    let error = place.find(KernelQuery::Text("6.12"), Architecture::Uml).unwrap_err();
    assert!(error.to_string().contains("is a user-mode Linux 6.1.176, not 6.12"), "{error}");
    let archive = tar(&[
        ("./usr/bin/linux.uml", &uml("6.1.176")),
        ("./usr/lib/uml/modules/6.1.176/kernel/fs/f2fs/f2fs.ko", b"f2fs"),
    ]);
    let path = place.write("user-mode-linux.deb", &deb(&packed(&archive, By::Xz)));
    let kernel = place.find(KernelQuery::Text(&path), Architecture::Uml).unwrap();
    assert_eq!(fs::read(&kernel.image).unwrap(), uml("6.1.176"));
    let mode = fs::metadata(&kernel.image).unwrap().permissions().mode();
    assert_eq!(mode & 0o100, 0o100, "it can be run");
    assert_eq!(place.list(&kernel.modules.unwrap()), ["kernel/fs/f2fs/f2fs.ko"]);
}

#[test]
fn modules_can_follow_a_kernel_path() {
    let place = TestRoot::new();
    let image = place.write("my:vmlinux", &vmlinux("6.12.0-own", true));
    assert_eq!(place.pc(&image).unwrap().modules, None);
    place.write("tree/lib/modules/6.12.0-own/kernel/fs/x.ko", b"x");
    for directory in ["tree", "tree/lib/modules", "tree/lib/modules/6.12.0-own"] {
        let text = format!("{image}:{}", place.path(directory).display());
        let kernel = place.pc(&text).unwrap();
        assert_eq!(kernel.modules, Some(place.path("tree/lib/modules/6.12.0-own")), "{directory}");
        assert_eq!((kernel.release, kernel.origin), ("6.12.0-own".to_owned(), text));
        assert_eq!(kernel.image, Path::new(&image));
    }
    let archive = tar(&[("lib/modules/6.12.0-own/kernel/fs/x.ko", b"x")]);
    let modules = place.write("linux-modules.deb", &deb(&packed(&archive, By::Zstd)));
    let kernel = place.pc(&format!("{image}:{modules}")).unwrap();
    assert_eq!(place.list(&kernel.modules.unwrap()), ["kernel/fs/x.ko"]);
    let error = place.pc(&format!("{image}:{}", place.path("").display())).unwrap_err();
    expect!["/: is not a directory of modules; use lib/modules/6.12.0-own"]
        .assert_eq(&place.describe(&error));
}

#[test]
fn a_kernel_without_pvh_stays_compressed() {
    let place = TestRoot::new();
    let image = boot_image(RELEASE, &vmlinux(RELEASE, false), By::Gzip);
    let path = place.write("vmlinuz", &image);
    assert_eq!(place.pc(&path).unwrap().image, Path::new(&path));
    let name = format!("boot/vmlinuz-{RELEASE}");
    let path = place.write("x.deb", &deb(&packed(&tar(&[(&name, &image)]), By::Gzip)));
    assert_eq!(fs::read(place.pc(&path).unwrap().image).unwrap(), image);
}

#[test]
fn other_files_are_rejected_with_a_reason() {
    let place = TestRoot::new();
    let mut errors = String::new();
    let mut refused = |name: &str, bytes: &[u8], architecture| {
        let path = place.write(name, bytes);
        let error = place.find(KernelQuery::Text(&path), architecture).unwrap_err();
        errors += &place.describe(&error);
        errors.push('\n');
    };
    let image = |by| boot_image(RELEASE, &vmlinux(RELEASE, true), by);
    let mut arm = vmlinux(RELEASE, true);
    arm[18] = 183;
    refused("empty", b"", Architecture::Pc);
    refused("text", &[b'x'; 2000], Architecture::Pc);
    refused("x.rpm", &[0xed, 0xab, 0xee, 0xdb, 3, 0], Architecture::Pc);
    refused("arm", &arm, Architecture::Pc);
    refused("fslab", &fs::read(std::env::current_exe().unwrap()).unwrap(), Architecture::Uml);
    refused("vmlinux", &vmlinux(RELEASE, false), Architecture::Pc);
    refused("vmlinux-2", &vmlinux(RELEASE, true), Architecture::Uml);
    refused("linux.uml", &uml("6.1.176"), Architecture::Pc);
    refused("vmlinuz", &image(By::Bzip2), Architecture::Pc);
    refused("vmlinuz-cut", &image(By::Xz)[..1600], Architecture::Pc);
    refused("vmlinuz-arm", &boot_image(RELEASE, &arm, By::Lz4), Architecture::Pc);
    refused("meta.deb", &deb(&tar(&[("./usr/share/doc/x", b"x")])), Architecture::Pc);
    refused("arm.deb", &deb(&tar(&[("./boot/vmlinuz-6.1", &arm)])), Architecture::Pc);
    refused("pc.deb", &package(), Architecture::Uml);
    refused("cut.deb", &package()[..700], Architecture::Pc);
    expect![[r#"
        /empty: is not a kernel or kernel package for x86-64; use an installed version, or the path of a kernel package (.deb), vmlinuz, or vmlinux
        /text: is not a kernel or kernel package for x86-64; use an installed version, or the path of a kernel package (.deb), vmlinuz, or vmlinux
        /x.rpm: is an RPM package, which is not supported; unpack it (rpm2cpio PACKAGE | cpio -idm) and use the vmlinuz in lib/modules/RELEASE or boot
        /arm: is not for x86-64; other architectures are not supported
        /fslab: is a program, but neither a vmlinux (no segment is at a kernel address) nor user-mode Linux (it has no section .uml.setup.init)
        /vmlinux: has no entry for virtual machines; use its bzImage, or build it with CONFIG_PVH
        /vmlinux-2: is a kernel for a PC, but a user-mode Linux program is required
        /linux.uml: is a user-mode Linux program, but a kernel for a PC is required
        /vmlinuz: is compressed by bzip2, which is not supported; decompress it first
        /vmlinuz-cut: is truncated: it has 1600 bytes, but its kernel ends at 1756; copy it again
        /vmlinuz-arm: contains a kernel that is not for x86-64; other architectures are not supported
        /meta.deb: contains no kernel; for a metapackage, use the package that it depends on (linux-image-VERSION); for a package of modules, use KERNEL:MODULES
        /arm.deb: contains a kernel that is not for x86-64; other architectures are not supported
        /pc.deb: contains a kernel of another kind than a user-mode Linux program
        /cut.deb: is truncated; copy it again
    "#]].assert_eq(&errors);
}

#[test]
fn an_interrupt_leaves_no_files() {
    let place = TestRoot::new();
    let path = place.write("linux-image.deb", &package());
    let error = place
        .find_until(KernelQuery::Text(&path), Architecture::Pc, &AtomicBool::new(true))
        .unwrap_err();
    assert!(matches!(error, GuestError::Interrupted), "{error}");
    assert!(!place.cache.directory().exists());
}

#[test]
#[expect(clippy::print_stdout, reason = "duration of unpacking")]
fn packages_of_distributions_are_unpacked() {
    let mut packages = packages();
    // The other packages take up to half a minute, and the boot test reads one of them.
    if std::env::var_os("FSLAB_KERNELS").is_none() {
        packages.retain(|package| package.to_string_lossy().contains("user-mode-linux"));
    }
    if packages.is_empty() {
        skipped("packages_of_distributions_are_unpacked", NO_PACKAGE);
    }
    for package in packages {
        let place = TestRoot::new();
        let uml = package.to_string_lossy().contains("user-mode-linux");
        let architecture = if uml { Architecture::Uml } else { Architecture::Pc };
        let text = package.to_str().unwrap();
        let start = Instant::now();
        let find = |cache: &Cache| -> Kernel {
            Kernel::find(KernelQuery::Text(text), architecture, cache, &NEVER).unwrap()
        };
        let kernel = find(&place.cache);
        let first = start.elapsed();
        assert_eq!(find(&place.cache), kernel);
        let modules = kernel.modules.clone().unwrap();
        let files = place.list(&modules);
        println!(
            "{} is {}: {} files, {first:?}, again {:?}",
            package.display(),
            kernel.release,
            files.len(),
            start.elapsed() - first
        );
        assert!(text.contains(kernel.release.split('-').next().unwrap()) || uml);
        for module in ["fs/nilfs2/nilfs2.ko", "drivers/md/dm-flakey.ko", "fs/fat/vfat.ko"] {
            let cloud = text.contains("cloud") && module.contains("nilfs2");
            let there = files.iter().any(|file| file.starts_with(&format!("kernel/{module}")));
            assert!(there || cloud, "{module} of {text}");
        }
        if architecture == Architecture::Pc {
            let file = fs::File::open(&kernel.image).unwrap();
            assert_eq!(super::elf::examine(&file), Ok(super::elf::ElfKind::Pc { pvh: true }));
            let mut file = &file;
            assert_eq!(super::elf::release(&mut file).unwrap(), Some(kernel.release));
        }
    }
}
