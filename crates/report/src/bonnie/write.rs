//! Formatter of bonnie++ records.

use model::{Bytes, Nanos};

use super::{Figure, Format, IO_PHASES, Largest, PhaseFigures, Record, SEEKS};

/// Formats a record as a line without line end, in its layout. Records of 1.03 are written in the
/// layout of 1.96.
pub fn write(record: &Record) -> String {
    let number = |count: Option<u64>| count.map_or(String::new(), |count| count.to_string());
    let text = |text: &str| clean(text);
    let format = match record.format {
        Format::V103 | Format::V196 => Format::V196,
        Format::V197 => Format::V197,
        Format::V198 => Format::V198,
    };
    let mut fields = vec![
        format.name().to_owned(),
        text(&record.version),
        text(&record.name),
        number(record.concurrency),
        text(&record.seed),
        record.file.map_or(String::new(), file_size),
        number(record.chunk.map(|chunk| chunk.0)),
    ];
    if format == Format::V198 {
        fields.extend([number(record.seeks), number(record.seekers)]);
    }
    let (io, files) = record.phases.split_at(IO_PHASES);
    io.iter().enumerate().for_each(|(at, phase)| pair(&mut fields, phase, at == SEEKS));
    fields.extend([
        number(record.files),
        match record.largest {
            None => String::new(),
            Some(Largest::Bytes(bytes)) => bytes.to_string(),
            Some(Largest::Link) => "link".into(),
            Some(Largest::Symlink) => "symlink".into(),
        },
        number(record.smallest),
        number(record.directories),
        number(record.file_chunk),
    ]);
    files.iter().for_each(|phase| pair(&mut fields, phase, false));
    let times = record.phases.iter().map(|phase| phase.latency.map_or(String::new(), latency));
    fields.extend(times);
    fields.join(",")
}

/// Names of the fields of a record in the layout of 1.98, without line end.
pub fn header() -> String {
    let mut names: Vec<String> = [
        "format_version",
        "bonnie_version",
        "name",
        "concurrency",
        "seed",
        "file_size",
        "io_chunk_size",
        "seek_count",
        "seek_procs",
    ]
    .map(str::to_owned)
    .into();
    let (io, files) = FIELDS.split_at(IO_PHASES);
    let pairs = |names: &mut Vec<String>, fields: &[&str]| {
        names.extend(fields.iter().flat_map(|name| [(*name).to_owned(), format!("{name}_cpu")]));
    };
    pairs(&mut names, io);
    names.extend(
        ["num_files", "max_size", "min_size", "num_dirs", "file_chunk_size"].map(Into::into),
    );
    pairs(&mut names, files);
    names.extend(FIELDS.iter().map(|name| format!("{name}_latency")));
    names.join(",")
}

/// Names of the phases in a header, in the order of the fields.
const FIELDS: [&str; 12] = [
    "putc",
    "put_block",
    "rewrite",
    "getc",
    "get_block",
    "seeks",
    "seq_create",
    "seq_stat",
    "seq_del",
    "ran_create",
    "ran_stat",
    "ran_del",
];

/// Appends rate and CPU %. Both are truncated to integers, except the rate of seeks, which is
/// rounded, below 1000 per second to one decimal place.
fn pair(fields: &mut Vec<String>, phase: &PhaseFigures, seeks: bool) {
    fields.push(match phase.rate {
        Figure::Empty => String::new(),
        Figure::Short => "+++++".into(),
        Figure::Known(rate) if seeks && rate < 1000.0 => format!("{rate:.1}"),
        Figure::Known(rate) if seeks => format!("{rate:.0}"),
        Figure::Known(rate) => format!("{:.0}", rate.trunc()),
    });
    fields.push(match phase.cpu {
        Figure::Empty => String::new(),
        Figure::Short => "+++".into(),
        Figure::Known(percent) => format!("{:.0}", percent.trunc()),
    });
}

/// Time in microseconds below 0.1 s, in milliseconds below 100 s, otherwise in seconds; truncated.
pub(super) fn latency(time: Nanos) -> String {
    let micros = time.0 / 1_000;
    match micros {
        0..=99_999 => format!("{micros}us"),
        100_000..=99_999_999 => format!("{}ms", micros / 1_000),
        _ => format!("{}s", micros / 1_000_000),
    }
}

/// Size in GiB if exact, otherwise in MiB, rounded up.
pub(super) fn file_size(size: Bytes) -> String {
    let whole =
        |unit: Bytes| (size.0 > 0 && size.0.is_multiple_of(unit.0)).then(|| size.0 / unit.0);
    match whole(Bytes::gib(1)) {
        Some(gib) => format!("{gib}G"),
        None => format!("{}M", size.0.div_ceil(Bytes::mib(1).0)),
    }
}

/// Text with a dash for each comma, control character, and white space.
fn clean(text: &str) -> String {
    text.replace(|c: char| c == ',' || c.is_control() || c.is_whitespace(), "-")
}
