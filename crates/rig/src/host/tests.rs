use std::fs;

use super::*;

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn programs_get_their_arguments_unchanged_and_the_c_locale() {
    let output = RealHost.run(&argv(&["printf", "%s|", "a b", "$HOME", "*"])).unwrap();
    assert_eq!((output.stdout.as_str(), output.status), ("a b|$HOME|*|", Some(0)));
    let output = RealHost.run(&argv(&["sh", "-c", "echo $LC_ALL; cat; echo trouble >&2; exit 3"]));
    let output = output.unwrap();
    assert_eq!((output.stdout.as_str(), output.success()), ("C\n", false));
    assert_eq!(output.verdict(), "exit 3: trouble");
    let killed = RealHost.run(&argv(&["sh", "-c", "kill -9 $$"])).unwrap();
    assert_eq!(killed.verdict(), "killed by a signal");
    assert!(RealHost.run(&argv(&["no-such-program"])).is_err() && RealHost.run(&[]).is_err());
}

#[test]
fn system_programs_are_found_without_path() {
    assert_eq!(RealHost.find("no-such-program"), None);
    assert!(RealHost.find("sh").is_some_and(|path| path.is_absolute()));
    assert_eq!(RealHost.find("/bin/sh"), Some("/bin/sh".into()));
    let file = tempfile::NamedTempFile::new().unwrap();
    assert_eq!(RealHost.find(&file.path().display().to_string()), None, "not a program");
}

#[test]
fn write_never_creates_and_create_never_replaces() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("file");
    assert!(RealHost.write(&path, "x").is_err() && !path.exists());
    RealHost.create(&path, "one").unwrap();
    assert!(RealHost.create(&path, "two").is_err());
    RealHost.write(&path, "six").unwrap();
    assert_eq!(RealHost.read(&path).unwrap(), "six");
    assert_eq!(RealHost.list(temp.path()).unwrap(), ["file"]);
}

#[test]
fn a_renewed_image_is_zero_and_allocated() {
    let temp = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = temp.path().join("image");
    let identity = RealHost.create_image(&path).unwrap();
    assert!(RealHost.create_image(&path).is_err());
    let size = Bytes::mib(1);
    for (allocation, least) in [(Allocation::Preallocated, size), (Allocation::Sparse, Bytes(0))] {
        fs::write(&path, vec![7; 2 << 20]).unwrap();
        RealHost.renew_image(&path, identity, size, allocation).unwrap();
        assert_eq!(fs::read(&path).unwrap(), vec![0; 1 << 20]);
        let entry = RealHost.entry(&path).unwrap();
        assert_eq!((entry.size, entry.kind, entry.identity), (size, EntryKind::File, identity));
        assert!(entry.allocated >= least);
    }
    assert_eq!(RealHost.entry(&path).unwrap().allocated, Bytes(0));
}

#[test]
fn a_file_with_the_name_of_an_image_is_rejected() {
    let temp = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = temp.path().join("image");
    let identity = RealHost.create_image(&path).unwrap();
    fs::rename(&path, temp.path().join("kept")).unwrap();
    fs::write(&path, "a stranger's").unwrap();
    let size = Bytes::mib(1);
    assert!(RealHost.renew_image(&path, identity, size, Allocation::Preallocated).is_err());
    assert!(RealHost.attach_loop(&path, identity).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "a stranger's");
}

#[test]
fn a_tree_is_evicted_and_counted() {
    let temp = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::create_dir(temp.path().join("sub")).unwrap();
    for name in ["one", "sub/two"] {
        fs::write(temp.path().join(name), vec![7; 1 << 20]).unwrap();
    }
    assert_eq!(RealHost.resident(&temp.path().join("one")).unwrap(), Bytes::mib(1));
    let kept = RealHost.evict(temp.path()).unwrap();
    assert_eq!(kept, ResidentPages { bytes: Bytes(0), files: 2, unknown: 0 });
    assert_eq!(RealHost.resident(&temp.path().join("sub/two")).unwrap(), Bytes(0));
}

#[test]
fn mounts_and_space_are_reported() {
    assert!(RealHost.mounts().unwrap().iter().any(|mount| mount.target == Path::new("/")));
    let proc = RealHost.statistics(Path::new("/proc")).unwrap();
    assert_eq!(proc.magic, 0x9fa0);
    let here = RealHost.statistics(Path::new("/var/tmp")).unwrap();
    assert!(here.total >= here.available && here.total > Bytes(0));
}
