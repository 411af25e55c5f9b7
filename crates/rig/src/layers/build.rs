//! Building the layers of an instance, the lowest first, and finding what came of them.

use std::path::{Path, PathBuf};

use model::{BlockRange, Bytes, Environment, Layer, Nanos, Warning};

use super::{
    fail::{Weakness, spoil},
    table::{self, SECTOR},
    title,
};
use crate::{
    bench::{Bench, Input},
    device::name_of,
    error::RigError,
    guard::Medium,
    host::Host,
    undo::{Built, Change, PREFIX, Step},
};

const CLASS: &str = "/sys/class/block";

/// What the metadata of a pool or a cache begin with, and what is zeroed to say that there are none
/// (Documentation/admin-guide/device-mapper/thin-provisioning.rst; `__open_or_format_metadata` in
/// drivers/md/dm-cache-metadata.c looks at the same block).
const SUPERBLOCK: Bytes = Bytes::kib(4);

/// A device on which something can stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Top {
    /// Its node.
    pub(crate) path: PathBuf,
    /// The kernel's name of it.
    pub(crate) name: String,
    /// Its size.
    pub(crate) size: Bytes,
}

/// What layers are built for and on.
pub(crate) struct Ground<'a> {
    /// The machine.
    pub(crate) host: &'a dyn Host,
    /// The run, whose name every device bears.
    pub(crate) run_id: &'a str,
    /// The devices of the storage that are used.
    pub(crate) devices: Vec<Top>,
}

/// What is told while layers are built.
#[derive(Debug, Default)]
pub(crate) struct Told {
    /// What undoes each device that was built, and its name, oldest first.
    pub(crate) steps: Vec<(Step, String)>,
    /// What is to fail once the workload is measured, or is told of that moment.
    pub(crate) weaknesses: Vec<Weakness>,
    /// Facts of the layers.
    pub(crate) facts: Environment,
    /// What came out otherwise than it was asked for.
    pub(crate) warnings: Vec<Warning>,
}

/// Builds the layers and gives the devices that the filesystem is made on. What was built when an
/// error comes is in `told`, as is all that undoes it.
///
/// # Errors
/// [`RigError`]: a program that is missing or fails, a device that does not appear or is too small.
pub(crate) fn build(
    bench: &mut Bench,
    ground: Ground<'_>,
    layers: &[Layer],
    told: &mut Told,
) -> Result<Vec<Top>, RigError> {
    let Ground { host, run_id, mut devices } = ground;
    for (index, layer) in layers.iter().enumerate() {
        let prefix = format!("{PREFIX}{run_id}-{index}");
        let mut site = Site { bench, host, prefix, told, layer };
        devices = match layer {
            Layer::Md { level, chunk } => vec![site.array(level, *chunk, &devices)?],
            Layer::Crypt { cipher, key_bits } => site.crypt(cipher, *key_bits, &devices)?,
            Layer::Thin { block } => vec![site.thin(*block, &devices)?],
            Layer::Cache { mode, block } => vec![site.cache(mode, *block, &devices)?],
            Layer::Delay { read, write } => site.delay(*read, *write, &devices)?,
            Layer::Flakey { fault, up, down } => site.flakey(fault, *up, *down, &devices)?,
            Layer::Dust { bad, block } => site.dust(bad, *block, &devices)?,
            Layer::LogWrites => vec![site.log_writes(&devices)?],
        };
    }
    if !layers.is_empty() {
        let titles: Vec<_> = layers.iter().map(title).collect();
        told.facts.set("layers", titles.join("; "));
    }
    Ok(devices)
}

/// Where one layer is built.
struct Site<'a> {
    bench: &'a mut Bench,
    host: &'a dyn Host,
    /// What the names of its devices begin with.
    prefix: String,
    told: &'a mut Told,
    layer: &'a Layer,
}

/// A mapped device.
struct Made {
    top: Top,
    /// What dmsetup(8) calls it.
    name: String,
    uuid: String,
}

impl Site<'_> {
    fn array(
        &mut self,
        level: &str,
        chunk: Option<Bytes>,
        devices: &[Top],
    ) -> Result<Top, RigError> {
        let name = self.prefix.clone();
        let hex = self.draw(16)?;
        let groups: Vec<&str> = (0..4).map(|group| &hex[group * 8..group * 8 + 8]).collect();
        let uuid = groups.join(":");
        let members: Vec<String> = devices.iter().map(Top::node).collect();
        let argv = table::array(level, chunk, &name, &uuid, &members);
        let change = Change::Layer {
            kind: Built::Array,
            name: name.clone(),
            uuid,
            members: devices.iter().map(|device| device.path.clone()).collect(),
        };
        let step = self.bench.layer(change, &argv, Input::NONE)?;
        self.told.steps.push((step, format!("array {name}")));
        let node = PathBuf::from(table::node(&name));
        let kernel = self.host.follow(&node).map_err(|error| self.failed(&name, &error))?;
        let top = self.top(node, name_of(&kernel))?;
        self.read_back(&top.name, level, chunk);
        Ok(top)
    }

    /// What the kernel says of an array (Documentation/admin-guide/md.rst).
    fn read_back(&mut self, name: &str, level: &str, chunk: Option<Bytes>) {
        let folder = Path::new(CLASS).join(name).join("md");
        let told = ["level", "chunk_size", "raid_disks", "metadata_version", "sync_action"];
        for fact in told {
            let Ok(text) = self.host.read(&folder.join(fact)) else { continue };
            let found = text.trim();
            self.told.facts.set(format!("device.{name}.array.{fact}"), found);
            let wanted = match (fact, chunk) {
                ("level", _) => level.to_owned(),
                ("chunk_size", Some(chunk)) => chunk.0.to_string(),
                _ => continue,
            };
            if wanted != found {
                let setting = format!("{fact} of the array {name}");
                let found = found.to_owned();
                self.told.warnings.push(Warning::ReadBack { setting, wanted, found });
            }
        }
    }

    fn crypt(
        &mut self,
        cipher: &str,
        key_bits: u32,
        devices: &[Top],
    ) -> Result<Vec<Top>, RigError> {
        let mut tops = Vec::new();
        for (index, device) in devices.iter().enumerate() {
            let key = self.draw(key_bits as usize / 8)?;
            let text = table::crypt(&device.node(), device.sectors(), cipher, &key);
            let input = Input { text: &text, secret: &key };
            tops.push(self.map(&format!("crypt-{index}"), &input)?);
        }
        Ok(tops)
    }

    fn thin(&mut self, block: Bytes, devices: &[Top]) -> Result<Top, RigError> {
        let (meta, data) = match devices {
            [meta, data] => (meta.clone(), data.clone()),
            [one, ..] => {
                let aside = table::pool_metadata(one.sectors(), block);
                self.split(one, aside, ["meta", "data"])?
            }
            [] => return Err(self.failed("a pool", &"there is no device")),
        };
        self.begin(&meta)?;
        let length = table::whole(data.sectors(), block);
        if length == 0 {
            return Err(self.failed(&data.node(), &format!("{} make no block", data.size)));
        }
        let text = table::pool(&meta.node(), &data.node(), length, block);
        let pool = self.map("pool", &Input::open(&text))?;
        let name = format!("{}-pool", self.prefix);
        let argv = ["dmsetup", "message", &name, "0", "create_thin 0"];
        let output = self.bench.run(&argv.map(str::to_owned))?;
        if !output.success() {
            return Err(self.failed(&argv.join(" "), &output.verdict()));
        }
        self.map("thin", &Input::open(&table::thin(&pool.node(), length)))
    }

    fn cache(&mut self, mode: &str, block: Bytes, devices: &[Top]) -> Result<Top, RigError> {
        let [fast, origin] = devices else {
            return Err(self.failed("a cache", &"it takes two devices"));
        };
        let aside = table::cache_metadata(fast.sectors());
        let (meta, fast) = self.split(fast, aside, ["meta", "fast"])?;
        self.begin(&meta)?;
        let nodes = [meta.node(), fast.node(), origin.node()];
        let nodes = [&*nodes[0], &*nodes[1], &*nodes[2]];
        let text = table::cache(nodes, origin.sectors(), block, mode);
        self.map("cache", &Input::open(&text))
    }

    fn delay(&mut self, read: Nanos, write: Nanos, devices: &[Top]) -> Result<Vec<Top>, RigError> {
        let table = |device: &Top| table::delay(&device.node(), device.sectors(), read, write);
        let made = self.each("delay", devices, table)?;
        Ok(made.into_iter().map(|made| made.top).collect())
    }

    fn flakey(
        &mut self,
        fault: &str,
        up: Nanos,
        down: Nanos,
        devices: &[Top],
    ) -> Result<Vec<Top>, RigError> {
        let sound = |device: &Top| table::sound(&device.node(), device.sectors());
        let mut tops = Vec::new();
        for (made, device) in self.each("flakey", devices, sound)?.into_iter().zip(devices) {
            let failing = table::flakey(&device.node(), device.sectors(), fault, up, down);
            let (what, sound) = (title(self.layer), sound(device));
            let Made { top, name, uuid } = made;
            self.told.weaknesses.push(Weakness::Table { name, uuid, what, sound, failing });
            tops.push(top);
        }
        Ok(tops)
    }

    fn dust(
        &mut self,
        bad: &[BlockRange],
        block: Bytes,
        devices: &[Top],
    ) -> Result<Vec<Top>, RigError> {
        for device in devices {
            let has = device.size.0 / block.0;
            if let Some(range) = bad.iter().find(|range| range.last >= has) {
                let why = format!("it has {has} blocks of {block}, and {range} is not among them");
                return Err(self.failed(&device.node(), &why));
            }
        }
        let table = |device: &Top| table::dust(&device.node(), device.sectors(), block);
        let mut tops = Vec::new();
        for Made { top, name, uuid } in self.each("dust", devices, table)? {
            spoil(self.bench, &name, bad).map_err(|why| self.failed(&name, &why))?;
            self.told.weaknesses.push(Weakness::Blocks { name, uuid, what: title(self.layer) });
            tops.push(top);
        }
        Ok(tops)
    }

    fn log_writes(&mut self, devices: &[Top]) -> Result<Top, RigError> {
        let [device, log] = devices else {
            return Err(self.failed("a log of writes", &"it takes two devices"));
        };
        let text = table::log_writes(&device.node(), device.sectors(), &log.node());
        let Made { top, name, .. } = self.make("log-writes", &Input::open(&text))?;
        self.told.weaknesses.push(Weakness::Log { name });
        Ok(top)
    }

    /// Maps each device by a table of its own.
    fn each(
        &mut self,
        target: &str,
        devices: &[Top],
        table: impl Fn(&Top) -> String,
    ) -> Result<Vec<Made>, RigError> {
        let numbered = devices.iter().enumerate();
        let map = |(index, device): (usize, &Top)| {
            self.make(&format!("{target}-{index}"), &Input::open(&table(device)))
        };
        numbered.map(map).collect()
    }

    /// The first sectors of a device, and all the others, each as a device.
    fn split(
        &mut self,
        device: &Top,
        first: u64,
        parts: [&str; 2],
    ) -> Result<(Top, Top), RigError> {
        let Some(rest) = device.sectors().checked_sub(first).filter(|rest| *rest > 0) else {
            let why = format!("{} leave nothing beside {} of metadata", device.size, of(first));
            return Err(self.failed(&device.node(), &why));
        };
        let node = device.node();
        let one = self.map(parts[0], &Input::open(&table::linear(&node, 0, first)))?;
        let two = self.map(parts[1], &Input::open(&table::linear(&node, first, rest)))?;
        Ok((one, two))
    }

    /// Says that a device holds no metadata yet: what was discarded may read as anything.
    fn begin(&mut self, meta: &Top) -> Result<(), RigError> {
        let what = format!("zero the first {SUPERBLOCK} of {}", meta.node());
        let expected = Medium::named(self.host, &meta.name);
        let expected = expected.map_err(|error| self.failed(&what, &error))?;
        let zero = |host: &dyn Host| host.zero(&meta.path, &expected, SUPERBLOCK);
        let (done, _) = self.bench.act(&*what, zero);
        done.map_err(|error| self.failed(&what, &error))
    }

    /// As [`Site::make`], where nobody asks for its name later.
    fn map(&mut self, part: &str, input: &Input<'_>) -> Result<Top, RigError> {
        self.make(part, input).map(|made| made.top)
    }

    /// Maps a device and finds it.
    fn make(&mut self, part: &str, input: &Input<'_>) -> Result<Made, RigError> {
        let name = format!("{}-{part}", self.prefix);
        let uuid = format!("{PREFIX}{}", self.draw(16)?);
        let argv = table::map(&name, &uuid);
        let change = Change::Layer {
            kind: Built::Mapped,
            name: name.clone(),
            uuid: uuid.clone(),
            members: Vec::new(),
        };
        let step = self.bench.layer(change, &argv, *input)?;
        self.told.steps.push((step, format!("mapped device {name}")));
        let kernel = named(self.host, &name)
            .ok_or_else(|| self.failed(&name, &"the kernel shows no mapped device of that name"))?;
        // Where udev does not run, there may be no node by the device's own name.
        let nodes = [table::mapped(&name), format!("/dev/{kernel}")].map(PathBuf::from);
        let node = nodes.into_iter().find(|node| self.host.entry(node).is_ok());
        let node = node.ok_or_else(|| self.failed(&name, &"it has no node in /dev"))?;
        Ok(Made { top: self.top(node, kernel)?, name, uuid })
    }

    /// A device that was made, with its size as the kernel tells it.
    fn top(&self, path: PathBuf, name: String) -> Result<Top, RigError> {
        let size = Path::new(CLASS).join(&name).join("size");
        let text = self.host.read(&size).map_err(|error| self.failed(&name, &error))?;
        let sectors: u64 = text.trim().parse().unwrap_or(0);
        if sectors == 0 {
            return Err(self.failed(&name, &"it has no size"));
        }
        Ok(Top { path, name, size: of(sectors) })
    }

    /// Bytes from the kernel's random device, as hexadecimal digits.
    fn draw(&self, bytes: usize) -> Result<String, RigError> {
        let drawn =
            self.host.random(bytes).map_err(|error| self.failed("a name or key", &error))?;
        Ok(drawn.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn failed(&self, what: &str, why: &dyn std::fmt::Display) -> RigError {
        RigError::Layer {
            layer: title(self.layer),
            why: format!("{what}: {why}"),
            cure: "see the kernel log, or take the layer out of the plan",
        }
    }
}

impl Top {
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

/// The kernel's name of the mapped device of that name
/// (Documentation/ABI/testing/sysfs-block-dm).
fn named(host: &dyn Host, name: &str) -> Option<String> {
    let mut names = host.list(Path::new(CLASS)).ok()?;
    names.retain(|kernel| kernel.starts_with("dm-"));
    names.into_iter().find(|kernel| {
        let told = host.read(&Path::new(CLASS).join(kernel).join("dm/name"));
        told.is_ok_and(|told| told.trim() == name)
    })
}
