//! Published results, built into the program: what others have measured and printed, to be read
//! beside a run of the same suite.
//!
//! The numbers are facts of the articles named in [`PUBLISHED`], kept as CSV in `published/` with
//! the digits they were printed with. They leave as tables of their own, each labelled as published
//! and not measured by fslab; they never stand in one table, chart, or comparison with measured
//! numbers, since neither machine, nor kernel, nor the exact work is the same. To add a set of
//! data: the CSV, its row in [`PUBLISHED`], and, for another layout, a function that makes its
//! tables.

pub(crate) mod audit;
mod bonnie;
mod tasks;

use std::fmt::Write;

use askama::Template;
use serde_json::json;

use crate::{
    TerminalOptions,
    formats::{
        json::tables,
        markdown::{escaped, write_table},
    },
    html::{rendered, table_under},
    terminal::Page,
    view::Table,
};

/// What ends the name of every published set of data on the command line, so that none can be taken
/// for a run file.
pub const SUFFIX: &str = "@published";

/// Heading of how what was measured was made.
const CONFIGURATIONS: &str = "Configurations";

/// What stands at every table.
const LABEL: &str = "Published, not measured by fslab";

/// A set of published results and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// Its name without [`SUFFIX`].
    pub name: &'static str,
    /// The suite whose runs it may be read beside.
    pub suite: &'static str,
    /// The article.
    pub article: &'static str,
    /// Who wrote it.
    pub author: &'static str,
    /// Where and when it was published, and where the numbers were taken from.
    pub source: &'static str,
    /// The machine and its disk.
    pub machine: &'static str,
    /// The kernel and its distribution.
    pub kernel: &'static str,
    /// How it was measured, as far as the article says.
    pub method: &'static str,
    /// What each number is a summary of.
    pub summary: &'static str,
    /// What is doubtful about the numbers.
    pub doubts: &'static [&'static str],
    /// The data, with a header line.
    data: &'static str,
    /// Makes the tables.
    tables: fn(&Published) -> Vec<Table>,
    /// What was measured and how it was made, by name; none where the method says it all.
    configurations: fn(&Published) -> Vec<(String, String)>,
}

/// All of them, oldest first.
pub const PUBLISHED: &[Published] = &[
    Published {
        name: "tasks-2004",
        suite: "tasks",
        article: "Benchmarking Filesystems",
        author: "Justin Piszcz",
        source: "Linux Gazette, 2004; the numbers are those that Part II of 2006 prints again",
        machine: "Dell Optiplex GX1, one Pentium III at 500 MHz, 768 MB of memory; Western Digital \
                  disk of 250 GB at a Promise ATA/100 controller",
        kernel: "Linux 2.4.26, Slackware 9.1, tools of the filesystems built by the author",
        method: "mkfs with its defaults on one partition; each task three times, the mean printed; \
                 elapsed seconds and CPU %; the method of this edition is not described further",
        summary: "means of 3 runs, no intervals",
        doubts: &[
            "CPU of 107.33 % (ext3) and 109.66 % (jfs) at task 002, on a machine with one \
             processor: the task takes 0.02 s, so this is the rounding of its clock",
            "CPU values are means of three whole numbers, cut to two decimals",
            "tasks 007 to 012 and 020 use the tarball of Linux 2.4.26, another than that \
             of the edition of 2006; disk, controller, distribution, and tools differ too",
            "only the file of 1 GB is known to exceed the memory; no reboot or drop of caches is \
             stated, so the other tasks presumably ran in the cache",
        ],
        data: include_str!("../published/tasks-2004.csv"),
        tables: tasks::tables,
        configurations: |_| Vec::new(),
    },
    Published {
        name: "tasks-2006",
        suite: "tasks",
        article: "Benchmarking Filesystems Part II",
        author: "Justin Piszcz",
        source: "Linux Gazette no. 122, January 2006",
        machine: "Dell Optiplex GX1, one Pentium III at 500 MHz, 768 MB of memory; Seagate disk of \
                  400 GB, ATA/100, 7200 rpm, at a Promise ATA/133 TX2 controller",
        kernel: "Linux 2.6.14.4 with the Reiser4 patch, Debian Etch",
        method: "mkfs with its defaults on one partition of 372.6 GiB; each task three times, the \
                 mean printed; sync and a pause of 10 s between runs; elapsed seconds and CPU %; \
                 mount options, how the time was taken, and whether it includes the sync are not \
                 stated",
        summary: "means of 3 runs, no intervals",
        doubts: &[
            "CPU values are means of three whole numbers, cut to two decimals",
            "tasks 007 to 012 and 020 use the tarball of Linux 2.6.14.4, another than that \
             of the edition of 2004; disk, controller, distribution, and tools differ too, so the \
             editions cannot be compared task by task",
            "only the file of 1 GB is known to exceed the memory; no reboot or drop of caches is \
             stated, so the other tasks presumably ran in the cache",
            "the article announces the total as a graph only; the totals here are sums of its \
             printed tables",
        ],
        data: include_str!("../published/tasks-2006.csv"),
        tables: tasks::tables,
        configurations: |_| Vec::new(),
    },
    Published {
        name: "bonnie-2012",
        suite: "bonnie",
        article: "bonnie++ on ext4, btrfs, and xfs with Linux 3.4",
        author: "author not named in the copy",
        source: "article without a title in the copy, May 2012 by its kernel and its seeds; the \
                 numbers are its CSV records, which agree with its text tables in all 396 numbers",
        machine: "Intel Xeon X3220 at 2.40 GHz; partition of 100 GB on a WDC WD7500AACS disk, AHCI; \
                  memory not stated, at most 4 GB by the rule of the program",
        kernel: "Linux 3.4.0, x86_64, built 21 May 2012",
        method: "bonnie++ 1.96 with -s 8g -n 512 (8 GiB in one data set; 524,288 empty files in one \
                 directory), concurrency 1; one run of each configuration, booted anew between \
                 them; every printed mount has noatime",
        summary: "one record each, no intervals",
        doubts: &[
            "one run of each configuration and no deviation: differences of a few percent cannot \
             be told from noise; among the four btrfs runs with the default leaf size put-block \
             differs by 9.5 %, seq-create by 41 %",
            "the runs with larger leaves were made about a week after the others, by their seeds",
            "the seed of a record is the process id XOR the start time, not a time: read as one, \
             runs would overlap and the converted btrfs would precede the ext4 before it",
            "the records name the machine alone (colo7): the configurations are those of the \
             article's headings",
            "how the filesystem was mounted after the boot is not printed for the conversion nor \
             for the rerun after deleting; which ext4 was converted, default or tuned, is not \
             stated either",
            "-f was not given, so putc and getc moved a part of the file whose size is not told; \
             they count calls of one byte, and are no rates of a disk",
            "the article calls stat a read; bonnie++ only looks at files that are empty",
            "get-block of 8 GiB exceeds the memory as far as the rule of the program was kept, \
             which the records do not tell",
            "rates of unlike runs coincide in putc (468 and 469, twice each) and getc (3135 twice); \
             putc is bound by the processor, getc may be chance",
        ],
        data: include_str!("../published/bonnie-2012.csv"),
        tables: bonnie::tables,
        configurations: bonnie::configurations,
    },
];

/// A set of data by its name, with or without [`SUFFIX`].
pub fn published(name: &str) -> Option<&'static Published> {
    let name = name.strip_suffix(SUFFIX).unwrap_or(name);
    PUBLISHED.iter().find(|set| set.name == name)
}

/// Names, with their suffix, of all that may be read beside runs of a suite.
pub(crate) fn of_suite(suite: &str) -> Vec<String> {
    let sets = PUBLISHED.iter().filter(|set| set.suite == suite);
    sets.map(Published::full_name).collect()
}

/// Where to find the published results of these names; `None` if there are none.
pub(crate) fn note(names: &[String]) -> Option<String> {
    let commands: Vec<String> = names.iter().map(|name| format!("fslab report {name}")).collect();
    (!commands.is_empty()).then(|| {
        format!(
            "Published results of the same work, from other machines and kernels and not to be \
             put beside these on one axis: {}.",
            commands.join(", ")
        )
    })
}

#[derive(Template)]
#[template(path = "published.html")]
struct PublishedPage<'a> {
    set: &'a Published,
    label: &'static str,
    facts: Vec<(&'static str, String)>,
    tables: Vec<String>,
    configurations: Vec<(String, String)>,
    style: &'static str,
}

impl Published {
    /// Its name on the command line.
    pub fn full_name(&self) -> String {
        format!("{}{SUFFIX}", self.name)
    }

    /// What stands at every table: that it was not measured here, and what its numbers are.
    fn label(&self) -> String {
        format!("{LABEL}; {}", self.summary)
    }

    /// Where it comes from, under what names it is told.
    fn provenance(&self) -> Vec<(&'static str, String)> {
        vec![
            ("article", format!("{}, {}", self.article, self.author)),
            ("source", self.source.into()),
            ("machine", self.machine.into()),
            ("kernel", self.kernel.into()),
            ("method", self.method.into()),
        ]
    }

    /// Its tables, each with its label.
    fn labelled(&self) -> Vec<Table> {
        let mut tables = (self.tables)(self);
        tables.iter_mut().for_each(|table| table.caption.push(self.label()));
        tables
    }

    /// For a terminal.
    pub fn terminal(&self, options: &TerminalOptions) -> String {
        let mut page = Page::new(options);
        let title = page.styled("1", &format!("{} ({})", self.article, self.name));
        page.line(&title);
        page.wrapped("", "  ", &format!("{}.", self.label()));
        for (name, value) in self.provenance() {
            page.wrapped(&format!("{name}: "), "  ", &value);
        }
        for table in self.labelled() {
            page.plain(&table);
        }
        let configurations = (self.configurations)(self);
        if !configurations.is_empty() {
            page.heading(CONFIGURATIONS);
        }
        for (name, commands) in configurations {
            page.wrapped("- ", "  ", &format!("{name}: {commands}"));
        }
        page.heading("Doubtful");
        for doubt in self.doubts {
            page.wrapped("- ", "  ", doubt);
        }
        page.text
    }

    /// As GitHub-flavored Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("# {} ({})\n\n{}.\n\n", self.article, self.name, self.label());
        for (name, value) in self.provenance() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "- {name}: {}", escaped(&value));
        }
        text.push('\n');
        for table in self.labelled() {
            write_table(&mut text, &table, "##");
        }
        let configurations = (self.configurations)(self);
        if !configurations.is_empty() {
            let _ = writeln!(text, "## {CONFIGURATIONS}\n");
        }
        for (name, commands) in &configurations {
            let _ = writeln!(text, "- {}: {}", escaped(name), escaped(commands));
        }
        text.push_str(if configurations.is_empty() { "" } else { "\n" });
        text.push_str("## Doubtful\n\n");
        for doubt in self.doubts {
            let _ = writeln!(text, "- {}", escaped(doubt));
        }
        text
    }

    /// As one HTML file that loads nothing.
    pub fn html(&self) -> String {
        let label = self.label();
        let table = |table: &Table| table_under(table, &label, false);
        let page = PublishedPage {
            set: self,
            label: LABEL,
            facts: self.provenance(),
            tables: (self.tables)(self).iter().map(table).collect(),
            configurations: (self.configurations)(self),
            style: include_str!("../templates/style.css"),
        };
        rendered(&page) + "\n"
    }

    /// As JSON: values in base units, and where they come from.
    pub fn json(&self) -> String {
        let provenance: serde_json::Map<String, serde_json::Value> = self
            .provenance()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let document = json!({
            "published": self.name,
            "measured_by_fslab": false,
            "suite": self.suite,
            "summary": self.summary,
            "provenance": provenance,
            "configurations": (self.configurations)(self),
            "doubts": self.doubts,
            "tables": tables(self.labelled().iter()),
        });
        format!("{document:#}\n")
    }

    /// The data as they are kept, with two columns in front that say what they are.
    pub fn csv(&self) -> String {
        let mut text = String::new();
        for (at, line) in self.data.lines().enumerate() {
            let head = match at {
                0 => "origin,published".to_owned(),
                _ => format!("\"{}\",{}", self.label(), self.name),
            };
            text.push_str(&format!("{head},{line}\r\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests;
