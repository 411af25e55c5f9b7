//! Suite `maintenance`: actions on a mounted filesystem at given times, as background load of other
//! workloads or alone.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Nanos, Phase, SuiteSpec, WorkloadParameters,
    phase::{
        Action, Cache, DataPattern, Item, Layout, Maintenance, Naming, Role, Set, Sharing, Sizes,
        Spread, TimeLimit, Timed, Work,
    },
    words,
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, parameter};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

const PROGRAM: Kind = Kind::Lines { takes: "a program and its arguments", read: read_program };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter("action", Kind::Word(&Action::NAMES), "sync", "Action: discard free space (as fstrim), syncfs, read-only snapshot (btrfs), scrub (btrfs), remove a tree, fill the filesystem, freeze it (as fsfreeze), or run a program."),
    parameter("at", Kind::Time, "0s", "Start of the first action, after the start of the workload."),
    parameter("every", Kind::Time, "0s", "Time between the starts of two actions; 0s: each starts when the previous one ends."),
    parameter("count", Kind::Count { min: 0, max: 1 << 20 }, "0", "Maximum number of actions; 0: until the end. remove: number of trees, at least 1."),
    parameter("may_fail", Kind::Flag, "false", "An action that fails is listed, and does not fail the trial."),
    parameter("run", PROGRAM, "", "Program and arguments (run), without a shell, as the user of fslab; {target} is the directory of the workload."),
    parameter("files", Kind::Amount { min: 1, max: 1 << 32 }, "1000", "Files of each tree (remove)."),
    parameter("file_size", Kind::Size { min: Bytes(0), scales: false }, "4KiB", "Size of each of these files."),
    parameter("percent", Kind::Count { min: 1, max: 100 }, "90", "Percentage of the space in use, as shown by df, up to which the filesystem is filled (fill)."),
    parameter("hold", Kind::Time, "0s", "Time for which the filesystem remains frozen (freeze), at most 10s."),
    parameter("runtime", Kind::Time, "10s", "Measured time, if the workload runs alone."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: model::plan::together::ACTIONS,
    title: "Maintenance of a mounted filesystem: trim, sync, snapshot, scrub, removal, filling, freezing, a program.",
    source: "fslab; fstrim(8), syncfs(2), btrfs-subvolume(8), btrfs-scrub(8), fsfreeze(8)",
    notes: include_str!("notes.md"),
    clients: None,
    parameters: PARAMETERS,
};

/// Maximum time for which a filesystem remains frozen.
const HOLD_MAX: Nanos = Nanos(10_000_000_000);

/// Entries per directory of a tree.
const EACH: u64 = 100;

fn read_program(text: &str) -> Result<String, ValueError> {
    let programs = words::split(text)?;
    if programs.len() > 1 {
        return Err(ValueError::new("there is more than one program").hint("use one"));
    }
    let known = |name: &str| (name == "target").then(String::new);
    for word in programs.iter().flatten() {
        model::phase::command::fill(word, known)?;
    }
    Ok(words::join_lines(&programs))
}

fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    let action = point.word("action").to_owned();
    let has_program = !point.text("run").is_empty();
    if action == "run" && !has_program {
        return Err(ValueError::new("`action` is \"run\", but there is no program")
            .hint("add run = [\"program\", \"argument\"]"));
    }
    if action != "run" && has_program {
        return Err(ValueError::new(format!("action \"{action}\" has no program"))
            .hint("set action = \"run\", or remove `run`"));
    }
    if action == "remove" && point.count("count") == 0 {
        return Err(ValueError::new("`count` is 0, but each removal needs a tree")
            .hint("set `count` to the number of trees"));
    }
    if point.time("runtime") == Nanos(0) {
        return Err(ValueError::new("`runtime` is 0").hint("use a duration such as \"10s\""));
    }
    if action == "fill" && point.count("count") == 0 && point.time("every") == Nanos(0) {
        return Err(ValueError::new(
            "`count` and `every` are 0, but a filesystem is filled only once",
        )
        .hint("set count = 1, or `every` if other members remove files"));
    }
    if point.flag("may_fail") && point.count("count") == 0 && point.time("every") == Nanos(0) {
        return Err(ValueError::new("`may_fail` without a pause: `count` and `every` are 0")
            .hint("set `every`, for example \"1s\", or `count`"));
    }
    if point.time("hold") > HOLD_MAX {
        return Err(ValueError::new("`hold` is more than 10 s").hint("use at most \"10s\""));
    }
    for (of, parameters) in
        [("remove", &["files", "file_size"][..]), ("fill", &["percent"]), ("freeze", &["hold"])]
    {
        if action != of {
            point.reset(&SPEC.defaults(), parameters);
        }
    }
    Ok(vec![point])
}

fn action(point: &WorkloadParameters) -> Action {
    match point.word("action") {
        "trim" => Action::Trim,
        "snapshot" => Action::Snapshot,
        "scrub" => Action::Scrub,
        "remove" => Action::Remove,
        "fill" => Action::Fill(u8::try_from(point.count("percent")).unwrap_or(100)),
        "freeze" => Action::Freeze(point.time("hold")),
        "run" => Action::Run(words::split(point.text("run")).unwrap_or_default().concat()),
        _ => Action::Sync,
    }
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let phase = |name: &str, role, work| Phase {
        name: name.to_owned(),
        group: "maintenance".into(),
        role,
        cache: Cache::Unchanged,
        work,
        timed: Timed::default(),
        directory: None,
        together: None,
    };
    let maintenance = Maintenance {
        action: action(point),
        at: point.time("at"),
        every: point.time("every"),
        count: point.count("count"),
        may_fail: point.flag("may_fail"),
        time: TimeLimit { ramp: Nanos(0), run: point.time("runtime") },
    };
    let measured = phase(maintenance.action.name(), Role::Measure, Work::Maintenance(maintenance));
    if point.word("action") != "remove" {
        return vec![measured];
    }
    let set = Set {
        name: "tree".into(),
        sharing: Sharing::Private,
        files: point.count("files"),
        spread: Spread::Directories { each: EACH },
        naming: Naming::Numbers,
        sizes: Sizes::Fixed(point.size("file_size")),
        block_size: Bytes::kib(128),
        data: DataPattern::default(),
        seed,
    };
    let owners = u32::try_from(point.count("count")).unwrap_or(u32::MAX);
    let trees = Work::Layout(Layout { set, item: Item::File, owners });
    vec![phase("trees", Role::Prepare, trees), measured]
}

/// Files of the trees, rounded up to blocks.
fn footprint(point: &WorkloadParameters) -> Bytes {
    if point.word("action") != "remove" {
        return Bytes(0);
    }
    let each = point.size("file_size").0.div_ceil(4096).saturating_add(1) * 4096;
    Bytes(each.saturating_mul(point.count("files")).saturating_mul(point.count("count")))
}
