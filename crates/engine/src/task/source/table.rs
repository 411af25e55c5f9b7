//! Shape of a source tree, counted in Debian's package linux-source-6.1, version 6.1.192-2 (Linux
//! 6.1.192): 78,579 files with 1,298,681,992 bytes in 5,096 directories with 56 symbolic links.
//! Only counts were taken, no names or contents.

/// Files of the tree.
pub(in crate::task) const FILES: u64 = 78_579;
/// Directories of the tree, including its root.
pub(in crate::task) const DIRECTORIES: u64 = 5_096;
/// Symbolic links of the tree.
pub(in crate::task) const LINKS: u64 = 56;

/// Directories, and files in them, for each depth below the root, from 0.
pub(in crate::task) const DEPTHS: [(u64, u64); 10] = [
    (1, 14),
    (24, 1_101),
    (608, 13_741),
    (1_505, 24_933),
    (1_383, 20_826),
    (835, 11_667),
    (287, 3_047),
    (233, 2_509),
    (164, 510),
    (56, 231),
];

/// Quantiles of the sizes of files in bytes, as (number, size). Of 100,000 files, the given number
/// has at most the given size.
pub(in crate::task) const SIZES: [(u32, u64); 35] = [
    (0, 0),
    (100, 14),
    (1_000, 73),
    (5_000, 254),
    (10_000, 446),
    (20_000, 959),
    (30_000, 1_621),
    (40_000, 2_525),
    (50_000, 3_874),
    (60_000, 5_910),
    (70_000, 9_044),
    (80_000, 14_833),
    (85_000, 19_906),
    (90_000, 28_759),
    (93_000, 38_070),
    (95_000, 48_093),
    (97_000, 66_614),
    (98_000, 83_945),
    (98_500, 98_142),
    (99_000, 124_858),
    (99_300, 153_771),
    (99_500, 191_202),
    (99_650, 252_777),
    (99_750, 333_027),
    (99_800, 402_767),
    (99_850, 693_288),
    (99_900, 1_120_270),
    (99_920, 1_336_648),
    (99_940, 1_628_028),
    (99_960, 3_509_832),
    (99_970, 5_179_756),
    (99_980, 6_585_844),
    (99_990, 11_394_491),
    (99_995, 14_373_916),
    (100_000, 23_944_620),
];

/// Quantiles of the number of files per directory, in the same form.
pub(in crate::task) const PER_DIRECTORY: [(u32, u64); 17] = [
    (0, 0),
    (5_000, 0),
    (10_000, 1),
    (20_000, 2),
    (30_000, 3),
    (40_000, 4),
    (50_000, 6),
    (60_000, 8),
    (70_000, 11),
    (80_000, 18),
    (90_000, 32),
    (95_000, 52),
    (98_000, 104),
    (99_000, 156),
    (99_500, 210),
    (99_900, 484),
    (100_000, 2_541),
];

/// Quantiles of the length of file names in bytes, in the same form.
pub(in crate::task) const NAMES: [(u32, u64); 7] =
    [(0, 2), (5_000, 5), (25_000, 8), (50_000, 12), (75_000, 16), (95_000, 24), (100_000, 32)];

/// Value of a quantile from 0 to 1, interpolated linearly in the logarithm of the value plus 1. The
/// interpolation inflates the values: the sum of the sizes of a whole tree is 1 % above the counted
/// sum.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "values are below 2^25, and between the two interpolated ones"
)]
pub(in crate::task) fn quantile(table: &[(u32, u64)], part: f64) -> u64 {
    let place = part * 100_000.0;
    let logarithm = |value: u64| (value as f64 + 1.0).ln();
    for pair in table.windows(2) {
        let [(low, below), (high, above)] = [pair[0], pair[1]];
        if place <= f64::from(high) {
            let share = (place - f64::from(low)) / f64::from(high - low);
            let between = logarithm(below) * (1.0 - share) + logarithm(above) * share;
            return (between.exp() - 1.0 + 1e-6) as u64;
        }
    }
    table.last().map_or(0, |(_, value)| *value)
}

/// Quantiles `(i + ½) / count`. The values of all of them together follow a distribution exactly.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub(in crate::task) fn part(index: u64, count: u64) -> f64 {
    (index as f64 + 0.5) / count as f64
}
