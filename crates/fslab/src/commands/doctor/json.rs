//! Machine-readable output of `fslab doctor`.

use rig::{Availability, Catalog, Host, Support, layers::layer_support};
use serde_json::{Value, json};

use crate::commands::{guest, version};

/// One JSON object. Times are nanoseconds. An entry that is not available has a reason and possibly
/// a hint.
pub(super) fn object(
    host: &dyn Host,
    clock: engine::ClockFacts,
    generator_nanos_per_op: f64,
) -> Value {
    let catalog = Catalog::embedded();
    let filesystem = |it| (it, catalog.availability(it, host));
    let filesystems = catalog.all().iter().map(filesystem).map(|(it, availability)| {
        let mut entry = entry(&it.name, &availability);
        entry["title"] = json!(it.title);
        entry["minimum_size_bytes"] = json!(it.min_size.0);
        entry
    });
    let layers = layer_support(host).into_iter().map(|(name, it)| entry(&name, &it));
    let settings = rig::setting_support(host).into_iter().map(|it| setting(&it));
    let guests = guest::support().into_iter().map(|(name, support)| match support {
        Ok(()) => json!({ "name": name, "available": true }),
        Err(reason) => json!({ "name": name, "available": false, "reason": reason }),
    });
    json!({
        "program": version::build(),
        "root": host.is_root(),
        "facts": rig::probe::machine(host).0,
        "clock": { "read_time": clock.cost.0, "resolution": clock.resolution.0 },
        "generator_time_per_operation": generator_nanos_per_op,
        "filesystems": filesystems.collect::<Vec<_>>(),
        "layers": layers.collect::<Vec<_>>(),
        "settings": settings.collect::<Vec<_>>(),
        "guests": guests.collect::<Vec<_>>(),
    })
}

fn entry(name: &str, availability: &Availability) -> Value {
    match availability {
        Availability::Usable { version } => {
            json!({ "name": name, "available": true, "version": version })
        }
        Availability::Missing { reason, hint, available_to_root } => json!({
            "name": name,
            "available": false,
            "available_to_root": available_to_root,
            "reason": reason,
            "hint": hint,
        }),
    }
}

fn setting(Support { name, support, .. }: &Support) -> Value {
    match support {
        Ok(values) => json!({ "name": name, "available": true, "values": values }),
        Err(reason) => json!({ "name": name, "available": false, "reason": reason }),
    }
}
