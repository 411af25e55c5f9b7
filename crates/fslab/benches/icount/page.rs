//! Page on the repeatability of instruction counts, written from one run of the benchmark.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use crate::{file_name, host, ranks::Agreement, release};

/// Probes with a stricter limit, because they perform no I/O and no kernel thread works for them.
const TIGHT: [&str; 4] = ["create", "stat", "rename", "read"];

/// Metric of a filesystem in two runs.
pub(crate) struct Probe {
    pub(crate) filesystem: String,
    pub(crate) name: String,
    /// Values of the trials of each run.
    pub(crate) values: [Vec<f64>; 2],
}

impl Probe {
    /// Range of all values divided by their median.
    fn spread(&self) -> f64 {
        let all = self.values.concat();
        let (least, most) = all.iter().fold((f64::INFINITY, 0.0f64), |(least, most), value| {
            (least.min(*value), most.max(*value))
        });
        (most - least) / median(&all)
    }

    /// Relative difference between the medians of the two runs.
    fn between(&self) -> f64 {
        (median(&self.values[1]) / median(&self.values[0]) - 1.0).abs()
    }
}

/// Test of a comparison.
pub(crate) struct Change {
    pub(crate) filesystem: String,
    pub(crate) probe: String,
    /// Median cost in the first and in the second run.
    costs: [f64; 2],
    /// True if the difference is significant at 5 %.
    pub(crate) found: bool,
    n: u64,
}

impl Change {
    pub(crate) fn read(test: &Value) -> Self {
        let cost = |side: &str| test[side]["median"].as_f64().unwrap_or(f64::NAN);
        Self {
            filesystem: test["filesystem_b"].as_str().unwrap_or_default().to_owned(),
            probe: test["phase"].as_str().unwrap_or_default().to_owned(),
            costs: [cost("a"), cost("b")],
            found: test["found"].as_bool().unwrap_or(false),
            n: test["a"]["n"].as_u64().unwrap_or(0),
        }
    }

    /// Fraction by which the second cost is higher.
    fn more(&self) -> f64 {
        self.costs[1] / self.costs[0] - 1.0
    }
}

/// Results shown on the page.
pub(crate) struct Page {
    version: String,
    kernels_named: [String; 2],
    /// Duration of a run of nine filesystems with three repetitions on the idle host.
    pub(crate) idle: Duration,
    /// Durations of the same runs on the loaded host.
    pub(crate) busy: Vec<Duration>,
    pub(crate) probes: Vec<Probe>,
    /// Exit status and line of the gate of each A/A comparison.
    pub(crate) tries: Vec<(i32, String)>,
    /// Variant with additional work, result of the gate, and all tests of the comparison.
    pub(crate) injected: Vec<(String, (i32, String), Vec<Change>)>,
    pub(crate) kernels: Vec<Change>,
    pub(crate) ranks: Vec<Agreement>,
}

impl Page {
    pub(crate) fn new(version: &str, old: &str, new: &str) -> Self {
        Self {
            version: version.to_owned(),
            kernels_named: [old, new].map(file_name),
            idle: Duration::ZERO,
            busy: Vec::new(),
            probes: Vec::new(),
            tries: Vec::new(),
            injected: Vec::new(),
            kernels: Vec::new(),
            ranks: Vec::new(),
        }
    }

    /// Formats the page as Markdown.
    pub(crate) fn render(&self) -> String {
        let sections = [
            self.head(),
            self.repetitions(),
            self.same(),
            self.more_work(),
            self.history(),
            self.ranks(),
        ];
        sections.join("\n")
    }

    fn head(&self) -> String {
        let seconds = |took: &Duration| format!("{:.0}", took.as_secs_f64());
        let busy: Vec<String> = self.busy.iter().map(seconds).collect();
        let idle = seconds(&self.idle);
        format!(
            "\
# Repeatability of instruction counts

Written by `make bench-icount`; do not edit. Guests of kind `icount` report executed instructions
instead of times. This page shows how well these counts repeat on a loaded machine, and which
changes they detect. While they were measured, another process used one CPU of the host. The
exceptions are the run of {idle} s listed here and the times of the last section.

- host: {}; {}
- first guest kernel, used in all sections: {}
- second guest kernel, used in the section *Two kernels* only: {}
- duration of one run of the plan `filesystem-cost` (nine filesystems, three trials each; eight
  calls, mkfs, mount, and umount): {idle} s on the idle host, {} s on the loaded host
",
            host(),
            self.version,
            self.kernels_named[0],
            self.kernels_named[1],
            busy.join(" and "),
        )
    }

    fn repetitions(&self) -> String {
        let mut text = String::from(
            "\
## Repeatability

A probe is a call or a lifecycle step. Two runs of `filesystem-cost` measured each probe on nine
filesystems. *Spread* is the largest minus the smallest count of the six trials of a filesystem,
divided by their median. *Between runs* is the difference between the medians of the two runs.
The table shows the median and the largest value over the nine filesystems:

| probe | spread, median | spread, largest | between runs, median | between runs, largest |
|---|---|---|---|---|
",
        );
        let mut of_name: BTreeMap<&str, Vec<&Probe>> = BTreeMap::new();
        for probe in &self.probes {
            of_name.entry(&probe.name).or_default().push(probe);
        }
        let kinds = of_name.len();
        for (name, probes) in of_name {
            let of = |share: fn(&Probe) -> f64| {
                let shares: Vec<f64> = probes.iter().map(|probe| share(probe)).collect();
                let by_share = |a: &&&Probe, b: &&&Probe| share(a).total_cmp(&share(b));
                let most = probes.iter().max_by(by_share).map_or("", |probe| &probe.filesystem);
                let largest = shares.iter().copied().fold(0.0, f64::max);
                format!("{} | {} ({most})", percent(median(&shares)), percent(largest))
            };
            text += &format!("| {name} | {} | {} |\n", of(Probe::spread), of(Probe::between));
        }
        let middle = |tight: bool| {
            let probes = self.probes.iter();
            let own = probes.filter(|probe| !tight || TIGHT.contains(&probe.name.as_str()));
            median(&own.map(Probe::spread).collect::<Vec<f64>>())
        };
        let (all, tight) = (middle(false), middle(true));
        text += &format!(
            "\n\
Over all {} combinations ({kinds} probes × {} filesystems) the median spread is {}. The
requirement, at most 1 %, is {}. Over the probes {}
the median spread is {}. The requirement, at most 0.5 %, is {}.
",
            self.probes.len(),
            self.probes.len() / kinds.max(1),
            percent(all),
            met(all <= 0.01),
            TIGHT.join(", "),
            percent(tight),
            met(tight <= 0.005),
        );
        text
    }

    fn same(&self) -> String {
        let counted = |status: i32| self.tries.iter().filter(|(own, _)| *own == status).count();
        let last = self.tries.last().map_or("", |(_, text)| text.as_str());
        format!(
            "\
## A/A comparisons

The same plan (ext4 and xfs, seven trials each) was run {} times. Each run was compared with the
previous one by `fslab compare --gate 1%`, which fails if a cost is significantly higher by more
than 1 %. Nothing changed between the runs, so a failure is a false alarm. Of the {}
comparisons, {} passed (exit status 0), {} were inconclusive (exit status 6), and {} failed (exit
status 1). The requirement, no failure in 20 comparisons, is {}. The last comparison printed:

```
{last}
```
",
            self.tries.len() + 1,
            self.tries.len(),
            counted(0),
            counted(6),
            counted(1),
            met(counted(1) == 0 && self.tries.len() >= 20),
        )
    }

    fn more_work(&self) -> String {
        let mut text = String::from(
            "\
## Additional work

One run measured ext4 without metadata checksums, and two variants that execute more instructions:
ext4 with checksums, and ext4 with data journaling. The gate has to fail for both variants.

| variant | gate of 1 % | significantly higher costs |
|---|---|---|
",
        );
        for (name, (status, _), changes) in &self.injected {
            let shown = changes.iter().filter(|change| change.found && change.more() > 0.0);
            let shown: Vec<String> =
                shown.map(|change| format!("{} {}", change.probe, signed(change.more()))).collect();
            let verdict = match status {
                1 => "failed",
                0 => "**passed**",
                _ => "**inconclusive**",
            };
            text += &format!("| {name} | {verdict} | {} |\n", shown.join(", "));
        }
        text
    }

    fn history(&self) -> String {
        let n = self.kernels.first().map_or(0, |change| change.n);
        let mut text = format!(
            "\
## Two kernels

Change of each cost from the first guest kernel to the second, n = {n} trials with each kernel.
A number is a significant change (false discovery rate 5 %), a dot stands for no significant
change.

",
        );
        let mut filesystems: Vec<&str> = Vec::new();
        let mut probes: Vec<&str> = Vec::new();
        for change in &self.kernels {
            for (list, name) in
                [(&mut filesystems, &change.filesystem), (&mut probes, &change.probe)]
            {
                if !list.contains(&name.as_str()) {
                    list.push(name);
                }
            }
        }
        text += &format!("| | {} |\n|---|{}\n", probes.join(" | "), "---|".repeat(probes.len()));
        let of = |filesystem: &str, probe: &str| {
            let own = |change: &&Change| change.filesystem == filesystem && change.probe == probe;
            self.kernels.iter().find(own)
        };
        for filesystem in filesystems {
            let cell = |probe: &&str| match of(filesystem, probe) {
                Some(change) if change.found => signed(change.more()),
                Some(_) => "·".to_owned(),
                None => String::new(),
            };
            let cells: Vec<String> = probes.iter().map(cell).collect();
            text += &format!("| {filesystem} | {} |\n", cells.join(" | "));
        }
        let costlier =
            of("btrfs", "create").is_some_and(|change| change.found && change.more() > 0.0);
        text += &format!(
            "\nOne change from Linux 6.1 to 6.12 was known before: btrfs uses more instructions to \
             create a\nfile. The results {} it.\n",
            if costlier { "confirm" } else { "**do not confirm**" }
        );
        text
    }

    fn ranks(&self) -> String {
        let head = format!(
            "\
## Ranks by time

The same calls were also timed without a guest, on an image file in memory. The host kernel was
{}. The table compares the order of the filesystems by instructions with
their order by time.
Kendall's τ is 1 if the two orders are equal, and -1 if one is the reverse of the other.
Costs that differ by less than 5 % are ties. *All tied* means that one of the orders consists of
ties only, so τ is undefined.

",
            release(),
        );
        if self.ranks.is_empty() {
            return format!("{head}Not compared: root is required.\n");
        }
        let mut text = format!(
            "{head}| probe | τ | by instructions, fewest first | by time, shortest first \
                     |\n|---|---|---|---|\n"
        );
        for agreement in &self.ranks {
            text += &format!(
                "| {} | {} | {} | {} |\n",
                agreement.probe,
                agreement.tau.map_or("all tied".into(), |tau| format!("{tau:.2}")),
                agreement.counted.join(", "),
                agreement.timed.join(", ")
            );
        }
        text
    }
}

/// Median; NaN without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn signed(share: f64) -> String {
    format!("{:+.1} %", 100.0 * share)
}

fn met(met: bool) -> &'static str {
    if met { "met" } else { "**not met**" }
}
