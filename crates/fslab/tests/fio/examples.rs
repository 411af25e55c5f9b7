//! Examples of fio, from a checkout or an installed package: each runs, or is rejected because of a
//! known option.

use std::{
    collections::BTreeMap,
    env, fs,
    path::{Path, PathBuf},
};

use super::fslab_fio;
use crate::support::{Bench, skipped};

/// Names of examples of fio 3.33, and `runs`, with the arguments that put files in the place of
/// devices, or the option or variable in the line that is rejected first.
const VERDICTS: &str = include_str!("examples.tsv");

/// Examples of a Debian package.
const INSTALLED: &str = "/usr/share/doc/fio/examples";

fn directories() -> Vec<PathBuf> {
    let own = env::var_os("FSLAB_FIO_EXAMPLES").map(PathBuf::from);
    let all = own.into_iter().chain([PathBuf::from(INSTALLED)]);
    all.filter(|directory| directory.is_dir()).collect()
}

/// Option in the first line that is rejected, or `runs`.
fn verdict(bench: &Bench, path: &Path, arguments: &str) -> String {
    let name = path.display().to_string();
    let all: Vec<&str> =
        [name.as_str(), "--parse-only"].into_iter().chain(arguments.split_whitespace()).collect();
    let ended = fslab_fio(bench, &all);
    if ended.status == Some(0) {
        return "runs".into();
    }
    let at = ended.stderr.lines().find_map(|line| {
        let rest = line.split_once(&format!("{name}:"))?.1;
        rest.split(':').next()?.parse::<usize>().ok()
    });
    let at = at.unwrap_or_else(|| panic!("{name} is rejected without a line: {}", ended.stderr));
    let text = fs::read_to_string(path).unwrap();
    let line = text.lines().nth(at - 1).unwrap();
    line.split(['=', ';', '#']).next().unwrap().trim().to_owned()
}

#[test]
fn examples_of_fio_run_or_are_rejected_for_a_known_option() {
    let test = "examples_of_fio_run_or_are_rejected_for_a_known_option";
    let directories = directories();
    if directories.is_empty() {
        return skipped(test, "FSLAB_FIO_EXAMPLES");
    }
    let known: BTreeMap<&str, (&str, &str)> = VERDICTS
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, rest)| (name, rest.split_once('\t').unwrap_or((rest, ""))))
        .collect();
    let bench = Bench::new();
    let mut found = BTreeMap::new();
    for directory in directories {
        let entries = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        for path in entries.filter(|path| path.extension().is_some_and(|own| own == "fio")) {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let arguments = known.get(name.as_str()).map_or("", |(_, arguments)| arguments);
            found.insert(name.clone(), verdict(&bench, &path, arguments));
        }
    }
    assert!(!found.is_empty(), "no example was found");
    // Other versions of fio have other examples, which are only read.
    let differs = |(name, verdict): &(&String, &String)| {
        known.get(name.as_str()).is_some_and(|(own, _)| own != verdict)
    };
    let different: Vec<_> = found.iter().filter(differs).collect();
    assert!(different.is_empty(), "{different:?}");
    let compared = found.keys().filter(|name| known.contains_key(name.as_str())).count();
    assert!(compared > 40, "only {compared} of {} examples are known", found.len());
}

#[test]
fn verdicts_are_sorted_and_unique() {
    let names: Vec<&str> = VERDICTS.lines().map(|line| line.split_once('\t').unwrap().0).collect();
    assert!(names.is_sorted() && names.windows(2).all(|pair| pair[0] != pair[1]));
}
