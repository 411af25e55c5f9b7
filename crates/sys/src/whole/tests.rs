use std::os::unix::fs::{chown, symlink};

use super::*;

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_replaced_file_keeps_its_mode_and_symbolic_links() {
    let directory = tempfile::tempdir().unwrap();
    let (file, link) = (directory.path().join("a.csv"), directory.path().join("link"));
    write(&file, b"old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&file, &link).unwrap();
    write(&link, b"new").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(names(directory.path()), ["a.csv", "link"], "no temporary file remains");
}

#[test]
fn a_failed_write_leaves_no_temporary_file() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("d")).unwrap();
    assert!(write(&directory.path().join("d"), b"x").is_err());
    assert!(write(&directory.path().join("none/a"), b"x").is_err());
    assert_eq!(names(directory.path()), ["d"]);
    assert_eq!(names(&directory.path().join("d")), [""; 0]);
}

#[test]
fn pipes_and_devices_are_written_in_place() {
    write(Path::new("/dev/null"), b"x").unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mkfifoat(CWD, &pipe, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read(pipe).unwrap()
    });
    write(&pipe, b"report").unwrap();
    assert_eq!(reader.join().unwrap(), b"report");
    assert_eq!(names(directory.path()), ["pipe"]);
}

#[test]
fn temporary_names_are_random_and_in_the_directory_of_the_target() {
    let place = Path::new("/directory/page.html");
    let (one, other) = (Fresh::name(place).unwrap(), Fresh::name(place).unwrap());
    assert_ne!(one, other);
    assert_eq!(one.parent(), place.parent());
    let name = one.file_name().unwrap().to_str().unwrap();
    let random = name.strip_prefix(".page.html.").and_then(|name| name.strip_suffix(".part"));
    assert!(random.is_some_and(|random| random.len() == 16), "{name}");
}

#[test]
fn replacing_a_hard_link_does_not_change_its_other_name() {
    let directory = tempfile::tempdir().unwrap();
    let (victim, place) = (directory.path().join("victim"), directory.path().join("a"));
    fs::write(&victim, "mine").unwrap();
    fs::hard_link(&victim, &place).unwrap();
    write(&place, b"report").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
    assert_eq!(fs::read(&place).unwrap(), b"report");
}

#[test]
fn place_new_does_not_replace_files() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("a");
    symlink("nowhere", &place).unwrap();
    let error = Fresh::beside(&place, 0o600).unwrap().place_new().unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(names(directory.path()), ["a"]);
    fs::remove_file(&place).unwrap();
    Fresh::beside(&place, 0o600).unwrap().place_new().unwrap();
    assert_eq!(names(directory.path()), ["a"]);
    assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_replaced_temporary_file_is_neither_used_nor_removed() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("a");
    fs::write(&place, "old").unwrap();
    let fresh = Fresh::beside(&place, 0o600).unwrap();
    let temporary = fresh.path.clone();
    fs::remove_file(&temporary).unwrap();
    fs::write(&temporary, "of another").unwrap();
    assert!(fresh.replace().is_err());
    assert_eq!(fs::read(&place).unwrap(), b"old");
    assert_eq!(fs::read(&temporary).unwrap(), b"of another");
}

/// Another user may have guessed the temporary name.
#[test]
fn an_existing_temporary_file_or_link_is_not_opened() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("victim"), "mine").unwrap();
    symlink("victim", at("link")).unwrap();
    symlink("none", at("dangling")).unwrap();
    for name in ["victim", "link", "dangling"] {
        let error = create(&at(name), 0o600).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
    }
    assert_eq!(fs::read(at("victim")).unwrap(), b"mine");
    assert_eq!(names(directory.path()), ["dangling", "link", "victim"]);
}

#[test]
fn long_names_are_supported() {
    let directory = tempfile::tempdir().unwrap();
    let name = "n".repeat(255);
    write(&directory.path().join(&name), b"x").unwrap();
    assert_eq!(names(directory.path()), [name]);
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that cannot run reports why")]
fn links_of_other_users_in_shared_directories_are_not_followed() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: needs root: a link of another user");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let (victim, link) = (directory.path().join("victim"), directory.path().join("report.html"));
    fs::write(&victim, "mine").unwrap();
    symlink(&victim, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).unwrap();
    assert_eq!(write(&link, b"x").unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(fs::read(&victim).unwrap(), b"mine");
    // Links of the directory's owner are followed.
    chown(directory.path(), Some(65534), Some(65534)).unwrap();
    write(&link, b"x").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"x");
}
