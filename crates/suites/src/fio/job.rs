//! Job: sections with their options, and canonical text.

use std::collections::{BTreeMap, BTreeSet};

use model::phase::{AccessPattern, CpuList, Pin};

use super::{
    lists,
    mistakes::Mistake,
    options::{FioOption, Handling, find},
    parse::{Changes, Line},
    values::microseconds_of,
};

/// Option of a section.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// Canonical value.
    pub(super) value: String,
    /// Origin, without a message.
    pub(super) at: Mistake,
}

impl Setting {
    /// Mistake in this setting.
    pub(super) fn mistake(&self, message: impl Into<String>) -> Mistake {
        Mistake { message: message.into(), ..self.at.clone() }
    }
}

/// Section of a job.
#[derive(Clone, Debug)]
pub struct Section {
    /// Name.
    pub name: String,
    pub(super) begun: Mistake,
    pub(super) settings: BTreeMap<&'static str, Setting>,
}

/// Parsed job.
#[derive(Clone, Debug)]
pub struct Job {
    /// Sections in the order of the job.
    pub sections: Vec<Section>,
    /// Options and sections without effect, with the reasons.
    pub unused: Vec<(String, String)>,
}

impl Section {
    pub(super) fn new(name: &str, begun: &Line) -> Self {
        let begun =
            Mistake { file: begun.file.clone(), line: begun.number, message: String::new() };
        Self { name: name.to_owned(), begun, settings: BTreeMap::new() }
    }

    pub(super) fn set(&mut self, option: &'static FioOption, value: String, at: Mistake) {
        self.settings.insert(option.name, Setting { value, at });
    }

    /// Setting, if it was given.
    pub(super) fn given(&self, name: &str) -> Option<&Setting> {
        debug_assert!(find(name).is_some_and(|option| option.name == name), "{name}");
        self.settings.get(name)
    }

    /// Value, or the default.
    pub(super) fn text(&self, name: &str) -> &str {
        match self.given(name) {
            Some(setting) => &setting.value,
            None => find(name).map_or("", default),
        }
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.text(name) == "1"
    }

    pub(super) fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or(0)
    }

    pub(super) fn time(&self, name: &str) -> model::Nanos {
        model::Nanos(microseconds_of(self.text(name)).saturating_mul(1000))
    }

    pub(super) fn workers(&self) -> u32 {
        u32::try_from(self.number("numjobs")).unwrap_or(1)
    }

    pub(super) fn reads(&self) -> bool {
        let percent = self.read_percent();
        matches!(self.kind(), "read" | "randread")
            || (self.is_mixed() && percent > 0)
            || self.only_verifies()
    }

    pub(super) fn writes(&self) -> bool {
        !self.only_verifies()
            && (matches!(self.kind(), "write" | "randwrite")
                || (self.is_mixed() && self.read_percent() < 100))
    }

    pub(super) fn is_mixed(&self) -> bool {
        matches!(self.kind(), "rw" | "randrw")
    }

    pub(super) fn is_random(&self) -> bool {
        self.text("rw").starts_with("rand")
    }

    /// Percentage of reads if mixed.
    pub(super) fn read_percent(&self) -> u64 {
        match (self.given("rwmixread"), self.given("rwmixwrite")) {
            (None, Some(_)) => 100 - self.number("rwmixwrite").min(100),
            _ => self.number("rwmixread"),
        }
    }

    pub(super) fn touches(&self) -> bool {
        self.text("ioengine") != "null"
    }

    pub(super) fn has_queue(&self) -> bool {
        matches!(self.text("ioengine"), "libaio" | "io_uring")
    }

    pub(super) fn is_direct(&self) -> bool {
        self.flag("direct") || self.text("buffered") == "0"
    }

    /// Part of a value for the direction of the section: the first one for reads, the second one
    /// for writes. `None` if a mixed section has two.
    pub(super) fn by_direction(&self, name: &str) -> Option<&str> {
        match self.text(name).split_once(',') {
            // The modes of sync_file_range also have commas, but other code reads them.
            Some((one, two)) => match (self.reads(), self.writes()) {
                (true, false) => Some(one),
                (false, true) => Some(two),
                _ => None,
            },
            None => Some(self.text(name)),
        }
    }

    /// Alignment of random offsets in bytes; `None`: they are multiples of the block size.
    pub(super) fn alignment(&self) -> Option<u64> {
        let bytes: u64 = self.by_direction("ba")?.parse().ok()?;
        match bytes {
            _ if !self.is_random() => None,
            0 => self.alignment_of_sizes(),
            bytes => Some(bytes),
        }
    }

    /// Alignment with `bs_is_seq_rand`, if it is not the size of the operations: the smallest size
    /// of the direction (fio 3.33, traced).
    fn alignment_of_sizes(&self) -> Option<u64> {
        let (own, _) = self.sizes_at(usize::from(!self.reads()));
        let (random, _) = self.sizes_at(1);
        let differs = self.jump().is_some() || own != random;
        (self.flag("bs_is_seq_rand") && differs).then_some(own)
    }

    /// Weighted sizes of operations, and the unit of offsets and sizes.
    pub(super) fn block_sizes(&self) -> (u64, Vec<(u64, u32)>) {
        let (least, sizes) = self.sizes_of_operations();
        match self.alignment() {
            None => (least, sizes),
            Some(alignment) if alignment == least => (least, sizes),
            Some(alignment) if sizes.is_empty() => (gcd(alignment, least), vec![(least, 1)]),
            Some(alignment) => (gcd(alignment, least), sizes),
        }
    }

    /// Weighted sizes of operations, and their unit.
    fn sizes_of_operations(&self) -> (u64, Vec<(u64, u32)>) {
        if let Some([mut reads, writes]) = self.sizes_by_direction() {
            reads.extend(writes);
            let unit = reads.iter().fold(0, |unit, (size, _)| gcd(*size, unit));
            return (unit, reads);
        }
        if let Some(jumps) = self.jump_sizes() {
            let (_, sizes) = self.sizes_at(0);
            let all = jumps.iter().chain(&sizes);
            return (all.fold(0, |unit, (size, _)| gcd(*size, unit)), sizes);
        }
        match self.sizes_in(usize::from(!self.reads())) {
            (size, sizes) if sizes.len() == 1 => (size, Vec::new()),
            own => own,
        }
    }

    /// Weighted sizes of reads and of writes, if a section does both and they differ.
    pub(super) fn sizes_by_direction(&self) -> Option<[Vec<(u64, u32)>; 2]> {
        let [reads, writes] = [0, 1].map(|direction| self.sizes_in(direction).1);
        (self.reads() && self.writes() && reads != writes).then_some([reads, writes])
    }

    /// Weighted sizes of the operations that jump, with `bs_is_seq_rand`.
    pub(super) fn jump_sizes(&self) -> Option<Vec<(u64, u32)>> {
        let differs = self.flag("bs_is_seq_rand") && self.jump().is_some();
        differs.then(|| self.sizes_at(1).1)
    }

    /// Largest size of an operation.
    pub(super) fn largest_size(&self) -> u64 {
        let (unit, sizes) = self.block_sizes();
        let jumps = self.jump_sizes().unwrap_or_default();
        sizes.iter().chain(&jumps).map(|(size, _)| *size).max().unwrap_or(unit)
    }

    /// Weighted sizes of reads (0) or writes (1), and the smallest one.
    fn sizes_in(&self, direction: usize) -> (u64, Vec<(u64, u32)>) {
        match self.flag("bs_is_seq_rand") {
            true => self.sizes_at(usize::from(self.is_random())),
            false => self.sizes_at(direction),
        }
    }

    /// Weighted sizes in the first (0) or second (1) part of the options, and the smallest one.
    fn sizes_at(&self, direction: usize) -> (u64, Vec<(u64, u32)>) {
        let part = |name: &str| {
            let text = self.text(name);
            text.split(',').nth(direction).unwrap_or(text).to_owned()
        };
        let (split, range) = (part("bssplit"), part("bsrange"));
        if !split.is_empty() {
            let entry = |entry: &str| {
                let (size, percent) = entry.split_once('/')?;
                Some((size.parse().ok()?, percent.parse().ok()?))
            };
            let sizes: Vec<(u64, u32)> = split.split(':').filter_map(entry).collect();
            let used: Vec<(u64, u32)> = sizes.into_iter().filter(|(_, own)| *own > 0).collect();
            let least = used.iter().map(|(size, _)| *size).min().unwrap_or(4096);
            return (least, used);
        }
        if let Some((least, most)) = range.split_once('-') {
            let (least, most) = (least.parse().unwrap_or(4096), most.parse().unwrap_or(4096));
            let least: u64 = u64::max(least, 1);
            let sizes = (1..=most / least).map(|times| (least * times, 1)).collect();
            return (least, sizes);
        }
        let size = part("bs").parse().unwrap_or(4096);
        (size, vec![(size, 1)])
    }

    /// First byte of the first worker.
    pub(super) fn offset(&self) -> u64 {
        match self.text("offset").strip_suffix('%') {
            None => self.number("offset"),
            Some(percent) => {
                let size = self.number("filesize").max(self.number("size"));
                let (block, _) = self.block_sizes();
                let offset = u128::from(size) * percent.parse::<u128>().unwrap_or(0) / 100;
                let offset = u64::try_from(offset).unwrap_or(u64::MAX);
                let alignment = match self.number("offset_align") {
                    0 => block,
                    alignment => alignment,
                };
                offset.checked_next_multiple_of(alignment).unwrap_or(u64::MAX)
            }
        }
    }

    /// First byte of the last worker.
    fn last_offset(&self) -> u64 {
        let step = self.number("offset_increment");
        self.offset().saturating_add(step.saturating_mul(u64::from(self.workers()) - 1))
    }

    /// Size of each file.
    pub(super) fn file_size(&self) -> u64 {
        let each = self.number("size") / self.file_count();
        match self.number("filesize") {
            0 if self.text("offset").ends_with('%') => each,
            0 => self.last_offset().saturating_add(each),
            size => size,
        }
    }

    /// Bytes of each file that each worker accesses.
    pub(super) fn region_size(&self) -> u64 {
        let rest = self.file_size().saturating_sub(self.last_offset());
        match self.number("size") {
            size if size > 0 && self.file_count() == 1 => size.min(rest),
            _ => rest,
        }
    }

    /// True if the part of the last worker reaches the end of the file.
    pub(super) fn reaches_the_end(&self) -> bool {
        self.last_offset().saturating_add(self.region_size()) == self.file_size()
    }

    /// Bytes of one pass over all files, in whole blocks.
    pub(super) fn pass(&self) -> u64 {
        let (block, _) = self.block_sizes();
        (self.region_size() / block * block).saturating_mul(self.file_count())
    }

    /// Bytes of the accessed parts of all files.
    pub(super) fn all_regions(&self) -> u64 {
        self.region_size().saturating_mul(self.file_count())
    }

    /// True if a pass ends before the end of the files.
    pub(super) fn ends_early(&self) -> bool {
        let size = self.number("size");
        self.file_count() > 1 && size > 0 && size < self.pass()
    }

    /// Options that differ from their defaults, in canonical form.
    pub fn options(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.settings.iter().filter_map(|(name, setting)| {
            let differs = setting.value != default(find(name)?);
            differs.then_some((*name, setting.value.as_str()))
        })
    }

    pub(super) fn mistake(&self, name: &str, message: impl Into<String>) -> Mistake {
        match self.given(name) {
            Some(setting) => setting.mistake(message),
            None => Mistake { message: message.into(), ..self.begun.clone() },
        }
    }

    /// NUMA nodes whose CPUs the workers use; `None`: any.
    fn nodes(&self) -> Option<CpuList> {
        let nodes = self.text("numa_cpu_nodes");
        lists::numbers(nodes).ok().map(CpuList::from)
    }

    /// CPUs of the workers, the first of which has this number in the job.
    pub(super) fn pin(&self, first: u32) -> Pin {
        if let Some(nodes) = self.nodes() {
            return Pin::Nodes(nodes);
        }
        let mask = self.number("cpumask");
        let cpus = match self.text("cpus_allowed") {
            "" => (0..64).filter(|cpu| mask >> cpu & 1 == 1).collect(),
            list => lists::numbers(list).unwrap_or_default(),
        };
        let list = CpuList::from(cpus.clone());
        match (cpus.is_empty(), self.text("cpus_allowed_policy")) {
            (true, _) => Pin::Free,
            (false, "split") => Pin::Split { cpus: list, first },
            (false, _) => Pin::Shared(list),
        }
    }

    /// True if a pass ends when each block was accessed once. Random offsets that repeat have no
    /// passes: fio 3.33 opens the files once (traced).
    pub(super) fn has_passes(&self) -> bool {
        !self.is_random() || self.pattern() == AccessPattern::Permutation
    }

    /// True if the file is opened again for another pass.
    pub(super) fn reopens(&self) -> bool {
        if !self.has_passes() {
            return false;
        }
        if self.flag("time_based") {
            return self.file_count() > 1;
        }
        self.number("loops") > 1
            || self.number("io_size").max(self.number("size")) > self.all_regions()
    }
}

/// Default of an option in canonical form.
fn default(option: &FioOption) -> &'static str {
    if let Handling::Done { default, .. } = option.handling { default } else { "" }
}

impl Job {
    /// Resolves names of files, and checks all sections.
    pub(super) fn new(
        mut sections: Vec<Section>,
        changes: &Changes,
        mistakes: &mut Vec<Mistake>,
    ) -> Self {
        // Contradictions of values that are missing because of a mistake would confuse.
        let complete = mistakes.is_empty();
        let mut known = BTreeSet::new();
        for (place, section) in sections.iter_mut().enumerate() {
            if place == 0 {
                section.settings.remove("stonewall");
            }
            if let Err(mistake) = section.place(changes) {
                mistakes.push(mistake);
            } else if complete {
                mistakes.extend(section.check());
            }
            section.settings.remove("kb_base");
            let wanted = section.text("wait_for").to_owned();
            if !wanted.is_empty() && !known.contains(&wanted) {
                let message = format!("no section above has the name `{wanted}`; change it");
                mistakes.push(section.mistake("wait_for", message));
            }
            known.insert(section.name.clone());
        }
        let mut job = Self { sections, unused: Vec::new() };
        if mistakes.is_empty() {
            mistakes.extend(job.apply_exits().err());
            mistakes.extend(job.check_alone());
            mistakes.extend(job.check_headers());
            mistakes.extend(job.check_flows());
            mistakes.extend(job.check_creation());
        }
        job
    }

    /// Canonical text: sections with sorted options, sizes in bytes, and without defaults.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for section in &self.sections {
            text.push_str(&format!("[{}]\n", section.name));
            for (name, value) in section.options() {
                text.push_str(&format!("{name}={value}\n"));
            }
        }
        text
    }
}

/// Greatest common divisor of two numbers, of which one is greater than 0 (Euclid).
fn gcd(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { gcd(other, one % other) }
}
