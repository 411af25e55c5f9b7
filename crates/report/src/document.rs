//! Documents: the content of a report as plain data, and its renderers.
//!
//! A builder per kind of result (run, comparison, published study, audit, explanation, bench)
//! returns a [`Document`]; [`terminal`], [`html`], and [`markdown`] lay it out, and the workbook
//! takes its tables. A new section is written once, in its builder. Texts are plain: each renderer
//! escapes them for its format.

use std::collections::BTreeMap;

pub(crate) mod html;
pub(crate) mod json;
mod kinds;
pub(crate) mod markdown;
mod table;
pub(crate) mod terminal;

use crate::svg::Svg;

pub use kinds::Kind;
pub(crate) use table::{Body, Column, INTERVALS, Of, Row, Table, TableCell, ValueCell};

/// A report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Document {
    /// Origin of the numbers in a few words, above the title; often empty.
    pub(crate) kicker: String,
    pub(crate) title: String,
    /// Main result in one sentence; often empty.
    pub(crate) headline: String,
    /// Blocks before the first section.
    pub(crate) lead: Vec<Block>,
    pub(crate) sections: Vec<Section>,
    /// Last line; often empty.
    pub(crate) footer: String,
    /// Names of the filesystems, if pages show their markers.
    pub(crate) filesystems: Vec<String>,
    /// Index of the workload point that filters hide, by the id of a table or chart up to `--`.
    pub(crate) points: BTreeMap<String, usize>,
}

/// A part of a report under a heading.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// Anchor, unique within the report.
    pub(crate) id: String,
    pub(crate) title: String,
    /// Part of it that filters hide.
    pub(crate) scope: Scope,
    pub(crate) blocks: Vec<Block>,
    pub(crate) sections: Vec<Section>,
}

/// Part of a run that a section is about.
#[derive(Clone, Debug, Default)]
pub(crate) enum Scope {
    #[default]
    Run,
    /// Index of a workload point.
    Point(usize),
    /// Number and name of a test.
    Test(usize, String),
}

/// Content of a section.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Paragraph(String),
    /// Explanation that a reader can skip.
    Note(String),
    List(List),
    Table(Table, Layout),
    Figure(Figure),
    /// Small charts of text; only terminals have them.
    Spark(Spark),
    /// Details that pages show on request under a title.
    Fold(String, Vec<Block>),
    /// Text before links to other parts: anchors and labels. Only pages have them.
    Links(String, Vec<(String, String)>),
    /// Lines of a file or commands, and their label.
    Code(&'static str, String),
    /// File name, content, and label of a CSV file. Only pages have it.
    Download(String, String, String),
}

/// Layout of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Numbers with both ends of their intervals.
    Full,
    /// Numbers with the half-widths of their intervals.
    Compact,
    /// Numbers alone, so that the parts of a sum are aligned.
    Bare,
    /// Texts. On a terminal, a row is an item of a list.
    Records,
}

/// Several items.
#[derive(Clone, Debug, Default)]
pub(crate) struct List {
    pub(crate) style: Style,
    pub(crate) items: Vec<Item>,
    /// Maximum number of items on a terminal; 0 without a limit.
    pub(crate) limit: usize,
}

/// Style of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Style {
    #[default]
    Bullets,
    /// Names with their values, without marks.
    Facts,
    /// The same in two columns of a terminal.
    Columns,
    /// Names with commands.
    Commands,
    /// Filesystems with their markers, in the order of [`Document::filesystems`].
    Legend,
}

/// Item of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Item {
    /// Anchor; often empty.
    pub(crate) id: String,
    /// Sign instead of the bullet; often empty.
    pub(crate) mark: &'static str,
    /// Name before the text; often empty.
    pub(crate) term: String,
    pub(crate) text: String,
    /// Suggested action; often empty.
    pub(crate) hint: String,
    /// Lines below the text.
    pub(crate) lines: Vec<String>,
    /// Places that pages show on request.
    pub(crate) places: Vec<String>,
    /// Anchor of the chart; often empty.
    pub(crate) chart: String,
}

/// Chart with title and caption.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// ID, unique within the report and valid as anchor and file name.
    pub(crate) id: String,
    pub(crate) kind: Kind,
    /// Content, or finding.
    pub(crate) title: String,
    /// True if it needs more width than other charts.
    pub(crate) wide: bool,
    /// SVG element that uses the classes of the style sheet.
    pub(crate) svg: String,
    /// Meaning of the marks, n, type of interval, and warnings.
    pub(crate) caption: String,
}

/// Sparklines, one per row.
#[derive(Clone, Debug)]
pub(crate) struct Spark {
    /// Often empty.
    pub(crate) title: String,
    pub(crate) rows: Vec<SparkRow>,
    pub(crate) caption: String,
}

/// One sparkline.
#[derive(Clone, Debug)]
pub(crate) struct SparkRow {
    pub(crate) name: String,
    /// Values at the lowest and the highest step.
    pub(crate) range: (f64, f64),
    /// `None` where there is no result.
    pub(crate) values: Vec<Option<f64>>,
    /// Ends of the range, and n.
    pub(crate) text: String,
}

impl Figure {
    /// Figure of a chart. Title and description are also for screen readers.
    pub(crate) fn new(
        kind: Kind,
        id: impl Into<String>,
        chart: Svg,
        (title, description): (String, &str),
        caption: String,
    ) -> Self {
        let svg = chart.finish(&title, description);
        Self { id: id.into(), kind, title, wide: false, svg, caption }
    }
}

impl Section {
    pub(crate) fn new(id: impl Into<String>, title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { id: id.into(), title: title.into(), blocks, ..Self::default() }
    }

    /// True if its first table repeats its title.
    fn is_named_by_table(&self) -> bool {
        let mut tables = self.blocks.iter().flat_map(Block::tables);
        tables.next().is_some_and(|table| table.title == self.title)
    }

    /// All tables in order.
    pub(crate) fn tables(&self) -> Vec<&Table> {
        let own = self.blocks.iter().flat_map(Block::tables);
        own.chain(self.sections.iter().flat_map(Self::tables)).collect()
    }

    /// True if only pages show its content, and it has some. Terminals have sparklines, Markdown
    /// does not.
    fn is_pictures(&self, sparks: bool) -> bool {
        fn picture(block: &Block, sparks: bool) -> bool {
            match block {
                Block::Figure(_) | Block::Links(..) | Block::Download(..) => true,
                Block::Spark(_) => !sparks,
                Block::Fold(_, own) => own.iter().all(|block| picture(block, sparks)),
                Block::Paragraph(_)
                | Block::Note(_)
                | Block::List(_)
                | Block::Table(..)
                | Block::Code(..) => false,
            }
        }
        (!self.blocks.is_empty() || !self.sections.is_empty())
            && self.blocks.iter().all(|block| picture(block, sparks))
            && self.sections.iter().all(|section| section.is_pictures(sparks))
    }

    /// The section, or nothing if it has no content.
    pub(crate) fn some(self) -> Option<Self> {
        (!self.blocks.is_empty() || !self.sections.is_empty()).then_some(self)
    }
}

impl Block {
    /// All tables in order.
    fn tables(&self) -> Vec<&Table> {
        match self {
            Self::Table(table, _) => vec![table],
            Self::Fold(_, own) => own.iter().flat_map(Self::tables).collect(),
            Self::Paragraph(_)
            | Self::Note(_)
            | Self::List(_)
            | Self::Figure(_)
            | Self::Spark(_)
            | Self::Links(..)
            | Self::Code(..)
            | Self::Download(..) => Vec::new(),
        }
    }

    /// Bullets; nothing without texts.
    pub(crate) fn bullets(texts: impl IntoIterator<Item = impl Into<String>>) -> Option<Self> {
        Self::list(Style::Bullets, texts.into_iter().map(Item::of))
    }

    /// Items in a style; nothing without items.
    pub(crate) fn list(style: Style, items: impl IntoIterator<Item = Item>) -> Option<Self> {
        let items: Vec<Item> = items.into_iter().collect();
        (!items.is_empty()).then_some(Self::List(List { style, items, limit: 0 }))
    }
}

impl Item {
    /// Text only.
    pub(crate) fn of(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Name and text.
    pub(crate) fn named(term: impl Into<String>, text: impl Into<String>) -> Self {
        Self { term: term.into(), text: text.into(), ..Self::default() }
    }

    /// The hint as a line.
    fn hinted(&self) -> Option<String> {
        (!self.hint.is_empty()).then(|| format!("Hint: {}", self.hint))
    }

    /// Name and text on one line.
    fn line(&self) -> String {
        match (self.term.is_empty(), self.text.is_empty()) {
            (true, _) => self.text.clone(),
            (false, true) => self.term.clone(),
            (false, false) => format!("{}: {}", self.term, self.text),
        }
    }
}
