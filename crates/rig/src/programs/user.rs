//! User of programs, by name or number.

use std::fs;

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

/// User of /etc/passwd (passwd(5)), by name or number.
fn known(name: &str) -> Option<UserId> {
    let text = fs::read_to_string("/etc/passwd").ok()?;
    text.lines().find_map(|line| {
        let fields: Vec<&str> = line.split(':').collect();
        let [own, _, user, group, ..] = fields[..] else { return None };
        let user_id = UserId { user: user.parse().ok()?, group: group.parse().ok()? };
        (own == name || user == name).then_some(user_id)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_runs_programs_as_another_user() {
        match rustix::process::geteuid().is_root() {
            true => {
                assert!(user("").unwrap().is_some_and(|user| user.user != 0));
                assert_eq!(user("root"), Ok(None));
                assert!(user("no such user").is_err());
            }
            false => assert!(user("").unwrap().is_none() && user("root").is_err()),
        }
    }
}
