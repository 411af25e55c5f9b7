//! User that accesses the files: the options `-u` and `-g` of bonnie++.
//!
//! As root, the program starts itself again as this user, before anything is measured. All files,
//! including the run file, then belong to the user.

use std::{ffi::OsString, fs, os::unix::process::CommandExt, process::Command};

use super::PROGRAM;
use crate::{
    commands::front_ends::options::{Given, Parsed, wrong},
    exit::Failure,
};

/// User of the files.
#[derive(Debug, PartialEq, Eq)]
struct User {
    user: u32,
    group: u32,
    /// Home directory, for the default state directory.
    home: Option<String>,
}

/// Starts the program again as the user of `-u`, if root called it with another user. Returns if
/// there is nothing to change, or if the arguments are wrong, which is reported later.
///
/// # Errors
/// If the program cannot be started.
pub(in crate::commands) fn change(arguments: &[String]) -> Result<(), Failure> {
    let is_root = rustix::process::geteuid().is_root();
    let Ok(Parsed::Run(given)) = PROGRAM.parse(arguments) else { return Ok(()) };
    let Ok(Some(user)) = asked(&given) else { return Ok(()) };
    if !is_root || user.user == 0 {
        return Ok(());
    }
    let mut words: std::collections::VecDeque<OsString> = std::env::args_os().collect();
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = words.pop_front() {
        command.arg0(name);
    }
    // Supplementary groups of root are removed with the change of the user.
    command.args(words).uid(user.user).gid(user.group);
    if let Some(home) = &user.home {
        command.env("HOME", home);
    }
    let error = command.exec();
    Err(anyhow::Error::from(error).context("starting fslab as the user of -u").into())
}

/// Checks the user of a command line.
///
/// # Errors
/// If root does not name a user, or another user than root names a different one.
pub(super) fn check(given: &Given) -> Result<(), Failure> {
    let own = rustix::process::geteuid().as_raw();
    match asked(given)? {
        None if own == 0 => Err(wrong(
            "-u is missing: root must name the user that accesses the files; use -u NAME, or -u root"
                .into(),
        )),
        Some(user) if user.user != own => Err(wrong(format!(
            "-u {}: only root can change the user; remove -u",
            given.last("-u").unwrap_or_default()
        ))),
        Some(_) | None => Ok(()),
    }
}

/// User and group of `-u` and `-g`.
fn asked(given: &Given) -> Result<Option<User>, Failure> {
    let Some(text) = given.last("-u") else {
        return match given.has("-g") {
            true => Err(wrong("-g requires -u; use -u USER:GROUP".into())),
            false => Ok(None),
        };
    };
    let (name, group) = match text.split_once(':') {
        Some((name, group)) => (name, Some(group)),
        None => (text, given.last("-g")),
    };
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let mut user = found(&passwd, name)
        .and_then(|fields| {
            let [_, _, user, group, _, home, ..] = fields[..] else { return None };
            let (user, group) = (user.parse().ok()?, group.parse().ok()?);
            Some(User { user, group, home: Some(home.to_owned()) })
        })
        .or_else(|| Some(User { user: name.parse().ok()?, group: name.parse().ok()?, home: None }))
        .ok_or_else(|| wrong(format!("-u {text}: unknown user; use a name or a number")))?;
    if let Some(group) = group {
        let groups = fs::read_to_string("/etc/group").unwrap_or_default();
        let number = found(&groups, group).and_then(|fields| fields.get(2)?.parse().ok());
        user.group = number
            .or_else(|| group.parse().ok())
            .ok_or_else(|| wrong(format!("{group}: unknown group; use a name or a number")))?;
    }
    Ok(Some(user))
}

/// Fields of the line of passwd(5) or group(5) with this name or number.
fn found<'a>(text: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let lines = text.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut lines =
        lines.filter(|fields| fields.first() == Some(&name) || fields.get(2) == Some(&name));
    lines.next()
}
