//! Checks of the storage.

use std::path::Path;

use model::{Bytes, storage::StorageKind};
use rig::guard::{self, Permission, Roots};

use crate::{exit::chain, plans::ResolvedPlan};

/// Result of the storage checks.
pub(super) fn storage(chosen: &ResolvedPlan, lines: &mut Vec<String>) {
    for (level, kind) in chosen.storage.kind.each() {
        let first = lines.len();
        level_storage(chosen, kind, lines);
        if let (Some(level), Some(line)) = (level, lines.get_mut(first)) {
            // The name follows the heading, which has 12 columns.
            line.insert_str(line.len().min(12), &format!("{level}: "));
        }
    }
    lines.push(String::new());
}

/// Result of the checks of one level of the axis `device`, or of storage that is not an axis.
fn level_storage(chosen: &ResolvedPlan, kind: &StorageKind, lines: &mut Vec<String>) {
    match kind {
        StorageKind::Devices { paths } => {
            for path in paths {
                let (permission, roots) = (Permission::default(), Roots::default());
                let claimed = guard::claim_device(Path::new(path), &permission, &roots, &[]);
                lines.push(match claimed {
                    Ok(device) => format!("device      {}", device.describe()),
                    Err(refusal) => format!("REJECTED    {}", chain(&refusal)),
                });
            }
        }
        StorageKind::Image { size, count, directory, allocation, .. } => {
            let directory = directory.as_deref().unwrap_or("/var/tmp");
            let total = Bytes(size.0.saturating_mul(u64::from(*count)));
            let place = Path::new(directory);
            let space = guard::space_for_images(place, total, Bytes(0), *allocation);
            let space = space.and_then(|()| match chosen.storage.memory_limit {
                Some(limit) => guard::images_within_limit(place, total, *allocation, limit),
                None => Ok(()),
            });
            lines.push(match space {
                Ok(()) => format!("images      in {directory}, which has enough space"),
                Err(refusal) => format!("REJECTED    {}", chain(&refusal)),
            });
        }
        StorageKind::Directory { path } => lines.push(match Path::new(path).is_dir() {
            true => {
                "directory   measured as mounted; fslab removes its subdirectory afterwards".into()
            }
            false => format!("REJECTED    {path} is not a directory"),
        }),
        StorageKind::Levels { .. } => {}
    }
}
