//! Facts about the kernel, CPUs, memory, and the machine.

use std::path::Path;

use model::Environment;

use super::{digest, put, put_file};
use crate::{host::Host, memory, sysfs::selected};

/// Facts whose value is the text of one file.
const FILES: [(&str, &str); 18] = [
    ("kernel.release", "/proc/sys/kernel/osrelease"),
    ("kernel.version", "/proc/sys/kernel/version"),
    ("kernel.command_line", "/proc/cmdline"),
    ("clock.source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    ("kernel.taint", "/proc/sys/kernel/tainted"),
    ("cpu.online", "/sys/devices/system/cpu/online"),
    ("cpu.turbo_off", "/sys/devices/system/cpu/intel_pstate/no_turbo"),
    ("cpu.smt", "/sys/devices/system/cpu/smt/control"),
    ("memory.transparent_hugepage", "/sys/kernel/mm/transparent_hugepage/enabled"),
    ("vm.dirty_ratio", "/proc/sys/vm/dirty_ratio"),
    ("vm.dirty_bytes", "/proc/sys/vm/dirty_bytes"),
    ("vm.dirty_background_ratio", "/proc/sys/vm/dirty_background_ratio"),
    ("vm.dirty_background_bytes", "/proc/sys/vm/dirty_background_bytes"),
    ("vm.dirty_expire_centisecs", "/proc/sys/vm/dirty_expire_centisecs"),
    ("vm.dirty_writeback_centisecs", "/proc/sys/vm/dirty_writeback_centisecs"),
    ("vm.swappiness", "/proc/sys/vm/swappiness"),
    ("vm.vfs_cache_pressure", "/proc/sys/vm/vfs_cache_pressure"),
    ("vm.overcommit_memory", "/proc/sys/vm/overcommit_memory"),
];

/// Facts about the kernel, CPUs, memory, and the machine.
pub fn machine(host: &dyn Host) -> Environment {
    let mut facts = Environment::default();
    for (name, path) in FILES {
        // In the command line and the version of the kernel, brackets do not mark a choice.
        if let Ok(text) = host.read(Path::new(path)) {
            let text = if name.starts_with("kernel.") { text.trim() } else { selected(&text) };
            if !text.is_empty() {
                facts.set(name, text);
            }
        }
    }
    kernel(host, &mut facts);
    processors(host, &mut facts);
    frequency(host, &mut facts);
    memory_facts(host, &mut facts);
    if let Ok(release) = host.read(Path::new("/etc/os-release"))
        && let Some(name) = field(&release, "PRETTY_NAME=")
    {
        put(&mut facts, "host.distribution", name.trim_matches('"'));
    }
    let dmi = |name: &str| {
        let text = host.read(&Path::new("/sys/class/dmi/id").join(name)).unwrap_or_default();
        text.trim().to_owned()
    };
    put(
        &mut facts,
        "host.product",
        format!("{} {}", dmi("sys_vendor"), dmi("product_name")).trim(),
    );
    put_file(host, &mut facts, "host.hypervisor", Path::new("/sys/hypervisor/type"));
    if let Ok(mounts) = host.mounts() {
        facts.set("host.cgroup", memory::versions(&mounts));
    }
    facts
}

fn kernel(host: &dyn Host, facts: &mut Environment) {
    let boot = facts.get("kernel.release").map(|release| format!("/boot/config-{release}"));
    for path in std::iter::once("/proc/config.gz").chain(boot.as_deref()) {
        if let Ok(bytes) = host.bytes(Path::new(path)) {
            facts.set("kernel.config", format!("{} of {path}", digest(&bytes)));
            break;
        }
    }
    if let Some(model) = preemption(host, facts.get("kernel.version")) {
        facts.set("kernel.preemption", model);
    }
    // The name of a module is the first field (proc_modules(5)). A kernel without modules has no
    // such file.
    let modules = host.read(Path::new("/proc/modules")).unwrap_or_default();
    let mut names: Vec<_> =
        modules.lines().filter_map(|line| line.split_whitespace().next()).collect();
    names.sort_unstable();
    put(facts, "kernel.modules", &names.join(" "));
    // If PSI is disabled by default and not enabled on the kernel command line
    // (CONFIG_PSI_DEFAULT_DISABLED), the file exists but cannot be read.
    let pressure = Path::new("/proc/pressure/cpu");
    if host.entry(pressure).is_ok() {
        facts.set("kernel.psi", if host.read(pressure).is_ok() { "on" } else { "off" });
    }
}

/// Preemption model of the kernel. With dynamic preemption, it is the word in parentheses in a
/// debugfs file, which only root can read (`sched_dynamic_show`, `kernel/sched/debug.c`). Otherwise
/// it is the model for which the kernel was built, according to its version text
/// (`scripts/mkcompile_h`, since 5.12 `init/Makefile`).
fn preemption(host: &dyn Host, version: Option<&str>) -> Option<String> {
    let chosen = host.read(Path::new("/sys/kernel/debug/sched/preempt")).unwrap_or_default();
    let chosen = chosen.split_once('(').and_then(|(_, rest)| rest.split_once(')'));
    if let Some((chosen, _)) = chosen {
        return Some(chosen.to_owned());
    }
    let built = version?.split(' ').find(|word| word.starts_with("PREEMPT"));
    Some(match built {
        Some("PREEMPT_DYNAMIC") => "dynamic".into(),
        Some("PREEMPT_RT") => "real-time".into(),
        Some("PREEMPT_LAZY") => "lazy".into(),
        Some(_) => "full".into(),
        None => "none or voluntary".into(),
    })
}

fn processors(host: &dyn Host, facts: &mut Environment) {
    let text = host.read(Path::new("/proc/cpuinfo")).unwrap_or_default();
    let count = text.lines().filter(|line| line.starts_with("processor")).count();
    if count > 0 {
        facts.set("cpu.count", count.to_string());
    }
    let value = |key: &str| {
        let line = text.lines().find(|line| line.starts_with(key))?;
        line.split_once(':').map(|(_, value)| value.trim().to_owned())
    };
    if let Some(model) = value("model name") {
        facts.set("cpu.model", model);
    }
    if let Some(microcode) = value("microcode") {
        facts.set("cpu.microcode", microcode);
    }
    if value("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")) {
        facts.set("cpu.virtual", "yes");
    }
    let directory = Path::new("/sys/devices/system/cpu/vulnerabilities");
    for name in host.list(directory).unwrap_or_default() {
        put_file(host, facts, format!("cpu.mitigation.{name}"), &directory.join(&name));
    }
}

/// Facts about the cpufreq driver and the governor (Documentation/admin-guide/pm/cpufreq.rst): one
/// name if all policies have the same, otherwise the name for each policy.
fn frequency(host: &dyn Host, facts: &mut Environment) {
    let directory = Path::new("/sys/devices/system/cpu/cpufreq");
    let policies = host.list(directory).unwrap_or_default();
    let policies: Vec<_> = policies.iter().filter(|name| name.starts_with("policy")).collect();
    for (fact, file) in [("driver", "scaling_driver"), ("governor", "scaling_governor")] {
        let values: Vec<_> = policies
            .iter()
            .filter_map(|name| Some((*name, host.read(&directory.join(name).join(file)).ok()?)))
            .map(|(name, text)| (name, text.trim().to_owned()))
            .collect();
        let Some((_, first)) = values.first() else { continue };
        let text = match values.iter().all(|(_, value)| value == first) {
            true => first.clone(),
            false => values
                .iter()
                .map(|(name, value)| format!("{name} {value}"))
                .collect::<Vec<_>>()
                .join(", "),
        };
        put(facts, format!("cpu.{fact}"), &text);
    }
}

fn memory_facts(host: &dyn Host, facts: &mut Environment) {
    let text = host.read(Path::new("/proc/meminfo")).unwrap_or_default();
    for (key, name) in [("MemTotal:", "memory.total_bytes"), ("SwapTotal:", "memory.swap_bytes")] {
        let kib = field(&text, key).and_then(|rest| rest.split_whitespace().next());
        if let Some(kib) = kib.and_then(|kib| kib.parse::<u64>().ok()) {
            facts.set(name, (kib << 10).to_string());
        }
    }
    let swap = |key| field(&text, key).map(str::to_owned);
    if let (Some(total), Some(free)) = (swap("SwapTotal:"), swap("SwapFree:"))
        && !total.starts_with("0 ")
    {
        // The amount of used swap is not recorded, because it differs at each reading.
        facts.set("memory.swap_in_use", if total == free { "no" } else { "yes" });
    }
    let nodes = host.list(Path::new("/sys/devices/system/node")).unwrap_or_default();
    let number =
        |name: &&String| name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
    let nodes = nodes.iter().filter(number).count();
    if nodes > 0 {
        facts.set("memory.numa_nodes", nodes.to_string());
    }
}

/// Rest of the first line that begins with `key`.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}
