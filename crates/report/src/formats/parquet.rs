//! Samples as Parquet: typed columns for data frames and databases.
//!
//! There is one row per sample, as in the CSV. The metadata of the file contain the conditions of
//! the run. Columns are compressed with LZ4, with dictionary encoding for repeated values. The same
//! record gives the same bytes. Format: <https://parquet.apache.org/docs/file-format/>.

use std::sync::Arc;

use model::RunRecord;
use parquet::{
    basic::Compression,
    column::writer::ColumnWriter,
    data_type::ByteArray,
    errors,
    file::{
        metadata::KeyValue, properties::WriterProperties, writer::SerializedFileWriter,
        writer::SerializedRowGroupWriter,
    },
    schema::parser::parse_message_type,
};

use crate::{
    samples::{self, SampleRow, imported},
    units::one_line,
    view::conditions,
};

/// Names, order, and types of the columns. [`Columns`] has the same order.
const SCHEMA: &str = "message samples {
    REQUIRED BYTE_ARRAY run (STRING);
    REQUIRED BYTE_ARRAY cell (STRING);
    REQUIRED BYTE_ARRAY filesystem (STRING);
    REQUIRED BYTE_ARRAY suite (STRING);
    REQUIRED BYTE_ARRAY workload (STRING);
    REQUIRED BYTE_ARRAY parameters (JSON);
    OPTIONAL BYTE_ARRAY scheduler (STRING);
    REQUIRED BYTE_ARRAY settings (STRING);
    REQUIRED BOOLEAN aa_duplicate;
    REQUIRED INT32 repetition (INTEGER(32, false));
    REQUIRED INT32 attempt (INTEGER(32, false));
    REQUIRED BYTE_ARRAY outcome (STRING);
    REQUIRED BYTE_ARRAY phase (STRING);
    REQUIRED BYTE_ARRAY metric (STRING);
    REQUIRED BYTE_ARRAY unit (STRING);
    OPTIONAL INT32 worker (INTEGER(32, false));
    REQUIRED DOUBLE value;
}";

/// Indexes in [`SCHEMA`] of the columns that may be null.
const SCHEDULER: usize = 6;
const WORKER: usize = 15;

/// Rows per row group. A group takes about 20 MB of memory in addition to the record; readers load
/// one group at a time.
const GROUP: usize = 1 << 17;

/// The samples cannot be written as Parquet.
#[derive(Debug, thiserror::Error)]
#[error("writing {rows} samples as Parquet; --format csv gives the same rows without this writer")]
pub struct ParquetError {
    rows: usize,
    source: errors::ParquetError,
}

/// All samples of a run, in the order of measurement, with the columns of [`crate::csv`] and their
/// JSON `parameters` in base units. `aa_duplicate` is a boolean; `worker` and `scheduler` are null
/// if there is none. Values are in the base unit named by `unit`. The metadata of the file have
/// keys that begin with `fslab.` for run, plan, program, and conditions.
///
/// # Errors
/// [`ParquetError`] if the writer fails. No known record causes this.
pub fn parquet(record: &RunRecord) -> Result<Vec<u8>, ParquetError> {
    write(record).map_err(|source| ParquetError {
        rows: record.trials.iter().map(|trial| trial.samples.len()).sum(),
        source,
    })
}

fn write(record: &RunRecord) -> Result<Vec<u8>, errors::ParquetError> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::LZ4_RAW)
        .set_key_value_metadata(Some(metadata(record)))
        .build();
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    let cells = samples::cells(record);
    let mut rows = samples::rows(record, &cells).peekable();
    while rows.peek().is_some() {
        let mut columns = Columns::default();
        let run = one_line(&record.info.id);
        rows.by_ref().take(GROUP).for_each(|row| columns.push(&run, row));
        let mut group = file.next_row_group()?;
        columns.write(&mut group)?;
        group.close()?;
    }
    file.into_inner()
}

/// Metadata of the file.
fn metadata(record: &RunRecord) -> Vec<KeyValue> {
    let info = &record.info;
    let environment = record.environment.0.iter();
    let environment: serde_json::Map<String, serde_json::Value> =
        environment.map(|(name, value)| (name.clone(), one_line(value).into())).collect();
    let mut pairs = vec![
        ("run", one_line(&info.id)),
        ("title", one_line(&info.title)),
        ("plan_name", one_line(&info.plan_name)),
        ("plan", info.plan_text.clone()),
        ("profile", info.profile.name().to_owned()),
        ("program", one_line(&info.program)),
        ("conditions", conditions(record)),
        ("scale", info.scale.to_string()),
        ("seed", info.seed.to_string()),
        ("started_unix_ns", info.started_unix.0.to_string()),
        ("environment", serde_json::Value::Object(environment).to_string()),
    ];
    pairs.extend(info.ended_unix.map(|end| ("ended_unix_ns", end.0.to_string())));
    pairs.extend(imported(record).map(|program| ("imported_from", one_line(program))));
    let pair = |(key, value)| KeyValue::new(format!("fslab.{key}"), Some(value));
    pairs.into_iter().map(pair).collect()
}

/// Rows of a row group, by column.
#[derive(Default)]
struct Columns {
    /// Text columns, in the order of the schema.
    text: [Vec<ByteArray>; 12],
    aa_duplicate: Vec<bool>,
    repetition: Vec<i32>,
    attempt: Vec<i32>,
    worker: Vec<i32>,
    value: Vec<f64>,
    /// Definition levels: 1 if the value is present, 0 if it is null.
    scheduler_there: Vec<i16>,
    worker_there: Vec<i16>,
}

impl Columns {
    fn push(&mut self, run: &str, row: SampleRow<'_>) {
        let SampleRow { cell, repetition, attempt, outcome, phase, metric, worker, value } = row;
        let scheduler = (!cell.scheduler.is_empty()).then_some(cell.scheduler.as_str());
        let words = [
            Some(run),
            Some(cell.cell.as_str()),
            Some(&cell.filesystem),
            Some(&cell.suite),
            Some(&cell.workload),
            Some(&cell.parameters),
            scheduler,
            Some(&cell.settings),
            Some(outcome),
            Some(&phase),
            Some(metric.name()),
            Some(metric.spec().unit.name()),
        ];
        for (column, word) in self.text.iter_mut().zip(words) {
            column.extend(word.map(ByteArray::from));
        }
        self.aa_duplicate.push(cell.aa_duplicate);
        // Parquet stores unsigned integers in the bits of signed ones.
        self.repetition.push(repetition.cast_signed());
        self.attempt.push(attempt.cast_signed());
        self.worker.extend(worker.map(u32::cast_signed));
        self.value.push(value);
        self.scheduler_there.push(i16::from(scheduler.is_some()));
        self.worker_there.push(i16::from(worker.is_some()));
    }

    fn write(
        &self,
        group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    ) -> Result<(), errors::ParquetError> {
        let mut text = self.text.iter();
        let mut numbers = [&self.repetition, &self.attempt, &self.worker].into_iter();
        for index in 0.. {
            let Some(mut column) = group.next_column()? else { break };
            let there = match index {
                SCHEDULER => Some(self.scheduler_there.as_slice()),
                WORKER => Some(self.worker_there.as_slice()),
                _ => None,
            };
            match column.untyped() {
                ColumnWriter::ByteArrayColumnWriter(column) => {
                    let values = text.next().map_or(&[][..], Vec::as_slice);
                    column.write_batch(values, there, None)?;
                }
                ColumnWriter::Int32ColumnWriter(column) => {
                    let values = numbers.next().map_or(&[][..], Vec::as_slice);
                    column.write_batch(values, there, None)?;
                }
                ColumnWriter::BoolColumnWriter(column) => {
                    column.write_batch(&self.aa_duplicate, None, None)?;
                }
                ColumnWriter::DoubleColumnWriter(column) => {
                    column.write_batch(&self.value, None, None)?;
                }
                ColumnWriter::Int64ColumnWriter(_)
                | ColumnWriter::Int96ColumnWriter(_)
                | ColumnWriter::FloatColumnWriter(_)
                | ColumnWriter::FixedLenByteArrayColumnWriter(_) => {}
            }
            column.close()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use parquet::{
        file::reader::{FileReader, SerializedFileReader},
        record::{Field, RowAccessor},
    };

    use super::*;
    use crate::fixture;

    /// Record with and without a scheduler and a worker, and with extreme values.
    fn record() -> RunRecord {
        let mut record = fixture::record();
        record.cells[1].cell.scheduler = Some("mq-deadline".into());
        record.trials[0].samples[1].worker = Some(u32::MAX);
        record.trials[0].samples[2].value = f64::MIN_POSITIVE;
        record
    }

    #[test]
    fn every_sample_reads_back_as_it_was() {
        let record = record();
        let file =
            SerializedFileReader::new(bytes::Bytes::from(parquet(&record).unwrap())).unwrap();
        let cells = samples::cells(&record);
        let mut read = file.get_row_iter(None).unwrap();
        let mut count = 0;
        for sample in samples::rows(&record, &cells) {
            let row = read.next().unwrap().unwrap();
            let text = |at| row.get_string(at).unwrap().as_str();
            assert_eq!(text(0), record.info.id);
            assert_eq!(text(1), sample.cell.cell);
            assert_eq!(text(2), sample.cell.filesystem);
            assert_eq!(text(5), sample.cell.parameters);
            match sample.cell.scheduler.as_str() {
                "" => assert!(row.get_string(6).is_err()),
                scheduler => assert_eq!(text(6), scheduler),
            }
            assert_eq!(row.get_bool(8).unwrap(), sample.cell.aa_duplicate);
            assert_eq!(row.get_uint(9).unwrap(), sample.repetition);
            assert_eq!(text(11), sample.outcome);
            assert_eq!((text(12), text(13)), (sample.phase.as_str(), sample.metric.name()));
            let worker = row.get_column_iter().nth(15).unwrap();
            assert_eq!(*worker.1, sample.worker.map_or(Field::Null, Field::UInt));
            assert_eq!(row.get_double(16).unwrap().to_bits(), sample.value.to_bits());
            count += 1;
        }
        assert!(read.next().is_none() && count > 1000, "{count}");
    }

    #[test]
    fn the_file_has_run_program_and_conditions() {
        let record = record();
        let bytes = parquet(&record).unwrap();
        assert_eq!(bytes, parquet(&record).unwrap(), "the same record gives the same bytes");
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        let pairs = file.metadata().file_metadata().key_value_metadata().unwrap().clone();
        let get = |key: &str| {
            let found = pairs.iter().find(|pair| pair.key == format!("fslab.{key}"));
            found.and_then(|pair| pair.value.clone()).unwrap()
        };
        assert_eq!(get("run"), record.info.id);
        assert_eq!(get("program"), record.info.program);
        assert!(get("conditions").contains("kernel 6.18.2"));
        assert!(get("environment").contains("\"tool.mkfs.xfs\":\"mkfs.xfs version 6.17\""));
    }

    #[test]
    fn a_run_without_samples_is_a_file_without_rows() {
        let mut record = fixture::record();
        record.trials.clear();
        let file =
            SerializedFileReader::new(bytes::Bytes::from(parquet(&record).unwrap())).unwrap();
        assert_eq!(file.metadata().file_metadata().num_rows(), 0);
        assert_eq!(file.metadata().file_metadata().schema_descr().num_columns(), 17);
    }
}
