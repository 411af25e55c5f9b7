use super::*;

#[test]
fn the_files_are_created_before_the_measured_phase() {
    let mut point = SPEC.defaults();
    for (name, text) in [("trace", "/srv/mail.fstrace"), ("timing", "think"), ("order", "tasks")] {
        let value = SPEC.parameter(name).unwrap().kind.read(text).unwrap();
        point.parameters.insert(name.to_owned(), value);
    }
    let phases = phases(&point, 7);
    let [Work::Trace(files), Work::Trace(replay)] = [&phases[0].work, &phases[1].work] else {
        panic!("both phases use the recording");
    };
    assert_eq!((phases[0].role, phases[1].role), (Role::Prepare, Role::Measure));
    assert!(files.prepares && !replay.prepares);
    assert_eq!((replay.timing, replay.order), (TraceTiming::Think, TraceOrder::Tasks));
    assert_eq!((replay.trace.as_str(), replay.seed), ("/srv/mail.fstrace", 7));
    assert_eq!(phases[1].primary().name(), "elapsed");
}

#[test]
fn a_digest_has_64_digits() {
    assert_eq!(read_digest(&"AB".repeat(32)).unwrap(), "ab".repeat(32));
    assert_eq!(read_digest("").unwrap(), "");
    assert!(read_digest("ab").is_err());
    assert!(read_digest(&"x".repeat(64)).is_err());
}
