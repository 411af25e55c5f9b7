use std::sync::atomic::AtomicBool;

use super::*;
use crate::kernel::testing::{By, NEVER, TestRoot, deb, packed, tar};

/// Minimal source.
const FILES: [(&str, &[u8]); 10] = [
    ("linux-6.1/Makefile", b"VERSION = 6"),
    ("linux-6.1/Kconfig", b"config A"),
    ("linux-6.1/arch/Kconfig", b"config B"),
    ("linux-6.1/arch/um/Makefile", b"um"),
    ("linux-6.1/arch/arm/crypto/Kconfig", b"config ARM"),
    ("linux-6.1/arch/arm/crypto/aes.c", b"int arm;"),
    ("linux-6.1/drivers/gpu/drm/Kconfig", b"config DRM"),
    ("linux-6.1/drivers/gpu/drm/drm.c", b"int drm;"),
    ("linux-6.1/drivers/net/loopback.c", b"int lo;"),
    ("linux-6.1/Documentation/index.rst", b"words"),
];
const KEPT: [&str; 7] = [
    "Kconfig",
    "Makefile",
    "arch/Kconfig",
    "arch/arm/crypto/Kconfig",
    "arch/um/Makefile",
    "drivers/gpu/drm/Kconfig",
    "drivers/net/loopback.c",
];

fn unpacked(place: &TestRoot, found: &Found) -> Result<Vec<String>, String> {
    unpacked_with(place, found, &[])
}

fn unpacked_with(place: &TestRoot, found: &Found, patched: &[&str]) -> Result<Vec<String>, String> {
    let into = place.path("into");
    let _old = fs::remove_dir_all(&into);
    fs::create_dir(&into).unwrap();
    let source = Source { path: found.path(), interrupt: &NEVER };
    let patched = patched.iter().map(PathBuf::from).collect();
    let selection = Selection { patched: &patched };
    let written =
        unpack(found, source, selection, &into).map_err(|error| place.describe(&error))?;
    let list = place.list(&into);
    assert_eq!(written.files, list.len());
    Ok(list)
}

#[test]
fn archives_packages_and_directories_are_equivalent() {
    let place = TestRoot::new();
    let archive = packed(&tar(&FILES), By::Xz);
    let path = place.write("linux-source-6.1.tar.xz", &archive);
    assert_eq!(unpacked(&place, &Found::Archive(path.into())).unwrap(), KEPT);
    let inner = [
        ("./usr/share/doc/linux-source-6.1/copyright", &b"GPL"[..]),
        ("./usr/src/linux-source-6.1.tar.xz", &archive[..]),
    ];
    let path = place.write("x.deb", &deb(&packed(&tar(&inner), By::Xz)));
    assert_eq!(unpacked(&place, &Found::Package(path.into())).unwrap(), KEPT);
    for (name, bytes) in FILES {
        place.write(name, bytes);
    }
    let directory = Found::Directory(place.path("linux-6.1"));
    assert_eq!(unpacked(&place, &directory).unwrap(), KEPT);
    // The hash covers the files used by the build only.
    let hash = || {
        let path = place.path("linux-6.1");
        super::hash(&directory, Source { path: &path, interrupt: &NEVER }).unwrap()
    };
    let before = hash();
    place.write("linux-6.1/Documentation/index.rst", b"more words");
    assert_eq!(hash(), before);
    place.write("linux-6.1/drivers/net/loopback.c", b"int loop;");
    assert_ne!(hash(), before);
}

#[test]
fn executables_stay_executable() {
    let place = TestRoot::new();
    let mut builder = tar::Builder::new(Vec::new());
    for (name, mode) in [
        ("l/Makefile", 0o644),
        ("l/Kconfig", 0o644),
        ("l/arch/um/Makefile", 0o644),
        ("l/run.sh", 0o775),
    ] {
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        header.set_mode(mode);
        builder.append_data(&mut header, name, &b""[..]).unwrap();
    }
    let mut link = tar::Header::new_gnu();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_size(0);
    builder.append_link(&mut link, "l/link", "/etc/passwd").unwrap();
    let path = place.write("x.tar", &builder.into_inner().unwrap());
    let list = unpacked(&place, &Found::Archive(path.into())).unwrap();
    assert_eq!(list, ["Kconfig", "Makefile", "arch/um/Makefile", "run.sh"]);
    let mode = |name: &str| {
        fs::metadata(place.path("into").join(name)).unwrap().permissions().mode() & 0o777
    };
    assert_eq!((mode("Makefile"), mode("run.sh")), (0o644, 0o755));
}

#[test]
fn files_that_are_not_a_source_are_rejected() {
    let place = TestRoot::new();
    let mut errors = String::new();
    let mut check = |found: Found| {
        errors += &unpacked(&place, &found).unwrap_err();
        errors.push('\n');
    };
    let archive =
        |name: &str, files: &[(&str, &[u8])]| Found::Archive(place.write(name, &tar(files)).into());
    check(archive("no.tar", &[("linux/README", b"x")]));
    check(archive("old.tar", &[("l/Makefile", b""), ("l/Kconfig", b"")]));
    check(Found::Package(place.write("x.deb", &deb(&packed(&tar(&[("a", b"")]), By::Xz))).into()));
    check(Found::Archive(place.write("text", b"no archive at all").into()));
    place.write("dirty/Makefile", b"");
    place.write("dirty/include/config/auto.conf", b"");
    check(Found::Directory(place.path("dirty")));
    expect_test::expect![[r#"
        /no.tar: is not a kernel source with user-mode Linux: it has no Makefile
        /old.tar: is not a kernel source with user-mode Linux: it has no arch/um/Makefile
        /x.deb: is not a kernel source package with one linux-source-VERSION.tar
        /text: is not a package: it does not contain a tar archive
        /dirty: was configured or built (it has include/config); clean it (make mrproper), or use the original archive
    "#]]
    .assert_eq(&errors);
}

#[test]
fn names_outside_the_directory_are_rejected() {
    for name in ["l/../../out", "/out/file", "../out"] {
        let place = TestRoot::new();
        let mut header = tar::Header::new_gnu();
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_entry_type(tar::EntryType::Regular);
        header.set_size(0);
        header.set_mode(0o644);
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend([0; 1024]);
        let path = place.write("x.tar", &bytes);
        let error = unpacked(&place, &Found::Archive(path.into())).unwrap_err();
        assert!(error.contains("has a path outside its directory"), "{name}: {error}");
    }
}

#[test]
fn unpacking_can_be_interrupted() {
    let place = TestRoot::new();
    let path = place.write("x.tar", &tar(&FILES));
    let stop = AtomicBool::new(true);
    let source = Source { path: Path::new(&path), interrupt: &stop };
    let into = place.path("into");
    fs::create_dir(&into).unwrap();
    let error = unpack(
        &Found::Archive(path.clone().into()),
        source,
        Selection { patched: &BTreeSet::new() },
        &into,
    )
    .unwrap_err();
    assert!(matches!(error, GuestError::Interrupted), "{error}");
}
