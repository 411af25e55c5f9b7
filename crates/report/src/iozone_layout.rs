//! Layout of the text of IOzone 3.471: columns of its single-stream mode, and workers of its
//! throughput mode, with the names of their tests in suite `iozone`.

/// Column of the single-stream mode: test, two lines of the head, width of head and values in
/// characters, and title of its table by file size and block size.
pub(crate) struct Column {
    pub(crate) test: &'static str,
    pub(crate) head: [&'static str; 2],
    pub(crate) head_width: usize,
    pub(crate) width: usize,
    pub(crate) table: &'static str,
}

const fn column(
    test: &'static str,
    head: [&'static str; 2],
    [head_width, width]: [usize; 2],
    table: &'static str,
) -> Column {
    Column { test, head, head_width, width, table }
}

/// Columns in the order and widths of IOzone 3.471, as observed. Heads and values of IOzone also
/// differ in width.
pub(crate) const COLUMNS: [Column; 17] = [
    column("write", ["", "write"], [9, 9], "Writer"),
    column("rewrite", ["", "rewrite"], [9, 9], "Re-writer"),
    column("read", ["", "read"], [8, 9], "Reader"),
    column("reread", ["", "reread"], [10, 9], "Re-Reader"),
    column("random-read", ["random", "read"], [8, 9], "Random read"),
    column("random-write", ["random", "write"], [10, 9], "Random write"),
    column("backward-read", ["bkwd", "read"], [9, 9], "Backward read"),
    column("record-rewrite", ["record", "rewrite"], [10, 10], "Record rewrite"),
    column("strided-read", ["stride", "read"], [10, 10], "Stride read"),
    column("fwrite", ["", "fwrite"], [9, 9], "Fwrite"),
    column("frewrite", ["", "frewrite"], [9, 9], "Re-Fwrite"),
    column("fread", ["", "fread"], [9, 9], "Fread"),
    column("freread", ["", "freread"], [9, 9], "Re-Fread"),
    column("pwrite", ["", "pwrite"], [8, 9], "Pwrite"),
    column("repwrite", ["", "repwrite"], [9, 9], "Re-Pwrite"),
    column("pread", ["", "pread"], [8, 8], "Pread"),
    column("repread", ["", "repread"], [10, 9], "Re-Pread"),
];

/// Number of columns that are always shown. The others are shown only if they were measured.
pub(crate) const ALWAYS: usize = 13;

/// Tests of the throughput mode: name in fslab, name of the workers in the lines of IOzone, and row
/// in the table of `-R`.
pub(crate) const WORKERS: [(&str, &str, &str); 13] = [
    ("initial-write", "initial writers", "Initial write"),
    ("rewrite", "rewriters", "Rewrite"),
    ("read", "readers", "Read"),
    ("reread", "re-readers", "Re-read"),
    ("backward-read", "reverse readers", "Reverse Read"),
    ("strided-read", "stride readers", "Stride read"),
    ("random-read", "random readers", "Random read"),
    ("mixed", "mixed workload", "Mixed workload"),
    ("random-write", "random writers", "Random write"),
    ("pwrite", "pwrite writers", "Pwrite"),
    ("pread", "pread readers", "Pread"),
    ("fwrite", "fwriters", "Fwrite"),
    ("fread", "freaders", "Fread"),
];
