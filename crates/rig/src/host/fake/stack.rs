//! Arrays and mapped devices of a simulated host: the effects of `mdadm` and `dmsetup` on the files
//! of the host.

use std::{
    collections::BTreeMap,
    fs, io,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use crate::host::Output;

/// Number of sectors of every array, regardless of its members.
const ARRAY: &str = "131072\n";

/// Stacked devices, by kernel name.
#[derive(Debug, Default)]
pub(super) struct Stack {
    devices: BTreeMap<String, Stacked>,
    /// UUID in the superblock of each member of an array, by device node.
    superblocks: BTreeMap<String, String>,
    /// Tables that are loaded but not active yet, by device-mapper name.
    loaded: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Stacked {
    link: PathBuf,
    name: String,
    uuid: String,
}

impl Stack {
    /// Executes a command on the files of the host and returns its result; `None` for a command
    /// that is not simulated here.
    pub(super) fn run(
        &mut self,
        root: &Path,
        argv: &[String],
        input: &str,
    ) -> io::Result<Option<Output>> {
        let words: Vec<&str> = argv.iter().map(String::as_str).collect();
        let new = match words.as_slice() {
            ["dmsetup", "create", name, ..] => Some(*name),
            ["mdadm", "--create", node, ..] => node.rsplit('/').next(),
            _ => None,
        };
        if new.is_some_and(|new| self.devices.values().any(|it| it.name == new)) {
            let stderr = "Device or resource busy\n".into();
            return Ok(Some(Output { status: Some(1), stderr, ..Output::default() }));
        }
        let done = match words.as_slice() {
            ["dmsetup", "create", name, "--uuid", uuid] => {
                let mut table = input.split(' ');
                let length = table.nth(1).unwrap_or("0");
                let below: Vec<&str> =
                    input.split(' ').filter(|word| word.starts_with("/dev/")).collect();
                let link = format!("dev/mapper/{name}");
                self.add(root, "dm-", &link, (name, uuid), &format!("{length}\n"), &below)?
            }
            ["dmsetup", "message", name, "0", "enable"] => fail(root, name, true)?,
            ["dmsetup", "message", name, "0", "disable"] => fail(root, name, false)?,
            ["dmsetup", "message", ..] => String::new(),
            ["dmsetup", "load", name] => {
                self.loaded.insert((*name).to_owned(), input.to_owned());
                String::new()
            }
            ["dmsetup", "resume", .., name] => match self.loaded.remove(*name) {
                // A `flakey` table that ends with `1 0` has no down interval, so the device does
                // not fail.
                Some(table) => fail(root, name, !table.ends_with(" 1 0"))?,
                None => String::new(),
            },
            ["dmsetup", "status", _] => "0 131072 log-writes 12 4096\n".to_owned(),
            ["dmsetup", "info", ..] => {
                let mapped = self.devices.iter().filter(|(kernel, _)| kernel.starts_with("dm-"));
                mapped.map(|(_, it)| format!("{}:{}\n", it.name, it.uuid)).collect()
            }
            ["dmsetup", "remove", name] => self.remove(root, |_, it| it.name == *name)?,
            ["mdadm", "--create", node, rest @ ..] => {
                let option = |key: &str| rest.iter().find_map(|word| word.strip_prefix(key));
                let uuid = option("--uuid=").unwrap_or_default();
                let below: Vec<&str> =
                    rest.iter().copied().filter(|word| !word.starts_with("--")).collect();
                for member in &below {
                    self.superblocks.insert((*member).to_owned(), uuid.to_owned());
                }
                let name = node.rsplit('/').next().unwrap_or_default();
                let link = node.trim_start_matches('/');
                self.add(root, "md12", link, (name, uuid), ARRAY, &below)?
            }
            ["mdadm", "--detail", "--export", node] => {
                let found = self.devices.get(node.trim_start_matches("/dev/"));
                found.map(|it| format!("MD_UUID={}\n", it.uuid)).unwrap_or_default()
            }
            ["mdadm", "--stop", node] => {
                let kernel = node.trim_start_matches("/dev/").to_owned();
                self.remove(root, |name, _| *name == kernel)?
            }
            ["mdadm", "--examine", "--export", member] => {
                let found = self.superblocks.get(*member);
                found.map(|uuid| format!("MD_UUID={uuid}\n")).unwrap_or_default()
            }
            ["mdadm", "--zero-superblock", member] => {
                self.superblocks.remove(*member);
                String::new()
            }
            _ => return Ok(None),
        };
        Ok(Some(Output { status: Some(0), stdout: done, ..Output::default() }))
    }

    fn add(
        &mut self,
        root: &Path,
        prefix: &str,
        link: &str,
        (name, uuid): (&str, &str),
        size: &str,
        below: &[&str],
    ) -> io::Result<String> {
        let mut numbers = 0..;
        let kernel = numbers.find_map(|number: u32| {
            let kernel = format!("{prefix}{number}");
            (!self.devices.contains_key(&kernel)).then_some(kernel)
        });
        let kernel = kernel.ok_or(io::ErrorKind::Other)?;
        let class = root.join("sys/class/block").join(&kernel);
        fs::create_dir_all(class.join("dm"))?;
        fs::write(class.join("size"), size)?;
        fs::write(class.join("dev"), format!("254:{}\n", self.devices.len()))?;
        fs::write(class.join("dm/name"), format!("{name}\n"))?;
        for member in below {
            let node = root.join(member.trim_start_matches('/'));
            let node = node.canonicalize().unwrap_or(node);
            fs::create_dir_all(class.join("slaves").join(node.file_name().unwrap_or_default()))?;
        }
        let node = root.join("dev").join(&kernel);
        let link = root.join(link);
        fs::create_dir_all(link.parent().unwrap_or(root))?;
        fs::write(&node, "")?;
        symlink(&node, &link)?;
        let (name, uuid) = (name.to_owned(), uuid.to_owned());
        self.devices.insert(kernel, Stacked { link, name, uuid });
        Ok(String::new())
    }

    fn remove(
        &mut self,
        root: &Path,
        is: impl Fn(&String, &Stacked) -> bool,
    ) -> io::Result<String> {
        let found = self.devices.iter().find(|(kernel, it)| is(kernel, it));
        let kernel = found.map(|(kernel, _)| kernel.clone()).ok_or(io::ErrorKind::NotFound)?;
        if let Some(stacked) = self.devices.remove(&kernel) {
            fs::remove_file(stacked.link)?;
        }
        fs::remove_file(root.join("dev").join(&kernel))?;
        fs::remove_dir_all(root.join("sys/class/block").join(&kernel))?;
        Ok(String::new())
    }
}

/// Creates the file `/failing/NAME` for a device that starts to fail, and removes it when the
/// faults are disabled.
fn fail(root: &Path, name: &str, fails: bool) -> io::Result<String> {
    let faults = root.join("failing");
    fs::create_dir_all(&faults)?;
    match fails {
        true => fs::write(faults.join(name), "")?,
        // Disabling faults twice is harmless.
        false => drop(fs::remove_file(faults.join(name))),
    }
    Ok(String::new())
}
