//! Values of options: sizes, times, lists, and words. Each reader returns the canonical text, which
//! it also accepts.

use model::phase::VerifyBacklog;

/// Unit base of sizes in a section (option `kb_base`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// `k` is 1024 and `kib` is 1000, the default of fio.
    Binary,
    /// `k` is 1000 and `kib` is 1024.
    Decimal,
}

/// Reader of a value: canonical text, or the reason why the value is invalid.
pub type Read = fn(&str, Base) -> Result<String, String>;

/// Largest size and number of a job: 2^60, so that sums of some of them do not overflow.
pub(super) const MOST: u64 = 1 << 60;

/// Size in bytes.
pub(super) fn size(text: &str, base: Base) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let bad = || format!("`{text}` is not a size");
    let (digits, radix) = match lower.strip_prefix("0x") {
        Some(rest) => (rest, 16),
        None => (lower.as_str(), 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let (number, unit) = digits.split_at(end);
    let number = u64::from_str_radix(number, radix).map_err(|_| match number {
        "" => bad(),
        _ => format!("`{text}` is too large"),
    })?;
    let (letter, own) = match unit.trim() {
        "" | "b" => return limited(Some(number), text),
        unit => match unit.strip_suffix("ib") {
            Some(letter) => (letter, false),
            None => (unit.strip_suffix('b').unwrap_or(unit), true),
        },
    };
    let power = ["k", "m", "g", "t", "p"].iter().position(|known| *known == letter);
    let power = u32::try_from(power.ok_or_else(bad)? + 1).unwrap_or(0);
    let factor: u64 = if own == (base == Base::Binary) { 1024 } else { 1000 };
    limited(number.checked_mul(factor.pow(power)), text)
}

fn limited(number: Option<u64>, text: &str) -> Result<u64, String> {
    number.filter(|number| *number <= MOST).ok_or_else(|| format!("`{text}` is too large"))
}

/// Time in microseconds; numbers without a unit are multiplied by `unit`.
pub(super) fn time(text: &str, unit: u64) -> Result<u64, String> {
    let lower = text.trim().to_ascii_lowercase();
    let end = lower.find(|c: char| !c.is_ascii_digit()).unwrap_or(lower.len());
    let (number, name) = lower.split_at(end);
    let bad = || format!("`{text}` is not a time; use a number and d, h, m, s, ms, or us");
    let number: u64 = number.parse().map_err(|_| bad())?;
    let factor = match name.trim() {
        "" => unit,
        "us" | "usec" => 1,
        "ms" | "msec" => 1000,
        "s" | "sec" => 1_000_000,
        "m" | "min" => 60_000_000,
        "h" | "hour" => 3_600_000_000,
        "d" | "day" => 86_400_000_000,
        _ => return Err(bad()),
    };
    let most = |time: &u64| *time <= 1 << 50;
    number.checked_mul(factor).filter(most).ok_or_else(|| format!("`{text}` is too long"))
}

pub(super) fn read_size(text: &str, base: Base) -> Result<String, String> {
    if text.trim().ends_with('%') {
        return Err("a percentage of a file requires an existing file; use a size".into());
    }
    size(text, base).map(|size| size.to_string())
}

/// Size greater than 0.
pub(super) fn read_file_size(text: &str, base: Base) -> Result<String, String> {
    if text.contains('-') {
        return Err("random file sizes are not supported; use one size".into());
    }
    match read_size(text, base)?.as_str() {
        "0" => Err("the size is 0; use at least one block".into()),
        size => Ok(size.to_owned()),
    }
}

/// Size of a section, or percentage of its files.
pub(super) fn read_section_size(text: &str, base: Base) -> Result<String, String> {
    match text.trim().strip_suffix('%') {
        None => read_file_size(text, base),
        Some(percent) => Ok(number(percent, 1, 100)? + "%"),
    }
}

/// Amount of work, or percentage of the files.
pub(super) fn read_amount(text: &str, base: Base) -> Result<String, String> {
    match text.trim().strip_suffix('%') {
        None => read_size(text, base),
        Some(percent) => Ok(number(percent, 1, 100)? + "%"),
    }
}

/// Size, or percentage of the file.
pub(super) fn read_offset(text: &str, base: Base) -> Result<String, String> {
    match text.trim().strip_suffix('%') {
        None => read_size(text, base),
        Some(percent) => match percent.trim().parse::<u64>() {
            Ok(percent @ 0..=100) => Ok(format!("{percent}%")),
            _ => Err(format!("`{text}` is not a percentage")),
        },
    }
}

/// Up to three values, for reads, writes, and trims: an empty place keeps `default`, and missing
/// ones repeat the last. One value if the first two are equal, because nothing is trimmed.
pub(super) fn directions(
    text: &str,
    default: &str,
    read: impl Fn(&str) -> Result<String, String>,
) -> Result<String, String> {
    let mut all = Vec::new();
    for part in text.split(',').map(str::trim) {
        all.push(if part.is_empty() { default.to_owned() } else { read(part)? });
    }
    match &all[..] {
        [own] => Ok(own.clone()),
        [one, two] | [one, two, _] if one == two => Ok(one.clone()),
        [one, two] | [one, two, _] => Ok(format!("{one},{two}")),
        _ => Err(format!("`{text}` has more than three values (read, write, trim)")),
    }
}

pub(super) fn read_block_sizes(text: &str, base: Base) -> Result<String, String> {
    directions(text, "4096", |part| match size(part, base)? {
        0 => Err("the block size is 0".into()),
        size if size > 1 << 30 => Err(format!("`{part}` is larger than 1 GiB")),
        size => Ok(size.to_string()),
    })
}

/// Alignment of random offsets; 0: the block size.
pub(super) fn read_alignment(text: &str, base: Base) -> Result<String, String> {
    directions(text, "0", |part| match size(part, base)? {
        size if size > 1 << 30 => Err(format!("`{part}` is larger than 1 GiB")),
        size => Ok(size.to_string()),
    })
}

pub(super) fn read_block_range(text: &str, base: Base) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok(String::new());
    }
    let range = |part: &str| {
        let Some((least, most)) = part.split_once('-').or_else(|| part.split_once(':')) else {
            return Err(format!("`{part}` is not a range such as 4k-64k"));
        };
        let (least, most) = (size(least, base)?, size(most, base)?);
        let (least, most) = (least.min(most), least.max(most));
        if least == 0 || most > 1 << 30 {
            return Err(format!("`{part}` is not a range of block sizes up to 1 GiB"));
        }
        if !most.is_multiple_of(least) || most / least > 4096 {
            return Err(format!(
                "in `{part}` the largest size is not a multiple of the smallest one, at most 4096 \
                 of them; change the range"
            ));
        }
        Ok(format!("{least}-{most}"))
    };
    directions(text, "4096-4096", range)
}

/// Weighted block sizes: `4k/60:64k/40`. Missing percentages are split evenly.
pub(super) fn read_split(text: &str, base: Base) -> Result<String, String> {
    if text.trim().is_empty() {
        return Ok(String::new());
    }
    let split = |part: &str| {
        let mut sizes: Vec<(u64, Option<u32>)> = Vec::new();
        for entry in part.split(':').map(str::trim) {
            let (own, percent) = match entry.split_once('/') {
                Some((own, percent)) => (own, Some(percent.trim()).filter(|own| !own.is_empty())),
                None => (entry, None),
            };
            let percent = percent
                .map(|percent| percent.parse().map_err(|_| format!("`{entry}` has no percentage")))
                .transpose()?;
            match size(own, base)? {
                0 => return Err("the block size is 0".into()),
                size if size > 1 << 30 => return Err(format!("`{own}` is larger than 1 GiB")),
                size => sizes.push((size, percent)),
            }
        }
        let given: u64 = sizes.iter().filter_map(|(_, own)| own.map(u64::from)).sum();
        let open = sizes.iter().filter(|(_, own)| own.is_none()).count() as u64;
        if sizes.len() > 1000 {
            return Err("more than 1000 block sizes".into());
        }
        if given > 100 || (open == 0 && given != 100) {
            return Err(format!("the percentages of `{part}` are {given} in total; use 100"));
        }
        let share = (100 - given).checked_div(open).unwrap_or(0);
        let part =
            |(size, own): &(u64, Option<u32>)| format!("{size}/{}", own.map_or(share, u64::from));
        Ok(sizes.iter().map(part).collect::<Vec<_>>().join(":"))
    };
    directions(text, "4096/100", split)
}

pub(super) fn read_seconds(text: &str, _: Base) -> Result<String, String> {
    time(text, 1_000_000).map(microseconds)
}

pub(super) fn read_microseconds(text: &str, _: Base) -> Result<String, String> {
    time(text, 1).map(microseconds)
}

fn microseconds(time: u64) -> String {
    if time == 0 { "0".into() } else { format!("{time}us") }
}

/// Time in microseconds of canonical text.
pub(super) fn microseconds_of(canonical: &str) -> u64 {
    canonical.trim_end_matches("us").parse().unwrap_or(0)
}

pub(super) fn read_flag(text: &str, _: Base) -> Result<String, String> {
    match text.trim() {
        "" => Ok("1".into()),
        text => match text.parse::<u64>() {
            Ok(0) => Ok("0".into()),
            Ok(_) => Ok("1".into()),
            Err(_) => Err(format!("`{text}` is not 0 or 1")),
        },
    }
}

/// Flag that needs a value, such as `direct=1`.
pub(super) fn read_switch(text: &str, base: Base) -> Result<String, String> {
    if text.trim().is_empty() {
        Err("a value is missing; use 1".into())
    } else {
        read_flag(text, base)
    }
}

pub(super) fn read_text(text: &str, _: Base) -> Result<String, String> {
    Ok(text.trim().to_owned())
}

pub(super) fn number(text: &str, least: u64, most: u64) -> Result<String, String> {
    let parsed = match text.trim().strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.trim().parse().ok(),
    };
    match parsed {
        Some(number) if (least..=most).contains(&number) => Ok(number.to_string()),
        _ => Err(format!("`{text}` is not a number from {least} to {most}")),
    }
}

pub(super) fn read_percent(text: &str, _: Base) -> Result<String, String> {
    number(text, 0, 100)
}

pub(super) fn read_depth(text: &str, _: Base) -> Result<String, String> {
    number(text, 1, 32_768)
}

/// Number of operations in flight; 0: as many as fit in the queue.
pub(super) fn read_level_of_queue(text: &str, _: Base) -> Result<String, String> {
    number(text, 0, 32_768)
}

/// Completions to wait for.
pub(super) fn read_completions(text: &str, base: Base) -> Result<String, String> {
    if text.trim() == "0" {
        return Err("0 polls after each submission, so that one operation is in flight; use \
                    iodepth=1"
            .into());
    }
    read_depth(text, base)
}

/// Change of the nice value.
pub(super) fn read_nice(text: &str, _: Base) -> Result<String, String> {
    match text.trim().parse::<i8>() {
        Ok(change @ -20..=20) => Ok(change.to_string()),
        _ => Err(format!("`{text}` is not a number from -20 to 20")),
    }
}

pub(super) fn read_jobs(text: &str, _: Base) -> Result<String, String> {
    number(text, 1, 1024)
}

pub(super) fn read_positive(text: &str, _: Base) -> Result<String, String> {
    number(text, 1, MOST)
}

pub(super) fn read_count(text: &str, _: Base) -> Result<String, String> {
    number(text, 0, MOST)
}

/// Number of blocks of a backlog.
pub(super) fn read_backlog(text: &str, _: Base) -> Result<String, String> {
    number(text, 0, u64::from(VerifyBacklog::LARGEST))
}

/// Weight in a flow.
pub(super) fn read_weight(text: &str, _: Base) -> Result<String, String> {
    number(text, 0, 1000)
}

pub(super) fn read_level(text: &str, _: Base) -> Result<String, String> {
    number(text, 0, 7)
}

pub(super) fn read_class(text: &str, _: Base) -> Result<String, String> {
    number(text, 0, 3)
}

/// Word of a list, each with its canonical form.
pub(super) fn word(text: &str, known: &[(&str, &str)]) -> Result<String, String> {
    let text = text.trim();
    let found = known.iter().find(|(word, _)| *word == text).map(|(_, own)| (*own).to_owned());
    found.ok_or_else(|| {
        let near = model::suggest::nearest(text, known.iter().map(|(word, _)| *word));
        match near {
            Some(near) => format!("`{text}` is not supported; did you mean `{near}`?"),
            None => {
                let mut words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
                words.dedup();
                format!("`{text}` is not supported; use one of {}", words.join(", "))
            }
        }
    })
}

/// I/O engines: name in fio, canonical name, and system calls.
pub(super) const ENGINES: [(&str, &str, &str); 18] = [
    ("sync", "sync", "read, write, lseek"),
    ("psync", "psync", "pread, pwrite"),
    ("pvsync", "pvsync", "preadv2, pwritev2 without flags"),
    ("pvsync2", "pvsync2", "preadv2, pwritev2"),
    ("libaio", "libaio", "io_submit, io_getevents"),
    ("linuxaio", "libaio", "io_submit, io_getevents"),
    ("aio", "libaio", "io_submit, io_getevents"),
    ("io_uring", "io_uring", "io_uring_enter"),
    ("mmap", "mmap", "loads and stores on a mapping"),
    ("filecreate", "filecreate", "open of each file with O_CREAT"),
    ("filestat", "filestat", "stat of each file"),
    ("filedelete", "filedelete", "unlink of each file"),
    ("dircreate", "dircreate", "mkdir of each name"),
    ("dirstat", "dirstat", "stat of each directory"),
    ("dirdelete", "dirdelete", "rmdir of each directory"),
    ("falloc", "falloc", "fallocate; for reads with FALLOC_FL_KEEP_SIZE"),
    ("ftruncate", "ftruncate", "ftruncate to the offset"),
    ("null", "null", "none"),
];

/// I/O engines of fio that are not supported, with the reason.
const OTHER_ENGINES: [(&[&str], &str); 8] = [
    (&["posixaio", "solarisaio", "windowsaio", "vsync"], "use io_uring, libaio, or psync"),
    (&["splice"], "use suite `stream` with io_engine `splice`"),
    (&["io_uring_cmd", "sg", "libzbc", "cmdprio"], "it bypasses the filesystem"),
    (
        &[
            "net",
            "netsplice",
            "rdma",
            "rados",
            "rbd",
            "http",
            "gfapi",
            "gfapi_async",
            "libhdfs",
            "nfs",
            "libiscsi",
            "nbd",
        ],
        "it accesses no local filesystem",
    ),
    (
        &[
            "libpmem",
            "dev-dax",
            "pmemblk",
            "mtd",
            "cuda",
            "libcufile",
            "spdk",
            "xnvme",
            "libblkio",
            "nvme",
        ],
        "it needs special hardware",
    ),
    (&["e4defrag"], "it moves blocks of ext4 files"),
    (&["cpuio", "exec"], "it does no I/O; use suite `command` for programs"),
    (&["external"], "it loads foreign code"),
];

pub(super) fn read_engine(text: &str, _: Base) -> Result<String, String> {
    let name = text.trim();
    if let Some((_, own, _)) = ENGINES.iter().find(|(known, ..)| *known == name) {
        return Ok((*own).to_owned());
    }
    let other = OTHER_ENGINES.iter().find(|(names, _)| {
        names.contains(&name) || (name.starts_with("external:") && names == &["external"])
    });
    Err(match other {
        Some((_, hint)) => format!("I/O engine `{name}` is not supported: {hint}"),
        None => {
            let known = ENGINES.iter().map(|(name, ..)| *name);
            match model::suggest::nearest(name, known) {
                Some(near) => format!("unknown I/O engine `{name}`; did you mean `{near}`?"),
                None => format!("unknown I/O engine `{name}`; use psync, libaio, or io_uring"),
            }
        }
    })
}

pub(super) fn read_fallocate(text: &str, _: Base) -> Result<String, String> {
    let known = [
        ("native", "native"),
        ("none", "none"),
        ("posix", "posix"),
        ("keep", "keep"),
        ("truncate", "truncate"),
        ("0", "none"),
        ("1", "posix"),
    ];
    word(text, &known)
}

pub(super) fn read_hint(text: &str, _: Base) -> Result<String, String> {
    let known = [
        ("1", "1"),
        ("", "1"),
        ("0", "0"),
        ("none", "0"),
        ("sequential", "sequential"),
        ("random", "random"),
    ];
    word(text, &known)
}

pub(super) fn read_sync(text: &str, _: Base) -> Result<String, String> {
    let known =
        [("0", "none"), ("none", "none"), ("1", "sync"), ("sync", "sync"), ("dsync", "dsync")];
    word(text, &known)
}

pub(super) fn read_base(text: &str, _: Base) -> Result<String, String> {
    word(text, &[("1024", "1024"), ("1000", "1000")])
}
