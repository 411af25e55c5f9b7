//! Index of a kernel's modules: their dependencies, aliases, and load order.
//!
//! The input is a directory of modules, as it is in a package ([`Index::read`]). Files that depmod
//! creates during installation are not required: each module lists its dependencies and aliases in
//! its section `.modinfo`, and two files list the built-in modules. [`Index::order`] returns the
//! files to load, in order, by the rules of modprobe(8). This module does not load anything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::GuestError;

mod cache;
mod file;
pub(crate) mod hash;
mod listing;
pub(crate) mod names;

/// State of a module in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModuleState {
    /// Built into the kernel.
    BuiltIn,
    /// One or several loadable modules.
    Module,
    /// Neither built in nor loadable.
    Missing,
    /// Not loadable, and the kernel has no list of built-in modules.
    Unknown,
}

/// Module to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Name as shown by the kernel, with `_` for each `-`.
    pub name: String,
    /// File of the module, possibly compressed.
    pub file: PathBuf,
}

impl Found {
    /// Reads and decompresses the module.
    ///
    /// # Errors
    /// [`GuestError`] if the file cannot be read, does not match its extension, or is too long.
    pub fn read(&self) -> Result<Vec<u8>, GuestError> {
        file::read(&self.file)
    }
}

/// Modules of one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Index {
    /// `lib/modules/RELEASE`.
    #[serde(skip)]
    directory: PathBuf,
    /// Modules by name.
    modules: BTreeMap<String, Module>,
    /// Aliases (names and patterns) with their modules, sorted; several modules may have the same
    /// alias.
    aliases: Vec<(String, String)>,
    /// Names of built-in modules; `None` if there is no list.
    built_in: Option<BTreeSet<String>>,
    /// Aliases of built-in modules.
    built_in_aliases: Vec<String>,
}

/// Metadata of a module; names are normalized.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Module {
    /// Path below the directory.
    file: PathBuf,
    /// Required modules.
    depends: Vec<String>,
    /// Optional modules and aliases to load before this module.
    pre: Vec<String>,
    /// Optional modules and aliases to load after this module.
    post: Vec<String>,
}

/// Result of a lookup by name or alias.
enum Lookup<'a> {
    Modules(Vec<&'a str>),
    BuiltIn,
    Missing,
    Unknown,
}

impl Index {
    /// Reads a directory `lib/modules/RELEASE`. With a cache directory, a cached index is used if
    /// names, sizes, and times of the modules are unchanged.
    ///
    /// Drivers of hardware that no guest has are excluded.
    ///
    /// # Errors
    /// [`GuestError`] if the directory or a module cannot be read, or a module is damaged.
    pub fn read(directory: &Path, cache_directory: Option<&Path>) -> Result<Self, GuestError> {
        let listing = listing::list(directory)?;
        let fingerprint = &listing.fingerprint;
        if let Some(cached) = cache_directory.and_then(|at| cache::load(at, directory, fingerprint))
        {
            return Ok(cached);
        }
        let index = listing::index(directory, &listing)?;
        if let Some(at) = cache_directory {
            cache::store(at, directory, fingerprint, &index);
        }
        Ok(index)
    }

    /// Index of a kernel whose modules are unknown: everything that it needs must be built in.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Number of modules.
    pub fn len(&self) -> usize {
        self.modules.len()
    }

    /// True if there are no modules.
    pub fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// State of a module by name or alias, such as `nilfs2`, `fs-xfs`, or `crypto-crc32`.
    pub fn has(&self, name: &str) -> ModuleState {
        match self.lookup(name) {
            Lookup::Modules(_) => ModuleState::Module,
            Lookup::BuiltIn => ModuleState::BuiltIn,
            Lookup::Missing => ModuleState::Missing,
            Lookup::Unknown => ModuleState::Unknown,
        }
    }

    /// Modules to load for these names or aliases, each once, after its dependencies. Built-in
    /// names need no module, and names in an unknown state are treated as built in.
    ///
    /// # Errors
    /// Descriptions of the missing modules.
    pub fn order(&self, names: &[&str]) -> Result<Vec<Found>, Vec<String>> {
        self.order_with(names, &[])
    }

    /// Like [`Self::order`] for `names`, followed by the modules of `optional` that exist.
    ///
    /// # Errors
    /// Descriptions of missing modules of `names` and of missing dependencies of any module.
    pub fn order_with(&self, names: &[&str], optional: &[&str]) -> Result<Vec<Found>, Vec<String>> {
        let mut order = LoadOrder::default();
        let names = names.iter().map(|name| (name, true));
        for (name, required) in names.chain(optional.iter().map(|name| (name, false))) {
            match self.lookup(name) {
                Lookup::Modules(modules) => {
                    for module in modules {
                        order.add(self, module, true);
                    }
                }
                Lookup::Missing if required => {
                    order.missing.insert((*name).to_owned());
                }
                Lookup::Missing | Lookup::BuiltIn | Lookup::Unknown => {}
            }
        }
        if order.missing.is_empty() {
            Ok(order.done.into_iter().filter_map(|name| self.found(name)).collect())
        } else {
            Err(order.missing.into_iter().collect())
        }
    }

    /// Modules to load before this module, in order.
    pub(crate) fn before(&self, name: &str) -> Vec<&str> {
        let mut order = LoadOrder::default();
        if let Some((name, _)) = self.modules.get_key_value(name) {
            order.add(self, name, false);
        }
        order.done.into_iter().take_while(|&module| module != name).collect()
    }

    /// Aliases with their modules, normalized and sorted.
    pub(crate) fn aliases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.aliases.iter().map(|(alias, module)| (alias.as_str(), module.as_str()))
    }

    fn found(&self, name: &str) -> Option<Found> {
        let module = self.modules.get(name)?;
        Some(Found { name: name.to_owned(), file: self.directory.join(&module.file) })
    }

    /// Looks up a name: a module of that name, otherwise all modules with that alias, otherwise a
    /// built-in module. This is the order of modprobe (`kmod_module_new_from_lookup(3)`).
    fn lookup(&self, name: &str) -> Lookup<'_> {
        let name = names::normalized(name);
        if let Some((module, _)) = self.modules.get_key_value(&name) {
            return Lookup::Modules(vec![module]);
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
            return Lookup::Modules(modules);
        }
        let Some(built_in) = &self.built_in else { return Lookup::Unknown };
        let is_match = |alias: &String| names::matches(alias, &name);
        if built_in.contains(&name) || self.built_in_aliases.iter().any(is_match) {
            return Lookup::BuiltIn;
        }
        Lookup::Missing
    }
}

/// Load order under construction.
#[derive(Default)]
struct LoadOrder<'a> {
    /// Modules in load order.
    done: Vec<&'a str>,
    /// Modules whose loading was planned or is being planned.
    seen: BTreeSet<&'a str>,
    /// Missing modules.
    missing: BTreeSet<String>,
}

/// Step of the traversal of the modules. Steps are kept in a list instead of recursion, because a
/// chain of dependencies can have any length.
enum Step<'a> {
    /// Load with dependencies.
    Enter(&'a str),
    /// Load as an optional dependency of another module.
    Optional(&'a str),
    /// All dependencies are loaded.
    Leave(&'a str),
}

impl<'a> LoadOrder<'a> {
    /// Adds a module after its dependencies, and with `after` also the modules that it requests to
    /// load after itself. Optional dependencies (`softdep`) may form cycles with required ones; an
    /// optional module in a cycle is loaded after the other modules of the cycle.
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
                Step::Optional(name) => {
                    if !self.seen.contains(name) && index.requires_any(name, &open) {
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

    /// Adds the steps for the dependencies of a module. The last step added is the first to run.
    fn enter(&mut self, index: &'a Index, name: &'a str, after: bool, steps: &mut Vec<Step<'a>>) {
        let Some(module) = index.modules.get(name) else { return };
        if after {
            steps.extend(index.optional_steps(&module.post).rev());
        }
        steps.push(Step::Leave(name));
        steps.extend(index.optional_steps(&module.pre).rev());
        for needed in module.depends.iter().rev() {
            match index.lookup(needed) {
                Lookup::Modules(modules) => {
                    steps.extend(modules.into_iter().rev().map(Step::Enter));
                }
                Lookup::Missing => {
                    self.missing.insert(format!("{needed}, required by {name}"));
                }
                Lookup::BuiltIn | Lookup::Unknown => {}
            }
        }
    }
}

impl Index {
    /// Steps for the modules of optional names.
    fn optional_steps<'a>(
        &'a self,
        names: &'a [String],
    ) -> impl DoubleEndedIterator<Item = Step<'a>> {
        let modules = |name: &String| match self.lookup(name) {
            Lookup::Modules(modules) => modules,
            Lookup::Missing | Lookup::BuiltIn | Lookup::Unknown => Vec::new(),
        };
        names.iter().flat_map(modules).map(Step::Optional).collect::<Vec<_>>().into_iter()
    }

    /// True if a module is one of these modules or requires one of them, directly or indirectly.
    fn requires_any(&self, name: &str, these: &BTreeSet<&str>) -> bool {
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
