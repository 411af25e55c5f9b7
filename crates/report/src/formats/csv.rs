//! Tidy CSV (RFC 4180): one row for each sample, in base units, failed trials included.

use model::{RunRecord, record::Outcome};

use crate::view::imported;

const HEADER: &str = "run,cell,filesystem,suite,workload,scheduler,settings,twin,repeat,attempt,outcome,\
                      phase,metric,unit,worker,value\r\n";

/// All samples of a run, in the order they were made. Values are in the base unit of the `unit`
/// column; `worker` is empty for all workers together; `settings` are those of the machine that the
/// plan set; `twin` is `yes` for a second cell of the same, which counts in nothing but the
/// control; `attempt` counts the invalid trials of the same repeat before this one; rows of failed
/// and invalid trials say so in `outcome` and count in no summary, and rows that were imported
/// rather than measured say so there as well.
pub fn csv(record: &RunRecord) -> String {
    let mut text = String::from(HEADER);
    let imported = imported(record).is_some();
    for trial in &record.trials {
        let Some(cell) = record.cells.get(trial.cell) else {
            continue;
        };
        let outcome = match trial.outcome {
            // Another program did, and its records tell.
            Outcome::Measured if imported => "imported",
            Outcome::Measured => "measured",
            Outcome::Failed { .. } => "failed",
            Outcome::Invalid { .. } => "invalid",
        };
        let settings = cell.cell.factors.iter().map(|(factor, value)| format!("{factor}={value}"));
        let settings: Vec<String> = settings.collect();
        let head = [
            record.info.id.as_str(),
            &cell.id.to_string(),
            &cell.cell.filesystem.name,
            &cell.cell.workload.suite,
            &cell.label,
            cell.cell.scheduler.as_deref().unwrap_or(""),
            &settings.join(" "),
            if cell.cell.twin { "yes" } else { "no" },
            &trial.repeat.to_string(),
            &trial.attempt.to_string(),
            outcome,
        ]
        .map(quoted)
        .join(",");
        for sample in &trial.samples {
            let worker = sample.worker.map_or(String::new(), |worker| worker.to_string());
            let tail = [
                sample.phase.as_str(),
                sample.metric.name(),
                sample.metric.spec().unit.name(),
                &worker,
                &sample.value.to_string(),
            ];
            text.push_str(&head);
            for field in tail {
                text.push(',');
                text.push_str(&quoted(field));
            }
            text.push_str("\r\n");
        }
    }
    text
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn every_sample_is_a_row_of_equally_many_fields() {
        let record = fixture::record();
        let text = csv(&record);
        let samples: usize = record.trials.iter().map(|trial| trial.samples.len()).sum();
        assert_eq!(text.lines().count(), samples + 1);
        let fields = HEADER.trim_end().split(',').count();
        for line in text.lines().take(50) {
            assert_eq!(line.split(',').count(), fields, "{line}");
        }
    }

    #[test]
    fn commas_and_quotes_are_kept() {
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
