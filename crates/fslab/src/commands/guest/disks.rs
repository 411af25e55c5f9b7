//! Disks of guests: image files, or a device in the memory of an icount guest.

use guest::{Engine, in_guest::Device};
use model::{
    Bytes, Clock, GuestDevice, GuestDisk, Nanos, StorageKind, SystemSetting, matrix::LabeledCell,
};

use crate::{exit::Failure, plans::ResolvedPlan};

/// Default memory of a guest: enough for this program and for caches.
pub(super) const MEMORY: Bytes = Bytes::gib(1);
/// Memory of an icount guest in addition to its disk, which is in its memory.
const BASE_MEMORY: Bytes = Bytes::mib(768);
/// Volatile cache of the disk of an icount guest. Like most disks, it therefore needs flushes.
const CACHE: Bytes = Bytes::mib(16);
/// Sector size of the disk of an icount guest. The device does work for each sector: with sectors
/// of 512 bytes, discarding 320 MiB took 120 M instructions instead of 20 M, and mkfs took a third
/// more instructions. For ext2, ext3, and ext4 on a disk as small as this with such sectors, mkfs
/// also selects blocks of 1 KiB, which is an unusual size.
const SECTOR: Bytes = Bytes(4096);

/// Disks of each guest of a run.
#[derive(Clone, Debug)]
pub(super) struct GuestDisks {
    pub(super) size: Bytes,
    pub(super) count: u32,
    /// Directory of the images in the plan.
    pub(super) directory: Option<String>,
    /// Disk of an icount guest.
    pub(super) icount: GuestDisk,
    /// Unit of the guest clock.
    pub(super) clock: Clock,
    memory_limit: Option<Bytes>,
}

impl GuestDisks {
    /// Disks of a plan.
    ///
    /// # Errors
    /// If the storage of the plan is not image files.
    pub(super) fn of_plan(chosen: &ResolvedPlan) -> Result<Self, Failure> {
        let StorageKind::Image { size, count, ref directory, .. } = chosen.storage.kind else {
            return Err(Failure::usage(anyhow::anyhow!(
                "guests use image files as disks, but the plan has other storage; use \
                 storage.image_size, or remove --guest"
            )));
        };
        let sized =
            |labeled: &LabeledCell| labeled.cell.settings.contains_key(&SystemSetting::Size);
        if chosen.cells.iter().any(sized) {
            return Err(Failure::usage(anyhow::anyhow!(
                "the disks of a guest have one size; remove `size` from the plan, or remove --guest"
            )));
        }
        Ok(Self {
            size,
            count,
            directory: directory.clone(),
            icount: chosen.plan.guest_disk,
            clock: chosen.plan.clock(),
            memory_limit: chosen.storage.memory_limit,
        })
    }

    /// Size of all disks.
    pub(super) fn total(&self) -> Bytes {
        Bytes(self.size.0.saturating_mul(u64::from(self.count)))
    }

    /// Memory of a guest.
    pub(super) fn memory(&self, engine: Engine) -> Bytes {
        match engine {
            Engine::Icount => {
                Bytes(self.memory_limit.unwrap_or(BASE_MEMORY).0.saturating_add(self.total().0))
            }
            Engine::Kvm | Engine::Tcg | Engine::Uml => self.memory_limit.unwrap_or(MEMORY),
        }
    }

    /// Latency per request of the disk of an icount guest, if any.
    pub(super) fn latency(&self) -> Option<Nanos> {
        (self.clock == Clock::Virtual).then(|| self.icount.latency())
    }

    /// Description of the storage.
    pub(super) fn describe(&self, engine: Engine) -> String {
        let size = self.size.rough();
        let what = match (engine, self.count) {
            (Engine::Icount, _) => {
                let answers = match self.latency() {
                    Some(latency) => format!("{latency} per request"),
                    None => "no latency".to_owned(),
                };
                let device = self.icount.device.unwrap_or_default().name();
                format!("a {size} disk ({device}, {answers}) in memory")
            }
            (Engine::Kvm | Engine::Tcg | Engine::Uml, 1) => {
                format!("an image file of {size} as the disk")
            }
            (Engine::Kvm | Engine::Tcg | Engine::Uml, count) => {
                format!("{count} image files of {size} as the disks")
            }
        };
        let memory = self.memory(engine).rough();
        format!("{what} of a guest ({}) with {memory} of memory", engine.name())
    }

    /// Paths of the disks inside a guest.
    pub(super) fn paths(&self, engine: Engine) -> Vec<String> {
        let prefix = match engine {
            Engine::Uml => "/dev/ubd",
            Engine::Kvm | Engine::Tcg => "/dev/vd",
            Engine::Icount => {
                return vec![self.device(engine).path().unwrap_or_default().to_owned()];
            }
        };
        let letters = ('a'..='z').take(self.count as usize);
        letters.map(|letter| format!("{prefix}{letter}")).collect()
    }

    /// Device that an icount guest creates in its memory.
    pub(super) fn device(&self, engine: Engine) -> Device {
        match engine {
            Engine::Icount => match self.icount.device.unwrap_or_default() {
                GuestDevice::Brd => Device::RamDisk { size: self.size },
                GuestDevice::NullBlk => Device::NullBlk {
                    size: self.size,
                    latency: self.icount.latency(),
                    cache: CACHE,
                    sector: SECTOR,
                },
            },
            Engine::Kvm | Engine::Tcg | Engine::Uml => Device::None,
        }
    }
}
