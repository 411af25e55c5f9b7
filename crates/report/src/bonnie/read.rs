//! Parser of bonnie++ records.

use model::{Bytes, Nanos};
use thiserror::Error;

use super::{Figure, Format, IO_PHASES, Largest, PHASES, PhaseFigures, Record};

/// Reason that a text cannot be read as records.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// A line is not a record.
    #[error(
        "line {line} is not a bonnie++ record: its first field is `{first}` and it has {fields} \
         fields; records of bonnie++ begin with 1.98 (50 fields), 1.97 or 1.96 (48 fields), or \
         have the 27 fields of 1.03"
    )]
    Line {
        /// Line number, from 1.
        line: usize,
        /// First field.
        first: String,
        /// Number of fields.
        fields: usize,
    },
    /// A record has too many or too few fields.
    #[error("line {line}: records of format {format} have {expected} fields, found {found}")]
    Count {
        /// Line number, from 1.
        line: usize,
        /// Format of the record.
        format: &'static str,
        /// Expected number of fields.
        expected: usize,
        /// Number of fields found.
        found: usize,
    },
    /// A field has an invalid value.
    #[error("line {line}, field {field} ({name}): expected {expected}, found `{found}`")]
    Field {
        /// Line number, from 1.
        line: usize,
        /// Field number, from 1 as in cut(1).
        field: usize,
        /// Name of the field.
        name: String,
        /// Expected content.
        expected: &'static str,
        /// Actual content.
        found: String,
    },
    /// All lines are empty or headers.
    #[error("the file has no bonnie++ record")]
    Empty,
}

/// Reads all records of a text, one per line. Header lines and empty lines are skipped.
///
/// # Errors
/// The first error, with its line and field.
pub fn read(text: &str) -> Result<Vec<Record>, ReadError> {
    let mut records = Vec::new();
    // Some editors write a byte order mark at the start of a file.
    let text = text.trim_start_matches('\u{feff}');
    for (line, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        // The header of 1.03e begins with `name`, those of later versions with `format_version`.
        let header = content.starts_with("name,") || content.starts_with("format_version,");
        if content.is_empty() || header {
            continue;
        }
        records.push(Line::new(line, content)?.record()?);
    }
    if records.is_empty() { Err(ReadError::Empty) } else { Ok(records) }
}

/// Line, split into fields in the layout of 1.98, except for records of 1.03.
struct Line<'a> {
    number: usize,
    format: Format,
    fields: Vec<&'a str>,
    /// Inserted fields: index in `fields` of the first field behind them, and their number.
    /// Subtracting the number from the index gives the index in the text.
    shifts: Vec<(usize, usize)>,
}

/// Indexes of fields in the layout of 1.98.
const FILE_SIZE: usize = 5;
const SEEK_COUNT: usize = 7;
const IO_RATES: usize = 9;
const FILES: usize = 21;
const DIRECTORIES: usize = 24;
const FILE_CHUNK: usize = 25;
const FILE_RATES: usize = 26;
const LATENCIES: usize = 38;
/// Numbers of fields.
const FIELDS_198: usize = 50;
const FIELDS_196: usize = 48;
const FIELDS_103: usize = 27;

impl<'a> Line<'a> {
    fn new(number: usize, content: &'a str) -> Result<Self, ReadError> {
        // Limits memory: a line of commas has one field per byte.
        let count = content.split(',').count();
        let mut fields: Vec<&str> =
            content.split(',').take(FIELDS_198 + 1).map(str::trim).collect();
        let format = match fields[0] {
            "1.98" => Format::V198,
            "1.97" => Format::V197,
            "1.96" => Format::V196,
            _ if fields.len() == FIELDS_103 => Format::V103,
            first => {
                return Err(ReadError::Line {
                    line: number,
                    first: first.chars().take(40).flat_map(char::escape_debug).collect(),
                    fields: count,
                });
            }
        };
        let mut shifts = Vec::new();
        let lacks = |fields: &[&str]| fields.get(FILE_SIZE).is_some_and(|size| size.is_empty());
        if format == Format::V196 && fields.len() == FIELDS_196 - 1 && lacks(&fields) {
            // Without the large-file phases, bonnie++ 1.96 prints one comma too few.
            fields.insert(FILE_SIZE, "");
            shifts.push((FILE_SIZE + 1, 1));
        }
        let expected = match format {
            Format::V103 => FIELDS_103,
            Format::V196 | Format::V197 => FIELDS_196,
            Format::V198 => FIELDS_198,
        };
        if fields.len() != expected {
            let (format, found) = (format.name(), count);
            return Err(ReadError::Count { line: number, format, expected, found });
        }
        if matches!(format, Format::V196 | Format::V197) {
            fields.splice(SEEK_COUNT..SEEK_COUNT, ["", ""]);
            shifts.push((SEEK_COUNT + 2, 2));
        }
        Ok(Self { number, format, fields, shifts })
    }

    fn record(&self) -> Result<Record, ReadError> {
        if self.format == Format::V103 {
            return self.without_version();
        }
        let mut phases = [PhaseFigures::default(); 12];
        for (at, (phase, name)) in phases.iter_mut().zip(PHASES).enumerate() {
            let rates = if at < IO_PHASES { IO_RATES } else { FILE_RATES - 2 * IO_PHASES };
            *phase = self.pair(rates + 2 * at, name)?;
            phase.latency = self.latency(LATENCIES + at, name)?;
        }
        let version = self.fields[1].to_owned();
        let (directories, file_chunk) = self.directories(&version)?;
        Ok(Record {
            format: self.format,
            name: self.fields[2].into(),
            concurrency: self.count(3, "concurrency")?,
            seed: self.fields[4].into(),
            file: self.size(FILE_SIZE, "file_size", None)?,
            chunk: self.size(6, "io_chunk_size", Some(1))?,
            seeks: self.count(SEEK_COUNT, "seeks")?,
            seekers: self.count(SEEK_COUNT + 1, "seek_procs")?,
            files: self.count(FILES, "num_files")?,
            largest: self.largest(FILES + 1, self.fields[FILES + 1])?,
            smallest: self.count(FILES + 2, "min_size")?,
            directories,
            file_chunk,
            version,
            phases,
        })
    }

    /// Number of directories, and bytes per I/O call of the file phases.
    ///
    /// bonnie++ writes the number of directories into the field of the I/O size in format 1.98,
    /// leaves its own field empty, and omits the I/O size.
    fn directories(&self, version: &str) -> Result<(Option<u64>, Option<u64>), ReadError> {
        let directories = self.count(DIRECTORIES, "num_dirs")?;
        let chunk = self.size(FILE_CHUNK, "file_chunk_size", Some(1))?.map(|size| size.0);
        let number = self.fields[FILE_CHUNK].bytes().all(|byte| byte.is_ascii_digit());
        let of_bonnie = version.starts_with(|first: char| first.is_ascii_digit());
        let displaced = self.format == Format::V198 && of_bonnie && number;
        Ok(match (directories, chunk) {
            (None, Some(chunk)) if displaced => (Some(chunk), None),
            as_told => as_told,
        })
    }

    /// Record in the layout of 1.03.
    fn without_version(&self) -> Result<Record, ReadError> {
        // The fields of the large file precede this one, those of the files follow it.
        const FILES: usize = 2 + 2 * IO_PHASES;
        let mut phases = [PhaseFigures::default(); 12];
        for (at, (phase, name)) in phases.iter_mut().zip(PHASES).enumerate() {
            *phase = self.pair(2 + 2 * at + usize::from(at >= IO_PHASES), name)?;
        }
        let (file, chunk) = self.file_and_chunk(1)?;
        let Small { files, largest, smallest, directories } = self.small_files(FILES)?;
        Ok(Record {
            format: Format::V103,
            version: Format::V103.name().into(),
            name: self.fields[0].into(),
            concurrency: None,
            seed: String::new(),
            file,
            chunk,
            seeks: None,
            seekers: None,
            files,
            largest,
            smallest,
            directories,
            file_chunk: None,
            phases,
        })
    }

    /// Number and sizes of the files: `16`, `16:4096`, or `16:4096:512`, each optionally with
    /// directories, such as `16/4`.
    fn small_files(&self, at: usize) -> Result<Small, ReadError> {
        let wrong = || {
            let expected = "number of files, optionally with sizes and directories, such as \
                            16:4096:512/4";
            self.wrong(at, "num_files", expected)
        };
        let number = |text: Option<&str>| match text {
            None | Some("") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| wrong()),
        };
        let (sizes, directories) = match self.fields[at].split_once('/') {
            Some((sizes, directories)) => (sizes, Some(directories)),
            None => (self.fields[at], None),
        };
        let mut sizes = sizes.split(':');
        let files = number(sizes.next())?;
        let largest = self.largest(at, sizes.next().unwrap_or_default())?;
        let smallest = number(sizes.next())?;
        match sizes.next() {
            Some(_) => Err(wrong()),
            None => Ok(Small { files, largest, smallest, directories: number(directories)? }),
        }
    }

    /// Size of the large file, optionally with bytes per I/O call: `2G` or `2G:64k`.
    fn file_and_chunk(&self, at: usize) -> Result<(Option<Bytes>, Option<Bytes>), ReadError> {
        match self.fields[at].split_once(':') {
            None => Ok((self.size(at, "file_size", None)?, None)),
            Some((file, chunk)) => {
                let wrong = || self.wrong(at, "file_size", "a size such as 2G or 2G:64k");
                let file = size(file, None).ok_or_else(wrong)?;
                Ok((Some(file), Some(size(chunk, Some(1)).ok_or_else(wrong)?)))
            }
        }
    }

    /// Rate and CPU % of a phase.
    fn pair(&self, at: usize, phase: &str) -> Result<PhaseFigures, ReadError> {
        let rate = self.figure(at, phase, "a rate, plus signs, or an empty field")?;
        let name = format!("{phase} cpu");
        let cpu = self.figure(at + 1, &name, "a percentage, plus signs, or an empty field")?;
        Ok(PhaseFigures { rate, cpu, latency: None })
    }

    fn figure(&self, at: usize, name: &str, expected: &'static str) -> Result<Figure, ReadError> {
        let text = self.fields[at];
        if text.is_empty() {
            return Ok(Figure::Empty);
        }
        if text.len() >= 3 && text.bytes().all(|byte| byte == b'+') {
            return Ok(Figure::Short);
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() && value >= 0.0 => Ok(Figure::Known(value)),
            Ok(_) | Err(_) => Err(self.wrong(at, name, expected)),
        }
    }

    fn latency(&self, at: usize, phase: &str) -> Result<Option<Nanos>, ReadError> {
        let text = self.fields[at];
        if text.is_empty() {
            return Ok(None);
        }
        let units = [("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)];
        let found = units.into_iter().find_map(|(unit, nanos)| {
            let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
            number.checked_mul(nanos).map(Nanos)
        });
        let name = || format!("{phase} latency");
        found.map(Some).ok_or_else(|| self.wrong(at, &name(), "a time in us, ms, or s"))
    }

    fn count(&self, at: usize, name: &str) -> Result<Option<u64>, ReadError> {
        match self.fields[at] {
            "" => Ok(None),
            text => match text.parse() {
                Ok(count) => Ok(Some(count)),
                Err(_) => Err(self.wrong(at, name, "an integer or an empty field")),
            },
        }
    }

    fn size(&self, at: usize, name: &str, plain: Option<u64>) -> Result<Option<Bytes>, ReadError> {
        match self.fields[at] {
            "" => Ok(None),
            text => match size(text, plain) {
                Some(size) => Ok(Some(size)),
                None => Err(self.wrong(at, name, "a size such as 8G, 1500M, or 64k")),
            },
        }
    }

    fn largest(&self, at: usize, text: &str) -> Result<Option<Largest>, ReadError> {
        match text {
            "" => Ok(None),
            // Keywords of the records, and the numbers that the options of bonnie++ accept.
            "link" | "-1" => Ok(Some(Largest::Link)),
            "symlink" | "-2" => Ok(Some(Largest::Symlink)),
            text => match text.parse() {
                Ok(bytes) => Ok(Some(Largest::Bytes(bytes))),
                Err(_) => {
                    let expected = "a size in bytes, `link`, `symlink`, or an empty field";
                    Err(self.wrong(at, "max_size", expected))
                }
            },
        }
    }

    fn wrong(&self, at: usize, name: &str, expected: &'static str) -> ReadError {
        let inserted = self.shifts.iter().rev().fold(
            at,
            |at, (from, by)| {
                if at >= *from { at - by } else { at }
            },
        );
        ReadError::Field {
            line: self.number,
            field: inserted + 1,
            name: name.into(),
            expected,
            found: self.fields[at].into(),
        }
    }
}

/// Number, sizes, and directories of the files in a 1.03 record.
struct Small {
    files: Option<u64>,
    largest: Option<Largest>,
    smallest: Option<u64>,
    directories: Option<u64>,
}

/// Size with suffix k, M, G, or T (powers of 1024). A number without suffix is in units of `plain`
/// bytes, and invalid if `plain` is `None`.
fn size(text: &str, plain: Option<u64>) -> Option<Bytes> {
    let (number, unit) = match text.char_indices().next_back()? {
        (at, letter) if letter.is_ascii_alphabetic() => {
            let power = ['k', 'm', 'g', 't'].iter().zip(1..);
            let (_, power) =
                power.into_iter().find(|(unit, _)| letter.eq_ignore_ascii_case(unit))?;
            (&text[..at], 1024_u64.pow(power))
        }
        _ => (text, plain?),
    };
    number.parse::<u64>().ok()?.checked_mul(unit).map(Bytes)
}
