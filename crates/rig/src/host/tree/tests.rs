use std::{
    fs,
    os::unix::fs::{MetadataExt as _, symlink},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::fs::{RenameFlags, renameat_with};

use super::*;
use crate::{Host as _, RealHost};

/// Tree of a run with files, directories, and links to the outside.
fn tree(path: &Path, outside: &Path) -> Identity {
    fs::create_dir_all(path.join("data/deep")).unwrap();
    fs::write(path.join(MARKER), "run\n").unwrap();
    for name in ["one", "two", "data/three", "data/deep/four"] {
        fs::write(path.join(name), "ours").unwrap();
    }
    symlink(outside, path.join("data/out")).unwrap();
    symlink("nowhere", path.join("dangling")).unwrap();
    let meta = fs::metadata(path).unwrap();
    Identity { device: meta.dev(), inode: meta.ino() }
}

/// All files in a directory tree.
fn files(path: &Path) -> usize {
    let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() && !path.is_symlink() { files(&path) } else { 1 }).sum()
}

#[test]
fn a_tree_is_removed_with_its_links_but_not_their_targets() {
    let temp = tempfile::tempdir_in("/var/tmp").unwrap();
    let (path, outside) = (temp.path().join("fslab-x"), temp.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("theirs"), "theirs").unwrap();
    let identity = tree(&path, &outside);
    remove(&path, "run", Some(identity)).unwrap();
    assert!(!path.exists() && outside.join("theirs").exists());
    remove(&path, "run", Some(identity)).unwrap();
}

#[test]
fn a_directory_with_a_reused_name_is_not_removed() {
    let temp = tempfile::tempdir_in("/var/tmp").unwrap();
    let (path, aside) = (temp.path().join("fslab-x"), temp.path().join("aside"));
    let identity = tree(&path, temp.path());
    fs::rename(&path, &aside).unwrap();
    // Also with the right marker.
    tree(&path, temp.path());
    let kept = files(&path);
    assert!(matches!(remove(&path, "run", Some(identity)), Err(TreeRefusal::Replaced)));
    assert_eq!(files(&path), kept);
    assert!(matches!(remove(&path, "other", None), Err(TreeRefusal::Marker)));
    fs::remove_dir_all(&path).unwrap();
    symlink(&aside, &path).unwrap();
    assert!(matches!(remove(&path, "run", Some(identity)), Err(TreeRefusal::Replaced)));
    assert!(matches!(remove(&path, "run", None), Err(TreeRefusal::Replaced)));
    assert_eq!(files(&aside), kept);
}

#[test]
fn a_marker_that_is_a_link_or_a_pipe_does_not_count() {
    let temp = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = temp.path().join("fslab-x");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("file"), "").unwrap();
    fs::write(temp.path().join("marker"), "run").unwrap();
    symlink("../marker", path.join(MARKER)).unwrap();
    assert!(matches!(remove(&path, "run", None), Err(TreeRefusal::Marker)));
    fs::remove_file(path.join(MARKER)).unwrap();
    let mode = Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(CWD, path.join(MARKER), FileType::Fifo, mode, 0).unwrap();
    assert!(matches!(remove(&path, "run", None), Err(TreeRefusal::Marker)));
    assert!(path.join("file").exists());
}

/// Requires root for the mount.
#[test]
fn mounted_filesystems_in_a_tree_are_not_touched() {
    if !RealHost.is_root() {
        return;
    }
    let temp = tempfile::tempdir_in("/var/tmp").unwrap();
    let (path, outside) = (temp.path().join("fslab-x"), temp.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("theirs"), "theirs").unwrap();
    let identity = tree(&path, &outside);
    // A bind mount has the same device number.
    let point = path.join("data/deep");
    rustix::mount::mount_bind(&outside, &point).unwrap();
    let refused = remove(&path, "run", Some(identity));
    RealHost.unmount(&point).unwrap();
    assert!(matches!(&refused, Err(TreeRefusal::Mounted(place)) if *place == point), "{refused:?}");
    assert!(outside.join("theirs").exists() && path.join(MARKER).exists());
    remove(&path, "run", Some(identity)).unwrap();
}

/// The owner of the parent directory exchanges the tree and a link to another directory as fast as
/// possible. That directory has the same names and the same marker.
#[test]
fn a_link_racing_with_a_tree_removes_no_other_file() {
    let temp = tempfile::tempdir_in("/var/tmp").unwrap();
    let at = |name: &str| temp.path().join(name);
    let victim = at("victim");
    tree(&victim, temp.path());
    let kept = files(&victim);
    for round in 0..200 {
        let directory = at(&format!("{round}"));
        fs::create_dir(&directory).unwrap();
        let (path, link) = (directory.join("fslab-x"), directory.join("link"));
        let identity = tree(&path, temp.path());
        symlink(&victim, &link).unwrap();
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    // Fails when the tree has been removed.
                    let _ = renameat_with(CWD, &path, CWD, &link, RenameFlags::EXCHANGE);
                }
            });
            for known in [Some(identity), None, Some(identity), None] {
                let _ = remove(&path, "run", known);
            }
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(files(&victim), kept, "round {round}");
    }
}

/// The same with the directory of an image, in which the other user has a file with the same name.
#[test]
fn a_link_racing_with_a_directory_removes_no_other_image() {
    let temp = tempfile::tempdir_in("/var/tmp").unwrap();
    let at = |name: &str| temp.path().join(name);
    let (victim, images, link) = (at("victim"), at("images"), at("link"));
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("fslab-0.img"), "theirs").unwrap();
    fs::create_dir(&images).unwrap();
    symlink(&victim, &link).unwrap();
    let image = images.join("fslab-0.img");
    for round in 0..200 {
        fs::write(&image, "ours").unwrap();
        let meta = fs::metadata(&image).unwrap();
        let identity = Identity { device: meta.dev(), inode: meta.ino() };
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    renameat_with(CWD, &images, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                }
                if images.is_symlink() {
                    renameat_with(CWD, &images, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                }
            });
            while !remove_same(&image, identity).unwrap_or(true) {}
            stop.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_to_string(victim.join("fslab-0.img")).unwrap(), "theirs", "{round}");
    }
}
