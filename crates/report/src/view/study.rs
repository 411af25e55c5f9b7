//! Study sections: tables and charts of a published study, in its order and numbering, with the
//! results of this run.
//!
//! A [`StudyView`] is shown before the tables of the suites. Its tables and charts are not shown
//! again ([`View::in_study`]). A missing part is replaced by the reason. The published numbers are
//! not included; `fslab compare` shows them next to a run.

mod records;

use model::{RunRecord, Scale, Study};

use super::{
    View,
    capped::{self, Capped},
    facts::Filesystem,
    normalized::{self, Normalized},
    points::Suite,
    quality::RunQuality,
    scaling::Scaled,
    sweeps::Sweep,
    tables::{Overview, Table},
    totals::Totals,
};
use crate::document::Section;

/// Section of a study.
#[derive(Clone, Debug)]
pub(crate) struct StudyView {
    pub(crate) study: Study,
    /// `Tables of the 2006 study: everyday tasks`.
    pub(crate) title: String,
    /// Notes on the origin of the numbers.
    pub(crate) notes: Vec<String>,
    pub(crate) parts: Vec<Part>,
    /// Statements of the article with their verdicts ([`View::check_statements`]).
    pub(crate) statements: Option<Section>,
}

/// Part of a study section.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// A table.
    Table(Table),
    /// Totals as stacked bars.
    Totals(Totals),
    /// Seconds as clipped bars.
    Capped(Capped),
    /// Rates relative to a reference configuration.
    Normalized(Normalized),
    /// Links to charts in other sections: anchors and labels.
    Links { title: String, targets: Vec<(String, String)> },
    /// Part of the study that this run does not have.
    Absent { title: String, reason: String },
}

/// Definition of a study.
struct Spec {
    study: Study,
    /// Suite with its workload.
    suite: &'static str,
    title: &'static str,
    /// Content of the section, for `fslab list studies`.
    holds: &'static str,
    article: &'static str,
    /// Filesystems of the study, by catalog name.
    filesystems: &'static [&'static str],
    /// True if the study printed numbers.
    printed: bool,
}

/// Facts from the articles. The comments in the built-in plans list deviations.
const SPECS: [Spec; 5] = [
    Spec {
        study: Study::Iozone2009,
        suite: "iozone",
        title: "Tables of the 2009 study: 13 tests by block size",
        holds: "tables 1 to 8 by block size, 9 to 12 by filesystem, trends over the block size",
        article: "IOzone Performance Exploration, Linux Magazine, 2009",
        filesystems: &["reiser4", "ext3", "ext4", "ext2", "jfs", "xfs", "btrfs", "reiserfs"],
        printed: true,
    },
    Spec {
        study: Study::Tasks2006,
        suite: "tasks",
        title: "Tables of the 2006 study: everyday tasks",
        holds: "seconds and CPU % per task, total time as stacked bars, time of mkfs and mount, \
                available space",
        article: "Benchmarking Filesystems Part II, Linux Gazette, 2006",
        filesystems: &["ext2", "ext3", "jfs", "reiserfs", "reiser4", "xfs"],
        printed: true,
    },
    Spec {
        study: Study::Bonnie2012,
        suite: "bonnie",
        title: "Tables of the 2012 study: bonnie++ phases by configuration",
        holds: "rate, CPU %, and maximum latency of the twelve phases, one row per configuration",
        article: "a study of May 2012 that ran bonnie++ 1.96 on ext4, xfs, and btrfs",
        filesystems: &["ext4", "xfs", "btrfs"],
        printed: true,
    },
    Spec {
        study: Study::Dbench2012,
        suite: "dbench",
        title: "Tables of the 2012 study: clients, schedulers, and CPU speeds",
        holds: "throughput by scheduler relative to a reference configuration, light and heavy \
                load, at each CPU speed; scaling with clients",
        article: "a study of January 2012 that ran dbench by clients and schedulers",
        filesystems: &["ext2", "ext3", "ext4", "reiserfs", "btrfs"],
        printed: false,
    },
    Spec {
        study: Study::Smallfiles2011,
        suite: "small-files",
        title: "Tables of the 2011 study: sets of small files",
        holds: "seconds per file set as clipped bars, cold and warm cache; files per second and \
                seconds as tables",
        article: "Linux filesystems: small file performance on hard disks, 2011",
        filesystems: &["ext2", "ext3", "ext4", "xfs", "reiserfs"],
        printed: false,
    },
];

/// All studies: name in plans, and content of the section.
pub fn views() -> impl Iterator<Item = (&'static str, &'static str)> {
    SPECS.iter().map(|spec| (spec.study.name(), spec.holds))
}

/// Input of a study section.
pub(super) struct Sources<'a> {
    pub(super) record: &'a RunRecord,
    pub(super) filesystems: &'a [Filesystem],
    pub(super) quality: &'a RunQuality,
    pub(super) suites: &'a [Suite],
    pub(super) overviews: &'a [Overview],
    pub(super) scaling: &'a [Scaled],
    pub(super) sweeps: &'a [Sweep],
    pub(super) lifecycle: &'a [Table],
}

/// Section of the study that the plan names, if any.
pub(super) fn study(sources: &Sources<'_>) -> Option<StudyView> {
    let spec = SPECS.iter().find(|spec| Some(spec.study) == sources.record.info.study)?;
    let parts = match sources.suites.iter().position(|suite| suite.name == spec.suite) {
        None => vec![Part::Absent {
            title: "All results".into(),
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
        statements: None,
    })
}

/// Notes on the origin of the numbers and on deviations.
fn notes(spec: &Spec, sources: &Sources<'_>) -> Vec<String> {
    let name = spec.study.name();
    let mut notes = vec![format!(
        "fslab workload in the layout of the study ({}). All numbers were measured in this run; \
         none are from the study or its program",
        spec.article
    )];
    notes.push(match spec.printed {
        true => format!("Published numbers: fslab report {name}@published"),
        false => "The study has charts only and no published numbers".to_owned(),
    });
    let info = &sources.record.info;
    if info.scale != Scale::ONE {
        notes.push(format!("Sizes of the plan were multiplied by {}", info.scale));
    }
    let has = |name: &str| {
        let mut levels = sources.record.cells.iter().map(|cell| &cell.cell.filesystem);
        levels.any(|level| level.name == name || level.fs_type == name)
    };
    let absent: Vec<&str> = spec.filesystems.iter().copied().filter(|name| !has(name)).collect();
    if !absent.is_empty() {
        notes.push(format!("In the study only: {}", absent.join(", ")));
    }
    notes
}

/// Builder of the parts of a study section.
struct Of<'a> {
    sources: &'a Sources<'a>,
    suite: &'a Suite,
    all: &'a Overview,
}

/// Number of tables of the 2009 study: eight by block size (four sizes, writing and reading), then
/// four by filesystem.
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
                        ..=8 => "the run has fewer than the four block sizes of the study",
                        _ => {
                            "the study has this table for reiser4 and btrfs at several block \
                             sizes; the run does not"
                        }
                    }
                    .into(),
                },
            });
        }
        let trends = self.sources.sweeps.iter().filter(|sweep| sweep.parameter == "block_size");
        parts.push(links(
            "Trends over the block size",
            trends.map(|sweep| (sweep.id.clone(), sweep.test.clone())).collect(),
            "the run has too few block sizes for a trend",
        ));
        parts
    }

    fn tasks(&self) -> Vec<Part> {
        let whole = |table: &Table| Part::Table(table.clone());
        let mut parts: Vec<Part> = self.all.by_point.iter().map(whole).collect();
        parts.extend(self.all.totals.iter().cloned().map(Part::Totals));
        parts.extend(self.all.composites.iter().map(whole));
        for (id, title) in [("time", "Time of mkfs and mount"), ("space", "Available space")] {
            let id = format!("lifecycle-{id}");
            let found = self.sources.lifecycle.iter().find(|table| table.id == id);
            parts.push(match found {
                Some(table) => whole(&Table { title: title.into(), ..table.clone() }),
                None => Part::Absent { title: title.into(), reason: "not measured".into() },
            });
        }
        parts.push(self.each_test("Tasks by filesystem"));
        parts
    }

    fn bonnie(&self) -> Vec<Part> {
        let points = self.suite.points.iter();
        let tables = points.flat_map(|point| records::records(point, self.sources.filesystems));
        let mut parts: Vec<Part> = tables.map(Part::Table).collect();
        parts.push(self.each_test("Phases by configuration"));
        parts
    }

    fn dbench(&self) -> Vec<Part> {
        let sources = self.sources;
        let charts = normalized::normalized(self.suite, sources.filesystems, sources.quality);
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
        parts.push(self.scaling(
            "Scaling with clients and saturation",
            "the run has fewer than three numbers of clients",
        ));
        parts
    }

    fn smallfiles(&self) -> Vec<Part> {
        let charts = capped::capped(self.suite, self.sources.filesystems);
        let mut parts: Vec<Part> = charts.into_iter().map(Part::Capped).collect();
        // Seconds first, as in the study; then files per second.
        let seconds = |table: &&Table| table.id.ends_with("--seconds");
        let first = self.all.by_point.iter().filter(seconds);
        let others = self.all.by_point.iter().filter(|table| !seconds(table));
        let tables = first.chain(others);
        parts.extend(tables.map(|table| Part::Table(table.clone())));
        parts.push(self.scaling(
            "Scaling with processes",
            "the run has fewer than three numbers of processes",
        ));
        parts
    }

    /// Links to the charts of the scaling with workers or clients.
    fn scaling(&self, title: &str, otherwise: &str) -> Part {
        let own = self.sources.scaling.iter().filter(|scaled| scaled.suite == self.suite.name);
        links(title, own.map(|it| (it.id.clone(), it.title.clone())).collect(), otherwise)
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
        links(title, tests.collect(), "no results")
    }
}

fn links(title: &str, targets: Vec<(String, String)>, otherwise: &str) -> Part {
    match targets.is_empty() {
        true => Part::Absent { title: title.into(), reason: otherwise.into() },
        false => Part::Links { title: title.into(), targets },
    }
}

impl View {
    /// True if a table or chart is part of the study section and therefore not shown again.
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
