//! Text and logs of pgbench as measurements of suite `pgbench`.
//!
//! Sources: the documentation of pgbench of PostgreSQL 9.6 to 17, and outputs of 15.

use std::collections::BTreeMap;

use model::{
    Histogram, Metric, Nanos, Value,
    record::{HistogramKind, PhaseHistogram},
};

use super::{
    ImportError, Importer, Measurement, label, phase,
    text::{MICROSECOND, MILLISECOND, count, known, line, nanos, number},
};

/// Suite of the cells.
const SUITE: &str = "pgbench";

/// Phase of all transactions.
const TRANSACTIONS: &str = "transactions";

const METHOD: &str = "Rates are transactions per second without the time of the first connections; \
                      with -C, they include the later ones. With --rate, the latency includes the \
                      delay of the start.";

/// Importer of text.
pub(super) const TEXT: Importer = Importer {
    name: "pgbench-text",
    program: "pgbench",
    title: "text of pgbench 9.6 to 17",
    recognized_by: "line with `number of transactions actually processed`",
    cell: "transaction type, scaling factor, query mode, clients, threads, duration",
    metrics: "`ops_rate` (tps without connections), `latency_mean`, which pgbench computes from the \
              run time if it measured no single transactions",
    omitted: "standard deviation, tps with connections, progress, statements of scripts",
    suite: SUITE,
    method: METHOD,
    longest: 16 << 20,
    is_one_configuration: true,
    recognize: |text| text.contains("number of transactions actually processed"),
    read: read_text,
};

/// Importer of logs of single transactions.
pub(super) const LOG: Importer = Importer {
    name: "pgbench-log",
    title: "log of transactions of pgbench (--log)",
    recognized_by: "first line of 6 to 8 numbers, of which the fifth is a time since 1970",
    cell: "clients, and the number of the script; a log has no options",
    metrics: "`ops_rate`; `latency_mean`, `latency_max`, percentiles, and the histogram of the latency",
    omitted: "aggregated logs (--aggregate-interval); several threads (-j) write several logs, which \
              are one log if they are joined",
    longest: 512 << 20,
    recognize: |text| {
        let first = text.lines().next().unwrap_or_default();
        transaction(first).is_some()
    },
    read: read_log,
    ..TEXT
};

fn read_text(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let mut version = "unknown".to_owned();
    let mut parameters: BTreeMap<String, Value> = BTreeMap::new();
    let (mut latency, mut rate) = (None, None);
    let mut all = Vec::new();
    let mut finish = |version: &str,
                      parameters: &mut BTreeMap<String, Value>,
                      latency: &mut Option<f64>,
                      rate: &mut Option<f64>| {
        let (own, latency) = (std::mem::take(parameters), latency.take());
        if let Some(rate) = rate.take() {
            let label = label(&own, &["transactions", "clients", "scale"]);
            let mut own = Measurement::new(SUITE, format!("pgbench {version}"), label, own);
            own.phases.push((0, phase(TRANSACTIONS, "all clients", Metric::OpsRate)));
            let samples = [(Metric::OpsRate, Some(rate)), (Metric::LatencyMean, latency)];
            own.samples(TRANSACTIONS, samples);
            all.push(own);
        }
    };
    for (place, content) in (1..).zip(text.lines()) {
        let content = content.trim();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                parameters.insert(name.into(), value);
            }
        };
        if let Some(rest) = content.strip_prefix("pgbench (") {
            finish(&version, &mut parameters, &mut latency, &mut rate);
            rest.split([' ', ')']).next().unwrap_or_default().clone_into(&mut version);
        } else if let Some((name, value)) = content.split_once(": ") {
            match name {
                "transaction type" => {
                    finish(&version, &mut parameters, &mut latency, &mut rate);
                    let name = value.rsplit('/').next().unwrap_or_default();
                    parameters.insert("transactions".into(), Value::Text(name.to_owned()));
                }
                "scaling factor" => set("scale", count(value)),
                "query mode" => set("query_mode", Some(Value::Word(value.to_owned()))),
                "number of clients" => set("clients", count(value)),
                "number of threads" => set("workers", count(value)),
                "number of transactions per client" => set("transactions_per_client", count(value)),
                "duration" => {
                    let seconds = value.split(' ').next().unwrap_or_default();
                    let time = number(line(place), seconds)?;
                    set("runtime", Some(Value::Time(nanos(time))));
                }
                _ => {}
            }
        } else if let Some(rest) = content.strip_prefix("latency average = ") {
            let mean = rest.split(' ').next().unwrap_or_default();
            latency = Some(number(line(place), mean)? * MILLISECOND);
        } else if let Some(rest) = content.strip_prefix("tps = ") {
            let (value, note) = rest.split_once(' ').unwrap_or((rest, ""));
            // The rate with connections comes first before 14.
            if !note.contains("including connections") {
                rate = Some(number(line(place), value)?);
            }
        }
    }
    finish(&version, &mut parameters, &mut latency, &mut rate);
    match all.is_empty() {
        true => Err(ImportError::Nothing {
            place: "the file".into(),
            what: "it has no line `tps =`; the output may be truncated",
        }),
        false => Ok(all),
    }
}

/// Transaction of a log.
struct Transaction {
    client: u64,
    script: u64,
    /// Latency in microseconds; `None` if the transaction was skipped or failed.
    time: Option<u64>,
    /// End in microseconds since 1970.
    ended: u64,
}

/// Transaction in a line: client, number, time, script, seconds, microseconds, and with --rate the
/// lag, with --max-tries the number of tries. The time of a transaction that was skipped or failed
/// is a word, with --failures-detailed the kind of the failure.
fn transaction(line: &str) -> Option<Transaction> {
    let words: Vec<&str> = line.split(' ').collect();
    if !(6..=8).contains(&words.len()) {
        return None;
    }
    let number = |at: usize| words[at].parse::<u64>().ok();
    let (seconds, micros) = (number(4)?, number(5)?);
    // A time since 1970; an aggregated log begins with it.
    if !(1_000_000_000..1 << 40).contains(&seconds) || micros >= 1_000_000 {
        return None;
    }
    let (client, script) = (number(0)?, number(3)?);
    number(1)?;
    let time = match words[2] {
        "skipped" | "failed" | "serialization" | "deadlock" => None,
        _ => Some(number(2)?),
    };
    Some(Transaction { client, script, time, ended: seconds * 1_000_000 + micros })
}

/// Transactions of a script.
#[derive(Default)]
struct Script {
    histogram: Histogram,
    first: Option<u64>,
    last: u64,
    failed: u64,
}

fn read_log(bytes: &[u8]) -> Result<Vec<Measurement>, ImportError> {
    let text = String::from_utf8_lossy(bytes);
    let mut clients = std::collections::BTreeSet::new();
    let mut scripts: BTreeMap<u64, Script> = BTreeMap::new();
    for (place, content) in (1_usize..).zip(text.lines()) {
        let Some(own) = transaction(content.trim_end()) else {
            return Err(ImportError::Field {
                place: format!("line {place}"),
                expected: "6 to 8 fields of a transaction",
                found: content.chars().take(40).flat_map(char::escape_debug).collect(),
            });
        };
        clients.insert(own.client);
        let script = scripts.entry(own.script).or_default();
        match own.time {
            None => script.failed += 1,
            Some(time) => {
                let begun = own.ended.saturating_sub(time);
                script.first = Some(script.first.map_or(begun, |first| first.min(begun)));
                script.last = script.last.max(own.ended);
                script.histogram.record(time.saturating_mul(1000));
            }
        }
        if clients.len() > 1 << 16 || scripts.len() > 1 << 10 {
            let what = "it has more than 65536 clients or 1024 scripts";
            return Err(ImportError::Nothing { place: format!("line {place}"), what });
        }
    }
    let measured = scripts.into_iter().filter(|(_, own)| own.first.is_some());
    let all =
        measured.map(|(number, script)| log_measurement(clients.len() as u64, number, script));
    let all: Vec<Measurement> = all.collect();
    match all.is_empty() {
        true => Err(ImportError::Nothing {
            place: "the file".into(),
            what: "it has no transaction that succeeded",
        }),
        false => Ok(all),
    }
}

fn log_measurement(clients: u64, script: u64, own: Script) -> Measurement {
    let Script { histogram, first, last, failed } = own;
    let parameters =
        known([("clients", Some(Value::Count(clients))), ("script", Some(Value::Count(script)))]);
    let label = label(&parameters, &["clients", "script"]);
    let mut own = Measurement::new(SUITE, "pgbench".into(), label, parameters);
    own.phases.push((0, phase(TRANSACTIONS, "all clients", Metric::OpsRate)));
    let first = first.unwrap_or(last);
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    let (count, seconds) =
        (histogram.count() as f64, last.saturating_sub(first) as f64 * MICROSECOND / 1e9);
    let in_nanos = |time: Option<Nanos>| time.map(|time| time.seconds() * 1e9);
    let quantile = |part| in_nanos(histogram.quantile(part));
    let samples = [
        (Metric::OpsRate, (seconds > 0.0).then(|| count / seconds)),
        (Metric::LatencyMean, in_nanos(histogram.mean())),
        (Metric::LatencyMax, in_nanos(histogram.max())),
        (Metric::LatencyP50, quantile(0.5)),
        (Metric::LatencyP90, quantile(0.9)),
        (Metric::LatencyP99, quantile(0.99)),
        (Metric::LatencyP999, quantile(0.999)),
    ];
    own.samples(TRANSACTIONS, samples);
    own.started_unix = Some(Nanos(first.saturating_mul(1000)));
    own.elapsed = nanos(seconds);
    if failed > 0 {
        let why = format!("{failed} transactions of the log were skipped or failed");
        own.not_available(Some(TRANSACTIONS), "latency of all transactions", &why);
    }
    let kind = HistogramKind::All;
    own.histograms.push(PhaseHistogram { phase: TRANSACTIONS.into(), kind, histogram });
    own
}
