//! Table of all plan keys, used by the parser, the reference page, and error messages.

/// A plan key.
#[derive(Clone, Copy, Debug)]
pub struct KeySpec {
    /// Table of the key; empty for the top level.
    pub table: &'static str,
    /// Key.
    pub key: &'static str,
    /// Accepted values.
    pub takes: &'static str,
    /// Default.
    pub default: &'static str,
    /// Meaning, for the reference page.
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

/// All plan keys, in the order of the reference page.
#[rustfmt::skip]
pub const KEYS: &[KeySpec] = &[
    key("", "title", "string", "the plan's name", "Title of the report."),
    key("", "profile", "quick, standard, or rigorous", "standard", "Precision target: an equivalence margin of 10, 5, or 2 %. Cells are repeated until their confidence intervals are narrow enough for it."),
    key("", "repetitions", "integer, 1 to 1000", "adaptive, set by the profile", "Fixed number of repetitions per cell. Fewer than 6 give no confidence interval."),
    key("", "aa_control", "none, one, or per-workload", "none for profile quick and below 6 repetitions, one for standard, per-workload for rigorous", "Cells measured twice as A/A control: none, one per run, or one per workload."),
    key("", "time_limit", "duration such as \"2h\"", "unlimited", "Maximum total duration of all trials. Cells still open then are closed with the data they have."),
    key("", "invalid_trials", "rerun or keep", "keep for profile quick and below 6 repetitions, otherwise rerun", "Handling of invalid trials (for example, CPU throttling). `rerun` repeats them: at most three times per cell, then one trial in five. `keep` counts them, with their warnings."),
    key("", "seed", "integer", "random, stored in the run file", "Seed of the trial order and of the written data."),
    key("", "fsck", "boolean", "true", "Check each filesystem after its trial (read-only, timed)."),
    key("", "isolation", "remount, reattach, or reboot", "remount", "Isolation between trials besides the new filesystem: nothing further, images detached and reattached, or a reboot."),
    key("", "guest", "auto, kvm, icount, uml, or tcg", "this machine", "Measure in a temporary virtual machine; no root required, disks are image files. `icount` reports guest instructions instead of times."),
    key("", "study", "a name of `fslab list studies`", "the tables and charts of the suites", "Published study whose tables and charts come first in the report."),
    key("", "design", "full or screen", "full, up to 64 combinations", "Combinations of the options of `axes.mkfs` and `axes.mount`: all, or a fraction that separates the effects of up to 16 options with two values (resolution IV: 16 combinations for 5 to 8 options, 32 for 9 to 16)."),
    key("", "storage", "table", "required unless `axes.device` is set", "Storage under the filesystems."),
    key("", "axes", "table", "required", "Varied factors. Each combination of their levels is one cell."),
    key("", "scales", "table of tables", "none", "Named sets of overrides for `--scale NAME`."),
    key("storage", "image_size", "size such as \"4GiB\"", "", "Size of each image file, used through a loop device."),
    key("storage", "image_count", "integer, 1 to 16", "1", "Number of images. Filesystems that span devices can use more than one."),
    key("storage", "image_directory", "path", "/var/tmp", "Directory of the image files."),
    key("storage", "image_file", "path", "a file that is removed afterwards", "Image file to use and keep."),
    key("storage", "image_allocation", "preallocated or sparse", "preallocated", "Allocate image space before each mkfs, or on write."),
    key("storage", "device", "path", "", "Block device to use; all data on it is lost."),
    key("storage", "devices", "list of paths", "", "Block devices to use; all data on them is lost."),
    key("storage", "directory", "path", "", "Measure the filesystem mounted here; nothing is formatted, no root required."),
    key("storage", "cluster", "path", "", "Directory of a cluster filesystem that all hosts mount; measured from several hosts over MPI."),
    key("storage", "hosts", "list of host names", "--hosts, --hostfile, or the Slurm allocation", "Hosts that mount `cluster`. One process per host is started with the launcher of the MPI library."),
    key("storage", "launcher", "command such as \"srun -N {hosts} --ntasks-per-node=1\"", "mpirun", "Command that starts one process per host; {hosts} is their number, {list} their names, separated by commas."),
    key("storage", "memory_limit", "size such as \"4GiB\"", "unlimited", "Memory limit of the workload, including page cache (cgroup)."),
    key("storage", "guest_device", "null_blk or brd", "null_blk", "RAM-backed disk of an icount guest; null_blk counts requests and flushes, brd does not."),
    key("storage", "guest_device_latency", "duration such as \"100us\"", "none", "Simulated latency per null_blk request; results are then virtual times."),
    key("storage", "external_directory", "path", "a directory in memory", "Directory on another filesystem, source and target of copy tasks."),
    key("axes", "filesystem", "list of names, or of tables with name, type, mkfs_options, mount_options, mount_command, device_count, layers, setup, …", "required unless storage.directory is set", "Filesystems."),
    key("axes", "workload", "list of names of `fslab list workloads`, or of tables with preset or suite and parameters", "required", "Workloads. A list of values of a parameter is swept."),
    key("axes", "scheduler", "list of names", "unchanged", "I/O schedulers of the device."),
    key("axes", "fill_percent", "list of integers, 0 to 95", "empty", "Percentage of available space filled before the workload; mount, umount, and fsck are then timed on the filled filesystem."),
    key("axes", "mkfs", "table of options, each with a list of values", "none", "Arguments of mkfs that vary, such as `mkfs.-I = [256, 512]`. `true` adds the argument alone, `false` omits it. Each option is a factor; `design` selects the combinations. They follow `mkfs_options`."),
    key("axes", "mount", "table of options, each with a list of values", "none", "Mount options that vary, such as `mount.data = [\"ordered\", \"writeback\"]` or `mount.sync = [false, true]`. They follow `mount_options`."),
    key("axes", "device", "list of tables with name, and device, devices, or image_size", "the storage", "Devices or image files to compare: each is a level, and a trial uses one of them. Replaces the device or image of `storage`."),
    key("axes", "size", "list of sizes such as \"1GiB\"", "image_size", "Size of each image file under the filesystem; replaces `image_size`, and is not scaled. With image_allocation = \"sparse\", an image takes only the space that was written. Directories, devices, and guests have no sizes."),
    key("axes", "read_ahead", "list of sizes", "unchanged", "Read-ahead (`read_ahead_kb`) of the storage devices and of the devices below them, without layers."),
    key("axes", "nr_requests", "list of integers, 4 to 65536", "unchanged", "Request-queue size (`queue/nr_requests`) of the storage devices and of the devices below them, without layers."),
    key("axes", "write_cache", "list of write back, write through", "unchanged", "Cache mode the kernel assumes (`queue/write_cache`): fsync flushes `write back` devices only. The device's own cache is unchanged, and so are disks of the stack that others use."),
    key("axes", "cpu_speed", "list of percentages such as \"50%\"", "unchanged", "CPU frequency in percent of the maximum; without cpufreq emulated by a CPU quota (`setting-emulated`)."),
    key("axes", "cpu_governor", "list of names", "unchanged", "Frequency governor (`scaling_governor`)."),
    key("axes", "online_cpus", "list of integers, 1 to 8192", "unchanged", "Number of online CPUs; highest numbers go offline first."),
    key("axes", "dirty_threshold", "list of percentages or sizes", "unchanged", "Dirty memory at which writers must write back (`vm.dirty_ratio`, `vm.dirty_bytes`)."),
    key("axes", "dirty_background_threshold", "list of percentages or sizes", "unchanged", "Dirty memory at which background writeback starts (`vm.dirty_background_ratio`, `vm.dirty_background_bytes`)."),
    key("axes", "transparent_hugepage", "list of always, madvise, never", "unchanged", "Transparent huge pages (`transparent_hugepage/enabled`)."),
    key("axes", "kernel", "list of kernels", "newest installed", "Kernel of the guest: version (or prefix) of an installed kernel, a package, or an image; append `:DIRECTORY` for its modules."),
    key("axes", "hosts", "list of integers, 1 to 4096", "all", "Number of hosts that take part, from the first on; each has the workers of the workload. Requires `storage.cluster`."),
    key("axes", "reader_shift", "list of integers, 0 to 4096", "1", "Number of hosts by which reads are shifted: with 1, a host reads the files of the next host; with 0, its own files, which its cache may contain. Requires `storage.cluster`."),
    key("device", "name", "letters, digits, `-`, and `_`", "required", "Name shown in the report."),
    key("device", "device", "path", "", "Block device to use; all data on it is lost."),
    key("device", "devices", "list of paths", "", "Block devices to use together; all data on them is lost."),
    key("device", "image_size", "size such as \"4GiB\"", "", "Size of each image file, used through a loop device."),
    key("device", "image_count", "integer, 1 to 16", "1", "Number of images of this level."),
    key("device", "image_directory", "path", "/var/tmp", "Directory of the image files, such as a mount point of the disk to measure."),
    key("device", "image_file", "path", "a file that is removed afterwards", "Image file to use and keep."),
    key("device", "image_allocation", "preallocated or sparse", "preallocated", "Allocate image space before each mkfs, or on write."),
    key("filesystem", "name", "string", "required", "Name shown in the report."),
    key("filesystem", "type", "a name of `fslab list filesystems`; with mount_command, any type", "the name", "Filesystem type."),
    key("filesystem", "mkfs_options", "list of arguments", "none", "Additional mkfs arguments."),
    key("filesystem", "mount_options", "string", "the kernel's defaults", "Mount options, comma-separated."),
    key("filesystem", "mount_command", "list of program and arguments", "mount(2), or the command of the type", "Command (argument list, no shell) that mounts the filesystem on {mount} and then exits; a daemon must detach itself. {device} is the first device; {directory} an empty directory of `storage.directory` for the data of the filesystem, which is removed after the trial; {name} a unique name; {source} and {options} are the values of `source` and `mount_options`."),
    key("filesystem", "umount_command", "list of program and arguments", "umount(2), or the command of the type", "Command that unmounts {mount}; the placeholders are those of `mount_command`."),
    key("filesystem", "mounted_type", "string", "the kernel name of the type, or the type", "Filesystem type that /proc/self/mountinfo must show after `mount_command`; any other mount is refused and undone."),
    key("filesystem", "source", "string such as \"server:/export\"", "none", "Value of {source}: the file server and path of a network filesystem."),
    key("filesystem", "device_count", "integer, 1 to 16", "all", "Number of storage devices used, starting with the first. A filesystem that supports one device is skipped if more than one remain above the layers."),
    key("filesystem", "layers", "list of tables", "none", "Stacked block devices between storage and filesystem, lowest first: { md = \"raid0\", chunk = \"512KiB\" }, { crypt = \"aes-xts-plain64\", key_size = 512 }, { thin = \"64KiB\" }, { cache = \"writeback\", block_size = \"256KiB\" }, { delay = \"20ms\" }, { flakey = \"error\" }, { dust = \"16-63\", block_size = \"1MiB\" }, { log_writes = true }."),
    key("layer", "md", "raid0, raid1, raid4, raid5, raid6, raid10, or linear", "", "md array over all devices."),
    key("layer", "chunk", "size such as \"512KiB\"", "default of mdadm(8)", "Chunk size of the md array."),
    key("layer", "crypt", "cipher such as aes-xts-plain64", "", "dm-crypt on each device, with a random key that is not stored."),
    key("layer", "key_size", "integer, 128 to 512", "512 for xts, otherwise 256", "Key size in bits."),
    key("layer", "thin", "size such as \"64KiB\"", "", "dm-thin volume with this block size."),
    key("layer", "cache", "writeback, writethrough, or passthrough", "", "dm-cache: the last device cached by the one before it."),
    key("layer", "block_size", "size such as \"256KiB\"", "256KiB for cache, 4KiB for dust", "Block size of the cache or of bad blocks."),
    key("layer", "delay", "duration in whole milliseconds, at most 60s", "", "dm-delay on each device, active from mkfs on."),
    key("layer", "write_delay", "duration in whole milliseconds, at most 60s", "the value of `delay`", "Delay of writes and flushes."),
    key("layer", "flakey", "error, drop_writes, or error_writes", "", "dm-flakey on each device, active from the first measured phase until unmount: all requests fail, writes are dropped, or writes fail."),
    key("layer", "up", "duration in whole seconds, at most 1h", "0s", "Time a dm-flakey device works before it fails, and between failures."),
    key("layer", "down", "duration in whole seconds, at most 1h", "1s", "Time a dm-flakey device fails; with `up` of 0s it fails permanently."),
    key("layer", "dust", "block numbers such as \"7, 16-63\", at most 1024", "", "dm-dust: blocks of each device that are unreadable until rewritten, from the first measured phase until unmount."),
    key("layer", "log_writes", "true", "", "dm-log-writes: writes to the first device are logged on the second."),
    key("filesystem", "setup", "list of tables with one step each", "none", "Steps after mkfs and before the first timed mount, in order; the filesystem is mounted or unmounted as each step requires."),
    key("filesystem", "converted_to", "a name of `fslab list filesystems`", "the type", "Type after the last `run_unmounted` step (for example, btrfs-convert). Before that step, `mount_options` are not used."),
    key("setup", "populate", "directory name", "", "Generate a tree with the shape of the kernel source in this directory of the root."),
    key("setup", "populate_files", "integer, 1 to 100000000", "required with populate", "Files in the generated tree; multiplied by the scale."),
    key("setup", "remove", "directory name", "", "Remove this directory of the root with its contents."),
    key("setup", "run_unmounted", "list of program and arguments", "", "Command (argument list, no shell) to run while unmounted; {device} is replaced by its first device. With `mount_command`, all its placeholders except {mount} are replaced."),
    key("setup", "run_mounted", "list of program and arguments", "", "Command (argument list, no shell) to run while mounted; {mount} is replaced by its mount point, {device} by its first device. With `mount_command`, all its placeholders are replaced."),
];

/// Keys of a table.
pub(super) fn of_table(table: &'static str) -> impl Iterator<Item = &'static str> + Clone {
    KEYS.iter().filter(move |spec| spec.table == table).map(|spec| spec.key)
}
