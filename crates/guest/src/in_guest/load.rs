//! Module loading: modules listed in the configuration, modules of the next trial, and modules that
//! the kernel requests at run time.
//!
//! The host stores dependencies and aliases as tables in the initramfs (`/etc/fslab`), so no module
//! is parsed here. Module parameters come from the kernel command line, as with modprobe(8),
//! followed by those of the configuration.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{CString, OsString},
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

use rustix::io::Errno;

use super::{
    config::{FILE, GuestConfig},
    print_note,
};

/// Directory of loaded modules (sysfs(5)).
const LIVE: &str = "/sys/module";
/// Directory of the modules: `NAME.ko`, uncompressed.
const MODULES: &str = "/lib/fslab/modules";
/// Lines of `alias<TAB>module`.
const ALIASES: &str = "/etc/fslab/aliases";
/// Lines of `module<TAB>dependency dependency ...`.
const DEPENDS: &str = "/etc/fslab/depends";
/// Modules to load at the start, one per line.
const LOAD_ORDER: &str = "/etc/fslab/order";
/// Module requests of the kernel: lines of `name<TAB>loaded` or `name<TAB>error`. The file is in
/// the initramfs, because requests may precede any other mount.
pub(super) const REQUESTS: &str = "/etc/fslab/requests";
/// Outcome of a request whose module was loaded.
const LOADED: &str = "loaded";

/// Normalizes a module name: modules have underscores, but the kernel and users also write hyphens.
fn normalized(name: &str) -> String {
    name.replace('-', "_")
}

/// Parameters by module name, each a string for the kernel.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Parses `module.name=value` from a string such as the kernel command line. Words are
    /// separated by white space outside double quotes (`next_arg`, `lib/cmdline.c`). The kernel
    /// parses module parameters in the same way, so quotes are kept.
    fn add(&mut self, line: &str) {
        let mut quoted = false;
        let words = line.split(|character: char| {
            quoted ^= character == '"';
            character.is_whitespace() && !quoted
        });
        for word in words {
            let end = word.find('=').unwrap_or(word.len());
            let Some((module, _)) = word[..end].split_once('.') else { continue };
            let parameter = &word[module.len() + 1..];
            if parameter.is_empty() || module.contains('"') {
                continue;
            }
            let all = self.0.entry(normalized(module)).or_default();
            if !all.is_empty() {
                all.push(' ');
            }
            all.push_str(parameter);
        }
    }

    fn of(&self, module: &str) -> CString {
        let text = self.0.get(module).map(String::as_str).unwrap_or_default();
        CString::new(text).unwrap_or_default()
    }
}

/// Table of the initramfs that maps a name to other names.
#[derive(Debug, Default, PartialEq, Eq)]
struct Table(BTreeMap<String, Vec<String>>);

impl Table {
    fn of_text(text: &str) -> Self {
        let mut table = Self::default();
        for (name, values) in text.lines().filter_map(|line| line.split_once('\t')) {
            let values = values.split_whitespace().map(normalized);
            table.0.entry(normalized(name)).or_default().extend(values);
        }
        table
    }

    fn get(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Failure to load a module.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// The name is neither a module nor an alias in the initramfs.
    #[error("it is not in the initramfs")]
    Missing,
    /// The kernel rejected a module.
    #[error("the kernel rejected {module}: {source}")]
    Rejected {
        /// Rejected module, possibly a dependency of the requested module.
        module: String,
        /// Cause; the console may have details.
        source: io::Error,
    },
}

/// Module loader.
#[derive(Debug, Default)]
pub(super) struct Loader {
    modules: PathBuf,
    aliases: Table,
    depends: Table,
    parameters: Parameters,
}

impl Loader {
    /// Creates a loader with the tables of the initramfs, if they exist, and the parameters of the
    /// kernel command line and the configuration.
    pub(super) fn new(command_line: &str, config: Option<&GuestConfig>) -> Self {
        let read = |file| Table::of_text(&fs::read_to_string(file).unwrap_or_default());
        let mut parameters = Parameters::default();
        parameters.add(command_line);
        if let Some(config) = config {
            config.parameters.iter().for_each(|parameter| parameters.add(parameter));
            config.device.parameters().iter().for_each(|device| parameters.add(device));
        }
        Self { modules: MODULES.into(), aliases: read(ALIASES), depends: read(DEPENDS), parameters }
    }

    /// Creates a loader with the configuration of this guest.
    fn here() -> Self {
        let command_line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
        let config =
            fs::read_to_string(FILE).ok().and_then(|text| GuestConfig::of_text(&text).ok());
        Self::new(&command_line, config.as_ref())
    }

    /// Modules to load at the start.
    pub(super) fn load_order() -> Vec<String> {
        let text = fs::read_to_string(LOAD_ORDER).unwrap_or_default();
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(normalized).collect()
    }

    /// Modules that match a name: the module of that name, and those with the name as an alias.
    fn targets(&self, name: &str) -> Vec<String> {
        let name = normalized(name);
        let aliased = self.aliases.get(&name).iter().cloned();
        let own = self.file(&name).exists().then_some(name);
        own.into_iter().chain(aliased).collect()
    }

    /// A module preceded by its dependencies. A cycle is broken at the last edge.
    fn plan(&self, target: &str) -> Vec<String> {
        let mut plan = Vec::new();
        self.add(target, &mut BTreeSet::new(), &mut plan);
        plan
    }

    fn add(&self, module: &str, seen: &mut BTreeSet<String>, plan: &mut Vec<String>) {
        if !seen.insert(module.to_owned()) {
            return;
        }
        for needed in self.depends.get(module) {
            self.add(needed, seen, plan);
        }
        plan.push(module.to_owned());
    }

    fn file(&self, module: &str) -> PathBuf {
        self.modules.join(format!("{module}.ko"))
    }

    /// Loads the modules of a name or alias and their dependencies.
    ///
    /// Several modules may have the same alias, and some may require another CPU (`ENODEV`), so one
    /// loaded module is sufficient.
    pub(super) fn load(&self, name: &str) -> Result<(), LoadError> {
        self.load_by(name, |module| self.insert(module))
    }

    fn load_by(
        &self,
        name: &str,
        mut insert: impl FnMut(&str) -> io::Result<()>,
    ) -> Result<(), LoadError> {
        let mut result = Err(LoadError::Missing);
        for target in self.targets(name) {
            let mut first_error = None;
            let mut loaded = false;
            for module in self.plan(&target) {
                let inserted = insert(&module);
                // The last module of the plan is the target itself.
                loaded = inserted.is_ok();
                if let Err(source) = inserted {
                    first_error.get_or_insert(LoadError::Rejected { module, source });
                }
            }
            match first_error {
                _ if loaded => result = Ok(()),
                Some(error) if result.is_err() => result = Err(error),
                Some(_) | None => {}
            }
        }
        result
    }

    /// Inserts one module, unless it is loaded.
    pub(super) fn insert(&self, module: &str) -> io::Result<()> {
        let file = File::open(self.file(module))?;
        match rustix::system::finit_module(&file, &self.parameters.of(module), 0) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// True if this process was started as modprobe(8) by the kernel of a guest (`call_modprobe`,
/// `kernel/module/kmod.c`).
pub(super) fn called_as_modprobe(program: Option<&OsString>) -> bool {
    program.is_some_and(|program| Path::new(program).file_name() == Some("modprobe".as_ref()))
        && Path::new(FILE).exists()
}

/// Loads modules by name or alias, with their dependencies. A name that is not in the initramfs is
/// skipped: either the module is built in, or the program that needs the module reports an error.
/// Modules that the kernel rejects are printed on the console.
pub fn load(names: &[String]) {
    let loader = Loader::here();
    for name in names {
        let targets = loader.targets(name);
        if targets.iter().all(|module| Path::new(LIVE).join(module).exists()) {
            continue;
        }
        match loader.load(name) {
            Ok(()) | Err(LoadError::Missing) => {}
            // The module is for a CPU or a device that this guest does not have.
            Err(LoadError::Rejected { source, .. })
                if source.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {}
            Err(error) => print_note(&error.to_string()),
        }
    }
}

/// Loads the modules of the arguments and records the outcome. With `-n`, only reports if there is
/// a module to load.
pub(super) fn modprobe(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let loader = Loader::here();
    let arguments = arguments.filter_map(|argument| argument.into_string().ok());
    let (options, names): (Vec<_>, Vec<_>) = arguments.partition(|word| word.starts_with('-'));
    if options.iter().any(|option| is_dry_run(option)) {
        let found = names.iter().all(|name| !loader.targets(name).is_empty());
        return if found { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let mut code = ExitCode::SUCCESS;
    for name in names {
        let outcome = loader.load(&name).map_or_else(|e| e.to_string(), |()| LOADED.to_owned());
        if outcome != LOADED {
            code = ExitCode::FAILURE;
        }
        // One write, because several processes may run at once. A failure only loses the record.
        let line = format!("{name}\t{outcome}\n");
        let file = File::options().append(true).create(true).open(REQUESTS);
        let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
    }
    code
}

/// True if an option requests a dry run: a long name, or the letter `n`, alone or among other
/// letters.
fn is_dry_run(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => ["dry-run", "show"].contains(&long),
        None => option.contains('n'),
    }
}

/// Removes the requests recorded so far, which the kernel made itself during boot.
pub(super) fn forget_requests() {
    let _ = fs::remove_file(REQUESTS);
}

/// Requested names, each once in the order of the first request, and true if the last request
/// succeeded.
pub(super) fn requests(log: &str) -> Vec<(String, bool)> {
    let mut requests: Vec<(String, bool)> = Vec::new();
    for (name, outcome) in log.lines().filter_map(|line| line.split_once('\t')) {
        match requests.iter_mut().find(|(requested, _)| requested == name) {
            Some((_, loaded)) => *loaded = outcome == LOADED,
            None => requests.push((name.to_owned(), outcome == LOADED)),
        }
    }
    requests
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parameters(line: &str, module: &str) -> String {
        let mut parameters = Parameters::default();
        parameters.add(line);
        parameters.of(module).into_string().unwrap()
    }

    #[test]
    fn parameters_are_those_of_the_module() {
        let line =
            "console=ttyS0 null-blk.nr_devices=0 null_blk.queue_mode=2 quiet brd.rd_size=9\n";
        assert_eq!(parameters(line, "null_blk"), "nr_devices=0 queue_mode=2");
        assert_eq!(parameters(line, "brd"), "rd_size=9");
        assert_eq!(parameters(line, "xfs"), "");
    }

    #[test]
    fn dots_in_values_are_ignored_and_quotes_group_words() {
        assert_eq!(parameters("root=a.b=c fslab.mailbox=/dev/vdb", "root=a"), "");
        assert_eq!(parameters("a.b=\"c d.e=f\" a.g", "a"), "b=\"c d.e=f\" g");
        assert_eq!(parameters("a.b=\"c d.e=f\"", "d"), "");
        assert_eq!(parameters("a. .b=c", "a"), "");
    }

    /// Loader for the given modules, which are empty files.
    fn loader(directory: &Path, modules: &[&str], aliases: &str, depends: &str) -> Loader {
        for module in modules {
            fs::write(directory.join(format!("{module}.ko")), "").unwrap();
        }
        Loader {
            modules: directory.to_owned(),
            aliases: Table::of_text(aliases),
            depends: Table::of_text(depends),
            parameters: Parameters::default(),
        }
    }

    #[test]
    fn dependencies_come_first_and_once() {
        let directory = tempfile::tempdir().unwrap();
        let aliases = "fs-btrfs\tbtrfs\ncrypto-crc32\tcrc32_generic\ncrypto-crc32\tcrc32_pclmul\n";
        let depends = "btrfs\txor raid6_pq libcrc32c\nraid6_pq\txor\nxor\t\n";
        let loader = loader(directory.path(), &["btrfs", "nls_cp437"], aliases, depends);
        let loaded = |name: &str| {
            let mut loaded = Vec::new();
            let result = loader.load_by(name, |module| {
                loaded.push(module.to_owned());
                Ok(())
            });
            result.map(|()| loaded.join(" ")).map_err(|error| error.to_string())
        };
        assert_eq!(loaded("fs-btrfs").unwrap(), "xor raid6_pq libcrc32c btrfs");
        assert_eq!(loaded("btrfs"), loaded("fs-btrfs"));
        assert_eq!(loaded("crypto-crc32").unwrap(), "crc32_generic crc32_pclmul");
        assert_eq!(loaded("nls-cp437").unwrap(), "nls_cp437");
        assert_eq!(loaded("fs-zfs").unwrap_err(), "it is not in the initramfs");
    }

    #[test]
    fn one_module_of_an_alias_suffices_and_the_first_error_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let aliases = "crypto-crc32\tcrc32_pclmul\ncrypto-crc32\tcrc32_generic\n";
        let depends = "crc32_pclmul\tcryptd\ncrc32_generic\tcrc32\n";
        let loader = loader(directory.path(), &[], aliases, depends);
        let load = |rejected: &[&str]| {
            let result = loader.load_by("crypto-crc32", |module| {
                let rejected = rejected.contains(&module);
                if rejected { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
            });
            result.map_err(|error| error.to_string())
        };
        assert!(load(&["crc32_pclmul"]).is_ok());
        // A dependency may be built in.
        assert!(load(&["cryptd", "crc32", "crc32_pclmul"]).is_ok());
        let error = load(&["crc32", "crc32_pclmul", "crc32_generic"]).unwrap_err();
        assert!(error.starts_with("the kernel rejected crc32: "), "{error}");
    }

    #[test]
    fn dry_run_options_are_recognized() {
        let dry_run: Vec<bool> =
            ["-n", "-qn", "--dry-run", "--show", "-q", "--", "--quiet"].map(is_dry_run).into();
        assert_eq!(dry_run, [true, true, true, true, false, false, false]);
    }

    #[test]
    fn the_last_outcome_of_a_request_counts() {
        let log = "b\tit is not in the initramfs\na\tloaded\nb\tloaded\na\tno\ncut";
        assert_eq!(requests(log), [("b".to_owned(), true), ("a".to_owned(), false)]);
    }

    proptest! {
        #[test]
        fn plans_terminate_for_any_tables(
            aliases in "([a-d]\t[a-d]( [a-d])?\n){0,8}",
            depends in "([a-d]\t[a-d]( [a-d]){0,3}\n){0,8}",
            any: String,
        ) {
            let loader = Loader {
                aliases: Table::of_text(&aliases),
                depends: Table::of_text(&depends),
                ..Loader::default()
            };
            let plan = loader.plan("a");
            let each: BTreeSet<_> = plan.iter().collect();
            prop_assert_eq!(each.len(), plan.len());
            let _ = (Table::of_text(&any), requests(&any), parameters(&any, "a"));
        }
    }
}
