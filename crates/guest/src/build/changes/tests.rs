use expect_test::expect;

use super::*;
use crate::kernel::testing::{NEVER, TestRoot};

const PATCH: &str = "\
From: a user
--- a/fs/new/file.c\t2026-01-01 00:00:00
+++ b/fs/new/file.c
@@ -1,2 +1,2 @@
 int first;
-int second;
+int changed;
--- /dev/null
+++ b/Documentation/new.rst
@@ -0,0 +1 @@
+text
diff --git a/sound/old.c b/sound/moved.c
similarity index 100%
rename from sound/old.c
rename to sound/moved.c
";

fn patch(place: &TestRoot, text: &[u8]) -> Result<Patch, GuestError> {
    let path = PathBuf::from(place.write("toy.patch", text));
    Patch::read(Source { path: &path, interrupt: &NEVER })
}

/// Applies a patch to a source with one file, and returns this file.
fn applied(place: &TestRoot, text: &str, file: &str) -> Result<String, GuestError> {
    place.write("tree/fs/new/file.c", file.as_bytes());
    place.write("tree/sound/old.c", b"moved\n");
    let (tree, log) = (place.path("tree"), place.path("log"));
    let make = Make { tree: &tree, log: &log, interrupt: &NEVER };
    patch(place, text.as_bytes())?.apply(make, "linux-source-6.1.tar.xz", &place.path(""))?;
    Ok(fs::read_to_string(tree.join("fs/new/file.c")).unwrap())
}

fn has_patch(test: &str) -> bool {
    let path = sys::program::search_path();
    let found = std::env::split_paths(&path).any(|it| it.join("patch").is_file());
    if !found {
        crate::support::skipped(test, "patch(1)");
    }
    found
}

#[test]
fn files_of_a_patch_are_listed_without_their_first_directory() {
    let place = TestRoot::new();
    let read = patch(&place, PATCH.as_bytes()).unwrap();
    let files: Vec<PathBuf> = read.files().into_iter().collect();
    let expected = ["Documentation/new.rst", "fs/new/file.c", "sound/old.c"];
    assert_eq!(files, expected.map(PathBuf::from));
    let packed = crate::kernel::testing::packed(PATCH.as_bytes(), crate::kernel::testing::By::Gzip);
    assert_eq!(patch(&place, &packed).unwrap().hash, read.hash);
    let error = patch(&place, b"--- /etc/passwd\n+++ ../../passwd\n").unwrap_err();
    assert!(error.to_string().contains("is not a unified diff"), "{error}");
}

#[test]
fn a_patch_is_applied_or_names_the_hunk() {
    if !has_patch("a_patch_is_applied_or_names_the_hunk") {
        return;
    }
    let place = TestRoot::new();
    let text = applied(&place, PATCH, "int first;\nint second;\n").unwrap();
    assert_eq!(text, "int first;\nint changed;\n");
    let tree = place.path("tree");
    assert_eq!(fs::read_to_string(tree.join("Documentation/new.rst")).unwrap(), "text\n");
    assert_eq!(fs::read_to_string(tree.join("sound/moved.c")).unwrap(), "moved\n");
    fs::remove_dir_all(&tree).unwrap();
    // patch(1) would accept other context lines with fuzz.
    let error = applied(&place, PATCH, "int another;\nint second;\n").unwrap_err();
    expect![[r#"
        toy.patch does not apply to linux-source-6.1.tar.xz; nothing was built:
          fs/new/file.c: Hunk #1 FAILED at 1.
          --- fs/new/file.c    2026-01-01 00:00:00
          +++ fs/new/file.c
          @@ -1,2 +1,2 @@
           int first;
          -int second;
          +int changed;"#]]
    .assert_eq(&error.to_string());
    fs::remove_dir_all(&tree).unwrap();
    // A patch that was already applied.
    let error = applied(&place, PATCH, "int first;\nint changed;\n").unwrap_err();
    assert!(error.to_string().contains("previously applied"), "{error}");
    fs::remove_dir_all(&tree).unwrap();
    let error = applied(&place, &PATCH.replace("fs/new/", "fs/other/"), "").unwrap_err();
    assert!(error.to_string().contains("can't find file to patch"), "{error}");
}

#[test]
fn options_are_parsed() {
    let parse = |text| KernelOption::parse(text).map(|option| option.line());
    assert_eq!(parse("REISER4_FS=y").as_deref(), Ok("CONFIG_REISER4_FS=y\n"));
    assert_eq!(parse("CONFIG_NFSD=n").as_deref(), Ok("# CONFIG_NFSD is not set\n"));
    assert_eq!(parse("CMDLINE=\"a=b\"").as_deref(), Ok("CONFIG_CMDLINE=\"a=b\"\n"));
    for text in ["X", "=y", "X Y=y", "X=", "X=y\nCONFIG_Y=y", "LOCALVERSION=\"a\"", "MODULES=y"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn the_key_depends_on_texts_order_and_values() {
    let place = TestRoot::new();
    let one = patch(&place, PATCH.as_bytes()).unwrap();
    let other = patch(&place, PATCH.replace("changed", "other").as_bytes()).unwrap();
    let of = |patches: &[&Patch], options: &[&str]| Changes {
        patches: patches.iter().map(|patch| (*patch).clone()).collect(),
        options: options.iter().map(|text| KernelOption::parse(text).unwrap()).collect(),
    };
    let all = [
        of(&[], &[]),
        of(&[&one], &[]),
        of(&[&one, &other], &[]),
        of(&[&other, &one], &[]),
        of(&[], &["A=y"]),
        of(&[], &["A=n"]),
        of(&[&one], &["A=y"]),
    ];
    let keys: BTreeSet<String> = all.iter().map(Changes::key).collect();
    let tags: BTreeSet<String> = all.iter().map(Changes::tag).collect();
    assert_eq!((keys.len(), tags.len()), (all.len(), all.len()));
    assert_eq!((all[0].key(), all[0].tag(), all[0].description()), Default::default());
    let words = all[6].description();
    assert_eq!(words, format!("toy.patch (SHA-256 {}), A=y", one.hash));
}

#[test]
fn reasons_are_those_of_kconfig() {
    let defined = BTreeMap::from([
        ("NTFS3_LZX".to_owned(), vec!["NTFS3_FS && !UML".to_owned()]),
        ("NTFS3_FS".to_owned(), vec![]),
        ("SHIFT".to_owned(), vec!["NTFS3_SET".to_owned()]),
        ("NTFS3_SET".to_owned(), vec![]),
        ("VALUE".to_owned(), vec!["NTFS3_SET".to_owned()]),
    ]);
    let output = ".config:9:warning: override: reassigning to symbol SHIFT\n\
                  .config:9:warning: symbol value 'x' invalid for SHIFT\n";
    let reason = |option| reason(option, "CONFIG_NTFS3_SET=y\n", output, &defined);
    assert_eq!(reason("NTFS3_LZX"), "it depends on NTFS3_FS && !UML; not set: NTFS3_FS");
    assert_eq!(reason("SHIFT"), "symbol value 'x' invalid for SHIFT");
    assert_eq!(reason("VALUE"), "it depends on NTFS3_SET");
    assert_eq!(reason("NTFS3_FS"), "Kconfig states no reason");
    assert_eq!(reason("REISER4_FS"), "the source has no such option");
}
