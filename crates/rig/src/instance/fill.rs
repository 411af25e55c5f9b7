//! Fills a filesystem to the fill level of the plan, before the workload.
//!
//! The files depend only on a fixed seed and on the available space, so that all filesystems are
//! filled with the same files as far as possible. Each directory has 256 files with incompressible
//! data. The size of a file is at least 4 KiB and less than 4 MiB: each of the ten doublings of
//! this range is equally probable, and sizes within a doubling are uniform. Half of the files are
//! therefore smaller than 128 KiB, and half of the bytes are in files of at least 2 MiB. The
//! distribution is a project default, not taken from a real system: small files use metadata, and
//! large files use data blocks.
//!
//! After each directory, the filesystem is synced and the available space is read, because some
//! filesystems allocate space only then. The files of a directory use at most 15/16 of the space
//! that is still to be filled, because their metadata also needs space.

use std::{path::Path, sync::atomic::AtomicBool};

use model::{Bytes, FillLevel};

use crate::{
    caches,
    error::RigError,
    host::{Host, Random, Statistics},
    journaled_host::JournaledHost,
};

/// Directory of the files, in the root directory of the filesystem.
pub(crate) const FILL_DIRECTORY: &str = "fslab-fill";

/// Seed of the sizes and the data. The seed is fixed, so that all repetitions and all filesystems
/// get the same files.
const SEED: u64 = 0x6673_6c61_6266_696c;

/// Files per directory.
const FILES: usize = 256;

/// Smallest file size.
const MIN_SIZE: u64 = 4 << 10;

/// Number of doublings between the minimum and the maximum file size.
const DOUBLINGS: u64 = 10;

/// Number of consecutive directories after which filling stops if the available space does not
/// decrease. One directory is not sufficient, because some filesystems report used space late.
const PATIENCE: u32 = 8;

/// Creates files until they use `fill_level` percent of the space that was available before, and
/// syncs the filesystem. The deviation is at most the larger of 0.1 % of that space and 64 KiB.
///
/// # Errors
/// [`RigError::Fill`] if a file cannot be created or filling is interrupted, with the level
/// reached.
pub(super) fn fill(
    journaled: &mut JournaledHost,
    host: &dyn Host,
    directory: &Path,
    fill_level: FillLevel,
    stop: &AtomicBool,
) -> Result<(), RigError> {
    let before = super::statistics(host, directory)?;
    let percent = u64::from(fill_level.0.min(100));
    let goal = Bytes(before.available.0 - before.available.0 / 100 * percent);
    let close = Bytes((before.available.0 / 1000).max(16 * MIN_SIZE));
    let (mut random, mut directory_number, mut patience) = (Random::new(SEED), 0, PATIENCE);
    let mut now = before;
    while now.available > goal + close && patience > 0 {
        let lacking = now.available - goal;
        let sizes = batch(&mut random, Bytes(lacking.0 - lacking.0 / 16));
        let seed = random.draw();
        let path = directory.join(FILL_DIRECTORY).join(format!("{directory_number:05}"));
        let what = format!("create {} files in {}", sizes.len(), path.display());
        let (made, _) = journaled.execute(what, |host| host.make_files(&path, &sizes, seed, stop));
        made.map_err(|source| RigError::Fill {
            directory: directory.to_owned(),
            wanted: fill_level,
            reached: super::statistics(host, directory)
                .map_or_else(|_| "an unknown level".into(), |now| percentage(reached(before, now))),
            source,
        })?;
        caches::sync(journaled, directory)?;
        let last = std::mem::replace(&mut now, super::statistics(host, directory)?);
        patience = if now.available < last.available { PATIENCE } else { patience - 1 };
        directory_number += 1;
    }
    Ok(())
}

/// Percentage of the previously available space that is used now.
#[expect(clippy::cast_precision_loss, reason = "sizes of filesystems, to a tenth of a percent")]
pub(super) fn reached(before: Statistics, now: Statistics) -> f64 {
    let taken = before.available - now.available;
    if before.available == Bytes(0) {
        0.0
    } else {
        taken.0 as f64 * 100.0 / before.available.0 as f64
    }
}

pub(super) fn percentage(percent: f64) -> String {
    format!("{percent:.1} %")
}

/// Sizes of the files in the next directory: 256 files, or fewer if their total size reaches
/// `most`.
fn batch(random: &mut Random, most: Bytes) -> Vec<Bytes> {
    let (mut sizes, mut left) = (Vec::new(), most.0);
    while sizes.len() < FILES && left > 0 {
        let octave = MIN_SIZE << (random.draw() % DOUBLINGS);
        let size = (octave + random.draw() % octave).min(left);
        sizes.push(Bytes(size));
        left -= size;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_a_mix_of_sizes_within_the_limit() {
        let mut random = Random::new(SEED);
        let sizes = batch(&mut random, Bytes::gib(1));
        assert_eq!(sizes.len(), FILES);
        assert!(sizes.iter().all(|size| (MIN_SIZE..MIN_SIZE << DOUBLINGS).contains(&size.0)));
        let of_octave = |octave: u64| {
            let octave = MIN_SIZE << octave;
            sizes.iter().filter(|size| (octave..2 * octave).contains(&size.0)).count()
        };
        assert!((0..DOUBLINGS).all(|octave| (10..45).contains(&of_octave(octave))));
        assert_eq!(sizes, batch(&mut Random::new(SEED), Bytes::gib(1)));
        let few = batch(&mut random, Bytes::mib(8));
        assert!(few.len() < FILES);
        assert_eq!(few.into_iter().sum::<Bytes>(), Bytes::mib(8));
    }
}
