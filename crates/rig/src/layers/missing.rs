//! Kernel features and tools that are missing for a layer, with hints.
//!
//! The check changes nothing. In particular, it does not load drivers: the kernel loads a driver
//! when the first device of its kind is created, and `modprobe -n` reports whether the kernel can
//! load it.

use std::path::Path;

use model::{Bytes, Environment, Layer, Nanos};

use super::{table, title};
use crate::{
    host::Host,
    missing::{Availability, Missing, Packages, install, loadable},
};

/// Packages of mdadm(8) and dmsetup(8), by distribution family.
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

/// Driver of a layer: module alias, module name, and build option of the kernel. The kernel
/// requests the module by the alias (`md_run` in drivers/md/md.c, `load_module` in
/// drivers/md/dm-target.c).
struct Driver {
    alias: String,
    module: &'static str,
    option: &'static str,
}

/// Reasons and hints for a missing kernel feature and for a missing tool of a layer, in this order.
pub(crate) fn missing(layer: &Layer, host: &dyn Host) -> Vec<(String, String)> {
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

/// Kinds of layers with their availability.
pub fn layer_support(host: &dyn Host) -> Vec<(String, Availability)> {
    let md = ["raid0", "raid1", "raid5", "raid6", "raid10"];
    let md = md.map(|level| Layer::Md { level: level.into(), chunk: None });
    let crypt = Layer::Crypt { cipher: "aes-xts-plain64".into(), key_size: 512 };
    let thin = Layer::Thin { block: Bytes::kib(64) };
    let cache = Layer::Cache { mode: "writeback".into(), block: Bytes::kib(256) };
    let second = Nanos(1_000_000_000);
    let delay = Layer::Delay { read: second, write: second };
    let flakey = Layer::Flakey { fault: "error".into(), up: Nanos(0), down: second };
    let dust = Layer::Dust { bad: Vec::new(), block: Bytes::kib(4) };
    let mapped = [crypt, thin, cache, delay, flakey, dust, Layer::LogWrites];
    let answer = |layer: &Layer| {
        let missing = missing(layer, host);
        let (reasons, hints): (Vec<_>, Vec<_>) = missing.into_iter().unzip();
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
            false => Availability::Missing {
                reason: reasons.join("; "),
                hint: hints.join("; "),
                available_to_root: false,
            },
        };
        (name, availability)
    };
    md.iter().chain(&mapped).map(answer).collect()
}

/// Versions of the programs that create these layers, as environment facts by program name. The
/// defaults of a program depend on its version.
pub fn versions(layers: &[Layer], host: &dyn Host) -> Environment {
    let mut facts = Environment::default();
    for layer in layers {
        let argv = [program(layer), "--version"];
        // mdadm prints its version on standard error.
        if facts.get(&format!("layers.{}.tools", argv[0])).is_none()
            && let Ok(output) = host.run(&argv.map(str::to_owned))
            && let Some(line) = output.stdout.lines().chain(output.stderr.lines()).next()
        {
            facts.set(format!("layers.{}.tools", argv[0]), line.trim());
        }
    }
    facts
}

/// Program that creates a layer.
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

/// Driver of a RAID level of md(4).
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

/// Missing driver of a RAID level. `/proc/mdstat` lists the levels whose drivers are loaded
/// (md(4)).
fn array(level: &str, driver: &Driver, host: &dyn Host) -> Missing {
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

/// Missing driver of a device-mapper target. `/proc/misc` lists the device mapper if it is loaded.
/// A loaded target is visible as a module, and a built-in target is listed by `dmsetup targets`.
fn mapper(driver: &Driver, host: &dyn Host) -> Missing {
    let table = host.read(Path::new("/proc/misc")).unwrap_or_default();
    let loaded_mapper =
        table.lines().any(|line| line.split_whitespace().next_back() == Some("device-mapper"));
    if !loaded_mapper && !loadable("dm-mod", "dm-mod", host) {
        let driver = Driver { alias: String::new(), module: "dm-mod", option: "CONFIG_BLK_DEV_DM" };
        return Some(driver.missing("device mapper", host));
    }
    let name = driver.alias.trim_start_matches("dm-");
    let argv = ["dmsetup", "targets"].map(str::to_owned);
    let listed = || {
        host.is_root()
            && loaded_mapper
            && host.run(&argv).is_ok_and(|output| {
                output.stdout.lines().any(|line| line.split_whitespace().next() == Some(name))
            })
    };
    if driver.can_load(host) || listed() {
        return None;
    }
    Some(driver.missing(&format!("device-mapper target {name}"), host))
}

impl Driver {
    /// True if the module is loaded or can be loaded.
    fn can_load(&self, host: &dyn Host) -> bool {
        let loaded = Path::new("/sys/module").join(self.module.replace('-', "_"));
        host.entry(&loaded).is_ok() || loadable(&self.alias, self.module, host)
    }

    fn missing(&self, what: &str, host: &dyn Host) -> (String, String) {
        let release = host.read(Path::new("/proc/sys/kernel/osrelease")).unwrap_or_default();
        let reason = format!("the running kernel {} does not support {what}", release.trim());
        (reason, format!("use a kernel with {}", self.option))
    }
}
