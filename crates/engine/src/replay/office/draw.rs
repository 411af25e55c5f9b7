//! Random draws with a fixed sum.

use fastrand::Rng;

/// `count` odd numbers from `low` to `high` in random order. Each has its mirror image among them,
/// so that their mean is about that of `low` and `high`.
///
/// The numbers are odd so that none equals a size that is counted separately.
pub(super) fn mirrored(count: usize, low: u32, high: u32, random: &mut Rng) -> Vec<u32> {
    let mut drawn = Vec::with_capacity(count + 1);
    while drawn.len() + 1 < count {
        let one = random.u32(low..=high);
        drawn.extend([one | 1, (low + high - one) | 1]);
    }
    if drawn.len() < count {
        drawn.push(low.midpoint(high) | 1);
    }
    random.shuffle(&mut drawn);
    drawn
}

/// `count` numbers from `low` to `high` with sum `total`.
///
/// # Panics
/// If no such numbers exist.
pub(super) fn parts(count: u32, low: u32, high: u32, total: u32, random: &mut Rng) -> Vec<u32> {
    assert!((count * low..=count * high).contains(&total), "the bounds allow the total");
    let mut parts = vec![low; count as usize];
    let mut left = total - count * low;
    while left > 0 {
        let part = random.choice(&mut parts).expect("there are parts");
        if *part < high {
            *part += 1;
            left -= 1;
        }
    }
    parts
}

/// Number of occurrences in this iteration of an item with `thousandths` / 1000 occurrences per
/// iteration. The total of the first iterations is less than one below its exact value.
#[expect(clippy::cast_possible_truncation, reason = "a difference of at most thousandths")]
pub(super) fn spread(thousandths: u64, iteration: u64) -> usize {
    ((iteration + 1) * thousandths / 1000 - iteration * thousandths / 1000) as usize
}
