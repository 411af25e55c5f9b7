//! Programs that the commands of a plan need.

use std::io;

use model::{
    Environment, Phase,
    phase::{Command, Work, command::Argv},
};
use rig::programs::{self, user};

/// Programs and their Debian packages, for hints.
const PACKAGES: [(&str, &str); 14] = [
    ("ar", "binutils"),
    ("cc", "gcc"),
    ("cp", "coreutils"),
    ("db_bench", "rocksdb-tools"),
    ("dpkg", "dpkg"),
    ("dpkg-deb", "dpkg"),
    ("fio", "fio"),
    ("gcc", "gcc"),
    ("git", "git"),
    ("initdb", "postgresql"),
    ("make", "make"),
    ("pgbench", "postgresql"),
    ("rsync", "rsync"),
    ("tar", "tar"),
];

fn commands(phases: &[Phase]) -> impl Iterator<Item = &Command> {
    phases.iter().filter_map(|phase| {
        let Work::Command(command) = &phase.work else { return None };
        Some(&**command)
    })
}

/// First word of a program, unless it is a path in the directory under test.
fn name(program: &Argv) -> Option<&str> {
    program.first().map(String::as_str).filter(|name| !name.contains('{'))
}

/// Reason why the commands of these phases cannot run.
pub(super) fn missing(phases: &[Phase], guests: bool) -> Option<String> {
    if guests && phases.iter().any(|phase| matches!(phase.work, Work::Trace(_))) {
        return Some("guests cannot read recordings of the host; measure without --guest".into());
    }
    commands(phases).next()?;
    if guests {
        return Some("guests cannot run programs of the host; measure without --guest".into());
    }
    commands(phases).find_map(|command| {
        let user = match user(&command.user) {
            Ok(user) => user,
            Err(why) => return Some(why),
        };
        command.programs().filter_map(name).find_map(|name| {
            let error = programs::find(name, user).err()?;
            Some(reason(name, &error))
        })
    })
}

fn reason(name: &str, error: &io::Error) -> String {
    let package = PACKAGES.iter().find(|(program, _)| *program == name);
    match (error.kind(), package) {
        (io::ErrorKind::NotFound, Some((_, package))) => {
            format!("{name} is not installed; install the package {package}")
        }
        (io::ErrorKind::NotFound, None) => format!("{name} is not installed; install it"),
        _ => error.to_string(),
    }
}

/// Facts about the programs of these phases.
pub(super) fn facts(phases: &[Phase]) -> Environment {
    let mut facts = Environment::default();
    for command in commands(phases) {
        let Ok(user) = user(&command.user) else { continue };
        for name in command.programs().filter_map(name) {
            let key = format!("command.{}", name.rsplit('/').next().unwrap_or(name));
            let path = programs::find(name, user).and_then(|path| path.canonicalize());
            if let (None, Ok(path)) = (facts.get(&key), path) {
                facts.set(key, programs::describe(&path));
            }
        }
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_named_with_its_package() {
        let gone = io::Error::from(io::ErrorKind::NotFound);
        let text = reason("rsync", &gone);
        assert_eq!(text, "rsync is not installed; install the package rsync");
        assert_eq!(reason("deliver", &gone), "deliver is not installed; install it");
    }

    #[test]
    fn guests_skip_commands_only() {
        let phases = |name: &str| {
            let suite = suites::find(name).unwrap();
            (suite.phases)(&suite.spec.defaults(), 1)
        };
        assert!(missing(&phases("command"), true).unwrap().starts_with("guests cannot run"));
        assert_eq!(missing(&phases("command"), false), None);
        assert_eq!(missing(&phases("sqlite"), true), None);
    }
}
