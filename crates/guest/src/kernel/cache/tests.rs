use std::sync::Barrier;

use proptest::prelude::*;

use super::{super::testing::source, *};

fn place() -> (tempfile::TempDir, Cache) {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let cache = Cache::new(folder.path().join("a/b"));
    (folder, cache)
}

fn card(release: &str) -> Card {
    Card { release: release.to_owned(), image: "vmlinux".to_owned(), ..Card::default() }
}

fn fill(folder: &Path) -> Result<Card, GuestError> {
    fs::write(folder.join("vmlinux"), b"x").unwrap();
    Ok(card("6.1"))
}

fn names(cache: &Cache) -> Vec<String> {
    let entries = fs::read_dir(cache.directory().join(FOLDER)).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_folder_is_made_once() {
    let (_folder, cache) = place();
    let (path, first) = cache.folder("abc", fill).unwrap();
    assert_eq!(first, card("6.1"));
    assert_eq!(fs::read(path.join("vmlinux")).unwrap(), b"x");
    let again = cache.folder("abc", |_| panic!("it is there")).unwrap();
    assert_eq!(again, (path, first));
    assert_eq!(names(&cache), ["abc"]);
}

#[test]
fn what_fails_leaves_nothing() {
    let (_folder, cache) = place();
    let made = cache.folder("abc", |folder| {
        fs::create_dir_all(folder.join("modules/6.1")).unwrap();
        Err(GuestError::Interrupted)
    });
    assert!(matches!(made, Err(GuestError::Interrupted)));
    assert_eq!(names(&cache), Vec::<String>::new());
}

#[test]
fn two_at_once_get_the_same() {
    let (_folder, cache) = place();
    let barrier = Barrier::new(2);
    let make = || {
        cache.folder("abc", |folder| {
            barrier.wait();
            fill(folder)
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
fn what_the_dead_left_is_removed_and_the_living_are_left_alone() {
    let (_folder, cache) = place();
    let kernels = cache.directory().join(FOLDER);
    let dead = kernels.join(format!("{UNFINISHED}1-2-3"));
    fs::create_dir_all(dead.join("modules")).unwrap();
    fs::write(dead.join(MADE), identity(&File::open(&dead).unwrap()).unwrap()).unwrap();
    let empty = kernels.join(format!("{UNFINISHED}4-5-6"));
    fs::create_dir(&empty).unwrap();
    cache
        .folder("abc", |outer| {
            assert!(!dead.exists() && !empty.exists());
            cache.folder("def", fill).unwrap();
            assert!(outer.exists());
            fill(outer)
        })
        .unwrap();
    let mut names = names(&cache);
    names.sort();
    assert_eq!(names, ["abc", "def"]);
}

#[test]
fn a_folder_without_the_record_of_its_making_is_kept() {
    let (_folder, cache) = place();
    let kernels = cache.directory().join(FOLDER);
    for (name, record) in [("a", None), ("b", Some("1:2"))] {
        let path = kernels.join(format!("{UNFINISHED}{name}"));
        fs::create_dir_all(path.join("dear")).unwrap();
        if let Some(record) = record {
            fs::write(path.join(MADE), record).unwrap();
        }
    }
    cache.folder("abc", fill).unwrap();
    assert!(kernels.join(format!("{UNFINISHED}a/dear")).exists());
    assert!(kernels.join(format!("{UNFINISHED}b/dear")).exists());
}

#[test]
fn a_folder_that_was_tampered_with_is_told() {
    let (_folder, cache) = place();
    let (path, _) = cache.folder("abc", fill).unwrap();
    fs::remove_file(path.join("vmlinux")).unwrap();
    let error = cache.folder("abc", fill).unwrap_err();
    assert!(error.to_string().contains("remove it"), "{error}");
    fs::write(path.join(CARD), vec![b'x'; 10_000]).unwrap();
    assert!(cache.folder("abc", fill).is_err());
}

#[test]
fn what_is_kept_is_listed() {
    let (_folder, cache) = place();
    assert_eq!(cache.cards(), []);
    cache.folder("def", fill).unwrap();
    let (path, _) = cache.folder("abc", fill).unwrap();
    fs::create_dir(path.with_file_name(format!("{UNFINISHED}1-2-3"))).unwrap();
    let listed: Vec<_> = cache.cards().into_iter().map(|(_, card)| card).collect();
    assert_eq!(listed, [card("6.1"), card("6.1")]);
    fs::remove_file(path.join("vmlinux")).unwrap();
    assert_eq!(cache.cards().len(), 1);
}

#[test]
fn names_of_files_do_not_break_a_card() {
    let card = Card { origin: "a\nimage=b".to_owned(), ..card("6.1") };
    assert_eq!(Card::of_text(&card.to_text()).unwrap().origin, "a?image=b");
}

#[test]
fn a_cache_that_cannot_be_made_says_what_helps() {
    let error = Cache::new("/proc/fslab".into()).folder("abc", fill).unwrap_err();
    assert!(error.to_string().contains("XDG_CACHE_HOME"), "{error}");
}

#[test]
fn caches_are_where_they_belong() {
    let of = |caches: Option<&str>, home: Option<&str>| {
        default_directory(caches.map(PathBuf::from), home.map(PathBuf::from))
    };
    assert_eq!(of(Some("/c"), Some("/home/me")), Path::new("/c/fslab"));
    assert_eq!(of(None, Some("/home/me")), Path::new("/home/me/.cache/fslab"));
    assert_eq!(of(None, None), Path::new("/var/cache/fslab"));
}

#[test]
fn hashes_are_those_of_others() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("abc");
    fs::write(&path, b"abc").unwrap();
    // FIPS 180-2, appendix B.1.
    assert_eq!(
        hash(source(&path), &File::open(&path).unwrap()).unwrap(),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

proptest! {
    #[test]
    fn cards_are_read_as_they_were_written(
        release in "[0-9a-z.=-]{0,20}",
        image in "[a-z0-9=-]{0,20}",
        origin in "[a-z0-9=_. -]{0,20}",
        source in "[0-9a-f]{0,4}",
        config in "[0-9a-f]{0,4}",
    ) {
        let card = Card { release, image, origin, source, config, ..Card::default() };
        prop_assert_eq!(Card::of_text(&card.to_text()), Some(card));
    }

    #[test]
    fn strange_cards_are_none_or_one(text in "(release=|architecture=|image=|modules=|origin=|source=|config=|\\PC|\n){0,16}") {
        if let Some(card) = Card::of_text(&text) {
            prop_assert_eq!(Card::of_text(&card.to_text()), Some(card));
        }
    }
}
