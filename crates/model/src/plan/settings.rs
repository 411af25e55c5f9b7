//! Overrides of plan keys from the command line (`--set KEY=VALUE`).

use super::{KnownNames, Plan, PlanError, WorkloadEntry, keys, parse};
use crate::{
    cell::{AaControl, FilesystemLevel, FillLevel, Isolation},
    design::{Design, OptionAxis},
    guest::GuestKind,
    options::OptionOf,
    plan::{InvalidTrials, Profile},
    setting::{SETTINGS, SystemSetting},
    storage::{Allocation, StorageKind},
    suggest::nearest,
    units::{Bytes, Nanos},
    workload::{Value, ValueError},
};

/// Keys of `--set` other than suite parameters and system settings.
pub const OVERRIDES: [&str; 24] = [
    "filesystem",
    "scheduler",
    "fill_percent",
    "profile",
    "repetitions",
    "aa_control",
    "time_limit",
    "invalid_trials",
    "design",
    "seed",
    "fsck",
    "isolation",
    "guest",
    "guest_device",
    "guest_device_latency",
    "study",
    "memory_limit",
    "external_directory",
    "image_size",
    "image_count",
    "image_directory",
    "image_allocation",
    "device",
    "directory",
];

impl Plan {
    /// Overrides a key: an axis (`filesystem=ext4,xfs`), a top-level key (`repetitions=3`), the
    /// storage (`device=/dev/sdb`, `directory=/srv`), a key of the storage table
    /// (`memory_limit=1GiB`), or a parameter (`block_size=64KiB,1MiB`). A parameter is overridden
    /// in all suites that have it.
    ///
    /// Commas separate the values of a list. `clients=..32` removes the values above 32 from a
    /// sweep, and removes workloads that have only higher values.
    ///
    /// # Errors
    /// [`ValueError`] if the plan cannot have this key or value.
    pub fn set(
        &mut self,
        key: &str,
        text: &str,
        vocabulary: KnownNames<'_>,
    ) -> Result<(), ValueError> {
        let plain = |error: PlanError| ValueError { message: error.message, hint: error.hint };
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
            "fill_percent" => {
                let level = |word: String| {
                    let percent = word.parse().ok().filter(|n| *n <= FillLevel::MAX.0);
                    percent.map(FillLevel).ok_or_else(|| bad(key, &word))
                };
                self.fill_levels = words().map(level).collect::<Result<_, _>>()?;
            }
            "external_directory" => self.storage.external_directory = Some(text.to_owned()),
            "profile" => self.profile = parse::profile(text, 0..0).map_err(plain)?,
            "repetitions" => {
                let repetitions = number(text)?;
                let fits = u32::try_from(repetitions).ok().filter(|n| (1..=1000).contains(n));
                self.repetitions = Some(fits.ok_or_else(|| bad(key, text))?);
            }
            "aa_control"
            | "time_limit"
            | "invalid_trials"
            | "isolation"
            | "study"
            | "guest"
            | "guest_device"
            | "guest_device_latency" => self.set_control(key, text)?,
            "seed" => self.seed = Some(number(text)?),
            "memory_limit" => self.storage.memory_limit = Some(size()?),
            "fsck" => self.fsck = text.parse().map_err(|_| bad(key, text))?,
            "device" => self.set_device(words().collect()),
            "cluster" | "cluster_hosts" | "directory" | "launcher" => {
                self.set_directory(key, text)?;
            }
            "image_size" if !self.storage.kind.each().iter().any(|(_, kind)| is_image(kind)) => {
                self.replace_storage(image(size()?));
            }
            "image_size" | "image_count" | "image_directory" | "image_allocation" => {
                self.set_image(key, text)?
            }
            "design" => {
                let named = Design::from_name(text);
                self.design = Some(named.ok_or_else(|| {
                    bad(key, text).hint(format!("use {}", Design::ALL.map(Design::name).join(", ")))
                })?);
            }
            _ if OptionOf::parse(key).is_some() => self.set_option(key, words())?,
            _ => match SystemSetting::from_name(key) {
                Some(factor) => self.set_system_setting(factor, text)?,
                None => self.set_parameter(key, text)?,
            },
        }
        Ok(())
    }

    /// Sets the values of a varied option.
    fn set_option(
        &mut self,
        key: &str,
        words: impl Iterator<Item = String>,
    ) -> Result<(), ValueError> {
        let key = parse::options::checked(key)?;
        let values = words.map(|word| parse::options::text_value(&word));
        let values = values.collect::<Result<Vec<_>, _>>()?;
        match self.options.iter_mut().find(|option| option.key == key) {
            Some(option) => option.values = values,
            None => self.options.push(OptionAxis { key, values }),
        }
        Ok(())
    }

    /// Overrides a key that controls how trials are run and repeated.
    fn set_control(&mut self, key: &str, text: &str) -> Result<(), ValueError> {
        match key {
            "aa_control" => {
                let named = parse::conditions::aa_control_from_name(text);
                self.aa_control = Some(named.ok_or_else(|| {
                    let names = AaControl::ALL.map(AaControl::name).join(", ");
                    bad(key, text).hint(format!("use {names}"))
                })?);
            }
            "time_limit" => {
                let time =
                    Nanos::parse(text).map_err(|error| ValueError::new(error.to_string()))?;
                self.time_limit = Some(time).filter(|time| time.0 > 0);
                self.time_limit
                    .ok_or_else(|| bad(key, text).hint("use a duration greater than 0"))?;
            }
            "invalid_trials" => {
                self.invalid_trials = Some(InvalidTrials::from_name(text).ok_or_else(|| {
                    let names = InvalidTrials::ALL.map(InvalidTrials::name).join(", ");
                    bad(key, text).hint(format!("use {names}"))
                })?);
            }
            "guest" => {
                self.guest = Some(GuestKind::from_name(text).ok_or_else(|| {
                    let names = GuestKind::ALL.map(GuestKind::name).join(", ");
                    bad(key, text).hint(format!("use {names}"))
                })?);
            }
            "guest_device" => {
                self.guest_disk.device = Some(parse::conditions::device_from_name(text)?);
            }
            "guest_device_latency" => {
                self.guest_disk.latency = Some(parse::conditions::parse_latency(text)?);
            }
            "study" => self.study = Some(parse::conditions::study_from_name(text)?),
            "isolation" => {
                let named = parse::conditions::isolation_from_name(text);
                self.isolation = named.ok_or_else(|| {
                    let names = Isolation::ALL.map(Isolation::name).join(", ");
                    bad(key, text).hint(format!("use {names}"))
                })?;
            }
            _ => {}
        }
        Ok(())
    }

    fn set_system_setting(&mut self, factor: SystemSetting, text: &str) -> Result<(), ValueError> {
        let values = factor.spec().kind.read_sweep(text)?;
        for entry in &mut self.workloads {
            entry.system_settings.retain(|(other, _)| *other != factor);
        }
        if factor == SystemSetting::Size {
            let sizes = values.iter().filter_map(Value::as_size);
            self.resize_images(sizes.max().unwrap_or_default());
        }
        match self.system_settings.iter_mut().find(|(other, _)| *other == factor) {
            Some(slot) => slot.1 = values,
            None => self.system_settings.push((factor, values)),
        }
        Ok(())
    }

    fn resize_images(&mut self, wanted: Bytes) {
        for kind in self.storage.kind.each_mut() {
            if let StorageKind::Image { size, .. } = kind {
                *size = wanted;
            }
        }
    }

    /// True if the size of the filesystems is an axis.
    pub(crate) fn has_sizes(&self) -> bool {
        self.system_settings.iter().any(|(setting, _)| *setting == SystemSetting::Size)
    }

    /// Restricts the axis `device` to these levels. Other words are paths of devices, which replace
    /// the storage.
    fn set_device(&mut self, words: Vec<String>) {
        if let StorageKind::Levels { levels } = &mut self.storage.kind
            && words.iter().all(|word| levels.iter().any(|level| level.name == *word))
        {
            levels.retain(|level| words.contains(&level.name));
            let named = |value: &Value| words.contains(&value.to_string());
            for (_, values) in self.devices_of_axes() {
                values.retain(named);
            }
            // The workloads of the removed devices are removed, too.
            self.workloads.retain(|entry| entry.system_settings.iter().all(|(_, v)| !v.is_empty()));
            return;
        }
        self.replace_storage(StorageKind::Devices { paths: words });
    }

    /// Values of the axis `device`: those of the plan, then those of single workloads.
    fn devices_of_axes(&mut self) -> impl Iterator<Item = &mut (SystemSetting, Vec<Value>)> {
        let own = self.workloads.iter_mut().flat_map(|entry| &mut entry.system_settings);
        let all = self.system_settings.iter_mut().chain(own);
        all.filter(|(setting, _)| *setting == SystemSetting::Device)
    }

    /// Replaces the storage, and with it the axis `device`.
    fn replace_storage(&mut self, kind: StorageKind) {
        let other = |(setting, _): &(SystemSetting, Vec<Value>)| *setting != SystemSetting::Device;
        self.system_settings.retain(other);
        self.workloads.iter_mut().for_each(|entry| entry.system_settings.retain(other));
        if !matches!(kind, StorageKind::Directory { .. }) {
            self.cluster = None;
        }
        self.storage.kind = kind;
    }

    /// Overrides the directory under test, or the hosts that mount it.
    fn set_directory(&mut self, key: &str, text: &str) -> Result<(), ValueError> {
        match key {
            "cluster" | "directory" => {
                self.replace_storage(StorageKind::Directory { path: text.to_owned() });
                self.filesystems = vec![FilesystemLevel::plain("directory")];
                self.cluster = (key == "cluster").then(|| self.cluster.take().unwrap_or_default());
            }
            _ => {
                let cluster = self.cluster.as_mut().ok_or_else(|| {
                    ValueError::new("the plan is not for several hosts")
                        .hint("set cluster=PATH, a directory that all hosts mount")
                })?;
                match key {
                    "launcher" => cluster.launcher = Some(text.to_owned()),
                    _ => cluster.hosts = text.split(',').map(|it| it.trim().to_owned()).collect(),
                }
            }
        }
        Ok(())
    }

    /// Overrides a property of the images, of each level that has images.
    fn set_image(&mut self, key: &str, text: &str) -> Result<(), ValueError> {
        if !self.storage.kind.each().iter().any(|(_, kind)| is_image(kind)) {
            return Err(ValueError::new("the storage of the plan is not an image"));
        }
        if key == "image_size" && self.has_sizes() {
            return Err(ValueError::new("the sizes of the images are the axis `size` of the plan")
                .hint(format!("use --set size={text}")));
        }
        for kind in self.storage.kind.each_mut() {
            let StorageKind::Image { size, count, directory, allocation, .. } = kind else {
                continue;
            };
            match key {
                "image_size" => {
                    let parsed = Bytes::parse(text);
                    *size = parsed.map_err(|error| ValueError::new(error.to_string()))?;
                }
                "image_count" => {
                    let number = text.parse().ok().filter(|count| (1..=16).contains(count));
                    *count = number.ok_or_else(|| bad(key, text))?;
                }
                "image_directory" => *directory = Some(text.to_owned()),
                _ => {
                    let known = [Allocation::Preallocated, Allocation::Sparse].into_iter();
                    let mut known = known.filter(|allocation| allocation.name() == text);
                    *allocation = known.next().ok_or_else(|| bad(key, text))?;
                }
            }
        }
        Ok(())
    }

    /// Removes values above `most` from the sweeps of a parameter, and workloads that have only
    /// higher values.
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
            let message = format!("no workload has `{key}` of at most {most}");
            return Err(ValueError::new(message).hint(format!("set `{key}` to a value")));
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
        let factors = SETTINGS.iter().map(|spec| spec.name);
        let known =
            OVERRIDES.into_iter().chain(factors).chain(suites.map(|parameter| parameter.name));
        let in_plan = |spec: &&keys::KeySpec| matches!(spec.table, "" | "storage" | "axes");
        if keys::KEYS.iter().filter(in_plan).any(|spec| spec.key == key) {
            let error = ValueError::new(format!("`{key}` cannot be overridden"));
            return Err(error.hint(match OptionOf::ALL.into_iter().find(|of| of.key() == key) {
                Some(of) => format!("set one option, such as {}", of.example()),
                None => "change it in the text of the plan".to_owned(),
            }));
        }
        let error = ValueError::new(format!("the plan has no key `{key}`"));
        Err(error.hint(match nearest(key, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "valid keys: {}, mount.OPTION, mkfs.OPTION, a name of `fslab list settings`, or a \
                 parameter of the plan's suites (`fslab list suites`)",
                OVERRIDES.join(", ")
            ),
        }))
    }

    /// True if [`Plan::set`] can override this key in any plan. All other keys are parameters of
    /// suites.
    pub fn is_key(key: &str) -> bool {
        OVERRIDES.contains(&key)
            || SystemSetting::from_name(key).is_some()
            || OptionOf::parse(key).is_some()
    }

    /// Number of repetitions of the plan or the profile, as text: `6`, or `8 to 30`.
    pub fn repetitions_in_words(&self) -> String {
        match self.repetitions {
            Some(n) => n.to_string(),
            None => {
                let analyses = Profile::interim_analyses(self.profile);
                let (first, last) = (analyses.first(), analyses.last());
                format!("{} to {}", first.unwrap_or(&0), last.unwrap_or(&0))
            }
        }
    }
}

/// One image in the default directory.
fn image(size: Bytes) -> StorageKind {
    let allocation = Allocation::default();
    StorageKind::Image { size, count: 1, directory: None, file: None, allocation }
}

fn is_image(kind: &StorageKind) -> bool {
    matches!(kind, StorageKind::Image { .. })
}

/// True if `value` is at most `most`, or if the values have no order.
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
        Value::Fraction(number) | Value::Number(number) => Some(*number),
        Value::Flag(_) | Value::Text(_) | Value::Word(_) | Value::Words(_) => None,
    }
}

fn bad(key: &str, text: &str) -> ValueError {
    let error = ValueError::new(format!("invalid value `{text}` for `{key}`"));
    match keys::KEYS.iter().find(|spec| spec.key == key) {
        Some(spec) => error.hint(format!("expected {}", spec.takes)),
        None => error,
    }
}
