//! Values of options about files, CPUs, and logs. Each reader returns the canonical text, which it
//! also accepts.

use model::phase::CpuList;

use super::values::{self, Base, MOST, number, word};

pub(super) fn read_files(text: &str, _: Base) -> Result<String, String> {
    number(text, 1, 100_000)
}

/// Number of files; 0 is all of them.
pub(super) fn read_files_or_all(text: &str, _: Base) -> Result<String, String> {
    number(text, 0, 100_000)
}

/// Selection of the next file, with the operations per file.
pub(super) fn read_service(text: &str, _: Base) -> Result<String, String> {
    let (name, turn) = text.split_once(':').unwrap_or((text, "1"));
    if matches!(name.trim(), "zipf" | "pareto" | "normal" | "gauss") {
        return Err(format!("skewed selection of files (`{name}`) is not supported; use random"));
    }
    let turn = number(turn, 1, MOST)?;
    let known = [("random", "random"), ("roundrobin", "roundrobin"), ("sequential", "sequential")];
    let name = word(name, &known)?;
    // A file of a sequential order is used to its end.
    Ok(if turn == "1" || name == "sequential" { name } else { format!("{name}:{turn}") })
}

/// CPUs or NUMA nodes such as `0-3,8`.
pub(super) fn numbers(text: &str) -> Result<Vec<u32>, String> {
    let bad = |part: &str| format!("`{part}` is not a number from 0 to {}", CpuList::LARGEST);
    let cpu = |part: &str| match part.trim().parse::<u32>() {
        Ok(cpu) if cpu <= CpuList::LARGEST => Ok(cpu),
        _ => Err(bad(part)),
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            None => all.push(cpu(part)?),
            Some((first, last)) => all.extend(cpu(first)?..=cpu(last)?),
        }
    }
    all.sort_unstable();
    all.dedup();
    if all.is_empty() { Err(format!("`{text}` has no number")) } else { Ok(all) }
}

pub(super) fn read_cpus(text: &str, _: Base) -> Result<String, String> {
    let all: Vec<String> = numbers(text)?.iter().map(u32::to_string).collect();
    Ok(all.join(","))
}

/// NUMA nodes; `all` is any CPU.
pub(super) fn read_nodes(text: &str, base: Base) -> Result<String, String> {
    if text.trim() == "all" { Ok(String::new()) } else { read_cpus(text, base) }
}

/// Value of an interval: mean (0) or maximum (1).
pub(super) fn read_window(text: &str, base: Base) -> Result<String, String> {
    match text.trim() {
        "avg" => Ok("0".into()),
        "max" => Ok("1".into()),
        "both" => Err("both values of an interval are not supported; use avg or max".into()),
        text => values::read_flag(text, base),
    }
}

/// Exponent of the number of joined bins.
pub(super) fn read_coarseness(text: &str, _: Base) -> Result<String, String> {
    number(text, 0, 6)
}

pub(super) fn read_mask(text: &str, _: Base) -> Result<String, String> {
    number(text, 1, u64::from(u32::MAX))
}

pub(super) fn read_policy(text: &str, _: Base) -> Result<String, String> {
    word(text, &[("shared", "shared"), ("split", "split")])
}

/// Name of logs; without one, the name of the section.
pub(super) fn read_log(text: &str, _: Base) -> Result<String, String> {
    match text.trim() {
        "" => Ok("$jobname".into()),
        text if text.split('/').any(|part| part == "..") || text.ends_with('/') => {
            Err(format!("`{text}` is not the name of a log; use a name without `..`"))
        }
        text => Ok(text.to_owned()),
    }
}

pub(super) fn read_milliseconds(text: &str, _: Base) -> Result<String, String> {
    number(text, 0, 1 << 40)
}
