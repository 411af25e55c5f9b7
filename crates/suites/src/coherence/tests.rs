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
fn each_kind_of_change_is_a_phase() {
    let all = phases(&point(&[]).unwrap(), 1);
    let names: Vec<&str> = all.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(names, Change::ALL.map(Change::name));
    let two = point(&[("changes", "unlink,create"), ("count", "27"), ("workers", "3")]).unwrap();
    let two = phases(&two, 1);
    let work: Vec<(Change, u64, u32)> = two
        .iter()
        .map(|phase| {
            let Work::Coherence(work) = &phase.work else { panic!("{:?}", phase.work) };
            (work.change, work.changes, work.workers.count)
        })
        .collect();
    assert_eq!(work, [(Change::Create, 27, 3), (Change::Unlink, 27, 3)]);
}

#[test]
fn unsuitable_parameters_are_rejected() {
    for wrong in [("workers", "1"), ("interval", "0s"), ("timeout", "1ms"), ("count", "19")] {
        assert!(point(&[wrong]).is_err(), "{wrong:?}");
    }
}
