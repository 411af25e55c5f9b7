use super::*;
use crate::host::FakeHost;

const BEFORE: &str = "cpu  1000 5 300 5000 200 0 15 7 0 0\ncpu0 1 2\ncpu1 1 2\nintr 5 6\n";
const AFTER: &str = "cpu  1090 5 320 5100 220 1 16 9 0 0\ncpu0 1 2\ncpu1 1 2\nintr 5 6\n";

#[test]
fn busy_is_what_idle_leaves_of_the_window() {
    let (before, after) = (Ticks::parse(BEFORE).unwrap(), Ticks::parse(AFTER).unwrap());
    let ms = |n: u64| Nanos(n * 1_000_000);
    // Two processors for 1.5 s, 1 s of it idle and 0.2 s waiting.
    let expected = HostCpu {
        processors: 2,
        busy: ms(1800),
        iowait: ms(200),
        interrupts: Some(ms(20)),
        steal: ms(20),
        resolution: ms(20),
    };
    assert_eq!(after.since(before, ms(1500)), expected);
    // More idle time than the window has, for it is rounded; and waiting went backward.
    let odd = before.since(Ticks { iowait: 300, idle: 4999, ..before }, ms(5));
    assert_eq!((odd.busy, odd.iowait), (ms(0), ms(0)));
}

#[test]
fn interrupts_that_were_never_counted_are_absent() {
    let ticks = Ticks::parse("cpu  1 2 3 4 5 0 0 8\ncpu0 1\n").unwrap();
    assert_eq!(ticks.since(ticks, Nanos(0)).interrupts, None);
    for text in ["", "cpu  1 2 3\ncpu0 1\n", "cpu  1 2 3 4 5 0 0 8\n", "cpu  1 2 3 x 5 0 0 8\ncpu0"]
    {
        assert_eq!(Ticks::parse(text), None, "{text}");
    }
}

#[test]
fn a_throttle_counts_once_for_all_who_show_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = FakeHost::new(folder.path());
    // Two cores with two processors each, in one package.
    for cpu in 0..4u32 {
        let at = |name: &str| format!("{FOLDER}/cpu{cpu}/{name}");
        host = host
            .file(&at("topology/physical_package_id"), "0\n")
            .file(&at("topology/core_id"), &format!("{}\n", cpu / 2))
            .file(&at("thermal_throttle/core_throttle_count"), &format!("{}\n", 10 + cpu / 2))
            .file(&at("thermal_throttle/package_throttle_count"), "100\n");
    }
    let mut absent = Vec::new();
    let throttles = Throttles::find(&host, &mut absent);
    assert_eq!((throttles.count(&host), absent.len()), (Some(10 + 11 + 100), 0));
    let none = tempfile::tempdir().unwrap();
    let none = FakeHost::new(none.path());
    assert_eq!(Throttles::find(&none, &mut absent).count(&none), None);
    assert_eq!(absent.len(), 1);
}
