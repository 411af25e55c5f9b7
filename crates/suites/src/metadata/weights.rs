//! Weights of a mix as text: `stat=60,open=15`.

use model::{phase::MixOp, workload::ValueError};

/// Parses weighted operations and returns their canonical text: in the order of [`MixOp::ALL`],
/// without weights of 0 and without a common divisor of the weights.
pub(super) fn read(text: &str) -> Result<String, ValueError> {
    let mut given: Vec<(MixOp, u32)> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (word, weight) = part.split_once('=').ok_or_else(|| {
            ValueError::new(format!("invalid weighted operation `{part}`"))
                .hint("use a list such as `stat=60,open=15`")
        })?;
        let (word, weight) = (word.trim(), weight.trim());
        let op = named(word)?;
        let weight = weight.parse().map_err(|_| {
            ValueError::new(format!("invalid weight `{weight}`"))
                .hint("use an integer; 0 removes the operation")
        })?;
        if given.iter().any(|(other, _)| *other == op) {
            return Err(ValueError::new(format!("duplicate operation `{word}`"))
                .hint("list it once, with the sum of the weights"));
        }
        given.push((op, weight));
    }
    given.retain(|(_, weight)| *weight > 0);
    if given.is_empty() {
        return Err(ValueError::new("all weights are 0").hint("use a weight greater than 0"));
    }
    given.sort_unstable_by_key(|(op, _)| *op);
    let common = given.iter().fold(0, |common, (_, weight)| divisor(common, *weight)).max(1);
    let parts = given.iter().map(|(op, weight)| format!("{}={}", word(*op), weight / common));
    Ok(parts.collect::<Vec<_>>().join(","))
}

/// Operations and weights from canonical text.
pub(super) fn weights(text: &str) -> Vec<(MixOp, u32)> {
    let part = |part: &str| {
        let (word, weight) = part.split_once('=')?;
        Some((named(word).ok()?, weight.parse().ok()?))
    };
    text.split(',').filter_map(part).collect()
}

/// Greatest common divisor (Euclid).
fn divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { divisor(b, a % b) }
}

fn named(word: &str) -> Result<MixOp, ValueError> {
    let op = MixOp::ALL.into_iter().find(|(_, name)| *name == word);
    op.map(|(op, _)| op).ok_or_else(|| {
        let words: Vec<_> = MixOp::ALL.iter().map(|(_, name)| *name).collect();
        ValueError::new(format!("`{word}` is not one of {}", words.join(", ")))
    })
}

fn word(op: MixOp) -> &'static str {
    let name = MixOp::ALL.into_iter().find(|(other, _)| *other == op);
    name.map_or("", |(_, name)| name)
}
