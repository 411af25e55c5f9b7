use super::*;

fn point(values: &[(&str, &str)]) -> WorkloadParameters {
    let mut point = SPEC.defaults();
    for (name, text) in values {
        let value = SPEC.parameter(name).unwrap().kind.read(text).unwrap();
        point.parameters.insert((*name).to_owned(), value);
    }
    refine(point).unwrap().remove(0)
}

#[test]
fn deliveries_per_second_are_the_result() {
    for format in ["maildir", "mbox"] {
        let phases = phases(&point(&[("format", format)]), 7);
        assert_eq!(phases.len(), 1);
        assert_eq!(phases[0].primary().name(), "delivery_rate");
        let Work::Mail(mail) = &phases[0].work else { panic!("mail") };
        assert_eq!((mail.format.name(), mail.deliverers, mail.readers), (format, 4, 1));
        assert_eq!((mail.time, mail.messages, phases[0].work.workers()), (None, 2500, 5));
    }
}

#[test]
fn parameters_without_effect_do_not_distinguish_workloads() {
    assert_eq!(point(&[("readers", "0"), ("poll_interval", "1s")]), point(&[("readers", "0")]));
    assert_eq!(point(&[("runtime", "5s"), ("messages", "7")]), point(&[("runtime", "5s")]));
    let fixed = [("message_size_sigma", "0"), ("message_size_mean", "4KiB")];
    assert_eq!(sizes(&point(&fixed)), Sizes::Fixed(Bytes::kib(4)));
}

#[test]
fn large_messages_are_rejected() {
    let mut point = point(&[]);
    let size = SPEC.parameter("message_size_mean").unwrap().kind.read("2MiB").unwrap();
    point.parameters.insert("message_size_mean".into(), size);
    assert!(refine(point).unwrap_err().to_string().contains("`message_size_mean` is too large"));
}

#[test]
fn a_longer_run_needs_more_space() {
    let size = |run: &str| footprint(&point(&[("runtime", run)]));
    assert!(size("20s") > size("10s"));
    assert!(footprint(&point(&[])) > Bytes::mib(100));
}
