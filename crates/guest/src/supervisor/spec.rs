//! Specification of a supervisor, as a value and as arguments of its command.

use std::{
    ffi::{OsStr, OsString},
    io,
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
};

use model::Bytes;
use sys::child::Identity;

/// Method to find all processes of a machine when the machine is ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Containment {
    /// A pid namespace if the kernel allows one, otherwise a child subreaper (prctl(2)).
    #[default]
    Any,
    /// Always a child subreaper.
    Reaper,
}

/// Machine to run under a supervisor, and files to remove afterwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SupervisorSpec {
    /// Working directory of the machine; relative paths of the specification start there. The
    /// directory may be created after the supervisor has started. It is removed at the end if it is
    /// empty.
    pub directory: PathBuf,
    /// Program and arguments of the machine. The environment contains only `TMPDIR`, and only if
    /// `temporary` is set.
    pub machine: Vec<OsString>,
    /// `TMPDIR` of the machine. The supervisor creates a missing directory, and later removes it
    /// with its contents.
    pub temporary: Option<PathBuf>,
    /// If set, a memory filesystem of this size is mounted on `temporary`. The mount is not visible
    /// to other processes.
    pub memory: Option<Bytes>,
    /// Files and directories in `directory` that are removed at the end, with their contents.
    pub own: Vec<PathBuf>,
    /// Files in `directory` that are removed only if fslab exits without ending the machine.
    pub orphans: Vec<PathBuf>,
    /// User and groups of the machine; `None`: those of fslab.
    pub identity: Option<Identity>,
    /// Method to find all processes of the machine.
    pub containment: Containment,
}

const DIRECTORY: &str = "--directory";
const TEMPORARY: &str = "--temporary";
const MEMORY: &str = "--memory";
const OWN: &str = "--own";
const ORPHAN: &str = "--orphan";
const IDENTITY: &str = "--identity";
const REAPER: &str = "--reaper";
const MACHINE: &str = "--";

impl SupervisorSpec {
    /// Converts the specification to arguments.
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
        if self.containment == Containment::Reaper {
            arguments.push(REAPER.into());
        }
        arguments.push(MACHINE.into());
        arguments.extend_from_slice(&self.machine);
        arguments
    }

    /// Parses arguments.
    ///
    /// # Errors
    /// `InvalidInput` if the arguments do not describe a specification.
    pub(super) fn of_arguments(arguments: &[OsString]) -> io::Result<Self> {
        let mut spec = Self::default();
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| unknown(name));
            match name.to_str() {
                Some(DIRECTORY) => spec.directory = value()?.into(),
                Some(TEMPORARY) => spec.temporary = Some(value()?.into()),
                Some(MEMORY) => {
                    let size = value()?.to_str().and_then(|text| text.parse().ok());
                    spec.memory = Some(Bytes(size.ok_or_else(|| unknown(name))?));
                }
                Some(OWN) => spec.own.push(value()?.into()),
                Some(ORPHAN) => spec.orphans.push(value()?.into()),
                Some(IDENTITY) => {
                    let ids = identity(value()?).ok_or_else(|| unknown(name))?;
                    spec.identity = Some(ids);
                }
                Some(REAPER) => spec.containment = Containment::Reaper,
                Some(MACHINE) => {
                    spec.machine = rest.cloned().collect();
                    break;
                }
                _ => return Err(unknown(name)),
            }
        }
        if spec.machine.is_empty() {
            return Err(unknown(OsStr::new(MACHINE)));
        }
        Ok(spec)
    }
}

/// Parses the IDs of a user, its group, and supplementary groups, separated by commas.
fn identity(text: &OsStr) -> Option<Identity> {
    let ids: Option<Vec<u32>> = text.to_str()?.split(',').map(|id| id.parse().ok()).collect();
    let ids = ids?;
    let [user, group, groups @ ..] = &*ids else { return None };
    Some(Identity { user: *user, group: *group, groups: groups.to_vec() })
}

fn unknown(name: &OsStr) -> io::Error {
    let name = String::from_utf8_lossy(name.as_bytes());
    let text = format!("`{name}` is unknown or has no value; only fslab may run this command");
    io::Error::new(io::ErrorKind::InvalidInput, text)
}
