//! Text output of fio: the lines that scripts search for, with their spelling.

use model::{Histogram, Metric, Nanos, record::HistogramKind};

use super::{
    Job,
    entry::{PERCENTILES, Rates, deviation, latencies, milliseconds, rates, whole},
    name,
};
use crate::samples::value;

/// Jobs, and the sums of their groups.
pub(super) fn normal(jobs: &[Job<'_>], version: &str) -> String {
    let mut text = String::new();
    for job in jobs {
        let section = job.section.as_ref();
        let option = |name| section.and_then(|own| own.option(name)).unwrap_or_default();
        let rw = if option("rw").is_empty() { "read" } else { option("rw") };
        let engine = if option("ioengine").is_empty() { "psync" } else { option("ioengine") };
        let depth = if option("iodepth").is_empty() { "1" } else { option("iodepth") };
        text.push_str(&format!(
            "{}: (g={}): rw={rw}, ioengine={engine}, iodepth={depth}\n",
            name(job),
            job.group
        ));
    }
    text.push_str(version);
    text.push_str(" (fio job, measured by fslab)\n");
    for job in jobs {
        text.push_str(&one(job));
    }
    let mut groups: Vec<usize> = jobs.iter().map(|job| job.group).collect();
    groups.dedup();
    for group in groups {
        text.push_str(&format!("\nRun status group {group} (all jobs):\n"));
        for (place, label) in [(0, "READ"), (1, "WRITE")] {
            let own = jobs.iter().filter(|job| job.group == group).map(|job| rates(job)[place]);
            let used: Vec<Rates> = own.filter(|rates| rates.is_used()).collect();
            if !used.is_empty() {
                text.push_str(&status(label, &used));
            }
        }
    }
    text
}

fn one(job: &Job<'_>) -> String {
    let workers = job.section.as_ref().and_then(|own| own.option("numjobs")).unwrap_or("1");
    let mut text = format!("\n{}: (groupid={}, jobs={workers}): err= 0\n", name(job), job.group);
    for (rates, kind, label) in rates(job)
        .into_iter()
        .zip([HistogramKind::Read, HistogramKind::Write])
        .zip(["read", "write"])
        .map(|((rates, kind), label)| (rates, kind, label))
        .filter(|(rates, ..)| rates.is_used())
    {
        let (bytes, _) = rates.totals();
        text.push_str(&format!(
            "  {label}: IOPS={}, BW={} ({})({}/{}msec)\n",
            decimal(rates.operations),
            binary(rates.bytes) + "/s",
            decimal_bytes(rates.bytes) + "/s",
            binary(bytes as f64),
            milliseconds(rates.time)
        ));
        let [submission, completion, latency] = latencies(job, rates, kind);
        let parts = [("slat", submission), ("clat", completion), ("lat", latency)];
        for (label, histogram) in parts {
            if let Some(histogram) = histogram {
                text.push_str(&times(label, histogram));
            }
        }
        if let Some(completion) = completion {
            text.push_str(&percentiles(completion));
        }
    }
    let sample = |metric| value(job.trial, &job.phase.name, metric).unwrap_or_default();
    let switches =
        sample(Metric::VoluntaryContextSwitches) + sample(Metric::InvoluntaryContextSwitches);
    text.push_str(&format!(
        "  cpu          : usr={:.2}%, sys={:.2}%, ctx={}, majf={}, minf={}\n",
        sample(Metric::UserCpuUtilization) * 100.0,
        sample(Metric::SystemCpuUtilization) * 100.0,
        whole(switches),
        whole(sample(Metric::MajorFaults)),
        whole(sample(Metric::MinorFaults))
    ));
    let sides = rates(job).map(|rates| rates.totals().1);
    text.push_str(&format!(
        "     issued rwts: total={},{},0,0 short=0,0,0,0 dropped=0,0,0,0\n",
        sides[0], sides[1]
    ));
    text
}

/// Unit of times whose mean is this large: nanoseconds per unit, and its name.
fn unit(mean: f64) -> (f64, &'static str) {
    match mean {
        mean if mean >= 2e6 => (1e6, "msec"),
        mean if mean >= 2e3 => (1e3, "usec"),
        _ => (1.0, "nsec"),
    }
}

fn times(label: &str, histogram: &Histogram) -> String {
    let nanos = |time: Option<Nanos>| time.map_or(0.0, |time| time.seconds() * 1e9);
    let mean = nanos(histogram.mean());
    let (scale, unit) = unit(mean);
    format!(
        "    {label:>4} ({unit}): min={}, max={}, avg={:.2}, stdev={:.2}\n",
        whole(nanos(histogram.min()) / scale),
        whole(nanos(histogram.max()) / scale),
        mean / scale,
        deviation(histogram, mean) / scale
    )
}

fn percentiles(histogram: &Histogram) -> String {
    let mean = histogram.mean().map_or(0.0, |mean| mean.seconds() * 1e9);
    let (scale, unit) = unit(mean);
    let mut text = format!("    clat percentiles ({unit}):\n");
    let entries: Vec<String> = PERCENTILES
        .iter()
        .map(|percent| {
            let time = histogram.quantile(percent / 100.0).map_or(0.0, |own| own.seconds() * 1e9);
            format!("{percent:>5.2}th=[{:>5}]", whole(time / scale))
        })
        .collect();
    let count = entries.chunks(3).count();
    for (place, row) in entries.chunks(3).enumerate() {
        let end = if place + 1 == count { "" } else { "," };
        text.push_str(&format!("     | {}{end}\n", row.join(", ")));
    }
    text
}

/// Sums of a group: total rate, lowest and highest rate of a job, bytes, and time.
fn status(label: &str, used: &[Rates]) -> String {
    let bytes: u64 = used.iter().map(|rates| rates.totals().0).sum();
    let times: Vec<u64> = used.iter().map(|rates| milliseconds(rates.time)).collect();
    let (least, most) =
        (times.iter().min().copied().unwrap_or(1), times.iter().max().copied().unwrap_or(1));
    let total = bytes as f64 * 1000.0 / most.max(1) as f64;
    let each = used.iter().map(|rates| rates.bytes);
    let (slowest, fastest) =
        each.fold((f64::INFINITY, 0.0f64), |(low, high), own| (low.min(own), high.max(own)));
    format!(
        "{label:>7}: bw={}/s ({}/s), {}/s-{}/s ({}/s-{}/s), io={} ({}), run={least}-{most}msec\n",
        binary(total),
        decimal_bytes(total),
        binary(slowest),
        binary(fastest),
        decimal_bytes(slowest),
        decimal_bytes(fastest),
        binary(bytes as f64),
        decimal_bytes(bytes as f64)
    )
}

/// Bytes with a binary unit: `48.2MiB`.
fn binary(bytes: f64) -> String {
    scaled(bytes, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"])
}

/// Bytes with a decimal unit: `50.5MB`.
fn decimal_bytes(bytes: f64) -> String {
    scaled(bytes, 1000.0, &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// Number with a decimal unit: `12.3k`.
fn decimal(number: f64) -> String {
    scaled(number, 1000.0, &["", "k", "M", "G", "T", "P"])
}

/// Number below the next unit, with at most three digits unless it is an integer.
fn scaled(mut number: f64, step: f64, units: &[&str]) -> String {
    let mut place = 0;
    // As in fio, four digits are printed before the next unit.
    while number >= 10_000.0 && place + 1 < units.len() {
        number /= step;
        place += 1;
    }
    let digits = match number {
        number if place == 0 || number >= 100.0 => 0,
        number if number >= 10.0 => 1,
        _ => 2,
    };
    format!("{number:.digits$}{}", units[place])
}
