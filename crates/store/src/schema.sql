-- One run of fslab. All values are in base units (bytes, nanoseconds, per second); the unit is part of the
-- column name or in `sample.unit`. Times of day are nanoseconds since 1970-01-01 UTC.

-- The run: id, title, plan text, seed, scale, profile, study (published study whose tables come first in the
-- report), program, and others, as JSON values.
CREATE TABLE run (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- Cells of the plan. `id` is the hash of `definition` and the same on every host.
CREATE TABLE cell (
    idx          INTEGER PRIMARY KEY,   -- position in the plan, from 0
    id           TEXT NOT NULL UNIQUE,
    filesystem   TEXT NOT NULL,
    suite        TEXT NOT NULL,
    label        TEXT NOT NULL,         -- suite and the parameters that the plan varies
    definition   TEXT NOT NULL,         -- JSON, all parameters
    state        TEXT NOT NULL,         -- open, done, skipped, failed
    reason       TEXT NOT NULL,         -- stopping rule, or cause of the state
    aa_duplicate INTEGER NOT NULL DEFAULT 0   -- 1: A/A duplicate of another cell; exclude it from comparisons
) STRICT;

-- Phases of the trials of a cell, in order.
CREATE TABLE phase (
    cell_idx       INTEGER NOT NULL REFERENCES cell (idx),
    position       INTEGER NOT NULL,
    name           TEXT NOT NULL,
    table_group    TEXT NOT NULL,     -- heading of the table that contains the phase
    role           TEXT NOT NULL,     -- prepare, measure
    primary_metric TEXT NOT NULL,
    cache          TEXT,              -- cold, warm, unchanged; null: unknown (imported runs)
    PRIMARY KEY (cell_idx, position)
) STRICT;

-- One execution of a cell on a newly created filesystem. A trial and all rows that refer to it are written in
-- one transaction. An invalid trial is rerun as the next attempt, so at most one attempt of a repetition is
-- measured.
CREATE TABLE trial (
    id              INTEGER PRIMARY KEY,   -- order of execution
    cell_idx        INTEGER NOT NULL REFERENCES cell (idx),
    repetition      INTEGER NOT NULL,      -- from 0
    attempt         INTEGER NOT NULL,      -- invalid trials of this repetition before this one
    started_unix_ns INTEGER NOT NULL,
    elapsed_ns      INTEGER NOT NULL,
    outcome         TEXT NOT NULL,         -- measured, failed, invalid
    reason          TEXT NOT NULL,         -- cause of the failure, or the disturbance
    UNIQUE (cell_idx, repetition, attempt)
) STRICT;

-- Values. `worker` is null for a value of all workers.
CREATE TABLE sample (
    trial_id INTEGER NOT NULL REFERENCES trial (id),
    phase    TEXT NOT NULL,
    metric   TEXT NOT NULL,
    unit     TEXT NOT NULL,
    worker   INTEGER,
    value    REAL NOT NULL
) STRICT;
CREATE INDEX sample_trial ON sample (trial_id);

-- Latency histograms of a phase, merged over workers; `docs/reference/run-file.md` describes the encoding.
-- `kind`: all (operations, reads and writes), read, write, service (open loop: from start of service to
-- completion), submission and completion (io_uring: submission, submission to completion), sync (sync calls in
-- the loop), or a replayed operation.
CREATE TABLE histogram (
    trial_id INTEGER NOT NULL REFERENCES trial (id),
    phase    TEXT NOT NULL,
    kind     TEXT NOT NULL,
    counts   BLOB NOT NULL,
    PRIMARY KEY (trial_id, phase, kind)
) STRICT;

-- Operations and bytes of a phase per time interval, merged over workers. LEB128 varints: format (1), start
-- (CLOCK_MONOTONIC, ns), interval length (ns), number of intervals, then operations and bytes per interval.
CREATE TABLE series (
    trial_id INTEGER NOT NULL REFERENCES trial (id),
    phase    TEXT NOT NULL,
    counts   BLOB NOT NULL,
    PRIMARY KEY (trial_id, phase)
) STRICT;

-- System activity during a phase or a lifecycle step, as JSON: devices, CPU time by consumer, PSI, gauges over
-- time, kernel messages, monitoring overhead, and unavailable values. Times in nanoseconds, sizes in bytes. A
-- value that the kernel does not provide is null or missing, never 0.
CREATE TABLE system_activity (
    trial_id INTEGER NOT NULL REFERENCES trial (id),
    phase    TEXT NOT NULL,
    body     TEXT NOT NULL,
    PRIMARY KEY (trial_id, phase)
) STRICT;

-- Hosts of a run on several hosts, from 0. Empty for a run on one host.
CREATE TABLE host (
    idx  INTEGER PRIMARY KEY,
    name TEXT NOT NULL
) STRICT;

-- Results of one host in a measured phase. Instants are CLOCK_MONOTONIC of the conducting host; the clock of the
-- host was `clock_offset_ns` ahead, with an error of at most `clock_bound_ns`. Network counters cover all
-- interfaces except the loopback interface; null: not available. `histogram` contains the latencies of all
-- operations, `series` the operations and bytes over time.
CREATE TABLE host_result (
    trial_id         INTEGER NOT NULL REFERENCES trial (id),
    phase            TEXT NOT NULL,
    host_idx         INTEGER NOT NULL REFERENCES host (idx),
    operations       INTEGER NOT NULL,
    bytes            INTEGER NOT NULL,
    started_ns       INTEGER NOT NULL,
    ended_ns         INTEGER NOT NULL,
    clock_offset_ns  INTEGER NOT NULL,
    clock_bound_ns   INTEGER NOT NULL,
    received_bytes   INTEGER,
    sent_bytes       INTEGER,
    received_packets INTEGER,
    sent_packets     INTEGER,
    retransmitted    INTEGER,
    histogram        BLOB NOT NULL,
    series           BLOB NOT NULL,
    PRIMARY KEY (trial_id, phase, host_idx)
) STRICT;

-- System activity of one host during a measured phase, as in `system_activity`.
CREATE TABLE host_activity (
    trial_id INTEGER NOT NULL REFERENCES trial (id),
    phase    TEXT NOT NULL,
    host_idx INTEGER NOT NULL REFERENCES host (idx),
    body     TEXT NOT NULL,
    PRIMARY KEY (trial_id, phase, host_idx)
) STRICT;

-- Warnings. `trial_id` is null for the whole run, `phase` is null for the whole trial.
CREATE TABLE warning (
    trial_id INTEGER REFERENCES trial (id),
    phase    TEXT,
    code     TEXT NOT NULL,
    severity TEXT NOT NULL,                -- info, warning, blocking
    message  TEXT NOT NULL,
    data     TEXT NOT NULL                 -- JSON, the values of the message
) STRICT;

-- Changes of the machine, in order.
CREATE TABLE action (
    trial_id    INTEGER NOT NULL REFERENCES trial (id),
    position    INTEGER NOT NULL,
    description TEXT NOT NULL,
    elapsed_ns  INTEGER NOT NULL,
    error       TEXT NOT NULL,             -- empty on success
    PRIMARY KEY (trial_id, position)
) STRICT;

-- Environment facts. `trial_id` is null for facts at the start of the run; otherwise the fact differs in that
-- trial.
CREATE TABLE environment (
    trial_id INTEGER REFERENCES trial (id),
    name     TEXT NOT NULL,
    value    TEXT NOT NULL
) STRICT;

-- All valid values with their filesystem and workload, without A/A duplicates.
CREATE VIEW result AS
SELECT cell.filesystem, cell.label AS workload, sample.phase, sample.metric, sample.unit,
       trial.repetition, sample.worker, sample.value
FROM sample
JOIN trial ON trial.id = sample.trial_id
JOIN cell ON cell.idx = trial.cell_idx
WHERE trial.outcome = 'measured' AND cell.aa_duplicate = 0;
