//! What kernel and tools lack for a layer, and what would help.
//!
//! Looking changes nothing: the kernel loads a driver when the first device of it is made, and
//! whether it could is asked of modprobe(8) with `-n`.

use std::path::Path;

use model::{Bytes, Environment, Layer, Nanos};

use super::{table, title};
use crate::{
    availability::{Availability, Lack, Packages, install, loadable},
    host::Host,
};

/// Packages with mdadm(8) and dmsetup(8), by family of distributions.
const MDADM: Packages = &[
    ("debian", "mdadm"),
    ("fedora", "mdadm"),
    ("arch", "mdadm"),
    ("suse", "mdadm"),
    ("alpine", "mdadm"),
];
const DMSETUP: Packages = &[
    ("debian", "dmsetup"),
    ("fedora", "device-mapper"),
    ("arch", "device-mapper"),
    ("suse", "device-mapper"),
    ("alpine", "device-mapper"),
];

/// A driver that a layer needs: the alias by which the kernel asks for its module
/// (`md_run` in drivers/md/md.c, `load_module` in drivers/md/dm-target.c), the file of the module,
/// and the option a kernel is built with.
struct Driver {
    alias: String,
    module: &'static str,
    option: &'static str,
}

/// What a layer lacks here: first the kernel's part, then the tool.
pub(crate) fn lacks(layer: &Layer, host: &dyn Host) -> Vec<(String, String)> {
    let program = program(layer);
    let packages = if program == "mdadm" { MDADM } else { DMSETUP };
    let tool = host.find(program).is_none().then(|| {
        let reason = format!("{program} not found");
        (reason, install(packages, host, &format!("install {program}")))
    });
    let mapped = |name, module, option| mapper(&target(name, module, option), host);
    let kernel = match layer {
        Layer::Md { level, .. } => array(level, &personality(level), host),
        Layer::Crypt { .. } => mapped("crypt", "dm-crypt", "CONFIG_DM_CRYPT"),
        Layer::Thin { .. } => mapped("thin-pool", "dm-thin-pool", "CONFIG_DM_THIN_PROVISIONING"),
        Layer::Cache { .. } => mapped("cache", "dm-cache", "CONFIG_DM_CACHE"),
        Layer::Delay { .. } => mapped("delay", "dm-delay", "CONFIG_DM_DELAY"),
        Layer::Flakey { .. } => mapped("flakey", "dm-flakey", "CONFIG_DM_FLAKEY"),
        Layer::Dust { .. } => mapped("dust", "dm-dust", "CONFIG_DM_DUST"),
        Layer::LogWrites => mapped("log-writes", "dm-log-writes", "CONFIG_DM_LOG_WRITES"),
    };
    [kernel, tool].into_iter().flatten().collect()
}

/// Each kind of layer, in words, and whether it can be had here.
pub fn abilities(host: &dyn Host) -> Vec<(String, Availability)> {
    let md = ["raid0", "raid1", "raid5", "raid6", "raid10"];
    let md = md.map(|level| Layer::Md { level: level.into(), chunk: None });
    let crypt = Layer::Crypt { cipher: "aes-xts-plain64".into(), key_bits: 512 };
    let thin = Layer::Thin { block: Bytes::kib(64) };
    let cache = Layer::Cache { mode: "writeback".into(), block: Bytes::kib(256) };
    let second = Nanos(1_000_000_000);
    let delay = Layer::Delay { read: second, write: second };
    let flakey = Layer::Flakey { fault: "error".into(), up: Nanos(0), down: second };
    let dust = Layer::Dust { bad: Vec::new(), block: Bytes::kib(4) };
    let mapped = [crypt, thin, cache, delay, flakey, dust, Layer::LogWrites];
    let answer = |layer: &Layer| {
        let lacks = lacks(layer, host);
        let (reasons, cures): (Vec<_>, Vec<_>) = lacks.into_iter().unzip();
        let name = match layer {
            Layer::Md { .. } => title(layer),
            Layer::Crypt { .. }
            | Layer::Thin { .. }
            | Layer::Cache { .. }
            | Layer::Delay { .. }
            | Layer::Flakey { .. }
            | Layer::Dust { .. }
            | Layer::LogWrites => table::target(layer).to_owned(),
        };
        let availability = match reasons.is_empty() {
            true => Availability::Usable { version: None },
            false => Availability::Missing { reason: reasons.join("; "), cure: cures.join("; ") },
        };
        (name, availability)
    };
    md.iter().chain(&mapped).map(answer).collect()
}

/// What the programs say of their version that build these layers, by the program's name. Defaults
/// depend on it.
pub fn versions(layers: &[Layer], host: &dyn Host) -> Environment {
    let mut facts = Environment::default();
    for layer in layers {
        let argv = [program(layer), "--version"];
        // mdadm tells it on standard error.
        if facts.get(&format!("layers.{}.tools", argv[0])).is_none()
            && let Ok(output) = host.run(&argv.map(str::to_owned))
            && let Some(line) = output.stdout.lines().chain(output.stderr.lines()).next()
        {
            facts.set(format!("layers.{}.tools", argv[0]), line.trim());
        }
    }
    facts
}

/// The program that makes a layer.
fn program(layer: &Layer) -> &'static str {
    match layer {
        Layer::Md { .. } => "mdadm",
        Layer::Crypt { .. }
        | Layer::Thin { .. }
        | Layer::Cache { .. }
        | Layer::Delay { .. }
        | Layer::Flakey { .. }
        | Layer::Dust { .. }
        | Layer::LogWrites => "dmsetup",
    }
}

/// The driver of a level of md(4).
fn personality(level: &str) -> Driver {
    let (module, option) = match level {
        "raid0" => ("raid0", "CONFIG_MD_RAID0"),
        "raid1" => ("raid1", "CONFIG_MD_RAID1"),
        "raid10" => ("raid10", "CONFIG_MD_RAID10"),
        "linear" => ("md-linear", "CONFIG_MD_LINEAR"),
        _ => ("raid456", "CONFIG_MD_RAID456"),
    };
    Driver { alias: format!("md-{level}"), module, option }
}

fn target(name: &str, module: &'static str, option: &'static str) -> Driver {
    Driver { alias: format!("dm-{name}"), module, option }
}

/// `/proc/mdstat` lists the levels whose drivers are there (md(4)).
fn array(level: &str, driver: &Driver, host: &dyn Host) -> Lack {
    let table = host.read(Path::new("/proc/mdstat")).unwrap_or_default();
    let known = table
        .lines()
        .filter_map(|line| line.strip_prefix("Personalities :"))
        .any(|names| names.split_whitespace().any(|name| name == format!("[{level}]")));
    if known || driver.can_load(host) {
        return None;
    }
    if table.is_empty() && !loadable("md-mod", "md-mod", host) {
        let driver = Driver { alias: String::new(), module: "md-mod", option: "CONFIG_BLK_DEV_MD" };
        return Some(driver.missing("arrays (md)", host));
    }
    Some(driver.missing(&format!("md {level}"), host))
}

/// `/proc/misc` lists the device mapper once it is there; which targets have been loaded, the
/// modules tell and `dmsetup targets`, where the driver is part of the kernel.
fn mapper(driver: &Driver, host: &dyn Host) -> Lack {
    let table = host.read(Path::new("/proc/misc")).unwrap_or_default();
    let there =
        table.lines().any(|line| line.split_whitespace().next_back() == Some("device-mapper"));
    if !there && !loadable("dm-mod", "dm-mod", host) {
        let driver = Driver { alias: String::new(), module: "dm-mod", option: "CONFIG_BLK_DEV_DM" };
        return Some(driver.missing("device mapper", host));
    }
    let name = driver.alias.trim_start_matches("dm-");
    let argv = ["dmsetup", "targets"].map(str::to_owned);
    let listed = || {
        host.is_root()
            && there
            && host.run(&argv).is_ok_and(|output| {
                output.stdout.lines().any(|line| line.split_whitespace().next() == Some(name))
            })
    };
    if driver.can_load(host) || listed() {
        return None;
    }
    Some(driver.missing(&format!("target {name} of the device mapper"), host))
}

impl Driver {
    /// Whether its module is loaded, or could be.
    fn can_load(&self, host: &dyn Host) -> bool {
        let loaded = Path::new("/sys/module").join(self.module.replace('-', "_"));
        host.entry(&loaded).is_ok() || loadable(&self.alias, self.module, host)
    }

    fn missing(&self, what: &str, host: &dyn Host) -> (String, String) {
        let release = host.read(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
        let reason = format!("the running kernel {} has no {what}", release.trim());
        (reason, format!("it needs a kernel with {}", self.option))
    }
}
