use std::sync::atomic::AtomicBool;

use super::*;
use crate::kernel::testing::{By, NEVER, Place, deb, packed, tar};

/// The least that is a source.
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

fn unpacked(place: &Place, found: &Found) -> Result<Vec<String>, String> {
    let into = place.path("into");
    let _old = fs::remove_dir_all(&into);
    fs::create_dir(&into).unwrap();
    let source = Source { path: found.path(), interrupt: &NEVER };
    let written = unpack(found, source, &into).map_err(|error| place.told(&error))?;
    let list = place.list(&into);
    assert_eq!(written.files, list.len());
    Ok(list)
}

#[test]
fn archives_packages_and_folders_give_the_same() {
    let place = Place::new();
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
    let folder = Found::Folder(place.path("linux-6.1"));
    assert_eq!(unpacked(&place, &folder).unwrap(), KEPT);
    // Its hash is that of what is built from: what is left does not count, what is kept does.
    let hash = || {
        let path = place.path("linux-6.1");
        super::hash(&folder, Source { path: &path, interrupt: &NEVER }).unwrap()
    };
    let before = hash();
    place.write("linux-6.1/Documentation/index.rst", b"more words");
    assert_eq!(hash(), before);
    place.write("linux-6.1/drivers/net/loopback.c", b"int loop;");
    assert_ne!(hash(), before);
}

#[test]
fn programs_stay_programs() {
    let place = Place::new();
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
fn what_is_no_source_is_told() {
    let place = Place::new();
    let mut told = String::new();
    let mut say = |found: Found| {
        told += &unpacked(&place, &found).unwrap_err();
        told.push('\n');
    };
    let archive =
        |name: &str, files: &[(&str, &[u8])]| Found::Archive(place.write(name, &tar(files)).into());
    say(archive("no.tar", &[("linux/README", b"x")]));
    say(archive("old.tar", &[("l/Makefile", b""), ("l/Kconfig", b"")]));
    say(Found::Package(place.write("x.deb", &deb(&packed(&tar(&[("a", b"")]), By::Xz))).into()));
    say(Found::Archive(place.write("text", b"no archive at all").into()));
    place.write("dirty/Makefile", b"");
    place.write("dirty/include/config/auto.conf", b"");
    say(Found::Folder(place.path("dirty")));
    expect_test::expect![[r#"
        /no.tar: is no source of a kernel with user-mode Linux: it has no Makefile
        /old.tar: is no source of a kernel with user-mode Linux: it has no arch/um/Makefile
        /x.deb: is not the package of a kernel's source, which holds one linux-source-VERSION.tar
        /text: is no package: what is packed in it is no tar archive
        /dirty: was configured or built in (it has include/config); clean it (make mrproper), or name the archive that it came from
    "#]]
    .assert_eq(&told);
}

#[test]
fn names_that_lead_out_are_refused() {
    for name in ["l/../../out", "/out/file", "../out"] {
        let place = Place::new();
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
        assert!(error.contains("leads out of it"), "{name}: {error}");
    }
}

#[test]
fn unpacking_ends_when_it_is_to() {
    let place = Place::new();
    let path = place.write("x.tar", &tar(&FILES));
    let stop = AtomicBool::new(true);
    let source = Source { path: Path::new(&path), interrupt: &stop };
    let into = place.path("into");
    fs::create_dir(&into).unwrap();
    let error = unpack(&Found::Archive(path.clone().into()), source, &into).unwrap_err();
    assert!(matches!(error, GuestError::Interrupted), "{error}");
}
