//! `fslab doctor`: what this machine can measure, and what is in the way.

use model::Bytes;
use rig::{Availability, Catalogue, Host, RealHost, layers::abilities};

use crate::{
    exit::{Exit, Failure},
    output,
};

pub(super) fn run() -> Result<Exit, Failure> {
    let root = RealHost.is_root();
    let facts = rig::probe::machine(&RealHost);
    let fact = |name: &str| facts.get(name).unwrap_or("not told").to_owned();
    let clock = engine::clock();
    let ceiling = engine::write_ceiling(Bytes::kib(4))?;
    let mut lines = vec![
        format!("program     {}", super::version::program()),
        format!("kernel      Linux {}", fact("kernel.release")),
        format!("processor   {} × {}", fact("cpu.count"), fact("cpu.model")),
        format!(
            "cgroups     {} (storage.memory needs one with the memory controller)",
            fact("host.cgroup")
        ),
        match root {
            true => "user        root: filesystems can be made and mounted".to_owned(),
            false => "user        not root: only directories can be measured; use sudo".to_owned(),
        },
        format!(
            "clock       {}: {} ns to read, steps of {} ns",
            fact("clock.source"),
            clock.cost.0,
            clock.resolution.0
        ),
        format!(
            "generator   {:.0} ns per operation on the null engine, one worker; nothing can be \
             measured faster",
            ceiling.nanos_per_op()
        ),
    ];
    lines.extend(super::factors::missing(&RealHost));
    lines.extend(layers());
    lines.extend(super::guest::summary());
    lines.push(String::new());
    let filesystems = super::list::filesystems(&Catalogue::embedded());
    lines.extend(filesystems.lines().map(str::to_owned));
    output::lines(&lines)?;
    Ok(Exit::Done)
}

/// What can stand between devices and a filesystem here, and what would help; kinds that lack the
/// same share a line.
fn layers() -> Vec<String> {
    let (mut usable, mut missing) = (Vec::new(), Vec::<(String, Vec<String>)>::new());
    for (name, availability) in abilities(&RealHost) {
        match availability {
            Availability::Usable { .. } => usable.push(name),
            Availability::Missing { reason, cure } => {
                let why = format!("{reason}; {cure}");
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
