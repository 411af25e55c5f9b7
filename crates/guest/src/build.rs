//! Builds a user-mode Linux kernel from a distribution's source.
//!
//! The input is a [`BuildSpec`] with an optional source. The resulting program is stored in the
//! [`Cache`], where [`Kernel::find`](crate::Kernel::find) finds it. All filesystems are built in,
//! so the kernel boots in 0.3 s; the packaged kernel needs 2.1 s (medians of 5 alternating boots on
//! two busy CPUs). Its register buffers are large enough for all CPUs, including those with AMX.
//!
//! A build needs a compiler and takes some minutes. It runs in a directory of the cache that is
//! removed afterwards. The kernel source and programs built from it are not part of fslab; they are
//! licensed under GPL-2.0.

mod changes;
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

pub use self::changes::KernelOption;
use self::{
    changes::{Changes, Patch},
    config::RequiredOptions,
    make::Make,
    source::Found,
    tree::{Selection, Written},
};
use crate::{
    GuestError,
    kernel::{Architecture, Cache, built::Built, cache::CacheManifest, examine, source::Source},
    modules::hash::sha256,
};

/// Release suffix of a kernel with enlarged register buffers.
pub(crate) const LARGE_REGISTERS_SUFFIX: &str = "-fslab-amx";
/// Release suffix of a kernel whose register buffers are as in the source.
const PLAIN: &str = "-fslab";
/// Size of an enlarged register buffer in bytes. CPUs with AMX have 11,008 bytes of registers.
pub(crate) const REGISTERS: u32 = 12_288;
/// File that defines the size of the register buffers in sources before 6.13, and the definition
/// (`HOST_FP_SIZE`). That size is sufficient for AVX-512.
const OFFSETS: &str = "arch/x86/um/user-offsets.c";
const ANCHOR: &str = "DEFINE_LONGS(HOST_FP_SIZE, 2696);";
/// Disk space required by a build. A build of Linux 6.1 used at most 0.64 GB, including 0.44 GB for
/// the source.
const BUILD_SPACE: Bytes = Bytes::gib(2);
/// Minimum interval between progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);
/// Version of the build method. Increase it if anything except the configuration changes the
/// resulting kernel.
const METHOD: &str = "1";
/// Hint if the source cannot be configured without changes of the user.
const OTHER_SOURCE: &str = "it may be too old or too new, use another version";
/// Hint if the source cannot be configured with changes of the user.
const OWN_CHANGES: &str = "change --config (the options on which one depends are needed as well), \
                           or the patches";
/// File in the cache with the log of a failed build.
const LOG: &str = "kernel-build.log";

/// Specification of a build.
#[derive(Clone, Copy, Debug)]
pub struct BuildSpec<'a> {
    /// Source: a tar archive, a package `linux-source-VERSION`, an unpacked directory, or the
    /// version of an installed source (`/usr/src/linux-source-VERSION.tar.xz`). Default: the newest
    /// installed source.
    pub source: Option<&'a OsStr>,
    /// Patches of the source, in the order in which they are applied: unified diffs with paths
    /// below one directory (`a/`, `b/`), which may be compressed.
    pub patches: &'a [PathBuf],
    /// Additional kernel options, which replace those of fslab. The last one of a name counts.
    pub options: &'a [KernelOption],
    /// Number of parallel compile jobs.
    pub jobs: usize,
    /// Cache in which the kernel is built and stored.
    pub cache: &'a Cache,
    /// Flag that interrupts the build.
    pub interrupt: &'a AtomicBool,
}

/// Progress of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A source was found.
    Source(PathBuf),
    /// The source is being unpacked.
    Unpacking,
    /// The source was unpacked.
    Unpacked {
        /// Number of files.
        files: usize,
        /// Total size.
        bytes: Bytes,
    },
    /// The patch of this file name was applied.
    Patched(String),
    /// The register buffers cannot be enlarged, because the source does not define their size where
    /// expected.
    RegisterSizeNotFound,
    /// The kernel is being configured.
    Configuring,
    /// Names of options that the source does not have; their features are missing.
    UnknownOptions(Vec<String>),
    /// Files are being compiled.
    Compiling {
        /// Number of files compiled so far.
        files: u64,
    },
    /// The kernel was linked.
    Linked {
        /// Size of the program.
        size: Bytes,
    },
}

/// Result of a build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltKernel {
    /// Release of the kernel (`uname -r`), by which `--kernel` selects it.
    pub release: String,
    /// Path of the program.
    pub image: PathBuf,
    /// Duration of the build; `None` if the kernel was cached.
    pub duration: Option<Duration>,
}

/// Builds a kernel, unless it is cached.
///
/// # Errors
/// [`GuestError::Missing`] if the source, a program, or disk space is missing,
/// [`GuestError::Malformed`] if the source is not a kernel source or a patch is not a unified diff,
/// [`GuestError::Patch`] if a patch does not apply, [`GuestError::Configuration`] and
/// [`GuestError::Build`] if the kernel cannot be built, [`GuestError::Interrupted`] if the
/// interrupt flag is set. Partial results are removed.
pub fn build(
    spec: &BuildSpec<'_>,
    report: &mut dyn FnMut(Progress),
) -> Result<BuiltKernel, GuestError> {
    let found = source::find(spec.source, Path::new("/"))?;
    report(Progress::Source(found.path().to_owned()));
    let source = Source { path: found.path(), interrupt: spec.interrupt };
    let read = |path: &PathBuf| Patch::read(Source { path, interrupt: spec.interrupt });
    let patches = spec.patches.iter().map(read).collect::<Result<_, _>>()?;
    let changes = Changes { patches, options: spec.options.to_vec() };
    let hash = tree::hash(&found, source)?;
    let fixed = format!("{METHOD}\n{REGISTERS}\n{}", RequiredOptions::new("", &[]).text());
    let config = sha256(format!("{fixed}{}", changes.key()).as_bytes());
    let key = sha256(format!("{hash}\n{config}").as_bytes());
    let start = Instant::now();
    let mut duration = None;
    let (directory, manifest) = spec.cache.get_or_create(&key, |directory| {
        let others: &[_] = if changes.patches.is_empty() { &[] } else { &[make::PATCH] };
        make::check_tools(&sys::program::search_path(), others)?;
        check_space(directory)?;
        let changes = &changes;
        let manifest = Builder { spec, changes, found: &found, source, directory, report }.run()?;
        duration = Some(start.elapsed());
        Ok(CacheManifest { source: hash.clone(), config: config.clone(), ..manifest })
    })?;
    let image = directory.join(manifest.image);
    Ok(BuiltKernel { release: manifest.release, image, duration })
}

/// Checks that the programs of a build with patches are installed.
///
/// # Errors
/// [`GuestError::Missing`] with the packages of the missing programs.
pub fn check_programs() -> Result<(), GuestError> {
    make::check_tools(&sys::program::search_path(), &[make::PATCH])
}

/// Checks that there is enough disk space.
fn check_space(directory: &Path) -> Result<(), GuestError> {
    let context = GuestError::io(format!("cannot read the free space of {}", directory.display()));
    let facts = rustix::fs::statvfs(directory).map_err(|error| context(error.into()))?;
    let free = Bytes(facts.f_bavail.saturating_mul(facts.f_frsize));
    if free >= BUILD_SPACE {
        return Ok(());
    }
    Err(GuestError::Missing {
        what: format!(
            "a kernel build needs {} of temporary space, but {} has only {} available",
            BUILD_SPACE.rough(),
            directory.parent().unwrap_or(directory).display(),
            free.rough()
        ),
        hint: "free some space, or set XDG_CACHE_HOME to another directory".to_owned(),
    })
}

/// State of one build.
struct Builder<'a, 'b> {
    spec: &'a BuildSpec<'b>,
    changes: &'a Changes,
    found: &'a Found,
    source: Source<'a>,
    /// Directory of the cache, initially empty.
    directory: &'a Path,
    report: &'a mut dyn FnMut(Progress),
}

impl Builder<'_, '_> {
    /// Runs all steps. The directory then contains the kernel and its metadata.
    fn run(mut self) -> Result<CacheManifest, GuestError> {
        let (tree, log) = (self.directory.join("source"), self.directory.join("log"));
        fs::create_dir(&tree)
            .map_err(GuestError::io(format!("cannot create {}", tree.display())))?;
        let outcome = self.build(&tree, &log).map_err(|error| self.keep_log(error));
        let release = outcome?;
        let modules = format!("lib/modules/{release}");
        let to = self.directory.join(&modules);
        fs::create_dir_all(&to)
            .map_err(GuestError::io(format!("cannot create {}", to.display())))?;
        for (from, to) in [
            ("linux", self.directory.join("linux")),
            ("modules.builtin", to.join("modules.builtin")),
            ("modules.builtin.modinfo", to.join("modules.builtin.modinfo")),
            (".config", self.directory.join("config")),
        ] {
            let from = tree.join(from);
            let context = GuestError::io(format!("cannot move {}", from.display()));
            fs::rename(&from, to).map_err(context)?;
        }
        fs::remove_dir_all(&tree)
            .and_then(|()| fs::remove_file(&log))
            .map_err(GuestError::io(format!("cannot remove {}", tree.display())))?;
        Ok(CacheManifest {
            release,
            architecture: Architecture::Uml.name().to_owned(),
            image: "linux".to_owned(),
            modules,
            origin: self.found.name(),
            changes: self.changes.description(),
            ..CacheManifest::default()
        })
    }

    /// Builds a kernel in a source tree and returns its release.
    fn build(&mut self, tree: &Path, log: &Path) -> Result<String, GuestError> {
        (self.report)(Progress::Unpacking);
        let patched = self.changes.files();
        let selection = Selection { patched: &patched };
        let Written { files, bytes } = tree::unpack(self.found, self.source, selection, tree)?;
        (self.report)(Progress::Unpacked { files, bytes: Bytes(bytes) });
        let make = Make { tree, log, interrupt: self.spec.interrupt };
        for patch in &self.changes.patches {
            patch.apply(make, &self.found.name(), self.directory)?;
            (self.report)(Progress::Patched(patch.name.clone()));
        }
        let suffix = format!("{}{}", self.changes.tag(), self.enlarge_buffers(tree)?);
        (self.report)(Progress::Configuring);
        self.configure(make, &suffix)?;
        let jobs = format!("-j{}", self.spec.jobs.max(1));
        let (report, mut last) = (&mut *self.report, None::<Instant>);
        make.run(&[&jobs, "linux"], &mut |files| {
            if last.is_none_or(|last| last.elapsed() > PROGRESS_INTERVAL) {
                last = Some(Instant::now());
                report(Progress::Compiling { files });
            }
        })?;
        make.command("strip", &["linux"], &mut |_| {})?;
        let program = tree.join("linux");
        let own = Source { path: &program, ..self.source };
        let file = own.open()?;
        let size = file.metadata().map_err(|error| own.failed(error))?.len();
        let (built, release) = examine(own, &file)?;
        if built != Architecture::Uml || !release.ends_with(&suffix) {
            let why =
                format!("built {} {release} instead of the requested kernel", built.description());
            return Err(self.source.malformed(why));
        }
        (self.report)(Progress::Linked { size: Bytes(size) });
        Ok(release)
    }

    /// Enlarges the register buffers for CPUs with AMX if their size is fixed in the source. Newer
    /// sources read the size from the host. Returns the release suffix of the kernel.
    fn enlarge_buffers(&mut self, tree: &Path) -> Result<&'static str, GuestError> {
        let path = tree.join(OFFSETS);
        let text = fs::read_to_string(&path).unwrap_or_default();
        if let Some(text) = with_large_buffers(&text) {
            fs::write(&path, text)
                .map_err(GuestError::io(format!("cannot write {}", path.display())))?;
            return Ok(LARGE_REGISTERS_SUFFIX);
        }
        if text.contains("HOST_FP_SIZE") {
            (self.report)(Progress::RegisterSizeNotFound);
        }
        Ok(PLAIN)
    }

    fn configure(&mut self, make: Make<'_>, suffix: &str) -> Result<(), GuestError> {
        let path = make.tree.join(".config");
        let failed =
            || GuestError::io(format!("cannot configure the kernel in {}", path.display()));
        let required = RequiredOptions::new(suffix, &self.changes.options);
        make.run(&["defconfig"], &mut |_| {})?;
        let mut config = fs::read_to_string(&path).map_err(failed())?;
        config.push_str(required.text());
        fs::write(&path, config).map_err(failed())?;
        make.run(&["olddefconfig"], &mut |_| {})?;
        let config = fs::read_to_string(&path).map_err(failed())?;
        let defined = config::known(make.tree)?;
        let outcome = required.compare(&config, &defined);
        if !outcome.rejected.is_empty() {
            let log = fs::read(make.log).unwrap_or_default();
            let log = String::from_utf8_lossy(&log);
            let option = |(name, values): (String, String)| {
                format!("{values}: {})", changes::reason(&name, &config, &log, &defined))
            };
            let options = outcome.rejected.into_iter().map(option).collect();
            let hint = if *self.changes == Changes::default() { OTHER_SOURCE } else { OWN_CHANGES };
            return Err(GuestError::Configuration { what: self.found.name(), options, hint });
        }
        if !outcome.unknown.is_empty() {
            (self.report)(Progress::UnknownOptions(outcome.unknown));
        }
        Ok(())
    }

    /// Copies the log of a failed build to the cache, because the build directory is removed.
    fn keep_log(&self, error: GuestError) -> GuestError {
        let GuestError::Build { step, status, last, log } = error else { return error };
        let kept = self.spec.cache.directory().join(LOG);
        let log = if fs::copy(&log, &kept).is_ok() { kept } else { log };
        GuestError::Build { step, status, last, log }
    }
}

/// Text of the file with the larger size; `None` if the text does not contain the definition.
fn with_large_buffers(text: &str) -> Option<String> {
    let definition = format!("DEFINE_LONGS(HOST_FP_SIZE, {REGISTERS});");
    text.contains(ANCHOR).then(|| text.replace(ANCHOR, &definition))
}

/// Newest kernel that was built on this host.
pub(crate) fn newest(cache_directory: &Path) -> Option<Built> {
    crate::kernel::built::newest(&Cache::new(cache_directory.to_owned()), None)
}

#[cfg(test)]
mod tests;
