//! Files of incompressible data, to fill a filesystem.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
};

use model::Bytes;

/// Bytes per write.
const PIECE: usize = 1 << 20;

/// Creates a directory with its parents, and creates the files `000`, `001`, … with the given sizes
/// in this directory. The same seed gives the same data.
pub(super) fn make_files(
    directory: &Path,
    sizes: &[Bytes],
    seed: u64,
    stop: &AtomicBool,
) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let mut piece = vec![0; PIECE];
    let mut random = Random::new(seed);
    for (index, size) in sizes.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut file = File::create_new(directory.join(format!("{index:03}")))?;
        let mut left = usize::try_from(size.0).map_err(io::Error::other)?;
        while left > 0 {
            let piece = &mut piece[..left.min(PIECE)];
            random.fill(piece);
            file.write_all(piece)?;
            left -= piece.len();
        }
    }
    Ok(())
}

/// `SplitMix64` (Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014):
/// few instructions per eight bytes, and incompressible output.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Fills a buffer with random bytes.
    fn fill(&mut self, piece: &mut [u8]) {
        for word in piece.chunks_mut(8) {
            let bytes = self.draw().to_le_bytes();
            word.copy_from_slice(&bytes[..word.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_matches_its_reference() {
        // First outputs for seed 0 of the reference implementation (prng.di.unimi.it/splitmix64.c).
        let mut random = Random::new(0);
        assert_eq!(random.draw(), 0xe220_a839_7b1d_cdaf);
        assert_eq!(random.draw(), 0x6e78_9e6a_a1b9_65f4);
    }

    #[test]
    fn files_have_their_sizes_and_reproducible_data() {
        let directory = tempfile::tempdir().unwrap();
        let sizes = [Bytes(0), Bytes(5), Bytes(PIECE as u64 + 3)];
        let data = |name: &str, seed| {
            let directory = directory.path().join(name).join("sub");
            make_files(&directory, &sizes, seed, &AtomicBool::new(false)).unwrap();
            (0..3).map(|i| fs::read(directory.join(format!("00{i}"))).unwrap()).collect::<Vec<_>>()
        };
        let one = data("one", 7);
        assert_eq!(one.iter().map(Vec::len).collect::<Vec<_>>(), [0, 5, PIECE + 3]);
        let stop = AtomicBool::new(true);
        let stopped = make_files(&directory.path().join("none"), &sizes, 7, &stop);
        assert_eq!(stopped.unwrap_err().kind(), io::ErrorKind::Interrupted);
        assert_eq!(one, data("two", 7));
        assert_ne!(one, data("three", 8));
        // All byte values are about equally frequent, so the data is incompressible.
        let mut counts = [0_u32; 256];
        one[2].iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        assert!(counts.iter().all(|count| (3600..4600).contains(count)), "{counts:?}");
    }
}
