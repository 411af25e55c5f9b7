use expect_test::{Expect, expect};
use model::phase::WorkerKind;

use super::*;

fn refined(settings: &[(&str, &str)]) -> Result<WorkloadParameters, ValueError> {
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
fn one_phase_replays_the_loadfile() {
    shown(
        &[],
        expect![[r#"
        replay Measure Cold Office { iterations: 129, seed: 7 } Time { ramp: Nanos(12000000000), run: Nanos(60000000000) }
    "#]],
    );
    shown(
        &[("loadfile", "dbench"), ("clients", "20"), ("runtime", "10s")],
        expect![[r#"
        replay Measure Cold File { path: None } Time { ramp: Nanos(2000000000), run: Nanos(10000000000) } workers=20
    "#]],
    );
    shown(
        &[
            ("loadfile", "/srv/load.gz"),
            ("replay_count", "2"),
            ("worker_type", "thread"),
            ("resolve", "false"),
            ("o_sync", "true"),
            ("sync_directories", "true"),
            ("fsync_writes", "true"),
            ("xattr", "true"),
            ("rate", "1MiB"),
            ("parent_check", "true"),
        ],
        expect![[r#"
            replay Measure Cold File { path: Some("/srv/load.gz") } Replayed(2) unresolved sync-files sync-directories sync-writes attributes Some(Bytes(1048576)) line-call Thread
        "#]],
    );
    shown(
        &[("loadfile", "/srv/load"), ("use_timestamps", "true"), ("ramp_time", "0s")],
        expect![[r#"
        replay Measure Cold File { path: Some("/srv/load") } Time { ramp: Nanos(0), run: Nanos(60000000000) } paced
    "#]],
    );
}

#[test]
fn equal_workloads_have_equal_parameters() {
    let same = |one: &[(&str, &str)], other: &[(&str, &str)]| {
        assert_eq!(refined(one).unwrap(), refined(other).unwrap());
    };
    same(&[("loadfile", "dbench"), ("iterations", "3")], &[("loadfile", "dbench")]);
    same(
        &[("replay_count", "1"), ("runtime", "1s"), ("ramp_time", "1s")],
        &[("replay_count", "1")],
    );
    same(&[("ramp_time", "2000ms")], &[("ramp_time", "2s")]);
}

#[test]
fn footprint_grows_with_the_clients() {
    let point = refined(&[("clients", "200")]).unwrap();
    let workers = replay(&point, 1).workers;
    assert_eq!((workers.count, workers.kind), (200, WorkerKind::Process));
    assert_eq!(footprint(&point), Bytes::mib(32 * 200));
}

#[test]
fn contradictions_are_rejected_with_a_hint() {
    let refused = |settings: &[(&str, &str)]| refined(settings).unwrap_err().to_string();
    expect!["`client.txt` is not an absolute path"]
        .assert_eq(&refused(&[("loadfile", "client.txt")]));
    expect!["`runtime` is 0"].assert_eq(&refused(&[("runtime", "0s")]));
    expect!["the built-in loadfile has no timestamps"]
        .assert_eq(&refused(&[("use_timestamps", "true")]));
    expect![[r#"`some` is not a duration; use an integer and ns, us, ms, s, min, or h, such as `500ms`, or "fifth", which is a fifth of `runtime`"#]].assert_eq(&refused(&[("ramp_time", "some")]));
    let both = [("loadfile", "/a"), ("use_timestamps", "true"), ("rate", "1MiB")];
    expect!["`use_timestamps` and `rate` exclude each other"].assert_eq(&refused(&both));
}
