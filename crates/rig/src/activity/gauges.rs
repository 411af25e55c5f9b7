//! Time series of sampled values: dirty memory and CPU frequency.

use std::path::Path;

use model::{
    Nanos,
    activity::{GaugeSeries, Unavailable},
};

use super::processors::Frequency;
use crate::host::Host;

/// Maximum number of points. Before it is exceeded, every second point is removed.
const MAX_POINTS: usize = 512;

/// Minimum interval between two readings of the CPU frequencies. The interval is long, because a
/// reading may interrupt each CPU.
const FREQUENCY_INTERVAL: Nanos = Nanos(1_000_000_000);

/// Series of points.
#[derive(Clone, Debug)]
pub(super) struct Series {
    started: Nanos,
    points: Vec<Point>,
    /// Number of samples per point.
    stride: u64,
    samples: u64,
    frequency: Frequency,
    /// Last frequency in Hz. `due` is the time of the next reading.
    last: Option<u64>,
    due: Nanos,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Point {
    at: Nanos,
    dirty: Option<u64>,
    writeback: Option<u64>,
    frequency: Option<u64>,
}

impl Series {
    pub(super) fn new(started: Nanos, frequency: Frequency) -> Self {
        let (points, due) = (Vec::with_capacity(MAX_POINTS), started);
        Self { started, points, stride: 1, samples: 0, frequency, last: None, due }
    }

    pub(super) fn samples(&self) -> u64 {
        self.samples
    }

    /// Takes a sample. A point is added once per `stride` samples, and for the `last` sample of the
    /// series.
    pub(super) fn sample(&mut self, host: &dyn Host, last: bool) {
        let turn = self.samples.is_multiple_of(self.stride);
        self.samples += 1;
        if !turn && !last {
            return;
        }
        let now = host.now();
        if now >= self.due {
            self.last = self.frequency.mean(host);
            self.due = now + FREQUENCY_INTERVAL;
        }
        let text = host.read(Path::new("/proc/meminfo")).unwrap_or_default();
        if self.points.len() == MAX_POINTS {
            let mut keep = false;
            self.points.retain(|_| {
                keep = !keep;
                keep
            });
            self.stride *= 2;
        }
        self.points.push(Point {
            at: now - self.started,
            dirty: kibibytes(&text, "Dirty:"),
            writeback: kibibytes(&text, "Writeback:"),
            frequency: self.last,
        });
    }

    /// Returns the series of each value; empty if the value is missing at any point.
    pub(super) fn gauges(&self, unavailable: &mut Vec<Unavailable>) -> GaugeSeries {
        let all = |value: fn(&Point) -> Option<u64>| {
            self.points.iter().map(value).collect::<Option<Vec<u64>>>().unwrap_or_default()
        };
        let gauges = GaugeSeries {
            times: self.points.iter().map(|point| point.at).collect(),
            dirty: all(|point| point.dirty),
            writeback: all(|point| point.writeback),
            frequency: all(|point| point.frequency),
        };
        if gauges.dirty.is_empty() || gauges.writeback.is_empty() {
            let why = "/proc/meminfo has no Dirty or no Writeback".into();
            unavailable.push(Unavailable { what: "dirty memory".into(), why });
        }
        gauges
    }
}

/// Value of a line of `/proc/meminfo`, in bytes.
fn kibibytes(text: &str, key: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(key))?;
    let number = rest.split_whitespace().next()?.parse::<u64>().ok()?;
    Some(number.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::FakeHost;

    #[test]
    fn a_long_series_is_thinned_evenly_and_keeps_both_ends() {
        let directory = tempfile::tempdir().unwrap();
        let host = FakeHost::new(directory.path())
            .file("/proc/meminfo", "MemTotal: 9 kB\nDirty:   3 kB\nWriteback: 1 kB\n");
        let mut series = Series::new(host.now(), Frequency::default());
        for sample in 0..5000u64 {
            series.sample(&host, sample == 4999);
            host.sleep(Nanos(100));
        }
        let mut unavailable = Vec::new();
        let gauges = series.gauges(&mut unavailable);
        assert_eq!((unavailable.as_slice(), series.samples()), ([].as_slice(), 5000));
        assert!(
            gauges.times.len() <= MAX_POINTS && gauges.times.len() >= MAX_POINTS / 2,
            "{}",
            gauges.times.len()
        );
        assert_eq!((gauges.times[0], *gauges.times.last().unwrap()), (Nanos(0), Nanos(499_900)));
        let steps: Vec<u64> = gauges.times.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(steps[..steps.len() - 1].iter().all(|step| *step == steps[0]), "{steps:?}");
        assert_eq!(gauges.dirty, vec![3072; gauges.times.len()]);
        assert_eq!(gauges.writeback, vec![1024; gauges.times.len()]);
        assert!(gauges.frequency.is_empty());
    }

    #[test]
    fn frequency_is_read_once_per_second() {
        let directory = tempfile::tempdir().unwrap();
        let at = |khz: u64| {
            FakeHost::new(directory.path())
                .file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1000000\n")
                .file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", &format!("{khz}\n"))
        };
        let host = at(3_000_000);
        let mut unavailable = Vec::new();
        let frequency = Frequency::find(&host, &mut unavailable);
        assert_eq!(unavailable, []);
        let mut series = Series::new(host.now(), frequency);
        for _ in 0..11 {
            series.sample(&host, false);
            at(1_000_000);
            host.sleep(Nanos(100_000_000));
        }
        let frequencies = series.gauges(&mut unavailable).frequency;
        assert_eq!(
            (frequencies[0], frequencies[9], frequencies[10]),
            (2_000_000_000, 2_000_000_000, 1_000_000_000)
        );
        assert_eq!(unavailable.len(), 1, "no meminfo here");
    }
}
