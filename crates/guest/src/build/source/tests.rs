use expect_test::expect;

use super::*;

fn root(files: &[&str]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("usr/src")).unwrap();
    for file in files {
        fs::write(root.path().join("usr/src").join(file), b"\xfd7zXZ\0").unwrap();
    }
    root
}

fn found(root: &tempfile::TempDir, named: Option<&str>) -> String {
    let result = find(named.map(OsStr::new), root.path());
    let text = match result {
        Ok(found) => format!("{found:?}"),
        Err(error) => error.to_string(),
    };
    let real = fs::canonicalize(root.path()).unwrap();
    text.replace(real.to_str().unwrap(), "ROOT").replace(root.path().to_str().unwrap(), "ROOT")
}

#[test]
fn the_newest_installed_source_is_the_default() {
    let root = root(&[
        "linux-source-6.1.tar.xz",
        "linux-source-6.12.tar.xz",
        "linux-source-6.9.tar.xz",
        "linux-source-7.0.tar.sign",
        "linux-source-7.1",
        "linux-headers-8.0.tar.xz",
    ]);
    fs::create_dir(root.path().join("usr/src/linux-source-9.0.tar.xz")).unwrap();
    assert_eq!(found(&root, None), r#"Archive("ROOT/usr/src/linux-source-6.12.tar.xz")"#);
    assert_eq!(found(&root, Some("6.1")), r#"Archive("ROOT/usr/src/linux-source-6.1.tar.xz")"#);
    expect!["no kernel source 6.2 is installed (ROOT/usr/src/linux-source-*.tar.xz); download one without root (apt-get download linux-source-6.1) and use the file (fslab guest kernel build --source linux-source-6.1_*.deb), install one (apt-get install linux-source), or use a directory with an unpacked source"]
        .assert_eq(&found(&root, Some("6.2")));
}

#[test]
fn a_path_is_an_archive_a_package_or_a_directory() {
    let root = root(&["linux-source-6.1.tar.xz"]);
    let write = |name: &str, bytes: &[u8]| {
        let path = root.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let deb = write("linux-source-6.1_6.1.192-2_all.deb", b"!<arch>\ndebian-binary");
    assert_eq!(found(&root, Some(&deb)), r#"Package("ROOT/linux-source-6.1_6.1.192-2_all.deb")"#);
    assert_eq!(found(&root, Some(&write("x.tar.xz", b"\xfd7z"))), r#"Archive("ROOT/x.tar.xz")"#);
    let directory = root.path().join("usr").to_str().unwrap().to_owned();
    assert_eq!(found(&root, Some(&directory)), r#"Directory("ROOT/usr")"#);
    let rpm = write("kernel.src.rpm", &[RPM, b"\0\0\0\0"].concat());
    assert!(found(&root, Some(&rpm)).contains("rpm2cpio"));
    let nowhere = found(&root, Some("/nowhere/linux-source-6.1.tar.xz"));
    assert!(nowhere.starts_with("/nowhere/linux-source-6.1.tar.xz does not exist; download one"));
    assert!(nowhere.contains("apt-get download"), "{nowhere}");
}

#[test]
fn versions_are_parsed_from_names() {
    let of = |name: &'static str| version(Path::new(name));
    assert_eq!(of("/usr/src/linux-source-6.1.tar.xz"), Some("6.1"));
    assert_eq!(of("linux-source-6.8.0.tar.bz2"), Some("6.8.0"));
    assert_eq!(of("linux-source-6.1"), None);
    assert_eq!(of("linux-source-6.1.tarball"), None);
    assert_eq!(of("linux-6.1.tar.xz"), None);
}
