//! Names of sections and files.

use super::values::{self, Base};

/// Names in a list, which `:` separates and `\:` contains.
pub(super) fn split_names(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let last = names.last_mut().expect("never empty");
        match c {
            '\\' if chars.peek() == Some(&':') => {
                last.push(':');
                chars.next();
            }
            ':' => names.push(String::new()),
            c => last.push(c),
        }
    }
    names
}

/// True if the path is below /dev, except for the tmpfs of shared memory.
pub(super) fn is_device(name: &str) -> bool {
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    name.starts_with('/')
        && parts.first() == Some(&"dev")
        && !(parts.get(1) == Some(&"shm") && parts.len() > 2)
}

/// File and size in the place of a device.
pub(super) fn mapped(name: &str, map: &[String]) -> Result<Option<(String, u64)>, String> {
    for entry in map {
        let parsed = || {
            let (from, target) = entry.split_once('=')?;
            let (file, size) = target.rsplit_once(':')?;
            let size = values::size(size, Base::Binary).ok().filter(|size| *size > 0)?;
            Some((from, file.to_owned(), size))
        };
        let Some((from, file, size)) = parsed() else {
            return Err(format!("map `{entry}` is not DEVICE=FILE:SIZE"));
        };
        if from == name {
            if is_device(&file) {
                return Err(format!("map `{entry}` names a device again; use a file"));
            }
            return Ok(Some((file, size)));
        }
    }
    Ok(None)
}

/// Checks the name of a section.
pub(super) fn check_name(name: &str) -> Result<(), String> {
    if name.trim().is_empty() {
        return Err("the section has no name".into());
    }
    if name.len() > 200 || name.contains(char::is_control) || name.contains(['[', ']']) {
        return Err("the name of the section is too long or has control characters".into());
    }
    if name.contains("{worker}") || matches!(name, "." | "..") {
        return Err("the name of the section cannot be part of a file name".into());
    }
    Ok(())
}
