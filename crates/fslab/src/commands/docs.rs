//! `fslab docs`: writes the reference and manual pages from the tables that the program uses.

mod man;

use std::{fs, path::Path};

use anyhow::Context;
use clap::{Command, CommandFactory};
use model::{Bytes, metric, plan::KEYS, warning::Warning};
use report::imports::IMPORTERS;
use rig::Catalog;

use super::front_ends::{PROGRAMS, Program};
use crate::{
    cli::{Arguments, Docs},
    exit::{Exit, Failure},
    output,
    plans::BUILTIN_PLANS,
};

/// All pages: file name and text.
fn pages() -> Vec<(&'static str, String)> {
    let mut pages = vec![
        ("commands.md", commands()),
        ("exit-status.md", exit_status()),
        ("fio-options.md", fio_options()),
        ("settings.md", settings()),
        ("filesystems.md", filesystems()),
        ("import.md", import()),
        ("metrics.md", metrics()),
        ("plan.md", plan()),
        ("run-file.md", run_file()),
        ("suites.md", suites()),
        ("warnings.md", warnings()),
        ("workloads.md", workloads()),
    ];
    pages.extend(PROGRAMS.map(|program| (program.page, options(program))));
    pages
}

/// Reference pages that are also manual pages.
fn manual() -> Vec<man::Reference> {
    let page = |name, section, summary, text| man::Reference { name, section, summary, text };
    let mut pages = vec![
        page("fslab-plan", "5", "plans of fslab", plan_keys()),
        page("fslab-run-file", "5", "run files of fslab", run_file()),
        page("fslab-import-formats", "7", "formats that fslab import reads", import()),
        page("fslab-fio-options", "7", "options of fio in fslab", fio_options()),
        page("fslab-filesystems", "7", "filesystems that fslab can measure", filesystems()),
        page("fslab-metrics", "7", "metrics of fslab", metrics()),
        page("fslab-settings", "7", "system settings that fslab can vary", settings()),
        page("fslab-suites", "7", "suites of fslab and their parameters", suites()),
        page("fslab-warnings", "7", "warnings of fslab", warnings()),
        page("fslab-workloads", "7", "presets of fslab", workloads()),
    ];
    pages
        .extend(PROGRAMS.map(|program| page(program.manual, "7", program.title, options(program))));
    pages
}

pub(super) fn run(docs: &Docs) -> Result<Exit, Failure> {
    if docs.man {
        for (name, text) in man::pages(&manual()) {
            let section = name.rsplit('.').next().unwrap_or_default();
            write(&docs.directory.join(format!("man{section}")).join(&name), &text)?;
        }
        return Ok(Exit::Success);
    }
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
        return Ok(Exit::Success);
    }
    let pages = stale.join(", ");
    output::message(&format!("outdated: {pages}; run `make docs`"));
    Ok(Exit::DifferenceFound)
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

fn fio_options() -> String {
    page("Options of fio", &suites::fio::reference())
}

fn options(program: &Program) -> String {
    page(&format!("Options of {}", program.name), &program.reference())
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

/// Section of a command, followed by its subcommands.
fn sections(command: &mut Command, above: &str, body: &mut String) {
    let name = format!("{above} {}", command.get_name());
    body.push_str(&format!("\n## {name}\n\n```text\n{}\n```\n", plain(command)));
    let own = |command: &&mut Command| !command.is_hide_set() && command.get_name() != "help";
    for command in command.get_subcommands_mut().filter(own) {
        sections(command, &name, body);
    }
}

/// Help text without the trailing spaces that clap leaves in wrapped lines.
fn plain(command: &mut Command) -> String {
    let help = command.render_long_help().to_string();
    help.trim_end().lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

fn exit_status() -> String {
    let mut body = header(&["status", "meaning"]);
    for (_, status, meaning) in Exit::ALL {
        body.push_str(&row(&[&status.to_string(), meaning]));
    }
    body.push_str("\nA closed stdout (`fslab list metrics | head`) is not an error.\n");
    page("Exit status", &body)
}

fn settings() -> String {
    let mut body = String::from(
        "System settings that a plan may vary. Each is a key of `[axes]` with a list of values, or \
         of one workload. `fslab list settings` shows which of them this machine supports, and \
         `fslab show PLAN` the values that a plan would write.\n\nEach setting is written before \
         mkfs, read back, and undone after fsck, so that it applies to all results of a trial, \
         including the times of mkfs and fsck. After a kill, `fslab clean` undoes it. fslab warns \
         if the kernel rejects or rounds a value (`setting-not-applied`), and if it emulates a \
         setting (`setting-emulated`). The value read back is a fact of the trial, such as \
         `setting.read_ahead.sda`. All settings require root.\n\n",
    );
    body.push_str(&header(&["setting", "takes", "meaning"]));
    for (name, takes, doc) in rig::settings() {
        body.push_str(&row(&[name, &takes, doc]));
    }
    body.push_str(
        "\n## Devices\n\nThe device stack of an image is its loop device and the disk with the \
         image file; that of a volume is the volume and the disks below. The scheduler, \
         read-ahead, and the request-queue size are set on all of them, even on a disk with other \
         users. Devices without a request queue are skipped. `write_cache` is set on the devices \
         of the run only, not on a disk below an image or a partition, because other users depend \
         on its flushes. A directory has no devices to set.\n\n`cfq`, `noop`, and `deadline` mean \
         `bfq`, `none`, and `mq-deadline` if the kernel does not have them.\n\n## CPU \
         speed\n\nWith cpufreq, the minimum and maximum frequency of each policy are set to the \
         percentage of its `cpuinfo_max_freq`, or to the nearest supported frequency. Without \
         cpufreq, a control group limits the CPU time of this process and its programs: 5 ms of \
         each 10 ms for `50%`, times the workers of the phase, up to the number of CPUs. Kernel \
         threads are not limited, so filesystems that use them look better than on a slow CPU. \
         `100%` then needs no write.\n\n## Online CPUs\n\nThe highest numbers go offline first; \
         many machines number the second threads of their cores last. Tasks and interrupts bound \
         to an offline CPU are moved, and are not moved back when it comes online.\n",
    );
    page("Settings", &body)
}

fn filesystems() -> String {
    let mut body = String::from(
        "`fslab list filesystems` shows which of them can be measured here. `--catalog FILE` adds \
         others in the format of `crates/rig/filesystems.toml`.\n\n",
    );
    let columns = ["name", "title", "mkfs", "mount", "minimum size", "in mainline", "source"];
    body.push_str(&header(&columns));
    let catalog = Catalog::embedded();
    for filesystem in catalog.all() {
        let mkfs = format!("`{}`", filesystem.mkfs.join(" "));
        let mkfs = if filesystem.mkfs.is_empty() { "none" } else { &mkfs };
        let mount = match filesystem.mount_command.as_slice() {
            [] if filesystem.fstype.is_empty() => "none".to_owned(),
            [] => "mount(2)".to_owned(),
            argv => format!("`{}`", argv.join(" ")),
        };
        let kernels = filesystem.kernel.describe();
        let least = filesystem.min_size.to_string();
        let (name, title, source) = (&filesystem.name, &filesystem.title, &filesystem.source);
        body.push_str(&row(&[name, title, mkfs, &mount, &least, &kernels, source]));
    }
    page("Filesystems", &body)
}

fn metrics() -> String {
    let mut body = header(&["name", "base unit", "direction", "meaning"]);
    for metric in metric::ALL {
        let (unit, better) = (metric.unit.name(), metric.better.label());
        body.push_str(&row(&[metric.name, unit, better, metric.meaning]));
    }
    page("Metrics", &body)
}

fn plan() -> String {
    let mut body = plan_keys();
    body.push_str("\n## Built-in plans\n");
    for ready in BUILTIN_PLANS {
        body.push_str(&format!("\n### {}\n\n```toml\n{}```\n", ready.name, ready.text));
    }
    page("Plans", &body)
}

/// Keys of all tables of a plan.
fn plan_keys() -> String {
    let mut body = String::from(
        "A plan is TOML. Sizes are strings with a binary unit (`\"4KiB\"`, `\"1GiB\"`; `\"4k\"` is \
         the same); `\"4KB\"` is rejected because it is ambiguous. A list of values for a suite \
         parameter is swept. The maximum is 256 KiB and 10,000 cells.\n",
    );
    for (table, title) in [
        ("", "Top level"),
        ("storage", "[storage]"),
        ("axes", "[axes]"),
        ("device", "Tables in axes.device"),
        ("filesystem", "Tables in axes.filesystem"),
        ("setup", "Tables in setup of a filesystem"),
    ] {
        body.push_str(&format!("\n## {title}\n\n"));
        body.push_str(&header(&["key", "takes", "default", "meaning"]));
        for key in KEYS.iter().filter(|key| key.table == table) {
            body.push_str(&row(&[key.key, key.takes, key.default, key.doc]));
        }
    }
    body
}

fn run_file() -> String {
    let body = format!(
        "A run file is one SQLite database. `sqlite3`, DuckDB, and pandas can read \
         it:\n\n```sh\nsqlite3 RUN.fslab \"SELECT filesystem, phase, avg(value) FROM result\n    \
         WHERE metric = 'throughput' GROUP BY 1, 2\"\n```\n\n## Tables\n\n```sql\n{}```\n\n## \
         Histograms\n\n`histogram.counts` contains LEB128 varints: format (1), count, sum (low, \
         then high 64 bits), min, max, then for each nonzero counter the distance to the previous \
         index and the count. Values are nanoseconds. A value below 128 is its own index; for \
         larger values v, with e = floor(log2 v) - 7, the index is ((e + 1) << 7) | ((v >> e) & \
         127).\n",
        store::SCHEMA_SQL
    );
    page("Run file", &body)
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

fn import() -> String {
    let mut body = String::from(
        "Formats that `fslab import` reads. The format of a file is recognized by its content, not \
         by its name. All files of one import are of one program. Records with the same name and \
         workload are repetitions of one cell. The [guide](../guides/other-benchmarks.md) shows \
         examples.\n",
    );
    for importer in &IMPORTERS {
        body.push_str(&format!(
            "\n## {}\n\n{}{}. At most {} per file.\n\n",
            importer.name,
            importer.title[..1].to_uppercase(),
            &importer.title[1..],
            Bytes(importer.longest)
        ));
        body.push_str(&header(&["part", "content"]));
        let names = match importer.is_one_configuration {
            true => "one per file, by `--names` or `--name-from`",
            false => "one per record, by default the name in the record",
        };
        for (part, content) in [
            ("recognized by", importer.recognized_by),
            ("cell", importer.cell),
            ("name", names),
            ("metrics", importer.metrics),
            ("not imported", importer.omitted),
        ] {
            body.push_str(&row(&[part, content]));
        }
        body.push_str(&format!("\n{}\n", importer.method));
    }
    page("Import formats", &body)
}

fn workloads() -> String {
    let mut body = String::from(
        "A preset is a named workload: a suite with parameters. A plan contains its name, or a \
         table that overrides some of its parameters; lists of values are \
         swept:\n\n```toml\n[axes]\nworkload = [\"randread-4k\", { preset = \"oltp-8k\", file_size \
         = \"4GiB\", workers = [1, 4] }]\n```\n\nThe name is a heading and not part of the \
         workload: the same parameters without the name define the same cell. Reports show \
         overridden parameters next to the name.\n",
    );
    for preset in suites::presets() {
        let (name, point) = (&preset.name, &preset.workload);
        body.push_str(&format!(
            "\n## {name}\n\n{}\n\nSource: {}.\n\n",
            preset.title, preset.source
        ));
        let defaults = suites::find(&point.suite).map(|suite| suite.spec.defaults());
        let own = point.parameters.iter().filter(|(name, value)| {
            defaults.as_ref().is_none_or(|point| point.parameters.get(*name) != Some(value))
        });
        let own: Vec<_> = own.map(|(name, value)| format!("`{name} = {value}`")).collect();
        let own = if own.is_empty() { "the defaults".to_owned() } else { own.join(", ") };
        body.push_str(&format!("Suite `{}`: {own}.\n", point.suite));
    }
    page("Workloads", &body)
}

fn warnings() -> String {
    let mut body = String::from(
        "A warning is shown with the value it qualifies. No finding uses a value with a *blocking* \
         warning.\n\n",
    );
    body.push_str(&header(&["code", "severity", "example", "hint"]));
    for warning in Warning::examples() {
        let message = warning.message();
        body.push_str(&row(&[warning.code(), warning.severity().name(), &message, warning.hint()]));
    }
    page("Warnings", &body)
}
