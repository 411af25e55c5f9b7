//! Text that compresses like source code.
//!
//! Words are drawn from a small vocabulary, the first ones most frequently, and arranged in
//! indented lines; some runs of recent lines are repeated. With the constants below, gzip, level 6,
//! reduces a generated tree by a factor of about six (5.9 with 2,000 files), similar to the tree of
//! [`super::table`] (6.15).

/// Bytes of the text, from which files are cut at random offsets. Larger than the windows of the
/// compressors of filesystems, so that they find no repetition.
pub(super) const LENGTH: usize = 4 << 20;

const VOCABULARY: usize = 2_000;
/// Maximum distance in lines of a repeated line.
const RECENT: usize = 200;
/// Probability of a run of repeated lines after a line, in percent.
const REPEATED: u8 = 57;
/// Maximum length of such a run, in lines.
const RUN: usize = 4;

/// Text of [`LENGTH`] bytes, determined by the seed.
pub(super) fn text(random: &mut fastrand::Rng) -> Vec<u8> {
    let vocabulary: Vec<Vec<u8>> = (0..VOCABULARY)
        .map(|_| {
            let len = 2 + random.usize(0..4) + random.usize(0..5);
            (0..len).map(|_| random.u8(b'a'..=b'z')).collect()
        })
        .collect();
    let mut text = Vec::with_capacity(LENGTH + 512);
    let mut lines: Vec<std::ops::Range<usize>> = Vec::new();
    while text.len() < LENGTH {
        if random.u8(0..100) < REPEATED && !lines.is_empty() {
            let back = 1 + random.usize(0..lines.len().min(RECENT));
            let first = lines.len() - back;
            for line in first..first + back.min(1 + random.usize(0..RUN)) {
                let start = text.len();
                text.extend_from_within(lines[line].clone());
                lines.push(start..text.len());
            }
        } else {
            let start = text.len();
            write_line(&mut text, &vocabulary, random);
            lines.push(start..text.len());
        }
    }
    text.truncate(LENGTH);
    text
}

fn write_line(text: &mut Vec<u8>, vocabulary: &[Vec<u8>], random: &mut fastrand::Rng) {
    const BETWEEN: [&[u8]; 8] = [b" ", b" ", b"_", b", ", b"(", b"->", b" = ", b") "];
    text.extend(std::iter::repeat_n(b'\t', random.usize(0..4)));
    for word in 0..random.usize(1..8) {
        if word > 0 {
            text.extend_from_slice(BETWEEN[random.usize(0..BETWEEN.len())]);
        }
        // The cube favors the first words, as in natural languages.
        let draw = random.f64();
        text.extend_from_slice(&vocabulary[place(draw * draw * draw, vocabulary.len())]);
    }
    text.extend_from_slice(b";\n");
}

/// Index of one of `len` items for a fraction below 1.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a part of a small number"
)]
pub(super) fn place(part: f64, len: usize) -> usize {
    ((part * len as f64) as usize).min(len.saturating_sub(1))
}
