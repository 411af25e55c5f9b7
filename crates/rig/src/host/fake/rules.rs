//! Rules of the kernel for writes to settings, as far as the tests need them.
//!
//! Input: the text of a file before the write, and the text written. Output: the files that the
//! write changes, with their new texts. Sources: Documentation/ABI/stable/sysfs-block,
//! Documentation/admin-guide/sysctl/vm.rst, `block/elevator.c`, and `drivers/cpufreq/cpufreq.c`.

use std::{
    io,
    path::{Path, PathBuf},
};

/// `EINVAL`, the error for a value that the kernel rejects.
const INVALID: i32 = 22;

/// Files that a write to `path` changes, with their new texts. `read` returns the text of any other
/// file.
pub(super) fn stored(
    path: &Path,
    before: &str,
    text: &str,
    read: &dyn Fn(&Path) -> Option<String>,
) -> io::Result<Vec<(PathBuf, String)>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let end = if before.ends_with('\n') { "\n" } else { "" };
    let refused = || Err(io::Error::from_raw_os_error(INVALID));
    let number = |text: &str| text.trim().parse::<u64>().unwrap_or(0);
    let mut files = vec![(path.to_owned(), format!("{text}{end}"))];
    match name.as_str() {
        _ if before.contains('[') => {
            let words: Vec<_> =
                before.split_whitespace().map(|w| w.trim_matches(['[', ']'])).collect();
            if !words.contains(&text) {
                return refused();
            }
            let shown = |word: &&str| match *word == text {
                true => format!("[{word}]"),
                false => (*word).to_owned(),
            };
            files[0].1 = words.iter().map(shown).collect::<Vec<_>>().join(" ") + end;
            let depth = path.with_file_name("nr_requests");
            if name == "scheduler" && read(&depth).is_some() {
                files.push((depth, format!("256{end}")));
            }
        }
        "read_ahead_kb" => files[0].1 = format!("{}{end}", number(text) / 4 * 4),
        "nr_requests" if number(text) > 4096 => return refused(),
        "scaling_min_freq" | "scaling_max_freq" => {
            let limit =
                |file: &str| read(&path.with_file_name(file)).map_or(0, |text| number(&text));
            let wrong = match name.as_str() {
                "scaling_min_freq" => number(text) > limit("scaling_max_freq"),
                _ => number(text) < limit("scaling_min_freq"),
            };
            if wrong {
                return refused();
            }
        }
        "online" => {
            let list = path.parent().and_then(Path::parent).unwrap_or(path).join("online");
            let cpu = path.parent().and_then(Path::file_name).unwrap_or_default();
            let number = cpu.to_string_lossy().trim_start_matches("cpu").to_owned();
            if let Some(now) = read(&list) {
                let mut numbers: Vec<_> = now.trim().split(',').map(str::to_owned).collect();
                numbers.retain(|other| *other != number);
                numbers.extend(Some(number).filter(|_| text == "1"));
                numbers.sort();
                files.push((list, format!("{}{end}", numbers.join(","))));
            }
        }
        _ => {
            let faces = [("_ratio", "_bytes"), ("_bytes", "_ratio")];
            let other = faces.iter().find_map(|(own, other)| {
                let stem = name.strip_suffix(own).filter(|stem| stem.starts_with("dirty"))?;
                Some(format!("{stem}{other}"))
            });
            if let Some(other) = other {
                if name.ends_with("_bytes") && number(text) == 0 {
                    return refused();
                }
                files.push((path.with_file_name(other), format!("0{end}")));
            }
        }
    }
    Ok(files)
}
