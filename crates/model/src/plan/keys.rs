//! Every key a plan may have: the parser, the reference page and the error messages read this
//! table.

/// One key.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// The table it stands in; empty for the top.
    pub table: &'static str,
    /// The key.
    pub key: &'static str,
    /// What it takes, in words.
    pub takes: &'static str,
    /// What holds when it is absent.
    pub default: &'static str,
    /// What it means, one sentence.
    pub doc: &'static str,
}

const fn key(
    table: &'static str,
    key: &'static str,
    takes: &'static str,
    default: &'static str,
    doc: &'static str,
) -> KeySpec {
    KeySpec { table, key, takes, default, doc }
}

/// The table.
#[rustfmt::skip]
pub const KEYS: &[KeySpec] = &[
    key("", "title", "text", "the plan's name", "What the plan asks, shown on top of the report."),
    key("", "profile", "quick, standard or rigorous", "standard", "How sure to be: differences of 10, 5 or 2 % matter, and repeats go on until the intervals are narrow enough."),
    key("", "repeats", "a whole number within 1..=1000", "as many as the profile needs", "A fixed number of repeats of every cell; fewer than 6 give no interval."),
    key("", "seed", "a whole number", "drawn at the start and stored", "The seed of the order of trials and of the data written."),
    key("", "fsck", "true or false", "true", "Check each filesystem read-only after its trial, timed."),
    key("", "isolation", "remount, reattach, or reboot", "remount", "What separates one trial from the next beyond the filesystem that each is given anew: nothing more, image files detached and attached again, or the machine booted again."),
    key("", "storage", "a table", "required", "What lies under the filesystems."),
    key("", "axes", "a table", "required", "What is varied: every combination is one cell."),
    key("storage", "image", "a size", "", "Make an image file of this size and use it through a loop device."),
    key("storage", "images", "a whole number within 1..=16", "1", "How many such images; more than one for filesystems that span devices."),
    key("storage", "image_directory", "a path", "/var/tmp", "The directory of the image files."),
    key("storage", "image_file", "a path", "a file that is removed afterwards", "Use the image file of this name and keep it."),
    key("storage", "allocation", "full or sparse", "full", "Whether an image's space is reserved before each mkfs."),
    key("storage", "device", "a path", "", "Use this block device; everything on it is lost."),
    key("storage", "devices", "a list of paths", "", "Use these block devices together; everything on them is lost."),
    key("storage", "directory", "a path", "", "Measure whatever is mounted at this directory; nothing is formatted, root is not needed."),
    key("storage", "memory", "a size", "all there is", "Limit of the workload's memory, page cache included."),
    key("storage", "elsewhere", "a path", "a directory in memory", "A directory on another filesystem, for tasks that copy from and to it."),
    key("axes", "filesystem", "names, or tables with name, base, mkfs, mount, setup, becomes", "required unless storage.directory is given", "The filesystems."),
    key("axes", "workload", "names of `fslab list workloads`, or tables with recipe or suite and parameters", "required", "The workloads; a list of values of a parameter is swept."),
    key("axes", "scheduler", "a list of names", "left as it is", "The I/O schedulers of the device."),
    key("axes", "full", "a list of whole numbers within 0..=95", "as mkfs left it", "How much of the usable space is filled with files before the workload starts, in percent; mount, umount, and fsck are then timed on the filled filesystem."),
    key("filesystem", "name", "text", "required", "The name shown in the report."),
    key("filesystem", "base", "a name of `fslab list filesystems`", "the name itself", "The catalogue entry it is made from."),
    key("filesystem", "mkfs", "a list of arguments", "none", "Further arguments for mkfs."),
    key("filesystem", "mount", "text", "the kernel's defaults", "Mount options, separated by commas."),
    key("filesystem", "setup", "a list of tables with one step each", "none", "What is done to it after mkfs and before the first mount that is timed, in order; it is mounted or unmounted as each step needs."),
    key("filesystem", "becomes", "a name of `fslab list filesystems`", "what it was made as", "The catalogue entry that it is after the last program of `setup` that is run unmounted; until then it is mounted without the options of `mount`."),
    key("setup", "populate", "the name of a directory", "", "Write a tree with the shape of a kernel's source into this directory in its root."),
    key("setup", "files", "a whole number within 1..=100000000", "required with populate", "How many files that tree has; shrinks with the scale."),
    key("setup", "remove", "the name of a directory", "", "Remove this directory in its root, with all that is in it."),
    key("setup", "unmounted", "a list of program and arguments", "", "Run this program, no shell, while the filesystem is not mounted; {device} stands for its first device."),
    key("setup", "mounted", "a list of program and arguments", "", "Run this program, no shell, while it is mounted; {mount} stands for where, {device} as above."),
];

/// The keys of one table.
pub(super) fn of(table: &'static str) -> impl Iterator<Item = &'static str> + Clone {
    KEYS.iter().filter(move |spec| spec.table == table).map(|spec| spec.key)
}
