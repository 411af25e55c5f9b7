//! Changing a plan from the command line, one `key=value` at a time.

use super::{Plan, PlanError, Vocabulary, WorkloadEntry, parse};
use crate::{
    cell::{FilesystemLevel, Fullness, Isolation, Twins},
    factor::{FACTORS, Factor},
    guest::GuestKind,
    plan::{Profile, Spoiled},
    storage::{Allocation, Place},
    suggest::nearest,
    units::{Bytes, Nanos},
    workload::{Value, ValueError},
};

/// Keys other than parameters of suites.
const KEYS: [&str; 23] = [
    "filesystem",
    "scheduler",
    "full",
    "profile",
    "repeats",
    "twins",
    "budget",
    "invalid",
    "seed",
    "fsck",
    "isolation",
    "guest",
    "guest_device",
    "guest_latency",
    "view",
    "memory",
    "elsewhere",
    "image",
    "images",
    "image_directory",
    "allocation",
    "device",
    "directory",
];

impl Plan {
    /// Replaces one setting: an axis (`filesystem=ext4,xfs`), a top-level key (`repeats=3`), the
    /// storage as a whole (`device=/dev/sdb`, `directory=/srv`) or a key of its table
    /// (`memory=1GiB`), or a parameter of every suite that has it (`record=64KiB,1MiB`). Commas
    /// separate the values of a list; `clients=..32` keeps those values of a sweep that are not
    /// above it, and leaves out workloads that have no others.
    ///
    /// # Errors
    /// When the key or the value is not one the plan could have.
    pub fn set(
        &mut self,
        key: &str,
        text: &str,
        vocabulary: Vocabulary<'_>,
    ) -> Result<(), ValueError> {
        let plain = |error: PlanError| ValueError { message: error.message, cure: error.cure };
        let size = || Bytes::parse(text).map_err(|error| ValueError::new(error.to_string()));
        let words = || text.split(',').map(|word| word.trim().to_owned());
        let number = |text: &str| text.parse::<u64>().map_err(|_| bad(key, text));
        match key {
            "filesystem" => {
                for name in words().filter(|name| !self.filesystems.iter().any(|l| l.name == *name))
                {
                    parse::check_filesystem(&name, 0..0, vocabulary).map_err(plain)?;
                }
                let level = |name: String| {
                    let written = self.filesystems.iter().find(|level| level.name == name);
                    written.cloned().unwrap_or_else(|| FilesystemLevel::plain(name))
                };
                self.filesystems = words().map(level).collect();
            }
            "scheduler" => {
                self.schedulers = words().collect();
                self.workloads.iter_mut().for_each(|entry| entry.schedulers = None);
            }
            "full" => {
                let level = |word: String| {
                    let percent = word.parse().ok().filter(|n| *n <= Fullness::MOST.0);
                    percent.map(Fullness).ok_or_else(|| bad(key, &word))
                };
                self.fullness = words().map(level).collect::<Result<_, _>>()?;
            }
            "elsewhere" => self.storage.elsewhere = Some(text.to_owned()),
            "profile" => self.profile = parse::profile(text, 0..0).map_err(plain)?,
            "repeats" => {
                let repeats = number(text)?;
                let fits = u32::try_from(repeats).ok().filter(|n| (1..=1000).contains(n));
                self.repeats = Some(fits.ok_or_else(|| bad(key, text))?);
            }
            "twins" | "budget" | "invalid" | "isolation" | "view" | "guest" | "guest_device"
            | "guest_latency" => self.set_control(key, text)?,
            "seed" => self.seed = Some(number(text)?),
            "memory" => self.storage.memory = Some(size()?),
            "fsck" => self.fsck = text.parse().map_err(|_| bad(key, text))?,
            "device" => self.storage.place = Place::Devices { paths: words().collect() },
            "directory" => {
                self.storage.place = Place::Directory { path: text.to_owned() };
                self.filesystems = vec![FilesystemLevel::plain("directory")];
            }
            "image" if !matches!(self.storage.place, Place::Image { .. }) => {
                self.storage.place = Place::Image {
                    size: size()?,
                    count: 1,
                    directory: None,
                    file: None,
                    allocation: Allocation::default(),
                };
            }
            "image" | "images" | "image_directory" | "allocation" => self.set_image(key, text)?,
            _ => match Factor::named(key) {
                Some(factor) => self.set_factor(factor, text)?,
                None => self.set_parameter(key, text)?,
            },
        }
        Ok(())
    }

    /// Sets what a run does to be sure of what it finds.
    fn set_control(&mut self, key: &str, text: &str) -> Result<(), ValueError> {
        match key {
            "twins" => {
                let named = parse::conditions::named_twins(text);
                self.twins = Some(named.ok_or_else(|| {
                    let names = Twins::ALL.map(Twins::name).join(", ");
                    bad(key, text).cure(format!("use {names}"))
                })?);
            }
            "budget" => {
                let time =
                    Nanos::parse(text).map_err(|error| ValueError::new(error.to_string()))?;
                self.budget = Some(time).filter(|time| time.0 > 0);
                self.budget
                    .ok_or_else(|| bad(key, text).cure("a budget of no time measures nothing"))?;
            }
            "invalid" => {
                self.spoiled = Some(Spoiled::named(text).ok_or_else(|| {
                    let names = Spoiled::ALL.map(Spoiled::name).join(", ");
                    bad(key, text).cure(format!("use {names}"))
                })?);
            }
            "guest" => {
                self.guest = Some(GuestKind::named(text).ok_or_else(|| {
                    let names = GuestKind::ALL.map(GuestKind::name).join(", ");
                    bad(key, text).cure(format!("use {names}"))
                })?);
            }
            "guest_device" => {
                self.guest_disk.device = Some(parse::conditions::named_device(text)?);
            }
            "guest_latency" => {
                self.guest_disk.latency = Some(parse::conditions::named_latency(text)?);
            }
            "view" => self.view = Some(parse::conditions::named_view(text)?),
            "isolation" => {
                let named = parse::conditions::named(text);
                self.isolation = named.ok_or_else(|| {
                    let names = Isolation::ALL.map(Isolation::name).join(", ");
                    bad(key, text).cure(format!("use {names}"))
                })?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks what settings may have set apart: filesystems, schedulers, and settings of devices
    /// against the storage.
    ///
    /// # Errors
    /// When the plan could not have been written like this.
    pub fn consistent(&self) -> Result<(), ValueError> {
        let directory = matches!(self.storage.place, Place::Directory { .. });
        let misfit = |level: &&FilesystemLevel| (level.base == "directory") != directory;
        if let Some(level) = self.filesystems.iter().find(misfit) {
            let error = ValueError::new(format!("`{}` does not go with the storage", level.name));
            return Err(error.cure(match directory {
                true => "a directory is measured as it is; set image or device to make filesystems",
                false => "set directory=PATH to measure a directory, or filesystem=NAME",
            }));
        }
        let busy = |level: &&FilesystemLevel| !level.setup.is_empty() || level.becomes.is_some();
        if let Some(level) = self.filesystems.iter().find(busy).filter(|_| directory) {
            let message = format!("`{}` has a setup, and the storage is a directory", level.name);
            return Err(ValueError::new(message).cure("name an image or a device"));
        }
        if let Some((message, cure)) = parse::conditions::unfit(self.isolation, &self.storage) {
            return Err(ValueError::new(message).cure(cure));
        }
        let disk = parse::conditions::unfit_disk(self.guest, self.guest_disk, &self.storage);
        if let Some((message, cure)) = disk {
            return Err(ValueError::new(message).cure(cure));
        }
        if directory && !self.schedulers.is_empty() {
            return Err(ValueError::new("a directory has no device of its own to schedule")
                .cure("take `scheduler` out of the plan"));
        }
        let own = self.workloads.iter();
        if directory && own.clone().any(|entry| entry.schedulers.is_some()) {
            let (message, cure) = parse::conditions::no_device("scheduler");
            return Err(ValueError::new(message).cure(cure));
        }
        let all = self.factors.iter().chain(own.flat_map(|entry| &entry.factors));
        let mut of_devices = all.filter(|(factor, _)| factor.of_devices());
        if let Some((factor, _)) = of_devices.next().filter(|_| directory) {
            let (message, cure) = parse::conditions::no_device(factor.spec().name);
            return Err(ValueError::new(message).cure(cure));
        }
        if directory && self.fullness.iter().any(|full| !full.is_empty()) {
            return Err(ValueError::new("somebody else's filesystem is not filled up")
                .cure("take `full` out of the plan"));
        }
        Ok(())
    }

    fn set_factor(&mut self, factor: Factor, text: &str) -> Result<(), ValueError> {
        let values = factor.spec().kind.read_sweep(text)?;
        for entry in &mut self.workloads {
            entry.factors.retain(|(other, _)| *other != factor);
        }
        match self.factors.iter_mut().find(|(other, _)| *other == factor) {
            Some(slot) => slot.1 = values,
            None => self.factors.push((factor, values)),
        }
        Ok(())
    }

    fn set_image(&mut self, key: &str, text: &str) -> Result<(), ValueError> {
        let Place::Image { size, count, directory, allocation, .. } = &mut self.storage.place
        else {
            return Err(ValueError::new("the plan's storage is not an image"));
        };
        match key {
            "image" => {
                *size = Bytes::parse(text).map_err(|error| ValueError::new(error.to_string()))?;
            }
            "images" => {
                let number = text.parse().ok().filter(|count| (1..=16).contains(count));
                *count = number.ok_or_else(|| bad(key, text))?;
            }
            "image_directory" => *directory = Some(text.to_owned()),
            _ => {
                let known = [Allocation::Full, Allocation::Sparse].into_iter();
                let mut known = known.filter(|allocation| allocation.name() == text);
                *allocation = known.next().ok_or_else(|| bad(key, text))?;
            }
        }
        Ok(())
    }

    /// Leaves out the values of a sweep that are above `most`, and workloads that have no others.
    fn cut(&mut self, key: &str, most: &str) -> Result<(), ValueError> {
        let mut left = Vec::new();
        for entry in &self.workloads {
            let mut entry = entry.clone();
            let Ok(spec) = entry.suite.parameter(key) else {
                left.push(entry);
                continue;
            };
            let most = spec.kind.read(most)?;
            let base = entry.base.parameters.get(key);
            let stays = match entry.values.iter_mut().find(|(name, _)| name == key) {
                Some((_, values)) => {
                    values.retain(|value| within(value, &most));
                    !values.is_empty()
                }
                None => base.is_none_or(|value| within(value, &most)),
            };
            if stays {
                left.push(entry);
            }
        }
        if left.is_empty() {
            let message = format!("no workload has a `{key}` up to {most}");
            return Err(ValueError::new(message).cure(format!("set `{key}` to a value instead")));
        }
        self.workloads = left;
        Ok(())
    }

    fn set_parameter(&mut self, key: &str, text: &str) -> Result<(), ValueError> {
        let known = |entry: &WorkloadEntry| entry.suite.parameter(key).is_ok();
        if let Some(most) = text.strip_prefix("..").filter(|_| self.workloads.iter().any(known)) {
            return self.cut(key, most);
        }
        let mut found = false;
        for entry in &mut self.workloads {
            let Ok(spec) = entry.suite.parameter(key) else { continue };
            found = true;
            let values = spec.kind.read_sweep(text)?;
            match entry.values.iter_mut().find(|(name, _)| name == key) {
                Some(slot) => slot.1 = values,
                None => entry.values.push((key.to_owned(), values)),
            }
        }
        if found {
            return Ok(());
        }
        let suites = self.workloads.iter().flat_map(|entry| entry.suite.parameters);
        let factors = FACTORS.iter().map(|spec| spec.name);
        let known = KEYS.into_iter().chain(factors).chain(suites.map(|parameter| parameter.name));
        let error = ValueError::new(format!("the plan has no setting `{key}`"));
        Err(match nearest(key, known.clone()) {
            Some(near) => error.cure(format!("did you mean `{near}`?")),
            None => error.cure(format!("it has {}", known.collect::<Vec<_>>().join(", "))),
        })
    }

    /// The profile's or the plan's own number of repeats, in words.
    pub fn repeats_in_words(&self) -> String {
        match self.repeats {
            Some(n) => format!("{n} repeats"),
            None => {
                let looks = Profile::looks(self.profile);
                let (first, last) = (looks.first(), looks.last());
                format!("{} to {} repeats", first.unwrap_or(&0), last.unwrap_or(&0))
            }
        }
    }
}

/// Whether a value is not above another of its kind; those without an order never are.
fn within(value: &Value, most: &Value) -> bool {
    match (amount(value), amount(most)) {
        (Some(value), Some(most)) => value <= most,
        _ => true,
    }
}

#[expect(clippy::cast_precision_loss, reason = "limits are round numbers")]
fn amount(value: &Value) -> Option<f64> {
    match value {
        Value::Size(Bytes(number)) | Value::Time(Nanos(number)) | Value::Count(number) => {
            Some(*number as f64)
        }
        Value::Share(number) | Value::Number(number) => Some(*number),
        Value::Flag(_) | Value::Text(_) | Value::Word(_) | Value::Words(_) => None,
    }
}

fn bad(key: &str, text: &str) -> ValueError {
    ValueError::new(format!("`{text}` is no value for `{key}`"))
}
