//! Creates the layers of an instance, lowest first, and reads back their properties.

use std::{
    io,
    path::{Path, PathBuf},
};

use model::{BlockRange, Bytes, Environment, Layer, Nanos, Warning};

use super::{
    fail::{FaultTarget, add_bad_blocks},
    table::{self, SECTOR},
    title,
};
use crate::{
    error::RigError,
    host::Host,
    journaled_host::{Input, JournaledHost},
    medium::{Medium, Number, sectors},
    sysfs::name_of,
    undo::{Built, Change, PREFIX, Step},
};

const CLASS: &str = "/sys/class/block";

/// Size of the superblock of a pool or a cache. The superblock is set to zero to mark the metadata
/// as empty (Documentation/admin-guide/device-mapper/thin-provisioning.rst;
/// `__open_or_format_metadata` in drivers/md/dm-cache-metadata.c checks the same block).
const SUPERBLOCK: Bytes = Bytes::kib(4);

/// Block device on which the next layer, or the filesystem, is created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopDevice {
    /// Device node.
    pub(crate) path: PathBuf,
    /// Kernel name.
    pub(crate) name: String,
    pub(crate) size: Bytes,
}

/// Input of layer creation.
pub(crate) struct BuildContext<'a> {
    pub(crate) host: &'a dyn Host,
    /// Run ID, which is part of every device name.
    pub(crate) run_id: &'a str,
    /// Devices of the storage on which the layers are created.
    pub(crate) devices: Vec<TopDevice>,
}

/// Results of layer creation.
#[derive(Debug, Default)]
pub(crate) struct BuildFacts {
    /// Undo step and name of each created device, oldest first.
    pub(crate) steps: Vec<(Step, String)>,
    /// Devices whose faults start with the first measured phase, or whose log gets a mark then.
    pub(crate) fault_targets: Vec<FaultTarget>,
    /// Environment facts about the layers.
    pub(crate) environment: Environment,
    /// Settings that were not applied.
    pub(crate) warnings: Vec<Warning>,
}

/// Creates the layers and returns the devices on which the filesystem is created. After an error,
/// `facts` contains the devices created so far with their undo steps.
///
/// # Errors
/// [`RigError::Layer`] if a program is missing or fails, or if a device does not appear or is too
/// small; [`RigError::Journal`].
pub(crate) fn build(
    journaled: &mut JournaledHost,
    context: BuildContext<'_>,
    layers: &[Layer],
    facts: &mut BuildFacts,
) -> Result<Vec<TopDevice>, RigError> {
    let BuildContext { host, run_id, mut devices } = context;
    for (index, layer) in layers.iter().enumerate() {
        let prefix = format!("{PREFIX}{run_id}-{index}");
        let mut layer_context = LayerContext { journaled, host, prefix, facts, layer };
        devices = match layer {
            Layer::Md { level, chunk } => vec![layer_context.array(level, *chunk, &devices)?],
            Layer::Crypt { cipher, key_size } => {
                layer_context.crypt(cipher, *key_size, &devices)?
            }
            Layer::Thin { block } => vec![layer_context.thin(*block, &devices)?],
            Layer::Cache { mode, block } => vec![layer_context.cache(mode, *block, &devices)?],
            Layer::Delay { read, write } => layer_context.delay(*read, *write, &devices)?,
            Layer::Flakey { fault, up, down } => {
                layer_context.flakey(fault, *up, *down, &devices)?
            }
            Layer::Dust { bad, block } => layer_context.dust(bad, *block, &devices)?,
            Layer::LogWrites => vec![layer_context.log_writes(&devices)?],
        };
    }
    if !layers.is_empty() {
        let titles: Vec<_> = layers.iter().map(title).collect();
        facts.environment.set("layers", titles.join("; "));
    }
    Ok(devices)
}

/// Context in which one layer is created.
struct LayerContext<'a> {
    journaled: &'a mut JournaledHost,
    host: &'a dyn Host,
    /// Prefix of the names of the devices of this layer.
    prefix: String,
    facts: &'a mut BuildFacts,
    layer: &'a Layer,
}

struct MappedDevice {
    top: TopDevice,
    /// Device-mapper name (dmsetup(8)).
    name: String,
    uuid: String,
}

impl LayerContext<'_> {
    fn array(
        &mut self,
        level: &str,
        chunk: Option<Bytes>,
        devices: &[TopDevice],
    ) -> Result<TopDevice, RigError> {
        let name = self.prefix.clone();
        let hex = self.draw(16)?;
        let groups: Vec<&str> = (0..4).map(|group| &hex[group * 8..group * 8 + 8]).collect();
        let uuid = groups.join(":");
        let members: Vec<String> = devices.iter().map(TopDevice::node).collect();
        let argv = table::array(level, chunk, &name, &uuid, &members);
        let change = Change::Layer {
            kind: Built::Array,
            name: name.clone(),
            uuid,
            members: devices.iter().map(|device| device.path.clone()).collect(),
        };
        let step = self.journaled.layer(change, &argv, Input::NONE)?;
        self.facts.steps.push((step, format!("array {name}")));
        let node = PathBuf::from(table::node(&name));
        let kernel = self.host.follow(&node).map_err(|error| self.failed(&name, &error))?;
        let top = self.top(node, name_of(&kernel))?;
        self.read_back(&top.name, level, chunk);
        Ok(top)
    }

    /// Reads back the properties of an array (Documentation/admin-guide/md.rst) as environment
    /// facts. A property that differs from the plan is a warning.
    fn read_back(&mut self, name: &str, level: &str, chunk: Option<Bytes>) {
        let directory = Path::new(CLASS).join(name).join("md");
        let files = ["level", "chunk_size", "raid_disks", "metadata_version", "sync_action"];
        for fact in files {
            let Ok(text) = self.host.read(&directory.join(fact)) else { continue };
            let found = text.trim();
            self.facts.environment.set(format!("device.{name}.array.{fact}"), found);
            let wanted = match (fact, chunk) {
                ("level", _) => level.to_owned(),
                ("chunk_size", Some(chunk)) => chunk.0.to_string(),
                _ => continue,
            };
            if wanted != found {
                let setting = format!("{fact} of the array {name}");
                let found = found.to_owned();
                self.facts.warnings.push(Warning::SettingNotApplied { setting, wanted, found });
            }
        }
    }

    fn crypt(
        &mut self,
        cipher: &str,
        key_size: u32,
        devices: &[TopDevice],
    ) -> Result<Vec<TopDevice>, RigError> {
        let mut tops = Vec::new();
        for (index, device) in devices.iter().enumerate() {
            let key = self.draw(key_size as usize / 8)?;
            let text = table::crypt(&device.node(), device.sectors(), cipher, &key);
            let input = Input { text: &text, secret: &key };
            tops.push(self.map(&format!("crypt-{index}"), &input)?);
        }
        Ok(tops)
    }

    fn thin(&mut self, block: Bytes, devices: &[TopDevice]) -> Result<TopDevice, RigError> {
        let (meta, data) = match devices {
            [meta, data] => (meta.clone(), data.clone()),
            [one, ..] => {
                let aside = table::pool_metadata(one.sectors(), block);
                self.split(one, aside, ["meta", "data"])?
            }
            [] => return Err(self.failed("a pool", &"no device")),
        };
        self.clear_metadata(&meta)?;
        let length = table::whole(data.sectors(), block);
        if length == 0 {
            return Err(
                self.failed(&data.node(), &format!("{} are less than one block", data.size))
            );
        }
        let text = table::pool(&meta.node(), &data.node(), length, block);
        let pool = self.map("pool", &Input::plain(&text))?;
        let name = format!("{}-pool", self.prefix);
        let argv = ["dmsetup", "message", &name, "0", "create_thin 0"];
        let output = self.journaled.run(&argv.map(str::to_owned))?;
        if !output.success() {
            return Err(self.failed(&argv.join(" "), &output.verdict()));
        }
        self.map("thin", &Input::plain(&table::thin(&pool.node(), length)))
    }

    fn cache(
        &mut self,
        mode: &str,
        block: Bytes,
        devices: &[TopDevice],
    ) -> Result<TopDevice, RigError> {
        let [fast, origin] = devices else {
            return Err(self.failed("a cache", &"requires two devices"));
        };
        let aside = table::cache_metadata(fast.sectors());
        let (meta, fast) = self.split(fast, aside, ["meta", "fast"])?;
        self.clear_metadata(&meta)?;
        let nodes = [meta.node(), fast.node(), origin.node()];
        let nodes = [&*nodes[0], &*nodes[1], &*nodes[2]];
        let text = table::cache(nodes, origin.sectors(), block, mode);
        self.map("cache", &Input::plain(&text))
    }

    fn delay(
        &mut self,
        read: Nanos,
        write: Nanos,
        devices: &[TopDevice],
    ) -> Result<Vec<TopDevice>, RigError> {
        let table =
            |device: &TopDevice| table::delay(&device.node(), device.sectors(), read, write);
        let made = self.each("delay", devices, table)?;
        Ok(made.into_iter().map(|made| made.top).collect())
    }

    fn flakey(
        &mut self,
        fault: &str,
        up: Nanos,
        down: Nanos,
        devices: &[TopDevice],
    ) -> Result<Vec<TopDevice>, RigError> {
        let sound = |device: &TopDevice| table::sound(&device.node(), device.sectors());
        let mut tops = Vec::new();
        for (made, device) in self.each("flakey", devices, sound)?.into_iter().zip(devices) {
            let failing = table::flakey(&device.node(), device.sectors(), fault, up, down);
            let (what, sound) = (title(self.layer), sound(device));
            let MappedDevice { top, name, uuid } = made;
            self.facts.fault_targets.push(FaultTarget::Table { name, uuid, what, sound, failing });
            tops.push(top);
        }
        Ok(tops)
    }

    fn dust(
        &mut self,
        bad: &[BlockRange],
        block: Bytes,
        devices: &[TopDevice],
    ) -> Result<Vec<TopDevice>, RigError> {
        for device in devices {
            let has = device.size.0 / block.0;
            if let Some(range) = bad.iter().find(|range| range.last >= has) {
                let why =
                    format!("{range} is out of range: the device has {has} blocks of {block}");
                return Err(self.failed(&device.node(), &why));
            }
        }
        let table = |device: &TopDevice| table::dust(&device.node(), device.sectors(), block);
        let mut tops = Vec::new();
        for MappedDevice { top, name, uuid } in self.each("dust", devices, table)? {
            add_bad_blocks(self.journaled, &name, bad).map_err(|why| self.failed(&name, &why))?;
            self.facts.fault_targets.push(FaultTarget::Blocks {
                name,
                uuid,
                what: title(self.layer),
            });
            tops.push(top);
        }
        Ok(tops)
    }

    fn log_writes(&mut self, devices: &[TopDevice]) -> Result<TopDevice, RigError> {
        let [device, log] = devices else {
            return Err(self.failed("a write log", &"requires two devices"));
        };
        let text = table::log_writes(&device.node(), device.sectors(), &log.node());
        let MappedDevice { top, name, .. } = self.make("log-writes", &Input::plain(&text))?;
        self.facts.fault_targets.push(FaultTarget::Log { name });
        Ok(top)
    }

    /// Creates one mapped device on each device. `table` returns the table for a device.
    fn each(
        &mut self,
        target: &str,
        devices: &[TopDevice],
        table: impl Fn(&TopDevice) -> String,
    ) -> Result<Vec<MappedDevice>, RigError> {
        let numbered = devices.iter().enumerate();
        let map = |(index, device): (usize, &TopDevice)| {
            self.make(&format!("{target}-{index}"), &Input::plain(&table(device)))
        };
        numbered.map(map).collect()
    }

    /// Splits a device into two mapped devices: one of the first `first` sectors, and one of the
    /// remaining sectors.
    fn split(
        &mut self,
        device: &TopDevice,
        first: u64,
        parts: [&str; 2],
    ) -> Result<(TopDevice, TopDevice), RigError> {
        let Some(rest) = device.sectors().checked_sub(first).filter(|rest| *rest > 0) else {
            let why = format!("{} are too small for {} of metadata", device.size, of(first));
            return Err(self.failed(&device.node(), &why));
        };
        let node = device.node();
        let one = self.map(parts[0], &Input::plain(&table::linear(&node, 0, first)))?;
        let two = self.map(parts[1], &Input::plain(&table::linear(&node, first, rest)))?;
        Ok((one, two))
    }

    /// Marks a metadata device as empty by zeroing its superblock, because discarded blocks may
    /// contain any data.
    fn clear_metadata(&mut self, meta: &TopDevice) -> Result<(), RigError> {
        let what = format!("zero the first {SUPERBLOCK} of {}", meta.node());
        let expected = medium_of(self.host, &meta.name);
        let expected = expected.map_err(|error| self.failed(&what, &error))?;
        let zero = |host: &dyn Host| host.zero(&meta.path, &expected, SUPERBLOCK);
        let (done, _) = self.journaled.execute(&*what, zero);
        done.map_err(|error| self.failed(&what, &error))
    }

    /// Creates a mapped device as [`LayerContext::make`] does, and returns its node, kernel name,
    /// and size only.
    fn map(&mut self, part: &str, input: &Input<'_>) -> Result<TopDevice, RigError> {
        self.make(part, input).map(|made| made.top)
    }

    /// Creates a mapped device with the table `input`, and finds its device node.
    fn make(&mut self, part: &str, input: &Input<'_>) -> Result<MappedDevice, RigError> {
        let name = format!("{}-{part}", self.prefix);
        let uuid = format!("{PREFIX}{}", self.draw(16)?);
        let argv = table::map(&name, &uuid);
        let change = Change::Layer {
            kind: Built::Mapped,
            name: name.clone(),
            uuid: uuid.clone(),
            members: Vec::new(),
        };
        let step = self.journaled.layer(change, &argv, *input)?;
        self.facts.steps.push((step, format!("mapped device {name}")));
        let kernel = kernel_name(self.host, &name)
            .ok_or_else(|| self.failed(&name, &"the kernel does not list this mapped device"))?;
        // Without udev, there may be no node with the device-mapper name.
        let nodes = [table::mapped(&name), format!("/dev/{kernel}")].map(PathBuf::from);
        let node = nodes.into_iter().find(|node| self.host.entry(node).is_ok());
        let node = node.ok_or_else(|| self.failed(&name, &"there is no node in /dev"))?;
        Ok(MappedDevice { top: self.top(node, kernel)?, name, uuid })
    }

    /// Device with this node and kernel name, and with the size that the kernel reports.
    fn top(&self, path: PathBuf, name: String) -> Result<TopDevice, RigError> {
        let size = Path::new(CLASS).join(&name).join("size");
        let text = self.host.read(&size).map_err(|error| self.failed(&name, &error))?;
        let sectors: u64 = text.trim().parse().unwrap_or(0);
        if sectors == 0 {
            return Err(self.failed(&name, &"its size is 0"));
        }
        Ok(TopDevice { path, name, size: of(sectors) })
    }

    /// Random bytes from the kernel, as hexadecimal digits.
    fn draw(&self, bytes: usize) -> Result<String, RigError> {
        let random =
            self.host.random(bytes).map_err(|error| self.failed("a name or key", &error))?;
        Ok(hex::encode(random))
    }

    fn failed(&self, what: &str, why: &dyn std::fmt::Display) -> RigError {
        RigError::Layer {
            layer: title(self.layer),
            why: format!("{what}: {why}"),
            hint: "see the kernel log, or remove the layer from the plan",
        }
    }
}

impl TopDevice {
    fn node(&self) -> String {
        self.path.display().to_string()
    }

    fn sectors(&self) -> u64 {
        self.size.0 / SECTOR
    }
}

fn of(sectors: u64) -> Bytes {
    Bytes(sectors.saturating_mul(SECTOR))
}

/// Kernel name of a mapped device (Documentation/ABI/testing/sysfs-block-dm).
fn kernel_name(host: &dyn Host, name: &str) -> Option<String> {
    let mut names = host.list(Path::new(CLASS)).ok()?;
    names.retain(|kernel| kernel.starts_with("dm-"));
    names.into_iter().find(|kernel| {
        let text = host.read(&Path::new(CLASS).join(kernel).join("dm/name"));
        text.is_ok_and(|text| text.trim() == name)
    })
}

/// Reads the identity of the whole device with this kernel name from sysfs.
///
/// # Errors
/// If sysfs has no such device.
fn medium_of(host: &dyn Host, name: &str) -> io::Result<Medium> {
    let fact = |file: &str| host.read(&Path::new("/sys/class/block").join(name).join(file));
    let odd = || io::Error::other(format!("sysfs has no number and size of {name}"));
    Ok(Medium {
        number: Number::parse(&fact("dev")?).ok_or_else(odd)?,
        size: sectors(&fact("size")?).ok_or_else(odd)?,
        sequence: fact("diskseq").ok().and_then(|text| text.trim().parse().ok()),
        start: None,
    })
}
