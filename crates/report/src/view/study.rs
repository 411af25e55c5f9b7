//! The view of a study: which tables and charts of the report answer a published study's questions,
//! in its order and with its numbers, from the numbers of this run.
//!
//! Suites, tables, and charts of a run enter; a [`StudyView`] leaves, which outputs show before the
//! tables of the suites. What it shows is taken from there and not shown twice
//! ([`View::in_study`]). Where a part of the study is missing, a sentence stands in its place.
//! Nothing of the study's own numbers is here: they are in `published`, and only `fslab compare`
//! puts them beside a run.

mod records;

use model::{RunRecord, Scale, Study};

use super::{
    View,
    capped::{self, Capped},
    control::Control,
    facts::Filesystem,
    normalized::{self, Normalized},
    points::Suite,
    scaling::Scaled,
    sweeps::Sweep,
    tables::{Overview, Table},
    totals::Totals,
};

/// What a report shows of a study, in its order.
#[derive(Clone, Debug)]
pub(crate) struct StudyView {
    pub(crate) study: Study,
    /// `As the study of 2006 showed it`.
    pub(crate) title: String,
    /// What the numbers are and are not, one sentence each.
    pub(crate) notes: Vec<String>,
    pub(crate) parts: Vec<Part>,
}

/// One thing a study shows.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// A table.
    Table(Table),
    /// Totals as bars.
    Totals(Totals),
    /// Seconds as bars that may be cut.
    Capped(Capped),
    /// Multiples of one configuration.
    Normalized(Normalized),
    /// Charts that stand elsewhere in the report: anchors and their words.
    Links { title: String, targets: Vec<(String, String)> },
    /// What the study has and this run has not.
    Absent { title: String, reason: String },
}

/// What is known of a study.
struct Spec {
    study: Study,
    /// The suite that does its work.
    suite: &'static str,
    title: &'static str,
    /// What its view holds, for lists.
    holds: &'static str,
    article: &'static str,
    /// The filesystems it names, by catalogue name.
    filesystems: &'static [&'static str],
    /// Whether it printed numbers.
    printed: bool,
}

/// Facts of the articles; see the heads of the ready plans for what is done otherwise.
const SPECS: [Spec; 5] = [
    Spec {
        study: Study::Iozone2009,
        suite: "iozone",
        title: "As the study of 2009 showed it: 13 tests by record size",
        holds: "tables 1 to 8 by record size, 9 to 12 by filesystem, trends over the record size",
        article: "IOzone Performance Exploration, Linux Magazine, 2009",
        filesystems: &["reiser4", "ext2", "ext3", "ext4", "jfs", "xfs", "btrfs", "reiserfs"],
        printed: true,
    },
    Spec {
        study: Study::Tasks2006,
        suite: "tasks",
        title: "As the study of 2006 showed it: everyday tasks",
        holds: "seconds and CPU % of each task, the total with bars made of tasks, time of mkfs and \
                mount, space left",
        article: "Benchmarking Filesystems Part II, Linux Gazette, 2006",
        filesystems: &["ext2", "ext3", "jfs", "reiserfs", "reiser4", "xfs"],
        printed: true,
    },
    Spec {
        study: Study::Bonnie2012,
        suite: "bonnie",
        title: "As the study of 2012 showed it: a line for each configuration",
        holds: "rate, CPU %, and worst latency of the twelve phases, a row for each configuration",
        article: "a study of May 2012 that ran bonnie++ 1.96 on ext4, xfs, and btrfs",
        filesystems: &["ext4", "xfs", "btrfs"],
        printed: true,
    },
    Spec {
        study: Study::Dbench2012,
        suite: "dbench",
        title: "As the study of 2012 showed it: clients, schedulers, and speeds",
        holds: "throughput by scheduler as a multiple of one named configuration, light and heavy, \
                at each speed of the processors; scaling with clients",
        article: "a study of January 2012 that ran dbench by clients and schedulers",
        filesystems: &["ext2", "ext3", "ext4", "reiserfs", "btrfs"],
        printed: false,
    },
    Spec {
        study: Study::Smallfiles2011,
        suite: "smallfile",
        title: "As the study of 2011 showed it: sets of small files",
        holds: "seconds for the set as bars that are cut by rule with their values written, cold \
                and warm; files a second and seconds as tables",
        article: "Linux filesystems: small file performance on hard disks, 2011",
        filesystems: &["ext2", "ext3", "ext4", "xfs", "reiserfs"],
        printed: false,
    },
];

/// All views: the word a plan names each by, and what it holds.
pub fn views() -> impl Iterator<Item = (&'static str, &'static str)> {
    SPECS.iter().map(|spec| (spec.study.name(), spec.holds))
}

/// What a view is made from.
pub(super) struct Sources<'a> {
    pub(super) record: &'a RunRecord,
    pub(super) filesystems: &'a [Filesystem],
    pub(super) control: &'a Control,
    pub(super) suites: &'a [Suite],
    pub(super) overviews: &'a [Overview],
    pub(super) scaling: &'a [Scaled],
    pub(super) sweeps: &'a [Sweep],
    pub(super) lifecycle: &'a [Table],
}

/// The view that the plan names, if it names one.
pub(super) fn study(sources: &Sources<'_>) -> Option<StudyView> {
    let spec = SPECS.iter().find(|spec| Some(spec.study) == sources.record.info.view)?;
    let parts = match sources.suites.iter().position(|suite| suite.name == spec.suite) {
        None => vec![Part::Absent {
            title: "All of it".into(),
            reason: format!("the run has no workload of suite {}", spec.suite),
        }],
        Some(index) => {
            let of = Of { sources, suite: &sources.suites[index], all: &sources.overviews[index] };
            match spec.study {
                Study::Iozone2009 => of.iozone(),
                Study::Tasks2006 => of.tasks(),
                Study::Bonnie2012 => of.bonnie(),
                Study::Dbench2012 => of.dbench(),
                Study::Smallfiles2011 => of.smallfiles(),
            }
        }
    };
    Some(StudyView {
        study: spec.study,
        title: spec.title.into(),
        notes: notes(spec, sources),
        parts,
    })
}

/// What the numbers are and are not.
fn notes(spec: &Spec, sources: &Sources<'_>) -> Vec<String> {
    let name = spec.study.name();
    let mut notes = vec![format!(
        "fslab workload, layout of the study ({}): every number is of this run, measured by fslab, \
         and none is of the study or of the program it used",
        spec.article
    )];
    notes.push(match spec.printed {
        true => format!("The study's own numbers: fslab report {name}@published"),
        false => "The study showed charts without printing numbers, so there are none to read \
                  beside these"
            .to_owned(),
    });
    let info = &sources.record.info;
    if info.scale != Scale::ONE {
        notes.push(format!("The sizes of the plan were multiplied by {}", info.scale));
    }
    let has = |name: &str| {
        let mut levels = sources.record.cells.iter().map(|cell| &cell.cell.filesystem);
        levels.any(|level| level.name == name || level.base == name)
    };
    let lacking: Vec<&str> = spec.filesystems.iter().copied().filter(|name| !has(name)).collect();
    if !lacking.is_empty() {
        notes.push(format!("In the study and not in this run: {}", lacking.join(", ")));
    }
    notes
}

/// A suite of the run, seen by a study.
struct Of<'a> {
    sources: &'a Sources<'a>,
    suite: &'a Suite,
    all: &'a Overview,
}

/// Tables of the study of 2009: four record sizes, writing and reading, then four by filesystem.
const TABLES_2009: usize = 12;

impl Of<'_> {
    fn iozone(&self) -> Vec<Part> {
        let tables = || self.all.by_point.iter().chain(&self.all.by_filesystem);
        let mut parts = Vec::new();
        for number in 1..=TABLES_2009 {
            let start = format!("Table {number}. ");
            let found = tables().find(|table| table.title.starts_with(&start));
            parts.push(match found {
                Some(table) => Part::Table(table.clone()),
                None => Part::Absent {
                    title: format!("Table {number}"),
                    reason: match number {
                        ..=8 => "the run has fewer record sizes than the study's four",
                        _ => {
                            "the study has it for reiser4 and btrfs at several record sizes, and \
                              the run has not"
                        }
                    }
                    .into(),
                },
            });
        }
        let trends = self.sources.sweeps.iter().filter(|sweep| sweep.parameter == "record");
        parts.push(links(
            "Trends over the record size",
            trends.map(|sweep| (sweep.id.clone(), sweep.test.clone())).collect(),
            "the run has too few record sizes for a trend",
        ));
        parts
    }

    fn tasks(&self) -> Vec<Part> {
        let whole = |table: &Table| Part::Table(table.clone());
        let mut parts: Vec<Part> = self.all.by_point.iter().map(whole).collect();
        parts.extend(self.all.totals.iter().cloned().map(Part::Totals));
        parts.extend(self.all.composites.iter().map(whole));
        for (id, title) in [("time", "Time of mkfs and mount"), ("space", "Space left")] {
            let id = format!("life-cycle-{id}");
            let found = self.sources.lifecycle.iter().find(|table| table.id == id);
            parts.push(match found {
                Some(table) => whole(&Table { title: title.into(), ..table.clone() }),
                None => Part::Absent { title: title.into(), reason: "not measured".into() },
            });
        }
        parts.push(self.each_test("Each task, filesystem by filesystem"));
        parts
    }

    fn bonnie(&self) -> Vec<Part> {
        let points = self.suite.points.iter();
        let tables = points.flat_map(|point| records::records(point, self.sources.filesystems));
        let mut parts: Vec<Part> = tables.map(Part::Table).collect();
        parts.push(self.each_test("Each phase, configuration by configuration"));
        parts
    }

    fn dbench(&self) -> Vec<Part> {
        let sources = self.sources;
        let charts = normalized::normalized(self.suite, sources.filesystems, sources.control);
        let mut parts = Vec::new();
        if charts.is_empty() {
            parts.push(Part::Absent {
                title: "Throughput by scheduler".into(),
                reason: "the run has no workload under several schedulers".into(),
            });
        }
        for chart in charts {
            match chart {
                Ok(chart) => {
                    let table = chart.table.clone();
                    parts.push(Part::Normalized(chart));
                    parts.push(Part::Table(table));
                }
                Err((what, reason)) => parts.push(Part::Absent {
                    title: format!("Throughput by scheduler, {what}"),
                    reason,
                }),
            }
        }
        let scaling = sources.scaling.iter().filter(|scaled| scaled.suite == self.suite.name);
        parts.push(links(
            "Scaling with clients, where each saturates",
            scaling.map(|scaled| (scaled.id.clone(), scaled.title.clone())).collect(),
            "the run has fewer than three numbers of clients",
        ));
        parts
    }

    fn smallfiles(&self) -> Vec<Part> {
        let charts = capped::capped(self.suite, self.sources.filesystems);
        let mut parts: Vec<Part> = charts.into_iter().map(Part::Capped).collect();
        // Seconds first, as the study has them; then files a second.
        let seconds = |table: &&Table| table.id.ends_with("--seconds");
        let first = self.all.by_point.iter().filter(seconds);
        let others = self.all.by_point.iter().filter(|table| !seconds(table));
        let tables = first.chain(others);
        parts.extend(tables.map(|table| Part::Table(table.clone())));
        parts
    }

    /// Links to the charts of every test.
    fn each_test(&self, title: &str) -> Part {
        let points = &self.suite.points;
        let name = |label: &str, test: &str| match points.len() {
            1 => test.to_owned(),
            _ => format!("{test} ({label})"),
        };
        let tests = points
            .iter()
            .flat_map(|point| point.tests.iter().map(move |test| (point, test)))
            .map(|(point, test)| (test.id.clone(), name(&point.label, &test.name)));
        links(title, tests.collect(), "nothing was measured")
    }
}

fn links(title: &str, targets: Vec<(String, String)>, otherwise: &str) -> Part {
    match targets.is_empty() {
        true => Part::Absent { title: title.into(), reason: otherwise.into() },
        false => Part::Links { title: title.into(), targets },
    }
}

impl View {
    /// Whether a table or a chart stands in the view of the study, and so nowhere else.
    pub(crate) fn in_study(&self, id: &str) -> bool {
        self.study.iter().flat_map(|study| &study.parts).any(|part| match part {
            Part::Table(table) => table.id == id,
            Part::Totals(totals) => totals.id == id,
            Part::Capped(capped) => capped.id == id,
            Part::Normalized(normalized) => normalized.id == id,
            Part::Links { .. } | Part::Absent { .. } => false,
        })
    }
}
