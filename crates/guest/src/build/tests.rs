use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::{
    Kernel, Named,
    kernel::testing::{NEVER, Place, uml},
};

/// What Linux 6.1 says.
const BEFORE: &str = "#else\n#ifdef FP_XSTATE_MAGIC1\n\tDEFINE_LONGS(HOST_FP_SIZE, 2696);\n#else\n\
                      \tDEFINE(HOST_FP_SIZE, sizeof(struct _fpstate) / sizeof(unsigned long));\n";

/// Keeps a kernel as a build does.
fn keep(place: &Place, key: &str, release: &str) -> PathBuf {
    let (folder, _) = place
        .cache
        .folder(key, |folder| {
            fs::write(folder.join("linux"), uml(release)).unwrap();
            let modules = format!("lib/modules/{release}");
            fs::create_dir_all(folder.join(&modules)).unwrap();
            fs::write(folder.join(&modules).join("modules.builtin"), "kernel/fs/xfs/xfs.ko\n")
                .unwrap();
            Ok(Card {
                release: release.to_owned(),
                architecture: Architecture::Uml.name().to_owned(),
                image: "linux".to_owned(),
                modules,
                origin: "linux-source-6.1.tar.xz".to_owned(),
                source: "aa".to_owned(),
                config: "bb".to_owned(),
            })
        })
        .unwrap();
    folder
}

#[test]
fn room_is_made_where_it_is_expected() {
    let after = roomy(BEFORE).unwrap();
    assert_eq!(after, BEFORE.replace("2696", "12288"));
    assert_eq!(roomy(&after), None);
    assert_eq!(roomy("DEFINE_LONGS(HOST_BX, RBX);"), None);
}

/// A folder that is all of a source to us, and a tell-tale of what was said.
fn work<T>(
    place: &Place,
    offsets: &str,
    of: impl FnOnce(&mut Work<'_, '_>, &Path) -> T,
) -> (T, Vec<Progress>) {
    let tree = place.path("tree");
    fs::create_dir_all(tree.join(OFFSETS).parent().unwrap()).unwrap();
    fs::write(tree.join(OFFSETS), offsets).unwrap();
    let order = Order { source: None, jobs: 1, cache: &place.cache, interrupt: &NEVER };
    let found = Found::Folder(tree.clone());
    let source = Source { path: &tree, interrupt: &NEVER };
    let mut said = Vec::new();
    let tell = &mut |progress| said.push(progress);
    let mut work = Work { order: &order, found: &found, source, folder: &tree, tell };
    (of(&mut work, &tree), said)
}

#[test]
fn a_kernel_says_whether_it_has_room() {
    let place = Place::new();
    let (suffix, said) = work(&place, BEFORE, |work, tree| work.make_room(tree).unwrap());
    assert_eq!((suffix, said), (ROOMY, vec![]));
    assert!(fs::read_to_string(place.path("tree").join(OFFSETS)).unwrap().contains("12288"));
    // Since 6.13 the number is asked of the host, and is no longer there.
    let (suffix, said) = work(&place, "DEFINE(X, 1);", |work, tree| work.make_room(tree).unwrap());
    assert_eq!((suffix, said), (PLAIN, vec![]));
    let unknown = "DEFINE(HOST_FP_SIZE, something_else);";
    let (suffix, said) = work(&place, unknown, |work, tree| work.make_room(tree).unwrap());
    assert_eq!((suffix, said), (PLAIN, vec![Progress::NoRoom]));
}

#[test]
fn what_was_built_is_found_before_what_is_installed() {
    let place = Place::new();
    place.write("usr/bin/linux.uml", &uml("6.1.176"));
    let find = |named| place.find(named, Architecture::Uml);
    assert_eq!(find(Named::Newest).unwrap().release, "6.1.176");
    let old = keep(&place, "a", "6.1.192-fslab-amx");
    keep(&place, "b", "6.12.9-fslab");
    let newest: Kernel = find(Named::Newest).unwrap();
    assert_eq!(newest.release, "6.12.9-fslab");
    assert_eq!(newest.origin, "built here from linux-source-6.1.tar.xz");
    let named = find(Named::Text("6.1")).unwrap();
    assert_eq!(named.release, "6.1.192-fslab-amx");
    assert_eq!(named.image, fs::canonicalize(&old).unwrap().join("linux"));
    assert_eq!(named.modules, Some(old.join("lib/modules/6.1.192-fslab-amx")));
    // One that was not built is still to be had.
    assert_eq!(find(Named::Text("6.1.176")).unwrap().release, "6.1.176");
    assert!(find(Named::Text("6.2")).is_err());
    // For PCs they are nothing.
    assert!(place.find(Named::Text("6.1"), Architecture::Pc).is_err());
    let index = crate::modules::Index::read(&named.modules.unwrap(), None).unwrap();
    assert_eq!(index.has("xfs"), crate::modules::Presence::BuiltIn);
    assert_eq!(super::newest(place.cache.directory()).unwrap().release, "6.12.9-fslab");
}

#[test]
fn of_one_release_the_last_is_the_newest() {
    let place = Place::new();
    let older = keep(&place, "b", "6.1.192-fslab-amx");
    let newer = keep(&place, "a", "6.1.192-fslab-amx");
    let long_ago = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    fs::File::open(older).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(super::newest(place.cache.directory()).unwrap().image, newer.join("linux"));
}

/// A build from end to end, by a make, a compiler, and a strip of paper: what is done in which
/// order, what is kept, and what stays behind.
#[test]
fn a_build_keeps_a_kernel_and_nothing_else() {
    let place = Place::new();
    let path = std::env::var_os("PATH").unwrap_or_default();
    if make::check_tools(&path).is_err() {
        crate::support::skipped("a_build_keeps_a_kernel_and_nothing_else", "what builds a kernel");
        return;
    }
    let source = paper(&place, "cp -f program linux");
    let mut said = Vec::new();
    let order =
        Order { source: Some(source.as_os_str()), jobs: 2, cache: &place.cache, interrupt: &NEVER };
    let tell = &mut |progress| said.push(progress);
    let first = build(&order, tell);
    // `strip` does not take programs of paper: the build fails there, and what it said is kept.
    let error = first.unwrap_err();
    let GuestError::Build { step, log, .. } = &error else { panic!("{error}") };
    assert_eq!(step, "strip linux");
    let text = fs::read_to_string(log).unwrap();
    assert!(text.contains("$ make ARCH=um -j2 linux\n  CC      init/main.o\n"), "{text}");
    assert_eq!(log, &place.cache.directory().join(LOG));
    assert!(said.contains(&Progress::Configuring), "{said:?}");
    assert!(said.contains(&Progress::Without(vec!["BCACHEFS_FS".to_owned()])), "{said:?}");
    assert_eq!(place.list(&place.cache.directory().join("kernels-1")), Vec::<String>::new());
    assert_eq!(place.cache.cards(), []);
}

#[test]
fn an_option_that_does_not_take_is_named() {
    let place = Place::new();
    if make::check_tools(&std::env::var_os("PATH").unwrap_or_default()).is_err() {
        crate::support::skipped("an_option_that_does_not_take_is_named", "what builds a kernel");
        return;
    }
    let source = paper(&place, "true");
    let makefile = fs::read_to_string(source.join("Makefile")).unwrap();
    let broken =
        makefile.replace("olddefconfig:", "olddefconfig:\n\tsed -i /CONFIG_XFS_FS=/d .config");
    fs::write(source.join("Makefile"), broken).unwrap();
    let stop = AtomicBool::new(false);
    let order =
        Order { source: Some(source.as_os_str()), jobs: 1, cache: &place.cache, interrupt: &stop };
    let error = build(&order, &mut |_| {}).unwrap_err();
    let GuestError::Configuration { options, .. } = &error else { panic!("{error}") };
    assert_eq!(options, &["XFS_FS=y (it is n)"]);
    let interrupted = build(&order, &mut |progress| {
        stop.store(progress == Progress::Configuring, Relaxed);
    });
    assert!(matches!(interrupted, Err(GuestError::Interrupted)), "{interrupted:?}");
    assert_eq!(place.list(&place.cache.directory().join("kernels-1")), Vec::<String>::new());
}

/// A source whose make does in no time what that of a kernel does in minutes.
fn paper(place: &Place, link: &str) -> PathBuf {
    let options: String = Wanted::new("")
        .text()
        .split_whitespace()
        .filter_map(|word| word.strip_prefix("CONFIG_"))
        .map(|word| word.split('=').next().unwrap_or_default())
        .filter(|name| *name != "BCACHEFS_FS")
        .map(|name| format!("config {name}\n"))
        .collect();
    place.write("paper/Kconfig", options.as_bytes());
    place.write("paper/arch/um/Makefile", b"");
    place.write(&format!("paper/{OFFSETS}"), BEFORE.as_bytes());
    place.write("paper/program", &uml(&format!("6.1.192{ROOMY}")));
    let makefile = format!(
        "defconfig:\n\techo 'CONFIG_MODULES=y' > .config\n\
         olddefconfig:\n\tsed -i '/BCACHEFS/d' .config\n\
         linux:\n\t@echo '  CC      init/main.o'\n\t{link}\n\ttouch modules.builtin modules.builtin.modinfo\n"
    );
    PathBuf::from(place.write("paper/Makefile", makefile.as_bytes())).parent().unwrap().to_owned()
}
