//! Checks of catalog entries.

use model::suggest::nearest;

use super::{Filesystem, Kind};

/// Placeholders that arguments and options may contain.
const PLACEHOLDERS: [&str; 8] =
    ["device", "devices", "options", "size", "mount", "directory", "name", "source"];

impl Filesystem {
    /// Checks an entry. The error consists of a message and a hint.
    pub(super) fn check(&self) -> Result<(), (String, String)> {
        let bad = |message: String, hint: &str| Err((message, hint.to_owned()));
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if self.name.is_empty() || !self.name.chars().all(letters) {
            let message = format!("`{}` is not a valid filesystem name", self.name);
            return bad(message, "use lower-case letters, digits, and dashes");
        }
        if self.kind == Kind::Block && (self.mkfs.is_empty() || self.fstype.is_empty()) {
            let message = format!("`{}` has no `mkfs` or no `fstype`", self.name);
            return bad(message, "set both, or use kind = \"memory\" or \"directory\"");
        }
        self.check_commands()?;
        let many = self.multi_device.iter().flat_map(|many| many.mkfs.iter().chain([&many.mount]));
        let own = self.mkfs.iter().chain(&self.fsck).chain([&self.mount]).chain(many);
        let own = own.chain(&self.mount_command).chain(&self.umount_command);
        let texts = own.chain(&self.features.argv).chain(&self.threads);
        for name in texts.flat_map(|text| placeholders(text)) {
            if !PLACEHOLDERS.contains(&name) {
                let hint = match nearest(name, PLACEHOLDERS) {
                    Some(near) => format!("did you mean `{{{near}}}`?"),
                    None => {
                        let names: Vec<_> = PLACEHOLDERS.map(|name| format!("{{{name}}}")).into();
                        format!("use one of {}", names.join(", "))
                    }
                };
                return Err((format!("unknown placeholder `{{{name}}}`"), hint));
            }
        }
        let has = |argv: &[String], word: &str| argv.iter().any(|argument| argument == word);
        if self.kind == Kind::Block && !has(&self.mkfs, "{device}") {
            let message = format!("mkfs of `{}` has no device argument", self.name);
            return bad(message, "add \"{device}\"");
        }
        if self.multi_device.as_ref().is_some_and(|many| !has(&many.mkfs, "{devices}")) {
            let message = format!("multi_device.mkfs of `{}` has no device arguments", self.name);
            return bad(message, "add \"{devices}\"");
        }
        Ok(())
    }

    /// Checks the keys of a filesystem that a command mounts.
    fn check_commands(&self) -> Result<(), (String, String)> {
        let bad = |message: String, hint: &str| Err((message, hint.to_owned()));
        let by_command = self.is_mounted_by_command();
        if self.kind == Kind::Command && (!by_command || self.fstype.is_empty()) {
            let message = format!("`{}` has no `mount_command` or no `fstype`", self.name);
            return bad(message, "set both");
        }
        let further = self.mkfs_mounts || !self.umount_command.is_empty();
        if further && !by_command {
            let message = format!("`{}` has no `mount_command`", self.name);
            return bad(message, "set it, or remove `mkfs_mounts` and `umount_command`");
        }
        let names = |argument: &String| argument.contains("{mount}") || argument.contains("{name}");
        if by_command && !self.mount_command.iter().any(names) {
            let message = format!("mount_command of `{}` has no mount point", self.name);
            return bad(message, "add \"{mount}\"");
        }
        Ok(())
    }
}

fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}
