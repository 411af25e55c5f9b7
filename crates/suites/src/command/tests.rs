use expect_test::expect;
use model::Value;

use super::*;

fn point(settings: &[(&str, &str)]) -> Result<WorkloadParameters, ValueError> {
    let mut point = SPEC.defaults();
    for (name, text) in settings {
        point.parameters.insert((*name).to_owned(), SPEC.parameter(name)?.kind.read(text)?);
    }
    refine(point).map(|mut points| points.remove(0))
}

fn error(settings: &[(&str, &str)]) -> String {
    point(settings).unwrap_err().message
}

fn command(phase: &Phase) -> &Command {
    let Work::Command(command) = &phase.work else { panic!("{phase:?} is a command") };
    command
}

#[test]
fn preparation_and_run_are_separate_phases() {
    let point = point(&[
        ("run", "git clone {input} {target}/c"),
        ("prepare", "mkdir a\nmkdir 'b c'"),
        ("input", "/srv/r.git"),
        ("user", "nobody"),
        ("name", "clone"),
    ]);
    let phases = phases(&point.unwrap(), 7);
    let names: Vec<_> = phases.iter().map(|phase| (phase.name.as_str(), phase.role)).collect();
    assert_eq!(names, [("prepare", Role::Prepare), ("clone", Role::Measure)]);
    assert_eq!(command(&phases[0]).run, [vec!["mkdir", "a"], vec!["mkdir", "b c"]]);
    let run = command(&phases[1]);
    assert_eq!(run.run, [["git", "clone", "{input}", "{target}/c"]]);
    assert_eq!((run.user.as_str(), run.seed), ("nobody", 7));
    assert_eq!(run.input, Input::Path("/srv/r.git".into()));
    assert_eq!(phases[1].cache, Cache::Cold);
    assert_eq!(phases[1].primary().name(), "durable_elapsed");
}

#[test]
fn generated_input_is_an_archive_in_the_external_directory() {
    let point = point(&[("run", "tar -xf {input}/source.tar"), ("input_files", "50")]).unwrap();
    let phases = phases(&point, 1);
    let Work::Task(Task { operation: TaskOperation::Archive { archive, files, .. }, .. }) =
        &phases[0].work
    else {
        panic!("the first phase creates an archive");
    };
    assert_eq!((archive.name.as_str(), archive.root, *files), (SOURCE, TaskRoot::External, 50));
    assert_eq!(command(&phases[1]).input, Input::Generated);
}

#[test]
fn numbers_have_a_canonical_text() {
    let text = "name=tps pattern='tps = {} (' is=rate from=stdout\nname=t is=time unit=ms \
                which=last from=stderr 'pattern=took {}'";
    let point = point(&[("numbers", text), ("judge", "tps")]).unwrap();
    let Value::Text(own) = point.value("numbers") else { panic!("a text") };
    expect![[r"
        name=tps is=rate 'pattern=tps = {} ('
        name=t is=time unit=ms 'pattern=took {}' from=stderr which=last"]]
    .assert_eq(own);
    let phases = phases(&point, 1);
    let measured = command(&phases[0]);
    assert_eq!(measured.primary().name(), "reported_rate");
    let others: Vec<_> = measured.other_numbers().map(|number| number.name.as_str()).collect();
    assert_eq!(others, ["t"]);
}

#[test]
fn contradictions_are_rejected() {
    assert_eq!(error(&[("run", "")]), "`run` is empty");
    assert_eq!(error(&[("run", "ls {traget}")]), "`{traget}` has the unknown placeholder {traget}");
    assert_eq!(error(&[("run", "ls 'a")]), "the quote ' is not closed");
    assert_eq!(error(&[("run", "ls {input}")]), "the programs use {input}, but there is no input");
    assert_eq!(error(&[("ready", "true")]), "`ready` is set, but `serve` is not");
    assert_eq!(error(&[("serve", "a\nb")]), "there is a second program, `b`");
    assert_eq!(error(&[("judge", "tps")]), "`judge` is `tps`, but there is no such number");
    assert_eq!(error(&[("environment", "LD_PRELOAD=/x")]), "`LD_PRELOAD=/x` is not NAME=VALUE");
    let both = [("input", "/a"), ("input_files", "1")];
    assert_eq!(error(&both), "both `input` and `input_files` are set");
    let count = [("numbers", "name=n is=count pattern={}"), ("judge", "n")];
    assert_eq!(error(&count), "`judge` is `n`, which has no direction");
    assert_eq!(error(&[("numbers", "name=n is=time pattern={}")]), "the table has no `unit`");
    assert_eq!(
        error(&[("numbers", "name=n is=rate pattern=x")]),
        "`x` does not contain {} exactly once"
    );
    assert_eq!(error(&[("latencies", "file=x unit=us column=0")]), "`column` is `0`");
}
