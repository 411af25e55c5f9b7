//! Values that are looked at again and again: memory that waits to be written, and frequency.

use std::path::Path;

use model::{
    Nanos,
    evidence::{Absent, Gauges},
};

use super::processors::Frequency;
use crate::host::Host;

/// Points kept; one more, and every other one goes.
const MOST: usize = 512;

/// Reading frequencies may ask each processor by an interrupt, so it is done no more often.
const FREQUENCY_INTERVAL: Nanos = Nanos(1_000_000_000);

/// A growing series of points.
#[derive(Clone, Debug)]
pub(super) struct Series {
    started: Nanos,
    points: Vec<Point>,
    /// Looks for one point kept.
    stride: u64,
    looks: u64,
    frequency: Frequency,
    /// The last frequency, and when it is read again.
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
        let (points, due) = (Vec::with_capacity(MOST), started);
        Self { started, points, stride: 1, looks: 0, frequency, last: None, due }
    }

    /// How often it was looked.
    pub(super) fn looks(&self) -> u64 {
        self.looks
    }

    /// Looks once. The point is kept if its turn has come, or if it is the `last` of the series.
    pub(super) fn look(&mut self, host: &dyn Host, last: bool) {
        let turn = self.looks.is_multiple_of(self.stride);
        self.looks += 1;
        if !turn && !last {
            return;
        }
        let now = host.now();
        if now >= self.due {
            self.last = self.frequency.mean(host);
            self.due = now + FREQUENCY_INTERVAL;
        }
        let text = host.read(Path::new("/proc/meminfo")).unwrap_or_default();
        if self.points.len() == MOST {
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

    /// The series; a value that was missing at any point is absent at all of them.
    pub(super) fn gauges(&self, absent: &mut Vec<Absent>) -> Gauges {
        let all = |value: fn(&Point) -> Option<u64>| {
            self.points.iter().map(value).collect::<Option<Vec<u64>>>().unwrap_or_default()
        };
        let gauges = Gauges {
            at: self.points.iter().map(|point| point.at).collect(),
            dirty: all(|point| point.dirty),
            writeback: all(|point| point.writeback),
            frequency: all(|point| point.frequency),
        };
        if gauges.dirty.is_empty() || gauges.writeback.is_empty() {
            let why = "/proc/meminfo does not tell Dirty and Writeback".into();
            absent.push(Absent { what: "memory that waits to be written".into(), why });
        }
        gauges
    }
}

/// A line of `/proc/meminfo`, in bytes.
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
        let folder = tempfile::tempdir().unwrap();
        let host = FakeHost::new(folder.path())
            .file("/proc/meminfo", "MemTotal: 9 kB\nDirty:   3 kB\nWriteback: 1 kB\n");
        let mut series = Series::new(host.now(), Frequency::default());
        for look in 0..5000u64 {
            series.look(&host, look == 4999);
            host.sleep(Nanos(100));
        }
        let mut absent = Vec::new();
        let gauges = series.gauges(&mut absent);
        assert_eq!((absent.as_slice(), series.looks()), ([].as_slice(), 5000));
        assert!(gauges.at.len() <= MOST && gauges.at.len() >= MOST / 2, "{}", gauges.at.len());
        assert_eq!((gauges.at[0], *gauges.at.last().unwrap()), (Nanos(0), Nanos(499_900)));
        let steps: Vec<u64> = gauges.at.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
        assert!(steps[..steps.len() - 1].iter().all(|step| *step == steps[0]), "{steps:?}");
        assert_eq!(gauges.dirty, vec![3072; gauges.at.len()]);
        assert_eq!(gauges.writeback, vec![1024; gauges.at.len()]);
        assert!(gauges.frequency.is_empty());
    }

    #[test]
    fn frequency_is_read_once_a_second_and_held() {
        let folder = tempfile::tempdir().unwrap();
        let at = |khz: u64| {
            FakeHost::new(folder.path())
                .file("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "1000000\n")
                .file("/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", &format!("{khz}\n"))
        };
        let host = at(3_000_000);
        let mut absent = Vec::new();
        let frequency = Frequency::find(&host, &mut absent);
        assert_eq!(absent, []);
        let mut series = Series::new(host.now(), frequency);
        for _ in 0..11 {
            series.look(&host, false);
            at(1_000_000);
            host.sleep(Nanos(100_000_000));
        }
        let told = series.gauges(&mut absent).frequency;
        assert_eq!((told[0], told[9], told[10]), (2_000_000_000, 2_000_000_000, 1_000_000_000));
        assert_eq!(absent.len(), 1, "no meminfo here");
    }
}
