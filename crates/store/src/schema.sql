-- One run of fslab. Base units throughout (bytes, nanoseconds, per second); the unit is in the column's
-- name or in `sample.unit`. Times of day are nanoseconds since 1970-01-01 UTC.

-- The run itself: id, title, plan (byte for byte), seed, scale, profile, view (the published study
-- whose tables the report shows first), program … as JSON values.
CREATE TABLE run (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT;

-- One point of the matrix. `id` is the hash of `definition` and equal on every host.
CREATE TABLE cell (
    idx        INTEGER PRIMARY KEY,   -- position in the plan, from 0
    id         TEXT NOT NULL UNIQUE,
    filesystem TEXT NOT NULL,
    suite      TEXT NOT NULL,
    label      TEXT NOT NULL,         -- suite and the parameters the plan varies
    definition TEXT NOT NULL,         -- JSON, every parameter
    state      TEXT NOT NULL,         -- open, done, skipped, failed
    reason     TEXT NOT NULL,         -- the rule or the cause behind the state
    -- 1: measured as if it were another cell, to show what chance alone does; leave it out of comparisons.
    twin       INTEGER NOT NULL DEFAULT 0
) STRICT;

-- The phases of a cell's trials, in order.
CREATE TABLE phase (
    cell_idx       INTEGER NOT NULL REFERENCES cell (idx),
    position       INTEGER NOT NULL,
    name           TEXT NOT NULL,
    heading        TEXT NOT NULL,     -- the group tables collect it under
    role           TEXT NOT NULL,     -- prepare, measure
    primary_metric TEXT NOT NULL,     -- what the phase is judged by
    cache          TEXT,              -- cold, warm, as-left; null where an older run did not keep it
    PRIMARY KEY (cell_idx, position)
) STRICT;

-- One repeat of one cell on a filesystem of its own. Written whole, with everything below, or not at all.
-- A repeat that the machine spoiled is invalid, and made again as the next attempt: at most one attempt of a
-- repeat is measured.
CREATE TABLE trial (
    id              INTEGER PRIMARY KEY,   -- in the order they were made
    cell_idx        INTEGER NOT NULL REFERENCES cell (idx),
    repeat          INTEGER NOT NULL,      -- from 0
    attempt         INTEGER NOT NULL,      -- invalid trials of this repeat before it
    started_unix_ns INTEGER NOT NULL,
    elapsed_ns      INTEGER NOT NULL,
    outcome         TEXT NOT NULL,         -- measured, failed, invalid
    reason          TEXT NOT NULL,         -- why it failed, or what spoiled it
    UNIQUE (cell_idx, repeat, attempt)
) STRICT;

-- One value. `worker` is null for all workers together.
CREATE TABLE sample (
    trial_id INTEGER NOT NULL REFERENCES trial (id),
    phase    TEXT NOT NULL,
    metric   TEXT NOT NULL,
    unit     TEXT NOT NULL,
    worker   INTEGER,
    value    REAL NOT NULL
) STRICT;
CREATE INDEX sample_trial ON sample (trial_id);

-- Times in a phase, merged over workers; `docs/reference/run-file.md` has the bytes. `kind` says what was
-- timed: all (operations, reads and writes), read, write, service (open loops: from when the worker turned
-- to the operation), submit and complete (queues: until the kernel had it, and from then on), flush (inside
-- the loop).
CREATE TABLE histogram (
    trial_id INTEGER NOT NULL REFERENCES trial (id),
    phase    TEXT NOT NULL,
    kind     TEXT NOT NULL,
    counts   BLOB NOT NULL,
    PRIMARY KEY (trial_id, phase, kind)
) STRICT;

-- Operations and bytes of a phase by interval of time, merged over workers: LEB128 varints of format (1),
-- start, length of an interval (both ns, the start by CLOCK_MONOTONIC), number of intervals, then operations
-- and bytes of each.
CREATE TABLE series (
    trial_id INTEGER NOT NULL REFERENCES trial (id),
    phase    TEXT NOT NULL,
    counts   BLOB NOT NULL,
    PRIMARY KEY (trial_id, phase)
) STRICT;

-- What the machine did during a phase or a life-cycle step, as JSON: devices, CPU time by who used it,
-- pressure, gauges over time, lines of the kernel's log, what it cost to look, and what could not be seen.
-- Times in nanoseconds, sizes in bytes; what the kernel does not tell is null or missing, never 0.
CREATE TABLE evidence (
    trial_id INTEGER NOT NULL REFERENCES trial (id),
    phase    TEXT NOT NULL,
    body     TEXT NOT NULL,
    PRIMARY KEY (trial_id, phase)
) STRICT;

-- What is wrong with a number. `trial_id` null: the run as a whole; `phase` null: the trial as a whole.
CREATE TABLE warning (
    trial_id INTEGER REFERENCES trial (id),
    phase    TEXT,
    code     TEXT NOT NULL,
    level    TEXT NOT NULL,
    message  TEXT NOT NULL,
    data     TEXT NOT NULL                 -- JSON, the figures
) STRICT;

-- What was done to the machine, in order.
CREATE TABLE action (
    trial_id   INTEGER NOT NULL REFERENCES trial (id),
    position   INTEGER NOT NULL,
    what       TEXT NOT NULL,
    elapsed_ns INTEGER NOT NULL,
    trouble    TEXT NOT NULL,
    PRIMARY KEY (trial_id, position)
) STRICT;

-- Facts about the host. `trial_id` null: at the start of the run; else what differed in that trial.
CREATE TABLE environment (
    trial_id INTEGER REFERENCES trial (id),
    name     TEXT NOT NULL,
    value    TEXT NOT NULL
) STRICT;

-- What is asked for most: every value with its filesystem and workload, without what is invalid, and without
-- twins.
CREATE VIEW result AS
SELECT cell.filesystem, cell.label AS workload, sample.phase, sample.metric, sample.unit,
       trial.repeat, sample.worker, sample.value
FROM sample
JOIN trial ON trial.id = sample.trial_id
JOIN cell ON cell.idx = trial.cell_idx
WHERE trial.outcome = 'measured' AND cell.twin = 0;
