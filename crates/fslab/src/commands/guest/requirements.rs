//! Requirements of filesystems and disks inside a guest: programs, files, and modules.

use std::collections::BTreeSet;

use guest::{Engine, initramfs::needs};
use model::{FilesystemLevel, Layer, SetupStep, plan::Plan};
use rig::{Catalog, Filesystem};

/// Set of requirements.
#[derive(Default)]
pub(super) struct GuestRequirements {
    /// Programs by name.
    pub(super) programs: BTreeSet<String>,
    /// Absolute paths of files.
    pub(super) files: BTreeSet<String>,
    /// Modules by name or alias.
    pub(super) modules: BTreeSet<String>,
}

impl GuestRequirements {
    /// Requirements of the filesystems of a plan.
    pub(super) fn of_plan(plan: &Plan, catalog: &Catalog) -> Self {
        let mut wants = Self::default();
        // Identifies the distribution of the host, whose package manager installs missing tools.
        wants.files.insert("/etc/os-release".into());
        for level in &plan.filesystems {
            wants.level(level, catalog);
        }
        wants
    }

    /// Requirements of one filesystem.
    pub(super) fn of_level(level: &FilesystemLevel, catalog: &Catalog) -> Self {
        let mut wants = Self::default();
        wants.level(level, catalog);
        wants
    }

    /// Requirements of the disks of a guest.
    pub(super) fn of_disks(engine: Engine) -> Self {
        let mut wants = Self::default();
        match engine {
            Engine::Kvm | Engine::Tcg | Engine::Icount => wants.named("virtio_blk"),
            Engine::Uml => {}
        }
        wants
    }

    fn level(&mut self, level: &FilesystemLevel, catalog: &Catalog) {
        let names = [Some(&level.fs_type), level.converted_to.as_ref()];
        for filesystem in names.into_iter().flatten().filter_map(|name| catalog.get(name).ok()) {
            self.filesystem(filesystem);
        }
        let commands = &level.commands;
        let programs = [&commands.mount, &commands.umount].into_iter().filter_map(|it| it.first());
        self.programs.extend(programs.cloned());
        // The type of a FUSE filesystem is `fuse.NAME`.
        match commands.mounted_type.split('.').next() {
            Some("") | None => {}
            Some(fstype) => self.named(fstype),
        }
        for layer in &level.layers {
            let (target, program) = match layer {
                Layer::Md { .. } => ("md", "mdadm"),
                Layer::Crypt { .. } => ("dm-crypt", "dmsetup"),
                Layer::Thin { .. } => ("dm-thin", "dmsetup"),
                Layer::Cache { .. } => ("dm-cache", "dmsetup"),
                Layer::Delay { .. } => ("dm-delay", "dmsetup"),
                Layer::Flakey { .. } => ("dm-flakey", "dmsetup"),
                Layer::Dust { .. } => ("dm-dust", "dmsetup"),
                Layer::LogWrites => ("dm-log-writes", "dmsetup"),
            };
            self.named(target);
            self.programs.insert(program.into());
        }
        for step in &level.setup {
            if let SetupStep::Unmounted { argv } | SetupStep::Mounted { argv } = step {
                self.programs.extend(argv.first().cloned());
            }
        }
    }

    fn filesystem(&mut self, filesystem: &Filesystem) {
        self.programs.extend(filesystem.programs().into_iter().map(str::to_owned));
        let others = [&filesystem.version, &filesystem.features.argv];
        self.programs.extend(others.into_iter().filter_map(|argv| argv.first().cloned()));
        self.named(&filesystem.fstype);
    }

    /// Adds a row of the table of requirements, or the module alias of a filesystem without a row.
    fn named(&mut self, name: &str) {
        let Some(needs) = needs(name) else {
            self.modules.insert(format!("fs-{name}"));
            return;
        };
        let owned = |list: &'static [&str]| list.iter().map(|word| (*word).to_owned());
        self.modules.extend(owned(needs.modules).chain(owned(needs.optional)));
        self.programs.extend(owned(needs.programs));
        self.files.extend(owned(needs.files));
    }
}
