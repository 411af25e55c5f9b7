//! Contents of a device and of its partitions: signatures, unrecognized data, and partition types.

use std::{fmt, fs::File, io};

use model::Bytes;

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
    let on = |file: &File, name: String, size| {
        let node = roots.dev.join(&name);
        Contents::read(file, name.clone(), size).map_err(Refusal::unreadable(&name, node))
    };
    let mut own = on(file, block.name(), medium.size)?;
    own.reserved = match (block.disk(), medium.start) {
        (Some(disk), Some(start)) => reserved(&disk, start, roots)?,
        _ => None,
    };
    let mut contents = vec![own];
    for part in block.partitions() {
        match open(&roots.dev.join(part.name()), false, roots) {
            Ok((file, medium)) => contents.push(on(&file, part.name(), medium.size)?),
            // Without udev, a partition may have no device node. Only the contents of its disk are
            // read then.
            Err(Refusal::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(other) => return Err(other),
        }
    }
    Ok(contents)
}

/// Use for which the partition table of `disk` reserves the partition that begins at `start`.
fn reserved(disk: &Block, start: Bytes, roots: &Roots) -> Result<Option<&'static str>, Refusal> {
    let node = roots.dev.join(disk.name());
    match open(&node, false, roots) {
        Ok((file, medium)) => signature::reserved(&file, medium.size, start)
            .map_err(Refusal::unreadable(&disk.name(), node)),
        // In a container, there may be a device node of the partition but not of its disk.
        Err(Refusal::Open { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(other) => Err(other),
    }
}
