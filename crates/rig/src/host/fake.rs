//! Simulated host: a directory in place of `/`, scripted results, and a list of operations.

mod refusals;
mod rules;
mod script;
mod stack;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs, io,
    path::{Component, Path, PathBuf},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use model::{Allocation, Bytes, Nanos};

use self::{refusals::Refusals, stack::Stack};
use super::{
    Entry, Host, Identity, KernelLog, Loop, Output, RealHost, ResidentPages, Statistics,
    TreeRefusal, UnreadablePath, Usage, WipeMethod, kmsg::Kmsg,
};
use crate::{
    medium::{Medium, Roots},
    mount::{MountEntry, MountRefusal, MountRequest},
};

/// Simulated host for tests.
///
/// All paths are below a root directory: `/sys/block` is `ROOT/sys/block`, and a path that is
/// already below the root directory is unchanged. Files are real files in that directory. Programs,
/// mounts, loop devices, and the clock are simulated. [`FakeHost::done`] lists the operations that
/// would change a machine.
#[derive(Debug)]
pub struct FakeHost {
    root: PathBuf,
    is_root: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    done: Vec<String>,
    programs: BTreeMap<String, VecDeque<Output>>,
    /// Filesystem types that programs mount on their last argument; `None` for an unmount.
    mounters: BTreeMap<String, Option<String>>,
    mounts: Vec<MountEntry>,
    magics: BTreeMap<String, u64>,
    loops: BTreeMap<PathBuf, Identity>,
    busy: BTreeMap<PathBuf, u32>,
    frozen: BTreeSet<PathBuf>,
    /// Space used by files since the storage was last erased, and the limit of this space.
    taken: Bytes,
    space: Option<Bytes>,
    /// Files that contain the current time until the given time, and the given time afterwards.
    working: BTreeMap<PathBuf, Nanos>,
    clock: Nanos,
    refusals: Refusals,
    times: BTreeMap<u32, Nanos>,
    usage: Usage,
    stack: Stack,
    /// Standard input of the programs.
    inputs: Vec<String>,
    /// Number of random bytes generated.
    drawn: u8,
}

impl State {
    /// Fails if the path is busy, and counts this use.
    fn use_busy(&mut self, path: &Path) -> io::Result<()> {
        match self.busy.get_mut(path).filter(|left| **left > 0) {
            Some(left) => {
                *left -= 1;
                Err(io::ErrorKind::ResourceBusy.into())
            }
            None => Ok(()),
        }
    }
}

impl FakeHost {
    /// A host with `root` as `/`, a root user, and no programs.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), is_root: true, state: Mutex::default() }
    }

    /// The same host with an unprivileged user.
    #[must_use]
    pub fn unprivileged(self) -> Self {
        Self { is_root: false, ..self }
    }

    /// Creates a file with its parent directories.
    ///
    /// # Panics
    /// If the directory is not writable: a test cannot continue.
    #[must_use]
    pub fn file(self, path: &str, text: &str) -> Self {
        let path = self.at(Path::new(path));
        let directory = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(directory).expect("the directory of a simulated host is writable");
        fs::write(path, text).expect("the directory of a simulated host is writable");
        self
    }

    /// Adds a program with scripted results, one per call. The last result repeats; without
    /// results, each call succeeds with empty output.
    #[must_use]
    pub fn program(self, name: &str, answers: impl IntoIterator<Item = Output>) -> Self {
        self.lock().programs.insert(name.to_owned(), answers.into_iter().collect());
        self
    }

    /// Sets the magic number (`f_type` of `statfs(2)`) of a filesystem type.
    #[must_use]
    pub fn magic(self, fstype: &str, magic: u64) -> Self {
        self.lock().magics.insert(fstype.to_owned(), magic);
        self
    }

    /// Real path of a path of this host. The result is below the root directory, even for a path
    /// with `..`.
    pub fn at(&self, path: &Path) -> PathBuf {
        let inside = path.strip_prefix(&self.root).unwrap_or(path);
        let mut names = PathBuf::new();
        for part in inside.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::ParentDir => drop(names.pop()),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        self.root.join(names)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A test that panicked while holding the lock has already failed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, what: String) {
        self.lock().done.push(what);
    }

    fn permit(&self, path: &Path) -> io::Result<()> {
        self.lock().refusals.read(path)
    }

    /// Lists an operation if it succeeded, and returns its result.
    fn change(&self, verb: &str, path: &Path, answer: io::Result<()>) -> io::Result<()> {
        if answer.is_ok() {
            self.note(format!("{verb} {}", path.display()));
        }
        answer
    }
}

impl Host for FakeHost {
    fn is_root(&self) -> bool {
        self.is_root
    }

    fn pid(&self) -> u32 {
        4711
    }

    fn roots(&self) -> Roots {
        let at = |name: &str| self.root.join(name);
        Roots { sys: at("sys"), proc: at("proc"), dev: at("dev") }
    }

    fn now(&self) -> Nanos {
        self.lock().clock
    }

    fn sleep(&self, time: Nanos) {
        let mut state = self.lock();
        state.clock = state.clock + time;
    }

    fn find(&self, program: &str) -> Option<PathBuf> {
        let known = self.lock().programs.contains_key(program);
        known.then(|| Path::new("/usr/sbin").join(program))
    }

    fn run(&self, argv: &[String]) -> io::Result<Output> {
        self.run_with_input(argv, "")
    }

    fn run_with_input(&self, argv: &[String], input: &str) -> io::Result<Output> {
        self.note(argv.join(" "));
        let mut state = self.lock();
        if !input.is_empty() {
            state.inputs.push(input.to_owned());
        }
        state.run_mounter(argv);
        // Scripted results take precedence over the simulated device stack.
        let scripted = argv.first().and_then(|name| state.programs.get(name));
        if scripted.is_some_and(VecDeque::is_empty)
            && let Some(answer) = state.stack.run(&self.root, argv, input)?
        {
            return Ok(answer);
        }
        let program = argv.first().and_then(|program| state.programs.get_mut(program));
        let answers = program.ok_or(io::ErrorKind::NotFound)?;
        let answer = match answers.len() {
            0 => Output { status: Some(0), ..Output::default() },
            1 => answers[0].clone(),
            _ => answers.pop_front().unwrap_or_default(),
        };
        state.clock = state.clock + answer.elapsed;
        Ok(answer)
    }

    fn adopt_orphans(&self) -> io::Result<()> {
        Ok(())
    }

    fn reap(&self, _process: u32) {}

    fn random(&self, length: usize) -> io::Result<Vec<u8>> {
        let mut state = self.lock();
        let mut next = || {
            state.drawn = state.drawn.wrapping_add(1);
            state.drawn
        };
        Ok((0..length).map(|_| next()).collect())
    }

    fn process_time(&self, process: u32) -> io::Result<Nanos> {
        let time = self.lock().times.get(&process).copied();
        time.ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    fn thread_time(&self) -> Nanos {
        Nanos(0)
    }

    fn usage(&self) -> io::Result<Usage> {
        Ok(self.lock().usage)
    }

    fn kernel_log(&self) -> io::Result<Box<dyn KernelLog>> {
        let path = self.at(Path::new("/dev/kmsg"));
        self.permit(&path)?;
        Ok(Box::new(Kmsg::open(&path)?))
    }

    fn bytes(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(self.at(path))
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        self.permit(&self.at(path))?;
        let state = self.lock();
        match state.working.get(path) {
            Some(until) => Ok(format!("{} 0 0\n", state.clock.min(*until).0)),
            None => fs::read_to_string(self.at(path)),
        }
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        let real = self.at(path);
        self.lock().refusals.write(&real, text)?;
        let before = fs::read_to_string(&real)?;
        let read = |path: &Path| fs::read_to_string(path).ok();
        for (path, text) in rules::stored(&real, &before, text, &read)? {
            fs::write(path, text)?;
        }
        // Undo resolves symbolic links first and therefore passes a path below the root directory.
        let shown = path.strip_prefix(&self.root).map(|path| Path::new("/").join(path));
        let shown = shown.unwrap_or_else(|_| path.to_owned());
        self.note(format!("write {} = {text}", shown.display()));
        Ok(())
    }

    fn create(&self, path: &Path, text: &str) -> io::Result<()> {
        self.change("create", path, RealHost.create(&self.at(path), text))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        RealHost.list(&self.at(path))
    }

    fn follow(&self, path: &Path) -> io::Result<PathBuf> {
        self.at(path).canonicalize()
    }

    fn entry(&self, path: &Path) -> io::Result<Entry> {
        RealHost.entry(&self.at(path))
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.change("mkdir", path, fs::create_dir(self.at(path)))?;
        // Like the kernel, creates the files of a new control group.
        if path.starts_with("/sys/fs/cgroup") {
            let files = [
                ("cgroup.procs", ""),
                ("memory.limit_in_bytes", ""),
                ("memory.max", ""),
                ("cpu.cfs_period_us", "100000"),
                ("cpu.cfs_quota_us", "-1"),
                ("cpu.max", "max 100000"),
            ];
            for (file, text) in files {
                fs::write(self.at(&path.join(file)), text)?;
            }
        }
        Ok(())
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        if path.starts_with("/sys/fs/cgroup") {
            self.lock().use_busy(path)?;
            return self.change("rmdir", path, fs::remove_dir_all(self.at(path)));
        }
        self.change("rmdir", path, fs::remove_dir(self.at(path)))
    }

    fn remove_tree(&self, path: &Path) -> io::Result<()> {
        self.change("remove tree", path, fs::remove_dir_all(self.at(path)))
    }

    fn remove_marked(
        &self,
        path: &Path,
        token: &str,
        identity: Option<Identity>,
    ) -> Result<(), TreeRefusal> {
        RealHost.remove_marked(&self.at(path), token, identity)?;
        self.note(format!("remove tree {}", path.display()));
        Ok(())
    }

    fn remove_same(&self, path: &Path, identity: Identity) -> io::Result<bool> {
        let removed = RealHost.remove_same(&self.at(path), identity)?;
        if removed {
            self.note(format!("remove {}", path.display()));
        }
        Ok(removed)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.change("remove", path, fs::remove_file(self.at(path)))
    }

    fn create_image(&self, path: &Path) -> io::Result<Identity> {
        let identity = RealHost.create_image(&self.at(path))?;
        self.note(format!("create image {}", path.display()));
        Ok(identity)
    }

    fn renew_image(
        &self,
        path: &Path,
        identity: Identity,
        size: Bytes,
        allocation: Allocation,
    ) -> io::Result<()> {
        self.lock().taken = Bytes(0);
        // The directory may be on a small disk, so files are always sparse.
        let answer = RealHost.renew_image(&self.at(path), identity, size, Allocation::Sparse);
        self.change(&format!("renew {size} {}", allocation.name()), path, answer)
    }

    fn attach_loop(&self, image: &Path, identity: Identity) -> io::Result<Loop> {
        let mut state = self.lock();
        let number = u32::try_from(state.loops.len()).map_err(io::Error::other)?;
        let path = PathBuf::from(format!("/dev/loop{number}"));
        state.loops.insert(path.clone(), identity);
        state.done.push(format!("attach {} to {}", image.display(), path.display()));
        Ok(Loop { path, direct: true, made: Some(number) })
    }

    fn loops_of(&self, identity: Identity) -> io::Result<Vec<PathBuf>> {
        let state = self.lock();
        let ours = state.loops.iter().filter(|(_, behind)| **behind == identity);
        Ok(ours.map(|(path, _)| path.clone()).collect())
    }

    fn detach_loop(&self, device: &Path, identity: Identity) -> io::Result<()> {
        let mut state = self.lock();
        match state.loops.get(device) {
            Some(behind) if *behind != identity => Err(io::Error::other("another file")),
            Some(_) => {
                state.loops.remove(device);
                state.done.push(format!("detach {}", device.display()));
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn remove_loop(&self, number: u32) -> io::Result<()> {
        let device = PathBuf::from(format!("/dev/loop{number}"));
        self.lock().refusals.write(&self.at(&device), "")?;
        self.lock().use_busy(&device)?;
        self.note(format!("remove loop {number}"));
        Ok(())
    }

    fn erase_device(&self, device: &Path, _expected: &Medium) -> io::Result<WipeMethod> {
        self.lock().taken = Bytes(0);
        self.note(format!("discard {}", device.display()));
        Ok(WipeMethod::Discarded)
    }

    fn zero(&self, device: &Path, _expected: &Medium, length: Bytes) -> io::Result<()> {
        self.note(format!("zero {length} of {}", device.display()));
        Ok(())
    }

    fn flush_device(&self, device: &Path) -> io::Result<()> {
        self.note(format!("flush {}", device.display()));
        Ok(())
    }

    fn mounts(&self) -> io::Result<Vec<MountEntry>> {
        Ok(self.lock().mounts.clone())
    }

    fn mount(&self, request: &MountRequest) -> Result<(), MountRefusal> {
        let mut state = self.lock();
        state.done.push(request.describe());
        state.mounts.push(MountEntry {
            id: 1,
            device: "7:0".into(),
            root: "/".into(),
            target: request.target.clone(),
            options: "rw".into(),
            fstype: request.fstype.clone(),
            source: request.source.clone(),
            super_options: request.options.clone(),
        });
        Ok(())
    }

    fn unmount(&self, target: &Path) -> io::Result<()> {
        let mut state = self.lock();
        state.use_busy(target)?;
        let place = state.mounts.iter().rposition(|mount| mount.target == target);
        state.mounts.remove(place.ok_or(io::ErrorKind::InvalidInput)?);
        state.done.push(format!("umount {}", target.display()));
        Ok(())
    }

    fn thaw(&self, target: &Path) -> io::Result<()> {
        self.note_thaw(target);
        Ok(())
    }

    fn statistics(&self, path: &Path) -> io::Result<Statistics> {
        let state = self.lock();
        let holder = crate::mount::holder(&state.mounts, path);
        let magic = holder.and_then(|mount| state.magics.get(&mount.fstype)).copied();
        let (total, inodes) = (Bytes::gib(1), 65536);
        let (free, available) = (Bytes::mib(1000) - state.taken, Bytes::mib(900) - state.taken);
        Ok(Statistics { magic: magic.unwrap_or(0), total, free, available, inodes })
    }

    fn make_files(
        &self,
        directory: &Path,
        sizes: &[Bytes],
        _seed: u64,
        stop: &AtomicBool,
    ) -> io::Result<()> {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut state = self.lock();
        let taken = state.taken + sizes.iter().copied().sum();
        if state.space.is_some_and(|space| taken > space) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        state.taken = taken;
        state.done.push(format!("create {} files in {}", sizes.len(), directory.display()));
        Ok(())
    }

    fn sizes(&self, directory: &Path, except: &[&str]) -> Result<Bytes, UnreadablePath> {
        RealHost.sizes(&self.at(directory), except)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        self.note(format!("syncfs {}", path.display()));
        Ok(())
    }

    fn resident(&self, _path: &Path) -> io::Result<Bytes> {
        Ok(Bytes(0))
    }

    fn evict(&self, directory: &Path) -> io::Result<ResidentPages> {
        self.note(format!("evict {}", directory.display()));
        Ok(ResidentPages::default())
    }
}
