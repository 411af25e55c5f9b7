//! Tests of archives: parsed, unpacked by cpio, and entered with chroot.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Instant;

use expect_test::expect;

use super::newc::{Entry, entries};
use super::program::tests::elf;
use super::*;
use crate::modules::tests::{kernels, module, modules_directory, print_observation};
use crate::support::skipped;

fn put(root: &Path, path: &str, bytes: &[u8], mode: u32) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path
}

/// A static program without dependencies.
fn init(root: &Path) -> PathBuf {
    let mut bytes = elf(62, &[], &[]);
    // PT_INTERP becomes PT_NULL.
    bytes[64 + 56] = 0;
    put(root, "init-program", &bytes, 0o755)
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|text| (*text).to_owned()).collect()
}

fn content<'a>(entries: &'a [Entry], name: &str) -> &'a str {
    let entry = entries.iter().find(|entry| entry.0 == name);
    std::str::from_utf8(&entry.unwrap_or_else(|| panic!("no {name}")).3).unwrap()
}

/// A directory that is not below a mount point of guests, unlike `/tmp`; `None` if this user cannot
/// create one.
fn visible() -> Option<tempfile::TempDir> {
    tempfile::tempdir_in("/var/tmp").ok()
}

fn listing(entries: &[Entry]) -> String {
    let line = |(name, mode, (major, minor), content): &Entry| {
        let shown = match mode >> 12 {
            0o12 => format!(" -> {}", String::from_utf8_lossy(content)),
            0o2 => format!(" {major}:{minor}"),
            0o10 => format!(" {} bytes", content.len()),
            _ => String::new(),
        };
        format!("{mode:06o} {name}{shown}\n")
    };
    entries.iter().map(line).collect()
}

#[test]
fn the_layout_is_as_documented() {
    let root = tempfile::tempdir().unwrap();
    let modules = modules_directory(&[
        ("fs/xfs.ko", "alias=fs-xfs\0depends=libcrc32c\0softdep=pre: other\0"),
        ("lib/libcrc32c.ko", "softdep=pre: crypto-crc32c\0"),
        ("crypto/crc32c_generic.ko", "alias=crypto-crc32c\0"),
        ("other.ko", "alias=something-else\0"),
    ]);
    let index = Index::read(modules.path(), None).unwrap();
    let order = index.order(&["xfs"]).unwrap();
    let order: Vec<_> = order.into_iter().filter(|found| found.name != "other").collect();
    let program = init(root.path());
    let contents = Contents {
        program: &program,
        programs: &[],
        files: &strings(&["/nowhere/x.conf"]),
        modules: &order,
        at_start: &order,
        on_demand: &index,
        config: "a config\n",
    };
    let built = build(&contents).unwrap();
    assert_eq!(built, build(&contents).unwrap());
    let entries = entries(&built.bytes);
    expect![[r#"
        040755 usr
        040755 usr/bin
        040755 usr/sbin
        040755 usr/lib
        040755 usr/lib64
        040755 root
        040755 mnt
        120777 bin -> usr/bin
        120777 sbin -> usr/sbin
        120777 lib -> usr/lib
        120777 lib64 -> usr/lib64
        040755 proc
        040755 sys
        040755 dev
        040755 run
        041777 tmp
        020600 dev/console 5:1
        020666 dev/null 1:3
        020644 dev/kmsg 1:11
        120777 usr/sbin/modprobe -> /init
        040755 etc
        120777 etc/mtab -> /proc/self/mounts
        100755 init 297 bytes
        040755 usr/lib/fslab
        040755 usr/lib/fslab/modules
        100644 usr/lib/fslab/modules/crc32c_generic.ko 296 bytes
        100644 usr/lib/fslab/modules/libcrc32c.ko 303 bytes
        100644 usr/lib/fslab/modules/xfs.ko 326 bytes
        040755 etc/fslab
        100644 etc/fslab/order 29 bytes
        100644 etc/fslab/aliases 40 bytes
        100644 etc/fslab/depends 54 bytes
        100644 etc/fslab/config 9 bytes
    "#]]
    .assert_eq(&listing(&entries));
    check_tables(&entries);
    assert_eq!(built.hashes.keys().collect::<Vec<_>>(), ["/init"]);
}

fn check_tables(entries: &[Entry]) {
    assert_eq!(content(entries, "etc/fslab/order"), "crc32c_generic\nlibcrc32c\nxfs\n");
    let aliases = "crypto_crc32c\tcrc32c_generic\nfs_xfs\txfs\n";
    assert_eq!(content(entries, "etc/fslab/aliases"), aliases);
    let depends = "libcrc32c\tcrc32c_generic\nxfs\tcrc32c_generic libcrc32c\n";
    assert_eq!(content(entries, "etc/fslab/depends"), depends);
    assert_eq!(content(entries, "etc/fslab/config"), "a config\n");
}

#[test]
fn missing_programs_are_reported() {
    let root = tempfile::tempdir().unwrap();
    let contents = Contents {
        program: &init(root.path()),
        programs: &strings(&["no-such-program", "a/b", "", "/nowhere/x"]),
        files: &[],
        modules: &[],
        at_start: &[],
        on_demand: &Index::empty(),
        config: "",
    };
    let built = build(&contents).unwrap();
    let missing: Vec<_> =
        built.missing.iter().map(|(name, why)| format!("{name}: {why}")).collect();
    expect![[r#"
        : it is neither a name nor an absolute path
        /nowhere/x: it does not exist or is not executable
        a/b: it is neither a name nor an absolute path
        no-such-program: it is not installed"#]]
    .assert_eq(&missing.join("\n"));
}

#[test]
fn compressed_modules_are_unpacked() {
    use std::io::Write;
    let root = tempfile::tempdir().unwrap();
    let plain = module("alias=fs-x\0");
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&plain).unwrap();
    let file = put(root.path(), "x.ko.gz", &encoder.finish().unwrap(), 0o644);
    let (program, index) = (init(root.path()), Index::empty());
    let found = Found { name: "x".to_owned(), file };
    let contents = |modules| Contents {
        program: &program,
        programs: &[],
        files: &[],
        modules,
        at_start: modules,
        on_demand: &index,
        config: "",
    };
    let twice = [found.clone(), found];
    let entries = entries(&build(&contents(&twice)).unwrap().bytes);
    let packed: Vec<_> = entries.iter().filter(|entry| entry.0.ends_with(".ko")).collect();
    assert_eq!(packed.len(), 1);
    assert_eq!(packed[0].3, plain);
    let odd = [Found { name: "../../x".to_owned(), file: twice[0].file.clone() }];
    assert!(build(&contents(&odd)).is_err());
}

#[test]
fn programs_keep_their_names_and_include_dependencies() {
    let Some(root) = visible() else {
        skipped("programs_keep_their_names_and_include_dependencies", "write access to /var/tmp");
        return;
    };
    let root = root.path();
    let mut real = elf(62, &["liba.so.1"], &[(29, "$ORIGIN/../libs")]);
    real[64 + 56] = 0;
    let real = put(root, "bin/real", &real, 0o750);
    let library = put(root, "libs/liba.so.1.2", &elf(62, &[], &[]), 0o644);
    std::os::unix::fs::symlink("liba.so.1.2", library.with_file_name("liba.so.1")).unwrap();
    let link = root.join("bin/fslab-test-link");
    std::os::unix::fs::symlink("real", &link).unwrap();
    let hard = root.join("bin/fslab-test-hard");
    fs::hard_link(&real, &hard).unwrap();
    let script = format!("#!{} -x\n", hard.display());
    let script = put(root, "bin/fslab-test-script", script.as_bytes(), 0o755);
    let broken = put(root, "bin/broken", &elf(62, &["libnone.so"], &[]), 0o755);
    let other = put(root, "bin/other", &elf(183, &[], &[]), 0o755);
    let endless = root.join("bin/endless");
    let text = format!("#!{}\n", endless.display());
    put(root, "bin/endless", text.as_bytes(), 0o755);
    let conf = put(root, "etc/x.conf", b"conf", 0o600);
    let (program, index) = (init(root), Index::empty());
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let built = build(&Contents {
        program: &program,
        programs: &[&link, &script, &broken, &other, &endless].map(|path| text(path)),
        files: &[text(&conf), "/etc".to_owned()][..1],
        modules: &[],
        at_start: &[],
        on_demand: &index,
        config: "",
    })
    .unwrap();
    let whole = entries(&built.bytes);
    let below = root.to_str().unwrap().trim_start_matches('/').to_owned();
    let listed: Vec<_> = whole
        .iter()
        .filter(|entry| entry.0.contains("fslab-test") || entry.0.starts_with(&format!("{below}/")))
        .map(|(name, mode, _, content)| {
            let target =
                if mode >> 12 == 0o12 { String::from_utf8_lossy(content) } else { "".into() };
            format!("{mode:06o} {name} {target}").replace(&below, "ROOT").trim_end().to_owned()
        })
        .collect();
    expect![[r#"
        040755 ROOT/libs
        100644 ROOT/libs/liba.so.1.2
        120777 ROOT/libs/liba.so.1 /ROOT/libs/liba.so.1.2
        040755 ROOT/bin
        100755 ROOT/bin/real
        120777 ROOT/bin/fslab-test-link /ROOT/bin/real
        120777 usr/bin/fslab-test-link /ROOT/bin/real
        120777 ROOT/bin/fslab-test-hard /ROOT/bin/real
        100755 ROOT/bin/fslab-test-script
        120777 usr/bin/fslab-test-script /ROOT/bin/fslab-test-script
        040755 ROOT/etc
        100644 ROOT/etc/x.conf"#]]
    .assert_eq(&listed.join("\n"));
    let missing: Vec<_> = built.missing.values().map(|why| why.replace(&below, "ROOT")).collect();
    expect![[r#"
        its library libnone.so is missing
        its interpreter /ROOT/bin/endless: scripts are nested too deeply
        it is for another CPU architecture"#]]
    .assert_eq(&missing.join("\n"));
}

#[test]
fn files_below_mount_points_are_moved_or_rejected() {
    let root = tempfile::tempdir_in("/tmp").unwrap();
    let mut bytes = elf(62, &[], &[]);
    bytes[64 + 56] = 0;
    let tool = put(root.path(), "fslab-test-tool", &bytes, 0o755);
    let (program, index) = (init(root.path()), Index::empty());
    let mut contents = Contents {
        program: &program,
        programs: &[tool.to_str().unwrap().to_owned()],
        files: &[],
        modules: &[],
        at_start: &[],
        on_demand: &index,
        config: "",
    };
    let built = entries(&build(&contents).unwrap().bytes);
    let place = format!("/usr/lib/fslab/host{}", tool.display());
    assert_eq!(content(&built, "usr/bin/fslab-test-tool"), place);
    let files = [tool.to_str().unwrap().to_owned()];
    contents.files = &files;
    let error = build(&contents).unwrap_err().to_string();
    assert!(error.contains("below a mount point"), "{error}");
    let files = strings(&["relative"]);
    contents.files = &files;
    assert!(build(&contents).is_ok(), "missing files are skipped");
    let files = strings(&["/etc"]);
    contents.files = &files;
    assert!(build(&contents).unwrap_err().to_string().contains("not a regular file"));
    contents.program = Path::new("/nowhere");
    assert!(build(&contents).is_err());
}

/// Tools of this host, and this test program as `/init`, unpacked by GNU cpio and entered.
#[test]
fn programs_run_with_the_archive_only() {
    let programs = ["mkfs.ext4", "mkfs.xfs", "mkfs.btrfs", "fsck.xfs", "sh", "mkfs.nilfs2"];
    let program = std::env::current_exe().unwrap();
    let index = Index::empty();
    let built = build(&Contents {
        program: &program,
        programs: &strings(&programs),
        files: &strings(&["/etc/mke2fs.conf"]),
        modules: &[],
        at_start: &[],
        on_demand: &index,
        config: "",
    })
    .unwrap();
    let root = tempfile::tempdir().unwrap();
    if !unpacked(&built.bytes, root.path()) {
        skipped("programs_run_with_the_archive_only", "root and GNU cpio");
        return;
    }
    let enter = |arguments: &[&str]| {
        let mut enter = Command::new("/usr/sbin/chroot");
        enter.arg(root.path()).args(arguments).env_clear();
        let output = enter.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };
    let (success, text) = enter(&["/init", "--list"]);
    assert!(success && text.contains("programs_run_with_the_archive"), "{text}");
    let mut ran = 0;
    for program in programs.into_iter().filter(|name| !built.missing.contains_key(*name)) {
        let arguments = if program == "sh" { ["-c", "true"] } else { ["-V", "-V"] };
        let (_, text) = enter(&[program, arguments[0], arguments[1]]);
        for bad in ["not found", "cannot open shared", "No such file", "not executable"] {
            assert!(!text.contains(bad), "{program}: {text}");
        }
        ran += 1;
    }
    assert!(ran > 0, "{:?}", built.missing);
}

/// Unpacks an archive; false if cpio or the privileges are missing.
fn unpacked(archive: &[u8], root: &Path) -> bool {
    use std::io::Write;
    let cpio = Command::new("cpio")
        .args(["--extract", "--quiet", "--no-absolute-filenames"])
        .current_dir(root)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut cpio) = cpio else { return false };
    let written = cpio.stdin.take().unwrap().write_all(archive);
    let output = cpio.wait_with_output().unwrap();
    let denied = String::from_utf8_lossy(&output.stderr).contains("Operation not permitted");
    assert!(denied || (output.status.success() && written.is_ok()), "{output:?}");
    !denied && !String::from_utf8_lossy(&output.stderr).contains("mknod")
}

/// Cost of an archive of many filesystems; printed, not checked.
#[test]
fn an_archive_of_all_filesystems_can_be_built() {
    let filesystems = ["ext2", "ext3", "ext4", "xfs", "btrfs", "jfs", "reiserfs", "nilfs2", "f2fs"];
    let program = std::env::current_exe().unwrap();
    let tools = filesystems.map(|name| format!("mkfs.{name}"));
    let kernels = kernels();
    if kernels.is_empty() {
        skipped("an_archive_of_all_filesystems_can_be_built", "modules of a kernel");
    }
    for directory in kernels {
        let start = Instant::now();
        let cache = tempfile::tempdir().unwrap();
        let index = Index::read(&directory, Some(cache.path())).unwrap();
        let read = start.elapsed();
        let start = Instant::now();
        let cached = Index::read(&directory, Some(cache.path())).unwrap();
        let reread = start.elapsed();
        assert_eq!(index, cached);
        let (mut modules, mut more, mut files) = (Vec::new(), Vec::new(), Vec::new());
        let mut programs = tools.to_vec();
        for needs in filesystems
            .iter()
            .chain(&["virtio_blk", "brd", "null_blk"])
            .filter_map(|name| needs(name))
        {
            modules.extend(
                needs
                    .modules
                    .iter()
                    .filter(|m| index.has(m) != crate::modules::ModuleState::Missing),
            );
            more.extend(needs.optional);
            programs.extend(strings(needs.programs));
            files.extend(strings(needs.files));
        }
        let modules = index.order_with(&modules, &more).unwrap();
        let start = Instant::now();
        let built = build(&Contents {
            program: &program,
            programs: &programs,
            files: &files,
            modules: &modules,
            at_start: &modules,
            on_demand: &index,
            config: "",
        })
        .unwrap();
        let mib = |bytes: usize| bytes as f64 / 1_048_576.0;
        let all = entries(&built.bytes);
        let size = |keep: &dyn Fn(&Entry) -> bool| {
            mib(all.iter().filter(|entry| keep(entry)).map(|entry| entry.3.len()).sum())
        };
        print_observation(&format!(
            "{}: {} modules indexed in {read:?}, from cache in {reread:?}; archive of {} \
             modules in {:?}: {:.1} MiB, /init {:.1}, modules {:.1}, libraries and programs {:.1}; missing {:?}",
            directory.display(),
            index.len(),
            modules.len(),
            start.elapsed(),
            mib(built.bytes.len()),
            size(&|entry| entry.0 == "init"),
            size(&|entry| entry.0.ends_with(".ko")),
            size(&|entry| entry.0 != "init" && !entry.0.ends_with(".ko")),
            built.missing.keys(),
        ));
        let names =
            all.iter().filter(|entry| entry.0.starts_with("usr/lib/fslab/modules/")).count();
        assert_eq!(names, modules.len());
    }
}
