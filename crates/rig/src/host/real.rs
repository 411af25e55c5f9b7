//! The real machine.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read as _, Seek as _, Write as _},
    os::fd::AsFd as _,
    os::unix::fs::{DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    process::Stdio,
    sync::{OnceLock, atomic::AtomicBool},
    time::{Duration, Instant},
};

use model::{Allocation, Bytes, Nanos};
use rustix::fs::{Advice, FallocateFlags, Mode, OFlags};

use super::{
    Entry, EntryKind, Host, Identity, KernelLog, Loop, Output, ProgramTime, ResidentPages,
    Statistics, TreeRefusal, UnreadablePath, Usage, WipeMethod, block, data,
    kmsg::Kmsg,
    tree,
    walk::{self, each_file},
};
use crate::{
    medium::{Medium, Roots},
    monitor_thread,
    mount::{self, MountEntry, MountRefusal, MountRequest},
};

/// Maximum number of files whose eviction is checked. The checked files are kept open, and each one
/// needs a file descriptor.
const SAMPLED: usize = 256;

/// The machine on which this process runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealHost;

impl Host for RealHost {
    fn is_root(&self) -> bool {
        rustix::process::geteuid().is_root()
    }

    fn pid(&self) -> u32 {
        std::process::id()
    }

    fn roots(&self) -> Roots {
        Roots::default()
    }

    fn now(&self) -> Nanos {
        static START: OnceLock<Instant> = OnceLock::new();
        START.get_or_init(Instant::now).elapsed().into()
    }

    fn sleep(&self, time: Nanos) {
        std::thread::sleep(Duration::from_nanos(time.0));
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        sys::program::find(program).ok()
    }

    fn run(&self, argv: &[String]) -> io::Result<Output> {
        self.run_with_input(argv, "")
    }

    fn run_with_input(&self, argv: &[String], input: &str) -> io::Result<Output> {
        let (program, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        // Output goes to files in memory, not to pipes. A full pipe would block the program, and a
        // remaining child process would keep the pipe open.
        let (mut stdout, mut stderr) = (anonymous("stdout")?, anonymous("stderr")?);
        let mut command = sys::program::command(program)?;
        command.args(arguments).stdin(match input {
            "" => Stdio::null(),
            input => input_file(input)?.into(),
        });
        command.stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
        sys::child::dies_with_parent(&mut command);
        let start = Instant::now();
        let ended = sys::child::wait(command.spawn()?)?;
        let elapsed = start.elapsed().into();
        Ok(Output {
            status: ended.status.code(),
            stdout: output_text(&mut stdout)?,
            stderr: output_text(&mut stderr)?,
            elapsed,
            cpu: Some(ProgramTime { user: ended.user.into(), system: ended.system.into() }),
        })
    }

    fn adopt_orphans(&self) -> io::Result<()> {
        // Any process ID sets the flag.
        let set = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        set.map_err(io::Error::from)
    }

    fn reap(&self, process: u32) {
        let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
        let options = rustix::process::WaitOptions::NOHANG;
        if process.is_some()
            && let Err(error) = rustix::process::waitpid(process, options)
        {
            tracing::debug!(%error, "not a child");
        }
    }

    fn random(&self, length: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn process_time(&self, process: u32) -> io::Result<Nanos> {
        sys::usage::process_time(process).map(Nanos)
    }

    fn thread_time(&self) -> Nanos {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(time).unwrap_or_default().into()
    }

    fn usage(&self) -> io::Result<Usage> {
        use sys::usage::{UsageScope, resources};
        let (own, children) = (resources(UsageScope::This)?, resources(UsageScope::EndedChildren)?);
        Ok(Usage {
            process: self.process_time(self.pid())?,
            monitoring: monitor_thread::monitor_cpu_time(),
            children: Nanos(children.time),
            minor_faults: own.minor_faults.saturating_add(children.minor_faults),
            major_faults: own.major_faults.saturating_add(children.major_faults),
        })
    }

    fn kernel_log(&self) -> io::Result<Box<dyn KernelLog>> {
        Ok(Box::new(Kmsg::open(Path::new("/dev/kmsg"))?))
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned())
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        // A single write(2), because sysfs treats each write as a command. A missing file is not
        // created.
        let mut file = OpenOptions::new().write(true).open(path)?;
        let length = file.write(text.as_bytes())?;
        if length == text.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    fn create(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut file = File::create_new(path)?;
        file.write_all(text.as_bytes())?;
        // The text must survive a crash, because undo requires it.
        file.sync_all()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let name =
            |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        let mut names = path.read_dir()?.map(name).collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    fn follow(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn entry(&self, path: &Path) -> io::Result<Entry> {
        Ok(entry(&path.symlink_metadata()?))
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(0o700).create(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn remove_tree(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn remove_marked(
        &self,
        path: &Path,
        token: &str,
        identity: Option<Identity>,
    ) -> Result<(), TreeRefusal> {
        tree::remove(path, token, identity)
    }

    fn remove_same(&self, path: &Path, identity: Identity) -> io::Result<bool> {
        tree::remove_same(path, identity)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_image(&self, path: &Path) -> io::Result<Identity> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create_new(true).mode(0o600).open(path)?;
        // If the filesystem that stores the image used copy-on-write, it would double the writes
        // and fragment the file. btrfs honors this flag if the file is empty. On filesystems
        // without the flag, the call fails; the failure is ignored.
        let flags = rustix::fs::ioctl_getflags(&file);
        if let Ok(flags) = flags {
            let wanted = flags | rustix::fs::IFlags::NOCOW;
            if let Err(error) = rustix::fs::ioctl_setflags(&file, wanted) {
                tracing::debug!(%error, "NOCOW attribute not supported");
            }
        }
        // The file must survive a crash if its entry in the undo journal does.
        file.sync_all()?;
        Ok(entry(&file.metadata()?).identity)
    }

    fn renew_image(
        &self,
        path: &Path,
        identity: Identity,
        size: Bytes,
        allocation: Allocation,
    ) -> io::Result<()> {
        let file = open_same(path, identity)?;
        file.set_len(size.0)?;
        let keep = FallocateFlags::KEEP_SIZE;
        match allocation {
            Allocation::Sparse => {
                rustix::fs::fallocate(&file, keep | FallocateFlags::PUNCH_HOLE, 0, size.0)?;
            }
            Allocation::Preallocated => {
                if rustix::fs::fallocate(&file, FallocateFlags::ZERO_RANGE, 0, size.0).is_err() {
                    // tmpfs and other filesystems do not support ZERO_RANGE. Punching a hole and
                    // allocating the space again gives the same result.
                    rustix::fs::fallocate(&file, keep | FallocateFlags::PUNCH_HOLE, 0, size.0)?;
                    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, size.0)?;
                }
            }
        }
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
        Ok(())
    }

    fn attach_loop(&self, image: &Path, identity: Identity) -> io::Result<Loop> {
        let file = open_same(image, identity)?;
        let attach = |block_size| {
            let options =
                sys::loop_device::Options { direct: true, block_size, ..Default::default() };
            let attached = sys::loop_device::attach(&file, options)?;
            let direct = sys::loop_device::status(File::open(&attached.path)?)?.direct;
            let made = attached.created.then_some(attached.number);
            Ok::<_, io::Error>(Loop { path: attached.path, direct, made })
        };
        let first = attach(0)?;
        if first.direct {
            return Ok(first);
        }
        // Some backing files support direct I/O with a block size of 4 KiB, but not with 512 bytes.
        match attach(4096) {
            Ok(second) if second.direct => {
                release(&first)?;
                Ok(second)
            }
            Ok(second) => release(&second).map(|()| first),
            Err(_) => Ok(first),
        }
    }

    fn loops_of(&self, identity: Identity) -> io::Result<Vec<PathBuf>> {
        sys::loop_device::devices_of(identity.device, identity.inode)
    }

    fn detach_loop(&self, device: &Path, identity: Identity) -> io::Result<()> {
        let file = File::open(device)?;
        let status = match sys::loop_device::status(&file) {
            Ok(status) => status,
            // ENXIO: already detached.
            Err(error) if error.raw_os_error() == Some(6) => return Ok(()),
            Err(error) => return Err(error),
        };
        if (status.device, status.inode) != (identity.device, identity.inode) {
            return Err(io::Error::other("it is attached to another file now"));
        }
        sys::loop_device::detach(&file)
    }

    fn remove_loop(&self, number: u32) -> io::Result<()> {
        match sys::loop_device::remove(number) {
            // ENODEV: there is no such device.
            Err(error) if error.raw_os_error() == Some(19) => Ok(()),
            answer => answer,
        }
    }

    fn erase_device(&self, device: &Path, expected: &Medium) -> io::Result<WipeMethod> {
        block::erase(device, expected)
    }

    fn zero(&self, device: &Path, expected: &Medium, length: Bytes) -> io::Result<()> {
        block::zero(device, expected, length)
    }

    fn flush_device(&self, device: &Path) -> io::Result<()> {
        sys::block_ioctl::flush_cache(File::open(device)?)
    }

    fn mounts(&self) -> io::Result<Vec<MountEntry>> {
        mount::table()
    }

    fn mount(&self, request: &MountRequest) -> Result<(), MountRefusal> {
        mount::attach(request)
    }

    fn unmount(&self, target: &Path) -> io::Result<()> {
        // NOFOLLOW: if a symbolic link has replaced the mount point, the link is not followed.
        Ok(rustix::mount::unmount(target, rustix::mount::UnmountFlags::NOFOLLOW)?)
    }

    fn thaw(&self, target: &Path) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(target, flags, Mode::empty())?;
        sys::fs_ioctl::thaw(directory.as_fd())
    }

    fn statistics(&self, path: &Path) -> io::Result<Statistics> {
        let statistics = rustix::fs::statfs(path)?;
        // f_frsize is the unit of the block counts (statfs(2)). If a filesystem sets it to 0, the
        // unit is f_bsize.
        let unit = match u64::try_from(statistics.f_frsize).unwrap_or(0) {
            0 => u64::try_from(statistics.f_bsize).unwrap_or(0),
            unit => unit,
        };
        let bytes = |blocks: u64| Bytes(blocks.saturating_mul(unit));
        // f_type is signed on some architectures, and magic numbers have 32 bits.
        #[expect(
            clippy::cast_sign_loss,
            reason = "the bit pattern of the magic number is intended"
        )]
        let magic = statistics.f_type as u64 & u64::from(u32::MAX);
        Ok(Statistics {
            magic,
            total: bytes(statistics.f_blocks),
            free: bytes(statistics.f_bfree),
            available: bytes(statistics.f_bavail),
            inodes: statistics.f_files,
        })
    }

    fn make_files(
        &self,
        directory: &Path,
        sizes: &[Bytes],
        seed: u64,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        data::make_files(directory, sizes, seed, stop)
    }

    fn sizes(&self, directory: &Path, except: &[&str]) -> Result<Bytes, UnreadablePath> {
        walk::sizes(directory, except)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        let file = File::open(path)?;
        // The inode of a block device is in devtmpfs, whose syncfs(2) writes nothing.
        match file.metadata()?.file_type().is_block_device() {
            true => file.sync_all(),
            false => Ok(rustix::fs::syncfs(file)?),
        }
    }

    fn resident(&self, path: &Path) -> io::Result<Bytes> {
        Ok(Bytes(sys::cache::resident(File::open(path)?)?.cached))
    }

    fn evict(&self, directory: &Path) -> io::Result<ResidentPages> {
        let mut kept = ResidentPages::default();
        let mut watched = Vec::new();
        self.sync(directory)?;
        each_file(directory, &mut |path| {
            kept.files += 1;
            let Ok(file) = open_quietly(path) else {
                kept.unknown += 1;
                return;
            };
            if rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).is_err() {
                kept.unknown += 1;
            } else if watched.len() < SAMPLED {
                watched.push(file);
            }
        })?;
        // The sampled files stay open until they are checked, because opening them again would load
        // their dentries and inodes. The second drop frees the dentries and inodes of these files.
        let drop_caches = || match self.is_root() {
            true => self.write(Path::new("/proc/sys/vm/drop_caches"), "3"),
            false => Ok(()),
        };
        drop_caches()?;
        for file in &watched {
            match sys::cache::resident(file) {
                Ok(resident) => kept.bytes = kept.bytes + Bytes(resident.cached),
                Err(_) => kept.unknown += 1,
            }
        }
        drop(watched);
        drop_caches()?;
        Ok(kept)
    }
}

/// Detaches a loop device that was just attached, and removes the device if it was created for the
/// image. A failed removal is not an error, because a loop device without backing file is harmless.
fn release(device: &Loop) -> io::Result<()> {
    sys::loop_device::detach(File::open(&device.path)?)?;
    if let Some(Err(error)) = device.made.map(sys::loop_device::remove) {
        tracing::debug!(device = %device.path.display(), %error, "loop device not removed");
    }
    Ok(())
}

fn entry(meta: &fs::Metadata) -> Entry {
    let kind = match meta.file_type() {
        kind if kind.is_file() => EntryKind::File,
        kind if kind.is_dir() => EntryKind::Directory,
        _ => EntryKind::Other,
    };
    Entry {
        identity: Identity { device: meta.dev(), inode: meta.ino() },
        kind,
        size: Bytes(meta.len()),
        allocated: Bytes(meta.blocks().saturating_mul(512)), // stat(2): always units of 512 bytes
    }
}

/// Opens the file at a path for reading and writing; fails if the file does not have this identity.
fn open_same(path: &Path, identity: Identity) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags(OFlags::NOFOLLOW))
        .open(path)?;
    if entry(&file.metadata()?).identity == identity {
        return Ok(file);
    }
    Err(io::Error::other("its name was reused by another file"))
}

fn flags(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

/// Opens a file without changing its access time, if permitted.
fn open_quietly(path: &Path) -> io::Result<File> {
    let open = |extra: OFlags| {
        let wanted = OFlags::NOFOLLOW | OFlags::NONBLOCK | extra;
        OpenOptions::new().read(true).custom_flags(flags(wanted)).open(path)
    };
    open(OFlags::NOATIME).or_else(|_| open(OFlags::empty()))
}

/// Anonymous file in memory (`memfd_create(2)`).
fn anonymous(name: &str) -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC)?))
}

/// File in memory with the standard input of a program.
fn input_file(text: &str) -> io::Result<File> {
    let mut file = anonymous("stdin")?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file)
}

/// Output that a program wrote to a file.
fn output_text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
