//! User of programs, by name or number.

use std::{fmt, fs};

use model::phase::command::SAME_USER;

use super::UserId;

/// User of the programs: `None` for the user of this process.
///
/// # Errors
/// If the user is unknown, or another user without root.
pub fn user(name: &str) -> Result<Option<UserId>, String> {
    if name == SAME_USER {
        return Ok(None);
    }
    let own = rustix::process::geteuid();
    if !own.is_root() {
        let same = name.is_empty() || known(name).is_some_and(|it| it.user == own.as_raw());
        return match same {
            true => Ok(None),
            false => Err(format!("running programs as {name} requires root; remove `user`")),
        };
    }
    // nobody: DEFAULT_OVERFLOWUID in include/linux/highuid.h.
    let nobody = UserId { user: 65534, group: 65534 };
    let variable = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    match name {
        "root" => Ok(None),
        "" => match (variable("SUDO_UID"), variable("SUDO_GID")) {
            (Some(user @ 1..), Some(group)) => Ok(Some(UserId { user, group })),
            _ => Ok(Some(known("nobody").unwrap_or(nobody))),
        },
        name => match known(name) {
            Some(UserId { user: 0, .. }) => Ok(None),
            Some(user) => Ok(Some(user)),
            None => Err(format!("unknown user `{name}`; use a name or number of /etc/passwd")),
        },
    }
}

impl fmt::Display for UserId {
    /// Name of the user, or the number if it has none.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match entries().into_iter().find(|(_, own)| own.user == self.user) {
            Some((name, _)) => to.write_str(&name),
            None => write!(to, "{}", self.user),
        }
    }
}

/// User of /etc/passwd, by name or number.
fn known(name: &str) -> Option<UserId> {
    let named = |(own, id): &(String, UserId)| own == name || id.user.to_string() == name;
    entries().into_iter().find(named).map(|(_, id)| id)
}

/// Users of /etc/passwd (passwd(5)) with their names.
fn entries() -> Vec<(String, UserId)> {
    let text = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let entry = |line: &str| {
        let fields: Vec<&str> = line.split(':').collect();
        let [name, _, user, group, ..] = fields[..] else { return None };
        Some((name.to_owned(), UserId { user: user.parse().ok()?, group: group.parse().ok()? }))
    };
    text.lines().filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_runs_programs_as_another_user() {
        match rustix::process::geteuid().is_root() {
            true => {
                assert!(user("").unwrap().is_some_and(|user| user.user != 0));
                assert_eq!(known("root").unwrap().to_string(), "root");
                let unnamed = UserId { user: 4_000_000_000, group: 0 };
                assert_eq!(unnamed.to_string(), "4000000000");
                assert_eq!(user("root"), Ok(None));
                assert!(user("no such user").is_err());
            }
            false => assert!(user("").unwrap().is_none() && user("root").is_err()),
        }
    }
}
