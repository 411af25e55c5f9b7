//! Files of a section: their names, directories, and sharing.

use std::collections::{HashMap, HashSet};

use model::{
    Bytes, Nanos,
    phase::{FileOrder, FileSharing, HistogramLog, OperationLog, SeveralFiles},
};

use super::{
    job::{Job, Section},
    mistakes::Mistake,
    names::{is_device, mapped, split_names},
    options::find,
    parse::Changes,
};

/// Options with the name of a log: rates, operations, latencies, histograms.
pub(super) const LOGS: [&str; 4] =
    ["write_bw_log", "write_iops_log", "write_lat_log", "write_hist_log"];

/// Names of the files of a section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    /// Names, with `{worker}` in the place of the number of a worker.
    names: Vec<String>,
    /// Directories that the workers use in turn; empty if the names contain the directory.
    directories: Vec<String>,
}

impl Names {
    fn are_separate(&self) -> bool {
        self.names.iter().all(|name| name.contains("{worker}"))
    }

    /// True if one of the files is one of another section.
    pub(super) fn share(&self, other: &Self) -> bool {
        self.directories == other.directories
            && self.names.iter().any(|name| other.names.contains(name))
    }

    /// Names without directories.
    pub(super) fn last_components(&self) -> String {
        let last = |name: &String| name.rsplit('/').next().unwrap_or_default().to_owned();
        self.names.iter().map(last).collect::<Vec<_>>().join(":")
    }

    /// Number of files of this many workers.
    fn count(&self, workers: u32) -> u64 {
        let owners = if self.are_separate() { workers } else { 1 };
        (self.names.len() as u64).saturating_mul(u64::from(owners))
    }
}

impl Section {
    /// Number of files of each worker.
    pub(super) fn file_count(&self) -> u64 {
        match self.text("filename") {
            "" => self.number("nrfiles").max(1),
            names => split_names(names).len() as u64,
        }
    }

    /// Number of files that can be open.
    pub(super) fn open_files(&self) -> u64 {
        match self.number("openfiles") {
            0 => self.file_count(),
            open => open.min(self.file_count()),
        }
    }

    /// Names of the files of each worker.
    pub(super) fn names(&self) -> Names {
        let mut directories = match self.text("directory") {
            "" => Vec::new(),
            own => split_names(own),
        };
        let names: Vec<String> = match self.text("filename") {
            "" => {
                let format = self.text("filename_format");
                let format = format
                    .replace("$jobname", &self.name.replace('/', "_"))
                    .replace("$jobnum", "{worker}");
                let name = |file: u64| format.replace("$filenum", &file.to_string());
                (0..self.file_count()).map(name).collect()
            }
            // All workers use the first directory.
            names => {
                directories.truncate(1);
                split_names(names)
            }
        };
        let [directory] = &directories[..] else { return Names { names, directories } };
        let within = |name: String| match name.starts_with('/') {
            true => name,
            false => format!("{}/{name}", directory.trim_end_matches('/')),
        };
        Names { names: names.into_iter().map(within).collect(), directories: Vec::new() }
    }

    /// Files in the form of a stream.
    pub(super) fn sharing(&self) -> FileSharing {
        let Names { names, directories } = self.names();
        if let ([name], true) = (&names[..], directories.is_empty()) {
            return match name.contains("{worker}") {
                true => FileSharing::Template(name.clone()),
                false if self.workers() == 1 => FileSharing::One(name.clone()),
                false => FileSharing::Shared(name.clone()),
            };
        }
        let (order, turn) = match self.text("file_service_type").split_once(':') {
            Some((order, turn)) => (order, turn.parse().unwrap_or(1)),
            None => (self.text("file_service_type"), 1),
        };
        let order = match order {
            "random" => FileOrder::Random,
            "sequential" => FileOrder::Sequential,
            _ => FileOrder::RoundRobin,
        };
        let open = u32::try_from(self.open_files()).unwrap_or(u32::MAX);
        FileSharing::Several(SeveralFiles { names, directories, order, turn, open })
    }

    /// Largest total size of the files.
    pub(super) fn space(&self) -> (Names, u64) {
        let names = self.names();
        let size = self.file_size().saturating_mul(names.count(self.workers()));
        (names, size)
    }

    /// Resolves the names of files.
    pub(super) fn place(&mut self, changes: &Changes) -> Result<(), Mistake> {
        self.check_format()?;
        self.place_logs(changes);
        if changes.directory.is_empty() {
            self.settings.remove("directory");
        } else {
            let own = split_names(self.text("directory"));
            let absolute = own.iter().map(|own| match own.as_str() {
                "" => changes.directory.clone(),
                own if own.starts_with('/') => own.to_owned(),
                own => format!("{}/{own}", changes.directory.trim_end_matches('/')),
            });
            let all: Vec<String> = absolute.map(|own| own.replace(':', "\\:")).collect();
            let at = self.given("directory").map_or(self.begun.clone(), |own| own.at.clone());
            let option = find("directory").expect("an option of the table");
            self.set(option, all.join(":"), at);
        }
        self.place_files(changes)?;
        self.append(changes)?;
        self.find_size(changes);
        self.resolve_percentage("size")?;
        self.resolve_percentage("io_size")
    }

    /// Moves the section to the end of existing files, for `file_append`.
    fn append(&mut self, changes: &Changes) -> Result<(), Mistake> {
        if !self.flag("file_append") {
            return Ok(());
        }
        let setting = self.settings.remove("file_append").expect("the flag is set");
        let Some(size_of) = changes.size_of else { return Ok(()) };
        let sharing = self.sharing();
        let names = (0..self.workers()).flat_map(|worker| sharing.names(worker));
        let mut sizes = names.map(|name| size_of(&name).unwrap_or(0));
        let size = sizes.next().unwrap_or(0);
        if sizes.any(|other| other != size) {
            let message = "file_append requires files of equal sizes; remove them, or use a section \
                           per file";
            return Err(setting.mistake(message));
        }
        if size == 0 {
            return Ok(());
        }
        let placed = ["offset", "offset_increment", "filesize"];
        if placed.into_iter().any(|name| !matches!(self.text(name), "0" | "")) || !self.writes() {
            let message = "file_append requires a section that writes, without offset, \
                           offset_increment, and filesize; remove it or them";
            return Err(setting.mistake(message));
        }
        if self.flag("overwrite") {
            let message = "overwrite=1 would replace the files to append to; remove it";
            return Err(setting.mistake(message));
        }
        self.set(find("offset").expect("an option of the table"), size.to_string(), setting.at);
        Ok(())
    }

    /// Sets the size of the files to that of the existing ones if the size of the section is a
    /// percentage.
    fn find_size(&mut self, changes: &Changes) {
        let wanted = self.text("size").ends_with('%') && self.number("filesize") == 0;
        let Some(size_of) = changes.size_of.filter(|_| wanted) else { return };
        let sharing = self.sharing();
        let mut sizes = sharing.names(0).into_iter().map(|name| size_of(&name));
        let first = sizes.next().flatten().filter(|size| *size > 0);
        let (Some(size), true) = (first, sizes.all(|other| other == first)) else { return };
        let at = self.given("size").map_or(self.begun.clone(), |own| own.at.clone());
        self.set(find("filesize").expect("an option of the table"), size.to_string(), at);
    }

    /// Replaces a percentage of the files by a size.
    fn resolve_percentage(&mut self, name: &'static str) -> Result<(), Mistake> {
        let Some(setting) = self.given(name).cloned() else { return Ok(()) };
        let Some(percent) = setting.value.strip_suffix('%') else { return Ok(()) };
        let all = match self.number("filesize") {
            0 if name == "io_size" => self.number("size"),
            size => size.saturating_mul(self.file_count()),
        };
        if all == 0 {
            let message = "a percentage requires filesize, files that exist and have equal sizes, or \
                           a file in the place of a device; use a size";
            return Err(setting.mistake(message));
        }
        let size = u128::from(all) * percent.parse::<u128>().unwrap_or(0) / 100;
        let size = u64::try_from(size).unwrap_or(u64::MAX).to_string();
        self.set(find(name).expect("an option of the table"), size, setting.at);
        Ok(())
    }

    fn place_files(&mut self, changes: &Changes) -> Result<(), Mistake> {
        let Some(setting) = self.given("filename").cloned() else { return Ok(()) };
        if setting.value.is_empty() {
            self.settings.remove("filename");
            return Ok(());
        }
        // The number of the names counts.
        self.settings.remove("nrfiles");
        let mut sizes = Vec::new();
        let mut names = Vec::new();
        for name in split_names(&setting.value) {
            let target = mapped(&name, &changes.map).map_err(|own| setting.mistake(own))?;
            sizes.extend(target.as_ref().map(|(_, size)| *size));
            let name = match target {
                Some((file, _)) => file,
                None if is_device(&name) => {
                    return Err(setting.mistake(format!(
                        "{name} is a device, and jobs access files only; set `map` to \
                         \"{name}=FILE:SIZE\" to use a file"
                    )));
                }
                None => name,
            };
            names.push(checked(name, changes).map_err(|own| setting.mistake(own))?);
        }
        let mut known = HashSet::new();
        if let Some(again) = names.iter().find(|name| !known.insert(*name)) {
            return Err(setting.mistake(format!("`{again}` is named twice; use other names")));
        }
        if let Some(size) = sizes.first() {
            if sizes.len() < names.len() || sizes.iter().any(|own| own != size) {
                let message = "the files in the place of devices have different sizes, or a file \
                               is not in the place of a device; use equal sizes in `map`";
                return Err(setting.mistake(message));
            }
            let option = |name| find(name).expect("an option of the table");
            if self.given("size").is_none() {
                let all = size.saturating_mul(sizes.len() as u64).to_string();
                self.set(option("size"), all, setting.at.clone());
            }
            self.set(option("filesize"), size.to_string(), setting.at.clone());
            if self.kind() == "write" {
                self.settings.remove("fill_device");
            }
        }
        let escaped: Vec<String> = names.iter().map(|name| name.replace(':', "\\:")).collect();
        let option = find("filename").expect("an option of the table");
        self.set(option, escaped.join(":"), setting.at);
        Ok(())
    }

    /// Resolves the names of logs. Only jobs in a directory of the user write logs.
    fn place_logs(&mut self, changes: &Changes) {
        for name in LOGS {
            let Some(setting) = self.given(name).cloned() else { continue };
            if changes.directory.is_empty() {
                self.settings.remove(name);
                continue;
            }
            let own = setting.value.replace("$jobname", &self.name.replace('/', "_"));
            let path = match own.starts_with('/') {
                true => own,
                false => format!("{}/{own}", changes.directory.trim_end_matches('/')),
            };
            let option = find(name).expect("an option of the table");
            self.set(option, path, setting.at);
        }
    }

    /// Logs of the section, whose workers have numbers from `first`.
    pub(super) fn logs(&self, first: u32) -> Option<OperationLog> {
        let path = |name| Some(self.text(name).to_owned()).filter(|path| !path.is_empty());
        let [bandwidth, operations, latency, histograms] = LOGS.map(path);
        if [&bandwidth, &operations, &latency, &histograms].iter().all(|own| own.is_none()) {
            return None;
        }
        let milliseconds = |name| Nanos(self.number(name).saturating_mul(1_000_000));
        Some(OperationLog {
            bandwidth,
            operations,
            latency,
            histograms: histograms.map(|path| HistogramLog {
                path,
                interval: milliseconds("log_hist_msec"),
                coarseness: u8::try_from(self.number("log_hist_coarseness")).unwrap_or(0),
            }),
            interval: milliseconds("log_avg_msec"),
            maximum: self.flag("log_max_value"),
            offsets: self.flag("log_offset"),
            first,
            per_worker: self.flag("per_job_logs"),
        })
    }

    fn check_format(&self) -> Result<(), Mistake> {
        let Some(setting) = self.given("filename_format") else { return Ok(()) };
        let format = &setting.value;
        if format.contains(['/', ':']) || format.contains("..") || format.is_empty() {
            let message = "names with directories are not supported; use directory";
            return Err(setting.mistake(message));
        }
        if self.file_count() > 1 && !format.contains("$filenum") {
            let message = "several files require $filenum in their names; add it";
            return Err(setting.mistake(message));
        }
        Ok(())
    }
}

/// Name of a file, without its directories if files are in the directory of the trial.
fn checked(mut name: String, changes: &Changes) -> Result<String, String> {
    if name.split('/').any(|part| part == "..") {
        return Err("`..` in a file name is not supported; use another name".into());
    }
    if changes.directory.is_empty() {
        name = name.rsplit('/').next().unwrap_or_default().to_owned();
    }
    if matches!(name.as_str(), "" | "." | "-") || name.ends_with('/') || name.contains("{worker}") {
        return Err(format!("`{name}` is not the name of a file"));
    }
    Ok(name)
}

impl Job {
    /// Files of the job, relative to the directory of the trial or absolute.
    pub fn files(&self) -> Vec<JobFile> {
        let mut all: Vec<JobFile> = Vec::new();
        let mut index: HashMap<String, usize> = HashMap::new();
        for section in self.sections.iter().filter(|section| section.touches()) {
            let (files, size) = (section.sharing(), Bytes(section.file_size()));
            let (block, _) = section.block_sizes();
            let owners = if files.are_separate() { section.workers() } else { 1 };
            for path in (0..owners).flat_map(|worker| files.names(worker)) {
                let written = section.changes_files();
                match index.get(&path) {
                    Some(at) => {
                        let file = &mut all[*at];
                        file.size = file.size.max(size);
                        file.written |= written;
                    }
                    None => {
                        index.insert(path.clone(), all.len());
                        all.push(JobFile { path, size, written, block: Bytes(block) });
                    }
                }
            }
        }
        all
    }
}

/// File that a job accesses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobFile {
    /// Path, relative to the directory of the trial or absolute.
    pub path: String,
    /// Size. A smaller file is replaced or extended.
    pub size: Bytes,
    /// True if sections write to it.
    pub written: bool,
    /// Smallest block of the first section.
    pub block: Bytes,
}
