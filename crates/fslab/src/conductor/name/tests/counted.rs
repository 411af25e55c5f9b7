//! Where the clock counts instructions, results become counts of them, and nothing of time is kept.

use expect_test::expect;
use model::metric::Unit;
use rig::{ProgramTime, Step};

use super::{evidence::everything, *};

/// The same as [`everything`], by a clock of instructions.
fn counted() -> Known {
    let mut known = everything();
    known.always.clock = Clock::Instructions;
    known
}

fn told(samples: &[Sample]) -> String {
    let line = |sample: &Sample| format!("{} {}\n", sample.metric.name(), sample.value);
    samples.iter().map(line).collect()
}

#[test]
fn results_and_evidence_become_instructions() {
    let mut result = result();
    for worker in &mut result.workers {
        worker.latencies.write = times(2000, 4_000);
        (worker.user_time, worker.system_time) = (Nanos(300), Nanos(700));
    }
    let samples = samples(&phase(Direction::Write, Timed::default()), &result, &counted());
    expect![[r#"
        step_instructions 5000000000
        kernel_thread_instructions 500000000
        caused_instructions 2500000000
        caused_instructions_per_op 4882812.5
        minor_faults 70
        major_faults 3
        dirty_peak 900
        dirty_end 400
        overhead_memory 20971520
        device_read 3000
        device_written 9000
        device_reads 30
        device_writes 60
        device_flushes 6
        device_discarded 1000
        instructions 2500000000
        instructions_per_op 4882812.5
        durable_instructions_per_op 6835937.5
        instructions_p50 4000
        instructions_p90 4000
        instructions_p99 4000
        instructions_mean 4000
        instructions_max 4000
        loop_instructions 2000000000
        flush_instructions 1000000000
        close_instructions 1000000000
        program_instructions 2000
        voluntary_switches 0
        involuntary_switches 0
        switches_per_op 0
        write_amplification 0.004291534423828125
    "#]]
    .assert_eq(&told(&samples));
    let timed = [Unit::Nanoseconds, Unit::OpsPerSecond, Unit::BytesPerSecond, Unit::Hertz];
    assert!(samples.iter().all(|sample| !timed.contains(&sample.metric.spec().unit)));
    assert!(samples.iter().all(|sample| sample.worker.is_none()), "rates of workers are rates");
}

#[test]
fn what_was_flushed_after_the_stonewall_gives_no_cost_of_an_operation() {
    let mut result = result();
    result.workers[1].uncounted = Bytes::mib(1);
    let samples = samples(&phase(Direction::Write, Timed::default()), &result, &counted());
    assert_eq!(value(&samples, Metric::DurableInstructionsPerOp), None);
    assert!(value(&samples, Metric::InstructionsPerOp).is_some());
}

#[test]
fn steps_become_instructions() {
    let step = Step {
        name: "mkfs",
        elapsed: Nanos(4_000),
        program: Some(ProgramTime { user: Nanos(1_000), system: Nanos(2_000) }),
        evidence: Some(everything().evidence),
    };
    expect![[r#"
        step_instructions 4000
        kernel_thread_instructions 500000000
        device_read 3000
        device_written 9000
        device_flushes 6
        program_instructions 3000
    "#]]
    .assert_eq(&told(&super::super::step(&step, Clock::Instructions)));
    let looks =
        looking(Nanos(5), Nanos(50), &[("p".into(), everything().evidence)], Clock::Instructions);
    expect![[r#"
        overhead_memory 20971520
    "#]]
    .assert_eq(&told(&looks));
}

/// One processor, all of whose time tasks account for, but for so much.
fn idle(idle: u64) -> Known {
    let mut known = counted();
    let mut cpu = super::evidence::cpu();
    cpu.host.processors = 1;
    let window = cpu.known() + Nanos(idle);
    known.evidence = Evidence { window, cpu: Some(cpu), ..Evidence::default() };
    known
}

/// A worker that is done in no time.
fn short() -> PhaseResult {
    let mut result = result();
    result.workers.truncate(1);
    result.workers[0].loop_time = Nanos(1000);
    result.workers[0].flush_time = Nanos(0);
    result
}

#[test]
fn nothing_is_too_short_to_count() {
    let phase = phase(Direction::Write, Timed::default());
    assert_eq!(codes(&phase, &short(), &idle(0)), Vec::<&str>::new());
    assert_eq!(codes(&phase, &short(), &nothing()), ["W-SHORT"]);
}

#[test]
fn what_the_clock_jumped_over_is_taken_off_and_told() {
    const IDLE: u64 = 600_000_000;
    let phase = phase(Direction::Write, Timed::default());
    let named = samples(&phase, &result(), &idle(IDLE));
    assert_eq!(value(&named, Metric::Instructions), Some(2.5e9 - 6e8));
    assert_eq!(value(&named, Metric::InstructionsPerOp), Some((2.5e9 - 6e8) / 512.0));
    assert_eq!(value(&named, Metric::DurableInstructionsPerOp), Some((3.5e9 - 6e8) / 512.0));
    assert_eq!(value(&named, Metric::StepInstructions), Some(5e9 - 6e8));
    assert_eq!(value(&named, Metric::LoopInstructions), None, "in which part is not known");
    assert_eq!(codes(&phase, &result(), &idle(IDLE)), ["W-IDLE"]);
    assert_eq!(codes(&phase, &result(), &idle(1_000_000)), Vec::<&str>::new());
    let busy = samples(&phase, &result(), &idle(0));
    assert_eq!(value(&busy, Metric::LoopInstructions), Some(2e9));
    // By the clock of a machine it is no matter.
    let mut known = idle(IDLE);
    known.always.clock = Clock::Wall;
    assert_eq!(value(&samples(&phase, &result(), &known), Metric::Elapsed), Some(5e9));
    // A step waits as well.
    let step = Step {
        name: "umount",
        elapsed: Nanos(2 * IDLE),
        program: None,
        evidence: Some(idle(IDLE).evidence),
    };
    let umount = super::super::step(&step, Clock::Instructions);
    assert_eq!(value(&umount, Metric::StepInstructions), Some(6e8));
}
