//! Resumption of a run after a reboot, by a systemd unit that is started at the next boot.
//!
//! The unit must still exist after fslab has exited, so it is not an entry of an undo journal. When
//! the unit starts fslab, fslab first removes the unit. `fslab clean` removes it, too. After an
//! unplanned reboot, such as a kernel crash caused by the run, there is no unit, so the run does
//! not resume.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::host::Host;

const UNIT: &str = "fslab-resume.service";

/// Directory of local units (systemd.unit(5)).
const DIRECTORY: &str = "/etc/systemd/system";

/// First line of the unit file, by which a unit of fslab is recognized.
const MARK: &str = "# Written by fslab; resumes one run after a reboot.";

/// Reasons why a run cannot resume automatically after a reboot.
#[derive(Debug, Error)]
pub enum ResumeError {
    /// systemd or root privileges are missing.
    #[error(
        "{problem}, so the run cannot resume automatically; reboot the machine and continue \
         with `fslab run --resume`"
    )]
    Unavailable {
        /// Missing requirement.
        problem: &'static str,
    },
    /// Another run has installed a unit and is waiting for the reboot.
    #[error(
        "another run is waiting for a reboot ({}); let it resume, or remove it with `fslab clean`",
        .path.display()
    )]
    UnitExists {
        /// Path of the unit.
        path: PathBuf,
    },
    /// A file could not be written or removed.
    #[error("{what} {}", .path.display())]
    File {
        /// Operation.
        what: &'static str,
        /// File.
        path: PathBuf,
        /// Error of the system call.
        source: io::Error,
    },
    /// systemctl(1) failed.
    #[error("`{command}` {verdict}")]
    Systemctl {
        /// Command line.
        command: String,
        /// Exit status and output.
        verdict: String,
    },
}

/// Checks that a unit can be installed and will be started at the next boot.
///
/// # Errors
/// [`ResumeError::Unavailable`] with the missing requirement.
pub fn available(host: &dyn Host) -> Result<(), ResumeError> {
    // Documented test for a running systemd, sd_booted(3).
    let problem = if host.entry(Path::new("/run/systemd/system")).is_err() {
        "systemd is not the init process"
    } else if host.find("systemctl").is_none() {
        "systemctl not found"
    } else if !host.is_root() {
        "only root can write a unit"
    } else {
        return Ok(());
    };
    Err(ResumeError::Unavailable { problem })
}

/// Writes and enables a unit that runs `argv` in `directory` at the next boot.
///
/// # Errors
/// [`ResumeError`]. A unit that was written before the error is removed.
pub fn install_unit(host: &dyn Host, argv: &[String], directory: &Path) -> Result<(), ResumeError> {
    available(host)?;
    let control = |text: &str| text.contains(char::is_control);
    if control(&directory.display().to_string()) || argv.iter().any(|argument| control(argument)) {
        return Err(ResumeError::Unavailable { problem: "a path contains a control character" });
    }
    let path = path();
    host.create(&path, &text(argv, directory)).map_err(|source| {
        let path = path.clone();
        if source.kind() == io::ErrorKind::AlreadyExists {
            return ResumeError::UnitExists { path };
        }
        ResumeError::File { what: "writing", path, source }
    })?;
    let enabled = systemctl(host, &["daemon-reload"]).and_then(|()| {
        systemctl(host, &["enable", UNIT])?;
        host.sync(&path).map_err(|source| ResumeError::File { what: "syncing", path, source })
    });
    enabled.inspect_err(|_| drop(remove_unit(host, None)))
}

/// Removes the unit if fslab wrote it and its command line has the argument `word`; `None` stands
/// for any command line. Returns true if the unit was removed.
///
/// # Errors
/// [`ResumeError::File`] if the unit exists and cannot be removed.
pub fn remove_unit(host: &dyn Host, word: Option<&str>) -> Result<bool, ResumeError> {
    let path = path();
    let ours = |text: String| {
        text.starts_with(MARK) && word.is_none_or(|word| text.contains(&quoted(word)))
    };
    if !host.read(&path).is_ok_and(ours) {
        return Ok(false);
    }
    // An error is ignored: a unit that is not enabled cannot be disabled, and removing the file is
    // sufficient.
    let _ = systemctl(host, &["disable", UNIT]);
    host.remove_file(&path).map_err(|source| ResumeError::File {
        what: "removing",
        path,
        source,
    })?;
    let _ = systemctl(host, &["daemon-reload"]);
    Ok(true)
}

/// Reboots the machine. Returns while the machine is shutting down.
///
/// # Errors
/// [`ResumeError::Systemctl`].
pub fn reboot(host: &dyn Host) -> Result<(), ResumeError> {
    systemctl(host, &["reboot"])
}

fn path() -> PathBuf {
    Path::new(DIRECTORY).join(UNIT)
}

fn systemctl(host: &dyn Host, arguments: &[&str]) -> Result<(), ResumeError> {
    let argv: Vec<String> =
        std::iter::once("systemctl").chain(arguments.iter().copied()).map(Into::into).collect();
    let command = argv.join(" ");
    match host.run(&argv) {
        Ok(output) if output.success() => Ok(()),
        Ok(output) => Err(ResumeError::Systemctl { command, verdict: output.verdict() }),
        Err(error) => Err(ResumeError::Systemctl { command, verdict: error.to_string() }),
    }
}

/// Text of the unit file. With `Type=idle` the run starts after the other jobs of the boot are
/// dispatched (systemd.service(5)).
fn text(argv: &[String], directory: &Path) -> String {
    let command: Vec<String> = argv.iter().map(|argument| quoted(argument)).collect();
    format!(
        "{MARK}\n[Unit]\nDescription=Resume an fslab run\nAfter=local-fs.target \
         multi-user.target\n\n[Service]\nType=idle\nWorkingDirectory={}\nExecStart={}\n\
         KillMode=mixed\nTimeoutStopSec=infinity\n\n[Install]\nWantedBy=multi-user.target\n",
        directory.display().to_string().replace('%', "%%"),
        command.join(" ")
    )
}

/// Quotes an argument according to systemd.service(5), COMMAND LINES: in double quotes, with
/// specifiers, variables, and escapes made literal.
fn quoted(argument: &str) -> String {
    let mut text = String::from("\"");
    for letter in argument.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            '%' | '$' => text.extend([letter, letter]),
            _ => text.push(letter),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::FakeHost;

    fn argv() -> Vec<String> {
        ["/usr/bin/fslab", "run", "--resume", "/srv/my runs/50% \"$x\".fslab"]
            .map(Into::into)
            .into()
    }

    #[test]
    fn arguments_are_quoted_for_systemd() {
        let text = text(&argv(), Path::new("/srv/my runs"));
        assert!(text.starts_with(MARK));
        assert!(text.contains(
            "ExecStart=\"/usr/bin/fslab\" \"run\" \"--resume\" \"/srv/my runs/50%% \\\"$$x\\\".fslab\"\n"
        ));
        assert!(text.contains("WorkingDirectory=/srv/my runs\n"));
    }

    #[test]
    fn no_unit_is_written_without_systemd() {
        let temp = tempfile::TempDir::new().unwrap();
        let host = FakeHost::new(temp.path());
        let error = install_unit(&host, &argv(), Path::new("/srv")).unwrap_err();
        assert!(error.to_string().contains("reboot the machine"), "{error}");
        assert!(host.read(&path()).is_err());
        assert!(!remove_unit(&host, None).unwrap());
    }

    #[test]
    fn a_unit_belongs_to_one_run_which_removes_it() {
        let temp = tempfile::TempDir::new().unwrap();
        let answer = crate::host::Output { status: Some(0), ..crate::host::Output::default() };
        let host = FakeHost::new(temp.path())
            .file("/run/systemd/system/x", "")
            .file("/etc/systemd/system/other.service", "")
            .program("systemctl", [answer]);
        install_unit(&host, &argv(), Path::new("/srv")).unwrap();
        assert!(host.done().contains(&"systemctl enable fslab-resume.service".to_owned()));
        let existing = install_unit(&host, &argv(), Path::new("/srv"));
        assert!(matches!(existing, Err(ResumeError::UnitExists { .. })));
        assert!(!remove_unit(&host, Some("/srv/another.fslab")).unwrap(), "another run's");
        assert!(remove_unit(&host, Some(&argv()[3])).unwrap());
        assert!(host.read(&path()).is_err());
        assert!(host.done().contains(&"systemctl disable fslab-resume.service".to_owned()));
    }

    #[test]
    fn foreign_units_are_not_removed() {
        let temp = tempfile::TempDir::new().unwrap();
        let unit = format!("{DIRECTORY}/{UNIT}");
        let host = FakeHost::new(temp.path()).file(&unit, "[Unit]\n");
        assert!(!remove_unit(&host, None).unwrap());
        assert_eq!(host.read(&path()).unwrap(), "[Unit]\n");
    }
}
