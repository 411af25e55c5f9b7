//! Suggestions for unknown names: similar names, and names of other benchmarks.

/// Names that users know from fio, IOzone, bonnie++, dbench, and mount tables, each with the
/// corresponding names of fslab. The first of these names that exists in the context is suggested.
const FAMILIAR: &[(&str, &[&str])] = &[
    ("bs", &["block_size"]),
    ("blocksize", &["block_size"]),
    ("record", &["block_size"]),
    ("chunk", &["block_size"]),
    ("bssplit", &["block_size_split"]),
    ("rw", &["direction", "access_pattern"]),
    ("readwrite", &["direction", "access_pattern"]),
    ("pattern", &["access_pattern"]),
    ("rwmixread", &["read_fraction"]),
    ("numjobs", &["workers", "clients"]),
    ("jobs", &["workers", "clients"]),
    ("threads", &["workers", "clients"]),
    ("processes", &["workers", "clients"]),
    ("iodepth", &["queue_depth"]),
    ("qd", &["queue_depth"]),
    ("ioengine", &["io_engine"]),
    ("engine", &["io_engine"]),
    ("size", &["file_size", "image_size", "file_size_mean", "large_file_size"]),
    ("filesize", &["file_size", "file_size_mean"]),
    ("nrfiles", &["files"]),
    ("time", &["runtime"]),
    ("duration", &["runtime"]),
    ("timeout", &["time_limit", "runtime"]),
    ("budget", &["time_limit"]),
    ("ramp", &["ramp_time"]),
    ("warmup", &["ramp_time"]),
    ("thinktime", &["think_time"]),
    ("fsync", &["fsync_every"]),
    ("fdatasync", &["fsync_every"]),
    ("sync", &["o_sync", "sync_after", "fsync_each", "read"]),
    ("psync", &["pread"]),
    ("pvsync2", &["preadv2"]),
    ("libaio", &["io_uring"]),
    ("posixaio", &["io_uring"]),
    ("dedupe_percentage", &["duplicate_fraction"]),
    ("buffer_compress_percentage", &["incompressible_fraction"]),
    ("loops", &["repetitions", "passes"]),
    ("repeat", &["repetitions"]),
    ("repeats", &["repetitions"]),
    ("runs", &["repetitions"]),
    ("mem", &["memory_limit"]),
    ("memory", &["memory_limit"]),
    ("image", &["image_size"]),
    ("fs", &["filesystem"]),
    ("fstype", &["type", "filesystem"]),
    ("base", &["type"]),
    ("mkfs", &["mkfs_options"]),
    ("mount", &["mount_options"]),
    ("options", &["mount_options"]),
    ("recipe", &["preset"]),
    ("full", &["fill_percent"]),
    ("iops", &["ops_rate"]),
    ("bw", &["throughput"]),
    ("lat", &["latency_p50"]),
    ("p50", &["latency_p50"]),
    ("p99", &["latency_p99"]),
];

/// Suggestion for an unknown name among the names `known`: the name of fslab that corresponds to a
/// name of another program, otherwise a similar name, otherwise a name with a similar beginning
/// (`randread` suggests `randread-4k`).
///
/// Similarity is the optimal string alignment distance (insert, delete, replace, swap neighboring
/// letters), and ignores case. At most a third of the letters of the word may differ, but one
/// letter may always differ. Beginnings are compared only for words of at least three letters.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    if let Some(found) = familiar(word, &known) {
        return Some(found);
    }
    let word = &word.to_lowercase();
    let letters = word.chars().count();
    let similar = |beginning: bool| {
        let limit = (letters / 3).max(1);
        let rated =
            known.iter().map(|name| (distance(word, &name.to_lowercase(), beginning), *name));
        rated.filter(|(distance, _)| *distance <= limit).min().map(|(_, name)| name)
    };
    similar(false).or_else(|| if letters >= 3 { similar(true) } else { None })
}

/// Name among `known` that corresponds to a name of another program.
pub fn familiar<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let (_, names) = FAMILIAR.iter().find(|(name, _)| *name == word)?;
    names.iter().find_map(|name| known.iter().find(|known| *known == name).copied())
}

/// Distance of `a` from `b`, or from the most similar beginning of `b`.
fn distance(a: &str, b: &str, beginning: bool) -> usize {
    let a: Vec<char> = a.chars().collect();
    let b: Vec<char> = b.chars().collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    let last = &rows[a.len()];
    if beginning { *last.iter().min().unwrap_or(&0) } else { last[b.len()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested() {
        let known = ["filesystem", "workload", "scheduler"];
        assert_eq!(nearest("filesytem", known), Some("filesystem"));
        assert_eq!(nearest("wrokload", known), Some("workload"));
        assert_eq!(nearest("Workload", known), Some("workload"));
        assert_eq!(nearest("FILESYTEM", known), Some("filesystem"));
        assert_eq!(nearest("colour", known), None);
        assert_eq!(nearest("", known), None);
    }

    #[test]
    fn beginnings_of_names_are_suggested() {
        let known = ["randread-4k", "randwrite-4k", "seqread-1m"];
        assert_eq!(nearest("randraed", known), Some("randread-4k"));
        assert_eq!(nearest("seqread", known), Some("seqread-1m"));
        assert_eq!(nearest("oltp", known), None);
        assert_eq!(nearest("se", known), None, "too short");
    }

    #[test]
    fn names_of_other_programs_are_suggested_if_the_context_has_them() {
        let known = ["block_size", "queue_depth", "clients"];
        assert_eq!(nearest("bs", known), Some("block_size"));
        assert_eq!(nearest("numjobs", known), Some("clients"));
        assert_eq!(nearest("ioengine", known), None);
        assert_eq!(nearest("libaio", ["pread", "io_uring"]), Some("io_uring"));
    }
}
