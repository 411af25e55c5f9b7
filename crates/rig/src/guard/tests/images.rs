//! Image files: new, blank, occupied, in use, and files that are not images.

use std::{
    fs::{self, File},
    os::unix::fs::{FileExt, symlink},
    path::Path,
};

use model::{Allocation, Bytes};

use super::fixture::*;
use crate::{
    guard::{ClaimedImage, Permission, Refusal, Roots, claim_image},
    host::{Host as _, RealHost},
};

const SIZE: Bytes = Bytes::mib(16);

fn claim(path: &Path) -> Result<ClaimedImage, Refusal> {
    claim_image(path, SIZE, &Permission::default(), &Roots::default())
}

/// Claims an image that `--overwrite-device` names.
fn claim_named(path: &Path) -> Result<ClaimedImage, Refusal> {
    let overwrite = vec![path.display().to_string()];
    let permission = Permission { overwrite, ..Permission::default() };
    claim_image(path, SIZE, &permission, &Roots::default())
}

#[test]
fn a_new_image_needs_a_directory() {
    let temp = scratch();
    assert!(matches!(claim(&temp.path().join("new")), Ok(ClaimedImage::New)));
    let refusal = claim(&temp.path().join("missing/new")).unwrap_err();
    assert!(matches!(refusal, Refusal::Open { .. }), "{refusal:?}");
    fs::write(temp.path().join("file"), "").unwrap();
    claim(&temp.path().join("file/new")).unwrap_err();
    let link = temp.path().join("link");
    symlink(&link, &link).unwrap();
    let refusal = claim(&link).unwrap_err();
    assert!(matches!(refusal, Refusal::Open { .. }), "{refusal:?}");
}

#[test]
fn zeros_are_blank_in_holes_and_in_data() {
    let temp = scratch();
    let path = temp.path().join("image");
    for size in [0, 1, 4096, SIZE.0] {
        assert!(matches!(claim(&zeros(&path, size)), Ok(ClaimedImage::Blank { .. })), "{size}");
    }
    fs::write(&path, vec![0; 3 << 20]).unwrap();
    assert!(matches!(claim(&path), Ok(ClaimedImage::Blank { .. })));
}

#[test]
fn a_file_that_is_not_an_image_is_rejected_even_by_name() {
    let temp = scratch();
    let path = temp.path().join("thesis.odt");
    let permission =
        Permission { overwrite: vec![path.to_str().unwrap().into()], ..Permission::default() };
    for offset in [0, 5 << 20, SIZE.0 - 1] {
        let file = File::create(&path).unwrap();
        file.set_len(SIZE.0).unwrap();
        file.write_all_at(b"x", offset).unwrap();
        let refusal = claim_image(&path, SIZE, &permission, &Roots::default()).unwrap_err();
        assert!(matches!(refusal, Refusal::NotAnImage { .. }), "{refusal:?}");
    }
    // A long range of zeros that are written, not a hole.
    let mut bytes = vec![0; 3 << 20];
    bytes.push(1);
    fs::write(&path, bytes).unwrap();
    assert!(matches!(claim(&path), Err(Refusal::NotAnImage { .. })));
}

#[test]
fn an_image_with_a_filesystem_needs_its_path() {
    let temp = scratch();
    let path = zeros(&temp.path().join("image"), SIZE.0);
    run("mkfs.ext4", &["-q", "-F", "-L", "letters", path.to_str().unwrap()]);
    let refusal = claim(&path).unwrap_err();
    let text = refusal.to_string();
    assert!(matches!(refusal, Refusal::ImageOccupied { .. }), "{text}");
    assert!(text.contains("ext4 \"letters\"") && text.contains(path.to_str().unwrap()), "{text}");
    let permit = |name: &str| {
        let overwrite = vec![name.to_owned()];
        let permission = Permission { overwrite, ..Permission::default() };
        claim_image(&path, SIZE, &permission, &Roots::default())
    };
    assert!(matches!(permit("image"), Err(Refusal::ImageOccupied { .. })));
    assert!(matches!(permit(""), Err(Refusal::ImageOccupied { .. })));
    let claimed = permit(path.to_str().unwrap()).unwrap();
    assert!(claimed.to_string().starts_with("existing image with ext4 \"letters\""), "{claimed}");
}

#[test]
fn a_redirected_link_does_not_affect_the_other_file() {
    let temp = scratch();
    let (blank, diary) = (zeros(&temp.path().join("blank"), SIZE.0), temp.path().join("diary"));
    fs::write(&diary, "dear diary").unwrap();
    let link = temp.path().join("link");
    symlink(&blank, &link).unwrap();
    let Ok(ClaimedImage::Blank { identity }) = claim(&link) else { panic!("it is blank") };
    assert_eq!(identity, RealHost.entry(&blank).unwrap().identity);
    fs::remove_file(&link).unwrap();
    symlink(&diary, &link).unwrap();
    let path = RealHost.follow(&link).unwrap();
    RealHost.renew_image(&path, identity, SIZE, Allocation::Sparse).unwrap_err();
    assert_eq!(fs::read_to_string(&diary).unwrap(), "dear diary");
}

#[test]
fn only_regular_files_are_images() {
    let temp = scratch();
    let link = temp.path().join("link");
    symlink("nowhere", &link).unwrap();
    let [pipe, socket] = ["pipe", "socket"].map(|name| temp.path().join(name));
    run("mkfifo", &[&pipe]);
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for path in [temp.path(), Path::new("/dev/null"), &link, &pipe, &socket] {
        let refusal = claim_named(path).unwrap_err();
        assert!(matches!(refusal, Refusal::NotRegularFile { .. }), "{refusal:?}");
    }
}

#[test]
fn a_file_of_the_kernel_is_not_an_image() {
    for path in ["/proc/version", "/proc/self/maps", "/sys/kernel/uevent_seqnum"] {
        claim_named(Path::new(path)).unwrap_err();
    }
}

#[test]
fn an_image_must_be_whole_blocks() {
    let temp = scratch();
    let path = temp.path().join("image");
    for size in [Bytes(0), Bytes(512), Bytes((16 << 20) + 1)] {
        let refusal =
            claim_image(&path, size, &Permission::default(), &Roots::default()).unwrap_err();
        assert!(matches!(refusal, Refusal::ImageSize { .. }), "{refusal:?}");
    }
}

#[test]
fn the_run_file_is_not_the_image() {
    let temp = scratch();
    let image = temp.path().join("image");
    let other = temp.path().join("other");
    symlink(temp.path(), temp.path().join("link")).unwrap();
    let is_target = |store_file: &Path| {
        let permission = Permission { overwrite: Vec::new(), store_file: store_file.to_owned() };
        let claimed = claim_image(&image, SIZE, &permission, &Roots::default());
        matches!(claimed, Err(Refusal::StoreIsTarget { .. }))
    };
    assert!(is_target(&image), "neither exists");
    assert!(is_target(&temp.path().join("link/image")));
    assert!(!is_target(&other));
    zeros(&image, SIZE.0);
    fs::hard_link(&image, &other).unwrap();
    assert!(is_target(&other), "two names of one file");
}

#[test]
fn an_attached_image_is_in_use() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let path = zeros(&temp.path().join("image"), SIZE.0);
    let second_name = temp.path().join("second name");
    fs::hard_link(&path, &second_name).unwrap();
    let device = LoopDevice::over(&path);
    for path in [&path, &second_name] {
        let refusal = claim(path).unwrap_err();
        assert!(matches!(refusal, Refusal::ImageInUse { .. }), "{refusal:?}");
        assert!(refusal.to_string().contains(&device.name()), "{refusal}");
    }
    drop(device);
    // Detached, it still has a name that another program may use.
    let refusal = claim(&path).unwrap_err();
    assert!(matches!(refusal, Refusal::ImageLinks { links: 2, .. }), "{refusal:?}");
    assert!(refusal.to_string().contains("find / -samefile"), "{refusal}");
    fs::remove_file(second_name).unwrap();
    claim(&path).unwrap();
}

#[test]
fn an_image_open_for_writing_is_in_use() {
    let temp = scratch();
    let path = zeros(&temp.path().join("image"), SIZE.0);
    let writer = Holder::shell(&[], "exec 3<>\"$0\"", &[&path]);
    let refusal = claim(&path).unwrap_err();
    assert!(refusal.to_string().contains("open in sh (process"), "{refusal}");
    drop(writer);
    claim(&path).unwrap();
}

#[test]
fn an_image_open_for_writing_under_another_name() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let [here, there] = ["here", "there"].map(|name| temp.path().join(name));
    fs::create_dir(&here).unwrap();
    let path = zeros(&here.join("image"), SIZE.0);
    // A path of a container, invisible to other processes.
    let script = "mkdir -p \"$1\" && mount --bind \"$0\" \"$1\" && exec 3<>\"$1/image\"";
    let writer = Holder::shell(&["unshare", "-m"], script, &[&here, &there]);
    let refusal = claim(&path).unwrap_err();
    assert!(refusal.to_string().contains("open in sh (process"), "{refusal}");
    drop(writer);
    // A name that no longer exists.
    let other = temp.path().join("other");
    fs::hard_link(&path, &other).unwrap();
    let writer = Holder::shell(&[], "exec 3<>\"$0\" && rm \"$0\"", &[&other]);
    let refusal = claim(&path).unwrap_err();
    assert!(refusal.to_string().contains("open in sh (process"), "{refusal}");
    drop(writer);
    claim(&path).unwrap();
}

#[test]
fn a_locked_image_is_in_use() {
    let temp = scratch();
    let path = zeros(&temp.path().join("image"), SIZE.0);
    // Opened read-only.
    for kind in ["-x", "-s"] {
        let script = format!("exec 3<\"$0\" && flock {kind} 3");
        let locker = Holder::shell(&[], &script, &[&path]);
        let refusal = claim(&path).unwrap_err();
        assert!(matches!(refusal, Refusal::ImageInUse { .. }), "{refusal:?}");
        assert!(refusal.to_string().contains("locked by"), "{refusal}");
        drop(locker);
        claim(&path).unwrap();
    }
}

#[test]
fn an_image_with_a_lock_of_fcntl_is_in_use() {
    use rustix::fs::{FlockOperation, fcntl_lock};
    let temp = scratch();
    let path = zeros(&temp.path().join("image"), SIZE.0);
    // The guard ignores that this process itself has the file open for writing.
    let file = File::options().read(true).write(true).open(&path).unwrap();
    claim(&path).unwrap();
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    // The end of the claim releases the lock, because it closes a descriptor of the file.
    let refusal = claim(&path).unwrap_err();
    assert!(refusal.to_string().contains("locked by"), "{refusal}");
}

#[test]
fn an_immutable_image_is_not_changed() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let path = zeros(&temp.path().join("image"), SIZE.0);
    run("mkfs.ext4", &["-q", "-F", path.to_str().unwrap()]);
    let before = fs::read(&path).unwrap();
    let identity = RealHost.entry(&path).unwrap().identity;
    run("chattr", &["+i", path.to_str().unwrap()]);
    let renewed = RealHost.renew_image(&path, identity, SIZE, Allocation::Sparse);
    run("chattr", &["-i", path.to_str().unwrap()]);
    renewed.unwrap_err();
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn a_swap_file_is_in_use() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    // On a separate filesystem, because not every filesystem supports swap files.
    let device = LoopDevice::over(&zeros(&temp.path().join("disk"), 64 << 20));
    run("mkfs.ext4", &["-q", &device.text()]);
    let mount = Mount::new(&[], &device.path, &temp.path().join("mnt"));
    let path = mount.0.join("a swap file");
    fs::write(&path, vec![0; 8 << 20]).unwrap();
    run("chmod", &["600", path.to_str().unwrap()]);
    let swap = Swap::on(&path);
    let refusal = claim(&path).unwrap_err();
    let attached = LoopDevice::over(&path);
    let refusal_of_device = claim_at_any_price(&attached, &attached.path).unwrap_err();
    drop((attached, swap));
    assert!(refusal.to_string().contains("is in use: swap"), "{refusal}");
    assert!(refusal_of_device.to_string().contains("is in use as swap"), "{refusal_of_device}");
}
