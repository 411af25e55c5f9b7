//! `fslab guest check` and `fslab guest kernel list`: which guests there can be, of which kernels,
//! and what each can measure.

use std::sync::atomic::AtomicBool;

use comfy_table::{Cell, ColumnConstraint};
use guest::{
    Architecture, Cache, Engine, GuestError, Kernel, Ready,
    initramfs::needs,
    kernel::{Known, Origin},
    kvm,
    modules::{Index, Presence},
};
use rig::{Catalogue, Filesystem, RealHost, catalogue::Kind};

use super::{super::list::table, machines::MEMORY};
use crate::{
    exit::{Exit, Failure, chain},
    output,
};

/// What helps where there is no kernel to be named.
const NO_KERNEL: &str = "no kernel can be named by its version; name the path of a package \
                         (apt-get download linux-image-VERSION-amd64-unsigned needs no rights), or \
                         build one for user-mode Linux: fslab guest kernel build --help";

/// `fslab guest check`
pub(super) fn run() -> Result<Exit, Failure> {
    let cache = Cache::new(Cache::default_directory());
    let mut kinds = table(&["guest", "here", "with what, or what would help"]);
    let mut told = String::new();
    for engine in Engine::ALL {
        let (here, words) = match engine.preflight(MEMORY, Some(cache.directory())) {
            Ok(ready) => ("yes", with(&ready)),
            Err(error) => ("no", why(engine, &error)),
        };
        kinds.add_row([engine.name(), here, &words].map(Cell::new));
        told.push_str(&words);
    }
    let mut text = format!("{kinds}\n\n");
    // Where QEMU or memory is missing, that is told first.
    match kvm::probe(Some(cache.directory())).usable() {
        Ok(()) => text.push_str("probe of /dev/kvm: the processor runs a guest's instructions\n\n"),
        Err(error) if told.contains(&why(Engine::Kvm, &error)) => {}
        Err(error) => {
            text.push_str(&format!("probe of /dev/kvm: {}\n\n", why(Engine::Kvm, &error)));
        }
    }
    let known = Kernel::known(&cache, &AtomicBool::new(false));
    if known.is_empty() {
        text.push_str(NO_KERNEL);
    } else {
        let catalogue = Catalogue::embedded();
        let made: Vec<&Filesystem> =
            catalogue.all().iter().filter(|it| it.kind == Kind::Block).collect();
        let mut kernels = table(&["kernel", "for", "filesystems that it can measure here"]);
        for kernel in &known {
            let words = measurable(kernel, &made, &catalogue, &cache);
            kernels.add_row([&kernel.release, word(kernel.architecture), &words].map(Cell::new));
        }
        whole(&mut kernels);
        text.push_str(&kernels.to_string());
        text.push_str(&tools(&made, &catalogue));
    }
    output::result(&text)?;
    Ok(Exit::Done)
}

/// `fslab guest kernel list`
pub(super) fn kernels() -> Result<Exit, Failure> {
    let cache = Cache::new(Cache::default_directory());
    let known = Kernel::known(&cache, &AtomicBool::new(false));
    if known.is_empty() {
        output::message(NO_KERNEL);
        return Ok(Exit::Done);
    }
    let mut kernels = table(&["kernel", "for", "size", "from"]);
    for kernel in &known {
        let size = kernel.size.rough();
        let size = size.trim_start_matches("about ").to_owned();
        let cells = [&kernel.release, word(kernel.architecture), &size, &from(&kernel.origin)];
        kernels.add_row(cells.map(Cell::new));
    }
    whole(&mut kernels);
    output::result(&kernels.to_string())?;
    Ok(Exit::Done)
}

/// The lines of `fslab doctor`: the kinds that run here, and why others do not, those with the same
/// reason together.
pub(super) fn summary() -> Vec<String> {
    let cache = Cache::new(Cache::default_directory());
    let (mut usable, mut missing) = (Vec::new(), Vec::<(String, Vec<&str>)>::new());
    for engine in Engine::ALL {
        match engine.preflight(MEMORY, Some(cache.directory())) {
            Ok(_) => usable.push(engine.name()),
            Err(error) => {
                let why = why(engine, &error);
                match missing.iter_mut().find(|(known, _)| *known == why) {
                    Some((_, names)) => names.push(engine.name()),
                    None => missing.push((why, vec![engine.name()])),
                }
            }
        }
    }
    let usable = if usable.is_empty() { "none".to_owned() } else { usable.join(", ") };
    let mut lines = vec![format!("guests      {usable} (`fslab guest check` has their kernels)")];
    lines.extend(
        missing.into_iter().map(|(why, names)| format!("no guest of {}: {why}", names.join(", "))),
    );
    lines
}

/// Why a kind of guest does not run here, where its name is said already.
fn why(engine: Engine, error: &GuestError) -> String {
    let text = chain(error);
    let said = format!("{} cannot run here: ", engine.name());
    text.strip_prefix(&said).map_or(text.clone(), str::to_owned)
}

/// What a kind of guest runs with.
fn with(ready: &Ready) -> String {
    if ready.engine != Engine::Uml {
        return format!("{}, {}", ready.version, ready.program.display());
    }
    if ready.program.as_os_str().is_empty() {
        return "if a kernel is named by its path: none is installed, and none was built here \
                (fslab guest kernel build)"
            .to_owned();
    }
    format!("user-mode Linux {}, {}", ready.version, ready.program.display())
}

/// What of the filesystems a kernel has and this host can make, and what it has not.
fn measurable(
    kernel: &Known,
    made: &[&Filesystem],
    catalogue: &Catalogue,
    cache: &Cache,
) -> String {
    let index = match &kernel.modules {
        Some(folder) => match Index::read(folder, Some(cache.directory())) {
            Ok(index) => index,
            Err(error) => return chain(&error),
        },
        None => Index::empty(),
    };
    let (mut can, mut lacks, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
    for filesystem in made {
        let name = filesystem.name.as_str();
        match presence(&index, &filesystem.fstype) {
            Presence::Absent => lacks.push(name),
            Presence::Unknown => unknown.push(name),
            Presence::BuiltIn | Presence::Module => {
                if catalogue.missing_tools(filesystem, &RealHost).is_none() {
                    can.push(name);
                }
            }
        }
    }
    let mut text = if can.is_empty() { "none".to_owned() } else { can.join(" ") };
    if !lacks.is_empty() {
        text.push_str(&format!("; it has no {}", lacks.join(" ")));
    }
    if !unknown.is_empty() {
        text.push_str(&format!("; it does not say whether it has {}", unknown.join(" ")));
    }
    text
}

/// Whether a kernel has all that a filesystem takes; the weakest of the answers.
fn presence(index: &Index, fstype: &str) -> Presence {
    let alias = format!("fs-{fstype}");
    let found: Vec<Presence> = match needs(fstype) {
        Some(needs) => needs.modules.iter().map(|module| index.has(module)).collect(),
        None => vec![index.has(&alias)],
    };
    let weakest = [Presence::Absent, Presence::Unknown, Presence::Module];
    weakest.into_iter().find(|it| found.contains(it)).unwrap_or(Presence::BuiltIn)
}

/// The filesystems that cannot be made here whatever the kernel, and what would help.
fn tools(made: &[&Filesystem], catalogue: &Catalogue) -> String {
    let mut text = String::new();
    for filesystem in made {
        if let Some((reason, cure)) = catalogue.missing_tools(filesystem, &RealHost) {
            text.push_str(&format!("\nno {}: {reason}; {cure}", filesystem.name));
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// What a kernel is for, as users name guests.
fn word(architecture: Architecture) -> &'static str {
    match architecture {
        Architecture::Pc => "pc",
        Architecture::Uml => "uml",
    }
}

fn from(origin: &Origin) -> String {
    match origin {
        Origin::Installed(path) => path.display().to_string(),
        Origin::Built(text) => text.clone(),
        Origin::Package(name) => format!("package {name}, by its path"),
    }
}

/// Names are there to be copied.
fn whole(table: &mut comfy_table::Table) {
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_a_kernel_has_is_the_weakest_of_what_it_needs() {
        let folder = tempfile::tempdir().unwrap();
        let builtin = "kernel/fs/ext4/ext4.ko\nkernel/fs/xfs/xfs.ko\n";
        fs::write(folder.path().join("modules.builtin"), builtin).unwrap();
        let index = Index::read(folder.path(), None).unwrap();
        assert_eq!(presence(&index, "xfs"), Presence::BuiltIn);
        assert_eq!(presence(&index, "jfs"), Presence::Absent);
        assert_eq!(presence(&index, "nosuchfs"), Presence::Absent);
        assert_eq!(presence(&Index::empty(), "xfs"), Presence::Unknown);
    }

    #[test]
    fn every_kind_of_guest_is_in_the_summary() {
        let lines = summary().join("\n");
        for engine in Engine::ALL {
            assert!(lines.contains(engine.name()), "{lines}");
        }
        assert!(lines.starts_with("guests      "), "{lines}");
    }
}
