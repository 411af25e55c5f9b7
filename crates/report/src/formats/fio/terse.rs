//! Terse output of fio, version 3: one line per job, fields separated by semicolons, times in
//! microseconds. Fields that fslab does not measure are 0.

use model::{Histogram, Metric, record::HistogramKind};

use super::{
    Job,
    entry::{PERCENTILES, deviation, latencies, milliseconds, rates, whole},
    name,
};
use crate::samples::value;

/// Upper limits of the latency distribution in microseconds; the last class has no limit.
const LIMITS: [u64; 21] = [
    2, 4, 10, 20, 50, 100, 250, 500, 750, 1000, 2000, 4000, 10_000, 20_000, 50_000, 100_000,
    250_000, 500_000, 750_000, 1_000_000, 2_000_000,
];

/// Lines of all jobs.
pub(super) fn terse(jobs: &[Job<'_>], version: &str) -> String {
    jobs.iter().map(|job| line(job, version) + "\n").collect()
}

fn line(job: &Job<'_>, version: &str) -> String {
    let sample = |metric| value(job.trial, &job.phase.name, metric).unwrap_or_default();
    let mut fields = vec![
        "3".to_owned(),
        version.to_owned(),
        name(job).replace(';', "_"),
        job.group.to_string(),
        "0".to_owned(),
    ];
    let sides = rates(job);
    for (rates, kind) in sides.iter().zip([HistogramKind::Read, HistogramKind::Write]) {
        let (bytes, _) = rates.totals();
        let [submission, completion, latency] = latencies(job, *rates, kind);
        let runtime = if rates.is_used() { milliseconds(rates.time) } else { 0 };
        fields.push((bytes / 1024).to_string());
        fields.push((whole(rates.bytes) / 1024).to_string());
        fields.push(whole(rates.operations).to_string());
        fields.push(runtime.to_string());
        fields.extend(times(submission));
        fields.extend(times(completion));
        for place in 0..20 {
            let percent = PERCENTILES.get(place).copied().unwrap_or_default();
            let time = completion.filter(|_| percent > 0.0);
            let time = time.and_then(|own| own.quantile(percent / 100.0));
            fields.push(format!("{percent:.6}%={}", time.map_or(0, |time| time.0 / 1000)));
        }
        fields.extend(times(latency));
        fields.extend(["0", "0", "0.000000%", "0.000000", "0.000000"].map(str::to_owned));
    }
    let percent = |metric| format!("{:.6}%", sample(metric) * 100.0);
    fields.push(percent(Metric::UserCpuUtilization));
    fields.push(percent(Metric::SystemCpuUtilization));
    let switches =
        sample(Metric::VoluntaryContextSwitches) + sample(Metric::InvoluntaryContextSwitches);
    fields.push(whole(switches).to_string());
    fields.push(whole(sample(Metric::MajorFaults)).to_string());
    fields.push(whole(sample(Metric::MinorFaults)).to_string());
    fields.extend((0..7).map(|_| "0.0%".to_owned()));
    fields.extend(distribution(job));
    fields.join(";")
}

/// Minimum, maximum, mean, and standard deviation.
fn times(histogram: Option<&Histogram>) -> [String; 4] {
    let limit = |time: fn(&Histogram) -> Option<model::Nanos>| {
        histogram.and_then(time).map_or(0, |time| time.0 / 1000).to_string()
    };
    let mean = histogram.and_then(Histogram::mean).map_or(0.0, |mean| mean.seconds() * 1e9);
    let spread = histogram.map_or(0.0, |own| deviation(own, mean));
    [
        limit(Histogram::min),
        limit(Histogram::max),
        format!("{:.6}", mean / 1000.0),
        format!("{:.6}", spread / 1000.0),
    ]
}

/// Percentage of operations in each class of latency, in both directions together.
fn distribution(job: &Job<'_>) -> Vec<String> {
    let mut counts = [0u64; LIMITS.len() + 1];
    for (rates, kind) in rates(job).iter().zip([HistogramKind::Read, HistogramKind::Write]) {
        let [_, _, latency] = latencies(job, *rates, kind);
        for (lowest, count) in latency.into_iter().flat_map(Histogram::buckets) {
            let class = LIMITS.iter().position(|limit| lowest.0 / 1000 < *limit);
            counts[class.unwrap_or(LIMITS.len())] += count;
        }
    }
    let total = counts.iter().sum::<u64>().max(1);
    let percent = |count: &u64| format!("{:.2}%", *count as f64 * 100.0 / total as f64);
    counts.iter().map(percent).collect()
}
