//! Contents of a device and of its partitions: signatures, unrecognized data, and partition types.

use std::{fmt, fs::File, io};

use model::Bytes;
use rustix::fs::{Advice, fadvise};

use super::{
    Medium, Refusal, Roots,
    block::Block,
    device::{decimal, open},
};
use crate::signature::{self, Signature};

/// Contents of a device or of one of its partitions.
#[derive(Debug)]
pub(super) struct Contents {
    name: String,
    size: Bytes,
    signatures: Vec<Signature>,
    /// Offset of the first unrecognized data; searched only if there is no signature.
    data: Option<Bytes>,
    /// Use for which the partition table reserves the partition.
    reserved: Option<&'static str>,
}

impl Contents {
    fn read(file: &File, name: String, size: Bytes) -> io::Result<Self> {
        let signatures = signature::probe(file, size)?;
        let data = match signatures.is_empty() {
            true => signature::in_use(file, size)?,
            false => None,
        };
        Ok(Self { name, size, signatures, data, reserved: None })
    }

    /// True if there are neither signatures nor data, and the partition is not reserved.
    pub(super) fn is_empty(&self) -> bool {
        self.signatures.is_empty() && self.data.is_none() && self.reserved.is_none()
    }
}

impl fmt::Display for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut found: Vec<_> = self.signatures.iter().map(ToString::to_string).collect();
        found.extend(self.data.map(|at| format!("unrecognized data at offset {at}")));
        found.extend(self.reserved.map(|kind| format!("partition type {kind}")));
        let found = if found.is_empty() { "no data found".into() } else { found.join(", ") };
        write!(f, "{} ({}): {found}", self.name, decimal(self.size))
    }
}

/// Contents of the device itself, and of each of its partitions.
pub(super) fn contents(
    file: &File,
    block: &Block,
    medium: &Medium,
    roots: &Roots,
) -> Result<Vec<Contents>, Refusal> {
    let disk = block.disk().map(|disk| opened(disk, roots)).transpose()?.flatten();
    let parts = block.partitions().into_iter();
    let parts: Vec<_> =
        parts.filter_map(|part| opened(part, roots).transpose()).collect::<Result<_, _>>()?;
    let unreadable = |block: &Block, error| {
        let name = block.name();
        Refusal::unreadable(&name, roots.dev.join(&name))(error)
    };
    renew_cache(file).map_err(|error| unreadable(block, error))?;
    for (block, file, _) in disk.iter().chain(&parts) {
        renew_cache(file).map_err(|error| unreadable(block, error))?;
    }

    let own = Contents::read(file, block.name(), medium.size);
    let mut own = own.map_err(|error| unreadable(block, error))?;
    if let (Some((disk, file, whole)), Some(start)) = (&disk, medium.start) {
        let reserved = signature::reserved(file, whole.size, start);
        own.reserved = reserved.map_err(|error| unreadable(disk, error))?;
    }
    let mut contents = vec![own];
    for (part, file, medium) in &parts {
        let read = Contents::read(file, part.name(), medium.size);
        contents.push(read.map_err(|error| unreadable(part, error))?);
    }
    Ok(contents)
}

/// Opens the node of a device; `None` if there is no node. Without udev or in a container, `/dev`
/// may lack the nodes of a disk or of its partitions.
fn opened(block: Block, roots: &Roots) -> Result<Option<(Block, File, Medium)>, Refusal> {
    match open(&roots.dev.join(block.name()), false, roots) {
        Ok((file, medium)) => Ok(Some((block, file, medium))),
        Err(Refusal::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(other) => Err(other),
    }
}

/// Writes the cached data of other programs to the device, and drops cached pages. A disk and each
/// of its partitions have separate caches, so a read of one node may not return what a program has
/// written through another node.
fn renew_cache(file: &File) -> io::Result<()> {
    file.sync_data()?;
    Ok(fadvise(file, 0, None, Advice::DontNeed)?)
}
