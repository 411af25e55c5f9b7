//! Tests with generated directories of modules and with those of installed kernels.

use std::fs;
use std::process::Command;

use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::support::skipped;

/// Minimal ELF file with this section `.modinfo`: the header, three section headers, the section,
/// and the section names. System V ABI, chapter 4.
pub(crate) fn module(info: &str) -> Vec<u8> {
    let names = b"\0.modinfo\0.shstrtab\0";
    let info_at = 64 + 3 * 64;
    let names_at = info_at + info.len();
    let mut bytes = vec![0; 64];
    bytes[..20].copy_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x01\0\x3e\0");
    bytes[20] = 1;
    bytes[40] = 64;
    for (at, value) in [(52, 64), (58, 64), (60, 3), (62, 2)] {
        bytes[at] = value;
    }
    let mut section = |name: u32, kind: u32, at: usize, size: usize| {
        let mut header = [0; 64];
        header[..4].copy_from_slice(&name.to_le_bytes());
        header[4..8].copy_from_slice(&kind.to_le_bytes());
        header[24..32].copy_from_slice(&(at as u64).to_le_bytes());
        header[32..40].copy_from_slice(&(size as u64).to_le_bytes());
        bytes.extend(header);
    };
    section(0, 0, 0, 0);
    section(1, 1, info_at, info.len());
    section(10, 3, names_at, names.len());
    bytes.extend(info.as_bytes());
    bytes.extend(names);
    bytes
}

/// Directory with these modules (path, `.modinfo`) and lists of built-in modules.
pub(crate) fn modules_directory(modules: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, info) in modules {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, module(info)).unwrap();
    }
    fs::write(directory.path().join("modules.builtin"), "kernel/fs/ext4/ext4.ko\n").unwrap();
    let built_in = "ext4.alias=fs-ext4\0ext4.alias=fs-ext2\0ext4.license=GPL\0noise";
    fs::write(directory.path().join("modules.builtin.modinfo"), built_in).unwrap();
    directory
}

fn names(found: &[Found]) -> Vec<&str> {
    found.iter().map(|found| found.name.as_str()).collect()
}

/// Modules like those of real filesystems.
fn example() -> tempfile::TempDir {
    modules_directory(&[
        ("kernel/fs/xfs.ko", "alias=fs-xfs\0depends=libcrc32c\0"),
        (
            "kernel/fs/btrfs.ko",
            "alias=fs-btrfs\0depends=xor,libcrc32c\0softdep=pre: crypto-crc32c\0",
        ),
        ("kernel/lib/libcrc32c.ko", "depends=\0softdep=pre: crc32c\0"),
        ("kernel/lib/xor.ko", "depends=\0"),
        ("kernel/crypto/crc32c_generic.ko", "alias=crypto-crc32c\0alias=crc32c\0"),
        ("kernel/arch/x86/crypto/crc32c-intel.ko", "alias=crypto-crc32c\0alias=crc32c\0"),
        ("kernel/drivers/block/loop.ko", "alias=block-major-7-*\0"),
        ("kernel/fs/broken.ko", "depends=nowhere,ext4\0"),
        ("kernel/sound/snd.ko", "depends=\0"),
    ])
}

#[test]
fn names_and_aliases_are_found() {
    let directory = example();
    let index = Index::read(directory.path(), None).unwrap();
    assert_eq!(index.len(), 8);
    for (name, presence) in [
        ("xfs", ModuleState::Module),
        ("fs-xfs", ModuleState::Module),
        ("crc32c_intel", ModuleState::Module),
        ("crc32c-intel", ModuleState::Module),
        ("block-major-7-3", ModuleState::Module),
        ("ext4", ModuleState::BuiltIn),
        ("fs-ext2", ModuleState::BuiltIn),
        ("reiserfs", ModuleState::Missing),
        ("snd", ModuleState::Missing),
        ("", ModuleState::Missing),
    ] {
        assert_eq!(index.has(name), presence, "{name}");
    }
}

#[test]
fn dependencies_come_first_and_once() {
    let directory = example();
    let index = Index::read(directory.path(), None).unwrap();
    let order = index.order(&["fs-xfs", "btrfs", "ext4", "xfs"]).unwrap();
    expect![[r#"
        [
            "crc32c_generic",
            "crc32c_intel",
            "libcrc32c",
            "xfs",
            "xor",
            "btrfs",
        ]
    "#]]
    .assert_debug_eq(&names(&order));
    assert_eq!(order[2].file, directory.path().join("kernel/lib/libcrc32c.ko"));
    assert_eq!(index.before("btrfs"), ["xor", "crc32c_generic", "crc32c_intel", "libcrc32c"]);
}

#[test]
fn missing_modules_are_reported_with_their_dependents() {
    let directory = example();
    let index = Index::read(directory.path(), None).unwrap();
    let absent = index.order(&["broken", "reiserfs", "xfs"]).unwrap_err();
    assert_eq!(absent, ["nowhere, required by broken", "reiserfs"]);
    assert_eq!(names(&index.order_with(&[], &["reiserfs", "xor"]).unwrap()), ["xor"]);
}

#[test]
fn without_lists_any_module_may_be_built_in() {
    let empty = Index::empty();
    assert_eq!(empty.has("xfs"), ModuleState::Unknown);
    assert_eq!(empty.order(&["xfs"]), Ok(Vec::new()));
    assert!(empty.is_empty());
}

#[test]
fn updates_precede_modules_of_the_kernel() {
    let directory =
        modules_directory(&[("kernel/fs/x.ko", ""), ("updates/dkms/x.ko", ""), ("extra/y.ko", "")]);
    let index = Index::read(directory.path(), None).unwrap();
    let order = index.order(&["x", "y"]).unwrap();
    assert_eq!(order[0].file, directory.path().join("updates/dkms/x.ko"));
}

#[test]
fn optional_dependencies_may_form_cycles() {
    let directory = modules_directory(&[
        ("a.ko", "softdep=pre: b post: c\0"),
        ("b.ko", "depends=a\0"),
        ("c.ko", "depends=a\0softdep=pre: a b\0"),
    ]);
    let index = Index::read(directory.path(), None).unwrap();
    assert_eq!(names(&index.order(&["a"]).unwrap()), ["a", "b", "c"]);
    assert_eq!(names(&index.order(&["c"]).unwrap()), ["a", "b", "c"]);
    assert_eq!(index.before("b"), ["a"]);
    assert!(index.before("a").is_empty());
}

#[test]
fn cyclic_dependencies_terminate() {
    let directory = modules_directory(&[("a.ko", "depends=b\0"), ("b.ko", "depends=a\0")]);
    let index = Index::read(directory.path(), None).unwrap();
    assert_eq!(names(&index.order(&["a"]).unwrap()), ["b", "a"]);
}

#[test]
fn a_damaged_module_is_reported_with_its_path() {
    let directory = example();
    fs::write(directory.path().join("kernel/fs/xfs.ko"), b"").unwrap();
    let error = Index::read(directory.path(), None).unwrap_err().to_string();
    assert!(error.contains("kernel/fs/xfs.ko: it is not a 64-bit module"), "{error}");
    assert!(Index::read(Path::new("/nowhere"), None).is_err());
}

#[test]
fn an_index_is_cached_until_the_directory_changes() {
    let directory = example();
    let cache = tempfile::tempdir().unwrap();
    let kept = cache.path().join("new/directory");
    let read = || Index::read(directory.path(), Some(&kept)).unwrap();
    let first = read();
    let file = fs::read_dir(&kept).unwrap().next().unwrap().unwrap().path();
    assert_eq!(first, read());
    let text = fs::read_to_string(&file).unwrap();

    // Read from the cache: a module is damaged without a change of its size and time.
    let xfs = directory.path().join("kernel/fs/xfs.ko");
    let (whole, time) = (fs::read(&xfs).unwrap(), fs::metadata(&xfs).unwrap().modified().unwrap());
    fs::write(&xfs, vec![0; whole.len()]).unwrap();
    fs::File::options().append(true).open(&xfs).unwrap().set_modified(time).unwrap();
    assert_eq!(first, read());

    // A damaged cache file is not used, regardless of the position; the damaged module is then
    // detected.
    let last = text.len() - 1;
    for damaged in [&text[..last], &text.replace("libcrc32c", "libcrc32d"), "", "\n"] {
        fs::write(&file, damaged).unwrap();
        assert!(Index::read(directory.path(), Some(&kept)).is_err());
    }
    fs::write(&file, &text).unwrap();
    assert_eq!(first, read());

    // The cache file is not used after a change of the modules, either.
    fs::write(directory.path().join("kernel/fs/new.ko"), module("")).unwrap();
    fs::write(&xfs, &whole).unwrap();
    assert_eq!(read().has("new"), ModuleState::Module);
    assert_eq!(fs::read_dir(&kept).unwrap().count(), 1);
}

#[test]
fn a_long_chain_does_not_exhaust_the_stack() {
    let mut index = Index { built_in: Some(BTreeSet::new()), ..Index::default() };
    for number in 0..30_000 {
        let (depends, file) = (vec![format!("m{}", number + 1)], PathBuf::from("x.ko"));
        let (pre, post) = (Vec::new(), Vec::new());
        index.modules.insert(format!("m{number}"), Module { file, depends, pre, post });
    }
    assert_eq!(index.order(&["m0"]), Err(vec!["m30000, required by m29999".to_owned()]));
    index.built_in = None;
    assert_eq!(index.order(&["m0"]).unwrap().len(), 30_000);
}

/// Modules `m0`, `m1`, ... Each module requires only modules with higher numbers. Its optional
/// dependencies may be any modules.
fn graphs() -> impl Strategy<Value = Index> {
    let lists = || prop::collection::vec(0..12_usize, 0..4);
    prop::collection::vec((lists(), lists(), lists()), 1..12).prop_map(|all| {
        let count = all.len();
        let mut index = Index { built_in: Some(BTreeSet::new()), ..Index::default() };
        for (number, (depends, pre, post)) in all.into_iter().enumerate() {
            let named = |list: Vec<usize>| list.iter().map(|n| format!("m{n}")).collect::<Vec<_>>();
            let later = depends.into_iter().filter(|&n| n > number && n < count).collect();
            let (depends, pre, post) = (named(later), named(pre), named(post));
            let file = PathBuf::from(format!("m{number}.ko"));
            index.modules.insert(format!("m{number}"), Module { file, depends, pre, post });
        }
        index
    })
}

proptest! {
    #[test]
    fn every_order_can_be_loaded(index in graphs(), start in 0..12_usize) {
        let start = format!("m{}", start % index.len());
        let order = index.order(&[&start]).unwrap();
        let order = names(&order);
        prop_assert!(order.contains(&start.as_str()));
        for (at, name) in order.iter().enumerate() {
            prop_assert!(!order[..at].contains(name), "{name} twice");
            for needed in &index.modules[*name].depends {
                prop_assert!(order[..at].contains(&needed.as_str()), "{needed} before {name}");
            }
        }
        let before = index.before(&start);
        for needed in &index.modules[&start].depends {
            prop_assert!(before.contains(&needed.as_str()));
        }
    }
}

/// Prints an observation of a test that is not checked.
#[expect(clippy::print_stderr, reason = "observations on this machine")]
pub(crate) fn print_observation(text: &str) {
    eprintln!("{text}");
}

/// Directories of modules on this machine: those of installed kernels, and those of unpacked
/// packages listed in `FSLAB_TEST_MODULES`, separated by `:`.
pub(crate) fn kernels() -> Vec<PathBuf> {
    let mut roots = vec![PathBuf::from("/usr/lib/modules"), PathBuf::from("/usr/lib/uml/modules")];
    let named = std::env::var("FSLAB_TEST_MODULES").unwrap_or_default();
    roots.extend(named.split(':').filter(|root| !root.is_empty()).map(PathBuf::from));
    let directories = |root: &PathBuf| fs::read_dir(root).into_iter().flatten().flatten();
    let directories = roots.iter().flat_map(directories).map(|entry| entry.path());
    directories.filter(|directory| directory.join("modules.builtin").exists()).collect()
}

/// Modules that modprobe loads for a name, by the index of depmod; `None` for an unknown name.
fn modprobe(root: &Path, release: &str, name: &str) -> Option<Vec<String>> {
    let output = Command::new("modprobe")
        .args(["--show-depends", "-C", "/dev/null", "-S", release, "-d"])
        .args([root.as_os_str(), name.as_ref()])
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let path = line.strip_prefix("insmod ")?.split_whitespace().next()?;
        names::of_file(Path::new(path).file_name()?.to_str()?)
    };
    Some(text.lines().filter_map(line).collect())
}

#[test]
fn the_order_for_real_kernels_equals_modprobe() {
    let kernels = kernels();
    let depmod = ["/usr/sbin/depmod", "/sbin/depmod"].into_iter().find(|p| Path::new(p).exists());
    let (Some(depmod), false) = (depmod, kernels.is_empty()) else {
        skipped(
            "the_order_for_real_kernels_equals_modprobe",
            "depmod and modprobe (package kmod), and the modules of a kernel",
        );
        return;
    };
    for directory in kernels {
        let release = directory.file_name().unwrap().to_str().unwrap().to_owned();
        let index = Index::read(&directory, None).unwrap();
        // depmod writes next to the modules, so it gets a directory of links to them.
        let root = tempfile::tempdir().unwrap();
        let links = root.path().join("lib/modules").join(&release);
        fs::create_dir_all(&links).unwrap();
        for name in ["kernel", "modules.builtin", "modules.builtin.modinfo", "modules.order"] {
            std::os::unix::fs::symlink(directory.join(name), links.join(name)).unwrap();
        }
        compare(&index, depmod, root.path(), &release);
    }
}

fn compare(index: &Index, depmod: &str, root: &Path, release: &str) {
    let done = Command::new(depmod).arg("-b").args([root, Path::new(release)]).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let (mut compared, mut equal) = (0, 0);
    let of_guests = ["fs", "block", "crypto", "drivers/block", "drivers/md", "drivers/virtio"];
    let of_guests = |module: &Module| {
        of_guests.iter().any(|part| module.file.starts_with(Path::new("kernel").join(part)))
    };
    for (name, _) in index.modules.iter().filter(|(_, module)| of_guests(module)) {
        let Some(expected) = modprobe(root, release, name) else { continue };
        // Some require drivers of hardware that no guest has.
        if !expected.iter().all(|module| index.modules.contains_key(module)) {
            continue;
        }
        let order = index.order(&[name]).unwrap_or_else(|absent| panic!("{name}: {absent:?}"));
        let mut order = names(&order).into_iter().map(str::to_owned).collect::<Vec<_>>();
        // Independent modules may come in any order; the required order is tested above.
        order.sort();
        let wishes = |m: &String| index.modules[m].pre.iter().chain(&index.modules[m].post);
        // Aliases of buses, which are not stored.
        if order.iter().flat_map(wishes).any(|wish| wish.contains(':')) {
            continue;
        }
        let extra = |module: &&String| !expected.contains(module);
        let more: Vec<_> = order.iter().filter(extra).collect();
        assert!(expected.iter().all(|m| order.contains(m)), "{release} {name}: {order:?}");
        // kmod uses one of several softdep lines of a module (`kmod_module_get_softdeps`).
        if order.iter().all(|module| wishes(module).count() <= 1) {
            assert_eq!(more, Vec::<&String>::new(), "{release} {name}");
            equal += 1;
        }
        compared += 1;
    }
    assert!(equal > 0, "{release}: nothing was compared");
    print_observation(&format!(
        "{release}: {equal} of {compared} modules equal modprobe, the others have more"
    ));
}
