//! Published data sets: source, conditions, and data quality.

use super::{Extras, Published, bonnie, figures, iozone, tasks};

/// Published data sets, oldest first.
pub const PUBLISHED: &[Published] = &[
    Published {
        name: "tasks-2004",
        suite: "tasks",
        article: "Benchmarking Filesystems",
        author: "Justin Piszcz",
        source: "Linux Gazette, 2004; numbers as reprinted in Part II of 2006",
        machine: "Dell Optiplex GX1, one Pentium III at 500 MHz, 768 MB of memory; Western Digital \
                  disk of 250 GB at a Promise ATA/100 controller",
        kernel: "Linux 2.4.26, Slackware 9.1, tools of the filesystems built by the author",
        method: "mkfs with its defaults on one partition; each task three times, the mean printed; \
                 elapsed seconds and CPU %; the method of this edition is not described further",
        summary: "means of 3 runs, no intervals",
        quality_notes: &[
            "CPU of 107.33 % (ext3) and 109.66 % (jfs) at task 002, on a machine with one CPU: the \
             task takes 0.02 s, so this is a rounding error of the clock",
            "CPU values are means of three integers, truncated to two decimals",
            "tasks 007 to 012 and 020 use the tarball of Linux 2.4.26, another than that \
             of the edition of 2006; disk, controller, distribution, and tools differ too",
            "only the file of 1 GB is known to exceed the memory; no reboot or cache drop is \
             stated, so the other tasks presumably ran in the cache",
        ],
        conditions: &[
            ("machine", "Dell Optiplex GX1, one Pentium III at 500 MHz"),
            ("memory", "768 MB"),
            ("disk", "Western Digital, 250 GB, at a Promise ATA/100 controller"),
            ("kernel", "Linux 2.4.26, Slackware 9.1"),
            ("options", "mkfs with its defaults; mount options not stated"),
            ("caches", "not stated; presumably most tasks ran in the cache"),
            ("sizes", "10,000 names, tarball of Linux 2.4.26, file of 1 GB"),
            ("timing", "timing method and inclusion of the final sync not stated"),
            ("repetitions", "3, the mean printed, no deviation"),
            ("program", "scripts of the author"),
        ],
        data: include_str!("../../published/tasks-2004.csv"),
        tables: tasks::tables,
        configurations: |_| Vec::new(),
        extras: |set| Extras::of(figures::tasks(set)),
    },
    Published {
        name: "tasks-2006",
        suite: "tasks",
        article: "Benchmarking Filesystems Part II",
        author: "Justin Piszcz",
        source: "Linux Gazette no. 122, January 2006",
        machine: "Dell Optiplex GX1, one Pentium III at 500 MHz, 768 MB of memory; Seagate disk of \
                  400 GB, ATA/100, 7200 rpm, at a Promise ATA/133 TX2 controller",
        kernel: "Linux 2.6.14.4 with the Reiser4 patch, Debian Etch",
        method: "mkfs with its defaults on one partition of 372.6 GiB; each task three times, the \
                 mean printed; sync and a pause of 10 s between runs; elapsed seconds and CPU %; \
                 mount options, how the time was taken, and whether it includes the sync are not \
                 stated",
        summary: "means of 3 runs, no intervals",
        quality_notes: &[
            "CPU values are means of three integers, truncated to two decimals",
            "tasks 007 to 012 and 020 use the tarball of Linux 2.6.14.4, another than that \
             of the edition of 2004; disk, controller, distribution, and tools differ too, so the \
             editions cannot be compared task by task",
            "only the file of 1 GB is known to exceed the memory; no reboot or cache drop is \
             stated, so the other tasks presumably ran in the cache",
            "the article announces the total as a graph only; the totals here are sums of its \
             printed tables",
        ],
        conditions: &[
            ("machine", "Dell Optiplex GX1, one Pentium III at 500 MHz"),
            ("memory", "768 MB"),
            ("disk", "Seagate, 400 GB, ATA/100, 7200 rpm, at a Promise ATA/133 TX2 controller"),
            ("kernel", "Linux 2.6.14.4 with the Reiser4 patch, Debian Etch"),
            ("options", "mkfs with its defaults; mount options not stated"),
            ("caches", "not stated; presumably most tasks ran in the cache"),
            ("sizes", "10,000 names, tarball of Linux 2.6.14.4, file of 1 GB"),
            ("timing", "timing method and inclusion of the final sync not stated"),
            ("repetitions", "3, the mean printed, no deviation"),
            ("program", "scripts of the author"),
        ],
        data: include_str!("../../published/tasks-2006.csv"),
        tables: tasks::tables,
        configurations: |_| Vec::new(),
        extras: |set| Extras::of(figures::tasks(set)),
    },
    Published {
        name: "iozone-2009",
        suite: "iozone",
        article: "IOzone Performance Exploration, Part 2: The Rest of the Crowd (Almost)",
        author: "Jeff Layton",
        source: "Linux Magazine, 2009",
        machine: "AMD Phenom II X4 920, 8 GB of memory; one Seagate ST3500641AS-RK disk",
        kernel: "Linux 2.6.30 with the Reiser4 patches; distribution not stated",
        method: "IOzone, one file of 16 GiB, records of 1, 4, 8, and 16 MiB, one process; mkfs and \
                 mount with their defaults for the most part; ten runs of each test; whether the \
                 filesystem was created again or caches were dropped between them is not stated",
        summary: "means of 10 runs with deviations",
        quality_notes: &[
            "the article does not name the second number of a cell; it is taken to be the standard \
             deviation of the ten runs, by its size and because tables 9 to 12 repeat only \
             the first",
            "intervals assume that the ten runs are independent and close to normal",
            "record rewrite writes one record in place: its rates of GiB/s are those of memory, \
             not of the disk",
            "tables 9 to 12 repeat means of tables 1 to 8; where they differ, tables 1 to 8 are \
             drawn",
            "the article prints KB/s; those of IOzone are 1,024 bytes per second",
        ],
        conditions: &[
            ("machine", "AMD Phenom II X4 920"),
            ("memory", "8 GB, DDR2-800"),
            ("disk", "one Seagate ST3500641AS-RK"),
            ("kernel", "Linux 2.6.30 with the Reiser4 patches"),
            ("options", "defaults for the most part; ext3 and ext4 mounted with data=ordered"),
            ("caches", "not stated; the file is twice the memory"),
            ("sizes", "one file of 16 GiB, records of 1, 4, 8, and 16 MiB"),
            ("timing", "flush and close are not part of the times; no direct I/O"),
            ("repetitions", "10, mean and deviation printed"),
            ("program", "IOzone, version not stated"),
        ],
        data: include_str!("../../published/iozone-2009.csv"),
        tables: iozone::tables,
        configurations: |_| Vec::new(),
        extras: iozone::extras,
    },
    Published {
        name: "bonnie-2012",
        suite: "bonnie",
        article: "bonnie++ on ext4, btrfs, and xfs with Linux 3.4",
        author: "author not named in the copy",
        source: "article without a title in the copy, May 2012 by its kernel and its seeds; the \
                 numbers are its CSV records, which agree with its text tables in all 396 numbers",
        machine: "Intel Xeon X3220 at 2.40 GHz; partition of 100 GB on a WDC WD7500AACS disk, \
                  AHCI; memory not stated, at most 4 GB by the rule of the program",
        kernel: "Linux 3.4.0, x86_64, built 21 May 2012",
        method: "bonnie++ 1.96 with -s 8g -n 512 (8 GiB in one data set; 524,288 empty files in \
                 one directory), concurrency 1; one run of each configuration, rebooted between \
                 them; every printed mount has noatime",
        summary: "one record each, no intervals",
        quality_notes: &[
            "one run of each configuration and no deviation: differences of a few percent cannot \
             be distinguished from noise; among the four btrfs runs with the default leaf size \
             put-block differs by 9.5 %, seq-create by 41 %",
            "the runs with larger leaves were made about a week after the others, by their seeds",
            "the seed of a record is the process id XOR the start time, not a time: read as one, \
             runs would overlap and the converted btrfs would precede the ext4 before it",
            "the records name only the machine (colo7): the configurations are those of the \
             article's headings",
            "how the filesystem was mounted after the boot is not printed for the conversion nor \
             for the rerun after deleting; which ext4 was converted, default or tuned, is not \
             stated either",
            "-f was not given, so putc and getc moved a part of the file of unknown size; they \
             count calls of one byte and do not represent a disk",
            "the article calls stat a read; bonnie++ only calls stat on empty files",
            "get-block of 8 GiB exceeds the memory if the rule of the program was followed, \
             which the records do not show",
            "rates of unlike runs coincide in putc (468 and 469, twice each) and getc (3135 \
             twice); putc is CPU-bound, getc may be chance",
        ],
        conditions: &[
            ("machine", "Intel Xeon X3220 at 2.40 GHz"),
            ("memory", "not stated; at most 4 GB by the rule of the program"),
            ("disk", "partition of 100 GB on a WDC WD7500AACS"),
            ("kernel", "Linux 3.4.0"),
            ("options", "those of each configuration; every printed mount has noatime"),
            ("caches", "reboot between runs; unchanged between phases"),
            ("sizes", "8 GiB in one data set, 524,288 empty files in one directory"),
            ("timing", "fsync and close are part of the times"),
            ("repetitions", "1, no deviation"),
            ("program", "bonnie++ 1.96"),
        ],
        data: include_str!("../../published/bonnie-2012.csv"),
        tables: bonnie::tables,
        configurations: bonnie::configurations,
        extras: |set| Extras::of(figures::bonnie(set)),
    },
];
