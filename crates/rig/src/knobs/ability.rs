//! Which settings this machine has, and what a plan's settings would write to it. Only asks.

use std::path::{Path, PathBuf};

use model::{Factor, Place, Storage, Value, factor::FACTORS};

use super::{
    Intent, cpu, intend,
    queue::{self, Device, schedulers},
};
use crate::{device::name_of, host::Host, probe};

/// Whether the machine has a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ability {
    /// Its key in a plan.
    pub name: &'static str,
    /// What it accepts, in words.
    pub takes: String,
    /// What it does, one sentence.
    pub doc: &'static str,
    /// What there is to choose from here, or what it is now; else why it cannot be set.
    pub here: Result<String, String>,
}

/// What the axis `scheduler` does.
const SCHEDULER: &str = "The I/O scheduler of every device of the stack (queue/scheduler).";

/// What the axis `scheduler` accepts.
const SCHEDULERS: &str =
    "the name of a scheduler; cfq, noop, and deadline are taken for what followed them";

/// Every setting, the scheduler first: its key, what it accepts, and what it does.
pub fn settings() -> Vec<(&'static str, String, &'static str)> {
    let scheduler = ("scheduler", SCHEDULERS.to_owned(), SCHEDULER);
    let factors = FACTORS.iter().map(|spec| (spec.name, spec.kind.to_string(), spec.doc));
    std::iter::once(scheduler).chain(factors).collect()
}

/// Every setting, and whether the machine has it; the scheduler first.
pub fn abilities(host: &dyn Host) -> Vec<Ability> {
    let disks = disks(host);
    let list = |name: &str| schedulers(host, name).map(|list| list.join(" "));
    let scheduler = told(&disks, "no device has a scheduler", list);
    let factors = FACTORS.iter().map(|spec| here(host, &disks, spec.factor));
    let all = settings().into_iter().zip(std::iter::once(scheduler).chain(factors));
    all.map(|((name, takes, doc), here)| Ability { name, takes, doc, here: permitted(host, here) })
        .collect()
}

fn permitted(host: &dyn Host, here: Result<String, String>) -> Result<String, String> {
    match here {
        Ok(words) if !host.is_root() => Err(format!("not root; use sudo ({words})")),
        here => here,
    }
}

/// Disks there are, loop devices and disks in memory left out.
fn disks(host: &dyn Host) -> Vec<String> {
    let names = host.list(Path::new("/sys/block")).unwrap_or_default();
    let made = |name: &String| ["loop", "ram", "zram"].iter().any(|made| name.starts_with(made));
    names.into_iter().filter(|name| !made(name)).collect()
}

/// What disks tell, those that tell the same together.
fn told(
    disks: &[String],
    why: &str,
    tell: impl Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, text) in disks.iter().filter_map(|name| Some((name, tell(name)?))) {
        match groups.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(name),
            None => groups.push((text, vec![name])),
        }
    }
    if groups.is_empty() {
        return Err(why.into());
    }
    let words = groups.iter().map(|(text, names)| format!("{}: {text}", names.join(" ")));
    Ok(words.collect::<Vec<_>>().join("; "))
}

fn here(host: &dyn Host, disks: &[String], factor: Factor) -> Result<String, String> {
    let of_queue = |file: &str, unit: &str| {
        let tell = |name: &str| {
            let text = host.read(&super::queue(host, name).join(file)).ok()?;
            Some(format!("now {}{unit}", text.trim()))
        };
        told(disks, &format!("no device has queue/{file}"), tell)
    };
    let text = |path: &str| host.read(Path::new(path)).map(|text| text.trim().to_owned());
    match factor {
        Factor::ReadAhead => of_queue("read_ahead_kb", " KiB"),
        Factor::QueueDepth => of_queue("nr_requests", ""),
        Factor::WriteCache => of_queue("write_cache", ""),
        Factor::CpuSpeed => match cpu::policies(host).as_slice() {
            [] => cpu::quota_here(host).map(|()| {
                "by a share of the processors' time; there is no frequency to set".to_owned()
            }),
            policies => Ok(format!("{} policies of frequency", policies.len())),
        },
        Factor::CpuGovernor => {
            let policies = cpu::policies(host);
            let names: Vec<_> = policies.iter().map(|(name, _)| name.clone()).collect();
            let tell = |name: &str| {
                let (_, folder) = policies.iter().find(|(policy, _)| policy == name)?;
                let list = host.read(&folder.join("scaling_available_governors")).ok()?;
                Some(list.trim().to_owned())
            };
            told(&names, "the machine has no frequency to govern (no cpufreq)", tell)
        }
        Factor::Cpus => match cpu::online_now(host).len() {
            0 => Err("the kernel tells of no processors".into()),
            count => Ok(format!("1 to {count}")),
        },
        Factor::Dirty | Factor::DirtyBackground => {
            let now = |face: &str| text(&format!("/proc/sys/vm/{factor}_{face}"));
            match (now("ratio"), now("bytes")) {
                (Ok(ratio), Ok(bytes)) if bytes == "0" => Ok(format!("now {ratio}%")),
                (Ok(_), Ok(bytes)) => Ok(format!("now {bytes} bytes")),
                (Err(error), _) | (_, Err(error)) => {
                    Err(format!("/proc/sys/vm/{factor}_ratio: {error}"))
                }
            }
        }
        Factor::HugePages => text("/sys/kernel/mm/transparent_hugepage/enabled")
            .map_err(|_| "the kernel is built without them".into()),
        Factor::Kernel => Err("only a guest boots a kernel of choice; add --guest auto".into()),
    }
}

/// What one value of an axis would do.
#[derive(Clone, Debug, PartialEq)]
pub struct Intended {
    /// The axis and its value, such as `read_ahead=128KiB`.
    pub what: String,
    /// What it would do.
    pub intent: Intent,
}

/// What the schedulers and factors of a plan would do on a storage. The loop device of an image is
/// called `loop·N`, since it is not there yet.
pub fn intended(
    host: &dyn Host,
    storage: &Storage,
    image_directory: &Path,
    schedulers: &[String],
    factors: &[(Factor, Vec<Value>)],
) -> Vec<Intended> {
    let devices = devices(host, storage, image_directory);
    let mut intended: Vec<_> = schedulers
        .iter()
        .map(|name| Intended {
            what: format!("scheduler={name}"),
            intent: queue::scheduler(host, &devices, name),
        })
        .collect();
    for (factor, values) in factors {
        intended.extend(values.iter().map(|value| Intended {
            what: format!("{factor}={value}"),
            intent: intend(host, if factor.of_devices() { &devices } else { &[] }, *factor, value),
        }));
    }
    intended
}

fn devices(host: &dyn Host, storage: &Storage, image_directory: &Path) -> Vec<Device> {
    match &storage.place {
        Place::Image { count, directory, .. } => {
            let directory = directory.as_deref().map_or(image_directory, Path::new);
            let under: Vec<_> = probe::device_of(host, directory).into_iter().collect();
            let images =
                (0..*count).map(|index| Device { name: format!("loop·{index}"), shared: false });
            let below = queue::stack(host, &under, &[]);
            images.chain(below.into_iter().map(|d| Device { shared: true, ..d })).collect()
        }
        Place::Devices { paths } => {
            let node = |path: &String| host.follow(Path::new(path)).unwrap_or(PathBuf::from(path));
            let names: Vec<_> = paths.iter().map(|path| name_of(&node(path))).collect();
            queue::stack(host, &names, &names)
        }
        Place::Directory { .. } => Vec::new(),
    }
}
