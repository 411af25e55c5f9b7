//! `fslab doctor`: checks what this machine can measure and what is missing.

mod json;

use model::Bytes;
use rig::{Availability, Catalog, Host, RealHost, layers::layer_support};

use crate::{
    cli::Doctor,
    exit::{Exit, Failure},
    output,
};

pub(super) fn run(doctor: &Doctor) -> Result<Exit, Failure> {
    let root = RealHost.is_root();
    let facts = rig::probe::machine(&RealHost);
    let fact = |name: &str| facts.get(name).unwrap_or("not available").to_owned();
    let clock = engine::clock();
    let ceiling = engine::write_generator_limit(Bytes::kib(4))?;
    if doctor.json {
        let object = json::object(&RealHost, clock, ceiling.nanos_per_op());
        output::json(&serde_json::to_string_pretty(&object)?)?;
        return Ok(Exit::Success);
    }
    let mut lines = vec![
        format!("program     {}", super::version::program()),
        format!("kernel      Linux {}", fact("kernel.release")),
        format!("CPU         {} × {}", fact("cpu.count"), fact("cpu.model")),
        format!(
            "cgroups     {} (storage.memory_limit needs one with the memory controller)",
            fact("host.cgroup")
        ),
        match root {
            true => "user        root: filesystems can be created and mounted".to_owned(),
            false => "user        not root: only directories can be measured; use sudo".to_owned(),
        },
        format!(
            "clock       {}: {} ns per read, resolution {} ns",
            fact("clock.source"),
            clock.cost.0,
            clock.resolution.0
        ),
        format!(
            "generator   {:.0} ns per operation on the null engine with one worker, the lower \
             bound of all results",
            ceiling.nanos_per_op()
        ),
    ];
    lines.extend(super::settings::missing(&RealHost));
    lines.extend(layers());
    lines.extend(super::guest::summary());
    lines.push(String::new());
    let filesystems = super::list::filesystems(&Catalog::embedded()).to_string();
    lines.extend(filesystems.lines().map(str::to_owned));
    output::lines(&lines)?;
    Ok(Exit::Success)
}

/// Lines about the support of stacked block devices, with hints. Layers that are missing for the
/// same reason share a line.
fn layers() -> Vec<String> {
    let (mut usable, mut missing) = (Vec::new(), Vec::<(String, Vec<String>)>::new());
    for (name, availability) in layer_support(&RealHost) {
        match availability {
            Availability::Usable { .. } => usable.push(name),
            Availability::Missing { reason, hint, .. } => {
                let why = format!("{reason}; {hint}");
                match missing.iter_mut().find(|(known, _)| *known == why) {
                    Some((_, names)) => names.push(name),
                    None => missing.push((why, vec![name])),
                }
            }
        }
    }
    let usable = if usable.is_empty() { "none".to_owned() } else { usable.join(", ") };
    let mut lines = vec![format!("layers      {usable}")];
    lines.extend(missing.into_iter().map(|(why, names)| format!("no {}: {why}", names.join(", "))));
    lines
}
