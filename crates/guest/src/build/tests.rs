use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::{
    Kernel, KernelQuery,
    kernel::testing::{NEVER, TestRoot, uml},
};

/// Definitions of Linux 6.1.
const BEFORE: &str = "#else\n#ifdef FP_XSTATE_MAGIC1\n\tDEFINE_LONGS(HOST_FP_SIZE, 2696);\n#else\n\
                      \tDEFINE(HOST_FP_SIZE, sizeof(struct _fpstate) / sizeof(unsigned long));\n";

/// Stores a kernel in the cache like a build.
fn store(place: &TestRoot, key: &str, release: &str) -> PathBuf {
    store_changed(place, key, release, "")
}

fn store_changed(place: &TestRoot, key: &str, release: &str, changes: &str) -> PathBuf {
    let (directory, _) = place
        .cache
        .get_or_create(key, |directory| {
            fs::write(directory.join("linux"), uml(release)).unwrap();
            let modules = format!("lib/modules/{release}");
            fs::create_dir_all(directory.join(&modules)).unwrap();
            fs::write(directory.join(&modules).join("modules.builtin"), "kernel/fs/xfs/xfs.ko\n")
                .unwrap();
            Ok(CacheManifest {
                release: release.to_owned(),
                architecture: Architecture::Uml.name().to_owned(),
                image: "linux".to_owned(),
                modules,
                origin: "linux-source-6.1.tar.xz".to_owned(),
                source: "aa".to_owned(),
                config: "bb".to_owned(),
                changes: changes.to_owned(),
            })
        })
        .unwrap();
    directory
}

#[test]
fn buffers_are_enlarged_at_the_definition() {
    let after = with_large_buffers(BEFORE).unwrap();
    assert_eq!(after, BEFORE.replace("2696", "12288"));
    assert_eq!(with_large_buffers(&after), None);
    assert_eq!(with_large_buffers("DEFINE_LONGS(HOST_BX, RBX);"), None);
}

fn spec<'a>(
    place: &'a TestRoot,
    source: Option<&'a Path>,
    patches: &'a [PathBuf],
    options: &'a [KernelOption],
    interrupt: &'a AtomicBool,
) -> BuildSpec<'a> {
    let source = source.map(Path::as_os_str);
    BuildSpec { source, patches, options, jobs: 2, cache: &place.cache, interrupt }
}

/// Runs a function with a builder on a minimal source, and returns the reported progress.
fn work<T>(
    place: &TestRoot,
    offsets: &str,
    of: impl FnOnce(&mut Builder<'_, '_>, &Path) -> T,
) -> (T, Vec<Progress>) {
    let tree = place.path("tree");
    fs::create_dir_all(tree.join(OFFSETS).parent().unwrap()).unwrap();
    fs::write(tree.join(OFFSETS), offsets).unwrap();
    let spec = spec(place, None, &[], &[], &NEVER);
    let changes = Changes::default();
    let found = Found::Directory(tree.clone());
    let source = Source { path: &tree, interrupt: &NEVER };
    let mut reported = Vec::new();
    let report = &mut |progress| reported.push(progress);
    let mut work =
        Builder { spec: &spec, changes: &changes, found: &found, source, directory: &tree, report };
    (of(&mut work, &tree), reported)
}

#[test]
fn buffers_are_enlarged_before_6_13_only() {
    let place = TestRoot::new();
    let (suffix, reported) = work(&place, BEFORE, |work, tree| work.enlarge_buffers(tree).unwrap());
    assert_eq!((suffix, reported), (LARGE_REGISTERS_SUFFIX, vec![]));
    assert!(fs::read_to_string(place.path("tree").join(OFFSETS)).unwrap().contains("12288"));
    // Since 6.13, the size is read from the host and not defined here.
    let (suffix, reported) =
        work(&place, "DEFINE(X, 1);", |work, tree| work.enlarge_buffers(tree).unwrap());
    assert_eq!((suffix, reported), (PLAIN, vec![]));
    let unknown = "DEFINE(HOST_FP_SIZE, something_else);";
    let (suffix, reported) =
        work(&place, unknown, |work, tree| work.enlarge_buffers(tree).unwrap());
    assert_eq!((suffix, reported), (PLAIN, vec![Progress::RegisterSizeNotFound]));
}

#[test]
fn built_kernels_precede_installed_ones() {
    let place = TestRoot::new();
    place.write("usr/bin/linux.uml", &uml("6.1.176"));
    let find = |named| place.find(named, Architecture::Uml);
    assert_eq!(find(KernelQuery::Newest).unwrap().release, "6.1.176");
    let old = store(&place, "a", "6.1.192-fslab-amx");
    store(&place, "b", "6.12.9-fslab");
    let newest: Kernel = find(KernelQuery::Newest).unwrap();
    assert_eq!(newest.release, "6.12.9-fslab");
    assert_eq!(newest.origin, "built from linux-source-6.1.tar.xz");
    let named = find(KernelQuery::Text("6.1")).unwrap();
    assert_eq!(named.release, "6.1.192-fslab-amx");
    assert_eq!(named.image, fs::canonicalize(&old).unwrap().join("linux"));
    assert_eq!(named.modules, Some(old.join("lib/modules/6.1.192-fslab-amx")));
    // An installed kernel can still be selected.
    assert_eq!(find(KernelQuery::Text("6.1.176")).unwrap().release, "6.1.176");
    assert!(find(KernelQuery::Text("6.2")).is_err());
    // Built kernels are not for PCs.
    assert!(place.find(KernelQuery::Text("6.1"), Architecture::Pc).is_err());
    let index = crate::modules::Index::read(&named.modules.unwrap(), None).unwrap();
    assert_eq!(index.has("xfs"), crate::modules::ModuleState::BuiltIn);
    assert_eq!(super::newest(place.cache.directory()).unwrap().release, "6.12.9-fslab");
}

#[test]
fn changed_kernels_must_be_selected() {
    let place = TestRoot::new();
    store_changed(&place, "b", "6.12.9-0a1b2c3d-fslab", "toy.patch (SHA-256 0a1b)");
    assert_eq!(super::newest(place.cache.directory()), None);
    store(&place, "a", "6.1.192-fslab-amx");
    assert_eq!(super::newest(place.cache.directory()).unwrap().release, "6.1.192-fslab-amx");
    let named = place.find(KernelQuery::Text("6.12"), Architecture::Uml).unwrap();
    assert_eq!(named.release, "6.12.9-0a1b2c3d-fslab");
    let origin = "built from linux-source-6.1.tar.xz with toy.patch (SHA-256 0a1b)";
    assert_eq!(named.origin, origin);
}

#[test]
fn the_last_build_of_a_release_is_the_newest() {
    let place = TestRoot::new();
    let older = store(&place, "b", "6.1.192-fslab-amx");
    let newer = store(&place, "a", "6.1.192-fslab-amx");
    let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    fs::File::open(older).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(super::newest(place.cache.directory()).unwrap().image, newer.join("linux"));
}

/// A complete build with a simulated source and make: the order of the steps, the stored files, and
/// the removed files.
#[test]
fn a_build_stores_the_kernel_only() {
    let place = TestRoot::new();
    let path = std::env::var_os("PATH").unwrap_or_default();
    if make::check_tools(&path, &[make::PATCH]).is_err() {
        crate::support::skipped("a_build_stores_the_kernel_only", "programs that build a kernel");
        return;
    }
    let source = simulated_source(&place, "cp -f program linux");
    let mut reported = Vec::new();
    let spec = spec(&place, Some(&source), &[], &[], &NEVER);
    let report = &mut |progress| reported.push(progress);
    let first = build(&spec, report);
    // `strip` rejects the simulated program, so the build fails there and its log is kept.
    let error = first.unwrap_err();
    let GuestError::Build { step, log, .. } = &error else { panic!("{error}") };
    assert_eq!(step, "strip linux");
    let text = fs::read_to_string(log).unwrap();
    assert!(text.contains("$ make ARCH=um -j2 linux\n  CC      init/main.o\n"), "{text}");
    assert_eq!(log, &place.cache.directory().join(LOG));
    assert!(reported.contains(&Progress::Configuring), "{reported:?}");
    assert!(
        reported.contains(&Progress::UnknownOptions(vec!["BCACHEFS_FS".to_owned()])),
        "{reported:?}"
    );
    assert_eq!(place.list(&place.cache.directory().join("kernels-1")), Vec::<String>::new());
    assert_eq!(place.cache.manifests(), []);
}

#[test]
fn an_option_with_another_value_is_reported() {
    let place = TestRoot::new();
    if make::check_tools(&std::env::var_os("PATH").unwrap_or_default(), &[]).is_err() {
        crate::support::skipped(
            "an_option_with_another_value_is_reported",
            "programs that build a kernel",
        );
        return;
    }
    let source = simulated_source(&place, "true");
    let makefile = fs::read_to_string(source.join("Makefile")).unwrap();
    let broken =
        makefile.replace("olddefconfig:", "olddefconfig:\n\tsed -i /CONFIG_XFS_FS=/d .config");
    fs::write(source.join("Makefile"), broken).unwrap();
    let stop = AtomicBool::new(false);
    let spec = spec(&place, Some(&source), &[], &[], &stop);
    let error = build(&spec, &mut |_| {}).unwrap_err();
    let GuestError::Configuration { options, .. } = &error else { panic!("{error}") };
    assert_eq!(options, &["XFS_FS=y (it is n: Kconfig states no reason)"]);
    let interrupted = build(&spec, &mut |progress| {
        stop.store(progress == Progress::Configuring, Relaxed);
    });
    assert!(matches!(interrupted, Err(GuestError::Interrupted)), "{interrupted:?}");
    assert_eq!(place.list(&place.cache.directory().join("kernels-1")), Vec::<String>::new());
}

#[test]
fn a_patch_precedes_the_configuration() {
    let place = TestRoot::new();
    if make::check_tools(&std::env::var_os("PATH").unwrap_or_default(), &[make::PATCH]).is_err() {
        crate::support::skipped(
            "a_patch_precedes_the_configuration",
            "programs that build a kernel",
        );
        return;
    }
    let source = simulated_source(&place, "grep -q '^patched' README && false");
    place.write("source/README", b"original\n");
    let text = "--- a/README\n+++ b/README\n@@ -1 +1 @@\n-original\n+patched\n";
    let patches = [PathBuf::from(place.write("toy.patch", text.as_bytes()))];
    let options = [KernelOption::parse("NO_SUCH_OPTION=y").unwrap()];
    let run = |patches: &[PathBuf], options: &[KernelOption]| {
        let mut reported = Vec::new();
        let spec = spec(&place, Some(&source), patches, options, &NEVER);
        let error = build(&spec, &mut |progress| reported.push(progress)).unwrap_err();
        assert_eq!(place.list(&place.cache.directory().join("kernels-1")), Vec::<String>::new());
        (error, reported)
    };
    let (error, reported) = run(&patches, &[]);
    assert!(matches!(&error, GuestError::Build { step, .. } if step == "make ARCH=um -j2 linux"));
    let applied = Progress::Patched("toy.patch".to_owned());
    assert!(reported.windows(2).any(|it| it == [applied.clone(), Progress::Configuring]));
    let (error, _) = run(&[], &options);
    let words = "NO_SUCH_OPTION=y (it is n: the source has no such option); change --config";
    assert!(error.to_string().contains(words), "{error}");
    // The same patch again does not apply.
    let twice = [patches[0].clone(), patches[0].clone()];
    let (error, _) = run(&twice, &[]);
    assert!(matches!(error, GuestError::Patch { .. }), "{error}");
}

/// Source whose make simulates a kernel build.
fn simulated_source(place: &TestRoot, link: &str) -> PathBuf {
    let options: String = RequiredOptions::new("", &[])
        .text()
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("CONFIG_"))
        .map(|word| word.split('=').next().unwrap_or_default())
        .filter(|name| *name != "BCACHEFS_FS")
        .map(|name| format!("config {name}\n"))
        .collect();
    place.write("source/Kconfig", options.as_bytes());
    place.write("source/arch/um/Makefile", b"");
    place.write(&format!("source/{OFFSETS}"), BEFORE.as_bytes());
    place.write("source/program", &uml(&format!("6.1.192{LARGE_REGISTERS_SUFFIX}")));
    let makefile = format!(
        "defconfig:\n\techo 'CONFIG_MODULES=y' > .config\n\
         olddefconfig:\n\tsed -i -E '/BCACHEFS|NO_SUCH/d' .config\n\
         linux:\n\t@echo '  CC      init/main.o'\n\t{link}\n\ttouch modules.builtin modules.builtin.modinfo\n"
    );
    PathBuf::from(place.write("source/Makefile", makefile.as_bytes())).parent().unwrap().to_owned()
}
