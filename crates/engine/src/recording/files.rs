//! Root of a replay, and the files that existed before the recording.

use std::{
    ffi::OsStr,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStrExt,
            fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink},
        },
    },
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use rustix::{
    fs::{
        CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mknodat, open, openat2, statvfs, syncfs,
    },
    io::Errno,
    process::geteuid,
};
use trace::{NONE, Node, NodeKind, Program, TraceError};

use crate::{
    EngineError,
    driver::interrupted,
    error::{Failure, Fault, Operation},
    patterns::draw::generator,
};

/// Seed constant that separates the data of files from that of streams with the same seed.
const PURPOSE: u64 = 0x7472_6163;

/// Bytes of random data that files consist of.
const DATA: usize = 1 << 20;

/// Mode bits that a replay sets: no set-user-ID and set-group-ID bits.
pub(super) const MODES: u32 = 0o1777;

/// Random data, which does not compress.
pub(super) fn data(seed: u64, worker: u32, length: usize) -> Vec<u8> {
    let mut random = generator(seed, worker, PURPOSE);
    let mut data = vec![0; length];
    random.fill(&mut data);
    data
}

/// Checks that the files fit in the filesystem of a directory. The sizes in a recording are
/// untrusted, and the filesystem may be one that is in use.
///
/// # Errors
/// [`TraceError::Refused`].
pub(super) fn check_space(nodes: &[Node], directory: &Path) -> Result<(), TraceError> {
    let files = nodes.iter().filter(|node| node.kind == NodeKind::File && node.same == NONE);
    let needed = files.fold(0u64, |sum, node| sum.saturating_add(node.size));
    // A filesystem without this number is not limited by it.
    let free = statvfs(directory).map_or(u64::MAX, |it| it.f_bavail.saturating_mul(it.f_frsize));
    if needed <= free {
        return Ok(());
    }
    Err(TraceError::Refused(format!(
        "its files need {} MiB before the first operation, and {} MiB are available; use a larger \
         filesystem",
        needed.div_ceil(1 << 20),
        free >> 20
    )))
}

/// Creates the root and the files.
///
/// # Errors
/// The first error of a system call; [`EngineError::Interrupted`].
pub(super) fn create(
    program: &Program,
    root: &Path,
    seed: u64,
    interrupt: &AtomicBool,
) -> Result<(), EngineError> {
    let failed = |operation: Operation, path: &Path| {
        let path = path.to_owned();
        move |source: io::Error| EngineError::Io { operation, path, offset: None, source }
    };
    let made = fs::DirBuilder::new().mode(0o700).create(root);
    made.map_err(failed(Operation::MakeDirectory, root))?;
    let data = data(seed, u32::MAX, DATA);
    let mut paths: Vec<PathBuf> = vec![root.to_owned()];
    for node in program.nodes.iter().skip(1) {
        interrupted(interrupt)?;
        let name = &program.paths[node.name as usize - 1];
        let path = paths[node.parent as usize].join(OsStr::from_bytes(name.as_bytes()));
        match (node.kind, node.same) {
            (NodeKind::Directory, _) => {
                let made = fs::DirBuilder::new().mode(0o700).create(&path);
                made.map_err(failed(Operation::MakeDirectory, &path))?;
            }
            (NodeKind::File | NodeKind::Symlink | NodeKind::Fifo | NodeKind::Socket, 1..) => {
                let first = &paths[node.same as usize - 1];
                fs::hard_link(first, &path).map_err(failed(Operation::Link, &path))?;
            }
            (NodeKind::File, NONE) => {
                let written = write(&path, node.size, node.mode, &data);
                written.map_err(failed(Operation::Write, &path))?;
            }
            (NodeKind::Symlink, NONE) => {
                let target = &program.paths[node.target as usize - 1];
                let made = symlink(OsStr::from_bytes(target.as_bytes()), &path);
                made.map_err(failed(Operation::SymbolicLink, &path))?;
            }
            (NodeKind::Fifo | NodeKind::Socket, NONE) => {
                let is_fifo = node.kind == NodeKind::Fifo;
                let kind = if is_fifo { FileType::Fifo } else { FileType::Socket };
                let mode = fs::Permissions::from_mode(node.mode & MODES);
                match mknodat(CWD, &path, kind, Mode::from_raw_mode(0o600), 0) {
                    // The filesystem has no such files, for example exfat.
                    Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
                    made => {
                        made.map_err(Into::into).and_then(|()| fs::set_permissions(&path, mode))
                    }
                }
                .map_err(failed(Operation::MakeNode, &path))?;
            }
            (NodeKind::Other, _) => {}
        }
        paths.push(path);
    }
    // Last, because a directory may not be writable.
    for (node, path) in program.nodes.iter().zip(&paths).skip(1).rev() {
        if node.kind == NodeKind::Directory {
            let mode = fs::Permissions::from_mode(node.mode & MODES);
            fs::set_permissions(path, mode).map_err(failed(Operation::ChangeMode, path))?;
        }
    }
    let opened = File::open(root).map_err(failed(Operation::Open, root))?;
    syncfs(&opened).map_err(|errno| failed(Operation::Sync, root)(errno.into()))
}

fn write(path: &Path, size: u64, mode: u32, data: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(path)?;
    let mut rest = size;
    while rest > 0 {
        let length = usize::try_from(rest).unwrap_or(DATA).min(DATA);
        file.write_all(&data[..length])?;
        rest -= length as u64;
    }
    file.set_permissions(fs::Permissions::from_mode(mode & MODES))
}

/// Opens a directory without following a link.
pub(super) fn open_directory(path: &Path) -> Result<OwnedFd, Failure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(|errno| Failure {
        fault: Fault::whole(Operation::Open, errno),
        path: path.to_owned(),
    })
}

/// Opens the root that an earlier phase created.
///
/// # Errors
/// [`Fault::Exchanged`] if another user could have created it or can change it.
pub(super) fn open_root(path: &Path) -> Result<OwnedFd, Failure> {
    let root = open_directory(path)?;
    let failure = |fault| Failure { fault, path: path.to_owned() };
    let status = fstat(&root).map_err(|errno| failure(Fault::whole(Operation::Examine, errno)))?;
    let ours = status.st_uid == geteuid().as_raw() && status.st_mode & 0o022 == 0;
    let named = path.symlink_metadata().is_ok_and(|it| it.ino() == status.st_ino);
    if ours && named { Ok(root) } else { Err(failure(Fault::Exchanged)) }
}

/// Checks that openat2(2) is available (Linux 5.6), which confines a replay without root.
///
/// # Errors
/// [`EngineError::Unsupported`].
pub(super) fn check_openat2(path: &Path) -> Result<(), EngineError> {
    let root = open_directory(path)?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(&root, ".", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve) {
        Ok(_) => Ok(()),
        Err(errno) => Err(EngineError::Unsupported {
            what: "openat2, which confines a replay without root,",
            source: errno.into(),
        }),
    }
}
