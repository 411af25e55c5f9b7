//! Job options as workload parameters.

use std::collections::BTreeMap;

use model::{Bytes, Value};

use super::document::Options;

/// Options that do not describe the workload: names, paths, and output.
const OMITTED: [&str; 24] = [
    "name",
    "description",
    "filename",
    "directory",
    "filename_format",
    "opendir",
    "group_reporting",
    "per_job_logs",
    "log_avg_msec",
    "log_hist_msec",
    "log_offset",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "write_hist_log",
    "percentile_list",
    "clat_percentiles",
    "lat_percentiles",
    "slat_percentiles",
    "disk_util",
    "significant_figures",
    "eta_interval",
    "error_dump",
    "verify_state_save",
];

/// Options with the same meaning in fslab: name in fio, synonyms, and name in fslab.
const RENAMED: [(&[&str], &str); 6] = [
    (&["bs", "blocksize"], "block_size"),
    (&["iodepth"], "queue_depth"),
    (&["numjobs"], "workers"),
    (&["ioengine"], "io_engine"),
    (&["filesize"], "file_size"),
    (&["rw", "readwrite"], "rw"),
];

/// Workload parameters of a job, from the global options and the options of the job, which take
/// precedence.
pub(super) fn parameters(global: &Options, own: &Options) -> BTreeMap<String, Value> {
    let mut all: BTreeMap<&str, &serde_json::Value> = BTreeMap::new();
    for (name, value) in global.iter().chain(own) {
        all.insert(name, value);
    }
    let decimal = all.get("kb_base").is_some_and(|base| text(base) == "1000");
    let mut parameters = BTreeMap::new();
    for (name, value) in all {
        if OMITTED.contains(&name) {
            continue;
        }
        let renamed = RENAMED.iter().find(|(names, _)| names.contains(&name));
        let own = renamed.map_or(name, |(_, own)| own);
        let text = text(value);
        let typed = match own {
            "block_size" | "file_size" | "size" | "io_size" if !decimal => {
                size(&text).map(Value::Size)
            }
            "queue_depth" | "workers" => text.parse().ok().map(Value::Count),
            _ => None,
        };
        parameters.insert(own.to_owned(), typed.unwrap_or(Value::Word(text)));
    }
    parameters
}

/// Value of an option as in the job file. An option without a value is true.
fn text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "1".into(),
        serde_json::Value::String(text) if text.is_empty() => "1".into(),
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Bool(_)
        | serde_json::Value::Number(_)
        | serde_json::Value::Array(_)
        | serde_json::Value::Object(_) => value.to_string(),
    }
}

/// Single size in units of 1024 (`k`, `kb`, `m`, …), as fio reads it by default. Sizes with `i`
/// (`kib`), lists, and percentages are not converted.
fn size(text: &str) -> Option<Bytes> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..digits].parse().ok()?;
    let power = match text[digits..].to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" => 1,
        "m" | "mb" => 2,
        "g" | "gb" => 3,
        "t" | "tb" => 4,
        _ => return None,
    };
    number.checked_mul(1024_u64.checked_pow(power)?).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> Options {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn options_have_the_names_and_types_of_fslab_without_paths() {
        let global = options(r#"{"bs":"4k","ioengine":"libaio","directory":"/mnt/x"}"#);
        let own = options(r#"{"bs":"64kb","iodepth":"32","time_based":"","filename":"a"}"#);
        let parameters = parameters(&global, &own);
        let words: Vec<String> =
            parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            words,
            ["block_size=64KiB", "io_engine=libaio", "queue_depth=32", "time_based=1"]
        );
        assert_eq!(parameters["block_size"], Value::Size(Bytes::kib(64)));
        assert_eq!(parameters["queue_depth"], Value::Count(32));
    }

    #[test]
    fn sizes_with_several_meanings_stay_text() {
        for (text, expected) in [
            ("4k", Some(4096)),
            ("512", Some(512)),
            ("1GB", Some(1 << 30)),
            ("4kib", None),
            ("4k,8k", None),
            ("50%", None),
            ("99999999999g", None),
        ] {
            assert_eq!(size(text).map(|size| size.0), expected, "{text}");
        }
        let decimal = parameters(&options(r#"{"kb_base":"1000"}"#), &options(r#"{"bs":"4k"}"#));
        assert_eq!(decimal["block_size"], Value::Word("4k".into()));
    }
}
