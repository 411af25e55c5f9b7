//! Markdown of the reference pages as roff: headings, tables, lists, code, and paragraphs.

use clap_mangen::roff::{Inline, Roff, bold, italic, roman};

/// Maximum width of code: 80 columns less the indentation of man(7).
const CODE_COLUMNS: usize = 72;

/// Appends a page without its title. Each row of a table becomes an entry, whose name is the first
/// cell and whose text is the last cell. Between them, each other cell becomes a sentence that
/// begins with the title of its column.
pub(super) fn append(page: &mut Roff, text: &str) {
    let mut lines = text.lines().peekable();
    let mut paragraph = true;
    while let Some(line) = lines.next() {
        if let Some(title) = line.strip_prefix("### ") {
            page.control("SS", [title]);
        } else if let Some(title) = line.strip_prefix("## ") {
            page.control("SH", [title.to_uppercase().as_str()]);
        } else if line.starts_with("```") {
            page.control("PP", []).control("nf", []);
            let block = lines.by_ref().take_while(|line| !line.starts_with("```"));
            code(page, &block.collect::<Vec<_>>());
            page.control("fi", []);
        } else if line.starts_with("| ") {
            let columns = cells(line);
            lines.next();
            while let Some(row) = lines.next_if(|line| line.starts_with("| ")) {
                entry(page, &columns, &cells(row));
            }
        } else if let Some(item) = line.strip_prefix("- ") {
            page.control("IP", ["\\(bu", "2"]).text(inlines(item));
        } else if !line.is_empty() && !line.starts_with("# ") && !line.starts_with("<!--") {
            if paragraph {
                page.control("PP", []);
            }
            page.text(inlines(line.trim()));
        }
        paragraph = line.is_empty();
    }
}

/// Cells of a table row. `\|` is a literal `|` within a cell.
fn cells(row: &str) -> Vec<String> {
    let row = row.replace("\\|", "\0");
    let row = row.trim().trim_start_matches('|').trim_end_matches('|');
    row.split('|').map(|cell| cell.trim().replace('\0', "|")).collect()
}

fn entry(page: &mut Roff, columns: &[String], cells: &[String]) {
    let [name, labeled @ .., meaning] = cells else { return };
    page.control("TP", []).text([bold(name.replace('`', ""))]);
    for (column, cell) in columns.iter().skip(1).zip(labeled) {
        let cell = cell.trim_end_matches('.');
        if !cell.is_empty() {
            page.text(inlines(&format!("{}: {cell}.", capitalized(column))));
        }
    }
    if !labeled.is_empty() {
        page.control("br", []);
    }
    page.text(inlines(meaning));
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Text in which code and strong text are bold, and emphasis is italic.
fn inlines(text: &str) -> Vec<Inline> {
    let mut inlines = Vec::new();
    for (index, part) in text.split('`').enumerate() {
        if index % 2 == 1 {
            inlines.push(bold(part));
            continue;
        }
        let strong = part.matches("**").count();
        for (index, part) in part.split("**").enumerate() {
            if index % 2 == 1 && strong % 2 == 0 {
                inlines.push(bold(part));
                continue;
            }
            let pairs = part.matches('*').count() % 2 == 0;
            for (index, part) in part.split(|letter| pairs && letter == '*').enumerate() {
                inlines.push(if index % 2 == 1 { italic(part) } else { roman(part) });
            }
        }
    }
    inlines
}

/// Appends lines of code. SQL comments are wrapped, and are moved before the code if the line is
/// too long.
fn code(page: &mut Roff, lines: &[&str]) {
    let mut comment = Comment::default();
    for line in lines {
        let (before, text) = line.split_once("-- ").unwrap_or((line, ""));
        if before.trim().is_empty() && !text.is_empty() {
            comment.add(before, text);
            continue;
        }
        comment.end(page);
        if text.is_empty() || line.chars().count() <= CODE_COLUMNS {
            page.text([roman(*line)]);
            continue;
        }
        let indent = &before[..before.len() - before.trim_start().len()];
        comment.add(indent, text);
        comment.end(page);
        page.text([roman(before.trim_end())]);
    }
    comment.end(page);
}

/// Comment that consists of successive lines.
#[derive(Default)]
struct Comment {
    indent: String,
    words: Vec<String>,
}

impl Comment {
    fn add(&mut self, indent: &str, text: &str) {
        indent.clone_into(&mut self.indent);
        self.words.extend(text.split_whitespace().map(str::to_owned));
    }

    fn end(&mut self, page: &mut Roff) {
        let start = format!("{}--", self.indent);
        let mut line = start.clone();
        for word in self.words.drain(..) {
            if line.chars().count() + 1 + word.chars().count() > CODE_COLUMNS {
                page.text([roman(std::mem::replace(&mut line, start.clone()))]);
            }
            line = format!("{line} {word}");
        }
        if line != start {
            page.text([roman(line)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn each_element_of_a_reference_page_is_converted() {
        let mut page = Roff::new();
        let long = "    id INTEGER, -- position of the cell in the plan, counted from zero, in the \
                    order of the file";
        let text = format!(
            "# Title\n\n<!-- a comment -->\n\nText with `code`,\n**strong** text, and \
             *emphasis*.\n\n## Part\n\n| key | takes | meaning |\n| --- | --- | --- |\n| `one` \
             | a \\| b | First. |\n| two | | Second. |\n\n```sql\n-- One\n-- \
             comment.\n\n.start -- short\n{long}\n```\n\n- item\n  of a list\n"
        );
        append(&mut page, &text);
        expect![[r#"
            .PP
            Text with \fBcode\fR,
            \fBstrong\fR text, and \fIemphasis\fR.
            .SH PART
            .TP
            \fBone\fR
            Takes: a | b.
            .br
            First.
            .TP
            \fBtwo\fR
            .br
            Second.
            .PP
            .nf
            \-\- One comment.

            \&.start \-\- short
                \-\- position of the cell in the plan, counted from zero, in the order
                \-\- of the file
                id INTEGER,
            .fi
            .IP \(bu 2
            item
            of a list
        "#]]
        .assert_eq(&page.to_roff());
    }
}
