//! Worker of the test in the guest: each request and each reply is a short text.

use std::{
    fs,
    io::{self, Write as _},
    os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::Path,
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use guest::in_guest::GuestChannel;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Filesystems, with their mkfs programs and arguments for non-interactive use.
pub(crate) const FILESYSTEMS: [(&str, &str, &str); 9] = [
    ("ext2", "mkfs.ext2", "-F -q"),
    ("ext3", "mkfs.ext3", "-F -q"),
    ("ext4", "mkfs.ext4", "-F -q"),
    ("xfs", "mkfs.xfs", "-f -q"),
    ("btrfs", "mkfs.btrfs", "-f -q"),
    ("jfs", "mkfs.jfs", "-q"),
    ("reiserfs", "mkfs.reiserfs", "-q -ff"),
    ("nilfs2", "mkfs.nilfs2", "-f -q"),
    ("f2fs", "mkfs.f2fs", "-f -q"),
];

const MOUNT_POINT: &str = "/mnt";

/// Serves requests until there are no more.
pub(crate) fn work(mut channel: GuestChannel) -> ExitCode {
    loop {
        let request = match channel.wait() {
            Ok(Some(request)) => String::from_utf8_lossy(&request).into_owned(),
            Ok(None) => return ExitCode::SUCCESS,
            Err(error) => panic!("no request: {error}"),
        };
        let (verb, of) = request.split_once(' ').unwrap_or((&request, ""));
        channel.set_step(&request);
        let reply = match verb {
            "echo" => of.to_owned(),
            "long" => "x".repeat(of.parse().unwrap()),
            "try" => {
                let (name, device) = of.split_once(' ').unwrap();
                attempt(name, device).unwrap_or_else(|error| format!("{name} failed: {error}"))
            }
            "space" => space(of).unwrap_or_else(|error| error.to_string()),
            "orphans" => orphans(of.parse().unwrap()).unwrap_or_else(|error| error.to_string()),
            "try-unknown" => {
                let mounted = mount(of, MOUNT_POINT, of, MountFlags::empty(), None);
                assert_eq!(mounted, Err(rustix::io::Errno::NODEV));
                assert_eq!(channel.requested_modules(), channel.rejected_modules());
                format!("{of}: {} rejected", channel.rejected_modules().join(" "))
            }
            "booted" => fs::read_to_string("/run/fslab-booted").unwrap(),
            "latency" => latency(of).map_or_else(|error| error.to_string(), |ns| ns.to_string()),
            "panic" => panic!("as requested: {of}"),
            "crash" => {
                let written = fs::write("/proc/sysrq-trigger", "c");
                format!("the kernel did not crash: {written:?}")
            }
            _ => format!("unknown request {request:?}"),
        };
        channel.reply(reply.as_bytes()).unwrap();
    }
}

/// Formats and mounts a device, writes a file, reads it back, and returns the space.
fn attempt(name: &str, device: &str) -> io::Result<String> {
    let (_, program, arguments) = FILESYSTEMS.into_iter().find(|(n, ..)| *n == name).unwrap();
    let made = Command::new(program).args(arguments.split(' ')).arg(device).output()?;
    if !made.status.success() {
        let stderr = String::from_utf8_lossy(&made.stderr).into_owned();
        return Err(io::Error::other(format!("{program}: {}: {stderr}", made.status)));
    }
    let below = fs::metadata("/")?.dev();
    mount(device, MOUNT_POINT, name, MountFlags::empty(), None)?;
    let outcome = write_and_read(below);
    unmount(MOUNT_POINT, UnmountFlags::empty())?;
    // The data must be there after another mount.
    mount(device, MOUNT_POINT, name, MountFlags::RDONLY, None)?;
    let again = fs::read(Path::new(MOUNT_POINT).join("file"));
    unmount(MOUNT_POINT, UnmountFlags::empty())?;
    let (total, content) = outcome?;
    if again? != content {
        return Err(io::Error::other("the file changed"));
    }
    Ok(format!("{name} of {} MiB", total >> 20))
}

fn write_and_read(below: u64) -> io::Result<(u64, Vec<u8>)> {
    let at = Path::new(MOUNT_POINT);
    if fs::metadata(at)?.dev() == below {
        return Err(io::Error::other("nothing is mounted"));
    }
    let content: Vec<u8> = (0..1 << 20_u32).flat_map(u32::to_le_bytes).collect();
    let path = at.join("file");
    let mut file = fs::File::options().create_new(true).write(true).read(true).open(path)?;
    file.write_all(&content)?;
    file.sync_all()?;
    let mut read = vec![0; content.len()];
    file.read_exact_at(&mut read, 0)?;
    if read != content {
        return Err(io::Error::other("the data read differs"));
    }
    let space = rustix::fs::statvfs(at)?;
    Ok((space.f_blocks * space.f_frsize, content))
}

/// Size of a device, and its rotational flag.
fn space(device: &str) -> io::Result<String> {
    let of = |fact: &str| {
        let name = Path::new(device).file_name().unwrap_or_default();
        fs::read_to_string(Path::new("/sys/block").join(name).join(fact))
    };
    let sectors: u64 = of("size")?.trim().parse().map_err(io::Error::other)?;
    Ok(format!("{} MiB, rotational {}", sectors >> 11, of("queue/rotational")?.trim()))
}

/// Mean duration of a read of a device in nanoseconds, by the guest's clock.
fn latency(device: &str) -> io::Result<f64> {
    let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    let device = fs::File::options().read(true).custom_flags(flags).open(device)?;
    let mut memory = vec![0; 2 * 4096];
    let start = memory.as_ptr().align_offset(4096);
    let mut all = Duration::ZERO;
    const READS: u32 = 200;
    for block in 0..READS {
        let start_time = Instant::now();
        device.read_exact_at(&mut memory[start..start + 4096], u64::from(block) * 4096)?;
        all += start_time.elapsed();
    }
    Ok(all.as_secs_f64() * 1e9 / f64::from(READS))
}

/// Creates orphans and waits until the init process has reaped them; otherwise they stay as
/// zombies.
fn orphans(number: u32) -> io::Result<String> {
    for _ in 0..number {
        // The output ends when the background child of the shell has ended.
        let shell = Command::new("sh").args(["-c", ": & echo $!"]).output()?;
        let child = String::from_utf8_lossy(&shell.stdout).trim().to_owned();
        let start = Instant::now();
        while Path::new("/proc").join(&child).exists() {
            if child.is_empty() || start.elapsed() > Duration::from_secs(10) {
                return Err(io::Error::other(format!("{child:?} was not reaped")));
            }
            std::thread::yield_now();
        }
    }
    Ok(format!("{number} reaped"))
}
