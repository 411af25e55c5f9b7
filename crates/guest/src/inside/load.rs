//! The loading of modules: those that the first process was told to load, those that the next trial
//! takes, and those that the kernel asks for while it runs.
//!
//! Names enter; modules are in the kernel when they leave. What each needs, and which names stand
//! for which modules, was worked out on the host and is in tables beside them (the files below), so
//! nothing here looks into a module. Parameters are taken from the kernel's command line, as
//! modprobe(8) does, then from the job.

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
    job::{FILE, Job},
    note,
};

/// Where the kernel has a directory for each module that is loaded (sysfs(5)).
const LIVE: &str = "/sys/module";
/// Where the modules are: `NAME.ko`, uncompressed.
const MODULES: &str = "/lib/fslab/modules";
/// Lines of `alias<TAB>module`.
const ALIASES: &str = "/etc/fslab/aliases";
/// Lines of `module<TAB>dependency dependency ...`.
const DEPENDS: &str = "/etc/fslab/depends";
/// The modules to load at the start, one a line.
const ORDER: &str = "/etc/fslab/order";
/// What the kernel asked for: lines of `name<TAB>loaded`, or `name<TAB>why not`. It is on the first
/// filesystem, since the kernel may ask before any other is mounted.
pub(super) const REQUESTS: &str = "/etc/fslab/requests";
/// The word behind a name that could be loaded.
const LOADED: &str = "loaded";

/// Names of modules have underscores; the kernel and people also write hyphens.
fn normal(name: &str) -> String {
    name.replace('-', "_")
}

/// Parameters of modules by the modules' names, each a text for the kernel.
#[derive(Debug, Default, PartialEq, Eq)]
struct Parameters(BTreeMap<String, String>);

impl Parameters {
    /// Reads `module.name=value` from a text like the kernel's command line: words are separated by
    /// white space that is not in double quotes (`next_arg`, `lib/cmdline.c`), and the kernel reads
    /// a module's parameters in the same way, so quotes stay.
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
            let all = self.0.entry(normal(module)).or_default();
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

/// Names and what they stand for, from a table of the archive.
#[derive(Debug, Default, PartialEq, Eq)]
struct Table(BTreeMap<String, Vec<String>>);

impl Table {
    fn of_text(text: &str) -> Self {
        let mut table = Self::default();
        for (name, values) in text.lines().filter_map(|line| line.split_once('\t')) {
            let values = values.split_whitespace().map(normal);
            table.0.entry(normal(name)).or_default().extend(values);
        }
        table
    }

    fn get(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// Why a module is not in the kernel.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// Neither a module nor an alias of the archive.
    #[error("it is not in the archive")]
    Missing,
    /// The kernel does not take it.
    #[error("the kernel refuses {module}: {source}")]
    Refused {
        /// The module, which may be one that was needed for the other.
        module: String,
        /// Why; the console may tell more.
        source: io::Error,
    },
}

/// What loads modules.
#[derive(Debug, Default)]
pub(super) struct Loader {
    modules: PathBuf,
    aliases: Table,
    depends: Table,
    parameters: Parameters,
}

impl Loader {
    /// With the tables of the archive, as far as they are there, and the parameters of the kernel's
    /// command line and the job.
    pub(super) fn new(command_line: &str, job: Option<&Job>) -> Self {
        let read = |file| Table::of_text(&fs::read_to_string(file).unwrap_or_default());
        let mut parameters = Parameters::default();
        parameters.add(command_line);
        if let Some(job) = job {
            job.parameters.iter().for_each(|parameter| parameters.add(parameter));
            job.device.parameters().iter().for_each(|device| parameters.add(device));
        }
        Self { modules: MODULES.into(), aliases: read(ALIASES), depends: read(DEPENDS), parameters }
    }

    /// With what this guest was told.
    fn here() -> Self {
        let command_line = fs::read_to_string("/proc/cmdline").unwrap_or_default();
        let job = fs::read_to_string(FILE).ok().and_then(|text| Job::of_text(&text).ok());
        Self::new(&command_line, job.as_ref())
    }

    /// What to load at the start.
    pub(super) fn order() -> Vec<String> {
        let text = fs::read_to_string(ORDER).unwrap_or_default();
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(normal).collect()
    }

    /// The modules that a name stands for: that of the name, and those that have it as an alias.
    fn targets(&self, name: &str) -> Vec<String> {
        let name = normal(name);
        let aliased = self.aliases.get(&name).iter().cloned();
        let own = self.file(&name).exists().then_some(name);
        own.into_iter().chain(aliased).collect()
    }

    /// A module behind all that it needs. A cycle is cut where it closes.
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

    /// Loads what a name or alias stands for, and what that needs.
    ///
    /// Several modules may serve one alias, and some of them may need a processor that is not this
    /// one (`ENODEV`): it is enough that one can be loaded.
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
            let mut first_refusal = None;
            let mut there = false;
            for module in self.plan(&target) {
                let inserted = insert(&module);
                // The last one is the target itself.
                there = inserted.is_ok();
                if let Err(source) = inserted {
                    first_refusal.get_or_insert(LoadError::Refused { module, source });
                }
            }
            match first_refusal {
                _ if there => result = Ok(()),
                Some(refusal) if result.is_err() => result = Err(refusal),
                Some(_) | None => {}
            }
        }
        result
    }

    /// Puts one module into the kernel, unless it is there.
    pub(super) fn insert(&self, module: &str) -> io::Result<()> {
        let file = File::open(self.file(module))?;
        match rustix::system::finit_module(&file, &self.parameters.of(module), 0) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether this process was started as the kernel starts modprobe(8), in a guest
/// (`call_modprobe`, `kernel/module/kmod.c`).
pub(super) fn called_as_modprobe(program: Option<&OsString>) -> bool {
    program.is_some_and(|program| Path::new(program).file_name() == Some("modprobe".as_ref()))
        && Path::new(FILE).exists()
}

/// Loads modules by their names or aliases, with all that they need. What is not in the archive is
/// built in, or is missed by name when needed; what the kernel refuses is told on the console.
pub fn load(names: &[String]) {
    let loader = Loader::here();
    for name in names {
        let targets = loader.targets(name);
        if targets.iter().all(|module| Path::new(LIVE).join(module).exists()) {
            continue;
        }
        match loader.load(name) {
            Ok(()) | Err(LoadError::Missing) => {}
            // It serves a processor or a device that is not here.
            Err(LoadError::Refused { source, .. })
                if source.raw_os_error() == Some(Errno::NODEV.raw_os_error()) => {}
            Err(refused) => note(&refused.to_string()),
        }
    }
}

/// Loads what the arguments name, and notes it down. With `-n` it only tells whether there is
/// anything to load.
pub(super) fn modprobe(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let loader = Loader::here();
    let arguments = arguments.filter_map(|argument| argument.into_string().ok());
    let (options, names): (Vec<_>, Vec<_>) = arguments.partition(|word| word.starts_with('-'));
    if options.iter().any(|option| only_tells(option)) {
        let known = names.iter().all(|name| !loader.targets(name).is_empty());
        return if known { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let mut code = ExitCode::SUCCESS;
    for name in names {
        let outcome = loader.load(&name).map_or_else(|e| e.to_string(), |()| LOADED.to_owned());
        if outcome != LOADED {
            code = ExitCode::FAILURE;
        }
        // One write, since several may be at work. Without the note only the note is missing.
        let line = format!("{name}\t{outcome}\n");
        let notes = File::options().append(true).create(true).open(REQUESTS);
        let _ = notes.and_then(|mut notes| notes.write_all(line.as_bytes()));
    }
    code
}

/// Whether an option says that nothing is to be loaded: by its long names, or by its letter among
/// others.
fn only_tells(option: &str) -> bool {
    match option.strip_prefix("--") {
        Some(long) => ["dry-run", "show"].contains(&long),
        None => option.contains('n'),
    }
}

/// Forgets what was asked for until now: what the kernel tries for itself while it starts.
pub(super) fn forget_requests() {
    let _ = fs::remove_file(REQUESTS);
}

/// What was asked for, each once in the order of first asking, and whether it could be loaded in
/// the end.
pub(super) fn requests(notes: &str) -> Vec<(String, bool)> {
    let mut requests: Vec<(String, bool)> = Vec::new();
    for (name, outcome) in notes.lines().filter_map(|line| line.split_once('\t')) {
        match requests.iter_mut().find(|(asked, _)| asked == name) {
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
    fn dots_in_values_are_none_of_modules_and_quotes_keep_words_together() {
        assert_eq!(parameters("root=a.b=c fslab.mailbox=/dev/vdb", "root=a"), "");
        assert_eq!(parameters("a.b=\"c d.e=f\" a.g", "a"), "b=\"c d.e=f\" g");
        assert_eq!(parameters("a.b=\"c d.e=f\"", "d"), "");
        assert_eq!(parameters("a. .b=c", "a"), "");
    }

    /// A loader over modules that are files.
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
    fn what_is_needed_comes_first_and_each_once() {
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
        assert_eq!(loaded("fs-zfs").unwrap_err(), "it is not in the archive");
    }

    #[test]
    fn one_module_of_an_alias_is_enough_and_the_first_refusal_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let aliases = "crypto-crc32\tcrc32_pclmul\ncrypto-crc32\tcrc32_generic\n";
        let depends = "crc32_pclmul\tcryptd\ncrc32_generic\tcrc32\n";
        let loader = loader(directory.path(), &[], aliases, depends);
        let load = |refused: &[&str]| {
            let result = loader.load_by("crypto-crc32", |module| {
                let refused = refused.contains(&module);
                if refused { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
            });
            result.map_err(|error| error.to_string())
        };
        assert!(load(&["crc32_pclmul"]).is_ok());
        // What a module needs may be there in another way.
        assert!(load(&["cryptd", "crc32", "crc32_pclmul"]).is_ok());
        let error = load(&["crc32", "crc32_pclmul", "crc32_generic"]).unwrap_err();
        assert!(error.starts_with("the kernel refuses crc32: "), "{error}");
    }

    #[test]
    fn some_options_only_tell() {
        let tell: Vec<bool> =
            ["-n", "-qn", "--dry-run", "--show", "-q", "--", "--quiet"].map(only_tells).into();
        assert_eq!(tell, [true, true, true, true, false, false, false]);
    }

    #[test]
    fn the_last_outcome_of_a_request_counts() {
        let notes = "b\tit is not in the archive\na\tloaded\nb\tloaded\na\tno\ncut";
        assert_eq!(requests(notes), [("b".to_owned(), true), ("a".to_owned(), false)]);
    }

    proptest! {
        #[test]
        fn plans_end_whatever_the_tables_say(
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
