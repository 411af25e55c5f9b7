use model::phase::{GROUP, Stream};

use super::*;

const LOG: &str = "name=log suite=stream direction=write access_pattern=append overwrite=false \
                   fsync_every=1 rate=200/s arrivals=poisson";
const BULK: &str = "name=bulk role=background start_delay=2s suite=stream direction=write \
                    block_size=1MiB file_size=64MiB";

fn point(members: &[&str], only: &str) -> Result<WorkloadParameters, ValueError> {
    let mut point = SPEC.defaults();
    let members = LINES.read(&members.join("\n"))?;
    point.parameters.insert(MEMBERS.into(), members);
    point.parameters.insert(ONLY.into(), model::Value::Text(only.into()));
    refine(point).map(|mut points| points.remove(0))
}

fn error(members: &[&str]) -> String {
    let error = point(members, "").unwrap_err();
    format!("{}; {}", error.message, error.hint.unwrap_or_default())
}

fn stream(phase: &Phase) -> &Stream {
    let Work::Stream(stream) = &phase.work else { panic!("{phase:?} is a stream") };
    stream
}

#[test]
fn all_windows_start_and_end_at_the_same_time() {
    let phases = phases(&point(&[LOG, BULK], "").unwrap(), 1);
    let names: Vec<&str> = phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, ["bulk.layout", "log", "bulk"]);
    assert_eq!(phases[0].together, None);
    let [log, bulk] = [&phases[1], &phases[2]];
    let second = 1_000_000_000;
    let window = |phase: &Phase| {
        let Bound::Time { ramp, run } = stream(phase).bound else { panic!("limited by time") };
        let together = phase.together.unwrap();
        (together.start_delay.0 / second, ramp.0 / second, run.0 / second, together.part)
    };
    assert_eq!(window(log), (0, 7, 30, Part::Measured));
    assert_eq!(window(bulk), (2, 5, 30, Part::Background));
    assert_eq!((log.result_role(), bulk.result_role()), (Role::Measure, Role::Prepare));
    assert_eq!(log.directory.as_deref(), Some("log"));
    assert_eq!(phases[0].directory, bulk.directory);
}

#[test]
fn a_member_alone_finds_the_files_of_all_members_and_has_the_same_window() {
    let group = phases(&point(&[LOG, BULK], "").unwrap(), 1);
    let alone = phases(&point(&[LOG, BULK], "log").unwrap(), 1);
    assert_eq!(alone, [group[0].clone(), group[1].clone()]);
    let load = phases(&point(&[LOG, BULK], "bulk").unwrap(), 1);
    assert_eq!(load[1].result_role(), Role::Measure, "a member alone has results");
}

#[test]
fn the_text_of_members_is_canonical() {
    let short = point(&[LOG, BULK], "").unwrap();
    let text = short.text(MEMBERS).to_owned();
    let again = point(&text.lines().collect::<Vec<_>>(), "").unwrap();
    assert_eq!(short, again);
    assert_eq!(members(&short), members(&again));
    assert_eq!(members(&short)[1].workload.size("file_size"), Bytes::mib(64));
}

#[test]
fn programs_end_the_group_and_the_others_run_until_then() {
    let program = "name=db suite=command name=x 'run=sleep 1'";
    let phases = phases(&point(&[program, LOG], "").unwrap(), 1);
    let log = phases.iter().find(|phase| phase.name == "log").unwrap();
    assert!(matches!(stream(log).bound, Bound::Time { run: UNLIMITED, .. }));
    assert_eq!(phases.iter().filter(|phase| phase.together.is_some()).count(), 2);
}

#[test]
fn unsuitable_members_are_rejected_with_a_hint() {
    let program =
        |name: &str, role: &str| format!("name={name} role={role} suite=command run=true");
    let (one, two) = (program("one", "measured"), program("two", "measured"));
    let background = program("one", "background");
    let messages = [
        error(&[LOG]),
        error(&[LOG, LOG]),
        error(&[LOG, "name=meta suite=metadata"]),
        error(&[LOG, "name=old suite=iozone"]),
        error(&[BULK, "name=other role=background suite=stream"]),
        error(&[&one, &two]),
        error(&[LOG, &background]),
        error(&[LOG, "name=mkfs suite=stream"]),
        error(&[LOG, "suite=stream"]),
        error(&[LOG, "name=a suite=stream file_siz=1MiB"]),
    ];
    expect_test::expect![[r#"
        workloads that run together need at least two members; add a member, or write a single workload
        two members have the name `log`; use another name
        member `meta` has 25 measured phases; a member has one; set operations = "mix"
        member `old`: suite `iozone` cannot run together with others; use one of: stream, metadata, dbench, sqlite, mail, command, maintenance
        no member has the role `measured`; remove the role from the member to measure
        two measured members end by themselves: `one` and `two`; use suite command for one member at most; the others need a workload that a time limits
        member `one`: programs cannot run in the background; remove its role; or use suite maintenance with action = "run", which repeats a program
        `mkfs` is the name of a step of a trial; use another name for the member
        a member has no `name`; add name=log
        suite `stream` has no parameter `file_siz`; did you mean `file_size`?"#]].assert_eq(&messages.join("\n"));
    assert!(point(&[LOG, BULK], "gone").is_err());
    assert_eq!(GROUP, NAME);
}

#[test]
fn the_footprint_is_that_of_all_members() {
    let point = point(&[LOG, BULK], "log").unwrap();
    let own: Bytes = members(&point)
        .iter()
        .map(|member| (find("stream").unwrap().footprint)(&member.workload))
        .sum();
    assert_eq!(footprint(&point), own);
    assert!(own >= Bytes::mib(64));
}
