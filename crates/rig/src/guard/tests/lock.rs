//! A claimed disk is locked until the end of the run. Another program can lock it only while a
//! program of the run works; another run can never claim it.

use std::{fs, io::Write as _, path::Path, process::Command};

use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use super::fixture::*;
use crate::guard::{Permission, Refusal, Roots, claim_device, lock::holder};

const SIZE: u64 = 32 << 20;

/// Passes the device to claim to this test in another process.
const OTHER: &str = "FSLAB_GUARD_TEST_OTHER_RUN";

/// True if another program can lock a node.
fn is_free(node: &Path) -> bool {
    Command::new("flock").arg("-xn").arg(node).arg("true").status().unwrap().success()
}

/// Claims the device if this process is that of [`claim_in_another_process`].
fn is_the_other_process() -> bool {
    let Some(device) = std::env::var_os(OTHER) else { return false };
    let answer = claim(Path::new(&device));
    let text = answer.map_or_else(|refusal| refusal.to_string(), |_| "claimed".into());
    writeln!(std::io::stderr(), "{text}").unwrap();
    true
}

/// Runs this test in another process, like another run, and returns the outcome of its claim.
fn claim_in_another_process(test: &str, device: &Path) -> String {
    claim_by(&mut Command::new(std::env::current_exe().unwrap()), test, device)
}

/// As [`claim_in_another_process`], with a command that runs this program.
fn claim_by(command: &mut Command, test: &str, device: &Path) -> String {
    let output = command.args(["--exact", "--nocapture", test]).env(OTHER, device).output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn two_runs_do_not_share_a_disk() {
    if lacks_root() || is_the_other_process() {
        return;
    }
    let test = "guard::tests::lock::two_runs_do_not_share_a_disk";
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), SIZE), 2);
    let (one, two) = (device.partition(1), device.partition(2));
    let refused = format!("{} is locked by rig-", device.name());
    let first = claim(&one).unwrap();
    for path in [&one, &two, &device.path] {
        let text = claim_in_another_process(test, path);
        assert!(text.contains(&refused) && text.contains("another fslab run"), "{text}");
    }
    // One run may use both.
    let (permission, roots) = (Permission::default(), Roots::default());
    let held = [first];
    let second = claim_device(&two, &permission, &roots, &held).unwrap();
    drop(held);
    assert!(claim_in_another_process(test, &one).contains(&refused));
    // While a program works, another program may lock the disk, but another run cannot claim it.
    second.lock().lend();
    assert!(is_free(&device.path));
    assert!(claim_in_another_process(test, &one).contains(&refused));
    second.lock().take_back().unwrap();
    assert!(!is_free(&device.path));
    drop(second);
    assert!(is_free(&device.path));
    assert!(claim_in_another_process(test, &one).contains("claimed"));
}

#[test]
fn a_program_of_another_pid_namespace_is_not_detected() {
    if lacks_root() || is_the_other_process() {
        return;
    }
    let test = "guard::tests::lock::a_program_of_another_pid_namespace_is_not_detected";
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

#[test]
fn a_disk_locked_by_another_program_is_rejected() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::partitioned(&zeros(&temp.path().join("image"), SIZE), 1);
    // The whole disk is locked, for a partition as well.
    let locker = Holder::shell(&[], "exec 3<\"$0\" && flock -x 3", &[&device.path]);
    for path in [&device.path, &device.partition(1)] {
        let refusal = claim_at_any_price(&device, path).unwrap_err();
        assert!(matches!(refusal, Refusal::Locked { .. }), "{refusal:?}");
        let text = refusal.to_string();
        assert!(text.contains("is locked by") && text.contains("lslocks"), "{text}");
    }
    drop(locker);
    claim(&device.path).unwrap();
    claim(&device.partition(1)).unwrap();
}

/// A process between fork and exec shares the open files.
#[test]
fn a_lock_is_released_although_its_file_is_open() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let claimed = claim(&device.path).unwrap();
    let own = rustix::process::getpid();
    let process = pidfd_open(own, PidfdFlags::empty()).unwrap();
    let shared = fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| {
        let entry = entry.unwrap();
        let number = entry.file_name().to_str()?.parse().ok()?;
        (fs::read_link(entry.path()).ok()? == device.path)
            .then(|| pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).unwrap())
    });
    let shared: Vec<_> = shared.collect();
    assert!(!shared.is_empty() && !is_free(&device.path));
    drop(claimed);
    assert!(is_free(&device.path));
}

#[test]
fn the_holder_of_a_lock_is_found() {
    use std::os::unix::fs::MetadataExt as _;
    let temp = scratch();
    let file = fs::File::create(temp.path().join("locked")).unwrap();
    let inode = file.metadata().unwrap().ino();
    let roots = Roots { proc: temp.path().into(), ..Roots::default() };
    assert_eq!(holder(&file, &roots), "another process");
    let name = |process: u32, name: &str| {
        fs::create_dir(temp.path().join(process.to_string())).unwrap();
        fs::write(temp.path().join(format!("{process}/comm")), name).unwrap();
    };
    name(11, "other\n");
    name(12, "waiting\n");
    name(13, "flock\n");
    // A lock of another file, a process that waits, unknown processes, and the holder.
    let locks = format!(
        "1: FLOCK  ADVISORY  WRITE 11 08:01:1{inode} 0 EOF\n\
         2: -> FLOCK  ADVISORY  WRITE 12 08:01:{inode} 0 EOF\n\
         3: OFDLCK ADVISORY  WRITE -1 08:01:{inode} 0 EOF\n\
         4: FLOCK  ADVISORY  WRITE 0 08:01:{inode} 0 EOF\n\
         5: FLOCK  ADVISORY  WRITE 13 08:01:{inode} 0 EOF\n"
    );
    fs::write(temp.path().join("locks"), locks).unwrap();
    assert_eq!(holder(&file, &roots), "flock (process 13)");
}

/// As by udev, which probes a disk after each write.
#[test]
fn a_lock_that_is_held_briefly_is_awaited() {
    if lacks_root() {
        return;
    }
    let temp = scratch();
    let device = LoopDevice::over(&zeros(&temp.path().join("image"), SIZE));
    let mut flock = Command::new("flock");
    let mut other = flock.arg("-x").arg(&device.path).args(["sleep", "0.5"]).spawn().unwrap();
    while is_free(&device.path) {
        std::thread::yield_now();
    }
    claim(&device.path).unwrap();
    other.wait().unwrap();
}
