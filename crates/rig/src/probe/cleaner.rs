//! Whether something gives back the room of what was overwritten, where that is a program's work.

use std::path::Path;

use model::Environment;

use crate::{host::Host, mount::MountEntry};

/// The program that cleans segments of NILFS2 (nilfs_cleanerd(8)). mount.nilfs2(8) starts it with
/// the device and the mount point as its last arguments; mount(2) starts none.
const CLEANER: &str = "nilfs_cleanerd";

/// Of a mount of NILFS2, the cleaner that runs for it: `filesystem.nilfs2.cleaner` is `none`, or
/// its arguments, in which a protection period other than that of its configuration shows. Of other
/// filesystems nothing.
pub(crate) fn cleaner(host: &dyn Host, mount: &MountEntry) -> Environment {
    let mut facts = Environment::default();
    if mount.fstype != "nilfs2" {
        return facts;
    }
    let Ok(names) = host.list(Path::new("/proc")) else { return facts };
    let target = mount.target.display().to_string();
    let arguments = |process: &String| {
        let folder = Path::new("/proc").join(process);
        // A name costs less to look at than arguments, which are in the process's own memory.
        let named = host.read(&folder.join("comm")).is_ok_and(|name| name.trim() == CLEANER);
        let line = named.then(|| host.read(&folder.join("cmdline")).ok()).flatten()?;
        let words: Vec<&str> = line.split('\0').skip(1).filter(|word| !word.is_empty()).collect();
        let ours = words.iter().any(|word| [&mount.source, &target].iter().any(|it| it == word));
        ours.then(|| words.join(" "))
    };
    let processes = names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let running = processes.filter_map(arguments).next();
    let told = running.map_or_else(|| "none".into(), |words| format!("{CLEANER} {words}"));
    facts.set("filesystem.nilfs2.cleaner", told);
    facts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::FakeHost;

    fn mount(fstype: &str) -> MountEntry {
        MountEntry {
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
    fn the_cleaner_of_this_mount_is_found_and_that_of_another_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let host = FakeHost::new(folder.path())
            .file("/proc/1/comm", "systemd\n")
            .file("/proc/77/comm", "nilfs_cleanerd\n")
            .file("/proc/77/cmdline", "/sbin/nilfs_cleanerd\0-n\0/dev/sdb\0/srv\0");
        let told = |host: &FakeHost, fstype| {
            let facts = cleaner(host, &mount(fstype));
            facts.get("filesystem.nilfs2.cleaner").map(str::to_owned)
        };
        assert_eq!(told(&host, "nilfs2").as_deref(), Some("none"));
        assert_eq!(told(&host, "ext4"), None);
        let host = host.file("/proc/78/comm", "nilfs_cleanerd\n").file(
            "/proc/78/cmdline",
            &["/sbin/nilfs_cleanerd", "-n", "-p", "0", "/dev/loop3", "/mnt/log", ""].join("\0"),
        );
        let line = "nilfs_cleanerd -n -p 0 /dev/loop3 /mnt/log";
        assert_eq!(told(&host, "nilfs2").as_deref(), Some(line));
    }
}
