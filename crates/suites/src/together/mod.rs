//! Suite `together`: workloads that run at the same time in one filesystem.
//!
//! Each member is a workload of another suite with one measured phase. A trial prepares the files
//! of all members, one member after the other, each in a separate directory. Then the measured
//! phases of all members start together ([`Together`]), or that of one member alone. In plans, the
//! key `together` of a workload writes the parameters of this suite.

#[cfg(test)]
mod tests;

use model::{
    Bytes, Nanos, Phase, SuiteSpec, WorkloadParameters,
    phase::{Bound, GroupEnd, Part, Role, Stonewall, TimeLimit, Together, UNLIMITED, Until, Work},
    plan::together::{MEMBERS, ONLY, SUITE as NAME, line},
    sample::lifecycle,
    words,
    workload::{Kind, ParameterSpec, ValueError},
};

use crate::{Suite, command, dbench, mail, maintenance, metadata, parameter, sqlite, stream};

/// Definition of the suite.
pub(crate) const SUITE: Suite = Suite { spec: &SPEC, refine, phases, footprint };

/// Suites of members.
const SUITES: [Suite; 7] = [
    stream::SUITE,
    metadata::SUITE,
    dbench::SUITE,
    sqlite::SUITE,
    mail::SUITE,
    command::SUITE,
    maintenance::SUITE,
];

/// Suite of a member with this name.
fn find(name: &str) -> Option<&'static Suite> {
    SUITES.iter().find(|suite| suite.spec.name == name)
}

/// Example, and default of the parameter `members`.
const EXAMPLE: &str = "name=log suite=stream direction=write access_pattern=append \
                       overwrite=false fsync_every=1 rate=200/s arrivals=poisson cache=unchanged\n\
                       name=bulk role=background suite=stream direction=write block_size=1MiB \
                       file_size=1GiB cache=unchanged";

const LINES: Kind =
    Kind::Lines { takes: "a list of members with name, suite, and parameters", read: read_members };
const MEMBER: Kind = Kind::Text { takes: "the name of a member", read: read_name };

#[rustfmt::skip]
const PARAMETERS: &[ParameterSpec] = &[
    parameter(MEMBERS, LINES, EXAMPLE, "Members, one line each: name, role, start_delay, suite, and parameters of the suite. In plans, use `together`."),
    parameter(ONLY, MEMBER, "", "Member that runs, while the files of all members exist; empty: all members run. In plans, use `alone`."),
    parameter("runtime", Kind::Time, "30s", "Measured time. Not used if a measured member runs programs: the others then run until the programs end."),
    parameter("ramp_time", Kind::Time, "5s", "Time between the last start of a member and the start of the measurement."),
];

const SPEC: SuiteSpec = SuiteSpec {
    name: NAME,
    title: "Workloads that run at the same time in one filesystem, each of them also alone.",
    source: "fslab",
    notes: include_str!("notes.md"),
    clients: None,
    parameters: PARAMETERS,
};

/// Member of workloads that run together.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Name: directory of its files, and name of its measured phase.
    pub name: String,
    /// Role.
    pub part: Part,
    /// Time between the common start and the start of the member.
    pub start_delay: Nanos,
    /// Workload.
    pub workload: WorkloadParameters,
}

/// Members of a workload of this suite; empty for other suites.
pub fn members(point: &WorkloadParameters) -> Vec<Member> {
    if point.suite != NAME {
        return Vec::new();
    }
    parse(point.text(MEMBERS)).unwrap_or_default()
}

/// Member that runs alone, if the workload has this suite and names one.
pub fn only(point: &WorkloadParameters) -> Option<&str> {
    let named = (point.suite == NAME).then(|| point.text(ONLY));
    named.filter(|name| !name.is_empty())
}

fn read_name(text: &str) -> Result<String, ValueError> {
    Ok(text.trim().to_owned())
}

fn read_members(text: &str) -> Result<String, ValueError> {
    let of =
        |member: &Member| line(&member.name, member.part, member.start_delay, &member.workload);
    let lines: Vec<Vec<String>> = parse(text)?.iter().map(of).collect();
    Ok(words::join_lines(&lines))
}

fn parse(text: &str) -> Result<Vec<Member>, ValueError> {
    words::split(text)?.iter().map(|line| member(line)).collect()
}

/// Parses the line of a member.
fn member(line: &[String]) -> Result<Member, ValueError> {
    let pairs = line.iter().map(|word| {
        word.split_once('=').ok_or_else(|| {
            ValueError::new(format!("`{word}` is not key=value"))
                .hint("write for example name=log suite=stream direction=write")
        })
    });
    let pairs: Vec<(&str, &str)> = pairs.collect::<Result<_, _>>()?;
    let get = |key: &str| pairs.iter().find(|(own, _)| *own == key).map(|(_, text)| *text);
    let missing = |key: &str| ValueError::new(format!("a member has no `{key}`"));
    let name = get("name").ok_or_else(|| missing("name").hint("add name=log"))?.to_owned();
    let suite = get("suite").ok_or_else(|| missing("suite").hint("add suite=stream"))?;
    let suite = find(suite).ok_or_else(|| unsuitable(&name, suite))?;
    let part = match get("role") {
        None => Part::Measured,
        Some(text) => {
            let part = Part::ALL.into_iter().find(|part| part.name() == text);
            part.ok_or_else(|| ValueError::new(format!("unknown role `{text}`")))?
        }
    };
    let start_delay = get("start_delay").map(Nanos::parse).transpose();
    let start_delay = start_delay.map_err(|error| ValueError::new(error.to_string()))?;
    let mut workload = suite.spec.defaults();
    let own = |key: &str| matches!(key, "role" | "start_delay" | "suite");
    // The second `name` is a parameter of the suite.
    let mut names = 0;
    for (key, text) in pairs.iter().filter(|(key, _)| !own(key)) {
        names += u32::from(*key == "name");
        if *key == "name" && names == 1 {
            continue;
        }
        let kind = suite.spec.parameter(key)?.kind;
        workload.parameters.insert((*key).to_owned(), kind.read(text)?);
    }
    Ok(Member { name, part, start_delay: start_delay.unwrap_or_default(), workload })
}

fn unsuitable(name: &str, suite: &str) -> ValueError {
    ValueError::new(format!("member `{name}`: suite `{suite}` cannot run together with others"))
        .hint(format!("use one of: {}", SUITES.map(|suite| suite.spec.name).join(", ")))
}

/// Condition that ends the measured phase of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Time,
    /// Its programs.
    Itself,
}

fn end(work: &Work) -> Option<End> {
    match work {
        Work::Stream(_) | Work::Replay(_) | Work::Mix(_) => Some(End::Time),
        Work::Sqlite(sqlite) => (sqlite.updates > 0).then_some(End::Time),
        Work::Mail(_) => Some(End::Time),
        Work::Maintenance(_) => Some(End::Time),
        Work::Command(_) => Some(End::Itself),
        Work::Tree(_)
        | Work::Layout(_)
        | Work::Task(_)
        | Work::Trace(_)
        | Work::Coherence(_)
        | Work::Remove { .. } => None,
    }
}

/// Limits the loop of a measured phase.
fn set_limit(work: &mut Work, limit: TimeLimit) {
    let TimeLimit { ramp, run } = limit;
    match work {
        Work::Stream(stream) => {
            stream.bound = Bound::Time { ramp, run };
            stream.workers.stonewall = Stonewall::Off;
        }
        Work::Replay(replay) => replay.until = Until::Time { ramp, run },
        Work::Mix(mix) => {
            mix.time = Some(limit);
            mix.workers.stonewall = Stonewall::Off;
        }
        Work::Sqlite(sqlite) => sqlite.time = Some(limit),
        Work::Mail(mail) => mail.time = Some(limit),
        Work::Maintenance(maintenance) => maintenance.time = limit,
        Work::Command(_)
        | Work::Coherence(_)
        | Work::Tree(_)
        | Work::Layout(_)
        | Work::Task(_)
        | Work::Trace(_)
        | Work::Remove { .. } => {}
    }
}

fn phases_of(member: &Member, seed: u64) -> Vec<Phase> {
    find(&member.workload.suite)
        .map(|suite| (suite.phases)(&member.workload, seed))
        .unwrap_or_default()
}

/// End of the measured phase of a member.
///
/// # Errors
/// If the member does not have exactly one measured phase with a suitable end.
fn checked_end(member: &Member) -> Result<End, ValueError> {
    let phases = phases_of(member, 0);
    let mut measured = phases.iter().filter(|phase| phase.role == Role::Measure);
    let (name, suite) = (&member.name, member.workload.suite.as_str());
    let hint = match suite {
        "metadata" => "set operations = \"mix\"",
        _ => "use a workload with one measured phase that repeats until its time is over",
    };
    match (measured.next(), measured.count()) {
        (Some(phase), 0) => end(&phase.work).ok_or_else(|| {
            let message = format!("member `{name}`: phase {} has no time limit", phase.name);
            ValueError::new(message).hint(hint)
        }),
        (first, others) => {
            let count = usize::from(first.is_some()) + others;
            let message = format!("member `{name}` has {count} measured phases; a member has one");
            Err(ValueError::new(message).hint(hint))
        }
    }
}

fn refine(mut point: WorkloadParameters) -> Result<Vec<WorkloadParameters>, ValueError> {
    let mut all = parse(point.text(MEMBERS))?;
    if all.len() < 2 {
        return Err(ValueError::new("workloads that run together need at least two members")
            .hint("add a member, or write a single workload"));
    }
    for at in 0..all.len() {
        let name = &all[at].name;
        let steps = [lifecycle::SPACE, lifecycle::TRIAL, model::phase::GROUP];
        if lifecycle::ALL.iter().chain(&steps).any(|step| step == name) {
            let message = format!("`{name}` is the name of a step of a trial");
            return Err(ValueError::new(message).hint("use another name for the member"));
        }
        if all[..at].iter().any(|other| other.name == *name) {
            return Err(ValueError::new(format!("two members have the name `{name}`"))
                .hint("use another name"));
        }
    }
    for member in &mut all {
        let suite = find(&member.workload.suite);
        let refine = suite.ok_or_else(|| unsuitable(&member.name, &member.workload.suite))?.refine;
        let mut points = refine(member.workload.clone())?;
        match (points.pop(), points.is_empty()) {
            (Some(point), true) => member.workload = point,
            _ => {
                let message = format!("member `{}` has several combinations", member.name);
                return Err(ValueError::new(message).hint("use one value per parameter"));
            }
        }
    }
    let ends: Vec<End> = all.iter().map(checked_end).collect::<Result<_, _>>()?;
    let own = || all.iter().zip(&ends).filter(|(_, end)| **end == End::Itself);
    if let Some((member, _)) = own().find(|(member, _)| member.part == Part::Background) {
        let message = format!("member `{}`: programs cannot run in the background", member.name);
        return Err(ValueError::new(message).hint(
            "remove its role; or use suite maintenance with action = \"run\", which repeats a \
             program",
        ));
    }
    if let Some((second, _)) = own().nth(1) {
        let message = format!(
            "two measured members end by themselves: `{}` and `{}`",
            own().next().map(|(first, _)| first.name.as_str()).unwrap_or_default(),
            second.name
        );
        return Err(ValueError::new(message).hint(
            "use suite command for one member at most; the others need a workload that a time \
             limits",
        ));
    }
    if !all.iter().any(|member| member.part == Part::Measured) {
        return Err(ValueError::new("no member has the role `measured`")
            .hint("remove the role from the member to measure"));
    }
    let only = point.text(ONLY);
    if !only.is_empty() && !all.iter().any(|member| member.name == only) {
        return Err(ValueError::new(format!("there is no member `{only}`"))
            .hint("use the name of a member"));
    }
    if own().next().is_some() {
        point.reset(&SPEC.defaults(), &["runtime"]);
    } else if point.time("runtime") == Nanos(0) {
        return Err(ValueError::new("`runtime` is 0").hint("use a duration such as \"30s\""));
    }
    let lines: Vec<Vec<String>> = all
        .iter()
        .map(|member| line(&member.name, member.part, member.start_delay, &member.workload))
        .collect();
    point.parameters.insert(MEMBERS.into(), model::Value::Text(words::join_lines(&lines)));
    Ok(vec![point])
}

fn phases(point: &WorkloadParameters, seed: u64) -> Vec<Phase> {
    let (members, only) = (members(point), only(point));
    let latest = members.iter().map(|member| member.start_delay).max().unwrap_or_default();
    let ends_itself = members.iter().any(|member| checked_end(member) == Ok(End::Itself));
    let run = if ends_itself { UNLIMITED } else { point.time("runtime") };
    let (mut before, mut group, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for member in &members {
        let is_only = only == Some(member.name.as_str());
        let runs = only.is_none() || is_only;
        let mut measured = false;
        for mut phase in phases_of(member, seed) {
            phase.directory = Some(member.name.clone());
            if phase.role == Role::Prepare {
                phase.name = format!("{}.{}", member.name, phase.name);
                let list = if measured { &mut after } else { &mut before };
                list.push(phase);
                continue;
            }
            measured = true;
            let ramp = latest - member.start_delay + point.time("ramp_time");
            set_limit(&mut phase.work, TimeLimit { ramp, run });
            phase.name.clone_from(&member.name);
            let part = if is_only { Part::Measured } else { member.part };
            let start_delay = member.start_delay;
            phase.together = Some(Together {
                group: 0,
                start_delay,
                of_trial: false,
                after: None,
                part,
                end: GroupEnd::First,
            });
            if runs {
                group.push(phase);
            }
        }
    }
    before.into_iter().chain(group).chain(after).collect()
}

/// Files of all members.
fn footprint(point: &WorkloadParameters) -> Bytes {
    let of = |member: &Member| {
        let suite = find(&member.workload.suite);
        suite.map(|suite| (suite.footprint)(&member.workload)).unwrap_or_default()
    };
    members(point).iter().map(of).sum()
}
