//! Activities of an iteration, each a sequence of steps.

use fastrand::Rng;
use model::phase::ReplayOp;

use super::{
    super::program::{Expected, Op},
    budget::{
        BLOCK, BRIEF, BROWSES, Budget, CHUNK, EXTENDED, FLUSHED, LookupKind, PAGE, SCRATCH,
        SCRATCH_JOBS, SESSIONS,
    },
    files::{Document, File, Files},
};

/// Create dispositions: existing files, and new files.
const OPEN: u32 = 1;
const CREATE: u32 = 2;
/// Create options of a directory, and of a file.
const DIRECTORY: u32 = 0x1;
const FILE: u32 = 0x40;
/// Maximum number of entries of a search.
const ENTRIES: u32 = 512;
/// Offset of table locks: beyond the end, as in database programs, so that readers are not blocked.
const LOCKED: u64 = 0x7000_0000;
/// Pages read of a document before it is edited.
const PAGES: u32 = 12;

/// Activity as a list of steps. The slot of a step is the number of a handle within this job.
#[derive(Debug, Default)]
pub(super) struct Job {
    pub(super) steps: Vec<Op>,
    pub(super) handles: u16,
}

impl Job {
    fn step(&mut self, kind: ReplayOp, op: impl FnOnce(Op) -> Op) {
        self.steps.push(op(Op::new(kind, Expected::Success)));
    }

    fn in_vain(&mut self, kind: ReplayOp, op: impl FnOnce(Op) -> Op) {
        self.steps.push(op(Op::new(kind, Expected::Failure)));
    }

    fn opened(&mut self, name: u32, options: u32, disposition: u32) -> Handle {
        let slot = self.handles;
        self.handles += 1;
        self.step(ReplayOp::NTCreateX, |op| Op {
            slot,
            name,
            second: options,
            size: disposition,
            ..op
        });
        Handle { slot, name }
    }

    pub(super) fn make_directory(&mut self, name: u32) -> Handle {
        self.opened(name, DIRECTORY, CREATE)
    }

    pub(super) fn create(&mut self, name: u32) -> Handle {
        self.opened(name, FILE, CREATE)
    }

    fn open(&mut self, name: u32) -> Handle {
        self.opened(name, FILE, OPEN)
    }

    pub(super) fn close(&mut self, handle: Handle) {
        self.on(ReplayOp::Close, handle);
    }

    /// Step on a handle.
    fn on(&mut self, kind: ReplayOp, Handle { slot, name }: Handle) {
        self.step(kind, |op| Op { slot, name, ..op });
    }

    /// Step on a range of a file.
    fn range(&mut self, kind: ReplayOp, handle: Handle, offset: u64, size: u32) {
        let Handle { slot, name } = handle;
        let moves = matches!(kind, ReplayOp::ReadX | ReplayOp::WriteX);
        self.step(kind, |op| {
            let second = if moves { size } else { op.second };
            Op { slot, name, offset, size, second, ..op }
        });
    }

    /// Extends a new file by writing its last byte, and queries it.
    pub(super) fn extend(&mut self, handle: Handle, size: u32) {
        self.range(ReplayOp::WriteX, handle, u64::from(size) - 1, 1);
        self.on(ReplayOp::Qfileinfo, handle);
    }

    /// Writes a file from the start to this size.
    pub(super) fn write_all(&mut self, handle: Handle, size: u32) {
        let mut offset = 0;
        while offset < size {
            let len = BLOCK.min(size - offset);
            self.range(ReplayOp::WriteX, handle, offset.into(), len);
            offset += len;
        }
    }

    /// Creates a file of this size: extends it, writes it, flushes it, and sets its times.
    fn written(&mut self, name: u32, size: u32) {
        let handle = self.create(name);
        self.extend(handle, size);
        self.write_all(handle, size);
        self.on(ReplayOp::Flush, handle);
        self.on(ReplayOp::Sfileinfo, handle);
        self.close(handle);
    }

    fn unlink(&mut self, name: u32) {
        self.step(ReplayOp::Unlink, |op| Op { name, ..op });
    }

    fn rename(&mut self, name: u32, second: u32) {
        self.step(ReplayOp::Rename, |op| Op { name, second, ..op });
    }

    fn open_missing(&mut self, name: u32) {
        self.in_vain(ReplayOp::NTCreateX, |op| Op { name, second: FILE, size: OPEN, ..op });
    }

    fn lookup(&mut self, lookup: LookupKind, files: &Files, random: &mut Rng) {
        let missing = *random.choice(&files.missing).expect("there are names");
        let pattern = |patterns: &[(u32, u32)], random: &mut Rng| {
            let (name, second) = *random.choice(patterns).expect("there are patterns");
            move |op| Op { name, second, size: ENTRIES, ..op }
        };
        match lookup {
            LookupKind::Name => {
                let name = files.present(random);
                self.step(ReplayOp::Qpathinfo, |op| Op { name, ..op });
            }
            LookupKind::NoName => {
                self.in_vain(ReplayOp::Qpathinfo, |op| Op { name: missing, ..op })
            }
            LookupKind::Search => self.step(ReplayOp::Find, pattern(&files.found, random)),
            LookupKind::NoSearch => self.in_vain(ReplayOp::Find, pattern(&files.in_vain, random)),
            LookupKind::NoOpen => self.open_missing(missing),
            LookupKind::Space => self.step(ReplayOp::Qfsinfo, |op| op),
        }
    }
}

/// Handle of a job.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handle {
    slot: u16,
    name: u32,
}

/// All activities of an iteration.
pub(super) fn jobs(budget: Budget, files: &mut Files, random: &mut Rng) -> Vec<Job> {
    let mut planner = JobPlanner { budget, files, random, jobs: Vec::new() };
    planner.edits();
    planner.prints();
    planner.scratch();
    planner.sessions();
    planner.loads();
    planner.browses();
    planner.jobs
}

/// Planner of activities.
struct JobPlanner<'a> {
    budget: Budget,
    files: &'a mut Files,
    random: &'a mut Rng,
    jobs: Vec<Job>,
}

impl JobPlanner<'_> {
    fn browse(&mut self, job: &mut Job, lookups: usize) {
        let from = self.budget.lookups.len().saturating_sub(lookups);
        for lookup in self.budget.lookups.split_off(from) {
            job.lookup(lookup, self.files, self.random);
        }
    }

    /// Documents: a note is written, some pages are read, a draft is written, and the draft
    /// replaces the document.
    fn edits(&mut self) {
        let mut documents: Vec<_> = (0..self.files.documents.len()).collect();
        self.random.shuffle(&mut documents);
        for (blocks, note) in std::mem::take(&mut self.budget.document_blocks)
            .into_iter()
            .zip(self.budget.notes.clone())
        {
            let document = documents.pop().expect("there are more letters than edits");
            let tail = self.budget.tails.pop().expect("one for each edit and print");
            let size = blocks * BLOCK + tail;
            let job = self.edit(self.files.documents[document], size, note);
            self.files.documents[document].file.size = size;
            self.jobs.push(job);
        }
    }

    fn edit(&mut self, document: Document, size: u32, note_size: u32) -> Job {
        let mut job = Job::default();
        let Document { file, draft, backup, note } = document;
        self.browse(&mut job, 8);
        let noted = job.create(note);
        job.range(ReplayOp::WriteX, noted, 0, note_size);
        let old = job.open(file.name);
        job.on(ReplayOp::Qfileinfo, old);
        let first = self.random.u32(..=file.size / PAGE - PAGES);
        for page in first..first + PAGES {
            job.range(ReplayOp::ReadX, old, u64::from(page) * u64::from(PAGE), PAGE);
        }
        self.browse(&mut job, 2);
        job.written(draft, size);
        job.close(old);
        job.rename(file.name, backup);
        job.open_missing(file.name);
        job.rename(draft, file.name);
        let new = job.open(file.name);
        job.close(new);
        job.unlink(backup);
        job.close(noted);
        job.unlink(note);
        job
    }

    /// Prints: written from the first to the last byte, and removed.
    fn prints(&mut self) {
        let blocks = std::mem::take(&mut self.budget.print_blocks);
        for (index, blocks) in blocks.into_iter().enumerate() {
            let mut job = Job::default();
            self.browse(&mut job, 4);
            let tail = self.budget.tails.pop().expect("one for each edit and print");
            let name = self.files.prints[index];
            job.written(name, blocks * BLOCK + tail);
            job.unlink(name);
            self.jobs.push(job);
        }
    }

    /// Scratch files: created, some written and a few of these flushed, and removed.
    fn scratch(&mut self) {
        let mut files: Vec<_> =
            std::mem::take(&mut self.budget.scratch).into_iter().enumerate().collect();
        self.random.shuffle(&mut files);
        for index in 0..SCRATCH_JOBS {
            let name = self.files.scratch[index];
            let mut job = Job::default();
            let share = SCRATCH.div_ceil(SCRATCH_JOBS).min(files.len());
            for (number, writes) in files.split_off(files.len() - share) {
                self.browse(&mut job, 2);
                let handle = job.create(name);
                if number < EXTENDED {
                    job.extend(handle, writes.iter().sum());
                }
                // Writes go from the end to the start, as in programs that know the header last.
                let mut offset: u32 = writes.iter().sum();
                for size in writes {
                    offset -= size;
                    job.range(ReplayOp::WriteX, handle, offset.into(), size);
                }
                if number < FLUSHED {
                    job.on(ReplayOp::Flush, handle);
                }
                job.close(handle);
                job.unlink(name);
            }
            self.jobs.push(job);
        }
    }

    /// Sessions: all tables are open, pages are read at random, and few are written. Two of the
    /// sessions lock a table once.
    fn sessions(&mut self) {
        for session in 0..SESSIONS {
            let mut job = Job::default();
            self.browse(&mut job, 6);
            let open: Vec<_> = self.files.tables.clone();
            let open: Vec<_> = open.into_iter().map(|file| (job.open(file.name), file)).collect();
            let reads = [vec![PAGE; 80], vec![2048; 4], vec![8192; 4]].concat();
            let writes = [vec![PAGE; 8], vec![2048; 1], vec![8192; 1]].concat();
            let reads = reads.into_iter().map(|size| (ReplayOp::ReadX, size));
            let mut accesses: Vec<_> =
                reads.chain(writes.into_iter().map(|size| (ReplayOp::WriteX, size))).collect();
            self.random.shuffle(&mut accesses);
            let mut locks = session < 2;
            for (kind, size) in accesses {
                let (handle, file) = *self.random.choice(&open).expect("tables are open");
                let offset = u64::from(self.random.u32(..file.size / size) * size);
                let lock = kind == ReplayOp::WriteX && std::mem::take(&mut locks);
                if lock {
                    job.range(ReplayOp::LockX, handle, LOCKED, 1);
                }
                job.range(kind, handle, offset, size);
                if lock {
                    job.range(ReplayOp::UnlockX, handle, LOCKED, 1);
                }
                locks &= !lock;
            }
            for (handle, _) in open {
                job.close(handle);
            }
            self.jobs.push(job);
        }
    }

    /// Slides and sheets: read from the start in large blocks.
    fn loads(&mut self) {
        for chunks in std::mem::take(&mut self.budget.chunks) {
            let mut job = Job::default();
            self.browse(&mut job, 5);
            let file = *self.random.choice(&self.files.large).expect("there are files");
            let handle = job.open(file.name);
            for chunk in 0..chunks {
                job.range(ReplayOp::ReadX, handle, u64::from(chunk) * u64::from(CHUNK), CHUNK);
            }
            job.close(handle);
            self.jobs.push(job);
        }
    }

    /// Directories: all other lookups, and files that are opened briefly.
    fn browses(&mut self) {
        let mut runs = std::mem::take(&mut self.budget.brief_runs);
        runs.resize(BRIEF, 0);
        let mut brief: Vec<_> = runs.into_iter().enumerate().collect();
        self.random.shuffle(&mut brief);
        for left in (1..=BROWSES).rev() {
            let mut job = Job::default();
            let share = |all: usize| all.div_ceil(left);
            let opens = brief.split_off(brief.len() - share(brief.len()));
            let lookups = share(self.budget.lookups.len());
            let mut items: Vec<_> = opens.into_iter().map(Some).collect();
            items.resize(items.len() + lookups, None);
            self.random.shuffle(&mut items);
            for item in items {
                match item {
                    Some((number, reads)) => self.pass(&mut job, number, reads),
                    None => self.browse(&mut job, 1),
                }
            }
            self.jobs.push(job);
        }
    }

    /// File that is opened briefly; some are queried, others get their times set.
    fn pass(&mut self, job: &mut Job, number: usize, reads: u32) {
        let from = self.budget.brief_reads.len() - reads as usize;
        let reads = self.budget.brief_reads.split_off(from);
        let file = self.files.readable(self.random);
        let handle = job.open(file.name);
        self.run(job, handle, file, reads);
        // About 60 % of these files are also read, because the files that are read have the lowest
        // numbers.
        match number % 10 {
            0 if number < 260 => job.on(ReplayOp::Qfileinfo, handle),
            5 if number < 250 => job.on(ReplayOp::Sfileinfo, handle),
            _ => {}
        }
        job.close(handle);
    }

    /// Reads of one file, most of them sequential.
    fn run(&mut self, job: &mut Job, handle: Handle, file: File, reads: Vec<u32>) {
        // Starts at an offset where all of them fit, if there is one.
        let all: u32 = reads.iter().sum();
        let mut next = self.random.u32(..=file.size.saturating_sub(all) / 512) * 512;
        for size in reads {
            let jumps = next + size > file.size || self.random.u8(..100) >= 88;
            let offset =
                if jumps { self.random.u32(..=(file.size - size) / 512) * 512 } else { next };
            job.range(ReplayOp::ReadX, handle, offset.into(), size);
            next = offset + size;
        }
    }
}
