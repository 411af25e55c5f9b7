//! Libraries in directories made here.

use expect_test::expect;

use super::super::program::tests::elf;
use super::*;

fn put(root: &Path, path: &str, bytes: &[u8]) -> PathBuf {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

fn linkage_of(path: &Path) -> Linkage {
    library(path).unwrap()
}

/// What a program needs, in directories below `root`; paths are told from there.
fn closure(root: &Path, program: &Path, shared: &[&str]) -> Result<Vec<(String, bool)>, String> {
    let directories = shared.iter().map(|directory| root.join(directory)).collect();
    let libraries = Libraries { directories };
    let found = libraries.closure(program, &linkage_of(program))?;
    let told = |library: Library| {
        let path = library.path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        (path, library.by_itself)
    };
    Ok(found.into_iter().map(told).collect())
}

#[test]
fn libraries_are_found_as_the_loader_finds_them() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let program = put(root, "bin/p", &elf(62, &["a.so", "b.so"], &[(29, "$ORIGIN/../own")]));
    put(root, "own/a.so", &elf(62, &["c.so"], &[]));
    put(root, "shared/a.so", &elf(62, &[], &[]));
    put(root, "shared/b.so", &elf(62, &["a.so", "c.so"], &[]));
    // A RUNPATH is for the file's own libraries, not for theirs.
    put(root, "own/c.so", &elf(62, &[], &[]));
    put(root, "shared/c.so", &elf(62, &[], &[]));
    // For another machine, no ELF file, and a directory: not taken.
    put(root, "first/b.so", &elf(183, &[], &[]));
    put(root, "first/c.so", b"INPUT(c.so.1)");
    fs::create_dir_all(root.join("second/c.so")).unwrap();
    expect![[r#"
        Ok(
            [
                (
                    "bin/../own/a.so",
                    true,
                ),
                (
                    "shared/b.so",
                    false,
                ),
                (
                    "shared/c.so",
                    false,
                ),
            ],
        )
    "#]]
    .assert_debug_eq(&closure(root, &program, &["first", "second", "shared"]));
    assert_eq!(closure(root, &program, &["first"]), Err("its library b.so is not there".into()));
}

#[test]
fn an_rpath_is_for_libraries_of_libraries_too() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let program = put(root, "bin/p", &elf(62, &["a.so"], &[(15, "${ORIGIN}/../$LIB")]));
    put(root, "lib64/a.so", &elf(62, &["b.so"], &[]));
    put(root, "lib/b.so", &elf(62, &["a.so"], &[]));
    let found = closure(root, &program, &[]).unwrap();
    assert_eq!(found, [("bin/../lib64/a.so".into(), true), ("bin/../lib/b.so".into(), true)]);
}

#[test]
fn configuration_is_read_with_what_it_includes() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let main = "include conf.d/*.conf # more\n/last:/lib64,/more\n\nhwcap 0 nosegneg\nrelative\n";
    let main = put(root, "ld.so.conf", main.as_bytes());
    put(root, "conf.d/b.conf", b"/second=libc6\n\t/lib64 # again\n");
    put(root, "conf.d/a.conf", b"#/not\n/first\ninclude ../ld.so.conf\n");
    put(root, "conf.d/.hidden.conf", b"/hidden\n");
    put(root, "conf.d/c.other", b"/other\n");
    let found = configured(&main);
    let told: Vec<_> = found.iter().map(|path| path.to_str().unwrap()).collect();
    // That it includes itself ends by the depth.
    let mut sorted = told.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["/first", "/last", "/lib64", "/more", "/second"]);
    assert_eq!(told[0], "/first");
    assert_eq!(configured(Path::new("/nowhere/ld.so.conf")), Vec::<PathBuf>::new());
}
