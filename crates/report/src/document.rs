//! Documents: the content of a report as plain data, and its renderers.
//!
//! A builder per kind of result (run, comparison, published study, audit, explanation, bench)
//! returns a [`Document`]; [`terminal`], [`html`], and [`markdown`] lay it out, and the workbook
//! takes its tables. A new section is written once, in its builder. Texts are plain: each renderer
//! escapes them for its format.

pub(crate) mod html;
pub(crate) mod json;
mod kinds;
pub(crate) mod markdown;
mod table;
pub(crate) mod terminal;

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
}

/// A part of a report under a heading.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    /// Anchor, unique within the report.
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
    pub(crate) sections: Vec<Section>,
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
    /// Details under a title; only pages and Markdown have them.
    Fold(String, Vec<Block>),
}

/// Layout of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Numbers with both ends of their intervals.
    Full,
    /// Numbers with the half-widths of their intervals.
    Compact,
    /// Medians, so that the parts of a sum are aligned.
    Medians,
    /// Numbers alone.
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

impl Section {
    pub(crate) fn new(id: impl Into<String>, title: impl Into<String>, blocks: Vec<Block>) -> Self {
        Self { id: id.into(), title: title.into(), blocks, sections: Vec::new() }
    }

    /// True if all its blocks satisfy a condition, and it has some.
    fn all(&self, of: fn(&Block) -> bool) -> bool {
        (!self.blocks.is_empty() || !self.sections.is_empty())
            && self.blocks.iter().all(of)
            && self.sections.iter().all(|section| section.all(of))
    }

    /// True if a terminal shows nothing of it.
    fn has_no_text(&self) -> bool {
        self.all(|block| matches!(block, Block::Figure(_) | Block::Fold(..)))
    }

    /// True if Markdown shows nothing of it.
    fn is_pictures(&self) -> bool {
        fn picture(block: &Block) -> bool {
            match block {
                Block::Figure(_) | Block::Spark(_) => true,
                Block::Fold(_, own) => own.iter().all(picture),
                Block::Paragraph(_) | Block::Note(_) | Block::List(_) | Block::Table(..) => false,
            }
        }
        self.all(picture)
    }

    /// The section, or nothing if it has no content.
    pub(crate) fn some(self) -> Option<Self> {
        (!self.blocks.is_empty() || !self.sections.is_empty()).then_some(self)
    }
}

impl Block {
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
