//! Conversion of results to instruction counts, without times.

use expect_test::expect;
use model::metric::Unit;
use rig::{ProgramTime, Step};

use super::{activity::everything, *};

/// The same as [`everything`], on an instruction clock.
fn counted() -> PhaseContext {
    let mut known = everything();
    known.always.clock = Clock::Instructions;
    known
}

fn lines(samples: &[Sample]) -> String {
    let line = |sample: &Sample| format!("{} {}\n", sample.metric.name(), sample.value);
    samples.iter().map(line).collect()
}

#[test]
fn results_and_activity_become_instructions() {
    let mut result = result();
    for worker in &mut result.workers {
        worker.latencies.write = times(2000, 4_000);
        (worker.user_time, worker.system_time) = (Nanos(300), Nanos(700));
    }
    let samples = of_phase(&phase(Direction::Write, Timed::default()), &result, &counted());
    expect![[r#"
        step_instructions 5000000000
        kernel_thread_instructions 500000000
        attributed_instructions 2500000000
        attributed_instructions_per_op 4882812.5
        minor_faults 70
        major_faults 3
        dirty_memory_peak 900
        dirty_memory_end 400
        monitoring_memory 20971520
        device_bytes_read 3000
        device_bytes_written 9000
        device_read_requests 30
        device_write_requests 60
        device_flush_requests 6
        device_bytes_discarded 1000
        instructions 2500000000
        instructions_per_op 4882812.5
        durable_instructions_per_op 6835937.5
        instructions_p50 4000
        instructions_p90 4000
        instructions_p99 4000
        instructions_mean 4000
        instructions_max 4000
        loop_instructions 2000000000
        end_sync_instructions 1000000000
        close_instructions 1000000000
        process_instructions 2000
        voluntary_context_switches 0
        involuntary_context_switches 0
        context_switches_per_op 0
        write_amplification 0.004291534423828125
    "#]]
    .assert_eq(&lines(&samples));
    let timed = [Unit::Nanoseconds, Unit::OpsPerSecond, Unit::BytesPerSecond, Unit::Hertz];
    assert!(samples.iter().all(|sample| !timed.contains(&sample.metric.spec().unit)));
    assert!(samples.iter().all(|sample| sample.worker.is_none()), "rates of workers are rates");
}

#[test]
fn a_sync_after_the_stonewall_gives_no_cost_per_operation() {
    let mut result = result();
    result.workers[1].uncounted = Bytes::mib(1);
    let samples = of_phase(&phase(Direction::Write, Timed::default()), &result, &counted());
    assert_eq!(value(&samples, Metric::DurableInstructionsPerOp), None);
    assert!(value(&samples, Metric::InstructionsPerOp).is_some());
}

#[test]
fn steps_become_instructions() {
    let step = Step {
        name: "mkfs",
        elapsed: Nanos(4_000),
        program: Some(ProgramTime { user: Nanos(1_000), system: Nanos(2_000) }),
        activity: Some(everything().activity),
    };
    expect![[r#"
        step_instructions 4000
        kernel_thread_instructions 500000000
        device_bytes_read 3000
        device_bytes_written 9000
        device_flush_requests 6
        process_instructions 3000
    "#]]
    .assert_eq(&lines(&super::super::step(&step, Clock::Instructions)));
    let looks = monitoring_overhead(
        Nanos(5),
        Nanos(50),
        &[("p".into(), everything().activity)],
        Clock::Instructions,
    );
    expect![[r#"
        monitoring_memory 20971520
    "#]]
    .assert_eq(&lines(&looks));
}

/// One CPU whose time is all attributed to tasks, except this much.
fn idle(idle: u64) -> PhaseContext {
    let mut known = counted();
    let mut cpu = super::activity::cpu();
    cpu.host.processors = 1;
    let window = cpu.accounted() + Nanos(idle);
    known.activity = SystemActivity { window, cpu: Some(cpu), ..SystemActivity::default() };
    known
}

/// Worker that finishes in no time.
fn short() -> PhaseResult {
    let mut result = result();
    result.workers.truncate(1);
    result.workers[0].loop_time = Nanos(1000);
    result.workers[0].end_sync_time = Nanos(0);
    result
}

#[test]
fn nothing_is_too_short_to_count() {
    let phase = phase(Direction::Write, Timed::default());
    assert_eq!(codes(&phase, &short(), &idle(0)), Vec::<&str>::new());
    assert_eq!(codes(&phase, &short(), &nothing()), ["short-phase"]);
}

#[test]
fn idle_time_is_subtracted_and_reported() {
    const IDLE: u64 = 600_000_000;
    let phase = phase(Direction::Write, Timed::default());
    let named = of_phase(&phase, &result(), &idle(IDLE));
    assert_eq!(value(&named, Metric::Instructions), Some(2.5e9 - 6e8));
    assert_eq!(value(&named, Metric::InstructionsPerOp), Some((2.5e9 - 6e8) / 512.0));
    assert_eq!(value(&named, Metric::DurableInstructionsPerOp), Some((3.5e9 - 6e8) / 512.0));
    assert_eq!(value(&named, Metric::StepInstructions), Some(5e9 - 6e8));
    assert_eq!(value(&named, Metric::LoopInstructions), None, "the parts are unknown");
    assert_eq!(codes(&phase, &result(), &idle(IDLE)), ["guest-idle"]);
    assert_eq!(codes(&phase, &result(), &idle(1_000_000)), Vec::<&str>::new());
    let busy = of_phase(&phase, &result(), &idle(0));
    assert_eq!(value(&busy, Metric::LoopInstructions), Some(2e9));
    // Not relevant on a wall clock.
    let mut known = idle(IDLE);
    known.always.clock = Clock::Wall;
    assert_eq!(value(&of_phase(&phase, &result(), &known), Metric::Elapsed), Some(5e9));
    // A lifecycle step is idle at times as well.
    let step = Step {
        name: "umount",
        elapsed: Nanos(2 * IDLE),
        program: None,
        activity: Some(idle(IDLE).activity),
    };
    let umount = super::super::step(&step, Clock::Instructions);
    assert_eq!(value(&umount, Metric::StepInstructions), Some(6e8));
}
