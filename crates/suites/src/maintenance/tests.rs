use super::*;

fn point(parameters: &[(&str, &str)]) -> Result<WorkloadParameters, ValueError> {
    let mut point = SPEC.defaults();
    for (name, text) in parameters {
        let value = SPEC.parameter(name).unwrap().kind.read(text)?;
        point.parameters.insert((*name).to_owned(), value);
    }
    refine(point).map(|mut points| points.remove(0))
}

#[test]
fn removals_have_a_tree_each() {
    let point = point(&[("action", "remove"), ("count", "3"), ("files", "200")]).unwrap();
    let phases = phases(&point, 1);
    let Work::Layout(layout) = &phases[0].work else { panic!("trees are created first") };
    assert_eq!((layout.owners, layout.set.files), (3, 200));
    assert_eq!(footprint(&point), Bytes(3 * 200 * 8192));
    assert_eq!(Action::tree(2), format!("{}.2", layout.set.name));
}

#[test]
fn unsuitable_parameters_are_rejected() {
    for wrong in [
        &[("action", "run")][..],
        &[("run", "true")],
        &[("action", "remove")],
        &[("action", "run"), ("run", "echo {mount}")],
        &[("runtime", "0s")],
        &[("action", "fill")],
        &[("action", "trim"), ("may_fail", "true")],
        &[("action", "freeze"), ("hold", "11s")],
    ] {
        let error = point(wrong).unwrap_err();
        assert!(error.hint.is_some() || error.message.contains("mount"), "{wrong:?}: {error}");
    }
    let fill = point(&[("action", "fill"), ("percent", "70"), ("count", "1")]).unwrap();
    assert_eq!(action(&fill), Action::Fill(70));
    let freeze = point(&[("action", "freeze"), ("hold", "2s")]).unwrap();
    assert_eq!(action(&freeze), Action::Freeze(Nanos(2_000_000_000)));
    // Parameters of other actions do not make a different workload.
    assert_eq!(point(&[("percent", "70"), ("hold", "2s")]), point(&[]));
    let run = point(&[("action", "run"), ("run", "ls '{target}/a b'")]).unwrap();
    assert_eq!(action(&run), Action::Run(vec!["ls".into(), "{target}/a b".into()]));
}
