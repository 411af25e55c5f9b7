//! The page that says what counting repeats to, written from one run of the benchmark.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use crate::{file_name, host, ranks::Agreement};

/// Probes that are asked to lie closer together: they make no I/O, and no kernel thread works for
/// them.
const TIGHT: [&str; 4] = ["create", "stat", "rename", "read"];

/// One number of one filesystem in two runs.
pub(crate) struct Probe {
    pub(crate) filesystem: String,
    pub(crate) name: String,
    /// The trials of either run.
    pub(crate) values: [Vec<f64>; 2],
}

impl Probe {
    /// How far all trials lie apart, as a share of their median.
    fn spread(&self) -> f64 {
        let all = self.values.concat();
        let (least, most) = all.iter().fold((f64::INFINITY, 0.0f64), |(least, most), value| {
            (least.min(*value), most.max(*value))
        });
        (most - least) / median(&all)
    }

    /// How far the medians of the two runs lie apart.
    fn between(&self) -> f64 {
        (median(&self.values[1]) / median(&self.values[0]) - 1.0).abs()
    }
}

/// One test of a comparison.
pub(crate) struct Change {
    pub(crate) filesystem: String,
    pub(crate) probe: String,
    /// What it costs in the first and in the second, medians.
    costs: [f64; 2],
    /// Whether a difference is shown at 5 % of false ones.
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

    /// By what share the second costs more.
    fn more(&self) -> f64 {
        self.costs[1] / self.costs[0] - 1.0
    }
}

/// What the page tells.
pub(crate) struct Page {
    version: String,
    kernels_named: [String; 2],
    /// How long nine filesystems take, three times each.
    pub(crate) idle: Duration,
    pub(crate) busy: Vec<Duration>,
    pub(crate) probes: Vec<Probe>,
    /// Exit status and line of the gate of each A/A try.
    pub(crate) tries: Vec<(i32, String)>,
    /// What was put in, what the gate says of it, and what was found.
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

    /// The page in Markdown.
    pub(crate) fn render(&self) -> String {
        let sections = [
            self.head(),
            self.repeats(),
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
        format!(
            "\
# What counting repeats to

Written by `make bench-counted`; do not edit. Guests of kind `counted` tell instructions instead
of times. This
page says how well those repeat on a machine that has other things to do, what the gate of 1 %
makes of it, and
what it finds. All but the first figure and the ranks was measured while another process kept one
processor busy.

- {}; {}
- kernels of the guests: {}, {}
- nine filesystems, three trials each, eight calls and making, mounting, and unmounting
  (`filesystem-cost`): {} s on the
  idle machine, {} s on the busy one
",
            host(),
            self.version,
            self.kernels_named[0],
            self.kernels_named[1],
            seconds(&self.idle),
            busy.join(" and "),
        )
    }

    fn repeats(&self) -> String {
        let mut text = String::from(
            "\
## Repeatability

`filesystem-cost` twice. The spread is that of all six trials, (greatest - least) / median;
between runs, the
difference of their two medians. Over the nine filesystems:

| probe | spread, median | spread, largest | between runs, median | between runs, largest |
|---|---|---|---|---|
",
        );
        let mut of_name: BTreeMap<&str, Vec<&Probe>> = BTreeMap::new();
        for probe in &self.probes {
            of_name.entry(&probe.name).or_default().push(probe);
        }
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
            "\nMedian spread over all {} probes: {}; asked: at most 1 %: {}. Over {}: {}; asked: at most \
             0.5 %: {}.\n",
            self.probes.len(),
            percent(all),
            held(all <= 0.01),
            TIGHT.join(", "),
            percent(tight),
            held(tight <= 0.005),
        );
        text
    }

    fn same(&self) -> String {
        let counted = |status: i32| self.tries.iter().filter(|(own, _)| *own == status).count();
        let last = self.tries.last().map_or("", |(_, text)| text.as_str());
        format!(
            "\
## The same again

ext4 and xfs, seven trials each, {} runs; each is compared with the one before by `fslab compare
--gate 1%`. Shown not
to be worse (exit status 0): {}; undecided (6): {}; a regression where there is none (1): {}.
Asked: none of 20: {}.
The last said: {last}.
",
            self.tries.len() + 1,
            counted(0),
            counted(6),
            counted(1),
            held(counted(1) == 0 && self.tries.len() >= 20),
        )
    }

    fn more_work(&self) -> String {
        let mut text = String::from(
            "\
## Work that was put in on purpose

ext4 without checksums of its metadata against two others of the same run: with them, and with
the journal for data.

| other | gate of 1 % | what costs more, of what is shown |
|---|---|---|
",
        );
        for (name, (status, _), changes) in &self.injected {
            let shown = changes.iter().filter(|change| change.found && change.more() > 0.0);
            let shown: Vec<String> =
                shown.map(|change| format!("{} {}", change.probe, signed(change.more()))).collect();
            let verdict = match status {
                1 => "worse",
                0 => "**not worse**",
                _ => "**undecided**",
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

What calls cost with the second kernel over the first, n = {n} of each. A number stands where a
difference is shown (false
discoveries at most 5 %); a dot where none is.

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
        let dearer =
            of("btrfs", "create").is_some_and(|change| change.found && change.more() > 0.0);
        text += &format!(
            "\nKnown from 6.1 to 6.12: btrfs creates a file for more: {}.\n",
            held(dearer)
        );
        text
    }

    fn ranks(&self) -> String {
        let head = "\
## Against this machine's clock

The same calls by time, without a guest, on the filesystems of this machine's kernel, on an image
in memory. Kendall's τ of
the two orders: 1 where they agree, -1 where one is the other turned around. What differs by less
than 5 % counts as tied.

";
        if self.ranks.is_empty() {
            return format!("{head}Not compared: that takes root.\n");
        }
        let mut text =
            format!("{head}| probe | τ | cheapest first, counted | by time |\n|---|---|---|---|\n");
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

/// The median.
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

fn held(held: bool) -> &'static str {
    if held { "held" } else { "**not held**" }
}
