//! Sections of a job of suite `fio`, from the canonical text in its cell.

use model::{Value, record::CellRecord};

/// Section with its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) name: String,
    pub(super) options: Vec<(String, String)>,
}

impl Section {
    /// Value of an option, if it is not the default.
    pub(super) fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    /// True if the section starts after all sections before it.
    fn waits(&self) -> bool {
        self.option("stonewall") == Some("1")
    }

    /// True if the section begins a group of outputs.
    pub(super) fn begins_group(&self) -> bool {
        self.waits() || self.option("new_group") == Some("1")
    }

    /// Reads that verify the blocks of the section, which are a separate phase.
    fn verification(&self) -> Option<Self> {
        let is = |name: &str, value: &str| self.option(name) == Some(value);
        let verifies = self.option("verify").is_some_and(|own| own != "none");
        let only = is("verify_only", "1") || is("do_verify", "0") || is("ioengine", "null");
        if self.kind() != "write" || !verifies || only {
            return None;
        }
        let own = |(name, _): &&(String, String)| !matches!(name.as_str(), "rw" | "stonewall");
        let mut options: Vec<_> = self.options.iter().filter(own).cloned().collect();
        options.extend(
            [("rw", "read"), ("stonewall", "1")].map(|(name, value)| (name.into(), value.into())),
        );
        Some(Self { name: format!("{}-verify", self.name), options })
    }

    /// Direction as the parameter of suite `stream`. Sections that read their blocks between the
    /// writes are mixed.
    pub(super) fn direction(&self) -> &'static str {
        let verifies = self.option("verify").is_some()
            && self.option("do_verify") != Some("0")
            && self.option("ioengine") != Some("null");
        match self.kind() {
            _ if self.option("create_only") == Some("1") => "write",
            "write" if verifies && self.option("verify_backlog").is_some() => "mixed",
            kind => kind,
        }
    }

    /// Direction of the operations that the section requests.
    fn kind(&self) -> &'static str {
        let kind = self.option("rw").and_then(|own| own.split(':').next());
        match kind {
            Some("write" | "randwrite") => "write",
            Some("rw" | "randrw") => "mixed",
            _ => "read",
        }
    }
}

/// Sections of a cell; empty for other suites.
pub(super) fn sections(cell: &CellRecord) -> Vec<Section> {
    let workload = &cell.cell.workload;
    let text = match workload.parameters.get("text") {
        Some(Value::Text(text)) if workload.suite == "fio" => text.as_str(),
        _ => return Vec::new(),
    };
    let mut sections: Vec<Section> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            sections.push(Section { name: name.to_owned(), options: Vec::new() });
        } else if let (Some(section), Some((name, value))) =
            (sections.last_mut(), line.split_once('='))
        {
            section.options.push((name.to_owned(), value.to_owned()));
        }
    }
    with_verification(sections)
}

/// Sections in the order of their phases: those of a group, and then the reads that verify them.
fn with_verification(sections: Vec<Section>) -> Vec<Section> {
    let mut all = Vec::new();
    let mut reads: Vec<Section> = Vec::new();
    for section in sections {
        if section.waits() {
            all.append(&mut reads);
        }
        reads.extend(section.verification());
        all.push(section);
    }
    all.append(&mut reads);
    all
}
