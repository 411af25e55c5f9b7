use std::sync::Barrier;

use proptest::prelude::*;

use super::{super::testing::source, *};

fn test_cache() -> (tempfile::TempDir, Cache) {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let cache = Cache::new(directory.path().join("a/b"));
    (directory, cache)
}

fn manifest(release: &str) -> CacheManifest {
    CacheManifest {
        release: release.to_owned(),
        image: "vmlinux".to_owned(),
        ..CacheManifest::default()
    }
}

fn fill(directory: &Path) -> Result<CacheManifest, GuestError> {
    fs::write(directory.join("vmlinux"), b"x").unwrap();
    Ok(manifest("6.1"))
}

fn names(cache: &Cache) -> Vec<String> {
    let entries = fs::read_dir(cache.directory().join(DIRECTORY)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_directory_is_created_once() {
    let (_directory, cache) = test_cache();
    let (path, first) = cache.get_or_create("abc", fill).unwrap();
    assert_eq!(first, manifest("6.1"));
    assert_eq!(fs::read(path.join("vmlinux")).unwrap(), b"x");
    let again = cache.get_or_create("abc", |_| panic!("it is there")).unwrap();
    assert_eq!(again, (path, first));
    assert_eq!(names(&cache), ["abc"]);
}

#[test]
fn a_failure_leaves_no_files() {
    let (_directory, cache) = test_cache();
    let made = cache.get_or_create("abc", |directory| {
        fs::create_dir_all(directory.join("modules/6.1")).unwrap();
        Err(GuestError::Interrupted)
    });
    assert!(matches!(made, Err(GuestError::Interrupted)));
    assert_eq!(names(&cache), Vec::<String>::new());
}

#[test]
fn concurrent_callers_get_the_same_directory() {
    let (_directory, cache) = test_cache();
    let barrier = Barrier::new(2);
    let make = || {
        cache.get_or_create("abc", |directory| {
            barrier.wait();
            fill(directory)
        })
    };
    let (one, other) = std::thread::scope(|scope| {
        let one = scope.spawn(make);
        let other = make();
        (one.join().unwrap().unwrap(), other.unwrap())
    });
    assert_eq!(one, other);
    assert_eq!(names(&cache), ["abc"]);
}

#[test]
fn abandoned_directories_are_removed_and_locked_ones_kept() {
    let (_directory, cache) = test_cache();
    let kernels = cache.directory().join(DIRECTORY);
    let dead = kernels.join(format!("{UNFINISHED}1-2-3"));
    fs::create_dir_all(dead.join("modules")).unwrap();
    fs::write(dead.join(MARKER), identity(&File::open(&dead).unwrap()).unwrap()).unwrap();
    let empty = kernels.join(format!("{UNFINISHED}4-5-6"));
    fs::create_dir(&empty).unwrap();
    cache
        .get_or_create("abc", |outer| {
            assert!(!dead.exists() && !empty.exists());
            cache.get_or_create("def", fill).unwrap();
            assert!(outer.exists());
            fill(outer)
        })
        .unwrap();
    let mut names = names(&cache);
    names.sort();
    assert_eq!(names, ["abc", "def"]);
}

#[test]
fn a_directory_without_a_marker_is_kept() {
    let (_directory, cache) = test_cache();
    let kernels = cache.directory().join(DIRECTORY);
    for (name, record) in [("a", None), ("b", Some("1:2"))] {
        let path = kernels.join(format!("{UNFINISHED}{name}"));
        fs::create_dir_all(path.join("valuable")).unwrap();
        if let Some(record) = record {
            fs::write(path.join(MARKER), record).unwrap();
        }
    }
    cache.get_or_create("abc", fill).unwrap();
    assert!(kernels.join(format!("{UNFINISHED}a/valuable")).exists());
    assert!(kernels.join(format!("{UNFINISHED}b/valuable")).exists());
}

#[test]
fn a_modified_directory_is_reported() {
    let (_directory, cache) = test_cache();
    let (path, _) = cache.get_or_create("abc", fill).unwrap();
    fs::remove_file(path.join("vmlinux")).unwrap();
    let error = cache.get_or_create("abc", fill).unwrap_err();
    assert!(error.to_string().contains("remove it"), "{error}");
    fs::write(path.join(MANIFEST), vec![b'x'; 10_000]).unwrap();
    assert!(cache.get_or_create("abc", fill).is_err());
}

#[test]
fn complete_directories_are_listed() {
    let (_directory, cache) = test_cache();
    assert_eq!(cache.manifests(), []);
    cache.get_or_create("def", fill).unwrap();
    let (path, _) = cache.get_or_create("abc", fill).unwrap();
    fs::create_dir(path.with_file_name(format!("{UNFINISHED}1-2-3"))).unwrap();
    let listed: Vec<_> = cache.manifests().into_iter().map(|(_, manifest)| manifest).collect();
    assert_eq!(listed, [manifest("6.1"), manifest("6.1")]);
    fs::remove_file(path.join("vmlinux")).unwrap();
    assert_eq!(cache.manifests().len(), 1);
}

#[test]
fn file_names_with_line_feeds_are_escaped() {
    let manifest = CacheManifest { origin: "a\nimage=b".to_owned(), ..manifest("6.1") };
    assert_eq!(CacheManifest::of_text(&manifest.to_text()).unwrap().origin, "a?image=b");
}

#[test]
fn an_unusable_cache_has_a_hint() {
    let error = Cache::new("/proc/fslab".into()).get_or_create("abc", fill).unwrap_err();
    assert!(error.to_string().contains("XDG_CACHE_HOME"), "{error}");
}

#[test]
fn the_default_directory_follows_xdg() {
    let of = |caches: Option<&str>, home: Option<&str>| {
        default_directory(caches.map(PathBuf::from), home.map(PathBuf::from))
    };
    assert_eq!(of(Some("/c"), Some("/home/me")), Path::new("/c/fslab"));
    assert_eq!(of(None, Some("/home/me")), Path::new("/home/me/.cache/fslab"));
    assert_eq!(of(None, None), Path::new("/var/cache/fslab"));
}

#[test]
fn hashes_are_standard_sha256() {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = directory.path().join("abc");
    fs::write(&path, b"abc").unwrap();
    // FIPS 180-2, appendix B.1.
    assert_eq!(
        hash(source(&path), &File::open(&path).unwrap()).unwrap(),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

proptest! {
    #[test]
    fn manifests_round_trip(
        release in "[0-9a-z.=-]{0,20}",
        image in "[a-z0-9=-]{0,20}",
        origin in "[a-z0-9=_. -]{0,20}",
        source in "[0-9a-f]{0,4}",
        config in "[0-9a-f]{0,4}",
        changes in "[a-zA-Z0-9=(), ]{0,20}",
    ) {
        let manifest = CacheManifest {
            release, image, origin, source, config, changes, ..CacheManifest::default()
        };
        prop_assert_eq!(CacheManifest::of_text(&manifest.to_text()), Some(manifest));
    }

    #[test]
    fn any_text_is_a_manifest_or_none(text in "(release=|architecture=|image=|modules=|origin=|source=|config=|\\PC|\n){0,16}") {
        if let Some(manifest) = CacheManifest::of_text(&text) {
            prop_assert_eq!(CacheManifest::of_text(&manifest.to_text()), Some(manifest));
        }
    }
}
