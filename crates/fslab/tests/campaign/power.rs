//! Power loss of the machine that runs fslab, in all states in which its disk may be afterwards.
//!
//! fslab runs as root in a virtual machine, on an image file and on a directory of the only disk.
//! The QEMU filter `blklogwrites` records each write and flush of that disk. The host then
//! constructs states that a power loss could leave: all writes before a flush, and random later
//! ones. Each state is mounted and must contain every stored trial.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use super::{
    Section, tries,
    vm::{self, Vm, Wanted},
};
use crate::support::{files, needs_root, skipped};

const NAME: &str = "campaign::power::no_power_loss_loses_a_stored_trial";
const SCRIPT: &str = include_str!("power.sh");
/// Size of the filesystem in bytes. Marks of stored trials are written behind it.
const FILESYSTEM: u64 = 96 << 20;
const BLOCK: u64 = 4096;
const SECTOR: u64 = 512;
/// Trials of each run.
const TRIALS: u32 = 4;
const PROGRAMS: [&str; 9] =
    ["mkfs.ext2", "e2fsck", "dumpe2fs", "tune2fs", "mkfs.ext4", "mount", "umount", "dd", "losetup"];
const IMAGE: &str = r#"
profile = "quick"
repetitions = 4
seed = 1
fsck = false
[storage]
image_size = "8MiB"
image_directory = "/data/images"
[axes]
filesystem = ["ext2"]
workload = [{ suite = "stream", file_size = "1MiB", block_size = "64KiB" }]
"#;
const DIRECTORY: &str = r#"
profile = "quick"
repetitions = 4
seed = 1
[storage]
directory = "/data/work"
[axes]
workload = [{ suite = "stream", file_size = "1MiB", block_size = "64KiB" }]
"#;

/// Request of a log (documentation of dm-log-writes, `struct log_write_entry`).
struct Entry {
    sector: u64,
    sectors: u64,
    flags: u64,
    /// Offset of the data in the log.
    data: u64,
}

const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;

/// Log of the QEMU filter `blklogwrites`; integers are little-endian.
struct Log {
    file: File,
    entries: Vec<Entry>,
}

impl Log {
    fn read(path: &Path) -> Self {
        const MAGIC: u64 = 0x006a_7366_7773_6872;
        let file = File::open(path).unwrap();
        let number = |at: u64| {
            let mut bytes = [0; 8];
            file.read_exact_at(&mut bytes, at).unwrap();
            u64::from_le_bytes(bytes)
        };
        assert_eq!((number(0), number(8)), (MAGIC, 1));
        let (count, sector_size) = (number(16), number(24) & 0xffff_ffff);
        assert_eq!(sector_size, SECTOR);
        let (mut at, mut entries) = (SECTOR, Vec::new());
        for _ in 0..count {
            let (sectors, flags) = (number(at + 8), number(at + 16));
            let data = at + SECTOR;
            entries.push(Entry { sector: number(at), sectors, flags, data });
            at = data + if flags & DISCARD == 0 { sectors * SECTOR } else { 0 };
        }
        Self { file, entries }
    }

    fn apply(&self, entry: &Entry, disk: &File) {
        let size = entry.sectors * SECTOR;
        if entry.flags & DISCARD == 0 && size > 0 {
            let mut data = vec![0; usize::try_from(size).unwrap()];
            self.file.read_exact_at(&mut data, entry.data).unwrap();
            disk.write_all_at(&data, entry.sector * SECTOR).unwrap();
        }
    }

    /// Number of stored trials if the entry writes the mark at this place.
    fn mark(&self, entry: &Entry, place: u64) -> Option<u32> {
        let at = (FILESYSTEM + place * BLOCK) / SECTOR;
        if entry.sector != at || entry.sectors == 0 || entry.flags & DISCARD != 0 {
            return None;
        }
        let mut text = [0; 32];
        self.file.read_exact_at(&mut text, entry.data).unwrap();
        let text = str::from_utf8(&text).unwrap().trim_end_matches('\0');
        text.strip_prefix("fslab-mark ")?.parse().ok()
    }
}

#[test]
fn no_power_loss_loses_a_stored_trial() {
    if let Some(missing) = vm::missing() {
        return skipped(NAME, missing);
    }
    if !needs_root(NAME) {
        return;
    }
    let section = section();
    let (machine, start) = record();
    let log = Log::read(&machine.directory().join("log"));
    let place = machine.directory();
    let flushes: Vec<usize> = (0..log.entries.len())
        .filter(|number| log.entries[*number].flags & FLUSH != 0)
        .chain([log.entries.len()])
        .collect();
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let wanted = tries(24, 1000).max(1);
    let mut outcomes = Outcomes::default();
    let durable = File::options().write(true).open(&start).unwrap();
    let mut from = 0;
    for (number, flush) in flushes.iter().enumerate() {
        // The states are spread evenly over the flushes.
        let share = (number + 1) * wanted / flushes.len() - number * wanted / flushes.len();
        for state in 0..share {
            // Writes since the previous flush, of which the last ones may be missing.
            let cut = if state == 0 { *flush } else { random.usize(from..=*flush) };
            let kept = |entry: &&Entry| entry.flags & FUA != 0 || (state > 0 && random.bool());
            let later: Vec<_> = log.entries[from..cut].iter().filter(kept).collect();
            let marks = [0, 1].map(|place| {
                log.entries[..cut].iter().rev().find_map(|entry| log.mark(entry, place))
            });
            let disk = place.join("state.img");
            copy(&start, &disk);
            let file = File::options().write(true).open(&disk).unwrap();
            later.into_iter().for_each(|entry| log.apply(entry, &file));
            drop(file);
            let found = judge(&disk, place, marks.map(Option::unwrap_or_default));
            outcomes.add(found, &format!("entries {from} to {cut}, marks {marks:?}"));
        }
        log.entries[from..*flush].iter().for_each(|entry| log.apply(entry, &durable));
        from = *flush;
    }
    // The run must have stored all of its trials.
    let last = |place| log.entries.iter().rev().find_map(|entry| log.mark(entry, place));
    assert_eq!([0, 1].map(last), [Some(TRIALS); 2], "{}", machine.log);
    outcomes.report(section, &log, flushes.len(), seed);
}

fn section() -> Section {
    Section::new(
        2,
        "power",
        "Power loss",
        "\
fslab runs as root in a virtual machine, and all writes to the disk are recorded. One run measures
four trials on an image file. Another measures four trials on a directory, with an interruption and
`--resume`. From the recorded writes, the test builds the states in which a power loss could leave
the disk. Each state must contain every trial that fslab had reported as stored; a missing trial is
*lost*. An undo journal must name each file of fslab; a file without an entry is an *orphan*.",
        &["writes and flushes", "flushes", "states", "lost", "orphans", "seed"],
    )
}

/// Runs the machine. Its directory contains the disk before the run, and the log of the writes.
fn record() -> (Vm, PathBuf) {
    let mut script = format!("MARKS={} TRIALS={TRIALS}\n", FILESYSTEM / BLOCK);
    for (name, plan) in [("image", IMAGE), ("directory", DIRECTORY)] {
        script += &format!("cat >/tmp/{name}.toml <<'END'{plan}END\n");
    }
    script += SCRIPT;
    let scratch = tempfile::TempDir::with_prefix_in("fslab-test-", "/var/tmp").unwrap().keep();
    let (base, log) = (scratch.join("base"), scratch.join("log"));
    File::create_new(&base).unwrap().set_len(FILESYSTEM + 16 * BLOCK).unwrap();
    File::create_new(&log).unwrap();
    let blocks = (FILESYSTEM / BLOCK).to_string();
    let mkfs = ["-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"];
    assert!(
        Command::new("mkfs.ext4").args(mkfs).arg(&base).arg(blocks).status().unwrap().success()
    );
    let start = scratch.join("start");
    copy(&base, &start);
    let node = |name: &str, file: &Path| {
        format!("driver=file,node-name={name},filename={}", file.display())
    };
    let arguments = [
        "-blockdev",
        &node("base", &base),
        "-blockdev",
        &node("log", &log),
        "-blockdev",
        "driver=blklogwrites,node-name=disk,file=base,log=log,log-sector-size=512",
        "-device",
        "virtio-blk-pci,drive=disk,discard=off,write-zeroes=off",
    ];
    let arguments = arguments.map(str::to_owned);
    let mut programs = PROGRAMS.map(str::to_owned).to_vec();
    programs.push(env!("CARGO_BIN_EXE_fslab").into());
    let mut machine = Vm::boot(&Wanted {
        programs: &programs,
        modules: &["ext4", "loop"],
        if_there: &[],
        disks: &[],
        arguments: &arguments,
        script: &script,
    });
    assert_eq!(machine.missing, Vec::<String>::new());
    machine.end();
    assert!(machine.log.contains("@end"), "{}", machine.log);
    for name in ["start", "log"] {
        fs::rename(scratch.join(name), machine.directory().join(name)).unwrap();
    }
    fs::remove_dir_all(&scratch).unwrap();
    let start = machine.directory().join("start");
    (machine, start)
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("--sparse=always").args([from, to]).status().unwrap();
    assert!(copied.success());
}

/// Missing trials and unknown files in a state.
#[derive(Debug, Default)]
struct Found {
    lost: Vec<String>,
    orphans: Vec<String>,
}

/// Mounts a disk, and checks that the runs on an image and on a directory contain the trials of the
/// marks.
fn judge(disk: &Path, place: &Path, marks: [u32; 2]) -> Found {
    let at = place.join("mounted");
    fs::create_dir_all(&at).unwrap();
    let mount = Command::new("mount").args(["-t", "ext4", "-o", "loop"]).args([disk, &at]).status();
    assert!(mount.unwrap().success(), "mounting {}", disk.display());
    let _mounted = Mounted(at.clone());
    let mut found = Found::default();
    for (name, marked) in ["image.fslab", "directory.fslab"].into_iter().zip(marks) {
        if marked == 0 {
            continue;
        }
        match store::read(&at.join(name)) {
            Ok(run) if run.trials.len() >= marked as usize => {}
            Ok(run) => {
                found.lost.push(format!("{name} has {} of {marked} trials", run.trials.len()));
            }
            Err(error) => found.lost.push(format!("{name} of {marked} trials: {error}")),
        }
    }
    let state = at.join("state");
    let journals = if state.exists() { files(&state) } else { Vec::new() };
    let text = |file: &PathBuf| String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
    let journals: Vec<String> = journals.iter().map(text).collect();
    for directory in ["images", "work"] {
        let entries = fs::read_dir(at.join(directory)).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name().into_string().unwrap();
            if !journals.iter().any(|journal| journal.contains(&name)) {
                found.orphans.push(format!("{directory}/{name}"));
            }
        }
    }
    found
}

/// Mounted filesystem, unmounted on drop.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg(&self.0).status();
        assert!(
            unmounted.is_ok_and(|status| status.success()),
            "{} is unmounted",
            self.0.display()
        );
    }
}

#[derive(Default)]
struct Outcomes {
    states: usize,
    lost: Vec<String>,
    orphans: Vec<String>,
}

impl Outcomes {
    fn add(&mut self, found: Found, state: &str) {
        self.states += 1;
        let named = |text: String| format!("{state}: {text}");
        self.lost.extend(found.lost.into_iter().map(named));
        self.orphans.extend(found.orphans.into_iter().map(named));
    }

    fn report(self, mut section: Section, log: &Log, flushes: usize, seed: u64) {
        let (lost, orphans) = (self.lost.len(), self.orphans.len());
        let numbers = [log.entries.len(), flushes, self.states, lost, orphans];
        let cells = numbers.map(|number| number.to_string());
        section.row(cells.into_iter().chain([format!("{seed:#x}")]));
        section.write();
        let all = [self.lost, self.orphans].concat();
        assert!(
            all.is_empty(),
            "seed {seed:#x}, {lost} lost, {orphans} orphans:\n{}",
            all.join("\n")
        );
    }
}
