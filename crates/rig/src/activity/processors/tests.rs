use super::*;
use crate::host::FakeHost;

const BEFORE: &str = "cpu  1000 5 300 5000 200 0 15 7 0 0\ncpu0 1 2\ncpu1 1 2\nintr 5 6\n";
const AFTER: &str = "cpu  1090 5 320 5100 220 1 16 9 0 0\ncpu0 1 2\ncpu1 1 2\nintr 5 6\n";

#[test]
fn busy_time_is_the_window_minus_idle_time() {
    let (before, after) = (Ticks::parse(BEFORE).unwrap(), Ticks::parse(AFTER).unwrap());
    let ms = |n: u64| Nanos(n * 1_000_000);
    // Two CPUs for 1.5 s, 1 s of it idle and 0.2 s iowait.
    let expected = HostCpu {
        processors: 2,
        busy: ms(1800),
        iowait: ms(200),
        interrupts: Some(ms(20)),
        steal: ms(20),
        resolution: ms(20),
    };
    assert_eq!(after.since(before, ms(1500)), expected);
    // Idle time exceeds the window because of rounding, and iowait went backward.
    let odd = before.since(Ticks { iowait: 300, idle: 4999, ..before }, ms(5));
    assert_eq!((odd.busy, odd.iowait), (ms(0), ms(0)));
}

#[test]
fn interrupts_that_were_never_counted_are_unavailable() {
    let ticks = Ticks::parse("cpu  1 2 3 4 5 0 0 8\ncpu0 1\n").unwrap();
    assert_eq!(ticks.since(ticks, Nanos(0)).interrupts, None);
    for text in ["", "cpu  1 2 3\ncpu0 1\n", "cpu  1 2 3 4 5 0 0 8\n", "cpu  1 2 3 x 5 0 0 8\ncpu0"]
    {
        assert_eq!(Ticks::parse(text), None, "{text}");
    }
}

#[test]
fn counters_of_any_size_do_not_overflow() {
    let most = u64::MAX;
    let text = format!("cpu  1 2 3 {most} {most} {most} {most} {most} 0 0\ncpu0 1\n");
    let cpu = Ticks::parse(&text).unwrap().since(Ticks::default(), Nanos(1));
    assert_eq!((cpu.busy, cpu.steal), (Nanos(0), Nanos(most)));
    assert_eq!(cpu.interrupts, Some(Nanos(most)));
}

#[test]
fn shared_throttling_counters_count_once() {
    let temp = tempfile::tempdir().unwrap();
    let mut host = FakeHost::new(temp.path());
    // Two cores with two CPUs each, in one package.
    for cpu in 0..4u32 {
        let at = |name: &str| format!("{CPU_DIRECTORY}/cpu{cpu}/{name}");
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
