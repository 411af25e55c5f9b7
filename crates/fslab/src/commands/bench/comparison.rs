//! Error of `fslab bench` for options that compare filesystems, with the equivalent `fslab run`
//! command.

use model::Bytes;
use rig::Catalog;

use crate::{
    cli::{Axes, Bench, Changes},
    exit::Failure,
    plans::ResolvedPlan,
};

/// Minimum size of a suggested image. Of the common filesystems, xfs has the largest minimum size,
/// 300 MiB.
const SMALLEST: Bytes = Bytes::mib(512);

/// Rejects options of `fslab run`. The message contains an equivalent `fslab run` command.
///
/// # Errors
/// If such an option is given.
pub(super) fn check(arguments: &Bench, workload: &str) -> Result<(), Failure> {
    let options = &arguments.comparison;
    if options.filesystem.is_none() && options.image.is_none() && options.device.is_none() {
        return Ok(());
    }
    let mut words = vec!["fslab".to_owned(), "run".to_owned(), workload.to_owned()];
    let mut option = |name: &str, value: &str| words.extend([name.to_owned(), quoted(value)]);
    option("--filesystem", options.filesystem.as_deref().unwrap_or("ext4,xfs"));
    match (&options.device, &options.image) {
        (Some(device), _) => option("--device", device),
        (None, Some(image)) => option("--image", image),
        (None, None) => option("--image", &image_size(arguments, workload)?.to_string()),
    }
    settings(arguments).iter().for_each(|(key, value)| option("--set", &format!("{key}={value}")));
    if arguments.repetitions != 1 {
        option("--repetitions", &arguments.repetitions.to_string());
    }
    if let Some(output) = &arguments.output {
        option("-o", &output.display().to_string());
    }
    let flags = [(arguments.quiet, "-q"), (arguments.json, "--json")];
    words.extend(flags.iter().filter(|(given, _)| *given).map(|(_, flag)| (*flag).to_owned()));
    Err(Failure::usage(anyhow::anyhow!(
        "fslab bench measures one directory as it is mounted; to compare filesystems, use: {}",
        words.join(" ")
    )))
}

/// Parameters of the workload that the arguments set.
fn settings(arguments: &Bench) -> Vec<(String, String)> {
    let option = |key: &str, value: &Option<String>| Some((key.to_owned(), value.clone()?));
    let options =
        [option("runtime", &arguments.runtime), option("file_size", &arguments.file_size)];
    options.into_iter().flatten().chain(arguments.set.iter().cloned()).collect()
}

/// Image size for the files of the workload: a power of two. At least 20 % of the image is reserve.
///
/// # Errors
/// If a parameter is invalid.
fn image_size(arguments: &Bench, workload: &str) -> Result<Bytes, Failure> {
    let changes = Changes {
        axes: Axes {
            filesystem: vec!["ext4".into()],
            // Large enough for any workload.
            image: Some("1048576TiB".into()),
            ..Axes::default()
        },
        scale: "1".into(),
        profile: None,
        set: settings(arguments),
        guest: None,
        kernel: Vec::new(),
        catalog: None,
    };
    let plan = ResolvedPlan::new(&[workload.to_owned()], &changes, &Catalog::embedded())?;
    let needed = plan.footprint().0.saturating_mul(5) / 4;
    Ok(Bytes(needed.max(SMALLEST.0).checked_next_power_of_two().unwrap_or(needed)))
}

/// Word for a POSIX shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_for_the_shell() {
        assert_eq!(quoted("block_size=4KiB,1MiB"), "block_size=4KiB,1MiB");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's $x"), r"'it'\''s $x'");
        assert_eq!(quoted(""), "''");
    }
}
