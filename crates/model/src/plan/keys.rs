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
    key("", "twins", "none, one, or each", "none in profile quick and below 6 repeats, one in standard, each in rigorous", "Which cells are measured twice as if they were two, so that the run shows what chance alone does: none, one of the run, or one of each workload."),
    key("", "budget", "a time such as \"2h\"", "as long as it takes", "How long all trials may take together; cells still open then are closed with what they have."),
    key("", "invalid", "repeat or keep", "keep in profile quick and below 6 repeats, else repeat", "What becomes of a trial that the machine spoiled, as by throttling: it is made again, three times for a cell and beyond that for one trial in five; or it counts, with its warnings."),
    key("", "seed", "a whole number", "drawn at the start and stored", "The seed of the order of trials and of the data written."),
    key("", "fsck", "true or false", "true", "Check each filesystem read-only after its trial, timed."),
    key("", "isolation", "remount, reattach, or reboot", "remount", "What separates one trial from the next beyond the filesystem that each is given anew: nothing more, image files detached and attached again, or the machine booted again."),
    key("", "guest", "auto, kvm, counted, uml, or tcg", "this machine", "Measure in a throw-away machine that boots a kernel of its own, as any user; the images are its disks. One that is counted tells guest instructions instead of times."),
    key("", "view", "a name of `fslab list views`", "the tables and charts of the suites", "The published study whose tables and charts the report shows first, in its order and with its numbers, from the numbers of this run."),
    key("", "storage", "a table", "required", "What lies under the filesystems."),
    key("", "axes", "a table", "required", "What is varied: every combination is one cell."),
    key("", "scales", "a table of tables", "none", "Scales with names: what `--scale NAME` sets, each key as `--set` has it."),
    key("storage", "image", "a size", "", "Make an image file of this size and use it through a loop device."),
    key("storage", "images", "a whole number within 1..=16", "1", "How many such images; more than one for filesystems that span devices."),
    key("storage", "image_directory", "a path", "/var/tmp", "The directory of the image files."),
    key("storage", "image_file", "a path", "a file that is removed afterwards", "Use the image file of this name and keep it."),
    key("storage", "allocation", "full or sparse", "full", "Whether an image's space is reserved before each mkfs."),
    key("storage", "device", "a path", "", "Use this block device; everything on it is lost."),
    key("storage", "devices", "a list of paths", "", "Use these block devices together; everything on them is lost."),
    key("storage", "directory", "a path", "", "Measure whatever is mounted at this directory; nothing is formatted, root is not needed."),
    key("storage", "memory", "a size", "all there is", "Limit of the workload's memory, page cache included."),
    key("storage", "guest_device", "null_blk or brd", "null_blk", "What holds the image in the memory of a counted guest: null_blk counts requests and flushes, brd, the RAM disk, does not."),
    key("storage", "guest_latency", "a time such as \"100us\"", "none", "What each request takes on the null_blk of a counted guest, which then tells virtual times instead of instructions."),
    key("storage", "elsewhere", "a path", "a directory in memory", "A directory on another filesystem, for tasks that copy from and to it."),
    key("axes", "filesystem", "names, or tables with name, base, mkfs, mount, devices, layers, setup, becomes", "required unless storage.directory is given", "The filesystems."),
    key("axes", "workload", "names of `fslab list workloads`, or tables with recipe or suite and parameters", "required", "The workloads; a list of values of a parameter is swept."),
    key("axes", "scheduler", "a list of names", "left as it is", "The I/O schedulers of the device."),
    key("axes", "full", "a list of whole numbers within 0..=95", "as mkfs left it", "How much of the usable space is filled with files before the workload starts, in percent; mount, umount, and fsck are then timed on the filled filesystem."),
    key("axes", "read_ahead", "a list of sizes", "left as it is", "How far the kernel reads ahead of sequential readers, on every device of the stack (read_ahead_kb)."),
    key("axes", "queue_depth", "a list of whole numbers", "left as it is", "Requests that a queue of a device holds, on every device of the stack (nr_requests)."),
    key("axes", "write_cache", "write back, write through", "left as it is", "What the kernel takes the device's cache for: `write back` is flushed by fsync, `write through` is not (queue/write_cache). The device itself is left as it is, and so are disks below that others use."),
    key("axes", "cpu_speed", "a list of shares such as \"50%\"", "left as it is", "Speed of all processors: their highest and lowest frequency are set to this share of the highest there is; where the machine has no frequency to set, this process and its programs get this share of the time of as many processors as there are workers instead, which is told with every number."),
    key("axes", "cpu_governor", "a list of names", "left as it is", "The governor of the processors' frequency (scaling_governor)."),
    key("axes", "cpus", "a list of whole numbers", "left as it is", "Processors that are online; the others are taken offline, highest numbers first."),
    key("axes", "dirty", "a list of shares or sizes", "left as it is", "Dirty memory at which writers have to write back themselves (vm.dirty_ratio, vm.dirty_bytes)."),
    key("axes", "dirty_background", "a list of shares or sizes", "left as it is", "Dirty memory at which the kernel begins to write back (vm.dirty_background_ratio, vm.dirty_background_bytes)."),
    key("axes", "huge_pages", "always, madvise, never", "left as it is", "Transparent huge pages (transparent_hugepage/enabled)."),
    key("axes", "kernel", "a list of kernels", "the newest there is", "The kernel that a guest boots: the version of an installed one or its beginning, the file of a distribution's package, or an image (vmlinuz, vmlinux, a program of user-mode Linux), with `:FOLDER` behind it where its modules are elsewhere."),
    key("filesystem", "name", "text", "required", "The name shown in the report."),
    key("filesystem", "base", "a name of `fslab list filesystems`", "the name itself", "The catalogue entry it is made from."),
    key("filesystem", "mkfs", "a list of arguments", "none", "Further arguments for mkfs."),
    key("filesystem", "mount", "text", "the kernel's defaults", "Mount options, separated by commas."),
    key("filesystem", "devices", "a whole number within 1..=16", "all where it can span devices", "How many of the storage's devices it lies on, the first ones."),
    key("filesystem", "layers", "a list of tables", "none", "What stands between the devices and the filesystem, the lowest first: { md = \"raid0\", chunk = \"512KiB\" }, { crypt = \"aes-xts-plain64\", key_bits = 512 }, { thin = \"64KiB\" }, { cache = \"writeback\", block = \"256KiB\" }, { delay = \"20ms\" }, { flakey = \"error\" }, { dust = \"16-63\", block = \"1MiB\" }, { log_writes = true }."),
    key("layer", "md", "raid0, raid1, raid4, raid5, raid6, raid10, or linear", "", "An array of the md driver over all devices."),
    key("layer", "chunk", "a size", "that of mdadm", "The chunk of the array."),
    key("layer", "crypt", "a cipher such as aes-xts-plain64", "", "Each device encrypted by the device mapper, with a key that is drawn anew and kept nowhere."),
    key("layer", "key_bits", "a whole number within 128..=512", "256, and 512 for xts", "Bits of the key."),
    key("layer", "thin", "a size", "", "A volume of a thin pool of such blocks."),
    key("layer", "cache", "writeback, writethrough, or passthrough", "", "The last device cached by the one before it."),
    key("layer", "block", "a size", "256KiB, and 4KiB for dust", "The block of the cache, or of the bad blocks."),
    key("layer", "delay", "a duration in whole milliseconds, at most 60s", "", "Each device answers so much later, from before mkfs on."),
    key("layer", "write", "a duration in whole milliseconds, at most 60s", "that of `delay`", "What writes and flushes wait instead."),
    key("layer", "flakey", "error, drop_writes, or error_writes", "", "Each device fails in turns from the first measured phase until the filesystem is unmounted: all requests, writes that it says it has done, or writes."),
    key("layer", "up", "a duration in whole seconds, at most 1h", "0s", "How long a flakey device is sound before it fails, and between failing and failing again."),
    key("layer", "down", "a duration in whole seconds, at most 1h", "1s", "How long a flakey device fails; with `up` of 0s it does so all the time."),
    key("layer", "dust", "block numbers such as \"7, 16-63\", 1024 at most", "", "Blocks of each device that cannot be read, from the first measured phase until the filesystem is unmounted; one that is written is sound again."),
    key("layer", "log_writes", "true", "", "All that is written to the first device is logged on the second."),
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
