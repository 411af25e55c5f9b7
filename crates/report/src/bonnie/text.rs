//! Tables of a record in the text layout of bonnie++ 2.00.
//!
//! Rates of the file phases are rates. bonnie++ 2.00 prints the number of files there.

use model::Nanos;

use super::{Figure, IO_PHASES, Largest, PhaseFigures, Record, SEEKS, write::latency};

/// Width of the first column, with the name and the sizes.
const FIRST: usize = 19;

/// Characters from the left edge to the end of the first latency, and of each other latency.
const FIRST_LATENCY: usize = FIRST + 1;
const LATENCY: usize = 10;

/// Heads of the phases on the large file and of the file phases.
const IO_HEADS: [&str; 2] = [
    "------Sequential Output------ --Sequential Input- --Random-",
    "-Per Chr- --Block-- -Rewrite- -Per Chr- --Block-- --Seeks--",
];
const FILE_HEADS: [&str; 2] = [
    "------Sequential Create------ --------Random Create--------",
    "-Create-- --Read--- -Delete-- -Create-- --Read--- -Delete--",
];

/// Formats a record as one table for the large file and one for the file phases. A table without
/// phases is omitted.
pub fn text(record: &Record) -> String {
    let mut text = String::new();
    let (io, files) = record.phases.split_at(IO_PHASES);
    if record.file.is_some() {
        table(&mut text, record, io, IO_HEADS, "", "Name:Size etc", &size(record));
    }
    if record.files.is_some() {
        let name = &record.name;
        table(&mut text, record, files, FILE_HEADS, name, "files:max:min", &counts(record));
    }
    text
}

fn table(
    text: &mut String,
    record: &Record,
    phases: &[PhaseFigures],
    heads: [&str; 2],
    name: &str,
    sizes: &str,
    row: &str,
) {
    let version = format!("Version {}", record.version);
    let first = [version.as_str(), name];
    for (first, head) in first.into_iter().zip(heads) {
        text.push_str(&format!("{first:<FIRST$} {head}\n"));
    }
    let columns = "  /sec %CP".repeat(phases.len());
    text.push_str(&format!("{sizes:<FIRST$}{columns}\n"));
    let is_io = name.is_empty();
    let figures = phases.iter().enumerate().map(|(at, phase)| {
        let rate = match phase.rate {
            Figure::Empty => String::new(),
            Figure::Short => "+++++".into(),
            Figure::Known(rate) if is_io && at < SEEKS => throughput(rate),
            Figure::Known(rate) if is_io && rate < 1000.0 => format!("{rate:.1}"),
            Figure::Known(rate) if is_io => format!("{rate:.0}"),
            Figure::Known(rate) => format!("{:.0}", rate.trunc()),
        };
        let cpu = match phase.cpu {
            Figure::Empty => String::new(),
            Figure::Short => "+++".into(),
            Figure::Known(percent) => format!("{:.0}", percent.trunc()),
        };
        format!(" {rate:>5} {cpu:>3}")
    });
    line(text, &(row.to_owned() + &figures.collect::<String>()));
    let time =
        |phase: &PhaseFigures| phase.latency.map_or(String::new(), |own: Nanos| latency(own));
    let mut times = format!("{:<FIRST_LATENCY$}", "Latency");
    for (at, phase) in phases.iter().enumerate() {
        let width = if at == 0 { LATENCY - 3 } else { LATENCY };
        times.push_str(&format!("{:>width$}", time(phase)));
    }
    line(text, &times);
}

fn line(text: &mut String, line: &str) {
    text.push_str(line.trim_end());
    text.push('\n');
}

/// Rate in KiB/s with its unit: KiB/s below 10,000, MiB/s below 1000 MiB/s, otherwise GiB/s.
fn throughput(kib: f64) -> String {
    let mib = kib / 1024.0;
    match kib {
        _ if kib < 9999.5 => format!("{kib:.0}k"),
        _ if mib < 99.95 => format!("{mib:.1}m"),
        _ if mib < 999.5 => format!("{mib:.0}m"),
        _ => format!("{:.1}g", mib / 1024.0),
    }
}

/// Name and size of the large file, such as `host 1500M:64k`. The name is truncated.
fn size(record: &Record) -> String {
    let chunk = match record.chunk {
        Some(chunk) if chunk.0.is_multiple_of(1024) => format!(":{}k", chunk.0 / 1024),
        Some(chunk) => format!(":{}", chunk.0),
        None => String::new(),
    };
    let size = record.file.map(super::write::file_size).unwrap_or_default() + &chunk;
    let width = FIRST.saturating_sub(size.len() + 1);
    let name: String = record.name.chars().take(width).collect();
    format!("{name:<width$} {size}")
}

/// Number of files in units of 1024, largest and smallest size, and directories.
fn counts(record: &Record) -> String {
    let mut text = record.files.map_or(String::new(), |files| files.to_string());
    match record.largest {
        None => {}
        Some(Largest::Bytes(bytes)) => {
            text.push_str(&format!(":{bytes}:{}", record.smallest.unwrap_or(0)));
        }
        Some(Largest::Link) => text.push_str(":link"),
        Some(Largest::Symlink) => text.push_str(":symlink"),
    }
    if let Some(directories) = record.directories.filter(|directories| *directories > 1) {
        text.push_str(&format!("/{directories}"));
    }
    format!("{text:>FIRST$}")
}
