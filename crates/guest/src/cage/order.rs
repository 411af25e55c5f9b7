//! What a cage is told: as a value, and as arguments of the command that is a cage.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
};

use model::Bytes;
use sys::child::Identity;

/// How a cage holds what is in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// By namespaces where they are allowed, and otherwise as the reaper of orphans.
    #[default]
    Any,
    /// As the reaper of orphans.
    Reaper,
}

/// What to run in a cage, and what to remove afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// The machine's working directory, which relative paths here are from. It may be made after
    /// the cage; it is removed at the end if nothing is in it.
    pub directory: PathBuf,
    /// Program and arguments of the machine; its environment is empty but for `TMPDIR`.
    pub machine: Vec<OsString>,
    /// The machine's `TMPDIR`. The cage makes it and then removes it with all in it, unless it is
    /// there.
    pub temporary: Option<PathBuf>,
    /// If set, `temporary` is a directory to which a memory file system of this size is mounted
    /// that only the machine sees.
    pub memory: Option<Bytes>,
    /// Files and directories in `directory`, with all in them, that are removed at the end.
    pub own: Vec<PathBuf>,
    /// Files in `directory` that are removed only if fslab ends without ending the cage.
    pub orphans: Vec<PathBuf>,
    /// The identity of the machine, if it is not that of fslab.
    pub identity: Option<Identity>,
    /// How it is held.
    pub way: Way,
}

const DIRECTORY: &str = "--directory";
const TEMPORARY: &str = "--temporary";
const MEMORY: &str = "--memory";
const OWN: &str = "--own";
const ORPHAN: &str = "--orphan";
const IDENTITY: &str = "--identity";
const REAPER: &str = "--reaper";
const MACHINE: &str = "--";

impl Order {
    /// As arguments.
    pub(super) fn to_arguments(&self) -> Vec<OsString> {
        let mut arguments = Vec::new();
        let mut add = |name: &str, value: &OsStr| {
            arguments.push(name.into());
            arguments.push(value.to_owned());
        };
        add(DIRECTORY, self.directory.as_os_str());
        self.temporary.iter().for_each(|path| add(TEMPORARY, path.as_os_str()));
        self.memory.iter().for_each(|size| add(MEMORY, size.0.to_string().as_ref()));
        self.own.iter().for_each(|path| add(OWN, path.as_os_str()));
        self.orphans.iter().for_each(|path| add(ORPHAN, path.as_os_str()));
        if let Some(Identity { user, group, groups }) = &self.identity {
            let ids = [user, group].into_iter().chain(groups).map(u32::to_string);
            add(IDENTITY, ids.collect::<Vec<_>>().join(",").as_ref());
        }
        if self.way == Way::Reaper {
            arguments.push(REAPER.into());
        }
        arguments.push(MACHINE.into());
        arguments.extend_from_slice(&self.machine);
        arguments
    }

    /// From arguments.
    ///
    /// # Errors
    /// `InvalidInput` if they are not of an order.
    pub(super) fn of_arguments(arguments: &[OsString]) -> io::Result<Self> {
        let mut order = Self::default();
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| unknown(name));
            match name.to_str() {
                Some(DIRECTORY) => order.directory = value()?.into(),
                Some(TEMPORARY) => order.temporary = Some(value()?.into()),
                Some(MEMORY) => {
                    let size = value()?.to_str().and_then(|text| text.parse().ok());
                    order.memory = Some(Bytes(size.ok_or_else(|| unknown(name))?));
                }
                Some(OWN) => order.own.push(value()?.into()),
                Some(ORPHAN) => order.orphans.push(value()?.into()),
                Some(IDENTITY) => {
                    let ids = identity(value()?).ok_or_else(|| unknown(name))?;
                    order.identity = Some(ids);
                }
                Some(REAPER) => order.way = Way::Reaper,
                Some(MACHINE) => {
                    order.machine = rest.cloned().collect();
                    break;
                }
                _ => return Err(unknown(name)),
            }
        }
        if order.machine.is_empty() {
            return Err(unknown(OsStr::new(MACHINE)));
        }
        Ok(order)
    }
}

/// User, group, and further groups, divided by commas.
fn identity(text: &OsStr) -> Option<Identity> {
    let ids: Option<Vec<u32>> = text.to_str()?.split(',').map(|id| id.parse().ok()).collect();
    let ids = ids?;
    let [user, group, groups @ ..] = &*ids else { return None };
    Some(Identity { user: *user, group: *group, groups: groups.to_vec() })
}

fn unknown(name: &OsStr) -> io::Error {
    let name = String::from_utf8_lossy(name.as_bytes());
    let text =
        format!("`{name}` is not for users, or has no value; fslab calls this command itself");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
