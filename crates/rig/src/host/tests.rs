use std::fs;

use super::*;

fn argv(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_program_gets_its_arguments_as_they_are_and_speaks_plainly() {
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
fn system_programs_are_found_without_a_path_to_them() {
    assert_eq!(RealHost.find("no-such-program"), None);
    assert!(RealHost.find("sh").is_some_and(|path| path.is_absolute()));
    assert_eq!(RealHost.find("/bin/sh"), Some("/bin/sh".into()));
    let file = tempfile::NamedTempFile::new().unwrap();
    assert_eq!(RealHost.find(&file.path().display().to_string()), None, "not a program");
}

#[test]
fn writing_never_makes_a_file_and_creating_never_replaces_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    assert!(RealHost.write(&path, "x").is_err() && !path.exists());
    RealHost.create(&path, "one").unwrap();
    assert!(RealHost.create(&path, "two").is_err());
    RealHost.write(&path, "six").unwrap();
    assert_eq!(RealHost.read(&path).unwrap(), "six");
    assert_eq!(RealHost.list(folder.path()).unwrap(), ["file"]);
}

#[test]
fn an_image_is_renewed_to_zeros_and_reserved() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("image");
    let identity = RealHost.create_image(&path).unwrap();
    assert!(RealHost.create_image(&path).is_err());
    let size = Bytes::mib(1);
    for (allocation, least) in [(Allocation::Full, size), (Allocation::Sparse, Bytes(0))] {
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
fn another_file_of_the_name_of_an_image_is_refused() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("image");
    let identity = RealHost.create_image(&path).unwrap();
    fs::rename(&path, folder.path().join("kept")).unwrap();
    fs::write(&path, "a stranger's").unwrap();
    let size = Bytes::mib(1);
    assert!(RealHost.renew_image(&path, identity, size, Allocation::Full).is_err());
    assert!(RealHost.attach_loop(&path, identity).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "a stranger's");
}

#[test]
fn a_tree_is_evicted_and_counted() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::create_dir(folder.path().join("sub")).unwrap();
    for name in ["one", "sub/two"] {
        fs::write(folder.path().join(name), vec![7; 1 << 20]).unwrap();
    }
    assert_eq!(RealHost.resident(&folder.path().join("one")).unwrap(), Bytes::mib(1));
    let kept = RealHost.evict(folder.path()).unwrap();
    assert_eq!(kept, Kept { bytes: Bytes(0), files: 2, unknown: 0 });
    assert_eq!(RealHost.resident(&folder.path().join("sub/two")).unwrap(), Bytes(0));
}

#[test]
fn the_machine_tells_its_mounts_and_space() {
    assert!(RealHost.mounts().unwrap().iter().any(|mount| mount.target == Path::new("/")));
    let proc = RealHost.statistics(Path::new("/proc")).unwrap();
    assert_eq!(proc.magic, 0x9fa0);
    let here = RealHost.statistics(Path::new("/var/tmp")).unwrap();
    assert!(here.total >= here.usable && here.total > Bytes(0));
}
