//! The files of a machine, and the user to whom they belong.
//!
//! A machine that root boots runs as another user. That user owns what the machine writes, but not
//! the directory: otherwise the machine could put links there for root to follow.

use std::{
    ffi::OsString,
    fs::{self, DirBuilder, OpenOptions, Permissions},
    io::{self, Write as _},
    os::unix::fs::{
        DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, chown,
    },
    path::Path,
};

use rustix::process::geteuid;

use super::{Engine, INITRAMFS, KERNEL, MAILBOX, UML, Wanted, link::Link};
use crate::{
    GuestError,
    cage::{Identity, Isolation, Order},
    mailbox::SIZE,
};

/// Makes the files. The cage removes them, also if this fails.
pub(super) fn make(wanted: &Wanted<'_>, order: &Order) -> Result<Link, GuestError> {
    let at = &wanted.directory;
    let identity = order.identity.as_ref();
    directory(at, identity)?;
    if wanted.engine == Engine::Uml {
        given(&at.join(UML), identity)?;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let initramfs = at.join(INITRAMFS);
    options
        .open(&initramfs)
        .and_then(|mut file| file.write_all(wanted.initramfs))
        .and_then(|()| give(&initramfs, identity))
        .map_err(GuestError::io(format!("writing {}", initramfs.display())))?;
    if order.machine.iter().any(|word| word == OWN_KERNEL) {
        let kernel = at.join(KERNEL);
        options
            .open(&kernel)
            .and_then(|mut to| io::copy(&mut fs::File::open(&wanted.kernel.image)?, &mut to))
            .and_then(|_| fs::set_permissions(&kernel, Permissions::from_mode(0o500)))
            .and_then(|()| give(&kernel, identity))
            .map_err(GuestError::io(format!("writing {}", kernel.display())))?;
    }
    for disk in wanted.disks.iter().filter(|disk| disk.file.parent() == Some(at)) {
        give(&disk.file, identity)
            .map_err(GuestError::io(format!("giving {} to the guest", disk.file.display())))?;
    }
    let mailbox = at.join(MAILBOX);
    options
        .open(&mailbox)
        .and_then(|file| file.set_len(SIZE).map(|()| file))
        .and_then(|file| give(&mailbox, identity).map(|()| file))
        .map(Link::new)
        .map_err(GuestError::io(format!("making {}", mailbox.display())))
}

/// Makes the directory of a machine, which its user can pass but not change. One that is there has
/// to be this user's: every user can make directories next to it.
pub(super) fn directory(at: &Path, identity: Option<&Identity>) -> Result<(), GuestError> {
    let making = || GuestError::io(format!("making the directory {}", at.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(at).map_err(making())?;
    let found = fs::symlink_metadata(at).map_err(making())?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        let what = format!("{} is not a directory of this user", at.display());
        return Err(GuestError::Missing { what, cure: "use another directory".into() });
    }
    let Some(identity) = identity else { return Ok(()) };
    chown(at, None, Some(identity.group))
        .and_then(|()| fs::set_permissions(at, Permissions::from_mode(0o710)))
        .map_err(making())
}

/// Makes a directory that belongs to the machine's user.
pub(super) fn given(path: &Path, identity: Option<&Identity>) -> Result<(), GuestError> {
    let made = DirBuilder::new().mode(0o700).create(path).and_then(|()| give(path, identity));
    made.map_err(GuestError::io(format!("making the directory {}", path.display())))
}

fn give(path: &Path, identity: Option<&Identity>) -> io::Result<()> {
    let Some(identity) = identity else { return Ok(()) };
    chown(path, Some(identity.user), Some(identity.group))
}

/// The copy of the kernel, as the machine's arguments name it.
const OWN_KERNEL: &str = "./kernel";

/// The arguments with a copy of the kernel in the place of one that the machine's user cannot read:
/// one in the cache of root, for example, or an installed kernel of Ubuntu.
pub(super) fn arguments(
    wanted: &Wanted<'_>,
    isolation: Isolation,
    mut arguments: Vec<OsString>,
) -> Vec<OsString> {
    let image = &wanted.kernel.image;
    if isolation.identity && !is_open(image, wanted.engine == Engine::Uml) {
        let named = arguments.iter_mut().filter(|word| *word == image.as_os_str());
        named.for_each(|word| *word = OWN_KERNEL.into());
    }
    arguments
}

/// Whether every user can read a file, and run it as a program.
fn is_open(path: &Path, program: bool) -> bool {
    let allows =
        |path: &Path, bits| fs::metadata(path).is_ok_and(|facts| facts.mode() & bits == bits);
    let Ok(path) = fs::canonicalize(path) else { return false };
    allows(&path, if program { 0o005 } else { 0o004 })
        && path.ancestors().skip(1).all(|parent| allows(parent, 0o001))
}

/// The isolation as a fact of the run; what the kernel does not allow is logged.
pub(super) fn isolation(isolation: Isolation) -> String {
    let root = geteuid().is_root();
    let kinds = [
        (isolation.identity, root, "user nobody"),
        (isolation.namespaces, true, "pid namespace"),
        (isolation.network, true, "network namespace"),
    ];
    let (mut present, mut absent) = (Vec::new(), Vec::new());
    for (is_there, wanted, name) in kinds {
        if is_there {
            present.push(name);
        } else if wanted {
            absent.push(name);
        }
    }
    if root && !absent.is_empty() {
        tracing::warn!(
            "the guest of root runs without {}: this kernel or container does not allow it; use \
             an ordinary user",
            absent.join(", ")
        );
    }
    if present.is_empty() { "none".into() } else { present.join(", ") }
}
