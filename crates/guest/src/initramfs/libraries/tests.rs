//! Tests with libraries in temporary directories.

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

/// Libraries of a program in directories below `root`; paths are relative to it.
fn closure(root: &Path, program: &Path, shared: &[&str]) -> Result<Vec<(String, bool)>, String> {
    let directories = shared.iter().map(|directory| root.join(directory)).collect();
    let libraries = Libraries { directories };
    let found = libraries.closure(program, &linkage_of(program))?;
    let relative = |library: Library| {
        let path = library.path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        (path, library.on_default_path)
    };
    Ok(found.into_iter().map(relative).collect())
}

#[test]
fn libraries_are_found_like_the_loader() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let program = put(root, "bin/p", &elf(62, &["a.so", "b.so"], &[(29, "$ORIGIN/../own")]));
    put(root, "own/a.so", &elf(62, &["c.so"], &[]));
    put(root, "shared/a.so", &elf(62, &[], &[]));
    put(root, "shared/b.so", &elf(62, &["a.so", "c.so"], &[]));
    // A RUNPATH applies to the file's own libraries only.
    put(root, "own/c.so", &elf(62, &[], &[]));
    put(root, "shared/c.so", &elf(62, &[], &[]));
    // Skipped: another machine, not an ELF file, and a directory.
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
    assert_eq!(closure(root, &program, &["first"]), Err("its library b.so is missing".into()));
}

#[test]
fn an_rpath_applies_to_libraries_of_libraries() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let program = put(root, "bin/p", &elf(62, &["a.so"], &[(15, "${ORIGIN}/../$LIB")]));
    put(root, "lib64/a.so", &elf(62, &["b.so"], &[]));
    put(root, "lib/b.so", &elf(62, &["a.so"], &[]));
    let found = closure(root, &program, &[]).unwrap();
    assert_eq!(found, [("bin/../lib64/a.so".into(), true), ("bin/../lib/b.so".into(), true)]);
}

#[test]
fn configuration_includes_are_read() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let main = "include conf.d/*.conf # more\n/last:/lib64,/more\n\nhwcap 0 nosegneg\nrelative\n";
    let main = put(root, "ld.so.conf", main.as_bytes());
    put(root, "conf.d/b.conf", b"/second=libc6\n\t/lib64 # again\n");
    put(root, "conf.d/a.conf", b"#/not\n/first\ninclude ../ld.so.conf\n");
    put(root, "conf.d/.hidden.conf", b"/hidden\n");
    put(root, "conf.d/c.other", b"/other\n");
    let found = configured(&main);
    let paths: Vec<_> = found.iter().map(|path| path.to_str().unwrap()).collect();
    // The file includes itself; the depth limit ends the recursion.
    let mut sorted = paths.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, ["/first", "/last", "/lib64", "/more", "/second"]);
    assert_eq!(paths[0], "/first");
    assert_eq!(configured(Path::new("/nowhere/ld.so.conf")), Vec::<PathBuf>::new());
}
