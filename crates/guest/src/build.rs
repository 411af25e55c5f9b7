//! A kernel of our own for user-mode Linux, built from a distribution's source.
//!
//! What a user named as a source enters ([`Order`]), or nothing; a program leaves, which is kept in
//! the [`Cache`] and is found there by [`Kernel::find`](crate::Kernel::find) from then on. It has
//! every filesystem built in, so that it is up in 0.3 s where the packaged one takes 2.1 (medians
//! of 5 boots in turn, on two busy processors), and room for the registers of every processor.
//!
//! Building takes a compiler and some minutes, and happens in a folder of the cache that is removed
//! afterwards. The source of a kernel and what is built of it are not part of this program; the
//! license of Linux (GPL-2.0) holds for them.

mod config;
mod make;
mod source;
mod tree;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
    time::{Duration, Instant},
};

use model::Bytes;

use self::{config::Wanted, make::Make, source::Found, tree::Written};
use crate::{
    GuestError,
    kernel::{Architecture, Cache, built::Built, cache::Card, examine, source::Source},
    modules::hash::sha256,
};

/// Ends the release of a kernel that was built here and has room for all registers.
pub(crate) const ROOMY: &str = "-fslab-amx";
/// Ends the release of one whose room is its source's own affair.
const PLAIN: &str = "-fslab";
/// Bytes of registers for which it has room then: processors with AMX have 11,008.
pub(crate) const REGISTERS: u32 = 12_288;
/// Where a source before 6.13 says how many bytes of registers there are, and what it says there
/// (`HOST_FP_SIZE`): enough for AVX-512.
const OFFSETS: &str = "arch/x86/um/user-offsets.c";
const ANCHOR: &str = "DEFINE_LONGS(HOST_FP_SIZE, 2696);";
/// Room that a build needs. Linux 6.1 took 0.64 GB at most, of which its source is 0.44.
const ROOM: Bytes = Bytes::gib(2);
/// How often progress is told at most.
const TELL: Duration = Duration::from_millis(500);
/// Changes when something else than the configuration does that a kernel comes out of.
const METHOD: &str = "1";
/// The file in the cache that has what a failed build said.
const LOG: &str = "kernel-build.log";

/// What is to be built, and with what.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The source: a tar archive, a package `linux-source-VERSION`, an unpacked folder, or the
    /// version of an installed one (`/usr/src/linux-source-VERSION.tar.xz`); without one, the
    /// newest that is installed.
    pub source: Option<&'a OsStr>,
    /// How many files are compiled at once.
    pub jobs: usize,
    /// Where it is built and kept.
    pub cache: &'a Cache,
    /// Set by whoever wants to stop.
    pub interrupt: &'a AtomicBool,
}

/// What is being done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A source was found.
    Source(PathBuf),
    /// It is being unpacked.
    Unpacking,
    /// It was: files and bytes.
    Unpacked {
        /// How many files.
        files: usize,
        /// Their length.
        bytes: Bytes,
    },
    /// It is not changed to have room for more registers, since it does not say how many there are
    /// where it was expected.
    NoRoom,
    /// It is being configured.
    Configuring,
    /// Options, by their names, that the source does not know: what they stand for is left out.
    Without(Vec<String>),
    /// So many files have been compiled.
    Compiling {
        /// How many.
        files: u64,
    },
    /// It is done.
    Linked {
        /// The length of the program.
        size: Bytes,
    },
}

/// A kernel that was built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What `uname -r` says in it, by which it can be named.
    pub release: String,
    /// The program.
    pub image: PathBuf,
    /// How long building took; `None` if it had been built before.
    pub took: Option<Duration>,
}

/// Builds a kernel, unless the same was built before.
///
/// # Errors
/// [`GuestError::Missing`] if there is no source, program, or room, [`GuestError::Malformed`] if it
/// is no source, [`GuestError::Configuration`] and [`GuestError::Build`] if it cannot be built,
/// [`GuestError::Interrupted`] once the interrupt is set; whatever was made is removed then.
pub fn build(order: &Order<'_>, tell: &mut dyn FnMut(Progress)) -> Result<Outcome, GuestError> {
    let found = source::find(order.source, Path::new("/"))?;
    tell(Progress::Source(found.path().to_owned()));
    let source = Source { path: found.path(), interrupt: order.interrupt };
    let hash = tree::hash(&found, source)?;
    let config = sha256(format!("{METHOD}\n{REGISTERS}\n{}", Wanted::new("").text()).as_bytes());
    let key = sha256(format!("{hash}\n{config}").as_bytes());
    let began = Instant::now();
    let mut took = None;
    let (folder, card) = order.cache.folder(&key, |folder| {
        make::check_tools(&sys::program::search_path())?;
        check_room(folder)?;
        let card = Work { order, found: &found, source, folder, tell }.all()?;
        took = Some(began.elapsed());
        Ok(Card { source: hash.clone(), config: config.clone(), ..card })
    })?;
    let image = folder.join(card.image);
    Ok(Outcome { release: card.release, image, took })
}

/// Whether there is room to build in.
fn check_room(folder: &Path) -> Result<(), GuestError> {
    let asking = GuestError::io(format!("asking how much room is in {}", folder.display()));
    let facts = rustix::fs::statvfs(folder).map_err(|error| asking(error.into()))?;
    let room = Bytes(facts.f_bavail.saturating_mul(facts.f_frsize));
    if room >= ROOM {
        return Ok(());
    }
    Err(GuestError::Missing {
        what: format!(
            "building a kernel takes {} for a while, and {} has {} left",
            ROOM.rough(),
            folder.parent().unwrap_or(folder).display(),
            room.rough()
        ),
        cure: "make room, or name another directory (XDG_CACHE_HOME)".to_owned(),
    })
}

/// The work of one build.
struct Work<'a, 'b> {
    order: &'a Order<'b>,
    found: &'a Found,
    source: Source<'a>,
    /// The folder of the cache, empty at first.
    folder: &'a Path,
    tell: &'a mut dyn FnMut(Progress),
}

impl Work<'_, '_> {
    /// All of it: what is left in the folder is the kernel and what it says of itself.
    fn all(mut self) -> Result<Card, GuestError> {
        let (tree, log) = (self.folder.join("source"), self.folder.join("log"));
        fs::create_dir(&tree).map_err(GuestError::io(format!("making {}", tree.display())))?;
        let outcome = self.build(&tree, &log).map_err(|error| self.keep_log(error));
        let release = outcome?;
        let modules = format!("lib/modules/{release}");
        let to = self.folder.join(&modules);
        fs::create_dir_all(&to).map_err(GuestError::io(format!("making {}", to.display())))?;
        for (from, to) in [
            ("linux", self.folder.join("linux")),
            ("modules.builtin", to.join("modules.builtin")),
            ("modules.builtin.modinfo", to.join("modules.builtin.modinfo")),
            (".config", self.folder.join("config")),
        ] {
            let from = tree.join(from);
            let moving = GuestError::io(format!("moving {}", from.display()));
            fs::rename(&from, to).map_err(moving)?;
        }
        fs::remove_dir_all(&tree)
            .and_then(|()| fs::remove_file(&log))
            .map_err(GuestError::io(format!("removing {}", tree.display())))?;
        Ok(Card {
            release,
            architecture: Architecture::Uml.name().to_owned(),
            image: "linux".to_owned(),
            modules,
            origin: self.found.name(),
            ..Card::default()
        })
    }

    /// Builds in a tree; the release of the kernel that is in it then.
    fn build(&mut self, tree: &Path, log: &Path) -> Result<String, GuestError> {
        (self.tell)(Progress::Unpacking);
        let Written { files, bytes } = tree::unpack(self.found, self.source, tree)?;
        (self.tell)(Progress::Unpacked { files, bytes: Bytes(bytes) });
        let suffix = self.make_room(tree)?;
        (self.tell)(Progress::Configuring);
        let make = Make { tree, log, interrupt: self.order.interrupt };
        self.configure(make, suffix)?;
        let jobs = format!("-j{}", self.order.jobs.max(1));
        let (tell, mut told) = (&mut *self.tell, None::<Instant>);
        make.run(&[&jobs, "linux"], &mut |files| {
            if told.is_none_or(|told| told.elapsed() > TELL) {
                told = Some(Instant::now());
                tell(Progress::Compiling { files });
            }
        })?;
        make.command("strip", &["linux"], &mut |_| {})?;
        let program = tree.join("linux");
        let own = Source { path: &program, ..self.source };
        let file = own.open()?;
        let size = file.metadata().map_err(|error| own.failed(error))?.len();
        let (built, release) = examine(own, &file)?;
        if built != Architecture::Uml || !release.ends_with(suffix) {
            let why = format!("is {} {release}, not what was to be built", built.phrase());
            return Err(self.source.malformed(why));
        }
        (self.tell)(Progress::Linked { size: Bytes(size) });
        Ok(release)
    }

    /// Makes room for the registers of processors with AMX, in a source that takes their number for
    /// known; later ones ask the host. What the release of the kernel ends in.
    fn make_room(&mut self, tree: &Path) -> Result<&'static str, GuestError> {
        let path = tree.join(OFFSETS);
        let text = fs::read_to_string(&path).unwrap_or_default();
        if let Some(text) = roomy(&text) {
            fs::write(&path, text)
                .map_err(GuestError::io(format!("writing {}", path.display())))?;
            return Ok(ROOMY);
        }
        if text.contains("HOST_FP_SIZE") {
            (self.tell)(Progress::NoRoom);
        }
        Ok(PLAIN)
    }

    fn configure(&mut self, make: Make<'_>, suffix: &str) -> Result<(), GuestError> {
        let path = make.tree.join(".config");
        let failed = || GuestError::io(format!("configuring in {}", path.display()));
        let wanted = Wanted::new(suffix);
        make.run(&["defconfig"], &mut |_| {})?;
        let mut config = fs::read_to_string(&path).map_err(failed())?;
        config.push_str(wanted.text());
        fs::write(&path, config).map_err(failed())?;
        make.run(&["olddefconfig"], &mut |_| {})?;
        let config = fs::read_to_string(&path).map_err(failed())?;
        let outcome = wanted.compare(&config, &config::known(make.tree)?);
        if !outcome.refused.is_empty() {
            let (what, options) = (self.found.name(), outcome.refused);
            return Err(GuestError::Configuration { what, options });
        }
        if !outcome.unknown.is_empty() {
            (self.tell)(Progress::Without(outcome.unknown));
        }
        Ok(())
    }

    /// Keeps the log of a build that failed, which would go with its folder.
    fn keep_log(&self, error: GuestError) -> GuestError {
        let GuestError::Build { step, status, last, log } = error else { return error };
        let kept = self.order.cache.directory().join(LOG);
        let log = if fs::copy(&log, &kept).is_ok() { kept } else { log };
        GuestError::Build { step, status, last, log }
    }
}

/// The text with room for more registers; `None` without the place where it says how many.
fn roomy(text: &str) -> Option<String> {
    let room = format!("DEFINE_LONGS(HOST_FP_SIZE, {REGISTERS});");
    text.contains(ANCHOR).then(|| text.replace(ANCHOR, &room))
}

/// The program of the newest kernel that was built here, and its release.
pub(crate) fn newest(cache_directory: &Path) -> Option<Built> {
    crate::kernel::built::newest(&Cache::new(cache_directory.to_owned()), None)
}

#[cfg(test)]
mod tests;
