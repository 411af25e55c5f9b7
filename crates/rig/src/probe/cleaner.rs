//! State of the segment cleaner of NILFS2, a program that releases overwritten space.

use std::path::Path;

use model::Environment;

use crate::{host::Host, mount::MountEntry};

/// Name of the cleaner (nilfs_cleanerd(8)). mount.nilfs2(8) starts it with the device and the mount
/// point as the last arguments; the mount system calls do not start it.
const CLEANER: &str = "nilfs_cleanerd";

/// Fact `filesystem.nilfs2.cleaner` of a NILFS2 mount: the command line of its cleaner, which may
/// set the protection period, or `none` if no cleaner is running. Empty for other filesystems.
pub(crate) fn cleaner(host: &dyn Host, mount: &MountEntry) -> Environment {
    let mut facts = Environment::default();
    if mount.fstype != "nilfs2" {
        return facts;
    }
    let Ok(names) = host.list(Path::new("/proc")) else { return facts };
    let target = mount.target.display().to_string();
    let arguments = |process: &String| {
        let directory = Path::new("/proc").join(process);
        // The name is compared first, because reading it takes less time than reading the
        // arguments, which are in the memory of the process.
        let named = host.read(&directory.join("comm")).is_ok_and(|name| name.trim() == CLEANER);
        let line = named.then(|| host.read(&directory.join("cmdline")).ok()).flatten()?;
        let words: Vec<&str> = line.split('\0').skip(1).filter(|word| !word.is_empty()).collect();
        let ours = words.iter().any(|word| [&mount.source, &target].iter().any(|it| it == word));
        ours.then(|| words.join(" "))
    };
    let processes = names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let running = processes.filter_map(arguments).next();
    let value = running.map_or_else(|| "none".into(), |words| format!("{CLEANER} {words}"));
    facts.set("filesystem.nilfs2.cleaner", value);
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::FakeHost;

    fn mount(fstype: &str) -> MountEntry {
        MountEntry {
            id: 1,
            device: "7:3".into(),
            root: "/".into(),
            target: "/mnt/log".into(),
            options: "rw".into(),
            fstype: fstype.into(),
            source: "/dev/loop3".into(),
            super_options: String::new(),
        }
    }

    #[test]
    fn only_the_cleaner_of_this_mount_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let host = FakeHost::new(directory.path())
            .file("/proc/1/comm", "systemd\n")
            .file("/proc/77/comm", "nilfs_cleanerd\n")
            .file("/proc/77/cmdline", "/sbin/nilfs_cleanerd\0-n\0/dev/sdb\0/srv\0");
        let value = |host: &FakeHost, fstype| {
            let facts = cleaner(host, &mount(fstype));
            facts.get("filesystem.nilfs2.cleaner").map(str::to_owned)
        };
        assert_eq!(value(&host, "nilfs2").as_deref(), Some("none"));
        assert_eq!(value(&host, "ext4"), None);
        let host = host.file("/proc/78/comm", "nilfs_cleanerd\n").file(
            "/proc/78/cmdline",
            &["/sbin/nilfs_cleanerd", "-n", "-p", "0", "/dev/loop3", "/mnt/log", ""].join("\0"),
        );
        let line = "nilfs_cleanerd -n -p 0 /dev/loop3 /mnt/log";
        assert_eq!(value(&host, "nilfs2").as_deref(), Some(line));
    }
}
