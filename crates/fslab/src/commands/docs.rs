//! `fslab docs`: the reference pages, from the tables the program itself reads.

use std::{fs, path::Path};

use anyhow::Context;
use clap::{Command, CommandFactory};
use model::{metric, plan::KEYS, warning::Warning};
use rig::Catalogue;

use crate::{
    cli::{Arguments, Docs},
    exit::{Exit, Failure},
    output,
    plans::READY,
};

/// Every page: file name and text.
fn pages() -> Vec<(&'static str, String)> {
    vec![
        ("commands.md", commands()),
        ("exit-status.md", exit_status()),
        ("factors.md", factors()),
        ("filesystems.md", filesystems()),
        ("metrics.md", metrics()),
        ("plan.md", plan()),
        ("run-file.md", run_file()),
        ("suites.md", suites()),
        ("warnings.md", warnings()),
        ("workloads.md", workloads()),
    ]
}

pub(super) fn run(docs: &Docs) -> Result<Exit, Failure> {
    let mut stale = Vec::new();
    for (name, text) in pages() {
        let path = docs.directory.join(name);
        if docs.check {
            if fs::read_to_string(&path).ok().as_deref() != Some(text.as_str()) {
                stale.push(path.display().to_string());
            }
        } else {
            write(&path, &text)?;
        }
    }
    if stale.is_empty() {
        return Ok(Exit::Done);
    }
    let pages = stale.join(", ");
    output::message(&format!("not in step with the program: {pages}; run `make docs`"));
    Ok(Exit::No)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    sys::whole::write(path, text.as_bytes()).with_context(|| format!("writing {}", path.display()))
}

fn page(title: &str, body: &str) -> String {
    format!("# {title}\n\n<!-- Written by `make docs`; do not edit. -->\n\n{}\n", body.trim_end())
}

fn row(cells: &[&str]) -> String {
    let cells: Vec<_> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn header(cells: &[&str]) -> String {
    row(cells) + &row(&vec!["---"; cells.len()])
}

fn commands() -> String {
    let mut root = Arguments::command().term_width(90);
    root.build();
    let mut body = format!("```text\n{}\n```\n", plain(&mut root));
    for command in root.get_subcommands_mut().filter(|command| !command.is_hide_set()) {
        sections(command, "fslab", &mut body);
    }
    page("Commands", &body)
}

/// The section of a command, and those of its own commands.
fn sections(command: &mut Command, above: &str, body: &mut String) {
    let name = format!("{above} {}", command.get_name());
    body.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", plain(command)));
    let own = |command: &&mut Command| !command.is_hide_set() && command.get_name() != "help";
    for command in command.get_subcommands_mut().filter(own) {
        sections(command, &name, body);
    }
}

/// Help without trailing blanks, which clap leaves in wrapped lines.
fn plain(command: &mut Command) -> String {
    let help = command.render_long_help().to_string();
    help.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn exit_status() -> String {
    let mut body = header(&["status", "meaning"]);
    for (_, status, meaning) in Exit::ALL {
        body.push_str(&row(&[&status.to_string(), meaning]));
    }
    body.push_str(
        "\nA reader of stdout that goes away (`fslab list metrics | head`) is no error.\n",
    );
    page("Exit status", &body)
}

fn factors() -> String {
    let mut body = String::from(
        "Settings of the machine that a plan may vary, each a key of `[axes]` with a list of \
         values, or of one workload. `fslab list factors` says which of them this machine has, and \
         `fslab show PLAN` what a plan would write.\n\n\
         Each is set before mkfs, read back, and undone after the check, so that every number of a \
         trial, the times of mkfs and fsck included, was measured under it. A run that is killed \
         leaves them to `fslab clean`. What the kernel refuses or rounds is a warning \
         (`W-READBACK`), and what is brought about by other means is one, too (`W-STANDIN`). \
         What a setting reads as is a fact of the trial: `factor.read_ahead.sda`. All need \
         root.\n\n",
    );
    body.push_str(&header(&["factor", "takes", "what it does"]));
    for (name, takes, doc) in rig::settings() {
        body.push_str(&row(&[name, &takes, doc]));
    }
    body.push_str(
        "\n## Devices\n\nThe stack of an image is its loop device and the disk that holds the \
         file; that of a volume is the volume and the disks below. The scheduler, reading ahead, \
         and the depth of queues are set on all of it, also on a disk that others use. A device \
         that hands requests down without a queue of its own is left out. `write_cache` is set on \
         the devices of the run only, not on a disk below an image or a partition: others rely on \
         their flushes. A directory has no devices to set.\n\n\
         `cfq`, `noop`, and `deadline` stand for `bfq`, `none`, and `mq-deadline` where the kernel \
         has not got them.\n\n\
         ## Speed\n\nWith cpufreq, the lowest and the highest frequency of each policy become the \
         share of its `cpuinfo_max_freq`, or the nearest there is. Without it, a control group \
         gives this process and its programs a share of the time: 5 ms of each 10 ms for `50%`, \
         times the workers of the phase, up to the processors there are. Threads of the kernel \
         are not held back, so filesystems that leave work to them look better than on a slow \
         processor. `100%` then needs nothing.\n\n\
         ## Processors\n\nThe highest numbers go offline first; many machines number the second \
         threads of their cores last. Tasks and interrupts that were bound to a processor stay \
         where they were moved when it comes back.\n",
    );
    page("Factors", &body)
}

fn filesystems() -> String {
    let mut body = String::from(
        "`fslab list filesystems` says which of them can be measured here. `--filesystems FILE` \
         adds others in the format of `crates/rig/filesystems.toml`.\n\n",
    );
    body.push_str(&header(&["name", "what it is", "mkfs", "least size", "in mainline", "source"]));
    let catalogue = Catalogue::embedded();
    for filesystem in catalogue.all() {
        let mkfs = format!("`{}`", filesystem.mkfs.join(" "));
        let mkfs = if filesystem.mkfs.is_empty() { "none" } else { &mkfs };
        let kernels = filesystem.kernel.describe();
        let least = filesystem.min.to_string();
        let (name, title, source) = (&filesystem.name, &filesystem.title, &filesystem.source);
        body.push_str(&row(&[name, title, mkfs, &least, &kernels, source]));
    }
    page("Filesystems", &body)
}

fn metrics() -> String {
    let mut body = header(&["name", "base unit", "direction", "meaning"]);
    for metric in metric::ALL {
        let (unit, better) = (metric.unit.name(), metric.better.words());
        body.push_str(&row(&[metric.name, unit, better, metric.meaning]));
    }
    page("Metrics", &body)
}

fn plan() -> String {
    let mut body = String::from(
        "A plan is TOML. Sizes are texts with a binary unit (`\"4KiB\"`, `\"1GiB\"`; `\"4k\"` \
         means the same); `\"4KB\"` is refused, since people mean two things by it. A list of \
         values of a suite's parameter is swept. A plan has at most 256 KiB and 10,000 cells.\n",
    );
    for (table, title) in [
        ("", "Top"),
        ("storage", "[storage]"),
        ("axes", "[axes]"),
        ("filesystem", "Tables in axes.filesystem"),
        ("setup", "Tables in setup of a filesystem"),
    ] {
        body.push_str(&format!("\n## {title}\n\n"));
        body.push_str(&header(&["key", "takes", "default", "meaning"]));
        for key in KEYS.iter().filter(|key| key.table == table) {
            body.push_str(&row(&[key.key, key.takes, key.default, key.doc]));
        }
    }
    body.push_str("\n## Ready plans\n");
    for ready in READY {
        body.push_str(&format!("\n### {}\n\n```toml\n{}```\n", ready.name, ready.text));
    }
    page("Plans", &body)
}

fn run_file() -> String {
    let body = format!(
        "A run is one SQLite file. `sqlite3`, DuckDB and pandas open it:\n\n\
         ```sh\nsqlite3 RUN.fslab \"SELECT filesystem, phase, avg(value) FROM result \
         WHERE metric = 'throughput' GROUP BY 1, 2\"\n```\n\n\
         ## Tables\n\n```sql\n{}```\n\n\
         ## Histograms\n\n\
         `histogram.counts` holds LEB128 varints: format (1), count, sum (low, then high 64 bits), \
         min, max, then for each counter that is not zero the distance to the previous such index \
         and its count. Values are nanoseconds. A value below 128 has an index of its own; above, \
         with e = floor(log2 v) - 7, the index is ((e + 1) << 7) | ((v >> e) & 127).\n",
        store::SCHEMA_SQL
    );
    page("The run file", &body)
}

fn suites() -> String {
    let mut body = String::new();
    for suite in suites::ALL {
        let spec = suite.spec;
        body.push_str(&format!(
            "## {}\n\n{}\n\nSource: {}.\n\n",
            spec.name, spec.title, spec.source
        ));
        body.push_str(&header(&["parameter", "takes", "default", "meaning"]));
        for parameter in spec.parameters {
            let (takes, default) = (parameter.kind.to_string(), parameter.default);
            body.push_str(&row(&[parameter.name, &takes, default, parameter.doc]));
        }
        body.push_str(&format!("\n{}\n", spec.notes));
    }
    page("Suites", &body)
}

fn workloads() -> String {
    let mut body = String::from(
        "A workload with a name is a point of a suite. A plan names it alone, or in a table that \
         changes some of its parameters; lists of values are swept:\n\n\
         ```toml\n[axes]\nworkload = [\"randread-4k\", { recipe = \"oltp-8k\", file = \"4GiB\", \
         workers = [1, 4] }]\n```\n\n\
         The name is a heading and no part of the work: the same parameters written out are the \
         same cell. What differs from the recipe stands beside its name.\n",
    );
    for recipe in suites::recipes() {
        let (name, point) = (&recipe.name, &recipe.point);
        body.push_str(&format!(
            "\n## {name}\n\n{}\n\nSource: {}.\n\n",
            recipe.title, recipe.source
        ));
        let defaults = suites::find(&point.suite).map(|suite| suite.spec.defaults());
        let own = point.parameters.iter().filter(|(name, value)| {
            defaults.as_ref().is_none_or(|point| point.parameters.get(*name) != Some(value))
        });
        let own: Vec<_> = own.map(|(name, value)| format!("`{name} = {value}`")).collect();
        body.push_str(&format!("Suite `{}`: {}.\n", point.suite, own.join(", ")));
    }
    page("Workloads", &body)
}

fn warnings() -> String {
    let mut body = String::from(
        "A warning stands at the number it qualifies. *No claim*: nothing is concluded from the \
         number.\n\n",
    );
    body.push_str(&header(&["code", "effect", "for instance", "cure"]));
    for warning in Warning::examples() {
        let message = warning.message();
        body.push_str(&row(&[warning.code(), warning.level().name(), &message, warning.cure()]));
    }
    page("Warnings", &body)
}
