use std::collections::BTreeMap;

use expect_test::expect;
use proptest::prelude::*;

use super::{
    super::testing::{By, RELEASE, TestRoot, deb, files, packed, source, tar, tar_of},
    *,
};

/// Unpacks a package into its own directory. Returns the files there and the reported contents.
fn unpacked(package: &[u8]) -> Result<(Vec<String>, Contents), String> {
    let place = TestRoot::new();
    let path = place.write("package", package);
    let into = place.path("into");
    fs::create_dir(&into).unwrap();
    let contents = unpack(source(Path::new(&path)), &mut File::open(&path).unwrap(), &into);
    let contents = contents.map_err(|error| place.describe(&error));
    // No files are written outside of it.
    let around: BTreeMap<_, _> = place
        .list(&place.path(""))
        .into_iter()
        .map(|name| {
            let first = name.split('/').next().unwrap().to_owned();
            (first, name)
        })
        .collect();
    assert!(around.keys().all(|name| name == "into" || name == "package"), "{around:?}");
    contents.map(|contents| (place.list(&into), contents))
}

/// A tar archive of one entry of any type, with an unchecked name.
fn entry(name: &[u8], kind: tar::EntryType, bytes: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.as_mut_bytes()[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    header.set_cksum();
    let mut tar = header.as_bytes().to_vec();
    tar.extend(bytes);
    tar.resize(tar.len().next_multiple_of(512), 0);
    tar
}

fn ended(mut tar: Vec<u8>) -> Vec<u8> {
    tar.extend([0; 1024]);
    tar
}

#[test]
fn selected_files_are_unpacked() {
    let (list, contents) = unpacked(&deb(&packed(&tar_of(&files()), By::Zstd))).unwrap();
    let directory = format!("lib/modules/{RELEASE}");
    assert_eq!(
        list,
        [
            "image-0".to_owned(),
            format!("{directory}/kernel/fs/xfs/xfs.ko"),
            format!("{directory}/modules.builtin")
        ]
    );
    assert_eq!((contents.files, contents.releases), (3, vec![RELEASE.to_owned()]));
    assert_eq!((contents.images.len(), contents.programs.len()), (1, 0));
}

#[test]
fn the_compressed_image_comes_first() {
    let files: &[(&str, &[u8])] = &[("boot/vmlinux-6.1", b"elf"), ("boot/vmlinuz-6.1", b"packed")];
    let (list, contents) = unpacked(&tar(files)).unwrap();
    assert_eq!(list, ["image-0", "image-1"]);
    assert!(contents.images[0].ends_with("image-1"), "{contents:?}");
}

#[test]
fn long_names_are_read_in_both_formats() {
    let name = format!("lib/modules/{RELEASE}/kernel/fs/{}.ko", "x".repeat(150));
    let (list, _) = unpacked(&tar(&[(&name, b"x")])).unwrap();
    assert_eq!(list, *std::slice::from_ref(&name));
    let record = format!(" path={name}\n");
    let record = format!("{}{record}", record.len() + 3);
    let mut archive = entry(b"pax", tar::EntryType::XHeader, record.as_bytes());
    archive.extend(entry(b"short", tar::EntryType::Regular, b"x"));
    let (list, _) = unpacked(&ended(archive)).unwrap();
    assert_eq!(list, *std::slice::from_ref(&name));
}

#[test]
fn links_are_not_created() {
    let mut archive = entry(b"lib/modules/6.1/kernel", tar::EntryType::Symlink, b"");
    archive.extend(entry(b"boot/vmlinuz", tar::EntryType::Symlink, b""));
    archive.extend(entry(b"lib/modules/6.1/kernel/fs/x.ko", tar::EntryType::Regular, b"x"));
    let (list, contents) = unpacked(&ended(archive)).unwrap();
    assert_eq!(list, ["lib/modules/6.1/kernel/fs/x.ko"]);
    assert_eq!(contents.images, Vec::<PathBuf>::new());
}

#[test]
fn malformed_packages_are_rejected() {
    use tar::EntryType as Kind;
    let one = |name: &[u8], kind| ended(entry(name, kind, b"x"));
    let size = b"13 size=9999\n";
    let many: Vec<_> = (0..5).map(|number| (format!("boot/vmlinuz-{number}"), vec![1])).collect();
    let mut huge = tar::Header::new_gnu();
    huge.set_path("boot/vmlinuz").unwrap();
    huge.set_size(1 << 60);
    huge.set_cksum();
    let mut absurd = huge.clone();
    absurd.set_size(u64::MAX >> 1);
    absurd.set_cksum();
    let mut wrong = entry(b"boot/vmlinuz", Kind::Regular, b"x");
    wrong[148] ^= 1;
    let mut headless = deb(b"x");
    headless[66] = b'x';
    let nothing: &[(&str, &[u8])] = &[];
    let mut errors = String::new();
    for package in [
        one(b"/etc/passwd", Kind::Regular),
        one(b"../../etc/passwd", Kind::Regular),
        one(b"lib/modules/6.1/../../../etc/x.ko", Kind::Symlink),
        one(b"boot/vmlinuz", Kind::Link),
        one(b"boot/vmlinuz", Kind::Char),
        one(b"lib/modules/6.1/kernel/fs/x.ko", Kind::Fifo),
        ended(entry(b"x", Kind::GNULongName, &[b'x'; 5000])),
        ended(entry(b"x", Kind::XHeader, &vec![b'x'; 70_000])),
        ended(entry(b"x", Kind::XHeader, size)),
        tar_of(&many),
        huge.as_bytes().to_vec(),
        absurd.as_bytes().to_vec(),
        one(b"lib/modules/6.1/kernel/fs/x.ko", Kind::Block),
        wrong,
        headless,
        b"!<arch>\n".to_vec(),
        deb(b"neither packed nor tar").iter().take(200).copied().collect(),
        packed(&[b'x'; 1024], By::Gzip),
        deb(&packed(&tar(nothing), By::Bzip2)),
    ] {
        errors += &unpacked(&package).unwrap_err();
        errors.push('\n');
    }
    expect![[r#"
        /package: is rejected: its file "/etc/passwd" has an absolute path
        /package: is rejected: its file "../../etc/passwd" has `..` in its path
        /package: is rejected: its file "lib/modules/6.1/../../../etc/x.ko" has `..` in its path
        /package: is rejected: its file "boot/vmlinuz" is not a regular file
        /package: is rejected: its file "boot/vmlinuz" is not a regular file
        /package: is rejected: its file "lib/modules/6.1/kernel/fs/x.ko" is not a regular file
        /package: has a file with a too long name
        /package: has a file with a too long name
        /package: has a file of more than 8 GiB
        /package: is rejected: its file "boot/vmlinuz-4" exceeds the maximum number of kernels
        /package: cannot be unpacked: unexpected EOF during skip
        /package: cannot be unpacked: unexpected EOF during skip
        /package: is rejected: its file "lib/modules/6.1/kernel/fs/x.ko" is not a regular file
        /package: cannot be unpacked: archive header checksum mismatch
        /package: is damaged: a member has no header
        /package: is truncated; copy it again
        /package: is not a package: it does not contain a tar archive
        /package: is not a package: it does not contain a tar archive
        /package: is compressed by bzip2, which is not supported; decompress it first
    "#]]
    .assert_eq(&errors);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_damage_is_handled(
        whole: bool,
        at: prop::sample::Index,
        values in prop::collection::vec(any::<u8>(), 1..16),
        cut: prop::sample::Index,
    ) {
        let tar = tar_of(&files());
        let mut package = if whole { tar } else { deb(&packed(&tar, By::Gzip)) };
        let at = at.index(package.len() - values.len());
        package[at..at + values.len()].copy_from_slice(&values);
        let _ = unpacked(&package);
        let _ = unpacked(&package[..cut.index(package.len())]);
    }

    #[test]
    fn untrusted_names_stay_in_the_directory(name in "(usr/)?(lib/modules/6\\.1/kernel/fs/|boot/|/|\\.\\./){1,2}(vmlinuz|[a-z./]{1,12})(\\.ko)?") {
        let archive = ended(entry(name.as_bytes(), tar::EntryType::Regular, b"x"));
        let _ = unpacked(&archive);
    }
}
