//! The modules of a kernel: which there are, what each needs, and in which order to load them.
//!
//! The folder of modules enters ([`Index::read`]), as a package has it: nothing that depmod makes
//! when a package is installed is needed, for each module says in its section `.modinfo` what it
//! depends on and by which names it is asked for, and two lists say what is built in. Files to
//! load, in order, leave ([`Index::order`]), by the rules of modprobe(8). Nothing is loaded here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::GuestError;

mod cache;
mod file;
mod folder;
pub(crate) mod hash;
pub(crate) mod names;

/// Whether a kernel has something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Presence {
    /// It is in the kernel itself.
    BuiltIn,
    /// It is a module, or several.
    Module,
    /// It is neither.
    Absent,
    /// It is no module, and there is no list of what is built in.
    Unknown,
}

/// A module to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name as the kernel shows it, with `_` for each `-`.
    pub name: String,
    /// Its file, which may be compressed.
    pub file: PathBuf,
}

impl Found {
    /// Its bytes, decompressed.
    ///
    /// # Errors
    /// [`GuestError`] if the file cannot be read, is not what its ending says, or is longer than
    /// any module.
    pub fn read(&self) -> Result<Vec<u8>, GuestError> {
        file::read(&self.file)
    }
}

/// The modules of one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// `lib/modules/RELEASE`.
    #[serde(skip)]
    folder: PathBuf,
    /// By name.
    modules: BTreeMap<String, Module>,
    /// Names and patterns by which modules are asked for, sorted: several may have the same.
    aliases: Vec<(String, String)>,
    /// Names of what is built in; `None` if the folder does not say.
    built_in: Option<BTreeSet<String>>,
    /// Names and patterns by which what is built in is asked for.
    built_in_aliases: Vec<String>,
}

/// What is known of a module; names are normalized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Module {
    /// Its file below the folder.
    file: PathBuf,
    /// Modules without which it cannot be loaded.
    depends: Vec<String>,
    /// Names and aliases to be loaded before it if they are there.
    pre: Vec<String>,
    /// The same, after it.
    post: Vec<String>,
}

/// What a name or alias stands for.
enum Meaning<'a> {
    Modules(Vec<&'a str>),
    BuiltIn,
    Absent,
    Unknown,
}

impl Index {
    /// Reads a folder `lib/modules/RELEASE`. With a directory to keep it in, what was read is taken
    /// from there as long as names, sizes, and times of the modules are the same.
    ///
    /// Drivers of hardware that no guest has are left out, as they are of packages.
    ///
    /// # Errors
    /// [`GuestError`] if the folder or a module cannot be read, or a module is damaged.
    pub fn read(folder: &Path, cache_directory: Option<&Path>) -> Result<Self, GuestError> {
        let listing = folder::list(folder)?;
        let fingerprint = &listing.fingerprint;
        if let Some(kept) = cache_directory.and_then(|at| cache::load(at, folder, fingerprint)) {
            return Ok(kept);
        }
        let index = folder::index(folder, &listing)?;
        if let Some(directory) = cache_directory {
            cache::store(directory, folder, fingerprint, &index);
        }
        Ok(index)
    }

    /// A kernel of which no modules are known: whatever it has must be built in.
    pub fn empty() -> Self {
        Self::default()
    }

    /// How many modules there are.
    pub fn len(&self) -> usize {
        self.modules.len()
    }

    /// Whether there is no module.
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// Whether the kernel has what is asked for by this name or alias, such as `nilfs2`, `fs-xfs`,
    /// or `crypto-crc32`.
    pub fn has(&self, name: &str) -> Presence {
        match self.meaning(name) {
            Meaning::Modules(_) => Presence::Module,
            Meaning::BuiltIn => Presence::BuiltIn,
            Meaning::Absent => Presence::Absent,
            Meaning::Unknown => Presence::Unknown,
        }
    }

    /// The modules to load for these names or aliases, each once, after what it depends on. What is
    /// built in needs none, and what is not known to be absent is taken for built in.
    ///
    /// # Errors
    /// What is absent, as texts for people.
    pub fn order(&self, names: &[&str]) -> Result<Vec<Found>, Vec<String>> {
        self.order_with(names, &[])
    }

    /// [`Self::order`], then what is needed by the second list as far as it is there.
    ///
    /// # Errors
    /// What of the first list is absent, or what modules of either depend on, as texts for people.
    pub fn order_with(&self, names: &[&str], if_there: &[&str]) -> Result<Vec<Found>, Vec<String>> {
        let mut order = Order::default();
        let wanted = names.iter().map(|name| (name, true));
        for (name, must) in wanted.chain(if_there.iter().map(|name| (name, false))) {
            match self.meaning(name) {
                Meaning::Modules(modules) => {
                    for module in modules {
                        order.add(self, module, true);
                    }
                }
                Meaning::Absent if must => {
                    order.absent.insert((*name).to_owned());
                }
                Meaning::Absent | Meaning::BuiltIn | Meaning::Unknown => {}
            }
        }
        if order.absent.is_empty() {
            Ok(order.done.into_iter().filter_map(|name| self.found(name)).collect())
        } else {
            Err(order.absent.into_iter().collect())
        }
    }

    /// The modules that are to be loaded before this one, in order.
    pub(crate) fn before(&self, name: &str) -> Vec<&str> {
        let mut order = Order::default();
        if let Some((name, _)) = self.modules.get_key_value(name) {
            order.add(self, name, false);
        }
        order.done.into_iter().take_while(|&module| module != name).collect()
    }

    /// The names and patterns by which modules are asked for, with the module, normalized, sorted.
    pub(crate) fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.aliases.iter().map(|(alias, module)| (alias.as_str(), module.as_str()))
    }

    fn found(&self, name: &str) -> Option<Found> {
        let module = self.modules.get(name)?;
        Some(Found { name: name.to_owned(), file: self.folder.join(&module.file) })
    }

    /// What a name stands for: a module of that name, else all modules that have it as an alias,
    /// else what is built in; in this order modprobe looks (`kmod_module_new_from_lookup(3)`).
    fn meaning(&self, name: &str) -> Meaning<'_> {
        let name = names::normal(name);
        if let Some((module, _)) = self.modules.get_key_value(&name) {
            return Meaning::Modules(vec![module]);
        }
        let mut modules: Vec<&str> = Vec::new();
        for (alias, module) in self.aliases() {
            if names::matches(alias, &name) && self.modules.contains_key(module) {
                modules.push(module);
            }
        }
        if !modules.is_empty() {
            modules.sort_unstable();
            modules.dedup();
            return Meaning::Modules(modules);
        }
        let Some(built_in) = &self.built_in else { return Meaning::Unknown };
        let fits = |alias: &String| names::matches(alias, &name);
        if built_in.contains(&name) || self.built_in_aliases.iter().any(fits) {
            return Meaning::BuiltIn;
        }
        Meaning::Absent
    }
}

/// An order that grows.
#[derive(Default)]
struct Order<'a> {
    /// In the order in which they are to be loaded.
    done: Vec<&'a str>,
    /// Those that are begun or done.
    seen: BTreeSet<&'a str>,
    /// What is needed and not there.
    absent: BTreeSet<String>,
}

/// What is next on the way through the modules. The way is kept in a list and not on the stack, for
/// a chain of dependencies may be as long as its author likes.
enum Step<'a> {
    /// To be loaded, with all it needs.
    Enter(&'a str),
    /// Wished for by another.
    Wish(&'a str),
    /// All it needs is loaded.
    Leave(&'a str),
}

impl<'a> Order<'a> {
    /// Adds a module after what it needs. What modules wish for (`softdep`) may form cycles with
    /// what they need; a wish then waits until the others are loaded.
    fn add(&mut self, index: &'a Index, module: &'a str, after: bool) {
        let mut steps = vec![Step::Enter(module)];
        let mut later = Vec::new();
        let mut open: BTreeSet<&str> = BTreeSet::new();
        loop {
            let Some(step) = steps.pop() else {
                let Some(module) = later.pop() else { break };
                steps.push(Step::Enter(module));
                continue;
            };
            match step {
                Step::Wish(name) => {
                    if !self.seen.contains(name) && index.needs_any(name, &open) {
                        later.push(name);
                    } else {
                        steps.push(Step::Enter(name));
                    }
                }
                Step::Leave(name) => {
                    open.remove(name);
                    self.done.push(name);
                }
                Step::Enter(name) => {
                    if !self.seen.insert(name) {
                        continue;
                    }
                    open.insert(name);
                    self.enter(index, name, after, &mut steps);
                }
            }
        }
    }

    /// Plans what a module needs and wishes for; what is planned last is done first.
    fn enter(&mut self, index: &'a Index, name: &'a str, after: bool, steps: &mut Vec<Step<'a>>) {
        let Some(module) = index.modules.get(name) else { return };
        if after {
            steps.extend(index.wished(&module.post).rev());
        }
        steps.push(Step::Leave(name));
        steps.extend(index.wished(&module.pre).rev());
        for needed in module.depends.iter().rev() {
            match index.meaning(needed) {
                Meaning::Modules(modules) => {
                    steps.extend(modules.into_iter().rev().map(Step::Enter));
                }
                Meaning::Absent => {
                    self.absent.insert(format!("{needed}, which {name} needs"));
                }
                Meaning::BuiltIn | Meaning::Unknown => {}
            }
        }
    }
}

impl Index {
    /// The modules behind names that are wished for.
    fn wished<'a>(&'a self, names: &'a [String]) -> impl DoubleEndedIterator<Item = Step<'a>> {
        let modules = |name: &String| match self.meaning(name) {
            Meaning::Modules(modules) => modules,
            Meaning::Absent | Meaning::BuiltIn | Meaning::Unknown => Vec::new(),
        };
        names.iter().flat_map(modules).map(Step::Wish).collect::<Vec<_>>().into_iter()
    }

    /// Whether a module cannot be loaded without one of these.
    fn needs_any(&self, name: &str, these: &BTreeSet<&str>) -> bool {
        let mut seen = BTreeSet::from([name]);
        let mut next = vec![name];
        while let Some(name) = next.pop() {
            if these.contains(name) {
                return true;
            }
            let depends = self.modules.get(name).map(|module| &module.depends);
            next.extend(
                depends.into_iter().flatten().filter(|name| seen.insert(name)).map(|n| &**n),
            );
        }
        false
    }
}

#[cfg(test)]
#[path = "modules/tests.rs"]
pub(crate) mod tests;
