use std::collections::BTreeSet;

use model::{
    Bytes,
    phase::{DataPattern, Sizes},
};

use super::*;

fn set(naming: Naming, spread: Spread, sharing: Sharing) -> Set {
    Set {
        name: "t".into(),
        sharing,
        files: 1000,
        spread,
        naming,
        sizes: Sizes::Fixed(Bytes(0)),
        block_size: Bytes(1),
        data: DataPattern::default(),
        seed: 5,
    }
}

#[test]
fn names_have_the_documented_form_up_to_the_last_entry() {
    let each = Spread::Directories { each: 100 };
    let mut names = Names::new(&set(Naming::Numbers, each, Sharing::Private), 0);
    names.set(1234);
    assert_eq!(names.entry_name(), c"12/1234");
    assert_eq!(names.directory(), c"12");
    assert_eq!(names.with(b".link"), (c"12/1234", c"12/1234.link"));
    names.set(7);
    assert_eq!(names.entry_name(), c"0/7");
    assert_eq!(names.directory(), c"0");
    let one = Spread::Directories { each: 1 };
    let mut names = Names::new(&set(Naming::Numbers, one, Sharing::Directory), u32::MAX);
    names.set(u64::MAX);
    let longest = c"18446744073709551615/4294967295-18446744073709551615";
    assert_eq!(names.entry_name(), longest);
    let mut flat = Names::new(&set(Naming::Numbers, Spread::Flat, Sharing::Private), 0);
    flat.set(3);
    assert_eq!(flat.entry_name(), c"3");
    assert_eq!(flat.directory(), c".");
}

#[test]
fn every_name_maps_back_to_its_entry() {
    let namings =
        [Naming::Numbers, Naming::Padded { length: 64 }, Naming::Ordered, Naming::Scrambled];
    for naming in namings {
        for sharing in [Sharing::Private, Sharing::Directory] {
            let set = set(naming, Spread::Directories { each: 7 }, sharing);
            let mut names = Names::new(&set, 3);
            for entry in (0..500).chain([u64::from(u32::MAX), 1 << 39]) {
                names.set(entry);
                let text = names.entry_name().to_bytes().to_vec();
                let name = text.rsplit(|byte| *byte == b'/').next().unwrap();
                assert_eq!(names.entry(name), Some(entry), "{naming:?} {sharing:?}");
                names.enter(entry + 70);
                names.set_found(entry, name);
                assert_eq!(names.entry_name().to_bytes(), text);
            }
            if sharing == Sharing::Directory {
                assert_eq!(names.entry(b"4-0"), None, "another worker's");
            }
        }
    }
    let plain = Names::new(&set(Naming::Numbers, Spread::Flat, Sharing::Private), 0);
    assert_eq!(plain.entry(b"lost+found"), None);
}

#[test]
fn bonnie_names_have_ten_digits_and_up_to_twelve_letters() {
    let mut names = Names::new(&set(Naming::Ordered, Spread::Flat, Sharing::Private), 0);
    let mut lengths = BTreeSet::new();
    let mut letters = BTreeSet::new();
    let mut before = Vec::new();
    for entry in 0..5000 {
        names.set(entry);
        let name = names.entry_name().to_bytes().to_vec();
        assert!(name.starts_with(format!("{entry:010x}").as_bytes()));
        assert!(name > before, "they sort in creation order");
        lengths.insert(name.len());
        letters.extend(name[10..].iter().copied());
        before = name;
    }
    assert!(lengths.into_iter().eq(10..=22));
    assert_eq!(letters.len(), 62);
    let each = Spread::Directories { each: 513 };
    let mut names = Names::new(&set(Naming::Scrambled, each, Sharing::Private), 0);
    names.set(513);
    assert_eq!(names.directory(), c"00001");
    assert!(names.entry_name().to_bytes().ends_with(b"0000000201"));
}

#[test]
fn padded_names_have_the_requested_length() {
    let naming = Naming::Padded { length: 200 };
    let mut names = Names::new(&set(naming, Spread::Flat, Sharing::Private), 0);
    names.set(12);
    assert_eq!(names.entry_name().to_bytes().len(), 200);
    assert!(names.entry_name().to_bytes().starts_with(b"12___"));
}

#[test]
fn names_of_mdtest_are_in_a_tree_of_directories() {
    let tree = DirectoryTree { depth: 2, branching: 2, each: 10, leaves_only: false };
    let set = |naming, sharing, leaves_only| {
        set(naming, Spread::Tree(DirectoryTree { leaves_only, ..tree }), sharing)
    };
    let files = Naming::Mdtest { directories: false };
    let mut names = Names::new(&set(files, Sharing::Directory, false), 3);
    names.set(9);
    assert_eq!(names.entry_name(), c"mdtest_tree.0/file.mdtest.3.9");
    names.set(10);
    assert_eq!(names.entry_name(), c"mdtest_tree.0/mdtest_tree.1/file.mdtest.3.10");
    names.set(11);
    assert_eq!(names.entry_name(), c"mdtest_tree.0/mdtest_tree.1/file.mdtest.3.11");
    assert_eq!(names.directory(), c"mdtest_tree.0/mdtest_tree.1");
    names.set(64);
    let deep = c"mdtest_tree.0/mdtest_tree.2/mdtest_tree.6/file.mdtest.3.64";
    assert_eq!(names.entry_name(), deep);
    assert_eq!(names.entry(b"file.mdtest.3.64"), Some(64));
    assert_eq!(names.entry(b"file.mdtest.4.64"), None);
    assert_eq!(names.entry(b"dir.mdtest.3.64"), None);
    names.select_owner(1);
    names.set(65);
    assert_eq!(names.entry_name(), c"mdtest_tree.0/mdtest_tree.2/mdtest_tree.6/file.mdtest.1.65");

    let mut leaves =
        Names::new(&set(Naming::Mdtest { directories: true }, Sharing::Private, true), 1);
    leaves.set(0);
    let first = c"mdtest_tree.1.0/mdtest_tree.1.1/mdtest_tree.1.3/dir.mdtest.1.0";
    assert_eq!(leaves.entry_name(), first);

    let mut directories = Names::new(&set(Naming::TreeDirectories, Sharing::Directory, true), 0);
    let all = (0..7).map(|entry| {
        directories.set(entry);
        directories.entry_name().to_str().unwrap().replace("mdtest_tree.", "")
    });
    assert_eq!(all.collect::<Vec<_>>(), ["0", "0/1", "0/2", "0/1/3", "0/1/4", "0/2/5", "0/2/6"]);
}
