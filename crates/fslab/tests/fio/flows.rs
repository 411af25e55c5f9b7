//! Sections whose operations are in proportion.

use serde_json::Value;

use super::{fslab_fio, json};
use crate::support::Bench;

/// Reads of each section, and its run time in milliseconds.
fn run(common: &[&str], sections: &[String]) -> Vec<(u64, f64)> {
    let bench = Bench::new();
    let mut arguments = vec!["--output-format=json", "--size=4m", "--bs=4k"];
    arguments.extend(common);
    for section in sections {
        arguments.push("--name=own");
        arguments.extend(section.split(' '));
    }
    let document = json(&fslab_fio(&bench, &arguments));
    let read = |job: &Value| {
        let read = &job["read"];
        (read["total_ios"].as_u64().unwrap(), read["runtime"].as_f64().unwrap())
    };
    document["jobs"].as_array().unwrap().iter().map(read).collect()
}

/// A section with pauses has 200 operations. One without pauses has half of its share, so it ends
/// after half of the time; without the flow, it would end at once.
pub(super) fn proportions() {
    let common = ["--rw=randread", "--norandommap"];
    for (engine, weight, slow_weight, id) in [
        (vec!["--thread"], 3, 1, 0),
        (vec![], 1, 1, 7),
        (vec!["--flow_sleep=500"], 2, 4, 0),
        (vec!["--ioengine=libaio", "--iodepth=4", "--direct=1"], 2, 1, 1),
    ] {
        let share = 100 * weight / slow_weight;
        let sections = [
            format!("--flow={slow_weight} --flow_id={id} --number_ios=200 --thinktime=2000"),
            format!("--flow={weight} --flow_id={id} --number_ios={share}"),
            "--flow=1 --flow_id=9 --number_ios=100".to_owned(),
        ];
        let all: Vec<&str> = common.iter().chain(&engine).copied().collect();
        let found = run(&all, &sections);
        let [(slow, total), (fast, time), (alone, short)] = found[..] else { panic!("{found:?}") };
        assert_eq!((slow, fast, alone), (200, share, 100));
        assert!(total >= 390.0, "{found:?}");
        let part = time / total;
        assert!((0.25..0.85).contains(&part), "{engine:?} {weight}: {found:?}");
        assert!(short < time, "a section of another flow does not wait: {found:?}");
    }
}

pub(super) fn ends() {
    let sections = ["--flow=1 --number_ios=20", "--flow=3 --io_size=8m --norandommap"];
    let operations = |common: &[&str], sections: [&str; 2]| -> Vec<u64> {
        run(common, &sections.map(str::to_owned)).into_iter().map(|own| own.0).collect()
    };
    assert_eq!(operations(&["--rw=randread"], sections), [20, 2048]);
    // Sections that do not run at the same time do not wait for each other.
    assert_eq!(operations(&["--rw=read"], ["--flow=1", "--flow=3 --stonewall"]), [1024, 1024]);
}
