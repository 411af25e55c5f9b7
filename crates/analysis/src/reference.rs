//! Reference values of SciPy and statsmodels for tests, from `reference/*.txt`.

const TEXTS: [&str; 5] = [
    include_str!("../reference/values.txt"),
    include_str!("../reference/compare.txt"),
    include_str!("../reference/stability.txt"),
    include_str!("../reference/trends.txt"),
    include_str!("../reference/moments.txt"),
];

/// Numbers of the line with the given name.
pub(crate) fn values(name: &str) -> Vec<f64> {
    let line = lines(name).next();
    line.unwrap_or_else(|| panic!("no file in reference/ has a line {name}"))
}

/// Numbers of all lines with the given name.
pub(crate) fn lines(name: &str) -> impl Iterator<Item = Vec<f64>> {
    TEXTS.into_iter().flat_map(str::lines).filter_map(move |line| {
        let mut text = line.split(' ');
        (text.next() == Some(name)).then(|| text.map(|word| word.parse().unwrap()).collect())
    })
}

/// Asserts that two numbers agree up to a fraction of the second one.
#[track_caller]
pub(crate) fn near(ours: f64, theirs: f64, share: f64) {
    assert!((ours - theirs).abs() <= share * theirs.abs().max(1e-12), "{ours} is not {theirs}");
}
