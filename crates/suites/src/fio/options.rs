//! Table of the options of fio: parser, reference page, and completeness test use it.

use super::{
    content, groups, lists, order, pace, steady, syncs,
    values::{self, Read},
    verify,
};

/// Handling of an option.
#[derive(Clone, Copy, Debug)]
pub enum Handling {
    /// Done. The default is canonical text; options with their default are left out of the
    /// canonical text of a job.
    Done {
        /// Default in canonical form.
        default: &'static str,
        /// Reader of a value.
        #[doc(hidden)]
        read: Read,
    },
    /// Title or layout of an output, without effect on the work.
    Title,
    /// Accepted without effect, for this reason.
    NoEffect(&'static str),
    /// Not supported.
    Refused {
        /// Reason.
        reason: &'static str,
        /// Alternative.
        hint: &'static str,
        /// Values that request nothing and are accepted.
        harmless: &'static [&'static str],
    },
}

/// Option of fio.
#[derive(Clone, Copy, Debug)]
pub struct FioOption {
    /// Name.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Handling.
    pub handling: Handling,
    /// Meaning here, for options that are done.
    pub doc: &'static str,
}

impl FioOption {
    /// True for this name or one of the aliases.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// Option with this name.
pub(super) fn find(name: &str) -> Option<&'static FioOption> {
    OPTIONS.iter().find(|option| option.is(name))
}

/// Option with a name similar to this one.
pub(super) fn near(name: &str) -> Option<&'static str> {
    let names = OPTIONS.iter().flat_map(|own| own.aliases.iter().copied().chain([own.name]));
    model::suggest::nearest(name, names)
}

const fn done(
    name: &'static str,
    aliases: &'static [&'static str],
    read: Read,
    default: &'static str,
    doc: &'static str,
) -> FioOption {
    FioOption { name, aliases, handling: Handling::Done { default, read }, doc }
}

const fn title(name: &'static str) -> FioOption {
    FioOption { name, aliases: &[], handling: Handling::Title, doc: "" }
}

const fn none(
    name: &'static str,
    aliases: &'static [&'static str],
    reason: &'static str,
) -> FioOption {
    FioOption { name, aliases, handling: Handling::NoEffect(reason), doc: "" }
}

const fn no(
    name: &'static str,
    aliases: &'static [&'static str],
    reason: &'static str,
    hint: &'static str,
    harmless: &'static [&'static str],
) -> FioOption {
    FioOption { name, aliases, handling: Handling::Refused { reason, hint, harmless }, doc: "" }
}

const ALWAYS: &str = "every operation is timed and counted";
const BLOCKS: &str = "each block has its own content";
const OUTPUT: &str = "the run file keeps histograms, so an output can have any percentile";
const VERIFY: &str = "blocks are verified by their headers, without a record of the writes";
const VERIFY_HINT: &str = "remove it";
const ZONES: &str = "files have no zones";
const TRIM: &str = "files are not trimmed";
const REMOVE: &str = "remove it";
const REPLAY: &str = "the options of a section determine its operations";
const REPLAY_HINT: &str =
    "convert the log by `fslab import`, and replay the recording by suite `replay`";
const PLAN: &str = "use the axis `scheduler` of a plan";
const CGROUP: &str = "the workload stays in its cgroup";
const MEMORY: &str = "set `storage.memory_limit` in a plan";
const LATENCY: &str = "the depth of the queue is constant";
const LATENCY_HINT: &str = "use `set` with several values of iodepth";
const NUMA: &str = "memory is not bound to nodes";
const NUMA_HINT: &str = "start fslab with numactl(8)";
const PRIORITY: &str = "operations have the priority of their worker";
const PRIORITY_HINT: &str = "use prio and prioclass";

/// All options, in the order of the reference page.
#[rustfmt::skip]
pub const OPTIONS: &[FioOption] = &[
    // Titles.
    title("name"),
    title("description"),
    title("group_reporting"),
    // Kind of I/O.
    done("rw", &["readwrite"], order::read_direction, "read", "Direction and order: read, write, randread, randwrite, rw, randrw. Sequential mixes have a position for reads and another for writes. `read:8k` skips 8 KiB after each operation, `read:-8k` goes back. `randread:8` makes every eighth operation at a random place, and the others after the previous one."),
    done("ioengine", &[], values::read_engine, "psync", "I/O engine, by its own system calls: sync, psync, pvsync, pvsync2, libaio, io_uring, mmap, null. filecreate, filestat, and filedelete make one call per file, which counts as a read of bs bytes; dircreate, dirstat, and dirdelete make one per directory. No directory with these names may exist before the job, which creates those of dirstat and dirdelete; falloc and ftruncate make one call per block."),
    done("bs", &["blocksize"], values::read_block_sizes, "4096", "Bytes per operation: one size, or one for reads and one for writes (`4k,64k`)."),
    done("bsrange", &["blocksize_range"], values::read_block_range, "", "Uniformly distributed multiples of the smallest size, or one range for reads and one for writes."),
    done("bssplit", &[], values::read_split, "", "Weighted block sizes, multiples of the smallest one, or one list for reads and one for writes. A random operation ends before a block that the pass has accessed, unless norandommap is set."),
    done("bs_is_seq_rand", &[], values::read_flag, "0", "The two sizes of bs, bsrange, and bssplit are those of sequential and of random operations, instead of reads and writes. A random operation that exceeds the end of the file starts earlier, or is shortened if others follow it (randread:8, percentage_random); fio ends the section there."),
    done("ba", &["blockalign"], values::read_alignment, "0", "Random operations start at multiples of this size, which may repeat. Sequential sections ignore it."),
    done("direct", &[], values::read_switch, "0", "O_DIRECT. Files are created without it."),
    done("buffered", &[], values::read_switch, "1", "Opposite of direct."),
    done("iodepth", &[], values::read_depth, "1", "Operations in flight of libaio and io_uring; other engines have one."),
    done("iodepth_batch", &["iodepth_batch_submit"], values::read_depth, "1", "Operations per submission."),
    done("iodepth_batch_complete_min", &["iodepth_batch_complete"], values::read_completions, "1", "Completions to wait for. Fewer operations in flight are waited for together."),
    done("iodepth_batch_complete_max", &[], values::read_depth, "1", "Maximum number of completions that are collected together, at least the minimum."),
    done("iodepth_low", &[], values::read_level_of_queue, "0", "Operations in flight at which a full queue is filled again; 0: after each completion."),
    done("numjobs", &[], values::read_jobs, "1", "Workers, each with all of the size. Outputs join their numbers, as with group_reporting."),
    done("thread", &[], values::read_flag, "0", "Threads instead of processes."),
    done("hipri", &[], values::read_flag, "0", "Polls for completions (io_uring, pvsync2), with direct."),
    done("fixedbufs", &[], values::read_flag, "0", "Registered buffers (io_uring), together with registerfiles."),
    done("registerfiles", &[], values::read_flag, "0", "Registered file (io_uring), together with fixedbufs."),
    done("sqthread_poll", &[], values::read_flag, "0", "A kernel thread polls for submissions (io_uring)."),
    done("nowait", &[], values::read_switch, "0", "RWF_NOWAIT (pvsync2). Calls that return EAGAIN are repeated without it."),
    done("uncached", &[], values::read_switch, "0", "RWF_DONTCACHE (pvsync2)."),
    // Amount.
    done("size", &[], values::read_section_size, "", "Bytes of each worker, and size of its file without filesize. Percentages are of filesize, of the files if they exist, or of the file in the place of a device."),
    done("filesize", &[], values::read_file_size, "", "Size of the file."),
    done("io_size", &["io_limit"], values::read_amount, "0", "Bytes of each worker. The file is opened again for each pass."),
    done("number_ios", &[], values::read_count, "0", "Maximum number of operations of each worker."),
    done("loops", &[], values::read_positive, "1", "Passes. The file is opened again for each pass."),
    done("runtime", &["timeout"], values::read_seconds, "0", "Time limit. The amount or the time ends a section, the earlier of both."),
    done("time_based", &[], values::read_flag, "0", "Repeats passes until runtime is over. Each pass starts with dropped pages if invalidate is set."),
    done("ramp_time", &[], values::read_seconds, "0", "Time before the measurement starts, added to runtime."),
    done("offset", &[], values::read_offset, "0", "First byte; percentages of the file are rounded up to blocks."),
    done("offset_align", &[], values::read_size, "0", "Percentages of offset are rounded up to multiples of this size instead of blocks."),
    done("offset_increment", &[], values::read_size, "0", "Distance between the first bytes of a worker and the next one."),
    // Files.
    done("directory", &[], values::read_text, "", "Directory of the files. With several, separated by `:`, the workers use them in turn; `filename` uses the first one. Plans, `fslab run`, and `fslab bench` use the directory of the trial instead."),
    done("filename", &[], values::read_text, "", "File that all workers of a section share, or several of them, separated by `:`. Plans use the last component of each name."),
    done("filename_format", &[], values::read_text, "$jobname.$jobnum.$filenum", "Names of files, with $jobname, $jobnum, and $filenum."),
    done("nrfiles", &["nr_files"], lists::read_files, "1", "Files of each worker. Without filesize, each has an equal part of size. Each file has its own position, or its own random order."),
    done("openfiles", &[], lists::read_files_or_all, "0", "Maximum number of open files of each worker; 0: all. The first ones are opened before the section. Another one is opened at its first operation, after a file without blocks was closed."),
    done("file_service_type", &[], lists::read_service, "roundrobin", "Next file of a worker: roundrobin, random, sequential, each with `:N` operations per file."),
    done("fallocate", &[], values::read_fallocate, "native", "Allocation of new files: native, none, posix, keep, truncate."),
    done("create_fsync", &[], values::read_flag, "1", "fsync of a new file after it was written before the section."),
    done("allow_file_create", &[], values::read_flag, "1", "0: the files must exist."),
    done("create_only", &[], values::read_flag, "0", "Only creates the files of a section that reads, or has overwrite. Unlike in fio, the writes that create them, and the sync of create_fsync, are the result of the section."),
    done("overwrite", &[], values::read_flag, "0", "Writes a new file completely before the section."),
    done("invalidate", &[], values::read_flag, "1", "Drops the cached pages of the region after open and at the start of each pass (POSIX_FADV_DONTNEED)."),
    done("fadvise_hint", &[], values::read_hint, "1", "POSIX_FADV_SEQUENTIAL or POSIX_FADV_RANDOM after open."),
    done("pre_read", &[], values::read_flag, "0", "Reads the file before the section; invalidate is then 0."),
    done("unlink", &[], values::read_flag, "0", "Removes the files after the job. Plans remove them in any case."),
    done("unlink_each_loop", &[], values::read_flag, "0", "Removes the files before they are opened again for another pass, and creates them again."),
    done("file_append", &[], values::read_flag, "0", "Starts at the end of files that exist before the job. In a plan, no file exists before the job."),
    // Order.
    done("norandommap", &[], values::read_flag, "0", "Random blocks may repeat. Otherwise each pass has every block once."),
    done("random_distribution", &[], order::read_distribution, "random", "random; zipf:THETA, pareto:H, normal:PERCENT; zoned:ACCESSES/SPACE:… in percent of the accesses and of the file; zoned_abs with sizes instead. All but random imply norandommap."),
    done("rw_sequencer", &[], order::read_sequencer, "sequential", "Operations of runs such as `randread:8`: sequential, or identical, which repeats the place."),
    done("percentage_random", &[], order::read_percentages, "100", "Percentage of random sections at a random place; other operations follow the previous one. A random place may have been reached by a run before."),
    done("randseed", &[], values::read_count, "", "Seed, in addition to the seed of the run."),
    done("rwmixread", &[], values::read_percent, "50", "Percentage of reads if mixed, drawn for each operation."),
    done("rwmixwrite", &[], values::read_percent, "50", "Percentage of writes if mixed."),
    // Content.
    done("zero_buffers", &[], values::read_flag, "0", "Zeros, except for the header of each 4 KiB."),
    done("buffer_compress_percentage", &[], values::read_percent, "0", "Percentage of each 4 KiB that is zero."),
    done("dedupe_percentage", &[], values::read_percent, "0", "Percentage of identical blocks."),
    done("buffer_pattern", &[], content::read_pattern, "", "Bytes that are repeated in each block, except for the header of each 4 KiB: numbers such as 0xdeadface, and text in quotes."),
    done("verify_pattern", &[], content::read_pattern, "", "As buffer_pattern; verify checks the blocks by their headers."),
    done("verify", &[], verify::read_verify, "none", "Checks blocks by the header of fslab, regardless of the checksum: a section that writes is followed by phase NAME-verify, which reads its blocks in the order of the writes, and a section that reads checks each block. With loops, the phase follows the last one, where fio verifies after each. A difference ends the job."),
    done("do_verify", &[], values::read_flag, "1", "0: a section that writes is not followed by phase NAME-verify."),
    done("verify_only", &[], values::read_flag, "0", "The section only reads and checks the blocks that an earlier job wrote with verify."),
    done("verify_backlog", &[], values::read_backlog, "0", "With verify and do_verify: number of written blocks after which they are read and checked, before the next write. Phase NAME-verify reads the blocks that remain. A pass before the last one reads its blocks before the next pass."),
    done("verify_backlog_batch", &[], values::read_backlog, "0", "Number of blocks that are read together, in the order of the writes; 0: verify_backlog. Each block is read once, also if the numbers differ (fio 3.33, traced)."),
    // Durability.
    done("fsync", &[], values::read_count, "0", "fsync before the next operation after this many writes, so not after the last one."),
    done("fdatasync", &[], values::read_count, "0", "As fsync, with fdatasync."),
    done("sync_file_range", &[], syncs::read_range_sync, "", "As fsync, with sync_file_range of the data written since the last one: wait_before, write, wait_after, or several of them, and the number of writes (write,wait_after:16)."),
    done("end_fsync", &[], values::read_flag, "0", "fsync after the last write. Rates include it."),
    done("end_syncfs", &[], values::read_flag, "0", "As end_fsync, with syncfs: all data of the filesystem."),
    done("fsync_on_close", &[], values::read_flag, "0", "As end_fsync."),
    done("sync", &[], values::read_sync, "none", "O_SYNC or O_DSYNC."),
    // Pace.
    done("rate", &[], pace::read_byte_rate, "0", "Bytes per second of each worker, in each direction. Delayed operations catch up. In mixed sections, the rates of reads and writes determine their number."),
    done("rate_iops", &[], pace::read_operation_rate, "0", "Operations per second of each worker, as rate."),
    done("rate_process", &[], pace::read_arrivals, "linear", "Equal (linear) or exponentially distributed (poisson) intervals."),
    done("rate_min", &["ratemin"], pace::read_byte_rate, "0", "Minimum rate of each worker in bytes per second, in each direction, after two seconds. A slower one ends the job with an error."),
    done("rate_iops_min", &[], pace::read_operation_rate, "0", "As rate_min, in operations per second."),
    done("rate_cycle", &[], lists::read_milliseconds, "1000", "Time in milliseconds between two checks of rate_min, each of the rate since the previous one."),
    done("thinktime", &[], values::read_microseconds, "0", "Pause after thinktime_blocks operations, which begins when no operation is in flight."),
    done("thinktime_blocks", &[], values::read_positive, "1", "Operations between pauses."),
    done("thinktime_blocks_type", &[], pace::read_counted, "complete", "Operations between pauses are counted when they complete, or when they are issued."),
    done("thinktime_spin", &[], values::read_microseconds, "0", "Part of a pause during which the worker uses the CPU."),
    done("thinktime_iotime", &[], values::read_seconds, "0", "Time of I/O between pauses, instead of thinktime_blocks or in addition to it."),
    done("flow", &[], values::read_weight, "0", "Weight of each worker. Its share of the operations of all workers with the same flow_id, in sections that start together, is its weight divided by the sum of their weights. A worker that has more waits. One that has ended is left out. 0: no flow."),
    done("flow_id", &[], values::read_count, "0", "Number of the flow."),
    done("flow_sleep", &[], values::read_microseconds, "0", "Time in microseconds between two checks of a worker that waits for its flow; 0: it yields its CPU."),
    done("io_submit_mode", &[], pace::read_submission, "inline", "offload: with rate or rate_iops, for one operation in flight or an engine with a queue. Latencies are always measured from the scheduled start, also with inline."),
    done("nice", &[], values::read_nice, "0", "Change of the nice value of the workers (nice(2))."),
    done("prio", &[], values::read_level, "", "I/O priority 0 to 7 (ioprio_set)."),
    done("prioclass", &[], values::read_class, "", "I/O class: 1 real time, 2 best effort, 3 idle."),
    done("cpus_allowed", &[], lists::read_cpus, "", "CPUs of the workers, such as 0-3,8 (sched_setaffinity)."),
    done("cpumask", &[], lists::read_mask, "", "CPUs of the workers as a bit mask."),
    done("cpus_allowed_policy", &[], lists::read_policy, "shared", "shared: all CPUs for each worker; split: one CPU per worker, in turn."),
    done("numa_cpu_nodes", &[], lists::read_nodes, "", "NUMA nodes whose CPUs the workers use, such as 0-1, or all (sched_setaffinity). Memory is not bound to them."),
    // Logs.
    done("write_bw_log", &[], lists::read_log, "", "Log of rates in KiB/s: NAME_bw.N.log for worker N. Logs are in the current directory and have the form of fio. Only `fslab fio` writes logs. Their memory is limited to 1 GiB per section."),
    done("write_iops_log", &[], lists::read_log, "", "Log of operations per second: NAME_iops.N.log."),
    done("write_lat_log", &[], lists::read_log, "", "Logs of latencies in nanoseconds: NAME_lat.N.log, NAME_slat.N.log, and NAME_clat.N.log."),
    done("write_hist_log", &[], lists::read_log, "", "Log of histograms of the completion latency: NAME_clat_hist.N.log, with one line per interval and direction, and the bins of fio."),
    done("log_hist_msec", &[], lists::read_milliseconds, "0", "Interval of the histograms in milliseconds; 0: the log is empty."),
    done("log_hist_coarseness", &[], lists::read_coarseness, "0", "Joins 2^N bins of the histograms, 0 to 6."),
    done("log_avg_msec", &[], lists::read_milliseconds, "0", "Interval in milliseconds of which log entries are means; 0: one entry per operation."),
    done("log_max_value", &["log_window_value"], lists::read_window, "0", "Latencies of an interval are maxima."),
    done("log_offset", &[], values::read_flag, "0", "Log entries contain the offset."),
    done("per_job_logs", &[], values::read_flag, "1", "One log per worker. 0: all workers append to one log, NAME_bw.log."),
    // Sections.
    done("stonewall", &["wait_for_previous"], values::read_flag, "0", "Starts after all sections before it."),
    done("wait_for", &[], values::read_text, "", "Starts after all workers of this section, which is above it."),
    done("startdelay", &["start_delay"], values::read_seconds, "0", "Earliest start of the section, as the time since the start of the job. After a stonewall, the section starts when the sections before it have ended, and not before this time."),
    done("fill_device", &["fill_fs"], values::read_flag, "0", "Writes to the end of a device, in whose place `map` puts a file: the section writes the file once."),
    done("create_on_open", &[], values::read_flag, "0", "Files are created when they are opened. Requires ioengine=filecreate, which always does so."),
    done("exitall", &[], values::read_flag, "0", "The end of a section stops others, see exit_what. Holds for all sections of the job."),
    done("exit_what", &[], groups::read_exit, "group", "Sections that the end of this one stops: those of its group that run at the same time (group), all that run at the same time (stonewall), or all, also those that have not started (all). Requires exitall."),
    done("new_group", &[], values::read_flag, "0", "Begins a group, as stonewall does, without waiting: groups are separate in outputs, and for exit_what."),
    done("steadystate", &["ss"], steady::read_criterion, "", "Ends the section when the rate of all its workers is steady: iops:LIMIT or bw:LIMIT for the largest difference from the mean of the last steadystate_duration, iops_slope:LIMIT or bw_slope:LIMIT for the slope per interval of a line fitted to them. LIMIT is a percentage of the mean (10%), or operations or bytes per second. If the section ends otherwise, its results have the warning steady-state-not-reached."),
    done("steadystate_duration", &["ss_dur"], values::read_seconds, "0", "Time in which the rate has to be steady."),
    done("steadystate_ramp_time", &["ss_ramp"], values::read_seconds, "0", "Time before, in addition to ramp_time."),
    done("steadystate_check_interval", &["ss_interval"], values::read_seconds, "1000000us", "Interval of which each rate is the mean, at least 100 ms."),
    done("kb_base", &[], values::read_base, "1024", "1024: `k` is 1024 and `kib` is 1000. 1000: the reverse."),

    // No effect.
    none("disable_lat", &[], ALWAYS),
    none("disable_clat", &[], ALWAYS),
    none("disable_slat", &[], ALWAYS),
    none("disable_bw_measurement", &["disable_bw"], ALWAYS),
    none("gtod_reduce", &[], ALWAYS),
    none("gtod_cpu", &[], "the clock is read by the worker"),
    none("clocksource", &[], "the clock is CLOCK_MONOTONIC or the TSC"),
    none("clat_percentiles", &[], OUTPUT),
    none("lat_percentiles", &[], OUTPUT),
    none("slat_percentiles", &[], OUTPUT),
    none("percentile_list", &[], OUTPUT),
    none("significant_figures", &[], "numbers have fixed formats"),
    none("unit_base", &[], "outputs have bytes"),
    none("unified_rw_reporting", &[], "reads and writes are reported separately"),
    none("disk_util", &[], "system activity has the counters of the devices"),
    none("stats", &[], ALWAYS),
    none("eta", &[], "progress is printed on a terminal"),
    none("error_dump", &[], "errors have the offset and the cause"),
    none("block_error_percentiles", &[], "nothing is trimmed"),
    none("mem", &["iomem"], "buffers are aligned pages"),
    none("iomem_align", &["mem_align"], "buffers are aligned pages"),
    none("hugepage-size", &[], "buffers are aligned pages"),
    none("refill_buffers", &[], BLOCKS),
    none("scramble_buffers", &[], BLOCKS),
    none("buffer_compress_chunk", &[], "the unit is 4 KiB"),
    none("dedupe_mode", &[], "identical blocks are equal to one block"),
    none("dedupe_working_set_percentage", &[], "identical blocks are equal to one block"),
    none("dedupe_global", &[], "identical blocks are equal to one block"),
    none("randrepeat", &[], "the seed of the run determines all draws; without `seed`, each run has another one"),
    none("allrandrepeat", &[], "the seed of the run determines all draws"),
    none("random_generator", &[], "orders are permutations in constant memory"),
    none("softrandommap", &[], "orders are permutations in constant memory"),
    none("create_serialize", &[], "files are created before the clock starts"),
    none("unique_filename", &[], "no clients exist"),
    none("exitall_on_error", &[], "an error ends the job"),
    none("bwavgtime", &[], "log_avg_msec is the interval of the logs"),
    none("iopsavgtime", &[], "log_avg_msec is the interval of the logs"),
    none("log_entries", &[], "the memory of the logs is reserved before the section"),
    none("log_compression", &[], "the entries of the logs are not compressed"),
    none("log_compression_cpus", &[], "the entries of the logs are not compressed"),
    none("verify_interval", &["header_interval"], "each 4 KiB has a header"),
    none("verify_offset", &["header_offset"], "the header is at the start of each 4 KiB"),
    none("verify_fatal", &[], "the first difference ends the job"),
    none("verify_dump", &[], "errors have the offset and the cause"),
    none("verify_async", &[], "each worker checks its blocks"),
    none("verify_async_cpus", &[], "each worker checks its blocks"),
    none("verify_state_save", &[], "headers contain the state"),
    none("experimental_verify", &[], "the order of the writes is repeated"),
    none("allow_mounted_write", &[], "no device is opened"),
    none("userspace_reap", &[], "completions are collected by io_getevents"),
    none("force_async", &[], "the kernel decides"),
    none("nonvectored", &[], "the calls have one buffer"),
    none("threads", &[], "it is an option of profiles"),

    // Refused.
    no("log_issue_time", &[], "entries have the time of their end", REMOVE, &["0"]),
    no("log_prio", &[], "all operations of a worker have one priority", REMOVE, &["0"]),
    no("log_store_compressed", &[], "logs are text", REMOVE, &["0"]),
    no("log_unix_epoch", &[], "times in logs start with the section", REMOVE, &["0"]),
    no("log_alternate_epoch", &[], "times in logs start with the section", REMOVE, &["0"]),
    no("log_alternate_epoch_clock_id", &[], "times in logs start with the section", REMOVE, &[]),
    no("stat_type", &[], "filestat and dirstat call stat(2)", REMOVE, &["stat"]),
    no("lockfile", &[], "workers do not lock their files", REMOVE, &["none"]),
    no("opendir", &[], "files are created, not searched", "use filename", &[]),
    no("bs_unaligned", &["blocksize_unaligned"], "block sizes are multiples of the smallest one", "use bssplit", &["0"]),
    no("ignore_error", &[], "an error ends the job", REMOVE, &[]),
    no("continue_on_error", &[], "an error ends the job", REMOVE, &["none"]),
    no("serialize_overlap", &[], "overlapping operations are not delayed", REMOVE, &["0"]),
    no("write_barrier", &[], "there is no such call", "use fsync", &["0"]),
    no("atomic", &[], "atomic writes are not supported", REMOVE, &["0"]),
    no("verify_state_load", &[], VERIFY, VERIFY_HINT, &["0"]),
    no("verify_write_sequence", &[], VERIFY, VERIFY_HINT, &["0"]),
    no("verify_header_seed", &[], VERIFY, VERIFY_HINT, &["0"]),
    no("trim_percentage", &[], TRIM, REMOVE, &["0"]),
    no("trim_verify_zero", &[], TRIM, REMOVE, &["0"]),
    no("trim_backlog", &[], TRIM, REMOVE, &["0"]),
    no("trim_backlog_batch", &[], TRIM, REMOVE, &["0"]),
    no("num_range", &[], TRIM, REMOVE, &["1"]),
    no("write_iolog", &[], "operations are not logged", "use `fslab record`", &[]),
    no("read_iolog", &[], REPLAY, REPLAY_HINT, &[]),
    no("read_iolog_chunked", &[], REPLAY, REPLAY_HINT, &["0"]),
    no("replay_no_stall", &[], REPLAY, REPLAY_HINT, &["0"]),
    no("replay_redirect", &[], REPLAY, REPLAY_HINT, &[]),
    no("replay_scale", &[], REPLAY, REPLAY_HINT, &[]),
    no("replay_align", &[], REPLAY, REPLAY_HINT, &[]),
    no("replay_time_scale", &[], REPLAY, REPLAY_HINT, &["100"]),
    no("replay_skip", &[], REPLAY, REPLAY_HINT, &[]),
    no("merge_blktrace_file", &[], REPLAY, REPLAY_HINT, &[]),
    no("merge_blktrace_scalars", &[], REPLAY, REPLAY_HINT, &[]),
    no("merge_blktrace_iters", &[], REPLAY, REPLAY_HINT, &[]),
    no("exec_prerun", &[], "a job starts no program", "use suite `command`", &[]),
    no("exec_postrun", &[], "a job starts no program", "use suite `command`", &[]),
    no("ioscheduler", &[], "a job changes no device", PLAN, &[]),
    no("zonemode", &[], ZONES, REMOVE, &["none"]),
    no("zonesize", &[], ZONES, REMOVE, &["0"]),
    no("zonecapacity", &[], ZONES, REMOVE, &["0"]),
    no("zonerange", &[], ZONES, REMOVE, &["0"]),
    no("zoneskip", &[], ZONES, REMOVE, &["0"]),
    no("read_beyond_wp", &[], ZONES, REMOVE, &["0"]),
    no("max_open_zones", &[], ZONES, REMOVE, &["0"]),
    no("job_max_open_zones", &[], ZONES, REMOVE, &["0"]),
    no("ignore_zone_limits", &[], ZONES, REMOVE, &["0"]),
    no("zone_reset_threshold", &[], ZONES, REMOVE, &["0"]),
    no("zone_reset_frequency", &[], ZONES, REMOVE, &["0"]),
    no("recover_zbd_write_error", &[], ZONES, REMOVE, &["0"]),
    no("lockmem", &[], "memory is not locked", MEMORY, &["0"]),
    no("cmdprio_percentage", &[], PRIORITY, PRIORITY_HINT, &["0"]),
    no("cmdprio_class", &[], PRIORITY, PRIORITY_HINT, &[]),
    no("cmdprio", &[], PRIORITY, PRIORITY_HINT, &[]),
    no("cmdprio_bssplit", &[], PRIORITY, PRIORITY_HINT, &[]),
    no("cmdprio_hint", &[], PRIORITY, PRIORITY_HINT, &[]),
    no("priohint", &[], PRIORITY, PRIORITY_HINT, &["0"]),
    no("hipri_percentage", &[], "all operations are polled, or none", "use hipri", &["100"]),
    no("sqthread_poll_cpu", &[], "the kernel selects the CPU of the polling thread", REMOVE, &[]),
    no("cmd_type", &[], "commands of devices bypass the filesystem", REMOVE, &[]),
    no("thp", &[], "mappings have the pages of the file", REMOVE, &["0"]),
    no("fdp", &[], "data placement is an option of devices", REMOVE, &["0"]),
    no("fdp_pli", &[], "data placement is an option of devices", REMOVE, &[]),
    no("dataplacement", &[], "data placement is an option of devices", REMOVE, &["none"]),
    no("plids", &[], "data placement is an option of devices", REMOVE, &[]),
    no("pi_act", &[], "protection information is an option of devices", REMOVE, &[]),
    no("pi_chk", &[], "protection information is an option of devices", REMOVE, &[]),
    no("sprandom", &[], "devices are not preconditioned", REMOVE, &["0"]),
    no("rate_ignore_thinktime", &[], "rates and pauses exclude each other", REMOVE, &["0"]),
    no("max_latency", &[], "a slow operation is not an error", "read the latencies of the result", &["0"]),
    no("latency_target", &[], LATENCY, LATENCY_HINT, &["0"]),
    no("latency_window", &[], LATENCY, LATENCY_HINT, &["0"]),
    no("latency_percentile", &[], LATENCY, LATENCY_HINT, &["100"]),
    no("latency_run", &[], LATENCY, LATENCY_HINT, &["0"]),
    no("write_hint", &[], "files have no write hints", REMOVE, &["none"]),
    no("numa_mem_policy", &[], NUMA, NUMA_HINT, &[]),
    no("profile", &[], "profiles are built into fio", "write their options into a job", &[]),
    no("cgroup", &[], CGROUP, MEMORY, &[]),
    no("cgroup_weight", &[], CGROUP, MEMORY, &[]),
    no("cgroup_nodelete", &[], CGROUP, MEMORY, &["0"]),
    no("uid", &[], "a job does not change the user", "start fslab as that user", &[]),
    no("gid", &[], "a job does not change the group", "start fslab with that group", &[]),
    no("flow_watermark", &[], "fio 3.33 does not have it either, and a flow needs none", REMOVE, &[]),
];
