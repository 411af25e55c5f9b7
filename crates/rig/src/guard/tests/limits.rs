//! Limits of the guard, as stated in `docs/method/safety.md`.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use model::Bytes;

use super::fixture::*;
use crate::guard::{ClaimedImage, Permission, Refusal, Roots, claim_image};

const SIZE: u64 = 32 << 20;

fn claim_file(path: &Path) -> Result<ClaimedImage, Refusal> {
    claim_image(path, Bytes(SIZE), &Permission::default(), &Roots::default())
}

#[test]
fn an_image_that_a_program_has_mapped_and_closed_is_not_detected() {
    if lacks_program("xfs_io") {
        return;
    }
    let temp = scratch();
    let path = zeros(&temp.path().join("image"), SIZE);
    let mut program = Command::new("xfs_io");
    program.arg(&path).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut program = program.spawn().unwrap();
    let mut commands = program.stdin.take().unwrap();
    let process = format!("/proc/{}", program.id());
    let is_mapped = || {
        let maps = fs::read_to_string(format!("{process}/maps")).unwrap();
        maps.contains(path.to_str().unwrap())
    };
    let is_open = || {
        let mut files = fs::read_dir(format!("{process}/fd")).unwrap().flatten();
        files.any(|file| fs::read_link(file.path()).is_ok_and(|target| target == path))
    };
    let wait = |done: &dyn Fn() -> bool| {
        let mut tries = 0;
        while !done() {
            tries += 1;
            assert!(tries < 2000, "xfs_io has not executed the command");
            thread::sleep(Duration::from_millis(5));
        }
    };
    commands.write_all(b"mmap -rw 0 4096\n").unwrap();
    wait(&is_mapped);
    assert!(matches!(claim_file(&path), Err(Refusal::ImageInUse { .. })));
    commands.write_all(b"close\n").unwrap();
    wait(&|| !is_open());
    assert!(matches!(claim_file(&path), Ok(ClaimedImage::Blank { .. })));
    assert!(is_mapped());
    drop(commands);
    program.wait().unwrap();
}

#[test]
fn an_image_that_only_an_overlay_has_open_is_not_detected() {
    if lacks_root() {
        return;
    }
    if !fs::read_to_string("/proc/filesystems").unwrap().contains("overlay") {
        return skipped("needs overlayfs");
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("disk"), 64 << 20));
    run("mkfs.ext4", &["-q", &device.text()]);
    let mount = Mount::new(&[], &device.path, &temp.path().join("mnt"));
    let [lower, upper, work] = ["lower", "upper", "work"].map(|name| mount.0.join(name));
    for directory in [&lower, &upper, &work] {
        fs::create_dir(directory).unwrap();
    }
    let image = zeros(&upper.join("image"), SIZE);
    let option = |name: &str, path: &Path| format!("{name}={}", path.display());
    let directories =
        [option("lowerdir", &lower), option("upperdir", &upper), option("workdir", &work)]
            .join(",");
    let options = ["-t", "overlay", "-o", &directories];
    let merged = Mount::new(&options, Path::new("overlay"), &temp.path().join("merged"));
    let writer = Holder::shell(&[], "exec 3<>\"$0\"", &[&merged.0.join("image")]);
    assert!(matches!(claim_file(&merged.0.join("image")), Err(Refusal::ImageInUse { .. })));
    assert!(matches!(claim_file(&image), Ok(ClaimedImage::Blank { .. })));
    // A program reads the lower file through the overlay.
    let below = zeros(&lower.join("below"), SIZE);
    let reader = Holder::shell(&[], "exec 3<\"$0\"", &[&merged.0.join("below")]);
    assert!(matches!(claim_file(&below), Ok(ClaimedImage::Blank { .. })));
    drop((writer, reader, merged));
}

#[test]
fn a_program_of_another_pid_namespace_is_not_detected() {
    if lacks_root() || is_the_other_process() {
        return;
    }
    let test = "guard::tests::limits::a_program_of_another_pid_namespace_is_not_detected";
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let _writer = Holder::shell(&[], "exec 3<>\"$0\"", &[&device.path]);
    assert!(claim_in_another_process(test, &device.path).contains("is open for writing"));
    let program = std::env::current_exe().unwrap();
    let script = format!("{DETACH}exec \"$0\" \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--mount-proc", "sh", "-c", &script]).arg(program);
    assert!(claim_by(&mut command, test, &device.path).contains("claimed"));
}

#[test]
fn a_program_that_ignores_the_lock_is_detected_by_the_next_check_only() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let claimed = claim(&device.path).unwrap();
    claimed.recheck().unwrap();
    let writer = Holder::shell(&[], "exec 3<>\"$0\"", &[&device.path]);
    run("mkfs.ext4", &["-q", &device.text()]);
    let refusal = claimed.recheck().unwrap_err();
    assert!(matches!(refusal, Refusal::OpenForWriting { .. }), "{refusal:?}");
    drop(writer);
    claimed.recheck().unwrap();
}

/// The fstab of a separate mount namespace names the device.
#[test]
fn a_device_of_fstab_that_is_not_mounted_is_accepted() {
    if lacks_root() || is_the_other_process() {
        return;
    }
    if !Path::new("/etc/fstab").exists() {
        return skipped("needs /etc/fstab");
    }
    let test = "guard::tests::limits::a_device_of_fstab_that_is_not_mounted_is_accepted";
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let (fstab, point) = (temp.path().join("fstab"), temp.path().join("mnt"));
    fs::write(&fstab, format!("{} {} ext4 noauto 0 0\n", device.text(), point.display())).unwrap();
    let script = format!(
        "{DETACH}mount --bind {} /etc/fstab && grep -q {} /etc/fstab && exec \"$0\" \"$@\"",
        fstab.display(),
        device.text()
    );
    let mut command = Command::new("unshare");
    let program = std::env::current_exe().unwrap();
    command.args(["--mount", "sh", "-c", &script]).arg(program);
    assert!(claim_by(&mut command, test, &device.path).contains("claimed"));
}
