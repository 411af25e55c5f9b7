use expect_test::{Expect, expect};
use model::phase::WorkerKind;

use super::*;

fn refined(settings: &[(&str, &str)]) -> Result<Point, ValueError> {
    let mut point = SPEC.defaults();
    for (name, text) in settings {
        let kind = SPEC.parameter(name).unwrap().kind;
        point.parameters.insert((*name).into(), kind.read(text)?);
    }
    refine(point).map(|mut points| points.remove(0))
}

fn shown(settings: &[(&str, &str)], expected: Expect) {
    let phases = phases(&refined(settings).unwrap(), 7);
    expected.assert_eq(&phases.iter().map(crate::described).collect::<String>());
}

#[test]
fn one_phase_replays_the_load() {
    shown(
        &[],
        expect![[r#"
        replay Measure Cold Office { iterations: 129, seed: 7 } Time { ramp: Nanos(12000000000), run: Nanos(60000000000) }
    "#]],
    );
    shown(
        &[("load", "dbench"), ("clients", "20"), ("time", "10s")],
        expect![[r#"
        replay Measure Cold File { path: None } Time { ramp: Nanos(2000000000), run: Nanos(10000000000) } workers=20
    "#]],
    );
    shown(
        &[
            ("load", "/srv/load.gz"),
            ("replays", "2"),
            ("worker", "thread"),
            ("resolve", "false"),
            ("sync_files", "true"),
            ("sync_directories", "true"),
            ("sync_writes", "true"),
            ("attributes", "true"),
            ("rate", "1MiB"),
            ("line_call", "true"),
        ],
        expect![[r#"
            replay Measure Cold File { path: Some("/srv/load.gz") } Replayed(2) unresolved sync-files sync-directories sync-writes attributes Some(Bytes(1048576)) line-call Thread
        "#]],
    );
    shown(
        &[("load", "/srv/load"), ("paced", "true"), ("warmup", "0s")],
        expect![[r#"
        replay Measure Cold File { path: Some("/srv/load") } Time { ramp: Nanos(0), run: Nanos(60000000000) } paced
    "#]],
    );
}

#[test]
fn what_has_no_effect_makes_no_other_point() {
    let same = |one: &[(&str, &str)], other: &[(&str, &str)]| {
        assert_eq!(refined(one).unwrap(), refined(other).unwrap());
    };
    same(&[("load", "dbench"), ("iterations", "3")], &[("load", "dbench")]);
    same(&[("replays", "1"), ("time", "1s"), ("warmup", "1s")], &[("replays", "1")]);
    same(&[("warmup", "2000ms")], &[("warmup", "2s")]);
}

#[test]
fn clients_are_processes_and_take_room() {
    let point = refined(&[("clients", "200")]).unwrap();
    let workers = replay(&point, 1).workers;
    assert_eq!((workers.count, workers.kind), (200, WorkerKind::Process));
    assert_eq!(footprint(&point), Bytes::mib(64 * 200));
}

#[test]
fn contradictions_are_refused_with_a_cure() {
    let refused = |settings: &[(&str, &str)]| refined(settings).unwrap_err().to_string();
    expect!["`client.txt` is no absolute path"].assert_eq(&refused(&[("load", "client.txt")]));
    expect!["`time` is zero, so nothing counts"].assert_eq(&refused(&[("time", "0s")]));
    expect!["the office has no times at which operations begin"]
        .assert_eq(&refused(&[("paced", "true")]));
    expect![[r#"`some` is not a duration; write a whole number and ns, us, ms, s, min, or h: `500ms`, or "fifth", which is a fifth of `time`"#]].assert_eq(&refused(&[("warmup", "some")]));
    let both = [("load", "/a"), ("paced", "true"), ("rate", "1MiB")];
    expect!["`paced` and `rate` both say when operations begin"].assert_eq(&refused(&both));
}
