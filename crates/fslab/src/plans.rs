//! Ready plans, and how a plan is found, read, changed and explained when it is wrong.

use std::{
    fs,
    io::{Seek, SeekFrom},
    path::Path,
};

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use model::{
    Plan, PlanError, Scale, Storage, Vocabulary, matrix::Labelled, storage::Place,
    workload::ValueError,
};
use rig::Catalogue;

use crate::{cli::Changes, exit::Failure};

/// A plan that comes with the program.
pub(crate) struct Ready {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Its text.
    pub(crate) text: &'static str,
}

/// Every ready plan.
pub(crate) const READY: &[Ready] = &[
    Ready { name: "bonnie-2012", text: include_str!("../../../plans/bonnie-2012.toml") },
    Ready { name: "dbench-2012", text: include_str!("../../../plans/dbench-2012.toml") },
    Ready { name: "demo", text: include_str!("../../../plans/demo.toml") },
    Ready { name: "demo-directory", text: include_str!("../../../plans/demo-directory.toml") },
    Ready { name: "demo-guest", text: include_str!("../../../plans/demo-guest.toml") },
    Ready { name: "filesystem-cost", text: include_str!("../../../plans/filesystem-cost.toml") },
    Ready { name: "iozone-2009", text: include_str!("../../../plans/iozone-2009.toml") },
    Ready { name: "kernel-history", text: include_str!("../../../plans/kernel-history.toml") },
    Ready { name: "metadata-scaling", text: include_str!("../../../plans/metadata-scaling.toml") },
    Ready { name: "smallfiles-2011", text: include_str!("../../../plans/smallfiles-2011.toml") },
    Ready { name: "tasks-2006", text: include_str!("../../../plans/tasks-2006.toml") },
];

/// A plan as it will be run.
#[derive(Debug)]
pub(crate) struct Chosen {
    /// Its name: a ready plan's, or the file name without `.toml`.
    pub(crate) name: String,
    /// Its text, byte for byte.
    pub(crate) text: String,
    /// The plan with the settings of the command line.
    pub(crate) plan: Plan,
    /// Those settings.
    pub(crate) amendments: Vec<(String, String)>,
    /// The scale.
    pub(crate) scale: Scale,
    /// The cells.
    pub(crate) cells: Vec<Labelled>,
    /// The storage at that scale.
    pub(crate) storage: Storage,
}

impl Chosen {
    /// Finds, reads and checks a plan.
    ///
    /// # Errors
    /// A diagnostic with file, line and cure when anything about it is wrong.
    pub(crate) fn new(
        given: &str,
        changes: &Changes,
        catalogue: &Catalogue,
    ) -> Result<Self, Failure> {
        let (name, origin, text) = find(given)?;
        let profile =
            changes.profile.map(|name| ("profile".to_owned(), name.profile().name().into()));
        let guest = changes.guest.map(|kind| ("guest".to_owned(), kind.name().to_owned()));
        let kernel = (!changes.kernel.is_empty()).then(|| changes.kernel.join(","));
        let kernel = kernel.map(|kernels| ("kernel".to_owned(), kernels));
        let set = changes.set.iter().cloned();
        let own = profile.into_iter().chain(guest).chain(kernel).chain(set);
        let (scale, settings) = match Scale::parse(&changes.scale) {
            Ok(scale) => (scale, Vec::new()),
            Err(_) => named_scale(&changes.scale, &origin, &text, catalogue)?,
        };
        // What is asked for on the command line stands above what a scale sets.
        let amendments = settings.into_iter().chain(own).collect();
        Self::read(name, &origin, text, amendments, scale, catalogue)
    }

    /// Checks a plan whose text is at hand; `origin` is the name its mistakes are shown under.
    ///
    /// # Errors
    /// As [`Chosen::new`].
    pub(crate) fn read(
        name: String,
        origin: &str,
        text: String,
        amendments: Vec<(String, String)>,
        scale: Scale,
        catalogue: &Catalogue,
    ) -> Result<Self, Failure> {
        let suites = suites::specs();
        let filesystems = names(catalogue);
        let vocabulary =
            Vocabulary { suites: &suites, recipes: suites::recipes(), filesystems: &filesystems };
        let wrong = |error: PlanError| Failure::diagnostic(explain(&error, origin, &text));
        let mut plan = Plan::parse(&text, vocabulary).map_err(wrong)?;
        for (key, value) in &amendments {
            plan.set(key, value, vocabulary).map_err(|error| {
                let cure = error.cure.as_ref().map(|cure| format!("; {cure}")).unwrap_or_default();
                Failure::usage(anyhow::anyhow!("--set {key}={value}: {error}{cure}"))
            })?;
        }
        plan.consistent().map_err(|error| {
            let cure = error.cure.as_ref().map(|cure| format!("; {cure}")).unwrap_or_default();
            Failure::usage(anyhow::anyhow!("{error}{cure}"))
        })?;
        if plan.title.is_empty() {
            plan.title.clone_from(&name);
        }
        let storage = plan.storage_at(scale);
        roomy(&storage, scale)?;
        let refine = |point| {
            let points = suites::refine(point)?;
            points.iter().try_for_each(|point| fits(point, &storage))?;
            Ok(points)
        };
        let cells = plan.cells(scale, &refine).map_err(wrong)?;
        Ok(Self { name, text, amendments, scale, cells, storage, plan })
    }

    /// The most space the files of any trial take.
    pub(crate) fn footprint(&self) -> model::Bytes {
        let points = self.cells.iter().map(|labelled| &labelled.cell.workload);
        points.map(footprint).max().unwrap_or_default()
    }
}

fn names(catalogue: &Catalogue) -> Vec<&str> {
    catalogue.all().iter().map(|entry| entry.name.as_str()).collect()
}

/// What a plan's own scale of that name sets: its scale of sizes, and the rest.
fn named_scale(
    name: &str,
    origin: &str,
    text: &str,
    catalogue: &Catalogue,
) -> Result<(Scale, Vec<(String, String)>), Failure> {
    let (suites, filesystems) = (suites::specs(), names(catalogue));
    let vocabulary =
        Vocabulary { suites: &suites, recipes: suites::recipes(), filesystems: &filesystems };
    let plan = Plan::parse(text, vocabulary)
        .map_err(|error| Failure::diagnostic(explain(&error, origin, text)))?;
    let Some(scale) = plan.named_scale(name) else {
        let known: Vec<_> = plan.scales.iter().map(|scale| scale.name.as_str()).collect();
        let cure = match known.as_slice() {
            [] => "this plan has no scales of its own: write a number such as 1/64".to_owned(),
            known => format!("write a number such as 1/64, or one of {}", known.join(", ")),
        };
        return Err(Failure::usage(anyhow::anyhow!("there is no scale `{name}`; {cure}")));
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

/// The limit holds for fslab itself too, with its buffers and what is in writeback: below this the
/// kernel would kill it sooner or later.
const LEAST_MEMORY: model::Bytes = model::Bytes::mib(64);

fn roomy(storage: &Storage, scale: Scale) -> Result<(), Failure> {
    match storage.memory {
        Some(memory) if memory < LEAST_MEMORY => Err(Failure::usage(anyhow::anyhow!(
            "a memory limit of {memory} (at scale {scale}) leaves no room for fslab itself; \
             the least is {LEAST_MEMORY}: take a larger scale or limit"
        ))),
        Some(_) | None => Ok(()),
    }
}

fn footprint(point: &model::Point) -> model::Bytes {
    suites::find(&point.suite).map(|suite| (suite.footprint)(point)).unwrap_or_default()
}

/// A workload must fit where it goes, with an eighth to spare for the filesystem's own structures.
fn fits(point: &model::Point, storage: &Storage) -> Result<(), ValueError> {
    let needs = footprint(point);
    match capacity(&storage.place) {
        Some(has) if needs.0.saturating_add(needs.0 / 8) > has.0 => Err(ValueError::new(format!(
            "the workload needs {needs} and an eighth to spare, and there is room for {has}"
        ))
        .cure("make the files smaller, or the storage larger")),
        Some(_) | None => Ok(()),
    }
}

/// What the storage can hold at most, as far as this user may know.
fn capacity(place: &Place) -> Option<model::Bytes> {
    match place {
        Place::Image { size, count, .. } => {
            Some(model::Bytes(size.0.saturating_mul(u64::from(*count))))
        }
        Place::Directory { path } => {
            // A filesystem without blocks, such as proc, does not tell.
            let room = rustix::fs::statvfs(path.as_str()).ok().filter(|room| room.f_blocks > 0)?;
            let whole_mib = room.f_bavail.saturating_mul(room.f_frsize) >> 20;
            Some(model::Bytes::mib(whole_mib))
        }
        Place::Devices { paths } => {
            let size =
                |path: &String| fs::File::open(path).and_then(|mut f| f.seek(SeekFrom::End(0)));
            paths.iter().map(|path| size(path).ok().map(model::Bytes)).sum()
        }
    }
}

/// Bytes of the longest plan. The longest ready plan has 4 KiB.
const LONGEST: u64 = 256 << 10;

/// Name, origin and text of a plan given on the command line.
fn find(given: &str) -> Result<(String, String, String), Failure> {
    let path = Path::new(given);
    let looks_like_a_file = path.extension().is_some() || given.contains('/');
    if let (Some(ready), false) =
        (READY.iter().find(|ready| ready.name == given), looks_like_a_file)
    {
        return Ok((ready.name.into(), format!("{given} (ready plan)"), ready.text.into()));
    }
    let text = sys::input::text(path, LONGEST).map_err(|source| {
        let names: Vec<_> = READY.iter().map(|ready| ready.name).collect();
        let near = model::suggest::nearest(given, names.iter().copied());
        let cure = match near {
            Some(near) => format!("did you mean the ready plan `{near}`?"),
            None => format!("give a TOML file or a ready plan: {}", names.join(", ")),
        };
        Failure::usage(anyhow::anyhow!("cannot read the plan {given}: {source}; {cure}"))
    })?;
    let name = path.file_stem().map_or_else(|| given.into(), |stem| stem.to_string_lossy().into());
    Ok((name, given.into(), text))
}

/// A mistake with its line and cure, as compilers show them.
fn explain(error: &PlanError, origin: &str, text: &str) -> String {
    let label = error.cure.as_deref().unwrap_or("here");
    let span = error.span.start.min(text.len())..error.span.end.min(text.len());
    let snippet = Snippet::source(text)
        .path(origin)
        .annotation(AnnotationKind::Primary.span(span).label(label));
    let report = &[Level::ERROR.primary_title(error.message.clone()).element(snippet)];
    Renderer::plain().render(report)
}
