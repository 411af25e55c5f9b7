//! Tables of runs on several hosts: the hosts, and their results.

use model::{Bytes, Histogram, HostResult, Ops, cluster::Network, phase::Series};
use rusqlite::{Row, Transaction, params};

use crate::columns::{json, nanos, nanoseconds};

/// Stores the results of all hosts of a trial.
pub(crate) fn put(
    transaction: &Transaction<'_>,
    trial: i64,
    hosts: &[HostResult],
) -> rusqlite::Result<()> {
    let mut host = transaction.prepare("INSERT OR IGNORE INTO host VALUES (?1, ?2)")?;
    let mut insert = transaction.prepare(
        "INSERT INTO host_result
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
    )?;
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    for result in hosts {
        host.execute(params![result.index, result.host])?;
        let network = result.network;
        let of = |value: fn(Network) -> u64| network.map(|network| number(value(network)));
        insert.execute(params![
            trial,
            result.phase,
            result.index,
            number(result.ops.0),
            number(result.bytes.0),
            nanoseconds(result.started),
            nanoseconds(result.ended),
            result.clock_offset,
            nanoseconds(result.clock_bound),
            of(|network| network.received.0),
            of(|network| network.sent.0),
            of(|network| network.packets_received),
            of(|network| network.packets_sent),
            of(|network| network.retransmitted),
            result.histogram.encode(),
            result.series.encode(),
        ])?;
        put_activity(transaction, trial, result)?;
    }
    Ok(())
}

fn put_activity(
    transaction: &Transaction<'_>,
    trial: i64,
    result: &HostResult,
) -> rusqlite::Result<()> {
    let mut insert =
        transaction.prepare_cached("INSERT INTO host_activity VALUES (?1, ?2, ?3, ?4)")?;
    let body = json(&result.activity)?.to_string();
    insert.execute(params![trial, result.phase, result.index, body]).map(drop)
}

/// Results of all hosts.
pub(crate) const QUERY: &str = "
    SELECT trial_id, phase, host_idx, host.name, operations, bytes, started_ns, ended_ns,
           clock_offset_ns, clock_bound_ns, received_bytes, sent_bytes, received_packets,
           sent_packets, retransmitted, histogram, series, host_activity.body
    FROM host_result
    JOIN host ON host.idx = host_idx
    JOIN host_activity USING (trial_id, phase, host_idx)
    ORDER BY host_result.rowid";

/// Row of [`QUERY`].
pub(crate) struct Stored {
    /// ID of the trial.
    pub(crate) trial: i64,
    result: HostResult,
    histogram: Vec<u8>,
    series: Vec<u8>,
    activity: String,
}

impl Stored {
    /// Reads a row.
    pub(crate) fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let number = |column| nanos(row, column).map(|number| number.0);
        let network = match row.get::<_, Option<i64>>(10)? {
            None => None,
            Some(_) => Some(Network {
                received: Bytes(number(10)?),
                sent: Bytes(number(11)?),
                packets_received: number(12)?,
                packets_sent: number(13)?,
                retransmitted: number(14)?,
            }),
        };
        let result = HostResult {
            phase: row.get(1)?,
            index: row.get(2)?,
            host: row.get(3)?,
            ops: Ops(number(4)?),
            bytes: Bytes(number(5)?),
            started: nanos(row, 6)?,
            ended: nanos(row, 7)?,
            clock_offset: row.get(8)?,
            clock_bound: nanos(row, 9)?,
            network,
            ..HostResult::default()
        };
        let (histogram, series, activity) = (row.get(15)?, row.get(16)?, row.get(17)?);
        Ok(Self { trial: row.get(0)?, result, histogram, series, activity })
    }

    /// Result of the host. The error is the damaged value.
    pub(crate) fn decode(self) -> Result<HostResult, String> {
        let Self { result, .. } = self;
        let damaged = |what: String| format!("results of {}: {what}", result.host);
        let histogram = Histogram::decode(&self.histogram);
        let histogram = histogram.map_err(|error| damaged(error.to_string()))?;
        let series = Series::decode(&self.series).map_err(|error| damaged(error.to_string()))?;
        let activity = serde_json::from_str(&self.activity);
        let activity = activity.map_err(|error| damaged(error.to_string()))?;
        Ok(HostResult { histogram, series, activity, ..result })
    }
}
