//! Effects of the end of a section, and the end at a steady state.

use model::phase::{SteadyChange, SteadyLimit, SteadyRate};

use super::*;

/// Names and effects of the ends of the sections that run.
fn ends(text: &str) -> Vec<(String, GroupEnd)> {
    let phases = work(&format!("[global]\nsize=4k\nrw=write\n{text}"));
    let together = phases.iter().filter_map(|phase| Some((phase, phase.together?)));
    together.map(|(phase, own)| (phase.name.clone(), own.end)).collect()
}

#[test]
fn exitall_of_one_section_stops_the_sections_of_the_group_of_any() {
    let all = |names: &[&str], end| -> Vec<(String, GroupEnd)> {
        names.iter().map(|name| ((*name).to_owned(), end)).collect()
    };
    assert_eq!(ends("[a]\n[b]\nexitall"), all(&["a", "b"], GroupEnd::StopAll));
    assert_eq!(ends("[a]\n[b]"), all(&["a", "b"], GroupEnd::Each));
    assert_eq!(ends("[a]\n[b]\nnew_group\nexitall"), all(&["a", "b"], GroupEnd::Each));
    let one = ends("[a]\nexit_what=stonewall\n[b]\nnew_group\nexitall");
    assert_eq!(one, [("a".into(), GroupEnd::StopAll), ("b".into(), GroupEnd::Each)]);
    let found = mistakes("[global]\nsize=4k\nexitall\n[a]\n[b]\n[c]\nnew_group\n");
    assert!(found.contains("use exit_what=stonewall"), "{found}");
}

#[test]
fn exit_what_all_removes_the_sections_of_later_groups() {
    let text = "[global]\nsize=4k\nexitall\n[a]\nexit_what=all\n[b]\n[c]\nstonewall\n[d]";
    let job = parsed(text, &Changes::default()).unwrap();
    let names: Vec<&str> = job.sections.iter().map(|own| own.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let never: Vec<&str> = job.unused.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(never, ["section `c`", "section `d`"]);
    let without = parsed("[a]\nsize=4k\nexit_what=all", &Changes::default()).unwrap();
    assert_eq!(without.unused, [("exit_what".to_owned(), "exitall is not set".to_owned())]);
}

#[test]
fn steadystate_ends_a_section_when_its_rate_is_steady() {
    let steady = |options: &str| {
        let text = format!("[a]\nsize=1m\ntime_based\nruntime=60\n{options}");
        stream(&text).steady_state
    };
    assert_eq!(steady(""), None);
    let own = steady("ss=iops:10%\nss_dur=30\nss_ramp=10\nramp_time=5\n").unwrap();
    assert_eq!((own.rate, own.change), (SteadyRate::Operations, SteadyChange::Deviation));
    assert_eq!((own.limit, own.intervals), (SteadyLimit::Relative(0.1), 30));
    assert_eq!((own.ramp, own.interval), (Nanos(15_000_000_000), Nanos(1_000_000_000)));
    let own = steady("ss=bw_slope:2k\nss_dur=1m\nss_interval=500ms\n").unwrap();
    assert_eq!((own.rate, own.change), (SteadyRate::Bytes, SteadyChange::Slope));
    assert_eq!((own.limit, own.intervals), (SteadyLimit::Absolute(2048.0), 120));
    assert!(canonical("[a]\nsize=1m\nss=iops:10 %\nss_dur=5").contains("\nsteadystate=iops:10%"));
}

#[test]
fn contradictions_of_steadystate_are_rejected() {
    for (options, reason) in [
        ("ss=iops:10%", "steadystate_duration is not 2"),
        ("ss=iops:10%\nss_dur=1", "steadystate_duration is not 2"),
        ("ss_dur=10", "steadystate is missing"),
        ("ss=iops\nss_dur=10", "is not iops:LIMIT"),
        ("ss=lat:10%\nss_dur=10", "is not iops:LIMIT"),
        ("ss=iops:0%\nss_dur=10", "not greater than 0"),
        ("ss=iops:10%\nss_dur=10\nss_interval=10ms", "shorter than 100 ms"),
        ("ss=iops:10%\nss_dur=10\nrw=write\nverify=md5", "are not known"),
        ("ss=iops:10%\nss_dur=10\n[b]\nsize=4k", "add stonewall"),
    ] {
        let found = mistakes(&format!("[a]\nsize=64k\n{options}\n"));
        assert!(found.contains(reason), "{options}: {found}");
    }
}

#[test]
fn fill_device_ends_at_the_end_of_the_file_in_the_place_of_a_device() {
    let text = "[a]\nrw=write\nfilename=/dev/sdb\nfill_device=1\n";
    let changes = Changes { map: vec!["/dev/sdb=f:64k".into()], ..Changes::default() };
    let job = parsed(text, &changes).unwrap();
    assert!(!job.text().contains("fill_device") && job.text().contains("size=65536"));
    let random = text.replace("rw=write", "rw=randwrite");
    let found = parsed(&random, &changes).unwrap_err().to_string();
    assert!(found.contains("use size instead"), "{found}");
    let found = mistakes("[a]\nrw=write\nsize=64k\nfill_device=1\n");
    assert!(found.contains("in the place of a device only"), "{found}");
}
