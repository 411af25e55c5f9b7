//! Files of the office: original names, and a total size of about 21.2 MB.

use fastrand::Rng;

use super::{
    super::program::Builder,
    budget::{BLOCK, PRINTS, SCRATCH_JOBS},
    draw::mirrored,
};

const ROOT: &str = "/clients/client1";
const DIRECTORIES: [&str; 12] = [
    "/clients",
    ROOT,
    "/clients/client1/office",
    "/clients/client1/office/letters",
    "/clients/client1/office/ledger",
    "/clients/client1/office/ledger/tables",
    "/clients/client1/office/slides",
    "/clients/client1/office/common",
    "/clients/client1/office/common/forms",
    "/clients/client1/office/common/forms/travel",
    "/clients/client1/office/spool",
    "/clients/client1/office/scratch",
];
/// Directories that are searched: all except the first two and those with temporary files.
const BROWSED: std::ops::Range<usize> = 2..10;

/// File, as it is before the first iteration.
#[derive(Clone, Copy, Debug)]
pub(super) struct File {
    pub(super) name: u32,
    pub(super) size: u32,
}

/// Document, and the names that editing it needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Document {
    pub(super) file: File,
    /// New text, until it replaces the old one.
    pub(super) draft: u32,
    /// Old text, until it is removed.
    pub(super) backup: u32,
    /// Note that shows who edits the document, during the edit.
    pub(super) note: u32,
}

/// Existing files, and missing names.
#[derive(Debug)]
pub(super) struct Files {
    /// Directory of the client.
    pub(super) root: u32,
    /// Each directory precedes its contents.
    pub(super) directories: Vec<u32>,
    /// Documents, which are edited.
    pub(super) documents: Vec<Document>,
    /// Tables, which are read and written at random.
    pub(super) tables: Vec<File>,
    /// Slides and sheets: large, read only.
    pub(super) large: Vec<File>,
    /// Forms: small, read only.
    pub(super) small: Vec<File>,
    /// Temporary prints.
    pub(super) prints: Vec<u32>,
    /// Temporary scratch files.
    pub(super) scratch: Vec<u32>,
    /// Names that never exist.
    pub(super) missing: Vec<u32>,
    /// Patterns that always match, and patterns that never match; each with its directory.
    pub(super) found: Vec<(u32, u32)>,
    pub(super) in_vain: Vec<(u32, u32)>,
}

impl Files {
    pub(super) fn new(builder: &mut Builder, random: &mut Rng) -> Self {
        let mut name = |name: &str| builder.name(name.as_bytes()).expect("our names are good");
        let mut numbered = |count: usize, directory: usize, stem: &str, ending: &str| -> Vec<u32> {
            let at = DIRECTORIES[directory];
            (0..count).map(|index| name(&format!("{at}/{stem}-{index:02}.{ending}"))).collect()
        };
        let [drafts, backups, notes] =
            ["new", "bak", "own"].map(|ending| numbered(16, 3, "letter", ending));
        let documents = files(numbered(16, 3, "letter", "ltr"), 232_000, 358_000, random);
        let documents = documents.into_iter().zip(drafts).zip(backups).zip(notes);
        let documents = documents
            .map(|(((file, draft), backup), note)| Document { file, draft, backup, note })
            .collect();
        let tables = files(numbered(8, 5, "table", "tab"), 380_000, 420_000, random);
        let mut large = files(numbered(6, 6, "slides", "sld"), 862_000, 890_000, random);
        large.extend(files(numbered(6, 4, "sheet", "sht"), 862_000, 890_000, random));
        large[0].size = 1_866_001;
        let mut small = files(numbered(30, 8, "form", "frm"), 32_000, 48_000, random);
        small.extend(files(numbered(14, 9, "travel", "frm"), 32_000, 48_000, random));
        let prints = numbered(PRINTS as usize, 10, "print", "prn");
        let scratch = numbered(SCRATCH_JOBS, 11, "work", "tmp");
        let missing = BROWSED.flat_map(|at| {
            ["settings.ini", "names.idx", "style.lib", "readme.now"].map(|file| (at, file))
        });
        let missing =
            missing.map(|(at, file)| name(&format!("{}/{file}", DIRECTORIES[at]))).collect();
        let directories = DIRECTORIES.map(&mut name).to_vec();
        let mut patterns = |endings: &[(usize, &str)]| -> Vec<(u32, u32)> {
            let pattern = |(at, pattern): &(usize, &str)| {
                (name(&format!("{}/{pattern}", DIRECTORIES[*at])), directories[*at])
            };
            endings.iter().map(pattern).collect()
        };
        let found = patterns(&[
            (2, "*"),
            (3, "*.ltr"),
            (4, "sheet-0?.*"),
            (5, "*.tab"),
            (6, "*.sld"),
            (8, "form-*"),
            (9, "*.frm"),
            (4, "*"),
        ]);
        let in_vain = patterns(&[
            (2, "*.cfg"),
            (3, "*.doc"),
            (4, "*.tab"),
            (5, "*.sld"),
            (6, "slides-9?.sld"),
            (8, "*.ini"),
            (9, "*.new"),
            (7, "*.frm"),
        ]);
        let root = directories[1];
        Self {
            root,
            directories,
            documents,
            tables,
            large,
            small,
            prints,
            scratch,
            missing,
            found,
            in_vain,
        }
    }

    /// All files that exist before the first iteration.
    pub(super) fn all(&self) -> impl Iterator<Item = File> {
        let documents = self.documents.iter().map(|document| &document.file);
        documents.chain(&self.tables).chain(&self.large).chain(&self.small).copied()
    }

    /// File that is only read.
    pub(super) fn readable(&self, random: &mut Rng) -> File {
        let kind = if random.u8(..4) == 0 { &self.large } else { &self.small };
        *random.choice(kind).expect("there are files")
    }

    /// Name of a file or directory that always exists.
    pub(super) fn present(&self, random: &mut Rng) -> u32 {
        if random.u8(..3) == 0 {
            let browsed = &self.directories[BROWSED];
            return *random.choice(browsed).expect("there are directories");
        }
        self.readable(random).name
    }
}

/// Files with random sizes, whose mean is that of `low` and `high`.
fn files(names: Vec<u32>, low: u32, high: u32, random: &mut Rng) -> Vec<File> {
    let sizes = mirrored(names.len(), low, high, random);
    names.into_iter().zip(sizes).map(|(name, size)| File { name, size }).collect()
}

/// Documents are larger than three blocks, so they have enough pages to read before an edit.
const _: () = assert!(232_000 > 3 * BLOCK);
