//! Sections whose operations are calls on metadata.

use model::phase::{IoEngineKind, NameCall, SpaceCall};

use super::job::Section;

impl Section {
    /// Call of each operation; `None` for I/O engines that transfer data.
    pub(super) fn call(&self) -> Option<IoEngineKind> {
        Some(match self.text("ioengine") {
            "filecreate" => IoEngineKind::Name(NameCall::Create),
            "filestat" => IoEngineKind::Name(NameCall::Stat),
            "filedelete" => IoEngineKind::Name(NameCall::Unlink),
            "dircreate" => IoEngineKind::Name(NameCall::CreateDirectory),
            "dirstat" => IoEngineKind::Name(NameCall::Stat),
            "dirdelete" => IoEngineKind::Name(NameCall::RemoveDirectory),
            "falloc" => IoEngineKind::Space(SpaceCall::Allocate),
            "ftruncate" => IoEngineKind::Space(SpaceCall::Truncate),
            _ => return None,
        })
    }

    /// True if the section creates its files or directories in its operations.
    pub(super) fn creates(&self) -> bool {
        matches!(self.text("ioengine"), "filecreate" | "dircreate")
    }

    /// True if the section needs directories instead of files.
    pub(super) fn uses_directories(&self) -> bool {
        matches!(self.text("ioengine"), "dirstat" | "dirdelete")
    }

    /// True if the section changes files, their size, or their names.
    pub(super) fn changes_files(&self) -> bool {
        let changes = !matches!(self.call(), None | Some(IoEngineKind::Name(NameCall::Stat)));
        self.writes() || changes
    }

    /// Contradictions of calls on metadata: option and message.
    pub(super) fn check_calls(&self) -> Option<(&'static str, &'static str)> {
        if self.flag("create_on_open") && self.text("ioengine") != "filecreate" {
            let message = "files are created before the section, except with ioengine=filecreate; \
                           remove it";
            return Some(("create_on_open", message));
        }
        let call = self.call()?;
        if self.verifies() {
            return Some(("verify", "this I/O engine transfers no data; remove verify"));
        }
        let synced = ["fsync", "fdatasync"].into_iter().find(|name| self.text(name) != "0");
        let synced = synced.or_else(|| self.flag("end_fsync").then_some("end_fsync"));
        let ranges = (!self.text("sync_file_range").is_empty()).then_some("sync_file_range");
        if let Some(name) = synced.or(ranges) {
            return Some((name, "fio makes no syncs with this I/O engine; use fsync_on_close"));
        }
        if self.flag("pre_read") {
            return Some(("pre_read", "this I/O engine transfers no data; remove pre_read"));
        }
        if call == IoEngineKind::Space(SpaceCall::Truncate) && self.reads() {
            return Some(("rw", "ftruncate only writes; use rw=write or rw=randwrite"));
        }
        let IoEngineKind::Name(call) = call else { return None };
        if self.writes() {
            let message = "calls by name count as reads; use rw=read or rw=randread";
            return Some(("rw", message));
        }
        let (block, sizes) = self.block_sizes();
        if !sizes.is_empty() || self.region_size() != block || self.file_size() != block {
            let message =
                "this I/O engine makes one call per file; set filesize to the value of bs";
            return Some(("filesize", message));
        }
        if call == NameCall::Stat {
            let directories = self.flag("unlink") && self.uses_directories();
            return directories.then_some(("unlink", "unlink removes no directories; remove it"));
        }
        let again = self.flag("time_based") || self.number("loops") > 1;
        if again || self.number("io_size") > self.all_regions() {
            return Some((
                "loops",
                "each file is created or deleted once; remove loops, io_size, and time_based",
            ));
        }
        if self.workers() > 1 && !self.sharing().are_separate() {
            return Some(("filename", "each file is created or deleted once; remove filename"));
        }
        if self.flag("unlink") && call != NameCall::Create {
            return Some((
                "unlink",
                "it removes files that the section has not deleted; remove it",
            ));
        }
        None
    }
}
