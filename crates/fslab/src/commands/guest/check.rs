//! `fslab guest check` and `fslab guest kernel list`: supported kinds of guests, known kernels, and
//! the filesystems that each kernel can measure.

use std::sync::atomic::AtomicBool;

use comfy_table::Cell;
use guest::{
    Architecture, Cache, Engine, GuestError, Kernel, Ready,
    initramfs::needs,
    kernel::{KnownKernel, Origin},
    kvm,
    modules::{Index, ModuleState},
};
use rig::{Catalog, Filesystem, RealHost, catalog::Kind};

use super::{
    super::list::{self, table},
    disks::MEMORY,
};
use crate::{
    exit::{Exit, Failure, chain},
    output,
};

/// Hint if no kernel can be selected by version.
const NO_KERNEL: &str = "no kernel can be selected by version; use the path of a package (apt-get \
                         download linux-image-VERSION-amd64-unsigned, no root required), or build \
                         one for user-mode Linux: fslab guest kernel build --help";

/// `fslab guest check`.
pub(super) fn run() -> Result<Exit, Failure> {
    let cache = Cache::new(Cache::default_directory());
    let mut kinds = table(&["guest", "here", "program, or hint"]);
    let mut lines = String::new();
    for engine in Engine::ALL {
        let (here, words) = match engine.preflight(MEMORY, Some(cache.directory())) {
            Ok(ready) => ("yes", with(&ready)),
            Err(error) => ("no", why(engine, &error)),
        };
        kinds.add_row([engine.name(), here, &words].map(Cell::new));
        lines.push_str(&words);
    }
    let mut text = list::text(&mut kinds) + "\n\n";
    // The table may report another reason, such as missing QEMU, so the probe has its own line.
    match kvm::probe(Some(cache.directory())).usable() {
        Ok(()) => text.push_str("probe of /dev/kvm: guests use hardware virtualization\n\n"),
        Err(error) if lines.contains(&why(Engine::Kvm, &error)) => {}
        Err(error) => {
            text.push_str(&format!("probe of /dev/kvm: {}\n\n", why(Engine::Kvm, &error)));
        }
    }
    let known = Kernel::known(&cache, &AtomicBool::new(false));
    if known.is_empty() {
        text.push_str(NO_KERNEL);
    } else {
        let catalog = Catalog::embedded();
        let made: Vec<&Filesystem> = catalog
            .all()
            .iter()
            .filter(|it| it.kind == Kind::Block)
            .filter(|it| !it.is_mounted_by_command())
            .collect();
        let mut kernels = table(&["kernel", "for", "filesystems that it can measure here"]);
        for kernel in &known {
            let words = measurable(kernel, &made, &catalog, &cache);
            kernels.add_row([&kernel.release, word(kernel.architecture), &words].map(Cell::new));
        }
        text.push_str(&list::text(&mut kernels));
        text.push_str(&tools(&made, &catalog));
    }
    output::result(&text)?;
    Ok(Exit::Success)
}

/// `fslab guest kernel list`.
pub(super) fn kernels() -> Result<Exit, Failure> {
    let cache = Cache::new(Cache::default_directory());
    let known = Kernel::known(&cache, &AtomicBool::new(false));
    if known.is_empty() {
        output::message(NO_KERNEL);
        return Ok(Exit::Success);
    }
    let mut kernels = table(&["kernel", "for", "size", "from"]);
    for kernel in &known {
        let size = kernel.size.rough();
        let size = size.trim_start_matches("about ").to_owned();
        let cells = [&kernel.release, word(kernel.architecture), &size, &from(&kernel.origin)];
        kernels.add_row(cells.map(Cell::new));
    }
    output::result(&list::text(&mut kernels))?;
    Ok(Exit::Success)
}

/// Kinds of guests. An unsupported kind has a reason.
pub(super) fn support() -> Vec<(&'static str, Result<(), String>)> {
    let cache = Cache::new(Cache::default_directory());
    let support = |engine: Engine| match engine.preflight(MEMORY, Some(cache.directory())) {
        Ok(_) => Ok(()),
        Err(error) => Err(why(engine, &error)),
    };
    Engine::ALL.into_iter().map(|engine| (engine.name(), support(engine))).collect()
}

/// Lines of `fslab doctor`: supported kinds of guests, then unsupported kinds, grouped by reason,
/// and the missing programs of a kernel build.
pub(super) fn summary() -> Vec<String> {
    let (mut usable, mut missing) = (Vec::new(), Vec::<(String, Vec<&str>)>::new());
    for (name, support) in support() {
        match support {
            Ok(()) => usable.push(name),
            Err(why) => match missing.iter_mut().find(|(known, _)| *known == why) {
                Some((_, names)) => names.push(name),
                None => missing.push((why, vec![name])),
            },
        }
    }
    let usable = if usable.is_empty() { "none".to_owned() } else { usable.join(", ") };
    let mut lines = vec![format!("guests      {usable} (kernels: `fslab guest check`)")];
    lines.extend(
        missing.into_iter().map(|(why, names)| format!("no {} guests: {why}", names.join(", "))),
    );
    if let Err(error) = guest::build::check_programs() {
        lines.push(format!("no `fslab guest kernel build`: {}", chain(&error)));
    }
    lines
}

/// Reason why a kind of guest is not supported, without the name of the kind.
fn why(engine: Engine, error: &GuestError) -> String {
    let text = chain(error);
    let prefix = format!("{} cannot run here: ", engine.name());
    text.strip_prefix(&prefix).map_or(text.clone(), str::to_owned)
}

/// Program that runs a kind of guest.
fn with(ready: &Ready) -> String {
    if ready.engine != Engine::Uml {
        return format!("{}, {}", ready.version, ready.program.display());
    }
    if ready.program.as_os_str().is_empty() {
        return "with a kernel given as a path: none is installed or built (fslab guest kernel \
                build)"
            .to_owned();
    }
    format!("user-mode Linux {}, {}", ready.version, ready.program.display())
}

/// Filesystems that a kernel supports and this host can create, then filesystems that the kernel
/// does not support.
fn measurable(
    kernel: &KnownKernel,
    made: &[&Filesystem],
    catalog: &Catalog,
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
            ModuleState::Missing => lacks.push(name),
            ModuleState::Unknown => unknown.push(name),
            ModuleState::BuiltIn | ModuleState::Module => {
                if catalog.missing_tools(filesystem, &RealHost).is_none() {
                    can.push(name);
                }
            }
        }
    }
    let mut text = if can.is_empty() { "none".to_owned() } else { can.join(" ") };
    if !lacks.is_empty() {
        text.push_str(&format!("; not {}", lacks.join(" ")));
    }
    if !unknown.is_empty() {
        text.push_str(&format!("; unknown: {}", unknown.join(" ")));
    }
    text
}

/// Weakest support of the modules that a filesystem requires.
fn presence(index: &Index, fstype: &str) -> ModuleState {
    let alias = format!("fs-{fstype}");
    let found: Vec<ModuleState> = match needs(fstype) {
        Some(needs) => needs.modules.iter().map(|module| index.has(module)).collect(),
        None => vec![index.has(&alias)],
    };
    let weakest = [ModuleState::Missing, ModuleState::Unknown, ModuleState::Module];
    weakest.into_iter().find(|it| found.contains(it)).unwrap_or(ModuleState::BuiltIn)
}

/// Filesystems that cannot be created here with any kernel, with hints.
fn tools(made: &[&Filesystem], catalog: &Catalog) -> String {
    let mut text = String::new();
    for filesystem in made {
        if let Some((reason, hint)) = catalog.missing_tools(filesystem, &RealHost) {
            text.push_str(&format!("\nno {}: {reason}; {hint}", filesystem.name));
        }
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// Kind of guests that a kernel is for.
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
        Origin::Package(name) => format!("package {name}"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn support_is_that_of_the_weakest_requirement() {
        let folder = tempfile::tempdir().unwrap();
        let builtin = "kernel/fs/ext4/ext4.ko\nkernel/fs/xfs/xfs.ko\n";
        fs::write(folder.path().join("modules.builtin"), builtin).unwrap();
        let index = Index::read(folder.path(), None).unwrap();
        assert_eq!(presence(&index, "xfs"), ModuleState::BuiltIn);
        assert_eq!(presence(&index, "jfs"), ModuleState::Missing);
        assert_eq!(presence(&index, "nosuchfs"), ModuleState::Missing);
        assert_eq!(presence(&Index::empty(), "xfs"), ModuleState::Unknown);
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
