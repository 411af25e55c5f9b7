//! Slowest host of a phase over repetitions.
//!
//! Under the null hypothesis, all hosts are equally fast, so the host labels of each repetition are
//! exchangeable. The statistic is the largest mean rank of a host over the repetitions, and its
//! distribution is that under random permutations of the labels within each repetition. One slow
//! repetition of a host is therefore not evidence.

/// Permutations of the test.
const PERMUTATIONS: u32 = 9_999;
/// Seed of the permutations. The result must not depend on when a report is created.
const SEED: u64 = 0x686f_7374;
/// Significance level.
pub const LEVEL: f64 = 0.05;

/// Slowest host, and the evidence for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slowest {
    /// Index of the host.
    pub host: usize,
    /// Probability of a host that is slowest as consistently as this one, if all are equally fast.
    pub p: f64,
    /// Number of repetitions.
    pub n: usize,
}

impl Slowest {
    /// True if the host is significantly slower than the others.
    pub fn is_straggler(&self) -> bool {
        self.p < LEVEL
    }
}

/// Finds the slowest host. `times` contains the time of each host in each repetition; a larger
/// value is slower. `None` if there are fewer than two hosts, or the numbers of hosts differ.
pub fn slowest(times: &[Vec<f64>]) -> Option<Slowest> {
    let hosts = times.first()?.len();
    if hosts < 2 || times.iter().any(|own| own.len() != hosts) {
        return None;
    }
    let mut ranks: Vec<Vec<f64>> = times.iter().map(|own| ranked(own)).collect();
    let (host, observed) = largest(&ranks, hosts);
    let mut rng = fastrand::Rng::with_seed(SEED);
    let mut extreme = 1_u32;
    for _ in 0..PERMUTATIONS {
        ranks.iter_mut().for_each(|own| rng.shuffle(own));
        if largest(&ranks, hosts).1 >= observed - 1e-9 {
            extreme += 1;
        }
    }
    let p = f64::from(extreme) / f64::from(PERMUTATIONS + 1);
    Some(Slowest { host, p, n: times.len() })
}

/// Ranks of the values, 1 for the smallest; equal values have their mean rank.
fn ranked(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count();
    let equal = |value: f64| values.iter().filter(|other| **other == value).count();
    let number = |count: usize| u32::try_from(count).map_or(f64::MAX, f64::from);
    values.iter().map(|value| number(below(*value)) + (number(equal(*value)) + 1.0) / 2.0).collect()
}

/// Host with the largest sum of ranks, and the sum.
fn largest(ranks: &[Vec<f64>], hosts: usize) -> (usize, f64) {
    let sum = |host: usize| ranks.iter().map(|own| own[host]).sum::<f64>();
    let sums = (0..hosts).map(|host| (host, sum(host)));
    sums.max_by(|(_, one), (_, other)| one.total_cmp(other)).unwrap_or((0, 0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_always_slowest_is_a_straggler() {
        let times: Vec<Vec<f64>> = (0..6).map(|n| vec![1.0, 1.1, 2.0 + f64::from(n)]).collect();
        let found = slowest(&times).unwrap();
        assert_eq!((found.host, found.n), (2, 6));
        assert!(found.is_straggler(), "{found:?}");
    }

    #[test]
    fn one_slow_repetition_is_not_evidence() {
        let mut times: Vec<Vec<f64>> = (0..8)
            .map(|n| if n % 2 == 0 { vec![1.0, 1.1, 1.2] } else { vec![1.2, 1.1, 1.0] })
            .collect();
        times[0] = vec![1.0, 50.0, 1.0];
        assert!(!slowest(&times).unwrap().is_straggler());
        let one = slowest(&times[..1]).unwrap();
        assert!(!one.is_straggler(), "a single repetition: {one:?}");
    }

    #[test]
    fn equal_hosts_are_rarely_called_stragglers() {
        let mut rng = fastrand::Rng::with_seed(3);
        let mut runs = 0;
        for _ in 0..100 {
            let times: Vec<Vec<f64>> =
                (0..8).map(|_| (0..4).map(|_| rng.f64()).collect()).collect();
            runs += u32::from(slowest(&times).unwrap().is_straggler());
        }
        assert!(runs <= 12, "{runs} of 100");
    }

    #[test]
    fn a_comparison_needs_two_hosts() {
        assert_eq!(slowest(&[vec![1.0]]), None);
        assert_eq!(slowest(&[]), None);
        assert_eq!(slowest(&[vec![1.0, 2.0], vec![1.0]]), None);
    }
}
