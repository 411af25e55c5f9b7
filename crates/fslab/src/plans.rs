//! Built-in plans, and the search, parsing, overrides, and diagnostics of plans.

mod by_name;
pub(crate) mod jobs;
mod recordings;

use std::{
    fs,
    io::{ErrorKind, Seek, SeekFrom},
    os::unix::fs::FileTypeExt,
    path::Path,
};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use model::{
    KnownNames, Plan, PlanError, Scale, Storage, matrix::LabeledCell, storage::StorageKind,
    workload::ValueError,
};
use rig::{Catalog, Host, RealHost};

pub(crate) use self::by_name::{is_job, near as near_workloads, quoted};
use crate::{cli::Changes, exit::Failure};

/// Plan shipped with fslab.
pub(crate) struct BuiltinPlan {
    /// Name on the command line.
    pub(crate) name: &'static str,
    /// TOML text.
    pub(crate) text: &'static str,
}

impl BuiltinPlan {
    /// Title: the question that the plan answers.
    pub(crate) fn title(&self) -> &'static str {
        let title = self.text.lines().find_map(|line| line.strip_prefix("title = "));
        title.unwrap_or_default().trim_matches('"')
    }
}

/// All built-in plans.
pub(crate) const BUILTIN_PLANS: &[BuiltinPlan] = &[
    BuiltinPlan { name: "bonnie-2012", text: include_str!("../../../plans/bonnie-2012.toml") },
    BuiltinPlan { name: "dbench-2012", text: include_str!("../../../plans/dbench-2012.toml") },
    BuiltinPlan { name: "demo", text: include_str!("../../../plans/demo.toml") },
    BuiltinPlan {
        name: "demo-directory",
        text: include_str!("../../../plans/demo-directory.toml"),
    },
    BuiltinPlan { name: "demo-guest", text: include_str!("../../../plans/demo-guest.toml") },
    BuiltinPlan {
        name: "filesystem-cost",
        text: include_str!("../../../plans/filesystem-cost.toml"),
    },
    BuiltinPlan { name: "interference", text: include_str!("../../../plans/interference.toml") },
    BuiltinPlan { name: "io500-like", text: include_str!("../../../plans/io500-like.toml") },
    BuiltinPlan { name: "iozone-2009", text: include_str!("../../../plans/iozone-2009.toml") },
    BuiltinPlan {
        name: "kernel-history",
        text: include_str!("../../../plans/kernel-history.toml"),
    },
    BuiltinPlan {
        name: "metadata-scaling",
        text: include_str!("../../../plans/metadata-scaling.toml"),
    },
    BuiltinPlan {
        name: "smallfiles-2011",
        text: include_str!("../../../plans/smallfiles-2011.toml"),
    },
    BuiltinPlan { name: "tasks-2006", text: include_str!("../../../plans/tasks-2006.toml") },
];

/// Plan with its overrides, expanded to cells.
#[derive(Debug)]
pub(crate) struct ResolvedPlan {
    /// Name of a built-in plan, or the file name without its extension.
    pub(crate) name: String,
    /// Original text, byte for byte.
    pub(crate) text: String,
    /// Plan with the overrides of the command line.
    pub(crate) plan: Plan,
    /// Overrides of the command line.
    pub(crate) overrides: Vec<(String, String)>,
    /// Scale of sizes.
    pub(crate) scale: Scale,
    /// Cells.
    pub(crate) cells: Vec<LabeledCell>,
    /// Storage with sizes at `scale`.
    pub(crate) storage: Storage,
    /// Filesystem types, with those that the plan defines.
    pub(crate) catalog: Catalog,
    /// True if the text was written from options of the command line.
    pub(crate) from_options: bool,
}

impl ResolvedPlan {
    /// Finds, reads, and checks a plan, or generates a plan of the given workloads.
    ///
    /// # Errors
    /// A diagnostic with file, line, and hint if the plan is invalid.
    pub(crate) fn new(
        given: &[String],
        changes: &Changes,
        catalog: &Catalog,
    ) -> Result<Self, Failure> {
        if let Some(workloads) = by_name::workloads(given)? {
            let chosen = by_name::resolve(workloads, changes, catalog)?;
            return Ok(Self { from_options: true, ..chosen });
        }
        let (name, origin, text) = find(given.first().map(String::as_str).unwrap_or_default())?;
        let axes = changes.axes.overrides();
        let typed = |key: &str, value: &str| {
            let mut options =
                axes.iter().filter(|(other, own, _)| (&**other, &**own) == (key, value));
            options.next().map_or_else(|| set(key, value), |(.., option)| option.clone())
        };
        let profile =
            changes.profile.map(|name| ("profile".to_owned(), name.profile().name().into()));
        let guest = changes.guest.map(|kind| ("guest".to_owned(), kind.name().to_owned()));
        let kernel = (!changes.kernel.is_empty()).then(|| changes.kernel.join(","));
        let kernel = kernel.map(|kernels| ("kernel".to_owned(), kernels));
        let options = axes.iter().map(|(key, value, _)| (key.clone(), value.clone()));
        let own = profile.into_iter().chain(guest).chain(kernel).chain(options);
        let own = own.chain(changes.set.iter().cloned());
        let (scale, settings) = match Scale::parse(&changes.scale) {
            Ok(scale) => (scale, Vec::new()),
            Err(_) => named_scale(&changes.scale, &origin, &text, catalog)?,
        };
        // Overrides on the command line follow those of the named scale, and therefore take
        // precedence.
        let overrides = settings.into_iter().chain(own).collect();
        let source = text.clone();
        let wrong = |error: PlanError| Failure::diagnostic(explain(&error, &origin, &source));
        Self::parse(name, text, overrides, scale, catalog, &wrong, &typed)
    }

    /// Checks the text of a plan; `origin` is the file name in diagnostics.
    ///
    /// # Errors
    /// As [`ResolvedPlan::new`].
    pub(crate) fn read(
        name: String,
        origin: &str,
        text: String,
        overrides: Vec<(String, String)>,
        scale: Scale,
        catalog: &Catalog,
    ) -> Result<Self, Failure> {
        let source = text.clone();
        let wrong = |error: PlanError| Failure::diagnostic(explain(&error, origin, &source));
        Self::parse(name, text, overrides, scale, catalog, &wrong, &set)
    }

    /// Parses and checks the text of a plan. `wrong` converts an error in the text to a message.
    /// `typed` formats an override as it was typed on the command line.
    pub(crate) fn parse(
        name: String,
        text: String,
        overrides: Vec<(String, String)>,
        scale: Scale,
        catalog: &Catalog,
        wrong: &dyn Fn(PlanError) -> Failure,
        typed: &dyn Fn(&str, &str) -> String,
    ) -> Result<Self, Failure> {
        let suites = suites::specs();
        let (filesystems, mounted) = (names(catalog), catalog.mounted_types());
        let vocabulary = KnownNames {
            suites: &suites,
            presets: suites::presets(),
            filesystems: &filesystems,
            mounted: &mounted,
        };
        let mut plan = Plan::parse(&text, vocabulary).map_err(wrong)?;
        for (key, value) in &overrides {
            plan.set(key, value, vocabulary).map_err(|error| {
                let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
                Failure::usage(anyhow::anyhow!("{}: {error}{hint}", typed(key, value)))
            })?;
        }
        plan.consistent().map_err(|error| {
            let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
            Failure::usage(anyhow::anyhow!("{error}{hint}"))
        })?;
        if plan.title.is_empty() {
            plan.title.clone_from(&name);
        }
        let points = |point| suites::refine(jobs::resolve(point)?);
        let points = plan.cells(scale, &points).map_err(wrong)?;
        let needed =
            points.iter().map(|labelled| with_metadata(footprint(&labelled.cell.workload)));
        let storage = plan.storage_at(scale, needed.max().unwrap_or_default());
        check_memory_limit(plan.storage.memory_limit, &storage, scale)?;
        let refine = |point| {
            let mut points = suites::refine(jobs::resolve(point)?)?;
            points.iter_mut().try_for_each(recordings::resolve)?;
            points.iter().try_for_each(|point| fits(point, &storage.kind))?;
            if plan.cluster.is_some() {
                points.iter().try_for_each(runs_on_hosts)?;
            }
            Ok(points)
        };
        let cells = plan.cells(scale, &refine).map_err(wrong)?;
        let from_options = false;
        let in_directory = matches!(storage.kind, StorageKind::Directory { .. });
        let catalog = catalog.clone().with_levels(&plan.filesystems, in_directory);
        Ok(Self { name, text, overrides, scale, cells, storage, catalog, plan, from_options })
    }

    /// Maximum space that the files of a trial use, over all cells.
    pub(crate) fn footprint(&self) -> model::Bytes {
        let points = self.cells.iter().map(|labelled| &labelled.cell.workload);
        points.map(footprint).max().unwrap_or_default()
    }
}

/// True if the names are workloads or suites, and not a plan.
pub(crate) fn are_workloads(names: &[String]) -> bool {
    matches!(by_name::workloads(names), Ok(Some(_)))
}

/// Option `--set` for an override.
pub(crate) fn set(key: &str, value: &str) -> String {
    format!("--set {key}={value}")
}

/// Scale given as a number, for a plan without named scales.
fn known_scale(text: &str) -> Result<Scale, Failure> {
    Scale::parse(text).map_err(|error| {
        Failure::usage(anyhow::anyhow!("--scale {text}: {error}; use a number such as 1/64"))
    })
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.all().iter().map(|entry| entry.name.as_str()).collect()
}

/// Scale of sizes and other overrides of a named scale of a plan.
fn named_scale(
    name: &str,
    origin: &str,
    text: &str,
    catalog: &Catalog,
) -> Result<(Scale, Vec<(String, String)>), Failure> {
    let (suites, filesystems) = (suites::specs(), names(catalog));
    let vocabulary = KnownNames {
        suites: &suites,
        presets: suites::presets(),
        filesystems: &filesystems,
        mounted: &catalog.mounted_types(),
    };
    let plan = Plan::parse(text, vocabulary)
        .map_err(|error| Failure::diagnostic(explain(&error, origin, text)))?;
    let Some(scale) = plan.named_scale(name) else {
        let known: Vec<_> = plan.scales.iter().map(|scale| scale.name.as_str()).collect();
        let hint = match known.as_slice() {
            [] => "the plan has no named scales".to_owned(),
            known => format!("named scales of the plan are {}", known.join(", ")),
        };
        return Err(Failure::usage(anyhow::anyhow!(
            "--scale {name}: must be a positive number, such as 2 or 1/64; {hint}"
        )));
    };
    let (sizes, settings): (Vec<_>, Vec<_>) =
        scale.settings.iter().cloned().partition(|(key, _)| key == "scale");
    let sizes = match sizes.first() {
        None => Scale::ONE,
        Some((_, text)) => Scale::parse(text).map_err(|error| {
            Failure::usage(anyhow::anyhow!("scale `{name}` of the plan: {error}"))
        })?,
    };
    Ok((sizes, settings))
}

/// Smallest memory limit. The limit also applies to fslab itself, its buffers, and pages in
/// writeback. With less memory, the kernel may kill fslab.
const MIN_MEMORY: model::Bytes = model::Bytes::mib(64);

/// Checks the memory limit of a storage. `unscaled` is that of the plan, before it was scaled.
fn check_memory_limit(
    unscaled: Option<model::Bytes>,
    storage: &Storage,
    scale: Scale,
) -> Result<(), Failure> {
    let Some(memory) = storage.memory_limit.filter(|memory| *memory < MIN_MEMORY) else {
        return Ok(());
    };
    let hint = match unscaled.map_or(0, |all| all.0 / MIN_MEMORY.0) {
        0 => "use a larger `memory_limit`".to_owned(),
        1 => "use `--scale 1` or a larger `memory_limit`".to_owned(),
        parts => format!("use `--scale 1/{parts}` or a larger scale"),
    };
    Err(Failure::usage(anyhow::anyhow!(
        "the memory limit is {} at scale {scale}, the minimum is {MIN_MEMORY}; {hint}",
        memory.rough()
    )))
}

fn footprint(point: &model::WorkloadParameters) -> model::Bytes {
    suites::find(&point.suite).map(|suite| (suite.footprint)(point)).unwrap_or_default()
}

/// Space for the files of a workload and 12.5 % for filesystem metadata.
fn with_metadata(files: model::Bytes) -> model::Bytes {
    model::Bytes(files.0.saturating_add(files.0 / 8))
}

/// Checks that a workload fits the storage.
pub(crate) fn fits(
    point: &model::WorkloadParameters,
    storage: &StorageKind,
) -> Result<(), ValueError> {
    let needs = footprint(point);
    match capacity(storage) {
        Some(has) if with_metadata(needs) > has => Err(ValueError::new(format!(
            "the workload needs {} plus 12.5 % for metadata, but the storage has {}",
            needs.rough(),
            has.rough()
        ))
        .hint("use smaller files or larger storage")),
        Some(_) | None => Ok(()),
    }
}

/// Checks that a workload can run on several hosts.
fn runs_on_hosts(point: &model::WorkloadParameters) -> Result<(), ValueError> {
    let suite = point.suite.as_str();
    if !["coherence", "mdtest", "metadata", "stream"].contains(&suite) {
        return Err(ValueError::new(format!("suite `{suite}` cannot run on several hosts")).hint(
            "use suite stream, metadata, mdtest, or coherence, or set storage.directory to measure \
             this host",
        ));
    }
    let word = |name: &str| point.parameters.get(name).map(ToString::to_string);
    if word("stonewall").is_some_and(|stonewall| stonewall != "off") {
        return Err(ValueError::new("the first worker cannot stop the workers of other hosts")
            .hint("remove `stonewall`, or set `stonewall_time` or `runtime`"));
    }
    Ok(())
}

/// Capacity of the storage, of the largest level if it is an axis; `None` if this user cannot
/// determine it.
fn capacity(place: &StorageKind) -> Option<model::Bytes> {
    match place {
        StorageKind::Image { size, count, .. } => {
            Some(model::Bytes(size.0.saturating_mul(u64::from(*count))))
        }
        StorageKind::Directory { path } => {
            // A filesystem without blocks, such as proc, reports no capacity.
            let space =
                rustix::fs::statvfs(path.as_str()).ok().filter(|space| space.f_blocks > 0)?;
            let whole_mib = space.f_bavail.saturating_mul(space.f_frsize) >> 20;
            Some(model::Bytes::mib(whole_mib))
        }
        StorageKind::Devices { paths } => {
            // A file that is not a block device is rejected later, when the storage is opened.
            let device = |path: &String| {
                let file_type = fs::metadata(path).map(|metadata| metadata.file_type());
                file_type.is_ok_and(|file_type| file_type.is_block_device())
            };
            let size =
                |path: &String| fs::File::open(path).and_then(|mut f| f.seek(SeekFrom::End(0)));
            let devices = paths.iter().filter(|path| device(path));
            let sizes: Vec<_> = devices.filter_map(|path| size(path).ok()).collect();
            (sizes.len() == paths.len()).then(|| sizes.into_iter().map(model::Bytes).sum())
        }
        // A workload may use one level only, so each cell is checked again when a run starts.
        StorageKind::Levels { levels } => {
            let sizes: Option<Vec<_>> = levels.iter().map(|level| capacity(&level.kind)).collect();
            sizes?.into_iter().max()
        }
    }
}

/// Maximum size of a plan in bytes. The longest built-in plan has 4 KiB.
const LONGEST: u64 = 256 << 10;

/// Name, origin, and text of a plan given on the command line.
fn find(given: &str) -> Result<(String, String, String), Failure> {
    let path = Path::new(given);
    let looks_like_a_file = path.extension().is_some() || given.contains('/');
    if let (Some(ready), false) =
        (BUILTIN_PLANS.iter().find(|ready| ready.name == given), looks_like_a_file)
    {
        return Ok((ready.name.into(), format!("{given} (built-in plan)"), ready.text.into()));
    }
    let text = sys::input::text(path, LONGEST).map_err(|source| {
        let is_missing = source.kind() == ErrorKind::NotFound;
        Failure::usage(match is_missing && !looks_like_a_file {
            true => anyhow::Error::msg(unknown(given)),
            false => anyhow::anyhow!("cannot read the plan {given}: {source}; use a TOML file"),
        })
    })?;
    let name = path.file_stem().map_or_else(|| given.into(), |stem| stem.to_string_lossy().into());
    Ok((name, given.into(), text))
}

/// Message for a name that is neither a plan nor a workload.
fn unknown(given: &str) -> String {
    if let Some(filesystem) = by_name::filesystem(given) {
        return filesystem;
    }
    if RealHost.find(given).is_some() {
        let named = |name: &&str| name.split('-').any(|word| word == given);
        let near: Vec<String> =
            by_name::names().filter(named).map(|name| format!("`{name}`")).collect();
        let near = match near.is_empty() {
            true => String::new(),
            false => format!(" (workloads: {})", near.join(", ")),
        };
        return format!(
            "`{given}` is a program, not a plan or workload{near}; to measure a program, use the \
             workload `command` with --set run='{given} ...'"
        );
    }
    let names = || BUILTIN_PLANS.iter().map(|ready| ready.name);
    let hint = match (model::suggest::nearest(given, names()), &by_name::near(given)[..]) {
        (Some(near), _) => format!("did you mean the built-in plan `{near}`?"),
        (None, []) => {
            let names: Vec<_> = names().collect();
            format!(
                "use a TOML file, a workload (`fslab list workloads`), or a built-in plan: {}",
                names.join(", ")
            )
        }
        (None, near) => format!("did you mean the workload {}?", near.join(" or ")),
    };
    format!("no plan or workload `{given}`; {hint}")
}

/// Diagnostic with line and hint in the style of a compiler.
fn explain(error: &PlanError, origin: &str, text: &str) -> String {
    let label = error.hint.as_deref().unwrap_or("here");
    let span = error.span.start.min(text.len())..error.span.end.min(text.len());
    let snippet = Snippet::source(text)
        .path(origin)
        .annotation(AnnotationKind::Primary.span(span).label(label));
    let report = &[Level::ERROR.primary_title(error.message.clone()).element(snippet)];
    Renderer::plain().render(report)
}
