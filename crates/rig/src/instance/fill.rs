//! Filling a filesystem up to a part of its space, before it is measured.
//!
//! The files are the same for the same seed and space, so that filesystems are filled alike: sizes
//! within [4 KiB, 4 MiB), evenly over the ten doublings between, and evenly within each; 256 files
//! in a folder; data that does not compress. That puts half the files below 128 KiB and half the
//! bytes into files of 2 MiB and more. The mix is ours: it stands for no machine in particular, but
//! small files leave their mark on the metadata and large ones on the data.
//!
//! Space is looked at after each folder was written back, since some filesystems know what a file
//! takes only then. What is still lacking is approached from below, by fifteen sixteenths of it at
//! a time, since metadata take space, too.

use std::{path::Path, sync::atomic::AtomicBool};

use model::{Bytes, Fullness};

use crate::{
    bench::Bench,
    caches,
    error::RigError,
    host::{Host, Random, Statistics},
};

/// The folder of the files, in the root of the filesystem.
pub(crate) const FOLDER: &str = "fslab-fill";

/// The seed of sizes and data: fixed, so that all repeats and all filesystems get the same files.
const SEED: u64 = 0x6673_6c61_6266_696c;

/// Files in a folder.
const FILES: usize = 256;

/// The least size of a file.
const LEAST: u64 = 4 << 10;

/// The sizes span this many doublings.
const DOUBLINGS: u64 = 10;

/// Folders in a row that may leave the space as it is before filling is given up: some filesystems
/// tell of space late.
const PATIENCE: u32 = 8;

/// Fills a filesystem until `fullness` of what was usable is taken, and leaves nothing unwritten.
///
/// # Errors
/// [`RigError::Fill`] when the files do not fit, with what was reached.
pub(super) fn fill(
    bench: &mut Bench,
    host: &dyn Host,
    directory: &Path,
    fullness: Fullness,
    stop: &AtomicBool,
) -> Result<(), RigError> {
    let before = super::statistics(host, directory)?;
    let percent = u64::from(fullness.0.min(100));
    let goal = Bytes(before.usable.0 - before.usable.0 / 100 * percent);
    let close = Bytes((before.usable.0 / 1000).max(16 * LEAST));
    let (mut random, mut folder, mut patience) = (Random::new(SEED), 0, PATIENCE);
    let mut now = before;
    while now.usable > goal + close && patience > 0 {
        let lacking = now.usable - goal;
        let sizes = batch(&mut random, Bytes(lacking.0 - lacking.0 / 16));
        let seed = random.draw();
        let path = directory.join(FOLDER).join(format!("{folder:05}"));
        let what = format!("make {} files in {}", sizes.len(), path.display());
        let (made, _) = bench.act(what, |host| host.make_files(&path, &sizes, seed, stop));
        made.map_err(|source| RigError::Fill {
            directory: directory.to_owned(),
            wanted: fullness,
            reached: super::statistics(host, directory)
                .map_or_else(|_| "an unknown part".into(), |now| text(reached(before, now))),
            source,
        })?;
        caches::sync(bench, directory)?;
        let last = std::mem::replace(&mut now, super::statistics(host, directory)?);
        patience = if now.usable < last.usable { PATIENCE } else { patience - 1 };
        folder += 1;
    }
    Ok(())
}

/// The part of what was usable that is taken now, in percent.
#[expect(clippy::cast_precision_loss, reason = "sizes of filesystems, to a tenth of a percent")]
pub(super) fn reached(before: Statistics, now: Statistics) -> f64 {
    let taken = before.usable - now.usable;
    if before.usable == Bytes(0) { 0.0 } else { taken.0 as f64 * 100.0 / before.usable.0 as f64 }
}

/// A percentage in words.
pub(super) fn text(percent: f64) -> String {
    format!("{percent:.1} %")
}

/// Sizes of the files of the next folder: as many as a folder takes, and no more bytes than `most`.
fn batch(random: &mut Random, most: Bytes) -> Vec<Bytes> {
    let (mut sizes, mut left) = (Vec::new(), most.0);
    while sizes.len() < FILES && left > 0 {
        let octave = LEAST << (random.draw() % DOUBLINGS);
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
    fn a_folder_holds_a_mix_of_sizes_and_no_more_than_asked() {
        let mut random = Random::new(SEED);
        let sizes = batch(&mut random, Bytes::gib(1));
        assert_eq!(sizes.len(), FILES);
        assert!(sizes.iter().all(|size| (LEAST..LEAST << DOUBLINGS).contains(&size.0)));
        let of_octave = |octave: u64| {
            let octave = LEAST << octave;
            sizes.iter().filter(|size| (octave..2 * octave).contains(&size.0)).count()
        };
        assert!((0..DOUBLINGS).all(|octave| (10..45).contains(&of_octave(octave))));
        assert_eq!(sizes, batch(&mut Random::new(SEED), Bytes::gib(1)));
        let few = batch(&mut random, Bytes::mib(8));
        assert!(few.len() < FILES);
        assert_eq!(few.into_iter().sum::<Bytes>(), Bytes::mib(8));
    }
}
