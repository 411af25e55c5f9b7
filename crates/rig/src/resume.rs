//! Going on after a boot: a unit of systemd that resumes one run when the machine is up again.
//!
//! The unit outlives the session that writes it, so it is no entry of an undo journal: it is taken
//! away by the session that it starts before that does anything else, and by `fslab clean`. A boot
//! that the run itself brings about, by a crash of the kernel, therefore starts nothing, and a
//! machine is booted at most once for each trial that was kept.

use std::{
    io,
    path::{Path, PathBuf},
};

use thiserror::Error;

use crate::host::Host;

/// Name of the unit.
const UNIT: &str = "fslab-resume.service";

/// Where the administrator's own units lie (systemd.unit(5)).
const DIRECTORY: &str = "/etc/systemd/system";

/// The first line, by which the unit is known to be ours.
const MARK: &str = "# Written by fslab; it goes on with one run after a boot.";

/// Why a run cannot go on by itself after a boot.
#[derive(Debug, Error)]
pub enum ResumeError {
    /// No systemd, or not root.
    #[error(
        "{problem}, so nothing can start the rest of the run; boot the machine by hand and go on \
         with `fslab run --resume`"
    )]
    Unavailable {
        /// What is missing.
        problem: &'static str,
    },
    /// Another run waits for a boot.
    #[error(
        "another run waits for a boot already ({}); let it go on, or take it away with `fslab clean`",
        .path.display()
    )]
    Taken {
        /// The unit.
        path: PathBuf,
    },
    /// A file could not be written or removed.
    #[error("{what} {}", .path.display())]
    File {
        /// What was being done.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// systemctl(1) failed.
    #[error("`{command}` {verdict}")]
    Systemctl {
        /// The command.
        command: String,
        /// How it ended, and what it said.
        verdict: String,
    },
}

/// Whether a unit can be written and started at boot.
///
/// # Errors
/// [`ResumeError::Unavailable`] says what is missing.
pub fn available(host: &dyn Host) -> Result<(), ResumeError> {
    // The documented test for a running systemd, sd_booted(3).
    let problem = if host.entry(Path::new("/run/systemd/system")).is_err() {
        "systemd does not run this machine"
    } else if host.find("systemctl").is_none() {
        "there is no systemctl"
    } else if !host.is_root() {
        "only root may write a unit"
    } else {
        return Ok(());
    };
    Err(ResumeError::Unavailable { problem })
}

/// Writes the unit that runs `argv` in `directory` at the next boot, and enables it.
///
/// # Errors
/// [`ResumeError`]; nothing of ours is left behind then.
pub fn arm(host: &dyn Host, argv: &[String], directory: &Path) -> Result<(), ResumeError> {
    available(host)?;
    let control = |text: &str| text.contains(char::is_control);
    if control(&directory.display().to_string()) || argv.iter().any(|argument| control(argument)) {
        return Err(ResumeError::Unavailable {
            problem: "a path has a line break or the like in it",
        });
    }
    let path = path();
    host.create(&path, &text(argv, directory)).map_err(|source| {
        let path = path.clone();
        if source.kind() == io::ErrorKind::AlreadyExists {
            return ResumeError::Taken { path };
        }
        ResumeError::File { what: "writing", path, source }
    })?;
    let enabled = systemctl(host, &["daemon-reload"]).and_then(|()| {
        systemctl(host, &["enable", UNIT])?;
        host.sync(&path).map_err(|source| ResumeError::File { what: "flushing", path, source })
    });
    enabled.inspect_err(|_| drop(disarm(host, None)))
}

/// Takes the unit away if it is there, ours, and has this word among its arguments (any, for
/// `None`); whether it did.
///
/// # Errors
/// [`ResumeError`] when it stays.
pub fn disarm(host: &dyn Host, word: Option<&str>) -> Result<bool, ResumeError> {
    let path = path();
    let ours = |text: String| {
        text.starts_with(MARK) && word.is_none_or(|word| text.contains(&quoted(word)))
    };
    if !host.read(&path).is_ok_and(ours) {
        return Ok(false);
    }
    // What is not enabled cannot be disabled; the file is what matters.
    let _ = systemctl(host, &["disable", UNIT]);
    host.remove_file(&path).map_err(|source| ResumeError::File {
        what: "removing",
        path,
        source,
    })?;
    let _ = systemctl(host, &["daemon-reload"]);
    Ok(true)
}

/// Boots the machine; returns while it goes down.
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

/// `Type=idle` waits until the other jobs of the boot are dispatched (systemd.service(5)).
fn text(argv: &[String], directory: &Path) -> String {
    let command: Vec<String> = argv.iter().map(|argument| quoted(argument)).collect();
    format!(
        "{MARK}\n[Unit]\nDescription=The rest of an fslab run\nAfter=local-fs.target \
         multi-user.target\n\n[Service]\nType=idle\nWorkingDirectory={}\nExecStart={}\n\
         KillMode=mixed\nTimeoutStopSec=infinity\n\n[Install]\nWantedBy=multi-user.target\n",
        directory.display().to_string().replace('%', "%%"),
        command.join(" ")
    )
}

/// An argument as systemd.service(5), COMMAND LINES, takes it: in double quotes, with its
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
    fn arguments_come_out_of_systemd_as_they_went_in() {
        let text = text(&argv(), Path::new("/srv/my runs"));
        assert!(text.starts_with(MARK));
        assert!(text.contains(
            "ExecStart=\"/usr/bin/fslab\" \"run\" \"--resume\" \"/srv/my runs/50%% \\\"$$x\\\".fslab\"\n"
        ));
        assert!(text.contains("WorkingDirectory=/srv/my runs\n"));
    }

    #[test]
    fn without_systemd_nothing_is_written() {
        let folder = tempfile::TempDir::new().unwrap();
        let host = FakeHost::new(folder.path());
        let error = arm(&host, &argv(), Path::new("/srv")).unwrap_err();
        assert!(error.to_string().contains("boot the machine by hand"), "{error}");
        assert!(host.read(&path()).is_err());
        assert!(!disarm(&host, None).unwrap());
    }

    #[test]
    fn a_unit_is_enabled_belongs_to_one_run_and_is_taken_away_by_it() {
        let folder = tempfile::TempDir::new().unwrap();
        let answer = crate::host::Output { status: Some(0), ..crate::host::Output::default() };
        let host = FakeHost::new(folder.path())
            .file("/run/systemd/system/x", "")
            .file("/etc/systemd/system/other.service", "")
            .program("systemctl", [answer]);
        arm(&host, &argv(), Path::new("/srv")).unwrap();
        assert!(host.done().contains(&"systemctl enable fslab-resume.service".to_owned()));
        let taken = arm(&host, &argv(), Path::new("/srv"));
        assert!(matches!(taken, Err(ResumeError::Taken { .. })));
        assert!(!disarm(&host, Some("/srv/another.fslab")).unwrap(), "another run's");
        assert!(disarm(&host, Some(&argv()[3])).unwrap());
        assert!(host.read(&path()).is_err());
        assert!(host.done().contains(&"systemctl disable fslab-resume.service".to_owned()));
    }

    #[test]
    fn a_unit_of_somebody_else_stays() {
        let folder = tempfile::TempDir::new().unwrap();
        let unit = format!("{DIRECTORY}/{UNIT}");
        let host = FakeHost::new(folder.path()).file(&unit, "[Unit]\n");
        assert!(!disarm(&host, None).unwrap());
        assert_eq!(host.read(&path()).unwrap(), "[Unit]\n");
    }
}
