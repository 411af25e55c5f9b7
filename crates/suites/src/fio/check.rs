//! Contradictions between the options of a section.

use model::phase::{AccessPattern, RangeSync};

use super::{job::Section, mistakes::Mistake};

impl Section {
    /// Contradictions between options.
    pub(super) fn check(&self) -> Vec<Mistake> {
        let mut found = self.check_sizes();
        found.extend(self.check_directions().map(|(name, message)| self.mistake(name, message)));
        found.extend(self.check_times());
        found.extend(self.check_files());
        found.extend(self.check_passes());
        found.extend(self.check_pace().map(|(name, message)| self.mistake(name, message)));
        found.extend(self.check_content().map(|(name, message)| self.mistake(name, message)));
        found.extend(self.check_verify().map(|(name, message)| self.mistake(name, message)));
        found.extend(self.check_steady().map(|(name, message)| self.mistake(name, message)));
        found.extend(self.check_calls().map(|(name, message)| self.mistake(name, message)));
        found.extend(self.check_order().map(|(name, message)| self.mistake(name, message)));
        found
    }

    /// Contradictions of different sizes of reads and writes: option and message.
    fn check_directions(&self) -> Option<(&'static str, &'static str)> {
        self.sizes_by_direction()?;
        let given = ["bssplit", "bsrange"].into_iter().find(|name| !self.text(name).is_empty());
        let name = given.unwrap_or("bs");
        if self.pattern() == AccessPattern::Permutation {
            // fio 3.33, observed: 25 operations and 244 KiB of size=1m with bs=4k,16k.
            let message = "with different sizes of reads and writes, fio ends a pass before each \
                           block was accessed; add norandommap=1";
            return Some((name, message));
        }
        if !matches!(self.pattern(), AccessPattern::Random | AccessPattern::SequentialPerDirection)
            || self.alignment().is_some()
        {
            let message = "different sizes of reads and writes require uniformly random offsets \
                           without ba; use equal sizes";
            return Some((name, message));
        }
        if self.file_count() > 1 {
            let message = "different sizes of reads and writes require one file per worker; remove \
                           nrfiles";
            return Some((name, message));
        }
        if ["rate", "rate_iops"].iter().any(|name| self.text(name) != "0") {
            let message = "rates require equal sizes of reads and writes";
            return Some((name, message));
        }
        None
    }

    /// Contradictions between sizes, and between flags of I/O engines.
    fn check_sizes(&self) -> Vec<Mistake> {
        let mut found = Vec::new();
        let mut problem = |name: &str, message: &str| found.push(self.mistake(name, message));
        let engine = self.text("ioengine");
        let (block, sizes) = self.block_sizes();
        if self.file_size() == 0 {
            problem("size", "size is missing; add for example size=1g");
        } else if self.region_size() < sizes.iter().map(|(size, _)| *size).max().unwrap_or(block) {
            problem("size", "the accessed part of the file is smaller than one block");
        }
        if self.file_size() > 1 << 60 || self.region_size() > 1 << 60 {
            problem("size", "the file is larger than 1 EiB");
        }
        if sizes.iter().any(|(size, _)| !size.is_multiple_of(block)) {
            problem("bssplit", "block sizes are not multiples of the smallest one; change them");
        }
        if self.is_direct() && !block.is_multiple_of(512) {
            problem("bs", "direct I/O requires multiples of 512 bytes");
        }
        if engine == "mmap" && self.is_direct() {
            problem("direct", "mmap does not support direct I/O; set direct=0");
        }
        if ["cpumask", "cpus_allowed"].iter().all(|name| !self.text(name).is_empty()) {
            problem("cpumask", "cpumask and cpus_allowed exclude each other; remove one");
        }
        if self.flag("hipri") && (!self.is_direct() || !matches!(engine, "io_uring" | "pvsync2")) {
            problem("hipri", "polling requires direct=1 and ioengine io_uring or pvsync2");
        }
        if self.flag("registerfiles") && self.file_count() > 1 {
            problem("registerfiles", "registerfiles requires one file per worker");
        }
        if self.flag("fixedbufs") != self.flag("registerfiles") {
            let name = if self.flag("fixedbufs") { "fixedbufs" } else { "registerfiles" };
            problem(name, "fixedbufs and registerfiles are only supported together");
        }
        if self.flag("uncached") && self.is_direct() {
            problem("uncached", "uncached requires buffered I/O; remove direct");
        }
        for name in ["nowait", "uncached"] {
            if self.flag(name) && engine != "pvsync2" {
                problem(name, "only ioengine pvsync2 supports it");
            }
        }
        found
    }

    /// Contradictions between limits, passes, rates, and syncs.
    fn check_times(&self) -> Vec<Mistake> {
        let mut found = Vec::new();
        let mut problem = |name: &str, message: &str| found.push(self.mistake(name, message));
        let engine = self.text("ioengine");
        if self.flag("end_syncfs") && (self.flag("end_fsync") || self.flag("fsync_on_close")) {
            problem("end_syncfs", "only one sync at the end is supported; remove the others");
        }
        if self.flag("time_based") && self.text("runtime") == "0" {
            problem("time_based", "time_based requires runtime");
        }
        if self.reopens() && (engine == "mmap" || self.flag("registerfiles")) {
            problem(
                "loops",
                "mmap and registered files cannot be opened again for a second pass; \
                              use time_based with one file, or another I/O engine",
            );
        }
        let longer = self.number("io_size") > self.all_regions();
        if self.number("loops") > 1 && longer && self.has_passes() {
            problem("loops", "loops requires an io_size of at most size; use a larger io_size");
        }
        let flags = self.range_sync().map(|(flags, _)| flags);
        if engine == "mmap" && flags.is_some_and(|flags| flags != RangeSync::ALL) {
            problem(
                "sync_file_range",
                "mappings are synced by msync, which starts and waits for the writes; use \
                 wait_before,write,wait_after",
            );
        }
        let syncs = ["fsync", "fdatasync", "sync_file_range"];
        if syncs.iter().filter(|name| !matches!(self.text(name), "0" | "")).count() > 1 {
            problem("fdatasync", "only one of fsync, fdatasync, and sync_file_range is supported");
        }
        found
    }

    /// Contradictions of the creation and removal of files, and of CPUs.
    fn check_passes(&self) -> Vec<Mistake> {
        let mut found = Vec::new();
        let mut problem = |name: &str, message: &str| found.push(self.mistake(name, message));
        if self.flag("unlink_each_loop") && self.reopens() {
            if self.reads() {
                problem(
                    "unlink_each_loop",
                    "the second pass would read files that the first one has removed; remove it",
                );
            }
            if self.open_files() < self.file_count() {
                problem("unlink_each_loop", "all files have to be open; remove openfiles");
            }
            if self.verifies() && self.flag("do_verify") {
                let message = "blocks of a pass are verified after the next one has removed the \
                               files; remove it or verify";
                problem("unlink_each_loop", message);
            }
        }
        if self.flag("create_only") {
            let message = "only a section that reads, or has overwrite=1, creates its files by \
                           writing them, which is then measured; remove the section, or use \
                           number_ios=1";
            if self.creates()
                || self.call().is_some()
                || !self.touches()
                || self.only_verifies()
                || (!self.reads() && !self.flag("overwrite"))
            {
                problem("create_only", message);
            }
            if self.flag("pre_read") {
                problem("create_only", "there is nothing to read before; remove pre_read");
            }
            if !self.flag("allow_file_create") {
                problem("create_only", "no file would be created; remove allow_file_create");
            }
        }
        let pinned =
            ["cpus_allowed", "cpumask"].iter().any(|name| !matches!(self.text(name), "" | "0"));
        if pinned && !self.text("numa_cpu_nodes").is_empty() {
            problem("numa_cpu_nodes", "the CPUs are given twice; remove cpus_allowed and cpumask");
        }
        if self.text("cpus_allowed_policy") == "split" && !self.text("numa_cpu_nodes").is_empty() {
            problem(
                "cpus_allowed_policy",
                "the CPUs of a node are shared by all workers; remove it",
            );
        }
        found
    }

    /// Contradictions of several files per worker.
    fn check_files(&self) -> Vec<Mistake> {
        let mut found = Vec::new();
        let mut problem = |name: &str, message: &str| found.push(self.mistake(name, message));
        if self.flag("fill_device") {
            problem(
                "fill_device",
                "sections fill a file in the place of a device only, with rw=write; set `map` to \
                 \"NAME=FILE:SIZE\", or use size instead",
            );
        }
        let files = self.file_count();
        if files.saturating_mul(u64::from(self.workers())) > 1_000_000 {
            problem("nrfiles", "the workers have more than 1000000 files in total; use fewer");
        }
        if files == 1 {
            return found;
        }
        if !self.text("sync_file_range").is_empty() {
            problem("sync_file_range", "sync_file_range requires one file per worker; use fsync");
        }
        if self.open_files() < files {
            let syncs = ["fsync", "fdatasync"].iter().any(|name| self.text(name) != "0");
            if syncs || self.flag("end_fsync") {
                problem(
                    "openfiles",
                    "syncs of several files require that all are open; use fsync_on_close, or \
                     remove openfiles",
                );
            }
        }
        let again = self.flag("time_based") || self.number("loops") > 1;
        let more = self.number("io_size") > self.number("size");
        if self.ends_early() && (again || more) {
            problem(
                "size",
                "passes that end before the end of the files are not supported; remove filesize, \
                 or set size to the size of all files",
            );
        }
        if self.file_size() >= 1 << 44 {
            problem("filesize", "several files per worker are limited to 16 TiB each");
        }
        found
    }
}
