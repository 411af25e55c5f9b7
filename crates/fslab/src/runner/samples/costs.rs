//! Cost of the work: CPU time, context switches, load generator and monitoring overhead.

use model::{Clock, Metric, PhaseResult, phase::WorkerResult};

use super::{PhaseContext, PhaseSamples, beyond_counting, float, generator_share, nanos, sum};

pub(super) fn add(named: &mut PhaseSamples<'_>, result: &PhaseResult, known: &PhaseContext) {
    cpu(named, result);
    let reads: u64 = result.workers.iter().map(|worker| worker.read.ops.0).sum();
    let blocked: u64 = result.workers.iter().map(|worker| worker.eagain_reads.0).sum();
    if blocked > 0 && reads > 0 {
        named.add(Metric::EagainReads, float(blocked));
        // Reads during the ramp time may also have returned EAGAIN.
        let all = float(reads) * beyond_counting(named.phase, result);
        named.add(Metric::EagainFraction, (float(blocked) / all).min(1.0));
    }
    if let Some(share) = generator_share(named.phase, result, known.generator) {
        named.add(Metric::GeneratorOverhead, share.0);
    }
}

fn cpu(named: &mut PhaseSamples<'_>, result: &PhaseResult) {
    let user = nanos(sum(result, |worker| worker.user_time));
    let system = nanos(sum(result, |worker| worker.system_time));
    let switches = |kind: fn(&WorkerResult) -> u64| float(result.workers.iter().map(kind).sum());
    let voluntary = switches(|worker| worker.voluntary_switches);
    let involuntary = switches(|worker| worker.involuntary_switches);
    named.add(Metric::UserTime, user);
    named.add(Metric::SystemTime, system);
    if named.clock == Clock::Instructions {
        named.add(Metric::ProcessInstructions, user + system);
    }
    named.add(Metric::VoluntaryContextSwitches, voluntary);
    named.add(Metric::InvoluntaryContextSwitches, involuntary);
    if result.ops().0 > 0 {
        let ops = float(result.ops().0) * beyond_counting(named.phase, result);
        named.add(Metric::UserTimePerOp, user / ops);
        named.add(Metric::SystemTimePerOp, system / ops);
        named.add(Metric::ContextSwitchesPerOp, (voluntary + involuntary) / ops);
    }
    let elapsed = nanos(super::elapsed(named.phase, result));
    let wall = elapsed * float(result.workers.len() as u64);
    if wall > 0.0 {
        named.add(Metric::CpuUtilization, (user + system) / elapsed);
        named.add(Metric::UserCpuUtilization, user / wall);
        named.add(Metric::SystemCpuUtilization, system / wall);
    }
}
