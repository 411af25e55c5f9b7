//! Files of a machine and their owner.
//!
//! A machine that root boots runs as another user. That user owns the files that the machine
//! writes, but not the directory: otherwise the machine could create links in it that root follows.

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

use super::{Engine, GuestSpec, INITRAMFS, KERNEL, MAILBOX, UML, channel::HostChannel};
use crate::{
    GuestError,
    mailbox::SIZE,
    supervisor::{Identity, Isolation, SupervisorSpec},
};

/// Creates the files. The supervisor removes them, also after an error.
pub(super) fn make(
    guest: &GuestSpec<'_>,
    spec: &SupervisorSpec,
) -> Result<HostChannel, GuestError> {
    let at = &guest.directory;
    let identity = spec.identity.as_ref();
    directory(at, identity)?;
    if guest.engine == Engine::Uml {
        owned_directory(&at.join(UML), identity)?;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let initramfs = at.join(INITRAMFS);
    options
        .open(&initramfs)
        .and_then(|mut file| file.write_all(guest.initramfs))
        .and_then(|()| set_owner(&initramfs, identity))
        .map_err(GuestError::io(format!("cannot write {}", initramfs.display())))?;
    if spec.machine.iter().any(|word| word == OWN_KERNEL) {
        let kernel = at.join(KERNEL);
        options
            .open(&kernel)
            .and_then(|mut to| io::copy(&mut fs::File::open(&guest.kernel.image)?, &mut to))
            .and_then(|_| fs::set_permissions(&kernel, Permissions::from_mode(0o500)))
            .and_then(|()| set_owner(&kernel, identity))
            .map_err(GuestError::io(format!("cannot write {}", kernel.display())))?;
    }
    for disk in guest.disks.iter().filter(|disk| disk.file.parent() == Some(at)) {
        set_owner(&disk.file, identity).map_err(GuestError::io(format!(
            "cannot change the owner of {}",
            disk.file.display()
        )))?;
    }
    let mailbox = at.join(MAILBOX);
    options
        .open(&mailbox)
        .and_then(|file| file.set_len(SIZE).map(|()| file))
        .and_then(|file| set_owner(&mailbox, identity).map(|()| file))
        .map(HostChannel::new)
        .map_err(GuestError::io(format!("cannot create {}", mailbox.display())))
}

/// Creates the directory of a machine, which the machine's user can enter but not change. An
/// existing directory must belong to the current user: other users can also create directories in
/// `/tmp`.
pub(super) fn directory(at: &Path, identity: Option<&Identity>) -> Result<(), GuestError> {
    let context = || GuestError::io(format!("cannot create the directory {}", at.display()));
    DirBuilder::new().recursive(true).mode(0o700).create(at).map_err(context())?;
    let found = fs::symlink_metadata(at).map_err(context())?;
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        let what = format!("{} is not a directory of this user", at.display());
        return Err(GuestError::Missing { what, hint: "use another directory".into() });
    }
    let Some(identity) = identity else { return Ok(()) };
    chown(at, None, Some(identity.group))
        .and_then(|()| fs::set_permissions(at, Permissions::from_mode(0o710)))
        .map_err(context())
}

/// Creates a directory that belongs to the machine's user.
pub(super) fn owned_directory(path: &Path, identity: Option<&Identity>) -> Result<(), GuestError> {
    let made = DirBuilder::new().mode(0o700).create(path).and_then(|()| set_owner(path, identity));
    made.map_err(GuestError::io(format!("cannot create the directory {}", path.display())))
}

fn set_owner(path: &Path, identity: Option<&Identity>) -> io::Result<()> {
    let Some(identity) = identity else { return Ok(()) };
    chown(path, Some(identity.user), Some(identity.group))
}

/// Copy of the kernel, as named in the machine's arguments.
const OWN_KERNEL: &str = "./kernel";

/// Arguments in which a copy replaces the kernel if the machine's user cannot read the kernel.
/// Examples are kernels in root's cache and installed kernels of Ubuntu.
pub(super) fn arguments(
    guest: &GuestSpec<'_>,
    isolation: Isolation,
    mut arguments: Vec<OsString>,
) -> Vec<OsString> {
    let image = &guest.kernel.image;
    if isolation.identity && !is_public(image, guest.engine == Engine::Uml) {
        let named = arguments.iter_mut().filter(|word| *word == image.as_os_str());
        named.for_each(|word| *word = OWN_KERNEL.into());
    }
    arguments
}

/// True if every user can read a file and, for a program, execute it.
fn is_public(path: &Path, program: bool) -> bool {
    let allows =
        |path: &Path, bits| fs::metadata(path).is_ok_and(|facts| facts.mode() & bits == bits);
    let Ok(path) = fs::canonicalize(path) else { return false };
    allows(&path, if program { 0o005 } else { 0o004 })
        && path.ancestors().skip(1).all(|parent| allows(parent, 0o001))
}

/// Isolation as an environment fact; missing kinds are logged.
pub(super) fn isolation(isolation: Isolation) -> String {
    let (fact, warning) = isolation_for(isolation, geteuid().is_root());
    if let Some(warning) = warning {
        tracing::warn!("{warning}");
    }
    fact
}

/// Isolation as an environment fact, and a warning if root boots the guest and a kind is missing.
/// `root` is true if root boots the guest.
pub(super) fn isolation_for(isolation: Isolation, root: bool) -> (String, Option<String>) {
    let kinds = [
        (isolation.identity, root, "user nobody"),
        (isolation.namespaces, true, "pid namespace"),
        (isolation.network, true, "network namespace"),
    ];
    let (mut present, mut absent) = (Vec::new(), Vec::new());
    for (available, expected, name) in kinds {
        if available {
            present.push(name);
        } else if expected {
            absent.push(name);
        }
    }
    let warning = (root && !absent.is_empty()).then(|| {
        format!(
            "the guest runs without {}: not allowed by this kernel or container; run as an \
             ordinary user",
            absent.join(", ")
        )
    });
    (if present.is_empty() { "none".into() } else { present.join(", ") }, warning)
}
