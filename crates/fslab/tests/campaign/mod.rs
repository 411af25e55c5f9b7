//! Campaign: behavior of fslab if its environment fails, with many tries per case.
//!
//! Each section is a module with a table of cases. Tries depend on a seed, so a failure can be
//! reproduced with its seed. `make test` runs some of the tries. `make campaign` sets
//! `FSLAB_CAMPAIGN`, runs all tries, and writes the tables to `docs/method/campaign.md`.

mod fuzz;
mod glusterfs;
mod hosts;
mod inputs;
mod kills;
mod power;
mod targets;
mod vm;

use std::{ffi::OsString, fmt::Write as _, fs, path::Path, path::PathBuf, time::Instant};

use crate::support::skipped;

/// Directory for the tables of the sections; set by `make campaign` only.
fn directory() -> Option<PathBuf> {
    std::env::var_os("FSLAB_CAMPAIGN").filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// Number of tries: `whole` if `FSLAB_CAMPAIGN` names a directory, otherwise `short`.
pub(crate) fn tries(short: usize, whole: usize) -> usize {
    if directory().is_some() { whole } else { short }
}

/// True if a row of a table is selected: `FSLAB_CAMPAIGN_ONLY` is not set, or the name of the row
/// contains one of the words in this variable. `|` separates the words.
fn selected(row: &str) -> bool {
    let only = std::env::var("FSLAB_CAMPAIGN_ONLY").unwrap_or_default();
    only.split('|').any(|word| row.contains(word))
}

/// Section of the campaign: its table, and the cases that could not run.
pub(crate) struct Section {
    number: u32,
    name: &'static str,
    title: &'static str,
    intro: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    skipped: Vec<String>,
    notes: Vec<String>,
    started: Instant,
}

impl Section {
    /// Creates a section. `number` determines the order of sections; `name` is the module.
    pub(crate) fn new(
        number: u32,
        name: &'static str,
        title: &'static str,
        intro: &str,
        columns: &[&'static str],
    ) -> Self {
        let (rows, skipped, notes) = (Vec::new(), Vec::new(), Vec::new());
        let (intro, columns) = (intro.to_owned(), columns.to_vec());
        let started = Instant::now();
        Self { number, name, title, intro, columns, rows, skipped, notes, started }
    }

    /// Adds a row with one cell per column.
    #[track_caller]
    pub(crate) fn row<T: ToString>(&mut self, cells: impl IntoIterator<Item = T>) {
        let row: Vec<String> = cells.into_iter().map(|cell| cell.to_string()).collect();
        assert_eq!(row.len(), self.columns.len(), "{row:?}");
        self.rows.push(row);
    }

    /// Lists a case that cannot run on this machine, and counts it as a skipped test.
    pub(crate) fn skipped(&mut self, case: &str, needs: &str) {
        skipped(&format!("campaign::{}: {case}", self.name), needs);
        self.skipped.push(format!("{case}: needs {needs}"));
    }

    /// Adds a line below the table, such as a total.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Formats the section as Markdown.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("## {}\n\n{}\n\n", self.title, self.intro);
        let mut line = |cells: &mut dyn Iterator<Item = String>| {
            let cells: Vec<String> = cells.map(|cell| cell.replace('|', "\\|")).collect();
            writeln!(text, "| {} |", cells.join(" | ")).unwrap();
        };
        line(&mut self.columns.iter().map(ToString::to_string));
        // Columns are right-aligned if the first row has a number.
        let first = |column: usize| self.rows.first().and_then(|row| row.get(column));
        let number = |text: &String| text.parse::<f64>().is_ok();
        line(&mut (0..self.columns.len()).map(|column| {
            if first(column).is_some_and(number) { "---:" } else { "---" }.to_owned()
        }));
        for row in &self.rows {
            line(&mut row.iter().map(|cell| cell.replace('\n', " ")));
        }
        for note in &self.notes {
            write!(text, "\n{note}\n").unwrap();
        }
        if !self.skipped.is_empty() {
            text.push_str("\nNot run on this machine:\n\n");
            self.skipped.iter().for_each(|case| writeln!(text, "- {case}").unwrap());
        }
        text
    }

    /// Writes the section as `NN-name.md` into the directory of the campaign, if it is set.
    ///
    /// Tests call this before they assert that there were no failures, so that the table shows
    /// failures.
    pub(crate) fn write(&self) {
        if let Some(directory) = directory() {
            self.write_to(&directory, std::env::var_os("FSLAB_CAMPAIGN_RUN"));
        }
    }

    fn write_to(&self, directory: &Path, run: Option<OsString>) {
        let run = run.map(|run| format!(", {}", run.to_string_lossy())).unwrap_or_default();
        let seconds = self.started.elapsed().as_secs();
        fs::create_dir_all(directory).unwrap();
        let path = directory.join(format!("{:02}-{}.md", self.number, self.name));
        fs::write(path, format!("{}\nDuration: {seconds} s{run}.\n", self.text())).unwrap();
    }
}

#[test]
fn a_section_is_a_table_with_skipped_rows() {
    let columns = ["case", "tries", "failures", "seed"];
    let mut section = Section::new(7, "example", "Example", "Text.", &columns);
    section.row(["run | image", "50", "0", "0x1"]);
    section.row(vec!["bench\nreport", "2", "1", "0x2"]);
    section.note("Total: 52 tries, 1 failure.");
    let rows = "| case | tries | failures | seed |\n| --- | ---: | ---: | --- |\n\
                | run \\| image | 50 | 0 | 0x1 |\n| bench report | 2 | 1 | 0x2 |\n";
    let text = format!("## Example\n\nText.\n\n{rows}\nTotal: 52 tries, 1 failure.\n");
    assert_eq!(section.text(), text);
    section.skipped.push("layers: needs dm-crypt".to_owned());
    assert!(section.text().ends_with("\nNot run on this machine:\n\n- layers: needs dm-crypt\n"));
    let directory = tempfile::tempdir().unwrap();
    section.write_to(&directory.path().join("new"), Some("commit 1234567".into()));
    let written = fs::read_to_string(directory.path().join("new/07-example.md")).unwrap();
    assert!(written.starts_with(&section.text()) && written.ends_with(" s, commit 1234567.\n"));
}
